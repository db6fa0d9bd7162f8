// SPDX-License-Identifier: Apache-2.0
/// The module as the application sees it: title, help, dependencies, logic and panel.
#ifndef qSlicerRaterConsensusModule_h
#define qSlicerRaterConsensusModule_h

#include "qSlicerLoadableModule.h"
#include "qSlicerRaterConsensusModuleExport.h"

class Q_SLICER_QTMODULES_RATERCONSENSUS_EXPORT qSlicerRaterConsensusModule : public qSlicerLoadableModule
{
  Q_OBJECT
  Q_PLUGIN_METADATA(IID "org.slicer.modules.loadable.qSlicerLoadableModule/1.0")
  Q_INTERFACES(qSlicerLoadableModule)

public:
  typedef qSlicerLoadableModule Superclass;
  explicit qSlicerRaterConsensusModule(QObject* parent = nullptr);
  ~qSlicerRaterConsensusModule() override;

  qSlicerGetTitleMacro("Rater Consensus");

  QString helpText() const override;
  QString acknowledgementText() const override;
  QStringList contributors() const override;
  QIcon icon() const override;
  QStringList categories() const override;
  QStringList dependencies() const override;
  QStringList associatedNodeTypes() const override;

protected:
  void setup() override;
  qSlicerAbstractModuleRepresentation* createWidgetRepresentation() override;
  vtkMRMLAbstractLogic* createLogic() override;

private:
  Q_DISABLE_COPY(qSlicerRaterConsensusModule)
};

#endif
