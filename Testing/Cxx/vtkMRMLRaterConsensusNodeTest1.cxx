// SPDX-License-Identifier: Apache-2.0
// The parameter node: what it keeps through copying, saving and loading, and when nodes leave the scene.
#include "vtkMRMLRaterConsensusNode.h"

#include <cstring>

#include <vtkMRMLLabelMapVolumeNode.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkNew.h>
#include <vtkSmartPointer.h>

#include "rcnTest.h"

namespace
{

const char* const OddName = "Dr. \"Ä\" <a&b>; 50 %, really";

vtkSmartPointer<vtkMRMLScene> MakeScene()
{
  auto scene = vtkSmartPointer<vtkMRMLScene>::New();
  scene->RegisterNodeClass(vtkSmartPointer<vtkMRMLRaterConsensusNode>::New());
  return scene;
}

vtkMRMLRaterConsensusNode* Fill(vtkMRMLScene* scene)
{
  auto* const node = vtkMRMLRaterConsensusNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode", "Case 1"));
  node->SetImageNodeID(scene->AddNewNodeByClass("vtkMRMLScalarVolumeNode", "CT")->GetID());
  vtkMRMLNode* const labels = scene->AddNewNodeByClass("vtkMRMLLabelMapVolumeNode", "L1");
  vtkMRMLNode* const more = scene->AddNewNodeByClass("vtkMRMLLabelMapVolumeNode", "L2");
  node->AddLabelMap(OddName, labels->GetID(), 3);
  node->AddSegment("Ben", more->GetID(), "Segment_1;2");
  node->AddLabelMap("Cleo", more->GetID(), 0);
  node->SetMethod("staple");
  node->SetSigma(2.5);
  node->TieBackgroundOn();
  node->ResampleOn();
  node->SurfacesOff();
  node->SetModelFile("/models/a b.safetensors");
  node->SetReadout("at-least:2");
  node->SetThreshold(0.25);
  node->SetRegion("disputed");
  node->SetBins(10);
  node->SetRecalibrationMethod("isotonic");
  node->SetRecalibrationFile("c.json");
  node->CorrectedOn();
  node->AddTrainingCase(scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode", "Case 2")->GetID());
  node->AddTrainingCase(node->GetID());
  node->AddTrainingCase(node->GetID()); // once is enough
  node->SetDataListFile("list.json");
  node->SetTrainedModelFile("new.safetensors");
  node->SetTrainingMinutes(3.5);
  node->SetStrategy("rps");
  node->SetNetwork("unet3d");
  node->SetStructure("left kidney");
  node->SetTransparentBelow(0.25);
  node->LevelsIn3DOn();
  node->SetShownRole(node->GetProbabilityRole());
  node->SetNodeReferenceID(node->GetHeatmapRole(), node->GetImageNodeID());
  return node;
}

void CheckFilled(vtkMRMLRaterConsensusNode* node, bool references)
{
  CHECK(node->GetNumberOfRaters() == 3);
  CHECK(node->GetNthRaterName(0) == OddName && node->GetNthRaterValue(0) == 3 && node->GetNthRaterSegmentID(0).empty());
  CHECK(node->GetNthRaterName(1) == "Ben" && node->GetNthRaterSegmentID(1) == "Segment_1;2");
  CHECK(node->GetNthRaterName(2) == "Cleo" && node->GetNthRaterValue(2) == 0);
  CHECK(node->GetNthRaterName(3).empty() && node->GetNthRaterName(-1).empty() && !node->GetNthRaterNode(3));
  CHECK(node->GetMethod() == "staple" && node->GetSigma() == 2.5 && node->GetTieBackground());
  CHECK(node->GetResample() && !node->GetSurfaces());
  CHECK(node->GetModelFile() == "/models/a b.safetensors" && node->GetReadout() == "at-least:2");
  CHECK(node->GetThreshold() == 0.25 && node->GetRegion() == "disputed" && node->GetBins() == 10);
  CHECK(node->GetRecalibrationMethod() == "isotonic" && node->GetRecalibrationFile() == "c.json");
  CHECK(node->GetCorrected());
  CHECK(node->GetDataListFile() == "list.json" && node->GetTrainedModelFile() == "new.safetensors");
  CHECK(node->GetTrainingMinutes() == 3.5);
  CHECK(node->GetStrategy() == "rps" && node->GetNetwork() == "unet3d" && node->GetStructure() == "left kidney");
  CHECK(node->GetTransparentBelow() == 0.25 && node->GetLevelsIn3D() && node->GetShownRole() == node->GetProbabilityRole());
  if (references)
  {
    CHECK(node->GetNthRaterNode(0) && !std::strcmp(node->GetNthRaterNode(0)->GetName(), "L1"));
    CHECK(node->GetNthRaterNode(1) && !std::strcmp(node->GetNthRaterNode(1)->GetName(), "L2"));
    CHECK(node->GetNthRaterNode(2) == node->GetNthRaterNode(1));
    CHECK(node->GetNumberOfTrainingCases() == 2 && !node->GetNthTrainingCase(2) && !node->GetNthTrainingCase(-1));
    CHECK(node->GetNthTrainingCase(0) && !std::strcmp(node->GetNthTrainingCase(0)->GetName(), "Case 2"));
    CHECK(node->GetNthTrainingCase(1) && !std::strcmp(node->GetNthTrainingCase(1)->GetName(), "Case 1"));
    vtkMRMLNode* const image = node->GetNodeReference(node->GetHeatmapRole());
    CHECK(image && !std::strcmp(image->GetName(), "CT") && !std::strcmp(image->GetID(), node->GetImageNodeID()));
  }
}

void Copies()
{
  const vtkSmartPointer<vtkMRMLScene> scene = MakeScene();
  vtkMRMLRaterConsensusNode* const node = Fill(scene);
  CheckFilled(node, true);
  auto* const copy = vtkMRMLRaterConsensusNode::SafeDownCast(scene->AddNewNodeByClass("vtkMRMLRaterConsensusNode"));
  copy->Copy(node);
  CheckFilled(copy, true);
  // Who stays keeps name and mask, whoever goes.
  vtkMRMLNode* const last = copy->GetNthRaterNode(2);
  const std::string name = copy->GetNthRaterName(2);
  copy->RemoveNthRater(3);
  copy->RemoveNthRater(1);
  CHECK(copy->GetNumberOfRaters() == 2 && copy->GetNthRaterName(1) == name && copy->GetNthRaterNode(1) == last && last);
  copy->RemoveNthRater(0);
  CHECK(copy->GetNumberOfRaters() == 1 && copy->GetNthRaterName(0) == name && copy->GetNthRaterNode(0) == last);
  copy->RemoveAllRaters();
  CHECK(copy->GetNumberOfRaters() == 0 && node->GetNumberOfRaters() == 3);
  copy->RemoveAllTrainingCases();
  copy->CorrectedOff();
  CHECK(copy->GetNumberOfTrainingCases() == 0 && node->GetNumberOfTrainingCases() == 2 && node->GetCorrected());
  copy->AddLabelMap("Again", node->GetNthRaterNode(0)->GetID(), 1);
  CHECK(copy->GetNthRaterNode(0) == node->GetNthRaterNode(0) && !copy->GetNthRaterNode(1));
}

void SurvivesTheSceneFile()
{
  const vtkSmartPointer<vtkMRMLScene> scene = MakeScene();
  Fill(scene);
  scene->SetSaveToXMLString(1);
  scene->Commit();
  const std::string text = scene->GetSceneXMLString();
  // Into a scene that has nodes with these ids already: all references must follow.
  const vtkSmartPointer<vtkMRMLScene> other = MakeScene();
  other->AddNewNodeByClass("vtkMRMLScalarVolumeNode", "Other");
  other->AddNewNodeByClass("vtkMRMLLabelMapVolumeNode", "Other");
  other->SetLoadFromXMLString(1);
  other->SetSceneXMLString(text);
  other->Import();
  auto* const read = vtkMRMLRaterConsensusNode::SafeDownCast(other->GetFirstNodeByClass("vtkMRMLRaterConsensusNode"));
  CHECK(read != nullptr);
  if (read)
  {
    CheckFilled(read, true);
  }
}

/// A mask that is deleted must not give its rater, or those after it, another one's mask.
void NodesMayLeave()
{
  const vtkSmartPointer<vtkMRMLScene> scene = MakeScene();
  vtkMRMLRaterConsensusNode* const node = Fill(scene);
  scene->RemoveNode(node->GetNthRaterNode(0));
  CHECK(node->GetNumberOfRaters() == 3 && !node->GetNthRaterNode(0));
  CHECK(node->GetNthRaterNode(1) && !std::strcmp(node->GetNthRaterNode(1)->GetName(), "L2"));
  CHECK(node->GetNthRaterNode(2) && node->GetNthRaterName(2) == "Cleo");
  scene->RemoveNode(node->GetNthTrainingCase(0));
  CHECK(node->GetNumberOfTrainingCases() == 1 && node->GetNthTrainingCase(0) == node);
}

} // namespace

int vtkMRMLRaterConsensusNodeTest1(int, char*[])
{
  RUN(Copies);
  RUN(SurvivesTheSceneFile);
  RUN(NodesMayLeave);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
