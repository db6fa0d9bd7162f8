// SPDX-License-Identifier: Apache-2.0
#include "rcnMrmlTraining.h"

#include <algorithm>

#include <vtkMRMLScene.h>

#include "rcnMrmlText.h"
#include "rcnResample.h"
#include "vtkMRMLRaterConsensusNode.h"

namespace rcn
{
namespace mrml
{

namespace
{

namespace fs = std::filesystem;

std::vector<Node*> CasesOfScene(vtkMRMLScene* scene)
{
  std::vector<vtkMRMLNode*> nodes;
  scene->GetNodesByClass("vtkMRMLRaterConsensusNode", nodes);
  std::vector<Node*> cases;
  for (vtkMRMLNode* const one : nodes)
  {
    Node* const node = Node::SafeDownCast(one);
    if (node && CheckCase(node, true).empty())
    {
      cases.push_back(node);
    }
  }
  return cases;
}

} // namespace

std::vector<Node*> TrainingCases(Node* node)
{
  std::vector<Node*> cases;
  for (int n = 0; n < node->GetNumberOfTrainingCases(); ++n)
  {
    if (Node* const one = node->GetNthTrainingCase(n))
    {
      cases.push_back(one);
    }
  }
  return cases.empty() ? CasesOfScene(node->GetScene()) : cases;
}

bool IsThere(const std::string& path)
{
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

std::string NextModelFile(const std::string& model)
{
  std::string stem = fs::path(model).replace_extension().string();
  const size_t dash = stem.rfind('-');
  if (dash != std::string::npos && dash + 1 < stem.size() &&
    stem.find_first_not_of("0123456789", dash + 1) == std::string::npos)
  {
    stem.resize(dash);
  }
  for (int number = 2;; ++number)
  {
    const std::string path = stem + "-" + std::to_string(number) + ".safetensors";
    if (TrainingFileInTheWay(path).empty())
    {
      return path;
    }
  }
}

std::string CheckTrainedModelFile(const std::string& model)
{
  if (model.empty())
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "Choose the file to store the new model in.");
  }
  if (!IsModelName(model))
  {
    return vtkMRMLTr("vtkSlicerRaterConsensusLogic", "The name of a model file ends with .safetensors.");
  }
  const std::string file = TrainingFileInTheWay(model);
  return file.empty()
    ? ""
    : Filled(vtkMRMLTr("vtkSlicerRaterConsensusLogic", "%1 already exists; choose another file for the new model."), file);
}

namespace
{

/// Of all cases, each once. Throws Error where some cases have several and others one.
std::vector<Structure> StructuresOfAll(const std::vector<Input>& inputs)
{
  std::vector<Structure> all;
  for (const Input& input : inputs)
  {
    if (input.Structures.empty() != inputs.front().Structures.empty())
    {
      throw Error(
        RCN_EINVALID, input.Id + " and " + inputs.front().Id + ": one case has several structures, the other has one.");
    }
    for (const Structure& one : input.Structures)
    {
      const std::vector<std::string> names = NamesOf(all);
      if (std::find(names.begin(), names.end(), one.Name) == names.end())
      {
        all.push_back({ one.Name, { static_cast<int64_t>(all.size()) + 1 } });
      }
    }
  }
  return all;
}

} // namespace

DataList CasesOf(const std::vector<Input>& inputs)
{
  DataList list;
  list.Path = "The scene";
  list.Structures = StructuresOfAll(inputs);
  for (const Input& input : inputs)
  {
    std::string id = input.Id;
    const auto isTaken = [&id](const Case& one) { return one.Id == id; };
    for (int number = 2; std::any_of(list.Cases.begin(), list.Cases.end(), isTaken); ++number)
    {
      id = input.Id + " (" + std::to_string(number) + ")";
    }
    list.Cases.push_back(CaseOf(id, { input.Image }, input.ImageName, input.Masks, list.Structures));
    list.Cases.back().Split = "training";
    for (const RaterMask& mask : input.Masks)
    {
      if (std::find(list.Raters.begin(), list.Raters.end(), mask.Name) == list.Raters.end())
      {
        list.Raters.push_back(mask.Name);
      }
    }
  }
  return list;
}

TrainingResult Trained(TrainingOptions options)
{
  for (Case& one : options.List.Cases)
  {
    if (!one.Memory)
    {
      continue;
    }
    auto own = std::make_shared<CaseInMemory>(*one.Memory);
    for (Volume& image : own->Images)
    {
      CheckFinite(image, one.Images.front());
      image = ResampleLinear(image, image.Geometry()); // a copy: a person may change the scene meanwhile
    }
    for (RaterMask& mask : own->Masks)
    {
      for (StructureMask& structure : mask.Structures)
      {
        structure.Mask = ResampleNearest(structure.Mask, structure.Mask.Geometry());
      }
      if (!mask.Structures.empty())
      {
        continue;
      }
      mask.Mask = ResampleNearest(mask.Mask, mask.Mask.Geometry()); // likewise: label maps are the scene's own
    }
    one.Memory = own;
  }
  const bool isFree = TrainingFileInTheWay(options.Output).empty(); // otherwise somebody else has begun to train to this file
  try
  {
    TrainingResult result = TrainModel(options);
    if (!IsThere(result.Model))
    {
      throw Error(RCN_ECANCELLED, "Training was stopped before there was a model.");
    }
    return result;
  }
  catch (const std::exception&)
  {
    if (isFree && !IsThere(options.Output))
    {
      RemoveTraining(options.Output);
    }
    throw;
  }
}

} // namespace mrml
} // namespace rcn
