// SPDX-License-Identifier: Apache-2.0
/// Which model is the best of a column, and which are not significantly different from it: one rule for study and report.
///
/// The best has the best value. Another model is not significantly different from it (a tie) when the 95 % interval of the
/// paired difference of the two covers 0, or when there are too few cases for an interval. Models without a value are neither.
///
/// Voxels that raters dispute are never ranked. The region is chosen by the raters' own answers, so that figures there are
/// biased even for a perfect model (selection by outcome): they describe, and the smallest is not the best.
#ifndef rcnRanking_h
#define rcnRanking_h

#include <vector>

#include "rcnEvaluation.h"

namespace rcn
{

enum class Rank
{
  None,
  Best,
  Tie ///< not significantly different from the best
};

/// 1: higher is better; -1: lower is better; 0: neither, as for the signed error.
int BetterDirection(rcn_figure figure);

/// Whether models may be ranked by a figure on a region.
bool IsRanked(rcn_figure figure, rcn_region region);

/// The ranks of models on one region. models[m]: its trainings, one or several, the same number for all models and judged on
/// the same cases; values[m]: what the table shows of it. All None where IsRanked() is false.
std::vector<Rank> RankModels(const std::vector<std::vector<const Evaluation*>>& models, const std::vector<double>& values,
  rcn_figure figure, rcn_region region);

/// For legends: why nothing is marked where raters disagree.
extern const char* const NotRankedInWords;

/// For one model, or two that are compared: why its figures there are no verdict, and there is no test of a difference.
extern const char* const DescribedInWords;

/// Whether what is judged with these options describes and does not rank.
bool IsDescribed(const EvaluationOptions& options);

} // namespace rcn

#endif
