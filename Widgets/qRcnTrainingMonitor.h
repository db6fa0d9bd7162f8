// SPDX-License-Identifier: Apache-2.0
/// Training as it goes: curves of loss and MR-ECE, time left, what the time is enough for, memory, Cancel; then the result
/// before and after, to keep or to discard.
#ifndef qRcnTrainingMonitor_h
#define qRcnTrainingMonitor_h

#include <memory>

#include <QWidget>

#include "rcnTraining.h"

class qRcnTrainingMonitorPrivate;

class qRcnTrainingMonitor : public QWidget
{
  Q_OBJECT
public:
  enum State
  {
    Idle,
    Running,
    Canceling, ///< Cancel was pressed; training finishes its step and saves
    Finished,
    Failed
  };
  Q_ENUM(State)

  explicit qRcnTrainingMonitor(QWidget* parent = nullptr);
  ~qRcnTrainingMonitor() override;

  State state() const;

public slots:
  /// `what`: "Retraining on 12 cases". Curves of an earlier training go.
  void start(const QString& what);
  void setProgress(const rcn::TrainingProgress& progress);
  void addEpoch(const rcn::TrainingEpoch& epoch);
  /// Shows before and after and asks whether to keep the model.
  void finish(const rcn::TrainingResult& result);
  void fail(const QString& sentence);
  void clear();

signals:
  void cancelRequested();
  void keepRequested();
  void discardRequested();

protected:
  void changeEvent(QEvent* event) override;

private:
  std::unique_ptr<qRcnTrainingMonitorPrivate> d;
};

Q_DECLARE_METATYPE(rcn::TrainingProgress)
Q_DECLARE_METATYPE(rcn::TrainingEpoch)

#endif
