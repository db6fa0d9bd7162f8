// SPDX-License-Identifier: Apache-2.0
/* Samples for training: a piece of a case, turned and bent, with the votes on it.
 *
 * A case is an image as it was read and the votes on it. A sample is drawn in one pass: every voxel
 * of the sample is traced back to the case by one mapping (place, mirror, right-angle turn,
 * rotation, scale, shear, shift, elastic displacement, resampling to the training spacing), the
 * image is interpolated linearly there and all raters together by one nearest vote code.
 * Intensities are changed afterwards.
 *
 * Everything random comes from a stream of the sample's own, given by two numbers: the same bits
 * for any number of threads and any order of samples.
 *
 * Outside the case the image is continued by its border, and the votes are void: such voxels carry
 * the code that follows the last pattern, RCN_VOID_CODE(votes), for which a label of weight 0 has
 * to be kept.
 */
#ifndef RCN_DATA_H
#define RCN_DATA_H

#include "rcn_normalize.h"
#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How samples are varied. Each change below `turns` happens to a sample with probability `share`,
 * by a random amount up to the one given; 0 switches it off. */
typedef struct rcn_augment {
    int flips;         /* 1 (default): mirrored along each axis half of the time */
    int turns;         /* 1 (default): right-angle turns in the x-y plane of square samples */
    double share;      /* 0.3 (default) */
    double rotate;     /* 15 (default): degrees; volumes turn about z, and half as far about x, y */
    double scale;      /* 0.15 (default): up to 1.15 times larger or smaller */
    double shear;      /* 0 (default): up to so many voxels per voxel */
    double shift;      /* 0 (default): up to so many voxels along each axis */
    double elastic;    /* 0 (default): standard deviation of the displacement in voxels */
    double gamma;      /* 0.2 (default): intensities between their extremes, to the power of
                          1 / 1.2 ... 1.2 */
    double brightness; /* 0.1 (default): added, in standard deviations of the sample */
    double contrast;   /* 0.1 (default): 1 / 1.1 ... 1.1 times the distance from the mean */
    double noise; /* 0 (default): standard deviations of white noise, relative to the sample's */
    double blur;  /* 0 (default): sigma of a Gaussian in voxels */
} rcn_augment;

#define RCN_AUGMENT_INIT {1, 1, 0.3, 15, 0.15, 0, 0, 0, 0.2, 0.1, 0.1, 0, 0}

/* Nothing is varied. */
#define RCN_AUGMENT_NONE {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* NULL if it can be used, otherwise the sentence that says why not. */
RCN_API const char *rcn_augment_check(const rcn_augment *augment);

/* Where something is to be learned in a case: some voxels that raters dispute, and some that all
 * who answered marked; evenly taken from all of them, at most RCN_FOCI of each. */
typedef struct rcn_foci rcn_foci;
enum { RCN_FOCI = 4096 };

/* On failure or cancel *out is unchanged. */
RCN_API rcn_status rcn_foci_create(rcn_foci **out, rcn_context *ctx, const rcn_votes *votes);

/* NULL is fine. */
RCN_API void rcn_foci_destroy(rcn_foci *foci);

/* A case to draw from. Everything is borrowed. */
typedef struct rcn_data_case {
    const rcn_channel *channels;
    int channel_count;
    const rcn_scale *scale; /* how its intensities are normalized */
    const rcn_votes *votes;
    const float *map;     /* NULL, or a target per voxel (smoothed ones), interpolated linearly;
                             negative: void */
    const rcn_foci *foci; /* NULL: patches are drawn anywhere */
} rcn_data_case;

/* The code of voxels outside the case. */
#define RCN_VOID_CODE(votes) ((uint32_t)rcn_votes_pattern_count(votes))

typedef struct rcn_sample_options {
    int64_t size[3];   /* voxels of a sample; size[2] = 1: slices, nothing leaves the plane */
    double spacing[3]; /* mm between its voxels; 0 (default): the case's own along that axis */
    double foreground; /* 0.5 (default): share of patches around one of the foci, which lies in the
                          middle half of the sample; of these, half around a disputed one. An axis
                          along which the case is smaller than the sample is taken whole */
    rcn_augment augment;
} rcn_sample_options;

#define RCN_SAMPLE_OPTIONS_INIT {{128, 128, 1}, {0, 0, 0}, 0.5, RCN_AUGMENT_INIT}

#ifdef __cplusplus
}
#endif

#endif /* RCN_DATA_H */
