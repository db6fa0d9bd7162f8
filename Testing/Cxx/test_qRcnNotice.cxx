// SPDX-License-Identifier: Apache-2.0
/// The bar for one sentence: shown, closed by a click, and never taken for markup.
#include <QtTest>

#include <QLabel>
#include <QToolButton>

#include "qRcnNotice.h"

class TestNotice : public QObject
{
  Q_OBJECT
private slots:
  void showsAndCloses()
  {
    qRcnNotice notice;
    QVERIFY(notice.isHidden());
    QCOMPARE(notice.text(), QString());
    notice.showError("The file is empty.");
    QVERIFY(!notice.isHidden());
    QVERIFY(notice.isError());
    QCOMPARE(notice.text(), QString("The file is empty."));
    QTest::mouseClick(notice.findChild<QToolButton*>("close"), Qt::LeftButton);
    QVERIFY(notice.isHidden());
    QCOMPARE(notice.text(), QString());
    notice.showRemark("Saved.");
    QVERIFY(!notice.isError());
    QCOMPARE(notice.text(), QString("Saved."));
    notice.showRemark("");
    QVERIFY(notice.isHidden());
  }

  void showsMarkupAsText()
  {
    qRcnNotice notice;
    notice.showError("<b>x</b>.nii");
    QCOMPARE(notice.findChild<QLabel*>()->textFormat(), Qt::PlainText);
    QCOMPARE(notice.text(), QString("<b>x</b>.nii"));
  }
};

QTEST_MAIN(TestNotice)
#include "test_qRcnNotice.moc"
