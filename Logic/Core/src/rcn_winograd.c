// SPDX-License-Identifier: Apache-2.0
/* Compiled for each instruction set by rcn_isa_*.c, whatever the rest is compiled for. */
#include "rcn_engine.h"

#include <string.h>

#include "rcn_gemm.h"
#include "rcn_gradient.h"
#include "rcn_parallel.h"

enum {
    OUT_TILE = 4,
    IN_TILE = 6,
    POINTS = IN_TILE * IN_TILE,
    TAPS = 9,
    AHEAD_TILES = 4,
    LINE_FLOATS = 16 /* of a line of a cache */
};

/* ---- the forms ------------------------------------------------------------------------------- */

/* Points 0, A, -A, B, -B, infinity. Each function is one dimension of a form; even and odd powers
 * are shared between a point and its negative. Some products stand alone, because the units of
 * today's processors that fuse a product with a sum are busier than those that add. */
#define A 0.75f
#define B 1.5f
#define AA (A * A)
#define BB (B * B)

RCN_INLINE void input_form(wide t[6], const wide d[6]) {
    const wide even_a = wide_subtract_scaled(d[4], BB, d[2]);
    const wide odd_a = wide_scale(A, wide_subtract_scaled(d[3], BB, d[1]));
    const wide even_b = wide_subtract_scaled(d[4], AA, d[2]);
    const wide odd_b = wide_scale(B, wide_subtract_scaled(d[3], AA, d[1]));
    t[0] = wide_add_scaled(wide_subtract_scaled(d[4], AA + BB, d[2]), AA * BB, d[0]);
    t[1] = wide_add(even_a, odd_a);
    t[2] = wide_subtract(even_a, odd_a);
    t[3] = wide_add(even_b, odd_b);
    t[4] = wide_subtract(even_b, odd_b);
    t[5] = wide_add_scaled(wide_subtract_scaled(d[5], AA + BB, d[3]), AA * BB, d[1]);
}

RCN_INLINE void output_form(wide y[4], const wide m[6]) {
    const wide even_a = wide_add(m[1], m[2]), odd_a = wide_subtract(m[1], m[2]);
    const wide even_b = wide_add(m[3], m[4]), odd_b = wide_subtract(m[3], m[4]);
    y[0] = wide_add(wide_add(m[0], even_a), even_b);
    y[1] = wide_scale(A, wide_add_scaled(odd_a, B / A, odd_b));
    y[2] = wide_scale(AA, wide_add_scaled(even_a, BB / AA, even_b));
    y[3] = wide_add_scaled(wide_add_scaled(m[5], AA * A, odd_a), BB * B, odd_b);
}

/* The adjoint of output_form(). */
RCN_INLINE void output_form_back(wide m[6], const wide y[4]) {
    const wide even_a = wide_add_scaled(y[0], AA, y[2]);
    const wide odd_a = wide_scale(A, wide_add_scaled(y[1], AA, y[3]));
    const wide even_b = wide_add_scaled(y[0], BB, y[2]);
    const wide odd_b = wide_scale(B, wide_add_scaled(y[1], BB, y[3]));
    m[0] = y[0];
    m[1] = wide_add(even_a, odd_a);
    m[2] = wide_subtract(even_a, odd_a);
    m[3] = wide_add(even_b, odd_b);
    m[4] = wide_subtract(even_b, odd_b);
    m[5] = y[3];
}

/* The Lagrange factors of the points. */
#define FACTOR_0 (1 / (AA * BB))
#define FACTOR_A (1 / (2 * AA * (AA - BB)))
#define FACTOR_B (1 / (2 * BB * (BB - AA)))

RCN_INLINE void weight_form(wide u[6], const wide g[3]) {
    const wide even_a = wide_scale(FACTOR_A, wide_add_scaled(g[0], AA, g[2]));
    const wide even_b = wide_scale(FACTOR_B, wide_add_scaled(g[0], BB, g[2]));
    u[0] = wide_scale(FACTOR_0, g[0]);
    u[1] = wide_add_scaled(even_a, FACTOR_A * A, g[1]);
    u[2] = wide_subtract_scaled(even_a, FACTOR_A * A, g[1]);
    u[3] = wide_add_scaled(even_b, FACTOR_B * B, g[1]);
    u[4] = wide_subtract_scaled(even_b, FACTOR_B * B, g[1]);
    u[5] = g[2];
}

/* The adjoint of weight_form(). */
RCN_INLINE void weight_form_back(wide g[3], const wide u[6]) {
    const wide even_a = wide_scale(FACTOR_A, wide_add(u[1], u[2]));
    const wide odd_a = wide_subtract(u[1], u[2]);
    const wide even_b = wide_scale(FACTOR_B, wide_add(u[3], u[4]));
    const wide odd_b = wide_subtract(u[3], u[4]);
    g[0] = wide_add_scaled(wide_add(even_a, even_b), FACTOR_0, u[0]);
    g[1] = wide_add_scaled(wide_scale(FACTOR_A * A, odd_a), FACTOR_B * B, odd_b);
    g[2] = wide_add_scaled(wide_add_scaled(u[5], AA, even_a), BB, even_b);
}

/* ---- blocks of tiles ------------------------------------------------------------------------- */

/* Tiles are numbered over (image, y, x). A block is a range of tiles in a run of slices; its rows
 * are (slice, tile). Inputs have (depth - 1) / 2 more slices on either side. */
typedef struct block {
    int64_t tile, tiles, slice, slices;
} block;

typedef struct blocking {
    int64_t tiles_y, tiles_x, tiles; /* of all images */
    int64_t tiles_per_block, slices_per_block;
    int64_t tile_blocks, slice_blocks;
} blocking;

/* Matrices an odd number of cache lines apart do not fall into the same sets of a cache. */
static int64_t pitch_of(int64_t floats) { return parts(floats, 16) / 2 * 32 + 16; }

static int64_t channels_in(const rcn__winograd *shape) { return shape->in[0] + shape->in[1]; }

/* Forms of inputs are made, and lie, WIDE_BLOCKS blocks of channels at a time. Each input has its
 * own; of an odd number of blocks the last one is half filled. */
static int64_t wide_count(int64_t channels) { return parts(channels, WIDE); }
static int64_t wide_in(const rcn__winograd *shape) {
    return wide_count(shape->in[0]) + wide_count(shape->in[1]);
}

/* Of all images. */
static int64_t tile_count(const rcn__winograd *shape) {
    return shape->batch * parts(shape->size[1], OUT_TILE) * parts(shape->size[2], OUT_TILE);
}

/* Blocks of about as many tiles as fill `floats`, a tile of one slice having `per_tile`, and of a
 * multiple of so many; `pieces`: at least so many blocks, if there are tiles enough. */
static blocking block_up(const rcn__winograd *shape, int64_t floats, int64_t per_tile,
                         int64_t pieces, int64_t multiple) {
    blocking b = {.tiles_y = parts(shape->size[1], OUT_TILE),
                  .tiles_x = parts(shape->size[2], OUT_TILE)};
    b.tiles = tile_count(shape);
    b.slices_per_block = shape->depth == 1 ? 1 : smaller(shape->size[0], 8);
    b.slice_blocks = parts(shape->size[0], b.slices_per_block);
    const int64_t in_slices = b.slices_per_block + shape->depth - 1;
    int64_t tiles = larger(floats / (per_tile * in_slices), 1);
    /* Whole blocks of the product where there are several. */
    if (tiles > 2 * ROWS) tiles = tiles / ROWS * ROWS;
    if (tiles > b.tiles) tiles = b.tiles;
    if (parts(b.tiles, tiles) * b.slice_blocks < pieces)
        tiles = larger(b.tiles * b.slice_blocks / pieces, smaller(ROWS, tiles));
    b.tile_blocks = parts(b.tiles, tiles);
    /* As many for each thread. */
    if (b.slice_blocks == 1 && b.tile_blocks < 4 * pieces)
        b.tile_blocks = smaller(parts(b.tile_blocks, pieces) * pieces, b.tiles);
    b.tiles_per_block = parts(parts(b.tiles, b.tile_blocks), multiple) * multiple;
    b.tile_blocks = parts(b.tiles, b.tiles_per_block);
    return b;
}

static int64_t block_count(const blocking *b) { return b->tile_blocks * b->slice_blocks; }

static block block_at(const blocking *b, const rcn__winograd *shape, int64_t index) {
    block one;
    one.tile = index % b->tile_blocks * b->tiles_per_block;
    one.tiles = smaller(b->tiles_per_block, b->tiles - one.tile);
    one.slice = index / b->tile_blocks * b->slices_per_block;
    one.slices = smaller(b->slices_per_block, shape->size[0] - one.slice);
    return one;
}

/* Rows of inputs and of outputs. */
static int64_t in_rows(const rcn__winograd *shape, const block *one) {
    return one->tiles * (one->slices + shape->depth - 1);
}
static int64_t out_rows(const block *one) { return one->tiles * one->slices; }

/* The largest block's, for the size of memory. */
static block largest_block(const blocking *b) {
    const block one = {0, b->tiles_per_block, 0, b->slices_per_block};
    return one;
}

/* Tiles next to each other. */
typedef struct run {
    int64_t first, end;
} run;

/* Where a tile lies. */
typedef struct tile {
    int64_t image, y, x; /* of its first output */
} tile;

RCN_INLINE tile tile_at(const blocking *b, int64_t index) {
    const int64_t plane = b->tiles_y * b->tiles_x, within = index % plane;
    const tile t = {index / plane, within / b->tiles_x * OUT_TILE, within % b->tiles_x * OUT_TILE};
    return t;
}

RCN_INLINE tile next_tile(const blocking *b, tile t) {
    t.x += OUT_TILE;
    if (t.x >= b->tiles_x * OUT_TILE) {
        t.x = 0;
        t.y += OUT_TILE;
    }
    if (t.y >= b->tiles_y * OUT_TILE) {
        t.y = 0;
        ++t.image;
    }
    return t;
}

/* A norm that is applied to what is read. */
typedef struct wide_norm {
    wide scale, shift;
    wide floor; /* 0 for ReLU, otherwise -infinity: then nobody has to ask for each value */
} wide_norm;

RCN_INLINE wide wide_apply(wide value, const wide_norm *norm) {
    return wide_at_least(norm->floor, wide_multiply_add(value, norm->scale, norm->shift));
}

/* Where a 6x6 input lies: its rows, whose voxels follow each other, and how many floats behind one
 * block of channels the next is. */
typedef struct corner {
    const float *row[IN_TILE]; /* at the border: only those that are inside */
    int64_t block;
    int top, bottom, left, right; /* what is inside: to before the bottom and the right */
} corner;

/* One column of the first half of the forms. */
RCN_INLINE void form_column(wide half[IN_TILE][IN_TILE], const int j, const corner *at,
                            const int blocks, const wide_norm *norm, const int border) {
    wide d[6], w[6];
    for (int i = 0; i < IN_TILE; ++i) {
        d[i] = wide_zero();
        if (border && ((i < 1 && at->top) || (i > 1 && i >= at->bottom))) continue;
        d[i] = wide_load_blocks(at->row[i] + j * RCN_LANES, at->block, blocks);
        if (norm) d[i] = wide_apply(d[i], norm);
    }
    input_form(w, d);
    for (int i = 0; i < IN_TILE; ++i) half[i][j] = w[i];
}

/* The first columns of a tile are the last ones of the tile to the left. */
RCN_INLINE void keep_columns(wide half[IN_TILE][IN_TILE]) {
    for (int i = 0; i < IN_TILE; ++i) {
        half[i][0] = half[i][OUT_TILE];
        half[i][1] = half[i][OUT_TILE + 1];
    }
}

/* The first half of the forms of a 6x6 input: its columns from `first` on. The columns before are
 * the last two of the tile to the left, where that was the tile before. */
RCN_INLINE void form_columns(wide half[IN_TILE][IN_TILE], const int first, const corner *at,
                             const int blocks, const wide_norm *norm) {
    if (first) keep_columns(half);
    for (int j = first; j < IN_TILE; ++j) form_column(half, j, at, blocks, norm, 0);
}

/* The same of one that reaches over the border: zero outside, after the norm. */
RCN_INLINE void form_border(wide half[IN_TILE][IN_TILE], const int first, const corner *at,
                            const int blocks, const wide_norm *norm) {
    if (first) keep_columns(half);
    for (int j = first; j < IN_TILE; ++j) {
        if ((j < 1 && at->left) || (j > 1 && j >= at->right))
            for (int i = 0; i < IN_TILE; ++i) half[i][j] = wide_zero();
        else
            form_column(half, j, at, blocks, norm, 1);
    }
}

/* The second half, to points that are `pitch` apart. */
RCN_INLINE void form_rows(float *to, int64_t pitch, wide half[IN_TILE][IN_TILE]) {
    for (int i = 0; i < IN_TILE; ++i) {
        wide w[6];
        input_form(w, half[i]);
        for (int j = 0; j < IN_TILE; ++j) wide_store(to + (i * IN_TILE + j) * pitch, w[j]);
    }
}

/* The corner of the input from (y, x) on. Rows of a tile's outputs are next to each other in a
 * window, too, but not those above and below. */
RCN_INLINE void find_corner(corner *at, const float *plane, int64_t y, int64_t x, int64_t height,
                            int64_t width, int64_t window) {
    at->top = (int)larger(-y, 0);
    at->bottom = (int)smaller(height - y, IN_TILE);
    at->left = (int)larger(-x, 0);
    at->right = (int)smaller(width - x, IN_TILE);
    const float *body = plane + (rcn__row_place(y + 1, window) * width + x) * RCN_LANES;
    for (int r = 1; r <= OUT_TILE; ++r) at->row[r] = body + (r - 1) * width * RCN_LANES;
    if (y >= 0) at->row[0] = plane + (rcn__row_place(y, window) * width + x) * RCN_LANES;
    at->row[5] = plane + (rcn__row_place(y + 5, window) * width + x) * RCN_LANES;
}

/* The forms of some tiles of one slice of inputs, of some blocks of channels from number `first` of
 * one input on: `to` is the first one's row. */
RCN_INLINE void spread_slice(float *to, int64_t pitch, const blocking *b,
                             const rcn__winograd *shape, const run *tiles, const rcn__source *from,
                             int64_t first, int64_t z, int64_t channels, const int blocks) {
    const int64_t height = shape->size[1], width = shape->size[2], window = from->window;
    const int64_t plane_floats = (window ? window : height * shape->size[0]) * width * RCN_LANES;
    tile t = tile_at(b, tiles->first);
    wide_norm norm = {.floor = wide_all(from->relu ? 0.0f : -INFINITY)};
    int64_t image = -1;
    wide half[IN_TILE][IN_TILE];
    int goes_on = 0; /* the tile to the left was the one before */
    for (int64_t i = tiles->first; i < tiles->end; ++i, t = next_tile(b, t), to += WIDE) {
        const int64_t y = t.y - 1, x = t.x - 1;
        const float *plane = from->data +
                             (t.image * (channels / RCN_LANES) + first) * plane_floats +
                             z * height * width * RCN_LANES;
        const int inside = y >= 0 && x >= 0 && y + IN_TILE <= height && x + IN_TILE <= width;
        corner at = {.block = plane_floats};
        if (from->scale && t.image != image) {
            const int64_t at_image = t.image * channels + first * RCN_LANES;
            image = t.image;
            norm.scale = wide_load_blocks(from->scale + at_image, RCN_LANES, blocks);
            norm.shift = wide_load_blocks(from->shift + at_image, RCN_LANES, blocks);
        }
        find_corner(&at, plane, y, x, height, width, window);
        if (inside) {
            for (int r = 2; r < IN_TILE; ++r)
                for (int k = 0; k < blocks; ++k)
                    for (int l = 0; l < OUT_TILE * RCN_LANES; l += LINE_FLOATS)
                        prefetch(at.row[r] + k * at.block + AHEAD_TILES * OUT_TILE * RCN_LANES + l);
            if (from->scale && goes_on)
                form_columns(half, 2, &at, blocks, &norm);
            else if (from->scale)
                form_columns(half, 0, &at, blocks, &norm);
            else if (goes_on)
                form_columns(half, 2, &at, blocks, NULL);
            else
                form_columns(half, 0, &at, blocks, NULL);
        } else if (from->scale && goes_on) {
            form_border(half, 2, &at, blocks, &norm);
        } else if (from->scale) {
            form_border(half, 0, &at, blocks, &norm);
        } else if (goes_on) {
            form_border(half, 2, &at, blocks, NULL);
        } else {
            form_border(half, 0, &at, blocks, NULL);
        }
        form_rows(to, pitch, half);
        goes_on = t.x + OUT_TILE < b->tiles_x * OUT_TILE;
    }
}

/* to[point][wide block][row][WIDE] for one wide block of all inputs, one slice and one of `runs`
 * runs of its tiles. */
static void spread_inputs(float *to, int64_t pitch, const blocking *b, const rcn__winograd *shape,
                          const block *one, const rcn__source *from, int64_t wide_block,
                          int64_t slice, int64_t number, int64_t runs) {
    const int64_t before = wide_count(shape->in[0]), z = one->slice + slice - shape->depth / 2;
    const int second = wide_block >= before;
    const int64_t first = (wide_block - (second ? before : 0)) * WIDE_BLOCKS;
    const int64_t channels = shape->in[second];
    const run tiles = {one->tile + one->tiles * number / runs,
                       one->tile + one->tiles * (number + 1) / runs};
    float *row =
        to +
        (wide_block * in_rows(shape, one) + slice * one->tiles + tiles.first - one->tile) * WIDE;
    if (z < 0 || z >= shape->size[0])
        for (int p = 0; p < POINTS; ++p)
            memset(row + p * pitch, 0, (size_t)((tiles.end - tiles.first) * WIDE) * sizeof *row);
    else if (channels / RCN_LANES - first >= WIDE_BLOCKS)
        spread_slice(row, pitch, b, shape, &tiles, &from[second], first, z, channels, WIDE_BLOCKS);
    else
        spread_slice(row, pitch, b, shape, &tiles, &from[second], first, z, channels, 1);
}

/* The wide block that a block of channels of all inputs is in. */
static int64_t wide_at(const rcn__winograd *shape, int64_t channel_block) {
    const int64_t blocks = shape->in[0] / RCN_LANES;
    if (channel_block < blocks) return channel_block / WIDE_BLOCKS;
    return (channel_block - blocks) / WIDE_BLOCKS + wide_count(shape->in[0]);
}

/* Where the forms of a block of channels of all inputs begin, those of a point. */
static int64_t forms_at(const rcn__winograd *shape, const block *one, int64_t channel_block) {
    const int64_t blocks = shape->in[0] / RCN_LANES;
    const int64_t own = channel_block - (channel_block < blocks ? 0 : blocks);
    return wide_at(shape, channel_block) * in_rows(shape, one) * WIDE +
           own % WIDE_BLOCKS * RCN_LANES;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* With few channels the weights' forms are made once and stay in the cache; then blocks of tiles
 * go to the threads. With many, the forms (four times as large as the weights) are made by the
 * thread that uses them, group by group of the output channels, for a large block of tiles, and
 * from the weights where they are. */
static int64_t form_floats(const rcn__winograd *shape) {
    return POINTS * shape->depth * channels_in(shape) * columns_in_all(shape->out);
}

static int keeps_forms(const rcn__winograd *shape) {
    return form_floats(shape) * (int64_t)sizeof(float) <= 1310720;
}

/* Floats from point to point, and to the next group of a form of all points. */
static int64_t form_pitch(const rcn__winograd *shape, int64_t columns) {
    return pitch_of(shape->depth * channels_in(shape) * columns);
}

/* Forms that are not kept are made for a part of the input channels at a time: a point's then stay
 * in the first-level cache for all tiles, and those of all points in the second-level one from
 * where they are made to where they are used. */
enum { PART_FLOATS = 4096 /* of a point */ };
static int64_t part_count(const rcn__winograd *shape) {
    return parts(shape->depth * channels_in(shape) * WIDTH, PART_FLOATS);
}

/* Where a part begins, in blocks of channels of all slices. */
static int64_t part_start(const rcn__winograd *shape, int64_t part) {
    return shape->depth * channels_in(shape) / RCN_LANES * part / part_count(shape);
}

static int64_t part_pitch(const rcn__winograd *shape, int64_t columns) {
    const int64_t blocks = shape->depth * channels_in(shape) / RCN_LANES;
    return pitch_of(parts(blocks, part_count(shape)) * RCN_LANES * columns);
}

/* Without kept forms: the weights that they are made of. Behind it are the scales, and the weights
 * if they have to be copied. */
typedef struct raw_weights {
    const float *weights;
    rcn__weight_slice where;
} raw_weights;

enum { RAW_BYTES = 64 };
_Static_assert(sizeof(raw_weights) <= RAW_BYTES, "room for what is known of weights");

static size_t winograd_packed_bytes(const rcn__winograd *shape) {
    const int64_t weights = shape->depth * channels_in(shape) * TAPS * shape->out;
    if (keeps_forms(shape))
        return (size_t)(groups_of(shape->out) * POINTS * form_pitch(shape, WIDTH)) * sizeof(float);
    return RAW_BYTES +
           (size_t)(columns_in_all(shape->out) + (shape->copies_weights ? weights : 0)) *
               sizeof(float);
}

/* The forms of 3x3 weights g of several outputs. */
RCN_INLINE void form_weights(float *to, int64_t pitch, const wide g[TAPS]) {
    wide half[IN_TILE][3];
    for (int j = 0; j < 3; ++j) {
        const wide column[3] = {g[j], g[3 + j], g[6 + j]};
        wide u[6];
        weight_form(u, column);
        for (int i = 0; i < IN_TILE; ++i) half[i][j] = u[i];
    }
    for (int i = 0; i < IN_TILE; ++i) {
        wide u[6];
        weight_form(u, half[i]);
        for (int j = 0; j < IN_TILE; ++j) wide_store(to + (i * IN_TILE + j) * pitch, u[j]);
    }
}

typedef struct pack_job {
    const rcn__winograd *shape;
    float *packed;
    raw_weights from;
} pack_job;

/* Taps of the kernel between input channel c and output channel k of the convolution to be run. */
RCN_INLINE int64_t taps_of(const rcn__winograd *shape, const rcn__weight_slice *where, int64_t c,
                           int64_t k, int64_t z) {
    const int64_t out = where->mirrored ? c : k, in = where->mirrored ? k : c;
    const int64_t slice = where->mirrored ? shape->depth - 1 - z : z;
    return ((out * where->total_in + where->first_in + in) * shape->depth + slice) * TAPS;
}

/* g[tap][lane]: the taps between input channel c and some blocks of output channels, from k on. All
 * but the last tap of 8 outputs are 8 rows that become columns. */
RCN_INLINE void gather_taps(wide g[TAPS], const rcn__winograd *shape, const raw_weights *from,
                            int64_t c, int64_t k, int64_t z, const int blocks) {
    const rcn__weight_slice *where = &from->where;
    const int64_t first = taps_of(shape, where, c, k, z);
    const int64_t step = taps_of(shape, where, c, k + 1, z) - first;
    lanes part[TAPS][WIDE_BLOCKS];
    for (int b = 0; b < blocks; ++b) {
        const float *taps = from->weights + first + b * RCN_LANES * step;
        lanes rows[RCN_LANES];
        for (int l = 0; l < RCN_LANES; ++l) rows[l] = lanes_load_anywhere(taps + l * step);
        lanes_transpose(rows);
        for (int i = 0; i < TAPS - 1; ++i) part[i][b] = rows[i];
        part[TAPS - 1][b] = lanes_gather(taps + TAPS - 1, step);
    }
    for (int i = 0; i < TAPS; ++i) g[where->mirrored ? TAPS - 1 - i : i] = wide_of(part[i], blocks);
    if (!where->scale) return;
    const wide scale = wide_load_blocks(where->scale + k, RCN_LANES, blocks);
    for (int i = 0; i < TAPS; ++i) g[i] = wide_multiply(g[i], scale);
}

/* Makes the forms of them. */
RCN_INLINE void form_taps(float *to, int64_t pitch, const rcn__winograd *shape,
                          const raw_weights *from, int64_t c, int64_t k, int64_t z) {
    wide g[TAPS];
    if (k + WIDE <= shape->out)
        gather_taps(g, shape, from, c, k, z, WIDE_BLOCKS);
    else
        gather_taps(g, shape, from, c, k, z, 1);
    form_weights(to, pitch, g);
}

/* packed[group of outputs][point][slice][input][outputs of the group]. A task has a block of input
 * channels: for one output these lie next to each other, and a line of a cache is read once for all
 * of them. */
static void pack_block(int64_t index, int thread, void *payload) {
    const pack_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const int64_t in = channels_in(shape), first = index * RCN_LANES % in;
    const int64_t z = index * RCN_LANES / in;
    (void)thread;
    for (int64_t k = 0; k < columns_in_all(shape->out); k += WIDE) {
        const int64_t group = k / WIDTH, columns = columns_of(shape->out, group);
        float *to = job->packed + group * POINTS * form_pitch(shape, WIDTH) + k % WIDTH;
        for (int64_t c = first; c < first + RCN_LANES; ++c)
            form_taps(to + (z * in + c) * columns, form_pitch(shape, columns), shape, &job->from, c,
                      k, z);
    }
}

static void winograd_pack(float *packed, const rcn__winograd *shape, rcn_context *ctx,
                          const float *weights, const rcn__weight_slice *where) {
    pack_job job = {shape, packed, {weights, *where}};
    if (keeps_forms(shape)) {
        rcn__for_all(ctx, shape->depth * channels_in(shape) / RCN_LANES, pack_block, &job);
        return;
    }
    float *scale = packed + RAW_BYTES / sizeof *packed, *copy = scale + columns_in_all(shape->out);
    if (where->scale) {
        memcpy(scale, where->scale, (size_t)shape->out * sizeof *scale);
        job.from.where.scale = scale;
    }
    if (shape->copies_weights) {
        const int64_t count = shape->depth * channels_in(shape) * TAPS * shape->out;
        memcpy(copy, weights, (size_t)count * sizeof *copy);
        job.from.weights = copy;
    }
    memcpy(packed, &job.from, sizeof job.from);
}

/* ---- convolution ----------------------------------------------------------------------------- */

/* The forms of a block's inputs, and where they are. */
typedef struct spread_block {
    const block *one;
    float *inputs;
    ptrdiff_t *offsets;
} spread_block;

typedef struct convolve_job {
    const rcn__winograd *shape;
    blocking blocks;
    int shares; /* threads share the inputs' forms of a block, */
    block one;  /* this one, */
    spread_block shared;
    float *out[2];
    const rcn__source *in;
    const float *packed; /* kept forms, */
    raw_weights raw;     /* or what they are made of */
    rcn__ending ending;
    const rcn__scratch *scratch;
    int64_t input_floats, offset_floats; /* forms of inputs, and of their slices and blocks of
                                          * channels the offsets: shared or each thread's own, */
    int64_t weight_floats, sum_floats;   /* behind them of each thread */
    int64_t in_pitch, sum_pitch;
    int64_t sum_rows, row_parts;
    int streams; /* the output is too large for a cache */
} convolve_job;

/* Tiles next to each other whose outputs are added up together. Blocks begin with the first of
 * such, so that one thread does all of them, in order. */
enum { TALLY_TILES = 8, TALLY_WORTH = 1024 /* tiles: what else stays in a cache */ };

static int64_t winograd_tally_rows(const rcn__winograd *shape) {
    const int64_t tiles = tile_count(shape);
    return tiles * shape->size[0] < TALLY_WORTH ? 0 : parts(tiles, TALLY_TILES) * shape->size[0];
}

/* A thread takes a block of tiles from its inputs to its outputs, in memory of its own. Where there
 * are so few tiles that making the weights' forms for each thread's would take too long, threads
 * share the inputs' forms of all tiles, and each takes some groups of output channels. */
enum {
    KEPT_FLOATS = 65536,
    OWN_FLOATS = 1 << 19,
    SHARED_FLOATS = 1 << 20,
    OWN_ROWS = 4 * ROWS, /* tiles for each thread that are not few */
    SUM_ROWS = 4 * ROWS
};

static void plan_convolution(convolve_job *job, const rcn__winograd *shape, int threads) {
    const int64_t in = wide_in(shape) * WIDE, groups = groups_of(shape->out);
    const int keeps = keeps_forms(shape);
    job->shape = shape;
    const int tallies = winograd_tally_rows(shape) > 0;
    job->blocks = block_up(shape, keeps ? KEPT_FLOATS : OWN_FLOATS, POINTS * in,
                           keeps ? 4 * (int64_t)threads : threads, tallies ? TALLY_TILES : 1);
    /* The parts of a shared block would begin anywhere. */
    job->shares =
        !keeps && !tallies && job->blocks.tiles * shape->size[0] < OWN_ROWS * (int64_t)threads;
    if (job->shares) job->blocks = block_up(shape, SHARED_FLOATS, POINTS * in, 1, 1);
    const block one = largest_block(&job->blocks);
    job->in_pitch = pitch_of(in_rows(shape, &one) * in);
    job->input_floats = POINTS * job->in_pitch;
    job->offset_floats = parts(shape->depth * channels_in(shape), 8) * 16;
    /* Rows that are finished at a time; all if they wait for several parts of the channels. */
    job->sum_rows =
        keeps || part_count(shape) > 1 ? out_rows(&one) : smaller(out_rows(&one), SUM_ROWS);
    job->sum_pitch = pitch_of(job->sum_rows * WIDTH);
    job->sum_floats = POINTS * job->sum_pitch;
    job->weight_floats = keeps ? 0 : POINTS * part_pitch(shape, WIDTH);
    job->row_parts = smaller(parts(2 * (int64_t)threads, groups), parts(out_rows(&one), SUM_ROWS));
    job->streams =
        shape->batch * shape->out * shape->size[0] * shape->size[1] * shape->size[2] > LARGE_FLOATS;
}

static rcn__scratch_bytes winograd_scratch_bytes(const rcn__winograd *shape, int threads) {
    convolve_job job = {0};
    plan_convolution(&job, shape, threads);
    const size_t inputs = (size_t)(job.input_floats + job.offset_floats) * sizeof(float);
    const size_t own = (size_t)(job.weight_floats + job.sum_floats) * sizeof(float);
    const rcn__scratch_bytes bytes = {job.shares ? inputs : 0, job.shares ? own : inputs + own};
    return bytes;
}

/* A row of tiles of a block of output channels: where its numbers go, and what is added to them. */
typedef struct out_row {
    float *to;
    const float *residual; /* or NULL */
} out_row;

static out_row out_row_at(const convolve_job *job, const tile *t, int64_t channel_block,
                          int64_t z) {
    const rcn__winograd *shape = job->shape;
    const int64_t blocks[2] = {(shape->out - shape->out_second) / RCN_LANES,
                               shape->out_second / RCN_LANES};
    const int which = channel_block >= blocks[0];
    const int64_t own = channel_block - (which ? blocks[0] : 0), window = job->ending.window;
    const int64_t rows = window ? window : shape->size[1];
    const int64_t slice = (t->image * blocks[which] + own) * shape->size[0] + z;
    const int64_t at = (slice * rows + rcn__row_place(t->y, window)) * shape->size[2] * RCN_LANES;
    const float *residual = job->ending.residual[which];
    const out_row row = {job->out[which] + at, residual ? residual + at : NULL};
    return row;
}

/* The sums of what is written of some tiles (rcn__tally). */
typedef struct wide_tally {
    wide origin, sum, squares;
} wide_tally;

/* Outputs of one tile and some blocks of channels, added to a tally if that is not NULL. */
RCN_INLINE void finish_tile(const convolve_job *job, const out_row *out, const float *sums, tile t,
                            wide bias, wide_tally *tally, const int blocks, const int streams) {
    const int64_t height = job->shape->size[1], width = job->shape->size[2];
    const int64_t rows = smaller(height - t.y, OUT_TILE), columns = smaller(width - t.x, OUT_TILE);
    const int relu = job->ending.relu, adds = out->residual != NULL;
    wide half[OUT_TILE][IN_TILE];
    for (int j = 0; j < IN_TILE; ++j) {
        wide m[6], y[4];
        for (int i = 0; i < IN_TILE; ++i)
            m[i] = wide_load(sums + (i * IN_TILE + j) * job->sum_pitch);
        output_form(y, m);
        for (int i = 0; i < OUT_TILE; ++i) half[i][j] = y[i];
    }
    for (int i = 0; i < rows; ++i) {
        const int64_t first = (i * width + t.x) * RCN_LANES;
        wide y[4];
        output_form(y, half[i]);
        for (int j = 0; j < OUT_TILE; ++j) {
            if (j >= columns) break;
            const int64_t at = first + j * RCN_LANES;
            const float *place[WIDE_BLOCKS] = {NULL};
            wide value = wide_add(y[j], bias);
            for (int k = 0; adds && k < blocks; ++k) place[k] = out[k].residual + at;
            if (adds) value = wide_add(value, wide_load_each(place, blocks));
            if (relu) value = wide_at_least(wide_zero(), value);
            if (tally) {
                const wide distance = wide_subtract(value, tally->origin);
                tally->sum = wide_add(tally->sum, distance);
                tally->squares = wide_multiply_add(distance, distance, tally->squares);
            }
            for (int k = 0; k < blocks; ++k)
                if (streams)
                    lanes_stream(out[k].to + at, wide_block(value, k));
                else
                    lanes_store(out[k].to + at, wide_block(value, k));
        }
    }
}

/* What forms are made of at a time: the taps of a group of output channels and of some input
 * channels of all slices. */
typedef struct tap_range {
    int64_t group, first, end;
} tap_range;

/* A share of those that are wanted soon is fetched from memory. */
static void fetch_taps(const convolve_job *job, const tap_range *soon, int share) {
    const rcn__winograd *shape = job->shape;
    const raw_weights *raw = &job->raw;
    const int64_t in = channels_in(shape), count = soon->end - soon->first;
    const int64_t k = soon->group * WIDTH, outs = smaller(shape->out - k, WIDTH);
    const int64_t end = soon->first + count * (share + 1) / POINTS;
    for (int64_t c = soon->first + count * share / POINTS; c < end; ++c) {
        const int64_t at = taps_of(shape, &raw->where, c % in, k, c / in);
        const int64_t step = taps_of(shape, &raw->where, c % in, k + 1, c / in) - at;
        for (int64_t i = 0; i < outs; ++i) prefetch(raw->weights + at + i * step);
    }
}

/* The sums of the rows [first, end) of a block for one group of output channels, over the input
 * channels whose weights' forms these are, `pitch` apart. Meanwhile the taps that are wanted soon
 * are fetched from memory, if that is not NULL. */
static void multiply_points(float *sums, const convolve_job *job, const spread_block *in,
                            int64_t group, const float *forms, int64_t pitch, int64_t first,
                            int64_t end, const tap_range *now, const tap_range *soon) {
    const int64_t columns = columns_of(job->shape->out, group);
    const int64_t from = now->first / RCN_LANES, to = now->end / RCN_LANES;
    for (int p = 0; p < POINTS; ++p) {
        if (soon) fetch_taps(job, soon, p);
        const rcn__product product = {.c = sums + p * job->sum_pitch,
                                      .c_pitch = columns,
                                      .add = from > 0,
                                      .a = in->inputs + p * job->in_pitch + first * WIDE,
                                      .offsets = in->offsets + from,
                                      .outer = to - from,
                                      .inner = RCN_LANES,
                                      .b = forms + p * pitch};
        multiply_rows(product, RCN_WIDE_FORWARD, end - first, columns);
    }
}

/* A row of the tally of some blocks of channels, between memory and registers. */
static float *tally_row(const convolve_job *job, const block *one, int64_t row, int64_t c) {
    const int64_t slice = one->slice + row / one->tiles, at = one->tile + row % one->tiles;
    const int64_t index = slice * parts(job->blocks.tiles, TALLY_TILES) + at / TALLY_TILES;
    return job->ending.tally.sums + index * 2 * job->shape->out + c * RCN_LANES;
}

RCN_INLINE void start_tally(wide_tally *tally, const float *from, int64_t apart, int begun,
                            const int blocks) {
    tally->sum = begun ? wide_load_blocks(from, RCN_LANES, blocks) : wide_zero();
    tally->squares = begun ? wide_load_blocks(from + apart, RCN_LANES, blocks) : wide_zero();
}

RCN_INLINE void keep_tally(float *to, int64_t apart, const wide_tally *tally, const int blocks) {
    for (int k = 0; k < blocks; ++k) {
        lanes_store(to + k * RCN_LANES, wide_block(tally->sum, k));
        lanes_store(to + apart + k * RCN_LANES, wide_block(tally->squares, k));
    }
}

/* The same for the rows [first, end) of a block, from `sums` on. */
RCN_INLINE void finish_blocks(const convolve_job *job, const block *one, const float *sums,
                              int64_t columns, int64_t c, int64_t first, int64_t end,
                              const int blocks) {
    const float *bias = job->ending.bias;
    const wide biases =
        bias ? wide_load_blocks(bias + c * RCN_LANES, RCN_LANES, blocks) : wide_zero();
    const int64_t all = job->shape->out;
    const float *origin = job->ending.tally.sums ? job->ending.tally.origin : NULL;
    wide_tally tally = {.origin = wide_zero()};
    if (origin) {
        /* Rows may go on where they were left. */
        tally.origin = wide_load_blocks(origin + c * RCN_LANES, RCN_LANES, blocks);
        start_tally(&tally, tally_row(job, one, first, c), all,
                    first % one->tiles % TALLY_TILES > 0, blocks);
    }
    tile t = tile_at(&job->blocks, one->tile + first % one->tiles);
    out_row out[WIDE_BLOCKS] = {{NULL, NULL}};
    for (int64_t row = first; row < end; ++row, sums += columns) {
        if (row % one->tiles == 0) t = tile_at(&job->blocks, one->tile);
        if (row == first || t.x == 0 || row % one->tiles == 0)
            for (int k = 0; k < blocks; ++k)
                out[k] = out_row_at(job, &t, c + k, one->slice + row / one->tiles);
        if (origin && job->streams)
            finish_tile(job, out, sums, t, biases, &tally, blocks, 1);
        else if (origin)
            finish_tile(job, out, sums, t, biases, &tally, blocks, 0);
        else if (job->streams)
            finish_tile(job, out, sums, t, biases, NULL, blocks, 1);
        else
            finish_tile(job, out, sums, t, biases, NULL, blocks, 0);
        t = next_tile(&job->blocks, t);
        const int64_t at = row % one->tiles + 1;
        if (origin && (at % TALLY_TILES == 0 || at == one->tiles || row + 1 == end)) {
            keep_tally(tally_row(job, one, row, c), all, &tally, blocks);
            start_tally(&tally, NULL, 0, 0, blocks);
        }
    }
}

/* The outputs of those rows. */
static void finish_rows(const convolve_job *job, const block *one, int64_t group, const float *sums,
                        int64_t first, int64_t end) {
    const int64_t columns = columns_of(job->shape->out, group);
    const int64_t left = smaller(job->shape->out - group * WIDTH, WIDTH);
    for (int64_t k = 0; k < left; k += WIDE) {
        const int64_t c = (group * WIDTH + k) / RCN_LANES;
        if (left - k >= WIDE)
            finish_blocks(job, one, sums + k, columns, c, first, end, WIDE_BLOCKS);
        else
            finish_blocks(job, one, sums + k, columns, c, first, end, 1);
    }
    if (job->streams) lanes_stream_end();
}

static spread_block place_block(const convolve_job *job, const block *one, void *memory) {
    const rcn__winograd *shape = job->shape;
    const int64_t blocks = channels_in(shape) / RCN_LANES;
    spread_block to = {one, memory, (ptrdiff_t *)((float *)memory + job->input_floats)};
    for (int64_t z = 0; z < shape->depth; ++z)
        for (int64_t c = 0; c < blocks; ++c)
            to.offsets[z * blocks + c] =
                (ptrdiff_t)(forms_at(shape, one, c) + z * one->tiles * WIDE);
    return to;
}

/* The forms of the taps of the input channels [from, to) of all slices and one group of output
 * channels. */
static void form_part(float *forms, int64_t pitch, const convolve_job *job, const tap_range *taps) {
    const rcn__winograd *shape = job->shape;
    const int64_t in = channels_in(shape), columns = columns_of(shape->out, taps->group);
    for (int64_t k = 0; k < columns; k += WIDE)
        for (int64_t c = taps->first; c < taps->end; ++c)
            form_taps(forms + (c - taps->first) * columns + k, pitch, shape, &job->raw, c % in,
                      taps->group * WIDTH + k, c / in);
}

/* The taps of one part of the channels. */
static tap_range tap_range_of(const rcn__winograd *shape, int64_t group, int64_t part) {
    const tap_range range = {group, part_start(shape, part) * RCN_LANES,
                             part_start(shape, part + 1) * RCN_LANES};
    return range;
}

/* The rows [first, end) of a block's outputs, of one group of channels. `memory`: for the weights'
 * forms, then sums. */
static void convolve_rows(const convolve_job *job, const spread_block *in, int64_t group,
                          int64_t first, int64_t end, float *memory) {
    const rcn__winograd *shape = job->shape;
    const int64_t groups = groups_of(shape->out), columns = columns_of(shape->out, group);
    const int64_t pitch = part_pitch(shape, columns), count = part_count(shape);
    const int64_t pieces = parts(end - first, job->sum_rows);
    float *forms = memory, *sums = memory + job->weight_floats;
    for (int64_t piece = 0; piece < pieces; ++piece) {
        const int64_t row = first + (end - first) * piece / pieces;
        const int64_t row_end = first + (end - first) * (piece + 1) / pieces;
        for (int64_t k = 0; k < count; ++k) {
            const tap_range now = tap_range_of(shape, group, k);
            const int64_t last = k + 1 == count;
            const tap_range soon = tap_range_of(shape, group + last, last ? 0 : k + 1);
            const int fetches = piece == 0 && soon.group < groups;
            /* Of several parts each is made once: then there is one piece. */
            if (piece == 0) form_part(forms, pitch, job, &now);
            multiply_points(sums, job, in, group, forms, pitch, row, row_end, &now,
                            fetches ? &soon : NULL);
        }
        finish_rows(job, in->one, group, sums, row, row_end);
    }
}

/* The same of all rows with forms that are kept. */
static void convolve_kept(const convolve_job *job, const spread_block *in, int64_t group,
                          float *sums) {
    const rcn__winograd *shape = job->shape;
    const int64_t rows = out_rows(in->one);
    const tap_range all = {group, 0, shape->depth * channels_in(shape)};
    multiply_points(sums, job, in, group, job->packed + group * POINTS * form_pitch(shape, WIDTH),
                    form_pitch(shape, columns_of(shape->out, group)), 0, rows, &all, NULL);
    finish_rows(job, in->one, group, sums, 0, rows);
}

/* A block in a thread's own memory. */
static void convolve_one(const convolve_job *job, const block *one, float *own) {
    const rcn__winograd *shape = job->shape;
    const spread_block in = place_block(job, one, own);
    float *rest = own + job->input_floats + job->offset_floats;
    for (int64_t c = 0; c < wide_in(shape); ++c)
        for (int64_t z = 0; z < one->slices + shape->depth - 1; ++z)
            spread_inputs(in.inputs, job->in_pitch, &job->blocks, shape, one, job->in, c, z, 0, 1);
    for (int64_t group = 0; group < groups_of(shape->out); ++group)
        if (keeps_forms(shape))
            convolve_kept(job, &in, group, rest);
        else
            convolve_rows(job, &in, group, 0, out_rows(one), rest);
}

static void convolve_block(int64_t index, int thread, void *payload) {
    const convolve_job *job = payload;
    const block one = block_at(&job->blocks, job->shape, index);
    convolve_one(job, &one, rcn__scratch_own(job->scratch, thread));
}

/* A block that threads share: first its inputs, in the order of their rows, */
static void spread_task(int64_t index, int thread, void *payload) {
    const convolve_job *job = payload;
    const int64_t count = wide_in(job->shape), place = index / count;
    (void)thread;
    spread_inputs(job->scratch->shared, job->in_pitch, &job->blocks, job->shape, &job->one, job->in,
                  index % count, place / job->row_parts, place % job->row_parts, job->row_parts);
}

/* then a group of output channels for a part of the rows, in the order of the rows, too: a thread
 * finds in its own cache what it has made. */
static void convolve_group(int64_t index, int thread, void *payload) {
    const convolve_job *job = payload;
    const int64_t groups = groups_of(job->shape->out), part = index / groups;
    const int64_t rows = out_rows(&job->one);
    convolve_rows(job, &job->shared, index % groups, rows * part / job->row_parts,
                  rows * (part + 1) / job->row_parts, rcn__scratch_own(job->scratch, thread));
}

static void winograd_convolve(float *const out[2], const rcn__winograd *shape, rcn_context *ctx,
                              const rcn__source *in, const float *packed, const rcn__ending *ending,
                              const rcn__scratch *scratch) {
    convolve_job job = {.out = {out[0], out[1]}, .in = in, .packed = packed, .ending = *ending};
    plan_convolution(&job, shape, ctx->threads);
    job.scratch = scratch;
    if (!keeps_forms(shape)) memcpy(&job.raw, packed, sizeof job.raw);
    if (!job.shares) {
        rcn__for_all(ctx, block_count(&job.blocks), convolve_block, &job);
        return;
    }
    for (int64_t i = 0; i < block_count(&job.blocks); ++i) {
        job.one = block_at(&job.blocks, shape, i);
        job.shared = place_block(&job, &job.one, scratch->shared);
        rcn__for_all(ctx, wide_in(shape) * (job.one.slices + shape->depth - 1) * job.row_parts,
                     spread_task, &job);
        rcn__for_all(ctx, groups_of(shape->out) * job.row_parts, convolve_group, &job);
    }
}

/* ---- some rows ------------------------------------------------------------------------------- */

/* Without kept forms they would have to be made for every few rows again. */
static int winograd_by_rows(const rcn__winograd *shape) {
    return shape->depth == 1 && keeps_forms(shape);
}

static void winograd_rows(float *out, const rcn__winograd *shape, const rcn__source *in,
                          const float *packed, const rcn__ending *ending, const rcn__rows *rows,
                          void *scratch) {
    convolve_job job = {.out = {out}, .in = in, .packed = packed, .ending = *ending};
    plan_convolution(&job, shape, 1);
    job.streams = 0; /* they are read soon */
    const int64_t first = rows->first / OUT_TILE * job.blocks.tiles_x;
    const int64_t end = parts(rows->end, OUT_TILE) * job.blocks.tiles_x;
    for (int64_t at = first; at < end; at += job.blocks.tiles_per_block) {
        const block one = {at, smaller(end - at, job.blocks.tiles_per_block), 0, 1};
        convolve_one(&job, &one, scratch);
    }
}

/* ---- weights' gradient ----------------------------------------------------------------------- */

/* A task multiplies the forms of some input channels, one group of output channels and one slice of
 * the kernel; pieces are blocks of tiles (rcn_gradient.h). A share makes the forms that its tasks
 * need. Some are made by several shares; so that they are few, tasks are in the order of the
 * inputs' channels or of the outputs', whichever are more. */
enum {
    SLOT_FLOATS = 131072,
    GRADIENT_FLOATS = 3 << 19, /* forms of all channels in a block */
    IN_RANGE = 64,             /* input channels of a task, or fewer for more tasks: */
    LEAST_RANGE = 16,
    SHARE_TASKS = 2 /* at least so many in a share */
};

typedef struct gradient_job {
    gradient_work work;
    const rcn__winograd *shape;
    blocking blocks;
    float *dweights;
    const rcn__source *in;
    const float *dout;
    rcn__weight_slice where;
    int64_t in_pitch, out_pitch;
    int64_t in_range, in_ranges;
} gradient_job;

/* What a task is about. */
typedef struct gradient_part {
    int64_t group, z, first, in; /* in: input channels, from the first on */
} gradient_part;

static gradient_part part_at(const gradient_job *job, int64_t index) {
    const rcn__winograd *shape = job->shape;
    const int64_t groups = groups_of(shape->out), depth = shape->depth;
    const int by_inputs = channels_in(shape) >= shape->out;
    const int64_t minor = by_inputs ? groups : job->in_ranges;
    const int64_t few = index % minor, many = index / minor / depth;
    gradient_part part = {.group = by_inputs ? few : many,
                          .z = index / minor % depth,
                          .first = (by_inputs ? many : few) * job->in_range};
    part.in = smaller(channels_in(shape) - part.first, job->in_range);
    return part;
}

/* The forms that tasks need: wide blocks of inputs and groups of outputs. */
typedef struct needed {
    int64_t first_in, end_in, first_group, end_group;
} needed;

static needed needed_by(const gradient_job *job, const gradient_range *range) {
    needed all = {INT64_MAX, 0, INT64_MAX, 0};
    for (int64_t k = range->first_task; k < range->end_task; ++k) {
        const gradient_part part = part_at(job, k);
        const int64_t last = (part.first + part.in) / RCN_LANES - 1;
        all.first_in = smaller(all.first_in, wide_at(job->shape, part.first / RCN_LANES));
        all.end_in = larger(all.end_in, wide_at(job->shape, last) + 1);
        all.first_group = smaller(all.first_group, part.group);
        all.end_group = larger(all.end_group, part.group + 1);
    }
    return all;
}

static void plan_gradient(gradient_job *job, const rcn__winograd *shape, int threads) {
    const int64_t in = wide_in(shape) * WIDE, out = columns_in_all(shape->out);
    const int64_t slices = shape->depth * groups_of(shape->out);
    const int few = shape->depth * channels_in(shape) * out <= 4096;
    gradient_work *work = &job->work;
    job->shape = shape;
    job->blocks = block_up(shape, few ? SLOT_FLOATS : GRADIENT_FLOATS, POINTS * (in + out),
                           few ? GRADIENT_SLOTS : 1, 1);
    job->in_range = IN_RANGE;
    while (!few && job->in_range > LEAST_RANGE &&
           slices * parts(channels_in(shape), job->in_range) < SHARE_TASKS * (int64_t)threads)
        job->in_range /= 2;
    job->in_ranges = parts(channels_in(shape), job->in_range);
    const int64_t pieces = block_count(&job->blocks);
    plan_gradient_work(work, pieces, slices * job->in_ranges, few, pieces == 1, threads);
    work->sum_floats = POINTS * smaller(channels_in(shape), job->in_range) * WIDTH;
    const block one = largest_block(&job->blocks);
    int64_t most_in = 0, most_out = 0;
    for (int64_t share = 0; share < work->shares; ++share) {
        const gradient_range range = gradient_range_of(work, share);
        const needed forms = needed_by(job, &range);
        most_in = larger(most_in, forms.end_in - forms.first_in);
        most_out = larger(most_out, smaller(columns_before(forms.end_group), out) -
                                        columns_before(forms.first_group));
    }
    job->in_pitch = pitch_of(in_rows(shape, &one) * most_in * WIDE);
    job->out_pitch = pitch_of(out_rows(&one) * most_out);
    work->copy_floats = POINTS * (job->in_pitch + job->out_pitch);
}

static rcn__scratch_bytes winograd_gradient_bytes(const rcn__winograd *shape, int threads) {
    gradient_job job = {.shape = NULL};
    plan_gradient(&job, shape, threads);
    const rcn__scratch_bytes bytes = {0, gradient_own_bytes(&job.work)};
    return bytes;
}

/* The form of 4x4 gradients of outputs, zero beyond the border. */
RCN_INLINE void form_output(float *to, int64_t pitch, const float *plane, tile t, int64_t height,
                            int64_t width, int64_t voxels, const int blocks) {
    const float *from = plane + (t.y * width + t.x) * RCN_LANES;
    const int64_t rows = height - t.y, columns = width - t.x;
    wide half[IN_TILE][OUT_TILE];
    for (int j = 0; j < OUT_TILE; ++j) {
        wide y[4], m[6];
        for (int i = 0; i < OUT_TILE; ++i)
            y[i] = i < rows && j < columns ? wide_load_blocks(from + (i * width + j) * RCN_LANES,
                                                              voxels * RCN_LANES, blocks)
                                           : wide_zero();
        output_form_back(m, y);
        for (int i = 0; i < IN_TILE; ++i) half[i][j] = m[i];
    }
    for (int i = 0; i < IN_TILE; ++i) {
        wide m[6];
        output_form_back(m, half[i]);
        for (int j = 0; j < IN_TILE; ++j) wide_store(to + (i * IN_TILE + j) * pitch, m[j]);
    }
}

/* Those of a slice of a block, `columns` apart. */
RCN_INLINE void form_outputs(float *to, const gradient_job *job, const block *one, int64_t columns,
                             int64_t channel_block, int64_t slice, const int blocks) {
    const rcn__winograd *shape = job->shape;
    const int64_t height = shape->size[1], width = shape->size[2];
    const int64_t voxels = height * width * shape->size[0], all_blocks = shape->out / RCN_LANES;
    tile t = tile_at(&job->blocks, one->tile);
    for (int64_t i = 0; i < one->tiles; ++i, to += columns, t = next_tile(&job->blocks, t)) {
        const float *plane = job->dout + ((t.image * all_blocks + channel_block) * voxels +
                                          (one->slice + slice) * height * width) *
                                             RCN_LANES;
        form_output(to, job->out_pitch, plane, t, height, width, voxels, blocks);
    }
}

/* to[point][group][row][columns] for one group of channels and one slice. */
static void spread_outputs(float *to, const gradient_job *job, const block *one, int64_t group,
                           int64_t slice) {
    const int64_t columns = columns_of(job->shape->out, group);
    to += slice * one->tiles * columns;
    for (int64_t k = 0; k < columns; k += WIDE) {
        const int64_t channel = group * WIDTH + k, c = channel / RCN_LANES;
        if (channel + WIDE <= job->shape->out)
            form_outputs(to + k, job, one, columns, c, slice, WIDE_BLOCKS);
        else
            form_outputs(to + k, job, one, columns, c, slice, 1);
    }
}

/* The forms of a block that are needed: where those of all inputs, and of all outputs, would
 * begin. */
typedef struct gradient_block {
    const block *one;
    const float *inputs, *outputs;
} gradient_block;

static gradient_block spread_block_for(const gradient_job *job, const block *one,
                                       const needed *forms, float *memory) {
    const rcn__winograd *shape = job->shape;
    float *inputs = memory - forms->first_in * in_rows(shape, one) * WIDE;
    float *outputs =
        memory + POINTS * job->in_pitch - columns_before(forms->first_group) * out_rows(one);
    for (int64_t c = forms->first_in; c < forms->end_in; ++c)
        for (int64_t z = 0; z < one->slices + shape->depth - 1; ++z)
            spread_inputs(inputs, job->in_pitch, &job->blocks, shape, one, job->in, c, z, 0, 1);
    for (int64_t group = forms->first_group; group < forms->end_group; ++group)
        for (int64_t z = 0; z < one->slices; ++z)
            spread_outputs(outputs + columns_before(group) * out_rows(one), job, one, group, z);
    const gradient_block made = {one, inputs, outputs};
    return made;
}

/* sums[point][input][columns] (+)= inputs' forms times outputs', over the rows of a block. */
static void add_part(float *sums, int add, const gradient_job *job, const gradient_block *from,
                     int64_t index) {
    static const ptrdiff_t start = 0;
    const rcn__winograd *shape = job->shape;
    const gradient_part part = part_at(job, index);
    const int64_t columns = columns_of(shape->out, part.group), rows = out_rows(from->one);
    const float *outputs = from->outputs + columns_before(part.group) * rows;
    for (int p = 0; p < POINTS; ++p)
        for (int64_t c = 0; c < part.in; c += RCN_LANES) {
            const int64_t at = forms_at(shape, from->one, (part.first + c) / RCN_LANES) +
                               part.z * from->one->tiles * WIDE;
            const rcn__product product = {.c = sums + (p * part.in + c) * columns,
                                          .c_pitch = columns,
                                          .add = add,
                                          .a = from->inputs + p * job->in_pitch + at,
                                          .offsets = &start,
                                          .outer = 1,
                                          .inner = rows,
                                          .b = outputs + p * job->out_pitch};
            multiply_rows(product, RCN_WIDE_GRADIENT, RCN_LANES, columns);
        }
}

/* The taps between an input channel and RCN_LANES output channels, `step` apart, of which there are
 * `outs`. All but the last tap of each are 8 columns that become rows. */
RCN_INLINE void scatter_taps(float *taps, int64_t step, int64_t outs, const lanes g[TAPS]) {
    lanes rows[RCN_LANES];
    _Alignas(32) float last[RCN_LANES];
    for (int i = 0; i < RCN_LANES; ++i) rows[i] = g[i];
    lanes_transpose(rows);
    lanes_store(last, g[TAPS - 1]);
    for (int64_t l = 0; l < RCN_LANES; ++l) {
        if (l >= outs) break;
        lanes_store_anywhere(taps + l * step, rows[l]);
        taps[l * step + TAPS - 1] = last[l];
    }
}

/* From the sums of one task back to taps. */
static void finish_part(const gradient_work *work, const float *sums, int64_t index) {
    const gradient_job *job = (const gradient_job *)work;
    const rcn__winograd *shape = job->shape;
    const gradient_part part = part_at(job, index);
    const int64_t columns = columns_of(shape->out, part.group), first = part.group * WIDTH;
    const int64_t outs = smaller(shape->out - first, WIDTH);
    for (int64_t k = 0; k < outs; k += WIDE)
        for (int64_t c = 0; c < part.in; ++c) {
            const int64_t at = taps_of(shape, &job->where, part.first + c, first + k, part.z);
            const int64_t step =
                taps_of(shape, &job->where, part.first + c, first + k + 1, part.z) - at;
            wide half[3][IN_TILE], g[TAPS];
            for (int j = 0; j < IN_TILE; ++j) {
                wide u[6], column[3];
                for (int i = 0; i < IN_TILE; ++i)
                    u[i] = wide_load(sums + ((i * IN_TILE + j) * part.in + c) * columns + k);
                weight_form_back(column, u);
                for (int i = 0; i < 3; ++i) half[i][j] = column[i];
            }
            for (int i = 0; i < 3; ++i) weight_form_back(g + i * 3, half[i]);
            for (int b = 0; b < WIDE_BLOCKS && k + b * RCN_LANES < outs; ++b) {
                lanes one[TAPS];
                for (int i = 0; i < TAPS; ++i) one[i] = wide_block(g[i], b);
                scatter_taps(job->dweights + at + b * RCN_LANES * step, step,
                             outs - k - b * RCN_LANES, one);
            }
        }
}

static void add_parts(const gradient_work *work, const gradient_range *range, float *copies,
                      float *sums) {
    const gradient_job *job = (const gradient_job *)work;
    const needed forms = needed_by(job, range);
    for (int64_t i = range->first_piece; i < range->end_piece; ++i) {
        const block one = block_at(&job->blocks, job->shape, i);
        const gradient_block from = spread_block_for(job, &one, &forms, copies);
        for (int64_t k = range->first_task; k < range->end_task; ++k) {
            float *to = gradient_sums(work, range, sums, k);
            add_part(to, i > range->first_piece, job, &from, k);
            if (!work->slots && i + 1 == range->end_piece) finish_part(work, to, k);
        }
    }
}

static void winograd_gradient(float *dweights, float *dbias, const rcn__winograd *shape,
                              rcn_context *ctx, const rcn__source *in, const float *dout,
                              const rcn__weight_slice *where, const rcn__scratch *scratch) {
    gradient_job job = {.dweights = dweights, .in = in, .dout = dout, .where = *where};
    plan_gradient(&job, shape, ctx->threads);
    job.work.scratch = scratch;
    job.work.add = add_parts;
    job.work.finish = finish_part;
    run_gradient(&job.work, ctx);
    if (dbias)
        sum_outputs(dbias, ctx, dout, shape->batch, shape->out,
                    shape->size[0] * shape->size[1] * shape->size[2]);
}
