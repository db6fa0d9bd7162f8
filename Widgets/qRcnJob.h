// SPDX-License-Identifier: Apache-2.0
/// Work off the GUI thread: one piece at a time, with progress, Cancel, and its end told on the GUI thread.
///
///   job.start(tr("Fusing"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
///     workspace->SetProgress([&](double f, const char* s) { return monitor.report(f, s); });
///     const rcn::FusionReport report = workspace->Fuse(options);     // on the worker's thread
///     return [=] { this->show(report); };                            // on the GUI thread, if all went well
///   });
///
/// Work fails by throwing: rcn::Error, whose sentence failed() carries (RCN_ECANCELLED ends in canceled()).
#ifndef qRcnJob_h
#define qRcnJob_h

#include <functional>
#include <memory>

#include <QObject>
#include <QString>

class QThread;

class qRcnJob : public QObject
{
  Q_OBJECT
public:
  /// What the work sees of its job. For the worker's thread; must not outlive the work.
  class Monitor
  {
  public:
    /// How far it is: 0 ... 1, and what is being done. True: end now (canceled or stopped). May be
    /// called as often as one likes.
    bool report(double fraction, const QString& stage);
    bool isCanceled() const;
    /// Likewise, or it should end with what it has got so far.
    bool isStopped() const;
    /// Throws RCN_ECANCELLED when it should stop.
    void throwIfCanceled() const;
    /// Runs `update` on the GUI thread, after what was posted before; not if the job is gone by then.
    void post(std::function<void()> update);

  private:
    friend class qRcnJob;
    struct Shared;
    std::shared_ptr<Shared> S;
  };

  using Done = std::function<void()>;
  using Work = std::function<Done(Monitor& monitor)>;

  explicit qRcnJob(QObject* parent = nullptr);
  /// Cancels and waits for work that still runs.
  ~qRcnJob() override;

  bool isRunning() const { return this->Thread != nullptr; }
  /// What runs now, in words; empty when nothing does.
  QString what() const { return this->What; }

  /// Begins; false when something runs already.
  bool start(const QString& what, Work work);
  /// Begins as soon as what runs has been canceled; of several that wait only the last one is done.
  void startInstead(const QString& what, Work work);

public slots:
  /// Asks the work to stop; returns at once. What waits is dropped, and so is what the work has got so far.
  void cancel();
  /// Asks the work to end early with what it has got so far, such as the best model of a training; returns at once.
  void stop();

signals:
  void started(const QString& what);
  void progressed(double fraction, const QString& stage);
  /// One of these three ends every work, after its Done function ran.
  void finished();
  void failed(const QString& sentence);
  void canceled();
  /// Nothing runs and nothing waits.
  void idle();

private:
  void begin(const QString& what, Work work);
  void end();

  std::shared_ptr<Monitor::Shared> Current;
  QThread* Thread = nullptr;
  QString What, NextWhat;
  Work Next;
};

#endif
