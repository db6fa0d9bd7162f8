// SPDX-License-Identifier: Apache-2.0
/// Judging the predictions of all runs: the rows of the table.
#include "rcnStudyParts.h"

#include <algorithm>
#include <iterator>

#include "rcnJudge.h"
#include "rcnModelRecord.h"
#include "rcnRanking.h"
#include "rcnReport.h"

namespace rcn
{
namespace study
{

namespace
{

/// The regions that columns need, each once.
std::vector<rcn_region> RegionsOf(const std::vector<StudyColumn>& columns)
{
  std::vector<rcn_region> regions;
  for (const StudyColumn& column : columns)
  {
    if (std::find(regions.begin(), regions.end(), column.Region) == regions.end())
    {
      regions.push_back(column.Region);
    }
  }
  return regions;
}

/// One value of the table out of the seeds' reports.
StudyCell CellOf(const StudyColumn& column, const std::vector<EvaluationReport>& seeds, const rcn_interval& together)
{
  StudyCell cell;
  const double share = 1 / static_cast<double>(seeds.size());
  cell.SeedLow = cell.SeedHigh = column.ValueOf(seeds.front());
  for (const EvaluationReport& seed : seeds)
  {
    const double value = column.ValueOf(seed);
    cell.Value += share * value;
    cell.PaperMean += share * seed.Paper[column.Figure].mean;
    cell.PaperStd += share * seed.Paper[column.Figure].std;
    cell.SeedLow = std::min(cell.SeedLow, value);
    cell.SeedHigh = std::max(cell.SeedHigh, value);
  }
  // AUC is exact in the table and from a histogram in the interval, which is to hold it all the same.
  cell.Low = std::min(together.low, cell.Value);
  cell.High = std::max(together.high, cell.Value);
  return cell;
}

/// How a row is judged on a region.
EvaluationOptions OptionsOf(const Job& job, const StudyRow& row, rcn_region region)
{
  EvaluationOptions options = job.Options.Judge;
  options.Region.region = region;
  options.TieBackground = job.Options.Training.TieBackground;
  ParseReadout(options.Calib.readout, options.Calib.at_least, row.Readout);
  // Exact AUC holds every voxel in memory.
  options.ExactAuc = std::any_of(StudyColumns().begin(), StudyColumns().end(),
    [region](const StudyColumn& column) { return column.Region == region && column.Figure == RCN_AUC_HISTOGRAM; });
  return options;
}

/// By row: its trainings on one region.
using Models = std::vector<std::vector<const Evaluation*>>;

/// What is not defined: nobody marked the structure in any test case.
StudyCell NoCell()
{
  StudyCell cell;
  cell.Value = cell.PaperMean = cell.PaperStd = cell.SeedLow = cell.SeedHigh = NAN;
  return cell;
}

/// The columns of a region.
void FillColumns(Job& job, std::vector<StudyRow>& rows, rcn_region region, const Models& models)
{
  const std::string name = rcn_region_name(region);
  const bool empty = job.List.HasStructures() && models.front().front()->CaseIds().empty();
  for (size_t r = 0; r < rows.size(); ++r)
  {
    for (size_t c = 0; empty && c < StudyColumns().size(); ++c)
    {
      rows[r].Cells[c] = StudyColumns()[c].Region == region ? NoCell() : rows[r].Cells[c];
    }
    if (empty)
    {
      continue;
    }
    job.Show(1, "evaluating on the region " + name + ", " + rows[r].Strategy);
    std::vector<EvaluationReport> reports;
    std::transform(
      models[r].begin(), models[r].end(), std::back_inserter(reports), [](const Evaluation* model) { return model->Report(); });
    const std::vector<rcn_interval> together = Evaluation::Together(models[r]);
    for (size_t c = 0; c < StudyColumns().size(); ++c)
    {
      const StudyColumn& column = StudyColumns()[c];
      if (column.Region == region)
      {
        rows[r].Cells[c] = CellOf(column, reports, together[column.Figure]);
      }
    }
    if (region == RCN_REGION_BOX)
    {
      rows[r].Box = reports.front();
      std::vector<VolumeReport> volumes;
      std::transform(reports.begin(), reports.end(), std::back_inserter(volumes),
        [](const EvaluationReport& report) { return report.Volumes; });
      rows[r].Volumes = MeanOverTrainings(volumes);
    }
  }
  job.Show(1, "comparing on the region " + name);
  for (size_t c = 0; !empty && c < StudyColumns().size(); ++c)
  {
    if (StudyColumns()[c].Region == region)
    {
      std::vector<double> values;
      std::transform(
        rows.begin(), rows.end(), std::back_inserter(values), [c](const StudyRow& row) { return row.Cells[c].Value; });
      const std::vector<Rank> ranks = RankModels(models, values, StudyColumns()[c].Figure, region);
      for (size_t r = 0; r < rows.size(); ++r)
      {
        rows[r].Cells[c].Best = ranks[r] == Rank::Best;
        rows[r].Cells[c].Tie = ranks[r] == Rank::Tie;
      }
    }
  }
}

/// What was found on the test cases into the models, whose pages and windows tell it: on the usual region and by each model's
/// own readout, as evaluate records it.
void RecordTests(const Job& job, const std::vector<JudgeTask>& tasks, const JudgeResult& judged)
{
  for (size_t run = 0; run < job.Runs.size(); ++run)
  {
    const std::string path = job.Folder.Model(job.Runs[run], ".safetensors");
    const Model model(job.Cases.Context(), path);
    const ModelInfo& info = model.Info();
    EvaluationOptions own;
    ChooseReadout(own, "", ReadoutText(info.Readout, info.AtLeast), info.TieBackground);
    std::vector<StructureReport> structures; // or the only one
    const Evaluation* most = nullptr;
    for (size_t t = 0; t < tasks.size(); ++t)
    {
      const EvaluationOptions& options = tasks[t].Options;
      const bool same = options.Calib.readout == own.Calib.readout && options.Calib.at_least == own.Calib.at_least;
      if (tasks[t].Prediction != run || options.Region.region != UsualRegion().region || !(same || model.GivesOneProbability()))
      {
        continue;
      }
      const Evaluation& one = *judged.Evaluations[t];
      const size_t cases = one.CaseIds().size();
      structures.push_back({ one.Options().Structure, cases > 0 ? one.Report() : EvaluationReport() }); // in all processes
      most = cases > (most ? most->CaseIds().size() : 0) ? &one : most;
    }
    if (most && job.All.IsFirst())
    {
      EvaluationOptions how = most->Options();
      how.Calib.readout = own.Calib.readout; // of one probability, any is the same
      how.Calib.at_least = own.Calib.at_least;
      RecordCalibration(job.Cases.Context(), path, "test",
        job.List.HasStructures() ? MeanOverStructures(structures) : structures.front().Report, how, most->CaseIds());
    }
  }
  job.All.WaitForAll(); // the models are written
}

/// Judges all rows and seeds on these regions; each file is read once.
void JudgeRegions(Job& job, const std::vector<rcn_region>& regions)
{
  JudgeInput input;
  input.List = job.Test;
  input.Loop.LeaveOut = false; // they were all read before the training
  input.Loop.Begin = [&job](const std::string& id, size_t, size_t) { job.Show(1, "evaluating case " + id); };
  for (const Run& run : job.Runs)
  {
    if (job.List.HasStructures())
    {
      input.Predictions.push_back(PredictionsOfFolder(job.Folder.Predictions(run), 0, job.List.Structures));
      continue;
    }
    input.Predictions.push_back({ run.Name(),
      [&job, run](const Case& one, size_t) {
        const std::string path = job.Folder.Levels(run, one.Id);
        return CasePrediction{ ReadPrediction(path), path };
      },
      nullptr });
  }
  std::vector<std::shared_ptr<const VolumeScores>> volumes; // by run
  for (const Run& run : job.Runs)
  {
    const Model model(job.Cases.Context(), job.Folder.Model(run, ".safetensors"));
    volumes.push_back(RunOf(model, job.Options.Prediction).ScoresOfVolumes());
  }
  const int structures = static_cast<int>(job.Result.Structures.size());
  std::vector<JudgeTask> tasks; // by region, structure, row and seed
  for (const rcn_region region : regions)
  {
    for (int structure = structures ? 1 : 0; structure <= structures; ++structure)
    {
      for (const StudyRow& row : job.Result.Rows)
      {
        for (size_t run = 0; run < job.Runs.size(); ++run)
        {
          if (job.Runs[run].Strategy == row.Strategy)
          {
            tasks.push_back({ run, OptionsOf(job, row, region), structure });
            tasks.back().Options.Volumes = volumes[run];
          }
        }
      }
    }
  }
  const JudgeResult judged = JudgeCases(job.Cases, input, tasks);
  auto next = judged.Evaluations.begin();
  const auto fill = [&](std::vector<StudyRow>& rows, rcn_region region) {
    Models models(rows.size());
    for (std::vector<const Evaluation*>& seeds : models)
    {
      for (int seed = 0; seed < job.Options.Seeds; ++seed)
      {
        seeds.push_back((next++)->get());
      }
    }
    FillColumns(job, rows, region, models);
  };
  for (const rcn_region region : regions)
  {
    for (StudyStructure& structure : job.Result.Structures)
    {
      fill(structure.Rows, region);
    }
    if (!structures)
    {
      fill(job.Result.Rows, region);
    }
  }
  if (std::find(regions.begin(), regions.end(), UsualRegion().region) != regions.end())
  {
    RecordTests(job, tasks, judged);
  }
}

/// The means over structures, of those where a figure is defined. Nothing is tested here: only the best is marked.
void FillMeans(StudyResult& result)
{
  for (size_t r = 0; r < result.Rows.size(); ++r)
  {
    StudyRow& row = result.Rows[r];
    std::vector<StructureReport> boxes;
    for (const StudyStructure& structure : result.Structures)
    {
      boxes.push_back({ structure.Name, structure.Rows[r].Box });
    }
    row.Box = MeanOverStructures(boxes);
    for (size_t c = 0; c < StudyColumns().size(); ++c)
    {
      for (double StudyCell::* value : { &StudyCell::Value, &StudyCell::PaperMean, &StudyCell::PaperStd })
      {
        Spread spread;
        for (const StudyStructure& structure : result.Structures)
        {
          spread.Add(structure.Rows[r].Cells[c].*value);
        }
        row.Cells[c].*value = spread.Count() ? spread.Mean() : NAN;
      }
      row.Cells[c].SeedLow = row.Cells[c].SeedHigh = NAN;
    }
  }
  for (size_t c = 0; c < StudyColumns().size(); ++c)
  {
    const StudyColumn& column = StudyColumns()[c];
    StudyCell* best = nullptr;
    for (StudyRow& row : result.Rows)
    {
      const double gain = best ? BetterDirection(column.Figure) * (row.Cells[c].Value - best->Value) : 1;
      best = IsRanked(column.Figure, column.Region) && std::isfinite(row.Cells[c].Value) && gain > 0 ? &row.Cells[c] : best;
    }
    if (best)
    {
      best->Best = true;
    }
  }
}

} // namespace

void Judge(Job& job)
{
  for (const Run& run : job.Runs)
  {
    if (run.Number)
    {
      continue; // the rows are those of the first seed
    }
    const Model model(job.Cases.Context(), job.Folder.Model(run, ".safetensors"));
    model.CheckRaters(job.List.Raters, job.Options.Data);
    model.CheckStructures(job.List.Structures, job.Options.Data);
    std::vector<std::string> readouts = { "" };
    if (!model.GivesOneProbability())
    {
      readouts = { model.Info().TieBackground ? "more-than-half" : "majority", "expected" };
    }
    for (const std::string& readout : readouts)
    {
      job.Result.Rows.push_back({ run.Strategy, readout, std::vector<StudyCell>(StudyColumns().size()), {}, {} });
    }
  }
  for (const Structure& structure : job.List.HasStructures() ? job.List.Structures : std::vector<Structure>())
  {
    job.Result.Structures.push_back({ structure.Name, job.Result.Rows });
  }
  // All regions in one pass over the files, unless the sums of so many cases would not fit.
  constexpr double bytesOfSums = 0.3e6, mostBytes = 2e9; // of one case in one evaluation (rcn_calib.h); of all of them
  const std::vector<rcn_region> regions = RegionsOf(StudyColumns());
  const size_t sums = job.Result.Rows.size() * job.Test.Cases.size() * static_cast<size_t>(job.Options.Seeds) * regions.size() *
    std::max<size_t>(1, job.Result.Structures.size());
  const bool together = bytesOfSums * static_cast<double>(sums) <= mostBytes;
  for (const rcn_region region : together ? std::vector<rcn_region>{ regions.front() } : regions)
  {
    JudgeRegions(job, together ? regions : std::vector<rcn_region>{ region });
  }
  if (!job.Result.Structures.empty())
  {
    FillMeans(job.Result);
  }
}

} // namespace study
} // namespace rcn
