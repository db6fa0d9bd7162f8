// The actions on a scene: results as nodes, the same numbers as the workspace gives, and bad input.
#include "vtkSlicerRaterConsensusLogic.h"

#include <cstring>

#include <vtkDoubleArray.h>
#include <vtkImageData.h>
#include <vtkMRMLColorLegendDisplayNode.h>
#include <vtkMRMLColorTableNode.h>
#include <vtkMRMLLabelMapVolumeNode.h>
#include <vtkMRMLLinearTransformNode.h>
#include <vtkMRMLPlotChartNode.h>
#include <vtkMRMLPlotSeriesNode.h>
#include <vtkMRMLScalarVolumeDisplayNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSubjectHierarchyNode.h>
#include <vtkMRMLTableNode.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkOrientedImageData.h>
#include <vtkSegmentation.h>
#include <vtkSmartPointer.h>
#include <vtkTable.h>

#include "rcnPhantom.h"
#include "rcnPrediction.h"
#include "rcnReport.h"
#include "rcnTest.h"
#include "rcnTraining.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace
{

using Logic = vtkSlicerRaterConsensusLogic;
using Node = vtkMRMLRaterConsensusNode;

const int64_t Size[3] = { 24, 22, 20 };

/// A tilted grid, so that no axis is forgotten.
void Tilt(vtkMatrix4x4* matrix)
{
  const double elements[16] = { 0.8, -0.6, 0, 12, 0.6, 0.8, 0, -7, 0, 0, 1.5, 30, 0, 0, 0, 1 };
  matrix->DeepCopy(elements);
}

vtkSmartPointer<vtkImageData> ImageOfBall(int r, int type)
{
  const std::vector<uint8_t> ball = Ball(Size, 11 + r, 10, 9, 6);
  auto image = vtkSmartPointer<vtkImageData>::New();
  image->SetDimensions(static_cast<int>(Size[0]), static_cast<int>(Size[1]), static_cast<int>(Size[2]));
  image->AllocateScalars(type, 1);
  for (size_t i = 0; i < ball.size(); ++i)
  {
    if (type == VTK_SHORT)
    {
      static_cast<short*>(image->GetScalarPointer())[i] = static_cast<short>(3 * ball[i]);
    }
    else
    {
      static_cast<unsigned char*>(image->GetScalarPointer())[i] = ball[i];
    }
  }
  return image;
}

/// A scene with a case of three raters: two segments (one layer or two) and a label map with the value 3.
struct Fixture
{
  vtkSmartPointer<vtkMRMLScene> Scene = vtkSmartPointer<vtkMRMLScene>::New();
  vtkSmartPointer<Logic> Actions = vtkSmartPointer<Logic>::New();
  vtkMRMLScalarVolumeNode* Image = nullptr;
  vtkMRMLSegmentationNode* Segmentation = nullptr;
  vtkMRMLLabelMapVolumeNode* Labels = nullptr;
  Node* Parameters = nullptr;

  Fixture()
  {
    // As the Colors module does in the application.
    this->Scene->RegisterNodeClass(vtkSmartPointer<vtkMRMLColorLegendDisplayNode>::New());
    this->Actions->SetMRMLScene(this->Scene);
    this->AddCase("Case 1");
  }

  void AddCase(const char* name)
  {
    vtkNew<vtkMatrix4x4> grid;
    Tilt(grid);
    this->Image = vtkMRMLScalarVolumeNode::SafeDownCast(this->Scene->AddNewNodeByClass("vtkMRMLScalarVolumeNode", "CT"));
    this->Image->SetAndObserveImageData(ImageOfBall(1, VTK_SHORT));
    this->Image->SetIJKToRASMatrix(grid);
    this->Segmentation =
      vtkMRMLSegmentationNode::SafeDownCast(this->Scene->AddNewNodeByClass("vtkMRMLSegmentationNode", "Raters"));
    this->Segmentation->CreateDefaultDisplayNodes();
    for (int r = 0; r < 2; ++r)
    {
      vtkNew<vtkOrientedImageData> mask;
      mask->vtkImageData::DeepCopy(ImageOfBall(r, VTK_UNSIGNED_CHAR));
      mask->SetImageToWorldMatrix(grid);
      this->Segmentation->AddSegmentFromBinaryLabelmapRepresentation(mask, r ? "Ben" : "Anna", nullptr, r ? "b" : "a");
    }
    this->Labels =
      vtkMRMLLabelMapVolumeNode::SafeDownCast(this->Scene->AddNewNodeByClass("vtkMRMLLabelMapVolumeNode", "Cleo"));
    this->Labels->SetAndObserveImageData(ImageOfBall(2, VTK_SHORT));
    this->Labels->SetIJKToRASMatrix(grid);
    this->Parameters = Node::SafeDownCast(this->Scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode", name));
    this->Parameters->SetImageNodeID(this->Image->GetID());
    this->Parameters->AddSegment("Anna", this->Segmentation->GetID(), "a");
    this->Parameters->AddSegment("Ben", this->Segmentation->GetID(), "b");
    this->Parameters->AddLabelMap("Cleo", this->Labels->GetID(), 3);
  }

  template <class T> T* Result(const char* role, int n = 0)
  {
    return T::SafeDownCast(this->Parameters->GetNthNodeReference(role, n));
  }
  std::string Cell(const char* role, const char* row, const char* column, int n = 0)
  {
    auto* const node = this->Result<vtkMRMLTableNode>(role, n);
    vtkTable* const table = node ? node->GetTable() : nullptr;
    for (vtkIdType i = 0; table && i < table->GetNumberOfRows(); ++i)
    {
      if (table->GetValue(i, 0).ToString() == row)
      {
        return table->GetValueByName(i, column).ToString();
      }
    }
    return "(no such row)";
  }
};

/// The same raters without any scene.
void UseBalls(rcn::Workspace& workspace)
{
  vtkNew<vtkMatrix4x4> grid;
  Tilt(grid);
  std::vector<rcn::RaterMask> masks;
  for (int r = 0; r < 3; ++r)
  {
    masks.push_back({ r == 0 ? "Anna" : r == 1 ? "Ben" : "Cleo",
      rcn::VolumeFromVtk(ImageOfBall(r, VTK_UNSIGNED_CHAR), grid, "mask"), {}, 0 });
  }
  workspace.UseCase({ rcn::VolumeFromVtk(ImageOfBall(1, VTK_SHORT), grid, "CT") }, "CT", masks);
}

void AgreementIsTheWorkspaces()
{
  Fixture f;
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  CHECK(f.Actions->GetRemarks() == "");
  rcn::Workspace workspace;
  UseBalls(workspace);
  const rcn::AgreementReport expected = workspace.Agree(true);
  CHECK(expected.Figures->mean_dice > 0.5 && expected.Figures->mean_dice < 0.95);
  CHECK(f.Cell(Node::GetAgreementRole(), "Mean Dice of all pairs", "Value", 1) ==
    rcn::CsvNumber(expected.Figures->mean_dice));
  CHECK(f.Cell(Node::GetAgreementRole(), "Anna", "Dice with Cleo") == rcn::CsvNumber(expected.Figures->pair[2].dice));
  CHECK(f.Cell(Node::GetAgreementRole(), "Ben", "Hausdorff 95 % (mm) with Anna") ==
    rcn::CsvNumber(expected.Figures->pair[3].hausdorff95_mm));
  CHECK(f.Cell(Node::GetAgreementRole(), "Cleo", "Volume (mL)") == rcn::CsvNumber(expected.Figures->rater[2].volume_ml));
  CHECK(f.Actions->GetNumberOfDisputes(f.Parameters) == static_cast<int>(expected.Regions.size()));
  CHECK(f.Actions->GetResults(f.Parameters).Agreement &&
    f.Actions->GetResults(f.Parameters).Agreement->Figures->mean_dice == expected.Figures->mean_dice);
  // A place to visit lies in the image, where somebody marked and somebody did not.
  double ras[4] = { 0, 0, 0, 1 };
  auto* const table = f.Result<vtkMRMLTableNode>(Node::GetDisputesRole())->GetTable();
  const char* const axes[3] = { "R", "A", "S" };
  for (int a = 0; a < 3; ++a)
  {
    ras[a] = table->GetValueByName(0, axes[a]).ToDouble();
  }
  vtkNew<vtkMatrix4x4> rasToIjk;
  f.Image->GetRASToIJKMatrix(rasToIjk);
  rasToIjk->MultiplyPoint(ras, ras);
  for (int a = 0; a < 3; ++a)
  {
    CHECK_NEAR(ras[a], static_cast<double>(expected.Regions[0].at[a]), 1e-6);
  }
  CHECK(f.Actions->ShowDispute(f.Parameters, 0) && !f.Actions->ShowDispute(f.Parameters, 1000));
}

void ConsensusIsANodeInTheImagesPlace()
{
  Fixture f;
  vtkNew<vtkMRMLLinearTransformNode> shift;
  f.Scene->AddNode(shift);
  f.Image->SetAndObserveTransformNodeID(shift->GetID());
  f.Segmentation->SetAndObserveTransformNodeID(shift->GetID());
  f.Labels->SetAndObserveTransformNodeID(shift->GetID());
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  auto* const map = f.Result<vtkMRMLScalarVolumeNode>(Node::GetHeatmapRole());
  CHECK(map && map->GetTransformNodeID() && !std::strcmp(map->GetTransformNodeID(), shift->GetID()));
  rcn::Workspace workspace;
  UseBalls(workspace);
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  const rcn::FusionReport expected = workspace.Fuse(options);
  const int64_t voxels = Size[0] * Size[1] * Size[2];
  CHECK(std::equal(static_cast<const float*>(expected.Map.Data()), static_cast<const float*>(expected.Map.Data()) + voxels,
    static_cast<const float*>(map->GetImageData()->GetScalarPointer())));
  vtkNew<vtkMatrix4x4> wanted, got;
  f.Image->GetIJKToRASMatrix(wanted);
  map->GetIJKToRASMatrix(got);
  for (int i = 0; i < 16; ++i)
  {
    CHECK_NEAR(got->GetElement(i / 4, i % 4), wanted->GetElement(i / 4, i % 4), 1e-9);
  }
  // Shown from none to all raters, in our colours, with a legend; what nobody marked is clear.
  auto* const display = vtkMRMLScalarVolumeDisplayNode::SafeDownCast(map->GetDisplayNode());
  CHECK(display && display->GetColorNode() == f.Actions->GetColorNode());
  CHECK(display->GetWindowLevelMin() == 0 && display->GetWindowLevelMax() == 3 && display->GetApplyThreshold());
  CHECK(map->GetNumberOfDisplayNodes() == 2);
  // A segment for each "at least k".
  auto* const masks = f.Result<vtkMRMLSegmentationNode>(Node::GetMaskRole());
  CHECK(masks && masks->GetSegmentation()->GetNumberOfSegments() == 3);
  vtkNew<vtkOrientedImageData> all;
  CHECK(masks->GetBinaryLabelmapRepresentation("RaterConsensus_level_3", all) && !all->IsEmpty());

  // A second run with another method fills the same nodes.
  const int before = f.Scene->GetNumberOfNodes();
  f.Parameters->SetMethod("soft");
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  CHECK(f.Scene->GetNumberOfNodes() == before && f.Result<vtkMRMLScalarVolumeNode>(Node::GetHeatmapRole()) == map);
  CHECK(display->GetWindowLevelMax() == 1);
  f.Parameters->SetMethod("orc");
  CHECK(f.Actions->Fuse(f.Parameters) == "" && f.Scene->GetNumberOfNodes() == before);
  CHECK(masks->GetSegmentation()->GetNumberOfSegments() == 3);
}

/// Raters who are moved by a transform of their own are taken where they are shown.
void TransformsAreHardened()
{
  Fixture f;
  vtkNew<vtkMRMLLinearTransformNode> shift;
  f.Scene->AddNode(shift);
  vtkNew<vtkMatrix4x4> matrix, grid;
  Tilt(grid);
  for (int row = 0; row < 3; ++row)
  {
    matrix->SetElement(row, 3, grid->GetElement(row, 0)); // one voxel along x
  }
  shift->SetMatrixTransformToParent(matrix);
  f.Segmentation->SetAndObserveTransformNodeID(shift->GetID());
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  // Anna's ball is at 11, Ben's at 12, Cleo's at 13: now Ben marks what Cleo marks.
  CHECK(f.Cell(Node::GetAgreementRole(), "Ben", "Dice with Cleo") == "1");
  f.Segmentation->SetAndObserveTransformNodeID(nullptr);
  f.Labels->SetAndObserveTransformNodeID(shift->GetID());
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  CHECK(f.Cell(Node::GetAgreementRole(), "Ben", "Dice with Cleo") ==
    f.Cell(Node::GetAgreementRole(), "Cleo", "Dice with Ben"));
  rcn::Workspace workspace;
  UseBalls(workspace);
  CHECK(f.Cell(Node::GetAgreementRole(), "Anna", "Dice with Ben") ==
    rcn::CsvNumber(workspace.Agree(false).Figures->pair[1].dice));
}

void BadInputGetsASentence()
{
  Fixture f;
  const auto check = [&](int action, const std::string& words) {
    const std::string sentence = f.Actions->Check(action, f.Parameters);
    if (sentence.find(words) == std::string::npos)
    {
      ++Failures;
      std::fprintf(stderr, "\"%s\" instead of \"%s\"\n", sentence.c_str(), words.c_str());
    }
  };
  CHECK(f.Actions->Agreement(nullptr).find("parameters") != std::string::npos);
  check(Logic::AgreementAction, "");
  check(Logic::PredictAction, "Choose a model file");
  check(Logic::EvaluateAction, "no probability");
  check(Logic::TrainAction, "Choose the file");
  f.Parameters->SetTrainedModelFile("m.safetensors");
  check(Logic::TrainAction, "at least two cases");
  f.Parameters->SetModelFile("/nowhere/m.safetensors");
  check(Logic::PredictAction, "is not there");
  f.Parameters->SetMethod("nonsense");
  CHECK(f.Actions->Fuse(f.Parameters) == "There is no method nonsense.");
  f.Parameters->SetMethod("orc");
  f.Parameters->SetRegion("nowhere");
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  check(Logic::EvaluateAction, "no region nowhere");
  f.Parameters->SetRegion("box");

  // Another geometry is refused, or resampled when that is wished.
  vtkNew<vtkMatrix4x4> other;
  Tilt(other);
  other->SetElement(0, 3, 0);
  f.Labels->SetIJKToRASMatrix(other);
  const std::string geometry = f.Actions->Agreement(f.Parameters);
  CHECK(geometry.find("Cleo has another origin than CT") != std::string::npos &&
    geometry.find("resampling") != std::string::npos);
  f.Parameters->ResampleOn();
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  f.Parameters->ResampleOff();
  Tilt(other);
  f.Labels->SetIJKToRASMatrix(other);

  // A segment in which nobody painted: a remark, no failure.
  f.Segmentation->GetSegmentation()->AddEmptySegment("empty", "Dora");
  f.Parameters->AddSegment("Dora", f.Segmentation->GetID(), "empty");
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  CHECK(f.Actions->GetRemarks().find("Dora marked nothing") != std::string::npos);
  CHECK(f.Cell(Node::GetAgreementRole(), "Dora", "Volume (mL)") == "0");

  // Twice the same name; a segment that is gone; a node that is gone; an image that is gone.
  f.Parameters->AddSegment("Dora", f.Segmentation->GetID(), "empty");
  CHECK(f.Actions->Agreement(f.Parameters).find("Two raters have the name Dora") != std::string::npos);
  f.Parameters->RemoveAllRaters();
  CHECK(f.Actions->Agreement(f.Parameters).find("at least one rater") != std::string::npos);
  f.Parameters->AddSegment("Anna", f.Segmentation->GetID(), "a");
  f.Parameters->AddLabelMap("Cleo", f.Labels->GetID(), 3);
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  f.Segmentation->RemoveSegment("a");
  CHECK(f.Actions->Agreement(f.Parameters).find("The segment of rater Anna is no longer in") != std::string::npos);
  f.Scene->RemoveNode(f.Segmentation);
  CHECK(f.Actions->Agreement(f.Parameters).find("Anna is no longer in the scene") != std::string::npos);
  f.Scene->RemoveNode(f.Image);
  CHECK(f.Actions->Agreement(f.Parameters).find("Choose the image") != std::string::npos);
}

/// Everything between the first and the last step may happen to the scene.
void TheSceneMayChangeMeanwhile()
{
  Fixture f;
  Logic::Work work = f.Actions->Prepare(Logic::FuseAction, f.Parameters);
  f.Segmentation->RemoveSegment("a");
  f.Image->SetAndObserveImageData(nullptr);
  f.Scene->RemoveNode(f.Labels);
  work(Logic::Monitor())();
  CHECK(f.Result<vtkMRMLScalarVolumeNode>(Node::GetHeatmapRole()) != nullptr);

  Fixture g;
  work = g.Actions->Prepare(Logic::FuseAction, g.Parameters);
  Logic::Publish publish = work(Logic::Monitor());
  g.Scene->RemoveNode(g.Parameters);
  const int nodes = g.Scene->GetNumberOfNodes();
  CHECK_THROWS(publish(), RCN_EDATA, "left the scene");
  CHECK(g.Scene->GetNumberOfNodes() == nodes);

  Fixture h;
  work = h.Actions->Prepare(Logic::AgreementAction, h.Parameters);
  h.Scene->Clear();
  CHECK_THROWS(work(Logic::Monitor()), RCN_ECANCELLED, ""); // closing asks it to stop
  h.AddCase("Next");
  work = h.Actions->Prepare(Logic::AgreementAction, h.Parameters);
  publish = work(Logic::Monitor());
  h.Scene->Clear();
  h.AddCase("Node ids come back");
  CHECK_THROWS(publish(), RCN_ECANCELLED, "scene was closed");
  CHECK(!h.Result<vtkMRMLTableNode>(Node::GetAgreementRole()));

  Fixture c;
  work = c.Actions->Prepare(Logic::AgreementAction, c.Parameters);
  Logic::Monitor monitor;
  int calls = 0;
  monitor.Progress = [&](double, const char*) { return ++calls > 0; };
  CHECK_THROWS(work(monitor), RCN_ECANCELLED, "");
  CHECK(calls > 0);
}

std::string ConstantModel(const Folder& folder)
{
  rcn_context* context = nullptr;
  rcn_net* net = nullptr;
  rcn_net_options options = RCN_NET_OPTIONS_INIT;
  options.arch = RCN_UNET;
  options.width = 8;
  options.depth = 1;
  options.outputs = 4;
  CHECK(rcn_context_create(&context, nullptr) == RCN_OK);
  CHECK(rcn_net_create(&net, context, &options) == RCN_OK && rcn_net_initialize(net, 1) == RCN_OK);
  rcn::ModelInfo info;
  info.Raters = { "Anna", "Ben", "Cleo" };
  const std::string path = folder / "m.safetensors";
  rcn::SaveModel(context, path, net, info);
  rcn_net_destroy(net);
  rcn_context_destroy(context);
  return path;
}

void ModelsPredictIntoTheScene()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(ConstantModel(folder));
  f.Parameters->SetReadout("expected");
  CHECK(f.Actions->Predict(f.Parameters) == "");
  auto* const probability = f.Result<vtkMRMLScalarVolumeNode>(Node::GetProbabilityRole());
  CHECK(probability && probability->GetImageData()->GetScalarType() == VTK_FLOAT);
  // The levels of a voxel sum to one, and lie in one folder.
  double sum = 0;
  auto* const hierarchy = vtkMRMLSubjectHierarchyNode::GetSubjectHierarchyNode(f.Scene);
  for (int k = 0; k <= 3; ++k)
  {
    auto* const level = f.Result<vtkMRMLScalarVolumeNode>(Node::GetLevelRole(), k);
    CHECK(level != nullptr);
    sum += level->GetImageData()->GetScalarComponentAsDouble(5, 6, 7, 0);
    CHECK(hierarchy->GetItemName(hierarchy->GetItemParent(hierarchy->GetItemByDataNode(level))) == "Case 1: levels");
  }
  CHECK_NEAR(sum, 1, 1e-5);
  CHECK(!f.Result<vtkMRMLNode>(Node::GetLevelRole(), 4));
  const int before = f.Scene->GetNumberOfNodes();
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Scene->GetNumberOfNodes() == before);
  // The same numbers as without a scene.
  rcn::Workspace workspace;
  UseBalls(workspace);
  const rcn::Model model(workspace.Context(), f.Parameters->GetModelFile());
  rcn::PredictionOptions options;
  options.Readout = "expected";
  const rcn::Prediction expected = rcn::Predict(model, workspace.Context(), workspace.Images(), "CT", options);
  const float* const wanted = static_cast<const float*>(expected.Probability.Data());
  CHECK(std::equal(wanted, wanted + Size[0] * Size[1] * Size[2],
    static_cast<const float*>(probability->GetImageData()->GetScalarPointer())));
  f.Parameters->SetReadout("at-least:9");
  CHECK(f.Actions->Predict(f.Parameters) != "");
  std::ofstream(folder / "broken.safetensors") << "no model";
  f.Parameters->SetModelFile(folder / "broken.safetensors");
  CHECK(f.Actions->Predict(f.Parameters).find("broken.safetensors") != std::string::npos);
}

void CalibrationIsAChart()
{
  Fixture f;
  f.Parameters->SetMethod("soft-gaussian");
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
  rcn::Workspace workspace;
  UseBalls(workspace);
  rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
  fusion.method = RCN_SOFT_GAUSSIAN;
  rcn::EvaluationOptions options;
  options.Region.region = RCN_REGION_BOX;
  rcn::Evaluation evaluation(workspace.Context(), workspace.RaterNames(), options);
  CHECK(evaluation.PrepareCase(workspace.Votes(), "Case 1", workspace.Fuse(fusion).Map, "map"));
  evaluation.CommitCase();
  const rcn::EvaluationReport expected = evaluation.Report();
  CHECK(f.Cell(Node::GetFiguresRole(), "mr_ece", "Value") == rcn::CsvNumber(expected.Figures[RCN_MR_ECE]));
  CHECK(f.Cell(Node::GetFiguresRole(), "auc_pairs", "Value") == rcn::CsvNumber(expected.Auc.pairs));
  auto* const chart = f.Result<vtkMRMLPlotChartNode>(Node::GetChartRole());
  CHECK(chart && chart->GetNumberOfPlotSeriesNodes() == 2);
  auto* const series = f.Result<vtkMRMLPlotSeriesNode>(Node::GetSeriesRole(), 1);
  CHECK(series && series->GetTableNode() && series->GetTableNode()->GetTable()->GetNumberOfRows() > 2);
  CHECK(series->GetTableNode()->GetTable()->GetColumnByName(series->GetYColumnName().c_str()) != nullptr);
  const int before = f.Scene->GetNumberOfNodes();
  CHECK(f.Actions->Evaluate(f.Parameters) == "" && f.Scene->GetNumberOfNodes() == before);
  CHECK(chart->GetNumberOfPlotSeriesNodes() == 2);

  // Levels are no probability.
  const Folder folder;
  f.Parameters->SetRecalibrationFile(folder / "c.json");
  f.Parameters->SetRecalibrationMethod("platt");
  CHECK(f.Actions->Recalibrate(f.Parameters) == "");
  CHECK(rcn::ReadRecalibration(folder / "c.json").Correction.method == RCN_RECALIB_PLATT);
  f.Parameters->SetMethod("orc");
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  CHECK(f.Actions->Evaluate(f.Parameters) != "");
}

void TrainsOnTheScenesCases()
{
  Fixture f;
  f.AddCase("Case 2");
  f.AddCase("Case 3");
  const Folder folder;
  f.Parameters->SetModelFile(ConstantModel(folder));
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  f.Parameters->SetTrainingMinutes(0.02);
  int epochs = 0;
  Logic::Monitor monitor;
  monitor.Epoch = [&](const rcn::TrainingEpoch&) { ++epochs; };
  CHECK(f.Actions->Keep(f.Parameters) != "" && f.Actions->Discard(f.Parameters) != "");
  f.Actions->Prepare(Logic::TrainAction, f.Parameters)(monitor)();
  CHECK(epochs > 0 && std::filesystem::exists(folder / "new.safetensors"));
  const auto& training = f.Actions->GetResults(f.Parameters).Training;
  CHECK(training && training->HasBefore && training->Raters.size() == 3);
  CHECK(f.Result<vtkMRMLPlotChartNode>(Node::GetChartRole())->GetNumberOfPlotSeriesNodes() == 3); // ideal, after, before
  // Kept: it is the model now, and the next one gets another name. Nothing is trained over it.
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters) == "Keep or discard the trained model first.");
  CHECK(f.Actions->Keep(f.Parameters) == "" && f.Actions->Keep(f.Parameters) != "");
  CHECK(f.Parameters->GetModelFile() == folder / "new.safetensors");
  CHECK(f.Parameters->GetTrainedModelFile() == folder / "new-2.safetensors");
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters) == "");
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  CHECK(f.Actions->Train(f.Parameters).find("new.safetensors is there already") != std::string::npos);
  f.Parameters->SetTrainedModelFile(folder / "other.safetensors");
  std::ofstream(folder / "other.log.csv") << "of somebody else";
  CHECK(f.Actions->Train(f.Parameters).find("other.log.csv is there already") != std::string::npos);
  f.Parameters->SetTrainedModelFile(folder / "other.pt");
  CHECK(f.Actions->Train(f.Parameters).find("ends with .safetensors") != std::string::npos);
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Result<vtkMRMLPlotChartNode>(Node::GetChartRole())->GetNumberOfPlotSeriesNodes() == 2);
}

/// Two of three cases; discarding takes away what training wrote and nothing else.
void TrainsOnChosenCases()
{
  Fixture f;
  Node* const first = f.Parameters;
  f.AddCase("Case 2");
  f.AddCase("Case 3");
  const Folder folder;
  f.Parameters->SetModelFile(ConstantModel(folder));
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  f.Parameters->SetTrainingMinutes(0.01);
  f.Parameters->AddTrainingCase(first->GetID());
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters).find("at least two cases") != std::string::npos);
  f.Parameters->AddTrainingCase(f.Parameters->GetID());
  CHECK(f.Actions->Train(f.Parameters) == "");
  const auto training = f.Actions->GetResults(f.Parameters).Training;
  CHECK(training && training->TrainingCases.size() + training->ValidationCases.size() == 2);
  const std::string before = TextOf(folder / "m.safetensors");
  CHECK(f.Actions->Discard(f.Parameters) == "" && f.Actions->Discard(f.Parameters) != "");
  CHECK(folder.Count() == 1 && TextOf(folder / "m.safetensors") == before);
  CHECK(f.Parameters->GetModelFile() == folder / "m.safetensors" && f.Actions->Check(Logic::TrainAction, f.Parameters) == "");

  // Stopped before there is a model: nothing lies about, and the next training can begin.
  Logic::Monitor monitor;
  monitor.Training = [&](const rcn::TrainingProgress&) { f.Actions->Cancel(); };
  CHECK_THROWS(f.Actions->Prepare(Logic::TrainAction, f.Parameters)(monitor), RCN_ECANCELLED, "");
  CHECK(folder.Count() == 1 && f.Actions->Check(Logic::TrainAction, f.Parameters) == "");
}

void ExamplesAreCases()
{
  Fixture f;
  f.Scene->Clear();
  Node* const node = f.Actions->AddExampleCase();
  CHECK(node && node->GetNumberOfRaters() == 5 && node->GetNthRaterName(4) == "Eva");
  CHECK(f.Actions->Agreement(node) == "" && f.Actions->GetRemarks() == "");
  // The same voxels as the demo's.
  rcn::Workspace workspace;
  const rcn::Phantom phantom = rcn::MakeExample(workspace.Context());
  workspace.UseCase({ phantom.Image }, "image", phantom.Raters);
  CHECK(f.Actions->GetResults(node).Agreement->Figures->mean_dice == workspace.Agree(false).Figures->mean_dice);
  const float* const wanted = static_cast<const float*>(phantom.Image.Data());
  auto* const image = vtkMRMLScalarVolumeNode::SafeDownCast(f.Scene->GetNodeByID(node->GetImageNodeID()));
  CHECK(std::equal(wanted, wanted + rcn_geometry_voxels(&phantom.Image.Geometry()),
    static_cast<const float*>(image->GetImageData()->GetScalarPointer())));
  Node* const second = f.Actions->AddExampleCase();
  CHECK(second != node && f.Actions->Agreement(second) == "");
  CHECK(f.Actions->GetResults(second).Agreement->Figures->mean_dice !=
    f.Actions->GetResults(node).Agreement->Figures->mean_dice);
}

} // namespace

int vtkSlicerRaterConsensusLogicTest1(int, char*[])
{
  RUN(AgreementIsTheWorkspaces);
  RUN(ConsensusIsANodeInTheImagesPlace);
  RUN(TransformsAreHardened);
  RUN(BadInputGetsASentence);
  RUN(TheSceneMayChangeMeanwhile);
  RUN(ModelsPredictIntoTheScene);
  RUN(CalibrationIsAChart);
  RUN(TrainsOnTheScenesCases);
  RUN(TrainsOnChosenCases);
  RUN(ExamplesAreCases);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
