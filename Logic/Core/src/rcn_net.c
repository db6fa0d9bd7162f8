// SPDX-License-Identifier: Apache-2.0
#include "rcn_net_private.h"

#include <math.h>
#include <string.h>

#include "rcn_rng.h"

static const char *const arch_names[] = {"unet", "fpn-resnet18", "fpn-resnet34", "fpn-resnet50",
                                         "unet3d"};

const char *rcn_arch_name(rcn_arch arch) {
    return (int)arch >= RCN_UNET && (int)arch <= RCN_UNET3D ? arch_names[arch] : NULL;
}

static int is_unet(rcn_arch arch) { return arch == RCN_UNET || arch == RCN_UNET3D; }

const char *rcn_net_check(const rcn_net_options *options) {
    if (!options) return NULL;
    if (!rcn_arch_name(options->arch)) return "Unknown network architecture.";
    if (options->channels < 1 || options->channels > 1024)
        return "A network takes images of 1 to 1024 channels.";
    if (options->outputs < 1 || options->outputs > 1024)
        return "A network gives 1 to 1024 logits per voxel.";
    if (is_unet(options->arch)) {
        if (options->width < RCN_LANES || options->width > 512 || options->width % RCN_LANES)
            return "The width of a U-Net must be a multiple of 8, from 8 to 512.";
        if (options->depth < 1 || options->depth > 6) return "The depth of a U-Net must be 1 to 6.";
        if (options->norm != RCN_NORM_BATCH && options->norm != RCN_NORM_INSTANCE)
            return "The norm of a U-Net must be batch or instance.";
        for (int d = 0; d < 3; ++d)
            if (!(options->spacing[d] >= 1e-6 && options->spacing[d] <= 1e6))
                return "The spacing of a network's voxels must be 0.000001 to 1000000 mm.";
    } else if (!(options->dropout >= 0 && options->dropout < 1)) {
        return "The share of dropout must be at least 0 and less than 1.";
    }
    return NULL;
}

int64_t rcn__parameter_room(const rcn_parameter *parameter) {
    return (parameter->count + 15) / 16 * 16;
}

/* Offsets: what is trained first, then the rest, each on a cache line of its own. */
static void place_parameters(rcn_net *net) {
    for (int trained = 1; trained >= 0; --trained) {
        for (int p = 0; p < net->parameter_count; ++p) {
            rcn_parameter *parameter = &net->parameters[p];
            if ((parameter->kind == RCN_TRAINED) != trained) continue;
            parameter->offset = net->floats;
            net->floats += rcn__parameter_room(parameter);
        }
        if (trained) net->trained_floats = net->floats;
    }
}

rcn_status rcn_net_create(rcn_net **out, rcn_context *ctx, const rcn_net_options *options) {
    static const rcn_net_options defaults = RCN_NET_OPTIONS_INIT;
    rcn_status status = RCN_OK;
    rcn_net *net = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output network is NULL.");
    const char *sentence = rcn_net_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_ALLOC_ZERO(net, ctx, 1, "a network");
    net->ctx = ctx;
    net->options = options ? *options : defaults;
    net->dimensions = net->options.arch == RCN_UNET3D ? 3 : 2;
    net->tensors[0].channels = net->options.channels;
    net->tensors[0].producer = RCN_NONE;
    net->tensor_count = 1;
    net->sweep_floats = RCN_SWEEP;
    for (int d = 0; d < 3; ++d) net->tensors[0].stride[d] = net->multiple[d] = 1;
    RCN_ALLOC_ZERO(net->parameters, ctx, RCN_MAX_PARAMETERS, "the table of parameters");
    if (is_unet(net->options.arch))
        rcn__graph_unet(net);
    else
        rcn__graph_fpn(net);
    place_parameters(net);
    for (int i = 0; i < net->op_count; ++i) {
        const int weight = net->ops[i].weight;
        if (weight != RCN_NONE && !strncmp(net->parameters[weight].name, "encoder.", 8))
            net->encoder_ops = i + 1;
    }
    RCN_ALLOC_ZERO(net->values, ctx, net->floats, "the parameters of a network");
    *out = net;
    net = NULL;
done:
    rcn_net_destroy(net);
    return status;
}

void rcn_net_destroy(rcn_net *net) {
    if (!net) return;
    rcn_context *ctx = net->ctx;
    for (int p = 0; p < RCN_MAX_PLANS; ++p) rcn__plan_destroy(net->plans[p], net);
    rcn__free(ctx, net->arena);
    rcn__free(ctx, net->values);
    rcn__free(ctx, net->parameters);
    rcn__free(ctx, net);
}

const rcn_net_options *rcn_net_get_options(const rcn_net *net) { return &net->options; }

/* ---- parameters ------------------------------------------------------------------------------ */

int rcn_net_parameter_count(const rcn_net *net) { return net->parameter_count; }

const rcn_parameter *rcn_net_parameter(const rcn_net *net, int index) {
    return index >= 0 && index < net->parameter_count ? &net->parameters[index] : NULL;
}

const rcn_parameter *rcn_net_find_parameter(const rcn_net *net, const char *name) {
    for (int p = 0; p < net->parameter_count; ++p)
        if (!strcmp(net->parameters[p].name, name)) return &net->parameters[p];
    return NULL;
}

int64_t rcn_net_floats(const rcn_net *net) { return net->floats; }

int64_t rcn_net_trained_floats(const rcn_net *net) { return net->trained_floats; }

const float *rcn_net_values(const rcn_net *net) { return net->values; }

float *rcn_net_edit_values(rcn_net *net) {
    ++net->version;
    return net->values;
}

float *rcn_net_gradients(rcn_net *net) { return net->gradients; }

static int ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

rcn_status rcn_net_initialize(rcn_net *net, uint64_t seed) {
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    float *values = rcn_net_edit_values(net);
    for (int p = 0; p < net->parameter_count; ++p) {
        const rcn_parameter *parameter = &net->parameters[p];
        float *to = values + parameter->offset;
        rcn_rng rng = rcn__rng_make(seed, (uint64_t)p);
        if (parameter->dimensions > 1) {
            /* Variance 2 / (inputs of a neuron), He et al. 2015, eq. 10. A transposed convolution
             * (inputs, outputs, taps) whose kernel is its stride uses each weight's tap alone. Its
             * taps start alike: it repeats voxels, and no checkerboard has to be unlearned. */
            const int transposed = !strncmp(parameter->name, "up.", 3);
            int64_t fan_in = transposed ? parameter->shape[0] : 1, alike = 1;
            for (int d = 1; !transposed && d < parameter->dimensions; ++d)
                fan_in *= parameter->shape[d];
            if (transposed) alike = parameter->count / (parameter->shape[0] * parameter->shape[1]);
            const double deviation = sqrt(2.0 / (double)fan_in);
            for (int64_t i = 0; i < parameter->count; ++i)
                to[i] = i % alike ? to[i - 1] : (float)(deviation * rcn__rng_normal(&rng));
        } else {
            /* Scales of norms have running statistics or a bias beside them; biases start at 0. */
            const int is_one =
                ends_with(parameter->name, ".weight") || ends_with(parameter->name, ".running_var");
            for (int64_t i = 0; i < parameter->count; ++i) to[i] = is_one ? 1.0f : 0.0f;
        }
    }
    return RCN_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

void rcn__net_padded_size(int64_t padded[3], const rcn_net *net, const int64_t size[3]) {
    for (int d = 0; d < 3; ++d) {
        const int64_t multiple = net->multiple[2 - d];
        padded[d] = (size[d] + multiple - 1) / multiple * multiple;
    }
}

static rcn_status check_batch(rcn_net *net, const rcn_batch *batch) {
    rcn_context *ctx = net->ctx;
    int64_t padded[3];
    double floats;
    if (!batch || batch->images < 1)
        return rcn__fail(ctx, RCN_EINVALID, "The batch has no images.");
    floats = (double)batch->images * (net->options.channels + net->options.outputs);
    for (int d = 0; d < 3; ++d) {
        if (batch->size[d] < 1 || batch->size[d] > INT32_MAX / 64)
            return rcn__fail(ctx, RCN_EINVALID, "An image cannot have %lld voxels along an axis.",
                             (long long)batch->size[d]);
        floats *= (double)batch->size[d] + 64;
    }
    if (net->dimensions == 2 && batch->size[2] != 1)
        return rcn__fail(ctx, RCN_EINVALID,
                         "This network is for slices; the image has %lld of them.",
                         (long long)batch->size[2]);
    if (floats > 1e15)
        return rcn__fail(ctx, RCN_EINVALID, "The batch is too large for any memory.");
    rcn__net_padded_size(padded, net, batch->size);
    return RCN_OK;
}

rcn_status rcn__net_measure(size_t *bytes, rcn_net *net, const rcn_batch *batch, int training) {
    rcn_status status = RCN_OK;
    rcn__plan *plan = NULL;
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (!bytes) return rcn__fail(net->ctx, RCN_EINVALID, "The output is NULL.");
    RCN_TRY(check_batch(net, batch));
    RCN_TRY(rcn__plan_get(&plan, net, batch, training, 0));
    *bytes = rcn__plan_bytes(plan);
done:
    return status;
}

/* What every pass begins with. */
static rcn_status begin_pass(rcn__plan **plan, rcn_net *net, const float *out, const char *what,
                             const float *in, const rcn_batch *batch, int training,
                             int from_features) {
    rcn_status status = RCN_OK;
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    net->pending = NULL;
    net->gradients = NULL; /* this pass writes over them */
    if (!out || !in)
        return rcn__fail(net->ctx, RCN_EINVALID, "The images or the output %s are NULL.", what);
    RCN_TRY(check_batch(net, batch));
    RCN_TRY(rcn__plan_get(plan, net, batch, training, from_features));
done:
    return status;
}

static rcn_status run_forward(float *logits, rcn_net *net, const float *images,
                              const rcn_batch *batch, uint64_t seed, int training,
                              int from_features) {
    rcn_status status = RCN_OK;
    rcn__plan *plan = NULL;
    RCN_TRY(begin_pass(&plan, net, logits, "logits", images, batch, training, from_features));
    RCN_TRY(rcn__plan_forward(plan, net, logits, images, seed));
    if (training) {
        ++net->version; /* the running statistics moved */
        net->pending = plan;
        net->images = images;
    }
done:
    return status;
}

rcn_status rcn_net_predict(float *logits, rcn_net *net, const float *images,
                           const rcn_batch *batch) {
    return run_forward(logits, net, images, batch, 0, 0, 0);
}

rcn_status rcn_net_forward(float *logits, rcn_net *net, const float *images, const rcn_batch *batch,
                           uint64_t seed) {
    return run_forward(logits, net, images, batch, seed, 1, 0);
}

void rcn__net_share(rcn_net *net, rcn_comm *comm, int64_t first_image, int local_norms) {
    net->comm = comm;
    net->first_image = first_image;
    net->local_norms = local_norms;
}

/* ---- a frozen encoder ------------------------------------------------------------------------ */

int rcn__is_feature(const rcn_net *net, int tensor) {
    if (net->tensors[tensor].producer >= net->encoder_ops) return 0;
    for (int i = net->encoder_ops; i < net->op_count; ++i)
        for (int k = 0; k < net->ops[i].inputs; ++k)
            if (net->ops[i].in[k] == tensor) return 1;
    return 0;
}

int64_t rcn__net_feature_floats(const rcn_net *net, const int64_t size[3]) {
    int64_t padded[3], floats = 0;
    rcn__net_padded_size(padded, net, size);
    for (int t = 1; t < net->tensor_count; ++t) {
        if (!rcn__is_feature(net, t)) continue;
        rcn__extent extent = {1, net->tensors[t].channels, {0, 0, 0}};
        for (int d = 0; d < 3; ++d) extent.size[d] = padded[2 - d] / net->tensors[t].stride[d];
        floats += rcn__extent_floats(&extent);
    }
    return floats;
}

rcn_status rcn__net_encode(float *features, rcn_net *net, const float *images,
                           const rcn_batch *batch) {
    rcn_status status = RCN_OK;
    rcn__plan *plan = NULL;
    RCN_TRY(begin_pass(&plan, net, features, "features", images, batch, 0, 0));
    RCN_TRY(rcn__plan_encode(plan, net, features, images));
done:
    return status;
}

rcn_status rcn__net_forward_features(float *logits, rcn_net *net, const float *features,
                                     const rcn_batch *batch, uint64_t seed) {
    return run_forward(logits, net, features, batch, seed, 1, 1);
}

rcn_status rcn_net_backward(rcn_net *net, const float *dlogits) {
    rcn_status status = RCN_OK;
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (!net->pending || !dlogits)
        return rcn__fail(net->ctx, RCN_EINVALID,
                         "A backward pass needs a forward pass in training before it.");
    rcn__plan *plan = net->pending;
    net->pending = NULL; /* the backward pass uses up what the forward pass kept */
    RCN_TRY(rcn__plan_backward(plan, net, net->images, dlogits));
done:
    return status;
}
