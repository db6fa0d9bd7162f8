// SPDX-License-Identifier: Apache-2.0
/* Vectors of floats, and all that the library knows about them:
 *
 *   lanes   one block of channels (rcn_conv.h): an AVX register, or a pair of SSE or NEON ones
 *   vec     VEC floats, one register of the instruction set that a file is compiled for: for the
 *           matrix product (rcn_gemm.h)
 *   wide    WIDE floats, as many blocks of channels as a register holds: two of AVX-512, else one.
 *           For the forms of rcn_winograd.c, which are as many instructions for two as for one
 *
 * There are three kinds of them: GCC's and Clang's own vectors, which exist for every machine; the
 * intrinsics of AVX2 and AVX-512, which every compiler for x86-64 has (Visual C++); and structs of
 * floats, which need nothing but C. RCN_PLAIN_VECTORS asks for the last.
 *
 * A product is fused with a sum where a function's name says so and the instruction set can, and
 * nowhere else. A compiler that may fuse as it likes decides by what is around, and then two copies
 * of a loop give different bits.
 *
 * Vectors are not passed to or returned from functions that are not inlined, so that files may be
 * compiled for any instruction set. Pointers are those of a block of channels, 32 bytes aligned;
 * vec's may point anywhere.
 */
#ifndef RCN_LANES_H
#define RCN_LANES_H

#include <stdint.h>

#include "rcn_compiler.h"
#include "rcn_conv.h"

#if defined(__AVX2__) && (defined(__FMA__) || defined(_MSC_VER))
#define RCN_HAVE_INTRINSICS
#include <immintrin.h>
#elif defined(RCN_GNU) && defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
#define RCN_HAVE_NEON_FMA
#include <arm_neon.h>
#endif
#if !defined(RCN_GNU) && !defined(RCN_HAVE_INTRINSICS) && !defined(RCN_PLAIN_VECTORS)
#define RCN_PLAIN_VECTORS
#endif

/* VEC: floats of a vector; VECS vectors in a row of a block of the product, ROWS rows: as many sums
 * as leave registers for VECS vectors of b and one of a. */
#if defined(RCN_PLAIN_VECTORS)
enum { VEC = 4, VECS = 2, ROWS = 6 }; /* whatever the compiler does */
#elif defined(__AVX512F__)
#define RCN_ROWS_14
enum { VEC = 16, VECS = 2, ROWS = 14 }; /* 32 registers */
#elif defined(__AVX2__)
enum { VEC = 8, VECS = 2, ROWS = 6 }; /* 16 registers */
#elif defined(__ARM_NEON)
#define RCN_VECS_4
enum { VEC = 4, VECS = 4, ROWS = 6 }; /* 32 registers */
#else
enum { VEC = 4, VECS = 2, ROWS = 6 }; /* 16 registers */
#endif

#if defined(RCN_PLAIN_VECTORS)
/* ---- structs --------------------------------------------------------------------------------- */

typedef struct lanes {
    float at[RCN_LANES];
} lanes;

RCN_INLINE lanes lanes_load(const float *from) {
    lanes v;
    for (int l = 0; l < RCN_LANES; ++l) v.at[l] = from[l];
    return v;
}
RCN_INLINE void lanes_store(float *to, lanes v) {
    for (int l = 0; l < RCN_LANES; ++l) to[l] = v.at[l];
}
RCN_INLINE lanes lanes_all(float value) {
    lanes v;
    for (int l = 0; l < RCN_LANES; ++l) v.at[l] = value;
    return v;
}
/* Numbers that are `step` floats apart. */
RCN_INLINE lanes lanes_gather(const float *from, int64_t step) {
    lanes v;
    for (int l = 0; l < RCN_LANES; ++l) v.at[l] = from[l * step];
    return v;
}
RCN_INLINE lanes lanes_load_anywhere(const float *from) { return lanes_load(from); }
RCN_INLINE void lanes_store_anywhere(float *to, lanes v) { lanes_store(to, v); }
RCN_INLINE lanes lanes_add(lanes a, lanes b) {
    for (int l = 0; l < RCN_LANES; ++l) a.at[l] += b.at[l];
    return a;
}
RCN_INLINE lanes lanes_subtract(lanes a, lanes b) {
    for (int l = 0; l < RCN_LANES; ++l) a.at[l] -= b.at[l];
    return a;
}
RCN_INLINE lanes lanes_multiply(lanes a, lanes b) {
    for (int l = 0; l < RCN_LANES; ++l) a.at[l] *= b.at[l];
    return a;
}
/* a * b + c and c - a * b, rounded once or twice as the instruction set has it. */
RCN_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c) {
    for (int l = 0; l < RCN_LANES; ++l) c.at[l] = a.at[l] * b.at[l] + c.at[l];
    return c;
}
RCN_INLINE lanes lanes_multiply_subtract(lanes a, lanes b, lanes c) {
    for (int l = 0; l < RCN_LANES; ++l) c.at[l] = c.at[l] - a.at[l] * b.at[l];
    return c;
}
/* The value where another one is positive, otherwise 0. */
RCN_INLINE lanes lanes_where_positive(lanes value, lanes other) {
    for (int l = 0; l < RCN_LANES; ++l) value.at[l] = other.at[l] > 0 ? value.at[l] : 0.0f;
    return value;
}
/* The larger of two; the floor where the value is not a number. */
RCN_INLINE lanes lanes_at_least(lanes floor, lanes value) {
    for (int l = 0; l < RCN_LANES; ++l)
        value.at[l] = value.at[l] > floor.at[l] ? value.at[l] : floor.at[l];
    return value;
}

typedef struct vec {
    float at[VEC];
} vec;

RCN_INLINE vec vec_load(const float *from) {
    vec v;
    for (int i = 0; i < VEC; ++i) v.at[i] = from[i];
    return v;
}
RCN_INLINE vec vec_zero(void) {
    vec v;
    for (int i = 0; i < VEC; ++i) v.at[i] = 0;
    return v;
}
RCN_INLINE void vec_store(float *to, vec v) {
    for (int i = 0; i < VEC; ++i) to[i] = v.at[i];
}
RCN_INLINE vec vec_add_product(vec sum, float x, vec w) {
    for (int i = 0; i < VEC; ++i) sum.at[i] += x * w.at[i];
    return sum;
}

#elif defined(RCN_GNU)
/* ---- GCC and Clang --------------------------------------------------------------------------- */

typedef float lanes __attribute__((vector_size(32), may_alias));
typedef float lanes_anywhere __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t lane_numbers __attribute__((vector_size(32), may_alias));

RCN_INLINE lanes lanes_load(const float *from) { return *(const lanes *)from; }
RCN_INLINE void lanes_store(float *to, lanes v) { *(lanes *)to = v; }
/* Adding to zero, the shorter way, is an instruction: -0 + 0 is not -0. */
RCN_INLINE lanes lanes_all(float value) {
    return (lanes){value, value, value, value, value, value, value, value};
}
RCN_INLINE lanes lanes_gather(const float *from, int64_t step) {
    return (lanes){from[0],        from[step],     from[2 * step], from[3 * step],
                   from[4 * step], from[5 * step], from[6 * step], from[7 * step]};
}
RCN_INLINE lanes lanes_load_anywhere(const float *from) { return *(const lanes_anywhere *)from; }
RCN_INLINE void lanes_store_anywhere(float *to, lanes v) { *(lanes_anywhere *)to = v; }
RCN_INLINE lanes lanes_add(lanes a, lanes b) { return a + b; }
RCN_INLINE lanes lanes_subtract(lanes a, lanes b) { return a - b; }
RCN_INLINE lanes lanes_multiply(lanes a, lanes b) { return a * b; }
#if defined(RCN_HAVE_INTRINSICS)
RCN_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c) {
    return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
RCN_INLINE lanes lanes_multiply_subtract(lanes a, lanes b, lanes c) {
    return (lanes)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#elif defined(RCN_HAVE_NEON_FMA)
typedef union lane_halves {
    lanes all;
    float32x4_t half[2];
} lane_halves;
RCN_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c) {
    const lane_halves x = {a}, y = {b};
    lane_halves sum = {c};
    for (int h = 0; h < 2; ++h) sum.half[h] = vfmaq_f32(sum.half[h], x.half[h], y.half[h]);
    return sum.all;
}
RCN_INLINE lanes lanes_multiply_subtract(lanes a, lanes b, lanes c) {
    const lane_halves x = {a}, y = {b};
    lane_halves rest = {c};
    for (int h = 0; h < 2; ++h) rest.half[h] = vfmsq_f32(rest.half[h], x.half[h], y.half[h]);
    return rest.all;
}
#else
RCN_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c) { return a * b + c; }
RCN_INLINE lanes lanes_multiply_subtract(lanes a, lanes b, lanes c) { return c - a * b; }
#endif
RCN_INLINE lanes lanes_where_positive(lanes value, lanes other) {
    return (lanes)((lane_numbers)value & (other > 0));
}
RCN_INLINE lanes lanes_at_least(lanes floor, lanes value) {
#if defined(RCN_HAVE_INTRINSICS)
    return (lanes)_mm256_max_ps((__m256)value, (__m256)floor);
#else
    const lane_numbers above = value > floor;
    return (lanes)(((lane_numbers)value & above) | ((lane_numbers)floor & ~above));
#endif
}

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vec_anywhere __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

RCN_INLINE vec vec_load(const float *from) { return *(const vec_anywhere *)from; }
RCN_INLINE vec vec_zero(void) { return (vec){0}; }
RCN_INLINE void vec_store(float *to, vec v) { *(vec_anywhere *)to = v; }
RCN_INLINE vec vec_add_product(vec sum, float x, vec w) {
#if defined(RCN_HAVE_INTRINSICS) && defined(__AVX512F__)
    return (vec)_mm512_fmadd_ps(_mm512_set1_ps(x), (__m512)w, (__m512)sum);
#elif defined(RCN_HAVE_INTRINSICS)
    return (vec)_mm256_fmadd_ps(_mm256_set1_ps(x), (__m256)w, (__m256)sum);
#elif defined(RCN_HAVE_NEON_FMA)
    return (vec)vfmaq_n_f32((float32x4_t)sum, (float32x4_t)w, x);
#else
    return sum + x * w;
#endif
}

#else
/* ---- AVX2 and AVX-512 ------------------------------------------------------------------------ */

typedef __m256 lanes;

RCN_INLINE lanes lanes_load(const float *from) { return _mm256_loadu_ps(from); }
RCN_INLINE void lanes_store(float *to, lanes v) { _mm256_storeu_ps(to, v); }
RCN_INLINE lanes lanes_all(float value) { return _mm256_set1_ps(value); }
RCN_INLINE lanes lanes_gather(const float *from, int64_t step) {
    return _mm256_setr_ps(from[0], from[step], from[2 * step], from[3 * step], from[4 * step],
                          from[5 * step], from[6 * step], from[7 * step]);
}
RCN_INLINE lanes lanes_load_anywhere(const float *from) { return _mm256_loadu_ps(from); }
RCN_INLINE void lanes_store_anywhere(float *to, lanes v) { _mm256_storeu_ps(to, v); }
RCN_INLINE lanes lanes_add(lanes a, lanes b) { return _mm256_add_ps(a, b); }
RCN_INLINE lanes lanes_subtract(lanes a, lanes b) { return _mm256_sub_ps(a, b); }
RCN_INLINE lanes lanes_multiply(lanes a, lanes b) { return _mm256_mul_ps(a, b); }
RCN_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c) { return _mm256_fmadd_ps(a, b, c); }
RCN_INLINE lanes lanes_multiply_subtract(lanes a, lanes b, lanes c) {
    return _mm256_fnmadd_ps(a, b, c);
}
RCN_INLINE lanes lanes_where_positive(lanes value, lanes other) {
    return _mm256_and_ps(value, _mm256_cmp_ps(other, _mm256_setzero_ps(), _CMP_GT_OQ));
}
RCN_INLINE lanes lanes_at_least(lanes floor, lanes value) { return _mm256_max_ps(value, floor); }

#if defined(__AVX512F__)
typedef __m512 vec;
RCN_INLINE vec vec_load(const float *from) { return _mm512_loadu_ps(from); }
RCN_INLINE vec vec_zero(void) { return _mm512_setzero_ps(); }
RCN_INLINE void vec_store(float *to, vec v) { _mm512_storeu_ps(to, v); }
RCN_INLINE vec vec_add_product(vec sum, float x, vec w) {
    return _mm512_fmadd_ps(_mm512_set1_ps(x), w, sum);
}
#else
typedef __m256 vec;
RCN_INLINE vec vec_load(const float *from) { return _mm256_loadu_ps(from); }
RCN_INLINE vec vec_zero(void) { return _mm256_setzero_ps(); }
RCN_INLINE void vec_store(float *to, vec v) { _mm256_storeu_ps(to, v); }
RCN_INLINE vec vec_add_product(vec sum, float x, vec w) {
    return _mm256_fmadd_ps(_mm256_set1_ps(x), w, sum);
}
#endif
#endif

/* ---- the same for all ------------------------------------------------------------------------ */

RCN_INLINE lanes lanes_zero(void) { return lanes_all(0.0f); }
RCN_INLINE lanes lanes_scale(float factor, lanes v) { return lanes_multiply(lanes_all(factor), v); }

/* Rows become columns: of rows[r], lane l goes to rows[l], lane r. */
RCN_INLINE void lanes_transpose(lanes rows[RCN_LANES]) {
#if defined(RCN_HAVE_INTRINSICS) && !defined(RCN_PLAIN_VECTORS)
    __m256 pair[RCN_LANES], four[RCN_LANES];
    for (int r = 0; r < RCN_LANES; r += 2) {
        pair[r] = _mm256_unpacklo_ps((__m256)rows[r], (__m256)rows[r + 1]);
        pair[r + 1] = _mm256_unpackhi_ps((__m256)rows[r], (__m256)rows[r + 1]);
    }
    for (int r = 0; r < RCN_LANES; r += 4) {
        four[r] = _mm256_shuffle_ps(pair[r], pair[r + 2], 0x44);
        four[r + 1] = _mm256_shuffle_ps(pair[r], pair[r + 2], 0xee);
        four[r + 2] = _mm256_shuffle_ps(pair[r + 1], pair[r + 3], 0x44);
        four[r + 3] = _mm256_shuffle_ps(pair[r + 1], pair[r + 3], 0xee);
    }
    for (int r = 0; r < RCN_LANES / 2; ++r) {
        rows[r] = (lanes)_mm256_permute2f128_ps(four[r], four[r + 4], 0x20);
        rows[r + 4] = (lanes)_mm256_permute2f128_ps(four[r], four[r + 4], 0x31);
    }
#else
    _Alignas(32) float all[RCN_LANES][RCN_LANES];
    for (int r = 0; r < RCN_LANES; ++r) lanes_store(all[r], rows[r]);
    for (int l = 0; l < RCN_LANES; ++l) rows[l] = lanes_gather(all[0] + l, RCN_LANES);
#endif
}

/* sums (8 of them) += v. */
RCN_INLINE void lanes_add_to(double *sums, lanes v) {
    _Alignas(32) float at[RCN_LANES];
    lanes_store(at, v);
    for (int l = 0; l < RCN_LANES; ++l) sums[l] += (double)at[l];
}

/* Writes past the caches; before anybody else reads it, lanes_stream_end() makes it seen. */
RCN_INLINE void lanes_stream(float *to, lanes v) {
#if defined(RCN_PLAIN_VECTORS) || !defined(RCN_HAVE_INTRINSICS)
    lanes_store(to, v);
#elif defined(RCN_GNU)
    _mm256_stream_ps(to, (__m256)v);
#else
    _mm256_stream_ps(to, v);
#endif
}
RCN_INLINE void lanes_stream_end(void) {
#if defined(RCN_HAVE_INTRINSICS)
    _mm_sfence();
#endif
}

/* Says that this place will be read soon. */
RCN_INLINE void prefetch(const float *place) {
#if defined(RCN_GNU)
    __builtin_prefetch(place);
#elif defined(RCN_HAVE_INTRINSICS)
    _mm_prefetch((const char *)place, _MM_HINT_T0);
#else
    (void)place;
#endif
}

/* ---- as many blocks of channels as a register holds ------------------------------------------ */

/* wide_x() is lanes_x() of more numbers; what is different is how they are read and written: one
 * behind the other, or in `blocks` blocks (constant where this is compiled in) with zeros behind
 * them, each of which has a place of its own. */
#if defined(RCN_HAVE_INTRINSICS) && defined(__AVX512F__) && !defined(RCN_PLAIN_VECTORS)
#define RCN_WIDE_16
enum { WIDE_BLOCKS = 2, WIDE = WIDE_BLOCKS * RCN_LANES };
typedef __m512 wide;

RCN_INLINE wide wide_load(const float *from) { return _mm512_loadu_ps(from); }
RCN_INLINE void wide_store(float *to, wide v) { _mm512_storeu_ps(to, v); }
RCN_INLINE wide wide_all(float value) { return _mm512_set1_ps(value); }
RCN_INLINE wide wide_add(wide a, wide b) { return _mm512_add_ps(a, b); }
RCN_INLINE wide wide_subtract(wide a, wide b) { return _mm512_sub_ps(a, b); }
RCN_INLINE wide wide_multiply(wide a, wide b) { return _mm512_mul_ps(a, b); }
RCN_INLINE wide wide_multiply_add(wide a, wide b, wide c) { return _mm512_fmadd_ps(a, b, c); }
RCN_INLINE wide wide_multiply_subtract(wide a, wide b, wide c) { return _mm512_fnmadd_ps(a, b, c); }
RCN_INLINE wide wide_at_least(wide floor, wide value) { return _mm512_max_ps(value, floor); }
RCN_INLINE wide wide_join(lanes first, lanes second) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(first), second, 1);
}
RCN_INLINE wide wide_load_each(const float *const from[WIDE_BLOCKS], const int blocks) {
    return wide_join(lanes_load(from[0]), blocks > 1 ? lanes_load(from[1]) : lanes_zero());
}
/* The second block lies `apart` floats from the first. */
RCN_INLINE wide wide_load_blocks(const float *from, int64_t apart, const int blocks) {
    return wide_join(lanes_load(from), blocks > 1 ? lanes_load(from + apart) : lanes_zero());
}
RCN_INLINE wide wide_of(const lanes part[WIDE_BLOCKS], const int blocks) {
    return wide_join(part[0], blocks > 1 ? part[1] : lanes_zero());
}
RCN_INLINE lanes wide_block(wide v, const int block) {
    return block ? _mm512_extractf32x8_ps(v, 1) : _mm512_castps512_ps256(v);
}
#else
enum { WIDE_BLOCKS = 1, WIDE = RCN_LANES };
typedef lanes wide;

RCN_INLINE wide wide_load(const float *from) { return lanes_load(from); }
RCN_INLINE void wide_store(float *to, wide v) { lanes_store(to, v); }
RCN_INLINE wide wide_all(float value) { return lanes_all(value); }
RCN_INLINE wide wide_add(wide a, wide b) { return lanes_add(a, b); }
RCN_INLINE wide wide_subtract(wide a, wide b) { return lanes_subtract(a, b); }
RCN_INLINE wide wide_multiply(wide a, wide b) { return lanes_multiply(a, b); }
RCN_INLINE wide wide_multiply_add(wide a, wide b, wide c) { return lanes_multiply_add(a, b, c); }
RCN_INLINE wide wide_multiply_subtract(wide a, wide b, wide c) {
    return lanes_multiply_subtract(a, b, c);
}
RCN_INLINE wide wide_at_least(wide floor, wide value) { return lanes_at_least(floor, value); }
RCN_INLINE wide wide_load_each(const float *const from[WIDE_BLOCKS], const int blocks) {
    (void)blocks;
    return lanes_load(from[0]);
}
RCN_INLINE wide wide_load_blocks(const float *from, int64_t apart, const int blocks) {
    (void)apart;
    (void)blocks;
    return lanes_load(from);
}
RCN_INLINE wide wide_of(const lanes part[WIDE_BLOCKS], const int blocks) {
    (void)blocks;
    return part[0];
}
RCN_INLINE lanes wide_block(wide v, const int block) {
    (void)block;
    return v;
}
#endif

RCN_INLINE wide wide_zero(void) { return wide_all(0.0f); }

/* factor * v, sum + factor * v and sum - factor * v. */
RCN_INLINE wide wide_scale(float factor, wide v) { return wide_multiply(wide_all(factor), v); }
RCN_INLINE wide wide_add_scaled(wide sum, float factor, wide v) {
    return wide_multiply_add(wide_all(factor), v, sum);
}
RCN_INLINE wide wide_subtract_scaled(wide sum, float factor, wide v) {
    return wide_multiply_subtract(wide_all(factor), v, sum);
}

/* ---- which is the largest -------------------------------------------------------------------- */

/* A whole number in each lane: which of several values was the largest. */
#if defined(RCN_GNU) && !defined(RCN_PLAIN_VECTORS)
RCN_INLINE lane_numbers lane_numbers_zero(void) { return (lane_numbers){0}; }
RCN_INLINE lane_numbers lane_numbers_load(const uint8_t *from) {
    lane_numbers v;
    for (int l = 0; l < RCN_LANES; ++l) v[l] = from[l];
    return v;
}
RCN_INLINE void lane_numbers_store(uint8_t *to, lane_numbers v) {
    for (int l = 0; l < RCN_LANES; ++l) to[l] = (uint8_t)v[l];
}
/* Where the value is larger than the best so far, it becomes the best and `number` its number. */
RCN_INLINE void lanes_take_larger(lanes *best, lane_numbers *which, lanes value, int32_t number) {
    const lane_numbers better = value > *best;
    *best = (lanes)(((lane_numbers)value & better) | ((lane_numbers)*best & ~better));
    *which = (((lane_numbers){0} + number) & better) | (*which & ~better);
}
/* The value where `which` is the number, otherwise 0. */
RCN_INLINE lanes lanes_where_number(lanes value, lane_numbers which, int32_t number) {
    return (lanes)((lane_numbers)value & (which == number));
}
#else
typedef struct lane_numbers {
    int32_t at[RCN_LANES];
} lane_numbers;
RCN_INLINE lane_numbers lane_numbers_zero(void) {
    const lane_numbers v = {{0}};
    return v;
}
RCN_INLINE lane_numbers lane_numbers_load(const uint8_t *from) {
    lane_numbers v;
    for (int l = 0; l < RCN_LANES; ++l) v.at[l] = from[l];
    return v;
}
RCN_INLINE void lane_numbers_store(uint8_t *to, lane_numbers v) {
    for (int l = 0; l < RCN_LANES; ++l) to[l] = (uint8_t)v.at[l];
}
RCN_INLINE void lanes_take_larger(lanes *best, lane_numbers *which, lanes value, int32_t number) {
    float old[RCN_LANES], now[RCN_LANES];
    lanes_store(old, *best);
    lanes_store(now, value);
    for (int l = 0; l < RCN_LANES; ++l) {
        const int better = now[l] > old[l];
        old[l] = better ? now[l] : old[l];
        which->at[l] = better ? number : which->at[l];
    }
    *best = lanes_load(old);
}
RCN_INLINE lanes lanes_where_number(lanes value, lane_numbers which, int32_t number) {
    float at[RCN_LANES];
    lanes_store(at, value);
    for (int l = 0; l < RCN_LANES; ++l) at[l] = which.at[l] == number ? at[l] : 0.0f;
    return lanes_load(at);
}
#endif

#endif /* RCN_LANES_H */
