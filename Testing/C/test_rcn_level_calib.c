// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_calib.h"
#include "rcn/rcn_interval.h"

#include "rcn_test.h"

/* A case with one voxel after another: marks [raters][voxels] (9: did not answer). */
typedef struct sample {
    int raters, voxels;
    uint8_t *marks;
    float *levels; /* [voxels][raters + 1] */
    float *p;      /* [voxels] */
    uint8_t *region;
    rcn_votes *votes;
} sample;

static rcn_image map_of(const float *data, int components, int voxels) {
    rcn_image image = {(void *)data, RCN_FLOAT32, components, rcn_geometry_make(voxels, 1, 1)};
    return image;
}

static void sample_votes(sample *s, rcn_context *ctx) {
    static const int64_t unanswered = 9;
    rcn_mask masks[RCN_MAX_RATERS];
    for (int r = 0; r < s->raters; ++r) {
        rcn_mask mask = {{s->marks + (size_t)r * (size_t)s->voxels, RCN_UINT8, 1,
                          rcn_geometry_make(s->voxels, 1, 1)},
                         0,
                         NULL,
                         0,
                         &unanswered};
        masks[r] = mask;
    }
    CHECK_STATUS(rcn_votes_from_masks(&s->votes, ctx, masks, s->raters), RCN_OK);
}

static uint32_t next(uint32_t *state) {
    *state = 1664525u * *state + 1013904223u;
    return *state >> 8;
}

static double uniform(uint32_t *state) { return next(state) / 16777216.0; }

/* Levels of all shapes, with exact zeros and ones and values at edges of bins; votes that follow
 * them, more or less. */
static void sample_make(sample *s, rcn_context *ctx, int raters, int voxels, int with_void,
                        uint32_t seed) {
    uint32_t state = seed;
    s->raters = raters;
    s->voxels = voxels;
    s->marks = malloc((size_t)raters * (size_t)voxels);
    s->levels = malloc(sizeof *s->levels * (size_t)voxels * (size_t)(raters + 1));
    s->p = malloc(sizeof *s->p * (size_t)voxels);
    s->region = malloc((size_t)voxels);
    for (int i = 0; i < voxels; ++i) {
        float *levels = s->levels + (size_t)i * (size_t)(raters + 1);
        double weights[RCN_MAX_RATERS + 1], sum = 0;
        const uint32_t kind = next(&state) % 8;
        for (int k = 0; k <= raters; ++k) {
            weights[k] = kind == 0   ? (double)(k == 0)
                         : kind == 1 ? (double)(k == raters)
                         : kind == 2 ? (double)(k % 2 ? 1 : 2)
                         : kind == 3 ? exp(-4.0 * k)
                                     : pow(uniform(&state), 3);
            sum += weights[k];
        }
        double below = uniform(&state);
        int level = 0;
        for (int k = 0; k <= raters; ++k) levels[k] = (float)(weights[k] / sum);
        while (level < raters && below > (double)levels[level]) below -= (double)levels[level++];
        if (next(&state) % 4 == 0) level = (int)(next(&state) % (uint32_t)(raters + 1));
        for (int r = 0; r < raters; ++r)
            s->marks[(size_t)r * (size_t)voxels + (size_t)i] = (uint8_t)((r + i) % raters < level);
        if (with_void && next(&state) % 5 == 0) s->marks[(size_t)i] = 9;
        s->region[i] = next(&state) % 5 != 0;
        s->p[i] = kind == 0 ? 0.0f : kind == 1 ? 1.0f : (float)pow(uniform(&state), 4);
    }
    sample_votes(s, ctx);
}

static void sample_free(sample *s) {
    rcn_votes_destroy(s->votes);
    free(s->marks);
    free(s->levels);
    free(s->p);
    free(s->region);
}

static rcn_calib *calib_of(rcn_context *ctx, const rcn_calib_case *one_case, int raters, int bins) {
    rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
    rcn_calib *calib = NULL;
    options.bins = bins;
    CHECK_STATUS(rcn_calib_create(&calib, ctx, raters, &options), RCN_OK);
    CHECK_STATUS(rcn_calib_add(calib, ctx, one_case), RCN_OK);
    return calib;
}

/* Three raters, p = (.1, .2, .3, .4), one voxel of each level. */
static void by_hand(void) {
    uint8_t marks[3][4] = {{0, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}};
    float levels[16];
    double f[RCN_FIGURES];
    rcn_calib_bin bins[10];
    rcn_level_share shares[4];
    rcn_context *ctx = make_context(1);
    for (int i = 0; i < 16; ++i) levels[i] = 0.1f * (float)(i % 4 + 1);
    sample s = {3, 4, marks[0], levels, NULL, NULL, NULL};
    sample_votes(&s, ctx);
    const rcn_calib_case one_case = {s.votes, map_of(levels, 4, 4), NULL, NULL};
    rcn_calib *calib = calib_of(ctx, &one_case, 3, 10);
    rcn_calib_figures(f, calib);
    CHECK_NEAR(f[RCN_RPS], (.365 + .165 + .065 + .115) / 4, 1e-7);
    CHECK_NEAR(f[RCN_LEVEL_NLL], -log(.1 * .2 * .3 * .4) / 4, 1e-6);
    /* P(y >= t) = .9, .7, .4 and 3, 2, 1 of four voxels: off by .15, .2, .15. */
    CHECK_NEAR(f[RCN_LEVEL_ECE], (.15 + .2 + .15) / 3, 1e-7);
    CHECK_NEAR(f[RCN_LEVEL_ECE_MAX], .2, 1e-7);
    rcn_calib_level_bins(bins, calib, 2);
    for (int b = 0; b < 10; ++b) CHECK(bins[b].count == (b == 7 ? 4 : 0));
    CHECK_NEAR(bins[7].confidence, .7, 1e-7);
    CHECK(bins[7].frequency == .5 && bins[7].lower == .7 && isnan(bins[0].frequency));
    for (int unsure = 0; unsure < 2; ++unsure) { /* expected: 2/3, unsure everywhere */
        rcn_calib_level_shares(shares, calib, unsure);
        for (int k = 0; k < 4; ++k) {
            CHECK_NEAR(shares[k].predicted, .1 * (k + 1), 1e-7);
            CHECK(shares[k].observed == .25 && shares[k].voxels == 1);
        }
    }
    CHECK(rcn_calib_level_source(calib) == RCN_LEVELS_PREDICTED);
    CHECK(!strcmp(rcn_level_source_name(RCN_LEVELS_BINOMIAL), "binomial"));
    CHECK(!rcn_level_source_name((rcn_level_source)4));
    rcn_calib_destroy(calib);
    rcn_votes_destroy(s.votes);
    rcn_context_destroy(ctx);
}

/* Two raters, p = 1/2: levels 1/4, 1/2, 1/4. */
static void one_probability_by_hand(void) {
    uint8_t marks[2][2] = {{1, 1}, {0, 1}};
    const float p[2] = {.5f, .5f};
    double f[RCN_FIGURES];
    rcn_level_share shares[3];
    rcn_context *ctx = make_context(1);
    sample s = {2, 2, marks[0], NULL, NULL, NULL, NULL};
    sample_votes(&s, ctx);
    const rcn_calib_case one_case = {s.votes, map_of(p, 1, 2), NULL, NULL};
    rcn_calib *calib = calib_of(ctx, &one_case, 2, 15);
    rcn_calib_figures(f, calib);
    /* P(y >= t) = .75, .25; levels 1 and 2. */
    CHECK_NEAR(f[RCN_RPS], (2 * .0625 + .0625 + .5625) / 6, 1e-9);
    CHECK_NEAR(f[RCN_LEVEL_NLL], -log(.5 * .25) / 2, 1e-9);
    CHECK_NEAR(f[RCN_LEVEL_ECE], .25, 1e-9);
    rcn_calib_level_shares(shares, calib, 1);
    CHECK(shares[0].predicted == .25 && shares[1].predicted == .5 && shares[2].predicted == .25);
    CHECK(shares[0].voxels == 0 && shares[1].voxels == 1 && shares[2].voxels == 1);
    CHECK(rcn_calib_level_source(calib) == RCN_LEVELS_BINOMIAL);
    rcn_calib_destroy(calib);
    rcn_votes_destroy(s.votes);
    rcn_context_destroy(ctx);
}

/* ---- a naive twin ---------------------------------------------------------------------------- */

typedef struct naive {
    double rps, nll, voxels;
    double bins[RCN_MAX_RATERS + 1][60][3];
    double shares[2][RCN_MAX_RATERS + 1][2];
} naive;

static double binomial(int n, int k, double p) {
    return exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)) * pow(p, k) *
           pow(1 - p, n - k);
}

static void naive_levels(naive *out, const sample *s, int bins, int one_probability,
                         const uint8_t *region) {
    const int K = s->raters;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < s->voxels; ++i) {
        double level[RCN_MAX_RATERS + 1], tail = 0, expected = 0, rps = 0;
        int y = 0, answered = 0;
        for (int r = 0; r < K; ++r) {
            const int mark = s->marks[(size_t)r * (size_t)s->voxels + (size_t)i];
            answered += mark != 9;
            y += mark == 1;
        }
        if ((region && !region[i]) || answered < K) continue;
        for (int k = 0; k <= K; ++k) {
            level[k] = one_probability ? binomial(K, k, (double)s->p[i])
                                       : (double)s->levels[(size_t)i * (size_t)(K + 1) + (size_t)k];
            expected += level[k] * k / K;
        }
        const int unsure = (float)expected >= 0.05f && (float)expected <= 0.95f;
        for (int t = K; t >= 1; --t) {
            tail += level[t];
            const float p = (float)fmin(tail, 1);
            int b = 0;
            while (b + 1 < bins && p >= (float)((double)(b + 1) / bins)) ++b;
            out->bins[t][b][0] += 1;
            out->bins[t][b][1] += (double)p;
            out->bins[t][b][2] += y >= t;
        }
        double below = 0;
        for (int j = 0; j <= K; ++j) {
            below += level[j];
            rps += (below - (y <= j)) * (below - (y <= j)) / (K + 1);
            for (int u = 0; u <= unsure; ++u) {
                out->shares[u][j][0] += level[j];
                out->shares[u][j][1] += y == j;
            }
        }
        out->rps += rps;
        out->nll -= log(fmin(fmax(level[y], 1e-7), 1 - 1e-7));
        out->voxels += 1;
    }
}

static void compare(const rcn_calib *calib, const naive *twin, int raters, int bins) {
    rcn_calib_bin own[60];
    rcn_level_share shares[RCN_MAX_RATERS + 1];
    double f[RCN_FIGURES], mean = 0, largest = 0;
    rcn_calib_figures(f, calib);
    CHECK_NEAR(f[RCN_RPS], twin->rps / twin->voxels, 1e-6);
    CHECK_NEAR(f[RCN_LEVEL_NLL], twin->nll / twin->voxels, 1e-9);
    for (int t = 1; t <= raters; ++t) {
        double gap = 0, ece;
        rcn_calib_level_bins(own, calib, t);
        rcn_calib_gaps(&ece, NULL, NULL, own, bins);
        for (int b = 0; b < bins; ++b) {
            const double *bin = twin->bins[t][b];
            CHECK((double)own[b].count == bin[0]);
            gap += fabs(bin[1] - bin[2]) / twin->voxels;
            if (!(bin[0] > 0)) continue;
            CHECK_NEAR(own[b].confidence, bin[1] / bin[0], 1e-8);
            CHECK_NEAR(own[b].frequency, bin[2] / bin[0], 1e-12);
        }
        CHECK_NEAR(ece, gap, 1e-8);
        mean += gap / raters;
        largest = fmax(largest, gap);
    }
    CHECK_NEAR(f[RCN_LEVEL_ECE], mean, 1e-8);
    CHECK_NEAR(f[RCN_LEVEL_ECE_MAX], largest, 1e-8);
    for (int unsure = 0; unsure < 2; ++unsure) {
        double voxels = 0;
        for (int k = 0; k <= raters; ++k) voxels += twin->shares[unsure][k][1];
        rcn_calib_level_shares(shares, calib, unsure);
        for (int k = 0; k <= raters; ++k) {
            CHECK_NEAR(shares[k].predicted, twin->shares[unsure][k][0] / voxels, 1e-6);
            CHECK_NEAR(shares[k].observed, twin->shares[unsure][k][1] / voxels, 1e-12);
            CHECK((double)shares[k].voxels == twin->shares[unsure][k][1]);
        }
    }
}

static void same_as_naive(void) {
    static const int raters[] = {2, 3, 5, 7, 20, 64};
    static const int bins[] = {1, 7, 15, 60};
    rcn_context *ctx = make_context(2);
    naive *twin = malloc(sizeof *twin);
    for (size_t k = 0; k < sizeof raters / sizeof *raters; ++k)
        for (int with_void = 0; with_void < 2; ++with_void) {
            sample s;
            sample_make(&s, ctx, raters[k], 20011, with_void, 5);
            const uint8_t *region = with_void ? s.region : NULL;
            for (size_t b = 0; b < sizeof bins / sizeof *bins; ++b)
                for (int one = 0; one < 2; ++one) {
                    const rcn_calib_case one_case = {s.votes,
                                                     one ? map_of(s.p, 1, s.voxels)
                                                         : map_of(s.levels, s.raters + 1, s.voxels),
                                                     region, NULL};
                    rcn_calib *calib = calib_of(ctx, &one_case, s.raters, bins[b]);
                    naive_levels(twin, &s, bins[b], one, region);
                    compare(calib, twin, s.raters, bins[b]);
                    CHECK(rcn_calib_level_source(calib) ==
                          (one ? RCN_LEVELS_BINOMIAL : RCN_LEVELS_PREDICTED));
                    rcn_calib_destroy(calib);
                }
            sample_free(&s);
        }
    free(twin);
    rcn_context_destroy(ctx);
}

static int same_levels(const rcn_calib *a, const rcn_calib *b, int raters) {
    double fa[RCN_FIGURES], fb[RCN_FIGURES];
    int same = 1;
    rcn_calib_figures(fa, a);
    rcn_calib_figures(fb, b);
    for (int f = RCN_RPS; f <= RCN_LEVEL_ECE_MAX; ++f) same &= fa[f] == fb[f];
    for (int unsure = 0; unsure < 2; ++unsure) {
        rcn_level_share sa[RCN_MAX_RATERS + 1], sb[RCN_MAX_RATERS + 1];
        rcn_calib_level_shares(sa, a, unsure);
        rcn_calib_level_shares(sb, b, unsure);
        for (int k = 0; k <= raters; ++k)
            same &= sa[k].predicted == sb[k].predicted && sa[k].voxels == sb[k].voxels;
    }
    return same;
}

/* Levels with nothing between their ends are one probability, whatever the readout. */
static void ends_are_one_probability(void) {
    rcn_context *ctx = make_context(2);
    sample s;
    sample_make(&s, ctx, 5, 5003, 0, 11);
    float *ends = calloc((size_t)s.voxels * 6, sizeof *ends);
    for (int i = 0; i < s.voxels; ++i) {
        ends[6 * i] = 1 - s.p[i];
        ends[6 * i + 5] = s.p[i];
    }
    const rcn_calib_case one = {s.votes, map_of(s.p, 1, s.voxels), NULL, NULL};
    rcn_calib_case two = {s.votes, map_of(ends, 6, s.voxels), NULL, NULL};
    rcn_calib *a = calib_of(ctx, &one, 5, 15), *b = calib_of(ctx, &two, 5, 15);
    CHECK(same_levels(a, b, 5));
    CHECK(rcn_calib_level_source(b) == RCN_LEVELS_BINOMIAL);
    /* Together with a case that has levels of its own. */
    two.prediction.data = s.levels;
    CHECK_STATUS(rcn_calib_add(b, ctx, &two), RCN_OK);
    CHECK(rcn_calib_level_source(b) == RCN_LEVELS_MIXED);
    free(ends);
    rcn_calib_destroy(a);
    rcn_calib_destroy(b);
    sample_free(&s);
    rcn_context_destroy(ctx);
}

/* With one rater the levels are the probability: figures of levels are those of pairs. */
static void one_rater(void) {
    rcn_context *ctx = make_context(1);
    sample s;
    double f[RCN_FIGURES];
    sample_make(&s, ctx, 1, 4001, 1, 3);
    const rcn_calib_case one_case = {s.votes, map_of(s.p, 1, s.voxels), NULL, NULL};
    rcn_calib *calib = calib_of(ctx, &one_case, 1, 15);
    rcn_calib_figures(f, calib);
    CHECK_NEAR(f[RCN_LEVEL_NLL], f[RCN_NLL], 1e-9);
    CHECK_NEAR(f[RCN_LEVEL_ECE], f[RCN_MR_ECE], 1e-12);
    CHECK_NEAR(f[RCN_RPS], f[RCN_BRIER] / 2, 1e-12);
    CHECK(rcn_calib_level_source(calib) == RCN_LEVELS_PREDICTED);
    rcn_calib_destroy(calib);
    sample_free(&s);
    rcn_context_destroy(ctx);
}

static void threads_and_merging(void) {
    rcn_context *one = make_context(1), *three = make_context(3);
    sample s, t;
    sample_make(&s, one, 5, 50021, 1, 3);
    sample_make(&t, one, 5, 30011, 0, 4);
    for (int probability = 0; probability < 2; ++probability) {
        const rcn_calib_case first = {
            s.votes, probability ? map_of(s.p, 1, s.voxels) : map_of(s.levels, 6, s.voxels), NULL,
            NULL};
        const rcn_calib_case second = {
            t.votes, probability ? map_of(t.p, 1, t.voxels) : map_of(t.levels, 6, t.voxels),
            t.region, NULL};
        rcn_calib *a = calib_of(one, &first, 5, 15), *b = calib_of(three, &first, 5, 15);
        rcn_calib *c = calib_of(three, &second, 5, 15);
        CHECK(same_levels(a, b, 5));
        CHECK_STATUS(rcn_calib_add(a, one, &second), RCN_OK);
        CHECK(!same_levels(a, b, 5));
        CHECK_STATUS(rcn_calib_merge(b, three, c), RCN_OK);
        CHECK(same_levels(a, b, 5));
        rcn_calib_destroy(a);
        rcn_calib_destroy(b);
        rcn_calib_destroy(c);
    }
    sample_free(&s);
    sample_free(&t);
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

/* Nothing is known of levels where a rater is missing everywhere; a voxel that cannot be used is
 * refused as ever. */
static void undefined_and_bad_input(void) {
    rcn_context *ctx = make_context(1);
    sample s;
    double f[RCN_FIGURES], low[15], high[15];
    rcn_level_share shares[4];
    sample_make(&s, ctx, 3, 2003, 0, 9);
    rcn_votes_destroy(s.votes);
    memset(s.marks, 9, (size_t)s.voxels);
    sample_votes(&s, ctx);
    const rcn_calib_case one_case = {s.votes, map_of(s.levels, 4, s.voxels), NULL, NULL};
    rcn_calib *calib = calib_of(ctx, &one_case, 3, 15);
    rcn_calib_figures(f, calib);
    for (int i = RCN_RPS; i <= RCN_LEVEL_ECE_MAX; ++i) CHECK(isnan(f[i]));
    CHECK(!isnan(f[RCN_NLL]));
    rcn_calib_level_shares(shares, calib, 0);
    CHECK(isnan(shares[0].predicted) && isnan(shares[3].observed) && shares[1].voxels == 0);
    CHECK(rcn_calib_level_source(calib) == RCN_LEVELS_NONE);
    const rcn_calib *cases[1] = {calib};
    CHECK_STATUS(rcn_interval_bins(low, high, ctx, cases, 1, 4, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "Level 4 does not exist with 3 raters");
    s.levels[40] = NAN;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &one_case), RCN_EDATA);
    CHECK_ERROR(ctx, "(10, 0, 0)");
    rcn_calib_destroy(calib);
    sample_free(&s);
    rcn_context_destroy(ctx);
}

/* The band of a level's diagram: its own interval where cases have different frequencies. */
static void band(void) {
    enum { CASES = 8 };
    rcn_context *ctx = make_context(1);
    rcn_calib *cases[CASES];
    sample s;
    double low[15], high[15], pairs_low[15], pairs_high[15];
    rcn_calib_bin bins[15];
    rcn_calib *all = NULL;
    CHECK_STATUS(rcn_calib_create(&all, ctx, 4, NULL), RCN_OK);
    for (int c = 0; c < CASES; ++c) {
        sample_make(&s, ctx, 4, 3001, 0, (uint32_t)c + 20);
        const rcn_calib_case one_case = {s.votes, map_of(s.levels, 5, s.voxels), NULL, NULL};
        cases[c] = calib_of(ctx, &one_case, 4, 15);
        CHECK_STATUS(rcn_calib_merge(all, ctx, cases[c]), RCN_OK);
        sample_free(&s);
    }
    const rcn_calib *const *given = (const rcn_calib *const *)cases;
    CHECK_STATUS(rcn_interval_bins(pairs_low, pairs_high, ctx, given, CASES, 0, NULL), RCN_OK);
    for (int t = 1; t <= 4; ++t) {
        CHECK_STATUS(rcn_interval_bins(low, high, ctx, given, CASES, t, NULL), RCN_OK);
        rcn_calib_level_bins(bins, all, t);
        for (int b = 0; b < 15; ++b) {
            if (bins[b].count < 100) continue;
            CHECK(low[b] <= bins[b].frequency && bins[b].frequency <= high[b]);
            CHECK(low[b] != pairs_low[b] && high[b] - low[b] < 0.5);
        }
    }
    for (int c = 0; c < CASES; ++c) rcn_calib_destroy(cases[c]);
    rcn_calib_destroy(all);
    rcn_context_destroy(ctx);
}

static rcn_status judge(rcn_context *ctx, void *payload) {
    const sample *s = payload;
    const rcn_calib_case one_case = {s->votes, map_of(s->levels, 4, s->voxels), NULL, NULL};
    rcn_calib *calib = NULL;
    rcn_status status = rcn_calib_create(&calib, ctx, 3, NULL);
    if (status == RCN_OK) status = rcn_calib_add(calib, ctx, &one_case);
    if (calib) CHECK(rcn_calib_voxels(calib) == (status == RCN_OK ? s->voxels : 0));
    rcn_calib_destroy(calib);
    return status;
}

static void failing_allocations_and_cancel(void) {
    rcn_context *owner = make_context(1);
    sample s;
    sample_make(&s, owner, 3, 500, 0, 1);
    check_failing_allocations(judge, &s);
    check_cancelling(judge, &s, 2);
    sample_free(&s);
    rcn_context_destroy(owner);
}

int main(void) {
    RUN(by_hand);
    RUN(one_probability_by_hand);
    RUN(same_as_naive);
    RUN(ends_are_one_probability);
    RUN(one_rater);
    RUN(threads_and_merging);
    RUN(undefined_and_bad_input);
    RUN(band);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
