// SPDX-License-Identifier: Apache-2.0
/// RaterConsensusFuse: `rater-consensus fuse` for Slicer's scene, or for a data list.
#include "rcnCommands.h"
#include "rcnSlicerProgram.h"

namespace
{

void Plan(rcn::SlicerPlan& plan, const rcn::Arguments& given)
{
  std::vector<std::string> volumes = rcn::SlicerRaterPlaceNames();
  volumes.push_back("image");
  if (rcn::IsList(given, volumes, "Choose at least one rater"))
  {
    plan.Words.insert(plan.Words.end(), { "-o", rcn::Required(given, "output_folder", "Choose a folder for the maps.") });
    return;
  }
  rcn::AddRaters(plan.Words, given);
  plan.Words.insert(plan.Words.end(), { "-o", rcn::Required(given, "output", "Choose a volume for the consensus.") });
}

} // namespace

int main(int argc, char** argv)
{
  rcn::SlicerProgram program;
  program.Name = "RaterConsensusFuse";
  program.Title = "Rater Consensus Fuse";
  program.What = rcn::FuseCommand();
  program.Description = "One consensus out of several raters' segmentations of the same image. " + program.What.Description;
  program.Groups = rcn::SlicerRaterGroups();
  program.Groups.push_back({ "Consensus", "How to fuse, and where the result goes.", false,
    { { "image", "image", "Image", "--image", "", "type=\"any\"",
        "the image that was outlined, if masks are to be checked against its geometry" },
      { "string-enumeration", "method", "Method", "--method", "staple", "",
        "orc: how many raters marked the voxel; random: one rater; median: what at least half marked; soft: the share who "
        "marked; "
        "soft-gaussian: that, smoothed; staple: probability of the hidden truth; simple: majority of the raters who agree "
        "well; "
        "svls: spatially varying label smoothing" },
      { "image", "output", "Consensus", "-o", "", "type=\"scalar\" reference=\"rater1\"", "where the map goes", "", {}, true,
        true } } });
  program.Groups.push_back(rcn::SlicerListGroup(
    { { "directory", "output_folder", "Folder for maps", "-o", "", "", "where the cases' maps go", "", {}, true, true },
      { "string-enumeration", "format", "File format", "--format", ".nrrd", "", "of the maps in the folder" } }));
  program.Groups.push_back(
    rcn::SlicerDetailGroup({ { "string-enumeration", "tie", "Exactly half means", "--tie", "foreground" },
                             { "double", "sigma", "Sigma (voxels)", "--sigma", "1" },
                             { "integer", "seed", "Draw", "--seed", "0" }, { "boolean", "mask", "STAPLE as a mask", "--mask" },
                             { "integer", "margin", "STAPLE margin (voxels)", "--margin", "-1", "",
                               "estimate STAPLE on the box around all marks grown by so much; -1: on the whole image", "-1" },
                             { "double", "confidence", "STAPLE confidence", "--confidence", "1" },
                             { "double", "alpha", "SIMPLE alpha", "--alpha", "1" },
                             { "string-enumeration", "type", "Voxel type", "--type", "float32" } },
      true));
  program.Results = {
    { "string", "raters", "Raters", "who was fused", "raters" },
    { "string", "kept", "Kept", "random: who was drawn; simple: who agrees well", "kept" },
    { "double", "prior", "Prior", "staple: share of marked voxels that it started from", "prior" },
    { "integer", "iterations", "Rounds", "staple, simple: how many it took", "iterations" },
    { "double-vector", "sensitivity", "Sensitivity", "staple: of each rater, in their order", "sensitivity" },
    { "double-vector", "specificity", "Specificity", "staple: of each rater, in their order", "specificity" },
    { "double-vector", "weight", "Dice with the estimate", "simple: of each rater, in their order", "weight" },
    { "integer", "cases", "Cases", "data list: how many maps were written", "cases" },
  };
  program.LeftOut = { "--quiet" };
  program.Plan = Plan;
  return program.Main(argc, argv);
}
