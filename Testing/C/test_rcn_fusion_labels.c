// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_fusion.h"
#include "rcn_votes_private.h"

#include "rcn_test.h"

/* Votes of raters' label maps [raters][n] with the values 1 ... structures; 9 is no answer, and a
 * map that is NULL did not answer at all. */
static rcn_votes *votes_of(rcn_context *ctx, const uint8_t *const *maps, int raters, int structures,
                           int64_t x, int64_t y, int64_t z) {
    static const int64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, nine = 9;
    static const uint8_t numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const rcn_geometry geometry = rcn_geometry_make(x, y, z);
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, raters, structures), RCN_OK);
    for (int r = 0; r < raters; ++r) {
        if (!maps[r]) continue;
        const rcn_label_map map = {
            {(void *)maps[r], RCN_UINT8, 1, geometry}, 0, values, numbers, structures, &nine};
        CHECK_STATUS(rcn_votes_add_labels(votes, ctx, r, &map, 1, NULL), RCN_OK);
    }
    return votes;
}

static void plurality_by_hand(void) {
    const uint8_t a[8] = {0, 1, 2, 0, 0, 9, 9, 3}, b[8] = {0, 1, 1, 2, 3, 9, 0, 3};
    const uint8_t c[8] = {0, 2, 9, 9, 2, 9, 9, 0}, d[8] = {1, 2, 9, 9, 0, 9, 9, 0};
    const uint8_t *const maps[5] = {a, b, c, NULL, d};
    /* A majority; the lower of two structures; before the background; 0 of 2 against 1 and 1; where
     * nobody answered; one answer; a tie with the background. */
    static const uint8_t expected[8] = {0, 1, 1, 2, 0, 0, 0, 3};
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = votes_of(ctx, maps, 5, 3, 8, 1, 1);
    uint8_t out[8], table[16];
    CHECK_STATUS(rcn_plurality(out, ctx, votes), RCN_OK);
    CHECK(!memcmp(out, expected, sizeof out));
    CHECK(rcn_votes_pattern_count(votes) <= 16);
    CHECK_STATUS(rcn_plurality_patterns(table, ctx, votes), RCN_OK);
    for (int i = 0; i < 8; ++i) {
        uint32_t code;
        rcn__votes_read(&code, votes, i, 1);
        CHECK(table[code] == expected[i]);
    }
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* 8x8x8, a cube of two halves, four raters who err at random. */
static void make_golden_labels(uint8_t raters[4][GOLDEN_VOXELS]) {
    static const double error[4] = {.10, .15, .30, .20};
    uint32_t s = 2024;
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < GOLDEN_VOXELS; ++i) {
            const int x = i % 8, y = i / 8 % 8, z = i / 64;
            const int in = x >= 2 && x <= 5 && y >= 2 && y <= 5 && z >= 2 && z <= 5;
            s = 1664525u * s + 1013904223u;
            raters[k][i] = (uint8_t)(s / 4294967296.0 < error[k] ? (s >> 8) % 3
                                     : !in                       ? 0
                                     : x < 4                     ? 1
                                                                 : 2);
        }
}

/* The numbers of ITK 5.4's MultiLabelSTAPLEImageFilter, at a tolerance of 1e-12. */
static void staple_golden(void) {
    static const double three[3][3][3] = {{{0.9566780648, 0.0171412030, 0.2097727277},
                                           {0.0194413315, 0.9828587970, 0},
                                           {0.0238806037, 0, 0.7902272723}},
                                          {{0.9039332423, 0.0349884933, 0.1039769393},
                                           {0.0402546218, 0.8809899328, 0},
                                           {0.0558121359, 0.0840215739, 0.8960230607}},
                                          {{0.8186688722, 0.1237989249, 0.1953313087},
                                           {0.0825224894, 0.8413413116, 0.1370254341},
                                           {0.0988086384, 0.0348597635, 0.6676432572}}};
    static const double first_of_four[3][3] = {{0.9534083342, 0.1022127335, 0.0696525696},
                                               {0.0172682159, 0.8692630579, 0},
                                               {0.0293234499, 0.0285242086, 0.9303474304}};
    static const int labels[2][3] = {{444, 31, 37}, {446, 35, 31}};
    static uint8_t raters[4][GOLDEN_VOXELS], out[2][GOLDEN_VOXELS];
    make_golden_labels(raters);
    const uint8_t *const maps[4] = {raters[0], raters[1], raters[2], raters[3]};
    for (int k = 3; k <= 4; ++k) {
        double confusion[2][4 * 3 * 3], posterior[2][81 * 3];
        rcn_label_staple result[2];
        for (int t = 0; t < 2; ++t) { /* one thread, three */
            rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
            rcn_context *ctx = make_context(1 + 2 * t);
            rcn_votes *votes = votes_of(ctx, maps, k, 2, 8, 8, 8);
            uint8_t table[81];
            options.staple_tolerance = 1e-12;
            memset(posterior[t], 0, sizeof posterior[t]);
            memset(confusion[t], 0, sizeof confusion[t]);
            CHECK_STATUS(
                rcn_label_staple_make(out[t], confusion[t], &result[t], ctx, votes, &options),
                RCN_OK);
            CHECK_STATUS(
                rcn_label_staple_patterns(table, posterior[t], NULL, NULL, ctx, votes, &options),
                RCN_OK);
            for (int64_t p = 0; p < rcn_votes_pattern_count(votes); ++p) {
                const double *row = &posterior[t][3 * p];
                CHECK_NEAR(row[0] + row[1] + row[2], 1, 1e-12);
                for (int c = 0; c < 3; ++c) CHECK(row[c] >= 0 && row[c] <= row[table[p]]);
            }
            rcn_votes_destroy(votes);
            rcn_context_destroy(ctx);
        }
        CHECK(!memcmp(confusion[0], confusion[1], sizeof confusion[0]));
        CHECK(!memcmp(posterior[0], posterior[1], sizeof posterior[0]));
        CHECK(!memcmp(out[0], out[1], sizeof out[0]));
        int sums[3] = {0};
        for (int i = 0; i < GOLDEN_VOXELS; ++i) ++sums[out[0][i]];
        for (int c = 0; c < 3; ++c) CHECK(sums[c] == labels[k - 3][c]);
        CHECK(result[0].converged && result[0].region_voxels == 512);
        CHECK(result[0].undecided_voxels == 0 && result[0].iterations > 80);
        CHECK_NEAR(result[0].prior[0], k == 3 ? 0.7845052083 : 0.7807617188, 1e-10);
        const double *expected = k == 3 ? &three[0][0][0] : &first_of_four[0][0];
        for (int i = 0; i < (k == 3 ? 27 : 9); ++i) CHECK_NEAR(confusion[0][i], expected[i], 1e-9);
    }
}

/* Raters who agree are right and make no mistakes; the order of raters does not matter. */
static void staple_properties(void) {
    static uint8_t raters[4][GOLDEN_VOXELS], out[GOLDEN_VOXELS], other[GOLDEN_VOXELS];
    double confusion[4 * 9], mirrored[4 * 9];
    rcn_label_staple result;
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    rcn_context *ctx = make_context(2);
    make_golden_labels(raters);
    const uint8_t *const same[3] = {raters[2], raters[2], raters[2]};
    rcn_votes *votes = votes_of(ctx, same, 3, 2, 8, 8, 8);
    CHECK_STATUS(rcn_label_staple_make(out, confusion, &result, ctx, votes, &options), RCN_OK);
    CHECK(!memcmp(out, raters[2], sizeof out));
    for (int i = 0; i < 27; ++i) CHECK(confusion[i] == (i % 9 % 4 == 0));
    rcn_votes_destroy(votes);

    const uint8_t *const forward[4] = {raters[0], raters[1], raters[2], raters[3]};
    const uint8_t *const backward[4] = {raters[3], raters[2], raters[1], raters[0]};
    votes = votes_of(ctx, forward, 4, 2, 8, 8, 8);
    CHECK_STATUS(rcn_label_staple_make(out, confusion, NULL, ctx, votes, &options), RCN_OK);
    rcn_votes_destroy(votes);
    votes = votes_of(ctx, backward, 4, 2, 8, 8, 8);
    CHECK_STATUS(rcn_label_staple_make(other, mirrored, NULL, ctx, votes, &options), RCN_OK);
    rcn_votes_destroy(votes);
    CHECK(!memcmp(out, other, sizeof out));
    for (int r = 0; r < 4; ++r)
        for (int i = 0; i < 9; ++i)
            CHECK_NEAR(confusion[9 * r + i], mirrored[9 * (3 - r) + i], 1e-9);

    /* A structure that nobody marked changes nothing; background all around does. */
    double wider[4 * 16];
    votes = votes_of(ctx, forward, 4, 3, 8, 8, 8);
    CHECK_STATUS(rcn_label_staple_make(other, wider, &result, ctx, votes, &options), RCN_OK);
    CHECK(!memcmp(out, other, sizeof out) && result.prior[3] == 0);
    for (int r = 0; r < 4; ++r)
        for (int j = 0; j < 4; ++j)
            for (int c = 0; c < 4; ++c)
                CHECK(wider[16 * r + 4 * j + c] ==
                      (j < 3 && c < 3 ? confusion[9 * r + 3 * j + c] : 0));
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static int all_finite(const double *values, int count) {
    for (int i = 0; i < count; ++i)
        if (!isfinite(values[i])) return 0;
    return 1;
}

/* Nothing marked; one rater; two who contradict each other everywhere; nobody answers some voxels:
 * defined, and no NaN. */
static void staple_corners(void) {
    const uint8_t none[4] = {0, 0, 0, 0}, one[4] = {0, 1, 2, 2}, ones[4] = {1, 1, 1, 1},
                  twos[4] = {2, 2, 2, 2}, gaps[4] = {9, 1, 2, 9}, empty[4] = {9, 9, 9, 9};
    const struct {
        const uint8_t *maps[3];
        int raters;
        uint8_t expected[4];
        int64_t undecided;
    } cases[] = {{{none, none, none}, 3, {0, 0, 0, 0}, 0}, {{one, NULL, NULL}, 1, {0, 1, 2, 2}, 0},
                 {{ones, twos, NULL}, 2, {1, 1, 1, 1}, 4}, {{one, NULL, one}, 3, {0, 1, 2, 2}, 0},
                 {{gaps, gaps, gaps}, 3, {0, 1, 2, 0}, 0}, {{empty, empty, empty}, 3, {0}, 0},
                 {{gaps, one, NULL}, 3, {0, 1, 2, 2}, 0}};
    rcn_context *ctx = make_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        rcn_votes *votes = votes_of(ctx, cases[i].maps, cases[i].raters, 3, 4, 1, 1);
        rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
        rcn_label_staple result;
        uint8_t out[4], table[4];
        double confusion[3 * 16], posterior[4 * 4] = {0};
        for (options.staple_margin = -1; options.staple_margin <= 0; ++options.staple_margin) {
            CHECK_STATUS(rcn_label_staple_make(out, confusion, &result, ctx, votes, &options),
                         RCN_OK);
            CHECK(!memcmp(out, cases[i].expected, sizeof out));
            CHECK(all_finite(confusion, 16 * cases[i].raters) && all_finite(result.prior, 4));
            CHECK(result.converged);
            CHECK_STATUS(
                rcn_label_staple_patterns(table, posterior, NULL, NULL, ctx, votes, &options),
                RCN_OK);
            CHECK(all_finite(posterior, 16));
        }
        if (cases[i].undecided) CHECK(result.undecided_voxels == cases[i].undecided);
        rcn_votes_destroy(votes);
    }
    rcn_context_destroy(ctx);
}

/* 64 raters: no underflow, and the truth is found again. */
static void many_raters(void) {
    enum { K = 64, C = 8, N = 4096 };
    static uint8_t data[K][N], truth[N], out[N];
    const uint8_t *maps[K];
    uint32_t s = 7;
    for (int i = 0; i < N; ++i) truth[i] = (uint8_t)(i / 40 % (C + 1));
    for (int r = 0; r < K; ++r) {
        for (int i = 0; i < N; ++i) {
            s = 1664525u * s + 1013904223u;
            data[r][i] = (uint8_t)(s >> 24 < 150 ? (s >> 8) % (C + 1) : truth[i]);
        }
        maps[r] = data[r];
    }
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = votes_of(ctx, maps, K, C, N, 1, 1);
    const rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    rcn_label_staple result;
    CHECK_STATUS(rcn_label_staple_make(out, NULL, &result, ctx, votes, &options), RCN_OK);
    CHECK(!memcmp(out, truth, sizeof out) && result.converged && result.undecided_voxels == 0);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Every method of one structure works on each of several. */
static void each_structure_alone(void) {
    static uint8_t raters[4][GOLDEN_VOXELS], marked[4][GOLDEN_VOXELS];
    static float ours[GOLDEN_VOXELS], plain[GOLDEN_VOXELS];
    rcn_context *ctx = make_context(2);
    make_golden_labels(raters);
    const uint8_t *const maps[4] = {raters[0], raters[1], raters[2], raters[3]};
    rcn_votes *votes = votes_of(ctx, maps, 4, 2, 8, 8, 8);
    for (int c = 1; c <= 2; ++c) {
        rcn_votes *alone = NULL;
        rcn_mask masks[4];
        for (int r = 0; r < 4; ++r) {
            for (int i = 0; i < GOLDEN_VOXELS; ++i) marked[r][i] = raters[r][i] == c;
            const rcn_mask mask = {
                {marked[r], RCN_UINT8, 1, rcn_geometry_make(8, 8, 8)}, 0, NULL, 0, NULL};
            masks[r] = mask;
        }
        CHECK_STATUS(rcn_votes_select(&alone, ctx, votes, c), RCN_OK);
        for (int m = RCN_ORC; m <= RCN_SVLS; ++m) {
            rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
            options.method = (rcn_method)m;
            CHECK_STATUS(rcn_fuse(ours, NULL, ctx, alone, &options), RCN_OK);
            CHECK_STATUS(rcn_fuse_masks(plain, NULL, ctx, masks, 4, &options), RCN_OK);
            for (int i = 0; i < GOLDEN_VOXELS; ++i)
                CHECK_NEAR(ours[i], plain[i], m == RCN_STAPLE ? 1e-6 : 0);
        }
        rcn_votes_destroy(alone);
    }
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void bad_arguments(void) {
    const uint8_t data[4] = {0, 1, 2, 0};
    const uint8_t *const maps[1] = {data}, *const nobody[1] = {NULL};
    uint8_t out[4] = {7, 7, 7, 7};
    rcn_label_staple result = {{0}, -5, 0, 0, 0};
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = votes_of(ctx, maps, 1, 2, 4, 1, 1), *alone = NULL;
    rcn_votes *unasked = votes_of(ctx, nobody, 1, 2, 4, 1, 1);
    CHECK_STATUS(rcn_votes_select(&alone, ctx, votes, 1), RCN_OK);
    CHECK_STATUS(rcn_plurality(out, ctx, alone), RCN_EINVALID);
    CHECK_ERROR(ctx, "no labels");
    CHECK_STATUS(rcn_plurality(out, ctx, unasked), RCN_EINVALID);
    CHECK_ERROR(ctx, "No rater answered");
    CHECK_STATUS(rcn_plurality(NULL, ctx, votes), RCN_EINVALID);
    CHECK_STATUS(rcn_plurality(out, NULL, votes), RCN_EINVALID);
    CHECK_STATUS(rcn_label_staple_make(out, NULL, &result, ctx, alone, &options), RCN_EINVALID);
    options.staple_iterations = 0;
    CHECK_STATUS(rcn_label_staple_make(out, NULL, &result, ctx, votes, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "at least one iteration");
    CHECK_STATUS(rcn_label_staple_make(out, NULL, &result, ctx, votes, NULL), RCN_EINVALID);
    for (int i = 0; i < 4; ++i) CHECK(out[i] == 7);
    CHECK(result.iterations == -5);
    rcn_votes_destroy(alone);
    rcn_votes_destroy(unasked);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static rcn_status fuse_all(rcn_context *ctx, void *payload) {
    static uint8_t out[GOLDEN_VOXELS];
    double confusion[36];
    const rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    confusion[0] = 42;
    rcn_status status = rcn_plurality(out, ctx, payload);
    if (status == RCN_OK)
        status = rcn_label_staple_make(out, confusion, NULL, ctx, payload, &options);
    CHECK(status != RCN_ENOMEM || confusion[0] == 42);
    return status;
}

static void failing_allocations_and_cancel(void) {
    static uint8_t raters[4][GOLDEN_VOXELS];
    rcn_context *ctx = make_context(1);
    make_golden_labels(raters);
    const uint8_t *const maps[4] = {raters[0], raters[1], raters[2], raters[3]};
    rcn_votes *votes = votes_of(ctx, maps, 4, 2, 8, 8, 8);
    check_failing_allocations(fuse_all, votes);
    check_cancelling(fuse_all, votes, 20);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(plurality_by_hand);
    RUN(staple_golden);
    RUN(staple_properties);
    RUN(staple_corners);
    RUN(many_raters);
    RUN(each_structure_alone);
    RUN(bad_arguments);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
