// SPDX-License-Identifier: Apache-2.0
/* Random numbers: SplitMix64 (Steele, Lea and Flood 2014). Eight bytes of state, any seed is good,
 * and independent streams come from hashing a seed with a stream number. */
#ifndef RCN_RNG_H
#define RCN_RNG_H

#include <stdint.h>

typedef struct rcn_rng {
    uint64_t state;
} rcn_rng;

/* Stream `stream` of seed `seed`: the same numbers on every machine and number of threads. */
rcn_rng rcn__rng_make(uint64_t seed, uint64_t stream);

uint64_t rcn__rng_next(rcn_rng *rng);

/* 0 ... n - 1, each equally likely (no modulo bias); n > 0. */
uint64_t rcn__rng_below(rcn_rng *rng, uint64_t n);

/* [0, 1) with 53 random bits. */
double rcn__rng_uniform(rcn_rng *rng);

/* Mean 0, standard deviation 1 (Box-Muller). */
double rcn__rng_normal(rcn_rng *rng);

#endif /* RCN_RNG_H */
