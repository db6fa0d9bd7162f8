// SPDX-License-Identifier: Apache-2.0
#include "rcnStudyParts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "rcn/rcn_train.h"
#include "rcnAgreementFigures.h"
#include "rcnCases.h"
#include "rcnReport.h"

namespace rcn
{
namespace study
{

// ---- what all parts know ---------------------------------------------------------------------------

Job::Job(const StudyOptions& options)
  : Options(options), All(Processes::All()), Cases(options.Training.Workspace), Folder{ options.Folder }
{
  // The core's own reports are of single images: they only ask whether to stop.
  this->Cases.SetProgress(
    [this](double, const char*) { return this->Options.Progress && this->Options.Progress(this->Fraction_, this->Stage_); });
}

void Job::Remark(const std::string& sentence) const
{
  if (this->Options.Remark)
  {
    this->Options.Remark(sentence);
  }
}

void Job::Warn(const std::string& sentence) const
{
  this->Options.Warn ? this->Options.Warn(sentence) : this->Remark(sentence);
}

bool Job::IsStopped(double fraction, const std::string& stage)
{
  if (this->Skipped_ < 0)
  {
    this->Skipped_ = fraction;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - this->Start_).count();
  const double done = fraction - this->Skipped_;
  this->Fraction_ = fraction;
  this->Stage_ = stage + (done > 0.01 && seconds > 5 ? ", " + DurationText(seconds / done * (1 - fraction)) + " left" : "");
  return this->Options.Progress && this->Options.Progress(this->Fraction_, this->Stage_);
}

void Job::Show(double fraction, const std::string& stage)
{
  if (this->IsStopped(fraction, stage))
  {
    throw Error(RCN_ECANCELLED, "Stopped; the same command continues from here.");
  }
}

// ---- before the work -------------------------------------------------------------------------------

namespace
{

void CheckStrategies(const std::vector<std::string>& names, const DataList& list)
{
  for (const std::string& name : names)
  {
    if (!FindChoice(Strategies(), name) && !FindChoice(StructureStrategies(), name))
    {
      throw Error(RCN_EINVALID, "Unknown strategy '" + name + "'.");
    }
    if (list.HasStructures() && name != rcn_strategy_name(0) && !FindChoice(StructureStrategies(), name))
    {
      throw Error(RCN_EINVALID,
        "The strategy " + name + " is for one structure; for several use " + ChoicesText(StructureStrategies()) + ".");
    }
    if (std::count(names.begin(), names.end(), name) > 1)
    {
      throw Error(RCN_EINVALID, "The strategy " + name + " is named twice.");
    }
  }
}

void ReadList(Job& job)
{
  const std::string& data = job.Options.Data;
  job.List = ReadDataList(data);
  if (!job.Options.Structure.empty())
  {
    job.List = OneStructure(job.List, FindStructure(job.List.Structures, job.Options.Structure));
  }
  const std::string unrated = LeaveOutUnrated(job.List);
  if (!unrated.empty())
  {
    job.Remark(unrated);
  }
  job.Test = { job.List.Path, job.List.Raters, {}, job.List.Structures };
  bool training = false;
  for (const Case& one : job.List.Cases)
  {
    training = training || one.Split == "training";
    if (one.Split == "test")
    {
      job.Test.Cases.push_back(one);
    }
  }
  CheckSplits(job.List, job.Options.Training.Folds > 1 || job.Options.Training.Split);
  if (!training || job.Test.Cases.empty())
  {
    throw Error(RCN_EINVALID,
      data + " has no " + (training ? "test" : "training") +
        " cases; a study trains on \"training\" and evaluates on \"test\".");
  }
  if (job.List.Raters.size() < 2)
  {
    throw Error(RCN_EINVALID, data + " has one rater; a study needs several.");
  }
  for (const Case& one : job.Test.Cases)
  {
    if (one.Images.empty())
    {
      throw Error(RCN_EINVALID, data + ", case " + one.Id + ": a test case needs an image.");
    }
  }
}

/// Reads every test case once: hours of training are no use when the last of them turns out to be damaged.
void CheckTestCases(Job& job)
{
  CaseLoop loop;
  loop.LeaveOut = job.Options.Training.SkipBad;
  loop.Warn = [&job](const std::string& sentence) { job.Warn(sentence); };
  const auto read = [&job](const Case& one, size_t, std::vector<std::string>&) {
    job.Cases.LoadCase(one, job.List.Raters);
    return JsonHandle(JsonNumber(DisputedShare(*job.Cases.Agree(false).Figures)));
  };
  job.LeftOut = ForEachCase(
    job.Test, loop, read, [&job](const Case& one, const json_t* share) { job.Disputed[one.Id] = json_number_value(share); });
  std::set<std::string> bad;
  for (const LeftOutCase& one : job.LeftOut)
  {
    bad.insert(one.Id);
  }
  std::vector<Case>& cases = job.Test.Cases;
  cases.erase(
    std::remove_if(cases.begin(), cases.end(), [&bad](const Case& one) { return bad.count(one.Id) > 0; }), cases.end());
  if (cases.empty())
  {
    throw Error(RCN_EDATA, job.Options.Data + ": no test case can be used.");
  }
}

} // namespace
} // namespace study

StudyResult RunStudy(const StudyOptions& options)
{
  if (options.Folder.empty())
  {
    throw Error(RCN_EINVALID, "The study needs a folder for its results.", "output");
  }
  if (options.Seeds < 1 || options.Seeds > 1000)
  {
    throw Error(RCN_EINVALID, "A study takes 1 to 1000 seeds.");
  }
  study::Job job(options);
  study::ReadList(job);
  study::CheckStrategies(options.Strategies, job.List);
  job.Runs = study::RunsOf(options, job.List.HasStructures());
  study::CheckTestCases(job);
  for (const char* folder : { "models", "predictions" })
  {
    MakeFolder(job.Folder.File(folder));
  }
  if (job.All.IsFirst())
  {
    study::CheckProtocol(job);
  }
  for (size_t number = 0; number < job.Runs.size(); ++number)
  {
    study::Train(job, number);
    study::PredictTest(job, number);
  }
  job.All.WaitForAll(); // models and their records are written
  study::Judge(job);
  study::WriteTables(job);
  return job.Result;
}

} // namespace rcn
