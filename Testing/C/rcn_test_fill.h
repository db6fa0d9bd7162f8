// SPDX-License-Identifier: Apache-2.0
/* Values for parameters and images that any language can make again from their names: no weights
 * need to be stored for a comparison. Element i of `name` is SplitMix64 of
 * FNV-1a(name) + i * 0x9E3779B97F4A7C15, taken as a number in [-1, 1). */
#ifndef RCN_TEST_FILL_H
#define RCN_TEST_FILL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "rcn/rcn_hash.h"
#include "rcn/rcn_net.h"

static inline double fill_number(uint64_t seed, int64_t i) {
    uint64_t z = seed + (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1.0;
}

/* offset + scale * number. */
static inline void fill_values(float *out, const char *name, int64_t count, double scale,
                               double offset) {
    const uint64_t seed = rcn_hash_bytes(RCN_HASH_START, name, strlen(name));
    for (int64_t i = 0; i < count; ++i) out[i] = (float)(offset + scale * fill_number(seed, i));
}

/* Convolutions: variance 1 / fan_in; norms: weights and variances about 1. Biases but the head's
 * about 2: few of the values before a ReLU are then so near to zero that rounding decides on which
 * side they are, which would change gradients as a whole (net_fill.py). The rest about 0. */
static inline void fill_parameter(float *values, const rcn_parameter *parameter) {
    float *to = values + parameter->offset;
    const char *dot = strrchr(parameter->name, '.');
    if (parameter->kind == RCN_COUNTER) {
        *to = 0;
    } else if (parameter->dimensions > 1) {
        int64_t fan_in = 1;
        for (int d = 1; d < parameter->dimensions; ++d) fan_in *= parameter->shape[d];
        fill_values(to, parameter->name, parameter->count, sqrt(3.0 / (double)fan_in), 0);
    } else {
        double about = 0;
        if (!strcmp(dot, ".weight") || !strcmp(dot, ".running_var")) about = 1;
        if (!strcmp(dot, ".bias") && !strstr(parameter->name, "head") &&
            strcmp(parameter->name, "encoder.bn1.bias"))
            about = 2;
        fill_values(to, parameter->name, parameter->count, 0.1, about);
    }
}

static inline void fill_net(rcn_net *net) {
    float *values = rcn_net_edit_values(net);
    for (int p = 0; p < rcn_net_parameter_count(net); ++p)
        fill_parameter(values, rcn_net_parameter(net, p));
}

#endif /* RCN_TEST_FILL_H */
