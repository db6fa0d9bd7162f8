// SPDX-License-Identifier: Apache-2.0
/// Recalibrating, the same in every shell: fit a correction, judge it again, and say whether it helps.
#ifndef rcnRecalibration_h
#define rcnRecalibration_h

#include <string>
#include <vector>

#include "rcnJudge.h"

namespace rcn
{

/// Bytes of votes and predictions that stay in memory between fitting and judging again, so that files are read once: 1 GB
/// holds thirty volumes of two million voxels with the levels of three raters, and leaves a laptop's memory to its owner.
/// Cases beyond it are read again.
constexpr double MostBytesKept = 1024.0 * 1024 * 1024;

struct RecalibrationResult
{
  Recalibration Correction;
  EvaluationOptions Options;      ///< with which Before was judged
  EvaluationReport Before, After; ///< on the cases it was fitted to
  /// Each case corrected by a fit to all others, for what is to be expected of other cases; AUC and Dice are those of After.
  /// Of no case when there is only one.
  EvaluationReport EachLeftOut;
  /// Of several structures each, where the three above are the means over them; otherwise empty.
  std::vector<StructureReport> StructuresBefore, StructuresAfter, StructuresEachLeftOut;
  bool Tested = false; ///< there were several cases, so that one could be left out
  /// With cases left out, or where there is one case, on that: the likelihood of the levels (of the votes, where there are
  /// none; isotonic: the Brier score) is better, and MR-ECE is not worse. Otherwise it is not to be stored unless somebody
  /// insists.
  bool Helps = false;
  VolumeScores Volumes;                   ///< before; those after are in Correction
  std::string Sentence;                   ///< both figures in words, and what they mean
  std::vector<std::string> Raters, Cases; ///< who judged, and on which cases
  std::vector<LeftOutCase> LeftOut;
};

/// Fits a correction to the first of the predictions, judges it on the same cases, and tests it with each case left out. The
/// loop's Begin is called twice for each case; its remarks are made once. `keep`: bytes, as above.
RecalibrationResult Recalibrate(Workspace& workspace, JudgeInput input, const EvaluationOptions& options,
  rcn_recalib_method method, double keep = MostBytesKept);

/// The score that decides, before and with each case left out: "level NLL 0.3312 and 0.3300".
std::string ScoreInWords(const RecalibrationResult& result);

} // namespace rcn

#endif
