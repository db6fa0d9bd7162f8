// SPDX-License-Identifier: Apache-2.0
#include "rcn_layers.h"

#include <math.h>
#include <string.h>

#include "rcn_lanes.h"
#include "rcn_parallel.h"
#include "rcn_comm_private.h"

enum {
    SEGMENT = 4096, /* voxels in a chunk: 128 KB, half of a second-level cache */
    RUN = 256       /* values added up as floats before the sum continues in double */
};

int64_t rcn__extent_voxels(const rcn__extent *extent) {
    return extent->size[0] * extent->size[1] * extent->size[2];
}

static int64_t planes_of(const rcn__extent *extent) {
    return extent->batch * ((extent->channels + RCN_LANES - 1) / RCN_LANES);
}

int64_t rcn__extent_floats(const rcn__extent *extent) {
    return planes_of(extent) * rcn__extent_voxels(extent) * RCN_LANES;
}

/* Chunk -> plane (image and block of channels) and a range of its voxels. */
typedef struct range {
    int64_t plane, first, end;
} range;

static range range_of(int64_t chunk, int64_t voxels) {
    const int64_t segments = rcn__chunk_count(voxels, SEGMENT);
    range r;
    r.plane = chunk / segments;
    rcn__chunk_range(&r.first, &r.end, chunk % segments, voxels, SEGMENT);
    return r;
}

static int64_t range_count(const rcn__extent *extent) {
    return planes_of(extent) * rcn__chunk_count(rcn__extent_voxels(extent), SEGMENT);
}

/* ---- normalization --------------------------------------------------------------------------- */

/* Two sums for each chunk and lane. */
int64_t rcn__norm_partials(const rcn__extent *extent) {
    return range_count(extent) * 2 * RCN_LANES;
}

typedef struct norm_job {
    const rcn__norm *norm;
    const float *x, *y, *residual;
    float *out, *dy, *dresidual;
    const float *a, *b, *c; /* (B, C) */
    int accumulate;
} norm_job;

/* Sums of x - x[0] and its square over one chunk: taking off a value of the same channel keeps the
 * variance exact when the mean is large. */
RCN_DISPATCH static void sum_chunk(int64_t chunk, const norm_job *job) {
    const rcn__extent *extent = &job->norm->extent;
    const int64_t voxels = rcn__extent_voxels(extent);
    const range r = range_of(chunk, voxels);
    const float *plane = job->x + r.plane * voxels * RCN_LANES;
    double *partial = job->norm->partial + chunk * 2 * RCN_LANES;
    const lanes origin = lanes_load(plane);
    memset(partial, 0, 2 * RCN_LANES * sizeof *partial);
    for (int64_t first = r.first; first < r.end; first += RUN) {
        const int64_t end = first + RUN < r.end ? first + RUN : r.end;
        lanes sum = lanes_zero(), squares = lanes_zero();
        for (int64_t v = first; v < end; ++v) {
            const lanes value = lanes_subtract(lanes_load(plane + v * RCN_LANES), origin);
            sum = lanes_add(sum, value);
            squares = lanes_multiply_add(value, value, squares);
        }
        lanes_add_to(partial, sum);
        lanes_add_to(partial + RCN_LANES, squares);
    }
}

static void sum_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    sum_chunk(chunk, payload);
}

/* Adds up the partial sums of one image's channel, in the order of chunks. */
static void gather(double out[2], const rcn__norm *norm, int64_t image, int64_t channel) {
    const int64_t segments = rcn__chunk_count(rcn__extent_voxels(&norm->extent), SEGMENT);
    const int64_t plane = image * (norm->extent.channels / RCN_LANES) + channel / RCN_LANES;
    const double *partial = norm->partial + plane * segments * 2 * RCN_LANES + channel % RCN_LANES;
    out[0] = out[1] = 0;
    for (int64_t s = 0; s < segments; ++s) {
        out[0] += partial[s * 2 * RCN_LANES];
        out[1] += partial[s * 2 * RCN_LANES + RCN_LANES];
    }
}

/* The cells: each has its images [*image, *image_end) and channels [*channel, *channel_end). */
static int64_t cell_count(const rcn__norm *norm) {
    switch (norm->kind) {
    case RCN_CELL_BATCH: return norm->extent.channels;
    case RCN_CELL_INSTANCE: return norm->extent.batch * norm->extent.channels;
    default: return norm->extent.batch * norm->groups;
    }
}

typedef struct cell {
    int64_t image, image_end, channel, channel_end;
} cell;

static cell cell_at(const rcn__norm *norm, int64_t index) {
    const int64_t channels = norm->extent.channels;
    cell c = {0, norm->extent.batch, index, index + 1};
    if (norm->kind != RCN_CELL_BATCH) {
        const int64_t cells = norm->kind == RCN_CELL_GROUP ? norm->groups : channels;
        const int64_t width = channels / cells;
        c.image = index / cells;
        c.image_end = c.image + 1;
        c.channel = index % cells * width;
        c.channel_end = c.channel + width;
    }
    return c;
}

static const double epsilon = 1e-5;

static void set_scale(rcn__norm *norm, int64_t image, int64_t channel, double mean, double variance,
                      const float *weight, const float *bias) {
    const int64_t i = image * norm->extent.channels + channel;
    norm->mean[i] = mean;
    norm->rstd[i] = 1.0 / sqrt(variance + epsilon);
    norm->scale[i] = (float)((double)weight[channel] * norm->rstd[i]);
    norm->shift[i] =
        (float)((double)bias[channel] - mean * (double)weight[channel] * norm->rstd[i]);
}

typedef struct moments {
    double count, mean, deviations; /* deviations: sum of squared distances from the mean */
} moments;

/* Means and squared deviations of parts are combined as in Chan, Golub and LeVeque 1979. */
static moments cell_moments(const rcn__norm *norm, const cell *c, const float *x) {
    const int64_t channels = norm->extent.channels;
    const int64_t voxels = rcn__extent_voxels(&norm->extent);
    moments m = {0, 0, 0};
    for (int64_t n = c->image; n < c->image_end; ++n)
        for (int64_t k = c->channel; k < c->channel_end; ++k) {
            const float *plane =
                x + (n * channels / RCN_LANES + k / RCN_LANES) * voxels * RCN_LANES;
            double sums[2];
            gather(sums, norm, n, k);
            const double part = (double)voxels, offset = sums[0] / part;
            const double part_mean = (double)plane[k % RCN_LANES] + offset;
            const double part_deviations = sums[1] - sums[0] * offset;
            const double delta = part_mean - m.mean;
            m.mean += delta * part / (m.count + part);
            m.deviations += part_deviations + delta * delta * m.count * part / (m.count + part);
            m.count += part;
        }
    return m;
}

/* Of one channel, from sums that are there already. */
static moments tallied_moments(const rcn__norm *norm, int64_t channel) {
    const int64_t channels = norm->extent.channels;
    const float *from = norm->tally.sums + channel;
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < norm->tally_rows; ++r, from += 2 * channels) {
        sum += (double)from[0];
        squares += (double)from[channels];
    }
    const double count = (double)(norm->extent.batch * rcn__extent_voxels(&norm->extent));
    const moments m = {count, (double)norm->tally.origin[channel] + sum / count,
                       squares - sum * sum / count};
    return m;
}

/* Of a cell in this process's part of the batch. */
static moments own_moments(const rcn__norm *norm, int64_t index, const float *x) {
    const cell c = cell_at(norm, index);
    return norm->tally.sums ? tallied_moments(norm, c.channel) : cell_moments(norm, &c, x);
}

/* A norm whose cells reach into other processes' parts of the batch. */
static int is_shared(const rcn__norm *norm) {
    return norm->kind == RCN_CELL_BATCH && rcn__comm_size(norm->comm) > 1;
}

/* norm->shared = the count, then for each channel the sums of the distances from `origin` and of
 * their squares, over all processes. The origin, which all processes have, keeps the squares small
 * when the mean is large. */
static rcn_status share_moments(rcn__norm *norm, rcn_context *ctx, const float *x,
                                const float *origin) {
    for (int64_t k = 0; k < norm->extent.channels; ++k) {
        const moments m = own_moments(norm, k, x);
        const double distance = m.mean - (origin ? (double)origin[k] : 0.0);
        norm->shared[0] = m.count;
        norm->shared[1 + 2 * k] = m.count * distance;
        norm->shared[2 + 2 * k] = m.deviations + m.count * distance * distance;
    }
    return rcn_comm_sum(norm->comm, ctx, norm->shared, 1 + 2 * norm->extent.channels,
                        RCN_COMM_DOUBLE);
}

static moments shared_moments(const rcn__norm *norm, int64_t k, const float *origin) {
    const double count = norm->shared[0], distance = norm->shared[1 + 2 * k] / count;
    const moments m = {count, (origin ? (double)origin[k] : 0.0) + distance,
                       norm->shared[2 + 2 * k] - count * distance * distance};
    return m;
}

rcn_status rcn__norm_statistics(rcn__norm *norm, rcn_context *ctx, const float *x,
                                const float *weight, const float *bias, float *running_mean,
                                float *running_var) {
    rcn_status status = RCN_OK;
    norm_job job = {.norm = norm, .x = x};
    if (!norm->tally.sums) rcn__for_all(ctx, range_count(&norm->extent), sum_body, &job);
    if (is_shared(norm)) RCN_TRY(share_moments(norm, ctx, x, running_mean));
    for (int64_t index = 0; index < cell_count(norm); ++index) {
        const cell c = cell_at(norm, index);
        const moments m = is_shared(norm) ? shared_moments(norm, index, running_mean)
                                          : own_moments(norm, index, x);
        const double variance = m.deviations > 0 ? m.deviations / m.count : 0.0;
        norm->count = m.count;
        for (int64_t n = c.image; n < c.image_end; ++n)
            for (int64_t k = c.channel; k < c.channel_end; ++k)
                set_scale(norm, n, k, m.mean, variance, weight, bias);
        if (running_mean) {
            const double unbiased = m.count > 1 ? m.deviations / (m.count - 1) : variance;
            running_mean[c.channel] = (float)(0.9 * (double)running_mean[c.channel] + 0.1 * m.mean);
            running_var[c.channel] = (float)(0.9 * (double)running_var[c.channel] + 0.1 * unbiased);
        }
    }
done:
    return status;
}

void rcn__norm_fixed(rcn__norm *norm, const float *weight, const float *bias,
                     const float *running_mean, const float *running_var) {
    for (int64_t n = 0; n < norm->extent.batch; ++n)
        for (int64_t k = 0; k < norm->extent.channels; ++k)
            set_scale(norm, n, k, (double)running_mean[k], (double)running_var[k], weight, bias);
}

RCN_DISPATCH static void apply_chunk(int64_t chunk, const norm_job *job) {
    const rcn__norm *norm = job->norm;
    const int64_t voxels = rcn__extent_voxels(&norm->extent);
    const range r = range_of(chunk, voxels);
    const int64_t start = (r.plane * voxels + r.first) * RCN_LANES;
    const int64_t end = (r.plane * voxels + r.end) * RCN_LANES;
    const lanes scale = lanes_load(norm->scale + r.plane * RCN_LANES);
    const lanes shift = lanes_load(norm->shift + r.plane * RCN_LANES);
    const float *x = job->x, *residual = job->residual;
    float *out = job->out;
    if (residual && norm->relu) {
        for (int64_t i = start; i < end; i += RCN_LANES) {
            const lanes y = lanes_add(lanes_multiply_add(lanes_load(x + i), scale, shift),
                                      lanes_load(residual + i));
            lanes_store(out + i, lanes_where_positive(y, y));
        }
    } else if (residual) {
        for (int64_t i = start; i < end; i += RCN_LANES)
            lanes_store(out + i, lanes_add(lanes_multiply_add(lanes_load(x + i), scale, shift),
                                           lanes_load(residual + i)));
    } else if (norm->relu) {
        for (int64_t i = start; i < end; i += RCN_LANES) {
            const lanes y = lanes_multiply_add(lanes_load(x + i), scale, shift);
            lanes_store(out + i, lanes_where_positive(y, y));
        }
    } else {
        for (int64_t i = start; i < end; i += RCN_LANES)
            lanes_store(out + i, lanes_multiply_add(lanes_load(x + i), scale, shift));
    }
}

static void apply_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    apply_chunk(chunk, payload);
}

void rcn__norm_apply(float *y, const rcn__norm *norm, rcn_context *ctx, const float *x,
                     const float *residual) {
    norm_job job = {.norm = norm, .x = x, .out = y, .residual = residual};
    rcn__for_all(ctx, range_count(&norm->extent), apply_body, &job);
}

/* First pass: sums of g and g * (x - mean), g being dy where the ReLU let through. With a residual
 * g is also the residual's gradient and takes dy's place. */
RCN_DISPATCH static void back_sum_chunk(int64_t chunk, const norm_job *job) {
    const rcn__norm *norm = job->norm;
    const int64_t voxels = rcn__extent_voxels(&norm->extent);
    const range r = range_of(chunk, voxels);
    const int64_t base = r.plane * voxels;
    const lanes scale = lanes_load(norm->scale + r.plane * RCN_LANES);
    const lanes shift = lanes_load(norm->shift + r.plane * RCN_LANES);
    const lanes mean = lanes_load(job->a + r.plane * RCN_LANES);
    double *partial = norm->partial + chunk * 2 * RCN_LANES;
    memset(partial, 0, 2 * RCN_LANES * sizeof *partial);
    for (int64_t first = r.first; first < r.end; first += RUN) {
        const int64_t end = (base + (first + RUN < r.end ? first + RUN : r.end)) * RCN_LANES;
        lanes sum = lanes_zero(), products = lanes_zero();
        if (job->residual) {
            for (int64_t i = (base + first) * RCN_LANES; i < end; i += RCN_LANES) {
                lanes g = lanes_load(job->dy + i);
                if (norm->relu) g = lanes_where_positive(g, lanes_load(job->y + i));
                lanes_store(job->dy + i, g);
                sum = lanes_add(sum, g);
                products =
                    lanes_multiply_add(g, lanes_subtract(lanes_load(job->x + i), mean), products);
                if (job->accumulate) g = lanes_add(g, lanes_load(job->dresidual + i));
                lanes_store(job->dresidual + i, g);
            }
        } else if (norm->relu) {
            for (int64_t i = (base + first) * RCN_LANES; i < end; i += RCN_LANES) {
                const lanes x = lanes_load(job->x + i);
                const lanes g = lanes_where_positive(lanes_load(job->dy + i),
                                                     lanes_multiply_add(x, scale, shift));
                sum = lanes_add(sum, g);
                products = lanes_multiply_add(g, lanes_subtract(x, mean), products);
            }
        } else {
            for (int64_t i = (base + first) * RCN_LANES; i < end; i += RCN_LANES) {
                const lanes g = lanes_load(job->dy + i);
                sum = lanes_add(sum, g);
                products =
                    lanes_multiply_add(g, lanes_subtract(lanes_load(job->x + i), mean), products);
            }
        }
        lanes_add_to(partial, sum);
        lanes_add_to(partial + RCN_LANES, products);
    }
}

/* Second pass: dx = a * g + b * x + c. */
RCN_INLINE lanes back_apply(lanes a, lanes g, lanes b, lanes x, lanes c) {
    return lanes_add(lanes_multiply_add(b, x, lanes_multiply(a, g)), c);
}

RCN_DISPATCH static void back_apply_chunk(int64_t chunk, const norm_job *job) {
    const rcn__norm *norm = job->norm;
    const int64_t voxels = rcn__extent_voxels(&norm->extent);
    const range r = range_of(chunk, voxels);
    const int64_t start = (r.plane * voxels + r.first) * RCN_LANES;
    const int64_t end = (r.plane * voxels + r.end) * RCN_LANES;
    const lanes scale = lanes_load(norm->scale + r.plane * RCN_LANES);
    const lanes shift = lanes_load(norm->shift + r.plane * RCN_LANES);
    const lanes a = lanes_load(job->a + r.plane * RCN_LANES);
    const lanes b = lanes_load(job->b + r.plane * RCN_LANES);
    const lanes c = lanes_load(job->c + r.plane * RCN_LANES);
    if (norm->relu && !job->residual) {
        for (int64_t i = start; i < end; i += RCN_LANES) {
            const lanes x = lanes_load(job->x + i);
            const lanes g =
                lanes_where_positive(lanes_load(job->dy + i), lanes_multiply_add(x, scale, shift));
            lanes_store(job->dy + i, back_apply(a, g, b, x, c));
        }
    } else {
        for (int64_t i = start; i < end; i += RCN_LANES)
            lanes_store(job->dy + i,
                        back_apply(a, lanes_load(job->dy + i), b, lanes_load(job->x + i), c));
    }
}

static void back_sum_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    back_sum_chunk(chunk, payload);
}
static void back_apply_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    back_apply_chunk(chunk, payload);
}

/* What the mean and the variance of a cell send back: sums over it of the gradient to the
 * normalized value, and of its product with the normalized value. Adds the parameters' gradients,
 * of this process's images alone. */
static void cell_gradients(double out[2], float *dweight, float *dbias, const rcn__norm *norm,
                           const cell *part, const float *weight) {
    out[0] = out[1] = 0;
    for (int64_t n = part->image; n < part->image_end; ++n)
        for (int64_t k = part->channel; k < part->channel_end; ++k) {
            const int64_t i = n * norm->extent.channels + k;
            double sums[2];
            gather(sums, norm, n, k);
            /* The mean was rounded to float in the pass: take the difference back. */
            const double product =
                (sums[1] + sums[0] * ((double)(float)norm->mean[i] - norm->mean[i])) *
                norm->rstd[i];
            dweight[k] += (float)product;
            dbias[k] += (float)sums[0];
            out[0] += (double)weight[k] * sums[0];
            out[1] += (double)weight[k] * product;
        }
}

rcn_status rcn__norm_backward(float *dy, float *dweight, float *dbias, float *dresidual,
                              int accumulate, rcn__norm *norm, rcn_context *ctx, const float *x,
                              const float *y, const float *weight) {
    rcn_status status = RCN_OK;
    const int64_t channels = norm->extent.channels;
    const int64_t count = norm->extent.batch * channels;
    float *a = norm->coefficients, *b = a + count, *c = b + count;
    norm_job job = {.norm = norm, .x = x, .y = y, .dy = dy, .dresidual = dresidual};
    job.residual = dresidual;
    job.accumulate = accumulate;
    job.a = a;
    job.b = b;
    job.c = c;
    for (int64_t i = 0; i < count; ++i) a[i] = (float)norm->mean[i];
    rcn__for_all(ctx, range_count(&norm->extent), back_sum_body, &job);

    memset(dweight, 0, (size_t)channels * sizeof *dweight);
    memset(dbias, 0, (size_t)channels * sizeof *dbias);
    for (int64_t k = 0; is_shared(norm) && k < channels; ++k) {
        const cell part = cell_at(norm, k);
        cell_gradients(&norm->shared[2 * k], dweight, dbias, norm, &part, weight);
    }
    if (is_shared(norm))
        RCN_TRY(rcn_comm_sum(norm->comm, ctx, norm->shared, 2 * channels, RCN_COMM_DOUBLE));
    for (int64_t index = 0; index < cell_count(norm); ++index) {
        const cell part = cell_at(norm, index);
        double own[2];
        const double *sums = is_shared(norm) ? &norm->shared[2 * index] : own;
        if (!is_shared(norm)) cell_gradients(own, dweight, dbias, norm, &part, weight);
        const double to_mean = sums[0], to_variance = sums[1];
        for (int64_t n = part.image; n < part.image_end; ++n)
            for (int64_t k = part.channel; k < part.channel_end; ++k) {
                const int64_t i = n * channels + k;
                const double rstd = norm->rstd[i];
                const double slope = -rstd * rstd * to_variance / norm->count;
                a[i] = (float)((double)weight[k] * rstd);
                b[i] = (float)slope;
                c[i] = (float)(-rstd * to_mean / norm->count - slope * norm->mean[i]);
            }
    }
    rcn__for_all(ctx, range_count(&norm->extent), back_apply_body, &job);
done:
    return status;
}

void rcn__norm_fold(float *scale, float *shift, int64_t channels, const float *weight,
                    const float *bias, const float *running_mean, const float *running_var) {
    for (int64_t k = 0; k < channels; ++k) {
        const double factor = (double)weight[k] / sqrt((double)running_var[k] + epsilon);
        scale[k] = (float)factor;
        shift[k] = (float)((double)bias[k] - (double)running_mean[k] * factor);
    }
}

/* ---- pooling --------------------------------------------------------------------------------- */

typedef struct pool_job {
    const rcn__pool *pool;
    rcn__source in;
    int64_t out_window; /* rcn__row_place() */
    const float *dout;
    float *out, *din;
    uint8_t *choice;
    const uint8_t *chosen;
    int accumulate;
} pool_job;

/* The taps of a window that lie inside the image, from first to end, on one axis. */
static void taps_of(int64_t *first, int64_t *end, const rcn__pool *pool, int axis, int64_t at) {
    const int64_t start = at * pool->stride[axis] - pool->pad[axis];
    *first = start < 0 ? -start : 0;
    *end = pool->in.size[axis] - start < pool->kernel[axis] ? pool->in.size[axis] - start
                                                            : pool->kernel[axis];
}

/* Windows of 2x2 voxels side by side, all of them inside. */
static int is_pairs(const rcn__pool *pool) {
    if (pool->kernel[0] != 1 || pool->stride[0] != 1 || pool->pad[0] != 0) return 0;
    for (int d = 1; d < 3; ++d)
        if (pool->kernel[d] != 2 || pool->stride[d] != 2 || pool->pad[d] != 0 ||
            2 * pool->out_size[d] > pool->in.size[d])
            return 0;
    return 1;
}

/* A row of outputs whose windows are 2x2 voxels that lie side by side, as almost all are: `upper`
 * and `lower` are its rows of inputs. Nothing is asked for each value; of equal ones the first is
 * chosen. */
RCN_INLINE void pool_pairs(float *out, uint8_t *choice, const float *upper, const float *lower,
                           int64_t count, const rcn__source *in, lanes scale, lanes shift) {
    const int normed = in->scale != NULL;
    const lanes floor = lanes_all(in->relu ? 0.0f : -INFINITY);
    for (int64_t x = 0; x < count; ++x, upper += 2 * RCN_LANES, lower += 2 * RCN_LANES) {
        lanes value[4] = {lanes_load(upper), lanes_load(upper + RCN_LANES), lanes_load(lower),
                          lanes_load(lower + RCN_LANES)};
        for (int k = 0; k < 4; ++k) {
            if (normed) value[k] = lanes_multiply_add(value[k], scale, shift);
            value[k] = lanes_at_least(floor, value[k]);
        }
        lane_numbers which = lane_numbers_zero();
        lanes best = value[0];
        for (int32_t k = 1; k < 4; ++k) {
            if (choice)
                lanes_take_larger(&best, &which, value[k], k);
            else
                best = lanes_at_least(best, value[k]);
        }
        lanes_store(out + x * RCN_LANES, best);
        if (choice) lane_numbers_store(choice + x * RCN_LANES, which);
    }
}

/* One row of outputs. */
RCN_DISPATCH static void pool_row(int64_t chunk, const pool_job *job) {
    const rcn__pool *pool = job->pool;
    const int64_t *size = pool->in.size, *out_size = pool->out_size;
    const int64_t plane = chunk / (out_size[0] * out_size[1]);
    const int64_t z = chunk / out_size[1] % out_size[0], y = chunk % out_size[1];
    const int64_t window = job->in.window, out_window = job->out_window;
    const int64_t rows = window ? window : size[0] * size[1];
    const int64_t out_rows = out_window ? out_window : out_size[0] * out_size[1];
    const float *in = job->in.data + plane * rows * size[2] * RCN_LANES;
    const int64_t row = (plane * out_rows + z * out_size[1] + rcn__row_place(y, out_window)) *
                        out_size[2] * RCN_LANES;
    const int normed = job->in.scale != NULL, relu = job->in.relu;
    lanes scale = lanes_zero(), shift = lanes_zero();
    int64_t z0, z1, y0, y1;
    if (normed) {
        scale = lanes_load(job->in.scale + plane * RCN_LANES);
        shift = lanes_load(job->in.shift + plane * RCN_LANES);
    }
    if (is_pairs(pool)) {
        const float *upper =
            in + (z * size[1] + rcn__row_place(2 * y, window)) * size[2] * RCN_LANES;
        pool_pairs(job->out + row, job->choice ? job->choice + row : NULL, upper,
                   upper + size[2] * RCN_LANES, out_size[2], &job->in, scale, shift);
        return;
    }
    taps_of(&z0, &z1, pool, 0, z);
    taps_of(&y0, &y1, pool, 1, y);
    for (int64_t x = 0; x < out_size[2]; ++x) {
        int64_t x0, x1;
        lanes best = lanes_all(-INFINITY);
        lane_numbers which = lane_numbers_zero();
        taps_of(&x0, &x1, pool, 2, x);
        for (int64_t tz = z0; tz < z1; ++tz)
            for (int64_t ty = y0; ty < y1; ++ty) {
                const int64_t iz = z * pool->stride[0] - pool->pad[0] + tz;
                const int64_t iy = y * pool->stride[1] - pool->pad[1] + ty;
                const int64_t ix = x * pool->stride[2] - pool->pad[2];
                const float *line =
                    in + ((iz * size[1] + rcn__row_place(iy, window)) * size[2] + ix) * RCN_LANES;
                for (int64_t tx = x0; tx < x1; ++tx) {
                    lanes value = lanes_load(line + tx * RCN_LANES);
                    if (normed) value = lanes_multiply_add(value, scale, shift);
                    if (relu) value = lanes_where_positive(value, value);
                    const int32_t tap =
                        (int32_t)((tz * pool->kernel[1] + ty) * pool->kernel[2] + tx);
                    lanes_take_larger(&best, &which, value, tap);
                }
            }
        lanes_store(job->out + row + x * RCN_LANES, best);
        if (job->choice) lane_numbers_store(job->choice + row + x * RCN_LANES, which);
    }
}

static void pool_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    pool_row(chunk, payload);
}

void rcn__pool_forward(float *out, uint8_t *choice, const rcn__pool *pool, rcn_context *ctx,
                       const rcn__source *in) {
    pool_job job = {.pool = pool, .in = *in, .out = out, .choice = choice};
    rcn__for_all(ctx, planes_of(&pool->in) * pool->out_size[0] * pool->out_size[1], pool_body,
                 &job);
}

void rcn__pool_rows(float *out, int64_t window, const rcn__pool *pool, const rcn__source *in,
                    const rcn__rows *rows) {
    const pool_job job = {.pool = pool, .in = *in, .out_window = window, .out = out};
    const int64_t planes = planes_of(&pool->in) / pool->in.batch;
    for (int64_t p = 0; p < planes; ++p)
        for (int64_t y = rows->first; y < rows->end; ++y) pool_row(p * pool->out_size[1] + y, &job);
}

/* Windows that tile the image: each input value belongs to one, so every one is written once. */
RCN_DISPATCH static void pool_back_tiles(int64_t chunk, const pool_job *job) {
    const rcn__pool *pool = job->pool;
    const int64_t *size = pool->in.size, *out_size = pool->out_size, *kernel = pool->kernel;
    const int64_t plane = chunk / (out_size[0] * out_size[1]);
    const int64_t z = chunk / out_size[1] % out_size[0], y = chunk % out_size[1];
    float *din = job->din + plane * size[0] * size[1] * size[2] * RCN_LANES;
    const int64_t row = chunk * out_size[2] * RCN_LANES;
    for (int64_t x = 0; x < out_size[2]; ++x) {
        const lanes g = lanes_load(job->dout + row + x * RCN_LANES);
        const lane_numbers which = lane_numbers_load(job->chosen + row + x * RCN_LANES);
        for (int64_t tz = 0; tz < kernel[0]; ++tz)
            for (int64_t ty = 0; ty < kernel[1]; ++ty)
                for (int64_t tx = 0; tx < kernel[2]; ++tx) {
                    const int32_t tap = (int32_t)((tz * kernel[1] + ty) * kernel[2] + tx);
                    float *to =
                        din + (((z * kernel[0] + tz) * size[1] + y * kernel[1] + ty) * size[2] +
                               x * kernel[2] + tx) *
                                  RCN_LANES;
                    lanes part = lanes_where_number(g, which, tap);
                    if (job->accumulate) part = lanes_add(part, lanes_load(to));
                    lanes_store(to, part);
                }
    }
}

/* Windows that overlap: a plane at a time. */
static void pool_back_plane(int64_t plane, const pool_job *job) {
    const rcn__pool *pool = job->pool;
    const int64_t *size = pool->in.size, *out_size = pool->out_size;
    const int64_t voxels = size[0] * size[1] * size[2];
    float *din = job->din + plane * voxels * RCN_LANES;
    int64_t i = plane * out_size[0] * out_size[1] * out_size[2] * RCN_LANES;
    if (!job->accumulate) memset(din, 0, (size_t)(voxels * RCN_LANES) * sizeof *din);
    for (int64_t z = 0; z < out_size[0]; ++z)
        for (int64_t y = 0; y < out_size[1]; ++y)
            for (int64_t x = 0; x < out_size[2]; ++x)
                for (int l = 0; l < RCN_LANES; ++l, ++i) {
                    const int64_t tap = job->chosen[i];
                    const int64_t tx = tap % pool->kernel[2];
                    const int64_t ty = tap / pool->kernel[2] % pool->kernel[1];
                    const int64_t tz = tap / (pool->kernel[2] * pool->kernel[1]);
                    const int64_t iz = z * pool->stride[0] - pool->pad[0] + tz;
                    const int64_t iy = y * pool->stride[1] - pool->pad[1] + ty;
                    const int64_t ix = x * pool->stride[2] - pool->pad[2] + tx;
                    din[((iz * size[1] + iy) * size[2] + ix) * RCN_LANES + l] += job->dout[i];
                }
}

static void pool_back_tiles_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    pool_back_tiles(chunk, payload);
}
static void pool_back_plane_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    pool_back_plane(chunk, payload);
}

void rcn__pool_backward(float *din, int accumulate, const rcn__pool *pool, rcn_context *ctx,
                        const float *dout, const uint8_t *choice) {
    pool_job job = {
        .pool = pool, .dout = dout, .din = din, .chosen = choice, .accumulate = accumulate};
    int tiles = 1;
    for (int d = 0; d < 3; ++d)
        tiles &= pool->kernel[d] == pool->stride[d] && pool->pad[d] == 0 &&
                 pool->in.size[d] == pool->out_size[d] * pool->kernel[d];
    if (tiles)
        rcn__for_all(ctx, planes_of(&pool->in) * pool->out_size[0] * pool->out_size[1],
                     pool_back_tiles_body, &job);
    else
        rcn__for_all(ctx, planes_of(&pool->in), pool_back_plane_body, &job);
}

/* ---- upsampling: transposed convolutions ----------------------------------------------------- */

typedef struct shuffle_job {
    const rcn__extent *extent;
    const int64_t *stride;
    const float *in;
    float *out;
    int backward; /* weights: from (taps, out, in) */
    int64_t in_channels, out_channels, taps;
} shuffle_job;

/* One row of the large image and where its tap's rows are in the small one. */
RCN_DISPATCH static void shuffle_row(int64_t chunk, const shuffle_job *job) {
    const rcn__extent *extent = job->extent;
    const int64_t *size = extent->size, *stride = job->stride;
    const int64_t blocks = extent->channels / RCN_LANES;
    const int64_t y = chunk % size[1], z = chunk / size[1] % size[0];
    const int64_t plane = chunk / (size[1] * size[0]), image = plane / blocks;
    const int64_t block = plane % blocks;
    const int64_t small[3] = {size[0] / stride[0], size[1] / stride[1], size[2] / stride[2]};
    const int64_t taps = stride[0] * stride[1] * stride[2];
    for (int64_t tx = 0; tx < stride[2]; ++tx) {
        const int64_t tap = ((z % stride[0]) * stride[1] + y % stride[1]) * stride[2] + tx;
        const int64_t small_plane = (image * taps + tap) * blocks + block;
        const int64_t line =
            ((small_plane * small[0] + z / stride[0]) * small[1] + y / stride[1]) * small[2];
        const int64_t row = chunk * size[2] + tx;
        for (int64_t x = 0; x < small[2]; ++x)
            lanes_store(job->out + (line + x) * RCN_LANES,
                        lanes_load(job->in + (row + x * stride[2]) * RCN_LANES));
    }
}

static void shuffle_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    shuffle_row(chunk, payload);
}

void rcn__shuffle_backward(float *din, float *dbias, const rcn__extent *extent, rcn_context *ctx,
                           const int64_t stride[3], const float *dout, double *partial) {
    shuffle_job job = {.extent = extent, .stride = stride, .in = dout, .out = din};
    const int64_t voxels = rcn__extent_voxels(extent);
    rcn__norm sums = {.extent = *extent, .partial = partial};
    norm_job sum_job = {.norm = &sums, .x = dout};
    rcn__for_all(ctx, range_count(extent), sum_body, &sum_job);
    for (int64_t k = 0; k < extent->channels; ++k) {
        double total = 0;
        for (int64_t n = 0; n < extent->batch; ++n) {
            const int64_t plane = n * (extent->channels / RCN_LANES) + k / RCN_LANES;
            double parts[2];
            gather(parts, &sums, n, k);
            total += parts[0] +
                     (double)voxels * (double)dout[plane * voxels * RCN_LANES + k % RCN_LANES];
        }
        dbias[k] = (float)total;
    }
    rcn__for_all(ctx, planes_of(extent) * extent->size[0] * extent->size[1], shuffle_body, &job);
}

static void shuffle_weights_row(int64_t row, int thread, void *payload) {
    (void)thread;
    const shuffle_job *job = payload;
    const int64_t tap = row / job->out_channels, out = row % job->out_channels;
    for (int64_t in = 0; in < job->in_channels; ++in) {
        const int64_t torch = (in * job->out_channels + out) * job->taps + tap;
        if (job->backward)
            job->out[torch] = job->in[row * job->in_channels + in];
        else
            job->out[row * job->in_channels + in] = job->in[torch];
    }
}

static void shuffle_weights(float *to, rcn_context *ctx, const float *from, int64_t in, int64_t out,
                            int64_t taps, int backward) {
    shuffle_job job = {.in = from,
                       .out = to,
                       .in_channels = in,
                       .out_channels = out,
                       .taps = taps,
                       .backward = backward};
    rcn__for_all(ctx, taps * out, shuffle_weights_row, &job);
}

void rcn__shuffle_weights(float *to, rcn_context *ctx, const float *from, int64_t in, int64_t out,
                          int64_t taps) {
    shuffle_weights(to, ctx, from, in, out, taps, 0);
}

void rcn__shuffle_weights_back(float *to, rcn_context *ctx, const float *from, int64_t in,
                               int64_t out, int64_t taps) {
    shuffle_weights(to, ctx, from, in, out, taps, 1);
}

static void pad_weights_row(int64_t row, int thread, void *payload) {
    (void)thread;
    const shuffle_job *job = payload;
    float *to = job->out + row * job->out_channels;
    const int64_t count =
        job->in_channels < job->out_channels ? job->in_channels : job->out_channels;
    memcpy(to, job->in + row * job->in_channels, (size_t)count * sizeof *to);
    for (int64_t i = count; i < job->out_channels; ++i) to[i] = 0.0f;
}

void rcn__pad_weights(float *to, rcn_context *ctx, const float *from, int64_t rows, int64_t to_row,
                      int64_t from_row) {
    shuffle_job job = {.in = from, .out = to, .in_channels = from_row, .out_channels = to_row};
    rcn__for_all(ctx, rows, pad_weights_row, &job);
}

/* ---- upsampling: nearest and bilinear -------------------------------------------------------- */

typedef struct up_job {
    const rcn__extent *extent;
    const float *in;
    float *out;
    int64_t factor;
    int accumulate;
    const int64_t *size;
} up_job;

RCN_DISPATCH static void nearest_row(int64_t chunk, const up_job *job) {
    const int64_t *size = job->extent->size;
    const int64_t plane = chunk / size[1], y = chunk % size[1];
    const float *in = job->in + (plane * (size[1] / 2) + y / 2) * (size[2] / 2) * RCN_LANES;
    float *out = job->out + chunk * size[2] * RCN_LANES;
    for (int64_t x = 0; x < size[2]; ++x)
        lanes_store(out + x * RCN_LANES,
                    lanes_add(lanes_load(out + x * RCN_LANES), lanes_load(in + x / 2 * RCN_LANES)));
}

RCN_DISPATCH static void nearest_back_row(int64_t chunk, const up_job *job) {
    const int64_t *size = job->extent->size;
    const int64_t rows = size[1] / 2, width = size[2] / 2;
    const int64_t plane = chunk / rows, y = chunk % rows;
    const float *upper = job->in + (plane * size[1] + 2 * y) * size[2] * RCN_LANES;
    const float *lower = upper + size[2] * RCN_LANES;
    float *out = job->out + chunk * width * RCN_LANES;
    for (int64_t x = 0; x < width; ++x) {
        lanes sum = lanes_load(upper + 2 * x * RCN_LANES);
        sum = lanes_add(sum, lanes_load(upper + (2 * x + 1) * RCN_LANES));
        sum = lanes_add(sum, lanes_load(lower + 2 * x * RCN_LANES));
        sum = lanes_add(sum, lanes_load(lower + (2 * x + 1) * RCN_LANES));
        if (job->accumulate) sum = lanes_add(sum, lanes_load(out + x * RCN_LANES));
        lanes_store(out + x * RCN_LANES, sum);
    }
}

static void nearest_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    nearest_row(chunk, payload);
}
static void nearest_back_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    nearest_back_row(chunk, payload);
}

void rcn__nearest_add(float *sum, const rcn__extent *extent, rcn_context *ctx, const float *small) {
    up_job job = {.extent = extent, .in = small, .out = sum};
    rcn__for_all(ctx, planes_of(extent) * extent->size[1], nearest_body, &job);
}

void rcn__nearest_add_backward(float *dsmall, int accumulate, const rcn__extent *extent,
                               rcn_context *ctx, const float *dsum) {
    up_job job = {.extent = extent, .in = dsum, .out = dsmall, .accumulate = accumulate};
    rcn__for_all(ctx, planes_of(extent) * (extent->size[1] / 2), nearest_back_body, &job);
}

/* Where output position `at` reads on an axis: lower neighbor, upper neighbor, weight of the
 * upper. Computed in float, as PyTorch does. */
typedef struct tap {
    int64_t low, high;
    float weight;
} tap;

static tap tap_of(int64_t at, int64_t in, int64_t out) {
    const float scale = out > 1 ? (float)(in - 1) / (float)(out - 1) : 0.0f;
    const float position = scale * (float)at;
    tap t;
    t.low = (int64_t)position;
    if (t.low > in - 1) t.low = in - 1;
    t.high = t.low + (t.low < in - 1);
    t.weight = position - (float)t.low;
    return t;
}

RCN_INLINE lanes between(lanes low, lanes high, float weight) {
    return lanes_add(lanes_scale(1.0f - weight, low), lanes_scale(weight, high));
}

RCN_DISPATCH static void bilinear_row(int64_t chunk, const up_job *job) {
    const int64_t *size = job->extent->size;
    const int64_t height = size[1] * job->factor, width = size[2] * job->factor;
    const int64_t plane = chunk / height;
    const tap y = tap_of(chunk % height, size[1], height);
    const float *upper = job->in + (plane * size[1] + y.low) * size[2] * RCN_LANES;
    const float *lower = job->in + (plane * size[1] + y.high) * size[2] * RCN_LANES;
    float *out = job->out + chunk * width * RCN_LANES;
    for (int64_t i = 0; i < width; ++i) {
        const tap x = tap_of(i, size[2], width);
        const int64_t low = x.low * RCN_LANES, high = x.high * RCN_LANES;
        const lanes above = between(lanes_load(upper + low), lanes_load(upper + high), x.weight);
        const lanes below = between(lanes_load(lower + low), lanes_load(lower + high), x.weight);
        lanes_store(out + i * RCN_LANES, between(above, below, y.weight));
    }
}

/* Adds v * weight to what is at a place. */
RCN_INLINE void add_at(float *place, lanes v, float weight) {
    lanes_store(place, lanes_add(lanes_load(place), lanes_scale(weight, v)));
}

/* Adds a gradient into the four inputs it was made from. */
RCN_INLINE void scatter(float *plane, tap y, tap x, int64_t width, lanes g) {
    float *upper = plane + y.low * width * RCN_LANES, *lower = plane + y.high * width * RCN_LANES;
    const int64_t low = x.low * RCN_LANES, high = x.high * RCN_LANES;
    const lanes above = lanes_scale(1.0f - y.weight, g), below = lanes_scale(y.weight, g);
    add_at(upper + low, above, 1.0f - x.weight);
    add_at(upper + high, above, x.weight);
    add_at(lower + low, below, 1.0f - x.weight);
    add_at(lower + high, below, x.weight);
}

RCN_DISPATCH static void bilinear_back_plane(int64_t plane, const up_job *job) {
    const int64_t *size = job->extent->size;
    const int64_t height = size[1] * job->factor, width = size[2] * job->factor;
    float *out = job->out + plane * size[1] * size[2] * RCN_LANES;
    const float *in = job->in + plane * height * width * RCN_LANES;
    if (!job->accumulate) memset(out, 0, (size_t)(size[1] * size[2] * RCN_LANES) * sizeof *out);
    for (int64_t j = 0; j < height; ++j) {
        const tap y = tap_of(j, size[1], height);
        for (int64_t i = 0; i < width; ++i) {
            const tap x = tap_of(i, size[2], width);
            scatter(out, y, x, size[2], lanes_load(in + (j * width + i) * RCN_LANES));
        }
    }
}

static void bilinear_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    bilinear_row(chunk, payload);
}
static void bilinear_back_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    bilinear_back_plane(chunk, payload);
}

void rcn__bilinear(float *out, const rcn__extent *extent, rcn_context *ctx, int64_t factor,
                   const float *in) {
    up_job job = {.extent = extent, .in = in, .out = out, .factor = factor};
    rcn__for_all(ctx, planes_of(extent) * extent->size[1] * factor, bilinear_body, &job);
}

void rcn__bilinear_backward(float *din, int accumulate, const rcn__extent *extent, rcn_context *ctx,
                            int64_t factor, const float *dout) {
    up_job job = {
        .extent = extent, .in = dout, .out = din, .factor = factor, .accumulate = accumulate};
    rcn__for_all(ctx, planes_of(extent), bilinear_back_body, &job);
}

/* ---- sums ------------------------------------------------------------------------------------ */

enum { MAX_MERGED = 4 };

typedef struct sum_job {
    float *sum;
    const float *others[MAX_MERGED];
    int count;
    int64_t voxels;
    const float *factors;
} sum_job;

RCN_DISPATCH static void merge_chunk(int64_t chunk, const sum_job *job) {
    const range r = range_of(chunk, job->voxels);
    const int64_t end = (r.plane * job->voxels + r.end) * RCN_LANES;
    lanes factor = lanes_all(1.0f);
    if (job->factors) factor = lanes_load(job->factors + r.plane * RCN_LANES);
    for (int64_t i = (r.plane * job->voxels + r.first) * RCN_LANES; i < end; i += RCN_LANES) {
        lanes sum = lanes_load(job->sum + i);
        for (int k = 0; k < job->count; ++k) sum = lanes_add(sum, lanes_load(job->others[k] + i));
        lanes_store(job->sum + i, lanes_multiply(sum, factor));
    }
}

static void merge_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    merge_chunk(chunk, payload);
}

void rcn__merge(float *sum, const rcn__extent *extent, rcn_context *ctx, const float *const *others,
                int count, const float *factors) {
    sum_job job = {.sum = sum, .count = count, .factors = factors};
    job.voxels = rcn__extent_voxels(extent);
    for (int k = 0; k < count; ++k) job.others[k] = others[k];
    rcn__for_all(ctx, range_count(extent), merge_body, &job);
}

/* ---- the two ends ---------------------------------------------------------------------------- */

typedef struct end_job {
    const float *in;
    float *out;
    const rcn__extent *extent;
    const int64_t *size;
    int64_t factor, stored;
    rcn__layout layout;
    int64_t window; /* of the input of the output: rcn__row_place() */
} end_job;

/* One row of one image, all channels. */
static void input_row(int64_t chunk, int thread, void *payload) {
    (void)thread;
    const end_job *job = payload;
    const int64_t *size = job->extent->size, *padded = job->size;
    const int64_t channels = job->extent->channels, stored = job->stored;
    const int64_t y = chunk % padded[1], z = chunk / padded[1] % padded[0];
    const int64_t image = chunk / (padded[1] * padded[0]);
    const int64_t from_y = y < size[1] ? y : size[1] - 1, from_z = z < size[0] ? z : size[0] - 1;
    const int64_t lines = padded[0] * padded[1], line = z * padded[1] + y;
    const int64_t step = job->layout == RCN_BLOCKED ? RCN_LANES : 1;
    for (int64_t k = 0; k < stored; ++k) {
        float *out = job->out +
                     ((image * stored + k - k % step) * lines + line * step) * padded[2] + k % step;
        if (k >= channels) {
            for (int64_t x = 0; x < padded[2]; ++x) out[x * step] = 0.0f;
            continue;
        }
        const float *in =
            job->in + (((image * channels + k) * size[0] + from_z) * size[1] + from_y) * size[2];
        for (int64_t x = 0; x < padded[2]; ++x) out[x * step] = in[x < size[2] ? x : size[2] - 1];
    }
}

void rcn__input(float *out, rcn_context *ctx, const float *in, const rcn__extent *extent,
                int64_t stored, const int64_t padded[3], rcn__layout layout) {
    end_job job = {
        .in = in, .out = out, .extent = extent, .size = padded, .stored = stored, .layout = layout};
    rcn__for_all(ctx, extent->batch * padded[0] * padded[1], input_row, &job);
}

enum { TILE = 64 };

/* One row of the output: up to eight channels at a time, through a tile that stays in the cache. */
RCN_DISPATCH static void output_row(int64_t chunk, const end_job *job) {
    const int64_t *in_size = job->extent->size, *size = job->size;
    const int64_t channels = job->extent->channels;
    const int64_t blocks = (channels + RCN_LANES - 1) / RCN_LANES;
    const int64_t y = chunk % size[1], z = chunk / size[1] % size[0];
    const int64_t plane = chunk / (size[1] * size[0]), image = plane / blocks;
    const int64_t first = plane % blocks * RCN_LANES;
    const int64_t count = channels - first < RCN_LANES ? channels - first : RCN_LANES;
    const int64_t rows = job->window ? job->window : in_size[1];
    const float *in = job->in + (plane * in_size[0] + z) * rows * in_size[2] * RCN_LANES;
    const tap ty = tap_of(y, in_size[1], in_size[1] * job->factor);
    const float *upper = in + ty.low * in_size[2] * RCN_LANES;
    const float *lower = in + ty.high * in_size[2] * RCN_LANES;
    float *out = job->out + (((image * channels + first) * size[0] + z) * size[1] + y) * size[2];
    const int64_t step = size[0] * size[1] * size[2];
    _Alignas(64) float tile[TILE * RCN_LANES];
    for (int64_t start = 0; start < size[2]; start += TILE) {
        const int64_t width = size[2] - start < TILE ? size[2] - start : TILE;
        const float *source = tile;
        if (job->factor == 1) {
            source = in + (rcn__row_place(y, job->window) * in_size[2] + start) * RCN_LANES;
        } else {
            for (int64_t i = 0; i < width; ++i) {
                const tap x = tap_of(start + i, in_size[2], in_size[2] * job->factor);
                const int64_t low = x.low * RCN_LANES, high = x.high * RCN_LANES;
                const lanes above =
                    between(lanes_load(upper + low), lanes_load(upper + high), x.weight);
                const lanes below =
                    between(lanes_load(lower + low), lanes_load(lower + high), x.weight);
                lanes_store(tile + i * RCN_LANES, between(above, below, ty.weight));
            }
        }
        for (int64_t k = 0; k < count; ++k)
            for (int64_t i = 0; i < width; ++i)
                out[k * step + start + i] = source[i * RCN_LANES + k];
    }
}

static void output_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    output_row(chunk, payload);
}

void rcn__output(float *out, rcn_context *ctx, const float *in, const rcn__extent *extent,
                 int64_t factor, const int64_t size[3]) {
    end_job job = {.in = in, .out = out, .extent = extent, .size = size, .factor = factor};
    rcn__for_all(ctx, planes_of(extent) * size[0] * size[1], output_body, &job);
}

void rcn__output_rows(float *out, const float *in, int64_t window, const rcn__extent *extent,
                      const int64_t size[3], const rcn__rows *rows) {
    const end_job job = {
        .in = in, .out = out, .extent = extent, .size = size, .factor = 1, .window = window};
    const int64_t planes = planes_of(extent) / extent->batch;
    for (int64_t p = 0; p < planes; ++p)
        for (int64_t y = rows->first; y < rows->end; ++y) output_row(p * size[1] + y, &job);
}

/* One z plane of one image and block of channels. */
RCN_DISPATCH static void output_back_plane(int64_t chunk, const end_job *job) {
    const int64_t *in_size = job->extent->size, *size = job->size;
    const int64_t channels = job->extent->channels;
    const int64_t blocks = (channels + RCN_LANES - 1) / RCN_LANES;
    const int64_t z = chunk % in_size[0], plane = chunk / in_size[0], image = plane / blocks;
    const int64_t first = plane % blocks * RCN_LANES;
    const int64_t count = channels - first < RCN_LANES ? channels - first : RCN_LANES;
    const int64_t voxels = in_size[1] * in_size[2];
    const int64_t step = size[0] * size[1] * size[2];
    float *din = job->out + chunk * voxels * RCN_LANES;
    _Alignas(64) float tile[TILE * RCN_LANES] = {0};
    memset(din, 0, (size_t)(voxels * RCN_LANES) * sizeof *din);
    if (z >= size[0]) return;
    for (int64_t y = 0; y < size[1]; ++y) {
        const float *in =
            job->in + (((image * channels + first) * size[0] + z) * size[1] + y) * size[2];
        const tap ty = tap_of(y, in_size[1], in_size[1] * job->factor);
        for (int64_t start = 0; start < size[2]; start += TILE) {
            const int64_t width = size[2] - start < TILE ? size[2] - start : TILE;
            float *to = job->factor == 1 ? din + (y * in_size[2] + start) * RCN_LANES : tile;
            for (int64_t k = 0; k < count; ++k)
                for (int64_t i = 0; i < width; ++i)
                    to[i * RCN_LANES + k] = in[k * step + start + i];
            if (job->factor == 1) continue;
            for (int64_t i = 0; i < width; ++i) {
                const tap x = tap_of(start + i, in_size[2], in_size[2] * job->factor);
                scatter(din, ty, x, in_size[2], lanes_load(tile + i * RCN_LANES));
            }
        }
    }
}

static void output_back_body(int64_t chunk, int thread, void *payload) {
    (void)thread;
    output_back_plane(chunk, payload);
}

void rcn__output_backward(float *din, rcn_context *ctx, const float *dout,
                          const rcn__extent *extent, int64_t factor, const int64_t size[3]) {
    end_job job = {.in = dout, .out = din, .extent = extent, .size = size, .factor = factor};
    rcn__for_all(ctx, planes_of(extent) * extent->size[0], output_back_body, &job);
}
