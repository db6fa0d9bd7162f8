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

static void bad_options(void) {
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    CHECK(rcn_phantom_check(&options) == NULL);
    options.raters = 0;
    CHECK_STATUS(rcn_phantom_make(NULL, NULL, ctx, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "raters");
    options.raters = 5;
    options.softness = NAN;
    CHECK(rcn_phantom_check(&options) != NULL);
    rcn_context_destroy(ctx);
}

static rcn_status small(rcn_context *ctx, void *payload) {
    static float image[64];
    static uint8_t masks[5 * 64];
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    options.size[0] = options.size[1] = 8;
    (void)payload;
    return rcn_phantom_make(image, masks, ctx, &options);
}

static void failing_allocations(void) { check_failing_allocations(small, NULL); }

int main(void) {
    RUN(repeatable);
    RUN(ambiguous);
    RUN(bad_options);
    RUN(failing_allocations);
    return TEST_RESULT;
}
