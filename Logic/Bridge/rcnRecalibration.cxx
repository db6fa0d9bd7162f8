// SPDX-License-Identifier: Apache-2.0
#include "rcnRecalibration.h"

#include "rcnReport.h"

namespace rcn
{

namespace
{

std::string MrEce(const EvaluationReport& report)
{
  return Fixed(100 * report.Figures[RCN_MR_ECE], 2) + " %";
}

std::string InWords(const RecalibrationResult& result)
{
  const std::string before = MrEce(result.Before), after = MrEce(result.After);
  if (!result.Tested)
  {
    return "MR-ECE on the case it was fitted to: " + before + " before, " + after + " after. " +
      (result.Helps ? "With one case it cannot be tested whether the correction helps on others."
                    : "The correction does not help even there.");
  }
  return "MR-ECE on the " + std::to_string(result.Before.Cases) + " cases it was fitted to: " + before + " before, " + after +
    " after, " + MrEce(result.EachLeftOut) + " with each case corrected by a fit to the others. " +
    (result.Helps ? "The correction helps on cases that it was not fitted to."
                  : "The correction does not help on cases that it was not fitted to.");
}

} // namespace

RecalibrationResult Recalibrate(Workspace& workspace, JudgeInput input, const EvaluationOptions& options,
  rcn_recalib_method method, double keep, bool exactLeftOut)
{
  RecalibrationResult result;
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
  const EvaluationReport& fair = result.Tested ? result.EachLeftOut : result.After;
  result.Helps = fair.Figures[RCN_MR_ECE] < result.Before.Figures[RCN_MR_ECE];
  result.Sentence = InWords(result);
  return result;
}

} // namespace rcn
