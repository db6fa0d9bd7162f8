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
    " after, " + MrEce(result.LeftOut) + " with each case corrected by a fit to the others. " +
    (result.Helps ? "The correction helps on cases that it was not fitted to."
                  : "The correction does not help on cases that it was not fitted to.");
}

} // namespace

RecalibrationResult Recalibrate(const EvaluationOptions& options, rcn_recalib_method method, const JudgeCases& judge)
{
  RecalibrationResult result;
  result.Options = options;
  result.Options.FitTemperature = method == RCN_RECALIB_TEMPERATURE;
  EvaluationOptions corrected = options, leftOut = options;
  {
    const std::vector<std::unique_ptr<Evaluation>> first = judge({ result.Options });
    result.Correction = first.front()->Fit(method);
    result.Before = first.front()->Report();
    leftOut.CaseCorrections = first.front()->FitWithoutEach(method);
  }
  corrected.Correction = &result.Correction;
  corrected.AllowFittedCases = true;
  leftOut.ExactAuc = false; // it is not asked for, and takes memory
  const std::vector<std::unique_ptr<Evaluation>> again = judge({ corrected, leftOut });
  result.After = again[0]->Report();
  result.Tested = result.Before.Cases > 1;
  if (result.Tested)
  {
    result.LeftOut = again[1]->Report();
  }
  const EvaluationReport& fair = result.Tested ? result.LeftOut : result.After;
  result.Helps = fair.Figures[RCN_MR_ECE] < result.Before.Figures[RCN_MR_ECE];
  result.Sentence = InWords(result);
  return result;
}

} // namespace rcn
