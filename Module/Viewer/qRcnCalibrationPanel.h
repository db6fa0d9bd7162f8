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
class qRcnTable;

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
  rcn::EvaluationChoice choice() const;
  void setChoice(const rcn::EvaluationChoice& choice);
  rcn_recalib_method method() const;

  void showJudged(const rcn::Judged& judged, const QString& model);
  /// Whether what is shown can be stored in the model (rcn::CheckStoring()).
  void setStorable(bool storable);
  /// Of several structures, which one the diagram is about: 1, 2, ...; no names: there is one.
  void setStructures(const QStringList& names, int shown);
  void clear();
  qRcnReliabilityDiagram* diagram() const { return this->Diagram; }

signals:
  void evaluateRequested();
  void recalibrateRequested();
  void storeRequested();
  /// A person wants another model in use.
  void modelChosen(const QString& name);
  /// A person wants to see another structure.
  void structureChosen(int structure);

private:
  void update();
  void showReport();
  void showTable();

  QComboBox* Model;
  QLabel* Record;
  QComboBox* Split;
  QPushButton* Evaluate;
  QLabel* About;
  QPushButton* Store; ///< only beside what can be stored
  qRcnReliabilityDiagram* Diagram;
  QComboBox* Method;
  QPushButton* Recalibrate;
  qRcnTable* Table; ///< a row for each of several structures
  QStringList Structures;
  int Structure = 0;
  rcn::Judged Judged;  ///< what is shown
  QString JudgedModel; ///< empty: nothing is shown
  bool Storable = false;
  bool Busy = false;
};

#endif
