// SPDX-License-Identifier: Apache-2.0
/// Judging the predictions of all runs: the rows of the table.
#include "rcnStudyParts.h"

#include <algorithm>
#include <iterator>

#include "rcnJudge.h"
#include "rcnRanking.h"

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

/// The columns of a region.
void FillColumns(Job& job, rcn_region region, const Models& models)
{
  std::vector<StudyRow>& rows = job.Result.Rows;
  const std::string name = rcn_region_name(region);
  for (size_t r = 0; r < rows.size(); ++r)
  {
    job.Show(1, "judging on the region " + name + ", " + rows[r].Strategy);
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
  for (size_t c = 0; c < StudyColumns().size(); ++c)
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

/// Judges all rows and seeds on these regions; each file is read once.
void JudgeRegions(Job& job, const std::vector<rcn_region>& regions)
{
  JudgeInput input;
  input.List = job.Test;
  input.Loop.LeaveOut = false; // they were all read before the training
  input.Loop.Begin = [&job](const std::string& id, size_t, size_t) { job.Show(1, "judging case " + id); };
  for (const Run& run : job.Runs)
  {
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
  std::vector<JudgeTask> tasks; // by region, row and seed
  for (const rcn_region region : regions)
  {
    for (const StudyRow& row : job.Result.Rows)
    {
      for (size_t run = 0; run < job.Runs.size(); ++run)
      {
        if (job.Runs[run].Strategy == row.Strategy)
        {
          tasks.push_back({ run, OptionsOf(job, row, region) });
          tasks.back().Options.Volumes = volumes[run];
        }
      }
    }
  }
  const JudgeResult judged = JudgeCases(job.Cases, input, tasks);
  auto next = judged.Evaluations.begin();
  for (const rcn_region region : regions)
  {
    Models models(job.Result.Rows.size());
    for (std::vector<const Evaluation*>& seeds : models)
    {
      for (int seed = 0; seed < job.Options.Seeds; ++seed)
      {
        seeds.push_back((next++)->get());
      }
    }
    FillColumns(job, region, models);
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
  // All regions in one pass over the files, unless the sums of so many cases would not fit.
  constexpr double bytesOfSums = 0.3e6, mostBytes = 2e9; // of one case in one evaluation (rcn_calib.h); of all of them
  const std::vector<rcn_region> regions = RegionsOf(StudyColumns());
  const size_t sums = job.Result.Rows.size() * job.Test.Cases.size() * static_cast<size_t>(job.Options.Seeds) * regions.size();
  if (bytesOfSums * static_cast<double>(sums) <= mostBytes)
  {
    JudgeRegions(job, regions);
    return;
  }
  for (const rcn_region region : regions)
  {
    JudgeRegions(job, { region });
  }
}

} // namespace study
} // namespace rcn
