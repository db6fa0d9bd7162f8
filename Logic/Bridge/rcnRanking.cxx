// SPDX-License-Identifier: Apache-2.0
#include "rcnRanking.h"

#include <cmath>

namespace rcn
{

int BetterDirection(rcn_figure figure)
{
  switch (figure)
  {
    case RCN_SIGNED: return 0;
    case RCN_DICE:
    case RCN_DICE_POOLED:
    case RCN_SOFT_DICE:
    case RCN_AUC_HISTOGRAM:
    case RCN_AUC_PAIRS_HISTOGRAM: return 1;
    default: return -1; // errors and losses
  }
}

bool IsRanked(rcn_figure figure, rcn_region region)
{
  return BetterDirection(figure) != 0 && region != RCN_REGION_DISPUTED;
}

std::vector<Rank> RankModels(const std::vector<std::vector<const Evaluation*>>& models, const std::vector<double>& values,
  rcn_figure figure, rcn_region region)
{
  std::vector<Rank> ranks(models.size(), Rank::None);
  const int direction = BetterDirection(figure);
  size_t best = models.size();
  for (size_t m = 0; IsRanked(figure, region) && m < models.size(); ++m)
  {
    // The first of equal ones, so that the order of the table decides and not rounding.
    if (std::isfinite(values[m]) && (best == models.size() || direction * values[m] > direction * values[best]))
    {
      best = m;
    }
  }
  for (size_t m = 0; best < models.size() && m < models.size(); ++m)
  {
    if (m == best)
    {
      ranks[m] = Rank::Best;
    }
    else if (std::isfinite(values[m]))
    {
      // Without an interval both ends are NaN, and nothing shows that the two differ.
      const rcn_interval difference = Evaluation::Together(models[m], models[best])[figure];
      ranks[m] = difference.low > 0 || difference.high < 0 ? Rank::None : Rank::Tie;
    }
  }
  return ranks;
}

const char* const NotRankedInWords = "Models are not ranked on disputed voxels: this region depends on the raters' votes, so "
                                     "even a perfect model has an error there.";

const char* const DescribedInWords =
  "Voxels where raters disagree are chosen by the raters' own answers, so that even a perfect model has an error there: the "
  "figures describe and do not rank, and differences are not tested.";

bool IsDescribed(const EvaluationOptions& options)
{
  return options.RegionMask.empty() && options.Region.region == RCN_REGION_DISPUTED;
}

} // namespace rcn
