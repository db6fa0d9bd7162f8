// SPDX-License-Identifier: Apache-2.0
/// Training and predicting with one strategy and seed.
#include "rcnStudyParts.h"

#include <algorithm>

#include "rcnCases.h"
#include "rcnTrainingFiles.h"

namespace rcn
{
namespace study
{

namespace fs = std::filesystem;

namespace
{

/// Training is nearly all of a study; the rest of a run's share is predicting.
constexpr double TrainingShare = 0.95;

/// How far the study is when a run has come so far.
double FractionAt(const Job& job, size_t number, double fraction)
{
  return (static_cast<double>(number) + fraction) / static_cast<double>(job.Runs.size());
}

uint64_t SeedOf(const Job& job, const Run& run)
{
  return job.Options.Training.Seed + static_cast<uint64_t>(run.Number);
}

/// Whether the model there was trained by this strategy with this seed, and may be trained anew.
bool IsOwn(const Job& job, const Run& run, const std::string& path)
{
  try
  {
    const JsonHandle protocol = ReadTrainingEntry(job.Cases.Context(), path);
    const char* strategy = json_string_value(ProtocolValue(protocol.get(), "strategy"));
    return strategy && strategy == run.Strategy &&
      json_number_value(ProtocolValue(protocol.get(), "seed")) == static_cast<double>(SeedOf(job, run));
  }
  catch (const Error&)
  {
    return false;
  }
}

/// How this run trains.
TrainingOptions OptionsOf(Job& job, size_t number)
{
  const Run& run = job.Runs[number];
  std::error_code ignored;
  TrainingOptions options = job.Options.Training;
  options.List = job.List;
  options.Strategy = run.Strategy;
  options.Seed = SeedOf(job, run);
  options.Output = job.Folder.Model(run, ".safetensors");
  options.Resume = job.All.FirstSays(fs::exists(job.Folder.Model(run, ".checkpoint.safetensors"), ignored));
  if (job.All.FirstSays(fs::exists(options.Output, ignored) && !options.Resume && !IsOwn(job, run, options.Output)))
  {
    throw Error(RCN_EINVALID,
      options.Output + " already exists and is not a model of this study; move it away, or choose another folder.");
  }
  options.Overwrite = true; // what is in the study's folder now is the study's
  options.Remark = [&job, &run](const std::string& sentence) { job.Remark(run.Name() + ": " + sentence); };
  options.Warn = [&job, &run](const std::string& sentence) { job.Warn(run.Name() + ": " + sentence); };
  options.Progress = [&job, &run, number](const TrainingProgress& progress) {
    if (progress.JustMeasured)
    {
      job.Remark(run.Name() + ": " + CourseInWords(progress.Course));
    }
    std::string stage =
      run.Name() + " (" + std::to_string(number + 1) + " of " + std::to_string(job.Runs.size()) + ") " + progress.Stage;
    if (progress.Epoch > 0)
    {
      stage += ", epoch " + std::to_string(progress.Epoch) + "/" + std::to_string(progress.Epochs);
    }
    return job.IsStopped(FractionAt(job, number, TrainingShare * progress.Fraction), stage);
  };
  return options;
}

} // namespace

void Train(Job& job, size_t number)
{
  const Run& run = job.Runs[number];
  const std::string done = job.Folder.Model(run, ".json");
  std::error_code ignored;
  if (job.All.FirstSays(fs::exists(done, ignored)))
  {
    return;
  }
  const TrainingOptions options = OptionsOf(job, number);
  const TrainingResult result = TrainModel(options);
  if (result.Interrupted)
  {
    throw Error(RCN_ECANCELLED, "Stopped while training " + run.Name() + "; the same command continues from here.");
  }
  if (job.All.IsFirst())
  {
    const JsonHandle json(TrainingJson(result));
    WriteText(done, DocumentText(json.get()));
    fs::remove(result.Checkpoint, ignored);
  }
  job.Remark(run.Name() + " is trained: best epoch " + std::to_string(result.Best) + " of " +
    std::to_string(result.Epochs.back().Epoch) + ".");
}

namespace
{

/// What is kept of a prediction of several structures, the last one last: it says that the case is done.
std::vector<NamedMap> KeptMaps(const Job& job, const Prediction& prediction, int raters)
{
  if (!prediction.Structures)
  {
    return { { "levels", prediction.Levels, Content::Probability, {}, "" } };
  }
  std::vector<NamedMap> maps = MapsOf(prediction, job.Cases.Context(), raters, false);
  maps.erase(
    std::remove_if(maps.begin(), maps.end(), [](const NamedMap& map) { return map.What != Content::Probability; }), maps.end());
  return maps;
}

/// The same as a manifest names them.
std::map<std::string, std::string> KeptFiles(const Job& job, const Run& run, const std::string& id)
{
  std::map<std::string, std::string> files;
  std::vector<std::string> names = { job.List.HasStructures() ? "prob" : "levels" };
  for (const Structure& structure : job.List.Structures)
  {
    names.push_back(LevelsMap(structure.Name));
  }
  for (const std::string& name : names)
  {
    std::error_code ignored;
    const std::string file = job.Folder.Map(run, id, name);
    if (name == names.front() || fs::exists(file, ignored))
    {
      files[name] = file;
    }
  }
  return files;
}

} // namespace

void PredictTest(Job& job, size_t number)
{
  const Run& run = job.Runs[number];
  rcn_context* context = job.Cases.Context();
  MakeFolder(job.Folder.Predictions(run));
  std::unique_ptr<Model> model; // read when there is something to predict
  const auto read = [&]() -> const Model& {
    if (!model)
    {
      model.reset(new Model(context, job.Folder.Model(run, ".safetensors")));
    }
    return *model;
  };
  PredictionOptions how = job.Options.Prediction;
  how.Readout = job.List.HasStructures() ? "expected" : how.Readout; // the shares, which tell the levels
  CaseLoop loop;
  loop.LeaveOut = false; // they were all read before the training
  ForEachCase(job.Test, loop, [&](const Case& one, size_t i, std::vector<std::string>&) {
    const std::string path = job.Folder.Map(run, one.Id, job.List.HasStructures() ? "prob" : "levels");
    std::error_code ignored;
    if (!fs::exists(path, ignored))
    {
      const double share = static_cast<double>(i) / static_cast<double>(job.Test.Cases.size());
      job.Show(FractionAt(job, number, TrainingShare + (1 - TrainingShare) * share), run.Name() + " predicting " + one.Id);
      const std::vector<Volume> images = ImagesOf(context, one, job.Options.Training.Workspace.Tolerance);
      const Prediction prediction = Predict(read(), context, images, one.Images.front(), how);
      for (const NamedMap& map : KeptMaps(job, prediction, read().RaterCount()))
      {
        WriteImage(job.Folder.Map(run, one.Id, map.Name), map.Map.View(), map.What,
          { {}, "", job.Options.Training.Workspace.Threads, {} });
      }
    }
    return JsonHandle();
  });
  job.All.WaitForAll(); // all of them are written
  if (job.All.IsFirst())
  {
    PredictionFolder folder(job.Folder.Predictions(run));
    folder.Begin(RunOf(read(), how), {});
    for (const Case& one : job.Test.Cases)
    {
      folder.Add(one.Id, KeptFiles(job, run, one.Id));
    }
    folder.Finish();
  }
}

} // namespace study
} // namespace rcn
