// SPDX-License-Identifier: Apache-2.0
/// The parts of a study, private to rcnStudy*.cxx: its folder, trainings, judging and tables. rcnStudy.cxx puts them together.
#ifndef rcnStudyParts_h
#define rcnStudyParts_h

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "rcnPredictionFolder.h"
#include "rcnProcesses.h"
#include "rcnStudy.h"

namespace rcn
{
namespace study
{

/// One strategy with one seed: a model, and a folder of predictions.
struct Run
{
  std::string Strategy;
  int Number; ///< of the seed: 0, 1, ...

  std::string Name() const { return this->Strategy + (this->Number ? "-seed" + std::to_string(this->Number) : ""); }
};

/// The runs in the order in which they are trained: all strategies with the first seed, all with the second, ... `structures`:
/// whether there are several.
std::vector<Run> RunsOf(const StudyOptions& options, bool structures);

/// Where things lie in the folder of a study.
struct Folder
{
  std::string Path;

  std::string File(const std::string& name) const { return (std::filesystem::path(this->Path) / name).string(); }
  /// ".safetensors"; ".json": it is finished.
  std::string Model(const Run& run, const char* ending) const { return this->File("models/" + run.Name() + ending); }
  std::string Predictions(const Run& run) const { return this->File("predictions/" + run.Name()); }
  std::string Map(const Run& run, const std::string& id, const std::string& name) const
  {
    return PredictionFolder::FileFor(this->Predictions(run), id, name, ".nrrd");
  }
  std::string Levels(const Run& run, const std::string& id) const { return this->Map(run, id, "levels"); }
};

/// What all parts know, and how they reach the person who waits.
class Job
{
public:
  explicit Job(const StudyOptions& options);

  void Remark(const std::string& sentence) const;
  void Warn(const std::string& sentence) const;
  /// Tells how far the study is, and roughly how long it still takes; true: the person asks to stop.
  bool IsStopped(double fraction, const std::string& stage);
  /// The same; throws Error (RCN_ECANCELLED) instead.
  void Show(double fraction, const std::string& stage);

  const StudyOptions& Options;
  Processes& All; ///< all of them train together; test cases are shared out
  Workspace Cases;
  study::Folder Folder;
  DataList List;                          ///< all cases
  DataList Test;                          ///< the test cases that can be used
  std::map<std::string, double> Disputed; ///< by test case, in the first process: which share of what anybody marked
  std::vector<LeftOutCase> LeftOut;       ///< training, validation and test cases that could not be used
  std::vector<Run> Runs;
  std::vector<std::string> Trained; ///< by run: which epoch was the best, how long
  StudyResult Result;

private:
  std::chrono::steady_clock::time_point Start_ = std::chrono::steady_clock::now();
  double Fraction_ = 0;
  std::string Stage_ = "reading test cases"; // shown last
  double Skipped_ = -1;                      // how far the study was when this sitting began to work
};

/// rcnStudyFolder.cxx. A folder holds one protocol: figures of two would stand in one table. Stores it in a new folder; throws
/// Error where another one is there.
void CheckProtocol(const Job& job);

/// rcnStudyRuns.cxx. Both skip what is there already.
void Train(Job& job, size_t number);
void PredictTest(Job& job, size_t number);

/// rcnStudyJudge.cxx. Fills Result.Rows.
void Judge(Job& job);

/// rcnStudyTables.cxx. Writes table.md, table.json and report.html, in the first process.
void WriteTables(Job& job);

} // namespace study
} // namespace rcn

#endif
