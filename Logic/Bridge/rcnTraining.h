// SPDX-License-Identifier: Apache-2.0
/// Training: from cases to a model file, in one call that every shell uses. The cases may be files or in memory
/// (rcnDataList.h).
///
/// Beside MODEL.safetensors (the best model so far, by validation RPS) lie MODEL.checkpoint.safetensors
/// (where training stands; resuming from it leads to the same bits as never having stopped) and
/// MODEL.log.csv (one row per epoch). All three are written beside and renamed.
///
/// Several processes (rcnProcesses.h) train one model together: each reads its share of the cases, makes its share of every
/// step's samples and validates its share; the first one writes. The course is that of one process up to rounding.
#ifndef rcnTraining_h
#define rcnTraining_h

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rcn/rcn_data.h"
#include "rcn/rcn_net.h"
#include "rcn/rcn_normalize.h"
#include "rcn/rcn_optim.h"
#include "rcnEvaluation.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// What one epoch came to. Figures are NaN where they are not defined.
struct TrainingEpoch
{
  int Epoch = 0;   ///< 1, 2, ...; 0: the model that training started from
  double Rate = 0; ///< of the last step
  double Loss = 0; ///< mean over the epoch's steps
  double Rps = 0;  ///< of the validation cases, whole images; decides which model is the best. A model of one
                   ///< probability is judged through the binomial distribution of K raters. Of several structures this and
                   ///< what follows are means over them
  double MajorityMrEce = 0, ExpectedMrEce = 0; ///< box around all marks and 20 voxels
  double Auc = 0, Dice = 0;                    ///< majority readout, the same box
  double Seconds = 0;                          ///< since training began, breaks left out
  double Megabytes = 0;                        ///< most memory that the process ever had
  bool Best = false;
  bool Averaged = false; ///< figures are those of the averaged weights, which were better
  bool IsBrier = false;  ///< Rps is the Brier score of the expected share, against the raters who answered: too few voxels
                         ///< were answered by all of them
};

/// What a training will do: known before its first step (PlanTraining()), but for what is measured.
struct TrainingCourse
{
  int64_t Training = 0, Validation = 0; ///< cases that learn, and that validate
  int64_t Old = 0;                      ///< cases of another list, of which as many as new ones are mixed in
  int64_t Batch = 0;                    ///< samples in a step; 0: the images are not known yet, and so is what follows
  int64_t EpochSteps = 0;
  int64_t Samples = 0;         ///< of each case in an epoch
  int64_t CoveringSamples = 0; ///< of a case, with which it is seen once
  int64_t Epochs = 0;          ///< at most; 0: as many as the time allows
  double Minutes = 0;          ///< at most; 0: as many as it takes
  bool MayEndEarlier = false;  ///< when validation stops improving
  bool Slices = false;         ///< the cases are volumes, and a network of slices was not asked for

  // ---- measured in the first steps; 0 before
  int64_t Steps = 0;  ///< in all
  double Seconds = 0; ///< that they take

  /// How often every case is seen in all of these steps.
  double Passes() const;
};

/// "9 cases for training, 3 for validation; an epoch has 50 steps of 4 samples, and training takes 2 min." Measured: "About
/// 430 steps in 2 min, 9 epochs: every case is seen 36 times." Empty without cases.
std::string CourseInWords(const TrainingCourse& course);

/// Where training stands, for people who wait.
struct TrainingProgress
{
  const char* Stage = ""; ///< "reading", "training", "validating", ...
  double Fraction = 0;    ///< of the whole training
  int Epoch = 0, Epochs = 0;
  double Loss = 0;        ///< mean of this epoch so far
  double SecondsLeft = 0; ///< NaN while not known
  TrainingCourse Course;
  bool JustMeasured = false; ///< the course's steps and seconds are known since this call: told once, as they do not change
};

struct TrainingOptions
{
  // ---- data
  DataList List;                 ///< cases in files or in memory
  bool SkipBad = false;          ///< go on without cases that cannot be read (each is named by Warn)
  int Folds = 0, Fold = 0;       ///< N > 1: fold 0 ... N-1 of training and validation cases validates
  double ValidationShare = 0.15; ///< taken from training, by patient, where the list has no validation cases
  bool Split = false;            ///< make that split anew also where the list has validation cases
  DataList Rehearse;             ///< old cases; as many of them as new ones in each epoch. Without cases: none
  double CacheGb = 0;            ///< each process keeps at most so much of its cases in memory (but always the one in
                                 ///< use) and reads again; 0: everything
  WorkspaceOptions Workspace;    ///< threads, resampling of masks, ...

  // ---- model
  std::string Output;                         ///< MODEL.safetensors
  std::string Strategy;                       ///< a name of Strategies(); empty: as Init, otherwise the first
  bool HasNet = false;                        ///< false: the network of Init, if that is a whole model
  rcn_net_options Net = RCN_NET_OPTIONS_INIT; ///< channels, outputs and spacing are found out
  std::string Init;                           ///< a ResNet's weights (FPN), or a model to go on from
  bool OtherRaters = false;                   ///< allow Init to have learned from raters of other names
  bool FreezeEncoder = false;
  bool HasNormalization = false;                    ///< false: z-score, or what Init was trained with
  rcn_normalize Normalization = RCN_NORMALIZE_INIT; ///< fixed with channels = 0: measured on the training cases
  double Spacing[3] = { 0, 0, 0 };                  ///< unet3d: mm; 0: the median of the training cases
  std::string Readout = "expected"; ///< stored in the model: majority, expected, or auto: the better one in validation

  // ---- loss
  double Alpha = 0.8;
  double BceWeight = 1;
  double ExpectedWeight = 0;
  double UnimodalWeight = 0;
  double RpsWeight = std::numeric_limits<double>::quiet_NaN(); ///< of the RPS beside a likelihood; NaN: that of the strategy
  bool TieBackground = false;
  double Sigma = 1; ///< soft-gaussian, svls

  // ---- course
  int Epochs = 0;          ///< how often every case is seen. 0: chosen from the data, or as many as the time allows; an epoch
                           ///< then has at least 50 steps, on small sets by taking more samples of each case
  double Minutes = 0;      ///< > 0: the rate falls with the time and training ends when it is up
  int Batch = 0;           ///< samples in a step, of each process; 0: about 262144 voxels, 2 to 16 samples in all, fewer where
                           ///< seeing every case once would take fewer than 50 steps
  bool LocalNorms = false; ///< several processes: batch norms over each one's samples, not over all of a step
  int Samples = 0;         ///< per case and epoch; 0: as many patches as cover a case, at most 16
  rcn_schedule_kind Schedule = RCN_SCHEDULE_ONE_CYCLE;
  double Rate = 1e-3;
  double Warmup = 0.3; ///< share of the steps
  double WeightDecay = 0;
  double ClipNorm = 0;
  double Average = 0;      ///< > 0: weights averaged over this share of the steps compete with the last ones
  bool Recalibrate = true; ///< at the end, fit a temperature to the validation cases; kept where it helps on cases left out
  int Patience = -1;       ///< stop after so many epochs without a better validation RPS; 0: never; -1: never, but where the
                           ///< number of epochs is chosen from the data a third of them, not before half of the course
  uint64_t Seed = 0;

  // ---- samples
  int64_t Patch[3] = { 0, 0, 0 }; ///< voxels; 0: whole images where they are small and alike, otherwise patches
  double Foreground = 0.5;        ///< share of patches around a voxel that somebody marked
  rcn_augment Augment = RCN_AUGMENT_INIT;

  // ---- judging before and after
  rcn_region Region = RCN_REGION_BOX;
  int Bins = 15;

  // ---- going on
  bool Resume = false;
  bool Overwrite = false;        ///< replace a model, checkpoint or log that is there; Resume and Init = Output do so too
  double CheckpointSeconds = 30; ///< at the end of an epoch when the last one is older; within an epoch ten times as old

  // ---- listeners, on the calling thread
  std::function<bool(const TrainingProgress&)> Progress; ///< true: finish the step, save and return
  std::function<void(const TrainingEpoch&)> EpochDone;
  std::function<void(const std::string&)> Remark; ///< a sentence that a person should see
  std::function<void(const std::string&)>
    Warn; ///< one that a person must see: a case was left out, a correction dropped; empty: Remark
};

struct TrainingResult
{
  bool Interrupted = false; ///< Progress asked to stop; Resume goes on
  std::string Model, Checkpoint, Log;
  std::vector<TrainingEpoch> Epochs; ///< [0] is the starting model when there was one
  int Best = 0;                      ///< Epoch of the best model
  bool KeptStart = false;            ///< no epoch was better than the model Init, which Model is, byte for byte
  bool StillImproving = false;       ///< by validation, when training ended, as far as one can tell
  bool TooShort = false;             ///< one cannot tell: the best epoch is the last of few, or of few steps
  int64_t UsualSteps = 0;            ///< that training would take if nobody chose
  bool DroppedCorrection = false;    ///< that of Init, which was fitted to other weights
  double Temperature = 0;            ///< stored in the model; 0: none
  std::string TemperatureInWords;    ///< a sentence: that it is stored, or why there is none; empty where nobody asked for one
  int VolumeCases = 0;               ///< validation cases (or patients) behind the model's intervals of volumes
  double CacheBytes = 0;             ///< most that the cases of this process took in memory at once
  std::string Readout;               ///< stored in the model
  std::vector<std::string> Raters;
  std::vector<std::string> TrainingCases, ValidationCases;
  std::vector<LeftOutCase> LeftOut;
  int64_t Steps = 0;
  double SecondsReading = 0, SecondsDrawing = 0, SecondsStepping = 0, SecondsValidating = 0;
  double SecondsWaiting = 0; ///< of the steps: for other processes

  /// The best model on the validation cases as it will be applied: by its stored readout, and with a temperature calibration
  /// of each case by the one fitted to all others (EvaluationReport::EachLeftOut; AUC and Dice as applied). And, where training
  /// went on from a model, that one on the same cases as it was applied: by its own readout and correction, which, where it was
  /// fitted to some of these very cases, is taken in the same way: each case by a fit to all others. Of no cases where the
  /// region has no voxels in any of them.
  EvaluationOptions Judged;
  EvaluationReport After;
  bool HasBefore = false;
  EvaluationOptions JudgedBefore;
  EvaluationReport Before;
  /// Of several structures each, where After and Before are the means over them; otherwise empty.
  std::vector<StructureReport> StructuresAfter, StructuresBefore;
};

/// The sentence TrainModel() would fail with because of the options alone; empty when they look fine.
std::string CheckTraining(const TrainingOptions& options);

/// The course that TrainModel() would take, from the list and the headers of its images: no voxel is read. Where a header
/// cannot be read, only the cases are counted. Throws Error as TrainModel() would.
TrainingCourse PlanTraining(const TrainingOptions& options);

/// Whether a model can have this file name: it ends with .safetensors.
bool IsModelName(const std::string& path);

/// What a training writes: the model, where it stands, and its log.
std::vector<std::string> TrainingFiles(const std::string& model);

/// The first of them that is there already, which a new training must not replace unasked; empty: none.
std::string TrainingFileInTheWay(const std::string& model);

/// Removes them, of a training that nobody wants. Returns the sentence that says what cannot be removed; empty: all gone.
std::string RemoveTraining(const std::string& model);

/// Trains; throws Error. An interrupted training is no error: the result says so, and the best model so far is in its file.
/// Nobody else can train to the same file meanwhile.
TrainingResult TrainModel(const TrainingOptions& options);

/// The result for machines: epochs, best, readout, cases, left_out, seconds, validation (as EvaluationJson), before.
json_t* TrainingJson(const TrainingResult& result);

} // namespace rcn

#endif
