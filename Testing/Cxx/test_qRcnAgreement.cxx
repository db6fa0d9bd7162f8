// SPDX-License-Identifier: Apache-2.0
/// Agreement: the sentence, the heat map, the table, and what leaves through clipboard and CSV.
#include "qRcnTest.h"

#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QSignalSpy>
#include <QToolButton>

#include "qRcnAgreement.h"
#include "qRcnStyle.h"

class TestAgreement : public QObject
{
  Q_OBJECT
private slots:
  void initTestCase() { SetUpLook(); }

  void showsFigures()
  {
    const PhantomCase one;
    const rcn::AgreementReport report = one.Agree();
    qRcnAgreement panel;
    panel.setAgreement(report, FiveRaters());
    const QImage dice = PictureOf(panel, QSize(350, 430));
    const QString sentence = panel.findChild<QLabel*>("sentence")->text();
    QVERIFY2(sentence.contains(rcn_kappa_words(report.Figures->whole.fleiss_kappa)), qPrintable(sentence));
    QVERIFY(sentence.contains(QString::number(report.Figures->mean_dice, 'f', 2)));
    auto* matrix = panel.findChild<qRcnTable*>("matrix");
    QCOMPARE(matrix->rowCount(), 5);
    QCOMPARE(matrix->item(1, 3)->text(), QString::number(report.Figures->pair[1 * 5 + 3].dice, 'f', 2));
    QCOMPARE(matrix->item(3, 1)->text(), matrix->item(1, 3)->text());
    // Another measure: other numbers, other colors.
    QTest::keyClick(panel.findChild<QComboBox*>("measure"), Qt::Key_Down);
    QCOMPARE(panel.measure(), qRcnAgreement::Jaccard);
    QCOMPARE(matrix->item(1, 3)->text(), QString::number(report.Figures->pair[1 * 5 + 3].jaccard, 'f', 2));
    QVERIFY(PictureDifference(dice, PictureOf(panel, QSize(350, 430))) > PictureTolerance);
    QSignalSpy pair(&panel, &qRcnAgreement::pairActivated);
    const QPoint cell = matrix->visualItemRect(matrix->item(1, 3)).center();
    QTest::mouseClick(matrix->viewport(), Qt::LeftButton, Qt::NoModifier, cell);
    QCOMPARE(pair.count(), 1);
    QCOMPARE(pair.last()[1].toInt(), 3);
    // And all of them again.
    auto* everybody = panel.findChild<QToolButton*>("everybody");
    QVERIFY(!everybody->isHidden());
    everybody->click();
    QCOMPARE(pair.last()[0].toInt(), -1);
    QVERIFY(everybody->isHidden());
  }

  /// Six cases of five raters; the last rater marks less in all of them.
  static std::shared_ptr<const rcn::AgreementOfCases> SixCases()
  {
    rcn::Workspace context;
    std::vector<std::string> names;
    for (const QString& name : FiveRaters())
    {
      names.push_back(name.toStdString());
    }
    rcn::AgreementSet set(names);
    std::string csv = set.LongHeader();
    set.WriteLongRows([&csv](const std::string& row) { csv += row; });
    for (int i = 0; i < 6; ++i)
    {
      rcn::JsonObject raters;
      rcn::JsonArray pairs;
      for (int a = 0; a < 5; ++a)
      {
        raters.Set(names[static_cast<size_t>(a)], rcn::JsonObject{ { "voxels", (a == 4 ? 60 : 100) + i + a } });
        for (int b = a + 1; b < 5; ++b)
        {
          pairs.Add(rcn::JsonObject{ { "a", names[static_cast<size_t>(a)] }, { "b", names[static_cast<size_t>(b)] },
            { "dice", (b == 4 ? 0.5 : 0.8) + 0.01 * i } });
        }
      }
      rcn::Case one;
      one.Id = "c" + std::to_string(i);
      const rcn::JsonObject geometry{ { "size", std::vector<int>{ 9, 9, 9 } },
        { "spacing_mm", std::vector<double>{ 1, 1, 1 } } };
      set.Add(one,
        rcn::JsonObject{ { "geometry", geometry }, { "raters", raters }, { "pairs", pairs }, { "mean_dice", 0.68 + 0.01 * i },
          { "volumes_voxels", rcn::JsonObject{ { "union", 120 }, { "disputed", 60 } } } }
          .Get());
    }
    return std::make_shared<rcn::AgreementOfCases>(rcn::AgreementOfCases{
      set.Summarize(context.Context()), set.Summarize(context.Context(), rcn::SetCases::Marked), set.EmptyInWords(), csv });
  }

  void showsAllCases()
  {
    const PhantomCase one;
    qRcnAgreement panel;
    panel.setAgreement(one.Agree(), FiveRaters());
    auto* all = panel.findChild<QToolButton*>("allCases");
    QVERIFY(all->isHidden()); // a shell that has one case only
    panel.setAllCasesAvailable(true);
    PictureOf(panel, QSize(420, 700));
    QSignalSpy asked(&panel, &qRcnAgreement::allCasesRequested);
    QTest::mouseClick(all, Qt::LeftButton);
    QCOMPARE(asked.count(), 1);
    QVERIFY(panel.findChild<qRcnTable*>("matrix")->isHidden());
    panel.setAllCases(SixCases());
    PictureOf(panel, QSize(420, 700));
    const QString sentence = panel.findChild<QLabel*>("allCasesSentence")->text();
    QVERIFY2(sentence.contains("marks less than the others (Dice 0.53, others 0.83"), qPrintable(sentence));
    auto* raters = panel.findChild<qRcnTable*>("allCasesRaters");
    QCOMPARE(raters->rowCount(), 5);
    QVERIFY(raters->item(4, 0)->text().endsWith(" *") && !raters->item(0, 0)->text().endsWith("*"));
    QCOMPARE(panel.findChild<qRcnTable*>("allCasesPairs")->rowCount(), 10);
    QCOMPARE(panel.findChild<qRcnTable*>("allCasesFigures")->item(0, 1)->text(), QString("0.705"));
    QVERIFY(panel.csv().startsWith("case,split,patient,rater,pair,figure,value"));
    panel.copy();
    QVERIFY(QGuiApplication::clipboard()->text().contains("0.705"));
    // Back to the case, and to all of them without asking again; other cases are asked for anew.
    QTest::mouseClick(all, Qt::LeftButton);
    QVERIFY(panel.findChild<qRcnTable*>("allCasesFigures")->isHidden() ||
      !panel.findChild<qRcnTable*>("allCasesFigures")->isVisible());
    QVERIFY(!panel.findChild<qRcnTable*>("matrix")->isHidden());
    QTest::mouseClick(all, Qt::LeftButton);
    QCOMPARE(asked.count(), 1);
    panel.setAllCasesAvailable(true);
    QVERIFY(!all->isChecked());
    QTest::mouseClick(all, Qt::LeftButton);
    QCOMPARE(asked.count(), 2);
  }

  void brighterIsBetter()
  {
    const PhantomCase one;
    const rcn::AgreementReport report = one.Agree();
    qRcnAgreement panel;
    panel.setAgreement(report, FiveRaters());
    auto* matrix = panel.findChild<qRcnTable*>("matrix");
    const rcn_pair_agreement *best = nullptr, *worst = nullptr;
    QColor bright, dark;
    for (int a = 0; a < 5; ++a)
    {
      for (int b = 0; b < a; ++b)
      {
        const rcn_pair_agreement& pair = report.Figures->pair[a * 5 + b];
        const QColor color = matrix->item(a, b)->background().color();
        if (!best || pair.dice > best->dice)
        {
          best = &pair;
          bright = color;
        }
        if (!worst || pair.dice < worst->dice)
        {
          worst = &pair;
          dark = color;
        }
      }
    }
    QVERIFY(qGray(bright.rgb()) > qGray(dark.rgb()) + 20);
  }

  void asksForSurfaces()
  {
    const PhantomCase one;
    rcn::AgreementReport report = one.Agree();
    qRcnAgreement panel;
    panel.setAgreement(report, FiveRaters());
    panel.show();
    auto* button = panel.findChild<QToolButton*>("measureSurfaces");
    QVERIFY(!button->isVisible());
    panel.setMeasure(qRcnAgreement::Hausdorff95);
    QVERIFY(button->isVisible());
    QSignalSpy asked(&panel, &qRcnAgreement::surfacesRequested);
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(asked.count(), 1);
    report.HasSurfaces = true;
    panel.setAgreement(report, FiveRaters());
    QVERIFY(!button->isVisible());
  }

  void sorts()
  {
    const PhantomCase one(5, 2);
    qRcnAgreement panel;
    panel.setAgreement(one.Agree(), FiveRaters());
    PictureOf(panel, QSize(350, 430));
    auto* table = panel.findChild<qRcnTable*>("raters");
    QCOMPARE(table->item(0, 0)->text(), QString("Ada"));
    const QHeaderView* header = table->horizontalHeader();
    QTest::mouseClick(header->viewport(), Qt::LeftButton, Qt::NoModifier,
      QPoint(header->sectionViewportPosition(1) + 12, header->height() / 2));
    double last = -1;
    for (int row = 0; row < 4; ++row)
    {
      const double volume = dynamic_cast<qRcnNumberItem*>(table->item(row, 1))->number();
      QVERIFY(volume >= last);
      last = volume;
    }
    // Cleo did not answer and comes last.
    QCOMPARE(table->item(4, 0)->text(), QString("Cleo"));
    QCOMPARE(table->item(4, 1)->text(), QString("–"));
  }

  /// A picture without spacing is measured in pixels; two raters have no majority of their own.
  void measuresPictures()
  {
    const PhantomCase one(2);
    rcn::AgreementReport report = one.Agree();
    report.Geometry = rcn_geometry_make(report.Geometry.size[0], report.Geometry.size[1] * report.Geometry.size[2], 1);
    report.Geometry.unit = RCN_PIXELS;
    qRcnAgreement panel;
    panel.setAgreement(report, { "Ada", "Ben" });
    auto* table = panel.findChild<qRcnTable*>("raters");
    QCOMPARE(table->horizontalHeaderItem(1)->text(), QString("Area"));
    QCOMPARE(table->item(0, 1)->text(), QString("%1\u00a0pixels").arg(report.Figures->rater[0].voxels));
    QVERIFY(table->horizontalHeaderItem(2)->toolTip().contains("split evenly"));
    const QString sentence = panel.findChild<QLabel*>("sentence")->text();
    QVERIFY2(sentence.contains("pixels") && !sentence.contains("mL"), qPrintable(sentence));
    QVERIFY(sentence.contains("With two raters, the majority"));
    const QStringList row = panel.csv().split('\n')[1].split(',');
    QVERIFY(panel.csv().split('\n')[0].endsWith("voxels,hausdorff95_pixels,mean_surface_pixels"));
    QCOMPARE(row[row.size() - 3], QString::number(report.Figures->rater[0].voxels));
  }

  void copiesAndExports()
  {
    const PhantomCase one;
    const rcn::AgreementReport report = one.Agree();
    qRcnAgreement panel;
    QVERIFY(panel.csv().isEmpty());
    panel.setAgreement(report, { "Ada", "Ben, \"B\"", "Cleo", "Dan", "Eve" });
    PictureOf(panel, QSize(350, 430));
    auto* matrix = panel.findChild<qRcnTable*>("matrix");
    matrix->setCurrentCell(-1, -1);
    matrix->clearSelection();
    QTest::keySequence(matrix, QKeySequence::Copy);
    QStringList lines = QApplication::clipboard()->text().split('\n');
    QCOMPARE(lines[0], QString("\tAda\tBen, \"B\"\tCleo\tDan\tEve"));
    QCOMPARE(lines[2].split('\t')[1], QString::number(report.Figures->pair[5].dice, 'f', 2));
    // A part of it.
    matrix->setRangeSelected(QTableWidgetSelectionRange(3, 0, 4, 1), true);
    QTest::keySequence(matrix, QKeySequence::Copy);
    lines = QApplication::clipboard()->text().split('\n');
    QCOMPARE(lines[0], QString("\tAda\tBen, \"B\""));
    QCOMPARE(lines.size(), 4); // heading, two rows, the end
    QSignalSpy wanted(&panel, &qRcnAgreement::exportRequested);
    QTest::mouseClick(panel.findChild<QToolButton*>("export"), Qt::LeftButton);
    QCOMPARE(wanted.count(), 1);
    QTest::mouseClick(panel.findChild<QToolButton*>("copy"), Qt::LeftButton);
    QVERIFY(QApplication::clipboard()->text().contains("Sens."));
    const QStringList rows = panel.csv().split('\n');
    QCOMPARE(rows.size(), 1 + 5 + 10 + 2 + 1);
    QVERIFY(rows[2].startsWith("\"Ben, \"\"B\"\"\",the others,"));
    for (const QString& row : { rows[1], rows[7], rows[16] })
    {
      QCOMPARE(row.count(','), rows[0].count(','));
    }
    QCOMPARE(
      rows[1].split(',')[2].toDouble(), std::stod(QString::number(report.Figures->rater[0].volume_ml, 'g', 10).toStdString()));
  }

  void fewRaters()
  {
    const PhantomCase one(1);
    qRcnAgreement panel;
    panel.setAgreement(one.Agree(), { "Ada" });
    QVERIFY(panel.findChild<QLabel*>("sentence")->text().contains("Only one rater"));
    panel.clear();
    QVERIFY(!panel.findChild<qRcnTable*>("matrix")->isVisibleTo(&panel));
  }

  void picture()
  {
    const PhantomCase one;
    qRcnAgreement panel;
    panel.setAgreement(one.Agree(), FiveRaters());
    COMPARE_PICTURES(panel, "agreement", 350, 430);
  }
};

QTEST_MAIN(TestAgreement)
#include "test_qRcnAgreement.moc"
