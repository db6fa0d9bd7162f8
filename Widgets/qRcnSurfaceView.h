// SPDX-License-Identifier: Apache-2.0
/// The levels of consensus in 3-D: a surface around the voxels that at least one rater marked, inside it that of two, and so
/// on; or those of the prediction that lies over the image. Left drag turns, right drag and wheel zoom, middle drag moves; R
/// shows all of it from the front, after a click into the view.
///
/// Another case is shown from the front, all of it. Another model, threshold or level is seen from where the person looks, so
/// that it can be compared.
///
/// Surfaces are made and drawn off the GUI thread; only while the view is visible.
#ifndef qRcnSurfaceView_h
#define qRcnSurfaceView_h

#include <array>
#include <memory>
#include <vector>

#include <QImage>
#include <QPointF>
#include <QQuaternion>
#include <QWidget>

#include "qRcnScene.h"
#include "rcnSurfaceRenderer.h"
#include "rcnSurfaces.h"

class qRcnJob;

class qRcnSurfaceView : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnSurfaceView(qRcnScene* scene, QWidget* parent = nullptr);
  ~qRcnSurfaceView() override;

  /// Key or gesture, and what it does, for the list under `?`.
  static std::vector<std::pair<QString, QString>> shortcuts();

  /// Why nothing can be drawn on this display, as a sentence; empty: it can.
  QString problem() const { return this->Renderer->problem(); }
  QString description() const { return this->Renderer->description(); }
  /// Surfaces are being made or drawn.
  bool isBusy() const;

  /// What is shown, outermost first.
  const std::vector<rcn::Surface>& surfaces() const { return this->Surfaces; }
  /// From patient coordinates (RAS) to those of the picture: to the right, up, and to the viewer.
  const QQuaternion& rotation() const { return this->Rotation; }
  double zoom() const { return this->Zoom; }
  /// Where a place (RAS mm) is drawn.
  QPointF placeOf(const std::array<double, 3>& ras) const;
  /// The surfaces as they were drawn last, without texts.
  const QImage& drawn() const { return this->Drawn; }

  QSize sizeHint() const override { return QSize(400, 400); }
  QSize minimumSizeHint() const override { return QSize(120, 120); }

public slots:
  /// From the front, all of it.
  void resetView();

signals:
  void doubleClicked();
  void failed(const QString& sentence);

protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

private:
  /// What the surfaces were made of; made anew when it is another.
  struct Source
  {
    std::shared_ptr<const rcn_votes> Votes;
    rcn::Volume Prediction;
    double Threshold = 0;
    QString Name;
    bool isSame(const Source& other) const;
  };

  void follow(qRcnScene::Changes what);
  Source source() const;
  void extract();
  void measure();
  void color();
  void render();
  double distance() const;
  QString title() const;
  void drawAxes(QPainter& painter) const;
  void drawCursor(QPainter& painter) const;

  qRcnScene* Scene;
  rcnSurfaceRenderer* Renderer;
  qRcnJob* Extracting;
  Source Made;
  std::vector<rcn::Surface> Surfaces;
  std::shared_ptr<const rcnSurfaceRenderer::Parts> Parts;
  std::array<double, 3> Middle{}; ///< of the surfaces when they were measured, RAS mm
  double Radius = 1;              ///< of a ball around them
  bool Framed = false;            ///< Middle and Radius are of this case
  QQuaternion Rotation;
  double Zoom = 1;
  QPointF Shift; ///< of the middle in the picture, mm to the right and up
  QImage Drawn;
  Qt::MouseButton Button = Qt::NoButton;
  QPointF DraggedTo;
};

#endif
