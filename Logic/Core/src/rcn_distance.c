// SPDX-License-Identifier: Apache-2.0
/* Exact Euclidean distance transform (Felzenszwalb and Huttenlocher 2012, "Distance Transforms of
 * Sampled Functions").
 *
 * The squared distance is separable: along one axis, d(x) = min over i of (x - i)^2 + f(i), where f
 * is what the axes before have found. Each i is a parabola, all of one shape, so that any two cross
 * once, and the minimum is the lower envelope of parabolas: one scan builds it, another reads it.
 * That is linear in the voxels, whatever the distances are. Here x and i are in millimeters.
 */
#include "rcn_distance.h"

#include <math.h>

#include "rcn_parallel.h"

typedef struct distance_job {
    float *data;
    int64_t size[3], stride[3];
    double spacing;
    int axis;
    double **scratch; /* per thread: values, parabolas and starts of the longest line */
} distance_job;

/* One line of `length` values, `stride` apart. values: a copy of the line; parabolas: where the
 * parabolas of the envelope sit; starts: from where on each is the lowest. */
static void transform_line(float *line, int64_t length, int64_t stride, double spacing,
                           double *scratch) {
    double *values = scratch, *parabolas = scratch + length, *starts = scratch + 2 * length;
    int64_t count = 0;
    for (int64_t i = 0; i < length; ++i) {
        values[i] = (double)line[i * stride];
        /* No parabola: nothing was found on that line yet. */
        if (isinf(values[i])) continue;
        const double x = spacing * (double)i;
        double start = -INFINITY;
        while (count) {
            const double at = spacing * parabolas[count - 1];
            const double below = values[(int64_t)parabolas[count - 1]];
            /* Where the new parabola crosses the last one of the envelope; it is lower behind that.
             * If the last one is lowest nowhere then, it goes, and the one before it is asked. */
            start = ((values[i] + x * x) - (below + at * at)) / (2.0 * (x - at));
            if (start > starts[count - 1]) break;
            --count;
            start = -INFINITY;
        }
        parabolas[count] = (double)i;
        starts[count++] = start;
    }
    /* All infinite: they stay so. */
    if (!count) return;
    for (int64_t i = 0, k = 0; i < length; ++i) {
        const double x = spacing * (double)i;
        while (k + 1 < count && starts[k + 1] < x) ++k;
        const double off = x - spacing * parabolas[k];
        line[i * stride] = (float)(off * off + values[(int64_t)parabolas[k]]);
    }
}

/* All lines along the axis that lie in one plane. */
static void transform_plane(int64_t plane, int thread, void *payload) {
    const distance_job *job = payload;
    const int across = job->axis == 2 ? 1 : 2; /* planes are counted along this axis ... */
    const int along = 3 - job->axis - across;  /* ... and lines along this one */
    float *first = job->data + plane * job->stride[across];
    for (int64_t i = 0; i < job->size[along]; ++i)
        transform_line(first + i * job->stride[along], job->size[job->axis], job->stride[job->axis],
                       job->spacing, job->scratch[thread]);
}

rcn_status rcn__distance_squared(float *out, rcn_context *ctx, const int64_t size[3],
                                 const double spacing[3]) {
    rcn_status status;
    distance_job job = {out, {0, 0, 0}, {1, 0, 0}, 0, 0, NULL};
    int64_t longest = 0;
    for (int a = 0; a < 3; ++a) {
        job.size[a] = size[a];
        if (a) job.stride[a] = job.stride[a - 1] * size[a - 1];
        if (size[a] > longest) longest = size[a];
    }
    RCN_ALLOC_ZERO(job.scratch, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t)
        RCN_ALLOC(job.scratch[t], ctx, 3 * (longest + 1), "distances along a line");
    for (int axis = 0; axis < 3; ++axis) {
        /* Nothing to look for along an axis of one voxel. */
        if (size[axis] == 1) continue;
        job.axis = axis;
        job.spacing = spacing[axis];
        RCN_TRY(rcn__for_chunks(ctx, "measuring distances", size[axis == 2 ? 1 : 2],
                                transform_plane, &job));
    }
    status = RCN_OK;
done:
    for (int t = 0; job.scratch && t < ctx->threads; ++t) rcn__free(ctx, job.scratch[t]);
    rcn__free(ctx, job.scratch);
    return status;
}

double rcn__geometry_distance_squared(const rcn_geometry *geometry, const double step[3]) {
    double sum = 0;
    for (int row = 0; row < 3; ++row) {
        double along = 0;
        for (int a = 0; a < 3; ++a)
            along += geometry->direction[3 * row + a] * geometry->spacing[a] * step[a];
        sum += along * along;
    }
    return sum;
}
