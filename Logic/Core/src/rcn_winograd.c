// SPDX-License-Identifier: Apache-2.0
/* Compiled for AVX2 and FMA (CMakeLists.txt), whatever the rest is compiled for. */
#include "rcn_winograd.h"

#include <string.h>

#include "rcn_conv.h"
#include "rcn_lanes.h"
#include "rcn_parallel.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    OUT_TILE = 4,
    IN_TILE = 6,
    POINTS = IN_TILE * IN_TILE,
    ROWS = 6,              /* of a matrix product at a time: with two vectors of columns, */
    WIDTH = 2 * RCN_LANES, /* twelve sums in the sixteen registers */
    TAPS = 9
};

/* ---- the forms ------------------------------------------------------------------------------- */

/* Points 0, A, -A, B, -B, infinity. Each function is one dimension of a form; even and odd powers
 * are shared between a point and its negative. */
#define A 0.75f
#define B 1.5f
#define AA (A * A)
#define BB (B * B)

INLINE void input_form(lanes t[6], const lanes d[6]) {
    const lanes even_a = d[4] - BB * d[2], odd_a = A * (d[3] - BB * d[1]);
    const lanes even_b = d[4] - AA * d[2], odd_b = B * (d[3] - AA * d[1]);
    t[0] = (AA * BB) * d[0] - (AA + BB) * d[2] + d[4];
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = (AA * BB) * d[1] - (AA + BB) * d[3] + d[5];
}

INLINE void output_form(lanes y[4], const lanes m[6]) {
    const lanes even_a = m[1] + m[2], odd_a = m[1] - m[2];
    const lanes even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + even_a + even_b;
    y[1] = A * odd_a + B * odd_b;
    y[2] = AA * even_a + BB * even_b;
    y[3] = (AA * A) * odd_a + (BB * B) * odd_b + m[5];
}

/* The adjoint of output_form(). */
INLINE void output_form_back(lanes m[6], const lanes y[4]) {
    const lanes even_a = y[0] + AA * y[2], odd_a = A * y[1] + (AA * A) * y[3];
    const lanes even_b = y[0] + BB * y[2], odd_b = B * y[1] + (BB * B) * y[3];
    m[0] = y[0];
    m[1] = even_a + odd_a;
    m[2] = even_a - odd_a;
    m[3] = even_b + odd_b;
    m[4] = even_b - odd_b;
    m[5] = y[3];
}

/* The Lagrange factors of the points. */
#define FACTOR_0 (1 / (AA * BB))
#define FACTOR_A (1 / (2 * AA * (AA - BB)))
#define FACTOR_B (1 / (2 * BB * (BB - AA)))

INLINE void weight_form(lanes u[6], const lanes g[3]) {
    const lanes even_a = FACTOR_A * (g[0] + AA * g[2]), odd_a = (FACTOR_A * A) * g[1];
    const lanes even_b = FACTOR_B * (g[0] + BB * g[2]), odd_b = (FACTOR_B * B) * g[1];
    u[0] = FACTOR_0 * g[0];
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2];
}

/* The adjoint of weight_form(). */
INLINE void weight_form_back(lanes g[3], const lanes u[6]) {
    const lanes even_a = FACTOR_A * (u[1] + u[2]), odd_a = (FACTOR_A * A) * (u[1] - u[2]);
    const lanes even_b = FACTOR_B * (u[3] + u[4]), odd_b = (FACTOR_B * B) * (u[3] - u[4]);
    g[0] = FACTOR_0 * u[0] + even_a + even_b;
    g[1] = odd_a + odd_b;
    g[2] = AA * even_a + BB * even_b + u[5];
}

/* ---- blocks of tiles ------------------------------------------------------------------------- */

/* Tiles are numbered over (image, y, x). A block is a range of tiles in a run of slices; its rows
 * are (slice, tile), the last tiles of a slice being filled up to a multiple of ROWS. Inputs have
 * (depth - 1) / 2 more slices on either side. */
typedef struct blocking {
    int64_t tiles_y, tiles_x, tiles; /* of all images */
    int64_t tiles_per_block, slices_per_block;
    int64_t tile_blocks, slice_blocks;
    int64_t rows, in_rows;       /* of a whole block */
    int64_t in_pitch, out_pitch; /* floats from one point's matrix to the next's */
} blocking;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/* Matrices an odd number of cache lines apart do not fall into the same sets of a cache. */
static int64_t pitch_of(int64_t floats) { return parts(floats, 16) / 2 * 32 + 16; }

/* As many tiles as keep a block's matrices (with so many columns, the channels) in
 * `cache_kilobytes`, but not fewer than `least` rows. */
static blocking block_up(const rcn__winograd *shape, int threads, int64_t columns,
                         int64_t out_columns, int64_t cache_kilobytes, int64_t least) {
    const int64_t cache = cache_kilobytes * 1024 / (POINTS * (int64_t)sizeof(float));
    blocking b = {.tiles_y = parts(shape->size[1], OUT_TILE),
                  .tiles_x = parts(shape->size[2], OUT_TILE)};
    b.tiles = shape->batch * b.tiles_y * b.tiles_x;
    b.slices_per_block = shape->depth == 1 ? 1 : smaller(shape->size[0], 8);
    b.slice_blocks = parts(shape->size[0], b.slices_per_block);
    const int64_t in_slices = b.slices_per_block + shape->depth - 1;
    const int64_t tiles = smaller(
        larger(larger(cache / (columns * in_slices), least / b.slices_per_block), ROWS), 96);
    b.tile_blocks = parts(b.tiles, tiles);
    if (b.tile_blocks * b.slice_blocks < 8 * threads) /* few: the same number for each thread */
        b.tile_blocks = parts(b.tile_blocks, threads) * threads;
    b.tiles_per_block = parts(parts(b.tiles, b.tile_blocks), ROWS) * ROWS;
    b.tile_blocks = parts(b.tiles, b.tiles_per_block);
    b.rows = b.tiles_per_block * b.slices_per_block;
    b.in_rows = b.tiles_per_block * in_slices;
    b.in_pitch = pitch_of(b.in_rows * shape->in);
    b.out_pitch = pitch_of(b.rows * out_columns);
    return b;
}

static int64_t block_count(const blocking *b) { return b->tile_blocks * b->slice_blocks; }

typedef struct block {
    int64_t tile, tile_end, slice, slice_end;
} block;

static block block_at(const blocking *b, const rcn__winograd *shape, int64_t index) {
    block one;
    one.tile = index % b->tile_blocks * b->tiles_per_block;
    one.tile_end = smaller(one.tile + b->tiles_per_block, b->tiles);
    one.slice = index / b->tile_blocks * b->slices_per_block;
    one.slice_end = smaller(one.slice + b->slices_per_block, shape->size[0]);
    return one;
}

/* Where a tile lies. */
typedef struct tile {
    int64_t image, y, x; /* of its first output */
} tile;

INLINE tile tile_at(const blocking *b, int64_t index) {
    const int64_t plane = b->tiles_y * b->tiles_x, within = index % plane;
    const tile t = {index / plane, within / b->tiles_x * OUT_TILE, within % b->tiles_x * OUT_TILE};
    return t;
}

/* A voxel of a slice, zero outside. */
INLINE lanes voxel_at(const float *slice, int64_t y, int64_t x, int64_t height, int64_t width) {
    if (y < 0 || y >= height || x < 0 || x >= width) return ALL(0.0f);
    return LANES_AT(slice + (y * width + x) * RCN_LANES);
}

/* The forms of a block's inputs: to[point][channel block][row][lane]. */
static void spread_inputs(float *to, const blocking *b, const rcn__winograd *shape, block one,
                          const float *in) {
    const int64_t height = shape->size[1], width = shape->size[2], halo = shape->depth / 2;
    const int64_t blocks = shape->in / RCN_LANES, voxels = height * width * shape->size[0];
    for (int64_t z = one.slice - halo; z < one.slice_end + halo; ++z) {
        float *slice = to + (z - one.slice + halo) * b->tiles_per_block * RCN_LANES;
        if (z < 0 || z >= shape->size[0]) {
            for (int p = 0; p < POINTS; ++p)
                for (int64_t c = 0; c < blocks; ++c)
                    memset(slice + p * b->in_pitch + c * b->in_rows * RCN_LANES, 0,
                           (size_t)(b->tiles_per_block * RCN_LANES) * sizeof *to);
            continue;
        }
        for (int64_t index = one.tile; index < one.tile_end; ++index) {
            const tile t = tile_at(b, index);
            const int64_t y = t.y - 1, x = t.x - 1;
            const int inside = y >= 0 && x >= 0 && y + IN_TILE <= height && x + IN_TILE <= width;
            for (int64_t c = 0; c < blocks; ++c) {
                const float *plane =
                    in + ((t.image * blocks + c) * voxels + z * height * width) * RCN_LANES;
                float *row = slice + (c * b->in_rows + index - one.tile) * RCN_LANES;
                lanes edge[POINTS], half[IN_TILE][IN_TILE];
                const float *from = plane + (y * width + x) * RCN_LANES;
                int64_t pitch = width * RCN_LANES;
                if (!inside) {
                    for (int i = 0; i < IN_TILE; ++i)
                        for (int j = 0; j < IN_TILE; ++j)
                            edge[i * IN_TILE + j] = voxel_at(plane, y + i, x + j, height, width);
                    from = (const float *)edge;
                    pitch = IN_TILE * RCN_LANES;
                }
                for (int j = 0; j < IN_TILE; ++j) {
                    lanes d[6], w[6];
                    for (int i = 0; i < IN_TILE; ++i)
                        d[i] = LANES_AT(from + i * pitch + j * RCN_LANES);
                    input_form(w, d);
                    for (int i = 0; i < IN_TILE; ++i) half[i][j] = w[i];
                }
                for (int i = 0; i < IN_TILE; ++i) {
                    lanes w[6];
                    input_form(w, half[i]);
                    for (int j = 0; j < IN_TILE; ++j)
                        STORE(row + (i * IN_TILE + j) * b->in_pitch, w[j]);
                }
            }
        }
    }
}

/* ---- convolution ----------------------------------------------------------------------------- */

typedef struct convolve_job {
    const rcn__winograd *shape;
    blocking blocks;
    float *out;
    const float *in, *packed, *bias;
    int add, relu;
    float *scratch;
    int64_t scratch_floats; /* per thread */
} convolve_job;

size_t rcn__winograd_packed_bytes(const rcn__winograd *shape) {
    return (size_t)(POINTS * shape->depth * shape->in * shape->out) * sizeof(float);
}

static int64_t convolve_floats(const blocking *b) { return POINTS * (b->in_pitch + b->out_pitch); }

/* Small blocks: first-level and second-level cache are both busy with them. */
static blocking convolve_blocks(const rcn__winograd *shape, int threads) {
    return block_up(shape, threads, shape->in, WIDTH, 64, ROWS);
}

size_t rcn__winograd_scratch_bytes(const rcn__winograd *shape, int threads) {
    const blocking b = convolve_blocks(shape, threads);
    return (size_t)(convolve_floats(&b) * threads) * sizeof(float);
}

/* sums[ROWS][vectors] = rows of v (channels of `depth` slices) times u. */
INLINE void multiply(float *sums, const int vectors, const float *v, const float *u, int64_t depth,
                     int64_t slice_pitch, int64_t blocks, int64_t block_pitch) {
    lanes s[ROWS][2];
    for (int r = 0; r < ROWS; ++r)
        for (int k = 0; k < vectors; ++k) s[r][k] = ALL(0.0f);
    for (int64_t z = 0; z < depth; ++z)
        for (int64_t c = 0; c < blocks; ++c) {
            const float *row = v + z * slice_pitch + c * block_pitch;
            for (int l = 0; l < RCN_LANES; ++l, u += vectors * RCN_LANES) {
                lanes w[2];
                for (int k = 0; k < vectors; ++k) w[k] = LANES_AT(u + k * RCN_LANES);
                for (int r = 0; r < ROWS; ++r)
                    for (int k = 0; k < vectors; ++k) s[r][k] += ALL(row[r * RCN_LANES + l]) * w[k];
            }
        }
    for (int r = 0; r < ROWS; ++r)
        for (int k = 0; k < vectors; ++k) STORE(sums + (r * vectors + k) * RCN_LANES, s[r][k]);
}

/* All rows and points of a block for one group of output channels. */
INLINE void multiply_all(float *sums, const int vectors, const convolve_job *job, const float *v,
                         const float *u) {
    const blocking *b = &job->blocks;
    const int64_t blocks = job->shape->in / RCN_LANES, depth = job->shape->depth;
    for (int p = 0; p < POINTS; ++p)
        for (int64_t row = 0; row < b->rows; row += ROWS)
            multiply(sums + p * b->out_pitch + row * vectors * RCN_LANES, vectors,
                     v + p * b->in_pitch + row * RCN_LANES,
                     u + p * depth * job->shape->in * vectors * RCN_LANES, depth,
                     b->tiles_per_block * RCN_LANES, blocks, b->in_rows * RCN_LANES);
}

/* Outputs of one tile and block of channels. */
INLINE void finish_tile(float *plane, const float *sums, int64_t pitch, tile t, int64_t height,
                        int64_t width, lanes bias, int add, int relu) {
    lanes half[OUT_TILE][IN_TILE];
    const int64_t rows = smaller(height - t.y, OUT_TILE), columns = smaller(width - t.x, OUT_TILE);
    for (int j = 0; j < IN_TILE; ++j) {
        lanes m[6], y[4];
        for (int i = 0; i < IN_TILE; ++i) m[i] = LANES_AT(sums + (i * IN_TILE + j) * pitch);
        output_form(y, m);
        for (int i = 0; i < OUT_TILE; ++i) half[i][j] = y[i];
    }
    for (int i = 0; i < rows; ++i) {
        float *to = plane + ((t.y + i) * width + t.x) * RCN_LANES;
        lanes y[4];
        output_form(y, half[i]);
        for (int j = 0; j < OUT_TILE; ++j) {
            if (j >= columns) break;
            lanes value = y[j] + bias;
            if (add) value += LANES_AT(to + j * RCN_LANES);
            if (relu) value = KEEP_WHERE(value, value > 0);
            STORE(to + j * RCN_LANES, value);
        }
    }
}

static void convolve_block(int64_t index, int thread, void *payload) {
    const convolve_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const blocking *b = &job->blocks;
    const block one = block_at(b, shape, index);
    float *inputs = job->scratch + thread * job->scratch_floats;
    float *sums = inputs + POINTS * b->in_pitch;
    const int64_t height = shape->size[1], width = shape->size[2];
    const int64_t plane = height * width, voxels = plane * shape->size[0];
    const lanes zero = {0};
    spread_inputs(inputs, b, shape, one, job->in);
    for (int64_t k = 0; k < shape->out; k += WIDTH) {
        const int vectors = shape->out - k < WIDTH ? 1 : 2;
        const float *packed = job->packed + k * POINTS * shape->depth * shape->in;
        if (vectors == 2)
            multiply_all(sums, 2, job, inputs, packed);
        else
            multiply_all(sums, 1, job, inputs, packed);
        for (int64_t z = one.slice; z < one.slice_end; ++z)
            for (int64_t i = one.tile; i < one.tile_end; ++i) {
                const tile t = tile_at(b, i);
                const int64_t row = (z - one.slice) * b->tiles_per_block + i - one.tile;
                for (int v = 0; v < vectors; ++v) {
                    const int64_t c = k / RCN_LANES + v;
                    const lanes bias =
                        LANES_AT(job->bias ? job->bias + c * RCN_LANES : (const float *)&zero);
                    finish_tile(job->out +
                                    ((t.image * shape->out / RCN_LANES + c) * voxels + z * plane) *
                                        RCN_LANES,
                                sums + (row * vectors + v) * RCN_LANES, b->out_pitch, t, height,
                                width, bias, job->add, job->relu);
                }
            }
    }
}

void rcn__winograd_convolve(float *out, const rcn__winograd *shape, rcn_context *ctx,
                            const float *in, const float *packed, const float *bias, int add,
                            int relu, void *scratch) {
    convolve_job job = {.shape = shape,
                        .blocks = convolve_blocks(shape, ctx->threads),
                        .out = out,
                        .in = in,
                        .packed = packed,
                        .bias = bias,
                        .add = add,
                        .relu = relu,
                        .scratch = scratch};
    job.scratch_floats = convolve_floats(&job.blocks);
    rcn__for_all(ctx, block_count(&job.blocks), convolve_block, &job);
}

/* ---- weights --------------------------------------------------------------------------------- */

typedef struct pack_job {
    const rcn__winograd *shape;
    float *packed;
    const float *weights;
    rcn__winograd_weights where;
} pack_job;

/* Taps of the kernel between input channel c and output channel k of the convolution to be run. */
INLINE const float *taps_of(const pack_job *job, int64_t c, int64_t k, int64_t z) {
    const rcn__winograd_weights *where = &job->where;
    const int64_t depth = job->shape->depth;
    const int64_t out = where->mirrored ? c : k, in = where->mirrored ? k : c;
    const int64_t slice = where->mirrored ? depth - 1 - z : z;
    return job->weights + ((out * where->total_in + where->first_in + in) * depth + slice) * TAPS;
}

/* packed[group of outputs][point][slice][input][outputs of the group]. */
static void pack_channel(int64_t index, int thread, void *payload) {
    const pack_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const int64_t c = index % shape->in, z = index / shape->in;
    (void)thread;
    for (int64_t k = 0; k < shape->out; k += RCN_LANES) {
        const int64_t group = k / WIDTH * WIDTH;
        const int64_t columns = smaller(shape->out - group, WIDTH);
        float *to = job->packed + group * POINTS * shape->depth * shape->in +
                    (z * shape->in + c) * columns + k - group;
        const int64_t pitch = shape->depth * shape->in * columns;
        lanes g[TAPS], half[IN_TILE][3];
        for (int l = 0; l < RCN_LANES; ++l) {
            const float *taps = taps_of(job, c, k + l, z);
            for (int i = 0; i < TAPS; ++i) g[i][l] = taps[job->where.mirrored ? TAPS - 1 - i : i];
        }
        for (int j = 0; j < 3; ++j) {
            const lanes column[3] = {g[j], g[3 + j], g[6 + j]};
            lanes u[6];
            weight_form(u, column);
            for (int i = 0; i < IN_TILE; ++i) half[i][j] = u[i];
        }
        for (int i = 0; i < IN_TILE; ++i) {
            lanes u[6];
            weight_form(u, half[i]);
            for (int j = 0; j < IN_TILE; ++j) STORE(to + (i * IN_TILE + j) * pitch, u[j]);
        }
    }
}

void rcn__winograd_pack(float *packed, const rcn__winograd *shape, rcn_context *ctx,
                        const float *weights, const rcn__winograd_weights *where) {
    pack_job job = {shape, packed, weights, *where};
    rcn__for_all(ctx, shape->depth * shape->in, pack_channel, &job);
}

/* ---- weights' gradient ----------------------------------------------------------------------- */

/* Blocks are shared out to as many slots as there are threads; each slot sums up its own. */
typedef struct gradient_job {
    const rcn__winograd *shape;
    blocking blocks;
    int slots;
    float *dweights;
    const float *in, *dout;
    rcn__winograd_weights where;
    float *scratch;
    int64_t sum_floats, slot_floats;
} gradient_job;

static int64_t gradient_floats(const rcn__winograd *shape, const blocking *b) {
    return POINTS * (shape->depth * shape->in * shape->out + b->in_pitch + b->out_pitch);
}

/* Larger blocks: each of them reads and writes all sums. */
static blocking gradient_blocks(const rcn__winograd *shape, int threads) {
    return block_up(shape, threads, shape->in + shape->out, shape->out, 192, 48);
}

size_t rcn__winograd_gradient_bytes(const rcn__winograd *shape, int threads) {
    const blocking b = gradient_blocks(shape, threads);
    return (size_t)(gradient_floats(shape, &b) * threads) * sizeof(float);
}

/* The forms of the outputs' gradients, like spread_inputs(); rows beyond the tiles are zero. */
static void spread_outputs(float *to, const blocking *b, const rcn__winograd *shape, block one,
                           const float *dout) {
    const int64_t height = shape->size[1], width = shape->size[2];
    const int64_t blocks = shape->out / RCN_LANES, voxels = height * width * shape->size[0];
    for (int64_t row = 0; row < b->rows; ++row) {
        const int64_t z = one.slice + row / b->tiles_per_block;
        const int64_t index = one.tile + row % b->tiles_per_block;
        const int is_tile = z < one.slice_end && index < one.tile_end;
        const tile t = tile_at(b, is_tile ? index : one.tile);
        for (int64_t c = 0; c < blocks; ++c) {
            const float *plane =
                dout + ((t.image * blocks + c) * voxels + z * height * width) * RCN_LANES;
            float *at = to + (c * b->rows + row) * RCN_LANES;
            lanes half[IN_TILE][OUT_TILE];
            if (!is_tile) {
                for (int p = 0; p < POINTS; ++p) STORE(at + p * b->out_pitch, ALL(0.0f));
                continue;
            }
            for (int j = 0; j < OUT_TILE; ++j) {
                lanes y[4], m[6];
                for (int i = 0; i < OUT_TILE; ++i)
                    y[i] = voxel_at(plane, t.y + i, t.x + j, height, width);
                output_form_back(m, y);
                for (int i = 0; i < IN_TILE; ++i) half[i][j] = m[i];
            }
            for (int i = 0; i < IN_TILE; ++i) {
                lanes m[6];
                output_form_back(m, half[i]);
                for (int j = 0; j < IN_TILE; ++j)
                    STORE(at + (i * IN_TILE + j) * b->out_pitch, m[j]);
            }
        }
    }
}

/* sums[channels of v][vectors of m] += v' m over the rows of a block. */
INLINE void add_products(float *sums, int64_t sums_pitch, const int channels, const int vectors,
                         const float *v, int64_t first, int64_t v_pitch, const float *m,
                         int64_t m_pitch, int64_t rows) {
    lanes s[ROWS][2];
    const float *column[ROWS];
    for (int c = 0; c < channels; ++c) {
        column[c] = v + (first + c) / RCN_LANES * v_pitch + (first + c) % RCN_LANES;
        for (int k = 0; k < vectors; ++k) s[c][k] = LANES_AT(sums + c * sums_pitch + k * RCN_LANES);
    }
    for (int64_t r = 0; r < rows; ++r) {
        lanes w[2];
        for (int k = 0; k < vectors; ++k) w[k] = LANES_AT(m + k * m_pitch + r * RCN_LANES);
        for (int c = 0; c < channels; ++c)
            for (int k = 0; k < vectors; ++k) s[c][k] += ALL(column[c][r * RCN_LANES]) * w[k];
    }
    for (int c = 0; c < channels; ++c)
        for (int k = 0; k < vectors; ++k) STORE(sums + c * sums_pitch + k * RCN_LANES, s[c][k]);
}

/* All output channels for some input channels, of one point and slice of the kernel. */
INLINE void add_channels(float *sums, const int channels, const rcn__winograd *shape,
                         const blocking *b, const float *v, int64_t first, const float *m) {
    const int64_t v_pitch = b->in_rows * RCN_LANES, m_pitch = b->rows * RCN_LANES;
    int64_t k = 0;
    for (; k + WIDTH <= shape->out; k += WIDTH)
        add_products(sums + k, shape->out, channels, 2, v, first, v_pitch,
                     m + k / RCN_LANES * m_pitch, m_pitch, b->rows);
    if (k < shape->out)
        add_products(sums + k, shape->out, channels, 1, v, first, v_pitch,
                     m + k / RCN_LANES * m_pitch, m_pitch, b->rows);
}

static void add_block(float *sums, const rcn__winograd *shape, const blocking *b, const float *v,
                      const float *m) {
    for (int p = 0; p < POINTS; ++p)
        for (int64_t z = 0; z < shape->depth; ++z) {
            float *to = sums + (p * shape->depth + z) * shape->in * shape->out;
            const float *rows = v + p * b->in_pitch + z * b->tiles_per_block * RCN_LANES;
            int64_t c = 0;
            for (; c + ROWS <= shape->in; c += ROWS)
                add_channels(to + c * shape->out, ROWS, shape, b, rows, c, m + p * b->out_pitch);
            /* A multiple of eight leaves 2 or 4 behind sixes. */
            if (shape->in - c == 4)
                add_channels(to + c * shape->out, 4, shape, b, rows, c, m + p * b->out_pitch);
            else if (shape->in - c == 2)
                add_channels(to + c * shape->out, 2, shape, b, rows, c, m + p * b->out_pitch);
        }
}

static void gradient_slot(int64_t slot, int thread, void *payload) {
    const gradient_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const blocking *b = &job->blocks;
    const int64_t count = block_count(b);
    float *sums = job->scratch + slot * job->slot_floats;
    float *inputs = sums + job->sum_floats, *outputs = inputs + POINTS * b->in_pitch;
    (void)thread;
    memset(sums, 0, (size_t)job->sum_floats * sizeof *sums);
    /* Rows that are never filled must not be NaN by chance. */
    memset(inputs, 0, (size_t)(POINTS * b->in_pitch) * sizeof *inputs);
    for (int64_t i = count * slot / job->slots; i < count * (slot + 1) / job->slots; ++i) {
        const block one = block_at(b, shape, i);
        spread_inputs(inputs, b, shape, one, job->in);
        spread_outputs(outputs, b, shape, one, job->dout);
        add_block(sums, shape, b, inputs, outputs);
    }
}

/* Adds up the slots and goes back from the forms to taps, for one input channel. */
static void gradient_channel(int64_t index, int thread, void *payload) {
    const gradient_job *job = payload;
    const rcn__winograd *shape = job->shape;
    const int64_t c = index % shape->in, z = index / shape->in;
    const pack_job place = {shape, NULL, job->dweights, job->where};
    (void)thread;
    for (int64_t k = 0; k < shape->out; k += RCN_LANES) {
        lanes half[3][IN_TILE];
        for (int j = 0; j < IN_TILE; ++j) {
            lanes u[6], g[3];
            for (int i = 0; i < IN_TILE; ++i) {
                const float *sum =
                    job->scratch +
                    (((i * IN_TILE + j) * shape->depth + z) * shape->in + c) * shape->out + k;
                u[i] = LANES_AT(sum);
                for (int s = 1; s < job->slots; ++s) u[i] += LANES_AT(sum + s * job->slot_floats);
            }
            weight_form_back(g, u);
            for (int i = 0; i < 3; ++i) half[i][j] = g[i];
        }
        for (int i = 0; i < 3; ++i) {
            lanes g[3];
            weight_form_back(g, half[i]);
            for (int l = 0; l < RCN_LANES; ++l) {
                float *taps = (float *)taps_of(&place, c, k + l, z);
                for (int j = 0; j < 3; ++j) taps[i * 3 + j] = g[j][l];
            }
        }
    }
}

void rcn__winograd_gradient(float *dweights, const rcn__winograd *shape, rcn_context *ctx,
                            const float *in, const float *dout, const rcn__winograd_weights *where,
                            void *scratch) {
    gradient_job job = {.shape = shape,
                        .blocks = gradient_blocks(shape, ctx->threads),
                        .slots = ctx->threads,
                        .dweights = dweights,
                        .in = in,
                        .dout = dout,
                        .where = *where,
                        .scratch = scratch,
                        .sum_floats = POINTS * shape->depth * shape->in * shape->out};
    job.slot_floats = gradient_floats(shape, &job.blocks);
    rcn__for_all(ctx, job.slots, gradient_slot, &job);
    rcn__for_all(ctx, shape->depth * shape->in, gradient_channel, &job);
}
