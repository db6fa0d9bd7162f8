// SPDX-License-Identifier: Apache-2.0
/* Pictures of slices: grey image, consensus colours, contours. 8-bit RGB, row after row.
 *
 * The colours of the levels run from dark green (a single rater) to yellow (all of them); their
 * brightness grows with the level, so that they can be told apart without seeing colour.
 */
#ifndef RCN_PICTURE_H
#define RCN_PICTURE_H

#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Colours for shares of raters. In all of them brightness grows with the share; the last three are
 * the choice of people who cannot tell red from green or see no colour. Values are stored in files.
 */
typedef enum rcn_palette {
    RCN_PALETTE_GREEN = 0,  /* dark green to yellow: the default */
    RCN_PALETTE_BLUE = 1,   /* dark blue over grey to yellow */
    RCN_PALETTE_VIOLET = 2, /* dark violet over red to cream */
    RCN_PALETTE_GRAY = 3,   /* dark grey to white: for print */
    RCN_PALETTES            /* how many there are */
} rcn_palette;

/* "green", "blue", "violet", "gray"; NULL for a number that is no palette. */
RCN_API const char *rcn_palette_name(rcn_palette palette);

/* Colour of a share of raters, or of a probability: 0 ... 1. A number that is no palette gives the
 * default's. */
RCN_API void rcn_color_palette(uint8_t rgb[3], rcn_palette palette, double share);

/* The same in the default palette. */
RCN_API void rcn_color_share(uint8_t rgb[3], double share);

/* A rater's own colour, number 0, 1, ...: eight that are safe for colour-blind people (Okabe and
 * Ito), then again from the start. */
RCN_API void rcn_color_rater(uint8_t rgb[3], int rater);

/* rgb[3 * X * Y] = slice z of the image's first component in grey, from dark (mean - 2.5 standard
 * deviations of the slice, or its smallest value) to bright (mean + 4, or the largest value). */
RCN_API rcn_status rcn_picture_gray(uint8_t *rgb, rcn_context *ctx, const rcn_image *image,
                                    int64_t z);

/* Blends the colour of map[voxel] (a share of raters or probability, 0 ... 1) over slice z; voxels
 * below `threshold` stay as they are. opacity: 0 ... 1. */
RCN_API rcn_status rcn_picture_overlay(uint8_t *rgb, rcn_context *ctx, const float *map,
                                       const rcn_geometry *geometry, int64_t z, double threshold,
                                       double opacity);

/* Draws the border of one rater's mask on slice z: marked pixels with an unmarked neighbour. */
RCN_API rcn_status rcn_picture_contour(uint8_t *rgb, rcn_context *ctx, const rcn_votes *votes,
                                       int rater, int64_t z, const uint8_t color[3]);

/* The same in the image's own colours: 8-bit components, red, green and blue first. */
RCN_API rcn_status rcn_picture_color(uint8_t *rgb, rcn_context *ctx, const rcn_image *image,
                                     int64_t z);

/* A part of a picture, at another size or turned over. */
typedef struct rcn_picture_part {
    int64_t first[2], end[2]; /* columns and rows of the picture; end is excluded */
    int flip[2];              /* non-zero: the last column (row) comes first */
} rcn_picture_part;

/* out[3 * columns * rows] = the part of a picture `width` pixels wide. Where it shrinks, a pixel is
 * the mean of those it stands for; where it grows, the nearest one. */
RCN_API void rcn_picture_fit(uint8_t *out, int64_t columns, int64_t rows, const uint8_t *rgb,
                             int64_t width, const rcn_picture_part *part);

/* out[X * Y] = table[code of the voxel] on slice z: rcn_votes_expand() for one slice. */
RCN_API rcn_status rcn_picture_votes(float *out, rcn_context *ctx, const rcn_votes *votes,
                                     const float *table, int64_t z);

/* ---- contours ----------------------------------------------------------------------------------
 *
 * Where a map crosses a level, as closed lines: marching squares with linear interpolation
 * (Lorensen and Cline 1987 in two dimensions). Pixel (i, j) covers the square from (i, j) to
 * (i + 1, j + 1), and its value is that of the centre; beyond the border the map is below every
 * level, so that lines close along the border. Where two corners of a cell face each other, its
 * mean decides whether they belong together. Lines run clockwise (x to the right, y down) around
 * what is at or above the level and the other way round its holes, never touch each other, and so
 * can be filled by the even-odd rule. Not-a-number is below every level.
 */
typedef struct rcn_contours {
    int64_t lines;
    int64_t *first; /* [lines + 1]: the points of line i are first[i] ... first[i + 1] - 1 */
    float *xy;      /* x and y of each point; a line's last point is followed by its first */
} rcn_contours;

/* The contours of map[columns * rows] at a level.
 *   RCN_EINVALID  an empty map, or one with more than 2^29 pixels */
RCN_API rcn_status rcn_contours_create(rcn_contours **out, rcn_context *ctx, const float *map,
                                       int64_t columns, int64_t rows, double level);

/* NULL is fine. */
RCN_API void rcn_contours_destroy(rcn_contours *contours, rcn_context *ctx);

#ifdef __cplusplus
}
#endif

#endif /* RCN_PICTURE_H */
