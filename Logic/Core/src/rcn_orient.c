// SPDX-License-Identifier: Apache-2.0
/* Axes of images: which way each leads in the body, and bringing image and votes into another order
 * of axes (rcn_orient.h).
 *
 * Only whole axes are exchanged and turned round; no voxel is interpolated. An order says for each
 * new axis which old one it is and whether it runs backwards.
 */
#include "rcn/rcn_orient.h"

#include <math.h>
#include <string.h>

#include "rcn_votes_private.h"

/* World axes are left, posterior, superior; the second letter is the other way. */
static const char SIDES[3][2] = {{'L', 'R'}, {'P', 'A'}, {'S', 'I'}};

/* Which world axis a letter is about, and whether it is against it; -1: no letter of ours. */
static int world_axis(int *against, char letter) {
    *against = 0;
    for (int w = 0; w < 3; ++w)
        for (int side = 0; side < 2; ++side)
            if (letter == SIDES[w][side]) {
                *against = side;
                return w;
            }
    return -1;
}

int rcn_axes_check(const char *axes) {
    int seen = 0, against;
    if (!axes || strlen(axes) != 3) return 0;
    for (int a = 0; a < 3; ++a) {
        const int w = world_axis(&against, axes[a]);
        /* Each of the three world axes once. */
        if (w >= 0) seen |= 1 << w;
    }
    return seen == 7;
}

/* Whether nobody knows where the image lies in the body. */
static int is_picture(const rcn_geometry *geometry) {
    return geometry->dimension == 2 || geometry->unit == RCN_PIXELS;
}

/* The letters of the image's axes: of the six ways to assign axes to those of the world, the one
 * that turns them least. Where two are equally close (45 degrees), the second term decides by how
 * the axes lie in the world, so that the same volume has the same axes however it is stored. */
static void closest_axes(char axes[4], const rcn_geometry *geometry) {
    static const int ways[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const double *d = geometry->direction;
    double best = -INFINITY;
    for (int way = 0; way < 6; ++way) {
        double sum = 0;
        for (int a = 0; a < 3; ++a) {
            const int w = ways[way][a];
            sum += fabs(d[3 * w + a]) + 1e-6 * d[3 * w + a] * d[3 * ((w + 1) % 3) + a];
        }
        if (!(sum > best)) continue;
        best = sum;
        for (int a = 0; a < 3; ++a) axes[a] = SIDES[ways[way][a]][d[3 * ways[way][a] + a] < 0];
    }
    axes[3] = '\0';
}

/* Moves letter `at` to the end. */
static void make_last(char axes[4], int at) {
    const char letter = axes[at];
    memmove(axes + at, axes + at + 1, (size_t)(2 - at));
    axes[2] = letter;
}

void rcn_axes_of(char axes[4], const rcn_geometry *geometry) {
    axes[0] = '\0';
    if (is_picture(geometry)) return;
    closest_axes(axes, geometry);
    const int thin = rcn_geometry_thin_axis(geometry);
    if (thin >= 0) make_last(axes, thin);
}

rcn_order rcn_order_to(const char *axes, const rcn_geometry *geometry, int slices) {
    rcn_order order = RCN_ORDER_INIT;
    char stored[4], wanted[4];
    int ignored, against[2];
    if (is_picture(geometry) || !rcn_axes_check(axes)) return order;
    closest_axes(stored, geometry);
    memcpy(wanted, axes, sizeof wanted);
    /* A single slice is an image for a network that works on slices, whichever way it was cut: its
     * thin axis goes last, whatever `axes` says. */
    const int thin = slices ? rcn_geometry_thin_axis(geometry) : -1;
    for (int a = 2; thin >= 0 && a >= 0; --a)
        if (world_axis(&ignored, wanted[a]) == world_axis(&ignored, stored[thin])) {
            make_last(wanted, a);
            break;
        }
    for (int a = 0; a < 3; ++a)
        for (int old = 0; old < 3; ++old)
            if (world_axis(&against[0], wanted[a]) == world_axis(&against[1], stored[old])) {
                order.from[a] = old;
                order.flip[a] = against[0] != against[1];
            }
    return order;
}

rcn_order rcn_order_inverse(const rcn_order *order) {
    rcn_order inverse;
    for (int a = 0; a < 3; ++a) {
        inverse.from[order->from[a]] = a;
        inverse.flip[order->from[a]] = order->flip[a];
    }
    return inverse;
}

int rcn_order_is_identity(const rcn_order *order) {
    for (int a = 0; a < 3; ++a)
        if (order->from[a] != a || order->flip[a]) return 0;
    return 1;
}

rcn_geometry rcn_geometry_reorder(const rcn_geometry *geometry, const rcn_order *order) {
    rcn_geometry out = *geometry;
    double first[3] = {0, 0, 0};
    for (int a = 0; a < 3; ++a) {
        const int old = order->from[a];
        out.size[a] = geometry->size[old];
        out.spacing[a] = geometry->spacing[old];
        if (order->flip[a]) first[old] = (double)(geometry->size[old] - 1);
        for (int row = 0; row < 3; ++row) {
            const double along = geometry->direction[3 * row + old];
            out.direction[3 * row + a] = order->flip[a] ? 0 - along : along; /* never -0 */
        }
    }
    /* The world keeps every voxel where it is: the new origin is the old voxel that comes first
     * now. */
    rcn_geometry_to_world(out.origin, geometry, first);
    return out;
}

/* ---- voxels ---------------------------------------------------------------------------------- */

typedef struct reorder_job {
    char *out;
    const char *in; /* the voxel that becomes the first one */
    int64_t size[3];
    int64_t step[3]; /* bytes in the old image from a voxel to the next along each new axis */
    size_t bytes;    /* of a voxel */
    int64_t rows_per_chunk;
} reorder_job;

#define COPY_ROW(T)                                                                                \
    do {                                                                                           \
        T *to = (T *)(void *)out;                                                                  \
        for (int64_t x = 0; x < job->size[0]; ++x)                                                 \
            to[x] = *(const T *)(const void *)(in + x * job->step[0]);                             \
    } while (0)

static void reorder_rows(int64_t chunk, int thread, void *payload) {
    const reorder_job *job = payload;
    int64_t row, end;
    (void)thread;
    rcn__chunk_range(&row, &end, chunk, job->size[1] * job->size[2], job->rows_per_chunk);
    for (; row < end; ++row) {
        char *out = job->out + row * job->size[0] * (int64_t)job->bytes;
        const char *in =
            job->in + row % job->size[1] * job->step[1] + row / job->size[1] * job->step[2];
        /* x stays x: rows in one piece. */
        if (job->step[0] == (int64_t)job->bytes) {
            memcpy(out, in, (size_t)job->size[0] * job->bytes);
            continue;
        }
        switch (job->bytes) {
        case 1: COPY_ROW(uint8_t); break;
        case 2: COPY_ROW(uint16_t); break;
        case 4: COPY_ROW(uint32_t); break;
        default: /* 8 and several components: all of a voxel at once */
            for (int64_t x = 0; x < job->size[0]; ++x)
                memcpy(out + x * (int64_t)job->bytes, in + x * job->step[0], job->bytes);
        }
    }
}

static const char *check_order(const rcn_order *order) {
    int seen = 0;
    for (int a = 0; order && a < 3; ++a)
        if (order->from[a] >= 0 && order->from[a] < 3) seen |= 1 << order->from[a];
    return seen == 7 ? NULL : "An order must name each of the three axes once.";
}

rcn_status rcn_image_reorder(void *out, rcn_context *ctx, const rcn_image *image,
                             const rcn_order *order) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(image);
    if (!sentence) sentence = check_order(order);
    if (!sentence && !out) sentence = "The output image is NULL.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    const int64_t *size = image->geometry.size;
    reorder_job job = {.out = out, .in = image->data};
    job.bytes = rcn_type_size(image->type) * (size_t)image->components;
    const int64_t stride[3] = {(int64_t)job.bytes, (int64_t)job.bytes * size[0],
                               (int64_t)job.bytes * size[0] * size[1]};
    for (int a = 0; a < 3; ++a) {
        const int old = order->from[a];
        job.size[a] = size[old];
        job.step[a] = order->flip[a] ? -stride[old] : stride[old];
        if (order->flip[a]) job.in += (size[old] - 1) * stride[old];
    }
    job.rows_per_chunk = rcn__chunk_count(RCN_CHUNK, job.size[0]);
    return rcn__for_chunks(ctx, "turning the image",
                           rcn__chunk_count(job.size[1] * job.size[2], job.rows_per_chunk),
                           reorder_rows, &job);
}

rcn_status rcn_votes_reorder(rcn_votes *votes, rcn_context *ctx, const rcn_order *order) {
    rcn_status status = RCN_OK;
    void *codes = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!votes || !votes->codes) return rcn__fail(ctx, RCN_EINVALID, "No votes were given.");
    /* Codes are an image of whole numbers as any other; the table of patterns knows no places and
     * stays. */
    const rcn_image image = {votes->codes,
                             votes->code_bytes == 1   ? RCN_UINT8
                             : votes->code_bytes == 2 ? RCN_UINT16
                                                      : RCN_UINT32,
                             1, votes->geometry};
    RCN_TRY(rcn__alloc(&codes, votes->ctx, votes->voxels, (size_t)votes->code_bytes,
                       "the packed votes"));
    RCN_TRY(rcn_image_reorder(codes, ctx, &image, order));
    if (!votes->borrowed) rcn__free(votes->ctx, votes->codes);
    votes->codes = codes;
    votes->borrowed = 0;
    codes = NULL;
    votes->geometry = rcn_geometry_reorder(&votes->geometry, order);
done:
    rcn__free(votes->ctx, codes);
    return status;
}
