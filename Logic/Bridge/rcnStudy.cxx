// SPDX-License-Identifier: Apache-2.0
#include "rcnStudy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <set>

#include "rcn/rcn.h"
#include "rcnJudge.h"
#include "rcnProcesses.h"
#include "rcnRanking.h"
#include "rcnReport.h"
#include "rcnTrainingFiles.h"
#include "rcnReportPage.h"
#include "rcnSliceFigure.h"

namespace rcn
{

namespace fs = std::filesystem;

const std::vector<StudyColumn>& StudyColumns()
{
  static const std::vector<StudyColumn> columns = {
    { "MR-ECE, box (%)", RCN_REGION_BOX, RCN_MR_ECE, true, false },
    { "MR-ECE, band (%)", RCN_REGION_BAND, RCN_MR_ECE, true, false },
    { "MR-ECE, disputed (%)", RCN_REGION_DISPUTED, RCN_MR_ECE, true, false },
    { "MR-ECE, whole (%)", RCN_REGION_WHOLE, RCN_MR_ECE, true, false },
    { "AUC, box (%)", RCN_REGION_BOX, RCN_AUC_HISTOGRAM, true, true },
    { "Dice, box", RCN_REGION_BOX, RCN_DICE, false, true },
    { "Dice pooled, box", RCN_REGION_BOX, RCN_DICE_POOLED, false, true },
    { "Brier, box", RCN_REGION_BOX, RCN_BRIER, false, false },
  };
  return columns;
}

std::string StudyNumber(double value, const StudyColumn& column)
{
  const double shown = (column.Percent ? 100 : 1) * value;
  // Three digits that say something: a whole image is nearly all background, and its MR-ECE small.
  return Fixed(shown, !column.Percent ? 4 : std::fabs(shown) < 1 ? 3 : 2);
}

namespace
{

std::string TimeText(double seconds)
{
  return seconds < 90 ? Fixed(std::ceil(seconds), 0) + " s"
    : seconds < 5400  ? Fixed(seconds / 60, 0) + " min"
                      : Fixed(seconds / 3600, 1) + " h";
}

/// The strategies of a study that names none: the paper's.
std::vector<std::string> PaperStrategies()
{
  const std::vector<std::string> known = ChoiceNames(Strategies());
  return std::vector<std::string>(known.begin(), known.begin() + 8);
}

std::string RunName(const std::string& strategy, int seed)
{
  return strategy + (seed ? "-seed" + std::to_string(seed) : "");
}

/// One strategy with one seed.
struct Candidate
{
  std::string Strategy, Name;
  uint64_t Seed;
};

/// Does the work and knows how far it is.
class Study
{
public:
  explicit Study(const StudyOptions& options)
    : Options_(options), Processes_(Processes::All()), Workspace_(options.Training.Workspace)
  {
  }

  StudyResult Run();

private:
  void CheckList();
  void CheckTestCases();
  void CheckProtocol();
  bool IsOwn(const std::string& path, const Candidate& run) const;
  void Train(const Candidate& run, size_t number);
  void PredictTest(const Candidate& run, size_t number);
  void Judge();
  void JudgeRegions(const std::vector<rcn_region>& regions);
  void FillColumns(rcn_region region, const std::vector<std::vector<std::unique_ptr<Evaluation>>>& models);
  void WriteTables();
  void AddPictures(Page& page);

  std::string File(const std::string& folder, const std::string& name) const
  {
    return (fs::path(this->Options_.Folder) / folder / name).string();
  }
  std::string LevelsFile(const std::string& name, const std::string& id) const
  {
    return this->File("predictions/" + name, id + "_levels.nrrd");
  }
  void Remark(const std::string& sentence) const
  {
    if (this->Options_.Remark)
    {
      this->Options_.Remark(sentence);
    }
  }
  void Warn(const std::string& sentence) const { this->Options_.Warn ? this->Options_.Warn(sentence) : this->Remark(sentence); }
  bool IsStopped(double fraction, const std::string& stage);
  void Show(double fraction, const std::string& stage);

  StudyOptions Options_;
  Processes& Processes_; // all of them train together; test cases are shared out
  Workspace Workspace_;
  DataList List_;
  std::vector<Case> Test_;
  std::vector<double> Disputed_; // by test case: which share of what anybody marked
  std::vector<Candidate> Runs_;
  StudyResult Result_;
  std::chrono::steady_clock::time_point Start_ = std::chrono::steady_clock::now();
  double Fraction_ = 0;
  std::string Stage_;   // shown last
  double Skipped_ = -1; // how far the study was when this sitting began to work
};

// ---- before the work -------------------------------------------------------------------------------

void Study::CheckList()
{
  this->List_ = ReadDataList(this->Options_.Data);
  bool training = false;
  for (const Case& one : this->List_.Cases)
  {
    training = training || one.Split == "training";
    if (one.Split == "test")
    {
      this->Test_.push_back(one);
    }
  }
  CheckSplits(this->List_, this->Options_.Training.Folds > 1 || this->Options_.Training.Split);
  if (!training || this->Test_.empty())
  {
    throw Error(RCN_EINVALID,
      this->Options_.Data + " has no " + (training ? "test" : "training") +
        " cases; a study trains on \"training\" and judges on \"test\".");
  }
  if (this->List_.Raters.size() < 2)
  {
    throw Error(RCN_EINVALID, this->Options_.Data + " has one rater; a study compares ways to learn from several.");
  }
  for (const Case& one : this->Test_)
  {
    if (one.Images.empty())
    {
      throw Error(RCN_EINVALID, this->Options_.Data + ", case " + one.Id + ": a test case needs an image.");
    }
  }
  std::vector<std::string> names = this->Options_.Strategies;
  const std::vector<std::string> known = ChoiceNames(Strategies());
  if (names.empty())
  {
    names = PaperStrategies();
  }
  for (const std::string& name : names)
  {
    if (std::find(known.begin(), known.end(), name) == known.end())
    {
      throw Error(RCN_EINVALID, "There is no strategy '" + name + "'.");
    }
    if (std::count(names.begin(), names.end(), name) > 1)
    {
      throw Error(RCN_EINVALID, "The strategy " + name + " is named twice.");
    }
  }
  for (int seed = 0; seed < this->Options_.Seeds; ++seed)
  {
    for (const std::string& name : names)
    {
      this->Runs_.push_back({ name, RunName(name, seed), this->Options_.Training.Seed + static_cast<uint64_t>(seed) });
    }
  }
}

/// Reads every test case once: hours of training are no use when the last of them turns out to be damaged.
void Study::CheckTestCases()
{
  SharedRecords found; // the share that is disputed, or why a case cannot be used
  this->Processes_.Distribute(this->Test_.size(), [&](size_t i) {
    try
    {
      this->Workspace_.LoadCase(this->Test_[i], this->List_.Raters);
      const AgreementReport agreement = this->Workspace_.Agree(false);
      found.Set(i,
        JsonNumber(static_cast<double>(agreement.Figures->disputed_voxels) /
          static_cast<double>(std::max<int64_t>(agreement.Figures->union_voxels, 1))));
    }
    catch (const Error& error)
    {
      if (!this->Options_.Training.SkipBad || error.Status() == RCN_ECANCELLED || error.Status() == RCN_ENOMEM)
      {
        throw;
      }
      found.Set(i, JsonString(error.what()));
    }
  });
  found.Merge(this->Processes_);
  std::vector<Case> good;
  for (size_t i = 0; i < this->Test_.size(); ++i)
  {
    if (json_is_string(found.Get(i)))
    {
      this->Result_.LeftOut.push_back({ this->Test_[i].Id, json_string_value(found.Get(i)) });
      this->Warn("Test case " + this->Test_[i].Id + " was left out: " + this->Result_.LeftOut.back().Sentence);
    }
    else
    {
      good.push_back(this->Test_[i]);
      this->Disputed_.push_back(json_number_value(found.Get(i)));
    }
  }
  this->Test_ = good;
  if (good.empty())
  {
    throw Error(RCN_EDATA, this->Options_.Data + ": no test case can be used.");
  }
}

/// A folder holds one protocol: figures of two would stand in one table.
void Study::CheckProtocol()
{
  const std::string list = ReadText(this->Options_.Data);
  const JsonHandle now(json_object());
  json_object_set_new(now.get(), "data", JsonString(fs::weakly_canonical(this->Options_.Data).string()));
  json_object_set_new(now.get(), "list", JsonString(HashText(rcn_hash_bytes(RCN_HASH_START, list.data(), list.size()))));
  json_t* choices = json_object();
  for (const auto& choice : this->Options_.Choices)
  {
    json_object_set_new(choices, choice.first.c_str(), JsonString(choice.second));
  }
  json_object_set_new(now.get(), "choices", choices);
  const std::string path = this->File("", "study.json");
  std::error_code ignored;
  if (!fs::exists(path, ignored))
  {
    WriteText(path, DocumentText(now.get()));
    return;
  }
  const std::string text = ReadText(path);
  const JsonHandle before(json_loadb(text.data(), text.size(), 0, nullptr));
  const auto refuse = [&](const std::string& what) {
    throw Error(RCN_EINVALID, path + " is of another study: " + what + " Use another folder, or the same options.");
  };
  if (!json_is_object(before.get()))
  {
    refuse("it cannot be read.");
  }
  if (!json_equal(json_object_get(before.get(), "list"), json_object_get(now.get(), "list")))
  {
    refuse("the data list was a different one.");
  }
  const json_t* old = json_object_get(before.get(), "choices");
  for (const auto& choice : this->Options_.Choices)
  {
    const char* value = json_string_value(json_object_get(old, choice.first.c_str()));
    if (!value || value != choice.second)
    {
      refuse(choice.first + " was " + (value ? value : "not given") + ", now " + choice.second + ".");
    }
  }
  const char* key;
  json_t* value;
  json_object_foreach(const_cast<json_t*>(old), key, value)
  {
    if (!this->Options_.Choices.count(key))
    {
      refuse(std::string(key) + " was " + (json_string_value(value) ? json_string_value(value) : "given") +
        ", now it is not given.");
    }
  }
}

// ---- training and predicting -----------------------------------------------------------------------

bool Study::IsStopped(double fraction, const std::string& stage)
{
  if (this->Skipped_ < 0)
  {
    this->Skipped_ = fraction;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - this->Start_).count();
  const double done = fraction - this->Skipped_;
  this->Fraction_ = fraction;
  this->Stage_ = stage + (done > 0.01 && seconds > 5 ? ", " + TimeText(seconds / done * (1 - fraction)) + " left" : "");
  return this->Options_.Progress && this->Options_.Progress(this->Fraction_, this->Stage_);
}

/// Throws when the person asks to stop.
void Study::Show(double fraction, const std::string& stage)
{
  if (this->IsStopped(fraction, stage))
  {
    throw Error(RCN_ECANCELLED, "Stopped; the same command goes on from here.");
  }
}

/// Training is nearly all of a study; the rest of a run's share is predicting.
constexpr double TrainingShare = 0.95;

/// Whether the model there was trained by this strategy with this seed, and may be trained anew.
bool Study::IsOwn(const std::string& path, const Candidate& run) const
{
  rcn_context* context = this->Workspace_.Context();
  JsonHandle protocol;
  try
  {
    protocol = ReadTrainingEntry(context, path);
  }
  catch (const Error&)
  {
    return false;
  }
  const char* strategy = json_string_value(ProtocolValue(protocol.get(), "strategy"));
  return strategy && strategy == run.Strategy &&
    json_number_value(ProtocolValue(protocol.get(), "seed")) == static_cast<double>(run.Seed);
}

void Study::Train(const Candidate& run, size_t number)
{
  const std::string done = this->File("models", run.Name + ".json");
  std::error_code ignored;
  const double each = 1.0 / static_cast<double>(this->Runs_.size());
  TrainingResult result;
  if (this->Processes_.FirstSays(!fs::exists(done, ignored)))
  {
    TrainingOptions options = this->Options_.Training;
    options.List = this->List_;
    options.Strategy = run.Strategy;
    options.Seed = run.Seed;
    options.Output = this->File("models", run.Name + ".safetensors");
    options.Resume =
      this->Processes_.FirstSays(fs::exists(this->File("models", run.Name + ".checkpoint.safetensors"), ignored));
    if (this->Processes_.FirstSays(fs::exists(options.Output, ignored) && !options.Resume && !this->IsOwn(options.Output, run)))
    {
      throw Error(RCN_EINVALID,
        options.Output + " already exists and is not a model of this study; move it away, or choose another folder.");
    }
    options.Overwrite = true; // what is in the study's folder now is the study's
    options.Remark = [&](const std::string& sentence) { this->Remark(run.Name + ": " + sentence); };
    options.Warn = [&](const std::string& sentence) { this->Warn(run.Name + ": " + sentence); };
    options.Progress = [&](const TrainingProgress& progress) {
      std::string stage =
        run.Name + " (" + std::to_string(number + 1) + " of " + std::to_string(this->Runs_.size()) + ") " + progress.Stage;
      if (progress.Epoch > 0)
      {
        stage += ", epoch " + std::to_string(progress.Epoch) + "/" + std::to_string(progress.Epochs);
      }
      return this->IsStopped((static_cast<double>(number) + TrainingShare * progress.Fraction) * each, stage);
    };
    result = TrainModel(options);
    if (result.Interrupted)
    {
      throw Error(RCN_ECANCELLED, "Stopped while training " + run.Name + "; the same command goes on from here.");
    }
    if (this->Processes_.IsFirst())
    {
      const JsonHandle json(TrainingJson(result));
      WriteText(done, DocumentText(json.get()));
      fs::remove(result.Checkpoint, ignored);
    }
    this->Remark(
      run.Name + " is trained: best epoch " + std::to_string(result.Best) + " of " + std::to_string(options.Epochs) + ".");
  }
}

void Study::PredictTest(const Candidate& run, size_t number)
{
  MakeFolder(this->File("predictions", run.Name));
  std::unique_ptr<Model> model; // only when there is something to predict
  const double each = 1.0 / static_cast<double>(this->Runs_.size());
  this->Processes_.Distribute(this->Test_.size(), [&](size_t i) {
    const Case& one = this->Test_[i];
    std::error_code ignored;
    const std::string path = this->LevelsFile(run.Name, one.Id);
    if (fs::exists(path, ignored))
    {
      return;
    }
    this->Show((static_cast<double>(number) + TrainingShare +
                 (1 - TrainingShare) * static_cast<double>(i) / static_cast<double>(this->Test_.size())) *
        each,
      run.Name + " predicting " + one.Id);
    rcn_context* context = this->Workspace_.Context();
    if (!model)
    {
      model.reset(new Model(context, this->File("models", run.Name + ".safetensors")));
    }
    const std::vector<Volume> images = ImagesOf(context, one, this->Options_.Training.Workspace.Tolerance);
    const Prediction prediction = Predict(*model, context, images, one.Images.front(), this->Options_.Prediction);
    WriteImage(path, prediction.Levels.View(), Content::Probability);
  });
  this->Processes_.WaitForAll(); // all of them are written
  if (this->Processes_.IsFirst())
  {
    PredictionFolder folder(this->File("predictions", run.Name));
    const Model made(this->Workspace_.Context(), this->File("models", run.Name + ".safetensors"));
    folder.Begin(RunOf(made, this->Options_.Prediction), {});
    for (const Case& one : this->Test_)
    {
      folder.Add(one.Id, { { "levels", this->LevelsFile(run.Name, one.Id) } });
    }
    folder.Finish();
  }
}

// ---- judging ---------------------------------------------------------------------------------------

double ValueOf(const EvaluationReport& report, rcn_figure figure)
{
  return figure == RCN_AUC_HISTOGRAM ? report.Auc.reference : report.Figures[figure];
}

std::vector<const Evaluation*> Pointers(const std::vector<std::unique_ptr<Evaluation>>& runs)
{
  std::vector<const Evaluation*> pointers;
  for (const auto& run : runs)
  {
    pointers.push_back(run.get());
  }
  return pointers;
}

/// One value of the table out of the seeds' reports.
StudyCell CellOf(const std::vector<EvaluationReport>& seeds, const std::vector<rcn_interval>& together, rcn_figure figure)
{
  StudyCell cell;
  const double share = 1 / static_cast<double>(seeds.size());
  cell.SeedLow = cell.SeedHigh = ValueOf(seeds.front(), figure);
  for (const EvaluationReport& seed : seeds)
  {
    const double value = ValueOf(seed, figure);
    cell.Value += share * value;
    cell.PaperMean += share * seed.Paper[figure].mean;
    cell.PaperStd += share * seed.Paper[figure].std;
    cell.SeedLow = std::min(cell.SeedLow, value);
    cell.SeedHigh = std::max(cell.SeedHigh, value);
  }
  // AUC is exact in the table and from a histogram in the interval, which is to hold it all the same.
  cell.Low = std::min(together[figure].low, cell.Value);
  cell.High = std::max(together[figure].high, cell.Value);
  return cell;
}

/// Judges all rows and seeds on these regions; each file is read once.
void Study::JudgeRegions(const std::vector<rcn_region>& regions)
{
  JudgeInput input;
  input.List = this->List_;
  input.List.Cases = this->Test_;
  input.Loop.LeaveOut = false; // they were all read before the training
  input.Loop.Begin = [this](const std::string& id, size_t, size_t) { this->Show(1, "judging case " + id); };
  for (const Candidate& run : this->Runs_)
  {
    input.Predictions.push_back({ run.Name,
      [this, run](const Case& one, size_t) {
        const std::string path = this->LevelsFile(run.Name, one.Id);
        return CasePrediction{ ReadPrediction(path), path };
      },
      nullptr });
  }
  const std::vector<StudyRow>& rows = this->Result_.Rows;
  std::vector<JudgeTask> tasks;
  for (const rcn_region region : regions)
  {
    for (const StudyRow& row : rows)
    {
      for (size_t run = 0; run < this->Runs_.size(); ++run)
      {
        if (this->Runs_[run].Strategy == row.Strategy)
        {
          tasks.push_back({ run, this->Options_.Judge });
          EvaluationOptions& options = tasks.back().Options;
          options.Region.region = region;
          options.TieBackground = this->Options_.Training.TieBackground;
          ParseReadout(options.Calib.readout, options.Calib.at_least, row.Readout);
          options.AsProbability = true;
          options.ExactAuc = region == RCN_REGION_BOX; // the only region with a column for it; it holds every voxel
        }
      }
    }
  }
  JudgeResult judged = JudgeCases(this->Workspace_, input, tasks);
  auto next = judged.Evaluations.begin();
  for (const rcn_region region : regions)
  {
    std::vector<std::vector<std::unique_ptr<Evaluation>>> models(rows.size());
    for (std::vector<std::unique_ptr<Evaluation>>& seeds : models)
    {
      std::move(next, next + this->Options_.Seeds, std::back_inserter(seeds));
      next += this->Options_.Seeds;
    }
    this->FillColumns(region, models);
  }
}

/// The columns of a region. models[row][seed].
void Study::FillColumns(rcn_region region, const std::vector<std::vector<std::unique_ptr<Evaluation>>>& models)
{
  std::vector<StudyRow>& rows = this->Result_.Rows;
  for (size_t r = 0; r < rows.size(); ++r)
  {
    this->Show(1, std::string("judging on the region ") + rcn_region_name(region) + ", " + rows[r].Strategy);
    std::vector<EvaluationReport> reports;
    for (const auto& model : models[r])
    {
      reports.push_back(model->Report());
    }
    if (region == RCN_REGION_BOX)
    {
      rows[r].Box = reports.front();
    }
    const std::vector<rcn_interval> together = Evaluation::Together(Pointers(models[r]));
    for (size_t c = 0; c < StudyColumns().size(); ++c)
    {
      if (StudyColumns()[c].Region == region)
      {
        rows[r].Cells[c] = CellOf(reports, together, StudyColumns()[c].Figure);
      }
    }
  }
  this->Show(1, std::string("comparing on the region ") + rcn_region_name(region));
  std::vector<std::vector<const Evaluation*>> compared;
  std::transform(models.begin(), models.end(), std::back_inserter(compared), Pointers);
  for (size_t c = 0; c < StudyColumns().size(); ++c)
  {
    if (StudyColumns()[c].Region == region)
    {
      std::vector<double> values;
      std::transform(
        rows.begin(), rows.end(), std::back_inserter(values), [c](const StudyRow& row) { return row.Cells[c].Value; });
      const std::vector<Rank> ranks = RankModels(compared, values, StudyColumns()[c].Figure, region);
      for (size_t r = 0; r < rows.size(); ++r)
      {
        rows[r].Cells[c].Best = ranks[r] == Rank::Best;
        rows[r].Cells[c].Tie = ranks[r] == Rank::Tie;
      }
    }
  }
}

void Study::Judge()
{
  for (const Candidate& run : this->Runs_)
  {
    if (run.Name != run.Strategy)
    {
      continue; // a further seed
    }
    const Model model(this->Workspace_.Context(), this->File("models", run.Name + ".safetensors"));
    model.CheckRaters(this->List_.Raters, this->Options_.Data);
    const bool one = model.GivesOneProbability();
    const std::string majority = model.Info().TieBackground ? "more-than-half" : "majority";
    for (const std::string& readout : one ? std::vector<std::string>{ "" } : std::vector<std::string>{ majority, "expected" })
    {
      StudyRow row;
      row.Strategy = run.Strategy;
      row.Readout = readout;
      row.Cells.resize(StudyColumns().size());
      this->Result_.Rows.push_back(row);
    }
  }
  // All regions in one pass over the files, unless the sums of so many cases would not fit.
  constexpr double bytesOfSums = 0.3e6, mostBytes = 2e9; // of one case in one evaluation (rcn_calib.h); of all of them
  const std::vector<rcn_region> regions = { RCN_REGION_BOX, RCN_REGION_BAND, RCN_REGION_DISPUTED, RCN_REGION_WHOLE };
  const double each = bytesOfSums * static_cast<double>(this->Result_.Rows.size() * this->Test_.size()) * this->Options_.Seeds;
  if (each * static_cast<double>(regions.size()) <= mostBytes)
  {
    this->JudgeRegions(regions);
    return;
  }
  for (const rcn_region region : regions)
  {
    this->JudgeRegions({ region });
  }
}

// ---- tables ----------------------------------------------------------------------------------------

std::string NameOf(const StudyRow& row)
{
  return row.Strategy + (row.Readout.empty() ? "" : " (" + row.Readout + ")");
}

std::string IntervalText(const StudyCell& cell, const StudyColumn& column)
{
  return std::isfinite(cell.Low) && std::isfinite(cell.High)
    ? StudyNumber(cell.Low, column) + " to " + StudyNumber(cell.High, column)
    : "";
}

std::string BestInWords(const StudyResult& result, size_t column)
{
  std::string best, ties;
  for (const StudyRow& row : result.Rows)
  {
    const StudyCell& cell = row.Cells[column];
    if (cell.Best)
    {
      best = NameOf(row) + " with " + StudyNumber(cell.Value, StudyColumns()[column]);
    }
    else if (cell.Tie)
    {
      ties += (ties.empty() ? "" : ", ") + NameOf(row);
    }
  }
  if (best.empty())
  {
    return "undefined on these test cases.";
  }
  if (result.Rows.size() == 1)
  {
    return best + "; there is no other to compare with.";
  }
  return best +
    (ties.empty() ? "; all others are significantly different from it."
                  : "; not significantly different from it: " + ties + ".");
}

/// What the marks, regions and figures of the table mean.
std::string Legend()
{
  return "Bold: the best of the column. ≈: not significantly different from the best (the 95 % interval of the paired "
         "difference covers 0, or there are too few cases for one). " +
    std::string(NotRankedInWords) +
    " Below each value: its 95 % interval over patients, where the list names them, otherwise over test cases; none below "
    "five. MR-ECE: how far the probability is from the share of raters who mark the voxel, on average; box: around all marks "
    "and 20 voxels; band: near the contour; disputed: where raters disagree; whole: the image. AUC, Dice and Brier: in the "
    "box, "
    "AUC and Dice against the majority of the raters, Brier against all of them; Dice: the mean over cases, without those "
    "where "
    "no majority marks anything and nothing is predicted; pooled: over all voxels together. Strategies that predict levels are "
    "judged with both readouts: majority, the probability that a majority marks the voxel, and expected, the expected share of "
    "raters.";
}

std::string SeedText(const StudyResult& result)
{
  return result.Seeds > 1 ? "Values are means over " + std::to_string(result.Seeds) +
      " trainings with different seeds; intervals and ≈ are over "
      "patients (or cases) and trainings. table.json has the range over seeds."
                          : "One training per strategy: another seed would move the values, which the intervals do not show.";
}

/// Which training a picture shows, where there are several.
std::string SeedShown(const StudyResult& result)
{
  return result.Seeds > 1 ? ", as the training with seed " + std::to_string(result.FirstSeed) + " predicts (one of " +
      std::to_string(result.Seeds) + "; the table has the means)"
                          : "";
}

/// What was typed; a program that calls for a study has no more than its choices.
std::string CommandText(const StudyResult& result)
{
  std::string text = "rater-consensus study --data " + result.Data;
  for (const auto& choice : result.Choices)
  {
    text += " " + choice.first + (choice.second.empty() ? "" : " " + choice.second);
  }
  return result.Command.empty() ? text : result.Command;
}

json_t* CellJson(const StudyCell& cell)
{
  json_t* json = json_object();
  json_object_set_new(json, "value", JsonNumber(cell.Value));
  json_object_set_new(json, "low", JsonNumber(cell.Low));
  json_object_set_new(json, "high", JsonNumber(cell.High));
  json_object_set_new(json, "mean_60", JsonNumber(cell.PaperMean));
  json_object_set_new(json, "std_60", JsonNumber(cell.PaperStd));
  json_object_set_new(json, "seed_low", JsonNumber(cell.SeedLow));
  json_object_set_new(json, "seed_high", JsonNumber(cell.SeedHigh));
  json_object_set_new(json, "best", json_boolean(cell.Best));
  json_object_set_new(json, "tie", json_boolean(cell.Tie));
  return json;
}

std::string JsonOf(const StudyResult& result)
{
  const JsonHandle root(json_object());
  json_object_set_new(root.get(), "data", JsonString(result.Data));
  json_t* choices = json_object();
  for (const auto& choice : result.Choices)
  {
    json_object_set_new(choices, choice.first.c_str(), JsonString(choice.second));
  }
  json_object_set_new(root.get(), "choices", choices);
  json_object_set_new(root.get(), "raters", JsonStrings(result.Raters));
  json_object_set_new(root.get(), "test_cases", json_integer(static_cast<json_int_t>(result.TestCases)));
  json_object_set_new(root.get(), "seeds", json_integer(result.Seeds));
  json_t* rows = json_array();
  for (const StudyRow& row : result.Rows)
  {
    json_t* json = json_object();
    json_object_set_new(json, "strategy", JsonString(row.Strategy));
    json_object_set_new(json, "readout", row.Readout.empty() ? json_null() : JsonString(row.Readout));
    json_t* figures = json_object();
    for (size_t c = 0; c < row.Cells.size(); ++c)
    {
      const StudyColumn& column = StudyColumns()[c];
      json_t* region = json_object_get(figures, rcn_region_name(column.Region));
      if (!region)
      {
        region = json_object();
        json_object_set_new(figures, rcn_region_name(column.Region), region);
      }
      json_object_set_new(
        region, column.Figure == RCN_AUC_HISTOGRAM ? "auc" : rcn_figure_name(column.Figure), CellJson(row.Cells[c]));
    }
    json_object_set_new(json, "figures", figures);
    json_array_append_new(rows, json);
  }
  json_object_set_new(root.get(), "rows", rows);
  json_object_set_new(root.get(), "left_out", LeftOutJson(result.LeftOut));
  return DocumentText(root.get());
}

/// The page but for its pictures.
void WritePage(Page& page, const StudyResult& result, const std::function<void()>& addPictures)
{
  page.SetSubtitle(Counted(static_cast<int64_t>(result.Raters.size()), "rater") + ", " +
    Counted(static_cast<int64_t>(result.TestCases), "test case") + " that no training has seen");
  page.Section("summary", "In short");
  page.Paragraph(
    "Every strategy was trained with the same network, course, data and seed" + std::string(result.Seeds > 1 ? "s." : "."));
  page.List(
    { "Probabilities closest to the share of raters around the marks (MR-ECE, lower is better, %): " + BestInWords(result, 0),
      "Best order of voxels (AUC, higher is better, %): " + BestInWords(result, 4) });
  PageTable table;
  table.Caption = "Every strategy on the test cases";
  table.Columns = { "Strategy" };
  for (const StudyColumn& column : StudyColumns())
  {
    table.Columns.emplace_back(column.Name, column.HigherIsBetter ? "higher is better" : "lower is better");
  }
  for (const StudyRow& row : result.Rows)
  {
    table.Rows.push_back({ NameOf(row) });
    for (size_t c = 0; c < row.Cells.size(); ++c)
    {
      const StudyCell& cell = row.Cells[c];
      PageCell shown(cell.Value, StudyNumber(cell.Value, StudyColumns()[c]));
      shown.Small = IntervalText(cell, StudyColumns()[c]);
      shown.Mark = cell.Best ? CellMark::Best : cell.Tie ? CellMark::Tie : CellMark::None;
      table.Rows.back().push_back(shown);
    }
  }
  page.Section("table", "How to learn from raters who disagree");
  page.Add(table);
  page.Note(Legend() + " " + SeedText(result));
  page.Section("pictures", "Side by side");
  addPictures();
  page.Section("reliability", "Does 70 % mean 70 %?");
  page.Paragraph("On the line, as many raters mark a voxel as the model says. Voxels of the box around all marks" +
    SeedShown(result) +
    ". Rest the pointer on a diagram, "
    "or touch it, to read its values.");
  std::vector<PagePanel> diagrams;
  for (const StudyRow& row : result.Rows)
  {
    diagrams.push_back(
      { ReliabilityDiagram(row.Box, NameOf(row) + (result.Seeds > 1 ? ", seed " + std::to_string(result.FirstSeed) : "")),
        "" });
  }
  page.Add(diagrams, true);
  page.Section("how", "How this was made");
  page.Code(CommandText(result));
  page.List(result.Trained);
}

/// The record of a finished model.
JsonHandle TrainedRecord(const std::string& path)
{
  const std::string text = ReadText(path);
  return JsonHandle(json_loadb(text.data(), text.size(), 0, nullptr));
}

/// What it says of the training.
std::string TrainedLine(const std::string& name, const json_t* record)
{
  const json_t* epochs = json_object_get(record, "epochs");
  const size_t count = json_array_size(epochs);
  const json_t* last = count ? json_array_get(epochs, count - 1) : nullptr;
  const double seconds = json_number_value(json_object_get(last, "seconds"));
  return name + ": best epoch " + std::to_string(json_integer_value(json_object_get(record, "best"))) + " of " +
    std::to_string(json_integer_value(json_object_get(last, "epoch"))) + ", " + TimeText(seconds);
}

void Study::WriteTables()
{
  StudyResult& result = this->Result_;
  std::set<std::string> named; // every strategy leaves out the same cases
  for (const Candidate& run : this->Runs_)
  {
    const JsonHandle record = TrainedRecord(this->File("models", run.Name + ".json"));
    result.Trained.push_back(TrainedLine(run.Name, record.get()));
    for (const LeftOutCase& one : LeftOutFrom(json_object_get(record.get(), "left_out")))
    {
      if (named.insert(one.Id).second)
      {
        result.LeftOut.push_back(one);
      }
    }
  }
  result.Markdown = this->File("", "table.md");
  result.Json = this->File("", "table.json");
  result.Html = this->File("", "report.html");
  if (!this->Processes_.IsFirst())
  {
    return;
  }
  WriteText(result.Markdown, StudyTable(result));
  WriteText(result.Json, JsonOf(result));
  Page page("Which way to learn from raters who disagree?");
  WritePage(page, result, [&]() { this->AddPictures(page); });
  WriteText(result.Html, page.Html());
}

/// What each strategy says about the test cases on which raters differ most.
void Study::AddPictures(Page& page)
{
  page.Note("The most disputed test cases" + SeedShown(this->Result_) +
    ". The stronger the color, the more raters mark the voxel, or are expected to.");
  page.Legend("Share of raters", ProbabilityLegend());
  std::vector<size_t> order(this->Test_.size());
  std::iota(order.begin(), order.end(), size_t{ 0 });
  std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) { return this->Disputed_[a] > this->Disputed_[b]; });
  order.resize(std::min<size_t>(order.size(), 3));
  for (const size_t i : order)
  {
    const Case& one = this->Test_[i];
    this->Show(1, "drawing " + one.Id);
    this->Workspace_.LoadCase(one, this->List_.Raters);
    std::vector<std::pair<std::string, Volume>> predictions;
    for (const Candidate& run : this->Runs_)
    {
      if (run.Name == run.Strategy) // the first seed
      {
        predictions.emplace_back(run.Strategy, ReadPrediction(this->LevelsFile(run.Name, one.Id)));
      }
    }
    AddComparison(page, this->Workspace_, one.Id, predictions);
  }
}

StudyResult Study::Run()
{
  this->CheckList();
  // The core's own reports are of single images: they only ask whether to stop.
  this->Stage_ = "reading test cases";
  this->Workspace_.SetProgress(
    [this](double, const char*) { return this->Options_.Progress && this->Options_.Progress(this->Fraction_, this->Stage_); });
  this->CheckTestCases();
  for (const char* folder : { "models", "predictions" })
  {
    MakeFolder(this->File(folder, ""));
  }
  if (this->Processes_.IsFirst())
  {
    this->CheckProtocol();
  }
  this->Result_.Raters = this->List_.Raters;
  this->Result_.TestCases = this->Test_.size();
  this->Result_.Seeds = this->Options_.Seeds;
  this->Result_.Choices = this->Options_.Choices;
  this->Result_.Data = this->Options_.Data;
  this->Result_.Command = this->Options_.Command;
  this->Result_.FirstSeed = this->Options_.Training.Seed;
  for (size_t number = 0; number < this->Runs_.size(); ++number)
  {
    this->Train(this->Runs_[number], number);
    this->PredictTest(this->Runs_[number], number);
  }
  this->Processes_.WaitForAll(); // models and their records are written
  this->Judge();
  this->WriteTables();
  return this->Result_;
}

} // namespace

std::string StudyTable(const StudyResult& result)
{
  const auto table = [&result](const std::function<std::string(const StudyCell&, const StudyColumn&)>& show) {
    std::string head = "| strategy |", line = "|---|", body;
    for (const StudyColumn& column : StudyColumns())
    {
      head += std::string(" ") + column.Name + " |";
      line += "---|";
    }
    for (const StudyRow& row : result.Rows)
    {
      body += "| " + NameOf(row) + " |";
      for (size_t c = 0; c < row.Cells.size(); ++c)
      {
        body += " " + show(row.Cells[c], StudyColumns()[c]) + " |";
      }
      body += "\n";
    }
    return head + "\n" + line + "\n" + body + "\n";
  };
  std::string text = "# Study\n\n`" + CommandText(result) + "`\n\n" +
    Counted(static_cast<int64_t>(result.Raters.size()), "rater") + ", " +
    Counted(static_cast<int64_t>(result.TestCases), "test case") + ". For research, not for clinical use.\n\n";
  text += table([](const StudyCell& cell, const StudyColumn& column) {
    const std::string value = StudyNumber(cell.Value, column), interval = IntervalText(cell, column);
    return (cell.Best ? "**" + value + "**" : (cell.Tie ? "≈ " : "") + value) + (interval.empty() ? "" : "<br>" + interval);
  });
  text += Legend() + " " + SeedText(result) +
    "\n\nThe paper's bootstrap (mean ± deviation of ten draws of 60 % of the test cases):\n\n";
  text += table([](const StudyCell& cell, const StudyColumn& column) {
    return StudyNumber(cell.PaperMean, column) + " ± " + StudyNumber(cell.PaperStd, column);
  });
  for (const std::string& trained : result.Trained)
  {
    text += "- " + trained + "\n";
  }
  return text;
}

std::vector<std::string> StudyFiles(const StudyOptions& options, const DataList& list)
{
  const fs::path folder = options.Folder;
  std::vector<std::string> files;
  for (const char* name : { "study.json", "table.md", "table.json", "report.html" })
  {
    files.push_back((folder / name).string());
  }
  const std::vector<std::string> names = options.Strategies.empty() ? PaperStrategies() : options.Strategies;
  for (const std::string& strategy :
    std::set<std::string>(names.begin(), names.end())) // the study refuses one that is named twice
  {
    for (int seed = 0; seed < options.Seeds; ++seed)
    {
      const std::string name = RunName(strategy, seed);
      files.push_back((folder / "models" / (name + ".json")).string());
      files.push_back((folder / "models" / (name + ".safetensors")).string());
      for (const Case& one : list.Cases)
      {
        if (one.Split == "test")
        {
          files.push_back((folder / "predictions" / name / (one.Id + "_levels.nrrd")).string());
        }
      }
    }
  }
  return files;
}

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
  return Study(options).Run();
}

} // namespace rcn
