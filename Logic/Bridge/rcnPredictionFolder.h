// SPDX-License-Identifier: Apache-2.0
/// A folder of predictions: the maps of each case, and a manifest that says which they are and how they were made.
///
///   predictions.json   {"version": of this library, "model": its file, "hash": of its weights,
///                       "readout": of the probabilities, "tie": "foreground" or "background", "levels": whether the model
///                       gives levels or one probability, "correction": null, or as its JSON file holds it,
///                       "volumes": null, or without a correction the scores of volumes (rcnVolumes.h),
///                       "structures": where they have names, [{"name": ..., "values": [...]}, ...]; a probability has a
///                       component for each, in this order, "correlation": of their raters, which makes levels of expected
///                       shares; null: it does not, and levels are in files. Both are absent otherwise,
///                       "cases": [{"case": id, "files": {"prob": NAME, "levels": NAME, "mask": NAME, "uncertainty": NAME,
///                                  of several structures "labels": NAME, "STRUCTURE_levels": NAME}}],
///                       "superseded": [{"case": id, "files": [NAME, ...]}]: of earlier runs, no longer judged, and removed
///                       when the case is predicted again}
///
/// Whoever reads predictions goes by the manifest: a file that it does not name may be from an earlier run. Folders of other
/// programs have none; there the files' names decide.
#ifndef rcnPredictionFolder_h
#define rcnPredictionFolder_h

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rcnEvaluation.h"
#include "rcnStructures.h"

namespace rcn
{

/// How predictions were made: the same for all cases of a manifest.
struct PredictionRun
{
  std::string Model, Hash; ///< file, and what identifies its weights (Model::Hash())
  std::string Readout;     ///< as --readout takes it
  bool TieBackground = false;
  bool Levels = true;                              ///< false: the model gives one probability
  std::shared_ptr<const Recalibration> Correction; ///< null: none
  std::shared_ptr<const VolumeScores> Volumes;     ///< without a correction: for intervals of volumes; null: not known
  std::vector<Structure> Structures;               ///< several, the one that was asked for, or none: one without a name
  double Correlation = NAN;                        ///< of their raters (StructureMaps); NaN: shares do not tell the levels

  /// Those that belong to the maps as they are; of several structures those of all of them.
  std::shared_ptr<const VolumeScores> ScoresOfVolumes() const
  {
    const std::shared_ptr<const VolumeScores>& all = this->Correction ? this->Correction->Volumes : this->Volumes;
    return this->Structures.size() == 1 ? ScoresOf(all, this->Structures.front().Name) : all;
  }
};

/// Whether predictions of both can be judged together: the same weights, readout and correction.
bool IsSameRun(const PredictionRun& a, const PredictionRun& b);

/// A probability cannot be read out in another way than it was made: throws Error (RCN_EINVALID) where `options` ask for
/// that. `levels`: the prediction has them. `run` may be null; `file` names the prediction.
void CheckReadout(const PredictionRun* run, bool levels, const EvaluationOptions& options, const std::string& file);

/// Predictions that are corrected cannot be corrected again: throws Error (RCN_EINVALID, "corrected") about `name`, the model
/// or the folder that they are of. `run` may be null.
void RefuseCorrected(const PredictionRun* run, const std::string& name);

/// The name of the map with the levels of one of several structures, and with the structure in it what a file may be called.
std::string LevelsMap(const std::string& structure);

class PredictionFolder
{
public:
  /// Reads the manifest if there is one. Throws Error: RCN_EIO when there is no such folder, RCN_EFORMAT when the manifest
  /// cannot be used.
  explicit PredictionFolder(const std::string& path);

  /// The manifest's file, there or not.
  static std::string ManifestOf(const std::string& folder);

  bool HasManifest() const { return this->HasManifest_; }
  const PredictionRun& Run() const { return this->Run_; }

  /// The map to judge a case by: its levels, otherwise its probability. Without a manifest <id>_levels.EXT, <id>_prob.EXT or
  /// <id>.EXT. Throws Error (RCN_EIO) naming the case.
  std::string Find(const std::string& id) const;

  /// The file of a case's map that the manifest names; empty: none. Throws Error (RCN_EIO) when it is not there any more.
  std::string FindMap(const std::string& id, const std::string& map) const;

  /// The run that wrote a file, by the manifest beside it; null when none names it.
  static std::shared_ptr<const PredictionRun> RunOf(const std::string& file);

  /// Before the first map of a run is written, in one process: the cases that it is going to write leave the manifest, so that
  /// it never names what is half replaced; all cases leave it when they were made in another way, and a sentence says so.
  std::string Begin(const PredictionRun& run, const std::vector<std::string>& ids);

  /// Where a map of a case goes, such as "levels" with ".nrrd".
  static std::string FileFor(
    const std::string& folder, const std::string& id, const std::string& map, const std::string& extension);

  /// After the maps of a case were written (map -> file): removes what an earlier run left of it, as the manifest named it when
  /// it was read. Files that no manifest names are not ours to remove.
  void RemoveOlder(const std::string& id, const std::map<std::string, std::string>& files) const;

  /// The case's maps as they are now.
  void Add(const std::string& id, const std::map<std::string, std::string>& files);

  /// Writes the manifest in one step; the last thing a run does.
  void Finish();

private:
  using Files = std::map<std::string, std::string>; // map -> name in the folder

  void Read();

  std::string Path_;
  bool HasManifest_ = false;
  PredictionRun Run_;
  std::map<std::string, Files> Cases_;
  std::map<std::string, std::set<std::string>> Superseded_; // case -> files of earlier runs
  std::map<std::string, std::set<std::string>> Older_;      // case -> all of its files, as the manifest was read
};

} // namespace rcn

#endif
