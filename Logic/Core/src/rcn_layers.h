// SPDX-License-Identifier: Apache-2.0
/* The layers that are not convolutions, on blocked tensors (B, C / 8, Z, Y, X, 8).
 *
 * All of them are bound by memory, so each does in one pass what belongs together: normalization
 * with its residual sum and ReLU, upsampling with its addition. Batch, instance and group
 * normalization are one code: sums per image and channel, combined over different cells, end as one
 * scale and shift per image and channel.
 *
 * Work is cut into fixed chunks and sums are added up in the order of chunks: the results do not
 * depend on the number of threads. Pairs are named x and x_backward; gradients are called d...
 */
#ifndef RCN_LAYERS_H
#define RCN_LAYERS_H

#include "rcn/rcn_comm.h"
#include "rcn_context_private.h"
#include "rcn_conv.h"

typedef struct rcn__extent {
    int64_t batch;
    int64_t channels; /* a multiple of RCN_LANES where nothing else is said */
    int64_t size[3];  /* z, y, x */
} rcn__extent;

int64_t rcn__extent_voxels(const rcn__extent *extent); /* of one image */
int64_t rcn__extent_floats(const rcn__extent *extent); /* of the blocked tensor */

/* ---- normalization --------------------------------------------------------------------------- */

/* What a cell of the statistics spans. */
typedef enum rcn__norm_kind {
    RCN_CELL_BATCH = 0,    /* one channel of all images */
    RCN_CELL_INSTANCE = 1, /* one channel of one image */
    RCN_CELL_GROUP = 2,    /* a group of channels of one image */
} rcn__norm_kind;

typedef struct rcn__norm {
    rcn__extent extent;
    rcn__norm_kind kind;
    int64_t groups; /* for RCN_CELL_GROUP */
    int relu;
    double *mean, *rstd;  /* (B, C): the statistics of the last forward pass */
    float *scale, *shift; /* (B, C): y = x * scale + shift */
    float *coefficients;  /* (3, B, C): for backward; may be NULL without it */
    double *partial;      /* rcn__norm_partials() */
    double count;         /* values in a cell of the last forward pass */
    rcn__tally tally;     /* RCN_CELL_BATCH: the sums of x, or NULL; */
    int64_t tally_rows;   /* (rcn_conv.h) */
    rcn_comm *comm;       /* RCN_CELL_BATCH: over whose images; NULL: only these */
    double *shared;       /* with it: 1 + 2 C doubles */
} rcn__norm;

/* How many doubles of `partial` the layer needs. */
int64_t rcn__norm_partials(const rcn__extent *extent);

/* Statistics of x, with their scale and shift. running_mean/var (C) may be NULL; otherwise they
 * move towards the batch's by 0.1, the variance unbiased, as in PyTorch. */
rcn_status rcn__norm_statistics(rcn__norm *norm, rcn_context *ctx, const float *x,
                                const float *weight, const float *bias, float *running_mean,
                                float *running_var);

/* Scale and shift from running statistics. */
void rcn__norm_fixed(rcn__norm *norm, const float *weight, const float *bias,
                     const float *running_mean, const float *running_var);

/* y = [max(0,] x * scale + shift [+ residual] [)]; y may be x. */
void rcn__norm_apply(float *y, const rcn__norm *norm, rcn_context *ctx, const float *x,
                     const float *residual);

/* From dy: dx (in place of dy), dweight, dbias and, with a residual, its gradient. y is needed only
 * with a residual and may be NULL otherwise. dresidual is added to where `accumulate` says so. */
rcn_status rcn__norm_backward(float *dy, float *dweight, float *dbias, float *dresidual,
                              int accumulate, rcn__norm *norm, rcn_context *ctx, const float *x,
                              const float *y, const float *weight);

/* What running statistics make of x: x * scale + shift, to be folded into a convolution. */
void rcn__norm_fold(float *scale, float *shift, int64_t channels, const float *weight,
                    const float *bias, const float *running_mean, const float *running_var);

/* ---- pooling --------------------------------------------------------------------------------- */

typedef struct rcn__pool {
    rcn__extent in;
    int64_t out_size[3];
    int64_t kernel[3], stride[3], pad[3];
} rcn__pool;

/* Largest value of each window; choice (one byte per output value) remembers which, the first of
 * equals. choice may be NULL. */
void rcn__pool_forward(float *out, uint8_t *choice, const rcn__pool *pool, rcn_context *ctx,
                       const rcn__source *in);
/* Some rows of one image alone, on the calling thread; two dimensions. `window` is the output's
 * (rcn__row_place()); the batch of `pool` does not matter. */
void rcn__pool_rows(float *out, int64_t window, const rcn__pool *pool, const rcn__source *in,
                    const rcn__rows *rows);
void rcn__pool_backward(float *din, int accumulate, const rcn__pool *pool, rcn_context *ctx,
                        const float *dout, const uint8_t *choice);

/* ---- upsampling ------------------------------------------------------------------------------ */

/* A transposed convolution whose kernel is its stride is a 1x1 convolution with one set of output
 * channels per tap, spread over the voxels (rcn_conv.h): out[z * sz + tz, ...] = in[channel set of
 * tap (tz, ty, tx)] + bias. This goes back to the channel sets. `extent` is the output's; partial:
 * as many doubles as rcn__norm_partials(extent). */
void rcn__shuffle_backward(float *din, float *dbias, const rcn__extent *extent, rcn_context *ctx,
                           const int64_t stride[3], const float *dout, double *partial);

/* Weights of such a convolution between PyTorch's (in, out, taps) and (taps, out, in). */
void rcn__shuffle_weights(float *to, rcn_context *ctx, const float *from, int64_t in, int64_t out,
                          int64_t taps);
void rcn__shuffle_weights_back(float *to, rcn_context *ctx, const float *from, int64_t in,
                               int64_t out, int64_t taps);

/* Rows of `from_row` floats into rows of `to_row`, cut or filled up with zeros. */
void rcn__pad_weights(float *to, rcn_context *ctx, const float *from, int64_t rows, int64_t to_row,
                      int64_t from_row);

/* sum += small, each value of which covers 2x2. `extent` is the sum's. */
void rcn__nearest_add(float *sum, const rcn__extent *extent, rcn_context *ctx, const float *small);
void rcn__nearest_add_backward(float *dsmall, int accumulate, const rcn__extent *extent,
                               rcn_context *ctx, const float *dsum);

/* Bilinear, corners aligned (F.interpolate(..., align_corners=True)), two dimensions. `extent` is
 * the input's. */
void rcn__bilinear(float *out, const rcn__extent *extent, rcn_context *ctx, int64_t factor,
                   const float *in);
void rcn__bilinear_backward(float *din, int accumulate, const rcn__extent *extent, rcn_context *ctx,
                            int64_t factor, const float *dout);

/* ---- sums ------------------------------------------------------------------------------------ */

/* sum = (sum + others...) * factors; factors (B, C) may be NULL for 1. */
void rcn__merge(float *sum, const rcn__extent *extent, rcn_context *ctx, const float *const *others,
                int count, const float *factors);

/* ---- the two ends ---------------------------------------------------------------------------- */

/* Planar (B, C, size) into a layout of rcn_conv.h with `stored` >= C channels, zero beyond C, and
 * of `padded` size, the last voxel of each axis repeated. Any number of channels. */
void rcn__input(float *out, rcn_context *ctx, const float *in, const rcn__extent *extent,
                int64_t stored, const int64_t padded[3], rcn__layout layout);

/* Blocked (any number of channels) to planar (B, C, size), upsampled in y and x with aligned
 * corners by `factor` (1: not at all), cut to `size`. `extent` is the input's. */
void rcn__output(float *out, rcn_context *ctx, const float *in, const rcn__extent *extent,
                 int64_t factor, const int64_t size[3]);
/* Some rows of one image alone, with a factor of 1, on the calling thread; two dimensions.
 * `window` is the input's. */
void rcn__output_rows(float *out, const float *in, int64_t window, const rcn__extent *extent,
                      const int64_t size[3], const rcn__rows *rows);
void rcn__output_backward(float *din, rcn_context *ctx, const float *dout,
                          const rcn__extent *extent, int64_t factor, const int64_t size[3]);

#endif /* RCN_LAYERS_H */
