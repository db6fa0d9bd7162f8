// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_calib.h"
#include "rcn/rcn_fusion.h"

#include "rcn_test.h"

static rcn_mask mask_of(void *data, int64_t x, int64_t y, int64_t z) {
    rcn_mask mask = {{data, RCN_UINT8, 1, rcn_geometry_make(x, y, z)}, 0, NULL, 0, NULL};
    return mask;
}

static rcn_image map_of(const float *data, int components, int64_t x, int64_t y, int64_t z) {
    rcn_image image = {(void *)data, RCN_FLOAT32, components, rcn_geometry_make(x, y, z)};
    return image;
}

/* The golden raters and the probabilities of the definitions. */
typedef struct golden {
    uint8_t raters[4][GOLDEN_VOXELS];
    float p[GOLDEN_VOXELS];
    rcn_votes *votes;
    rcn_calib_case one_case;
} golden;

static void golden_make(golden *g, rcn_context *ctx) {
    rcn_mask masks[3];
    make_golden(g->raters);
    for (int r = 0; r < 3; ++r) masks[r] = mask_of(g->raters[r], 8, 8, 8);
    for (int i = 0; i < GOLDEN_VOXELS; ++i) g->p[i] = (float)(37 * i % 101 / 100.0);
    CHECK_STATUS(rcn_votes_from_masks(&g->votes, ctx, masks, 3), RCN_OK);
    const rcn_calib_case one_case = {g->votes, map_of(g->p, 1, 8, 8, 8), NULL, NULL};
    g->one_case = one_case;
}

static rcn_calib *calib_of(rcn_context *ctx, const rcn_calib_case *one_case, int raters,
                           const rcn_calib_options *options) {
    rcn_calib *calib = NULL;
    CHECK_STATUS(rcn_calib_create(&calib, ctx, raters, options), RCN_OK);
    CHECK_STATUS(rcn_calib_add(calib, ctx, one_case), RCN_OK);
    return calib;
}

static void golden_vectors(void) {
    static const int bins[3] = {10, 15, 50};
    static const double pooled[3] = {.34704427, .34815104, .35375000};
    static const double mean[3] = {.34880208, .35036458, .35967448};
    static const double brier[3] = {.34089062, .33538281, .32487500};
    rcn_context *ctx = make_context(2);
    golden g;
    golden_make(&g, ctx);
    for (int i = 0; i < 3; ++i) {
        rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
        options.bins = bins[i];
        rcn_calib *calib = calib_of(ctx, &g.one_case, 3, &options);
        double figures[RCN_FIGURES], ece = 0;
        rcn_calib_figures(figures, calib);
        CHECK_NEAR(figures[RCN_MR_ECE], pooled[i], 2e-8);
        CHECK_NEAR(figures[RCN_RATER_ECE], mean[i], 2e-8);
        CHECK_NEAR(figures[RCN_BRIER], (brier[0] + brier[1] + brier[2]) / 3, 2e-8);
        for (int r = 0; r < 3; ++r) {
            CHECK_NEAR(rcn_calib_rater_brier(calib, r), brier[r], 2e-8);
            ece += rcn_calib_rater_ece(calib, r) / 3;
        }
        CHECK_NEAR(ece, mean[i], 2e-8);
        CHECK(rcn_calib_voxels(calib) == 512 && rcn_calib_pairs(calib) == 3 * 512);
        rcn_calib_destroy(calib);
    }
    rcn_votes_destroy(g.votes);
    rcn_context_destroy(ctx);
}

/* Four voxels by hand. */
static void by_hand(void) {
    uint8_t raters[2][4] = {{0, 1, 1, 1}, {0, 0, 1, 1}};
    const float p[4] = {0.0f, 0.5f, 0.75f, 1.0f};
    rcn_context *ctx = make_context(1);
    rcn_mask masks[2] = {mask_of(raters[0], 4, 1, 1), mask_of(raters[1], 4, 1, 1)};
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 2), RCN_OK);
    rcn_calib_case one_case = {votes, map_of(p, 1, 4, 1, 1), NULL, NULL};
    rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
    options.bins = 4;
    options.threshold = 0.75;
    rcn_calib *calib = calib_of(ctx, &one_case, 2, &options);
    rcn_calib_bin bins[4];
    double f[RCN_FIGURES];
    rcn_calib_bins(bins, calib, RCN_BINS_WIDTH);
    rcn_calib_figures(f, calib);
    CHECK(bins[0].count == 2 && bins[1].count == 0 && bins[2].count == 2 && bins[3].count == 4);
    CHECK(isnan(bins[1].confidence) && isnan(bins[1].frequency));
    CHECK(bins[3].confidence == 0.875 && bins[3].frequency == 1.0);
    CHECK(bins[3].lower == 0.75 && bins[3].upper == 1.0);
    CHECK_NEAR(f[RCN_MR_ECE], 4 * 0.125 / 8, 1e-15);
    CHECK_NEAR(f[RCN_UNDER], 4 * 0.125 / 8, 1e-15);
    CHECK_NEAR(f[RCN_OVER], 0, 0);
    CHECK_NEAR(f[RCN_SIGNED], -4 * 0.125 / 8, 1e-15);
    CHECK_NEAR(f[RCN_MCE], 0.125, 1e-15);
    CHECK_NEAR(f[RCN_ACE], 0.125 / 3, 1e-15);
    /* Rater 1: gaps 0, .5, .125 x 2 over 4 voxels; rater 2: .5 the other way. */
    CHECK_NEAR(f[RCN_RATER_ECE], (0.5 + 0.25) / 4, 1e-15);
    /* Majority: 0 1 1 1 (a tie is foreground); confidence 1, .5, .75, 1, always right. */
    CHECK_NEAR(f[RCN_ECE], (0.5 + 0.25) / 4, 1e-15);
    CHECK_NEAR(f[RCN_BRIER], (2 * 0.25 + 2 * 0.0625) / 8, 1e-15);
    CHECK_NEAR(f[RCN_NLL], (-4 * log(1 - 1e-7) - 2 * log(0.5) - 2 * log(0.75)) / 8, 1e-14);
    CHECK_NEAR(f[RCN_DICE], 2.0 * 2 / (2 + 3), 1e-15);
    /* p >= t: 3 3 3 2 1; m >= t: 3 3 3 2 2; both: 3 3 3 2 1. */
    CHECK_NEAR(f[RCN_SOFT_DICE], (1 + 1 + 1 + 1 + 2.0 / 3) / 5, 1e-15);
    CHECK_NEAR(f[RCN_AUC_HISTOGRAM], 1, 0);
    CHECK_NEAR(f[RCN_AUC_PAIRS_HISTOGRAM], (5 * 2 + 4 + 0.5) / 15, 1e-15);
    const rcn_brier brier = rcn_calib_brier(calib);
    CHECK_NEAR(brier.reliability, 4 * 0.125 * 0.125 / 8, 1e-15);
    CHECK_NEAR(brier.uncertainty, 5.0 / 8 * 3 / 8, 1e-15);
    CHECK_NEAR(brier.resolution, (2 * 25.0 / 64 + 2 * 1.0 / 64 + 4 * 9.0 / 64) / 8, 1e-15);
    /* Variance of p in the last bin (1/64), no covariance with votes that are all one. */
    CHECK_NEAR(brier.remainder, 4 * (1.0 / 64) / 8, 1e-15);
    rcn_calib_destroy(calib);

    /* One rater as the reference. */
    uint8_t reference[4];
    rcn_reference_rater(reference, votes, 1);
    one_case.reference = reference;
    calib = calib_of(ctx, &one_case, 2, &options);
    rcn_calib_figures(f, calib);
    CHECK_NEAR(f[RCN_ECE], (0.5 + 0.25) / 4, 1e-15);
    CHECK_NEAR(f[RCN_ECE_FOREGROUND], (0.5 + 0.25) / 4, 1e-15);
    CHECK_NEAR(f[RCN_DICE], 1, 0);
    rcn_calib_destroy(calib);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* p_k = Binomial(K, q), q uniform: what a perfect ordinal model leaves with each readout. Voxel
 * (q, j) has level j with the weight of p_j, so that the votes are what the model says. */
static void perfect_ordinal_model(void) {
    static const int raters_to_try[4] = {3, 4, 5, 7};
    static const double expected[4] = {.0625, .1147, .0938, .1133};
    enum { Q = 400, N = 1000 };
    rcn_context *ctx = make_context(2);
    uint8_t *masks_data = malloc((size_t)7 * Q * N);
    float *levels = malloc(sizeof *levels * 8 * Q * N);
    for (int t = 0; t < 4; ++t) {
        const int raters = raters_to_try[t];
        rcn_mask masks[7];
        for (int q = 0; q < Q; ++q) {
            const double share = (q + 0.5) / Q;
            double p[8], cumulative = 0, choose = 1;
            for (int k = 0; k <= raters; ++k) {
                p[k] = choose * pow(share, k) * pow(1 - share, raters - k);
                choose = choose * (raters - k) / (k + 1);
            }
            int level = 0;
            for (int n = 0; n < N; ++n) {
                while (level < raters && (n + 0.5) / N > cumulative + p[level])
                    cumulative += p[level++];
                for (int r = 0; r < raters; ++r) /* whoever marks takes turns */
                    masks_data[(size_t)r * Q * N + q * N + n] = (uint8_t)((r + n) % raters < level);
                for (int k = 0; k <= raters; ++k)
                    levels[(size_t)(q * N + n) * (raters + 1) + k] = (float)p[k];
            }
        }
        for (int r = 0; r < raters; ++r)
            masks[r] = mask_of(masks_data + (size_t)r * Q * N, N, Q, 1);
        rcn_votes *votes = NULL;
        CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, raters), RCN_OK);
        const rcn_calib_case one_case = {votes, map_of(levels, raters + 1, N, Q, 1), NULL, NULL};
        rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
        options.bins = 100;
        double f[RCN_FIGURES];
        rcn_calib *calib = calib_of(ctx, &one_case, raters, &options);
        rcn_calib_figures(f, calib);
        CHECK_NEAR(f[RCN_MR_ECE], expected[t], 2e-3);
        rcn_calib_destroy(calib);
        options.readout = RCN_READOUT_EXPECTED;
        calib = calib_of(ctx, &one_case, raters, &options);
        rcn_calib_figures(f, calib);
        CHECK_NEAR(f[RCN_MR_ECE], 0, 2e-3);
        rcn_calib_destroy(calib);
        rcn_votes_destroy(votes);
    }
    free(masks_data);
    free(levels);
    rcn_context_destroy(ctx);
}

static void readouts_and_rps(void) {
    const float p[4] = {.1f, .2f, .3f, .4f};
    static const double rps[4] = {.365, .165, .065, .115};
    rcn_context *ctx = make_context(1);
    rcn_image levels = map_of(p, 4, 1, 1, 1);
    float out = -1;
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &levels, RCN_READOUT_MAJORITY, 0), RCN_OK);
    CHECK_NEAR(out, .7, 1e-7);
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &levels, RCN_READOUT_EXPECTED, 0), RCN_OK);
    CHECK_NEAR(out, 2.0 / 3, 1e-7);
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &levels, RCN_READOUT_AT_LEAST, 1), RCN_OK);
    CHECK_NEAR(out, .9, 1e-7);
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &levels, RCN_READOUT_AT_LEAST, 3), RCN_OK);
    CHECK_NEAR(out, .4, 1e-7);
    out = 5;
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &levels, RCN_READOUT_AT_LEAST, 4), RCN_EINVALID);
    CHECK_ERROR(ctx, "between 1 and the number of raters");
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &levels, (rcn_readout)7, 0), RCN_EINVALID);
    CHECK(out == 5);
    /* Four levels are three raters; a tie of four raters is foreground. */
    const float tie[5] = {0, 0, 1, 0, 0};
    rcn_image five = map_of(tie, 5, 1, 1, 1);
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &five, RCN_READOUT_MAJORITY, 0), RCN_OK);
    CHECK(out == 1);
    /* Unless the readout says that it is not; with three raters there is none. */
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &five, RCN_READOUT_MORE_THAN_HALF, 0), RCN_OK);
    CHECK(out == 0);
    CHECK_STATUS(rcn_readout_apply(&out, ctx, &levels, RCN_READOUT_MORE_THAN_HALF, 0), RCN_OK);
    CHECK_NEAR(out, .7, 1e-7);
    CHECK(!strcmp(rcn_readout_name(RCN_READOUT_MORE_THAN_HALF), "more-than-half"));
    CHECK(!rcn_readout_name((rcn_readout)4) && !rcn_readout_name((rcn_readout)-1));
    for (int level = 0; level < 4; ++level) {
        uint8_t marks[3];
        rcn_mask masks[3];
        for (int r = 0; r < 3; ++r) {
            marks[r] = r < level;
            masks[r] = mask_of(&marks[r], 1, 1, 1);
        }
        rcn_votes *votes = NULL;
        CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 3), RCN_OK);
        const rcn_calib_case one_case = {votes, levels, NULL, NULL};
        rcn_calib *calib = calib_of(ctx, &one_case, 3, NULL);
        double f[RCN_FIGURES];
        rcn_calib_figures(f, calib);
        CHECK_NEAR(f[RCN_RPS], rps[level], 1e-7);
        CHECK(isnan(f[RCN_AUC_HISTOGRAM])); /* one class only */
        rcn_calib_destroy(calib);
        rcn_votes_destroy(votes);
    }
    rcn_context_destroy(ctx);
}

/* ---- a naive twin ---------------------------------------------------------------------------- */

enum { TX = 61, TY = 43, TZ = 17, TN = TX * TY * TZ };
typedef struct twin {
    uint8_t *marks; /* [raters][TN]: 0, 1, or 9: did not answer */
    float *p;
    uint8_t *region;
    rcn_votes *votes;
    int raters;
} twin;

static uint32_t twin_random(uint32_t *s) {
    *s = 1664525u * *s + 1013904223u;
    return *s >> 8;
}

static void twin_make(twin *t, rcn_context *ctx, int raters, int with_void, uint32_t seed) {
    static const int64_t unanswered = 9;
    rcn_mask masks[RCN_MAX_RATERS];
    uint32_t s = seed;
    t->raters = raters;
    t->marks = malloc((size_t)raters * TN);
    t->p = malloc(sizeof *t->p * TN);
    t->region = malloc(TN);
    for (int i = 0; i < TN; ++i) {
        /* Values at the edges, tiny ones, and whole numbers of percent. */
        const uint32_t kind = twin_random(&s) % 8;
        const double u = twin_random(&s) / 16777216.0;
        t->p[i] = kind == 0   ? 0.0f
                  : kind == 1 ? 1.0f
                  : kind == 2 ? (float)(floor(u * 100) / 100)
                  : kind == 3 ? (float)pow(u, 12)
                  : kind == 4 ? 1.0f - (float)pow(u, 8)
                              : (float)u;
        t->region[i] = twin_random(&s) % 5 != 0;
        for (int r = 0; r < raters; ++r) {
            uint8_t mark = twin_random(&s) / 16777216.0 < 0.7 * (double)t->p[i] + 0.1;
            if (with_void && (r + i / 97) % 3 == 0) mark = 9;
            t->marks[(size_t)r * TN + i] = mark;
        }
    }
    for (int r = 0; r < raters; ++r) {
        masks[r] = mask_of(t->marks + (size_t)r * TN, TX, TY, TZ);
        if (with_void) masks[r].unanswered = &unanswered;
    }
    if (with_void && raters > 3) masks[2].image.data = NULL; /* missing from the case */
    if (with_void && raters > 3) memset(t->marks + (size_t)2 * TN, 9, TN);
    CHECK_STATUS(rcn_votes_from_masks(&t->votes, ctx, masks, raters), RCN_OK);
}

static void twin_free(twin *t) {
    rcn_votes_destroy(t->votes);
    free(t->marks);
    free(t->p);
    free(t->region);
}

static int naive_bin(float p, int bins) {
    int b = 0;
    while (b + 1 < bins && p >= (float)((double)(b + 1) / bins)) ++b;
    return b;
}

static void naive_figures(double *f, double *rater_ece, double *rater_brier, const twin *t,
                          int bins, const uint8_t *region) {
    double *sums = calloc((size_t)(t->raters + 3) * bins * 3, sizeof *sums);
    double brier = 0, nll = 0, pairs = 0;
    double tp = 0, predicted = 0, actual = 0, soft[5][3] = {{0}};
    for (int r = 0; r < t->raters; ++r) rater_brier[r] = 0;
    for (int i = 0; i < TN; ++i) {
        if (region && !region[i]) continue;
        const double p = (double)t->p[i], clipped = fmin(fmax(p, 1e-7), 1 - 1e-7);
        const int b = naive_bin(t->p[i], bins);
        int marked = 0, answered = 0;
        for (int r = 0; r < t->raters; ++r) {
            const int y = t->marks[(size_t)r * TN + i];
            if (y == 9) continue;
            double *bin = sums + ((size_t)r * bins + b) * 3,
                   *all = sums + ((size_t)t->raters * bins + b) * 3;
            bin[0] += 1, bin[1] += p, bin[2] += y;
            all[0] += 1, all[1] += p, all[2] += y;
            rater_brier[r] += (p - y) * (p - y);
            brier += (p - y) * (p - y);
            nll -= log(y ? clipped : 1 - clipped);
            pairs += 1;
            marked += y;
            ++answered;
        }
        if (!answered) continue;
        const int majority = 2 * marked >= answered, positive = p >= 0.5;
        const float own = positive ? t->p[i] : 1.0f - t->p[i];
        double *confidence = sums + ((size_t)(t->raters + 1) * bins + naive_bin(own, bins)) * 3;
        confidence[0] += 1, confidence[1] += positive ? p : 1 - p,
            confidence[2] += positive == majority;
        double *reference = sums + ((size_t)(t->raters + 2) * bins + b) * 3;
        reference[0] += 1, reference[1] += p, reference[2] += majority;
        tp += positive && majority, predicted += positive, actual += majority;
        for (int k = 0; k < 5; ++k) {
            const int a = t->p[i] >= (float)((2 * k + 1) / 10.0),
                      m = 10 * marked >= (2 * k + 1) * answered;
            soft[k][0] += a && m, soft[k][1] += a, soft[k][2] += m;
        }
    }
    double eces[RCN_MAX_RATERS + 3] = {0};
    int present = 0;
    f[RCN_MCE] = f[RCN_ACE] = f[RCN_RATER_ECE] = f[RCN_SOFT_DICE] = 0;
    int filled = 0;
    for (int c = 0; c < t->raters + 3; ++c) {
        double n = 0;
        for (int b = 0; b < bins; ++b) {
            const double *bin = sums + ((size_t)c * bins + b) * 3;
            if (bin[0] == 0) continue;
            const double gap = fabs(bin[1] / bin[0] - bin[2] / bin[0]);
            n += bin[0];
            eces[c] += bin[0] * gap;
            if (c == t->raters) {
                f[RCN_MCE] = fmax(f[RCN_MCE], gap);
                f[RCN_ACE] += gap;
                ++filled;
            }
        }
        eces[c] /= n;
        if (c < t->raters) {
            rater_ece[c] = eces[c];
            rater_brier[c] /= n;
            if (n > 0) {
                f[RCN_RATER_ECE] += eces[c];
                ++present;
            }
        }
    }
    f[RCN_RATER_ECE] /= present;
    f[RCN_ACE] /= filled;
    f[RCN_MR_ECE] = eces[t->raters];
    f[RCN_ECE] = eces[t->raters + 1];
    f[RCN_ECE_FOREGROUND] = eces[t->raters + 2];
    f[RCN_BRIER] = brier / pairs;
    f[RCN_NLL] = nll / pairs;
    f[RCN_DICE] = 2 * tp / (predicted + actual);
    for (int k = 0; k < 5; ++k) f[RCN_SOFT_DICE] += 2 * soft[k][0] / (soft[k][1] + soft[k][2]) / 5;
    free(sums);
}

/* Two of four raters mark: the reference takes the side that the readout takes. */
static void ties(void) {
    rcn_context *ctx = make_context(1);
    uint8_t marks[4] = {1, 0, 1, 0}, table[16], voxel = 2;
    rcn_mask masks[4];
    for (int r = 0; r < 4; ++r) masks[r] = mask_of(&marks[r], 1, 1, 1);
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 4), RCN_OK);
    for (int strict = 0; strict < 2; ++strict) {
        CHECK(rcn_votes_pattern_count(votes) <= 16);
        rcn_reference_majority(table, votes, strict);
        CHECK_STATUS(rcn_votes_expand_u8(&voxel, ctx, votes, table), RCN_OK);
        CHECK(voxel == !strict);
    }
    const float tie[5] = {0, 0, 1, 0, 0};
    for (int strict = 0; strict < 2; ++strict) {
        rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
        rcn_calib *calib = NULL;
        double figures[RCN_FIGURES];
        options.readout = strict ? RCN_READOUT_MORE_THAN_HALF : RCN_READOUT_MAJORITY;
        const rcn_calib_case one = {votes, map_of(tie, 5, 1, 1, 1), NULL, NULL};
        CHECK_STATUS(rcn_calib_create(&calib, ctx, 4, &options), RCN_OK);
        CHECK_STATUS(rcn_calib_add(calib, ctx, &one), RCN_OK);
        rcn_calib_figures(figures, calib);
        CHECK_NEAR(figures[RCN_ECE_FOREGROUND], 0, 1e-9); /* readout and reference agree */
        rcn_calib_destroy(calib);
    }
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void ends_of_levels(void) {
    enum { SIDE = 200 };
    float *levels = calloc((size_t)SIDE * SIDE * 4, sizeof *levels);
    rcn_image image = map_of(levels, 4, SIDE, SIDE, 1);
    int ends = -1;
    for (int i = 0; i < SIDE * SIDE; ++i) {
        levels[4 * i + 3] = (float)(i % 100) / 100;
        levels[4 * i] = 1 - levels[4 * i + 3];
    }
    for (int threads = 1; threads <= 3; threads += 2) {
        rcn_context *ctx = make_context(threads);
        CHECK_STATUS(rcn_levels_are_ends(&ends, ctx, &image), RCN_OK);
        CHECK(ends == 1);
        levels[4 * (SIDE * SIDE - 1) + 2] = 1e-30f;
        CHECK_STATUS(rcn_levels_are_ends(&ends, ctx, &image), RCN_OK);
        CHECK(ends == 0);
        levels[4 * (SIDE * SIDE - 1) + 2] = 0;
        const rcn_image probability = map_of(levels, 1, SIDE, SIDE, 1);
        CHECK_STATUS(rcn_levels_are_ends(&ends, ctx, &probability), RCN_OK);
        CHECK(ends == 1);
        CHECK_STATUS(rcn_levels_are_ends(NULL, ctx, &image), RCN_EINVALID);
        image.type = RCN_UINT8;
        CHECK_STATUS(rcn_levels_are_ends(&ends, ctx, &image), RCN_EINVALID);
        image.type = RCN_FLOAT32;
        rcn_context_destroy(ctx);
    }
    free(levels);
}

static void same_as_naive(void) {
    static const int raters_to_try[] = {1, 3, 5, 12, 20, 40};
    static const rcn_figure compared[] = {RCN_MR_ECE, RCN_RATER_ECE, RCN_ECE,   RCN_ECE_FOREGROUND,
                                          RCN_MCE,    RCN_ACE,       RCN_BRIER, RCN_NLL,
                                          RCN_DICE,   RCN_SOFT_DICE};
    rcn_context *ctx = make_context(2);
    for (size_t k = 0; k < sizeof raters_to_try / sizeof *raters_to_try; ++k)
        for (int with_void = 0; with_void < 2; ++with_void) {
            twin t;
            twin_make(&t, ctx, raters_to_try[k], with_void, 17);
            for (int bins = 7; bins <= 60; bins += 13) {
                const rcn_calib_case one_case = {t.votes, map_of(t.p, 1, TX, TY, TZ),
                                                 with_void ? t.region : NULL, NULL};
                rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
                options.bins = bins;
                rcn_calib *calib = calib_of(ctx, &one_case, t.raters, &options);
                double f[RCN_FIGURES], naive[RCN_FIGURES], ece[RCN_MAX_RATERS],
                    brier[RCN_MAX_RATERS];
                rcn_calib_figures(f, calib);
                naive_figures(naive, ece, brier, &t, bins, one_case.region);
                for (size_t i = 0; i < sizeof compared / sizeof *compared; ++i)
                    CHECK_NEAR(f[compared[i]], naive[compared[i]], 1e-10);
                for (int r = 0; r < t.raters; ++r) {
                    if (with_void && t.raters > 3 && r == 2) {
                        CHECK(isnan(rcn_calib_rater_ece(calib, r)));
                        CHECK(isnan(rcn_calib_rater_brier(calib, r)));
                        continue;
                    }
                    CHECK_NEAR(rcn_calib_rater_ece(calib, r), ece[r], 1e-11);
                    CHECK_NEAR(rcn_calib_rater_brier(calib, r), brier[r], 1e-11);
                }
                CHECK_NEAR(f[RCN_OVER] + f[RCN_UNDER], f[RCN_MR_ECE], 1e-15);
                CHECK_NEAR(f[RCN_OVER] - f[RCN_UNDER], f[RCN_SIGNED], 1e-15);
                if (!with_void) CHECK(f[RCN_RATER_ECE] >= f[RCN_MR_ECE] - 1e-15);
                rcn_calib_destroy(calib);
            }
            twin_free(&t);
        }
    rcn_context_destroy(ctx);
}

/* MR-ECE over all pairs is the ECE against the mean vote. */
static void is_ece_against_the_mean_vote(void) {
    enum { BINS = 15 };
    rcn_context *ctx = make_context(2);
    twin t;
    double sums[BINS][2] = {{0}}, gap = 0, f[RCN_FIGURES];
    twin_make(&t, ctx, 5, 0, 23);
    for (int i = 0; i < TN; ++i) {
        int marked = 0;
        for (int r = 0; r < 5; ++r) marked += t.marks[(size_t)r * TN + i];
        sums[naive_bin(t.p[i], BINS)][0] += (double)t.p[i];
        sums[naive_bin(t.p[i], BINS)][1] += marked / 5.0;
    }
    for (int b = 0; b < BINS; ++b) gap += fabs(sums[b][0] - sums[b][1]) / TN;
    const rcn_calib_case one_case = {t.votes, map_of(t.p, 1, TX, TY, TZ), NULL, NULL};
    rcn_calib *calib = calib_of(ctx, &one_case, 5, NULL);
    rcn_calib_figures(f, calib);
    CHECK_NEAR(f[RCN_MR_ECE], gap, 1e-11);
    rcn_calib_destroy(calib);
    twin_free(&t);
    rcn_context_destroy(ctx);
}

/* Equal-mass bins hold the same pairs, about equally many of them, in order; and with ties the mass
 * that cannot be split stays together. */
static void equal_mass_bins(void) {
    rcn_context *ctx = make_context(2);
    twin t;
    twin_make(&t, ctx, 3, 0, 5);
    for (int i = 0; i < TN; ++i) t.p[i] = (float)((i * 7919LL % TN + 0.5) / TN);
    const rcn_calib_case one_case = {t.votes, map_of(t.p, 1, TX, TY, TZ), NULL, NULL};
    rcn_calib *calib = calib_of(ctx, &one_case, 3, NULL);
    rcn_calib_bin mass[15], width[15];
    double ece, mce, ace, f[RCN_FIGURES];
    int64_t total = 0;
    rcn_calib_figures(f, calib);
    rcn_calib_bins(width, calib, RCN_BINS_WIDTH);
    rcn_calib_gaps(&ece, &mce, &ace, width, 15);
    CHECK_NEAR(ece, f[RCN_MR_ECE], 1e-14);
    CHECK_NEAR(mce, f[RCN_MCE], 1e-14);
    CHECK_NEAR(ace, f[RCN_ACE], 1e-14);
    rcn_calib_bins(mass, calib, RCN_BINS_MASS);
    for (int b = 0; b < 15; ++b) {
        total += mass[b].count;
        CHECK_NEAR((double)mass[b].count, 3.0 * TN / 15, 3.0 * TN / 4096 + 6);
        CHECK(mass[b].confidence >= mass[b].lower && mass[b].confidence <= mass[b].upper);
        if (b) CHECK(mass[b].lower == mass[b - 1].upper);
    }
    CHECK(mass[0].lower == 0 && mass[14].upper == 1 && total == 3 * (int64_t)TN);
    rcn_calib_destroy(calib);
    for (int i = 0; i < TN; ++i) t.p[i] = i % 10 ? 0.0f : 0.625f;
    calib = calib_of(ctx, &one_case, 3, NULL);
    rcn_calib_bins(mass, calib, RCN_BINS_MASS);
    int filled = 0;
    for (int b = 0; b < 15; ++b) filled += mass[b].count > 0;
    CHECK(filled == 2);
    CHECK(mass[14].count == 3 * (TN / 10 + 1) && mass[14].confidence == 0.625);
    rcn_calib_destroy(calib);
    twin_free(&t);
    rcn_context_destroy(ctx);
}

static int same_bits(const rcn_calib *a, const rcn_calib *b) {
    double fa[RCN_FIGURES], fb[RCN_FIGURES];
    rcn_calib_bin ba[15], bb[15];
    rcn_calib_figures(fa, a);
    rcn_calib_figures(fb, b);
    int same = !memcmp(fa, fb, sizeof fa);
    memset(ba, 0, sizeof ba);
    memset(bb, 0, sizeof bb);
    for (int binning = 0; binning < 2; ++binning) {
        rcn_calib_bins(ba, a, (rcn_binning)binning);
        rcn_calib_bins(bb, b, (rcn_binning)binning);
        same &= !memcmp(ba, bb, sizeof ba);
    }
    return same;
}

static void threads_and_merging(void) {
    rcn_context *one = make_context(1), *three = make_context(3);
    twin t, u;
    twin_make(&t, one, 5, 1, 3);
    twin_make(&u, one, 5, 0, 4);
    const rcn_calib_case first = {t.votes, map_of(t.p, 1, TX, TY, TZ), t.region, NULL};
    const rcn_calib_case second = {u.votes, map_of(u.p, 1, TX, TY, TZ), NULL, NULL};
    rcn_calib *a = calib_of(one, &first, 5, NULL), *b = calib_of(three, &first, 5, NULL);
    CHECK(same_bits(a, b));
    rcn_calib *c = calib_of(three, &second, 5, NULL), *copy = NULL;
    CHECK_STATUS(rcn_calib_copy(&copy, one, a), RCN_OK);
    CHECK_STATUS(rcn_calib_add(a, one, &second), RCN_OK);
    CHECK(!same_bits(a, copy) && same_bits(b, copy));
    CHECK_STATUS(rcn_calib_merge(b, three, c), RCN_OK);
    CHECK(same_bits(a, b));
    CHECK(rcn_calib_voxels(a) == rcn_calib_voxels(copy) + TN);
    rcn_calib *other = NULL;
    rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
    options.bins = 10;
    CHECK_STATUS(rcn_calib_create(&other, one, 5, &options), RCN_OK);
    CHECK_STATUS(rcn_calib_merge(a, one, other), RCN_EINVALID);
    CHECK_ERROR(one, "different numbers of bins");
    CHECK(same_bits(a, b));
    double f[RCN_FIGURES];
    rcn_calib_figures(f, other);
    for (int i = 0; i < RCN_FIGURES; ++i) CHECK(isnan(f[i]) && rcn_figure_name((rcn_figure)i));
    CHECK(!rcn_figure_name(RCN_FIGURES));
    rcn_calib_destroy(other);
    rcn_calib_destroy(a);
    rcn_calib_destroy(b);
    rcn_calib_destroy(c);
    rcn_calib_destroy(copy);
    twin_free(&t);
    twin_free(&u);
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

/* More voxels in one cell than its 64 bits hold at once. */
static void long_sums(void) {
    enum { N = 3 << 19 };
    uint8_t *marks = malloc(N);
    float *p = malloc(sizeof *p * N);
    rcn_mask masks[40];
    for (int i = 0; i < N; ++i) {
        marks[i] = 1;
        p[i] = 1.0f;
    }
    for (int r = 0; r < 40; ++r) masks[r] = mask_of(marks, 1 << 10, 3 << 9, 1);
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 40), RCN_OK);
    const rcn_calib_case one_case = {votes, map_of(p, 1, 1 << 10, 3 << 9, 1), NULL, NULL};
    rcn_calib *calib = calib_of(ctx, &one_case, 40, NULL);
    rcn_calib_bin bins[15];
    for (int binning = 0; binning < 2; ++binning) {
        rcn_calib_bins(bins, calib, (rcn_binning)binning);
        int64_t count = 0;
        for (int b = 0; b < 15; ++b) {
            count += bins[b].count;
            if (bins[b].count) CHECK(bins[b].confidence == 1 && bins[b].frequency == 1);
        }
        CHECK(count == INT64_C(40) * N);
    }
    rcn_calib_destroy(calib);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
    free(marks);
    free(p);
}

static void bad_input(void) {
    rcn_context *ctx = make_context(2);
    golden g;
    golden_make(&g, ctx);
    rcn_calib *calib = calib_of(ctx, &g.one_case, 3, NULL), *before = NULL;
    CHECK_STATUS(rcn_calib_copy(&before, ctx, calib), RCN_OK);
    rcn_calib_case bad = g.one_case;

    g.p[100] = NAN;
    g.p[300] = 2;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EDATA);
    CHECK_ERROR(ctx, "nan at voxel (4, 4, 1)");
    g.p[100] = -0.25f;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EDATA);
    CHECK_ERROR(ctx, "-0.25 at voxel (4, 4, 1)");
    g.p[100] = 0.5f;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EDATA);
    CHECK_ERROR(ctx, "2 at voxel (4, 5, 4)");
    CHECK(same_bits(calib, before));
    /* Outside the region a voxel may hold anything. */
    uint8_t region[GOLDEN_VOXELS];
    memset(region, 1, sizeof region);
    region[300] = 0;
    bad.region = region;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_OK);
    CHECK(rcn_calib_voxels(calib) == 512 + 511);
    memset(region, 0, sizeof region);
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EDATA);
    CHECK_ERROR(ctx, "No rater answered");
    CHECK(rcn_calib_voxels(calib) == 512 + 511);

    float levels[GOLDEN_VOXELS * 5];
    for (int i = 0; i < GOLDEN_VOXELS * 5; ++i) levels[i] = 0.25f;
    bad.region = NULL;
    bad.prediction = map_of(levels, 5, 8, 8, 8);
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EINVALID);
    CHECK_ERROR(ctx, "5 components; 3 raters need 4");
    bad.prediction.components = 4;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_OK);
    levels[4 * 9] = 0.24f;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EDATA);
    CHECK_ERROR(ctx, "4 probabilities add up to 0.99 at voxel (1, 1, 0)");
    levels[4 * 9] = -0.5f;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EDATA);
    CHECK_ERROR(ctx, "Component 0 of the prediction is -0.5 at voxel (1, 1, 0)");
    float out[GOLDEN_VOXELS];
    CHECK_STATUS(rcn_readout_apply(out, ctx, &bad.prediction, RCN_READOUT_EXPECTED, 0), RCN_EDATA);
    CHECK_ERROR(ctx, "Component 0 of the prediction is -0.5 at voxel (1, 1, 0)");

    bad = g.one_case;
    bad.prediction.geometry = rcn_geometry_make(8, 8, 7);
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "8x8x7");
    bad = g.one_case;
    bad.prediction.type = RCN_UINT8;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EINVALID);
    bad = g.one_case;
    bad.votes = NULL;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EINVALID);
    const uint8_t reference[8] = {0, 1, 2, 0, 0, 0, 0, 0};
    bad = g.one_case;
    bad.reference = reference;
    CHECK_STATUS(rcn_calib_add(calib, ctx, &bad), RCN_EINVALID);
    CHECK_ERROR(ctx, "not 2");
    CHECK_STATUS(rcn_calib_add(NULL, ctx, &g.one_case), RCN_EINVALID);
    CHECK_STATUS(rcn_calib_add(calib, NULL, &g.one_case), RCN_EINVALID);
    rcn_calib_destroy(before);
    CHECK_STATUS(rcn_calib_create(&before, ctx, 4, NULL), RCN_OK);
    CHECK_STATUS(rcn_calib_add(before, ctx, &g.one_case), RCN_EINVALID);
    CHECK_ERROR(ctx, "3 raters, not 4");

    rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
    rcn_calib *none = NULL;
    options.bins = 0;
    CHECK_STATUS(rcn_calib_create(&none, ctx, 3, &options), RCN_EINVALID);
    options.bins = 1001;
    CHECK(rcn_calib_check(&options, 3) != NULL);
    options.bins = 15;
    options.threshold = NAN;
    CHECK(rcn_calib_check(&options, 3) != NULL);
    options.threshold = 0.5;
    options.readout = RCN_READOUT_AT_LEAST;
    CHECK(rcn_calib_check(&options, 3) != NULL);
    options.at_least = 3;
    CHECK(rcn_calib_check(&options, 3) == NULL);
    CHECK(rcn_calib_check(NULL, 65) != NULL);
    CHECK(none == NULL);
    rcn_calib_destroy(NULL);
    rcn_calib_destroy(before);
    rcn_calib_destroy(calib);
    rcn_votes_destroy(g.votes);
    rcn_context_destroy(ctx);
}

static rcn_status judge(rcn_context *ctx, void *payload) {
    const golden *g = payload;
    rcn_calib *calib = NULL;
    rcn_status status = rcn_calib_create(&calib, ctx, 3, NULL);
    CHECK((status == RCN_OK) == (calib != NULL));
    if (status == RCN_OK) status = rcn_calib_add(calib, ctx, &g->one_case);
    if (calib) CHECK(rcn_calib_voxels(calib) == (status == RCN_OK ? 512 : 0));
    rcn_calib_destroy(calib);
    return status;
}

static void failing_allocations_and_cancel(void) {
    rcn_context *owner = make_context(1);
    golden g;
    golden_make(&g, owner);
    check_failing_allocations(judge, &g);
    check_cancelling(judge, &g, 2);
    rcn_votes_destroy(g.votes);
    rcn_context_destroy(owner);
}

/* Maps that are made of the raters' answers are known; what a model says is not. */
static void fused_maps(void) {
    rcn_context *ctx = make_context(2);
    enum { SIDE = 30, VOXELS = SIDE * SIDE };
    uint8_t marks[2][VOXELS];
    float map[VOXELS];
    rcn_mask masks[2];
    rcn_votes *votes = NULL;
    int fused = -1;
    for (int r = 0; r < 2; ++r) {
        for (int i = 0; i < VOXELS; ++i)
            marks[r][i] = i % SIDE >= 4 - r && i % SIDE < 8 && i / SIDE >= 4 && i / SIDE < 8;
        const rcn_mask mask = {
            {marks[r], RCN_UINT8, 1, rcn_geometry_make(SIDE, SIDE, 1)}, 0, NULL, 0, NULL};
        masks[r] = mask;
    }
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 2), RCN_OK);
    const rcn_calib_case one = {
        votes, {map, RCN_FLOAT32, 1, rcn_geometry_make(SIDE, SIDE, 1)}, NULL, NULL};
    static const rcn_method methods[] = {RCN_SOFT, RCN_MEDIAN, RCN_STAPLE, RCN_SOFT_GAUSSIAN,
                                         RCN_SVLS};
    for (int m = 0; m < 5; ++m) {
        rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
        options.method = methods[m];
        CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_OK);
        CHECK_STATUS(rcn_case_is_fused(&fused, ctx, &one), RCN_OK);
        CHECK(fused == 1);
        map[5 * SIDE + 5] *= 0.99f; /* one voxel that is no function of the votes */
        CHECK_STATUS(rcn_case_is_fused(&fused, ctx, &one), RCN_OK);
        CHECK(fused == 0);
    }
    /* The same everywhere says nothing of anybody. */
    memset(map, 0, sizeof map);
    CHECK_STATUS(rcn_case_is_fused(&fused, ctx, &one), RCN_OK);
    CHECK(fused == 0);
    CHECK_STATUS(rcn_case_is_fused(NULL, ctx, &one), RCN_EINVALID);
    rcn_votes_destroy(votes);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(golden_vectors);
    RUN(by_hand);
    RUN(perfect_ordinal_model);
    RUN(readouts_and_rps);
    RUN(ties);
    RUN(ends_of_levels);
    RUN(same_as_naive);
    RUN(is_ece_against_the_mean_vote);
    RUN(equal_mass_bins);
    RUN(threads_and_merging);
    RUN(long_sums);
    RUN(bad_input);
    RUN(fused_maps);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
