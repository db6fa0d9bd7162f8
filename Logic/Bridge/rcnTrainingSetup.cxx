// SPDX-License-Identifier: Apache-2.0
/// Before the first step: which cases, which network, which samples.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "rcnPrediction.h"
#include "rcnReport.h"
#include "rcnTrainingCourse.h"
#include "rcnTrainingFiles.h"
#include "rcnTrainingSplit.h"

namespace rcn
{

namespace
{

/// Measured on phantoms of 8 to 425 cases: for the same samples, many small steps beat few large ones by far.
constexpr int LeastEpochSteps = 50;
/// What a batch norm needs to know an image's statistics.
constexpr double LeastBatchVoxels = 8192;

/// A course that nobody chose: every case 40 times, but within these steps.
constexpr double UsualPasses = 40, LeastSteps = 2500, LeastStepsOfVolumes = 1000, MostSteps = 10000;

/// Takes over the parameters that both networks have in the same shape; how many they are.
int64_t CopyAlike(rcn_net* net, const rcn_net* from)
{
  float* values = rcn_net_edit_values(net);
  int64_t taken = 0;
  for (int i = 0; i < rcn_net_parameter_count(net); ++i)
  {
    const rcn_parameter* own = rcn_net_parameter(net, i);
    const rcn_parameter* other = rcn_net_find_parameter(from, own->name);
    if (other && other->dimensions == own->dimensions && std::equal(own->shape, own->shape + own->dimensions, other->shape))
    {
      std::copy_n(rcn_net_values(from) + other->offset, own->count, values + own->offset);
      ++taken;
    }
  }
  return taken;
}

/// The strategy that a model goes on with. "ordinal" has meant another likelihood before, and a network keeps the outputs of
/// the loss that it was trained with.
std::string StrategyOf(const ModelInfo& info)
{
  rcn_strategy strategy;
  const bool isOrdinal = info.Structures.size() < 2 && info.Strategy == rcn_strategy_name(0);
  const bool isOther =
    isOrdinal && rcn_strategy_parse(&strategy, info.Strategy.c_str()) == RCN_OK && strategy.loss != info.Loss;
  return isOther ? rcn_loss_kind_name(info.Loss) : info.Strategy;
}

} // namespace

/// The process that reads case `index` of `count`. Those that one trains on lie together.
int Training::OwnerOf(size_t index, size_t count, bool inTurns) const
{
  const int processes = this->Processes_.Count();
  int owner = inTurns ? static_cast<int>(index % static_cast<size_t>(processes)) : -1;
  for (int64_t first = 0, end = 0; !inTurns && static_cast<int64_t>(index) >= end;)
  {
    rcn_comm_share(&first, &end, static_cast<int64_t>(count), ++owner, processes);
  }
  return owner;
}

bool Training::IsMine(size_t index, size_t count, bool inTurns) const
{
  return this->OwnerOf(index, count, inTurns) == this->Processes_.Rank();
}

/// Every process reads its share and tells the others what they have to know of it.
void Training::ReadAll(
  const std::vector<Case>& cases, std::vector<size_t>& numbers, std::vector<std::string>* names, bool inTurns)
{
  struct Facts
  {
    rcn_geometry Geometry;
    int32_t Channels, Marked;
  };
  SharedRecords errors;
  std::string mine; // Facts, one after another
  std::string labels;
  const size_t first = this->Store_->Count();
  for (size_t i = 0; i < cases.size(); ++i)
  {
    const size_t number = this->Store_->Add(cases[i]);
    if (!this->IsMine(i, cases.size(), inTurns))
    {
      continue;
    }
    Facts facts;
    std::memset(static_cast<void*>(&facts), 0, sizeof facts);
    try
    {
      const LoadedCase& loaded = this->Store_->Get(number);
      labels = labels.empty() ? this->Workspace_.LabelRemark() : labels;
      facts = { loaded.Geometry, static_cast<int32_t>(loaded.Channels.size()), loaded.Marked };
    }
    catch (const Error& error)
    {
      if (!this->Options_.SkipBad || error.Status() == RCN_ECANCELLED || error.Status() == RCN_ENOMEM)
      {
        throw;
      }
      errors.Set(i, JsonString(error.what()));
    }
    mine.append(reinterpret_cast<const char*>(&facts), sizeof facts);
  }
  errors.Merge(this->Processes_);
  for (const std::string& remark : this->Processes_.Gather(labels))
  {
    if (!remark.empty() && !this->LabelsSaid_)
    {
      this->Remark(remark); // once, whichever process has read the case
      this->LabelsSaid_ = true;
    }
  }
  const std::vector<std::string> all = this->Processes_.Gather(mine);
  std::vector<size_t> taken(all.size(), 0);
  for (size_t i = 0; i < cases.size(); ++i)
  {
    const size_t owner = static_cast<size_t>(this->OwnerOf(i, cases.size(), inTurns));
    Facts facts;
    std::memcpy(static_cast<void*>(&facts), all[owner].data() + sizeof facts * taken[owner]++, sizeof facts);
    std::string trouble = errors.Get(i) ? json_string_value(errors.Get(i)) : "";
    if (trouble.empty() && this->Net_.channels && facts.Channels != this->Net_.channels)
    {
      trouble = "Case " + cases[i].Id + " has " + Counted(facts.Channels, "channel") + ", the others have " +
        std::to_string(this->Net_.channels) + ".";
      if (!this->Options_.SkipBad)
      {
        throw Error(RCN_EDATA, trouble);
      }
    }
    if (!trouble.empty())
    {
      this->LeaveOut(cases[i].Id, trouble);
      this->Store_->Release(first + i);
      continue;
    }
    this->Net_.channels = facts.Channels;
    this->Store_->Peek(first + i).Geometry = facts.Geometry;
    this->Store_->Peek(first + i).Marked = facts.Marked != 0;
    numbers.push_back(first + i);
    if (names)
    {
      names->push_back(cases[i].Id);
    }
  }
}

/// What is known of the images of the cases that learn, without their voxels. False where one cannot be read: whoever reads it
/// will say why.
bool Training::ReadHeaders(const TrainingSplit& split)
{
  this->Store_.reset(new CaseStore(this->Workspace_, this->Raters_, 0));
  const auto read = [this](const std::vector<Case>& cases, std::vector<size_t>& numbers) {
    for (const Case& one : cases)
    {
      if (this->OnProgress(0, "reading"))
      {
        throw Error(RCN_ECANCELLED, "");
      }
      std::vector<Volume> images = one.Memory ? one.Memory->Images : std::vector<Volume>();
      for (size_t i = images.size(); i < one.Images.size() && !one.Memory; ++i)
      {
        images.push_back(ReadImageHeader(one.Images[i]));
      }
      if (images.empty())
      {
        throw Error(RCN_EDATA, one.Id);
      }
      this->Net_.channels = 0;
      for (const Volume& image : images)
      {
        this->Net_.channels += image.ChannelCount();
      }
      numbers.push_back(this->Store_->Add(one));
      this->Store_->Peek(numbers.back()).Geometry = images.front().Geometry();
    }
  };
  try
  {
    read(split.Training, this->New_);
    read(split.Old, this->Old_);
  }
  catch (const Error& error)
  {
    if (error.Status() == RCN_ECANCELLED)
    {
      throw;
    }
    return false;
  }
  return true;
}

/// As Run() begins, without a voxel.
TrainingCourse Training::Plan()
{
  const TrainingSplit split = DivideCases(this->Options_);
  this->Result_.Checkpoint = TrainingFiles(this->Options_.Output)[1];
  TrainingCourse& course = this->Progress_.Course;
  if (this->ReadHeaders(split))
  {
    this->ChooseNetwork();
    this->ChooseAxes();
    this->ChooseSamples();
    this->AdoptBatch();
    this->ChooseCourse();
  }
  course.Training = static_cast<int64_t>(split.Training.size());
  course.Old = static_cast<int64_t>(split.Old.size());
  course.Validation = static_cast<int64_t>(split.Validation.size());
  course.MayEndEarlier = this->Patience_ > 0 && course.Validation > 0;
  return course;
}

/// Before cases are read, which may take long; what is wrong with them is said where they are.
void Training::ShowPlan()
{
  if (this->Processes_.AreSeveral() || !this->Options_.Progress)
  {
    return;
  }
  TrainingOptions silent = this->Options_;
  silent.Remark = silent.Warn = nullptr;
  try
  {
    this->Progress_.Course = Training(silent).Plan();
  }
  catch (const Error& error)
  {
    if (error.Status() == RCN_ECANCELLED)
    {
      throw;
    }
  }
}

void Training::ReadCases()
{
  const double start = SecondsNow();
  const TrainingSplit split = DivideCases(this->Options_);
  this->Result_.Raters = this->Raters_;
  // Where an encoder is frozen, what it makes of the cases is kept in memory, too.
  const double room = 1e9 * this->Options_.CacheGb;
  if (room > 0)
  {
    this->Train_.feature_bytes = std::min(this->Train_.feature_bytes, static_cast<int64_t>(std::min(room / 2, 1e18)));
  }
  this->Store_.reset(new CaseStore(this->Workspace_, this->Raters_,
    this->Options_.FreezeEncoder ? room - std::min(room, static_cast<double>(this->Train_.feature_bytes)) : room));
  this->Net_.channels = 0;
  this->ReadAll(split.Training, this->New_, &this->Result_.TrainingCases, false);
  this->ReadAll(split.Old, this->Old_, nullptr, false);
  this->ReadAll(split.Validation, this->Validation_, &this->Result_.ValidationCases, true);
  if (this->New_.empty())
  {
    throw Error(RCN_EDATA, this->List_.Path + ": no training case could be read.");
  }
  bool marked = false;
  for (const size_t number : this->New_)
  {
    marked = marked || this->Store_->Peek(number).Marked;
  }
  if (!marked)
  {
    throw Error(RCN_EDATA, this->List_.Path + ": the training cases have no marked voxel.");
  }
  if (this->Validation_.empty() && this->IsInPlace())
  {
    throw Error(RCN_EINVALID,
      this->List_.Path + " has no validation cases, so a retrained " + this->Options_.Output +
        " cannot be compared; add some, or write to another file.");
  }
  if (this->Validation_.empty())
  {
    this->Remark("No validation cases: the model of the last epoch is kept and not evaluated.");
  }
  this->Result_.SecondsReading = SecondsNow() - start;
}

/// The model that training goes on from, if Init is one; whether raters and channels fit it.
void Training::ReadInit(int channels)
{
  const std::string& path = this->Options_.Init;
  char* arch = nullptr;
  Check(rcn_model_read(&arch, this->Context_, path.c_str(), "arch"), this->Context_);
  this->InitIsEncoder_ = !arch;
  rcn_model_free(arch, this->Context_);
  if (this->InitIsEncoder_)
  {
    if (this->IsInPlace())
    {
      throw Error(
        RCN_EINVALID, path + " holds the weights of an encoder and is not a model to retrain; write to another file.");
    }
    return;
  }
  this->Init_.reset(new Model(this->Context_, path));
  const rcn_net_options& from = this->Init_->Options();
  const ModelInfo& info = this->Init_->Info();
  if (this->Options_.HasNet && from.arch != this->Options_.Net.arch)
  {
    throw Error(RCN_EINVALID,
      path + " is a " + rcn_arch_name(from.arch) + ", not a " + rcn_arch_name(this->Options_.Net.arch) + ".", "network");
  }
  if (from.channels != channels)
  {
    throw Error(RCN_EINVALID,
      path + " takes images of " + Counted(from.channels, "channel") + "; those of " + this->List_.Path + " have " +
        std::to_string(channels) + ".");
  }
  if (info.Raters.size() != this->Raters_.size())
  {
    throw Error(RCN_EINVALID,
      path + " was trained on " + Counted(static_cast<int64_t>(info.Raters.size()), "rater") + "; " + this->List_.Path +
        " has " + std::to_string(this->Raters_.size()) + ".");
  }
  if (!this->Options_.OtherRaters)
  {
    this->Init_->CheckRaters(this->Raters_, this->List_.Path);
  }
  this->Net_ = from;
  if (this->Init_->HasSeveralStructures() != this->HasSeveralStructures())
  {
    this->InitHasOtherOutputs_ = true;
  }
  else
  {
    this->Init_->CheckStructures(this->List_.Structures, this->List_.Path);
    if (this->HasSeveralStructures() && NamesOf(info.Structures) != NamesOf(this->List_.Structures))
    {
      throw Error(RCN_EINVALID,
        path + " has its structures in another order than " + this->List_.Path + ": " + JoinNames(NamesOf(info.Structures)) +
          "; name them in this order.");
    }
    this->StrategyName_ = this->StrategyName_.empty() ? StrategyOf(info) : this->StrategyName_;
  }
  if (this->InitHasOtherOutputs_ && this->IsInPlace())
  {
    throw Error(RCN_EINVALID,
      path + " is a model of " + (this->HasSeveralStructures() ? "one structure" : "several structures") +
        ", which would be lost; write to another file.");
  }
}

/// Which network and loss, by the options or by the model to go on from.
void Training::ChooseNetwork()
{
  const int channels = this->Net_.channels;
  this->StrategyName_ = this->Options_.Strategy;
  this->Net_ = this->Options_.Net;
  if (!this->Options_.Init.empty())
  {
    this->ReadInit(channels);
  }
  this->StrategyName_ = this->StrategyName_.empty() ? rcn_strategy_name(0) : this->StrategyName_;
  const int structures = std::max(1, static_cast<int>(this->List_.Structures.size()));
  if (structures > 1 && this->StrategyName_ == rcn_strategy_name(0))
  {
    this->StrategyName_ = rcn_strategy_structures_name(0); // what the default means for several
  }
  Check(rcn_strategy_for(&this->Train_.strategy, this->Context_, this->StrategyName_.c_str(), structures), this->Context_);
  this->Train_.loss.structures = structures;
  this->Train_.loss.kind = this->Train_.strategy.loss;
  this->Train_.loss.raters = static_cast<int>(this->Raters_.size());
  this->Train_.loss.alpha = this->Options_.Alpha;
  this->Train_.loss.bce_weight = this->Options_.BceWeight;
  this->Train_.loss.expected_weight = this->Options_.ExpectedWeight;
  this->Train_.loss.unimodal_weight = this->Options_.UnimodalWeight;
  this->Train_.loss.rps_weight =
    std::isnan(this->Options_.RpsWeight) ? this->Train_.strategy.rps_weight : this->Options_.RpsWeight;
  this->Train_.loss.tie_background = this->Options_.TieBackground;
  rcn_loss* loss = nullptr;
  Check(rcn_loss_create(&loss, this->Context_, &this->Train_.loss), this->Context_);
  const int outputs = rcn_loss_channels(loss);
  rcn_loss_destroy(loss);
  if (this->Init_ && !this->InitHasOtherOutputs_ && this->Net_.outputs != outputs)
  {
    throw Error(RCN_EINVALID,
      this->Options_.Init + " gives " + std::to_string(this->Net_.outputs) + " numbers per voxel, but " + this->StrategyName_ +
        " needs " + std::to_string(outputs) + "; keep its strategy.");
  }
  this->Net_.channels = channels;
  this->Net_.outputs = outputs;
}

/// The axes that most training cases are stored along, or those of the model to go on from. All cases are brought to them.
void Training::ChooseAxes()
{
  std::map<std::string, int> counts;
  std::vector<size_t> all = this->New_;
  all.insert(all.end(), this->Old_.begin(), this->Old_.end());
  const auto axesOf = [this](size_t number) {
    char axes[4];
    rcn_axes_of(axes, &this->Store_->Peek(number).Geometry);
    return std::string(axes);
  };
  int most = 0;
  for (const size_t number : all)
  {
    const std::string axes = axesOf(number);
    most = std::max(most, axes.empty() ? 0 : ++counts[axes]);
  }
  this->Axes_ = this->Init_ ? this->Init_->Info().Axes : "";
  for (size_t i = 0; i < all.size() && most > 0 && this->Axes_.empty(); ++i)
  {
    const std::string axes = axesOf(all[i]); // the first of those that are as frequent
    this->Axes_ = !axes.empty() && counts[axes] == most ? axes : "";
  }
  all.insert(all.end(), this->Validation_.begin(), this->Validation_.end());
  int others = 0;
  for (const size_t number : all)
  {
    const std::string axes = axesOf(number);
    others += !axes.empty() && axes != this->Axes_;
  }
  if (others > 0)
  {
    this->Remark(std::to_string(others) + (others == 1 ? " case is" : " cases are") + " stored along other axes than " +
      this->Axes_ + "; " + (others == 1 ? "it is" : "they are") + " turned to these for the network.");
  }
  this->Store_->SetAxes(this->Axes_, this->Net_.arch != RCN_UNET3D);
}

/// Size and number of samples, and for volumes their spacing.
void Training::ChooseSamples()
{
  rcn_sample_options& sample = this->Train_.sample;
  const bool volumes = this->Net_.arch == RCN_UNET3D;
  int64_t largest[3] = { 1, 1, 1 };
  bool alike = true, measured = true;
  double voxels = 0;
  std::vector<double> spacing[3];
  const rcn_geometry first = this->Store_->Peek(this->New_.front()).Geometry;
  for (const std::vector<size_t>* numbers : { &this->New_, &this->Old_ })
  {
    for (const size_t number : *numbers)
    {
      const LoadedCase& one = this->Store_->Peek(number);
      for (int a = 0; a < 3; ++a)
      {
        largest[a] = std::max(largest[a], one.Geometry.size[a]);
        alike = alike && one.Geometry.size[a] == first.size[a];
        spacing[a].push_back(one.Geometry.spacing[a]);
      }
      if (volumes && rcn_geometry_thin_axis(&one.Geometry) >= 0)
      {
        throw Error(RCN_EDATA, "Case " + one.Source.Id + " is a slice; unet3d needs volumes, unet and fpn-resnet need slices.");
      }
      this->Slices_ =
        this->Slices_ || (!volumes && !this->Options_.HasNet && !this->Init_ && rcn_geometry_thin_axis(&one.Geometry) < 0);
      voxels += static_cast<double>(rcn_geometry_voxels(&one.Geometry));
      measured = measured && one.Geometry.unit == RCN_MM;
    }
  }
  voxels /= static_cast<double>(spacing[0].size());
  for (int a = 0; a < (volumes ? 3 : 2); ++a)
  {
    std::nth_element(spacing[a].begin(), spacing[a].begin() + spacing[a].size() / 2, spacing[a].end());
    const double median = spacing[a][spacing[a].size() / 2];
    if (!volumes)
    {
      this->PixelSize_[a] = measured ? median : 0;
      continue;
    }
    if (!this->Init_)
    {
      this->Net_.spacing[a] = this->Options_.Spacing[a] > 0 ? this->Options_.Spacing[a] : median;
    }
    sample.spacing[a] = this->Net_.spacing[a];
  }
  const int64_t usual[3] = { volumes ? 96 : 256, volumes ? 96 : 256, volumes ? 64 : 1 };
  for (int a = 0; a < 3; ++a)
  {
    const int64_t rounded = (largest[a] + 15) / 16 * 16;
    const bool whole = alike && !volumes && a < 2 && largest[0] * largest[1] <= 65536;
    sample.size[a] = this->Options_.Patch[a] > 0 ? this->Options_.Patch[a] : whole ? largest[a] : std::min(rounded, usual[a]);
    if (a == 2 && !volumes)
    {
      sample.size[a] = 1;
    }
  }
  sample.foreground = this->Options_.Foreground;
  sample.augment = this->Options_.Augment;
  const double size = static_cast<double>(sample.size[0] * sample.size[1] * sample.size[2]);
  this->Train_.samples = this->Options_.Samples > 0 ? this->Options_.Samples
                                                    : std::max<int64_t>(1, std::min<int64_t>(16, std::llround(voxels / size)));
  // Of all processes together: as many as one would take, or what each is told to take.
  const int64_t processes = this->Processes_.Count();
  this->Train_.batch =
    this->Options_.Batch > 0 ? this->Options_.Batch * processes : std::max(this->ChooseBatch(size), processes);
}

/// New cases, and old ones that are mixed in.
int64_t Training::EpochCases() const
{
  return static_cast<int64_t>(this->New_.size() + std::min(this->Old_.size(), this->New_.size()));
}

/// How many samples of so many voxels make a step.
int64_t Training::ChooseBatch(double voxels) const
{
  const int64_t most = std::max<int64_t>(2, std::min<int64_t>(16, std::llround(262144 / voxels)));
  const int64_t least = std::max<int64_t>(2, std::min<int64_t>(most, std::llround(std::ceil(LeastBatchVoxels / voxels))));
  return std::max(least, std::min(most, this->EpochCases() * this->Train_.samples / LeastEpochSteps));
}

/// How long training takes, where nobody says so.
void Training::ChooseCourse()
{
  rcn_train_options& train = this->Train_;
  train.cases = static_cast<int64_t>(this->New_.size());
  train.old_cases = static_cast<int64_t>(this->Old_.size());
  const bool chosen = this->Options_.Epochs == 0, timed = this->Options_.Minutes > 0;
  const double least = this->Net_.arch == RCN_UNET3D ? LeastStepsOfVolumes : LeastSteps;
  const int64_t covering = train.samples;
  this->PassSteps_ = static_cast<double>(rcn_train_epoch_steps(&train));
  const double steps = std::max(least, std::min(MostSteps, UsualPasses * this->PassSteps_));
  this->LeastSteps_ = static_cast<int64_t>(least);
  this->UsualSteps_ = static_cast<int64_t>(std::ceil(steps));
  if (chosen && this->Options_.Samples == 0) // to validate after every few steps would take longer than these
  {
    const int64_t cases = this->EpochCases();
    train.samples = std::max(train.samples, (LeastEpochSteps * train.batch + cases - 1) / cases);
  }
  this->Epochs_ = !chosen ? this->Options_.Epochs
    : timed               ? 1000000 // the time decides
                          : static_cast<int>(std::ceil(steps / static_cast<double>(rcn_train_epoch_steps(&train))));
  // The rate is highest after a third of the course, and validation may get worse before it gets better.
  const bool automatic = this->Options_.Patience < 0 && chosen && !timed;
  this->Patience_ = automatic ? std::max(10, this->Epochs_ / 3) : std::max(0, this->Options_.Patience);
  this->EarliestEnd_ = automatic ? this->Epochs_ / 2 : 0;
  TrainingCourse& course = this->Progress_.Course;
  course = TrainingCourse();
  course.Training = train.cases;
  course.Old = train.old_cases;
  course.Validation = static_cast<int64_t>(this->Validation_.size());
  course.Batch = std::min(train.batch, this->EpochCases() * train.samples);
  course.EpochSteps = rcn_train_epoch_steps(&train);
  course.Samples = train.samples;
  course.CoveringSamples = covering;
  course.Epochs = chosen && timed ? 0 : this->Epochs_;
  course.Minutes = this->Options_.Minutes;
  course.MayEndEarlier = this->Patience_ > 0 && !this->Validation_.empty();
  course.Slices = this->Slices_;
}

/// Training that goes on with another number of processes keeps the size of its steps.
void Training::AdoptBatch()
{
  const JsonHandle state = this->CheckpointState();
  const json_t* then = json_object_get(state.get(), "protocol");
  const double stored = json_number_value(ProtocolValue(then, "batch")); // 0 where it is no number
  const int64_t batch = stored > 0 && stored <= 1 << 30 ? static_cast<int64_t>(stored) : 0;
  const int64_t processes = std::max(1, CountAt(state.get(), "processes"));
  if (json_is_object(then) && batch != this->Train_.batch && batch >= this->Processes_.Count() &&
    (this->Options_.Batch == 0 || (processes != this->Processes_.Count() && this->Options_.Batch * processes == batch)))
  {
    this->Train_.batch = batch;
    this->Remark("Training continues with steps of " + Counted(batch, "sample") + ", as it was started with " +
      Counted(processes, "process", "processes") + ".");
  }
}

void Training::ChooseNormalization()
{
  this->Normalize_ = this->Options_.Normalization;
  if (!this->Options_.HasNormalization && this->Init_)
  {
    this->Normalize_ = this->Init_->Info().Normalization;
  }
  if (this->Normalize_.kind == RCN_NORMALIZE_FIXED && this->Normalize_.channels == 0)
  {
    rcn_moments moments{};
    for (size_t i = 0; i < this->New_.size(); ++i)
    {
      if (this->IsMine(i, this->New_.size(), false))
      {
        const LoadedCase& one = this->Store_->Get(this->New_[i]);
        Check(rcn_moments_add(&moments, this->Context_, one.Channels.data(), static_cast<int>(one.Channels.size())),
          this->Context_);
      }
    }
    Check(rcn_moments_share(&moments, this->Context_, this->Processes_.Comm()), this->Context_);
    Check(rcn_moments_normalize(&this->Normalize_, this->Context_, &moments), this->Context_);
  }
  rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
  fusion.tie = this->Options_.TieBackground ? RCN_TIE_BACKGROUND : RCN_TIE_FOREGROUND;
  fusion.sigma = this->Options_.Sigma;
  this->Store_->SetRules(this->Train_.strategy, fusion, this->Normalize_);
}

void Training::MakeNetwork()
{
  rcn_net* net = nullptr;
  Check(rcn_net_create(&net, this->Context_, &this->Net_), this->Context_);
  this->Network_.reset(net);
  Check(rcn_net_initialize(net, this->Options_.Seed), this->Context_);
  if (this->InitHasOtherOutputs_)
  {
    const int64_t taken = CopyAlike(net, this->Init_->Net());
    this->Remark("The network starts from " + this->Options_.Init + " (" + std::to_string(taken) + " of " +
      std::to_string(rcn_net_parameter_count(net)) + " tensors); its last layer is new, because the outputs differ.");
    this->Init_.reset(); // it cannot be judged on these structures
  }
  else if (this->Init_)
  {
    std::memcpy(
      rcn_net_edit_values(net), rcn_net_values(this->Init_->Net()), sizeof(float) * static_cast<size_t>(rcn_net_floats(net)));
  }
  else if (this->InitIsEncoder_)
  {
    int64_t loaded = 0;
    Check(rcn_model_init_encoder(&loaded, net, this->Context_, this->Options_.Init.c_str(), nullptr, nullptr), this->Context_);
    this->Remark("The encoder starts from " + this->Options_.Init + " (" + std::to_string(loaded) + " tensors).");
  }
}

void Training::MakeTraining()
{
  rcn_train_options& train = this->Train_;
  train.freeze_encoder = this->Options_.FreezeEncoder;
  train.seed = this->Options_.Seed;
  train.comm = this->Processes_.Comm();
  train.local_norms = this->Options_.LocalNorms;
  train.average = this->Options_.Average;
  train.optim.weight_decay = this->Options_.WeightDecay;
  train.optim.kind = this->Options_.WeightDecay > 0 ? RCN_OPTIM_ADAMW : RCN_OPTIM_ADAM;
  train.optim.clip_norm = this->Options_.ClipNorm;
  train.schedule.kind = this->Options_.Schedule;
  train.schedule.rate = this->Options_.Rate;
  train.schedule.steps = std::max<int64_t>(2, rcn_train_epoch_steps(&train) * this->Epochs_);
  train.schedule.warmup = std::min(
    train.schedule.steps - 1, static_cast<int64_t>(this->Options_.Warmup * static_cast<double>(train.schedule.steps) + 0.5));
  rcn_train* created = nullptr;
  Check(rcn_train_create(&created, this->Context_, this->Network_.get(), &train, GiveCase, this), this->Context_);
  this->Trainer_.reset(created);
  rcn_train_set_soon(created, ReadSoon);
  if (this->Init_ && this->Init_->Info().Loss == train.strategy.loss && !this->Init_->Info().LossParameters.empty())
  {
    const std::vector<float>& values = this->Init_->Info().LossParameters;
    Check(rcn_train_set_loss_values(created, values.data(), static_cast<int>(values.size())), this->Context_);
  }
  if (!this->Init_)
  {
    Check(rcn_train_start(created, this->LevelShares().data()), this->Context_);
  }
  this->ShareCases();
}

/// Lets go of cases that were read for a first look and that other processes train on.
void Training::ShareCases()
{
  int64_t first = 0, end = 0, oldFirst = 0, oldEnd = 0;
  rcn_train_share(&first, &end, &oldFirst, &oldEnd, &this->Train_, this->Processes_.Rank(), this->Processes_.Count());
  for (int64_t i = 0; i < this->Train_.cases + this->Train_.old_cases; ++i)
  {
    if ((i < first || i >= end) && (i < oldFirst || i >= oldEnd))
    {
      this->Store_->Release(this->NumberOf(i));
    }
  }
}

/// How often each level occurs in the cases of all processes, of several structures each label.
std::vector<double> Training::LevelShares()
{
  std::vector<double> shares(this->HasSeveralStructures() ? this->List_.Structures.size() + 1 : this->Raters_.size() + 1, 0);
  for (size_t i = 0; i < this->New_.size(); ++i)
  {
    if (this->IsMine(i, this->New_.size(), false))
    {
      const LoadedCase& one = this->Store_->Get(this->New_[i]);
      (this->HasSeveralStructures() ? rcn_target_add_labels : rcn_target_add_levels)(
        shares.data(), one.Target.get(), one.Votes.get());
    }
  }
  Check(
    rcn_comm_sum(this->Processes_.Comm(), this->Context_, shares.data(), static_cast<int64_t>(shares.size()), RCN_COMM_DOUBLE),
    this->Context_);
  const double voxels = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares)
  {
    share /= voxels;
  }
  return shares;
}

/// In the store, of a case that the core numbers: new ones first, then old ones.
size_t Training::NumberOf(int64_t index) const
{
  const size_t number = static_cast<size_t>(index);
  return number < this->New_.size() ? this->New_[number] : this->Old_[number - this->New_.size()];
}

/// Reads what the next step needs while this one computes.
void Training::ReadSoon(const int64_t* cases, int64_t count, void* payload)
{
  const Training* self = static_cast<Training*>(payload);
  try
  {
    std::vector<size_t> numbers;
    for (int64_t i = 0; i < count; ++i)
    {
      numbers.push_back(self->NumberOf(cases[i]));
    }
    self->Store_->ReadAhead(numbers);
  }
  catch (const std::exception&)
  {
    // C++ exceptions must not pass through the core. Cases are read when they are asked for.
  }
}

/// C++ exceptions must not pass through the core: kept here and thrown after the step.
rcn_status Training::GiveCase(rcn_train_case* out, int64_t index, void* payload)
{
  Training* self = static_cast<Training*>(payload);
  try
  {
    const LoadedCase& one = self->Store_->Get(self->NumberOf(index));
    out->data.channels = one.Channels.data();
    out->data.channel_count = static_cast<int>(one.Channels.size());
    out->data.scale = &one.Scale;
    out->data.votes = one.Votes.get();
    out->data.map = rcn_target_map(one.Target.get());
    out->data.foci = one.Foci.get();
    out->target = one.Target.get();
    return RCN_OK;
  }
  catch (const Error& error)
  {
    self->CaseError_ = error.what();
    self->CaseStatus_ = error.Status();
  }
  catch (const std::exception& error)
  {
    self->CaseError_ = error.what();
    self->CaseStatus_ = RCN_ENOMEM;
  }
  return self->CaseStatus_ == RCN_EDATA ? RCN_EIO : self->CaseStatus_;
}

double TrainingCourse::Passes() const
{
  const double samples = static_cast<double>((this->Training + std::min(this->Old, this->Training)) * this->CoveringSamples);
  return samples > 0 ? static_cast<double>(this->Steps * this->Batch) / samples : 0;
}

namespace
{

/// 431 as 430.
int64_t AboutSo(int64_t count)
{
  int64_t unit = 1;
  while (count / unit >= 100)
  {
    unit *= 10;
  }
  return (count + unit / 2) / unit * unit;
}

/// "9 cases for training, 3 for validation"
std::string CasesInWords(const TrainingCourse& course)
{
  return Counted(course.Training, "case") + " for training" + (course.Old > 0 ? ", mixed with old ones" : "") + ", " +
    std::to_string(course.Validation) + " for validation";
}

std::string PassesInWords(const TrainingCourse& course)
{
  const double passes = course.Passes();
  return passes < 0.95 ? "fewer than one pass over the cases"
    : passes < 1.5     ? "every case is seen once"
                       : "every case is seen " + std::to_string(AboutSo(std::llround(passes))) + " times";
}

} // namespace

std::string CourseInWords(const TrainingCourse& course)
{
  if (course.Training == 0)
  {
    return "";
  }
  const std::string earlier = course.MayEndEarlier ? "; it ends earlier when validation stops improving." : ".";
  if (course.Steps > 0)
  {
    const bool timed = course.Minutes > 0 && course.Seconds >= 60 * course.Minutes; // by the clock, not by the steps
    return (timed ? "About " + Counted(AboutSo(course.Steps), "step") + " in " : Counted(course.Steps, "step") + " in about ") +
      DurationText(course.Seconds) + ", " + Counted(course.Epochs, "epoch") + ": " + PassesInWords(course) + earlier;
  }
  if (course.Batch == 0)
  {
    return CasesInWords(course) + ".";
  }
  return CasesInWords(course) + "; an epoch has " + Counted(course.EpochSteps, "step") + " of " +
    Counted(course.Batch, "sample") + ", and training takes " +
    (course.Epochs > 0 ? Counted(course.Epochs, "epoch") + (course.Minutes > 0 ? " or " : "") : "") +
    (course.Minutes > 0 ? DurationText(60 * course.Minutes) : "") + earlier;
}

TrainingCourse PlanTraining(const TrainingOptions& options)
{
  TrainingOptions silent = options;
  silent.Remark = silent.Warn = nullptr;
  silent.Progress = nullptr;
  return Training(silent).Plan();
}

} // namespace rcn
