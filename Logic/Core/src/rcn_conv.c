// SPDX-License-Identifier: Apache-2.0
#include "rcn_conv.h"

#include <assert.h>
#include <string.h>

#include "rcn_engine.h"

struct rcn__conv {
    const rcn__engine *engine;
    rcn__conv_shape shape;
    int64_t out_size[3];
    int winograd, threads;
};

/* Non-zero where Winograd's way applies and is faster. */
static int suits_winograd(const rcn__conv_shape *shape) {
    const int64_t tiles = shape->size[0] * ((shape->size[1] + 3) / 4) * ((shape->size[2] + 3) / 4);
    for (int d = 0; d < 3; ++d)
        if (shape->stride[d] != 1 || shape->pad[d] != shape->kernel[d] / 2) return 0;
    if (shape->kernel[1] != 3 || shape->kernel[2] != 3) return 0;
    if (shape->kernel[0] != 1 && shape->kernel[0] != 3) return 0;
    if (shape->layout != RCN_BLOCKED || shape->out % RCN_LANES) return 0;
    if (shape->in[0] % RCN_LANES || shape->in[1] % RCN_LANES) return 0;
    /* The weights' forms have to be made: with very few tiles that takes longer than it saves. Of
     * one image: how a batch is cut into parts must not change the way. */
    return tiles >= 4;
}

/* The convolution forward, or of input number `which` alone, and the one that gives its gradient.
 */
enum { ALL_INPUTS = -1 };

static rcn__winograd winograd_of(const rcn__conv *conv, int which, int backward) {
    const rcn__conv_shape *shape = &conv->shape;
    rcn__winograd w = {.batch = shape->batch,
                       .depth = shape->kernel[0],
                       .out = shape->out,
                       .copies_weights = shape->copies_weights};
    memcpy(w.size, shape->size, sizeof w.size);
    w.in[0] = shape->in[which == 1];
    if (which == ALL_INPUTS) w.in[1] = shape->in[1];
    if (backward) {
        w.out_second = w.in[1];
        w.out = w.in[0] + w.in[1];
        w.in[0] = shape->out;
        w.in[1] = 0;
    }
    return w;
}

static rcn__direct direct_of(const rcn__conv *conv, int which, int backward) {
    const rcn__conv_shape *shape = &conv->shape;
    rcn__direct d = {.batch = shape->batch,
                     .out = shape->out,
                     .layout = backward ? RCN_BLOCKED : shape->layout,
                     .backward = backward};
    memcpy(d.in_size, backward ? conv->out_size : shape->size, sizeof d.in_size);
    memcpy(d.out_size, backward ? shape->size : conv->out_size, sizeof d.out_size);
    memcpy(d.kernel, shape->kernel, sizeof d.kernel);
    memcpy(d.stride, shape->stride, sizeof d.stride);
    memcpy(d.pad, shape->pad, sizeof d.pad);
    for (int k = 0; k < 3; ++k) d.spread[k] = !backward && shape->spread[k] ? shape->spread[k] : 1;
    d.in[0] = shape->in[which == 1];
    if (which == ALL_INPUTS) d.in[1] = shape->in[1];
    if (backward) {
        d.out = d.in[0];
        d.in[0] = shape->out;
    }
    return d;
}

/* As the gradient of the weights sees it. */
static rcn__direct unspread(const rcn__conv *conv) {
    rcn__direct d = direct_of(conv, ALL_INPUTS, 0);
    for (int k = 0; k < 3; ++k) d.spread[k] = 1;
    return d;
}

static rcn__weight_slice slice_of(const rcn__conv *conv, int which, int backward) {
    const int64_t *in = conv->shape.in;
    const rcn__weight_slice slice = {which == 1 ? in[0] : 0, in[0] + in[1], backward, NULL};
    return slice;
}

rcn_status rcn__conv_create(rcn__conv **out, rcn_context *ctx, const rcn__conv_shape *shape) {
    rcn_status status = RCN_OK;
    rcn__conv *conv = NULL;
    *out = NULL;
    assert(shape->kernel[0] * shape->kernel[1] * shape->kernel[2] <= RCN_MOST_TAPS);
    RCN_ALLOC_ZERO(conv, ctx, 1, "a convolution");
    conv->engine = rcn__engine_choose();
    conv->shape = *shape;
    conv->threads = ctx->threads;
    conv->winograd = !shape->direct && suits_winograd(shape);
    for (int d = 0; d < 3; ++d)
        conv->out_size[d] =
            (shape->size[d] + 2 * shape->pad[d] - shape->kernel[d]) / shape->stride[d] + 1;
    *out = conv;
    conv = NULL;
done:
    rcn__conv_destroy(conv, ctx);
    return status;
}

void rcn__conv_destroy(rcn__conv *conv, rcn_context *ctx) { rcn__free(ctx, conv); }

static size_t more(size_t a, size_t b) { return a > b ? a : b; }

/* What running it takes. */
typedef struct needs {
    size_t packed;
    rcn__scratch_bytes scratch;
} needs;

static void need(needs *all, size_t packed, rcn__scratch_bytes scratch) {
    all->packed = more(all->packed, packed);
    all->scratch.shared = more(all->scratch.shared, scratch.shared);
    all->scratch.own = more(all->scratch.own, scratch.own);
}

/* For one input, or all of them. */
static void need_run(needs *all, const rcn__conv *conv, int which, int backward) {
    const rcn__engine *engine = conv->engine;
    const rcn__winograd winograd = winograd_of(conv, which, backward);
    const rcn__direct direct = direct_of(conv, which, backward);
    if (conv->winograd)
        need(all, engine->winograd_packed_bytes(&winograd),
             engine->winograd_scratch_bytes(&winograd, conv->threads));
    else
        need(all, engine->direct_packed_bytes(&direct), engine->direct_scratch_bytes(&direct));
}

static rcn__scratch_bytes gradient_bytes(const rcn__conv *conv) {
    const rcn__winograd winograd = winograd_of(conv, ALL_INPUTS, 0);
    const rcn__direct direct = unspread(conv);
    return conv->winograd ? conv->engine->winograd_gradient_bytes(&winograd, conv->threads)
                          : conv->engine->direct_gradient_bytes(&direct, conv->threads);
}

static int input_count(const rcn__conv *conv) { return conv->shape.in[1] ? 2 : 1; }

/* Winograd's way gives the gradients of two inputs in one pass, which makes the forms of the
 * output's gradient once for both. */
static int joins_inputs(const rcn__conv *conv) { return conv->winograd && conv->shape.in[1]; }

/* For whatever a convolution is asked for. */
static needs most_needs(const rcn__conv *conv) {
    needs all = {0};
    need_run(&all, conv, ALL_INPUTS, 0);
    if (conv->shape.training) need(&all, 0, gradient_bytes(conv));
    if (!conv->shape.input_gradient) return all;
    for (int k = joins_inputs(conv) ? ALL_INPUTS : 0; k < input_count(conv); ++k)
        need_run(&all, conv, k, 1);
    return all;
}

rcn__scratch_bytes rcn__conv_scratch_bytes(const rcn__conv *conv) {
    return most_needs(conv).scratch;
}

size_t rcn__conv_packed_bytes(const rcn__conv *conv) { return most_needs(conv).packed; }

static void pack(void *packed, rcn__conv *conv, rcn_context *ctx, const float *weights,
                 const float *scale, int which, int backward) {
    rcn__weight_slice slice = slice_of(conv, which, backward);
    slice.scale = scale;
    if (conv->winograd) {
        const rcn__winograd shape = winograd_of(conv, which, backward);
        conv->engine->winograd_pack(packed, &shape, ctx, weights, &slice);
    } else {
        const rcn__direct shape = direct_of(conv, which, backward);
        conv->engine->direct_pack(packed, &shape, ctx, weights, &slice);
    }
}

void rcn__conv_pack(void *packed, rcn__conv *conv, rcn_context *ctx, const float *weights,
                    const float *scale) {
    pack(packed, conv, ctx, weights, scale, ALL_INPUTS, 0);
}

static void run(float *const out[2], rcn__conv *conv, rcn_context *ctx, const rcn__source *in,
                int which, int backward, const void *packed, const rcn__ending *ending,
                const rcn__scratch *scratch) {
    if (conv->winograd) {
        const rcn__winograd shape = winograd_of(conv, which, backward);
        conv->engine->winograd_convolve(out, &shape, ctx, in, packed, ending, scratch);
    } else {
        const rcn__direct shape = direct_of(conv, which, backward);
        conv->engine->direct_convolve(out[0], &shape, ctx, in, packed, ending, scratch);
    }
}

void rcn__conv_forward(float *out, rcn__conv *conv, rcn_context *ctx, const rcn__source *in,
                       const void *packed, const rcn__ending *ending, const rcn__scratch *scratch) {
    float *const one[2] = {out};
    run(one, conv, ctx, in, ALL_INPUTS, 0, packed, ending, scratch);
}

int64_t rcn__conv_tally_rows(const rcn__conv *conv) {
    const rcn__winograd shape = winograd_of(conv, ALL_INPUTS, 0);
    return conv->winograd ? conv->engine->winograd_tally_rows(&shape) : 0;
}

/* As rows see it: one image, and rows that are not put together to a long one. */
static rcn__winograd winograd_by_rows(const rcn__conv *conv) {
    rcn__winograd shape = winograd_of(conv, ALL_INPUTS, 0);
    shape.batch = 1;
    return shape;
}
static rcn__direct direct_by_rows(const rcn__conv *conv) {
    rcn__direct shape = direct_of(conv, ALL_INPUTS, 0);
    shape.batch = 1;
    shape.by_rows = 1;
    return shape;
}

int64_t rcn__conv_row_group(const rcn__conv *conv) {
    if (conv->shape.size[0] != 1) return 0;
    if (!conv->winograd) return 1;
    const rcn__winograd shape = winograd_by_rows(conv);
    return conv->engine->winograd_by_rows(&shape) ? 4 : 0;
}

size_t rcn__conv_row_scratch_bytes(const rcn__conv *conv) {
    const rcn__winograd winograd = winograd_by_rows(conv);
    const rcn__direct direct = direct_by_rows(conv);
    const rcn__scratch_bytes bytes = conv->winograd
                                         ? conv->engine->winograd_scratch_bytes(&winograd, 1)
                                         : conv->engine->direct_scratch_bytes(&direct);
    return bytes.shared + bytes.own;
}

void rcn__conv_forward_rows(float *out, const rcn__conv *conv, const rcn__source *in,
                            const void *packed, const rcn__ending *ending, const rcn__rows *rows,
                            void *scratch) {
    const rcn__winograd winograd = winograd_by_rows(conv);
    const rcn__direct direct = direct_by_rows(conv);
    if (conv->winograd)
        conv->engine->winograd_rows(out, &winograd, in, packed, ending, rows, scratch);
    else
        conv->engine->direct_rows(out, &direct, in, packed, ending, rows, scratch);
}

void rcn__conv_backward_inputs(float *const din[2], const int add[2], rcn__conv *conv,
                               rcn_context *ctx, const float *weights, const float *dout,
                               void *packed, const rcn__scratch *scratch) {
    const rcn__source from = {.data = dout};
    if (joins_inputs(conv) && din[0] && din[1]) {
        const rcn__ending ending = {.residual = {add[0] ? din[0] : NULL, add[1] ? din[1] : NULL}};
        pack(packed, conv, ctx, weights, NULL, ALL_INPUTS, 1);
        run(din, conv, ctx, &from, ALL_INPUTS, 1, packed, &ending, scratch);
        return;
    }
    for (int k = 0; k < input_count(conv); ++k) {
        float *const one[2] = {din[k]};
        const rcn__ending ending = {.residual = {add[k] ? din[k] : NULL}};
        if (!din[k]) continue;
        pack(packed, conv, ctx, weights, NULL, k, 1);
        run(one, conv, ctx, &from, k, 1, packed, &ending, scratch);
    }
}

void rcn__conv_backward_weights(float *dweights, float *dbias, rcn__conv *conv, rcn_context *ctx,
                                const rcn__source *in, const float *dout,
                                const rcn__scratch *scratch) {
    const rcn__weight_slice slice = slice_of(conv, ALL_INPUTS, 0);
    if (conv->winograd) {
        const rcn__winograd shape = winograd_of(conv, ALL_INPUTS, 0);
        conv->engine->winograd_gradient(dweights, dbias, &shape, ctx, in, dout, &slice, scratch);
    } else {
        const rcn__direct shape = unspread(conv);
        conv->engine->direct_gradient(dweights, dbias, &shape, ctx, in, dout, &slice, scratch);
    }
}
