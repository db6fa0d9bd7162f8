// SPDX-License-Identifier: Apache-2.0
/// Judging predictions against raters, the same for every shell: cases, predictions and tasks in, evaluations out.
///
///   JudgeInput input;
///   input.List = ReadDataList("dataset.json");
///   input.Predictions = { PredictionsOfFolder("predictions/rps"), PredictionsOfFolder("predictions/median") };
///   std::vector<JudgeTask> tasks(2);              // the usual region and readout
///   tasks[1].Prediction = 1;
///   const JudgeResult result = JudgeCases(workspace, input, tasks);
///   result.Evaluations[0]->Compare(*result.Evaluations[1]);
///
/// A task is a prediction with a readout, a region and a correction. However many there are, each case and each of its
/// predictions is read once, and each region is made once. A case counts for all tasks or for none of them, so that they are
/// always compared on the same cases; only where a region is empty does the case count for the tasks on other regions alone.
///
/// Several structures: a task is about one of them, which is judged as if it were alone; the files of a case are still read
/// once. Regions are those of the structure.
#ifndef rcnJudge_h
#define rcnJudge_h

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rcnCases.h"
#include "rcnEvaluation.h"
#include "rcnPredictionFolder.h"
#include "rcnStructureMaps.h"

namespace rcn
{

/// The prediction of one case.
struct CasePrediction
{
  Volume Map;                                                ///< one probability or K + 1 levels per voxel, float32
  std::string File;                                          ///< names it in sentences
  std::shared_ptr<const StructureMaps> Structures = nullptr; ///< of several structures, in the order of the list; no Map then
};

/// One run's predictions: what is judged.
struct PredictionSource
{
  std::string Name;                                                   ///< a folder, a file, a model
  std::function<CasePrediction(const Case& one, size_t number)> Read; ///< asked once for each case; throws Error
  std::shared_ptr<const PredictionRun> Run;                           ///< how they were made; null: not known
};

/// What identifies a prediction under another name (FingerprintOf() of its map); of several structures the same for all.
std::string FingerprintOf(const CasePrediction& prediction);

/// Maps of a folder (rcnPredictionFolder.h), whose manifest is read now and whose maps when they are judged; `scale` as in
/// ReadPrediction(). `structures`: those of the cases; with more than one, each must be among those that are predicted. Throws
/// Error as PredictionFolder does, RCN_EINVALID for structures that are not predicted.
PredictionSource PredictionsOfFolder(
  const std::string& folder, double scale = 0, const std::vector<Structure>& structures = {});

/// The map of one case, read when it is judged; with several structures a component for each. Throws Error for a manifest
/// beside it that cannot be used.
PredictionSource PredictionOfFile(const std::string& file, double scale = 0, const std::vector<Structure>& structures = {});

/// A map that is in memory, of one case.
PredictionSource PredictionInMemory(const Volume& map, const std::string& name);

struct JudgeTask
{
  size_t Prediction = 0; ///< place in JudgeInput::Predictions
  EvaluationOptions Options;
  int Structure = 0; ///< its number in the list, from 1; 0: the votes are of one structure
};

/// Cases that were judged once and are to be judged again: their votes and predictions stay in memory as far as there is room.
class CaseMemory
{
public:
  explicit CaseMemory(double room) : Room_(room) {}

  struct Kept
  {
    std::shared_ptr<const rcn_votes> Votes;
    std::vector<std::string> Raters;
    std::vector<CasePrediction> Predictions;
  };

  /// After a case was judged; keeps it if there is room.
  void Add(size_t number, const Kept& one);
  /// Null: it has to be read again.
  const Kept* Find(size_t number) const;
  /// Whether the case was judged, in this process.
  bool Has(size_t number) const { return this->Judged_.count(number) > 0; }

private:
  double Room_; // bytes
  std::set<size_t> Judged_;
  std::map<size_t, Kept> Kept_;
};

struct JudgeInput
{
  DataList List; ///< the cases; its Raters are the judges. Without their names, a list is one case, and these are its raters
  CaseLoop Loop;
  std::vector<PredictionSource> Predictions;
  /// The votes of a case; empty: the raters' masks are read by the workspace.
  std::function<std::shared_ptr<const rcn_votes>(const Case& one, size_t number)> Votes;
  CaseMemory* Memory = nullptr; ///< where to find cases before they are read, and to keep them
  /// Called with each case that was judged, in the process that did.
  std::function<void(const Case& one, size_t number, const rcn_votes* votes, const std::vector<CasePrediction>& predictions)>
    Seen;
};

/// The case that a workspace holds, with a prediction of it; the workspace must outlive the judging.
JudgeInput CaseInWorkspace(const Workspace& workspace, const std::string& id, const PredictionSource& prediction);

struct JudgeResult
{
  std::vector<std::unique_ptr<Evaluation>> Evaluations; ///< one for each task
  std::vector<std::string> Raters;
  std::vector<LeftOutCase> LeftOut;
};

/// Judges all cases; several processes share them, and each returns the same. Throws Error: RCN_EDATA when all cases had to be
/// left out, and what CaseLoop does not leave out.
JudgeResult JudgeCases(Workspace& workspace, const JudgeInput& input, const std::vector<JudgeTask>& tasks);

/// The same case by case, for a caller with a loop of its own.
class Judging
{
public:
  Judging(rcn_context* context, const std::vector<std::string>& raters, const std::vector<JudgeTask>& tasks);

  /// Judges a case in all tasks; `predictions` as tasks count them. False when every task's region is empty there. On failure
  /// the case counts for none.
  bool Add(const Case& one, size_t number, const rcn_votes* votes, const std::vector<CasePrediction>& predictions);

  /// The voxels of a region, by voxel; null: everywhere. Throws Error.
  static std::shared_ptr<const std::vector<uint8_t>> RegionOf(
    rcn_context* context, const rcn_votes* votes, const EvaluationOptions& options);

  /// After the last case.
  std::vector<std::unique_ptr<Evaluation>> TakeEvaluations() { return std::move(this->Evaluations_); }
  const std::vector<std::unique_ptr<Evaluation>>& Evaluations() const { return this->Evaluations_; }

private:
  class Regions;
  class Corrected;
  class Maps;
  struct Part;

  Part PartOf(int structure, const rcn_votes* votes, const std::vector<CasePrediction>& predictions) const;
  bool Prepare(const Part& part, const Case& one, size_t number, Corrected& corrected);

  rcn_context* Context_;
  int RaterCount_;
  std::vector<JudgeTask> Tasks_;
  std::set<int> Structures_; // of the tasks
  std::vector<std::unique_ptr<Evaluation>> Evaluations_;
};

} // namespace rcn

#endif
