// SPDX-License-Identifier: Apache-2.0
#include "rcn_net_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int add_parameter(rcn_net *net, const char *name, const char *suffix,
                         rcn_parameter_kind kind, int dimensions, const int64_t *shape) {
    assert(net->parameter_count < RCN_MAX_PARAMETERS);
    rcn_parameter *parameter = &net->parameters[net->parameter_count];
    snprintf(parameter->name, sizeof parameter->name, "%s.%s", name, suffix);
    parameter->kind = kind;
    parameter->dimensions = dimensions;
    parameter->count = 1;
    for (int d = 0; d < dimensions; ++d) {
        parameter->shape[d] = shape[d];
        parameter->count *= shape[d];
    }
    return net->parameter_count++;
}

static int add_tensor(rcn_net *net, int64_t channels, const int64_t stride[3]) {
    assert(net->tensor_count < RCN_MAX_TENSORS);
    rcn__graph_tensor *tensor = &net->tensors[net->tensor_count];
    tensor->channels = channels;
    tensor->producer = net->op_count - 1;
    memcpy(tensor->stride, stride, sizeof tensor->stride);
    for (int d = 0; d < 3; ++d)
        if (stride[d] > net->multiple[d]) net->multiple[d] = stride[d];
    return net->tensor_count++;
}

static rcn__op *add_op(rcn_net *net, rcn__op_kind kind, int in, int other) {
    assert(net->op_count < RCN_MAX_TENSORS);
    rcn__op *op = &net->ops[net->op_count++];
    op->kind = kind;
    op->in[0] = in;
    op->in[1] = other;
    op->inputs = other == RCN_NONE ? 1 : 2;
    op->out = op->weight = op->bias = op->mean = op->variance = op->counter = RCN_NONE;
    return op;
}

/* Writes the axes that the network has (2-D networks have no z) and returns how many. */
static int put_axes(int64_t *out, const rcn_net *net, const int64_t at[3]) {
    for (int d = 0; d < net->dimensions; ++d) out[d] = at[3 - net->dimensions + d];
    return net->dimensions;
}

int rcn__graph_conv(rcn_net *net, const char *name, int in, int other, int64_t out,
                    rcn__axes kernel, rcn__axes stride, int bias) {
    const rcn__graph_tensor *from = &net->tensors[in];
    const int64_t channels =
        from->channels + (other == RCN_NONE ? 0 : net->tensors[other].channels);
    int64_t shape[5] = {out, channels}, reached[3];
    rcn__op *op = add_op(net, RCN_OP_CONV, in, other);
    const int dimensions = 2 + put_axes(shape + 2, net, kernel.at);
    for (int d = 0; d < 3; ++d) {
        op->kernel[d] = kernel.at[d];
        op->stride[d] = stride.at[d];
        op->pad[d] = kernel.at[d] / 2;
        reached[d] = from->stride[d] * stride.at[d];
    }
    op->weight = add_parameter(net, name, "weight", RCN_TRAINED, dimensions, shape);
    if (bias) op->bias = add_parameter(net, name, "bias", RCN_TRAINED, 1, shape);
    return op->out = add_tensor(net, out, reached);
}

int rcn__graph_transposed(rcn_net *net, const char *name, int in, int64_t out, rcn__axes stride) {
    const rcn__graph_tensor *from = &net->tensors[in];
    const int64_t taps = stride.at[0] * stride.at[1] * stride.at[2];
    int64_t shape[5] = {from->channels, out}, reached[3];
    rcn__op *conv = add_op(net, RCN_OP_CONV, in, RCN_NONE);
    const int dimensions = 2 + put_axes(shape + 2, net, stride.at);
    conv->transposed = 1;
    for (int d = 0; d < 3; ++d) {
        conv->kernel[d] = conv->stride[d] = 1;
        reached[d] = from->stride[d] / stride.at[d];
    }
    conv->weight = add_parameter(net, name, "weight", RCN_TRAINED, dimensions, shape);
    conv->out = add_tensor(net, out * taps, from->stride);
    rcn__op *shuffle = add_op(net, RCN_OP_SHUFFLE, conv->out, RCN_NONE);
    memcpy(shuffle->stride, stride.at, sizeof shuffle->stride);
    shuffle->bias = add_parameter(net, name, "bias", RCN_TRAINED, 1, shape + 1);
    return shuffle->out = add_tensor(net, out, reached);
}

int rcn__graph_norm(rcn_net *net, const char *name, int in, int residual, rcn__norm_kind kind,
                    int64_t groups, int relu) {
    const int64_t channels = net->tensors[in].channels;
    rcn__op *op = add_op(net, RCN_OP_NORM, in, residual);
    op->norm = kind;
    op->groups = groups;
    op->relu = relu;
    op->weight = add_parameter(net, name, "weight", RCN_TRAINED, 1, &channels);
    op->bias = add_parameter(net, name, "bias", RCN_TRAINED, 1, &channels);
    if (kind == RCN_CELL_BATCH) {
        op->mean = add_parameter(net, name, "running_mean", RCN_STATISTIC, 1, &channels);
        op->variance = add_parameter(net, name, "running_var", RCN_STATISTIC, 1, &channels);
        op->counter = add_parameter(net, name, "num_batches_tracked", RCN_COUNTER, 0, NULL);
    }
    return op->out = add_tensor(net, channels, net->tensors[in].stride);
}

int rcn__graph_pool(rcn_net *net, int in, rcn__axes kernel, rcn__axes stride, rcn__axes pad) {
    int64_t reached[3];
    rcn__op *op = add_op(net, RCN_OP_POOL, in, RCN_NONE);
    for (int d = 0; d < 3; ++d) {
        op->kernel[d] = kernel.at[d];
        op->stride[d] = stride.at[d];
        op->pad[d] = pad.at[d];
        reached[d] = net->tensors[in].stride[d] * stride.at[d];
    }
    return op->out = add_tensor(net, net->tensors[in].channels, reached);
}

int rcn__graph_nearest_add(rcn_net *net, int small, int large) {
    rcn__op *op = add_op(net, RCN_OP_NEAREST, small, large);
    return op->out = add_tensor(net, net->tensors[large].channels, net->tensors[large].stride);
}

int rcn__graph_bilinear(rcn_net *net, int in, int64_t factor) {
    const int64_t *stride = net->tensors[in].stride;
    const int64_t reached[3] = {stride[0], stride[1] / factor, stride[2] / factor};
    rcn__op *op = add_op(net, RCN_OP_BILINEAR, in, RCN_NONE);
    op->factor = factor;
    return op->out = add_tensor(net, net->tensors[in].channels, reached);
}

int rcn__graph_merge(rcn_net *net, const int *in, int count) {
    rcn__op *op = add_op(net, RCN_OP_MERGE, in[0], in[1]);
    assert(count <= RCN_MAX_INPUTS);
    for (int k = 0; k < count; ++k) op->in[k] = in[k];
    op->inputs = count;
    return op->out = add_tensor(net, net->tensors[in[0]].channels, net->tensors[in[0]].stride);
}

void rcn__graph_output(rcn_net *net, int in, int64_t factor) {
    add_op(net, RCN_OP_OUTPUT, in, RCN_NONE)->factor = factor;
}
