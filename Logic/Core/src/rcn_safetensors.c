// SPDX-License-Identifier: Apache-2.0
/* Reading and writing safetensors (rcn_safetensors.h: the format, and what is refused).
 *
 * Data are little endian, and so is every machine that this is built for: plain types are read in
 * one piece, without swapping. F16 and BF16 become floats on the way, F64 where floats are wanted.
 * JSON is Jansson's, which allocates by itself; everything else goes through the context.
 */
#include "rcn_safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "rcn_context_private.h"
#include "rcn_fastmath.h"
#include "rcn_file_private.h"
#include "rcn_system.h"

/* A header of ours has 50 kB. JSON takes some fifty times its size in memory, so there is a bound
 * to what a file may ask for. */
#define MAX_HEADER (INT64_C(8) << 20)

/* Elements converted at a time. */
enum { BATCH = 4096 };

typedef enum element {
    ELEMENT_NONE,
    ELEMENT_F16,
    ELEMENT_BF16,
    ELEMENT_BOOL,
    ELEMENT_PLAIN /* an rcn_type */
} element;

typedef struct dtype {
    const char *name;
    element element;
    rcn_type type; /* into which it is read */
    int bytes;
} dtype;

/* By name in a file. Writing uses the plain ones only. */
static const dtype dtypes[] = {
    {"F32", ELEMENT_PLAIN, RCN_FLOAT32, 4}, {"F64", ELEMENT_PLAIN, RCN_FLOAT64, 8},
    {"F16", ELEMENT_F16, RCN_FLOAT32, 2},   {"BF16", ELEMENT_BF16, RCN_FLOAT32, 2},
    {"I64", ELEMENT_PLAIN, RCN_INT64, 8},   {"I32", ELEMENT_PLAIN, RCN_INT32, 4},
    {"I16", ELEMENT_PLAIN, RCN_INT16, 2},   {"I8", ELEMENT_PLAIN, RCN_INT8, 1},
    {"U64", ELEMENT_PLAIN, RCN_UINT64, 8},  {"U32", ELEMENT_PLAIN, RCN_UINT32, 4},
    {"U16", ELEMENT_PLAIN, RCN_UINT16, 2},  {"U8", ELEMENT_PLAIN, RCN_UINT8, 1},
    {"BOOL", ELEMENT_BOOL, RCN_UINT8, 1},
};

typedef struct entry {
    const char *name; /* borrowed from the JSON */
    const dtype *dtype;
    int rank;
    int64_t shape[RCN_TENSOR_RANK];
    int64_t elements;
    int64_t begin, end; /* bytes, from the end of the header */
    int used;
} entry;

struct rcn__safetensors {
    rcn_context *ctx;
    char *name;
    FILE *stream;
    const unsigned char *memory;
    int64_t size;
    int64_t data_begin;
    json_t *root;
    entry *entries; /* by place */
    int64_t count;
    const char **missing, **unused; /* of the last load */
};

static const dtype *dtype_of_type(rcn_type type) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i)
        if (dtypes[i].element == ELEMENT_PLAIN && dtypes[i].type == type) return &dtypes[i];
    return NULL;
}

/* ---- reading bytes --------------------------------------------------------------------------- */

/* Offsets were checked against the file's size when it was opened; a file that has shrunk since
 * fails here. */
static rcn_status read_at(void *out, const rcn__safetensors *file, rcn_context *ctx, int64_t offset,
                          size_t bytes) {
    if (file->memory) {
        memcpy(out, file->memory + offset, bytes);
        return RCN_OK;
    }
    if (rcn__seek(file->stream, offset, SEEK_SET) || fread(out, 1, bytes, file->stream) != bytes)
        return rcn__fail(ctx, RCN_EIO, "%s: reading %zu bytes at %lld failed.", file->name, bytes,
                         (long long)offset);
    return RCN_OK;
}

/* ---- the header ------------------------------------------------------------------------------ */

static rcn_status parse_entry(entry *out, const rcn__safetensors *file, rcn_context *ctx,
                              const char *name, json_t *value) {
    json_t *type = json_object_get(value, "dtype"), *shape = json_object_get(value, "shape");
    json_t *place = json_object_get(value, "data_offsets");
    const int64_t room = file->size - file->data_begin;
    out->name = name;
    if (!json_is_string(type) || !json_is_array(shape) || !json_is_array(place))
        return rcn__fail(ctx, RCN_EFORMAT,
                         "%s: tensor '%.200s' needs a dtype, a shape and data_offsets.", file->name,
                         name);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i)
        if (!strcmp(json_string_value(type), dtypes[i].name)) out->dtype = &dtypes[i];
    if (!out->dtype)
        return rcn__fail(ctx, RCN_EFORMAT, "%s: tensor '%.200s' has the unknown dtype '%.40s'.",
                         file->name, name, json_string_value(type));
    if (json_array_size(shape) > RCN_TENSOR_RANK)
        return rcn__fail(ctx, RCN_EFORMAT, "%s: tensor '%.200s' has %zu dimensions; at most %d.",
                         file->name, name, json_array_size(shape), RCN_TENSOR_RANK);
    out->rank = (int)json_array_size(shape);
    out->elements = 1;
    for (int d = 0; d < out->rank; ++d) {
        json_t *size = json_array_get(shape, (size_t)d);
        out->shape[d] = json_is_integer(size) ? (int64_t)json_integer_value(size) : -1;
        /* Checked before each product: elements times 8 bytes never overflow. */
        if (out->shape[d] < 0 ||
            (out->shape[d] > 0 && out->elements > INT64_MAX / 8 / out->shape[d]))
            return rcn__fail(ctx, RCN_EFORMAT, "%s: tensor '%.200s' has a shape that is not valid.",
                             file->name, name);
        out->elements *= out->shape[d];
    }
    json_t *begin = json_array_get(place, 0), *end = json_array_get(place, 1);
    if (json_array_size(place) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return rcn__fail(ctx, RCN_EFORMAT, "%s: tensor '%.200s' needs two data_offsets.",
                         file->name, name);
    out->begin = (int64_t)json_integer_value(begin);
    out->end = (int64_t)json_integer_value(end);
    if (out->begin < 0 || out->end < out->begin || out->end > room)
        return rcn__fail(ctx, RCN_EFORMAT,
                         "%s: tensor '%.200s' lies at %lld to %lld, outside of the file's %lld "
                         "bytes of data; is the file cut off?",
                         file->name, name, (long long)out->begin, (long long)out->end,
                         (long long)room);
    if (out->end - out->begin != out->elements * out->dtype->bytes)
        return rcn__fail(ctx, RCN_EFORMAT,
                         "%s: tensor '%.200s' has %lld bytes, but its shape and dtype need %lld.",
                         file->name, name, (long long)(out->end - out->begin),
                         (long long)(out->elements * out->dtype->bytes));
    return RCN_OK;
}

/* By place. Empty tensors share theirs with a neighbor; their names decide, so that the order is
 * the same wherever qsort() comes from. */
static int compare_places(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static rcn_status check_metadata(const rcn__safetensors *file, rcn_context *ctx, json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return rcn__fail(ctx, RCN_EFORMAT, "%s: its __metadata__ is not an object.", file->name);
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return rcn__fail(ctx, RCN_EFORMAT, "%s: metadata '%.200s' is not a string.", file->name,
                             key);
    }
    return RCN_OK;
}

/* What torch.save() writes: a zip archive, or a bare pickle in old versions. A safetensors file has
 * the brace of its header there. */
static int is_pytorch(const unsigned char start[9]) {
    return !memcmp(start, "PK\3\4", 4) ||
           (start[0] == 0x80 && start[1] >= 2 && start[1] <= 5 && start[8] != '{');
}

static rcn_status parse_header(rcn__safetensors *file, rcn_context *ctx) {
    rcn_status status = RCN_OK;
    char *header = NULL;
    unsigned char start[9] = {0}; /* the header's length in eight bytes, and its first one */
    uint64_t length = 0;
    const char *key;
    json_t *value;
    json_error_t error;
    if (file->size < 8)
        return rcn__fail(ctx, RCN_EFORMAT, "%s: %lld bytes are too few for a safetensors file.",
                         file->name, (long long)file->size);
    RCN_TRY(read_at(start, file, ctx, 0, file->size > 8 ? 9 : 8));
    if (is_pytorch(start))
        return rcn__fail(
            ctx, RCN_EFORMAT,
            "%s was written by torch.save(), which is not read here; save it in Python "
            "with safetensors.torch.save_file(model.state_dict(), "
            "\"model.safetensors\", metadata={\"arch\": ..., \"channels\": ..., "
            "\"raters\": ..., \"normalization\": ...}).",
            file->name);
    for (int i = 7; i >= 0; --i) length = length << 8 | start[i];
    if (length > (uint64_t)MAX_HEADER)
        return rcn__fail(ctx, RCN_EFORMAT, "%s is not a safetensors file (header length %llu).",
                         file->name, (unsigned long long)length);
    if (length < 2 || (int64_t)length > file->size - 8)
        return rcn__fail(ctx, RCN_EFORMAT,
                         "%s: its header should have %llu bytes, but only %lld follow; is the file "
                         "cut off?",
                         file->name, (unsigned long long)length, (long long)(file->size - 8));
    file->data_begin = 8 + (int64_t)length;

    RCN_ALLOC(header, ctx, (int64_t)length, "the header of a model file");
    RCN_TRY(read_at(header, file, ctx, 8, (size_t)length));
    file->root = json_loadb(header, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!file->root)
        RCN_TRY(rcn__fail(ctx, RCN_EFORMAT, "%s: its header is not valid JSON: %s (byte %d).",
                          file->name, error.text, error.position));
    if (!json_is_object(file->root))
        RCN_TRY(rcn__fail(ctx, RCN_EFORMAT, "%s: its header is not an object.", file->name));

    RCN_ALLOC_ZERO(file->entries, ctx, (int64_t)json_object_size(file->root),
                   "the table of a model file");
    json_object_foreach(file->root, key, value) {
        if (!strcmp(key, "__metadata__"))
            RCN_TRY(check_metadata(file, ctx, value));
        else
            RCN_TRY(parse_entry(&file->entries[file->count++], file, ctx, key, value));
    }
    /* Sorted by place, tensors must follow each other without overlap and gap, to the end of the
     * file. Hidden bytes could hold anything, and Python's reader refuses them, too. */
    qsort(file->entries, (size_t)file->count, sizeof *file->entries, compare_places);
    int64_t at = 0;
    for (int64_t i = 0; i < file->count; ++i) {
        const entry *here = &file->entries[i];
        if (here->begin < at)
            RCN_TRY(rcn__fail(ctx, RCN_EFORMAT, "%s: tensors '%.200s' and '%.200s' overlap.",
                              file->name, file->entries[i - 1].name, here->name));
        if (here->begin > at)
            RCN_TRY(rcn__fail(ctx, RCN_EFORMAT,
                              "%s: %lld bytes before tensor '%.200s' belong to "
                              "none.",
                              file->name, (long long)(here->begin - at), here->name));
        at = here->end;
    }
    if (at != file->size - file->data_begin)
        RCN_TRY(rcn__fail(ctx, RCN_EFORMAT, "%s: %lld bytes after the last tensor belong to none.",
                          file->name, (long long)(file->size - file->data_begin - at)));
done:
    rcn__free(ctx, header);
    return status;
}

static rcn_status open_any(rcn__safetensors **out, rcn_context *ctx, const char *name,
                           const void *data, size_t bytes) {
    rcn_status status;
    rcn__safetensors *file = NULL;
    RCN_ALLOC_ZERO(file, ctx, 1, "a model file");
    file->ctx = ctx;
    RCN_ALLOC(file->name, ctx, (int64_t)strlen(name) + 1, "a file name");
    strcpy(file->name, name);
    if (data) {
        file->memory = data;
        file->size = (int64_t)bytes;
    } else {
        file->stream = fopen(name, "rb");
        if (!file->stream)
            RCN_TRY(rcn__fail(ctx, RCN_EIO, "%s cannot be opened: %s.", name, strerror(errno)));
        if (rcn__seek(file->stream, 0, SEEK_END) || (file->size = rcn__tell(file->stream)) < 0)
            RCN_TRY(rcn__fail(ctx, RCN_EIO, "%s is not a regular file.", name));
    }
    RCN_TRY(parse_header(file, ctx));
    *out = file;
    file = NULL;
done:
    rcn__safetensors_close(file);
    return status;
}

rcn_status rcn__safetensors_open(rcn__safetensors **out, rcn_context *ctx, const char *path) {
    rcn__clear(ctx);
    return open_any(out, ctx, path, NULL, 0);
}

rcn_status rcn__safetensors_open_memory(rcn__safetensors **out, rcn_context *ctx, const char *name,
                                        const void *data, size_t bytes) {
    rcn__clear(ctx);
    return open_any(out, ctx, name, data, bytes);
}

void rcn__safetensors_detach(rcn__safetensors *file) {
    if (file->stream) fclose(file->stream);
    file->stream = NULL;
}

void rcn__safetensors_close(rcn__safetensors *file) {
    if (!file) return;
    rcn_context *ctx = file->ctx;
    rcn__safetensors_detach(file);
    json_decref(file->root);
    rcn__free(ctx, file->entries);
    rcn__free(ctx, (void *)file->missing);
    rcn__free(ctx, (void *)file->unused);
    rcn__free(ctx, file->name);
    rcn__free(ctx, file);
}

const char *rcn__safetensors_metadata(const rcn__safetensors *file, const char *key) {
    return json_string_value(json_object_get(json_object_get(file->root, "__metadata__"), key));
}

int64_t rcn__safetensors_metadata_count(const rcn__safetensors *file) {
    return (int64_t)json_object_size(json_object_get(file->root, "__metadata__"));
}

const char *rcn__safetensors_metadata_key(const rcn__safetensors *file, int64_t i) {
    json_t *metadata = json_object_get(file->root, "__metadata__");
    void *at = json_object_iter(metadata);
    while (at && i-- > 0) at = json_object_iter_next(metadata, at);
    return at ? json_object_iter_key(at) : NULL;
}

int64_t rcn__safetensors_count(const rcn__safetensors *file) { return file->count; }

rcn__file_tensor rcn__safetensors_tensor(const rcn__safetensors *file, int64_t i) {
    const entry *from = &file->entries[i];
    rcn__file_tensor tensor = {from->name, from->dtype->type, from->rank, {0}, NULL, 0};
    memcpy(tensor.shape, from->shape, sizeof tensor.shape);
    return tensor;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* IEEE half precision: 1 sign, 5 exponent (bias 15), 10 mantissa bits. Exponent 0 is subnormal,
 * mantissa * 2^-24; otherwise (1024 + mantissa) * 2^(exponent - 25). */
static float half_to_float(uint16_t half) {
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const float sign = half >> 15 ? -1.0f : 1.0f;
    if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexpf((float)mantissa, -24);
    return sign * ldexpf((float)(mantissa | 1024), exponent - 25);
}

/* The upper half of a float. */
static float bfloat_to_float(uint16_t bfloat) {
    const uint32_t bits = (uint32_t)bfloat << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads a whole entry as the type that its dtype becomes; F64 as float when `narrow`. */
static rcn_status read_entry(void *out, const rcn__safetensors *file, rcn_context *ctx,
                             const entry *from, int narrow) {
    rcn_status status = RCN_OK;
    const int64_t place = file->data_begin + from->begin;
    const int direct =
        from->dtype->element == ELEMENT_PLAIN || from->dtype->element == ELEMENT_BOOL;
    /* Of doubles, so that it is aligned for every type that is read into it. */
    double buffer[BATCH];
    if (direct && !narrow) {
        RCN_TRY(read_at(out, file, ctx, place, (size_t)(from->end - from->begin)));
    } else {
        float *floats = out;
        for (int64_t i = 0; i < from->elements; i += BATCH) {
            const int64_t n = from->elements - i < BATCH ? from->elements - i : BATCH;
            RCN_TRY(read_at(buffer, file, ctx, place + i * from->dtype->bytes,
                            (size_t)(n * from->dtype->bytes)));
            for (int64_t k = 0; k < n; ++k) {
                uint16_t bits;
                memcpy(&bits, (const char *)buffer + 2 * k, 2);
                floats[i + k] = narrow                                ? (float)buffer[k]
                                : from->dtype->element == ELEMENT_F16 ? half_to_float(bits)
                                                                      : bfloat_to_float(bits);
            }
        }
    }
    if ((narrow || from->dtype->type == RCN_FLOAT32) && !rcn__all_finite(out, from->elements))
        RCN_TRY(rcn__fail(ctx, RCN_EDATA,
                          "%s: tensor '%.200s' has a value that is NaN or infinite.", file->name,
                          from->name));
done:
    return status;
}

static int starts_with(const char *text, const char *prefix) {
    return !prefix || !strncmp(text, prefix, strlen(prefix));
}

/* The file's tensor of that name, with the prefix or without it; NULL: none. A linear search: some
 * hundred names, once per file. */
static entry *find_entry(const rcn__safetensors *file, const char *name, const char *prefix) {
    const char *bare = prefix ? name + strlen(prefix) : name;
    for (int64_t i = 0; i < file->count; ++i)
        if (!strcmp(file->entries[i].name, name)) return &file->entries[i];
    for (int64_t i = 0; prefix && i < file->count; ++i)
        if (!strcmp(file->entries[i].name, bare)) return &file->entries[i];
    return NULL;
}

static int is_narrow(const rcn__file_tensor *to, const entry *from) {
    return to->type == RCN_FLOAT32 && from->dtype->type == RCN_FLOAT64;
}

/* Writes "3x64x7x7". */
static void shape_text(char *out, size_t size, const int64_t *shape, int rank) {
    size_t used = 0;
    snprintf(out, size, "a single number");
    for (int d = 0; d < rank && used < size; ++d)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%lld", d ? "x" : "", (long long)shape[d]);
}

/* May the inputs (dimension 1) differ, everything else being the same? */
static int is_adaptable(const rcn__file_tensor *to, const entry *from,
                        const rcn__load_options *options) {
    if (!options->adapt_inputs || strcmp(to->name, options->adapt_inputs)) return 0;
    if (to->type != RCN_FLOAT32 || to->rank < 2 || from->rank != to->rank || from->elements == 0)
        return 0;
    for (int d = 0; d < to->rank; ++d)
        if (d != 1 && to->shape[d] != from->shape[d]) return 0;
    return 1;
}

static rcn_status check_fit(const rcn__safetensors *file, rcn_context *ctx,
                            const rcn__file_tensor *to, const entry *from,
                            const rcn__load_options *options) {
    char wanted[200], found[200];
    if (from->dtype->type != to->type && !is_narrow(to, from))
        return rcn__fail(ctx, RCN_EFORMAT, "%s: tensor '%.200s' has the dtype %s; %s is needed.",
                         file->name, from->name, from->dtype->name, dtype_of_type(to->type)->name);
    if ((from->rank != to->rank ||
         memcmp(from->shape, to->shape, (size_t)to->rank * sizeof *to->shape)) &&
        !is_adaptable(to, from, options)) {
        shape_text(found, sizeof found, from->shape, from->rank);
        shape_text(wanted, sizeof wanted, to->shape, to->rank);
        return rcn__fail(ctx, RCN_EFORMAT, "%s: tensor '%.200s' is %s; %s is needed.", file->name,
                         from->name, found, wanted);
    }
    return RCN_OK;
}

/* The first convolution for another number of channels, as
 * segmentation_models_pytorch.encoders._utils.patch_first_conv makes it: the sum over inputs for
 * one channel, which is what three equal channels gave; otherwise the inputs in turn, scaled so
 * that the sum of responses stays about the same. */
static rcn_status read_adapted(const rcn__file_tensor *to, const rcn__safetensors *file,
                               rcn_context *ctx, const entry *from) {
    rcn_status status;
    float *kernel = NULL, *out = to->data;
    RCN_ALLOC(kernel, ctx, from->elements, "the first convolution");
    RCN_TRY(read_entry(kernel, file, ctx, from, is_narrow(to, from)));
    const int64_t outputs = to->shape[0], inputs = to->shape[1], had = from->shape[1];
    const int64_t area = from->elements / (outputs * had);
    for (int64_t o = 0; o < outputs; ++o)
        for (int64_t c = 0; c < inputs; ++c)
            for (int64_t i = 0; i < area; ++i) {
                const float *in = kernel + o * had * area + i;
                double value = 0;
                if (inputs == 1)
                    for (int64_t h = 0; h < had; ++h) value += in[h * area];
                else
                    value = (double)in[c % had * area] * (double)had / (double)inputs;
                out[(o * inputs + c) * area + i] = (float)value;
            }
done:
    rcn__free(ctx, kernel);
    return status;
}

static rcn_status check_tensors(rcn_context *ctx, const rcn__file_tensor *tensors, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const rcn__file_tensor *tensor = &tensors[i];
        int64_t elements = 1;
        if (!tensor->name || !tensor->data || !dtype_of_type(tensor->type) || tensor->rank < 0 ||
            tensor->rank > RCN_TENSOR_RANK)
            return rcn__fail(ctx, RCN_EINVALID, "Tensor %lld of the table is incomplete.",
                             (long long)i + 1);
        for (int d = 0; d < tensor->rank; ++d) {
            if (tensor->shape[d] < 1 || elements > INT64_MAX / 8 / tensor->shape[d])
                return rcn__fail(ctx, RCN_EINVALID,
                                 "Tensor '%.200s' has a shape that is not valid.", tensor->name);
            elements *= tensor->shape[d];
        }
    }
    return RCN_OK;
}

static rcn_status fail_names(const rcn__safetensors *file, rcn_context *ctx,
                             const rcn__load_report *report, int missing) {
    const int64_t count = missing ? report->missing_count : report->unused_count;
    const char *first = missing ? report->missing[0] : report->unused[0];
    char more[60] = "";
    if (count > 1) snprintf(more, sizeof more, " and %lld more", (long long)count - 1);
    return rcn__fail(ctx, RCN_EFORMAT,
                     missing ? "%s: tensor '%.200s'%s is missing."
                             : "%s: tensor '%.200s'%s is unknown.",
                     file->name, first, more);
}

rcn_status rcn__safetensors_load(rcn__load_report *report, rcn__safetensors *file, rcn_context *ctx,
                                 const rcn__file_tensor *tensors, int64_t count,
                                 const rcn__load_options *options) {
    static const rcn__load_options defaults = RCN_LOAD_OPTIONS_INIT;
    rcn_status status;
    rcn__load_report own = {0};
    entry **found = NULL;
    rcn__clear(ctx);
    if (!options) options = &defaults;
    RCN_TRY(check_tensors(ctx, tensors, count));
    rcn__free(ctx, (void *)file->missing);
    rcn__free(ctx, (void *)file->unused);
    file->missing = file->unused = NULL;
    RCN_ALLOC(found, ctx, count, "the names of a model file");
    RCN_ALLOC(file->missing, ctx, count, "the names of a model file");
    RCN_ALLOC(file->unused, ctx, file->count, "the names of a model file");
    own.missing = file->missing;
    own.unused = file->unused;

    for (int64_t i = 0; i < file->count; ++i) file->entries[i].used = 0;
    for (int64_t i = 0; i < count; ++i) {
        found[i] = NULL;
        if (!starts_with(tensors[i].name, options->prefix)) continue;
        found[i] = find_entry(file, tensors[i].name, options->prefix);
        if (found[i]) {
            found[i]->used = 1;
            ++own.loaded;
        } else if (!tensors[i].optional) {
            own.missing[own.missing_count++] = tensors[i].name;
        }
    }
    for (int64_t i = 0; i < file->count; ++i)
        if (!file->entries[i].used) own.unused[own.unused_count++] = file->entries[i].name;
    if (report) *report = own;
    if (own.missing_count && !options->allow_missing) RCN_TRY(fail_names(file, ctx, &own, 1));
    if (own.unused_count && !options->allow_unused) RCN_TRY(fail_names(file, ctx, &own, 0));

    /* All of them before the first number is written. */
    for (int64_t i = 0; i < count; ++i)
        if (found[i]) RCN_TRY(check_fit(file, ctx, &tensors[i], found[i], options));
    for (int64_t i = 0; i < count; ++i) {
        if (!found[i]) continue;
        RCN_TRY(rcn__report(ctx, (double)i / (double)count, "reading weights"));
        if (tensors[i].rank > 1 && found[i]->shape[1] != tensors[i].shape[1])
            RCN_TRY(read_adapted(&tensors[i], file, ctx, found[i]));
        else
            RCN_TRY(
                read_entry(tensors[i].data, file, ctx, found[i], is_narrow(&tensors[i], found[i])));
    }
done:
    rcn__free(ctx, found);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int64_t tensor_bytes(const rcn__file_tensor *tensor) {
    int64_t bytes = (int64_t)rcn_type_size(tensor->type);
    for (int d = 0; d < tensor->rank; ++d) bytes *= tensor->shape[d];
    return bytes;
}

static rcn_status check_values(rcn_context *ctx, const rcn__file_tensor *tensor) {
    if (tensor->type == RCN_FLOAT32 && !rcn__all_finite(tensor->data, tensor_bytes(tensor) / 4))
        return rcn__fail(ctx, RCN_EDATA,
                         "Tensor '%.200s' has a value that is NaN or infinite; it is not written.",
                         tensor->name);
    return RCN_OK;
}

/* Adds one tensor to the header; non-zero when its name is no UTF-8 or memory is short. */
static int describe_tensor(json_t *root, const rcn__file_tensor *tensor, int64_t begin) {
    json_t *shape = json_array();
    for (int d = 0; d < tensor->rank; ++d)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
    return json_object_set_new(root, tensor->name,
                               json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                                         dtype_of_type(tensor->type)->name, "shape", shape,
                                         "data_offsets", (json_int_t)begin,
                                         (json_int_t)(begin + tensor_bytes(tensor))));
}

/* *out = the header's text, padded so that the data begin at a multiple of eight; free() it. order
 * = the tensors by descending size of an element, so that each begins at a multiple of its own. */
static rcn_status make_header(char **out, int64_t *order, rcn_context *ctx,
                              const rcn__file_tensor *tensors, int64_t count,
                              const rcn__metadata *metadata, int64_t metadata_count) {
    rcn_status status = RCN_OK;
    int64_t begin = 0, placed = 0;
    char *text = NULL;
    json_t *root = json_object(), *strings = json_object();
    if (!root || !strings)
        RCN_TRY(rcn__fail(ctx, RCN_ENOMEM, "Out of memory for the header of a model file."));
    for (int64_t i = 0; i < metadata_count; ++i) {
        if (json_object_get(strings, metadata[i].key))
            RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "The metadata '%.200s' occurs twice.",
                              metadata[i].key));
        if (json_object_set_new(strings, metadata[i].key, json_string(metadata[i].value)))
            RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "The metadata '%.200s' is not valid UTF-8.",
                              metadata[i].key));
    }
    if (metadata_count) json_object_set(root, "__metadata__", strings);
    for (size_t size = 8; size > 0; size /= 2)
        for (int64_t i = 0; i < count; ++i) {
            if (rcn_type_size(tensors[i].type) != size) continue;
            if (!strcmp(tensors[i].name, "__metadata__"))
                RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "No tensor may be called '__metadata__'."));
            if (json_object_get(root, tensors[i].name))
                RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "The name '%.200s' occurs twice.",
                                  tensors[i].name));
            if (describe_tensor(root, &tensors[i], begin))
                RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "The name '%.200s' is not valid UTF-8.",
                                  tensors[i].name));
            order[placed++] = i;
            begin += tensor_bytes(&tensors[i]);
        }
    text = json_dumps(root, JSON_COMPACT);
    /* Padded with spaces, as Python does it: JSON ends before them. */
    const size_t length = text ? strlen(text) : 0, padded = (length + 7) / 8 * 8;
    *out = text ? malloc(padded + 1) : NULL;
    if (!*out) RCN_TRY(rcn__fail(ctx, RCN_ENOMEM, "Out of memory for the header of a model file."));
    if ((int64_t)padded > MAX_HEADER)
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "Names and metadata take %zu bytes; at most %lld.",
                          padded, (long long)MAX_HEADER));
    memset(*out, ' ', padded);
    memcpy(*out, text, length);
    (*out)[padded] = '\0';
done:
    free(text);
    json_decref(root);
    json_decref(strings);
    return status;
}

rcn_status rcn__safetensors_write(rcn_context *ctx, const char *path,
                                  const rcn__file_tensor *tensors, int64_t count,
                                  const rcn__metadata *metadata, int64_t metadata_count) {
    rcn_status status;
    char *header = NULL;
    int64_t *order = NULL;
    rcn_file *file = NULL;
    FILE *stream = NULL;
    rcn__clear(ctx);
    RCN_TRY(check_tensors(ctx, tensors, count));
    for (int64_t i = 0; i < count; ++i) RCN_TRY(check_values(ctx, &tensors[i]));
    RCN_ALLOC(order, ctx, count, "the order of tensors");
    RCN_TRY(make_header(&header, order, ctx, tensors, count, metadata, metadata_count));

    RCN_TRY(rcn_file_create(&file, ctx, path));
    stream = rcn__file_open(file);
    if (!stream)
        RCN_TRY(rcn__fail(ctx, rcn_status_of_write(errno), "%s cannot be written: %s.", path,
                          strerror(errno)));
    unsigned char length[8];
    for (int i = 0; i < 8; ++i) length[i] = (unsigned char)((uint64_t)strlen(header) >> 8 * i);
    int good = fwrite(length, 1, 8, stream) == 8;
    good = good && fwrite(header, 1, strlen(header), stream) == strlen(header);
    for (int64_t i = 0; good && i < count; ++i) {
        const rcn__file_tensor *tensor = &tensors[order[i]];
        const size_t bytes = (size_t)tensor_bytes(tensor);
        RCN_TRY(rcn__report(ctx, (double)i / (double)count, "writing weights"));
        good = fwrite(tensor->data, 1, bytes, stream) == bytes;
    }
    /* On the disk before it takes the old file's place; closing may still report what writing did
     * not. */
    good = good && rcn__flush_file(stream) == 0;
    int reason = errno;
    const int closed = fclose(stream) == 0;
    stream = NULL;
    reason = good ? errno : reason;
    if (!good || !closed)
        RCN_TRY(rcn__fail(ctx, rcn_status_of_write(reason),
                          "%s could not be written: %s. What was there before is untouched.", path,
                          strerror(reason)));
    RCN_TRY(rcn_file_commit(file, 1));
done:
    if (stream) fclose(stream);
    rcn_file_destroy(file);
    free(header);
    rcn__free(ctx, order);
    return status;
}
