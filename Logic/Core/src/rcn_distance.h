// SPDX-License-Identifier: Apache-2.0
/* Distances between voxels: of two, and the exact one to the nearest of some. */
#ifndef RCN_DISTANCE_H
#define RCN_DISTANCE_H

#include "rcn/rcn_image.h"
#include "rcn_context_private.h"

/* out[voxel] enters as 0 for the voxels in question and INFINITY elsewhere, and leaves as the
 * squared distance to the nearest of them (INFINITY if there are none). Axis by axis, the lower
 * envelope of parabolas (Felzenszwalb and Huttenlocher 2012). */
rcn_status rcn__distance_squared(float *out, rcn_context *ctx, const int64_t size[3],
                                 const double spacing[3]);

/* How far apart in the world two voxels are that lie step[3] voxels apart: its square. Unlike the
 * above it knows of axes that are not at right angles. */
double rcn__geometry_distance_squared(const rcn_geometry *geometry, const double step[3]);

#endif /* RCN_DISTANCE_H */
