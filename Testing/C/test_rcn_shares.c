// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_shares.h"

#include "rcn_test.h"

enum { C = 3, N = 70000 }; /* several chunks */

static rcn_image image_of(float *data, int components, int64_t voxels) {
    const rcn_image image = {data, RCN_FLOAT32, components, rcn_geometry_make(voxels, 1, 1)};
    return image;
}

static void known_voxels(void) {
    /* the last ones are heads that say more than one together */
    float shares[5][C] = {
        {.1f, .6f, .1f}, {.5f, 0, 0}, {0, 0, 0}, {.1f, .4f, .4f}, {.7f, .6f, .9f}};
    const float rest[5] = {.2f, .5f, 1, .1f, 0};
    float means[5][C + 1], back[5][C];
    rcn_context *ctx = make_context(1);
    const rcn_image in = image_of(&shares[0][0], C, 5);
    CHECK_STATUS(rcn_shares_complete(&means[0][0], ctx, &in), RCN_OK);
    const rcn_image completed = image_of(&means[0][0], C + 1, 5);
    CHECK_STATUS(rcn_shares_strip(&back[0][0], ctx, &completed), RCN_OK);
    for (int i = 0; i < 5; ++i) {
        CHECK_NEAR(means[i][0], rest[i], 1e-6);
        CHECK(!memcmp(means[i] + 1, shares[i], sizeof shares[i]));
    }
    CHECK(!memcmp(back, shares, sizeof shares));
    shares[0][1] = NAN; /* outside a region a map may hold anything */
    CHECK_STATUS(rcn_shares_complete(&means[0][0], ctx, &in), RCN_OK);
    CHECK(isnan(means[0][0]) && isnan(means[0][2]) && means[0][1] == .1f);
    rcn_context_destroy(ctx);
}

/* Against plain loops, on one thread and on three. */
static void against_loops(void) {
    float *shares = malloc(sizeof *shares * C * N), *means = malloc(sizeof *means * (C + 1) * N);
    uint32_t state = 5;
    for (int i = 0; i < C * N; ++i) {
        state = 1664525u * state + 1013904223u;
        shares[i] = (float)(state >> 8) / (1 << 24) / (i / C % 2 ? 1.5f : 3.0f);
    }
    const rcn_image in = image_of(shares, C, N);
    for (int threads = 1; threads <= 3; threads += 2) {
        rcn_context *ctx = make_context(threads);
        int wrong = 0;
        CHECK_STATUS(rcn_shares_complete(means, ctx, &in), RCN_OK);
        for (int i = 0; i < N; ++i) {
            const float *s = shares + C * i;
            const double sum = (double)s[0] + (double)s[1] + (double)s[2];
            const float rest = sum >= 1 ? 0 : (float)(1 - sum);
            wrong += means[(C + 1) * i] != rest;
            wrong += memcmp(means + (C + 1) * i + 1, s, sizeof *s * C) != 0;
        }
        CHECK(wrong == 0);
        rcn_context_destroy(ctx);
    }
    free(shares);
    free(means);
}

static void bad_arguments(void) {
    float shares[C] = {0}, out[C + 1] = {9};
    rcn_context *ctx = make_context(1);
    rcn_image in = image_of(shares, C, 1);
    CHECK_STATUS(rcn_shares_complete(out, NULL, &in), RCN_EINVALID);
    CHECK_STATUS(rcn_shares_complete(NULL, ctx, &in), RCN_EINVALID);
    CHECK_STATUS(rcn_shares_complete(out, ctx, NULL), RCN_EINVALID);
    in.components = 1;
    CHECK_STATUS(rcn_shares_strip(out, ctx, &in), RCN_EINVALID);
    in.type = RCN_UINT8;
    CHECK_STATUS(rcn_shares_complete(out, ctx, &in), RCN_EINVALID);
    CHECK_ERROR(ctx, "float32");
    CHECK(out[0] == 9);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(known_voxels);
    RUN(against_loops);
    RUN(bad_arguments);
    return TEST_RESULT;
}
