// SPDX-License-Identifier: Apache-2.0
/// The table of a study as Markdown, JSON and a page.
#include "rcnStudyParts.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <functional>
#include <set>

#include "rcnJudge.h"
#include "rcnRanking.h"
#include "rcnReport.h"
#include "rcnReportPage.h"
#include "rcnSliceFigure.h"
#include "rcnTrainingFiles.h"

namespace rcn
{

const std::vector<StudyColumn>& StudyColumns()
{
  static const std::vector<StudyColumn> columns = {
    { "MR-ECE, box (%)", RCN_REGION_BOX, RCN_MR_ECE, true,
      "Probabilities closest to the share of raters around the marks (MR-ECE, lower is better, %)" },
    { "MR-ECE, band (%)", RCN_REGION_BAND, RCN_MR_ECE, true, nullptr },
    { "MR-ECE, disputed (%)", RCN_REGION_DISPUTED, RCN_MR_ECE, true, nullptr },
    { "MR-ECE, whole (%)", RCN_REGION_WHOLE, RCN_MR_ECE, true, nullptr },
    { "AUC, box (%)", RCN_REGION_BOX, RCN_AUC_HISTOGRAM, true, "Best order of voxels (AUC, higher is better, %)" },
    { "Dice, box", RCN_REGION_BOX, RCN_DICE, false, nullptr },
    { "Dice pooled, box", RCN_REGION_BOX, RCN_DICE_POOLED, false, nullptr },
    { "Brier, box", RCN_REGION_BOX, RCN_BRIER, false, nullptr },
    { "RPS, box", RCN_REGION_BOX, RCN_RPS, false, "Best prediction of how many raters mark a voxel (RPS, lower is better)" },
    { "Level NLL, box", RCN_REGION_BOX, RCN_LEVEL_NLL, false, nullptr },
    { "Level calibration, box (%)", RCN_REGION_BOX, RCN_LEVEL_ECE, true, nullptr },
    { "Level calibration, worst, box (%)", RCN_REGION_BOX, RCN_LEVEL_ECE_MAX, true, nullptr },
    { "MR-ECE, debiased, box (%)", RCN_REGION_BOX, RCN_MR_ECE_DEBIASED, true, nullptr },
  };
  return columns;
}

std::string StudyColumn::Key() const
{
  return this->Figure == RCN_AUC_HISTOGRAM ? "auc" : rcn_figure_name(this->Figure);
}

double StudyColumn::ValueOf(const EvaluationReport& report) const
{
  return this->Figure == RCN_AUC_HISTOGRAM ? report.Auc.reference : report.Figures[this->Figure];
}

std::string StudyColumn::Text(double value) const
{
  const double shown = (this->Percent ? 100 : 1) * value;
  // Three digits that say something: a whole image is nearly all background, and its MR-ECE small.
  return Fixed(shown, !this->Percent ? (std::fabs(shown) < 0.01 ? 5 : 4) : std::fabs(shown) < 1 ? 3 : 2);
}

std::vector<std::pair<std::string, std::vector<VolumeFigure>>> StudyVolumes(const std::vector<StudyRow>& rows)
{
  std::vector<std::pair<std::string, std::vector<VolumeFigure>>> volumes;
  for (const StudyRow& row : rows)
  {
    if (volumes.empty() || volumes.back().first != row.Strategy) // not another readout of the same levels
    {
      volumes.emplace_back(row.Strategy, row.Volumes.Shown());
    }
  }
  return volumes;
}

namespace study
{

namespace
{

/// What the figures of volumes mean, and what a reader has to know of these.
std::string VolumeNote(const StudyResult& result)
{
  const std::vector<StudyRow>& rows = result.Structures.empty() ? result.Rows : result.Structures.front().Rows;
  const std::string remark = rows.empty() ? "" : rows.front().Volumes.Remark;
  return "Of whole images. CRPS: how far the predicted distribution of a rater's volume is from the raters' volumes (lower is "
         "better); CURVAS: that of the challenge, the expected volume against a normal distribution of the raters' volumes. "
         "Bias "
         "and limits of agreement (Bland and Altman): expected volume minus the mean of the raters. Coverage: how many raters' "
         "volumes are inside the intervals, which come from the validation cases." +
    (remark.empty() ? "" : " " + remark);
}

/// Empty where there is none.
std::string IntervalText(const StudyCell& cell, const StudyColumn& column)
{
  return std::isfinite(cell.Low) && std::isfinite(cell.High) ? column.Text(cell.Low) + " to " + column.Text(cell.High) : "";
}

std::string BestInWords(const StudyResult& result, size_t column)
{
  std::string best, ties;
  for (const StudyRow& row : result.Rows)
  {
    const StudyCell& cell = row.Cells[column];
    if (cell.Best)
    {
      best = row.Name() + " with " + StudyColumns()[column].Text(cell.Value);
    }
    else if (cell.Tie)
    {
      ties += (ties.empty() ? "" : ", ") + row.Name();
    }
  }
  if (best.empty())
  {
    return "undefined on these test cases.";
  }
  if (result.Rows.size() == 1)
  {
    return best + "; there are no others to compare with.";
  }
  return best +
    (ties.empty() ? "; all others are significantly different from it."
                  : "; not significantly different from it: " + ties + ".");
}

/// What the marks, regions and figures of the table mean.
std::string Legend()
{
  return "Bold: the best of the column. ≈: not significantly different from the best (the 95 % interval of the paired "
         "difference covers 0, or there are too few cases for one). " +
    std::string(NotRankedInWords) +
    " Below each value: its 95 % interval over patients, where the list names them, otherwise over test cases; none below "
    "five. MR-ECE: how far the probability is from the share of raters who mark the voxel, on average; box: around all marks "
    "and 20 voxels; debiased: without what chance adds; band: near the contour; disputed: where raters disagree; whole: the "
    "image. AUC, Dice and Brier: in the "
    "box, "
    "AUC and Dice against the majority of the raters, Brier against all of them; Dice: the mean over cases, without those "
    "where "
    "no majority marks anything and nothing is predicted; pooled: over all voxels together. RPS, level NLL and level "
    "calibration: how well the number of raters who mark a voxel is predicted (squared error, negative log-likelihood, and "
    "calibration error of \"at least t raters\", mean over t; worst: for the t that is off most), the same for both readouts; "
    "one "
    "probability is evaluated there as a binomial "
    "distribution. Strategies that predict levels are "
    "evaluated with both readouts: majority, the probability that a majority marks the voxel, and expected, the expected share "
    "of "
    "raters.";
}

std::string SeedText(const StudyOptions& options)
{
  return options.Seeds > 1 ? "Values are means over " + std::to_string(options.Seeds) +
      " trainings with different seeds; intervals and ≈ are over "
      "patients (or cases) and trainings. table.json has the range over seeds."
                           : "One training per strategy: the intervals do not include the variation between random seeds.";
}

/// Which training a picture shows, where there are several.
std::string SeedShown(const StudyOptions& options)
{
  return options.Seeds > 1 ? ", as the training with seed " + std::to_string(options.Training.Seed) + " predicts (one of " +
      std::to_string(options.Seeds) + "; the table has the means)"
                           : "";
}

/// "3 raters, 5 test cases"
std::string CountText(const Job& job)
{
  const auto structures = static_cast<int64_t>(job.Result.Structures.size());
  return Counted(static_cast<int64_t>(job.List.Raters.size()), "rater") + ", " +
    (structures ? Counted(structures, "structure") + ", " : "") +
    Counted(static_cast<int64_t>(job.Test.Cases.size()), "test case");
}

constexpr const char* MeanNote = "Means over structures, each counted equally. They have no intervals; what differs "
                                 "significantly is marked in the table of each "
                                 "structure.";

// ---- JSON ------------------------------------------------------------------------------------------

Json CellJson(const StudyCell& cell)
{
  return JsonObject{ { "value", cell.Value }, { "low", cell.Low }, { "high", cell.High }, { "mean_60", cell.PaperMean },
    { "std_60", cell.PaperStd }, { "seed_low", cell.SeedLow }, { "seed_high", cell.SeedHigh }, { "best", cell.Best },
    { "tie", cell.Tie } };
}

Json RowJson(const StudyRow& row)
{
  std::map<std::string, JsonObject> regions;
  JsonObject figures; // in the order of the columns
  for (size_t c = 0; c < row.Cells.size(); ++c)
  {
    const std::string region = rcn_region_name(StudyColumns()[c].Region);
    figures.Set(region, regions[region].Set(StudyColumns()[c].Key(), CellJson(row.Cells[c])));
  }
  JsonObject json{ { "strategy", row.Strategy }, { "readout", row.Readout.empty() ? Json(nullptr) : Json(row.Readout) },
    { "figures", figures }, { "volumes", VolumeReportJson(row.Volumes) } };
  if (row.Box.Cases > 0) // in the box, of the training with the first seed, as the diagrams
  {
    SetLevels(json.Set("mr_kde_ece", row.Box.Kde.ece), row.Box);
  }
  return json;
}

std::string JsonOf(const Job& job)
{
  const auto rowsOf = [](const std::vector<StudyRow>& all) {
    JsonArray rows;
    for (const StudyRow& row : all)
    {
      rows.Add(RowJson(row));
    }
    return rows;
  };
  JsonObject object{ { "data", job.Options.Data }, { "choices", job.Options.Choices }, { "raters", job.List.Raters },
    { "test_cases", job.Test.Cases.size() }, { "seeds", job.Options.Seeds }, { "rows", rowsOf(job.Result.Rows) } };
  if (!job.Result.Structures.empty())
  {
    JsonObject structures;
    for (const StudyStructure& structure : job.Result.Structures)
    {
      structures.Set(structure.Name, JsonObject{ { "rows", rowsOf(structure.Rows) } });
    }
    object.Set("structures", structures);
  }
  return DocumentText(object.Set("left_out", LeftOutJson(job.LeftOut)).Get());
}

// ---- Markdown --------------------------------------------------------------------------------------

using ShowCell = std::function<std::string(const StudyCell&, const StudyColumn&)>;

std::string ShowValue(const StudyCell& cell, const StudyColumn& column)
{
  const std::string value = column.Text(cell.Value), interval = IntervalText(cell, column);
  return (cell.Best ? "**" + value + "**" : (cell.Tie ? "≈ " : "") + value) + (interval.empty() ? "" : "<br>" + interval);
}

std::string MarkdownTable(const std::vector<StudyRow>& rows, const ShowCell& show)
{
  std::string head = "| strategy |", line = "|---|", body;
  for (const StudyColumn& column : StudyColumns())
  {
    head += std::string(" ") + column.Name + " |";
    line += "---|";
  }
  for (const StudyRow& row : rows)
  {
    body += "| " + row.Name() + " |";
    for (size_t c = 0; c < row.Cells.size(); ++c)
    {
      body += " " + show(row.Cells[c], StudyColumns()[c]) + " |";
    }
    body += "\n";
  }
  return head + "\n" + line + "\n" + body + "\n";
}

std::string MarkdownVolumes(const std::vector<StudyRow>& rows)
{
  std::string text = "Volumes\n\n| strategy |", line = "|---|", body;
  for (const auto& [strategy, figures] : StudyVolumes(rows))
  {
    const bool first = body.empty();
    body += "| " + strategy + " |";
    for (const VolumeFigure& figure : figures)
    {
      text += first ? " " + figure.Name + " |" : "";
      line += first ? "---|" : "";
      body += " " + figure.Text + " |";
    }
    body += "\n";
  }
  return text + "\n" + line + "\n" + body + "\n";
}

std::string MarkdownOf(const Job& job)
{
  const StudyResult& result = job.Result;
  const ShowCell bootstrap = [](const StudyCell& cell, const StudyColumn& column) {
    return column.Text(cell.PaperMean) + " ± " + column.Text(cell.PaperStd);
  };
  const std::string draws = "The paper's bootstrap (mean ± deviation of ten draws of 60 % of the test cases):\n\n";
  std::string text = "# Study\n\n" + (job.Options.Command.empty() ? "" : "`" + job.Options.Command + "`\n\n") + CountText(job) +
    ". For research, not for clinical use.\n\n";
  text += result.Structures.empty() ? "" : "## Mean over structures\n\n";
  text += MarkdownTable(result.Rows, ShowValue);
  text += result.Structures.empty() ? "" : std::string(MeanNote) + "\n\n";
  for (const StudyStructure& structure : result.Structures)
  {
    text += "## " + structure.Name + "\n\n" + MarkdownTable(structure.Rows, ShowValue);
    text += draws + MarkdownTable(structure.Rows, bootstrap) + MarkdownVolumes(structure.Rows);
  }
  text += result.Structures.empty() ? "" : "## What the tables mean\n\n";
  text += Legend() + " " + SeedText(job.Options) + "\n\n";
  if (result.Structures.empty())
  {
    text += draws + MarkdownTable(result.Rows, bootstrap) + MarkdownVolumes(result.Rows);
  }
  text += VolumeNote(result) + "\n\n";
  for (const std::string& trained : job.Trained)
  {
    text += "- " + trained + "\n";
  }
  return text;
}

// ---- the page --------------------------------------------------------------------------------------

PageTable TableOf(const std::vector<StudyRow>& rows, const std::string& structure)
{
  PageTable table;
  table.Caption = "Every strategy on the test cases" + (structure.empty() ? "" : ": " + structure);
  table.Columns = { "Strategy" };
  for (const StudyColumn& column : StudyColumns())
  {
    table.Columns.emplace_back(column.Name, BetterDirection(column.Figure) > 0 ? "higher is better" : "lower is better");
  }
  for (const StudyRow& row : rows)
  {
    table.Rows.push_back({ row.Name() });
    for (size_t c = 0; c < row.Cells.size(); ++c)
    {
      const StudyCell& cell = row.Cells[c];
      PageCell shown(cell.Value, StudyColumns()[c].Text(cell.Value));
      shown.Small = IntervalText(cell, StudyColumns()[c]);
      shown.Mark = cell.Best ? CellMark::Best : cell.Tie ? CellMark::Tie : CellMark::None;
      table.Rows.back().push_back(shown);
    }
  }
  return table;
}

PageTable VolumesOf(const std::vector<StudyRow>& rows, const std::string& structure)
{
  PageTable table;
  table.Caption = "Volumes on the test cases" + (structure.empty() ? "" : ": " + structure);
  for (const auto& [strategy, figures] : StudyVolumes(rows))
  {
    table.Columns = { "Strategy" };
    table.Rows.push_back({ strategy });
    for (const VolumeFigure& figure : figures)
    {
      table.Columns.emplace_back(figure.Name, figure.Meaning);
      table.Rows.back().emplace_back(figure.Value, figure.Text);
    }
  }
  return table;
}

/// What each strategy says about the test cases on which raters differ most.
void AddPictures(Page& page, Job& job)
{
  page.Note("The most disputed test cases" + SeedShown(job.Options) +
    ". The stronger the color, the more raters mark the voxel, or are expected to.");
  page.Legend("Share of raters", ProbabilityLegend());
  std::vector<Case> shown = job.Test.Cases;
  std::stable_sort(
    shown.begin(), shown.end(), [&job](const Case& a, const Case& b) { return job.Disputed.at(a.Id) > job.Disputed.at(b.Id); });
  const int structures = static_cast<int>(job.Result.Structures.size());
  shown.resize(std::min<size_t>(shown.size(), structures ? 1 : 3));
  for (const Case& one : shown)
  {
    job.Show(1, "drawing " + one.Id);
    job.Cases.LoadCase(one, job.List.Raters);
    std::vector<std::pair<std::string, CasePrediction>> predictions;
    for (const Run& run : job.Runs)
    {
      if (run.Number == 0)
      {
        predictions.emplace_back(run.Strategy,
          structures ? PredictionsOfFolder(job.Folder.Predictions(run), 0, job.List.Structures).Read(one, 0)
                     : CasePrediction{ ReadPrediction(job.Folder.Levels(run, one.Id)), "" });
      }
    }
    for (int structure = structures ? 1 : 0; structure <= structures; ++structure)
    {
      std::vector<std::pair<std::string, Volume>> maps;
      for (const auto& prediction : predictions)
      {
        const auto& several = prediction.second.Structures;
        maps.emplace_back(prediction.first,
          several ? several->Of(job.Cases.Context(), structure, static_cast<int>(job.List.Raters.size()), one.Id)
                  : prediction.second.Map);
      }
      job.Cases.SelectStructure(structure);
      AddComparison(page, job.Cases,
        one.Id + (structures ? ", " + job.Result.Structures[static_cast<size_t>(structure) - 1].Name : ""), maps);
    }
  }
}

/// Which training a diagram shows, where there are several.
std::string SeedName(const Job& job)
{
  return job.Options.Seeds > 1 ? ", seed " + std::to_string(job.Options.Training.Seed) : "";
}

/// The diagrams of all rows, side by side.
void AddDiagrams(Page& page, const Job& job, const std::vector<StudyRow>& rows)
{
  std::vector<PagePanel> diagrams;
  for (const StudyRow& row : rows)
  {
    if (row.Box.Cases > 0)
    {
      diagrams.push_back({ ReliabilityDiagram(row.Box, row.Name() + SeedName(job)), "" });
    }
  }
  page.Add(diagrams, true);
}

/// The numbers of raters: a small diagram for each, and how often they occur; once for all readouts of a strategy.
void AddLevels(Page& page, const Job& job, const std::vector<StudyRow>& rows)
{
  std::string last;
  for (const StudyRow& row : rows)
  {
    if (row.Box.Cases > 0 && !row.Box.Levels.empty() && row.Strategy != last)
    {
      page.Add({ { LevelDiagrams(row.Box, row.Strategy + SeedName(job)), "" } }, true);
      page.Add(LevelShareTable(row.Box, row.Strategy + ": how many raters mark a voxel"));
      last = row.Strategy;
    }
  }
}

std::string PageOf(Job& job)
{
  const StudyResult& result = job.Result;
  Page page("Training strategies for multiple raters");
  page.SetSubtitle(CountText(job) + " that were not used for training");
  page.Section("summary", "Summary");
  page.Paragraph("Every strategy was trained with the same network, course, data and seed" +
    std::string(job.Options.Seeds > 1 ? "s." : "."));
  std::vector<std::string> best;
  for (size_t c = 0; c < StudyColumns().size(); ++c)
  {
    if (StudyColumns()[c].InShort)
    {
      best.push_back(StudyColumns()[c].InShort + std::string(": ") + BestInWords(result, c));
    }
  }
  page.List(best);
  page.Section("table", "Results");
  page.Add(TableOf(result.Rows, result.Structures.empty() ? "" : "mean over structures"));
  if (!result.Structures.empty())
  {
    page.Note(MeanNote);
  }
  for (const StudyStructure& structure : result.Structures)
  {
    page.Heading(structure.Name);
    page.Add(TableOf(structure.Rows, structure.Name));
  }
  page.Note(Legend() + " " + SeedText(job.Options));
  page.Section("volumes", "Volumes");
  for (const StudyStructure& structure : result.Structures)
  {
    page.Add(VolumesOf(structure.Rows, structure.Name));
  }
  if (result.Structures.empty())
  {
    page.Add(VolumesOf(result.Rows, ""));
  }
  page.Note(VolumeNote(result));
  page.Section("pictures", "Side by side");
  AddPictures(page, job);
  page.Section("reliability", "Calibration: does 70 % mean 70 %?");
  page.Paragraph("On the diagonal, the predicted probability equals the share of raters who mark the voxel. Voxels of the box "
                 "around all marks" +
    SeedShown(job.Options) + ". Point at a diagram, or touch it, to read its values.");
  const auto forEachStructure = [&](void (*add)(Page&, const Job&, const std::vector<StudyRow>&)) {
    for (const StudyStructure& structure : result.Structures)
    {
      page.Heading(structure.Name);
      add(page, job, structure.Rows);
    }
    if (result.Structures.empty())
    {
      add(page, job, result.Rows);
    }
  };
  forEachStructure(AddDiagrams);
  page.Section("levels", "Does it know how many raters mark a voxel?");
  page.Paragraph(
    "For each number of raters, the probability that at least so many mark a voxel against how often they do, in the "
    "box around all marks" +
    SeedShown(job.Options) + ". Unsure: where the model itself expects 5 to 95 % of the raters.");
  forEachStructure(AddLevels);
  page.Section("how", "How this was made");
  if (!job.Options.Command.empty())
  {
    page.Code(job.Options.Command);
  }
  page.List(job.Trained);
  return page.Html();
}

// ---- trainings -------------------------------------------------------------------------------------

/// What the records of the finished models say: a line for each, and the cases that they left out.
void ReadRecords(Job& job)
{
  std::set<std::string> named; // every strategy leaves out the same cases
  for (const Run& run : job.Runs)
  {
    const std::string path = job.Folder.Model(run, ".json"), about = path + " is not the record of a training",
                      remedy = "Remove it to train this model again.";
    const JsonHandle root = ParseJson(ReadText(path), about, remedy);
    const JsonReader record(root.get(), about, remedy);
    const std::vector<const json_t*> epochs = record.Array("epochs");
    const TrainingEpoch last = EpochFrom(epochs.empty() ? nullptr : epochs.back());
    job.Trained.push_back(run.Name() + ": best epoch " + std::to_string(record.WholeNumber("best", 0, INT_MAX)) + " of " +
      std::to_string(last.Epoch) + ", " + DurationText(last.Seconds));
    for (const LeftOutCase& one : LeftOutFrom(record.Get("left_out")))
    {
      if (named.insert(one.Id).second)
      {
        job.LeftOut.push_back(one);
      }
    }
  }
}

} // namespace

void WriteTables(Job& job)
{
  StudyResult& result = job.Result;
  ReadRecords(job);
  result.Markdown = job.Folder.File("table.md");
  result.Json = job.Folder.File("table.json");
  result.Html = job.Folder.File("report.html");
  if (job.All.IsFirst())
  {
    WriteText(result.Markdown, MarkdownOf(job));
    WriteText(result.Json, JsonOf(job));
    WriteText(result.Html, PageOf(job));
  }
}

} // namespace study
} // namespace rcn
