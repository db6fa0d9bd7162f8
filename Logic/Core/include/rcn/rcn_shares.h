// SPDX-License-Identifier: Apache-2.0
/* Shares of several structures: a map with a component per structure, the share of raters who are
 * expected to give a voxel that label. The background has what is left.
 *
 * Such a map is what files hold. Corrections and likelihoods need the shares of all C + 1 labels,
 * background first (rcn_loss_means()); both forms hold the same:
 *
 *     in a file      (voxels, C)       structure 1, ..., structure C
 *     in memory      (voxels, C + 1)   background, structure 1, ..., structure C; they add up to 1
 *
 * The components of a voxel lie next to each other in both.
 */
#ifndef RCN_SHARES_H
#define RCN_SHARES_H

#include "rcn_image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* means (voxels, C + 1): 1 minus the sum of the shares, cut to 0 ... 1, then the shares as they
 * are. `shares` is float32 with C components. What is not a number stays none. Canceled: partly
 * written. */
RCN_API rcn_status rcn_shares_complete(float *means, rcn_context *ctx, const rcn_image *shares);

/* shares (voxels, C): the other way round, without the background, which is the first component of
 * `means`. Canceled: partly written. */
RCN_API rcn_status rcn_shares_strip(float *shares, rcn_context *ctx, const rcn_image *means);

#ifdef __cplusplus
}
#endif

#endif /* RCN_SHARES_H */
