// SPDX-License-Identifier: Apache-2.0
#include "rcnModel.h"

#include <cmath>
#include <cstring>

#include "rcn/rcn.h"
#include "rcnModelRecord.h"
#include "rcnTest.h"

namespace
{

/// A context with a small network, to be saved.
struct Bench
{
  rcn_context* Context = nullptr;
  rcn_net* Net = nullptr;

  explicit Bench(int outputs, int channels = 1)
  {
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    options.width = 8;
    options.depth = 1;
    options.outputs = outputs;
    options.channels = channels;
    CHECK(rcn_context_create(&this->Context, nullptr) == RCN_OK);
    CHECK(rcn_net_create(&this->Net, this->Context, &options) == RCN_OK);
    CHECK(rcn_net_initialize(this->Net, 4) == RCN_OK);
  }
  ~Bench()
  {
    rcn_net_destroy(this->Net);
    rcn_context_destroy(this->Context);
  }
};

rcn::ModelInfo Info(int raters)
{
  rcn::ModelInfo info;
  for (int r = 0; r < raters; ++r)
  {
    info.Raters.push_back(std::string(1, static_cast<char>('A' + r)));
  }
  info.Normalization.kind = RCN_NORMALIZE_WINDOW;
  info.Normalization.center = -600.125;
  info.Normalization.width = 1500;
  return info;
}

void ComesBackAsWritten()
{
  const Folder folder;
  Bench bench(1);
  rcn::ModelInfo info = Info(3);
  info.Strategy = "coral";
  info.Loss = RCN_LOSS_CORAL;
  info.LossParameters = { 1.5f, 0.1f, -2.25f };
  info.Readout = RCN_READOUT_AT_LEAST;
  info.AtLeast = 2;
  info.Axes = "RIP";
  info.PixelSize[0] = 0.742188;
  info.PixelSize[1] = 0.1 + 0.2;
  rcn::Recalibration correction;
  correction.Correction.method = RCN_RECALIB_TEMPERATURE;
  correction.Correction.levels = 4;
  correction.Correction.parameters[0] = 1.25;
  correction.Cases = { "c01" };
  info.Correction = std::make_shared<rcn::Recalibration>(correction);
  const std::string path = folder / "m.safetensors";
  rcn::SaveModel(bench.Context, path, bench.Net, info, { { "log", "0123" } });
  const rcn::Model model(bench.Context, path);
  CHECK(model.Info().Raters == info.Raters && model.RaterCount() == 3);
  CHECK(model.Info().Strategy == "coral" && model.Info().Loss == RCN_LOSS_CORAL);
  CHECK(model.Info().LossParameters == info.LossParameters);
  CHECK(model.Info().Readout == RCN_READOUT_AT_LEAST && model.Info().AtLeast == 2);
  CHECK(model.Info().Normalization.kind == RCN_NORMALIZE_WINDOW && model.Info().Normalization.center == -600.125);
  CHECK(model.Info().Correction && model.Info().Correction->Correction.parameters[0] == 1.25);
  CHECK(model.Info().Correction && model.Info().Correction->Cases == correction.Cases);
  CHECK(model.Info().HasSpacing && !model.Is3D());
  CHECK(model.Info().Axes == "RIP" && model.Info().PixelSize[0] == 0.742188 && model.Info().PixelSize[1] == 0.1 + 0.2);
  CHECK(!std::memcmp(
    rcn_net_values(model.Net()), rcn_net_values(bench.Net), sizeof(float) * static_cast<size_t>(rcn_net_floats(bench.Net))));
  CHECK(folder.Count() == 1);
}

/// What is written with fewer digits is another number when it is read.
void NumbersComeBackAsTheyWere()
{
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  for (const double number : { 0.3, 0.6, 0.9, 0.742188, 0.1 + 0.2, 1.0 / 3, 1e-5 / 7, 123456.7 })
  {
    const rcn::JsonHandle written(rcn::JsonNumber(number));
    const rcn::JsonHandle read(json_loads(rcn::JsonText(written.get()).c_str(), JSON_DECODE_ANY, nullptr));
    CHECK(json_number_value(read.get()) == number);
    rcn_context* context = nullptr;
    CHECK(rcn_context_create(&context, nullptr) == RCN_OK);
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    options.arch = RCN_UNET3D;
    options.width = 8;
    options.depth = 1;
    options.outputs = 4;
    options.spacing[1] = number;
    rcn_net* net = nullptr;
    CHECK(rcn_net_create(&net, context, &options) == RCN_OK);
    rcn::ModelInfo info = Info(3);
    rcn::Recalibration correction;
    correction.Correction.method = RCN_RECALIB_TEMPERATURE;
    correction.Correction.levels = 4;
    correction.Correction.parameters[0] = number;
    info.Correction = std::make_shared<rcn::Recalibration>(correction);
    rcn::SaveModel(context, path, net, info);
    rcn_net_destroy(net);
    {
      const rcn::Model model(context, path);
      CHECK(model.Options().spacing[1] == number && model.Info().Correction->Correction.parameters[0] == number);
    }
    rcn_context_destroy(context);
  }
}

void NormalizationsAreJson()
{
  rcn_normalize fixed = RCN_NORMALIZE_INIT;
  fixed.kind = RCN_NORMALIZE_FIXED;
  fixed.channels = 2;
  fixed.mean[0] = 0.1;
  fixed.mean[1] = -3;
  fixed.std[0] = 1.0 / 3;
  fixed.std[1] = 2;
  const rcn_normalize again = rcn::ParseNormalization(rcn::NormalizationText(fixed), "m");
  CHECK(again.kind == RCN_NORMALIZE_FIXED && again.channels == 2);
  CHECK(again.mean[0] == fixed.mean[0] && again.std[0] == fixed.std[0] && again.std[1] == 2);
  CHECK(rcn::NormalizationText(rcn::ParseNormalization("{\"kind\": \"zscore\"}", "m")) == "{\"kind\":\"zscore\"}");
  const rcn_normalize percentile = rcn::ParseNormalization("{\"kind\": \"percentile\", \"lower\": 1}", "m");
  CHECK(percentile.lower == 1 && percentile.upper == 99.5);
  CHECK_THROWS(rcn::ParseNormalization("{", "m"), RCN_EFORMAT, "m: its \"normalization\" cannot be read: it is not valid JSON");
  CHECK_THROWS(rcn::ParseNormalization("{\"kind\": \"log\"}", "m"), RCN_EFORMAT, "not log");
  CHECK_THROWS(rcn::ParseNormalization("[]", "m"), RCN_EFORMAT, "fixed, zscore, percentile or window");
  CHECK_THROWS(
    rcn::ParseNormalization("{\"kind\": \"fixed\", \"mean\": [0], \"std\": [1, 1]}", "m"), RCN_EFORMAT, "same length");
  CHECK_THROWS(
    rcn::ParseNormalization("{\"kind\": \"fixed\", \"mean\": [0], \"std\": [0]}", "m"), RCN_EFORMAT, "greater than 0");
  CHECK_THROWS(rcn::ParseNormalization("{\"kind\": \"fixed\", \"mean\": [\"a\"], \"std\": [1]}", "m"), RCN_EFORMAT, "numbers");
  CHECK_THROWS(rcn::ParseNormalization("{\"kind\": \"window\", \"width\": \"x\"}", "m"), RCN_EFORMAT, "width");
}

/// The network under other metadata, as a state dict would come.
void Save(Bench& bench, const std::string& path, const std::vector<rcn_model_entry>& entries)
{
  CHECK(rcn_model_save(bench.Context, path.c_str(), bench.Net, entries.data(), static_cast<int>(entries.size())) == RCN_OK);
}

void StateDictsAreModels()
{
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  const char* const normalization = "{\"kind\": \"fixed\", \"mean\": [0], \"std\": [1]}";
  Bench levels(4), probability(1);
  Save(levels, path, { { "raters", "[\"A\", \"B\", \"C\"]" }, { "normalization", normalization } });
  CHECK(rcn::Model(levels.Context, path).Info().Loss == RCN_LOSS_RPS);
  Save(probability, path, { { "raters", "[\"A\", \"B\", \"C\"]" }, { "normalization", normalization } });
  CHECK(rcn::Model(probability.Context, path).Info().Loss == RCN_LOSS_BCE);
  Save(levels, path, { { "raters", "[\"A\", \"B\"]" }, { "normalization", normalization } });
  CHECK_THROWS(rcn::Model(levels.Context, path), RCN_EFORMAT, "neither one probability nor the 3 levels");
}

void WhatDoesNotFitIsRefused()
{
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  Bench bench(4);
  const rcn_model_entry raters = { "raters", "[\"A\", \"B\", \"C\"]" }, zscore = { "normalization", "{\"kind\":\"zscore\"}" };
  const auto refused = [&](const std::vector<rcn_model_entry>& entries, const char* words) {
    Save(bench, path, entries);
    CHECK_THROWS(rcn::Model(bench.Context, path), RCN_EFORMAT, words);
  };
  refused({ zscore }, "no \"raters\"");
  refused({ { "raters", "[]" }, zscore }, "1 to 64 names");
  refused({ { "raters", "[\"A\", \"A\", \"B\"]" }, zscore }, "twice");
  refused({ { "raters", "[1, 2, 3]" }, zscore }, "array of names");
  refused({ raters }, "no \"normalization\"");
  refused({ raters, { "normalization", "{\"kind\":\"fixed\",\"mean\":[0,0],\"std\":[1,1]}" } },
    "takes 1 channels, but its normalization has 2");
  refused({ raters, zscore, { "loss", "hinge" } }, "\"loss\" is unknown: hinge");
  refused({ raters, zscore, { "loss", "corn" } }, "gives 3 numbers per voxel, but this one gives 4");
  refused({ raters, zscore, { "loss_parameters", "[1]" } }, "must be 0 numbers, not 1");
  refused({ raters, zscore, { "loss_parameters", "[null]" } }, "array of numbers");
  refused({ raters, zscore, { "loss_parameters", "[1e7]" } }, "-1e6 to 1e6");
  refused({ raters, zscore, { "axes", "LPL" } }, "three letters such as LPS, not LPL");
  refused({ raters, zscore, { "pixel_size", "[1]" } }, "\"pixel_size\" must be two numbers");
  refused({ raters, zscore, { "pixel_size", "[0, 1]" } }, "\"pixel_size\" must be two numbers");
  refused({ raters, zscore, { "readout", "best" } }, "not best");
  refused({ raters, zscore, { "readout", "at-least:4" } }, "4 of 3");
  refused({ raters, zscore, { "recalibration", "{}" } }, "recalibration");
  refused({ raters, zscore,
            { "recalibration", "{\"method\":\"temperature\",\"readout\":\"majority\",\"levels\":3,\"parameters\":[2]}" } },
    "for 3 levels, not for 4");
  Save(bench, path, { raters, zscore });
  std::string bytes = TextOf(path);
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  CHECK_THROWS(rcn::Model(bench.Context, path), RCN_EFORMAT, path);
  const std::string::size_type version = bytes.find(RCN_VERSION);
  CHECK(version != std::string::npos);
  std::ofstream(path, std::ios::binary) << bytes.replace(version, 5, "9.9.9");
  CHECK_THROWS(rcn::Model(bench.Context, path), RCN_EFORMAT, "version 9.9.9, newer than this one");
  CHECK_THROWS(rcn::Model(bench.Context, folder / "none"), RCN_EIO, "none");
}

void RatersMustBeThoseOfTraining()
{
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  Bench bench(4);
  rcn::SaveModel(bench.Context, path, bench.Net, Info(3));
  const rcn::Model model(bench.Context, path);
  model.CheckRaters({ "C", "A", "B" }, "list");
  CHECK_THROWS(model.CheckRaters({ "A", "B" }, "list"), RCN_EINVALID, "list has 2 raters");
  CHECK_THROWS(model.CheckRaters({ "A", "B", "D" }, "list"), RCN_EINVALID, "list has a rater D");
}

/// A report of two bins, one of them empty.
rcn::EvaluationReport SmallReport()
{
  rcn::EvaluationReport report;
  report.Cases = 6;
  report.Patients = 5;
  report.Voxels = 100;
  report.Pairs = 300;
  report.Auc.reference = 0.75;
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    report.Figures[f] = NAN;
    report.Interval[f] = { NAN, NAN, NAN, NAN, NAN, 0 };
  }
  report.Figures[RCN_MR_ECE] = 0.1 + 0.2;
  report.Interval[RCN_MR_ECE] = { 0.3, 0.1, 0.25, 0.35, NAN, 5 };
  report.Bins = { { 0, 0.5, 300, 0.25, 0.125 }, { 0.5, 1, 0, NAN, NAN } };
  report.BandLow = { 0.0625, NAN };
  report.BandHigh = { 0.1875, NAN };
  return report;
}

void RecordsComeBack()
{
  const Folder folder;
  Bench bench(4);
  const std::string path = folder / "m.safetensors";
  rcn::SaveModel(
    bench.Context, path, bench.Net, Info(3), { { "training", R"({"training cases": ["a", "b"], "old cases": 1.0})" } });
  {
    const rcn::ModelRecord none = rcn::RecordOf(bench.Context, rcn::Model(bench.Context, path));
    CHECK(none.Calibration.empty() && none.Problem.empty() && none.Created.empty() && none.TrainingCases.size() == 2);
    CHECK(none.OlderCases == 1 && none.HasCases && !none.Find("test"));
  }
  rcn::EvaluationOptions options;
  options.Region.region = RCN_REGION_BAND;
  options.Calib.readout = RCN_READOUT_AT_LEAST;
  options.Calib.at_least = 2;
  rcn::RecordCalibration(bench.Context, path, "test", SmallReport(), options, { "b", "x" });
  rcn::RecordCalibration(bench.Context, path, "validation", SmallReport(), options);
  const rcn::ModelRecord record = rcn::RecordOf(bench.Context, rcn::Model(bench.Context, path));
  CHECK(
    record.Calibration.size() == 2 && record.Calibration.front().Split == "validation" && record.Find("test")->Learned == 1);
  const rcn::RecordedCalibration& one = *record.Find("validation");
  CHECK(one.Learned == 0 && !one.IsOutdated && one.Region.region == RCN_REGION_BAND && one.Readout == "at-least:2");
  CHECK(one.Report.Cases == 6 && one.Report.Patients == 5 && one.Report.Figures[RCN_MR_ECE] == 0.1 + 0.2);
  CHECK(one.Report.Interval[RCN_MR_ECE].low == 0.25 && std::isnan(one.Report.Figures[RCN_DICE]) &&
    one.Report.Auc.reference == 0.75);
  CHECK(one.Report.Bins.size() == 2 && one.Report.Bins[0].frequency == 0.125 && std::isnan(one.Report.Bins[1].confidence));
  CHECK(one.Report.BandHigh[0] == 0.1875 &&
    one.InWords().find("MR-ECE 30.00 % (95 %: 25.00 to 35.00 %), 6 cases of 5 patients") == 0);
  CHECK(one.Day.size() == 10 && folder.Count() == 1);
  // Another correction: what was judged is not what the model says now.
  rcn::Recalibration correction;
  correction.Correction.method = RCN_RECALIB_TEMPERATURE;
  correction.Correction.levels = 4;
  correction.Correction.parameters[0] = 2;
  rcn::SetCorrection(bench.Context, path, correction);
  CHECK(rcn::RecordOf(bench.Context, rcn::Model(bench.Context, path)).Find("test")->IsOutdated);
  // Without names.
  for (const auto& row : rcn::RecordRows(record, true))
  {
    CHECK(row.second.find("m.safetensors") == std::string::npos && row.second.find("A, B") == std::string::npos);
  }
  // Other weights: it is not their record.
  CHECK(rcn_net_initialize(bench.Net, 5) == RCN_OK);
  const std::string kept = rcn::ModelMetadata(bench.Context, path, "calibration");
  rcn::SaveModel(bench.Context, path, bench.Net, Info(3), { { "calibration", kept } });
  CHECK(rcn::RecordOf(bench.Context, rcn::Model(bench.Context, path)).Calibration.empty());
}

} // namespace

int main()
{
  RUN(ComesBackAsWritten);
  RUN(NumbersComeBackAsTheyWere);
  RUN(NormalizationsAreJson);
  RUN(StateDictsAreModels);
  RUN(WhatDoesNotFitIsRefused);
  RUN(RatersMustBeThoseOfTraining);
  RUN(RecordsComeBack);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
