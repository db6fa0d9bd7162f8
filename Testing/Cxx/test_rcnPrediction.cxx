// SPDX-License-Identifier: Apache-2.0
#include "rcnPrediction.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "rcnJson.h"
#include "rcnResample.h"
#include "rcnTest.h"

namespace
{

/// A model file of three raters whose network says the same everywhere: its last layer has no weights, only biases.
struct Scene
{
  Folder Files;
  rcn_context* Context = nullptr;
  std::string Path;

  explicit Scene(rcn_arch arch, const rcn::ModelInfo& info = Info(), double spacing = 1, bool sees = false)
  {
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    options.arch = arch;
    options.width = 8;
    options.depth = 1;
    options.outputs = info.LossParameters.empty() ? 4 : 1;
    options.spacing[2] = spacing;
    rcn_net* net = nullptr;
    CHECK(rcn_context_create(&this->Context, nullptr) == RCN_OK);
    CHECK(rcn_net_create(&net, this->Context, &options) == RCN_OK);
    CHECK(rcn_net_initialize(net, 1) == RCN_OK);
    const rcn_parameter* weight = rcn_net_find_parameter(net, "head.weight");
    const rcn_parameter* bias = rcn_net_find_parameter(net, "head.bias");
    float* values = rcn_net_edit_values(net);
    if (!sees)
    {
      std::fill(values + weight->offset, values + weight->offset + weight->count, 0.0F);
    }
    for (int k = 0; k < options.outputs; ++k)
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
  CHECK(prediction.Remarks.size() == 1 &&
    prediction.Remarks[0].find("i was resampled from 1 x 1 x 1 mm to the model's 1 x 1 x 2 mm") == 0);
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
  // Another one in its place, never both, and it is said.
  rcn::Recalibration other = correction;
  other.Path = "other.json";
  other.Correction.parameters[1] = 2;
  options.Correction = &other;
  const rcn::Prediction instead = rcn::Predict(model, scene.Context, { Image(16, 16, 1) }, "i", options);
  CHECK_NEAR(First(instead.Probability), 1 / (1 + std::exp(-(std::log(0.3 / 0.7) + 2))), 1e-5);
  CHECK(instead.Remarks.size() == 2 && instead.Remarks[0].find("other.json is applied in place of the correction") == 0);
  options.Correction = nullptr;
  options.Readout = "expected";
  CHECK_THROWS(rcn::CheckPrediction(model, options), RCN_EINVALID, "fitted to the readout majority");
  options.Recalibrate = false;
  rcn::CheckPrediction(model, options);
}

void WhatDoesNotFitIsRefused()
{
  const Scene flat(RCN_UNET), deep(RCN_UNET3D);
  const rcn::Model slices(flat.Context, flat.Path), volumes(deep.Context, deep.Path);
  rcn::PredictionOptions options;
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1, 2) }, "i", options), RCN_EDATA, "i has 2 channels, but");
  CHECK_THROWS(
    rcn::Predict(slices, flat.Context, { Image(16, 16, 1), Image(16, 16, 1) }, "i", options), RCN_EDATA, "2 channels");
  CHECK_THROWS(rcn::Predict(volumes, deep.Context, { Image(16, 16, 1) }, "i", options), RCN_EDATA, "i is one slice");
  options.Readout = "at-least:4";
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1) }, "i", options), RCN_EINVALID, "number of raters");
  options.Readout = "best";
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1) }, "i", options), RCN_EINVALID, "'best'");
  options.Readout = "";
  options.Threshold = 1.5;
  CHECK_THROWS(rcn::Predict(slices, flat.Context, { Image(16, 16, 1) }, "i", options), RCN_EINVALID, "threshold");
}

// ---- orientation -----------------------------------------------------------------------------------

rcn_order OrderNumber(int number)
{
  rcn_order order = RCN_ORDER_INIT;
  for (int k = 0; k < number / 8; ++k)
  {
    std::next_permutation(order.from, order.from + 3);
  }
  for (int a = 0; a < 3; ++a)
  {
    order.flip[a] = number >> a & 1;
  }
  return order;
}

float LargestDifference(const rcn::Volume& a, const rcn::Volume& b)
{
  const int64_t count = rcn_geometry_voxels(&a.Geometry()) * a.View().components;
  float largest = 0;
  for (int64_t i = 0; i < count; ++i)
  {
    largest = std::max(largest, std::fabs(static_cast<const float*>(a.Data())[i] - static_cast<const float*>(b.Data())[i]));
  }
  return largest;
}

/// However a volume is stored, every voxel gets the same levels: straight and oblique, slice by slice and in 3-D, with and
/// without resampling, in one file and in a file per channel.
void NetworksSeeAnatomy()
{
  rcn::ModelInfo info = Scene::Info();
  info.Axes = "RPI";
  info.PixelSize[0] = info.PixelSize[1] = 1;
  const Scene flat(RCN_UNET, info, 1, true), deep(RCN_UNET3D, info, 2, true);
  for (const Scene* scene : { &flat, &deep })
  {
    const rcn::Model model(scene->Context, scene->Path);
    for (const bool oblique : { false, true })
    {
      rcn_geometry geometry = rcn_geometry_make(13, 11, 9);
      const double turned[9] = { 0.96, -0.28, 0, 0.28, 0.96, 0, 0, 0, 1 };
      std::copy(turned, turned + (oblique ? 9 : 0), geometry.direction);
      const rcn::Volume image = rcn::Volume::Allocate(geometry, RCN_INT16);
      for (int64_t i = 0; i < 13 * 11 * 9; ++i)
      {
        static_cast<int16_t*>(image.Data())[i] = static_cast<int16_t>(i * i * 37 % 1009);
      }
      const rcn::PredictionOptions options;
      const rcn::Prediction expected = rcn::Predict(model, scene->Context, { image }, "i", options);
      const float* levels = static_cast<const float*>(expected.Levels.Data());
      CHECK(*std::max_element(levels, levels + 5148) - *std::min_element(levels, levels + 5148) > 0.1F); // it does see
      for (int number = 1; number < 48; number += 5)
      {
        const rcn_order order = OrderNumber(number);
        const rcn::Volume stored = image.Reordered(scene->Context, order);
        const rcn::Prediction found = rcn::Predict(model, scene->Context, { stored }, "i", options);
        CHECK(!std::memcmp(&found.Levels.Geometry(), &stored.Geometry(), sizeof(rcn_geometry)));
        CHECK(!std::memcmp(&found.Mask.Geometry(), &stored.Geometry(), sizeof(rcn_geometry)));
        CHECK(found.Remarks.size() == expected.Remarks.size());
        CHECK(LargestDifference(expected.Levels.Reordered(scene->Context, order), found.Levels) < 1e-5F);
        CHECK(LargestDifference(expected.Probability.Reordered(scene->Context, order), found.Probability) < 1e-5F);
      }
    }
  }
}

/// What lies beyond the window is cut off before anything is resampled, as in training: how far beyond plays no part.
void IntensitiesAreCutBeforeResampling()
{
  rcn::ModelInfo info = Scene::Info();
  info.Normalization.kind = RCN_NORMALIZE_WINDOW;
  info.Normalization.center = 50;
  info.Normalization.width = 100;
  const Scene scene(RCN_UNET3D, info, 2, true);
  const rcn::Model model(scene.Context, scene.Path);
  const rcn::Volume bright = Image(16, 14, 12), brighter = Image(16, 14, 12);
  for (int64_t i = 5; i < 16 * 14 * 12; i += 97)
  {
    static_cast<int16_t*>(bright.Data())[i] = 100;
    static_cast<int16_t*>(brighter.Data())[i] = 30000;
  }
  const rcn::PredictionOptions options;
  const rcn::Prediction a = rcn::Predict(model, scene.Context, { bright }, "i", options);
  const rcn::Prediction b = rcn::Predict(model, scene.Context, { brighter }, "i", options);
  CHECK(a.Remarks.size() == 1 && LargestDifference(a.Levels, b.Levels) == 0);
}

/// Without a record of axes, images are taken as they are stored; 2-D images always.
void PicturesAndOldModelsStayAsTheyAre()
{
  rcn::ModelInfo info = Scene::Info();
  const Scene old(RCN_UNET, info, 1, true);
  info.Axes = "SRA";
  const Scene young(RCN_UNET, info, 1, true);
  const rcn::Model before(old.Context, old.Path), now(young.Context, young.Path);
  const rcn::PredictionOptions options;
  const rcn::Prediction a = rcn::Predict(before, old.Context, { Image(12, 10, 1) }, "i", options);
  const rcn::Prediction b = rcn::Predict(now, young.Context, { Image(12, 10, 1) }, "i", options);
  CHECK(LargestDifference(a.Levels, b.Levels) == 0 && b.Remarks.empty());
  // A slice of the body, wherever it lies, is seen as a slice; across another axis than in training there is a remark.
  rcn_geometry across = rcn_geometry_make(1, 12, 10);
  const rcn::Volume slice = rcn::Volume::Allocate(across, RCN_INT16);
  std::memcpy(slice.Data(), Image(12, 10, 1).Data(), sizeof(int16_t) * 120);
  const rcn::Prediction c = rcn::Predict(now, young.Context, { slice }, "i", options);
  CHECK(c.Remarks.size() == 1 && c.Remarks[0].find("i is a slice across another axis of the body") == 0);
  CHECK(c.Tiles == 1 && c.Levels.Geometry().size[0] == 1);
}

void OtherPixelsGetARemark()
{
  rcn::ModelInfo info = Scene::Info();
  info.PixelSize[0] = 0.7;
  info.PixelSize[1] = 0.9;
  const Scene scene(RCN_UNET, info);
  const rcn::Model model(scene.Context, scene.Path);
  const auto remarks = [&](double x, double y) {
    rcn_geometry geometry = rcn_geometry_make(12, 10, 1);
    geometry.spacing[0] = x;
    geometry.spacing[1] = y;
    const rcn::Volume image = rcn::Volume::Allocate(geometry, RCN_INT16);
    std::memcpy(image.Data(), Image(12, 10, 1).Data(), sizeof(int16_t) * 120);
    return rcn::Predict(model, scene.Context, { image }, "i", rcn::PredictionOptions()).Remarks;
  };
  CHECK(remarks(0.7, 0.9).empty() && remarks(0.83, 1.07).empty() && remarks(0.57, 0.73).empty());
  CHECK(remarks(0.85, 0.9).size() == 1 && remarks(0.7, 0.7).size() == 1);
  // Pixels of no known size are no other size, and a stack of them is taken as it is.
  rcn_geometry stack = rcn_geometry_make(12, 10, 6);
  stack.unit = RCN_PIXELS;
  const rcn::Volume pictures = rcn::Volume::Allocate(stack, RCN_INT16);
  std::memcpy(pictures.Data(), Image(12, 10, 6).Data(), sizeof(int16_t) * 720);
  CHECK(rcn::Predict(model, scene.Context, { pictures }, "i", rcn::PredictionOptions()).Remarks.empty());
  const Scene deep(RCN_UNET3D, Scene::Info(), 2);
  const rcn::Model volumes(deep.Context, deep.Path);
  const rcn::Prediction taken = rcn::Predict(volumes, deep.Context, { pictures }, "i", rcn::PredictionOptions());
  CHECK(taken.Remarks.size() == 1 && taken.Remarks[0] == "i has no spacing; it is taken as the model's, 1 x 1 x 2 mm.");
  CHECK(remarks(2, 0.9)[0] ==
    "i has pixels of 2 x 0.9 mm, but the model was trained on pixels of 0.7 x 0.9 mm; "
    "resample the image first.");
}

// ---- hostile files ---------------------------------------------------------------------------------

/// The file's metadata changed, whatever the key.
void WriteChanged(const std::string& path, const std::string& from, const std::map<std::string, std::string>& changes)
{
  const std::string bytes = TextOf(from);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const rcn::JsonHandle header(json_loadb(bytes.data() + 8, length, 0, nullptr));
  json_t* metadata = json_object_get(header.get(), "__metadata__");
  for (const auto& change : changes)
  {
    json_object_set_new(metadata, change.first.c_str(), json_string(change.second.c_str()));
  }
  const std::string weights = bytes.substr(8 + length), text = rcn::JsonText(header.get());
  length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << text << weights;
}

/// Everything that a file may hold in place of a number.
std::vector<std::string> HostileValues()
{
  std::string array = "[0", word = "\"";
  for (int i = 0; i < 20000; ++i)
  {
    array += ",0";
    word += "x\\n";
  }
  return { "0", "-0.0", "-1", "1", "2", "0.001", "1e-6", "3.814697265625e-06", "1e6", "1e-9", "1e9", "1e-300", "1e300",
    "-1e300", "1e999", "NaN", "-Infinity", "2147483648", "4294967296", "9223372036854775807", "-9223372036854775808",
    "18446744073709551617", "null", "true", "\"x\"", "{}", "[]", "[[[1]]]", "", "1.0000000000000000000000000000000001",
    array + "]", word + "\"" };
}

/// Predicts with hostile.safetensors: maps of probabilities, or one sentence. `about` says what is in it.
void CheckHostile(const Scene& scene, const std::string& about)
{
  const std::string path = scene.Files / "hostile.safetensors";
  std::string wrong;
  try
  {
    const rcn::Model model(scene.Context, path);
    const rcn::Prediction found = rcn::Predict(model, scene.Context, { Image(12, 10, 6) }, "i", rcn::PredictionOptions());
    const float* probability = static_cast<const float*>(found.Probability.Data());
    for (int64_t i = 0; i < 720; ++i)
    {
      wrong = probability[i] >= 0 && probability[i] <= 1 ? wrong : "no probability";
    }
  }
  catch (const rcn::Error& error)
  {
    const std::string sentence = error.what();
    wrong = error.Status() == RCN_EINTERNAL || sentence.empty() || sentence.size() > 1000 ? "\"" + sentence + "\"" : "";
  }
  catch (const std::exception& exception)
  {
    wrong = exception.what();
  }
  if (!wrong.empty())
  {
    ++Failures;
    std::fprintf(stderr, "%.200s gives %.200s\n", about.c_str(), wrong.c_str());
  }
}

/// The model file as an attack: any number in it may be anything.
void HostileMetadataNeverCrash()
{
  rcn::ModelInfo info = Scene::Info();
  const Scene flat(RCN_UNET, info), deep(RCN_UNET3D, info);
  info.Loss = RCN_LOSS_CUMULATIVE_LINK;
  info.LossParameters = { -1, 1, 1 };
  const Scene link(RCN_UNET, info);
  info.Loss = RCN_LOSS_CORAL;
  const Scene coral(RCN_UNET, info);
  const struct
  {
    const Scene& Model;
    const char* Key;
    std::vector<std::string> Values; // % is where the value goes
  } places[] = {
    { deep, "spacing", { "%", "[%, 1, 1]", "[1, 1, %]", "[%, %, %]" } },
    { deep, "axes", { "%", "LP%" } },
    { deep, "arch", { "%", "unet%" } },
    { deep, "norm", { "%" } },
    { flat, "channels", { "%" } },
    { flat, "dropout", { "%" } },
    { flat, "version", { "%", "%.%", "0.%" } },
    { flat, "raters", { "%", "[%]", "[%, \"B\", \"C\"]" } },
    { flat, "normalization",
      { "%", "{\"kind\": %}", "{\"kind\": \"fixed\", \"mean\": [%], \"std\": [1]}",
        "{\"kind\": \"fixed\", \"mean\": [0], \"std\": [%]}", "{\"kind\": \"percentile\", \"lower\": %}",
        "{\"kind\": \"percentile\", \"upper\": %}", "{\"kind\": \"window\", \"center\": %}",
        "{\"kind\": \"window\", \"width\": %}" } },
    { flat, "readout", { "%", "at-least:%" } },
    { flat, "strategy", { "%" } },
    { flat, "training", { "%" } },
    { flat, "loss", { "%" } },
    { flat, "pixel_size", { "%", "[%, 1]", "[%, %]" } },
    { link, "loss_parameters", { "%", "[%]", "[%, 1, 1]", "[-1, %, %]" } },
    { coral, "loss_parameters", { "[%, %, %]" } },
    { flat, "recalibration",
      { "%", "{\"method\": \"temperature\", \"readout\": \"majority\", \"levels\": 4, \"parameters\": [%]}",
        "{\"method\": \"temperature\", \"readout\": \"majority\", \"levels\": %, \"parameters\": [2]}",
        "{\"method\": \"temperature\", \"readout\": \"majority\", \"parameters\": [%]}",
        "{\"method\": \"platt\", \"readout\": \"majority\", \"parameters\": [%, 1]}",
        "{\"method\": \"platt\", \"readout\": \"majority\", \"parameters\": [1, %]}",
        "{\"method\": \"platt\", \"readout\": \"at-least\", \"at_least\": %, \"parameters\": [1, 1]}",
        "{\"method\": \"beta\", \"readout\": \"majority\", \"parameters\": [%, %, %]}",
        "{\"method\": \"isotonic\", \"readout\": \"majority\", \"x\": [0, %], \"y\": [0, %]}",
        "{\"method\": \"isotonic\", \"readout\": \"majority\", \"x\": %, \"y\": %}" } },
  };
  for (const auto& place : places)
  {
    for (const std::string& pattern : place.Values)
    {
      for (const std::string& hostile : HostileValues())
      {
        std::string value = pattern;
        for (std::string::size_type at = value.find('%'); at != std::string::npos; at = value.find('%', at + hostile.size()))
        {
          value.replace(at, 1, hostile);
        }
        WriteChanged(place.Model.Files / "hostile.safetensors", place.Model.Path, { { place.Key, value } });
        CheckHostile(place.Model, place.Key + (" = " + value));
      }
    }
  }
}

/// Weights that no training makes: largest, smallest, negative variances, not a number.
void HostileWeightsNeverCrash()
{
  const Scene flat(RCN_UNET), deep(RCN_UNET3D);
  for (const Scene* scene : { &flat, &deep })
  {
    const std::string bytes = TextOf(scene->Path);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    for (const float value : { 3.4e38F, -3.4e38F, 1e-45F, -1.0F, 1e20F, NAN })
    {
      std::string changed = bytes.substr(0, 8 + length);
      while (changed.size() < bytes.size())
      {
        changed.append(reinterpret_cast<const char*>(&value), std::min(sizeof value, bytes.size() - changed.size()));
      }
      std::ofstream(scene->Files / "hostile.safetensors", std::ios::binary) << changed;
      CheckHostile(*scene, "weights of " + std::to_string(value));
    }
  }
}

/// Voxel counts that are small numbers only because they do not fit 64 bits.
void NoSpacingMakesTooManyVoxels()
{
  const Scene deep(RCN_UNET3D);
  const std::string path = deep.Files / "hostile.safetensors";
  // 2^22 x 2^21 x 2^21 voxels: none, in 64 bits
  WriteChanged(path, deep.Path, { { "spacing", "[3.814697265625e-06, 3.814697265625e-06, 3.814697265625e-06]" } });
  const rcn::Model model(deep.Context, path);
  CHECK_THROWS(rcn::Predict(model, deep.Context, { Image(16, 8, 8) }, "i", rcn::PredictionOptions()), RCN_EDATA,
    "i has voxels of 1 x 1 x 1 mm, which cannot be resampled to 3.815e-06");
  const rcn_geometry geometry = rcn_geometry_make(12, 10, 6);
  const double fine[3] = { 0.1, 0.1, 0.1 }, finer[3] = { 0.1, 0.1, 0.09 }, none[3] = { 1, 0, 1 },
               nan[3] = { 1, std::nan(""), 1 };
  CHECK(rcn::GeometryAtSpacing(geometry, fine).size[0] == 120);
  CHECK_THROWS(rcn::GeometryAtSpacing(geometry, finer, "x"), RCN_EDATA, "x has voxels");
  CHECK_THROWS(rcn::GeometryAtSpacing(geometry, none), RCN_EDATA, "The image has voxels");
  CHECK_THROWS(rcn::GeometryAtSpacing(geometry, nan), RCN_EDATA, "The image has voxels");
  rcn_geometry huge = rcn_geometry_make(int64_t(1) << 32, int64_t(1) << 32, 2);
  CHECK_THROWS(rcn::Volume::Allocate(huge, RCN_UINT8), RCN_EDATA, "more voxels than can be addressed");
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
  RUN(NetworksSeeAnatomy);
  RUN(IntensitiesAreCutBeforeResampling);
  RUN(PicturesAndOldModelsStayAsTheyAre);
  RUN(OtherPixelsGetARemark);
  RUN(HostileMetadataNeverCrash);
  RUN(HostileWeightsNeverCrash);
  RUN(NoSpacingMakesTooManyVoxels);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
