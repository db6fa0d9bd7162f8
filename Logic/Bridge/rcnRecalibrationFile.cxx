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

int ParameterCount(rcn_recalib_method method)
{
  static const int counts[] = { 1, 2, 3, 0 };
  return counts[method];
}

} // namespace

Recalibration RecalibrationFor(const EvaluationOptions& options)
{
  Recalibration out;
  out.Readout = options.Calib.readout;
  out.AtLeast = options.Calib.at_least;
  out.HasRegion = true;
  out.Region = options.Region;
  out.RegionMask = options.RegionMask;
  return out;
}

std::string FittedElsewhere(const Recalibration& correction, const EvaluationOptions& options)
{
  const std::string region = RegionInWords(correction.Region, correction.RegionMask);
  const std::string judged = RegionInWords(options.Region, options.RegionMask);
  std::string text;
  if (correction.HasRegion && region != judged)
  {
    text = "The correction was fitted on the region " + region + "; this evaluates the region " + judged + ".";
  }
  const bool sameReadout = correction.Readout == options.Calib.readout && correction.AtLeast == options.Calib.at_least;
  if (!sameReadout && !correction.OneProbability)
  {
    text += (text.empty() ? "" : " ") + std::string("The correction was fitted with the readout ") +
      ReadoutText(correction.Readout, correction.AtLeast) + "; this evaluates the readout " +
      ReadoutText(options.Calib.readout, options.Calib.at_least) + ".";
  }
  return text;
}

namespace
{

/// What corrections of earlier versions do not have: where it was fitted, and whether to one probability.
void ReadFittedRegion(Recalibration& out, const JsonReader& reader)
{
  out.OneProbability = reader.Boolean("one_probability", false);
  if (out.OneProbability && out.Correction.levels)
  {
    reader.Fail("a correction of levels cannot be for one probability.");
  }
  out.HasRegion = reader.Has("region") || reader.Has("region_mask");
  if (!out.HasRegion)
  {
    return;
  }
  out.RegionMask = reader.Text("region_mask", "");
  if (reader.Has("region") && !Parse(out.Region.region, reader.Text("region")))
  {
    reader.Fail("\"region\" must be " + ChoicesText(Regions()) + ".");
  }
  out.Region.margin = reader.WholeNumber("margin", 0, 1 << 30, out.Region.margin);
  out.Region.band_mm = reader.Number("band", -HUGE_VAL, HUGE_VAL, out.Region.band_mm);
  if (const char* sentence = rcn_region_check(&out.Region))
  {
    reader.Fail(sentence);
  }
}

} // namespace

Recalibration ReadRecalibration(const std::string& path)
{
  return ParseRecalibration(ReadText(path), path);
}

Recalibration ParseRecalibration(const std::string& text, const std::string& path)
{
  const std::string about = path + " is not a usable recalibration file";
  const JsonHandle root = ParseJson(text, about);
  const JsonReader reader(root.get(), about);
  Recalibration out;
  out.Path = path;
  rcn_recalib& correction = out.Correction;
  if (!Parse(correction.method, reader.Text("method", "")))
  {
    reader.Fail("\"method\" must be " + ChoicesText(Corrections()) + ".");
  }
  if (!Parse(out.Readout, reader.Text("readout", "")))
  {
    reader.Fail("\"readout\" must be " + ChoicesText(Readouts()) + ".");
  }
  out.AtLeast = static_cast<int>(reader.WholeNumber("at_least", 0, RCN_MAX_RATERS, 0));
  if ((out.Readout == RCN_READOUT_AT_LEAST) != (out.AtLeast > 0))
  {
    reader.Fail("\"at_least\" must be 1 or more with the readout at-least, and 0 with the others.");
  }
  correction.levels = static_cast<int>(reader.WholeNumber("levels", 0, RCN_MAX_RATERS + 1, 0));
  correction.pairs = reader.WholeNumber("pairs", 0, INT64_MAX, 0);
  ReadFittedRegion(out, reader);
  const std::vector<double> parameters = reader.Numbers("parameters"), x = reader.Numbers("x"), y = reader.Numbers("y");
  const size_t count = static_cast<size_t>(ParameterCount(correction.method));
  if (parameters.size() != count)
  {
    reader.Fail(
      reader.Text("method") + " has " + std::to_string(count) + " parameters, not " + std::to_string(parameters.size()) + ".");
  }
  if (x.size() != y.size() || x.size() > RCN_RECALIB_KNOTS)
  {
    reader.Fail("\"x\" and \"y\" must have the same length, at most " + std::to_string(RCN_RECALIB_KNOTS) + ".");
  }
  std::copy(parameters.begin(), parameters.end(), correction.parameters);
  std::copy(x.begin(), x.end(), correction.x);
  std::copy(y.begin(), y.end(), correction.y);
  correction.knots = static_cast<int>(x.size());
  out.Cases = reader.Texts("cases");
  out.Fingerprints = reader.Texts("fingerprints");
  if (reader.Has("volumes"))
  {
    out.Volumes = std::make_shared<VolumeScores>(ParseVolumeScores(reader.Get("volumes"), about));
  }
  if (const char* sentence = rcn_recalib_check(&correction))
  {
    reader.Fail(sentence);
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
  JsonObject object{ { "method", rcn_recalib_name(correction.method) }, { "levels", correction.levels },
    { "readout", rcn_readout_name(recalibration.Readout) }, { "at_least", recalibration.AtLeast },
    { "one_probability", recalibration.OneProbability } };
  if (recalibration.HasRegion && !recalibration.RegionMask.empty())
  {
    object.Set("region_mask", recalibration.RegionMask);
  }
  else if (recalibration.HasRegion)
  {
    const rcn_region_options& region = recalibration.Region;
    object.Set("region", rcn_region_name(region.region)).Set("margin", region.margin).Set("band", region.band_mm);
  }
  const size_t knots = static_cast<size_t>(correction.knots);
  object.Set("parameters", Json(correction.parameters, static_cast<size_t>(ParameterCount(correction.method))));
  object.Set("x", Json(correction.x, knots)).Set("y", Json(correction.y, knots)).Set("pairs", correction.pairs);
  object.Set("cases", recalibration.Cases).Set("fingerprints", recalibration.Fingerprints);
  if (recalibration.Volumes)
  {
    object.Set("volumes", VolumeScoresJson(*recalibration.Volumes));
  }
  return DocumentText(object.Get());
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
        (p[0] > 1.02      ? " (the model was overconfident)"
            : p[0] < 0.98 ? " (the model was underconfident)"
                          : " (the model was well calibrated)");
    case RCN_RECALIB_PLATT: return "slope " + Fixed(p[0], 3) + ", shift " + Fixed(p[1], 3) + " on the log-odds";
    case RCN_RECALIB_BETA: return "a " + Fixed(p[0], 3) + ", b " + Fixed(p[1], 3) + ", c " + Fixed(p[2], 3);
    default: return std::to_string(correction.knots) + " steps";
  }
}

} // namespace rcn
