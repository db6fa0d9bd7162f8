// SPDX-License-Identifier: Apache-2.0
/* Regions: which voxels of a case a figure is about (rcn_region.h).
 *
 * The band around the contour is the costly one. It is measured only inside the box around the
 * contour grown by the width of the band, by a distance transform; on a grid whose axes are not at
 * right angles, where that transform does not hold, by stamping a ball on every voxel of the
 * contour.
 */
#include "rcn/rcn_region.h"

#include <math.h>
#include <string.h>

#include "rcn_distance.h"
#include "rcn_votes_private.h"

const char *rcn_region_name(rcn_region region) {
    static const char *const names[] = {"whole", "box", "band", "disputed"};
    return (int)region >= 0 && region <= RCN_REGION_DISPUTED ? names[region] : NULL;
}

const char *rcn_region_check(const rcn_region_options *options) {
    if (!options) return NULL;
    if (!rcn_region_name(options->region)) return "Unknown region.";
    if (options->margin < 0) return "The margin must not be negative.";
    if (!(options->band_mm >= 0) || !isfinite(options->band_mm))
        return "The width of the band must not be negative.";
    return NULL;
}

static void fill_box(uint8_t *out, const int64_t size[3], const rcn_box *box) {
    memset(out, 0, (size_t)(size[0] * size[1] * size[2]));
    for (int64_t z = box->first[2]; z < box->end[2]; ++z)
        for (int64_t y = box->first[1]; y < box->end[1]; ++y)
            memset(out + box->first[0] + size[0] * (y + size[1] * z), 1,
                   (size_t)(box->end[0] - box->first[0]));
}

/* ---- the band -------------------------------------------------------------------------------- */

/* A voxel that nobody answered is on neither side of the contour. Two voxels have the contour
 * between them when their values XOR to 1: 0 and 1 do, and GAP, whose bit is another one, does with
 * neither. */
enum { GAP = 2 };

typedef struct band_job {
    uint8_t *out; /* first: 1 where the mean vote is at least one half, GAP where there is none;
                     then: the band */
    const int64_t *size;
    rcn_box *boxes;  /* per thread: around the contour; empty: first > end */
    rcn_box box;     /* around the band */
    float *distance; /* in that box, squared */
    float limit;
} band_job;

/* Whether a face neighbor is on the other side: both sides of the border belong to the contour. */
static int on_contour(const band_job *job, int64_t x, int64_t y, int64_t z) {
    const int64_t *size = job->size, row = size[0], slice = size[0] * size[1];
    const uint8_t *at = job->out + x + row * y + slice * z;
    const int mine = *at;
    return (x > 0 && (at[-1] ^ mine) == 1) || (x + 1 < size[0] && (at[1] ^ mine) == 1) ||
           (y > 0 && (at[-row] ^ mine) == 1) || (y + 1 < size[1] && (at[row] ^ mine) == 1) ||
           (z > 0 && (at[-slice] ^ mine) == 1) || (z + 1 < size[2] && (at[slice] ^ mine) == 1);
}

static void contour_slice(int64_t z, int thread, void *payload) {
    const band_job *job = payload;
    rcn_box *box = &job->boxes[thread];
    for (int64_t y = 0; y < job->size[1]; ++y)
        for (int64_t x = 0; x < job->size[0]; ++x) {
            if (!on_contour(job, x, y, z)) continue;
            const int64_t voxel[3] = {x, y, z}, behind[3] = {x + 1, y + 1, z + 1};
            rcn__box_grow(box, voxel, behind);
        }
}

static float *distance_row(const band_job *job, int64_t y, int64_t z) {
    const rcn_box *box = &job->box;
    return job->distance +
           (box->end[0] - box->first[0]) *
               (y - box->first[1] + (box->end[1] - box->first[1]) * (z - box->first[2]));
}

/* Distance 0 on the contour, infinite elsewhere: where the transform starts from. */
static void seed_slice(int64_t chunk, int thread, void *payload) {
    const band_job *job = payload;
    const int64_t z = job->box.first[2] + chunk;
    (void)thread;
    for (int64_t y = job->box.first[1]; y < job->box.end[1]; ++y)
        for (int64_t x = job->box.first[0]; x < job->box.end[0]; ++x)
            distance_row(job, y, z)[x - job->box.first[0]] =
                on_contour(job, x, y, z) ? 0.0f : INFINITY;
}

/* Axes that are not at right angles: no transform goes axis by axis. But the voxels within the
 * distance lie alike around each voxel of the contour, as rows along x. */
typedef struct ball_row {
    int64_t y, z, low, high; /* x from low to high */
} ball_row;

typedef struct ball_job {
    const band_job *band;
    uint8_t *contour; /* the box */
    ball_row *rows;
    int64_t count;
} ball_job;

/* A copy of the contour, because the stamps are written over the map that it is read from. */
static void mark_contour(int64_t chunk, int thread, void *payload) {
    const ball_job *job = payload;
    const rcn_box *box = &job->band->box;
    const int64_t width = box->end[0] - box->first[0], height = box->end[1] - box->first[1];
    (void)thread;
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x)
            job->contour[x + width * (y + height * chunk)] = (uint8_t)on_contour(
                job->band, box->first[0] + x, box->first[1] + y, box->first[2] + chunk);
}

/* One slice of the result: it fetches the contour from the slices around it, so that threads write
 * to slices of their own. */
static void stamp_slice(int64_t z, int thread, void *payload) {
    const ball_job *job = payload;
    const rcn_box *box = &job->band->box;
    const int64_t width = box->end[0] - box->first[0], height = box->end[1] - box->first[1];
    const int64_t depth = box->end[2] - box->first[2], *size = job->band->size;
    (void)thread;
    for (int64_t y = 0; y < height; ++y)
        for (int64_t r = 0; r < job->count; ++r) {
            const ball_row *row = &job->rows[r];
            const int64_t from_y = y - row->y, from_z = z - row->z;
            if (from_y < 0 || from_y >= height || from_z < 0 || from_z >= depth) continue;
            const uint8_t *contour = job->contour + width * (from_y + height * from_z);
            uint8_t *out = job->band->out + box->first[0] +
                           size[0] * (box->first[1] + y + size[1] * (box->first[2] + z));
            for (int64_t x = 0; x < width; ++x) {
                if (!contour[x]) continue;
                const int64_t low = x + row->low < 0 ? 0 : x + row->low;
                const int64_t high = x + row->high < width ? x + row->high : width - 1;
                if (low <= high) memset(out + low, 1, (size_t)(high - low + 1));
            }
        }
}

static rcn_status stamp_band(const band_job *band, rcn_context *ctx, const rcn_geometry *geometry,
                             const int64_t reach[3], double limit) {
    rcn_status status;
    ball_job job = {band, NULL, NULL, 0};
    int64_t extent[3];
    for (int a = 0; a < 3; ++a) extent[a] = band->box.end[a] - band->box.first[a];
    RCN_ALLOC(job.contour, ctx, extent[0] * extent[1] * extent[2], "the contour");
    RCN_ALLOC(job.rows, ctx, (2 * reach[1] + 1) * (2 * reach[2] + 1), "the contour");
    for (int64_t z = -reach[2]; z <= reach[2]; ++z)
        for (int64_t y = -reach[1]; y <= reach[1]; ++y) {
            /* A ball cuts a row along x in one piece, for it is convex in voxels, too (an
             * ellipsoid). */
            ball_row row = {y, z, 1, 0};
            for (int64_t x = -reach[0]; x <= reach[0]; ++x) {
                const double step[3] = {(double)x, (double)y, (double)z};
                if (rcn__geometry_distance_squared(geometry, step) > limit) continue;
                if (row.low > row.high) row.low = x;
                row.high = x;
            }
            if (row.low <= row.high) job.rows[job.count++] = row;
        }
    RCN_TRY(rcn__for_chunks(ctx, "finding the contour", extent[2], mark_contour, &job));
    memset(band->out, 0, (size_t)rcn_geometry_voxels(geometry));
    RCN_TRY(rcn__for_chunks(ctx, "cutting the band", extent[2], stamp_slice, &job));
done:
    rcn__free(ctx, job.contour);
    rcn__free(ctx, job.rows);
    return status;
}

static void cut_slice(int64_t chunk, int thread, void *payload) {
    const band_job *job = payload;
    const int64_t *size = job->size, z = job->box.first[2] + chunk;
    (void)thread;
    for (int64_t y = job->box.first[1]; y < job->box.end[1]; ++y) {
        uint8_t *row = job->out + size[0] * (y + size[1] * z);
        for (int64_t x = job->box.first[0]; x < job->box.end[0]; ++x)
            row[x] = distance_row(job, y, z)[x - job->box.first[0]] <= job->limit;
    }
}

/* How many voxels along each axis a ball of so many mm reaches, at most all of them. A step along
 * an axis leaves the plane of the other two by 1 / |gradient of the index|. */
static void ball_reach(int64_t reach[3], const rcn_geometry *geometry, double mm) {
    double gradient[3] = {0, 0, 0};
    rcn_geometry at_zero = *geometry;
    /* rcn_geometry_to_index() of a unit vector of the world, without the origin, is how fast each
     * index grows along it; the three together are the gradients. */
    memset(at_zero.origin, 0, sizeof at_zero.origin);
    for (int w = 0; w < 3; ++w) {
        double world[3] = {0, 0, 0}, index[3];
        world[w] = 1;
        rcn_geometry_to_index(index, &at_zero, world);
        for (int a = 0; a < 3; ++a) gradient[a] += index[a] * index[a];
    }
    for (int a = 0; a < 3; ++a) {
        const double most = mm * sqrt(gradient[a]) + 1.0;
        reach[a] = most < (double)geometry->size[a] ? (int64_t)most : geometry->size[a];
    }
}

/* `out` has two lives: the sides of the contour first, and the band once distances are known. */
static rcn_status fill_band(uint8_t *out, rcn_context *ctx, const rcn_votes *votes, double mm) {
    rcn_status status;
    const int64_t *size = votes->geometry.size;
    const double *spacing = votes->geometry.spacing;
    band_job job = {out, size, NULL, {{0, 0, 0}, {0, 0, 0}}, NULL, 0};
    uint8_t *table = NULL;
    int64_t extent[3], reach[3];
    /* Distances are kept in float: what is on the limit must not drop out by rounding. */
    job.limit = (float)(mm * mm * (1.0 + 1e-5));
    RCN_ALLOC(table, ctx, votes->pattern_count, "the majority by pattern");
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        table[p] =
            votes->patterns[p].answered ? rcn__pattern_mean(&votes->patterns[p]) >= 0.5 : GAP;
    RCN_TRY(rcn_votes_expand_u8(out, ctx, votes, table));
    RCN_ALLOC(job.boxes, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) job.boxes[t] = rcn__box_empty();
    RCN_TRY(rcn__for_chunks(ctx, "finding the contour", size[2], contour_slice, &job));
    job.box = rcn__box_empty();
    for (int t = 0; t < ctx->threads; ++t)
        rcn__box_grow(&job.box, job.boxes[t].first, job.boxes[t].end);
    if (job.box.first[0] > job.box.end[0]) { /* no contour */
        memset(out, 0, (size_t)votes->voxels);
        goto done;
    }
    ball_reach(reach, &votes->geometry, mm);
    for (int a = 0; a < 3; ++a) {
        job.box.first[a] = job.box.first[a] < reach[a] ? 0 : job.box.first[a] - reach[a];
        job.box.end[a] = size[a] - job.box.end[a] < reach[a] ? size[a] : job.box.end[a] + reach[a];
        extent[a] = job.box.end[a] - job.box.first[a];
    }
    if (rcn_geometry_is_sheared(&votes->geometry)) {
        RCN_TRY(stamp_band(&job, ctx, &votes->geometry, reach, job.limit));
        goto done;
    }
    RCN_ALLOC(job.distance, ctx, extent[0] * extent[1] * extent[2], "distances from the contour");
    RCN_TRY(rcn__for_chunks(ctx, "finding the contour", extent[2], seed_slice, &job));
    RCN_TRY(rcn__distance_squared(job.distance, ctx, extent, spacing));
    memset(out, 0, (size_t)votes->voxels);
    RCN_TRY(rcn__for_chunks(ctx, "cutting the band", extent[2], cut_slice, &job));
done:
    rcn__free(ctx, table);
    rcn__free(ctx, job.boxes);
    rcn__free(ctx, job.distance);
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static rcn_status fill_disputed(uint8_t *out, rcn_context *ctx, const rcn_votes *votes) {
    rcn_status status;
    uint8_t *table = NULL;
    RCN_ALLOC(table, ctx, votes->pattern_count, "the disputed patterns");
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        table[p] = (uint8_t)rcn__pattern_is_disputed(&votes->patterns[p]);
    RCN_TRY(rcn_votes_expand_u8(out, ctx, votes, table));
done:
    rcn__free(ctx, table);
    return status;
}

rcn_status rcn_region_fill(uint8_t *out, int64_t *count, rcn_context *ctx, const rcn_votes *votes,
                           const rcn_region_options *options) {
    static const rcn_region_options defaults = RCN_REGION_OPTIONS_INIT;
    rcn_status status = RCN_OK;
    rcn_box box;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const char *sentence = rcn_region_check(options);
    if (!sentence && (!out || !votes)) sentence = "The votes or the output region are NULL.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    if (!options) options = &defaults;
    switch (options->region) {
    case RCN_REGION_WHOLE: memset(out, 1, (size_t)votes->voxels); break;
    case RCN_REGION_BOX:
        RCN_TRY(rcn_votes_union_box(&box, ctx, votes, options->margin));
        fill_box(out, votes->geometry.size, &box);
        break;
    case RCN_REGION_BAND: RCN_TRY(fill_band(out, ctx, votes, options->band_mm)); break;
    case RCN_REGION_DISPUTED: RCN_TRY(fill_disputed(out, ctx, votes)); break;
    }
    if (count) {
        int64_t inside = 0;
        for (int64_t i = 0; i < votes->voxels; ++i) inside += out[i];
        *count = inside;
    }
done:
    return status;
}

/* ---- outside of a region --------------------------------------------------------------------- */

typedef struct cut_job {
    float *out;
    const rcn_image *prediction;
    const uint8_t *region;
    int64_t voxels;
} cut_job;

static void cut_chunk(int64_t chunk, int thread, void *payload) {
    const cut_job *job = payload;
    const int components = job->prediction->components;
    int64_t first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    for (int64_t i = first; i < end; ++i) {
        const float *in = (const float *)job->prediction->data + i * components;
        float *out = job->out + i * components;
        for (int c = 0; c < components; ++c) out[c] = job->region[i] ? in[c] : 0.0f;
        if (!job->region[i] && components > 1) out[0] = 1.0f; /* nobody marks it */
    }
}

rcn_status rcn_region_cut(float *out, rcn_context *ctx, const rcn_image *prediction,
                          const uint8_t *region) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(prediction);
    if (!sentence && prediction->type != RCN_FLOAT32) sentence = "The prediction must be float32.";
    if (!sentence && (!out || !region)) sentence = "The region or the output copy is NULL.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    cut_job job = {out, prediction, region, rcn_geometry_voxels(&prediction->geometry)};
    return rcn__for_chunks(ctx, "cutting a prediction", rcn__chunk_count(job.voxels, RCN_CHUNK),
                           cut_chunk, &job);
}
