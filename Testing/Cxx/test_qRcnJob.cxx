// SPDX-License-Identifier: Apache-2.0
/// Work off the GUI thread: progress, its result, its error, Cancel, and a job that goes away while it works.
#include <QtTest>

#include <QSignalSpy>
#include <QThread>

#include <atomic>

#include "qRcnJob.h"
#include "rcnError.h"

namespace
{

/// Work that goes on until it is canceled.
qRcnJob::Done Endless(qRcnJob::Monitor& monitor)
{
  while (!monitor.report(0.5, "waiting"))
  {
    QThread::msleep(1);
  }
  monitor.throwIfCanceled();
  return {};
}

} // namespace

class TestJob : public QObject
{
  Q_OBJECT
private slots:
  void resultComesToTheGuiThread()
  {
    qRcnJob job;
    QSignalSpy started(&job, &qRcnJob::started), finished(&job, &qRcnJob::finished), idle(&job, &qRcnJob::idle),
      progressed(&job, &qRcnJob::progressed);
    QThread* worker = nullptr;
    QThread* receiver = nullptr;
    QStringList order;
    QVERIFY(job.start("Counting", [&](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
      worker = QThread::currentThread();
      monitor.report(0.25, "one");
      monitor.post([&] { order << "posted"; });
      return [&] {
        receiver = QThread::currentThread();
        order << "done";
      };
    }));
    QVERIFY(job.isRunning());
    QCOMPARE(job.what(), QString("Counting"));
    QVERIFY(idle.wait());
    QCOMPARE(started.count(), 1);
    QCOMPARE(finished.count(), 1);
    QCOMPARE(order, QStringList({ "posted", "done" }));
    QCOMPARE(receiver, QThread::currentThread());
    QVERIFY(worker && worker != receiver);
    QCOMPARE(progressed.count(), 1);
    QCOMPARE(progressed[0][0].toDouble(), 0.25);
    QCOMPARE(progressed[0][1].toString(), QString("one"));
    QVERIFY(!job.isRunning());
    QCOMPARE(job.what(), QString());
  }

  void manyReportsDoNotFloodTheGuiThread()
  {
    qRcnJob job;
    QSignalSpy idle(&job, &qRcnJob::idle), progressed(&job, &qRcnJob::progressed);
    std::atomic<bool> reported{ false };
    job.start("Counting", [&](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
      for (int i = 0; i <= 10000; ++i)
      {
        monitor.report(i / 10000.0, QString::number(i));
      }
      reported = true;
      return {};
    });
    while (!reported)
    {
      QThread::msleep(1); // the GUI thread has no time meanwhile
    }
    QVERIFY(idle.wait());
    QCOMPARE(progressed.count(), 1); // the newest one
    QCOMPARE(progressed[0][1].toString(), QString("10000"));
  }

  void errorsAreOneSentence()
  {
    qRcnJob job;
    QSignalSpy failed(&job, &qRcnJob::failed), idle(&job, &qRcnJob::idle), finished(&job, &qRcnJob::finished);
    job.start("Reading", [](qRcnJob::Monitor&) -> qRcnJob::Done { throw rcn::Error(RCN_EIO, "x.nii is\nnot there."); });
    QVERIFY(idle.wait());
    QCOMPARE(failed.count(), 1);
    QCOMPARE(failed[0][0].toString(), QString("x.nii is not there."));
    job.start("Reading", [](qRcnJob::Monitor&) -> qRcnJob::Done { throw std::bad_alloc(); });
    QVERIFY(idle.wait());
    QVERIFY(failed[1][0].toString().contains("memory"));
    job.start("Reading", [](qRcnJob::Monitor&) -> qRcnJob::Done { return [] { throw rcn::Error(RCN_EDATA, "Late."); }; });
    QVERIFY(idle.wait());
    QCOMPARE(failed[2][0].toString(), QString("Late."));
    QCOMPARE(finished.count(), 0);
  }

  void oneAtATimeAndCancel()
  {
    qRcnJob job;
    QSignalSpy canceled(&job, &qRcnJob::canceled), idle(&job, &qRcnJob::idle), finished(&job, &qRcnJob::finished);
    QVERIFY(job.start("First", Endless));
    QVERIFY(!job.start("Second", Endless));
    QCOMPARE(job.what(), QString("First"));
    job.cancel();
    QVERIFY(idle.wait());
    QCOMPARE(canceled.count(), 1);
    QCOMPARE(finished.count(), 0);
    // A result that came although nobody wants it any more is dropped.
    bool shown = false;
    std::atomic<bool> begun{ false };
    job.start("Third", [&](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
      begun = true;
      while (!monitor.isCanceled())
      {
        QThread::msleep(1);
      }
      return [&] { shown = true; };
    });
    QTRY_VERIFY(begun);
    job.cancel();
    QVERIFY(idle.wait());
    QVERIFY(!shown);
    QCOMPARE(canceled.count(), 2);
  }

  /// Stopped, not canceled: what there is so far is the result, or the sentence that says there is none.
  void whatIsStoppedKeepsItsResult()
  {
    qRcnJob job;
    QSignalSpy finished(&job, &qRcnJob::finished), canceled(&job, &qRcnJob::canceled), idle(&job, &qRcnJob::idle);
    job.stop(); // nothing runs
    int kept = 0;
    job.start("Training", [&](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
      while (!monitor.report(0.5, "epoch 3"))
      {
        QThread::msleep(1);
      }
      return [&] { kept = 3; };
    });
    job.stop();
    QVERIFY(idle.wait());
    QCOMPARE(kept, 3);
    QCOMPARE(finished.count(), 1);
    QCOMPARE(canceled.count(), 0);
    job.start("Training", [](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
      while (!monitor.report(0, "epoch 0"))
      {
        QThread::msleep(1);
      }
      throw rcn::Error(RCN_ECANCELLED, "Stopped before there was a model.");
    });
    job.stop();
    QVERIFY(idle.wait());
    QCOMPARE(finished.count(), 1);
    QCOMPARE(canceled.count(), 1);
  }

  void theLastOneTakesThePlace()
  {
    qRcnJob job;
    QSignalSpy idle(&job, &qRcnJob::idle), canceled(&job, &qRcnJob::canceled);
    QStringList done;
    const auto quick = [&](const QString& name) {
      return [&done, name](qRcnJob::Monitor&) -> qRcnJob::Done { return [&done, name] { done << name; }; };
    };
    job.startInstead("first", Endless);
    job.startInstead("second", quick("second"));
    job.startInstead("third", quick("third"));
    QVERIFY(idle.wait());
    QCOMPARE(done, QStringList("third"));
    QCOMPARE(canceled.count(), 1);
    QCOMPARE(idle.count(), 1);
  }

  void goesAwayWhileItWorks()
  {
    std::atomic<bool> begun{ false }, ended{ false };
    bool shown = false;
    {
      qRcnJob job;
      job.start("Endless", [&](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
        begun = true;
        while (!monitor.report(0, ""))
        {
          monitor.post([&] { shown = true; });
          QThread::msleep(1);
        }
        ended = true;
        return [&] { shown = true; };
      });
      while (!begun)
      {
        QThread::msleep(1); // nothing that was posted is shown meanwhile
      }
    }
    QVERIFY(ended);
    QCoreApplication::processEvents();
    QVERIFY(!shown);
  }
};

QTEST_GUILESS_MAIN(TestJob)
#include "test_qRcnJob.moc"
