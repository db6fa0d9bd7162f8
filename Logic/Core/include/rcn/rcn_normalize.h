// SPDX-License-Identifier: Apache-2.0
/* Normalization: from an image as it was read to the numbers a network expects.
 *
 * Images stay in memory as they were read (8 or 16 bits, say) and are normalized on the fly, a
 * tile or a sample at a time. Two steps, so that what needs the whole image is done once per
 * image:
 *
 *   rcn_normalize_fit()   rule + image -> rcn_scale: a shift, a factor and limits per channel
 *   rcn_normalize_box()   a box of the image as planar floats, ready for rcn_net_predict()
 *
 * Whoever samples an image by himself applies the scale himself:
 *   out = min(max((x - shift) * factor, low), high), and 0 where x is not a number.
 *
 * Never NaN, never infinite: a constant image becomes zeros, as do voxels that are not a number.
 *
 * The rule belongs to a model, which keeps it in its file (rcn_model.h): a network sees an image as
 * it saw those that it learned from. "Fixed" takes the numbers of the whole data set, right where
 * gray values mean the same in all images (Hounsfield units); z-score and percentile take each
 * image's own, for MRI and ultrasound, where they do not.
 */
#ifndef RCN_NORMALIZE_H
#define RCN_NORMALIZE_H

#include "rcn_comm.h"
#include "rcn_image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rcn_normalize_kind {
    RCN_NORMALIZE_FIXED = 0,      /* (x - mean) / std, given per channel: the whole data set's */
    RCN_NORMALIZE_ZSCORE = 1,     /* the same with mean and deviation of each image's channel */
    RCN_NORMALIZE_PERCENTILE = 2, /* a lower percentile of the image's channel becomes -1, an upper
                                     one 1, cut there */
    RCN_NORMALIZE_WINDOW = 3      /* center - width/2 becomes -1, center + width/2 becomes 1, cut
                                     there: the window of a CT viewer, in Hounsfield units */
} rcn_normalize_kind;

/* "fixed", "zscore", "percentile", "window"; NULL for a number that is no kind. */
RCN_API const char *rcn_normalize_name(rcn_normalize_kind kind);

#define RCN_NORMALIZE_CHANNELS 64

/* The rule, as a model stores it. Plain data: may be copied, and whoever stores it writes these
 * fields. */
typedef struct rcn_normalize {
    rcn_normalize_kind kind;
    int channels; /* fixed: how many; the others work for any number */
    double mean[RCN_NORMALIZE_CHANNELS];
    double std[RCN_NORMALIZE_CHANNELS]; /* > 0 */
    double lower, upper;  /* percentile: 0 <= lower < upper <= 100; default 0.5, 99.5 */
    double center, width; /* window: width > 0; default 40, 400 (soft tissue) */
} rcn_normalize;

#define RCN_NORMALIZE_INIT {RCN_NORMALIZE_ZSCORE, 0, {0}, {0}, 0.5, 99.5, 40, 400}

/* NULL if the rule can be used, otherwise the sentence that says why not. */
RCN_API const char *rcn_normalize_check(const rcn_normalize *normalize);

/* One channel of an image: a component of a view. Channels of one image have the same size, but
 * may lie in different buffers (one file each) and have different types. */
typedef struct rcn_channel {
    rcn_image image;
    int component;
} rcn_channel;

/* What the rule is for one image. Plain data. */
typedef struct rcn_scale {
    int channels;
    double shift[RCN_NORMALIZE_CHANNELS];
    double factor[RCN_NORMALIZE_CHANNELS]; /* 0: the channel is constant and becomes zeros */
    double low, high;
} rcn_scale;

/* The scale of an image. z-score and percentile read it; the percentile is the voxel of the nearest
 * rank, exact for anything that float32 holds. The same bits for any number of threads.
 *   RCN_EINVALID  a rule that cannot be used, or not for so many channels; channels of different
 *                 sizes, or more than RCN_NORMALIZE_CHANNELS
 * On failure or cancel *out is unchanged. */
RCN_API rcn_status rcn_normalize_fit(rcn_scale *out, rcn_context *ctx,
                                     const rcn_normalize *normalize, const rcn_channel *channels,
                                     int count);

/* out (channels, Z, Y, X) = the box [first, first + size) of the image, normalized. The box must
 * lie inside, and the scale must be that of so many channels. Does not fail; on the calling thread.
 */
RCN_API void rcn_normalize_box(float *out, const rcn_scale *scale, const rcn_channel *channels,
                               const int64_t first[3], const int64_t size[3]);

/* ---- mean and deviation of a whole data set, an image at a time ---- */

/* Plain data; start with all zeros. */
typedef struct rcn_moments {
    int channels;
    double count[RCN_NORMALIZE_CHANNELS];
    double mean[RCN_NORMALIZE_CHANNELS];
    double squares[RCN_NORMALIZE_CHANNELS]; /* sum of squared distances from the mean */
} rcn_moments;

/* Adds an image; voxels that are not a number do not count. RCN_EINVALID: another number of
 * channels than before. On failure or cancel the moments are as before. */
RCN_API rcn_status rcn_moments_add(rcn_moments *moments, rcn_context *ctx,
                                   const rcn_channel *channels, int count);

/* Puts together the moments of all processes, in all of them. NULL: nothing. */
RCN_API rcn_status rcn_moments_share(rcn_moments *moments, rcn_context *ctx, rcn_comm *comm);

/* The rule of kind "fixed" for all images added. RCN_EDATA: there is none. */
RCN_API rcn_status rcn_moments_normalize(rcn_normalize *out, rcn_context *ctx,
                                         const rcn_moments *moments);

#ifdef __cplusplus
}
#endif

#endif /* RCN_NORMALIZE_H */
