// SPDX-License-Identifier: Apache-2.0
/// The linked views: a click in one moves the others, the slider scrolls, a double click makes one large.
#include <QtTest>

#include <QSignalSpy>
#include <QSlider>

#include "qRcnSliceCanvas.h"
#include "qRcnSliceView.h"
#include "qRcnOrthogonalViews.h"
#include "rcnSceneTest.h"

class TestSliceViews : public QObject
{
  Q_OBJECT
private slots:
  void clicksMoveTheOthers()
  {
    qRcnScene scene;
    qRcnOrthogonalViews views(&scene);
    views.resize(900, 600);
    views.show();
    // sagittal slices, feet first, thick: the axes are all mixed up
    TestCase one = MakePhantom(30, 26, 12, 3);
    const double direction[9] = { 0, 0, -1, 1, 0, 0, 0, -1, 0 };
    std::copy(direction, direction + 9, one.Geometry.direction);
    one.Geometry.spacing[2] = 4;
    one.show(scene);
    QApplication::processEvents();
    const qRcnScene::Voxel target = { 7, 19, 3 };
    qRcnSliceCanvas* axial = views.view(RCN_VIEW_AXIAL)->canvas();
    qRcnSliceCanvas* coronal = views.view(RCN_VIEW_CORONAL)->canvas();
    qRcnSliceCanvas* sagittal = views.view(RCN_VIEW_SAGITTAL)->canvas();
    QCOMPARE(sagittal->plane().axis, 2);
    QCOMPARE(axial->plane().axis, 1);
    QCOMPARE(coronal->plane().axis, 0);
    // in the sagittal view x and y are to be had, in the axial one z
    QTest::mouseClick(sagittal, Qt::LeftButton, Qt::NoModifier, sagittal->placeOf(target).toPoint());
    QCOMPARE(axial->slice(), target[1]);
    QCOMPARE(coronal->slice(), target[0]);
    QTest::mouseClick(axial, Qt::LeftButton, Qt::NoModifier, axial->placeOf(target).toPoint());
    QCOMPARE(sagittal->slice(), target[2]);
    QVERIFY(scene.cursor() == target);
    // the cross-hairs of all views meet where that voxel is
    for (const qRcnSliceCanvas* canvas : { axial, coronal, sagittal })
    {
      qRcnScene::Voxel found{};
      QVERIFY(canvas->voxelAt(canvas->placeOf(target), &found));
      QVERIFY(found == target);
    }
    QSignalSpy spy(&views, &qRcnOrthogonalViews::cursorMoved);
    const QPoint place = coronal->placeOf(target).toPoint();
    QMouseEvent move(
      QEvent::MouseMove, coronal->placeOf(target), coronal->mapToGlobal(place), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(coronal, &move);
    QCOMPARE(spy.count(), 1);
    QCOMPARE(spy[0], QVariantList({ true, 7, 19, 3 }));
  }

  void slidersScroll()
  {
    qRcnScene scene;
    qRcnSliceView view(&scene, RCN_VIEW_AXIAL);
    QVERIFY(view.slider()->isHidden());
    const TestCase one = MakePhantom(20, 20, 15, 2);
    one.show(scene);
    view.resize(300, 300);
    view.show();
    QVERIFY(!view.slider()->isHidden());
    QCOMPARE(view.slider()->maximum(), 14);
    QCOMPARE(view.slider()->value(), 7);
    QSignalSpy spy(&scene, &qRcnScene::changed);
    QTest::keyClick(view.slider(), Qt::Key_Up);
    QCOMPARE(scene.cursor()[2], int64_t{ 8 });
    QCOMPARE(spy.count(), 1);
    QTest::keyClick(view.slider(), Qt::Key_PageUp);
    QCOMPARE(scene.cursor()[2], int64_t{ 14 });
    scene.setCursor({ 1, 1, 2 });
    QCOMPARE(view.slider()->value(), 2);
    view.setView(RCN_VIEW_SAGITTAL);
    QCOMPARE(view.slider()->maximum(), 19);
    QCOMPARE(view.slider()->value(), 1);
    // to the right is up, and this volume runs to the left
    QTest::keyClick(view.slider(), Qt::Key_Up);
    QCOMPARE(scene.cursor()[0], int64_t{ 0 });
  }

  void oneLargeViewAndBack()
  {
    qRcnScene scene;
    qRcnOrthogonalViews views(&scene);
    MakePhantom(30, 26, 12, 3).show(scene);
    views.resize(900, 600);
    views.show();
    QApplication::processEvents();
    const auto visible = [&views]() {
      QString which;
      for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_CORONAL, RCN_VIEW_SAGITTAL })
      {
        which += views.view(view)->isVisible() ? "acs"[view] : '-';
      }
      return which;
    };
    QCOMPARE(visible(), QString("acs"));
    for (const rcn_view view : { RCN_VIEW_SAGITTAL, RCN_VIEW_AXIAL, RCN_VIEW_CORONAL })
    {
      const int width = views.view(view)->width();
      QTest::mouseDClick(views.view(view)->canvas(), Qt::LeftButton);
      QApplication::processEvents();
      QCOMPARE(views.maximized(), static_cast<int>(view));
      QCOMPARE(visible().count('-'), 2);
      QVERIFY(views.view(view)->isVisible());
      QVERIFY(views.view(view)->width() > width && views.view(view)->width() > 850);
      QVERIFY(views.view(view)->height() > 550);
      QTest::mouseDClick(views.view(view)->canvas(), Qt::LeftButton);
      QApplication::processEvents();
      QCOMPARE(visible(), QString("acs"));
      QCOMPARE(views.view(view)->width(), width);
    }
    views.setMaximized(99);
    QCOMPARE(views.maximized(), -1);
    // only what changes is drawn again: scrolling through one view leaves the others' slices alone
    views.view(RCN_VIEW_AXIAL)->canvas()->setZoom(3);
    views.resetViews();
    QCOMPARE(views.view(RCN_VIEW_AXIAL)->canvas()->zoom(), 1.0);
    QVERIFY(!views.picture().isNull());
  }

  void aPictureHasOneView()
  {
    qRcnScene scene;
    qRcnOrthogonalViews views(&scene);
    views.resize(600, 400);
    views.show();
    const auto shown = [&views]() {
      int which = -1, count = 0;
      for (int i = 0; i < 3; ++i)
      {
        if (views.view(static_cast<rcn_view>(i))->isVisible())
        {
          which = i;
          ++count;
        }
      }
      return count == 1 ? which : -1;
    };
    TestCase flat = MakePhantom(30, 26, 1, 3);
    flat.show(scene); // a volume of one slice
    QCOMPARE(shown(), int(RCN_VIEW_AXIAL));
    QVERIFY(views.view(RCN_VIEW_AXIAL)->slider()->isHidden());
    flat.Geometry.dimension = 2;
    flat.show(scene);
    QCOMPARE(shown(), int(RCN_VIEW_AXIAL));
    // one coronal slice
    flat.Geometry.dimension = 3;
    const double direction[9] = { 1, 0, 0, 0, 0, 1, 0, -1, 0 };
    std::copy(direction, direction + 9, flat.Geometry.direction);
    flat.show(scene);
    QCOMPARE(shown(), int(RCN_VIEW_CORONAL));
    MakePhantom(30, 26, 5, 3).show(scene);
    QCOMPARE(shown(), -1);
  }
};

QTEST_MAIN(TestSliceViews)
#include "test_qRcnOrthogonalViews.moc"
