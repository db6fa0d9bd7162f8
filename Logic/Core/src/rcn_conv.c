// SPDX-License-Identifier: Apache-2.0
#include "rcn_conv.h"

#include <string.h>

#include "rcn_dnn.h"
#include "rcn_winograd.h"

struct rcn__conv {
    rcn__dnn_conv *direct; /* or NULL: */
    rcn__winograd forward, backward;
    int bias, add, relu, training, input_gradient, threads;
};

static int machine_has_avx2(void) {
#if defined(RCN_HAVE_WINOGRAD)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* Non-zero where Winograd's way applies and is faster. */
static int suits_winograd(const rcn__conv_shape *shape) {
    const int64_t tiles =
        shape->batch * shape->size[0] * ((shape->size[1] + 3) / 4) * ((shape->size[2] + 3) / 4);
    for (int d = 0; d < 3; ++d)
        if (shape->stride[d] != 1 || shape->pad[d] != shape->kernel[d] / 2) return 0;
    if (shape->kernel[1] != 3 || shape->kernel[2] != 3) return 0;
    if (shape->kernel[0] != 1 && shape->kernel[0] != 3) return 0;
    if (shape->layout != RCN_BLOCKED || shape->in % RCN_LANES || shape->out % RCN_LANES) return 0;
    if (shape->training && shape->bias) return 0; /* its gradient is not made */
    /* oneDNN 3.2 has no fast gradient of weights for images smaller than the kernel. */
    if (shape->training && (shape->size[1] < 3 || shape->size[2] < 3)) return 1;
    /* Weights grow fourfold: with few tiles, reading them takes longer than multiplying. */
    return tiles >= 64;
}

rcn_status rcn__conv_create(rcn__conv **out, rcn__dnn *dnn, rcn_context *ctx,
                            const rcn__conv_shape *shape) {
    rcn_status status = RCN_OK;
    rcn__conv *conv = NULL;
    *out = NULL;
    RCN_ALLOC_ZERO(conv, ctx, 1, "a convolution");
    conv->bias = shape->bias;
    conv->add = shape->add;
    conv->relu = shape->relu;
    conv->training = shape->training;
    conv->input_gradient = shape->input_gradient;
    conv->threads = ctx->threads;
    if (!shape->direct && machine_has_avx2() && suits_winograd(shape)) {
        rcn__winograd *forward = &conv->forward;
        forward->batch = shape->batch;
        forward->in = shape->in;
        forward->out = shape->out;
        memcpy(forward->size, shape->size, sizeof forward->size);
        forward->depth = shape->kernel[0];
        conv->backward = *forward;
        conv->backward.in = shape->out;
        conv->backward.out = shape->in;
    } else {
        RCN_TRY(rcn__dnn_conv_create(&conv->direct, dnn, ctx, shape));
    }
    *out = conv;
    conv = NULL;
done:
    rcn__conv_destroy(conv, ctx);
    return status;
}

void rcn__conv_destroy(rcn__conv *conv, rcn_context *ctx) {
    if (!conv) return;
    rcn__dnn_conv_destroy(conv->direct, ctx);
    rcn__free(ctx, conv);
}

size_t rcn__conv_scratch_bytes(const rcn__conv *conv) {
    if (conv->direct) return rcn__dnn_conv_scratch_bytes(conv->direct);
    size_t bytes = rcn__winograd_scratch_bytes(&conv->forward, conv->threads);
    if (conv->training) {
        const size_t gradient = rcn__winograd_gradient_bytes(&conv->forward, conv->threads);
        if (gradient > bytes) bytes = gradient;
    }
    if (conv->input_gradient) {
        const size_t backward = rcn__winograd_scratch_bytes(&conv->backward, conv->threads);
        if (backward > bytes) bytes = backward;
    }
    return bytes;
}

size_t rcn__conv_packed_bytes(const rcn__conv *conv) {
    return conv->direct ? rcn__dnn_conv_packed_bytes(conv->direct)
                        : rcn__winograd_packed_bytes(&conv->forward);
}

rcn_status rcn__conv_pack(void *packed, rcn__conv *conv, rcn_context *ctx, const float *weights,
                          int64_t first_in, int64_t total_in, int backward) {
    const rcn__winograd_weights where = {first_in, total_in, backward};
    if (conv->direct)
        return rcn__dnn_conv_pack(packed, conv->direct, ctx, weights, first_in, total_in, backward);
    rcn__winograd_pack(packed, backward ? &conv->backward : &conv->forward, ctx, weights, &where);
    return RCN_OK;
}

rcn_status rcn__conv_forward(float *out, rcn__conv *conv, rcn_context *ctx, const float *in,
                             const void *packed, const float *bias, void *scratch) {
    if (conv->direct)
        return rcn__dnn_conv_forward(out, conv->direct, ctx, in, packed, bias, scratch);
    rcn__winograd_convolve(out, &conv->forward, ctx, in, packed, conv->bias ? bias : NULL,
                           conv->add, conv->relu, scratch);
    return RCN_OK;
}

rcn_status rcn__conv_backward_input(float *din, rcn__conv *conv, rcn_context *ctx,
                                    const float *dout, const void *packed, void *scratch) {
    if (conv->direct)
        return rcn__dnn_conv_backward_input(din, conv->direct, ctx, dout, packed, scratch);
    rcn__winograd_convolve(din, &conv->backward, ctx, dout, packed, NULL, 0, 0, scratch);
    return RCN_OK;
}

rcn_status rcn__conv_backward_weights(float *dweights, float *dbias, rcn__conv *conv,
                                      rcn_context *ctx, const float *in, const float *dout,
                                      int64_t first_in, int64_t total_in, void *packed,
                                      void *scratch) {
    const rcn__winograd_weights where = {first_in, total_in, 0};
    if (conv->direct)
        return rcn__dnn_conv_backward_weights(dweights, dbias, conv->direct, ctx, in, dout,
                                              first_in, total_in, packed, scratch);
    rcn__winograd_gradient(dweights, &conv->forward, ctx, in, dout, &where, scratch);
    return RCN_OK;
}
