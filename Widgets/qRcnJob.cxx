// SPDX-License-Identifier: Apache-2.0
#include "qRcnJob.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <QCoreApplication>
#include <QThread>

#include "rcnError.h"

/// What both threads hold.
struct qRcnJob::Monitor::Shared
{
  std::atomic<bool> Cancel{ false }, Stop{ false };
  std::mutex Mutex;
  // Under the mutex: `Receiver` lives on the GUI thread and is cleared by its destructor.
  qRcnJob* Receiver = nullptr;
  bool Reported = false; // a report waits for the GUI thread, which then shows the newest one
  double Fraction = 0;
  QString Stage;
};

bool qRcnJob::Monitor::report(double fraction, const QString& stage)
{
  const std::shared_ptr<Shared> shared = this->S;
  const std::lock_guard<std::mutex> lock(shared->Mutex);
  // One message at a time is under way. A loop that reports every step would otherwise fill the event queue faster than the
  // window is painted, and the window would hang after the work has ended.
  shared->Fraction = fraction;
  shared->Stage = stage;
  if (!shared->Reported && shared->Receiver)
  {
    shared->Reported = true;
    QMetaObject::invokeMethod(
      shared->Receiver,
      [shared, receiver = shared->Receiver] {
        double newest;
        QString name;
        {
          const std::lock_guard<std::mutex> inner(shared->Mutex);
          shared->Reported = false;
          newest = shared->Fraction;
          name = shared->Stage;
        }
        emit receiver->progressed(newest, name);
      },
      Qt::QueuedConnection);
  }
  return this->isStopped();
}

bool qRcnJob::Monitor::isCanceled() const
{
  return this->S->Cancel;
}

bool qRcnJob::Monitor::isStopped() const
{
  return this->S->Cancel || this->S->Stop;
}

void qRcnJob::Monitor::throwIfCanceled() const
{
  if (this->isCanceled())
  {
    throw rcn::Error(RCN_ECANCELLED, "Canceled.");
  }
}

void qRcnJob::Monitor::post(std::function<void()> update)
{
  const std::lock_guard<std::mutex> lock(this->S->Mutex);
  if (this->S->Receiver)
  {
    QMetaObject::invokeMethod(this->S->Receiver, std::move(update), Qt::QueuedConnection);
  }
}

qRcnJob::qRcnJob(QObject* parent) : QObject(parent) {}

qRcnJob::~qRcnJob()
{
  this->Next = nullptr;
  if (this->Thread)
  {
    this->Current->Cancel = true;
    // No message may be sent to what is being destroyed. Not while waiting with the mutex held: the thread needs it to end.
    {
      const std::lock_guard<std::mutex> lock(this->Current->Mutex);
      this->Current->Receiver = nullptr;
    }
    this->Thread->wait();
    delete this->Thread;
  }
}

bool qRcnJob::start(const QString& what, Work work)
{
  if (this->isRunning())
  {
    return false;
  }
  this->begin(what, std::move(work));
  return true;
}

void qRcnJob::startInstead(const QString& what, Work work)
{
  if (!this->isRunning())
  {
    this->begin(what, std::move(work));
    return;
  }
  this->Current->Cancel = true;
  this->NextWhat = what;
  this->Next = std::move(work);
}

void qRcnJob::cancel()
{
  this->Next = nullptr;
  if (this->Current)
  {
    this->Current->Cancel = true;
  }
}

void qRcnJob::stop()
{
  if (this->Current)
  {
    this->Current->Stop = true;
  }
}

void qRcnJob::begin(const QString& what, Work work)
{
  this->What = what;
  this->Current = std::make_shared<Monitor::Shared>();
  this->Current->Receiver = this;
  this->Thread = QThread::create([this, shared = this->Current, work = std::move(work)]() mutable {
    Monitor monitor;
    monitor.S = shared;
    Done done;
    rcn_status status = RCN_OK;
    QString sentence;
    try
    {
      done = work(monitor);
    }
    catch (const rcn::Error& error)
    {
      status = error.Status();
      sentence = QString::fromStdString(error.what());
    }
    catch (const std::bad_alloc&)
    {
      status = RCN_ENOMEM;
      sentence = QCoreApplication::translate("qRcnJob", "There is not enough memory for this.");
    }
    catch (const std::exception& error)
    {
      status = RCN_EINTERNAL;
      sentence = QString::fromStdString(rcn::OneLine(error.what()));
    }
    if (status == RCN_OK && shared->Cancel)
    {
      status = RCN_ECANCELLED; // nobody wants the result any more
    }
    // The work may hold what belongs to the GUI thread's objects: it goes before its end is told.
    work = nullptr;
    monitor.post([this, status, sentence, done] {
      // First the thread, then the result: what done() or a slot does may be to start the next job.
      this->end();
      try
      {
        if (status == RCN_OK && done)
        {
          done();
        }
        emit status == RCN_OK ? this->finished() : status == RCN_ECANCELLED ? this->canceled() : this->failed(sentence);
      }
      catch (const rcn::Error& error)
      {
        emit this->failed(QString::fromStdString(error.what()));
      }
      if (this->Next && !this->isRunning())
      {
        this->begin(this->NextWhat, std::exchange(this->Next, nullptr));
      }
      else if (!this->isRunning())
      {
        emit this->idle();
      }
    });
  });
  emit this->started(what);
  this->Thread->start();
}

/// The worker has told its last word; it needs microseconds to leave.
void qRcnJob::end()
{
  this->Thread->wait();
  delete this->Thread;
  this->Thread = nullptr;
  this->Current.reset();
  this->What.clear();
}
