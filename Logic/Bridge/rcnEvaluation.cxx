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

// ---- recalibration files ---------------------------------------------------------------------------

namespace
{

[[noreturn]] void FailRecalibration(const std::string& path, const std::string& what)
{
  throw Error(RCN_EFORMAT, path + " is no recalibration file that can be used: " + what);
}

/// The list under a key; one that is absent is empty.
json_t* List(json_t* root, const char* key, const std::string& path)
{
  json_t* list = json_object_get(root, key);
  if (list && !json_is_array(list))
  {
    FailRecalibration(path, std::string("\"") + key + "\" must be a list.");
  }
  return list;
}

/// A whole number between 0 and `most`; one that is absent is 0.
json_int_t WholeNumber(json_t* root, const char* key, json_int_t most, const std::string& path)
{
  json_t* number = json_object_get(root, key);
  if (number && (!json_is_integer(number) || json_integer_value(number) < 0 || json_integer_value(number) > most))
  {
    FailRecalibration(path, std::string("\"") + key + "\" must be a whole number from 0 to " + std::to_string(most) + ".");
  }
  return json_integer_value(number);
}

std::vector<double> Numbers(json_t* root, const char* key, const std::string& path)
{
  json_t* array = List(root, key, path);
  std::vector<double> numbers;
  for (size_t i = 0; i < json_array_size(array); ++i)
  {
    json_t* one = json_array_get(array, i);
    if (!json_is_number(one))
    {
      FailRecalibration(path, std::string("\"") + key + "\" must hold numbers.");
    }
    numbers.push_back(json_number_value(one));
  }
  return numbers;
}

std::vector<std::string> Strings(json_t* root, const char* key, const std::string& path)
{
  json_t* array = List(root, key, path);
  std::vector<std::string> strings;
  for (size_t i = 0; i < json_array_size(array); ++i)
  {
    const char* text = json_string_value(json_array_get(array, i));
    if (!text)
    {
      FailRecalibration(path, std::string("\"") + key + "\" must hold texts.");
    }
    strings.push_back(text);
  }
  return strings;
}

json_t* JsonNumbers(const double* numbers, int count)
{
  json_t* array = json_array();
  for (int i = 0; i < count; ++i)
  {
    json_array_append_new(array, JsonNumber(numbers[i]));
  }
  return array;
}

int ParameterCount(rcn_recalib_method method)
{
  static const int counts[] = { 1, 2, 3, 0 };
  return counts[method];
}

} // namespace

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
  if (tieBackground && options.Calib.readout == RCN_READOUT_MAJORITY)
  {
    options.Calib.readout = RCN_READOUT_MORE_THAN_HALF;
  }
  options.TieBackground = tieBackground || options.Calib.readout == RCN_READOUT_MORE_THAN_HALF;
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

std::string FittedElsewhere(const Recalibration& correction, const EvaluationOptions& options)
{
  const std::string region = RegionInWords(correction.Region, correction.RegionMask);
  const std::string judged = RegionInWords(options.Region, options.RegionMask);
  std::string text;
  if (correction.HasRegion && region != judged)
  {
    text = "The correction was fitted on the region " + region + "; this judges the region " + judged + ".";
  }
  const bool sameReadout = correction.Readout == options.Calib.readout && correction.AtLeast == options.Calib.at_least;
  if (!sameReadout && !correction.OneProbability)
  {
    text += (text.empty() ? "" : " ") + std::string("The correction was fitted with the readout ") +
      ReadoutText(correction.Readout, correction.AtLeast) + "; this judges the readout " +
      ReadoutText(options.Calib.readout, options.Calib.at_least) + ".";
  }
  return text;
}

namespace
{

/// What corrections of earlier versions do not have: where it was fitted, and whether to one probability.
void ReadFittedRegion(Recalibration& out, json_t* root, const std::string& path)
{
  const json_t* one = json_object_get(root, "one_probability");
  if (one && !json_is_boolean(one))
  {
    FailRecalibration(path, "\"one_probability\" must be true or false.");
  }
  out.OneProbability = json_is_true(one);
  if (out.OneProbability && out.Correction.levels)
  {
    FailRecalibration(path, "a correction of levels cannot be of one probability.");
  }
  const json_t* region = json_object_get(root, "region");
  const json_t* mask = json_object_get(root, "region_mask");
  if (!region && !mask)
  {
    return;
  }
  if ((region && !json_is_string(region)) || (mask && !json_is_string(mask)))
  {
    FailRecalibration(path, "\"region\" and \"region_mask\" must be texts.");
  }
  out.HasRegion = true;
  out.RegionMask = mask ? json_string_value(mask) : "";
  if (region && !Parse(out.Region.region, json_string_value(region)))
  {
    FailRecalibration(path, "\"region\" must be " + ChoicesText(Regions()) + ".");
  }
  const json_t* band = json_object_get(root, "band");
  if (json_object_get(root, "margin"))
  {
    out.Region.margin = WholeNumber(root, "margin", 1 << 30, path);
  }
  if (band)
  {
    out.Region.band_mm = json_is_number(band) ? json_number_value(band) : NAN;
  }
  if (const char* sentence = rcn_region_check(&out.Region))
  {
    FailRecalibration(path, sentence);
  }
}

} // namespace

Recalibration ReadRecalibration(const std::string& path)
{
  return ParseRecalibration(ReadText(path), path);
}

Recalibration ParseRecalibration(const std::string& text, const std::string& path)
{
  json_error_t error;
  const JsonHandle root(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error));
  if (!root)
  {
    FailRecalibration(path, std::string("it is no valid JSON (") + error.text + ").");
  }
  Recalibration out;
  out.Path = path;
  const char* method = json_string_value(json_object_get(root.get(), "method"));
  if (!method || !Parse(out.Correction.method, method))
  {
    FailRecalibration(path, "\"method\" must be " + ChoicesText(Corrections()) + ".");
  }
  const char* readout = json_string_value(json_object_get(root.get(), "readout"));
  if (!readout || !Parse(out.Readout, readout))
  {
    FailRecalibration(path, "\"readout\" must be " + ChoicesText(Readouts()) + ".");
  }
  out.AtLeast = static_cast<int>(WholeNumber(root.get(), "at_least", RCN_MAX_RATERS, path));
  if ((out.Readout == RCN_READOUT_AT_LEAST) != (out.AtLeast > 0))
  {
    FailRecalibration(path, "\"at_least\" must be 1 or more with the readout at-least, and 0 with the others.");
  }
  out.Correction.levels = static_cast<int>(WholeNumber(root.get(), "levels", RCN_MAX_RATERS + 1, path));
  out.Correction.pairs = WholeNumber(root.get(), "pairs", INT64_MAX, path);
  ReadFittedRegion(out, root.get(), path);
  const std::vector<double> parameters = Numbers(root.get(), "parameters", path);
  const std::vector<double> x = Numbers(root.get(), "x", path);
  const std::vector<double> y = Numbers(root.get(), "y", path);
  const int count = ParameterCount(out.Correction.method);
  if (parameters.size() != static_cast<size_t>(count))
  {
    FailRecalibration(path,
      std::string(method) + " has " + std::to_string(count) + " parameters, not " + std::to_string(parameters.size()) + ".");
  }
  if (x.size() != y.size() || x.size() > RCN_RECALIB_KNOTS)
  {
    FailRecalibration(path, "\"x\" and \"y\" must have the same length, at most " + std::to_string(RCN_RECALIB_KNOTS) + ".");
  }
  std::copy(parameters.begin(), parameters.end(), out.Correction.parameters);
  std::copy(x.begin(), x.end(), out.Correction.x);
  std::copy(y.begin(), y.end(), out.Correction.y);
  out.Correction.knots = static_cast<int>(x.size());
  out.Cases = Strings(root.get(), "cases", path);
  out.Fingerprints = Strings(root.get(), "fingerprints", path);
  if (const char* sentence = rcn_recalib_check(&out.Correction))
  {
    FailRecalibration(path, sentence);
  }
  return out;
}

void WriteRecalibration(const std::string& path, const Recalibration& recalibration)
{
  WriteText(path, RecalibrationText(recalibration));
}

std::string RecalibrationText(const Recalibration& recalibration)
{
  const rcn_recalib& correction = recalibration.Correction;
  const JsonHandle root(json_object());
  json_object_set_new(root.get(), "method", json_string(rcn_recalib_name(correction.method)));
  json_object_set_new(root.get(), "levels", json_integer(correction.levels));
  json_object_set_new(root.get(), "readout", json_string(rcn_readout_name(recalibration.Readout)));
  json_object_set_new(root.get(), "at_least", json_integer(recalibration.AtLeast));
  json_object_set_new(root.get(), "one_probability", json_boolean(recalibration.OneProbability));
  if (recalibration.HasRegion && !recalibration.RegionMask.empty())
  {
    json_object_set_new(root.get(), "region_mask", JsonString(recalibration.RegionMask));
  }
  else if (recalibration.HasRegion)
  {
    const rcn_region_options& region = recalibration.Region;
    json_object_set_new(root.get(), "region", json_string(rcn_region_name(region.region)));
    json_object_set_new(root.get(), "margin", json_integer(region.margin));
    json_object_set_new(root.get(), "band", JsonNumber(region.band_mm));
  }
  json_object_set_new(root.get(), "parameters", JsonNumbers(correction.parameters, ParameterCount(correction.method)));
  json_object_set_new(root.get(), "x", JsonNumbers(correction.x, correction.knots));
  json_object_set_new(root.get(), "y", JsonNumbers(correction.y, correction.knots));
  json_object_set_new(root.get(), "pairs", json_integer(correction.pairs));
  json_object_set_new(root.get(), "cases", JsonStrings(recalibration.Cases));
  json_object_set_new(root.get(), "fingerprints", JsonStrings(recalibration.Fingerprints));
  return DocumentText(root.get());
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
      throw Error(RCN_EDATA, "There is nothing to judge: the region is empty in every case; choose another region.");
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
  std::vector<uint8_t> Reference;
  rcn_calib_case Case{}; // borrows the above
  std::unique_ptr<rcn_calib, Handles::Deleter> Sums;
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
  rcn_auc* auc = nullptr;
  Check(rcn_auc_create(&auc, context, count, options.Calib.readout, options.Calib.at_least), context);
  this->Handles_->Auc.reset(auc);
}

Evaluation::~Evaluation() = default;

std::string HashText(uint64_t hash)
{
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string FingerprintOf(const Volume& prediction)
{
  const rcn_image& map = prediction.View();
  const int64_t elements = rcn_geometry_voxels(&map.geometry) * map.components;
  return rcn_image_is_constant(&map) ? ""
                                     : HashText(rcn_hash_floats(RCN_HASH_START, static_cast<const float*>(map.data), elements));
}

namespace
{

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
  if (holds(correction->Cases, one.Id) || holds(correction->Fingerprints, one.Fingerprint))
  {
    throw Error(
      RCN_EINVALID, "The recalibration was fitted on case " + one.Name() + " and cannot be evaluated on it.", "fitted-cases");
  }
}

Volume ApplyRecalibration(rcn_context* context, const Recalibration& correction, const Volume& prediction, rcn_readout readout,
  int atLeast, const std::string& file)
{
  const rcn_image& in = prediction.View();
  const int64_t voxels = rcn_geometry_voxels(&in.geometry);
  const int levels = correction.Correction.levels;
  if (levels > 0)
  {
    if (in.components != levels)
    {
      throw Error(RCN_EINVALID,
        correction.Path + " corrects maps of " + Counted(levels, "level") + "; " + file + " has " +
          Counted(in.components, "value") + " per voxel.");
    }
    Volume out = Volume::Allocate(in.geometry, RCN_FLOAT32, in.components);
    Check(rcn_recalib_apply_levels(static_cast<float*>(out.Data()), context, &correction.Correction, &in), context, file);
    return out;
  }
  Volume out = Volume::Allocate(in.geometry, RCN_FLOAT32);
  float* data = static_cast<float*>(out.Data());
  if (in.components > 1)
  {
    int ends = 0;
    Check(rcn_levels_are_ends(&ends, context, &in), context, file);
    if (correction.OneProbability && !ends)
    {
      throw Error(RCN_EINVALID, "The recalibration is for a model that gives one probability; " + file + " holds levels.");
    }
    if (!correction.OneProbability && (correction.Readout != readout || correction.AtLeast != atLeast))
    {
      throw Error(RCN_EINVALID,
        "The recalibration was fitted to the readout " + ReadoutText(correction.Readout, correction.AtLeast) +
          ", not to this one.",
        "readout");
    }
    Check(rcn_readout_apply(data, context, &in, readout, atLeast), context, file);
  }
  else
  {
    std::memcpy(data, in.data, static_cast<size_t>(voxels) * sizeof(float));
  }
  Check(rcn_recalib_apply(data, context, &correction.Correction, &out.View()), context, file);
  return out;
}

const Recalibration* Evaluation::CorrectionOf(const std::string& id) const
{
  const auto own = this->Options_.CaseCorrections.find(id);
  return own != this->Options_.CaseCorrections.end() ? &own->second : this->Options_.Correction;
}

void Evaluation::Prepare(const JudgedCase& judged)
{
  this->Prepared_.reset();
  if (this->Options_.FitTemperature && !this->Handles_->Cases.empty() && judged.Levels != this->Levels_)
  {
    throw Error(RCN_EINVALID,
      judged.File + (judged.Levels ? " holds levels" : " holds one probability") +
        " and the cases before it do not; a temperature needs levels everywhere or nowhere.");
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
  }
  one->Sums = Handles::NewSums(this->Context_, this->Raters_.size(), this->Options_);
  Check(rcn_calib_add(one->Sums.get(), this->Context_, &one->Case), this->Context_, judged.File);
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
  if (this->Options_.ExactAuc)
  {
    Check(rcn_auc_add(this->Handles_->Auc.get(), this->Context_, &one->Case), this->Context_);
  }
  if (this->Options_.FitTemperature && judged.Levels)
  {
    this->Handles_->Temperatures.push_back(Handles::NewTemperature(this->Context_, this->Raters_.size()));
    Check(rcn_temperature_add(this->Handles_->Temperatures.back().get(), this->Context_, &one->Case), this->Context_);
  }
  this->Levels_ = judged.Levels;
  this->Ends_ = this->Ends_ && judged.Ends;
  if (!this->Options_.PerCase && !this->Handles_->Cases.empty())
  {
    Check(rcn_calib_merge(this->Handles_->Cases.front().get(), this->Context_, one->Sums.get()), this->Context_);
    return;
  }
  this->Handles_->Cases.push_back(std::move(one->Sums));
  this->Ids_.push_back(judged.Name());
  this->Fingerprints_.push_back(judged.Fingerprint);
  this->Patients_.push_back(judged.Patient);
  this->Circular_.push_back(one->Circular);
  this->Numbers_.push_back(judged.Number);
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
    json_object_set_new(record, "circular", json_boolean(this->Circular_[i]));
    json_object_set_new(record, "levels", json_boolean(this->Levels_));
    json_object_set_new(record, "ends", json_boolean(this->Ends_));
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
  this->Circular_.clear();
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
    this->Circular_.push_back(json_is_true(json_object_get(record, "circular")));
    this->Numbers_.push_back(number);
    this->Levels_ = json_is_true(json_object_get(record, "levels"));
    this->Ends_ = this->Ends_ && json_is_true(json_object_get(record, "ends"));
  }
}

std::vector<int> Evaluation::PatientNumbers() const
{
  std::map<std::string, int> known;
  std::vector<int> numbers;
  for (size_t i = 0; i < this->Patients_.size(); ++i)
  {
    const std::string& patient = this->Patients_[i];
    const std::string key = patient.empty() ? "case " + std::to_string(i) : "patient " + patient;
    numbers.push_back(known.emplace(key, static_cast<int>(known.size())).first->second);
  }
  return numbers;
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

rcn_auc_result Evaluation::Auc() const
{
  return this->AucOf(this->Figures().data());
}

rcn_auc_result Evaluation::AucOf(const double* figures) const
{
  rcn_auc_result auc{};
  auc.reference = figures[RCN_AUC_HISTOGRAM];
  auc.pairs = figures[RCN_AUC_PAIRS_HISTOGRAM];
  if (this->Options_.ExactAuc)
  {
    Check(rcn_auc_compute_shared(&auc, this->Context_, this->Handles_->Auc.get(), this->Comm_), this->Context_);
  }
  return auc;
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
  report.Auc = this->AucOf(report.Figures);
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
  const std::vector<int> patients = this->PatientNumbers();
  report.Patients = std::set<int>(patients.begin(), patients.end()).size();
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
    Check(rcn_interval_bins(report.BandLow.data(), report.BandHigh.data(), this->Context_, cases.data(), count, &intervals),
      this->Context_);
  }
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

std::vector<rcn_interval> Evaluation::Compare(const Evaluation& other) const
{
  return Together({ this }, { &other });
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
        throw Error(RCN_EDATA, "The two folders were judged on different cases.");
      }
      const std::vector<const rcn_calib*> own = run->Handles_->Pointers();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  };
  const std::vector<const rcn_calib*> one = sums(first), other = sums(second);
  const std::vector<int> patients = like.PatientNumbers();
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
  Recalibration out;
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
  out.Readout = this->Options_.Calib.readout;
  out.AtLeast = this->Options_.Calib.at_least;
  out.HasRegion = true;
  out.Region = this->Options_.Region;
  out.RegionMask = this->Options_.RegionMask;
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

// ---- results ---------------------------------------------------------------------------------------

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
      json_t* interval = JsonNumbers(ends, 2);
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

namespace
{

std::string Percent(double share, int digits = 0)
{
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * share);
  return text;
}

std::string Count(double count)
{
  char text[32];
  if (count >= 1e6)
  {
    std::snprintf(text, sizeof text, "%.3g million", count / 1e6);
  }
  else
  {
    std::snprintf(text, sizeof text, "%.0f", count);
  }
  return text;
}

/// Points of the curve (x: says, y: raters say) in figure coordinates.
struct Frame
{
  double Left, Top, Side;
  double X(double p) const { return this->Left + p * this->Side; }
  double Y(double p) const { return this->Top + (1 - p) * this->Side; }
};

std::vector<double> Curve(const EvaluationReport& report, const Frame& frame)
{
  std::vector<double> xy;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      xy.push_back(frame.X(bin.confidence));
      xy.push_back(frame.Y(bin.frequency));
    }
  }
  return xy;
}

void DrawBand(Figure& figure, const EvaluationReport& report, const Frame& frame)
{
  std::vector<double> forth, back;
  for (size_t b = 0; b < report.Bins.size(); ++b)
  {
    if (report.Bins[b].count > 0 && std::isfinite(report.BandLow[b]))
    {
      forth.insert(forth.end(), { frame.X(report.Bins[b].confidence), frame.Y(report.BandHigh[b]) });
      back.insert(back.begin(), { frame.X(report.Bins[b].confidence), frame.Y(report.BandLow[b]) });
    }
  }
  forth.insert(forth.end(), back.begin(), back.end());
  if (forth.size() >= 6)
  {
    figure.Polygon(forth, "#1f77b4", 0.2);
  }
}

void DrawAxes(Figure& figure, const Frame& frame)
{
  figure.Rectangle(frame.Left, frame.Top, frame.Side, frame.Side, "#fafafa", "#999");
  for (int tick = 0; tick <= 5; ++tick)
  {
    const double p = tick / 5.0;
    figure.Line(frame.X(p), frame.Top, frame.X(p), frame.Top + frame.Side, "#e4e4e4");
    figure.Line(frame.Left, frame.Y(p), frame.Left + frame.Side, frame.Y(p), "#e4e4e4");
    figure.Text(frame.Left - 8, frame.Y(p) + 4, Percent(p), 11, Anchor::End, "#444");
  }
  figure.Line(frame.X(0), frame.Y(0), frame.X(1), frame.Y(1), "#777", 1.5, "5,4");
  figure.VerticalText(frame.Left - 50, frame.Top + frame.Side / 2, "Raters who marked it", 13);
}

void DrawHistogram(Figure& figure, const EvaluationReport& report, const Frame& frame, double top, double height)
{
  double most = 1;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    most = std::max(most, static_cast<double>(bin.count));
  }
  figure.Rectangle(frame.Left, top, frame.Side, height, "#fafafa", "#999");
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      const double share = std::log10(1 + static_cast<double>(bin.count)) / std::log10(1 + most);
      figure.Hint("says " + Percent(bin.lower) + " to " + Percent(bin.upper) + ": " + Counted(bin.count, "vote"));
      figure.Rectangle(frame.X(bin.lower) + 0.5, top + height * (1 - share),
        std::max(frame.X(bin.upper) - frame.X(bin.lower) - 1, 0.5), height * share, "#8a9bb0");
    }
  }
  for (int tick = 0; tick <= 5; ++tick)
  {
    figure.Text(frame.X(tick / 5.0), top + height + 16, Percent(tick / 5.0), 11, Anchor::Middle, "#444");
  }
  figure.Text(frame.Left - 8, top + 10, Count(most), 10, Anchor::End, "#444");
  figure.VerticalText(frame.Left - 66, top + height / 2, "Votes (log)", 11);
  figure.Text(frame.X(0.5), top + height + 36, "Predicted probability", 13, Anchor::Middle);
}

std::string AverageInWords(const EvaluationReport& report)
{
  const rcn_interval& interval = report.Interval[RCN_MR_ECE];
  std::string text = "MR-ECE " + Percent(report.Figures[RCN_MR_ECE], 2);
  if (interval.units > 0 && std::isfinite(interval.low))
  {
    text += " (95 %: " + Percent(interval.low, 2) + " to " + Percent(interval.high, 2) + ")";
  }
  return text + " off on average";
}

} // namespace

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

std::string CorrectionInWords(const rcn_recalib& correction)
{
  const double* p = correction.parameters;
  switch (correction.method)
  {
    case RCN_RECALIB_TEMPERATURE:
      return "temperature " + Fixed(p[0], 3) +
        (p[0] > 1.02      ? " (it was too sure)"
            : p[0] < 0.98 ? " (it was too unsure)"
                          : " (it was fine)");
    case RCN_RECALIB_PLATT: return "slope " + Fixed(p[0], 3) + ", shift " + Fixed(p[1], 3) + " on the log-odds";
    case RCN_RECALIB_BETA: return "a " + Fixed(p[0], 3) + ", b " + Fixed(p[1], 3) + ", c " + Fixed(p[2], 3);
    default: return std::to_string(correction.knots) + " steps";
  }
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
  return worst ? "Where it says " + Percent(worst->confidence) + ", " + Percent(worst->frequency) + " of the raters mark it."
               : "";
}

Figure ReliabilityDiagram(const EvaluationReport& report, const std::string& title, const EvaluationReport* before)
{
  const Frame frame = { 86, 96, 360 };
  const std::string words[3] = { AverageInWords(report) + ".", DirectionInWords(report), WorstBinInWords(report) };
  Figure figure(480, 668, "Reliability diagram: " + title, words[0] + " " + words[1] + " " + words[2]);
  figure.Text(16, 26, title, 16, Anchor::Start, "#111", true);
  for (int line = 0; line < 3; ++line)
  {
    figure.Text(16, 46 + 17 * line, words[line], 12);
  }
  DrawAxes(figure, frame);
  // The gap: between the curve and the ideal line.
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      const double x = frame.X(bin.lower), width = frame.X(bin.upper) - x;
      const double high = std::max(bin.confidence, bin.frequency), low = std::min(bin.confidence, bin.frequency);
      figure.Rectangle(x, frame.Y(high), width, frame.Y(low) - frame.Y(high), "#d62728", "none", 0.18);
    }
  }
  if (before)
  {
    figure.Polyline(Curve(*before, frame), "#999", 1.5);
  }
  DrawBand(figure, report, frame);
  figure.Polyline(Curve(report, frame), "#1f77b4", 2.5);
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      figure.Circle(frame.X(bin.confidence), frame.Y(bin.frequency), 3.5, "#1f77b4");
    }
  }
  // The values of a bin are shown wherever the pointer is above it: points are too small to be hit.
  for (size_t b = 0; b < report.Bins.size(); ++b)
  {
    const rcn_calib_bin& bin = report.Bins[b];
    if (bin.count > 0)
    {
      figure.Hint("predicted " + Percent(bin.confidence, 1) + ", marked by " + Percent(bin.frequency, 1) +
        (std::isfinite(report.BandLow[b])
            ? " (95 %: " + Percent(report.BandLow[b], 1) + " to " + Percent(report.BandHigh[b], 1) + ")"
            : "") +
        ", " + Counted(bin.count, "vote"));
      figure.Rectangle(frame.X(bin.lower), frame.Top, frame.X(bin.upper) - frame.X(bin.lower), frame.Side, "#fff", "none", 0);
    }
  }
  double y = frame.Top + 16;
  figure.Text(frame.Left + 12, y, "– – perfect calibration", 11, Anchor::Start, "#555");
  if (before)
  {
    figure.Text(frame.Left + 12, y += 16, "gray: before recalibration", 11, Anchor::Start, "#777");
  }
  const bool band = std::any_of(report.BandLow.begin(), report.BandLow.end(), [](double low) { return std::isfinite(low); });
  figure.Text(frame.Left + 12, y += 16,
    band                                   ? "blue band: 95 % interval over " + UnitsInWords(report)
      : !NoIntervalInWords(report).empty() ? NoIntervalInWords(report)
      : std::isfinite(report.MassEce)      ? "bins of equal mass: no band"
                                           : "fewer than " + std::to_string(RCN_INTERVAL_UNITS) + " in each bin: no band",
    11, Anchor::Start, "#1f5f94");
  DrawHistogram(figure, report, frame, frame.Top + frame.Side + 14, 110);
  figure.Text(16, 658, "For research, not for clinical use.", 10, Anchor::Start, "#666");
  return figure;
}

} // namespace rcn
