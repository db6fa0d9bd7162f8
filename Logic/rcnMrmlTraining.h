// SPDX-License-Identifier: Apache-2.0
/// Training on the cases of a scene: which they are, and the files that training writes.
#ifndef rcnMrmlTraining_h
#define rcnMrmlTraining_h

#include <filesystem>
#include <string>
#include <vector>

#include "rcnDataList.h"
#include "rcnMrmlCase.h"
#include "rcnTraining.h"

namespace rcn
{
namespace mrml
{

/// What training learns from: those the node names, or all that can be used.
std::vector<Node*> TrainingCases(Node* node);

bool IsThere(const std::string& path);

/// The sentence that says why no model can be written there; nothing that is there already may be overwritten.
std::string CheckTrainedModelFile(const std::string& model);

/// The first of NAME-2, NAME-3, ... that nothing lies at.
std::string NextModelFile(const std::string& model);

/// The scene's cases as they are in memory, all of them for training, each with another id. No voxel is looked at.
DataList CasesOf(const std::vector<Input>& inputs);

/// Trains; files of a training that ends without a model are removed. For any thread. Throws Error.
TrainingResult Trained(TrainingOptions options);

} // namespace mrml
} // namespace rcn

#endif
