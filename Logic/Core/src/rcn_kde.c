// SPDX-License-Identifier: Apache-2.0
#include "rcn_calib_private.h"
#include "rcn_context_private.h"

#include <math.h>

/* Nodes 0, 1/1024 ... 1: a quarter of the narrowest kernel apart. */
enum {
    NODES = 1024,
    BANDWIDTHS = 13,
    FOLDS = 10,
    REACH = 7 * NODES / 4,
    EXTENT = NODES + 1 + 2 * REACH
};

static double bandwidth_of(int number) {
    return ldexp(number % 2 ? sqrt(2.0) : 1.0, number / 2 - 8);
}

/* Pairs on the nodes, and of them the sums of p - y and of (p - y)^2. */
typedef struct nodes {
    double mass[NODES + 1], gap[NODES + 1], square[NODES + 1];
} nodes;

/* Each fine cell is put on the two nodes around its mean probability. */
static void spread_cells(nodes *out, const rcn_calib *calib) {
    rcn__fine fine;
    const double *cell;
    rcn__fine_begin(&fine, calib);
    while ((cell = rcn__fine_next(&fine)) != NULL) {
        if (!(cell[0] > 0)) continue;
        const double p = fmin(fmax(cell[2] / cell[0], 0), 1), place = p * NODES;
        const int node = place < NODES ? (int)place : NODES - 1;
        const double gap = cell[2] - cell[1];
        const double square = p * p * (cell[0] - cell[1]) + (1 - p) * (1 - p) * cell[1];
        for (int i = 0; i <= 1; ++i) {
            const double share = i ? place - node : 1 - (place - node);
            out->mass[node + i] += share * cell[0];
            out->gap[node + i] += share * gap;
            out->square[node + i] += share * square;
        }
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

/* A case out: the votes of `one` when each probability is corrected by what the others (`all`
 * without it, smoothed) are off there. Squared errors, less those without a correction. */
static double score_of_case(const nodes *one, const double *all_mass, const double *all_gap,
                            double bandwidth) {
    double mass[NODES + 1], gap[NODES + 1], sum = 0;
    smooth(mass, one->mass, bandwidth);
    smooth(gap, one->gap, bandwidth);
    for (int i = 0; i <= NODES; ++i) {
        const double others = all_mass[i] - mass[i];
        /* Where they have no voxel, rounding would decide. */
        const double off = others > 1e-9 * all_mass[i] ? (all_gap[i] - gap[i]) / others : 0;
        sum += one->mass[i] * off * off - 2 * one->gap[i] * off;
    }
    return sum;
}

/* A voxel out, where there is one case. Its votes are taken to be alike, as they nearly are: left
 * out one by one, the others would tell. The sum over all votes in closed form:
 * off without it, minus its own p - y, is (gap - mass (p - y)) / (mass - own). */
static double score_of_voxels(const nodes *one, double votes, double bandwidth) {
    double mass[NODES + 1], gap[NODES + 1], sum = 0;
    smooth(mass, one->mass, bandwidth);
    smooth(gap, one->gap, bandwidth);
    for (int i = 0; i <= NODES; ++i) {
        const double own = votes * height(i, i, bandwidth), others = mass[i] - own;
        if (!(one->mass[i] > 0) || !(others > 1e-9 * mass[i])) continue;
        sum += (one->mass[i] * gap[i] * gap[i] - 2 * gap[i] * mass[i] * one->gap[i] +
                mass[i] * mass[i] * one->square[i]) /
                   (others * others) -
               one->square[i];
    }
    return sum;
}

/* The sum of |gap|, smoothed, over all pairs. */
static double ece_of(const nodes *all, double pairs, double bandwidth) {
    double smoothed[NODES + 1], area = 0;
    smooth(smoothed, all->gap, bandwidth);
    for (int i = 0; i <= NODES; ++i) area += fabs(smoothed[i]) * (i % NODES ? 1.0 : 0.5);
    return area / NODES / pairs;
}

rcn_status rcn_calib_kde(rcn_kde *out, rcn_context *ctx, const rcn_calib *const *cases,
                         int64_t count) {
    rcn_status status = RCN_OK;
    nodes *folds = NULL, all;
    double mass[NODES + 1], gap[NODES + 1], voxels = 0, pairs = 0, best = HUGE_VAL;
    const int used = (int)(count < FOLDS ? count : FOLDS);
    if (!out || !cases || count < 1)
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "Smoothing takes the sums of at least one case."));
    RCN_TRY(rcn__check_cases(ctx, cases, count, cases[0]));
    RCN_ALLOC_ZERO(folds, ctx, used, "the votes of cases");
    memset(&all, 0, sizeof all);
    /* Neighbors in a list, as slices of a patient are, mostly share a fold. */
    for (int64_t i = 0; i < count; ++i) {
        spread_cells(&folds[i * used / count], cases[i]);
        voxels += cases[i]->sums[RCN_SUM_VOXELS];
    }
    for (int f = 0; f < used; ++f)
        for (int i = 0; i <= NODES; ++i) {
            all.mass[i] += folds[f].mass[i];
            all.gap[i] += folds[f].gap[i];
            all.square[i] += folds[f].square[i];
        }
    for (int i = 0; i <= NODES; ++i) pairs += all.mass[i];
    const rcn_kde none = {NAN, NAN};
    *out = none;
    if (!(voxels > 1)) goto done;
    for (int h = 0; h < BANDWIDTHS; ++h) {
        const double bandwidth = bandwidth_of(h);
        double score = 0;
        if (used > 1) {
            smooth(mass, all.mass, bandwidth);
            smooth(gap, all.gap, bandwidth);
            for (int f = 0; f < used; ++f) score += score_of_case(&folds[f], mass, gap, bandwidth);
        } else {
            score = score_of_voxels(&all, pairs / voxels, bandwidth);
        }
        /* Of those that rounding alone tells apart, the narrowest. */
        if (score < best - 1e-9 * pairs) {
            best = score;
            out->bandwidth = bandwidth;
        }
    }
    out->ece = ece_of(&all, pairs, out->bandwidth);
done:
    rcn__free(ctx, folds);
    return status;
}
