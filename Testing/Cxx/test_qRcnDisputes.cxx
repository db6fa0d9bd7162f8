// SPDX-License-Identifier: Apache-2.0
/// Disputed regions: one after another by button, key and click.
#include "qRcnTest.h"

#include <QLabel>
#include <QSignalSpy>
#include <QToolButton>

#include "qRcnDisputes.h"
#include "qRcnStyle.h"

class TestDisputes : public QObject
{
  Q_OBJECT

  static std::vector<rcn_dispute> regions(int count)
  {
    std::vector<rcn_dispute> all;
    for (int i = 0; i < count; ++i)
    {
      rcn_dispute one = {};
      one.voxels = 1000 / (i + 1);
      one.volume_ml = 2.5 / (i + 1);
      one.centroid_world[0] = -12 + 5 * i; // LPS: 12 mm to the right
      one.centroid_world[1] = 30;
      one.centroid_world[2] = -4.4 * i;
      one.marked_by = 0x15 >> (i % 3);
      one.max_votes = 2;
      all.push_back(one);
    }
    return all;
  }

  /// Voxels of 1 x 1 x 2.5 mm.
  static rcn_geometry place()
  {
    rcn_geometry geometry = rcn_geometry_make(50, 50, 50);
    geometry.spacing[2] = 2.5;
    return geometry;
  }

private slots:
  void initTestCase() { SetUpLook(); }

  void measures()
  {
    qRcnDisputes panel;
    auto* table = panel.findChild<qRcnTable*>("regions");
    std::vector<rcn_dispute> all = regions(1);
    all[0].centroid[0] = 31.5;
    all[0].centroid[1] = 7;
    panel.setRegions(all, FiveRaters(), place());
    QCOMPARE(table->item(0, 0)->text(), QString("2.50\u00a0mL"));
    QCOMPARE(table->horizontalHeaderItem(2)->text(), QString("Where (mm)"));
    // A picture without spacing: pixels, and no place in the world.
    rcn_geometry picture = rcn_geometry_make(50, 50, 1);
    picture.unit = RCN_PIXELS;
    panel.setRegions(all, FiveRaters(), picture);
    QCOMPARE(table->item(0, 0)->text(), QString("1000\u00a0pixels"));
    QCOMPARE(table->item(0, 2)->text(), QString("31.5, 7.0"));
    QCOMPARE(table->horizontalHeaderItem(0)->text(), QString("Area"));
    QCOMPARE(table->horizontalHeaderItem(2)->text(), QString("Where (pixels)"));
    QVERIFY(!table->item(0, 0)->toolTip().contains("mm"));
  }

  void goesThrough()
  {
    qRcnDisputes panel;
    QSignalSpy went(&panel, &qRcnDisputes::regionActivated);
    panel.setRegions(regions(5), FiveRaters(), place());
    PictureOf(panel, QSize(350, 240));
    auto* where = panel.findChild<QLabel*>("where");
    auto* next = panel.findChild<QToolButton*>("next");
    auto* previous = panel.findChild<QToolButton*>("previous");
    QCOMPARE(where->text(), QString("5 regions"));
    QVERIFY(!previous->isEnabled());
    panel.previous();
    QCOMPARE(went.count(), 0);
    QTest::mouseClick(next, Qt::LeftButton);
    QTest::mouseClick(next, Qt::LeftButton);
    QCOMPARE(went.count(), 2);
    QCOMPARE(went.last()[0].toInt(), 1);
    QCOMPARE(where->text(), QString("2 of 5"));
    QTest::mouseClick(previous, Qt::LeftButton);
    QCOMPARE(panel.current(), 0);
    QVERIFY(!previous->isEnabled());
    auto* table = panel.findChild<qRcnTable*>("regions");
    const int before = went.count();
    const QPoint third = table->visualItemRect(table->item(2, 0)).center();
    QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier, third);
    QCOMPARE(went.count(), before + 1); // once
    QCOMPARE(panel.current(), 2);
    QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier, third); // back there
    QCOMPARE(went.count(), before + 2);
    QTest::keyClick(table, Qt::Key_Down);
    QCOMPARE(went.count(), before + 3);
    QCOMPARE(panel.current(), 3);
    QTest::keyClick(table, Qt::Key_Return);
    QCOMPARE(went.count(), before + 4);
    panel.next();
    panel.next();
    panel.next();
    QCOMPARE(panel.current(), 4);
    QVERIFY(!next->isEnabled());
    panel.setCurrent(1);
    QCOMPARE(went.count(), before + 5);
    QCOMPARE(where->text(), QString("2 of 5"));
    panel.setRegions(regions(3), FiveRaters(), place());
    QCOMPARE(panel.current(), -1);
    panel.clear();
    QCOMPARE(panel.count(), 0);
    QVERIFY(panel.findChild<QLabel*>("hint")->isVisibleTo(&panel));
  }

  /// Largest first, or slice by slice: both go through all, and a region keeps its number.
  void ranks()
  {
    qRcnDisputes panel;
    QSignalSpy went(&panel, &qRcnDisputes::regionActivated);
    std::vector<rcn_dispute> all = regions(4); // largest first
    const int64_t slices[4] = { 30, 5, 30, 2 };
    for (size_t i = 0; i < 4; ++i)
    {
      all[i].at[2] = slices[i];
    }
    panel.setRegions(all, FiveRaters(), place());
    auto* table = panel.findChild<qRcnTable*>("regions");
    const auto column = [table](int number) {
      QStringList texts;
      for (int row = 0; row < table->rowCount(); ++row)
      {
        texts << table->item(row, number)->text();
      }
      return texts.join(' ');
    };
    QCOMPARE(column(3), QString("31 6 31 3"));
    panel.setCurrent(2);
    auto* order = panel.findChild<QComboBox*>("order");
    order->setCurrentIndex(order->findText("Slice by slice"));
    QCOMPARE(panel.order(), qRcnDisputes::BySlice);
    QCOMPARE(column(3), QString("3 6 31 31"));
    QCOMPARE(panel.current(), 2); // in the last row now
    QCOMPARE(table->currentRow(), 3);
    QCOMPARE(panel.findChild<QLabel*>("where")->text(), QString("4 of 4"));
    QCOMPARE(went.count(), 0);
    QList<int> visited;
    for (int i = 0; i < 4; ++i)
    {
      panel.previous();
    }
    for (const QList<QVariant>& one : went)
    {
      visited << one[0].toInt();
    }
    QCOMPARE(visited, QList<int>({ 0, 1, 3 }));
    panel.setOrder(qRcnDisputes::BySize);
    QCOMPARE(column(3), QString("31 6 31 3"));
    QCOMPARE(table->currentRow(), 3);
    // A coronal scan is counted in axial slices, too: along its second axis.
    rcn_geometry coronal = place();
    const double direction[9] = { 1, 0, 0, 0, 0, 1, 0, 1, 0 };
    std::copy(direction, direction + 9, coronal.direction);
    all[1].at[1] = 44;
    panel.setRegions(all, FiveRaters(), coronal);
    QCOMPARE(column(3), QString("1 45 1 1"));
    // One slice: nothing to choose.
    panel.setOrder(qRcnDisputes::BySlice);
    panel.setRegions(all, FiveRaters(), rcn_geometry_make(50, 50, 1));
    QVERIFY(table->isColumnHidden(3));
    QVERIFY(!order->isVisibleTo(&panel));
    QCOMPARE(panel.order(), qRcnDisputes::BySize);
  }

  void saysWhereAndWho()
  {
    qRcnDisputes panel;
    panel.setRegions(regions(3), FiveRaters(), place());
    auto* table = panel.findChild<qRcnTable*>("regions");
    QString where = table->item(0, 2)->text();
    QCOMPARE(where.replace(QChar(0xa0), ' '), QString("R 12  P 30  S 0"));
    where = table->item(1, 2)->text();
    QCOMPARE(where.replace(QChar(0xa0), ' '), QString("R 7  P 30  I 4"));
    QVERIFY(table->item(0, 1)->data(Qt::AccessibleTextRole).toString() == "Ada, Cleo, Eve");
    QVERIFY(table->copyText().contains("Ada, Cleo, Eve"));
  }

  void picture()
  {
    qRcnDisputes panel;
    panel.setRegions(regions(7), FiveRaters(), place());
    panel.setCurrent(1);
    COMPARE_PICTURES(panel, "disputes", 350, 240);
  }
};

QTEST_MAIN(TestDisputes)
#include "test_qRcnDisputes.moc"
