// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700

#include "rcn_safetensors.h"

#include <dirent.h>
#ifndef _WIN32
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "rcn_test.h"

/* Each test leaves this file, and anything beside it, removed. */
static const char *const path = "test_rcn_safetensors.tmp";

static int exists(const char *name) {
    FILE *stream = fopen(name, "rb");
    if (stream) fclose(stream);
    return stream != NULL;
}

/* No file of ours on its way to the path. */
static int nothing_beside(void) {
    int count = 0;
    DIR *stream = opendir(".");
    for (const struct dirent *entry; (entry = readdir(stream));)
        count += !strncmp(entry->d_name, ".rcn-", 5) && strstr(entry->d_name, path);
    closedir(stream);
    return count == 0;
}

#ifndef _WIN32
/* The name that used to be taken, as a link to somebody's file: two writers at once, and neither
 * follows it. */
static void nothing_in_the_way(void) {
    float x = 1;
    rcn_context *ctx = make_context(1);
    const rcn__file_tensor tensor = {"x", RCN_FLOAT32, 1, {1}, &x, 0};
    const char *const trap = "test_rcn_safetensors.tmp.part", *const victim =
                                                                  "test_rcn_safetensors.victim";
    FILE *stream = fopen(victim, "wb");
    CHECK(stream && !fclose(stream) && !symlink(victim, trap));
    CHECK_STATUS(rcn__safetensors_write(ctx, path, &tensor, 1, NULL, 0), RCN_OK);
    struct stat is;
    CHECK(!stat(victim, &is) && is.st_size == 0);
    CHECK(!lstat(path, &is) && S_ISREG(is.st_mode));
    remove(trap);
    remove(victim);
    remove(path);
    rcn_context_destroy(ctx);
}

#endif

/* A file in memory: header text and `bytes` bytes of data, which count up. */
static size_t make_file(unsigned char *out, const char *header, size_t bytes) {
    const size_t length = strlen(header);
    for (int i = 0; i < 8; ++i) out[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(out + 8, header, length);
    for (size_t i = 0; i < bytes; ++i) out[8 + length + i] = (unsigned char)i;
    return 8 + length + bytes;
}

static void round_trip(void) {
    float weight[2 * 3] = {1, -2, 3.5f, 1e-40f, 5, 6}, scalar[1] = {7};
    int64_t tracked[1] = {123456789012345};
    uint8_t bytes[3] = {1, 2, 255};
    const rcn__file_tensor out[] = {{"a.bytes", RCN_UINT8, 1, {3}, bytes, 0},
                                    {"conv.weight", RCN_FLOAT32, 2, {2, 3}, weight, 0},
                                    {"bn.num_batches_tracked", RCN_INT64, 0, {0}, tracked, 0},
                                    {"scale", RCN_FLOAT32, 1, {1}, scalar, 0}};
    const rcn__metadata metadata[] = {{"arch", "unet"}, {"raters", "[\"A\", \"B\xc3\xa9\"]"}};
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(rcn__safetensors_write(ctx, path, out, 4, metadata, 2), RCN_OK);
    CHECK(nothing_beside());
    rcn__safetensors *file = NULL;
    CHECK_STATUS(rcn__safetensors_open(&file, ctx, path), RCN_OK);
    CHECK(rcn__safetensors_count(file) == 4);
    CHECK(!strcmp(rcn__safetensors_metadata(file, "arch"), "unet"));
    CHECK(!strcmp(rcn__safetensors_metadata(file, "raters"), metadata[1].value));
    CHECK(rcn__safetensors_metadata(file, "nothing") == NULL);
    CHECK(!strcmp(rcn__safetensors_tensor(file, 0).name, "bn.num_batches_tracked"));
    float weight_in[6] = {0}, scalar_in[1] = {0};
    int64_t tracked_in[1] = {0};
    uint8_t bytes_in[3] = {0};
    rcn__file_tensor in[4];
    memcpy(in, out, sizeof in);
    in[0].data = bytes_in;
    in[1].data = weight_in;
    in[2].data = tracked_in;
    in[3].data = scalar_in;
    rcn__load_report report;
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, in, 4, NULL), RCN_OK);
    CHECK(report.loaded == 4 && report.missing_count == 0 && report.unused_count == 0);
    CHECK(!memcmp(weight, weight_in, sizeof weight) && scalar_in[0] == 7);
    CHECK(tracked_in[0] == tracked[0] && !memcmp(bytes, bytes_in, 3));
    rcn__safetensors_close(file);
    rcn__safetensors_close(NULL);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
    remove(path);
}

/* F16, BF16 and F64 become float. */
static void other_precisions(void) {
    static const uint16_t half[6] = {0x3C00, 0xC000, 0x0001, 0x83FF, 0x7BFF, 0x3555};
    static const float half_values[6] = {1, -2, 5.9604645e-8f, -6.0975552e-5f, 65504, 0.33325195f};
    static const uint16_t bfloat[2] = {0x3F80, 0xC049};
    static const double wide[2] = {0.1, -1e30};
    unsigned char bytes[1000];
    const char *header = "{\"h\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},"
                         "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]},"
                         "\"d\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[16,32]}}";
    const size_t size = make_file(bytes, header, 32);
    memcpy(bytes + size - 32, half, 12);
    memcpy(bytes + size - 20, bfloat, 4);
    memcpy(bytes + size - 16, wide, 16);
    float h[6], b[2], d[2];
    const rcn__file_tensor tensors[] = {{"h", RCN_FLOAT32, 1, {6}, h, 0},
                                        {"b", RCN_FLOAT32, 1, {2}, b, 0},
                                        {"d", RCN_FLOAT32, 1, {2}, d, 0}};
    rcn_context *ctx = make_context(1);
    rcn__safetensors *file = NULL;
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "memory", bytes, size), RCN_OK);
    CHECK_STATUS(rcn__safetensors_load(NULL, file, ctx, tensors, 3, NULL), RCN_OK);
    for (int i = 0; i < 6; ++i) CHECK(h[i] == half_values[i]);
    CHECK(b[0] == 1 && b[1] == -3.140625f && d[0] == 0.1f && d[1] == -1e30f);
    rcn__safetensors_close(file);
    bytes[size - 32 + 1] = 0x7C; /* half infinity */
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "memory", bytes, size), RCN_OK);
    CHECK_STATUS(rcn__safetensors_load(NULL, file, ctx, tensors, 3, NULL), RCN_EDATA);
    CHECK_ERROR(ctx, "'h' has a value that is NaN or infinite");
    rcn__safetensors_close(file);
    rcn_context_destroy(ctx);
}

#define F32_AT(name, shape, begin, end)                                                            \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

/* Every way to be wrong has its own sentence. */
static void hostile_headers(void) {
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;
    } cases[] = {
        {"{" F32_AT("a", "[2]", "0", "8") "}", 7, "outside of the file's 7 bytes"},
        {"{" F32_AT("a", "[2]", "0", "8") "}", 9, "1 bytes after the last tensor"},
        {"{" F32_AT("a", "[2]", "-8", "0") "}", 8, "lies at -8 to 0"},
        {"{" F32_AT("a", "[2]", "8", "0") "}", 8, "lies at 8 to 0"},
        {"{" F32_AT("a", "[2]", "9223372036854775800", "9223372036854775807") "}", 8, "outside"},
        {"{" F32_AT("a", "[2]", "0", "18446744073709551616") "}", 8, "not valid JSON"},
        {"{" F32_AT("a", "[3]", "0", "8") "}", 8, "has 8 bytes, but its shape and dtype need 12"},
        {"{" F32_AT("a", "[-2]", "0", "8") "}", 8, "a shape that is not valid"},
        {"{" F32_AT("a", "[2.0]", "0", "8") "}", 8, "a shape that is not valid"},
        {"{" F32_AT("a", "[4294967296,4294967296,4]", "0", "8") "}", 8,
         "a shape that is not valid"},
        {"{" F32_AT("a", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", 8, "9 dimensions; at most 8"},
        {"{" F32_AT("a", "2", "0", "8") "}", 8, "needs a dtype, a shape and data_offsets"},
        {"{" F32_AT("a", "[2]", "0", "8,9") "}", 8, "needs two data_offsets"},
        {"{" F32_AT("a", "[2]", "0", "\\\"8\\\"") "}", 8, "not valid JSON"},
        {"{" F32_AT("a", "[2]", "0", "8") "," F32_AT("b", "[2]", "4", "12") "}", 12,
         "'a' and 'b' overlap"},
        {"{" F32_AT("a", "[2]", "0", "8") "," F32_AT("b", "[2]", "0", "8") "}", 8, "overlap"},
        {"{" F32_AT("a", "[2]", "0", "8") "," F32_AT("b", "[2]", "12", "20") "}", 20,
         "4 bytes before tensor 'b' belong to none"},
        {"{" F32_AT("a", "[2]", "0", "8") "," F32_AT("a", "[2]", "8", "16") "}", 16, "duplicate"},
        {"{\"a\":{\"dtype\":\"Q4\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype 'Q4'"},
        {"{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "needs a dtype"},
        {"{\"a\":3}", 0, "needs a dtype"},
        {"{\"__metadata__\":{\"arch\":3}}", 0, "metadata 'arch' is not a string"},
        {"{\"__metadata__\":[]}", 0, "its __metadata__ is not an object"},
        {"[]", 0, "is not an object"},
        {"{\"a\":", 0, "not valid JSON"},
        {"{\"\xff\xfe\":{}}", 0, "not valid JSON"},
        {"{\"a\\u0000b\":{}}", 0, "not valid JSON"},
        {"{}", 1, "1 bytes after"},
    };
    static unsigned char bytes[4000];
    rcn_context *ctx = make_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        rcn__safetensors *file = NULL;
        const size_t size = make_file(bytes, cases[i].header, cases[i].bytes);
        CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "evil", bytes, size), RCN_EFORMAT);
        CHECK(file == NULL);
        CHECK_ERROR(ctx, cases[i].says);
        CHECK_ERROR(ctx, "evil");
    }
    rcn_context_destroy(ctx);
}

static void hostile_lengths(void) {
    unsigned char bytes[100];
    rcn_context *ctx = make_context(1);
    rcn__safetensors *file = NULL;
    const size_t size = make_file(bytes, "{" F32_AT("a", "[2]", "0", "8") "}", 8);
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "whole", bytes, size), RCN_OK);
    rcn__safetensors_close(file);
    file = NULL;
    /* Cut off anywhere. */
    for (size_t cut = 0; cut < size; ++cut) {
        unsigned char *copy = malloc(cut + 1); /* its own block: reading beyond it is seen */
        memcpy(copy, bytes, cut);
        CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "cut", copy, cut), RCN_EFORMAT);
        free(copy);
    }
    bytes[3] = 1;
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "long", bytes, size), RCN_EFORMAT);
    CHECK_ERROR(ctx, "is not a safetensors file");
    memset(bytes, 0xFF, 8);
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "huge", bytes, size), RCN_EFORMAT);
    CHECK_ERROR(ctx, "header length 18446744073709551615");
    memset(bytes, 0, 8);
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "none", bytes, size), RCN_EFORMAT);
    /* What torch.save() wrote, now and formerly. */
    static const char *const pytorch[] = {"PK\3\4\0\0\10\10\0\0archive/data.pkl",
                                          "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9"};
    for (int i = 0; i < 2; ++i) {
        CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "x.pth", pytorch[i], 18),
                     RCN_EFORMAT);
        CHECK_ERROR(ctx, "x.pth was written by torch.save()");
        CHECK_ERROR(ctx, "safetensors.torch.save_file(model.state_dict(), ");
    }
    /* JSON that nests without end. */
    enum { DEPTH = 1 << 20 };
    unsigned char *bomb = malloc(DEPTH + 8);
    memset(bomb, '[', DEPTH + 8);
    for (int i = 0; i < 8; ++i) bomb[i] = (unsigned char)((uint64_t)DEPTH >> 8 * i);
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "bomb", bomb, DEPTH + 8), RCN_EFORMAT);
    CHECK_ERROR(ctx, "maximum parsing depth");
    free(bomb);
    CHECK(file == NULL);
    CHECK_STATUS(rcn__safetensors_open(&file, ctx, "no/such/file"), RCN_EIO);
    CHECK_ERROR(ctx, "no/such/file cannot be opened");
    CHECK_STATUS(rcn__safetensors_open(&file, ctx, "."), RCN_EIO);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void names_and_shapes(void) {
    unsigned char bytes[1000];
    const char *header = "{" F32_AT("conv1.weight", "[2]", "0", "8") "," F32_AT(
        "fc.weight", "[1]", "8", "12") "," F32_AT("fc.bias", "[1]", "12", "16") "}";
    const size_t size = make_file(bytes, header, 16);
    memset(bytes + size - 16, 0, 16);
    float first[2] = {9, 9}, second[1] = {9};
    int64_t tracked = 5;
    rcn__file_tensor tensors[] = {
        {"encoder.conv1.weight", RCN_FLOAT32, 1, {2}, first, 0},
        {"encoder.bn1.num_batches_tracked", RCN_INT64, 0, {0}, &tracked, 1},
        {"decoder.weight", RCN_FLOAT32, 1, {1}, second, 0}};
    rcn_context *ctx = make_context(1);
    rcn__safetensors *file = NULL;
    rcn__load_report report;
    rcn__load_options options = RCN_LOAD_OPTIONS_INIT;
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "resnet", bytes, size), RCN_OK);
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, NULL), RCN_EFORMAT);
    CHECK_ERROR(ctx, "tensor 'encoder.conv1.weight' and 1 more is missing");
    CHECK(report.missing_count == 2 && report.unused_count == 3 && report.loaded == 0);
    options.prefix = "encoder.";
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, &options), RCN_EFORMAT);
    CHECK_ERROR(ctx, "'fc.weight' and 1 more is unknown");
    CHECK(first[0] == 9 && second[0] == 9);
    options.allow_unused = 1;
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, &options), RCN_OK);
    CHECK(report.loaded == 1 && report.missing_count == 0 && report.unused_count == 2);
    CHECK(!strcmp(report.unused[1], "fc.bias"));
    CHECK(first[0] == 0 && second[0] == 9 && tracked == 5);
    tensors[0].shape[0] = 3;
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, &options), RCN_EFORMAT);
    CHECK_ERROR(ctx, "'conv1.weight' is 2; 3 is needed");
    tensors[0].rank = 0;
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, &options), RCN_EFORMAT);
    CHECK_ERROR(ctx, "a single number is needed");
    tensors[0].rank = 1;
    tensors[0].shape[0] = 2;
    tensors[0].type = RCN_INT64;
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, &options), RCN_EFORMAT);
    CHECK_ERROR(ctx, "has the dtype F32; I64 is needed");
    tensors[0].type = RCN_FLOAT32;
    tensors[0].data = NULL;
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, &options), RCN_EINVALID);
    rcn__safetensors_close(file);
    /* NaN. */
    const float nan_ = NAN;
    memcpy(bytes + size - 12, &nan_, 4);
    tensors[0].data = first;
    CHECK_STATUS(rcn__safetensors_open_memory(&file, ctx, "resnet", bytes, size), RCN_OK);
    CHECK_STATUS(rcn__safetensors_load(&report, file, ctx, tensors, 3, &options), RCN_EDATA);
    CHECK_ERROR(ctx, "'conv1.weight' has a value that is NaN");
    rcn__safetensors_close(file);
    rcn_context_destroy(ctx);
}

/* The first convolution for another number of channels. */
static void adapted_inputs(void) {
    enum { O = 2, I = 3, A = 4 };
    float kernel[O * I * A], out[O * 5 * A];
    for (int i = 0; i < O * I * A; ++i) kernel[i] = (float)(i * i % 17);
    rcn_context *ctx = make_context(1);
    const rcn__file_tensor saved = {"conv1.weight", RCN_FLOAT32, 4, {O, I, 2, 2}, kernel, 0};
    CHECK_STATUS(rcn__safetensors_write(ctx, path, &saved, 1, NULL, 0), RCN_OK);
    rcn__safetensors *file = NULL;
    CHECK_STATUS(rcn__safetensors_open(&file, ctx, path), RCN_OK);
    for (int inputs = 1; inputs <= 5; ++inputs) {
        rcn__load_options options = RCN_LOAD_OPTIONS_INIT;
        const rcn__file_tensor tensor = {"conv1.weight", RCN_FLOAT32, 4, {O, inputs, 2, 2}, out, 0};
        CHECK_STATUS(rcn__safetensors_load(NULL, file, ctx, &tensor, 1, &options),
                     inputs == I ? RCN_OK : RCN_EFORMAT);
        options.adapt_inputs = "conv1.weight";
        CHECK_STATUS(rcn__safetensors_load(NULL, file, ctx, &tensor, 1, &options), RCN_OK);
        for (int o = 0; o < O; ++o)
            for (int c = 0; c < inputs; ++c)
                for (int a = 0; a < A; ++a) {
                    const float *k = kernel + o * I * A + a;
                    const float expected =
                        inputs == 1 ? k[0] + k[A] + k[2 * A] : k[c % I * A] * 3.0f / (float)inputs;
                    CHECK_NEAR(out[(o * inputs + c) * A + a], expected, 1e-5);
                }
    }
    rcn__safetensors_close(file);
    rcn_context_destroy(ctx);
    remove(path);
}

static void refuses_to_write(void) {
    float x[4] = {0, 1, NAN, 3}, y[1] = {0};
    rcn_context *ctx = make_context(1);
    rcn__file_tensor tensors[2] = {{"x", RCN_FLOAT32, 1, {4}, x, 0},
                                   {"y", RCN_FLOAT32, 1, {1}, y, 0}};
    const rcn__metadata twice[] = {{"k", "1"}, {"k", "2"}}, bad = {"k", "\xff"};
    CHECK_STATUS(rcn__safetensors_write(ctx, path, tensors, 2, NULL, 0), RCN_EDATA);
    CHECK_ERROR(ctx, "'x' has a value that is NaN");
    x[2] = 2;
    tensors[1].name = "x";
    CHECK_STATUS(rcn__safetensors_write(ctx, path, tensors, 2, NULL, 0), RCN_EINVALID);
    CHECK_ERROR(ctx, "'x' occurs twice");
    tensors[1].name = "\xc3";
    CHECK_STATUS(rcn__safetensors_write(ctx, path, tensors, 2, NULL, 0), RCN_EINVALID);
    CHECK_ERROR(ctx, "not valid UTF-8");
    tensors[1].name = "__metadata__";
    CHECK_STATUS(rcn__safetensors_write(ctx, path, tensors, 2, NULL, 0), RCN_EINVALID);
    tensors[1].name = "y";
    CHECK_STATUS(rcn__safetensors_write(ctx, path, tensors, 2, twice, 2), RCN_EINVALID);
    CHECK_ERROR(ctx, "'k' occurs twice");
    CHECK_STATUS(rcn__safetensors_write(ctx, path, tensors, 2, &bad, 1), RCN_EINVALID);
    CHECK_STATUS(rcn__safetensors_write(ctx, "no/such/folder/f", tensors, 2, NULL, 0), RCN_EIO);
    CHECK_ERROR(ctx, "the folder no/such/folder does not exist");
    CHECK(!exists(path) && nothing_beside());
    CHECK_STATUS(rcn__safetensors_write(ctx, path, tensors, 2, NULL, 0), RCN_OK);
    CHECK(exists(path));
    rcn_context_destroy(ctx);
    remove(path);
}

/* No room on the disk (here: no larger file allowed) keeps the old file and leaves nothing else. */
static void full_disk_and_cancel(void) {
    enum { N = 1 << 20 };
    float *x = calloc(N, sizeof *x), old = 1;
    rcn_context *ctx = make_context(1);
    const rcn__file_tensor small = {"old", RCN_FLOAT32, 1, {1}, &old, 0};
    const rcn__file_tensor large[2] = {{"x", RCN_FLOAT32, 1, {N}, x, 0},
                                       {"y", RCN_FLOAT32, 1, {1}, &old, 0}};
    CHECK_STATUS(rcn__safetensors_write(ctx, path, &small, 1, NULL, 0), RCN_OK);
#ifndef _WIN32
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = N;
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_STATUS(rcn__safetensors_write(ctx, path, large, 2, NULL, 0), RCN_ESPACE);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_ERROR(ctx, "could not be written: File too large. What was there before is untouched");
#endif
    CHECK(nothing_beside());
    for (int calls = 0; calls < 2; ++calls) {
        int countdown = calls;
        rcn_context_set_progress(ctx, cancel_after, &countdown);
        CHECK_STATUS(rcn__safetensors_write(ctx, path, large, 2, NULL, 0), RCN_ECANCELLED);
        CHECK(nothing_beside());
    }
    rcn_context_set_progress(ctx, NULL, NULL);
    rcn__safetensors *file = NULL;
    CHECK_STATUS(rcn__safetensors_open(&file, ctx, path), RCN_OK);
    CHECK(rcn__safetensors_count(file) == 1);
    int countdown = 0;
    rcn_context_set_progress(ctx, cancel_after, &countdown);
    CHECK_STATUS(rcn__safetensors_load(NULL, file, ctx, &small, 1, NULL), RCN_ECANCELLED);
    rcn__safetensors_close(file);
    rcn_context_destroy(ctx);
    remove(path);
    free(x);
}

static rcn_status write_and_read(rcn_context *ctx, void *payload) {
    float kernel[12] = {0}, one[4];
    const rcn__file_tensor saved = {"w", RCN_FLOAT32, 3, {2, 3, 2}, kernel, 0};
    const rcn__file_tensor wanted = {"w", RCN_FLOAT32, 3, {2, 1, 2}, one, 0};
    rcn__load_options options = RCN_LOAD_OPTIONS_INIT;
    rcn__safetensors *file = NULL;
    (void)payload;
    options.adapt_inputs = "w";
    rcn_status status = rcn__safetensors_write(ctx, path, &saved, 1, NULL, 0);
    if (status == RCN_OK) status = rcn__safetensors_open(&file, ctx, path);
    if (status == RCN_OK) status = rcn__safetensors_load(NULL, file, ctx, &wanted, 1, &options);
    rcn__safetensors_close(file);
    return status;
}

static void failing_allocations(void) {
    check_failing_allocations(write_and_read, NULL);
    CHECK(nothing_beside());
    remove(path);
}

/* For the comparison with Python's safetensors: what it is given, and what it must give. */
static int exchange(const char *what, const char *name) {
    float weight[24], half[5], bfloat[5];
    int64_t tracked = 7;
    const rcn__metadata metadata[] = {{"arch", "unet"}, {"raters", "[\"A\", \"\xc3\x89\"]"}};
    const rcn__file_tensor tensors[] = {{"half", RCN_FLOAT32, 1, {5}, half, 0},
                                        {"conv.weight", RCN_FLOAT32, 3, {2, 3, 4}, weight, 0},
                                        {"bn.num_batches_tracked", RCN_INT64, 0, {0}, &tracked, 0},
                                        {"bfloat", RCN_FLOAT32, 1, {5}, bfloat, 0}};
    rcn_context *ctx = make_context(1);
    const int reading = !strcmp(what, "--check");
    for (int i = 0; i < 24; ++i) weight[i] = (float)i * 0.5f - 3;
    for (int i = 0; i < 5; ++i) half[i] = (float)i * 0.25f, bfloat[i] = (float)i * -2;
    if (reading) {
        rcn__safetensors *file = NULL;
        memset(weight, 0, sizeof weight);
        memset(half, 0, sizeof half);
        memset(bfloat, 0, sizeof bfloat);
        tracked = 0;
        CHECK_STATUS(rcn__safetensors_open(&file, ctx, name), RCN_OK);
        if (file) {
            CHECK_STATUS(rcn__safetensors_load(NULL, file, ctx, tensors, 4, NULL), RCN_OK);
            const char *raters = rcn__safetensors_metadata(file, "raters");
            CHECK(raters && !strcmp(raters, metadata[1].value));
        }
        for (int i = 0; i < 24; ++i) CHECK(weight[i] == (float)i * 0.5f - 3);
        for (int i = 0; i < 5; ++i)
            CHECK(half[i] == (float)i * 0.25f && bfloat[i] == (float)i * -2);
        CHECK(tracked == 7);
        rcn__safetensors_close(file);
    } else {
        CHECK_STATUS(rcn__safetensors_write(ctx, name, tensors, 4, metadata, 2), RCN_OK);
    }
    if (rcn_test_failures) fprintf(stderr, "%s\n", rcn_context_error(ctx));
    rcn_context_destroy(ctx);
    return TEST_RESULT;
}

int main(int count, char **arguments) {
    if (count == 3) return exchange(arguments[1], arguments[2]);
    RUN(round_trip);
    RUN(other_precisions);
    RUN(hostile_headers);
    RUN(hostile_lengths);
    RUN(names_and_shapes);
    RUN(adapted_inputs);
    RUN(refuses_to_write);
#ifndef _WIN32
    RUN(nothing_in_the_way);
#endif
    RUN(full_disk_and_cancel);
    RUN(failing_allocations);
    return TEST_RESULT;
}
