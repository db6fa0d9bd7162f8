// SPDX-License-Identifier: Apache-2.0
/// Pictures of the report: slices of a case with what raters marked and what models predict.
#include "rcnReportParts.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace rcn
{
namespace report
{

SlicePanels::SlicePanels(
  Page& page, const SliceFigure& view, const rcn_geometry& geometry, int64_t slice, const std::string& id)
  : View(view), Where_((id.empty() ? "" : " of case " + id) + (geometry.size[2] > 1 ? ", slice " + SliceNumber(slice) : ""))
{
  int64_t columns, rows;
  const std::vector<uint8_t> rgb = this->View.Picture(columns, rows);
  this->Base_ = page.SharedPicture(rgb, columns, rows, this->All.Width, this->View.HeightOf(this->All.Width));
}

SlicePanels::SlicePanels(
  Page& page, const Workspace& workspace, int64_t slice, const std::string& id, const std::vector<std::string>* raters)
  : SlicePanels(page, SliceFigure(workspace, slice, true, raters), *rcn_votes_geometry(workspace.Votes()), slice, id)
{
}

Figure SlicePanels::Begin(const std::string& title, const std::string& words) const
{
  Figure figure(this->All.Width, this->View.HeightOf(this->All.Width), title + this->Where_, words);
  figure.SharedPicture(this->Base_);
  return figure;
}

PagePanel SlicePanels::Levels() const
{
  Figure levels = this->Begin("Consensus levels", "How many raters marked each voxel, from dark (one) to bright (all)");
  this->View.DrawLevels(levels, this->All);
  return { levels, "How many raters marked it" };
}

PagePanel SlicePanels::Probability(const std::string& name, const std::string& words, const std::vector<float>& map) const
{
  Figure figure = this->Begin(name, words);
  this->View.DrawProbability(figure, this->All, map);
  return { figure, name };
}

namespace
{

/// What a model says level by level, on one slice.
void WriteLevelPanels(Page& page, const SlicePanels& slice, const std::string& name, const Volume& prediction)
{
  const int raters = prediction.View().components - 1;
  const std::string of = " of " + std::to_string(raters);
  Figure lines =
    slice.Begin("Contours of " + name, "Where it is as likely as not that at least 1, 2, ... raters mark the voxel");
  slice.View.DrawPredictedLines(lines, slice.All, prediction);
  std::vector<PagePanel> panels = { { lines, name + ": at least 1 … " + std::to_string(raters) + " raters, 50 % contours" } };
  for (int level = 1; level <= raters; ++level)
  {
    panels.push_back(slice.Probability("Exactly " + std::to_string(level) + of,
      "The probability by " + name + " that exactly " + std::to_string(level) + of + " raters mark the voxel",
      slice.View.ReadoutMap(prediction, RCN_SLICE_LEVEL, level)));
  }
  page.Add(panels);
}

/// All outlines together, what raters agree on, and, where asked for, each rater's outline alone.
std::vector<PagePanel> RaterPanels(
  const SlicePanels& slice, const std::vector<std::string>& raters, const rcn_agreement& figures, bool showEach)
{
  std::vector<PagePanel> each;
  Figure all = slice.Begin("Outlines", "The outlines of all raters over the image");
  for (int r = 0; r < figures.raters; ++r)
  {
    if (!figures.rater[r].present)
    {
      continue;
    }
    const std::string& name = raters[static_cast<size_t>(r)];
    slice.View.DrawRater(all, slice.All, r);
    if (showEach)
    {
      Figure one = slice.Begin(name, "The outline of rater " + name);
      slice.View.DrawRater(one, slice.All, r);
      each.push_back({ one, name });
    }
  }
  Figure contours = slice.Begin("Consensus contours", "Contours of what at least 1, 2, ... raters marked");
  slice.View.DrawLevelLines(contours, slice.All);
  std::vector<PagePanel> panels = { { all, "All outlines" }, slice.Levels(),
    { contours, "At least 1 … " + std::to_string(figures.present_count) + " raters" } };
  panels.insert(panels.end(), each.begin(), each.end());
  return panels;
}

/// What a model predicts, by the readout that was asked for or its own.
PagePanel ModelPanel(
  const SlicePanels& slice, const ModelJudge& judge, const ReportOptions& options, size_t model, const Volume& prediction)
{
  const rcn_calib_options shown = judge.ReadoutFor(model, options.Readout).Calib;
  const std::string& name = options.Models[model].Name;
  return slice.Probability(name + (judge.PredictsLevels(model) ? " (" + ReadoutText(shown.readout, shown.at_least) + ")" : ""),
    "The probability that model " + name + " predicts", slice.View.ReadoutMap(prediction, shown.readout, shown.at_least));
}

/// What the models expect raters to measure, and what the raters measure.
void WriteVolumes(Page& page, const Workspace& workspace, const std::vector<std::string>& raters, const ModelJudge& judge,
  const ReportOptions& options, const std::vector<Volume>& predictions)
{
  const rcn_votes* votes = workspace.Votes();
  const Extent extent(*rcn_votes_geometry(votes));
  PageTable table;
  table.Caption = extent.Name + ": what each model expects, and what each rater marks";
  table.Columns = { "Who", extent.Heading, "80 % prediction interval", "95 % prediction interval" };
  std::set<std::string> remarks;
  for (size_t model = 0; model < predictions.size(); ++model)
  {
    const std::string& name = options.Models[model].Name;
    const PredictedVolumes volumes = PredictVolumes(
      workspace.Context(), predictions[model], static_cast<int>(raters.size()), judge.ScoresOfVolumes(model).get(), name);
    table.Rows.push_back({ name, PageCell(volumes.Expected, volumes.Text(volumes.Expected)) });
    for (const PredictedInterval& interval : volumes.Intervals)
    {
      table.Rows.back().push_back(interval.IsKnown() ? volumes.Text(interval.Low) + " to " + volumes.Text(interval.High) : "–");
    }
    if (!volumes.Remark.empty())
    {
      remarks.insert(name + ": " + volumes.Remark);
    }
  }
  std::vector<double> marked(raters.size());
  rcn_volume_of_raters(marked.data(), votes);
  for (size_t r = 0; r < marked.size(); ++r)
  {
    const double volume = extent.PerVoxel * marked[r];
    table.Rows.push_back({ raters[r], PageCell(volume, std::isnan(volume) ? "–" : extent.TextOf(volume)), "", "" });
  }
  page.Add(table);
  std::for_each(remarks.begin(), remarks.end(), [&page](const std::string& remark) { page.Note(remark); });
}

} // namespace

void WriteCasePictures(Page& page, const Workspace& workspace, const CaseSummary& summary,
  const std::vector<std::string>& raters, ModelJudge& judge, const ReportOptions& options)
{
  const AgreementReport agreement = workspace.Agree(false);
  const rcn_agreement& figures = *agreement.Figures;
  std::vector<Volume> predictions;
  for (size_t model = 0; model < options.Models.size(); ++model)
  {
    predictions.push_back(judge.MapOf(judge.PredictionOf(model, summary.One)));
  }
  const std::vector<int64_t> slices = SlicesToSee(workspace, options.Slices);
  const std::vector<rcn_slice_votes> counts = SliceCounts(workspace);
  const bool flat = rcn_votes_geometry(workspace.Votes())->size[2] == 1;
  if (!options.Data.empty())
  {
    page.Heading(summary.Name);
    page.Paragraph("Mean Dice " + Fixed(summary.MeanDice, 2) + ", Fleiss' κ " + Fixed(summary.Kappa, 2) + " (" +
      rcn_kappa_words(summary.Kappa) + "); " + PercentText(summary.DisputedShare) + " of what anybody marked is disputed.");
  }
  page.Legend("Marked by", LevelLegend(figures, *rcn_votes_geometry(workspace.Votes())));
  for (size_t s = 0; s < slices.size(); ++s)
  {
    const SlicePanels slice(page, workspace, slices[s], summary.Name, &raters);
    std::vector<PagePanel> panels;
    if (!flat)
    {
      const rcn_slice_votes& here = counts[static_cast<size_t>(slices[s])];
      page.Note("Slice " + SliceNumber(slices[s]) +
        (here.disputed ? ": " + std::to_string(here.disputed) + " of " + Counted(here.marked, "marked voxel") + " disputed"
                       : ""));
    }
    if (workspace.HasImage())
    {
      panels.push_back({ slice.Begin("Image", "The image alone"), "Image" });
    }
    const bool showEach = s == 0 && figures.present_count <= static_cast<int>(MostRatersInPairs);
    const std::vector<PagePanel> marked = RaterPanels(slice, raters, figures, showEach);
    panels.insert(panels.end(), marked.begin(), marked.end());
    for (size_t model = 0; model < predictions.size(); ++model)
    {
      panels.push_back(ModelPanel(slice, judge, options, model, predictions[model]));
    }
    page.Add(panels);
    if (s > 0)
    {
      continue; // legends and levels stand with the first slice only
    }
    page.Legend("Outlines", RaterLegend(raters));
    if (!predictions.empty())
    {
      page.Legend("Probability", ProbabilityLegend());
    }
    if (!predictions.empty())
    {
      WriteVolumes(page, workspace, raters, judge, options, predictions);
    }
    for (size_t model = 0; model < predictions.size(); ++model)
    {
      if (judge.PredictsLevels(model))
      {
        WriteLevelPanels(page, slice, options.Models[model].Name, predictions[model]);
      }
    }
  }
}

} // namespace report

void AddComparison(
  Page& page, const Workspace& workspace, const std::string& id, const std::vector<std::pair<std::string, Volume>>& predictions)
{
  const report::SlicePanels slice(page, workspace, SlicesToSee(workspace, 1).front(), id);
  std::vector<PagePanel> panels;
  if (workspace.HasImage())
  {
    panels.push_back({ slice.Begin("Image", "The image alone"), "Image" });
  }
  panels.push_back(slice.Levels());
  for (const auto& prediction : predictions)
  {
    panels.push_back(slice.Probability(prediction.first, "The expected share of raters that " + prediction.first + " predicts",
      slice.View.ReadoutMap(prediction.second, RCN_READOUT_EXPECTED)));
  }
  page.Heading(id);
  page.Add(panels);
}

} // namespace rcn
