// SPDX-License-Identifier: Apache-2.0
/// What a model says about itself: what it learned from, and how well its probabilities were calibrated on cases that it did
/// not learn from. Pages, the viewer and Slicer show it; whoever looks at a prediction has to know it.
///
/// It stands in the metadata of the model's file (rcnModel.h), as strings with JSON inside:
///
///   training     how it was trained, with the names of its cases; written by training
///   created      the day of the training, "2026-11-17", UTC
///   calibration  {"validation": {...}, "test": {...}}: what judging found, with the bins of its diagram, the number of cases,
///                the day, and what identifies the weights and the correction that were judged
///
/// Files without them are models all the same; what is not known is called so.
#ifndef rcnModelRecord_h
#define rcnModelRecord_h

#include <string>
#include <utility>
#include <vector>

#include "rcnModel.h"
#include "rcnPredictionFolder.h"
#include "rcnRecalibration.h"

namespace rcn
{

/// What judging found on cases of one kind.
struct RecordedCalibration
{
  std::string Split; ///< "validation", "test"
  std::string Day;   ///< "2026-11-17"; empty: not known
  rcn_region_options Region = RCN_REGION_OPTIONS_INIT;
  std::string Readout;
  size_t Learned = 0;      ///< so many of the cases have names of cases that the model learned from
  bool IsOutdated = false; ///< the model's correction was changed since
  EvaluationReport Report; ///< figures, intervals and bins; everything else is not recorded

  /// "MR-ECE 2.31 % (95 %: 1.90 to 2.80 %), 12 cases, box (20 voxels around the marks), 2026-11-17", and what is wrong with it.
  std::string InWords() const;
};

struct ModelRecord
{
  std::string File, Hash, Version, Created, Network, Strategy, Spacing, Normalization, Readout,
    Correction; ///< empty: not known
  std::vector<std::string> Raters;
  std::vector<std::string> Structures;                     ///< by name; empty: one without a name
  bool HasCases = false;                                   ///< whether it says what it learned from
  std::vector<std::string> TrainingCases, ValidationCases; ///< names
  int64_t OlderCases = 0;                                  ///< of an earlier training, seen again in this one
  std::vector<RecordedCalibration> Calibration;            ///< validation first
  std::string Problem; ///< why a part of the record cannot be read, as a sentence; empty: nothing

  const RecordedCalibration* Find(const std::string& split) const;
};

/// Reads the record of a model. A record that cannot be read does not make the model useless: Problem says so.
ModelRecord RecordOf(rcn_context* context, const Model& model);

/// The record in two sentences: what it learned from, and how well it was calibrated.
std::string RecordInWords(const ModelRecord& record);

/// The record line by line, what and value. `anonymous`: without the names of files, cases and raters.
std::vector<std::pair<std::string, std::string>> RecordRows(const ModelRecord& record, bool anonymous = false);

/// Stores what judging this model found on the cases of a split, in place of what was stored for that split; what belongs to
/// other weights goes. `ids`: the cases, to see whether the model learned from some of them. Throws Error.
void RecordCalibration(rcn_context* context, const std::string& path, const std::string& split, const EvaluationReport& report,
  const EvaluationOptions& options, const std::vector<std::string>& ids = {});

/// Stores a correction in a model's file (SetCorrection()), and where it was tested on several validation cases, what is to be
/// expected of the model with it. `split`: of the cases that it was fitted to. Throws Error.
void StoreCorrection(
  rcn_context* context, const std::string& path, const RecalibrationResult& result, const std::string& split);

/// Throws Error (RCN_EINVALID) unless predictions were made by this model as it is now, with its correction; `run` may be null,
/// `source` names the predictions.
void CheckMadeBy(const Model& model, const PredictionRun* run, const std::string& source);

} // namespace rcn

#endif
