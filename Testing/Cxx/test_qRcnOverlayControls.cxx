// SPDX-License-Identifier: Apache-2.0
/// The overlay's controls: each one tells, restoring a workspace tells nothing.
#include "qRcnTest.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>

#include "qRcnOverlayControls.h"

class TestOverlayControls : public QObject
{
  Q_OBJECT
private slots:
  void initTestCase()
  {
    SetUpLook();
    qRegisterMetaType<qRcnOverlayControls::Readout>("qRcnOverlayControls::Readout");
  }

  void readouts()
  {
    qRcnOverlayControls controls;
    controls.setRaterCount(5);
    controls.show();
    QSignalSpy changed(&controls, &qRcnOverlayControls::readoutChanged);
    auto* what = controls.findChild<QComboBox*>("readout");
    auto* level = controls.findChild<QSpinBox*>("level");
    QVERIFY(!level->isVisible());
    const QString meaning = controls.findChild<QLabel*>("meaning")->text();
    QTest::keyClick(what, Qt::Key_Down);
    QCOMPARE(controls.readout(), qRcnOverlayControls::Expected);
    QVERIFY(controls.findChild<QLabel*>("meaning")->text() != meaning);
    QCOMPARE(controls.level(), 0);
    QTest::keyClick(what, Qt::Key_Down);
    QCOMPARE(changed.count(), 2);
    QCOMPARE(controls.readout(), qRcnOverlayControls::AtLeast);
    QVERIFY(level->isVisible());
    QCOMPARE(controls.level(), 1); // at least 0 would say nothing
    QTest::keyClick(level, Qt::Key_Up);
    QCOMPARE(changed.count(), 3);
    QCOMPARE(changed.last()[1].toInt(), 2);
    for (int i = 0; i < 9; ++i)
    {
      QTest::keyClick(level, Qt::Key_Up);
    }
    QCOMPARE(controls.level(), 5);
    // Fewer raters: the level follows, and the owner hears of it.
    controls.setRaterCount(3);
    QCOMPARE(changed.last()[1].toInt(), 3);
    controls.setReadout(qRcnOverlayControls::Level, 0);
    QCOMPARE(controls.level(), 0);
    controls.setRaterCount(3, false);
    QVERIFY(!what->isEnabled());
  }

  void sharesAndContours()
  {
    qRcnOverlayControls controls;
    controls.setRaterCount(5);
    PictureOf(controls, QSize(350, 260));
    QSignalSpy opacity(&controls, &qRcnOverlayControls::opacityChanged),
      threshold(&controls, &qRcnOverlayControls::thresholdChanged);
    QSignalSpy contour(&controls, &qRcnOverlayControls::contourShownChanged),
      levels(&controls, &qRcnOverlayControls::levelContoursShownChanged);
    controls.setOpacity(0.25);
    controls.setThreshold(0.7);
    controls.setContourShown(true);
    controls.setLevelContoursShown(true);
    QCOMPARE(opacity.count() + threshold.count() + contour.count() + levels.count(), 0);
    QCOMPARE(controls.opacity(), 0.25);
    QCOMPARE(controls.threshold(), 0.7);
    controls.setThreshold(7);
    QCOMPARE(controls.threshold(), 1.0);
    controls.setThreshold(NAN);
    QCOMPARE(controls.threshold(), 0.5);
    // A drag tells on its way.
    auto* slider = controls.findChild<QSlider*>("thresholdSlider");
    const QPoint middle(slider->width() / 2, slider->height() / 2);
    QTest::mousePress(slider, Qt::LeftButton, Qt::NoModifier, middle);
    for (int step = 1; step <= 4; ++step)
    {
      const QPoint to = middle + QPoint(step * 10, 0);
      QMouseEvent move(QEvent::MouseMove, to, slider->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
      QApplication::sendEvent(slider, &move);
    }
    QTest::mouseRelease(slider, Qt::LeftButton, Qt::NoModifier, middle + QPoint(40, 0));
    QVERIFY2(threshold.count() >= 3, qPrintable(QString::number(threshold.count())));
    QVERIFY(controls.threshold() > 0.55);
    QCOMPARE(controls.findChild<QSpinBox*>("threshold")->value(), slider->value());
    auto* box = controls.findChild<QSpinBox*>("opacity");
    box->selectAll();
    QTest::keyClicks(box, "8");
    QCOMPARE(opacity.last()[0].toDouble(), 0.08);
    QTest::mouseClick(controls.findChild<QCheckBox*>("contour"), Qt::LeftButton, Qt::NoModifier, QPoint(8, 8));
    QCOMPARE(contour.count(), 1);
    QVERIFY(!controls.contourShown());
    QTest::mouseClick(controls.findChild<QCheckBox*>("levelContours"), Qt::LeftButton, Qt::NoModifier, QPoint(8, 8));
    QVERIFY(!controls.levelContoursShown());
  }

  /// A volume stands beside its own threshold only.
  void volume()
  {
    qRcnOverlayControls controls;
    auto* text = controls.findChild<QLabel*>("volume");
    QVERIFY(text->text().isEmpty());
    controls.setVolume(12.34);
    QVERIFY(text->text().startsWith("12.3") && text->text().contains("50"));
    auto* slider = controls.findChild<QSlider*>("thresholdSlider");
    slider->setValue(60);
    QVERIFY(text->text().isEmpty());
    QObject::connect(
      &controls, &qRcnOverlayControls::thresholdChanged, &controls, [&](double share) { controls.setVolume(100 * share); });
    slider->setValue(70);
    QVERIFY2(text->text().startsWith("70"), qPrintable(text->text()));
  }

  void picture()
  {
    qRcnOverlayControls controls;
    controls.setRaterCount(5);
    controls.setReadout(qRcnOverlayControls::AtLeast, 3);
    controls.setVolume(23.4);
    controls.setContourShown(true);
    COMPARE_PICTURES(controls, "overlay", 350, 250);
  }
};

QTEST_MAIN(TestOverlayControls)
#include "test_qRcnOverlayControls.moc"
