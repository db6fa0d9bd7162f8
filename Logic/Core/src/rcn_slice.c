// SPDX-License-Identifier: Apache-2.0
/* Slices of a volume as pictures: how it lies before the reader, reading and coloring a slice,
 * outlines, the way onto a screen or a page, and what a slice holds.
 *
 * Pictures are 8-bit and made one slice at a time, fast enough to be redrawn while somebody
 * scrolls.
 */
#include "rcn/rcn_slice.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "rcn/rcn_normalize.h"
#include "rcn_calib_private.h"

/* ---- how a volume lies before the reader ------------------------------------------------------
 */

/* nearest[w] = the volume's axis that is taken for the world's axis w: of the six ways to pair
 * them, the one whose cosines are largest together. Axis by axis, the nearest one could be taken
 * twice at oblique angles. A later way must be better by more than rounding. */
static void pair_axes(int nearest[3], const double *direction) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    double best = -1;
    for (int o = 0; o < 6; ++o) {
        double sum = 0;
        for (int w = 0; w < 3; ++w) sum += fabs(direction[3 * w + orders[o][w]]);
        if (sum <= best + 1e-9) continue;
        best = sum;
        memcpy(nearest, orders[o], 3 * sizeof *nearest);
    }
}

/* The letters of where axis `axis` leads, with growing (sign 1) or falling (-1) index: the largest
 * part first; parts under 22 degrees (sine 0.38) are left out. The world is LPS, as in ITK and
 * DICOM. */
static void name_direction(char letters[4], const double *direction, int axis, int sign) {
    static const char names[3][2] = {{'R', 'L'}, {'A', 'P'}, {'I', 'S'}};
    double part[3];
    int count = 0;
    for (int w = 0; w < 3; ++w) part[w] = sign * direction[3 * w + axis];
    for (;;) {
        int largest = 0;
        for (int w = 1; w < 3; ++w)
            if (fabs(part[w]) > fabs(part[largest])) largest = w;
        if (count == 3 || (count > 0 && fabs(part[largest]) < 0.38)) break;
        letters[count++] = names[largest][part[largest] > 0];
        part[largest] = 0;
    }
    letters[count] = 0;
}

void rcn_plane_make(rcn_plane *out, const rcn_geometry *geometry, rcn_view view) {
    const double *direction = geometry->direction;
    int nearest[3], world_right = 0, world_up = 1, world_axis = 2;
    memset(out, 0, sizeof *out);
    /* A picture has no sides of the body: as it is stored, first row on top. */
    if (geometry->dimension == 2) {
        out->axis = 2;
        out->right = 0;
        out->up = 1;
        out->right_sign = 1;
        out->up_sign = -1;
        return;
    }
    if (view == RCN_VIEW_CORONAL) {
        world_up = 2;
        world_axis = 1;
    } else if (view == RCN_VIEW_SAGITTAL) {
        world_right = 1;
        world_up = 2;
        world_axis = 0;
    }
    pair_axes(nearest, direction);
    out->axis = nearest[world_axis];
    out->right = nearest[world_right];
    out->up = nearest[world_up];
    out->right_sign = direction[3 * world_right + out->right] < 0 ? -1 : 1;
    out->up_sign = direction[3 * world_up + out->up] < 0 ? -1 : 1;
    if (view == RCN_VIEW_AXIAL) out->up_sign = -out->up_sign; /* the world's y leads to the back */
    name_direction(out->letters[0], direction, out->right, -out->right_sign);
    name_direction(out->letters[1], direction, out->right, out->right_sign);
    name_direction(out->letters[2], direction, out->up, -out->up_sign);
    name_direction(out->letters[3], direction, out->up, out->up_sign);
}

/* The inverse of rcn_plane_make(): the view whose slices cut this axis. Axial comes last, because
 * it is the answer also where none does. */
rcn_view rcn_plane_along(rcn_plane *out, const rcn_geometry *geometry, int axis) {
    for (int view = RCN_VIEW_CORONAL; view <= RCN_VIEW_SAGITTAL; ++view) {
        rcn_plane_make(out, geometry, (rcn_view)view);
        if (out->axis == axis && geometry->dimension != 2) return (rcn_view)view;
    }
    rcn_plane_make(out, geometry, RCN_VIEW_AXIAL);
    return RCN_VIEW_AXIAL;
}

/* ---- reading a slice --------------------------------------------------------------------------
 */

static rcn_status check_slice(rcn_context *ctx, const rcn_geometry *geometry, rcn_slice slice) {
    if (slice.axis < 0 || slice.axis > 2)
        return rcn__fail(ctx, RCN_EINVALID, "The axis of a slice must be 0, 1 or 2, not %d.",
                         slice.axis);
    if (slice.index < 0 || slice.index >= geometry->size[slice.axis])
        return rcn__fail(ctx, RCN_EINVALID, "Slice %lld does not exist among %lld.",
                         (long long)slice.index, (long long)geometry->size[slice.axis]);
    return RCN_OK;
}

/* The axes of a slice's pixels. */
static void pixel_axes(int axes[2], int axis) {
    axes[0] = axis == 0 ? 1 : 0;
    axes[1] = axis == 2 ? 1 : 2;
}

int64_t rcn_slice_size(int64_t size[2], const rcn_geometry *geometry, int axis) {
    int axes[2];
    pixel_axes(axes, axis);
    size[0] = geometry->size[axes[0]];
    size[1] = geometry->size[axes[1]];
    return size[0] * size[1];
}

/* Where the voxels of a slice are: pixel (i, j) is voxel first + i * step[0] + j * step[1]. */
typedef struct place {
    int64_t size[2], pixels, first, step[2];
} place;

static void find_place(place *out, const rcn_geometry *geometry, rcn_slice slice) {
    const int64_t steps[3] = {1, geometry->size[0], geometry->size[0] * geometry->size[1]};
    int axes[2];
    pixel_axes(axes, slice.axis);
    out->pixels = rcn_slice_size(out->size, geometry, slice.axis);
    out->first = slice.index * steps[slice.axis];
    for (int a = 0; a < 2; ++a) out->step[a] = steps[axes[a]];
}

static rcn_status check_image(rcn_context *ctx, const rcn_image *image, int component,
                              rcn_slice slice) {
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(image);
    if (!sentence && (component < 0 || component >= image->components))
        sentence = "The image does not have this component.";
    return sentence ? rcn__fail(ctx, RCN_EINVALID, "%s", sentence)
                    : check_slice(ctx, &image->geometry, slice);
}

/* out[pixels] = (value - shift) * factor, cut to [low, high]. A slice is a box one voxel thick. */
static void read_slice(float *out, const rcn_image *image, int component, rcn_slice slice,
                       const rcn_scale *scale) {
    const rcn_channel channel = {*image, component};
    int64_t first[3] = {0, 0, 0}, size[3];
    memcpy(size, image->geometry.size, sizeof size);
    first[slice.axis] = slice.index;
    size[slice.axis] = 1;
    rcn_normalize_box(out, scale, &channel, first, size);
}

/* Reading a slice is normalizing a box: one place that knows all element types. */
static rcn_scale make_scale(double shift, double factor, double low, double high) {
    rcn_scale scale;
    memset(&scale, 0, sizeof scale);
    scale.channels = 1;
    scale.shift[0] = shift;
    scale.factor[0] = factor;
    scale.low = low;
    scale.high = high;
    return scale;
}

static rcn_status paint_bytes(uint8_t *rgba, rcn_context *ctx, const rcn_image *image,
                              int component, int colors, rcn_slice slice, double low, double high) {
    rcn_status status = check_image(ctx, image, component + colors - 1, slice);
    float *values = NULL;
    int64_t size[2], pixels;
    if (status != RCN_OK) return status;
    if (!isfinite(low) || !isfinite(high) || !(low < high))
        return rcn__fail(ctx, RCN_EINVALID, "Black must be less than white.");
    const rcn_scale scale = make_scale(low, 255 / (high - low), 0, 255);
    pixels = rcn_slice_size(size, &image->geometry, slice.axis);
    RCN_ALLOC(values, ctx, pixels, "a slice");
    /* One component after the other. Gray is the first one three times. */
    for (int c = 0; c < colors; ++c) {
        read_slice(values, image, component + c, slice, &scale);
        for (int64_t i = 0; i < pixels; ++i) rgba[4 * i + c] = (uint8_t)(values[i] + 0.5f);
    }
    for (int64_t i = 0; i < pixels; ++i) {
        for (int c = colors; c < 3; ++c) rgba[4 * i + c] = rgba[4 * i];
        rgba[4 * i + 3] = 255;
    }
done:
    rcn__free(ctx, values);
    return status;
}

rcn_status rcn_slice_gray(uint8_t *rgba, rcn_context *ctx, const rcn_image *image, int component,
                          rcn_slice slice, double low, double high) {
    return paint_bytes(rgba, ctx, image, component, 1, slice, low, high);
}

rcn_status rcn_slice_rgb(uint8_t *rgba, rcn_context *ctx, const rcn_image *image, rcn_slice slice,
                         double low, double high) {
    return paint_bytes(rgba, ctx, image, 0, 3, slice, low, high);
}

/* The weights of the levels in a readout; of a plain probability there are none. */
static const char *find_weights(double *weights, const rcn_image *levels, int readout, int number) {
    const int raters = levels->components - 1;
    if (raters == 0) return NULL;
    if (levels->type != RCN_FLOAT32 || raters > RCN_MAX_RATERS)
        return "Levels must be float32, with 2 to 65 components.";
    if (readout != RCN_SLICE_LEVEL)
        return rcn__readout_weights(weights, raters, (rcn_readout)readout, number);
    if (number < 0 || number > raters) return "This level does not exist.";
    for (int k = 0; k <= raters; ++k) weights[k] = k == number;
    return NULL;
}

rcn_status rcn_slice_readout(float *out, rcn_context *ctx, const rcn_image *levels, int readout,
                             int number, rcn_slice slice) {
    double weights[RCN_MAX_RATERS + 1];
    place at;
    rcn_status status = check_image(ctx, levels, 0, slice);
    if (status != RCN_OK) return status;
    const char *sentence = find_weights(weights, levels, readout, number);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    if (levels->components == 1) {
        const rcn_scale plain = make_scale(0, 1, -FLT_MAX, FLT_MAX);
        read_slice(out, levels, 0, slice, &plain);
        return RCN_OK;
    }
    find_place(&at, &levels->geometry, slice);
    for (int64_t j = 0; j < at.size[1]; ++j) {
        const int64_t row = at.first + j * at.step[1];
        for (int64_t i = 0; i < at.size[0]; ++i) {
            const float *voxel =
                (const float *)levels->data + (row + i * at.step[0]) * levels->components;
            /* -1 where the levels are no probabilities: shown as 0. */
            const float value = rcn__read_levels(voxel, levels->components, weights);
            out[i + at.size[0] * j] = value > 0 ? value : 0;
        }
    }
    return RCN_OK;
}

rcn_status rcn_slice_codes(uint32_t *codes, rcn_context *ctx, const rcn_votes *votes,
                           rcn_slice slice) {
    place at;
    rcn__clear(ctx);
    const rcn_status status = check_slice(ctx, &votes->geometry, slice);
    if (status != RCN_OK) return status;
    find_place(&at, &votes->geometry, slice);
    for (int64_t j = 0; j < at.size[1]; ++j) {
        const int64_t row = at.first + j * at.step[1];
        uint32_t *out = codes + j * at.size[0];
        /* Only slices along y and z have their rows in one piece. */
        if (at.step[0] == 1)
            rcn__votes_read(out, votes, row, at.size[0]);
        else
            for (int64_t i = 0; i < at.size[0]; ++i)
                rcn__votes_read(out + i, votes, row + i * at.step[0], 1);
    }
    return RCN_OK;
}

rcn_status rcn_slice_expand(float *out, rcn_context *ctx, const rcn_votes *votes,
                            const float *table, rcn_slice slice) {
    uint32_t *codes = NULL;
    int64_t size[2];
    rcn__clear(ctx);
    rcn_status status = check_slice(ctx, &votes->geometry, slice);
    if (status != RCN_OK) return status;
    const int64_t pixels = rcn_slice_size(size, &votes->geometry, slice.axis);
    RCN_ALLOC(codes, ctx, pixels, "a slice");
    RCN_TRY(rcn_slice_codes(codes, ctx, votes, slice));
    for (int64_t i = 0; i < pixels; ++i) out[i] = table[codes[i]];
done:
    rcn__free(ctx, codes);
    return status;
}

/* ---- painting ---------------------------------------------------------------------------------
 */

/* Lays a color over a pixel: Porter and Duff's "over" (1984) with plain, not premultiplied,
 * colors. */
static void lay_over(uint8_t *pixel, const uint8_t *color) {
    const int above = color[3];
    if (above == 0) return;
    if (above == 255 || pixel[3] == 0) {
        memcpy(pixel, color, 4);
        return;
    }
    const int below = pixel[3] * (255 - above); /* in 1/255 */
    const int both = 255 * above + below;
    for (int c = 0; c < 3; ++c)
        pixel[c] = (uint8_t)((color[c] * 255 * above + pixel[c] * below + both / 2) / both);
    pixel[3] = (uint8_t)((both + 127) / 255);
}

void rcn_slice_paint_codes(uint8_t *rgba, const uint32_t *codes, int64_t pixels,
                           const uint8_t *colors) {
    for (int64_t i = 0; i < pixels; ++i) lay_over(rgba + 4 * i, colors + 4 * (size_t)codes[i]);
}

void rcn_slice_paint_values(uint8_t *rgba, const float *values, int64_t pixels, double lower,
                            double upper, const uint8_t colors[1024]) {
    const float low = (float)lower, high = (float)upper;
    for (int64_t i = 0; i < pixels; ++i) {
        const float value = values[i];
        /* NaN is not painted either. */
        if (!(value >= low && value <= high)) continue;
        const int step = value > 0 ? (value < 1 ? (int)(value * 255 + 0.5f) : 255) : 0;
        lay_over(rgba + 4 * i, colors + 4 * step);
    }
}

/* ---- outlines ---------------------------------------------------------------------------------
 */

/* Marching squares on masks. The corners of a cell, anticlockwise from its pixel of the lowest
 * indices, have the bits 1, 2, 4, 8 where they are inside; its edges are 0 (between corners 0 and
 * 1), 1 (1, 2), 2 (2, 3), 3 (3, 0). Pieces per case: pairs of edges, -1 for none. Where two corners
 * across from each other are inside (cases 5 and 10) they are drawn apart. */
static const signed char PIECES[16][4] = {
    {-1, -1, -1, -1}, {3, 0, -1, -1}, {0, 1, -1, -1}, {3, 1, -1, -1},
    {1, 2, -1, -1},   {3, 0, 1, 2},   {0, 2, -1, -1}, {3, 2, -1, -1},
    {2, 3, -1, -1},   {0, 2, -1, -1}, {0, 1, 2, 3},   {1, 2, -1, -1},
    {1, 3, -1, -1},   {0, 1, -1, -1}, {3, 0, -1, -1}, {-1, -1, -1, -1}};

static void draw_cell(int inside, int64_t i, int64_t j, int which, rcn_segment_fn segment,
                      void *payload) {
    static const float middles[4][2] = {{0.5f, 0}, {1, 0.5f}, {0.5f, 1}, {0, 0.5f}};
    const signed char *pieces = PIECES[inside];
    for (int p = 0; p < 4 && pieces[p] >= 0; p += 2) {
        const float *from = middles[pieces[p]], *to = middles[pieces[p + 1]];
        const float x = (float)i, y = (float)j;
        const float line[4] = {x + from[0], y + from[1], x + to[0], y + to[1]};
        segment(which, line, payload);
    }
}

/* All raters in one pass: marks[] holds who marked each corner of the cell, differ whose outline
 * crosses it; most cells nobody's does. The cells around the border are included, so that outlines
 * close. */
void rcn_slice_outlines(const rcn_votes *votes, const uint32_t *codes, const int64_t size[2],
                        uint64_t raters, rcn_segment_fn segment, void *payload) {
    const rcn_pattern *patterns = votes->patterns;
    for (int64_t j = -1; j < size[1]; ++j) {
        const uint32_t *lower = j >= 0 ? codes + j * size[0] : NULL;
        const uint32_t *upper = j + 1 < size[1] ? codes + (j + 1) * size[0] : NULL;
        uint64_t marks[4] = {0, 0, 0, 0}; /* of the corners; outside nothing is marked */
        for (int64_t i = -1; i < size[0]; ++i) {
            marks[0] = marks[1];
            marks[3] = marks[2];
            marks[1] = lower && i + 1 < size[0] ? patterns[lower[i + 1]].marked & raters : 0;
            marks[2] = upper && i + 1 < size[0] ? patterns[upper[i + 1]].marked & raters : 0;
            const uint64_t differ =
                (marks[0] ^ marks[1]) | (marks[1] ^ marks[2]) | (marks[2] ^ marks[3]);
            if (!differ) continue;
            for (int r = 0; r < votes->raters; ++r) {
                int inside = 0;
                if (!(differ >> r & 1)) continue;
                for (int c = 0; c < 4; ++c) inside |= (int)(marks[c] >> r & 1) << c;
                draw_cell(inside, i, j, r, segment, payload);
            }
        }
    }
}

/* ---- onto the screen --------------------------------------------------------------------------
 */

/* What a screen's column or row sees of the slice: two neighbors and the share of the second in
 * 1/256, and the nearest. nearest < 0: beyond the slice. */
typedef struct sight {
    int32_t low, high, share, nearest;
} sight;

/* Worked out once for all columns and once for all rows, so that a pixel costs the mixing alone.
 * The image is interpolated; the layer is not, because a mixture of two colors would be a third
 * meaning. */
static void look_along(sight *out, int64_t count, double first, double step, int64_t size) {
    for (int64_t i = 0; i < count; ++i) {
        const double at = first + step * (double)i;
        if (!(at >= -0.5 && at < (double)size - 0.5)) {
            out[i] = (sight){0, 0, 0, -1};
            continue;
        }
        const double inside = fmin(fmax(at, 0), (double)(size - 1));
        const int32_t low = (int32_t)inside;
        out[i].low = low;
        out[i].high = low + 1 < size ? low + 1 : low;
        out[i].share = (int32_t)((inside - low) * 256);
        out[i].nearest = (int32_t)(at + 0.5);
    }
}

/* Four bytes at once, two and two: a + (b - a) * share / 256. */
static inline uint32_t mix(uint32_t a, uint32_t b, uint32_t share) {
    /* Two bytes with a free byte above each: a product of at most 255 * 256 fits, and the sum,
     * too. */
    const uint32_t even = 0x00FF00FF, rest = 256 - share;
    const uint32_t low = ((a & even) * rest + (b & even) * share) >> 8 & even;
    const uint32_t high = ((a >> 8 & even) * rest + (b >> 8 & even) * share) & 0xFF00FF00;
    return low | high;
}

typedef struct draw_job {
    const rcn_screen *screen;
    const uint32_t *image, *layer; /* as 0xAARRGGBB, the screen's columns along the rows */
    int64_t width;                 /* of these */
    const sight *columns, *rows;
    uint32_t *lines; /* a line of the image for each thread */
} draw_job;

/* A line of the image between its rows a and b. */
RCN_DISPATCH static void mix_rows(uint32_t *out, const uint32_t *a, const uint32_t *b,
                                  int64_t count, uint32_t share) {
    for (int64_t i = 0; i < count; ++i) out[i] = mix(a[i], b[i], share);
}

static void draw_row(int64_t row, int thread, void *payload) {
    const draw_job *job = payload;
    const sight *at = job->rows + row, *columns = job->columns;
    const int64_t count = job->screen->columns;
    uint32_t *out = job->screen->pixels + row * count;
    if (at->nearest < 0 || !job->image) {
        for (int64_t i = 0; i < count; ++i) out[i] = 0xFF000000;
    } else {
        const uint32_t *a = job->image + at->low * job->width,
                       *b = job->image + at->high * job->width;
        uint32_t *line = job->lines + thread * job->width;
        mix_rows(line, a, b, job->width, (uint32_t)at->share);
        for (int64_t i = 0; i < count; ++i)
            out[i] = columns[i].nearest < 0
                         ? 0xFF000000
                         : 0xFF000000 | mix(line[columns[i].low], line[columns[i].high],
                                            (uint32_t)columns[i].share);
    }
    if (at->nearest < 0 || !job->layer) return;
    const uint32_t *layer = job->layer + at->nearest * job->width;
    for (int64_t i = 0; i < count; ++i) {
        if (columns[i].nearest < 0) continue;
        const uint32_t color = layer[columns[i].nearest], opacity = color >> 24;
        /* 0 ... 255 becomes 0 ... 256, so that opaque is the color itself. */
        if (opacity) out[i] = 0xFF000000 | mix(out[i], color, opacity + (opacity >> 7));
    }
}

/* Bytes R G B A as 0xAARRGGBB, transposed where needed. */
static void to_screen_order(uint32_t *out, const uint8_t *rgba, const rcn_slice_place *lies) {
    const int64_t width = lies->size[0], height = lies->size[1];
    for (int64_t j = 0; j < height; ++j)
        for (int64_t i = 0; i < width; ++i, rgba += 4)
            out[lies->transposed ? j + height * i : i + width * j] =
                (uint32_t)rgba[3] << 24 | (uint32_t)rgba[0] << 16 | (uint32_t)rgba[1] << 8 |
                rgba[2];
}

rcn_status rcn_slice_draw(const rcn_screen *screen, rcn_context *ctx, const uint8_t *image,
                          const uint8_t *layer, const rcn_slice_place *lies) {
    rcn_status status = RCN_OK;
    draw_job job = {screen, NULL, NULL, 0, NULL, NULL, NULL};
    uint32_t *image_words = NULL, *layer_words = NULL;
    sight *columns = NULL, *rows = NULL;
    rcn__clear(ctx);
    if (!screen->pixels || screen->columns < 1 || screen->rows < 1 || lies->size[0] < 1 ||
        lies->size[1] < 1 || lies->size[0] > INT32_MAX || lies->size[1] > INT32_MAX)
        return rcn__fail(ctx, RCN_EINVALID, "Screen and slice must have pixels.");
    const int64_t pixels = lies->size[0] * lies->size[1];
    job.width = lies->size[lies->transposed ? 1 : 0];
    RCN_ALLOC(columns, ctx, screen->columns, "a screen's columns");
    RCN_ALLOC(rows, ctx, screen->rows, "a screen's rows");
    look_along(columns, screen->columns, lies->first[0], lies->step[0], job.width);
    look_along(rows, screen->rows, lies->first[1], lies->step[1], pixels / job.width);
    if (image) {
        RCN_ALLOC(image_words, ctx, pixels, "a slice");
        to_screen_order(image_words, image, lies);
    }
    if (layer) {
        RCN_ALLOC(layer_words, ctx, pixels, "a layer");
        to_screen_order(layer_words, layer, lies);
    }
    RCN_ALLOC(job.lines, ctx, job.width * rcn_context_threads(ctx), "a line");
    job.image = image_words;
    job.layer = layer_words;
    job.columns = columns;
    job.rows = rows;
    rcn__for_all(ctx, screen->rows, draw_row, &job);
done:
    rcn__free(ctx, job.lines);
    rcn__free(ctx, layer_words);
    rcn__free(ctx, image_words);
    rcn__free(ctx, rows);
    rcn__free(ctx, columns);
    return status;
}

/* Anti-aliased: how much of a pixel is covered is how far its center is inside the line's border, 0
 * ... 1 over one pixel. Round ends, because the distance is that to the nearest point of the
 * line. */
void rcn_screen_line(const rcn_screen *screen, const double from[2], const double to[2],
                     double width, const uint8_t color[3]) {
    const double reach = width / 2 + 0.5; /* where the last trace of it is */
    const double run[2] = {to[0] - from[0], to[1] - from[1]};
    const double squared = run[0] * run[0] + run[1] * run[1];
    const uint32_t word = (uint32_t)color[0] << 16 | (uint32_t)color[1] << 8 | color[2];
    const double limit[2] = {(double)(screen->columns - 1), (double)(screen->rows - 1)};
    int64_t first[2], last[2];
    if (!isfinite(squared)) return;
    for (int a = 0; a < 2; ++a) {
        const double low = ceil(fmin(from[a], to[a]) - reach);
        const double high = floor(fmax(from[a], to[a]) + reach);
        if (low > limit[a] || high < 0) return;
        first[a] = (int64_t)fmax(low, 0);
        last[a] = (int64_t)fmin(high, limit[a]);
    }
    for (int64_t y = first[1]; y <= last[1]; ++y)
        for (int64_t x = first[0]; x <= last[0]; ++x) {
            const double dx = (double)x - from[0], dy = (double)y - from[1];
            const double along = squared > 0 ? (dx * run[0] + dy * run[1]) / squared : 0;
            const double t = along < 0 ? 0 : along > 1 ? 1 : along;
            const double ex = dx - t * run[0], ey = dy - t * run[1];
            const double distance = ex * ex + ey * ey;
            if (distance >= reach * reach) continue;
            const double cover = reach - sqrt(distance);
            uint32_t *pixel = screen->pixels + x + screen->columns * y;
            *pixel = 0xFF000000 | mix(*pixel, word, cover < 1 ? (uint32_t)(cover * 256) : 256);
        }
}

/* ---- into a picture for a page -----------------------------------------------------------------
 */

/* The slice's pixels behind pixel i of `count` along one axis of a picture. */
static void pixels_behind(int64_t range[2], int64_t i, int64_t count, const rcn_slice_part *part,
                          int axis) {
    const int64_t first = part->first[axis], length = part->end[axis] - first;
    const int64_t at = part->flip[axis] ? count - 1 - i : i;
    /* Whole pixels, each in one range: what shrinks is averaged without weights. */
    range[0] = first + at * length / count;
    range[1] = first + (at + 1) * length / count;
    if (range[1] <= range[0]) range[1] = range[0] + 1; /* it grows: the same pixel again */
}

void rcn_slice_fit(uint8_t *rgb, int64_t columns, int64_t rows, const uint8_t *rgba,
                   const rcn_slice_part *part) {
    const int across = part->transposed ? 1 : 0;
    for (int64_t j = 0; j < rows; ++j)
        for (int64_t i = 0; i < columns; ++i, rgb += 3) {
            int64_t range[2][2], sum[3] = {0};
            pixels_behind(range[across], i, columns, part, across);
            pixels_behind(range[1 - across], j, rows, part, 1 - across);
            for (int64_t y = range[1][0]; y < range[1][1]; ++y)
                for (int64_t x = range[0][0]; x < range[0][1]; ++x)
                    for (int c = 0; c < 3; ++c) sum[c] += rgba[4 * (x + part->width * y) + c];
            const int64_t count = (range[0][1] - range[0][0]) * (range[1][1] - range[1][0]);
            for (int c = 0; c < 3; ++c) rgb[c] = (uint8_t)((sum[c] + count / 2) / count);
        }
}

/* ---- which range of gray ---------------------------------------------------------------------
 */

/* Percentiles of a sample of slices; they are fitted as for a network, and turned back into a
 * range. */
rcn_status rcn_slice_window(double *low, double *high, rcn_context *ctx, const rcn_image *image,
                            int component) {
    enum { SLICES = 16 }; /* enough to know the whole volume by, and read in a blink */
    const rcn_scale plain = make_scale(0, 1, -FLT_MAX, FLT_MAX);
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    rcn_channel sample = {{0}, 0};
    rcn_scale scale;
    float *values = NULL;
    int64_t size[2];
    rcn_status status = check_image(ctx, image, component, (rcn_slice){2, 0});
    if (status != RCN_OK) return status;
    const int64_t all = image->geometry.size[2], count = all < SLICES ? all : SLICES;
    const int64_t pixels = rcn_slice_size(size, &image->geometry, 2);
    RCN_ALLOC(values, ctx, count * pixels, "the range of gray");
    for (int64_t s = 0; s < count; ++s) {
        const rcn_slice slice = {2, (2 * s + 1) * all / (2 * count)};
        read_slice(values + s * pixels, image, component, slice, &plain);
    }
    rule.kind = RCN_NORMALIZE_PERCENTILE;
    sample.image = (rcn_image){values, RCN_FLOAT32, 1, rcn_geometry_make(pixels, count, 1)};
    RCN_TRY(rcn_normalize_fit(&scale, ctx, &rule, &sample, 1));
    /* The rule turns the range into -1 ... 1. */
    const double half = scale.factor[0] > 0 ? 1 / scale.factor[0] : 0.5;
    *low = scale.shift[0] - half;
    *high = scale.shift[0] + half;
done:
    rcn__free(ctx, values);
    return status;
}

rcn_status rcn_slice_contrast(double *low, double *high, rcn_context *ctx, const rcn_image *image,
                              int component, int64_t z) {
    /* Most of a slice is air, so the bright end needs more room than the dark one. */
    enum { DARK = -5, BRIGHT = 8 }; /* half standard deviations */
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    rcn_channel sample = {*image, component};
    rcn_scale scale;
    float *values = NULL, least = 0, most = 0;
    int64_t size[2];
    rcn_status status = check_image(ctx, image, component, (rcn_slice){2, z});
    if (status != RCN_OK) return status;
    const int64_t pixels = rcn_slice_size(size, &image->geometry, 2);
    /* A slice along z is an image of its own in memory. */
    sample.image.data = (char *)image->data + (size_t)z * (size_t)pixels *
                                                  (size_t)image->components *
                                                  rcn_type_size(image->type);
    sample.image.geometry = rcn_geometry_make(size[0], size[1], 1);
    rule.kind = RCN_NORMALIZE_ZSCORE;
    RCN_TRY(rcn_normalize_fit(&scale, ctx, &rule, &sample, 1));
    RCN_ALLOC(values, ctx, pixels, "the range of gray");
    scale.low = DARK / 2.0;
    scale.high = BRIGHT / 2.0;
    /* What is not finite becomes 0, the mean, and so does not widen the range. */
    read_slice(values, &sample.image, component, (rcn_slice){2, 0}, &scale);
    for (int64_t i = 0; i < pixels; ++i) {
        least = fminf(least, values[i]);
        most = fmaxf(most, values[i]);
    }
    *low = scale.shift[0];
    *high = scale.shift[0] + 1;
    if (scale.factor[0] > 0) {
        *low = scale.shift[0] + (double)least / scale.factor[0];
        *high = scale.shift[0] + (double)most / scale.factor[0];
    }
done:
    rcn__free(ctx, values);
    return status;
}

/* ---- volumes -----------------------------------------------------------------------------------
 */

typedef struct count_job {
    const rcn_image *levels;
    int64_t voxels, *steps; /* of each thread: voxels whose readout lies in step i */
    double weights[RCN_MAX_RATERS + 1];
    float edges[RCN_SLICE_STEPS + 1];
} count_job;

static void count_chunk(int64_t chunk, int thread, void *payload) {
    const count_job *job = payload;
    const int components = job->levels->components;
    int64_t *steps = job->steps + (int64_t)thread * (RCN_SLICE_STEPS + 1), at, end;
    rcn__chunk_range(&at, &end, chunk, job->voxels, RCN_CHUNK);
    for (const float *voxel = (const float *)job->levels->data + at * components; at < end;
         ++at, voxel += components) {
        const float value =
            components == 1 ? *voxel : rcn__read_levels(voxel, components, job->weights);
        int step = value > 0 ? (value < 1 ? (int)(value * RCN_SLICE_STEPS) : RCN_SLICE_STEPS) : 0;
        /* Rounding may have missed by one what a comparison with the threshold itself says. */
        if (step > 0 && value < job->edges[step]) --step;
        if (step < RCN_SLICE_STEPS && value >= job->edges[step + 1]) ++step;
        ++steps[step];
    }
}

rcn_status rcn_slice_counts(int64_t counts[RCN_SLICE_STEPS + 1], rcn_context *ctx,
                            const rcn_image *levels, int readout, int number) {
    count_job job = {levels, 0, NULL, {0}, {0}};
    rcn_status status = check_image(ctx, levels, 0, (rcn_slice){0, 0});
    if (status != RCN_OK) return status;
    const char *sentence = find_weights(job.weights, levels, readout, number);
    if (!sentence && levels->type != RCN_FLOAT32) sentence = "Probabilities must be float32.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    job.voxels = rcn_geometry_voxels(&levels->geometry);
    for (int i = 0; i <= RCN_SLICE_STEPS; ++i) job.edges[i] = (float)i / RCN_SLICE_STEPS;
    const int threads = rcn_context_threads(ctx);
    RCN_ALLOC_ZERO(job.steps, ctx, (int64_t)threads * (RCN_SLICE_STEPS + 1), "volumes");
    RCN_TRY(rcn__for_chunks(ctx, "Measuring volumes", rcn__chunk_count(job.voxels, RCN_CHUNK),
                            count_chunk, &job));
    int64_t above = 0;
    /* From voxels in a step to voxels at or above it. */
    for (int i = RCN_SLICE_STEPS; i >= 0; --i) {
        for (int t = 0; t < threads; ++t) above += job.steps[t * (RCN_SLICE_STEPS + 1) + i];
        counts[i] = above;
    }
done:
    rcn__free(ctx, job.steps);
    return status;
}

typedef struct expectation_job {
    const rcn_image *levels;
    rcn_slice_expectation *slices;
    double weights[RCN_MAX_RATERS + 1];
} expectation_job;

/* One slice is one chunk, so that its sum has an order of its own. */
static void expect_slice(int64_t z, int thread, void *payload) {
    const expectation_job *job = payload;
    const int components = job->levels->components;
    const int64_t *size = job->levels->geometry.size;
    const float *voxel = (const float *)job->levels->data + z * size[0] * size[1] * components;
    rcn_slice_expectation slice = {0, 0, {size[0], size[1]}, {0, 0}};
    (void)thread;
    for (int64_t y = 0; y < size[1]; ++y) {
        for (int64_t x = 0; x < size[0]; ++x, voxel += components) {
            const double share =
                components == 1 ? *voxel : rcn__read_levels(voxel, components, job->weights);
            if (!(share > 0)) continue; /* not a number, too */
            slice.expected += fmin(share, 1);
            if (share < RCN_UNSURE) continue;
            slice.unsure += share <= 1 - RCN_UNSURE;
            if (x < slice.first[0]) slice.first[0] = x;
            if (y < slice.first[1]) slice.first[1] = y;
            if (x >= slice.end[0]) slice.end[0] = x + 1;
            slice.end[1] = y + 1;
        }
    }
    if (slice.end[0] == 0) slice.first[0] = slice.first[1] = 0;
    job->slices[z] = slice;
}

rcn_status rcn_slice_expectations(rcn_slice_expectation *out, rcn_context *ctx,
                                  const rcn_image *levels) {
    expectation_job job = {levels, NULL, {0}};
    rcn_status status = check_image(ctx, levels, 0, (rcn_slice){0, 0});
    if (status != RCN_OK) return status;
    const char *sentence = find_weights(job.weights, levels, RCN_READOUT_EXPECTED, 0);
    if (!sentence && levels->type != RCN_FLOAT32) sentence = "Probabilities must be float32.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    const int64_t slices = levels->geometry.size[2];
    RCN_ALLOC(job.slices, ctx, slices, "slices");
    RCN_TRY(rcn__for_chunks(ctx, "Measuring slices", slices, expect_slice, &job));
    memcpy(out, job.slices, (size_t)slices * sizeof *out);
done:
    rcn__free(ctx, job.slices);
    return status;
}
