// SPDX-License-Identifier: Apache-2.0
#include "rcn_distance.h"

#include "rcn_test.h"

enum { X = 13, Y = 9, Z = 6, N = X * Y * Z };
static const double SPACING[3] = {0.7, 0.9, 2.5};

/* A few voxels of the box, the same ones every time. */
static void seed(float *out, int64_t voxels, uint32_t state) {
    for (int64_t i = 0; i < voxels; ++i) {
        state = 1664525u * state + 1013904223u;
        out[i] = state >> 24 > 250 ? 0.0f : INFINITY;
    }
    out[voxels / 2] = 0;
}

static double squared(int64_t i, int64_t j, const int64_t size[3]) {
    double sum = 0;
    for (int64_t a = 0, stride = 1; a < 3; stride *= size[a++]) {
        const double step = SPACING[a] * (double)(i / stride % size[a] - j / stride % size[a]);
        sum += step * step;
    }
    return sum;
}

/* Every voxel against every other, in 3-D, in a slice and along a line; one and three threads. */
static void against_brute_force(void) {
    static const int64_t sizes[][3] = {{X, Y, Z}, {X, Y, 1}, {1, Y, Z}, {X, 1, 1}, {1, 1, Z}};
    rcn_context *one = make_context(1), *three = make_context(3);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        const int64_t *size = sizes[s], voxels = size[0] * size[1] * size[2];
        float start[N], out[N], again[N];
        seed(start, voxels, 3 + (uint32_t)s);
        memcpy(out, start, sizeof out);
        memcpy(again, start, sizeof again);
        CHECK_STATUS(rcn__distance_squared(out, one, size, SPACING), RCN_OK);
        CHECK_STATUS(rcn__distance_squared(again, three, size, SPACING), RCN_OK);
        CHECK(!memcmp(out, again, (size_t)voxels * sizeof *out));
        for (int64_t i = 0; i < voxels; ++i) {
            double nearest = INFINITY;
            for (int64_t j = 0; j < voxels; ++j)
                if (start[j] == 0) nearest = fmin(nearest, squared(i, j, size));
            CHECK_NEAR(sqrt(out[i]), sqrt(nearest), 1e-5);
        }
    }
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

static void nothing_to_measure_to(void) {
    static const int64_t size[3] = {3, 2, 2};
    float out[12];
    rcn_context *ctx = make_context(1);
    for (int i = 0; i < 12; ++i) out[i] = INFINITY;
    CHECK_STATUS(rcn__distance_squared(out, ctx, size, SPACING), RCN_OK);
    for (int i = 0; i < 12; ++i) CHECK(isinf(out[i]));
    rcn_context_destroy(ctx);
}

static rcn_status measure(rcn_context *ctx, void *payload) {
    static const int64_t size[3] = {X, Y, Z};
    float out[N];
    (void)payload;
    seed(out, N, 5);
    return rcn__distance_squared(out, ctx, size, SPACING);
}

static void failing_allocations_and_cancel(void) {
    check_failing_allocations(measure, NULL);
    check_cancelling(measure, NULL, 3);
}

int main(void) {
    RUN(against_brute_force);
    RUN(nothing_to_measure_to);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
