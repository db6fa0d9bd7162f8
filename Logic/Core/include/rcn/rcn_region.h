// SPDX-License-Identifier: Apache-2.0
/* Regions: where voxels count. Background dominates a whole image, and a model that is right about
 * air looks well calibrated; so every figure can be had on a part of it.
 *
 *   whole     all voxels
 *   box       the box around everything that anybody marked, and a margin
 *   band      what is near the contour of the mean vote at one half
 *   disputed  voxels on which the raters who answered differ
 *
 * The contour is the set of voxels that have a face neighbor on the other side of mean vote >= 1/2
 * (both sides belong to it; neither the image's border nor voxels that nobody answered make a
 * contour). A voxel belongs to the band when its center is at most so many millimeters (of an image
 * in pixels: so many pixels) from the center of a voxel of the contour, measured exactly, with the
 * voxel spacing and the directions of the axes. A region is one byte per voxel, and a caller's own
 * mask is as good as any: rcn_calib_case.region.
 *
 *     rcn_region_options options = RCN_REGION_OPTIONS_INIT;
 *     int64_t inside;
 *     options.region = RCN_REGION_BAND;
 *     rcn_region_fill(region, &inside, ctx, votes, &options);    // uint8_t region[voxels]
 *     if (inside) one_case.region = region;                      // none: nothing to judge there
 *
 * A region depends on the raters alone, never on a prediction, so that all models are judged on the
 * same voxels. Figures of different regions cannot be compared with one another.
 */
#ifndef RCN_REGION_H
#define RCN_REGION_H

#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rcn_region {
    RCN_REGION_WHOLE = 0,
    RCN_REGION_BOX = 1,
    RCN_REGION_BAND = 2,
    RCN_REGION_DISPUTED = 3
} rcn_region;

/* "whole", "box", "band", "disputed"; NULL for a number that is no region. */
RCN_API const char *rcn_region_name(rcn_region region);

typedef struct rcn_region_options {
    rcn_region region; /* whole (default) */
    int64_t margin;    /* 20 (default): voxels around the box */
    double band_mm;    /* 5 (default): largest distance from the contour */
} rcn_region_options;

#define RCN_REGION_OPTIONS_INIT {RCN_REGION_WHOLE, 20, 5.0}

/* NULL if the options can be used, otherwise a sentence. NULL options are fine: the defaults. */
RCN_API const char *rcn_region_check(const rcn_region_options *options);

/* out[voxel] = 1 inside, 0 outside; *count (NULL: not wanted) = voxels inside. May be none: nothing
 * is disputed, or there is no contour because the majority marked nothing (or everything).
 * The band needs four bytes for each voxel of the contour's bounding box, grown by the distance.
 * On failure or cancel `out` is partly written. */
RCN_API rcn_status rcn_region_fill(uint8_t *out, int64_t *count, rcn_context *ctx,
                                   const rcn_votes *votes, const rcn_region_options *options);

/* out = a copy of the prediction (float, C values per voxel) that is certain background outside of
 * the region, where it may hold anything: 0, or level 0 of several. region: one byte per voxel,
 * zero outside. On failure or cancel `out` is partly written. */
RCN_API rcn_status rcn_region_cut(float *out, rcn_context *ctx, const rcn_image *prediction,
                                  const uint8_t *region);

#ifdef __cplusplus
}
#endif

#endif /* RCN_REGION_H */
