// SPDX-License-Identifier: Apache-2.0
/// What is predicted about several structures. Each of them alone is predicted as one structure always was: by levels, or by
/// one probability; so that whoever judges, measures or draws a structure asks for its map and needs to know nothing more.
#ifndef rcnStructureMaps_h
#define rcnStructureMaps_h

#include <cmath>
#include <string>
#include <vector>

#include "rcnVolume.h"

namespace rcn
{

struct Recalibration;

struct StructureMaps
{
  Volume Shares;            ///< float32, a component per structure: the share of raters who give a voxel that label, or another
                            ///< readout of them
  double Correlation = NAN; ///< of the raters: with it, a share tells the levels of its structure; NaN: it does not. 1: the
                            ///< model gives one probability per structure
  std::vector<Volume> Levels; ///< by structure: its levels, where shares do not tell them; else empty

  int Count() const;
  const rcn_geometry& Geometry() const;
  /// Whether Of() gives levels.
  bool HasLevels() const { return !this->Levels.empty() || (this->Correlation >= 0 && this->Correlation < 1); }

  /// The map of one structure, 1 ... Count(): raters + 1 levels where they are known, otherwise its probability. Throws Error
  /// (RCN_EDATA) for shares that are none; `file` names the prediction.
  Volume Of(rcn_context* context, int structure, int raters, const std::string& file) const;
};

/// The shares of all labels, background first: what corrections of several structures work on, and where only they are wanted.
/// Throws Error; `file` names the prediction.
Volume CompleteShares(rcn_context* context, const Volume& shares, const std::string& file);

/// The other way round.
Volume StripShares(rcn_context* context, const Volume& means, const std::string& file);

/// With a correction applied to the shares of all labels, so that structures still do not contradict each other. Throws Error:
/// RCN_EINVALID where the correction is for something else, RCN_EDATA for shares that are none. `inside`: the only voxels that
/// matter, all others become background; null: all of them.
StructureMaps ApplyRecalibration(rcn_context* context, const Recalibration& correction, const StructureMaps& maps,
  const std::vector<uint8_t>* inside, const std::string& file);

} // namespace rcn

#endif
