// SPDX-License-Identifier: Apache-2.0
// The Slicer module and the command line program, on one case. The argument is the program.
#include <vtkImageData.h>
#include <vtkMRMLScalarVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkSlicerSegmentationsModuleLogic.h>
#include <vtkSmartPointer.h>

#include "rcnSameNumbers.h"
#include "rcnSlicerTest.h"
#include "rcnVtkImage.h"
#include "vtkMRMLRaterConsensusNode.h"
#include "vtkSlicerRaterConsensusLogic.h"

namespace
{

using Node = vtkMRMLRaterConsensusNode;

std::string Program;

rcn::Volume MapOf(Node* node, const char* role, int n = 0)
{
  auto* const volume = vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNthNodeReference(role, n));
  vtkNew<vtkMatrix4x4> ijkToRas;
  volume->GetIJKToRASMatrix(ijkToRas);
  return rcn::VolumeFromVtk(volume->GetImageData(), ijkToRas, role);
}

void SceneAndCommandLineAgree()
{
  const ExampleFiles example;
  const auto scene = vtkSmartPointer<vtkMRMLScene>::New();
  const auto logic = vtkSmartPointer<vtkSlicerRaterConsensusLogic>::New();
  logic->SetMRMLScene(scene);
  vtkNew<vtkSlicerSegmentationsModuleLogic> segmentations; // as in the application
  segmentations->SetMRMLScene(scene);
  Node* const node = logic->AddExampleCase();
  ShellNumbers shell;
  CHECK(logic->Agreement(node) == "");
  shell.Agreement = *logic->GetResults(node).Agreement;
  for (const char* const method : { "orc", "random", "median", "soft", "soft-gaussian", "staple", "simple", "svls" })
  {
    node->SetMethod(method);
    CHECK(logic->Fuse(node) == "");
    shell.Fused[method] = MapOf(node, Node::GetHeatmapRole());
  }
  node->SetModelFile(example.Model);
  CHECK(logic->Predict(node) == "" && logic->Evaluate(node) == "");
  shell.Probability = MapOf(node, Node::GetProbabilityRole());
  std::vector<rcn::Volume> levels;
  for (int k = 0; k < node->GetNumberOfNodeReferences(Node::GetLevelRole()); ++k)
  {
    levels.push_back(MapOf(node, Node::GetLevelRole(), k));
  }
  shell.Levels = rcn::Interleave(levels);
  shell.Evaluation = *logic->GetResults(node).Evaluation;
  CheckSameNumbers(Program, example, shell);
}

} // namespace

int vtkSlicerRaterConsensusSameNumbersTest1(int count, char* arguments[])
{
  RegisterWhatModulesRegister();
  CHECK(count == 2);
  Program = count > 1 ? arguments[1] : "";
  RUN(SceneAndCommandLineAgree);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
