// SPDX-License-Identifier: Apache-2.0
#include "rcnTraining.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <utility>

#include "rcnFile.h"
#include "rcnModelRecord.h"
#include "rcnPlatform.h"
#include "rcnPrediction.h"
#include "rcnRecalibration.h"
#include "rcnReport.h"
#include "rcnTrainingCourse.h"
#include "rcnTrainingFiles.h"

namespace rcn
{

namespace fs = std::filesystem;

namespace
{

constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();

/// Relative, in validation RPS: what the second half of a course must gain to count as an improvement.
constexpr double ImprovingGain = 0.05;

/// Fewer epochs have no halves that one could compare.
constexpr int LeastEpochs = 6;

/// Share of the validation voxels that all raters have to have answered for RPS to decide. It is known of no others, and a few
/// complete cases must not choose the model.
constexpr double MostVoxels = 0.9;

double PeakMegabytes(rcn_context* context)
{
  const double peak = platform::PeakMegabytes();
  return peak > 0 ? peak : static_cast<double>(rcn_context_peak_bytes(context)) / 1e6;
}

/// Why a model has no temperature.
const std::string NoTemperature = "No temperature is stored in the model: ";
const char* const StoppedBeforeTemperature = "training was stopped before its end, when it is fitted.";
const char* const TooFewForTemperature = "at least two validation cases are needed.";

/// Of no cases where the region has no voxels in any of them: no reason to lose a model over it.
EvaluationReport ReportOf(const Evaluation& evaluation)
{
  return evaluation.CaseIds().empty() ? EvaluationReport() : evaluation.Report();
}

} // namespace

double SecondsNow()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Training::SecondsTrained() const
{
  return this->SecondsBefore_ + SecondsNow() - this->Start_;
}

void Training::Remark(const std::string& sentence) const
{
  if (this->Options_.Remark)
  {
    this->Options_.Remark(sentence);
  }
}

void Training::LeaveOut(const std::string& id, const std::string& sentence)
{
  this->Result_.LeftOut.push_back({ id, sentence });
  this->Warn("Left out: " + sentence);
}

/// What a person must see.
void Training::Warn(const std::string& sentence) const
{
  const auto& tell = this->Options_.Warn ? this->Options_.Warn : this->Options_.Remark;
  if (tell)
  {
    tell(sentence);
  }
}

/// A step is always finished: stopping is only remembered then.
bool Training::OnProgress(double fraction, const char* stage)
{
  if (this->Doing_ == Doing::Reading)
  {
    this->Progress_.Stage = stage;
    this->Progress_.Fraction = fraction;
  }
  if (!this->StopAsked_ && this->Options_.Progress)
  {
    this->StopAsked_ = this->Options_.Progress(this->Progress_);
    this->Progress_.JustMeasured = false;
  }
  if (this->Processes_.AreSeveral()) // nobody leaves the others waiting: they agree before each step
  {
    return this->StopAsked_ && this->Doing_ == Doing::Reading;
  }
  this->Stop_ = this->StopAsked_;
  return this->Stop_ && this->Doing_ != Doing::Stepping;
}

/// Levels of a whole case, or the maps of several structures; volumes by way of the spacing that is trained on, as in use.
CasePrediction Training::PredictCase(rcn_net* net, const rcn_loss* loss, const float* lossValues, LoadedCase& one)
{
  LevelsOptions how;
  how.Net = net;
  how.Loss = loss;
  how.LossParameters = lossValues;
  how.Normalization = &this->Normalize_;
  how.Spacing = this->Net_.arch == RCN_UNET3D ? this->Net_.spacing : nullptr;
  const std::string about = "Case " + one.Source.Id, name = "The prediction of " + one.Source.Id;
  if (this->HasSeveralStructures())
  {
    return { Volume(), name, std::make_shared<const StructureMaps>(PredictStructures(this->Context_, how, one.Images, about)) };
  }
  return { PredictLevels(this->Context_, how, one.Images, about), name };
}

/// By number; 0 where there is one without a number.
std::vector<int> Training::JudgedStructures() const
{
  std::vector<int> numbers(std::max<size_t>(1, this->List_.Structures.size()));
  std::iota(numbers.begin(), numbers.end(), 1);
  return this->HasSeveralStructures() ? numbers : std::vector<int>{ 0 };
}

/// Judges a network on the validation cases, each process its share of them: one evaluation for each of the options, of several
/// structures all of the first one, then all of the second, ...
std::vector<std::unique_ptr<Evaluation>> Training::JudgeValidation(
  rcn_net* net, const rcn_loss* loss, const float* lossValues, const std::vector<EvaluationOptions>& options)
{
  this->Doing_ = Doing::Validating;
  std::vector<JudgeTask> tasks;
  for (const int structure : this->JudgedStructures())
  {
    for (const EvaluationOptions& one : options)
    {
      tasks.push_back({ 0, one, structure });
      tasks.back().Options.Structure = structure ? this->List_.Structures[static_cast<size_t>(structure) - 1].Name : "";
    }
  }
  Judging judging(this->Context_, this->Raters_, tasks);
  std::vector<size_t> mine;
  for (size_t i = 0; i < this->Validation_.size(); ++i)
  {
    if (this->IsMine(i, this->Validation_.size(), true))
    {
      mine.push_back(i);
    }
  }
  for (size_t k = 0; k < mine.size(); ++k)
  {
    LoadedCase& one = this->Store_->Get(this->Validation_[mine[k]]);
    if (k + 1 < mine.size())
    {
      this->Store_->ReadAhead({ this->Validation_[mine[k]], this->Validation_[mine[k + 1]] });
    }
    const CasePrediction prediction = this->PredictCase(net, loss, lossValues, one);
    judging.Add(one.Source, mine[k], one.Votes.get(), { prediction });
  }
  std::vector<std::unique_ptr<Evaluation>> evaluations = judging.TakeEvaluations();
  for (const std::unique_ptr<Evaluation>& evaluation : evaluations)
  {
    evaluation->Share(this->Processes_);
  }
  return evaluations;
}

std::vector<std::unique_ptr<Evaluation>> Training::JudgeValidation(
  const Model& model, const std::vector<EvaluationOptions>& options)
{
  const std::vector<float>& values = model.Info().LossParameters;
  return this->JudgeValidation(model.Net(), model.Loss(), values.empty() ? nullptr : values.data(), options);
}

TrainingEpoch Training::Validate(rcn_net* net, const rcn_loss* loss, const float* lossValues)
{
  TrainingEpoch epoch;
  epoch.Rps = epoch.MajorityMrEce = epoch.ExpectedMrEce = epoch.Auc = epoch.Dice = NotANumber;
  if (this->Validation_.empty())
  {
    return epoch;
  }
  const double start = SecondsNow();
  this->Progress_.Stage = "validating";
  std::vector<EvaluationOptions> options(3);
  for (EvaluationOptions& one : options)
  {
    one.PerCase = one.ExactAuc = false; // no intervals: an epoch is a row of a log
  }
  EvaluationOptions &whole = options[0], &majority = options[1], &expected = options[2];
  whole.Region.region = RCN_REGION_WHOLE;
  majority.Calib.readout = this->Options_.TieBackground ? RCN_READOUT_MORE_THAN_HALF : RCN_READOUT_MAJORITY;
  majority.ExactAuc = true;
  expected.Calib.readout = RCN_READOUT_EXPECTED;
  const auto judged = this->JudgeValidation(net, loss, lossValues, options);
  for (size_t first = 0; first < judged.size(); first += options.size())
  {
    // Of a structure that nobody marked, too: its votes are those of all raters. Only what no process has read has no voxels.
    epoch.IsBrier = epoch.IsBrier || judged[first]->LevelShare() < MostVoxels;
  }
  std::vector<TrainingEpoch> structures;
  for (size_t first = 0; first < judged.size(); first += options.size())
  {
    const std::vector<double> all = judged[first]->Figures(), box = judged[first + 1]->Figures();
    TrainingEpoch one;
    // With raters missing there is no RPS of all K; the Brier score against those who answered is as proper.
    one.Rps = epoch.IsBrier ? all[RCN_BRIER] : all[RCN_RPS];
    one.MajorityMrEce = box[RCN_MR_ECE];
    one.Dice = box[RCN_DICE];
    one.ExpectedMrEce = judged[first + 2]->Figures()[RCN_MR_ECE];
    one.Auc = judged[first + 1]->Auc().reference;
    structures.push_back(one);
  }
  for (double TrainingEpoch::* figure : { &TrainingEpoch::Rps, &TrainingEpoch::MajorityMrEce, &TrainingEpoch::Dice,
         &TrainingEpoch::ExpectedMrEce, &TrainingEpoch::Auc })
  {
    Spread spread; // without structures that nobody marked
    std::for_each(structures.begin(), structures.end(), [&](const TrainingEpoch& one) { spread.Add(one.*figure); });
    epoch.*figure = structures.size() == 1 ? structures.front().*figure : spread.Mean();
  }
  if (epoch.IsBrier && !this->BrierSaid_)
  {
    this->Remark("Many validation voxels were not answered by all raters, so epochs are compared by the Brier score against "
                 "those who answered, not by RPS.");
    this->BrierSaid_ = true;
  }
  this->ValidationSeconds_ = SecondsNow() - start;
  this->Result_.SecondsValidating += this->ValidationSeconds_;
  return epoch;
}

/// The mean over structures where there are several, which are then in `structures`.
EvaluationReport Training::Judge(
  const Model& model, EvaluationOptions options, std::vector<StructureReport>& structures, VolumeScores* volumes)
{
  options.Correction = model.Info().Correction.get();
  options.AllowFittedCases = true; // that is what before and after are: the model as it was in use
  const auto judged = this->JudgeValidation(model, { options });
  if (volumes)
  {
    *volumes = ScoresOfVolumes(judged);
  }
  if (this->HasSeveralStructures())
  {
    structures.clear();
    for (const std::unique_ptr<Evaluation>& one : judged)
    {
      structures.push_back({ this->List_.Structures[structures.size()].Name, ReportOf(*one) });
    }
    return MeanOverStructures(structures);
  }
  return ReportOf(*judged.front());
}

/// Stores how far the volumes of the validation cases are from their raters', so that the model can give intervals.
void Training::StoreVolumes(const VolumeScores& scores)
{
  this->Result_.VolumeCases = scores.UnitCount();
  if (this->Processes_.IsFirst() && scores.UnitCount() > 0)
  {
    SetVolumes(this->Context_, this->Result_.Model, scores);
  }
}

/// Whether the model has a temperature, for the result and at once; `figures` are told at once only. Nothing where nobody asked
/// for one.
void Training::TellTemperature(const std::string& sentence, const std::string& figures)
{
  if (this->Options_.Recalibrate)
  {
    this->Result_.TemperatureInWords = sentence;
    this->Remark(sentence + (figures.empty() ? "" : " " + figures));
  }
}

EvaluationReport Training::JudgeUncorrected(const Model& best, const std::string& why)
{
  VolumeScores volumes;
  const EvaluationReport report = this->Judge(best, this->Result_.Judged, this->Result_.StructuresAfter, &volumes);
  this->StoreVolumes(volumes);
  this->TellTemperature(NoTemperature + why);
  return report;
}

/// How a model is judged when training is done: as it is applied, by its own readout.
EvaluationOptions Training::JudgedOptions(const Model& model)
{
  const ModelInfo& info = model.Info();
  EvaluationOptions options;
  options.Region.region = this->Options_.Region;
  options.Calib.bins = this->Options_.Bins;
  ChooseReadout(options, ReadoutText(info.Readout, info.AtLeast), "", info.TieBackground);
  this->Progress_.Stage = "evaluating";
  return options;
}

/// Fits a correction to a model's predictions of the validation cases, and tests it with each of them left out.
RecalibrationResult Training::FitToValidation(const Model& model, const EvaluationOptions& options, rcn_recalib_method method)
{
  this->Doing_ = Doing::Validating;
  JudgeInput input;
  input.List.Raters = this->Raters_;
  input.List.Structures = this->List_.Structures;
  for (const size_t number : this->Validation_)
  {
    input.List.Cases.push_back(this->Store_->Peek(number).Source);
  }
  input.Loop.LeaveOut = false;
  input.Loop.IsMine = [this](size_t i) { return this->IsMine(i, this->Validation_.size(), true); };
  input.Votes = [this](const Case&, size_t i) { return this->Store_->Get(this->Validation_[i]).Votes; };
  const std::vector<float>& values = model.Info().LossParameters;
  const auto predict = [&](const Case&, size_t i) {
    LoadedCase& loaded = this->Store_->Get(this->Validation_[i]);
    return this->PredictCase(model.Net(), model.Loss(), values.empty() ? nullptr : values.data(), loaded);
  };
  input.Predictions = { { model.Path(), predict, nullptr } };
  // Where memory is limited, nothing is kept beside the cases: they are predicted again.
  return rcn::Recalibrate(this->Workspace_, input, options, method, std::isfinite(this->Store_->Room()) ? 0 : MostBytesKept);
}

/// The model that training started from, as it was applied. A correction that was fitted to these very cases would look better
/// than that of the new model, which is judged with each case left out; so this one is, too.
EvaluationReport Training::JudgeStart()
{
  const Recalibration* correction = this->Init_->Info().Correction.get();
  this->Result_.JudgedBefore = this->JudgedOptions(*this->Init_);
  this->Result_.JudgedBefore.TieBackground = this->Result_.Judged.TieBackground; // one reference for before and after
  const auto isFitted = [&](size_t number) {
    const std::string& id = this->Store_->Peek(number).Source.Id;
    return std::find(correction->Cases.begin(), correction->Cases.end(), id) != correction->Cases.end();
  };
  if (correction && this->Validation_.size() > 1 && std::any_of(this->Validation_.begin(), this->Validation_.end(), isFitted))
  {
    try
    {
      const RecalibrationResult others =
        this->FitToValidation(*this->Init_, this->Result_.JudgedBefore, correction->Correction.method);
      if (others.Tested)
      {
        this->Result_.StructuresBefore = others.StructuresEachLeftOut;
        return others.EachLeftOut;
      }
    }
    catch (const Error& error)
    {
      if (error.Status() != RCN_EDATA) // nothing to fit: it stays as it is
      {
        throw;
      }
    }
  }
  return this->Judge(*this->Init_, this->Result_.JudgedBefore, this->Result_.StructuresBefore);
}

/// Fits a temperature to the best model's predictions of the validation cases and stores it in the model if it helps on cases
/// that it was not fitted to. Returns what is to be expected of the model: with a temperature, calibration of each case with
/// the one that the other cases give, and AUC and Dice of the model as it is applied.
EvaluationReport Training::CorrectBest(const Model& best)
{
  if (this->Validation_.size() < 2)
  {
    return this->JudgeUncorrected(best, TooFewForTemperature);
  }
  if (!this->Options_.Recalibrate || best.Info().Loss == RCN_LOSS_RPS_HEADS)
  {
    return this->JudgeUncorrected(best, "its structures are predicted separately.");
  }
  RecalibrationResult result;
  try
  {
    result = this->FitToValidation(best, this->Result_.Judged, RCN_RECALIB_TEMPERATURE);
  }
  catch (const Error& error)
  {
    if (error.Status() != RCN_EDATA) // no vote, or all alike
    {
      throw;
    }
    return this->JudgeUncorrected(best, "the validation cases cannot be fitted.");
  }
  this->StoreVolumes(result.Volumes);
  const std::string figures = "MR-ECE " + PercentText(result.Before.Figures[RCN_MR_ECE], 2) + " without it, " +
    PercentText(result.EachLeftOut.Figures[RCN_MR_ECE], 2) + " with each case left out of its fit; " + ScoreInWords(result) +
    ".";
  if (!result.Tested || !result.Helps)
  {
    this->TellTemperature(
      NoTemperature + "it does not help on validation cases that are left out of its fit.", result.Tested ? figures : "");
    this->Result_.StructuresAfter = result.StructuresBefore;
    return result.Before;
  }
  this->Result_.StructuresAfter = result.StructuresEachLeftOut;
  if (this->Processes_.IsFirst())
  {
    SetCorrection(this->Context_, this->Result_.Model, result.Correction);
  }
  this->Result_.Temperature = result.Correction.Correction.parameters[0];
  this->TellTemperature("A temperature of " + Fixed(this->Result_.Temperature, 2) + ", fitted to " +
      std::to_string(result.Before.Cases) + " validation cases, is stored in the model.",
    figures);
  return result.EachLeftOut;
}

/// Everything that decides the bits of a training, by neutral names: a shell shows them.
JsonObject Training::Protocol() const
{
  const rcn_train_options& train = this->Train_;
  const rcn_augment& augment = train.sample.augment;
  // All numbers are doubles: a checkpoint is compared with them, and JSON tells 16 from 16.0.
  JsonObject root{ { "strategy", this->StrategyName_ }, { "arch", rcn_arch_name(this->Net_.arch) },
    { "width", double(this->Net_.width) }, { "depth", double(this->Net_.depth) }, { "norm", double(this->Net_.norm) },
    { "dropout", this->Net_.dropout }, { "init", this->Options_.Init }, { "freeze", double(train.freeze_encoder) },
    { "epochs", double(this->Epochs_) }, { "minutes", this->Options_.Minutes }, { "batch", double(train.batch) },
    { "samples", double(train.samples) }, { "rate", train.schedule.rate }, { "schedule", double(train.schedule.kind) },
    { "warmup", double(train.schedule.warmup) }, { "weight-decay", train.optim.weight_decay },
    { "clip", train.optim.clip_norm }, { "alpha", train.loss.alpha }, { "bce-weight", train.loss.bce_weight },
    { "expected-weight", train.loss.expected_weight }, { "unimodal-weight", train.loss.unimodal_weight },
    { "rps-weight", train.loss.rps_weight }, { "average", train.average }, { "tie", double(train.loss.tie_background) },
    { "sigma", this->Options_.Sigma }, { "seed", double(train.seed) }, { "patience", double(this->Patience_) },
    { "foreground", train.sample.foreground }, { "normalize", NormalizationText(this->Normalize_) },
    { "readout", this->Options_.Readout }, { "patch", Json(train.sample.size, 3) },
    { "spacing", Json(train.sample.spacing, 3) },
    { "augment",
      std::vector<double>{ double(augment.flips), double(augment.turns), augment.share, augment.rotate, augment.scale,
        augment.shear, augment.shift, augment.elastic, augment.gamma, augment.brightness, augment.contrast, augment.noise,
        augment.blur } },
    { "raters", this->Raters_ }, { "training cases", this->Result_.TrainingCases },
    { "validation cases", this->Result_.ValidationCases }, { "old cases", double(this->Old_.size()) } };
  if (train.local_norms)
  {
    root.Set("batch-norm", "local");
  }
  if (this->HasSeveralStructures())
  {
    root.Set("structures", NamesOf(this->List_.Structures));
  }
  return root;
}

void Training::WriteLog() const
{
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  WriteText(this->Result_.Log, EpochsCsv(this->Result_.Epochs));
}

void Training::SaveCheckpoint()
{
  this->LastCheckpoint_ = SecondsNow();
  this->HasCheckpoint_ = true;
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  const JsonObject state{ { "protocol", this->Protocol() }, { "epochs", EpochsJson(this->Result_.Epochs) },
    { "pending", EpochJson(this->Pending_) }, { "best", this->Result_.Best }, { "best_rps", this->BestRps_ },
    { "since_best", this->SinceBest_ }, { "readout", this->Result_.Readout }, { "seconds", this->SecondsTrained() },
    { "finished", this->Finished_ }, { "processes", this->Processes_.Count() } };
  const std::string text = JsonText(state.Get());
  const rcn_model_entry entry = { "training", text.c_str() };
  Check(rcn_train_save(this->Trainer_.get(), this->Result_.Checkpoint.c_str(), &entry, 1), this->Context_);
}

/// What the checkpoint says beside its numbers; null when there is none.
JsonHandle Training::CheckpointState() const
{
  const std::string& path = this->Result_.Checkpoint;
  std::error_code ignored;
  if (!this->Options_.Resume || !this->Processes_.FirstSays(fs::exists(path, ignored)))
  {
    return nullptr;
  }
  JsonHandle state = ReadTrainingEntry(this->Context_, path);
  if (!json_is_object(json_object_get(state.get(), "protocol")))
  {
    throw Error(RCN_EFORMAT, path + " is not a checkpoint of a training.");
  }
  return state;
}

/// True when there was a state to go on from.
bool Training::ResumeState()
{
  const std::string& path = this->Result_.Checkpoint;
  const JsonHandle state = this->CheckpointState();
  if (!state)
  {
    this->Remark(path + " was not found; starting a new training.");
    return false;
  }
  CheckProtocol(this->Protocol().Get(), json_object_get(state.get(), "protocol"), path);
  Check(rcn_train_load(this->Trainer_.get(), path.c_str()), this->Context_);
  size_t index;
  json_t* value;
  json_array_foreach(json_object_get(state.get(), "epochs"), index, value)
  {
    this->Result_.Epochs.push_back(EpochFrom(value));
  }
  this->Pending_ = EpochFrom(json_object_get(state.get(), "pending"));
  this->Result_.Best = CountAt(state.get(), "best");
  const double best = NumberAt(state.get(), "best_rps");
  this->BestRps_ = std::isfinite(best) ? best : INFINITY;
  this->SinceBest_ = CountAt(state.get(), "since_best");
  const char* readout = json_string_value(json_object_get(state.get(), "readout"));
  this->Result_.Readout = readout ? readout : "";
  const double seconds = NumberAt(state.get(), "seconds");
  this->SecondsBefore_ = seconds >= 0 && seconds < 1e12 ? seconds : 0;
  this->Finished_ = json_is_true(json_object_get(state.get(), "finished"));
  this->HasCheckpoint_ = true;
  return true;
}

/// Puts the averaged weights into the network for as long as it lives.
class Training::AveragedWeights
{
public:
  explicit AveragedWeights(Training& training)
    : Net_(training.Network_.get()), Last_(rcn_net_values(Net_), rcn_net_values(Net_) + rcn_net_floats(Net_))
  {
    const float* average = rcn_train_average(training.Trainer_.get());
    std::copy(average, average + rcn_net_floats(this->Net_), rcn_net_edit_values(this->Net_));
  }
  ~AveragedWeights() { std::copy(this->Last_.begin(), this->Last_.end(), rcn_net_edit_values(this->Net_)); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

private:
  rcn_net* Net_;
  std::vector<float> Last_;
};

/// Validates the last weights and, where there is one, their average: the better of the two counts.
TrainingEpoch Training::ValidateEpoch()
{
  const rcn_loss* loss = rcn_train_loss(this->Trainer_.get());
  TrainingEpoch epoch = this->Validate(this->Network_.get(), loss, rcn_train_loss_values(this->Trainer_.get()));
  if (this->Options_.Average > 0)
  {
    const AveragedWeights averaged(*this);
    TrainingEpoch other = this->Validate(this->Network_.get(), loss, rcn_train_average_loss_values(this->Trainer_.get()));
    other.Averaged = true;
    if (!(epoch.Rps <= other.Rps)) // without validation cases, too
    {
      epoch = other;
    }
  }
  return epoch;
}

void Training::SaveBest(bool averaged)
{
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  const std::unique_ptr<AveragedWeights> weights(averaged ? new AveragedWeights(*this) : nullptr);
  ModelInfo info;
  info.Raters = this->Raters_;
  info.Normalization = this->Normalize_;
  info.Strategy = this->StrategyName_;
  info.Loss = this->Train_.strategy.loss;
  info.Structures = this->List_.Structures;
  const int count = rcn_loss_parameters(rcn_train_loss(this->Trainer_.get()));
  const float* values =
    averaged ? rcn_train_average_loss_values(this->Trainer_.get()) : rcn_train_loss_values(this->Trainer_.get());
  info.LossParameters.assign(values, values + (values ? count : 0));
  ParseReadout(info.Readout, info.AtLeast, this->Result_.Readout);
  info.TieBackground = this->Options_.TieBackground;
  info.Axes = this->Axes_;
  std::copy(this->PixelSize_, this->PixelSize_ + 2, info.PixelSize);
  SaveModel(this->Context_, this->Result_.Model, this->Network_.get(), info,
    { { "training", JsonText(this->Protocol().Get()) }, { "created", DayText() } });
}

void Training::FinishEpoch()
{
  TrainingEpoch epoch = this->ValidateEpoch();
  epoch.Epoch = this->Pending_.Epoch;
  epoch.Rate = this->Pending_.Rate;
  epoch.Loss = this->Pending_.Loss;
  epoch.Seconds = this->SecondsTrained();
  epoch.Megabytes = PeakMegabytes(this->Context_);
  epoch.Best = this->Validation_.empty() || epoch.Rps < this->BestRps_;
  if (epoch.Best)
  {
    if (!this->HasCheckpoint_)
    {
      this->SaveCheckpoint(); // a model without one is somebody else's, who would be refused if this process were killed now
    }
    this->Result_.Readout = this->Options_.Readout == "auto"
      ? (!this->Train_.strategy.fused && epoch.ExpectedMrEce < epoch.MajorityMrEce ? "expected" : "majority")
      : this->Options_.Readout;
    if (this->Options_.TieBackground && this->Result_.Readout == "majority")
    {
      this->Result_.Readout = rcn_readout_name(RCN_READOUT_MORE_THAN_HALF); // the majority that was trained
    }
    this->SaveBest(epoch.Averaged);
    // Only once it is on disk: when writing is canceled, the epoch is validated again, and must win again.
    this->BestRps_ = epoch.Rps;
    this->Result_.Best = epoch.Epoch;
    this->SinceBest_ = 0;
  }
  else
  {
    ++this->SinceBest_;
  }
  this->Result_.Epochs.push_back(epoch);
  this->WriteLog();
  if (this->Options_.EpochDone)
  {
    this->Options_.EpochDone(epoch);
  }
}

/// What all processes have to decide alike before a step: whether somebody wants to stop, and by the first one's clock
/// how much of the time is up, which is returned.
double Training::Agree(double at)
{
  double said[2] = { this->StopAsked_ ? 1.0 : 0.0, this->Processes_.IsFirst() ? at : 0.0 };
  Check(rcn_comm_sum(this->Processes_.Comm(), this->Context_, said, 2, RCN_COMM_DOUBLE), this->Context_);
  this->Stop_ = said[0] > 0;
  return said[1];
}

/// What a person wants to know before waiting, from the steps from `begun` to `step`.
void Training::Forecast(int64_t begun, int64_t step)
{
  TrainingCourse& course = this->Progress_.Course;
  const double epochSteps = static_cast<double>(course.EpochSteps);
  const double perStep = (this->Result_.SecondsDrawing + this->Result_.SecondsStepping) / static_cast<double>(step - begun);
  // To predict a case takes about a third of a step with its gradients.
  const double validating = this->ValidationSeconds_ > 0 ? this->ValidationSeconds_
                                                         : perStep * this->PassSteps_ *
      static_cast<double>(this->Validation_.size()) / (3.0 * static_cast<double>(this->EpochCases()));
  const double perEpoch = perStep * epochSteps + validating, trained = this->SecondsTrained();
  const int64_t steps = course.EpochSteps * this->Epochs_;
  const double all = trained + static_cast<double>(steps - step) / epochSteps * perEpoch;
  const double budget = 60 * this->Options_.Minutes;
  const bool timed = budget > 0 && budget < all;
  // The last epoch ends in time for its validation.
  course.Steps = timed ? step + std::llround(std::max(0.0, budget - trained - validating) / perEpoch * epochSteps) : steps;
  course.Seconds = timed ? budget : all;
  course.Epochs = (course.Steps + course.EpochSteps - 1) / course.EpochSteps;
  this->Progress_.JustMeasured = true;
}

/// at: how much of the time is up; perStep: seconds, validation included
void Training::ShowStep(const rcn_train_report& report, double at, double perStep)
{
  const double epochSteps = static_cast<double>(rcn_train_epoch_steps(&this->Train_)), step = static_cast<double>(report.step);
  const double steps = epochSteps * this->Epochs_, budget = 60 * this->Options_.Minutes;
  TrainingProgress& shown = this->Progress_;
  shown.Epoch = static_cast<int>(report.epoch_done ? report.epoch : report.epoch + 1);
  shown.Epochs = this->Epochs_;
  if (at > 0) // as many as the time allows, by the steps that it was measured after
  {
    shown.Epochs = std::max(shown.Epoch, static_cast<int>(std::ceil(std::min(steps, (step - 1) / at) / epochSteps)));
  }
  shown.Loss = report.epoch_loss;
  shown.Fraction = std::max(step / steps, at);
  shown.SecondsLeft = perStep * (steps - step);
  if (budget > 0)
  {
    shown.SecondsLeft = std::min(shown.SecondsLeft, budget - this->SecondsTrained());
  }
}

void Training::Loop()
{
  const int64_t steps = rcn_train_epoch_steps(&this->Train_) * this->Epochs_;
  const double budget = 60 * this->Options_.Minutes;
  int64_t step = 0, epoch = 0, begun = 0;
  rcn_train_where(&step, &epoch, this->Trainer_.get());
  begun = step;
  this->Result_.Steps = step;
  this->LastCheckpoint_ = SecondsNow();
  const double from = SecondsNow();
  bool timeUp = false, hasForecast = false;
  while (!this->Finished_ && !this->Stop_)
  {
    // An epoch whose validation was interrupted is validated first.
    if (this->Pending_.Epoch > (this->Result_.Epochs.empty() ? 0 : this->Result_.Epochs.back().Epoch))
    {
      this->FinishEpoch();
      this->Finished_ = step >= steps || timeUp ||
        (this->Patience_ > 0 && this->SinceBest_ >= this->Patience_ && this->Pending_.Epoch >= this->EarliestEnd_);
      if (this->Finished_ || SecondsNow() - this->LastCheckpoint_ >= this->Options_.CheckpointSeconds)
      {
        this->SaveCheckpoint();
      }
      continue;
    }
    const double at = this->Agree(
      budget > 0 ? std::min(1.0, this->SecondsTrained() / std::max(1e-3, budget - 1.2 * this->ValidationSeconds_)) : 0);
    if (this->Stop_)
    {
      break;
    }
    this->Doing_ = Doing::Stepping;
    this->Progress_.Stage = "training";
    rcn_train_report report;
    const rcn_status status = rcn_train_step(&report, this->Trainer_.get(), at);
    if (status != RCN_OK && !this->CaseError_.empty())
    {
      throw Error(this->CaseStatus_, this->CaseError_);
    }
    Check(status, this->Context_);
    step = report.step;
    if (report.setback)
    {
      this->Remark("The loss diverged at step " + std::to_string(step + 1) + "; restarting from epoch " +
        std::to_string(report.epoch) + " with half the learning rate.");
      continue;
    }
    this->Result_.SecondsDrawing += report.draw_seconds;
    this->Result_.SecondsStepping += report.net_seconds;
    this->Result_.SecondsWaiting += report.comm_seconds;
    this->Result_.Steps = step;
    timeUp = at >= 1;
    this->ShowStep(report, at, (SecondsNow() - from) / static_cast<double>(step - begun));
    if (!hasForecast && step - begun >= 10)
    {
      this->Forecast(begun, step);
      hasForecast = true;
    }
    if (report.epoch_done || timeUp)
    {
      this->Pending_ = TrainingEpoch();
      this->Pending_.Epoch = this->Progress_.Epoch;
      this->Pending_.Rate = report.rate;
      this->Pending_.Loss = report.epoch_loss;
    }
    else if (SecondsNow() - this->LastCheckpoint_ >= 10 * this->Options_.CheckpointSeconds)
    {
      this->SaveCheckpoint();
    }
    this->OnProgress(this->Progress_.Fraction, this->Progress_.Stage);
  }
}

/// Whether the best epoch is one of the last, and by how much it is better than the first half of the course. The rate falls to
/// zero, which makes the last epochs of any training the best and alike: only a large gain says that more steps would help.
bool Training::IsStillImproving() const
{
  const std::vector<TrainingEpoch>& epochs = this->Result_.Epochs;
  const int last = epochs.empty() ? 0 : epochs.back().Epoch;
  double early = INFINITY;
  for (const TrainingEpoch& epoch : epochs)
  {
    early = epoch.Epoch > 0 && 2 * epoch.Epoch <= last ? std::min(early, epoch.Rps) : early;
  }
  return std::isfinite(early) && 10 * this->Result_.Best >= 9 * last && this->BestRps_ < (1 - ImprovingGain) * early;
}

/// Whether a longer training might be better, as far as validation can say.
void Training::JudgeLength()
{
  TrainingResult& result = this->Result_;
  const int last = result.Epochs.empty() ? 0 : result.Epochs.back().Epoch;
  const bool gain = this->IsStillImproving(), late = last > 0 && 10 * result.Best >= 9 * last;
  result.UsualSteps = this->UsualSteps_;
  const bool ended = this->Patience_ > 0 && this->SinceBest_ >= this->Patience_;
  const bool isShort = last < LeastEpochs || result.Steps < this->LeastSteps_;
  result.TooShort = !gain && late && !ended && isShort && !this->Validation_.empty();
  result.StillImproving = gain || result.TooShort;
  if (gain)
  {
    this->Remark("Validation was still improving when training ended.");
  }
  else if (result.TooShort)
  {
    this->Remark("Training was too short to tell whether more of it would help.");
  }
}

/// The file that training goes on from is the one that it writes.
bool Training::IsInPlace() const
{
  std::error_code ignored;
  return !this->Options_.Init.empty() && fs::equivalent(this->Options_.Init, this->Options_.Output, ignored);
}

/// Judges the model that training starts from as it is in use: with its own normalization.
void Training::AsStart(const std::function<void()>& judge)
{
  const rcn_normalize ours = std::exchange(this->Normalize_, this->Init_->Info().Normalization);
  try
  {
    judge();
  }
  catch (...)
  {
    this->Normalize_ = ours; // a checkpoint is written when this was canceled
    throw;
  }
  this->Normalize_ = ours;
}

/// The model that training starts from is the best one so far.
void Training::CompareWithStart()
{
  const ModelInfo& info = this->Init_->Info();
  TrainingEpoch before;
  this->AsStart([&] {
    before = this->Validate(
      this->Network_.get(), this->Init_->Loss(), info.LossParameters.empty() ? nullptr : info.LossParameters.data());
  });
  before.Rate = before.Loss = NotANumber;
  before.Seconds = this->SecondsTrained();
  before.Megabytes = PeakMegabytes(this->Context_);
  before.Best = true;
  this->BestRps_ = std::isfinite(before.Rps) ? before.Rps : INFINITY;
  this->Result_.Readout = ReadoutText(info.Readout, info.AtLeast);
  this->Result_.Epochs.push_back(before);
  if (this->Options_.EpochDone)
  {
    this->Options_.EpochDone(before);
  }
}

/// No epoch was better: the model is the one that training started from, byte for byte.
void Training::CopyStart() const
{
  if (!this->IsInPlace())
  {
    CopyFile(this->Options_.Init, this->Options_.Output);
  }
}

/// The best model, and the one that training started from.
void Training::JudgeBest(bool resumed)
{
  const Model best(this->Context_, this->Result_.Model);
  this->Result_.Judged = this->JudgedOptions(best);
  // After a break, the file to go on from may be the one that was replaced.
  if (this->Init_ && !(resumed && this->IsInPlace() && !this->Result_.KeptStart))
  {
    this->AsStart([&] { this->Result_.Before = this->JudgeStart(); });
    this->Result_.HasBefore = this->Result_.Before.Cases > 0;
  }
  if (this->Result_.KeptStart)
  {
    this->Result_.After = this->Result_.Before;
    this->Result_.StructuresAfter = this->Result_.StructuresBefore;
    this->TellTemperature(best.Info().Correction ? "The model is the one that training started from, with its correction."
                                                 : NoTemperature + "it is the one that training started from, unchanged.");
  }
  else
  {
    this->Result_.After = this->CorrectBest(best);
  }
  // The model that training started from has its own record, of its own training.
  if (!this->Result_.KeptStart && this->Result_.After.Cases > 0 && this->Processes_.IsFirst())
  {
    RecordCalibration(this->Context_, this->Result_.Model, "validation", this->Result_.After, this->Result_.Judged);
  }
}

/// The same; somebody who does not wait for it has the model, and whoever resumes the training is told then.
void Training::JudgeUnlessStopped(bool resumed)
{
  if (this->Validation_.empty())
  {
    this->TellTemperature(NoTemperature + TooFewForTemperature);
    return;
  }
  try
  {
    this->JudgeBest(resumed);
  }
  catch (const Error& error)
  {
    if (error.Status() != RCN_ECANCELLED)
    {
      throw;
    }
    this->Result_.Interrupted = true;
    this->Result_.HasBefore = false;
    if (this->Result_.Temperature == 0)
    {
      this->TellTemperature(NoTemperature + StoppedBeforeTemperature);
    }
  }
}

/// Whether the model lost the correction of the one that training started from.
void Training::WarnOfDroppedCorrection()
{
  const bool replaced = this->Init_ && !this->Result_.KeptStart && this->Result_.Best > 0;
  this->Result_.DroppedCorrection = replaced && this->Init_->Info().Correction && this->Result_.Temperature == 0;
  if (this->Result_.DroppedCorrection)
  {
    this->Warn("The correction in " + this->Options_.Init +
      " was fitted to its weights and is dropped with them; recalibrate the new model.");
  }
}

TrainingResult Training::Run()
{
  this->Result_.Model = this->Options_.Output;
  const std::vector<std::string> files = TrainingFiles(this->Options_.Output);
  this->Result_.Checkpoint = files[1];
  this->Result_.Log = files[2];
  if (this->Processes_.IsFirst())
  {
    this->Lock_ = ClaimTrainingFiles(this->Context_, this->Options_, this->IsInPlace());
  }
  this->ShowPlan();
  this->ReadCases();
  this->ChooseNetwork();
  this->ChooseAxes();
  this->ChooseSamples();
  this->AdoptBatch();
  this->ChooseCourse();
  this->ChooseNormalization();
  this->MakeNetwork();
  this->MakeTraining();
  if (this->Store_->Peak() > this->Store_->Room())
  {
    this->Remark("A single case (" + Fixed(this->Store_->Peak() / 1e9, 3) + " GB) exceeds the memory limit for cases.");
  }
  this->Start_ = SecondsNow();
  const bool resumed = this->Options_.Resume && this->ResumeState();
  try
  {
    if (this->Init_ && !resumed && !this->Validation_.empty())
    {
      this->CompareWithStart();
    }
    this->Loop();
  }
  catch (const Error& error)
  {
    if (error.Status() != RCN_ECANCELLED)
    {
      throw;
    }
    this->Stop_ = true;
  }
  if (!this->Finished_)
  {
    this->Doing_ = Doing::Stepping; // writing is not canceled
    this->SaveCheckpoint();
    this->Processes_.WaitForAll(); // nobody ends before it is written
    this->Result_.Interrupted = true;
    if (this->Result_.Best > 0)
    {
      this->TellTemperature(NoTemperature + StoppedBeforeTemperature);
    }
    this->WarnOfDroppedCorrection();
    return std::move(this->Result_);
  }
  this->Result_.KeptStart = this->Init_ && !this->Validation_.empty() && this->Result_.Best == 0;
  this->JudgeLength();
  if (this->Result_.KeptStart && this->Processes_.IsFirst())
  {
    this->CopyStart();
  }
  this->Processes_.WaitForAll(); // the model is written
  this->JudgeUnlessStopped(resumed);
  this->WarnOfDroppedCorrection();
  this->Result_.CacheBytes = this->Store_->Peak();
  return std::move(this->Result_);
}

std::string CheckTraining(const TrainingOptions& options)
{
  rcn_strategy strategy;
  if (options.List.Cases.empty())
  {
    return "No training cases were given.";
  }
  if (!IsModelName(options.Output))
  {
    return "The model file must be named MODEL.safetensors.";
  }
  if (!options.Strategy.empty() && !FindChoice(StructureStrategies(), options.Strategy) &&
    rcn_strategy_parse(&strategy, options.Strategy.c_str()) != RCN_OK)
  {
    return "Unknown strategy '" + options.Strategy + "'.";
  }
  if (const char* sentence = rcn_net_check(&options.Net))
  {
    return sentence;
  }
  if (const char* sentence = rcn_augment_check(&options.Augment))
  {
    return sentence;
  }
  if (options.Folds < 0 || options.Folds == 1 || options.Fold < 0 || (options.Folds > 1 && options.Fold >= options.Folds))
  {
    return "The number of folds must be at least 2, and the fold 0 to N - 1.";
  }
  if (!(options.ValidationShare >= 0 && options.ValidationShare < 1))
  {
    return "The share of validation cases must be at least 0 and less than 1.";
  }
  if (options.Epochs < 0 || options.Epochs > 1000000)
  {
    return "The number of epochs must be 1 to 1000000.";
  }
  if (!(options.Minutes >= 0) || !(options.CacheGb >= 0) || !(options.CheckpointSeconds >= 0))
  {
    return "Times and sizes must not be negative.";
  }
  if (!(options.Warmup >= 0 && options.Warmup < 1))
  {
    return "The share of warm-up steps must be at least 0 and less than 1.";
  }
  if (options.Readout != "auto" && options.Readout != "majority" && options.Readout != "expected")
  {
    return "The readout must be auto, majority or expected.";
  }
  rcn_calib_options calib = RCN_CALIB_OPTIONS_INIT;
  calib.bins = options.Bins;
  if (const char* sentence = rcn_calib_check(&calib, 1))
  {
    return sentence;
  }
  if (!(options.Foreground >= 0 && options.Foreground <= 1))
  {
    return "The share of patches around marked voxels must be 0 to 1.";
  }
  return "";
}

TrainingResult TrainModel(const TrainingOptions& options)
{
  const std::string sentence = CheckTraining(options);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
  return Training(options).Run();
}

json_t* TrainingJson(const TrainingResult& result)
{
  std::vector<std::string> skipped;
  for (const LeftOutCase& one : result.LeftOut)
  {
    skipped.push_back(one.Id);
  }
  JsonObject root{ { "model", result.Model }, { "log", result.Log }, { "interrupted", result.Interrupted },
    { "best", result.Best }, { "still_improving", result.StillImproving }, { "too_short", result.TooShort },
    { "kept_start", result.KeptStart }, { "dropped_correction", result.DroppedCorrection },
    { "temperature", result.Temperature > 0 ? result.Temperature : NotANumber }, { "volume_cases", result.VolumeCases },
    { "cache_bytes", result.CacheBytes }, { "readout", result.Readout }, { "steps", result.Steps },
    { "epochs", EpochsJson(result.Epochs) },
    { "cases",
      JsonObject{ { "training", result.TrainingCases }, { "validation", result.ValidationCases }, { "skipped", skipped } } },
    { "left_out", LeftOutJson(result.LeftOut) },
    { "seconds",
      JsonObject{ { "reading", result.SecondsReading }, { "drawing", result.SecondsDrawing },
        { "stepping", result.SecondsStepping }, { "waiting", result.SecondsWaiting },
        { "validating", result.SecondsValidating } } } };
  const auto judged = [&result](const EvaluationReport& report, const EvaluationOptions& options,
                        const std::vector<StructureReport>& structures) {
    return structures.empty() ? EvaluationJson(report, options, result.Raters)
                              : EvaluationJson(structures, options, result.Raters);
  };
  if (result.After.Cases > 0)
  {
    root.Set("validation", judged(result.After, result.Judged, result.StructuresAfter));
  }
  if (result.HasBefore)
  {
    root.Set("before", judged(result.Before, result.JudgedBefore, result.StructuresBefore));
  }
  return root.Release();
}

} // namespace rcn
