// SPDX-License-Identifier: Apache-2.0
/* Slices: what a viewer shows of a volume, one plane at a time, along the volume's own axes.
 *
 *     rcn_plane_make(&plane, &geometry, RCN_VIEW_AXIAL);       which axis, and how it lies on
 * screen rcn_slice_gray(rgba, ctx, &image, 0, slice, low, high);  the image below
 *     rcn_slice_codes(codes, ctx, votes, slice);               the votes, once per slice, then
 *     rcn_slice_paint_codes(rgba, codes, pixels, colors);      ... a colour for each voxel
 *     rcn_slice_outlines(votes, codes, size, raters, draw, 0); ... and the raters' outlines
 *
 * A slice cuts one axis at one index. Its pixels are those of the other two axes, the one of the
 * lower number running fastest: a slice along z has X * Y pixels, one along x has Y * Z. Pixels are
 * 8-bit RGBA. A slice is small, so all of this runs on the calling thread.
 */
#ifndef RCN_SLICE_H
#define RCN_SLICE_H

#include "rcn_calib.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- how a volume lies before the reader ------------------------------------------------------
 */

/* The views that radiologists know. Axial: as seen from the feet, front up. Coronal: as seen from
 * the front. Sagittal: as seen from the left, front to the left. */
typedef enum rcn_view { RCN_VIEW_AXIAL = 0, RCN_VIEW_CORONAL = 1, RCN_VIEW_SAGITTAL = 2 } rcn_view;

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

/* ---- reading a slice --------------------------------------------------------------------------
 */

typedef struct rcn_slice {
    int axis; /* 0, 1, 2 */
    int64_t index;
} rcn_slice;

/* NULL if the volume has this slice, otherwise a sentence. */
RCN_API const char *rcn_slice_check(const rcn_geometry *geometry, rcn_slice slice);

/* size[0], size[1] = pixels along the axes across `axis`, in ascending order; returns their
 * product. */
RCN_API int64_t rcn_slice_size(int64_t size[2], const rcn_geometry *geometry, int axis);

/* out[pixels] = one component as it is; 0 where it is not a number. */
RCN_API rcn_status rcn_slice_values(float *out, rcn_context *ctx, const rcn_image *image,
                                    int component, rcn_slice slice);

/* rgba[4 * pixels] = one component in grey: `low` and less is black, `high` and more white. */
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

/* ---- painting ---------------------------------------------------------------------------------
 *
 * Each lays colours with their opacity (the fourth byte) over what is in rgba; all zeros are an
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
 * Half way between pixel centres; pixel (0, 0) has its centre at 0, 0. What reaches the edge of the
 * slice is closed half a pixel beyond the last centre. Two pixels that touch by a corner are not
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

typedef struct rcn_screen {
    uint32_t *pixels;
    int64_t columns, rows;
} rcn_screen;

/* Where a slice lies on a screen: the slice's pixel that is seen at the centre of the screen's
 * first pixel, and how many slice pixels a screen pixel steps; both along the screen's columns and
 * rows. A negative step turns the slice over. */
typedef struct rcn_slice_place {
    int64_t size[2]; /* of the slice */
    int transposed;  /* non-zero: the slice's second axis runs along the screen's columns */
    double first[2]; /* along the screen's columns, rows */
    double step[2];
} rcn_slice_place;

/* Draws image and layer (each 4 * size[0] * size[1] bytes or NULL), black elsewhere. The image is
 * interpolated; the layer is not, so that every voxel keeps its own colour. The same bits for any
 * number of threads. */
RCN_API rcn_status rcn_slice_draw(const rcn_screen *screen, rcn_context *ctx, const uint8_t *image,
                                  const uint8_t *layer, const rcn_slice_place *lies);

/* A smooth line with round ends between two points of the screen (a pixel's centre is at a whole
 * number), `width` pixels wide, over what is there. Parts outside are cut off. */
RCN_API void rcn_screen_line(const rcn_screen *screen, const double from[2], const double to[2],
                             double width, const uint8_t color[3]);

/* ---- about a whole volume ---------------------------------------------------------------------
 */

/* A range of grey that suits the image: percentiles 0.5 and 99.5 of some of its slices, spread
 * evenly. Of a constant image [value - 0.5, value + 0.5]. */
RCN_API rcn_status rcn_slice_window(double *low, double *high, rcn_context *ctx,
                                    const rcn_image *image, int component);

#define RCN_SLICE_STEPS 1000

/* counts[i] = voxels whose readout (as rcn_slice_readout()) is at least i / 1000, for i = 0 ...
 * 1000: with it the volume above any threshold is known at once. On failure or cancel counts are
 * unchanged. */
RCN_API rcn_status rcn_slice_counts(int64_t counts[RCN_SLICE_STEPS + 1], rcn_context *ctx,
                                    const rcn_image *levels, int readout, int number);

#ifdef __cplusplus
}
#endif

#endif /* RCN_SLICE_H */
