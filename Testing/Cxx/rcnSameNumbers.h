// SPDX-License-Identifier: Apache-2.0
/// One case, asked of a shell and of the command line program: both must give the same numbers and the same voxels.
#ifndef rcnSameNumbers_h
#define rcnSameNumbers_h

#include <algorithm>
#include <map>

#include "rcnEvaluation.h"
#include "rcnJson.h"
#include "rcnPhantom.h"
#include "rcnPrediction.h"
#include "rcnReport.h"
#include "rcnTest.h"

/// The example's image and masks as files: example.nrrd, example_Ada.nrrd, ..., and a model of its raters.
struct ExampleFiles
{
  Folder Files;
  rcn::Case Case;
  std::string Model;

  ExampleFiles()
  {
    const rcn::Workspace workspace;
    const rcn::Phantom phantom = rcn::MakeExample(workspace.Context());
    this->Case.Id = "example";
    this->Case.Images = { this->Files / "example.nrrd" };
    rcn::WriteImage(this->Case.Images[0], phantom.Image.View(), rcn::Content::Probability);
    for (const rcn::RaterMask& rater : phantom.Raters)
    {
      rcn::RaterFile file;
      file.Name = rater.Name;
      file.Path = this->Files / ("example_" + rater.Name + ".nrrd");
      rcn::WriteImage(file.Path, rater.Mask.View(), rcn::Content::Mask);
      this->Case.Raters.push_back(file);
    }
    rcn_net* net = nullptr;
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    options.arch = RCN_UNET;
    options.width = 8;
    options.depth = 2;
    options.outputs = static_cast<int>(phantom.Raters.size()) + 1;
    CHECK(rcn_net_create(&net, workspace.Context(), &options) == RCN_OK && rcn_net_initialize(net, 1) == RCN_OK);
    rcn::ModelInfo info;
    info.Raters = rcn::PhantomRaters();
    this->Model = this->Files / "model.safetensors";
    rcn::SaveModel(workspace.Context(), this->Model, net, info);
    rcn_net_destroy(net);
  }
};

/// What a shell said.
struct ShellNumbers
{
  rcn::AgreementReport Agreement;           ///< with surfaces
  std::map<std::string, rcn::Volume> Fused; ///< by method
  rcn::Volume Probability, Levels;
  rcn::EvaluationReport Evaluation; ///< of the levels, box, 15 bins, the model's own readout
};

/// Runs the program; its words go nowhere.
inline void RunProgram(const std::string& program, const std::vector<std::string>& arguments)
{
  std::string line = "\"" + program + "\"";
  for (const std::string& argument : arguments)
  {
    line += " \"" + argument + "\"";
  }
  const int code = std::system((line + " > /dev/null").c_str());
  CHECK(code == 0);
  if (code)
  {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

/// Every value that we have is in the program's file, to its last digit.
inline void CheckSameJson(json_t* taken, const std::string& file)
{
  json_error_t error;
  const rcn::JsonHandle own(taken);
  const rcn::JsonHandle ours(json_loads(rcn::JsonText(own.get()).c_str(), 0, &error)); // rounded as a file's
  const rcn::JsonHandle theirs(json_load_file(file.c_str(), 0, &error));
  CHECK(ours && theirs && json_object_size(ours.get()) > 5);
  const char* key;
  json_t* value;
  json_object_foreach(ours.get(), key, value)
  {
    const json_t* other = json_object_get(theirs.get(), key);
    if (std::string(key) == "cases" && json_is_array(other)) // evaluate has a row for each
    {
      CHECK(static_cast<size_t>(json_integer_value(value)) == json_array_size(other));
      continue;
    }
    if (!json_equal(value, other))
    {
      ++Failures;
      std::fprintf(stderr, "%s differs in %s\n", key, file.c_str());
    }
  }
}

inline void CheckSameVoxels(const rcn::Volume& ours, const std::string& file)
{
  const rcn::Volume theirs = rcn::ReadImage(file);
  const int64_t elements = rcn_geometry_voxels(&ours.Geometry()) * ours.View().components;
  CHECK(ours.View().type == RCN_FLOAT32 && theirs.View().type == RCN_FLOAT32);
  CHECK(theirs.View().components == ours.View().components);
  CHECK(elements == rcn_geometry_voxels(&theirs.Geometry()) * theirs.View().components);
  const float* const a = static_cast<const float*>(ours.Data());
  if (!std::equal(a, a + elements, static_cast<const float*>(theirs.Data())))
  {
    ++Failures;
    std::fprintf(stderr, "%s has other voxels\n", file.c_str());
  }
}

inline void CheckSameNumbers(const std::string& program, const ExampleFiles& example, const ShellNumbers& shell)
{
  const Folder& folder = example.Files;
  std::vector<std::string> raters;
  for (const rcn::RaterFile& rater : example.Case.Raters)
  {
    raters.insert(raters.end(), { "--rater", rater.Name + "=" + rater.Path });
  }
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), raters.begin(), raters.end());
    RunProgram(program, arguments);
  };
  rcn::Workspace workspace;
  workspace.LoadCase(example.Case);
  run({ "agree", "--image", example.Case.Images[0], "--json", folder / "agree.json" });
  CheckSameJson(rcn::AgreementJson(shell.Agreement, workspace, 10), folder / "agree.json");
  CHECK(shell.Fused.size() > 5);
  for (const auto& fused : shell.Fused)
  {
    run({ "fuse", "--method", fused.first, "-o", folder / (fused.first + ".nrrd") });
    CheckSameVoxels(fused.second, folder / (fused.first + ".nrrd"));
  }
  RunProgram(program, { "predict", "--model", example.Model, "--image", example.Case.Images[0], "-o", folder / "predicted" });
  CheckSameVoxels(shell.Probability, folder / "predicted/example_prob.nrrd");
  CheckSameVoxels(shell.Levels, folder / "predicted/example_levels.nrrd");
  run(
    { "evaluate", "--prob", folder / "predicted/example_levels.nrrd", "--region", "box", "--json", folder / "evaluate.json" });
  rcn::EvaluationOptions options;
  options.Region.region = RCN_REGION_BOX;
  CheckSameJson(rcn::EvaluationJson(shell.Evaluation, options, rcn::PhantomRaters()), folder / "evaluate.json");
}

#endif
