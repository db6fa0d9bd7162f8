// SPDX-License-Identifier: Apache-2.0
/// What judging found, as JSON and in words.
#include "rcnEvaluation.h"

#include <algorithm>
#include <cmath>

#include "rcnRanking.h"
#include "rcnReport.h"

namespace rcn
{

// Figures mean nothing without the region that they are of, so its size is said, too.
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

/// The whole diagram, for whoever draws it with another program.
JsonArray BinsJson(const std::vector<rcn_calib_bin>& all, const std::vector<double>& low, const std::vector<double>& high)
{
  JsonArray bins;
  for (size_t b = 0; b < all.size(); ++b)
  {
    const rcn_calib_bin& bin = all[b];
    bins.Add(JsonObject{ { "lower", bin.lower }, { "upper", bin.upper }, { "count", bin.count },
      { "confidence", bin.confidence }, { "frequency", bin.frequency }, { "low", low[b] }, { "high", high[b] } });
  }
  return bins;
}

JsonArray SharesJson(const std::vector<rcn_level_share>& shares)
{
  JsonArray levels;
  for (size_t k = 0; k < shares.size(); ++k)
  {
    levels.Add(JsonObject{ { "level", k }, { "predicted", shares[k].predicted }, { "observed", shares[k].observed },
      { "voxels", shares[k].voxels } });
  }
  return levels;
}

} // namespace

void SetLevels(JsonObject& object, const EvaluationReport& report)
{
  JsonArray levels;
  for (const LevelDiagram& one : report.Levels)
  {
    levels.Add(
      JsonObject{ { "at_least", one.AtLeast }, { "ece", one.Ece }, { "bins", BinsJson(one.Bins, one.BandLow, one.BandHigh) } });
  }
  object.Set("levels", rcn_level_source_name(report.LevelSource));
  object.Set("level_voxels", report.LevelVoxels < 0 ? Json(nullptr) : Json(report.LevelVoxels))
    .Set("level_cases", report.LevelCases);
  object.Set("level_calibration",
    JsonObject{ { "mean", report.Figures[RCN_LEVEL_ECE] }, { "max", report.Figures[RCN_LEVEL_ECE_MAX] }, { "t", levels } });
  object.Set("level_shares", JsonObject{ { "all", SharesJson(report.Shares) }, { "unsure", SharesJson(report.UnsureShares) } });
}

// Keys are a contract with scripts: new ones may be added, none changes its name or its meaning.
json_t* EvaluationJson(const EvaluationReport& report, const EvaluationOptions& options, const std::vector<std::string>& raters)
{
  JsonObject object{ { "cases", report.Cases }, { "case_count", report.Cases }, { "patients", report.Patients },
    { "voxels", report.Voxels }, { "pairs", report.Pairs },
    { "region", options.RegionMask.empty() ? rcn_region_name(options.Region.region) : options.RegionMask.c_str() },
    { "readout", rcn_readout_name(options.Calib.readout) } };
  if (options.Calib.readout == RCN_READOUT_AT_LEAST)
  {
    object.Set("at_least", options.Calib.at_least);
  }
  object.Set("reference", options.Reference).Set("tie", options.TieBackground ? "background" : "foreground");
  SetFigures(object, report);
  object.Set("mr_kde_ece", report.Kde.ece).Set("mr_kde_bandwidth", report.Kde.bandwidth);
  SetLevels(object, report);
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
  object.Set("volumes", VolumeReportJson(report.Volumes));
  object.Set("bins", BinsJson(report.Bins, report.BandLow, report.BandHigh)).Set("dice_empty_cases", report.EmptyCases);
  std::vector<std::string> remarks = RemarksInWords(report);
  if (IsDescribed(options))
  {
    remarks.insert(remarks.begin(), DescribedInWords);
  }
  object.Set("circular", !report.CircularCases.empty()).Set("remarks", remarks);
  return object.Release();
}

json_t* EvaluationJson(
  const std::vector<StructureReport>& structures, const EvaluationOptions& options, const std::vector<std::string>& raters)
{
  JsonObject mean(EvaluationJson(MeanOverStructures(structures), options, raters)), each;
  for (const StructureReport& one : structures)
  {
    each.Set(one.Name, one.Report.Cases > 0 ? Json(EvaluationJson(one.Report, options, raters)) : Json(nullptr));
  }
  // Structures of one case are not independent of each other, so nothing is said about the interval of their mean.
  mean.Set("ci", nullptr).Set("bootstrap_60", nullptr).Set("ci_note", "mean over structures: no interval");
  return mean.Set("volumes", nullptr).Set("structures", each).Release();
}

namespace
{

/// The mean over structures of what is defined; NaN where nothing is.
template <class Value> double MeanOf(const std::vector<const EvaluationReport*>& reports, const Value& value)
{
  double sum = 0;
  int count = 0;
  for (const EvaluationReport* report : reports)
  {
    const double one = value(*report);
    sum += std::isfinite(one) ? one : 0;
    count += std::isfinite(one);
  }
  return count ? sum / count : NAN;
}

/// The bins of all structures together, which have the same limits.
template <class Bins> std::vector<rcn_calib_bin> Pooled(const std::vector<const EvaluationReport*>& reports, const Bins& bins)
{
  std::vector<rcn_calib_bin> sum = bins(*reports.front());
  for (size_t i = 1; i < reports.size(); ++i)
  {
    const std::vector<rcn_calib_bin>& more = bins(*reports[i]);
    for (size_t b = 0; b < std::min(sum.size(), more.size()); ++b)
    {
      // Means weighted with the votes; an empty bin has NaN in place of a mean.
      const double a = static_cast<double>(sum[b].count), n = static_cast<double>(more[b].count);
      if (n > 0)
      {
        sum[b].confidence = ((a > 0 ? a * sum[b].confidence : 0) + n * more[b].confidence) / (a + n);
        sum[b].frequency = ((a > 0 ? a * sum[b].frequency : 0) + n * more[b].frequency) / (a + n);
        sum[b].count += more[b].count;
      }
    }
  }
  return sum;
}

std::vector<rcn_level_share> MeanShares(
  const std::vector<const EvaluationReport*>& reports, std::vector<rcn_level_share> EvaluationReport::* shares)
{
  std::vector<rcn_level_share> mean(reports.front()->*shares);
  for (size_t k = 0; k < mean.size(); ++k)
  {
    mean[k].predicted = MeanOf(reports, [&](const EvaluationReport& one) { return (one.*shares)[k].predicted; });
    mean[k].observed = MeanOf(reports, [&](const EvaluationReport& one) { return (one.*shares)[k].observed; });
    mean[k].voxels = 0;
    for (const EvaluationReport* report : reports)
    {
      mean[k].voxels += (report->*shares)[k].voxels;
    }
  }
  return mean;
}

void MeanLevels(EvaluationReport& mean, const std::vector<const EvaluationReport*>& reports)
{
  mean.LevelSource = reports.front()->LevelSource;
  std::vector<const EvaluationReport*> known; // where voxels were answered by all raters
  for (const EvaluationReport* report : reports)
  {
    mean.LevelSource = report->LevelSource == mean.LevelSource ? mean.LevelSource : RCN_LEVELS_MIXED;
    if (!report->Levels.empty())
    {
      known.push_back(report);
    }
  }
  for (size_t t = 0; !known.empty() && t < known.front()->Levels.size(); ++t)
  {
    LevelDiagram one = known.front()->Levels[t];
    one.Ece = MeanOf(known, [t](const EvaluationReport& report) { return report.Levels[t].Ece; });
    one.Bins = Pooled(known, [t](const EvaluationReport& report) { return report.Levels[t].Bins; });
    one.BandLow.assign(one.Bins.size(), NAN);
    one.BandHigh = one.BandLow;
    mean.Levels.push_back(one);
  }
  mean.Shares = MeanShares(reports, &EvaluationReport::Shares);
  mean.UnsureShares = MeanShares(reports, &EvaluationReport::UnsureShares);
}

} // namespace

EvaluationReport MeanOverStructures(const std::vector<StructureReport>& structures)
{
  EvaluationReport mean;
  std::vector<const EvaluationReport*> reports;
  mean.LevelVoxels = 0;
  for (const StructureReport& one : structures)
  {
    if (one.Report.Cases > 0)
    {
      reports.push_back(&one.Report);
      // A case counts once, although several structures were judged in it; voxels and pairs are of each structure.
      mean.Cases = std::max(mean.Cases, one.Report.Cases);
      mean.Patients = std::max(mean.Patients, one.Report.Patients);
      mean.Voxels += one.Report.Voxels;
      mean.Pairs += one.Report.Pairs;
      mean.LevelVoxels += one.Report.LevelVoxels;
      mean.LevelCases = std::max(mean.LevelCases, one.Report.LevelCases);
      mean.EachLeftOut = mean.EachLeftOut || one.Report.EachLeftOut;
    }
  }
  if (reports.empty())
  {
    return mean;
  }
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    mean.Figures[f] = MeanOf(reports, [f](const EvaluationReport& one) { return one.Figures[f]; });
    // units 0: no interval is shown.
    mean.Interval[f] = { mean.Figures[f], NAN, NAN, NAN, NAN, 0 };
    mean.Paper[f] = {};
  }
  mean.Auc = {};
  mean.Auc.reference = MeanOf(reports, [](const EvaluationReport& one) { return one.Auc.reference; });
  mean.Auc.pairs = MeanOf(reports, [](const EvaluationReport& one) { return one.Auc.pairs; });
  mean.Bins = Pooled(reports, [](const EvaluationReport& one) { return one.Bins; });
  mean.BandLow.assign(mean.Bins.size(), NAN);
  mean.BandHigh = mean.BandLow;
  for (size_t r = 0; r < reports.front()->RaterEce.size(); ++r)
  {
    mean.RaterEce.push_back(MeanOf(reports, [r](const EvaluationReport& one) { return one.RaterEce[r]; }));
    mean.RaterBrier.push_back(MeanOf(reports, [r](const EvaluationReport& one) { return one.RaterBrier[r]; }));
    mean.RaterBins.push_back(Pooled(reports, [r](const EvaluationReport& one) { return one.RaterBins[r]; }));
  }
  for (double rcn_brier::* part :
    { &rcn_brier::brier, &rcn_brier::reliability, &rcn_brier::resolution, &rcn_brier::uncertainty, &rcn_brier::remainder })
  {
    mean.Brier.*part = MeanOf(reports, [part](const EvaluationReport& one) { return one.Brier.*part; });
  }
  mean.Kde.ece = MeanOf(reports, [](const EvaluationReport& one) { return one.Kde.ece; });
  mean.Kde.bandwidth = MeanOf(reports, [](const EvaluationReport& one) { return one.Kde.bandwidth; });
  mean.MassEce = MeanOf(reports, [](const EvaluationReport& one) { return one.MassEce; });
  mean.MassMce = MeanOf(reports, [](const EvaluationReport& one) { return one.MassMce; });
  mean.MassAce = MeanOf(reports, [](const EvaluationReport& one) { return one.MassAce; });
  MeanLevels(mean, reports);
  return mean;
}

// The sure end and the middle are looked at apart, and both are told: easy background would hide everything else, and few sure
// voxels the curve that everybody sees. "Too high" is said only of a curve that also looks so: most of its bins have to lie
// on that side.
std::string DirectionInWords(const EvaluationReport& report)
{
  double over = 0, under = 0, votes = 0, sureGap = 0, sureVotes = 0;
  int binsOver = 0, binsUnder = 0;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    const double count = static_cast<double>(bin.count), gap = bin.confidence - bin.frequency;
    if (bin.count > 0 && bin.confidence >= 0.95)
    {
      sureGap += gap * count;
      sureVotes += count;
    }
    else if (bin.count > 0 && bin.confidence > 0.05)
    {
      (gap > 0 ? over : under) += std::fabs(gap) * count;
      (gap > 0 ? binsOver : binsUnder) += std::fabs(gap) >= 0.01;
      votes += count;
    }
  }
  // Three to one is a direction; less is both. The sentence has to fit above a diagram.
  const bool both = votes > 0 && (over + under) / votes >= 0.02 && !(over > 3 * under && binsOver >= binsUnder) &&
    !(under > 3 * over && binsUnder >= binsOver);
  const std::string middle = votes == 0 ? "no probability is between 5 % and 95 %"
    : both                              ? "too high in some bins, too low in others"
    : (over + under) / votes < 0.02     ? "well calibrated"
    : over > under                      ? "too high"
                                        : "too low";
  if (sureVotes > 0 && sureGap / sureVotes > 0.05)
  {
    return "Overconfident above 95 %; " + (votes == 0 ? "" : std::string("below, ")) + middle + ".";
  }
  return votes == 0 ? "All predictions are near 0 or 1: " + middle + "."
                    : "Between 5 % and 95 %, " + (both ? "" : std::string("probabilities are ")) + middle + ".";
}

const std::vector<FigureName>& FigureNames()
{
  static const std::vector<FigureName> names = {
    { RCN_MR_ECE, "MR-ECE (%)", "how far probabilities are from the share of raters, on average", true },
    { RCN_MR_ECE_DEBIASED, "MR-ECE, debiased (%)", "the same, corrected for the bias of few cases", true },
    { RCN_RATER_ECE, "mean of raters' ECEs (%)", "the same against each rater alone", true },
    { RCN_SIGNED, "signed (%)", "above 0: probabilities are too high; below: too low", true },
    { RCN_ECE, "ECE (%)", "confidence of the thresholded prediction against the reference", true },
    { RCN_MCE, "MCE (%)", "the worst bin", true },
    { RCN_ACE, "ACE (%)", "bins counted equally", true },
    { RCN_BRIER, "Brier", "mean squared error against all raters", false },
    { RCN_NLL, "NLL", "negative log-likelihood of the raters' votes, mean", false },
    { RCN_RPS, "RPS", "squared error of the predicted number of raters", false },
    { RCN_LEVEL_NLL, "level NLL", "negative log-likelihood of the number of raters who mark a voxel, mean", false },
    { RCN_LEVEL_ECE, "level calibration (%)", "calibration error of \"at least t raters mark it\", mean over t", true },
    { RCN_LEVEL_ECE_MAX, "level calibration, worst (%)", "the same for the worst t", true },
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
  if (report.FittedHere)
  {
    remarks.push_back("The correction was fitted to this case; evaluate it on other cases.");
  }
  if (report.EachLeftOut)
  {
    remarks.push_back("Calibration is that with each case left out of the fit of the correction; AUC and Dice are those of the "
                      "model as it is applied.");
  }
  if (!report.CircularCases.empty())
  {
    remarks.push_back("Circular: the map of " + named(report.CircularCases) +
      " was made from the masks of the raters it is compared with, so "
      "the figures are too good; evaluate it with raters who were left out.");
  }
  if (report.Nameless > 0)
  {
    remarks.push_back("Patients: " + std::to_string(report.Nameless) + " of " + std::to_string(report.Cases) +
      " cases name none, and each of these counts as a patient of its own.");
  }
  if (report.AucFromHistogram)
  {
    remarks.push_back("AUC is approximate, from a histogram: there are too many voxels to keep the probability of each.");
  }
  if (!report.EmptyCases.empty())
  {
    remarks.push_back("Dice: in " + named(report.EmptyCases) +
      " the reference marks nothing and nothing is predicted, or the reference is missing; left out of the mean.");
  }
  if (report.LevelVoxels >= 0 && report.LevelVoxels < report.Voxels)
  {
    const bool fewCases = report.Cases > 1 && report.LevelCases < static_cast<int64_t>(report.Cases);
    remarks.push_back(report.LevelVoxels == 0
        ? "Levels: no voxel was answered by all raters, so RPS, level NLL and level calibration are not known."
        : "Levels: RPS, level NLL and level calibration are those of the " +
          PercentText(static_cast<double>(report.LevelVoxels) / static_cast<double>(report.Voxels), 1) +
          " of the voxels that all raters answered" +
          (fewCases ? ", in " + std::to_string(report.LevelCases) + " of " + std::to_string(report.Cases) + " cases" : "") +
          ".");
  }
  if (report.LevelSource == RCN_LEVELS_BINOMIAL || report.LevelSource == RCN_LEVELS_MIXED)
  {
    remarks.push_back(std::string("Levels: ") +
      (report.LevelSource == RCN_LEVELS_MIXED ? "some predictions are" : "the prediction is") +
      " one probability, which is converted to levels by a binomial distribution (raters independent).");
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
    // The bin that adds most to the error, not the one with the largest gap, which may hold a handful of voxels.
    if (gap >= 0.01 && gap * static_cast<double>(bin.count) > cost)
    {
      cost = gap * static_cast<double>(bin.count);
      worst = &bin;
    }
  }
  return worst ? "Where the model predicts " + PercentText(worst->confidence) + ", " + PercentText(worst->frequency) +
      " of the raters mark the voxel."
               : "";
}

} // namespace rcn
