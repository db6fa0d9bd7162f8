// SPDX-License-Identifier: Apache-2.0
/* What the library's own files share about the context: failing, reporting, memory. */
#ifndef RCN_CONTEXT_PRIVATE_H
#define RCN_CONTEXT_PRIVATE_H

#include "rcn/rcn_context.h"
#include "rcn_compiler.h"

struct rcn_context {
    int threads;
    rcn_allocator allocator;
    rcn_progress_fn progress;
    void *progress_payload;
    size_t bytes;
    size_t peak_bytes;
    char error[2048];
};

/* Writes the error sentence and returns `status`, so that failing is one line. */
rcn_status rcn__fail(rcn_context *ctx, rcn_status status, const char *format, ...) RCN_PRINTF(3, 4);

/* Forgets the last error; every public entry that can fail starts with it. */
void rcn__clear(rcn_context *ctx);

/* Tells the progress callback; RCN_ECANCELLED when it asks to stop. */
rcn_status rcn__report(rcn_context *ctx, double fraction, const char *stage);

/* Leaves through the function's `done:` label, which frees everything. */
#define RCN_TRY(call)                                                                              \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != RCN_OK) goto done;                                                           \
    } while (0)

/* *out = zeroed or uninitialized memory for count elements, 64-byte aligned. `what` names its
 * purpose in the error sentence. Zero elements give a valid pointer. On failure *out is NULL. */
rcn_status rcn__alloc(void **out, rcn_context *ctx, int64_t count, size_t size, const char *what);
rcn_status rcn__alloc_zero(void **out, rcn_context *ctx, int64_t count, size_t size,
                           const char *what);

/* NULL is fine. */
void rcn__free(rcn_context *ctx, void *pointer);

#define RCN_ALLOC(pointer, ctx, count, what)                                                       \
    RCN_TRY(rcn__alloc((void **)&(pointer), ctx, count, sizeof *(pointer), what))
#define RCN_ALLOC_ZERO(pointer, ctx, count, what)                                                  \
    RCN_TRY(rcn__alloc_zero((void **)&(pointer), ctx, count, sizeof *(pointer), what))

#endif /* RCN_CONTEXT_PRIVATE_H */
