// SPDX-License-Identifier: Apache-2.0
/* Contours: closed lines where a map crosses a level, by marching squares with linear interpolation
 * (Lorensen and Cline 1987 in two dimensions). Pixel (i, j) covers the square from (i, j) to
 * (i + 1, j + 1), and its value is that of the center; beyond the border the map is below every
 * level, so that lines close along the border. Where two corners of a cell face each other, its
 * mean decides whether they belong together. Lines run clockwise (x to the right, y down) around
 * what is at or above the level and the other way round its holes, never touch each other, and so
 * can be filled by the even-odd rule. Not-a-number is below every level.
 */
#ifndef RCN_CONTOURS_H
#define RCN_CONTOURS_H

#include "rcn_context.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#endif /* RCN_CONTOURS_H */
