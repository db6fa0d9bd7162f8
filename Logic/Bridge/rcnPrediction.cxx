// SPDX-License-Identifier: Apache-2.0
#include "rcnPrediction.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "rcnReport.h"
#include "rcnResample.h"

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
    throw Error(
      RCN_EINVALID, std::string("The readout must be ") + ReadoutChoices + ", not '" + options.Readout + "'.", "readout");
  }
  if (readout.Kind == RCN_READOUT_MAJORITY && model.Info().TieBackground)
  {
    readout.Kind = RCN_READOUT_MORE_THAN_HALF; // the majority that it was trained for
  }
  return readout;
}

const Recalibration* CorrectionOf(const Model& model, const PredictionOptions& options)
{
  return !options.Recalibrate ? nullptr : options.Correction ? options.Correction : model.Info().Correction.get();
}

/// Throws where the model cannot take the image; `seen` is its geometry along the model's axes.
void CheckImage(const Model& model, const std::vector<Volume>& images, const rcn_geometry& seen, const std::string& about)
{
  int channels = 0;
  for (const Volume& image : images)
  {
    channels += image.ChannelCount();
  }
  if (channels != model.Options().channels)
  {
    throw Error(RCN_EDATA,
      about + " has " + Counted(channels, "channel") + ", but " + model.Path() + " takes " +
        std::to_string(model.Options().channels) + ".");
  }
  if (model.Is3D() && rcn_geometry_thin_axis(&seen) >= 0)
  {
    throw Error(RCN_EDATA, about + " is one slice, but " + model.Path() + " is for volumes.");
  }
}

/// A channel as the network sees it.
Volume Normalized(const rcn_channel& channel, const rcn_scale& scale, int number)
{
  const int64_t first[3] = { 0, 0, 0 };
  rcn_scale own = scale;
  own.channels = 1;
  own.shift[0] = scale.shift[number];
  own.factor[0] = scale.factor[number];
  const Volume out = Volume::Allocate(channel.image.geometry, RCN_FLOAT32);
  rcn_normalize_box(static_cast<float*>(out.Data()), &own, &channel, first, out.Geometry().size);
  return out;
}

/// The numbers of the image's axes in place of the model's.
void ToImageAxes(double out[3], const double spacing[3], const rcn_order& order)
{
  for (int a = 0; a < 3; ++a)
  {
    out[order.from[a]] = spacing[a];
  }
}

/// What a person should know of an image of another spacing than the training's; empty where it is alike.
std::string SpacingRemark(const Model& model, const rcn_geometry& seen, const rcn_order& order, const std::string& about)
{
  const double* size = model.Info().PixelSize;
  if (model.Is3D())
  {
    if (!model.Info().HasSpacing || !OtherSpacing(seen.spacing, model.Options().spacing))
    {
      return "";
    }
    if (seen.unit == RCN_PIXELS)
    {
      return about + " has no spacing; it is taken as the model's, " + SpacingText(model.Options().spacing) + ".";
    }
    double from[3], to[3];
    ToImageAxes(from, seen.spacing, order);
    ToImageAxes(to, model.Options().spacing, order);
    return about + " was resampled from " + SpacingText(from) + " to the model's " + SpacingText(to) +
      ", and the prediction back.";
  }
  if (!(size[0] > 0) || seen.unit == RCN_PIXELS ||
    (std::fabs(seen.spacing[0] - size[0]) <= 0.2 * size[0] && std::fabs(seen.spacing[1] - size[1]) <= 0.2 * size[1]))
  {
    return "";
  }
  char text[160];
  std::snprintf(text, sizeof text,
    " has pixels of %.4g x %.4g mm, but the model was trained on pixels of %.4g x %.4g mm; "
    "resample the image first.",
    seen.spacing[0], seen.spacing[1], size[0], size[1]);
  return about + text;
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

rcn_scale FitScale(rcn_context* context, const rcn_normalize& rule, const std::vector<Volume>& images, const std::string& about)
{
  rcn_scale scale{};
  const std::vector<rcn_channel> channels = ChannelsOf(images);
  Check(rcn_normalize_fit(&scale, context, &rule, channels.data(), static_cast<int>(channels.size())), context, about);
  return scale;
}

namespace
{

/// Levels are then taken back to the voxels of the image before anything is made of them.
bool IsResampled(const LevelsOptions& options, const rcn_geometry& geometry)
{
  return options.Spacing && geometry.unit == RCN_MM && OtherSpacing(geometry.spacing, options.Spacing);
}

/// Runs the network over an image as it was trained to see it; `run` fills a map of so many components.
Volume PredictMap(rcn_context* context, const LevelsOptions& options, const std::vector<Volume>& images,
  const std::string& about, int components,
  const std::function<rcn_status(float* map, const rcn_scale* scale, const rcn_channel* channels)>& run)
{
  const rcn_geometry geometry = images.front().Geometry();
  rcn_scale scale = FitScale(context, *options.Normalization, images, about);
  const bool resample = IsResampled(options, geometry);
  const rcn_geometry seen = resample ? GeometryAtSpacing(geometry, options.Spacing, about) : geometry;
  std::vector<Volume> resampled = resample ? std::vector<Volume>() : images;
  if (resample)
  {
    // As training's samples are made: normalized first, and cut where the rule cuts, then between voxels.
    for (const rcn_channel& channel : ChannelsOf(images))
    {
      resampled.push_back(ResampleLinear(Normalized(channel, scale, static_cast<int>(resampled.size())), seen));
    }
    std::fill(scale.shift, scale.shift + scale.channels, 0.0);
    std::fill(scale.factor, scale.factor + scale.channels, 1.0);
  }
  const std::vector<rcn_channel> channels = ChannelsOf(resampled);
  if (options.TileCount)
  {
    int64_t tile[3];
    Check(rcn_predict_plan(tile, options.TileCount, options.Net, seen.size, options.Tiles), context, about);
  }
  const Volume map = Volume::Allocate(seen, RCN_FLOAT32, components);
  Check(run(static_cast<float*>(map.Data()), &scale, channels.data()), context, about);
  resampled.clear(); // not beside both grids of the map
  return resample ? ResampleLinear(map, geometry) : map;
}

} // namespace

Volume PredictLevels(
  rcn_context* context, const LevelsOptions& options, const std::vector<Volume>& images, const std::string& about)
{
  return PredictMap(context, options, images, about, rcn_loss_raters(options.Loss) + 1,
    [&options](float* levels, const rcn_scale* scale, const rcn_channel* channels) {
      return rcn_predict_levels(levels, options.Net, options.Loss, options.LossParameters, scale, channels, options.Tiles);
    });
}

StructureMaps PredictStructures(
  rcn_context* context, const LevelsOptions& options, const std::vector<Volume>& images, const std::string& about)
{
  StructureMaps maps;
  const int count = rcn_loss_structures(options.Loss), raters = rcn_loss_raters(options.Loss);
  const double correlation = rcn_loss_correlation(options.Loss, options.LossParameters);
  if (correlation >= 0)
  {
    const Volume means = PredictMap(
      context, options, images, about, count + 1, [&options](float* out, const rcn_scale* scale, const rcn_channel* channels) {
        return rcn_predict_means(out, options.Net, options.Loss, options.LossParameters, scale, channels, options.Tiles);
      });
    maps.Shares = StripShares(context, means, about);
    maps.Correlation = correlation;
    return maps;
  }
  for (int structure = 1; structure <= count; ++structure)
  {
    maps.Levels.push_back(PredictMap(context, options, images, about, raters + 1,
      [&options, structure](float* levels, const rcn_scale* scale, const rcn_channel* channels) {
        return rcn_predict_structure(
          levels, options.Net, options.Loss, structure, options.LossParameters, scale, channels, options.Tiles);
      }));
  }
  return maps;
}

PredictionRun RunOf(const Model& model, const PredictionOptions& options)
{
  const Readout readout = ReadoutOf(model, options);
  const Recalibration* correction = CorrectionOf(model, options);
  PredictionRun run;
  run.Model = std::filesystem::absolute(model.Path()).string();
  run.Hash = model.Hash();
  run.Readout = ReadoutText(readout.Kind, readout.AtLeast);
  run.TieBackground = model.Info().TieBackground;
  run.Levels = !model.GivesOneProbability();
  run.Correction = correction ? std::make_shared<Recalibration>(*correction) : nullptr;
  run.Volumes = model.Info().Volumes;
  run.Structures = model.Info().Structures;
  if (!options.Structure.empty())
  {
    run.Structures = { run.Structures[static_cast<size_t>(FindStructure(run.Structures, options.Structure)) - 1] };
  }
  else if (model.HasSeveralStructures())
  {
    const std::vector<float>& parameters = model.Info().LossParameters;
    const double correlation = rcn_loss_correlation(model.Loss(), parameters.empty() ? nullptr : parameters.data());
    run.Correlation = correlation >= 0 ? correlation : NAN;
  }
  return run;
}

void CheckPrediction(const Model& model, const PredictionOptions& options)
{
  const auto refuseIf = [](const char* sentence) {
    if (sentence)
    {
      throw Error(RCN_EINVALID, sentence);
    }
  };
  refuseIf(rcn_predict_check(&options.Tiles));
  const Readout readout = ReadoutOf(model, options);
  rcn_calib_options calib = RCN_CALIB_OPTIONS_INIT;
  calib.readout = readout.Kind;
  calib.at_least = readout.AtLeast;
  refuseIf(rcn_calib_check(&calib, model.RaterCount()));
  refuseIf(options.Threshold >= 0 && options.Threshold <= 1 ? nullptr : "The threshold of the mask must be between 0 and 1.");
  if (!options.Structure.empty())
  {
    FindStructure(model.Info().Structures, options.Structure);
  }
  const Recalibration* correction = CorrectionOf(model, options);
  if (!correction)
  {
    return;
  }
  const auto refuse = [correction](const std::string& why, const char* key = "recalibration") {
    throw Error(RCN_EINVALID, (correction->Path.empty() ? "The recalibration" : correction->Path) + why, key);
  };
  const int levels = correction->Correction.levels;
  if (model.HasSeveralStructures())
  {
    if (levels != model.StructureCount() + 1 || model.Info().Loss == RCN_LOSS_RPS_HEADS)
    {
      refuse(" does not fit a model of " + std::to_string(model.StructureCount()) +
        " structures, which takes a temperature of its labels" +
        (model.Info().Loss == RCN_LOSS_RPS_HEADS ? ", and none where it gives levels of each by themselves." : "."));
    }
    return;
  }
  if (levels && levels != model.RaterCount() + 1)
  {
    refuse(" corrects maps of " + std::to_string(levels) + " levels; the model gives " +
      std::to_string(model.RaterCount() + 1) + ".");
  }
  if (model.GivesOneProbability())
  {
    if (levels > 2)
    {
      refuse(" was fitted to levels, but the model gives one probability; fit it again.");
    }
    return;
  }
  if (correction->OneProbability)
  {
    refuse(" is for a model that gives one probability; this one gives levels.");
  }
  if (!levels && (correction->Readout != readout.Kind || correction->AtLeast != readout.AtLeast))
  {
    refuse(
      " was fitted to the readout " + ReadoutText(correction->Readout, correction->AtLeast) + "; use the same one.", "readout");
  }
}

namespace
{

/// A map as the voxels of the image are stored.
Volume Back(const Volume& map, rcn_context* context, const rcn_order& order, const rcn_geometry& geometry)
{
  const Volume turned = map.Reordered(context, rcn_order_inverse(&order));
  rcn_image view = turned.View();
  view.geometry = geometry; // the very numbers, not those that turning there and back makes of them
  return Volume::Share(view, std::make_shared<Volume>(turned));
}

/// The network as it sees an image.
LevelsOptions HowOf(const Model& model, const PredictionOptions& options, int64_t& tiles)
{
  const std::vector<float>& parameters = model.Info().LossParameters;
  LevelsOptions how;
  how.Net = model.Net();
  how.Loss = model.Loss();
  how.LossParameters = parameters.empty() ? nullptr : parameters.data();
  how.Normalization = &model.Info().Normalization;
  how.Spacing = model.Is3D() && model.Info().HasSpacing ? model.Options().spacing : nullptr;
  how.Tiles = &options.Tiles;
  how.TileCount = &tiles;
  return how;
}

std::vector<Volume> Reordered(const std::vector<Volume>& images, rcn_context* context, const rcn_order& order)
{
  std::vector<Volume> reordered;
  for (const Volume& image : images)
  {
    reordered.push_back(image.Reordered(context, order));
  }
  return reordered;
}

/// What the network gives for the image as its voxels are stored: levels, or the maps of several structures.
StructureMaps NetworkMaps(const Model& model, rcn_context* context, const std::vector<Volume>& images, const rcn_order& order,
  const std::string& about, const PredictionOptions& options, int64_t& tiles)
{
  std::vector<Volume> reordered = Reordered(images, context, order);
  const LevelsOptions how = HowOf(model, options, tiles);
  StructureMaps maps;
  if (model.HasSeveralStructures())
  {
    maps = PredictStructures(context, how, reordered, about);
  }
  else
  {
    maps.Levels = { PredictLevels(context, how, reordered, about) };
  }
  reordered.clear();
  const rcn_geometry geometry = images.front().Geometry();
  for (Volume& levels : maps.Levels)
  {
    levels = Back(levels, context, order, geometry);
  }
  maps.Shares = maps.Levels.empty() ? Back(maps.Shares, context, order, geometry) : Volume();
  return maps;
}

/// One component of a map with one for each structure.
void SetComponent(const Volume& map, int number, const Volume& component)
{
  const int count = map.View().components;
  rcn_image_copy_component(static_cast<float*>(map.Data()) + number, count, &component.View(), 0);
}

/// What is known of the volumes of these maps; null: nothing.
std::shared_ptr<const VolumeScores> ScoresFor(const Model& model, const PredictionOptions& options)
{
  const Recalibration* correction = CorrectionOf(model, options);
  return correction ? correction->Volumes : model.Info().Volumes;
}

/// Everything else that is wanted of the one structure that was asked for.
void FinishStructure(Prediction& out, const Model& model, rcn_context* context, const StructureMaps& maps,
  const PredictionOptions& options, const Readout& readout, const std::string& about)
{
  const int number = FindStructure(model.Info().Structures, options.Structure);
  const Volume map = maps.Of(context, number, model.RaterCount(), about);
  const rcn_geometry& geometry = map.Geometry();
  out.Levels = maps.HasLevels() ? map : Volume();
  out.Probability = map;
  if (maps.HasLevels() && maps.Levels.empty() && readout.Kind == RCN_READOUT_EXPECTED) // the share itself, without rounding
  {
    out.Probability = Volume::Allocate(geometry, RCN_FLOAT32);
    rcn_image_copy_component(out.Probability.Data(), 1, &maps.Shares.View(), number - 1);
  }
  else if (maps.HasLevels())
  {
    out.Probability = Volume::Allocate(geometry, RCN_FLOAT32);
    float* probability = static_cast<float*>(out.Probability.Data());
    Check(rcn_readout_apply(probability, context, &map.View(), readout.Kind, readout.AtLeast), context, about);
  }
  if (options.Uncertainty)
  {
    const Volume all = maps.HasLevels() ? map : CompleteShares(context, map, about);
    out.Uncertainty = Volume::Allocate(geometry, RCN_FLOAT32);
    Check(rcn_predict_entropy(static_cast<float*>(out.Uncertainty.Data()), context, &all.View()), context, about);
  }
  out.Mask = Volume::Allocate(geometry, RCN_UINT8);
  Check(rcn_predict_mask(static_cast<uint8_t*>(out.Mask.Data()), context, &out.Probability.View(), options.Threshold), context,
    about);
  const auto scores = ScoresOf(ScoresFor(model, options), options.Structure);
  out.Volumes = PredictVolumes(context, map, model.RaterCount(), scores.get(), about);
}

/// The same of all of them.
void FinishStructures(Prediction& out, const Model& model, rcn_context* context, const StructureMaps& predicted,
  const PredictionOptions& options, const Readout& readout, const std::string& about)
{
  const auto maps = std::make_shared<const StructureMaps>(predicted);
  const int count = model.StructureCount(), raters = model.RaterCount();
  const rcn_geometry& geometry = maps->Geometry();
  const bool asTheyAre = readout.Kind == RCN_READOUT_EXPECTED && maps->Levels.empty();
  out.Structures = maps;
  out.StructureList = model.Info().Structures;
  out.Probability = asTheyAre ? maps->Shares : Volume::Allocate(geometry, RCN_FLOAT32, count);
  const Volume shares = maps->Levels.empty() ? maps->Shares : Volume::Allocate(geometry, RCN_FLOAT32, count);
  Volume one = Volume::Allocate(geometry, RCN_FLOAT32);
  for (int structure = 1; structure <= count; ++structure)
  {
    const Volume map = maps->Of(context, structure, raters, about);
    const auto scores = ScoresOf(ScoresFor(model, options), out.StructureList[static_cast<size_t>(structure) - 1].Name);
    out.StructureVolumes.push_back(PredictVolumes(context, map, raters, scores.get(), about));
    const auto read = [&](rcn_readout kind, int atLeast) {
      if (map.View().components == 1) // any readout of it
      {
        return map;
      }
      Check(rcn_readout_apply(static_cast<float*>(one.Data()), context, &map.View(), kind, atLeast), context, about);
      return one;
    };
    if (!asTheyAre)
    {
      SetComponent(out.Probability, structure - 1, read(readout.Kind, readout.AtLeast));
    }
    if (!maps->Levels.empty())
    {
      SetComponent(shares, structure - 1, read(RCN_READOUT_EXPECTED, 0));
    }
  }
  const Volume means = CompleteShares(context, shares, about);
  std::vector<uint8_t> values = LabelValues(out.StructureList);
  values.insert(values.begin(), 0);
  out.Labels = Volume::Allocate(geometry, RCN_UINT8);
  Check(rcn_predict_labels(static_cast<uint8_t*>(out.Labels.Data()), context, &means.View(), values.data()), context, about);
  if (options.Uncertainty)
  {
    out.Uncertainty = Volume::Allocate(geometry, RCN_FLOAT32);
    Check(rcn_predict_entropy(static_cast<float*>(out.Uncertainty.Data()), context, &means.View()), context, about);
  }
}

/// A correction as it is applied to levels; .levels is 0 where it is for one probability, or where there is none.
rcn_recalib OnLevels(const Model& model, const Recalibration* correction)
{
  rcn_recalib onLevels = correction ? correction->Correction : rcn_recalib{};
  if (correction && model.GivesOneProbability() && onLevels.method == RCN_RECALIB_TEMPERATURE)
  {
    onLevels.levels = model.RaterCount() + 1; // none or all of the raters: the same temperature on the same odds
  }
  return onLevels;
}

/// The end of each prediction of one structure: a correction of its probability, where there is one, and the mask.
void FinishProbability(Prediction& out, const Model& model, rcn_context* context, const PredictionOptions& options,
  const std::string& about, const Recalibration* onProbability)
{
  float* probability = static_cast<float*>(out.Probability.Data());
  if (onProbability)
  {
    Check(rcn_recalib_apply(probability, context, &onProbability->Correction, &out.Probability.View()), context, about);
    out.Remarks.push_back(std::string("The correction (") + rcn_recalib_name(onProbability->Correction.method) + ") is for " +
      (model.GivesOneProbability() ? "one probability" : "the readout " + out.Readout) + ", so the levels are not written.");
  }
  out.Mask = Volume::Allocate(out.Probability.Geometry(), RCN_UINT8);
  Check(rcn_predict_mask(static_cast<uint8_t*>(out.Mask.Data()), context, &out.Probability.View(), options.Threshold), context,
    about);
}

/// Which maps are made of levels that are handed out slab by slab; null: not this one.
struct SlabMaps
{
  rcn_context* Context;
  rcn_recalib OnLevels;
  Readout What;
  float* Probability;
  float* Uncertainty;
  rcn_volume_sums* Sums;
  float* Share; ///< may be Probability
  uint8_t* Likely;
};

rcn_status TakeSlab(rcn_image* levels, int64_t first, void* payload)
{
  const SlabMaps& maps = *static_cast<const SlabMaps*>(payload);
  rcn_status status = RCN_OK;
  if (maps.OnLevels.levels)
  {
    status = rcn_recalib_apply_levels(static_cast<float*>(levels->data), maps.Context, &maps.OnLevels, levels);
  }
  if (!status && maps.Sums)
  {
    status = rcn_volume_add_slab(maps.Sums, maps.Share + first, maps.Likely + first, maps.Context, levels);
  }
  if (!status && maps.Probability != maps.Share)
  {
    status = rcn_readout_apply(maps.Probability + first, maps.Context, levels, maps.What.Kind, maps.What.AtLeast);
  }
  if (!status && maps.Uncertainty)
  {
    status = rcn_predict_entropy(maps.Uncertainty + first, maps.Context, levels);
  }
  return status;
}

/// Everything but the levels, which are never there as a whole. Not for an image that is resampled.
void PredictWithoutLevels(Prediction& out, const Model& model, rcn_context* context, const std::vector<Volume>& images,
  const rcn_order& order, const std::string& about, const PredictionOptions& options, const Readout& readout)
{
  const Recalibration* correction = CorrectionOf(model, options);
  const rcn_recalib onLevels = OnLevels(model, correction);
  const bool onProbability = correction && !onLevels.levels; // volumes are of the corrected probability then
  const bool isShare = !onProbability && readout.Kind == RCN_READOUT_EXPECTED;
  const LevelsOptions how = HowOf(model, options, out.Tiles);
  std::vector<Volume> reordered = Reordered(images, context, order);
  const rcn_geometry seen = reordered.front().Geometry();
  LevelSums sums;
  sums.Sums.raters = model.RaterCount();
  SlabMaps maps = { context, onLevels, readout, nullptr, nullptr, nullptr, nullptr, nullptr };
  if (options.Uncertainty)
  {
    out.Uncertainty = Volume::Allocate(seen, RCN_FLOAT32);
    maps.Uncertainty = static_cast<float*>(out.Uncertainty.Data());
  }
  if (!onProbability)
  {
    sums.Likely = Volume::Allocate(seen, RCN_UINT8);
    sums.Share = isShare ? Volume() : Volume::Allocate(seen, RCN_FLOAT32);
    maps.Sums = &sums.Sums;
    maps.Likely = static_cast<uint8_t*>(sums.Likely.Data());
    maps.Share = static_cast<float*>(sums.Share.Data());
  }
  out.Probability =
    PredictMap(context, how, reordered, about, 1, [&](float* probability, const rcn_scale* scale, const rcn_channel* channels) {
      maps.Probability = probability;
      maps.Share = isShare ? probability : maps.Share;
      return rcn_predict_slabs(TakeSlab, &maps, how.Net, how.Loss, how.LossParameters, scale, channels, how.Tiles);
    });
  reordered.clear();
  const rcn_geometry geometry = images.front().Geometry();
  for (Volume* map : { &out.Probability, &out.Uncertainty, &sums.Share, &sums.Likely })
  {
    *map = map->Data() ? Back(*map, context, order, geometry) : Volume();
  }
  FinishProbability(out, model, context, options, about, onProbability ? correction : nullptr);
  sums.Share = isShare ? out.Probability : sums.Share;
  const auto scores = ScoresFor(model, options);
  out.Volumes = onProbability ? PredictVolumes(context, out.Probability, model.RaterCount(), scores.get(), about)
                              : PredictVolumes(context, sums, scores.get(), about);
}

/// Whether a slab, and the five bytes of a voxel that volumes need, take less than the levels; an image that is resampled needs
/// them all.
bool IsSmallerWithoutLevels(const Model& model, rcn_context* context, const rcn_geometry& seen, const std::string& about,
  const PredictionOptions& options)
{
  int64_t tiles, slab, voxels = rcn_geometry_voxels(&seen);
  if (IsResampled(HowOf(model, options, tiles), seen))
  {
    return false;
  }
  Check(rcn_predict_slab_plan(&slab, model.Net(), seen.size, &options.Tiles), context, about);
  const int64_t levelBytes = 4 * (model.RaterCount() + 1);
  return levelBytes * slab + 5 * voxels < levelBytes * voxels;
}

/// The same with the levels, which go where the caller gets them.
void PredictWithLevels(Prediction& out, const Model& model, rcn_context* context, const Volume& levels,
  const std::string& about, const PredictionOptions& options, const Readout& readout)
{
  const Recalibration* correction = CorrectionOf(model, options);
  const rcn_recalib onLevels = OnLevels(model, correction);
  const bool onProbability = correction && !onLevels.levels;
  if (onLevels.levels)
  {
    Check(rcn_recalib_apply_levels(static_cast<float*>(levels.Data()), context, &onLevels, &levels.View()), context, about);
  }
  out.Probability = Volume::Allocate(levels.Geometry(), RCN_FLOAT32);
  float* probability = static_cast<float*>(out.Probability.Data());
  Check(rcn_readout_apply(probability, context, &levels.View(), readout.Kind, readout.AtLeast), context, about);
  if (options.Uncertainty)
  {
    out.Uncertainty = Volume::Allocate(levels.Geometry(), RCN_FLOAT32);
    Check(rcn_predict_entropy(static_cast<float*>(out.Uncertainty.Data()), context, &levels.View()), context, about);
  }
  FinishProbability(out, model, context, options, about, onProbability ? correction : nullptr);
  out.Levels = onProbability ? Volume() : levels;
  out.Volumes = PredictVolumes(
    context, onProbability ? out.Probability : levels, model.RaterCount(), ScoresFor(model, options).get(), about);
}

} // namespace

std::vector<NamedMap> MapsOf(const Prediction& prediction, rcn_context* context, int raters, bool levels)
{
  std::vector<NamedMap> maps = {
    { "levels", prediction.Levels, Content::Probability, {}, "" },
    { "uncertainty", prediction.Uncertainty, Content::Probability, {}, "" },
    { "mask", prediction.Mask, Content::Mask, {}, "" },
    { "labels", prediction.Labels, Content::Levels, {}, "" },
  };
  const std::vector<uint8_t> values = LabelValues(prediction.StructureList);
  for (size_t c = 0; c < prediction.StructureList.size(); ++c)
  {
    const std::string& name = prediction.StructureList[c].Name;
    const StructureMaps& structures = *prediction.Structures;
    maps[3].Segments.push_back({ name, values[c], 0 });
    if (structures.HasLevels() && (levels || !structures.Levels.empty()))
    {
      maps.push_back(
        { LevelsMap(name), structures.Of(context, static_cast<int>(c) + 1, raters, name), Content::Probability, {}, name });
    }
  }
  maps.push_back({ "prob", prediction.Probability, Content::Probability, {}, "" });
  maps.erase(std::remove_if(maps.begin(), maps.end(), [](const NamedMap& one) { return !one.Map.Data(); }), maps.end());
  return maps;
}

Prediction Predict(const Model& model, rcn_context* context, const std::vector<Volume>& images, const std::string& about,
  const PredictionOptions& options)
{
  CheckPrediction(model, options);
  const rcn_geometry geometry = images.front().Geometry();
  const rcn_order order = rcn_order_to(model.Info().Axes.c_str(), &geometry, !model.Is3D());
  const rcn_geometry seen = rcn_geometry_reorder(&geometry, &order);
  CheckImage(model, images, seen, about);
  Prediction out;
  const std::string remark = SpacingRemark(model, seen, order, about);
  if (!remark.empty())
  {
    out.Remarks.push_back(remark);
  }
  char axes[4];
  rcn_axes_of(axes, &seen);
  if (!model.Is3D() && *axes && !model.Info().Axes.empty() && axes[2] != model.Info().Axes[2])
  {
    out.Remarks.push_back(about + " is a slice across another axis of the body than the slices that the model was trained on.");
  }
  if (options.Recalibrate && options.Correction && model.Info().Correction) // never both
  {
    out.Remarks.push_back((options.Correction->Path.empty() ? "Another correction" : options.Correction->Path) +
      " is applied in place of the correction that is stored in " + model.Path() + ".");
  }
  const Readout readout = ReadoutOf(model, options);
  out.Readout = ReadoutText(readout.Kind, readout.AtLeast);
  const Recalibration* correction = CorrectionOf(model, options);
  // A correction of one probability leaves no levels.
  const bool levels = options.Levels && !(correction && !OnLevels(model, correction).levels);
  if (!model.HasSeveralStructures() && !levels && IsSmallerWithoutLevels(model, context, seen, about, options))
  {
    PredictWithoutLevels(out, model, context, images, order, about, options, readout);
    return out;
  }
  const StructureMaps maps = NetworkMaps(model, context, images, order, about, options, out.Tiles);
  if (model.HasSeveralStructures())
  {
    const StructureMaps& corrected = correction ? ApplyRecalibration(context, *correction, maps, nullptr, about) : maps;
    (options.Structure.empty() ? FinishStructures : FinishStructure)(out, model, context, corrected, options, readout, about);
    return out;
  }
  PredictWithLevels(out, model, context, maps.Levels.front(), about, options, readout);
  return out;
}

std::vector<Volume> LevelMasks(rcn_context* context, const Volume& levels, double threshold)
{
  const Volume probability = Volume::Allocate(levels.Geometry(), RCN_FLOAT32);
  std::vector<Volume> masks;
  for (int k = 1; k < levels.View().components; ++k)
  {
    Check(
      rcn_readout_apply(static_cast<float*>(probability.Data()), context, &levels.View(), RCN_READOUT_AT_LEAST, k), context);
    masks.push_back(Volume::Allocate(levels.Geometry(), RCN_UINT8));
    Check(rcn_predict_mask(static_cast<uint8_t*>(masks.back().Data()), context, &probability.View(), threshold), context);
  }
  return masks;
}

} // namespace rcn
