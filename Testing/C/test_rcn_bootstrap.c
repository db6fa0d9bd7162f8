#include "rcn/rcn_bootstrap.h"

#include "rcn_test.h"

enum { CASES = 30, N = 400 };

/* Cases of one rater whose model promises `bias` too much, more or less. */
typedef struct study {
    rcn_calib *cases[CASES];
} study;

static void study_make(study *s, rcn_context *ctx, double bias, uint32_t seed) {
    uint32_t state = seed;
    for (int c = 0; c < CASES; ++c) {
        uint8_t marks[N];
        float p[N];
        state = 1664525u * state + 1013904223u;
        const double mine = bias * (0.5 + (state >> 8) / 16777216.0);
        for (int i = 0; i < N; ++i) {
            p[i] = (float)((i % 40 + 0.5) / 40);
            state = 1664525u * state + 1013904223u;
            marks[i] = (state >> 8) / 16777216.0 < (double)p[i] - mine;
        }
        rcn_mask mask = {{marks, RCN_UINT8, 1, rcn_geometry_make(N, 1, 1)}, 0, NULL, 0, NULL};
        rcn_votes *votes = NULL;
        CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
        const rcn_calib_case one_case = {
            votes, {p, RCN_FLOAT32, 1, rcn_geometry_make(N, 1, 1)}, NULL, NULL};
        CHECK_STATUS(rcn_calib_create(&s->cases[c], ctx, 1, NULL), RCN_OK);
        CHECK_STATUS(rcn_calib_add(s->cases[c], ctx, &one_case), RCN_OK);
        rcn_votes_destroy(votes);
    }
}

static void study_free(study *s) {
    for (int c = 0; c < CASES; ++c) rcn_calib_destroy(s->cases[c]);
}

static const rcn_calib *const *cases_of(const study *s) {
    return (const rcn_calib *const *)s->cases;
}

/* The value is that of the merged cases; the interval is around it and about as wide as the
 * standard error of the cases' own values says. */
static void intervals(void) {
    rcn_context *ctx = make_context(2);
    study s;
    study_make(&s, ctx, 0.1, 1);
    rcn_calib *all = NULL;
    CHECK_STATUS(rcn_calib_create(&all, ctx, 1, NULL), RCN_OK);
    double mean = 0, squares = 0, f[RCN_FIGURES];
    for (int c = 0; c < CASES; ++c) {
        CHECK_STATUS(rcn_calib_merge(all, ctx, s.cases[c]), RCN_OK);
        rcn_calib_figures(f, s.cases[c]);
        mean += f[RCN_SIGNED] / CASES;
        squares += f[RCN_SIGNED] * f[RCN_SIGNED] / CASES;
    }
    const double error = sqrt((squares - mean * mean) / CASES);
    rcn_interval out[RCN_FIGURES];
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), CASES, NULL), RCN_OK);
    rcn_calib_figures(f, all);
    for (int i = 0; i < RCN_FIGURES; ++i) {
        if (isnan(f[i])) {
            CHECK(isnan(out[i].value) && out[i].draws == 0 && isnan(out[i].low));
            continue;
        }
        CHECK_NEAR(out[i].value, f[i],
                   i == RCN_AUC_HISTOGRAM || i == RCN_AUC_PAIRS_HISTOGRAM ? 1e-3 : 1e-12);
        CHECK(out[i].draws == 1000 && isnan(out[i].p_value));
        CHECK(out[i].low <= out[i].mean && out[i].mean <= out[i].high);
    }
    CHECK_NEAR(out[RCN_SIGNED].mean, mean, error);
    CHECK_NEAR(out[RCN_SIGNED].std, error, 0.1 * error);
    CHECK_NEAR(out[RCN_SIGNED].high - out[RCN_SIGNED].low, 2 * 1.96 * error, 0.4 * error);
    /* The paper's protocol: ten draws of 60 %, wider by 1 / sqrt(.6). */
    rcn_bootstrap_options paper = RCN_BOOTSTRAP_OPTIONS_INIT;
    paper.draws = 10;
    paper.fraction = 0.6;
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), CASES, &paper), RCN_OK);
    CHECK(out[RCN_MR_ECE].draws == 10);
    CHECK_NEAR(out[RCN_SIGNED].mean, mean, 2 * error);
    paper.draws = 2000;
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), CASES, &paper), RCN_OK);
    CHECK_NEAR(out[RCN_SIGNED].std, error / sqrt(0.6), 0.1 * error);
    rcn_calib_destroy(all);
    study_free(&s);
    rcn_context_destroy(ctx);
}

static void seeds_and_threads(void) {
    rcn_context *one = make_context(1), *three = make_context(3);
    study s;
    study_make(&s, one, 0.1, 2);
    rcn_bootstrap_options options = RCN_BOOTSTRAP_OPTIONS_INIT;
    options.draws = 50;
    rcn_interval a[RCN_FIGURES], b[RCN_FIGURES];
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    CHECK_STATUS(rcn_bootstrap(a, one, cases_of(&s), CASES, &options), RCN_OK);
    CHECK_STATUS(rcn_bootstrap(b, three, cases_of(&s), CASES, &options), RCN_OK);
    for (int i = 0; i < RCN_FIGURES; ++i)
        CHECK(!memcmp(&a[i].mean, &b[i].mean, sizeof a[i].mean) && a[i].draws == b[i].draws &&
              !memcmp(&a[i].high, &b[i].high, sizeof a[i].high));
    options.seed = 1;
    CHECK_STATUS(rcn_bootstrap(b, three, cases_of(&s), CASES, &options), RCN_OK);
    CHECK(a[RCN_MR_ECE].mean != b[RCN_MR_ECE].mean && a[RCN_MR_ECE].value == b[RCN_MR_ECE].value);
    study_free(&s);
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

/* A model against itself is no different; a worse one is, and in the other order it is better. */
static void paired(void) {
    rcn_context *ctx = make_context(2);
    study good, bad;
    study_make(&good, ctx, 0.05, 3);
    study_make(&bad, ctx, 0.2, 4);
    rcn_interval out[RCN_FIGURES], back[RCN_FIGURES];
    CHECK_STATUS(rcn_bootstrap_paired(out, ctx, cases_of(&good), cases_of(&good), CASES, NULL),
                 RCN_OK);
    CHECK(out[RCN_MR_ECE].value == 0 && out[RCN_MR_ECE].high == 0 && out[RCN_MR_ECE].p_value == 1);
    CHECK_STATUS(rcn_bootstrap_paired(out, ctx, cases_of(&bad), cases_of(&good), CASES, NULL),
                 RCN_OK);
    CHECK_STATUS(rcn_bootstrap_paired(back, ctx, cases_of(&good), cases_of(&bad), CASES, NULL),
                 RCN_OK);
    CHECK(out[RCN_MR_ECE].low > 0);
    CHECK_NEAR(out[RCN_MR_ECE].p_value, 2.0 / 1001, 1e-12);
    CHECK_NEAR(out[RCN_MR_ECE].mean, -back[RCN_MR_ECE].mean, 1e-15);
    CHECK_NEAR(out[RCN_MR_ECE].low, -back[RCN_MR_ECE].high, 1e-12);
    CHECK(out[RCN_MR_ECE].p_value == back[RCN_MR_ECE].p_value);
    /* Resampling both together is narrower than either alone suggests: the same cases. */
    rcn_interval alone[RCN_FIGURES];
    CHECK_STATUS(rcn_bootstrap(alone, ctx, cases_of(&bad), CASES, NULL), RCN_OK);
    CHECK(alone[RCN_MR_ECE].value > out[RCN_MR_ECE].value);
    study_free(&good);
    study_free(&bad);
    rcn_context_destroy(ctx);
}

/* The band holds the merged frequency, narrows with the cases, and is absent with one. */
static void band(void) {
    rcn_context *ctx = make_context(2);
    study s;
    study_make(&s, ctx, 0.1, 5);
    rcn_calib *all = NULL;
    CHECK_STATUS(rcn_calib_create(&all, ctx, 1, NULL), RCN_OK);
    for (int c = 0; c < CASES; ++c) CHECK_STATUS(rcn_calib_merge(all, ctx, s.cases[c]), RCN_OK);
    rcn_calib_bin bins[15];
    double low[15], high[15], few_low[15], few_high[15], wide = 0, narrow = 0;
    rcn_calib_bins(bins, all, RCN_BINS_WIDTH);
    CHECK_STATUS(rcn_bootstrap_bins(low, high, ctx, cases_of(&s), CASES, NULL), RCN_OK);
    CHECK_STATUS(rcn_bootstrap_bins(few_low, few_high, ctx, cases_of(&s), 4, NULL), RCN_OK);
    for (int b = 0; b < 15; ++b) {
        CHECK(low[b] <= bins[b].frequency && bins[b].frequency <= high[b]);
        narrow += high[b] - low[b];
        wide += few_high[b] - few_low[b];
    }
    CHECK(narrow > 0 && narrow < wide);
    CHECK_STATUS(rcn_bootstrap_bins(low, high, ctx, cases_of(&s), 1, NULL), RCN_OK);
    for (int b = 0; b < 15; ++b) CHECK(isnan(low[b]) && isnan(high[b]));
    CHECK_STATUS(rcn_bootstrap_bins(low, NULL, ctx, cases_of(&s), CASES, NULL), RCN_EINVALID);
    int countdown = 3;
    rcn_context_set_progress(ctx, cancel_after, &countdown);
    CHECK_STATUS(rcn_bootstrap_bins(low, high, ctx, cases_of(&s), CASES, NULL), RCN_ECANCELLED);
    rcn_context_set_progress(ctx, NULL, NULL);
    rcn_calib_destroy(all);
    study_free(&s);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void one_case_and_bad_input(void) {
    rcn_context *ctx = make_context(1);
    study s;
    study_make(&s, ctx, 0.1, 5);
    rcn_interval out[RCN_FIGURES];
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 1, NULL), RCN_OK);
    CHECK(out[RCN_MR_ECE].value > 0 && out[RCN_MR_ECE].draws == 0);
    CHECK(isnan(out[RCN_MR_ECE].low) && isnan(out[RCN_MR_ECE].std) && isnan(out[RCN_MR_ECE].mean));
    out[0].value = 7;
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 0, NULL), RCN_EINVALID);
    rcn_bootstrap_options options = RCN_BOOTSTRAP_OPTIONS_INIT;
    options.draws = 0;
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 3, &options), RCN_EINVALID);
    options.draws = 10;
    options.fraction = 0;
    CHECK(rcn_bootstrap_check(&options) != NULL);
    options.fraction = 1;
    options.level = 1;
    CHECK(rcn_bootstrap_check(&options) != NULL);
    CHECK_STATUS(rcn_bootstrap_paired(out, ctx, cases_of(&s), NULL, 3, NULL), RCN_EINVALID);
    rcn_calib_destroy(s.cases[2]);
    CHECK_STATUS(rcn_calib_create(&s.cases[2], ctx, 2, NULL), RCN_OK);
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 3, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "Case 3");
    CHECK(out[0].value == 7);
    study_free(&s);
    rcn_context_destroy(ctx);
}

static rcn_status resample(rcn_context *ctx, void *payload) {
    rcn_bootstrap_options options = RCN_BOOTSTRAP_OPTIONS_INIT;
    rcn_interval out[RCN_FIGURES];
    options.draws = 20;
    out[0].value = -1;
    const rcn_status status =
        rcn_bootstrap_paired(out, ctx, cases_of(payload), cases_of(payload), CASES, &options);
    CHECK((status == RCN_OK) == (out[0].value != -1));
    return status;
}

static void failing_allocations_and_cancel(void) {
    rcn_context *owner = make_context(1);
    study s;
    study_make(&s, owner, 0.1, 6);
    check_failing_allocations(resample, &s);
    check_cancelling(resample, &s, 2);
    study_free(&s);
    rcn_context_destroy(owner);
}

int main(void) {
    RUN(intervals);
    RUN(seeds_and_threads);
    RUN(paired);
    RUN(band);
    RUN(one_case_and_bad_input);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
