// SPDX-License-Identifier: Apache-2.0
#include "rcnJudge.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "rcn/rcn.h"
#include "rcnProcesses.h"
#include "rcnReport.h"

namespace rcn
{

// ---- what is judged --------------------------------------------------------------------------------

PredictionSource PredictionsOfFolder(const std::string& path, double scale)
{
  const auto folder = std::make_shared<const PredictionFolder>(path);
  PredictionSource source;
  source.Name = path;
  source.Run = folder->HasManifest() ? std::make_shared<PredictionRun>(folder->Run()) : nullptr;
  source.Read = [folder, scale](const Case& one, size_t) {
    const std::string file = folder->Find(one.Id);
    return CasePrediction{ ReadPrediction(file, scale), file };
  };
  return source;
}

PredictionSource PredictionOfFile(const std::string& file, double scale)
{
  return { file, [file, scale](const Case&, size_t) { return CasePrediction{ ReadPrediction(file, scale), file }; },
    PredictionFolder::RunOf(file) };
}

PredictionSource PredictionInMemory(const Volume& map, const std::string& name)
{
  return { name, [map, name](const Case&, size_t) { return CasePrediction{ map, name }; }, nullptr };
}

JudgeInput CaseInWorkspace(const Workspace& workspace, const std::string& id, const PredictionSource& prediction)
{
  JudgeInput input;
  input.List.Raters = workspace.RaterNames();
  input.List.Cases.emplace_back();
  input.List.Cases.back().Id = id;
  input.Loop.LeaveOut = false;
  input.Predictions = { prediction };
  const rcn_votes* votes = workspace.Votes();
  input.Votes = [votes](const Case&, size_t) { return std::shared_ptr<const rcn_votes>(std::shared_ptr<void>(), votes); };
  return input;
}

// ---- one case --------------------------------------------------------------------------------------

/// The regions of a case, each made once.
class Judging::Regions
{
public:
  Regions(rcn_context* context, const rcn_votes* votes) : Context_(context), Votes_(votes) {}

  using Voxels = std::shared_ptr<const std::vector<uint8_t>>;
  struct Region
  {
    Voxels Inside; ///< by voxel; null: everywhere
    int64_t Count = 0;
  };

  const Region& Of(const EvaluationOptions& options)
  {
    const std::string key =
      (options.RegionMask.empty() ? "region " : "mask ") + RegionInWords(options.Region, options.RegionMask);
    const auto known = this->Made_.find(key);
    return known != this->Made_.end() ? known->second : this->Made_[key] = this->Make(options);
  }

  /// Voxels that at least one region has; null: everywhere.
  Voxels All() const
  {
    auto all = std::make_shared<std::vector<uint8_t>>();
    for (const auto& one : this->Made_)
    {
      if (!one.second.Inside)
      {
        return nullptr;
      }
      const std::vector<uint8_t>& inside = *one.second.Inside;
      all->resize(inside.size());
      std::transform(
        inside.begin(), inside.end(), all->begin(), all->begin(), [](uint8_t a, uint8_t b) { return uint8_t(a || b); });
    }
    return all;
  }

private:
  Region Make(const EvaluationOptions& options) const
  {
    const int64_t voxels = rcn_geometry_voxels(rcn_votes_geometry(this->Votes_));
    if (options.RegionMask.empty() && options.Region.region == RCN_REGION_WHOLE)
    {
      return { nullptr, voxels };
    }
    auto inside = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(voxels));
    int64_t count = 0;
    if (!options.RegionMask.empty())
    {
      count = this->FillFromMask(*inside, options.RegionMask);
    }
    else
    {
      Check(rcn_region_fill(inside->data(), &count, this->Context_, this->Votes_, &options.Region), this->Context_);
    }
    return { inside, count };
  }

  /// A mask is a rater of one: the votes code already reads any type and refuses what is not a label.
  int64_t FillFromMask(std::vector<uint8_t>& inside, const std::string& file) const
  {
    const Volume mask = ReadMask(file);
    if (mask.ChannelCount() != 1)
    {
      throw Error(RCN_EDATA, file + " has " + std::to_string(mask.ChannelCount()) + " values per voxel; a mask must have one.");
    }
    Check(rcn_geometry_compare(this->Context_, &mask.Geometry(), file.c_str(), rcn_votes_geometry(this->Votes_), "the case",
            RCN_GEOMETRY_TOLERANCE),
      this->Context_);
    rcn_mask view{};
    view.image = mask.View();
    rcn_votes* votes = nullptr;
    Check(rcn_votes_from_masks(&votes, this->Context_, &view, 1), this->Context_, file);
    const std::unique_ptr<rcn_votes, VotesDeleter> keep(votes);
    const uint8_t table[2] = { 0, 1 };
    Check(rcn_votes_expand_u8(inside.data(), this->Context_, votes, table), this->Context_);
    return rcn_votes_marked(votes, 0);
  }

  rcn_context* Context_;
  const rcn_votes* Votes_;
  std::map<std::string, Region> Made_;
};

/// A copy that is sure background outside the region, where a prediction may hold anything.
static Volume InsideOf(rcn_context* context, const Volume& prediction, const std::vector<uint8_t>& region)
{
  const rcn_image& in = prediction.View();
  Volume out = Volume::Allocate(in.geometry, RCN_FLOAT32, in.components);
  Check(rcn_region_cut(static_cast<float*>(out.Data()), context, &in, region.data()), context);
  return out;
}

/// Predictions of a case with corrections applied, each made once and for all regions together: both work voxel by
/// voxel, so that what is inside one region does not depend on the others.
class Judging::Maps
{
public:
  Maps(rcn_context* context, const std::vector<CasePrediction>& predictions, Regions& regions)
    : Context_(context), Predictions_(predictions), Regions_(regions)
  {
  }

  Volume Of(const JudgeTask& task, const Recalibration* correction)
  {
    const CasePrediction& prediction = this->Predictions_[task.Prediction];
    const rcn_readout readout = task.Options.Calib.readout;
    const int atLeast = task.Options.Calib.at_least;
    if (!correction)
    {
      return prediction.Map;
    }
    const auto key = std::make_tuple(task.Prediction, correction, readout, atLeast);
    const auto known = this->Made_.find(key);
    if (known != this->Made_.end())
    {
      return known->second;
    }
    const Regions::Voxels inside = this->Regions_.All();
    const Volume map = inside ? InsideOf(this->Context_, prediction.Map, *inside) : prediction.Map;
    return this->Made_[key] = ApplyRecalibration(this->Context_, *correction, map, readout, atLeast, prediction.File);
  }

  /// The same everywhere, for volumes; empty where the prediction is no probability outside the regions.
  Volume WholeOf(const JudgeTask& task, const Recalibration* correction)
  {
    if (!correction || !this->Regions_.All())
    {
      return this->Of(task, correction);
    }
    const CasePrediction& prediction = this->Predictions_[task.Prediction];
    const rcn_readout readout = task.Options.Calib.readout;
    const auto key = std::make_tuple(task.Prediction, correction, readout, task.Options.Calib.at_least);
    const auto known = this->Whole_.find(key);
    if (known != this->Whole_.end())
    {
      return known->second;
    }
    try
    {
      return this->Whole_[key] = ApplyRecalibration(
               this->Context_, *correction, prediction.Map, readout, task.Options.Calib.at_least, prediction.File);
    }
    catch (const Error& error)
    {
      if (error.Status() != RCN_EDATA)
      {
        throw;
      }
      return this->Whole_[key] = Volume();
    }
  }

private:
  rcn_context* Context_;
  const std::vector<CasePrediction>& Predictions_;
  Regions& Regions_;
  std::map<std::tuple<size_t, const Recalibration*, rcn_readout, int>, Volume> Made_, Whole_;
};

Judging::Judging(rcn_context* context, const std::vector<std::string>& raters, const std::vector<JudgeTask>& tasks)
  : Context_(context), RaterCount_(static_cast<int>(raters.size())), Tasks_(tasks)
{
  for (const JudgeTask& task : tasks)
  {
    this->Evaluations_.emplace_back(new Evaluation(context, raters, task.Options));
  }
}

bool Judging::Add(const Case& one, size_t number, const rcn_votes* votes, const std::vector<CasePrediction>& predictions)
{
  const size_t count = this->Tasks_.size();
  std::vector<JudgedCase> judged(count);
  for (size_t t = 0; t < count; ++t)
  {
    const EvaluationOptions& options = this->Tasks_[t].Options;
    const CasePrediction& prediction = predictions[this->Tasks_[t].Prediction];
    JudgedCase& mine = judged[t];
    // Facts about the prediction are the same for all tasks on it.
    const auto same = std::find_if(this->Tasks_.begin(), this->Tasks_.begin() + static_cast<std::ptrdiff_t>(t),
      [&](const JudgeTask& task) { return task.Prediction == this->Tasks_[t].Prediction; });
    const size_t first = static_cast<size_t>(same - this->Tasks_.begin());
    if (first < t)
    {
      mine = judged[first];
    }
    else
    {
      mine = { one.Id, one.Patient, number, prediction.File, votes, prediction.Map, {}, {}, "", false, true, nullptr };
      CheckLevelCount(prediction.Map, this->RaterCount_, prediction.File);
      mine.Levels = prediction.Map.View().components > 1;
      mine.Ends = !mine.Levels; // of one rater, levels are that probability
    }
    Check(rcn_geometry_compare(this->Context_, &prediction.Map.Geometry(), prediction.File.c_str(), rcn_votes_geometry(votes),
            "the raters' masks", options.Tolerance),
      this->Context_);
    if (first == t && prediction.Map.View().components > 2)
    {
      int ends = 0;
      Check(rcn_levels_are_ends(&ends, this->Context_, &prediction.Map.View()), this->Context_, prediction.File);
      mine.Ends = ends != 0;
    }
    if (options.PerCase && mine.Fingerprint.empty())
    {
      mine.Fingerprint = FingerprintOf(prediction.Map);
    }
    this->Evaluations_[t]->RefuseFittedCase(mine);
  }
  Regions regions(this->Context_, votes);
  for (const JudgeTask& task : this->Tasks_)
  {
    regions.Of(task.Options);
  }
  Maps maps(this->Context_, predictions, regions);
  bool any = false;
  for (size_t t = 0; t < count; ++t)
  {
    const Regions::Region& region = regions.Of(this->Tasks_[t].Options);
    if (region.Count > 0)
    {
      judged[t].Region = region.Inside;
      const Recalibration* correction = this->Evaluations_[t]->CorrectionOf(judged[t].Name());
      judged[t].Map = maps.Of(this->Tasks_[t], correction);
      judged[t].Whole = this->Tasks_[t].Options.PerCase ? maps.WholeOf(this->Tasks_[t], correction) : Volume();
      this->Evaluations_[t]->Prepare(judged[t]);
      any = true;
    }
  }
  // Only now: a case counts for all tasks or for none.
  for (const auto& evaluation : this->Evaluations_)
  {
    evaluation->Commit();
  }
  return any;
}

// ---- all cases -------------------------------------------------------------------------------------

void CaseMemory::Add(size_t number, const Kept& one)
{
  this->Judged_.insert(number);
  double bytes =
    static_cast<double>(rcn_geometry_voxels(rcn_votes_geometry(one.Votes.get()))) * rcn_votes_code_bytes(one.Votes.get());
  for (const CasePrediction& prediction : one.Predictions)
  {
    const rcn_image& map = prediction.Map.View();
    bytes += map.data ? static_cast<double>(rcn_geometry_voxels(&map.geometry)) * map.components * sizeof(float) : 0;
  }
  if (bytes <= this->Room_)
  {
    this->Room_ -= bytes;
    this->Kept_[number] = one;
  }
}

const CaseMemory::Kept* CaseMemory::Find(size_t number) const
{
  const auto found = this->Kept_.find(number);
  return found == this->Kept_.end() ? nullptr : &found->second;
}

namespace
{

/// The votes of a case, and its predictions that tasks need.
CaseMemory::Kept ReadCase(Workspace& workspace, const JudgeInput& input, const std::vector<JudgeTask>& tasks, const Case& one,
  size_t number, std::vector<std::string>& remarks)
{
  CaseMemory::Kept now;
  now.Raters = input.List.Raters;
  if (input.Votes)
  {
    now.Votes = input.Votes(one, number);
  }
  else
  {
    Case masks = one;
    masks.Images.clear(); // only the raters are needed
    workspace.LoadCase(masks, input.List.Raters);
    remarks.push_back(workspace.LabelRemark());
    now.Raters = workspace.RaterNames();
    now.Votes = workspace.TakeVotes();
  }
  now.Predictions.resize(input.Predictions.size());
  std::set<size_t> needed;
  for (const JudgeTask& task : tasks)
  {
    if (needed.insert(task.Prediction).second)
    {
      now.Predictions[task.Prediction] = input.Predictions[task.Prediction].Read(one, number);
    }
  }
  return now;
}

} // namespace

namespace
{

/// The tasks with what is known of volumes on validation cases, as the predictions were made.
std::vector<JudgeTask> WithVolumes(std::vector<JudgeTask> tasks, const std::vector<PredictionSource>& sources)
{
  for (JudgeTask& task : tasks)
  {
    const PredictionRun* run = sources[task.Prediction].Run.get();
    if (run && !task.Options.Volumes)
    {
      task.Options.Volumes = run->ScoresOfVolumes();
    }
  }
  return tasks;
}

} // namespace

JudgeResult JudgeCases(Workspace& workspace, const JudgeInput& input, const std::vector<JudgeTask>& tasks)
{
  std::unique_ptr<Judging> judging;
  JudgeResult result;
  const auto open = [&](const std::vector<std::string>& raters) {
    if (!judging)
    {
      judging.reset(new Judging(workspace.Context(), raters, WithVolumes(tasks, input.Predictions)));
      result.Raters = raters;
    }
  };
  const auto judge = [&](const Case& one, size_t number, std::vector<std::string>& remarks) {
    const CaseMemory::Kept* known = input.Memory ? input.Memory->Find(number) : nullptr;
    const CaseMemory::Kept now = known ? *known : ReadCase(workspace, input, tasks, one, number, remarks);
    open(now.Raters);
    for (const JudgeTask& task : tasks)
    {
      const CasePrediction& prediction = now.Predictions[task.Prediction];
      CheckReadout(input.Predictions[task.Prediction].Run.get(), prediction.Map, task.Options, prediction.File);
    }
    if (!judging->Add(one, number, now.Votes.get(), now.Predictions))
    {
      remarks.push_back("Case " + (one.Id.empty() ? now.Predictions[tasks.front().Prediction].File : one.Id) +
        ": the region is empty, so the case does not count.");
    }
    if (input.Memory && !known)
    {
      input.Memory->Add(number, now);
    }
    return JsonHandle();
  };
  if (input.List.Raters.empty())
  {
    // One case, whose files name the raters: each process judges it by itself, because only the files know who is to be told.
    std::vector<std::string> remarks;
    judge(input.List.Cases.front(), 0, remarks);
    std::for_each(remarks.begin(), remarks.end(), [&](const std::string& remark) {
      if (input.Loop.Remark && !remark.empty())
      {
        input.Loop.Remark(remark);
      }
    });
    result.Evaluations = judging->TakeEvaluations();
    return result;
  }
  open(input.List.Raters); // also in a process that gets no case
  result.LeftOut = ForEachCase(input.List, input.Loop, judge);
  const auto cases =
    std::count_if(input.List.Cases.begin(), input.List.Cases.end(), [&](const Case& one) { return input.Loop.Takes(one); });
  if (result.LeftOut.size() == static_cast<size_t>(cases))
  {
    throw Error(RCN_EDATA, "No case could be judged.");
  }
  result.Evaluations = judging->TakeEvaluations();
  for (const auto& evaluation : result.Evaluations)
  {
    evaluation->Share(Processes::All());
  }
  return result;
}

} // namespace rcn
