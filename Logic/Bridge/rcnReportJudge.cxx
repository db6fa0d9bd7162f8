// SPDX-License-Identifier: Apache-2.0
/// Reads the models' predictions and judges them, each by its readouts, with and without its correction, in three regions.
#include "rcnReportParts.h"

#include <algorithm>
#include <iterator>

namespace rcn
{
namespace report
{

void ModelJudge::ReadModels(const std::vector<Structure>& structures, const std::vector<int>& parts)
{
  this->Structures_ = structures.size() > 1 ? structures : std::vector<Structure>();
  for (const int part : parts)
  {
    this->Series_[part];
  }
  for (const ReportModel& one : this->Options_.Models)
  {
    this->Corrections_.emplace_back();
    this->Sources_.emplace_back();
    if (!one.Predictions.empty())
    {
      this->Sources_.back() = this->Options_.Data.empty()
        ? PredictionOfFile(one.Predictions, this->Options_.Judge.Scale, this->Structures_)
        : PredictionsOfFolder(one.Predictions, this->Options_.Judge.Scale, this->Structures_);
    }
    this->Runs_.push_back(this->Sources_.back().Run);
    if (parts.size() > 1 && this->Runs_.back() && this->Runs_.back()->Structures.empty())
    {
      throw Error(RCN_EINVALID,
        one.Predictions + " holds predictions of one structure, and there are " + std::to_string(parts.size()) +
          "; choose the one to report on.",
        "structure");
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

CasePrediction ModelJudge::PredictionOf(size_t model, const Case& one)
{
  const ReportModel& what = this->Options_.Models[model];
  if (model < this->Only_.size())
  {
    return this->Only_[model];
  }
  if (!what.Predictions.empty())
  {
    CasePrediction prediction = this->Sources_[model].Read(one, 0);
    this->Files_.insert(prediction.File);
    if (!prediction.Structures)
    {
      CheckLevelCount(prediction.Map, static_cast<int>(this->Workspace_.RaterNames().size()), prediction.File);
    }
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
  if (this->Series_.size() > 1 || net.HasSeveralStructures())
  {
    net.CheckStructures(this->Structures_, "the data");
  }
  if (net.HasSeveralStructures() && NamesOf(net.Info().Structures) != NamesOf(this->Structures_))
  {
    throw Error(RCN_EINVALID,
      what.Name + " was trained with the structures in another order; give them as " +
        JoinNames(NamesOf(net.Info().Structures)) + ".");
  }
  const Prediction prediction =
    Predict(net, this->Workspace_.Context(), this->Workspace_.Images(), one.Images.front(), options);
  return { prediction.Levels, what.Name, prediction.Structures };
#else
  throw Error(RCN_EUNSUPPORTED, "This program was built without networks and cannot predict.", "predictions");
#endif
}

Volume ModelJudge::MapOf(const CasePrediction& prediction) const
{
  return prediction.Structures ? prediction.Structures->Of(this->Workspace_.Context(), this->Workspace_.SelectedStructure(),
                                   static_cast<int>(this->Workspace_.RaterNames().size()), prediction.File)
                               : prediction.Map;
}

/// Levels that are all or nothing: a model that gives one probability, stored as levels.
bool ModelJudge::IsOneProbability(const CasePrediction& prediction, const std::string& name) const
{
  if (prediction.Structures)
  {
    return !prediction.Structures->HasLevels();
  }
  int ends = 0;
  rcn_context* context = this->Workspace_.Context();
  Check(rcn_levels_are_ends(&ends, context, &prediction.Map.View()), context, name);
  return ends != 0;
}

std::shared_ptr<const VolumeScores> ModelJudge::ScoresOfVolumes(size_t model) const
{
  const int structure = this->Workspace_.SelectedStructure();
  return this->Runs_[model] ? ScoresOf(this->Runs_[model]->ScoresOfVolumes(), this->NameOf(structure)) : nullptr;
}

std::string ModelJudge::NameOf(int structure) const
{
  return structure > 0 && !this->Structures_.empty() ? this->Structures_[static_cast<size_t>(structure) - 1].Name : "";
}

EvaluationOptions ModelJudge::ReadoutFor(size_t model, const std::string& asked) const
{
  EvaluationOptions options;
  const PredictionRun* run = this->Runs_[model].get();
  ChooseReadout(options, asked, run ? run->Readout : "", run && run->TieBackground);
  return options;
}

/// `oneComponent`: the prediction holds one probability and nothing else. `first`: how many series other models have.
std::vector<JudgedSeries> ModelJudge::MakeSeries(size_t model, bool oneComponent, size_t first) const
{
  std::vector<JudgedSeries> made;
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
      (oneComponent || correction->Correction.levels > 0 || correction->OneProbability ||
        (correction->Readout == readout.first && correction->AtLeast == readout.second));
    if (fits)
    {
      JudgedSeries corrected;
      corrected.Model = model;
      corrected.Readout = plain.Readout;
      corrected.AtLeast = plain.AtLeast;
      corrected.Name = plain.Name + ", recalibrated";
      corrected.Correction = correction;
      corrected.Before = static_cast<int>(first + made.size());
      plain.Name += ", uncorrected";
      made.push_back(std::move(plain));
      made.push_back(std::move(corrected));
    }
    else
    {
      made.push_back(std::move(plain));
    }
  }
  return made;
}

EvaluationOptions ModelJudge::TaskOptions(const JudgedSeries& series) const
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
  options.Volumes = this->Runs_[series.Model] ? this->Runs_[series.Model]->ScoresOfVolumes() : nullptr;
  return options;
}

/// The series of all models, and who judges them, once the first case says which models tell levels apart.
void ModelJudge::StartJudges(const std::vector<CasePrediction>& predictions)
{
  // All models first: what a bad map of the last one throws must not leave the others half made.
  std::vector<bool> levels;
  for (size_t model = 0; model < predictions.size(); ++model)
  {
    const ReportModel& what = this->Options_.Models[model];
    levels.push_back(!this->IsOneProbability(predictions[model], what.Predictions.empty() ? what.Name : what.Predictions));
  }
  this->PredictsLevels_ = levels;
  std::vector<JudgeTask> tasks;
  for (auto& part : this->Series_)
  {
    for (size_t model = 0; model < predictions.size(); ++model)
    {
      const bool oneComponent = !predictions[model].Structures && predictions[model].Map.View().components == 1;
      for (JudgedSeries& series : this->MakeSeries(model, oneComponent, part.second.size()))
      {
        part.second.push_back(std::move(series));
      }
    }
    for (const JudgedSeries& series : part.second)
    {
      EvaluationOptions options = this->TaskOptions(series);
      options.Structure = this->NameOf(part.first);
      for (const rcn_region region : JudgedRegions)
      {
        options.Region.region = region;
        tasks.push_back({ series.Model, options, part.first });
      }
    }
  }
  this->Judging_.reset(new Judging(this->Workspace_.Context(), this->Workspace_.RaterNames(), tasks));
  auto judge = this->Judging_->Evaluations().begin();
  for (auto& part : this->Series_)
  {
    for (JudgedSeries& series : part.second)
    {
      std::transform(judge, judge + RegionCount, std::back_inserter(series.Judges),
        [](const std::unique_ptr<Evaluation>& evaluation) { return evaluation.get(); });
      judge += RegionCount;
    }
  }
}

void ModelJudge::JudgeCase(const Case& one)
{
  std::vector<CasePrediction> predictions;
  for (size_t model = 0; model < this->Options_.Models.size(); ++model)
  {
    predictions.push_back(this->PredictionOf(model, one));
    predictions.back().File = this->Options_.Models[model].Name + ", case " + one.Id;
  }
  if (!this->Judging_)
  {
    this->StartJudges(predictions);
  }
  const rcn_votes* labels = this->Workspace_.LabeledVotes();
  this->Judging_->Add(one, 0, labels ? labels : this->Workspace_.Votes(), predictions);
  if (this->Options_.Data.empty()) // the only case is drawn next, and to predict takes long
  {
    this->Only_ = predictions;
  }
}

void ModelJudge::Finish(const std::function<void(const std::string& stage)>& show)
{
  for (auto& part : this->Series_)
  {
    for (JudgedSeries& series : part.second)
    {
      for (size_t g = 0; g < RegionCount; ++g)
      {
        show("evaluating " + series.Name);
        series.HasReport[g] = !series.Judges[g]->CaseIds().empty();
        series.Reports.push_back(series.HasReport[g] ? series.Judges[g]->Report() : EvaluationReport());
      }
    }
  }
}

const JudgedSeries* ModelJudge::Best(int structure) const
{
  const JudgedSeries* best = nullptr;
  for (const JudgedSeries& series : this->Series(structure))
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
