// SPDX-License-Identifier: Apache-2.0
/// The section about models: their figures, who is best, and reliability diagrams.
#include "rcnReportParts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "rcnRanking.h"

namespace rcn
{

PageTable LevelShareTable(const EvaluationReport& report, const std::string& caption)
{
  PageTable table;
  table.Caption = caption;
  table.Columns = { "Raters", { "Predicted (%)", "mean predicted probability of this number" },
    { "Observed (%)", "share of the voxels with this number" },
    { "Unsure: predicted (%)", "the same where the model itself expects 5 to 95 % of the raters" },
    { "Unsure: observed (%)", "the same where the model itself expects 5 to 95 % of the raters" } };
  for (size_t k = 0; k < report.Shares.size(); ++k)
  {
    const rcn_level_share &all = report.Shares[k], &unsure = report.UnsureShares[k];
    table.Rows.push_back({ PageCell(static_cast<double>(k), 0), PageCell(100 * all.predicted, 2),
      PageCell(100 * all.observed, 2), PageCell(100 * unsure.predicted, 2), PageCell(100 * unsure.observed, 2) });
  }
  return table;
}

namespace report
{

namespace
{

/// A column of the table of models.
struct ModelColumn
{
  rcn_figure Figure;
  const char* Name;
  const char* Meaning;

  bool IsPercent() const { return this->Figure == RCN_MR_ECE || this->Figure == RCN_SIGNED; }
};

const ModelColumn Columns[] = {
  { RCN_MR_ECE, "MR-ECE (%)", "mean distance of the probability from the share of raters; lower is better" },
  { RCN_SIGNED, "Signed (%)", "above 0: probabilities are too high; below 0: too low" },
  { RCN_BRIER, "Brier", "mean squared error against all raters; lower is better" },
  { RCN_AUC_HISTOGRAM, "AUC",
    "how well the probability separates foreground from background, by the majority of the raters; higher is better" },
  { RCN_DICE, "Dice", "overlap with the majority of the raters, mean over cases; higher is better" },
  { RCN_DICE_POOLED, "Dice, pooled", "the same over all voxels together: large structures count most; higher is better" },
};

/// Model and region stand in front of the figures.
constexpr size_t FirstFigure = 2;

PageCell FigureCell(const EvaluationReport& report, const ModelColumn& column)
{
  const double scale = column.IsPercent() ? 100 : 1;
  const int digits = column.IsPercent() ? 2 : 4;
  const rcn_interval& interval = report.Interval[column.Figure];
  PageCell cell(scale * report.Figures[column.Figure], digits);
  if (interval.units > 0 && std::isfinite(interval.low))
  {
    cell.Small = FromTo(scale * interval.low, scale * interval.high, digits);
  }
  return cell;
}

/// Marks the best of a column among the rows of one region, and those that are not significantly different from it.
void MarkBest(PageTable& table, size_t firstRow, size_t c, const std::vector<const JudgedSeries*>& shown, size_t region)
{
  const auto cell = [&](size_t i) -> PageCell& { return table.Rows[firstRow + i][FirstFigure + c]; };
  std::vector<std::vector<const Evaluation*>> models;
  std::vector<double> values;
  for (size_t i = 0; i < shown.size(); ++i)
  {
    models.push_back({ shown[i]->Judges[region] });
    values.push_back(cell(i).Value);
  }
  const std::vector<Rank> ranks = RankModels(models, values, Columns[c].Figure, JudgedRegions[region]);
  for (size_t i = 0; i < shown.size(); ++i)
  {
    cell(i).Mark = ranks[i] == Rank::Best ? CellMark::Best : ranks[i] == Rank::Tie ? CellMark::Tie : CellMark::None;
  }
}

PageTable ModelTable(const std::vector<JudgedSeries>& all, bool severalCases)
{
  PageTable table;
  table.Caption = "Each model " + std::string(severalCases ? "with 95 % intervals" : "on this case") +
    "; the best of its region is marked, ≈ those that are not significantly different from it";
  table.Columns = { "Model", "Region" };
  for (const ModelColumn& column : Columns)
  {
    table.Columns.emplace_back(column.Name, column.Meaning);
  }
  for (size_t g = 0; g < RegionCount; ++g)
  {
    const size_t firstRow = table.Rows.size();
    std::vector<const JudgedSeries*> shown;
    for (const JudgedSeries& series : all)
    {
      if (series.HasReport[g])
      {
        table.Rows.push_back({ series.Name, FindChoice(Regions(), JudgedRegions[g])->Label });
        for (const ModelColumn& column : Columns)
        {
          table.Rows.back().push_back(FigureCell(series.Reports[g], column));
        }
        shown.push_back(&series);
      }
    }
    for (size_t c = 0; shown.size() > 1 && c < std::size(Columns); ++c)
    {
      MarkBest(table, firstRow, c, shown, g);
    }
  }
  return table;
}

/// What was corrected, and how.
void WriteCorrections(Page& page, const ReportData& data, const std::vector<JudgedSeries>& all)
{
  for (const JudgedSeries& series : all)
  {
    if (!series.Correction)
    {
      continue;
    }
    const std::vector<std::string>& ids = series.Correction->Cases;
    const auto fitted = std::count_if(data.Cases.begin(), data.Cases.end(),
      [&](const CaseSummary& one) { return std::find(ids.begin(), ids.end(), one.One.Id) != ids.end(); });
    page.Paragraph(series.Name + ": " + rcn_recalib_name(series.Correction->Correction.method) + ", " +
      CorrectionInWords(series.Correction->Correction) +
      (fitted ? ". It was fitted on " + std::to_string(fitted) + " of these cases, where its figures are too good." : "."));
  }
}

/// The numbers of raters: a small diagram for each, and how often they occur; once for all readouts of a model.
void WriteLevels(Page& page, const std::vector<JudgedSeries>& all, size_t s)
{
  const JudgedSeries& series = all[s];
  const bool again = std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(s),
    [&](const JudgedSeries& other) { return other.Model == series.Model && other.Correction == series.Correction; });
  if (!again && series.HasReport[0] && !series.Reports[0].Levels.empty())
  {
    page.Add({ { LevelDiagrams(series.Reports[0], "How many raters, around the marks"), "" } }, true);
    page.Add(LevelShareTable(series.Reports[0], "How many raters mark a voxel, around the marks"));
  }
}

/// A diagram for each region; what was corrected has its uncorrected self in gray instead of a row of its own.
void WriteDiagrams(Page& page, const std::vector<JudgedSeries>& all)
{
  for (size_t s = 0; s < all.size(); ++s)
  {
    const JudgedSeries& series = all[s];
    if (std::any_of(all.begin(), all.end(), [s](const JudgedSeries& other) { return other.Before == static_cast<int>(s); }))
    {
      continue;
    }
    std::vector<PagePanel> panels;
    for (size_t g = 0; g < RegionCount; ++g)
    {
      if (series.HasReport[g])
      {
        const JudgedSeries* before = series.Before >= 0 ? &all[static_cast<size_t>(series.Before)] : nullptr;
        panels.push_back({ ReliabilityDiagram(series.Reports[g], FindChoice(Regions(), JudgedRegions[g])->Label,
                             before && before->HasReport[g] ? &before->Reports[g] : nullptr),
          "" });
      }
    }
    if (!panels.empty())
    {
      page.Heading(series.Name);
      page.Add(panels, true);
      WriteLevels(page, all, s);
    }
  }
}

/// Volumes on whole images: a row for each model, corrected or not, whatever its readout.
void WriteVolumes(Page& page, const ReportData& data, const std::vector<JudgedSeries>& all)
{
  PageTable table;
  table.Caption = "Volumes against the raters'";
  std::set<std::string> remarks;
  std::set<std::pair<size_t, const Recalibration*>> known;
  for (const JudgedSeries& series : all)
  {
    const VolumeReport* volumes = series.HasReport[0] ? &series.Reports[0].Volumes : nullptr;
    if (!volumes || volumes->Figures.cases == 0 || !known.insert({ series.Model, series.Correction }).second)
    {
      continue;
    }
    const std::string name = data.Options.Models[series.Model].Name + (series.Correction ? ", recalibrated" : "");
    table.Columns = { "Model" };
    table.Rows.push_back({ name });
    for (const VolumeFigure& figure : volumes->Shown())
    {
      table.Columns.emplace_back(figure.Name, figure.Meaning);
      table.Rows.back().emplace_back(figure.Value, figure.Text);
    }
    if (!volumes->Remark.empty())
    {
      remarks.insert(name + ": " + volumes->Remark);
    }
  }
  if (table.Rows.empty())
  {
    return;
  }
  page.Heading("Volumes");
  page.Add(table);
  for (const std::string& remark : remarks)
  {
    page.Note(remark);
  }
}

} // namespace

void WriteModels(Page& page, const ReportData& data, const ModelJudge& judge)
{
  const std::vector<JudgedSeries>& series = judge.Series(data.Number);
  if (series.empty())
  {
    return;
  }
  page.Section(data.SectionId("models"), data.SectionHeading("Calibration: does 70 % mean 70 %?"));
  page.Paragraph("The predicted probability is compared with the share of raters who mark the voxel. On the diagonal of a "
                 "diagram both are equal: perfect calibration. Point at a diagram, or touch it, to read its values.");
  WriteCorrections(page, data, series);
  page.Add(ModelTable(series, data.Cases.size() > 1));
  const EvaluationOptions& options = data.Options.Judge;
  page.Note("MR-ECE: mean distance of the predicted probability from the share of raters who mark the voxel, over voxels and "
            "raters (" +
    Counted(options.Calib.bins, "bin") + "). Around the marks: the box around all of them and " +
    Counted(options.Region.margin, "voxel") + "; near the contour: within " + Fixed(options.Region.band_mm, 1) + " " +
    data.Sums.Length + " of it. Intervals: over patients where the list names them, otherwise over cases; none below " +
    std::to_string(RCN_INTERVAL_UNITS) +
    ". AUC is computed from a histogram. Majority: the probability that a majority of raters marks the voxel; expected: the "
    "expected share of raters, the readout whose MR-ECE is 0 for a perfect model. " +
    NotRankedInWords);
  WriteDiagrams(page, series);
  WriteVolumes(page, data, series);
}

} // namespace report
} // namespace rcn
