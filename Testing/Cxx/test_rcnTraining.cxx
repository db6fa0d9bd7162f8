// SPDX-License-Identifier: Apache-2.0
#include "rcnTraining.h"

#include <cstring>

#include "rcn/rcn_model.h"
#include "rcnModel.h"
#include "rcnTrainingCases.h"
#include "rcnTrainingFiles.h"

#include "rcnTest.h"
#include "rcnTestData.h"

namespace
{

rcn::TrainingOptions Quick(const rcn::DataList& list, const std::string& output)
{
  rcn::TrainingOptions options;
  options.List = list;
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

/// Options that leave the course to the data, stopped when this share of it is done.
rcn::TrainingOptions Unguided(const rcn::DataList& list, const std::string& output, double share)
{
  rcn::TrainingOptions options = Quick(list, output);
  options.Epochs = options.Batch = 0;
  options.Progress = [=](const rcn::TrainingProgress& progress) { return progress.Epoch > 0 && progress.Fraction >= share; };
  return options;
}

double ProtocolNumber(rcn_context* context, const std::string& checkpoint, const char* key)
{
  const rcn::JsonHandle state = rcn::ReadTrainingEntry(context, checkpoint);
  return json_number_value(rcn::ProtocolValue(json_object_get(state.get(), "protocol"), key));
}

/// Steps, batch and patience where nobody chose any: of five images, of many, of volumes, and by the clock.
void ChoosesItsCourse()
{
  const rcn::Workspace workspace;
  const auto chosen = [&](const PhantomSet& set, rcn_arch arch, double minutes, int epochs) {
    const Folder folder;
    rcn::TrainingOptions options = Unguided(WritePhantoms(folder, set), folder / "m.safetensors", 0);
    options.Net.arch = arch;
    options.Minutes = minutes;
    options.Epochs = epochs;
    const rcn::TrainingCourse plan = rcn::PlanTraining(options);
    rcn::TrainingCourse first, last; // that are shown: before cases are read, and while it learns
    options.Progress = [&, stop = options.Progress](const rcn::TrainingProgress& progress) {
      first = first.Training == 0 ? progress.Course : first;
      last = progress.Course;
      return stop(progress);
    };
    const rcn::TrainingResult result = rcn::TrainModel(options);
    CHECK(result.Interrupted && result.Steps == 1);
    CHECK(plan.Training == set.Training && plan.Validation == set.Validation && plan.Steps == 0);
    CHECK(rcn::CourseInWords(first) == rcn::CourseInWords(plan) && rcn::CourseInWords(last) == rcn::CourseInWords(plan));
    std::vector<double> numbers;
    for (const char* key : { "batch", "samples", "epochs", "patience" })
    {
      numbers.push_back(ProtocolNumber(workspace.Context(), result.Checkpoint, key));
    }
    CHECK(numbers[0] == double(plan.Batch) && numbers[1] == double(plan.Samples));
    CHECK(plan.Epochs == (epochs == 0 && minutes > 0 ? 0 : static_cast<int64_t>(numbers[2])));
    CHECK(plan.MayEndEarlier == (numbers[3] > 0) && plan.EpochSteps == last.EpochSteps);
    return numbers;
  };
  PhantomSet few, many, volumes;
  few.Size[0] = few.Size[1] = 64;
  many.Size[0] = many.Size[1] = 48;
  many.Training = 110;
  volumes.Size[0] = volumes.Size[1] = 32;
  volumes.Size[2] = 16;
  // Five images: 2 samples of 4096 voxels a step, each case 20 times in an epoch of 50 steps, 2500 steps.
  CHECK(chosen(few, RCN_UNET, 0, 0) == (std::vector<double>{ 2, 20, 50, 16 }));
  CHECK(chosen(few, RCN_UNET, 0, 7) == (std::vector<double>{ 2, 1, 7, 0 }));
  CHECK(chosen(few, RCN_UNET, 1, 0) == (std::vector<double>{ 2, 20, 1000000, 0 }));
  // 110 images: 4 samples, each case twice in 55 steps.
  CHECK(chosen(many, RCN_UNET, 0, 0) == (std::vector<double>{ 4, 2, 46, 15 }));
  CHECK(chosen(volumes, RCN_UNET3D, 0, 0) == (std::vector<double>{ 2, 20, 20, 10 }));
}

/// A course that the data chose is gone on with to the same bits, and its end is told.
void GoesOnWithItsCourse()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  rcn::TrainingOptions options = Unguided(list, folder / "whole.safetensors", 60. / 2500);
  std::string said, remarks;
  options.Remark = [&](const std::string& sentence) { remarks += sentence; };
  options.Progress = [&, stop = options.Progress](const rcn::TrainingProgress& progress) {
    said += progress.JustMeasured ? rcn::CourseInWords(progress.Course) : "";
    return stop(progress);
  };
  const rcn::TrainingResult whole = rcn::TrainModel(options);
  CHECK(remarks.find(said) == std::string::npos && said.find("2500 steps", 1) == std::string::npos); // in one place, once
  CHECK(said.find("2500 steps in about ") == 0 &&
    said.find(", 50 epochs: every case is seen 4000 times") != std::string::npos &&
    said.find("ends earlier when validation stops improving") != std::string::npos);
  options = Unguided(list, folder / "parts.safetensors", 17. / 2500);
  rcn::TrainModel(options);
  options = Unguided(list, folder / "parts.safetensors", 60. / 2500);
  options.Resume = true;
  const rcn::TrainingResult parts = rcn::TrainModel(options);
  CHECK(parts.Steps == whole.Steps && whole.Steps == 60);
  CHECK(Weights(parts.Checkpoint) == Weights(whole.Checkpoint));
}

/// What is said of a course before and after it is measured.
void CoursesInWords()
{
  rcn::TrainingCourse course;
  CHECK(rcn::CourseInWords(course).empty());
  course.Training = 9;
  course.Validation = 3;
  CHECK(rcn::CourseInWords(course) == "9 cases for training, 3 for validation.");
  course.Batch = 4;
  course.EpochSteps = 50;
  course.CoveringSamples = 5;
  course.Minutes = 2;
  CHECK(rcn::CourseInWords(course) ==
    "9 cases for training, 3 for validation; an epoch has 50 steps of 4 samples, and training takes 2 min.");
  course.Epochs = 40;
  CHECK(rcn::CourseInWords(course).find("training takes 40 epochs or 2 min.") != std::string::npos);
  course.Steps = 431;
  course.Epochs = 9;
  course.Seconds = 120;
  CHECK_NEAR(course.Passes(), 431.0 * 4 / 45, 1e-12);
  CHECK(rcn::CourseInWords(course) == "About 430 steps in 2 min, 9 epochs: every case is seen 38 times.");
  course.Steps = 11;
  course.Epochs = 1;
  CHECK(rcn::CourseInWords(course) == "About 11 steps in 2 min, 1 epoch: every case is seen once.");
  course.Steps = 3;
  CHECK(rcn::CourseInWords(course) == "About 3 steps in 2 min, 1 epoch: fewer than one pass over the cases.");
  course = rcn::TrainingCourse();
  course.Training = 1;
  course.Old = 1;
  CHECK(rcn::CourseInWords(course) == "1 case for training, mixed with old ones, 0 for validation.");
}

/// By the clock: what is forecast after ten steps is about what happens.
void ForecastsWhatMinutesBuy()
{
  const Folder folder;
  rcn::TrainingOptions options = Quick(WritePhantoms(folder), folder / "m.safetensors");
  options.Epochs = 0;
  options.Minutes = 0.05;
  int64_t forecast = 0;
  std::string said;
  options.Progress = [&](const rcn::TrainingProgress& progress) {
    said += progress.JustMeasured ? rcn::CourseInWords(progress.Course) : "";
    forecast = progress.Course.Steps;
    return false;
  };
  const rcn::TrainingResult result = rcn::TrainModel(options);
  CHECK(forecast > 10 && forecast < 20 * result.Steps && result.Steps < 20 * forecast);
  CHECK(said.find("About ") == 0 && said.find(" steps in 3 s, ") != std::string::npos);
  // Cases in memory need no file; where a header cannot be read, cases are counted; what is wrong with a list is said.
  options.List.Cases[1].Images = { folder / "nothing.nrrd" };
  const rcn::TrainingCourse counted = rcn::PlanTraining(options);
  CHECK(counted.Training == 5 && counted.Validation == 2 && counted.Batch == 0);
  options.List.Cases[1].Images.clear();
  CHECK_THROWS(rcn::PlanTraining(options), RCN_EINVALID, "has no image to train on");
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

/// A store of the list's cases, ready to be trained on with a target that has a map.
struct Stored
{
  Stored(const rcn::DataList& list, double room) : Store(this->Own, list.Raters, room)
  {
    rcn_strategy strategy;
    const rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
    const rcn_normalize normalize = RCN_NORMALIZE_INIT;
    rcn_strategy_parse(&strategy, "svls");
    this->Store.SetRules(strategy, fusion, normalize);
    for (const rcn::Case& one : list.Cases)
    {
      this->Store.Add(one);
    }
  }

  rcn::Workspace Own;
  rcn::CaseStore Store;
};

bool AreSame(const rcn::LoadedCase& one, const rcn::LoadedCase& other)
{
  const size_t voxels = static_cast<size_t>(rcn_geometry_voxels(&one.Geometry));
  return one.Bytes == other.Bytes && one.Marked == other.Marked && one.Geometry.size[0] == other.Geometry.size[0] &&
    one.Scale.factor[0] == other.Scale.factor[0] && one.Channels.size() == 1 && other.Channels.size() == 1 &&
    std::memcmp(one.Images[0].Data(), other.Images[0].Data(), 4 * voxels) == 0 &&
    rcn_votes_pattern_count(one.Votes.get()) == rcn_votes_pattern_count(other.Votes.get()) &&
    std::memcmp(rcn_votes_codes(one.Votes.get()), rcn_votes_codes(other.Votes.get()), voxels) == 0 &&
    std::memcmp(rcn_target_map(one.Target.get()), rcn_target_map(other.Target.get()), 4 * voxels) == 0;
}

/// Cases that are read beside the work are those that are read on demand, in no more memory.
void CasesAreReadAhead()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  Stored all(list, 0), ahead(list, 0);
  const double each = all.Store.Get(0).Bytes;
  ahead.Store.ReadAhead({ 0, 1, 2, 1 });
  for (size_t i = 0; i < 5; ++i)
  {
    CHECK(AreSame(ahead.Store.Get(i), all.Store.Get(i)));
    CHECK(ahead.Store.CountReadAhead() == static_cast<int64_t>(std::min<size_t>(i + 1, 3)));
  }
  ahead.Store.ReadAhead({ 0, 1, 2 }); // there already
  ahead.Store.Get(1);
  CHECK(ahead.Store.CountReadAhead() == 3);
  CHECK_NEAR(ahead.Store.Peak(), 5 * each, 1);

  // As many as there is room for, beside those that are there and needed, too.
  Stored few(list, 3.5 * each);
  for (size_t i = 0; i < 3; ++i)
  {
    few.Store.Get(i);
  }
  few.Store.ReadAhead({ 3, 0, 4, 5 });
  CHECK(few.Store.Peek(1).Images.empty() && few.Store.Peek(2).Images.empty() && !few.Store.Peek(0).Images.empty());
  for (const size_t i : { 3, 0, 4, 5 })
  {
    CHECK(AreSame(few.Store.Get(i), all.Store.Get(i)));
  }
  CHECK(few.Store.CountReadAhead() == 2);
  // Asked for another one than was told; told anew before all were taken.
  few.Store.ReadAhead({ 1, 2 });
  CHECK(AreSame(few.Store.Get(6), all.Store.Get(6)));
  few.Store.ReadAhead({ 1, 2 });
  few.Store.ReadAhead({ 0, 1 });
  CHECK(AreSame(few.Store.Get(0), all.Store.Get(0)) && AreSame(few.Store.Get(1), all.Store.Get(1)));
  CHECK(few.Store.CountReadAhead() == 4 && few.Store.Peak() <= few.Store.Room());

  // Not even room for one.
  Stored one(list, 0.5 * each);
  one.Store.Get(0);
  one.Store.ReadAhead({ 1, 2 });
  CHECK(AreSame(one.Store.Get(1), all.Store.Get(1)) && AreSame(one.Store.Get(2), all.Store.Get(2)));
  CHECK(one.Store.CountReadAhead() == 1);
  CHECK_NEAR(one.Store.Peak(), each, 1);

  // Votes outlive the store, and a store that nobody asks does not wait for all of its files.
  std::shared_ptr<rcn_votes> votes;
  {
    Stored gone(list, 0);
    gone.Store.ReadAhead({ 2, 3, 4, 5 });
    votes = gone.Store.Get(2).Votes;
  }
  CHECK(rcn_votes_raters(votes.get()) == 3);
}

/// What cannot be read is said when it is asked for, in the same words as without reading ahead.
void ErrorsComeWhenACaseIsAskedFor()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  std::filesystem::remove(list.Cases[1].Images.front());
  rcn::WriteText(list.Cases[2].Raters[1].Path, "no image");
  const auto sentence = [](rcn::CaseStore& store, size_t index) {
    try
    {
      store.Get(index);
    }
    catch (const rcn::Error& error)
    {
      return std::to_string(error.Status()) + error.what();
    }
    return std::string();
  };
  Stored plain(list, 0), ahead(list, 0);
  ahead.Store.ReadAhead({ 0, 1, 2, 3 });
  for (size_t i = 0; i < 4; ++i)
  {
    const std::string said = sentence(plain.Store, i);
    CHECK(sentence(ahead.Store, i) == said && said.empty() == (i == 0 || i == 3));
    CHECK(said.empty() || said.find("Case c" + std::to_string(i)) != std::string::npos);
  }
  CHECK(ahead.Store.CountReadAhead() == 1 && ahead.Store.Peak() == plain.Store.Peak());

  // A file that goes away while a training needs it again.
  rcn::TrainingOptions options = Quick(WritePhantoms(folder), folder / "m.safetensors");
  options.CacheGb = 20e-6;
  options.Samples = 4;
  options.Progress = [&](const rcn::TrainingProgress& progress) {
    for (int i = 0; i < 5 && progress.Epoch > 0; ++i)
    {
      std::filesystem::remove(options.List.Cases[static_cast<size_t>(i)].Images.front());
    }
    return false;
  };
  CHECK_THROWS(rcn::TrainModel(options), RCN_EIO, "Case c");
}

/// Whatever fits into memory, and wherever it is stopped: the same weights, with every step's cases read during the one before.
void ReadingAheadChangesNothing()
{
  const Folder folder;
  rcn::TrainingOptions options = Quick(WritePhantoms(folder), folder / "kept.safetensors");
  options.Samples = 4;
  options.Epochs = 2;
  options.Strategy = "svls";
  const double all = rcn::TrainModel(options).CacheBytes;
  for (const double cases : { 1.0, 2.5, 4.2 })
  {
    options.Output = folder / ("m" + std::to_string(cases) + ".safetensors");
    options.CacheGb = cases / 7 * all / 1e9;
    int calls = 0;
    options.Progress = [&](const rcn::TrainingProgress& progress) { return progress.Epoch > 0 && ++calls > 6 * cases; };
    CHECK(rcn::TrainModel(options).Interrupted);
    options.Progress = nullptr;
    options.Resume = true;
    const rcn::TrainingResult result = rcn::TrainModel(options);
    CHECK(!result.Interrupted && result.CacheBytes <= 1e9 * options.CacheGb + 1);
    CHECK(Weights(options.Output) == Weights(folder / "kept.safetensors"));
    options.Resume = false;
  }
}

/// What cases take in memory is counted as it is allocated, and never more than allowed: while reading, training on new and
/// old cases, and validating. svls keeps a map of each case, others next to nothing.
void CasesKeepToTheirRoom()
{
  const Folder folder, elsewhere;
  const rcn::DataList list = WritePhantoms(folder);
  const std::string old = WritePhantomList(elsewhere);
  int number = 0;
  for (const char* strategy : { "svls", "rps" })
  {
    rcn::TrainingOptions options = Quick(list, folder / ("m" + std::to_string(++number) + ".safetensors"));
    options.Strategy = strategy;
    options.Rehearse = rcn::ReadDataList(old);
    std::vector<std::string> remarks;
    options.Remark = [&](const std::string& remark) {
      if (remark.find("memory") != std::string::npos)
      {
        remarks.push_back(remark);
      }
    };
    const double all = rcn::TrainModel(options).CacheBytes;
    // 5 cases to learn from, 5 old ones and 2 to validate on; each has its image in float32 and 64 kB of places at least.
    CHECK(all >= 12 * (4.0 * 32 * 32 + 65536));
    for (const double cases : { 2.5, 7.5 })
    {
      options.Output = folder / ("m" + std::to_string(++number) + ".safetensors");
      options.CacheGb = cases / 12 * all / 1e9;
      const double held = rcn::TrainModel(options).CacheBytes;
      CHECK(held <= 1e9 * options.CacheGb && held > (cases - 1) / 12 * all);
    }
    CHECK(remarks.empty());
    // Not even room for one: it is held all the same, and said.
    options.Output = folder / ("m" + std::to_string(++number) + ".safetensors");
    options.CacheGb = 1e-9;
    CHECK_NEAR(rcn::TrainModel(options).CacheBytes, all / 12, 0.01 * all / 12);
    CHECK(remarks.size() == 1 && remarks.front().find("A single case (") == 0);
  }
}

/// The model to start from competes: where no epoch is better it stays, to the byte, with its correction.
void AGoodModelStays()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  const std::string good = folder / "good.safetensors";
  rcn::TrainingOptions options = Quick(list, good);
  options.Epochs = 8;
  rcn::TrainModel(options);
  const std::string before = rcn::ReadText(good);
  options.Epochs = 2;
  options.Rate = 30; // ruins it
  options.Init = good;
  rcn::TrainingResult result = rcn::TrainModel(options); // in place
  CHECK(result.KeptStart && result.Best == 0 && !result.DroppedCorrection && rcn::ReadText(good) == before);
  CHECK(result.Epochs.size() == 3 && result.Epochs[0].Best && !result.Epochs[1].Best && !result.Epochs[2].Best);
  CHECK(result.HasBefore && result.After.Figures[RCN_MR_ECE] == result.Before.Figures[RCN_MR_ECE]);
  // Elsewhere: a copy. With another normalization: the old model is judged with its own.
  options.Output = folder / "copy.safetensors";
  options.HasNormalization = true;
  options.Normalization.kind = RCN_NORMALIZE_PERCENTILE;
  const rcn::TrainingResult copied = rcn::TrainModel(options);
  CHECK(copied.KeptStart && rcn::ReadText(copied.Model) == before);
  CHECK(copied.Epochs[0].Rps == result.Epochs[0].Rps && copied.After.Figures[RCN_MR_ECE] == result.After.Figures[RCN_MR_ECE]);
  // A weak one is replaced by the first better epoch, and its correction goes with a sentence.
  const std::string weak = folder / "weak.safetensors";
  options = Quick(list, weak);
  options.Epochs = 1;
  options.Rate = 1e-5;
  rcn::TrainModel(options);
  rcn::Workspace workspace;
  rcn::Recalibration correction;
  correction.Correction.method = RCN_RECALIB_TEMPERATURE;
  correction.Correction.levels = 4;
  correction.Correction.parameters[0] = 1.5;
  rcn::Check(rcn_model_set(workspace.Context(), weak.c_str(), "recalibration", rcn::RecalibrationText(correction).c_str()),
    workspace.Context());
  options.Epochs = 6;
  options.Rate = 0.01;
  options.Init = weak;
  options.Recalibrate = false; // no new one in its place
  int said = 0;
  options.Remark = [&](const std::string& remark) { said += remark.find("The correction in") == 0; };
  result = rcn::TrainModel(options);
  CHECK(!result.KeptStart && result.Best > 0 && result.DroppedCorrection && said == 1 && result.HasBefore);
  CHECK(!rcn::Model(workspace.Context(), weak).Info().Correction);
  // Nothing could tell whether it got better.
  rcn::DataList unjudged = list;
  unjudged.Cases.resize(1);
  options.List = unjudged;
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "no validation case");
}

/// A training that goes on in place after a break: from its checkpoint, with the old model still to be beaten.
void InPlaceGoesOn()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  const std::string model = folder / "m.safetensors";
  rcn::TrainingOptions options = Quick(list, model);
  options.Epochs = 1;
  options.Rate = 1e-5;
  rcn::TrainModel(options);
  std::filesystem::copy_file(model, folder / "other.safetensors");
  options.Epochs = 4;
  options.Rate = 0.01;
  options.Init = model;
  options.Progress = [&](const rcn::TrainingProgress& progress) { return progress.Epoch == 3; };
  CHECK(rcn::TrainModel(options).Interrupted && std::filesystem::exists(model));
  options.Progress = nullptr;
  options.Resume = true;
  const rcn::TrainingResult result = rcn::TrainModel(options);
  CHECK(!result.Interrupted && result.Best > 0 && result.Epochs.size() == 5 && !result.HasBefore);
  options.Resume = false;
  options.Init = folder / "other.safetensors";
  options.Output = folder / "whole.safetensors";
  rcn::TrainModel(options);
  CHECK(Weights(model) == Weights(folder / "whole.safetensors"));
}

/// Cases in memory lead to the same weights and figures as the same cases in files, and sentences name what they come from.
void LearnsFromMemory()
{
  const Folder folder;
  const rcn::DataList files = WritePhantoms(folder);
  rcn::DataList memory;
  memory.Path = "the scene";
  memory.Raters = files.Raters;
  rcn::Workspace workspace;
  for (const rcn::Case& one : files.Cases)
  {
    std::vector<rcn::RaterMask> masks;
    for (const rcn::RaterFile& rater : one.Raters)
    {
      masks.push_back({ rater.Name, rcn::ReadImage(rater.Path), {}, 0 });
    }
    memory.Cases.push_back(rcn::CaseOf(one.Id, rcn::ImagesOf(workspace.Context(), one), "image of " + one.Id, masks));
    memory.Cases.back().Split = one.Split;
    memory.Cases.back().Patient = one.Patient;
  }
  const rcn::TrainingResult fromFiles = rcn::TrainModel(Quick(files, folder / "f.safetensors"));
  rcn::TrainingOptions options = Quick(memory, folder / "m.safetensors");
  options.Rehearse = memory;
  const rcn::TrainingResult rehearsed = rcn::TrainModel(options);
  CHECK(rehearsed.TrainingCases == fromFiles.TrainingCases);
  CHECK(
    rcn::CourseInWords(rcn::PlanTraining(options)).find("5 cases for training, mixed with old ones, 2 for validation; ") == 0);
  options.Rehearse = rcn::DataList();
  options.Output = folder / "n.safetensors";
  CHECK(rcn::CourseInWords(rcn::PlanTraining(options)) ==
    rcn::CourseInWords(rcn::PlanTraining(Quick(files, folder / "p.safetensors"))));
  const rcn::TrainingResult fromMemory = rcn::TrainModel(options);
  CHECK(Weights(folder / "f.safetensors") == Weights(folder / "n.safetensors"));
  CHECK(fromFiles.After.Figures[RCN_MR_ECE] == fromMemory.After.Figures[RCN_MR_ECE]);
  CHECK(fromFiles.Epochs.back().Rps == fromMemory.Epochs.back().Rps);
  options.List.Cases[0].Images.clear();
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "n.safetensors already exists");
  options.Output = folder / "o.safetensors";
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "the scene: case " + options.List.Cases[0].Id + " has no image");
}

/// A checkpoint of an earlier version, which stored options by their flags, is resumed all the same.
void OlderCheckpointsAreResumed()
{
  const Folder folder;
  rcn::TrainingOptions options = Quick(WritePhantoms(folder), folder / "m.safetensors");
  options.Progress = [](const rcn::TrainingProgress& progress) { return progress.Epoch == 2; };
  CHECK(rcn::TrainModel(options).Interrupted);
  const std::string checkpoint = folder / "m.checkpoint.safetensors";
  rcn::Workspace workspace;
  const rcn::JsonHandle state = rcn::ReadTrainingEntry(workspace.Context(), checkpoint);
  const rcn::JsonHandle older(json_object());
  const char* key;
  json_t* value;
  json_object_foreach(json_object_get(state.get(), "protocol"), key, value)
  {
    const bool flag = std::strcmp(key, "raters") != 0 && !std::strchr(key, ' ');
    json_object_set(older.get(), ((flag ? "--" : "") + std::string(key)).c_str(), value);
  }
  CHECK(json_object_get(older.get(), "--alpha") && !json_object_get(older.get(), "alpha"));
  json_object_set(state.get(), "protocol", older.get());
  rcn::Check(rcn_model_set(workspace.Context(), checkpoint.c_str(), "training", rcn::JsonText(state.get()).c_str()),
    workspace.Context());
  options.Resume = true;
  options.Progress = nullptr;
  options.Alpha = 2;
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "has another value of alpha");
  options.Alpha = 0.8;
  CHECK(!rcn::TrainModel(options).Interrupted);
}

/// Nothing that is there is replaced unasked: model, checkpoint or log.
void NothingIsOverwrittenUnasked()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  const std::string model = folder / "m.safetensors";
  rcn::TrainingOptions options = Quick(list, model);
  options.Epochs = 1;
  rcn::TrainModel(options);
  const std::string before = rcn::ReadText(model);
  options.Seed = 7;
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "m.safetensors already exists.");
  std::filesystem::remove(folder / "m.checkpoint.safetensors");
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "m.safetensors already exists.");
  options.Resume = true;
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "m.checkpoint.safetensors to resume from");
  options.Resume = false;
  CHECK(rcn::ReadText(model) == before);
  options.Overwrite = true;
  rcn::TrainModel(options);
  CHECK(rcn::ReadText(model) != before);
  options.Overwrite = false;
  options.Output = folder / "n.safetensors";
  std::ofstream(folder / "n.log.csv") << "of somebody else";
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "n.log.csv already exists");
  CHECK(TextOf(folder / "n.log.csv") == "of somebody else" && !std::filesystem::exists(folder / "n.safetensors.lock"));
  CHECK(rcn::TrainingFileInTheWay(folder / "n.safetensors") == folder / "n.log.csv");
  CHECK(rcn::RemoveTraining(folder / "n.safetensors").empty() && rcn::TrainingFileInTheWay(folder / "n.safetensors").empty());
}

/// Two trainings with one output, also by another name of it: the second one is refused, the first one undisturbed.
void OneTrainingAtATime()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  std::filesystem::create_symlink("m.safetensors", folder / "link.safetensors");
  rcn::TrainingOptions options = Quick(list, folder / "link.safetensors");
  options.Epochs = 1;
  int tried = 0;
  options.Progress = [&](const rcn::TrainingProgress& progress) {
    if (progress.Epoch > 0 && !tried++)
    {
      const rcn::TrainingOptions second = Quick(list, folder / "m.safetensors");
      CHECK_THROWS(
        rcn::TrainModel(second), RCN_EIO, "m.safetensors is being trained already (by process " + std::to_string(getpid()));
    }
    return false;
  };
  CHECK(!rcn::TrainModel(options).Interrupted && tried > 0);
  CHECK(std::filesystem::is_symlink(folder / "link.safetensors") && std::filesystem::is_regular_file(folder / "m.safetensors"));
  CHECK(std::filesystem::exists(folder / "link.log.csv") && !std::filesystem::exists(folder / "m.safetensors.lock"));
}

/// Stopped after the first epoch: the best model so far is there, and no lock.
void AnInterruptedTrainingKeepsItsModel()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  rcn::TrainingOptions options = Quick(list, folder / "m.safetensors");
  bool epoch = false;
  options.EpochDone = [&](const rcn::TrainingEpoch&) { epoch = true; };
  options.Progress = [&](const rcn::TrainingProgress&) { return epoch; };
  const rcn::TrainingResult result = rcn::TrainModel(options);
  CHECK(result.Interrupted && result.Best == 1 && result.Epochs.size() == 1);
  rcn::Workspace workspace;
  CHECK(rcn::Model(workspace.Context(), result.Model).Info().Raters == list.Raters);
  CHECK(!std::filesystem::exists(folder / "m.safetensors.lock"));
}

/// Nobody is in two splits; training and validation that are divided anew are one.
void PatientsStayApart()
{
  const Folder folder;
  rcn::DataList list = WritePhantoms(folder);
  list.Cases[0].Patient = "P7";
  rcn::TrainingOptions options = Quick(list, folder / "m.safetensors");
  options.Epochs = 1;
  for (rcn::Case& one : list.Cases)
  {
    if (one.Split == "validation")
    {
      one.Patient = "P7";
    }
  }
  options.List = list;
  CHECK_THROWS(
    rcn::TrainModel(options), RCN_EINVALID, "the patient P7 is in training (case c0) and in validation (case c5); keep all");
  options.Split = true;
  options.ValidationShare = 0.3;
  CHECK(!rcn::TrainModel(options).Interrupted);
  list.Cases[1].Split = "test";
  list.Cases[1].Patient = "P7";
  options.List = list;
  options.Output = folder / "n.safetensors";
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "the patient P7 is in training (case c0) and in test (case c1)");
  // An old case that is rehearsed is not validated on.
  list = WritePhantoms(folder);
  const Folder elsewhere;
  const std::string old = WritePhantomList(elsewhere);
  const rcn::DataList olds = rcn::ReadDataList(old);
  list.Cases[5].Images = olds.Cases[0].Images;
  options = Quick(list, folder / "n.safetensors");
  options.Rehearse = rcn::ReadDataList(old);
  CHECK_THROWS(rcn::TrainModel(options), RCN_EINVALID, "is in training (case c0) and in validation (case c5)");
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
  options.Overwrite = true;
  options.Minutes = 0;
  options.Patience = 1;
  options.Rate = 10; // gets worse soon
  result = rcn::TrainModel(options);
  CHECK(!result.Interrupted && result.Epochs.back().Epoch == result.Best + 1 && !result.StillImproving);
  options.Patience = 0;
  options.Epochs = 8;
  options.Net.norm = RCN_NORM_INSTANCE; // without the delay of running statistics
  options.Rate = 0.01;
  result = rcn::TrainModel(options);
  CHECK(result.Best == 8 && result.StillImproving); // sixteen steps are too few
}

/// Before and after are judged where and as finely as a person asks; a region without voxels costs no model.
void IsJudgedAsWished()
{
  const Folder folder;
  const rcn::DataList list = WritePhantoms(folder);
  rcn::TrainingOptions options = Quick(list, folder / "m.safetensors");
  options.Epochs = 1;
  const rcn::TrainingResult box = rcn::TrainModel(options);
  options.Overwrite = true;
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
  options.List = alike;
  options.Output = folder / "alike.safetensors";
  const rcn::TrainingResult nothing = rcn::TrainModel(options);
  CHECK(nothing.After.Cases == 0 && !nothing.HasBefore && std::filesystem::exists(nothing.Model));
}

/// A set on which a network of one fused probability, which promises too much, is helped by a temperature.
rcn::TrainingOptions Overconfident(const Folder& folder, const std::string& output)
{
  PhantomSet set;
  set.Validation = 4;
  rcn::TrainingOptions options = Quick(WritePhantoms(folder, set), output);
  options.Strategy = "median";
  options.Epochs = 8;
  return options;
}

bool Begins(const std::string& text, const std::string& with)
{
  return text.rfind(with, 0) == 0;
}

/// What is said fits what is in the file, and the same is remarked.
void TellsAboutItsTemperature()
{
  const Folder folder;
  const rcn::Workspace workspace;
  rcn::TrainingOptions options = Overconfident(folder, folder / "m.safetensors");
  std::string said;
  options.Remark = [&](const std::string& sentence) { said += sentence + "\n"; };
  const rcn::TrainingResult stored = rcn::TrainModel(options);
  const std::shared_ptr<const rcn::Recalibration> correction = rcn::Model(workspace.Context(), stored.Model).Info().Correction;
  CHECK(correction && correction->Correction.parameters[0] == stored.Temperature && correction->Cases.size() == 4);
  char sentence[128];
  std::snprintf(sentence, sizeof sentence, "A temperature of %.2f, fitted to 4 validation cases, is stored in the model.",
    stored.Temperature);
  CHECK(stored.TemperatureInWords == sentence && said.find(sentence + std::string(" MR-ECE ")) != std::string::npos);

  options.Output = folder / "asked.safetensors";
  options.Recalibrate = false;
  CHECK(rcn::TrainModel(options).TemperatureInWords.empty());
  options.Recalibrate = true;
  options.Epochs = 1;
  for (const size_t validation : { 1, 0 })
  {
    options.Output = folder / ("few" + std::to_string(validation) + ".safetensors");
    options.ValidationShare = 0;
    options.List.Cases.resize(5 + validation);
    const rcn::TrainingResult few = rcn::TrainModel(options);
    CHECK(Begins(few.TemperatureInWords, "No temperature is stored in the model: at least two validation cases are needed"));
    CHECK(few.ValidationCases.size() == validation && few.Temperature == 0);
  }
  CHECK(said.find("at least two validation cases are needed") != std::string::npos);
}

/// The model to go on from is judged by its own readout and correction, and one that was fitted to the very cases that judge it
/// as the new one is: each case by a fit to the others.
void BeforeIsAsItWasApplied()
{
  const Folder folder;
  const rcn::Workspace workspace;
  const std::string start = folder / "start.safetensors";
  rcn::TrainingOptions options = Overconfident(folder, start);
  const rcn::TrainingResult first = rcn::TrainModel(options);
  CHECK(first.Temperature > 0);
  options.Init = start;
  options.Output = folder / "again.safetensors";
  options.Epochs = 2;
  const rcn::TrainingResult again = rcn::TrainModel(options);
  CHECK(again.HasBefore && again.Before.Figures[RCN_MR_ECE] == first.After.Figures[RCN_MR_ECE]);
  CHECK(again.Before.Figures[RCN_BRIER] == first.After.Figures[RCN_BRIER]);
  CHECK(!again.KeptStart || again.After.Figures[RCN_MR_ECE] == again.Before.Figures[RCN_MR_ECE]);
  // Fitted to other cases: as it is stored. It is another one here, so that it shows.
  rcn::Recalibration other = *rcn::Model(workspace.Context(), start).Info().Correction;
  other.Cases = { "x" };
  other.Correction.parameters[0] *= 3;
  rcn::Workspace own;
  rcn::SetCorrection(own.Context(), start, other);
  options.Output = folder / "elsewhere.safetensors";
  const rcn::TrainingResult elsewhere = rcn::TrainModel(options);
  CHECK(elsewhere.HasBefore && elsewhere.Before.Figures[RCN_MR_ECE] != first.After.Figures[RCN_MR_ECE]);

  // Of a readout that the new model does not have.
  options = Quick(WritePhantoms(folder), folder / "majority.safetensors");
  options.Readout = "majority";
  options.Recalibrate = false;
  rcn::TrainModel(options);
  rcn::Recalibration platt;
  platt.Correction.method = RCN_RECALIB_PLATT;
  platt.Correction.parameters[0] = 0.5;
  platt.Readout = RCN_READOUT_MAJORITY;
  rcn::SetCorrection(own.Context(), options.Output, platt);
  options.Init = options.Output;
  options.Output = folder / "expected.safetensors";
  options.Readout = "expected";
  options.Epochs = 8;
  const rcn::TrainingResult read = rcn::TrainModel(options);
  CHECK(read.HasBefore && read.JudgedBefore.Calib.readout == RCN_READOUT_MAJORITY);
  CHECK(read.KeptStart || read.Judged.Calib.readout == RCN_READOUT_EXPECTED);
}

/// Whoever does not wait for the end has the model; whoever goes on is told.
void JudgingCanBeStopped()
{
  const Folder folder;
  rcn::TrainingOptions options = Overconfident(folder, folder / "m.safetensors");
  options.Progress = [](const rcn::TrainingProgress& progress) { return progress.Stage == std::string("evaluating"); };
  const rcn::TrainingResult stopped = rcn::TrainModel(options);
  CHECK(stopped.Interrupted && stopped.Best > 0 && stopped.Epochs.size() == 8 && std::filesystem::exists(stopped.Model));
  CHECK(Begins(stopped.TemperatureInWords, "No temperature is stored in the model: training was stopped"));
  options.Progress = nullptr;
  options.Resume = true;
  const rcn::TrainingResult whole = rcn::TrainModel(options);
  CHECK(!whole.Interrupted && whole.Temperature > 0 && whole.After.Cases == 4);
}

void BadOptions()
{
  rcn::DataList none;
  none.Cases.resize(1);
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
  options.Augment.blur = 0;
  CHECK(rcn::CheckTraining(options).empty());
  options.List = rcn::DataList();
  CHECK(!rcn::CheckTraining(options).empty());
  CHECK(rcn::Strategies().size() == 18 && rcn::Strategies().front().Name == std::string("ordinal"));
}

} // namespace

int main()
{
  RUN(TellsHowFarItIs);
  RUN(ChoosesItsCourse);
  RUN(GoesOnWithItsCourse);
  RUN(CoursesInWords);
  RUN(ForecastsWhatMinutesBuy);
  RUN(StopsAnywhere);
  RUN(CasesCanBeReadAgain);
  RUN(CasesAreReadAhead);
  RUN(ErrorsComeWhenACaseIsAskedFor);
  RUN(ReadingAheadChangesNothing);
  RUN(CasesKeepToTheirRoom);
  RUN(AGoodModelStays);
  RUN(InPlaceGoesOn);
  RUN(LearnsFromMemory);
  RUN(OlderCheckpointsAreResumed);
  RUN(NothingIsOverwrittenUnasked);
  RUN(OneTrainingAtATime);
  RUN(AnInterruptedTrainingKeepsItsModel);
  RUN(PatientsStayApart);
  RUN(EndsOnTimeOrEarly);
  RUN(IsJudgedAsWished);
  RUN(TellsAboutItsTemperature);
  RUN(BeforeIsAsItWasApplied);
  RUN(JudgingCanBeStopped);
  RUN(BadOptions);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
