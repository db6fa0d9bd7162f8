// SPDX-License-Identifier: Apache-2.0
#include "vtkSlicerRaterConsensusLogic.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>

#include <vtkGeneralTransform.h>
#include <vtkImageData.h>
#include <vtkIntArray.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkTable.h>

#include <vtkMRMLColorTableNode.h>
#include <vtkMRMLCrosshairNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationDisplayNode.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSliceNode.h>
#include <vtkMRMLTableNode.h>
#include <vtkMRMLTransformNode.h>

#include "rcn/rcn_color.h"
#include "rcnModelRecord.h"
#include "rcnMrmlCase.h"
#include "rcnMrmlResults.h"
#include "rcnMrmlText.h"
#include "rcnMrmlTraining.h"
#include "rcnPhantom.h"
#include "rcnPrediction.h"
#include "rcnRecalibration.h"
#include "rcnReportPatient.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"

using namespace rcn::mrml;

namespace
{

const char* const ExampleAttribute = "RaterConsensus.Example";

/// Where the correction of a map came from that has no file of its own.
const char* const InTheModel = "in the model";

/// What a training wrote, until somebody is told about it: removed when its result is dropped, because the panel has gone or
/// the scene was closed meanwhile.
struct UnclaimedTraining
{
  explicit UnclaimedTraining(const std::string& model) : Model(model) {}
  UnclaimedTraining(const UnclaimedTraining&) = delete;
  UnclaimedTraining& operator=(const UnclaimedTraining&) = delete;
  ~UnclaimedTraining()
  {
    if (!this->Claimed)
    {
      rcn::RemoveTraining(this->Model);
    }
  }
  std::string Model;
  bool Claimed = false;
};

} // namespace

class vtkSlicerRaterConsensusLogic::Internals
{
public:
  /// Held by works too, which may outlive the logic.
  struct State
  {
    std::atomic<bool> Cancel{ false };
    std::atomic<int> Scene{ 0 }; ///< counts scenes: node ids come back in the next one
  };
  std::shared_ptr<State> Shared = std::make_shared<State>();
  std::string Remarks;
  std::map<std::string, Results> ByNode;
  std::map<std::string, KeptLevels> Levels; ///< by node, too
  bool CrosshairIsOurs = false;             ///< shown for a disputed region

  /// What every work needs, by value: it may run when the node is long gone.
  class Job;
  static Work Agree(const Job& job, Node* node);
  static Work Fuse(const Job& job, Node* node);
  static Work Predict(const Job& job, Node* node);
  static Work Judge(const Job& job, Node* node, bool fit);
  static Work Report(const Job& job, Node* node, const std::string& path, bool anonymous);
  static Work Train(const Job& job, Node* node);
};

class vtkSlicerRaterConsensusLogic::Internals::Job
{
public:
  Job(vtkSlicerRaterConsensusLogic* logic, Node* node)
    : Logic_(logic),
      State_(logic->Private->Shared),
      Scene_(State_->Scene),
      Id_(node->GetID()),
      Input_(std::make_shared<Input>())
  {
  }

  void SetCase(Input input) { *this->Input_ = std::move(input); }
  const Input& Case() const { return *this->Input_; }

  /// A case may do without its image: training can, and says where the model is when its parameters have gone.
  void SetModelFile(const std::string& path) { this->ModelFile_ = path; }

  rcn::Workspace::ProgressFunction Progress(const Monitor& monitor) const
  {
    return [state = this->State_, report = monitor.Progress](
             double fraction, const char* stage) { return (report && report(fraction, stage)) || state->Cancel; };
  }

  std::shared_ptr<rcn::Workspace> Open(const Monitor& monitor) const
  {
    const std::shared_ptr<rcn::Workspace> workspace = rcn::mrml::Open(this->Case());
    workspace->SetProgress(this->Progress(monitor));
    return workspace;
  }

  /// False when the scene was closed, or the logic has gone, while this was computed.
  bool IsOpen() const { return this->State_->Scene == this->Scene_; }

  /// The node to publish to; throws when it has gone. On the main thread, as what follows.
  Node* Target() const
  {
    if (!this->IsOpen())
    {
      throw rcn::Error(RCN_ECANCELLED, vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The scene was closed."));
    }
    const std::string kept = this->ModelFile_.empty()
      ? ""
      : " " + Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The new model is in %1."), this->ModelFile_);
    Node* const found = Node::SafeDownCast(this->Logic_->GetMRMLScene()->GetNodeByID(this->Id_));
    if (!found || (this->ModelFile_.empty() && !ImageOf(found)))
    {
      throw rcn::Error(RCN_EDATA,
        vtkMRMLTr("vtkSlicerRaterConsensusLogic",
          "The image or the parameters were removed during the computation; nothing was changed.") +
          kept);
    }
    return found;
  }

  /// For the line under the button that was pressed.
  void Remember(const std::vector<std::string>& remarks) const
  {
    std::string& all = this->Logic_->Private->Remarks;
    for (const std::string& remark : remarks)
    {
      all += (all.empty() || remark.empty() ? "" : "\n") + remark;
    }
  }

  void Keep(KeptLevels levels) const { this->Logic_->Private->Levels[this->Id_] = std::move(levels); }
  KeptLevels Kept() const { return this->Logic_->Private->Levels[this->Id_]; }
  Results& Found() const { return this->Logic_->Private->ByNode[this->Id_]; }

private:
  vtkSlicerRaterConsensusLogic* Logic_;
  std::shared_ptr<State> State_;
  int Scene_;
  std::string Id_, ModelFile_;
  std::shared_ptr<Input> Input_;
};

vtkStandardNewMacro(vtkSlicerRaterConsensusLogic);

vtkSlicerRaterConsensusLogic::vtkSlicerRaterConsensusLogic() : Private(new Internals) {}

// Works that still run hold the shared state: they are told to stop, and that their scene has gone.
vtkSlicerRaterConsensusLogic::~vtkSlicerRaterConsensusLogic()
{
  this->Cancel();
  ++this->Private->Shared->Scene;
}

void vtkSlicerRaterConsensusLogic::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Remarks: " << this->Private->Remarks << "\n";
}

void vtkSlicerRaterConsensusLogic::SetMRMLSceneInternal(vtkMRMLScene* scene)
{
  vtkNew<vtkIntArray> events;
  events->InsertNextValue(vtkMRMLScene::NodeRemovedEvent);
  events->InsertNextValue(vtkMRMLScene::StartCloseEvent);
  this->SetAndObserveMRMLSceneEventsInternal(scene, events);
}

void vtkSlicerRaterConsensusLogic::RegisterNodes()
{
  if (this->GetMRMLScene())
  {
    this->GetMRMLScene()->RegisterNodeClass(vtkSmartPointer<vtkMRMLRaterConsensusNode>::New());
  }
}

void vtkSlicerRaterConsensusLogic::OnMRMLSceneStartClose()
{
  this->Cancel();
  ++this->Private->Shared->Scene;
  for (const auto& one : this->Private->ByNode) // nobody can keep it any more
  {
    if (one.second.Training)
    {
      rcn::RemoveTraining(one.second.Training->Model);
    }
  }
  this->Private->ByNode.clear();
  this->Private->Levels.clear();
}

void vtkSlicerRaterConsensusLogic::OnMRMLSceneNodeRemoved(vtkMRMLNode* node)
{
  if (Node::SafeDownCast(node) && node->GetID())
  {
    this->Private->ByNode.erase(node->GetID());
    this->Private->Levels.erase(node->GetID());
  }
}

void vtkSlicerRaterConsensusLogic::Cancel()
{
  this->Private->Shared->Cancel = true;
}

std::string vtkSlicerRaterConsensusLogic::GetRemarks() const
{
  return this->Private->Remarks;
}

// What was computed in this session has all digits and pictures; what a scene brings along is what its tables hold.
const vtkSlicerRaterConsensusLogic::Results& vtkSlicerRaterConsensusLogic::GetResults(Node* node) const
{
  static const Results none;
  if (!node || !node->GetID() || !node->GetScene())
  {
    return none;
  }
  // After a scene was loaded: from its tables.
  Results& results = this->Private->ByNode[node->GetID()];
  if (!results.Agreement)
  {
    results.Agreement = StoredAgreement(node);
  }
  if (!results.Volumes)
  {
    results.Volumes = StoredVolumes(node);
  }
  if (!results.Evaluation)
  {
    results.Evaluation = StoredEvaluation(node, false);
    results.EvaluationBefore = results.Evaluation ? StoredEvaluation(node, true) : nullptr;
  }
  return results;
}

vtkMRMLColorTableNode* vtkSlicerRaterConsensusLogic::GetColorNode()
{
  return ConsensusColors(this->GetMRMLScene());
}

namespace
{

/// Others are about an image that nobody may have outlined.
bool NeedsRaters(int action)
{
  return action != vtkSlicerRaterConsensusLogic::PredictAction && action != vtkSlicerRaterConsensusLogic::ReportAction;
}

std::string CheckPredicting(Node* node)
{
  CheckReadout(node->GetReadout());
  if (node->GetModelFile().empty())
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose a model file.");
  }
  if (!IsThere(node->GetModelFile()))
  {
    return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The model file %1 does not exist."), node->GetModelFile());
  }
  if (node->GetCorrected() && node->GetRecalibrationFile().empty())
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose the file of the correction, or predict without one.");
  }
  if (node->GetCorrected() && !IsThere(node->GetRecalibrationFile()))
  {
    return Filled(
      vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The correction %1 does not exist; fit it first, or predict without one."),
      node->GetRecalibrationFile());
  }
  return "";
}

std::string CheckReporting(Node* node)
{
  const std::string sentence = CheckPredicting(node);
  return sentence.empty() && node->GetCorrected()
    ? vtkMRMLTr("vtkSlicerRaterConsensusLogic",
        "The report uses the model without a separate correction; store the correction in the model, or leave it out.")
    : sentence;
}

std::string CheckJudging(Node* node)
{
  vtkMRMLScalarVolumeNode* const map = JudgedMap(node);
  if (!map || !map->GetImageData())
  {
    return vtkMRMLTr(
      "vtkSlicerRaterConsensusLogic", "There is no probability to evaluate; make a consensus or apply a model first.");
  }
  JudgingOptions(node);
  return "";
}

std::string CheckRecalibrating(Node* node)
{
  const Provenance made = ProvenanceOf(node->GetNodeReference(Node::GetProbabilityRole()));
  if (made.Readout.empty())
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "There is no prediction to correct; apply a model first.");
  }
  // Correcting twice would fit the second correction to what the first one left.
  if (made.Correction == InTheModel)
  {
    return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic",
                    "The probability is already corrected (%1); evaluate it without another correction, or apply a model "
                    "without a correction."),
      made.Correction);
  }
  if (!made.Correction.empty())
  {
    return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic",
                    "The probability is already corrected (%1); apply the model without the correction first."),
      made.Correction);
  }
  if (RecalibrationMethod(node) == RCN_RECALIB_TEMPERATURE && LevelNodes(node).empty())
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic",
      "A temperature is fitted to the levels of a prediction for as many raters as there are here. Apply the model "
      "again, or choose another correction.");
  }
  if (node->GetRecalibrationFile().empty())
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose the file to store the correction in.");
  }
  return "";
}

std::string CheckLearning(Node* node)
{
  const std::string sentence = CheckTrainedModelFile(node->GetTrainedModelFile());
  if (!sentence.empty())
  {
    return sentence;
  }
  if (!node->GetModelFile().empty() && !IsThere(node->GetModelFile()))
  {
    return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic",
                    "The model file %1 does not exist; choose another one, or none to train a new model."),
      node->GetModelFile());
  }
  RegionOf(node);
  if (!node->GetDataListFile().empty())
  {
    return IsThere(node->GetDataListFile())
      ? ""
      : Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The data list %1 does not exist."), node->GetDataListFile());
  }
  const std::vector<Node*> cases = TrainingCases(node);
  for (Node* const one : cases)
  {
    const std::string unfit = CheckCase(one, true);
    if (!unfit.empty())
    {
      return NameOf(one) + ": " + unfit;
    }
  }
  if (cases.size() < 2)
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic",
      "Training needs at least two cases: one for training and one for validation. Choose a data list, or set up "
      "a second case in this scene.");
  }
  return "";
}

} // namespace

std::string vtkSlicerRaterConsensusLogic::Check(int action, Node* node)
{
  if (!node || !node->GetScene())
  {
    return action == TrainAction
      ? vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose the file to store the new model in.")
      : vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose the image that the raters looked at, or load the example.");
  }
  try
  {
    if (action == TrainAction)
    {
      const auto found = this->Private->ByNode.find(node->GetID());
      return found != this->Private->ByNode.end() && found->second.Training
        ? vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Keep or discard the trained model first.")
        : CheckLearning(node);
    }
    std::string sentence = CheckCase(node, NeedsRaters(action));
    if (!sentence.empty())
    {
      return sentence;
    }
    switch (action)
    {
      case FuseAction: FusionOptions(node); return "";
      case PredictAction: return CheckPredicting(node);
      case ReportAction: return CheckReporting(node);
      case EvaluateAction: return CheckJudging(node);
      case RecalibrateAction: sentence = CheckRecalibrating(node); return sentence.empty() ? CheckJudging(node) : sentence;
      default: return "";
    }
  }
  catch (const rcn::Error& error)
  {
    return error.what();
  }
}

namespace
{

/// What a person can do about an error, in words of the panel, after a space.
std::string WayOut(const std::string& key)
{
  // Keys of Error, in alphabetical order. Where there is no advice, the panel has no control for it, or Check() says it before.
  const std::map<std::string, std::string> ways = {
    { "corrected", "" },
    { "exists", "" },
    { "exists-resumable", "" },
    { "fitted-cases", "" },
    { "geometry", vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Switch on resampling, or draw on the image itself.") },
    { "input", "" },
    { "network", "" },
    { "output", "" },
    { "predictions", "" },
    { "raters", "" },
    { "readout", "" },
    { "recalibration", vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Apply the model without it, or fit it again.") },
    { "reference", "" },
    { "resume", "" },
    { "scale", "" },
    { "split", "" },
    { "structure", "" },
  };
  const auto found = ways.find(key);
  return found == ways.end() || found->second.empty() ? "" : " " + found->second;
}

/// Does it; whoever catches an error sees the way out, too.
template <class T> auto WithWayOut(const T& step) -> decltype(step())
{
  try
  {
    return step();
  }
  catch (const rcn::Error& error)
  {
    throw rcn::Error(error.Status(), error.what() + WayOut(error.Key()));
  }
}

} // namespace

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Prepare(
  int action, Node* node, const std::string& path, bool anonymous)
{
  const Work work = WithWayOut([&] { return this->Begin(action, node, path, anonymous); });
  return [work](const Monitor& monitor) { return WithWayOut([&] { return work(monitor); }); };
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Begin(
  int action, Node* node, const std::string& path, bool anonymous)
{
  const std::string sentence = this->Check(action, node);
  if (!sentence.empty())
  {
    throw rcn::Error(RCN_EINVALID, sentence);
  }
  this->Private->Shared->Cancel = false;
  this->Private->Remarks.clear();
  Internals::Job job(this, node);
  if (action == TrainAction)
  {
    return Internals::Train(job, node);
  }
  job.SetCase(Gather(node, NeedsRaters(action)));
  switch (action)
  {
    case AgreementAction: return Internals::Agree(job, node);
    case FuseAction: return Internals::Fuse(job, node);
    case PredictAction: return Internals::Predict(job, node);
    case ReportAction: return Internals::Report(job, node, path, anonymous);
    default: return Internals::Judge(job, node, action == RecalibrateAction);
  }
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Internals::Agree(const Job& job, Node* node)
{
  return [job, surfaces = node->GetSurfaces()](const Monitor& monitor) -> Publish {
    struct Held
    {
      std::shared_ptr<rcn::Workspace> Workspace; // owns what the report's figures came from
      rcn::AgreementReport Report;
    };
    auto held = std::make_shared<Held>();
    held->Workspace = job.Open(monitor);
    held->Report = held->Workspace->Agree(surfaces);
    held->Workspace->SetProgress({});
    return [=] {
      PublishAgreement(job.Target(), held->Report, held->Workspace->RaterNames());
      job.Remember(held->Workspace->Remarks());
      job.Found().Agreement = { held, &held->Report };
    };
  };
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Internals::Fuse(const Job& job, Node* node)
{
  // Every work has the same three steps: read the node here, on the main thread; compute on any thread from copies; publish on
  // the main thread again, if the scene and the node are still there.
  return [job, options = FusionOptions(node)](const Monitor& monitor) -> Publish {
    const std::shared_ptr<rcn::Workspace> workspace = job.Open(monitor);
    const rcn::FusionReport report = workspace->Fuse(options);
    const std::vector<rcn::Volume> masks = options.method == RCN_ORC ? AtLeastMasks(*workspace) : std::vector<rcn::Volume>();
    const int raters = static_cast<int>(workspace->RaterNames().size());
    const std::vector<std::string> remarks = workspace->Remarks();
    return [=] {
      PublishFusion(job.Target(), report, options.method, raters, masks);
      job.Remember(remarks);
    };
  };
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Internals::Predict(const Job& job, Node* node)
{
  rcn::PredictionOptions options;
  options.Readout = node->GetReadout();
  options.Threshold = node->GetThreshold();
  const std::string file = node->GetCorrected() ? node->GetRecalibrationFile() : "";
  return [=, path = node->GetModelFile(), structure = node->GetStructure()](const Monitor& monitor) -> Publish {
    rcn::Workspace workspace(job.Case().Options); // for its context
    workspace.SetProgress(job.Progress(monitor));
    const rcn::Model model(workspace.Context(), path);
    PredictionNodes out;
    rcn::PredictionOptions own = options;
    if (model.HasSeveralStructures()) // as if the one were the only one
    {
      own.Structure = structure.empty() ? model.Info().Structures.front().Name : structure;
      out.Structure = own.Structure;
    }
    rcn::Recalibration correction;
    if (!file.empty())
    {
      correction = rcn::ReadRecalibration(file);
      own.Correction = &correction;
      out.Made.Correction = file;
    }
    else if (model.Info().Correction)
    {
      correction = *model.Info().Correction;
      out.Made.Correction = InTheModel;
    }
    rcn::CheckPrediction(model, own);
    CheckFinite(job.Case().Image, job.Case().ImageName);
    out.Maps = rcn::Predict(model, workspace.Context(), { job.Case().Image }, job.Case().ImageName, own);
    out.Made.Readout = out.Maps.Readout;
    out.Made.FittedHere = std::find(correction.Cases.begin(), correction.Cases.end(), job.Case().Id) != correction.Cases.end();
    if (out.Maps.Levels.Data())
    {
      out.Levels = rcn::ComponentsOf(out.Maps.Levels);
      out.LevelMasks = rcn::LevelMasks(workspace.Context(), out.Maps.Levels, own.Threshold);
    }
    return [=] {
      job.Keep(PublishPrediction(job.Target(), out));
      job.Found().Volumes = std::make_shared<const rcn::PredictedVolumes>(out.Maps.Volumes);
      job.Remember(out.Maps.Remarks);
    };
  };
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Internals::Report(
  const Job& job, Node* node, const std::string& path, bool anonymous)
{
  rcn::PatientPageOptions options;
  options.Output = path;
  options.One = rcn::CaseOf(job.Case().Id, { job.Case().Image }, job.Case().ImageName, {});
  options.Model = node->GetModelFile();
  options.Readout = node->GetReadout();
  options.Anonymous = anonymous;
  options.Workspace = job.Case().Options;
  return [=](const Monitor& monitor) -> Publish {
    CheckFinite(job.Case().Image, job.Case().ImageName);
    rcn::PatientPageOptions own = options;
    std::vector<std::string> remarks;
    own.Progress = [report = job.Progress(monitor)](
                     double fraction, const std::string& stage) { return report(fraction, stage.c_str()); };
    own.Remark = [&](const std::string& sentence) { remarks.push_back(sentence); };
    rcn::WritePatientPage(own);
    return [=] { // nothing goes into the scene
      if (job.IsOpen())
      {
        job.Remember(remarks);
      }
    };
  };
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Internals::Judge(const Job& job, Node* node, bool fit)
{
  rcn::EvaluationOptions options = JudgingOptions(node);
  const rcn_recalib_method method = fit ? RecalibrationMethod(node) : RCN_RECALIB_PLATT;
  const bool otherRaters = node->GetNumberOfNodeReferences(Node::GetLevelRole()) > 0 && LevelNodes(node).empty();
  return [=, judged = GatherJudged(node, job.Kept()), file = node->GetRecalibrationFile()](const Monitor& monitor) -> Publish {
    const std::shared_ptr<rcn::Workspace> workspace = job.Open(monitor);
    // A volume for each level in the scene, all levels of a voxel together in the core.
    rcn::Volume map = judged.Maps.size() > 1 ? rcn::Interleave(judged.Maps) : judged.Maps.front();
    if (judged.Made.Readout.empty()) // no prediction, but the consensus of these raters
    {
      map.SetNote(rcn::FusionNote("consensus", workspace->RaterNames()));
    }
    const rcn::JudgeInput input = rcn::CaseInWorkspace(*workspace, job.Case().Id, rcn::PredictionInMemory(map, judged.Name));
    std::shared_ptr<const rcn::EvaluationReport> report, before;
    std::vector<std::string> remarks = workspace->Remarks();
    if (otherRaters)
    {
      remarks.push_back(vtkMRMLTr(
        "vtkSlicerRaterConsensusLogic", "The levels of the prediction are for other raters, so its probability is evaluated."));
    }
    if (fit)
    {
      const rcn::RecalibrationResult result = rcn::Recalibrate(*workspace, input, options, method);
      if (!result.Helps)
      {
        throw rcn::Error(RCN_EDATA, result.Sentence + " " + vtkMRMLTr("vtkSlicerRaterConsensusLogic", "It was not stored."));
      }
      rcn::Recalibration correction = result.Correction;
      // Levels are corrected as a whole; one probability was made by a readout, and the correction is for that.
      if (map.ChannelCount() == 1)
      {
        rcn::ParseReadout(correction.Readout, correction.AtLeast, judged.Made.Readout);
      }
      rcn::EvaluationReport after = result.After;
      // Said beside the figures, which are too good to be true on the case that was fitted to.
      after.FittedHere = true;
      before = std::make_shared<const rcn::EvaluationReport>(result.Before);
      report = std::make_shared<const rcn::EvaluationReport>(after);
      rcn::WriteRecalibration(file, correction);
      remarks.push_back(Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Fitted to this case: %1. %2"),
        rcn::CorrectionInWords(correction.Correction), result.Sentence));
    }
    else
    {
      rcn::EvaluationReport found = rcn::JudgeCases(*workspace, input, { { 0, options } }).Evaluations.front()->Report();
      found.FittedHere = judged.Made.FittedHere;
      report = std::make_shared<const rcn::EvaluationReport>(found);
    }
    const std::vector<std::string> about = rcn::RemarksInWords(*report);
    remarks.insert(remarks.end(), about.begin(), about.end());
    remarks.push_back(rcn::WorstBinInWords(*report));
    const std::vector<std::string> raters = workspace->RaterNames();
    return [=] {
      PublishReliability(job.Target(), *report, before.get(), raters);
      job.Remember(remarks);
      job.Found().Evaluation = report;
      job.Found().EvaluationBefore = before;
    };
  };
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Internals::Train(const Job& job, Node* node)
{
  Job own = job;
  rcn::TrainingOptions options;
  options.Output = node->GetTrainedModelFile();
  options.Init = node->GetModelFile();
  options.Minutes = node->GetTrainingMinutes();
  options.Region = RegionOf(node);
  options.Bins = node->GetBins();
  own.SetModelFile(options.Output);
  options.Strategy = node->GetStrategy();
  if (!node->GetNetwork().empty() && node->GetModelFile().empty())
  {
    options.HasNet = true;
    if (!rcn::Parse(options.Net.arch, node->GetNetwork()))
    {
      throw rcn::Error(RCN_EINVALID, std::string("Unknown network ") + node->GetNetwork() + ".");
    }
  }
  if (node->GetDataListFile().empty())
  {
    options.Workspace.AbsentLabelIsError = false; // a rater who marked nothing has answered, too
    std::vector<Input> inputs;
    for (Node* const one : TrainingCases(node))
    {
      inputs.push_back(Gather(one, true));
    }
    options.List = CasesOf(inputs);
  }
  else
  {
    options.List = rcn::ReadDataList(node->GetDataListFile());
  }
  const std::string unfit = rcn::CheckTraining(options);
  if (!unfit.empty())
  {
    throw rcn::Error(RCN_EINVALID, unfit);
  }
  return [=](const Monitor& monitor) -> Publish {
    rcn::TrainingOptions mine = options;
    std::vector<std::string> remarks;
    const auto report = own.Progress(monitor);
    mine.Progress = [&](const rcn::TrainingProgress& now) {
      if (monitor.Training)
      {
        monitor.Training(now);
      }
      return report(now.Fraction, now.Stage);
    };
    mine.EpochDone = monitor.Epoch;
    mine.Remark = [&](const std::string& remark) { remarks.push_back(remark); };
    const auto result = std::make_shared<const rcn::TrainingResult>(Trained(mine));
    // From here on the files go if nobody gets to decide about them.
    const auto files = std::make_shared<UnclaimedTraining>(result->Model);
    const bool judged = result->After.Cases > 0;
    remarks.push_back(result->Interrupted
        ? Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic",
                   "Training was stopped early: the new model is the best one so far, that of epoch %1."),
            std::to_string(result->Best))
        : judged ? rcn::WorstBinInWords(result->After)
                 : vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The new model could not be evaluated."));
    return [=] {
      files->Claimed = own.IsOpen(); // a person without parameters is told where the model is
      Node* const target = own.Target();
      if (judged)
      {
        PublishReliability(target, result->After, result->HasBefore ? &result->Before : nullptr, result->Raters);
      }
      own.Remember(remarks);
      own.Found().Training = result;
    };
  };
}

namespace
{

/// Does it; the sentence of what went wrong, empty: nothing.
template <class T> std::string SentenceOf(const T& step)
{
  try
  {
    step();
    return "";
  }
  catch (const std::bad_alloc&)
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "There is not enough memory for this.");
  }
  catch (const std::exception& error)
  {
    return rcn::OneLine(error.what());
  }
}

} // namespace

std::string vtkSlicerRaterConsensusLogic::Do(int action, Node* node, const std::string& path, bool anonymous)
{
  return SentenceOf([&] { this->Prepare(action, node, path, anonymous)(Monitor())(); });
}

std::string vtkSlicerRaterConsensusLogic::Report(Node* node, const std::string& path, bool anonymous)
{
  return this->Do(ReportAction, node, path, anonymous);
}

std::string vtkSlicerRaterConsensusLogic::DescribeModel(const std::string& modelFile)
{
  std::string text;
  const std::string sentence = SentenceOf([&] {
    const rcn::Workspace workspace; // for its context
    for (const auto& row : rcn::RecordRows(rcn::RecordOf(workspace.Context(), rcn::Model(workspace.Context(), modelFile))))
    {
      text += (text.empty() ? "" : "\n") + row.first + ": " + row.second;
    }
  });
  return sentence.empty() ? text : sentence;
}

std::string vtkSlicerRaterConsensusLogic::GetStructures(const std::string& modelFile)
{
  std::string names;
  const std::string sentence = SentenceOf([&] {
    const rcn::Workspace workspace; // for its context
    const rcn::Model model(workspace.Context(), modelFile);
    for (const rcn::Structure& one : model.Info().Structures)
    {
      names += model.HasSeveralStructures() ? (names.empty() ? "" : "\n") + one.Name : "";
    }
  });
  return sentence.empty() ? names : "";
}

std::string vtkSlicerRaterConsensusLogic::GetStructuresOfRaters(Node* node)
{
  const std::vector<std::string> names = node ? StructuresOf(node) : std::vector<std::string>();
  std::string text;
  for (size_t i = 0; names.size() > 1 && i < names.size(); ++i)
  {
    text += (i ? "\n" : "") + names[i];
  }
  return text;
}

std::string vtkSlicerRaterConsensusLogic::Agreement(Node* node)
{
  return this->Do(AgreementAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Fuse(Node* node)
{
  return this->Do(FuseAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Predict(Node* node)
{
  return this->Do(PredictAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Evaluate(Node* node)
{
  return this->Do(EvaluateAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Recalibrate(Node* node)
{
  return this->Do(RecalibrateAction, node);
}

std::string vtkSlicerRaterConsensusLogic::Train(Node* node)
{
  return this->Do(TrainAction, node);
}

std::string vtkSlicerRaterConsensusLogic::NameNextModel(const std::string& modelFile)
{
  return NextModelFile(modelFile);
}

std::string vtkSlicerRaterConsensusLogic::Keep(Node* node)
{
  const std::shared_ptr<const rcn::TrainingResult> trained = this->GetResults(node).Training;
  if (!trained)
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "There is no trained model to keep.");
  }
  if (!IsThere(trained->Model))
  {
    return Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "%1 no longer exists."), trained->Model);
  }
  this->Private->ByNode[node->GetID()].Training = nullptr;
  const MRMLNodeModifyBlocker blocker(node);
  node->SetModelFile(trained->Model);
  if (!trained->KeptStart)
  {
    node->SetCorrected(false); // the file of a correction belongs to the weights that it was fitted to
  }
  node->SetTrainedModelFile(NextModelFile(trained->Model));
  node->Modified();
  return "";
}

std::string vtkSlicerRaterConsensusLogic::Discard(Node* node)
{
  const std::shared_ptr<const rcn::TrainingResult> trained = this->GetResults(node).Training;
  if (!trained)
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "There is no trained model to discard.");
  }
  const std::string sentence = rcn::RemoveTraining(trained->Model);
  if (!sentence.empty())
  {
    return sentence;
  }
  this->Private->ByNode[node->GetID()].Training = nullptr;
  node->Modified();
  return "";
}

Node* vtkSlicerRaterConsensusLogic::AddExampleCase()
{
  vtkMRMLScene* const scene = this->GetMRMLScene();
  if (!scene)
  {
    return nullptr;
  }
  std::vector<vtkMRMLNode*> nodes;
  scene->GetNodesByClass("vtkMRMLRaterConsensusNode", nodes);
  const auto number = static_cast<int>(
    std::count_if(nodes.begin(), nodes.end(), [](vtkMRMLNode* one) { return one->GetAttribute(ExampleAttribute) != nullptr; }));
  const rcn::Workspace workspace; // for its context
  const rcn::Phantom example = rcn::MakeExample(workspace.Context(), number);
  const std::string name = "Example " + std::to_string(number + 1);
  vtkNew<vtkMatrix4x4> ijkToRas;
  rcn::IjkToRas(ijkToRas, example.Image.Geometry());

  auto* const image = vtkMRMLScalarVolumeNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLScalarVolumeNode", name));
  image->SetIJKToRASMatrix(ijkToRas);
  image->SetAndObserveImageData(rcn::VtkFromVolume(example.Image));
  image->CreateDefaultDisplayNodes();
  auto* const raters =
    vtkMRMLSegmentationNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLSegmentationNode", name + " - raters"));
  rcn::mrml::ShowOutlines(raters);
  raters->SetReferenceImageGeometryParameterFromVolumeNode(image);
  auto* const node =
    Node::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode", "Example case " + std::to_string(number + 1)));
  node->SetAttribute(ExampleAttribute, std::to_string(number).c_str());
  const MRMLNodeModifyBlocker blocker(node);
  node->SetImageNodeID(image->GetID());
  for (size_t r = 0; r < example.Raters.size(); ++r)
  {
    const rcn::RaterMask& rater = example.Raters[r];
    uint8_t rgb[3];
    rcn_color_rater(rgb, static_cast<int>(r));
    AddSegment(raters, rater.Name, rater.Name, rater.Mask, rgb);
    node->AddSegment(rater.Name, raters->GetID(), rater.Name);
  }
  PutIntoFolder(node);
  return node;
}

void vtkSlicerRaterConsensusLogic::ShowResults(Node* node)
{
  if (node && node->GetScene())
  {
    ShowFromThreshold(node);
    ShowLevelsIn3D(node);
  }
}

int vtkSlicerRaterConsensusLogic::GetNumberOfDisputes(Node* node)
{
  auto* const table = node ? vtkMRMLTableNode::SafeDownCast(node->GetNodeReference(Node::GetDisputesRole())) : nullptr;
  return table && table->GetTable() ? static_cast<int>(table->GetTable()->GetNumberOfRows()) : 0;
}

bool vtkSlicerRaterConsensusLogic::ShowDispute(Node* node, int index)
{
  if (index < 0 || index >= this->GetNumberOfDisputes(node))
  {
    return false;
  }
  auto* const table = vtkMRMLTableNode::SafeDownCast(node->GetNodeReference(Node::GetDisputesRole()))->GetTable();
  const auto number = [table, index](const std::string& column) {
    return table->GetColumnByName(column.c_str()) ? table->GetValueByName(index, column.c_str()).ToDouble() : NAN;
  };
  double position[3] = { number("R"), number("A"), number("S") };
  if (std::isnan(position[0] + position[1] + position[2]))
  {
    return false; // not a table of ours any more
  }
  // The table holds places in the image's own coordinates; its transform leads into the world.
  if (vtkMRMLScalarVolumeNode* const image = ImageOf(node))
  {
    double first[3], size[3];
    const char* const axes[3] = { "I", "J", "K" };
    for (int a = 0; a < 3; ++a)
    {
      first[a] = number(std::string("First ") + axes[a]);
      size[a] = number(std::string("Size ") + axes[a]);
    }
    MarkBox(node, first, size);
    vtkNew<vtkGeneralTransform> toWorld;
    vtkMRMLTransformNode::GetTransformBetweenNodes(image->GetParentTransformNode(), nullptr, toWorld);
    toWorld->TransformPoint(position, position);
  }
  std::vector<vtkMRMLNode*> slices;
  this->GetMRMLScene()->GetNodesByClass("vtkMRMLSliceNode", slices);
  for (vtkMRMLNode* const one : slices)
  {
    vtkMRMLSliceNode::SafeDownCast(one)->JumpSliceByCentering(position[0], position[1], position[2]);
  }
  if (auto* const crosshair =
        vtkMRMLCrosshairNode::SafeDownCast(this->GetMRMLScene()->GetFirstNodeByClass("vtkMRMLCrosshairNode")))
  {
    if (crosshair->GetCrosshairMode() == vtkMRMLCrosshairNode::NoCrosshair)
    {
      crosshair->SetCrosshairMode(vtkMRMLCrosshairNode::ShowBasic);
      this->Private->CrosshairIsOurs = true;
    }
    crosshair->SetCrosshairRAS(position);
  }
  return true;
}

void vtkSlicerRaterConsensusLogic::LeaveDispute(Node* node)
{
  vtkMRMLScene* const scene = this->GetMRMLScene();
  if (!scene)
  {
    return;
  }
  if (node)
  {
    UnmarkBox(node);
  }
  auto* const crosshair = vtkMRMLCrosshairNode::SafeDownCast(scene->GetFirstNodeByClass("vtkMRMLCrosshairNode"));
  if (this->Private->CrosshairIsOurs && crosshair)
  {
    crosshair->SetCrosshairMode(vtkMRMLCrosshairNode::NoCrosshair);
  }
  this->Private->CrosshairIsOurs = false;
}
