// SPDX-License-Identifier: Apache-2.0
/// The list of structures: what a click chooses, what an eye does, and nothing to see where there is one.
#include <QListWidget>
#include <QSignalSpy>

#include "qRcnStructures.h"
#include "qRcnStyle.h"
#include "qRcnTest.h"

namespace
{

QVector<qRcnStructure> Three()
{
  return { { "kidney", qRcnStyle::structureColor(1), true }, { "<b>große</b> Leber", qRcnStyle::structureColor(2), false },
    { "spleen", qRcnStyle::structureColor(3), true } };
}

} // namespace

class TestStructures : public QObject
{
  Q_OBJECT
private slots:
  void initTestCase() { SetUpLook(); }

  void clicksChooseAndEyesHide()
  {
    QWidget window;
    auto* list = new qRcnStructures(&window);
    QVERIFY(list->isHidden());
    QCOMPARE(list->chosen(), 0);
    QSignalSpy chosen(list, &qRcnStructures::structureChosen), eyes(list, &qRcnStructures::visibilityChanged);
    list->setStructures(Three(), 2);
    list->resize(220, 120);
    window.show();
    QVERIFY(list->isVisible());
    QCOMPARE(list->chosen(), 2);
    QCOMPARE(chosen.count() + eyes.count(), 0); // nobody has done anything
    QCOMPARE(list->list()->item(1)->checkState(), Qt::Unchecked);
    const auto row = [&](int number) { return list->list()->visualItemRect(list->list()->item(number)); };
    const auto click = [&](const QPoint& at) { QTest::mouseClick(list->list()->viewport(), Qt::LeftButton, {}, at); };
    click(row(0).center());
    QCOMPARE(chosen.takeLast()[0].toInt(), 1);
    QCOMPARE(eyes.count(), 0);
    // An eye is not a choice.
    click(QPoint(row(2).left() + 8, row(2).center().y()));
    QCOMPARE(chosen.count(), 0);
    QCOMPARE(list->chosen(), 1);
    QCOMPARE(eyes.count(), 1);
    QCOMPARE(eyes[0][0].toInt(), 3);
    QCOMPARE(eyes[0][1].toBool(), false);
    // Keys do both.
    list->list()->setFocus();
    QTest::keyClick(list->list(), Qt::Key_Down);
    QCOMPARE(chosen.takeLast()[0].toInt(), 2);
    QTest::keyClick(list->list(), Qt::Key_Space);
    QCOMPARE(eyes.takeLast()[0].toInt(), 2);
    QCOMPARE(list->list()->item(1)->checkState(), Qt::Checked);
    // What nobody outlined has no eye, and a click where it would be chooses.
    QVector<qRcnStructure> predicted = Three();
    predicted[2].HasOutline = false;
    list->setStructures(predicted, 1);
    eyes.clear();
    click(QPoint(row(2).left() + 8, row(2).center().y()));
    QCOMPARE(chosen.takeLast()[0].toInt(), 3);
    QCOMPARE(eyes.count(), 0);
    QVERIFY(!list->list()->item(2)->data(Qt::CheckStateRole).isValid());
    // One structure is nothing to choose from.
    list->setStructures({ Three()[0] }, 0);
    QVERIFY(!list->isVisible());
    list->setStructures(Three(), 3);
    QVERIFY(list->isVisible());
    QCOMPARE(list->chosen(), 3);
  }

  void everyStructureHasItsColor()
  {
    for (int a = 1; a <= 32; ++a)
    {
      for (int b = 1; b < a; ++b)
      {
        QVERIFY2(qRcnStyle::structureColor(a) != qRcnStyle::structureColor(b), qPrintable(QString("%1 %2").arg(a).arg(b)));
      }
    }
  }

  void looksAsItShould()
  {
    qRcnStructures list;
    list.setStructures(Three(), 1);
    COMPARE_PICTURES(list, "structures", 220, 110);
  }
};

QTEST_MAIN(TestStructures)
#include "test_qRcnStructures.moc"
