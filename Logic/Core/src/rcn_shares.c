// SPDX-License-Identifier: Apache-2.0
/* From the shares of C structures to the C + 1 means that a prediction has, background first, and
 * back.
 *
 * What corrects or scores means works on C + 1 components that add up to 1; a file holds only the
 * structures, because the background is what they leave.
 */
#include "rcn/rcn_shares.h"

#include "rcn_context_private.h"
#include "rcn_parallel.h"

typedef struct shares_job {
    void *out;
    const float *in;
    int components;
    int64_t voxels;
} shares_job;

/* The background's part of the C shares of a voxel. */
static float rest_of(const float *shares, int count) {
    double sum = 0;
    for (int c = 0; c < count; ++c) sum += (double)shares[c];
    /* Shares that were rounded when they were stored may add up to a little more than 1. */
    return sum <= 0 ? 1.0f : sum >= 1 ? 0.0f : (float)(1 - sum); /* NaN stays NaN */
}

static void complete_chunk(int64_t chunk, int thread, void *payload) {
    const shares_job *job = payload;
    const int count = job->components;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, job->voxels, RCN_CHUNK);
    for (; at < end; ++at) {
        const float *in = job->in + at * count;
        float *out = (float *)job->out + at * (count + 1);
        out[0] = rest_of(in, count);
        for (int c = 0; c < count; ++c) out[c + 1] = in[c];
    }
}

static void strip_chunk(int64_t chunk, int thread, void *payload) {
    const shares_job *job = payload;
    const int count = job->components;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, job->voxels, RCN_CHUNK);
    for (; at < end; ++at)
        for (int c = 1; c < count; ++c)
            ((float *)job->out)[at * (count - 1) + c - 1] = job->in[at * count + c];
}

/* Whether a map can be worked on; prepares the job. */
static rcn_status open_map(shares_job *job, rcn_context *ctx, const rcn_image *map, int least) {
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(map);
    if (!sentence && !job->out) sentence = "The output result is NULL.";
    if (!sentence && (map->type != RCN_FLOAT32 || map->components < least))
        sentence = "Shares of structures must be float32, with a component per structure.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    job->in = map->data;
    job->components = map->components;
    job->voxels = rcn_geometry_voxels(&map->geometry);
    return RCN_OK;
}

rcn_status rcn_shares_complete(float *means, rcn_context *ctx, const rcn_image *shares) {
    shares_job job = {means, NULL, 0, 0};
    if (!ctx) return RCN_EINVALID;
    const rcn_status status = open_map(&job, ctx, shares, 1);
    if (status != RCN_OK) return status;
    return rcn__for_chunks(ctx, "completing shares", rcn__chunk_count(job.voxels, RCN_CHUNK),
                           complete_chunk, &job);
}

rcn_status rcn_shares_strip(float *shares, rcn_context *ctx, const rcn_image *means) {
    shares_job job = {shares, NULL, 0, 0};
    if (!ctx) return RCN_EINVALID;
    const rcn_status status = open_map(&job, ctx, means, 2);
    if (status != RCN_OK) return status;
    return rcn__for_chunks(ctx, "reading shares", rcn__chunk_count(job.voxels, RCN_CHUNK),
                           strip_chunk, &job);
}
