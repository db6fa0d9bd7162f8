// SPDX-License-Identifier: Apache-2.0
/* Prediction: level probabilities of an image of any size, in bounded memory; of several
 * structures, the means of all and the levels of each.
 *
 * The image is covered with overlapping tiles, each goes through the network, and where tiles
 * overlap their probabilities are averaged with Gaussian weights, so that no seam shows. An image
 * that fits is one tile. A 2-D network goes through a volume slice by slice. Besides the caller's
 * image and the one output, memory is that of one tile, whatever the size of the image.
 *
 *     rcn_normalize_fit(&scale, ctx, &rule, channels, count);
 *     rcn_predict_levels(levels, net, loss, parameters, &scale, channels, NULL);
 *     rcn_readout_apply(probability, ctx, &level_image, RCN_READOUT_MAJORITY, 0);
 *
 * Where only the readout is wanted, rcn_predict_readout() gives the same numbers in one float per
 * voxel, and rcn_predict_slabs() hands out the levels in parts for everything else.
 *
 * All tiles have one size, so that the network's kernels are made once. The size follows from
 * `memory` unless it is given.
 *
 * A call works on the context of the network, and one network is for one call at a time. Needs a
 * build with networks.
 */
#ifndef RCN_PREDICT_H
#define RCN_PREDICT_H

#include "rcn_calib.h"
#include "rcn_loss.h"
#include "rcn_net.h"
#include "rcn_normalize.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rcn_predict_options {
    int64_t tile[3]; /* voxels along x, y, z; 0 (default): as many as `memory` allows */
    double overlap;  /* 0.25 (default): share of a tile that its neighbor covers too, 0 ... 0.9 */
    int flips;     /* 0 (default); 1: the mean over all flips of the image's axes, 4 times the work
                      in 2-D and 8 times in 3-D */
    size_t memory; /* about how many bytes a tile may take in the network; default 256 MB */
} rcn_predict_options;

#define RCN_PREDICT_OPTIONS_INIT {{0, 0, 0}, 0.25, 0, (size_t)256 << 20}

/* NULL if the options can be used, otherwise the sentence that says why not. */
RCN_API const char *rcn_predict_check(const rcn_predict_options *options);

/* How an image of this size would be covered: tile[3] = voxels of a tile, *tiles (NULL: not wanted)
 * = how many there are. Makes the network's kernels for a small tile, to see what a voxel costs. */
RCN_API rcn_status rcn_predict_plan(int64_t tile[3], int64_t *tiles, rcn_net *net,
                                    const int64_t size[3], const rcn_predict_options *options);

/* levels (voxels, K + 1), the levels of a voxel next to each other, x fastest: their probabilities.
 *   loss, parameters  how the network's outputs become levels; NULL when it has no parameters
 *   scale, channels   the image and how it is normalized; as many channels as the network takes
 *   RCN_EINVALID      network, loss and image do not fit each other
 *   RCN_EDATA         the network's outputs are not finite: its weights cannot be used
 * The same bits for the same number of threads. Failed or canceled: levels are partly written. */
RCN_API rcn_status rcn_predict_levels(float *levels, rcn_net *net, const rcn_loss *loss,
                                      const float *parameters, const rcn_scale *scale,
                                      const rcn_channel *channels,
                                      const rcn_predict_options *options);

/* Takes the levels of voxels first, first + 1, ... of the image: a float32 image of K + 1
 * components that is valid, and may be changed, until this returns. What is not RCN_OK ends the
 * prediction and is its status. */
typedef rcn_status (*rcn_levels_fn)(rcn_image *levels, int64_t first, void *payload);

/* The same levels, to the bits, without keeping those of the whole image: slabs of neighboring rows
 * (of a volume, slices) from the first to the last, each once, as soon as no tile adds to them. How
 * large they are depends on the tiles, not on the number of threads. `take` runs on the calling
 * thread and may use the context, but not the network. */
RCN_API rcn_status rcn_predict_slabs(rcn_levels_fn take, void *payload, rcn_net *net,
                                     const rcn_loss *loss, const float *parameters,
                                     const rcn_scale *scale, const rcn_channel *channels,
                                     const rcn_predict_options *options);

/* *voxels = those of the largest slab: what is in memory at a time. All of the image where one
 * layer of overlapping tiles, or of tiles with flips, covers it from the first to the last row (of
 * a volume, slice). */
RCN_API rcn_status rcn_predict_slab_plan(int64_t *voxels, rcn_net *net, const int64_t size[3],
                                         const rcn_predict_options *options);

/* out[voxel] = the readout of the levels (rcn_calib.h): to the bits what rcn_readout_apply() makes
 * of those of rcn_predict_levels(), in 4 bytes per voxel and a slab instead of 4 (K + 2). Statuses
 * as above. Failed or canceled: partly written. */
RCN_API rcn_status rcn_predict_readout(float *out, rcn_net *net, const rcn_loss *loss,
                                       rcn_readout readout, int at_least, const float *parameters,
                                       const rcn_scale *scale, const rcn_channel *channels,
                                       const rcn_predict_options *options);

/* means (voxels, C + 1), those of a voxel next to each other: the expected share of raters who give
 * each label, background first. As above otherwise. With rcn_loss_correlation() and
 * rcn_levels_of_mean() they give the levels of every structure without another pass. */
RCN_API rcn_status rcn_predict_means(float *means, rcn_net *net, const rcn_loss *loss,
                                     const float *parameters, const rcn_scale *scale,
                                     const rcn_channel *channels,
                                     const rcn_predict_options *options);

/* levels (voxels, K + 1) of one structure, 1 ... C. Where tiles overlap or flips are averaged these
 * are means of levels, which differ a little from levels of means. */
RCN_API rcn_status rcn_predict_structure(float *levels, rcn_net *net, const rcn_loss *loss,
                                         int structure, const float *parameters,
                                         const rcn_scale *scale, const rcn_channel *channels,
                                         const rcn_predict_options *options);

/* out[voxel] = the label with the largest mean, the lowest of several. `means` is float32 with
 * C + 1 components, at most RCN_MAX_STRUCTURES + 1. `values` (NULL: the label's number) says what
 * each of the C + 1 labels is written as. */
RCN_API rcn_status rcn_predict_labels(uint8_t *out, rcn_context *ctx, const rcn_image *means,
                                      const uint8_t *values);

/* out[voxel] = the entropy of a voxel's levels in bits: 0 where the network is sure, log2(K + 1)
 * where it knows nothing. `levels` is float32 with K + 1 components. Canceled: partly written. */
RCN_API rcn_status rcn_predict_entropy(float *out, rcn_context *ctx, const rcn_image *levels);

/* out[voxel] = 1 from the threshold on, otherwise 0, of one float per voxel. Canceled: partly
 * written. */
RCN_API rcn_status rcn_predict_mask(uint8_t *out, rcn_context *ctx, const rcn_image *probability,
                                    double threshold);

#ifdef __cplusplus
}
#endif

#endif /* RCN_PREDICT_H */
