// SPDX-License-Identifier: Apache-2.0
/// Reads the models' predictions and judges them, each by its readouts, with and without its correction, in three regions.
#include "rcnReportParts.h"

#include <algorithm>

namespace rcn
{
namespace report
{

void ModelJudge::ReadModels()
{
  for (const ReportModel& one : this->Options_.Models)
  {
    this->Corrections_.emplace_back();
    this->Folders_.emplace_back();
    this->Runs_.emplace_back();
    if (!one.Predictions.empty() && !this->Options_.Data.empty())
    {
      this->Folders_.back() = std::make_shared<PredictionFolder>(one.Predictions);
      this->Runs_.back() =
        this->Folders_.back()->HasManifest() ? std::make_shared<PredictionRun>(this->Folders_.back()->Run()) : nullptr;
    }
    else if (!one.Predictions.empty())
    {
      this->Runs_.back() = PredictionFolder::RunOf(one.Predictions);
    }
    if (!one.Recalibration.empty())
    {
      RefuseCorrected(this->Runs_.back().get(), one.Predictions);
      this->Corrections_.back().reset(new Recalibration(ReadRecalibration(one.Recalibration)));
      this->Files_.insert(one.Recalibration);
    }
#ifdef RCN_HAVE_NETWORKS
    this->Models_.emplace_back();
    if (!one.Model.empty())
    {
      this->Models_.back().reset(new Model(this->Workspace_.Context(), one.Model));
      this->Files_.insert(one.Model);
      const ModelInfo& info = this->Models_.back()->Info();
      if (one.Predictions.empty())
      {
        PredictionOptions options;
        options.Recalibrate = false;
        this->Runs_.back() = std::make_shared<PredictionRun>(RunOf(*this->Models_.back(), options));
      }
      if (one.Predictions.empty() && info.Correction && !this->Corrections_.back())
      {
        this->Corrections_.back().reset(new Recalibration(*info.Correction));
      }
    }
#endif
  }
}

Volume ModelJudge::PredictionOf(size_t model, const Case& one)
{
  const ReportModel& what = this->Options_.Models[model];
  if (!what.Predictions.empty())
  {
    const std::string file = this->Folders_[model] ? this->Folders_[model]->Find(one.Id) : what.Predictions;
    this->Files_.insert(file);
    const Volume prediction = ReadPrediction(file, this->Options_.Judge.Scale);
    CheckLevelCount(prediction, static_cast<int>(this->Workspace_.RaterNames().size()), file);
    return prediction;
  }
#ifdef RCN_HAVE_NETWORKS
  PredictionOptions options;
  options.Recalibrate = false;
  if (!this->Workspace_.HasImage())
  {
    throw Error(RCN_EDATA, "the model " + what.Name + " needs an image.");
  }
  const Model& net = *this->Models_[model];
  net.CheckRaters(this->Workspace_.RaterNames(), "the data");
  return Predict(net, this->Workspace_.Context(), this->Workspace_.Images(), one.Images.front(), options).Levels;
#else
  throw Error(RCN_EUNSUPPORTED, "This program was built without networks and cannot predict.", "predictions");
#endif
}

/// Levels that are all or nothing: a model that gives one probability, stored as levels.
bool ModelJudge::IsOneProbability(const Volume& prediction, const std::string& name) const
{
  int ends = 0;
  rcn_context* context = this->Workspace_.Context();
  Check(rcn_levels_are_ends(&ends, context, &prediction.View()), context, name);
  return ends != 0;
}

std::shared_ptr<const VolumeScores> ModelJudge::ScoresOfVolumes(size_t model) const
{
  return this->Runs_[model] ? this->Runs_[model]->ScoresOfVolumes() : nullptr;
}

EvaluationOptions ModelJudge::ReadoutFor(size_t model, const std::string& asked) const
{
  EvaluationOptions options;
  const PredictionRun* run = this->Runs_[model].get();
  ChooseReadout(options, asked, run ? run->Readout : "", run && run->TieBackground);
  return options;
}

void ModelJudge::MakeSeries(size_t model, const Volume& prediction)
{
  const ReportModel& what = this->Options_.Models[model];
  const Recalibration* correction = this->Corrections_[model].get();
  std::vector<std::pair<rcn_readout, int>> readouts = { { RCN_READOUT_MAJORITY, 0 } };
  const PredictionRun* run = this->Runs_[model].get();
  if (run && run->TieBackground)
  {
    readouts[0].first = RCN_READOUT_MORE_THAN_HALF;
  }
  const bool levels = this->PredictsLevels_[model];
  if (levels && this->Options_.Readout.empty())
  {
    readouts.emplace_back(RCN_READOUT_EXPECTED, 0);
    std::pair<rcn_readout, int> own = readouts[0];
    if (run && ParseReadout(own.first, own.second, run->Readout) &&
      std::find(readouts.begin(), readouts.end(), own) == readouts.end())
    {
      readouts.insert(readouts.begin(), own);
    }
  }
  else if (levels)
  {
    const EvaluationOptions asked = this->ReadoutFor(model, this->Options_.Readout);
    readouts[0] = { asked.Calib.readout, asked.Calib.at_least };
  }
  for (const auto& readout : readouts)
  {
    JudgedSeries plain;
    plain.Model = model;
    plain.Readout = readout.first;
    plain.AtLeast = readout.second;
    plain.Name = what.Name + (levels ? " (" + ReadoutText(readout.first, readout.second) + ")" : "");
    // A correction of one probability is for the readout that it was fitted to.
    const bool fits = correction &&
      (prediction.View().components == 1 || correction->Correction.levels > 0 || correction->OneProbability ||
        (correction->Readout == readout.first && correction->AtLeast == readout.second));
    if (fits)
    {
      JudgedSeries corrected;
      corrected.Model = model;
      corrected.Readout = plain.Readout;
      corrected.AtLeast = plain.AtLeast;
      corrected.Name = plain.Name + ", recalibrated";
      corrected.Correction = correction;
      corrected.Before = static_cast<int>(this->Series_.size());
      plain.Name += ", uncorrected";
      this->Series_.push_back(std::move(plain));
      this->Series_.push_back(std::move(corrected));
    }
    else
    {
      this->Series_.push_back(std::move(plain));
    }
  }
}

/// The series of all models, and who judges them, once the first case says which models tell levels apart.
void ModelJudge::StartJudges(const std::vector<CasePrediction>& predictions)
{
  // All models first: what a bad map of the last one throws must not leave the others half made.
  std::vector<bool> levels;
  for (size_t model = 0; model < predictions.size(); ++model)
  {
    const ReportModel& what = this->Options_.Models[model];
    levels.push_back(!this->IsOneProbability(predictions[model].Map, what.Predictions.empty() ? what.Name : what.Predictions));
  }
  this->PredictsLevels_ = levels;
  for (size_t model = 0; model < predictions.size(); ++model)
  {
    this->MakeSeries(model, predictions[model].Map);
  }
  std::vector<JudgeTask> tasks;
  for (const JudgedSeries& series : this->Series_)
  {
    const std::string readout =
      this->PredictsLevels_[series.Model] ? ReadoutText(series.Readout, series.AtLeast) : this->Options_.Readout;
    EvaluationOptions options = this->Options_.Judge;
    options.ExactAuc = false;
    options.TieBackground = this->ReadoutFor(series.Model, readout).TieBackground;
    options.Calib.readout = series.Readout;
    options.Calib.at_least = series.AtLeast;
    options.Correction = series.Correction;
    options.AllowFittedCases = true; // the page says on which cases it was fitted
    options.Volumes = this->ScoresOfVolumes(series.Model);
    for (const rcn_region region : JudgedRegions)
    {
      options.Region.region = region;
      tasks.push_back({ series.Model, options });
    }
  }
  this->Judging_.reset(new Judging(this->Workspace_.Context(), this->Workspace_.RaterNames(), tasks));
  for (size_t t = 0; t < tasks.size(); ++t)
  {
    this->Series_[t / RegionCount].Judges.push_back(this->Judging_->Evaluations()[t].get());
  }
}

void ModelJudge::JudgeCase(const Case& one)
{
  std::vector<CasePrediction> predictions;
  for (size_t model = 0; model < this->Options_.Models.size(); ++model)
  {
    predictions.push_back({ this->PredictionOf(model, one), this->Options_.Models[model].Name + ", case " + one.Id });
  }
  if (!this->Judging_)
  {
    this->StartJudges(predictions);
  }
  this->Judging_->Add(one, 0, this->Workspace_.Votes(), predictions);
}

void ModelJudge::Finish(const std::function<void(const std::string& stage)>& show)
{
  for (JudgedSeries& series : this->Series_)
  {
    for (size_t g = 0; g < RegionCount; ++g)
    {
      show("judging " + series.Name);
      series.HasReport[g] = !series.Judges[g]->CaseIds().empty();
      series.Reports.push_back(series.HasReport[g] ? series.Judges[g]->Report() : EvaluationReport());
    }
  }
}

const JudgedSeries* ModelJudge::Best() const
{
  const JudgedSeries* best = nullptr;
  for (const JudgedSeries& series : this->Series_)
  {
    if (series.HasReport[0] && (!best || series.Reports[0].Figures[RCN_MR_ECE] < best->Reports[0].Figures[RCN_MR_ECE]))
    {
      best = &series;
    }
  }
  return best;
}

} // namespace report
} // namespace rcn
