// SPDX-License-Identifier: Apache-2.0
/* Drawing samples for training: a box of a case, varied at random (rcn_data.h).
 *
 * A sample is drawn backwards. For each of its voxels the place in the case is worked out, center +
 * matrix (voxel - center) + elastic displacement, and the image is interpolated there (linear),
 * the vote code taken from the nearest voxel: a code is a name, and there is nothing between two
 * names. Mirror, rotation, scale and shear are one matrix, so that they cost one interpolation, not
 * four.
 *
 * Every number comes from the sample's own generator, drawn by the calling thread alone; the sample
 * is the same for any number of threads. The order of draws is therefore part of the result: a draw
 * that is moved changes every sample after it. Only noise, a number for each voxel, has generators
 * of its own, one for each fixed chunk.
 */
#include "rcn_data_private.h"

#include <math.h>
#include <string.h>

#include "rcn_normalize_private.h"
#include "rcn_parallel.h"
#include "rcn_smooth.h"
#include "rcn_votes_private.h"

/* ---- options --------------------------------------------------------------------------------- */

const char *rcn_augment_check(const rcn_augment *augment) {
    if (!augment) return "No augmentation options were given.";
    /* Ranges in which the arithmetic below holds; NaN fails the comparison. */
    const struct {
        double value, most;
        const char *sentence;
    } limits[] = {
        {augment->share, 1, "The share of samples that are varied must be 0 to 1."},
        {augment->rotate, 180, "Samples can be rotated by 0 to 180 degrees."},
        {augment->scale, 4, "Samples can be scaled by 0 to 4 times their size more or less."},
        {augment->shear, 1, "Samples can be sheared by 0 to 1 voxel per voxel."},
        {augment->shift, 1e6, "Samples can be shifted by 0 to a million voxels."},
        {augment->elastic, 1e3, "The elastic displacement must be 0 to 1000 voxels."},
        {augment->gamma, 4, "The change of gamma must be 0 to 4."},
        {augment->brightness, 10, "The change of brightness must be 0 to 10 deviations."},
        {augment->contrast, 10, "The change of contrast must be 0 to 10."},
        {augment->noise, 10, "The noise of samples must be 0 to 10 deviations."},
        {augment->blur, 16, "Samples can be blurred by 0 to 16 voxels."},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; ++i)
        if (!(limits[i].value >= 0 && limits[i].value <= limits[i].most)) return limits[i].sentence;
    return NULL;
}

const char *rcn__sample_check(const rcn_sample_options *options) {
    if (!options) return "No sample options were given.";
    double voxels = 1;
    for (int a = 0; a < 3; ++a) {
        if (options->size[a] < 1 || options->size[a] > 1 << 20)
            return "A sample has 1 to 1048576 voxels along each axis.";
        voxels *= (double)options->size[a];
        if (!(options->spacing[a] >= 0) || !isfinite(options->spacing[a]))
            return "The spacing of samples must be positive, or 0 for the case's own.";
    }
    if (voxels > 0x1p31) return "A sample of so many voxels does not fit into memory.";
    if (!(options->foreground >= 0 && options->foreground <= 1))
        return "The share of samples around marked voxels must be 0 to 1.";
    return rcn_augment_check(&options->augment);
}

/* ---- foci ------------------------------------------------------------------------------------ */

/* 0: marked by all who answered, 1: disputed, -1: marked by nobody. */
static int kind_of(const rcn_pattern *pattern) {
    return pattern->marked ? rcn__pattern_is_disputed(pattern) : -1;
}

typedef struct look_job {
    const rcn_votes *votes;
    uint8_t *marked; /* by chunk: whether there is anything to be found */
} look_job;

static void look_chunk(int64_t chunk, int thread, void *payload) {
    const look_job *job = payload;
    uint32_t codes[256];
    int64_t first, end;
    int marked = 0;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    for (; first < end; first += 256) {
        const int64_t count = end - first < 256 ? end - first : 256;
        rcn__votes_read(codes, job->votes, first, count);
        for (int64_t i = 0; i < count; ++i) marked |= job->votes->patterns[codes[i]].marked != 0;
    }
    job->marked[chunk] = (uint8_t)marked;
}

/* Where a sample may be centered on what raters marked, without asking the votes again: at most
 * RCN_FOCI voxels of each kind, spread evenly over all of that kind. How many there are in all is
 * known from the patterns. All threads look where marks are, which is next to nowhere in most
 * images; what is there is counted in order. */
rcn_status rcn_foci_create(rcn_foci **out, rcn_context *ctx, const rcn_votes *votes) {
    rcn_status status;
    rcn_foci *foci = NULL;
    int64_t total[2] = {0, 0}, seen[2] = {0, 0};
    uint32_t codes[RCN_CHUNK];
    look_job job = {votes, NULL};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !votes) return rcn__fail(ctx, RCN_EINVALID, "No votes or no output were given.");
    RCN_ALLOC_ZERO(foci, ctx, 1, "where raters marked something");
    foci->ctx = ctx;
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const int kind = kind_of(&votes->patterns[p]);
        if (kind >= 0) total[kind] += votes->patterns[p].voxels;
    }
    const int64_t chunks = total[0] + total[1] > 0 ? rcn__chunk_count(votes->voxels, RCN_CHUNK) : 0;
    RCN_ALLOC(job.marked, ctx, chunks, "where raters marked something");
    RCN_TRY(rcn__for_chunks(ctx, "looking for marks", chunks, look_chunk, &job));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        int64_t first, end;
        if (!job.marked[chunk]) continue;
        rcn__chunk_range(&first, &end, chunk, votes->voxels, RCN_CHUNK);
        rcn__votes_read(codes, votes, first, end - first);
        for (int64_t i = 0; i < end - first; ++i) {
            const int kind = kind_of(&votes->patterns[codes[i]]);
            if (kind < 0) continue;
            /* Every (total / kept)-th of them: the k-th is kept when k * kept / total steps on. */
            const int64_t kept = total[kind] < RCN_FOCI ? total[kind] : RCN_FOCI;
            const int64_t k = seen[kind]++;
            const int64_t place = (int64_t)((double)k / (double)total[kind] * (double)kept);
            if (place >= foci->count[kind] && foci->count[kind] < kept)
                foci->voxels[kind][foci->count[kind]++] = first + i;
        }
    }
    *out = foci;
    foci = NULL;
done:
    rcn__free(ctx, job.marked);
    rcn_foci_destroy(foci);
    return status;
}

void rcn_foci_destroy(rcn_foci *foci) {
    if (foci) rcn__free(foci->ctx, foci);
}

/* ---- where a sample's voxels come from ------------------------------------------------------- */

enum { CELLS = 4, NODES = CELLS + 3 }; /* of the elastic grid, along each axis of the sample */

typedef struct mapping {
    double center_in[3], center_out[3];
    double matrix[9]; /* row major: voxels of the case per voxel of the sample */
    int elastic;
    double most;                           /* largest displacement, in voxels of the case */
    double grid[3][NODES * NODES * NODES]; /* displacement along x, y, z at the nodes */
} mapping;

static double between(rcn_rng *rng, double most) { return most * (2 * rcn__rng_uniform(rng) - 1); }

/* A factor from 1 / (1 + most) to 1 + most, even in its logarithm: as often half as double. */
static double factor(rcn_rng *rng, double most) { return exp(between(rng, log1p(most))); }

static int happens(rcn_rng *rng, double amount, double share) {
    return amount > 0 && rcn__rng_uniform(rng) < share;
}

/* a = a b */
static void multiply(double a[9], const double b[9]) {
    double product[9];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            product[3 * i + j] =
                a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
    memcpy(a, product, sizeof product);
}

/* a = a times the rotation by `degrees` in the plane of axes i and j. */
static void rotate(double a[9], int i, int j, double degrees) {
    double turn[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const double angle = degrees * 0.017453292519943295;
    turn[4 * i] = turn[4 * j] = cos(angle);
    turn[3 * j + i] = sin(angle);
    turn[3 * i + j] = -turn[3 * j + i];
    multiply(a, turn);
}

/* Mirror, turn, rotation, scale and shear as one matrix, in millimeters. */
static void draw_matrix(double matrix[9], const rcn_sample_options *options, rcn_rng *rng) {
    static const double quarter[9] = {0, -1, 0, 1, 0, 0, 0, 0, 1};
    const rcn_augment *augment = &options->augment;
    const int axes = options->size[2] == 1 ? 2 : 3;
    memset(matrix, 0, 9 * sizeof *matrix);
    for (int a = 0; a < 3; ++a) matrix[4 * a] = 1;
    for (int a = 0; augment->flips && a < axes; ++a)
        if (rcn__rng_next(rng) >> 63) matrix[4 * a] = -1;
    /* A quarter turn of a sample that is not square would show what lies outside of it. */
    if (augment->turns && options->size[0] == options->size[1])
        for (uint64_t turns = rcn__rng_below(rng, 4); turns > 0; --turns) multiply(matrix, quarter);
    if (happens(rng, augment->rotate, augment->share)) {
        /* In the plane of the slices in full, out of it by half. */
        rotate(matrix, 0, 1, between(rng, augment->rotate));
        if (axes == 3) rotate(matrix, 1, 2, between(rng, 0.5 * augment->rotate));
        if (axes == 3) rotate(matrix, 0, 2, between(rng, 0.5 * augment->rotate));
    }
    if (happens(rng, augment->scale, augment->share)) {
        const double by = factor(rng, augment->scale);
        for (int i = 0; i < 9; ++i) matrix[i] *= by;
    }
    if (happens(rng, augment->shear, augment->share)) {
        double shear[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
        for (int i = 0; i < axes; ++i)
            for (int j = i + 1; j < axes; ++j) shear[3 * i + j] = between(rng, augment->shear);
        multiply(matrix, shear);
    }
}

/* The center of the sample in voxels of the case. A focus lies anywhere in the middle half of the
 * sample, so that a network does not learn to expect marks in the center. Common and disputed foci
 * are drawn equally often, however few there are of either. */
static void draw_place(double center[3], const rcn_data_case *from,
                       const rcn_sample_options *options, const double step[3], rcn_rng *rng) {
    const int64_t *size = from->votes->geometry.size;
    int64_t focus[3] = {0, 0, 0};
    int focused = 0;
    if (from->foci && rcn__rng_uniform(rng) < options->foreground) {
        int kind = (int)(rcn__rng_next(rng) >> 63);
        if (!from->foci->count[kind]) kind = !kind;
        if (from->foci->count[kind]) {
            const int64_t voxel =
                from->foci->voxels[kind][rcn__rng_below(rng, (uint64_t)from->foci->count[kind])];
            focus[0] = voxel % size[0];
            focus[1] = voxel / size[0] % size[1];
            focus[2] = voxel / (size[0] * size[1]);
            focused = 1;
        }
    }
    for (int a = 0; a < 3; ++a) {
        const double extent = step[a] * (double)options->size[a];
        const double room = (double)size[a] - extent;
        double first = floor(0.5 * room); /* whole, so that nothing is interpolated needlessly */
        /* Drawn whether it is used or not, so that the draws behind it are the same for any
         * size. */
        const double draw = rcn__rng_uniform(rng);
        if (room > 0) {
            first = focused ? floor((double)focus[a] - extent * (0.25 + 0.5 * draw) + 0.5)
                            : floor(draw * (room + 1));
            first = first < 0 ? 0 : first > room ? floor(room) : first;
        }
        center[a] = first + 0.5 * (extent - 1);
    }
}

static void draw_elastic(mapping *map, const rcn_sample_options *options, rcn_rng *rng) {
    const int axes = options->size[2] == 1 ? 2 : 3;
    /* A cubic B-spline averages its nodes; on the mean over a cell this is left of their variance
     * per axis: the integral of the sum of its squared weights, 151 / 315. */
    const double deviation = options->augment.elastic / sqrt(pow(0.47936508, axes));
    map->elastic = 1;
    map->most = 0;
    memset(map->grid, 0, sizeof map->grid);
    const int nodes = axes == 2 ? NODES * NODES : NODES * NODES * NODES;
    for (int a = 0; a < axes; ++a)
        for (int i = 0; i < nodes; ++i) {
            map->grid[a][i] = deviation * rcn__rng_normal(rng);
            if (fabs(map->grid[a][i]) > map->most) map->most = fabs(map->grid[a][i]);
        }
}

static void draw_mapping(mapping *map, const rcn_data_case *from, const rcn_sample_options *options,
                         rcn_rng *rng) {
    const rcn_geometry *geometry = &from->votes->geometry;
    const rcn_augment *augment = &options->augment;
    double spacing[3], step[3];
    for (int a = 0; a < 3; ++a) {
        spacing[a] = options->spacing[a] > 0 ? options->spacing[a] : geometry->spacing[a];
        step[a] = spacing[a] / geometry->spacing[a];
        map->center_out[a] = 0.5 * (double)(options->size[a] - 1);
    }
    draw_place(map->center_in, from, options, step, rng);
    draw_matrix(map->matrix, options, rng);
    for (int i = 0; i < 3; ++i)
        /* Angles and shear are those of millimeters; places are counted in voxels. */
        for (int j = 0; j < 3; ++j) map->matrix[3 * i + j] *= spacing[j] / geometry->spacing[i];
    if (happens(rng, augment->shift, augment->share))
        for (int a = 0; a < (options->size[2] == 1 ? 2 : 3); ++a)
            map->center_in[a] += between(rng, augment->shift);
    map->elastic = 0;
    map->most = 0;
    if (happens(rng, augment->elastic, augment->share)) draw_elastic(map, options, rng);
}

/* The voxels of the case that a sample can need. */
static void find_box(int64_t first[3], int64_t extent[3], const mapping *map,
                     const int64_t sample[3], const int64_t size[3]) {
    for (int i = 0; i < 3; ++i) {
        /* A spline stays within its nodes, so the largest node bounds the displacement. */
        double reach = map->most;
        for (int j = 0; j < 3; ++j)
            reach += fabs(map->matrix[3 * i + j]) * 0.5 * (double)(sample[j] - 1);
        const double last = (double)(size[i] - 1);
        const double low = floor(map->center_in[i] - reach);
        const double high = floor(map->center_in[i] + reach) + 1;
        first[i] = (int64_t)(low < 0 ? 0 : low > last ? last : low);
        extent[i] = (int64_t)(high < 0 ? 0 : high > last ? last : high) - first[i] + 1;
    }
}

/* ---- drawing --------------------------------------------------------------------------------- */

typedef struct take_job {
    rcn__sample *to;
    const rcn_data_case *from;
    int64_t rows; /* in a chunk */
} take_job;

/* Some rows: of the codes, then of each channel, then of the map. */
static void take_rows(int64_t chunk, int thread, void *payload) {
    const take_job *job = payload;
    const int64_t *first = job->to->first, *extent = job->to->extent, *size = job->to->size;
    const int64_t rows = extent[1] * extent[2];
    const int64_t chunks = rcn__chunk_count(rows, job->rows);
    const int part = (int)(chunk / chunks), bytes = job->to->code_bytes;
    float *box = part > 0 ? job->to->box + (part - 1) * rows * extent[0] : NULL;
    int64_t row, end;
    (void)thread;
    rcn__chunk_range(&row, &end, chunk % chunks, rows, job->rows);
    if (part > 0 && part <= job->to->channels) {
        rcn__normalize_rows(box + row * extent[0], job->from->scale, job->from->channels, part - 1,
                            first, extent, row, end);
        return;
    }
    for (; row < end; ++row) {
        const int64_t y = first[1] + row % extent[1], z = first[2] + row / extent[1];
        const int64_t at = first[0] + size[0] * (y + size[1] * z), to = row * extent[0];
        if (part == 0)
            memcpy(job->to->box_codes + to * bytes,
                   (const uint8_t *)job->from->votes->codes + at * bytes,
                   (size_t)(extent[0] * bytes));
        else
            memcpy(box + to, job->from->map + at, sizeof *box * (size_t)extent[0]);
    }
}

typedef struct draw_job {
    const rcn__sample *samples;
    const int64_t *sample; /* size of a sample */
    int64_t rows_per_chunk;
} draw_job;

/* Voxels of a sample in a chunk: fewer than elsewhere, because each takes long. */
enum { DRAWN_CHUNK = 1024 };

/* Weights of the four nodes around a place `t` in 0 ... 1 of a cell. */
static void spline(double weights[4], double t) {
    const double u = 1 - t;
    weights[0] = u * u * u / 6;
    weights[1] = (3 * t * t * t - 6 * t * t + 4) / 6;
    weights[2] = (3 * u * u * u - 6 * u * u + 4) / 6;
    weights[3] = t * t * t / 6;
}

/* Which cell of the elastic grid position i of n is in, and where in it. */
static int cell_of(double *t, int64_t i, int64_t n) {
    const double at = ((double)i + 0.5) * CELLS / (double)n;
    const int cell = at < CELLS ? (int)at : CELLS - 1;
    *t = at - cell;
    return cell;
}

/* The grid along x for one row: nodes[axis][NODES]. What is left for each voxel are 4 nodes instead
 * of 64. */
static void collapse_grid(double nodes[3][NODES], const mapping *map, const int64_t sample[3],
                          int64_t y, int64_t z) {
    const int flat = sample[2] == 1;
    double t, wy[4], wz[4] = {1, 0, 0, 0};
    const int cy = cell_of(&t, y, sample[1]);
    spline(wy, t);
    int cz = 0;
    if (!flat) {
        cz = cell_of(&t, z, sample[2]);
        spline(wz, t);
    }
    for (int a = 0; a < 3; ++a)
        for (int x = 0; x < NODES; ++x) {
            double sum = 0;
            for (int k = 0; k < (flat ? 1 : 4); ++k)
                for (int j = 0; j < 4; ++j)
                    sum += wz[k] * wy[j] * map->grid[a][x + NODES * (cy + j + NODES * (cz + k))];
            nodes[a][x] = sum;
        }
}

/* A place between voxels: the lower voxel, the step to the upper one in elements, the weight of
 * the upper one. Outside, the border voxel. */
typedef struct corner {
    int64_t at[3], up[3];
    double part[3];
} corner;

static corner find_corner(const double place[3], const int64_t size[3], const int64_t first[3],
                          const int64_t extent[3]) {
    corner found;
    int64_t stride = 1;
    for (int a = 0; a < 3; ++a) {
        const double last = (double)(size[a] - 1);
        const double inside = place[a] < 0 ? 0 : place[a] > last ? last : place[a];
        int64_t at = (int64_t)inside;
        found.part[a] = inside - (double)at;
        at -= first[a];
        if (at > extent[a] - 1) at = extent[a] - 1;
        found.at[a] = at * stride;
        found.up[a] = at + 1 < extent[a] ? stride : 0;
        stride *= extent[a];
    }
    return found;
}

/* Linear interpolation. With part 0 the upper voxel does not matter, so that whole steps copy. */
static double interpolate(const float *from, const corner *at) {
    const float *p = from + at->at[0] + at->at[1] + at->at[2];
    double planes[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
        if (k && at->part[2] == 0) break;
        const float *q = p + (k ? at->up[2] : 0), *r = q + at->up[1];
        const double low = q[0] + at->part[0] * ((double)q[at->up[0]] - q[0]);
        const double high = r[0] + at->part[0] * ((double)r[at->up[0]] - r[0]);
        planes[k] = low + at->part[1] * (high - low);
    }
    return at->part[2] == 0 ? planes[0] : planes[0] + at->part[2] * (planes[1] - planes[0]);
}

/* A map that is void (negative) at one of the voxels that count is void between them. */
static float interpolate_target(const float *from, const corner *at) {
    const float *p = from + at->at[0] + at->at[1] + at->at[2];
    for (int i = 0; i < 8; ++i) {
        int64_t off = 0;
        int counts = 1;
        for (int a = 0; a < 3; ++a)
            if (i >> a & 1) {
                off += at->up[a];
                counts &= at->part[a] > 0;
            }
        if (counts && p[off] < 0) return -1.0f;
    }
    return (float)interpolate(from, at);
}

/* By itself and not by rcn__votes_read(), because it is called for every voxel, at places that
 * jump. */
static uint32_t code_at(const rcn__sample *sample, const double place[3]) {
    int64_t at = 0;
    for (int a = 2; a >= 0; --a) {
        const double nearest = floor(place[a] + 0.5);
        if (!(nearest >= 0 && nearest < (double)sample->size[a])) return sample->void_code;
        /* Never outside of the box but for rounding. */
        int64_t in = (int64_t)nearest - sample->first[a];
        in = in < 0 ? 0 : in < sample->extent[a] ? in : sample->extent[a] - 1;
        at = at * sample->extent[a] + in;
    }
    switch (sample->code_bytes) {
    case 1: return sample->box_codes[at];
    case 2: return ((const uint16_t *)(const void *)sample->box_codes)[at];
    default: return ((const uint32_t *)(const void *)sample->box_codes)[at];
    }
}

static void draw_rows(int64_t chunk, int thread, void *payload) {
    const draw_job *job = payload;
    const int64_t *size = job->sample, rows = size[1] * size[2], voxels = rows * size[0];
    const int64_t chunks = rcn__chunk_count(rows, job->rows_per_chunk);
    const rcn__sample *sample = &job->samples[chunk / chunks];
    const mapping *map = sample->mapped;
    const int64_t plane = sample->extent[0] * sample->extent[1] * sample->extent[2];
    double nodes[3][NODES];
    int64_t row, end;
    (void)thread;
    rcn__chunk_range(&row, &end, chunk % chunks, rows, job->rows_per_chunk);
    for (; row < end; ++row) {
        const double y = (double)(row % size[1]) - map->center_out[1];
        const double z = (double)(row / size[1]) - map->center_out[2];
        if (map->elastic) collapse_grid(nodes, map, size, row % size[1], row / size[1]);
        for (int64_t i = 0; i < size[0]; ++i) {
            const double x = (double)i - map->center_out[0];
            const int64_t to = row * size[0] + i;
            double place[3];
            for (int a = 0; a < 3; ++a)
                place[a] =
                    map->center_in[a] + (map->matrix[3 * a] * x + map->matrix[3 * a + 1] * y +
                                         map->matrix[3 * a + 2] * z);
            if (map->elastic) {
                double t, w[4];
                const int cell = cell_of(&t, i, size[0]);
                spline(w, t);
                for (int a = 0; a < 3; ++a)
                    for (int k = 0; k < 4; ++k) place[a] += w[k] * nodes[a][cell + k];
            }
            const corner at = find_corner(place, sample->size, sample->first, sample->extent);
            for (int c = 0; c < sample->channels; ++c)
                sample->image[c * voxels + to] = (float)interpolate(sample->box + c * plane, &at);
            sample->codes[to] = code_at(sample, place);
            if (sample->target)
                sample->target[to] =
                    sample->codes[to] == sample->void_code
                        ? -1.0f
                        : interpolate_target(sample->box + sample->channels * plane, &at);
        }
    }
}

/* ---- intensities ----------------------------------------------------------------------------- */

/* One channel of one sample, and what becomes of its intensities. */
typedef struct plane {
    float *values;
    double mean, deviation, low, high; /* before anything changes */
    double sigma;                      /* of the blur; 0: none */
    double power;                      /* of gamma; 1: none */
    double contrast, brightness;
    double noise; /* its deviation; 0: none */
    uint64_t seed;
} plane;

typedef struct part {
    double sum, low, high;
} part;

typedef struct vary_job {
    plane *planes;
    part *parts;    /* (planes, chunks) */
    int64_t voxels; /* of a plane */
    int64_t chunks; /* of a plane */
} vary_job;

static void measure_chunk(int64_t chunk, int thread, void *payload) {
    const vary_job *job = payload;
    const float *values = job->planes[chunk / job->chunks].values;
    int64_t i, end;
    (void)thread;
    rcn__chunk_range(&i, &end, chunk % job->chunks, job->voxels, RCN_CHUNK);
    part found = {0, values[i], values[i]};
    for (; i < end; ++i) {
        found.sum += values[i];
        if (values[i] < found.low) found.low = values[i];
        if (values[i] > found.high) found.high = values[i];
    }
    job->parts[chunk] = found;
}

static void deviate_chunk(int64_t chunk, int thread, void *payload) {
    const vary_job *job = payload;
    const plane *of = &job->planes[chunk / job->chunks];
    double sum = 0;
    int64_t i, end;
    (void)thread;
    rcn__chunk_range(&i, &end, chunk % job->chunks, job->voxels, RCN_CHUNK);
    for (; i < end; ++i) sum += (of->values[i] - of->mean) * (of->values[i] - of->mean);
    job->parts[chunk].sum = sum;
}

/* Mean, deviation and range of all planes. */
static rcn_status measure(vary_job *job, rcn_context *ctx, int64_t planes) {
    rcn_status status;
    RCN_TRY(rcn__for_chunks(ctx, "varying samples", planes * job->chunks, measure_chunk, job));
    for (int64_t p = 0; p < planes; ++p) {
        plane *of = &job->planes[p];
        const part *parts = job->parts + p * job->chunks;
        double sum = 0;
        of->low = parts->low;
        of->high = parts->high;
        for (int64_t k = 0; k < job->chunks; ++k) {
            sum += parts[k].sum;
            if (parts[k].low < of->low) of->low = parts[k].low;
            if (parts[k].high > of->high) of->high = parts[k].high;
        }
        of->mean = sum / (double)job->voxels;
    }
    RCN_TRY(rcn__for_chunks(ctx, "varying samples", planes * job->chunks, deviate_chunk, job));
    for (int64_t p = 0; p < planes; ++p) {
        double squares = 0;
        for (int64_t k = 0; k < job->chunks; ++k) squares += job->parts[p * job->chunks + k].sum;
        job->planes[p].deviation = sqrt(squares / (double)job->voxels);
    }
done:
    return status;
}

/* Blur, gamma, contrast and brightness, noise; in units of the sample's own deviation and range as
 * it was before, whatever normalization made of the image. */
static void draw_changes(plane *of, const rcn_augment *augment, rcn_rng *rng) {
    of->sigma = of->brightness = of->noise = 0;
    of->power = of->contrast = 1;
    if (!(of->deviation > 0)) return; /* nothing to see */
    if (happens(rng, augment->blur, augment->share)) {
        const double sigma = augment->blur * rcn__rng_uniform(rng);
        if (sigma > 0.1) of->sigma = sigma;
    }
    if (happens(rng, augment->gamma, augment->share)) of->power = factor(rng, augment->gamma);
    if (happens(rng, augment->contrast, augment->share))
        of->contrast = factor(rng, augment->contrast);
    if (happens(rng, augment->brightness, augment->share))
        of->brightness = of->deviation * between(rng, augment->brightness);
    if (happens(rng, augment->noise, augment->share)) {
        of->noise = of->deviation * augment->noise * rcn__rng_uniform(rng);
        of->seed = rcn__rng_next(rng);
    }
}

/* All that is done to each voxel by itself, while the chunk is in the cache. */
static void change_chunk(int64_t chunk, int thread, void *payload) {
    const vary_job *job = payload;
    const plane *of = &job->planes[chunk / job->chunks];
    float *values = of->values;
    int64_t first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk % job->chunks, job->voxels, RCN_CHUNK);
    if (of->power != 1) {
        const double range = of->high - of->low;
        for (int64_t i = first; i < end; ++i) {
            /* The range was measured before blurring, which stays within it but for rounding. */
            const double share = (values[i] - of->low) / range;
            values[i] = (float)(of->low + range * pow(share > 0 ? share : 0, of->power));
        }
    }
    if (of->contrast != 1 || of->brightness != 0)
        for (int64_t i = first; i < end; ++i)
            values[i] = (float)(of->mean + of->contrast * (values[i] - of->mean) + of->brightness);
    if (of->noise > 0) {
        rcn_rng rng = rcn__rng_make(of->seed, (uint64_t)(chunk % job->chunks));
        for (int64_t i = first; i < end; ++i)
            values[i] = (float)(values[i] + of->noise * rcn__rng_normal(&rng));
    }
}

typedef struct group {
    rcn__chunk_fn body;
    void *payload;
    int64_t first;
} group;

static void group_chunk(int64_t chunk, int thread, void *payload) {
    const group *of = payload;
    of->body(of->first + chunk, thread, of->payload);
}

/* As rcn__for_chunks(), which sees by the first chunk whether all are worth more than one thread.
 * Here some planes get noise, and some next to nothing. */
static rcn_status for_groups(rcn_context *ctx, const char *stage, int64_t chunks,
                             rcn__chunk_fn body, void *payload) {
    /* Chunks between two reports: some milliseconds, and enough for a few hundred threads. */
    enum { GROUP = 1024 };
    rcn_status status = RCN_OK;
    for (group of = {body, payload, 0}; of.first < chunks; of.first += GROUP) {
        const int64_t left = chunks - of.first;
        RCN_TRY(rcn__report(ctx, (double)of.first / (double)chunks, stage));
        rcn__for_all(ctx, left < GROUP ? left : GROUP, group_chunk, &of);
    }
done:
    return status;
}

rcn_status rcn__samples_vary(float *images, rcn_context *ctx, int64_t samples, int channels,
                             const rcn_sample_options *options, rcn_rng *rngs) {
    rcn_status status = RCN_OK;
    const rcn_augment *augment = &options->augment;
    const int64_t *size = options->size;
    const int64_t planes = samples * channels;
    int64_t changed = 0;
    vary_job job = {.voxels = size[0] * size[1] * size[2]};
    if (augment->blur == 0 && augment->gamma == 0 && augment->contrast == 0 &&
        augment->brightness == 0 && augment->noise == 0)
        return RCN_OK;
    job.chunks = rcn__chunk_count(job.voxels, RCN_CHUNK);
    RCN_ALLOC_ZERO(job.planes, ctx, planes, "varying samples");
    RCN_ALLOC(job.parts, ctx, planes * job.chunks, "varying samples");
    for (int64_t p = 0; p < planes; ++p) job.planes[p].values = images + p * job.voxels;
    RCN_TRY(measure(&job, ctx, planes));
    for (int64_t p = 0; p < planes; ++p) {
        plane of = job.planes[p];
        draw_changes(&of, augment, &rngs[p / channels]);
        if (of.sigma > 0) RCN_TRY(rcn__smooth_gaussian(of.values, ctx, size, of.sigma));
        if (of.power != 1 || of.contrast != 1 || of.brightness != 0 || of.noise > 0)
            job.planes[changed++] = of;
    }
    RCN_TRY(for_groups(ctx, "varying samples", changed * job.chunks, change_chunk, &job));
done:
    rcn__free(ctx, job.parts);
    rcn__free(ctx, job.planes);
    return status;
}

/* ---- entry ----------------------------------------------------------------------------------- */

static const char *check_case(const rcn_data_case *from, const float *map) {
    if (!from || !from->votes || !from->channels || !from->scale || from->channel_count < 1)
        return "No image or no votes were given.";
    if (from->scale->channels != from->channel_count)
        return "The image and its normalization have different numbers of channels.";
    if (!from->map != !map) return "The target map must be given exactly if the case has one.";
    for (int c = 0; c < from->channel_count; ++c)
        for (int a = 0; a < 3; ++a)
            if (from->channels[c].image.geometry.size[a] != from->votes->geometry.size[a])
                return "The image and the votes have different sizes.";
    return NULL;
}

rcn_status rcn__sample_take(rcn__sample *out, float *image, uint32_t *codes, float *map,
                            rcn_context *ctx, const rcn_data_case *from,
                            const rcn_sample_options *options, rcn_rng *rng) {
    rcn_status status = RCN_OK;
    rcn__sample taken = {.image = image, .codes = codes, .target = map};
    mapping *mapped = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !image || !codes) return rcn__fail(ctx, RCN_EINVALID, "The output sample is NULL.");
    const char *sentence = rcn__sample_check(options);
    if (!sentence) sentence = check_case(from, map);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);

    RCN_ALLOC(mapped, ctx, 1, "a sample");
    taken.mapped = mapped;
    draw_mapping(mapped, from, options, rng);
    taken.channels = from->channel_count;
    taken.void_code = RCN_VOID_CODE(from->votes);
    memcpy(taken.size, from->votes->geometry.size, sizeof taken.size);
    /* Only the part of the case that the sample touches. */
    find_box(taken.first, taken.extent, mapped, options->size, taken.size);
    const int64_t rows = taken.extent[1] * taken.extent[2], parts = taken.channels + !!map;
    taken.voxels = rows * taken.extent[0];
    RCN_ALLOC(taken.box, ctx, parts * taken.voxels, "the image of a sample");
    taken.code_bytes = from->votes->code_bytes;
    RCN_ALLOC(taken.box_codes, ctx, taken.voxels * taken.code_bytes, "the votes of a sample");
    take_job job = {&taken, from, rcn__chunk_count(RCN_CHUNK, taken.extent[0])};
    RCN_TRY(rcn__for_chunks(ctx, "drawing a sample", (parts + 1) * rcn__chunk_count(rows, job.rows),
                            take_rows, &job));
    *out = taken;
    memset(&taken, 0, sizeof taken);
done:
    rcn__sample_free(&taken, ctx);
    return status;
}

void rcn__sample_free(rcn__sample *sample, rcn_context *ctx) {
    rcn__free(ctx, sample->mapped);
    rcn__free(ctx, sample->box);
    rcn__free(ctx, sample->box_codes);
    memset(sample, 0, sizeof *sample);
}

rcn_status rcn__samples_draw(const rcn__sample *samples, int64_t count, rcn_context *ctx,
                             const rcn_sample_options *options) {
    const int64_t *size = options->size;
    draw_job job = {samples, size, rcn__chunk_count(DRAWN_CHUNK, size[0])};
    return rcn__for_chunks(ctx, "drawing a sample",
                           count * rcn__chunk_count(size[1] * size[2], job.rows_per_chunk),
                           draw_rows, &job);
}
