// SPDX-License-Identifier: Apache-2.0
/// Draws surfaces with VTK into pictures, in a thread of its own: without a graphics card a frame takes a while, and the window
/// must not wait for it.
///
/// The OpenGL context is Qt's (QOpenGLContext on an off-screen surface), and VTK draws into a frame buffer there. VTK's own
/// windows end the process where there is no display or no GLX, and its Qt widget is bound to one version of Qt; this way a
/// display without OpenGL is a sentence, and one code serves Qt 5 and 6, a graphics card and Mesa in software.
#ifndef rcnSurfaceRenderer_h
#define rcnSurfaceRenderer_h

#include <array>
#include <memory>
#include <vector>

#include <QColor>
#include <QImage>
#include <QObject>
#include <QSize>
#include <QString>

#include <vtkPolyData.h>
#include <vtkSmartPointer.h>

class QOffscreenSurface;
class QOpenGLContext;
class QThread;

class rcnSurfaceRenderer : public QObject
{
  Q_OBJECT
public:
  struct Part
  {
    vtkSmartPointer<vtkPolyData> Mesh; ///< in RAS mm; not changed any more
    QColor Color;
    double Opacity = 1;
  };
  using Parts = std::vector<Part>;

  /// In RAS mm; the view's angle is ViewAngle.
  struct Camera
  {
    std::array<double, 3> Focus{}, Position{}, Up{};
  };
  static constexpr double ViewAngle = 30; ///< degrees, from the bottom to the top of the picture

  explicit rcnSurfaceRenderer(QObject* parent = nullptr);
  ~rcnSurfaceRenderer() override;

  /// Why nothing can be drawn here, as a sentence; empty: it can.
  QString problem() const { return this->Problem; }
  /// What draws: VTK, OpenGL and the driver, with their versions.
  QString description() const { return this->Description; }
  /// Draws as soon as what is being drawn is done; of several that wait only the last one is.
  void render(std::shared_ptr<const Parts> parts, const Camera& camera, const QSize& size);
  bool isBusy() const { return this->Busy; }

signals:
  void rendered(const QImage& picture);
  void failed(const QString& sentence);

private:
  struct Request;
  class Worker;
  void begin(const std::shared_ptr<Request>& request);

  QString Problem, Description;
  bool Busy = false;
  std::shared_ptr<Request> Next;
  std::unique_ptr<QOffscreenSurface> Surface;
  std::unique_ptr<QOpenGLContext> Context;
  std::unique_ptr<Worker> Drawing;
  QThread* Thread = nullptr;
};

#endif
