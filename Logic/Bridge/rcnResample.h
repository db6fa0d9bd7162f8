// SPDX-License-Identifier: Apache-2.0
/// Images on another grid.
#ifndef rcnResample_h
#define rcnResample_h

#include <string>

#include "rcnVolume.h"

namespace rcn
{

/// Resamples every channel to another geometry with the nearest neighbor; 0 outside.
Volume ResampleNearest(const Volume& volume, const rcn_geometry& reference);

/// The same linearly, to float32; beyond the edge the edge goes on.
Volume ResampleLinear(const Volume& volume, const rcn_geometry& reference);

/// "0.7 x 0.7 x 3 mm"
std::string SpacingText(const double spacing[3]);

/// The same part of the world in voxels of another size: the first voxel's outer corner stays, the last one's within
/// half a voxel. Throws Error (RCN_EDATA) where that would make more than a thousand voxels of one: no network was trained
/// on voxels so much smaller, so one of the two spacings is wrong. `about` names the image.
rcn_geometry GeometryAtSpacing(const rcn_geometry& geometry, const double spacing[3], const std::string& about = "The image");

} // namespace rcn

#endif
