#include "rcnTraining.h"

#include "rcnTest.h"
#include "rcnTestData.h"

namespace
{

rcn::TrainingOptions Quick(const rcn::DataList& list, const std::string& output)
{
  rcn::TrainingOptions options;
  options.List = &list;
  options.Output = output;
  options.Workspace.Threads = 1;
  options.Net.width = 8;
  options.Net.depth = 2;
  options.Epochs = 3;
  options.Batch = 2;
  options.Rate = 0.01;
  options.CheckpointSeconds = 0;
  return options;
}

/// The weights of a safetensors file, without the header and its times.
std::string Weights(const std::string& path)
{
  const std::string text = rcn::ReadText(path);
  uint64_t header = 0;
  std::memcpy(&header, text.data(), sizeof header);
  return text.substr(8 + header);
}

void TellsHowFarItIs()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  rcn::TrainingOptions options = Quick(list, folder / "m.safetensors");
  std::vector<int> epochs;
  double last = 0;
  bool grows = true, named = true;
  options.Progress = [&](const rcn::TrainingProgress& progress) {
    if (progress.Epoch > 0)
    {
      grows = grows && progress.Fraction >= last && progress.Fraction <= 1;
      last = progress.Fraction;
    }
    named = named && *progress.Stage;
    return false;
  };
  options.EpochDone = [&](const rcn::TrainingEpoch& epoch) { epochs.push_back(epoch.Epoch); };
  const rcn::TrainingResult result = rcn::TrainModel(options);
  CHECK(grows && named && last == 1);
  CHECK(epochs == (std::vector<int>{ 1, 2, 3 }));
  CHECK(!result.Interrupted && result.Steps == 6 && result.Epochs.size() == 3 && !result.HasBefore);
  CHECK(result.Best >= 1 && result.Epochs[static_cast<size_t>(result.Best - 1)].Best);
  CHECK(result.After.Cases == 2 && result.TrainingCases.size() == 5 && result.ValidationCases.size() == 2);
  CHECK(result.SecondsStepping > 0 && result.SecondsDrawing > 0 && result.SecondsReading > 0);
  const rcn::JsonHandle json(rcn::TrainingJson(result));
  CHECK(json_array_size(json_object_get(json.get(), "epochs")) == 3);
}

/// Stopped at any call of the listener, and gone on: the same weights as undisturbed.
void StopsAnywhere()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  const std::string whole = folder / "whole.safetensors";
  int calls = 0, interrupted = 0, unread = 0;
  rcn::TrainingOptions options = Quick(list, whole);
  options.Progress = [&](const rcn::TrainingProgress&) {
    ++calls;
    return false;
  };
  rcn::TrainModel(options);
  const int all = calls;
  for (int k = 0; k < 12; ++k)
  {
    const int stop = all * k / 12 + 1;
    const std::string parts = folder / ("parts" + std::to_string(k) + ".safetensors");
    calls = 0;
    options.Output = parts;
    options.Resume = false;
    options.Progress = [&](const rcn::TrainingProgress&) { return ++calls == stop; };
    try
    {
      interrupted += rcn::TrainModel(options).Interrupted;
    }
    catch (const rcn::Error& error)
    {
      CHECK(error.Status() == RCN_ECANCELLED); // while reading, or judging at the end
      ++unread;
    }
    options.Resume = true;
    options.Progress = nullptr;
    const rcn::TrainingResult result = rcn::TrainModel(options);
    CHECK(!result.Interrupted && result.Epochs.size() == 3);
    CHECK(Weights(parts) == Weights(whole));
  }
  CHECK(interrupted >= 4 && interrupted + unread == 12);
}

/// No room for the cases in memory: slower, and the same.
void CasesCanBeReadAgain()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  rcn::TrainingOptions options = Quick(list, folder / "kept.safetensors");
  options.Strategy = "svls";
  rcn::TrainModel(options);
  options.Output = folder / "again.safetensors";
  options.CacheGb = 20e-6; // one case or two
  rcn::TrainModel(options);
  CHECK(Weights(folder / "kept.safetensors") == Weights(folder / "again.safetensors"));
}

void EndsOnTimeOrEarly()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  rcn::TrainingOptions options = Quick(list, folder / "m.safetensors");
  options.Epochs = 100000;
  options.Minutes = 0.01;
  rcn::TrainingResult result = rcn::TrainModel(options);
  CHECK(!result.Interrupted && result.Steps > 0 && result.Steps < 100000);
  CHECK(std::filesystem::exists(result.Model) && result.Epochs.back().Rate < options.Rate);
  options.Minutes = 0;
  options.Patience = 1;
  options.Rate = 10; // gets worse soon
  result = rcn::TrainModel(options);
  CHECK(!result.Interrupted && result.Epochs.back().Epoch == result.Best + 1);
}

/// Before and after are judged where and as finely as a person asks; a region without voxels costs no model.
void IsJudgedAsWished()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  rcn::TrainingOptions options = Quick(list, folder / "m.safetensors");
  options.Epochs = 1;
  const rcn::TrainingResult box = rcn::TrainModel(options);
  options.Region = RCN_REGION_DISPUTED;
  options.Bins = 4;
  const rcn::TrainingResult disputed = rcn::TrainModel(options);
  CHECK(box.After.Bins.size() == 15 && disputed.After.Bins.size() == 4);
  CHECK(disputed.Judged.Region.region == RCN_REGION_DISPUTED && disputed.After.Voxels > 0);
  CHECK(disputed.After.Voxels < box.After.Voxels);
  rcn::DataList alike = list;
  for (rcn::Case& one : alike.Cases)
  {
    one.Raters[1].Path = one.Raters[2].Path = one.Raters[0].Path; // nobody disputes anything
  }
  options.List = &alike;
  options.Output = folder / "alike.safetensors";
  const rcn::TrainingResult nothing = rcn::TrainModel(options);
  CHECK(nothing.After.Cases == 0 && !nothing.HasBefore && std::filesystem::exists(nothing.Model));
}

void BadOptions()
{
  const rcn::DataList none;
  rcn::TrainingOptions options = Quick(none, "m.safetensors");
  CHECK(rcn::CheckTraining(options).empty());
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "training");
  options.Strategy = "mean";
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "mean");
  options.Strategy = "rps";
  options.Folds = 3;
  options.Fold = 3;
  CHECK(!rcn::CheckTraining(options).empty());
  options.Folds = options.Fold = 0;
  options.Output = "m.bin";
  CHECK(!rcn::CheckTraining(options).empty());
  options.Output = "m.safetensors";
  options.Bins = 0;
  CHECK(!rcn::CheckTraining(options).empty());
  options.Bins = 15;
  options.Augment.blur = -1;
  CHECK(!rcn::CheckTraining(options).empty());
  options.List = nullptr;
  CHECK(!rcn::CheckTraining(options).empty());
  CHECK(rcn::StrategyNames().size() == 16 && rcn::StrategyNames().front() == "rps");
}

} // namespace

int main()
{
  RUN(TellsHowFarItIs);
  RUN(StopsAnywhere);
  RUN(CasesCanBeReadAgain);
  RUN(EndsOnTimeOrEarly);
  RUN(IsJudgedAsWished);
  RUN(BadOptions);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
