// SPDX-License-Identifier: Apache-2.0
/// RaterConsensusEvaluate: `rater-consensus evaluate` for Slicer's scene, or for a data list.
#include "rcnCommands.h"
#include "rcnSlicerProgram.h"

namespace
{

/// The reliability diagram's bins as a table of Slicer.
std::string BinTable(const json_t* json, char separator)
{
  const char* const columns[] = { "lower", "upper", "confidence", "frequency", "count" };
  std::string text;
  for (const char* column : columns)
  {
    text += (text.empty() ? std::string() : std::string(1, separator)) + column;
  }
  const json_t* bins = json_object_get(json, "bins");
  for (size_t b = 0; b < json_array_size(bins); ++b)
  {
    std::string row;
    for (const char* column : columns)
    {
      row += (row.empty() ? std::string() : std::string(1, separator)) +
        rcn::TextOf(json_object_get(json_array_get(bins, b), column));
    }
    text += "\n" + row;
  }
  return text + "\n";
}

void Plan(rcn::SlicerPlan& plan, const rcn::Arguments& given)
{
  std::vector<std::string> volumes = rcn::SlicerRaterPlaceNames();
  volumes.insert(volumes.end(), { "image", "prob", "region_mask" });
  const std::string choose = "Choose a predicted probability and at least one rater";
  if (rcn::IsList(given, volumes, choose))
  {
    plan.Words.insert(plan.Words.end(), { "--pred", rcn::Required(given, "pred", "Choose the folder with the predictions.") });
    if (given.Has("--versus"))
    {
      plan.Words.insert(plan.Words.end(), { "--versus", given.Get("--versus") });
    }
  }
  else
  {
    plan.Words.insert(plan.Words.end(), { "--prob", rcn::Required(given, "prob", choose + ".") });
    rcn::AddRaters(plan.Words, given);
  }
  if (given.Has("--region_mask"))
  {
    plan.Words.insert(plan.Words.end(), { "--region-mask", given.Get("--region_mask") });
  }
  else
  {
    plan.Words.insert(plan.Words.end(), { "--region", given.Get("--region", "box") });
  }
  const std::string table = given.Get("--reliability");
  if (!table.empty())
  {
    const bool isCsv = table.size() > 4 && table.compare(table.size() - 4, 4, ".csv") == 0;
    plan.Finish = [table, isCsv](const json_t* json) { rcn::WriteText(table, BinTable(json, isCsv ? ',' : '\t')); };
  }
}

} // namespace

int main(int argc, char** argv)
{
  rcn::SlicerProgram program;
  program.Name = "RaterConsensusEvaluate";
  program.Title = "Rater Consensus Evaluate";
  program.What = rcn::EvaluateCommand();
  program.Description =
    "Does 70 % mean 70 %? Judges predicted probabilities against all raters: MR-ECE (how far the probability is from the "
    "share of raters who mark the voxel), its relatives, Brier score, likelihood, AUC and Dice, with 95 % intervals where "
    "there are "
    "five cases or more, and the bins of a reliability diagram.";
  program.Groups = { { "Prediction", "What to judge.", false,
    { { "image", "prob", "Probability", "--prob", "", "type=\"any\"",
        "the predicted probability, or K+1 level probabilities per voxel", "", {}, false, true },
      { "image", "image", "Image", "--image", "", "type=\"any\"",
        "the image that was outlined, if masks are to be checked against its geometry" },
      { "string", "readout", "Readout of levels", "--readout", "", "",
        "majority, more-than-half, expected or at-least:T; empty: the one that predict used, or expected" } } } };
  for (const rcn::SlicerGroup& group : rcn::SlicerRaterGroups())
  {
    program.Groups.push_back(group);
  }
  program.Groups.push_back({ "Where and how", "Which voxels count, and what they are counted into.", false,
    { { "string-enumeration", "region", "Region", "--region", "box", "", "", "", {}, false, true },
      { "image", "region_mask", "Region as a mask", "--region-mask", "", "type=\"label\"",
        "voxels that count, instead of a region", "", {}, false, true },
      { "integer", "bins", "Bins", "--bins", "15", "", "", "", { 1, 100, 1 } },
      { "table", "reliability", "Reliability table", "", "", "",
        "the bins of the reliability diagram: model says, raters say, how many votes", "", {}, true },
      { "file", "plot", "Reliability diagram", "--plot", "", "fileExtensions=\".svg,.png\"", "", "", {}, true } } });
  program.Groups.push_back(
    rcn::SlicerListGroup({ { "directory", "pred", "Predictions", "--pred", "", "",
                             "folder with <case>_levels or <case>_prob for each case", "", {}, false, true },
      { "directory", "versus", "Compare with", "--versus", "", "", "another folder of predictions", "", {}, false, true } }));
  program.Groups.push_back(rcn::SlicerDetailGroup(
    { { "integer", "margin", "Box margin (voxels)", "--margin", "20" }, { "double", "band", "Band (mm)", "--band", "5" },
      { "string-enumeration", "binning", "Bins of", "--binning", "width", "", "equal width, or about equally many votes" },
      { "string", "reference", "Reference", "--reference", "majority" },
      { "double", "threshold", "Threshold", "--threshold", "0.5", "", "", "", { 0, 1, 0.01 } },
      { "double", "scale", "Number that means 1", "--scale", "0", "", "", "0" },
      { "integer", "seed", "Draw of the paper's bootstrap", "--seed", "0" },
      { "file", "recalibration", "Correction", "--recalibration", "", "fileExtensions=\".json\"" },
      { "boolean", "allow_fitted_cases", "Judge on fitted cases", "--allow-fitted-cases" } },
    true));
  program.Results = {
    { "double", "mr_ece", "MR-ECE", "how far the probability is from the share of raters who mark the voxel", "mr_ece" },
    { "double", "mr_ece_low", "MR-ECE, from", "its 95 % interval, where there are five cases or more", "ci.mr_ece.0" },
    { "double", "mr_ece_high", "MR-ECE, to", "its 95 % interval, where there are five cases or more", "ci.mr_ece.1" },
    { "double", "ece", "ECE", "the same against the reference alone", "ece" },
    { "double", "mce", "MCE", "the largest gap of a bin", "mce" },
    { "double", "ace", "ACE", "the mean gap of the bins", "ace" },
    { "double", "brier", "Brier score", "mean squared error over all votes", "brier" },
    { "double", "nll", "Negative log-likelihood", "of all votes", "nll" },
    { "double", "rps", "RPS", "ranked probability score of the levels", "rps" },
    { "double", "auc", "AUC", "does a higher probability mean foreground? against the reference", "auc" },
    { "double", "auc_pairs", "AUC, all votes", "the same over all voxel-rater pairs", "auc_pairs" },
    { "double", "dice", "Dice, mean over cases", "of the mask at the threshold with the reference", "dice" },
    { "double", "dice_pooled", "Dice, pooled over voxels", "the same over all voxels together", "dice_pooled" },
    { "integer", "cases", "Cases", "how many were judged", "cases" },
    { "integer", "voxels", "Voxels", "how many counted", "voxels" },
    { "double", "mr_ece_difference", "MR-ECE, difference", "this minus the predictions compared with",
      "difference.mr_ece.value" },
    { "double", "mr_ece_difference_p", "p of the difference", "over patients or cases", "difference.mr_ece.p" },
  };
  program.LeftOut = { "--quiet" };
  program.Plan = Plan;
  return program.Main(argc, argv);
}
