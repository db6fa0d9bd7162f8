// SPDX-License-Identifier: Apache-2.0
#include "rcnTables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "rcnAgreementFigures.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

// Tables carry results through a scene file, so they are written for people and read back here: names of columns and rows are
// the format, and must be understood by later versions.
const char* const NotDefined = "not defined";

/// For people: "not defined" instead of NaN.
std::string Words(double value)
{
  return std::isfinite(value) ? CsvNumber(value) : NotDefined;
}

/// All digits, so that it is the same number again.
std::string AllDigits(double value)
{
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return std::isfinite(value) ? text : NotDefined;
}

/// "at least 2" as the key of a curve.
std::string LevelKey(int atLeast)
{
  return "at least " + std::to_string(atLeast);
}

const char* const AllRaters = "all raters";
const char* const OneRater = "rater: ";

} // namespace

// By the first column, which names the row: others may have been added, or sorted in another way.
int Table::RowOf(const std::string& first) const
{
  for (size_t row = 0; row < this->RowCount(); ++row)
  {
    if (this->Columns.front().Cells[row] == first)
    {
      return static_cast<int>(row);
    }
  }
  return -1;
}

std::string Table::Text(int row, const std::string& column) const
{
  for (const TableColumn& one : this->Columns)
  {
    if (one.Name == column)
    {
      return row >= 0 && static_cast<size_t>(row) < one.Cells.size() ? one.Cells[static_cast<size_t>(row)] : "";
    }
  }
  return "";
}

// NaN for whatever is not wholly a number: a person can edit a table.
double Table::Number(int row, const std::string& column) const
{
  const std::string text = this->Text(row, column);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end || !std::isfinite(value) ? NAN : value;
}

void Table::AddText(const std::string& name, const std::vector<std::string>& cells)
{
  this->Columns.push_back({ name, cells, false });
}

void Table::AddNumbers(const std::string& name, const std::vector<double>& cells)
{
  TableColumn column{ name, {}, true };
  for (const double cell : cells)
  {
    column.Cells.push_back(AllDigits(cell));
  }
  this->Columns.push_back(column);
}

// ---- agreement -----------------------------------------------------------------------------------------------------------

namespace
{

/// A row of the summary: a figure, or a number of voxels as volume.
struct SummaryRow
{
  std::string Name;
  double rcn_agreement::* Value;
  rcn_overall_agreement rcn_agreement::* Part; ///< where the value is one of a part
  double rcn_overall_agreement::* Of;
  int64_t rcn_agreement::* Voxels;
};

/// The rows by name with pointers to members: the same table writes them and reads them back.
std::vector<SummaryRow> SummaryRows(const Extent& extent)
{
  using All = rcn_agreement;
  using Overall = rcn_overall_agreement;
  const std::string unit = " (" + extent.Unit.substr(1) + ")";
  return { { "Mean Dice of all pairs", &All::mean_dice, nullptr, nullptr, nullptr },
    { "Fleiss kappa where anybody marked", nullptr, &All::on_union, &Overall::fleiss_kappa, nullptr },
    { "Gwet AC1 where anybody marked", nullptr, &All::on_union, &Overall::gwet_ac1, nullptr },
    { "Fleiss kappa, whole image", nullptr, &All::whole, &Overall::fleiss_kappa, nullptr },
    { "Krippendorff alpha, whole image", nullptr, &All::whole, &Overall::krippendorff_alpha, nullptr },
    { "Gwet AC1, whole image", nullptr, &All::whole, &Overall::gwet_ac1, nullptr },
    { "Marked by anybody" + unit, nullptr, nullptr, nullptr, &All::union_voxels },
    { "Marked by the majority" + unit, nullptr, nullptr, nullptr, &All::majority_voxels },
    { "Marked by all" + unit, nullptr, nullptr, nullptr, &All::intersection_voxels },
    { "Disputed" + unit, nullptr, nullptr, nullptr, &All::disputed_voxels } };
}

/// Back from an extent to the whole number that it was made of.
int64_t VoxelsOf(double extent, const Extent& unit)
{
  return std::isfinite(extent) ? std::llround(extent / unit.PerVoxel) : 0;
}

} // namespace

// A row for each rater; figures of pairs are columns "... with NAME".
Table RaterTable(const AgreementReport& report, const std::vector<std::string>& raters)
{
  const rcn_agreement& figures = *report.Figures;
  const Extent extent(report.Geometry);
  Table table;
  table.AddText("Rater", raters);
  std::vector<std::string> cells;
  for (int r = 0; r < figures.raters; ++r)
  {
    const rcn_rater_agreement& rater = figures.rater[r];
    cells.push_back(Words(rater.present ? static_cast<double>(rater.voxels) * extent.PerVoxel : NAN));
  }
  table.AddText(extent.Heading, cells);
  for (const auto& figure : RaterFigures())
  {
    cells.clear();
    for (int r = 0; r < figures.raters; ++r)
    {
      cells.push_back(Words(figure.Of(figures.rater[r])));
    }
    table.AddText(figure.Name, cells);
  }
  for (const auto& figure : PairFigures())
  {
    for (int other = 0; other < figures.raters && (report.HasSurfaces || !figure.IsDistance()); ++other)
    {
      cells.clear();
      for (int r = 0; r < figures.raters; ++r)
      {
        cells.push_back(Words(figure.Of(figures.pair[r * figures.raters + other])));
      }
      table.AddText(figure.Heading(extent.Length) + " with " + raters[static_cast<size_t>(other)], cells);
    }
  }
  return table;
}

Table SummaryTable(const AgreementReport& report)
{
  const rcn_agreement& figures = *report.Figures;
  const Extent extent(report.Geometry);
  std::vector<std::string> names, values;
  for (const SummaryRow& row : SummaryRows(extent))
  {
    names.push_back(row.Name);
    values.push_back(Words(row.Value ? figures.*row.Value
        : row.Part                   ? figures.*row.Part.*row.Of
                                     : static_cast<double>(figures.*row.Voxels) * extent.PerVoxel));
  }
  names.push_back("Each rater's figures");
  values.push_back(AgainstOthersText());
  // A remark is a row like the others, so that it is seen wherever the table is.
  if (!MajorityRemark(figures.present_count).empty())
  {
    names.push_back("Majority");
    values.push_back(MajorityRemark(figures.present_count));
  }
  Table table;
  table.AddText("What", names);
  table.AddText("Value", values);
  return table;
}

// The place in the world for people, the voxel and the box for programs.
Table DisputeTable(const AgreementReport& report, const std::vector<std::string>& raters)
{
  const Extent extent(report.Geometry);
  std::vector<double> volume, voxels, most, position[3], at[3], first[3], size[3];
  std::vector<std::string> by, number;
  for (const rcn_dispute& region : report.Regions)
  {
    double world[3];
    const double index[3] = { static_cast<double>(region.at[0]), static_cast<double>(region.at[1]),
      static_cast<double>(region.at[2]) };
    rcn_geometry_to_world(world, &report.Geometry, index);
    ToRas(world, world);
    for (int a = 0; a < 3; ++a)
    {
      position[a].push_back(world[a]);
      at[a].push_back(index[a]);
      first[a].push_back(static_cast<double>(region.box.first[a]));
      size[a].push_back(static_cast<double>(region.box.end[a] - region.box.first[a]));
    }
    number.push_back(std::to_string(number.size() + 1));
    volume.push_back(static_cast<double>(region.voxels) * extent.PerVoxel);
    voxels.push_back(static_cast<double>(region.voxels));
    most.push_back(region.max_votes);
    by.push_back(JoinNames(NamesOf(region.marked_by, raters)));
  }
  Table table;
  table.AddText("Region", number);
  table.AddNumbers(extent.Heading, volume);
  table.AddNumbers("Voxels", voxels);
  const char* const axes[3] = { "R", "A", "S" };
  const char* const indices[3] = { "I", "J", "K" };
  for (int a = 0; a < 3; ++a)
  {
    table.AddNumbers(axes[a], position[a]);
  }
  table.AddText("Marked by", by);
  table.AddNumbers("At most", most);
  for (int a = 0; a < 3; ++a)
  {
    table.AddNumbers(indices[a], at[a]);
    table.AddNumbers(std::string("First ") + indices[a], first[a]);
    table.AddNumbers(std::string("Size ") + indices[a], size[a]);
  }
  return table;
}

namespace
{

/// As much memory as rcn_agreement_create() takes, of our own.
struct OwnAgreement
{
  rcn_agreement Figures{};
  std::vector<rcn_pair_agreement> Pairs;
};

/// Back from JoinNames(), which keeps the order of the raters: a name that begins another one is no riddle.
uint64_t MarkedBy(const std::string& names, const std::vector<std::string>& raters)
{
  uint64_t marked = 0;
  size_t at = 0;
  for (size_t r = 0; r < raters.size(); ++r)
  {
    const size_t end = at + raters[r].size();
    if (at < names.size() && names.compare(at, raters[r].size(), raters[r]) == 0 &&
      (end == names.size() || names.compare(end, 2, ", ") == 0))
    {
      marked |= uint64_t(1) << r;
      at = end + 2;
    }
  }
  return marked;
}

std::vector<rcn_dispute> DisputesFrom(const Table& table, const std::vector<std::string>& raters, const rcn_geometry& geometry)
{
  std::vector<rcn_dispute> regions;
  const char* const indices[3] = { "I", "J", "K" };
  for (int row = 0; row < static_cast<int>(table.RowCount()); ++row)
  {
    const auto whole = [&](const std::string& column) {
      const double value = table.Number(row, column);
      return std::isfinite(value) ? std::llround(value) : 0;
    };
    rcn_dispute region{};
    region.voxels = whole("Voxels");
    region.volume_ml = static_cast<double>(region.voxels) * Extent(geometry).PerVoxel;
    region.max_votes = static_cast<int>(whole("At most"));
    region.marked_by = MarkedBy(table.Text(row, "Marked by"), raters);
    for (int a = 0; a < 3; ++a)
    {
      region.at[a] = whole(indices[a]);
      region.centroid[a] = static_cast<double>(region.at[a]);
      region.box.first[a] = whole(std::string("First ") + indices[a]);
      region.box.end[a] = region.box.first[a] + whole(std::string("Size ") + indices[a]);
    }
    rcn_geometry_to_world(region.centroid_world, &geometry, region.centroid);
    regions.push_back(region);
  }
  return regions;
}

} // namespace

AgreementReport AgreementFromTables(
  const Table& ofRaters, const Table& summary, const Table& disputes, const rcn_geometry& geometry)
{
  AgreementReport report;
  report.Geometry = geometry;
  const Extent extent(geometry);
  const size_t count = ofRaters.RowCount();
  // Another table, or one that was emptied: an empty report, not an error, because a scene may hold anything.
  if (count == 0 || count > RCN_MAX_RATERS || ofRaters.Columns.front().Name != "Rater" || summary.RowCount() == 0)
  {
    return report;
  }
  const std::vector<std::string> raters = ofRaters.Columns.front().Cells;
  auto own = std::make_shared<OwnAgreement>();
  rcn_agreement& figures = own->Figures;
  own->Pairs.assign(count * count, { NAN, NAN, NAN, NAN, NAN });
  figures.pair = own->Pairs.data();
  figures.raters = static_cast<int>(count);
  figures.voxel_ml = extent.PerVoxel;
  for (int r = 0; r < figures.raters; ++r)
  {
    rcn_rater_agreement& rater = figures.rater[r];
    const double volume = ofRaters.Number(r, extent.Heading);
    rater.present = std::isfinite(volume);
    figures.present_count += rater.present;
    rater.voxels = VoxelsOf(volume, extent);
    rater.volume_ml = volume;
    for (const auto& figure : RaterFigures())
    {
      rater.*figure.Value = ofRaters.Number(r, figure.Name);
    }
    for (const auto& figure : PairFigures())
    {
      for (int other = 0; other < figures.raters; ++other)
      {
        const std::string column = figure.Heading(extent.Length) + " with " + raters[static_cast<size_t>(other)];
        own->Pairs[static_cast<size_t>(r) * count + static_cast<size_t>(other)].*figure.Value = ofRaters.Number(r, column);
        report.HasSurfaces = report.HasSurfaces || (figure.IsDistance() && !ofRaters.Text(r, column).empty());
      }
    }
  }
  for (const SummaryRow& row : SummaryRows(extent))
  {
    const double value = summary.Number(summary.RowOf(row.Name), "Value");
    if (row.Voxels)
    {
      figures.*row.Voxels = VoxelsOf(value, extent);
    }
    else
    {
      (row.Value ? figures.*row.Value : figures.*row.Part.*row.Of) = value;
    }
  }
  report.Figures = { own, &own->Figures };
  report.Regions = DisputesFrom(disputes, raters, geometry);
  return report;
}

// ---- volumes -------------------------------------------------------------------------------------------------------------

namespace
{

const char* const ExpectedPart = "expected";
const char* const ComponentPart = "component ";

} // namespace

Table VolumesTable(const PredictedVolumes& volumes)
{
  const size_t parts = 1 + volumes.AtLeast.size() + volumes.Components.size();
  // Rows: the expected volume, one for each number of raters, one for each connected component. Cells that mean nothing in a
  // row stay empty.
  std::vector<std::string> part = { ExpectedPart }, highest(parts), reaches(parts), notes(parts), atLeast(parts);
  std::vector<std::vector<std::string>> place(6, std::vector<std::string>(parts));
  std::vector<double> volume = { volumes.Expected };
  for (int t = 1; t <= static_cast<int>(volumes.AtLeast.size()); ++t)
  {
    part.push_back(AtLeastInWords(t, volumes.Raters));
    volume.push_back(volumes.AtLeast[static_cast<size_t>(t) - 1]);
  }
  for (size_t i = 0; i < volumes.Components.size(); ++i)
  {
    const PredictedComponent& one = volumes.Components[i];
    const size_t row = part.size();
    part.push_back(ComponentPart + std::to_string(i + 1));
    volume.push_back(one.Expected);
    highest[row] = CsvNumber(one.Highest);
    reaches[row] = one.Reaches();
    atLeast[row] = std::to_string(one.AtLeast);
    for (size_t a = 0; a < 3; ++a)
    {
      place[a][row] = CsvNumber(one.Ras[a]);
      place[3 + a][row] = std::to_string(one.At[a]);
    }
  }
  Table table;
  table.AddText("Part", part);
  table.AddNumbers(volumes.Name + " (" + volumes.Unit + ")", volume);
  for (const PredictedInterval& interval : volumes.Intervals) // text: cells stay empty where there is none
  {
    const std::string level = " (" + PercentText(interval.Level) + ")";
    std::vector<std::string> low(parts), high(parts);
    low.front() = CsvNumber(interval.Low);
    high.front() = CsvNumber(interval.High);
    table.AddText("Low" + level, low);
    table.AddText("High" + level, high);
  }
  table.AddText("Highest share of raters", highest);
  table.AddText("Reaches", reaches);
  table.AddText("At least", atLeast);
  const char* const axes[6] = { "R", "A", "S", "I", "J", "K" };
  for (size_t a = 0; a < 6; ++a)
  {
    table.AddText(axes[a], place[a]);
  }
  notes[0] = volumes.Sentence();
  if (parts > 1)
  {
    notes[1] = volumes.Remark;
  }
  table.AddText("In words", notes);
  std::vector<std::string> behind(parts);
  behind.front() = std::to_string(volumes.Cases);
  table.AddText("Validation cases", behind);
  return table;
}

// The way back; a table that is not of volumes gives one that is not known.
PredictedVolumes VolumesFromTable(const Table& table)
{
  PredictedVolumes volumes;
  const int first = table.RowOf(ExpectedPart);
  const size_t open = table.Columns.size() > 1 ? table.Columns[1].Name.find(" (") : std::string::npos;
  if (first != 0 || open == std::string::npos)
  {
    return volumes;
  }
  const std::string heading = table.Columns[1].Name;
  volumes.Name = heading.substr(0, open);
  volumes.Unit = heading.substr(open + 2, heading.size() - open - 3);
  volumes.Expected = table.Number(first, heading);
  for (int row = 1; row < static_cast<int>(table.RowCount()); ++row)
  {
    if (table.Columns.front().Cells[static_cast<size_t>(row)].rfind(ComponentPart, 0) != 0)
    {
      volumes.AtLeast.push_back(table.Number(row, heading));
      continue;
    }
    const auto number = [&](const std::string& column) {
      const double value = table.Number(row, column);
      return std::isfinite(value) ? value : 0;
    };
    PredictedComponent one;
    one.Expected = number(heading);
    one.Highest = number("Highest share of raters");
    one.AtLeast = static_cast<int>(number("At least"));
    one.Majority = table.Text(row, "Reaches") == "majority";
    const char* const axes[3] = { "R", "A", "S" };
    const char* const indices[3] = { "I", "J", "K" };
    for (int a = 0; a < 3; ++a)
    {
      one.Ras[a] = number(axes[a]);
      one.At[a] = std::llround(number(indices[a]));
    }
    volumes.Components.push_back(one);
  }
  // Not a column of its own: there is a row for each of them.
  volumes.Raters = static_cast<int>(volumes.AtLeast.size());
  for (const double level : VolumeLevels)
  {
    const std::string name = " (" + PercentText(level) + ")";
    volumes.Intervals.push_back({ level, table.Number(first, "Low" + name), table.Number(first, "High" + name) });
  }
  volumes.OfPatients = table.Text(0, "In words").find("validation patient") != std::string::npos;
  volumes.Remark = table.Text(1, "In words");
  const double cases = table.Number(0, "Validation cases");
  volumes.Cases = std::isfinite(cases) ? static_cast<int>(cases) : 0;
  return volumes;
}

// ---- calibration ---------------------------------------------------------------------------------------------------------

namespace
{

const char* const CasesRow = "cases";
const char* const CircularRow = "circular";
const char* const FittedRow = "fitted_here";
const char* const LevelsRow = "level_source"; // rcn_level_source

void AddCurve(std::map<std::string, std::vector<double>>& numbers, std::vector<std::string>& curves,
  std::vector<std::string>& when, const std::vector<rcn_calib_bin>& bins, const std::string& curve, bool before)
{
  for (const rcn_calib_bin& bin : bins)
  {
    curves.push_back(curve);
    when.push_back(before ? "before" : "now");
    numbers["Predicted"].push_back(bin.confidence);
    numbers["Observed"].push_back(bin.frequency);
    numbers["From"].push_back(bin.lower);
    numbers["To"].push_back(bin.upper);
    numbers["Count"].push_back(static_cast<double>(bin.count));
  }
}

/// The expected calibration error of bins, as the core defines it.
double EceOf(const std::vector<rcn_calib_bin>& bins)
{
  double sum = 0, count = 0;
  for (const rcn_calib_bin& bin : bins)
  {
    if (bin.count > 0)
    {
      sum += std::fabs(bin.confidence - bin.frequency) * static_cast<double>(bin.count);
      count += static_cast<double>(bin.count);
    }
  }
  return count > 0 ? sum / count : NAN;
}

} // namespace

Table FiguresTable(const EvaluationReport& report, const EvaluationReport* before)
{
  std::vector<std::string> names;
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    names.push_back(rcn_figure_name(static_cast<rcn_figure>(f)));
  }
  // The core's figures under their own names, then what else is needed to show the report again.
  names.insert(names.end(), { "auc", "auc_pairs", CasesRow, CircularRow, FittedRow, LevelsRow });
  const auto values = [](const EvaluationReport& one) {
    std::vector<std::string> cells;
    for (const double figure : one.Figures)
    {
      cells.push_back(Words(figure));
    }
    cells.push_back(Words(one.Auc.reference));
    cells.push_back(Words(one.Auc.pairs));
    cells.push_back(std::to_string(one.Cases));
    cells.push_back(one.CircularCases.empty() ? "no" : "yes");
    cells.push_back(one.FittedHere ? "yes" : "no");
    cells.push_back(std::to_string(one.LevelSource));
    return cells;
  };
  Table table;
  table.AddText("Figure", names);
  table.AddText("Value", values(report));
  if (before)
  {
    table.AddText("Before", values(*before));
  }
  return table;
}

Table CurvesTable(const EvaluationReport& report, const EvaluationReport* before, const std::vector<std::string>& raters)
{
  std::map<std::string, std::vector<double>> numbers;
  std::vector<std::string> curves, when;
  for (const EvaluationReport* one : { &report, before })
  {
    if (!one)
    {
      continue;
    }
    const bool old = one == before;
    AddCurve(numbers, curves, when, one->Bins, AllRaters, old);
    for (size_t r = 0; r < one->RaterBins.size() && r < raters.size(); ++r)
    {
      AddCurve(numbers, curves, when, one->RaterBins[r], OneRater + raters[r], old);
    }
    for (const LevelDiagram& level : one->Levels)
    {
      AddCurve(numbers, curves, when, level.Bins, LevelKey(level.AtLeast), old);
    }
  }
  Table table;
  table.AddText("Curve", curves);
  table.AddText("When", when);
  for (const char* const name : { "Predicted", "Observed", "From", "To", "Count" })
  {
    table.AddNumbers(name, numbers[name]);
  }
  return table;
}

Table ReliabilityTable(const EvaluationReport& report)
{
  std::vector<double> predicted, observed, lower, upper, pairs;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      predicted.push_back(bin.confidence);
      observed.push_back(bin.frequency);
      lower.push_back(bin.lower);
      upper.push_back(bin.upper);
      pairs.push_back(static_cast<double>(bin.count));
    }
  }
  Table table;
  table.AddNumbers("Predicted", predicted);
  table.AddNumbers("Observed", observed);
  table.AddNumbers("From", lower);
  table.AddNumbers("To", upper);
  table.AddNumbers("Voxel-rater pairs", pairs);
  return table;
}

bool EvaluationFromTables(EvaluationReport& report, const Table& figures, const Table& curves, bool before)
{
  const std::string column = before ? "Before" : "Value";
  EvaluationReport own;
  for (int row = 0; row < static_cast<int>(curves.RowCount()); ++row)
  {
    if ((curves.Text(row, "When") == "before") != before)
    {
      continue;
    }
    const double count = curves.Number(row, "Count");
    const rcn_calib_bin bin{ curves.Number(row, "From"), curves.Number(row, "To"),
      std::isfinite(count) ? std::llround(count) : 0, curves.Number(row, "Predicted"), curves.Number(row, "Observed") };
    const std::string curve = curves.Text(row, "Curve");
    const bool same = row > 0 && curves.Text(row - 1, "Curve") == curve;
    if (curve == AllRaters)
    {
      own.Bins.push_back(bin);
    }
    else if (curve.rfind(OneRater, 0) == 0)
    {
      if (!same || own.RaterBins.empty())
      {
        own.RaterBins.emplace_back();
      }
      own.RaterBins.back().push_back(bin);
    }
    else
    {
      if (!same || own.Levels.empty())
      {
        own.Levels.emplace_back();
        own.Levels.back().AtLeast = static_cast<int>(own.Levels.size());
      }
      own.Levels.back().Bins.push_back(bin);
    }
  }
  if (own.Bins.empty() || figures.RowOf(rcn_figure_name(RCN_MR_ECE)) < 0 ||
    figures.Text(figures.RowOf(rcn_figure_name(RCN_MR_ECE)), column).empty())
  {
    return false;
  }
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    own.Figures[f] = figures.Number(figures.RowOf(rcn_figure_name(static_cast<rcn_figure>(f))), column);
    own.Interval[f] = { own.Figures[f], NAN, NAN, NAN, NAN, 0 };
    own.Paper[f] = {};
  }
  own.Auc = { figures.Number(figures.RowOf("auc"), column), figures.Number(figures.RowOf("auc_pairs"), column), 0, 0, 0, 0 };
  const double cases = figures.Number(figures.RowOf(CasesRow), column);
  own.Cases = own.Patients = std::isfinite(cases) ? static_cast<size_t>(cases) : 1;
  if (figures.Text(figures.RowOf(CircularRow), column) == "yes")
  {
    own.CircularCases.emplace_back();
  }
  own.FittedHere = figures.Text(figures.RowOf(FittedRow), column) == "yes";
  const double source = figures.Number(figures.RowOf(LevelsRow), column);
  own.LevelSource = source >= RCN_LEVELS_NONE && source <= RCN_LEVELS_MIXED
    ? static_cast<rcn_level_source>(static_cast<int>(source))
    : RCN_LEVELS_NONE;
  for (const auto& bins : own.RaterBins)
  {
    own.RaterEce.push_back(EceOf(bins));
    own.RaterBrier.push_back(NAN);
  }
  for (LevelDiagram& level : own.Levels)
  {
    level.Ece = EceOf(level.Bins);
  }
  for (const rcn_calib_bin& bin : own.Bins)
  {
    own.Pairs += bin.count;
  }
  own.Voxels = own.RaterBins.empty() ? own.Pairs : own.Pairs / static_cast<int64_t>(own.RaterBins.size());
  own.MassEce = own.MassMce = own.MassAce = NAN;
  own.Brier = {};
  report = own;
  return true;
}

} // namespace rcn
