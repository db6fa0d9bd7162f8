// SPDX-License-Identifier: Apache-2.0
#include "qRcnSliceCanvas.h"

#include <algorithm>
#include <cmath>

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include "qRcnStyle.h"
#include "rcnColorBar.h"

namespace
{

QPointF positionOf(const QMouseEvent* event)
{
#if QT_VERSION >= QT_VERSION_CHECK(6, 0, 0)
  return event->position();
#else
  return event->localPos();
#endif
}

const QColor TEXT_COLOR(225, 225, 225);

} // namespace

qRcnSliceCanvas::qRcnSliceCanvas(qRcnScene* scene, QWidget* parent) : QWidget(parent), Scene(scene)
{
  this->setAttribute(Qt::WA_OpaquePaintEvent); // every pixel is drawn here
  this->setFocusPolicy(Qt::StrongFocus);
  this->setMouseTracking(true);
  this->setPanels({ { rcnSliceRenderer::Content::Scene, 0, QString(), QColor() } }, 1);
  connect(scene, &qRcnScene::changed, this, &qRcnSliceCanvas::follow);
  connect(scene, &qRcnScene::visited, this, &qRcnSliceCanvas::bringCursorIntoSight);
  this->follow(qRcnScene::Case);
}

qRcnSliceCanvas::~qRcnSliceCanvas() = default;

std::vector<std::pair<QString, QString>> qRcnSliceCanvas::shortcuts()
{
  return {
    { tr("Wheel, Up/Down, Page Up/Page Down"), tr("next and previous slice; ten at a time with Page") },
    { tr("Home, End"), tr("the outermost slices") },
    { tr("Click"), tr("put the cross-hair there, in all views") },
    { tr("Shift + move"), tr("the cross-hair follows the mouse") },
    { tr("Left drag"), tr("window (sideways) and level (up and down)") },
    { tr("Right drag, Ctrl + wheel, + and -"), tr("zoom") },
    { tr("Middle drag, Ctrl + left drag"), tr("move the picture") },
    { tr("Double click"), tr("one large view, and back") },
    { tr("R"), tr("reset zoom, place and window") },
    { tr("H"), tr("heat map of the raters' consensus on and off") },
    { tr("C"), tr("outlines on and off") },
    { tr("1 ... 9"), tr("outline of that rater on and off") },
    { tr("P"), tr("next prediction, or none") },
    { tr("X"), tr("cross-hair on and off") },
    { tr("B"), tr("color bar on and off") },
  };
}

QString qRcnSliceCanvas::viewName(rcn_view view)
{
  return view == RCN_VIEW_AXIAL ? tr("Axial") : view == RCN_VIEW_CORONAL ? tr("Coronal") : tr("Sagittal");
}

QColor qRcnSliceCanvas::viewColor(rcn_view view)
{
  // As in Slicer: red, green, yellow.
  return view == RCN_VIEW_AXIAL ? QColor(0xf3, 0x7a, 0x6b)
    : view == RCN_VIEW_CORONAL  ? QColor(0x8f, 0xcf, 0x6f)
                                : QColor(0xed, 0xd5, 0x4c);
}

// ---- what is shown

void qRcnSliceCanvas::setView(rcn_view view)
{
  if (view == this->View)
  {
    return;
  }
  this->View = view;
  this->follow(qRcnScene::Case);
}

void qRcnSliceCanvas::setPanels(const std::vector<Panel>& panels, int columns)
{
  this->Panes.clear();
  this->Panels = panels;
  this->Columns = std::max(columns, 1);
  for (const Panel& panel : panels)
  {
    this->Panes.push_back(std::make_unique<rcnSliceRenderer>(this->Scene, panel.Content, panel.Number));
  }
  this->update();
}

void qRcnSliceCanvas::follow(qRcnScene::Changes what)
{
  for (const auto& pane : this->Panes)
  {
    pane->invalidate(what);
  }
  if (what & qRcnScene::Case)
  {
    if (!this->Scene->isEmpty())
    {
      rcn_plane_make(&this->Plane, &this->Scene->geometry(), this->View);
    }
  }
  if (what & (qRcnScene::Case | qRcnScene::Cursor))
  {
    emit this->sliceChanged(this->slice(), this->sliceCount());
  }
  this->update();
}

int64_t qRcnSliceCanvas::slice() const
{
  return this->Scene->cursor()[static_cast<size_t>(this->Plane.axis)];
}

int64_t qRcnSliceCanvas::sliceCount() const
{
  return this->Scene->geometry().size[this->Plane.axis];
}

void qRcnSliceCanvas::setSlice(int64_t slice)
{
  qRcnScene::Voxel cursor = this->Scene->cursor();
  cursor[static_cast<size_t>(this->Plane.axis)] = slice;
  this->Scene->setCursor(cursor);
}

bool qRcnSliceCanvas::isAscending() const
{
  const double* direction = this->Scene->geometry().direction;
  switch (this->isPicture() ? RCN_VIEW_AXIAL : this->View)
  {
    case RCN_VIEW_CORONAL: return direction[3 + this->Plane.axis] < 0;
    case RCN_VIEW_SAGITTAL: return direction[this->Plane.axis] < 0;
    default: return direction[6 + this->Plane.axis] >= 0;
  }
}

void qRcnSliceCanvas::scroll(int64_t slices)
{
  this->setSlice(this->slice() + (this->isAscending() ? slices : -slices));
}

void qRcnSliceCanvas::setZoom(double zoom)
{
  this->Scene->setPlace(zoom, this->Scene->center());
}

double qRcnSliceCanvas::center(int axis) const
{
  return this->Scene->center()[static_cast<size_t>(axis == 0 ? this->Plane.right : this->Plane.up)];
}

void qRcnSliceCanvas::moveCenter(double zoom, double right, double up)
{
  std::array<double, 3> center = this->Scene->center();
  center[static_cast<size_t>(this->Plane.right)] += right;
  center[static_cast<size_t>(this->Plane.up)] += up;
  this->Scene->setPlace(zoom, center);
}

void qRcnSliceCanvas::bringCursorIntoSight(int axis)
{
  const QSizeF size = this->panelSize();
  const double edge = 0.1 * std::min(size.width(), size.height());
  const QRectF middle = QRectF(QPointF(0, 0), size).adjusted(edge, edge, -edge, -edge);
  if (this->Scene->isEmpty() || middle.contains(this->placeOf(this->Scene->cursor())))
  {
    return;
  }
  // Into the middle, but no further over the image's edge than its size makes necessary. Views of other sizes share the
  // center: none takes it further from the cursor than another has brought it.
  const rcn_geometry& geometry = this->Scene->geometry();
  const int axes[2] = { this->Plane.right, this->Plane.up };
  const double points[2] = { size.width(), size.height() };
  double step[2] = { 0, 0 };
  for (int a = 0; a < 2; ++a)
  {
    const double voxels = static_cast<double>(geometry.size[axes[a]]);
    const double half = points[a] / 2 * this->mmPerPoint() / geometry.spacing[axes[a]];
    const double at = static_cast<double>(this->Scene->cursor()[static_cast<size_t>(axes[a])]);
    const double wanted = 2 * half >= voxels ? (voxels - 1) / 2 : std::clamp(at, half - 0.5, voxels - 0.5 - half);
    const bool moves = (axis < 0 || axis == axes[a]) && std::fabs(wanted - at) < std::fabs(this->center(a) - at);
    step[a] = moves ? wanted - this->center(a) : 0;
  }
  this->moveCenter(this->Scene->zoom(), step[0], step[1]);
}

void qRcnSliceCanvas::setColorBar(bool shown)
{
  this->ColorBar = shown;
  this->update();
}

void qRcnSliceCanvas::resetView()
{
  this->Scene->resetPlace();
  this->Scene->resetWindow();
}

// ---- places

QSizeF qRcnSliceCanvas::panelSize() const
{
  const int count = static_cast<int>(this->Panes.size());
  const int rows = std::max((count + this->Columns - 1) / this->Columns, 1);
  return QSizeF(std::max(1.0, static_cast<double>(this->width()) / this->Columns),
    std::max(1.0, static_cast<double>(this->height()) / rows));
}

double qRcnSliceCanvas::mmPerPoint() const
{
  const rcn_geometry& geometry = this->Scene->geometry();
  const QSizeF size = this->panelSize();
  const double width = static_cast<double>(geometry.size[this->Plane.right]) * geometry.spacing[this->Plane.right];
  const double height = static_cast<double>(geometry.size[this->Plane.up]) * geometry.spacing[this->Plane.up];
  return std::max({ width / size.width(), height / size.height(), 1e-12 }) / this->Scene->zoom();
}

bool qRcnSliceCanvas::voxelAt(const QPointF& place, qRcnScene::Voxel* voxel) const
{
  if (this->Scene->isEmpty() || !QRectF(this->rect()).contains(place))
  {
    return false;
  }
  const rcn_geometry& geometry = this->Scene->geometry();
  const QSizeF size = this->panelSize();
  const double x = std::fmod(place.x(), size.width()) - size.width() / 2;
  const double y = size.height() / 2 - std::fmod(place.y(), size.height());
  const double mm = this->mmPerPoint();
  const rcn_plane& plane = this->Plane;
  const double right = this->center(0) + plane.right_sign * x * mm / geometry.spacing[plane.right];
  const double up = this->center(1) + plane.up_sign * y * mm / geometry.spacing[plane.up];
  qRcnScene::Voxel found = this->Scene->cursor();
  found[static_cast<size_t>(plane.right)] = static_cast<int64_t>(std::floor(right + 0.5));
  found[static_cast<size_t>(plane.up)] = static_cast<int64_t>(std::floor(up + 0.5));
  for (size_t a = 0; a < 3; ++a)
  {
    if (found[a] < 0 || found[a] >= geometry.size[a])
    {
      return false;
    }
  }
  *voxel = found;
  return true;
}

QPointF qRcnSliceCanvas::placeOf(const qRcnScene::Voxel& voxel) const
{
  const rcn_geometry& geometry = this->Scene->geometry();
  const QSizeF size = this->panelSize();
  const rcn_plane& plane = this->Plane;
  const double mm = this->mmPerPoint();
  const double right = static_cast<double>(voxel[static_cast<size_t>(plane.right)]) - this->center(0);
  const double up = static_cast<double>(voxel[static_cast<size_t>(plane.up)]) - this->center(1);
  return QPointF(size.width() / 2 + plane.right_sign * right * geometry.spacing[plane.right] / mm,
    size.height() / 2 - plane.up_sign * up * geometry.spacing[plane.up] / mm);
}

QRectF qRcnSliceCanvas::panelRect(size_t number) const
{
  const QSizeF size = this->panelSize();
  const auto column = static_cast<int>(number) % this->Columns, row = static_cast<int>(number) / this->Columns;
  return QRectF(QPointF(column * size.width(), row * size.height()), size);
}

// ---- drawing

/// What stands in the corners and at the edges of a panel.
struct qRcnSliceCanvas::Texts
{
  QString Title;
  QColor TitleColor = TEXT_COLOR;
  QString Place, Window, Warning;
  bool Letters = true;
};

void qRcnSliceCanvas::paintEvent(QPaintEvent*)
{
  QPainter painter(this);
  const double ratio = this->devicePixelRatioF();
  const bool several = this->Panes.size() > 1;
  rcnSliceRenderer::Camera camera;
  camera.Plane = this->Plane;
  camera.Slice = this->slice();
  camera.Center[0] = this->center(0);
  camera.Center[1] = this->center(1);
  camera.MmPerPixel = this->mmPerPoint() / ratio;
  camera.PixelRatio = ratio;
  painter.fillRect(this->rect(), Qt::black);
  for (size_t i = 0; i < this->Panes.size(); ++i)
  {
    const QRectF panel = this->panelRect(i);
    const QSize pixels = (panel.size() * ratio).toSize();
    painter.setClipRect(panel);
    painter.drawImage(panel, this->Panes[i]->draw(camera, pixels));
    const bool first = i == 0, last = i + 1 == this->Panes.size();
    Texts texts;
    texts.Title = several ? this->Panels[i].Title : this->placeText();
    texts.TitleColor = several ? this->Panels[i].Color : this->isPicture() ? TEXT_COLOR : viewColor(this->View);
    texts.Place = several && first ? this->placeText() : QString();
    texts.Window = first ? this->windowText() : QString();
    texts.Warning = last ? tr("For research, not for clinical use") : QString();
    texts.Letters = first;
    if (!this->Scene->isEmpty())
    {
      this->drawCrosshair(painter, panel);
      this->drawTexts(painter, panel, texts);
      if (first)
      {
        this->drawScaleBar(painter, panel);
      }
    }
    if (several)
    {
      painter.setPen(QColor(60, 60, 60));
      painter.drawRect(panel.adjusted(-0.5, -0.5, -0.5, -0.5));
    }
  }
  painter.setClipping(false);
  if (this->ColorBar && this->Scene->isColorBarVisible() && !this->Scene->isEmpty())
  {
    this->drawColorBars(painter);
  }
  if (this->hasFocus())
  {
    // Keys go here.
    painter.setPen(QColor(90, 140, 190));
    painter.drawRect(this->rect().adjusted(0, 0, -1, -1));
  }
}

void qRcnSliceCanvas::drawColorBars(QPainter& painter) const
{
  // One of each scale: panels next to each other share their colors.
  QList<QStringList> drawn;
  for (size_t i = 0; i < this->Panes.size(); ++i)
  {
    const rcnColorBar bar(*this->Scene, this->Panels[i].Content, this->Panels[i].Number);
    if (!bar.isEmpty() && !drawn.contains(bar.labels()))
    {
      bar.draw(painter, this->panelRect(i), i == 0 ? 26 : 10); // the first panel has a letter there
      drawn << bar.labels();
    }
  }
}

bool qRcnSliceCanvas::isPicture() const
{
  return this->Scene->geometry().dimension == 2;
}

QString qRcnSliceCanvas::placeText() const
{
  if (this->isPicture() || this->Scene->isEmpty())
  {
    return QString();
  }
  const int world = this->View == RCN_VIEW_AXIAL ? 2 : this->View == RCN_VIEW_CORONAL ? 1 : 0;
  const char* const letters[3] = { "LR", "PA", "IS" };
  const double mm = this->Scene->cursorRas()[static_cast<size_t>(world)];
  const QString number = tr("%1 %2 / %3").arg(viewName(this->View)).arg(this->slice() + 1).arg(this->sliceCount());
  return this->Scene->geometry().unit == RCN_PIXELS
    ? number
    : number + tr("\n%1 %2 mm").arg(QChar(letters[world][mm >= 0])).arg(std::fabs(mm), 0, 'f', 1);
}

QString qRcnSliceCanvas::windowText() const
{
  if (this->Scene->images().empty())
  {
    return QString();
  }
  return tr("W %1  L %2")
    .arg(this->Scene->white() - this->Scene->black(), 0, 'g', 4)
    .arg((this->Scene->white() + this->Scene->black()) / 2, 0, 'g', 4);
}

void qRcnSliceCanvas::drawTexts(QPainter& painter, const QRectF& panel, const Texts& texts) const
{
  const auto draw = [&](const QString& text, int where, const QColor& color, double above = 0, double below = 0) {
    qRcnStyle::drawOverImage(painter, panel.adjusted(6, 4 + below, -6, -4 - above), where, text, color);
  };
  QFont font = this->font();
  font.setPixelSize(12);
  painter.setFont(font);
  draw(texts.Title, Qt::AlignLeft | Qt::AlignTop, texts.TitleColor);
  const QSizeF title = QFontMetricsF(font).size(0, texts.Title);
  draw(texts.Place, Qt::AlignRight | Qt::AlignTop, TEXT_COLOR);
  const QSizeF place = QFontMetricsF(font).size(0, texts.Place);
  draw(texts.Window, Qt::AlignLeft | Qt::AlignBottom, TEXT_COLOR);
  const double window = QFontMetricsF(font).horizontalAdvance(texts.Window);
  if (texts.Letters)
  {
    const int where[4] = { Qt::AlignLeft | Qt::AlignVCenter, Qt::AlignRight | Qt::AlignVCenter,
      Qt::AlignHCenter | Qt::AlignBottom, Qt::AlignHCenter | Qt::AlignTop };
    font.setPixelSize(14);
    font.setBold(true);
    painter.setFont(font);
    for (int i = 0; i < 4; ++i)
    {
      // In a narrow panel the letter at the top stands below the title, that at the bottom above the window; in a very narrow
      // one the scale is there, and the other three letters say it.
      const bool top = where[i] & Qt::AlignTop, bottom = where[i] & Qt::AlignBottom;
      const bool beneath = top && std::max(title.width(), place.width()) + 18 > panel.width() / 2;
      const bool over = bottom && window + 18 > panel.width() / 2;
      if (!over || panel.width() > 170)
      {
        draw(this->Plane.letters[i], where[i], QColor(0xf2, 0xcc, 0x5a), over ? 16 : 0,
          beneath ? std::max(title.height(), place.height()) : 0);
      }
    }
    font.setBold(false);
  }
  font.setPixelSize(10);
  painter.setFont(font);
  // In a narrow panel it would run into the letter at the bottom, in a still narrower one into the scale bar: then it stands
  // above them.
  const double width = QFontMetricsF(font).horizontalAdvance(texts.Warning);
  const bool letter = texts.Letters && width + 24 > panel.width() / 2;
  const bool scale = letter && width + 80 > 0.8 * panel.width();
  draw(texts.Warning, Qt::AlignRight | Qt::AlignBottom | Qt::TextWordWrap, QColor(165, 165, 165), scale ? 36 : letter ? 18 : 0);
}

void qRcnSliceCanvas::drawScaleBar(QPainter& painter, const QRectF& panel) const
{
  // About a fifth of the width, a round number of millimeters long.
  const double mm = this->mmPerPoint(), most = panel.width() * mm / 5;
  double length = std::pow(10, std::floor(std::log10(most)));
  length *= 5 * length <= most ? 5 : 2 * length <= most ? 2 : 1;
  const QPointF left = panel.bottomLeft() + QPointF(8, -30), right = left + QPointF(length / mm, 0);
  // A picture file that knows no spacing is measured in pixels: millimeters would be made up.
  const QString text = this->Scene->geometry().unit == RCN_PIXELS ? tr("%1 px").arg(length)
    : length >= 1                                                 ? tr("%1 mm").arg(length)
                                                                  : tr("%1 \u00b5m").arg(1000 * length);
  for (const bool shadow : { true, false })
  {
    const QPointF by = shadow ? QPointF(1, 1) : QPointF(0, 0);
    painter.setPen(shadow ? QColor(0, 0, 0, 200) : TEXT_COLOR);
    painter.drawLine(left + by, right + by);
    painter.drawLine(left + by - QPointF(0, 4), left + by + QPointF(0, 4));
    painter.drawLine(right + by - QPointF(0, 4), right + by + QPointF(0, 4));
    painter.drawText(right + by + QPointF(6, 4), text);
  }
}

void qRcnSliceCanvas::drawCrosshair(QPainter& painter, const QRectF& panel) const
{
  if (!this->Scene->isCrosshairVisible())
  {
    return;
  }
  // Each line in the color of the view whose slice it is; a gap keeps the voxel itself to be seen.
  const QPointF at = this->placeOf(this->Scene->cursor()) + panel.topLeft();
  const double gap = 9;
  painter.setOpacity(this->Panes.size() > 1 ? 0.4 : 0.85); // small panels have less to hide
  painter.setPen(this->lineColor(this->Plane.up));
  painter.drawLine(QPointF(panel.left(), at.y()), QPointF(at.x() - gap, at.y()));
  painter.drawLine(QPointF(at.x() + gap, at.y()), QPointF(panel.right(), at.y()));
  painter.setPen(this->lineColor(this->Plane.right));
  painter.drawLine(QPointF(at.x(), panel.top()), QPointF(at.x(), at.y() - gap));
  painter.drawLine(QPointF(at.x(), at.y() + gap), QPointF(at.x(), panel.bottom()));
  painter.setOpacity(1);
}

QColor qRcnSliceCanvas::lineColor(int axis) const
{
  rcn_plane plane;
  return this->isPicture() ? QColor(120, 200, 255) : viewColor(rcn_plane_along(&plane, &this->Scene->geometry(), axis));
}

QImage qRcnSliceCanvas::picture()
{
  return this->grab().toImage();
}

// ---- mouse and keys

void qRcnSliceCanvas::mousePressEvent(QMouseEvent* event)
{
  if (this->Dragging != Drag::None)
  {
    return; // another button is down
  }
  this->Button = event->button();
  this->PressedAt = this->DraggedTo = positionOf(event);
  switch (event->button())
  {
    case Qt::LeftButton: this->Dragging = event->modifiers() & Qt::ControlModifier ? Drag::Pan : Drag::Click; break;
    case Qt::MiddleButton: this->Dragging = Drag::Pan; break;
    case Qt::RightButton: this->Dragging = Drag::Zoom; break;
    default: break;
  }
}

void qRcnSliceCanvas::mouseMoveEvent(QMouseEvent* event)
{
  const QPointF place = positionOf(event), step = place - this->DraggedTo;
  qRcnScene::Voxel voxel{};
  const bool inside = this->voxelAt(place, &voxel);
  emit this->cursorMoved(inside, voxel[0], voxel[1], voxel[2]);
  if (this->Dragging == Drag::Click && (place - this->PressedAt).manhattanLength() >= QApplication::startDragDistance())
  {
    this->Dragging = Drag::Window;
  }
  switch (this->Dragging)
  {
    case Drag::None:
      if (event->modifiers() & Qt::ShiftModifier)
      {
        this->pointAt(place);
      }
      return;
    case Drag::Click: return;
    case Drag::Window: this->dragWindow(step); break;
    case Drag::Zoom: this->zoomAt(std::exp2(-step.y() / 100), this->PressedAt); break;
    case Drag::Pan:
    {
      const rcn_geometry& geometry = this->Scene->geometry();
      if (!this->Scene->isEmpty())
      {
        const double mm = this->mmPerPoint();
        this->moveCenter(this->Scene->zoom(), -this->Plane.right_sign * step.x() * mm / geometry.spacing[this->Plane.right],
          this->Plane.up_sign * step.y() * mm / geometry.spacing[this->Plane.up]);
      }
      break;
    }
  }
  this->DraggedTo = place;
}

void qRcnSliceCanvas::mouseReleaseEvent(QMouseEvent* event)
{
  if (event->button() != this->Button)
  {
    return;
  }
  if (this->Dragging == Drag::Click)
  {
    this->pointAt(positionOf(event));
  }
  this->Dragging = Drag::None;
  this->Button = Qt::NoButton;
}

void qRcnSliceCanvas::mouseDoubleClickEvent(QMouseEvent* event)
{
  if (event->button() == Qt::LeftButton)
  {
    emit this->doubleClicked();
  }
}

void qRcnSliceCanvas::leaveEvent(QEvent* event)
{
  QWidget::leaveEvent(event);
  emit this->cursorMoved(false, 0, 0, 0);
}

void qRcnSliceCanvas::pointAt(const QPointF& place)
{
  qRcnScene::Voxel voxel{};
  if (this->voxelAt(place, &voxel))
  {
    this->Scene->visit(voxel, this->Plane.axis);
  }
}

void qRcnSliceCanvas::dragWindow(const QPointF& step)
{
  // As in 3D Slicer: across the view goes through the image's range; to the right widens the window, up raises the level.
  const QSizeF size = this->panelSize();
  const double low = this->Scene->lowest(), high = this->Scene->highest();
  const double gain = (high - low) / std::min(size.width(), size.height());
  const double before = this->Scene->white() - this->Scene->black();
  const double window = std::max(before + gain * step.x(), 1e-3 * (high - low));
  const double level = (this->Scene->white() + this->Scene->black()) / 2 - gain * step.y();
  const double inside = std::clamp(level, low - window / 2, high + window / 2);
  this->Scene->setWindow(inside - window / 2, inside + window / 2);
}

void qRcnSliceCanvas::zoomAt(double factor, const QPointF& place)
{
  // The point under the mouse stays where it is.
  if (this->Scene->isEmpty())
  {
    return;
  }
  const QSizeF size = this->panelSize();
  const double x = std::fmod(place.x(), size.width()) - size.width() / 2;
  const double y = size.height() / 2 - std::fmod(place.y(), size.height());
  const double before = this->mmPerPoint();
  this->setZoom(this->Scene->zoom() * factor);
  const double gained = before - this->mmPerPoint();
  const double* spacing = this->Scene->geometry().spacing;
  this->moveCenter(this->Scene->zoom(), this->Plane.right_sign * x * gained / spacing[this->Plane.right],
    this->Plane.up_sign * y * gained / spacing[this->Plane.up]);
}

void qRcnSliceCanvas::wheelEvent(QWheelEvent* event)
{
  const double steps = event->angleDelta().y() / 120.0;
  event->accept();
  if (event->modifiers() & Qt::ControlModifier)
  {
    this->zoomAt(std::exp2(steps / 4), event->position());
    return;
  }
  // Touch pads send parts of a step.
  this->WheelRest += steps;
  const double whole = std::trunc(this->WheelRest);
  this->WheelRest -= whole;
  this->scroll(static_cast<int64_t>(whole));
}

void qRcnSliceCanvas::keyPressEvent(QKeyEvent* event)
{
  const bool plain = !(event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
  if (!plain || !this->act(event->key()))
  {
    QWidget::keyPressEvent(event);
  }
}

bool qRcnSliceCanvas::act(int key)
{
  const QPointF middle = QPointF(this->panelSize().width() / 2, this->panelSize().height() / 2);
  switch (key)
  {
    case Qt::Key_Up:
    case Qt::Key_Right: this->scroll(1); break;
    case Qt::Key_Down:
    case Qt::Key_Left: this->scroll(-1); break;
    case Qt::Key_PageUp: this->scroll(10); break;
    case Qt::Key_PageDown: this->scroll(-10); break;
    case Qt::Key_Home: this->scroll(-this->sliceCount()); break;
    case Qt::Key_End: this->scroll(this->sliceCount()); break;
    case Qt::Key_Plus:
    case Qt::Key_Equal: this->zoomAt(std::exp2(0.25), middle); break;
    case Qt::Key_Minus: this->zoomAt(std::exp2(-0.25), middle); break;
    case Qt::Key_R: this->resetView(); break;
    case Qt::Key_H: this->Scene->setHeatMapVisible(!this->Scene->isHeatMapVisible()); break;
    case Qt::Key_C: this->Scene->setContoursVisible(!this->Scene->areContoursVisible()); break;
    case Qt::Key_X: this->Scene->setCrosshairVisible(!this->Scene->isCrosshairVisible()); break;
    case Qt::Key_B: this->Scene->setColorBarVisible(!this->Scene->isColorBarVisible()); break;
    case Qt::Key_P: this->Scene->setShownPrediction(this->Scene->shownPrediction() + 1); break;
    default:
      if (key < Qt::Key_1 || key > Qt::Key_9)
      {
        return false;
      }
      this->Scene->setRaterVisible(key - Qt::Key_1, !this->Scene->isRaterVisible(key - Qt::Key_1));
  }
  return true;
}
