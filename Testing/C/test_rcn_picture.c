// SPDX-License-Identifier: Apache-2.0
/* Colours: what is brighter has more raters, and neighbouring levels can be told apart by
 * everybody. Contours against what the pixels say. (The pictures themselves are looked at in
 * test_rcn_phantom.c.) */
#include "rcn/rcn_picture.h"

#include "rcn_test.h"

static double linear_light(uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double lab_curve(double t) {
    return t > 216.0 / 24389 ? cbrt(t) : t * 24389 / 27 / 116 + 16.0 / 116;
}

/* CIE L*a*b* (D65) of a colour as seen through `eye`, a matrix on linear sRGB. */
static void lab_seen(double lab[3], const uint8_t rgb[3], const double eye[3][3]) {
    static const double to_xyz[3][3] = {{0.4124564, 0.3575761, 0.1804375},
                                        {0.2126729, 0.7151522, 0.0721750},
                                        {0.0193339, 0.1191920, 0.9503041}};
    static const double white[3] = {0.95047, 1, 1.08883};
    double seen[3], f[3];
    for (int i = 0; i < 3; ++i) {
        seen[i] = 0;
        for (int j = 0; j < 3; ++j) seen[i] += eye[i][j] * linear_light(rgb[j]);
        seen[i] = fmin(fmax(seen[i], 0), 1);
    }
    for (int i = 0; i < 3; ++i) {
        double xyz = 0;
        for (int j = 0; j < 3; ++j) xyz += to_xyz[i][j] * seen[j];
        f[i] = lab_curve(xyz / white[i]);
    }
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

static const double normal_eye[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

/* Dichromats as in Vienot, Brettel and Mollon 1999, for sRGB's primaries. */
static const double protanope[3][3] = {
    {0.11238, 0.88762, 0}, {0.11238, 0.88762, 0}, {0.00401, -0.00401, 1}};
static const double deuteranope[3][3] = {
    {0.29275, 0.70725, 0}, {0.29275, 0.70725, 0}, {-0.02234, 0.02234, 1}};
/* No colour at all. */
static const double monochromat[3][3] = {{0.2126729, 0.7151522, 0.0721750},
                                         {0.2126729, 0.7151522, 0.0721750},
                                         {0.2126729, 0.7151522, 0.0721750}};

static void brightness_grows(void) {
    for (int p = 0; p < RCN_PALETTES; ++p) {
        double last = -1, lab[3];
        for (int i = 0; i <= 64; ++i) {
            uint8_t rgb[3];
            rcn_color_palette(rgb, (rcn_palette)p, i / 64.0);
            lab_seen(lab, rgb, normal_eye);
            CHECK(lab[0] > last);
            last = lab[0];
        }
    }
}

/* The smallest distance (CIE 1976) between neighbouring levels 1 ... K. A difference of 2.3 is just
 * noticed side by side; levels lie apart in a picture, so several times that is asked for. */
static double nearest_neighbours(rcn_palette palette, int raters, const double eye[3][3]) {
    double nearest = INFINITY;
    for (int k = 1; k < raters; ++k) {
        uint8_t rgb[2][3];
        double lab[2][3];
        for (int i = 0; i < 2; ++i) {
            rcn_color_palette(rgb[i], palette, (double)(k + i) / raters);
            lab_seen(lab[i], rgb[i], eye);
        }
        nearest = fmin(nearest, hypot(hypot(lab[0][0] - lab[1][0], lab[0][1] - lab[1][1]),
                                      lab[0][2] - lab[1][2]));
    }
    return nearest;
}

static void levels_differ_for_all_eyes(void) {
    for (int p = 0; p < RCN_PALETTES; ++p)
        for (int raters = 2; raters <= 7; ++raters) {
            CHECK(nearest_neighbours((rcn_palette)p, raters, normal_eye) > 8);
            CHECK(nearest_neighbours((rcn_palette)p, raters, protanope) > 8);
            CHECK(nearest_neighbours((rcn_palette)p, raters, deuteranope) > 8);
            CHECK(nearest_neighbours((rcn_palette)p, raters, monochromat) > 6);
        }
}

static void edges(void) {
    uint8_t low[3], high[3], other[3];
    for (int p = 0; p < RCN_PALETTES; ++p) {
        rcn_color_palette(low, (rcn_palette)p, 0);
        rcn_color_palette(other, (rcn_palette)p, -3);
        CHECK(memcmp(low, other, 3) == 0);
        rcn_color_palette(other, (rcn_palette)p, NAN);
        CHECK(memcmp(low, other, 3) == 0);
        rcn_color_palette(high, (rcn_palette)p, 1);
        rcn_color_palette(other, (rcn_palette)p, INFINITY);
        CHECK(memcmp(high, other, 3) == 0);
        CHECK(rcn_palette_name((rcn_palette)p) && strlen(rcn_palette_name((rcn_palette)p)) > 0);
    }
    CHECK(!rcn_palette_name(RCN_PALETTES));
    rcn_color_palette(low, (rcn_palette)99, 0.3);
    rcn_color_share(high, 0.3);
    CHECK(memcmp(low, high, 3) == 0);
}

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
    /* a diamond around the centre (1.5, 1.5), half a pixel to each side */
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

/* On a random map: every pixel's centre is inside by the even-odd rule exactly where it is at or
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
            /* a hair off the centre: lines run through centres' rows only between them */
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
            /* centres within a hair of the level may fall on either side */
            wrong += inside != (map[i] >= level) && fabs(map[i] - level) > 0.01;
        }
        CHECK(wrong == 0);
        CHECK(doubled_area(contours) > 0);
        rcn_contours_destroy(contours, ctx);
    }
    rcn_context_destroy(ctx);
}

static void slices(void) {
    const rcn_geometry geometry = rcn_geometry_make(3, 2, 2);
    int16_t data[36] = {0};
    uint8_t marks[2][12] = {{0}}, rgb[18];
    float out[6];
    rcn_context *ctx = make_context(1);
    const rcn_image image = {data, RCN_INT16, 3, geometry};
    marks[0][7] = marks[1][7] = marks[1][8] = 1;
    rcn_mask masks[2] = {{{marks[0], RCN_UINT8, 1, geometry}, 0, NULL, 0, NULL},
                         {{marks[1], RCN_UINT8, 1, geometry}, 0, NULL, 0, NULL}};
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 2), RCN_OK);
    const float table[4] = {0, 10, 20, 30};
    CHECK_STATUS(rcn_picture_votes(out, ctx, votes, table, 1), RCN_OK);
    for (int i = 0; i < 6; ++i) CHECK(out[i] == (i == 1 ? 30 : i == 2 ? 20 : 0));
    CHECK_STATUS(rcn_picture_votes(out, ctx, votes, table, -1), RCN_EINVALID);
    rcn_votes_destroy(votes);

    uint8_t colors[48];
    for (int i = 0; i < 48; ++i) colors[i] = (uint8_t)i;
    const rcn_image picture = {colors, RCN_UINT8, 4, geometry};
    CHECK_STATUS(rcn_picture_color(rgb, ctx, &picture, 1), RCN_OK);
    CHECK(rgb[0] == 24 && rgb[3] == 28 && rgb[5] == 30);
    CHECK_STATUS(rcn_picture_color(rgb, ctx, &image, 0), RCN_EINVALID);
    rcn_context_destroy(ctx);
}

static void fitting(void) {
    uint8_t rgb[3 * 24], out[3 * 24];
    for (int i = 0; i < 24; ++i)
        for (int c = 0; c < 3; ++c) rgb[3 * i + c] = (uint8_t)(10 * (i % 6) + i / 6);
    const rcn_picture_part part = {{2, 1}, {6, 3}, {0, 0}}, turned = {{2, 1}, {6, 3}, {1, 1}};
    rcn_picture_fit(out, 4, 2, rgb, 6, &part); /* cut only */
    CHECK(out[0] == 21 && out[3 * 3] == 51 && out[3 * 4] == 22 && out[3 * 7 + 2] == 52);
    rcn_picture_fit(out, 2, 1, rgb, 6, &part); /* means of 2 x 2 */
    CHECK(out[0] == (21 + 31 + 22 + 32 + 2) / 4 && out[3] == (41 + 51 + 42 + 52 + 2) / 4);
    rcn_picture_fit(out, 8, 2, rgb, 6, &part); /* every pixel twice */
    CHECK(out[0] == 21 && out[3] == 21 && out[6] == 31);
    rcn_picture_fit(out, 4, 2, rgb, 6, &turned);
    CHECK(out[0] == 52 && out[3 * 3] == 22 && out[3 * 4] == 51 && out[3 * 7] == 21);
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
    RUN(brightness_grows);
    RUN(levels_differ_for_all_eyes);
    RUN(edges);
    RUN(one_pixel);
    RUN(borders_and_holes);
    RUN(saddles);
    RUN(as_the_pixels_say);
    RUN(slices);
    RUN(fitting);
    RUN(bad_maps);
    RUN(failing_allocations);
    return TEST_RESULT;
}
