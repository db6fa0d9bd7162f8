/// rater-consensus-viewer: the window. Started by `rater-consensus view`.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <QApplication>
#include <QSurfaceFormat>
#include <QTimer>

#include <QVTKOpenGLNativeWidget.h>
#include <itkObject.h>
#include <vtkObject.h>

#include "qRcnMainWindow.h"
#include "qRcnNotice.h"
#include "rcn/rcn.h"
#include "rcnArguments.h"

namespace
{

/// The session behind --data, --image, --rater and --model; files given alone are opened as if they were dropped.
rcn::Session SessionFrom(const rcn::Arguments& arguments)
{
  rcn::Session session;
  if (arguments.Has("--data"))
  {
    session = rcn::SessionOf(rcn::ReadDataList(arguments.Get("--data")));
  }
  if (arguments.Has("--image") || arguments.Has("--rater"))
  {
    rcn::Case one;
    one.Id = arguments.Has("--image") ? rcn::StemOf(arguments.Get("--image")) : "case";
    if (arguments.Has("--image"))
    {
      one.Images = { arguments.Get("--image") };
    }
    for (const std::string& rater : arguments.GetAll("--rater"))
    {
      for (const rcn::RaterFile& single : rcn::RatersIn(rcn::ParseRater(rater)))
      {
        one.Raters.push_back(single);
      }
    }
    session.Current = session.AddCase(one);
  }
  if (arguments.Has("--model"))
  {
    session.AddModel(arguments.Get("--model"));
  }
  if (arguments.Has("--case"))
  {
    session.Current = arguments.Get("--case");
  }
  return session;
}

void Resize(QWidget& window, const std::string& size)
{
  int width = 0, height = 0;
  char rest = 0;
  if (std::sscanf(size.c_str(), "%dx%d%c", &width, &height, &rest) != 2 || width < 200 || height < 200 || width > 16384 || height > 16384)
  {
    throw rcn::Error(RCN_EINVALID, "--size is a size in pixels such as 1440x900, not '" + size + "'.");
  }
  window.resize(width, height);
}

/// Waits until nothing is under way, saves a picture and leaves.
void TakePicture(qRcnMainWindow& window, const QString& path)
{
  if (window.work()->isRunning() || window.trainingWork()->isRunning())
  {
    QTimer::singleShot(50, &window, [&window, path] { TakePicture(window, path); });
    return;
  }
  const bool failed = window.notice()->isError() && !window.notice()->text().isEmpty();
  if (failed)
  {
    std::fprintf(stderr, "rater-consensus: %s\n", window.notice()->text().toUtf8().constData());
  }
  const bool saved = window.grab().save(path);
  if (!saved)
  {
    std::fprintf(stderr, "rater-consensus: %s cannot be written.\n", path.toUtf8().constData());
  }
  QCoreApplication::exit(saved && !failed ? EXIT_SUCCESS : EXIT_FAILURE);
}

} // namespace

int main(int argc, char** argv)
{
  itk::Object::GlobalWarningDisplayOff();
  vtkObject::GlobalWarningDisplayOff();
  std::signal(SIGXFSZ, SIG_IGN);
  rcn::Arguments arguments;
  try
  {
    arguments = rcn::ParseArguments(std::vector<std::string>(argv + 1, argv + argc), "view", rcn::ViewOptions());
    QSurfaceFormat::setDefaultFormat(QVTKOpenGLNativeWidget::defaultFormat());
    QApplication application(argc, argv);
    QApplication::setApplicationName("Viewer");
    QApplication::setOrganizationName("RaterConsensus");
    QApplication::setApplicationDisplayName("");
    QApplication::setApplicationVersion(RCN_VERSION);

    const rcn::Session session = SessionFrom(arguments);
    qRcnMainWindow window;
    if (arguments.Has("--size"))
    {
      Resize(window, arguments.Get("--size"));
    }
    window.show();
    if (!session.Cases.empty() || !session.Models.empty())
    {
      window.openSession(session);
    }
    else if (arguments.Has("FILE"))
    {
      QStringList files;
      for (const std::string& file : arguments.GetAll("FILE"))
      {
        files << QString::fromStdString(file);
      }
      window.openFiles(files);
    }
    const auto arrange = [&] {
      if (arguments.Has("--layout"))
      {
        window.setLayoutName(QString::fromStdString(arguments.Get("--layout")));
      }
      if (arguments.Has("--panel"))
      {
        window.setPanelName(QString::fromStdString(arguments.Get("--panel")));
      }
    };
    // The first picture: what was asked for on the command line goes before what a workspace remembers.
    const auto once = std::make_shared<QMetaObject::Connection>();
    *once = QObject::connect(window.work(), &qRcnJob::idle, &window, [&, once] {
      QObject::disconnect(*once);
      arrange();
    });
    arrange();
    if (arguments.Has("--screenshot"))
    {
      QTimer::singleShot(600, &window, [&] { TakePicture(window, QString::fromStdString(arguments.Get("--screenshot"))); });
    }
    return QApplication::exec();
  }
  catch (const rcn::Error& error)
  {
    std::fprintf(stderr, "rater-consensus: %s\n", error.what());
    return 2;
  }
}
