// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_bootstrap.h"
#include "rcn/rcn_calib.h"
#include "rcn/rcn_interval.h"
#include "rcn/rcn_recalib.h"

#include "rcn_calib_private.h"
#include "rcn_test.h"

enum { SIDE = 32, VOXELS = SIDE * SIDE * 8, RATERS = 3, CASES = 6 };

static uint32_t next_random(uint32_t *s) {
    *s = 1664525u * *s + 1013904223u;
    return *s >> 8;
}

/* What a network says about a ball: sure in most places, by a smooth function in the others; three
 * raters who draw it a little differently, and with `is_void` leave voxels out. */
static rcn_calib *ball(rcn_context *ctx, int number, int is_void) {
    static const int64_t unanswered = 9;
    static uint8_t marks[RATERS][VOXELS];
    static float p[VOXELS];
    rcn_mask masks[RATERS];
    rcn_votes *votes = NULL;
    rcn_calib *calib = NULL;
    uint32_t s = (uint32_t)number + 1;
    for (int i = 0; i < VOXELS; ++i) {
        const double x = i % SIDE - 15.5, y = i / SIDE % SIDE - 15.5, z = 2 * (i / SIDE / SIDE - 4);
        const double off = sqrt(x * x + y * y + z * z) - 5 - number % 4;
        p[i] = (float)(1 / (1 + exp(1.5 * off + next_random(&s) / 16777216.0)));
        for (int r = 0; r < RATERS; ++r) {
            marks[r][i] = off + 2 * (next_random(&s) / 16777216.0) - 1 < 0;
            if (is_void && (r + i / 97) % 3 == 0) marks[r][i] = 9;
        }
    }
    p[0] = 0;
    p[1] = 1;
    for (int r = 0; r < RATERS; ++r) {
        const rcn_mask mask = {{marks[r], RCN_UINT8, 1, rcn_geometry_make(SIDE, SIDE, 8)},
                               0,
                               NULL,
                               0,
                               is_void ? &unanswered : NULL};
        masks[r] = mask;
    }
    rcn_status status = rcn_votes_from_masks(&votes, ctx, masks, RATERS);
    const rcn_calib_case one_case = {
        votes, {p, RCN_FLOAT32, 1, rcn_geometry_make(SIDE, SIDE, 8)}, NULL, NULL};
    if (status == RCN_OK) status = rcn_calib_create(&calib, ctx, RATERS, NULL);
    if (status == RCN_OK) status = rcn_calib_add(calib, ctx, &one_case);
    rcn_votes_destroy(votes);
    if (status == RCN_OK) return calib;
    rcn_calib_destroy(calib);
    return NULL;
}

/* Bytes, so that a NaN is a NaN and a zero has its sign. */
#define CHECK_SAME(a, b) CHECK(!memcmp(&(a), &(b), sizeof(a)))

/* Each field for itself: between fields there may be bytes that mean nothing. */
static void check_bins(const rcn_calib_bin *a, const rcn_calib_bin *b, int count) {
    for (int i = 0; i < count; ++i) {
        CHECK_SAME(a[i].lower, b[i].lower);
        CHECK_SAME(a[i].upper, b[i].upper);
        CHECK_SAME(a[i].count, b[i].count);
        CHECK_SAME(a[i].confidence, b[i].confidence);
        CHECK_SAME(a[i].frequency, b[i].frequency);
    }
}

/* All that is known about sums is the same. */
static void check_same(rcn_context *ctx, const rcn_calib *a, const rcn_calib *b) {
    double f[RCN_FIGURES], g[RCN_FIGURES];
    rcn_calib_bin bins[2][15];
    rcn_calib_figures(f, a);
    rcn_calib_figures(g, b);
    CHECK_SAME(f, g);
    CHECK(rcn_calib_voxels(a) == rcn_calib_voxels(b) && rcn_calib_pairs(a) == rcn_calib_pairs(b));
    static const rcn_binning binnings[] = {RCN_BINS_WIDTH, RCN_BINS_MASS};
    for (int i = 0; i < 2; ++i) {
        rcn_calib_bins(bins[0], a, binnings[i]);
        rcn_calib_bins(bins[1], b, binnings[i]);
        check_bins(bins[0], bins[1], 15);
    }
    for (int r = 0; r < RATERS; ++r) {
        const double ece[2] = {rcn_calib_rater_ece(a, r), rcn_calib_rater_ece(b, r)};
        const double brier[2] = {rcn_calib_rater_brier(a, r), rcn_calib_rater_brier(b, r)};
        CHECK_SAME(ece[0], ece[1]);
        CHECK_SAME(brier[0], brier[1]);
        rcn_calib_rater_bins(bins[0], a, r);
        rcn_calib_rater_bins(bins[1], b, r);
        check_bins(bins[0], bins[1], 15);
        rcn_calib_level_bins(bins[0], a, r + 1);
        rcn_calib_level_bins(bins[1], b, r + 1);
        check_bins(bins[0], bins[1], 15);
    }
    const rcn_brier brier[2] = {rcn_calib_brier(a), rcn_calib_brier(b)};
    rcn_kde kde[2];
    CHECK_STATUS(rcn_calib_kde(&kde[0], ctx, &a, 1), RCN_OK);
    CHECK_STATUS(rcn_calib_kde(&kde[1], ctx, &b, 1), RCN_OK);
    CHECK_SAME(brier[0].remainder, brier[1].remainder);
    CHECK_SAME(kde[0].ece, kde[1].ece);
    CHECK_SAME(kde[0].bandwidth, kde[1].bandwidth);
    for (int m = 0; rcn_recalib_name((rcn_recalib_method)m); ++m) {
        rcn_recalib fits[2];
        memset(fits, 0, sizeof fits);
        CHECK_STATUS(rcn_recalib_fit(&fits[0], ctx, (rcn_recalib_method)m, a), RCN_OK);
        CHECK_STATUS(rcn_recalib_fit(&fits[1], ctx, (rcn_recalib_method)m, b), RCN_OK);
        CHECK_SAME(fits[0], fits[1]);
    }
}

static rcn_calib *packed_copy(rcn_context *ctx, const rcn_calib *calib) {
    rcn_calib *copy = NULL;
    CHECK_STATUS(rcn_calib_copy(&copy, ctx, calib), RCN_OK);
    CHECK_STATUS(rcn_calib_pack(copy, ctx), RCN_OK);
    return copy;
}

static void packed_is_unpacked(void) {
    rcn_context *ctx = make_context(2);
    for (int is_void = 0; is_void < 2; ++is_void) {
        rcn_calib *plain = ball(ctx, 1, is_void), *packed = packed_copy(ctx, plain), *copy = NULL;
        check_same(ctx, plain, packed);
        CHECK(rcn__calib_bytes(plain) > 250000);
        CHECK(rcn__calib_bytes(packed) < 24000); /* typical: it has 8192 voxels in 1500 cells */
        const int64_t bytes = rcn__calib_bytes(packed);
        CHECK_STATUS(rcn_calib_pack(packed, ctx), RCN_OK); /* again: nothing happens */
        CHECK(rcn__calib_bytes(packed) == bytes);

        /* A copy, sums that are added to, and those that are shared are as large as ever. */
        CHECK_STATUS(rcn_calib_copy(&copy, ctx, packed), RCN_OK);
        CHECK(rcn__calib_bytes(copy) == rcn__calib_bytes(plain));
        CHECK(!memcmp(copy->sums, plain->sums, sizeof *copy->sums * (size_t)copy->length));
        rcn_calib *other = ball(ctx, 2, is_void), *small = packed_copy(ctx, other);
        CHECK_STATUS(rcn_calib_merge(copy, ctx, small), RCN_OK);
        CHECK_STATUS(rcn_calib_merge(packed, ctx, small), RCN_OK);
        CHECK_STATUS(rcn_calib_merge(plain, ctx, other), RCN_OK);
        CHECK_STATUS(rcn_calib_share(small, ctx, NULL), RCN_OK);
        for (int64_t i = 0; i < plain->length; ++i) {
            CHECK_SAME(copy->sums[i], plain->sums[i]);
            CHECK_SAME(packed->sums[i], plain->sums[i]);
            CHECK_SAME(small->sums[i], other->sums[i]);
        }
        rcn_calib_destroy(small);
        rcn_calib_destroy(other);
        rcn_calib_destroy(copy);
        rcn_calib_destroy(packed);
        rcn_calib_destroy(plain);
    }
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* From a voxel to more than there ever are, where numbers of few bytes no longer hold a sum. */
static void few_and_many(void) {
    rcn_context *ctx = make_context(1);
    rcn_calib *plain = ball(ctx, 3, 1), *none = NULL;
    for (int doubled = 0; doubled < 36; ++doubled) {
        rcn_calib *packed = packed_copy(ctx, plain), *copy = NULL;
        CHECK_STATUS(rcn_calib_copy(&copy, ctx, packed), RCN_OK);
        CHECK(!memcmp(copy->sums, plain->sums, sizeof *copy->sums * (size_t)copy->length));
        CHECK_STATUS(rcn_calib_merge(plain, ctx, packed), RCN_OK);
        rcn_calib_destroy(copy);
        rcn_calib_destroy(packed);
    }
    CHECK_STATUS(rcn_calib_create(&none, ctx, RATERS, NULL), RCN_OK);
    rcn_calib *packed = packed_copy(ctx, none);
    double f[RCN_FIGURES], g[RCN_FIGURES];
    rcn_calib_figures(f, none);
    rcn_calib_figures(g, packed);
    CHECK_SAME(f, g);
    rcn_calib_bin bins[2][15];
    rcn_calib_bins(bins[0], none, RCN_BINS_MASS);
    rcn_calib_bins(bins[1], packed, RCN_BINS_MASS);
    check_bins(bins[0], bins[1], 15);
    rcn_calib_destroy(packed);
    rcn_calib_destroy(none);
    rcn_calib_destroy(plain);
    rcn_context_destroy(ctx);
}

/* Intervals, bands and draws of packed cases, also where some are packed and some are not. */
static void intervals_and_draws(void) {
    rcn_context *ctx = make_context(2);
    const rcn_calib *plain[CASES], *packed[CASES];
    rcn_interval intervals[2][RCN_FIGURES];
    rcn_spread spreads[2][RCN_FIGURES];
    double low[2][15], high[2][15];
    rcn_bootstrap_options draws = RCN_BOOTSTRAP_OPTIONS_INIT;
    draws.draws = 70; /* more than are made side by side */
    for (int i = 0; i < CASES; ++i) {
        plain[i] = ball(ctx, i, i == 2);
        packed[i] = packed_copy(ctx, plain[i]);
    }
    for (int mixed = 0; mixed < 2; ++mixed) {
        const rcn_calib *cases[CASES];
        for (int i = 0; i < CASES; ++i) cases[i] = mixed && i % 2 ? plain[i] : packed[i];
        const rcn_calib *const *both[2] = {plain, cases};
        for (int k = 0; k < 2; ++k) {
            CHECK_STATUS(rcn_interval_compute(intervals[k], ctx, both[k], NULL, 1, CASES, NULL),
                         RCN_OK);
            CHECK_STATUS(rcn_interval_bins(low[k], high[k], ctx, both[k], CASES, 0, NULL), RCN_OK);
            CHECK_STATUS(rcn_bootstrap(spreads[k], ctx, both[k], CASES, &draws), RCN_OK);
        }
        for (int f = 0; f < RCN_FIGURES; ++f) {
            CHECK_SAME(intervals[0][f].value, intervals[1][f].value);
            CHECK_SAME(intervals[0][f].low, intervals[1][f].low);
            CHECK_SAME(intervals[0][f].high, intervals[1][f].high);
            CHECK_SAME(spreads[0][f].mean, spreads[1][f].mean);
            CHECK_SAME(spreads[0][f].std, spreads[1][f].std);
            CHECK(spreads[0][f].draws == spreads[1][f].draws);
        }
        CHECK_SAME(low[0], low[1]);
        CHECK_SAME(high[0], high[1]);
    }
    for (int i = 0; i < CASES; ++i) {
        rcn_calib_destroy((rcn_calib *)plain[i]);
        rcn_calib_destroy((rcn_calib *)packed[i]);
    }
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void bad_arguments(void) {
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(rcn_calib_pack(NULL, ctx), RCN_EINVALID);
    CHECK_ERROR(ctx, "sums to pack are NULL");
    CHECK_STATUS(rcn_calib_pack(NULL, NULL), RCN_EINVALID);
    rcn_context_destroy(ctx);
}

static rcn_status pack_and_merge(rcn_context *ctx, void *payload) {
    const rcn_calib *plain = payload;
    rcn_calib *calib = NULL;
    double before[RCN_FIGURES], after[RCN_FIGURES];
    rcn_status status = rcn_calib_copy(&calib, ctx, plain);
    if (status != RCN_OK) return status;
    rcn_calib_figures(before, calib);
    status = rcn_calib_pack(calib, ctx);
    rcn_calib_figures(after, calib);
    CHECK_SAME(before, after);
    CHECK((status == RCN_OK) == (rcn__calib_bytes(calib) < rcn__calib_bytes(plain)));
    if (status == RCN_OK) {
        status = rcn_calib_merge(calib, ctx, plain);
        rcn_calib_figures(after, calib);
        if (status != RCN_OK) CHECK_SAME(before, after);
    }
    rcn_calib_destroy(calib);
    return status;
}

/* The sums belong to one context, and another one is told that there is no memory. */
static void failing_allocations(void) {
    rcn_context *ctx = make_context(1), *owner = NULL;
    rcn_calib *plain = ball(ctx, 1, 0), *calib = NULL;
    check_failing_allocations(pack_and_merge, plain);
    test_memory memory = {0, 0, 0};
    rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
    options.allocator.allocate = test_allocate;
    options.allocator.release = test_release;
    options.allocator.payload = &memory;
    CHECK_STATUS(rcn_context_create(&owner, &options), RCN_OK);
    CHECK_STATUS(rcn_calib_copy(&calib, owner, plain), RCN_OK);
    memory.fail_at = memory.calls + 1;
    CHECK_STATUS(rcn_calib_pack(calib, ctx), RCN_ENOMEM);
    CHECK_ERROR(ctx, "Out of memory");
    check_same(ctx, plain, calib);
    rcn_calib_destroy(calib);
    rcn_calib_destroy(plain);
    CHECK(rcn_context_bytes(owner) == 0 && rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(owner);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(packed_is_unpacked);
    RUN(few_and_many);
    RUN(intervals_and_draws);
    RUN(bad_arguments);
    RUN(failing_allocations);
    return TEST_RESULT;
}
