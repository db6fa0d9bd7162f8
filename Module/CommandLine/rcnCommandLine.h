// SPDX-License-Identifier: Apache-2.0
/// What all commands of rater-consensus share: their description, exit codes, files, and results as JSON.
#ifndef rcnCommandLine_h
#define rcnCommandLine_h

#include <chrono>
#include <string>
#include <vector>

#include "rcnArguments.h"
#include "rcnCases.h"
#include "rcnJson.h"
#include "rcnOverwrite.h"
#include "rcnReport.h"
#include "rcnTerminal.h"
#include "rcnWayOut.h"
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

/// Why a command must not run: it would overwrite a file that it reads, or write two results to one file. Empty: it may run.
std::string CheckFiles(const Command& command, const Arguments& arguments);

enum ExitCode
{
  Done = 0,
  FailedWhileWorking = 1, ///< also when cases were left out, or the disk is full
  WrongUsageOrInput = 2,
  StoppedBySignal = 128 ///< and the signal's number: 130 after Ctrl-C
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

/// The workspace options behind --resample, --tolerance, --unanswered, --threads.
WorkspaceOptions WorkspaceOptionsFrom(const Arguments& arguments);

/// How a command writes images: with its threads, and until Ctrl-C.
WriteOptions WriteOptionsFrom(const Arguments& arguments, const std::string& note = "");

/// Prints tables and the like in the first process, unless --quiet was given, or --json, --csv or -o goes to standard output;
/// false then.
bool Print(const Arguments& arguments, const std::string& text);

/// Writes the results to --json, if it was given, in the first process.
void WriteResults(const Arguments& arguments, const Json& results);

/// Throws Error unless the files named by --json and --csv can be written, so that long work fails early.
void CheckTextOutputs(const Arguments& arguments);

/// Throws Error unless there is either one case (--rater) or a list of them (--data).
void CheckCaseOrList(const Arguments& arguments);

/// Whether the case is in the --split, if one was given.
inline bool IsAskedFor(const Case& one, const Arguments& arguments)
{
  return !arguments.Has("--split") || one.Split == arguments.Get("--split");
}

/// The loop over cases (rcnCases.h) of the --split asked for, shown on the terminal and stopped by Ctrl-C.
CaseLoop LoopFor(const Arguments& arguments, Terminal& terminal);

/// The exit code of a command that left out these cases.
inline int ExitCodeOf(const std::vector<LeftOutCase>& leftOut)
{
  return leftOut.empty() ? Done : FailedWhileWorking;
}

/// The texts of a JSON array.
std::vector<std::string> StringsFrom(const json_t* array);

} // namespace rcn

#endif
