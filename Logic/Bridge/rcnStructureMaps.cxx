// SPDX-License-Identifier: Apache-2.0
#include "rcnStructureMaps.h"

#include "rcn/rcn_loss.h"
#include "rcn/rcn_shares.h"
#include "rcnEvaluation.h"

namespace rcn
{

// There are two kinds: the shares of all structures in one map, from which the levels of any follow, or the levels of each as
// they were predicted. One of the two is empty.
int StructureMaps::Count() const
{
  return this->Levels.empty() ? this->Shares.View().components : static_cast<int>(this->Levels.size());
}

const rcn_geometry& StructureMaps::Geometry() const
{
  return this->Levels.empty() ? this->Shares.Geometry() : this->Levels.front().Geometry();
}

Volume StructureMaps::Of(rcn_context* context, int structure, int raters, const std::string& file) const
{
  const int number = structure - 1;
  if (!this->Levels.empty())
  {
    return this->Levels[static_cast<size_t>(number)];
  }
  const rcn_geometry& geometry = this->Geometry();
  if (!this->HasLevels())
  {
    const Volume probability = Volume::Allocate(geometry, RCN_FLOAT32);
    rcn_image_copy_component(probability.Data(), 1, &this->Shares.View(), number);
    return probability;
  }
  // Computed when they are asked for: kept for all structures they would take K + 1 times the memory of the shares.
  const Volume levels = Volume::Allocate(geometry, RCN_FLOAT32, raters + 1);
  const float* mean = static_cast<const float*>(this->Shares.Data()) + number;
  Check(rcn_levels_of_mean(static_cast<float*>(levels.Data()), context, mean, this->Count(), rcn_geometry_voxels(&geometry),
          raters, this->Correlation),
    context, file);
  return levels;
}

// With the background in front, as corrections need it, and back.
Volume CompleteShares(rcn_context* context, const Volume& shares, const std::string& file)
{
  const Volume means = Volume::Allocate(shares.Geometry(), RCN_FLOAT32, shares.View().components + 1);
  Check(rcn_shares_complete(static_cast<float*>(means.Data()), context, &shares.View()), context, file);
  return means;
}

Volume StripShares(rcn_context* context, const Volume& means, const std::string& file)
{
  const Volume shares = Volume::Allocate(means.Geometry(), RCN_FLOAT32, means.View().components - 1);
  Check(rcn_shares_strip(static_cast<float*>(shares.Data()), context, &means.View()), context, file);
  return shares;
}

StructureMaps ApplyRecalibration(rcn_context* context, const Recalibration& correction, const StructureMaps& maps,
  const std::vector<uint8_t>* inside, const std::string& file)
{
  if (!maps.Levels.empty())
  {
    throw Error(RCN_EINVALID,
      "A correction of several structures needs the share of each label; " + file + " has separate levels of each structure.");
  }
  if (correction.Correction.levels != maps.Count() + 1)
  {
    throw Error(RCN_EINVALID,
      (correction.Path.empty() ? "The recalibration" : correction.Path) + " is not for " + std::to_string(maps.Count()) +
        " structures, which " + file + " holds.");
  }
  const Volume means = CompleteShares(context, maps.Shares, file);
  float* data = static_cast<float*>(means.Data());
  // Outside of the region that was judged, as in the fit: certain background.
  if (inside)
  {
    Check(rcn_region_cut(data, context, &means.View(), inside->data()), context, file);
  }
  Check(rcn_recalib_apply_levels(data, context, &correction.Correction, &means.View()), context, file);
  StructureMaps out = maps;
  out.Shares = StripShares(context, means, file);
  return out;
}

} // namespace rcn
