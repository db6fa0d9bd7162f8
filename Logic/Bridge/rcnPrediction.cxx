#include "rcnPrediction.h"

#include <cmath>
#include <cstdio>

#include "rcnReport.h"

namespace rcn
{

namespace
{

struct Readout
{
  rcn_readout Kind;
  int AtLeast;
};

Readout ReadoutOf(const Model& model, const PredictionOptions& options)
{
  Readout readout = { model.Info().Readout, model.Info().AtLeast };
  if (!options.Readout.empty() && !ParseReadout(readout.Kind, readout.AtLeast, options.Readout))
  {
    throw Error(RCN_EINVALID, "--readout is majority, expected or at-least:T (such as at-least:2), not '" + options.Readout + "'.");
  }
  return readout;
}

const Recalibration* CorrectionOf(const Model& model, const PredictionOptions& options)
{
  return !options.Recalibrate ? nullptr : options.Correction ? options.Correction : model.Info().Correction.get();
}

std::string SpacingText(const double spacing[3])
{
  char text[96];
  std::snprintf(text, sizeof text, "%.4g x %.4g x %.4g mm", spacing[0], spacing[1], spacing[2]);
  return text;
}

void CheckImage(const Model& model, const std::vector<Volume>& images, const std::string& about)
{
  int channels = 0;
  for (const Volume& image : images)
  {
    channels += image.ChannelCount();
  }
  if (channels != model.Options().channels)
  {
    throw Error(RCN_EDATA, about + " has " + Counted(channels, "channel") + ", but " +
      model.Path() + " takes " + std::to_string(model.Options().channels) + ".");
  }
  if (model.Is3D() && images.front().Geometry().size[2] == 1)
  {
    throw Error(RCN_EDATA, about + " is one slice, but " + model.Path() + " is for volumes.");
  }
}

} // namespace

std::vector<rcn_channel> ChannelsOf(const std::vector<Volume>& images)
{
  std::vector<rcn_channel> channels;
  for (const Volume& image : images)
  {
    for (int c = 0; c < image.ChannelCount(); ++c)
    {
      const Channel channel = image.GetChannel(c);
      channels.push_back({ channel.Image, channel.Component });
    }
  }
  return channels;
}

bool OtherSpacing(const double a[3], const double b[3])
{
  for (int axis = 0; axis < 3; ++axis)
  {
    if (std::fabs(a[axis] - b[axis]) > 0.01 * b[axis])
    {
      return true;
    }
  }
  return false;
}

Volume LevelsAtSpacing(const std::vector<Volume>& images, const double* spacing,
  const std::function<Volume(const std::vector<rcn_channel>& channels, const rcn_geometry& seen)>& predict)
{
  const rcn_geometry geometry = images.front().Geometry();
  if (!spacing)
  {
    return predict(ChannelsOf(images), geometry);
  }
  const rcn_geometry seen = GeometryAtSpacing(geometry, spacing);
  std::vector<Volume> resampled;
  for (const Volume& image : images)
  {
    resampled.push_back(ResampleLinear(image, seen));
  }
  const Volume levels = predict(ChannelsOf(resampled), seen);
  resampled.clear(); // not beside both grids of levels
  return ResampleLinear(levels, geometry);
}

std::string CheckPrediction(const Model& model, const PredictionOptions& options)
{
  if (const char* sentence = rcn_predict_check(&options.Tiles))
  {
    return sentence;
  }
  Readout readout{};
  try
  {
    readout = ReadoutOf(model, options);
  }
  catch (const Error& error)
  {
    return error.what();
  }
  rcn_calib_options calib = RCN_CALIB_OPTIONS_INIT;
  calib.readout = readout.Kind;
  calib.at_least = readout.AtLeast;
  if (const char* sentence = rcn_calib_check(&calib, model.RaterCount()))
  {
    return sentence;
  }
  if (!(options.Threshold >= 0 && options.Threshold <= 1))
  {
    return "The threshold of the mask must be between 0 and 1.";
  }
  const Recalibration* correction = CorrectionOf(model, options);
  if (!correction)
  {
    return "";
  }
  const std::string name = correction->Path.empty() ? "The recalibration" : correction->Path;
  const int levels = correction->Correction.levels;
  if (levels && levels != model.RaterCount() + 1)
  {
    return name + " corrects maps of " + std::to_string(levels) + " levels; the model gives " +
      std::to_string(model.RaterCount() + 1) + ".";
  }
  if (!levels && (correction->Readout != readout.Kind || correction->AtLeast != readout.AtLeast))
  {
    return name + " was fitted to the readout " + ReadoutText(correction->Readout, correction->AtLeast) +
      "; use the same --readout, or say --no-recalibration.";
  }
  return "";
}

Prediction Predict(const Model& model, rcn_context* context, const std::vector<Volume>& images, const std::string& about,
  const PredictionOptions& options)
{
  const std::string sentence = CheckPrediction(model, options);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
  CheckImage(model, images, about);
  Prediction out;
  const rcn_geometry geometry = images.front().Geometry();
  const double* spacing = model.Options().spacing;
  const bool resample = model.Is3D() && model.Info().HasSpacing && OtherSpacing(geometry.spacing, spacing);
  if (resample)
  {
    out.Remarks.push_back(about + " was resampled from " + SpacingText(geometry.spacing) + " to the model's " +
      SpacingText(spacing) + ", and the prediction back.");
  }
  const auto predict = [&](const std::vector<rcn_channel>& channels, const rcn_geometry& seen) {
    rcn_scale scale{};
    int64_t tile[3];
    Check(rcn_normalize_fit(&scale, context, &model.Info().Normalization, channels.data(), static_cast<int>(channels.size())),
      context, about);
    Check(rcn_predict_plan(tile, &out.Tiles, model.Net(), seen.size, &options.Tiles), context, about);
    Volume levels = Volume::Allocate(seen, RCN_FLOAT32, model.RaterCount() + 1);
    const std::vector<float>& parameters = model.Info().LossParameters;
    Check(rcn_predict_levels(static_cast<float*>(levels.Data()), model.Net(), model.Loss(),
            parameters.empty() ? nullptr : parameters.data(), &scale, channels.data(), &options.Tiles),
      context, about);
    return levels;
  };
  Volume levels = LevelsAtSpacing(images, resample ? spacing : nullptr, predict);

  const Readout readout = ReadoutOf(model, options);
  const Recalibration* correction = CorrectionOf(model, options);
  const bool onLevels = correction && correction->Correction.levels;
  if (onLevels)
  {
    Check(rcn_recalib_apply_levels(static_cast<float*>(levels.Data()), context, &correction->Correction, &levels.View()),
      context, about);
  }
  out.Readout = ReadoutText(readout.Kind, readout.AtLeast);
  out.Probability = Volume::Allocate(geometry, RCN_FLOAT32);
  float* probability = static_cast<float*>(out.Probability.Data());
  Check(rcn_readout_apply(probability, context, &levels.View(), readout.Kind, readout.AtLeast), context, about);
  if (options.Uncertainty)
  {
    out.Uncertainty = Volume::Allocate(geometry, RCN_FLOAT32);
    Check(rcn_predict_entropy(static_cast<float*>(out.Uncertainty.Data()), context, &levels.View()), context, about);
  }
  if (correction && !onLevels)
  {
    Check(rcn_recalib_apply(probability, context, &correction->Correction, &out.Probability.View()), context, about);
    out.Remarks.push_back(std::string("The correction (") + rcn_recalib_name(correction->Correction.method) +
      ") is for the readout " + out.Readout + ", so the levels are not written.");
  }
  else
  {
    out.Levels = levels;
  }
  out.Mask = Volume::Allocate(geometry, RCN_UINT8);
  Check(rcn_predict_mask(static_cast<uint8_t*>(out.Mask.Data()), context, &out.Probability.View(), options.Threshold),
    context, about);
  return out;
}

std::vector<Volume> LevelMasks(rcn_context* context, const Volume& levels, double threshold)
{
  const Volume probability = Volume::Allocate(levels.Geometry(), RCN_FLOAT32);
  std::vector<Volume> masks;
  for (int k = 1; k < levels.View().components; ++k)
  {
    Check(rcn_readout_apply(static_cast<float*>(probability.Data()), context, &levels.View(), RCN_READOUT_AT_LEAST, k), context);
    masks.push_back(Volume::Allocate(levels.Geometry(), RCN_UINT8));
    Check(rcn_predict_mask(static_cast<uint8_t*>(masks.back().Data()), context, &probability.View(), threshold), context);
  }
  return masks;
}

} // namespace rcn
