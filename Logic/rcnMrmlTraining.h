// SPDX-License-Identifier: Apache-2.0
/// Training on the cases of a scene: which they are, as what files training reads them, and the files that it writes.
#ifndef rcnMrmlTraining_h
#define rcnMrmlTraining_h

#include <filesystem>
#include <string>
#include <vector>

#include "rcnDataList.h"
#include "rcnMrmlCase.h"
#include "rcnTemporaryFolder.h"
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

/// The scene's cases as files that training can read. For any thread.
DataList WriteCases(const TemporaryFolder& folder, const std::vector<Input>& inputs);

/// Trains, on the scene's cases where there are any; files of a training that ends without a model go with it. For any
/// thread. Throws Error.
TrainingResult Trained(const TrainingOptions& options, const std::vector<Input>& inputs);

} // namespace mrml
} // namespace rcn

#endif
