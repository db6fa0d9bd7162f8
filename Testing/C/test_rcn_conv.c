// SPDX-License-Identifier: Apache-2.0
#include "rcn_test.h"

#include "rcn_conv.h"
#include "rcn_dnn.h"
#include "rcn_test_fill.h"

/* Both ways of convolving against the definition, in double. Tensors of the definition are planar
 * (B, C, Z, Y, X). */

static void *aligned(size_t bytes) { return aligned_alloc(64, (bytes + 127) / 64 * 64); }

static int64_t voxels_of(const rcn__conv_shape *shape) {
    return shape->size[0] * shape->size[1] * shape->size[2];
}

static void block_up(float *blocked, const float *planar, int64_t batch, int64_t channels,
                     int64_t voxels) {
    for (int64_t i = 0; i < batch * channels; ++i)
        for (int64_t v = 0; v < voxels; ++v)
            blocked[(i / RCN_LANES * voxels + v) * RCN_LANES + i % RCN_LANES] =
                planar[i * voxels + v];
}

/* One tap of the convolution between an output voxel and an input voxel, over all that exist:
 * what = 0: out += w in; 1: din += w dout; 2: dw += in dout. */
static void define(double *result, const rcn__conv_shape *s, int what, const float *in,
                   const float *weights, const float *dout) {
    const int64_t voxels = voxels_of(s), taps = s->kernel[0] * 9;
    for (int64_t b = 0; b < s->batch; ++b)
        for (int64_t o = 0; o < s->out; ++o)
            for (int64_t i = 0; i < s->in; ++i)
                for (int64_t tap = 0; tap < taps; ++tap) {
                    const int64_t dz = tap / 9 - s->pad[0], dy = tap / 3 % 3 - 1, dx = tap % 3 - 1;
                    const int64_t w = (o * s->in + i) * taps + tap;
                    for (int64_t v = 0; v < voxels; ++v) {
                        const int64_t x = v % s->size[2] + dx;
                        const int64_t y = v / s->size[2] % s->size[1] + dy;
                        const int64_t z = v / s->size[2] / s->size[1] + dz;
                        if (x < 0 || y < 0 || z < 0 || x >= s->size[2] || y >= s->size[1] ||
                            z >= s->size[0])
                            continue;
                        const int64_t to = (b * s->out + o) * voxels + v;
                        const int64_t from =
                            (b * s->in + i) * voxels + (z * s->size[1] + y) * s->size[2] + x;
                        if (what == 0)
                            result[to] += (double)weights[w] * (double)in[from];
                        else if (what == 1)
                            result[from] += (double)weights[w] * (double)dout[to];
                        else
                            result[w] += (double)in[from] * (double)dout[to];
                    }
                }
}

/* Root of the mean square difference, relative to that of the definition. */
static double error_of(const float *found, const double *defined, int64_t count) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; ++i) {
        difference += ((double)found[i] - defined[i]) * ((double)found[i] - defined[i]);
        size += defined[i] * defined[i];
    }
    return sqrt(difference / size);
}

static void check_blocked(const char *what, const float *blocked, const double *defined,
                          int64_t batch, int64_t channels, int64_t voxels) {
    const int64_t count = batch * channels * voxels;
    float *planar = malloc((size_t)count * sizeof *planar);
    for (int64_t i = 0; i < batch * channels; ++i)
        for (int64_t v = 0; v < voxels; ++v)
            planar[i * voxels + v] =
                blocked[(i / RCN_LANES * voxels + v) * RCN_LANES + i % RCN_LANES];
    const double error = error_of(planar, defined, count);
    if (!(error < 3e-6)) {
        ++rcn_test_failures;
        fprintf(stderr, "%s: relative error %g\n", what, error);
    }
    free(planar);
}

/* All three passes of one shape; weights are a slice of a wider kernel. */
static void check_shape(rcn__conv_shape shape, int threads) {
    enum { BEFORE = 3, BEHIND = 2 };
    rcn_context *ctx = make_context(threads);
    rcn__dnn *dnn = NULL;
    CHECK_STATUS(rcn__dnn_create(&dnn, ctx), RCN_OK);
    const int64_t voxels = voxels_of(&shape), taps = shape.kernel[0] * 9;
    const int64_t ins = shape.batch * shape.in * voxels, outs = shape.batch * shape.out * voxels;
    const int64_t ws = shape.out * shape.in * taps, total = BEFORE + shape.in + BEHIND;
    float *in = aligned((size_t)ins * 4), *dout = aligned((size_t)outs * 4);
    float *weights = aligned((size_t)ws * 4), *bias = aligned((size_t)shape.out * 4);
    float *wide = aligned((size_t)(shape.out * total * taps) * 4);
    float *dwide = aligned((size_t)(shape.out * total * taps) * 4);
    float *in_blocked = aligned((size_t)ins * 4), *dout_blocked = aligned((size_t)outs * 4);
    float *out = aligned((size_t)outs * 4), *din = aligned((size_t)ins * 4);
    fill_values(in, "in", ins, 1, 0.2);
    fill_values(dout, "dout", outs, 1, 0.1);
    fill_values(weights, "weights", ws, 1, 0);
    fill_values(bias, "bias", shape.out, 1, 0);
    fill_values(out, "there", outs, 1, 0);
    for (int64_t o = 0; o < shape.out; ++o)
        for (int64_t i = 0; i < total * taps; ++i) {
            const int64_t k = i - BEFORE * taps;
            wide[o * total * taps + i] =
                k >= 0 && k < shape.in * taps ? weights[o * shape.in * taps + k] : NAN;
            dwide[o * total * taps + i] = 77;
        }
    block_up(in_blocked, in, shape.batch, shape.in, voxels);
    block_up(dout_blocked, dout, shape.batch, shape.out, voxels);

    rcn__conv *conv = NULL;
    CHECK_STATUS(rcn__conv_create(&conv, dnn, ctx, &shape), RCN_OK);
    void *scratch = aligned(rcn__conv_scratch_bytes(conv));
    void *packed = aligned(rcn__conv_packed_bytes(conv));
    memset(scratch, 0xff, rcn__conv_scratch_bytes(conv)); /* NaN: nothing unset may be used */

    double *defined = calloc((size_t)outs, sizeof *defined);
    define(defined, &shape, 0, in, weights, NULL);
    for (int64_t i = 0; i < outs; ++i) {
        const int64_t c = i / voxels % shape.out;
        if (shape.bias) defined[i] += (double)bias[c];
        if (shape.add)
            defined[i] += (double)out[((i / voxels / RCN_LANES) * voxels + i % voxels) * RCN_LANES +
                                      i / voxels % RCN_LANES];
        if (shape.relu && defined[i] < 0) defined[i] = 0;
    }
    CHECK_STATUS(rcn__conv_pack(packed, conv, ctx, wide, BEFORE, total, 0), RCN_OK);
    CHECK_STATUS(rcn__conv_forward(out, conv, ctx, in_blocked, packed, bias, scratch), RCN_OK);
    check_blocked("forward", out, defined, shape.batch, shape.out, voxels);
    free(defined);

    if (shape.training) {
        defined = calloc((size_t)ins, sizeof *defined);
        define(defined, &shape, 1, NULL, weights, dout);
        CHECK_STATUS(rcn__conv_pack(packed, conv, ctx, wide, BEFORE, total, 1), RCN_OK);
        CHECK_STATUS(rcn__conv_backward_input(din, conv, ctx, dout_blocked, packed, scratch),
                     RCN_OK);
        check_blocked("input's gradient", din, defined, shape.batch, shape.in, voxels);
        free(defined);

        defined = calloc((size_t)ws, sizeof *defined);
        define(defined, &shape, 2, in, NULL, dout);
        CHECK_STATUS(rcn__conv_backward_weights(dwide, NULL, conv, ctx, in_blocked, dout_blocked,
                                                BEFORE, total, packed, scratch),
                     RCN_OK);
        float *slice = malloc((size_t)ws * sizeof *slice);
        for (int64_t o = 0; o < shape.out; ++o) {
            memcpy(slice + o * shape.in * taps, dwide + (o * total + BEFORE) * taps,
                   (size_t)(shape.in * taps) * sizeof *slice);
            CHECK(dwide[o * total * taps] == 77 && dwide[(o + 1) * total * taps - 1] == 77);
        }
        const double error = error_of(slice, defined, ws);
        if (!(error < 1e-5)) {
            ++rcn_test_failures;
            fprintf(stderr, "weights' gradient: relative error %g\n", error);
        }
        free(slice);
        free(defined);
    }
    rcn__conv_destroy(conv, ctx);
    rcn__dnn_destroy(dnn, ctx);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
    void *all[] = {in,         dout,         weights, bias, wide,    dwide,
                   in_blocked, dout_blocked, out,     din,  scratch, packed};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

static rcn__conv_shape square(int64_t batch, int64_t in, int64_t out, int64_t y, int64_t x) {
    const rcn__conv_shape shape = {.dimensions = 2,
                                   .batch = batch,
                                   .in = in,
                                   .out = out,
                                   .size = {1, y, x},
                                   .kernel = {1, 3, 3},
                                   .stride = {1, 1, 1},
                                   .pad = {0, 1, 1},
                                   .training = 1,
                                   .input_gradient = 1};
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
    check_shape(square(70, 8, 8, 1, 3), 2); /* images smaller than a tile */
}

static void volumes(void) {
    for (int direct = 0; direct < 2; ++direct)
        for (int depth = 1; depth < 4; depth += 2) {
            rcn__conv_shape shape = square(2, 8, 16, 13, 9);
            shape.dimensions = 3;
            shape.size[0] = 11;
            shape.kernel[0] = depth;
            shape.pad[0] = depth / 2;
            shape.direct = direct;
            check_shape(shape, 2);
        }
}

static void ends_of_prediction(void) {
    for (int options = 0; options < 8; ++options) {
        rcn__conv_shape shape = square(1, 16, 24, 35, 33);
        shape.training = shape.input_gradient = 0;
        shape.bias = options & 1;
        shape.add = options >> 1 & 1;
        shape.relu = options >> 2;
        check_shape(shape, 2);
    }
}

int main(void) {
    RUN(two_dimensions);
    RUN(volumes);
    RUN(ends_of_prediction);
    return TEST_RESULT;
}
