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

json_t* EvaluationJson(const EvaluationReport& report, const EvaluationOptions& options, const std::vector<std::string>& raters)
{
  json_t* object = json_object();
  json_object_set_new(object, "cases", json_integer(static_cast<json_int_t>(report.Cases)));
  json_object_set_new(object, "voxels", json_integer(report.Voxels));
  json_object_set_new(object, "pairs", json_integer(report.Pairs));
  json_object_set_new(object, "region",
    json_string(options.RegionMask.empty() ? rcn_region_name(options.Region.region) : options.RegionMask.c_str()));
  json_object_set_new(object, "readout", json_string(rcn_readout_name(options.Calib.readout)));
  if (options.Calib.readout == RCN_READOUT_AT_LEAST)
  {
    json_object_set_new(object, "at_least", json_integer(options.Calib.at_least));
  }
  json_object_set_new(object, "reference", json_string(options.Reference.c_str()));
  json_object_set_new(object, "tie", json_string(options.TieBackground ? "background" : "foreground"));
  json_t* intervals = json_object();
  json_t* paper = json_object();
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    const char* name = rcn_figure_name(static_cast<rcn_figure>(f));
    // Draws know AUC from the histogram only; its intervals are to be found under the exact ones' names too.
    const char* exact = f == RCN_AUC_HISTOGRAM ? "auc" : f == RCN_AUC_PAIRS_HISTOGRAM ? "auc_pairs" : nullptr;
    json_object_set_new(object, name, JsonNumber(report.Figures[f]));
    if (report.Interval[f].units > 0)
    {
      const double ends[2] = { report.Interval[f].low, report.Interval[f].high };
      json_t* interval = Json(ends, 2).Release();
      if (exact)
      {
        json_object_set(intervals, exact, interval);
      }
      json_object_set_new(intervals, name, interval);
    }
    if (report.Paper[f].draws > 0)
    {
      json_t* one = json_object();
      json_object_set_new(one, "mean", JsonNumber(report.Paper[f].mean));
      json_object_set_new(one, "std", JsonNumber(report.Paper[f].std));
      if (exact)
      {
        json_object_set(paper, exact, one);
      }
      json_object_set_new(paper, name, one);
    }
  }
  json_object_set_new(object, "auc", JsonNumber(report.Auc.reference));
  json_object_set_new(object, "auc_pairs", JsonNumber(report.Auc.pairs));
  json_t* byRater = json_object();
  for (size_t r = 0; r < raters.size(); ++r)
  {
    json_t* one = json_object();
    json_object_set_new(one, "ece", JsonNumber(report.RaterEce[r]));
    json_object_set_new(one, "brier", JsonNumber(report.RaterBrier[r]));
    json_object_set_new(byRater, raters[r].c_str(), one);
  }
  json_object_set_new(object, "raters", byRater);
  json_t* brier = json_object();
  json_object_set_new(brier, "reliability", JsonNumber(report.Brier.reliability));
  json_object_set_new(brier, "resolution", JsonNumber(report.Brier.resolution));
  json_object_set_new(brier, "uncertainty", JsonNumber(report.Brier.uncertainty));
  json_object_set_new(brier, "remainder", JsonNumber(report.Brier.remainder));
  json_object_set_new(object, "brier_decomposition", brier);
  if (options.Binning == RCN_BINS_MASS)
  {
    json_t* mass = json_object();
    json_object_set_new(mass, "mr_ece", JsonNumber(report.MassEce));
    json_object_set_new(mass, "mce", JsonNumber(report.MassMce));
    json_object_set_new(mass, "ace", JsonNumber(report.MassAce));
    json_object_set_new(object, "equal_mass", mass);
  }
  json_t* bins = json_array();
  for (size_t b = 0; b < report.Bins.size(); ++b)
  {
    const rcn_calib_bin& bin = report.Bins[b];
    json_t* one = json_object();
    json_object_set_new(one, "lower", JsonNumber(bin.lower));
    json_object_set_new(one, "upper", JsonNumber(bin.upper));
    json_object_set_new(one, "count", json_integer(bin.count));
    json_object_set_new(one, "confidence", JsonNumber(bin.confidence));
    json_object_set_new(one, "frequency", JsonNumber(bin.frequency));
    json_object_set_new(one, "low", JsonNumber(report.BandLow[b]));
    json_object_set_new(one, "high", JsonNumber(report.BandHigh[b]));
    json_array_append_new(bins, one);
  }
  json_object_set_new(object, "bins", bins);
  const std::string none = NoIntervalInWords(report);
  json_object_set_new(object, "ci", none.empty() ? json_incref(intervals) : json_null());
  json_object_set_new(object, "bootstrap_60", report.Cases > 1 ? json_incref(paper) : json_null());
  json_decref(intervals);
  json_decref(paper);
  if (!none.empty())
  {
    json_object_set_new(object, "ci_note", JsonString(none));
  }
  json_object_set_new(object, "patients", json_integer(static_cast<json_int_t>(report.Patients)));
  json_object_set_new(object, "dice_empty_cases", JsonStrings(report.EmptyCases));
  json_object_set_new(object, "circular", json_boolean(!report.CircularCases.empty()));
  json_object_set_new(object, "remarks", JsonStrings(RemarksInWords(report)));
  return object;
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
