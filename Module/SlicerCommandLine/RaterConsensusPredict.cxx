// SPDX-License-Identifier: Apache-2.0
/// RaterConsensusPredict: `rater-consensus predict` for Slicer's scene, or for a data list.
#include <filesystem>
#include <memory>

#include "rcnCommands.h"
#include "rcnFileBeside.h"
#include "rcnSlicerProgram.h"
#include "rcnTemporaryFolder.h"

namespace
{

namespace fs = std::filesystem;

/// The command's name of a map, and where Slicer wants it.
const struct
{
  const char* Map;
  const char* Parameter;
} Outputs[] = { { "prob", "--probability" }, { "mask", "--mask" }, { "levels", "--levels" },
  { "uncertainty", "--uncertainty" } };

void Move(const std::string& from, const std::string& to)
{
  std::error_code failed;
  fs::rename(from, to, failed);
  if (failed) // another file system
  {
    rcn::FileBeside beside(to);
    fs::copy_file(from, beside.Path(), fs::copy_options::overwrite_existing);
    beside.Commit();
  }
}

/// ".nii.gz" of "a/b.c.nii.gz".
std::string FormatOf(const std::string& path)
{
  const std::string name = fs::path(path).filename().string();
  const std::string last = fs::path(name).extension().string();
  return last == ".gz" ? fs::path(fs::path(name).stem()).extension().string() + last : last;
}

void Plan(rcn::SlicerPlan& plan, const rcn::Arguments& given)
{
  if (rcn::IsList(given, { "image", "image2", "image3", "image4" }, "Choose an image"))
  {
    plan.Words.insert(plan.Words.end(),
      { "-o", rcn::Required(given, "output_folder", "Choose a folder for the maps."), "--format",
        given.Get("--format", ".nrrd") });
    if (given.Has("--list_uncertainty"))
    {
      plan.Words.push_back("--uncertainty");
    }
    if (given.Has("--no_levels"))
    {
      plan.Words.push_back("--no-levels");
    }
    return;
  }
  for (const char* channel : { "--image", "--image2", "--image3", "--image4" })
  {
    if (given.Has(channel))
    {
      plan.Words.insert(plan.Words.end(), { "--image", given.Get(channel) });
    }
  }
  std::vector<std::pair<std::string, std::string>> wanted;
  for (const auto& output : Outputs)
  {
    const std::string path = given.Get(output.Parameter);
    if (path.empty())
    {
      continue;
    }
    if (!wanted.empty() && FormatOf(path) != FormatOf(wanted.front().second))
    {
      throw rcn::Error(
        RCN_EINVALID, path + " and " + wanted.front().second + " are files of different formats; choose one format.");
    }
    wanted.emplace_back(output.Map, path);
  }
  if (wanted.empty())
  {
    throw rcn::Error(RCN_EINVALID, "Choose at least one volume for what the model says, such as the probability.");
  }
  // Beside the results, so that they only have to be moved there.
  const fs::path place = fs::path(wanted.front().second).parent_path();
  const auto folder = std::make_shared<rcn::TemporaryFolder>(place.empty() ? "." : place.string());
  plan.Words.insert(plan.Words.end(), { "-o", folder->Path(), "--format", FormatOf(wanted.front().second) });
  if (!given.Has("--levels"))
  {
    plan.Words.push_back("--no-levels");
  }
  if (given.Has("--uncertainty"))
  {
    plan.Words.push_back("--uncertainty");
  }
  plan.Finish = [folder, wanted](const json_t* json) {
    for (const auto& one : wanted)
    {
      const std::string path =
        rcn::TextOf(json_object_get(json_array_get(json_object_get(json, "cases"), 0), one.first.c_str()));
      if (path.empty())
      {
        throw rcn::Error(RCN_EDATA, "This model gives no " + one.first + "; leave that volume out.");
      }
      Move(path, one.second);
    }
  };
}

} // namespace

int main(int argc, char** argv)
{
  const auto output = [](const char* name, const char* label, const char* option, const char* type, const char* help) {
    return rcn::SlicerParameter{ "image", name, label, option, "", std::string("type=\"") + type + "\" reference=\"image\"",
      help, "", {}, true, true };
  };
  const auto image = [](const char* name, const char* label, const char* help) {
    return rcn::SlicerParameter{ "image", name, label, "--image", "", "type=\"any\"", help, "", {}, false, true };
  };
  rcn::SlicerProgram program;
  program.Name = "RaterConsensusPredict";
  program.Title = "Rater Consensus Predict";
  program.What = rcn::PredictCommand();
  program.Description =
    "What a model, trained on several raters, says about an image: how probable it is that raters mark a voxel, the "
    "probabilities of every level of consensus, and a mask, in the image's own geometry. The model's recalibration is applied.";
  program.Groups = {
    { "Input", "The model and the image.", false,
      { { "file", "model", "Model", "--model", "", "fileExtensions=\".safetensors\"",
          "a model made by training (.safetensors)" },
        image("image", "Image", "the image, or its first channel") } },
    { "More channels", "For models that want several images of the same place.", true,
      { image("image2", "Second channel", "another image of the same place"),
        image("image3", "Third channel", "another image of the same place"),
        image("image4", "Fourth channel", "another image of the same place") } },
    { "Output", "Choose what you want.", false,
      { output("probability", "Probability", "-o", "scalar", "the probability that the readout asks for"),
        output("mask", "Mask", "", "label", "where that probability reaches the threshold"),
        output("levels", "Levels", "--no-levels", "vector",
          "the probabilities that 0, 1, ... K raters mark the voxel, as components"),
        output("uncertainty", "Uncertainty", "--uncertainty", "scalar", "the entropy of the levels, in bits"),
        { "string", "readout", "Readout", "--readout", "", "",
          "majority, more-than-half, expected or at-least:T; empty: the model's own" },
        { "double", "threshold", "Threshold", "--threshold", "0.5", "", "", "", { 0, 1, 0.01 } } } },
    rcn::SlicerListGroup(
      { { "directory", "output_folder", "Folder for maps", "-o", "", "", "where the cases' maps go", "", {}, true, true },
        { "boolean", "list_uncertainty", "Uncertainty, too", "--uncertainty", "", "", "", "", {}, false, true },
        { "boolean", "no_levels", "Without levels", "--no-levels", "", "", "", "", {}, false, true },
        { "string-enumeration", "format", "File format", "--format", ".nrrd", "", "of the maps in the folder", "", {}, false,
          true } }),
    rcn::SlicerDetailGroup({ { "boolean", "flips", "Average over flips", "--flips" },
                             { "string", "tile", "Tile (voxels)", "--tile", "", "",
                               "size of a tile, N or X,Y,Z; empty: as large as the memory below allows" },
                             { "double", "overlap", "Overlap of tiles", "--overlap", "0.25", "", "", "", { 0, 0.9, 0.05 } },
                             { "integer", "memory", "Memory (MB)", "--memory", "256" },
                             { "file", "recalibration", "Correction", "--recalibration", "", "fileExtensions=\".json\"" },
                             { "boolean", "no_recalibration", "Without correction", "--no-recalibration" } },
      false),
  };
  program.Results = {
    { "string", "model_raters", "The model's raters", "whom it learned from", "raters" },
    { "string", "used_readout", "Readout used", "what the probability means", "cases.0.readout" },
    { "integer", "tiles", "Tiles", "how many covered the first image", "cases.0.tiles" },
    { "integer", "cases", "Cases", "how many images were predicted", "cases" },
  };
  program.LeftOut = { "--quiet" };
  program.Plan = Plan;
  return program.Main(argc, argv);
}
