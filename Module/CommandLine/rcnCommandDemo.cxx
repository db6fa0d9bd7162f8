/// rater-consensus demo: the whole story on a built-in phantom.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "rcn/rcn.h"
#include "rcnCommands.h"
#include "rcnEvaluation.h"
#include "rcnFigure.h"

namespace rcn
{

namespace
{

constexpr int Raters = 5;
const char* const RaterNames[Raters] = { "Ada", "Ben", "Cleo", "Dan", "Eva" };

/// Writes image, masks and a data list; returns the case.
Case WritePhantom(const std::filesystem::path& folder, rcn_context* context)
{
  rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
  options.size[0] = 150;
  options.size[1] = 120;
  options.size[2] = 24;
  options.raters = Raters;
  options.lesions = 5;
  options.seed = 7;
  rcn_geometry geometry = rcn_geometry_make(options.size[0], options.size[1], options.size[2]);
  geometry.spacing[0] = geometry.spacing[1] = 0.8;
  geometry.spacing[2] = 2.5;
  const int64_t voxels = rcn_geometry_voxels(&geometry);
  const Volume image = Volume::Allocate(geometry, RCN_FLOAT32);
  const Volume masks = Volume::Allocate(geometry, RCN_UINT8, Raters);
  Check(rcn_phantom_make(static_cast<float*>(image.Data()), static_cast<uint8_t*>(masks.Data()), context, &options), context);

  Case one;
  one.Id = "phantom";
  one.Images.push_back((folder / "phantom.nrrd").string());
  WriteImage(one.Images.front(), image.View(), Content::Probability);
  const JsonHandle list(json_object());
  json_t* entry = json_object();
  json_t* labels = json_object();
  json_t* names = json_array();
  for (int r = 0; r < Raters; ++r)
  {
    RaterFile rater;
    rater.Name = RaterNames[r];
    const std::string file = std::string("phantom_") + RaterNames[r] + ".nrrd";
    rater.Path = (folder / file).string();
    const rcn_image mask = { static_cast<uint8_t*>(masks.Data()) + r * voxels, RCN_UINT8, 1, geometry };
    WriteImage(rater.Path, mask, Content::Mask);
    one.Raters.push_back(rater);
    json_array_append_new(names, json_string(RaterNames[r]));
    json_object_set_new(labels, RaterNames[r], json_string(file.c_str()));
  }
  json_object_set_new(entry, "id", json_string("phantom"));
  json_object_set_new(entry, "image", json_string("phantom.nrrd"));
  json_object_set_new(entry, "label", labels);
  json_object_set_new(list.get(), "raters", names);
  json_object_set_new(list.get(), "training", json_pack("[o]", entry));
  WriteText((folder / "dataset.json").string(), JsonText(list.get()));
  return one;
}

/// The slice where most voxels are disputed: the one a person would want to see.
int64_t MostDisputedSlice(const std::vector<rcn_dispute>& regions)
{
  return regions.empty() ? 0 : regions.front().at[2];
}

/// Panels side by side: image, each rater, their consensus, and the eight fused maps.
class Montage
{
public:
  Montage(const Workspace& workspace, int64_t slice)
    : Workspace_(workspace), Slice_(slice), Geometry_(*rcn_votes_geometry(workspace.Votes())),
      Figure_(4 * Step + 24, 4 * (PanelHeight + 30) + 122, "Consensus of five raters",
        "One slice of a phantom: the image, the outlines of five raters, how many of them marked each voxel, eight ways "
        "to fuse their masks, and where they disagree")
  {
    this->Figure_.Text(16, 28, "Five raters outline the same lesions, and differ", 18, Anchor::Start, "#111", true);
  }

  std::vector<uint8_t> Gray() const
  {
    std::vector<uint8_t> rgb(static_cast<size_t>(3 * this->Geometry_.size[0] * this->Geometry_.size[1]));
    Check(rcn_picture_gray(rgb.data(), this->Workspace_.Context(), &this->Workspace_.Image().View(), this->Slice_),
      this->Workspace_.Context());
    return rgb;
  }

  void AddPanel(const std::string& caption, const std::vector<uint8_t>& rgb, const std::string& color = "#222")
  {
    const double x = 16 + Step * (this->Count_ % 4), y = 44 + (PanelHeight + 30) * (this->Count_ / 4);
    this->Figure_.Picture(x, y, PanelWidth, PanelHeight, rgb, this->Geometry_.size[0], this->Geometry_.size[1]);
    this->Figure_.Text(x, y + PanelHeight + 17, caption, 12.5, Anchor::Start, color);
    ++this->Count_;
  }

  void AddMap(const std::string& caption, const float* map, double opacity = 0.75)
  {
    std::vector<uint8_t> rgb = this->Gray();
    Check(rcn_picture_overlay(rgb.data(), this->Workspace_.Context(), map, &this->Geometry_, this->Slice_, 0.02, opacity),
      this->Workspace_.Context());
    this->AddPanel(caption, rgb);
  }

  void AddRaters()
  {
    std::vector<uint8_t> all = this->Gray();
    for (int r = 0; r < static_cast<int>(this->Workspace_.RaterNames().size()); ++r)
    {
      uint8_t color[3];
      rcn_color_rater(color, r);
      std::vector<uint8_t> rgb = this->Gray();
      for (std::vector<uint8_t>* picture : { &rgb, &all })
      {
        Check(rcn_picture_contour(picture->data(), this->Workspace_.Context(), this->Workspace_.Votes(), r, this->Slice_, color),
          this->Workspace_.Context());
      }
      this->AddPanel(this->Workspace_.RaterNames()[r], rgb);
    }
    this->AddPanel("all outlines", all);
  }

  void AddLegend(const rcn_agreement& figures)
  {
    const double y = 44 + 4 * (PanelHeight + 30) + 14;
    double x = 16;
    this->Figure_.Text(x, y, "Marked by", 12.5, Anchor::Start, "#222", true);
    x += 84;
    for (int level = 1; level <= figures.present_count; ++level)
    {
      uint8_t color[3];
      rcn_color_share(color, static_cast<double>(level) / figures.present_count);
      this->Figure_.Rectangle(x, y - 12, 18, 15, HexColor(color), "#666");
      this->Figure_.Text(x + 24, y, std::to_string(level) + " of " + std::to_string(figures.present_count) + ": " +
          Fixed(static_cast<double>(figures.level_voxels[level]) * figures.voxel_ml, 1) + " mL", 12.5);
      x += 130;
    }
    this->Figure_.Text(16, y + 26, "Mean Dice of two raters " + Fixed(figures.mean_dice, 2) + ", Fleiss' κ " +
        Fixed(figures.whole.fleiss_kappa, 2) + " (" + rcn_kappa_words(figures.whole.fleiss_kappa) + "); disputed: " +
        Fixed(100.0 * static_cast<double>(figures.disputed_voxels) / static_cast<double>(figures.union_voxels), 0) +
        " % of what anybody marked.", 12.5);
    this->Figure_.Text(16, y + 48, "Synthetic data. For research, not for clinical use.", 11, Anchor::Start, "#666");
  }

  void Save(const std::string& path) const { this->Figure_.Save(path); }

private:
  static constexpr double PanelWidth = 200, PanelHeight = 160, Step = 212;
  const Workspace& Workspace_;
  int64_t Slice_;
  rcn_geometry Geometry_;
  Figure Figure_;
  int Count_ = 0;
};

/// What a fused map promises about a rater it has not seen: four raters of twenty small cases are fused,
/// the fifth judges. The share who marked keeps its promise; STAPLE, which looks for one hidden truth, is
/// surer than raters are.
std::string JudgeFusions(const std::filesystem::path& folder, rcn_context* context)
{
  constexpr int cases = 20, seen = Raters - 1;
  const std::vector<std::string> judge = { RaterNames[seen] };
  EvaluationOptions options;
  options.Region.region = RCN_REGION_BOX;
  const rcn_method methods[] = { RCN_STAPLE, RCN_SOFT_GAUSSIAN };
  const char* const titles[] = { "STAPLE of four raters, judged by a fifth", "Share of four raters (smoothed), judged by a fifth" };
  Table table({ "Fused from four raters", "MR-ECE (%)", "95 % interval", "Brier", "AUC" });
  Evaluation evaluations[] = { { context, judge, options }, { context, judge, options } };
  for (int seed = 1; seed <= cases; ++seed)
  {
    rcn_phantom_options phantom = RCN_PHANTOM_OPTIONS_INIT;
    phantom.seed = static_cast<uint64_t>(seed);
    const rcn_geometry geometry = rcn_geometry_make(phantom.size[0], phantom.size[1], phantom.size[2]);
    const int64_t voxels = rcn_geometry_voxels(&geometry);
    const Volume image = Volume::Allocate(geometry, RCN_FLOAT32), map = Volume::Allocate(geometry, RCN_FLOAT32);
    const Volume masks = Volume::Allocate(geometry, RCN_UINT8, Raters);
    uint8_t* bytes = static_cast<uint8_t*>(masks.Data());
    Check(rcn_phantom_make(static_cast<float*>(image.Data()), bytes, context, &phantom), context);
    rcn_mask views[Raters] = {};
    for (int r = 0; r < Raters; ++r)
    {
      views[r].image = rcn_image{ bytes + r * voxels, RCN_UINT8, 1, geometry };
    }
    rcn_votes* votes = nullptr;
    Check(rcn_votes_from_masks(&votes, context, &views[seen], 1), context);
    const std::unique_ptr<rcn_votes, VotesDeleter> keep(votes);
    for (int m = 0; m < 2; ++m)
    {
      rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
      fusion.method = methods[m];
      Check(rcn_fuse_masks(static_cast<float*>(map.Data()), nullptr, context, views, seen, &fusion), context);
      evaluations[m].PrepareCase(votes, std::to_string(seed), map, "The fused map");
      evaluations[m].CommitCase();
    }
  }
  for (int m = 0; m < 2; ++m)
  {
    const EvaluationReport report = evaluations[m].Report();
    const rcn_interval& interval = report.Interval[RCN_MR_ECE];
    table.Add({ rcn_method_name(methods[m]), Fixed(100 * report.Figures[RCN_MR_ECE], 2),
      Fixed(100 * interval.low, 2) + " to " + Fixed(100 * interval.high, 2), Fixed(report.Figures[RCN_BRIER], 4),
      Fixed(report.Auc.reference, 4) });
    const Figure figure = ReliabilityDiagram(report, titles[m]);
    const std::string name = std::string("reliability_") + rcn_method_name(methods[m]);
    figure.Save((folder / (name + ".svg")).string());
    if (Figure::CheckPath("x.png").empty())
    {
      figure.Save((folder / (name + ".png")).string());
    }
  }
  return "Does a fused map mean what it says? Twenty small cases, judged by a rater it has not seen\n" + table.Text();
}

int RunDemo(const Arguments& arguments)
{
  Terminal terminal(arguments);
  const std::filesystem::path folder = arguments.Get("-o", "rater-consensus-demo");
  MakeFolder(folder.string());
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  workspace.LoadCase(WritePhantom(folder, workspace.Context()));

  const AgreementReport agreement = workspace.Agree(true);
  const std::string text = AgreementText(agreement, workspace, "Phantom", 5);
  WriteText((folder / "agreement.txt").string(), text);
  {
    const JsonHandle json(AgreementJson(agreement, workspace, 20));
    WriteText((folder / "agreement.json").string(), JsonText(json.get()));
  }
  Montage montage(workspace, MostDisputedSlice(agreement.Regions));
  montage.AddPanel("image", montage.Gray());
  montage.AddRaters();
  static const char* const captions[] = { "orc: how many marked it", "random: one rater, drawn",
    "median: at least half", "soft: share who marked", "soft-gaussian: smoothed", "staple: hidden truth",
    "simple: best raters' majority", "svls: smoothed labels" };
  for (int method = RCN_ORC; method <= RCN_SVLS; ++method)
  {
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    options.method = static_cast<rcn_method>(method);
    const FusionReport report = workspace.Fuse(options);
    const std::string name = rcn_method_name(options.method);
    WriteImage((folder / ("phantom_" + name + ".nrrd")).string(), report.Map.View(), report.MapContent);
    float* map = static_cast<float*>(report.Map.Data());
    if (method == RCN_ORC) // as a share, for its colour
    {
      const int64_t voxels = rcn_geometry_voxels(&report.Map.Geometry());
      for (int64_t i = 0; i < voxels; ++i)
      {
        map[i] /= Raters;
      }
    }
    montage.AddMap(captions[method], map);
  }
  montage.AddMap("entropy: where they disagree", static_cast<const float*>(workspace.EntropyMap().Data()));
  montage.AddLegend(*agreement.Figures);
  montage.Save((folder / "consensus.svg").string());
  if (Figure::CheckPath("consensus.png").empty())
  {
    montage.Save((folder / "consensus.png").string());
  }
  const std::string judged = JudgeFusions(folder, workspace.Context());
  WriteText((folder / "calibration.txt").string(), judged);
  WriteText("-", text + "\n" + judged + "\nWritten to " + folder.string() + ":\n"
    "  phantom.nrrd, phantom_<rater>.nrrd, dataset.json   the image, five raters' masks and their data list\n"
    "  agreement.txt, agreement.json                      the table above, for people and for machines\n"
    "  phantom_<method>.nrrd                              the masks fused in eight ways\n"
    "  consensus.svg, consensus.png                       all of it in one picture: look at this one first\n"
    "  reliability_<method>.svg, .png, calibration.txt    whether a fused map means what it says\n");
  return 0;
}

} // namespace

Command DemoCommand()
{
  return { "demo", "the whole story on built-in data", { "[-o DIR]" },
    "Makes a phantom with five raters who disagree, compares them, fuses their masks in all eight ways, draws the "
    "result, and checks whether fused maps keep their promise to a rater they have not seen. Everything lands in a folder to look at.",
    { { "-o", "DIR", "where to put it (rater-consensus-demo)" }, { "--threads", "N", "how many threads (all cores)" },
      { "--quiet", "", "no progress" } },
    RunDemo };
}

} // namespace rcn
