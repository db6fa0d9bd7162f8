// SPDX-License-Identifier: Apache-2.0
/// rater-consensus: the command line.
#include <cstdio>
#include <cstdlib>
#include <set>
#ifdef __linux__
#include <unistd.h>
#endif

#include "rcn/rcn.h"
#include "rcnCommands.h"
#include "rcnProcesses.h"

namespace
{

std::string Overview(const std::vector<rcn::Command>& commands)
{
  std::string text =
    "rater-consensus " RCN_VERSION ": agreement, consensus and calibration of several raters' segmentations\n\n";
  for (const rcn::Command& command : commands)
  {
    std::string name = command.Name;
    name.resize(12, ' ');
    text += "  " + name + command.Summary + "\n";
  }
  return text + "\n" + rcn::Wrap(std::string("Exit codes: ") + rcn::ExitCodesInWords, 0, 0) +
    "\nrater-consensus COMMAND --help tells more. For research, not for clinical use.\n";
}

/// Threads of the OpenMP runtime that wait keep a core busy; training slows down as soon as another program wants that core.
/// How they wait is read when the runtime is loaded, so the program starts once more with that said. Returns where it
/// has been said already, or cannot be.
void WaitQuietly(char** argv)
{
#ifdef __linux__
  if (!std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT") && setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
  {
    execv("/proc/self/exe", argv);
  }
#else
  (void)argv;
#endif
}

int Run(const std::vector<std::string>& words, const std::vector<rcn::Command>& commands)
{
  const bool quiet = !rcn::Processes::IsFirstByEnvironment(); // one help text is enough
  if (words.empty())
  {
    std::fputs(quiet ? "" : Overview(commands).c_str(), stderr);
    return rcn::WrongUsageOrInput;
  }
  if (quiet && (words[0][0] == '-' || words[0] == "help"))
  {
    return rcn::Done;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help")
  {
    rcn::WriteText("-", Overview(commands));
    return rcn::Done;
  }
  if (words[0] == "--version")
  {
    rcn::WriteText("-", "rater-consensus " RCN_VERSION "\n");
    return rcn::Done;
  }
  if (words[0] == "--man")
  {
    rcn::WriteText("-", rcn::ManPage(commands));
    return rcn::Done;
  }
  if (words[0] == "--bash-completion")
  {
    rcn::WriteText("-", rcn::BashCompletion(commands));
    return rcn::Done;
  }
  for (const rcn::Command& command : commands)
  {
    if (command.Name != words[0])
    {
      continue;
    }
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    for (const std::string& word : rest)
    {
      if (word == "--help" || word == "-h")
      {
        if (!quiet)
        {
          rcn::WriteText("-", rcn::HelpText(command));
        }
        return rcn::Done;
      }
    }
    const rcn::Arguments arguments = rcn::ParseArguments(rest, "rater-consensus " + command.Name, command.Options);
    rcn::Processes::Start();
    // What cannot be shared out is the first process's alone; the others wait for it to end.
    static const std::set<std::string> trains = { "study", "train" },
                                       lists = { "agree", "evaluate", "fuse", "predict", "recalibrate" };
    const bool shared = trains.count(command.Name) || (lists.count(command.Name) && arguments.Has("--data"));
    const bool isFirst = rcn::Processes::All().IsFirst();
    const std::string sentence = isFirst ? rcn::CheckFiles(command, arguments) : "";
    const std::string forAll = shared ? rcn::Processes::All().FromFirst(sentence) : sentence;
    if (!forAll.empty())
    {
      throw rcn::Error(RCN_EINVALID, forAll);
    }
    const int code = shared || isFirst ? command.Run(arguments) : rcn::Done;
    rcn::Processes::Finish();
    return code;
  }
  throw rcn::Error(RCN_EINVALID, "There is no command '" + words[0] + "'; see rater-consensus --help.");
}

/// Ends the program, and the processes that work with it, with one line.
void Fail(const std::string& sentence, int code)
{
  if (rcn::Processes::All().AreSeveral())
  {
    rcn::Processes::All().Fail(sentence, code);
  }
  if (rcn::Processes::IsFirstByEnvironment())
  {
    std::fprintf(stderr, "rater-consensus: %s\n", sentence.c_str());
  }
}

} // namespace

int main(int argc, char** argv)
{
  const std::vector<rcn::Command> commands = {
    rcn::AgreeCommand(),
    rcn::FuseCommand(),
#ifdef RCN_HAVE_NETWORKS
    rcn::TrainCommand(),
    rcn::PredictCommand(),
    rcn::StudyCommand(),
#endif
    rcn::EvaluateCommand(),
    rcn::RecalibrateCommand(),
    rcn::ReportCommand(),
    rcn::ViewCommand(),
    rcn::DemoCommand(),
  };
  rcn::BeginProgram();
  // For work that takes minutes; for seconds, starting twice would cost more than it saves.
  static const std::set<std::string> longWork = { "demo", "study", "train" };
  if (argc > 1 && longWork.count(argv[1]))
  {
    WaitQuietly(argv);
  }
  return rcn::RunProgram([&] { return Run(std::vector<std::string>(argv + 1, argv + argc), commands); }, Fail);
}
