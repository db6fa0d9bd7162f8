// SPDX-License-Identifier: Apache-2.0
/// From which model, how, and for how long to train; below it the training as it goes.
#ifndef qRcnTrainingPanel_h
#define qRcnTrainingPanel_h

#include <QWidget>

#include "rcnTraining.h"

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QPushButton;
class qRcnTrainingMonitor;

class qRcnTrainingPanel : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnTrainingPanel(QWidget* parent = nullptr);

  /// Models to go on from, by name.
  void setModels(const QStringList& names);
  /// How many cases there are for training and validation, which is shown.
  void setCases(int training, int validation);
  void setBusy(bool busy);
  /// Several structures can be learned in other ways than one.
  void setSeveralStructures(bool several);

  /// Empty: a new model.
  QString startFrom() const;
  /// Fills in what the person chose.
  void apply(rcn::TrainingOptions& options) const;
  qRcnTrainingMonitor* monitor() const { return this->Monitor; }

public slots:
  void setStartFrom(const QString& model);

signals:
  void trainRequested();

private:
  void update();
  void fillStrategies();

  QComboBox* From;
  QComboBox* Strategy;
  QComboBox* Network;
  QDoubleSpinBox* Minutes;
  QLabel* Cases;
  QPushButton* Train;
  qRcnTrainingMonitor* Monitor;
  int TrainingCases = 0;
  bool Several = false;
  bool Busy = false;
};

#endif
