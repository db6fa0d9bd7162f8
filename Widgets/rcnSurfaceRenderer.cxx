// SPDX-License-Identifier: Apache-2.0
#include "rcnSurfaceRenderer.h"

#include <cstdlib>
#include <utility>

#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLFunctions>
#include <QThread>

#include <vtkActor.h>
#include <vtkCallbackCommand.h>
#include <vtkCamera.h>
#include <vtkGenericOpenGLRenderWindow.h>
#include <vtkNew.h>
#include <vtkPolyDataMapper.h>
#include <vtkProperty.h>
#include <vtkRenderer.h>
#include <vtkUnsignedCharArray.h>
#include <vtkVersion.h>

struct rcnSurfaceRenderer::Request
{
  std::shared_ptr<const Parts> What;
  Camera From;
  QSize Size;
};

/// What lives in the thread: VTK's window, its renderer, and the actors of the parts that were drawn last.
class rcnSurfaceRenderer::Worker : public QObject
{
public:
  Worker(QOpenGLContext* context, QOffscreenSurface* surface) : Context(context), Surface(surface) {}

  /// A null picture: VTK cannot draw here.
  QImage draw(const Request& request);
  /// In the thread that drew.
  void release();

private:
  void prepare();
  void take(const std::shared_ptr<const Parts>& parts);
  static void answer(vtkObject*, unsigned long event, void* worker, void* reply);

  QOpenGLContext* Context;
  QOffscreenSurface* Surface;
  vtkSmartPointer<vtkGenericOpenGLRenderWindow> Window;
  vtkSmartPointer<vtkRenderer> Renderer;
  std::shared_ptr<const Parts> Shown;
  bool Proven = false; ///< a picture had the background that was asked for
};

namespace
{

const int BACKGROUND = 26; // of 255: the outermost level may be dark

QSurfaceFormat Wanted()
{
  QSurfaceFormat format;
  format.setRenderableType(QSurfaceFormat::OpenGL);
  format.setVersion(3, 2);
  format.setProfile(QSurfaceFormat::CoreProfile);
  return format;
}

} // namespace

void rcnSurfaceRenderer::Worker::answer(vtkObject*, unsigned long event, void* worker, void* reply)
{
  const auto* self = static_cast<Worker*>(worker);
  if (event == vtkCommand::WindowMakeCurrentEvent)
  {
    self->Context->makeCurrent(self->Surface);
  }
  else if (event == vtkCommand::WindowIsCurrentEvent)
  {
    *static_cast<bool*>(reply) = QOpenGLContext::currentContext() == self->Context;
  }
}

void rcnSurfaceRenderer::Worker::prepare()
{
  this->Window = vtkSmartPointer<vtkGenericOpenGLRenderWindow>::New();
  vtkNew<vtkCallbackCommand> answers;
  answers->SetClientData(this);
  answers->SetCallback(&Worker::answer);
  this->Window->AddObserver(vtkCommand::WindowMakeCurrentEvent, answers);
  this->Window->AddObserver(vtkCommand::WindowIsCurrentEvent, answers);
#if VTK_VERSION_NUMBER >= VTK_VERSION_CHECK(9, 3, 20240914)
  this->Window->SetOpenGLSymbolLoader(
    [](void* context, const char* name) -> vtkOpenGLRenderWindow::VTKOpenGLAPIProc {
      return static_cast<QOpenGLContext*>(context)->getProcAddress(name);
    },
    this->Context);
#endif
  this->Window->SetReadyForRendering(true);
  this->Window->SetSupportsOpenGL(1);
  this->Window->SetMultiSamples(0);
  this->Window->SetShowWindow(false);
  this->Window->SetUseOffScreenBuffers(true);
  this->Window->SetFrameBlitModeToNoBlit();
  this->Renderer = vtkSmartPointer<vtkRenderer>::New();
  this->Renderer->SetBackground(BACKGROUND / 255.0, BACKGROUND / 255.0, BACKGROUND / 255.0);
  this->Renderer->GetActiveCamera()->SetViewAngle(ViewAngle);
  // Transparent surfaces are blended in any order (McGuire and Bavoil 2013, which is VTK's way without depth peeling): peeling
  // takes six times as long in software.
  this->Renderer->UseDepthPeelingOff();
  this->Window->AddRenderer(this->Renderer);
}

void rcnSurfaceRenderer::Worker::take(const std::shared_ptr<const Parts>& parts)
{
  if (parts == this->Shown)
  {
    return;
  }
  this->Renderer->RemoveAllViewProps();
  for (const Part& part : *parts)
  {
    vtkNew<vtkPolyDataMapper> mapper;
    mapper->SetInputData(part.Mesh);
    mapper->ScalarVisibilityOff();
    vtkNew<vtkActor> actor;
    actor->SetMapper(mapper);
    actor->GetProperty()->SetColor(part.Color.redF(), part.Color.greenF(), part.Color.blueF());
    actor->GetProperty()->SetOpacity(part.Opacity);
    actor->GetProperty()->SetSpecular(0.15);
    actor->GetProperty()->SetSpecularPower(20);
    this->Renderer->AddActor(actor);
  }
  this->Shown = parts;
}

QImage rcnSurfaceRenderer::Worker::draw(const Request& request)
{
  if (!this->Context->makeCurrent(this->Surface))
  {
    return QImage();
  }
  // VTK complains on the terminal where it cannot draw; the picture itself tells.
  const int warnings = vtkObject::GetGlobalWarningDisplay();
  vtkObject::SetGlobalWarningDisplay(this->Proven ? warnings : 0);
  if (!this->Window)
  {
    this->prepare();
  }
  this->take(request.What);
  vtkCamera* camera = this->Renderer->GetActiveCamera();
  camera->SetFocalPoint(request.From.Focus.data());
  camera->SetPosition(request.From.Position.data());
  camera->SetViewUp(request.From.Up.data());
  const int width = request.Size.width(), height = request.Size.height();
  this->Window->SetSize(width, height);
  this->Renderer->ResetCameraClippingRange();
  this->Window->Render();
  vtkNew<vtkUnsignedCharArray> pixels;
  this->Window->GetRGBACharPixelData(0, 0, width - 1, height - 1, 0, pixels);
  vtkObject::SetGlobalWarningDisplay(warnings);
  if (pixels->GetNumberOfValues() < static_cast<vtkIdType>(width) * height * 4)
  {
    return QImage();
  }
  const QImage upsideDown(pixels->GetPointer(0), width, height, 4 * width, QImage::Format_RGBA8888);
  const QImage picture = upsideDown.mirrored().convertToFormat(QImage::Format_RGB32);
  // A corner is free: surfaces are put into the middle before the first picture.
  this->Proven = this->Proven || std::abs(qGreen(picture.pixel(width - 1, 0)) - BACKGROUND) <= 2;
  return this->Proven ? picture : QImage();
}

void rcnSurfaceRenderer::Worker::release()
{
  if (this->Window)
  {
    this->Context->makeCurrent(this->Surface);
    this->Window->Finalize();
    this->Renderer = nullptr;
    this->Window = nullptr;
  }
  this->Context->doneCurrent();
}

rcnSurfaceRenderer::rcnSurfaceRenderer(QObject* parent)
  : QObject(parent), Surface(new QOffscreenSurface), Context(new QOpenGLContext)
{
  this->Surface->setFormat(Wanted());
  this->Surface->create();
  this->Context->setFormat(Wanted());
  if (!this->Surface->isValid() || !this->Context->create() || !this->Context->makeCurrent(this->Surface.get()))
  {
    this->Problem = tr("The 3-D view needs OpenGL 3.2, which this display does not have.");
    return;
  }
  const auto text = [this](GLenum name) {
    return QString::fromUtf8(reinterpret_cast<const char*>(this->Context->functions()->glGetString(name)));
  };
  this->Description = tr("VTK %1, OpenGL %2, %3").arg(vtkVersion::GetVTKVersion(), text(GL_VERSION), text(GL_RENDERER));
  this->Context->doneCurrent();
  this->Drawing.reset(new Worker(this->Context.get(), this->Surface.get()));
  if (QOpenGLContext::supportsThreadedOpenGL())
  {
    this->Thread = new QThread(this);
    this->Thread->setObjectName("3-D view");
    this->Context->moveToThread(this->Thread);
    this->Drawing->moveToThread(this->Thread);
    this->Thread->start();
  }
}

rcnSurfaceRenderer::~rcnSurfaceRenderer()
{
  if (!this->Thread)
  {
    if (this->Drawing)
    {
      this->Drawing->release();
    }
    return;
  }
  // What OpenGL holds goes where it was made; the context comes back to be destroyed with its surface.
  QThread* here = QThread::currentThread();
  QMetaObject::invokeMethod(
    this->Drawing.get(),
    [this, here] {
      this->Drawing->release();
      this->Context->moveToThread(here);
    },
    Qt::BlockingQueuedConnection);
  this->Thread->quit();
  this->Thread->wait();
}

void rcnSurfaceRenderer::render(std::shared_ptr<const Parts> parts, const Camera& camera, const QSize& size)
{
  if (!this->Problem.isEmpty() || size.isEmpty())
  {
    return;
  }
  const auto request = std::make_shared<Request>(Request{ std::move(parts), camera, size });
  if (this->Busy)
  {
    this->Next = request;
    return;
  }
  this->begin(request);
}

void rcnSurfaceRenderer::begin(const std::shared_ptr<Request>& request)
{
  this->Busy = true;
  QMetaObject::invokeMethod(
    this->Drawing.get(),
    [this, request] {
      const QImage picture = this->Drawing->draw(*request);
      QMetaObject::invokeMethod(
        this,
        [this, picture] {
          this->Busy = false;
          if (picture.isNull())
          {
            this->Problem = tr("The 3-D view needs OpenGL through GLX, which this display does not have.");
            emit this->failed(this->Problem);
            return;
          }
          if (this->Next)
          {
            this->begin(std::exchange(this->Next, nullptr));
          }
          emit this->rendered(picture);
        },
        Qt::QueuedConnection);
    },
    Qt::QueuedConnection);
}
