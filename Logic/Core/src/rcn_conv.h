// SPDX-License-Identifier: Apache-2.0
/* Convolutions, by the faster of two ways: with a quarter of the multiplications (Winograd) where
 * that applies, otherwise by the definition (both in rcn_engine.h).
 *
 * A convolution is made once for a shape and run often. Tensors between layers are blocked: groups
 * of RCN_LANES channels lie next to each other, (B, C / 8, Z, Y, X, 8), which is what the other
 * layers (rcn_layers.h) work on, too; so nothing is reordered between layers. Weights are stored as
 * PyTorch stores them and packed into the kernel's own layout before use. All memory is the
 * caller's: packed weights and scratch memory are sized by the functions below.
 */
#ifndef RCN_CONV_H
#define RCN_CONV_H

#include "rcn_context_private.h"

/* Channels in a block: an AVX2 register of floats, half an AVX-512 one, two of NEON. */
enum { RCN_LANES = 8 };

/* How the input of a convolution lies in memory. */
typedef enum rcn__layout {
    RCN_BLOCKED = 0, /* (B, C / 8, Z, Y, X, 8), channels padded with zeros */
    RCN_PLANAR = 1,  /* (B, C, Z, Y, X) */
} rcn__layout;

/* An input as it is read: data, or max(0, data * scale + shift): a norm that is applied on the way
 * in, so that its result need not be written. */
typedef struct rcn__source {
    const float *data;
    const float *scale, *shift; /* (B, C) or NULL: as it is */
    int relu;
    int64_t window; /* rcn__row_place() */
} rcn__source;

/* Sums over what a convolution writes, for a norm that follows: without them it would have to be
 * read once more. Of each channel, those of the distances from an origin and of their squares. */
typedef struct rcn__tally {
    float *sums;         /* (rcn__conv_tally_rows(), 2, C), to be added up in their order */
    const float *origin; /* (C): near the means, so that squares stay small */
} rcn__tally;

/* What follows the sum: out = [max(0,] sum [+ bias] [+ residual] [)]. */
typedef struct rcn__ending {
    const float *bias;        /* or NULL */
    const float *residual[2]; /* for each output: as large as it, which it may be; or NULL */
    int relu;
    int64_t window;   /* of the output: rcn__row_place() */
    rcn__tally tally; /* sums: NULL, or of all that is written */
} rcn__ending;

/* Of a tensor of two dimensions that is made and used up row by row, only so many rows are kept at
 * a time: a multiple of 4, in which a row lies at its number modulo `window`. 0: all are there. */
static inline int64_t rcn__row_place(int64_t row, int64_t window) {
    return window ? row % window : row;
}

/* Rows from the first to before the end. */
typedef struct rcn__rows {
    int64_t first, end;
} rcn__rows;

typedef struct rcn__conv_shape {
    int64_t batch;
    int64_t in[2];   /* channels of one or two inputs, which count as one behind the other */
    int64_t out;     /* channels */
    int64_t size[3]; /* inputs: z, y, x */
    int64_t kernel[3];
    int64_t stride[3];
    int64_t pad[3];
    int64_t spread[3];  /* of a 1x1 one: see rcn__conv_forward(); zeros: not at all */
    rcn__layout layout; /* of the input; the output is blocked */
    int training;       /* gradients will be asked for */
    int input_gradient; /* of these, the one for the inputs */
    int copies_weights; /* when they are packed; see rcn__conv_pack() */
    int direct;         /* never by Winograd's way: for the tests */
} rcn__conv_shape;

/* Scratch memory: what all threads work on together, and what each has for itself. A thread's own
 * should be at the same place for all layers, and nothing else there: where cores have no cache in
 * common, writing to what another one has read takes five times as long as to what is one's own. */
typedef struct rcn__scratch_bytes {
    size_t shared, own; /* own: of each thread */
} rcn__scratch_bytes;

typedef struct rcn__scratch {
    void *shared;
    char *own;        /* of the first thread, */
    size_t own_bytes; /* and how far behind it the next one's is */
} rcn__scratch;

static inline void *rcn__scratch_own(const rcn__scratch *scratch, int thread) {
    return scratch->own + (size_t)thread * scratch->own_bytes;
}

typedef struct rcn__conv rcn__conv;

rcn_status rcn__conv_create(rcn__conv **out, rcn_context *ctx, const rcn__conv_shape *shape);
void rcn__conv_destroy(rcn__conv *conv, rcn_context *ctx); /* NULL is fine */

/* Scratch memory that running it needs (with its packed weights not counted). */
rcn__scratch_bytes rcn__conv_scratch_bytes(const rcn__conv *conv);

/* Bytes of packed weights: the larger of those for forward and for backward. */
size_t rcn__conv_packed_bytes(const rcn__conv *conv);

/* Packs weights (out, in, kernel) for forward, each multiplied with its output channel's scale if
 * that is not NULL. Unless the shape says that they are copied, the weights have to stay where they
 * are, and as they are, for as long as what is packed is used: most are read there. */
void rcn__conv_pack(void *packed, rcn__conv *conv, rcn_context *ctx, const float *weights,
                    const float *scale);

/* `in` is an array of one or two. With a spread (z, y, x), the output has spread times the voxels
 * of the input along each axis and a set of output channels for each: the first half of the
 * channels of {1, 1, 2} belongs to the even voxels along x. That is a transposed convolution whose
 * kernel is its stride; bias is one set of channels. Gradients know nothing of it. */
void rcn__conv_forward(float *out, rcn__conv *conv, rcn_context *ctx, const rcn__source *in,
                       const void *packed, const rcn__ending *ending, const rcn__scratch *scratch);

/* Rows of sums that it can make of what it writes forward; 0: none. */
int64_t rcn__conv_tally_rows(const rcn__conv *conv);

/* Row by row: the same numbers for some rows of one image alone, made by the calling thread. Rows
 * are the output's, or with a spread the input's. They come in groups of rcn__conv_row_group(),
 * whose first row is a multiple of that (the last group of an image may be smaller); 0 means that
 * this convolution is not for rows. Inputs and the output may be windows; nothing can be added. */
int64_t rcn__conv_row_group(const rcn__conv *conv);
size_t rcn__conv_row_scratch_bytes(const rcn__conv *conv);
void rcn__conv_forward_rows(float *out, const rcn__conv *conv, const rcn__source *in,
                            const void *packed, const rcn__ending *ending, const rcn__rows *rows,
                            void *scratch);

/* The gradients of one or two inputs, from that of the output: adds to din[k] or overwrites it;
 * NULL: not asked for. Packs the weights itself, into `packed`, once or for each input. */
void rcn__conv_backward_inputs(float *const din[2], const int add[2], rcn__conv *conv,
                               rcn_context *ctx, const float *weights, const float *dout,
                               void *packed, const rcn__scratch *scratch);

/* The gradients of the weights, and of the bias (NULL: not asked for); overwrites them. */
void rcn__conv_backward_weights(float *dweights, float *dbias, rcn__conv *conv, rcn_context *ctx,
                                const rcn__source *in, const float *dout,
                                const rcn__scratch *scratch);

#endif /* RCN_CONV_H */
