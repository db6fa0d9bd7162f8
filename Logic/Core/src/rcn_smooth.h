// SPDX-License-Identifier: Apache-2.0
/* Smoothing, for targets and for samples alike. */
#ifndef RCN_SMOOTH_H
#define RCN_SMOOTH_H

#include "rcn/rcn_context.h"

/* Smooths one float per voxel in its place by a normalized Gaussian of `sigma` voxels (at most 64),
 * cut at 4 sigma, the border repeated outwards; not across axes of one voxel. Failed or canceled:
 * partly done. */
rcn_status rcn__smooth_gaussian(float *map, rcn_context *ctx, const int64_t size[3], double sigma);

#endif /* RCN_SMOOTH_H */
