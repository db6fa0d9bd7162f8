// SPDX-License-Identifier: Apache-2.0
/* Convolutions, by the faster of two ways: oneDNN's direct kernels, or ours with fewer
 * multiplications (rcn_winograd.h) where they apply.
 *
 * A convolution is made once for a shape and run often. Tensors between layers are blocked: groups
 * of RCN_LANES channels lie next to each other, (B, C / 8, Z, Y, X, 8), which is what the AVX2
 * kernels want and what the other layers (rcn_layers.h) work on; so nothing is reordered between
 * layers. Weights are stored as PyTorch stores them and packed into the kernel's own layout before
 * use. All memory is the caller's: packed weights and scratch memory are sized by the functions
 * below.
 */
#ifndef RCN_CONV_H
#define RCN_CONV_H

#include "rcn_context_private.h"

/* Channels in a block: one AVX2 register of floats. */
enum { RCN_LANES = 8 };

typedef struct rcn__dnn rcn__dnn; /* rcn_dnn.h */

/* How the input of a convolution lies in memory. */
typedef enum rcn__layout {
    RCN_BLOCKED = 0, /* (B, C / 8, Z, Y, X, 8), channels padded with zeros */
    RCN_PLANAR = 1,  /* (B, C, Z, Y, X) */
} rcn__layout;

typedef struct rcn__conv_shape {
    int dimensions; /* 2 or 3; two-dimensional ones use [1] and [2] of the triples below */
    int64_t batch;
    int64_t in, out; /* channels */
    int64_t size[3]; /* input: z, y, x */
    int64_t kernel[3];
    int64_t stride[3];
    int64_t pad[3];
    rcn__layout layout; /* of the input; the output is blocked */
    int bias;           /* add one */
    int add;            /* forward adds to what is in the output already */
    int relu;           /* forward ends with max(0, .) */
    int training;       /* make the backward kernels too */
    int input_gradient; /* of these, the one for the input */
    int direct;         /* never by Winograd's way, as on machines without AVX2: for the tests */
} rcn__conv_shape;

typedef struct rcn__conv rcn__conv;

rcn_status rcn__conv_create(rcn__conv **out, rcn__dnn *dnn, rcn_context *ctx,
                            const rcn__conv_shape *shape);
void rcn__conv_destroy(rcn__conv *conv, rcn_context *ctx); /* NULL is fine */

/* Bytes of scratch memory that running it needs (with its packed weights not counted). */
size_t rcn__conv_scratch_bytes(const rcn__conv *conv);

/* Bytes of packed weights: the larger of those for forward and for backward. */
size_t rcn__conv_packed_bytes(const rcn__conv *conv);

/* Packs weights for forward or for the input gradient. `weights` is (out, total_in, kernel) with
 * this convolution's input channels from `first_in` on. */
rcn_status rcn__conv_pack(void *packed, rcn__conv *conv, rcn_context *ctx, const float *weights,
                          int64_t first_in, int64_t total_in, int backward);

/* out (+)= weights * in + bias. bias may be NULL where the shape has none. */
rcn_status rcn__conv_forward(float *out, rcn__conv *conv, rcn_context *ctx, const float *in,
                             const void *packed, const float *bias, void *scratch);

/* The gradient of the input, from that of the output; overwrites. */
rcn_status rcn__conv_backward_input(float *din, rcn__conv *conv, rcn_context *ctx,
                                    const float *dout, const void *packed, void *scratch);

/* The gradients of weights and bias; overwrites dweights' slice (as in rcn__conv_pack) and dbias.
 * `packed` is memory for packed gradients. */
rcn_status rcn__conv_backward_weights(float *dweights, float *dbias, rcn__conv *conv,
                                      rcn_context *ctx, const float *in, const float *dout,
                                      int64_t first_in, int64_t total_in, void *packed,
                                      void *scratch);

#endif /* RCN_CONV_H */
