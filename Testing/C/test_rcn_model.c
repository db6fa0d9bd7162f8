// SPDX-License-Identifier: Apache-2.0
/* Model files: what is written comes back, and what does not fit is refused. */
#include "rcn_test.h"
#include "rcn_test_fill.h"

#include "rcn/rcn.h"
#include "rcn_safetensors.h"

static const char *const path = "test_rcn_model.safetensors";

enum { MOST = 512 };

/* A network's parameters as tensors that a test may spoil before they are written. */
typedef struct table {
    rcn__file_tensor tensors[MOST];
    int64_t counters[MOST];
    int64_t count;
} table;

static table *make_table(rcn_net *net) {
    table *out = calloc(1, sizeof *out);
    out->count = rcn_net_parameter_count(net);
    for (int p = 0; p < (int)out->count; ++p) {
        const rcn_parameter *parameter = rcn_net_parameter(net, p);
        rcn__file_tensor *tensor = &out->tensors[p];
        tensor->name = parameter->name;
        tensor->rank = parameter->dimensions;
        tensor->type = parameter->kind == RCN_COUNTER ? RCN_INT64 : RCN_FLOAT32;
        memcpy(tensor->shape, parameter->shape, sizeof parameter->shape);
        tensor->data = parameter->kind == RCN_COUNTER
                           ? (void *)&out->counters[p]
                           : (void *)(rcn_net_edit_values(net) + parameter->offset);
    }
    return out;
}

static rcn__file_tensor *find(table *in, const char *name) {
    for (int64_t i = 0; i < in->count; ++i)
        if (!strcmp(in->tensors[i].name, name)) return &in->tensors[i];
    CHECK(!"the tensor is there");
    return &in->tensors[0];
}

static rcn_net *make_net(rcn_context *ctx, rcn_arch arch, int channels, int outputs) {
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    rcn_net *net = NULL;
    options.arch = arch;
    options.channels = channels;
    options.outputs = outputs;
    options.width = 8;
    options.depth = 1;
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_OK);
    fill_net(net);
    return net;
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void check_round_trip(const rcn_net_options *options) {
    const rcn_model_entry entries[] = {{"raters", "[\"A\", \"\xc3\x89\"]"},
                                       {"normalization", "{\"kind\": \"fixed\"}"}};
    rcn_context *ctx = make_context(1);
    rcn_net *net = NULL, *again = NULL;
    char *text = NULL;
    CHECK_STATUS(rcn_net_create(&net, ctx, options), RCN_OK);
    fill_net(net);
    for (int p = 0; p < rcn_net_parameter_count(net); ++p)
        if (rcn_net_parameter(net, p)->kind == RCN_COUNTER)
            rcn_net_edit_values(net)[rcn_net_parameter(net, p)->offset] = (float)(100 + p);
    CHECK_STATUS(rcn_model_save(ctx, path, net, entries, 2), RCN_OK);
    CHECK_STATUS(rcn_model_load(&again, ctx, path), RCN_OK);
    if (again) {
        const rcn_net_options *found = rcn_net_get_options(again);
        CHECK(found->arch == options->arch && found->channels == options->channels);
        CHECK(found->outputs == options->outputs && found->dropout == options->dropout);
        CHECK(!memcmp(found->spacing, options->spacing, sizeof found->spacing));
        if (options->arch == RCN_UNET || options->arch == RCN_UNET3D) {
            CHECK(found->width == options->width && found->depth == options->depth);
            CHECK(found->norm == options->norm);
        }
        CHECK(rcn_net_floats(again) == rcn_net_floats(net));
        CHECK(!memcmp(rcn_net_values(again), rcn_net_values(net),
                      sizeof(float) * (size_t)rcn_net_floats(net)));
    }
    CHECK_STATUS(rcn_model_read(&text, ctx, path, "raters"), RCN_OK);
    CHECK(text && !strcmp(text, entries[0].value));
    rcn_model_free(text, ctx);
    CHECK_STATUS(rcn_model_read(&text, ctx, path, "arch"), RCN_OK);
    CHECK(text && !strcmp(text, rcn_arch_name(options->arch)));
    rcn_model_free(text, ctx);
    CHECK_STATUS(rcn_model_read(&text, ctx, path, "version"), RCN_OK);
    CHECK(text && !strcmp(text, RCN_VERSION));
    rcn_model_free(text, ctx);
    CHECK_STATUS(rcn_model_read(&text, ctx, path, "nobody"), RCN_OK);
    CHECK(!text);
    rcn_net_destroy(again);
    rcn_net_destroy(net);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void test_round_trips(void) {
    for (int arch = RCN_UNET; rcn_arch_name((rcn_arch)arch); ++arch) {
        rcn_net_options options = RCN_NET_OPTIONS_INIT;
        options.arch = (rcn_arch)arch;
        options.channels = 1 + arch % 3;
        options.outputs = 3 + arch;
        options.dropout = 0.1;
        check_round_trip(&options);
    }
}

static void test_round_trip_of_unusual_options(void) {
    rcn_net_options options = {RCN_UNET3D, 2, 1, 24, 6, RCN_NORM_INSTANCE, {0.1, 1.0 / 3, 5}, 0.0};
    check_round_trip(&options);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Loading must fail this way, and must not make a network. */
static void check_refused(const char *file, rcn_status expected, const char *words) {
    rcn_context *ctx = make_context(1);
    rcn_net *const mark = (rcn_net *)&ctx;
    rcn_net *net = mark;
    CHECK_STATUS(rcn_model_load(&net, ctx, file), expected);
    CHECK_ERROR(ctx, words);
    CHECK(net == mark);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void test_refused_metadata(void) {
    static const struct {
        const char *arch, *channels, *key, *value, *words;
    } cases[] = {
        {NULL, "1", NULL, NULL, "has no \"arch\""},
        {"transformer", "1", NULL, NULL, "unknown network: transformer"},
        {"", "1", NULL, NULL, "unknown network"},
        {"fpn-resnet18", "1", NULL, NULL, "segmentation_head.0.weight"},
        {"unet3d", "1", NULL, NULL, "is needed"},
        {"unet", NULL, NULL, NULL, "\"channels\""},
        {"unet", "", NULL, NULL, "\"channels\""},
        {"unet", "0", NULL, NULL, "\"channels\""},
        {"unet", "-1", NULL, NULL, "\"channels\""},
        {"unet", "1x", NULL, NULL, "\"channels\""},
        {"unet", "99999999999999999999", NULL, NULL, "\"channels\""},
        {"unet", "2000", NULL, NULL, "1 to 1024 channels"},
        {"unet", "2", NULL, NULL, "encoder.0.0.weight"},
        {"unet", "1", "norm", "group", "batch or instance, not group"},
        {"unet", "1", "norm", "instance", "num_batches_tracked"},
        {"unet", "1", "spacing", "[1, 1]", "\"spacing\""},
        {"unet", "1", "spacing", "[1, 1, \"1\"]", "\"spacing\""},
        {"unet", "1", "spacing", "1", "\"spacing\""},
        {"unet", "1", "spacing", "[1, 1, 1", "\"spacing\""},
        {"unet", "1", "spacing", "[1, 0, 1]", "0.000001 to 1000000 mm"},
        {"unet", "1", "spacing", "[1, 1e-9, 1]", "0.000001 to 1000000 mm"},
        {"unet", "1", "spacing", "[1, 1, 1e300]", "0.000001 to 1000000 mm"},
        {"unet", "1", "dropout", "[0]", "\"dropout\""},
        {"unet", "1", "dropout", "much", "\"dropout\""},
    };
    rcn_context *ctx = make_context(1);
    rcn_net *net = make_net(ctx, RCN_UNET, 1, 3);
    table *all = make_table(net);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        rcn__metadata metadata[3];
        int count = 0;
        if (cases[i].arch) metadata[count++] = (rcn__metadata){"arch", cases[i].arch};
        if (cases[i].channels) metadata[count++] = (rcn__metadata){"channels", cases[i].channels};
        if (cases[i].key) metadata[count++] = (rcn__metadata){cases[i].key, cases[i].value};
        CHECK_STATUS(rcn__safetensors_write(ctx, path, all->tensors, all->count, metadata, count),
                     RCN_OK);
        check_refused(path, RCN_EFORMAT, cases[i].words);
    }
    free(all);
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
}

static void spoil_missing(table *all) {
    *find(all, "head.bias") = all->tensors[all->count - 1];
    --all->count;
}

static void spoil_extra(table *all) {
    all->tensors[all->count] = *find(all, "head.bias");
    all->tensors[all->count++].name = "head.more";
}

static void spoil_shape(table *all) { find(all, "up.0.bias")->shape[0] = 7; }

static void spoil_rank(table *all) {
    rcn__file_tensor *tensor = find(all, "up.0.bias");
    tensor->rank = 2;
    tensor->shape[1] = 1;
}

static void spoil_type(table *all) { find(all, "up.0.bias")->type = RCN_INT32; }

static void spoil_width(table *all) { find(all, "encoder.0.0.weight")->shape[0] = 6; }

static void spoil_deep(table *all) {
    static const char *const names[] = {"encoder.2.0.weight", "encoder.3.0.weight",
                                        "encoder.4.0.weight", "encoder.5.0.weight",
                                        "encoder.6.0.weight", "encoder.7.0.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        all->tensors[all->count] = *find(all, "head.bias");
        all->tensors[all->count++].name = names[i];
    }
}

static void spoil_head(table *all) { find(all, "head.weight")->rank = 1; }

static void spoil_first(table *all) { find(all, "encoder.0.0.weight")->name = "first"; }

static void test_refused_tensors(void) {
    static const struct {
        void (*spoil)(table *);
        const char *words;
    } cases[] = {
        {spoil_missing, "tensor 'head.bias' is missing"},
        {spoil_extra, "'head.more' is unknown"},
        {spoil_shape, "'up.0.bias' is 7; 8 is needed"},
        {spoil_rank, "'up.0.bias' is 8x1; 8 is needed"},
        {spoil_type, "dtype I32; F32 is needed"},
        {spoil_width, "multiple of 8"},
        {spoil_deep, "depth of a U-Net"},
        {spoil_head, "no tensor head.weight"},
        {spoil_first, "no tensor encoder.0.0.weight"},
    };
    const rcn__metadata metadata[] = {{"arch", "unet"}, {"channels", "1"}};
    rcn_context *ctx = make_context(1);
    rcn_net *net = make_net(ctx, RCN_UNET, 1, 3), *again = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        table *all = make_table(net);
        cases[i].spoil(all);
        CHECK_STATUS(rcn__safetensors_write(ctx, path, all->tensors, all->count, metadata, 2),
                     RCN_OK);
        check_refused(path, RCN_EFORMAT, cases[i].words);
        free(all);
    }
    /* The same without a spoiler, and without the counters, is a model; a hostile counter is no
     * harm. */
    table *all = make_table(net);
    for (int64_t i = 0; i < all->count; ++i) all->counters[i] = INT64_MAX;
    CHECK_STATUS(rcn__safetensors_write(ctx, path, all->tensors, all->count, metadata, 2), RCN_OK);
    CHECK_STATUS(rcn_model_load(&again, ctx, path), RCN_OK);
    CHECK_STATUS(rcn_model_save(ctx, path, again, NULL, 0), RCN_OK);
    rcn_net_destroy(again);
    again = NULL;
    for (int64_t i = all->count; i-- > 0;)
        if (all->tensors[i].type == RCN_INT64) all->tensors[i] = all->tensors[--all->count];
    CHECK_STATUS(rcn__safetensors_write(ctx, path, all->tensors, all->count, metadata, 2), RCN_OK);
    CHECK_STATUS(rcn_model_load(&again, ctx, path), RCN_OK);
    rcn_net_destroy(again);
    free(all);
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
}

/* Writes the first `bytes` bytes of a saved network, the last four of them as given. */
static void write_damaged(const char *content, long bytes, const float *last) {
    FILE *stream = fopen(path, "wb");
    CHECK(stream && fwrite(content, 1, (size_t)bytes, stream) == (size_t)bytes);
    if (last) CHECK(!fseek(stream, -4, SEEK_END) && fwrite(last, 4, 1, stream) == 1);
    CHECK(stream && !fclose(stream));
}

static void test_refused_bytes(void) {
    const float bad[] = {NAN, INFINITY};
    rcn_context *ctx = make_context(1);
    rcn_net *net = make_net(ctx, RCN_UNET, 1, 3);
    CHECK_STATUS(rcn_model_save(ctx, path, net, NULL, 0), RCN_OK);
    FILE *stream = fopen(path, "rb");
    CHECK(stream && !fseek(stream, 0, SEEK_END));
    const long size = ftell(stream);
    char *content = malloc((size_t)size);
    rewind(stream);
    CHECK(fread(content, 1, (size_t)size, stream) == (size_t)size);
    fclose(stream);
    for (int i = 0; i < 2; ++i) {
        write_damaged(content, size, &bad[i]);
        check_refused(path, RCN_EDATA, "NaN or infinite");
    }
    const long cuts[] = {0, 7, 8, 100, size / 2, size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
        write_damaged(content, cuts[i], NULL);
        check_refused(path, RCN_EFORMAT, path);
    }
    check_refused("no/such/file.safetensors", RCN_EIO, "cannot be opened");
    check_refused(NULL, RCN_EINVALID, "No file name was given");
    free(content);
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
}

static void test_bad_arguments(void) {
    static const char *const own[] = {"arch", "channels", "norm", "spacing", "dropout", "version"};
    rcn_context *ctx = make_context(1);
    rcn_net *net = make_net(ctx, RCN_UNET, 1, 3);
    char *text = (char *)&ctx;
    remove(path);
    for (size_t i = 0; i < sizeof own / sizeof *own; ++i) {
        const rcn_model_entry entry = {own[i], "1"};
        CHECK_STATUS(rcn_model_save(ctx, path, net, &entry, 1), RCN_EINVALID);
        CHECK_ERROR(ctx, own[i]);
    }
    const rcn_model_entry twice[] = {{"a", "1"}, {"a", "2"}}, empty[] = {{"a", NULL}, {NULL, "a"}};
    CHECK_STATUS(rcn_model_save(ctx, path, net, twice, 2), RCN_EINVALID);
    CHECK_ERROR(ctx, "twice");
    CHECK_STATUS(rcn_model_save(ctx, path, net, &empty[0], 1), RCN_EINVALID);
    CHECK_STATUS(rcn_model_save(ctx, path, net, &empty[1], 1), RCN_EINVALID);
    CHECK_STATUS(rcn_model_save(ctx, path, net, NULL, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_model_save(ctx, path, net, NULL, -1), RCN_EINVALID);
    CHECK_STATUS(rcn_model_save(ctx, path, NULL, NULL, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_model_save(ctx, NULL, net, NULL, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_model_save(NULL, path, net, NULL, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_model_save(ctx, "no/such/file.safetensors", net, NULL, 0), RCN_EIO);
    rcn_net_edit_values(net)[0] = NAN;
    CHECK_STATUS(rcn_model_save(ctx, path, net, NULL, 0), RCN_EDATA);
    CHECK(!fopen(path, "rb")); /* none of these wrote anything */
    CHECK_STATUS(rcn_model_load(NULL, ctx, path), RCN_EINVALID);
    CHECK_STATUS(rcn_model_load(&net, NULL, path), RCN_EINVALID);
    CHECK_STATUS(rcn_model_read(&text, ctx, path, "arch"), RCN_EIO);
    CHECK_STATUS(rcn_model_read(&text, ctx, path, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_model_read(&text, ctx, NULL, "arch"), RCN_EINVALID);
    CHECK_STATUS(rcn_model_read(NULL, ctx, path, "arch"), RCN_EINVALID);
    CHECK(text == (char *)&ctx);
    CHECK_STATUS(rcn_model_init_encoder(NULL, NULL, ctx, path, NULL, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_model_init_encoder(NULL, net, NULL, path, NULL, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_model_init_encoder(NULL, net, ctx, path, NULL, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "A unet has no ResNet");
    rcn_net_destroy(net);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* ---- starting from a ResNet ------------------------------------------------------------------ */

typedef struct names {
    int count;
    char first[64];
} names;

static void note_name(const char *name, void *payload) {
    names *out = payload;
    if (!out->count++) snprintf(out->first, sizeof out->first, "%s", name);
}

/* Writes the encoder of a network as torchvision would: without the prefix, with a classifier. */
static void write_resnet(rcn_context *ctx, rcn_net *net, const char *leave_out) {
    static float classifier[10];
    table *all = make_table(net);
    int64_t count = 0;
    for (int64_t i = 0; i < all->count; ++i) {
        if (strncmp(all->tensors[i].name, "encoder.", 8)) continue;
        all->tensors[count] = all->tensors[i];
        all->tensors[count].name += 8;
        if (!leave_out || strcmp(all->tensors[count].name, leave_out)) ++count;
    }
    all->tensors[count++] = (rcn__file_tensor){"fc.bias", RCN_FLOAT32, 1, {10}, classifier, 0};
    CHECK_STATUS(rcn__safetensors_write(ctx, path, all->tensors, count, NULL, 0), RCN_OK);
    free(all);
}

static void test_init_encoder(void) {
    rcn_context *ctx = make_context(1);
    rcn_net *from = make_net(ctx, RCN_FPN_RESNET18, 3, 2);
    rcn_net *same = make_net(ctx, RCN_FPN_RESNET18, 3, 4),
            *gray = make_net(ctx, RCN_FPN_RESNET18, 1, 4);
    const rcn_parameter *p, *first = rcn_net_find_parameter(from, "encoder.conv1.weight");
    int64_t loaded = 0, encoder = 0;
    names unused = {0, ""};
    for (int64_t i = 0; i < rcn_net_floats(same); ++i) rcn_net_edit_values(same)[i] = 0.5f;
    write_resnet(ctx, from, NULL);
    CHECK_STATUS(rcn_model_init_encoder(&loaded, same, ctx, path, note_name, &unused), RCN_OK);
    CHECK(unused.count == 1 && !strcmp(unused.first, "fc.bias"));
    for (int i = 0; (p = rcn_net_parameter(same, i)); ++i) {
        const float *values = rcn_net_values(same) + p->offset;
        if (!strncmp(p->name, "encoder.", 8)) {
            const rcn_parameter *source = rcn_net_find_parameter(from, p->name);
            ++encoder;
            CHECK(!memcmp(values, rcn_net_values(from) + source->offset,
                          sizeof *values * (size_t)p->count));
        } else {
            CHECK(values[0] == 0.5f &&
                  values[p->count - 1] == 0.5f); /* the decoder keeps its own */
        }
    }
    CHECK(loaded == encoder && encoder > 60);

    /* Three channels to one: the sum. */
    CHECK_STATUS(rcn_model_init_encoder(NULL, gray, ctx, path, NULL, NULL), RCN_OK);
    const float *three = rcn_net_values(from) + first->offset;
    const float *one =
        rcn_net_values(gray) + rcn_net_find_parameter(gray, "encoder.conv1.weight")->offset;
    for (int o = 0; o < 64; ++o)
        for (int i = 0; i < 49; ++i) {
            const float *in = three + o * 3 * 49 + i;
            CHECK_NEAR(one[o * 49 + i], (double)in[0] + in[49] + in[98], 1e-6);
        }

    /* A model of ours will do as well; what is no encoder is told. */
    CHECK_STATUS(rcn_model_save(ctx, path, from, NULL, 0), RCN_OK);
    unused.count = 0;
    CHECK_STATUS(rcn_model_init_encoder(&loaded, gray, ctx, path, note_name, &unused), RCN_OK);
    CHECK(loaded == encoder && unused.count == rcn_net_parameter_count(from) - encoder);
    rcn_net_destroy(gray);
    rcn_net_destroy(same);
    rcn_net_destroy(from);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* On failure nothing is told and nothing changes. */
static void check_encoder_refused(rcn_context *ctx, rcn_net *net, rcn_status expected,
                                  const char *words) {
    const size_t bytes = sizeof(float) * (size_t)rcn_net_floats(net);
    float *before = malloc(bytes);
    int64_t loaded = -7;
    names unused = {0, ""};
    memcpy(before, rcn_net_values(net), bytes);
    CHECK_STATUS(rcn_model_init_encoder(&loaded, net, ctx, path, note_name, &unused), expected);
    CHECK_ERROR(ctx, words);
    CHECK(loaded == -7 && unused.count == 0);
    CHECK(!memcmp(before, rcn_net_values(net), bytes));
    free(before);
}

static void test_init_encoder_refuses(void) {
    rcn_context *ctx = make_context(1);
    rcn_net *net = make_net(ctx, RCN_FPN_RESNET18, 1, 2),
            *deeper = make_net(ctx, RCN_FPN_RESNET34, 1, 2);
    const float bad = NAN;
    remove(path);
    check_encoder_refused(ctx, net, RCN_EIO, "cannot be opened");
    write_resnet(ctx, net, "layer3.1.conv2.weight");
    check_encoder_refused(ctx, net, RCN_EFORMAT, "layer3.1.conv2.weight");
    write_resnet(ctx, net, NULL);
    check_encoder_refused(ctx, deeper, RCN_EFORMAT, "tensor 'encoder.layer1.2");
    FILE *stream = fopen(path, "r+b"); /* the classifier comes last and is not read */
    CHECK(stream && !fseek(stream, -44, SEEK_END) && fwrite(&bad, 4, 1, stream) == 1);
    CHECK(stream && !fclose(stream));
    check_encoder_refused(ctx, net, RCN_EDATA, "NaN or infinite");

    /* A bottleneck's convolutions have other shapes. */
    rcn_net *bottlenecks = make_net(ctx, RCN_FPN_RESNET50, 1, 2);
    write_resnet(ctx, bottlenecks, NULL);
    check_encoder_refused(ctx, net, RCN_EFORMAT, "is needed");
    rcn_net_destroy(bottlenecks);
    rcn_net_destroy(deeper);
    rcn_net_destroy(net);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* ---- memory and canceling ------------------------------------------------------------------- */

static rcn_status save_and_load(rcn_context *ctx, void *payload) {
    const rcn_model_entry entry = {"raters", "[]"};
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    rcn_net *net = NULL, *again = NULL;
    char *text = NULL;
    (void)payload;
    options.width = 8;
    options.depth = 1;
    rcn_status status = rcn_net_create(&net, ctx, &options);
    if (!status) status = rcn_model_save(ctx, path, net, &entry, 1);
    if (!status) status = rcn_model_load(&again, ctx, path);
    if (!status) status = rcn_model_read(&text, ctx, path, "raters");
    CHECK(status == RCN_OK || !text);
    rcn_model_free(text, ctx);
    rcn_net_destroy(again);
    rcn_net_destroy(net);
    return status;
}

/* One string changes, everything else stays. */
static void test_set(void) {
    const rcn_model_entry entries[] = {{"raters", "[\"A\"]"}, {"note", "old"}};
    rcn_context *ctx = make_context(1);
    rcn_net *net = make_net(ctx, RCN_UNET, 2, 3), *again = NULL;
    char *text = NULL;
    CHECK_STATUS(rcn_model_save(ctx, path, net, entries, 2), RCN_OK);
    CHECK_STATUS(rcn_model_set(ctx, path, "note", "new \xc3\x89"), RCN_OK);
    CHECK_STATUS(rcn_model_set(ctx, path, "recalibration", "{}"), RCN_OK);
    CHECK_STATUS(rcn_model_set(ctx, path, "arch", "unet3d"), RCN_EINVALID);
    CHECK_ERROR(ctx, "arch");
    CHECK_STATUS(rcn_model_set(ctx, path, "note", "not \xff UTF-8"), RCN_EINVALID);
    CHECK_STATUS(rcn_model_set(ctx, "nowhere/x.safetensors", "note", ""), RCN_EIO);
    CHECK_STATUS(rcn_model_set(ctx, path, NULL, ""), RCN_EINVALID);
    const char *const expected[][2] = {
        {"note", "new \xc3\x89"}, {"recalibration", "{}"}, {"raters", "[\"A\"]"}, {"arch", "unet"}};
    for (int i = 0; i < 4; ++i) {
        CHECK_STATUS(rcn_model_read(&text, ctx, path, expected[i][0]), RCN_OK);
        CHECK(text && !strcmp(text, expected[i][1]));
        rcn_model_free(text, ctx);
    }
    CHECK_STATUS(rcn_model_set(ctx, path, "recalibration", NULL), RCN_OK);
    CHECK_STATUS(rcn_model_read(&text, ctx, path, "recalibration"), RCN_OK);
    CHECK(!text);
    CHECK_STATUS(rcn_model_load(&again, ctx, path), RCN_OK);
    CHECK(again && !memcmp(rcn_net_values(again), rcn_net_values(net),
                           sizeof(float) * (size_t)rcn_net_floats(net)));
    rcn_net_destroy(again);
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
}

static rcn_status set_key(rcn_context *ctx, void *payload) {
    return rcn_model_set(ctx, path, "note", payload);
}

static rcn_status init_encoder(rcn_context *ctx, void *payload) {
    return rcn_model_init_encoder(NULL, payload, ctx, path, NULL, NULL);
}

static void test_failing_allocations(void) {
    char note[] = "note";
    check_failing_allocations(save_and_load, NULL);
    check_failing_allocations(set_key, note);
    rcn_context *ctx = make_context(1);
    rcn_net *from = make_net(ctx, RCN_FPN_RESNET18, 3, 2),
            *net = make_net(ctx, RCN_FPN_RESNET18, 1, 2);
    write_resnet(ctx, from, NULL);
    check_failing_allocations(init_encoder, net);
    rcn_net_destroy(net);
    rcn_net_destroy(from);
    rcn_context_destroy(ctx);
}

static void test_cancel(void) {
    int countdown = 5;
    rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
    rcn_context *ctx = make_context(1), *canceling = NULL;
    rcn_net *net = make_net(ctx, RCN_UNET, 1, 3), *again = NULL;
    options.progress = cancel_after;
    options.progress_payload = &countdown;
    CHECK_STATUS(rcn_model_save(ctx, path, net, NULL, 0), RCN_OK);
    CHECK_STATUS(rcn_context_create(&canceling, &options), RCN_OK);
    CHECK_STATUS(rcn_model_load(&again, canceling, path), RCN_ECANCELLED);
    CHECK(!again && rcn_context_bytes(canceling) == 0);
    rcn_context_destroy(canceling);
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(test_round_trips);
    RUN(test_round_trip_of_unusual_options);
    RUN(test_refused_metadata);
    RUN(test_refused_tensors);
    RUN(test_refused_bytes);
    RUN(test_bad_arguments);
    RUN(test_set);
    RUN(test_init_encoder);
    RUN(test_init_encoder_refuses);
    RUN(test_failing_allocations);
    RUN(test_cancel);
    remove(path);
    return TEST_RESULT;
}
