// SPDX-License-Identifier: Apache-2.0
/* Contours: closed lines where a map crosses a level, by marching squares with linear interpolation
 * (Lorensen and Cline 1987 in two dimensions). Pages and windows draw outlines of predictions with
 * them; outlines of masks follow the edges of pixels and are in rcn_slice.h.
 *
 * Pixel (i, j) covers the square from (i, j) to (i + 1, j + 1), and its value is that of the
 * center, (i + 0.5, j + 0.5); beyond the border the map is below every level, so that lines close
 * along the border. Where two corners of a cell face each other, its mean decides whether they
 * belong together. Lines run clockwise (x to the right, y down) around what is at or above the
 * level and the other way round its holes, never touch each other, and so can be filled by the
 * even-odd rule. Not-a-number is below every level.
 *
 *     rcn_contours *contours = NULL;
 *     rcn_contours_create(&contours, ctx, map, columns, rows, 0.5);
 *     for (int64_t line = 0; line < contours->lines; ++line)
 *         for (int64_t p = contours->first[line]; p < contours->first[line + 1]; ++p)
 *             draw_to(contours->xy[2 * p], contours->xy[2 * p + 1]);
 *     rcn_contours_destroy(contours, ctx);
 */
#ifndef RCN_CONTOURS_H
#define RCN_CONTOURS_H

#include "rcn_context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The lines of one map, in one block. Their order is that of their first edge in the map, row by
 * row: the same map gives the same lines in the same order. No lines: first[0] is 0. To read;
 * nothing in it is the caller's to change or free. */
typedef struct rcn_contours {
    int64_t lines;
    int64_t *first; /* [lines + 1]: the points of line i are first[i] ... first[i + 1] - 1 */
    float *xy;      /* x and y of each point; a line's last point is followed by its first */
} rcn_contours;

/* The contours of map[columns * rows] at a level, on the calling thread. The map is only read
 * during the call, which needs eight bytes for each pixel beside the lines.
 *   RCN_EINVALID  an empty map, or one with more than 2^29 pixels (a frame of one pixel included)
 *   RCN_ENOMEM    no memory
 * On failure *out is unchanged. */
RCN_API rcn_status rcn_contours_create(rcn_contours **out, rcn_context *ctx, const float *map,
                                       int64_t columns, int64_t rows, double level);

/* NULL is fine. `ctx` is the context that it was created with. */
RCN_API void rcn_contours_destroy(rcn_contours *contours, rcn_context *ctx);

#ifdef __cplusplus
}
#endif

#endif /* RCN_CONTOURS_H */
