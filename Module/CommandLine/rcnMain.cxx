// SPDX-License-Identifier: Apache-2.0
/// rater-consensus: the command line.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <set>

#include <itkObject.h>

#include "rcn/rcn.h"
#include "rcnCommands.h"
#include "rcnPlatform.h"
#include "rcnHelp.h"
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
  return text + "\n" + rcn::Wrap(std::string("Exit codes: ") + rcn::ExitCodesInWords) +
    "\nrater-consensus COMMAND --help describes a command. For research, not for clinical use.\n";
}

/// Waiting threads of the OpenMP runtime keep a core busy for milliseconds, which makes all work several times slower as soon
/// as another program needs that core. They should sleep soon: GCC's runtime after SPINS looks, some 30 microseconds, which is
/// as fast on a quiet machine as its own choice; others at once. The runtime reads how to wait when it is loaded, so the
/// program starts itself again with the variables set. Returns where one of them is set already, or on a system where this
/// is not possible.
void WaitQuietly(char** argv)
{
#ifdef __linux__
  static const char* const SPINS = "3000";
  if (!std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT") &&
    rcn::platform::SetDefault("OMP_WAIT_POLICY", "passive") && rcn::platform::SetDefault("GOMP_SPINCOUNT", SPINS))
  {
    std::vector<std::string> words;
    for (; *argv; ++argv)
    {
      words.push_back(*argv);
    }
    rcn::platform::StartInstead("/proc/self/exe", words);
  }
#else
  (void)argv;
#endif
}

/// What --help, --version and the like print; empty: not one of them.
std::string TextFor(const std::string& word, const std::vector<rcn::Command>& commands)
{
  return word == "--help" || word == "-h" || word == "help" ? Overview(commands)
    : word == "--version"                                   ? "rater-consensus " RCN_VERSION "\n"
    : word == "--man"                                       ? rcn::ManPage(commands)
    : word == "--bash-completion"                           ? rcn::BashCompletion(commands)
                                                            : "";
}

int RunCommand(const rcn::Command& command, const std::vector<std::string>& words)
{
  const rcn::Arguments arguments = rcn::ParseArguments(words, "rater-consensus " + command.Name, command.Options);
  rcn::Processes::Start();
  // Work that cannot be shared is done by the first process; the others wait for it to end.
  static const std::set<std::string> trains = { "study", "train" },
                                     lists = { "agree", "evaluate", "fuse", "predict", "recalibrate" };
  const bool shared = trains.count(command.Name) || (lists.count(command.Name) && arguments.Has("--data"));
  const bool isFirst = rcn::Processes::All().IsFirst();
  const std::string mine = isFirst ? rcn::CheckFiles(command, arguments) : "";
  const std::string sentence = shared ? rcn::Processes::All().FromFirst(mine) : mine;
  if (!sentence.empty())
  {
    throw rcn::Error(RCN_EINVALID, sentence);
  }
  const int code = shared || isFirst ? command.Run(arguments) : rcn::Done;
  rcn::Processes::Finish();
  return code;
}

int Run(const std::vector<std::string>& words, const std::vector<rcn::Command>& commands)
{
  const bool isFirst = rcn::Processes::IsFirstByEnvironment(); // one of several processes prints help
  if (words.empty())
  {
    std::fputs(isFirst ? Overview(commands).c_str() : "", stderr);
    return rcn::WrongUsageOrInput;
  }
  std::string text = TextFor(words[0], commands);
  const auto command =
    std::find_if(commands.begin(), commands.end(), [&](const rcn::Command& one) { return one.Name == words[0]; });
  if (text.empty() && command == commands.end())
  {
    throw rcn::Error(RCN_EINVALID, "Unknown command '" + words[0] + "'; see rater-consensus --help.");
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (text.empty() && std::any_of(rest.begin(), rest.end(), [](const auto& word) { return word == "--help" || word == "-h"; }))
  {
    text = rcn::HelpText(*command);
  }
  if (text.empty())
  {
    return RunCommand(*command, rest);
  }
  if (isFirst)
  {
    rcn::WriteText("-", text);
  }
  return rcn::Done;
}

/// Ends the program, and the processes that work with it, with one line.
int Fail(const std::string& sentence, int code)
{
  if (rcn::Processes::All().AreSeveral())
  {
    rcn::Processes::All().Fail(sentence, code);
  }
  if (rcn::Processes::IsFirstByEnvironment())
  {
    std::fprintf(stderr, "rater-consensus: %s\n", sentence.c_str());
  }
  return code;
}

int ExitCodeOf(const rcn::Error& error)
{
  switch (error.Status())
  {
    case RCN_ECANCELLED:
      return rcn::Terminal::IsInterrupted() ? rcn::StoppedBySignal + rcn::Terminal::StopSignal() : rcn::FailedWhileWorking;
    case RCN_ENOMEM:
    case RCN_ESPACE:
    case RCN_EINTERNAL: return rcn::FailedWhileWorking;
    default: return rcn::WrongUsageOrInput;
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
  // An error is one line: messages of libraries would come in addition.
  itk::Object::GlobalWarningDisplayOff();
  rcn::SetLibrariesQuiet(true);
  // A file that exceeds its size limit is an error to report, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  // Not for help and the like, where starting twice would take longer than the work.
  if (argc > 1 && argv[1][0] != '-' && argv[1] != std::string("help"))
  {
    WaitQuietly(argv);
  }
  try
  {
    return Run(std::vector<std::string>(argv + 1, argv + argc), commands);
  }
  catch (const rcn::Error& error)
  {
    return Fail(rcn::SentenceOf(error), ExitCodeOf(error));
  }
  catch (const std::bad_alloc&)
  {
    return Fail("Out of memory.", rcn::FailedWhileWorking);
  }
  catch (const std::exception& error)
  {
    return Fail(rcn::OneLine(error.what()), rcn::FailedWhileWorking);
  }
}
