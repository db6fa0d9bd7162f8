// SPDX-License-Identifier: Apache-2.0
/// What all commands of rater-consensus share: help, man page and bash completion out of the options'
/// descriptions, aligned tables, progress, and files for machines.
#ifndef rcnCommandLine_h
#define rcnCommandLine_h

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "rcnArguments.h"
#include "rcnCases.h"
#include "rcnJson.h"
#include "rcnOverwrite.h"
#include "rcnReport.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// One command: rater-consensus NAME ...
struct Command
{
  std::string Name;
  std::string Summary;             ///< one line
  std::vector<std::string> Usages; ///< after the program's and the command's name
  std::string Description;
  std::vector<Option> Options;
  int (*Run)(const Arguments& arguments);
  /// Files that it writes beside those that options name; `list`: of --data, empty without.
  std::vector<NamedFile> (*Outputs)(const Arguments& arguments, const DataList& list) = nullptr;
};

/// The sentence with which a command is refused because it would overwrite what it reads, or write two results to one file;
/// empty: nothing stands against it. To be asked before Run().
std::string CheckFiles(const Command& command, const Arguments& arguments);

/// Text in lines of at most 96 columns; `first` are taken already, and later lines begin after `indent`.
std::string Wrap(const std::string& text, size_t indent, size_t first);

std::string HelpText(const Command& command);
std::string ManPage(const std::vector<Command>& commands);
std::string BashCompletion(const std::vector<Command>& commands);

// ---- programs --------------------------------------------------------------------------------------

enum ExitCode
{
  Done = 0,
  FailedWhileWorking = 1, ///< also when cases were left out, or the disk is full
  WrongUsageOrInput = 2,
  StoppedBySignal = 128 ///< and the signal's number: 130 after Ctrl-C
};

/// Help and man page say the same of them.
extern const char* const ExitCodesInWords;

/// The first thing a program does: only its own sentences reach a person, and a full disk is an error, not the end.
void BeginProgram();

/// Runs work() and returns its exit code. What it throws becomes one sentence for fail() and an exit code.
int RunProgram(const std::function<int()>& work, const std::function<void(const std::string& sentence, int code)>& fail);

/// A table with aligned columns; numbers to the right.
class Table
{
public:
  explicit Table(std::vector<std::string> header) : Rows_{ std::move(header) } {}
  void Add(std::vector<std::string> row) { this->Rows_.push_back(std::move(row)); }
  std::string Text() const;

private:
  std::vector<std::vector<std::string>> Rows_;
};

/// Seconds since it was made or last asked.
class Stopwatch
{
public:
  double Lap();

private:
  std::chrono::steady_clock::time_point Start_ = std::chrono::steady_clock::now();
};

struct Seconds
{
  double Read = 0, Compute = 0, Write = 0;
  json_t* Json() const;
  void Add(const json_t* json); ///< as Json() made it
};

/// A bar on standard error while it is a terminal, and Ctrl-C: the first asks to stop, the second ends
/// the program at once.
class Terminal
{
public:
  explicit Terminal(const Arguments& arguments);
  ~Terminal();
  /// Connects a workspace's progress to the bar and to Ctrl-C.
  void Watch(Workspace& workspace);
  /// Draws the bar, now and then; true after Ctrl-C.
  bool Show(double fraction, const char* stage);
  /// Which case of how many.
  void SetCase(const std::string& name, size_t index, size_t count);
  /// One line on standard error, unless --quiet.
  void Remark(const std::string& sentence) { this->Say(sentence, false); }
  /// The same for what a person must not miss: also with --quiet.
  void Warn(const std::string& sentence) { this->Say(sentence, true); }
  /// Whether Ctrl-C was pressed, or another signal asked to stop.
  static bool IsInterrupted() { return StopSignal() != 0; }
  /// Which signal; 0: none.
  static int StopSignal();
  /// Throws RCN_ECANCELLED after Ctrl-C.
  void ThrowIfInterrupted() const;

private:
  void ClearLine();
  void Say(const std::string& sentence, bool always);

  bool IsTerminal_, Quiet_, Silent_, Drawn_ = false;
  std::string Case_;
  std::chrono::steady_clock::time_point Last_;
};

/// The workspace options behind --resample, --tolerance, --unanswered, --threads.
WorkspaceOptions WorkspaceOptionsFrom(const Arguments& arguments);

/// Throws Error unless the files named by --json and --csv can be written, so that long work fails
/// early.
void CheckTextOutputs(const Arguments& arguments);

/// Whether --split, if given, asks for the case.
inline bool IsAskedFor(const Case& one, const Arguments& arguments)
{
  return !arguments.Has("--split") || one.Split == arguments.Get("--split");
}

/// The loop over cases (rcnCases.h) of the --split asked for, shown on the terminal and stopped by Ctrl-C.
CaseLoop LoopFor(const Arguments& arguments, Terminal& terminal);

/// The exit code of a command that went on without these cases.
inline int ExitCodeOf(const std::vector<LeftOutCase>& leftOut)
{
  return leftOut.empty() ? Done : FailedWhileWorking;
}

/// The numbers and texts of an array that JsonNumber() and JsonStrings() made; NaN for null.
std::vector<double> NumbersFrom(const json_t* array);
std::vector<std::string> StringsFrom(const json_t* array);

} // namespace rcn

#endif
