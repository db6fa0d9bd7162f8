// SPDX-License-Identifier: Apache-2.0
/* Networks: from an image to K + 1 logits per voxel, and back for training.
 *
 *   rcn_net_create()     the architecture; rcn_net_initialize() or a weights file fills it
 *   rcn_net_predict()    logits of a batch, for use
 *   rcn_net_forward()    logits of a batch, for training; then
 *   rcn_net_backward()   the gradients of all parameters from those of the logits
 *
 * Parameters lie in one aligned block of floats with a table of names, shapes and offsets; what is
 * trained comes first, so that an optimizer runs over one array. Gradients lie in a block of the
 * same layout. Names, shapes and the order of elements are PyTorch's: a state dict of
 * segmentation_models_pytorch.FPN (encoder names as in torchvision) fits name by name.
 *
 * The kernels for an input shape are made when it is first seen and kept (the last few shapes);
 * the memory for activations is one block, shared by all shapes. The same inputs, parameters, seed
 * and number of threads give the same bits.
 *
 * Images are (B, C, Z, Y, X), x fastest; a 2-D network has Z = 1. Sizes need not suit the network:
 * images are extended inside by repeating their last voxels and logits cut to the image.
 *
 * A network works with the context it was created with; its error sentences are there. It is for
 * one call at a time.
 *
 * One step of a loop written in C:
 *
 *     rcn_net_forward(logits, net, images, &batch, seed);
 *     rcn_loss_run(...);                                     // dlogits from logits (rcn_loss.h)
 *     rcn_net_backward(net, dlogits);
 *     state.gradients = rcn_net_gradients(net);
 *     state.parameters = rcn_net_edit_values(net);
 *     rcn_optim_step(&norm, &state, ctx, rate, &options, NULL, 0);
 */
#ifndef RCN_NET_H
#define RCN_NET_H

#include "rcn_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rcn_net rcn_net;

typedef enum rcn_arch {
    RCN_UNET = 0,         /* two 3x3 convolutions with norm and ReLU per level; max pooling down,
                             transposed convolutions up */
    RCN_FPN_RESNET18 = 1, /* segmentation_models_pytorch.FPN("resnet18", ...) */
    RCN_FPN_RESNET34 = 2,
    RCN_FPN_RESNET50 = 3,
    RCN_UNET3D = 4 /* the U-Net for volumes */
} rcn_arch;

/* Over what activations are normalized: the batch (with running statistics for prediction), or each
 * image by itself. */
typedef enum rcn_norm { RCN_NORM_BATCH = 0, RCN_NORM_INSTANCE = 1 } rcn_norm;

typedef struct rcn_net_options {
    rcn_arch arch;
    int channels;      /* of the image; default 1 */
    int outputs;       /* logits per voxel, e.g. K + 1; default 2 */
    int width;         /* U-Nets: channels of the first level, a multiple of 8, doubled at each
                          level up to 320; default 16 */
    int depth;         /* U-Nets: how often the resolution is halved, 1 ... 6; default 4 */
    rcn_norm norm;     /* U-Nets; default batch */
    double spacing[3]; /* U-Net 3-D: mm between voxels along x, y, z, any unit. An axis much coarser
                          than the finest is neither pooled nor convolved over until the others
                          have caught up; default 1, 1, 1 */
    double dropout;    /* FPN: share of feature maps left out in training; default 0.2 */
} rcn_net_options;

#define RCN_NET_OPTIONS_INIT {RCN_UNET, 1, 2, 16, 4, RCN_NORM_BATCH, {1, 1, 1}, 0.2}

/* NULL if the options can be used, otherwise the sentence that says why not. */
RCN_API const char *rcn_net_check(const rcn_net_options *options);

/* "unet", "fpn-resnet18", ..., "unet3d"; NULL for a number that is no rcn_arch. */
RCN_API const char *rcn_arch_name(rcn_arch arch);

/* A network whose parameters are all zero. NULL options are the defaults. */
RCN_API rcn_status rcn_net_create(rcn_net **out, rcn_context *ctx, const rcn_net_options *options);

/* NULL is fine. */
RCN_API void rcn_net_destroy(rcn_net *net);

/* As it was created, or as its file says. Borrowed. */
RCN_API const rcn_net_options *rcn_net_get_options(const rcn_net *net);

/* ---- parameters ---- */

typedef enum rcn_parameter_kind {
    RCN_TRAINED = 0,   /* has a gradient */
    RCN_STATISTIC = 1, /* running mean or variance: changed by rcn_net_forward() */
    RCN_COUNTER = 2    /* num_batches_tracked: one float here, an int64 scalar in a file */
} rcn_parameter_kind;

typedef struct rcn_parameter {
    char name[64];
    rcn_parameter_kind kind;
    int dimensions;   /* 0 for a counter */
    int64_t shape[5]; /* as in PyTorch: (out, in, kernel), (in, out, kernel), (channels) */
    int64_t count;    /* floats */
    int64_t offset;   /* floats from the start of the block; a multiple of 16 */
} rcn_parameter;

/* How many entries the table has, statistics and counters included. */
RCN_API int rcn_net_parameter_count(const rcn_net *net);

/* Parameter number `index`, or NULL. Borrowed. */
RCN_API const rcn_parameter *rcn_net_parameter(const rcn_net *net, int index);

/* The one with this name, or NULL. Borrowed. */
RCN_API const rcn_parameter *rcn_net_find_parameter(const rcn_net *net, const char *name);

/* Floats in the block, and in its first part that is trained; the gaps between parameters are
 * zero and stay so under any optimizer. */
RCN_API int64_t rcn_net_floats(const rcn_net *net);
RCN_API int64_t rcn_net_trained_floats(const rcn_net *net);

/* The block, to read. Borrowed. */
RCN_API const float *rcn_net_values(const rcn_net *net);

/* The block, to change: ask again before each change, for this is how the network learns of it. */
RCN_API float *rcn_net_edit_values(rcn_net *net);

/* Gradients of the last rcn_net_backward(), laid out like the trained part of the block. The caller
 * may change them (clipping). They share memory with what the passes keep: valid until the network
 * runs again, then NULL, as before the first. Borrowed: ask after each backward pass. */
RCN_API float *rcn_net_gradients(rcn_net *net);

/* Random weights (He et al. 2015), ones and zeros for the norms; the same for the same seed. The
 * transposed convolutions of a U-Net start with equal taps, as an interpolation (nearest
 * neighbor), so that a briefly trained network does not show its grid. */
RCN_API rcn_status rcn_net_initialize(rcn_net *net, uint64_t seed);

/* ---- running ---- */

typedef struct rcn_batch {
    int64_t images;
    int64_t size[3]; /* x, y, z; z = 1 for a 2-D network */
} rcn_batch;

/* logits (B, outputs, Z, Y, X) of images (B, channels, Z, Y, X), with running statistics and
 * without dropout. Canceled or failed: logits are partly written. */
RCN_API rcn_status rcn_net_predict(float *logits, rcn_net *net, const float *images,
                                   const rcn_batch *batch);

/* The same in training: statistics of the batch (the running ones follow them), dropout drawn from
 * `seed`. Keeps what rcn_net_backward() needs. Failed or canceled: running statistics may have
 * moved. */
RCN_API rcn_status rcn_net_forward(float *logits, rcn_net *net, const float *images,
                                   const rcn_batch *batch, uint64_t seed);

/* Gradients from those of the logits, for the last call if that was rcn_net_forward(), whose images
 * must still be in their place; RCN_EINVALID otherwise. Once per forward pass. */
RCN_API rcn_status rcn_net_backward(rcn_net *net, const float *dlogits);

#ifdef __cplusplus
}
#endif

#endif /* RCN_NET_H */
