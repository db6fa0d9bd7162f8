#include "qRcnTrainingMonitor.h"

class qRcnTrainingMonitorPrivate
{
public:
  qRcnTrainingMonitor::State State = qRcnTrainingMonitor::Idle;
};

qRcnTrainingMonitor::qRcnTrainingMonitor(QWidget* parent) : QWidget(parent), d(new qRcnTrainingMonitorPrivate) {}
qRcnTrainingMonitor::~qRcnTrainingMonitor() = default;
qRcnTrainingMonitor::State qRcnTrainingMonitor::state() const { return this->d->State; }
void qRcnTrainingMonitor::start(const QString&) { this->d->State = Running; }
void qRcnTrainingMonitor::setProgress(const rcn::TrainingProgress&) {}
void qRcnTrainingMonitor::addEpoch(const rcn::TrainingEpoch&) {}
void qRcnTrainingMonitor::finish(const rcn::TrainingResult&) { this->d->State = Finished; }
void qRcnTrainingMonitor::fail(const QString&) { this->d->State = Failed; }
void qRcnTrainingMonitor::clear() { this->d->State = Idle; }
