// SPDX-License-Identifier: Apache-2.0
/* exp and log for hot loops: plain arithmetic without branches, calls or tables, so that the
 * compiler can work on as many voxels at once as the machine's registers hold. At most 2 units in
 * the last place from the exact result (tested against the C library over their whole range).
 *
 * Polynomials from Cephes (S. L. Moshier), expf.c and logf.c. Every operation is rounded on its own
 * (the library is built without contraction), so all copies of a loop give the same bits.
 */
#ifndef RCN_FASTMATH_H
#define RCN_FASTMATH_H

#include <stdint.h>
#include <string.h>

#include "rcn_compiler.h"

RCN_INLINE int32_t rcn__float_bits(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RCN_INLINE float rcn__bits_float(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The larger and the smaller of two; a NaN in x stays. */
RCN_INLINE float rcn__at_least(float x, float bound) { return bound > x ? bound : x; }
RCN_INLINE float rcn__at_most(float x, float bound) { return bound < x ? bound : x; }

/* e^x; 0 below -87 (no denormals, which are slow), e^88 above 88, NaN for NaN. */
RCN_INLINE float rcn__exp(float x) {
    const float clamped = rcn__at_most(rcn__at_least(x, -87.0f), 88.0f);
    /* Adding 1.5 * 2^23 leaves the nearest whole number in the low bits. */
    const float shifted = clamped * 1.44269504088896341f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * (r * r) + r + 1.0f;
    /* Times 2^n: n goes straight into the exponent. */
    y = rcn__bits_float(
        (int32_t)((uint32_t)rcn__float_bits(y) + ((uint32_t)rcn__float_bits(shifted) << 23)));
    return x < -87.0f ? 0.0f : y;
}

/* log x for a normal positive number; NaN for NaN. */
RCN_INLINE float rcn__log(float x) {
    const int32_t sqrt_half = 0x3F3504F3;
    const int32_t bits = (int32_t)((uint32_t)rcn__float_bits(x) - (uint32_t)sqrt_half);
    const float e = (float)(bits >> 23);
    const float m = rcn__bits_float((bits & 0x007FFFFF) + sqrt_half) - 1.0f;
    const float z = m * m;
    float y = 7.0376836292e-2f;
    y = y * m - 1.1514610310e-1f;
    y = y * m + 1.1676998740e-1f;
    y = y * m - 1.2420140846e-1f;
    y = y * m + 1.4249322787e-1f;
    y = y * m - 1.6668057665e-1f;
    y = y * m + 2.0000714765e-1f;
    y = y * m - 2.4999993993e-1f;
    y = y * m + 3.3333331174e-1f;
    y = y * (m * z) + e * -2.12194440e-4f - 0.5f * z;
    y = (m + y) + e * 0.693359375f;
    return x == x ? y : x;
}

/* log(1 + x), 0 <= x <= 1: what rounding took from 1 + x comes back in first order. */
RCN_INLINE float rcn__log1p(float x) {
    const float w = 1.0f + x;
    return rcn__log(w) + (x - (w - 1.0f)) / w;
}

/* Non-zero when no value is NaN or infinite: such a one stays so, times 0. */
RCN_INLINE int rcn__all_finite(const float *values, int64_t count) {
    enum { LANES = 16 };
    float sums[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; ++lane) sums[lane] += values[i + lane] * 0.0f;
    for (; i < count; ++i) sums[0] += values[i] * 0.0f;
    for (int lane = 0; lane < LANES; ++lane)
        if (sums[lane] != 0) return 0;
    return 1;
}

#endif /* RCN_FASTMATH_H */
