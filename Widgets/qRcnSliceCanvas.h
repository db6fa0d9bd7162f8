// SPDX-License-Identifier: Apache-2.0
/// The drawing area of slice views: one or several panels of the same slice, and what mouse and keys do there.
///
/// Mouse: wheel scrolls, Ctrl + wheel zooms; click moves the cross-hair (with Shift it follows the mouse); left drag
/// changes window and level as in 3D Slicer; right drag zooms; middle drag (or Ctrl + left drag) pans. Zoom and place are the
/// scene's: all views follow. Keys: qRcnSliceCanvas::shortcuts().
#ifndef qRcnSliceCanvas_h
#define qRcnSliceCanvas_h

#include <memory>
#include <utility>
#include <vector>

#include <QColor>
#include <QImage>
#include <QPointF>
#include <QString>
#include <QWidget>

#include "qRcnScene.h"
#include "rcnSliceRenderer.h"

class qRcnSliceCanvas : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnSliceCanvas(qRcnScene* scene, QWidget* parent = nullptr);
  ~qRcnSliceCanvas() override;

  /// Key or gesture, and what it does, for the list under `?`.
  static std::vector<std::pair<QString, QString>> shortcuts();
  static QString viewName(rcn_view view);
  /// The color that stands for a view: its title, and its line in the cross-hairs of the others.
  static QColor viewColor(rcn_view view);

  rcn_view view() const { return this->View; }
  void setView(rcn_view view);
  const rcn_plane& plane() const { return this->Plane; }

  /// The panels, row after row in so many columns. Titles stand in the upper left corner.
  struct Panel
  {
    rcnSliceRenderer::Content Content;
    int Number;
    QString Title;
    QColor Color;
  };
  void setPanels(const std::vector<Panel>& panels, int columns);

  int64_t slice() const;
  int64_t sliceCount() const;
  /// Whether slices of higher numbers lie further to the head (axial), the front (coronal) or the right (sagittal). The
  /// wheel goes there when it is turned away from the reader, whichever way the volume is stored.
  bool isAscending() const;
  /// 1: the slice fills the panel.
  double zoom() const { return this->Scene->zoom(); }

  /// The voxel at a place of the widget; false where there is none.
  bool voxelAt(const QPointF& place, qRcnScene::Voxel* voxel) const;
  /// Where a voxel's center is drawn (in the first panel), whether or not it lies in the shown slice.
  QPointF placeOf(const qRcnScene::Voxel& voxel) const;

  /// Whether the meaning of the colors is drawn into it (where the scene wants that): once is enough for views side by side.
  void setColorBar(bool shown);

  /// Does what a key stands for (shortcuts()); false: nothing. For keys pressed elsewhere in the window, too.
  bool act(int key);

  /// What is drawn, at the size of the widget.
  QImage picture();

  QSize sizeHint() const override { return QSize(480, 400); }
  QSize minimumSizeHint() const override { return QSize(120, 120); }

public slots:
  /// Moves the scene's cursor to a slice of this view.
  void setSlice(int64_t slice);
  /// So many slices on, to the head, the front or the right; negative: back.
  void scroll(int64_t slices);
  void setZoom(double zoom);
  /// Fits the slice into the panel, and a window that suits the image.
  void resetView();

signals:
  void sliceChanged(qint64 slice, qint64 count);
  /// The voxel under the mouse; inside is false where there is none.
  void cursorMoved(bool inside, qint64 x, qint64 y, qint64 z);
  void doubleClicked();

protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;

private:
  enum class Drag
  {
    None,
    Click, ///< pressed, not yet moved
    Window,
    Zoom,
    Pan
  };

  struct Texts;
  void follow(qRcnScene::Changes what);
  void drawCrosshair(QPainter& painter, const QRectF& panel) const;
  void drawTexts(QPainter& painter, const QRectF& panel, const Texts& texts) const;
  void drawScaleBar(QPainter& painter, const QRectF& panel) const;
  QColor lineColor(int axis) const;
  bool isPicture() const;
  QString placeText() const;
  QString windowText() const;
  QRectF panelRect(size_t number) const;
  void bringCursorIntoSight(int axis);
  /// The voxel index in the middle, along the plane's right (0) and up (1) axis.
  double center(int axis) const;
  void moveCenter(double zoom, double right, double up);
  void drawColorBars(QPainter& painter) const;
  QSizeF panelSize() const;
  double mmPerPoint() const;
  void dragWindow(const QPointF& step);
  void zoomAt(double factor, const QPointF& place);
  void pointAt(const QPointF& place);

  qRcnScene* Scene;
  rcn_view View = RCN_VIEW_AXIAL;
  rcn_plane Plane{};
  std::vector<std::unique_ptr<rcnSliceRenderer>> Panes;
  std::vector<Panel> Panels;
  int Columns = 1;
  Drag Dragging = Drag::None;
  Qt::MouseButton Button = Qt::NoButton;
  QPointF PressedAt, DraggedTo;
  double WheelRest = 0;
  bool ColorBar = false;
};

#endif
