// SPDX-License-Identifier: Apache-2.0
/* Plans: the kernels of a network for one input shape, and where every tensor lies.
 *
 * Steps are numbered: operation i runs at step i forward, and backward after all of them, the last
 * first. Every buffer has a first and a last step; buffers whose steps do not overlap share memory.
 * A norm's output is not made at all if those who read it can normalize what they read: its input
 * is kept for the backward pass anyway, so that halves the memory of training.
 *
 * The parameters' gradients lie in one block at the start of the same memory. Each takes its place
 * there only when the backward pass makes it; until then what the last layers keep lies there.
 *
 * For prediction, batch norms disappear into the convolutions before them, with their residual sums
 * and ReLUs, and operations on large maps run row by row (rcn_net_rows.c).
 */
#include "rcn_net_plan.h"

#include <assert.h>
#include <string.h>

#include "rcn_rng.h"
#include "rcn_comm_private.h"

size_t rcn__plan_bytes(const rcn__plan *plan) { return plan->bytes; }

int rcn__plan_sweep_count(const rcn__plan *plan) { return plan->sweep_count; }

void rcn__plan_destroy(rcn__plan *plan, rcn_net *net) {
    if (!plan) return;
    for (int i = 0; i < net->op_count; ++i) rcn__conv_destroy(plan->stages[i].conv, net->ctx);
    rcn__free(net->ctx, plan->statistics);
    rcn__free(net->ctx, plan->shared);
    rcn__free(net->ctx, plan->prepared);
    rcn__free(net->ctx, plan);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

int rcn__plan_add_buffer(rcn__plan *plan, size_t bytes, int step) {
    assert(plan->buffer_count < MAX_BUFFERS);
    buffer *b = &plan->buffers[plan->buffer_count];
    b->bytes = rounded(bytes);
    b->first = b->last = step;
    return plan->buffer_count++;
}

void rcn__plan_use(rcn__plan *plan, int index, int step) {
    if (index == RCN_NONE) return;
    buffer *b = &plan->buffers[index];
    if (step < b->first) b->first = step;
    if (step > b->last) b->last = step;
}

void rcn__plan_need_own(rcn__plan *plan, size_t bytes) {
    if (bytes > plan->own_bytes) plan->own_bytes = rounded(bytes);
}

rcn__scratch rcn__plan_scratch(const rcn__plan *plan, const rcn_net *net, int index, int pass) {
    const rcn__scratch scratch = {rcn__plan_at(plan, net, plan->stages[index].scratch[pass]),
                                  (char *)net->arena + plan->own, plan->own_bytes};
    return scratch;
}

static size_t tensor_bytes(const rcn__plan *plan, int tensor) {
    const rcn__extent *extent = &plan->places[tensor].extent;
    if (tensor == 0 && plan->input_layout == RCN_PLANAR)
        return (size_t)(extent->batch * extent->channels * rcn__extent_voxels(extent)) *
               sizeof(float);
    return (size_t)rcn__extent_floats(extent) * sizeof(float);
}

/* Adds a buffer to those that have their place, which are sorted by it. */
static void insert_placed(int *placed, int count, const rcn__plan *plan, int index) {
    int at = count;
    for (; at > 0 && plan->buffers[placed[at - 1]].offset > plan->buffers[index].offset; --at)
        placed[at] = placed[at - 1];
    placed[at] = index;
}

/* The lowest place that is free during a buffer's steps. */
static size_t find_place(const rcn__plan *plan, const int *placed, int count, const buffer *b) {
    size_t offset = 0;
    /* `placed` is sorted by offset: go up until a gap is wide enough. */
    for (int k = 0; k < count; ++k) {
        const buffer *other = &plan->buffers[placed[k]];
        if (other->last < b->first || other->first > b->last) continue;
        if (other->offset >= offset + b->bytes) break;
        if (other->offset + other->bytes > offset) offset = other->offset + other->bytes;
    }
    return offset;
}

/* Gives each buffer its place, the largest first; plan->bytes is what all of them need. */
static rcn_status place_buffers(rcn__plan *plan, rcn_context *ctx) {
    rcn_status status = RCN_OK;
    int *order = NULL, *placed = NULL, ordered = 0, count = 0;
    RCN_ALLOC(order, ctx, plan->buffer_count, "planning memory");
    RCN_ALLOC(placed, ctx, plan->buffer_count, "planning memory");
    for (int i = 0; i < plan->buffer_count; ++i) {
        int at = ordered;
        if (plan->buffers[i].is_fixed) {
            insert_placed(placed, count++, plan, i);
            continue;
        }
        for (; at > 0 && plan->buffers[order[at - 1]].bytes < plan->buffers[i].bytes; --at)
            order[at] = order[at - 1];
        order[at] = i;
        ++ordered;
    }
    for (int i = 0; i < ordered; ++i) {
        buffer *b = &plan->buffers[order[i]];
        b->offset = find_place(plan, placed, count, b);
        insert_placed(placed, count++, plan, order[i]);
    }
    for (int i = 0; i < count; ++i) {
        const buffer *b = &plan->buffers[i];
        if (b->offset + b->bytes > plan->bytes) plan->bytes = b->offset + b->bytes;
    }
done:
    rcn__free(ctx, order);
    rcn__free(ctx, placed);
    return status;
}

/* ---- making a plan: lifetimes ---------------------------------------------------------------- */

int rcn__plan_is_given(const rcn__plan *plan, const rcn_net *net, int tensor) {
    return tensor == 0 || net->tensors[tensor].producer < plan->first;
}

/* The norm that the readers of a tensor apply when they read it, or RCN_NONE. */
static int norm_on_reading(const rcn__plan *plan, const rcn_net *net, int tensor) {
    const int producer = net->tensors[tensor].producer;
    if (rcn__plan_is_given(plan, net, tensor)) return RCN_NONE;
    const rcn__op *op = &net->ops[producer];
    if (op->kind != RCN_OP_NORM || op->inputs != 1 || plan->stages[producer].skipped)
        return RCN_NONE;
    /* What an encoder gives to a decoder elsewhere has to be there. */
    if (!plan->training && rcn__is_feature(net, tensor)) return RCN_NONE;
    for (int i = producer + 1; i < net->op_count; ++i)
        for (int k = 0; k < net->ops[i].inputs; ++k)
            if (net->ops[i].in[k] == tensor && net->ops[i].kind != RCN_OP_CONV &&
                net->ops[i].kind != RCN_OP_POOL)
                return RCN_NONE;
    return producer;
}

static void plan_training_values(rcn__plan *plan, const rcn_net *net) {
    place *places = plan->places;
    for (int t = 1; plan->first && t < net->tensor_count; ++t)
        if (rcn__is_feature(net, t))
            places[t].value = rcn__plan_add_buffer(plan, tensor_bytes(plan, t), plan->first);
    for (int i = plan->first; i < net->op_count; ++i) {
        const rcn__op *op = &net->ops[i];
        stage *s = &plan->stages[i];
        for (int k = 0; k < op->inputs; ++k) {
            const int in = op->in[k];
            rcn__plan_use(plan, places[in].value, i);
            if (op->kind == RCN_OP_CONV) rcn__plan_use(plan, places[in].value, s->back);
        }
        if (op->kind == RCN_OP_NORM) rcn__plan_use(plan, places[op->in[0]].value, s->back);
        const int out = s->writes;
        if (out == RCN_NONE || s->skipped) continue;
        if (op->kind == RCN_OP_NEAREST)
            places[out].value = places[op->in[1]].value;
        else if (op->kind == RCN_OP_MERGE || places[out].norm != RCN_NONE)
            places[out].value = places[op->in[0]].value;
        else
            places[out].value = rcn__plan_add_buffer(plan, tensor_bytes(plan, out), i);
        if (op->kind == RCN_OP_NORM && op->inputs == 2)
            rcn__plan_use(plan, places[op->out].value, s->back);
        if (op->kind == RCN_OP_POOL) {
            s->choice = rcn__plan_add_buffer(plan, tensor_bytes(plan, op->out) / 4, i);
            rcn__plan_use(plan, s->choice, s->back);
        }
    }
}

static void plan_gradients(rcn__plan *plan, const rcn_net *net) {
    place *places = plan->places;
    for (int i = net->op_count - 1; i >= plan->first; --i) {
        const rcn__op *op = &net->ops[i];
        const int step = plan->stages[i].back;
        if (op->out != RCN_NONE) rcn__plan_use(plan, places[op->out].gradient, step);
        for (int k = 0; k < op->inputs; ++k) {
            place *in = &places[op->in[k]];
            stage *s = &plan->stages[i];
            if (rcn__plan_is_given(plan, net, op->in[k])) continue; /* needs none */
            const int shares = (op->kind == RCN_OP_NORM && k == 0) ||
                               (op->kind == RCN_OP_NEAREST && k == 1) || op->kind == RCN_OP_MERGE;
            if (in->gradient == RCN_NONE) {
                in->gradient =
                    shares ? places[op->out].gradient
                           : rcn__plan_add_buffer(plan, tensor_bytes(plan, op->in[k]), step);
            } else {
                assert(!shares);
                s->sums[k] = 1;
            }
            rcn__plan_use(plan, in->gradient, step);
        }
    }
}

/* The parameters' gradients: each has its place from the step on that makes it. */
static void plan_parameter_gradients(rcn__plan *plan, const rcn_net *net) {
    plan->bytes = (size_t)net->trained_floats * sizeof(float);
    for (int i = plan->first; i < net->op_count; ++i) {
        const int own[2] = {net->ops[i].weight, net->ops[i].bias};
        for (int k = 0; k < 2; ++k) {
            if (own[k] == RCN_NONE) continue;
            const rcn_parameter *p = &net->parameters[own[k]];
            const int made =
                rcn__plan_add_buffer(plan, (size_t)p->count * sizeof(float), plan->stages[i].back);
            plan->buffers[made].offset = (size_t)p->offset * sizeof(float);
            plan->buffers[made].is_fixed = 1;
            rcn__plan_use(plan, made,
                          2 * net->op_count); /* the optimizer reads them after the last step */
        }
    }
}

/* The last operation that reads a tensor. */
static int last_reader(const rcn_net *net, int tensor) {
    for (int i = net->op_count - 1; i >= 0; --i)
        for (int k = 0; k < net->ops[i].inputs; ++k)
            if (net->ops[i].in[k] == tensor) return i;
    return RCN_NONE;
}

static void plan_prediction_values(rcn__plan *plan, const rcn_net *net) {
    place *places = plan->places;
    for (int i = 0; i < net->op_count; ++i) {
        const rcn__op *op = &net->ops[i];
        stage *s = &plan->stages[i];
        if (s->skipped) continue;
        for (int k = 0; k < op->inputs; ++k) rcn__plan_use(plan, places[op->in[k]].value, i);
        const int out = s->writes;
        if (out == RCN_NONE) continue;
        const rcn__op *norm = s->folds == RCN_NONE ? NULL : &net->ops[s->folds];
        const int residual = norm && norm->inputs == 2 ? norm->in[1] : RCN_NONE;
        s->residual = residual;
        if (residual != RCN_NONE) rcn__plan_use(plan, places[residual].value, i);
        if (residual != RCN_NONE && last_reader(net, residual) == s->folds) {
            places[out].value = places[residual].value; /* added to in place */
        } else if (op->kind == RCN_OP_NORM &&
                   (places[out].norm != RCN_NONE || last_reader(net, op->in[0]) == i)) {
            places[out].value = places[op->in[0]].value;
        } else if (op->kind == RCN_OP_NEAREST) {
            places[out].value = places[op->in[1]].value;
        } else if (op->kind == RCN_OP_MERGE) {
            places[out].value = places[op->in[0]].value;
        } else if (!places[out].window) {
            places[out].value = rcn__plan_add_buffer(plan, tensor_bytes(plan, out), i);
        }
    }
}

/* Finds the batch norms that go into the convolutions before them. */
static void plan_folding(rcn__plan *plan, const rcn_net *net) {
    for (int i = 0; i < net->op_count; ++i) {
        const rcn__op *op = &net->ops[i];
        if (op->kind != RCN_OP_NORM || op->norm != RCN_CELL_BATCH) continue;
        const int conv = net->tensors[op->in[0]].producer;
        if (net->ops[conv].kind != RCN_OP_CONV) continue;
        plan->stages[conv].folds = i;
        plan->stages[conv].writes = op->out;
        plan->stages[i].skipped = 1;
    }
}

/* A convolution that is the first half of a transposed one writes the result of the whole. */
static void plan_spreading(rcn__plan *plan, const rcn_net *net) {
    for (int i = plan->first; i < net->op_count; ++i) {
        const rcn__op *op = &net->ops[i];
        if (op->kind != RCN_OP_SHUFFLE) continue;
        plan->stages[net->tensors[op->in[0]].producer].writes = op->out;
        plan->stages[i].skipped = 1;
    }
}

/* Up to three channels stay planes; more are blocked and fill their last block with zeros. */
static int64_t stored_channels(const rcn_net *net) {
    const int64_t channels = net->options.channels;
    return channels <= 3 ? channels : (channels + RCN_LANES - 1) / RCN_LANES * RCN_LANES;
}

/* ---- making a plan: kernels ------------------------------------------------------------------ */

/* Non-zero when a convolution's weights are not stored as its kernel wants them. */
static int is_reshaped(const rcn__plan *plan, const rcn_net *net, const rcn__op *op) {
    return op->transposed ||
           (op->in[0] == 0 && plan->places[0].extent.channels != net->options.channels);
}

static rcn_status make_conv(rcn__plan *plan, rcn_net *net, int index) {
    const rcn__op *op = &net->ops[index];
    stage *s = &plan->stages[index];
    rcn_status status = RCN_OK;
    const rcn__extent *in = &plan->places[op->in[0]].extent;
    rcn__conv_shape shape = {.batch = in->batch,
                             .in = {in->channels},
                             .out = plan->places[op->out].extent.channels,
                             .layout = op->in[0] == 0 ? plan->input_layout : RCN_BLOCKED,
                             .training = plan->training,
                             .copies_weights = !plan->training && is_reshaped(plan, net, op)};
    if (op->inputs > 1) shape.in[1] = plan->places[op->in[1]].extent.channels;
    for (int k = 0; k < op->inputs; ++k)
        shape.input_gradient |= plan->training && !rcn__plan_is_given(plan, net, op->in[k]);
    memcpy(shape.size, in->size, sizeof shape.size);
    memcpy(shape.kernel, op->kernel, sizeof shape.kernel);
    memcpy(shape.stride, op->stride, sizeof shape.stride);
    memcpy(shape.pad, op->pad, sizeof shape.pad);
    if (op->transposed) memcpy(shape.spread, net->ops[index + 1].stride, sizeof shape.spread);
    RCN_TRY(rcn__conv_create(&s->conv, net->ctx, &shape));
    for (int pass = FORWARD; pass <= (plan->training ? BACKWARD : FORWARD); ++pass) {
        const int step = pass == FORWARD ? index : s->back;
        const rcn__scratch_bytes scratch = rcn__conv_scratch_bytes(s->conv);
        s->scratch[pass] = rcn__plan_add_buffer(plan, scratch.shared, step);
        rcn__plan_need_own(plan, scratch.own);
        if (plan->training)
            s->weights[pass] = rcn__plan_add_buffer(plan, rcn__conv_packed_bytes(s->conv), step);
    }
    const rcn__op *next = index + 1 < net->op_count ? &net->ops[index + 1] : op;
    if (plan->training && next->kind == RCN_OP_NORM && next->norm == RCN_CELL_BATCH &&
        next->in[0] == op->out)
        s->tally_rows = rcn__conv_tally_rows(s->conv);
    const size_t tally = (size_t)(s->tally_rows * 2 * shape.out) * sizeof(float);
    if (tally > plan->partial) plan->partial = tally;
    /* Weights that are not stored as the kernels want them, and the factors of a norm. */
    size_t plain = (size_t)net->parameters[op->weight].count * sizeof(float);
    if (op->in[0] == 0)
        plain = plain / (size_t)net->options.channels * (size_t)stored_channels(net);
    plain = rounded(plain);
    if ((op->transposed || op->in[0] == 0) && plain > plan->reshaped) plan->reshaped = plain;
    const size_t scale = rounded((size_t)shape.out * sizeof(float));
    if (s->folds != RCN_NONE && scale > plan->scale) plan->scale = scale;
done:
    return status;
}

/* One block for the small numbers that norms and dropout keep between steps. */
static rcn_status make_statistics(rcn__plan *plan, rcn_net *net) {
    rcn_status status = RCN_OK;
    char *memory = NULL;
    for (int fill = 0; fill < 2; ++fill) {
        size_t at = 0;
        for (int i = 0; i < net->op_count; ++i) {
            const rcn__op *op = &net->ops[i];
            stage *s = &plan->stages[i];
            if (s->skipped || (op->kind != RCN_OP_NORM && op->kind != RCN_OP_MERGE)) continue;
            const rcn__extent *extent = &plan->places[op->out].extent;
            const size_t count = (size_t)(extent->batch * extent->channels);
            const size_t floats = rounded(count * sizeof(float));
            if (op->kind == RCN_OP_MERGE) {
                if (fill) s->factors = (float *)(memory + at);
                at += floats;
                continue;
            }
            if (fill) {
                s->norm.mean = (double *)(memory + at);
                s->norm.rstd = (double *)(memory + at + rounded(count * sizeof(double)));
                float *numbers = (float *)(memory + at + 2 * rounded(count * sizeof(double)));
                s->norm.scale = numbers;
                s->norm.shift = numbers + floats / sizeof(float);
                s->norm.coefficients = s->norm.shift + floats / sizeof(float);
            }
            at += 2 * rounded(count * sizeof(double)) + 2 * floats +
                  rounded(3 * count * sizeof(float));
        }
        if (!fill) {
            RCN_TRY(rcn__alloc_zero((void **)&memory, net->ctx, (int64_t)at, 1,
                                    "the statistics of norms"));
            plan->statistics = memory;
        }
    }
done:
    return status;
}

static void need_partials(rcn__plan *plan, const rcn__extent *extent) {
    const size_t bytes = (size_t)rcn__norm_partials(extent) * sizeof(double);
    if (bytes > plan->partial) plan->partial = bytes;
}

/* What follows from the graph and the shape alone: extents of tensors, sizes of layers, steps. */
static void describe(rcn__plan *plan, const rcn_net *net) {
    for (int t = 0; t < net->tensor_count; ++t) {
        place *p = &plan->places[t];
        p->extent.batch = plan->batch.images;
        p->extent.channels = net->tensors[t].channels;
        for (int d = 0; d < 3; ++d) p->extent.size[d] = plan->padded[d] / net->tensors[t].stride[d];
        p->value = p->norm = p->gradient = RCN_NONE;
    }
    for (int i = 0; i < net->op_count; ++i) {
        const rcn__op *op = &net->ops[i];
        stage *s = &plan->stages[i];
        s->folds = s->residual = s->choice = s->sweep = RCN_NONE;
        s->writes = op->out;
        s->back = 2 * net->op_count - 1 - i;
        if (op->kind == RCN_OP_NORM) {
            s->norm.extent = plan->places[op->out].extent;
            s->norm.kind = op->norm;
            s->norm.groups = op->groups;
            s->norm.relu = op->relu;
            need_partials(plan, &s->norm.extent);
        } else if (op->kind == RCN_OP_SHUFFLE) {
            need_partials(plan, &plan->places[op->out].extent);
        } else if (op->kind == RCN_OP_POOL) {
            s->pool.in = plan->places[op->in[0]].extent;
            memcpy(s->pool.out_size, plan->places[op->out].extent.size, sizeof s->pool.out_size);
            memcpy(s->pool.kernel, op->kernel, sizeof s->pool.kernel);
            memcpy(s->pool.stride, op->stride, sizeof s->pool.stride);
            memcpy(s->pool.pad, op->pad, sizeof s->pool.pad);
        }
    }
}

static rcn_status plan_create(rcn__plan **out, rcn_net *net, const rcn_batch *batch, int training,
                              int first) {
    rcn_context *ctx = net->ctx;
    rcn_status status = RCN_OK;
    rcn__plan *plan = NULL;
    int64_t padded[3];
    *out = NULL;
    RCN_ALLOC_ZERO(plan, ctx, 1, "a network's plan");
    plan->batch = *batch;
    plan->training = training;
    plan->threads = ctx->threads;
    plan->first = first;
    rcn__net_padded_size(padded, net, batch->size);
    for (int d = 0; d < 3; ++d) {
        plan->size[d] = batch->size[2 - d];
        plan->padded[d] = padded[2 - d];
    }
    describe(plan, net);
    plan->places[0].extent.channels = stored_channels(net);
    plan->input_layout = net->options.channels <= 3 ? RCN_PLANAR : RCN_BLOCKED;
    if (!training) plan_folding(plan, net);
    plan_spreading(plan, net);
    for (int t = 0; t < net->tensor_count; ++t)
        plan->places[t].norm = norm_on_reading(plan, net, t);
    for (int i = first; i < net->op_count; ++i)
        if (net->ops[i].kind == RCN_OP_CONV) RCN_TRY(make_conv(plan, net, i));

    /* The image is used where it is if neither its size nor its layout has to change. */
    plan->copies_input = !first && (memcmp(plan->size, plan->padded, sizeof plan->size) != 0 ||
                                    plan->input_layout != RCN_PLANAR ||
                                    net->options.channels != stored_channels(net));
    if (plan->copies_input) {
        plan->places[0].value = rcn__plan_add_buffer(plan, tensor_bytes(plan, 0), 0);
        rcn__plan_use(plan, plan->places[0].value, training ? plan->stages[0].back : 0);
    }
    if (training) {
        plan_training_values(plan, net);
        plan_gradients(plan, net);
        plan_parameter_gradients(plan, net);
    } else {
        rcn__plan_sweeps(plan, net);
        plan_prediction_values(plan, net);
        rcn__plan_windows(plan, net);
    }
    RCN_TRY(place_buffers(plan, ctx));
    size_t at = plan->bytes;
    size_t *offsets[3] = {&plan->scale, &plan->reshaped, &plan->partial};
    for (int k = 0; k < 3; ++k) {
        const size_t bytes = rounded(*offsets[k]);
        *offsets[k] = at;
        at += bytes;
    }
    plan->own = at;
    plan->bytes = at + (size_t)plan->threads * plan->own_bytes;
    RCN_TRY(make_statistics(plan, net));
    if (training) {
        int64_t channels = 0;
        for (int t = 0; t < net->tensor_count; ++t)
            if (net->tensors[t].channels > channels) channels = net->tensors[t].channels;
        RCN_ALLOC(plan->shared, ctx, 1 + 2 * channels, "the statistics of norms");
    }
    *out = plan;
    plan = NULL;
done:
    rcn__plan_destroy(plan, net);
    return status;
}

rcn_status rcn__plan_get(rcn__plan **out, rcn_net *net, const rcn_batch *batch, int training,
                         int from_features) {
    const int first = from_features ? net->encoder_ops : 0;
    rcn_status status = RCN_OK;
    rcn__plan *plan = NULL;
    int at = 0;
    *out = NULL;
    for (; at < RCN_MAX_PLANS && net->plans[at]; ++at) {
        const rcn__plan *known = net->plans[at];
        if (known->training == training && known->first == first &&
            known->threads == net->ctx->threads && known->batch.images == batch->images &&
            !memcmp(known->batch.size, batch->size, sizeof batch->size))
            break;
    }
    if (at < RCN_MAX_PLANS && net->plans[at]) {
        plan = net->plans[at];
    } else {
        RCN_TRY(plan_create(&plan, net, batch, training, first));
        if (at == RCN_MAX_PLANS) rcn__plan_destroy(net->plans[--at], net);
    }
    for (; at > 0; --at) net->plans[at] = net->plans[at - 1];
    net->plans[0] = plan;
    if (net->arena_bytes < plan->bytes) {
        rcn__free(net->ctx, net->arena);
        net->arena = NULL;
        net->arena_bytes = 0;
        net->pending = NULL;
        net->gradients = NULL;
        RCN_TRY(rcn__alloc(&net->arena, net->ctx, (int64_t)plan->bytes, 1,
                           "the network's activations"));
        net->arena_bytes = plan->bytes;
    }
    *out = plan;
done:
    return status;
}

/* ---- running --------------------------------------------------------------------------------- */

static void *at_offset(const rcn_net *net, size_t offset) { return (char *)net->arena + offset; }

static float *value_of(const rcn__plan *plan, const rcn_net *net, int tensor) {
    return rcn__plan_at(plan, net, plan->places[tensor].value);
}

static float *gradient_of(const rcn__plan *plan, const rcn_net *net, int tensor) {
    return rcn__plan_at(plan, net, plan->places[tensor].gradient);
}

/* A parameter's values, or its gradient. NULL for RCN_NONE. */
static float *parameter_of(const rcn_net *net, int index) {
    return index == RCN_NONE ? NULL : net->values + net->parameters[index].offset;
}

static float *dparameter_of(const rcn_net *net, int index) {
    return index == RCN_NONE ? NULL : net->gradients + net->parameters[index].offset;
}

static int64_t input_channels(const rcn__plan *plan, const rcn__op *op) {
    int64_t channels = 0;
    for (int k = 0; k < op->inputs; ++k) channels += plan->places[op->in[k]].extent.channels;
    return channels;
}

/* Floats of weights per output channel, as stored and as the kernel wants them. */
static void weight_rows(int64_t *stored, int64_t *wanted, const rcn__plan *plan, const rcn_net *net,
                        const rcn__op *op) {
    const int64_t taps = op->kernel[0] * op->kernel[1] * op->kernel[2];
    *stored = net->parameters[op->weight].count / net->tensors[op->out].channels;
    *wanted = input_channels(plan, op) * taps;
}

/* The weights of a convolution as (out, in, kernel). */
static const float *plain_weights(const rcn__plan *plan, rcn_net *net, const rcn__op *op) {
    const float *weights = parameter_of(net, op->weight);
    float *reshaped = at_offset(net, plan->reshaped);
    const int64_t channels = net->tensors[op->out].channels;
    if (!is_reshaped(plan, net, op)) return weights;
    if (op->transposed) {
        const int64_t out = net->parameters[op->weight].shape[1];
        rcn__shuffle_weights(reshaped, net->ctx, weights, net->tensors[op->in[0]].channels, out,
                             channels / out);
    } else {
        int64_t stored, wanted;
        weight_rows(&stored, &wanted, plan, net, op);
        rcn__pad_weights(reshaped, net->ctx, weights, channels, wanted, stored);
    }
    return reshaped;
}

/* The gradient of those weights back to where it belongs. */
static void keep_gradient(const rcn__plan *plan, rcn_net *net, const rcn__op *op) {
    const float *reshaped = at_offset(net, plan->reshaped);
    float *to = dparameter_of(net, op->weight);
    const int64_t channels = net->tensors[op->out].channels;
    if (op->transposed) {
        const int64_t out = net->parameters[op->weight].shape[1];
        rcn__shuffle_weights_back(to, net->ctx, reshaped, net->tensors[op->in[0]].channels, out,
                                  channels / out);
    } else {
        int64_t stored, wanted;
        weight_rows(&stored, &wanted, plan, net, op);
        rcn__pad_weights(to, net->ctx, reshaped, channels, stored, wanted);
    }
}

/* Prediction: packs all weights, batch norms folded in: with the norm's scale a and shift b,
 * a * (w * x) + b = (a * w) * x + b. */
static rcn_status prepare(rcn__plan *plan, rcn_net *net) {
    rcn_context *ctx = net->ctx;
    rcn_status status = RCN_OK;
    if (plan->is_prepared && plan->version == net->version) return RCN_OK;
    if (!plan->prepared) {
        size_t bytes = 0;
        for (int i = 0; i < net->op_count; ++i) {
            const rcn__op *op = &net->ops[i];
            stage *s = &plan->stages[i];
            if (op->kind != RCN_OP_CONV) continue;
            s->packed = bytes;
            bytes += rounded(rcn__conv_packed_bytes(s->conv));
            s->folded = bytes;
            bytes += rounded((size_t)net->tensors[op->out].channels * sizeof(float));
        }
        RCN_TRY(rcn__alloc((void **)&plan->prepared, ctx, (int64_t)bytes, 1,
                           "the network's packed weights"));
    }
    plan->is_prepared = 0;
    for (int i = 0; i < net->op_count; ++i) {
        const rcn__op *op = &net->ops[i];
        stage *s = &plan->stages[i];
        if (op->kind != RCN_OP_CONV) continue;
        const int64_t out = net->tensors[op->out].channels;
        float *bias = (float *)(plan->prepared + s->folded), *scale = NULL;
        if (s->folds != RCN_NONE) {
            const rcn__op *norm = &net->ops[s->folds];
            scale = at_offset(net, plan->scale);
            rcn__norm_fold(scale, bias, out, parameter_of(net, norm->weight),
                           parameter_of(net, norm->bias), parameter_of(net, norm->mean),
                           parameter_of(net, norm->variance));
        } else if (op->bias != RCN_NONE) {
            memcpy(bias, parameter_of(net, op->bias), (size_t)out * sizeof *bias);
        }
        rcn__conv_pack(plan->prepared + s->packed, s->conv, ctx, plain_weights(plan, net, op),
                       scale);
    }
    plan->version = net->version;
    plan->is_prepared = 1;
done:
    return status;
}

rcn__source rcn__plan_source(const rcn__plan *plan, const rcn_net *net, int tensor,
                             const float *images) {
    const int norm = plan->places[tensor].norm;
    rcn__source from = {.data = value_of(plan, net, tensor)};
    if (tensor == 0 && !plan->copies_input) from.data = images;
    if (norm != RCN_NONE) {
        from.scale = plan->stages[norm].norm.scale;
        from.shift = plan->stages[norm].norm.shift;
        from.relu = net->ops[norm].relu;
    }
    return from;
}

rcn__ending rcn__plan_ending(const rcn__plan *plan, const rcn_net *net, int index) {
    const rcn__op *op = &net->ops[index];
    const stage *s = &plan->stages[index];
    const rcn__op *norm = s->folds == RCN_NONE ? NULL : &net->ops[s->folds];
    rcn__ending ending = {.relu = norm && norm->relu};
    if (norm || op->bias != RCN_NONE) ending.bias = (float *)(plan->prepared + s->folded);
    if (op->transposed) ending.bias = parameter_of(net, net->ops[index + 1].bias);
    if (s->residual != RCN_NONE) ending.residual[0] = value_of(plan, net, s->residual);
    return ending;
}

/* Where the convolution before a norm leaves sums for it. */
static rcn__tally tally_of(const rcn__plan *plan, const rcn_net *net, int norm) {
    const rcn__tally tally = {at_offset(net, plan->partial),
                              parameter_of(net, net->ops[norm].mean)};
    return tally;
}

static void conv_forward(rcn__plan *plan, rcn_net *net, int index, const float *images) {
    const rcn__op *op = &net->ops[index];
    stage *s = &plan->stages[index];
    rcn__source in[2];
    rcn__ending ending = {NULL};
    void *packed = plan->prepared + s->packed;
    for (int k = 0; k < op->inputs; ++k) in[k] = rcn__plan_source(plan, net, op->in[k], images);
    if (plan->training) {
        packed = rcn__plan_at(plan, net, s->weights[FORWARD]);
        ending.bias = parameter_of(net, op->transposed ? net->ops[index + 1].bias : op->bias);
        if (s->tally_rows) ending.tally = tally_of(plan, net, index + 1);
        rcn__conv_pack(packed, s->conv, net->ctx, plain_weights(plan, net, op), NULL);
    } else {
        ending = rcn__plan_ending(plan, net, index);
    }
    const rcn__scratch scratch = rcn__plan_scratch(plan, net, index, FORWARD);
    rcn__conv_forward(value_of(plan, net, s->writes), s->conv, net->ctx, in, packed, &ending,
                      &scratch);
}

/* Feature maps are left out whole, the others scaled up (Dropout2d). Images before `first`, which
 * another process has, have had their draws. */
static void draw_dropout(stage *s, const rcn_net *net, int64_t first, int64_t count,
                         uint64_t seed) {
    const double share = net->options.dropout;
    rcn_rng rng = rcn__rng_make(seed, UINT64_C(0x64726F70));
    for (int64_t i = 0; i < first; ++i) rcn__rng_uniform(&rng);
    for (int64_t i = 0; i < count; ++i)
        s->factors[i] = rcn__rng_uniform(&rng) < share ? 0.0f : (float)(1.0 / (1.0 - share));
}

static rcn_status run_forward_op(rcn__plan *plan, rcn_net *net, int index, float *logits,
                                 const float *images, uint64_t seed) {
    rcn_status status = RCN_OK;
    const rcn__op *op = &net->ops[index];
    stage *s = &plan->stages[index];
    rcn_context *ctx = net->ctx;
    const float *in = value_of(plan, net, op->in[0]);
    const float *other = op->inputs > 1 ? value_of(plan, net, op->in[1]) : NULL;
    const rcn__extent *in_extent = &plan->places[op->in[0]].extent;
    float *out = op->out == RCN_NONE ? NULL : value_of(plan, net, op->out);
    switch (op->kind) {
    case RCN_OP_CONV: conv_forward(plan, net, index, images); break;
    case RCN_OP_NORM: {
        const float *weight = parameter_of(net, op->weight), *bias = parameter_of(net, op->bias);
        s->norm.partial = at_offset(net, plan->partial);
        s->norm.shared = plan->shared;
        s->norm.tally_rows = index > plan->first ? plan->stages[index - 1].tally_rows : 0;
        if (s->norm.tally_rows) s->norm.tally = tally_of(plan, net, index);
        s->norm.comm = plan->training && !net->local_norms ? net->comm : NULL;
        if (!plan->training && op->norm == RCN_CELL_BATCH)
            rcn__norm_fixed(&s->norm, weight, bias, parameter_of(net, op->mean),
                            parameter_of(net, op->variance));
        else
            RCN_TRY(rcn__norm_statistics(&s->norm, ctx, in, weight, bias,
                                         parameter_of(net, op->mean),
                                         parameter_of(net, op->variance)));
        if (plan->training && op->counter != RCN_NONE) ++*parameter_of(net, op->counter);
        if (plan->places[op->out].norm == RCN_NONE) rcn__norm_apply(out, &s->norm, ctx, in, other);
        break;
    }
    case RCN_OP_POOL: {
        const rcn__source from = rcn__plan_source(plan, net, op->in[0], images);
        rcn__pool_forward(out, (uint8_t *)rcn__plan_at(plan, net, s->choice), &s->pool, ctx, &from);
        break;
    }
    case RCN_OP_SHUFFLE: break; /* the convolution before has done it */
    case RCN_OP_NEAREST: rcn__nearest_add(out, &plan->places[op->out].extent, ctx, in); break;
    case RCN_OP_BILINEAR: rcn__bilinear(out, in_extent, ctx, op->factor, in); break;
    case RCN_OP_MERGE: {
        const float *others[RCN_MAX_INPUTS];
        const int drops = plan->training && net->options.dropout > 0;
        for (int k = 1; k < op->inputs; ++k) others[k - 1] = value_of(plan, net, op->in[k]);
        if (drops)
            draw_dropout(s, net, net->first_image * in_extent->channels,
                         in_extent->batch * in_extent->channels, seed);
        rcn__merge(out, in_extent, ctx, others, op->inputs - 1, drops ? s->factors : NULL);
        break;
    }
    case RCN_OP_OUTPUT: rcn__output(logits, ctx, in, in_extent, op->factor, plan->size); break;
    }
done:
    return status;
}

/* Between the encoder's tensors and (B, all of one image's one after another). */
static void copy_features(rcn__plan *plan, rcn_net *net, float *features, const float *given) {
    const int64_t images = plan->batch.images;
    const int64_t floats = rcn__net_feature_floats(net, plan->batch.size);
    int64_t at = 0;
    for (int t = 1; t < net->tensor_count; ++t) {
        if (!rcn__is_feature(net, t)) continue;
        const int64_t count = rcn__extent_floats(&plan->places[t].extent) / images;
        float *value = value_of(plan, net, t);
        for (int64_t i = 0; i < images; ++i)
            if (given)
                memcpy(value + i * count, given + i * floats + at, (size_t)count * sizeof *value);
            else
                memcpy(features + i * floats + at, value + i * count,
                       (size_t)count * sizeof *value);
        at += count;
    }
}

/* Runs the operations [plan->first, end). */
static rcn_status run_forward(rcn__plan *plan, rcn_net *net, int end, float *logits,
                              const float *images, uint64_t seed) {
    static const char *const stages[2] = {"predicting", "training: forward"};
    rcn_status status = RCN_OK;
    if (plan->first) copy_features(plan, net, NULL, images);
    if (!plan->training) RCN_TRY(prepare(plan, net));
    if (plan->copies_input) {
        rcn__extent extent = plan->places[0].extent;
        memcpy(extent.size, plan->size, sizeof extent.size);
        extent.channels = net->options.channels;
        rcn__input(value_of(plan, net, 0), net->ctx, images, &extent, stored_channels(net),
                   plan->padded, plan->input_layout);
    }
    for (int i = plan->first; i < end; ++i) {
        const int number = plan->stages[i].sweep;
        if (plan->stages[i].skipped) continue;
        RCN_TRY(rcn__report(net->ctx, (double)i / net->op_count, stages[plan->training]));
        if (number == RCN_NONE) {
            RCN_TRY(run_forward_op(plan, net, i, logits, images, seed));
        } else {
            rcn__sweep_run(plan, net, &plan->sweeps[number], logits, images);
            i = plan->sweeps[number].last;
        }
    }
done:
    return status;
}

rcn_status rcn__plan_forward(rcn__plan *plan, rcn_net *net, float *logits, const float *images,
                             uint64_t seed) {
    return run_forward(plan, net, net->op_count, logits, images, seed);
}

rcn_status rcn__plan_encode(rcn__plan *plan, rcn_net *net, float *features, const float *images) {
    const rcn_status status = run_forward(plan, net, net->encoder_ops, NULL, images, 0);
    if (status == RCN_OK) copy_features(plan, net, features, NULL);
    return status;
}

static void conv_backward(rcn__plan *plan, rcn_net *net, int index, const float *images) {
    const rcn__op *op = &net->ops[index];
    stage *s = &plan->stages[index];
    rcn_context *ctx = net->ctx;
    void *packed = rcn__plan_at(plan, net, s->weights[BACKWARD]);
    const rcn__scratch scratch = rcn__plan_scratch(plan, net, index, BACKWARD);
    const float *dout = gradient_of(plan, net, op->out);
    const int reshaped = is_reshaped(plan, net, op);
    float *dweights = reshaped ? at_offset(net, plan->reshaped) : dparameter_of(net, op->weight);
    rcn__source in[2];
    float *din[2] = {NULL, NULL};
    for (int k = 0; k < op->inputs; ++k) {
        in[k] = rcn__plan_source(plan, net, op->in[k], images);
        if (!rcn__plan_is_given(plan, net, op->in[k])) din[k] = gradient_of(plan, net, op->in[k]);
    }
    rcn__conv_backward_weights(dweights, dparameter_of(net, op->bias), s->conv, ctx, in, dout,
                               &scratch);
    if (reshaped) keep_gradient(plan, net, op);
    if (din[0] || din[1])
        rcn__conv_backward_inputs(din, s->sums, s->conv, ctx, plain_weights(plan, net, op), dout,
                                  packed, &scratch);
}

static rcn_status run_backward_op(rcn__plan *plan, rcn_net *net, int index, const float *images,
                                  const float *dlogits) {
    const rcn__op *op = &net->ops[index];
    stage *s = &plan->stages[index];
    rcn_context *ctx = net->ctx;
    float *din = gradient_of(plan, net, op->in[0]);
    float *dout = op->out == RCN_NONE ? NULL : gradient_of(plan, net, op->out);
    const rcn__extent *in_extent = &plan->places[op->in[0]].extent;
    switch (op->kind) {
    case RCN_OP_CONV: conv_backward(plan, net, index, images); break;
    case RCN_OP_NORM:
        s->norm.partial = at_offset(net, plan->partial);
        return rcn__norm_backward(
            dout, dparameter_of(net, op->weight), dparameter_of(net, op->bias),
            op->inputs > 1 ? gradient_of(plan, net, op->in[1]) : NULL, s->sums[1], &s->norm, ctx,
            value_of(plan, net, op->in[0]), op->inputs > 1 ? value_of(plan, net, op->out) : NULL,
            parameter_of(net, op->weight));
    case RCN_OP_POOL:
        rcn__pool_backward(din, s->sums[0], &s->pool, ctx, dout,
                           (const uint8_t *)rcn__plan_at(plan, net, s->choice));
        break;
    case RCN_OP_SHUFFLE:
        rcn__shuffle_backward(din, dparameter_of(net, op->bias), &plan->places[op->out].extent, ctx,
                              op->stride, dout, at_offset(net, plan->partial));
        break;
    case RCN_OP_NEAREST:
        rcn__nearest_add_backward(din, s->sums[0], &plan->places[op->out].extent, ctx, dout);
        break;
    case RCN_OP_BILINEAR:
        rcn__bilinear_backward(din, s->sums[0], in_extent, ctx, op->factor, dout);
        break;
    case RCN_OP_MERGE:
        /* The inputs' gradients share one buffer: only the dropout is to be applied. */
        if (net->options.dropout > 0) rcn__merge(dout, in_extent, ctx, NULL, 0, s->factors);
        break;
    case RCN_OP_OUTPUT:
        rcn__output_backward(din, ctx, dlogits, in_extent, op->factor, plan->size);
        break;
    }
    return RCN_OK;
}

/* Gradients at least this far from the start of the block are ready once the operations from
 * `index` on have run backwards. */
static int64_t ready_from(const rcn__plan *plan, const rcn_net *net, int index) {
    int64_t from = 0;
    for (int i = plan->first; i < index; ++i) {
        const int own[2] = {net->ops[i].weight, net->ops[i].bias};
        for (int k = 0; k < 2; ++k) {
            const rcn_parameter *p = own[k] == RCN_NONE ? NULL : &net->parameters[own[k]];
            if (p && p->offset + p->count > from) from = p->offset + p->count;
        }
    }
    return from;
}

/* The first gradient that this plan computes: before it lie those of an encoder that is given. */
static int64_t first_gradient(const rcn__plan *plan, const rcn_net *net) {
    int64_t first = net->trained_floats;
    for (int i = plan->first; i < net->op_count; ++i) {
        const int own[2] = {net->ops[i].weight, net->ops[i].bias};
        for (int k = 0; k < 2; ++k)
            if (own[k] != RCN_NONE && net->parameters[own[k]].offset < first)
                first = net->parameters[own[k]].offset;
    }
    return first;
}

/* Begins to add up, over all processes, the gradients that are ready and not yet on their way, once
 * there are enough of them to be worth a message; *sent is where those on their way begin. Layers
 * lie in the block in the order of running, so what is ready grows from its end. */
static rcn_status send_gradients(int64_t *sent, const rcn__plan *plan, rcn_net *net, int index) {
    if (rcn__comm_size(net->comm) == 1) return RCN_OK;
    const int last = index == plan->first;
    const int64_t from = last ? first_gradient(plan, net) : ready_from(plan, net, index);
    if (*sent - from < RCN_BUCKET && !last) return rcn__comm_poll(net->comm, net->ctx);
    const int64_t count = *sent > from ? *sent - from : 0;
    *sent = from;
    return rcn__comm_begin_sum(net->comm, net->ctx, net->gradients + from, count, RCN_COMM_FLOAT);
}

/* What no operation of this plan makes: the gradients of an encoder that is given, and the gaps
 * between parameters. Other tensors lay there before. */
static void clear_unmade(const rcn__plan *plan, rcn_net *net) {
    const int64_t first = first_gradient(plan, net);
    memset(net->gradients, 0, (size_t)first * sizeof *net->gradients);
    for (int p = 0; p < net->parameter_count; ++p) {
        const rcn_parameter *parameter = &net->parameters[p];
        const int64_t end = parameter->offset + parameter->count;
        if (parameter->kind == RCN_TRAINED && parameter->offset >= first)
            memset(net->gradients + end, 0,
                   (size_t)(rcn__parameter_room(parameter) - parameter->count) *
                       sizeof *net->gradients);
    }
}

rcn_status rcn__plan_backward(rcn__plan *plan, rcn_net *net, const float *images,
                              const float *dlogits) {
    rcn_status status = RCN_OK;
    int64_t sent = net->trained_floats;
    net->gradients = net->arena;
    for (int i = net->op_count - 1; i >= plan->first; --i) {
        RCN_TRY(rcn__report(net->ctx, 1 - (double)(i + 1) / net->op_count, "training: backward"));
        RCN_TRY(run_backward_op(plan, net, i, images, dlogits));
        RCN_TRY(send_gradients(&sent, plan, net, i));
    }
    RCN_TRY(rcn__comm_finish(net->comm, net->ctx));
    clear_unmade(plan, net);
done:
    if (status != RCN_OK) net->gradients = NULL;
    return status;
}
