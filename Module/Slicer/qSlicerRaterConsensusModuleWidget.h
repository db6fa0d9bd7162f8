// SPDX-License-Identifier: Apache-2.0
/// The panel: raters, agreement, consensus, model, calibration, in the order of a person's work.
///
/// What it shows comes from the parameter node and goes there; what it does is one action of the
/// logic, off the GUI thread.
#ifndef qSlicerRaterConsensusModuleWidget_h
#define qSlicerRaterConsensusModuleWidget_h

#include "qSlicerAbstractModuleWidget.h"
#include "qSlicerRaterConsensusModuleExport.h"

class qSlicerRaterConsensusModuleWidgetPrivate;
class vtkMRMLNode;
class vtkMRMLScene;

class Q_SLICER_QTMODULES_RATERCONSENSUS_EXPORT qSlicerRaterConsensusModuleWidget : public qSlicerAbstractModuleWidget
{
  Q_OBJECT

public:
  typedef qSlicerAbstractModuleWidget Superclass;
  explicit qSlicerRaterConsensusModuleWidget(QWidget* parent = nullptr);
  ~qSlicerRaterConsensusModuleWidget() override;

  void enter() override;
  void exit() override;
  bool setEditedNode(vtkMRMLNode* node, QString role = QString(), QString context = QString()) override;

public slots:
  void setMRMLScene(vtkMRMLScene* scene) override;

protected:
  void setup() override;

protected slots:
  void setParameters(vtkMRMLNode* node);
  void updateFromNode();
  void onSceneStartClose();
  void onSceneChanged();
  void onUnitsChanged();

private:
  QScopedPointer<qSlicerRaterConsensusModuleWidgetPrivate> d_ptr;
  Q_DECLARE_PRIVATE(qSlicerRaterConsensusModuleWidget)
  Q_DISABLE_COPY(qSlicerRaterConsensusModuleWidget)
};

#endif
