// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_region.h"

#include "rcn_test.h"

enum { X = 23, Y = 19, Z = 11, N = X * Y * Z };

typedef struct scene {
    uint8_t marks[3][N];
    rcn_geometry geometry;
    rcn_votes *votes;
} scene;

static void scene_make(scene *s, rcn_context *ctx, int64_t depth, double tilt) {
    static const int64_t unanswered = 9;
    rcn_mask masks[3];
    uint32_t state = 11;
    s->geometry = rcn_geometry_make(X, Y, depth);
    s->geometry.spacing[0] = 0.7;
    s->geometry.spacing[1] = 0.9;
    s->geometry.spacing[2] = 2.5;
    s->geometry.direction[5] = sin(tilt); /* a gantry's: the third axis leans towards the second */
    s->geometry.direction[8] = cos(tilt);
    for (int r = 0; r < 3; ++r) {
        for (int i = 0; i < N; ++i) {
            const int x = i % X - 9, y = i / X % Y - 8, z = (int)(i / (X * Y) - depth / 2) * 2;
            state = 1664525u * state + 1013904223u;
            s->marks[r][i] = x * x + y * y + z * z < 16 + (int)(state >> 28);
            if ((r == 2 && i % X == 3) || i % X == 10) s->marks[r][i] = 9;
        }
        rcn_mask mask = {{s->marks[r], RCN_UINT8, 1, s->geometry}, 0, NULL, 0, &unanswered};
        masks[r] = mask;
    }
    CHECK_STATUS(rcn_votes_from_masks(&s->votes, ctx, masks, 3), RCN_OK);
}

/* 1, 0, or -1 where nobody answered */
static int majority(const scene *s, int64_t i) {
    int marked = 0, answered = 0;
    for (int r = 0; r < 3; ++r) {
        marked += s->marks[r][i] == 1;
        answered += s->marks[r][i] != 9;
    }
    return answered ? 2 * marked >= answered : -1;
}

static int other_side(const scene *s, int64_t i, int64_t j) {
    return majority(s, i) >= 0 && majority(s, j) == 1 - majority(s, i);
}

/* Every voxel against every voxel of the contour. */
static void naive_band(uint8_t *out, const scene *s, double mm) {
    const int64_t *size = s->geometry.size, count = size[0] * size[1] * size[2];
    const int64_t stride[3] = {1, size[0], size[0] * size[1]};
    uint8_t *contour = calloc((size_t)count, 1);
    for (int64_t i = 0; i < count; ++i)
        for (int a = 0; a < 3; ++a) {
            const int64_t at = i / stride[a] % size[a];
            if (at > 0 && other_side(s, i, i - stride[a])) contour[i] = 1;
            if (at + 1 < size[a] && other_side(s, i, i + stride[a])) contour[i] = 1;
        }
    for (int64_t i = 0; i < count; ++i) {
        out[i] = 0;
        for (int64_t j = 0; j < count && !out[i]; ++j) {
            double sum = 0;
            if (!contour[j]) continue;
            for (int row = 0; row < 3; ++row) {
                double d = 0;
                for (int a = 0; a < 3; ++a)
                    d += s->geometry.direction[3 * row + a] * s->geometry.spacing[a] *
                         (double)(i / stride[a] % size[a] - j / stride[a] % size[a]);
                sum += d * d;
            }
            out[i] = sum <= mm * mm + 1e-9;
        }
    }
    free(contour);
}

static void band_is_exact(void) {
    static const double widths[] = {0, 0.7, 1.4, 2.5, 3.3, 100};
    rcn_context *one = make_context(1), *three = make_context(3);
    for (int shape = 0; shape < 3;
         ++shape) { /* a slice, a volume, a volume with a tilt of 25 degrees */
        const int64_t depth = shape ? Z : 1;
        scene s;
        scene_make(&s, one, depth, shape == 2 ? 0.4363 : 0);
        for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w) {
            uint8_t out[N], naive[N];
            int64_t count = -1, expected = 0;
            rcn_region_options options = RCN_REGION_OPTIONS_INIT;
            options.region = RCN_REGION_BAND;
            options.band_mm = widths[w];
            naive_band(naive, &s, widths[w]);
            CHECK_STATUS(rcn_region_fill(out, &count, w % 2 ? one : three, s.votes, &options),
                         RCN_OK);
            CHECK(!memcmp(out, naive, (size_t)(X * Y * depth)));
            for (int64_t i = 0; i < X * Y * depth; ++i) expected += naive[i];
            CHECK(count == expected && count > 0);
        }
        rcn_votes_destroy(s.votes);
    }
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

static void whole_box_disputed(void) {
    rcn_context *ctx = make_context(2);
    scene s;
    uint8_t out[N];
    int64_t count = 0;
    rcn_region_options options = RCN_REGION_OPTIONS_INIT;
    scene_make(&s, ctx, Z, 0);
    CHECK_STATUS(rcn_region_fill(out, &count, ctx, s.votes, NULL), RCN_OK);
    CHECK(count == N);
    options.region = RCN_REGION_BOX;
    CHECK_STATUS(rcn_region_fill(out, &count, ctx, s.votes, &options), RCN_OK);
    CHECK(count == N); /* twenty voxels around are more than there are */
    options.margin = 1;
    rcn_box box;
    CHECK_STATUS(rcn_votes_union_box(&box, ctx, s.votes, 1), RCN_OK);
    CHECK_STATUS(rcn_region_fill(out, &count, ctx, s.votes, &options), RCN_OK);
    for (int i = 0; i < N; ++i) {
        const int64_t voxel[3] = {i % X, i / X % Y, i / (X * Y)};
        int inside = 1;
        for (int a = 0; a < 3; ++a) inside &= voxel[a] >= box.first[a] && voxel[a] < box.end[a];
        CHECK(out[i] == inside);
    }
    CHECK(count < N);
    options.region = RCN_REGION_DISPUTED;
    CHECK_STATUS(rcn_region_fill(out, NULL, ctx, s.votes, &options), RCN_OK);
    int disputed = 0;
    for (int i = 0; i < N; ++i) {
        int marked = 0, answered = 0;
        for (int r = 0; r < 3; ++r) {
            marked += s.marks[r][i] == 1;
            answered += s.marks[r][i] != 9;
        }
        CHECK(out[i] == (marked > 0 && marked < answered));
        disputed += out[i];
    }
    CHECK(disputed > 0);
    rcn_votes_destroy(s.votes);
    rcn_context_destroy(ctx);
}

static void nothing_marked_and_bad_input(void) {
    uint8_t none[N] = {0}, out[N];
    int64_t count = -1;
    rcn_context *ctx = make_context(1);
    rcn_mask mask = {{none, RCN_UINT8, 1, rcn_geometry_make(X, Y, Z)}, 0, NULL, 0, NULL};
    rcn_votes *votes = NULL;
    rcn_region_options options = RCN_REGION_OPTIONS_INIT;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    options.region = RCN_REGION_BAND;
    CHECK_STATUS(rcn_region_fill(out, &count, ctx, votes, &options), RCN_OK);
    CHECK(count == 0);
    options.region = RCN_REGION_DISPUTED;
    CHECK_STATUS(rcn_region_fill(out, &count, ctx, votes, &options), RCN_OK);
    CHECK(count == 0);
    count = -1;
    options.band_mm = -1;
    CHECK_STATUS(rcn_region_fill(out, &count, ctx, votes, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "band");
    options.band_mm = 1;
    options.margin = -1;
    CHECK(rcn_region_check(&options) != NULL);
    options.margin = 0;
    options.region = (rcn_region)4;
    CHECK_STATUS(rcn_region_fill(out, &count, ctx, votes, &options), RCN_EINVALID);
    CHECK(!rcn_region_name((rcn_region)4) && !strcmp(rcn_region_name(RCN_REGION_BAND), "band"));
    CHECK_STATUS(rcn_region_fill(NULL, &count, ctx, votes, NULL), RCN_EINVALID);
    CHECK(count == -1);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Inside as it was, outside certain background: of one probability and of three levels. */
static void cut_outside(void) {
    static float in[3 * N], out[3 * N];
    uint8_t region[N];
    for (int i = 0; i < 3 * N; ++i) in[i] = (float)(i % 17) + 2.0f;
    for (int i = 0; i < N; ++i) region[i] = i % 5 == 0;
    rcn_context *ctx = make_context(2);
    for (int components = 1; components <= 3; components += 2) {
        rcn_image image = {in, RCN_FLOAT32, components, rcn_geometry_make(X, Y, Z)};
        CHECK_STATUS(rcn_region_cut(out, ctx, &image, region), RCN_OK);
        for (int i = 0; i < N * components; ++i)
            CHECK(out[i] == (region[i / components]         ? in[i]
                             : components > 1 && i % 3 == 0 ? 1.0f
                                                            : 0.0f));
        CHECK_STATUS(rcn_region_cut(NULL, ctx, &image, region), RCN_EINVALID);
        CHECK_STATUS(rcn_region_cut(out, ctx, &image, NULL), RCN_EINVALID);
        image.type = RCN_FLOAT64;
        CHECK_STATUS(rcn_region_cut(out, ctx, &image, region), RCN_EINVALID);
    }
    rcn_context_destroy(ctx);
}

static rcn_status fill(rcn_context *ctx, void *payload) {
    uint8_t out[N];
    rcn_status status = RCN_OK;
    for (int region = 0; region < 4 && status == RCN_OK; ++region) {
        rcn_region_options options = RCN_REGION_OPTIONS_INIT;
        options.region = (rcn_region)region;
        status = rcn_region_fill(out, NULL, ctx, ((scene *)payload)->votes, &options);
    }
    return status;
}

static void failing_allocations_and_cancel(void) {
    rcn_context *owner = make_context(1);
    for (double tilt = 0; tilt < 0.5; tilt += 0.4) {
        scene s;
        scene_make(&s, owner, Z, tilt);
        check_failing_allocations(fill, &s);
        check_cancelling(fill, &s, 11);
        rcn_votes_destroy(s.votes);
    }
    rcn_context_destroy(owner);
}

int main(void) {
    RUN(band_is_exact);
    RUN(whole_box_disputed);
    RUN(nothing_marked_and_bad_input);
    RUN(cut_outside);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
