// SPDX-License-Identifier: Apache-2.0
/// Long work of the window, and how a person sees it: one piece of work at a time with its progress and Cancel in the status
/// bar, and a training that may run beside it (qRcnTrainingMonitor shows that one). What went wrong goes to the notice bar.
#ifndef qRcnJobs_h
#define qRcnJobs_h

#include <QWidget>

#include "qRcnJob.h"
#include "rcnSession.h"

class QLabel;
class QProgressBar;
class qRcnNotice;

class qRcnJobs : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnJobs(qRcnNotice* notice, QWidget* parent = nullptr);
  /// Cancels and waits for what still runs.
  ~qRcnJobs() override;

  /// Opening, comparing, predicting, saving, ...
  qRcnJob* work() const { return this->Work; }
  qRcnJob* training() const { return this->Training; }
  bool isRunning() const { return this->Work->isRunning() || this->Training->isRunning(); }

  /// Begins a piece of work. False, with a remark, while another one runs, and after cancelAll().
  bool begin(const QString& what, qRcnJob::Work work);
  /// Begins as soon as what runs has stopped; nobody hears how that ended.
  void beginInstead(const QString& what, qRcnJob::Work work);
  /// For a window that closes: asks everything to stop, and begins nothing more until allowWork(). idle() follows.
  void cancelAll();
  void allowWork() { this->Closed = false; }

  /// One sentence for the notice bar; without words nothing changes there.
  void remark(const QString& sentence);
  void complain(const QString& sentence);

  /// A job's monitor as the functions of rcnActions.h take it.
  static rcn::SessionProgress progressOf(qRcnJob::Monitor& monitor);

signals:
  /// Something began or ended.
  void changed();
  /// Work failed, with a sentence, or was canceled, without one; the notice bar says so already.
  void gaveUp(const QString& sentence);
  /// Neither work nor training runs any more.
  void idle();

private:
  void watchWork();

  qRcnNotice* Notice;
  qRcnJob* Work;
  qRcnJob* Training;
  QLabel* Text;
  QProgressBar* Bar;
  bool Closed = false;
  bool Replaced = false; ///< what runs makes room for other work
};

#endif
