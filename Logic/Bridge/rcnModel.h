// SPDX-License-Identifier: Apache-2.0
/// Model files for the shells: a network with everything that is needed to use it.
///
/// The core (rcn_model.h) knows the weights and what network they are; this adds what else stands in the
/// file's metadata, as strings with JSON inside:
///
///   raters           ["A", "B"]: in order; K = how many
///   normalization    {"kind": "fixed", "mean": [...], "std": [...]}, {"kind": "zscore"},
///                    {"kind": "percentile", "lower": 0.5, "upper": 99.5} or
///                    {"kind": "window", "center": 40, "width": 400}
///   strategy         how it was trained, by the name that `train --strategy` takes
///   loss             how outputs become levels: a name of rcn_loss_kind_name()
///   loss_parameters  [...]: of losses that have their own, such as the correlation of the raters
///   structures       [{"name": "kidney", "values": [1]}, ...]: of a model of several structures, in the order of its outputs;
///                    absent: one without a name
///   readout          majority, more-than-half, expected or at-least:T
///   tie              background: how the majority of an even number of raters was trained; absent: foreground
///   recalibration    a recalibration, as its JSON file holds it
///   volumes          for intervals of volumes without a correction: scores of validation cases (rcnVolumes.h), of several
///                    structures an object with those of each, by name
///   spacing          [x, y, z] mm: volumes are resampled to it for a 3-D network
///   axes             "LPS", say: the order in which the network knows volumes (rcn_orient.h); a 2-D network goes through
///                    slices across the last one. Absent: as they are stored
///   pixel_size       [x, y] mm: of the slices that a 2-D network was trained on; absent where nobody knows
///   version          of this library that wrote it
///
/// Further keys, which no prediction needs, are the model's record (rcnModelRecord.h).
///
/// A state dict of PyTorch with `arch`, `channels`, `raters` and `normalization` is a model: with K + 1 outputs
/// they are levels by softmax, with one output it is a probability by sigmoid.
#ifndef rcnModel_h
#define rcnModel_h

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rcn/rcn_loss.h"
#include "rcn/rcn_model.h"
#include "rcn/rcn_normalize.h"
#include "rcnEvaluation.h"
#include "rcnStructures.h"

namespace rcn
{

struct ModelInfo
{
  std::vector<std::string> Raters;
  rcn_normalize Normalization = RCN_NORMALIZE_INIT;
  std::string Strategy; ///< empty: not known
  rcn_loss_kind Loss = RCN_LOSS_RPS;
  std::vector<float> LossParameters;
  std::vector<Structure> Structures; ///< none: one without a name
  rcn_readout Readout = RCN_READOUT_MAJORITY;
  int AtLeast = 0;
  bool TieBackground = false;                      ///< "majority" means more than half then
  std::shared_ptr<const Recalibration> Correction; ///< null: none
  std::shared_ptr<const VolumeScores> Volumes;     ///< of validation cases, without the correction; null: none
  std::string Axes;                                ///< of volumes, see rcn_axes_check(); empty: as they are stored
  double PixelSize[2] = { 0, 0 };                  ///< mm, of a 2-D network's slices; 0: not known
  bool HasSpacing = false;                         ///< of rcn_net_options; read, not written here
};

/// The rule as JSON, and back; throws Error (RCN_EFORMAT) that begins with `about`.
std::string NormalizationText(const rcn_normalize& normalize);
rcn_normalize ParseNormalization(const std::string& text, const std::string& about);

/// Writes the network with its metadata, beside the target and then renamed. `more`: further keys, such as the hash of the
/// log. Throws Error.
void SaveModel(rcn_context* context, const std::string& path, const rcn_net* net, const ModelInfo& info,
  const std::vector<std::pair<std::string, std::string>>& more = {});

/// Stores a correction in a model's file, in place of the one that it has; predictions with the model apply it from then on.
/// Throws Error.
void SetCorrection(rcn_context* context, const std::string& path, const Recalibration& correction);

/// The same for what is known of volumes on validation cases, without a correction.
void SetVolumes(rcn_context* context, const std::string& path, const VolumeScores& scores);

/// A string of a model's metadata; empty where there is none. Throws Error.
std::string ModelMetadata(rcn_context* context, const std::string& path, const char* key);

/// A model that was read. The context must outlive it.
class Model
{
public:
  /// Reads and checks everything; throws Error with the file's name and what does not fit.
  Model(rcn_context* context, const std::string& path);

  const std::string& Path() const { return this->Path_; }
  const ModelInfo& Info() const { return this->Info_; }
  int RaterCount() const { return static_cast<int>(this->Info_.Raters.size()); }
  /// At least 1.
  int StructureCount() const { return rcn_loss_structures(this->Loss()); }
  bool HasSeveralStructures() const { return this->StructureCount() > 1; }
  const rcn_net_options& Options() const { return *rcn_net_get_options(this->Net_.get()); }
  /// Identifies the weights, whatever correction is stored beside them and in which order a file has them.
  std::string Hash() const;
  /// Of a fused target: its levels have nothing between none and all of the raters.
  bool GivesOneProbability() const;
  bool Is3D() const { return this->Options().arch == RCN_UNET3D; }
  /// Both are borrowed. The network is for one thread at a time.
  rcn_net* Net() const { return this->Net_.get(); }
  const rcn_loss* Loss() const { return this->Loss_.get(); }

  /// Throws Error unless a data set has the raters of the model; `about` names the set.
  void CheckRaters(const std::vector<std::string>& raters, const std::string& about) const;

  /// The same for structures, by name and in any order; one without a name fits any other.
  void CheckStructures(const std::vector<Structure>& structures, const std::string& about) const;

private:
  struct Deleter
  {
    void operator()(rcn_net* net) const { rcn_net_destroy(net); }
    void operator()(rcn_loss* loss) const { rcn_loss_destroy(loss); }
  };
  std::string Path_;
  ModelInfo Info_;
  std::unique_ptr<rcn_net, Deleter> Net_;
  std::unique_ptr<rcn_loss, Deleter> Loss_;
};

} // namespace rcn

#endif
