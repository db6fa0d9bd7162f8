// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_interval.h"

#include "rcn_test_study.h"

/* Student's t, two-sided 95 %, from tables. */
static const double T29 = 2.045230, T4 = 2.776445, T9 = 2.262157;

static void compute(rcn_interval *out, rcn_context *ctx, const study *first, const study *second,
                    int64_t count) {
    CHECK_STATUS(rcn_interval_compute(out, ctx, cases_of(first), second ? cases_of(second) : NULL,
                                      1, count, NULL),
                 RCN_OK);
}

/* The signed error is a mean of cases of one size: its interval is the one of textbooks. */
static void mean_of_cases(void) {
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
        squares += f[RCN_SIGNED] * f[RCN_SIGNED];
    }
    const double error = sqrt((squares - CASES * mean * mean) / (CASES * (CASES - 1.0)));
    rcn_interval out[RCN_FIGURES];
    compute(out, ctx, &s, NULL, CASES);
    rcn_calib_figures(f, all);
    for (int i = 0; i < RCN_FIGURES; ++i) {
        if (isnan(f[i])) {
            CHECK(isnan(out[i].value) && out[i].units == 0 && isnan(out[i].low));
            continue;
        }
        CHECK_NEAR(out[i].value, f[i], 1e-12);
        CHECK(out[i].units == CASES && isnan(out[i].p_value));
        CHECK(out[i].low <= out[i].value && out[i].value <= out[i].high);
    }
    CHECK_NEAR(out[RCN_SIGNED].error, error, 1e-12);
    CHECK_NEAR(out[RCN_SIGNED].low, mean - T29 * error, 1e-7);
    CHECK_NEAR(out[RCN_SIGNED].high, mean + T29 * error, 1e-7);
    compute(out, ctx, &s, NULL, 5);
    CHECK_NEAR(out[RCN_SIGNED].high - out[RCN_SIGNED].low, 2 * T4 * out[RCN_SIGNED].error, 1e-7);
    rcn_calib_destroy(all);
    study_free(&s);
    rcn_context_destroy(ctx);
}

/* Few cases that are off in all directions: the value is above what it estimates, draws of them
 * even more, and percentiles of draws leave the value itself out. */
static void holds_its_own_value(void) {
    rcn_context *ctx = make_context(1);
    for (uint32_t seed = 1; seed <= 40; ++seed) {
        study a, b;
        rcn_interval out[RCN_FIGURES];
        study_make(&a, ctx, 0.0, seed);
        study_make(&b, ctx, 0.02, seed + 100);
        compute(out, ctx, &a, NULL, 5 + seed % 6);
        for (int f = 0; f < RCN_FIGURES; ++f)
            CHECK(isnan(out[f].value) || !out[f].units ||
                  (out[f].low <= out[f].value && out[f].value <= out[f].high));
        CHECK(out[RCN_MR_ECE].units && out[RCN_LEVEL_NLL].units);
        /* Without one of five cases there is none. */
        CHECK((out[RCN_MR_ECE_DEBIASED].units > 0) == (seed % 6 > 0));
        CHECK(out[RCN_MR_ECE].low >= 0 && out[RCN_AUC_HISTOGRAM].high <= 1);
        compute(out, ctx, &a, &b, 5 + seed % 6);
        CHECK(out[RCN_MR_ECE].low <= out[RCN_MR_ECE].value);
        CHECK((out[RCN_MR_ECE].p_value < 0.05) ==
              (out[RCN_MR_ECE].low > 0 || out[RCN_MR_ECE].high < 0));
        study_free(&a);
        study_free(&b);
    }
    rcn_context_destroy(ctx);
}

/* Cases of one patient are left out together: copies of a case are no further evidence. */
static void patients(void) {
    rcn_context *ctx = make_context(2);
    study s;
    study_make(&s, ctx, 0.1, 7);
    const rcn_calib *copies[20];
    int patient[20];
    for (int i = 0; i < 20; ++i) {
        copies[i] = s.cases[i / 2];
        patient[i] = 100 - i / 2;
    }
    rcn_interval once[RCN_FIGURES], twice[RCN_FIGURES], naive[RCN_FIGURES];
    rcn_interval_options options = RCN_INTERVAL_OPTIONS_INIT;
    compute(once, ctx, &s, NULL, 10);
    CHECK_STATUS(rcn_interval_compute(naive, ctx, copies, NULL, 1, 20, NULL), RCN_OK);
    options.patients = patient;
    CHECK_STATUS(rcn_interval_compute(twice, ctx, copies, NULL, 1, 20, &options), RCN_OK);
    CHECK(twice[RCN_MR_ECE].units == 10 && naive[RCN_MR_ECE].units == 20);
    for (int f = 0; f < RCN_FIGURES; ++f) {
        /* The debiased figure takes cases for independent. */
        if (isnan(once[f].value) || f == RCN_MR_ECE_DEBIASED) continue;
        CHECK_NEAR(twice[f].low, once[f].low, 1e-9);
        CHECK_NEAR(twice[f].high, once[f].high, 1e-9);
    }
    CHECK(naive[RCN_SIGNED].error < 0.8 * twice[RCN_SIGNED].error);
    double low[15], high[15], low_once[15], high_once[15];
    CHECK_STATUS(rcn_interval_bins(low, high, ctx, copies, 20, 0, &options), RCN_OK);
    CHECK_STATUS(rcn_interval_bins(low_once, high_once, ctx, cases_of(&s), 10, 0, NULL), RCN_OK);
    for (int b = 0; b < 15; ++b) {
        CHECK_NEAR(low[b], low_once[b], 1e-9);
        CHECK_NEAR(high[b], high_once[b], 1e-9);
    }
    study_free(&s);
    rcn_context_destroy(ctx);
}

/* A case without any mark has no Dice and is no evidence of it. */
static void empty_cases(void) {
    rcn_context *ctx = make_context(1);
    study s;
    study_make(&s, ctx, 0.1, 8);
    uint8_t marks[N];
    float p[N];
    memset(marks, 0, sizeof marks);
    memset(p, 0, sizeof p);
    rcn_mask mask = {{marks, RCN_UINT8, 1, rcn_geometry_make(N, 1, 1)}, 0, NULL, 0, NULL};
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    const rcn_calib_case nothing = {
        votes, {p, RCN_FLOAT32, 1, rcn_geometry_make(N, 1, 1)}, NULL, NULL};
    double dice = 0, f[RCN_FIGURES];
    rcn_interval full[RCN_FIGURES], out[RCN_FIGURES];
    compute(full, ctx, &s, NULL, 10);
    for (int c = 0; c < 10; ++c) {
        rcn_calib_figures(f, s.cases[c]);
        CHECK(f[RCN_DICE] == f[RCN_DICE_POOLED]);
        dice += f[RCN_DICE] / 10;
    }
    CHECK_NEAR(full[RCN_DICE].value, dice, 1e-12);
    CHECK(fabs(full[RCN_DICE].value - full[RCN_DICE_POOLED].value) > 1e-9);
    CHECK_NEAR(full[RCN_DICE].high, fmin(1, dice + T9 * full[RCN_DICE].error), 1e-3);
    for (int c = 10; c < 14; ++c) {
        rcn_calib_destroy(s.cases[c]);
        CHECK_STATUS(rcn_calib_create(&s.cases[c], ctx, 1, NULL), RCN_OK);
        CHECK_STATUS(rcn_calib_add(s.cases[c], ctx, &nothing), RCN_OK);
        rcn_calib_figures(f, s.cases[c]);
        CHECK(isnan(f[RCN_DICE]) && isnan(f[RCN_DICE_POOLED]) && f[RCN_MR_ECE] == 0);
    }
    compute(out, ctx, &s, NULL, 14);
    CHECK(out[RCN_DICE].units == 10 && out[RCN_MR_ECE].units == 14);
    CHECK(out[RCN_DICE].value == full[RCN_DICE].value && out[RCN_DICE].low == full[RCN_DICE].low);
    CHECK(out[RCN_DICE_POOLED].units == 10);
    CHECK(out[RCN_DICE_POOLED].low == full[RCN_DICE_POOLED].low);
    /* Nor is a case without a reference evidence of what is measured against it. */
    uint8_t none[2] = {RCN_NO_REFERENCE, RCN_NO_REFERENCE};
    rcn_calib_case unanswered = nothing;
    unanswered.reference = none;
    CHECK(rcn_votes_pattern_count(votes) <= 2);
    for (int c = 4; c < 14; ++c) {
        rcn_calib_destroy(s.cases[c]);
        CHECK_STATUS(rcn_calib_create(&s.cases[c], ctx, 1, NULL), RCN_OK);
        CHECK_STATUS(rcn_calib_add(s.cases[c], ctx, &unanswered), RCN_OK);
    }
    compute(out, ctx, &s, NULL, 14);
    CHECK(out[RCN_MR_ECE].units == 14 && isfinite(out[RCN_ECE].value));
    for (int i = 0; i < RCN_FIGURES; ++i)
        if (i == RCN_ECE || i == RCN_ECE_FOREGROUND || i == RCN_AUC_HISTOGRAM || i == RCN_DICE ||
            i == RCN_DICE_POOLED)
            CHECK(out[i].units == 0 && isnan(out[i].low));
    rcn_votes_destroy(votes);
    study_free(&s);
    rcn_context_destroy(ctx);
}

/* A model against itself is no different; a worse one is, and in the other order it is better. */
static void differences(void) {
    rcn_context *ctx = make_context(2);
    study good, bad;
    study_make(&good, ctx, 0.05, 3);
    study_make(&bad, ctx, 0.2, 4);
    rcn_interval out[RCN_FIGURES], back[RCN_FIGURES];
    compute(out, ctx, &good, &good, CASES);
    CHECK(out[RCN_MR_ECE].value == 0 && out[RCN_MR_ECE].high == 0 && out[RCN_MR_ECE].p_value == 1);
    compute(out, ctx, &bad, &good, CASES);
    compute(back, ctx, &good, &bad, CASES);
    CHECK(out[RCN_MR_ECE].low > 0 && out[RCN_MR_ECE].p_value < 1e-6);
    CHECK_NEAR(out[RCN_MR_ECE].value, -back[RCN_MR_ECE].value, 1e-15);
    CHECK_NEAR(out[RCN_MR_ECE].low, -back[RCN_MR_ECE].high, 1e-12);
    CHECK_NEAR(out[RCN_MR_ECE].p_value, back[RCN_MR_ECE].p_value, 1e-12);
    study_free(&good);
    study_free(&bad);
    rcn_context_destroy(ctx);
}

/* Trainings that differ make a figure less sure; trainings that do not change nothing. */
static void runs(void) {
    rcn_context *ctx = make_context(2);
    study s[3];
    for (int i = 0; i < 3; ++i) study_make(&s[i], ctx, 0.05 + 0.08 * i, 9);
    const rcn_calib *same[3 * CASES], *other[3 * CASES];
    for (int i = 0; i < 3 * CASES; ++i) {
        same[i] = s[0].cases[i % CASES];
        other[i] = s[i / CASES].cases[i % CASES];
    }
    rcn_interval one[RCN_FIGURES], equal[RCN_FIGURES], apart[RCN_FIGURES], alone[3][RCN_FIGURES];
    compute(one, ctx, &s[0], NULL, CASES);
    for (int i = 0; i < 3; ++i) compute(alone[i], ctx, &s[i], NULL, CASES);
    CHECK_STATUS(rcn_interval_compute(equal, ctx, same, NULL, 3, CASES, NULL), RCN_OK);
    CHECK_STATUS(rcn_interval_compute(apart, ctx, other, NULL, 3, CASES, NULL), RCN_OK);
    CHECK_NEAR(equal[RCN_MR_ECE].value, one[RCN_MR_ECE].value, 1e-12);
    CHECK_NEAR(equal[RCN_MR_ECE].low, one[RCN_MR_ECE].low, 1e-9);
    double mean = 0, squares = 0;
    for (int i = 0; i < 3; ++i) mean += alone[i][RCN_SIGNED].value / 3;
    for (int i = 0; i < 3; ++i) squares += pow(alone[i][RCN_SIGNED].value - mean, 2);
    CHECK_NEAR(apart[RCN_SIGNED].value, mean, 1e-12);
    CHECK(apart[RCN_SIGNED].error > sqrt(squares / 6)); /* that of the runs alone */
    /* About two degrees of freedom: t is 4.30. */
    CHECK(apart[RCN_SIGNED].high - mean > 4 * apart[RCN_SIGNED].error);
    CHECK(apart[RCN_SIGNED].high - mean < 4.31 * apart[RCN_SIGNED].error);
    for (int i = 0; i < 3; ++i) study_free(&s[i]);
    rcn_context_destroy(ctx);
}

static void threads(void) {
    rcn_context *one = make_context(1), *three = make_context(3);
    study s;
    study_make(&s, one, 0.1, 2);
    rcn_interval a[RCN_FIGURES], b[RCN_FIGURES];
    compute(a, one, &s, NULL, CASES);
    compute(b, three, &s, NULL, CASES);
    for (int i = 0; i < RCN_FIGURES; ++i)
        CHECK(!memcmp(&a[i].low, &b[i].low, sizeof a[i].low) && a[i].units == b[i].units &&
              !memcmp(&a[i].high, &b[i].high, sizeof a[i].high));
    study_free(&s);
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

/* The band holds the merged frequency, narrows with the cases, and is absent with four. */
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
    CHECK_STATUS(rcn_interval_bins(low, high, ctx, cases_of(&s), CASES, 0, NULL), RCN_OK);
    CHECK_STATUS(rcn_interval_bins(few_low, few_high, ctx, cases_of(&s), 6, 0, NULL), RCN_OK);
    for (int b = 0; b < 15; ++b) {
        CHECK(low[b] <= bins[b].frequency + 1e-12 && bins[b].frequency <= high[b] + 1e-12);
        narrow += high[b] - low[b];
        wide += few_high[b] - few_low[b];
    }
    CHECK(narrow > 0 && narrow < wide);
    CHECK_STATUS(rcn_interval_bins(low, high, ctx, cases_of(&s), 4, 0, NULL), RCN_OK);
    for (int b = 0; b < 15; ++b) CHECK(isnan(low[b]) && isnan(high[b]));
    CHECK_STATUS(rcn_interval_bins(low, NULL, ctx, cases_of(&s), CASES, 0, NULL), RCN_EINVALID);
    int countdown = 0;
    rcn_context_set_progress(ctx, cancel_after, &countdown);
    low[0] = 7;
    CHECK_STATUS(rcn_interval_bins(low, high, ctx, cases_of(&s), CASES, 0, NULL), RCN_ECANCELLED);
    CHECK(low[0] == 7);
    rcn_context_set_progress(ctx, NULL, NULL);
    rcn_calib_destroy(all);
    study_free(&s);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void few_cases_and_bad_input(void) {
    rcn_context *ctx = make_context(1);
    study s;
    study_make(&s, ctx, 0.1, 5);
    rcn_interval out[RCN_FIGURES];
    for (int64_t count = 1; count < RCN_INTERVAL_UNITS; ++count) {
        compute(out, ctx, &s, NULL, count);
        CHECK(out[RCN_MR_ECE].value > 0 && out[RCN_MR_ECE].units == 0);
        CHECK(isnan(out[RCN_MR_ECE].low) && isnan(out[RCN_MR_ECE].error));
    }
    compute(out, ctx, &s, NULL, RCN_INTERVAL_UNITS);
    CHECK(out[RCN_MR_ECE].units == RCN_INTERVAL_UNITS);
    out[0].value = 7;
    rcn_interval_options options = RCN_INTERVAL_OPTIONS_INIT;
    options.level = 1;
    CHECK(rcn_interval_check(&options) != NULL && rcn_interval_check(NULL) == NULL);
    CHECK_STATUS(rcn_interval_compute(out, ctx, cases_of(&s), NULL, 1, 6, &options), RCN_EINVALID);
    CHECK_STATUS(rcn_interval_compute(out, ctx, cases_of(&s), NULL, 1, 0, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_interval_compute(out, ctx, cases_of(&s), NULL, 0, 6, NULL), RCN_EINVALID);
    rcn_calib_destroy(s.cases[2]);
    CHECK_STATUS(rcn_calib_create(&s.cases[2], ctx, 2, NULL), RCN_OK);
    CHECK_STATUS(rcn_interval_compute(out, ctx, cases_of(&s), NULL, 1, 6, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "Case 3");
    CHECK(out[0].value == 7);
    study_free(&s);
    rcn_context_destroy(ctx);
}

static rcn_status leave_out(rcn_context *ctx, void *payload) {
    rcn_interval out[RCN_FIGURES];
    out[0].value = -1;
    const rcn_status status =
        rcn_interval_compute(out, ctx, cases_of(payload), cases_of(payload), 1, CASES, NULL);
    CHECK((status == RCN_OK) == (out[0].value != -1));
    return status;
}

static rcn_status take_mean(rcn_context *ctx, void *payload) {
    rcn_interval out;
    out.value = -1;
    const rcn_status status = rcn_interval_mean(&out, ctx, payload, NULL, 6, RCN_MEAN_SHARE, NULL);
    CHECK((status == RCN_OK) == (out.value != -1));
    return status;
}

static void failing_allocations_and_cancel(void) {
    rcn_context *owner = make_context(1);
    study s;
    study_make(&s, owner, 0.1, 6);
    check_failing_allocations(leave_out, &s);
    check_cancelling(leave_out, &s, 2);
    double values[6] = {0.3, 0.7, 0.4, 0.6, 0.2, 0.8};
    check_failing_allocations(take_mean, values);
    study_free(&s);
    rcn_context_destroy(owner);
}

/* The mean of a figure that every case has: the interval of textbooks where nothing bends it. */
static void mean_of_values(void) {
    rcn_context *ctx = make_context(1);
    const double x[7] = {0.3, NAN, 0.7, 0.4, 0.6, 0.2, 0.8}; /* six values: mean 0.5 */
    const double twice[7] = {0.6, NAN, 1.4, 0.8, 1.2, 0.4, 1.6};
    const double two[7] = {2, NAN, 2, 2, 2, 2, 2};
    const double error = sqrt(0.28 / 30), t5 = 2.570582;
    rcn_interval out, other;
    CHECK_STATUS(rcn_interval_mean(&out, ctx, x, NULL, 7, RCN_MEAN_DIFFERENCE, NULL), RCN_OK);
    CHECK_NEAR(out.value, 0.5, 1e-12);
    CHECK_NEAR(out.error, error, 1e-12);
    CHECK_NEAR(out.low, 0.5 - t5 * error, 1e-7);
    CHECK_NEAR(out.high, 0.5 + t5 * error, 1e-7);
    CHECK(out.units == 6 && out.p_value > 0.003 && out.p_value < 0.004); /* t = 5.175 */
    CHECK_STATUS(rcn_interval_mean(&other, ctx, twice, two, 7, RCN_MEAN_DIFFERENCE, NULL), RCN_OK);
    CHECK_NEAR(other.low, out.low, 1e-12);
    CHECK_NEAR(other.high, out.high, 1e-12);
    const double difference = out.high - out.low;
    /* Other kinds reach at least as far, inside what a figure can be, and have no p-value. */
    for (int kind = RCN_MEAN_SHARE; kind < RCN_MEAN_DIFFERENCE; ++kind) {
        CHECK_STATUS(rcn_interval_mean(&other, ctx, x, NULL, 7, (rcn_mean_kind)kind, NULL), RCN_OK);
        CHECK(other.value == out.value && other.units == 6 && isnan(other.p_value));
        CHECK_NEAR(other.error, error, 1e-12);
        CHECK(other.low <= out.low + 1e-12 && other.high >= out.high - 1e-12);
        CHECK(other.high - other.low < 1.5 * difference);
    }
    /* A skewed difference reaches farther to the side of the rare value; its p-value is the plain
     * one. By hand: mean 4.1667, error 3.1667, skewness 4 / sqrt(5) of six values. */
    const double far[6] = {1, 1, 1, 1, 1, 20};
    const double shift = 4 / sqrt(5) * 19.0 / 6 * (1 + 2 * t5 * t5) / (6 * sqrt(6));
    CHECK_STATUS(rcn_interval_mean(&other, ctx, far, NULL, 6, RCN_MEAN_DIFFERENCE, NULL), RCN_OK);
    CHECK_NEAR(other.error, 19.0 / 6, 1e-12);
    CHECK_NEAR(other.low, 25.0 / 6 - t5 * 19 / 6, 1e-5);
    CHECK_NEAR(other.high, 25.0 / 6 + t5 * 19 / 6 + shift, 1e-5);
    CHECK(other.p_value > 0.24 && other.p_value < 0.25); /* t = 1.3158 */
    /* Weights 1, 1, 1, 1, 1, 5 are worth 100 / 30 equal ones: t of 7/3 degrees of freedom. */
    const double heavy[6] = {1, 1, 1, 1, 1, 5}, values[6] = {0.5, -0.5, 0.3, -0.3, 0.1, 0.4};
    CHECK_STATUS(rcn_interval_mean(&other, ctx, values, heavy, 6, RCN_MEAN_DIFFERENCE, NULL),
                 RCN_OK);
    CHECK_NEAR(other.value, 0.05, 1e-12);
    CHECK(other.high - other.low > 2 * 3.7 * other.error);
    /* A rare large value: the upper end is farther away, and the lower one is not below zero. */
    CHECK_STATUS(rcn_interval_mean(&other, ctx, far, NULL, 6, RCN_MEAN_AMOUNT, NULL), RCN_OK);
    CHECK(other.low >= 0 && other.high - other.value > other.value - other.low);
    const double kappas[5] = {0.9, 1, 1, 0.95, 1};
    CHECK_STATUS(rcn_interval_mean(&other, ctx, kappas, NULL, 5, RCN_MEAN_KAPPA, NULL), RCN_OK);
    CHECK(other.low < 0.97 && other.low > 0.8 && other.high <= 1 && other.high >= other.value);
    rcn_context_destroy(ctx);
}

/* Patients are left out as a whole; fewer than five have no interval; nothing has no mean. */
static void mean_of_patients(void) {
    rcn_context *ctx = make_context(1);
    const double x[10] = {0.3, 0.3, 0.7, 0.7, 0.4, 0.4, 0.6, 0.6, 0.2, 0.2};
    const double half[5] = {0.3, 0.7, 0.4, 0.6, 0.2};
    const double none[5] = {NAN, NAN, NAN, NAN, NAN}, zero[5] = {0, 0, 0, 0, 0};
    const int patient[10] = {3, 3, 9, 9, 4, 4, 1, 1, 0, 0};
    rcn_interval_options options = {0.95, patient};
    rcn_interval once, twice, out;
    CHECK_STATUS(rcn_interval_mean(&once, ctx, half, NULL, 5, RCN_MEAN_SHARE, NULL), RCN_OK);
    CHECK_STATUS(rcn_interval_mean(&twice, ctx, x, NULL, 10, RCN_MEAN_SHARE, &options), RCN_OK);
    CHECK(once.units == 5 && twice.units == 5);
    CHECK_NEAR(twice.low, once.low, 1e-9);
    CHECK_NEAR(twice.high, once.high, 1e-9);
    CHECK_STATUS(rcn_interval_mean(&out, ctx, half, NULL, 4, RCN_MEAN_SHARE, NULL), RCN_OK);
    CHECK(out.value == 0.5 && out.units == 0 && isnan(out.low) && isnan(out.error));
    CHECK_STATUS(rcn_interval_mean(&out, ctx, none, NULL, 5, RCN_MEAN_SHARE, NULL), RCN_OK);
    CHECK(isnan(out.value) && out.units == 0);
    CHECK_STATUS(rcn_interval_mean(&out, ctx, half, zero, 5, RCN_MEAN_DIFFERENCE, NULL), RCN_OK);
    CHECK(isnan(out.value) && out.units == 0);
    CHECK_STATUS(rcn_interval_mean(&out, ctx, zero, NULL, 5, RCN_MEAN_AMOUNT, NULL), RCN_OK);
    CHECK(out.value == 0 && out.low == 0 && out.high == 0);
    out.value = 7;
    CHECK_STATUS(rcn_interval_mean(&out, ctx, half, NULL, 0, RCN_MEAN_SHARE, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_interval_mean(&out, ctx, NULL, NULL, 5, RCN_MEAN_SHARE, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_interval_mean(&out, ctx, half, NULL, 5, (rcn_mean_kind)9, NULL), RCN_EINVALID);
    /* Whatever the patients' numbers are and in whatever order. */
    enum { MANY = 60 };
    double many[MANY];
    int ordered[MANY], scattered[MANY];
    uint32_t state = 7;
    for (int i = 0; i < MANY; ++i) {
        state = state * 1664525u + 1013904223u;
        many[i] = state / 4294967296.0;
        ordered[i] = i * i % 17;
        scattered[i] = (ordered[i] * 7919 % 101 - 50) * 1000;
    }
    const rcn_interval_options first = {0.95, ordered}, second = {0.95, scattered};
    CHECK_STATUS(rcn_interval_mean(&once, ctx, many, NULL, MANY, RCN_MEAN_KAPPA, &first), RCN_OK);
    CHECK_STATUS(rcn_interval_mean(&twice, ctx, many, NULL, MANY, RCN_MEAN_KAPPA, &second), RCN_OK);
    CHECK(once.units == 9 && twice.units == 9); /* squares modulo 17 */
    CHECK(once.low == twice.low && once.high == twice.high && once.error == twice.error);
    out.value = 7;
    options.level = 1;
    CHECK_STATUS(rcn_interval_mean(&out, ctx, x, NULL, 10, RCN_MEAN_SHARE, &options), RCN_EINVALID);
    CHECK(out.value == 7);
    rcn_context_destroy(ctx);
}

static void holm(void) {
    double p[6] = {0.04, NAN, 0.01, 0.9, 0.01, 0};
    rcn_holm(p, 6); /* times 2, -, 4, 1, 3, 5, and never below a smaller one's */
    CHECK_NEAR(p[0], 0.08, 1e-15);
    CHECK(isnan(p[1]));
    CHECK_NEAR(p[2], 0.04, 1e-15);
    CHECK_NEAR(p[3], 0.9, 1e-15);
    CHECK_NEAR(p[4], 0.04, 1e-15);
    CHECK(p[5] == 0);
    rcn_holm(p, 0);
}

int main(void) {
    RUN(mean_of_cases);
    RUN(holds_its_own_value);
    RUN(patients);
    RUN(empty_cases);
    RUN(differences);
    RUN(runs);
    RUN(threads);
    RUN(band);
    RUN(few_cases_and_bad_input);
    RUN(mean_of_values);
    RUN(mean_of_patients);
    RUN(holm);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
