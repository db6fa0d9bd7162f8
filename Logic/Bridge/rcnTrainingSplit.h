// SPDX-License-Identifier: Apache-2.0
/// Who learns and who validates.
#ifndef rcnTrainingSplit_h
#define rcnTrainingSplit_h

#include <vector>

#include "rcnDataList.h"

namespace rcn
{

struct TrainingOptions;

struct TrainingSplit
{
  std::vector<Case> Training, Validation;
  std::vector<Case> Old; ///< cases of an earlier training that are rehearsed
};

/// Divides the options' cases: as the list says, by fold, or by taking a share of the training cases, whole patients at a time.
/// Throws Error when nobody learns, or when an image or a patient would be on both sides.
TrainingSplit DivideCases(const TrainingOptions& options);

} // namespace rcn

#endif
