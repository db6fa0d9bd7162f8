// SPDX-License-Identifier: Apache-2.0
#include "rcnTraining.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <list>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#ifndef _WIN32
#include <sys/resource.h>
#endif

#include "rcn/rcn_file.h"
#include "rcn/rcn_train.h"
#include "rcnFileBeside.h"
#include "rcnJudge.h"
#include "rcnPrediction.h"
#include "rcnProcesses.h"
#include "rcnReport.h"

namespace rcn
{

namespace fs = std::filesystem;

namespace
{

constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();

struct Deleter
{
  void operator()(rcn_target* target) const { rcn_target_destroy(target); }
  void operator()(rcn_foci* foci) const { rcn_foci_destroy(foci); }
  void operator()(rcn_net* net) const { rcn_net_destroy(net); }
  void operator()(rcn_train* train) const { rcn_train_destroy(train); }
  void operator()(rcn_calib* calib) const { rcn_calib_destroy(calib); }
  void operator()(rcn_auc* auc) const { rcn_auc_destroy(auc); }
  void operator()(rcn_file_lock* lock) const { rcn_file_lock_destroy(lock); }
};
template <class T> using Handle = std::unique_ptr<T, Deleter>;

double SecondsNow()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double PeakMegabytes(rcn_context* context)
{
#ifndef _WIN32
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0)
  {
#ifdef __APPLE__
    return static_cast<double>(usage.ru_maxrss) / 1e6;
#else
    return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
#endif
  }
#endif
  return static_cast<double>(rcn_context_peak_bytes(context)) / 1e6;
}

bool EndsWith(const std::string& text, const std::string& end)
{
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// ---- who learns, who validates ------------------------------------------------------------------

struct Split
{
  std::vector<Case> Training, Validation, Old;
};

/// Moves whole groups (patients; cases without one are their own group) to validation: those of one fold, or a share.
void DivideByPatient(Split& split, const TrainingOptions& options)
{
  std::vector<Case> pool = std::move(split.Training);
  pool.insert(pool.end(), split.Validation.begin(), split.Validation.end());
  split = Split();
  std::vector<std::string> groups;
  const auto groupOf = [](const Case& one) { return one.Patient.empty() ? "case " + one.Id : "patient " + one.Patient; };
  std::set<std::string> seen;
  for (const Case& one : pool)
  {
    if (seen.insert(groupOf(one)).second)
    {
      groups.push_back(groupOf(one));
    }
  }
  std::mt19937_64 random(options.Seed);
  for (size_t i = groups.size(); i > 1; --i) // by hand: std::shuffle differs between libraries
  {
    std::swap(groups[i - 1], groups[random() % i]);
  }
  std::set<std::string> chosen;
  if (options.Folds > 1)
  {
    if (groups.size() < static_cast<size_t>(options.Folds))
    {
      throw Error(RCN_EINVALID,
        std::to_string(options.Folds) + " folds need at least as many cases (or patients); there are " +
          std::to_string(groups.size()) + ".");
    }
    for (size_t i = static_cast<size_t>(options.Fold); i < groups.size(); i += static_cast<size_t>(options.Folds))
    {
      chosen.insert(groups[i]);
    }
  }
  else if (groups.size() > 1)
  {
    const size_t count = static_cast<size_t>(options.ValidationShare * static_cast<double>(groups.size()) + 0.5);
    chosen.insert(
      groups.begin(), groups.begin() + std::min(std::max<size_t>(count, options.ValidationShare > 0), groups.size() - 1));
  }
  for (const Case& one : pool)
  {
    (chosen.count(groupOf(one)) ? split.Validation : split.Training).push_back(one);
  }
}

Split DivideCases(const DataList& list, const TrainingOptions& options)
{
  CheckSplits(list, options.Folds > 1 || options.Split);
  Split split;
  for (const Case& one : list.Cases)
  {
    if (one.Split == "training" || one.Split == "validation")
    {
      if (one.Images.empty())
      {
        throw Error(RCN_EINVALID, list.Path + ": case " + one.Id + " has no \"image\" to learn from.");
      }
      (one.Split == "training" ? split.Training : split.Validation).push_back(one);
    }
  }
  if (split.Training.empty())
  {
    throw Error(RCN_EINVALID, list.Path + " has no case under \"training\".");
  }
  if (options.Folds > 1 || options.Split || split.Validation.empty())
  {
    DivideByPatient(split, options);
  }
  return split;
}

// ---- cases in memory ----------------------------------------------------------------------------

/// A case as it is kept: the image as read, packed votes, what the strategy makes of them.
struct LoadedCase
{
  Case Source;
  int Dimension = 0;
  rcn_geometry Geometry{};
  bool Marked = false;        // somebody marked something
  std::vector<Volume> Images; // empty: not in memory now
  std::vector<rcn_channel> Channels;
  rcn_scale Scale{};
  std::unique_ptr<rcn_votes, VotesDeleter> Votes;
  Handle<rcn_target> Target;
  Handle<rcn_foci> Foci;
  double Bytes = 0; // in memory now, or when it last was
};

/// All cases of a training, by number: new, old, validation. Beyond the memory allowed, those not used for longest
/// are let go and read again when they are needed. Memory is counted as it is taken: what the core allocates for a case, and
/// its images.
class CaseStore
{
public:
  CaseStore(Workspace& workspace, std::vector<std::string> raters, double room)
    : Workspace_(workspace), Raters_(std::move(raters)), Room_(room > 0 ? room : INFINITY)
  {
  }

  /// Most bytes that were in memory at once; what is allowed.
  double Peak() const { return this->Peak_; }
  double Room() const { return this->Room_; }

  /// What every case's votes and image become, known only after the first look at all of them.
  void SetRules(const rcn_strategy& strategy, const rcn_fusion_options& fusion, const rcn_normalize& normalize)
  {
    this->Strategy_ = strategy;
    this->Fusion_ = fusion;
    this->Normalize_ = normalize;
    this->HasRules_ = true;
    this->MakeRoom(std::isfinite(this->Room_) ? this->Room_ : 0); // how much more a case takes now shows with the first one
    for (LoadedCase& one : this->Cases_)
    {
      if (!one.Images.empty())
      {
        this->Prepare(one);
      }
    }
  }

  /// Brings all cases to common axes: those in memory, those that are read later, and what is known of the others.
  void SetAxes(const std::string& axes, bool slices)
  {
    this->Axes_ = axes;
    this->Slices_ = slices;
    for (LoadedCase& one : this->Cases_)
    {
      this->Turn(one);
    }
  }

  size_t Count() const { return this->Cases_.size(); }

  /// Gives a case a number; nothing is read yet.
  size_t Add(const Case& source)
  {
    this->Cases_.emplace_back();
    this->Cases_.back().Source = source;
    return this->Cases_.size() - 1;
  }

  /// What is known of a case, whether it is in memory or not.
  LoadedCase& Peek(size_t index) { return this->Cases_[index]; }

  /// Lets a case go that another process needs.
  void Release(size_t index)
  {
    this->Recent_.remove(index);
    this->LetGo(this->Cases_[index]);
  }

  /// The case, read if need be; throws Error that begins with its id.
  LoadedCase& Get(size_t index)
  {
    LoadedCase& one = this->Cases_[index];
    if (std::isfinite(this->Room_))
    {
      this->Recent_.remove(index);
    }
    if (one.Images.empty())
    {
      this->MakeRoom(this->Needs(one));
      try
      {
        this->Read(one);
        if (this->HasRules_)
        {
          this->Prepare(one);
        }
      }
      catch (...)
      {
        this->LetGo(one);
        throw;
      }
      this->Largest_ = std::max(this->Largest_, one.Bytes);
    }
    if (std::isfinite(this->Room_))
    {
      this->MakeRoom(0); // it may have taken more than was expected
      this->Recent_.push_back(index);
    }
    return one;
  }

private:
  /// What a case will take, before it is read: as the last time, or as the largest one so far.
  double Needs(const LoadedCase& one) const
  {
    if (one.Bytes <= 0 || (this->HasRules_ && !one.Scale.channels))
    {
      return std::max(this->Largest_, one.Bytes);
    }
    return one.Bytes;
  }

  /// Lets cases go, those not used for longest first, until there is room for so many bytes more.
  void MakeRoom(double bytes)
  {
    while (this->Held_ + bytes > this->Room_ && !this->Recent_.empty())
    {
      this->LetGo(this->Cases_[this->Recent_.front()]);
      this->Recent_.pop_front();
    }
  }

  void Account(LoadedCase& one, double bytes)
  {
    one.Bytes += bytes;
    this->Held_ += bytes;
    this->Peak_ = std::max(this->Peak_, this->Held_);
  }

  /// What the core has allocated; differences of it are what a case takes.
  double CoreBytes() const { return static_cast<double>(rcn_context_bytes(this->Workspace_.Context())); }

  void Read(LoadedCase& one)
  {
    one.Bytes = 0;
    const double before = this->CoreBytes();
    try
    {
      this->Workspace_.LoadCase(one.Source, this->Raters_);
    }
    catch (const Error& error)
    {
      throw Error(
        error.Status(), error.Status() == RCN_ECANCELLED ? error.what() : "Case " + one.Source.Id + ": " + error.what());
    }
    one.Images = this->Workspace_.TakeImages();
    one.Geometry = *rcn_votes_geometry(this->Workspace_.Votes());
    one.Votes = this->Workspace_.TakeVotes();
    for (int r = 0; r < rcn_votes_raters(one.Votes.get()); ++r)
    {
      one.Marked = one.Marked || rcn_votes_marked(one.Votes.get(), r) > 0;
    }
    this->Turn(one);
    one.Channels = ChannelsOf(one.Images);
    this->Account(one, this->CoreBytes() - before);
    for (const Volume& image : one.Images)
    {
      this->Account(one,
        static_cast<double>(rcn_geometry_voxels(&image.Geometry())) * image.ChannelCount() *
          static_cast<double>(rcn_type_size(image.View().type)));
    }
  }

  /// To the common axes; a case that could not be read has no geometry.
  void Turn(LoadedCase& one)
  {
    if (rcn_geometry_check(&one.Geometry))
    {
      return;
    }
    rcn_context* context = this->Workspace_.Context();
    const rcn_order order = rcn_order_to(this->Axes_.c_str(), &one.Geometry, this->Slices_);
    if (rcn_order_is_identity(&order))
    {
      return;
    }
    one.Geometry = rcn_geometry_reorder(&one.Geometry, &order);
    for (Volume& image : one.Images)
    {
      image = image.Reordered(context, order);
    }
    one.Channels = ChannelsOf(one.Images);
    if (one.Votes)
    {
      Check(rcn_votes_reorder(one.Votes.get(), context, &order), context, "Case " + one.Source.Id);
    }
  }

  void Prepare(LoadedCase& one)
  {
    const double before = this->CoreBytes();
    rcn_context* context = this->Workspace_.Context();
    const std::string about = "Case " + one.Source.Id;
    one.Scale = FitScale(context, this->Normalize_, one.Images, about);
    rcn_target* target = nullptr;
    Check(rcn_target_create(&target, context, one.Votes.get(), &this->Strategy_, &this->Fusion_), context, about);
    one.Target.reset(target);
    rcn_foci* foci = nullptr;
    Check(rcn_foci_create(&foci, context, one.Votes.get()), context, about);
    one.Foci.reset(foci);
    this->Account(one, this->CoreBytes() - before);
  }

  void LetGo(LoadedCase& one)
  {
    this->Held_ -= one.Images.empty() ? 0 : one.Bytes;
    one.Images.clear();
    one.Channels.clear();
    one.Votes.reset();
    one.Target.reset();
    one.Foci.reset();
  }

  Workspace& Workspace_;
  std::vector<std::string> Raters_;
  double Room_, Held_ = 0, Peak_ = 0, Largest_ = 0; // bytes
  rcn_strategy Strategy_{};
  rcn_fusion_options Fusion_ = RCN_FUSION_OPTIONS_INIT;
  rcn_normalize Normalize_ = RCN_NORMALIZE_INIT;
  bool HasRules_ = false;
  std::string Axes_; // see SetAxes()
  bool Slices_ = false;
  std::vector<LoadedCase> Cases_;
  std::list<size_t> Recent_; // last used last
};

double NumberAt(const json_t* object, const char* key)
{
  const json_t* value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NotANumber;
}

/// A count of a checkpoint, where anything may stand: 0 when it is none or beyond reason.
int CountAt(const json_t* object, const char* key)
{
  const double value = NumberAt(object, key);
  return value >= 0 && value <= 1 << 30 ? static_cast<int>(value) : 0;
}

// ---- one training -------------------------------------------------------------------------------

class Training
{
public:
  explicit Training(const TrainingOptions& options)
    : Options_(options), Processes_(Processes::All()), Workspace_(options.Workspace), Context_(this->Workspace_.Context())
  {
    this->Workspace_.SetProgress([this](double fraction, const char* stage) { return this->OnProgress(fraction, stage); });
  }

  TrainingResult Run();

private:
  void ClaimFiles();
  bool IsInPlace() const;
  void ReadCases();
  void ReadAll(const std::vector<Case>& cases, std::vector<size_t>& numbers, std::vector<std::string>* names, bool inTurns);
  int OwnerOf(size_t index, size_t count, bool inTurns) const;
  bool IsMine(size_t index, size_t count, bool inTurns) const;
  void ShareCases();
  void AdoptBatch();
  JsonHandle CheckpointState() const;
  double Agree(double at);
  void ChooseNetwork();
  void ChooseAxes();
  void ChooseSamples();
  void ChooseNormalization();
  void MakeNetwork();
  void MakeTraining();
  std::vector<double> LevelShares();
  JsonHandle Protocol() const;
  bool ResumeState();
  void SaveCheckpoint();
  void SaveBest();
  void WriteLog() const;
  void FinishEpoch();
  void CompareWithStart();
  void AsStart(const std::function<void()>& judge);
  void CopyStart() const;
  void JudgeBest(bool resumed);
  TrainingEpoch Validate(rcn_net* net, const rcn_loss* loss, const float* lossValues);
  EvaluationReport Judge(rcn_net* net, const rcn_loss* loss, const float* lossValues, const std::string& readout);
  Volume PredictLevels(rcn_net* net, const rcn_loss* loss, const float* lossValues, LoadedCase& one);
  void Loop();
  void Remark(const std::string& sentence) const;
  void Warn(const std::string& sentence) const;
  void LeaveOut(const std::string& id, const std::string& sentence);
  bool OnProgress(double fraction, const char* stage);
  double SecondsTrained() const { return this->SecondsBefore_ + SecondsNow() - this->Start_; }
  static rcn_status GiveCase(rcn_train_case* out, int64_t index, void* payload);

  const TrainingOptions& Options_;
  Processes& Processes_;
  Workspace Workspace_;
  rcn_context* Context_;
  DataList List_;
  std::vector<std::string> Raters_;
  std::unique_ptr<CaseStore> Store_;
  std::vector<size_t> New_, Old_, Validation_; // numbers in the store
  Handle<rcn_file_lock> Lock_;                 // of the first process
  std::unique_ptr<Model> Init_;                // a whole model to go on from
  bool InitIsEncoder_ = false;
  rcn_net_options Net_ = RCN_NET_OPTIONS_INIT;
  rcn_train_options Train_ = RCN_TRAIN_OPTIONS_INIT;
  rcn_normalize Normalize_ = RCN_NORMALIZE_INIT;
  std::string Axes_;               // of volumes, see rcn_orient.h; empty: there are none
  double PixelSize_[2] = { 0, 0 }; // of slices
  std::string StrategyName_;
  Handle<rcn_net> Network_;
  Handle<rcn_train> Trainer_;
  std::string CaseError_; // of GiveCase
  rcn_status CaseStatus_ = RCN_OK;

  TrainingResult Result_;
  double BestRps_ = INFINITY;
  int SinceBest_ = 0;
  bool Finished_ = false;
  bool HasCheckpoint_ = false; // of this training
  bool LabelsSaid_ = false;
  TrainingEpoch Pending_; // of the epoch under way
  double SecondsBefore_ = 0, Start_ = 0, LastCheckpoint_ = 0, ValidationSeconds_ = 0;

  // what OnProgress() shows
  enum class Doing
  {
    Reading,
    Stepping,
    Validating
  } Doing_ = Doing::Reading;
  bool StopAsked_ = false, Stop_ = false; // of this process; of all of them
  TrainingProgress Progress_;
};

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
  }
  if (this->Processes_.AreSeveral()) // nobody leaves the others waiting: they agree before each step
  {
    return this->StopAsked_ && this->Doing_ == Doing::Reading;
  }
  this->Stop_ = this->StopAsked_;
  return this->Stop_ && this->Doing_ != Doing::Stepping;
}

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

void Training::ReadCases()
{
  const double start = SecondsNow();
  this->List_ = this->Options_.List ? *this->Options_.List : ReadDataList(this->Options_.Data);
  this->Raters_ = this->Result_.Raters = this->List_.Raters;
  Split split = DivideCases(this->List_, this->Options_);
  if (!this->Options_.Rehearse.empty())
  {
    const DataList old = ReadDataList(this->Options_.Rehearse);
    if (old.Raters != this->Raters_)
    {
      throw Error(RCN_EINVALID, this->Options_.Rehearse + " has other raters than " + this->List_.Path + ".");
    }
    for (const Case& one : old.Cases)
    {
      if (one.Split == "training")
      {
        split.Old.push_back(one);
      }
    }
    if (split.Old.empty())
    {
      throw Error(RCN_EINVALID, this->Options_.Rehearse + " has no case under \"training\".");
    }
    // Of images only: patients of two lists may have the same name by chance.
    DataList both;
    both.Path = this->Options_.Rehearse + " and " + this->List_.Path;
    const auto add = [&both](Case one, const char* name) {
      one.Split = name;
      one.Patient.clear();
      both.Cases.push_back(one);
    };
    for (const Case& one : split.Old)
    {
      add(one, "training");
    }
    for (const Case& one : split.Validation)
    {
      add(one, "validation");
    }
    CheckSplits(both);
  }
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
    throw Error(RCN_EDATA, this->List_.Path + ": nobody marked anything in any training case; there is nothing to learn.");
  }
  if (this->Validation_.empty() && this->IsInPlace())
  {
    throw Error(RCN_EINVALID,
      this->List_.Path + " has no validation case that could tell whether a retrained " + this->Options_.Output +
        " is better; add some, or write to another file.");
  }
  if (this->Validation_.empty())
  {
    this->Remark("There is no validation case: the last model is kept, and nothing tells how good it is.");
  }
  this->Result_.SecondsReading = SecondsNow() - start;
}

/// Which network, by the options or by the model to go on from; and whether raters and channels fit it.
void Training::ChooseNetwork()
{
  const int channels = this->Net_.channels;
  this->StrategyName_ = this->Options_.Strategy;
  this->Net_ = this->Options_.Net;
  if (!this->Options_.Init.empty())
  {
    char* arch = nullptr;
    Check(rcn_model_read(&arch, this->Context_, this->Options_.Init.c_str(), "arch"), this->Context_);
    this->InitIsEncoder_ = !arch;
    rcn_model_free(arch, this->Context_);
    if (this->InitIsEncoder_ && this->IsInPlace())
    {
      throw Error(
        RCN_EINVALID, this->Options_.Init + " holds an encoder's weights and is no model to retrain; write to another file.");
    }
  }
  if (!this->Options_.Init.empty() && !this->InitIsEncoder_)
  {
    this->Init_.reset(new Model(this->Context_, this->Options_.Init));
    const rcn_net_options& from = this->Init_->Options();
    if (this->Options_.HasNet && from.arch != this->Options_.Net.arch)
    {
      throw Error(RCN_EINVALID,
        this->Options_.Init + " is a " + rcn_arch_name(from.arch) + ", not a " + rcn_arch_name(this->Options_.Net.arch) +
          "; leave --arch out to go on with it.");
    }
    if (from.channels != channels)
    {
      throw Error(RCN_EINVALID,
        this->Options_.Init + " takes images of " + Counted(from.channels, "channel") + "; those of " + this->List_.Path +
          " have " + std::to_string(channels) + ".");
    }
    if (this->Init_->Info().Raters.size() != this->Raters_.size())
    {
      throw Error(RCN_EINVALID,
        this->Options_.Init + " has learned from " + Counted(static_cast<int64_t>(this->Init_->Info().Raters.size()), "rater") +
          "; " + this->List_.Path + " has " + std::to_string(this->Raters_.size()) + ".");
    }
    if (!this->Options_.OtherRaters)
    {
      this->Init_->CheckRaters(this->Raters_, this->List_.Path);
    }
    this->Net_ = from;
    if (this->StrategyName_.empty())
    {
      this->StrategyName_ = this->Init_->Info().Strategy;
    }
  }
  if (this->StrategyName_.empty())
  {
    this->StrategyName_ = "rps";
  }
  if (rcn_strategy_parse(&this->Train_.strategy, this->StrategyName_.c_str()) != RCN_OK)
  {
    throw Error(RCN_EINVALID, "There is no strategy '" + this->StrategyName_ + "'.");
  }
  this->Train_.loss.kind = this->Train_.strategy.loss;
  this->Train_.loss.raters = static_cast<int>(this->Raters_.size());
  this->Train_.loss.alpha = this->Options_.Alpha;
  this->Train_.loss.bce_weight = this->Options_.BceWeight;
  this->Train_.loss.expected_weight = this->Options_.ExpectedWeight;
  this->Train_.loss.unimodal_weight = this->Options_.UnimodalWeight;
  this->Train_.loss.tie_background = this->Options_.TieBackground;
  rcn_loss* loss = nullptr;
  Check(rcn_loss_create(&loss, this->Context_, &this->Train_.loss), this->Context_);
  const int outputs = rcn_loss_channels(loss);
  rcn_loss_destroy(loss);
  if (this->Init_ && this->Net_.outputs != outputs)
  {
    throw Error(RCN_EINVALID,
      this->Options_.Init + " gives " + std::to_string(this->Net_.outputs) + " numbers per voxel, but " + this->StrategyName_ +
        " needs " + std::to_string(outputs) + "; go on with its own strategy.");
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
        throw Error(
          RCN_EDATA, "Case " + one.Source.Id + " is a slice; unet3d learns from volumes, unet and fpn-resnet from slices.");
      }
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
  const int64_t usualBatch = std::max<int64_t>(2, std::min<int64_t>(16, std::llround(262144 / size)));
  const int64_t processes = this->Processes_.Count();
  this->Train_.batch = this->Options_.Batch > 0 ? this->Options_.Batch * processes : std::max(usualBatch, processes);
}

/// Training that goes on with another number of processes keeps the size of its steps.
void Training::AdoptBatch()
{
  const JsonHandle state = this->CheckpointState();
  const json_t* then = json_object_get(state.get(), "protocol");
  const int64_t batch = CountAt(then, "--batch");
  const int64_t processes = std::max(1, CountAt(state.get(), "processes"));
  if (json_is_object(then) && batch != this->Train_.batch && batch >= this->Processes_.Count() &&
    (this->Options_.Batch == 0 || (processes != this->Processes_.Count() && this->Options_.Batch * processes == batch)))
  {
    this->Train_.batch = batch;
    this->Remark("Training goes on with steps of " + Counted(batch, "sample") + ", as it began with " +
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
  if (this->Init_)
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
  train.cases = static_cast<int64_t>(this->New_.size());
  train.old_cases = static_cast<int64_t>(this->Old_.size());
  train.freeze_encoder = this->Options_.FreezeEncoder;
  train.seed = this->Options_.Seed;
  train.comm = this->Processes_.Comm();
  train.local_norms = this->Options_.LocalNorms;
  train.optim.weight_decay = this->Options_.WeightDecay;
  train.optim.kind = this->Options_.WeightDecay > 0 ? RCN_OPTIM_ADAMW : RCN_OPTIM_ADAM;
  train.optim.clip_norm = this->Options_.ClipNorm;
  train.schedule.kind = this->Options_.Schedule;
  train.schedule.rate = this->Options_.Rate;
  train.schedule.steps = std::max<int64_t>(2, rcn_train_epoch_steps(&train) * this->Options_.Epochs);
  train.schedule.warmup = std::min(
    train.schedule.steps - 1, static_cast<int64_t>(this->Options_.Warmup * static_cast<double>(train.schedule.steps) + 0.5));
  rcn_train* created = nullptr;
  Check(rcn_train_create(&created, this->Context_, this->Network_.get(), &train, GiveCase, this), this->Context_);
  this->Trainer_.reset(created);
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
      this->Store_->Release(
        i < this->Train_.cases ? this->New_[static_cast<size_t>(i)] : this->Old_[static_cast<size_t>(i - this->Train_.cases)]);
    }
  }
}

/// How often each level occurs in the cases of all processes.
std::vector<double> Training::LevelShares()
{
  const size_t raters = this->Raters_.size();
  std::vector<double> shares(raters + 1, 0);
  for (size_t i = 0; i < this->New_.size(); ++i)
  {
    if (!this->IsMine(i, this->New_.size(), false))
    {
      continue;
    }
    const LoadedCase& one = this->Store_->Get(this->New_[i]);
    rcn_target_add_levels(shares.data(), one.Target.get(), one.Votes.get());
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

/// C++ exceptions must not pass through the core: kept here and thrown after the step.
rcn_status Training::GiveCase(rcn_train_case* out, int64_t index, void* payload)
{
  Training* self = static_cast<Training*>(payload);
  try
  {
    const size_t number = static_cast<size_t>(index);
    const LoadedCase& one =
      self->Store_->Get(number < self->New_.size() ? self->New_[number] : self->Old_[number - self->New_.size()]);
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

// ---- validation ---------------------------------------------------------------------------------

/// Levels of a whole case, as components of voxels; volumes by way of the spacing that is trained on, as in use.
Volume Training::PredictLevels(rcn_net* net, const rcn_loss* loss, const float* lossValues, LoadedCase& one)
{
  LevelsOptions how;
  how.Net = net;
  how.Loss = loss;
  how.LossParameters = lossValues;
  how.Normalization = &this->Normalize_;
  how.Spacing = this->Net_.arch == RCN_UNET3D ? this->Net_.spacing : nullptr;
  return rcn::PredictLevels(this->Context_, how, one.Images, "Case " + one.Source.Id);
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
  this->Doing_ = Doing::Validating;
  this->Progress_.Stage = "validating";
  const int raters = static_cast<int>(this->Raters_.size());
  rcn_calib_options half = RCN_CALIB_OPTIONS_INIT, expected = RCN_CALIB_OPTIONS_INIT;
  half.readout = this->Options_.TieBackground ? RCN_READOUT_MORE_THAN_HALF : RCN_READOUT_MAJORITY;
  expected.readout = RCN_READOUT_EXPECTED;
  rcn_calib *whole = nullptr, *majority = nullptr, *mean = nullptr;
  Check(rcn_calib_create(&whole, this->Context_, raters, nullptr), this->Context_);
  const Handle<rcn_calib> keepWhole(whole);
  Check(rcn_calib_create(&majority, this->Context_, raters, &half), this->Context_);
  const Handle<rcn_calib> keepMajority(majority);
  Check(rcn_calib_create(&mean, this->Context_, raters, &expected), this->Context_);
  const Handle<rcn_calib> keepMean(mean);
  rcn_auc* auc = nullptr;
  Check(rcn_auc_create(&auc, this->Context_, raters, half.readout, 0), this->Context_);
  const Handle<rcn_auc> keepAuc(auc);
  rcn_region_options box = RCN_REGION_OPTIONS_INIT;
  box.region = RCN_REGION_BOX;
  std::vector<uint8_t> region;
  for (size_t i = 0; i < this->Validation_.size(); ++i)
  {
    if (!this->IsMine(i, this->Validation_.size(), true))
    {
      continue;
    }
    LoadedCase& one = this->Store_->Get(this->Validation_[i]);
    const Volume levels = this->PredictLevels(net, loss, lossValues, one);
    region.resize(static_cast<size_t>(rcn_geometry_voxels(&one.Geometry)));
    Check(rcn_region_fill(region.data(), nullptr, this->Context_, one.Votes.get(), &box), this->Context_);
    rcn_calib_case judged = { one.Votes.get(), levels.View(), nullptr, nullptr };
    const std::string about = "Case " + one.Source.Id;
    Check(rcn_calib_add(whole, this->Context_, &judged), this->Context_, about);
    judged.region = region.data();
    Check(rcn_calib_add(majority, this->Context_, &judged), this->Context_, about);
    Check(rcn_calib_add(mean, this->Context_, &judged), this->Context_, about);
    Check(rcn_auc_add(auc, this->Context_, &judged), this->Context_, about);
  }
  for (rcn_calib* sums : { whole, majority, mean })
  {
    Check(rcn_calib_share(sums, this->Context_, this->Processes_.Comm()), this->Context_);
  }
  double figures[RCN_FIGURES];
  rcn_calib_figures(figures, whole);
  // With raters missing in every case there is no RPS of all K; the Brier score against those who answered is as proper.
  epoch.Rps = std::isfinite(figures[RCN_RPS]) ? figures[RCN_RPS] : figures[RCN_BRIER];
  rcn_calib_figures(figures, mean);
  epoch.ExpectedMrEce = figures[RCN_MR_ECE];
  rcn_calib_figures(figures, majority);
  epoch.MajorityMrEce = figures[RCN_MR_ECE];
  epoch.Dice = figures[RCN_DICE];
  rcn_auc_result area;
  Check(rcn_auc_compute_shared(&area, this->Context_, auc, this->Processes_.Comm()), this->Context_);
  epoch.Auc = area.reference;
  this->ValidationSeconds_ = SecondsNow() - start;
  this->Result_.SecondsValidating += this->ValidationSeconds_;
  return epoch;
}

EvaluationReport Training::Judge(rcn_net* net, const rcn_loss* loss, const float* lossValues, const std::string& readout)
{
  EvaluationOptions& options = this->Result_.Judged;
  options.Region.region = this->Options_.Region;
  options.Calib.bins = this->Options_.Bins;
  ChooseReadout(options, readout, "", this->Options_.TieBackground);
  Judging judging(this->Context_, this->Raters_, { { 0, options } });
  this->Doing_ = Doing::Validating;
  this->Progress_.Stage = "judging";
  for (size_t i = 0; i < this->Validation_.size(); ++i)
  {
    if (!this->IsMine(i, this->Validation_.size(), true))
    {
      continue;
    }
    LoadedCase& one = this->Store_->Get(this->Validation_[i]);
    const Volume levels = this->PredictLevels(net, loss, lossValues, one);
    judging.Add(one.Source, i, one.Votes.get(), { { levels, "The prediction of " + one.Source.Id } });
  }
  Evaluation& evaluation = *judging.Evaluations().front();
  evaluation.Share(this->Processes_);
  return evaluation.CaseIds().empty() ? EvaluationReport() : evaluation.Report(); // no reason to lose a model over it
}

// ---- files --------------------------------------------------------------------------------------

/// Everything that decides the bits of a training, by the names that a person gave it with.
JsonHandle Training::Protocol() const
{
  const rcn_train_options& train = this->Train_;
  const rcn_augment& augment = train.sample.augment;
  JsonHandle root(json_object());
  const auto number = [&root](const char* key, double value) { json_object_set_new(root.get(), key, JsonNumber(value)); };
  const auto text = [&root](
                      const char* key, const std::string& value) { json_object_set_new(root.get(), key, JsonString(value)); };
  text("--strategy", this->StrategyName_);
  text("--arch", rcn_arch_name(this->Net_.arch));
  number("--width", this->Net_.width);
  number("--depth", this->Net_.depth);
  number("--norm", this->Net_.norm);
  number("--dropout", this->Net_.dropout);
  text("--init", this->Options_.Init);
  number("--freeze", train.freeze_encoder);
  if (train.local_norms)
  {
    text("--batch-norm", "local");
  }
  number("--epochs", this->Options_.Epochs);
  number("--minutes", this->Options_.Minutes);
  number("--batch", static_cast<double>(train.batch));
  number("--samples", static_cast<double>(train.samples));
  number("--rate", train.schedule.rate);
  number("--schedule", train.schedule.kind);
  number("--warmup", static_cast<double>(train.schedule.warmup));
  number("--weight-decay", train.optim.weight_decay);
  number("--clip", train.optim.clip_norm);
  number("--alpha", train.loss.alpha);
  number("--bce-weight", train.loss.bce_weight);
  number("--expected-weight", train.loss.expected_weight);
  number("--unimodal-weight", train.loss.unimodal_weight);
  number("--tie", train.loss.tie_background);
  number("--sigma", this->Options_.Sigma);
  number("--seed", static_cast<double>(train.seed));
  number("--patience", this->Options_.Patience);
  number("--foreground", train.sample.foreground);
  text("--normalize", NormalizationText(this->Normalize_));
  text("--readout", this->Options_.Readout);
  json_t* sizes = json_array();
  json_t* spacing = json_array();
  for (int a = 0; a < 3; ++a)
  {
    json_array_append_new(sizes, json_integer(train.sample.size[a]));
    json_array_append_new(spacing, JsonNumber(train.sample.spacing[a]));
  }
  json_object_set_new(root.get(), "--patch", sizes);
  json_object_set_new(root.get(), "--spacing", spacing);
  json_t* varied = json_array();
  for (const double amount : { static_cast<double>(augment.flips), static_cast<double>(augment.turns), augment.share,
         augment.rotate, augment.scale, augment.shear, augment.shift, augment.elastic, augment.gamma, augment.brightness,
         augment.contrast, augment.noise, augment.blur })
  {
    json_array_append_new(varied, JsonNumber(amount));
  }
  json_object_set_new(root.get(), "--augment", varied);
  json_object_set_new(root.get(), "raters", JsonStrings(this->Raters_));
  json_object_set_new(root.get(), "training cases", JsonStrings(this->Result_.TrainingCases));
  json_object_set_new(root.get(), "validation cases", JsonStrings(this->Result_.ValidationCases));
  number("old cases", static_cast<double>(this->Old_.size()));
  return root;
}

json_t* EpochJson(const TrainingEpoch& epoch)
{
  json_t* json = json_object();
  json_object_set_new(json, "epoch", json_integer(epoch.Epoch));
  json_object_set_new(json, "rate", JsonNumber(epoch.Rate));
  json_object_set_new(json, "loss", JsonNumber(epoch.Loss));
  json_object_set_new(json, "rps", JsonNumber(epoch.Rps));
  json_object_set_new(json, "mr_ece_majority", JsonNumber(epoch.MajorityMrEce));
  json_object_set_new(json, "mr_ece_expected", JsonNumber(epoch.ExpectedMrEce));
  json_object_set_new(json, "auc", JsonNumber(epoch.Auc));
  json_object_set_new(json, "dice", JsonNumber(epoch.Dice));
  json_object_set_new(json, "seconds", JsonNumber(epoch.Seconds));
  json_object_set_new(json, "megabytes", JsonNumber(epoch.Megabytes));
  json_object_set_new(json, "best", json_boolean(epoch.Best));
  return json;
}

TrainingEpoch EpochFrom(const json_t* json)
{
  TrainingEpoch epoch;
  epoch.Epoch = CountAt(json, "epoch");
  epoch.Rate = NumberAt(json, "rate");
  epoch.Loss = NumberAt(json, "loss");
  epoch.Rps = NumberAt(json, "rps");
  epoch.MajorityMrEce = NumberAt(json, "mr_ece_majority");
  epoch.ExpectedMrEce = NumberAt(json, "mr_ece_expected");
  epoch.Auc = NumberAt(json, "auc");
  epoch.Dice = NumberAt(json, "dice");
  epoch.Seconds = NumberAt(json, "seconds");
  epoch.Megabytes = NumberAt(json, "megabytes");
  epoch.Best = json_is_true(json_object_get(json, "best"));
  return epoch;
}

json_t* EpochsJson(const std::vector<TrainingEpoch>& epochs)
{
  json_t* array = json_array();
  for (const TrainingEpoch& epoch : epochs)
  {
    json_array_append_new(array, EpochJson(epoch));
  }
  return array;
}

void Training::WriteLog() const
{
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  std::string text = CsvRow(
    { "epoch", "rate", "loss", "rps", "mr_ece_majority", "mr_ece_expected", "auc", "dice", "seconds", "megabytes", "best" });
  for (const TrainingEpoch& epoch : this->Result_.Epochs)
  {
    text += CsvRow({ std::to_string(epoch.Epoch), CsvNumber(epoch.Rate), CsvNumber(epoch.Loss), CsvNumber(epoch.Rps),
      CsvNumber(epoch.MajorityMrEce), CsvNumber(epoch.ExpectedMrEce), CsvNumber(epoch.Auc), CsvNumber(epoch.Dice),
      CsvNumber(epoch.Seconds), CsvNumber(epoch.Megabytes), epoch.Best ? "1" : "0" });
  }
  WriteText(this->Result_.Log, text);
}

void Training::SaveCheckpoint()
{
  this->LastCheckpoint_ = SecondsNow();
  this->HasCheckpoint_ = true;
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  const JsonHandle state(json_object());
  json_object_set_new(state.get(), "protocol", this->Protocol().release());
  json_object_set_new(state.get(), "epochs", EpochsJson(this->Result_.Epochs));
  json_object_set_new(state.get(), "pending", EpochJson(this->Pending_));
  json_object_set_new(state.get(), "best", json_integer(this->Result_.Best));
  json_object_set_new(state.get(), "best_rps", JsonNumber(this->BestRps_));
  json_object_set_new(state.get(), "since_best", json_integer(this->SinceBest_));
  json_object_set_new(state.get(), "readout", JsonString(this->Result_.Readout));
  json_object_set_new(state.get(), "seconds", JsonNumber(this->SecondsTrained()));
  json_object_set_new(state.get(), "finished", json_boolean(this->Finished_));
  json_object_set_new(state.get(), "processes", json_integer(this->Processes_.Count()));
  const std::string text = JsonText(state.get());
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
  char* text = nullptr;
  Check(rcn_model_read(&text, this->Context_, path.c_str(), "training"), this->Context_);
  JsonHandle state(text ? json_loads(text, 0, nullptr) : nullptr);
  rcn_model_free(text, this->Context_);
  if (!json_is_object(json_object_get(state.get(), "protocol")))
  {
    throw Error(RCN_EFORMAT, path + " is no checkpoint of a training.");
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
    this->Remark("There is no " + path + " yet: training starts from the beginning.");
    return false;
  }
  const json_t* then = json_object_get(state.get(), "protocol");
  const JsonHandle now = this->Protocol();
  const char* key;
  json_t* value;
  json_object_foreach(now.get(), key, value)
  {
    if (!json_equal(value, json_object_get(then, key)))
    {
      throw Error(RCN_EINVALID,
        path + " was made with another value of " + key +
          "; resume with the options that it was started with, or start anew with --overwrite instead of --resume.");
    }
  }
  Check(rcn_train_load(this->Trainer_.get(), path.c_str()), this->Context_);
  size_t index;
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

void Training::SaveBest()
{
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  ModelInfo info;
  info.Raters = this->Raters_;
  info.Normalization = this->Normalize_;
  info.Strategy = this->StrategyName_;
  info.Loss = this->Train_.strategy.loss;
  const int count = rcn_loss_parameters(rcn_train_loss(this->Trainer_.get()));
  const float* values = rcn_train_loss_values(this->Trainer_.get());
  info.LossParameters.assign(values, values + (values ? count : 0));
  ParseReadout(info.Readout, info.AtLeast, this->Result_.Readout);
  info.TieBackground = this->Options_.TieBackground;
  info.Axes = this->Axes_;
  std::copy(this->PixelSize_, this->PixelSize_ + 2, info.PixelSize);
  const JsonHandle protocol = this->Protocol();
  SaveModel(this->Context_, this->Result_.Model, this->Network_.get(), info, { { "training", JsonText(protocol.get()) } });
}

// ---- the course ---------------------------------------------------------------------------------

void Training::FinishEpoch()
{
  TrainingEpoch epoch =
    this->Validate(this->Network_.get(), rcn_train_loss(this->Trainer_.get()), rcn_train_loss_values(this->Trainer_.get()));
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
    if (this->Result_.Best == 0 && this->Init_ && this->Init_->Info().Correction)
    {
      this->Warn("The correction in " + this->Options_.Init +
        " was fitted to its weights and is dropped with them; fit a new one with "
        "rater-consensus recalibrate.");
    }
    this->Result_.Readout = this->Options_.Readout == "auto"
      ? (!this->Train_.strategy.fused && epoch.ExpectedMrEce < epoch.MajorityMrEce ? "expected" : "majority")
      : this->Options_.Readout;
    if (this->Options_.TieBackground && this->Result_.Readout == "majority")
    {
      this->Result_.Readout = rcn_readout_name(RCN_READOUT_MORE_THAN_HALF); // the majority that was trained
    }
    this->SaveBest();
    // Only once it is on disk: when writing is cancelled, the epoch is validated again, and must win again.
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

void Training::Loop()
{
  const int64_t epochSteps = rcn_train_epoch_steps(&this->Train_);
  const int64_t steps = epochSteps * this->Options_.Epochs;
  const double budget = 60 * this->Options_.Minutes;
  int64_t step = 0, epoch = 0, begun = 0;
  rcn_train_where(&step, &epoch, this->Trainer_.get());
  begun = step;
  this->LastCheckpoint_ = SecondsNow();
  const double from = SecondsNow();
  bool timeUp = false;
  while (!this->Finished_ && !this->Stop_)
  {
    // An epoch whose validation was interrupted is validated first.
    if (this->Pending_.Epoch > (this->Result_.Epochs.empty() ? 0 : this->Result_.Epochs.back().Epoch))
    {
      this->FinishEpoch();
      this->Finished_ = step >= steps || timeUp || (this->Options_.Patience > 0 && this->SinceBest_ >= this->Options_.Patience);
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
      this->Remark("The loss got out of hand at step " + std::to_string(step + 1) + "; training goes back to epoch " +
        std::to_string(report.epoch) + " and on with half the rate.");
      continue;
    }
    this->Result_.SecondsDrawing += report.draw_seconds;
    this->Result_.SecondsStepping += report.net_seconds;
    this->Result_.SecondsWaiting += report.comm_seconds;
    this->Result_.Steps = step;
    timeUp = at >= 1;
    this->Progress_.Epoch = static_cast<int>(report.epoch_done ? report.epoch : report.epoch + 1);
    this->Progress_.Epochs = this->Options_.Epochs;
    this->Progress_.Loss = report.epoch_loss;
    const double perStep = (SecondsNow() - from) / static_cast<double>(step - begun); // validation included
    this->Progress_.Fraction = std::max(static_cast<double>(step) / static_cast<double>(steps), at);
    this->Progress_.SecondsLeft = perStep * static_cast<double>(steps - step);
    if (budget > 0)
    {
      this->Progress_.SecondsLeft = std::min(this->Progress_.SecondsLeft, budget - this->SecondsTrained());
    }
    if (report.epoch_done || timeUp)
    {
      this->Pending_ = TrainingEpoch();
      this->Pending_.Epoch = static_cast<int>(report.epoch_done ? report.epoch : report.epoch + 1);
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

/// The file that training goes on from is the one that it writes.
bool Training::IsInPlace() const
{
  std::error_code ignored;
  return !this->Options_.Init.empty() && fs::equivalent(this->Options_.Init, this->Options_.Output, ignored);
}

/// Nobody else writes them from here on, and nothing that is there is replaced unless a person said so: with --overwrite, with
/// --resume, which goes on from a checkpoint, or by naming the model to go on from.
void Training::ClaimFiles()
{
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  for (const std::string& path : TrainingFiles(this->Options_.Output))
  {
    const std::string sentence = FileBeside::Check(path);
    if (!sentence.empty())
    {
      throw Error(RCN_EIO, sentence);
    }
  }
  rcn_file_lock* lock = nullptr;
  Check(rcn_file_lock_create(&lock, this->Context_, this->Options_.Output.c_str()), this->Context_);
  this->Lock_.reset(lock);
  std::error_code ignored;
  const bool canResume = fs::exists(this->Result_.Checkpoint, ignored);
  const std::string file = TrainingFileInTheWay(this->Options_.Output);
  if (file.empty() || this->Options_.Overwrite || (this->Options_.Resume && canResume) || this->IsInPlace())
  {
    return;
  }
  throw Error(RCN_EINVALID,
    file + " exists already" +
      (canResume ? "; use --resume to go on with its training, --overwrite to replace it, or another -o."
          : this->Options_.Resume
          ? ", and there is no " + this->Result_.Checkpoint + " to resume from; use --overwrite to replace it, or another -o."
          : "; use --overwrite to replace it, or another -o."));
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
    this->Normalize_ = ours; // a checkpoint is written when this was cancelled
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
  if (this->IsInPlace())
  {
    return;
  }
  FileBeside beside(this->Options_.Output);
  std::error_code failure;
  fs::copy_file(this->Options_.Init, beside.Path(), fs::copy_options::overwrite_existing, failure);
  if (failure)
  {
    throw Error(
      RCN_EIO, this->Options_.Init + " cannot be copied to " + this->Options_.Output + ": " + failure.message() + ".");
  }
  beside.Commit();
}

/// The best model, and the one that training started from.
void Training::JudgeBest(bool resumed)
{
  const Model best(this->Context_, this->Result_.Model);
  const std::string readout = ReadoutText(best.Info().Readout, best.Info().AtLeast);
  const auto valuesOf = [](const Model& model) {
    return model.Info().LossParameters.empty() ? nullptr : model.Info().LossParameters.data();
  };
  // After a break, the file to go on from may be the one that was replaced.
  if (this->Init_ && !(resumed && this->IsInPlace() && !this->Result_.KeptStart))
  {
    this->AsStart(
      [&] { this->Result_.Before = this->Judge(this->Init_->Net(), this->Init_->Loss(), valuesOf(*this->Init_), readout); });
    this->Result_.HasBefore = this->Result_.Before.Cases > 0;
  }
  this->Result_.After =
    this->Result_.KeptStart ? this->Result_.Before : this->Judge(best.Net(), best.Loss(), valuesOf(best), readout);
}

TrainingResult Training::Run()
{
  this->Result_.Model = this->Options_.Output;
  const std::vector<std::string> files = TrainingFiles(this->Options_.Output);
  this->Result_.Checkpoint = files[1];
  this->Result_.Log = files[2];
  this->ClaimFiles();
  this->ReadCases();
  this->ChooseNetwork();
  this->ChooseAxes();
  this->ChooseSamples();
  this->AdoptBatch();
  this->ChooseNormalization();
  this->MakeNetwork();
  this->MakeTraining();
  if (this->Store_->Peak() > this->Store_->Room())
  {
    this->Remark("One case alone takes more memory than --cache-gb allows: " + Fixed(this->Store_->Peak() / 1e9, 3) + " GB.");
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
    this->Doing_ = Doing::Stepping; // writing is not cancelled
    this->SaveCheckpoint();
    this->Processes_.WaitForAll(); // nobody ends before it is written
    this->Result_.Interrupted = true;
    return std::move(this->Result_);
  }
  this->Result_.KeptStart = this->Init_ && !this->Validation_.empty() && this->Result_.Best == 0;
  this->Result_.DroppedCorrection = this->Init_ && !this->Result_.KeptStart && this->Init_->Info().Correction;
  if (this->Result_.KeptStart && this->Processes_.IsFirst())
  {
    this->CopyStart();
  }
  this->Processes_.WaitForAll(); // the model is written
  if (!this->Validation_.empty())
  {
    this->JudgeBest(resumed);
  }
  this->Result_.CacheBytes = this->Store_->Peak();
  return std::move(this->Result_);
}

} // namespace

// ---- the interface ------------------------------------------------------------------------------

std::vector<std::string> TrainingFiles(const std::string& model)
{
  const std::string ending = ".safetensors";
  const std::string stem = EndsWith(model, ending) ? model.substr(0, model.size() - ending.size()) : model;
  return { model, stem + ".checkpoint" + ending, stem + ".log.csv" };
}

std::string TrainingFileInTheWay(const std::string& model)
{
  std::error_code ignored;
  for (const std::string& file : TrainingFiles(model))
  {
    if (fs::exists(file, ignored))
    {
      return file;
    }
  }
  return "";
}

std::string RemoveTraining(const std::string& model)
{
  for (const std::string& file : TrainingFiles(model))
  {
    std::error_code failure;
    fs::remove(file, failure);
    if (failure)
    {
      return file + " cannot be removed: " + failure.message() + ".";
    }
  }
  return "";
}

std::string CheckTraining(const TrainingOptions& options)
{
  rcn_strategy strategy;
  if (!options.List && options.Data.empty())
  {
    return "Say what to learn from with --data LIST.";
  }
  if (!EndsWith(options.Output, ".safetensors"))
  {
    return "Say where to write the model with -o MODEL.safetensors.";
  }
  if (!options.Strategy.empty() && rcn_strategy_parse(&strategy, options.Strategy.c_str()) != RCN_OK)
  {
    return "There is no strategy '" + options.Strategy + "'.";
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
    return "Of N folds (at least 2), one from 0 to N - 1 validates.";
  }
  if (!(options.ValidationShare >= 0 && options.ValidationShare < 1))
  {
    return "The share of cases that validate must be at least 0 and less than 1.";
  }
  if (options.Epochs < 1 || options.Epochs > 1000000)
  {
    return "Training takes 1 to 1000000 epochs.";
  }
  if (!(options.Minutes >= 0) || !(options.CacheGb >= 0) || !(options.CheckpointSeconds >= 0))
  {
    return "Times and sizes must not be negative.";
  }
  if (!(options.Warmup >= 0 && options.Warmup < 1))
  {
    return "The share of steps for warming up must be at least 0 and less than 1.";
  }
  if (options.Readout != "auto" && options.Readout != "majority" && options.Readout != "expected")
  {
    return "The readout is auto, majority or expected.";
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
  json_t* root = json_object();
  json_object_set_new(root, "model", JsonString(result.Model));
  json_object_set_new(root, "log", JsonString(result.Log));
  json_object_set_new(root, "interrupted", json_boolean(result.Interrupted));
  json_object_set_new(root, "best", json_integer(result.Best));
  json_object_set_new(root, "kept_start", json_boolean(result.KeptStart));
  json_object_set_new(root, "dropped_correction", json_boolean(result.DroppedCorrection));
  json_object_set_new(root, "cache_bytes", JsonNumber(result.CacheBytes));
  json_object_set_new(root, "readout", JsonString(result.Readout));
  json_object_set_new(root, "steps", json_integer(result.Steps));
  json_object_set_new(root, "epochs", EpochsJson(result.Epochs));
  json_t* cases = json_object();
  json_object_set_new(cases, "training", JsonStrings(result.TrainingCases));
  json_object_set_new(cases, "validation", JsonStrings(result.ValidationCases));
  std::vector<std::string> skipped;
  for (const LeftOutCase& one : result.LeftOut)
  {
    skipped.push_back(one.Id);
  }
  json_object_set_new(cases, "skipped", JsonStrings(skipped));
  json_object_set_new(root, "cases", cases);
  json_object_set_new(root, "left_out", LeftOutJson(result.LeftOut));
  json_t* seconds = json_object();
  json_object_set_new(seconds, "reading", JsonNumber(result.SecondsReading));
  json_object_set_new(seconds, "drawing", JsonNumber(result.SecondsDrawing));
  json_object_set_new(seconds, "stepping", JsonNumber(result.SecondsStepping));
  json_object_set_new(seconds, "waiting", JsonNumber(result.SecondsWaiting));
  json_object_set_new(seconds, "validating", JsonNumber(result.SecondsValidating));
  json_object_set_new(root, "seconds", seconds);
  if (result.After.Cases > 0)
  {
    json_object_set_new(root, "validation", EvaluationJson(result.After, result.Judged, result.Raters));
  }
  if (result.HasBefore)
  {
    json_object_set_new(root, "before", EvaluationJson(result.Before, result.Judged, result.Raters));
  }
  return root;
}

} // namespace rcn
