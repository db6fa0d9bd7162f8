// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_volume.h"

#include "rcn/rcn_calib.h"
#include "rcn/rcn_phantom.h"
#include "rcn_test.h"

enum { K = 3, X = 37, Y = 29, Z = 17, N = X * Y * Z };

/* Levels of a few soft blobs, one of which only some raters would mark, and noise everywhere. */
static void make_levels(float *levels, int raters) {
    uint32_t state = 7;
    for (int i = 0; i < N; ++i) {
        const int x = i % X, y = i / X % Y, z = i / (X * Y);
        double sum = 0, level[RCN_MAX_RATERS + 1];
        const double one = exp(-0.03 * ((x - 9) * (x - 9) + (y - 9) * (y - 9) + (z - 8) * (z - 8)));
        const double two =
            exp(-0.05 * ((x - 28) * (x - 28) + (y - 20) * (y - 20) + (z - 8) * (z - 8)));
        for (int k = 0; k <= raters; ++k) {
            state = 1664525u * state + 1013904223u;
            const double peak = k == 0       ? 0.4 * (1 - one - two)
                                : k == 1     ? 3 * two
                                : k < raters ? one
                                             : 4 * one;
            level[k] = 0.05 * state / 4294967296.0 + (peak > 0 ? peak : 0);
            sum += level[k];
        }
        for (int k = 0; k <= raters; ++k) levels[i * (raters + 1) + k] = (float)(level[k] / sum);
    }
}

static rcn_image image_of(float *data, int components) {
    const rcn_image image = {data, RCN_FLOAT32, components, rcn_geometry_make(X, Y, Z)};
    return image;
}

static double chance(int raters, double p, int k) {
    return exp(lgamma(raters + 1) - lgamma(k + 1) - lgamma(raters - k + 1)) * pow(p, k) *
           pow(1 - p, raters - k);
}

/* Two raters, three voxels: levels (0.5, 0.3, 0.2), (0, 0, 1), (1, 0, 0). */
static void known_answer(void) {
    float levels[9] = {.5f, .3f, .2f, 0, 0, 1, 1, 0, 0};
    const rcn_image image = {levels, RCN_FLOAT32, 3, rcn_geometry_make(3, 1, 1)};
    rcn_context *ctx = make_context(1);
    rcn_volume volume;
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, &image, 2), RCN_OK);
    CHECK(volume.raters == 2 && !volume.binomial);
    CHECK_NEAR(volume.at_least[0], 1.5, 1e-7);
    CHECK_NEAR(volume.at_least[1], 1.2, 1e-7);
    CHECK_NEAR(volume.expected, 1.35, 1e-7);
    /* |1.5 - 2| and |1.2 - 2| on average, less half of the mean of |0.3| over the four pairs */
    CHECK_NEAR(rcn_volume_crps(&volume, 2), 0.65 - 0.5 * 0.15, 1e-6);
    /* One probability of 1/2 for three raters: 1 - 1/8, 1/2, 1/8. */
    float half = 0.5f;
    const rcn_image one = {&half, RCN_FLOAT32, 1, rcn_geometry_make(1, 1, 1)};
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, &one, 3), RCN_OK);
    CHECK(volume.binomial);
    CHECK_NEAR(volume.at_least[0], 0.875, 1e-12);
    CHECK_NEAR(volume.at_least[1], 0.5, 1e-12);
    CHECK_NEAR(volume.at_least[2], 0.125, 1e-12);
    CHECK_NEAR(volume.expected, 0.5, 1e-12);
    rcn_context_destroy(ctx);
}

/* Sums as the definition has them; V_t never rises; E is their mean; any number of threads. */
static void naive_twin_and_threads(void) {
    static float levels[N * (K + 1)], one[N], ends[N * (K + 1)];
    rcn_context *single = make_context(1), *several = make_context(3);
    rcn_volume volume, twin, of_ends;
    make_levels(levels, K);
    rcn_image image = image_of(levels, K + 1);
    CHECK_STATUS(rcn_volume_predict(&volume, single, &image, K), RCN_OK);
    CHECK_STATUS(rcn_volume_predict(&twin, several, &image, K), RCN_OK);
    CHECK(!memcmp(&volume, &twin, sizeof volume));
    for (int t = 1; t <= K; ++t) {
        double sum = 0;
        for (int i = 0; i < N; ++i)
            for (int k = t; k <= K; ++k) sum += (double)levels[i * (K + 1) + k];
        CHECK_NEAR(volume.at_least[t - 1], sum, 1e-9 * sum);
        CHECK(t == 1 || volume.at_least[t - 1] <= volume.at_least[t - 2]);
    }
    CHECK_NEAR(volume.expected, (volume.at_least[0] + volume.at_least[1] + volume.at_least[2]) / 3,
               1e-9);
    for (int i = 0; i < N; ++i) {
        one[i] = levels[i * (K + 1) + 1];
        memset(&ends[i * (K + 1)], 0, (K + 1) * sizeof *ends);
        ends[i * (K + 1) + K] = one[i];
        ends[i * (K + 1)] = 1 - one[i];
    }
    image = image_of(one, 1);
    CHECK_STATUS(rcn_volume_predict(&volume, several, &image, K), RCN_OK);
    double expected[K] = {0};
    for (int i = 0; i < N; ++i)
        for (int t = 1; t <= K; ++t)
            for (int k = t; k <= K; ++k) expected[t - 1] += chance(K, (double)one[i], k);
    for (int t = 0; t < K; ++t) CHECK_NEAR(volume.at_least[t], expected[t], 1e-9 * expected[t]);
    image = image_of(ends, K + 1);
    CHECK_STATUS(rcn_volume_predict(&of_ends, single, &image, K), RCN_OK);
    CHECK(of_ends.binomial);
    CHECK_NEAR(of_ends.at_least[0], volume.at_least[0], 1e-4);
    rcn_context_destroy(single);
    rcn_context_destroy(several);
}

/* Raters who agree, predicted without doubt: everything is that volume, and nothing is off. */
static void raters_and_certainty(void) {
    static const int64_t unanswered = 9;
    static float one[GOLDEN_VOXELS];
    uint8_t golden[4][GOLDEN_VOXELS];
    rcn_context *ctx = make_context(2);
    rcn_mask masks[4];
    rcn_votes *votes = NULL;
    double volumes[4];
    make_golden(golden);
    golden[3][17] = 9;
    for (int r = 0; r < 4; ++r) {
        const rcn_mask mask = {
            {golden[r], RCN_UINT8, 1, rcn_geometry_make(8, 8, 8)}, 0, NULL, 0, &unanswered};
        masks[r] = mask;
    }
    masks[1].image.data = NULL; /* did not answer the case; the last one not everywhere */
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 4), RCN_OK);
    CHECK(rcn_volume_of_raters(volumes, votes) == 2);
    CHECK(volumes[0] == 78 && isnan(volumes[1]) && volumes[2] == 98 && isnan(volumes[3]));
    rcn_votes_destroy(votes);
    for (int i = 0; i < GOLDEN_VOXELS; ++i) one[i] = golden[0][i];
    const rcn_image image = {one, RCN_FLOAT32, 1, rcn_geometry_make(8, 8, 8)};
    rcn_volume volume;
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, &image, 4), RCN_OK);
    for (int t = 0; t < 4; ++t) CHECK(volume.at_least[t] == 78);
    CHECK(volume.expected == 78 && rcn_volume_crps(&volume, 78) == 0);
    CHECK(rcn_volume_crps(&volume, 98) == 20); /* the distance */
    rcn_context_destroy(ctx);
}

/* The integrals, by many steps, each from its middle. */
static double integral(double low, double high, double (*f)(double, const void *),
                       const void *payload) {
    enum { STEPS = 400000 };
    double sum = 0;
    for (int i = 0; i < STEPS; ++i) sum += f(low + (high - low) * (i + 0.5) / STEPS, payload);
    return sum * (high - low) / STEPS;
}

typedef struct score_case {
    rcn_volume volume;
    double mean, deviation, x;
} score_case;

static double step_function(double y, const void *payload) {
    const score_case *one = payload;
    double f = 0;
    for (int t = 0; t < one->volume.raters; ++t)
        f += (one->volume.at_least[t] <= y) / (double)one->volume.raters;
    return (f - (one->x <= y)) * (f - (one->x <= y));
}

static double normal_function(double y, const void *payload) {
    const score_case *one = payload;
    const double f = 0.5 * erfc((one->mean - y) / one->deviation / sqrt(2.0));
    return (f - (one->x <= y)) * (f - (one->x <= y));
}

static void scores_are_integrals(void) {
    static const double at[] = {0, 11, 17.5, 19, 24, 30, 60};
    const double volumes[4] = {14, 22, NAN, 19}; /* mean 55 / 3, the third is not known */
    score_case one = {{4, 0, 19.5, {26, 21, 18, 13}}, 55.0 / 3, 0, 0};
    for (int r = 0; r < 4; ++r)
        one.deviation += isnan(volumes[r]) ? 0 : pow(volumes[r] - one.mean, 2) / 3;
    one.deviation = sqrt(one.deviation);
    for (size_t i = 0; i < sizeof at / sizeof *at; ++i) {
        one.x = at[i];
        CHECK_NEAR(rcn_volume_crps(&one.volume, at[i]), integral(-1, 70, step_function, &one),
                   1e-3);
        CHECK_NEAR(rcn_volume_curvas_crps(at[i], volumes, 4),
                   integral(one.mean - 3 * one.deviation, one.mean + 3 * one.deviation,
                            normal_function, &one),
                   1e-4);
    }
    CHECK(isnan(rcn_volume_curvas_crps(3, volumes, 1)) &&
          isnan(rcn_volume_curvas_crps(3, NULL, 0)));
    CHECK(isnan(rcn_volume_curvas_crps(3, (const double[]){4, 4}, 2)));
}

static void quantiles_and_intervals(void) {
    rcn_context *ctx = make_context(1);
    const double scores[8] = {1, 8, 2, 7, NAN, 3, 6, 4};
    const int apart[8] = {0, 1, 2, 3, 4, 5, 6, 7}, pairs[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    double q = -1;
    /* Seven of eight cases: 0.5 of 8 is the 4th score, 0.8 the last, and 0.9 none of them. */
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, scores, apart, 8, 0.5), RCN_OK);
    CHECK(q == 4);
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, scores, apart, 8, 0.8), RCN_OK);
    CHECK(q == 8);
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, scores, apart, 8, 0.9), RCN_OK);
    CHECK(isinf(q));
    /* Four cases, of five: 1 .5, 2 1, 3 2 (alone in its case), 4 2.5, 6 3, 7 3.5, 8 4. */
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, scores, pairs, 8, 0.5), RCN_OK);
    CHECK(q == 4);
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, scores, pairs, 8, 0.8), RCN_OK);
    CHECK(q == 8);
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, NULL, NULL, 0, 0.8), RCN_OK);
    CHECK(isinf(q));
    CHECK(rcn_volume_units(0.8) == 4 && rcn_volume_units(0.95) == 19 && rcn_volume_units(0.5) == 1);
    for (int units = 1; units < 30; ++units) { /* from so many on there is one */
        double equal[30];
        int number[30];
        for (int i = 0; i < units; ++i) {
            equal[i] = i;
            number[i] = i;
        }
        for (int level = 0; level < 2; ++level) {
            const double wanted = level ? 0.95 : 0.8;
            CHECK_STATUS(rcn_volume_quantile(&q, ctx, equal, number, units, wanted), RCN_OK);
            CHECK(isfinite(q) == (units >= rcn_volume_units(wanted)));
        }
    }
    const rcn_volume volume = {4, 0, 19.5, {26, 21, 18, 13}}, nothing = {2, 0, 0, {0, 0}};
    double low, high;
    rcn_volume_interval(&low, &high, &volume, 0.7);
    CHECK_NEAR(low, 19.5 - 0.7 * (6.5 + 0.2 * 20.5), 1e-12);
    CHECK_NEAR(high, 19.5 + 0.7 * (6.5 + 0.2 * 20.5), 1e-12);
    CHECK_NEAR(rcn_volume_score(&volume, low), 0.7, 1e-12);
    CHECK_NEAR(rcn_volume_score(&volume, high), 0.7, 1e-12);
    CHECK(rcn_volume_score(&volume, 19.5) == 0 && isnan(rcn_volume_score(&volume, NAN)));
    rcn_volume_interval(&low, &high, &volume, 50);
    CHECK(low == 0);
    rcn_volume_interval(&low, &high, &volume, INFINITY);
    CHECK(isnan(low) && isnan(high));
    CHECK(rcn_volume_score(&nothing, 0) == 0);
    CHECK_NEAR(rcn_volume_score(&nothing, 6), 30, 1e-12);
    rcn_context_destroy(ctx);
}

static void figures_by_hand(void) {
    const rcn_volume_row rows[4] = {{10, 8, 1, 2, {1, 1}},
                                    {20, 21, 3, NAN, {0.5, NAN}},
                                    {30, NAN, NAN, NAN, {NAN, NAN}}, /* no rater's volume */
                                    {40, 35, 5, 4, {0, 1}}};
    rcn_volume_figures figures;
    rcn_volume_summarize(&figures, rows, 4);
    CHECK(figures.cases == 3 && figures.crps == 3 && figures.curvas_crps == 3);
    CHECK(figures.curvas_cases == 2);
    CHECK(figures.coverage[0] == 0.5 && figures.covered_cases[0] == 3);
    CHECK(figures.coverage[1] == 1 && figures.covered_cases[1] == 2);
    CHECK(figures.bias == 2); /* of 2, -1 and 5, whose deviation is 3 */
    CHECK_NEAR(figures.deviation, 3, 1e-12);
    CHECK_NEAR(figures.agree_low, 2 - 5.88, 1e-12);
    CHECK_NEAR(figures.agree_high, 2 + 5.88, 1e-12);
    rcn_volume_summarize(&figures, rows, 1);
    CHECK(figures.bias == 2 && isnan(figures.deviation) && isnan(figures.agree_low));
    rcn_volume_summarize(&figures, rows, 0);
    CHECK(figures.cases == 0 && isnan(figures.crps) && isnan(figures.bias));
}

/* ---- components ------------------------------------------------------------------------------ */

/* Flood fill from every voxel in raster order. */
static int64_t flood(rcn_volume_component *out, const float *levels) {
    static int label[N], stack[N];
    int64_t found = 0;
    memset(label, 0, sizeof label);
    for (int start = 0; start < N; ++start) {
        const float *p = levels + (int64_t)start * (K + 1);
        if (label[start] || (float)((double)p[1] + (double)p[2] + (double)p[3]) < 0.5f) continue;
        rcn_volume_component *c = &out[found++];
        int depth = 0;
        memset(c, 0, sizeof *c);
        stack[depth++] = start;
        label[start] = 1;
        while (depth) {
            const int i = stack[--depth], x = i % X, y = i / X % Y, z = i / (X * Y);
            const float *v = levels + (int64_t)i * (K + 1);
            const double share = ((double)v[1] + 2 * (double)v[2] + 3 * (double)v[3]) / 3;
            const int likely = v[3] >= 0.5f                                   ? 3
                               : (float)((double)v[3] + (double)v[2]) >= 0.5f ? 2
                                                                              : 1;
            ++c->voxels;
            c->expected += share;
            if (share > c->highest) {
                c->highest = share;
                c->at[0] = x;
                c->at[1] = y;
                c->at[2] = z;
            }
            if (likely > c->at_least) c->at_least = likely;
            for (int d = 0; d < 27; ++d) {
                const int u = x + d % 3 - 1, v_ = y + d / 3 % 3 - 1, w = z + d / 9 - 1;
                if (u < 0 || u >= X || v_ < 0 || v_ >= Y || w < 0 || w >= Z) continue;
                const int j = u + X * (v_ + Y * w);
                const float *q = levels + (int64_t)j * (K + 1);
                if (label[j] || (float)((double)q[1] + (double)q[2] + (double)q[3]) < 0.5f)
                    continue;
                label[j] = 1;
                stack[depth++] = j;
            }
        }
    }
    return found;
}

static void components_are_those_of_flood_fill(void) {
    static float levels[N * (K + 1)];
    static rcn_volume_component naive[N];
    make_levels(levels, K);
    const rcn_image image = image_of(levels, K + 1);
    const int64_t expected = flood(naive, levels);
    for (int threads = 1; threads <= 3; threads += 2) {
        rcn_context *ctx = make_context(threads);
        rcn_volume_component *components = NULL;
        int64_t count = -1, voxels = 0;
        CHECK_STATUS(rcn_volume_components_create(&components, &count, ctx, &image, K), RCN_OK);
        CHECK(count == expected && count > 1);
        for (int64_t i = 0; i < count; ++i) {
            const rcn_volume_component *one = &components[i], *twin = NULL;
            for (int64_t j = 0; j < expected; ++j)
                if (!memcmp(naive[j].at, one->at, sizeof one->at)) twin = &naive[j];
            CHECK(twin && twin->voxels == one->voxels && twin->at_least == one->at_least);
            if (twin) CHECK_NEAR(one->expected, twin->expected, 1e-3);
            if (twin) CHECK_NEAR(one->highest, twin->highest, 1e-6);
            CHECK(i == 0 || one->expected <= components[i - 1].expected);
            voxels += one->voxels;
        }
        CHECK(voxels > 100 && components[0].at_least == 3);
        CHECK(count > 1 && components[1].at_least < 2); /* the blob that some would mark */
        rcn_volume_components_destroy(components, ctx);
        rcn_context_destroy(ctx);
    }
}

static void components_of_nothing_and_of_one_probability(void) {
    float one[8] = {0, .2f, .2f, 0, 0, .3f, 0, .9f};
    rcn_image image = {one, RCN_FLOAT32, 1, rcn_geometry_make(8, 1, 1)};
    rcn_context *ctx = make_context(1);
    rcn_volume_component *components = NULL;
    int64_t count = -1;
    /* Of four raters any marks it at 1 - 0.8^4 = 0.59; two of them do at 0.3 with 0.35. */
    CHECK_STATUS(rcn_volume_components_create(&components, &count, ctx, &image, 4), RCN_OK);
    CHECK(count == 3);
    CHECK(count == 3 && components[0].at[0] == 7 && components[0].at_least == 4);
    CHECK(count == 3 && components[1].voxels == 2 && components[1].at_least == 1);
    CHECK(count == 3 && components[2].at[0] == 5 && components[2].at_least == 1);
    rcn_volume_components_destroy(components, ctx);
    memset(one, 0, sizeof one);
    CHECK_STATUS(rcn_volume_components_create(&components, &count, ctx, &image, 4), RCN_OK);
    CHECK(count == 0 && !components);
    rcn_context_destroy(ctx);
}

/* ---- coverage -------------------------------------------------------------------------------- */

enum { SIDE = 48, JUDGES = 4, GROUPS = 5, ALL = JUDGES * (GROUPS + 1) };

/* A phantom's volumes as a model would predict them that has seen other raters: the levels of a
 * voxel are how often k of the raters of a group mark it. */
static void draw_phantom(rcn_volume *volume, double *volumes, rcn_context *ctx, uint64_t seed) {
    static float image[SIDE * SIDE], levels[SIDE * SIDE * (JUDGES + 1)];
    static uint8_t masks[ALL * SIDE * SIDE];
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    options.size[0] = options.size[1] = SIDE;
    options.raters = ALL;
    options.lesions = 2;
    options.seed = seed;
    CHECK_STATUS(rcn_phantom_make(image, masks, ctx, &options), RCN_OK);
    memset(volumes, 0, JUDGES * sizeof *volumes);
    memset(levels, 0, sizeof levels);
    for (int i = 0; i < SIDE * SIDE; ++i) {
        for (int r = 0; r < JUDGES; ++r) volumes[r] += masks[r * SIDE * SIDE + i];
        for (int g = 1; g <= GROUPS; ++g) {
            int marked = 0;
            for (int r = 0; r < JUDGES; ++r) marked += masks[(g * JUDGES + r) * SIDE * SIDE + i];
            levels[i * (JUDGES + 1) + marked] += 1.0f / GROUPS;
        }
    }
    const rcn_image map = {levels, RCN_FLOAT32, JUDGES + 1, rcn_geometry_make(SIDE, SIDE, 1)};
    CHECK_STATUS(rcn_volume_predict(volume, ctx, &map, JUDGES), RCN_OK);
}

static void intervals_cover(void) {
    enum { VALIDATION = 40, TEST = 200 };
    double scores[VALIDATION * JUDGES], volumes[JUDGES], share[2] = {0, 0};
    int unit[VALIDATION * JUDGES];
    rcn_context *ctx = make_context(2);
    rcn_volume volume;
    for (int i = 0; i < VALIDATION; ++i) {
        draw_phantom(&volume, volumes, ctx, 1000 + (uint64_t)i);
        for (int r = 0; r < JUDGES; ++r) {
            scores[i * JUDGES + r] = rcn_volume_score(&volume, volumes[r]);
            unit[i * JUDGES + r] = i;
        }
    }
    for (int i = 0; i < TEST; ++i) {
        draw_phantom(&volume, volumes, ctx, 5000 + (uint64_t)i);
        for (int level = 0; level < 2; ++level) {
            double q = 0, low, high;
            CHECK_STATUS(
                rcn_volume_quantile(&q, ctx, scores, unit, VALIDATION * JUDGES, level ? 0.95 : 0.8),
                RCN_OK);
            rcn_volume_interval(&low, &high, &volume, q);
            for (int r = 0; r < JUDGES; ++r)
                share[level] += volumes[r] >= low && volumes[r] <= high;
        }
    }
    printf("     coverage of 80 %% intervals %.3f, of 95 %% intervals %.3f\n",
           share[0] / (TEST * JUDGES), share[1] / (TEST * JUDGES));
    CHECK(share[0] / (TEST * JUDGES) > 0.75 && share[0] / (TEST * JUDGES) < 0.85);
    CHECK(share[1] / (TEST * JUDGES) > 0.92 && share[1] / (TEST * JUDGES) < 0.99);
    rcn_context_destroy(ctx);
}

/* ---- levels that are not kept ---------------------------------------------------------------- */

/* Sums of slabs of so many slices, and what is kept of each voxel. */
static rcn_status add_slabs(rcn_volume_sums *sums, float *share, uint8_t *likely, rcn_context *ctx,
                            float *levels, int slices) {
    rcn_status status = RCN_OK;
    for (int z = 0; z < Z && status == RCN_OK; z += slices) {
        const int64_t first = (int64_t)X * Y * z;
        const rcn_image slab = {levels + first * (K + 1), RCN_FLOAT32, K + 1,
                                rcn_geometry_make(X, Y, Z - z < slices ? Z - z : slices)};
        status = rcn_volume_add_slab(sums, share + first, likely + first, ctx, &slab);
    }
    return status;
}

/* The figures and the components of the whole map, also where all levels are ends and are read as
 * one probability, and where only some slabs have nothing between. */
static void slabs_are_the_whole(void) {
    static float levels[N * (K + 1)], share[N], readout[N];
    static uint8_t likely[N];
    for (int kind = 0; kind < 3; ++kind)
        for (int slices = 1; slices <= Z; slices += 8) {
            rcn_context *ctx = make_context(1 + kind);
            rcn_volume volume, whole;
            rcn_volume_component *parts = NULL, *all = NULL;
            int64_t part_count = -1, count = -2;
            rcn_volume_sums sums = {.raters = K};
            make_levels(levels, K);
            for (int i = 0; kind && i < (kind == 1 ? N : X * Y * 3); ++i) {
                for (int k = 1; k < K; ++k) levels[i * (K + 1) + k] = 0;
                levels[i * (K + 1) + K] = 1 - levels[i * (K + 1)];
            }
            const rcn_image image = image_of(levels, K + 1), one = image_of(share, 1);
            CHECK_STATUS(rcn_volume_predict(&whole, ctx, &image, K), RCN_OK);
            CHECK_STATUS(rcn_volume_components_create(&all, &count, ctx, &image, K), RCN_OK);
            CHECK_STATUS(rcn_readout_apply(readout, ctx, &image, RCN_READOUT_EXPECTED, 0), RCN_OK);
            CHECK_STATUS(add_slabs(&sums, share, likely, ctx, levels, slices), RCN_OK);
            CHECK(sums.between == (kind != 1) && !memcmp(share, readout, sizeof share));
            CHECK_STATUS(rcn_volume_of_sums(&volume, ctx, &sums, &one), RCN_OK);
            CHECK(volume.raters == K && volume.binomial == whole.binomial);
            CHECK(volume.binomial == (kind == 1));
            CHECK_NEAR(volume.expected, whole.expected, 1e-9 * whole.expected);
            for (int t = 0; t < K; ++t)
                CHECK_NEAR(volume.at_least[t], whole.at_least[t], 1e-9 * whole.at_least[t]);
            CHECK_STATUS(
                rcn_volume_components_of_share(&parts, &part_count, ctx, &sums, &one, likely),
                RCN_OK);
            CHECK(part_count == count && count > 0);
            for (int64_t i = 0; part_count == count && i < count; ++i)
                CHECK(parts[i].voxels == all[i].voxels && parts[i].expected == all[i].expected &&
                      parts[i].highest == all[i].highest && parts[i].at_least == all[i].at_least &&
                      !memcmp(parts[i].at, all[i].at, sizeof all[i].at));
            rcn_volume_components_destroy(parts, ctx);
            rcn_volume_components_destroy(all, ctx);
            rcn_context_destroy(ctx);
        }
}

/* Two raters and the levels (0.2, 0.3, 0.5): one of them marks it with 0.8, both with 0.5. */
static void a_slab_by_hand(void) {
    float levels[6] = {.2f, .3f, .5f, .6f, .1f, .3f}, share[2];
    uint8_t likely[2];
    const rcn_image slab = {levels, RCN_FLOAT32, 3, rcn_geometry_make(2, 1, 1)};
    rcn_context *ctx = make_context(1);
    rcn_volume_sums sums = {.raters = 2};
    CHECK_STATUS(rcn_volume_add_slab(&sums, share, likely, ctx, &slab), RCN_OK);
    CHECK(likely[0] == 2 && likely[1] == 0 && sums.between);
    CHECK_NEAR(share[0], 0.65, 1e-6);
    CHECK_NEAR(share[1], 0.35, 1e-6);
    CHECK_NEAR(sums.levels[2], 0.8, 1e-6);
    rcn_context_destroy(ctx);
}

static void bad_slabs(void) {
    static float levels[N * (K + 1)], share[N];
    static uint8_t likely[N];
    rcn_context *ctx = make_context(2);
    rcn_volume_sums sums = {.raters = K}, before = sums;
    rcn_volume volume = {.raters = -7};
    rcn_volume_component *components = (rcn_volume_component *)&volume;
    int64_t count = -7;
    make_levels(levels, K);
    rcn_image image = image_of(levels, K + 1), one = image_of(share, 1);
    CHECK_STATUS(rcn_volume_add_slab(&sums, share, likely, NULL, &image), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_add_slab(NULL, share, likely, ctx, &image), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_add_slab(&sums, NULL, likely, ctx, &image), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_add_slab(&sums, share, NULL, ctx, &image), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_add_slab(&sums, share, likely, ctx, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_add_slab(&sums, share, likely, ctx, &one), RCN_EINVALID);
    CHECK_ERROR(ctx, "one component more than there are raters");
    levels[(5 + X * 2) * (K + 1) + 1] = NAN;
    CHECK_STATUS(rcn_volume_add_slab(&sums, share, likely, ctx, &image), RCN_EDATA);
    CHECK_ERROR(ctx, "(5, 2, 0)");
    CHECK(!memcmp(&sums, &before, sizeof sums));
    CHECK_STATUS(rcn_volume_of_sums(&volume, ctx, NULL, &one), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_of_sums(&volume, ctx, &sums, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_of_sums(NULL, ctx, &sums, &one), RCN_EINVALID);
    sums.between = 1;
    CHECK_STATUS(rcn_volume_of_sums(NULL, ctx, &sums, &one), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_of_sums(&volume, NULL, &sums, &one), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_components_of_share(&components, &count, ctx, NULL, &one, likely),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_volume_components_of_share(&components, &count, ctx, &sums, &one, NULL),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_volume_components_of_share(&components, &count, ctx, &sums, &image, likely),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_volume_components_of_share(&components, &count, ctx, &sums, NULL, likely),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_volume_components_of_share(NULL, &count, ctx, &sums, &one, likely),
                 RCN_EINVALID);
    CHECK(volume.raters == -7 && count == -7 && components == (rcn_volume_component *)&volume);
    rcn_context_destroy(ctx);
}

static rcn_status measure_slabs(rcn_context *ctx, void *payload) {
    static float share[N];
    static uint8_t likely[N];
    rcn_volume_sums sums = {.raters = K};
    rcn_volume volume;
    rcn_volume_component *components = NULL;
    int64_t count = 0;
    const rcn_image one = image_of(share, 1);
    rcn_status status = add_slabs(&sums, share, likely, ctx, payload, 6);
    if (status == RCN_OK) status = rcn_volume_of_sums(&volume, ctx, &sums, &one);
    if (status == RCN_OK)
        status = rcn_volume_components_of_share(&components, &count, ctx, &sums, &one, likely);
    rcn_volume_components_destroy(components, ctx);
    return status;
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void bad_arguments(void) {
    static float levels[N * (K + 1)];
    rcn_context *ctx = make_context(2);
    rcn_volume volume = {.raters = -7};
    rcn_volume_component *components = (rcn_volume_component *)&volume;
    int64_t count = -7;
    double q = -7;
    make_levels(levels, K);
    rcn_image image = image_of(levels, K + 1);
    CHECK_STATUS(rcn_volume_predict(&volume, NULL, &image, K), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_predict(NULL, ctx, &image, K), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, NULL, K), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, &image, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, &image, K + 1), RCN_EINVALID);
    CHECK_ERROR(ctx, "one more than there are raters");
    image.type = RCN_FLOAT64;
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, &image, K), RCN_EINVALID);
    image.type = RCN_FLOAT32;
    levels[(5 + X * 2) * (K + 1) + 1] = NAN;
    CHECK_STATUS(rcn_volume_predict(&volume, ctx, &image, K), RCN_EDATA);
    CHECK_ERROR(ctx, "(5, 2, 0)");
    CHECK_STATUS(rcn_volume_components_create(&components, &count, ctx, &image, K), RCN_EDATA);
    CHECK_STATUS(rcn_volume_components_create(NULL, &count, ctx, &image, K), RCN_EINVALID);
    CHECK(volume.raters == -7 && count == -7 && components == (rcn_volume_component *)&volume);
    const double score = 1;
    int unit = 1;
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, &score, &unit, 1, 0.8), RCN_EINVALID);
    unit = 0;
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, &score, &unit, 1, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_volume_quantile(&q, ctx, NULL, &unit, 1, 0.8), RCN_EINVALID);
    CHECK(q == -7);
    rcn_context_destroy(ctx);
}

static rcn_status measure(rcn_context *ctx, void *payload) {
    const double scores[3] = {1, 2, 3};
    const int unit[3] = {0, 1, 2};
    rcn_volume volume;
    rcn_volume_component *components = NULL;
    int64_t count = 0;
    double q;
    rcn_status status = rcn_volume_predict(&volume, ctx, payload, K);
    if (status == RCN_OK)
        status = rcn_volume_components_create(&components, &count, ctx, payload, K);
    if (status == RCN_OK) status = rcn_volume_quantile(&q, ctx, scores, unit, 3, 0.5);
    rcn_volume_components_destroy(components, ctx);
    return status;
}

static void failing_allocations_and_cancel(void) {
    static float levels[N * (K + 1)];
    make_levels(levels, K);
    rcn_image image = image_of(levels, K + 1);
    check_failing_allocations(measure, &image);
    check_cancelling(measure, &image, 6);
    check_failing_allocations(measure_slabs, levels);
    check_cancelling(measure_slabs, levels, 6);
}

int main(void) {
    RUN(known_answer);
    RUN(naive_twin_and_threads);
    RUN(raters_and_certainty);
    RUN(scores_are_integrals);
    RUN(quantiles_and_intervals);
    RUN(figures_by_hand);
    RUN(components_are_those_of_flood_fill);
    RUN(components_of_nothing_and_of_one_probability);
    RUN(slabs_are_the_whole);
    RUN(a_slab_by_hand);
    RUN(bad_slabs);
    RUN(intervals_cover);
    RUN(bad_arguments);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
