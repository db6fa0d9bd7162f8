// SPDX-License-Identifier: Apache-2.0
/// rater-consensus demo: the whole story on a built-in phantom.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "rcn/rcn.h"
#include "rcnCommands.h"
#include "rcnJudge.h"
#include "rcnPhantom.h"
#include "rcnReportPage.h"
#include "rcnSliceFigure.h"
#ifdef RCN_HAVE_NETWORKS
#include "rcnStudy.h"
#endif

namespace rcn
{

namespace
{

/// Writes the image and the masks of a phantom into a folder; returns the case.
Case WriteCase(const std::filesystem::path& folder, const Phantom& phantom, const std::string& id)
{
  Case one;
  one.Id = id;
  one.Images.push_back((folder / (id + ".nrrd")).string());
  WriteImage(one.Images.front(), phantom.Image.View(), Content::Probability);
  for (const RaterMask& mask : phantom.Raters)
  {
    RaterFile rater;
    rater.Name = mask.Name;
    rater.Path = (folder / (id + "_" + mask.Name + ".nrrd")).string();
    WriteImage(rater.Path, mask.Mask.View(), phantom.Structures.empty() ? Content::Mask : Content::Levels);
    one.Raters.push_back(rater);
  }
  return one;
}

/// A case of a data list, files by their names.
json_t* CaseJson(const Case& one)
{
  json_t* labels = json_object();
  for (const RaterFile& rater : one.Raters)
  {
    json_object_set_new(labels, rater.Name.c_str(), JsonString(std::filesystem::path(rater.Path).filename().string()));
  }
  json_t* entry = json_object();
  json_object_set_new(entry, "id", JsonString(one.Id));
  json_object_set_new(entry, "image", JsonString(std::filesystem::path(one.Images.front()).filename().string()));
  json_object_set_new(entry, "label", labels);
  return entry;
}

JsonHandle EmptyList()
{
  JsonHandle list(json_object());
  json_object_set_new(list.get(), "raters", JsonStrings(PhantomRaters()));
  return list;
}

/// Writes image, masks and a data list; returns the case.
Case WritePhantom(const std::filesystem::path& folder, rcn_context* context)
{
  const Case one = WriteCase(folder, MakeExample(context), "phantom");
  const JsonHandle list = EmptyList();
  json_object_set_new(list.get(), "training", json_pack("[o]", CaseJson(one)));
  WriteText((folder / "dataset.json").string(), JsonText(list.get()));
  return one;
}

/// Small cases of the same raters, to learn from, to validate and to test, with one structure or with three; returns their data
/// list.
std::string WriteLearningCases(const std::filesystem::path& folder, rcn_context* context, bool structures)
{
  const struct
  {
    const char* Name;
    uint64_t Count;
  } splits[] = { { "training", 40 }, { "validation", 10 }, { "test", 20 } };
  MakeFolder(folder.string());
  const JsonHandle list = EmptyList();
  if (structures)
  {
    json_t* names = json_object();
    for (const Structure& structure : PhantomStructures())
    {
      json_object_set_new(names, structure.Name.c_str(), json_integer(structure.Values.front()));
    }
    json_object_set_new(list.get(), "structures", names);
  }
  uint64_t seed = 1000;
  for (const auto& split : splits)
  {
    json_t* cases = json_array();
    for (uint64_t i = 0; i < split.Count; ++i)
    {
      rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
      options.size[0] = options.size[1] = 96;
      options.lesions = 3;
      options.seed = ++seed;
      const rcn_geometry geometry = rcn_geometry_make(options.size[0], options.size[1], 1);
      const Phantom phantom =
        structures ? MakeStructurePhantom(context, options, geometry) : MakePhantom(context, options, geometry);
      json_array_append_new(cases, CaseJson(WriteCase(folder, phantom, split.Name + std::to_string(i + 1))));
    }
    json_object_set_new(list.get(), split.Name, cases);
  }
  const std::string path = (folder / "dataset.json").string();
  WriteText(path, JsonText(list.get()));
  return path;
}

/// As SVG, and as PNG where this build can.
void SaveFigure(const Figure& figure, const std::filesystem::path& folder, const std::string& name)
{
  figure.Save((folder / (name + ".svg")).string());
  if (Figure::CheckPath("x.png").empty())
  {
    figure.Save((folder / (name + ".png")).string());
  }
}

void WriteDemoReport(ReportOptions& page, const Arguments& arguments, Terminal& terminal)
{
  page.Workspace = WorkspaceOptionsFrom(arguments);
  page.Command = arguments.CommandLine("rater-consensus demo");
  page.Progress = [&terminal](double fraction, const std::string& stage) { return terminal.Show(fraction, stage.c_str()); };
  WriteReport(page);
}

/// Panels side by side: image, each rater, their consensus, and the eight fused maps.
class Montage
{
public:
  Montage(const Workspace& workspace, int64_t slice)
    : Workspace_(workspace),
      View_(workspace, slice, false),
      Figure_(4 * Step + 24, 4 * (PanelHeight + 30) + 122, "Consensus of five raters",
        "One slice of a phantom: the image, the outlines of five raters, how many of them marked each voxel, eight ways "
        "to fuse their masks, and where they disagree")
  {
    this->Figure_.Text(16, 28, "Five raters outline the same lesions, and differ", 18, Anchor::Start, "#111", true);
  }

  /// The image with its caption; returns where more can be drawn over it.
  Place AddPanel(const std::string& caption)
  {
    const Place place = { 16 + Step * (this->Count_ % 4), 44 + (PanelHeight + 30) * (this->Count_ / 4), PanelWidth };
    this->View_.DrawPicture(this->Figure_, place);
    this->Figure_.Text(place.X, place.Y + PanelHeight + 17, caption, 12.5);
    ++this->Count_;
    return place;
  }

  void AddMap(const std::string& caption, const Volume& map)
  {
    this->View_.DrawProbability(this->Figure_, this->AddPanel(caption), this->View_.ReadoutMap(map, RCN_READOUT_EXPECTED));
  }

  void AddLevels(const std::string& caption) { this->View_.DrawLevels(this->Figure_, this->AddPanel(caption)); }

  void AddRaters()
  {
    const int count = static_cast<int>(this->Workspace_.RaterNames().size());
    for (int r = 0; r < count; ++r)
    {
      this->View_.DrawRater(this->Figure_, this->AddPanel(this->Workspace_.RaterNames()[static_cast<size_t>(r)]), r);
    }
    const Place all = this->AddPanel("all outlines");
    for (int r = 0; r < count; ++r)
    {
      this->View_.DrawRater(this->Figure_, all, r);
    }
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
      this->Figure_.Text(x + 24, y,
        std::to_string(level) + " of " + std::to_string(figures.present_count) + ": " +
          Fixed(static_cast<double>(figures.level_voxels[level]) * figures.voxel_ml, 1) + " mL",
        12.5);
      x += 130;
    }
    this->Figure_.Text(16, y + 26,
      "Mean Dice of two raters " + Fixed(figures.mean_dice, 2) + ", Fleiss' κ " + Fixed(figures.whole.fleiss_kappa, 2) + " (" +
        rcn_kappa_words(figures.whole.fleiss_kappa) + "); disputed: " +
        Fixed(100.0 * static_cast<double>(figures.disputed_voxels) / static_cast<double>(figures.union_voxels), 0) +
        " % of what anybody marked.",
      12.5);
    this->Figure_.Text(16, y + 48, "Synthetic data. For research, not for clinical use.", 11, Anchor::Start, "#666");
  }

  void Save(const std::filesystem::path& folder) const { SaveFigure(this->Figure_, folder, "consensus"); }

private:
  static constexpr double PanelWidth = 200, PanelHeight = 160, Step = 212;
  const Workspace& Workspace_;
  SliceFigure View_;
  Figure Figure_;
  int Count_ = 0;
};

/// How well a fused map is calibrated for a rater it has not seen: four raters of twenty small cases are
/// fused, the fifth judges. The share who marked is well calibrated; STAPLE, which looks for one hidden truth, is
/// surer than raters are.
std::string JudgeFusions(const std::filesystem::path& folder, rcn_context* context)
{
  constexpr int cases = 20;
  const int seen = static_cast<int>(PhantomRaters().size()) - 1;
  const std::vector<std::string> judge = { PhantomRaters().back() };
  EvaluationOptions options;
  const rcn_method methods[] = { RCN_STAPLE, RCN_SOFT_GAUSSIAN };
  const char* const titles[] = { "STAPLE of four raters, compared with a fifth",
    "Share of four raters (smoothed), compared with a fifth" };
  Table table({ "Fused from four raters", "MR-ECE (%)", "95 % interval", "Brier", "AUC" });
  Judging judging(context, judge, { { 0, options }, { 1, options } });
  for (int seed = 1; seed <= cases; ++seed)
  {
    rcn_phantom_options small = RCN_PHANTOM_OPTIONS_INIT;
    small.seed = static_cast<uint64_t>(seed);
    const rcn_geometry geometry = rcn_geometry_make(small.size[0], small.size[1], small.size[2]);
    const Phantom phantom = MakePhantom(context, small, geometry);
    std::vector<CasePrediction> maps;
    std::vector<rcn_mask> views;
    for (const RaterMask& rater : phantom.Raters)
    {
      views.emplace_back();
      views.back().image = rater.Mask.View();
    }
    rcn_votes* votes = nullptr;
    Check(rcn_votes_from_masks(&votes, context, &views.back(), 1), context);
    const std::unique_ptr<rcn_votes, VotesDeleter> keep(votes);
    for (const rcn_method method : methods)
    {
      rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
      fusion.method = method;
      maps.push_back({ Volume::Allocate(geometry, RCN_FLOAT32), "The fused map" });
      Check(
        rcn_fuse_masks(static_cast<float*>(maps.back().Map.Data()), nullptr, context, views.data(), seen, &fusion), context);
    }
    Case one;
    one.Id = std::to_string(seed);
    judging.Add(one, 0, votes, maps);
  }
  for (size_t m = 0; m < 2; ++m)
  {
    const EvaluationReport report = judging.Evaluations()[m]->Report();
    const rcn_interval& interval = report.Interval[RCN_MR_ECE];
    table.Add({ rcn_method_name(methods[m]), Fixed(100 * report.Figures[RCN_MR_ECE], 2),
      FromTo(100 * interval.low, 100 * interval.high, 2), Fixed(report.Figures[RCN_BRIER], 4),
      Fixed(report.Auc.reference, 4) });
    SaveFigure(ReliabilityDiagram(report, titles[m]), folder, std::string("reliability_") + rcn_method_name(methods[m]));
  }
  return "Calibration of fused maps: twenty small cases, compared with a rater who was left out\n" + table.Text();
}

#ifdef RCN_HAVE_NETWORKS
/// Test cases side by side: the image, what the raters said, and what each model predicts.
class PredictionSheet
{
public:
  explicit PredictionSheet(const DataList& list)
    : List_(list),
      Figure_(4 * Step + 24, Cases * (Panel + 12) + 104, "Predictions of two models beside the raters",
        "Three test cases: the image, the share of raters who marked each voxel, and the probabilities of a model that "
        "learned "
        "how many raters mark a voxel and of one that learned their majority")
  {
    this->Figure_.Text(16, 28, "Predictions of two models on test cases", 18, Anchor::Start, "#111", true);
    const char* const captions[] = { "image", "share of five raters", "ordinal: learned the levels",
      "median: learned the majority" };
    for (int c = 0; c < 4; ++c)
    {
      this->Figure_.Text(16 + Step * c, 52, captions[c], 12.5);
    }
  }

  void Add(const std::string& id, Workspace& workspace, const std::filesystem::path& predictions)
  {
    for (const Case& one : this->List_.Cases)
    {
      if (one.Id == id)
      {
        workspace.LoadCase(one, this->List_.Raters);
      }
    }
    const SliceFigure view(workspace, 0, false);
    this->AddPanel(view);
    view.DrawLevels(this->Figure_, this->AddPanel(view));
    for (const char* name : { "ordinal", "median" })
    {
      const Volume levels = ReadPrediction((predictions / name / (id + "_levels.nrrd")).string());
      view.DrawProbability(this->Figure_, this->AddPanel(view), view.ReadoutMap(levels, RCN_READOUT_EXPECTED));
    }
  }

  void Save(const std::filesystem::path& folder)
  {
    this->Figure_.Text(16, 64 + Cases * (Panel + 12) + 20,
      "The stronger the color, the likelier a rater marks the voxel. Synthetic data. For research, not for clinical use.", 11,
      Anchor::Start, "#666");
    SaveFigure(this->Figure_, folder, "predictions");
  }

  static constexpr int Cases = 3;

private:
  /// The image; returns where more can be drawn over it.
  Place AddPanel(const SliceFigure& view)
  {
    const Place place = { 16 + Step * (this->Count_ % 4), 62 + (Panel + 12) * (this->Count_ / 4), Panel };
    view.DrawPicture(this->Figure_, place);
    ++this->Count_;
    return place;
  }

  static constexpr double Panel = 200, Step = 212;
  const DataList& List_;
  Figure Figure_;
  int Count_ = 0;
};

/// The demonstration's trainings: short ones of small networks.
StudyOptions StudyOf(const std::filesystem::path& folder, const std::string& data, const std::vector<std::string>& strategies,
  const Arguments& arguments, Terminal& terminal)
{
  StudyOptions options;
  options.Data = data;
  options.Folder = (folder / "study").string();
  options.Strategies = strategies;
  options.Training.Workspace = WorkspaceOptionsFrom(arguments);
  options.Training.Net.depth = 3;
  options.Training.Epochs = static_cast<int>(arguments.GetInteger("--epochs", 40, 1, 10000));
  options.Training.Batch = 8;
  options.Training.Rate = 0.003;
  options.Choices["--epochs"] = std::to_string(options.Training.Epochs);
  options.Command = arguments.CommandLine("rater-consensus demo");
  options.Progress = [&terminal](double fraction, const std::string& stage) { return terminal.Show(fraction, stage.c_str()); };
  return options;
}

/// Learns from forty small cases of the same raters, once how many of them mark a voxel and once their majority, and
/// judges both models on twenty cases that they have not seen.
std::string Learn(const std::filesystem::path& folder, const Arguments& arguments, Terminal& terminal, Workspace& workspace)
{
  const StudyOptions options = StudyOf(
    folder, WriteLearningCases(folder / "cases", workspace.Context(), false), { "ordinal", "median" }, arguments, terminal);
  const StudyResult result = RunStudy(options);

  Table table({ "Learned", "Readout", "MR-ECE (%)", "95 % interval", "Brier", "AUC", "RPS", "Level error (%)" });
  for (const StudyRow& row : result.Rows)
  {
    const rcn_interval& interval = row.Box.Interval[RCN_MR_ECE];
    table.Add(
      { row.Strategy, row.Readout.empty() ? "its probability" : row.Readout, Fixed(100 * row.Box.Figures[RCN_MR_ECE], 2),
        FromTo(100 * interval.low, 100 * interval.high, 2), Fixed(row.Box.Figures[RCN_BRIER], 4),
        Fixed(row.Box.Auc.reference, 4), Fixed(row.Box.Figures[RCN_RPS], 4), Fixed(100 * row.Box.Figures[RCN_LEVEL_ECE], 2) });
    SaveFigure(ReliabilityDiagram(row.Box, row.Strategy + (row.Readout.empty() ? "" : ", " + row.Readout) + ": test cases"),
      folder, "reliability_model_" + row.Strategy + (row.Readout.empty() ? "" : "_" + row.Readout));
  }
  const DataList list = ReadDataList(options.Data);
  PredictionSheet sheet(list);
  for (int i = 1; i <= PredictionSheet::Cases; ++i)
  {
    sheet.Add("test" + std::to_string(i), workspace, std::filesystem::path(options.Folder) / "predictions");
  }
  sheet.Save(folder);
  ReportOptions page;
  page.Data = options.Data;
  page.Split = "test";
  page.Title = "Two models and five raters";
  page.Output = (folder / "report_models.html").string();
  for (const std::string& name : options.Strategies)
  {
    ReportModel model;
    model.Name = name;
    model.Predictions = options.Folder + "/predictions/" + name;
    model.Model = options.Folder + "/models/" + name + ".safetensors";
    page.Models.push_back(model);
  }
  WriteDemoReport(page, arguments, terminal);
  return "Two models learn from forty small cases: ordinal how many raters mark a voxel, median their majority.\n"
         "Evaluated on twenty other cases (box around all marks)\n" +
    table.Text() +
    "RPS and \"Level error\" evaluate the predicted number of raters: the probability that at least 1, 2, ... 5 of them mark "
    "a\nvoxel, against the observed share. One probability is converted to levels by a binomial distribution.\n";
}
#endif

#ifdef RCN_HAVE_NETWORKS
/// Two models of three structures, one that learns how many raters give each label and one that learns what most gave.
std::string LearnStructures(
  const std::filesystem::path& folder, const std::string& data, const Arguments& arguments, Terminal& terminal)
{
  const StudyOptions options = StudyOf(folder, data, { "dirichlet-multinomial", "median" }, arguments, terminal);
  const StudyResult result = RunStudy(options);
  Table table({ "Structure", "Learned", "Readout", "MR-ECE (%)", "95 % interval", "Brier", "AUC", "RPS" });
  const auto add = [&table](const std::string& name, const std::vector<StudyRow>& rows) {
    for (const StudyRow& row : rows)
    {
      const rcn_interval& interval = row.Box.Interval[RCN_MR_ECE];
      table.Add({ name, row.Strategy, row.Readout.empty() ? "its probability" : row.Readout,
        Fixed(100 * row.Box.Figures[RCN_MR_ECE], 2), FromTo(100 * interval.low, 100 * interval.high, 2),
        Fixed(row.Box.Figures[RCN_BRIER], 4), Fixed(row.Box.Auc.reference, 4), Fixed(row.Box.Figures[RCN_RPS], 4) });
    }
  };
  for (const StudyStructure& structure : result.Structures)
  {
    add(structure.Name, structure.Rows);
  }
  add("mean", result.Rows);
  return "Two models learn three structures from forty small cases: dirichlet-multinomial how many raters give each label, "
         "median the\nlabel that most gave. Evaluated on twenty other cases, each structure in the box around its marks\n" +
    table.Text();
}
#endif

/// The story of three structures.
int RunStructuresDemo(
  const std::filesystem::path& folder, const Arguments& arguments, Terminal& terminal, const Workspace& workspace)
{
  const std::string data = WriteLearningCases(folder / "cases", workspace.Context(), true);
  std::string learned, files = "  cases/                       images, five raters' label maps and their data list\n";
#ifdef RCN_HAVE_NETWORKS
  if (!arguments.Has("--no-training"))
  {
    learned = LearnStructures(folder, data, arguments, terminal) + "\n";
    WriteText((folder / "models.txt").string(), learned);
    files += "  study/                       models, predictions, tables, report.html\n"
             "  models.txt                   the table above\n";
  }
#else
  (void)terminal;
  (void)arguments;
#endif
  WriteText("-",
    learned + "Written to " + folder.string() + ":\n" + files +
      "How far the raters agree on each structure: rater-consensus agree --data " + data + "\n");
  return 0;
}

int RunDemo(const Arguments& arguments)
{
  Terminal terminal(arguments);
  const std::filesystem::path folder = arguments.Get("-o", "rater-consensus-demo");
  MakeFolder(folder.string());
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  if (arguments.Has("--structures"))
  {
    return RunStructuresDemo(folder, arguments, terminal, workspace);
  }
  const Case phantom = WritePhantom(folder, workspace.Context());
  workspace.LoadCase(phantom);

  const AgreementReport agreement = workspace.Agree(true);
  const std::string text = AgreementText(agreement, workspace, "Phantom", 5);
  WriteText((folder / "agreement.txt").string(), text);
  {
    const JsonHandle json(AgreementJson(agreement, workspace, 20));
    WriteText((folder / "agreement.json").string(), DocumentText(json.get()));
  }
  Montage montage(workspace, SlicesToSee(workspace, 1).front());
  montage.AddPanel("image");
  montage.AddRaters();
  static const char* const captions[] = { "orc: how many marked it", "random: one rater, drawn", "median: at least half",
    "soft: share who marked", "soft-gaussian: smoothed", "staple: hidden truth", "simple: best raters' majority",
    "svls: smoothed labels" };
  for (int method = RCN_ORC; method <= RCN_SVLS; ++method)
  {
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    options.method = static_cast<rcn_method>(method);
    const FusionReport report = workspace.Fuse(options);
    const std::string name = rcn_method_name(options.method);
    WriteImage((folder / ("phantom_" + name + ".nrrd")).string(), report.Map.View(), report.MapContent);
    if (method == RCN_ORC)
    {
      montage.AddLevels(captions[method]);
    }
    else
    {
      montage.AddMap(captions[method], report.Map);
    }
  }
  montage.AddMap("entropy: where they disagree", workspace.EntropyMap());
  montage.AddLegend(*agreement.Figures);
  montage.Save(folder);
  ReportOptions page;
  page.One = phantom;
  page.Title = "Five raters outline the same lesions";
  page.Output = (folder / "report.html").string();
  WriteDemoReport(page, arguments, terminal);
  const std::string judged = JudgeFusions(folder, workspace.Context());
  WriteText((folder / "calibration.txt").string(), judged);
  std::string learned, learnedFiles;
#ifdef RCN_HAVE_NETWORKS
  if (!arguments.Has("--no-training"))
  {
    learned = "\n" + Learn(folder, arguments, terminal, workspace);
    WriteText((folder / "models.txt").string(), learned);
    learnedFiles =
      "  cases/, study/                                     the small cases and their data list; models, predictions, "
      "report.html\n"
      "  predictions.svg, .png, models.txt                  predictions of the two models, and their calibration\n"
      "  reliability_model_<model>.svg, .png                their reliability diagrams\n"
      "  report_models.html                                 both models and the raters on one page\n";
  }
#endif
  WriteText("-",
    text + "\n" + judged + learned + "\nWritten to " + folder.string() +
      ":\n"
      "  phantom.nrrd, phantom_<rater>.nrrd, dataset.json   the image, five raters' masks and their data list\n"
      "  agreement.txt, agreement.json                      the table above, as text and as JSON\n"
      "  phantom_<method>.nrrd                              the masks fused in eight ways\n"
      "  consensus.svg, consensus.png                       image, raters, levels and maps in one picture: start here\n"
      "  report.html                                        agreement and disputed places, for a browser or for printing\n"
      "  reliability_<method>.svg, .png, calibration.txt    calibration of two fused maps\n" +
      learnedFiles);
  return 0;
}

} // namespace

Command DemoCommand()
{
  return { "demo", "run everything on built-in data", { "[-o DIR]" },
    "Makes a phantom with five raters who disagree, compares them, fuses their masks by all eight methods, draws the result, "
    "and checks how well fused maps are calibrated for a rater who was left out. Then two models are trained on small cases of "
    "the "
    "same raters, one on how many of them mark a voxel and one on their majority, and evaluated on cases they have not seen. "
    "About two minutes on two cores.",
    { { "-o", "DIR", "folder for the results (rater-consensus-demo)" }, { "--no-training", "", "do not train models" },
      { "--structures", "",
        "instead: small cases with three structures that touch, their data list, and two models of all structures" },
      { "--epochs", "N", "epochs of training (40)" }, { "--threads", "N", "number of threads (all cores)" },
      { "--quiet", "", "no progress" } },
    RunDemo };
}

} // namespace rcn
