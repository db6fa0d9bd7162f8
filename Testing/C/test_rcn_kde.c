// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_calib.h"

#include "rcn_test.h"

static rcn_kde kde_of(rcn_context *ctx, const float *p, const uint8_t *marks, int voxels) {
    rcn_mask mask = {
        {(void *)marks, RCN_UINT8, 1, rcn_geometry_make(voxels, 1, 1)}, 0, NULL, 0, NULL};
    rcn_votes *votes = NULL;
    rcn_calib *calib = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    const rcn_calib_case one_case = {
        votes, {(void *)p, RCN_FLOAT32, 1, rcn_geometry_make(voxels, 1, 1)}, NULL, NULL};
    CHECK_STATUS(rcn_calib_create(&calib, ctx, 1, NULL), RCN_OK);
    CHECK_STATUS(rcn_calib_add(calib, ctx, &one_case), RCN_OK);
    const rcn_kde out = rcn_calib_kde(calib);
    rcn_calib_destroy(calib);
    rcn_votes_destroy(votes);
    return out;
}

/* A kernel has the area 1 also where it is reflected: one gap, wherever it is, is seen whole, and
 * two that cancel only where the kernels overlap. */
static void by_hand(void) {
    const float values[] = {0.0f, 0.001f, 0.3f, 0.5f, 0.97f, 1.0f};
    uint8_t marks[10] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    float p[10];
    rcn_context *ctx = make_context(1);
    for (size_t v = 0; v < sizeof values / sizeof *values; ++v) {
        for (int i = 0; i < 10; ++i) p[i] = values[v];
        const rcn_kde kde = kde_of(ctx, p, marks, 10);
        CHECK(kde.bandwidth == 1.0 / 256); /* nothing but ties: as narrow as may be */
        CHECK_NEAR(kde.ece, fabs((double)values[v] - 0.1), 1e-6);
    }
    /* Too low by 1/4 at one place, too high at another: no kernel puts them together. */
    const float two[8] = {.25f, .25f, .25f, .25f, .75f, .75f, .75f, .75f};
    const uint8_t halves[8] = {1, 1, 0, 0, 1, 1, 0, 0};
    CHECK_NEAR(kde_of(ctx, two, halves, 8).ece, .25, 1e-6);
    CHECK(isnan(kde_of(ctx, two, halves, 1).ece));
    rcn_context_destroy(ctx);
}

/* Few values, evenly spread: a wide kernel explains them best, and more values a narrower one. */
static void bandwidth(void) {
    enum { MOST = 4096 };
    static float p[MOST];
    static uint8_t marks[MOST];
    double before = 1;
    rcn_context *ctx = make_context(1);
    for (int voxels = 4; voxels <= MOST; voxels *= 32) {
        for (int i = 0; i < voxels; ++i) {
            const double u = (i + 0.5) / voxels;
            p[i] = (float)(u < 0.5 ? 0.4 + 0.2 * u * u : 0.6 - 0.2 * (1 - u) * (1 - u));
        }
        const rcn_kde kde = kde_of(ctx, p, marks, voxels);
        CHECK(kde.bandwidth <= before);
        before = kde.bandwidth;
    }
    CHECK(before < 0.02);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(by_hand);
    RUN(bandwidth);
    return TEST_RESULT;
}
