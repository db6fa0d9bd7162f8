// SPDX-License-Identifier: Apache-2.0
/* Safetensors: named tensors in a file, as Python's `safetensors` reads and writes them.
 *
 * A file is eight bytes with the length of a header (little endian), the header (JSON: for each
 * tensor its dtype, shape and place, and strings under "__metadata__"), and the tensors' bytes.
 *
 * Nothing in a file is believed. Opening checks the whole header: lengths against the file's size,
 * every dtype, shape and place against each other; tensors must fill the rest of the file without
 * overlap or gap, as Python's reader demands. Loading checks all names, dtypes and shapes before
 * the first number is written, and refuses NaN and infinity. Every refusal has its own sentence.
 */
#ifndef RCN_SAFETENSORS_H
#define RCN_SAFETENSORS_H

#include "rcn/rcn_image.h"

enum { RCN_TENSOR_RANK = 8 };

/* A tensor in memory: where it is read to or written from. */
typedef struct rcn__file_tensor {
    const char *name;
    rcn_type type; /* reading: RCN_FLOAT32 takes F32, F16, BF16 and F64; others only their own */
    int rank;      /* 0 ... RCN_TENSOR_RANK; 0: a single number */
    int64_t shape[RCN_TENSOR_RANK];
    void *data;
    int optional; /* reading: may be missing, and then keeps its value (num_batches_tracked) */
} rcn__file_tensor;

typedef struct rcn__safetensors rcn__safetensors;

/* Opens a file for reading. `name` names it in sentences.
 *   RCN_EIO      it cannot be read
 *   RCN_EFORMAT  it does not follow the format; the sentence says where
 * On failure *out is unchanged. */
rcn_status rcn__safetensors_open(rcn__safetensors **out, rcn_context *ctx, const char *path);

/* The same from memory, which must outlive the handle. */
rcn_status rcn__safetensors_open_memory(rcn__safetensors **out, rcn_context *ctx, const char *name,
                                        const void *data, size_t bytes);

/* Lets go of the file on disk, so that it can be replaced (Windows replaces no file that is open).
 * Names and metadata stay; nothing can be loaded any more. */
void rcn__safetensors_detach(rcn__safetensors *file);

/* NULL is fine. */
void rcn__safetensors_close(rcn__safetensors *file);

/* The metadata string of a key, or NULL. Borrowed from the handle. */
const char *rcn__safetensors_metadata(const rcn__safetensors *file, const char *key);

/* All keys: number i of rcn__safetensors_metadata_count(). Borrowed from the handle. */
int64_t rcn__safetensors_metadata_count(const rcn__safetensors *file);
const char *rcn__safetensors_metadata_key(const rcn__safetensors *file, int64_t i);

/* What is inside: name, type, rank and shape of tensor i (data is NULL; F16 and BF16 show as
 * RCN_FLOAT32, into which they are read). Names are borrowed from the handle. */
int64_t rcn__safetensors_count(const rcn__safetensors *file);
rcn__file_tensor rcn__safetensors_tensor(const rcn__safetensors *file, int64_t i);

typedef struct rcn__load_options {
    /* NULL (default): all tensors. Otherwise only those whose name begins with it; the file may
     * have them with or without it ("encoder." for a ResNet of torchvision or of our own). */
    const char *prefix;
    int allow_missing; /* 0 (default): every tensor must be there */
    int allow_unused;  /* 0 (default): the file may have nothing else */
    /* NULL (default), or the name of the first convolution (outputs, inputs, ...): where the file
     * has another number of inputs, it is adapted as segmentation_models_pytorch does. To one
     * input: the sum; to n: repeated in turn, times (inputs in the file) / n. */
    const char *adapt_inputs;
} rcn__load_options;

#define RCN_LOAD_OPTIONS_INIT {0, 0, 0, 0}

/* What did not meet. Lists and names are borrowed from handle and tensors. */
typedef struct rcn__load_report {
    int64_t loaded;
    const char **missing; /* wanted, not in the file (optional ones do not count) */
    int64_t missing_count;
    const char **unused; /* in the file, not wanted */
    int64_t unused_count;
} rcn__load_report;

/* Reads tensors[0 ... count-1] by name.
 *   report       may be NULL; filled also when names are the reason to fail
 *   RCN_EFORMAT  names, shapes or dtypes do not fit: nothing was written
 *   RCN_EDATA    NaN or infinity; the tensors are partly written
 *   RCN_EIO      reading failed, or canceled: the tensors are partly written */
rcn_status rcn__safetensors_load(rcn__load_report *report, rcn__safetensors *file, rcn_context *ctx,
                                 const rcn__file_tensor *tensors, int64_t count,
                                 const rcn__load_options *options);

typedef struct rcn__metadata {
    const char *key;
    const char *value;
} rcn__metadata;

/* Writes a file: first beside it (rcn_file.h), flushed to the disk, then renamed; so `path` is the
 * old file or the new one at any moment, whatever happens. Refuses what could not be read
 * again: a name twice, text that is not UTF-8, NaN and infinity.
 *   RCN_ESPACE  the disk is full; the old file is untouched and nothing is left beside it
 *   RCN_EIO     another reason; likewise */
rcn_status rcn__safetensors_write(rcn_context *ctx, const char *path,
                                  const rcn__file_tensor *tensors, int64_t count,
                                  const rcn__metadata *metadata, int64_t metadata_count);

#endif /* RCN_SAFETENSORS_H */
