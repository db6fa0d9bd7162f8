// SPDX-License-Identifier: Apache-2.0
/* Contours against what the pixels say. */
#include "rcn/rcn_contours.h"

#include "rcn_test.h"

/* Twice the area inside all lines, holes taken away; positive: clockwise with y down. */
static double doubled_area(const rcn_contours *contours) {
    double area = 0;
    for (int64_t line = 0; line < contours->lines; ++line) {
        const int64_t first = contours->first[line], end = contours->first[line + 1];
        for (int64_t i = first; i < end; ++i) {
            const float *a = contours->xy + 2 * i,
                        *b = contours->xy + 2 * (i + 1 < end ? i + 1 : first);
            area += (double)a[0] * b[1] - (double)b[0] * a[1];
        }
    }
    return area;
}

static void one_pixel(void) {
    const float map[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
    rcn_context *ctx = make_context(1);
    rcn_contours *contours = NULL;
    CHECK_STATUS(rcn_contours_create(&contours, ctx, map, 3, 3, 0.5), RCN_OK);
    /* a diamond around the center (1.5, 1.5), half a pixel to each side */
    CHECK(contours->lines == 1 && contours->first[1] == 4);
    for (int i = 0; i < 4; ++i) {
        const double x = contours->xy[2 * i], y = contours->xy[2 * i + 1];
        CHECK_NEAR(fabs(x - 1.5) + fabs(y - 1.5), 0.5, 1e-6);
    }
    CHECK_NEAR(doubled_area(contours), 1, 1e-6);
    rcn_contours_destroy(contours, ctx);
    /* the level moves the line linearly */
    CHECK_STATUS(rcn_contours_create(&contours, ctx, map, 3, 3, 0.25), RCN_OK);
    CHECK_NEAR(fabs(contours->xy[0] - 1.5) + fabs(contours->xy[1] - 1.5), 0.75, 1e-6);
    rcn_contours_destroy(contours, ctx);
    CHECK_STATUS(rcn_contours_create(&contours, ctx, map, 3, 3, 1.5), RCN_OK);
    CHECK(contours->lines == 0 && contours->first[0] == 0);
    rcn_contours_destroy(contours, ctx);
    rcn_context_destroy(ctx);
}

static void borders_and_holes(void) {
    float map[6 * 5];
    rcn_context *ctx = make_context(1);
    rcn_contours *contours = NULL;
    for (int i = 0; i < 30; ++i) map[i] = 1;
    CHECK_STATUS(rcn_contours_create(&contours, ctx, map, 6, 5, 0.5), RCN_OK);
    /* the whole image: its border, the four corners cut */
    CHECK(contours->lines == 1);
    CHECK_NEAR(doubled_area(contours) / 2, 30 - 4 * 0.125, 1e-6);
    rcn_contours_destroy(contours, ctx);
    map[2 + 6 * 2] = NAN; /* a hole: below every level */
    map[3 + 6 * 2] = 0;
    CHECK_STATUS(rcn_contours_create(&contours, ctx, map, 6, 5, 0.5), RCN_OK);
    CHECK(contours->lines == 2);
    for (int64_t i = 0; i < 2 * contours->first[2]; ++i) CHECK(isfinite(contours->xy[i]));
    CHECK(doubled_area(contours) / 2 < 28.5 && doubled_area(contours) / 2 > 27);
    rcn_contours_destroy(contours, ctx);
    rcn_context_destroy(ctx);
}

/* Two pixels that touch by a corner: apart, unless the middle of the four is inside. */
static void saddles(void) {
    const float apart[4] = {1, 0, 0, 1}, together[4] = {1, 0.4f, 0.4f, 1};
    rcn_context *ctx = make_context(1);
    rcn_contours *contours = NULL;
    CHECK_STATUS(rcn_contours_create(&contours, ctx, apart, 2, 2, 0.6), RCN_OK);
    CHECK(contours->lines == 2);
    rcn_contours_destroy(contours, ctx);
    CHECK_STATUS(rcn_contours_create(&contours, ctx, together, 2, 2, 0.6), RCN_OK);
    CHECK(contours->lines == 1);
    rcn_contours_destroy(contours, ctx);
    rcn_context_destroy(ctx);
}

/* On a random map: every pixel's center is inside by the even-odd rule exactly where it is at or
 * above the level, and every crossing is used once. */
static void as_the_pixels_say(void) {
    enum { X = 37, Y = 29 };
    static float map[X * Y];
    uint32_t state = 5;
    rcn_context *ctx = make_context(1);
    for (int i = 0; i < X * Y; ++i) {
        state = 1664525u * state + 1013904223u;
        map[i] = (float)(state >> 8) / 16777216.0f;
    }
    for (int step = 1; step < 5; ++step) {
        const double level = step / 5.0;
        rcn_contours *contours = NULL;
        CHECK_STATUS(rcn_contours_create(&contours, ctx, map, X, Y, level), RCN_OK);
        int wrong = 0;
        for (int i = 0; i < X * Y; ++i) {
            /* a hair off the center: lines run through centers' rows only between them */
            const double x = i % X + 0.5, y = i / X + 0.5 + 1e-4;
            int inside = 0;
            for (int64_t line = 0; line < contours->lines; ++line) {
                const int64_t first = contours->first[line], end = contours->first[line + 1];
                for (int64_t k = first; k < end; ++k) {
                    const float *a = contours->xy + 2 * k,
                                *b = contours->xy + 2 * (k + 1 < end ? k + 1 : first);
                    if ((a[1] > y) != (b[1] > y) &&
                        x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0])
                        inside = !inside;
                }
            }
            /* centers within a hair of the level may fall on either side */
            wrong += inside != (map[i] >= level) && fabs(map[i] - level) > 0.01;
        }
        CHECK(wrong == 0);
        CHECK(doubled_area(contours) > 0);
        rcn_contours_destroy(contours, ctx);
    }
    rcn_context_destroy(ctx);
}

static rcn_status trace(rcn_context *ctx, void *payload) {
    rcn_contours *contours = NULL;
    const float map[4] = {1, 0, 0, 1};
    (void)payload;
    const rcn_status status = rcn_contours_create(&contours, ctx, map, 2, 2, 0.5);
    CHECK((status == RCN_OK) == (contours != NULL));
    rcn_contours_destroy(contours, ctx);
    return status;
}

static void bad_maps(void) {
    rcn_context *ctx = make_context(1);
    rcn_contours *contours = NULL;
    const float map[1] = {1};
    CHECK_STATUS(rcn_contours_create(&contours, ctx, map, 0, 3, 0.5), RCN_EINVALID);
    CHECK_STATUS(rcn_contours_create(&contours, ctx, map, 1 << 20, 1 << 20, 0.5), RCN_EINVALID);
    CHECK(contours == NULL);
    rcn_contours_destroy(NULL, ctx);
    rcn_context_destroy(ctx);
}

static void failing_allocations(void) { check_failing_allocations(trace, NULL); }

int main(void) {
    RUN(one_pixel);
    RUN(borders_and_holes);
    RUN(saddles);
    RUN(as_the_pixels_say);
    RUN(bad_maps);
    RUN(failing_allocations);
    return TEST_RESULT;
}
