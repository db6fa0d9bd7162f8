// SPDX-License-Identifier: Apache-2.0
/* 3x3 convolutions with a quarter of the multiplications (Winograd; Lavin and Gray 2016, F(4x4,
 * 3x3)).
 *
 * A tile of 4x4 outputs depends on 6x6 inputs. Both, and the 3x3 weights, have forms of 6x6 numbers
 * in which the convolution is a product element by element; summed over the channels that makes 36
 * matrix products, whose rows are tiles. Weights' gradients are the same backwards: the exact
 * adjoint. The forms are polynomials at the points 0, +-3/4, +-3/2 and infinity: exact in float,
 * and with rounding about 2.5 times that of direct convolution (the usual 0, +-1, +-2: 5 times).
 *
 * Volumes: kernels of 3x3x3 or 1x3x3; slices along z are convolved like channels.
 *
 * Tensors are blocked (rcn_conv.h). Compiled for machines with AVX2 and FMA: nothing
 * here may be called on others (rcn_conv.c asks).
 */
#ifndef RCN_WINOGRAD_H
#define RCN_WINOGRAD_H

#include "rcn_context_private.h"

/* A convolution with stride 1 whose output is as large as its input. */
typedef struct rcn__winograd {
    int64_t batch;
    int64_t in, out; /* channels, multiples of RCN_LANES */
    int64_t size[3]; /* z, y, x */
    int64_t depth;   /* of the kernel: 1 or 3 */
} rcn__winograd;

/* Bytes of packed weights, and of scratch memory for a pass on so many threads. */
size_t rcn__winograd_packed_bytes(const rcn__winograd *shape);
size_t rcn__winograd_scratch_bytes(const rcn__winograd *shape, int threads);
size_t rcn__winograd_gradient_bytes(const rcn__winograd *shape, int threads);

/* What the channels of PyTorch's (out, total_in, depth, 3, 3) are to a convolution. */
typedef struct rcn__winograd_weights {
    int64_t first_in, total_in;
    int mirrored; /* for the input's gradient: in and out change places and the kernel is turned */
} rcn__winograd_weights;

/* `shape` is that of the convolution to be run: for the input's gradient, in and out swapped. */
void rcn__winograd_pack(float *packed, const rcn__winograd *shape, rcn_context *ctx,
                        const float *weights, const rcn__winograd_weights *where);

/* out = [max(0,] [out +] packed * in [+ bias] [)]; bias may be NULL. */
void rcn__winograd_convolve(float *out, const rcn__winograd *shape, rcn_context *ctx,
                            const float *in, const float *packed, const float *bias, int add,
                            int relu, void *scratch);

/* The weights' gradient from the input and the output's gradient; `where` is not mirrored.
 * Overwrites its slice. The same bits for the same number of threads. */
void rcn__winograd_gradient(float *dweights, const rcn__winograd *shape, rcn_context *ctx,
                            const float *in, const float *dout, const rcn__winograd_weights *where,
                            void *scratch);

#endif /* RCN_WINOGRAD_H */
