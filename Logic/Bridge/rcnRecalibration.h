// SPDX-License-Identifier: Apache-2.0
/// Recalibrating, the same in every shell: fit a correction, judge it again, and say whether it helps.
#ifndef rcnRecalibration_h
#define rcnRecalibration_h

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rcnEvaluation.h"

namespace rcn
{

/// Runs all cases through evaluations with these options, side by side, and returns them.
using JudgeCases = std::function<std::vector<std::unique_ptr<Evaluation>>(const std::vector<EvaluationOptions>& options)>;

struct RecalibrationResult
{
  Recalibration Correction;
  EvaluationOptions Options;      ///< with which Before was judged
  EvaluationReport Before, After; ///< on the cases it was fitted to
  EvaluationReport LeftOut;       ///< each case corrected by a fit to all others; of no case when there is only one
  bool Tested = false;            ///< there were several cases, so that one could be left out
  bool Helps = false;   ///< MR-ECE is smaller with cases left out, or where there is one case, on that. Otherwise it is not
                        ///< to be stored unless somebody insists
  std::string Sentence; ///< both figures in words, and what they mean
};

/// Fits a correction to the cases that `judge` runs through (twice), and tests it with each case left out.
RecalibrationResult Recalibrate(const EvaluationOptions& options, rcn_recalib_method method, const JudgeCases& judge);

} // namespace rcn

#endif
