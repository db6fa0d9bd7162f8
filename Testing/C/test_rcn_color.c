// SPDX-License-Identifier: Apache-2.0
/* Colors: what is brighter has more raters, and neighboring levels can be told apart by everybody.
 */
#include "rcn/rcn_color.h"

#include "rcn_test.h"

static double linear_light(uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double lab_curve(double t) {
    return t > 216.0 / 24389 ? cbrt(t) : t * 24389 / 27 / 116 + 16.0 / 116;
}

/* CIE L*a*b* (D65) of a color as seen through `eye`, a matrix on linear sRGB. */
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
/* No color at all. */
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

/* The smallest distance (CIE 1976) between neighboring levels 1 ... K. A difference of 2.3 is just
 * noticed side by side; levels lie apart in a picture, so several times that is asked for. */
static double nearest_neighbors(rcn_palette palette, int raters, const double eye[3][3]) {
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
            CHECK(nearest_neighbors((rcn_palette)p, raters, normal_eye) > 8);
            CHECK(nearest_neighbors((rcn_palette)p, raters, protanope) > 8);
            CHECK(nearest_neighbors((rcn_palette)p, raters, deuteranope) > 8);
            CHECK(nearest_neighbors((rcn_palette)p, raters, monochromat) > 6);
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

int main(void) {
    RUN(brightness_grows);
    RUN(levels_differ_for_all_eyes);
    RUN(edges);
    return TEST_RESULT;
}
