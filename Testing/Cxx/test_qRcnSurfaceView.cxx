// SPDX-License-Identifier: Apache-2.0
/// The levels in 3-D, as a person sees them: surfaces come, turn with the mouse, follow palette, legend and prediction, and
/// cost nothing while they are hidden.
#include <QtTest>

#include <QSignalSpy>
#include <QWheelEvent>

#include "qRcnOrthogonalViews.h"
#include "qRcnSliceView.h"
#include "qRcnSurfaceView.h"
#include "rcnSceneTest.h"

namespace
{

constexpr int Patience = 60000; // ms

bool Settle(qRcnSurfaceView& view)
{
  return QTest::qWaitFor([&view] { return !view.isBusy() && !view.drawn().isNull(); }, Patience);
}

/// Pixels that are not background.
int Covered(const QImage& picture)
{
  int count = 0;
  for (int y = 0; y < picture.height(); ++y)
  {
    for (int x = 0; x < picture.width(); ++x)
    {
      const QRgb pixel = picture.pixel(x, y);
      count += std::abs(qRed(pixel) - 26) + std::abs(qGreen(pixel) - 26) + std::abs(qBlue(pixel) - 26) > 15;
    }
  }
  return count;
}

void Drag(QWidget& widget, Qt::MouseButton button, const QPoint& from, const QPoint& to)
{
  QTest::mousePress(&widget, button, Qt::NoModifier, from);
  QMouseEvent move(QEvent::MouseMove, to, widget.mapToGlobal(to), Qt::NoButton, button, Qt::NoModifier);
  QApplication::sendEvent(&widget, &move);
  QTest::mouseRelease(&widget, button, Qt::NoModifier, to);
}

} // namespace

class TestSurfaceView : public QObject
{
  Q_OBJECT

  qRcnScene Scene;
  std::unique_ptr<qRcnSurfaceView> View;

private slots:
  void init()
  {
    this->View = std::make_unique<qRcnSurfaceView>(&this->Scene);
    if (!this->View->problem().isEmpty())
    {
      QSKIP(qPrintable(this->View->problem()));
    }
    this->View->resize(300, 240);
    this->Scene.setThreshold(0.5);
    MakePhantom(48, 44, 20, 3).show(this->Scene);
  }

  void cleanup()
  {
    this->View.reset();
    this->Scene.clear();
  }

  void showsLevels()
  {
    QVERIFY(this->View->surfaces().empty()); // nobody looks
    this->View->show();
    QVERIFY(QTest::qWaitFor([this] { return this->View->surfaces().size() == 3; }, Patience));
    QVERIFY(Settle(*this->View));
    QCOMPARE(this->View->drawn().size(), QSize(300, 240));
    const int covered = Covered(this->View->drawn());
    QVERIFY2(covered > 3000 && covered < 60000, qPrintable(QString::number(covered)));
    QVERIFY(this->View->description().contains("VTK"));
    // One level alone, and another palette.
    const QImage all = this->View->drawn();
    this->Scene.setIsolatedLevel(3);
    QVERIFY(Settle(*this->View));
    QVERIFY(Covered(this->View->drawn()) < covered);
    this->Scene.setIsolatedLevel(-1);
    QVERIFY(Settle(*this->View));
    QCOMPARE(Covered(this->View->drawn()), covered);
    this->Scene.setLevelPalette(static_cast<rcn_palette>(1));
    QVERIFY(Settle(*this->View));
    QVERIFY(this->View->drawn() != all);
    this->Scene.setLevelPalette(RCN_PALETTE_GREEN);
  }

  /// A place of the patient moves as the hand does: what is in front is grasped.
  void turnsWithTheMouse()
  {
    this->View->show();
    QVERIFY(Settle(*this->View));
    const QImage before = this->View->drawn();
    const double* box = this->View->surfaces().front().Mesh->GetBounds();
    const std::array<double, 3> front = { (box[0] + box[1]) / 2, box[3], (box[4] + box[5]) / 2 };
    const std::array<double, 3> left = { box[0], (box[2] + box[3]) / 2, front[2] }, right = { box[1], left[1], front[2] };
    const std::array<double, 3> head = { front[0], left[1], box[5] };
    // From the front: the patient's left is on the right, the head above.
    QVERIFY(this->View->placeOf(left).x() > this->View->placeOf(right).x());
    QVERIFY(this->View->placeOf(head).y() < this->View->placeOf(front).y());
    const QPointF place = this->View->placeOf(front);
    Drag(*this->View, Qt::LeftButton, QPoint(150, 120), QPoint(180, 120));
    QVERIFY(this->View->placeOf(front).x() > place.x() + 3);
    Drag(*this->View, Qt::LeftButton, QPoint(150, 120), QPoint(150, 150));
    QVERIFY(this->View->placeOf(front).y() > place.y() + 3);
    QVERIFY(Settle(*this->View));
    QVERIFY(this->View->drawn() != before);
    // Half a turn is the view's height.
    this->View->resetView();
    Drag(*this->View, Qt::LeftButton, QPoint(20, 120), QPoint(260, 120));
    QVERIFY(this->View->placeOf(left).x() < this->View->placeOf(right).x());
    // Zoom by wheel and drag, move by the middle button, and back.
    this->View->resetView();
    QVERIFY(Settle(*this->View));
    const int covered = Covered(this->View->drawn());
    QWheelEvent turn(
      QPointF(9, 9), QPointF(9, 9), QPoint(), QPoint(0, -480), Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(this->View.get(), &turn);
    QCOMPARE(this->View->zoom(), 0.5);
    QVERIFY(Settle(*this->View));
    QVERIFY(Covered(this->View->drawn()) < covered / 2);
    Drag(*this->View, Qt::RightButton, QPoint(100, 200), QPoint(100, 100));
    QCOMPARE(this->View->zoom(), 1.0);
    Drag(*this->View, Qt::MiddleButton, QPoint(100, 100), QPoint(130, 90));
    // The middle follows the hand.
    const std::array<double, 3> middle = { front[0], left[1], front[2] };
    QVERIFY((this->View->placeOf(middle) - QPointF(180, 110)).manhattanLength() < 2);
    QTest::keyClick(this->View.get(), Qt::Key_R);
    QVERIFY(Settle(*this->View));
    QCOMPARE(this->View->drawn(), before);
  }

  /// Where the picture says a surface is, there it is drawn.
  void placesAreTrue()
  {
    this->View->show();
    QVERIFY(Settle(*this->View));
    const vtkSmartPointer<vtkPolyData> mesh = this->View->surfaces().back().Mesh;
    int seen = 0, points = 0;
    for (vtkIdType p = 0; p < mesh->GetNumberOfPoints(); p += 11, ++points)
    {
      const double* at = mesh->GetPoint(p);
      const QPoint place = this->View->placeOf({ at[0], at[1], at[2] }).toPoint();
      const QRgb pixel = this->View->drawn().pixel(place);
      seen += qGreen(pixel) > 40;
    }
    QVERIFY2(points > 20 && seen > 0.95 * points, qPrintable(QString("%1 of %2").arg(seen).arg(points)));
  }

  void followsPredictions()
  {
    this->View->show();
    QVERIFY(Settle(*this->View));
    const TestCase one = MakePhantom(48, 44, 20, 3);
    this->Scene.setShownPrediction(this->Scene.addPrediction("model", MakeLevels(one, 0.8)));
    QVERIFY(Settle(*this->View));
    QCOMPARE(this->View->surfaces().size(), size_t(3));
    this->Scene.setThreshold(0.99); // nobody is so sure
    QVERIFY(QTest::qWaitFor([this] { return this->View->surfaces().empty(); }, Patience));
    this->View->grab();
    this->Scene.setShownPrediction(-1);
    QVERIFY(QTest::qWaitFor([this] { return this->View->surfaces().size() == 3; }, Patience));
  }

  /// Another threshold, model or level is seen from where the person looks, another case from the front and all of it.
  void looksAtTheCase()
  {
    this->View->show();
    QVERIFY(Settle(*this->View));
    const QQuaternion front = this->View->rotation();
    const TestCase one = MakePhantom(48, 44, 20, 3);
    const std::array<double, 3> place = this->Scene.rasOf({ 24, 22, 10 });
    Drag(*this->View, Qt::LeftButton, QPoint(150, 120), QPoint(190, 140));
    Drag(*this->View, Qt::RightButton, QPoint(100, 100), QPoint(100, 140));
    Drag(*this->View, Qt::MiddleButton, QPoint(100, 100), QPoint(130, 90));
    const QQuaternion turned = this->View->rotation();
    const double zoom = this->View->zoom();
    const QPointF seen = this->View->placeOf(place);
    const auto kept = [&] {
      return Settle(*this->View) && this->View->rotation() == turned && this->View->zoom() == zoom &&
        this->View->placeOf(place) == seen;
    };
    QVERIFY(turned != front && zoom != 1);
    this->Scene.setIsolatedLevel(2);
    QVERIFY(kept());
    this->Scene.setIsolatedLevel(-1);
    this->Scene.setShownPrediction(this->Scene.addPrediction("model", MakeLevels(one, 0.8)));
    QVERIFY(kept());
    const auto extent = [this] {
      const double* box = this->View->surfaces().front().Mesh->GetBounds();
      return box[1] - box[0];
    };
    const double before = extent();
    this->Scene.setThreshold(0.7);
    QVERIFY(kept());
    QVERIFY2(!this->View->surfaces().empty() && extent() != before, "the threshold must change the surfaces");
    // Of a case that lies elsewhere and is larger, the middle is in the middle, and all of it is in the picture.
    MakePhantom(96, 88, 40, 3, { 500, 0, -900 }).show(this->Scene);
    QVERIFY(this->View->surfaces().empty()); // not those of the former case
    QVERIFY(QTest::qWaitFor([this] { return !this->View->surfaces().empty(); }, Patience));
    QVERIFY(Settle(*this->View));
    QCOMPARE(this->View->rotation(), front);
    QCOMPARE(this->View->zoom(), 1.0);
    const double* box = this->View->surfaces().front().Mesh->GetBounds();
    const std::array<double, 3> middle = { (box[0] + box[1]) / 2, (box[2] + box[3]) / 2, (box[4] + box[5]) / 2 };
    QVERIFY((this->View->placeOf(middle) - QPointF(150, 120)).manhattanLength() < 1);
    const QImage& drawn = this->View->drawn();
    QVERIFY(Covered(drawn) > 3000);
    QCOMPARE(Covered(drawn.copy(0, 0, 300, 1)) + Covered(drawn.copy(0, 239, 300, 1)), 0);
  }

  /// A case that was opened while the view was hidden.
  void looksAtTheCaseWhenItIsShownAgain()
  {
    this->View->show();
    QVERIFY(Settle(*this->View));
    Drag(*this->View, Qt::MiddleButton, QPoint(100, 100), QPoint(200, 90));
    this->View->hide();
    MakePhantom(64, 60, 24, 4, { 0, -300, 0 }).show(this->Scene);
    this->View->show();
    QVERIFY(QTest::qWaitFor([this] { return this->View->surfaces().size() == 4; }, Patience));
    const double* box = this->View->surfaces().front().Mesh->GetBounds();
    const std::array<double, 3> middle = { (box[0] + box[1]) / 2, (box[2] + box[3]) / 2, (box[4] + box[5]) / 2 };
    QVERIFY((this->View->placeOf(middle) - QPointF(150, 120)).manhattanLength() < 1);
  }

  /// Another case while surfaces are made, and the end of the view at any moment.
  void survives()
  {
    this->View->show();
    for (int i = 0; i < 5; ++i)
    {
      MakePhantom(40 + 4 * i, 44, 20, 2 + i % 3).show(this->Scene);
      QApplication::processEvents();
    }
    QVERIFY(QTest::qWaitFor([this] { return !this->View->isBusy() && this->View->surfaces().size() == 3; }, Patience));
    this->Scene.clear();
    QVERIFY(QTest::qWaitFor([this] { return this->View->surfaces().empty(); }, Patience));
    MakePhantom(60, 60, 30, 5).show(this->Scene);
    this->View.reset(); // at work
  }

  void fourthView()
  {
    qRcnOrthogonalViews views(&this->Scene);
    auto* fourth = new qRcnSurfaceView(&this->Scene);
    views.setFourthView(fourth);
    views.resize(800, 600);
    views.show();
    QVERIFY(fourth->isVisible());
    QVERIFY(Settle(*fourth));
    QTRY_VERIFY(std::abs(fourth->width() - fourth->height()) < 150);
    views.setMaximized(qRcnOrthogonalViews::FourthView);
    QVERIFY(fourth->isVisible() && !views.view(RCN_VIEW_AXIAL)->isVisible());
    views.setMaximized(-1);
    views.setFourthViewWanted(false);
    QVERIFY(!fourth->isVisible());
    QTRY_VERIFY(views.view(RCN_VIEW_AXIAL)->height() > 500); // as before there was one
    views.setFourthViewWanted(true);
    QVERIFY(fourth->isVisible());
    // An image alone, and one slice, have no surfaces.
    const TestCase one = MakePhantom(40, 40, 12, 2);
    this->Scene.setCase(one.Images, nullptr, one.Geometry, {});
    QVERIFY(!fourth->isVisible());
    MakePhantom(40, 40, 1, 2).show(this->Scene);
    QVERIFY(!fourth->isVisible());
    one.show(this->Scene);
    QVERIFY(fourth->isVisible());
    views.resize(300, 900);
    QApplication::processEvents();
    QVERIFY(fourth->isVisible());
    QTRY_COMPARE(fourth->x(), views.view(RCN_VIEW_AXIAL)->x());
  }
};

QTEST_MAIN(TestSurfaceView)
#include "test_qRcnSurfaceView.moc"
