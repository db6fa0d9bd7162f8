// SPDX-License-Identifier: Apache-2.0
/// rater-consensus evaluate and recalibrate: does 70 % mean 70 %, and how to make it so.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>

#include "rcnCommands.h"
#include "rcnEvaluatedCases.h"
#include "rcnProcesses.h"
#include "rcnRanking.h"
#include "rcnRecalibration.h"
#ifdef RCN_HAVE_NETWORKS
#include "rcnModelRecord.h"
#endif

namespace rcn
{

namespace
{

// ---- options ---------------------------------------------------------------------------------------

/// `regions`: several may be asked for.
std::vector<Option> JudgeOptions(bool regions)
{
  return {
    { "--prob", "FILE", "one case: the predicted probability, or K+1 level probabilities per voxel", {}, false, FileUse::Read },
    { "--pred", "DIR", "with --data: folder with <case>_levels or <case>_prob for each case", {}, false, FileUse::Read },
    ScaleOption(),
    { "--readout", "WHICH",
      "readout of levels: majority, more-than-half, expected or at-least:T (that of predict, or expected if it is unknown)" },
    { "--region", "WHERE",
      regions
        ? "which voxels count (box); given several times, the first is the one of the tables and diagrams, and the others have "
          "a row in a table and rows of cases"
        : "which voxels count (box)",
      ChoiceNames(Regions()), regions },
    { "--margin", "VOXELS", "box: margin around the marks (20)" },
    { "--band", "MM", "band: distance from the contour of the mean vote, in pixels for a picture without spacing (5)" },
    { "--region-mask", "FILE", "one case: mask of the voxels that count", {}, false, FileUse::Read },
    { "--bins", "N", "number of bins (15)" },
    { "--binning", "HOW", "bins of equal width, or with about the same number of votes (width)", { "width", "mass" } },
    { "--reference", "WHO", "reference for ECE, AUC and Dice: majority, staple, or the name of a rater (majority)" },
    { "--threshold", "T", "for Dice: probability from which a voxel is foreground (0.5)" },
    { "--seed", "N", "random seed of the paper's ten draws of 60 % of the cases (0)" },
  };
}

/// In the order in which they were given; the first is what everything is about.
std::vector<rcn_region> RegionsFrom(const Arguments& arguments)
{
  std::vector<rcn_region> regions;
  for (const std::string& name : arguments.GetAll("--region"))
  {
    rcn_region region{};
    Parse(region, name);
    if (std::find(regions.begin(), regions.end(), region) != regions.end())
    {
      throw Error(RCN_EINVALID, "--region " + name + " is given twice.");
    }
    regions.push_back(region);
  }
  return regions.empty() ? std::vector<rcn_region>{ EvaluationOptions().Region.region } : regions;
}

EvaluationOptions EvaluationOptionsFrom(const Arguments& arguments)
{
  EvaluationOptions options;
  options.Calib.bins = static_cast<int>(arguments.GetInteger("--bins", 15, 1, 1000));
  options.Calib.threshold = arguments.GetNumber("--threshold", 0.5);
  ChooseReadout(options, arguments.Get("--readout"), "", false); // before any work; the predictions may know better
  options.Region.region = RegionsFrom(arguments).front();
  options.Region.margin = arguments.GetInteger("--margin", options.Region.margin, 0, 1 << 30);
  options.Region.band_mm = arguments.GetNumber("--band", options.Region.band_mm);
  options.RegionMask = arguments.Get("--region-mask");
  options.Binning = arguments.Get("--binning", "width") == "mass" ? RCN_BINS_MASS : RCN_BINS_WIDTH;
  options.Reference = arguments.Get("--reference", "majority");
  options.Tolerance = arguments.GetNumber("--tolerance", RCN_GEOMETRY_TOLERANCE);
  options.Seed = static_cast<uint64_t>(arguments.GetInteger("--seed", 0, 0, INT64_MAX));
  options.AllowFittedCases = arguments.Has("--allow-fitted-cases");
  return options;
}

void CheckJudgeArguments(const Arguments& arguments)
{
  CheckCaseOrList(arguments);
  if (arguments.Has("--data") ? !arguments.Has("--pred") : !arguments.Has("--prob"))
  {
    throw Error(RCN_EINVALID,
      arguments.Has("--data") ? "Give the folder of the predictions with --pred DIR."
                              : "Give the prediction with --prob FILE.");
  }
  for (const char* option : { "--pred", "--split", "--versus", "--record" })
  {
    if (!arguments.Has("--data") && arguments.Has(option))
    {
      throw Error(RCN_EINVALID, std::string(option) + " is for a list of cases; give --data LIST --pred DIR.");
    }
  }
  for (const char* option : { "--prob", "--region-mask" })
  {
    if (arguments.Has("--data") && arguments.Has(option))
    {
      throw Error(RCN_EINVALID, std::string(option) + " is for one case; use --pred and --region with --data.");
    }
  }
  if (arguments.Has("--region-mask") && arguments.Has("--region"))
  {
    throw Error(RCN_EINVALID, "Give either --region or --region-mask.");
  }
  for (const char* option : { "--plot", "--plot-levels" })
  {
    const std::string sentence = arguments.Has(option) ? Figure::CheckPath(arguments.Get(option)) : "";
    if (!sentence.empty())
    {
      throw Error(RCN_EINVALID, sentence);
    }
  }
  CheckTextOutputs(arguments);
  for (const char* option : { "--plot", "--plot-levels", "-o" })
  {
    const std::string sentence = arguments.Has(option) ? CheckText(arguments.Get(option)) : "";
    if (!sentence.empty())
    {
      throw Error(RCN_EIO, std::string(option) + " " + sentence);
    }
  }
  for (const char* option : { "--pred", "--versus" })
  {
    std::error_code ignored;
    if (arguments.Has(option) && !std::filesystem::is_directory(arguments.Get(option), ignored))
    {
      throw Error(RCN_EIO, std::string(option) + " " + arguments.Get(option) + " is not a folder of predictions.");
    }
  }
}

/// The structures that are judged, by number; 0 stands for the only one of a list without several.
std::vector<int> JudgedStructures(const DataList& list, const Arguments& arguments)
{
  const int chosen = arguments.Has("--structure") ? FindStructure(list.Structures, arguments.Get("--structure")) : 0;
  if (!list.HasStructures() || chosen > 0)
  {
    return { list.HasStructures() ? chosen : 0 };
  }
  std::vector<int> all(list.Structures.size());
  std::iota(all.begin(), all.end(), 1);
  return all;
}

/// Predictions to judge: a folder, or the file of one case.
PredictionSource SourceFrom(const Arguments& arguments, const std::string& option, const DataList& list)
{
  const std::string path = arguments.Get(arguments.Has("--data") ? option : "--prob");
  const PredictionSource source = arguments.Has("--data") ? PredictionsOfFolder(path, ScaleFrom(arguments), list.Structures)
                                                          : PredictionOfFile(path, ScaleFrom(arguments), list.Structures);
  const std::vector<Structure> predicted = source.Run ? source.Run->Structures : std::vector<Structure>();
  if (predicted.size() == 1 && arguments.Has("--structure") && predicted.front().Name != arguments.Get("--structure"))
  {
    throw Error(RCN_EINVALID,
      path + " holds predictions of " + predicted.front().Name + ", not of " + arguments.Get("--structure") + ".");
  }
  if (list.HasStructures() && !arguments.Has("--structure") && source.Run && predicted.size() <= 1)
  {
    throw Error(RCN_EINVALID,
      path + " holds predictions of one structure, and there are " + std::to_string(list.Structures.size()) +
        "; choose one with --structure NAME.");
  }
  return source;
}

/// The options with the readout that was asked for, otherwise with the one that the predictions were made with.
EvaluationOptions OptionsFor(const PredictionSource& source, const Arguments& arguments)
{
  EvaluationOptions options = EvaluationOptionsFrom(arguments);
  const PredictionRun* run = source.Run.get();
  ChooseReadout(options, arguments.Get("--readout"), run ? run->Readout : "", run && run->TieBackground);
  return options;
}

/// One case, or the cases of a list.
JudgeInput InputFrom(const Arguments& arguments, Terminal& terminal)
{
  JudgeInput input;
  input.Loop = LoopFor(arguments, terminal);
  if (arguments.Has("--data"))
  {
    input.List = DataListFrom(arguments, "--data", true); // predictions have all structures
    terminal.Remark(LeaveOutUnrated(input.List, input.Loop.Split));
    return input;
  }
  input.List.Cases = { CaseFrom(arguments, true) };
  input.List.Structures = input.List.Cases.front().Structures;
  input.List.Cases.front().Id.clear(); // a file of that name elsewhere is not the same case: only voxels identify it
  return input;
}

// ---- text ------------------------------------------------------------------------------------------

/// Of differences: resampling knows AUC from a histogram only.
const FigureName AucRows[] = {
  { RCN_AUC_HISTOGRAM, "AUC (by histogram)", "", false },
  { RCN_AUC_PAIRS_HISTOGRAM, "AUC, all votes (by histogram)", "", false },
};

std::string Cell(double value, bool percent)
{
  return percent ? Fixed(100 * value, 2) : Fixed(value, 4);
}

std::string IntervalCell(const rcn_interval& interval, bool percent)
{
  return FromTo((percent ? 100 : 1) * interval.low, (percent ? 100 : 1) * interval.high, percent ? 2 : 4);
}

std::string FigureTable(const EvaluationReport& report)
{
  Table table({ "", "value", "95 % interval", "meaning" });
  for (const FigureName& row : FigureNames())
  {
    if (std::isfinite(report.Figures[row.Figure]))
    {
      table.Add({ row.Name, Cell(report.Figures[row.Figure], row.Percent),
        IntervalCell(report.Interval[row.Figure], row.Percent), row.Meaning });
    }
    if (row.Figure == RCN_MR_ECE && std::isfinite(report.MassEce))
    {
      table.Add({ "MR-ECE, equal-mass bins (%)", Cell(report.MassEce, true), "–", "the same over the bins below" });
    }
    if (row.Figure == RCN_MR_ECE && std::isfinite(report.Kde.ece))
    {
      table.Add({ "MR-KDE-ECE (%)", Cell(report.Kde.ece, true), "–",
        "the same without bins, smoothed by " + PercentText(report.Kde.bandwidth, 1) });
    }
  }
  const char* const meaning = "how well the probability separates foreground from background, against the reference";
  table.Add({ "AUC", std::isfinite(report.Auc.reference) ? Fixed(report.Auc.reference, 4) : "undefined",
    IntervalCell(report.Interval[RCN_AUC_HISTOGRAM], false),
    std::isfinite(report.Auc.reference) ? meaning : "everything or nothing is foreground" });
  table.Add({ "AUC, all votes", std::isfinite(report.Auc.pairs) ? Fixed(report.Auc.pairs, 4) : "undefined",
    IntervalCell(report.Interval[RCN_AUC_PAIRS_HISTOGRAM], false), "the same over all voxel-rater pairs" });
  return table.Text();
}

/// Of whole images; nothing where no case has volumes.
std::string VolumeText(const VolumeReport& volumes)
{
  Table table({ "Volumes", "value", "95 % interval", "meaning" });
  for (const VolumeFigure& figure : volumes.Shown())
  {
    if (std::isfinite(figure.Value))
    {
      table.Add({ figure.Name, figure.Text, figure.Interval, figure.Meaning });
    }
  }
  return volumes.Figures.cases > 0 ? "\n" + table.Text() + (volumes.Remark.empty() ? "" : volumes.Remark + "\n") : "";
}

std::string BinTable(const EvaluationReport& report)
{
  Table table({ "Predicted (%)", "Observed (%)", "Gap", "Votes" });
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      table.Add({ Fixed(100 * bin.confidence, 1), Fixed(100 * bin.frequency, 1),
        Fixed(100 * (bin.confidence - bin.frequency), 1), std::to_string(bin.count) });
    }
  }
  return table.Text();
}

/// How often each number of raters is expected, and occurs.
std::string ShareTable(const EvaluationReport& report)
{
  Table table({ "Raters who mark it", "Predicted (%)", "Observed (%)", "Where unsure: predicted (%)", "observed (%)" });
  for (size_t k = 0; !report.Levels.empty() && k < report.Shares.size(); ++k)
  {
    const rcn_level_share &all = report.Shares[k], &unsure = report.UnsureShares[k];
    table.Add({ std::to_string(k), Cell(all.predicted, true), Cell(all.observed, true), Cell(unsure.predicted, true),
      Cell(unsure.observed, true) });
  }
  return report.Levels.empty() ? "" : "\n" + table.Text();
}

/// Of which any readout is the same.
bool IsOneProbability(const Evaluation& judged, const PredictionSource& source)
{
  return judged.HasOneProbability() || (!judged.HasLevels() && !(source.Run && source.Run->Levels));
}

std::string Heading(
  const EvaluationReport& report, const EvaluationOptions& options, const Evaluation& judged, const PredictionSource& source)
{
  std::string text = Counted(static_cast<int64_t>(report.Cases), "case") + ", " + Counted(report.Voxels, "voxel") + " (" +
    (options.RegionMask.empty() ? rcn_region_name(options.Region.region) : options.RegionMask) + "), " +
    Counted(report.Pairs, "vote");
  if (IsOneProbability(judged, source))
  {
    text += ", one probability";
  }
  else
  {
    text += ", readout " + ReadoutText(options.Calib.readout, options.Calib.at_least);
  }
  text += report.Patients < report.Cases ? ", " + Counted(static_cast<int64_t>(report.Patients), "patient") : "";
  text += report.Cases == 1 ? "\nOne case: no interval." : "";
  text += IsDescribed(options) ? "\n" + std::string(DescribedInWords) : "";
  for (const std::string& remark : RemarksInWords(report))
  {
    text += "\n" + remark;
  }
  return text + "\n\n";
}

/// The first model minus the second.
struct Differences
{
  Differences(const Evaluation& first, const Evaluation& second)
    : Figures(first.Compare(second)), Volumes(first.CompareVolumes(second))
  {
  }

  std::vector<rcn_interval> Figures; ///< RCN_FIGURES of them
  std::vector<VolumeDifference> Volumes;
};

/// "0.012", or "< 0.001": no p value is 0.
std::string PValueText(const rcn_interval& one)
{
  return !one.units ? "–" : one.p_value < 0.001 ? "< 0.001" : Fixed(one.p_value, 3);
}

std::string DifferenceTable(const Differences& all)
{
  const std::vector<rcn_interval>& difference = all.Figures;
  Table table({ "First minus second", "difference", "95 % interval", "p" });
  const auto add = [&](const FigureName& row) {
    const rcn_interval& one = difference[row.Figure];
    if (std::isfinite(one.value))
    {
      table.Add({ row.Name, Cell(one.value, row.Percent), IntervalCell(one, row.Percent), PValueText(one) });
    }
  };
  std::for_each(FigureNames().begin(), FigureNames().end(), add);
  std::for_each(std::begin(AucRows), std::end(AucRows), add);
  for (const VolumeDifference& one : all.Volumes)
  {
    table.Add({ one.Name, one.Text, one.Interval, PValueText(one.Difference) });
  }
  return table.Text();
}

// ---- commands --------------------------------------------------------------------------------------

JsonObject DifferenceJson(const Differences& all)
{
  JsonObject object;
  const auto set = [&object](const std::string& key, const rcn_interval& one) {
    object.Set(key, JsonObject{ { "value", one.value }, { "low", one.low }, { "high", one.high }, { "p", one.p_value } });
  };
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    const rcn_interval& one = all.Figures[static_cast<size_t>(f)];
    if (std::isfinite(one.value))
    {
      set(rcn_figure_name(static_cast<rcn_figure>(f)), one);
    }
  }
  for (const VolumeDifference& one : all.Volumes)
  {
    set(one.Key, one.Difference);
  }
  return object;
}

/// Says where two folders are judged differently, because each is judged as it was made.
void RemarkOnDifferences(const JudgeInput& input, const EvaluationOptions& one, const EvaluationOptions& other)
{
  const std::string& first = input.Predictions.front().Name;
  const std::string& second = input.Predictions.back().Name;
  const std::string readout = ReadoutText(one.Calib.readout, one.Calib.at_least);
  const std::string otherReadout = ReadoutText(other.Calib.readout, other.Calib.at_least);
  if (readout != otherReadout)
  {
    input.Loop.Remark("The readout of " + first + " is " + readout + ", that of " + second + " is " + otherReadout +
      "; use --readout to evaluate both with the same.");
  }
  if (one.TieBackground != other.TieBackground)
  {
    input.Loop.Remark("A tie of the raters is " + std::string(one.TieBackground ? "background" : "foreground") + " for " +
      first + " and the opposite for " + second + ", so the two are compared with different majorities.");
  }
}

/// Region and readout, for a picture that stands alone.
std::string PlotLine(const EvaluationOptions& options, bool oneProbability)
{
  const std::string mask = std::filesystem::path(options.RegionMask).filename().string(); // a path has no room
  return "Region " + RegionInWords(options.Region, mask) + ", " +
    (oneProbability ? "one probability" : "readout " + ReadoutText(options.Calib.readout, options.Calib.at_least));
}

void SavePlots(const EvaluationReport& report, const EvaluationReport* before, const SecondModel* second,
  const std::string& about, const Arguments& arguments)
{
  if (arguments.Has("--plot-levels") && report.Levels.empty())
  {
    throw Error(RCN_EDATA, "No voxel was answered by all raters, so there are no levels to plot.");
  }
  if (!Processes::All().IsFirst())
  {
    return;
  }
  if (arguments.Has("--plot"))
  {
    ReliabilityDiagram(report, "Predicted probability and raters", before, second, about).Save(arguments.Get("--plot"));
  }
  if (arguments.Has("--plot-levels"))
  {
    LevelDiagrams(report, "Predicted and observed number of raters").Save(arguments.Get("--plot-levels"));
  }
}

/// What evaluate judges, and by what: the model; the same before its correction, for the diagram; and the one it is compared
/// with. Only the first is always there: 0 stands for the others where they are not.
struct EvaluateTasks
{
  std::vector<JudgeTask> All;
  Recalibration Correction; // the first task points to it
  size_t Before = 0, Versus = 0;
  std::vector<int> Structures;     // all tasks of the first one, then all of the second, ...
  std::vector<rcn_region> Regions; // and these again for each further region

  size_t PerStructure() const { return this->All.size() / (this->Structures.size() * this->Regions.size()); }
  /// The place of a task of a structure on a region, counted as in Structures and Regions.
  size_t At(size_t structure, size_t task, size_t region = 0) const
  {
    return (region * this->Structures.size() + structure) * this->PerStructure() + task;
  }
};

void MakeTasks(EvaluateTasks& tasks, JudgeInput& input, const Arguments& arguments)
{
  tasks.Structures = JudgedStructures(input.List, arguments);
  input.Predictions = { SourceFrom(arguments, "--pred", input.List) };
  const PredictionSource first = input.Predictions.front();
  tasks.All = { { 0, OptionsFor(first, arguments) } };
  if (arguments.Has("--recalibration"))
  {
    tasks.Correction = ReadRecalibration(arguments.Get("--recalibration"));
    RefuseCorrected(first.Run.get(), first.Name);
    tasks.Before = tasks.All.size();
    tasks.All.push_back(tasks.All.front());
    tasks.All.front().Options.Correction = &tasks.Correction;
  }
  if (arguments.Has("--versus"))
  {
    input.Predictions.push_back(SourceFrom(arguments, "--versus", input.List));
    tasks.Versus = tasks.All.size();
    tasks.All.push_back({ 1, OptionsFor(input.Predictions.back(), arguments) });
    RemarkOnDifferences(input, tasks.All.front().Options, tasks.All.back().Options);
  }
  const std::vector<JudgeTask> each = tasks.All;
  tasks.All.clear();
  tasks.Regions = RegionsFrom(arguments);
  for (const rcn_region region : tasks.Regions)
  {
    for (const int structure : tasks.Structures)
    {
      for (JudgeTask task : each)
      {
        task.Structure = structure;
        task.Options.Region.region = region;
        task.Options.CaseAuc = true;
        tasks.All.push_back(task);
      }
    }
  }
}

/// A region as a column names it.
std::string RegionColumn(const EvaluationOptions& options)
{
  return options.RegionMask.empty() ? rcn_region_name(options.Region.region) : options.RegionMask;
}

JsonObject MeansJson(const Evaluation& evaluation)
{
  JsonObject means;
  for (const CaseMean& one : EvaluatedCases::Means(evaluation))
  {
    means.Set(one.Key,
      JsonObject{ { "mean", one.Mean.value }, { "low", one.Mean.low }, { "high", one.Mean.high }, { "cases", one.Cases } });
  }
  return means;
}

/// The cases by themselves, of every task: in the CSV file, and in the JSON.
void WriteCases(
  JsonObject& json, const EvaluateTasks& tasks, const JudgeInput& input, const JudgeResult& judged, const Arguments& arguments)
{
  EvaluatedCases cases(input.List.HasStructures());
  JsonObject byStructure;
  for (size_t t = 0; t < tasks.All.size(); ++t)
  {
    const int structure = tasks.All[t].Structure;
    const size_t place = t % tasks.PerStructure();
    const std::string name = structure > 0 ? input.List.Structures[static_cast<size_t>(structure) - 1].Name : "";
    cases.Add(*judged.Evaluations[t],
      input.Predictions[tasks.All[t].Prediction].Name + (place > 0 && place == tasks.Before ? " (before recalibration)" : ""),
      RegionColumn(tasks.All[t].Options), name);
    if (place == 0 && t < tasks.At(0, 0, 1))
    {
      byStructure.Set(name, MeansJson(*judged.Evaluations[t]));
    }
  }
  json.Set("cases", cases.Json());
  json.Set("case_means", tasks.Structures.size() > 1 ? Json(byStructure) : Json(MeansJson(*judged.Evaluations.front())));
  if (arguments.Has("--csv") && Processes::All().IsFirst())
  {
    WriteText(arguments.Get("--csv"), cases.Csv());
  }
}

std::string MeansTable(const Evaluation& model)
{
  Table table({ "Mean of the cases' own figures", "value", "95 % interval", "cases" });
  for (const CaseMean& one : EvaluatedCases::Means(model))
  {
    table.Add({ one.Name, Cell(one.Mean.value, one.Percent), IntervalCell(one.Mean, one.Percent), std::to_string(one.Cases) });
  }
  return table.Text();
}

/// Whether what is found can be stored in a model: it must be the one that predicts, and only test cases say how it will do.
void CheckRecord(const PredictionSource& source, const Workspace& workspace, const Arguments& arguments)
{
  if (arguments.Has("--split") && arguments.Get("--split") != "test")
  {
    throw Error(RCN_EINVALID, "--record is for test cases; train records the validation cases.");
  }
  if (arguments.Has("--recalibration"))
  {
    throw Error(RCN_EINVALID,
      "--record needs a model without a separate correction; store the correction in it with recalibrate --model first.");
  }
#ifdef RCN_HAVE_NETWORKS
  CheckMadeBy(Model(workspace.Context(), arguments.Get("--record")), source.Run.get(), source.Name);
#else
  (void)source;
  (void)workspace;
  throw Error(
    RCN_EUNSUPPORTED, arguments.Get("--record") + ": this program was built without networks and cannot change a model.");
#endif
}

/// Into the model's file.
void StoreRecord(const EvaluationReport& report, const Evaluation& judged, const Workspace& workspace, Terminal& terminal,
  const Arguments& arguments)
{
#ifdef RCN_HAVE_NETWORKS
  if (!Processes::All().IsFirst())
  {
    return;
  }
  const std::string path = arguments.Get("--record");
  RecordCalibration(workspace.Context(), path, "test", report, judged.Options(), judged.CaseIds());
  const ModelRecord record = RecordOf(workspace.Context(), Model(workspace.Context(), path));
  const std::string sentence = "Recorded in " + path + ": " + record.Find("test")->InWords() + ".";
  if (record.Find("test")->Learned > 0)
  {
    terminal.Warn(sentence);
  }
  else
  {
    terminal.Remark(sentence);
  }
#else
  (void)report;
  (void)judged;
  (void)workspace;
  (void)terminal;
  (void)arguments;
#endif
}

/// What is found, in words and for machines.
struct Findings
{
  std::string Text;
  JsonObject Json;
  EvaluationReport Report; ///< of several structures their mean
};

/// About one structure, or the only one. Saves its diagrams.
Findings FindOne(const EvaluateTasks& tasks, const JudgeInput& input, const JudgeResult& judged, const Arguments& arguments)
{
  const EvaluationOptions& options = tasks.All.front().Options;
  const Evaluation& model = *judged.Evaluations.front();
  const PredictionSource& first = input.Predictions.front();
  // All processes report together: each has a part of the voxels.
  const EvaluationReport report = model.Report();
  const std::string words = IsDescribed(options) ? "" : WorstBinInWords(report);
  std::string text = Heading(report, options, model, first) + FigureTable(report) + "\n" + BinTable(report) +
    ShareTable(report) + (report.Cases > 1 ? "\n" + MeansTable(model) : "") + VolumeText(report.Volumes) +
    (words.empty() ? "" : "\n" + words + "\n");
  JsonObject json(EvaluationJson(report, options, judged.Raters));
  EvaluationReport uncorrected, other;
  SecondModel second{ nullptr, "", "" };
  if (tasks.Before)
  {
    uncorrected = judged.Evaluations[tasks.Before]->Report();
    text += "\nBefore recalibration: MR-ECE " + Cell(uncorrected.Figures[RCN_MR_ECE], true) + " %\n";
    json.Set("before_recalibration", EvaluationJson(uncorrected, options, judged.Raters));
  }
  if (tasks.Versus)
  {
    json.Set("difference", nullptr);
    if (!IsDescribed(options))
    {
      const Differences difference(model, *judged.Evaluations[tasks.Versus]);
      text += "\n" + DifferenceTable(difference);
      json.Set("difference", DifferenceJson(difference));
    }
    other = judged.Evaluations[tasks.Versus]->Report();
    const auto folder = [](const PredictionSource& source) {
      return std::filesystem::path(source.Name + "/").parent_path().filename().string(); // a path has no room in a legend
    };
    second = { &other, folder(first), folder(input.Predictions.back()) };
  }
  const bool same = IsOneProbability(model, first) && // as any readout, also of the other model
    (!tasks.Versus || IsOneProbability(*judged.Evaluations[tasks.Versus], input.Predictions.back()));
  SavePlots(
    report, tasks.Before ? &uncorrected : nullptr, tasks.Versus ? &second : nullptr, PlotLine(options, same), arguments);
  return { text, json, report };
}

/// The main figures of several evaluations, a row for each.
class MainFigures
{
public:
  explicit MainFigures(const std::string& what)
    : Table_({ what, "Cases", "MR-ECE (%)", "95 % interval", "Brier", "NLL", "RPS", "Level error (%)", "AUC", "Dice, mean" })
  {
  }

  /// `empty`: what is said where no case has a voxel there.
  void Add(const std::string& name, const EvaluationReport& report, const std::string& empty)
  {
    if (report.Cases == 0)
    {
      this->Table_.Add({ name, "0", empty, "", "", "", "", "", "", "" });
      return;
    }
    this->Table_.Add({ name, std::to_string(report.Cases), Cell(report.Figures[RCN_MR_ECE], true),
      IntervalCell(report.Interval[RCN_MR_ECE], true), Cell(report.Figures[RCN_BRIER], false),
      Cell(report.Figures[RCN_NLL], false), Cell(report.Figures[RCN_RPS], false), Cell(report.Figures[RCN_LEVEL_ECE], true),
      Fixed(report.Auc.reference, 4), Cell(report.Figures[RCN_DICE], false) });
  }

  std::string Text() const { return this->Table_.Text(); }

private:
  Table Table_;
};

/// A row for each structure, and their mean.
std::string StructureTable(const std::vector<StructureReport>& structures)
{
  MainFigures table("Structure");
  for (const StructureReport& one : structures)
  {
    table.Add(one.Name, one.Report, "the region is empty: nobody marked it");
  }
  table.Add("mean", MeanOverStructures(structures), "");
  return table.Text();
}

/// Each sentence with the names of the structures that it is about.
std::string RemarksByStructure(const std::vector<StructureReport>& structures,
  const std::function<std::vector<std::string>(const EvaluationReport& report)>& remarksOf)
{
  std::vector<std::pair<std::string, std::vector<std::string>>> remarks; // in the order in which they come up
  for (const StructureReport& one : structures)
  {
    for (const std::string& remark : one.Report.Cases > 0 ? remarksOf(one.Report) : std::vector<std::string>())
    {
      const auto known =
        std::find_if(remarks.begin(), remarks.end(), [&remark](const auto& other) { return other.first == remark; });
      (known == remarks.end() ? *remarks.insert(known, { remark, {} }) : *known).second.push_back(one.Name);
    }
  }
  std::string text;
  for (const auto& remark : remarks)
  {
    const bool all = remark.second.size() == structures.size();
    text += (all ? "" : JoinNames(remark.second) + ": ") + remark.first + "\n";
  }
  return text;
}

/// What a reader has to know of structures.
std::string StructureRemarks(const std::vector<StructureReport>& structures)
{
  return RemarksByStructure(structures, [](const EvaluationReport& report) {
    std::vector<std::string> own = RemarksInWords(report);
    if (!std::isfinite(report.Auc.pairs))
    {
      own.push_back("All votes in the region are equal, so calibration and AUC are not informative.");
    }
    return own;
  });
}

/// The volumes of each structure; of their mean there is nothing to say.
std::string StructureVolumes(const std::vector<StructureReport>& structures)
{
  Table table({ "Volumes", "Cases", "Unit", "CRPS", "95 % interval", "CURVAS CRPS", "95 % interval", "Bias", "95 % interval",
    "In 80 % (%)", "In 95 % (%)" });
  bool any = false;
  for (const StructureReport& one : structures)
  {
    const VolumeReport& volumes = one.Report.Volumes;
    if (one.Report.Cases > 0 && volumes.Figures.cases > 0)
    {
      const std::vector<VolumeFigure> all = volumes.Shown();
      std::vector<std::string> row = { one.Name, std::to_string(volumes.Figures.cases), volumes.Unit };
      for (const size_t place : { 0, 1, 2 }) // then the limits of agreement, and coverage last
      {
        row.insert(row.end(), { all[place].Text, all[place].Interval });
      }
      row.insert(row.end(), { all[all.size() - 2].Text, all.back().Text });
      table.Add(row);
      any = true;
    }
  }
  const auto remarks = [](const EvaluationReport& report) {
    return report.Volumes.Remark.empty() ? std::vector<std::string>() : std::vector<std::string>{ report.Volumes.Remark };
  };
  return any ? "\n" + table.Text() + RemarksByStructure(structures, remarks) : "";
}

/// What one task of each structure found.
std::vector<StructureReport> StructureReports(
  const EvaluateTasks& tasks, const JudgeResult& judged, const std::vector<std::string>& names, size_t task, size_t region = 0)
{
  std::vector<StructureReport> reports;
  for (size_t s = 0; s < tasks.Structures.size(); ++s)
  {
    const Evaluation& one = *judged.Evaluations[tasks.At(s, task, region)];
    reports.push_back(
      { names[static_cast<size_t>(tasks.Structures[s]) - 1], one.CaseIds().empty() ? EvaluationReport() : one.Report() });
  }
  return reports;
}

/// The first minus the second, by structure; of their mean the difference alone.
void CompareStructures(Findings& findings, const std::vector<StructureReport>& structures,
  const std::vector<StructureReport>& other, const EvaluateTasks& tasks, const JudgeResult& judged)
{
  Table table({ "First minus second", "MR-ECE (%)", "95 % interval", "p", "Brier", "95 % interval", "p" });
  Table volumes({ "Volumes, first minus second", "", "difference", "95 % interval", "p" });
  JsonObject each;
  for (size_t s = 0; s < structures.size(); ++s)
  {
    const size_t at = tasks.At(s, 0);
    if (structures[s].Report.Cases == 0)
    {
      each.Set(structures[s].Name, nullptr);
      continue;
    }
    const Differences difference(*judged.Evaluations[at], *judged.Evaluations[at + tasks.Versus]);
    const rcn_interval &ece = difference.Figures[RCN_MR_ECE], &brier = difference.Figures[RCN_BRIER];
    table.Add({ structures[s].Name, Cell(ece.value, true), IntervalCell(ece, true), PValueText(ece), Cell(brier.value, false),
      IntervalCell(brier, false), PValueText(brier) });
    each.Set(structures[s].Name, DifferenceJson(difference));
    for (const VolumeDifference& one : difference.Volumes)
    {
      volumes.Add({ structures[s].Name, one.Name, one.Text, one.Interval, PValueText(one.Difference) });
    }
  }
  const EvaluationReport second = MeanOverStructures(other);
  const double meanEce = findings.Report.Figures[RCN_MR_ECE] - second.Figures[RCN_MR_ECE];
  const double meanBrier = findings.Report.Figures[RCN_BRIER] - second.Figures[RCN_BRIER];
  table.Add({ "mean", Cell(meanEce, true), "–", "–", Cell(meanBrier, false), "–", "–" });
  findings.Text += "\n" + table.Text() + "\n" + volumes.Text();
  findings.Json.Set("difference",
    JsonObject{ { "mr_ece", JsonObject{ { "value", meanEce } } }, { "brier", JsonObject{ { "value", meanBrier } } },
      { "structures", each } });
}

/// About several structures.
Findings FindSeveral(const EvaluateTasks& tasks, const JudgeInput& input, const JudgeResult& judged)
{
  const EvaluationOptions& options = tasks.All.front().Options;
  const std::vector<std::string> names = NamesOf(input.List.Structures);
  const std::vector<StructureReport> structures = StructureReports(tasks, judged, names, 0);
  Findings findings{ "", JsonObject(EvaluationJson(structures, options, judged.Raters)), MeanOverStructures(structures) };
  findings.Text = Counted(static_cast<int64_t>(findings.Report.Cases), "case") + ", " +
    Counted(static_cast<int64_t>(names.size()), "structure") + ", each against the rest (" + RegionColumn(options) +
    "), readout " + ReadoutText(options.Calib.readout, options.Calib.at_least) + "\n" +
    (IsDescribed(options) ? std::string(DescribedInWords) + "\n" : "") + StructureRemarks(structures) + "\n" +
    StructureTable(structures) + StructureVolumes(structures);
  if (tasks.Before)
  {
    const std::vector<StructureReport> before = StructureReports(tasks, judged, names, tasks.Before);
    findings.Text += "\nBefore recalibration\n" + StructureTable(before);
    findings.Json.Set("before_recalibration", EvaluationJson(before, options, judged.Raters));
  }
  if (tasks.Versus && IsDescribed(options))
  {
    findings.Json.Set("difference", nullptr);
  }
  else if (tasks.Versus)
  {
    CompareStructures(findings, structures, StructureReports(tasks, judged, names, tasks.Versus), tasks, judged);
  }
  return findings;
}

/// Where several regions were asked for: a row for each, and everything about each for machines.
void AddRegions(Findings& findings, const EvaluateTasks& tasks, const JudgeInput& input, const JudgeResult& judged)
{
  if (tasks.Regions.size() < 2)
  {
    return;
  }
  const std::vector<std::string> names = NamesOf(input.List.Structures);
  MainFigures table("Region");
  JsonObject regions;
  for (size_t r = 0; r < tasks.Regions.size(); ++r)
  {
    const std::string name = rcn_region_name(tasks.Regions[r]);
    const EvaluationOptions& options = tasks.All[tasks.At(0, 0, r)].Options;
    const Evaluation& model = *judged.Evaluations[tasks.At(0, 0, r)];
    const bool several = tasks.Structures.size() > 1, empty = model.CaseIds().empty();
    const std::vector<StructureReport> structures =
      several ? StructureReports(tasks, judged, names, 0, r) : std::vector<StructureReport>();
    const EvaluationReport report = several ? MeanOverStructures(structures) : empty ? EvaluationReport() : model.Report();
    table.Add(name, report, "no case has a voxel there");
    JsonObject json(
      several ? EvaluationJson(structures, options, judged.Raters) : EvaluationJson(report, options, judged.Raters));
    if (tasks.Versus && !several && !empty && IsDescribed(options))
    {
      json.Set("difference", nullptr);
    }
    else if (tasks.Versus && !several && !empty)
    {
      json.Set("difference", DifferenceJson({ model, *judged.Evaluations[tasks.At(0, tasks.Versus, r)] }));
    }
    report.Cases > 0 ? regions.Set(name, json) : regions.Set(name, nullptr);
  }
  findings.Text += "\n" + table.Text();
  const auto isDisputed = [](rcn_region region) { return region == RCN_REGION_DISPUTED; };
  if (std::any_of(tasks.Regions.begin() + 1, tasks.Regions.end(), isDisputed)) // of the first one it is said at the top
  {
    findings.Text += std::string(DescribedInWords) + "\n";
  }
  findings.Json.Set("regions", regions);
}

/// What cannot be asked about several structures at once.
void CheckSeveral(const EvaluateTasks& tasks, const JudgeInput& input, const Arguments& arguments)
{
  for (const char* option : { "--plot", "--plot-levels" })
  {
    if (tasks.Structures.size() > 1 && arguments.Has(option))
    {
      throw Error(RCN_EINVALID, std::string(option) + " draws one structure; choose it with --structure NAME.");
    }
  }
  if (input.List.HasStructures() && tasks.Structures.size() == 1 && arguments.Has("--record"))
  {
    throw Error(RCN_EINVALID, "--record needs all structures; leave out --structure.");
  }
}

int RunEvaluate(const Arguments& arguments)
{
  Terminal terminal(arguments);
  CheckJudgeArguments(arguments);
  EvaluationOptionsFrom(arguments); // wrong options are refused before any work
  JudgeInput input = InputFrom(arguments, terminal);
  if (arguments.Has("--record"))
  {
    input.Loop.Split = "test";
  }
  EvaluateTasks tasks;
  MakeTasks(tasks, input, arguments);
  CheckSeveral(tasks, input, arguments);
  Seconds seconds;
  Stopwatch watch;
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  if (arguments.Has("--record"))
  {
    CheckRecord(input.Predictions.front(), workspace, arguments);
  }
  const JudgeResult judged = JudgeCases(workspace, input, tasks.All);
  const PredictionSource& first = input.Predictions.front();
  seconds.Read = watch.Lap();
  if (const Recalibration* fitted = tasks.Before ? &tasks.Correction : first.Run ? first.Run->Correction.get() : nullptr)
  {
    terminal.Remark(FittedElsewhere(*fitted, tasks.All.front().Options));
  }
  Findings findings =
    tasks.Structures.size() > 1 ? FindSeveral(tasks, input, judged) : FindOne(tasks, input, judged, arguments);
  AddRegions(findings, tasks, input, judged);
  seconds.Compute = watch.Lap();
  WriteCases(findings.Json, tasks, input, judged, arguments);
  Print(arguments, findings.Text);
  if (arguments.Has("--record"))
  {
    StoreRecord(findings.Report, *judged.Evaluations.front(), workspace, terminal, arguments);
  }
  seconds.Write = watch.Lap();
  WriteResults(arguments, findings.Json.Set("left_out", LeftOutJson(judged.LeftOut)).Set("seconds", seconds.Json()));
  return ExitCodeOf(judged.LeftOut);
}

/// Whether the model can take a correction fitted to these predictions. Where nobody knows how the predictions were made,
/// the correction is fitted to the model's own readout, because predict applies it to that one.
void CheckModel(
  EvaluationOptions& options, const Workspace& workspace, const PredictionSource& source, const Arguments& arguments)
{
#ifdef RCN_HAVE_NETWORKS
  const Model model(workspace.Context(), arguments.Get("--model"));
  if (model.Info().Correction && !arguments.Has("--replace"))
  {
    throw Error(RCN_EINVALID,
      model.Path() +
        " already has a correction, which was applied to its predictions; predict with --no-recalibration, and use --replace.");
  }
  if (source.Run && source.Run->Hash != model.Hash())
  {
    throw Error(RCN_EINVALID,
      source.Name + " holds predictions of another model (" + source.Run->Model + ") than " + model.Path() +
        "; predict with the model that the correction is for.");
  }
  if (!source.Run)
  {
    const ModelInfo& info = model.Info();
    ChooseReadout(options, arguments.Get("--readout"), ReadoutText(info.Readout, info.AtLeast), info.TieBackground);
  }
#else
  (void)options;
  (void)workspace;
  (void)source;
  throw Error(RCN_EUNSUPPORTED,
    arguments.Get("--model") + ": this program was built without networks and cannot change a model; use -o.");
#endif
}

/// Into its file, and into the model's, where predict finds it, with what is to be expected of the model now.
void WriteCorrection(const RecalibrationResult& result, const Workspace& workspace, const Arguments& arguments)
{
  if (arguments.Has("-o"))
  {
    WriteRecalibration(arguments.Get("-o"), result.Correction);
  }
#ifdef RCN_HAVE_NETWORKS
  if (arguments.Has("--model"))
  {
    const std::string split = arguments.Has("--data") ? arguments.Get("--split", "validation") : "";
    StoreCorrection(workspace.Context(), arguments.Get("--model"), result, split);
  }
#else
  (void)workspace;
#endif
}

/// What intervals of volumes need without a correction, which the model has also where none helps.
void StoreVolumes(const VolumeScores& volumes, const Workspace& workspace, const Arguments& arguments)
{
#ifdef RCN_HAVE_NETWORKS
  if (arguments.Has("--model") && volumes.UnitCount() > 0)
  {
    SetVolumes(workspace.Context(), arguments.Get("--model"), volumes);
  }
#else
  (void)volumes;
  (void)workspace;
  (void)arguments;
#endif
}

void PrintRecalibration(const RecalibrationResult& result, const EvaluationOptions& options, bool stored, Terminal& terminal,
  const Arguments& arguments)
{
  const std::string next = !stored ? "It was not stored; use --force to store it anyway."
    : arguments.Has("-o") ? "Evaluate it on others: rater-consensus evaluate --recalibration " + arguments.Get("-o") + " ..."
                          : "Evaluate it on others; predict applies it with " + arguments.Get("--model") + ".";
  const bool shown = Print(arguments,
    arguments.Get("--method") + ": " + CorrectionInWords(result.Correction.Correction) + "\nfitted on the region " +
      RegionInWords(options.Region, options.RegionMask) +
      (result.Correction.OneProbability ? ", one probability"
                                        : ", readout " + ReadoutText(options.Calib.readout, options.Calib.at_least)) +
      "\n" + result.Sentence + "\n" + next + "\n");
  if (!shown && !stored)
  {
    terminal.Warn(result.Sentence + " " + next); // what was asked for is not there
  }
  const auto judged = [&](const EvaluationReport& report, const std::vector<StructureReport>& structures) {
    return Json(
      structures.empty() ? EvaluationJson(report, options, result.Raters) : EvaluationJson(structures, options, result.Raters));
  };
  WriteResults(arguments,
    JsonObject{ { "method", arguments.Get("--method") }, { "before", judged(result.Before, result.StructuresBefore) },
      { "after", judged(result.After, result.StructuresAfter) },
      { "leave_one_out", result.Tested ? judged(result.EachLeftOut, result.StructuresEachLeftOut) : Json(nullptr) },
      { "helps", result.Helps }, { "stored", stored }, { "left_out", LeftOutJson(result.LeftOut) } });
}

int RunRecalibrate(const Arguments& arguments)
{
  Terminal terminal(arguments);
  CheckJudgeArguments(arguments);
  if (!arguments.Has("--method") || (!arguments.Has("-o") && !arguments.Has("--model")))
  {
    throw Error(
      RCN_EINVALID, arguments.Has("--method") ? "Give the output with -o or --model." : "Choose a method with --method.");
  }
  if (arguments.Get("--split") == "test" && !arguments.Has("--allow-test-cases"))
  {
    throw Error(RCN_EINVALID,
      "A correction fitted on test cases can no longer be evaluated on them; use --split validation, or give "
      "--allow-test-cases.");
  }
  JudgeInput input = InputFrom(arguments, terminal);
  if (arguments.Has("--data") && !arguments.Has("--split"))
  {
    input.Loop.Split = "validation";
  }
  CheckSplits(input.List);          // or the correction would be judged on those it was fitted to
  EvaluationOptionsFrom(arguments); // wrong options are refused before any work
  if (input.List.HasStructures() && arguments.Has("--structure"))
  {
    throw Error(RCN_EINVALID,
      "A correction of one structure alone would contradict the others; leave out --structure, and one temperature is fitted "
      "to all of them.");
  }
  input.Predictions = { SourceFrom(arguments, "--pred", input.List) };
  const PredictionSource& source = input.Predictions.front();
  EvaluationOptions options = OptionsFor(source, arguments);
  RefuseCorrected(source.Run.get(), source.Name);
  rcn_recalib_method method = RCN_RECALIB_TEMPERATURE;
  Parse(method, arguments.Get("--method"));
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  if (arguments.Has("--model"))
  {
    CheckModel(options, workspace, source, arguments);
  }
  const RecalibrationResult result = Recalibrate(workspace, input, options, method);
  const bool store = result.Helps || arguments.Has("--force");
  const bool isFirst = Processes::All().IsFirst();
  if (store && isFirst)
  {
    WriteCorrection(result, workspace, arguments);
  }
  if (isFirst)
  {
    StoreVolumes(result.Volumes, workspace, arguments);
  }
  if (arguments.Has("--plot") && isFirst)
  {
    ReliabilityDiagram(result.After, "Recalibrated (on the cases it was fitted to)", &result.Before)
      .Save(arguments.Get("--plot"));
  }
  PrintRecalibration(result, options, store, terminal, arguments);
  return store ? ExitCodeOf(result.LeftOut) : FailedWhileWorking;
}

} // namespace

Command EvaluateCommand()
{
  return { "evaluate", "measure calibration and discrimination of predictions",
    { "--prob FILE --rater NAME=FILE ... [--plot OUT.svg]",
      "--data LIST --pred DIR [--versus DIR] [--plot OUT.svg] [--csv FILE]",
      "--data LIST --split test --pred DIR --record MODEL" },
    "Compares predicted probabilities with all raters: MR-ECE (the mean difference between the probability and the share of "
    "raters who mark the voxel), ECE, Brier score, likelihood, AUC, Dice, and how well the number of raters who mark a voxel "
    "is "
    "predicted (RPS, level NLL, level calibration), with a reliability diagram and 95 % intervals over patients (where the "
    "list names them, otherwise over cases; at least five). --versus compares two folders of predictions case by case and "
    "draws both in the diagram.",
    Join(
      Join(JudgeOptions(true),
        { { "--recalibration", "FILE", "apply a correction made by recalibrate first", {}, false, FileUse::Read },
          { "--allow-fitted-cases", "", "evaluate a correction on the cases it was fitted to" },
          { "--versus", "DIR", "with --data: another folder of predictions to compare with", {}, false, FileUse::Read },
          { "--record", "MODEL",
            "store the figures of the test cases of --data in the model that made the predictions; report and the viewer show "
            "them",
            {}, false, FileUse::Read },
          { "--plot", "FILE", "reliability diagram, .svg or .png", {}, false, FileUse::Written },
          { "--plot-levels", "FILE",
            "a reliability diagram for each number of raters (at least 1, at least 2, ...), .svg or .png", {}, false,
            FileUse::Written },
          { "--csv", "FILE", "a row for each case, model and region: figures, volumes, patient; - is standard output", {},
            false, FileUse::Written } }),
      Join(CaseOptions(), OutputOptions())),
    RunEvaluate };
}

Command RecalibrateCommand()
{
  return { "recalibrate", "fit a correction of the probabilities",
    { "--method METHOD --data LIST --pred DIR -o FILE.json", "--method METHOD --data LIST --pred DIR --model MODEL",
      "--method METHOD --prob FILE --rater NAME=FILE ... -o FILE.json" },
    "Fits a correction against all raters on held-out cases (the validation split, unless --split names another), on the "
    "region and with the readout that evaluate uses. temperature: one number, on the level probabilities, so that all readouts "
    "stay consistent. platt, beta: two or three numbers on the log-odds. isotonic: the best rising step function. Apply it "
    "with evaluate --recalibration, or store it in the model with --model. A correction is stored only if it helps when each "
    "case is corrected by a fit to the others.",
    Join(Join({ { "--method", "METHOD", "kind of correction", ChoiceNames(Corrections()) },
                { "-o", "FILE", "file of the correction (JSON)", {}, false, FileUse::Written },
                { "--model", "FILE", "model that made the predictions; the correction is stored in it, and predict applies it",
                  {}, false, FileUse::Read },
                { "--replace", "", "with --model: replace the correction that it has" },
                { "--force", "", "store the correction even if it does not help" } },
           JudgeOptions(false)),
      Join({ { "--allow-test-cases", "", "allow fitting on the test split" },
             { "--plot", "FILE", "reliability diagram before and after, .svg or .png", {}, false, FileUse::Written } },
        Join(CaseOptions(), OutputOptions()))),
    RunRecalibrate };
}

} // namespace rcn
