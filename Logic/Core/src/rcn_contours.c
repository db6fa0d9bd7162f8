// SPDX-License-Identifier: Apache-2.0
/* Marching squares, followed edge by edge.
 *
 * Samples are the pixels' centers with a frame of "below" around them, width + 2 by height + 2.
 * An edge lies between two neighboring samples: number 2 * sample to the right, 2 * sample + 1
 * downwards. Walked clockwise, each cell is left through some edges (from inside to outside) and
 * entered through others; a line goes from where it is left to where it is entered. The cell on an
 * edge's other side sees it the other way round, so that every crossed edge has exactly one next
 * edge, and following them closes every line.
 */
#include "rcn/rcn_contours.h"

#include <math.h>

#include "rcn_context_private.h"

typedef struct tracer {
    const float *map;
    int64_t columns, rows, stride; /* stride: samples in a row */
    double level;
    int32_t *next; /* by edge; -1: not crossed, or already drawn */
} tracer;

static double sample(const tracer *t, int64_t i, int64_t j) {
    return i < 1 || j < 1 || i > t->columns || j > t->rows ? -INFINITY
                                                           : t->map[(i - 1) + t->columns * (j - 1)];
}

static void link_cell(const tracer *t, int64_t i, int64_t j) {
    const int64_t at = i + t->stride * j;
    /* clockwise from the upper left */
    const double corner[4] = {sample(t, i, j), sample(t, i + 1, j), sample(t, i + 1, j + 1),
                              sample(t, i, j + 1)};
    const int64_t edge[4] = {2 * at, 2 * (at + 1) + 1, 2 * (at + t->stride), 2 * at + 1};
    int inside[4], crossed = 0;
    for (int k = 0; k < 4; ++k) inside[k] = corner[k] >= t->level;
    for (int k = 0; k < 4; ++k) crossed += inside[k] != inside[(k + 1) % 4];
    if (!crossed) return;
    /* Two corners inside, across from each other: whether they are joined in the middle is decided
     * by the mean of the four. Together, a line turns to the next entry clockwise; apart, to the
     * one before. */
    const int together =
        crossed == 4 && (corner[0] + corner[1] + corner[2] + corner[3]) / 4 >= t->level;
    for (int k = 0; k < 4; ++k) {
        if (!inside[k] || inside[(k + 1) % 4]) continue; /* not left through this edge */
        int entry = k;
        do entry = (entry + (together ? 1 : 3)) % 4;
        while (inside[entry] || !inside[(entry + 1) % 4]);
        t->next[edge[k]] = (int32_t)edge[entry];
    }
}

/* Where the level is crossed on an edge. */
static void place(float xy[2], const tracer *t, int64_t edge) {
    const int64_t i = edge / 2 % t->stride, j = edge / 2 / t->stride;
    const int down = (int)(edge & 1);
    const double a = sample(t, i, j), b = sample(t, i + !down, j + down);
    /* At the border, half way to the frame: the pixel's own edge. */
    const double share = isfinite(a) && isfinite(b) ? (t->level - a) / (b - a) : 0.5;
    xy[0] = (float)((double)i - 0.5 + (down ? 0 : share));
    xy[1] = (float)((double)j - 0.5 + (down ? share : 0));
}

rcn_status rcn_contours_create(rcn_contours **out, rcn_context *ctx, const float *map,
                               int64_t columns, int64_t rows, double level) {
    rcn_status status = RCN_OK;
    rcn_contours *contours = NULL;
    tracer t = {map, columns, rows, columns + 2, level, NULL};
    int64_t points = 0, lines = 0;
    rcn__clear(ctx);
    /* Edges are numbered in 32 bits, two for each sample. */
    if (columns < 1 || rows < 1 || columns + 2 > (1 << 29) / (rows + 2))
        return rcn__fail(
            ctx, RCN_EINVALID,
            "The map has %lld x %lld pixels, not a size that contours can be drawn for.",
            (long long)columns, (long long)rows);
    const int64_t edges = 2 * t.stride * (rows + 2);
    RCN_ALLOC(t.next, ctx, edges, "contours");
    for (int64_t e = 0; e < edges; ++e) t.next[e] = -1;
    for (int64_t j = 0; j <= rows; ++j)
        for (int64_t i = 0; i <= columns; ++i) link_cell(&t, i, j);
    for (int64_t e = 0; e < edges; ++e) points += t.next[e] >= 0;
    RCN_ALLOC_ZERO(contours, ctx, 1, "contours");
    RCN_ALLOC(contours->first, ctx, points / 4 + 1,
              "contours"); /* a line has four points or more */
    RCN_ALLOC(contours->xy, ctx, 2 * points, "contours");
    points = 0;
    /* Every line is followed from its edge of the lowest number; links are cut on the way, so that
     * it ends where it began. */
    for (int64_t e = 0; e < edges; ++e) {
        if (t.next[e] < 0) continue;
        contours->first[lines++] = points;
        for (int64_t at = e; t.next[at] >= 0;) {
            const int64_t next = t.next[at];
            place(contours->xy + 2 * points++, &t, at);
            t.next[at] = -1;
            at = next;
        }
    }
    contours->first[lines] = points;
    contours->lines = lines;
    *out = contours;
    contours = NULL;
done:
    rcn__free(ctx, t.next);
    rcn_contours_destroy(contours, ctx);
    return status;
}

void rcn_contours_destroy(rcn_contours *contours, rcn_context *ctx) {
    if (!contours) return;
    rcn__free(ctx, contours->first);
    rcn__free(ctx, contours->xy);
    rcn__free(ctx, contours);
}
