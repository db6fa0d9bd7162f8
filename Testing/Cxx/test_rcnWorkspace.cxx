// SPDX-License-Identifier: Apache-2.0
#include "rcnWorkspace.h"

#include <algorithm>

#include "rcnReport.h"
#include "rcnTest.h"

namespace
{

constexpr int64_t Size[3] = { 12, 11, 10 };

/// Three overlapping balls as files, and a case of them.
rcn::Case MakeCase(const Folder& folder)
{
  rcn::Case one;
  one.Id = "c";
  for (int r = 0; r < 3; ++r)
  {
    const std::vector<uint8_t> mask = Ball(Size, 5 + 0.5 * r, 5, 5, 3);
    const rcn::Volume volume = rcn::Volume::Allocate(rcn_geometry_make(Size[0], Size[1], Size[2]), RCN_UINT8);
    std::copy(mask.begin(), mask.end(), static_cast<uint8_t*>(volume.Data()));
    rcn::RaterFile rater;
    rater.Name = std::string(1, static_cast<char>('A' + r));
    rater.Path = folder / (rater.Name + ".nrrd");
    rcn::WriteImage(rater.Path, volume.View(), rcn::Content::Mask);
    one.Raters.push_back(rater);
  }
  return one;
}

void LoadsAndAnswers()
{
  const Folder folder;
  rcn::Workspace workspace;
  CHECK_THROWS(workspace.Agree(false), RCN_EINVALID, "No case");
  workspace.LoadCase(MakeCase(folder));
  CHECK(workspace.RaterNames() == (std::vector<std::string>{ "A", "B", "C" }) && workspace.Remarks().empty());
  const rcn::AgreementReport report = workspace.Agree(true);
  CHECK(report.HasSurfaces && report.Figures->present_count == 3 && report.Figures->mean_dice > 0.7);
  CHECK(report.Figures->pair[1].hausdorff95_mm > 0 && !report.Regions.empty());
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  const rcn::FusionReport fused = workspace.Fuse(options);
  CHECK(fused.MapContent == rcn::Content::Levels);
  std::vector<float> votes(static_cast<size_t>(Size[0] * Size[1] * Size[2]));
  for (int r = 0; r < 3; ++r)
  {
    const std::vector<uint8_t> mask = Ball(Size, 5 + 0.5 * r, 5, 5, 3);
    for (size_t i = 0; i < votes.size(); ++i)
    {
      votes[i] += mask[i];
    }
  }
  CHECK(std::equal(votes.begin(), votes.end(), static_cast<const float*>(fused.Map.Data())));
  const rcn::JsonHandle json(rcn::AgreementJson(report, workspace, 10));
  CHECK(json_object_size(json_object_get(json.get(), "raters")) == 3);
}

/// Masks that are in memory give the same votes as the same masks from files.
void TakesMasksFromMemory()
{
  const Folder folder;
  const rcn::Case one = MakeCase(folder);
  rcn::Workspace files, memory;
  files.LoadCase(one);
  std::vector<rcn::RaterMask> masks;
  for (const rcn::RaterFile& rater : one.Raters)
  {
    masks.push_back({ rater.Name, rcn::ReadImage(rater.Path), {}, 0 });
  }
  const rcn::Volume image = rcn::Volume::Allocate(masks[0].Mask.Geometry(), RCN_FLOAT32);
  memory.LoadCase(rcn::CaseOf("c", { image }, "CT", masks));
  CHECK(memory.RaterNames() == files.RaterNames() && memory.HasImage() && memory.Image().Data() == image.Data());
  CHECK(memory.Agree(true).Figures->mean_dice == files.Agree(true).Figures->mean_dice);
  CHECK(memory.Agree(true).Figures->pair[1].hausdorff95_mm == files.Agree(true).Figures->pair[1].hausdorff95_mm);

  std::vector<rcn::RaterMask> bad = masks;
  bad[1].Name = "A";
  CHECK_THROWS(memory.LoadCase(rcn::CaseOf("c", { image }, "CT", bad)), RCN_EINVALID, "A is named twice");
  bad = masks;
  bad[1].Channel = 1;
  CHECK_THROWS(memory.LoadCase(rcn::CaseOf("c", { image }, "CT", bad)), RCN_EINVALID, "B has no component number 2");
  bad = masks;
  bad[2].Values = { 7 };
  CHECK_THROWS(memory.LoadCase(rcn::CaseOf("c", { image }, "CT", bad)), RCN_EDATA, "label value 7 does not occur");
  bad = masks;
  bad[0].Mask = rcn::Volume::Allocate(rcn_geometry_make(3, 3, 3), RCN_UINT8);
  std::fill_n(static_cast<uint8_t*>(bad[0].Mask.Data()), 27, uint8_t(1));
  CHECK_THROWS(memory.LoadCase(rcn::CaseOf("c", { image }, "CT", bad)), RCN_EGEOMETRY, "A has another size than CT");
  CHECK_THROWS(memory.LoadCase(rcn::CaseOf("c", { image }, "CT", {})), RCN_EINVALID, "No raters were given");
  CHECK_THROWS(memory.LoadCase(rcn::CaseOf("c", { image }, "CT", masks), { "A", "B" }), RCN_EINVALID, "not among");
  CHECK(memory.RaterNames().size() == 3);
  std::fill_n(static_cast<uint8_t*>(masks[1].Mask.Data()), Size[0] * Size[1] * Size[2], uint8_t(0));
  memory.LoadCase(rcn::CaseOf("c", { image }, "CT", masks), { "A", "B", "C", "D" });
  CHECK(memory.Remarks().size() == 1 && memory.Remarks()[0] == "Rater B marked nothing in CT.");
  CHECK(rcn_votes_raters(memory.Votes()) == 4);
}

/// A case in memory can be narrowed down like one of files, and a list of such cases divided like one.
void CasesInMemoryAreCases()
{
  const Folder folder;
  const rcn::Case files = MakeCase(folder);
  std::vector<rcn::RaterMask> masks;
  for (const rcn::RaterFile& rater : files.Raters)
  {
    masks.push_back({ rater.Name, rcn::ReadImage(rater.Path), {}, 0 });
  }
  const rcn::Volume image = rcn::Volume::Allocate(masks[0].Mask.Geometry(), RCN_FLOAT32);
  const rcn::Case whole = rcn::CaseOf("c", { image }, "CT", masks);
  rcn::Workspace workspace;
  CHECK(rcn::ImagesOf(workspace.Context(), whole).size() == 1);
  CHECK(rcn::ImagesOf(workspace.Context(), whole)[0].Data() == image.Data());
  rcn::Case part = whole;
  part.Images.clear();
  part.Raters.erase(part.Raters.begin());
  workspace.LoadCase(part, { "A", "B", "C" });
  CHECK(!workspace.HasImage() && rcn_votes_present(workspace.Votes()) == 6);
  CHECK(rcn::ImagesOf(workspace.Context(), part).empty());
  part.Raters[0].Name = "D";
  CHECK_THROWS(workspace.LoadCase(part), RCN_EINVALID, "D has no mask");

  // Two images of one name are two images; a patient is one wherever the voxels are.
  rcn::DataList list;
  list.Path = "the scene";
  list.Cases = { whole, whole };
  list.Cases[0].Split = "training";
  list.Cases[1].Split = "test";
  rcn::CheckSplits(list);
  list.Cases[0].Patient = list.Cases[1].Patient = "P";
  CHECK_THROWS(rcn::CheckSplits(list), RCN_EINVALID, "the scene: the patient P is in training");
}

void MissingRatersHaveSlots()
{
  const Folder folder;
  rcn::Case one = MakeCase(folder);
  one.Raters.erase(one.Raters.begin() + 1);
  rcn::Workspace workspace;
  workspace.LoadCase(one, { "A", "B", "C", "D" });
  CHECK(rcn_votes_raters(workspace.Votes()) == 4 && rcn_votes_present(workspace.Votes()) == 5);
  CHECK_THROWS(workspace.LoadCase(one, { "A", "B" }), RCN_EINVALID, "not among");
}

/// Whatever goes wrong, the case that was loaded stays.
void FailureKeepsTheOldCase()
{
  const Folder folder;
  const rcn::Case good = MakeCase(folder);
  rcn::Workspace workspace;
  workspace.LoadCase(good);
  const rcn_votes* votes = workspace.Votes();
  const double dice = workspace.Agree(false).Figures->mean_dice;
  rcn::Case bad = good;
  bad.Raters[2].Path = folder / "nowhere.nrrd";
  CHECK_THROWS(workspace.LoadCase(bad), RCN_EIO, "nowhere.nrrd");
  bad = good;
  bad.Raters[2].Values = { 7 };
  CHECK_THROWS(workspace.LoadCase(bad), RCN_EDATA, "does not occur");
  bad = good;
  bad.Raters[2].Name = "A";
  CHECK_THROWS(workspace.LoadCase(bad), RCN_EINVALID, "twice");
  bad = good;
  bad.Raters.clear();
  CHECK_THROWS(workspace.LoadCase(bad), RCN_EINVALID, "No raters were given");
  const rcn::Volume other = rcn::Volume::Allocate(rcn_geometry_make(3, 3, 3), RCN_UINT8);
  std::fill_n(static_cast<uint8_t*>(other.Data()), 27, uint8_t(1));
  rcn::WriteImage(folder / "other.nrrd", other.View(), rcn::Content::Mask);
  bad = good;
  bad.Images = { folder / "other.nrrd" };
  CHECK_THROWS(workspace.LoadCase(bad), RCN_EGEOMETRY, "another size");
  CHECK(workspace.Votes() == votes && workspace.RaterNames().size() == 3 && !workspace.HasImage());
  CHECK(workspace.Agree(false).Figures->mean_dice == dice);
}

/// Canceling at any report is RCN_ECANCELLED and leaves the workspace usable.
void CancelAnywhere()
{
  const Folder folder;
  const rcn::Case one = MakeCase(folder);
  rcn::WorkspaceOptions options;
  options.Threads = 2;
  rcn::Workspace workspace(options);
  workspace.LoadCase(one);
  const rcn_votes* votes = workspace.Votes();
  rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
  fusion.method = RCN_STAPLE;
  int reached = 0;
  for (int countdown = 0; countdown < 1000; ++countdown)
  {
    int left = countdown;
    workspace.SetProgress([&](double fraction, const char* stage) {
      CHECK(fraction >= 0 && fraction <= 1 && stage && *stage);
      return left-- == 0;
    });
    try
    {
      workspace.LoadCase(one);
      workspace.Agree(true);
      workspace.Fuse(fusion);
      break;
    }
    catch (const rcn::Error& error)
    {
      CHECK(error.Status() == RCN_ECANCELLED && std::string(error.what()).rfind("Canceled", 0) == 0);
      ++reached;
    }
  }
  CHECK(reached > 5 && reached < 1000);
  CHECK(votes != nullptr);
  workspace.SetProgress(nullptr);
  CHECK(workspace.Agree(true).Figures->present_count == 3);
}

/// A report is whole when the workspace has another case, and when it is gone.
void ReportsOutliveTheNextCase()
{
  const Folder folder;
  const rcn::Case one = MakeCase(folder);
  rcn::AgreementReport report;
  {
    rcn::Workspace workspace;
    workspace.LoadCase(one);
    report = workspace.Agree(false);
    rcn::Case fewer = one;
    fewer.Raters.pop_back();
    workspace.LoadCase(fewer);
    CHECK(report.Figures->raters == 3 && workspace.Agree(false).Figures->raters == 2);
  }
  CHECK(report.Figures->raters == 3);
  report = {}; // released after its workspace
}

void ImagesThatCannotBeUsed()
{
  const Folder folder;
  rcn::Case one = MakeCase(folder);
  const rcn::Volume image = rcn::Volume::Allocate(rcn_geometry_make(Size[0], Size[1], Size[2]), RCN_FLOAT32);
  float* voxels = static_cast<float*>(image.Data());
  std::fill_n(voxels, Size[0] * Size[1] * Size[2], 0.0F);
  one.Images = { folder / "image.nrrd" };
  rcn::WriteImage(one.Images[0], image.View(), rcn::Content::Probability);
  rcn::Workspace workspace;
  CHECK_THROWS(workspace.LoadCase(one), RCN_EDATA, "zero everywhere");
  voxels[1 + Size[0] * (2 + Size[1] * 3)] = NAN;
  rcn::WriteImage(one.Images[0], image.View(), rcn::Content::Probability);
  CHECK_THROWS(workspace.LoadCase(one), RCN_EDATA, "(1, 2, 3)");
  voxels[1 + Size[0] * (2 + Size[1] * 3)] = 1;
  rcn::WriteImage(one.Images[0], image.View(), rcn::Content::Probability);
  workspace.LoadCase(one);
  CHECK(workspace.HasImage());
}

// ---- several structures ----------------------------------------------------------------------------

/// A label map of three structures side by side along x, in which a rater sets some voxels to other values.
rcn::Volume LabelMap(const std::vector<std::pair<int64_t, uint8_t>>& changes)
{
  const rcn::Volume volume = rcn::Volume::Allocate(rcn_geometry_make(Size[0], Size[1], Size[2]), RCN_UINT8);
  auto* const labels = static_cast<uint8_t*>(volume.Data());
  for (int64_t i = 0; i < Size[0] * Size[1] * Size[2]; ++i)
  {
    const int64_t x = i % Size[0];
    labels[i] = static_cast<uint8_t>(x < 3 ? 0 : x < 6 ? 1 : x < 9 ? 2 : 3);
  }
  for (const auto& change : changes)
  {
    labels[change.first] = change.second;
  }
  return volume;
}

/// 1 where the label map has one of the values.
rcn::Volume MaskOf(const rcn::Volume& labels, const std::vector<uint8_t>& values)
{
  const rcn::Volume mask = rcn::Volume::Allocate(labels.Geometry(), RCN_UINT8);
  const auto* const from = static_cast<const uint8_t*>(labels.Data());
  std::transform(from, from + Size[0] * Size[1] * Size[2], static_cast<uint8_t*>(mask.Data()),
    [&](uint8_t label) { return std::find(values.begin(), values.end(), label) == values.end() ? uint8_t(0) : uint8_t(1); });
  return mask;
}

const std::vector<rcn::Structure> LeftRight = { { "left kidney", { 1 } }, { "Nebenhöhle", { 2, 3 } } };

/// Ada and Ben, who differ in two voxels; as files with a label map each.
std::vector<rcn::Volume> TwoMaps()
{
  return { LabelMap({}), LabelMap({ { 3, 2 }, { 6, 0 } }) };
}

rcn::Case CaseOfMaps(const Folder& folder, const std::vector<rcn::Volume>& maps)
{
  rcn::Case one;
  one.Id = "c";
  one.Structures = LeftRight;
  for (size_t r = 0; r < maps.size(); ++r)
  {
    const std::string name = r ? "Ben" : "Ada";
    one.Raters.push_back({ name, folder / (name + ".nrrd"), {}, -1 });
    rcn::WriteImage(one.Raters.back().Path, maps[r].View(), rcn::Content::Levels);
  }
  return one;
}

/// Each structure of a case is the case of that structure alone, from files and from memory, together and apart.
void StructuresAreCases()
{
  const Folder folder;
  const std::vector<rcn::Volume> maps = TwoMaps();
  const rcn::Case files = CaseOfMaps(folder, maps);
  rcn::Case apart = files; // Ben has a file for each structure
  for (size_t c = 0; c < 2; ++c)
  {
    const std::string path = folder / ("ben_" + std::to_string(c) + ".nrrd");
    rcn::WriteImage(
      path, MaskOf(maps[1], c ? std::vector<uint8_t>{ 2, 3 } : std::vector<uint8_t>{ 1 }).View(), rcn::Content::Mask);
    apart.Raters[1].Structures.push_back({ path, {}, -1 });
  }
  apart.Raters[1].Path = apart.Raters[1].Structures[0].Path;
  const rcn::Case memory = rcn::CaseOf("c", {}, "scene",
    { { "Ada", maps[0], {}, 0 },
      { "Ben", {}, {}, 0, { { "left kidney", maps[1], { 1 }, 0 }, { "Nebenhöhle", maps[1], { 2, 3 }, 0 } } } },
    LeftRight);
  for (const rcn::Case& one : { files, apart, memory })
  {
    rcn::Workspace workspace;
    workspace.LoadCase(one);
    CHECK(workspace.Remarks().empty() && workspace.HasStructures() && workspace.Structures()[1].Name == "Nebenhöhle");
    CHECK(workspace.LabeledVotes() == workspace.Votes() && rcn_votes_structures(workspace.Votes()) == 2);
    CHECK(workspace.SelectedStructure() == 0 && workspace.Agree(false).Figures->disputed_voxels == 1); // anything marked
    for (int c = 1; c <= 2; ++c)
    {
      workspace.SelectStructure(c);
      CHECK(workspace.SelectedStructure() == c && workspace.Votes() != workspace.LabeledVotes());
      rcn::Workspace alone;
      alone.LoadCase(rcn::OneStructure(one, c));
      CHECK(!alone.HasStructures() && !alone.LabeledVotes() && alone.Structures().size() == 1);
      const rcn::AgreementReport mine = workspace.Agree(true), theirs = alone.Agree(true);
      CHECK(mine.Figures->mean_dice == theirs.Figures->mean_dice && mine.Figures->mean_dice < 1);
      CHECK(mine.Figures->union_voxels == theirs.Figures->union_voxels && mine.Figures->whole.fleiss_kappa > 0.9);
      CHECK(mine.Figures->disputed_voxels == (c == 1 ? 1 : 2) && mine.Regions.size() == theirs.Regions.size());
      rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
      const rcn::FusionReport fused = workspace.Fuse(options), other = alone.Fuse(options);
      const auto* const map = static_cast<const float*>(fused.Map.Data());
      CHECK(std::equal(map, map + Size[0] * Size[1] * Size[2], static_cast<const float*>(other.Map.Data())));
    }
    CHECK_THROWS(workspace.SelectStructure(3), RCN_EINVALID, "Structure number 3 does not exist");
    CHECK(workspace.SelectedStructure() == 2); // the one that was
    workspace.SelectStructure(0);
    CHECK(workspace.Votes() == workspace.LabeledVotes());
    workspace.SelectStructure(1);
    workspace.LoadCase(one);
    CHECK(workspace.SelectedStructure() == 0);
  }
}

/// All structures in one map: labels with their values, or a component for each.
void FusesStructuresTogether()
{
  const std::vector<rcn::Volume> maps = TwoMaps();
  rcn::Workspace workspace;
  workspace.LoadCase(rcn::CaseOf("c", {}, "scene", { { "Ada", maps[0], {}, 0 }, { "Ben", maps[1], {}, 0 } }, LeftRight));
  CHECK(workspace.AgreeLabels().Figures.whole.fleiss_kappa > 0.98 && workspace.AgreeLabels().Kappa.size() == 4);
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  options.method = RCN_MEDIAN;
  rcn::FusionReport fused = workspace.FuseStructures(options);
  const auto* const labels = static_cast<const uint8_t*>(fused.Map.Data());
  CHECK(fused.Map.View().type == RCN_UINT8 && labels[0] == 0 && labels[4] == 1 && labels[9] == 2);
  CHECK(labels[3] == 1 && labels[6] == 2); // ties: the structure of the lower number, and a structure before the background
  CHECK(rcn::IsFusedFrom(fused.Map.Note(), { "Ben" }));
  options.tie = RCN_TIE_BACKGROUND;
  CHECK_THROWS(workspace.FuseStructures(options), RCN_EINVALID, "a tie goes to a structure");
  options.method = RCN_STAPLE;
  fused = workspace.FuseStructures(options);
  CHECK(fused.Labels.converged && fused.Confusion.size() == 2 * 9 && fused.Confusion[0] > 0.99);
  const rcn::JsonHandle json(rcn::FusionJson(fused, options, workspace));
  CHECK(json_array_size(json_object_get(json_object_get(json.get(), "confusion"), "Ben")) == 3);
  options.method = RCN_SOFT;
  fused = workspace.FuseStructures(options);
  const auto* const shares = static_cast<const float*>(fused.Map.Data());
  CHECK(fused.Map.View().components == 2 && fused.Each.size() == 2 && workspace.SelectedStructure() == 0);
  CHECK(shares[2 * 3] == 0.5F && shares[2 * 3 + 1] == 0.5F && shares[2 * 6] == 0 && shares[2 * 6 + 1] == 0.5F);
}

/// What is odd about labels is said, with values and voxels; what cannot be is refused.
void RemarksOnStructures()
{
  const Folder folder;
  rcn::Workspace workspace;
  rcn::Case one = CaseOfMaps(folder, { LabelMap({ { 3, 9 }, { 4, 7 }, { 5, 7 } }), MaskOf(LabelMap({}), { 1 }) });
  workspace.LoadCase(one);
  CHECK(workspace.Remarks().size() == 1);
  CHECK(workspace.Remarks()[0] ==
    "Label values that no structure has count as background: 7 and 9 (3 voxels) of Ada (" + one.Raters[0].Path + ").");
  CHECK(rcn_votes_marked(workspace.Votes(), 1) == 3 * Size[1] * Size[2]);

  one = CaseOfMaps(folder, { MaskOf(LabelMap({}), { 1 }), MaskOf(LabelMap({}), { 1 }) });
  workspace.LoadCase(one);
  CHECK(workspace.Remarks() == std::vector<std::string>{ "Nobody marked the structure Nebenhöhle." });

  // Raters who use other label values: a mistake where a person names files, no reason to leave out a case of many.
  one.Structures = { { "a", { 5 } }, { "b", { 6 } } };
  CHECK_THROWS(
    workspace.LoadCase(one), RCN_EDATA, "No label value of a structure occurs in " + one.Raters[0].Path + ", which has 1;");
  rcn::WorkspaceOptions options;
  options.AbsentLabelIsError = false;
  rcn::Workspace lenient(options);
  lenient.LoadCase(one);
  CHECK(lenient.Remarks().size() == 5 && lenient.Remarks()[0].find("Rater Ada marked nothing") == 0);

  one.Structures = LeftRight;
  one.Raters[0].Structures = { { one.Raters[0].Path, {}, -1 }, { one.Raters[1].Path, {}, -1 } };
  CHECK_THROWS(workspace.LoadCase(one), RCN_EDATA, "voxel (3, 0, 0) as left kidney and as Nebenhöhle");
  one.Structures[0].Name = "structure 2"; // as the core calls the other one
  one.Structures[1].Name = "structure 1";
  CHECK_THROWS(workspace.LoadCase(one), RCN_EDATA, "as structure 2 and as structure 1;");
  std::swap(one.Structures[0].Name, one.Structures[1].Name); // and as it calls this one
  CHECK_THROWS(workspace.LoadCase(one), RCN_EDATA, "as structure 1 and as structure 2;");
  one.Raters[0].Structures.clear();
  one.Raters[0].Values = { 1 };
  CHECK_THROWS(workspace.LoadCase(one), RCN_EINVALID, "uses their label values");
  one.Raters[0].Values.clear();
  one.Structures = { { "a", { 1 } }, { "b", { 1 } } };
  CHECK_THROWS(workspace.LoadCase(one), RCN_EINVALID, "c: the label value 1 is given twice");
}

/// Segments of structures: one that a rater does not have was not marked, and nnU-Net's "ignore" is no answer.
void StructuresNotMarkedAndNotAssessed()
{
  const std::vector<rcn::Volume> maps = TwoMaps();
  rcn::Case one = rcn::CaseOf(
    "c", {}, "scene", { { "Ada", maps[0], {}, 0 }, { "Ben", {}, {}, 0, { { "left kidney", maps[1], { 1 }, 0 } } } }, LeftRight);
  rcn::Workspace workspace;
  workspace.LoadCase(one);
  CHECK(rcn_votes_marked(workspace.Votes(), 1) == 3 * Size[1] * Size[2] - 1);
  workspace.LoadCase(rcn::OneStructure(one, 2));
  CHECK(rcn_votes_marked(workspace.Votes(), 1) == 0 && rcn_votes_present(workspace.Votes()) == 3);
  CHECK(workspace.Remarks() == std::vector<std::string>{ "Rater Ben marked nothing in scene." });

  one =
    rcn::CaseOf("c", {}, "scene", { { "Ada", maps[0], {}, 0 }, { "Ben", maps[1], {}, 0 } }, { { "a", { 1 } }, { "b", { 2 } } });
  one.Unanswered = 3;
  workspace.LoadCase(one);
  CHECK(workspace.Remarks().empty() && rcn_votes_at(workspace.Votes(), 9)->answered == 0);
  CHECK(rcn_votes_at(workspace.Votes(), 0)->answered == 3);
}

} // namespace

int main()
{
  rcn::SetLibrariesQuiet(true);
  RUN(LoadsAndAnswers);
  RUN(TakesMasksFromMemory);
  RUN(CasesInMemoryAreCases);
  RUN(MissingRatersHaveSlots);
  RUN(FailureKeepsTheOldCase);
  RUN(CancelAnywhere);
  RUN(ReportsOutliveTheNextCase);
  RUN(ImagesThatCannotBeUsed);
  RUN(StructuresAreCases);
  RUN(FusesStructuresTogether);
  RUN(RemarksOnStructures);
  RUN(StructuresNotMarkedAndNotAssessed);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
