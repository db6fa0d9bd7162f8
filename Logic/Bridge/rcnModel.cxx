// SPDX-License-Identifier: Apache-2.0
#include "rcnModel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "rcn/rcn.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

/// For what a file says. A model may come from anybody, so nothing in it is believed: each refusal names the file and what is
/// wrong with it.
[[noreturn]] void Fail(const std::string& about, const std::string& what)
{
  throw Error(RCN_EFORMAT, about + ": " + what);
}

/// What a file says, as it stands in a sentence: the beginning, where it is long.
std::string Quoted(const std::string& text)
{
  return text.size() > 40 ? text.substr(0, 40) + "..." : text;
}

/// Metadata of safetensors are strings; what is more than a word is JSON inside.
JsonHandle ParseKey(const std::string& text, const std::string& about, const std::string& key)
{
  return ParseJson(text, about + ": its \"" + key + "\" cannot be read");
}

void ReadChannels(double* out, int& channels, const JsonReader& reader, const std::string& key)
{
  const std::vector<double> numbers = reader.Numbers(key);
  if (numbers.empty() || numbers.size() > RCN_NORMALIZE_CHANNELS)
  {
    reader.Fail("\"" + key + "\" must be an array with a number per channel.");
  }
  std::copy(numbers.begin(), numbers.end(), out);
  channels = static_cast<int>(numbers.size());
}

} // namespace

// Only the fields of its kind, so that nobody wonders what the others mean.
std::string NormalizationText(const rcn_normalize& normalize)
{
  JsonObject root{ { "kind", rcn_normalize_name(normalize.kind) } };
  const auto channels = static_cast<size_t>(normalize.channels);
  switch (normalize.kind)
  {
    case RCN_NORMALIZE_FIXED: root.Set("mean", Json(normalize.mean, channels)).Set("std", Json(normalize.std, channels)); break;
    case RCN_NORMALIZE_ZSCORE: break;
    case RCN_NORMALIZE_PERCENTILE: root.Set("lower", normalize.lower).Set("upper", normalize.upper); break;
    case RCN_NORMALIZE_WINDOW: root.Set("center", normalize.center).Set("width", normalize.width); break;
  }
  return CompactJsonText(root.Get());
}

rcn_normalize ParseNormalization(const std::string& text, const std::string& about)
{
  const JsonHandle root = ParseKey(text, about, "normalization");
  const JsonReader reader(root.get(), about + ": its normalization cannot be used");
  rcn_normalize out = RCN_NORMALIZE_INIT;
  const std::string name = reader.Text("kind", "");
  int kind = RCN_NORMALIZE_FIXED;
  const auto known = [&kind] { return rcn_normalize_name(static_cast<rcn_normalize_kind>(kind)); };
  // The core knows the names; its list ends with NULL.
  while (known() && name != known())
  {
    ++kind;
  }
  if (!known())
  {
    reader.Fail("\"kind\" must be fixed, zscore, percentile or window, not " + Quoted(name) + ".");
  }
  out.kind = static_cast<rcn_normalize_kind>(kind);
  if (out.kind == RCN_NORMALIZE_FIXED)
  {
    int deviations = 0;
    ReadChannels(out.mean, out.channels, reader, "mean");
    ReadChannels(out.std, deviations, reader, "std");
    if (deviations != out.channels)
    {
      reader.Fail("\"mean\" and \"std\" must have the same length.");
    }
  }
  const std::pair<const char*, double*> fields[] = { { "lower", &out.lower }, { "upper", &out.upper },
    { "center", &out.center }, { "width", &out.width } };
  // Of kinds that do not use them, too: they are then left as they are.
  for (const auto& field : fields)
  {
    *field.second = reader.Number(field.first, -HUGE_VAL, HUGE_VAL, *field.second);
  }
  if (const char* sentence = rcn_normalize_check(&out))
  {
    reader.Fail(sentence);
  }
  return out;
}

// Into the file as it is: the tensors stay, and with them the model's hash.
void SetCorrection(rcn_context* context, const std::string& path, const Recalibration& correction)
{
  Check(rcn_model_set(context, path.c_str(), "recalibration", RecalibrationText(correction).c_str()), context);
}

void SetVolumes(rcn_context* context, const std::string& path, const VolumeScores& scores)
{
  const JsonHandle json(VolumeScoresJson(scores));
  Check(rcn_model_set(context, path.c_str(), "volumes", CompactJsonText(json.get()).c_str()), context);
}

// A key is written only where there is something to say: readers take the default for one that is absent.
void SaveModel(rcn_context* context, const std::string& path, const rcn_net* net, const ModelInfo& info,
  const std::vector<std::pair<std::string, std::string>>& more)
{
  std::vector<std::pair<std::string, std::string>> texts;
  texts.emplace_back("raters", CompactJsonText(Json(info.Raters).Get()));
  texts.emplace_back("normalization", NormalizationText(info.Normalization));
  texts.emplace_back("loss", rcn_loss_kind_name(info.Loss));
  texts.emplace_back("readout", ReadoutText(info.Readout, info.AtLeast));
  if (info.TieBackground)
  {
    texts.emplace_back("tie", "background");
  }
  if (!info.Strategy.empty())
  {
    texts.emplace_back("strategy", info.Strategy);
  }
  if (!info.Structures.empty())
  {
    texts.emplace_back("structures", CompactJsonText(StructuresJson(info.Structures).Get()));
  }
  if (!info.LossParameters.empty())
  {
    const std::vector<double> numbers(info.LossParameters.begin(), info.LossParameters.end());
    texts.emplace_back("loss_parameters", CompactJsonText(Json(numbers).Get()));
  }
  if (info.Correction)
  {
    texts.emplace_back("recalibration", RecalibrationText(*info.Correction));
  }
  if (info.Volumes)
  {
    const JsonHandle json(VolumeScoresJson(*info.Volumes));
    texts.emplace_back("volumes", CompactJsonText(json.get()));
  }
  if (!info.Axes.empty())
  {
    texts.emplace_back("axes", info.Axes);
  }
  if (info.PixelSize[0] > 0)
  {
    texts.emplace_back("pixel_size", CompactJsonText(Json(info.PixelSize, 2).Get()));
  }
  texts.insert(texts.end(), more.begin(), more.end());
  std::vector<rcn_model_entry> entries;
  for (const auto& text : texts)
  {
    entries.push_back({ text.first.c_str(), text.second.c_str() });
  }
  Check(rcn_model_save(context, path.c_str(), net, entries.data(), static_cast<int>(entries.size())), context);
}

// ---- reading ---------------------------------------------------------------------------------------

std::string ModelMetadata(rcn_context* context, const std::string& path, const char* key)
{
  char* found = nullptr;
  Check(rcn_model_read(&found, context, path.c_str(), key), context);
  const std::string text = found ? found : "";
  rcn_model_free(found, context);
  return text;
}

namespace
{

void CheckVersion(const std::string& path, const std::string& version)
{
  // The first two numbers decide: a third one is for repairs, which change no format.
  int theirs[2] = { 0, 0 };
  if (version.empty() || std::sscanf(version.c_str(), "%6d.%6d", &theirs[0], &theirs[1]) != 2)
  {
    return; // not ours: a state dict
  }
  int ours[2] = { 0, 0 };
  std::sscanf(RCN_VERSION, "%d.%d", &ours[0], &ours[1]);
  if (theirs[0] > ours[0] || (theirs[0] == ours[0] && theirs[1] > ours[1]))
  {
    Fail(path,
      "the model was written by version " + Quoted(version) +
        ", newer than this one (" RCN_VERSION "); update RaterConsensus to use it.");
  }
}

/// Who taught it. Their number gives the levels, so a model without them cannot be used.
std::vector<std::string> ReadRaters(const std::string& path, const std::string& text)
{
  if (text.empty())
  {
    Fail(path, "it does not name its raters: its metadata has no \"raters\".");
  }
  const JsonHandle array = ParseKey(text, path, "raters");
  std::vector<std::string> raters;
  for (size_t i = 0; i < json_array_size(array.get()); ++i)
  {
    const char* name = json_string_value(json_array_get(array.get(), i));
    raters.push_back(name ? name : "");
    if (raters.back().empty())
    {
      Fail(path, "its \"raters\" must be an array of names.");
    }
  }
  if (std::set<std::string>(raters.begin(), raters.end()).size() != raters.size())
  {
    Fail(path, "its \"raters\" name a rater twice.");
  }
  if (raters.empty() || raters.size() > RCN_MAX_RATERS)
  {
    Fail(path, "its \"raters\" must be 1 to " + std::to_string(RCN_MAX_RATERS) + " names.");
  }
  return raters;
}

/// By its name, or for a state dict by the number of outputs.
rcn_loss_kind ReadLoss(const std::string& path, const std::string& name, int outputs, int raters)
{
  if (name.empty())
  {
    if (outputs != 1 && outputs != raters + 1)
    {
      Fail(path,
        "it gives " + std::to_string(outputs) + " numbers per voxel, which is neither one probability nor the " +
          std::to_string(raters + 1) + " levels of " + std::to_string(raters) + " raters.");
    }
    return outputs == 1 ? RCN_LOSS_BCE : RCN_LOSS_RPS;
  }
  for (int kind = 0; kind < RCN_LOSS_KINDS; ++kind)
  {
    if (name == rcn_loss_kind_name(static_cast<rcn_loss_kind>(kind)))
    {
      return static_cast<rcn_loss_kind>(kind);
    }
  }
  Fail(path, "its \"loss\" is unknown: " + Quoted(name) + ".");
}

/// Of the loss, where it learns some (thresholds, a correlation): without them its outputs cannot be turned into levels.
std::vector<float> ReadParameters(const std::string& path, const std::string& text)
{
  std::vector<float> numbers;
  if (text.empty())
  {
    return numbers;
  }
  const JsonHandle array = ParseKey(text, path, "loss_parameters");
  for (size_t i = 0; i < json_array_size(array.get()); ++i)
  {
    const json_t* number = json_array_get(array.get(), i);
    // Biases and thresholds of logits: a network that needs more than a million has not learned anything.
    if (!json_is_number(number) || !(std::fabs(json_number_value(number)) <= 1e6))
    {
      Fail(path, "its \"loss_parameters\" must be an array of numbers from -1e6 to 1e6.");
    }
    numbers.push_back(static_cast<float>(json_number_value(number)));
  }
  return numbers;
}

/// The reader for data lists checks them, which expects an object around the list.
std::vector<Structure> ReadStructures(const std::string& path, const std::string& text)
{
  if (text.empty())
  {
    return {};
  }
  const JsonObject all{ { "structures", Json(ParseKey(text, path, "structures").release()) } };
  return StructuresFrom(JsonReader(all.Get(), path + ": its \"structures\" cannot be used"));
}

void ReadPixelSize(double out[2], const std::string& path, const std::string& text)
{
  if (text.empty())
  {
    return;
  }
  const JsonHandle array = ParseKey(text, path, "pixel_size");
  for (size_t a = 0; a < 2; ++a)
  {
    const json_t* number = json_array_get(array.get(), a);
    out[a] = json_number_value(number);
    if (json_array_size(array.get()) != 2 || !json_is_number(number) || !(out[a] >= 1e-6 && out[a] <= 1e6))
    {
      Fail(path, "its \"pixel_size\" must be two numbers from 0.000001 to 1000000 mm.");
    }
  }
}

/// Needs the raters.
void ReadReadout(ModelInfo& info, const std::string& path, const std::string& readout, const std::string& tie)
{
  if (!readout.empty() && !ParseReadout(info.Readout, info.AtLeast, readout))
  {
    Fail(path, std::string("its \"readout\" must be ") + ReadoutChoices + ", not " + Quoted(readout) + ".");
  }
  if (!tie.empty() && tie != "foreground" && tie != "background")
  {
    Fail(path, "its \"tie\" must be foreground or background, not " + Quoted(tie) + ".");
  }
  info.TieBackground = tie == "background";
  const int raters = static_cast<int>(info.Raters.size());
  if (info.Readout == RCN_READOUT_AT_LEAST && (info.AtLeast < 1 || info.AtLeast > raters))
  {
    Fail(path, "its \"readout\" needs " + std::to_string(info.AtLeast) + " of " + std::to_string(raters) + " raters.");
  }
}

/// `own`: how many levels the model has, or of several structures labels.
std::shared_ptr<Recalibration> ReadCorrection(const std::string& path, const std::string& text, bool several, int own)
{
  if (text.empty())
  {
    return nullptr;
  }
  const auto correction = std::make_shared<Recalibration>(ParseRecalibration(text, path));
  const int levels = correction->Correction.levels;
  if ((levels || several) && levels != own)
  {
    Fail(path,
      "its recalibration is for " + std::to_string(levels) + (several ? " labels" : " levels") + ", not for " +
        std::to_string(own) + ".");
  }
  return correction;
}

} // namespace

Model::Model(rcn_context* context, const std::string& path) : Path_(path)
{
  const auto metadata = [&](const char* key) { return ModelMetadata(context, path, key); };
  CheckVersion(path, metadata("version")); // first: a newer file may be different in any way
  rcn_net* net = nullptr;
  Check(rcn_model_load(&net, context, path.c_str()), context);
  this->Net_.reset(net);
  // From here on what the metadata say is checked against the network and against each other, in the order in which one needs
  // the other: raters, readout, structures, loss, correction.
  ModelInfo& info = this->Info_;
  info.Raters = ReadRaters(path, metadata("raters"));
  const std::string normalization = metadata("normalization");
  if (normalization.empty())
  {
    Fail(path, "its normalization is unknown: its metadata has no \"normalization\".");
  }
  info.Normalization = ParseNormalization(normalization, path);
  const int channels = this->Options().channels, outputs = this->Options().outputs;
  if (info.Normalization.kind == RCN_NORMALIZE_FIXED && info.Normalization.channels != channels)
  {
    Fail(path,
      "the network takes " + std::to_string(channels) + " channels, but its normalization has " +
        std::to_string(info.Normalization.channels) + ".");
  }
  info.Strategy = metadata("strategy");
  info.HasSpacing = !metadata("spacing").empty();
  info.Axes = metadata("axes");
  if (!info.Axes.empty() && !rcn_axes_check(info.Axes.c_str()))
  {
    Fail(path, "its \"axes\" must be three letters such as LPS, not " + Quoted(info.Axes) + ".");
  }
  ReadPixelSize(info.PixelSize, path, metadata("pixel_size"));
  ReadReadout(info, path, metadata("readout"), metadata("tie"));

  rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
  options.raters = this->RaterCount();
  info.Structures = ReadStructures(path, metadata("structures"));
  options.structures = std::max(1, static_cast<int>(info.Structures.size()));
  options.kind = info.Loss = ReadLoss(path, metadata("loss"), outputs, options.raters);
  rcn_loss* loss = nullptr;
  Check(rcn_loss_create(&loss, context, &options), context, path);
  this->Loss_.reset(loss);
  // The one check that notices weights of one model under the metadata of another.
  if (rcn_loss_channels(loss) != outputs)
  {
    Fail(path,
      std::string("a network trained with ") + rcn_loss_kind_name(info.Loss) + " for " + std::to_string(options.raters) +
        " raters gives " + std::to_string(rcn_loss_channels(loss)) + " numbers per voxel, but this one gives " +
        std::to_string(outputs) + ".");
  }
  info.LossParameters = ReadParameters(path, metadata("loss_parameters"));
  if (info.LossParameters.size() != static_cast<size_t>(rcn_loss_parameters(loss)))
  {
    Fail(path,
      std::string("its \"loss_parameters\" must be ") + std::to_string(rcn_loss_parameters(loss)) + " numbers, not " +
        std::to_string(info.LossParameters.size()) + ".");
  }
  const std::string volumes = metadata("volumes");
  if (!volumes.empty())
  {
    const JsonHandle json = ParseKey(volumes, path, "volumes");
    info.Volumes = std::make_shared<VolumeScores>(ParseVolumeScores(json.get(), path + " cannot be used"));
    if (this->HasSeveralStructures() && info.Volumes->Structures.empty())
    {
      Fail(path, "its \"volumes\" are those of one structure, and it predicts several.");
    }
  }
  const bool several = this->HasSeveralStructures();
  info.Correction =
    ReadCorrection(path, metadata("recalibration"), several, (several ? options.structures : options.raters) + 1);
}

// Of all numbers that make its predictions, and of nothing else: a renamed file, another date or a correction leave it as it
// is.
std::string Model::Hash() const
{
  const std::vector<float>& own = this->Info_.LossParameters;
  const uint64_t net = rcn_hash_floats(RCN_HASH_START, rcn_net_values(this->Net()), rcn_net_floats(this->Net()));
  return HashText(rcn_hash_floats(net, own.data(), static_cast<int64_t>(own.size())));
}

// By its loss: these learn one probability, not how many raters mark a voxel.
bool Model::GivesOneProbability() const
{
  return this->Info_.Loss == RCN_LOSS_BCE || this->Info_.Loss == RCN_LOSS_BINARY_BRIER ||
    this->Info_.Loss == RCN_LOSS_CATEGORICAL;
}

void Model::CheckRaters(const std::vector<std::string>& raters, const std::string& about) const
{
  if (raters.size() != this->Info_.Raters.size())
  {
    throw Error(RCN_EINVALID,
      about + " has " + Counted(static_cast<int64_t>(raters.size()), "rater") + ", but " + this->Path_ + " was trained on " +
        std::to_string(this->Info_.Raters.size()) + ".");
  }
  // A level counts raters, so their order plays no part.
  const std::set<std::string> known(this->Info_.Raters.begin(), this->Info_.Raters.end());
  for (const std::string& rater : raters)
  {
    if (!known.count(rater))
    {
      throw Error(RCN_EINVALID,
        about + " has a rater " + rater + ", on whom " + this->Path_ + " was not trained; name the raters as in training.");
    }
  }
}

void Model::CheckStructures(const std::vector<Structure>& structures, const std::string& about) const
{
  std::vector<std::string> known = NamesOf(this->Info_.Structures), names = NamesOf(structures);
  std::sort(known.begin(), known.end());
  std::sort(names.begin(), names.end());
  if (known != names && (std::max(known.size(), names.size()) > 1 || std::min(known.size(), names.size()) == 1))
  {
    const auto inWords = [](const std::vector<std::string>& all) {
      return all.empty() ? std::string("one structure without a name") : JoinNames(all);
    };
    throw Error(RCN_EINVALID,
      about + " has " + inWords(NamesOf(structures)) + ", but " + this->Path_ + " was trained on " +
        inWords(NamesOf(this->Info_.Structures)) + "; name the structures as in training.");
  }
}

} // namespace rcn
