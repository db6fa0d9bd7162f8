// SPDX-License-Identifier: Apache-2.0
#include "rcn_dnn.h"

#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#include "rcn_layers.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* oneDNN runs on as many threads as the calling thread would start: that number belongs to the
 * caller's task alone and is put back after each call. */
static int enter_threads(const rcn_context *ctx) {
#ifdef _OPENMP
    const int before = omp_get_max_threads();
    if (before != ctx->threads) omp_set_num_threads(ctx->threads);
    return before;
#else
    return ctx->threads;
#endif
}

static void leave_threads(const rcn_context *ctx, int before) {
#ifdef _OPENMP
    if (before != ctx->threads) omp_set_num_threads(before);
#else
    (void)ctx, (void)before;
#endif
}

static rcn_status fail_dnn(rcn_context *ctx, dnnl_status_t status, const char *what) {
    if (status == dnnl_out_of_memory)
        return rcn__fail(ctx, RCN_ENOMEM, "Out of memory: oneDNN could not get what %s needs.",
                         what);
    return rcn__fail(ctx, RCN_EINTERNAL, "oneDNN failed (status %d) while %s.", (int)status, what);
}

#define RCN_DNN(call, what)                                                                        \
    do {                                                                                           \
        const dnnl_status_t dnn_status_ = (call);                                                  \
        if (dnn_status_ != dnnl_success) {                                                         \
            status = fail_dnn(ctx, dnn_status_, what);                                             \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

struct rcn__dnn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

rcn_status rcn__dnn_create(rcn__dnn **out, rcn_context *ctx) {
    rcn_status status = RCN_OK;
    rcn__dnn *dnn = NULL;
    *out = NULL;
    RCN_ALLOC_ZERO(dnn, ctx, 1, "the network engine");
    RCN_DNN(dnnl_engine_create(&dnn->engine, dnnl_cpu, 0), "starting");
    RCN_DNN(dnnl_stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags), "starting");
    *out = dnn;
    dnn = NULL;
done:
    rcn__dnn_destroy(dnn, ctx);
    return status;
}

void rcn__dnn_destroy(rcn__dnn *dnn, rcn_context *ctx) {
    if (!dnn) return;
    if (dnn->stream) dnnl_stream_destroy(dnn->stream);
    if (dnn->engine) dnnl_engine_destroy(dnn->engine);
    rcn__free(ctx, dnn);
}

/* ---- one convolution ------------------------------------------------------------------------- */

#define MAKING "making a convolution"

enum { FORWARD = 0, BACKWARD_INPUT = 1, BACKWARD_WEIGHTS = 2, PASSES = 3 };

/* A kernel of one direction. The memory objects carry descriptions only; pointers are set when it
 * runs. */
typedef struct pass {
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_memory_t in, weights, bias, out, scratch;
} pass;

struct rcn__dnn_conv {
    rcn__dnn *dnn;
    rcn__conv_shape shape;
    pass passes[PASSES];
    /* Reorders between PyTorch's layout and the packed one: to forward, to backward, from gradient.
     * Made on first use, for the slice they were asked for. */
    dnnl_primitive_t reorders[PASSES];
    dnnl_memory_t plain[PASSES], packed[PASSES];
    int64_t total_in[PASSES];
    size_t scratch_bytes, packed_bytes;

    /* oneDNN has no fast kernel for the weights' gradient in three dimensions. With rows of zeros
     * between the slices (rcn__slices_apart) a volume is one tall image, and each slice of the
     * kernel a two-dimensional convolution between that image and the same shifted by slices. */
    rcn__dnn_conv *tall;
    int64_t depth; /* of the kernel that this one's is a slice of; otherwise 1 */
    int64_t slice; /* which */
};

static void destroy_memory(dnnl_memory_t memory) {
    if (memory) dnnl_memory_destroy(memory);
}

void rcn__dnn_conv_destroy(rcn__dnn_conv *conv, rcn_context *ctx) {
    if (!conv) return;
    for (int p = 0; p < PASSES; ++p) {
        pass *one = &conv->passes[p];
        if (one->primitive) dnnl_primitive_destroy(one->primitive);
        if (one->description) dnnl_primitive_desc_destroy(one->description);
        destroy_memory(one->in);
        destroy_memory(one->weights);
        destroy_memory(one->bias);
        destroy_memory(one->out);
        destroy_memory(one->scratch);
        if (conv->reorders[p]) dnnl_primitive_destroy(conv->reorders[p]);
        destroy_memory(conv->plain[p]);
        destroy_memory(conv->packed[p]);
    }
    rcn__dnn_conv_destroy(conv->tall, ctx);
    rcn__free(ctx, conv);
}

static dnnl_format_tag_t tag_of(int dimensions, rcn__layout layout) {
    switch (layout) {
    case RCN_PLANAR: return dimensions == 3 ? dnnl_ncdhw : dnnl_nchw;
    default: return dimensions == 3 ? dnnl_nCdhw8c : dnnl_nChw8c;
    }
}

/* Drops z from a triple for two dimensions. */
static void spatial_of(dnnl_dim_t *out, const int64_t triple[3], int dimensions) {
    for (int d = 0; d < dimensions; ++d) out[d] = triple[3 - dimensions + d];
}

static dnnl_status_t make_memory(dnnl_memory_t *out, const pass *one, rcn__dnn *dnn,
                                 dnnl_query_t what) {
    const const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(one->description, what, 0);
    return dnnl_memory_create(out, md, dnn->engine, DNNL_MEMORY_NONE);
}

static size_t query_bytes(const pass *one, dnnl_query_t what) {
    if (!one->description) return 0;
    return dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(one->description, what, 0));
}

/* The primitive of a description that was just made, and its memory objects. */
static dnnl_status_t finish_pass(rcn__dnn_conv *conv, int which) {
    static const dnnl_query_t in[PASSES] = {dnnl_query_src_md, dnnl_query_diff_src_md,
                                            dnnl_query_src_md};
    static const dnnl_query_t weights[PASSES] = {dnnl_query_weights_md, dnnl_query_weights_md,
                                                 dnnl_query_diff_weights_md};
    static const dnnl_query_t out[PASSES] = {dnnl_query_dst_md, dnnl_query_diff_dst_md,
                                             dnnl_query_diff_dst_md};
    pass *one = &conv->passes[which];
    dnnl_status_t status = dnnl_primitive_create(&one->primitive, one->description);
    if (!status) status = make_memory(&one->in, one, conv->dnn, in[which]);
    if (!status) status = make_memory(&one->weights, one, conv->dnn, weights[which]);
    if (!status) status = make_memory(&one->out, one, conv->dnn, out[which]);
    if (!status) status = make_memory(&one->scratch, one, conv->dnn, dnnl_query_scratchpad_md);
    if (!status && conv->shape.bias && which != BACKWARD_INPUT) {
        const const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(
            one->description, which == FORWARD ? dnnl_query_weights_md : dnnl_query_diff_weights_md,
            1);
        status = dnnl_memory_create(&one->bias, md, conv->dnn->engine, DNNL_MEMORY_NONE);
    }
    if (status) return status;
    const size_t scratch = query_bytes(one, dnnl_query_scratchpad_md);
    const size_t packed = query_bytes(one, weights[which]);
    if (scratch > conv->scratch_bytes) conv->scratch_bytes = scratch;
    if (packed > conv->packed_bytes) conv->packed_bytes = packed;
    return dnnl_success;
}

/* What the passes of a convolution have in common. */
typedef struct conv_parts {
    dnnl_memory_desc_t in, weights, bias, result;
    dnnl_dims_t stride, pad, pad_end;
    dnnl_primitive_attr_t plain, fused; /* fused: with what follows the convolution forward */
} conv_parts;

static void forget_parts(conv_parts *parts) {
    if (parts->fused) dnnl_primitive_attr_destroy(parts->fused);
    if (parts->plain) dnnl_primitive_attr_destroy(parts->plain);
    if (parts->bias) dnnl_memory_desc_destroy(parts->bias);
    if (parts->result) dnnl_memory_desc_destroy(parts->result);
    if (parts->weights) dnnl_memory_desc_destroy(parts->weights);
    if (parts->in) dnnl_memory_desc_destroy(parts->in);
}

/* On failure some of the parts are there. */
static rcn_status describe_memory(conv_parts *parts, rcn_context *ctx,
                                  const rcn__conv_shape *shape) {
    rcn_status status = RCN_OK;
    const int n = shape->dimensions;
    dnnl_dims_t in_dims = {shape->batch, shape->in}, out_dims = {shape->batch, shape->out};
    dnnl_dims_t weight_dims = {shape->out, shape->in};
    const dnnl_dims_t bias_dims = {shape->out};
    spatial_of(in_dims + 2, shape->size, n);
    spatial_of(weight_dims + 2, shape->kernel, n);
    spatial_of(parts->stride, shape->stride, n);
    spatial_of(parts->pad, shape->pad, n);
    for (int d = 0; d < n; ++d) {
        const int64_t stride = parts->stride[d], pad = parts->pad[d];
        out_dims[2 + d] = (in_dims[2 + d] + 2 * pad - weight_dims[2 + d]) / stride + 1;
        /* The padding that is really read behind the last voxel. */
        parts->pad_end[d] =
            (out_dims[2 + d] - 1) * stride + weight_dims[2 + d] - in_dims[2 + d] - pad;
    }
    RCN_DNN(dnnl_memory_desc_create_with_tag(&parts->in, n + 2, in_dims, dnnl_f32,
                                             tag_of(n, shape->layout)),
            MAKING);
    RCN_DNN(dnnl_memory_desc_create_with_tag(&parts->weights, n + 2, weight_dims, dnnl_f32,
                                             dnnl_format_tag_any),
            MAKING);
    RCN_DNN(dnnl_memory_desc_create_with_tag(&parts->result, n + 2, out_dims, dnnl_f32,
                                             tag_of(n, RCN_BLOCKED)),
            MAKING);
    if (shape->bias)
        RCN_DNN(dnnl_memory_desc_create_with_tag(&parts->bias, 1, bias_dims, dnnl_f32, dnnl_a),
                MAKING);
done:
    return status;
}

/* As above. */
static rcn_status make_attributes(conv_parts *parts, rcn_context *ctx,
                                  const rcn__conv_shape *shape) {
    rcn_status status = RCN_OK;
    dnnl_post_ops_t after = NULL;
    RCN_DNN(dnnl_primitive_attr_create(&parts->plain), MAKING);
    RCN_DNN(dnnl_primitive_attr_set_scratchpad_mode(parts->plain, dnnl_scratchpad_mode_user),
            MAKING);
    RCN_DNN(dnnl_primitive_attr_clone(&parts->fused, parts->plain), MAKING);
    RCN_DNN(dnnl_post_ops_create(&after), MAKING);
    if (shape->add) RCN_DNN(dnnl_post_ops_append_sum(after, 1.0f, 0, dnnl_data_type_undef), MAKING);
    if (shape->relu) RCN_DNN(dnnl_post_ops_append_eltwise(after, dnnl_eltwise_relu, 0, 0), MAKING);
    RCN_DNN(dnnl_primitive_attr_set_post_ops(parts->fused, after), MAKING);
done:
    if (after) dnnl_post_ops_destroy(after);
    return status;
}

/* Makes the kernels of `shape` as it is. */
static rcn_status create_kernels(rcn__dnn_conv **out, rcn__dnn *dnn, rcn_context *ctx,
                                 const rcn__conv_shape *shape, int weights_gradient) {
    static const dnnl_dims_t no_dilation = {0, 0, 0};
    const int before = enter_threads(ctx);
    rcn_status status = RCN_OK;
    rcn__dnn_conv *conv = NULL;
    conv_parts p = {0};
    *out = NULL;
    RCN_ALLOC_ZERO(conv, ctx, 1, "a convolution");
    conv->dnn = dnn;
    conv->shape = *shape;
    conv->depth = 1;
    RCN_TRY(describe_memory(&p, ctx, shape));
    RCN_TRY(make_attributes(&p, ctx, shape));

    pass *passes = conv->passes;
    RCN_DNN(dnnl_convolution_forward_primitive_desc_create(
                &passes[FORWARD].description, dnn->engine,
                shape->training ? dnnl_forward_training : dnnl_forward_inference,
                dnnl_convolution_direct, p.in, p.weights, p.bias, p.result, p.stride, no_dilation,
                p.pad, p.pad_end, p.fused),
            MAKING);
    RCN_DNN(finish_pass(conv, FORWARD), MAKING);
    const dnnl_primitive_desc_t hint = passes[FORWARD].description;
    if (shape->training && shape->input_gradient) {
        RCN_DNN(dnnl_convolution_backward_data_primitive_desc_create(
                    &passes[BACKWARD_INPUT].description, dnn->engine, dnnl_convolution_direct, p.in,
                    p.weights, p.result, p.stride, no_dilation, p.pad, p.pad_end, hint, p.plain),
                MAKING);
        RCN_DNN(finish_pass(conv, BACKWARD_INPUT), MAKING);
    }
    if (shape->training && weights_gradient) {
        RCN_DNN(dnnl_convolution_backward_weights_primitive_desc_create(
                    &passes[BACKWARD_WEIGHTS].description, dnn->engine, dnnl_convolution_direct,
                    p.in, p.weights, p.bias, p.result, p.stride, no_dilation, p.pad, p.pad_end,
                    hint, p.plain),
                MAKING);
        RCN_DNN(finish_pass(conv, BACKWARD_WEIGHTS), MAKING);
    }
    *out = conv;
    conv = NULL;
done:
    forget_parts(&p);
    rcn__dnn_conv_destroy(conv, ctx);
    leave_threads(ctx, before);
    return status;
}

/* Floats of a tensor with its slices apart, and of one of its slices. */
static int64_t apart_floats(const rcn__conv_shape *shape, int64_t channels) {
    return shape->batch * channels * (shape->size[0] + 2) * (shape->size[1] + 1) * shape->size[2];
}

static int64_t slice_floats(const rcn__conv_shape *shape) {
    return (shape->size[1] + 1) * shape->size[2] * (shape->layout == RCN_BLOCKED ? RCN_LANES : 1);
}

rcn_status rcn__dnn_conv_create(rcn__dnn_conv **out, rcn__dnn *dnn, rcn_context *ctx,
                                const rcn__conv_shape *shape) {
    rcn__conv_shape flat = *shape;
    rcn_status status = RCN_OK;
    rcn__dnn_conv *conv = NULL;
    int unit = 1;
    *out = NULL;
    for (int d = 0; d < 3; ++d) unit &= shape->kernel[d] == 1 && shape->stride[d] == 1;
    if (unit) { /* any number of voxels in a row */
        flat.dimensions = 2;
        flat.size[1] *= flat.size[0];
        flat.size[0] = 1;
    }
    const int apart = flat.dimensions == 3 && flat.training;
    RCN_TRY(create_kernels(&conv, dnn, ctx, &flat, !apart));
    if (apart) {
        rcn__conv_shape tall = flat;
        tall.dimensions = 2;
        tall.size[0] = tall.kernel[0] = 1;
        tall.size[1] = (flat.size[0] + 2) * (flat.size[1] + 1);
        tall.pad[0] = tall.input_gradient = tall.bias = tall.add = tall.relu = 0;
        RCN_TRY(create_kernels(&conv->tall, dnn, ctx, &tall, 1));
        conv->tall->depth = flat.kernel[0];
        if (conv->tall->packed_bytes > conv->packed_bytes)
            conv->packed_bytes = conv->tall->packed_bytes;
        const int64_t floats = apart_floats(&flat, flat.in) + 2 * slice_floats(&flat) +
                               apart_floats(&flat, flat.out) + RCN_LANES;
        const size_t bytes =
            (conv->tall->scratch_bytes + 63) / 64 * 64 + (size_t)floats * sizeof(float);
        if (bytes > conv->scratch_bytes) conv->scratch_bytes = bytes;
    }
    *out = conv;
    conv = NULL;
done:
    rcn__dnn_conv_destroy(conv, ctx);
    return status;
}

size_t rcn__dnn_conv_scratch_bytes(const rcn__dnn_conv *conv) { return conv->scratch_bytes; }

size_t rcn__dnn_conv_packed_bytes(const rcn__dnn_conv *conv) { return conv->packed_bytes; }

/* Makes the reorder between the slice of PyTorch's weights and the packed ones of pass `which`. */
static rcn_status make_reorder(rcn__dnn_conv *conv, rcn_context *ctx, int which, int64_t total_in) {
    const char *what = "preparing weights";
    const rcn__conv_shape *shape = &conv->shape;
    const int n = shape->dimensions;
    rcn_status status = RCN_OK;
    dnnl_memory_desc_t plain = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_dims_t dims = {shape->out, shape->in}, strides;
    if (conv->reorders[which] && conv->total_in[which] == total_in) return RCN_OK;
    if (conv->reorders[which]) dnnl_primitive_destroy(conv->reorders[which]);
    destroy_memory(conv->plain[which]);
    destroy_memory(conv->packed[which]);
    conv->reorders[which] = NULL;
    conv->plain[which] = conv->packed[which] = NULL;

    spatial_of(dims + 2, shape->kernel, n);
    strides[n + 1] = 1;
    for (int d = n; d >= 0; --d) strides[d] = strides[d + 1] * (d == 0 ? total_in : dims[d + 1]);
    strides[1] *= conv->depth;
    strides[0] *= conv->depth;
    RCN_DNN(dnnl_memory_desc_create_with_strides(&plain, n + 2, dims, dnnl_f32, strides), what);
    const const_dnnl_memory_desc_t packed = dnnl_primitive_desc_query_md(
        conv->passes[which].description,
        which == BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    const int out = which == BACKWARD_WEIGHTS;
    RCN_DNN(dnnl_primitive_attr_create(&attributes), what);
    RCN_DNN(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_library),
            what);
    RCN_DNN(dnnl_reorder_primitive_desc_create(&description, out ? packed : plain,
                                               conv->dnn->engine, out ? plain : packed,
                                               conv->dnn->engine, attributes),
            what);
    RCN_DNN(dnnl_primitive_create(&conv->reorders[which], description), what);
    RCN_DNN(dnnl_memory_create(&conv->plain[which], plain, conv->dnn->engine, DNNL_MEMORY_NONE),
            what);
    RCN_DNN(dnnl_memory_create(&conv->packed[which], packed, conv->dnn->engine, DNNL_MEMORY_NONE),
            what);
    conv->total_in[which] = total_in;
done:
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    if (description) dnnl_primitive_desc_destroy(description);
    if (plain) dnnl_memory_desc_destroy(plain);
    return status;
}

static rcn_status run_reorder(rcn__dnn_conv *conv, rcn_context *ctx, int which, void *packed,
                              const float *weights, int64_t first_in, int64_t total_in) {
    const char *what = "preparing weights";
    const rcn__conv_shape *shape = &conv->shape;
    const int before = enter_threads(ctx);
    rcn_status status = RCN_OK;
    const int64_t taps = shape->kernel[0] * shape->kernel[1] * shape->kernel[2];
    const float *slice = weights + (first_in * conv->depth + conv->slice) * taps;
    RCN_TRY(make_reorder(conv, ctx, which, total_in));
    RCN_DNN(dnnl_memory_set_data_handle(conv->plain[which], (void *)slice), what);
    RCN_DNN(dnnl_memory_set_data_handle(conv->packed[which], packed), what);
    const int out = which == BACKWARD_WEIGHTS;
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_FROM, out ? conv->packed[which] : conv->plain[which]},
        {DNNL_ARG_TO, out ? conv->plain[which] : conv->packed[which]}};
    RCN_DNN(dnnl_primitive_execute(conv->reorders[which], conv->dnn->stream, 2, arguments), what);
    RCN_DNN(dnnl_stream_wait(conv->dnn->stream), what);
done:
    leave_threads(ctx, before);
    return status;
}

rcn_status rcn__dnn_conv_pack(void *packed, rcn__dnn_conv *conv, rcn_context *ctx,
                              const float *weights, int64_t first_in, int64_t total_in,
                              int backward) {
    return run_reorder(conv, ctx, backward ? BACKWARD_INPUT : FORWARD, packed, weights, first_in,
                       total_in);
}

/* Sets the pointers and runs one direction. */
static rcn_status run_pass(rcn__dnn_conv *conv, rcn_context *ctx, int which, const float *in,
                           const void *weights, const float *bias, const float *out,
                           void *scratch) {
    static const int arguments_of[PASSES][4] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
        {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, 0},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_BIAS}};
    const char *what = "running a convolution";
    const int before = enter_threads(ctx);
    const int *names = arguments_of[which];
    pass *one = &conv->passes[which];
    rcn_status status = RCN_OK;
    int count = 4;
    dnnl_exec_arg_t arguments[5] = {{names[0], one->in},
                                    {names[1], one->weights},
                                    {names[2], one->out},
                                    {DNNL_ARG_SCRATCHPAD, one->scratch}};
    RCN_DNN(dnnl_memory_set_data_handle(one->in, (void *)in), what);
    RCN_DNN(dnnl_memory_set_data_handle(one->weights, (void *)weights), what);
    RCN_DNN(dnnl_memory_set_data_handle(one->out, (void *)out), what);
    RCN_DNN(dnnl_memory_set_data_handle(one->scratch, scratch), what);
    if (one->bias) {
        RCN_DNN(dnnl_memory_set_data_handle(one->bias, (void *)bias), what);
        arguments[count].arg = names[3];
        arguments[count++].memory = one->bias;
    }
    RCN_DNN(dnnl_primitive_execute(one->primitive, conv->dnn->stream, count, arguments), what);
    RCN_DNN(dnnl_stream_wait(conv->dnn->stream), what);
done:
    leave_threads(ctx, before);
    return status;
}

rcn_status rcn__dnn_conv_forward(float *out, rcn__dnn_conv *conv, rcn_context *ctx, const float *in,
                                 const void *packed, const float *bias, void *scratch) {
    return run_pass(conv, ctx, FORWARD, in, packed, bias, out, scratch);
}

rcn_status rcn__dnn_conv_backward_input(float *din, rcn__dnn_conv *conv, rcn_context *ctx,
                                        const float *dout, const void *packed, void *scratch) {
    return run_pass(conv, ctx, BACKWARD_INPUT, din, packed, NULL, dout, scratch);
}

/* The weights' gradient in three dimensions, slice by slice of the kernel. */
static rcn_status backward_weights_tall(float *dweights, rcn__dnn_conv *conv, rcn_context *ctx,
                                        const float *in, const float *dout, int64_t first_in,
                                        int64_t total_in, void *packed, void *scratch) {
    const rcn__conv_shape *shape = &conv->shape;
    rcn__dnn_conv *tall = conv->tall;
    rcn_status status = RCN_OK;
    const int64_t lanes = shape->layout == RCN_BLOCKED ? RCN_LANES : 1;
    const int64_t slice = slice_floats(shape), in_floats = apart_floats(shape, shape->in);
    float *apart_out = (float *)((char *)scratch + (tall->scratch_bytes + 63) / 64 * 64);
    float *before = apart_out + apart_floats(shape, shape->out);
    float *apart_in = before + slice, *behind = apart_in + in_floats;
    memset(before, 0, (size_t)slice * sizeof *before);
    memset(behind, 0, (size_t)slice * sizeof *behind);
    rcn__slices_apart(apart_in, ctx, in, shape->batch * shape->in / lanes, shape->size, lanes);
    rcn__slices_apart(apart_out, ctx, dout, shape->batch * shape->out / RCN_LANES, shape->size,
                      RCN_LANES);
    for (int64_t z = 0; z < shape->kernel[0]; ++z) {
        tall->slice = z;
        RCN_TRY(run_pass(tall, ctx, BACKWARD_WEIGHTS, apart_in + (z - shape->pad[0]) * slice,
                         packed, NULL, apart_out, scratch));
        RCN_TRY(run_reorder(tall, ctx, BACKWARD_WEIGHTS, packed, dweights, first_in, total_in));
    }
done:
    return status;
}

rcn_status rcn__dnn_conv_backward_weights(float *dweights, float *dbias, rcn__dnn_conv *conv,
                                          rcn_context *ctx, const float *in, const float *dout,
                                          int64_t first_in, int64_t total_in, void *packed,
                                          void *scratch) {
    rcn_status status = RCN_OK;
    if (conv->tall)
        return backward_weights_tall(dweights, conv, ctx, in, dout, first_in, total_in, packed,
                                     scratch);
    RCN_TRY(run_pass(conv, ctx, BACKWARD_WEIGHTS, in, packed, dbias, dout, scratch));
    RCN_TRY(run_reorder(conv, ctx, BACKWARD_WEIGHTS, packed, dweights, first_in, total_in));
done:
    return status;
}
