// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_picture.h"

#include <math.h>

#include "rcn_votes_private.h"

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
    static const uint8_t colors[8][3] = {{230, 159, 0},   {86, 180, 233}, {0, 158, 115},
                                         {240, 228, 66},  {0, 114, 178},  {213, 94, 0},
                                         {204, 121, 167}, {153, 153, 153}};
    for (int c = 0; c < 3; ++c) rgb[c] = colors[(rater % 8 + 8) % 8][c];
}

static double element(const rcn_image *image, int64_t voxel) {
    const int64_t i = voxel * image->components;
    switch (image->type) {
    case RCN_UINT8: return ((const uint8_t *)image->data)[i];
    case RCN_INT8: return ((const int8_t *)image->data)[i];
    case RCN_UINT16: return ((const uint16_t *)image->data)[i];
    case RCN_INT16: return ((const int16_t *)image->data)[i];
    case RCN_UINT32: return ((const uint32_t *)image->data)[i];
    case RCN_INT32: return ((const int32_t *)image->data)[i];
    case RCN_UINT64: return (double)((const uint64_t *)image->data)[i];
    case RCN_INT64: return (double)((const int64_t *)image->data)[i];
    case RCN_FLOAT32: return ((const float *)image->data)[i];
    case RCN_FLOAT64: return ((const double *)image->data)[i];
    }
    return 0;
}

static rcn_status check_slice(rcn_context *ctx, const rcn_geometry *geometry, int64_t z) {
    rcn__clear(ctx);
    if (z < 0 || z >= geometry->size[2])
        return rcn__fail(ctx, RCN_EINVALID, "There is no slice %lld among %lld.", (long long)z,
                         (long long)geometry->size[2]);
    return RCN_OK;
}

rcn_status rcn_picture_gray(uint8_t *rgb, rcn_context *ctx, const rcn_image *image, int64_t z) {
    const rcn_status status = check_slice(ctx, &image->geometry, z);
    if (status != RCN_OK) return status;
    const int64_t pixels = image->geometry.size[0] * image->geometry.size[1];
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0, count = 0;
    for (int64_t i = 0; i < pixels; ++i) {
        const double value = element(image, z * pixels + i);
        if (!isfinite(value)) continue;
        low = fmin(low, value);
        high = fmax(high, value);
        sum += value;
        squares += value * value;
        count += 1;
    }
    const double mean = sum / count, deviation = sqrt(fmax(squares / count - mean * mean, 0));
    low = fmax(low, mean - 2.5 * deviation);
    high = fmin(high, mean + 4.0 * deviation);
    const double scale = high > low ? 255 / (high - low) : 0;
    for (int64_t i = 0; i < pixels; ++i) {
        const double value = (element(image, z * pixels + i) - low) * scale;
        const uint8_t gray = value > 0 ? (uint8_t)(value < 255 ? value + 0.5 : 255) : 0;
        for (int c = 0; c < 3; ++c) rgb[3 * i + c] = gray;
    }
    return RCN_OK;
}

rcn_status rcn_picture_overlay(uint8_t *rgb, rcn_context *ctx, const float *map,
                               const rcn_geometry *geometry, int64_t z, double threshold,
                               double opacity) {
    const rcn_status status = check_slice(ctx, geometry, z);
    if (status != RCN_OK) return status;
    const int64_t pixels = geometry->size[0] * geometry->size[1];
    for (int64_t i = 0; i < pixels; ++i) {
        const double share = map[z * pixels + i];
        uint8_t color[3];
        if (!(share >= threshold)) continue;
        rcn_color_share(color, share);
        for (int c = 0; c < 3; ++c)
            rgb[3 * i + c] = (uint8_t)((1 - opacity) * rgb[3 * i + c] + opacity * color[c] + 0.5);
    }
    return RCN_OK;
}

static int is_marked(const rcn_votes *votes, int rater, int64_t x, int64_t y, int64_t z) {
    const int64_t *size = votes->geometry.size;
    uint32_t code;
    if (x < 0 || y < 0 || x >= size[0] || y >= size[1]) return 0;
    rcn__votes_read(&code, votes, x + size[0] * (y + size[1] * z), 1);
    return (int)(votes->patterns[code].marked >> rater & 1);
}

rcn_status rcn_picture_contour(uint8_t *rgb, rcn_context *ctx, const rcn_votes *votes, int rater,
                               int64_t z, const uint8_t color[3]) {
    const rcn_status status = check_slice(ctx, &votes->geometry, z);
    if (status != RCN_OK) return status;
    if (rater < 0 || rater >= votes->raters)
        return rcn__fail(ctx, RCN_EINVALID, "There is no rater %d among %d.", rater + 1,
                         votes->raters);
    for (int64_t y = 0; y < votes->geometry.size[1]; ++y)
        for (int64_t x = 0; x < votes->geometry.size[0]; ++x) {
            if (!is_marked(votes, rater, x, y, z)) continue;
            if (is_marked(votes, rater, x - 1, y, z) && is_marked(votes, rater, x + 1, y, z) &&
                is_marked(votes, rater, x, y - 1, z) && is_marked(votes, rater, x, y + 1, z))
                continue;
            for (int c = 0; c < 3; ++c) rgb[3 * (x + votes->geometry.size[0] * y) + c] = color[c];
        }
    return RCN_OK;
}

rcn_status rcn_picture_color(uint8_t *rgb, rcn_context *ctx, const rcn_image *image, int64_t z) {
    const rcn_status status = check_slice(ctx, &image->geometry, z);
    if (status != RCN_OK) return status;
    if (image->type != RCN_UINT8 || image->components < 3)
        return rcn__fail(ctx, RCN_EINVALID,
                         "A picture in color needs three 8-bit values per voxel.");
    const int64_t pixels = image->geometry.size[0] * image->geometry.size[1];
    const uint8_t *in = (const uint8_t *)image->data + z * pixels * image->components;
    for (int64_t i = 0; i < pixels; ++i, in += image->components)
        for (int c = 0; c < 3; ++c) rgb[3 * i + c] = in[c];
    return RCN_OK;
}

/* The source pixels behind pixel i of `count` along one axis. */
static void range_of(int64_t *from, int64_t *to, int64_t i, int64_t count, int64_t first,
                     int64_t end, int flip) {
    const int64_t length = end - first, at = flip ? count - 1 - i : i;
    *from = first + at * length / count;
    *to = first + (at + 1) * length / count;
    if (*to <= *from) *to = *from + 1;
}

void rcn_picture_fit(uint8_t *out, int64_t columns, int64_t rows, const uint8_t *rgb, int64_t width,
                     const rcn_picture_part *part) {
    for (int64_t j = 0; j < rows; ++j)
        for (int64_t i = 0; i < columns; ++i, out += 3) {
            int64_t x0, x1, y0, y1, sum[3] = {0};
            range_of(&x0, &x1, i, columns, part->first[0], part->end[0], part->flip[0]);
            range_of(&y0, &y1, j, rows, part->first[1], part->end[1], part->flip[1]);
            for (int64_t y = y0; y < y1; ++y)
                for (int64_t x = x0; x < x1; ++x)
                    for (int c = 0; c < 3; ++c) sum[c] += rgb[3 * (x + width * y) + c];
            const int64_t count = (x1 - x0) * (y1 - y0);
            for (int c = 0; c < 3; ++c) out[c] = (uint8_t)((sum[c] + count / 2) / count);
        }
}

rcn_status rcn_picture_votes(float *out, rcn_context *ctx, const rcn_votes *votes,
                             const float *table, int64_t z) {
    enum { AT_ONCE = 1024 };
    const rcn_status status = check_slice(ctx, &votes->geometry, z);
    if (status != RCN_OK) return status;
    const int64_t pixels = votes->geometry.size[0] * votes->geometry.size[1];
    uint32_t codes[AT_ONCE];
    for (int64_t first = 0; first < pixels; first += AT_ONCE) {
        const int64_t count = pixels - first < AT_ONCE ? pixels - first : AT_ONCE;
        rcn__votes_read(codes, votes, z * pixels + first, count);
        for (int64_t i = 0; i < count; ++i) out[first + i] = table[codes[i]];
    }
    return RCN_OK;
}

/* ---- contours ----------------------------------------------------------------------------------
 *
 * Samples are the pixels' centres with a frame of "below" around them, width + 2 by height + 2.
 * An edge lies between two neighbouring samples: number 2 * sample to the right, 2 * sample + 1
 * downwards. Walked clockwise, each cell is left through some edges (from inside to outside) and
 * entered through others; a line goes from where it is left to where it is entered. The cell on an
 * edge's other side sees it the other way round, so that every crossed edge has exactly one next
 * edge, and following them closes every line.
 */
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
    if (columns < 1 || rows < 1 || columns + 2 > (1 << 29) / (rows + 2))
        return rcn__fail(ctx, RCN_EINVALID, "A map of %lld x %lld pixels has no contours here.",
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
