// SPDX-License-Identifier: Apache-2.0
#include "rcnMrmlTraining.h"

#include <algorithm>
#include <cstring>

#include <vtkMRMLScene.h>

#include "vtkMRMLRaterConsensusNode.h"

namespace rcn
{
namespace mrml
{

namespace
{

namespace fs = std::filesystem;
const char* const ModelEnding = ".safetensors";

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
    const std::string path = stem + "-" + std::to_string(number) + ModelEnding;
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
    return "Choose the file to store the new model in.";
  }
  if (model.size() <= std::strlen(ModelEnding) ||
    model.compare(model.size() - std::strlen(ModelEnding), std::string::npos, ModelEnding) != 0)
  {
    return std::string("The name of a model's file ends with ") + ModelEnding + ".";
  }
  const std::string file = TrainingFileInTheWay(model);
  return file.empty() ? "" : file + " is there already; choose another file for the new model.";
}

DataList WriteCases(const TemporaryFolder& folder, const std::vector<Input>& inputs)
{
  DataList list;
  for (size_t i = 0; i < inputs.size(); ++i)
  {
    CheckFinite(inputs[i]);
    const std::shared_ptr<Workspace> workspace = Open(inputs[i]);
    const rcn_votes* const votes = workspace->Votes();
    const rcn_pattern* const patterns = rcn_votes_patterns(votes);
    const std::string stem = "c" + std::to_string(i);
    Case one;
    one.Id = inputs[i].Id;
    for (int number = 2; std::any_of(list.Cases.begin(), list.Cases.end(), [&](const Case& c) { return c.Id == one.Id; });
      ++number)
    {
      one.Id = inputs[i].Id + " (" + std::to_string(number) + ")";
    }
    one.Split = "training";
    one.Images = { folder / (stem + ".nrrd") };
    WriteImage(one.Images[0], AsFloat(inputs[i].Image).View(), Content::Probability);
    const Volume mask = Volume::Allocate(*rcn_votes_geometry(votes), RCN_UINT8);
    std::vector<uint8_t> table(static_cast<size_t>(rcn_votes_pattern_count(votes)));
    for (size_t r = 0; r < workspace->RaterNames().size(); ++r)
    {
      for (size_t p = 0; p < table.size(); ++p)
      {
        table[p] = patterns[p].marked >> r & 1;
      }
      Check(rcn_votes_expand_u8(static_cast<uint8_t*>(mask.Data()), workspace->Context(), votes, table.data()),
        workspace->Context());
      RaterFile file;
      file.Name = workspace->RaterNames()[r];
      file.Path = folder / (stem + "_" + std::to_string(r) + ".nrrd");
      WriteImage(file.Path, mask.View(), Content::Mask);
      one.Raters.push_back(file);
      if (std::find(list.Raters.begin(), list.Raters.end(), file.Name) == list.Raters.end())
      {
        list.Raters.push_back(file.Name);
      }
    }
    list.Cases.push_back(one);
  }
  return list;
}

namespace
{

/// A sentence about a temporary file is one about what was written there.
std::string InWordsOfTheScene(std::string sentence, const DataList& list, const std::vector<Input>& inputs)
{
  const auto replace = [&sentence](const std::string& from, const std::string& to) {
    for (size_t at = sentence.find(from); at != std::string::npos; at = sentence.find(from, at + to.size()))
    {
      sentence.replace(at, from.size(), to);
    }
  };
  for (size_t i = 0; i < list.Cases.size(); ++i)
  {
    for (const RaterFile& rater : list.Cases[i].Raters)
    {
      replace(rater.Path, inputs[i].Id + ", " + rater.Name);
    }
    replace(list.Cases[i].Images.front(), inputs[i].ImageName);
  }
  return sentence;
}

} // namespace

TrainingResult Trained(const TrainingOptions& options, const std::vector<Input>& inputs)
{
  TrainingOptions own = options;
  DataList list;
  std::unique_ptr<TemporaryFolder> folder;
  if (!inputs.empty())
  {
    folder.reset(new TemporaryFolder);
    list = WriteCases(*folder, inputs);
    own.List = &list;
  }
  const bool isFree = TrainingFileInTheWay(options.Output).empty(); // otherwise somebody else has begun to train to this file
  try
  {
    TrainingResult result = TrainModel(own);
    if (!IsThere(result.Model))
    {
      throw Error(RCN_ECANCELLED, "Training was stopped before there was a model.");
    }
    return result;
  }
  catch (const std::exception& error)
  {
    if (isFree && !IsThere(options.Output))
    {
      RemoveTraining(options.Output);
    }
    if (const auto* const known = dynamic_cast<const Error*>(&error))
    {
      throw Error(known->Status(), InWordsOfTheScene(known->what(), list, inputs));
    }
    throw;
  }
}

} // namespace mrml
} // namespace rcn
