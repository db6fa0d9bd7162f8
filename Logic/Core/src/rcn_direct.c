// SPDX-License-Identifier: Apache-2.0
/* Convolution by its definition, on the matrix product of rcn_gemm.h: rows are voxels along x, the
 * sum runs over taps and channels. Compiled for each instruction set by rcn_isa_*.c.
 *
 * A band of the output (some rows of a slice) needs a band of the input. That is copied, with its
 * borders of zeros, into a thread's scratch memory, where voxels that are next to each other in the
 * output are next to each other for every tap, whatever the stride. A 1x1 convolution needs no
 * copy: its voxels are one long row.
 *
 * The gradient of the input has, for a stride of s, s outputs of different taps along each axis:
 * such sets of outputs are called phases. Forward there is one.
 */
#include "rcn_engine.h"

#include <string.h>

#include "rcn_gemm.h"
#include "rcn_gradient.h"
#include "rcn_parallel.h"

enum {
    BAND_FLOATS = 49152, /* of an input's band: what stays in a second-level cache */
    CHUNK_FLOATS =
        1 << 19,     /* of the bands that are multiplied together for the weights' gradient */
    PIECE = 4 * ROWS /* voxels that are finished at a time */
};

/* One set of outputs: o = start + step_out * j for j < count, reading i = step_in * j + shift for
 * its taps; `low` and `high` are the ends of the shifts. */
typedef struct phase {
    int64_t start[3], count[3], low[3], high[3];
    int64_t first_tap, taps;
} phase;

typedef struct tap {
    int64_t index; /* in the kernel */
    int64_t shift[3];
} tap;

/* How bands are cut and where an input's band has what. */
typedef struct bands {
    int64_t y, x;                  /* outputs of a band */
    int64_t slices, rows, columns; /* of its inputs; columns of one residue of the stride */
    int64_t row_floats, floats;    /* of an input's row, and in all */
    int copies;                    /* 0: the input is read where it is */
} bands;

typedef struct direct_job {
    rcn__direct shape; /* of a 1x1 convolution: one long row */
    int64_t step_in[3], step_out[3];
    int64_t blocks, inner; /* of channels; lanes of a block */
    int64_t phases, all_taps;
    const rcn__source *in;
    float *out;
    const float *packed;
    rcn__ending ending;
    int64_t biases; /* how many */
    int streams;    /* the output is written past the caches */

    /* the phase that is run */
    phase now;
    bands cut;
    int64_t bands_z, bands_y, bands_x, group_parts;
    tap *taps;          /* sorted by phase */
    ptrdiff_t *offsets; /* (taps of the phase, blocks) */
    const rcn__scratch *scratch;

} direct_job;

static int64_t direct_taps(const rcn__direct *s) {
    return s->kernel[0] * s->kernel[1] * s->kernel[2];
}

static int64_t direct_blocks(const rcn__direct *shape) {
    return shape->layout == RCN_PLANAR ? 1 : blocks_of(shape->in[0]) + blocks_of(shape->in[1]);
}

/* Which input a block of channels belongs to, and its first channel there and among all. */
typedef struct input_block {
    int which;
    int64_t first, overall;
} input_block;

static input_block input_block_at(const rcn__direct *shape, int64_t block) {
    const int64_t before = shape->layout == RCN_PLANAR ? 1 : blocks_of(shape->in[0]);
    const int second = block >= before;
    const int64_t first = (second ? block - before : block) * RCN_LANES;
    const input_block found = {second, first, (second ? shape->in[0] : 0) + first};
    return found;
}

static int64_t direct_inner(const rcn__direct *shape) {
    return shape->layout == RCN_PLANAR ? shape->in[0] : RCN_LANES;
}

/* Non-zero where a convolution's output channels are spread over several voxels. */
static int is_spread(const rcn__direct *shape) {
    return shape->spread[0] * shape->spread[1] * shape->spread[2] > 1;
}

static int is_pointwise(const rcn__direct *shape) {
    for (int d = 0; d < 3; ++d)
        if (shape->kernel[d] != 1 || shape->stride[d] != 1 || shape->pad[d] != 0) return 0;
    return 1;
}

static int64_t voxels_of(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

/* The sum's length for one output of all phases: rows of packed weights. */
static int64_t packed_rows(const rcn__direct *shape) {
    return direct_taps(shape) * direct_blocks(shape) * direct_inner(shape);
}

static size_t direct_packed_bytes(const rcn__direct *shape) {
    return (size_t)(packed_rows(shape) * columns_in_all(shape->out)) * sizeof(float);
}

/* Sets start, count and taps of phase number `index`. */
static void describe_phase(phase *p, tap *taps, const rcn__direct *shape, int64_t index) {
    const int64_t *s = shape->stride, *k = shape->kernel;
    const int64_t residue[3] = {index / s[2] / s[1], index / s[2] % s[1], index % s[2]};
    p->taps = 0;
    for (int d = 0; d < 3; ++d) {
        p->start[d] = shape->backward ? residue[d] : 0;
        p->count[d] =
            shape->backward ? parts(shape->out_size[d] - residue[d], s[d]) : shape->out_size[d];
        p->low[d] = p->high[d] = 0;
    }
    for (int64_t t = 0; t < direct_taps(shape); ++t) {
        const int64_t at[3] = {t / k[2] / k[1], t / k[2] % k[1], t % k[2]};
        tap one = {.index = t};
        int mine = 1;
        for (int d = 0; d < 3; ++d) {
            one.shift[d] = at[d] - shape->pad[d];
            if (!shape->backward) continue;
            const int64_t distance = p->start[d] + shape->pad[d] - at[d];
            mine &= distance % s[d] == 0;
            one.shift[d] = distance / s[d];
        }
        if (!mine) continue;
        for (int d = 0; d < 3; ++d) {
            if (!p->taps || one.shift[d] < p->low[d]) p->low[d] = one.shift[d];
            if (!p->taps || one.shift[d] > p->high[d]) p->high[d] = one.shift[d];
        }
        taps[p->taps++] = one;
    }
}

static int64_t phases_of(const rcn__direct *shape) {
    return shape->backward ? shape->stride[0] * shape->stride[1] * shape->stride[2] : 1;
}

/* ---- weights --------------------------------------------------------------------------------- */

typedef struct direct_pack_job {
    const rcn__direct *shape;
    float *packed;
    const float *weights;
    rcn__weight_slice where;
    int64_t phase_first; /* taps of the phases before */
    const tap *taps;
} direct_pack_job;

/* packed[group][tap, phase by phase][block][lane][columns], one tap and block. */
static void direct_pack_block(int64_t index, int thread, void *payload) {
    const direct_pack_job *job = payload;
    const rcn__direct *shape = job->shape;
    const int64_t blocks = direct_blocks(shape), inner = direct_inner(shape);
    const int64_t block = index % blocks, all = direct_taps(shape);
    const input_block from = input_block_at(shape, block);
    const int64_t kernel_tap = job->taps[index / blocks].index;
    (void)thread;
    for (int64_t l = 0; l < inner; ++l) {
        const int is_in = from.first + l < shape->in[from.which];
        const int64_t c = from.overall + l;
        for (int64_t group = 0; group < groups_of(shape->out); ++group) {
            const int64_t columns = columns_of(shape->out, group);
            float *to =
                job->packed + columns_before(group) * packed_rows(shape) +
                (((job->phase_first + index / blocks) * blocks + block) * inner + l) * columns;
            for (int64_t n = 0; n < columns; ++n) {
                const int64_t k = group * WIDTH + n;
                const int64_t out = job->where.mirrored ? c : k, in = job->where.mirrored ? k : c;
                to[n] = is_in && k < shape->out
                            ? job->weights[(out * job->where.total_in + job->where.first_in + in) *
                                               all +
                                           kernel_tap] *
                                  (job->where.scale ? job->where.scale[k] : 1.0f)
                            : 0.0f;
            }
        }
    }
}

static void direct_pack(float *packed, const rcn__direct *shape, rcn_context *ctx,
                        const float *weights, const rcn__weight_slice *where) {
    tap taps[RCN_MOST_TAPS];
    direct_pack_job job = {shape, packed, weights, *where, 0, taps};
    for (int64_t i = 0; i < phases_of(shape); ++i) {
        phase p;
        describe_phase(&p, taps, shape, i);
        rcn__for_all(ctx, p.taps * direct_blocks(shape), direct_pack_block, &job);
        job.phase_first += p.taps;
    }
}

/* ---- bands ----------------------------------------------------------------------------------- */

/* Floats of the input's band for y rows of x outputs. */
static void measure_band(bands *cut, const direct_job *job, int64_t y, int64_t x) {
    const phase *p = &job->now;
    cut->y = y;
    cut->x = x;
    cut->slices = p->high[0] - p->low[0] + 1;
    cut->rows = (y - 1) * job->step_in[1] + p->high[1] - p->low[1] + 1;
    cut->columns = parts((x - 1) * job->step_in[2] + p->high[2] - p->low[2] + 1, job->step_in[2]);
    cut->row_floats = job->step_in[2] * cut->columns * RCN_LANES;
    cut->floats = cut->slices * job->blocks * cut->rows * cut->row_floats;
}

/* As many rows as fill BAND_FLOATS, fewer voxels of a row where one alone is longer. */
static void cut_bands(direct_job *job) {
    const phase *p = &job->now;
    bands *cut = &job->cut;
    int64_t y = 1, x = p->count[2];
    /* A norm on load, a second input or planes have to be copied; whether a norm is there is only
     * known when it runs, so memory is always that of a copy. */
    cut->copies = !is_pointwise(&job->shape) || job->shape.layout == RCN_PLANAR ||
                  job->shape.in[1] > 0 || (job->in && job->in[0].scale);
    measure_band(cut, job, 1, x);
    while (cut->floats > BAND_FLOATS && x > 2 * ROWS) {
        x = parts(x, 2);
        measure_band(cut, job, 1, x);
    }
    if (x == p->count[2])
        for (; y < p->count[1]; ++y) {
            measure_band(cut, job, y + 1, x);
            if (cut->floats > BAND_FLOATS) break;
        }
    /* Evenly; a phase may have no outputs at all. */
    y = larger(parts(p->count[1], larger(parts(p->count[1], y), 1)), 1);
    x = larger(parts(p->count[2], larger(parts(p->count[2], larger(x, 1)), 1)), 1);
    measure_band(cut, job, y, x);
    job->bands_z = p->count[0];
    job->bands_y = parts(p->count[1], y);
    job->bands_x = parts(p->count[2], x);
}

/* Floats of a block of channels of a blocked tensor of this size. */
static int64_t plane_floats(const int64_t size[3], int64_t window) {
    return (window ? window * size[2] : voxels_of(size)) * RCN_LANES;
}

/* Where each tap and block of channels begins in a band, or in the input itself. */
static void direct_offsets(ptrdiff_t *offsets, const direct_job *job) {
    const bands *cut = &job->cut;
    for (int64_t t = 0; t < job->now.taps; ++t) {
        int64_t d[3];
        for (int k = 0; k < 3; ++k) d[k] = job->taps[t].shift[k] - job->now.low[k];
        for (int64_t c = 0; c < job->blocks; ++c)
            offsets[t * job->blocks + c] =
                cut->copies
                    ? (ptrdiff_t)(((d[0] * job->blocks + c) * cut->rows + d[1]) * cut->row_floats +
                                  (d[2] % job->step_in[2] * cut->columns + d[2] / job->step_in[2]) *
                                      RCN_LANES)
                    : (ptrdiff_t)(c * plane_floats(job->shape.in_size, job->in[0].window));
    }
}

static void start_phase(direct_job *job, int64_t index, int64_t first_tap) {
    describe_phase(&job->now, job->taps, &job->shape, index);
    job->now.first_tap = first_tap;
    cut_bands(job);
    direct_offsets(job->offsets, job);
}

static void start_job(direct_job *job, const rcn__direct *shape) {
    job->shape = *shape;
    if (is_pointwise(shape) && !is_spread(shape) && !shape->by_rows) {
        const int64_t voxels = voxels_of(shape->in_size);
        for (int d = 0; d < 3; ++d)
            job->shape.in_size[d] = job->shape.out_size[d] = d == 2 ? voxels : 1;
    }
    for (int d = 0; d < 3; ++d) {
        job->step_in[d] = shape->backward ? 1 : shape->stride[d];
        job->step_out[d] = shape->backward ? shape->stride[d] : 1;
    }
    job->blocks = direct_blocks(shape);
    job->inner = direct_inner(shape);
    job->phases = phases_of(shape);
    job->all_taps = direct_taps(shape);
    job->biases = shape->out / (shape->spread[0] * shape->spread[1] * shape->spread[2]);
    /* Outputs that are not next to each other would leave lines half written. */
    job->streams = !shape->backward && !is_spread(shape) &&
                   shape->batch * shape->out * voxels_of(shape->out_size) > LARGE_FLOATS;
}

/* One band: its image and first output. */
typedef struct band {
    int64_t image, z, y, x, rows, columns;
} band;

static band band_at(const direct_job *job, int64_t index) {
    band b;
    b.x = index % job->bands_x * job->cut.x;
    index /= job->bands_x;
    b.y = index % job->bands_y * job->cut.y;
    index /= job->bands_y;
    b.z = index % job->bands_z;
    b.image = index / job->bands_z;
    b.rows = smaller(job->cut.y, job->now.count[1] - b.y);
    b.columns = smaller(job->cut.x, job->now.count[2] - b.x);
    return b;
}

static int64_t band_count(const direct_job *job) {
    return job->shape.batch * job->bands_z * job->bands_y * job->bands_x;
}

/* A norm that is applied to what is read. */
typedef struct on_load {
    lanes scale, shift;
    lanes floor; /* 0 for ReLU, otherwise -infinity: then nobody has to ask for each value */
} on_load;

RCN_INLINE lanes apply(lanes value, const on_load *norm) {
    return lanes_at_least(norm->floor, lanes_multiply_add(value, norm->scale, norm->shift));
}

/* `count` voxels of a row of a blocked input, `step` apart, the first at x (which may lie outside).
 */
static void copy_row(float *to, const float *row, int64_t x, int64_t step, int64_t count,
                     int64_t width, const on_load *norm) {
    for (int64_t i = 0; i < count; ++i, x += step, to += RCN_LANES) {
        if (x < 0 || x >= width)
            lanes_store(to, lanes_zero());
        else if (norm)
            lanes_store(to, apply(lanes_load(row + x * RCN_LANES), norm));
        else
            lanes_store(to, lanes_load(row + x * RCN_LANES));
    }
}

/* The same of planes: lanes beyond the channels are not used. */
static void copy_planar_row(float *to, const float *row, int64_t plane, int64_t channels, int64_t x,
                            int64_t step, int64_t count, int64_t width) {
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < count; ++i) {
            const int64_t at = x + i * step;
            to[i * RCN_LANES + c] = at < 0 || at >= width ? 0.0f : row[c * plane + at];
        }
}

/* The input's band, for one block of channels. */
static void copy_band_block(float *to, const direct_job *job, const band *b, int64_t block) {
    const rcn__direct *shape = &job->shape;
    const bands *cut = &job->cut;
    const int64_t *size = shape->in_size, voxels = voxels_of(size);
    const int planar = shape->layout == RCN_PLANAR;
    const input_block place = input_block_at(shape, block);
    const rcn__source *from = &job->in[place.which];
    const int64_t channels = shape->in[place.which], own = place.first / RCN_LANES;
    const float *image = from->data + (planar ? b->image * channels * voxels
                                              : (b->image * blocks_of(channels) + own) *
                                                    plane_floats(size, from->window));
    on_load norm = {.floor = lanes_all(from->relu ? 0.0f : -INFINITY)};
    if (from->scale) {
        norm.scale = lanes_load(from->scale + b->image * channels + place.first);
        norm.shift = lanes_load(from->shift + b->image * channels + place.first);
    }
    const int64_t rows = (b->rows - 1) * job->step_in[1] + job->now.high[1] - job->now.low[1] + 1;
    for (int64_t dz = 0; dz < cut->slices; ++dz)
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t z = b->z * job->step_in[0] + job->now.low[0] + dz;
            const int64_t y = b->y * job->step_in[1] + job->now.low[1] + r;
            float *row = to + ((dz * job->blocks + block) * cut->rows + r) * cut->row_floats;
            if (z < 0 || z >= size[0] || y < 0 || y >= size[1]) {
                memset(row, 0, (size_t)cut->row_floats * sizeof *row);
                continue;
            }
            const int64_t at = (z * size[1] + rcn__row_place(y, from->window)) * size[2];
            for (int64_t s = 0; s < job->step_in[2]; ++s) {
                float *piece = row + s * cut->columns * RCN_LANES;
                const int64_t x = b->x * job->step_in[2] + job->now.low[2] + s;
                if (planar)
                    copy_planar_row(piece, image + at, voxels, channels, x, job->step_in[2],
                                    cut->columns, size[2]);
                else
                    copy_row(piece, image + at * RCN_LANES, x, job->step_in[2], cut->columns,
                             size[2], from->scale ? &norm : NULL);
            }
        }
}

/* Where the band's input is: in `memory`, or where it was. */
static const float *find_band(float *memory, const direct_job *job, const band *b) {
    if (!job->cut.copies)
        return job->in[0].data +
               b->image * job->blocks * plane_floats(job->shape.in_size, job->in[0].window) +
               ((b->z * job->shape.in_size[1] + rcn__row_place(b->y, job->in[0].window)) *
                    job->shape.in_size[2] +
                b->x) *
                   RCN_LANES;
    for (int64_t c = 0; c < job->blocks; ++c) copy_band_block(memory, job, b, c);
    return memory;
}

/* ---- convolution ----------------------------------------------------------------------------- */

/* A row of the outputs of a block of channels: where its first one lies, how far apart they are (in
 * floats), and what is added to each. */
typedef struct output {
    int64_t first, step;
    lanes bias;
} output;

static output output_at(const direct_job *job, const band *b, int64_t block, int64_t y) {
    const rcn__direct *shape = &job->shape;
    const int64_t *spread = shape->spread, *step = job->step_out;
    const int64_t blocks = blocks_of(shape->out) / (spread[0] * spread[1] * spread[2]);
    const int64_t set = block / blocks, within = block % blocks;
    const int64_t place[3] = {set / spread[2] / spread[1], set / spread[2] % spread[1],
                              set % spread[2]};
    const int64_t at[3] = {b->z, b->y + y, b->x}, channel = within * RCN_LANES;
    _Alignas(32) float biases[RCN_LANES] = {0};
    int64_t o[3], size[3];
    for (int k = 0; k < 3; ++k) {
        o[k] = (job->now.start[k] + step[k] * at[k]) * spread[k] + place[k];
        size[k] = shape->out_size[k] * spread[k];
    }
    for (int l = 0; job->ending.bias && l < RCN_LANES && channel + l < job->biases; ++l)
        biases[l] = job->ending.bias[channel + l];
    const int64_t row = o[0] * size[1] + rcn__row_place(o[1], job->ending.window);
    const output out = {(b->image * blocks + within) * plane_floats(size, job->ending.window) +
                            (row * size[2] + o[2]) * RCN_LANES,
                        step[2] * spread[2] * RCN_LANES, lanes_load(biases)};
    return out;
}

/* Bias, what is added, ReLU: `count` outputs along x, from x on, of some blocks of channels. */
static void finish_row(const direct_job *job, const float *sums, int64_t columns,
                       const output *outputs, int64_t blocks, int64_t x, int64_t count) {
    const rcn__ending ending = job->ending;
    for (int64_t v = 0; v < blocks; ++v) {
        const output at = outputs[v];
        const float *from = sums + v * RCN_LANES;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t to = at.first + (x + i) * at.step;
            lanes value = lanes_add(lanes_load(from + i * columns), at.bias);
            if (ending.residual[0]) value = lanes_add(value, lanes_load(ending.residual[0] + to));
            if (ending.relu) value = lanes_at_least(lanes_zero(), value);
            if (job->streams)
                lanes_stream(job->out + to, value);
            else
                lanes_store(job->out + to, value);
        }
    }
}

/* Floats between the inputs of one row of outputs and those of the next. */
static int64_t in_row_floats(const direct_job *job) {
    return job->cut.copies ? job->step_in[1] * job->cut.row_floats
                           : job->shape.in_size[2] * RCN_LANES;
}

/* A band of some groups of output channels. */
static void convolve_band(const direct_job *job, const band *b, int64_t first_group,
                          int64_t end_group, float *sums) {
    const float *in = find_band(sums + PIECE * WIDTH, job, b);
    const int64_t row_step = in_row_floats(job);
    for (int64_t group = first_group; group < end_group; ++group) {
        const int64_t columns = columns_of(job->shape.out, group);
        const float *weights = job->packed + columns_before(group) * packed_rows(&job->shape) +
                               job->now.first_tap * job->blocks * job->inner * columns;
        const int64_t first = group * WIDTH / RCN_LANES;
        const int64_t blocks = smaller(columns / RCN_LANES, blocks_of(job->shape.out) - first);
        for (int64_t y = 0; y < b->rows; ++y) {
            output outputs[WIDTH / RCN_LANES];
            for (int64_t v = 0; v < blocks; ++v) outputs[v] = output_at(job, b, first + v, y);
            for (int64_t x = 0; x < b->columns; x += PIECE) {
                const int64_t count = smaller(b->columns - x, PIECE);
                const rcn__product product = {.c = sums,
                                              .c_pitch = columns,
                                              .a = in + y * row_step + x * RCN_LANES,
                                              .offsets = job->offsets,
                                              .outer = job->now.taps * job->blocks,
                                              .inner = job->inner,
                                              .b = weights};
                multiply_rows(product, RCN_FORWARD, count, columns);
                finish_row(job, sums, columns, outputs, blocks, x, count);
            }
        }
    }
}

static void direct_band(int64_t index, int thread, void *payload) {
    const direct_job *job = payload;
    const band b = band_at(job, index / job->group_parts);
    const int64_t part = index % job->group_parts, groups = groups_of(job->shape.out);
    convolve_band(job, &b, groups * part / job->group_parts, groups * (part + 1) / job->group_parts,
                  rcn__scratch_own(job->scratch, thread));
    if (job->streams) lanes_stream_end();
}

/* The largest band of all phases. */
static int64_t largest_band(direct_job *job, tap *taps) {
    int64_t floats = 0;
    job->taps = taps;
    for (int64_t i = 0; i < job->phases; ++i) {
        describe_phase(&job->now, taps, &job->shape, i);
        cut_bands(job);
        floats = larger(floats, job->cut.floats);
    }
    return floats;
}

static size_t tables_bytes(const direct_job *job) {
    const size_t bytes = (size_t)job->all_taps * sizeof(tap) +
                         (size_t)(job->all_taps * job->blocks) * sizeof(ptrdiff_t);
    return (bytes + 63) / 64 * 64;
}

static rcn__scratch_bytes direct_scratch_bytes(const rcn__direct *shape) {
    tap taps[RCN_MOST_TAPS];
    direct_job job = {0};
    start_job(&job, shape);
    const int64_t floats = parts(largest_band(&job, taps), 16) * 16 + PIECE * WIDTH;
    const rcn__scratch_bytes bytes = {tables_bytes(&job), (size_t)floats * sizeof(float)};
    return bytes;
}

static void direct_convolve(float *out, const rcn__direct *shape, rcn_context *ctx,
                            const rcn__source *in, const float *packed, const rcn__ending *ending,
                            const rcn__scratch *scratch) {
    direct_job job = {
        .in = in, .out = out, .packed = packed, .ending = *ending, .scratch = scratch};
    start_job(&job, shape);
    job.taps = scratch->shared;
    job.offsets = (ptrdiff_t *)(job.taps + job.all_taps);
    for (int64_t i = 0, first_tap = 0; i < job.phases; ++i, first_tap += job.now.taps) {
        start_phase(&job, i, first_tap);
        const int64_t count = band_count(&job);
        job.group_parts =
            count ? smaller(groups_of(shape->out), parts(4 * (int64_t)ctx->threads, count)) : 1;
        rcn__for_all(ctx, count * job.group_parts, direct_band, &job);
    }
}

/* ---- some rows ------------------------------------------------------------------------------- */

static void direct_rows(float *out, const rcn__direct *shape, const rcn__source *in,
                        const float *packed, const rcn__ending *ending, const rcn__rows *rows,
                        void *scratch) {
    tap taps[RCN_MOST_TAPS];
    direct_job job = {.in = in, .out = out, .packed = packed, .ending = *ending, .taps = taps};
    start_job(&job, shape);
    job.streams = 0; /* they are read soon */
    job.offsets = scratch;
    float *own = (float *)((char *)scratch + tables_bytes(&job));
    start_phase(&job, 0, 0);
    const int64_t window = job.cut.copies ? 0 : in[0].window;
    for (int64_t y = rows->first, count; y < rows->end; y += count) {
        count = smaller(rows->end - y, job.cut.y);
        /* Rows that are read where they are must follow each other there. */
        if (window) count = smaller(count, window - y % window);
        for (int64_t x = 0; x < job.now.count[2]; x += job.cut.x) {
            const band b = {
                .y = y, .x = x, .rows = count, .columns = smaller(job.cut.x, job.now.count[2] - x)};
            convolve_band(&job, &b, 0, groups_of(shape->out), own);
        }
    }
}

/* ---- weights' gradient ----------------------------------------------------------------------- */

/* A task has one block of input channels and one group of output channels, and all taps; pieces are
 * bands (rcn_gradient.h). A share copies what its tasks need of a number of bands, their inputs as
 * above, the output's gradients as [group][voxel][columns], and then goes through its tasks. So
 * that little is copied by several shares, tasks are in the order of the inputs' channels or of the
 * outputs', whichever are more. */
enum { FEW_SUMS = 32768 };

typedef struct direct_gradient_job {
    gradient_work work;
    direct_job direct;
    const float *dout;
    float *dweights;
    rcn__weight_slice where;
    int64_t unit_floats, dout_floats; /* of a band's copies */
    int64_t units;                    /* bands that are copied at a time */
    ptrdiff_t *rows;                  /* (band's rows) */
} direct_gradient_job;

/* What a task is about. */
typedef struct direct_part {
    int64_t group, block;
} direct_part;

static int is_by_inputs(const direct_job *job) { return job->blocks * RCN_LANES >= job->shape.out; }

static direct_part direct_part_at(const direct_job *job, int64_t task) {
    const int64_t groups = groups_of(job->shape.out), blocks = job->blocks;
    direct_part by_inputs = {task % groups, task / groups};
    direct_part by_outputs = {task / blocks, task % blocks};
    return is_by_inputs(job) ? by_inputs : by_outputs;
}

static void plan_direct_gradient(direct_gradient_job *job, int threads) {
    direct_job *direct = &job->direct;
    gradient_work *work = &job->work;
    const rcn__direct *shape = &direct->shape;
    const int64_t count = band_count(direct), columns = columns_in_all(shape->out);
    const int64_t sums = direct->all_taps * direct->blocks * RCN_LANES * columns;
    const int few = sums <= FEW_SUMS;
    job->dout_floats = parts(direct->cut.y * direct->cut.x * columns, 16) * 16;
    job->unit_floats = direct->cut.copies ? parts(direct->cut.floats, 16) * 16 : 0;
    job->units = few ? 1 : larger(CHUNK_FLOATS / (job->unit_floats + job->dout_floats), 1);
    job->units = smaller(job->units, count);
    plan_gradient_work(work, count, direct->blocks * groups_of(shape->out), few,
                       job->units == count, threads);
    work->sum_floats = direct->all_taps * RCN_LANES * WIDTH;
    work->copy_floats = job->units * (job->unit_floats + job->dout_floats);
}

/* The tables, and the numbers of rows. */
static size_t direct_gradient_tables(const direct_job *job) {
    return tables_bytes(job) + (size_t)(parts(job->cut.y, 8) * 8) * sizeof(ptrdiff_t);
}

static rcn__scratch_bytes direct_gradient_bytes(const rcn__direct *shape, int threads) {
    tap taps[RCN_MOST_TAPS];
    direct_gradient_job job = {.direct = {.taps = taps}};
    start_job(&job.direct, shape);
    describe_phase(&job.direct.now, taps, &job.direct.shape, 0);
    cut_bands(&job.direct);
    rcn__scratch_bytes bytes = {direct_gradient_tables(&job.direct), 0};
    /* A norm on load may ask for copies, and without them there may be more bands at a time. */
    for (int copies = 0; copies < 2; ++copies) {
        if (copies) job.direct.cut.copies = 1;
        plan_direct_gradient(&job, threads);
        bytes.own =
            bytes.own > gradient_own_bytes(&job.work) ? bytes.own : gradient_own_bytes(&job.work);
    }
    return bytes;
}

/* [voxel][columns] of a band of the output's gradient, of one group of channels. */
static void copy_dout(float *to, const direct_gradient_job *job, const band *b, int64_t group) {
    const rcn__direct *shape = &job->direct.shape;
    const int64_t *size = shape->out_size, blocks = blocks_of(shape->out);
    const int64_t columns = columns_of(shape->out, group), first = group * WIDTH / RCN_LANES;
    for (int64_t k = 0; k < columns / RCN_LANES; ++k) {
        const int64_t c = first + k;
        float *place = to + k * RCN_LANES;
        for (int64_t y = 0; y < b->rows; ++y) {
            const float *row = job->dout + (((b->image * blocks + c) * voxels_of(size)) +
                                            (b->z * size[1] + b->y + y) * size[2] + b->x) *
                                               RCN_LANES;
            for (int64_t x = 0; x < b->columns; ++x, place += columns)
                lanes_store(place, c < blocks ? lanes_load(row + x * RCN_LANES) : lanes_zero());
        }
    }
}

/* What some tasks need of a band: blocks of input channels and groups of output channels. */
static void copy_unit(float *copies, const direct_gradient_job *job, const band *b,
                      const gradient_range *range) {
    const direct_job *direct = &job->direct;
    const direct_part first = direct_part_at(direct, range->first_task);
    const direct_part last = direct_part_at(direct, range->end_task - 1);
    const int by_inputs = is_by_inputs(direct);
    direct_part from = {0, 0}, to = {groups_of(direct->shape.out), direct->blocks};
    if (by_inputs || first.group == last.group) {
        from.block = first.block;
        to.block = last.block + 1;
    }
    if (!by_inputs || first.block == last.block) {
        from.group = first.group;
        to.group = last.group + 1;
    }
    for (int64_t c = from.block; direct->cut.copies && c < to.block; ++c)
        copy_band_block(copies, direct, b, c);
    for (int64_t group = from.group; group < to.group; ++group)
        copy_dout(copies + job->unit_floats + columns_before(group) * b->rows * b->columns, job, b,
                  group);
}

/* sums[tap][lane][columns] (+)= the products of a band. Of planes, which have few channels, taps
 * that are neighbors take the place of the lanes. */
static void add_band(float *sums, int add, const direct_gradient_job *job, const band *b,
                     const float *in, const float *dout, const direct_part *part) {
    const direct_job *direct = &job->direct;
    const int64_t columns = columns_of(direct->shape.out, part->group);
    rcn__product product = {.c_pitch = columns,
                            .add = add,
                            .offsets = job->rows,
                            .outer = b->rows,
                            .inner = b->columns,
                            .b = dout + columns_before(part->group) * b->rows * b->columns};
    if (direct->shape.layout != RCN_PLANAR) {
        for (int64_t t = 0; t < direct->all_taps; ++t) {
            product.c = sums + t * RCN_LANES * columns;
            product.a = in + direct->offsets[t * direct->blocks + part->block];
            multiply_rows(product, RCN_GRADIENT, RCN_LANES, columns);
        }
        return;
    }
    const int64_t width = direct->shape.kernel[2], stride = direct->step_in[2];
    product.c_pitch = stride * RCN_LANES * columns;
    for (int64_t t = 0; t < direct->all_taps; ++t) {
        if (t % width >= stride) continue; /* it is another one's neighbor */
        for (int64_t l = 0; l < direct->inner; ++l) {
            product.c = sums + (t * RCN_LANES + l) * columns;
            product.a = in + direct->offsets[t] + l;
            multiply_rows(product, RCN_TAPS, parts(width - t % width, stride), columns);
        }
    }
}

/* Some rows of sums, `pitch` apart, become columns: `count` numbers for each output channel, which
 * are `step` apart in the gradient. */
RCN_INLINE void keep_rows(float *to, int64_t step, int64_t outs, const float *sums, int64_t pitch,
                          int64_t count) {
    lanes rows[RCN_LANES];
    for (int64_t i = 0; i < RCN_LANES; ++i)
        rows[i] = i < count ? lanes_load(sums + i * pitch) : lanes_zero();
    lanes_transpose(rows);
    for (int64_t n = 0; n < RCN_LANES; ++n) {
        _Alignas(32) float row[RCN_LANES];
        if (n >= outs) break;
        if (count == RCN_LANES) {
            lanes_store_anywhere(to + n * step, rows[n]);
            continue;
        }
        lanes_store(row, rows[n]);
        for (int64_t i = 0; i < count; ++i) to[n * step + i] = row[i];
    }
}

/* From the sums of a task to PyTorch's order. */
static void finish_bands(const gradient_work *work, const float *sums, int64_t task) {
    const direct_gradient_job *job = (const direct_gradient_job *)work;
    const direct_job *direct = &job->direct;
    const rcn__direct *shape = &direct->shape;
    const direct_part part = direct_part_at(direct, task);
    const input_block from = input_block_at(shape, part.block);
    const int64_t columns = columns_of(shape->out, part.group), taps = direct->all_taps;
    const int64_t channels = smaller(shape->in[from.which] - from.first, direct->inner);
    const int64_t step = job->where.total_in * taps;
    for (int64_t k = part.group * WIDTH; k < smaller((part.group + 1) * WIDTH, shape->out);
         k += RCN_LANES) {
        const int64_t outs = smaller(shape->out - k, RCN_LANES);
        const float *first = sums + k % WIDTH;
        float *to =
            job->dweights + (k * job->where.total_in + job->where.first_in + from.overall) * taps;
        if (taps == 1) keep_rows(to, step, outs, first, columns, channels);
        for (int64_t l = 0; taps > 1 && l < channels; ++l)
            for (int64_t t = 0; t < taps; t += RCN_LANES)
                keep_rows(to + l * taps + t, step, outs, first + (t * RCN_LANES + l) * columns,
                          RCN_LANES * columns, smaller(taps - t, RCN_LANES));
    }
}

static void add_bands(const gradient_work *work, const gradient_range *range, float *copies,
                      float *sums) {
    const direct_gradient_job *job = (const direct_gradient_job *)work;
    const int64_t floats = job->unit_floats + job->dout_floats;
    for (int64_t first = range->first_piece, end; first < range->end_piece; first = end) {
        end = smaller(first + job->units, range->end_piece);
        for (int64_t i = first; i < end; ++i) {
            const band b = band_at(&job->direct, i);
            copy_unit(copies + (i - first) * floats, job, &b, range);
        }
        for (int64_t k = range->first_task; k < range->end_task; ++k) {
            const direct_part part = direct_part_at(&job->direct, k);
            float *to = gradient_sums(work, range, sums, k);
            for (int64_t i = first; i < end; ++i) {
                const band b = band_at(&job->direct, i);
                const float *in = copies + (i - first) * floats;
                add_band(to, i > range->first_piece, job, &b,
                         job->direct.cut.copies ? in : find_band(NULL, &job->direct, &b),
                         in + job->unit_floats, &part);
            }
            if (!work->slots && end == work->pieces) finish_bands(work, to, k);
        }
    }
}

static void direct_gradient(float *dweights, float *dbias, const rcn__direct *shape,
                            rcn_context *ctx, const rcn__source *in, const float *dout,
                            const rcn__weight_slice *where, const rcn__scratch *scratch) {
    direct_gradient_job job = {
        .direct = {.in = in}, .dout = dout, .dweights = dweights, .where = *where};
    direct_job *direct = &job.direct;
    start_job(direct, shape);
    direct->taps = scratch->shared;
    direct->offsets = (ptrdiff_t *)(direct->taps + direct->all_taps);
    start_phase(direct, 0, 0);
    plan_direct_gradient(&job, ctx->threads);
    job.rows = (ptrdiff_t *)((char *)scratch->shared + tables_bytes(direct));
    for (int64_t y = 0; y < direct->cut.y; ++y)
        job.rows[y] = (ptrdiff_t)(y * in_row_floats(direct));
    job.work.scratch = scratch;
    job.work.add = add_bands;
    job.work.finish = finish_bands;
    run_gradient(&job.work, ctx);
    if (dbias) sum_outputs(dbias, ctx, dout, shape->batch, shape->out, voxels_of(shape->out_size));
}
