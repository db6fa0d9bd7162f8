// SPDX-License-Identifier: Apache-2.0
/// Does 70 % mean 70 %? Which model is judged on which cases, its reliability diagram, and a correction.
#ifndef qRcnCalibrationPanel_h
#define qRcnCalibrationPanel_h

#include <QWidget>

#include "rcnActions.h"

class QComboBox;
class QLabel;
class QPushButton;
class qRcnReliabilityDiagram;

class qRcnCalibrationPanel : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnCalibrationPanel(QWidget* parent = nullptr);

  void setModels(const QStringList& names, const QString& current);
  void setBusy(bool busy);
  /// What the model in use says about itself: a sentence or two, and all of it where the pointer rests; empty: no model.
  void setRecord(const QString& summary, const QString& all);

  /// What a person chose; region and bins are those of the diagram.
  rcn::SessionJudgement judgement() const;
  void setJudgement(const rcn::SessionJudgement& judgement);
  rcn_recalib_method method() const;

  void showJudged(const rcn::Judged& judged, const QString& model);
  void clear();
  qRcnReliabilityDiagram* diagram() const { return this->Diagram; }

signals:
  void evaluateRequested();
  void recalibrateRequested();
  /// A person wants another model in use.
  void modelChosen(const QString& name);

private:
  void update();

  QComboBox* Model;
  QLabel* Record;
  QComboBox* Split;
  QPushButton* Evaluate;
  QLabel* About;
  qRcnReliabilityDiagram* Diagram;
  QComboBox* Method;
  QPushButton* Recalibrate;
  bool Busy = false;
};

#endif
