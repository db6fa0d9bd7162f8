// SPDX-License-Identifier: Apache-2.0
/// Slices by mouse and keyboard: the right voxel at the right place, whichever way the volume lies in the world, and the
/// right colors in the picture.
#include <QtTest>

#include <cmath>

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QWheelEvent>

#include "qRcnSliceCanvas.h"
#include "rcnColorBar.h"
#include "rcnSceneTest.h"

namespace
{

using Voxel = qRcnScene::Voxel;

rcn_geometry Lying(const std::vector<double>& direction, double sx = 1, double sy = 1, double sz = 1)
{
  rcn_geometry geometry = rcn_geometry_make(24, 20, 16);
  std::copy(direction.begin(), direction.end(), geometry.direction);
  geometry.spacing[0] = sx;
  geometry.spacing[1] = sy;
  geometry.spacing[2] = sz;
  geometry.origin[0] = -7;
  geometry.origin[1] = 33;
  return geometry;
}

void Turn(QWidget& widget, int steps, Qt::KeyboardModifiers modifiers = Qt::NoModifier, int parts = 120)
{
  const QPointF middle(widget.width() / 2.0, widget.height() / 2.0);
  QWheelEvent event(middle, widget.mapToGlobal(middle.toPoint()), QPoint(), QPoint(0, parts * steps), Qt::NoButton, modifiers,
    Qt::NoScrollPhase, false);
  QApplication::sendEvent(&widget, &event);
}

void Drag(QWidget& widget, Qt::MouseButton button, const QPoint& from, const QPoint& to,
  Qt::KeyboardModifiers modifiers = Qt::NoModifier)
{
  QTest::mousePress(&widget, button, modifiers, from);
  for (int i = 1; i <= 10; ++i)
  {
    const QPoint at = from + (to - from) * i / 10;
    QMouseEvent move(QEvent::MouseMove, at, widget.mapToGlobal(at), Qt::NoButton, button, modifiers);
    QApplication::sendEvent(&widget, &move);
  }
  QTest::mouseRelease(&widget, button, modifiers, to);
}

int CountNear(const QImage& picture, const QColor& color, int tolerance = 12)
{
  int count = 0;
  for (int y = 0; y < picture.height(); ++y)
  {
    for (int x = 0; x < picture.width(); ++x)
    {
      const QColor found = picture.pixelColor(x, y);
      count += std::abs(found.red() - color.red()) <= tolerance && std::abs(found.green() - color.green()) <= tolerance &&
        std::abs(found.blue() - color.blue()) <= tolerance;
    }
  }
  return count;
}

QColor Share(double share)
{
  uint8_t rgb[3];
  rcn_color_palette(rgb, RCN_PALETTE_GREEN, share);
  return QColor(rgb[0], rgb[1], rgb[2]);
}

/// A canvas of a size, on a scene whose picture is easy to read: no cross-hair, opaque colors.
struct Stage
{
  explicit Stage(const TestCase& shown, rcn_view view = RCN_VIEW_AXIAL)
  {
    this->Scene.setCrosshairVisible(false);
    this->Scene.setHeatMapOpacity(1);
    shown.show(this->Scene);
    this->Canvas.reset(new qRcnSliceCanvas(&this->Scene));
    this->Canvas->setView(view);
    this->Canvas->resize(400, 360);
    this->Canvas->show();
  }
  qRcnScene Scene;
  std::unique_ptr<qRcnSliceCanvas> Canvas;
};

TestCase OneVoxel(const rcn_geometry& geometry, const Voxel& at)
{
  TestCase made;
  made.Geometry = geometry;
  made.Images.push_back(MakeVolume(
    geometry, [&at](int64_t x, int64_t y, int64_t z) { return x == at[0] && y == at[1] && z == at[2] ? 1.0 : 0.0; }));
  std::vector<uint8_t> mask(static_cast<size_t>(rcn_geometry_voxels(&geometry)));
  mask[static_cast<size_t>(at[0] + geometry.size[0] * (at[1] + geometry.size[1] * at[2]))] = 1;
  made.Votes = MakeVotes(geometry, { mask });
  return made;
}

} // namespace

class TestSliceCanvas : public QObject
{
  Q_OBJECT
private slots:
  /// A place that is visited is in sight, however far a view is zoomed in and whereto it was moved.
  void visitedPlaceIsInSight_data()
  {
    QTest::addColumn<double>("zoom");
    for (const double zoom : { 0.2, 1.0, 3.0, 8.0, 64.0 })
    {
      QTest::addRow("%g", zoom) << zoom;
    }
  }

  void visitedPlaceIsInSight()
  {
    QFETCH(double, zoom);
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }, 1, 1, 2), { 3, 4, 5 }));
    qRcnSliceCanvas other(&stage.Scene);
    other.setView(RCN_VIEW_CORONAL);
    other.resize(300, 200);
    other.show();
    for (const Voxel& at : { Voxel{ 1, 2, 3 }, Voxel{ 22, 18, 14 }, Voxel{ 12, 10, 8 }, Voxel{ 0, 19, 0 } })
    {
      for (qRcnSliceCanvas* canvas : { stage.Canvas.get(), &other })
      {
        canvas->setZoom(zoom);
        Drag(*canvas, Qt::MiddleButton, { 150, 100 }, { 150 + 2000, 100 - 1500 });
      }
      stage.Scene.visit(at);
      for (qRcnSliceCanvas* canvas : { stage.Canvas.get(), &other })
      {
        QCOMPARE(canvas->zoom(), zoom); // as the reader chose it
        const QPointF place = canvas->placeOf(at);
        QVERIFY2(canvas->rect().adjusted(2, 2, -2, -2).contains(place.toPoint()),
          qPrintable(QString("%1, %2 of %3 x %4").arg(place.x()).arg(place.y()).arg(canvas->width()).arg(canvas->height())));
      }
      // Visited once more after it was moved away: the cursor is the same, and the place comes back.
      Drag(*stage.Canvas, Qt::MiddleButton, { 150, 100 }, { 150 - 3000, 100 });
      stage.Scene.visit(at);
      QVERIFY(stage.Canvas->rect().contains(stage.Canvas->placeOf(at).toPoint()));
    }
  }

  /// What is in sight stays where it is; a click does not move the picture under the hand.
  void pictureStaysWhereThePlaceIsInSight()
  {
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }), { 3, 4, 5 }));
    const QPointF before = stage.Canvas->placeOf({ 0, 0, 0 });
    stage.Scene.visit({ 0, 0, 5 });
    stage.Scene.visit({ 23, 19, 5 });
    QCOMPARE(stage.Canvas->placeOf({ 0, 0, 0 }), before);
    stage.Canvas->setZoom(4);
    const QPointF zoomed = stage.Canvas->placeOf({ 0, 0, 0 });
    qRcnSliceCanvas other(&stage.Scene);
    other.setView(RCN_VIEW_SAGITTAL);
    other.resize(300, 200);
    other.show();
    Drag(other, Qt::MiddleButton, { 150, 100 }, { 150, 100 + 1500 }); // up and down, which the first view does not see
    QTest::mouseClick(stage.Canvas.get(), Qt::LeftButton, Qt::NoModifier, QPoint(3, 3));
    QCOMPARE(stage.Canvas->placeOf({ 0, 0, 0 }), zoomed);
    const double y = other.placeOf(stage.Scene.cursor()).y();
    QVERIFY(y >= 0 && y < 200); // but the other view follows
  }

  /// Colors over the image come with their meaning.
  void colorBarSaysWhatColorsMean()
  {
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }), { 3, 4, 5 }));
    using Content = rcnSliceRenderer::Content;
    const auto bar = [&](
                       Content content = Content::Scene, int number = 0) { return rcnColorBar(stage.Scene, content, number); };
    QCOMPARE(bar().labels(), QStringList({ "none", "1" }));
    QCOMPARE(bar().title(), QStringList("raters"));
    TestCase four = MakePhantom(24, 20, 4, 4);
    four.show(stage.Scene);
    QCOMPARE(bar().labels(), QStringList({ "none", "1", "2", "3", "all 4" }));
    QVERIFY(bar(Content::Rater).isEmpty());
    stage.Scene.setHeatMapVisible(false);
    QVERIFY(bar().isEmpty());
    QCOMPARE(bar(Content::Consensus).labels().size(), 5);

    // A map lies above: its name, how it is read, and per cent.
    stage.Scene.addPrediction("net", MakeLevels(four, 0.9));
    QVERIFY(bar().isEmpty());
    stage.Scene.setShownPrediction(0);
    QCOMPARE(bar().labels().join(' ').replace(QChar(0xa0), ' '), QString("0 % 25 % 50 % 75 % 100 %"));
    QCOMPARE(bar().title(), QStringList({ "net", "expected share" }));
    stage.Scene.setReadout(RCN_READOUT_AT_LEAST, 1);
    QCOMPARE(bar().title(), QStringList({ "net", "at least 1 rater" }));
    stage.Scene.setReadout(RCN_SLICE_LEVEL, 2);
    QCOMPARE(bar(Content::Prediction).title(), QStringList({ "net", "exactly 2 raters" }));
    stage.Scene.setReadout(RCN_READOUT_MORE_THAN_HALF, 0);
    QCOMPARE(bar().title(), QStringList({ "net", "more than half" }));

    // It is in the picture where it is wished for, in the colors of the palette, and goes with B.
    stage.Scene.setPredictionOpacity(0);
    stage.Scene.setContoursVisible(false);
    stage.Scene.setThresholdContourVisible(false);
    stage.Scene.setThreshold(0);
    const QColor top = Share(1), middle = Share(0.6);
    QCOMPARE(CountNear(stage.Canvas->picture(), top, 6), 0);
    stage.Canvas->setColorBar(true);
    QVERIFY(CountNear(stage.Canvas->picture(), top, 6) > 10);
    QVERIFY(CountNear(stage.Canvas->picture(), middle, 6) > 10);
    stage.Scene.setThreshold(0.8); // nothing below it is colored
    QVERIFY(CountNear(stage.Canvas->picture(), top, 6) > 10);
    QVERIFY(CountNear(stage.Canvas->picture(), middle, 6) == 0);
    QTest::keyClick(stage.Canvas.get(), Qt::Key_B);
    QCOMPARE(CountNear(stage.Canvas->picture(), top, 6), 0);
  }

  void voxelsAreWhereTheyShouldBe_data()
  {
    QTest::addColumn<std::vector<double>>("direction");
    QTest::addColumn<double>("thick");
    const double c = std::cos(0.3), s = std::sin(0.3);
    QTest::newRow("plain") << std::vector<double>{ 1, 0, 0, 0, 1, 0, 0, 0, 1 } << 1.0;
    QTest::newRow("anisotropic") << std::vector<double>{ 1, 0, 0, 0, 1, 0, 0, 0, 1 } << 2.7;
    QTest::newRow("flipped") << std::vector<double>{ -1, 0, 0, 0, -1, 0, 0, 0, 1 } << 0.8;
    QTest::newRow("mirrored") << std::vector<double>{ 1, 0, 0, 0, 1, 0, 0, 0, -1 } << 2.0;
    QTest::newRow("sagittal slices") << std::vector<double>{ 0, 0, -1, 1, 0, 0, 0, -1, 0 } << 3.0;
    QTest::newRow("coronal slices") << std::vector<double>{ 1, 0, 0, 0, 0, 1, 0, -1, 0 } << 3.0;
    QTest::newRow("all turned") << std::vector<double>{ 0, 1, 0, 0, 0, 1, 1, 0, 0 } << 1.5;
    QTest::newRow("oblique") << std::vector<double>{ c, -s, 0, s, c, 0, 0, 0, 1 } << 1.5;
    QTest::newRow("oblique and turned") << std::vector<double>{ 0, -c, s, 0, -s, -c, 1, 0, 0 } << 1.5;
  }

  /// One voxel is marked. In each view its color is at the place the canvas gives for it and nowhere else; a click there
  /// moves the cursor to it; and what lies more to the left (the front, the head) in the world is so on the screen.
  void voxelsAreWhereTheyShouldBe()
  {
    QFETCH(std::vector<double>, direction);
    QFETCH(double, thick);
    const rcn_geometry geometry = Lying(direction, 1, 0.8, thick);
    const Voxel at = { 5, 13, 4 };
    for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_CORONAL, RCN_VIEW_SAGITTAL })
    {
      Stage stage(OneVoxel(geometry, at), view);
      qRcnSliceCanvas& canvas = *stage.Canvas;
      stage.Scene.setContoursVisible(false);
      stage.Scene.setCursor(at);
      const QPointF place = canvas.placeOf(at);
      const QImage picture = canvas.picture();
      QVERIFY(picture.rect().contains(place.toPoint()));
      QCOMPARE(picture.pixelColor(place.toPoint()), Share(1));
      // nowhere else: as many pixels as the voxel is large, all around that place
      const rcn_plane& plane = canvas.plane();
      Voxel right = at, up = at;
      right[static_cast<size_t>(plane.right)] += plane.right_sign;
      up[static_cast<size_t>(plane.up)] += plane.up_sign;
      const QPointF toRight = canvas.placeOf(right) - place, toUp = canvas.placeOf(up) - place;
      QVERIFY(toRight.x() > 3 && toUp.y() < -3);
      const double area = toRight.x() * -toUp.y();
      const int marked = CountNear(picture, Share(1), 2);
      QVERIFY2(std::fabs(marked - area) < 0.35 * area + 10, qPrintable(QString("%1 for %2").arg(marked).arg(area)));
      QVERIFY(CountNear(
                picture.copy(QRectF(place - QPointF(toRight.x(), -toUp.y()), QSizeF(2 * toRight.x(), -2 * toUp.y())).toRect()),
                Share(1), 2) == marked);
      // in the proportions of the voxel
      QVERIFY(std::fabs(toRight.x() / -toUp.y() - geometry.spacing[plane.right] / geometry.spacing[plane.up]) < 1e-6);
      // a click anywhere else and then there
      stage.Scene.setCursor({ 0, 0, 0 });
      canvas.setSlice(at[static_cast<size_t>(plane.axis)]);
      QTest::mouseClick(&canvas, Qt::LeftButton, Qt::NoModifier, place.toPoint());
      QVERIFY(stage.Scene.cursor() == at);
      // the world: steps to the right and up on the screen, in RAS
      const auto here = stage.Scene.rasOf(at), there = stage.Scene.rasOf(right), above = stage.Scene.rasOf(up);
      const size_t across = view == RCN_VIEW_SAGITTAL ? 1 : 0, along = view == RCN_VIEW_AXIAL ? 1 : 2;
      QVERIFY(there[across] < here[across]); // to the patient's left, or to the back
      QVERIFY(above[along] > here[along]);   // to the front, or to the head
    }
  }

  void theWheelScrolls_data()
  {
    QTest::addColumn<double>("up");
    QTest::newRow("head first") << 1.0;
    QTest::newRow("feet first") << -1.0;
  }

  void theWheelScrolls()
  {
    QFETCH(double, up);
    const rcn_geometry geometry = Lying({ 1, 0, 0, 0, 1, 0, 0, 0, up });
    Stage stage(OneVoxel(geometry, { 1, 1, 1 }));
    qRcnSliceCanvas& canvas = *stage.Canvas;
    QSignalSpy spy(&canvas, &qRcnSliceCanvas::sliceChanged);
    stage.Scene.setCursor({ 3, 4, 8 });
    QCOMPARE(spy.count(), 1);
    Turn(canvas, 1); // to the head
    QCOMPARE(canvas.slice(), int64_t(8 + up));
    Turn(canvas, -3);
    QCOMPARE(canvas.slice(), int64_t(8 - 2 * up));
    QVERIFY((stage.Scene.cursor() == Voxel{ 3, 4, int64_t(8 - 2 * up) }));
    Turn(canvas, 100);
    QCOMPARE(canvas.slice(), int64_t(up > 0 ? 15 : 0));
    Turn(canvas, -100);
    QCOMPARE(canvas.slice(), int64_t(up > 0 ? 0 : 15));
    // a touch pad: four quarters are a step
    for (int i = 0; i < 4; ++i)
    {
      Turn(canvas, 1, Qt::NoModifier, 30);
    }
    QCOMPARE(canvas.slice(), int64_t(up > 0 ? 1 : 14));
    QTest::keyClick(&canvas, Qt::Key_Up);
    QTest::keyClick(&canvas, Qt::Key_PageUp);
    QCOMPARE(canvas.slice(), int64_t(up > 0 ? 12 : 3));
    QTest::keyClick(&canvas, Qt::Key_Down);
    QTest::keyClick(&canvas, Qt::Key_PageDown);
    QCOMPARE(canvas.slice(), int64_t(up > 0 ? 1 : 14));
    QTest::keyClick(&canvas, Qt::Key_End);
    QCOMPARE(canvas.slice(), int64_t(up > 0 ? 15 : 0));
    QTest::keyClick(&canvas, Qt::Key_Home);
    QCOMPARE(canvas.slice(), int64_t(up > 0 ? 0 : 15));
  }

  void zoomsAndPans()
  {
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }), { 6, 7, 8 }));
    qRcnSliceCanvas& canvas = *stage.Canvas;
    stage.Scene.setCursor({ 6, 7, 8 });
    const QPointF place = canvas.placeOf({ 6, 7, 8 });
    // the point under the mouse stays
    Drag(canvas, Qt::RightButton, place.toPoint(), place.toPoint() - QPoint(0, 100));
    QVERIFY(std::fabs(canvas.zoom() - 2) < 1e-6);
    QVERIFY((canvas.placeOf({ 6, 7, 8 }) - place).manhattanLength() < 2);
    Drag(canvas, Qt::MiddleButton, QPoint(100, 100), QPoint(130, 80));
    QVERIFY((canvas.placeOf({ 6, 7, 8 }) - place - QPointF(30, -20)).manhattanLength() < 2);
    Drag(canvas, Qt::LeftButton, QPoint(130, 80), QPoint(100, 100), Qt::ControlModifier);
    QVERIFY((canvas.placeOf({ 6, 7, 8 }) - place).manhattanLength() < 2);
    QCOMPARE(canvas.picture().pixelColor(place.toPoint()), Share(1));
    QVERIFY((stage.Scene.cursor() == Voxel{ 6, 7, 8 })); // none of it was a click
    Turn(canvas, 4, Qt::ControlModifier);
    QVERIFY(std::fabs(canvas.zoom() - 4) < 1e-6);
    QTest::keyClick(&canvas, Qt::Key_Minus);
    QTest::keyClick(&canvas, Qt::Key_Plus);
    QVERIFY(std::fabs(canvas.zoom() - 4) < 1e-6);
    canvas.setZoom(1e9);
    QVERIFY(canvas.zoom() <= 64);
    canvas.picture();
    canvas.setZoom(-1);
    QVERIFY(canvas.zoom() > 0);
    canvas.picture();
    QTest::keyClick(&canvas, Qt::Key_R);
    QCOMPARE(canvas.zoom(), 1.0);
    QVERIFY((canvas.placeOf({ 6, 7, 8 }) - place).manhattanLength() < 1e-6);
  }

  /// Zoom and place are those of all views.
  void viewsAreLinked()
  {
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }), { 6, 7, 8 }));
    qRcnSliceCanvas& axial = *stage.Canvas;
    qRcnSliceCanvas coronal(&stage.Scene);
    coronal.setView(RCN_VIEW_CORONAL);
    coronal.resize(axial.size());
    coronal.show();
    const QPointF before = coronal.placeOf({ 6, 7, 8 });
    axial.setZoom(3);
    QCOMPARE(coronal.zoom(), 3.0);
    // To the right in one is to the right in the other; what the other does not show does not move it.
    const QPointF zoomed = coronal.placeOf({ 6, 7, 8 });
    QVERIFY(zoomed != before);
    Drag(axial, Qt::MiddleButton, QPoint(100, 100), QPoint(140, 130));
    const QPointF moved = coronal.placeOf({ 6, 7, 8 }) - zoomed;
    QVERIFY(moved.x() > 10);
    QVERIFY(std::fabs(moved.y()) < 1e-6);
    // A view that is made later is there, too, and another case starts with all of it.
    qRcnSliceCanvas late(&stage.Scene);
    late.resize(axial.size());
    QVERIFY((late.placeOf({ 6, 7, 8 }) - axial.placeOf({ 6, 7, 8 })).manhattanLength() < 1e-6);
    QTest::keyClick(&coronal, Qt::Key_R);
    QCOMPARE(axial.zoom(), 1.0);
    QVERIFY((coronal.placeOf({ 6, 7, 8 }) - before).manhattanLength() < 1e-6);
  }

  /// As in 3D Slicer: so many pixels through the range of the image, to the right wider, up to a higher level.
  void dragsTheWindow()
  {
    const rcn_geometry geometry = rcn_geometry_make(40, 40, 1);
    TestCase ramp;
    ramp.Geometry = geometry;
    ramp.Images.push_back(MakeVolume(geometry, [](int64_t x, int64_t, int64_t) { return 10.0 * double(x); }));
    Stage stage(ramp);
    qRcnSliceCanvas& canvas = *stage.Canvas;
    stage.Scene.setWindow(100, 300);
    const QPoint middle = canvas.placeOf({ 20, 20, 0 }).toPoint();
    const int before = canvas.picture().pixelColor(middle).red();
    QVERIFY(std::abs(before - 128) < 4);
    const double gain = (stage.Scene.highest() - stage.Scene.lowest()) / std::min(canvas.width(), canvas.height());
    QVERIFY(std::fabs(stage.Scene.highest() - stage.Scene.lowest() - 390) < 10);
    Drag(canvas, Qt::LeftButton, QPoint(100, 100), QPoint(160, 100));
    QVERIFY(std::fabs(stage.Scene.white() - stage.Scene.black() - 200 - 60 * gain) < 1e-6);
    QVERIFY(std::fabs(stage.Scene.white() + stage.Scene.black() - 400) < 1e-6);
    Drag(canvas, Qt::LeftButton, QPoint(100, 150), QPoint(100, 90)); // a higher level: darker
    QVERIFY(std::fabs((stage.Scene.white() + stage.Scene.black()) / 2 - 200 - 60 * gain) < 1e-6);
    QVERIFY(canvas.picture().pixelColor(middle).red() < before - 20);
    Drag(canvas, Qt::LeftButton, QPoint(290, 100), QPoint(-5000, 100)); // never to nothing
    QVERIFY(stage.Scene.white() > stage.Scene.black());
    QVERIFY((stage.Scene.cursor() == Voxel{ 20, 20, 0 }));
    QTest::keyClick(&canvas, Qt::Key_R);
    QVERIFY(std::fabs(stage.Scene.white() - 390) < 5);
  }

  void tellsWhatIsUnderTheMouse()
  {
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }), { 6, 7, 8 }));
    qRcnSliceCanvas& canvas = *stage.Canvas;
    QSignalSpy spy(&canvas, &qRcnSliceCanvas::cursorMoved);
    const QPoint place = canvas.placeOf({ 2, 17, 8 }).toPoint();
    const QPoint global = canvas.mapToGlobal(place);
    QMouseEvent move(QEvent::MouseMove, place, global, Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&canvas, &move);
    QCOMPARE(spy.count(), 1);
    QCOMPARE(spy[0], QVariantList({ true, 2, 17, 8 }));
    QVERIFY((stage.Scene.cursor() == Voxel{ 12, 10, 8 }));
    QMouseEvent follow(QEvent::MouseMove, place, global, Qt::NoButton, Qt::NoButton, Qt::ShiftModifier);
    QApplication::sendEvent(&canvas, &follow);
    QVERIFY((stage.Scene.cursor() == Voxel{ 2, 17, 8 }));
    QMouseEvent away(
      QEvent::MouseMove, QPoint(1, 1), canvas.mapToGlobal(QPoint(1, 1)), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    canvas.setZoom(0.5);
    QApplication::sendEvent(&canvas, &away);
    QCOMPARE(spy.last()[0].toBool(), false);
    QEvent leave(QEvent::Leave);
    QApplication::sendEvent(&canvas, &leave);
    QCOMPARE(spy.last()[0].toBool(), false);
    QSignalSpy twice(&canvas, &qRcnSliceCanvas::doubleClicked);
    QTest::mouseDClick(&canvas, Qt::LeftButton);
    QCOMPARE(twice.count(), 1);
  }

  /// Each rater's outline is there in its color, and goes with its key; the heat map has the colors of its levels.
  void ratersComeAndGo()
  {
    Stage stage(MakePhantom(120, 110, 12, 5));
    qRcnSliceCanvas& canvas = *stage.Canvas;
    QTest::keyClick(&canvas, Qt::Key_H);
    QVERIFY(!stage.Scene.isHeatMapVisible());
    int lines[5];
    for (int r = 0; r < 5; ++r)
    {
      lines[r] = CountNear(canvas.picture(), stage.Scene.raterColor(r));
    }
    QVERIFY(*std::max_element(lines, lines + 5) > 100);
    for (int r = 0; r < 5; ++r)
    {
      if (lines[r] < 20)
      {
        continue; // overlooked on this slice
      }
      QTest::keyClick(&canvas, static_cast<Qt::Key>(Qt::Key_1 + r));
      QVERIFY(!stage.Scene.isRaterVisible(r));
      QVERIFY(CountNear(canvas.picture(), stage.Scene.raterColor(r)) < lines[r] / 10);
      QTest::keyClick(&canvas, static_cast<Qt::Key>(Qt::Key_1 + r));
      QCOMPARE(CountNear(canvas.picture(), stage.Scene.raterColor(r)), lines[r]);
    }
    QTest::keyClick(&canvas, Qt::Key_C);
    for (int r = 0; r < 5; ++r)
    {
      QVERIFY(CountNear(canvas.picture(), stage.Scene.raterColor(r)) < std::max(lines[r] / 10, 3));
    }
    // gray image below: colors belong to levels alone
    QTest::keyClick(&canvas, Qt::Key_H);
    int seen = 0;
    for (int k = 1; k <= 5; ++k)
    {
      stage.Scene.setIsolatedLevel(-1);
      const int all = CountNear(canvas.picture(), Share(k / 5.0), 2);
      stage.Scene.setIsolatedLevel(k);
      QCOMPARE(CountNear(canvas.picture(), Share(k / 5.0), 2), all);
      for (int other = 1; other <= 5; ++other)
      {
        QVERIFY(other == k || CountNear(canvas.picture(), Share(other / 5.0), 2) == 0);
      }
      seen += all > 0;
    }
    QVERIFY(seen >= 3);
  }

  /// Lines around other things: those of raters go with the raters' outlines, those of maps with the contour of the prediction.
  void outlinesOfOtherThings()
  {
    const TestCase one = MakePhantom(24, 20, 3, 3);
    Stage stage(one);
    stage.Scene.setHeatMapVisible(false);
    for (int r = 0; r < 3; ++r)
    {
      stage.Scene.setRaterVisible(r, false); // they would be drawn over it
    }
    const QColor own(250, 0, 250), others(0, 250, 250);
    const auto picture = [&stage] { return stage.Canvas->grab().toImage(); };
    QCOMPARE(CountNear(picture(), own) + CountNear(picture(), others), 0);
    std::vector<float> anybody;
    const rcn_pattern* patterns = rcn_votes_patterns(one.Votes.get());
    for (int64_t p = 0; p < rcn_votes_pattern_count(one.Votes.get()); ++p)
    {
      anybody.push_back(patterns[p].marked ? 1.0f : 0.0f);
    }
    // Everything but a frame.
    const rcn::Volume map =
      MakeVolume(one.Geometry, [](int64_t x, int64_t y, int64_t) { return x > 1 && x < 22 && y > 1 && y < 18 ? 0.8 : 0.0; });
    qRcnScene::Outline raters, share;
    raters.Color = own;
    raters.Table = anybody;
    share.Color = others;
    share.Map = map;
    stage.Scene.setOutlines({ raters, share });
    QVERIFY(CountNear(picture(), own) > 50 && CountNear(picture(), others) > 100);
    stage.Scene.setContoursVisible(false);
    QCOMPARE(CountNear(picture(), own), 0);
    QVERIFY(CountNear(picture(), others) > 100);
    stage.Scene.setContoursVisible(true);
    stage.Scene.setThresholdContourVisible(false);
    QVERIFY(CountNear(picture(), own) > 50);
    QCOMPARE(CountNear(picture(), others), 0);
    stage.Scene.setThresholdContourVisible(true);
    stage.Scene.setThreshold(0.9);
    QCOMPARE(CountNear(picture(), others), 0);
    // Other votes of the same raters are drawn at once.
    const auto nobody = std::vector<uint8_t>(24 * 20 * 3);
    stage.Scene.setVotes(MakeVotes(one.Geometry, { nobody, nobody, nobody }));
    QCOMPARE(CountNear(picture(), own), 0);
    stage.Scene.setHeatMapVisible(true);
    QCOMPARE(CountNear(picture(), Share(1)), 0);
    stage.Scene.setVotes(one.Votes);
    QVERIFY(CountNear(picture(), Share(1)) > 50);
  }

  void predictionsLieOverTheImage()
  {
    const TestCase one = MakePhantom(120, 110, 12, 4);
    Stage stage(one);
    qRcnSliceCanvas& canvas = *stage.Canvas;
    stage.Scene.setHeatMapVisible(false);
    stage.Scene.setContoursVisible(false);
    stage.Scene.setPredictionOpacity(1);
    stage.Scene.setWindow(-1000, 1000); // an even gray
    const QImage bare = canvas.picture();
    QCOMPARE(CountNear(bare, Share(0.95), 3), 0);
    stage.Scene.addPrediction("Model", MakeLevels(one, 0.96));
    stage.Scene.setReadout(RCN_READOUT_MAJORITY, 0);
    QCOMPARE(canvas.picture(), bare);
    QTest::keyClick(&canvas, Qt::Key_P);
    QCOMPARE(stage.Scene.shownPrediction(), 0);
    const QImage shown = canvas.picture();
    const int white = CountNear(shown, Qt::white, 8), sure = CountNear(shown, Share(0.98), 5);
    QVERIFY(white > CountNear(bare, Qt::white, 8) + 50); // the threshold's contour
    QVERIFY(sure > 100);
    stage.Scene.setThresholdContourVisible(false);
    QVERIFY(CountNear(canvas.picture(), Qt::white, 8) < white / 2);
    // without the contour the colors end at the threshold
    stage.Scene.setThreshold(0.999);
    QCOMPARE(CountNear(canvas.picture(), Share(0.98), 5), 0);
    stage.Scene.setThreshold(0.5);
    stage.Scene.setReadout(RCN_READOUT_AT_LEAST, 4);
    QVERIFY(CountNear(canvas.picture(), Share(0.96), 5) < sure);
    // iso-contours bring the levels' colors
    stage.Scene.setReadout(RCN_READOUT_EXPECTED, 0);
    stage.Scene.setPredictionOpacity(0);
    QVERIFY(CountNear(canvas.picture(), Share(0.5), 6) < 5);
    stage.Scene.setLevelContoursVisible(true);
    QVERIFY(CountNear(canvas.picture(), Share(0.5), 6) > 20);
    stage.Scene.setLevelContoursVisible(false);
    // highlighted voxels are magenta: those of level 2 have an expected share near one half
    stage.Scene.setHighlight(0.45, 0.55);
    const QColor magenta(255, 0, 200);
    QVERIFY(CountNear(canvas.picture(), magenta, 45) > 20);
    stage.Scene.setHighlight(-1, -1);
    QCOMPARE(CountNear(canvas.picture(), magenta, 45), 0);
    QTest::keyClick(&canvas, Qt::Key_P);
    QCOMPARE(stage.Scene.shownPrediction(), -1);
    QCOMPARE(canvas.picture(), bare);
  }

  void showsWhateverComes()
  {
    // nothing
    qRcnScene scene;
    qRcnSliceCanvas canvas(&scene);
    canvas.resize(200, 200);
    QCOMPARE(CountNear(canvas.picture(), Qt::black, 0), 200 * 200);
    Turn(canvas, 1);
    QTest::mouseClick(&canvas, Qt::LeftButton);
    QTest::keyClick(&canvas, Qt::Key_R);
    Drag(canvas, Qt::RightButton, QPoint(10, 10), QPoint(10, 60));
    Drag(canvas, Qt::MiddleButton, QPoint(10, 10), QPoint(10, 60));
    // a constant image: gray, no crash
    scene.setCrosshairVisible(false);
    TestCase one;
    one.Geometry = rcn_geometry_make(30, 30, 4);
    one.Images.push_back(MakeVolume(one.Geometry, [](int64_t, int64_t, int64_t) { return -3.0; }));
    one.show(scene);
    QVERIFY(std::abs(canvas.picture().pixelColor(100, 120).red() - 128) <= 2);
    // masks without an image: colors over black
    const rcn_geometry flat = rcn_geometry_make(30, 30, 1);
    std::vector<uint8_t> mask(900, 0);
    std::fill(mask.begin() + 300, mask.begin() + 600, 1);
    TestCase masks;
    masks.Geometry = flat;
    masks.Votes = MakeVotes(flat, { mask });
    masks.show(scene);
    scene.setHeatMapOpacity(1);
    QCOMPARE(canvas.picture().pixelColor(100, 100), Share(1));
    QCOMPARE(canvas.picture().pixelColor(100, 40), QColor(Qt::black));
    // a color picture, as it is stored, y down; no window to speak of
    QTemporaryDir folder;
    QImage colors(8, 8, QImage::Format_RGB888);
    colors.fill(Qt::blue);
    for (int i = 0; i < 32; ++i)
    {
      colors.setPixelColor(i % 8, i / 8, QColor(200, 100, 0)); // above
    }
    QVERIFY(colors.save(folder.filePath("colors.png")));
    TestCase picture;
    picture.Images.push_back(rcn::ReadImage(folder.filePath("colors.png").toStdString()));
    picture.Geometry = picture.Images[0].Geometry();
    picture.show(scene);
    QCOMPARE(canvas.picture().pixelColor(100, 50), QColor(200, 100, 0));
    QCOMPARE(canvas.picture().pixelColor(100, 150), QColor(Qt::blue));
    // many raters, some of whom did not answer
    std::vector<std::vector<uint8_t>> sixtyFour(64, mask);
    sixtyFour[3].clear();
    for (size_t r = 0; r < 64; ++r)
    {
      for (size_t i = 0; i < 10 && !sixtyFour[r].empty(); ++i)
      {
        sixtyFour[r][(37 * r + 11 * i) % 900] ^= 1;
      }
    }
    masks.Votes = MakeVotes(flat, sixtyFour);
    masks.show(scene);
    QCOMPARE(scene.raterCount(), 64);
    QVERIFY(!scene.isRaterPresent(3));
    QVERIFY(CountNear(canvas.picture(), Qt::black, 0) < 200 * 200);
    // a case goes while it is shown
    scene.clear();
    QCOMPARE(CountNear(canvas.picture(), Qt::black, 0), 200 * 200);
  }

  void crosshairCanBeHidden()
  {
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }), { 6, 7, 8 }));
    const QImage without = stage.Canvas->picture();
    QTest::keyClick(stage.Canvas.get(), Qt::Key_X);
    const QImage with = stage.Canvas->picture();
    QVERIFY(with != without);
    // through the cursor's voxel, with a gap in the middle
    const QPoint at = stage.Canvas->placeOf(stage.Scene.cursor()).toPoint();
    QVERIFY(with.pixelColor(at.x() - 40, at.y()) != without.pixelColor(at.x() - 40, at.y()));
    QVERIFY(with.pixelColor(at.x(), at.y() + 40) != without.pixelColor(at.x(), at.y() + 40));
    QCOMPARE(with.pixelColor(at), without.pixelColor(at));
    QTest::keyClick(stage.Canvas.get(), Qt::Key_X);
    QCOMPARE(stage.Canvas->picture(), without);
  }

  void keysOfOthersPassThrough()
  {
    Stage stage(OneVoxel(Lying({ 1, 0, 0, 0, 1, 0, 0, 0, 1 }), { 6, 7, 8 }));
    QKeyEvent copy(QEvent::KeyPress, Qt::Key_C, Qt::ControlModifier);
    QApplication::sendEvent(stage.Canvas.get(), &copy);
    QVERIFY(!copy.isAccepted());
    QVERIFY(stage.Scene.areContoursVisible());
    for (const auto& shortcut : qRcnSliceCanvas::shortcuts())
    {
      QVERIFY(!shortcut.first.isEmpty() && !shortcut.second.isEmpty());
    }
  }
};

QTEST_MAIN(TestSliceCanvas)
#include "test_qRcnSliceCanvas.moc"
