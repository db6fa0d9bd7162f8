// SPDX-License-Identifier: Apache-2.0
#include "rcn_calib_private.h"

#include <math.h>

/* Nodes 0, 1/1024 ... 1: a quarter of the narrowest kernel apart. */
enum { NODES = 1024, BANDWIDTHS = 13, REACH = 7 * NODES / 4, EXTENT = NODES + 1 + 2 * REACH };

static double bandwidth_of(int number) {
    return ldexp(number % 2 ? sqrt(2.0) : 1.0, number / 2 - 8);
}

/* The node below the mean probability of a fine cell, and how far it is to the next, 0 ... 1. */
static int node_of(double *upper, const double *cell) {
    const double place = fmin(fmax(cell[2] / cell[0], 0), 1) * NODES;
    const int node = place < NODES ? (int)place : NODES - 1;
    *upper = place - node;
    return node;
}

/* Each fine cell is put on the two nodes around its mean probability: pairs, and sum of p - y. */
static void spread_cells(double *mass, double *gap, const rcn_calib *calib) {
    rcn__fine fine;
    const double *cell;
    rcn__fine_begin(&fine, calib);
    for (int i = 0; i <= NODES; ++i) mass[i] = gap[i] = 0;
    while ((cell = rcn__fine_next(&fine)) != NULL) {
        double upper;
        if (!(cell[0] > 0)) continue;
        const int node = node_of(&upper, cell);
        mass[node] += (1 - upper) * cell[0];
        mass[node + 1] += upper * cell[0];
        gap[node] += (1 - upper) * (cell[2] - cell[1]);
        gap[node + 1] += upper * (cell[2] - cell[1]);
    }
}

RCN_DISPATCH static void add_shifted(double *restrict out, const double *restrict left,
                                     const double *restrict right, double weight) {
    for (int i = 0; i <= NODES; ++i) out[i] += weight * (left[i] + right[i]);
}

/* out = sum of `in` times the kernel, reflected at 0 and 1: `in` is continued evenly beyond both
 * ends, where a node at an end meets its own reflection. */
static void smooth(double *out, const double *in, double bandwidth) {
    double continued[EXTENT];
    const int reach = (int)(7 * bandwidth * NODES);
    for (int i = -reach; i <= NODES + reach; ++i) {
        const int period = ((i % (2 * NODES)) + 2 * NODES) % (2 * NODES);
        const int node = period <= NODES ? period : 2 * NODES - period;
        continued[i + reach] = node % NODES ? in[node] : 2 * in[node];
    }
    const double *middle = continued + reach, scale = 0.39894228040143267794 / bandwidth;
    for (int i = 0; i <= NODES; ++i) out[i] = scale * middle[i];
    for (int j = 1; j <= reach; ++j) {
        const double z = j / (bandwidth * NODES);
        add_shifted(out, middle - j, middle + j, scale * exp(-0.5 * z * z));
    }
}

/* The kernel around node a at node b, with its reflections. */
static double height(int a, int b, double bandwidth) {
    double sum = 0;
    for (int image = -2 * NODES; image <= 2 * NODES; image += 2 * NODES) {
        const double straight = (a - b + image) / (bandwidth * NODES);
        const double reflected = (a + b + image) / (bandwidth * NODES);
        sum += exp(-0.5 * straight * straight) + exp(-0.5 * reflected * reflected);
    }
    return 0.39894228040143267794 / bandwidth * sum;
}

/* Sum of log density over the pairs, each voxel left out of its own; `votes` pairs to a voxel. A
 * voxel between two nodes has its share of both, in the density and in what is left out. */
static double left_out_likelihood(const rcn_calib *calib, const double *mass, double pairs,
                                  double votes, double bandwidth) {
    double density[NODES + 1], own[NODES + 1], next[NODES + 1], sum = 0;
    rcn__fine fine;
    const double *cell;
    rcn__fine_begin(&fine, calib);
    smooth(density, mass, bandwidth);
    for (int i = 0; i <= NODES; ++i) {
        own[i] = height(i, i, bandwidth);
        next[i] = height(i, i + 1, bandwidth);
    }
    while ((cell = rcn__fine_next(&fine)) != NULL) {
        double u;
        if (!(cell[0] > 0)) continue;
        const int i = node_of(&u, cell);
        const double all = (1 - u) * density[i] + u * density[i + 1];
        const double mine =
            (1 - u) * (1 - u) * own[i] + u * u * own[i + 1] + 2 * u * (1 - u) * next[i];
        sum += cell[0] * log(fmax(all - votes * mine, 1e-12 * mine) / (pairs - votes));
    }
    return sum;
}

rcn_kde rcn_calib_kde(const rcn_calib *calib) {
    rcn_kde out = {NAN, NAN};
    double mass[NODES + 1], gap[NODES + 1], smoothed[NODES + 1];
    double pairs = 0, best = -HUGE_VAL, area = 0;
    spread_cells(mass, gap, calib);
    for (int i = 0; i <= NODES; ++i) pairs += mass[i];
    if (!(calib->sums[RCN_SUM_VOXELS] > 1)) return out;
    const double votes = pairs / calib->sums[RCN_SUM_VOXELS];
    for (int h = 0; h < BANDWIDTHS; ++h) {
        const double value = left_out_likelihood(calib, mass, pairs, votes, bandwidth_of(h));
        if (value > best) {
            best = value;
            out.bandwidth = bandwidth_of(h);
        }
    }
    smooth(smoothed, gap, out.bandwidth);
    for (int i = 0; i <= NODES; ++i) area += fabs(smoothed[i]) * (i % NODES ? 1.0 : 0.5);
    out.ece = area / NODES / pairs;
    return out;
}
