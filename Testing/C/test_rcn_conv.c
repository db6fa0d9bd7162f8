// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "rcn_test.h"

#include "rcn_conv.h"
#include "rcn_engine.h"
#include "rcn_test_fill.h"

/* Both ways of convolving, for every instruction set of the machine, against the definition in
 * double. Tensors of the definition are planar (B, C, Z, Y, X). */

static void set_environment(const char *name, const char *value) {
#if defined(_WIN32)
    _putenv_s(name, value);
#else
    setenv(name, value, 1);
#endif
}

static void *aligned(size_t bytes) { return rcn__allocate_aligned(bytes + 64); }

static int64_t voxels_of(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

static void out_size_of(int64_t size[3], const rcn__conv_shape *s) {
    for (int d = 0; d < 3; ++d)
        size[d] = (s->size[d] + 2 * s->pad[d] - s->kernel[d]) / s->stride[d] + 1;
}

static int64_t stored_of(int64_t channels) {
    return (channels + RCN_LANES - 1) / RCN_LANES * RCN_LANES;
}

/* Blocked, channels filled up with zeros. */
static float *block_up(const float *planar, int64_t batch, int64_t channels, int64_t voxels) {
    const int64_t stored = stored_of(channels);
    float *blocked = aligned((size_t)(batch * stored * voxels) * sizeof *blocked);
    for (int64_t n = 0; n < batch; ++n)
        for (int64_t c = 0; c < stored; ++c)
            for (int64_t v = 0; v < voxels; ++v)
                blocked[((n * stored / RCN_LANES + c / RCN_LANES) * voxels + v) * RCN_LANES +
                        c % RCN_LANES] =
                    c < channels ? planar[(n * channels + c) * voxels + v] : 0.0f;
    return blocked;
}

static float at_blocked(const float *blocked, int64_t n, int64_t c, int64_t v, int64_t channels,
                        int64_t voxels) {
    const int64_t blocks = stored_of(channels) / RCN_LANES;
    return blocked[((n * blocks + c / RCN_LANES) * voxels + v) * RCN_LANES + c % RCN_LANES];
}

/* One tap of the convolution between an output voxel and an input voxel, over all that exist:
 * what = 0: out += w in; 1: din += w dout; 2: dw += in dout. */
static void define(double *result, const rcn__conv_shape *s, int what, const float *in,
                   const float *weights, const float *dout) {
    int64_t size[3];
    out_size_of(size, s);
    const int64_t ins = voxels_of(s->size), outs = voxels_of(size), channels = s->in[0] + s->in[1];
    const int64_t *k = s->kernel, taps = k[0] * k[1] * k[2];
    for (int64_t b = 0; b < s->batch; ++b)
        for (int64_t o = 0; o < s->out; ++o)
            for (int64_t i = 0; i < channels; ++i)
                for (int64_t tap = 0; tap < taps; ++tap) {
                    const int64_t w = (o * channels + i) * taps + tap;
                    for (int64_t v = 0; v < outs; ++v) {
                        const int64_t x = v % size[2] * s->stride[2] + tap % k[2] - s->pad[2];
                        const int64_t y =
                            v / size[2] % size[1] * s->stride[1] + tap / k[2] % k[1] - s->pad[1];
                        const int64_t z =
                            v / size[2] / size[1] * s->stride[0] + tap / k[2] / k[1] - s->pad[0];
                        if (x < 0 || y < 0 || z < 0 || x >= s->size[2] || y >= s->size[1] ||
                            z >= s->size[0])
                            continue;
                        const int64_t to = (b * s->out + o) * outs + v;
                        const int64_t from =
                            (b * channels + i) * ins + (z * s->size[1] + y) * s->size[2] + x;
                        if (what == 0)
                            result[to] += (double)weights[w] * (double)in[from];
                        else if (what == 1)
                            result[from] += (double)weights[w] * (double)dout[to];
                        else
                            result[w] += (double)in[from] * (double)dout[to];
                    }
                }
}

typedef struct options {
    int bias, add, relu, norm;
} options;

static void expect_error(const char *what, double difference, double size, double bound) {
    const double error = sqrt(difference / size);
    if (!(error < bound)) {
        ++rcn_test_failures;
        fprintf(stderr, "%s: relative error %g\n", what, error);
    }
}

/* Channels [first, first + channels) of the definition against a blocked tensor. */
static void check_blocked(const char *what, const float *blocked, const double *defined,
                          int64_t batch, int64_t channels, int64_t first, int64_t all,
                          int64_t voxels) {
    double difference = 0, size = 0;
    for (int64_t n = 0; n < batch; ++n)
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t v = 0; v < voxels; ++v) {
                const double wanted = defined[(n * all + first + c) * voxels + v];
                const double found = (double)at_blocked(blocked, n, c, v, channels, voxels);
                difference += (found - wanted) * (found - wanted);
                size += wanted * wanted;
            }
    expect_error(what, difference, size, 3e-6);
}

/* Everything about one shape that its passes are called with. */
typedef struct trial {
    rcn__conv_shape shape;
    options with;
    int64_t ins, outs, channels, taps, weight_count;  /* voxels, voxels, channels of both inputs */
    float *in, *read, *dout, *weights, *bias, *there; /* planar; read: as the norm makes it */
    float *scale, *shift;
    float *blocked_in[2], *blocked_dout, *out;
    rcn__conv *conv;
    void *packed;
    rcn__scratch scratch;
    rcn_context *ctx;
} trial;

static float *filled(const char *name, int64_t count, double scale, double offset) {
    float *values = aligned((size_t)count * sizeof *values);
    fill_values(values, name, count, scale, offset);
    return values;
}

/* The part of one input: planar (B, channels of that input, voxels). */
static float *part_of(const trial *t, int k) {
    const int64_t first = k ? t->shape.in[0] : 0, count = t->shape.in[k] * t->ins;
    float *part = malloc((size_t)(t->shape.batch * count) * sizeof *part);
    for (int64_t n = 0; n < t->shape.batch; ++n)
        memcpy(part + n * count, t->in + (n * t->channels + first) * t->ins,
               (size_t)count * sizeof *part);
    return part;
}

static void start_trial(trial *t, rcn__conv_shape shape, options with, int threads) {
    int64_t size[3];
    memset(t, 0, sizeof *t);
    t->shape = shape;
    t->with = with;
    t->ctx = make_context(threads);
    out_size_of(size, &shape);
    t->ins = voxels_of(shape.size);
    t->outs = voxels_of(size);
    t->channels = shape.in[0] + shape.in[1];
    t->taps = voxels_of(shape.kernel);
    t->weight_count = shape.out * t->channels * t->taps;
    const int64_t in_count = shape.batch * t->channels * t->ins;
    t->in = filled("in", in_count, 1, 0.2);
    t->read = filled("in", in_count, 1, 0.2);
    t->dout = filled("dout", shape.batch * shape.out * t->outs, 1, 0.1);
    t->weights = filled("weights", t->weight_count, 1, 0);
    t->bias = filled("bias", stored_of(shape.out), 1, 0);
    t->there = filled("there", shape.batch * shape.out * t->outs, 1, 0);
    t->scale = filled("scale", shape.batch * t->channels, 1, 1);
    t->shift = filled("shift", shape.batch * t->channels, 1, 0);
    for (int64_t i = 0; with.norm && i < in_count; ++i) {
        const int64_t n = i / t->ins / t->channels, c = i / t->ins % t->channels;
        const int second = c >= shape.in[0];
        const int64_t at = second ? n * shape.in[1] + c - shape.in[0] : n * shape.in[0] + c;
        const float value = t->in[i] * t->scale[at] + t->shift[at];
        t->read[i] = value > 0 ? value : 0;
    }
    for (int k = 0; k < 2 && shape.in[k]; ++k) {
        float *part = part_of(t, k);
        if (shape.layout == RCN_PLANAR) {
            t->blocked_in[k] = aligned((size_t)(shape.batch * shape.in[k] * t->ins) * sizeof *part);
            memcpy(t->blocked_in[k], part,
                   (size_t)(shape.batch * shape.in[k] * t->ins) * sizeof *part);
        } else {
            t->blocked_in[k] = block_up(part, shape.batch, shape.in[k], t->ins);
        }
        free(part);
    }
    t->blocked_dout = block_up(t->dout, shape.batch, shape.out, t->outs);
    t->out = block_up(t->there, shape.batch, shape.out, t->outs);
    CHECK_STATUS(rcn__conv_create(&t->conv, t->ctx, &shape), RCN_OK);
    const rcn__scratch_bytes bytes = rcn__conv_scratch_bytes(t->conv);
    t->scratch.shared = aligned(bytes.shared);
    t->scratch.own_bytes = (bytes.own + 63) / 64 * 64;
    t->scratch.own = aligned(t->scratch.own_bytes * (size_t)threads);
    t->packed = aligned(rcn__conv_packed_bytes(t->conv));
    /* NaN: nothing unset may be used */
    memset(t->scratch.shared, 0xff, bytes.shared);
    memset(t->scratch.own, 0xff, t->scratch.own_bytes * (size_t)threads);
    memset(t->packed, 0xff, rcn__conv_packed_bytes(t->conv));
}

static void end_trial(trial *t) {
    rcn__conv_destroy(t->conv, t->ctx);
    CHECK(rcn_context_bytes(t->ctx) == 0);
    rcn_context_destroy(t->ctx);
    void *all[] = {t->in,           t->read,  t->dout,   t->weights,        t->bias,
                   t->there,        t->scale, t->shift,  t->blocked_in[0],  t->blocked_in[1],
                   t->blocked_dout, t->out,   t->packed, t->scratch.shared, t->scratch.own};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) rcn__release_aligned(all[i]);
}

static rcn__source source_of(const trial *t, int k) {
    rcn__source from = {.data = t->blocked_in[k]};
    if (t->with.norm) {
        from.scale = t->scale;
        from.shift = t->shift;
        from.relu = 1;
    }
    return from;
}

static void check_forward(trial *t) {
    const rcn__conv_shape *s = &t->shape;
    const int64_t count = s->batch * s->out * t->outs;
    double *defined = calloc((size_t)count, sizeof *defined);
    const rcn__source in[2] = {source_of(t, 0), source_of(t, 1)};
    const rcn__ending ending = {.bias = t->with.bias ? t->bias : NULL,
                                .residual = {t->with.add ? t->out : NULL},
                                .relu = t->with.relu};
    const float *scale = t->with.relu ? t->bias : NULL; /* any numbers */
    define(defined, s, 0, t->read, t->weights, NULL);
    for (int64_t i = 0; i < count; ++i) {
        if (scale) defined[i] *= (double)scale[i / t->outs % s->out];
        if (t->with.bias) defined[i] += (double)t->bias[i / t->outs % s->out];
        if (t->with.add) defined[i] += (double)t->there[i];
        if (t->with.relu && defined[i] < 0) defined[i] = 0;
    }
    rcn__conv_pack(t->packed, t->conv, t->ctx, t->weights, scale);
    rcn__conv_forward(t->out, t->conv, t->ctx, in, t->packed, &ending, &t->scratch);
    check_blocked("forward", t->out, defined, s->batch, s->out, 0, s->out, t->outs);
    free(defined);
}

/* The gradients of the inputs [first, end), asked for in one call; with an option, the last of them
 * is added to. */
static void check_input_gradients(trial *t, int first, int end) {
    const rcn__conv_shape *s = &t->shape;
    double *defined = calloc((size_t)(s->batch * t->channels * t->ins), sizeof *defined);
    float *din[2] = {NULL, NULL};
    int add[2] = {0, 0};
    add[end - 1] = t->with.add;
    define(defined, s, 1, NULL, t->weights, t->dout);
    for (int k = first; k < end; ++k) {
        const int64_t stored = s->batch * stored_of(s->in[k]) * t->ins;
        din[k] = aligned((size_t)stored * sizeof *din[k]);
        for (int64_t i = 0; i < stored; ++i) din[k][i] = 1;
    }
    rcn__conv_backward_inputs(din, add, t->conv, t->ctx, t->weights, t->blocked_dout, t->packed,
                              &t->scratch);
    for (int k = first; k < end; ++k) {
        const int64_t before = k ? s->in[0] : 0;
        for (int64_t i = 0; add[k] && i < s->batch * t->channels * t->ins; ++i) defined[i] += 1;
        check_blocked("input's gradient", din[k], defined, s->batch, s->in[k], before, t->channels,
                      t->ins);
        rcn__release_aligned(din[k]);
    }
    free(defined);
}

static void check_weight_gradient(trial *t) {
    const rcn__conv_shape *s = &t->shape;
    double *defined = calloc((size_t)t->weight_count, sizeof *defined), difference = 0, size = 0;
    float *dweights = filled("unset", t->weight_count, 1, 0);
    float *dbias = filled("unset", stored_of(s->out), 1, 0);
    define(defined, s, 2, t->read, NULL, t->dout);
    const rcn__source in[2] = {source_of(t, 0), source_of(t, 1)};
    rcn__conv_backward_weights(dweights, dbias, t->conv, t->ctx, in, t->blocked_dout, &t->scratch);
    for (int64_t i = 0; i < t->weight_count; ++i) {
        difference += ((double)dweights[i] - defined[i]) * ((double)dweights[i] - defined[i]);
        size += defined[i] * defined[i];
    }
    expect_error("weights' gradient", difference, size, 1e-5);
    for (int64_t o = 0; o < s->out; ++o) {
        double sum = 0;
        for (int64_t n = 0; n < s->batch; ++n)
            for (int64_t v = 0; v < t->outs; ++v)
                sum += (double)t->dout[(n * s->out + o) * t->outs + v];
        CHECK_NEAR((double)dbias[o], sum, 1e-5 * (fabs(sum) + 1));
    }
    rcn__release_aligned(dweights);
    rcn__release_aligned(dbias);
    free(defined);
}

static void check_shape_with(rcn__conv_shape shape, options with, int threads) {
    trial t;
    start_trial(&t, shape, with, threads);
    check_forward(&t);
    for (int k = 0; shape.input_gradient && k < 2 && shape.in[k]; ++k)
        check_input_gradients(&t, k, k + 1);
    if (shape.input_gradient && shape.in[1]) check_input_gradients(&t, 0, 2);
    if (shape.training) check_weight_gradient(&t);
    end_trial(&t);
}

static void check_shape(rcn__conv_shape shape, int threads) {
    const options none = {0};
    check_shape_with(shape, none, threads);
}

static rcn__conv_shape square(int64_t batch, int64_t in, int64_t out, int64_t y, int64_t x) {
    const rcn__conv_shape shape = {.batch = batch,
                                   .in = {in},
                                   .out = out,
                                   .size = {1, y, x},
                                   .kernel = {1, 3, 3},
                                   .stride = {1, 1, 1},
                                   .pad = {0, 1, 1},
                                   .training = 1,
                                   .input_gradient = 1};
    return shape;
}

/* Any square kernel, stride and padding. */
static rcn__conv_shape general(int64_t in, int64_t out, int64_t y, int64_t x, int64_t kernel,
                               int64_t stride, int64_t pad) {
    rcn__conv_shape shape = square(2, in, out, y, x);
    for (int d = 1; d < 3; ++d) {
        shape.kernel[d] = kernel;
        shape.stride[d] = stride;
        shape.pad[d] = pad;
    }
    return shape;
}

static void two_dimensions(void) {
    for (int direct = 0; direct < 2; ++direct)
        for (int threads = 1; threads < 4; ++threads) {
            rcn__conv_shape shape = square(3, 8, 24, 21, 18);
            shape.direct = direct;
            check_shape(shape, threads);
            shape = square(1, 16, 8, 33, 35);
            shape.direct = direct;
            check_shape(shape, threads);
        }
    check_shape(square(2, 64, 16, 23, 24), 2);
    check_shape(square(70, 8, 8, 1, 3), 2);     /* images smaller than a tile */
    check_shape(square(1, 120, 104, 9, 10), 2); /* forms that are not kept */
    check_shape(square(1, 104, 96, 33, 35), 1); /* the same, enough tiles for each thread */
    check_shape(square(1, 8, 8, 172, 173), 3);  /* more than one block for the weights' gradient */
}

static void volumes(void) {
    for (int direct = 0; direct < 2; ++direct)
        for (int depth = 1; depth < 4; depth += 2) {
            rcn__conv_shape shape = square(2, 8, 16, 13, 9);
            shape.size[0] = 11;
            shape.kernel[0] = depth;
            shape.pad[0] = depth / 2;
            shape.direct = direct;
            check_shape(shape, 2);
        }
    rcn__conv_shape wide = square(1, 72, 64, 9, 10); /* forms that are not kept */
    wide.size[0] = 10;
    wide.kernel[0] = 3;
    wide.pad[0] = 1;
    check_shape(wide, 2);
    rcn__conv_shape strided = square(1, 8, 24, 9, 10);
    strided.size[0] = 7;
    for (int d = 0; d < 3; ++d) {
        strided.kernel[d] = 3;
        strided.stride[d] = 2;
        strided.pad[d] = 1;
    }
    check_shape(strided, 2);
}

static void other_kernels(void) {
    for (int threads = 1; threads < 3; ++threads) {
        check_shape(general(16, 40, 13, 17, 1, 1, 0), threads);
        check_shape(general(24, 8, 14, 15, 1, 2, 0), threads);
        check_shape(general(8, 16, 16, 18, 3, 2, 1), threads);
        check_shape(general(8, 16, 15, 17, 3, 2, 1), threads);
        check_shape(general(8, 8, 21, 20, 7, 2, 3), threads);
        check_shape(general(8, 8, 12, 11, 5, 3, 1), threads);
        check_shape(general(16, 5, 9, 10, 1, 1, 0), threads); /* channels that fill no block */
        check_shape(general(8, 13, 9, 10, 3, 1, 1), threads);
    }
    check_shape(general(8, 8, 3, 1500, 3, 2, 1), 2); /* rows longer than a band */
    check_shape(general(512, 8, 4, 60, 3, 2, 1), 1);
    check_shape(general(264, 80, 20, 21, 1, 1, 0), 2);
    check_shape(general(72, 64, 21, 20, 3, 2, 1), 2);  /* many sums, more inputs than outputs, */
    check_shape(general(40, 104, 21, 20, 3, 2, 1), 3); /* and the other way around */
}

static void planes(void) {
    for (int channels = 1; channels < 4; ++channels) {
        rcn__conv_shape shape = general(channels, 16, 18, 19, 7, 2, 3);
        shape.layout = RCN_PLANAR;
        shape.input_gradient = 0;
        check_shape(shape, 2);
        shape = square(2, channels, 24, 11, 12);
        shape.layout = RCN_PLANAR;
        shape.input_gradient = 0;
        check_shape(shape, 2);
    }
}

static void endings_and_norms(void) {
    for (int code = 0; code < 16; ++code) {
        const options with = {code & 1, code >> 1 & 1, code >> 2 & 1, code >> 3};
        check_shape_with(square(2, 16, 24, 35, 33), with, 2);
        if (code % 5 == 0) check_shape_with(square(1, 120, 104, 9, 10), with, 2);
        check_shape_with(general(16, 40, 13, 17, 1, 1, 0), with, 2);
        check_shape_with(general(16, 24, 13, 17, 3, 2, 1), with, 2);
    }
}

static void two_inputs(void) {
    const options norm = {.norm = 1}, none = {0};
    for (int direct = 0; direct < 2; ++direct) {
        rcn__conv_shape shape = square(2, 16, 24, 13, 14);
        shape.in[1] = 8;
        shape.direct = direct;
        check_shape_with(shape, none, 2);
        check_shape_with(shape, norm, 2);
    }
}

/* A spread puts sets of channels next to each other: the same numbers elsewhere. */
static void spread_channels(void) {
    enum { OUT = 8, SETS = 4 };
    const options none = {0};
    rcn__conv_shape shape = general(16, SETS * OUT, 9, 70, 1, 1, 0);
    trial plain, spread;
    start_trial(&plain, shape, none, 2);
    shape.spread[0] = 1;
    shape.spread[1] = shape.spread[2] = 2;
    start_trial(&spread, shape, none, 2);
    trial *both[2] = {&plain, &spread};
    for (int k = 0; k < 2; ++k) {
        const rcn__source from = source_of(both[k], 0);
        const rcn__ending ending = {.bias = k ? plain.bias : NULL};
        rcn__conv_pack(both[k]->packed, both[k]->conv, both[k]->ctx, plain.weights, NULL);
        rcn__conv_forward(both[k]->out, both[k]->conv, both[k]->ctx, &from, both[k]->packed,
                          &ending, &both[k]->scratch);
    }
    for (int64_t n = 0; n < shape.batch; ++n)
        for (int64_t c = 0; c < SETS * OUT; ++c)
            for (int64_t v = 0; v < plain.outs; ++v) {
                const int64_t set = c / OUT, y = v / 70 * 2 + set / 2, x = v % 70 * 2 + set % 2;
                const float wanted =
                    at_blocked(plain.out, n, c, v, SETS * OUT, plain.outs) + plain.bias[c % OUT];
                CHECK(at_blocked(spread.out, n, c % OUT, y * 140 + x, OUT, SETS * plain.outs) ==
                      wanted);
            }
    end_trial(&plain);
    end_trial(&spread);
}

/* Sums of what is written are those that a pass over it would give, for any number of threads. */
static void sums_of_outputs(void) {
    const rcn__conv_shape shapes[] = {square(2, 16, 24, 141, 130), square(3, 104, 96, 73, 75),
                                      square(1, 8, 8, 20, 20), general(8, 8, 200, 200, 3, 2, 1)};
    const options norm = {.norm = 1};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        const rcn__conv_shape *s = &shapes[i];
        float *sums[2];
        size_t bytes = 0;
        for (int k = 0; k < 2; ++k) {
            trial t;
            start_trial(&t, *s, norm, k ? 29 : 1);
            const int64_t rows = rcn__conv_tally_rows(t.conv);
            CHECK(!rows == (i > 1)); /* small maps and other kernels have none */
            bytes = (size_t)(rows * 2 * s->out) * sizeof(float);
            sums[k] = aligned(bytes);
            memset(sums[k], 0xff, bytes);
            const rcn__source from = source_of(&t, 0);
            rcn__ending ending = {.tally = {sums[k], t.bias}};
            if (!rows) ending.tally.sums = NULL;
            rcn__conv_pack(t.packed, t.conv, t.ctx, t.weights, NULL);
            rcn__conv_forward(t.out, t.conv, t.ctx, &from, t.packed, &ending, &t.scratch);
            for (int64_t c = 0; rows && c < s->out; ++c) {
                double wanted[2] = {0, 0}, found[2] = {0, 0};
                for (int64_t n = 0; n < s->batch; ++n)
                    for (int64_t v = 0; v < t.outs; ++v) {
                        const double distance =
                            (double)at_blocked(t.out, n, c, v, s->out, t.outs) - (double)t.bias[c];
                        wanted[0] += distance;
                        wanted[1] += distance * distance;
                    }
                for (int64_t r = 0; r < rows; ++r)
                    for (int j = 0; j < 2; ++j)
                        found[j] += (double)sums[k][(r * 2 + j) * s->out + c];
                CHECK(fabs(found[0] - wanted[0]) <= 1e-6 * sqrt(wanted[1] * (double)t.outs));
                CHECK(fabs(found[1] / wanted[1] - 1) <= 1e-6);
            }
            end_trial(&t);
        }
        CHECK(!memcmp(sums[0], sums[1], bytes));
        for (int k = 0; k < 2; ++k) rcn__release_aligned(sums[k]);
    }
}

/* Weights that are copied when they are packed need not stay. */
static void copied_weights(void) {
    const options none = {0};
    rcn__conv_shape shape = square(1, 120, 104, 9, 10);
    trial t[2];
    for (int k = 0; k < 2; ++k) {
        shape.copies_weights = k;
        start_trial(&t[k], shape, none, 2);
        const rcn__source from = source_of(&t[k], 0);
        const rcn__ending ending = {.bias = t[k].bias};
        rcn__conv_pack(t[k].packed, t[k].conv, t[k].ctx, t[k].weights, t[k].bias);
        if (k) memset(t[k].weights, 0xff, (size_t)t[k].weight_count * sizeof(float));
        rcn__conv_forward(t[k].out, t[k].conv, t[k].ctx, &from, t[k].packed, &ending,
                          &t[k].scratch);
    }
    CHECK(!memcmp(t[0].out, t[1].out, (size_t)(shape.out * t[0].outs) * sizeof(float)));
    for (int k = 0; k < 2; ++k) end_trial(&t[k]);
}

/* The same bits for any number of threads. */
static void threads_change_nothing(void) {
    rcn__conv_shape planar = general(3, 40, 53, 57, 7, 2, 3);
    planar.layout = RCN_PLANAR;
    planar.input_gradient = 0;
    const rcn__conv_shape shapes[] = {
        square(2, 16, 24, 61, 63),        square(1, 120, 104, 9, 10),
        square(1, 120, 104, 73, 75),      square(1, 64, 136, 73, 75),
        general(24, 40, 33, 35, 3, 2, 1), general(72, 64, 53, 57, 3, 2, 1),
        general(16, 40, 53, 57, 1, 1, 0), planar};
    const options none = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        trial t[2];
        float *dweights[2], *din[2];
        for (int k = 0; k < 2; ++k) {
            start_trial(&t[k], shapes[i], none, k ? 5 : 1);
            const rcn__source from = source_of(&t[k], 0);
            const rcn__ending ending = {0};
            rcn__conv_pack(t[k].packed, t[k].conv, t[k].ctx, t[k].weights, NULL);
            rcn__conv_forward(t[k].out, t[k].conv, t[k].ctx, &from, t[k].packed, &ending,
                              &t[k].scratch);
            dweights[k] = filled("unset", t[k].weight_count, 1, 0);
            din[k] = filled("unset", shapes[i].batch * shapes[i].in[0] * t[k].ins, 1, 0);
            rcn__conv_backward_weights(dweights[k], NULL, t[k].conv, t[k].ctx, &from,
                                       t[k].blocked_dout, &t[k].scratch);
            float *const asked[2] = {shapes[i].input_gradient ? din[k] : NULL};
            const int add[2] = {0, 0};
            rcn__conv_backward_inputs(asked, add, t[k].conv, t[k].ctx, t[k].weights,
                                      t[k].blocked_dout, t[k].packed, &t[k].scratch);
        }
        const rcn__conv_shape *s = &shapes[i];
        CHECK(!memcmp(t[0].out, t[1].out,
                      (size_t)(s->batch * stored_of(s->out) * t[0].outs) * sizeof(float)));
        CHECK(!memcmp(dweights[0], dweights[1], (size_t)t[0].weight_count * sizeof(float)));
        CHECK(!memcmp(din[0], din[1], (size_t)(s->batch * s->in[0] * t[0].ins) * sizeof(float)));
        for (int k = 0; k < 2; ++k) {
            rcn__release_aligned(dweights[k]);
            rcn__release_aligned(din[k]);
            end_trial(&t[k]);
        }
    }
}

/* What the library finds out about the processor is what the compiler says of it. */
static void knows_the_machine(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    const int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    CHECK(!rcn__engine_find("avx2") == !has_avx2);
    CHECK(!rcn__engine_find("avx512") ==
          !(has_avx2 && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")));
#endif
    CHECK(rcn__engine_find("plain") && !rcn__engine_find("abacus"));
}

int main(void) {
    static const char *const names[] = {"avx512", "avx2", "neon", "sse2", "plain"};
    RUN(knows_the_machine);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        if (!rcn__engine_find(names[i])) continue;
#if defined(__SANITIZE_ADDRESS__)
        /* Slow: the machine's own is enough, all are one source. */
        if (strcmp(names[i], rcn__engine_choose()->name) != 0) continue;
#endif
        printf("%s\n", names[i]);
        set_environment("RCN_ISA", names[i]);
        CHECK(!strcmp(rcn__engine_choose()->name, names[i]));
        RUN(two_dimensions);
        RUN(volumes);
        RUN(other_kernels);
        RUN(planes);
        RUN(endings_and_norms);
        RUN(two_inputs);
        RUN(spread_channels);
        RUN(sums_of_outputs);
        RUN(copied_weights);
        RUN(threads_change_nothing);
    }
    return TEST_RESULT;
}
