// SPDX-License-Identifier: Apache-2.0
/* The two ways of convolving, compiled for several instruction sets and chosen at run time.
 *
 * rcn_winograd.c: 3x3 convolutions with a quarter of the multiplications (Winograd; Lavin and Gray
 * 2016, F(4x4, 3x3)). A tile of 4x4 outputs depends on 6x6 inputs. Both, and the 3x3 weights, have
 * forms of 6x6 numbers in which the convolution is a product element by element; summed over the
 * channels that makes 36 matrix products, whose rows are tiles. Weights' gradients are the same
 * backwards: the exact adjoint. The forms are polynomials at the points 0, +-3/4, +-3/2 and
 * infinity: exact in float, and with rounding about 2.5 times that of direct convolution (the usual
 * 0, +-1, +-2: 5 times). Volumes: kernels of 3x3x3 or 1x3x3; slices along z are convolved like
 * channels.
 *
 * rcn_direct.c: everything else, by its definition: any kernel, stride and padding.
 *
 * Both stand on the matrix product of rcn_gemm.h. The files rcn_isa_*.c include them, each compiled
 * for one instruction set; nothing of theirs may be called on a machine that lacks it.
 */
#ifndef RCN_ENGINE_H
#define RCN_ENGINE_H

#include "rcn_conv.h"

/* A kernel has at most so many taps: 8 x 8 x 8. */
enum { RCN_MOST_TAPS = 512 };

/* What the channels of PyTorch's (out, total_in, kernel) are to a convolution. */
typedef struct rcn__weight_slice {
    int64_t first_in, total_in;
    int mirrored; /* for the input's gradient: in and out change places and the kernel is turned */
    const float *scale; /* (out): what weights are multiplied with, or NULL; not when mirrored */
} rcn__weight_slice;

/* A convolution with stride 1 whose output is as large as its input. */
typedef struct rcn__winograd {
    int64_t batch;
    int64_t in[2], out; /* channels, multiples of RCN_LANES; a second input or 0 */
    int64_t out_second; /* of `out`, the last ones that go to a second output, or 0 */
    int64_t size[3];    /* z, y, x */
    int64_t depth;      /* of the kernel: 1 or 3 */
    int copies_weights; /* when they are packed; otherwise they stay where they are meanwhile */
} rcn__winograd;

/* out[o] = sum over taps of w[tap] * in[...], where
 * forward: output o reads the input at o * stride - pad + tap;
 * backward (the input's gradient: "in" is the output's gradient, "out" the input's): output o reads
 * the inputs i with i * stride - pad + tap = o. */
typedef struct rcn__direct {
    int64_t batch;
    int64_t in[2], out; /* channels; a second input or 0 */
    int64_t in_size[3], out_size[3];
    int64_t kernel[3], stride[3], pad[3];
    int64_t spread[3];  /* output channels in as many sets as that makes voxels, side by side */
    rcn__layout layout; /* of the input */
    int backward;
    int by_rows; /* for direct_rows() */
} rcn__direct;

/* Sizes are in bytes; scratch memory and packed weights are the caller's and aligned to 64 bytes.
 * pack: `where` must be mirrored for backward. rows: of a batch of one, on the calling thread, with
 * scratch memory for one; winograd_by_rows() tells whether that pays. Gradients overwrite their
 * slice of dweights, and dbias; dbias may be NULL. The same bits for any number of threads. */
typedef struct rcn__engine {
    const char *name;

    size_t (*winograd_packed_bytes)(const rcn__winograd *shape);
    rcn__scratch_bytes (*winograd_scratch_bytes)(const rcn__winograd *shape, int threads);
    rcn__scratch_bytes (*winograd_gradient_bytes)(const rcn__winograd *shape, int threads);
    void (*winograd_pack)(float *packed, const rcn__winograd *shape, rcn_context *ctx,
                          const float *weights, const rcn__weight_slice *where);
    void (*winograd_convolve)(float *const out[2], const rcn__winograd *shape, rcn_context *ctx,
                              const rcn__source *in, const float *packed, const rcn__ending *ending,
                              const rcn__scratch *scratch);
    int64_t (*winograd_tally_rows)(const rcn__winograd *shape);
    int (*winograd_by_rows)(const rcn__winograd *shape);
    void (*winograd_rows)(float *out, const rcn__winograd *shape, const rcn__source *in,
                          const float *packed, const rcn__ending *ending, const rcn__rows *rows,
                          void *scratch);
    void (*winograd_gradient)(float *dweights, float *dbias, const rcn__winograd *shape,
                              rcn_context *ctx, const rcn__source *in, const float *dout,
                              const rcn__weight_slice *where, const rcn__scratch *scratch);

    size_t (*direct_packed_bytes)(const rcn__direct *shape);
    rcn__scratch_bytes (*direct_scratch_bytes)(const rcn__direct *shape);
    rcn__scratch_bytes (*direct_gradient_bytes)(const rcn__direct *shape, int threads);
    void (*direct_pack)(float *packed, const rcn__direct *shape, rcn_context *ctx,
                        const float *weights, const rcn__weight_slice *where);
    void (*direct_convolve)(float *out, const rcn__direct *shape, rcn_context *ctx,
                            const rcn__source *in, const float *packed, const rcn__ending *ending,
                            const rcn__scratch *scratch);
    void (*direct_rows)(float *out, const rcn__direct *shape, const rcn__source *in,
                        const float *packed, const rcn__ending *ending, const rcn__rows *rows,
                        void *scratch);
    void (*direct_gradient)(float *dweights, float *dbias, const rcn__direct *shape,
                            rcn_context *ctx, const rcn__source *in, const float *dout,
                            const rcn__weight_slice *where, const rcn__scratch *scratch);
} rcn__engine;

/* Those that the compiler could make; which of them exist, rcn_engine.c knows. */
extern const rcn__engine rcn__engine_avx512, rcn__engine_avx2, rcn__engine_baseline,
    rcn__engine_plain;

/* The fastest that this machine has, or the one that RCN_ISA in the environment names (avx512,
 * avx2, sse2, neon, plain) if it has it. */
const rcn__engine *rcn__engine_choose(void);

/* The engine of this name, or NULL where there is none or this machine cannot run it. */
const rcn__engine *rcn__engine_find(const char *name);

#endif /* RCN_ENGINE_H */
