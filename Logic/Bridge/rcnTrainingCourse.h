// SPDX-License-Identifier: Apache-2.0
/// One training under way. For rcnTraining.cxx and rcnTrainingSetup.cxx; everybody else calls TrainModel().
#ifndef rcnTrainingCourse_h
#define rcnTrainingCourse_h

#include <cmath>

#include "rcn/rcn_file.h"
#include "rcnJson.h"
#include "rcnJudge.h"
#include "rcnModel.h"
#include "rcnProcesses.h"
#include "rcnRecalibration.h"
#include "rcnTraining.h"
#include "rcnTrainingCases.h"
#include "rcnTrainingSplit.h"

namespace rcn
{

/// Of a clock that never goes back.
double SecondsNow();

class Training
{
public:
  explicit Training(const TrainingOptions& options)
    : Options_(options),
      List_(options.List),
      Raters_(options.List.Raters),
      Processes_(Processes::All()),
      Workspace_(options.Workspace),
      Context_(this->Workspace_.Context())
  {
    this->Workspace_.SetProgress([this](double fraction, const char* stage) { return this->OnProgress(fraction, stage); });
  }

  TrainingResult Run();
  TrainingCourse Plan();

private:
  bool IsInPlace() const;
  bool IsStillImproving() const;
  void JudgeLength();
  // rcnTrainingSetup.cxx: cases, network, samples
  void ShowPlan();
  bool ReadHeaders(const TrainingSplit& split);
  void ReadCases();
  void ReadAll(const std::vector<Case>& cases, std::vector<size_t>& numbers, std::vector<std::string>* names, bool inTurns);
  int OwnerOf(size_t index, size_t count, bool inTurns) const;
  bool IsMine(size_t index, size_t count, bool inTurns) const;
  void ShareCases();
  void AdoptBatch();
  JsonHandle CheckpointState() const;
  void ReadInit(int channels);
  void ChooseNetwork();
  void ChooseAxes();
  void ChooseSamples();
  int64_t EpochCases() const;
  int64_t ChooseBatch(double voxels) const;
  void ChooseCourse();
  void ChooseNormalization();
  void MakeNetwork();
  void MakeTraining();
  std::vector<double> LevelShares();
  size_t NumberOf(int64_t index) const;
  static rcn_status GiveCase(rcn_train_case* out, int64_t index, void* payload);
  static void ReadSoon(const int64_t* cases, int64_t count, void* payload);

  // rcnTraining.cxx: the course, and what is kept of it
  double Agree(double at);
  void Forecast(int64_t begun, int64_t step);
  void ShowStep(const rcn_train_report& report, double at, double perStep);
  JsonObject Protocol() const;
  bool ResumeState();
  void SaveCheckpoint();
  class AveragedWeights;
  void SaveBest(bool averaged);
  TrainingEpoch ValidateEpoch();
  void WriteLog() const;
  void FinishEpoch();
  void CompareWithStart();
  void AsStart(const std::function<void()>& judge);
  void CopyStart() const;
  void JudgeBest(bool resumed);
  void JudgeUnlessStopped(bool resumed);
  bool HasSeveralStructures() const { return this->List_.HasStructures(); }
  std::vector<int> JudgedStructures() const;
  std::vector<std::unique_ptr<Evaluation>> JudgeValidation(
    rcn_net* net, const rcn_loss* loss, const float* lossValues, const std::vector<EvaluationOptions>& options);
  TrainingEpoch Validate(rcn_net* net, const rcn_loss* loss, const float* lossValues);
  std::vector<std::unique_ptr<Evaluation>> JudgeValidation(const Model& model, const std::vector<EvaluationOptions>& options);
  EvaluationReport Judge(
    const Model& model, EvaluationOptions options, std::vector<StructureReport>& structures, VolumeScores* volumes = nullptr);
  EvaluationReport JudgeStart();
  EvaluationReport JudgeUncorrected(const Model& best, const std::string& why);
  void StoreVolumes(const VolumeScores& scores);
  EvaluationOptions JudgedOptions(const Model& model);
  RecalibrationResult FitToValidation(const Model& model, const EvaluationOptions& options, rcn_recalib_method method);
  EvaluationReport CorrectBest(const Model& best);
  void TellTemperature(const std::string& sentence, const std::string& figures = "");
  void WarnOfDroppedCorrection();
  CasePrediction PredictCase(rcn_net* net, const rcn_loss* loss, const float* lossValues, LoadedCase& one);
  void Loop();
  void Remark(const std::string& sentence) const;
  void Warn(const std::string& sentence) const;
  void LeaveOut(const std::string& id, const std::string& sentence);
  bool OnProgress(double fraction, const char* stage);
  double SecondsTrained() const;

  const TrainingOptions& Options_;
  const DataList& List_;
  const std::vector<std::string>& Raters_;
  Processes& Processes_;
  Workspace Workspace_;
  rcn_context* Context_;
  std::unique_ptr<CaseStore> Store_;
  std::vector<size_t> New_, Old_, Validation_; // numbers in the store
  std::shared_ptr<rcn_file_lock> Lock_;        // of the first process
  std::unique_ptr<Model> Init_;                // a whole model to go on from
  bool InitIsEncoder_ = false;
  bool InitHasOtherOutputs_ = false; // all of it but the last layer is a start
  rcn_net_options Net_ = RCN_NET_OPTIONS_INIT;
  rcn_train_options Train_ = RCN_TRAIN_OPTIONS_INIT;
  rcn_normalize Normalize_ = RCN_NORMALIZE_INIT;
  std::string Axes_;               // of volumes, see rcn_orient.h; empty: there are none
  double PixelSize_[2] = { 0, 0 }; // of slices
  std::string StrategyName_;
  int Epochs_ = 0, Patience_ = 0;           // as told, or chosen from the data
  int EarliestEnd_ = 0;                     // before this epoch, patience ends nothing
  int64_t LeastSteps_ = 0, UsualSteps_ = 0; // of a course that nobody chose
  bool Slices_ = false;                     // of volumes, though nobody asked for them
  bool BrierSaid_ = false;
  double PassSteps_ = 0; // that see every case once
  TrainingHandle<rcn_net> Network_;
  TrainingHandle<rcn_train> Trainer_;
  std::string CaseError_; // of GiveCase
  rcn_status CaseStatus_ = RCN_OK;

  TrainingResult Result_;
  double BestRps_ = INFINITY;
  int SinceBest_ = 0;
  bool Finished_ = false;
  bool HasCheckpoint_ = false; // of this training
  bool LabelsSaid_ = false;
  TrainingEpoch Pending_; // of the epoch under way
  double SecondsBefore_ = 0, Start_ = 0, LastCheckpoint_ = 0, ValidationSeconds_ = 0;

  // what OnProgress() shows
  enum class Doing
  {
    Reading,
    Stepping,
    Validating
  } Doing_ = Doing::Reading;
  bool StopAsked_ = false, Stop_ = false; // of this process; of all of them
  TrainingProgress Progress_;
};

} // namespace rcn

#endif
