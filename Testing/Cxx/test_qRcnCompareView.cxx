// SPDX-License-Identifier: Apache-2.0
/// The comparison: a panel for each rater, their consensus and each prediction; all show the same place.
#include <QtTest>

#include <QComboBox>
#include <QSignalSpy>

#include "qRcnCompareView.h"
#include "qRcnSliceCanvas.h"
#include "qRcnOrthogonalViews.h"
#include "qRcnTest.h"
#include "rcnSceneTest.h"

class TestCompareView : public QObject
{
  Q_OBJECT
private slots:
  void initTestCase() { SetUpLook(); }

  void panelsFollowTheScene()
  {
    qRcnScene scene;
    qRcnCompareView view(&scene);
    view.resize(800, 600);
    view.show();
    QCOMPARE(view.titles(), QStringList({ "Image" }));
    const TestCase one = MakePhantom(40, 36, 8, 3);
    one.show(scene);
    QCOMPARE(view.titles(), QStringList({ "Rater A", "Rater B", "Rater C", "Consensus" }));
    scene.addPrediction("Soft", MakeLevels(one));
    scene.addPrediction("Levels", MakeLevels(one, 0.6));
    QCOMPARE(view.titles().mid(4), QStringList({ "Soft", "Levels" }));
    scene.setRaterVisible(1, false);
    QCOMPARE(view.titles().size(), 5);
    scene.removePredictions();
    QCOMPARE(view.titles(), QStringList({ "Rater A", "Rater C", "Consensus" }));
    scene.clear();
    QCOMPARE(view.titles(), QStringList({ "Image" }));
    QVERIFY(!view.picture().isNull());
  }

  /// Each panel has its own mask: a block that only that rater marked has the rater's color there, and there alone.
  void eachPanelHasItsOwnMask()
  {
    const rcn_geometry geometry = rcn_geometry_make(20, 20, 3);
    std::vector<std::vector<uint8_t>> masks(3, std::vector<uint8_t>(1200, 0));
    const auto mark = [&masks](size_t r, int x, int y) {
      for (int i = 0; i < 16; ++i)
      {
        masks[r][static_cast<size_t>(x + i % 4 + 20 * (y + i / 4) + 400)] = 1;
      }
    };
    mark(0, 2, 2);
    mark(1, 14, 2);
    mark(2, 2, 14);
    TestCase one;
    one.Geometry = geometry;
    one.Votes = MakeVotes(geometry, masks);
    one.Images.push_back(MakeVolume(geometry, [](int64_t, int64_t, int64_t) { return 1.0; }));
    qRcnScene scene;
    scene.setCrosshairVisible(false);
    scene.setHeatMapOpacity(1);
    one.show(scene);
    scene.addPrediction("Model", MakeLevels(one, 1));
    scene.setPredictionOpacity(1);
    scene.setReadout(RCN_READOUT_AT_LEAST, 1);
    qRcnCompareView view(&scene);
    view.resize(900, 640);
    view.show();
    QApplication::processEvents();
    qRcnSliceCanvas* canvas = view.canvas();
    const QImage picture = view.picture();
    const int columns = 3; // five panels in a wide window
    const QSizeF panel(canvas->width() / 3.0, canvas->height() / 2.0);
    const auto at = [&](int number, int64_t x, int64_t y) {
      const QPointF corner(number % columns * panel.width(), number / columns * panel.height());
      return picture.pixelColor((canvas->placeOf({ x, y, 1 }) + corner).toPoint());
    };
    const QColor gray = at(0, 10, 10);
    const int64_t spots[3][2] = { { 4, 4 }, { 16, 4 }, { 4, 16 } };
    uint8_t third[3], sure[3];
    rcn_color_palette(third, RCN_PALETTE_GREEN, 1 / 3.0);
    rcn_color_palette(sure, RCN_PALETTE_GREEN, 1);
    for (int r = 0; r < 3; ++r)
    {
      for (int panelNumber = 0; panelNumber < 3; ++panelNumber)
      {
        QCOMPARE(at(panelNumber, spots[r][0], spots[r][1]), panelNumber == r ? scene.raterColor(r) : gray);
      }
      QCOMPARE(at(3, spots[r][0], spots[r][1]), QColor(third[0], third[1], third[2]));
      QCOMPARE(at(4, spots[r][0], spots[r][1]), QColor(sure[0], sure[1], sure[2]));
    }
    // a click in the last panel is at the same place as one in the first
    QTest::mouseClick(canvas, Qt::LeftButton, Qt::NoModifier,
      (canvas->placeOf({ 16, 5, 1 }) + QPointF(panel.width(), panel.height())).toPoint());
    QVERIFY((scene.cursor() == qRcnScene::Voxel{ 16, 5, 1 }));
    // scrolling moves all of them: nothing is marked there
    QTest::keyClick(canvas, Qt::Key_Up);
    QVERIFY(scene.cursor()[2] == 2);
    const QImage next = view.picture();
    QVERIFY(next != picture);
    QCOMPARE(next.pixelColor(canvas->placeOf({ 4, 4, 2 }).toPoint()), gray);
  }

  void orientationCanBeChosen()
  {
    qRcnScene scene;
    qRcnCompareView view(&scene);
    MakePhantom(40, 36, 8, 2).show(scene);
    view.resize(600, 400);
    view.show();
    auto* orientation = view.findChild<QComboBox*>();
    QVERIFY(orientation->isVisible());
    QTest::keyClick(orientation, Qt::Key_Down);
    QCOMPARE(view.view(), RCN_VIEW_CORONAL);
    QCOMPARE(view.canvas()->sliceCount(), int64_t{ 36 });
    view.setView(RCN_VIEW_SAGITTAL);
    QCOMPARE(orientation->currentText(), QString("Sagittal"));
    QCOMPARE(view.canvas()->sliceCount(), int64_t{ 40 });
    MakePhantom(40, 36, 1, 2).show(scene); // one slice: no choice
    QVERIFY(!orientation->isVisible());
    QCOMPARE(view.view(), RCN_VIEW_AXIAL);
  }

  /// As stored; and a rater that is not drawn would be noticed.
  void looksAsStored()
  {
    TestCase one = MakePhantom(64, 60, 12, 4);
    one.Geometry.spacing[2] = 3;
    qRcnScene scene;
    one.show(scene);
    scene.setWindow(-4, 4); // little noise, small files
    scene.addPrediction("Model", MakeLevels(one, 0.96));
    scene.setReadout(RCN_READOUT_MAJORITY, 0);
    qRcnOrthogonalViews views(&scene);
    COMPARE_PICTURE(views, "slices", 560, 360);
    const QImage all = PictureOf(views, QSize(560, 360));
    scene.setContoursVisible(false);
    QVERIFY(PictureDifference(all, PictureOf(views, QSize(560, 360))) > 2 * PictureTolerance);
    qRcnCompareView view(&scene);
    COMPARE_PICTURE(view, "compare", 560, 360);
  }
};

QTEST_MAIN(TestCompareView)
#include "test_qRcnCompareView.moc"
