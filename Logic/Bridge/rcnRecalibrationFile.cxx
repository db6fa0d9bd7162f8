// SPDX-License-Identifier: Apache-2.0
/// Corrections: their JSON files, what they do to a prediction, and what they are in words.
#include "rcnEvaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rcnReport.h"

namespace rcn
{

namespace
{

[[noreturn]] void FailRecalibration(const std::string& path, const std::string& what)
{
  throw Error(RCN_EFORMAT, path + " is not a usable recalibration file: " + what);
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

int ParameterCount(rcn_recalib_method method)
{
  static const int counts[] = { 1, 2, 3, 0 };
  return counts[method];
}

} // namespace

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
    FailRecalibration(path, std::string("it is not valid JSON (") + error.text + ").");
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
  json_object_set_new(
    root.get(), "parameters", Json(correction.parameters, static_cast<size_t>(ParameterCount(correction.method))).Release());
  json_object_set_new(root.get(), "x", Json(correction.x, static_cast<size_t>(correction.knots)).Release());
  json_object_set_new(root.get(), "y", Json(correction.y, static_cast<size_t>(correction.knots)).Release());
  json_object_set_new(root.get(), "pairs", json_integer(correction.pairs));
  json_object_set_new(root.get(), "cases", JsonStrings(recalibration.Cases));
  json_object_set_new(root.get(), "fingerprints", JsonStrings(recalibration.Fingerprints));
  return DocumentText(root.get());
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

} // namespace rcn
