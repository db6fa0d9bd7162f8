// SPDX-License-Identifier: Apache-2.0
/// The cases: status, search, keyboard, and files that are dropped.
#include "qRcnTest.h"

#include <QDropEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QSignalSpy>
#include <QUrl>

#include "qRcnCases.h"
#include "qRcnStyle.h"

class TestCases : public QObject
{
  Q_OBJECT

  static std::vector<rcn::Case> cases(int count)
  {
    std::vector<rcn::Case> all;
    for (int i = 0; i < count; ++i)
    {
      rcn::Case one;
      one.Id = "case " + std::to_string(i + 1);
      one.Split = i % 4 == 3 ? "test" : i % 4 == 2 ? "validation" : "training";
      for (const char* rater : { "Ada", "Ben", "Cleo", "Dan", "Eve" })
      {
        if (i != 1 || std::string(rater) != "Ben")
        {
          one.Raters.push_back({ rater, rater, {}, -1 });
        }
      }
      all.push_back(one);
    }
    return all;
  }

private slots:
  void initTestCase() { SetUpLook(); }

  void activates()
  {
    qRcnCases panel;
    panel.setCases(cases(6), FiveRaters());
    PictureOf(panel, QSize(350, 300));
    QSignalSpy activated(&panel, &qRcnCases::caseActivated);
    auto* table = panel.findChild<qRcnTable*>("cases");
    QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier, table->visualItemRect(table->item(2, 0)).center());
    QCOMPARE(activated.count(), 1);
    QCOMPARE(activated.last()[0].toString(), QString("case 3"));
    QCOMPARE(panel.currentCase(), QString("case 3"));
    QTest::keyClick(table, Qt::Key_Down);
    QCOMPARE(activated.count(), 1); // reading a case costs: only Enter says so
    QTest::keyClick(table, Qt::Key_Return);
    QCOMPARE(activated.count(), 2);
    QCOMPARE(panel.currentCase(), QString("case 4"));
    panel.setCurrentCase("case 1");
    QCOMPARE(activated.count(), 2);
    QVERIFY(table->item(0, 0)->font().bold());
    QVERIFY(!table->item(3, 0)->font().bold());
    // The open case stays when the list grows, and goes with its case.
    panel.setStatus("case 1", qRcnCases::Predicted);
    panel.setCases(cases(8), FiveRaters());
    QCOMPARE(panel.currentCase(), QString("case 1"));
    QCOMPARE(panel.status("case 1"), qRcnCases::Predicted);
    panel.setCases({}, {});
    QCOMPARE(panel.currentCase(), QString());
    QVERIFY(panel.findChild<QLabel*>("footer")->text().startsWith("Drop"));
  }

  void theOpenCaseStaysInSight()
  {
    qRcnCases panel;
    panel.setCases(cases(60), FiveRaters());
    PictureOf(panel, QSize(350, 1200));
    panel.setCurrentCase("case 30");
    PictureOf(panel, QSize(350, 300));
    auto* table = panel.findChild<qRcnTable*>("cases");
    const QRect row = table->visualItemRect(table->currentItem());
    QVERIFY2(table->viewport()->rect().contains(row), qPrintable(QString::number(row.y())));
  }

  void searches()
  {
    qRcnCases panel;
    panel.setCases(cases(12), FiveRaters());
    PictureOf(panel, QSize(350, 300));
    panel.setStatus("case 7", qRcnCases::Problem, "other geometry");
    auto* search = panel.findChild<QLineEdit*>("search");
    QTest::keyClicks(search, "PROBLEM");
    QCOMPARE(panel.shownCases(), QStringList("case 7"));
    QCOMPARE(panel.findChild<QLabel*>("footer")->text(), QString("1 of 12 cases"));
    QSignalSpy activated(&panel, &qRcnCases::caseActivated);
    QTest::keyClick(search, Qt::Key_Return);
    QCOMPARE(activated.last()[0].toString(), QString("case 7"));
    search->clear();
    QTest::keyClicks(search, "test case");
    QCOMPARE(panel.shownCases(), QStringList({ "case 4", "case 8", "case 12" }));
    search->clear();
    QTest::keyClicks(search, "ben");
    QCOMPARE(panel.shownCases().size(), 11);
    search->clear();
    QTest::keyClicks(search, "case 1");
    QTest::keyClick(search, Qt::Key_Down);
    QTest::keyClick(panel.findChild<qRcnTable*>("cases"), Qt::Key_Return);
    QCOMPARE(activated.last()[0].toString(), QString("case 1"));
    // What changes its status may come into the search or leave it.
    search->setText("problem");
    panel.setStatus("case 7", qRcnCases::Read);
    QVERIFY(panel.shownCases().isEmpty());
  }

  void showsStatusAndAgreement()
  {
    qRcnCases panel;
    panel.setCases(cases(4), FiveRaters());
    const QImage before = PictureOf(panel, QSize(560, 300));
    panel.setStatus("case 2", qRcnCases::Problem, "The masks have another size.");
    panel.setAgreement("case 3", 0.8249);
    panel.setAgreement("no such case", 1);
    auto* table = panel.findChild<qRcnTable*>("cases");
    QCOMPARE(table->item(1, 4)->text(), QString("problem: The masks have another size."));
    QCOMPARE(table->item(2, 2)->text(), QString("0.82"));
    QVERIFY(PictureDifference(before, PictureOf(panel, QSize(560, 300))) > PictureTolerance);
    PictureOf(panel, QSize(220, 300)); // the names keep their room
    QVERIFY2(table->columnWidth(0) > 80, qPrintable(QString::number(table->columnWidth(0))));
    // A narrow panel shows the status as a sign.
    PictureOf(panel, QSize(350, 300));
    QVERIFY(table->isColumnHidden(4));
    QVERIFY(table->item(1, 0)->toolTip().contains("another size"));
    QVERIFY(!table->item(1, 0)->toolTip().contains("Ben"));
  }

  void sorts()
  {
    qRcnCases panel;
    panel.setCases(cases(4), FiveRaters());
    panel.setAgreement("case 3", 0.5);
    panel.setAgreement("case 1", 0.9);
    auto* table = panel.findChild<qRcnTable*>("cases");
    table->sortByColumn(2, Qt::AscendingOrder);
    QCOMPARE(panel.shownCases().mid(0, 2), QStringList({ "case 3", "case 1" }));
    panel.setAgreement("case 4", 0.1); // moves, and its row is whole
    QCOMPARE(panel.shownCases()[0], QString("case 4"));
    panel.setStatus("case 4", qRcnCases::Read);
    QCOMPARE(panel.status("case 4"), qRcnCases::Read);
  }

  void takesFiles()
  {
    qRcnCases panel;
    panel.setCases(cases(3), FiveRaters());
    PictureOf(panel, QSize(350, 300));
    QSignalSpy dropped(&panel, &qRcnCases::filesDropped);
    QMimeData data;
    data.setUrls({ QUrl::fromLocalFile("/a/list.json"), QUrl("http://example.org/x.nii"), QUrl::fromLocalFile("/a/b.nii.gz") });
    // Where the table is, too.
    QWidget* under = panel.childAt(150, 150);
    while (under && !under->acceptDrops())
    {
      under = under->parentWidget();
    }
    QCOMPARE(under, static_cast<QWidget*>(&panel));
    QDragEnterEvent enter(QPoint(20, 20), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&panel, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop(QPointF(20, 20), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&panel, &drop);
    QCOMPARE(dropped.count(), 1);
    QCOMPARE(dropped.last()[0].toStringList(), QStringList({ "/a/list.json", "/a/b.nii.gz" }));
    QMimeData text;
    text.setText("hello");
    QDragEnterEvent other(QPoint(20, 20), Qt::CopyAction, &text, Qt::LeftButton, Qt::NoModifier);
    other.ignore();
    QApplication::sendEvent(&panel, &other);
    QVERIFY(!other.isAccepted());
  }

  void picture()
  {
    qRcnCases panel;
    panel.setCases(cases(7), FiveRaters());
    panel.setStatus("case 1", qRcnCases::Predicted);
    panel.setStatus("case 2", qRcnCases::Read);
    panel.setStatus("case 3", qRcnCases::Reading);
    panel.setStatus("case 4", qRcnCases::Problem, "The masks have another size.");
    panel.setAgreement("case 1", 0.83);
    panel.setAgreement("case 2", 0.71);
    panel.setCurrentCase("case 1");
    COMPARE_PICTURES(panel, "cases", 350, 280);
    COMPARE_PICTURE(panel, "cases_wide", 620, 280);
    COMPARE_PICTURE(panel, "cases_narrow", 220, 280);
  }
};

QTEST_MAIN(TestCases)
#include "test_qRcnCases.moc"
