// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_color.h"

#include <stddef.h>

const char *rcn_palette_name(rcn_palette palette) {
    static const char *const names[RCN_PALETTES] = {"green", "blue", "violet", "gray"};
    return (unsigned)palette < RCN_PALETTES ? names[palette] : NULL;
}

void rcn_color_palette(uint8_t rgb[3], rcn_palette palette, double share) {
    /* Stops at equal distances; brightness rises in about equal steps. */
    static const double stops[RCN_PALETTES][4][3] = {
        {{0, 84, 46}, {38, 143, 66}, {141, 196, 62}, {255, 237, 64}},
        {{16, 42, 110}, {84, 98, 132}, {158, 155, 120}, {255, 226, 70}},
        {{66, 16, 110}, {166, 48, 120}, {238, 118, 92}, {254, 226, 170}},
        {{48, 48, 48}, {112, 112, 112}, {180, 180, 180}, {250, 250, 250}},
    };
    const double(*chosen)[3] = stops[(unsigned)palette < RCN_PALETTES ? palette : 0];
    const double clamped = share > 0 ? (share < 1 ? share : 1) : 0;
    const double position = clamped * 3;
    const int i = position >= 3 ? 2 : (int)position;
    for (int c = 0; c < 3; ++c)
        rgb[c] = (uint8_t)(chosen[i][c] + (position - i) * (chosen[i + 1][c] - chosen[i][c]) + 0.5);
}

void rcn_color_share(uint8_t rgb[3], double share) {
    rcn_color_palette(rgb, RCN_PALETTE_GREEN, share);
}

void rcn_color_rater(uint8_t rgb[3], int rater) {
    /* Okabe and Ito's palette, which people with any kind of color vision tell apart; gray for
     * black, which would vanish on an image. More than eight raters begin again. */
    static const uint8_t colors[8][3] = {{230, 159, 0},   {86, 180, 233}, {0, 158, 115},
                                         {240, 228, 66},  {0, 114, 178},  {213, 94, 0},
                                         {204, 121, 167}, {153, 153, 153}};
    for (int c = 0; c < 3; ++c) rgb[c] = colors[(rater % 8 + 8) % 8][c];
}
