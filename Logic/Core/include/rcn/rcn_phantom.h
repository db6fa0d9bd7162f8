// SPDX-License-Identifier: Apache-2.0
/* A phantom: an image with real ambiguity and raters who disagree about it, made from a seed.
 *
 * The image shows a few lesions, round but uneven, with soft borders and different contrast, over a
 * textured background with noise. Each rater outlines the same hidden lesions with an own habit:
 * tighter or wider than the others, an uneven hand, and the fainter a lesion, the likelier it is
 * overlooked. So disagreement sits where the image is ambiguous, as with people. The same seed
 * gives the same voxels on every machine and number of threads.
 *
 * A phantom of several structures shows an organ of two halves (1 and 2) and a third structure
 * across its border, where they meet. The raters also draw the border between the halves in
 * different places, and some give a part on it, which looks like neither, to the other half.
 *
 * For demonstrations and tests, which need cases that anybody may have and whose truth is known:
 *
 *     rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;     // five raters, 128 x 128
 *     for (options.seed = 1; options.seed <= 20; ++options.seed)
 *         rcn_phantom_make(image, masks, ctx, &options);          // twenty cases of the same
 *         people
 */
#ifndef RCN_PHANTOM_H
#define RCN_PHANTOM_H

#include "rcn_image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rcn_phantom_options {
    int64_t size[3];     /* voxels; size[2] = 1 is 2-D; default 128 x 128 x 1 */
    int raters;          /* 1 ... 64; default 5 */
    int lesions;         /* 1 ... 64; default 4 */
    uint64_t seed;       /* which case; default 1. Raters keep their habits: all cases share them */
    double noise;        /* standard deviation, relative to full contrast, >= 0; default 0.12 */
    double disagreement; /* 0: all raters outline the same; 1 (default): as people do */
} rcn_phantom_options;

#define RCN_PHANTOM_OPTIONS_INIT {{128, 128, 1}, 5, 4, 1, 0.12, 1.0}

/* NULL if usable, otherwise a sentence. Options must be given. */
RCN_API const char *rcn_phantom_check(const rcn_phantom_options *options);

/* image[voxels]: intensities around 0 (background) to 1 (full contrast); masks: raters times voxels
 * bytes, 0 or 1, rater after rater. Canceled: both are partly written. */
RCN_API rcn_status rcn_phantom_make(float *image, uint8_t *masks, rcn_context *ctx,
                                    const rcn_phantom_options *options);

#define RCN_PHANTOM_STRUCTURES 3

/* The same with three structures that touch: labels 0 ... RCN_PHANTOM_STRUCTURES in place of masks.
 * The number of lesions is not used. */
RCN_API rcn_status rcn_phantom_make_labels(float *image, uint8_t *labels, rcn_context *ctx,
                                           const rcn_phantom_options *options);

#ifdef __cplusplus
}
#endif

#endif /* RCN_PHANTOM_H */
