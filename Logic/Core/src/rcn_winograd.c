// SPDX-License-Identifier: Apache-2.0
/* Compiled for each instruction set by rcn_isa_*.c, whatever the rest is compiled for. */
#include "rcn_engine.h"

#include <string.h>

#include "rcn_gemm.h"
#include "rcn_parallel.h"

enum {
    OUT_TILE = 4,
    IN_TILE = 6,
    POINTS = IN_TILE * IN_TILE,
    TAPS = 9,
    IN_RANGE = 64,   /* input channels of a task of the weights' gradient */
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

RCN_INLINE void input_form(lanes t[6], const lanes d[6]) {
    const lanes even_a = lanes_subtract_scaled(d[4], BB, d[2]);
    const lanes odd_a = lanes_scale(A, lanes_subtract_scaled(d[3], BB, d[1]));
    const lanes even_b = lanes_subtract_scaled(d[4], AA, d[2]);
    const lanes odd_b = lanes_scale(B, lanes_subtract_scaled(d[3], AA, d[1]));
    t[0] = lanes_add_scaled(lanes_subtract_scaled(d[4], AA + BB, d[2]), AA * BB, d[0]);
    t[1] = lanes_add(even_a, odd_a);
    t[2] = lanes_subtract(even_a, odd_a);
    t[3] = lanes_add(even_b, odd_b);
    t[4] = lanes_subtract(even_b, odd_b);
    t[5] = lanes_add_scaled(lanes_subtract_scaled(d[5], AA + BB, d[3]), AA * BB, d[1]);
}

RCN_INLINE void output_form(lanes y[4], const lanes m[6]) {
    const lanes even_a = lanes_add(m[1], m[2]), odd_a = lanes_subtract(m[1], m[2]);
    const lanes even_b = lanes_add(m[3], m[4]), odd_b = lanes_subtract(m[3], m[4]);
    y[0] = lanes_add(lanes_add(m[0], even_a), even_b);
    y[1] = lanes_scale(A, lanes_add_scaled(odd_a, B / A, odd_b));
    y[2] = lanes_scale(AA, lanes_add_scaled(even_a, BB / AA, even_b));
    y[3] = lanes_add_scaled(lanes_add_scaled(m[5], AA * A, odd_a), BB * B, odd_b);
}

/* The adjoint of output_form(). */
RCN_INLINE void output_form_back(lanes m[6], const lanes y[4]) {
    const lanes even_a = lanes_add_scaled(y[0], AA, y[2]);
    const lanes odd_a = lanes_scale(A, lanes_add_scaled(y[1], AA, y[3]));
    const lanes even_b = lanes_add_scaled(y[0], BB, y[2]);
    const lanes odd_b = lanes_scale(B, lanes_add_scaled(y[1], BB, y[3]));
    m[0] = y[0];
    m[1] = lanes_add(even_a, odd_a);
    m[2] = lanes_subtract(even_a, odd_a);
    m[3] = lanes_add(even_b, odd_b);
    m[4] = lanes_subtract(even_b, odd_b);
    m[5] = y[3];
}

/* The Lagrange factors of the points. */
#define FACTOR_0 (1 / (AA * BB))
#define FACTOR_A (1 / (2 * AA * (AA - BB)))
#define FACTOR_B (1 / (2 * BB * (BB - AA)))

RCN_INLINE void weight_form(lanes u[6], const lanes g[3]) {
    const lanes even_a = lanes_scale(FACTOR_A, lanes_add_scaled(g[0], AA, g[2]));
    const lanes even_b = lanes_scale(FACTOR_B, lanes_add_scaled(g[0], BB, g[2]));
    u[0] = lanes_scale(FACTOR_0, g[0]);
    u[1] = lanes_add_scaled(even_a, FACTOR_A * A, g[1]);
    u[2] = lanes_subtract_scaled(even_a, FACTOR_A * A, g[1]);
    u[3] = lanes_add_scaled(even_b, FACTOR_B * B, g[1]);
    u[4] = lanes_subtract_scaled(even_b, FACTOR_B * B, g[1]);
    u[5] = g[2];
}

/* The adjoint of weight_form(). */
RCN_INLINE void weight_form_back(lanes g[3], const lanes u[6]) {
    const lanes even_a = lanes_scale(FACTOR_A, lanes_add(u[1], u[2]));
    const lanes odd_a = lanes_subtract(u[1], u[2]);
    const lanes even_b = lanes_scale(FACTOR_B, lanes_add(u[3], u[4]));
    const lanes odd_b = lanes_subtract(u[3], u[4]);
    g[0] = lanes_add_scaled(lanes_add(even_a, even_b), FACTOR_0, u[0]);
    g[1] = lanes_add_scaled(lanes_scale(FACTOR_A * A, odd_a), FACTOR_B * B, odd_b);
    g[2] = lanes_add_scaled(lanes_add_scaled(u[5], AA, even_a), BB, even_b);
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

/* Blocks of about as many tiles as fill `floats`, a tile of one slice having `per_tile`; `pieces`:
 * at least so many blocks, if there are tiles enough. */
static blocking block_up(const rcn__winograd *shape, int64_t floats, int64_t per_tile,
                         int64_t pieces) {
    blocking b = {.tiles_y = parts(shape->size[1], OUT_TILE),
                  .tiles_x = parts(shape->size[2], OUT_TILE)};
    b.tiles = shape->batch * b.tiles_y * b.tiles_x;
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
    b.tiles_per_block = parts(b.tiles, b.tile_blocks);
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

/* A voxel of a slice, zero outside. */
RCN_INLINE lanes voxel_at(const float *slice, int64_t y, int64_t x, int64_t height, int64_t width) {
    if (y < 0 || y >= height || x < 0 || x >= width) return lanes_zero();
    return lanes_load(slice + (y * width + x) * RCN_LANES);
}

/* The first half of the forms of a 6x6 input at `from`: its columns from `first` on. The columns
 * before are the last two of the tile to the left, where that was the tile before. */
RCN_INLINE void form_columns(lanes half[IN_TILE][IN_TILE], const int first, const float *from,
                             int64_t row, const on_load *norm) {
    for (int i = 0; first && i < IN_TILE; ++i) {
        half[i][0] = half[i][OUT_TILE];
        half[i][1] = half[i][OUT_TILE + 1];
    }
    for (int j = first; j < IN_TILE; ++j) {
        lanes d[6], w[6];
        for (int i = 0; i < IN_TILE; ++i) {
            d[i] = lanes_load(from + i * row + j * RCN_LANES);
            if (norm) d[i] = apply(d[i], norm);
        }
        input_form(w, d);
        for (int i = 0; i < IN_TILE; ++i) half[i][j] = w[i];
    }
}

/* The second half, to points that are `pitch` apart. */
RCN_INLINE void form_rows(float *to, int64_t pitch, lanes half[IN_TILE][IN_TILE]) {
    for (int i = 0; i < IN_TILE; ++i) {
        lanes w[6];
        input_form(w, half[i]);
        for (int j = 0; j < IN_TILE; ++j) lanes_store(to + (i * IN_TILE + j) * pitch, w[j]);
    }
}

/* A 6x6 input that reaches over the border: zero outside, after the norm. What is inside is found
 * once and not asked for each voxel: of a map of 16 x 16, twelve of the sixteen tiles come here. */
RCN_INLINE void form_edge(float *to, int64_t pitch, const float *plane, int64_t y, int64_t x,
                          int64_t height, int64_t width, const on_load *norm) {
    lanes edge[POINTS], half[IN_TILE][IN_TILE];
    const int64_t top = larger(-y, 0), bottom = smaller(height - y, IN_TILE);
    const int64_t left = larger(-x, 0), right = smaller(width - x, IN_TILE);
    for (int64_t r = 0; r < IN_TILE; ++r) {
        lanes *row = edge + r * IN_TILE;
        /* Row by row: of all at once GCC makes "rep stos", which takes long to begin. */
        for (int c = 0; c < IN_TILE; ++c) row[c] = lanes_zero();
        if (r < top || r >= bottom) continue;
        for (int64_t c = left; c < right; ++c) {
            const lanes value = lanes_load(plane + ((y + r) * width + x + c) * RCN_LANES);
            row[c] = norm ? apply(value, norm) : value;
        }
    }
    form_columns(half, 0, (const float *)edge, IN_TILE * RCN_LANES, NULL);
    form_rows(to, pitch, half);
}

/* The forms of one slice of a block's inputs, of one block of channels: `to` is its first row. */
static void spread_slice(float *to, int64_t pitch, const blocking *b, const rcn__winograd *shape,
                         const block *one, const rcn__source *from, int64_t channel_block,
                         int64_t z, int64_t channels) {
    const int64_t height = shape->size[1], width = shape->size[2];
    const int64_t voxels = height * width * shape->size[0], blocks = channels / RCN_LANES;
    if (z < 0 || z >= shape->size[0]) {
        for (int p = 0; p < POINTS; ++p)
            memset(to + p * pitch, 0, (size_t)(one->tiles * RCN_LANES) * sizeof *to);
        return;
    }
    tile t = tile_at(b, one->tile);
    on_load norm = on_load_of(from);
    int64_t image = -1;
    lanes half[IN_TILE][IN_TILE];
    int goes_on = 0; /* the tile to the left was the one before */
    for (int64_t i = 0; i < one->tiles; ++i, t = next_tile(b, t), to += RCN_LANES) {
        const int64_t y = t.y - 1, x = t.x - 1;
        const float *plane =
            from->data +
            ((t.image * blocks + channel_block) * voxels + z * height * width) * RCN_LANES;
        const float *corner = plane + (y * width + x) * RCN_LANES;
        const int inside = y >= 0 && x >= 0 && y + IN_TILE <= height && x + IN_TILE <= width;
        if (from->scale && t.image != image) {
            image = t.image;
            norm.scale = lanes_load(from->scale + image * channels + channel_block * RCN_LANES);
            norm.shift = lanes_load(from->shift + image * channels + channel_block * RCN_LANES);
        }
        if (!inside) {
            form_edge(to, pitch, plane, y, x, height, width, from->scale ? &norm : NULL);
        } else {
            const int64_t row = width * RCN_LANES;
            if (from->scale && goes_on)
                form_columns(half, 2, corner, row, &norm);
            else if (from->scale)
                form_columns(half, 0, corner, row, &norm);
            else if (goes_on)
                form_columns(half, 2, corner, row, NULL);
            else
                form_columns(half, 0, corner, row, NULL);
            form_rows(to, pitch, half);
        }
        goes_on = inside && t.x + OUT_TILE < b->tiles_x * OUT_TILE;
    }
}

/* to[point][channel block][row][lane] for one block of channels of all inputs and one slice. */
static void spread_inputs(float *to, int64_t pitch, const blocking *b, const rcn__winograd *shape,
                          const block *one, const rcn__source *from, int64_t channel_block,
                          int64_t slice) {
    const int64_t first = shape->in[0] / RCN_LANES;
    const int second = channel_block >= first;
    float *row = to + (channel_block * in_rows(shape, one) + slice * one->tiles) * RCN_LANES;
    spread_slice(row, pitch, b, shape, one, &from[second], channel_block - (second ? first : 0),
                 one->slice + slice - shape->depth / 2, shape->in[second]);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* With few channels the weights' forms are made once and stay in the cache; then blocks of tiles
 * go to the threads. With many, the forms (four times as large as the weights) are made by the
 * thread that uses them, group by group of the output channels, for a large block of tiles. */
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

static size_t winograd_packed_bytes(const rcn__winograd *shape) {
    const int64_t rows = shape->depth * channels_in(shape);
    if (keeps_forms(shape))
        return (size_t)(groups_of(shape->out) * POINTS * form_pitch(shape, WIDTH)) * sizeof(float);
    return (size_t)(rows * TAPS * columns_in_all(shape->out)) * sizeof(float);
}

/* The forms of 3x3 weights g of several outputs. */
RCN_INLINE void form_weights(float *to, int64_t pitch, const lanes g[TAPS]) {
    lanes half[IN_TILE][3];
    for (int j = 0; j < 3; ++j) {
        const lanes column[3] = {g[j], g[3 + j], g[6 + j]};
        lanes u[6];
        weight_form(u, column);
        for (int i = 0; i < IN_TILE; ++i) half[i][j] = u[i];
    }
    for (int i = 0; i < IN_TILE; ++i) {
        lanes u[6];
        weight_form(u, half[i]);
        for (int j = 0; j < IN_TILE; ++j) lanes_store(to + (i * IN_TILE + j) * pitch, u[j]);
    }
}

typedef struct pack_job {
    const rcn__winograd *shape;
    float *packed;
    const float *weights;
    rcn__weight_slice where;
} pack_job;

/* Taps of the kernel between input channel c and output channel k of the convolution to be run. */
RCN_INLINE int64_t taps_of(const rcn__winograd *shape, const rcn__weight_slice *where, int64_t c,
                           int64_t k, int64_t z) {
    const int64_t out = where->mirrored ? c : k, in = where->mirrored ? k : c;
    const int64_t slice = where->mirrored ? shape->depth - 1 - z : z;
    return ((out * where->total_in + where->first_in + in) * shape->depth + slice) * TAPS;
}

/* g[tap][lane]: the taps between input channel c and RCN_LANES output channels, from k on. */
RCN_INLINE void gather_taps(lanes g[TAPS], const pack_job *job, int64_t c, int64_t k, int64_t z) {
    const int64_t first = taps_of(job->shape, &job->where, c, k, z);
    const int64_t step = taps_of(job->shape, &job->where, c, k + 1, z) - first;
    for (int i = 0; i < TAPS; ++i)
        g[i] = lanes_gather(job->weights + first + (job->where.mirrored ? TAPS - 1 - i : i), step);
    if (!job->where.scale) return;
    const lanes scale = lanes_gather(job->where.scale + k, 1);
    for (int i = 0; i < TAPS; ++i) g[i] = lanes_multiply(g[i], scale);
}

/* packed[group of outputs][point][slice][input][outputs of the group], or with the 9 taps behind
 * slice and input in place of the points. A task has a block of input channels: for one output
 * these lie next to each other, and a line of a cache is read once for all of them. */
static void pack_block(int64_t index, int thread, void *payload) {
    const pack_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const int64_t in = channels_in(shape), first = index * RCN_LANES % in;
    const int64_t z = index * RCN_LANES / in;
    const int keeps = keeps_forms(shape);
    (void)thread;
    for (int64_t k = 0; k < columns_in_all(shape->out); k += RCN_LANES) {
        const int64_t group = k / WIDTH, columns = columns_of(shape->out, group);
        for (int64_t c = first; c < first + RCN_LANES; ++c) {
            const int64_t row = z * in + c;
            lanes g[TAPS];
            if (k < shape->out)
                gather_taps(g, job, c, k, z);
            else /* the last vector is only half filled */
                for (int i = 0; i < TAPS; ++i) g[i] = lanes_zero();
            if (keeps) {
                form_weights(job->packed + group * POINTS * form_pitch(shape, WIDTH) +
                                 row * columns + k % WIDTH,
                             form_pitch(shape, columns), g);
            } else {
                float *to = job->packed + columns_before(group) * shape->depth * in * TAPS +
                            row * TAPS * columns + k % WIDTH;
                for (int i = 0; i < TAPS; ++i) lanes_store(to + i * columns, g[i]);
            }
        }
    }
}

static void winograd_pack(float *packed, const rcn__winograd *shape, rcn_context *ctx,
                          const float *weights, const rcn__weight_slice *where) {
    pack_job job = {shape, packed, weights, *where};
    rcn__for_all(ctx, shape->depth * channels_in(shape) / RCN_LANES, pack_block, &job);
}

/* ---- convolution ----------------------------------------------------------------------------- */

typedef struct convolve_job {
    const rcn__winograd *shape;
    blocking blocks;
    block one; /* without kept forms: that all threads work on */
    float *out[2];
    const rcn__source *in;
    const float *packed;
    rcn__ending ending;
    float *inputs;         /* without kept forms: of all threads */
    float *scratch;        /* of each thread: */
    int64_t thread_floats; /* inputs or weights, then sums */
    int64_t in_pitch, sum_pitch;
    int64_t sum_rows, row_parts;
    int streams;        /* the output is too large for a cache */
    ptrdiff_t *offsets; /* of the slices and blocks of channels in a block's inputs */
} convolve_job;

enum { KEPT_FLOATS = 65536, SHARED_FLOATS = 1 << 20, SUM_ROWS = 4 * ROWS };

static void plan_convolution(convolve_job *job, const rcn__winograd *shape, int threads) {
    const int64_t in = channels_in(shape);
    job->shape = shape;
    if (keeps_forms(shape))
        job->blocks = block_up(shape, KEPT_FLOATS, POINTS * in, 4 * (int64_t)threads);
    else
        job->blocks = block_up(shape, SHARED_FLOATS, POINTS * in, 1);
    const block one = largest_block(&job->blocks);
    job->in_pitch = pitch_of(in_rows(shape, &one) * in);
    /* Rows that are finished at a time; all if they wait for several parts of the channels. */
    job->sum_rows = keeps_forms(shape) || part_count(shape) > 1 ? out_rows(&one)
                                                                : smaller(out_rows(&one), SUM_ROWS);
    job->sum_pitch = pitch_of(job->sum_rows * WIDTH);
    const int64_t groups = groups_of(shape->out);
    job->row_parts = smaller(parts(2 * (int64_t)threads, groups), parts(out_rows(&one), SUM_ROWS));
    const int64_t first = keeps_forms(shape) ? job->in_pitch : part_pitch(shape, WIDTH);
    job->thread_floats = POINTS * (first + job->sum_pitch);
    job->streams =
        shape->batch * shape->out * shape->size[0] * shape->size[1] * shape->size[2] > LARGE_FLOATS;
}

static size_t winograd_scratch_bytes(const rcn__winograd *shape, int threads) {
    convolve_job job = {0};
    plan_convolution(&job, shape, threads);
    const int64_t shared = keeps_forms(shape) ? 0 : POINTS * job.in_pitch;
    return (size_t)(shared + threads * job.thread_floats) * sizeof(float) +
           (size_t)(threads + 1) * (size_t)(shape->depth * channels_in(shape)) * sizeof(ptrdiff_t);
}

/* A slice of a block of output channels: where its numbers go, and what is added to them. */
typedef struct out_slice {
    float *to;
    const float *residual; /* or NULL */
} out_slice;

static out_slice out_slice_at(const convolve_job *job, int64_t image, int64_t channel_block,
                              int64_t z) {
    const rcn__winograd *shape = job->shape;
    const int64_t blocks[2] = {(shape->out - shape->out_second) / RCN_LANES,
                               shape->out_second / RCN_LANES};
    const int which = channel_block >= blocks[0];
    const int64_t own = channel_block - (which ? blocks[0] : 0);
    const int64_t plane = shape->size[1] * shape->size[2];
    const int64_t at = ((image * blocks[which] + own) * shape->size[0] + z) * plane * RCN_LANES;
    const float *residual = job->ending.residual[which];
    const out_slice slice = {job->out[which] + at, residual ? residual + at : NULL};
    return slice;
}

/* Outputs of one tile and block of channels. */
RCN_INLINE void finish_tile(const convolve_job *job, out_slice out, const float *sums, tile t,
                            lanes bias, const int streams) {
    const int64_t height = job->shape->size[1], width = job->shape->size[2];
    const int relu = job->ending.relu;
    const int64_t rows = smaller(height - t.y, OUT_TILE), columns = smaller(width - t.x, OUT_TILE);
    lanes half[OUT_TILE][IN_TILE];
    for (int j = 0; j < IN_TILE; ++j) {
        lanes m[6], y[4];
        for (int i = 0; i < IN_TILE; ++i)
            m[i] = lanes_load(sums + (i * IN_TILE + j) * job->sum_pitch);
        output_form(y, m);
        for (int i = 0; i < OUT_TILE; ++i) half[i][j] = y[i];
    }
    for (int i = 0; i < rows; ++i) {
        const int64_t first = ((t.y + i) * width + t.x) * RCN_LANES;
        lanes y[4];
        output_form(y, half[i]);
        for (int j = 0; j < OUT_TILE; ++j) {
            if (j >= columns) break;
            lanes value = lanes_add(y[j], bias);
            if (out.residual)
                value = lanes_add(value, lanes_load(out.residual + first + j * RCN_LANES));
            if (relu) value = lanes_at_least(lanes_zero(), value);
            if (streams)
                lanes_stream(out.to + first + j * RCN_LANES, value);
            else
                lanes_store(out.to + first + j * RCN_LANES, value);
        }
    }
}

/* The sums of the rows [first, end) of a block for one group of output channels, over the blocks of
 * input channels [from, to) whose weights' forms these are, `pitch` apart. Meanwhile `floats` that
 * are wanted `soon` are fetched from memory. */
static void multiply_points(float *sums, const convolve_job *job, int64_t group,
                            const float *inputs, const float *forms, int64_t pitch, int64_t first,
                            int64_t end, const ptrdiff_t *offsets, int64_t from, int64_t to,
                            const float *soon, int64_t floats) {
    const int64_t columns = columns_of(job->shape->out, group);
    for (int p = 0; p < POINTS; ++p) {
        for (int64_t i = floats * p / POINTS; i < floats * (p + 1) / POINTS; i += LINE_FLOATS)
            prefetch(soon + i);
        const rcn__product product = {.c = sums + p * job->sum_pitch,
                                      .c_pitch = columns,
                                      .add = from > 0,
                                      .a = inputs + p * job->in_pitch + first * RCN_LANES,
                                      .offsets = offsets + from,
                                      .outer = to - from,
                                      .inner = RCN_LANES,
                                      .b = forms + p * pitch};
        multiply_rows(product, RCN_FORWARD, end - first, columns);
    }
}

/* The outputs of those rows. */
static void finish_rows(const convolve_job *job, const block *one, int64_t group, const float *sums,
                        int64_t first, int64_t end) {
    const rcn__winograd *shape = job->shape;
    const int64_t columns = columns_of(shape->out, group), left = shape->out - group * WIDTH;
    for (int64_t v = 0; v * RCN_LANES < smaller(left, WIDTH); ++v) {
        const int64_t c = group * WIDTH / RCN_LANES + v;
        const lanes bias =
            job->ending.bias ? lanes_load(job->ending.bias + c * RCN_LANES) : lanes_zero();
        tile t = tile_at(&job->blocks, one->tile + first % one->tiles);
        for (int64_t row = first; row < end; ++row) {
            if (row % one->tiles == 0) t = tile_at(&job->blocks, one->tile);
            const out_slice out = out_slice_at(job, t.image, c, one->slice + row / one->tiles);
            const float *from = sums + (row - first) * columns + v * RCN_LANES;
            if (job->streams)
                finish_tile(job, out, from, t, bias, 1);
            else
                finish_tile(job, out, from, t, bias, 0);
            t = next_tile(&job->blocks, t);
        }
    }
    if (job->streams) lanes_stream_end();
}

static void fill_offsets(ptrdiff_t *offsets, const rcn__winograd *shape, const block *one) {
    const int64_t blocks = channels_in(shape) / RCN_LANES;
    for (int64_t z = 0; z < shape->depth; ++z)
        for (int64_t c = 0; c < blocks; ++c)
            offsets[z * blocks + c] =
                (ptrdiff_t)((c * in_rows(shape, one) + z * one->tiles) * RCN_LANES);
}

/* With kept forms: a block from its inputs to its outputs, in the memory of one thread. */
static void convolve_block(int64_t index, int thread, void *payload) {
    const convolve_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const block one = block_at(&job->blocks, shape, index);
    const int64_t blocks = channels_in(shape) / RCN_LANES;
    float *inputs = job->scratch + thread * job->thread_floats;
    float *sums = inputs + POINTS * job->in_pitch;
    ptrdiff_t *offsets = job->offsets + (thread + 1) * shape->depth * blocks;
    for (int64_t c = 0; c < blocks; ++c)
        for (int64_t z = 0; z < one.slices + shape->depth - 1; ++z)
            spread_inputs(inputs, job->in_pitch, &job->blocks, shape, &one, job->in, c, z);
    fill_offsets(offsets, shape, &one);
    for (int64_t group = 0; group < groups_of(shape->out); ++group) {
        multiply_points(sums, job, group, inputs,
                        job->packed + group * POINTS * form_pitch(shape, WIDTH),
                        form_pitch(shape, columns_of(shape->out, group)), 0, out_rows(&one),
                        offsets, 0, shape->depth * blocks, NULL, 0);
        finish_rows(job, &one, group, sums, 0, out_rows(&one));
    }
}

/* Without: first all inputs of a block, */
static void spread_task(int64_t index, int thread, void *payload) {
    const convolve_job *job = payload;
    const int64_t slices = job->one.slices + job->shape->depth - 1;
    (void)thread;
    spread_inputs(job->inputs, job->in_pitch, &job->blocks, job->shape, &job->one, job->in,
                  index / slices, index % slices);
}

/* The forms of the taps of `in` input channels and one group of output channels. All taps of a
 * network do not stay in any cache, so they are asked for some channels ahead. */
static void form_part(float *forms, int64_t pitch, const float *taps, int64_t in, int64_t columns) {
    enum { AHEAD = 4 };
    for (int64_t c = 0; c < in; ++c) {
        const float *soon = taps + smaller(c + AHEAD, in - 1) * TAPS * columns;
        for (int64_t i = 0; i < TAPS * columns; i += LINE_FLOATS) prefetch(soon + i);
        for (int64_t k = 0; k < columns; k += RCN_LANES) {
            lanes g[TAPS];
            for (int i = 0; i < TAPS; ++i) g[i] = lanes_load(taps + (c * TAPS + i) * columns + k);
            form_weights(forms + c * columns + k, pitch, g);
        }
    }
}

/* then a group of output channels for a part of the rows. */
static void convolve_group(int64_t index, int thread, void *payload) {
    const convolve_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const int64_t group = index / job->row_parts, part = index % job->row_parts;
    const int64_t columns = columns_of(shape->out, group), rows = out_rows(&job->one);
    const int64_t first = rows * part / job->row_parts, end = rows * (part + 1) / job->row_parts;
    const int64_t in = shape->depth * channels_in(shape), pitch = part_pitch(shape, columns);
    const int64_t pieces = parts(end - first, job->sum_rows), count = part_count(shape);
    float *forms = job->scratch + thread * job->thread_floats;
    float *sums = forms + POINTS * part_pitch(shape, WIDTH);
    const float *taps = job->packed + columns_before(group) * in * TAPS;
    const float *last = job->packed + columns_in_all(shape->out) * in * TAPS;
    for (int64_t piece = 0; piece < pieces; ++piece) {
        const int64_t row = first + (end - first) * piece / pieces;
        const int64_t row_end = first + (end - first) * (piece + 1) / pieces;
        for (int64_t k = 0; k < count; ++k) {
            const int64_t from = part_start(shape, k), to = part_start(shape, k + 1);
            const float *now = taps + from * RCN_LANES * TAPS * columns;
            const float *soon = taps + to * RCN_LANES * TAPS * columns;
            /* Of several parts each is made once: then there is one piece. */
            if (piece == 0) form_part(forms, pitch, now, (to - from) * RCN_LANES, columns);
            multiply_points(sums, job, group, job->inputs, forms, pitch, row, row_end, job->offsets,
                            from, to, soon, piece ? 0 : smaller(soon - now, last - soon));
        }
        finish_rows(job, &job->one, group, sums, row, row_end);
    }
}

static void winograd_convolve(float *const out[2], const rcn__winograd *shape, rcn_context *ctx,
                              const rcn__source *in, const float *packed, const rcn__ending *ending,
                              void *scratch) {
    convolve_job job = {.out = {out[0], out[1]}, .in = in, .packed = packed, .ending = *ending};
    plan_convolution(&job, shape, ctx->threads);
    job.scratch = scratch;
    job.inputs = job.scratch + ctx->threads * job.thread_floats;
    job.offsets = (ptrdiff_t *)(job.inputs + (keeps_forms(shape) ? 0 : POINTS * job.in_pitch));
    if (keeps_forms(shape)) {
        rcn__for_all(ctx, block_count(&job.blocks), convolve_block, &job);
        return;
    }
    for (int64_t i = 0; i < block_count(&job.blocks); ++i) {
        job.one = block_at(&job.blocks, shape, i);
        fill_offsets(job.offsets, shape, &job.one);
        rcn__for_all(ctx, channels_in(shape) / RCN_LANES * (job.one.slices + shape->depth - 1),
                     spread_task, &job);
        rcn__for_all(ctx, groups_of(shape->out) * job.row_parts, convolve_group, &job);
    }
}

/* ---- weights' gradient ----------------------------------------------------------------------- */

/* A task multiplies the forms of IN_RANGE input channels, one group of output channels and one
 * slice of the kernel, over the tiles of a block. Two ways, as forward:
 *
 * Few channels: a thread makes the forms of a block of tiles in memory of its own and does all
 * tasks. Blocks are shared out to SLOTS slots, each with its own sums, which are added up in order
 * at the end.
 *
 * Many: all threads make the forms of a large block, then the tasks go to the threads. Their sums
 * stay in a thread's memory if one block is all there is, otherwise they have a place of their own.
 *
 * Neither depends on the number of threads. */
enum { SLOTS = 8, SLOT_FLOATS = 131072, SHARED_BLOCK_FLOATS = 3 << 19 };

typedef struct gradient_job {
    const rcn__winograd *shape;
    blocking blocks;
    block one; /* many channels: that all threads work on */
    int first, last;
    float *dweights;
    const rcn__source *in;
    const float *dout;
    rcn__weight_slice where;
    float *forms; /* of inputs, then of outputs' gradients; of each thread or of all */
    float *sums;
    int64_t in_pitch, out_pitch, sum_floats;
    int64_t in_ranges, slots; /* slots: 0 for many channels */
} gradient_job;

static void plan_gradient(gradient_job *job, const rcn__winograd *shape) {
    const int64_t in = channels_in(shape), out = columns_in_all(shape->out);
    const int few = shape->depth * in * out <= 4096;
    job->shape = shape;
    job->blocks = block_up(shape, few ? SLOT_FLOATS : SHARED_BLOCK_FLOATS, POINTS * (in + out),
                           few ? SLOTS : 1);
    const block one = largest_block(&job->blocks);
    job->in_pitch = pitch_of(in_rows(shape, &one) * in);
    job->out_pitch = pitch_of(out_rows(&one) * out);
    job->in_ranges = parts(in, IN_RANGE);
    job->sum_floats = POINTS * smaller(in, IN_RANGE) * WIDTH;
    job->slots = few ? smaller(SLOTS, block_count(&job->blocks)) : 0;
}

static int64_t gradient_tasks(const gradient_job *job) {
    return job->shape->depth * job->in_ranges * groups_of(job->shape->out);
}

static int64_t gradient_forms(const gradient_job *job) {
    return POINTS * (job->in_pitch + job->out_pitch);
}

static int is_one_block(const gradient_job *job) { return block_count(&job->blocks) == 1; }

static size_t winograd_gradient_bytes(const rcn__winograd *shape, int threads) {
    gradient_job job = {0};
    plan_gradient(&job, shape);
    int64_t sums = gradient_tasks(&job);
    if (job.slots)
        sums *= job.slots;
    else if (is_one_block(&job))
        sums = threads;
    return (size_t)((job.slots ? threads : 1) * gradient_forms(&job) + sums * job.sum_floats) *
           sizeof(float);
}

/* The form of 4x4 gradients of outputs. */
RCN_INLINE void form_output(float *to, int64_t pitch, const float *plane, tile t, int64_t height,
                            int64_t width) {
    lanes half[IN_TILE][OUT_TILE];
    const int inside = t.y + OUT_TILE <= height && t.x + OUT_TILE <= width;
    for (int j = 0; j < OUT_TILE; ++j) {
        lanes y[4], m[6];
        for (int i = 0; i < OUT_TILE; ++i)
            y[i] = inside ? lanes_load(plane + ((t.y + i) * width + t.x + j) * RCN_LANES)
                          : voxel_at(plane, t.y + i, t.x + j, height, width);
        output_form_back(m, y);
        for (int i = 0; i < IN_TILE; ++i) half[i][j] = m[i];
    }
    for (int i = 0; i < IN_TILE; ++i) {
        lanes m[6];
        output_form_back(m, half[i]);
        for (int j = 0; j < IN_TILE; ++j) lanes_store(to + (i * IN_TILE + j) * pitch, m[j]);
    }
}

/* to[point][group][row][columns] for one group of channels, one slice and some of its tiles. A task
 * has whole rows of a group: threads that write to one line of the cache in turn take it away from
 * each other, which takes many times as long as to fill it. */
static void spread_outputs(float *to, const gradient_job *job, const block *one, int64_t group,
                           int64_t slice, int64_t first, int64_t end) {
    const rcn__winograd *shape = job->shape;
    const int64_t height = shape->size[1], width = shape->size[2];
    const int64_t blocks = shape->out / RCN_LANES, voxels = height * width * shape->size[0];
    const int64_t columns = columns_of(shape->out, group);
    to += columns_before(group) * out_rows(one) + (slice * one->tiles + first) * columns;
    for (int64_t v = 0; v < columns / RCN_LANES; ++v) {
        const int64_t channel_block = group * WIDTH / RCN_LANES + v;
        tile t = tile_at(&job->blocks, one->tile + first);
        float *row = to + v * RCN_LANES;
        for (int64_t i = first; i < end; ++i, row += columns) {
            if (channel_block < blocks)
                form_output(row, job->out_pitch,
                            job->dout + ((t.image * blocks + channel_block) * voxels +
                                         (one->slice + slice) * height * width) *
                                            RCN_LANES,
                            t, height, width);
            else /* the last vector is only half filled */
                for (int p = 0; p < POINTS; ++p)
                    lanes_store(row + p * job->out_pitch, lanes_zero());
            t = next_tile(&job->blocks, t);
        }
    }
}

/* The forms of a block come in so many pieces: of the inputs a block of channels in a slice each,
 * of the outputs a group of channels, a slice and a run of tiles. */
enum { TILE_RUNS = WIDTH / RCN_LANES };
static int64_t input_pieces(const gradient_job *job, const block *one) {
    return channels_in(job->shape) / RCN_LANES * (one->slices + job->shape->depth - 1);
}
static int64_t pieces_of(const gradient_job *job, const block *one) {
    return input_pieces(job, one) + groups_of(job->shape->out) * one->slices * TILE_RUNS;
}

static void spread_piece(float *forms, const gradient_job *job, const block *one, int64_t index) {
    const int64_t inputs = input_pieces(job, one), in_slices = one->slices + job->shape->depth - 1;
    if (index < inputs)
        spread_inputs(forms, job->in_pitch, &job->blocks, job->shape, one, job->in,
                      index / in_slices, index % in_slices);
    else {
        const int64_t at = index - inputs, run = at % TILE_RUNS, slice = at / TILE_RUNS;
        spread_outputs(forms + POINTS * job->in_pitch, job, one, slice / one->slices,
                       slice % one->slices, one->tiles * run / TILE_RUNS,
                       one->tiles * (run + 1) / TILE_RUNS);
    }
}

/* What a task is about. */
typedef struct gradient_part {
    int64_t group, z, first, in; /* in: input channels, from the first on */
} gradient_part;

static gradient_part part_at(const gradient_job *job, int64_t index) {
    const int64_t groups = groups_of(job->shape->out);
    gradient_part part = {.group = index % groups,
                          .z = index / groups / job->in_ranges,
                          .first = index / groups % job->in_ranges * IN_RANGE};
    part.in = smaller(channels_in(job->shape) - part.first, IN_RANGE);
    return part;
}

/* sums[point][input][columns] (+)= inputs' forms times outputs'. */
static void add_part(float *sums, int add, const gradient_job *job, const block *one,
                     const float *forms, int64_t index) {
    static const ptrdiff_t start = 0;
    const rcn__winograd *shape = job->shape;
    const gradient_part part = part_at(job, index);
    const int64_t columns = columns_of(shape->out, part.group), rows = out_rows(one);
    for (int p = 0; p < POINTS; ++p)
        for (int64_t c = 0; c < part.in; c += RCN_LANES) {
            const int64_t row =
                (part.first + c) / RCN_LANES * in_rows(shape, one) + part.z * one->tiles;
            const rcn__product product = {.c = sums + (p * part.in + c) * columns,
                                          .c_pitch = columns,
                                          .add = add,
                                          .a = forms + p * job->in_pitch + row * RCN_LANES,
                                          .offsets = &start,
                                          .outer = 1,
                                          .inner = rows,
                                          .b = forms + POINTS * job->in_pitch + p * job->out_pitch +
                                               columns_before(part.group) * rows};
            multiply_rows(product, RCN_GRADIENT, RCN_LANES, columns);
        }
}

/* From the sums of one task back to taps. */
static void finish_part(const gradient_job *job, const float *sums, int64_t index) {
    const rcn__winograd *shape = job->shape;
    const gradient_part part = part_at(job, index);
    const int64_t columns = columns_of(shape->out, part.group);
    const int64_t outs = smaller(shape->out - part.group * WIDTH, WIDTH);
    for (int64_t c = 0; c < part.in; ++c)
        for (int64_t k = 0; k < outs; k += RCN_LANES) {
            lanes half[3][IN_TILE];
            for (int j = 0; j < IN_TILE; ++j) {
                lanes u[6], g[3];
                for (int i = 0; i < IN_TILE; ++i)
                    u[i] = lanes_load(sums + ((i * IN_TILE + j) * part.in + c) * columns + k);
                weight_form_back(g, u);
                for (int i = 0; i < 3; ++i) half[i][j] = g[i];
            }
            for (int i = 0; i < 3; ++i) {
                lanes g[3];
                _Alignas(32) float row[3][RCN_LANES];
                weight_form_back(g, half[i]);
                for (int j = 0; j < 3; ++j) lanes_store(row[j], g[j]);
                for (int l = 0; l < RCN_LANES; ++l) {
                    float *taps = job->dweights + taps_of(shape, &job->where, part.first + c,
                                                          part.group * WIDTH + k + l, part.z);
                    for (int j = 0; j < 3; ++j) taps[i * 3 + j] = row[j][l];
                }
            }
        }
}

/* Few channels: the blocks of one slot. */
static void gradient_slot(int64_t slot, int thread, void *payload) {
    const gradient_job *job = payload;
    const int64_t count = block_count(&job->blocks), tasks = gradient_tasks(job);
    const int64_t first = count * slot / job->slots;
    float *forms = job->forms + thread * gradient_forms(job);
    float *sums = job->sums + slot * tasks * job->sum_floats;
    for (int64_t i = first; i < count * (slot + 1) / job->slots; ++i) {
        const block one = block_at(&job->blocks, job->shape, i);
        for (int64_t k = 0; k < pieces_of(job, &one); ++k) spread_piece(forms, job, &one, k);
        for (int64_t k = 0; k < tasks; ++k)
            add_part(sums + k * job->sum_floats, i > first, job, &one, forms, k);
    }
}

/* Then the slots of one task. */
static void gradient_join(int64_t index, int thread, void *payload) {
    const gradient_job *job = payload;
    const gradient_part part = part_at(job, index);
    const int64_t floats = POINTS * part.in * columns_of(job->shape->out, part.group);
    float *sums = job->sums + index * job->sum_floats;
    (void)thread;
    for (int64_t s = 1; s < job->slots; ++s) {
        const float *other = sums + s * gradient_tasks(job) * job->sum_floats;
        for (int64_t i = 0; i < floats; ++i) sums[i] += other[i];
    }
    finish_part(job, sums, index);
}

/* Many channels: the forms, */
static void gradient_spread(int64_t index, int thread, void *payload) {
    const gradient_job *job = payload;
    (void)thread;
    spread_piece(job->forms, job, &job->one, index);
}

/* then the tasks. */
static void gradient_task(int64_t index, int thread, void *payload) {
    const gradient_job *job = payload;
    float *sums = job->sums + (is_one_block(job) ? thread : index) * job->sum_floats;
    add_part(sums, !job->first, job, &job->one, job->forms, index);
    if (job->last) finish_part(job, sums, index);
}

static void winograd_gradient(float *dweights, float *dbias, const rcn__winograd *shape,
                              rcn_context *ctx, const rcn__source *in, const float *dout,
                              const rcn__weight_slice *where, void *scratch) {
    gradient_job job = {.dweights = dweights, .in = in, .dout = dout, .where = *where};
    plan_gradient(&job, shape);
    job.forms = scratch;
    job.sums = job.forms + (job.slots ? ctx->threads : 1) * gradient_forms(&job);
    const int64_t count = job.slots ? 0 : block_count(&job.blocks);
    if (job.slots) {
        rcn__for_all(ctx, job.slots, gradient_slot, &job);
        rcn__for_all(ctx, gradient_tasks(&job), gradient_join, &job);
    }
    for (int64_t i = 0; i < count; ++i) {
        job.one = block_at(&job.blocks, shape, i);
        job.first = i == 0;
        job.last = i == count - 1;
        rcn__for_all(ctx, pieces_of(&job, &job.one), gradient_spread, &job);
        rcn__for_all(ctx, gradient_tasks(&job), gradient_task, &job);
    }
    if (dbias)
        sum_outputs(dbias, ctx, dout, shape->batch, shape->out,
                    shape->size[0] * shape->size[1] * shape->size[2]);
}
