// SPDX-License-Identifier: Apache-2.0
// The actions on a scene: results as nodes, the same numbers as the workspace gives, and bad input.
#include "vtkSlicerRaterConsensusLogic.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <vtkCallbackCommand.h>
#include <vtkDoubleArray.h>
#include <vtkImageData.h>
#include <vtkMRMLApplicationLogic.h>
#include <vtkMRMLColorLegendDisplayNode.h>
#include <vtkMRMLColorTableNode.h>
#include <vtkMRMLCrosshairNode.h>
#include <vtkMRMLDisplayableNode.h>
#include <vtkMRMLLabelMapVolumeNode.h>
#include <vtkMRMLLayoutNode.h>
#include <vtkMRMLLinearTransformNode.h>
#include <vtkMRMLMarkupsROIDisplayNode.h>
#include <vtkMRMLMarkupsROINode.h>
#include <vtkMRMLPlotChartNode.h>
#include <vtkMRMLPlotSeriesNode.h>
#include <vtkMRMLScalarVolumeDisplayNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationDisplayNode.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSelectionNode.h>
#include <vtkMRMLSliceCompositeNode.h>
#include <vtkMRMLSliceNode.h>
#include <vtkMRMLSubjectHierarchyNode.h>
#include <vtkMRMLTableNode.h>
#include <vtkMRMLUnitNode.h>
#include <vtkMRMLVectorVolumeNode.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkOrientedImageData.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>
#include <vtkSegmentationConverter.h>
#include <vtkSlicerSegmentationsModuleLogic.h>
#include <vtkSmartPointer.h>
#include <vtkSphereSource.h>
#include <vtkTable.h>

#include "rcnJudge.h"
#include "rcnMrmlViews.h"
#include "rcnPhantom.h"
#include "rcnPrediction.h"
#include "rcnReport.h"
#include "rcnResample.h"
#include "rcnSlicerTest.h"
#include "rcnTestData.h"
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
  vtkNew<vtkSlicerSegmentationsModuleLogic> Segmentations;
  vtkSmartPointer<Logic> Actions = vtkSmartPointer<Logic>::New();
  vtkMRMLScalarVolumeNode* Image = nullptr;
  vtkMRMLSegmentationNode* Segmentation = nullptr;
  vtkMRMLLabelMapVolumeNode* Labels = nullptr;
  Node* Parameters = nullptr;

  Fixture()
  {
    // As the Colors, the Markups and the Segmentations module do in the application.
    this->Scene->RegisterNodeClass(vtkSmartPointer<vtkMRMLColorLegendDisplayNode>::New());
    if (!vtkSmartPointer<vtkMRMLNode>::Take(this->Scene->CreateNodeByClass("vtkMRMLMarkupsROINode")))
    {
      this->Scene->RegisterNodeClass(vtkSmartPointer<vtkMRMLMarkupsROINode>::New());
      this->Scene->RegisterNodeClass(vtkSmartPointer<vtkMRMLMarkupsROIDisplayNode>::New());
    }
    this->Segmentations->SetMRMLScene(this->Scene);
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
    this->Segmentation->SetReferenceImageGeometryParameterFromVolumeNode(this->Image);
    for (int r = 0; r < 2; ++r)
    {
      vtkNew<vtkOrientedImageData> mask;
      mask->vtkImageData::DeepCopy(ImageOfBall(r, VTK_UNSIGNED_CHAR));
      mask->SetImageToWorldMatrix(grid);
      vtkNew<vtkSegment> segment;
      segment->SetName(r ? "Ben" : "Anna");
      segment->AddRepresentation(vtkSegmentationConverter::GetSegmentationBinaryLabelmapRepresentationName(), mask);
      this->Segmentation->GetSegmentation()->AddSegment(segment, r ? "b" : "a");
    }
    this->Labels = vtkMRMLLabelMapVolumeNode::SafeDownCast(this->Scene->AddNewNodeByClass("vtkMRMLLabelMapVolumeNode", "Cleo"));
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
    masks.push_back({ r == 0 ? "Anna"
        : r == 1             ? "Ben"
                             : "Cleo",
      rcn::VolumeFromVtk(ImageOfBall(r, VTK_UNSIGNED_CHAR), grid, "mask"), {}, 0 });
  }
  workspace.LoadCase(rcn::CaseOf("c", { rcn::VolumeFromVtk(ImageOfBall(1, VTK_SHORT), grid, "CT") }, "CT", masks));
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
  CHECK(f.Cell(Node::GetAgreementRole(), "Mean Dice of all pairs", "Value", 1) == rcn::CsvNumber(expected.Figures->mean_dice));
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
  // Shown from none to all raters, in our colors, with a legend; what nobody marked is clear.
  auto* const display = vtkMRMLScalarVolumeDisplayNode::SafeDownCast(map->GetDisplayNode());
  CHECK(display && display->GetColorNode() == f.Actions->GetColorNode());
  CHECK(display->GetWindowLevelMin() == 0 && display->GetWindowLevelMax() == 3 && display->GetApplyThreshold());
  CHECK(map->GetNumberOfDisplayNodes() == 2);
  // A segment for each "at least k".
  auto* const masks = f.Result<vtkMRMLSegmentationNode>(Node::GetMaskRole());
  CHECK(masks && masks->GetSegmentation()->GetNumberOfSegments() == 3);
  // Outlines, unless a person wants them filled.
  auto* const look = vtkMRMLSegmentationDisplayNode::SafeDownCast(masks->GetDisplayNode());
  CHECK(look && !look->GetVisibility2DFill());
  look->SetVisibility2DFill(true);
  vtkNew<vtkOrientedImageData> all;
  CHECK(masks->GetBinaryLabelmapRepresentation("RaterConsensus_level_3", all) && !all->IsEmpty());

  // A second run with another method fills the same nodes.
  const int before = f.Scene->GetNumberOfNodes();
  auto* const legend = vtkMRMLColorLegendDisplayNode::SafeDownCast(map->GetNthDisplayNode(1));
  CHECK(legend && legend->GetTitleText() == "Raters who agree (of 3)");
  CHECK(legend->GetNumberOfLabels() == 4 && legend->GetLabelFormat().find(".0") != std::string::npos); // 0 to 3 raters
  f.Parameters->SetMethod("soft");
  CHECK(f.Actions->Fuse(f.Parameters) == "" && legend->GetTitleText() == "Share of raters");
  CHECK(legend->GetLabelFormat().find(".2") != std::string::npos);
  CHECK(f.Scene->GetNumberOfNodes() == before && f.Result<vtkMRMLScalarVolumeNode>(Node::GetHeatmapRole()) == map);
  CHECK(look->GetVisibility2DFill());
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
  CHECK(f.Cell(Node::GetAgreementRole(), "Ben", "Dice with Cleo") == f.Cell(Node::GetAgreementRole(), "Cleo", "Dice with Ben"));
  rcn::Workspace workspace;
  UseBalls(workspace);
  CHECK(
    f.Cell(Node::GetAgreementRole(), "Anna", "Dice with Ben") == rcn::CsvNumber(workspace.Agree(false).Figures->pair[1].dice));
}

/// A rater who drew a surface, with no voxels yet.
void SurfacesBecomeVoxels()
{
  Fixture f;
  vtkNew<vtkMatrix4x4> grid;
  Tilt(grid);
  double center[4] = { 11, 10, 9, 1 };
  grid->MultiplyPoint(center, center);
  vtkNew<vtkSphereSource> sphere;
  sphere->SetCenter(center);
  sphere->SetRadius(6);
  sphere->SetThetaResolution(60);
  sphere->SetPhiResolution(60);
  sphere->Update();
  auto* const surfaces =
    vtkMRMLSegmentationNode::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLSegmentationNode", "Surfaces"));
  const std::string id = surfaces->AddSegmentFromClosedSurfaceRepresentation(sphere->GetOutput(), "Sphere");
  for (const bool known : { false, true })
  {
    if (known) // where the segmentation belongs to
    {
      surfaces->SetReferenceImageGeometryParameterFromVolumeNode(f.Image);
    }
    f.Parameters->RemoveAllRaters();
    f.Parameters->AddSegment("Dora", surfaces->GetID(), id);
    f.Parameters->AddLabelMap("Cleo", f.Labels->GetID(), 3);
    CHECK(f.Actions->Agreement(f.Parameters) == "");
    const double volume = std::atof(f.Cell(Node::GetAgreementRole(), "Dora", "Volume (mL)").c_str());
    CHECK_NEAR(volume, 4.0 / 3 * 3.14159265 * 6 * 6 * 6 / 1000, 0.05);
  }
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
  CHECK(f.Actions->Agreement(nullptr).find("Choose the image") == 0);
  CHECK(f.Actions->Check(Logic::TrainAction, nullptr).find("Choose the file") == 0);
  check(Logic::AgreementAction, "");
  check(Logic::PredictAction, "Choose a model file");
  check(Logic::ReportAction, "Choose a model file");
  check(Logic::EvaluateAction, "no probability");
  check(Logic::TrainAction, "Choose the file");
  f.Parameters->SetTrainedModelFile("m.safetensors");
  check(Logic::TrainAction, "at least two cases");
  f.Parameters->SetModelFile("/nowhere/m.safetensors");
  check(Logic::PredictAction, "does not exist");
  f.Parameters->SetMethod("nonsense");
  CHECK(f.Actions->Fuse(f.Parameters) == "Unknown method nonsense.");
  f.Parameters->SetMethod("orc");
  f.Parameters->SetRegion("nowhere");
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  check(Logic::EvaluateAction, "Unknown region nowhere");
  f.Parameters->SetRegion("box");

  // Another geometry is refused, or resampled when that is wished.
  vtkNew<vtkMatrix4x4> other;
  Tilt(other);
  other->SetElement(0, 3, 0);
  f.Labels->SetIJKToRASMatrix(other);
  const std::string geometry = f.Actions->Agreement(f.Parameters);
  CHECK(
    geometry.find("Cleo has another origin than CT") != std::string::npos && geometry.find("resampling") != std::string::npos);
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
  CHECK_THROWS(publish(), RCN_EDATA, "were removed during the computation");
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

/// A small network that has learned nothing.
std::string WriteModel(const Folder& folder, int channels = 1, std::vector<std::string> raters = { "Anna", "Ben", "Cleo" },
  const std::string& name = "m.safetensors", const std::vector<rcn::Structure>& structures = {})
{
  const rcn::Workspace workspace;
  rcn_net* net = nullptr;
  rcn_net_options options = RCN_NET_OPTIONS_INIT;
  options.arch = RCN_UNET;
  options.width = 8;
  options.depth = 1;
  options.channels = channels;
  options.outputs = (static_cast<int>(raters.size()) + 1) * std::max(1, static_cast<int>(structures.size()));
  CHECK(rcn_net_create(&net, workspace.Context(), &options) == RCN_OK && rcn_net_initialize(net, 1) == RCN_OK);
  rcn::ModelInfo info;
  info.Raters = raters;
  info.Strategy = "rps"; // a level for each number of raters
  info.Structures = structures;
  info.Loss = structures.empty() ? RCN_LOSS_RPS : RCN_LOSS_RPS_HEADS;
  const std::string path = folder / name;
  rcn::SaveModel(workspace.Context(), path, net, info);
  rcn_net_destroy(net);
  return path;
}

void ModelsPredictIntoTheScene()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
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
    CHECK(hierarchy->GetItemName(hierarchy->GetItemParent(hierarchy->GetItemByDataNode(level))) == "Case 1");
  }
  CHECK_NEAR(sum, 1, 1e-5);
  CHECK(!f.Result<vtkMRMLNode>(Node::GetLevelRole(), 4));
  const int before = f.Scene->GetNumberOfNodes();
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Scene->GetNumberOfNodes() == before);
  // Everything of the case is in one folder, which follows its name; what a person has put elsewhere stays there.
  const vtkIdType folderItem = hierarchy->GetItemChildWithName(hierarchy->GetSceneItemID(), "Case 1");
  for (vtkMRMLNode* const one : std::initializer_list<vtkMRMLNode*>{ f.Image, f.Segmentation, f.Labels, probability,
         f.Result<vtkMRMLNode>(Node::GetMaskRole()), f.Result<vtkMRMLNode>(Node::GetVolumesRole()) })
  {
    CHECK(hierarchy->GetItemParent(hierarchy->GetItemByDataNode(one)) == folderItem);
  }
  const vtkIdType own = hierarchy->CreateFolderItem(hierarchy->GetSceneItemID(), "Mine");
  hierarchy->SetItemParent(hierarchy->GetItemByDataNode(f.Image), own);
  f.Parameters->SetName("Renamed");
  CHECK(f.Actions->Agreement(f.Parameters) == "" && hierarchy->GetItemName(folderItem) == "Renamed");
  CHECK(hierarchy->GetItemParent(hierarchy->GetItemByDataNode(f.Image)) == own);
  CHECK(hierarchy->GetItemParent(hierarchy->GetItemByDataNode(f.Result<vtkMRMLNode>(Node::GetAgreementRole()))) == folderItem);
  // The same numbers as without a scene.
  rcn::Workspace workspace;
  UseBalls(workspace);
  const rcn::Model model(workspace.Context(), f.Parameters->GetModelFile());
  rcn::PredictionOptions options;
  options.Readout = "expected";
  const rcn::Prediction expected = rcn::Predict(model, workspace.Context(), workspace.Images(), "CT", options);
  const float* const wanted = static_cast<const float*>(expected.Probability.Data());
  CHECK(std::equal(
    wanted, wanted + Size[0] * Size[1] * Size[2], static_cast<const float*>(probability->GetImageData()->GetScalarPointer())));
  f.Parameters->SetReadout("at-least:9");
  CHECK(f.Actions->Predict(f.Parameters) != "");
  std::ofstream(folder / "broken.safetensors") << "no model";
  f.Parameters->SetModelFile(folder / "broken.safetensors");
  CHECK(f.Actions->Predict(f.Parameters).find("broken.safetensors") != std::string::npos);
}

/// One of the structures that a model tells apart, as if it were the only one.
void ModelsOfSeveralStructuresPredictOne()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(
    WriteModel(folder, 1, { "Anna", "Ben", "Cleo" }, "two.safetensors", { { "kidney", { 1 } }, { "tumor", { 2 } } }));
  CHECK(f.Actions->GetStructures(f.Parameters->GetModelFile()) == "kidney\ntumor");
  CHECK(f.Actions->GetStructures(WriteModel(folder)) == "" && f.Actions->GetStructures("/nowhere") == "");
  CHECK(f.Actions->Predict(f.Parameters) == "");
  auto* const probability = f.Result<vtkMRMLScalarVolumeNode>(Node::GetProbabilityRole());
  CHECK(probability && std::string(probability->GetName()).find("kidney") != std::string::npos);
  CHECK(f.Parameters->GetNumberOfNodeReferences(Node::GetLevelRole()) == 4 && f.Actions->Evaluate(f.Parameters) == "");
  const double kidney = probability->GetImageData()->GetScalarComponentAsDouble(11, 10, 9, 0);
  f.Parameters->SetStructure("tumor");
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(std::string(probability->GetName()).find("tumor") != std::string::npos);
  CHECK(probability->GetImageData()->GetScalarComponentAsDouble(11, 10, 9, 0) != kidney);
  f.Parameters->SetStructure("spleen");
  CHECK(f.Actions->Predict(f.Parameters).find("spleen") != std::string::npos);
}

/// Also of an image without raters; nothing goes into the scene.
void ModelsReportOnAnImage()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
  f.Parameters->SetName("Jane Doe");
  f.Parameters->RemoveAllRaters();
  const int before = f.Scene->GetNumberOfNodes();
  CHECK(f.Actions->Report(f.Parameters, "") == "The report needs an output file (.html).");
  CHECK(f.Actions->Report(f.Parameters, folder / "page.html") == "");
  CHECK(f.Actions->Report(f.Parameters, folder / "nameless.html", true) == "");
  CHECK(f.Scene->GetNumberOfNodes() == before);
  const std::string nameless = TextOf(folder / "nameless.html");
  CHECK(TextOf(folder / "page.html").find("Jane Doe") != std::string::npos);
  CHECK(nameless.find("Model record") != std::string::npos && nameless.find("Jane Doe") == std::string::npos);
  CHECK(f.Actions->DescribeModel(f.Parameters->GetModelFile()).find("Hash of the weights: ") != std::string::npos);

  // Stopped by the panel, or because the scene is closed: no page.
  Logic::Monitor monitor;
  monitor.Progress = [](double, const char*) { return true; };
  CHECK_THROWS(f.Actions->Prepare(Logic::ReportAction, f.Parameters, folder / "stopped.html")(monitor), RCN_ECANCELLED, "");
  const Logic::Work work = f.Actions->Prepare(Logic::ReportAction, f.Parameters, folder / "stopped.html");
  f.Actions->Cancel();
  CHECK_THROWS(work(Logic::Monitor()), RCN_ECANCELLED, "");
  CHECK(!std::filesystem::exists(folder / "stopped.html"));

  f.Parameters->SetRecalibrationFile(folder / "correction.json");
  std::ofstream(folder / "correction.json") << "{}";
  f.Parameters->SetCorrected(true);
  CHECK(f.Actions->Check(Logic::ReportAction, f.Parameters).find("store the correction in the model") != std::string::npos);
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
  rcn::Judging judging(workspace.Context(), workspace.RaterNames(), { { 0, options } });
  CHECK(judging.Add(rcn::Case(), 0, workspace.Votes(), { { workspace.Fuse(fusion).Map, "map" } }));
  const rcn::EvaluationReport expected = judging.Evaluations().front()->Report();
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

  // A consensus map is nothing that a model's correction could be fitted to; levels are no probability.
  f.Parameters->SetRecalibrationFile("c.json");
  CHECK(f.Actions->Recalibrate(f.Parameters).find("apply a model first") != std::string::npos);
  f.Parameters->SetMethod("orc");
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  CHECK(f.Actions->Evaluate(f.Parameters) != "");
}

/// What the model says about the fixture's case, without any scene.
rcn::Prediction PredictBalls(rcn::Workspace& workspace, const std::string& path, const rcn::PredictionOptions& options)
{
  UseBalls(workspace);
  const rcn::Model model(workspace.Context(), path);
  return rcn::Predict(model, workspace.Context(), workspace.Images(), "CT", options);
}

std::string JudgeBalls(
  const rcn::Workspace& workspace, const rcn::Volume& map, rcn::EvaluationOptions options, rcn_figure figure)
{
  options.Region.region = RCN_REGION_BOX;
  rcn::Judging judging(workspace.Context(), workspace.RaterNames(), { { 0, options } });
  CHECK(judging.Add(rcn::Case(), 0, workspace.Votes(), { { map, "map" } }));
  return rcn::CsvNumber(judging.Evaluations().front()->Report().Figures[figure]);
}

void LevelsAreJudged()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
  rcn::Workspace workspace;
  const rcn::Prediction expected = PredictBalls(workspace, f.Parameters->GetModelFile(), {});
  rcn::EvaluationOptions options;
  for (const rcn_figure figure : { RCN_MR_ECE, RCN_RPS, RCN_BRIER })
  {
    CHECK(f.Cell(Node::GetFiguresRole(), rcn_figure_name(figure), "Value") ==
      JudgeBalls(workspace, expected.Levels, options, figure));
  }
  // Volumes that were touched, as those of a scene that was loaded, are put together again; what was changed counts.
  vtkImageData* const level = f.Result<vtkMRMLScalarVolumeNode>(Node::GetLevelRole())->GetImageData();
  const std::string before = f.Cell(Node::GetFiguresRole(), "rps", "Value");
  level->Modified();
  CHECK(f.Actions->Evaluate(f.Parameters) == "" && f.Cell(Node::GetFiguresRole(), "rps", "Value") == before);
  level->GetPointData()->GetScalars()->Fill(0.5);
  level->GetPointData()->GetScalars()->Modified();
  CHECK(f.Actions->Evaluate(f.Parameters) != "" || f.Cell(Node::GetFiguresRole(), "rps", "Value") != before);
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Cell(Node::GetFiguresRole(), "rps", "Value") == before);
  // Volumes that were moved do not fit the image any more.
  f.Result<vtkMRMLScalarVolumeNode>(Node::GetLevelRole())->SetOrigin(0, 0, 0);
  CHECK(f.Actions->Evaluate(f.Parameters) != "");
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
  // By another readout, without predicting anew; more raters than levels are a matter of the probability.
  f.Parameters->SetReadout("expected");
  options.Calib.readout = RCN_READOUT_EXPECTED;
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Cell(Node::GetFiguresRole(), "mr_ece", "Value") == JudgeBalls(workspace, expected.Levels, options, RCN_MR_ECE));
  f.Parameters->SetReadout("at-least:4");
  CHECK(f.Actions->Evaluate(f.Parameters) != "");
  f.Parameters->SetReadout("nonsense");
  CHECK(f.Actions->Evaluate(f.Parameters) == "Unknown readout nonsense.");
  CHECK(f.Actions->Predict(f.Parameters) == "Unknown readout nonsense.");
  f.Parameters->SetReadout("");
  f.Parameters->AddLabelMap("Dora", f.Labels->GetID(), 3);
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Actions->GetRemarks().find("are for other raters") != std::string::npos);
  CHECK(f.Cell(Node::GetFiguresRole(), "rps", "Value") != before); // through the binomial distribution of four raters
  f.Parameters->SetRecalibrationFile(folder / "c.json");
  CHECK(f.Actions->Recalibrate(f.Parameters).find("A temperature is fitted to the levels") != std::string::npos);
}

/// A network that has learned the balls, a little.
std::string LearnModel(const Folder& folder)
{
  vtkNew<vtkMatrix4x4> grid;
  Tilt(grid);
  rcn::DataList list;
  list.Raters = { "Anna", "Ben", "Cleo" };
  rcn::Case one;
  const rcn::Volume image = rcn::VolumeFromVtk(ImageOfBall(1, VTK_SHORT), grid, "CT");
  for (int r = 0; r < 3; ++r)
  {
    rcn::RaterFile rater;
    rater.Name = list.Raters[static_cast<size_t>(r)];
    rater.Path = folder / (rater.Name + ".nrrd");
    rcn::WriteImage(rater.Path, rcn::VolumeFromVtk(ImageOfBall(r, VTK_UNSIGNED_CHAR), grid, "mask").View(), rcn::Content::Mask);
    one.Raters.push_back(rater);
  }
  for (const char* const split : { "training", "validation" })
  {
    one.Id = one.Split = split;
    one.Images = { folder / (one.Id + ".nrrd") };
    rcn::WriteImage(one.Images[0], rcn::ResampleLinear(image, image.Geometry()).View(), rcn::Content::Probability);
    list.Cases.push_back(one);
  }
  rcn::TrainingOptions options;
  options.List = list;
  options.Output = folder / "learned.safetensors";
  options.Net.width = 8;
  options.Net.depth = 2;
  options.Epochs = 6;
  options.Recalibrate = false;
  options.Rate = 0.01;
  rcn::TrainModel(options);
  return options.Output;
}

void CorrectionsGoRound()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(LearnModel(folder));
  f.Parameters->CorrectedOn();
  CHECK(f.Actions->Predict(f.Parameters).find("Choose the file of the correction") == 0);
  f.Parameters->SetRecalibrationFile(folder / "c.json");
  CHECK(f.Actions->Predict(f.Parameters).find("c.json does not exist") != std::string::npos);
  f.Parameters->CorrectedOff();
  CHECK(f.Actions->Recalibrate(f.Parameters).find("apply a model first") != std::string::npos);
  CHECK(f.Actions->Predict(f.Parameters) == "");

  // Temperature, on levels: before and after in the chart.
  CHECK(f.Actions->Recalibrate(f.Parameters) == "");
  CHECK(f.Actions->GetRemarks().find("temperature") != std::string::npos);
  rcn::Recalibration fitted = rcn::ReadRecalibration(folder / "c.json");
  CHECK(fitted.Correction.method == RCN_RECALIB_TEMPERATURE && fitted.Correction.levels == 4);
  CHECK(f.Result<vtkMRMLPlotChartNode>(Node::GetChartRole())->GetNumberOfPlotSeriesNodes() == 3);
  const Logic::Results& results = f.Actions->GetResults(f.Parameters);
  CHECK(results.EvaluationBefore && results.Evaluation->Figures[RCN_RPS] < results.EvaluationBefore->Figures[RCN_RPS]);
  const std::string after = f.Cell(Node::GetFiguresRole(), "rps", "Value");
  CHECK(after != f.Cell(Node::GetFiguresRole(), "rps", "Before"));

  // Applied: as without a scene, and what was promised.
  f.Parameters->CorrectedOn();
  CHECK(f.Actions->Predict(f.Parameters) == "");
  rcn::Workspace workspace;
  rcn::PredictionOptions options;
  options.Correction = &fitted;
  const rcn::Prediction expected = PredictBalls(workspace, f.Parameters->GetModelFile(), options);
  const float* const wanted = static_cast<const float*>(expected.Probability.Data());
  auto* const probability = f.Result<vtkMRMLScalarVolumeNode>(Node::GetProbabilityRole());
  CHECK(std::equal(
    wanted, wanted + Size[0] * Size[1] * Size[2], static_cast<const float*>(probability->GetImageData()->GetScalarPointer())));
  CHECK(probability->GetAttribute("RaterConsensus.Correction") == folder / "c.json");
  CHECK(f.Actions->Recalibrate(f.Parameters).find("already corrected") != std::string::npos);
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Actions->GetRemarks().find("fitted to this case") != std::string::npos);
  CHECK(f.Cell(Node::GetFiguresRole(), "rps", "Value") == after && !results.EvaluationBefore);
  CHECK(f.Cell(Node::GetFiguresRole(), "rps", "Before") == "");

  // One readout alone: levels, which would tell another story, leave the scene; another readout does not fit.
  f.Parameters->CorrectedOff();
  f.Parameters->SetRecalibrationMethod("isotonic");
  f.Parameters->SetReadout("expected");
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->GetRemarks() == "");
  CHECK(!probability->GetAttribute("RaterConsensus.Correction"));
  CHECK(f.Actions->Recalibrate(f.Parameters) == "");
  CHECK(rcn::ReadRecalibration(folder / "c.json").Readout == RCN_READOUT_EXPECTED);
  f.Parameters->CorrectedOn();
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(f.Parameters->GetNumberOfNodeReferences(Node::GetLevelRole()) == 0);
  auto* const masks = f.Result<vtkMRMLSegmentationNode>(Node::GetMaskRole());
  CHECK(masks->GetSegmentation()->GetNumberOfSegments() == 1);
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
  f.Parameters->SetReadout("majority");
  CHECK(f.Actions->Predict(f.Parameters).find("was fitted to the readout expected") != std::string::npos);

  // A file that is no correction; a model that has one; a disk that is full.
  std::ofstream(folder / "c.json") << "{}";
  CHECK(f.Actions->Predict(f.Parameters).find("c.json") != std::string::npos);
  f.Parameters->CorrectedOff();
  CHECK(f.Actions->Predict(f.Parameters) == "");
  const int nodes = f.Scene->GetNumberOfNodes();
  f.Parameters->SetRecalibrationFile("/dev/full");
  if (std::filesystem::exists("/dev/full"))
  {
    CHECK(f.Actions->Recalibrate(f.Parameters).find("/dev/full") != std::string::npos);
    CHECK(f.Scene->GetNumberOfNodes() == nodes);
  }
  rcn::Check(rcn_model_set(workspace.Context(), f.Parameters->GetModelFile().c_str(), "recalibration",
               rcn::RecalibrationText(fitted).c_str()),
    workspace.Context());
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(f.Actions->GetRemarks().find("in place of") == std::string::npos);
  CHECK(
    f.Actions->Recalibrate(f.Parameters).find("already corrected (in the model); evaluate it without") != std::string::npos);
  // A file is applied in place of the model's own, never both, and it is said.
  f.Parameters->SetRecalibrationFile(folder / "t.json");
  rcn::WriteRecalibration(folder / "t.json", fitted);
  f.Parameters->CorrectedOn();
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(f.Actions->GetRemarks().find("t.json is applied in place of the correction that is stored in ") != std::string::npos);
}

/// "At least k", by the model: one inside the other.
void ModelContoursAreSegments()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
  f.Parameters->SetThreshold(0.3);
  CHECK(f.Actions->Fuse(f.Parameters) == "" && f.Actions->Predict(f.Parameters) == "");
  auto* const masks = f.Result<vtkMRMLSegmentationNode>(Node::GetMaskRole());
  CHECK(masks->GetSegmentation()->GetNumberOfSegments() == 3 + 3 + 1);
  rcn::Workspace workspace;
  rcn::PredictionOptions options;
  const rcn::Prediction expected = PredictBalls(workspace, f.Parameters->GetModelFile(), options);
  const std::vector<rcn::Volume> wanted = rcn::LevelMasks(workspace.Context(), expected.Levels, 0.3);
  int64_t marked = 0;
  for (int k = 1; k <= 3; ++k)
  {
    const std::string id = "RaterConsensus_model_level_" + std::to_string(k);
    vtkSegment* const segment = masks->GetSegmentation()->GetSegment(id);
    CHECK(segment && segment->GetName() == "At least " + std::to_string(k) + " of 3, model");
    std::string terminology;
    CHECK(segment->GetTag(vtkSegment::GetTerminologyEntryTagName(), terminology) && !terminology.empty());
    vtkNew<vtkOrientedImageData> mask;
    CHECK(masks->GetBinaryLabelmapRepresentation(id, mask));
    const uint8_t* const voxels = static_cast<const uint8_t*>(wanted[static_cast<size_t>(k - 1)].Data());
    int64_t count = 0;
    for (int64_t i = 0; i < Size[0] * Size[1] * Size[2]; ++i)
    {
      const int at[3] = { static_cast<int>(i % Size[0]), static_cast<int>(i / Size[0] % Size[1]),
        static_cast<int>(i / Size[0] / Size[1]) };
      const int* const extent = mask->GetExtent();
      const bool inside = at[0] >= extent[0] && at[0] <= extent[1] && at[1] >= extent[2] && at[1] <= extent[3] &&
        at[2] >= extent[4] && at[2] <= extent[5];
      const bool is = inside && mask->GetScalarComponentAsDouble(at[0], at[1], at[2], 0) != 0;
      count += is == (voxels[i] != 0);
      marked += is;
    }
    CHECK(count == Size[0] * Size[1] * Size[2]);
  }
  CHECK(marked > 0);
  const int before = f.Scene->GetNumberOfNodes();
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Scene->GetNumberOfNodes() == before);
  CHECK(masks->GetSegmentation()->GetNumberOfSegments() == 7);
}

void TrainsOnTheScenesCases()
{
  Fixture f;
  f.AddCase("Case 2");
  f.AddCase("Case 3");
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  f.Parameters->SetTrainingMinutes(0.02);
  int epochs = 0;
  Logic::Monitor monitor;
  monitor.Epoch = [&](const rcn::TrainingEpoch&) { ++epochs; };
  std::string plan;
  monitor.Training = [&](const rcn::TrainingProgress& now) { plan = plan.empty() ? rcn::CourseInWords(now.Course) : plan; };
  CHECK(f.Actions->Keep(f.Parameters) != "" && f.Actions->Discard(f.Parameters) != "");
  f.Actions->Prepare(Logic::TrainAction, f.Parameters)(monitor)();
  CHECK(epochs > 0 && std::filesystem::exists(folder / "new.safetensors"));
  CHECK(plan.find("2 cases for training, 1 for validation; ") == 0);
  const auto& training = f.Actions->GetResults(f.Parameters).Training;
  CHECK(training && training->HasBefore && training->Raters.size() == 3);
  CHECK(f.Result<vtkMRMLPlotChartNode>(Node::GetChartRole())->GetNumberOfPlotSeriesNodes() == 3); // ideal, after, before
  // Kept: it is the model now, and the next one gets another name. Nothing is trained over it.
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters) == "Keep or discard the trained model first.");
  // Whether a temperature is stored is said, and a correction that was fitted to other weights is no longer applied.
  CHECK(!training->TemperatureInWords.empty());
  CHECK(f.Actions->GetRemarks().find(training->TemperatureInWords) != std::string::npos);
  const bool unchanged = training->KeptStart;
  f.Parameters->CorrectedOn();
  CHECK(f.Actions->Keep(f.Parameters) == "" && f.Actions->Keep(f.Parameters) != "");
  CHECK(f.Parameters->GetCorrected() == unchanged);
  f.Parameters->CorrectedOff();
  CHECK(f.Parameters->GetModelFile() == folder / "new.safetensors");
  CHECK(f.Parameters->GetTrainedModelFile() == folder / "new-2.safetensors");
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters) == "");
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  CHECK(f.Actions->Train(f.Parameters).find("new.safetensors already exists") != std::string::npos);
  f.Parameters->SetTrainedModelFile(folder / "other.safetensors");
  std::ofstream(folder / "other.log.csv") << "of somebody else";
  CHECK(f.Actions->Train(f.Parameters).find("other.log.csv already exists") != std::string::npos);
  f.Parameters->SetTrainedModelFile(folder / "other.pt");
  CHECK(f.Actions->Train(f.Parameters).find("ends with .safetensors") != std::string::npos);
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Result<vtkMRMLPlotChartNode>(Node::GetChartRole())->GetNumberOfPlotSeriesNodes() == 2);
}

/// In place of the raters of the last case: segmentations of a liver, the balls, and a kidney, which Cleo does not mark.
void UseSegmentations(Fixture& f)
{
  const char* const names[3] = { "Anna", "Ben", "Cleo" };
  vtkNew<vtkMatrix4x4> grid;
  Tilt(grid);
  f.Parameters->RemoveAllRaters();
  for (int r = 0; r < 3; ++r)
  {
    auto* const drawn = vtkMRMLSegmentationNode::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLSegmentationNode", names[r]));
    drawn->CreateDefaultDisplayNodes();
    drawn->SetReferenceImageGeometryParameterFromVolumeNode(f.Image);
    for (int c = 0; c < (r < 2 ? 2 : 1); ++c)
    {
      const vtkSmartPointer<vtkImageData> voxels = ImageOfBall(r, VTK_UNSIGNED_CHAR);
      const std::vector<uint8_t> kidney = Ball(Size, 3, 3, 3 + r, 2);
      for (size_t i = 0; c == 1 && i < kidney.size(); ++i)
      {
        static_cast<unsigned char*>(voxels->GetScalarPointer())[i] = kidney[i];
      }
      vtkNew<vtkOrientedImageData> mask;
      mask->vtkImageData::DeepCopy(voxels);
      mask->SetImageToWorldMatrix(grid);
      vtkNew<vtkSegment> segment;
      segment->SetName(c ? "kidney" : "liver");
      segment->AddRepresentation(vtkSegmentationConverter::GetSegmentationBinaryLabelmapRepresentationName(), mask);
      drawn->GetSegmentation()->AddSegment(segment, c ? "k" : "l");
    }
    f.Parameters->AddSegmentation(names[r], drawn->GetID());
  }
}

/// One segmentation for each rater, its segments are the structures: everything is about the chosen one.
void SegmentationsAreRatersOfStructures()
{
  Fixture f;
  CHECK(f.Actions->GetStructuresOfRaters(f.Parameters) == "");
  UseSegmentations(f);
  CHECK(f.Actions->GetStructuresOfRaters(f.Parameters) == "liver\nkidney");
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  rcn::Workspace workspace;
  UseBalls(workspace);
  const rcn::AgreementReport liver = workspace.Agree(true);
  CHECK(f.Cell(Node::GetAgreementRole(), "Mean Dice of all pairs", "Value", 1) == rcn::CsvNumber(liver.Figures->mean_dice));
  CHECK(f.Cell(Node::GetAgreementRole(), "Cleo", "Volume (mL)") == rcn::CsvNumber(liver.Figures->rater[2].volume_ml));
  f.Parameters->SetStructure("kidney");
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  CHECK(f.Cell(Node::GetAgreementRole(), "Cleo", "Volume (mL)") == "0");
  CHECK(f.Cell(Node::GetAgreementRole(), "Anna", "Volume (mL)") != "0");
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  rcn::mrml::Views views;
  views.ShowRaters(f.Parameters, 0, 1);
  const auto isShown = [&f](int rater) {
    auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(f.Parameters->GetNthRaterNode(rater));
    return vtkMRMLSegmentationDisplayNode::SafeDownCast(segmentation->GetDisplayNode())->GetSegmentVisibility("l");
  };
  CHECK(isShown(0) && isShown(1) && !isShown(2));
  views.ShowRaters(f.Parameters, -1, -1);
  CHECK(isShown(0) && isShown(2));
  // An eye for each structure: of all raters.
  vtkMRMLSegmentationNode::SafeDownCast(f.Parameters->GetNthRaterNode(0))
    ->GetSegmentation()
    ->GetSegment("k")
    ->SetColor(1, 0, .5);
  views.ShowStructure(f.Parameters, "liver", false);
  CHECK(!isShown(0) && !isShown(2));
  const std::vector<rcn::mrml::Views::StructureLook> looks = views.Structures(f.Parameters);
  CHECK(looks.size() == 2 && looks[0].Name == "liver" && !looks[0].Visible);
  CHECK(looks.size() == 2 && looks[1].Name == "kidney" && looks[1].Visible && looks[1].Rgb[0] == 1 && looks[1].Rgb[2] == .5);
  views.ShowStructure(f.Parameters, "liver", true);
  CHECK(isShown(0) && isShown(2) && views.Structures(f.Parameters)[0].Visible);
  f.Parameters->SetStructure("spleen");
  const std::string sentence = f.Actions->Agreement(f.Parameters);
  CHECK(sentence.find("spleen") != std::string::npos && sentence.find("kidney") != std::string::npos);
  f.Parameters->SetStructure("");
  f.Parameters->AddLabelMap("Dora", f.Labels->GetID(), 3);
  CHECK(f.Actions->Agreement(f.Parameters).find("rater Dora has one mask") != std::string::npos);
  // Label maps tell structures apart by the names of their colors; 3 is what this one holds.
  f.Parameters->RemoveNthRater(3);
  f.Parameters->AddLabelMap("Dora", f.Labels->GetID(), 0);
  CHECK(f.Actions->Agreement(f.Parameters).find("have no name of a structure") != std::string::npos);
  auto* const colors = vtkMRMLColorTableNode::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLColorTableNode", "organs"));
  colors->SetTypeToUser();
  colors->SetNumberOfColors(4);
  colors->SetColor(3, "liver", 1, 0, 0, 1);
  auto* const display =
    vtkMRMLDisplayNode::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLLabelMapVolumeDisplayNode", "organs"));
  display->SetAndObserveColorNodeID(colors->GetID());
  f.Labels->SetAndObserveDisplayNodeID(display->GetID());
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  CHECK(f.Cell(Node::GetAgreementRole(), "Dora", "Volume (mL)") == f.Cell(Node::GetAgreementRole(), "Cleo", "Volume (mL)"));
  f.Parameters->SetStructure("kidney");
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  CHECK(f.Cell(Node::GetAgreementRole(), "Dora", "Volume (mL)") == "0");
}

/// What is shown follows the units of the application; what the tables hold does not.
void UnitsAreThoseOfTheApplication()
{
  vtkNew<vtkMRMLScene> scene;
  CHECK(rcn::mrml::UnitsOf(scene).Volume.Name == "mL" && rcn::mrml::UnitsOf(nullptr).Area.Name == "mm²");
  vtkNew<vtkMRMLSelectionNode> selection;
  scene->AddNode(selection);
  vtkNew<vtkMRMLUnitNode> volume, area;
  volume->SetSuffix("cm3");
  volume->SetDisplayCoefficient(0.001);
  area->SetSuffix("cm2");
  area->SetDisplayCoefficient(0.01);
  scene->AddNode(volume);
  scene->AddNode(area);
  selection->SetUnitNodeID("volume", volume->GetID());
  selection->SetUnitNodeID("area", area->GetID());
  const rcn::Units usual = rcn::mrml::UnitsOf(scene);
  CHECK(usual.Volume.Name == "mL" && std::fabs(usual.Volume.Factor - 1) < 1e-12);
  CHECK(usual.Area.Name == "cm²" && usual.Area.Factor == 0.01 && usual.Length.Name == "mm");
  volume->SetSuffix("mm3");
  volume->SetDisplayCoefficient(1);
  CHECK(rcn::mrml::UnitsOf(scene).Volume.Name == "mm³" && rcn::mrml::UnitsOf(scene).Volume.Factor == 1000);
  volume->SetSuffix("");
  CHECK(rcn::mrml::UnitsOf(scene).Volume.Name == "mL");
}

/// A model of all structures from the scene's segmentations.
void TrainsOnSeveralStructures()
{
  Fixture f;
  UseSegmentations(f);
  f.AddCase("Case 2");
  UseSegmentations(f);
  f.AddCase("Case 3");
  CHECK(f.Actions->Train(f.Parameters) != ""); // this case has one structure
  UseSegmentations(f);
  const Folder folder;
  f.Parameters->SetTrainedModelFile(folder / "organs.safetensors");
  f.Parameters->SetTrainingMinutes(0.02);
  CHECK(f.Actions->Train(f.Parameters) == "");
  CHECK(f.Actions->Keep(f.Parameters) == "");
  CHECK(f.Actions->GetStructures(f.Parameters->GetModelFile()) == "liver\nkidney");
  f.Parameters->SetStructure("kidney");
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(f.Actions->Evaluate(f.Parameters) == "");
}

/// Two of three cases; discarding takes away what training wrote and nothing else.
void TrainsOnChosenCases()
{
  Fixture f;
  Node* const first = f.Parameters;
  f.AddCase("Case 2");
  f.AddCase("Case 3");
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
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
  workspace.LoadCase(rcn::CaseOf("c", { phantom.Image }, "image", phantom.Raters));
  CHECK(f.Actions->GetResults(node).Agreement->Figures->mean_dice == workspace.Agree(false).Figures->mean_dice);
  const float* const wanted = static_cast<const float*>(phantom.Image.Data());
  auto* const image = vtkMRMLScalarVolumeNode::SafeDownCast(f.Scene->GetNodeByID(node->GetImageNodeID()));
  CHECK(std::equal(wanted, wanted + rcn_geometry_voxels(&phantom.Image.Geometry()),
    static_cast<const float*>(image->GetImageData()->GetScalarPointer())));
  Node* const second = f.Actions->AddExampleCase();
  CHECK(second != node && f.Actions->Agreement(second) == "");
  CHECK(
    f.Actions->GetResults(second).Agreement->Figures->mean_dice != f.Actions->GetResults(node).Agreement->Figures->mean_dice);
}

/// From a data list, without any image in the scene: chart and tables, by the node's region and bins.
void TrainsOnADataList()
{
  Fixture f;
  const Folder folder;
  f.Scene->Clear();
  f.Parameters = Node::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode", "Our cases"));
  f.Parameters->SetDataListFile(folder / "list.json");
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  f.Parameters->SetTrainingMinutes(0.01);
  f.Parameters->SetRegion("disputed");
  f.Parameters->SetBins(4);
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters).find("list.json does not exist") != std::string::npos);
  WritePhantomList(folder);
  f.Parameters->SetModelFile(folder / "nowhere.safetensors");
  CHECK(f.Actions->Train(f.Parameters).find("nowhere.safetensors does not exist") != std::string::npos);
  // A model of other raters is refused before anything is learned.
  f.Parameters->SetModelFile(WriteModel(folder));
  const std::string unfit = f.Actions->Train(f.Parameters);
  CHECK(unfit.find("has a rater A, on whom") != std::string::npos && !std::filesystem::exists(folder / "new.safetensors"));
  f.Parameters->SetModelFile(WriteModel(folder, 1, { "A", "B", "C" }));
  CHECK(f.Actions->Train(f.Parameters) == "");
  auto* const chart = f.Result<vtkMRMLPlotChartNode>(Node::GetChartRole());
  CHECK(chart && chart->GetNumberOfPlotSeriesNodes() == 3);
  CHECK(std::string(chart->GetTitle()).find("Our cases: ") == 0 && std::string(chart->GetName()).find("Our cases - ") == 0);
  const auto& training = f.Actions->GetResults(f.Parameters).Training;
  CHECK(training && training->Judged.Region.region == RCN_REGION_DISPUTED && training->After.Bins.size() == 4);
  CHECK(f.Cell(Node::GetFiguresRole(), "mr_ece", "Before") == rcn::CsvNumber(training->Before.Figures[RCN_MR_ECE]));
  CHECK(f.Actions->Keep(f.Parameters) == "");
}

/// A case of the scene that training cannot take is named, with what can be done about it.
void TrainingNamesTheCase()
{
  Fixture f;
  f.AddCase("Case 2");
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder, 3));
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  f.Parameters->SetTrainingMinutes(0.01);
  std::string sentence = f.Actions->Train(f.Parameters);
  CHECK(sentence != "" && sentence.find("raterconsensus-") == std::string::npos && folder.Count() == 1);
  f.Parameters->SetModelFile("");
  vtkNew<vtkMatrix4x4> grid, other;
  f.Labels->GetIJKToRASMatrix(grid);
  other->DeepCopy(grid);
  other->SetElement(0, 3, 0);
  f.Labels->SetIJKToRASMatrix(other);
  sentence = f.Actions->Train(f.Parameters);
  CHECK(sentence.find("Case 2: Cleo has another origin than CT") != std::string::npos);
  CHECK(sentence.find("Switch on resampling") != std::string::npos);
  f.Labels->SetIJKToRASMatrix(grid);
  f.Parameters->SetModelFile(folder / "m.safetensors");
  vtkNew<vtkImageData> image;
  image->SetDimensions(static_cast<int>(Size[0]), static_cast<int>(Size[1]), static_cast<int>(Size[2]));
  image->AllocateScalars(VTK_FLOAT, 1);
  image->GetPointData()->GetScalars()->Fill(1);
  image->SetScalarComponentFromDouble(3, 4, 5, 0, std::nan(""));
  f.Image->SetAndObserveImageData(image);
  sentence = f.Actions->Train(f.Parameters);
  CHECK(sentence == "CT has voxels that are not a number.");
  CHECK(f.Actions->Predict(f.Parameters) != ""); // three channels
  f.Parameters->SetModelFile(WriteModel(folder));
  CHECK(f.Actions->Predict(f.Parameters) == "CT has voxels that are not a number.");
  CHECK(f.Actions->Agreement(f.Parameters) == ""); // raters are judged by each other
  image->SetDimensions(0, 0, 0);
  image->AllocateScalars(VTK_FLOAT, 1);
  f.Image->SetAndObserveImageData(image);
  CHECK(f.Actions->Predict(f.Parameters) == "CT has no voxels." && f.Actions->Fuse(f.Parameters) == "CT has no voxels.");
  f.Image->SetAndObserveImageData(nullptr);
  CHECK(f.Actions->Check(Logic::PredictAction, f.Parameters) == "CT has no voxels.");
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters).find("at least two cases") != std::string::npos);
  f.Parameters->AddTrainingCase(f.Parameters->GetID());
  CHECK(f.Actions->Check(Logic::TrainAction, f.Parameters) == "Case 2: CT has no voxels.");
}

/// Pictures with three components, and single slices.
void OtherKindsOfImages()
{
  for (const int depth : { 1, 4 })
  {
    Fixture f;
    const Folder folder;
    auto* const image = vtkMRMLScalarVolumeNode::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLVectorVolumeNode", "Photo"));
    vtkNew<vtkImageData> voxels, mask;
    for (vtkImageData* const one : { voxels.Get(), mask.Get() })
    {
      one->SetDimensions(20, 18, depth);
      one->AllocateScalars(VTK_UNSIGNED_CHAR, one == voxels.Get() ? 3 : 1);
      one->GetPointData()->GetScalars()->Fill(0);
    }
    for (int x = 5; x < 12; ++x)
    {
      for (int y = 6; y < 14; ++y)
      {
        mask->SetScalarComponentFromDouble(x, y, 0, 0, 1);
        voxels->SetScalarComponentFromDouble(x, y, 0, x % 3, 200);
      }
    }
    image->SetAndObserveImageData(voxels);
    f.Labels->SetAndObserveImageData(mask);
    vtkNew<vtkMatrix4x4> plain;
    f.Labels->SetIJKToRASMatrix(plain);
    f.Parameters->SetImageNodeID(image->GetID());
    f.Parameters->RemoveAllRaters();
    f.Parameters->AddLabelMap("Anna", f.Labels->GetID(), 1); // one rater
    CHECK(f.Actions->Agreement(f.Parameters) == "");
    CHECK(f.Cell(Node::GetAgreementRole(), "Mean Dice of all pairs", "Value", 1) == "not defined");
    CHECK(f.Actions->Fuse(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
    f.Parameters->SetModelFile(WriteModel(folder));
    CHECK(f.Actions->Predict(f.Parameters).find("Photo has 3 channels") != std::string::npos);
    f.Parameters->SetModelFile(WriteModel(folder, 3, { "Anna" }));
    CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
    CHECK(f.Result<vtkMRMLScalarVolumeNode>(Node::GetLevelRole(), 1) && !f.Result<vtkMRMLNode>(Node::GetLevelRole(), 2));
    CHECK(f.Cell(Node::GetFiguresRole(), "rps", "Value") != "not defined");
  }
}

void SixtyFourRaters()
{
  Fixture f;
  const Folder folder;
  f.Parameters->RemoveAllRaters();
  std::vector<std::string> names;
  for (int r = 0; r < RCN_MAX_RATERS; ++r)
  {
    names.push_back("Rater " + std::to_string(r + 1));
    f.Parameters->AddSegment(names.back(), f.Segmentation->GetID(), r % 2 ? "a" : "b");
  }
  f.Parameters->SurfacesOff();
  CHECK(f.Actions->Agreement(f.Parameters) == "" && f.Actions->Fuse(f.Parameters) == "");
  auto* const masks = f.Result<vtkMRMLSegmentationNode>(Node::GetMaskRole());
  CHECK(masks->GetSegmentation()->GetNumberOfSegments() == 64);
  f.Parameters->SetModelFile(WriteModel(folder, 1, names));
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Parameters->GetNumberOfNodeReferences(Node::GetLevelRole()) == 65);
  CHECK(f.Cell(Node::GetFiguresRole(), "rps", "Value") != "not defined");
  CHECK(masks->GetSegmentation()->GetNumberOfSegments() == 64 + 64 + 1);
  // A model of three raters leaves no level of sixty-four behind.
  f.Parameters->SetModelFile(WriteModel(folder));
  CHECK(f.Actions->Predict(f.Parameters) == "");
  CHECK(f.Parameters->GetNumberOfNodeReferences(Node::GetLevelRole()) == 4);
  CHECK(masks->GetSegmentation()->GetNumberOfSegments() == 64 + 3 + 1);
  f.Parameters->AddSegment("One more", f.Segmentation->GetID(), "a");
  CHECK(f.Actions->Agreement(f.Parameters) == "There can be at most 64 raters.");
}

/// Training on a thread of its own, as the panel does it, while the scene is closed or the parameters are deleted.
void TrainingOutlivesItsScene()
{
  for (const bool close : { true, false })
  {
    Fixture f;
    f.AddCase("Case 2");
    const Folder folder;
    f.Parameters->SetModelFile(WriteModel(folder));
    f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
    f.Parameters->SetTrainingMinutes(100);
    const Logic::Work work = f.Actions->Prepare(Logic::TrainAction, f.Parameters);
    std::atomic<bool> learning{ false };
    Logic::Publish publish;
    std::string sentence;
    std::thread thread([&] {
      Logic::Monitor monitor;
      monitor.Epoch = [&](const rcn::TrainingEpoch& epoch) { learning = learning || (epoch.Epoch > 0 && epoch.Best); };
      try
      {
        publish = work(monitor);
      }
      catch (const rcn::Error& error)
      {
        sentence = error.what();
        learning = true;
      }
    });
    while (!learning)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (close)
    {
      f.Scene->Clear();
    }
    else
    {
      f.Scene->RemoveNode(f.Parameters);
      f.Actions->Cancel();
    }
    thread.join();
    // There is a better model. Without parameters the sentence says where; with the scene it goes.
    CHECK(sentence == "" && publish && std::filesystem::exists(folder / "new.safetensors"));
    const int nodes = f.Scene->GetNumberOfNodes();
    if (publish && close)
    {
      CHECK_THROWS(publish(), RCN_ECANCELLED, "scene was closed");
    }
    else if (publish)
    {
      CHECK_THROWS(publish(), RCN_EDATA, "The new model is in " + (folder / "new.safetensors"));
    }
    publish = nullptr;
    CHECK(f.Scene->GetNumberOfNodes() == nodes && folder.Count() == (close ? 1 : 4));
  }
}

/// A result that nobody takes, or that nobody kept when the scene was closed, leaves no file behind.
void TrainingThatNobodyKeepsGoes()
{
  Fixture f;
  f.AddCase("Case 2");
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
  f.Parameters->SetTrainedModelFile(folder / "new.safetensors");
  f.Parameters->SetTrainingMinutes(0.01);
  Logic::Publish publish = f.Actions->Prepare(Logic::TrainAction, f.Parameters)(Logic::Monitor());
  CHECK(folder.Count() > 1);
  publish = nullptr; // the panel has gone
  CHECK(folder.Count() == 1 && f.Actions->Check(Logic::TrainAction, f.Parameters) == "");
  CHECK(f.Actions->Train(f.Parameters) == "" && folder.Count() > 1);
  f.Scene->Clear();
  CHECK(folder.Count() == 1);
}

/// A slice view, as far as the scene knows it.
vtkMRMLSliceCompositeNode* AddView(vtkMRMLScene* scene, const char* name)
{
  vtkNew<vtkMRMLSliceNode> slice;
  slice->SetLayoutName(name);
  slice->SetName(name);
  scene->AddNode(slice);
  vtkNew<vtkMRMLSliceCompositeNode> view;
  view->SetLayoutName(name);
  return vtkMRMLSliceCompositeNode::SafeDownCast(scene->AddNode(view));
}

bool Shows(vtkMRMLSliceCompositeNode* view, vtkMRMLNode* image, vtkMRMLNode* map)
{
  const auto same = [](const char* id, vtkMRMLNode* node) {
    return node ? id && !std::strcmp(id, node->GetID()) : id == nullptr;
  };
  return same(view->GetBackgroundVolumeID(), image) && same(view->GetForegroundVolumeID(), map);
}

void ViewsBelongToTheChosenCase()
{
  Fixture f;
  vtkMRMLSliceCompositeNode* const red = AddView(f.Scene, "Red");
  vtkMRMLSliceCompositeNode* const yellow = AddView(f.Scene, "Yellow");
  vtkNew<vtkMRMLLayoutNode> layout;
  layout->AddLayoutDescription(
    vtkMRMLLayoutNode::SlicerLayoutSideBySideView, "<layout type=\"horizontal\"><item><view/></item></layout>");
  f.Scene->AddNode(layout);
  rcn::mrml::Views views;
  Node* const first = f.Parameters;
  vtkMRMLScalarVolumeNode* const image = f.Image;
  vtkMRMLSegmentationNode* const raters = f.Segmentation;
  CHECK(views.ShowCase(f.Scene, first) && Shows(red, image, nullptr) && !views.ShowCase(f.Scene, first));
  CHECK(f.Actions->Fuse(first) == "");
  views.ShowMap(f.Scene, first, Node::GetHeatmapRole());
  vtkMRMLNode* const consensus = f.Result<vtkMRMLNode>(Node::GetHeatmapRole());
  CHECK(Shows(red, image, consensus) && Shows(yellow, image, consensus) && red->GetForegroundOpacity() > 0);

  // A second case, and back: nothing of the other one stays.
  f.AddCase("Case 2");
  CHECK(views.ShowCase(f.Scene, f.Parameters) && Shows(red, f.Image, nullptr));
  CHECK(f.Segmentation->GetDisplayVisibility() && !raters->GetDisplayVisibility());
  CHECK(views.ShowCase(f.Scene, first) && Shows(red, image, consensus) && Shows(yellow, image, consensus));
  CHECK(!f.Segmentation->GetDisplayVisibility() && raters->GetDisplayVisibility());

  // The model's map is the one that comes back when it was shown last.
  const Folder folder;
  first->SetModelFile(WriteModel(folder));
  CHECK(f.Actions->Predict(first) == "");
  vtkMRMLNode* const probability = first->GetNodeReference(Node::GetProbabilityRole());
  views.ShowMap(f.Scene, first, Node::GetProbabilityRole());
  views.ShowCase(f.Scene, f.Parameters);
  views.ShowCase(f.Scene, first);
  CHECK(Shows(red, image, probability));

  // Side by side: consensus and model of the chosen case; then back to the layout, but not to the other case.
  const int users = layout->GetViewArrangement();
  views.ShowSideBySide(f.Scene, first);
  CHECK(views.IsSideBySide() && Shows(red, image, consensus) && Shows(yellow, image, probability));
  views.ShowCase(f.Scene, f.Parameters);
  CHECK(Shows(red, f.Image, nullptr) && Shows(yellow, f.Image, nullptr));
  views.ShowSideBySide(f.Scene, nullptr);
  views.ShowCase(f.Scene, f.Parameters);
  CHECK(layout->GetViewArrangement() == users && Shows(red, f.Image, nullptr) && Shows(yellow, f.Image, nullptr));

  // What a person put there stays.
  auto* const other = vtkMRMLScalarVolumeNode::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLScalarVolumeNode", "PET"));
  yellow->SetBackgroundVolumeID(other->GetID());
  CHECK(views.ShowCase(f.Scene, first) && Shows(red, image, probability) && Shows(yellow, other, nullptr));

  // Two raters alone, and all of them again.
  auto* const display = vtkMRMLSegmentationDisplayNode::SafeDownCast(raters->GetDisplayNode());
  rcn::mrml::Views::ShowRaters(first, 1, 2);
  CHECK(!display->GetSegmentVisibility("a") && display->GetSegmentVisibility("b"));
  rcn::mrml::Views::ShowRaters(first, -1, -1);
  CHECK(display->GetSegmentVisibility("a") && display->GetSegmentVisibility("b"));
}

/// Closing a scene changes nothing that is shown: the subject hierarchy goes first and would complain about masks that are not
/// in it any more.
void ClosingIsQuiet()
{
  Fixture f;
  f.Scene->Clear();
  Node* const node = f.Actions->AddExampleCase();
  CHECK(f.Actions->Agreement(node) == "" && f.Actions->Fuse(node) == "");
  node->LevelsIn3DOn();
  f.Actions->ShowResults(node);
  f.Actions->ShowDispute(node, 0);
  int events = 0;
  vtkNew<vtkCallbackCommand> count;
  count->SetClientData(&events);
  count->SetCallback([](vtkObject*, unsigned long, void* data, void*) { ++*static_cast<int*>(data); });
  std::vector<vtkMRMLNode*> masks;
  f.Scene->GetNodesByClass("vtkMRMLSegmentationNode", masks);
  CHECK(masks.size() == 2);
  for (vtkMRMLNode* const one : masks)
  {
    one->AddObserver(vtkMRMLDisplayableNode::DisplayModifiedEvent, count);
    one->AddObserver(vtkSegmentation::SegmentModified, count);
  }
  f.Scene->Clear();
  CHECK(events == 0);
}

/// Maps are clear below a share of raters, and a bin of the diagram is shown alone until that is over.
void SmallProbabilitiesAreClear()
{
  Fixture f;
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  auto* display = vtkMRMLScalarVolumeDisplayNode::SafeDownCast(
    f.Result<vtkMRMLScalarVolumeNode>(Node::GetHeatmapRole())->GetScalarVolumeDisplayNode());
  CHECK_NEAR(display->GetLowerThreshold(), 0.15, 1e-9); // 5 % of three raters
  f.Parameters->SetTransparentBelow(0.5);
  f.Actions->ShowResults(f.Parameters);
  CHECK_NEAR(display->GetLowerThreshold(), 1.5, 1e-9);
  f.Parameters->SetTransparentBelow(0);
  f.Actions->ShowResults(f.Parameters);
  CHECK(display->GetLowerThreshold() > 0 && display->GetLowerThreshold() < 0.01); // what nobody marks is never shown
  f.Parameters->SetMethod("soft");
  f.Parameters->SetTransparentBelow(0.2);
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  CHECK_NEAR(display->GetLowerThreshold(), 0.2, 1e-9);
  rcn::mrml::Views::ShowBin(f.Parameters, 0.4, 0.5);
  CHECK(display->GetLowerThreshold() == 0.4 && display->GetUpperThreshold() < 0.5);
  rcn::mrml::Views::ShowBin(f.Parameters, -1, -1);
  CHECK_NEAR(display->GetLowerThreshold(), 0.2, 1e-9);
  CHECK(display->GetUpperThreshold() == 1);
}

/// Nested surfaces, the outer ones see-through; of the consensus or of the model.
void LevelsAreSurfaces()
{
  Fixture f;
  CHECK(f.Actions->Fuse(f.Parameters) == "");
  auto* const masks = f.Result<vtkMRMLSegmentationNode>(Node::GetMaskRole());
  auto* const display = vtkMRMLSegmentationDisplayNode::SafeDownCast(masks->GetDisplayNode());
  CHECK(!display->GetVisibility3D());
  f.Parameters->LevelsIn3DOn();
  f.Actions->ShowResults(f.Parameters);
  CHECK(display->GetVisibility3D());
  double last = 0;
  for (int k = 1; k <= 3; ++k)
  {
    const std::string id = "RaterConsensus_level_" + std::to_string(k);
    vtkNew<vtkPolyData> surface;
    CHECK(masks->GetClosedSurfaceRepresentation(id, surface) && surface->GetNumberOfPoints() > 10);
    CHECK(display->GetSegmentVisibility3D(id) && display->GetSegmentOpacity3D(id) > last);
    last = display->GetSegmentOpacity3D(id);
  }
  CHECK(last == 1);
  // A second run makes new ones; a prediction brings the model's, once it is shown.
  const Folder folder;
  f.Parameters->SetModelFile(WriteModel(folder));
  f.Parameters->SetThreshold(0.3);
  CHECK(f.Actions->Fuse(f.Parameters) == "" && f.Actions->Predict(f.Parameters) == "");
  CHECK(display->GetSegmentVisibility3D("RaterConsensus_level_2"));
  CHECK(!display->GetSegmentVisibility3D("RaterConsensus_model_level_2") &&
    !display->GetSegmentVisibility3D("RaterConsensus_prediction"));
  rcn::mrml::Views().ShowMap(f.Scene, f.Parameters, Node::GetProbabilityRole());
  CHECK(!display->GetSegmentVisibility3D("RaterConsensus_level_2"));
  CHECK(display->GetSegmentVisibility3D("RaterConsensus_model_level_2"));
  f.Parameters->LevelsIn3DOff();
  f.Actions->ShowResults(f.Parameters);
  CHECK(!display->GetVisibility3D());
}

/// A box around the region and a cross-hair, until it is left.
void VisitedRegionsAreMarked()
{
  Fixture f;
  auto* const crosshair = vtkMRMLCrosshairNode::SafeDownCast(f.Scene->AddNewNodeByClass("vtkMRMLCrosshairNode"));
  CHECK(f.Actions->Agreement(f.Parameters) == "");
  const int nodes = f.Scene->GetNumberOfNodes();
  CHECK(f.Actions->ShowDispute(f.Parameters, 0) && crosshair->GetCrosshairMode() == vtkMRMLCrosshairNode::ShowBasic);
  auto* const box = f.Result<vtkMRMLMarkupsROINode>(Node::GetVisitedRole());
  CHECK(box && !box->GetSaveWithScene() && box->GetLocked());
  if (!box)
  {
    return;
  }
  const rcn_dispute region = f.Actions->GetResults(f.Parameters).Agreement->Regions[0];
  double center[3];
  box->GetCenter(center);
  vtkNew<vtkMatrix4x4> rasToIjk;
  f.Image->GetRASToIJKMatrix(rasToIjk);
  double at[4] = { center[0], center[1], center[2], 1 };
  rasToIjk->MultiplyPoint(at, at);
  for (int a = 0; a < 3; ++a)
  {
    const double first = static_cast<double>(region.box.first[a]), end = static_cast<double>(region.box.end[a]);
    CHECK_NEAR(at[a], (first + end - 1) / 2, 1e-6);
    CHECK_NEAR(box->GetSize()[a], (end - first) * f.Image->GetSpacing()[a], 1e-6);
  }
  // Another one takes its place, and nothing is left when it is left.
  f.Actions->ShowDispute(f.Parameters, f.Actions->GetNumberOfDisputes(f.Parameters) - 1);
  f.Actions->LeaveDispute(f.Parameters);
  CHECK(f.Scene->GetNumberOfNodes() == nodes && !f.Result<vtkMRMLNode>(Node::GetVisitedRole()));
  CHECK(crosshair->GetCrosshairMode() == vtkMRMLCrosshairNode::NoCrosshair);
  // A cross-hair that a person wanted stays.
  crosshair->SetCrosshairMode(vtkMRMLCrosshairNode::ShowSmallBasic);
  f.Actions->ShowDispute(f.Parameters, 0);
  f.Actions->LeaveDispute(f.Parameters);
  CHECK(crosshair->GetCrosshairMode() == vtkMRMLCrosshairNode::ShowSmallBasic);
}

std::string SceneFolder;

/// Saved with all results and loaded anew: everything is there, and nothing is computed twice. With a folder as argument the
/// scene stays there (Testing/Data/Slicer was made so).
void ResultsSurviveTheSceneFile()
{
  Fixture f;
  CHECK(f.Actions->Agreement(f.Parameters) == "" && f.Actions->Fuse(f.Parameters) == ""); // with a segment for each level
  f.Parameters->SetMethod("soft-gaussian");
  CHECK(f.Actions->Fuse(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
  const Folder own;
  const std::string folder = SceneFolder.empty() ? own / "scene" : SceneFolder;
  std::filesystem::create_directories(folder);
  vtkNew<vtkMRMLApplicationLogic> application;
  application->SetMRMLScene(f.Scene);
  CHECK(application->SaveSceneToSlicerDataBundleDirectory(folder.c_str()));
  std::string file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
  {
    file = entry.path().extension() == ".mrml" ? entry.path().string() : file;
  }
  Fixture g;
  g.Scene->Clear();
  g.Scene->SetURL(file.c_str());
  CHECK(g.Scene->Connect());
  g.Parameters = Node::SafeDownCast(g.Scene->GetFirstNodeByClass("vtkMRMLRaterConsensusNode"));
  CHECK(g.Parameters != nullptr);
  if (!g.Parameters)
  {
    return;
  }
  CHECK(g.Cell(Node::GetFiguresRole(), "mr_ece", "Value") == f.Cell(Node::GetFiguresRole(), "mr_ece", "Value"));
  CHECK(g.Cell(Node::GetAgreementRole(), "Anna", "Dice with Ben") == f.Cell(Node::GetAgreementRole(), "Anna", "Dice with Ben"));
  CHECK(g.Actions->GetNumberOfDisputes(g.Parameters) == f.Actions->GetNumberOfDisputes(f.Parameters));
  auto* const map = g.Result<vtkMRMLScalarVolumeNode>(Node::GetHeatmapRole());
  CHECK(map && map->GetImageData() && map->GetDisplayNode()->GetColorNode() == g.Actions->GetColorNode());
  CHECK(g.Actions->GetColorNode()->GetNumberOfColors() == 256);
  auto* const series = g.Result<vtkMRMLPlotSeriesNode>(Node::GetSeriesRole(), 1);
  CHECK(series && series->GetTableNode() && series->GetTableNode()->GetTable()->GetNumberOfRows() > 2);
  auto* const masks = g.Result<vtkMRMLSegmentationNode>(Node::GetMaskRole());
  CHECK(masks && masks->GetSegmentation()->GetSegment("RaterConsensus_level_3"));
  // What a panel shows comes from the tables.
  const Logic::Results was = f.Actions->GetResults(f.Parameters), is = g.Actions->GetResults(g.Parameters);
  CHECK(is.Agreement && is.Evaluation && !is.EvaluationBefore && !is.Training && !is.Volumes);
  if (is.Agreement && is.Evaluation)
  {
    CHECK_NEAR(is.Agreement->Figures->pair[1].jaccard, was.Agreement->Figures->pair[1].jaccard, 1e-9);
    CHECK(is.Agreement->HasSurfaces && is.Agreement->Regions.size() == was.Agreement->Regions.size());
    CHECK(is.Agreement->Regions[0].marked_by == was.Agreement->Regions[0].marked_by);
    CHECK_NEAR(is.Evaluation->Figures[RCN_MR_ECE], was.Evaluation->Figures[RCN_MR_ECE], 1e-9);
    CHECK(is.Evaluation->Bins.size() == was.Evaluation->Bins.size() && is.Evaluation->RaterBins.size() == 3);
    CHECK(rcn::DirectionInWords(*is.Evaluation) == rcn::DirectionInWords(*was.Evaluation));
  }
  // A run in the scene that was loaded fills these nodes, too.
  const int nodes = g.Scene->GetNumberOfNodes();
  CHECK(g.Actions->Evaluate(g.Parameters) == "" && g.Actions->Fuse(g.Parameters) == "");
  CHECK(g.Scene->GetNumberOfNodes() == nodes);
}

/// A corrected prediction with its levels, saved and loaded: levels, volumes and figures are there, and what is judged are the
/// levels.
void PredictionsSurviveTheSceneFile()
{
  Fixture f;
  const Folder folder;
  f.Parameters->SetModelFile(LearnModel(folder));
  f.Parameters->SetRecalibrationFile(folder / "c.json");
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->Recalibrate(f.Parameters) == "");
  f.Parameters->CorrectedOn();
  CHECK(f.Actions->Predict(f.Parameters) == "" && f.Actions->Evaluate(f.Parameters) == "");
  CHECK(f.Actions->GetResults(f.Parameters).Evaluation->FittedHere);
  const std::string scene = folder / "scene";
  std::filesystem::create_directories(scene);
  vtkNew<vtkMRMLApplicationLogic> application;
  application->SetMRMLScene(f.Scene);
  CHECK(application->SaveSceneToSlicerDataBundleDirectory(scene.c_str()));
  std::string file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scene))
  {
    file = entry.path().extension() == ".mrml" ? entry.path().string() : file;
  }
  Fixture g;
  g.Scene->Clear();
  g.Scene->SetURL(file.c_str());
  CHECK(g.Scene->Connect());
  g.Parameters = Node::SafeDownCast(g.Scene->GetFirstNodeByClass("vtkMRMLRaterConsensusNode"));
  CHECK(g.Parameters && g.Parameters->GetNumberOfNodeReferences(Node::GetLevelRole()) == 4);
  for (int k = 0; k < 4; ++k)
  {
    auto* const level = g.Result<vtkMRMLScalarVolumeNode>(Node::GetLevelRole(), k);
    CHECK(
      level && level->GetImageData() && std::string(level->GetName()).find(std::to_string(k) + " of 3") != std::string::npos);
  }
  const Logic::Results is = g.Actions->GetResults(g.Parameters);
  CHECK(is.Volumes && is.Volumes->Raters == 3 && is.Volumes->Sentence().find("; ") != std::string::npos);
  CHECK(is.Evaluation && is.Evaluation->FittedHere && is.Evaluation->Levels.size() == 3);
  CHECK(g.Actions->Evaluate(g.Parameters) == "");
  CHECK(std::fabs(std::atof(g.Cell(Node::GetFiguresRole(), "rps", "Value").c_str()) -
          std::atof(f.Cell(Node::GetFiguresRole(), "rps", "Value").c_str())) < 1e-6);
  CHECK(g.Actions->GetRemarks().find("fitted to this case") != std::string::npos);
}

} // namespace

int vtkSlicerRaterConsensusLogicTest1(int count, char* arguments[])
{
  RegisterWhatModulesRegister();
  SceneFolder = count > 1 ? arguments[1] : "";
  RUN(ResultsSurviveTheSceneFile);
  RUN(AgreementIsTheWorkspaces);
  RUN(ConsensusIsANodeInTheImagesPlace);
  RUN(TransformsAreHardened);
  RUN(SurfacesBecomeVoxels);
  RUN(BadInputGetsASentence);
  RUN(TheSceneMayChangeMeanwhile);
  RUN(ModelsPredictIntoTheScene);
  RUN(ModelsOfSeveralStructuresPredictOne);
  RUN(ModelsReportOnAnImage);
  RUN(CalibrationIsAChart);
  RUN(LevelsAreJudged);
  RUN(CorrectionsGoRound);
  RUN(ModelContoursAreSegments);
  RUN(TrainsOnTheScenesCases);
  RUN(SegmentationsAreRatersOfStructures);
  RUN(UnitsAreThoseOfTheApplication);
  RUN(TrainsOnSeveralStructures);
  RUN(TrainsOnChosenCases);
  RUN(TrainsOnADataList);
  RUN(TrainingNamesTheCase);
  RUN(TrainingOutlivesItsScene);
  RUN(TrainingThatNobodyKeepsGoes);
  RUN(OtherKindsOfImages);
  RUN(SixtyFourRaters);
  RUN(ExamplesAreCases);
  RUN(PredictionsSurviveTheSceneFile);
  RUN(ViewsBelongToTheChosenCase);
  RUN(ClosingIsQuiet);
  RUN(SmallProbabilitiesAreClear);
  RUN(LevelsAreSurfaces);
  RUN(VisitedRegionsAreMarked);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
