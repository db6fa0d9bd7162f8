// SPDX-License-Identifier: Apache-2.0
/// rater-consensus agree: how far raters agree, and where they do not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "rcnAgreementFigures.h"
#include "rcnAgreementSet.h"
#include "rcnCommands.h"
#include "rcnProcesses.h"

namespace rcn
{

namespace
{

/// More raters than this make more pairs than a person reads; the JSON has them all.
constexpr int MostRatersInPairTable = 8;

std::string RatersText(const rcn_agreement& figures, const Workspace& workspace, const Extent& extent)
{
  std::vector<std::string> header = { "Rater", extent.Heading };
  for (const auto& figure : RaterFigures())
  {
    header.push_back(figure.Name);
  }
  Table table(header);
  for (int r = 0; r < figures.raters; ++r)
  {
    const rcn_rater_agreement& rater = figures.rater[r];
    if (!rater.present)
    {
      continue;
    }
    std::vector<std::string> row = { workspace.RaterNames()[r], extent.Text(rater.voxels) };
    for (const auto& figure : RaterFigures())
    {
      row.push_back(Fixed(figure.Of(rater), figure.Digits));
    }
    table.Add(row);
  }
  return AgainstOthersText() + "\n" + table.Text();
}

std::string PairsText(const rcn_agreement& figures, const Workspace& workspace, bool surfaces, const Extent& extent)
{
  std::vector<std::string> header = { "Pair" };
  for (const auto& figure : PairFigures())
  {
    if (surfaces || !figure.IsDistance())
    {
      header.push_back(figure.Heading(extent.Length));
    }
  }
  Table table(header);
  for (int a = 0; a < figures.raters; ++a)
  {
    for (int b = a + 1; b < figures.raters; ++b)
    {
      if (!figures.rater[a].present || !figures.rater[b].present)
      {
        continue;
      }
      std::vector<std::string> row = { workspace.RaterNames()[a] + " – " + workspace.RaterNames()[b] };
      for (const auto& figure : PairFigures())
      {
        if (surfaces || !figure.IsDistance())
        {
          row.push_back(Fixed(figure.Of(figures.pair[a * figures.raters + b]), figure.Digits));
        }
      }
      table.Add(row);
    }
  }
  return "Pairs of raters (mean Dice " + Fixed(figures.mean_dice, 3) + ")\n" + table.Text();
}

std::string OverallTable(
  const rcn_overall_agreement& whole, const rcn_overall_agreement& onUnion, const std::string& title = "All raters together")
{
  Table table({ title, "whole image", "where anybody marked" });
  for (const auto& figure : OverallFigures())
  {
    const auto text = [&](double value) {
      return figure.Digits != 3 ? Fixed(value, figure.Digits)
        : std::isnan(value)     ? std::string("not defined")
                                : Fixed(value, figure.Digits) + " (" + rcn_kappa_words(value) + ")";
    };
    table.Add({ figure.Name, text(figure.Of(whole)), text(figure.Of(onUnion)) });
  }
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
  for (const AgreementPart& part : AgreementParts())
  {
    const int64_t voxels = figures.*part.Voxels;
    table.Add({ part.Name, std::to_string(voxels), extent.Text(voxels), "" });
  }
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

/// The figures of a case in a row of the CSV file, by name; over several cases they are averaged.
JsonObject SummaryFigures(const rcn_agreement& f, int64_t voxels, size_t regions, bool pixels)
{
  JsonObject figures{ { "raters", f.present_count }, { "voxels", voxels }, { "mean_dice", f.mean_dice },
    { "fleiss_kappa", f.whole.fleiss_kappa }, { "krippendorff_alpha", f.whole.krippendorff_alpha },
    { "gwet_ac1", f.whole.gwet_ac1 }, { "fleiss_kappa_union", f.on_union.fleiss_kappa } };
  for (const AgreementPart& part : AgreementParts())
  {
    figures.Set(part.Key + "_ml", static_cast<double>(f.*part.Voxels) * f.voxel_ml);
  }
  figures.Set("disputed_regions", regions);
  for (const AgreementPart& part : AgreementParts())
  {
    figures.Set(part.Key + "_voxels", f.*part.Voxels);
  }
  Spread kappa, hausdorff;
  for (int a = 0; a < f.raters; ++a)
  {
    for (int b = a + 1; b < f.raters; ++b)
    {
      kappa.Add(f.pair[a * f.raters + b].kappa);
      hausdorff.Add(f.pair[a * f.raters + b].hausdorff95_mm);
    }
  }
  figures.Set("mean_kappa", kappa.Mean());
  figures.Set("mean_hausdorff95_mm", pixels ? NAN : hausdorff.Mean());
  figures.Set("mean_hausdorff95_pixels", pixels ? hausdorff.Mean() : NAN);
  return figures;
}

/// The CSV file, and mean, smallest and largest of each figure over the cases where it is defined.
class Summary
{
public:
  /// `structure`: the one of several that it is about, a column of the file; empty: there is one.
  explicit Summary(const std::string& structure = "") : Structure_(structure)
  {
    std::vector<std::string> header = { "case", "split" };
    header.insert(header.end(), structure.empty() ? 0 : 1, "structure");
    const JsonObject none = SummaryFigures(rcn_agreement{}, 0, 0, false);
    const char* name;
    json_t* ignored;
    json_object_foreach(none.Get(), name, ignored)
    {
      header.push_back(name);
      this->Names_.push_back(name);
    }
    header.push_back("patient");
    this->Csv_ = CsvRow(header);
  }

  /// Figures as SummaryFigures() made them, in this process or another; `heading` and `perVoxel` as in Extent.
  void Add(const Case& one, const json_t* figures, const std::string& heading, double perVoxel)
  {
    this->Headings_.insert(heading);
    for (const AgreementPart& part : AgreementParts())
    {
      const double voxels = json_number_value(json_object_get(figures, (part.Key + "_voxels").c_str()));
      this->Voxels_[part.Key].Add(voxels);
      this->Extents_[part.Key].Add(voxels * perVoxel);
    }
    this->Regions_.Add(json_number_value(json_object_get(figures, "disputed_regions")));
    std::vector<std::string> row = { one.Id, one.Split };
    row.insert(row.end(), this->Structure_.empty() ? 0 : 1, this->Structure_);
    this->Columns_.resize(this->Names_.size());
    for (size_t i = 0; i < this->Names_.size(); ++i)
    {
      const json_t* figure = json_object_get(figures, this->Names_[i].c_str());
      const double value = json_is_number(figure) ? json_number_value(figure) : NAN;
      row.push_back(CsvNumber(value));
      this->Columns_[i].Add(value);
    }
    row.push_back(one.Patient);
    this->Csv_ += CsvRow(row);
  }

  const std::string& Csv() const { return this->Csv_; }

  std::string Text() const
  {
    // Cases that are measured in different units have only voxels in common.
    const bool mixed = this->Headings_.size() > 1;
    const std::string heading = this->Headings_.empty() ? "" : *this->Headings_.begin();
    Table table({ (mixed ? "Voxels" : heading) + " marked by", "mean", "lowest", "highest", "cases" });
    const auto add = [&table](const std::string& name, const Spread& one, int digits) {
      table.Add(
        { name, Fixed(one.Mean(), digits), Fixed(one.Low(), digits), Fixed(one.High(), digits), std::to_string(one.Count()) });
    };
    for (const AgreementPart& part : AgreementParts())
    {
      const auto& spreads = mixed ? this->Voxels_ : this->Extents_;
      const auto one = spreads.find(part.Key);
      add(part.Name, one == spreads.end() ? Spread() : one->second, heading == "Volume (mL)" && !mixed ? 3 : 1);
    }
    add("(number of disputed regions)", this->Regions_, 1);
    return table.Text();
  }

  JsonObject Json() const
  {
    JsonObject object;
    for (size_t i = 0; i < this->Columns_.size(); ++i)
    {
      const Spread& one = this->Columns_[i];
      object.Set(this->Names_[i],
        JsonObject{ { "mean", one.Mean() }, { "lowest", one.Low() }, { "highest", one.High() }, { "cases", one.Count() } });
    }
    return object;
  }

private:
  std::string Structure_, Csv_;
  std::vector<std::string> Names_;
  std::vector<Spread> Columns_; // by name; none before the first case
  std::set<std::string> Headings_;
  std::map<std::string, Spread> Voxels_, Extents_; // by key of AgreementParts()
  Spread Regions_;
};

JsonObject SummaryJson(const AgreementReport& report)
{
  return SummaryFigures(
    *report.Figures, rcn_geometry_voxels(&report.Geometry), report.Regions.size(), report.Geometry.unit == RCN_PIXELS);
}

// ---- over a data set -------------------------------------------------------------------------------

/// "0.712 (0.650 to 0.780; n = 9)": a mean, its interval (may be empty), and its cases where they are not all `cases`.
std::string CellText(const SetFigure* cell, const std::string& interval, size_t cases)
{
  const std::string count = cell ? cell->CountText(cases) : "";
  const std::string more = interval + (interval.empty() || count.empty() ? "" : "; ") + count;
  return !cell ? Fixed(NAN, 0) : cell->MeanText() + (more.empty() ? "" : " (" + more + ")");
}

std::string TextOf(const SetTable& content, const std::string& title)
{
  std::vector<std::string> header = { title };
  for (const SetFigure* column : content.Columns)
  {
    header.push_back(column->Name);
  }
  Table table(header);
  for (const SetTable::Row& one : content.Rows)
  {
    std::vector<std::string> row = { one.Name + (one.Marked ? " *" : "") };
    for (const SetFigure* cell : one.Cells)
    {
      const std::string interval = cell && std::isfinite(cell->Mean.low) ? cell->IntervalText() : "";
      row.push_back(CellText(cell, interval, one.Cases));
    }
    table.Add(row);
  }
  return table.Text();
}

std::string SetText(const AgreementSet& set, rcn_context* context)
{
  const AgreementSummary all = set.Summarize(context);
  const bool empty = !set.EmptyCases().empty();
  const AgreementSummary marked = empty ? set.Summarize(context, SetCases::Marked) : AgreementSummary();
  const std::string over = Counted(static_cast<int64_t>(all.Cases), "case") +
    (all.Patients < all.Cases ? " of " + Counted(static_cast<int64_t>(all.Patients), "patient") : "");
  std::vector<std::string> header = { "Over all cases (" + over + ")", "mean", "95 % interval", "lowest", "highest" };
  if (empty)
  {
    header.insert(header.end(), { "without empty cases", "95 % interval" });
  }
  Table table(header);
  for (const SetFigure& one : all.Figures)
  {
    std::vector<std::string> row = { one.Name, CellText(&one, "", all.Cases), one.IntervalText(), Fixed(one.Lowest, one.Digits),
      Fixed(one.Highest, one.Digits) };
    if (empty)
    {
      const SetFigure* const other = FigureOf(marked.Figures, one.Key);
      row.push_back(CellText(other, "", marked.Cases));
      row.push_back(other ? other->IntervalText() : Fixed(NAN, 0));
    }
    table.Add(row);
  }
  const std::string undefined = set.UndefinedInWords();
  std::string text = table.Text() + (empty ? set.EmptyInWords() + "\n" : "") + (undefined.empty() ? "" : undefined + "\n") +
    "\n" + TextOf(RaterTable(all), "Rater (mean, 95 % interval)");
  for (const std::string& sentence : all.Sentences())
  {
    const bool isMarked = std::any_of(all.Raters.begin(), all.Raters.end(),
      [&](const SetRater& rater) { return rater.StandsOut && rater.Sentence == sentence; });
    text += (isMarked ? "* " : "") + sentence + "\n";
  }
  if (all.Raters.size() > 1 && all.Raters.size() <= MostRatersInPairTable)
  {
    text += "\n" + TextOf(PairTable(all), "Pair (mean, 95 % interval)");
  }
  return text;
}

// ---- several structures ----------------------------------------------------------------------------

/// What is collected of each structure, or of the only one.
struct Collected
{
  Collected(const std::vector<std::string>& raters, const std::string& structure)
    : Structure(structure), Figures(structure), Set(raters, structure)
  {
  }
  std::string Structure; ///< empty: the only one
  Summary Figures;
  AgreementSet Set;
  std::unique_ptr<TextFile> Long; ///< its part of --csv-long, the first one with the header; null: not wanted
};

std::vector<Collected> CollectedFor(
  const Arguments& arguments, const std::vector<std::string>& raters, const std::vector<Structure>& structures)
{
  std::vector<Collected> all;
  for (size_t c = 0; c < structures.size() && structures.size() > 1; ++c)
  {
    all.emplace_back(raters, structures[c].Name);
  }
  if (all.empty())
  {
    all.emplace_back(raters, "");
  }
  for (Collected& one : all)
  {
    if (arguments.Has("--csv-long") && Processes::All().IsFirst())
    {
      one.Long = std::make_unique<TextFile>(arguments.Get("--csv-long"));
      one.Set.WriteLongRows([file = one.Long.get()](const std::string& row) { file->Add(row); });
    }
  }
  if (all.front().Long)
  {
    all.front().Long->Add(all.front().Set.LongHeader());
  }
  return all;
}

/// How far the raters of a case agree.
struct CaseAgreement
{
  std::vector<AgreementReport> Each; ///< by structure, or of the only one
  LabelAgreement Labels;             ///< of several together
};

/// Distances between outlines are left out of an image with tilted axes, with a remark.
CaseAgreement AgreeEach(Workspace& workspace, std::vector<std::string>& remarks)
{
  const bool surfaces = workspace.HasRightAngles();
  if (!surfaces)
  {
    remarks.push_back("Distances between outlines were not measured: the image's axes are not at right angles (gantry tilt).");
  }
  CaseAgreement agreement;
  const int count = workspace.HasStructures() ? static_cast<int>(workspace.Structures().size()) : 1;
  for (int c = 1; c <= count; ++c)
  {
    workspace.SelectStructure(c);
    agreement.Each.push_back(workspace.Agree(surfaces));
  }
  if (workspace.HasStructures())
  {
    agreement.Labels = workspace.AgreeLabels();
  }
  workspace.SelectStructure(0);
  return agreement;
}

/// What is compared between structures, and averaged over them.
struct StructureFigure
{
  const char* Key;
  const char* Name;
  double (*Of)(const rcn_agreement& figures);
  double Factor; ///< in tables
  int Digits;
};

const std::vector<StructureFigure>& StructureFigures()
{
  static const std::vector<StructureFigure> all = {
    { "mean_dice", "Mean Dice", [](const rcn_agreement& f) { return f.mean_dice; }, 1, 3 },
    { "fleiss_kappa", "Fleiss' κ", [](const rcn_agreement& f) { return f.whole.fleiss_kappa; }, 1, 3 },
    { "fleiss_kappa_union", "κ where marked", [](const rcn_agreement& f) { return f.on_union.fleiss_kappa; }, 1, 3 },
    { "disputed_share", "Disputed (% of union)", [](const rcn_agreement& f) { return DisputedShare(f); }, 100, 1 },
  };
  return all;
}

/// A row of a table for each structure, one for their mean, and one for all labels together, of which there is kappa; `first`
/// are the cells in front of each.
std::vector<std::vector<std::string>> StructureRows(
  const CaseAgreement& agreement, const Workspace& workspace, const std::vector<std::string>& first)
{
  const std::vector<AgreementReport>& reports = agreement.Each;
  std::vector<std::vector<std::string>> rows(reports.size() + 1, first);
  for (size_t c = 0; c < reports.size(); ++c)
  {
    rows[c].push_back(workspace.Structures()[c].Name);
  }
  rows.back().push_back("mean");
  for (const StructureFigure& figure : StructureFigures())
  {
    Spread all;
    for (size_t c = 0; c < reports.size(); ++c)
    {
      const double value = figure.Factor * figure.Of(*reports[c].Figures);
      rows[c].push_back(Fixed(value, figure.Digits));
      all.Add(value);
    }
    rows.back().push_back(Fixed(all.Mean(), figure.Digits));
  }
  rows.push_back(first);
  const rcn_label_agreement& labels = agreement.Labels.Figures;
  const std::string none = Fixed(NAN, 0);
  rows.back().insert(rows.back().end(),
    { "all labels", none, Fixed(labels.whole.fleiss_kappa, 3), Fixed(labels.on_union.fleiss_kappa, 3), none });
  return rows;
}

Table StructureTable(std::vector<std::string> header)
{
  for (const StructureFigure& figure : StructureFigures())
  {
    header.push_back(figure.Name);
  }
  return Table(header);
}

/// The JSON of a case: that of its only structure, or of each by name under "structures", with their "mean" and all "labels".
JsonObject CaseJson(const CaseAgreement& agreement, const Workspace& workspace, size_t regions)
{
  const std::vector<AgreementReport>& reports = agreement.Each;
  if (!workspace.HasStructures())
  {
    return JsonObject(AgreementJson(reports.front(), workspace, regions));
  }
  JsonObject structures, mean;
  for (size_t c = 0; c < reports.size(); ++c)
  {
    structures.Set(workspace.Structures()[c].Name, AgreementJson(reports[c], workspace, regions));
  }
  for (const StructureFigure& figure : StructureFigures())
  {
    Spread all;
    for (const AgreementReport& report : reports)
    {
      all.Add(figure.Of(*report.Figures));
    }
    mean.Set(figure.Key, all.Mean());
  }
  return JsonObject{ { "structures", structures }, { "mean", mean },
    { "labels", LabelAgreementJson(agreement.Labels, workspace) } };
}

/// The agreement on one structure, or on the only one, in what CaseJson() made.
const json_t* PartOf(const json_t* json, const std::string& structure)
{
  return structure.empty() ? json : json_object_get(json_object_get(json, "structures"), structure.c_str());
}

std::string CaseText(const CaseAgreement& agreement, const Workspace& workspace, size_t regions)
{
  const std::vector<AgreementReport>& reports = agreement.Each;
  if (!workspace.HasStructures())
  {
    return AgreementText(reports.front(), workspace, "Agreement", regions);
  }
  Table table = StructureTable({ "Structure" });
  for (const std::vector<std::string>& row : StructureRows(agreement, workspace, {}))
  {
    table.Add(row);
  }
  std::string text = "Agreement on " + Counted(static_cast<int64_t>(reports.size()), "structure") + ": " +
    DescribeCase(workspace) + "\n\n" + table.Text() + "\n" +
    OverallTable(agreement.Labels.Figures.whole, agreement.Labels.Figures.on_union, "All labels together");
  for (size_t c = 0; c < reports.size(); ++c)
  {
    text += "\n" + AgreementText(reports[c], workspace, workspace.Structures()[c].Name, regions);
  }
  return text;
}

/// The figures of all raters over the cases: a row for each structure, one for their mean, and one for all labels together.
std::string SetsText(const std::vector<Collected>& all, const AgreementSet& labels, rcn_context* context)
{
  std::vector<AgreementSummary> summaries;
  std::vector<std::string> header = { "Over all cases" }, mean = { "mean" };
  for (const Collected& one : all)
  {
    summaries.push_back(one.Set.Summarize(context));
  }
  const SetFigures columns = summaries.front().Figures;
  const auto row = [&](const std::string& name, const AgreementSummary& summary) {
    std::vector<std::string> cells = { name };
    for (const SetFigure& column : columns)
    {
      const SetFigure* const mine = FigureOf(summary.Figures, column.Key);
      cells.push_back(CellText(mine, "", summary.Cases));
    }
    return cells;
  };
  for (const SetFigure& column : columns)
  {
    Spread spread;
    for (const AgreementSummary& summary : summaries)
    {
      const SetFigure* const other = FigureOf(summary.Figures, column.Key);
      spread.Add(other ? other->Mean.value : NAN);
    }
    header.push_back(column.Name);
    mean.push_back(Fixed(spread.Mean(), column.Digits));
  }
  Table table(header);
  for (size_t c = 0; c < all.size(); ++c)
  {
    table.Add(row(all[c].Structure, summaries[c]));
  }
  table.Add(mean);
  table.Add(row("all labels", labels.Summarize(context)));
  return table.Text();
}

// ---- both ways of comparing ------------------------------------------------------------------------

/// What both ways of comparing end with, but for the JSON.
void WriteTables(const Arguments& arguments, const std::string& text, std::vector<Collected>& collected)
{
  Print(arguments, text);
  std::vector<std::string> csv;
  for (const Collected& one : collected)
  {
    csv.push_back(one.Figures.Csv());
    if (one.Long && &one != &collected.front())
    {
      collected.front().Long->Add(*one.Long);
    }
  }
  if (arguments.Has("--csv") && Processes::All().IsFirst())
  {
    WriteText(arguments.Get("--csv"), JoinCsv(csv));
  }
  if (collected.front().Long)
  {
    collected.front().Long->Commit();
  }
}

/// The maps behind --levels and --entropy, with a component for each structure.
void WriteMaps(const Arguments& arguments, Terminal& terminal, Workspace& workspace)
{
  if (arguments.Has("--levels"))
  {
    const rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    const Volume map = workspace.MapOfEach([&] { return workspace.Fuse(options).Map; });
    terminal.Remark(WriteImage(arguments.Get("--levels"), map.View(), Content::Levels, WriteOptionsFrom(arguments)));
  }
  if (arguments.Has("--entropy"))
  {
    const Volume map = workspace.MapOfEach([&] { return workspace.EntropyMap(); });
    terminal.Remark(WriteImage(arguments.Get("--entropy"), map.View(), Content::Probability, WriteOptionsFrom(arguments)));
  }
}

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
  std::vector<std::string> remarks = workspace.Remarks();
  seconds.Read = watch.Lap();
  const CaseAgreement agreement = AgreeEach(workspace, remarks);
  seconds.Compute = watch.Lap();
  for (const std::string& remark : remarks)
  {
    terminal.Remark(remark);
  }
  WriteMaps(arguments, terminal, workspace);
  seconds.Write = watch.Lap();
  JsonObject json = CaseJson(agreement, workspace, regions);
  std::vector<Collected> collected = CollectedFor(arguments, workspace.RaterNames(), workspace.Structures());
  const Case one{ "case", "", "", {}, {}, nullptr };
  for (size_t c = 0; c < collected.size(); ++c)
  {
    const Extent extent(agreement.Each[c].Geometry);
    collected[c].Figures.Add(one, SummaryJson(agreement.Each[c]).Get(), extent.Heading, extent.PerVoxel);
    collected[c].Set.Add(one, PartOf(json.Get(), collected[c].Structure));
  }
  WriteTables(arguments, CaseText(agreement, workspace, regions), collected);
  WriteResults(arguments, json.Set("seconds", seconds.Json()));
  return Done;
}

/// What a case of a list leaves for the first process: "json", "figures" of each structure, "heading" and "per_voxel" of its
/// Extent, "rows" of the table, "seconds".
JsonHandle CompareCase(
  Workspace& workspace, const DataList& list, const Case& one, const Arguments& arguments, std::vector<std::string>& remarks)
{
  Seconds spent;
  Stopwatch watch;
  workspace.LoadCase(one, list.Raters);
  remarks.push_back(workspace.LabelRemark());
  spent.Read = watch.Lap();
  const CaseAgreement agreement = AgreeEach(workspace, remarks);
  spent.Compute = watch.Lap();
  JsonObject json = CaseJson(agreement, workspace, static_cast<size_t>(arguments.GetInteger("--regions", 10, 0, 1000000)));
  json.Set("case", one.Id).Set("split", one.Split);
  const rcn_agreement& f = *agreement.Each.front().Figures;
  JsonArray figures, rows;
  for (const AgreementReport& report : agreement.Each)
  {
    figures.Add(SummaryJson(report));
  }
  if (workspace.HasStructures())
  {
    for (const std::vector<std::string>& row : StructureRows(agreement, workspace, { one.Id, std::to_string(f.present_count) }))
    {
      rows.Add(row);
    }
  }
  else
  {
    rows.Add(std::vector<std::string>{ one.Id, std::to_string(f.present_count), Fixed(f.mean_dice, 3),
      Fixed(f.whole.fleiss_kappa, 3), Fixed(f.on_union.fleiss_kappa, 3), Fixed(100 * DisputedShare(f), 1) });
  }
  const Extent extent(agreement.Each.front().Geometry);
  return JsonHandle(JsonObject{ { "json", json }, { "figures", figures }, { "heading", extent.Heading },
    { "per_voxel", extent.PerVoxel }, { "rows", rows }, { "seconds", spent.Json() } }
      .Release());
}

/// What is known of all cases; `table` has a row for each of them.
std::string ListText(
  const std::vector<Collected>& collected, const AgreementSet& labels, const Table& table, rcn_context* context)
{
  const bool some = collected.front().Set.Count() > 0; // the first process only
  std::string text = table.Text() + "\n";
  if (collected.size() > 1 && some)
  {
    text += SetsText(collected, labels, context) + "\n";
  }
  for (const Collected& one : collected)
  {
    text += (one.Structure.empty() ? "" : "Structure " + one.Structure + "\n\n") +
      (some ? SetText(one.Set, context) + "\n" : "") + one.Figures.Text() + (&one == &collected.back() ? "" : "\n");
  }
  return text;
}

/// The keys "summary" and "data_set", of the only structure or of each under "structures", with the figures of all "labels".
void SetListJson(JsonObject& json, const std::vector<Collected>& collected, const AgreementSet& labels, rcn_context* context)
{
  JsonObject structures;
  for (const Collected& one : collected)
  {
    JsonObject part;
    JsonObject& target = one.Structure.empty() ? json : part;
    target.Set("summary", one.Figures.Json());
    target.Set("data_set", one.Set.Count() > 0 ? Json(one.Set.Json(context)) : Json(nullptr));
    structures.Set(one.Structure, part);
  }
  if (collected.size() > 1)
  {
    json.Set("structures", structures);
  }
  if (collected.size() > 1 && labels.Count() > 0)
  {
    const Json all(labels.Json(context));
    json.Set("labels", JsonObject{ { "figures", json_incref(json_object_get(all.Get(), "figures")) } });
  }
}

int AgreeList(const Arguments& arguments, Terminal& terminal)
{
  DataList list = DataListFrom(arguments);
  terminal.Remark(LeaveOutUnrated(list, arguments.Get("--split")));
  Workspace workspace(WorkspaceOptionsFrom(arguments));
  terminal.Watch(workspace);
  Table table = StructureTable(list.HasStructures() ? std::vector<std::string>{ "Case", "Raters", "Structure" }
                                                    : std::vector<std::string>{ "Case", "Raters" });
  std::vector<Collected> collected = CollectedFor(arguments, list.Raters, list.Structures);
  AgreementSet labels(list.Raters); // of several structures together
  Seconds seconds;
  std::unique_ptr<DocumentFile> json;
  if (arguments.Has("--json") && Processes::All().IsFirst())
  {
    json = std::make_unique<DocumentFile>(arguments.Get("--json"), "cases");
  }
  const auto compare = [&](const Case& one, size_t, std::vector<std::string>& remarks) {
    return CompareCase(workspace, list, one, arguments, remarks);
  };
  const std::vector<LeftOutCase> leftOut =
    ForEachCase(list, LoopFor(arguments, terminal), compare, [&](const Case& one, const json_t* record) {
      for (size_t c = 0; c < collected.size(); ++c)
      {
        collected[c].Figures.Add(one, json_array_get(json_object_get(record, "figures"), c),
          json_string_value(json_object_get(record, "heading")), json_number_value(json_object_get(record, "per_voxel")));
        collected[c].Set.Add(one, PartOf(json_object_get(record, "json"), collected[c].Structure));
      }
      if (list.HasStructures())
      {
        labels.Add(one, json_object_get(json_object_get(record, "json"), "labels"));
      }
      for (size_t i = 0; i < json_array_size(json_object_get(record, "rows")); ++i)
      {
        table.Add(StringsFrom(json_array_get(json_object_get(record, "rows"), i)));
      }
      if (json)
      {
        json->Add(json_object_get(record, "json"));
      }
      seconds.Add(json_object_get(record, "seconds"));
    });
  WriteTables(arguments, ListText(collected, labels, table, workspace.Context()), collected);
  if (json)
  {
    JsonObject others{ { "left_out", LeftOutJson(leftOut) } };
    SetListJson(others, collected, labels, workspace.Context());
    json->Commit(others.Set("seconds", seconds.Json()).Get());
  }
  return ExitCodeOf(leftOut);
}

int RunAgree(const Arguments& arguments)
{
  Terminal terminal(arguments);
  CheckCaseOrList(arguments);
  CheckTextOutputs(arguments);
  return arguments.Has("--data") ? AgreeList(arguments, terminal) : AgreeOne(arguments, terminal);
}

} // namespace

std::string AgreementText(const AgreementReport& report, const Workspace& workspace, const std::string& title, size_t regions)
{
  const rcn_agreement& figures = *report.Figures;
  const Extent extent(report.Geometry);
  std::string text = title + ": " + DescribeCase(workspace) + "\n\n" + RatersText(figures, workspace, extent) + "\n";
  if (figures.present_count > MostRatersInPairTable)
  {
    text += "Pairs of raters: mean Dice " + Fixed(figures.mean_dice, 3) + " (each pair: --json)\n\n";
  }
  else if (figures.present_count > 1)
  {
    text += PairsText(figures, workspace, report.HasSurfaces, extent) + "\n";
  }
  return text + OverallTable(figures.whole, figures.on_union) + "\n" + LevelTable(figures, extent) + "\n" +
    RegionTable(report, workspace, extent, regions);
}

Command AgreeCommand()
{
  return { "agree", "measure how much raters agree, and show where they disagree",
    { "--rater NAME=FILE --rater NAME=FILE ... [--image FILE]", "--data LIST [--csv FILE] [--csv-long FILE]" },
    "Compares the raters of one case (or of every case of a data list): Dice, Jaccard, Cohen's kappa, Hausdorff "
    "(95 %) and mean surface distance of each pair, each rater against the majority of the others (voxels where they are "
    "split evenly do not count), STAPLE's sensitivity and specificity, Fleiss' kappa, "
    "Krippendorff's alpha and Gwet's AC1 on the whole image and where anybody marked, the volume of each level of "
    "consensus, and the disputed regions with their places, largest first. Over a data list: means with 95 % intervals over "
    "patients (where the list names them, otherwise over cases; five at least), each rater and pair, with and without the "
    "cases where nobody marked anything, and a mark for a rater who agrees less with the others than they do among "
    "themselves. Several structures are compared one by one, with their mean, and all labels together by the kappas for "
    "nominal labels. Volumes are in mL and distances in mm, 2-D images are measured by area "
    "in mm², and a picture without spacing (PNG, JPEG) in pixels.",
    Join(
      Join(CaseOptions(),
        { { "--regions", "N", "list so many disputed regions (10)" },
          { "--levels", "FILE", "also write how many raters marked each voxel; a component for each structure", {}, false,
            FileUse::Written },
          { "--entropy", "FILE", "also write the entropy of the raters' votes (bits), likewise", {}, false, FileUse::Written },
          { "--csv", "FILE", "one row of figures per case; - is standard output", {}, false, FileUse::Written },
          { "--csv-long", "FILE", "a row per case, rater or pair, and figure (long form); - is standard output", {}, false,
            FileUse::Written } }),
      OutputOptions()),
    RunAgree };
}

} // namespace rcn
