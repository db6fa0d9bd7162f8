// SPDX-License-Identifier: Apache-2.0
#include "qRcnSurfaceView.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QVector3D>
#include <QWheelEvent>
#include <QtMath>

#include "qRcnJob.h"
#include "qRcnStyle.h"
#include "rcnError.h"

namespace
{

const QColor TEXT_COLOR(225, 225, 225);

QVector3D VectorOf(const std::array<double, 3>& from)
{
  return QVector3D(static_cast<float>(from[0]), static_cast<float>(from[1]), static_cast<float>(from[2]));
}

std::array<double, 3> ArrayOf(const QVector3D& from)
{
  return { from.x(), from.y(), from.z() };
}

} // namespace

qRcnSurfaceView::qRcnSurfaceView(qRcnScene* scene, QWidget* parent)
  : QWidget(parent), Scene(scene), Renderer(new rcnSurfaceRenderer(this)), Extracting(new qRcnJob(this))
{
  this->setAttribute(Qt::WA_OpaquePaintEvent);
  this->setFocusPolicy(Qt::ClickFocus);
  this->setAccessibleName(tr("Surfaces of the levels in 3-D"));
  connect(scene, &qRcnScene::changed, this, &qRcnSurfaceView::follow);
  connect(this->Extracting, &qRcnJob::idle, this, QOverload<>::of(&QWidget::update));
  connect(this->Renderer, &rcnSurfaceRenderer::failed, this, &qRcnSurfaceView::failed);
  connect(this->Renderer, &rcnSurfaceRenderer::rendered, this, [this](const QImage& picture) {
    this->Drawn = picture;
    this->update();
  });
  this->resetView();
}

qRcnSurfaceView::~qRcnSurfaceView() = default;

std::vector<std::pair<QString, QString>> qRcnSurfaceView::shortcuts()
{
  return {
    { tr("Left drag in 3-D"), tr("turn") },
    { tr("Wheel, right drag in 3-D"), tr("zoom") },
    { tr("Middle drag in 3-D"), tr("move") },
    { tr("R after a click in 3-D"), tr("all of it, from the front") },
  };
}

bool qRcnSurfaceView::isBusy() const
{
  return this->isVisible() && (this->Extracting->isRunning() || this->Renderer->isBusy());
}

// ---- what is shown

bool qRcnSurfaceView::Source::isSame(const Source& other) const
{
  return this->Votes == other.Votes && this->Prediction.Data() == other.Prediction.Data() &&
    this->Threshold == other.Threshold && this->Name == other.Name;
}

qRcnSurfaceView::Source qRcnSurfaceView::source() const
{
  Source source;
  const int shown = this->Scene->shownPrediction();
  if (shown >= 0)
  {
    source.Prediction = this->Scene->prediction(shown).volume();
    source.Threshold = std::max(this->Scene->threshold(), 0.001);
    source.Name = this->Scene->prediction(shown).Name;
  }
  else
  {
    source.Votes = this->Scene->sharedVotes();
  }
  return source;
}

void qRcnSurfaceView::follow(qRcnScene::Changes what)
{
  if (what & (qRcnScene::Case | qRcnScene::Votes))
  {
    // Another patient or structure lies elsewhere. Its surfaces take a moment: until they are there nothing is shown, rather
    // than the former ones under a new title and cursor.
    this->Surfaces.clear();
    this->Parts.reset();
    this->Drawn = QImage();
    this->Made = Source();
    this->Framed = false;
  }
  if (what & qRcnScene::Case)
  {
    this->resetView();
  }
  if (what & (qRcnScene::Case | qRcnScene::Overlay | qRcnScene::Contours | qRcnScene::Predictions))
  {
    this->extract();
  }
  this->update();
}

void qRcnSurfaceView::extract()
{
  const Source source = this->source();
  if (!this->isVisible() || !this->problem().isEmpty())
  {
    return; // when it is shown
  }
  if (source.isSame(this->Made))
  {
    this->color();
    return;
  }
  this->Made = source;
  this->Extracting->startInstead(tr("Surfaces"), [=](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    rcn::SurfaceOptions options;
    options.Canceled = [&monitor] { return monitor.isCanceled(); };
    const auto context = qRcnScene::makeContext(0);
    std::vector<rcn::Surface> surfaces;
    if (source.Prediction.Data())
    {
      surfaces = rcn::LevelSurfaces(context.get(), source.Prediction, source.Threshold, options);
    }
    else if (source.Votes)
    {
      surfaces = rcn::LevelSurfaces(context.get(), source.Votes.get(), options);
    }
    return [this, surfaces, source] {
      if (!source.isSame(this->Made))
      {
        return; // of a case that was left while the view was hidden, when nothing starts instead
      }
      this->Surfaces = surfaces;
      if (!this->Framed)
      {
        this->measure();
      }
      this->color();
    };
  });
}

void qRcnSurfaceView::measure()
{
  // Once for each case, and when a person asks: were it measured for every threshold and model, what is compared would
  // always fill the view and never look larger or smaller. Nothing cannot be measured: the first surfaces that come are.
  this->Framed = !this->Surfaces.empty();
  double box[6] = { 0, 1, 0, 1, 0, 1 };
  if (!this->Surfaces.empty())
  {
    this->Surfaces.front().Mesh->GetBounds(box); // the others lie inside
  }
  for (size_t a = 0; a < 3; ++a)
  {
    this->Middle[a] = (box[2 * a] + box[2 * a + 1]) / 2;
  }
  // As large as it can be without being cut, however it is turned.
  this->Radius = 1e-6;
  const vtkIdType points = this->Surfaces.empty() ? 0 : this->Surfaces.front().Mesh->GetNumberOfPoints();
  for (vtkIdType p = 0; p < points; ++p)
  {
    const double* at = this->Surfaces.front().Mesh->GetPoint(p);
    this->Radius =
      std::max(this->Radius, std::hypot(at[0] - this->Middle[0], at[1] - this->Middle[1], at[2] - this->Middle[2]));
  }
}

void qRcnSurfaceView::color()
{
  auto parts = std::make_shared<rcnSurfaceRenderer::Parts>();
  const int isolated = this->Made.Votes ? this->Scene->isolatedLevel() : -1;
  const int most = this->Surfaces.empty() ? 0 : this->Surfaces.back().Level;
  // All shells together let a good third of the innermost through, however many there are.
  const double shell = 1 - std::pow(0.4, 1.0 / static_cast<double>(std::max<size_t>(this->Surfaces.size(), 2) - 1));
  for (const rcn::Surface& surface : this->Surfaces)
  {
    if (isolated > 0 && surface.Level != isolated)
    {
      continue;
    }
    // The innermost is solid: eyes find depth by it.
    const bool solid = surface.Level == most || isolated > 0;
    const double share = most > 0 ? static_cast<double>(surface.Level) / most : 1;
    parts->push_back({ surface.Mesh, qRcnStyle::levelColor(this->Scene->levelPalette(), share), solid ? 1.0 : shell });
  }
  this->Parts = parts;
  this->render();
}

void qRcnSurfaceView::showEvent(QShowEvent* event)
{
  QWidget::showEvent(event);
  this->extract();
}

void qRcnSurfaceView::resizeEvent(QResizeEvent* event)
{
  QWidget::resizeEvent(event);
  this->render();
}

// ---- the camera

void qRcnSurfaceView::resetView()
{
  // From the front: the patient's left is on the right (RAS -x), the head above (z), and the front (y) towards the viewer.
  // A little from above and from the side, so that it looks like a body.
  this->Rotation = QQuaternion::fromAxisAndAngle(1, 0, 0, 15) * QQuaternion::fromAxisAndAngle(0, 1, 0, -20) *
    QQuaternion::fromAxes(QVector3D(-1, 0, 0), QVector3D(0, 0, 1), QVector3D(0, 1, 0)).inverted();
  this->Zoom = 1;
  this->Shift = QPointF();
  this->measure();
  this->render();
}

double qRcnSurfaceView::distance() const
{
  // The ball fits into the smaller side.
  const double aspect = this->height() > 0 ? static_cast<double>(this->width()) / this->height() : 1;
  const double half = std::atan(std::tan(qDegreesToRadians(rcnSurfaceRenderer::ViewAngle / 2)) * std::min(aspect, 1.0));
  return this->Radius / std::sin(half) / this->Zoom;
}

void qRcnSurfaceView::render()
{
  if (!this->Parts || !this->isVisible())
  {
    return;
  }
  const QQuaternion back = this->Rotation.inverted();
  const QVector3D focus =
    VectorOf(this->Middle) - back.rotatedVector(QVector3D(float(this->Shift.x()), float(this->Shift.y()), 0));
  rcnSurfaceRenderer::Camera camera;
  camera.Focus = ArrayOf(focus);
  camera.Position = ArrayOf(focus + back.rotatedVector(QVector3D(0, 0, static_cast<float>(this->distance()))));
  camera.Up = ArrayOf(back.rotatedVector(QVector3D(0, 1, 0)));
  this->Renderer->render(this->Parts, camera, (QSizeF(this->size()) * this->devicePixelRatioF()).toSize());
}

QPointF qRcnSurfaceView::placeOf(const std::array<double, 3>& ras) const
{
  const QVector3D seen = this->Rotation.rotatedVector(VectorOf(ras) - VectorOf(this->Middle));
  const double depth = this->distance() - seen.z();
  const double scale = this->height() / 2.0 / std::tan(qDegreesToRadians(rcnSurfaceRenderer::ViewAngle / 2)) / depth;
  return QPointF(
    this->width() / 2.0 + (seen.x() + this->Shift.x()) * scale, this->height() / 2.0 - (seen.y() + this->Shift.y()) * scale);
}

// ---- drawing

QString qRcnSurfaceView::title() const
{
  if (!this->problem().isEmpty())
  {
    return this->problem();
  }
  if (this->Surfaces.empty())
  {
    return this->Extracting->isRunning() ? tr("Making surfaces…") : tr("3-D: nothing to show");
  }
  if (this->Made.Votes)
  {
    return tr("3-D, at least 1 … %1 raters").arg(this->Surfaces.back().Level);
  }
  return tr("3-D, %1\nat %2").arg(this->Made.Name, qRcnStyle::percent(this->Made.Threshold));
}

void qRcnSurfaceView::paintEvent(QPaintEvent*)
{
  QPainter painter(this);
  painter.fillRect(this->rect(), QColor(26, 26, 26));
  painter.setRenderHint(QPainter::SmoothPixmapTransform);
  QFont font = this->font();
  font.setPixelSize(12);
  painter.setFont(font);
  if (!this->Surfaces.empty() && this->problem().isEmpty())
  {
    painter.drawImage(this->rect(), this->Drawn);
    this->drawCursor(painter);
    this->drawAxes(painter);
  }
  const QRectF room = QRectF(this->rect()).adjusted(6, 4, -6, -4);
  qRcnStyle::drawOverImage(painter, room, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, this->title(), TEXT_COLOR);
  font.setPixelSize(10);
  painter.setFont(font);
  qRcnStyle::drawOverImage(painter, room, Qt::AlignRight | Qt::AlignBottom | Qt::TextWordWrap,
    tr("For research, not for clinical use"), QColor(165, 165, 165));
}

void qRcnSurfaceView::drawAxes(QPainter& painter) const
{
  const QPointF origin(34, this->height() - 34);
  const char* const letters[3] = { "R", "A", "S" };
  const QVector3D axes[3] = { QVector3D(1, 0, 0), QVector3D(0, 1, 0), QVector3D(0, 0, 1) };
  painter.setRenderHint(QPainter::Antialiasing);
  for (int a = 0; a < 3; ++a)
  {
    const QVector3D seen = this->Rotation.rotatedVector(axes[a]);
    const QPointF end = origin + 18 * QPointF(seen.x(), -seen.y());
    painter.setPen(QPen(QColor(0xf2, 0xcc, 0x5a), 1.5));
    painter.drawLine(origin, end);
    const QPointF at = origin + 26 * QPointF(seen.x(), -seen.y());
    painter.drawText(QRectF(at - QPointF(8, 8), QSizeF(16, 16)), Qt::AlignCenter, letters[a]);
  }
}

void qRcnSurfaceView::drawCursor(QPainter& painter) const
{
  if (!this->Scene->isCrosshairVisible())
  {
    return;
  }
  const QPointF at = this->placeOf(this->Scene->cursorRas());
  painter.setPen(QPen(QColor(120, 200, 255), 1));
  for (const QPointF& arm : { QPointF(7, 0), QPointF(0, 7) })
  {
    painter.drawLine(at - arm, at - arm / 3);
    painter.drawLine(at + arm / 3, at + arm);
  }
}

// ---- mouse

void qRcnSurfaceView::mousePressEvent(QMouseEvent* event)
{
  if (this->Button == Qt::NoButton)
  {
    this->Button = event->button();
    this->DraggedTo = event->pos();
  }
}

void qRcnSurfaceView::mouseMoveEvent(QMouseEvent* event)
{
  const QPointF step = event->pos() - this->DraggedTo;
  this->DraggedTo = event->pos();
  const bool moves =
    this->Button == Qt::MiddleButton || (this->Button == Qt::LeftButton && event->modifiers() & Qt::ControlModifier);
  if (moves)
  {
    const double mm = 2 * this->distance() * std::tan(qDegreesToRadians(rcnSurfaceRenderer::ViewAngle / 2)) / this->height();
    this->Shift += QPointF(step.x() * mm, -step.y() * mm);
  }
  else if (this->Button == Qt::LeftButton)
  {
    // As far as the view is high is half a turn; what is grasped in front follows the hand.
    const float degrees = 180.0f / static_cast<float>(std::max(std::min(this->width(), this->height()), 1));
    this->Rotation = (QQuaternion::fromAxisAndAngle(0, 1, 0, degrees * static_cast<float>(step.x())) *
      QQuaternion::fromAxisAndAngle(1, 0, 0, degrees * static_cast<float>(step.y())) * this->Rotation)
                       .normalized();
  }
  else if (this->Button == Qt::RightButton)
  {
    this->Zoom = std::clamp(this->Zoom * std::exp2(-step.y() / 100), 0.2, 20.0);
  }
  else
  {
    return;
  }
  this->render();
  this->update();
}

void qRcnSurfaceView::mouseReleaseEvent(QMouseEvent* event)
{
  if (event->button() == this->Button)
  {
    this->Button = Qt::NoButton;
  }
}

void qRcnSurfaceView::mouseDoubleClickEvent(QMouseEvent* event)
{
  if (event->button() == Qt::LeftButton)
  {
    emit this->doubleClicked();
  }
}

void qRcnSurfaceView::wheelEvent(QWheelEvent* event)
{
  event->accept();
  this->Zoom = std::clamp(this->Zoom * std::exp2(event->angleDelta().y() / 480.0), 0.2, 20.0);
  this->render();
  this->update();
}

void qRcnSurfaceView::keyPressEvent(QKeyEvent* event)
{
  if (event->key() == Qt::Key_R && event->modifiers() == Qt::NoModifier)
  {
    this->resetView();
    this->update();
    return;
  }
  QWidget::keyPressEvent(event);
}
