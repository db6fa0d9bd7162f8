// SPDX-License-Identifier: Apache-2.0
/// The files of a training: model, checkpoint and log; what is stored of its options and of its epochs.
#ifndef rcnTrainingFiles_h
#define rcnTrainingFiles_h

#include "rcn/rcn_file.h"
#include "rcnJson.h"
#include "rcnTraining.h"

namespace rcn
{

/// Epochs as the checkpoint and results for machines hold them (the caller owns the JSON); and as MODEL.log.csv does, one row
/// each. EpochFrom() takes whatever a file holds: a figure that is missing is NaN, an epoch 0.
json_t* EpochJson(const TrainingEpoch& epoch);
json_t* EpochsJson(const std::vector<TrainingEpoch>& epochs);
TrainingEpoch EpochFrom(const json_t* json);
std::string EpochsCsv(const std::vector<TrainingEpoch>& epochs);

/// A number of a checkpoint, where anything may stand: NaN when it is none.
double NumberAt(const json_t* object, const char* key);
/// A count likewise: 0 when it is none or beyond reason.
int CountAt(const json_t* object, const char* key);

/// What a model or checkpoint says of its training; null: nothing that can be read. Throws Error when the file cannot be read.
JsonHandle ReadTrainingEntry(rcn_context* context, const std::string& path);

/// An option in a protocol, whichever version of the program wrote it; null: none.
const json_t* ProtocolValue(const json_t* protocol, const std::string& key);

/// Throws Error when a checkpoint's protocol differs from the one of now.
void CheckProtocol(const json_t* now, const json_t* then, const std::string& path);

/// Nobody else writes the files of a training while the lock is held. Throws Error when they cannot be written, or are those
/// of another training that nobody allowed to replace: by Overwrite, by Resume, which goes on from a checkpoint, or `inPlace`,
/// by naming the model to go on from.
std::shared_ptr<rcn_file_lock> ClaimTrainingFiles(rcn_context* context, const TrainingOptions& options, bool inPlace);

} // namespace rcn

#endif
