// SPDX-License-Identifier: Apache-2.0
/// rater-consensus agree: how far raters agree, and where they do not.
#include <cmath>
#include <cstdio>

#include "rcnCommands.h"
#include "rcnProcesses.h"

namespace rcn
{

namespace
{

/// More raters than this make more pairs than a person reads; the JSON has them all.
constexpr int MostRatersInPairTable = 8;

std::string JoinNames(const std::vector<std::string>& names)
{
  std::string text;
  for (const std::string& name : names)
  {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string RaterTable(const rcn_agreement& figures, const Workspace& workspace, const Extent& extent)
{
  Table table(
    { "Rater", extent.Heading, "Dice to others", "Sensitivity", "Specificity", "STAPLE sensitivity", "STAPLE specificity" });
  for (int r = 0; r < figures.raters; ++r)
  {
    const rcn_rater_agreement& rater = figures.rater[r];
    if (rater.present)
    {
      table.Add({ workspace.RaterNames()[r], extent.Text(rater.voxels), Fixed(rater.dice_to_others, 3),
        Fixed(rater.sensitivity_to_others, 3), Fixed(rater.specificity_to_others, 4), Fixed(rater.staple_sensitivity, 3),
        Fixed(rater.staple_specificity, 4) });
    }
  }
  return AgainstOthersText() + "\n" + table.Text();
}

std::string PairTable(const rcn_agreement& figures, const Workspace& workspace, bool surfaces, const Extent& extent)
{
  std::vector<std::string> header = { "Pair", "Dice", "Jaccard", "Cohen's κ" };
  if (surfaces)
  {
    header.insert(header.end(), { "Hausdorff 95 % (" + extent.Length + ")", "Mean surface distance (" + extent.Length + ")" });
  }
  Table table(header);
  for (int a = 0; a < figures.raters; ++a)
  {
    for (int b = a + 1; b < figures.raters; ++b)
    {
      const rcn_pair_agreement& pair = figures.pair[a * figures.raters + b];
      if (!figures.rater[a].present || !figures.rater[b].present)
      {
        continue;
      }
      std::vector<std::string> row = { workspace.RaterNames()[a] + " – " + workspace.RaterNames()[b], Fixed(pair.dice, 3),
        Fixed(pair.jaccard, 3), Fixed(pair.kappa, 3) };
      if (surfaces)
      {
        row.insert(row.end(), { Fixed(pair.hausdorff95_mm, 2), Fixed(pair.mean_surface_mm, 2) });
      }
      table.Add(row);
    }
  }
  return "Pairs of raters (mean Dice " + Fixed(figures.mean_dice, 3) + ")\n" + table.Text();
}

std::string WithWords(double value)
{
  return std::isnan(value) ? "not defined" : Fixed(value, 3) + " (" + rcn_kappa_words(value) + ")";
}

std::string OverallTable(const rcn_agreement& figures)
{
  Table table({ "All raters together", "whole image", "where anybody marked" });
  table.Add({ "Fleiss' κ", WithWords(figures.whole.fleiss_kappa), WithWords(figures.on_union.fleiss_kappa) });
  table.Add(
    { "Krippendorff's α", WithWords(figures.whole.krippendorff_alpha), WithWords(figures.on_union.krippendorff_alpha) });
  table.Add({ "Gwet's AC1", WithWords(figures.whole.gwet_ac1), WithWords(figures.on_union.gwet_ac1) });
  table.Add({ "mean entropy (bits)", Fixed(figures.whole.mean_entropy, 4), Fixed(figures.on_union.mean_entropy, 4) });
  return table.Text();
}

std::string LevelTable(const rcn_agreement& figures, const Extent& extent)
{
  Table table({ "Marked by", "Voxels", extent.Heading, "Share of what anybody marked (%)" });
  for (int level = 1; level <= figures.present_count; ++level)
  {
    const int64_t voxels = figures.level_voxels[level];
    table.Add({ std::to_string(level) + " of " + std::to_string(figures.present_count), std::to_string(voxels),
      extent.Text(voxels),
      Fixed(figures.union_voxels ? 100.0 * static_cast<double>(voxels) / static_cast<double>(figures.union_voxels) : NAN, 1) });
  }
  table.Add({ "anybody", std::to_string(figures.union_voxels), extent.Text(figures.union_voxels), "" });
  table.Add({ "at least half", std::to_string(figures.majority_voxels), extent.Text(figures.majority_voxels), "" });
  table.Add({ "everybody", std::to_string(figures.intersection_voxels), extent.Text(figures.intersection_voxels), "" });
  table.Add({ "disputed", std::to_string(figures.disputed_voxels), extent.Text(figures.disputed_voxels), "" });
  const std::string remark = MajorityRemark(figures.present_count);
  return table.Text() + (remark.empty() ? "" : remark + "\n");
}

std::string RegionTable(const AgreementReport& report, const Workspace& workspace, const Extent& extent, size_t most)
{
  if (report.Regions.empty())
  {
    return "No disputed regions: everybody marked the same voxels.\n";
  }
  Table table({ "#", extent.Heading, "Voxels", extent.PlaceHeading, "Visit voxel", "Marked by", "Most votes" });
  for (size_t i = 0; i < report.Regions.size() && i < most; ++i)
  {
    const rcn_dispute& region = report.Regions[i];
    table.Add({ std::to_string(i + 1), extent.Text(region.voxels), std::to_string(region.voxels), extent.PlaceOf(region),
      "(" + std::to_string(region.at[0]) + ", " + std::to_string(region.at[1]) + ", " + std::to_string(region.at[2]) + ")",
      JoinNames(NamesOf(region.marked_by, workspace.RaterNames())), std::to_string(region.max_votes) });
  }
  return "Largest disputed regions (" + std::to_string(std::min(most, report.Regions.size())) + " of " +
    std::to_string(report.Regions.size()) + ")\n" + table.Text();
}

std::vector<std::string> SummaryHeader()
{
  return { "case", "split", "raters", "voxels", "mean_dice", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1",
    "fleiss_kappa_union", "union_ml", "majority_ml", "intersection_ml", "disputed_ml", "disputed_regions", "union_voxels",
    "majority_voxels", "intersection_voxels", "disputed_voxels" };
}

std::vector<double> SummaryNumbers(const AgreementReport& report, const Workspace& workspace)
{
  const rcn_agreement& f = *report.Figures;
  return { static_cast<double>(f.present_count),
    static_cast<double>(rcn_geometry_voxels(rcn_votes_geometry(workspace.Votes()))), f.mean_dice, f.whole.fleiss_kappa,
    f.whole.krippendorff_alpha, f.whole.gwet_ac1, f.on_union.fleiss_kappa, static_cast<double>(f.union_voxels) * f.voxel_ml,
    static_cast<double>(f.majority_voxels) * f.voxel_ml, static_cast<double>(f.intersection_voxels) * f.voxel_ml,
    static_cast<double>(f.disputed_voxels) * f.voxel_ml, static_cast<double>(report.Regions.size()),
    static_cast<double>(f.union_voxels), static_cast<double>(f.majority_voxels), static_cast<double>(f.intersection_voxels),
    static_cast<double>(f.disputed_voxels) };
}

std::string SummaryRow(const std::string& id, const std::string& split, const std::vector<double>& numbers)
{
  std::vector<std::string> row = { id, split };
  for (const double number : numbers)
  {
    row.push_back(CsvNumber(number));
  }
  return CsvRow(row);
}

/// Mean, smallest and largest of each number over the cases where it is defined.
class Summary
{
public:
  void Add(const std::vector<double>& numbers)
  {
    this->Columns_.resize(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i)
    {
      if (std::isfinite(numbers[i]))
      {
        this->Columns_[i].push_back(numbers[i]);
      }
    }
  }

  std::string Text(const std::vector<std::string>& names) const
  {
    Table table({ "Over all cases", "mean", "lowest", "highest", "cases" });
    this->ForEach(names, [&](const std::string& name, double mean, double low, double high, size_t count) {
      table.Add({ name, Fixed(mean, 3), Fixed(low, 3), Fixed(high, 3), std::to_string(count) });
    });
    return table.Text();
  }

  json_t* Json(const std::vector<std::string>& names) const
  {
    json_t* object = json_object();
    this->ForEach(names, [&](const std::string& name, double mean, double low, double high, size_t count) {
      json_t* one = json_object();
      json_object_set_new(one, "mean", JsonNumber(mean));
      json_object_set_new(one, "lowest", JsonNumber(low));
      json_object_set_new(one, "highest", JsonNumber(high));
      json_object_set_new(one, "cases", json_integer(static_cast<json_int_t>(count)));
      json_object_set_new(object, name.c_str(), one);
    });
    return object;
  }

private:
  template <class TBody> void ForEach(const std::vector<std::string>& names, TBody&& body) const
  {
    for (size_t i = 0; i < this->Columns_.size(); ++i)
    {
      double sum = 0, low = NAN, high = NAN;
      for (const double value : this->Columns_[i])
      {
        sum += value;
        low = std::fmin(low, value);
        high = std::fmax(high, value);
      }
      const size_t count = this->Columns_[i].size();
      body(names[i], count ? sum / static_cast<double>(count) : NAN, low, high, count);
    }
  }

  std::vector<std::vector<double>> Columns_;
};

int AgreeOne(const Arguments& arguments, Terminal& terminal)
{
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  const size_t regions = static_cast<size_t>(arguments.GetInteger("--regions", 10, 0, 1000000));
  Seconds seconds;
  Stopwatch watch;
  terminal.Watch(workspace);
  for (const char* option : { "--levels", "--entropy" })
  {
    if (arguments.Has(option))
    {
      const std::string sentence = CheckOutput(arguments.Get(option), Content::Probability);
      if (!sentence.empty())
      {
        throw Error(RCN_EIO, sentence);
      }
    }
  }
  workspace.LoadCase(CaseFrom(arguments));
  for (const std::string& remark : workspace.Remarks())
  {
    terminal.Remark(remark);
  }
  seconds.Read = watch.Lap();
  const AgreementReport report = workspace.Agree(arguments.Has("--surfaces"));
  seconds.Compute = watch.Lap();
  if (arguments.Has("--levels"))
  {
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    terminal.Remark(
      WriteImage(arguments.Get("--levels"), workspace.Fuse(options).Map.View(), Content::Levels, Terminal::IsInterrupted));
  }
  if (arguments.Has("--entropy"))
  {
    terminal.Remark(
      WriteImage(arguments.Get("--entropy"), workspace.EntropyMap().View(), Content::Probability, Terminal::IsInterrupted));
  }
  seconds.Write = watch.Lap();
  if (!arguments.Has("--quiet") && arguments.Get("--json") != "-" && arguments.Get("--csv") != "-")
  {
    WriteText("-", AgreementText(report, workspace, "Agreement", regions));
  }
  if (arguments.Has("--csv"))
  {
    WriteText(arguments.Get("--csv"), CsvRow(SummaryHeader()) + SummaryRow("case", "", SummaryNumbers(report, workspace)));
  }
  if (arguments.Has("--json"))
  {
    const JsonHandle json(AgreementJson(report, workspace, regions));
    json_object_set_new(json.get(), "seconds", seconds.Json());
    WriteText(arguments.Get("--json"), DocumentText(json.get()));
  }
  return 0;
}

int AgreeList(const Arguments& arguments, Terminal& terminal)
{
  const DataList list = ReadDataList(arguments.Get("--data"));
  const size_t regions = static_cast<size_t>(arguments.GetInteger("--regions", 10, 0, 1000000));
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  std::vector<std::string> header = SummaryHeader();
  std::string csv = CsvRow(header);
  Table table({ "Case", "Raters", "Mean Dice", "Fleiss' κ", "κ where marked", "Disputed (% of union)" });
  Summary summary;
  Seconds seconds;
  const JsonHandle cases(json_array());
  const auto compare = [&](const Case& one, size_t, std::vector<std::string>& remarks) {
    Seconds spent;
    Stopwatch watch;
    workspace.LoadCase(one, list.Raters);
    remarks.push_back(workspace.LabelRemark());
    spent.Read = watch.Lap();
    const AgreementReport report = workspace.Agree(arguments.Has("--surfaces"));
    spent.Compute = watch.Lap();
    const rcn_agreement& f = *report.Figures;
    const double disputed = static_cast<double>(f.disputed_voxels) / static_cast<double>(f.union_voxels);
    json_t* json = AgreementJson(report, workspace, regions);
    json_object_set_new(json, "case", JsonString(one.Id));
    json_object_set_new(json, "split", JsonString(one.Split));
    JsonHandle record(json_object());
    json_object_set_new(record.get(), "json", json);
    json_t* numbers = json_array();
    for (const double number : SummaryNumbers(report, workspace))
    {
      json_array_append_new(numbers, JsonNumber(number));
    }
    json_object_set_new(record.get(), "numbers", numbers);
    json_object_set_new(record.get(), "row",
      JsonStrings({ one.Id, std::to_string(f.present_count), Fixed(f.mean_dice, 3), Fixed(f.whole.fleiss_kappa, 3),
        Fixed(f.on_union.fleiss_kappa, 3), Fixed(100 * disputed, 1) }));
    json_object_set_new(record.get(), "seconds", spent.Json());
    return record;
  };
  const std::vector<LeftOutCase> leftOut =
    ForEachCase(list, LoopFor(arguments, terminal), compare, [&](const Case& one, const json_t* record) {
      const std::vector<double> numbers = NumbersFrom(json_object_get(record, "numbers"));
      summary.Add(numbers);
      csv += SummaryRow(one.Id, one.Split, numbers);
      table.Add(StringsFrom(json_object_get(record, "row")));
      json_array_append(cases.get(), json_object_get(record, "json"));
      seconds.Add(json_object_get(record, "seconds"));
    });
  if (!Processes::All().IsFirst())
  {
    return ExitCodeOf(leftOut);
  }
  const std::vector<std::string> names(header.begin() + 2, header.end());
  if (!arguments.Has("--quiet") && arguments.Get("--json") != "-" && arguments.Get("--csv") != "-")
  {
    WriteText("-", table.Text() + "\n" + summary.Text(names));
  }
  if (arguments.Has("--csv"))
  {
    WriteText(arguments.Get("--csv"), csv);
  }
  if (arguments.Has("--json"))
  {
    const JsonHandle json(json_object());
    json_object_set(json.get(), "cases", cases.get());
    json_object_set_new(json.get(), "left_out", LeftOutJson(leftOut));
    json_object_set_new(json.get(), "summary", summary.Json(names));
    json_object_set_new(json.get(), "seconds", seconds.Json());
    WriteText(arguments.Get("--json"), DocumentText(json.get()));
  }
  return ExitCodeOf(leftOut);
}

int RunAgree(const Arguments& arguments)
{
  Terminal terminal(arguments);
  if (arguments.Has("--data") == arguments.Has("--rater"))
  {
    throw Error(RCN_EINVALID, "Give either masks with --rater NAME=FILE or a list with --data LIST.");
  }
  CheckTextOutputs(arguments);
  return arguments.Has("--data") ? AgreeList(arguments, terminal) : AgreeOne(arguments, terminal);
}

} // namespace

std::string AgreementText(const AgreementReport& report, const Workspace& workspace, const std::string& title, size_t regions)
{
  const rcn_agreement& figures = *report.Figures;
  const Extent extent(report.Geometry);
  std::string text = title + ": " + DescribeCase(workspace) + "\n\n" + RaterTable(figures, workspace, extent) + "\n";
  if (figures.present_count > MostRatersInPairTable)
  {
    text += "Pairs of raters: mean Dice " + Fixed(figures.mean_dice, 3) + " (each pair: --json)\n\n";
  }
  else if (figures.present_count > 1)
  {
    text += PairTable(figures, workspace, report.HasSurfaces, extent) + "\n";
  }
  return text + OverallTable(figures) + "\n" + LevelTable(figures, extent) + "\n" +
    RegionTable(report, workspace, extent, regions);
}

Command AgreeCommand()
{
  return { "agree", "how far raters agree, and where they do not",
    { "--rater NAME=FILE --rater NAME=FILE ... [--image FILE]", "--data LIST [--csv FILE]" },
    "Compares the raters of one case (or of every case of a data list): Dice, Jaccard and Cohen's kappa of each pair, "
    "each rater against the majority of the others (voxels where they are split evenly do not count), STAPLE's sensitivity and "
    "specificity, Fleiss' kappa, "
    "Krippendorff's alpha and Gwet's AC1 on the whole image and where anybody marked, the volume of each level of "
    "consensus, and the disputed regions with their places, largest first. Volumes are in mL, 2-D images are measured by area "
    "in mm², and a picture without spacing (PNG, JPEG) in pixels.",
    Join(
      Join(CaseOptions(),
        { { "--surfaces", "", "also the Hausdorff (95 %) and mean surface distances of each pair, in mm (a picture: pixels)" },
          { "--regions", "N", "list so many disputed regions (10)" },
          { "--levels", "FILE", "also write how many raters marked each voxel", {}, false, FileUse::Written },
          { "--entropy", "FILE", "also write the entropy of the raters' votes (bits)", {}, false, FileUse::Written },
          { "--csv", "FILE", "one row of figures per case; - is standard output", {}, false, FileUse::Written } }),
      OutputOptions()),
    RunAgree };
}

} // namespace rcn
