// SPDX-License-Identifier: Apache-2.0
/* The context: threads, memory, progress and the last error of one caller (rcn_context.h).
 *
 * It holds no global state, so that two contexts never meet; one is used by one thread at a time,
 * which may have others working for it. All memory but that of JSON comes through rcn__alloc(),
 * which is why a test can make each allocation fail in turn and see that nothing leaks.
 */
#include "rcn_context_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "rcn_system.h"

enum { MAX_THREADS = 4096 };

static void *libc_allocate(size_t bytes, void *payload) {
    (void)payload;
    return rcn__allocate_aligned(bytes);
}

static void libc_release(void *pointer, void *payload) {
    (void)payload;
    rcn__release_aligned(pointer);
}

const char *rcn_context_check(const rcn_context_options *options) {
    if (!options) return NULL;
    if (options->threads < 0 || options->threads > MAX_THREADS)
        return "The number of threads must be 0 (all cores) to 4096.";
    if (!options->allocator.allocate != !options->allocator.release)
        return "An allocator needs both allocate and release.";
    return NULL;
}

rcn_status rcn_context_create(rcn_context **out, const rcn_context_options *options) {
    static const rcn_context_options defaults = RCN_CONTEXT_OPTIONS_INIT;
    rcn_allocator allocator = {libc_allocate, libc_release, NULL};
    if (!out) return RCN_EINVALID;
    *out = NULL;
    /* There is no context yet to hold a sentence; the caller has rcn_context_check() for that. */
    if (rcn_context_check(options)) return RCN_EINVALID;
    if (!options) options = &defaults;
    if (options->allocator.allocate) allocator = options->allocator;

    rcn_context *ctx = allocator.allocate(sizeof *ctx, allocator.payload);
    if (!ctx) return RCN_ENOMEM;
    memset(ctx, 0, sizeof *ctx);
    ctx->allocator = allocator;
    ctx->progress = options->progress;
    ctx->progress_payload = options->progress_payload;
#ifdef _OPENMP
    ctx->threads = options->threads ? options->threads : omp_get_max_threads();
#else
    ctx->threads = 1;
#endif
    *out = ctx;
    return RCN_OK;
}

void rcn_context_destroy(rcn_context *ctx) {
    if (!ctx) return;
    /* A copy: the allocator's own place is inside of what it releases. */
    const rcn_allocator allocator = ctx->allocator;
    allocator.release(ctx, allocator.payload);
}

const char *rcn_context_error(const rcn_context *ctx) {
    return ctx ? ctx->error : "The context is NULL.";
}

int rcn_context_threads(const rcn_context *ctx) { return ctx->threads; }

void rcn_context_set_progress(rcn_context *ctx, rcn_progress_fn progress, void *payload) {
    ctx->progress = progress;
    ctx->progress_payload = payload;
}

size_t rcn_context_bytes(const rcn_context *ctx) { return ctx->bytes; }

size_t rcn_context_peak_bytes(const rcn_context *ctx) { return ctx->peak_bytes; }

rcn_status rcn__fail(rcn_context *ctx, rcn_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ctx->error, sizeof ctx->error, format, arguments);
    va_end(arguments);
    /* One sentence is one line, whatever a file name or label carried into it. */
    for (char *c = ctx->error; *c; ++c)
        if ((unsigned char)*c < ' ') *c = ' ';
    return status;
}

void rcn__clear(rcn_context *ctx) { ctx->error[0] = '\0'; }

rcn_status rcn__report(rcn_context *ctx, double fraction, const char *stage) {
    if (ctx->progress && ctx->progress(fraction, stage, ctx->progress_payload))
        return rcn__fail(ctx, RCN_ECANCELLED, "Canceled while %s.", stage);
    return RCN_OK;
}

/* A block starts with one aligned line that remembers its size, so that memory can be accounted.
 * Called by the calling thread only, never inside of a chunk: the counters are not atomic. */
rcn_status rcn__alloc(void **out, rcn_context *ctx, int64_t count, size_t size, const char *what) {
    *out = NULL;
    if (count < 0 || (size && (uint64_t)count > (SIZE_MAX - RCN__ALIGNMENT) / 2 / size))
        return rcn__fail(ctx, RCN_ENOMEM, "Out of memory: %lld x %zu bytes for %s.",
                         (long long)count, size, what);
    const size_t bytes = (size_t)count * size;
    unsigned char *block = ctx->allocator.allocate(bytes + RCN__ALIGNMENT, ctx->allocator.payload);
    if (!block)
        return rcn__fail(ctx, RCN_ENOMEM, "Out of memory: %zu bytes (%.1f MB) for %s.", bytes,
                         (double)bytes / 1e6, what);
    memcpy(block, &bytes, sizeof bytes);
    ctx->bytes += bytes;
    if (ctx->bytes > ctx->peak_bytes) ctx->peak_bytes = ctx->bytes;
    *out = block + RCN__ALIGNMENT;
    return RCN_OK;
}

rcn_status rcn__alloc_zero(void **out, rcn_context *ctx, int64_t count, size_t size,
                           const char *what) {
    const rcn_status status = rcn__alloc(out, ctx, count, size, what);
    if (status == RCN_OK) memset(*out, 0, (size_t)count * size);
    return status;
}

void rcn__free(rcn_context *ctx, void *pointer) {
    if (!pointer) return;
    unsigned char *block = (unsigned char *)pointer - RCN__ALIGNMENT;
    size_t bytes;
    memcpy(&bytes, block, sizeof bytes);
    ctx->bytes -= bytes;
    ctx->allocator.release(block, ctx->allocator.payload);
}
