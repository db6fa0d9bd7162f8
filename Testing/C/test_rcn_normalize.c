// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_normalize.h"

#include <float.h>

#include "rcn_test_comm.h"

enum { X = 37, Y = 29, Z = 23, N = X * Y * Z };

/* Three channels of different types: interleaved int16, and a float image of its own. */
typedef struct scene {
    int16_t pair[2 * N];
    float alone[N];
    rcn_channel channels[3];
} scene;

static void scene_make(scene *s) {
    uint32_t state = 5;
    for (int i = 0; i < N; ++i) {
        state = 1664525u * state + 1013904223u;
        s->pair[2 * i] = (int16_t)(state >> 20) - 1024;
        s->pair[2 * i + 1] = (int16_t)(state >> 28);
        s->alone[i] = (float)(state >> 8) * 0x1p-20f - 3;
    }
    for (int c = 0; c < 3; ++c) {
        const rcn_image image = {c < 2 ? (void *)s->pair : (void *)s->alone,
                                 c < 2 ? RCN_INT16 : RCN_FLOAT32, c < 2 ? 2 : 1,
                                 rcn_geometry_make(X, Y, Z)};
        s->channels[c].image = image;
        s->channels[c].component = c == 1;
    }
}

static double voxel(const scene *s, int channel, int64_t i) {
    return channel < 2 ? s->pair[2 * i + channel] : s->alone[i];
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void scales_are_those_of_a_naive_pass(void) {
    static scene s;
    static double sorted[N];
    rcn_context *ctx = make_context(2);
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    rcn_scale scale;
    scene_make(&s);
    for (int c = 0; c < 3; ++c) {
        double mean = 0, squares = 0;
        for (int i = 0; i < N; ++i) mean += voxel(&s, c, i) / N;
        for (int i = 0; i < N; ++i) squares += pow(voxel(&s, c, i) - mean, 2);
        rule.kind = RCN_NORMALIZE_ZSCORE;
        CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 3), RCN_OK);
        CHECK_NEAR(scale.shift[c], mean, 1e-9 * (1 + fabs(mean)));
        CHECK_NEAR(scale.factor[c] * sqrt(squares / N), 1, 1e-9);

        for (int i = 0; i < N; ++i) sorted[i] = voxel(&s, c, i);
        qsort(sorted, N, sizeof *sorted, by_value);
        rule.kind = RCN_NORMALIZE_PERCENTILE;
        rule.lower = 2;
        rule.upper = 97.3;
        CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 3), RCN_OK);
        const double low = sorted[(int)floor(.02 * (N - 1) + .5)],
                     high = sorted[(int)floor(.973 * (N - 1) + .5)];
        CHECK(high > low);
        CHECK_NEAR(scale.shift[c], (low + high) / 2, 1e-12);
        CHECK_NEAR(scale.factor[c], 2 / (high - low), 1e-12);
    }
    rcn_context_destroy(ctx);
}

static void boxes_are_normalized(void) {
    static scene s;
    static float out[3 * N];
    const int64_t first[3] = {3, 5, 2}, size[3] = {11, 7, 4}, origin[3] = {0, 0, 0},
                  whole[3] = {X, Y, Z};
    rcn_context *ctx = make_context(1);
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    rcn_scale scale;
    scene_make(&s);
    rule.kind = RCN_NORMALIZE_FIXED;
    rule.channels = 3;
    for (int c = 0; c < 3; ++c) {
        rule.mean[c] = 10 * c - 4;
        rule.std[c] = c + 2;
    }
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 3), RCN_OK);
    rcn_normalize_box(out, &scale, s.channels, first, size);
    int64_t at = 0;
    for (int c = 0; c < 3; ++c)
        for (int64_t z = 0; z < 4; ++z)
            for (int64_t y = 0; y < 7; ++y)
                for (int64_t x = 0; x < 11; ++x) {
                    const double value = voxel(&s, c, 3 + x + X * (5 + y + Y * (2 + z)));
                    CHECK_NEAR(out[at++], (value - (10 * c - 4)) / (c + 2), 1e-4);
                }

    /* A window of width 200 around -900: -1000 becomes -1, -800 becomes 1, and no further. */
    rule.kind = RCN_NORMALIZE_WINDOW;
    rule.center = -900;
    rule.width = 200;
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 1), RCN_OK);
    rcn_normalize_box(out, &scale, s.channels, origin, whole);
    int below = 0, between = 0, above = 0;
    for (int i = 0; i < N; ++i) {
        const double value = voxel(&s, 0, i);
        CHECK_NEAR(out[i], value < -1000 ? -1 : value > -800 ? 1 : (value + 900) / 100, 1e-6);
        below += value < -1000;
        above += value > -800;
        between += value > -1000 && value < -800;
    }
    CHECK(below && between && above);
    rcn_context_destroy(ctx);
}

static void nothing_is_ever_nan(void) {
    enum { SIDE = 6, COUNT = SIDE * SIDE };
    double values[COUNT];
    float out[COUNT];
    const int64_t first[3] = {0, 0, 0}, size[3] = {SIDE, SIDE, 1};
    rcn_context *ctx = make_context(1);
    const rcn_channel channel = {{values, RCN_FLOAT64, 1, rcn_geometry_make(SIDE, SIDE, 1)}, 0};
    for (int content = 0; content < 5; ++content)
        for (int kind = RCN_NORMALIZE_FIXED; kind <= RCN_NORMALIZE_WINDOW; ++kind) {
            rcn_normalize rule = RCN_NORMALIZE_INIT;
            rcn_scale scale;
            for (int i = 0; i < COUNT; ++i)
                values[i] = content == 0   ? 7.3
                            : content == 1 ? NAN
                            : content == 2 ? (i % 3 ? (double)INFINITY : i)
                            : content == 3 ? (i % 2 ? 1e300 : -1e300)
                                           : (i % 4 ? 1e-320 * i : 0);
            rule.kind = (rcn_normalize_kind)kind;
            rule.channels = 1;
            rule.mean[0] = 7.3;
            rule.std[0] = 1e-30;
            CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, &channel, 1), RCN_OK);
            rcn_normalize_box(out, &scale, &channel, first, size);
            for (int i = 0; i < COUNT; ++i) {
                CHECK(isfinite(out[i]));
                if (content == 0 && kind != RCN_NORMALIZE_WINDOW) CHECK(out[i] == 0);
                if (!isfinite(values[i])) CHECK(out[i] == 0);
            }
        }
    rcn_context_destroy(ctx);
}

static void a_data_set_has_one_mean(void) {
    static scene s;
    rcn_context *ctx = make_context(2);
    rcn_moments moments = {0, {0}, {0}, {0}};
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    scene_make(&s);
    CHECK_STATUS(rcn_moments_normalize(&rule, ctx, &moments), RCN_EDATA);
    /* An image in two halves is the image; a large offset cancels nothing. */
    for (int i = 0; i < N; ++i) s.alone[i] = 1e6f + (float)(i % 5);
    rcn_channel half = s.channels[2];
    half.image.geometry.size[2] = 9;
    CHECK_STATUS(rcn_moments_add(&moments, ctx, &half, 1), RCN_OK);
    half.image.data = s.alone + X * Y * 9;
    half.image.geometry.size[2] = Z - 9;
    CHECK_STATUS(rcn_moments_add(&moments, ctx, &half, 1), RCN_OK);
    CHECK_STATUS(rcn_moments_normalize(&rule, ctx, &moments), RCN_OK);
    double mean = 0, squares = 0;
    for (int i = 0; i < N; ++i) mean += (double)(i % 5) / N;
    for (int i = 0; i < N; ++i) squares += pow(i % 5 - mean, 2);
    CHECK(rule.kind == RCN_NORMALIZE_FIXED && rule.channels == 1);
    CHECK_NEAR(rule.mean[0], 1e6 + mean, 1e-6);
    CHECK_NEAR(rule.std[0], sqrt(squares / N), 1e-9);
    CHECK_STATUS(rcn_moments_add(&moments, ctx, s.channels, 3), RCN_EINVALID);
    CHECK_ERROR(ctx, "3 channels");
    CHECK(moments.channels == 1);
    /* Constant in all images. */
    memset(&moments, 0, sizeof moments);
    for (int i = 0; i < N; ++i) s.alone[i] = 0.1f;
    CHECK_STATUS(rcn_moments_add(&moments, ctx, &s.channels[2], 1), RCN_OK);
    CHECK_STATUS(rcn_moments_normalize(&rule, ctx, &moments), RCN_OK);
    CHECK(rule.std[0] == 1);
    rcn_context_destroy(ctx);
}

/* Three processes with a part of the image each, one of them with none. */
static void measure_share(rcn_comm *comm, void *payload) {
    scene *s = payload;
    rcn_context *ctx = make_context(1);
    rcn_moments moments = {0, {0}, {0}, {0}};
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    const int cuts[4] = {0, 9, 9, Z};
    rcn_channel part = s->channels[2];
    part.image.data = s->alone + X * Y * cuts[comm->rank];
    part.image.geometry.size[2] = cuts[comm->rank + 1] - cuts[comm->rank];
    if (comm->rank != 1) CHECK_STATUS(rcn_moments_add(&moments, ctx, &part, 1), RCN_OK);
    CHECK_STATUS(rcn_moments_share(&moments, ctx, comm), RCN_OK);
    CHECK_STATUS(rcn_moments_normalize(&rule, ctx, &moments), RCN_OK);
    double mean = 0, squares = 0;
    for (int i = 0; i < N; ++i) mean += (double)(i % 5) / N;
    for (int i = 0; i < N; ++i) squares += pow(i % 5 - mean, 2);
    CHECK_NEAR(rule.mean[0], 1e6 + mean, 1e-6);
    CHECK_NEAR(rule.std[0], sqrt(squares / N), 1e-9);
    rcn_context_destroy(ctx);
}

static void processes_measure_together(void) {
    static scene s;
    static test_group group;
    scene_make(&s);
    for (int i = 0; i < N; ++i) s.alone[i] = 1e6f + (float)(i % 5);
    run_ranks(&group, 3, measure_share, &s);
}

static void threads_do_not_matter(void) {
    static scene s;
    rcn_context *one = make_context(1), *three = make_context(3);
    scene_make(&s);
    for (int kind = RCN_NORMALIZE_ZSCORE; kind <= RCN_NORMALIZE_PERCENTILE; ++kind) {
        rcn_normalize rule = RCN_NORMALIZE_INIT;
        rcn_scale a, b;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        rule.kind = (rcn_normalize_kind)kind;
        CHECK_STATUS(rcn_normalize_fit(&a, one, &rule, s.channels, 3), RCN_OK);
        CHECK_STATUS(rcn_normalize_fit(&b, three, &rule, s.channels, 3), RCN_OK);
        CHECK(!memcmp(a.shift, b.shift, sizeof a.shift));
        CHECK(!memcmp(a.factor, b.factor, sizeof a.factor));
    }
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

static void bad_rules_are_refused(void) {
    static scene s;
    rcn_context *ctx = make_context(1);
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    rcn_scale scale = {-1, {0}, {0}, 0, 0};
    scene_make(&s);
    CHECK(!rcn_normalize_check(&rule) && rcn_normalize_check(NULL));
    CHECK(!strcmp(rcn_normalize_name(RCN_NORMALIZE_WINDOW), "window"));
    CHECK(!rcn_normalize_name((rcn_normalize_kind)4));
    rule.kind = (rcn_normalize_kind)4;
    CHECK(rcn_normalize_check(&rule) != NULL);
    rule.kind = RCN_NORMALIZE_PERCENTILE;
    rule.lower = rule.upper;
    CHECK(rcn_normalize_check(&rule) != NULL);
    rule.kind = RCN_NORMALIZE_WINDOW;
    rule.width = 0;
    CHECK(rcn_normalize_check(&rule) != NULL);
    rule.kind = RCN_NORMALIZE_FIXED;
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 3), RCN_EINVALID);
    rule.channels = 1;
    rule.std[0] = 1;
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 3), RCN_EINVALID);
    CHECK_ERROR(ctx, "3 channels, but the normalization is for 1");
    rule.kind = RCN_NORMALIZE_ZSCORE;
    s.channels[1].component = 2;
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 3), RCN_EINVALID);
    s.channels[1].component = 1;
    s.channels[2].image.geometry.size[0] = X - 1;
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 3), RCN_EINVALID);
    CHECK_ERROR(ctx, "different sizes");
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, s.channels, 65), RCN_EINVALID);
    CHECK_STATUS(rcn_normalize_fit(&scale, ctx, &rule, NULL, 1), RCN_EINVALID);
    CHECK(scale.channels == -1);
    rcn_context_destroy(ctx);
}

static rcn_status fit_all(rcn_context *ctx, void *payload) {
    const scene *s = payload;
    rcn_status status = RCN_OK;
    rcn_moments moments = {0, {0}, {0}, {0}};
    for (int kind = RCN_NORMALIZE_ZSCORE; kind <= RCN_NORMALIZE_WINDOW && !status; ++kind) {
        rcn_normalize rule = RCN_NORMALIZE_INIT;
        rcn_scale scale;
        rule.kind = (rcn_normalize_kind)kind;
        status = rcn_normalize_fit(&scale, ctx, &rule, s->channels, 3);
    }
    return status ? status : rcn_moments_add(&moments, ctx, s->channels, 3);
}

static void failing_allocations_and_cancel(void) {
    static scene s;
    scene_make(&s);
    check_failing_allocations(fit_all, &s);
    check_cancelling(fit_all, &s, 12);
}

int main(void) {
    RUN(scales_are_those_of_a_naive_pass);
    RUN(boxes_are_normalized);
    RUN(nothing_is_ever_nan);
    RUN(a_data_set_has_one_mean);
    RUN(processes_measure_together);
    RUN(threads_do_not_matter);
    RUN(bad_rules_are_refused);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
