#include "rcnPrediction.h"

#include <algorithm>

#include "rcnTest.h"

namespace
{

/// A model file of three raters whose network says the same everywhere: its last layer has no weights, only biases.
struct Scene
{
  Folder Files;
  rcn_context* Context = nullptr;
  std::string Path;

  explicit Scene(rcn_arch arch, const rcn::ModelInfo& info = Info(), double spacing = 1)
  {
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    options.arch = arch;
    options.width = 8;
    options.depth = 1;
    options.outputs = 4;
    options.spacing[2] = spacing;
    rcn_net* net = nullptr;
    CHECK(rcn_context_create(&this->Context, nullptr) == RCN_OK);
    CHECK(rcn_net_create(&net, this->Context, &options) == RCN_OK);
    CHECK(rcn_net_initialize(net, 1) == RCN_OK);
    const rcn_parameter* weight = rcn_net_find_parameter(net, "head.weight");
    const rcn_parameter* bias = rcn_net_find_parameter(net, "head.bias");
    float* values = rcn_net_edit_values(net);
    std::fill(values + weight->offset, values + weight->offset + weight->count, 0.0F);
    for (int k = 0; k < 4; ++k)
    {
      values[bias->offset + k] = std::log(Levels[k]);
    }
    this->Path = this->Files / "m.safetensors";
    rcn::SaveModel(this->Context, this->Path, net, info);
    rcn_net_destroy(net);
  }
  ~Scene() { rcn_context_destroy(this->Context); }

  static constexpr float Levels[4] = { 0.4F, 0.3F, 0.2F, 0.1F };
  static rcn::ModelInfo Info()
  {
    rcn::ModelInfo info;
    info.Raters = { "A", "B", "C" };
    return info;
  }
};
constexpr float Scene::Levels[4];

rcn::Volume Image(int64_t x, int64_t y, int64_t z, int components = 1)
{
  const rcn::Volume volume = rcn::Volume::Allocate(rcn_geometry_make(x, y, z), RCN_INT16, components);
  for (int64_t i = 0; i < x * y * z * components; ++i)
  {
    static_cast<int16_t*>(volume.Data())[i] = static_cast<int16_t>(i * 37 % 101);
  }
  return volume;
}

float First(const rcn::Volume& volume)
{
  return static_cast<const float*>(volume.Data())[0];
}

void MapsFollowFromLevels()
{
  const Scene scene(RCN_UNET);
  const rcn::Model model(scene.Context, scene.Path);
  rcn::PredictionOptions options;
  options.Uncertainty = true;
  const rcn::Prediction majority = rcn::Predict(model, scene.Context, { Image(20, 18, 3) }, "i", options);
  CHECK(majority.Readout == "majority" && majority.Tiles == 3 && majority.Remarks.empty());
  CHECK_NEAR(First(majority.Probability), 0.3, 1e-6);
  CHECK_NEAR(First(majority.Levels), 0.4, 1e-6);
  CHECK(majority.Levels.View().components == 4 && static_cast<const uint8_t*>(majority.Mask.Data())[0] == 0);
  double entropy = 0;
  for (const float p : Scene::Levels)
  {
    entropy -= p * std::log2(p);
  }
  CHECK_NEAR(First(majority.Uncertainty), entropy, 1e-5);
  options.Readout = "expected";
  options.Threshold = 0.33;
  options.Uncertainty = false;
  const rcn::Prediction expected = rcn::Predict(model, scene.Context, { Image(20, 18, 3) }, "i", options);
  CHECK_NEAR(First(expected.Probability), 1.0 / 3, 1e-6);
  CHECK(static_cast<const uint8_t*>(expected.Mask.Data())[0] == 1 && !expected.Uncertainty.Data());
}

/// P(at least 1, 2, 3) = 0.6, 0.3, 0.1 everywhere.
void LevelsBecomeNestedMasks()
{
  const Scene scene(RCN_UNET);
  const rcn::Model model(scene.Context, scene.Path);
  const rcn::Prediction prediction = rcn::Predict(model, scene.Context, { Image(20, 18, 3) }, "i", rcn::PredictionOptions());
  const std::vector<rcn::Volume> masks = rcn::LevelMasks(scene.Context, prediction.Levels, 0.25);
  CHECK(masks.size() == 3);
  for (size_t k = 0; k < masks.size(); ++k)
  {
    const uint8_t* const mask = static_cast<const uint8_t*>(masks[k].Data());
    CHECK(std::count(mask, mask + 20 * 18 * 3, k < 2 ? 1 : 0) == 20 * 18 * 3);
  }
}

void VolumesComeBackInTheirOwnGeometry()
{
  const Scene scene(RCN_UNET3D, Scene::Info(), 2);
  const rcn::Model model(scene.Context, scene.Path);
  const rcn::Volume image = Image(16, 14, 12);
  const rcn::Prediction prediction = rcn::Predict(model, scene.Context, { image }, "i", rcn::PredictionOptions());
  CHECK(prediction.Remarks.size() == 1 && prediction.Remarks[0].find("i was resampled from 1 x 1 x 1 mm to the model's 1 x 1 x 2 mm") == 0);
  CHECK(prediction.Levels.Geometry().size[2] == 12 && prediction.Levels.Geometry().spacing[2] == 1);
  const float* levels = static_cast<const float*>(prediction.Levels.Data());
  for (int64_t i = 0; i < 4 * 16 * 14 * 12; ++i)
  {
    CHECK_NEAR(levels[i], Scene::Levels[i % 4], 1e-6);
  }
}

void CorrectionsAreApplied()
{
  rcn::Recalibration correction;
  correction.Correction.method = RCN_RECALIB_PLATT;
  correction.Correction.parameters[0] = 1;
  correction.Correction.parameters[1] = 1;
  rcn::ModelInfo info = Scene::Info();
  info.Correction = std::make_shared<rcn::Recalibration>(correction);
  const Scene scene(RCN_UNET, info);
  const rcn::Model model(scene.Context, scene.Path);
  rcn::PredictionOptions options;
  const rcn::Prediction corrected = rcn::Predict(model, scene.Context, { Image(16, 16, 1) }, "i", options);
  CHECK_NEAR(First(corrected.Probability), 1 / (1 + std::exp(-(std::log(0.3 / 0.7) + 1))), 1e-5);
  CHECK(!corrected.Levels.Data() && corrected.Remarks.size() == 1);
  options.Readout = "expected";
  CHECK(rcn::CheckPrediction(model, options).find("fitted to the readout majority") != std::string::npos);
  options.Recalibrate = false;
  CHECK(rcn::CheckPrediction(model, options).empty());
}

void WhatDoesNotFitIsRefused()
{
  const Scene flat(RCN_UNET), deep(RCN_UNET3D);
  const rcn::Model slices(flat.Context, flat.Path), volumes(deep.Context, deep.Path);
  rcn::PredictionOptions options;
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1, 2) }, "i", options), RCN_EDATA, "i has 2 channels, but");
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1), Image(16, 16, 1) }, "i", options), RCN_EDATA, "2 channels");
  CHECK_THROWS(rcn::Predict(volumes, deep.Context, { Image(16, 16, 1) }, "i", options), RCN_EDATA, "i is one slice");
  options.Readout = "at-least:4";
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1) }, "i", options), RCN_EINVALID, "number of raters");
  options.Readout = "best";
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1) }, "i", options), RCN_EINVALID, "'best'");
  options.Readout = "";
  options.Threshold = 1.5;
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1) }, "i", options), RCN_EINVALID, "threshold");
}

void SpacingsKeepTheCorner()
{
  rcn_geometry geometry = rcn_geometry_make(10, 7, 5);
  const double finer[3] = { 0.5, 0.7, 2 };
  const rcn_geometry out = rcn::GeometryAtSpacing(geometry, finer);
  CHECK(out.size[0] == 20 && out.size[1] == 10 && out.size[2] == 3);
  CHECK_NEAR(out.origin[0], -0.25, 1e-12);
  CHECK_NEAR(out.origin[1], -0.15, 1e-12);
  CHECK_NEAR(out.origin[2], 0.5, 1e-12);
  // A ramp is what linear interpolation keeps, but for half a voxel at its ends.
  const rcn::Volume ramp = rcn::Volume::Allocate(geometry, RCN_INT16);
  for (int64_t i = 0; i < 350; ++i)
  {
    static_cast<int16_t*>(ramp.Data())[i] = static_cast<int16_t>(10 * (i % 10));
  }
  const rcn::Volume resampled = rcn::ResampleLinear(ramp, out);
  for (int64_t x = 0; x < 20; ++x)
  {
    const double at = std::min(std::max(0.5 * static_cast<double>(x) - 0.25, 0.0), 9.0);
    CHECK_NEAR(static_cast<const float*>(resampled.Data())[x + 20 * 13], 10 * at, 1e-4);
  }
}

} // namespace

int main()
{
  RUN(MapsFollowFromLevels);
  RUN(LevelsBecomeNestedMasks);
  RUN(VolumesComeBackInTheirOwnGeometry);
  RUN(CorrectionsAreApplied);
  RUN(WhatDoesNotFitIsRefused);
  RUN(SpacingsKeepTheCorner);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
