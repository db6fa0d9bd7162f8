// SPDX-License-Identifier: Apache-2.0
/* Models: a network in a safetensors file, with the metadata that make it one again.
 *
 * What can be read from the tensors is read from them (outputs, width, depth), so that a file
 * cannot contradict itself; the rest is metadata, which by the format are strings.
 */
#include "rcn/rcn_model.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcn/rcn.h"
#include "rcn_context_private.h"
#include "rcn_safetensors.h"

/* A network's parameters as tensors of a file. Counters are one float in the network and an int64
 * in a file, so they pass through `counters`. `values` is the network's block or a copy of it. */
typedef struct tensor_table {
    rcn__file_tensor *tensors;
    int64_t *counters;
    int64_t count;
} tensor_table;

/* Counters (num_batches_tracked) are floats in the network, and a file may have set one to
 * anything: beyond what a double counts exactly it starts again. */
static int64_t counter_value(float value) {
    return value >= 0 && value <= 0x1p53f ? (int64_t)value : 0;
}

static rcn_status make_table(tensor_table *out, rcn_context *ctx, const rcn_net *net,
                             float *values) {
    rcn_status status;
    out->count = rcn_net_parameter_count(net);
    RCN_ALLOC_ZERO(out->tensors, ctx, out->count, "the table of tensors");
    RCN_ALLOC_ZERO(out->counters, ctx, out->count, "the table of tensors");
    for (int i = 0; i < (int)out->count; ++i) {
        const rcn_parameter *parameter = rcn_net_parameter(net, i);
        rcn__file_tensor *tensor = &out->tensors[i];
        tensor->name = parameter->name;
        tensor->rank = parameter->dimensions;
        memcpy(tensor->shape, parameter->shape, sizeof parameter->shape);
        if (parameter->kind == RCN_COUNTER) {
            out->counters[i] = counter_value(values[parameter->offset]);
            tensor->type = RCN_INT64;
            tensor->data = &out->counters[i];
            tensor->optional = 1; /* nothing depends on it, and many files leave it out */
        } else {
            tensor->type = RCN_FLOAT32;
            tensor->data = values + parameter->offset;
        }
    }
done:
    return status;
}

static void free_table(tensor_table *table, rcn_context *ctx) {
    rcn__free(ctx, table->tensors);
    rcn__free(ctx, table->counters);
}

/* Reads into a copy of the block first, so that the network changes all at once or not at all. */
static rcn_status load_values(rcn__load_report *report, rcn_net *net, rcn_context *ctx,
                              rcn__safetensors *file, const rcn__load_options *options) {
    rcn_status status;
    tensor_table table = {NULL, NULL, 0};
    float *values = NULL;
    RCN_ALLOC(values, ctx, rcn_net_floats(net), "the weights");
    memcpy(values, rcn_net_values(net), sizeof *values * (size_t)rcn_net_floats(net));
    RCN_TRY(make_table(&table, ctx, net, values));
    RCN_TRY(rcn__safetensors_load(report, file, ctx, table.tensors, table.count, options));
    /* The tensors were read into the copy itself, the counters beside it. */
    for (int i = 0; i < (int)table.count; ++i) {
        const rcn_parameter *parameter = rcn_net_parameter(net, i);
        if (parameter->kind == RCN_COUNTER) values[parameter->offset] = (float)table.counters[i];
    }
    memcpy(rcn_net_edit_values(net), values, sizeof *values * (size_t)rcn_net_floats(net));
done:
    free_table(&table, ctx);
    rcn__free(ctx, values);
    return status;
}

/* ---- what network a file is ------------------------------------------------------------------ */

/* Shape of a tensor of the file; 0 when there is no such tensor. */
static int find_shape(int64_t shape[RCN_TENSOR_RANK], const rcn__safetensors *file,
                      const char *name) {
    for (int64_t i = 0; i < rcn__safetensors_count(file); ++i) {
        const rcn__file_tensor tensor = rcn__safetensors_tensor(file, i);
        if (!strcmp(tensor.name, name)) {
            memcpy(shape, tensor.shape, sizeof tensor.shape);
            return tensor.rank;
        }
    }
    return 0;
}

static rcn_status parse_arch(rcn_arch *out, rcn_context *ctx, const char *path, const char *text) {
    if (!text)
        return rcn__fail(ctx, RCN_EFORMAT,
                         "%s does not name its network: its metadata has no "
                         "\"arch\".",
                         path);
    /* The enumeration has no gaps: the first number without a name ends it. */
    for (int arch = RCN_UNET; rcn_arch_name((rcn_arch)arch); ++arch)
        if (!strcmp(text, rcn_arch_name((rcn_arch)arch))) {
            *out = (rcn_arch)arch;
            return RCN_OK;
        }
    return rcn__fail(ctx, RCN_EFORMAT, "%s contains an unknown network: %.40s.", path, text);
}

static rcn_status parse_count(int *out, rcn_context *ctx, const char *path, const char *key,
                              const char *text) {
    char *end = NULL;
    const long value = text ? strtol(text, &end, 10) : 0;
    if (!text || *end || value < 1 || value > 4096)
        return rcn__fail(ctx, RCN_EFORMAT,
                         "%s: its metadata must give \"%s\" as a number from 1 to 4096.", path,
                         key);
    *out = (int)value;
    return RCN_OK;
}

/* `count` numbers from JSON, one alone or several as an array; where the key is absent they stay.
 * Read and written as JSON because printf and strtod follow the host's locale. */
static rcn_status parse_numbers(double *out, rcn_context *ctx, const char *path, const char *key,
                                const char *text, int count) {
    double numbers[3] = {0, 0, 0};
    if (!text) return RCN_OK;
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    int good = count == 1 || (json_is_array(json) && json_array_size(json) == (size_t)count);
    for (int i = 0; good && i < count; ++i) {
        const json_t *one = count == 1 ? json : json_array_get(json, (size_t)i);
        good = json_is_number(one);
        numbers[i] = json_number_value(one);
    }
    json_decref(json);
    if (!good)
        return rcn__fail(ctx, RCN_EFORMAT, "%s: its metadata must give \"%s\" as %s.", path, key,
                         count == 1 ? "a number" : "three numbers");
    memcpy(out, numbers, sizeof *out * (size_t)count);
    return RCN_OK;
}

/* Width and depth of a U-Net, outputs of any network: the tensors know. */
static rcn_status read_shapes(rcn_net_options *options, rcn_context *ctx, const char *path,
                              const rcn__safetensors *file) {
    int64_t shape[RCN_TENSOR_RANK];
    const int unet = options->arch == RCN_UNET || options->arch == RCN_UNET3D;
    const char *head = unet ? "head.weight" : "segmentation_head.0.weight";
    if (find_shape(shape, file, head) < 2 || shape[0] < 1 || shape[0] > 4096)
        return rcn__fail(ctx, RCN_EFORMAT, "%s is not the weights of a %s: it has no tensor %s.",
                         path, rcn_arch_name(options->arch), head);
    options->outputs = (int)shape[0];
    if (!unet) return RCN_OK;
    if (find_shape(shape, file, "encoder.0.0.weight") < 2 || shape[0] > 4096)
        return rcn__fail(ctx, RCN_EFORMAT, "%s is not the weights of a %s: it has no tensor %s.",
                         path, rcn_arch_name(options->arch), "encoder.0.0.weight");
    options->width = (int)shape[0];
    /* The depth is how many stages follow the first one. */
    for (options->depth = 0; options->depth < 16; ++options->depth) {
        char name[40];
        snprintf(name, sizeof name, "encoder.%d.0.weight", options->depth + 1);
        if (!find_shape(shape, file, name)) break;
    }
    return RCN_OK;
}

static rcn_status describe(rcn_net_options *options, rcn_context *ctx, const char *path,
                           const rcn__safetensors *file) {
    rcn_status status;
    const char *norm = rcn__safetensors_metadata(file, "norm");
    RCN_TRY(parse_arch(&options->arch, ctx, path, rcn__safetensors_metadata(file, "arch")));
    RCN_TRY(parse_count(&options->channels, ctx, path, "channels",
                        rcn__safetensors_metadata(file, "channels")));
    RCN_TRY(parse_numbers(options->spacing, ctx, path, "spacing",
                          rcn__safetensors_metadata(file, "spacing"), 3));
    RCN_TRY(parse_numbers(&options->dropout, ctx, path, "dropout",
                          rcn__safetensors_metadata(file, "dropout"), 1));
    RCN_TRY(read_shapes(options, ctx, path, file));
    if (norm && !strcmp(norm, "instance"))
        options->norm = RCN_NORM_INSTANCE;
    else if (norm && strcmp(norm, "batch"))
        status = rcn__fail(ctx, RCN_EFORMAT, "%s: \"norm\" must be batch or instance, not %.40s.",
                           path, norm);
    if (status == RCN_OK && rcn_net_check(options))
        status = rcn__fail(ctx, RCN_EFORMAT, "%s cannot be used: %s", path, rcn_net_check(options));
done:
    return status;
}

/* ---- entries --------------------------------------------------------------------------------- */

rcn_status rcn_model_load(rcn_net **out, rcn_context *ctx, const char *path) {
    rcn_status status;
    rcn__safetensors *file = NULL;
    rcn_net *net = NULL;
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    const rcn__load_options strict = RCN_LOAD_OPTIONS_INIT;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !path) return rcn__fail(ctx, RCN_EINVALID, "No file name was given.");
    RCN_TRY(rcn__safetensors_open(&file, ctx, path));
    RCN_TRY(describe(&options, ctx, path, file));
    RCN_TRY(rcn_net_create(&net, ctx, &options));
    RCN_TRY(load_values(NULL, net, ctx, file, &strict));
    *out = net;
    net = NULL;
done:
    rcn_net_destroy(net);
    rcn__safetensors_close(file);
    return status;
}

/* What rcn_model_save() writes itself; a caller's entries have other keys. */
enum { OWN = 6 };
static const char *const OWN_KEYS[OWN] = {"arch",    "channels", "norm",
                                          "spacing", "dropout",  "version"};

static rcn_status check_key(rcn_context *ctx, const char *key) {
    for (int k = 0; k < OWN; ++k)
        if (!strcmp(key, OWN_KEYS[k]))
            return rcn__fail(ctx, RCN_EINVALID, "The key \"%s\" of a model is reserved.", key);
    return RCN_OK;
}

rcn_status rcn_model_save(rcn_context *ctx, const char *path, const rcn_net *net,
                          const rcn_model_entry *entries, int count) {
    rcn_status status;
    json_t *json = NULL;
    char *dropout = NULL, *spacing = NULL;
    tensor_table table = {NULL, NULL, 0};
    rcn__metadata *metadata = NULL;
    char channels[16];
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!path || !net || count < 0 || (count && !entries))
        return rcn__fail(ctx, RCN_EINVALID, "No network or no file name was given.");
    const rcn_net_options *options = rcn_net_get_options(net);
    snprintf(channels, sizeof channels, "%d", options->channels);
    json = json_pack("[f, f, f]", options->spacing[0], options->spacing[1], options->spacing[2]);
    spacing = json_dumps(json, 0);
    json_decref(json);
    json = json_real(options->dropout);
    dropout = json_dumps(json, JSON_ENCODE_ANY);
    json_decref(json);
    if (!spacing || !dropout)
        RCN_TRY(rcn__fail(ctx, RCN_ENOMEM, "Out of memory for the metadata."));
    const char *const own[OWN] = {rcn_arch_name(options->arch),
                                  channels,
                                  options->norm == RCN_NORM_INSTANCE ? "instance" : "batch",
                                  spacing,
                                  dropout,
                                  RCN_VERSION};
    RCN_ALLOC(metadata, ctx, OWN + count, "the metadata");
    for (int k = 0; k < OWN; ++k) {
        metadata[k].key = OWN_KEYS[k];
        metadata[k].value = own[k];
    }
    for (int i = 0; i < count; ++i) {
        if (!entries[i].key || !entries[i].value)
            RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "Entry %d of the metadata is empty.", i + 1));
        RCN_TRY(check_key(ctx, entries[i].key));
        metadata[OWN + i].key = entries[i].key;
        metadata[OWN + i].value = entries[i].value;
    }
    RCN_TRY(make_table(&table, ctx, net, (float *)rcn_net_values(net))); /* only read */
    RCN_TRY(rcn__safetensors_write(ctx, path, table.tensors, table.count, metadata, OWN + count));
done:
    free_table(&table, ctx);
    rcn__free(ctx, metadata);
    free(spacing);
    free(dropout);
    return status;
}

rcn_status rcn_model_read(char **out, rcn_context *ctx, const char *path, const char *key) {
    rcn_status status;
    rcn__safetensors *file = NULL;
    char *text = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !path || !key)
        return rcn__fail(ctx, RCN_EINVALID, "No file name or no key was given.");
    RCN_TRY(rcn__safetensors_open(&file, ctx, path));
    const char *value = rcn__safetensors_metadata(file, key);
    if (value) {
        RCN_ALLOC(text, ctx, (int64_t)strlen(value) + 1, "the metadata");
        strcpy(text, value);
    }
    *out = text;
done:
    rcn__safetensors_close(file);
    return status;
}

/* The header's length changes with the metadata, so the whole file is written anew, tensors and
 * all; no network is made of it, and what is not known here stays as it is (F16 becomes F32). */
rcn_status rcn_model_set(rcn_context *ctx, const char *path, const char *key, const char *value) {
    rcn_status status;
    rcn__safetensors *file = NULL;
    rcn__file_tensor *tensors = NULL;
    rcn__metadata *metadata = NULL;
    const rcn__load_options strict = RCN_LOAD_OPTIONS_INIT;
    int64_t count = 0, strings = 0;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!path || !key) return rcn__fail(ctx, RCN_EINVALID, "No file name or no key was given.");
    RCN_TRY(check_key(ctx, key));
    RCN_TRY(rcn__safetensors_open(&file, ctx, path));
    count = rcn__safetensors_count(file);
    RCN_ALLOC_ZERO(tensors, ctx, count, "the table of tensors");
    for (int64_t i = 0; i < count; ++i) {
        int64_t elements = 1;
        tensors[i] = rcn__safetensors_tensor(file, i);
        for (int d = 0; d < tensors[i].rank; ++d) elements *= tensors[i].shape[d];
        RCN_TRY(rcn__alloc(&tensors[i].data, ctx, elements, rcn_type_size(tensors[i].type),
                           "the weights"));
    }
    RCN_TRY(rcn__safetensors_load(NULL, file, ctx, tensors, count, &strict));
    rcn__safetensors_detach(file);
    RCN_ALLOC(metadata, ctx, rcn__safetensors_metadata_count(file) + 1, "the metadata");
    for (int64_t i = 0; i < rcn__safetensors_metadata_count(file); ++i) {
        const char *other = rcn__safetensors_metadata_key(file, i);
        if (!strcmp(other, key)) continue;
        metadata[strings].key = other;
        metadata[strings++].value = rcn__safetensors_metadata(file, other);
    }
    if (value) {
        metadata[strings].key = key;
        metadata[strings++].value = value;
    }
    RCN_TRY(rcn__safetensors_write(ctx, path, tensors, count, metadata, strings));
done:
    for (int64_t i = 0; tensors && i < count; ++i) rcn__free(ctx, tensors[i].data);
    rcn__free(ctx, tensors);
    rcn__free(ctx, metadata);
    rcn__safetensors_close(file);
    return status;
}

void rcn_model_free(char *text, rcn_context *ctx) { rcn__free(ctx, text); }

rcn_status rcn_model_init_encoder(int64_t *loaded, rcn_net *net, rcn_context *ctx, const char *path,
                                  rcn_unused_fn unused, void *payload) {
    rcn_status status;
    rcn__safetensors *file = NULL;
    rcn__load_report report = {0, NULL, 0, NULL, 0};
    rcn__load_options options = RCN_LOAD_OPTIONS_INIT;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!net || !path) return rcn__fail(ctx, RCN_EINVALID, "No network or no file name was given.");
    const rcn_arch arch = rcn_net_get_options(net)->arch;
    if (arch == RCN_UNET || arch == RCN_UNET3D)
        return rcn__fail(ctx, RCN_EINVALID, "A %s has no ResNet to start from; use an fpn-resnet.",
                         rcn_arch_name(arch));
    /* A file of torchvision has a head that the encoder has not, and three channels. */
    options.prefix = "encoder.";
    options.allow_unused = 1;
    options.adapt_inputs = "encoder.conv1.weight";
    RCN_TRY(rcn__safetensors_open(&file, ctx, path));
    RCN_TRY(load_values(&report, net, ctx, file, &options));
    if (loaded) *loaded = report.loaded;
    for (int64_t i = 0; unused && i < report.unused_count; ++i) unused(report.unused[i], payload);
done:
    rcn__safetensors_close(file);
    return status;
}
