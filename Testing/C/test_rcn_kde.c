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
    rcn_kde out;
    CHECK_STATUS(rcn_calib_kde(&out, ctx, (const rcn_calib *const *)&calib, 1), RCN_OK);
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
        CHECK(kde.bandwidth >= 1.0 / 256 && kde.bandwidth <= 1.0 / 4);
        CHECK_NEAR(kde.ece, fabs((double)values[v] - 0.1), 1e-6);
    }
    /* Too low by 1/4 at one place, too high at another: no kernel puts them together. */
    enum { MANY = 4000 };
    static float two[MANY];
    static uint8_t halves[MANY];
    for (int i = 0; i < MANY; ++i) {
        two[i] = i < MANY / 2 ? .25f : .75f;
        halves[i] = (uint8_t)(i % 2);
    }
    CHECK_NEAR(kde_of(ctx, two, halves, MANY).ece, .25, .02);
    CHECK(isnan(kde_of(ctx, two, halves, 1).ece));
    rcn_kde none = {7, 7};
    CHECK_STATUS(rcn_calib_kde(&none, ctx, NULL, 0), RCN_EINVALID);
    CHECK(none.ece == 7 && none.bandwidth == 7);
    rcn_context_destroy(ctx);
}

/* What chance adds is smoothed away: of a perfect model, most of whose voxels are background, next
 * to nothing is left with the widest kernel. What is really off and changes with p is kept. */
static void bandwidth(void) {
    enum { VOXELS = 40000 };
    static float p[VOXELS];
    static uint8_t marks[VOXELS];
    rcn_kde found[2];
    rcn_context *ctx = make_context(1);
    for (int wave = 0; wave <= 1; ++wave) {
        uint32_t seed = 1;
        for (int i = 0; i < VOXELS; ++i) {
            const double u = (i + 0.5) / VOXELS, q = wave ? u + 0.15 * sin(30 * u) : pow(u, 8);
            p[i] = (float)(wave ? u : q);
            seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
            marks[i] = seed / 4294967296.0 < q;
        }
        found[wave] = kde_of(ctx, p, marks, VOXELS);
    }
    CHECK(found[0].bandwidth >= 1.0 / 16 && found[0].ece < 0.002);
    CHECK(found[1].bandwidth <= 1.0 / 16 && found[1].ece > 0.05);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(by_hand);
    RUN(bandwidth);
    return TEST_RESULT;
}
