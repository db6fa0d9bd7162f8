// SPDX-License-Identifier: Apache-2.0
#include "rcn_rng.h"

#include <math.h>

/* SplitMix64's finalizer: every bit of the input changes about half of the output. */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

rcn_rng rcn__rng_make(uint64_t seed, uint64_t stream) {
    /* Mixed twice, so that neighboring seeds and streams start far apart. */
    rcn_rng rng = {
        mix(mix(seed + UINT64_C(0x9E3779B97F4A7C15)) ^ (stream * UINT64_C(0xD1B54A32D192ED03)))};
    return rng;
}

uint64_t rcn__rng_next(rcn_rng *rng) {
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    return mix(rng->state);
}

uint64_t rcn__rng_below(rcn_rng *rng, uint64_t n) {
    /* Draws above the last whole multiple of n would favor small results: throw them away. */
    const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t draw;
    do draw = rcn__rng_next(rng);
    while (draw >= limit);
    return draw % n;
}

/* The upper 53 bits: as many as a double has. */
double rcn__rng_uniform(rcn_rng *rng) { return (double)(rcn__rng_next(rng) >> 11) * 0x1p-53; }

double rcn__rng_normal(rcn_rng *rng) {
    /* 1 - u is never 0, and so has a logarithm. The second number of the pair is thrown away: no
     * state. */
    const double radius = sqrt(-2.0 * log(1.0 - rcn__rng_uniform(rng)));
    return radius * cos(6.283185307179586 * rcn__rng_uniform(rng));
}
