#include "vtkSlicerRaterConsensusLogic.h"

#include <algorithm>
#include <atomic>
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

#include "rcn/rcn_picture.h"
#include "rcnMrmlCase.h"
#include "rcnMrmlResults.h"
#include "rcnMrmlTraining.h"
#include "rcnPhantom.h"
#include "rcnPrediction.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace fs = std::filesystem;
using namespace rcn::mrml;

namespace
{

const char* const ExampleAttribute = "RaterConsensus.Example";

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
};

vtkStandardNewMacro(vtkSlicerRaterConsensusLogic);

vtkSlicerRaterConsensusLogic::vtkSlicerRaterConsensusLogic() : Private(new Internals) {}

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
  this->Private->ByNode.clear();
}

void vtkSlicerRaterConsensusLogic::OnMRMLSceneNodeRemoved(vtkMRMLNode* node)
{
  if (Node::SafeDownCast(node) && node->GetID())
  {
    this->Private->ByNode.erase(node->GetID());
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

const vtkSlicerRaterConsensusLogic::Results& vtkSlicerRaterConsensusLogic::GetResults(Node* node) const
{
  static const Results none;
  const auto found = node && node->GetID() ? this->Private->ByNode.find(node->GetID()) : this->Private->ByNode.end();
  return found == this->Private->ByNode.end() ? none : found->second;
}

vtkMRMLColorTableNode* vtkSlicerRaterConsensusLogic::GetColorNode()
{
  return ConsensusColors(this->GetMRMLScene());
}

std::string vtkSlicerRaterConsensusLogic::Check(int action, Node* node)
{
  if (!node || !node->GetScene())
  {
    return "Choose or create a set of parameters.";
  }
  const bool raters = action != PredictAction && !(action == TrainAction && !node->GetDataListFile().empty());
  std::string sentence =
    action == TrainAction && !node->GetDataListFile().empty() ? std::string() : CheckCase(node, raters);
  if (!sentence.empty())
  {
    return sentence;
  }
  try
  {
    switch (action)
    {
      case FuseAction:
        FusionOptions(node);
        break;
      case PredictAction:
        if (node->GetModelFile().empty())
        {
          return "Choose a model file.";
        }
        if (!fs::exists(node->GetModelFile()))
        {
          return "The model file " + node->GetModelFile() + " is not there.";
        }
        break;
      case EvaluateAction:
      case RecalibrateAction:
        if (!JudgedMap(node) || !JudgedMap(node)->GetImageData())
        {
          return "There is no probability to judge yet: make a consensus or apply a model first.";
        }
        JudgingOptions(node);
        if (action == RecalibrateAction)
        {
          RecalibrationMethod(node);
          if (node->GetRecalibrationFile().empty())
          {
            return "Choose the file to store the correction in.";
          }
        }
        break;
      case TrainAction:
        if (this->GetResults(node).Training)
        {
          return "Keep or discard the trained model first.";
        }
        sentence = CheckTrainedModelFile(node->GetTrainedModelFile());
        if (!sentence.empty())
        {
          return sentence;
        }
        if (node->GetDataListFile().empty() && TrainingCases(node).size() < 2)
        {
          return "Training needs at least two cases: one to learn from and one to judge by. Choose a data list, or set up "
                 "a second case in this scene.";
        }
        break;
      default: break;
    }
  }
  catch (const rcn::Error& error)
  {
    return error.what();
  }
  return "";
}

vtkSlicerRaterConsensusLogic::Work vtkSlicerRaterConsensusLogic::Prepare(int action, Node* node)
{
  const std::string sentence = this->Check(action, node);
  if (!sentence.empty())
  {
    throw rcn::Error(RCN_EINVALID, sentence);
  }
  const std::shared_ptr<Internals::State> state = this->Private->Shared;
  state->Cancel = false;
  this->Private->Remarks.clear();

  // What every work needs, by value: it may run when the node is long gone.
  const int sceneNumber = state->Scene;
  const std::string id = node->GetID();
  const bool fromList = action == TrainAction && !node->GetDataListFile().empty();
  auto inputs = std::make_shared<std::vector<Input>>();
  if (action == TrainAction && !fromList)
  {
    for (Node* const one : TrainingCases(node))
    {
      inputs->push_back(Gather(one, true));
    }
  }
  else if (!fromList)
  {
    inputs->push_back(Gather(node, action != PredictAction));
  }
  const auto progress = [state](const Monitor& monitor) {
    return [state, report = monitor.Progress](double fraction, const char* stage) {
      return (report && report(fraction, stage)) || state->Cancel;
    };
  };
  /// The node to publish to; throws when it has gone.
  const std::string trained = action == TrainAction ? node->GetTrainedModelFile() : "";
  const auto target = [this, state, sceneNumber, id, trained]() {
    const std::string kept = trained.empty() ? "" : " The new model is in " + trained + ".";
    if (state->Scene != sceneNumber)
    {
      throw rcn::Error(RCN_ECANCELLED, "The scene was closed." + kept);
    }
    Node* const found = Node::SafeDownCast(this->GetMRMLScene()->GetNodeByID(id));
    if (!found || (trained.empty() && !ImageOf(found)))
    {
      throw rcn::Error(RCN_EDATA,
        "The image or the parameters left the scene while this was computed; nothing was changed." + kept);
    }
    return found;
  };
  const auto remember = [this](const std::vector<std::string>& remarks) {
    for (const std::string& remark : remarks)
    {
      this->Private->Remarks += (this->Private->Remarks.empty() ? "" : "\n") + remark;
    }
  };
  const auto open = [inputs, progress](const Monitor& monitor) {
    const std::shared_ptr<rcn::Workspace> workspace = Open(inputs->front());
    workspace->SetProgress(progress(monitor));
    return workspace;
  };

  switch (action)
  {
    case AgreementAction:
      return [=, surfaces = node->GetSurfaces()](const Monitor& monitor) -> Publish {
        struct Held
        {
          std::shared_ptr<rcn::Workspace> Workspace; // owns what the report's figures came from
          rcn::AgreementReport Report;
        };
        auto held = std::make_shared<Held>();
        held->Workspace = open(monitor);
        held->Report = held->Workspace->Agree(surfaces);
        held->Workspace->SetProgress({});
        return [=] {
          PublishAgreement(target(), held->Report, held->Workspace->RaterNames(),
            *rcn_votes_geometry(held->Workspace->Votes()));
          remember(held->Workspace->Remarks());
          this->Private->ByNode[id].Agreement = { held, &held->Report };
        };
      };

    case FuseAction:
      return [=, options = FusionOptions(node)](const Monitor& monitor) -> Publish {
        const std::shared_ptr<rcn::Workspace> workspace = open(monitor);
        const rcn::FusionReport report = workspace->Fuse(options);
        const std::vector<rcn::Volume> masks =
          options.method == RCN_ORC ? AtLeastMasks(*workspace) : std::vector<rcn::Volume>();
        const std::vector<std::string> raters = workspace->RaterNames();
        const std::vector<std::string> remarks = workspace->Remarks();
        return [=] {
          PublishFusion(target(), report, rcn_method_name(options.method), static_cast<int>(raters.size()), masks);
          remember(remarks);
        };
      };

    case PredictAction:
      return [=, path = node->GetModelFile(), readout = node->GetReadout(), threshold = node->GetThreshold()](
               const Monitor& monitor) -> Publish {
        rcn::Workspace workspace(inputs->front().Options); // for its context
        workspace.SetProgress(progress(monitor));
        const rcn::Model model(workspace.Context(), path);
        rcn::PredictionOptions options;
        options.Readout = readout;
        options.Threshold = threshold;
        const std::string unfit = rcn::CheckPrediction(model, options);
        if (!unfit.empty())
        {
          throw rcn::Error(RCN_EINVALID, unfit);
        }
        const rcn_image& view = inputs->front().Image.View();
        if (rcn_image_find_nonfinite(&view) >= 0)
        {
          throw rcn::Error(RCN_EDATA, inputs->front().ImageName + " has voxels that are not a number.");
        }
        const rcn::Prediction prediction =
          rcn::Predict(model, workspace.Context(), { inputs->front().Image }, inputs->front().ImageName, options);
        const std::vector<vtkSmartPointer<vtkImageData>> levels = prediction.Levels.Data()
          ? Components(prediction.Levels)
          : std::vector<vtkSmartPointer<vtkImageData>>();
        return [=] {
          PublishPrediction(target(), prediction, levels);
          remember(prediction.Remarks);
        };
      };

    case EvaluateAction:
    case RecalibrateAction: {
      vtkMRMLScalarVolumeNode* const judged = JudgedMap(node);
      const rcn::Volume map = VolumeOf(judged);
      const std::string name = NameOf(judged);
      const std::string file = node->GetRecalibrationFile();
      const bool fit = action == RecalibrateAction;
      const rcn_recalib_method method = fit ? RecalibrationMethod(node) : RCN_RECALIB_PLATT;
      return [=, options = JudgingOptions(node)](const Monitor& monitor) -> Publish {
        const std::shared_ptr<rcn::Workspace> workspace = open(monitor);
        rcn::Evaluation evaluation(workspace->Context(), workspace->RaterNames(), options);
        if (!evaluation.PrepareCase(workspace->Votes(), inputs->front().Id, AsFloat(map), name))
        {
          throw rcn::Error(RCN_EDATA, "The region has no voxels in this case; choose another one.");
        }
        evaluation.CommitCase();
        if (fit)
        {
          rcn::WriteRecalibration(file, evaluation.Fit(method));
        }
        const auto report = std::make_shared<const rcn::EvaluationReport>(evaluation.Report());
        const std::vector<std::string> remarks = workspace->Remarks();
        return [=] {
          Node* const owner = target();
          remember(remarks);
          const std::string words = rcn::WorstBinInWords(*report);
          if (!words.empty())
          {
            remember({ words });
          }
          PublishReliability(owner, *report, nullptr);
          this->Private->ByNode[id].Evaluation = report;
        };
      };
    }

    default: {
      rcn::TrainingOptions options;
      options.Data = node->GetDataListFile();
      options.Output = node->GetTrainedModelFile();
      options.Init = node->GetModelFile();
      options.Minutes = node->GetTrainingMinutes();
      const std::string unfit = fromList ? rcn::CheckTraining(options) : std::string();
      if (!unfit.empty())
      {
        throw rcn::Error(RCN_EINVALID, unfit);
      }
      return [=](const Monitor& monitor) -> Publish {
        rcn::TrainingOptions mine = options;
        std::unique_ptr<TemporaryFolder> folder;
        rcn::DataList list;
        if (!fromList)
        {
          folder.reset(new TemporaryFolder);
          list = WriteCases(*folder, *inputs);
          mine.List = &list;
        }
        auto remarks = std::make_shared<std::vector<std::string>>();
        const auto report = progress(monitor);
        mine.Progress = [&](const rcn::TrainingProgress& now) {
          if (monitor.Training)
          {
            monitor.Training(now);
          }
          return report(now.Fraction, now.Stage);
        };
        mine.EpochDone = monitor.Epoch;
        mine.Remark = [&](const std::string& remark) { remarks->push_back(remark); };
        const auto result = std::make_shared<const rcn::TrainingResult>(Trained(mine));
        return [=] {
          Node* const owner = target();
          remember(*remarks);
          if (result->After.Cases > 0)
          {
            PublishReliability(owner, result->After, result->HasBefore ? &result->Before : nullptr);
          }
          else
          {
            remember({ "Training ended before the model could be judged." });
          }
          this->Private->ByNode[id].Training = result;
        };
      };
    }
  }
}

std::string vtkSlicerRaterConsensusLogic::Do(int action, Node* node)
{
  try
  {
    this->Prepare(action, node)(Monitor())();
    return "";
  }
  catch (const std::bad_alloc&)
  {
    return "There is not enough memory for this.";
  }
  catch (const std::exception& error)
  {
    return rcn::OneLine(error.what());
  }
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

std::string vtkSlicerRaterConsensusLogic::Keep(Node* node)
{
  const std::shared_ptr<const rcn::TrainingResult> trained = this->GetResults(node).Training;
  if (!trained)
  {
    return "There is no trained model to keep.";
  }
  if (!IsThere(trained->Model))
  {
    return trained->Model + " is no longer there.";
  }
  this->Private->ByNode[node->GetID()].Training = nullptr;
  const MRMLNodeModifyBlocker blocker(node);
  node->SetModelFile(trained->Model);
  node->SetTrainedModelFile(NextModelFile(trained->Model));
  node->Modified();
  return "";
}

std::string vtkSlicerRaterConsensusLogic::Discard(Node* node)
{
  const std::shared_ptr<const rcn::TrainingResult> trained = this->GetResults(node).Training;
  if (!trained)
  {
    return "There is no trained model to discard.";
  }
  for (const std::string& file : FilesOfTraining(trained->Model))
  {
    std::error_code error;
    fs::remove(file, error);
    if (error)
    {
      return file + " cannot be removed: " + error.message() + ".";
    }
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
  const auto number = static_cast<int>(std::count_if(
    nodes.begin(), nodes.end(), [](vtkMRMLNode* one) { return one->GetAttribute(ExampleAttribute) != nullptr; }));
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
    vtkMRMLSegmentationNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLSegmentationNode", name + ": raters"));
  raters->CreateDefaultDisplayNodes();
  raters->SetReferenceImageGeometryParameterFromVolumeNode(image);
  auto* const node =
    Node::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode", name + ": rater consensus"));
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
  return node;
}

int vtkSlicerRaterConsensusLogic::GetNumberOfDisputes(Node* node)
{
  auto* const table =
    node ? vtkMRMLTableNode::SafeDownCast(node->GetNodeReference(Node::GetDisputesRole())) : nullptr;
  return table && table->GetTable() ? static_cast<int>(table->GetTable()->GetNumberOfRows()) : 0;
}

bool vtkSlicerRaterConsensusLogic::ShowDispute(Node* node, int index)
{
  if (index < 0 || index >= this->GetNumberOfDisputes(node))
  {
    return false;
  }
  auto* const table = vtkMRMLTableNode::SafeDownCast(node->GetNodeReference(Node::GetDisputesRole()))->GetTable();
  double position[3];
  const char* const axes[3] = { "R", "A", "S" };
  for (int a = 0; a < 3; ++a)
  {
    vtkAbstractArray* const column = table->GetColumnByName(axes[a]);
    if (!column)
    {
      return false; // not a table of ours any more
    }
    position[a] = table->GetValueByName(index, axes[a]).ToDouble();
  }
  // The table holds places in the image's own coordinates; its transform leads into the world.
  if (vtkMRMLScalarVolumeNode* const image = ImageOf(node))
  {
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
  if (auto* const crosshair = vtkMRMLCrosshairNode::SafeDownCast(
        this->GetMRMLScene()->GetFirstNodeByClass("vtkMRMLCrosshairNode")))
  {
    crosshair->SetCrosshairRAS(position);
  }
  return true;
}
