// SPDX-License-Identifier: Apache-2.0
/* Slices: what a page or a viewer shows of a volume, one plane at a time, along the volume's own
 * axes. Everything that is drawn of a volume in two dimensions is drawn from here.
 *
 *   which axis is cut, and how the slice lies on the screen
 *     rcn_plane_make(&plane, &geometry, RCN_VIEW_AXIAL);
 *   the image
 *     rcn_slice_window(&low, &high, ctx, &image, 0);
 *     rcn_slice_gray(rgba, ctx, &image, 0, slice, low, high);
 *   the votes, read once per slice, as a color for each voxel and as the raters' outlines
 *     rcn_slice_codes(codes, ctx, votes, slice);
 *     rcn_slice_paint_codes(rgba, codes, pixels, colors);
 *     rcn_slice_outlines(votes, codes, size, raters, draw, payload);
 *   a prediction, as colors and as lines where it reaches a level (rcn_contours.h)
 *     rcn_slice_readout(map, ctx, &levels, RCN_READOUT_EXPECTED, 0, slice);
 *     rcn_slice_paint_values(rgba, map, pixels, 0.05, 1, colors);
 *     rcn_contours_create(&contours, ctx, map, size[0], size[1], 0.5);
 *   onto a screen at any zoom, or into a picture for a page
 *     rcn_slice_draw(&screen, ctx, image, layer, &place);
 *     rcn_slice_fit(rgb, columns, rows, rgba, &part);
 *
 * A slice cuts one axis at one index. Its pixels are those of the other two axes, the one of the
 * lower number running fastest: a slice along z has X * Y pixels, one along x has Y * Z. Pixels are
 * 8-bit RGBA. A slice is small, so its pixels are worked out on the calling thread; drawing onto a
 * screen and figures of the whole volume use all threads.
 */
#ifndef RCN_SLICE_H
#define RCN_SLICE_H

#include "rcn_calib.h"
#include "rcn_color.h"
#include "rcn_contours.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- how a volume lies before the reader ------------------------------------------------------
 */

/* The views that radiologists know. Axial: as seen from the feet, front up. Coronal: as seen from
 * the front. Sagittal: as seen from the left, front to the left. */
typedef enum rcn_view { RCN_VIEW_AXIAL = 0, RCN_VIEW_CORONAL = 1, RCN_VIEW_SAGITTAL = 2 } rcn_view;

/* How the slices of a view lie on the screen: which axis of the volume is cut, and which ones run
 * to the right and up. Made once for a volume and a view; plain data. */
typedef struct rcn_plane {
    int axis;       /* of the volume: the one that is cut, the nearest to the view's normal */
    int right, up;  /* the axes that run to the right and up on the screen ... */
    int right_sign; /* ... 1: with growing index, -1: with falling index */
    int up_sign;
    char letters[4][4]; /* what lies left, right, below, above: R L A P S I, two or three of them
                           for an oblique direction; "" for a file with two dimensions */
} rcn_plane;

/* The plane of a view. An oblique volume is shown along its own axes, each taken for the world's
 * axis it is nearest to. A file with two dimensions is shown as a picture is: y down. World axes
 * are ITK's (x to the left, y to the back, z to the head). */
RCN_API void rcn_plane_make(rcn_plane *out, const rcn_geometry *geometry, rcn_view view);

/* The same for the slices along one axis of the volume: returns the view that cuts this axis. (A
 * file with two dimensions has slices along z only.) */
RCN_API rcn_view rcn_plane_along(rcn_plane *out, const rcn_geometry *geometry, int axis);

/* ---- reading a slice --------------------------------------------------------------------------
 */

/* One slice of a volume: the axis that is cut, and where. */
typedef struct rcn_slice {
    int axis; /* 0, 1, 2 */
    int64_t index;
} rcn_slice;

/* size[0], size[1] = pixels along the axes across `axis`, in ascending order; returns their
 * product. */
RCN_API int64_t rcn_slice_size(int64_t size[2], const rcn_geometry *geometry, int axis);

/* rgba[4 * pixels] = one component in gray: `low` and less is black, `high` and more white; black
 * where it is not a number.
 *   RCN_EINVALID  no such slice or component; low not below high */
RCN_API rcn_status rcn_slice_gray(uint8_t *rgba, rcn_context *ctx, const rcn_image *image,
                                  int component, rcn_slice slice, double low, double high);

/* The same of an image whose first three components are red, green and blue. */
RCN_API rcn_status rcn_slice_rgb(uint8_t *rgba, rcn_context *ctx, const rcn_image *image,
                                 rcn_slice slice, double low, double high);

/* The probability of exactly so many raters: a readout for looking at, beside those of rcn_readout.
 */
#define RCN_SLICE_LEVEL 4

/* out[pixels] = a readout of a map of levels (float32, K + 1 components): an rcn_readout, with
 * `number` = t of "at least", or RCN_SLICE_LEVEL with `number` = k. Of an image with one component,
 * which is a probability already: that. 0 where a voxel's levels cannot be used. */
RCN_API rcn_status rcn_slice_readout(float *out, rcn_context *ctx, const rcn_image *levels,
                                     int readout, int number, rcn_slice slice);

/* codes[pixels] = each voxel's vote code (rcn_votes.h). */
RCN_API rcn_status rcn_slice_codes(uint32_t *codes, rcn_context *ctx, const rcn_votes *votes,
                                   rcn_slice slice);

/* out[pixels] = table[vote code of the voxel]: rcn_votes_expand() for one slice. */
RCN_API rcn_status rcn_slice_expand(float *out, rcn_context *ctx, const rcn_votes *votes,
                                    const float *table, rcn_slice slice);

/* ---- painting ---------------------------------------------------------------------------------
 *
 * Each lays colors with their opacity (the fourth byte) over what is in rgba; all zeros are an
 * empty, transparent layer.
 */

/* colors: four bytes for each pattern of the votes. */
RCN_API void rcn_slice_paint_codes(uint8_t *rgba, const uint32_t *codes, int64_t pixels,
                                   const uint8_t *colors);

/* The pixels whose value lies in [lower, upper] get colors[4 * i], i = 0 ... 255 for 0 ... 1. */
RCN_API void rcn_slice_paint_values(uint8_t *rgba, const float *values, int64_t pixels,
                                    double lower, double upper, const uint8_t colors[1024]);

/* ---- outlines ---------------------------------------------------------------------------------
 *
 * Half way between pixel centers; pixel (0, 0) has its center at 0, 0. What reaches the edge of the
 * slice is closed half a pixel beyond the last center. Two pixels that touch by a corner are not
 * joined. (Contours of maps: rcn_contours_create().)
 */

/* One straight piece of a rater's outline: x, y of its two ends. */
typedef void (*rcn_segment_fn)(int rater, const float segment[4], void *payload);

/* The outlines of all raters whose bit is set, from the codes of a slice of size[0] x size[1]
 * pixels, in one pass. */
RCN_API void rcn_slice_outlines(const rcn_votes *votes, const uint32_t *codes,
                                const int64_t size[2], uint64_t raters, rcn_segment_fn segment,
                                void *payload);

/* ---- onto the screen --------------------------------------------------------------------------
 *
 * A screen is columns x rows of 32-bit pixels 0xFFRRGGBB, row after row from the top.
 */

/* Owned by the caller, as all pixels here. */
typedef struct rcn_screen {
    uint32_t *pixels;
    int64_t columns, rows;
} rcn_screen;

/* Where a slice lies on a screen: the slice's pixel that is seen at the center of the screen's
 * first pixel, and how many slice pixels a screen pixel steps; both along the screen's columns and
 * rows. A negative step turns the slice over. */
typedef struct rcn_slice_place {
    int64_t size[2]; /* of the slice */
    int transposed;  /* non-zero: the slice's second axis runs along the screen's columns */
    double first[2]; /* along the screen's columns, rows */
    double step[2];
} rcn_slice_place;

/* Draws image and layer (each 4 * size[0] * size[1] bytes or NULL), black elsewhere. The image is
 * interpolated; the layer is not, so that every voxel keeps its own color. The same bits for any
 * number of threads. */
RCN_API rcn_status rcn_slice_draw(const rcn_screen *screen, rcn_context *ctx, const uint8_t *image,
                                  const uint8_t *layer, const rcn_slice_place *lies);

/* A smooth line with round ends between two points of the screen (a pixel's center is at a whole
 * number), `width` pixels wide, over what is there. Parts outside are cut off. */
RCN_API void rcn_screen_line(const rcn_screen *screen, const double from[2], const double to[2],
                             double width, const uint8_t color[3]);

/* ---- into a picture for a page -----------------------------------------------------------------
 *
 * Pages get pixels, not a zoom: a browser scales them. A picture is 8-bit RGB, row after row.
 */

/* The part of a slice that a picture shows, and how it is turned; all by the slice's own axes. */
typedef struct rcn_slice_part {
    int64_t width;            /* of the whole slice: pixels in a row */
    int64_t first[2], end[2]; /* end is excluded */
    int flip[2];              /* non-zero: the last index comes first */
    int transposed;           /* non-zero: the slice's second axis runs along the picture's rows */
} rcn_slice_part;

/* rgb[3 * columns * rows] = that part of the slice. Where it shrinks, a pixel is the mean of those
 * it stands for; where it grows, the nearest one. */
RCN_API void rcn_slice_fit(uint8_t *rgb, int64_t columns, int64_t rows, const uint8_t *rgba,
                           const rcn_slice_part *part);

/* ---- which range of gray ---------------------------------------------------------------------
 */

/* A range of gray that suits the image: percentiles 0.5 and 99.5 of some of its slices, spread
 * evenly. Of a constant image [value - 0.5, value + 0.5]. */
RCN_API rcn_status rcn_slice_window(double *low, double *high, rcn_context *ctx,
                                    const rcn_image *image, int component);

/* A range that suits slice z alone, for a picture without a slider: mean - 2.5 to mean + 4 standard
 * deviations, or the smallest and largest value where these are nearer. Numbers that are not finite
 * do not count. Of a constant slice [value, value + 1]. */
RCN_API rcn_status rcn_slice_contrast(double *low, double *high, rcn_context *ctx,
                                      const rcn_image *image, int component, int64_t z);

/* ---- volumes -----------------------------------------------------------------------------------
 */

#define RCN_SLICE_STEPS 1000

/* counts[i] = voxels whose readout (as rcn_slice_readout()) is at least i / 1000, for i = 0 ...
 * 1000: with it the volume above any threshold is known at once. On failure or cancel counts are
 * unchanged. */
RCN_API rcn_status rcn_slice_counts(int64_t counts[RCN_SLICE_STEPS + 1], rcn_context *ctx,
                                    const rcn_image *levels, int readout, int number);

/* What a prediction says about one slice along z, so that a page can choose which ones to show. */
typedef struct rcn_slice_expectation {
    double expected;          /* voxels that a rater marks on average: the sum of expected shares */
    int64_t unsure;           /* voxels of an expected share from RCN_UNSURE to 1 - RCN_UNSURE */
    int64_t first[2], end[2]; /* of the voxels with a share of RCN_UNSURE and more; end is excluded,
                                 and first = end where there are none */
} rcn_slice_expectation;

/* out[size[2]] = each slice of a map (float32): K + 1 levels, or one probability, which then is the
 * share. The same bits for any number of threads. On failure or cancel out is unchanged. */
RCN_API rcn_status rcn_slice_expectations(rcn_slice_expectation *out, rcn_context *ctx,
                                          const rcn_image *levels);

#ifdef __cplusplus
}
#endif

#endif /* RCN_SLICE_H */
