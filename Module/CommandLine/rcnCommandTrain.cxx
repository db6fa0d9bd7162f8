// SPDX-License-Identifier: Apache-2.0
/// rater-consensus train: from a data list to a model.
#include <cmath>
#include <cstdio>
#include <sstream>

#include "rcnCommands.h"
#include "rcnProcesses.h"
#include "rcnTraining.h"
#include "rcnWayOut.h"

namespace rcn
{

namespace
{

/// "128", "128x96", "96x96x48"
void ReadSizes(double* out, const Arguments& arguments, const std::string& option, bool whole)
{
  const std::string text = arguments.Get(option);
  std::istringstream words(text);
  std::string word;
  int count = 0;
  while (count < 3 && std::getline(words, word, 'x'))
  {
    char* end = nullptr;
    out[count] = std::strtod(word.c_str(), &end);
    if (word.empty() || *end || !(out[count] > 0) || !(out[count] <= 1 << 20) ||
      (whole && out[count] != std::floor(out[count])))
    {
      count = 4;
    }
    ++count;
  }
  if (count == 0 || count > 3 || !words.eof())
  {
    throw Error(RCN_EINVALID,
      option + " must be " + (whole ? "a size in voxels such as 128x128 or 96x96x48" : "a spacing in mm such as 1x1x2.5") +
        ", not '" + text + "'.");
  }
  // One number is for both axes of a slice; the third axis is left as it is.
  if (count == 1)
  {
    out[1] = out[0];
  }
}

/// "window" or "window:40,400": a rule, and its two numbers where it has some. The mean and deviation of "fixed" come from the
/// training images, so it has none here and is checked later.
rcn_normalize NormalizationFrom(const std::string& text)
{
  rcn_normalize rule = RCN_NORMALIZE_INIT;
  const std::string name = text.substr(0, text.find(':'));
  double first = 0, second = 0;
  char rest = 0;
  const bool numbers = name != text;
  const bool good = !numbers || std::sscanf(text.c_str() + name.size(), ":%lf,%lf%c", &first, &second, &rest) == 2;
  if (name == "zscore" && !numbers)
  {
    rule.kind = RCN_NORMALIZE_ZSCORE;
  }
  else if (name == "fixed" && !numbers)
  {
    rule.kind = RCN_NORMALIZE_FIXED;
  }
  else if (name == "percentile" && good)
  {
    rule.kind = RCN_NORMALIZE_PERCENTILE;
    rule.lower = numbers ? first : rule.lower;
    rule.upper = numbers ? second : rule.upper;
  }
  else if (name == "window" && good)
  {
    rule.kind = RCN_NORMALIZE_WINDOW;
    rule.center = numbers ? first : rule.center;
    rule.width = numbers ? second : rule.width;
  }
  else
  {
    throw Error(RCN_EINVALID,
      "--normalize must be zscore, fixed, percentile, percentile:LOW,HIGH, window or window:CENTER,WIDTH, not '" + text + "'.");
  }
  const char* sentence = rule.kind == RCN_NORMALIZE_FIXED ? nullptr : rcn_normalize_check(&rule);
  if (sentence)
  {
    throw Error(RCN_EINVALID, "--normalize " + text + ": " + sentence);
  }
  return rule;
}

/// Each set contains the one before: nothing, flips and turns, the default, and more of all.
rcn_augment AugmentFrom(const std::string& name)
{
  rcn_augment augment = RCN_AUGMENT_NONE;
  if (name != "none")
  {
    augment.flips = augment.turns = 1;
  }
  if (name == "mild")
  {
    augment = RCN_AUGMENT_INIT;
  }
  if (name == "strong")
  {
    augment = { 1, 1, 0.5, 30, 0.3, 0.1, 0, 2, 0.4, 0.2, 0.25, 0.1, 1 };
  }
  return augment;
}

/// One line for a person who watches; the log has all columns. The star marks the best so far.
std::string EpochLine(const TrainingEpoch& epoch, int epochs)
{
  const std::string about = epoch.Epoch
    ? "Epoch " + std::to_string(epoch.Epoch) + "/" + std::to_string(epochs) + ": loss " + Fixed(epoch.Loss, 4)
    : "Before training";
  return about +
    (std::isfinite(epoch.Rps) ? std::string(", validation ") + (epoch.IsBrier ? "Brier " : "RPS ") + Fixed(epoch.Rps, 5) +
          ", MR-ECE " + Fixed(100 * epoch.MajorityMrEce, 2) + " % (majority) " + Fixed(100 * epoch.ExpectedMrEce, 2) +
          " % (expected), AUC " + Fixed(epoch.Auc, 4) + ", Dice " + Fixed(epoch.Dice, 3)
                              : "") +
    "; " + Fixed(epoch.Seconds, 0) + " s, " + Fixed(epoch.Megabytes, 0) + " MB" +
    (epoch.Best && std::isfinite(epoch.Rps) ? "  *" : ""); // nothing says that it is the best without validation
}

/// Of one structure, and of several.
std::vector<std::string> StrategyNames()
{
  std::vector<std::string> names = ChoiceNames(Strategies());
  for (const std::string& name : ChoiceNames(StructureStrategies()))
  {
    if (!FindChoice(Strategies(), name))
    {
      names.push_back(name);
    }
  }
  return names;
}

/// What to do when training ended too early; empty when it did not.
std::string LongerInWords(const TrainingResult& result, const TrainingOptions& options)
{
  if (!result.StillImproving)
  {
    return "";
  }
  if (result.TooShort)
  {
    return "Too short to tell whether a longer training is better: it took " + Counted(result.Steps, "step") +
      ", and without --epochs and --minutes it takes up to " + std::to_string(result.UsualSteps) + "\n";
  }
  // Twice as long, in the terms that the person used.
  const double minutes = options.Minutes > 0 ? options.Minutes : result.Epochs.back().Seconds / 60;
  return "Validation was still improving; train longer, for example " +
    (options.Epochs > 0 && options.Minutes == 0 ? "--epochs " + std::to_string(2 * options.Epochs)
                                                : "--minutes " + Fixed(std::ceil(2 * minutes), 0)) +
    "\n";
}

/// Below the table of a model with a temperature.
const char* const LeftOutNote =
  "Calibration with each case left out of the fit of the temperature; AUC and Dice as the model is "
  "applied.\n";

std::string Summary(const TrainingResult& result, const TrainingOptions& options)
{
  std::string text = "Trained on " + Counted(static_cast<int64_t>(result.TrainingCases.size()), "case") +
    (result.KeptStart                    ? "; no epoch was better than the model that training started from"
        : result.ValidationCases.empty() ? "; the last epoch was kept"
                                         : "; best after epoch " + std::to_string(result.Best)) +
    "\n";
  if (result.After.Cases > 0)
  {
    Table table({ "Validation, box around all marks", "MR-ECE (%)", "95 % interval", "Brier", "AUC", "Dice, mean" });
    const auto row = [&table](const std::string& name, const EvaluationReport& report) {
      const rcn_interval& interval = report.Interval[RCN_MR_ECE];
      table.Add({ name, Fixed(100 * report.Figures[RCN_MR_ECE], 2), FromTo(100 * interval.low, 100 * interval.high, 2),
        Fixed(report.Figures[RCN_BRIER], 4), Fixed(report.Auc.reference, 4), Fixed(report.Figures[RCN_DICE], 3) });
    };
    const auto add = [&row](const std::string& name, const EvaluationReport& report,
                       const std::vector<StructureReport>& structures) {
      for (const StructureReport& one : structures)
      {
        if (one.Report.Cases > 0)
        {
          row(one.Name + ", " + name, one.Report);
        }
      }
      row((structures.empty() ? "" : "mean over structures, ") + name, report);
    };
    if (result.HasBefore)
    {
      add("before", result.Before, result.StructuresBefore);
    }
    add((result.KeptStart      ? "after (unchanged, readout "
            : result.HasBefore ? "after (readout "
                               : "model (readout ") +
        result.Readout + ")",
      result.After, result.StructuresAfter);
    text += table.Text() + (result.After.EachLeftOut ? LeftOutNote : "") + WorstBinInWords(result.After) + "\n";
  }
  return text + LongerInWords(result, options) + (result.KeptStart ? "Unchanged: " : "Written: ") + result.Model +
    (result.KeptStart ? " (the model that training started from); written: " : " (the model), ") + result.Log +
    " (each epoch)\n";
}

int RunTrain(const Arguments& arguments)
{
  Terminal terminal(arguments);
  if (!arguments.Has("--data"))
  {
    throw Error(RCN_EINVALID, "Give the training cases with --data LIST.");
  }
  if (!IsModelName(arguments.Get("-o")))
  {
    throw Error(RCN_EINVALID, "Give the file for the model with -o MODEL.safetensors.");
  }
  CheckTextOutputs(arguments);
  const std::string figure = arguments.Get("--figure");
  if (!figure.empty() && !Figure::CheckPath(figure).empty())
  {
    throw Error(RCN_EIO, "--figure " + Figure::CheckPath(figure));
  }
  // All that can be wrong with the arguments has been said before the first case is read.
  TrainingOptions options = TrainingOptionsFrom(arguments);
  options.List = DataListFrom(arguments);
  terminal.Remark(LeaveOutUnrated(options.List));
  options.Output = arguments.Get("-o");
  options.Resume = arguments.Has("--resume");
  options.Overwrite = arguments.Has("--overwrite");
  options.Remark = [&terminal](const std::string& sentence) { terminal.Remark(sentence); };
  options.Warn = [&terminal](const std::string& sentence) { terminal.Warn(sentence); };
  int epochs = 0; // as many as progress says
  options.EpochDone = [&](const TrainingEpoch& epoch) { terminal.Remark(EpochLine(epoch, epochs)); };
  bool slicesSaid = false;
  options.Progress = [&](const TrainingProgress& progress) {
    epochs = progress.Epochs;
    if (progress.Course.Slices && !slicesSaid)
    {
      terminal.Remark("The cases are volumes, and the network learns from their slices. " + WayOut("slices"));
      slicesSaid = true;
    }
    // After some steps it is known how long one takes, and how far the time will go.
    if (progress.JustMeasured)
    {
      terminal.Remark(CourseInWords(progress.Course));
    }
    const std::string left = progress.SecondsLeft >= 0 ? ", " + DurationText(progress.SecondsLeft) + " left" : "";
    const std::string stage = progress.Epoch ? std::string(progress.Stage) + ", epoch " + std::to_string(progress.Epoch) + "/" +
        std::to_string(progress.Epochs) + ", loss " + Fixed(progress.Loss, 4) + left
                                             : progress.Stage;
    return terminal.Show(progress.Fraction, stage.c_str());
  };
  const TrainingResult result = TrainModel(options);
  WriteResults(arguments, TrainingJson(result));
  Processes::All().WaitForAll();
  // An error for scripts, so that a training that was stopped is not taken for one that is done.
  if (result.Interrupted)
  {
    throw Error(RCN_ECANCELLED,
      "Stopped after step " + std::to_string(result.Steps) + "; the same command with --resume continues from " +
        result.Checkpoint + ".");
  }
  if (Processes::All().IsFirst() && !figure.empty() && result.After.Cases > 0)
  {
    ReliabilityDiagram(result.After, "Validation cases after training", result.HasBefore ? &result.Before : nullptr)
      .Save(figure);
  }
  Print(arguments, Summary(result, options));
  return Done;
}

/// Going on from a model in its own place is a way to train; anything else that is read stays.
std::vector<NamedFile> TrainOutputs(const Arguments& arguments, const DataList&)
{
  std::vector<NamedFile> files;
  for (const std::string& path : TrainingFiles(arguments.Get("-o")))
  {
    files.push_back({ "-o", path, path == arguments.Get("-o") ? "--init" : "" });
  }
  return files;
}

} // namespace

// For train and study, which has the same options. Defaults are those of TrainingOptions where an option has no other here.
TrainingOptions TrainingOptionsFrom(const Arguments& arguments)
{
  TrainingOptions options;
  double sizes[3] = { 0, 0, 0 };
  options.Workspace = WorkspaceOptionsFrom(arguments);
  options.SkipBad = arguments.Has("--skip-bad");
  options.Folds = static_cast<int>(arguments.GetInteger("--folds", 0, 2, 1000));
  options.Fold = static_cast<int>(arguments.GetInteger("--fold", 0, 0, 999));
  options.Split = arguments.Has("--split");
  options.ValidationShare = arguments.GetNumber("--split", options.ValidationShare);
  if (arguments.Has("--rehearse"))
  {
    options.Rehearse = DataListFrom(arguments, "--rehearse");
  }
  options.CacheGb = arguments.GetNumber("--cache-gb", 0);
  options.Strategy = arguments.Get("--strategy");
  // Whether it was asked for, because a model that is continued has its own.
  options.HasNet = arguments.Has("--arch");
  Parse(options.Net.arch, arguments.Get("--arch", "unet"));
  options.Net.width = static_cast<int>(arguments.GetInteger("--width", options.Net.width, 8, 512));
  options.Net.depth = static_cast<int>(arguments.GetInteger("--depth", options.Net.depth, 1, 6));
  options.Net.norm = arguments.Get("--norm", "batch") == "instance" ? RCN_NORM_INSTANCE : RCN_NORM_BATCH;
  options.LocalNorms = arguments.Get("--batch-norm", "global") == "local";
  options.Net.dropout = arguments.GetNumber("--dropout", options.Net.dropout);
  options.Init = arguments.Get("--init");
  options.OtherRaters = arguments.Has("--other-raters");
  options.FreezeEncoder = arguments.Has("--freeze");
  options.HasNormalization = arguments.Has("--normalize");
  options.Normalization = NormalizationFrom(arguments.Get("--normalize", "zscore"));
  if (arguments.Has("--spacing"))
  {
    ReadSizes(options.Spacing, arguments, "--spacing", false);
  }
  options.Readout = arguments.Get("--readout", options.Readout);
  options.Alpha = arguments.GetNumber("--alpha", options.Alpha);
  options.BceWeight = arguments.GetNumber("--bce-weight", options.BceWeight);
  options.ExpectedWeight = arguments.GetNumber("--expected-weight", options.ExpectedWeight);
  options.RpsWeight = arguments.GetNumber("--rps-weight", options.RpsWeight);
  options.Recalibrate = !arguments.Has("--no-recalibration");
  options.Average = arguments.GetNumber("--average", options.Average);
  options.UnimodalWeight = arguments.GetNumber("--unimodal-weight", options.UnimodalWeight);
  options.TieBackground = arguments.Get("--tie") == "background";
  options.Sigma = arguments.GetNumber("--sigma", options.Sigma);
  options.Epochs = static_cast<int>(arguments.GetInteger("--epochs", options.Epochs, 1, 1000000));
  options.Minutes = arguments.GetNumber("--minutes", 0);
  options.Batch = static_cast<int>(arguments.GetInteger("--batch", 0, 1, 65536));
  options.Samples = static_cast<int>(arguments.GetInteger("--samples", 0, 1, 1 << 20));
  const std::string schedule = arguments.Get("--schedule", "one-cycle");
  options.Schedule = schedule == "cosine" ? RCN_SCHEDULE_COSINE
    : schedule == "constant"              ? RCN_SCHEDULE_CONSTANT
                                          : RCN_SCHEDULE_ONE_CYCLE;
  options.Rate = arguments.GetNumber("--rate", options.Rate);
  // One-cycle is a warm-up by itself; the others need only a short one.
  options.Warmup = arguments.GetNumber("--warmup", schedule == "one-cycle" ? options.Warmup : 0.05);
  options.WeightDecay = arguments.GetNumber("--weight-decay", 0);
  options.ClipNorm = arguments.GetNumber("--clip", 0);
  options.Patience = static_cast<int>(arguments.GetInteger("--patience", options.Patience, 0, 1000000));
  options.Seed = static_cast<uint64_t>(arguments.GetInteger("--seed", 0, 0, 1LL << 53));
  if (arguments.Has("--patch"))
  {
    ReadSizes(sizes, arguments, "--patch", true);
    for (int a = 0; a < 3; ++a)
    {
      options.Patch[a] = static_cast<int64_t>(sizes[a]);
    }
  }
  options.Foreground = arguments.GetNumber("--foreground", options.Foreground);
  options.Augment = AugmentFrom(arguments.Get("--augment", "mild"));
  options.CheckpointSeconds = arguments.GetNumber("--checkpoint-seconds", options.CheckpointSeconds);
  if (arguments.Has("--fold") && options.Folds < 2)
  {
    throw Error(RCN_EINVALID, "--fold is the validation fold of --folds N; give both.");
  }
  return options;
}

std::vector<Option> TrainingOptionTable()
{
  return {
    { "--epochs", "N",
      "show every case N times (chosen from the data: 40 times, at least 2500 steps, 1000 in 3-D, and at most 10000)" },
    { "--minutes", "M", "train for M minutes; the learning rate falls with the time. With --epochs: whichever ends first" },
    { "--arch", "NET", "network (unet, or that of --init)", ChoiceNames(Networks()) },
    { "--width", "N", "unet: channels of the first level (16)" },
    { "--depth", "N", "unet: how often the resolution is halved (4)" },
    { "--norm", "KIND", "unet: kind of normalization layers (batch)", { "batch", "instance" } },
    { "--dropout", "P", "fpn: share of feature maps left out (0.2)" },
    { "--init", "FILE",
      "start from the weights of a ResNet (fpn), or continue from a model: validation is shown before and after, and if no "
      "epoch is better, the new file is a copy of the model. -o may name the same file",
      {}, false, FileUse::Read },
    { "--other-raters", "", "with --init: accept a model that was trained on raters with other names" },
    { "--freeze", "PART", "do not change this part of the network", { "encoder" } },
    { "--rehearse", "LIST", "mix in as many cases of an old list, so that the model does not forget them", {}, false,
      FileUse::ReadList },
    { "--alpha", "A", "rps: weight of the ranked probability score (0.8)" },
    { "--bce-weight", "W", "rps: weight of the cross-entropy with the majority (1)" },
    { "--expected-weight", "W", "levels: weight of the cross-entropy of the expected share with the share of raters (0)" },
    { "--rps-weight", "W",
      "likelihoods of the levels: weight of the ranked probability score added to them (ordinal, "
      "beta-binomial-voxel and dirichlet-multinomial: 5, otherwise 0)" },
    { "--no-recalibration", "", "do not fit a temperature to the validation cases at the end" },
    { "--average", "SHARE",
      "also average the weights over this share of the steps; the better of the two in validation is kept (0)" },
    { "--unimodal-weight", "W", "levels: weight of the penalty on distributions with more than one peak (0)" },
    { "--tie", "RULE", "result where exactly half of the raters marked (foreground)", { "foreground", "background" } },
    { "--sigma", "VOXELS", "soft-gaussian, svls: standard deviation of the Gaussian (1)" },
    { "--rate", "R", "highest learning rate (0.001)" },
    { "--schedule", "KIND", "schedule of the learning rate (one-cycle)", { "one-cycle", "cosine", "constant" } },
    { "--warmup", "SHARE", "share of the steps in which the learning rate rises (0.3 with one-cycle, otherwise 0.05)" },
    { "--weight-decay", "W", "weight decay; above 0, AdamW is used instead of Adam (0)" },
    { "--clip", "NORM", "norm to which gradients are clipped (no clipping)" },
    { "--patience", "N",
      "stop after N epochs without a better validation RPS; 0: never (a third of the epochs, at least 10; never with --epochs "
      "or --minutes)" },
    { "--batch", "N",
      "samples in a step; with mpirun, of each process (about 262144 voxels, 2 to 16 samples, of all processes together; fewer "
      "on small data sets, so that showing every case once takes 50 steps)" },
    { "--batch-norm", "SCOPE",
      "with mpirun: batch normalization over the samples of all processes, or of each process alone (global)",
      { "global", "local" } },
    { "--patch", "SIZE",
      "size of a sample in voxels, 128x128 or 96x96x48 (whole images up to 256x256, otherwise patches of 256x256 or "
      "96x96x64)" },
    { "--samples", "N",
      "samples of each case in an epoch (as many as cover it, at most 16; without --epochs as many as make 50 steps)" },
    { "--foreground", "SHARE", "share of patches around a marked voxel (0.5)" },
    { "--augment", "SET", "augmentation of the samples (mild)", { "none", "flips", "mild", "strong" } },
    { "--normalize", "RULE",
      "normalization of intensities: zscore, fixed (mean and standard deviation of the training images), "
      "percentile[:LOW,HIGH], window[:CENTER,WIDTH] (zscore, or that of --init)" },
    { "--spacing", "MM", "unet3d: spacing to which volumes are resampled, such as 1x1x2.5 (median of the training cases)" },
    { "--readout", "WHICH", "readout stored in the model; auto: the better calibrated one in validation (expected)",
      { "auto", "majority", "expected" } },
    { "--folds", "N", "divide the training and validation cases into N folds, by patient" },
    { "--fold", "K", "with --folds: the validation fold (0)" },
    { "--split", "SHARE",
      "make a new split with this share of the cases for validation, by patient (0.15 if the list has no validation cases)" },
    { "--skip-bad", "", "leave out cases that cannot be read" },
    { "--cache-gb", "GB",
      "memory for cases, with mpirun in each process; what does not fit is read again, and one case is always kept (no "
      "limit)" },
    { "--seed", "N", "random seed (0)" },
    { "--checkpoint-seconds", "S",
      "seconds between checkpoints at the ends of epochs; within an epoch, ten times as many (30)" },
    ResampleOption(),
    UnansweredOption(),
  };
}

Command TrainCommand()
{
  return { "train", "train a network, or continue from a model",
    { "--data LIST -o MODEL.safetensors [--strategy ordinal] [--arch unet] [--minutes 20]",
      "--data LIST -o MODEL.safetensors ... --resume",
      "--data NEW -o MODEL.safetensors --init OLD.safetensors [--minutes 2] [--rehearse OLD-LIST]" },
    "Trains a network on the masks of several raters. ordinal learns how many of them mark a voxel (the level); rps does so "
    "with the loss of the paper. random to svls learn one map fused from the masks; the other strategies are alternatives to "
    "ordinal. Several structures of a list are learned by one network: dirichlet-multinomial (their default) learns how many "
    "raters give each label, soft their shares, median the label that most raters gave, and rps the levels of each structure "
    "by itself. The model with the lowest validation RPS is kept, with a log of all epochs and a checkpoint. Ctrl-C finishes "
    "the step and saves; --resume continues, with the same result as without the stop.",
    Join(
      Join(
        { { "--data", "LIST", "data list (JSON) with training, validation and test cases", {}, false, FileUse::ReadList },
          StructureOption(),
          { "-o", "MODEL", "file of the model, MODEL.safetensors; also written: MODEL.log.csv, MODEL.checkpoint.safetensors" },
          { "--strategy", "NAME", "what is learned (ordinal, or that of --init; for several structures dirichlet-multinomial)",
            StrategyNames() },
          { "--resume", "", "continue from the checkpoint" },
          { "--overwrite", "", "replace an existing model, checkpoint and log" },
          { "--figure", "FILE", "reliability diagram of the validation cases (.svg, .png); with --init before and after", {},
            false, FileUse::Written } },
        TrainingOptionTable()),
      OutputOptions()),
    RunTrain, TrainOutputs };
}

} // namespace rcn
