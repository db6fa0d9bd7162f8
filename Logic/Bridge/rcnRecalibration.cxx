// SPDX-License-Identifier: Apache-2.0
#include "rcnRecalibration.h"

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
    MrEce(result.EachLeftOut) + " with each case corrected by a fit to the others. " +
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

RecalibrationResult RecalibrateStructures(
  Workspace& workspace, JudgeInput input, const EvaluationOptions& options, double keep, bool exactLeftOut)
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
    result.Cases = result.Correction.Cases;
    result.Raters = first.Raters;
    result.LeftOut = first.LeftOut;
  }
  corrected.Correction = &result.Correction;
  corrected.AllowFittedCases = true;
  leftOut.CaseCorrections = fitted.FitWithoutEach();
  leftOut.ExactAuc = options.ExactAuc && exactLeftOut;
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
    result.EachLeftOut = MeanOverStructures(result.StructuresEachLeftOut);
  }
  return result;
}

void Conclude(RecalibrationResult& result)
{
  const EvaluationReport& fair = result.Tested ? result.EachLeftOut : result.After;
  result.Helps = fair.Figures[RCN_MR_ECE] < result.Before.Figures[RCN_MR_ECE];
  result.Sentence = InWords(result);
}

} // namespace

RecalibrationResult Recalibrate(Workspace& workspace, JudgeInput input, const EvaluationOptions& options,
  rcn_recalib_method method, double keep, bool exactLeftOut)
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
    result = RecalibrateStructures(workspace, input, options, keep, exactLeftOut);
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
  leftOut.ExactAuc = options.ExactAuc && exactLeftOut;
  input.Loop.Remark = input.Loop.Warn = nullptr;                               // they would be the same ones
  input.Loop.IsMine = [&memory](size_t number) { return memory.Has(number); }; // where they are in memory
  const JudgeResult again = JudgeCases(workspace, input, { { 0, corrected }, { 0, leftOut } });
  result.After = again.Evaluations[0]->Report();
  result.Tested = result.Before.Cases > 1;
  if (result.Tested)
  {
    result.EachLeftOut = again.Evaluations[1]->Report();
    result.Correction.Volumes = std::make_shared<VolumeScores>(again.Evaluations[1]->ScoresOfVolumes());
  }
  Conclude(result);
  return result;
}

} // namespace rcn
