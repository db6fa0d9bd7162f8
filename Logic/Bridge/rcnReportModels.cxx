// SPDX-License-Identifier: Apache-2.0
/// The section about models: their figures, who is best, and reliability diagrams.
#include "rcnReportParts.h"

#include <algorithm>
#include <cmath>

#include "rcnRanking.h"

namespace rcn
{
namespace report
{

void WriteModels(Page& page, const ReportData& data, const ModelJudge& judge)
{
  if (judge.Series().empty())
  {
    return;
  }
  page.Section("models", "Does 70 % mean 70 %?");
  page.Paragraph(
    "A model's probability is compared with the share of raters who really mark the voxel. On the line of a diagram both are "
    "the same. Rest the pointer on a diagram, or touch it, to read its values.");
  for (const JudgedSeries& series : judge.Series())
  {
    if (series.Correction)
    {
      size_t fitted = 0;
      for (const CaseSummary& one : data.Cases)
      {
        fitted += std::count(series.Correction->Cases.begin(), series.Correction->Cases.end(), one.One.Id) > 0;
      }
      page.Paragraph(series.Name + ": " + rcn_recalib_name(series.Correction->Correction.method) + ", " +
        CorrectionInWords(series.Correction->Correction) +
        (fitted ? ". It was fitted on " + std::to_string(fitted) + " of these cases; judged there, it looks better than it is."
                : "."));
    }
  }
  static const struct
  {
    rcn_figure Figure;
    const char* Name;
    const char* Meaning;
  } columns[] = {
    { RCN_MR_ECE, "MR-ECE (%)", "how far probabilities are from the share of raters, on average; lower is better" },
    { RCN_SIGNED, "Signed (%)", "above 0: promises too much; below: too little" },
    { RCN_BRIER, "Brier", "mean squared error against all raters; lower is better" },
    { RCN_AUC_HISTOGRAM, "AUC",
      "does a higher probability mean foreground? against the majority of the raters; higher is better" },
    { RCN_DICE, "Dice", "overlap with the majority of the raters, mean over cases; higher is better" },
    { RCN_DICE_POOLED, "Dice, pooled", "the same over all voxels together: large structures count most; higher is better" },
  };
  PageTable table;
  table.Caption = "Each model " + std::string(data.Cases.size() > 1 ? "with 95 % intervals" : "on this case") +
    "; the best of its region is marked, ≈ those that are not significantly different from it";
  table.Columns = { "Model", "Region" };
  for (const auto& column : columns)
  {
    table.Columns.emplace_back(column.Name, column.Meaning);
  }
  for (size_t g = 0; g < 3; ++g)
  {
    const size_t firstRow = table.Rows.size();
    std::vector<const JudgedSeries*> shown;
    for (const JudgedSeries& series : judge.Series())
    {
      if (series.HasReport[g])
      {
        table.Rows.push_back({ series.Name, RegionWords[g] });
        for (const auto& column : columns)
        {
          const bool percent = column.Figure == RCN_MR_ECE || column.Figure == RCN_SIGNED;
          const rcn_interval& interval = series.Reports[g].Interval[column.Figure];
          const double scale = percent ? 100 : 1;
          const int digits = percent ? 2 : 4;
          PageCell cell(scale * series.Reports[g].Figures[column.Figure], digits);
          if (interval.units > 0 && std::isfinite(interval.low))
          {
            cell.Small = FromTo(scale * interval.low, scale * interval.high, digits);
          }
          table.Rows.back().push_back(cell);
        }
        shown.push_back(&series);
      }
    }
    for (size_t c = 0; shown.size() > 1 && c < std::size(columns); ++c)
    {
      std::vector<std::vector<const Evaluation*>> models;
      std::vector<double> values;
      for (size_t i = 0; i < shown.size(); ++i)
      {
        models.push_back({ shown[i]->Judges[g] });
        values.push_back(table.Rows[firstRow + i][c + 2].Value);
      }
      const std::vector<Rank> ranks = RankModels(models, values, columns[c].Figure, Regions[g]);
      for (size_t i = 0; i < shown.size(); ++i)
      {
        table.Rows[firstRow + i][c + 2].Mark = ranks[i] == Rank::Best ? CellMark::Best
          : ranks[i] == Rank::Tie                                     ? CellMark::Tie
                                                                      : CellMark::None;
      }
    }
  }
  page.Add(table);
  page.Note(
    "MR-ECE: how far the probability is from the share of raters who mark the voxel, on average over voxels and raters (" +
    Counted(data.Options.Judge.Calib.bins, "bin") + "). Around all marks: the box around them and " +
    Counted(data.Options.Judge.Region.margin, "voxel") + "; near the contour: within " +
    Fixed(data.Options.Judge.Region.band_mm, 1) + " " + data.Sums.Length +
    " of it. Intervals: over patients where the list names them, otherwise over cases; none below " +
    std::to_string(RCN_INTERVAL_UNITS) +
    ". AUC is taken from a histogram. Majority: the probability that a majority of raters marks "
    "the voxel; expected: the expected share of raters, the readout whose MR-ECE a perfect model brings to 0. " +
    NotRankedInWords);
  for (const JudgedSeries& series : judge.Series())
  {
    bool replaced = false; // shown in grey in the diagram of the corrected one
    for (const JudgedSeries& other : judge.Series())
    {
      replaced = replaced || (other.Before >= 0 && &judge.Series()[static_cast<size_t>(other.Before)] == &series);
    }
    std::vector<PagePanel> panels;
    for (size_t g = 0; g < 3 && !replaced; ++g)
    {
      if (series.HasReport[g])
      {
        const JudgedSeries* before = series.Before >= 0 ? &judge.Series()[static_cast<size_t>(series.Before)] : nullptr;
        panels.push_back({ ReliabilityDiagram(
                             series.Reports[g], RegionWords[g], before && before->HasReport[g] ? &before->Reports[g] : nullptr),
          "" });
      }
    }
    if (!panels.empty())
    {
      page.Heading(series.Name);
      page.Add(panels, true);
    }
  }
}

} // namespace report
} // namespace rcn
