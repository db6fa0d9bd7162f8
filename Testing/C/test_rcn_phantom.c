// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_phantom.h"

#include "rcn/rcn_agreement.h"
#include "rcn_test.h"

enum { X = 96, Y = 80, Z = 12 };

static void make(float *image, uint8_t *masks, int threads, const rcn_phantom_options *options) {
    rcn_context *ctx = make_context(threads);
    CHECK_STATUS(rcn_phantom_make(image, masks, ctx, options), RCN_OK);
    rcn_context_destroy(ctx);
}

/* The same seed gives the same voxels for any number of threads, another seed another case. */
static void repeatable(void) {
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    options.size[0] = X;
    options.size[1] = Y;
    options.size[2] = Z;
    const size_t n = X * Y * Z;
    float *image[3];
    uint8_t *masks[3];
    for (int i = 0; i < 3; ++i) {
        image[i] = malloc(n * sizeof(float));
        masks[i] = malloc(n * 5);
    }
    make(image[0], masks[0], 1, &options);
    make(image[1], masks[1], 3, &options);
    options.seed = 2;
    make(image[2], masks[2], 1, &options);
    CHECK(!memcmp(image[0], image[1], n * sizeof(float)) && !memcmp(masks[0], masks[1], n * 5));
    CHECK(memcmp(masks[0], masks[2], n * 5));
    for (int i = 0; i < 3; ++i) {
        free(image[i]);
        free(masks[i]);
    }
}

/* Raters disagree as people do: no pair the same, none a stranger; without disagreement all the
 * same; what is marked by many is brighter than what is marked by few, and that than the
 * background. */
static void ambiguous(void) {
    enum { N = 128 * 128, CASES = 12 };
    static float image[N];
    static uint8_t masks[5 * N];
    double dice = 0, brightness[6] = {0}, voxels[6] = {0};
    for (uint64_t seed = 1; seed <= CASES; ++seed) {
        rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
        rcn_context *ctx = make_context(2);
        rcn_mask sources[5];
        rcn_votes *votes = NULL;
        rcn_agreement *agreement = NULL;
        options.seed = seed;
        CHECK_STATUS(rcn_phantom_make(image, masks, ctx, &options), RCN_OK);
        for (int r = 0; r < 5; ++r) {
            const rcn_mask mask = {
                {masks + r * N, RCN_UINT8, 1, rcn_geometry_make(128, 128, 1)}, 0, NULL, 0, NULL};
            sources[r] = mask;
        }
        CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, sources, 5), RCN_OK);
        CHECK_STATUS(rcn_agreement_create(&agreement, ctx, votes), RCN_OK);
        dice += agreement->mean_dice / CASES;
        CHECK(agreement->intersection_voxels > 0 && agreement->disputed_voxels > 0);
        for (int i = 0; i < N; ++i) {
            int level = 0;
            for (int r = 0; r < 5; ++r) level += masks[r * N + i];
            brightness[level] += image[i];
            voxels[level] += 1;
        }
        options.disagreement = 0;
        CHECK_STATUS(rcn_phantom_make(image, masks, ctx, &options), RCN_OK);
        for (int r = 1; r < 5; ++r) CHECK(!memcmp(masks, masks + r * N, N));
        rcn_agreement_destroy(agreement, ctx);
        rcn_votes_destroy(votes);
        rcn_context_destroy(ctx);
    }
    CHECK(dice > 0.5 && dice < 0.92);
    for (int level = 0; level < 6; ++level) brightness[level] /= voxels[level];
    CHECK(brightness[0] < brightness[1] && brightness[1] < brightness[3] &&
          brightness[3] < brightness[5]);
}

/* Three structures that touch each other, in 2-D and 3-D: everybody marks each of them, borders and
 * a whole part are disputed, and without disagreement all label the same. */
static void structures(void) {
    enum { N = X * Y * Z };
    static float image[N], again[N];
    static uint8_t labels[5 * N], threaded[5 * N];
    int split_parts = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
        rcn_context *ctx[2] = {make_context(1), make_context(3)};
        options.size[0] = X;
        options.size[1] = Y;
        options.size[2] = seed % 2 ? 1 : Z;
        options.seed = seed;
        const int n = (int)(X * Y * options.size[2]);
        CHECK_STATUS(rcn_phantom_make_labels(image, labels, ctx[0], &options), RCN_OK);
        CHECK_STATUS(rcn_phantom_make_labels(again, threaded, ctx[1], &options), RCN_OK);
        CHECK(!memcmp(image, again, (size_t)n * sizeof *image));
        CHECK(!memcmp(labels, threaded, 5 * (size_t)n));
        int touching[4][4] = {{0}}, structures_disputed = 0;
        double brightness[4] = {0}, voxels[4] = {0};
        for (int r = 0; r < 5; ++r) {
            int marked[4] = {0};
            for (int i = 0; i < n; ++i) {
                CHECK(labels[r * n + i] <= RCN_PHANTOM_STRUCTURES);
                ++marked[labels[r * n + i]];
                if (i % X) touching[labels[r * n + i - 1]][labels[r * n + i]] = 1;
                brightness[labels[r * n + i]] += image[i];
                ++voxels[labels[r * n + i]];
            }
            for (int c = 0; c < 4; ++c) CHECK(marked[c] > n / 300);
            CHECK(!r || memcmp(labels, labels + r * n, (size_t)n));
        }
        for (int c = 1; c < 4; ++c)
            for (int d = 0; d < c; ++d) CHECK(touching[c][d] || touching[d][c]);
        for (int c = 0; c < 4; ++c) brightness[c] /= voxels[c];
        for (int c = 1; c < 4; ++c) CHECK(brightness[c - 1] < brightness[c]);
        for (int i = 0; i < n; ++i) {
            int given[4] = {0};
            for (int r = 0; r < 5; ++r) ++given[labels[r * n + i]];
            structures_disputed += given[1] && given[2];
        }
        split_parts += structures_disputed > n / 200;
        options.disagreement = 0;
        CHECK_STATUS(rcn_phantom_make_labels(image, labels, ctx[0], &options), RCN_OK);
        for (int r = 1; r < 5; ++r) CHECK(!memcmp(labels, labels + r * n, (size_t)n));
        rcn_context_destroy(ctx[0]);
        rcn_context_destroy(ctx[1]);
    }
    CHECK(split_parts >= 6);
}

/* The same voxels on every machine: how many there are of each label. */
static void structures_everywhere(void) {
    static float image[64 * 48];
    static uint8_t labels[5 * 64 * 48];
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    int sums[4] = {0};
    options.size[0] = 64;
    options.size[1] = 48;
    CHECK_STATUS(rcn_phantom_make_labels(image, labels, ctx, &options), RCN_OK);
    for (int i = 0; i < 5 * 64 * 48; ++i) ++sums[labels[i]];
    CHECK(sums[0] == 12126 && sums[1] == 1404 && sums[2] == 1351 && sums[3] == 479);
    rcn_context_destroy(ctx);
}

static void bad_options(void) {
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    CHECK(rcn_phantom_check(&options) == NULL);
    options.raters = 0;
    CHECK_STATUS(rcn_phantom_make(NULL, NULL, ctx, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "raters");
    options.raters = 5;
    options.noise = NAN;
    CHECK(rcn_phantom_check(&options) != NULL);
    CHECK_STATUS(rcn_phantom_make_labels(NULL, NULL, ctx, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "noise");
    rcn_context_destroy(ctx);
}

static rcn_status small(rcn_context *ctx, void *payload) {
    static float image[64];
    static uint8_t masks[5 * 64];
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    options.size[0] = options.size[1] = 8;
    (void)payload;
    const rcn_status status = rcn_phantom_make(image, masks, ctx, &options);
    return status == RCN_OK ? rcn_phantom_make_labels(image, masks, ctx, &options) : status;
}

static void failing_allocations_and_cancel(void) {
    check_failing_allocations(small, NULL);
    check_cancelling(small, NULL, 2);
}

int main(void) {
    RUN(repeatable);
    RUN(ambiguous);
    RUN(structures);
    RUN(structures_everywhere);
    RUN(bad_options);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
