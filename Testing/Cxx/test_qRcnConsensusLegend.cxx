// SPDX-License-Identifier: Apache-2.0
/// The legend of levels: words, volumes, palettes, and a click that isolates.
#include "qRcnTest.h"

#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>

#include "qRcnConsensusLegend.h"
#include "qRcnStyle.h"

class TestConsensusLegend : public QObject
{
  Q_OBJECT

  static void click(qRcnTable* table, int row)
  {
    QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier, table->visualItemRect(table->item(row, 0)).center());
  }

private slots:
  void initTestCase()
  {
    SetUpLook();
    qRegisterMetaType<rcn_palette>();
  }

  void clickIsolates()
  {
    qRcnConsensusLegend legend;
    legend.setLevels({ 900, 12.5, 8, 7.25, 6, 31 });
    PictureOf(legend, QSize(350, 240));
    auto* table = legend.findChild<qRcnTable*>("levels");
    QCOMPARE(table->rowCount(), 6);
    QCOMPARE(table->item(0, 0)->text(), QString("all 5 raters"));
    QCOMPARE(table->item(4, 0)->text(), QString("1 of 5 raters"));
    QCOMPARE(table->item(5, 0)->text(), QString("no rater"));
    QVERIFY(table->item(4, 1)->text().startsWith("12.5"));
    QSignalSpy isolated(&legend, &qRcnConsensusLegend::levelIsolated);
    const QImage before = legend.grab().toImage();
    click(table, 3);
    QCOMPARE(isolated.count(), 1);
    QCOMPARE(isolated.last()[0].toInt(), 2);
    QCOMPARE(legend.isolatedLevel(), 2);
    QVERIFY(PictureDifference(before, legend.grab().toImage()) > PictureTolerance);
    click(table, 0);
    QCOMPARE(isolated.last()[0].toInt(), 5);
    click(table, 0); // again: all
    QCOMPARE(isolated.last()[0].toInt(), -1);
    table->setCurrentCell(4, 0);
    QTest::keyClick(table, Qt::Key_Space);
    QCOMPARE(isolated.last()[0].toInt(), 1);
    QTest::keyClick(table, Qt::Key_Escape);
    QCOMPARE(isolated.last()[0].toInt(), -1);
    QTest::keyClick(table, Qt::Key_Return);
    QTest::mouseClick(legend.findChild<QPushButton*>("all"), Qt::LeftButton);
    QCOMPARE(isolated.last()[0].toInt(), -1);
    // A case with fewer raters has no such level.
    legend.setIsolatedLevel(5);
    const int count = isolated.count();
    QCOMPARE(table->horizontalHeaderItem(1)->text(), QString("Volume"));
    legend.setLevels({ 10, 2, 3 }, " pixels", "Area");
    QCOMPARE(table->horizontalHeaderItem(1)->text(), QString("Area"));
    QCOMPARE(legend.isolatedLevel(), -1);
    QCOMPARE(isolated.count(), count + 1);
    legend.setIsolatedLevel(77);
    QCOMPARE(legend.isolatedLevel(), -1);
  }

  void paletteChanges()
  {
    qRcnConsensusLegend legend;
    legend.setLevels({ 900, 12.5, 8, 7.25, 6, 31 });
    const QImage green = PictureOf(legend, QSize(350, 240));
    QSignalSpy changed(&legend, &qRcnConsensusLegend::levelPaletteChanged);
    legend.setLevelPalette(RCN_PALETTE_VIOLET);
    QCOMPARE(changed.count(), 0);
    QVERIFY(PictureDifference(green, PictureOf(legend, QSize(350, 240))) > PictureTolerance);
    QTest::keyClick(legend.findChild<QComboBox*>("palette"), Qt::Key_Up);
    QCOMPARE(changed.count(), 1);
    QCOMPARE(changed.last()[0].value<rcn_palette>(), RCN_PALETTE_BLUE);
    QCOMPARE(legend.levelPalette(), RCN_PALETTE_BLUE);
    legend.setLevelPalette(static_cast<rcn_palette>(99));
    QCOMPARE(legend.levelPalette(), RCN_PALETTE_GREEN);
  }

  void picture()
  {
    qRcnConsensusLegend legend;
    legend.setLevels({ 900, 12.5, 8, 7.25, 6, 31 });
    COMPARE_PICTURES(legend, "legend", 350, 240);
    legend.setLevelPalette(RCN_PALETTE_BLUE);
    legend.setIsolatedLevel(3);
    COMPARE_PICTURE(legend, "legend_isolated", 350, 240);
  }
};

QTEST_MAIN(TestConsensusLegend)
#include "test_qRcnConsensusLegend.moc"
