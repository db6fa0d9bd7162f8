// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_bootstrap.h"

#include "rcn_test_study.h"

/* The draws lie around the cases' own values, as wide as these say: the signed error is a mean of
 * cases of one size. Draws of 60 % are wider by 1 / sqrt(.6). */
static void draws(void) {
    rcn_context *ctx = make_context(2);
    study s;
    study_make(&s, ctx, 0.1, 1);
    double mean = 0, squares = 0, f[RCN_FIGURES];
    for (int c = 0; c < CASES; ++c) {
        rcn_calib_figures(f, s.cases[c]);
        mean += f[RCN_SIGNED] / CASES;
        squares += f[RCN_SIGNED] * f[RCN_SIGNED] / CASES;
    }
    const double error = sqrt((squares - mean * mean) / CASES);
    rcn_spread out[RCN_FIGURES];
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), CASES, NULL), RCN_OK);
    CHECK(out[RCN_MR_ECE].draws == 10);
    CHECK(out[RCN_LEVEL_ECE].draws == 10 && out[RCN_LEVEL_ECE].std > 0);
    CHECK_NEAR(out[RCN_SIGNED].mean, mean, 2 * error);
    rcn_bootstrap_options options = RCN_BOOTSTRAP_OPTIONS_INIT;
    options.draws = 2000;
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), CASES, &options), RCN_OK);
    CHECK_NEAR(out[RCN_SIGNED].std, error / sqrt(0.6), 0.1 * error);
    CHECK_NEAR(out[RCN_SIGNED].mean, mean, 0.2 * error);
    study_free(&s);
    rcn_context_destroy(ctx);
}

static void seeds_and_threads(void) {
    rcn_context *one = make_context(1), *three = make_context(3);
    study s;
    study_make(&s, one, 0.1, 2);
    rcn_bootstrap_options options = RCN_BOOTSTRAP_OPTIONS_INIT;
    options.draws = 50;
    rcn_spread a[RCN_FIGURES], b[RCN_FIGURES];
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    CHECK_STATUS(rcn_bootstrap(a, one, cases_of(&s), CASES, &options), RCN_OK);
    CHECK_STATUS(rcn_bootstrap(b, three, cases_of(&s), CASES, &options), RCN_OK);
    for (int i = 0; i < RCN_FIGURES; ++i)
        CHECK(!memcmp(&a[i].mean, &b[i].mean, sizeof a[i].mean) && a[i].draws == b[i].draws &&
              !memcmp(&a[i].std, &b[i].std, sizeof a[i].std));
    options.seed = 1;
    CHECK_STATUS(rcn_bootstrap(b, three, cases_of(&s), CASES, &options), RCN_OK);
    CHECK(a[RCN_MR_ECE].mean != b[RCN_MR_ECE].mean);
    study_free(&s);
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

static void one_case_and_bad_input(void) {
    rcn_context *ctx = make_context(1);
    study s;
    study_make(&s, ctx, 0.1, 5);
    rcn_spread out[RCN_FIGURES];
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 1, NULL), RCN_OK);
    CHECK(out[RCN_MR_ECE].draws == 0 && isnan(out[RCN_MR_ECE].std) && isnan(out[RCN_MR_ECE].mean));
    out[0].mean = 7;
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 0, NULL), RCN_EINVALID);
    rcn_bootstrap_options options = RCN_BOOTSTRAP_OPTIONS_INIT;
    options.draws = 0;
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 3, &options), RCN_EINVALID);
    CHECK(rcn_bootstrap_check(&options) != NULL);
    rcn_calib_destroy(s.cases[2]);
    CHECK_STATUS(rcn_calib_create(&s.cases[2], ctx, 2, NULL), RCN_OK);
    CHECK_STATUS(rcn_bootstrap(out, ctx, cases_of(&s), 3, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "Case 3");
    CHECK(out[0].mean == 7);
    study_free(&s);
    rcn_context_destroy(ctx);
}

static rcn_status resample(rcn_context *ctx, void *payload) {
    rcn_spread out[RCN_FIGURES];
    out[0].mean = -1;
    const rcn_status status = rcn_bootstrap(out, ctx, cases_of(payload), CASES, NULL);
    CHECK((status == RCN_OK) == (out[0].mean != -1));
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
    RUN(draws);
    RUN(seeds_and_threads);
    RUN(one_case_and_bad_input);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
