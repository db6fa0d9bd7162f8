// SPDX-License-Identifier: Apache-2.0
#include "rcnJudge.h"

#include <cstring>

#include "rcnRecalibration.h"
#include "rcnTestData.h"
#include "rcnTinyCase.h"

namespace
{

/// Eight cases of tiny votes and two runs of predictions, which count how often they are asked for. Nothing is a file.
struct Cases
{
  rcn::Workspace Work;
  TinyCase Tiny;
  rcn::JudgeInput Input;
  std::vector<size_t> Votes, Levels, Probabilities; ///< how often, by case
  std::vector<std::string> Remarks, Warnings;
  size_t Broken = 100; ///< this case's second prediction has a NaN

  explicit Cases(size_t count = 8) : Votes(count), Levels(count), Probabilities(count)
  {
    this->Input.List.Raters = { "A", "B" };
    for (size_t i = 0; i < count; ++i)
    {
      this->Input.List.Cases.push_back(NamedCase("c" + std::to_string(i)));
    }
    this->Input.Votes = [this](const rcn::Case&, size_t number) {
      ++this->Votes[number];
      return std::shared_ptr<const rcn_votes>(std::shared_ptr<void>(), this->Tiny.Work.Votes());
    };
    this->Input.Predictions = {
      { "levels",
        [this](const rcn::Case& one, size_t number) {
          ++this->Levels[number];
          const float part = 0.01f * static_cast<float>(number);
          rcn::Volume map = TinyLevels();
          float* levels = static_cast<float*>(map.Data());
          levels[0] += part;
          levels[2] -= part;
          if (number % 4 == 3) // sure and wrong: otherwise the best correction would be endlessly sure
          {
            std::swap_ranges(levels, levels + 3, levels + 6);
            std::swap_ranges(levels + 3, levels + 6, levels + 9);
          }
          return rcn::CasePrediction{ map, "levels of " + one.Id };
        },
        nullptr },
      { "probability",
        [this](const rcn::Case& one, size_t number) {
          ++this->Probabilities[number];
          const float part = 0.02f * static_cast<float>(number);
          return rcn::CasePrediction{ TinyMap({ 0.8f, number == this->Broken ? std::nanf("") : 0.3f + part, 0.1f, 0.7f }),
            "probability of " + one.Id };
        },
        nullptr },
    };
    this->Input.Loop.Remark = [this](const std::string& sentence) { this->Remarks.push_back(sentence); };
    this->Input.Loop.Warn = [this](const std::string& sentence) { this->Warnings.push_back(sentence); };
  }

  rcn::JudgeResult Judge(const std::vector<rcn::JudgeTask>& tasks) { return rcn::JudgeCases(this->Work, this->Input, tasks); }
};

/// To the bit; undefined figures are the same as well.
bool Same(const rcn::EvaluationReport& a, const rcn::EvaluationReport& b)
{
  const auto same = [](double x, double y) { return !std::memcmp(&x, &y, sizeof x) || (std::isnan(x) && std::isnan(y)); };
  bool all =
    a.Cases == b.Cases && a.Voxels == b.Voxels && same(a.Auc.reference, b.Auc.reference) && same(a.Auc.pairs, b.Auc.pairs);
  for (size_t f = 0; f < RCN_FIGURES; ++f)
  {
    all = all && same(a.Figures[f], b.Figures[f]) && same(a.Interval[f].low, b.Interval[f].low) &&
      same(a.Interval[f].high, b.Interval[f].high);
  }
  return all;
}

rcn::Recalibration Platt(double slope, double shift)
{
  rcn::Recalibration correction;
  correction.Correction.method = RCN_RECALIB_PLATT;
  correction.Correction.parameters[0] = slope;
  correction.Correction.parameters[1] = shift;
  correction.Readout = RCN_READOUT_EXPECTED;
  return correction;
}

/// Two runs, four regions, readouts, a correction: as many tasks as there are, with the bits of each alone.
std::vector<rcn::JudgeTask> AllTasks(const rcn::Recalibration& correction)
{
  std::vector<rcn::JudgeTask> tasks;
  for (const rcn_region region : { RCN_REGION_WHOLE, RCN_REGION_BOX, RCN_REGION_BAND, RCN_REGION_DISPUTED })
  {
    rcn::EvaluationOptions options = TinyOptions(region);
    tasks.push_back({ 1, options });
    tasks.push_back({ 0, options });
    options.Calib.readout = RCN_READOUT_EXPECTED;
    tasks.push_back({ 0, options });
    options.Correction = &correction;
    tasks.push_back({ 0, options });
    tasks.push_back({ 1, options });
  }
  return tasks;
}

void TogetherAsAlone()
{
  const rcn::Recalibration correction = Platt(1.5, 0.2);
  const std::vector<rcn::JudgeTask> tasks = AllTasks(correction);
  Cases together;
  const rcn::JudgeResult all = together.Judge(tasks);
  CHECK(all.Evaluations.size() == tasks.size() && all.Raters.size() == 2 && all.LeftOut.empty());
  for (size_t t = 0; t < tasks.size(); ++t)
  {
    Cases alone;
    CHECK(Same(all.Evaluations[t]->Report(), alone.Judge({ tasks[t] }).Evaluations.front()->Report()));
    CHECK(alone.Probabilities == std::vector<size_t>(8, tasks[t].Prediction)); // a run that no task judges is not read
  }
  CHECK(together.Votes == std::vector<size_t>(8, 1) && together.Levels == std::vector<size_t>(8, 1));
  CHECK(together.Probabilities == std::vector<size_t>(8, 1));
}

/// The correction by hand: logit, slope, shift, and back.
void CorrectionsAreApplied()
{
  const rcn::Recalibration correction = Platt(2, 0.5);
  rcn::EvaluationOptions options = TinyOptions();
  options.Correction = &correction;
  TinyCase one;
  rcn::Judging judging(one.Work.Context(), { "A", "B" }, { { 0, options }, { 0, TinyOptions() } });
  judging.Add(NamedCase("c"), 0, one.Work.Votes(), { { TinyProbability(), "p" } });
  double sum = 0;
  for (const double p : { 0.9, 0.6, 0.2, 0.1 })
  {
    sum += 1 / (1 + std::exp(-(2 * std::log(p / (1 - p)) + 0.5)));
  }
  CHECK_NEAR(judging.Evaluations()[0]->Figures()[RCN_SIGNED], sum / 4 - 3.0 / 8, 1e-6);
  CHECK_NEAR(judging.Evaluations()[1]->Figures()[RCN_SIGNED], 1.8 / 4 - 3.0 / 8, 1e-7);
}

/// A correction is not judged on the cases it was fitted to, by name or by voxels, unless somebody insists.
void FittedCasesAreRefused()
{
  rcn::Recalibration correction = Platt(1, 0);
  correction.Fingerprints = { rcn::FingerprintOf(TinyProbability()) };
  rcn::EvaluationOptions options = TinyOptions();
  options.Correction = &correction;
  TinyCase one;
  const auto judge = [&](const std::string& id) {
    rcn::Judging judging(one.Work.Context(), { "A", "B" }, { { 0, TinyOptions() }, { 0, options } });
    try
    {
      judging.Add(NamedCase(id), 0, one.Work.Votes(), { { TinyProbability(), "p" } });
    }
    catch (const rcn::Error&)
    {
      CHECK(judging.Evaluations()[0]->CaseIds().empty()); // for all tasks or for none
      throw;
    }
    CHECK(judging.Evaluations()[0]->CaseIds().size() == 1 && judging.Evaluations()[1]->CaseIds().size() == 1);
  };
  CHECK_THROWS(judge("renamed"), RCN_EINVALID, "renamed");
  correction.Fingerprints = {};
  correction.Cases = { "c07" };
  CHECK_THROWS(judge("c07"), RCN_EINVALID, "c07");
  judge("c08");
  options.AllowFittedCases = true;
  judge("c07");
  // Two models that see nothing have seen two cases.
  CHECK(rcn::FingerprintOf(TinyMap({ 0.5f, 0.5f })).empty() && !rcn::FingerprintOf(TinyMap({ 0.5f, 0.4f })).empty());
}

/// A case that one model cannot be judged on counts for no model; without a good case there is nothing.
void ForAllOrForNone()
{
  Cases cases(3);
  cases.Broken = 1;
  const rcn::JudgeResult result = cases.Judge({ { 0, TinyOptions() }, { 1, TinyOptions() } });
  CHECK(result.LeftOut.size() == 1 && result.LeftOut.front().Id == "c1");
  for (const auto& evaluation : result.Evaluations)
  {
    CHECK((evaluation->CaseIds() == std::vector<std::string>{ "c0", "c2" }));
  }
  CHECK(cases.Warnings.size() == 2 && cases.Warnings.back() == "1 of 3 cases could not be used.");
  Cases bad(1);
  bad.Broken = 0;
  CHECK_THROWS(bad.Judge({ { 1, TinyOptions() } }), RCN_EDATA, "No case could be evaluated");
  bad.Input.Loop.LeaveOut = false;
  CHECK_THROWS(bad.Judge({ { 1, TinyOptions() } }), RCN_EDATA, "probability of c0");
}

/// A region that is empty in a case concerns the tasks on that region only, and is worth a remark where it is all there is.
void EmptyRegions()
{
  Cases cases(1);
  TinyCase agreed({ { 1, 1, 0, 0 }, { 1, 1, 0, 0 } });
  cases.Input.Votes = [&](const rcn::Case&, size_t) {
    return std::shared_ptr<const rcn_votes>(std::shared_ptr<void>(), agreed.Work.Votes());
  };
  const rcn::JudgeResult both = cases.Judge({ { 0, TinyOptions(RCN_REGION_DISPUTED) }, { 0, TinyOptions() } });
  CHECK(both.Evaluations[0]->CaseIds().empty() && both.Evaluations[1]->CaseIds().size() == 1 && cases.Remarks.empty());
  cases.Judge({ { 0, TinyOptions(RCN_REGION_DISPUTED) } });
  CHECK(cases.Remarks == std::vector<std::string>{ "Case c0: the region is empty, so the case is left out." });
}

/// One sum of all cases has the figures of the sums of each.
void OneSum()
{
  rcn::EvaluationOptions merged = TinyOptions();
  merged.PerCase = false;
  Cases cases;
  const rcn::JudgeResult result = cases.Judge({ { 0, TinyOptions() }, { 0, merged } });
  const std::vector<double> each = result.Evaluations[0]->Figures(), one = result.Evaluations[1]->Figures();
  CHECK(!std::memcmp(each.data(), one.data(), each.size() * sizeof(double)));
  CHECK(result.Evaluations[0]->Auc().pairs == result.Evaluations[1]->Auc().pairs);
}

/// Fit, judge again, leave one out: each case is read once while there is room, and the result is the same without.
void RecalibratingReadsOnce()
{
  for (const rcn_recalib_method method : { RCN_RECALIB_TEMPERATURE, RCN_RECALIB_PLATT, RCN_RECALIB_BETA, RCN_RECALIB_ISOTONIC })
  {
    Cases cases, roomless;
    const rcn::RecalibrationResult result = rcn::Recalibrate(cases.Work, cases.Input, TinyOptions(), method);
    CHECK(cases.Votes == std::vector<size_t>(8, 1) && cases.Levels == std::vector<size_t>(8, 1));
    CHECK(result.Tested && result.Cases.size() == 8 && result.Before.Cases == 8 && result.EachLeftOut.Cases == 8);
    CHECK((result.Correction.Correction.levels > 0) == (method == RCN_RECALIB_TEMPERATURE));
    // A proper score decides, and MR-ECE must not get worse: of the levels, where there are some.
    const rcn_figure likelihood = method == RCN_RECALIB_TEMPERATURE ? RCN_LEVEL_NLL
      : method == RCN_RECALIB_ISOTONIC                              ? RCN_BRIER
                                                                    : RCN_NLL;
    CHECK(result.Helps ==
      (result.EachLeftOut.Figures[likelihood] < result.Before.Figures[likelihood] &&
        result.EachLeftOut.Figures[RCN_MR_ECE] <= result.Before.Figures[RCN_MR_ECE]));
    CHECK(result.EachLeftOut.Auc.reference == result.After.Auc.reference && result.EachLeftOut.EachLeftOut);
    CHECK(result.EachLeftOut.Figures[RCN_DICE] == result.After.Figures[RCN_DICE]);
    const rcn::RecalibrationResult again = rcn::Recalibrate(roomless.Work, roomless.Input, TinyOptions(), method, 0);
    CHECK(roomless.Votes == std::vector<size_t>(8, 2) && roomless.Levels == std::vector<size_t>(8, 2));
    CHECK(Same(result.After, again.After) && Same(result.EachLeftOut, again.EachLeftOut));
  }
}

/// Cases that could not be used the first time are not tried again, and are named once.
void RecalibratingLeavesOut()
{
  Cases cases;
  cases.Broken = 3;
  std::swap(cases.Input.Predictions[0], cases.Input.Predictions[1]);
  const rcn::RecalibrationResult result = rcn::Recalibrate(cases.Work, cases.Input, TinyOptions(), RCN_RECALIB_PLATT);
  CHECK(result.LeftOut.size() == 1 && result.Before.Cases == 7 && result.After.Cases == 7);
  CHECK(cases.Probabilities == std::vector<size_t>(8, 1) && cases.Warnings.size() == 2);
}

/// Files: masks are read by the workspace, predictions from a folder; one case may name its raters itself.
void Files()
{
  const Folder folder;
  PhantomSet set;
  set.Training = 0;
  const rcn::DataList list = WritePhantoms(folder, set);
  rcn::JudgeInput input;
  input.List = list;
  input.Loop.Split = "validation";
  for (const rcn::Case& one : list.Cases)
  {
    const rcn::Volume image = rcn::ReadImage(one.Images.front());
    const rcn::Volume map = rcn::Volume::Allocate(image.Geometry(), RCN_FLOAT32);
    const float* from = static_cast<const float*>(image.Data());
    std::transform(
      from, from + 32 * 32, static_cast<float*>(map.Data()), [](float v) { return std::min(std::max(v, 0.f), 1.f); });
    rcn::WriteImage(folder / (one.Id + "_prob.nrrd"), map.View(), rcn::Content::Probability);
  }
  input.Predictions = { rcn::PredictionsOfFolder(folder / ".") };
  rcn::Workspace workspace;
  const rcn::JudgeResult result = rcn::JudgeCases(workspace, input, { { 0, rcn::EvaluationOptions() } });
  CHECK((result.Raters == std::vector<std::string>{ "A", "B", "C" }) && result.Evaluations.front()->CaseIds().size() == 2);
  rcn::JudgeInput one;
  one.List.Cases = { list.Cases.front() };
  one.Predictions = { rcn::PredictionOfFile(folder / "c0_prob.nrrd") };
  const rcn::JudgeResult alone = rcn::JudgeCases(workspace, one, { { 0, rcn::EvaluationOptions() } });
  CHECK(alone.Raters == result.Raters);
  CHECK(alone.Evaluations.front()->CaseFigures(0)[RCN_MR_ECE] == result.Evaluations.front()->CaseFigures(0)[RCN_MR_ECE]);
  one.Predictions = { rcn::PredictionOfFile(folder / "absent.nrrd") };
  CHECK_THROWS(rcn::JudgeCases(workspace, one, { { 0, rcn::EvaluationOptions() } }), RCN_EIO, "absent.nrrd");
  input.Loop.Split = "test";
  CHECK_THROWS(rcn::JudgeCases(workspace, input, { { 0, rcn::EvaluationOptions() } }), RCN_EINVALID, "the split test");
}

} // namespace

int main()
{
  RUN(TogetherAsAlone);
  RUN(CorrectionsAreApplied);
  RUN(FittedCasesAreRefused);
  RUN(ForAllOrForNone);
  RUN(EmptyRegions);
  RUN(OneSum);
  RUN(RecalibratingReadsOnce);
  RUN(RecalibratingLeavesOut);
  RUN(Files);
  return Failures != 0;
}
