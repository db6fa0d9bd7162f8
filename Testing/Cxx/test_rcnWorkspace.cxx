// SPDX-License-Identifier: Apache-2.0
#include "rcnWorkspace.h"

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
  CHECK_THROWS(memory.LoadCase(rcn::CaseOf("c", { image }, "CT", {})), RCN_EINVALID, "no rater");
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
  CHECK_THROWS(workspace.LoadCase(bad), RCN_EINVALID, "no rater");
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
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
