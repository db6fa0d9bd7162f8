// SPDX-License-Identifier: Apache-2.0
/// rater-consensus-viewer: the window. Started by `rater-consensus view`.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <QApplication>
#include <QIcon>
#include <QTimer>

#include <itkObject.h>

#include "qRcnDisputes.h"
#include "qRcnDocument.h"
#include "qRcnExport.h"
#include "qRcnJobs.h"
#include "qRcnMainWindow.h"
#include "qRcnNotice.h"
#include "qRcnTasks.h"
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
    for (const rcn::RaterFile& rater : rcn::RatersFrom(arguments))
    {
      for (const rcn::RaterFile& single : rcn::RatersIn(rater))
      {
        one.Raters.push_back(single);
      }
    }
    session.Current = session.AddCase(one);
  }
  if (arguments.Has("--model"))
  {
    rcn::TakeModel(session, arguments.Get("--model"));
  }
  if (arguments.Has("--case"))
  {
    session.Current = arguments.Get("--case");
  }
  if (arguments.Has("--structure"))
  {
    rcn::FindStructure(session.Structures, arguments.Get("--structure")); // throws unless there is one
    session.View.Structure = arguments.Get("--structure");
  }
  return session;
}

void Resize(QWidget& window, const std::string& size)
{
  int width = 0, height = 0;
  char rest = 0;
  if (std::sscanf(size.c_str(), "%dx%d%c", &width, &height, &rest) != 2 || width < 200 || height < 200 || width > 16384 ||
    height > 16384)
  {
    throw rcn::Error(RCN_EINVALID, "--size must be a size in pixels such as 1440x900, not '" + size + "'.");
  }
  window.resize(width, height);
}

/// What --do asks for, by name.
std::function<void()> ActionFrom(qRcnMainWindow& window, const std::string& text)
{
  const std::string name = text.substr(0, text.find(':'));
  const QString word = QString::fromStdString(text).mid(static_cast<int>(name.size()) + 1);
  const std::map<std::string, std::function<void()>> plain = {
    { "compare-raters", [&window] { window.tasks()->compareRaters(); } },
    { "predict", [&window] { window.tasks()->predict(false); } },
    { "predict-all", [&window] { window.tasks()->predict(true); } },
    { "evaluate", [&window] { window.evaluate(); } },
    { "recalibrate", [&window] { window.recalibrate(); } },
    { "next-region", [&window] { window.disputes()->next(); } },
  };
  const std::map<std::string, std::function<void()>> withWord = {
    { "fuse", [&window, word] { window.tasks()->fuse(word); } },
    { "save", [&window, word] { window.document()->saveWorkspace(word); } },
    { "report", [&window, word] { window.exporter()->report(word); } },
    { "slide", [&window, word] { window.exporter()->slide(word, window.shownSlice()); } },
  };
  const auto& table = word.isEmpty() ? plain : withWord;
  const auto found = table.find(name);
  if (found == table.end())
  {
    throw rcn::Error(RCN_EINVALID, "--do " + text + ": unknown action; see rater-consensus view --help.");
  }
  return found->second;
}

/// One thing after another, each when nothing is under way any more and nothing has failed.
class Script : public QObject
{
public:
  Script(qRcnMainWindow& window, std::vector<std::function<void()>> steps) : Window_(window), Steps_(std::move(steps))
  {
    this->startTimer(50);
  }

protected:
  void timerEvent(QTimerEvent* event) override
  {
    if (this->Window_.isBusy())
    {
      return;
    }
    if (this->Next_ == this->Steps_.size())
    {
      this->killTimer(event->timerId());
      return;
    }
    this->Steps_[this->Next_++]();
  }

private:
  qRcnMainWindow& Window_;
  std::vector<std::function<void()>> Steps_;
  size_t Next_ = 0;
};

/// Saves a picture of the window and leaves; what went wrong goes to the terminal.
void TakePicture(qRcnMainWindow& window, const QString& path)
{
  const QString sentence = window.notice()->isError() ? window.notice()->text() : QString();
  if (!sentence.isEmpty())
  {
    std::fprintf(stderr, "rater-consensus: %s\n", sentence.toUtf8().constData());
    QCoreApplication::exit(2);
    return;
  }
  if (!window.grab().save(path))
  {
    std::fprintf(stderr, "rater-consensus: %s cannot be written.\n", path.toUtf8().constData());
    QCoreApplication::exit(1);
    return;
  }
  QCoreApplication::exit(0);
}

} // namespace

int main(int argc, char** argv)
{
  itk::Object::GlobalWarningDisplayOff();
  std::signal(SIGXFSZ, SIG_IGN);
  rcn::Arguments arguments;
  try
  {
    arguments =
      rcn::ParseArguments(std::vector<std::string>(argv + 1, argv + argc), "rater-consensus view", rcn::ViewOptions());
    QApplication application(argc, argv);
    QApplication::setApplicationName("Viewer");
    QApplication::setOrganizationName("RaterConsensus");
    QApplication::setApplicationDisplayName("");
    QApplication::setApplicationVersion(RCN_VERSION);
    QApplication::setDesktopFileName("rater-consensus-viewer"); // the desktop finds icon and name by it
    QApplication::setWindowIcon(QIcon::fromTheme("rater-consensus-viewer"));

    const rcn::Session session = SessionFrom(arguments);
    qRcnMainWindow window;
    if (arguments.Has("--size"))
    {
      Resize(window, arguments.Get("--size"));
    }
    window.show();
    if (!session.Cases.empty() || !session.Models.empty())
    {
      // A list can be opened again by its name; the other options make a case that no one file holds.
      const bool list = arguments.Has("--data") && !arguments.Has("--image") && !arguments.Has("--rater");
      window.document()->openSession(
        session, list ? QStringList(QString::fromStdString(arguments.Get("--data"))) : QStringList());
    }
    else if (arguments.Has("FILE"))
    {
      QStringList files;
      for (const std::string& file : arguments.GetAll("FILE"))
      {
        files << QString::fromStdString(file);
      }
      window.document()->openFiles(files);
    }
    // What was asked for on the command line goes before what a workspace remembers.
    std::vector<std::function<void()>> steps;
    const auto stopOnError = [&] {
      if (arguments.Has("--screenshot") && window.notice()->isError())
      {
        TakePicture(window, {});
      }
    };
    for (const std::string& action : arguments.GetAll("--do"))
    {
      steps.push_back(stopOnError);
      steps.push_back(ActionFrom(window, action));
    }
    steps.push_back([&] {
      if (arguments.Has("--layout"))
      {
        window.setLayoutName(QString::fromStdString(arguments.Get("--layout")));
      }
      if (arguments.Has("--panel"))
      {
        window.setPanelName(QString::fromStdString(arguments.Get("--panel")));
      }
    });
    if (arguments.Has("--screenshot"))
    {
      // Views and charts draw themselves meanwhile.
      steps.insert(steps.end(), 8, [] {});
      steps.push_back([&] { TakePicture(window, QString::fromStdString(arguments.Get("--screenshot"))); });
    }
    const Script script(window, steps);
    return QApplication::exec();
  }
  catch (const rcn::Error& error)
  {
    std::fprintf(stderr, "rater-consensus: %s\n", error.what());
    return 2;
  }
}
