// SPDX-License-Identifier: Apache-2.0
/// Volumes: the sentence, why an interval is missing, figures and components on demand.
#include "qRcnTest.h"

#include <QLabel>
#include <QSignalSpy>
#include <QToolButton>

#include "qRcnStyle.h"
#include "qRcnVolumes.h"

class TestVolumes : public QObject
{
  Q_OBJECT

  /// Two cubes, one that all four raters mark and one that only one or two would.
  static rcn::PredictedVolumes volumes(const rcn::VolumeScores* scores)
  {
    rcn_geometry geometry = rcn_geometry_make(20, 20, 20);
    const rcn::Volume levels = rcn::Volume::Allocate(geometry, RCN_FLOAT32, 5);
    auto* data = static_cast<float*>(levels.Data());
    for (int64_t i = 0; i < 8000; ++i)
    {
      const int64_t x = i % 20, y = i / 20 % 20, z = i / 400;
      const auto inside = [&](int64_t first, int64_t end) {
        return x >= first && x < end && y >= first && y < end && z >= first && z < end;
      };
      float* level = data + 5 * i;
      std::fill(level, level + 5, 0.0f);
      level[inside(2, 9) ? 4 : inside(12, 15) ? 1 : 0] = 1;
    }
    rcn_context* context = nullptr;
    rcn_context_create(&context, nullptr);
    const rcn::PredictedVolumes all = rcn::PredictVolumes(context, levels, 4, scores, "map");
    rcn_context_destroy(context);
    return all;
  }

private slots:
  void initTestCase() { SetUpLook(); }

  void nothing()
  {
    qRcnVolumes panel;
    panel.setVolumes({});
    QVERIFY(panel.isHidden());
  }

  void sentenceAndRemark()
  {
    rcn::VolumeScores scores;
    for (int i = 0; i < 5; ++i)
    {
      scores.Cases.push_back("v" + std::to_string(i));
      scores.Units.push_back(i);
      scores.Scores.push_back({ 0.1 * i, 0.2 });
    }
    qRcnVolumes panel;
    panel.setVolumes(volumes(&scores));
    const QString sentence = panel.findChild<QLabel*>("sentence")->text();
    QVERIFY2(sentence.startsWith("0.350 mL; raters would say 0.3"), qPrintable(sentence));
    QVERIFY(sentence.contains("80 % interval, 5 validation cases"));
    QCOMPARE(
      panel.findChild<QLabel*>("remark")->text(), QString("An interval of 95 % needs 19 validation cases; the model has 5."));
    panel.setVolumes(volumes(nullptr));
    QVERIFY(panel.findChild<QLabel*>("sentence")->text().endsWith("no interval."));
    QVERIFY(panel.findChild<QLabel*>("remark")->text().startsWith("There is no interval"));
  }

  void components()
  {
    qRcnVolumes panel;
    panel.setVolumes(volumes(nullptr));
    panel.resize(350, 400);
    panel.show();
    auto* figures = panel.findChild<qRcnTable*>("figures");
    auto* table = panel.findChild<qRcnTable*>("components");
    QVERIFY(!figures->isVisible() && !table->isVisible());
    panel.findChild<QToolButton*>("details")->click();
    QVERIFY(figures->isVisible() && table->isVisible());
    QCOMPARE(figures->rowCount(), 7); // expected, two intervals, four numbers of raters
    QCOMPARE(table->rowCount(), 2);
    QCOMPARE(table->item(0, 3)->text(), QString("majority"));
    QCOMPARE(table->item(1, 3)->text(), QString("any rater"));
    QCOMPARE(table->item(1, 2)->text(), QString("25 %"));
    QSignalSpy chosen(&panel, &qRcnVolumes::componentActivated);
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualItemRect(table->item(1, 0)).center());
    QCOMPARE(chosen.count(), 1);
    QCOMPARE(chosen[0][0].toInt(), 1);
  }
};

QTEST_MAIN(TestVolumes)
#include "test_qRcnVolumes.moc"
