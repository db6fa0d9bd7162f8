// SPDX-License-Identifier: Apache-2.0
#include "rcnRanking.h"

#include "rcnTinyCase.h"

namespace
{

using rcn::Rank;

/// Three models on so many cases: a good one, one that is hardly different, and one that is clearly worse.
struct Models
{
  explicit Models(size_t cases, rcn_region region = RCN_REGION_WHOLE)
    : Judge(this->Case.Work.Context(), { "A", "B" },
        { { 0, TinyOptions(region) }, { 1, TinyOptions(region) }, { 2, TinyOptions(region) } }),
      Region(region)
  {
    for (size_t i = 0; i < cases; ++i)
    {
      const float noise = i % 2 ? 0.02f : -0.02f, shift = 0.001f * static_cast<float>(i);
      this->Judge.Add(NamedCase("c" + std::to_string(i)), i, this->Case.Work.Votes(),
        { { TinyMap({ 0.95f - shift, 0.55f, 0.05f, 0.05f }), "good" },
          { TinyMap({ 0.95f - shift, 0.555f + noise, 0.05f, 0.05f }), "alike" },
          { TinyMap({ 0.75f - shift, 0.75f, 0.25f, 0.25f }), "worse" } });
    }
  }
  std::vector<Rank> Ranks(rcn_figure figure)
  {
    std::vector<std::vector<const rcn::Evaluation*>> models;
    std::vector<double> values;
    for (const auto& one : this->Judge.Evaluations())
    {
      models.push_back({ one.get() });
      values.push_back(this->Lost == models.size() ? NAN : one->Figures()[figure]);
    }
    return rcn::RankModels(models, values, figure, this->Region);
  }

  TinyCase Case;
  rcn::Judging Judge;
  rcn_region Region;
  size_t Lost = 0; ///< this model, from 1, has no value
};

void BestAndTies()
{
  Models models(8);
  CHECK((models.Ranks(RCN_MR_ECE) == std::vector<Rank>{ Rank::Best, Rank::Tie, Rank::None }));
  CHECK((models.Ranks(RCN_BRIER)[2] == Rank::None));
  // Fewer than five cases: there is no interval, and nobody is told apart from the best.
  CHECK((Models(4).Ranks(RCN_MR_ECE) == std::vector<Rank>{ Rank::Best, Rank::Tie, Rank::Tie }));
  models.Lost = 1;
  CHECK((models.Ranks(RCN_MR_ECE) == std::vector<Rank>{ Rank::None, Rank::Best, Rank::None }));
}

void Directions()
{
  CHECK(rcn::BetterDirection(RCN_MR_ECE) == -1 && rcn::BetterDirection(RCN_BRIER) == -1);
  CHECK(rcn::BetterDirection(RCN_DICE) == 1 && rcn::BetterDirection(RCN_AUC_HISTOGRAM) == 1);
  CHECK(rcn::BetterDirection(RCN_SIGNED) == 0);
  CHECK((Models(8).Ranks(RCN_SIGNED) == std::vector<Rank>(3, Rank::None)));
}

/// Where raters disagree, figures describe: nothing is the best there.
void DisputedIsNotRanked()
{
  CHECK((Models(8, RCN_REGION_DISPUTED).Ranks(RCN_MR_ECE) == std::vector<Rank>(3, Rank::None)));
  CHECK(!rcn::IsRanked(RCN_BRIER, RCN_REGION_DISPUTED) && rcn::IsRanked(RCN_MR_ECE, RCN_REGION_BAND));
}

} // namespace

int main()
{
  RUN(BestAndTies);
  RUN(Directions);
  RUN(DisputedIsNotRanked);
  return Failures != 0;
}
