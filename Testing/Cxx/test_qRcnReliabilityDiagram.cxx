// SPDX-License-Identifier: Apache-2.0
/// The reliability diagram: what it says, what a click and a key select, and what is drawn.
#include "qRcnTest.h"
#include "rcnJudge.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPainter>
#include <QSignalSpy>
#include <QSpinBox>

#include "qRcnChart.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnStyle.h"

class TestReliabilityDiagram : public QObject
{
  Q_OBJECT

  static QPoint at(const qRcnChart* chart, double x, double y) { return chart->toPixel(x, y).toPoint(); }

private slots:
  void initTestCase()
  {
    SetUpLook();
    qRegisterMetaType<rcn_region>();
  }

  void saysWhatItMeans()
  {
    qRcnReliabilityDiagram diagram;
    QVERIFY(!diagram.hasReport());
    const rcn::EvaluationReport report = MadeReport(1.6);
    diagram.setReport(report, "new <model>", FiveRaters());
    QVERIFY(diagram.hasReport());
    const QString headline = diagram.findChild<QLabel*>("headline")->text();
    QVERIFY2(headline.contains(QString::number(100 * report.Figures[RCN_MR_ECE], 'f', 2)), qPrintable(headline));
    QVERIFY(diagram.findChild<QLabel*>("words")
        ->text()
        .replace(QChar(0xa0), ' ')
        .contains(QString::fromStdString(rcn::WorstBinInWords(report))));
    // A name is no markup.
    QVERIFY(diagram.findChild<QLabel*>("key")->text().contains("new &lt;model&gt;"));
    QVERIFY(!diagram.findChild<QLabel*>("key")->text().contains("before"));
    diagram.setSecond(MadeReport(2.4), "before");
    QVERIFY(diagram.findChild<QLabel*>("key")->text().contains("before"));
    diagram.clearSecond();
    QVERIFY(!diagram.findChild<QLabel*>("key")->text().contains("before"));
    diagram.setReport(MadeReport(1.6, 10, 1), "one", FiveRaters());
    QVERIFY(diagram.findChild<QLabel*>("key")->text().contains("one case: no interval"));
    diagram.clear();
    QVERIFY(!diagram.hasReport());
    QVERIFY(diagram.findChild<QLabel*>("headline")->text().isEmpty());
  }

  void clickSelectsABin()
  {
    qRcnReliabilityDiagram diagram;
    diagram.setReport(MadeReport(1.6), "model", FiveRaters());
    PictureOf(diagram, QSize(350, 620));
    QSignalSpy selected(&diagram, &qRcnReliabilityDiagram::binSelected);
    auto* curve = diagram.findChild<qRcnChart*>("curve");
    auto* votes = diagram.findChild<qRcnChart*>("votes");
    const QImage before = diagram.grab().toImage();
    QTest::mouseClick(curve, Qt::LeftButton, Qt::NoModifier, at(curve, 0.63, 0.5));
    QCOMPARE(selected.count(), 1);
    QCOMPARE(selected.last()[0].toDouble(), 0.6);
    QCOMPARE(selected.last()[1].toDouble(), 0.7);
    QVERIFY(diagram.findChild<QLabel*>("selection")->text().contains("predicted"));
    QVERIFY(PictureDifference(before, diagram.grab().toImage()) > PictureTolerance);
    double lower = 0, upper = 0;
    QVERIFY(diagram.selectedBin(lower, upper));
    // Again: no bin any more.
    QTest::mouseClick(curve, Qt::LeftButton, Qt::NoModifier, at(curve, 0.63, 0.2));
    QCOMPARE(selected.count(), 2);
    QCOMPARE(selected.last()[0].toDouble(), -1.0);
    QVERIFY(!diagram.selectedBin(lower, upper));
    // The histogram selects too, its last bin includes 100 %, and keys move.
    QTest::mouseClick(votes, Qt::LeftButton, Qt::NoModifier, at(votes, 1, 100) - QPoint(1, 0));
    QCOMPARE(selected.last()[1].toDouble(), 1.0);
    QTest::keyClick(votes, Qt::Key_Left);
    QCOMPARE(selected.last()[0].toDouble(), 0.8);
    QTest::keyClick(votes, Qt::Key_Escape);
    QCOMPARE(selected.last()[0].toDouble(), -1.0);
    QTest::keyClick(curve, Qt::Key_Right);
    QCOMPARE(selected.last()[0].toDouble(), 0.0);
    // Outside the axes is nothing.
    const int count = selected.count();
    QTest::mouseClick(curve, Qt::LeftButton, Qt::NoModifier, QPoint(2, 2));
    QCOMPARE(selected.count(), count);
    // The same bins keep the selection, others end it.
    diagram.setReport(MadeReport(1.3), "model", FiveRaters());
    QVERIFY(diagram.selectedBin(lower, upper));
    diagram.setReport(MadeReport(1.3, 15), "model", FiveRaters());
    QVERIFY(!diagram.selectedBin(lower, upper));
    QCOMPARE(selected.last()[0].toDouble(), -1.0);
  }

  void hintsTellValues()
  {
    qRcnReliabilityDiagram diagram;
    diagram.setReport(MadeReport(2), "model", FiveRaters());
    diagram.setShownRaters({ "Cleo" });
    PictureOf(diagram, QSize(350, 620));
    auto* curve = diagram.findChild<qRcnChart*>("curve");
    const QString hint = HintAt(curve, at(curve, 0.55, 0.5));
    QVERIFY2(hint.startsWith("50.0 % to 60.0 %: predicted 55.0 %, marked by 30.3 % of the raters"), qPrintable(hint));
    QVERIFY(hint.contains("95 % interval") && hint.contains("Cleo: 30.3 %"));
    QVERIFY(diagram.findChild<QLabel*>("headline")->toolTip().contains("0 % is perfect"));
  }

  void controlsAskTheOwner()
  {
    qRcnReliabilityDiagram diagram;
    diagram.show();
    QSignalSpy region(&diagram, &qRcnReliabilityDiagram::regionChanged), bins(&diagram, &qRcnReliabilityDiagram::binsChanged);
    diagram.setRegion(RCN_REGION_BAND);
    diagram.setBins(20);
    QCOMPARE(region.count() + bins.count(), 0);
    QCOMPARE(diagram.region(), RCN_REGION_BAND);
    QTest::keyClick(diagram.findChild<QComboBox*>("region"), Qt::Key_Down);
    QCOMPARE(region.count(), 1);
    QCOMPARE(region.last()[0].value<rcn_region>(), RCN_REGION_DISPUTED);
    auto* box = diagram.findChild<QSpinBox*>("bins");
    box->selectAll();
    QTest::keyClicks(box, "30");
    QCOMPARE(bins.count(), 0); // not at "3"
    QTest::keyClick(box, Qt::Key_Return);
    QCOMPARE(bins.count(), 1);
    QCOMPARE(diagram.bins(), 30);
  }

  void ratersHaveCurves()
  {
    qRcnReliabilityDiagram diagram;
    diagram.setReport(MadeReport(1.6), "model", { "Ada & Co", "Ben", "Cleo", "Dan", "Eve" });
    const QImage without = PictureOf(diagram, QSize(350, 620));
    auto* box = diagram.findChild<QCheckBox*>("rater0");
    QTest::mouseClick(box, Qt::LeftButton, Qt::NoModifier, QPoint(8, box->height() / 2));
    QVERIFY(box->isChecked());
    QCOMPARE(diagram.shownRaters(), QStringList("Ada & Co"));
    // The curve is drawn: also the proof that a picture test sees one curve that is missing.
    const QImage with = PictureOf(diagram, QSize(350, 620));
    QVERIFY2(
      PictureDifference(without, with) > PictureTolerance, qPrintable(QString::number(PictureDifference(without, with))));
    // It stays when the owner recomputes.
    diagram.setReport(MadeReport(1.2), "model", { "Ada & Co", "Ben", "Cleo", "Dan", "Eve" });
    QCOMPARE(diagram.shownRaters(), QStringList("Ada & Co"));
  }

  /// A small diagram and a row of words for each number of raters, and figures before and after.
  void levelsHaveDiagrams()
  {
    const auto withLevels = [](double power) {
      rcn::EvaluationReport report = MadeReport(power);
      for (int t = 1; t <= 3; ++t)
      {
        report.Levels.push_back({ t, 0.01 * power * t, report.Bins, report.BandLow, report.BandHigh });
      }
      report.Figures[RCN_RPS] = 0.0123 * power;
      report.Figures[RCN_LEVEL_NLL] = 0.2 * power;
      report.Figures[RCN_LEVEL_ECE] = 0.02 * power;
      report.Shares = { { 0.7, 0.72, 720 }, { 0.1 * power, 0.08, 80 }, { 0.05, 0.06, 60 }, { 0.15, 0.14, 140 } };
      report.UnsureShares = { { 0.4, 0.38, 38 }, { 0.2, 0.22, 22 }, { 0.1, 0.1, 10 }, { 0.3, 0.3, 30 } };
      return report;
    };
    const auto plain = [](QString text) { return text.replace(QChar(0xa0), ' '); };
    qRcnReliabilityDiagram diagram;
    const auto words = [&](const char* name) { return plain(diagram.findChild<QLabel*>(name)->text()); };
    diagram.setReport(MadeReport(1), "model", FiveRaters());
    auto* table = diagram.findChild<qRcnTable*>("levelFigures");
    QVERIFY(table->isHidden() && !diagram.findChild<QLabel*>("level1"));
    diagram.setReport(withLevels(1), "model", FiveRaters());
    const QImage alone = PictureOf(diagram, QSize(350, 1330));
    QCOMPARE(words("level2"), QString("At least 2 of 3 raters\noff by 2.00 %"));
    QVERIFY(words("level3").startsWith("All 3 raters\n"));
    QVERIFY(words("levelWords").contains("share by 2.0 % on average, most for \"all 3 raters\""));
    auto* shares = diagram.findChild<qRcnTable*>("levelShares");
    QCOMPARE(shares->copyText().section('\n', -5),
      QString("0 of 3\t70.00 %\t72.00 %\t40.00 %\t38.00 %\n1 of 3\t10.00 %\t8.00 %\t20.00 %\t22.00 %\n"
              "2 of 3\t5.00 %\t6.00 %\t10.00 %\t10.00 %\n3 of 3\t15.00 %\t14.00 %\t30.00 %\t30.00 %\n"));
    QVERIFY(shares->horizontalHeaderItem(2)->toolTip().contains("where the model itself expects"));
    QCOMPARE(table->copyText(), QString("\tvalue\nRPS\t0.0123\nlevel NLL\t0.2000\nlevel calibration\t2.00 %\n"));
    auto* curve = diagram.findChild<qRcnChart*>("levelCurve2");
    QVERIFY(HintAt(curve, at(curve, 0.55, 0.5)).startsWith("predicted 55.0 %, true of 55.0 % ("));
    COMPARE_PICTURE(diagram, "reliability_levels", 350, 1330);
    const QImage small = curve->grab().toImage();
    diagram.setSecond(withLevels(2), "before");
    QVERIFY(PictureDifference(alone, PictureOf(diagram, QSize(350, 1330))) > PictureTolerance);
    QCOMPARE(words("level2"), QString("At least 2 of 3 raters\noff by 2.00 %\nbefore: 4.00 %"));
    QCOMPARE(table->copyText().section('\n', 0, 1), QString("\tbefore\tafter\nRPS\t0.0246\t0.0123"));
    QCOMPARE(shares->columnCount(), 3);
    QCOMPARE(shares->copyText().section('\n', -4, -4), QString("1 of 3\t20.00 %\t10.00 %\t8.00 %"));
    curve = diagram.findChild<qRcnChart*>("levelCurve2");
    curve->resize(small.size());
    QVERIFY(PictureDifference(small, curve->grab().toImage()) > PictureTolerance); // its second curve
    QVERIFY2(CutOff(diagram).isEmpty(), qPrintable(CutOff(diagram).join('\n')));
    rcn::EvaluationReport stored = withLevels(1); // as a table of a scene holds it
    stored.Shares.clear();
    stored.UnsureShares.clear();
    diagram.setReport(stored, "model", FiveRaters());
    QVERIFY(shares->isHidden() && !table->isHidden());
    diagram.clear();
    QVERIFY(table->isHidden() && shares->isHidden() && !diagram.findChild<QLabel*>("level1"));
  }

  /// The raters' own bins come from the evaluation, and together they are the pooled ones.
  void evaluationKnowsRaters()
  {
    const PhantomCase one(3);
    rcn::EvaluationOptions options;
    options.Region.region = RCN_REGION_BOX;
    options.Calib.bins = 8;
    const rcn::Volume prediction = rcn::Volume::Allocate(one.Geometry, RCN_FLOAT32);
    for (size_t i = 0; i < one.Image.size(); ++i)
    {
      static_cast<float*>(prediction.Data())[i] = std::min(std::max(one.Image[i], 0.f), 1.f);
    }
    rcn::Judging judging(one.Context.get(), { "A", "B", "C" }, { { 0, options } });
    QVERIFY(judging.Add(rcn::Case(), 0, one.Votes.get(), { { prediction, "one" } }));
    const rcn::EvaluationReport report = judging.Evaluations().front()->Report();
    QCOMPARE(report.RaterBins.size(), size_t(3));
    double marks = 0;
    for (size_t b = 0; b < 8; ++b)
    {
      int64_t count = 0;
      double marked = 0;
      for (const auto& own : report.RaterBins)
      {
        count += own[b].count;
        marked += own[b].count ? own[b].frequency * static_cast<double>(own[b].count) : 0;
      }
      QCOMPARE(count, report.Bins[b].count);
      QVERIFY(count == 0 || std::fabs(marked / static_cast<double>(count) - report.Bins[b].frequency) < 1e-12);
      marks += marked;
    }
    QVERIFY(marks > 100);
    // One probability says nothing about levels by itself.
    qRcnReliabilityDiagram diagram;
    diagram.setReport(report, "model", { "A", "B", "C" });
    QVERIFY(diagram.findChild<QLabel*>("words")->text().contains("converted to levels by a binomial"));
    QVERIFY(diagram.findChild<QLabel*>("level3"));
  }

  void picture()
  {
    qRcnReliabilityDiagram diagram;
    diagram.setReport(MadeReport(1.6), "retrained", FiveRaters());
    diagram.setSecond(MadeReport(2.6), "before");
    diagram.setShownRaters({ "Ben", "Eve" });
    QTest::keyClick(diagram.findChild<qRcnChart*>("curve"), Qt::Key_Left);
    COMPARE_PICTURES(diagram, "reliability", 350, 640);
    diagram.clear();
    COMPARE_PICTURE(diagram, "reliability_empty", 350, 480);
  }

  /// A stored picture is not passed by a diagram without its second curve.
  void missingCurveFails()
  {
    if (qEnvironmentVariableIsSet("RCN_RENEW_PICTURES"))
    {
      return;
    }
    qRcnReliabilityDiagram diagram;
    diagram.setReport(MadeReport(1.6), "retrained", FiveRaters());
    diagram.setSecond(MadeReport(2.6), "before");
    diagram.setShownRaters({ "Ben" }); // Eve is missing
    QTest::keyClick(diagram.findChild<qRcnChart*>("curve"), Qt::Key_Left);
    const double difference = DifferenceFromStored(PictureOf(diagram, QSize(350, 640)), "reliability");
    QVERIFY2(difference > 1.5 * StoredTolerance, qPrintable(QString::number(difference)));
  }

  /// Whichever Qt draws it: neither does one without its histogram's bars, nor one whose curves were not drawn.
  void emptyPlotFails()
  {
    qRcnReliabilityDiagram diagram;
    diagram.setReport(MadeReport(1.6), "retrained", FiveRaters());
    diagram.setSecond(MadeReport(2.6), "before");
    diagram.setShownRaters({ "Ben", "Eve" });
    QTest::keyClick(diagram.findChild<qRcnChart*>("curve"), Qt::Key_Left);
    const QImage whole = PictureOf(diagram, QSize(350, 640));
    QVERIFY(DifferenceFromStored(whole, "reliability") <= StoredTolerance || qEnvironmentVariableIsSet("RCN_RENEW_PICTURES"));
    for (const char* name : { "votes", "curve" })
    {
      const auto* chart = diagram.findChild<qRcnChart*>(name);
      QImage broken = whole;
      QPainter(&broken).fillRect(chart->plotArea().translated(chart->pos()), diagram.palette().color(QPalette::Base));
      const double difference = DifferenceFromStored(broken, "reliability");
      QVERIFY2(difference > 1.5 * StoredTolerance, qPrintable(QStringLiteral("%1: %2").arg(name).arg(difference)));
    }
  }
};

QTEST_MAIN(TestReliabilityDiagram)
#include "test_qRcnReliabilityDiagram.moc"
