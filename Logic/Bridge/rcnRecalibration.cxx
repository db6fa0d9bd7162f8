// SPDX-License-Identifier: Apache-2.0
#include "rcnRecalibration.h"

#include <cmath>

#include "rcnLabelTemperature.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

std::string MrEce(const EvaluationReport& report)
{
  return PercentText(report.Figures[RCN_MR_ECE], 2);
}

/// The proper score that says whether a correction helps, with each case left out: the likelihood of the levels, where they are
/// predicted before and after it, otherwise that of single votes. Of isotonic steps, which are fitted by squared errors and
/// end at 0 and 1, the Brier score: a single vote beyond them would cost more than all others together.
rcn_figure ScoreOf(const RecalibrationResult& result)
{
  const EvaluationReport &before = result.Before, &after = result.Tested ? result.EachLeftOut : result.After;
  const bool levels = before.LevelSource == RCN_LEVELS_PREDICTED && after.LevelSource == RCN_LEVELS_PREDICTED &&
    std::isfinite(before.Figures[RCN_LEVEL_NLL]) && std::isfinite(after.Figures[RCN_LEVEL_NLL]);
  return result.Correction.Correction.method == RCN_RECALIB_ISOTONIC ? RCN_BRIER : levels ? RCN_LEVEL_NLL : RCN_NLL;
}

/// MR-ECE alone hangs on the limits of bins: a temperature that moves nearly constant probabilities across one of them can
/// lower it and predict worse. A proper score has to agree, and there MR-ECE must not get worse.
bool IsBetter(const RecalibrationResult& result)
{
  const EvaluationReport &before = result.Before, &after = result.Tested ? result.EachLeftOut : result.After;
  const rcn_figure score = ScoreOf(result);
  return after.Figures[score] < before.Figures[score] && after.Figures[RCN_MR_ECE] <= before.Figures[RCN_MR_ECE];
}

/// Calibration with each case left out, which is honest; whatever is about the order of voxels, and Dice, of the model as it
/// is applied: voxels that were corrected differently have no common order.
void OrderAsApplied(EvaluationReport& leftOut, const EvaluationReport& applied)
{
  for (const rcn_figure figure : { RCN_DICE, RCN_DICE_POOLED, RCN_SOFT_DICE, RCN_AUC_HISTOGRAM, RCN_AUC_PAIRS_HISTOGRAM })
  {
    leftOut.Figures[figure] = applied.Figures[figure];
    leftOut.Interval[figure] = applied.Interval[figure];
    leftOut.Paper[figure] = applied.Paper[figure];
  }
  leftOut.Auc = applied.Auc;
  leftOut.AucFromHistogram = applied.AucFromHistogram;
  leftOut.EmptyCases = applied.EmptyCases;
  leftOut.EachLeftOut = true;
}

std::string InWords(const RecalibrationResult& result)
{
  const std::string before = MrEce(result.Before), after = MrEce(result.After);
  if (!result.Tested)
  {
    return std::string(result.StructuresBefore.empty() ? "MR-ECE" : "MR-ECE, mean over structures,") +
      " on the case it was fitted to: " + before + " before, " + after + " after. " +
      (result.Helps ? "With one case, the correction cannot be tested on other cases." : "The correction does not help.");
  }
  return std::string(result.StructuresBefore.empty() ? "MR-ECE" : "MR-ECE, mean over structures,") + " on the " +
    std::to_string(result.Before.Cases) + " cases it was fitted to: " + before + " before, " + after + " after, " +
    MrEce(result.EachLeftOut) + " with each case corrected by a fit to the others; " + ScoreInWords(result) + ". " +
    (result.Helps ? "The correction helps on cases that it was not fitted to."
                  : "The correction does not help on cases that it was not fitted to.");
}

/// The reports of several structures, those of one task of each.
std::vector<StructureReport> ReportsOf(
  const JudgeResult& judged, const std::vector<Structure>& structures, size_t task, size_t tasks)
{
  std::vector<StructureReport> reports;
  for (const Structure& structure : structures)
  {
    const Evaluation& one = *judged.Evaluations[reports.size() * tasks + task];
    reports.push_back({ structure.Name, one.CaseIds().empty() ? EvaluationReport() : one.Report() });
  }
  return reports;
}

/// The same task for each structure.
std::vector<JudgeTask> ForEachStructure(const std::vector<Structure>& structures, const std::vector<EvaluationOptions>& options)
{
  std::vector<JudgeTask> tasks;
  for (size_t structure = 1; structure <= structures.size(); ++structure)
  {
    for (const EvaluationOptions& one : options)
    {
      tasks.push_back({ 0, one, static_cast<int>(structure) });
    }
  }
  return tasks;
}

RecalibrationResult RecalibrateStructures(Workspace& workspace, JudgeInput input, const EvaluationOptions& options, double keep)
{
  const std::vector<Structure>& structures = input.List.Structures;
  RecalibrationResult result;
  result.Options = options;
  EvaluationOptions corrected = options, leftOut = options;
  CaseMemory memory(keep);
  input.Memory = &memory;
  LabelTemperature fitted(workspace.Context(), static_cast<int>(structures.size()), options);
  input.Seen = [&](const Case& one, size_t number, const rcn_votes* votes, const std::vector<CasePrediction>& predictions) {
    fitted.Add(one, number, votes, predictions.front());
  };
  {
    const JudgeResult first = JudgeCases(workspace, input, ForEachStructure(structures, { options }));
    fitted.Share(Processes::All());
    result.Correction = fitted.Fit();
    result.StructuresBefore = ReportsOf(first, structures, 0, 1);
    result.Volumes = ScoresOfVolumes(first.Evaluations);
    result.Cases = result.Correction.Cases;
    result.Raters = first.Raters;
    result.LeftOut = first.LeftOut;
  }
  corrected.Correction = &result.Correction;
  corrected.AllowFittedCases = true;
  leftOut.CaseCorrections = fitted.FitWithoutEach();
  leftOut.ExactAuc = false;
  input.Seen = nullptr;
  input.Loop.Remark = input.Loop.Warn = nullptr;                               // they would be the same ones
  input.Loop.IsMine = [&memory](size_t number) { return memory.Has(number); }; // where they are in memory
  const JudgeResult again = JudgeCases(workspace, input, ForEachStructure(structures, { corrected, leftOut }));
  result.Before = MeanOverStructures(result.StructuresBefore);
  result.StructuresAfter = ReportsOf(again, structures, 0, 2);
  result.After = MeanOverStructures(result.StructuresAfter);
  result.Tested = result.Cases.size() > 1;
  if (result.Tested)
  {
    result.StructuresEachLeftOut = ReportsOf(again, structures, 1, 2);
    for (size_t structure = 0; structure < structures.size(); ++structure)
    {
      if (result.StructuresEachLeftOut[structure].Report.Cases > 0)
      {
        OrderAsApplied(result.StructuresEachLeftOut[structure].Report, result.StructuresAfter[structure].Report);
      }
    }
    result.EachLeftOut = MeanOverStructures(result.StructuresEachLeftOut);
    result.Correction.Volumes = std::make_shared<VolumeScores>(ScoresOfVolumes(again.Evaluations, 1, 2));
  }
  return result;
}

void Conclude(RecalibrationResult& result)
{
  result.Helps = IsBetter(result);
  result.Sentence = InWords(result);
}

} // namespace

std::string ScoreInWords(const RecalibrationResult& result)
{
  const rcn_figure score = ScoreOf(result);
  return std::string(score == RCN_LEVEL_NLL ? "level NLL "
             : score == RCN_NLL             ? "NLL "
                                            : "Brier score ") +
    Fixed(result.Before.Figures[score], 4) + " and " + Fixed(result.EachLeftOut.Figures[score], 4);
}

RecalibrationResult Recalibrate(
  Workspace& workspace, JudgeInput input, const EvaluationOptions& options, rcn_recalib_method method, double keep)
{
  RecalibrationResult result;
  if (input.List.HasStructures())
  {
    if (method != RCN_RECALIB_TEMPERATURE)
    {
      throw Error(RCN_EINVALID,
        std::string("Several structures need one common temperature; ") + rcn_recalib_name(method) +
          " corrects each structure separately, so that they contradict each other.");
    }
    result = RecalibrateStructures(workspace, input, options, keep);
    Conclude(result);
    return result;
  }
  result.Options = options;
  result.Options.FitTemperature = method == RCN_RECALIB_TEMPERATURE;
  EvaluationOptions corrected = options, leftOut = options;
  CaseMemory memory(keep);
  input.Memory = &memory;
  {
    const JudgeResult first = JudgeCases(workspace, input, { { 0, result.Options } });
    const Evaluation& fitted = *first.Evaluations.front();
    result.Correction = fitted.Fit(method);
    result.Before = fitted.Report();
    result.Volumes = fitted.ScoresOfVolumes();
    result.Cases = fitted.CaseIds();
    result.Raters = first.Raters;
    result.LeftOut = first.LeftOut;
    leftOut.CaseCorrections = fitted.FitWithoutEach(method);
  }
  corrected.Correction = &result.Correction;
  corrected.AllowFittedCases = true;
  leftOut.ExactAuc = false;
  input.Loop.Remark = input.Loop.Warn = nullptr;                               // they would be the same ones
  input.Loop.IsMine = [&memory](size_t number) { return memory.Has(number); }; // where they are in memory
  const JudgeResult again = JudgeCases(workspace, input, { { 0, corrected }, { 0, leftOut } });
  result.After = again.Evaluations[0]->Report();
  result.Tested = result.Before.Cases > 1;
  if (result.Tested)
  {
    result.EachLeftOut = again.Evaluations[1]->Report();
    OrderAsApplied(result.EachLeftOut, result.After);
    result.Correction.Volumes = std::make_shared<VolumeScores>(again.Evaluations[1]->ScoresOfVolumes());
  }
  Conclude(result);
  return result;
}

} // namespace rcn
