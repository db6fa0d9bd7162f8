// SPDX-License-Identifier: Apache-2.0
#include "rcnJudge.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "rcn/rcn.h"
#include "rcnProcesses.h"
#include "rcnReport.h"

namespace rcn
{

// ---- what is judged --------------------------------------------------------------------------------

namespace
{

/// By structure of the cases: its place among those that were predicted. Without a run they are in the same order.
std::vector<size_t> PlacesOf(const std::vector<Structure>& structures, const PredictionRun* run, const std::string& name)
{
  std::vector<size_t> places;
  for (const Structure& structure : structures)
  {
    size_t place = places.size();
    if (run && run->Structures.size() > 1)
    {
      const std::vector<std::string> names = NamesOf(run->Structures);
      place = static_cast<size_t>(std::find(names.begin(), names.end(), structure.Name) - names.begin());
      if (place == names.size())
      {
        throw Error(RCN_EINVALID,
          name + " holds no prediction of the structure " + structure.Name + ", only of " + JoinNames(names) + ".");
      }
    }
    places.push_back(place);
  }
  return places;
}

/// Its components in the order of the cases' structures.
Volume ReadShares(const std::string& file, double scale, const std::vector<size_t>& places, const PredictionRun* run)
{
  const Volume read = ReadPrediction(file, scale);
  const size_t predicted = run && run->Structures.size() > 1 ? run->Structures.size() : places.size();
  if (static_cast<size_t>(read.View().components) != predicted)
  {
    throw Error(RCN_EDATA,
      file + " has " + Counted(read.View().components, "value") + " per voxel; " +
        Counted(static_cast<int64_t>(predicted), "structure needs", "structures need") + " one each.");
  }
  const int count = static_cast<int>(places.size());
  const Volume shares = Volume::Allocate(read.Geometry(), RCN_FLOAT32, count);
  for (int c = 0; c < count; ++c)
  {
    rcn_image_copy_component(
      static_cast<float*>(shares.Data()) + c, count, &read.View(), static_cast<int>(places[static_cast<size_t>(c)]));
  }
  return shares;
}

/// The maps of several structures: a file with the levels of each, where the manifest has them, otherwise their shares.
CasePrediction ReadStructures(const PredictionFolder& folder, const std::string& id, double scale,
  const std::vector<Structure>& structures, const std::vector<size_t>& places)
{
  auto maps = std::make_shared<StructureMaps>();
  for (const Structure& structure : structures)
  {
    const std::string file = folder.FindMap(id, LevelsMap(structure.Name));
    if (file.empty())
    {
      maps->Levels.clear();
      break;
    }
    maps->Levels.push_back(ReadPrediction(file, scale));
  }
  const std::string file = folder.Find(id);
  if (maps->Levels.empty())
  {
    const PredictionRun* run = folder.HasManifest() ? &folder.Run() : nullptr;
    maps->Shares = ReadShares(file, scale, places, run);
    // Another readout than the expected share does not tell the levels.
    maps->Correlation = run && run->Readout == "expected" ? run->Correlation : NAN;
  }
  return { Volume(), file, maps };
}

/// Whether a prediction is to be taken apart: one of a model of one structure has nothing to take apart. Throws Error where
/// nobody knows which part is meant.
bool HasSeveral(const std::vector<Structure>& structures, const PredictionRun* run, const std::string& name)
{
  if (!run || run->Structures.size() <= 1)
  {
    return !run && structures.size() > 1;
  }
  if (structures.empty())
  {
    throw Error(RCN_EINVALID,
      name + " holds predictions of several structures (" + JoinNames(NamesOf(run->Structures)) +
        "); the raters' structures must be named, too.");
  }
  return true;
}

} // namespace

PredictionSource PredictionsOfFolder(const std::string& path, double scale, const std::vector<Structure>& structures)
{
  const auto folder = std::make_shared<const PredictionFolder>(path);
  PredictionSource source;
  source.Name = path;
  source.Run = folder->HasManifest() ? std::make_shared<PredictionRun>(folder->Run()) : nullptr;
  if (HasSeveral(structures, source.Run.get(), path))
  {
    const std::vector<size_t> places = PlacesOf(structures, source.Run.get(), path);
    source.Read = [folder, scale, structures, places](
                    const Case& one, size_t) { return ReadStructures(*folder, one.Id, scale, structures, places); };
    return source;
  }
  source.Read = [folder, scale](const Case& one, size_t) {
    const std::string file = folder->Find(one.Id);
    return CasePrediction{ ReadPrediction(file, scale), file };
  };
  return source;
}

PredictionSource PredictionOfFile(const std::string& file, double scale, const std::vector<Structure>& structures)
{
  PredictionSource source;
  source.Name = file;
  source.Run = PredictionFolder::RunOf(file);
  if (HasSeveral(structures, source.Run.get(), file))
  {
    const std::vector<size_t> places = PlacesOf(structures, source.Run.get(), file);
    source.Read = [file, scale, places, run = source.Run](const Case&, size_t) {
      auto maps = std::make_shared<StructureMaps>();
      maps->Shares = ReadShares(file, scale, places, run.get());
      maps->Correlation = run && run->Readout == "expected" ? run->Correlation : NAN;
      return CasePrediction{ Volume(), file, maps };
    };
    return source;
  }
  source.Read = [file, scale](const Case&, size_t) { return CasePrediction{ ReadPrediction(file, scale), file }; };
  return source;
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

/// What is judged together: a structure's votes and the predictions of it.
struct Judging::Part
{
  int Structure = 0;
  const rcn_votes* Votes = nullptr;
  std::shared_ptr<rcn_votes> Selected; ///< Votes, where they are those of one of several structures
  std::vector<CasePrediction> Predictions;
};

/// Predictions of several structures with corrections applied, each made once for all structures of a case.
class Judging::Corrected
{
public:
  Corrected(rcn_context* context, const std::vector<CasePrediction>& predictions) : Context_(context), Predictions_(predictions)
  {
  }

  /// Null where the prediction is no probability everywhere, so that it can be corrected inside of a region only.
  const StructureMaps* Of(size_t prediction, const Recalibration* correction)
  {
    const auto key = std::make_pair(prediction, correction);
    const auto known = this->Made_.find(key);
    if (known != this->Made_.end())
    {
      return known->second.get();
    }
    std::unique_ptr<StructureMaps>& made = this->Made_[key];
    try
    {
      made.reset(new StructureMaps(this->Inside(prediction, *correction, nullptr)));
    }
    catch (const Error& error)
    {
      if (error.Status() != RCN_EDATA)
      {
        throw;
      }
    }
    return made.get();
  }

  StructureMaps Inside(size_t prediction, const Recalibration& correction, const std::vector<uint8_t>* inside) const
  {
    const CasePrediction& one = this->Predictions_[prediction];
    return ApplyRecalibration(this->Context_, correction, *one.Structures, inside, one.File);
  }

private:
  rcn_context* Context_;
  const std::vector<CasePrediction>& Predictions_;
  std::map<std::pair<size_t, const Recalibration*>, std::unique_ptr<StructureMaps>> Made_;
};

/// Predictions of a case with corrections applied, each made once and for all regions together: both work voxel by
/// voxel, so that what is inside one region does not depend on the others.
class Judging::Maps
{
public:
  Maps(rcn_context* context, const Part& part, Regions& regions, Corrected& corrected)
    : Context_(context), Part_(part), Predictions_(part.Predictions), Regions_(regions), Corrected_(corrected)
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
    if (prediction.Structures)
    {
      const StructureMaps* whole = this->Corrected_.Of(task.Prediction, correction);
      const StructureMaps& maps =
        whole ? *whole : this->Corrected_.Inside(task.Prediction, *correction, inside ? inside.get() : nullptr);
      return this->Made_[key] = this->StructureOf(maps, prediction.File);
    }
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
    if (prediction.Structures)
    {
      return this->Corrected_.Of(task.Prediction, correction) ? this->Of(task, correction) : Volume();
    }
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
  Volume StructureOf(const StructureMaps& maps, const std::string& file) const
  {
    return maps.Of(this->Context_, std::max(1, this->Part_.Structure), rcn_votes_raters(this->Part_.Votes), file);
  }

  rcn_context* Context_;
  const Part& Part_;
  const std::vector<CasePrediction>& Predictions_;
  Regions& Regions_;
  Corrected& Corrected_;
  std::map<std::tuple<size_t, const Recalibration*, rcn_readout, int>, Volume> Made_, Whole_;
};

std::string FingerprintOf(const CasePrediction& prediction)
{
  const StructureMaps* maps = prediction.Structures.get();
  return FingerprintOf(!maps ? prediction.Map : maps->Levels.empty() ? maps->Shares : maps->Levels.front());
}

std::shared_ptr<const std::vector<uint8_t>> Judging::RegionOf(
  rcn_context* context, const rcn_votes* votes, const EvaluationOptions& options)
{
  return Regions(context, votes).Of(options).Inside;
}

Judging::Judging(rcn_context* context, const std::vector<std::string>& raters, const std::vector<JudgeTask>& tasks)
  : Context_(context), RaterCount_(static_cast<int>(raters.size())), Tasks_(tasks)
{
  for (const JudgeTask& task : tasks)
  {
    this->Evaluations_.emplace_back(new Evaluation(context, raters, task.Options));
    this->Structures_.insert(task.Structure);
  }
}

/// The votes of one structure, and the predictions of it that tasks need.
Judging::Part Judging::PartOf(int structure, const rcn_votes* votes, const std::vector<CasePrediction>& predictions) const
{
  Part part;
  part.Structure = structure;
  part.Votes = votes;
  part.Predictions = predictions;
  if (structure > 0 && rcn_votes_structures(votes) > 1)
  {
    rcn_votes* selected = nullptr;
    Check(rcn_votes_select(&selected, this->Context_, votes, structure), this->Context_);
    part.Selected.reset(selected, VotesDeleter());
    part.Votes = selected;
  }
  for (const JudgeTask& task : this->Tasks_)
  {
    CasePrediction& prediction = part.Predictions[task.Prediction];
    if (task.Structure == structure && prediction.Structures && !prediction.Map.Data())
    {
      prediction.Map = prediction.Structures->Of(this->Context_, std::max(1, structure), this->RaterCount_, prediction.File);
    }
  }
  return part;
}

bool Judging::Add(const Case& one, size_t number, const rcn_votes* votes, const std::vector<CasePrediction>& predictions)
{
  for (const auto& evaluation : this->Evaluations_)
  {
    evaluation->Discard(); // of a case that failed
  }
  Corrected corrected(this->Context_, predictions);
  std::vector<Part> parts; // until the case counts
  bool any = false;
  for (const int structure : this->Structures_)
  {
    parts.push_back(this->PartOf(structure, votes, predictions));
    any = this->Prepare(parts.back(), one, number, corrected) || any;
  }
  // Only now: a case counts for all tasks or for none.
  for (const auto& evaluation : this->Evaluations_)
  {
    evaluation->Commit();
  }
  return any;
}

/// Judges the structure's tasks; false where every region is empty.
bool Judging::Prepare(const Part& part, const Case& one, size_t number, Corrected& corrected)
{
  const rcn_votes* votes = part.Votes;
  const std::vector<CasePrediction>& predictions = part.Predictions;
  const size_t count = this->Tasks_.size();
  std::vector<JudgedCase> judged(count);
  for (size_t t = 0; t < count; ++t)
  {
    if (this->Tasks_[t].Structure != part.Structure)
    {
      continue;
    }
    const EvaluationOptions& options = this->Tasks_[t].Options;
    const CasePrediction& prediction = predictions[this->Tasks_[t].Prediction];
    JudgedCase& mine = judged[t];
    // Facts about the prediction are the same for all tasks on it.
    const auto same = std::find_if(this->Tasks_.begin(), this->Tasks_.begin() + static_cast<std::ptrdiff_t>(t),
      [&](const JudgeTask& task) { return task.Prediction == this->Tasks_[t].Prediction && task.Structure == part.Structure; });
    const size_t first = static_cast<size_t>(same - this->Tasks_.begin());
    if (first < t)
    {
      mine = judged[first];
    }
    else
    {
      mine = { one.Id, one.Patient, one.Split, number, prediction.File, votes, prediction.Map, {}, {}, "", false, true,
        nullptr };
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
      mine.Fingerprint = FingerprintOf(prediction);
    }
    this->Evaluations_[t]->RefuseFittedCase(mine);
  }
  Regions regions(this->Context_, votes);
  for (const JudgeTask& task : this->Tasks_)
  {
    if (task.Structure == part.Structure)
    {
      regions.Of(task.Options);
    }
  }
  Maps maps(this->Context_, part, regions, corrected);
  bool any = false;
  for (size_t t = 0; t < count; ++t)
  {
    if (this->Tasks_[t].Structure != part.Structure)
    {
      continue;
    }
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
  return any;
}

// ---- all cases -------------------------------------------------------------------------------------

namespace
{

double BytesOf(const Volume& map)
{
  const rcn_image& view = map.View();
  return view.data ? static_cast<double>(rcn_geometry_voxels(&view.geometry)) * view.components * sizeof(float) : 0;
}

} // namespace

void CaseMemory::Add(size_t number, const Kept& one)
{
  this->Judged_.insert(number);
  double bytes =
    static_cast<double>(rcn_geometry_voxels(rcn_votes_geometry(one.Votes.get()))) * rcn_votes_code_bytes(one.Votes.get());
  for (const CasePrediction& prediction : one.Predictions)
  {
    bytes += BytesOf(prediction.Map);
    if (const StructureMaps* maps = prediction.Structures.get())
    {
      bytes = std::accumulate(maps->Levels.begin(), maps->Levels.end(), bytes + BytesOf(maps->Shares),
        [](double sum, const Volume& map) { return sum + BytesOf(map); });
    }
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
std::vector<JudgeTask> WithVolumes(std::vector<JudgeTask> tasks, const JudgeInput& input)
{
  for (JudgeTask& task : tasks)
  {
    const PredictionRun* run = input.Predictions[task.Prediction].Run.get();
    if (task.Structure > 0 && static_cast<size_t>(task.Structure) <= input.List.Structures.size())
    {
      task.Options.Structure = input.List.Structures[static_cast<size_t>(task.Structure) - 1].Name;
    }
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
      judging.reset(new Judging(workspace.Context(), raters, WithVolumes(tasks, input)));
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
      const bool levels = prediction.Structures ? prediction.Structures->HasLevels() : prediction.Map.View().components > 1;
      CheckReadout(input.Predictions[task.Prediction].Run.get(), levels, task.Options, prediction.File);
    }
    if (!judging->Add(one, number, now.Votes.get(), now.Predictions))
    {
      remarks.push_back("Case " + (one.Id.empty() ? now.Predictions[tasks.front().Prediction].File : one.Id) +
        ": the region is empty, so the case is left out.");
    }
    if (input.Seen)
    {
      input.Seen(one, number, now.Votes.get(), now.Predictions);
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
    throw Error(RCN_EDATA, "No case could be evaluated.");
  }
  result.Evaluations = judging->TakeEvaluations();
  for (const auto& evaluation : result.Evaluations)
  {
    evaluation->Share(Processes::All());
  }
  return result;
}

} // namespace rcn
