// SPDX-License-Identifier: Apache-2.0
/* The matrix product that every convolution stands on, as static functions: the files that include
 * it (rcn_winograd.c, rcn_direct.c) are compiled once for each instruction set (rcn_engine.h).
 *
 * A call makes a small block of the result, ROWS x WIDTH numbers that stay in registers while the
 * sum runs: c[r][n] (+)= sum over k of a[r, k] * b[k][n]. Rows of `a` are numbers that are spread
 * over a vector, `b` is read as vectors. What lies where:
 *
 *   RCN_FORWARD   a is a blocked tensor: row r is 8 floats behind row r - 1, k runs over the lanes
 *                 of a block, then to the next block: a[offsets[o] + 8 r + i]
 *   RCN_GRADIENT  rows are the lanes, k runs over voxels: a[offsets[o] + r + 8 i]
 *
 *   RCN_TAPS      rows are voxels, k runs over voxels, too: a[offsets[o] + 8 r + 8 i]
 *
 * for o = 0 ... outer - 1 and, within it, i = 0 ... inner - 1. RCN_WIDE_FORWARD, RCN_WIDE_GRADIENT:
 * the same with WIDE (rcn_lanes.h) in place of 8. `b` lies as it is read: `columns` floats for each
 * (o, i), a multiple of VEC.
 *
 * Each number is summed up in the order of k, whatever the block is, so results do not depend on
 * how work is cut into blocks.
 */
#ifndef RCN_GEMM_H
#define RCN_GEMM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "rcn_conv.h"
#include "rcn_lanes.h"
#include "rcn_parallel.h"

enum { WIDTH = VEC * VECS };

typedef enum rcn__product_kind {
    RCN_FORWARD = 0,
    RCN_GRADIENT = 1,
    RCN_TAPS = 2,
    RCN_WIDE_FORWARD = 3,
    RCN_WIDE_GRADIENT = 4
} rcn__product_kind;

typedef struct rcn__product {
    float *c;
    ptrdiff_t c_pitch; /* floats from one row to the next */
    int add;           /* to what is in c */
    const float *a;
    const ptrdiff_t *offsets;
    int64_t outer, inner;
    const float *b;
} rcn__product;

/* The sums are variables with names, not an array: GCC unrolls the loops over an array too late to
 * keep it out of memory, and then writes all sums to the stack after every turn of the outer loop.
 * `rows` and `vecs` are constants where this is compiled in, so that what is not asked for is gone.
 */
#if defined(RCN_ROWS_14)
#define EACH_SUM(each)                                                                             \
    each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7) each(8) each(9) each(10)       \
        each(11) each(12) each(13)
#else
#define EACH_SUM(each) each(0) each(1) each(2) each(3) each(4) each(5)
#endif
#define SUM_START(r)                                                                               \
    vec s##r##_0 = vec_zero(), s##r##_1 = s##r##_0, s##r##_2 = s##r##_0, s##r##_3 = s##r##_0;
#define SUM_LOAD(r)                                                                                \
    if (rows > r) {                                                                                \
        const float *from = p->c + r * p->c_pitch;                                                 \
        s##r##_0 = vec_load(from);                                                                 \
        if (vecs > 1) s##r##_1 = vec_load(from + VEC);                                             \
        if (vecs > 2) s##r##_2 = vec_load(from + 2 * VEC);                                         \
        if (vecs > 3) s##r##_3 = vec_load(from + 3 * VEC);                                         \
    }
#define SUM_ADD(r)                                                                                 \
    if (rows > r) {                                                                                \
        const float x = a[r * row_step];                                                           \
        s##r##_0 = vec_add_product(s##r##_0, x, w0);                                               \
        if (vecs > 1) s##r##_1 = vec_add_product(s##r##_1, x, w1);                                 \
        if (vecs > 2) s##r##_2 = vec_add_product(s##r##_2, x, w2);                                 \
        if (vecs > 3) s##r##_3 = vec_add_product(s##r##_3, x, w3);                                 \
    }
#define SUM_STORE(r)                                                                               \
    if (rows > r) {                                                                                \
        float *to = p->c + r * p->c_pitch;                                                         \
        vec_store(to, s##r##_0);                                                                   \
        if (vecs > 1) vec_store(to + VEC, s##r##_1);                                               \
        if (vecs > 2) vec_store(to + 2 * VEC, s##r##_2);                                           \
        if (vecs > 3) vec_store(to + 3 * VEC, s##r##_3);                                           \
    }

RCN_INLINE void multiply(const int rows, const int vecs, const int row_step, const int step,
                         const rcn__product *p) {
    const float *b = p->b;
    const int64_t outer = p->outer, inner = p->inner;
    EACH_SUM(SUM_START)
    if (p->add) {
        EACH_SUM(SUM_LOAD)
    }
    for (int64_t o = 0; o < outer; ++o) {
        const float *a = p->a + p->offsets[o];
        /* A new place, which no machine foresees. */
        if (row_step > 1 && o + 1 < outer && p->offsets[o + 1] != p->offsets[o] + RCN_LANES) {
            const float *next = p->a + p->offsets[o + 1];
            for (int r = 0; r < rows; r += 2) prefetch(next + r * row_step);
        }
        for (int64_t i = 0; i < inner; ++i, a += step, b += vecs * VEC) {
            const vec w0 = vec_load(b), w1 = vecs > 1 ? vec_load(b + VEC) : w0;
            const vec w2 = vecs > 2 ? vec_load(b + 2 * VEC) : w0;
            const vec w3 = vecs > 3 ? vec_load(b + 3 * VEC) : w0;
            EACH_SUM(SUM_ADD)
        }
    }
    EACH_SUM(SUM_STORE)
}

/* One function for each number of rows and vectors, so that the compiler keeps sums in registers.
 */
#define PRODUCT_OF(kind, rows, vecs, row_step, step)                                               \
    static void kind##_##rows##_##vecs(const rcn__product *p) {                                    \
        multiply(rows, vecs, row_step, step, p);                                                   \
    }
#if defined(RCN_WIDE_16)
#define PRODUCT(rows, vecs)                                                                        \
    PRODUCT_OF(forward, rows, vecs, 8, 1)                                                          \
    PRODUCT_OF(gradient, rows, vecs, 1, 8)                                                         \
    PRODUCT_OF(taps, rows, vecs, 8, 8)                                                             \
    PRODUCT_OF(wide_forward, rows, vecs, 16, 1)                                                    \
    PRODUCT_OF(wide_gradient, rows, vecs, 1, 16)
#else
#define PRODUCT(rows, vecs)                                                                        \
    PRODUCT_OF(forward, rows, vecs, 8, 1)                                                          \
    PRODUCT_OF(gradient, rows, vecs, 1, 8)                                                         \
    PRODUCT_OF(taps, rows, vecs, 8, 8)
#endif
#define PRODUCT_ENTRY(kind, rows) {EACH_VECS(kind, rows)}
#if defined(RCN_VECS_4)
#define PRODUCTS(rows) PRODUCT(rows, 1) PRODUCT(rows, 2) PRODUCT(rows, 3) PRODUCT(rows, 4)
#define EACH_VECS(kind, rows)                                                                      \
    kind##_##rows##_1, kind##_##rows##_2, kind##_##rows##_3, kind##_##rows##_4
#else
#define PRODUCTS(rows) PRODUCT(rows, 1) PRODUCT(rows, 2)
#define EACH_VECS(kind, rows) kind##_##rows##_1, kind##_##rows##_2
#endif
PRODUCTS(1)
PRODUCTS(2)
PRODUCTS(3)
PRODUCTS(4)
PRODUCTS(5)
PRODUCTS(6)
#if defined(RCN_ROWS_14)
PRODUCTS(7)
PRODUCTS(8)
PRODUCTS(9)
PRODUCTS(10)
PRODUCTS(11)
PRODUCTS(12)
PRODUCTS(13)
PRODUCTS(14)
#define EACH_ROWS(kind)                                                                            \
    PRODUCT_ENTRY(kind, 1), PRODUCT_ENTRY(kind, 2), PRODUCT_ENTRY(kind, 3),                        \
        PRODUCT_ENTRY(kind, 4), PRODUCT_ENTRY(kind, 5), PRODUCT_ENTRY(kind, 6),                    \
        PRODUCT_ENTRY(kind, 7), PRODUCT_ENTRY(kind, 8), PRODUCT_ENTRY(kind, 9),                    \
        PRODUCT_ENTRY(kind, 10), PRODUCT_ENTRY(kind, 11), PRODUCT_ENTRY(kind, 12),                 \
        PRODUCT_ENTRY(kind, 13), PRODUCT_ENTRY(kind, 14)
#else
#define EACH_ROWS(kind)                                                                            \
    PRODUCT_ENTRY(kind, 1), PRODUCT_ENTRY(kind, 2), PRODUCT_ENTRY(kind, 3),                        \
        PRODUCT_ENTRY(kind, 4), PRODUCT_ENTRY(kind, 5), PRODUCT_ENTRY(kind, 6)
#endif

/* c = rows x columns, as many rows as one likes; they are shared out evenly, so that no short block
 * is left behind. */
static void multiply_rows(rcn__product p, rcn__product_kind kind, int64_t rows, int64_t columns) {
    static void (*const products[][ROWS][VECS])(const rcn__product *) = {
        {EACH_ROWS(forward)},      {EACH_ROWS(gradient)},      {EACH_ROWS(taps)},
#if defined(RCN_WIDE_16)
        {EACH_ROWS(wide_forward)}, {EACH_ROWS(wide_gradient)},
#else
        {EACH_ROWS(forward)}, {EACH_ROWS(gradient)},
#endif
    };
    static const ptrdiff_t row_steps[] = {RCN_LANES, 1, RCN_LANES, WIDE, 1};
    const int64_t blocks = (rows + ROWS - 1) / ROWS;
    const int vecs = (int)(columns / VEC) - 1;
    const ptrdiff_t a_row = row_steps[kind];
    for (int64_t b = 0, first = 0; b < blocks; ++b) {
        const int64_t end = rows * (b + 1) / blocks, count = end - first;
        products[kind][count - 1][vecs](&p);
        p.a += count * a_row;
        p.c += count * p.c_pitch;
        first = end;
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/* Output channels go in groups of WIDTH columns; the last group is filled up to whole vectors and
 * whole blocks of channels. */
enum { COLUMN_STEP = VEC < 8 ? 8 : VEC };
static inline int64_t groups_of(int64_t channels) { return parts(channels, WIDTH); }
static inline int64_t columns_of(int64_t channels, int64_t group) {
    return smaller(parts(channels - group * WIDTH, COLUMN_STEP) * COLUMN_STEP, WIDTH);
}
static inline int64_t columns_before(int64_t group) { return group * WIDTH; }
static inline int64_t columns_in_all(int64_t channels) {
    return parts(channels, COLUMN_STEP) * COLUMN_STEP;
}

/* ---- large outputs --------------------------------------------------------------------------- */

/* Outputs that no cache holds are written past it: then a line is not read before it is written. */
enum { LARGE_FLOATS = 4 << 20 };

/* ---- the bias's gradient --------------------------------------------------------------------- */

static inline int64_t blocks_of(int64_t channels) { return parts(channels, RCN_LANES); }

typedef struct sum_job {
    float *sums;
    const float *from;
    int64_t batch, channels, voxels;
} sum_job;

/* Sums over images and voxels, of one block of channels. */
static void sum_block(int64_t c, int thread, void *payload) {
    enum { RUN = 256 }; /* values added up as floats before the sum continues in double */
    const sum_job *job = payload;
    double sums[RCN_LANES] = {0};
    (void)thread;
    for (int64_t n = 0; n < job->batch; ++n) {
        const float *plane =
            job->from + (n * blocks_of(job->channels) + c) * job->voxels * RCN_LANES;
        for (int64_t first = 0; first < job->voxels; first += RUN) {
            lanes sum = lanes_zero();
            for (int64_t v = first; v < smaller(first + RUN, job->voxels); ++v)
                sum = lanes_add(sum, lanes_load(plane + v * RCN_LANES));
            lanes_add_to(sums, sum);
        }
    }
    for (int64_t l = 0; l < RCN_LANES && c * RCN_LANES + l < job->channels; ++l)
        job->sums[c * RCN_LANES + l] = (float)sums[l];
}

static void sum_outputs(float *sums, rcn_context *ctx, const float *from, int64_t batch,
                        int64_t channels, int64_t voxels) {
    sum_job job = {sums, from, batch, channels, voxels};
    rcn__for_all(ctx, blocks_of(channels), sum_block, &job);
}

#endif /* RCN_GEMM_H */
