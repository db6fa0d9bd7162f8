// SPDX-License-Identifier: Apache-2.0
/* The colors of consensus levels and raters: the same in pages, in the viewer and in Slicer.
 *
 * In every palette brightness grows with the share of raters, so that levels can be told apart
 * without seeing color, in print and on a bad projector. 8-bit red, green, blue.
 *
 * Functions here do not fail, keep no state and may be called from any thread.
 */
#ifndef RCN_COLOR_H
#define RCN_COLOR_H

#include <stdint.h>

#include "rcn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Colors for shares of raters. The last three are the choice of people who cannot tell red from
 * green or see no color. Values are stored in files. */
typedef enum rcn_palette {
    RCN_PALETTE_GREEN = 0,  /* dark green to yellow: the default */
    RCN_PALETTE_BLUE = 1,   /* dark blue over gray to yellow */
    RCN_PALETTE_VIOLET = 2, /* dark violet over red to cream */
    RCN_PALETTE_GRAY = 3,   /* dark gray to white: for print */
    RCN_PALETTES            /* how many there are */
} rcn_palette;

/* "green", "blue", "violet", "gray"; NULL for a number that is not a palette. */
RCN_API const char *rcn_palette_name(rcn_palette palette);

/* Color of a share of raters, or of a probability: 0 ... 1. A number that is not a palette gives
 * the default's. */
RCN_API void rcn_color_palette(uint8_t rgb[3], rcn_palette palette, double share);

/* The same in the default palette. */
RCN_API void rcn_color_share(uint8_t rgb[3], double share);

/* A rater's own color, number 0, 1, ...: eight that are safe for color-blind people (Okabe and
 * Ito), then again from the start. */
RCN_API void rcn_color_rater(uint8_t rgb[3], int rater);

#ifdef __cplusplus
}
#endif

#endif /* RCN_COLOR_H */
