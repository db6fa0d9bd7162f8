// SPDX-License-Identifier: Apache-2.0
/// What judging found, as JSON and in words.
#include "rcnEvaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "rcnReport.h"

namespace rcn
{

std::string PercentText(double share, int digits)
{
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * share);
  return text;
}

std::string RegionInWords(const rcn_region_options& region, const std::string& mask)
{
  const std::string name = mask.empty() ? rcn_region_name(region.region) : mask;
  if (mask.empty() && region.region == RCN_REGION_BOX)
  {
    return name + " (" + std::to_string(region.margin) + " voxels around the marks)";
  }
  return mask.empty() && region.region == RCN_REGION_BAND ? name + " (" + CsvNumber(region.band_mm) + " mm)" : name;
}

namespace
{

/// Every figure under its own name, its 95 % interval under "ci" and the paper's ten draws under "bootstrap_60".
void SetFigures(JsonObject& object, const EvaluationReport& report)
{
  JsonObject intervals, paper;
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    const std::string name = rcn_figure_name(static_cast<rcn_figure>(f));
    object.Set(name, report.Figures[f]);
    // Draws know AUC from the histogram only; its intervals are to be found under the exact ones' names too.
    std::vector<std::string> keys = { name };
    if (f == RCN_AUC_HISTOGRAM || f == RCN_AUC_PAIRS_HISTOGRAM)
    {
      keys.push_back(f == RCN_AUC_HISTOGRAM ? "auc" : "auc_pairs");
    }
    for (const std::string& key : keys)
    {
      if (report.Interval[f].units > 0)
      {
        intervals.Set(key, JsonArray{ report.Interval[f].low, report.Interval[f].high });
      }
      if (report.Paper[f].draws > 0)
      {
        paper.Set(key, JsonObject{ { "mean", report.Paper[f].mean }, { "std", report.Paper[f].std } });
      }
    }
  }
  const std::string none = NoIntervalInWords(report);
  object.Set("auc", report.Auc.reference).Set("auc_pairs", report.Auc.pairs);
  object.Set("ci", none.empty() ? Json(intervals) : Json(nullptr));
  object.Set("bootstrap_60", report.Cases > 1 ? Json(paper) : Json(nullptr));
  if (!none.empty())
  {
    object.Set("ci_note", none);
  }
}

JsonArray BinsJson(const EvaluationReport& report)
{
  JsonArray bins;
  for (size_t b = 0; b < report.Bins.size(); ++b)
  {
    const rcn_calib_bin& bin = report.Bins[b];
    bins.Add(
      JsonObject{ { "lower", bin.lower }, { "upper", bin.upper }, { "count", bin.count }, { "confidence", bin.confidence },
        { "frequency", bin.frequency }, { "low", report.BandLow[b] }, { "high", report.BandHigh[b] } });
  }
  return bins;
}

} // namespace

json_t* EvaluationJson(const EvaluationReport& report, const EvaluationOptions& options, const std::vector<std::string>& raters)
{
  JsonObject object{ { "cases", report.Cases }, { "patients", report.Patients }, { "voxels", report.Voxels },
    { "pairs", report.Pairs },
    { "region", options.RegionMask.empty() ? rcn_region_name(options.Region.region) : options.RegionMask.c_str() },
    { "readout", rcn_readout_name(options.Calib.readout) } };
  if (options.Calib.readout == RCN_READOUT_AT_LEAST)
  {
    object.Set("at_least", options.Calib.at_least);
  }
  object.Set("reference", options.Reference).Set("tie", options.TieBackground ? "background" : "foreground");
  SetFigures(object, report);
  JsonObject byRater;
  for (size_t r = 0; r < raters.size(); ++r)
  {
    byRater.Set(raters[r], JsonObject{ { "ece", report.RaterEce[r] }, { "brier", report.RaterBrier[r] } });
  }
  object.Set("raters", byRater);
  object.Set("brier_decomposition",
    JsonObject{ { "reliability", report.Brier.reliability }, { "resolution", report.Brier.resolution },
      { "uncertainty", report.Brier.uncertainty }, { "remainder", report.Brier.remainder } });
  if (options.Binning == RCN_BINS_MASS)
  {
    object.Set("equal_mass", JsonObject{ { "mr_ece", report.MassEce }, { "mce", report.MassMce }, { "ace", report.MassAce } });
  }
  object.Set("bins", BinsJson(report)).Set("dice_empty_cases", report.EmptyCases);
  object.Set("circular", !report.CircularCases.empty()).Set("remarks", RemarksInWords(report));
  return object.Release();
}

// The sure ends and the middle are looked at apart: easy background would hide
// everything else.
std::string DirectionInWords(const EvaluationReport& report)
{
  double over = 0, under = 0, votes = 0, sureGap = 0, sureVotes = 0;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    const double count = static_cast<double>(bin.count);
    if (bin.count > 0 && bin.confidence >= 0.95)
    {
      sureGap += (bin.confidence - bin.frequency) * count;
      sureVotes += count;
    }
    else if (bin.count > 0 && bin.confidence > 0.05)
    {
      const double gap = (bin.confidence - bin.frequency) * count;
      (gap > 0 ? over : under) += std::fabs(gap);
      votes += count;
    }
  }
  if (sureVotes > 0 && sureGap / sureVotes > 0.05)
  {
    return "It is surer than the raters are.";
  }
  return votes == 0                 ? "It is sure everywhere: no probability between 5 % and 95 %."
    : (over + under) / votes < 0.02 ? "Between 5 % and 95 % its probabilities mean what they say."
    : over > 3 * under              ? "Between 5 % and 95 % its probabilities are too high."
    : under > 3 * over              ? "Between 5 % and 95 % its probabilities are too low."
                                    : "Between 5 % and 95 % it is off in both directions.";
}

const std::vector<FigureName>& FigureNames()
{
  static const std::vector<FigureName> names = {
    { RCN_MR_ECE, "MR-ECE (%)", "how far probabilities are from the share of raters, on average", true },
    { RCN_RATER_ECE, "mean of raters' ECEs (%)", "the same against each rater alone", true },
    { RCN_SIGNED, "signed (%)", "above 0: probabilities are too high; below: too low", true },
    { RCN_ECE, "ECE (%)", "confidence of the thresholded prediction against the reference", true },
    { RCN_MCE, "MCE (%)", "the worst bin", true },
    { RCN_ACE, "ACE (%)", "bins counted equally", true },
    { RCN_BRIER, "Brier", "mean squared error against all raters", false },
    { RCN_NLL, "NLL", "mean surprise at the raters' votes", false },
    { RCN_RPS, "RPS", "error of the level distribution", false },
    { RCN_DICE, "Dice, mean over cases", "overlap with the reference", false },
    { RCN_DICE_POOLED, "Dice, pooled over voxels", "the same over all voxels together: large structures count most", false },
    { RCN_SOFT_DICE, "soft Dice, pooled", "overlap with the mean vote at five thresholds", false },
  };
  return names;
}

std::string UnitsInWords(const EvaluationReport& report)
{
  const bool patients = report.Patients < report.Cases;
  return patients ? Counted(static_cast<int64_t>(report.Patients), "patient")
                  : Counted(static_cast<int64_t>(report.Cases), "case");
}

std::string NoIntervalInWords(const EvaluationReport& report)
{
  return report.Cases == 1                  ? "one case: no interval"
    : report.Patients >= RCN_INTERVAL_UNITS ? ""
                                            : "fewer than " + std::to_string(RCN_INTERVAL_UNITS) +
      (report.Patients < report.Cases ? " patients" : " cases") + ": no interval";
}

std::vector<std::string> RemarksInWords(const EvaluationReport& report)
{
  std::vector<std::string> remarks;
  // "3 of 12 cases (c01, c02, c05)"; "this case" where there is one.
  const auto named = [&report](const std::vector<std::string>& ids) {
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(ids.size(), 10); ++i)
    {
      names += (i ? ", " : "") + ids[i];
    }
    return report.Cases == 1 ? "this case"
                             : std::to_string(ids.size()) + " of " + std::to_string(report.Cases) + " cases (" + names +
        (ids.size() > 10 ? ", ...)" : ")");
  };
  if (!report.CircularCases.empty())
  {
    remarks.push_back("Circular: the map of " + named(report.CircularCases) +
      " was made from the masks of the raters who judge it, so "
      "it looks better than it is; judge it by raters who were left out.");
  }
  if (!report.EmptyCases.empty())
  {
    remarks.push_back("Dice: in " + named(report.EmptyCases) +
      " the reference marks nothing and nothing is predicted, or the reference is missing; left out of the mean.");
  }
  if (report.Cases > 1 && report.Patients < RCN_INTERVAL_UNITS)
  {
    remarks.push_back("Intervals: " + NoIntervalInWords(report) + ".");
  }
  return remarks;
}

std::string WorstBinInWords(const EvaluationReport& report)
{
  const rcn_calib_bin* worst = nullptr;
  double cost = 0;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    const double gap = bin.count > 0 ? std::fabs(bin.confidence - bin.frequency) : 0;
    if (gap >= 0.01 && gap * static_cast<double>(bin.count) > cost)
    {
      cost = gap * static_cast<double>(bin.count);
      worst = &bin;
    }
  }
  return worst
    ? "Where it says " + PercentText(worst->confidence) + ", " + PercentText(worst->frequency) + " of the raters mark it."
    : "";
}

} // namespace rcn
