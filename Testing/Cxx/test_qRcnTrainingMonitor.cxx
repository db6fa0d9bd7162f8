// SPDX-License-Identifier: Apache-2.0
/// The training monitor: its states, what it says on the way, Cancel, and the result.
#include "qRcnTest.h"

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>

#include "qRcnChart.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnStyle.h"
#include "qRcnTrainingMonitor.h"

class TestTrainingMonitor : public QObject
{
  Q_OBJECT

  static rcn::TrainingEpoch epoch(int number)
  {
    rcn::TrainingEpoch one;
    one.Epoch = number;
    one.Loss = 0.9 / (1 + 0.4 * number);
    one.MajorityMrEce = 0.12 / (1 + 0.3 * number) + (number == 6 ? 0.01 : 0);
    one.ExpectedMrEce = 0.08 / (1 + 0.3 * number);
    one.Seconds = 70 * number;
    one.Megabytes = 1234;
    one.Best = number == 5;
    return one;
  }

  static rcn::TrainingProgress progress(double fraction)
  {
    rcn::TrainingProgress one;
    one.Stage = "training";
    one.Fraction = fraction;
    one.Epochs = 10;
    one.Epoch = static_cast<int>(10 * fraction) + 1;
    one.Loss = 1 / (1 + 4 * fraction);
    one.SecondsLeft = 600 * (1 - fraction);
    one.Course.Training = 9;
    one.Course.Validation = 3;
    one.Course.Batch = 4;
    one.Course.EpochSteps = 50;
    one.Course.CoveringSamples = 5;
    one.Course.Minutes = 10;
    if (fraction > 0.05)
    {
      one.Course.Steps = 500;
      one.Course.Epochs = 10;
      one.Course.Seconds = 600;
    }
    return one;
  }

  static rcn::TrainingResult result(bool before)
  {
    rcn::TrainingResult one;
    for (int i = 1; i <= 6; ++i)
    {
      one.Epochs.push_back(epoch(i));
    }
    one.Best = 5;
    one.Raters = { "Ada", "Ben", "Cleo", "Dan", "Eve" };
    one.After = MadeReport(1.2);
    one.HasBefore = before;
    one.Before = MadeReport(2.2);
    return one;
  }

private slots:
  void initTestCase() { SetUpLook(); }

  void runs()
  {
    qRcnTrainingMonitor monitor;
    PictureOf(monitor, QSize(350, 520));
    QCOMPARE(monitor.state(), qRcnTrainingMonitor::Idle);
    auto* cancel = monitor.findChild<QPushButton*>("cancel");
    auto* status = monitor.findChild<QLabel*>("status");
    auto* course = monitor.findChild<QLabel*>("course");
    QVERIFY(!cancel->isVisible() && !course->isVisible());
    monitor.start("Retraining on 12 cases");
    QVERIFY(cancel->isVisible() && !course->isVisible());
    const QImage empty = PictureOf(monitor, QSize(350, 520));
    for (int i = 0; i <= 50; ++i)
    {
      monitor.setProgress(progress(i / 100.0));
      QVERIFY(i > 5 ||
        (course->isVisible() && course->text().startsWith("9 cases for training, 3 for validation; an epoch has 50 steps")));
      if (i % 10 == 9)
      {
        monitor.addEpoch(epoch(i / 10 + 1));
      }
    }
    QCOMPARE(course->text(), QString("About 500 steps in 10 min, 10 epochs: every case is seen 44 times."));
    QCOMPARE(monitor.findChild<QProgressBar*>("progress")->value(), 500);
    QVERIFY2(status->text().contains("Epoch 6 of 10, training"), qPrintable(status->text()));
    QVERIFY(status->text().contains("about 5 minutes left"));
    QVERIFY(status->text().contains("1.2 GB of memory"));
    QCOMPARE(monitor.findChild<qRcnCurves*>("loss")->curves()[1].Points.size(), 5);
    QCOMPARE(monitor.findChild<qRcnCurves*>("ece")->curves()[0].Points.last().y(), epoch(5).MajorityMrEce);
    QVERIFY(PictureDifference(empty, PictureOf(monitor, QSize(350, 520))) > PictureTolerance);
    auto* ece = monitor.findChild<qRcnCurves*>("ece");
    QCOMPARE(HintAt(ece, ece->toPixel(4.1, 0.02).toPoint()), QString("Epoch 4\nmajority: 5.45 %\nexpected share: 3.64 %"));
    QSignalSpy asked(&monitor, &qRcnTrainingMonitor::cancelRequested);
    QTest::mouseClick(cancel, Qt::LeftButton);
    QCOMPARE(asked.count(), 1);
    QCOMPARE(monitor.state(), qRcnTrainingMonitor::Canceling);
    QVERIFY(!cancel->isEnabled());
    monitor.setProgress(progress(0.52)); // one that was on its way
    QVERIFY(status->text().startsWith("Stopping"));
    rcn::TrainingResult stopped = result(false);
    stopped.Interrupted = true;
    monitor.finish(stopped);
    QVERIFY(monitor.findChild<QLabel*>("verdict")->text().startsWith("Stopped early."));
    QVERIFY(!course->isVisible()); // what came of it is said now
    stopped.After.Cases = 0;       // as it comes: judging is not waited for
    monitor.finish(stopped);
    const QString best = QString("Stopped early. The new model is the best one so far, that of epoch %1").arg(stopped.Best);
    QCOMPARE(monitor.findChild<QLabel*>("verdict")->text(), best + QString::fromUtf8(" (MR-ECE in validation 3.20\u00A0%)."));
    QVERIFY(monitor.findChild<QWidget*>("figures")->isHidden()); // a table of nothing
    stopped.Epochs.clear();
    monitor.finish(stopped);
    QCOMPARE(monitor.findChild<QLabel*>("verdict")->text(), best + ".");
    QVERIFY(!cancel->isVisible());
    monitor.setProgress(progress(0.53)); // too late
    QCOMPARE(monitor.state(), qRcnTrainingMonitor::Finished);
  }

  void manySteps()
  {
    qRcnTrainingMonitor monitor;
    monitor.start("Long");
    for (int i = 1; i <= 5000; ++i)
    {
      monitor.setProgress(progress(i / 5001.0));
    }
    const QVector<QPointF> steps = monitor.findChild<qRcnCurves*>("loss")->curves()[0].Points;
    QVERIFY(steps.size() > 400 && steps.size() <= 1000);
    QVERIFY(steps.first().x() < 0.1 && steps.last().x() > 9.9);
  }

  void asksToKeep()
  {
    qRcnTrainingMonitor monitor;
    monitor.start("Retraining");
    PictureOf(monitor, QSize(350, 640));
    QVERIFY(!monitor.findChild<QPushButton*>("keep")->isVisible());
    monitor.finish(result(true));
    QCOMPARE(monitor.findChild<QTabWidget*>("tabs")->currentIndex(), 1);
    const QString verdict = monitor.findChild<QLabel*>("verdict")->text().replace(QChar(0xa0), ' ');
    QVERIFY2(verdict.startsWith("MR-ECE fell from ") && verdict.endsWith("on 12 validation cases."), qPrintable(verdict));
    auto* figures = monitor.findChild<qRcnTable*>("figures");
    QVERIFY(!figures->isColumnHidden(0));
    QCOMPARE(figures->item(0, 0)->text(), qRcnStyle::percent(MadeReport(2.2).Figures[RCN_MR_ECE], 2));
    QVERIFY(monitor.findChild<qRcnReliabilityDiagram*>("diagram")->hasReport());
    QSignalSpy keep(&monitor, &qRcnTrainingMonitor::keepRequested), discard(&monitor, &qRcnTrainingMonitor::discardRequested);
    QTest::mouseClick(monitor.findChild<QPushButton*>("keep"), Qt::LeftButton);
    QTest::mouseClick(monitor.findChild<QPushButton*>("discard"), Qt::LeftButton);
    QCOMPARE(keep.count(), 1);
    QCOMPARE(discard.count(), 1);
    rcn::TrainingResult useless = result(true);
    useless.Best = 0;
    useless.KeptStart = true;
    monitor.finish(useless);
    QVERIFY(monitor.findChild<QLabel*>("verdict")->text().contains("did not improve"));
    monitor.finish(result(false));
    QVERIFY(figures->isColumnHidden(0));
    rcn::TrainingResult corrected = result(false);
    corrected.TemperatureInWords = "A temperature of 1.32, fitted to 12 validation cases, is stored in the model.";
    monitor.finish(corrected);
    QVERIFY(monitor.findChild<QLabel*>("verdict")->text().endsWith(QString::fromStdString(" " + corrected.TemperatureInWords)));
    corrected.StillImproving = true;
    monitor.finish(corrected);
    QVERIFY(monitor.findChild<QLabel*>("verdict")->text().contains("still improving"));
    corrected.TooShort = true;
    monitor.finish(corrected);
    QVERIFY(monitor.findChild<QLabel*>("verdict")->text().contains("too short to tell"));
    rcn::TrainingResult unjudged = result(false);
    unjudged.After.Cases = 0;
    monitor.finish(unjudged);
    QVERIFY(monitor.findChild<QLabel*>("verdict")->text().contains("no validation cases"));
    monitor.start("Again");
    QVERIFY(monitor.findChild<qRcnCurves*>("ece")->curves()[0].Points.isEmpty());
    monitor.fail("There is no memory left.");
    QCOMPARE(monitor.state(), qRcnTrainingMonitor::Failed);
    QCOMPARE(monitor.findChild<QLabel*>("status")->text(), QString("There is no memory left."));
  }

  /// Keep and Discard are right below the verdict, whichever tab is open, and neither is there before or after.
  void asksBesideTheVerdict()
  {
    qRcnTrainingMonitor monitor;
    PictureOf(monitor, QSize(350, 720));
    auto* verdict = monitor.findChild<QLabel*>("verdict");
    QPushButton* const answers[] = { monitor.findChild<QPushButton*>("keep"), monitor.findChild<QPushButton*>("discard") };
    const auto visible = [&] { return int(verdict->isVisible()) + answers[0]->isVisible() + answers[1]->isVisible(); };
    monitor.start("Retraining");
    QCOMPARE(visible(), 0);
    monitor.finish(result(true));
    for (int tab : { 1, 0 })
    {
      monitor.findChild<QTabWidget*>("tabs")->setCurrentIndex(tab);
      PictureOf(monitor, QSize(350, 720));
      QCOMPARE(visible(), 3);
      const int end = verdict->mapTo(&monitor, QPoint(0, verdict->height())).y();
      for (const QPushButton* answer : answers)
      {
        const int top = answer->mapTo(&monitor, QPoint(0, 0)).y();
        QVERIFY2(top >= end && top < end + 20, qPrintable(QString("%1 after %2").arg(top).arg(end)));
      }
    }
    monitor.start("Again");
    QCOMPARE(visible(), 0);
  }

  void picture()
  {
    qRcnTrainingMonitor monitor;
    monitor.start("Retraining on 12 cases");
    for (int i = 0; i <= 63; ++i)
    {
      monitor.setProgress(progress(i / 100.0));
      if (i % 10 == 9)
      {
        monitor.addEpoch(epoch(i / 10 + 1));
      }
    }
    COMPARE_PICTURES(monitor, "training", 350, 660);
    monitor.finish(result(true));
    COMPARE_PICTURE(monitor, "training_result", 350, 720);
  }
};

QTEST_MAIN(TestTrainingMonitor)
#include "test_qRcnTrainingMonitor.moc"
