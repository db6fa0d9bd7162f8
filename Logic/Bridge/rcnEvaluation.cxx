// SPDX-License-Identifier: Apache-2.0
#include "rcnEvaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "rcn/rcn_hash.h"
#include "rcnReport.h"

namespace rcn
{

// ---- predictions -----------------------------------------------------------------------------------

namespace
{

std::string LevelTooMany(const std::string& path, int channels)
{
  return path + " has " + std::to_string(channels) + " values per voxel of whole numbers; levels must be stored as float32.";
}

} // namespace

Volume ReadPrediction(const std::string& path, double scale)
{
  const Volume read = ReadMap(path);
  const rcn_image all = read.All();
  const int channels = read.ChannelCount();
  const bool whole = all.type != RCN_FLOAT32 && all.type != RCN_FLOAT64;
  if (all.type == RCN_FLOAT32 && channels == all.components)
  {
    return read;
  }
  if (whole && channels > 1)
  {
    throw Error(RCN_EDATA, LevelTooMany(path, channels));
  }
  const double one = !whole ? 1 : scale > 0 ? scale : read.Scale();
  const int64_t beyond = one > 0 ? -1 : rcn_image_find_beyond_one(&all);
  if (beyond >= 0)
  {
    char value[32];
    std::snprintf(value, sizeof value, "%.15g", rcn_image_element(&all, beyond));
    throw Error(RCN_EDATA,
      path + " holds whole numbers (" + rcn_type_name(all.type) + ", such as " + value +
        ") and does not state which of them means a probability of 1. Store probabilities as float32, or give that number.",
      "scale");
  }
  Volume out = Volume::Allocate(read.Geometry(), RCN_FLOAT32, channels);
  out.SetNote(read.Note());
  for (int c = 0; c < channels; ++c)
  {
    const Channel channel = read.GetChannel(c);
    rcn_image_to_float(static_cast<float*>(out.Data()) + c, channels, &channel.Image, channel.Component, one > 0 ? one : 1);
  }
  return out;
}

void CheckLevelCount(const Volume& prediction, int raters, const std::string& file)
{
  const int components = prediction.View().components;
  if (components != 1 && components != raters + 1)
  {
    throw Error(RCN_EDATA,
      file + " has " + Counted(components, "value") + " per voxel; " + Counted(raters, "rater needs", "raters need") + " " +
        std::to_string(raters + 1) + " (levels 0 to " + std::to_string(raters) + ") or 1 (a probability).");
  }
}

rcn_region_options UsualRegion()
{
  rcn_region_options region = RCN_REGION_OPTIONS_INIT;
  region.region = RCN_REGION_BOX;
  return region;
}

void ChooseReadout(EvaluationOptions& options, const std::string& asked, const std::string& made, bool tieBackground)
{
  const std::string readout = !asked.empty() ? asked : !made.empty() ? made : "expected";
  if (!ParseReadout(options.Calib.readout, options.Calib.at_least, readout))
  {
    throw Error(RCN_EINVALID, std::string("The readout must be ") + ReadoutChoices + ", not '" + readout + "'.", "readout");
  }
  // Half of the raters is a majority for the readout exactly where it is one for the reference, otherwise each tie is an error.
  if (tieBackground && options.Calib.readout == RCN_READOUT_MAJORITY)
  {
    options.Calib.readout = RCN_READOUT_MORE_THAN_HALF;
  }
  options.TieBackground = tieBackground || options.Calib.readout == RCN_READOUT_MORE_THAN_HALF;
}

// ---- evaluation ------------------------------------------------------------------------------------

struct Evaluation::Handles
{
  struct Deleter
  {
    void operator()(rcn_calib* sums) const { rcn_calib_destroy(sums); }
    void operator()(rcn_auc* auc) const { rcn_auc_destroy(auc); }
    void operator()(rcn_temperature* temperature) const { rcn_temperature_destroy(temperature); }
  };
  std::vector<std::unique_ptr<rcn_calib, Deleter>> Cases;
  std::vector<std::unique_ptr<rcn_temperature, Deleter>> Temperatures; ///< by case, where they are wanted
  std::unique_ptr<rcn_auc, Deleter> Auc;
  int64_t AucVoxels = 0; ///< that were given to it by this process

  /// A copy of one case's sums with another's added to them; null: none.
  static std::unique_ptr<rcn_calib, Deleter> Sum(rcn_context* context, const rcn_calib* one, const rcn_calib* other)
  {
    rcn_calib* copy = nullptr;
    Check(rcn_calib_copy(&copy, context, one ? one : other), context);
    std::unique_ptr<rcn_calib, Deleter> sum(copy);
    if (one && other)
    {
      Check(rcn_calib_merge(copy, context, other), context);
    }
    return sum;
  }

  /// The sums of all cases together.
  std::unique_ptr<rcn_calib, Deleter> Merged(rcn_context* context) const
  {
    if (this->Cases.empty())
    {
      throw Error(RCN_EDATA, "The region is empty in every case; choose another region.");
    }
    std::unique_ptr<rcn_calib, Deleter> merged = Sum(context, this->Cases.front().get(), nullptr);
    for (size_t i = 1; i < this->Cases.size(); ++i)
    {
      Check(rcn_calib_merge(merged.get(), context, this->Cases[i].get()), context);
    }
    return merged;
  }

  /// Sums of no case yet.
  static std::unique_ptr<rcn_calib, Deleter> NewSums(rcn_context* context, size_t raters, const EvaluationOptions& options)
  {
    rcn_calib* sums = nullptr;
    Check(rcn_calib_create(&sums, context, static_cast<int>(raters), &options.Calib), context);
    return std::unique_ptr<rcn_calib, Deleter>(sums);
  }

  static std::unique_ptr<rcn_auc, Deleter> NewAuc(rcn_context* context, size_t raters, const EvaluationOptions& options)
  {
    rcn_auc* auc = nullptr;
    Check(rcn_auc_create(&auc, context, static_cast<int>(raters), options.Calib.readout, options.Calib.at_least), context);
    return std::unique_ptr<rcn_auc, Deleter>(auc);
  }

  static std::unique_ptr<rcn_temperature, Deleter> NewTemperature(rcn_context* context, size_t raters)
  {
    rcn_temperature* temperature = nullptr;
    Check(rcn_temperature_create(&temperature, context, static_cast<int>(raters)), context);
    return std::unique_ptr<rcn_temperature, Deleter>(temperature);
  }

  /// What all cases but number `without` say about the temperature.
  std::unique_ptr<rcn_temperature, Deleter> Temperature(rcn_context* context, size_t raters, size_t without) const
  {
    std::unique_ptr<rcn_temperature, Deleter> all = NewTemperature(context, raters);
    for (size_t i = 0; i < this->Temperatures.size(); ++i)
    {
      if (i != without)
      {
        Check(rcn_temperature_merge(all.get(), context, this->Temperatures[i].get()), context);
      }
    }
    return all;
  }

  std::vector<const rcn_calib*> Pointers() const
  {
    std::vector<const rcn_calib*> pointers;
    for (const auto& one : this->Cases)
    {
      pointers.push_back(one.get());
    }
    return pointers;
  }
};

/// A case that was judged and is not yet counted.
struct Evaluation::Prepared
{
  JudgedCase Judged;
  bool Circular = false;
  JudgedVolumes Volumes;
  std::vector<uint8_t> Reference;
  rcn_calib_case Case{}; // borrows the above
  std::unique_ptr<rcn_calib, Handles::Deleter> Sums;
  rcn_auc_result Auc{ NAN, NAN, 0, 0, 0, 0 }; // of this case, where it is wanted
};

Evaluation::Evaluation(rcn_context* context, const std::vector<std::string>& raters, const EvaluationOptions& options)
  : Context_(context), Raters_(raters), Options_(options), Handles_(new Handles)
{
  const int count = static_cast<int>(raters.size());
  if (const char* sentence = rcn_calib_check(&options.Calib, count))
  {
    throw Error(RCN_EINVALID, sentence);
  }
  if (const char* sentence = rcn_region_check(&options.Region))
  {
    throw Error(RCN_EINVALID, sentence);
  }
  if (options.Reference != "majority" && options.Reference != "staple" &&
    std::find(raters.begin(), raters.end(), options.Reference) == raters.end())
  {
    throw Error(
      RCN_EINVALID, "The reference must be majority, staple or a rater's name, not '" + options.Reference + "'.", "reference");
  }
  this->Handles_->Auc = Handles::NewAuc(context, raters.size(), options);
  std::transform(std::begin(VolumeLevels), std::end(VolumeLevels), this->Quantiles_,
    [this](double level) { return this->KnownVolumes() ? this->KnownVolumes()->Quantile(this->Context_, level) : INFINITY; });
}

Evaluation::~Evaluation() = default;

std::string HashText(uint64_t hash)
{
  char text[17]; // digits, as 64 bits do not fit into a number of JSON
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string FingerprintOf(const Volume& prediction)
{
  const rcn_image& map = prediction.View();
  const int64_t elements = rcn_geometry_voxels(&map.geometry) * map.components;
  // Maps that are the same everywhere may be alike in many cases and tell none of them apart.
  return rcn_image_is_constant(&map) ? ""
                                     : HashText(rcn_hash_floats(RCN_HASH_START, static_cast<const float*>(map.data), elements));
}

namespace
{

/// By pattern of votes, not by voxel: voxels with the same votes have the same reference.
std::vector<uint8_t> ReferenceTable(
  const rcn_votes* votes, const std::vector<std::string>& names, const EvaluationOptions& options, rcn_context* context)
{
  const std::string& reference = options.Reference;
  const size_t count = static_cast<size_t>(rcn_votes_pattern_count(votes));
  std::vector<uint8_t> table(count);
  if (reference == "majority")
  {
    rcn_reference_majority(table.data(), votes, options.TieBackground);
  }
  else if (reference == "staple")
  {
    rcn_fusion_options staple = RCN_FUSION_OPTIONS_INIT;
    staple.method = RCN_STAPLE;
    staple.staple_output = RCN_STAPLE_MASK;
    std::vector<float> mask(count);
    Check(rcn_fuse_patterns(mask.data(), nullptr, context, votes, &staple), context);
    std::copy(mask.begin(), mask.end(), table.begin());
  }
  else
  {
    rcn_reference_rater(
      table.data(), votes, static_cast<int>(std::find(names.begin(), names.end(), reference) - names.begin()));
  }
  return table;
}

} // namespace

void Evaluation::RefuseFittedCase(const JudgedCase& one) const
{
  const Recalibration* correction = this->Options_.Correction;
  if (!correction || this->Options_.AllowFittedCases)
  {
    return;
  }
  const auto holds = [](const std::vector<std::string>& all, const std::string& name) {
    return !name.empty() && std::find(all.begin(), all.end(), name) != all.end();
  };
  // By the map, too: the same case may have another name in another list.
  if (holds(correction->Cases, one.Id) || holds(correction->Fingerprints, one.Fingerprint))
  {
    throw Error(
      RCN_EINVALID, "The recalibration was fitted on case " + one.Name() + " and cannot be evaluated on it.", "fitted-cases");
  }
}

/// The case's own where each was left out of its fit, otherwise the one for all.
const Recalibration* Evaluation::CorrectionOf(const std::string& id) const
{
  const auto own = this->Options_.CaseCorrections.find(id);
  return own != this->Options_.CaseCorrections.end() ? &own->second : this->Options_.Correction;
}

const VolumeScores* Evaluation::KnownVolumes() const
{
  const bool own = !this->Options_.CaseCorrections.empty(); // each case is corrected in its own way: no intervals fit
  const Recalibration* correction = this->Options_.Correction;
  const VolumeScores* all = own ? nullptr : correction ? correction->Volumes.get() : this->Options_.Volumes.get();
  return all ? all->Of(this->Options_.Structure) : nullptr;
}

void Evaluation::Prepare(const JudgedCase& judged)
{
  this->Prepared_.reset();
  if (this->Options_.FitTemperature && !this->Handles_->Cases.empty() && judged.Levels != this->Levels_)
  {
    throw Error(RCN_EINVALID,
      judged.File + (judged.Levels ? " holds levels" : " holds one probability") +
        ", unlike the cases before it; a temperature needs levels in all cases or in none.");
  }
  std::unique_ptr<Prepared> one(new Prepared);
  one->Judged = judged;
  one->Reference = ReferenceTable(judged.Votes, this->Raters_, this->Options_, this->Context_);
  const uint8_t* region = judged.Region ? judged.Region->data() : nullptr;
  one->Case = { judged.Votes, one->Judged.Map.View(), region, one->Reference.data() };
  if (this->Options_.PerCase)
  {
    rcn_calib_case raw = one->Case; // a correction leaves a fused map a fused map
    raw.prediction = one->Judged.Prediction.View();
    int fused = 0;
    Check(rcn_case_is_fused(&fused, this->Context_, &raw), this->Context_, judged.File);
    one->Circular = fused || IsFusedFrom(judged.Prediction.Note(), this->Raters_);
    const VolumeScores* known = this->KnownVolumes();
    const double none[] = { INFINITY, INFINITY }; // a case is not tested on what it was part of
    if (judged.Whole.Data())
    {
      one->Volumes =
        JudgeVolumes(this->Context_, judged.Whole, judged.Votes, known && known->Has(judged.Name()) ? none : this->Quantiles_);
    }
  }
  one->Sums = Handles::NewSums(this->Context_, this->Raters_.size(), this->Options_);
  Check(rcn_calib_add(one->Sums.get(), this->Context_, &one->Case), this->Context_, judged.File);
  if (this->Options_.PerCase) // they stay until the end, those of all cases
  {
    Check(rcn_calib_pack(one->Sums.get(), this->Context_), this->Context_, judged.File);
  }
  if (this->Options_.CaseAuc)
  {
    // Not from the common table, which may have been given up by then for its size.
    const auto alone = Handles::NewAuc(this->Context_, this->Raters_.size(), this->Options_);
    Check(rcn_auc_add(alone.get(), this->Context_, &one->Case), this->Context_, judged.File);
    Check(rcn_auc_compute(&one->Auc, this->Context_, alone.get()), this->Context_, judged.File);
  }
  this->Prepared_ = std::move(one);
}

void Evaluation::Commit()
{
  if (!this->Prepared_)
  {
    return;
  }
  const std::unique_ptr<Prepared> one = std::move(this->Prepared_);
  const JudgedCase& judged = one->Judged;
  if (this->Options_.ExactAuc && this->Handles_->AucVoxels <= this->Options_.ExactAucVoxels)
  {
    this->Handles_->AucVoxels += rcn_calib_voxels(one->Sums.get());
    if (this->Handles_->AucVoxels <= this->Options_.ExactAucVoxels)
    {
      Check(rcn_auc_add(this->Handles_->Auc.get(), this->Context_, &one->Case), this->Context_);
    }
    else // no longer needed, nor is there room for it
    {
      this->Handles_->Auc = Handles::NewAuc(this->Context_, this->Raters_.size(), this->Options_);
    }
  }
  if (this->Options_.FitTemperature && judged.Levels)
  {
    this->Handles_->Temperatures.push_back(Handles::NewTemperature(this->Context_, this->Raters_.size()));
    Check(rcn_temperature_add(this->Handles_->Temperatures.back().get(), this->Context_, &one->Case), this->Context_);
  }
  this->Levels_ = judged.Levels;
  this->Ends_ = this->Ends_ && judged.Ends;
  if (!this->Options_.PerCase && !this->Handles_->Cases.empty()) // one sum for all: memory does not grow with the cases
  {
    Check(rcn_calib_merge(this->Handles_->Cases.front().get(), this->Context_, one->Sums.get()), this->Context_);
    return;
  }
  this->Handles_->Cases.push_back(std::move(one->Sums));
  this->Ids_.push_back(judged.Name());
  this->Fingerprints_.push_back(judged.Fingerprint);
  this->Patients_.push_back(judged.Patient);
  this->Splits_.push_back(judged.Split);
  this->Circular_.push_back(one->Circular);
  this->Volumes_.push_back(one->Volumes);
  this->Numbers_.push_back(judged.Number);
  this->CaseAuc_.push_back(one->Auc);
}

void Evaluation::Discard()
{
  this->Prepared_.reset();
}

void Evaluation::Share(Processes& processes)
{
  if (!processes.AreSeveral())
  {
    return;
  }
  this->Comm_ = processes.Comm();
  if (!this->Options_.PerCase)
  {
    if (this->Handles_->Cases.empty())
    {
      this->Handles_->Cases.push_back(Handles::NewSums(this->Context_, this->Raters_.size(), this->Options_));
    }
    Check(rcn_calib_share(this->Handles_->Cases.front().get(), this->Context_, this->Comm_), this->Context_);
    return;
  }
  SharedRecords records; // what is no sum
  for (size_t i = 0; i < this->Ids_.size(); ++i)
  {
    json_t* record = json_object();
    json_object_set_new(record, "id", JsonString(this->Ids_[i]));
    json_object_set_new(record, "fingerprint", JsonString(this->Fingerprints_[i]));
    json_object_set_new(record, "patient", JsonString(this->Patients_[i]));
    json_object_set_new(record, "split", JsonString(this->Splits_[i]));
    json_object_set_new(record, "circular", json_boolean(this->Circular_[i]));
    json_object_set_new(record, "levels", json_boolean(this->Levels_));
    json_object_set_new(record, "ends", json_boolean(this->Ends_));
    json_object_set_new(record, "volumes", JudgedVolumesJson(this->Volumes_[i]));
    json_object_set_new(record, "auc", JsonNumber(this->CaseAuc_[i].reference));
    json_object_set_new(record, "auc_pairs", JsonNumber(this->CaseAuc_[i].pairs));
    records.Set(this->Numbers_[i], record);
  }
  records.Merge(processes);
  std::vector<std::unique_ptr<rcn_calib, Handles::Deleter>> mine = std::move(this->Handles_->Cases);
  std::vector<std::unique_ptr<rcn_temperature, Handles::Deleter>> heat = std::move(this->Handles_->Temperatures);
  this->Handles_->Temperatures.clear();
  const std::vector<size_t> numbers = std::move(this->Numbers_);
  this->Handles_->Cases.clear();
  this->Numbers_.clear();
  this->Ids_.clear();
  this->Fingerprints_.clear();
  this->Patients_.clear();
  this->Splits_.clear();
  this->Circular_.clear();
  this->Volumes_.clear();
  this->CaseAuc_.clear();
  const auto numberOf = [](const json_t* record, const char* key) {
    const json_t* value = json_object_get(record, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
  };
  for (size_t number = 0; number < records.Count(); ++number)
  {
    const json_t* record = records.Get(number);
    if (!record)
    {
      continue;
    }
    // One process has the sums and the others zeros: adding up changes no bit.
    const size_t at = static_cast<size_t>(std::find(numbers.begin(), numbers.end(), number) - numbers.begin());
    std::unique_ptr<rcn_calib, Handles::Deleter> sums =
      at < numbers.size() ? std::move(mine[at]) : Handles::NewSums(this->Context_, this->Raters_.size(), this->Options_);
    Check(rcn_calib_share(sums.get(), this->Context_, processes.Comm()), this->Context_);
    Check(rcn_calib_pack(sums.get(), this->Context_), this->Context_);
    this->Handles_->Cases.push_back(std::move(sums));
    if (this->Options_.FitTemperature && json_is_true(json_object_get(record, "levels")))
    {
      std::unique_ptr<rcn_temperature, Handles::Deleter> temperature =
        at < numbers.size() ? std::move(heat[at]) : Handles::NewTemperature(this->Context_, this->Raters_.size());
      Check(rcn_temperature_share(temperature.get(), this->Context_, processes.Comm()), this->Context_);
      this->Handles_->Temperatures.push_back(std::move(temperature));
    }
    this->Ids_.push_back(json_string_value(json_object_get(record, "id")));
    this->Fingerprints_.push_back(json_string_value(json_object_get(record, "fingerprint")));
    this->Patients_.push_back(json_string_value(json_object_get(record, "patient")));
    this->Splits_.push_back(json_string_value(json_object_get(record, "split")));
    this->Circular_.push_back(json_is_true(json_object_get(record, "circular")));
    this->Volumes_.push_back(JudgedVolumesFrom(json_object_get(record, "volumes")));
    this->Numbers_.push_back(number);
    this->CaseAuc_.push_back({ numberOf(record, "auc"), numberOf(record, "auc_pairs"), 0, 0, 0, 0 });
    this->Levels_ = json_is_true(json_object_get(record, "levels"));
    this->Ends_ = this->Ends_ && json_is_true(json_object_get(record, "ends"));
  }
}

std::vector<double> Evaluation::Figures() const
{
  std::vector<double> figures(RCN_FIGURES, NAN);
  if (!this->Handles_->Cases.empty())
  {
    rcn_calib_figures(figures.data(), this->Handles_->Merged(this->Context_).get());
  }
  return figures;
}

double Evaluation::LevelShare() const
{
  if (this->Handles_->Cases.empty())
  {
    return 0;
  }
  const auto merged = this->Handles_->Merged(this->Context_);
  const double voxels = static_cast<double>(rcn_calib_voxels(merged.get()));
  return voxels > 0 ? static_cast<double>(rcn_calib_level_voxels(merged.get())) / voxels : 0;
}

rcn_auc_result Evaluation::Auc() const
{
  return this->AucOf(this->Figures().data(), this->HasExactAuc());
}

/// By the voxels of all processes together, which each of them knows: all take the same way.
bool Evaluation::HasExactAuc() const
{
  int64_t voxels = 0;
  for (const auto& sums : this->Handles_->Cases)
  {
    voxels += rcn_calib_voxels(sums.get());
  }
  return this->Options_.ExactAuc && voxels <= this->Options_.ExactAucVoxels;
}

rcn_auc_result Evaluation::AucOf(const double* figures, bool exact) const
{
  rcn_auc_result auc{};
  auc.reference = figures[RCN_AUC_HISTOGRAM];
  auc.pairs = figures[RCN_AUC_PAIRS_HISTOGRAM];
  if (exact)
  {
    Check(rcn_auc_compute_shared(&auc, this->Context_, this->Handles_->Auc.get(), this->Comm_), this->Context_);
  }
  return auc;
}

void Evaluation::ReportLevels(EvaluationReport& report, const rcn_calib* merged, const rcn_interval_options& intervals) const
{
  const std::vector<const rcn_calib*> cases = this->Handles_->Pointers();
  const size_t bins = static_cast<size_t>(this->Options_.Calib.bins);
  report.LevelSource = rcn_calib_level_source(merged);
  report.LevelVoxels = rcn_calib_level_voxels(merged);
  report.LevelCases =
    std::count_if(cases.begin(), cases.end(), [](const rcn_calib* one) { return rcn_calib_level_voxels(one) > 0; });
  for (int t = 1; report.LevelSource != RCN_LEVELS_NONE && t <= static_cast<int>(this->Raters_.size()); ++t)
  {
    LevelDiagram one{ t, 0, std::vector<rcn_calib_bin>(bins), std::vector<double>(bins), std::vector<double>(bins) };
    rcn_calib_level_bins(one.Bins.data(), merged, t);
    rcn_calib_gaps(&one.Ece, nullptr, nullptr, one.Bins.data(), this->Options_.Calib.bins);
    Check(rcn_interval_bins(one.BandLow.data(), one.BandHigh.data(), this->Context_, cases.data(),
            static_cast<int64_t>(cases.size()), t, &intervals),
      this->Context_);
    report.Levels.push_back(one);
  }
  report.Shares.resize(this->Raters_.size() + 1);
  report.UnsureShares.resize(this->Raters_.size() + 1);
  rcn_calib_level_shares(report.Shares.data(), merged, 0);
  rcn_calib_level_shares(report.UnsureShares.data(), merged, 1);
}

EvaluationReport Evaluation::Report() const
{
  const auto all = this->Handles_->Merged(this->Context_);
  const rcn_calib* merged = all.get();
  const std::vector<const rcn_calib*> cases = this->Handles_->Pointers();
  EvaluationReport report;
  report.Cases = cases.size();
  report.Voxels = rcn_calib_voxels(merged);
  report.Pairs = rcn_calib_pairs(merged);
  rcn_calib_figures(report.Figures, merged);
  const bool exact = this->HasExactAuc();
  report.Auc = this->AucOf(report.Figures, exact);
  report.AucFromHistogram = this->Options_.ExactAuc && !exact;
  const size_t bins = static_cast<size_t>(this->Options_.Calib.bins);
  report.Bins.resize(bins);
  rcn_calib_bins(report.Bins.data(), merged, this->Options_.Binning);
  report.MassEce = report.MassMce = report.MassAce = NAN;
  if (this->Options_.Binning == RCN_BINS_MASS)
  {
    rcn_calib_gaps(&report.MassEce, &report.MassMce, &report.MassAce, report.Bins.data(), this->Options_.Calib.bins);
  }
  for (int r = 0; r < static_cast<int>(this->Raters_.size()); ++r)
  {
    report.RaterEce.push_back(rcn_calib_rater_ece(merged, r));
    report.RaterBrier.push_back(rcn_calib_rater_brier(merged, r));
    report.RaterBins.emplace_back(bins);
    rcn_calib_rater_bins(report.RaterBins.back().data(), merged, r);
  }
  report.Brier = rcn_calib_brier(merged);
  Check(rcn_calib_kde(&report.Kde, this->Context_, cases.data(), static_cast<int64_t>(cases.size())), this->Context_);
  for (size_t i = 0; i < cases.size(); ++i)
  {
    if (!std::isfinite(this->CaseFigures(i)[RCN_DICE]))
    {
      report.EmptyCases.push_back(this->Ids_[i]);
    }
    if (this->Circular_[i])
    {
      report.CircularCases.push_back(this->Ids_[i]);
    }
  }
  const std::vector<int> patients = PatientNumbers(this->Patients_);
  report.Patients = std::set<int>(patients.begin(), patients.end()).size();
  const auto nameless = static_cast<size_t>(std::count(this->Patients_.begin(), this->Patients_.end(), ""));
  report.Nameless = nameless < report.Cases ? nameless : 0;
  rcn_interval_options intervals = RCN_INTERVAL_OPTIONS_INIT;
  intervals.patients = patients.data();
  const int64_t count = static_cast<int64_t>(cases.size());
  Check(rcn_interval_compute(report.Interval, this->Context_, cases.data(), nullptr, 1, count, &intervals), this->Context_);
  // AUC is exact in tables and from a histogram in the interval, which is to hold it all the same.
  const auto hold = [](rcn_interval& interval, double value) {
    interval.low = std::min(interval.low, value);
    interval.high = std::max(interval.high, value);
  };
  hold(report.Interval[RCN_AUC_HISTOGRAM], report.Auc.reference);
  hold(report.Interval[RCN_AUC_PAIRS_HISTOGRAM], report.Auc.pairs);
  report.BandLow.assign(bins, NAN);
  report.BandHigh.assign(bins, NAN);
  if (this->Options_.Binning == RCN_BINS_WIDTH)
  {
    Check(rcn_interval_bins(report.BandLow.data(), report.BandHigh.data(), this->Context_, cases.data(), count, 0, &intervals),
      this->Context_);
  }
  this->ReportLevels(report, merged, intervals);
  const VolumeScores* known = this->KnownVolumes();
  const auto calibrated =
    std::count_if(this->Ids_.begin(), this->Ids_.end(), [known](const std::string& id) { return known && known->Has(id); });
  report.Volumes = SummarizeVolumes(this->Volumes_, patients, this->Context_, known, static_cast<size_t>(calibrated));
  rcn_bootstrap_options options = RCN_BOOTSTRAP_OPTIONS_INIT;
  options.seed = this->Options_.Seed;
  Check(rcn_bootstrap(report.Paper, this->Context_, cases.data(), count, &options), this->Context_);
  return report;
}

std::vector<double> Evaluation::CaseFigures(size_t number) const
{
  std::vector<double> figures(RCN_FIGURES);
  rcn_calib_figures(figures.data(), this->Handles_->Cases[number].get());
  return figures;
}

VolumeScores Evaluation::ScoresOfVolumes() const
{
  VolumeScores scores{ this->Ids_, PatientNumbers(this->Patients_), {}, {} };
  std::transform(this->Volumes_.begin(), this->Volumes_.end(), std::back_inserter(scores.Scores),
    [](const JudgedVolumes& one) { return one.Scores; });
  return scores;
}

VolumeScores ScoresOfVolumes(const std::vector<std::unique_ptr<Evaluation>>& structures, size_t first, size_t step)
{
  VolumeScores all;
  for (size_t at = first; at < structures.size(); at += step)
  {
    const std::string& name = structures[at]->Options().Structure;
    const VolumeScores own = structures[at]->ScoresOfVolumes();
    if (name.empty())
    {
      return own;
    }
    all.Structures[name] = std::make_shared<VolumeScores>(own);
  }
  return all;
}

std::vector<EvaluatedCase> Evaluation::CaseRows() const
{
  std::vector<EvaluatedCase> rows;
  for (size_t i = 0; i < this->Ids_.size(); ++i)
  {
    const rcn_calib* sums = this->Handles_->Cases[i].get();
    rows.push_back({ this->Ids_[i], this->Patients_[i], this->Splits_[i], rcn_calib_voxels(sums), rcn_calib_pairs(sums),
      this->CaseFigures(i), this->CaseAuc_[i], this->Volumes_[i] });
  }
  return rows;
}

std::vector<rcn_interval> Evaluation::Compare(const Evaluation& other) const
{
  return Together({ this }, { &other });
}

std::vector<VolumeDifference> Evaluation::CompareVolumes(const Evaluation& other) const
{
  return rcn::CompareVolumes(this->Volumes_, other.Volumes_, PatientNumbers(this->Patients_), this->Context_);
}

std::vector<rcn_interval> Evaluation::Together(
  const std::vector<const Evaluation*>& first, const std::vector<const Evaluation*>& second)
{
  const Evaluation& like = *first.front();
  const auto sums = [&like](const std::vector<const Evaluation*>& runs) {
    std::vector<const rcn_calib*> all;
    for (const Evaluation* run : runs)
    {
      if (run->Ids_ != like.Ids_)
      {
        throw Error(RCN_EDATA, "The two folders were evaluated on different cases.");
      }
      const std::vector<const rcn_calib*> own = run->Handles_->Pointers();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  };
  const std::vector<const rcn_calib*> one = sums(first), other = sums(second);
  const std::vector<int> patients = PatientNumbers(like.Patients_);
  rcn_interval_options options = RCN_INTERVAL_OPTIONS_INIT;
  options.patients = patients.data();
  std::vector<rcn_interval> out(RCN_FIGURES);
  Check(rcn_interval_compute(out.data(), like.Context_, one.data(), other.empty() ? nullptr : other.data(),
          static_cast<int>(first.size()), static_cast<int64_t>(like.Ids_.size()), &options),
    like.Context_);
  return out;
}

Recalibration Evaluation::FitTo(rcn_recalib_method method, const rcn_calib* sums, const rcn_temperature* temperature) const
{
  Recalibration out = RecalibrationFor(this->Options_);
  if (method == RCN_RECALIB_TEMPERATURE && this->Levels_ && !this->Ends_)
  {
    Check(rcn_temperature_fit(&out.Correction, this->Context_, temperature), this->Context_);
  }
  else
  {
    // Levels of one probability have nothing between their ends that a temperature could weigh: its logit is scaled.
    Check(rcn_recalib_fit(&out.Correction, this->Context_, method, sums), this->Context_);
    out.OneProbability = this->HasOneProbability();
  }
  return out;
}

Recalibration Evaluation::Fit(rcn_recalib_method method) const
{
  const auto merged = this->Handles_->Merged(this->Context_);
  const auto temperature = this->Handles_->Temperature(this->Context_, this->Raters_.size(), this->Ids_.size());
  Recalibration out = this->FitTo(method, merged.get(), temperature.get());
  out.Cases = this->Ids_;
  out.Fingerprints = this->Fingerprints_;
  return out;
}

std::map<std::string, Recalibration> Evaluation::FitWithoutEach(rcn_recalib_method method) const
{
  std::map<std::string, Recalibration> fits;
  const size_t count = this->Ids_.size();
  // The others of a case are those before it and those after it: sums of both kinds make it O(cases).
  std::vector<std::unique_ptr<rcn_calib, Handles::Deleter>> after(count);
  for (size_t i = count; i-- > 1;)
  {
    after[i - 1] = Handles::Sum(this->Context_, this->Handles_->Cases[i].get(), after[i].get());
    Check(rcn_calib_pack(after[i - 1].get(), this->Context_), this->Context_);
  }
  std::unique_ptr<rcn_calib, Handles::Deleter> before;
  for (size_t i = 0; count > 1 && i < count; ++i)
  {
    const auto others = Handles::Sum(this->Context_, before.get(), after[i].get());
    const auto temperature = this->Handles_->Temperature(this->Context_, this->Raters_.size(), i);
    try
    {
      fits[this->Ids_[i]] = this->FitTo(method, others.get(), temperature.get());
    }
    catch (const Error& error)
    {
      if (error.Status() != RCN_EDATA)
      {
        throw;
      }
    }
    before = Handles::Sum(this->Context_, this->Handles_->Cases[i].get(), before.get());
  }
  return fits;
}

} // namespace rcn
