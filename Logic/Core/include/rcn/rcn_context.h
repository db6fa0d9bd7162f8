// SPDX-License-Identifier: Apache-2.0
/* The context: threads, the error sentence, memory, progress and canceling.
 *
 * Every call that can fail takes one. A context serves one calling thread at a time (its work is
 * split over its own threads inside); use one context per concurrent caller. Objects created with
 * a context must be destroyed before it. There is no global state: two contexts never meet.
 *
 *     rcn_context *ctx = NULL;
 *     if (rcn_context_create(&ctx, NULL) != RCN_OK) ...     // no memory
 *     if (rcn_votes_from_masks(&votes, ctx, masks, 3) != RCN_OK)
 *         fprintf(stderr, "%s\n", rcn_context_error(ctx));
 *     rcn_context_destroy(ctx);
 *
 * Threads share work in chunks of a fixed size, whose results are put together in order. So their
 * number changes how long something takes, and, where a comment does not say otherwise (networks),
 * no bit of what comes out.
 */
#ifndef RCN_CONTEXT_H
#define RCN_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "rcn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opaque: created, passed to every call, destroyed. */
typedef struct rcn_context rcn_context;

/* Reports how far a long call is. Return non-zero to cancel it: the call ends with RCN_ECANCELLED
 * and leaves its outputs as its comment says. Called on the calling thread only.
 *   fraction  0 ... 1 within the stage
 *   stage     what is being done, in words for a person; valid during the call
 */
typedef int (*rcn_progress_fn)(double fraction, const char *stage, void *payload);

/* The one door for memory, of objects and of scratch space. allocate returns 64-byte aligned memory
 * or NULL, which ends the call with RCN_ENOMEM; release is never given NULL. Called on the calling
 * thread only, so neither needs a lock. For programs that count or limit memory, and for tests that
 * let each allocation fail once. Give both functions or none. */
typedef struct rcn_allocator {
    void *(*allocate)(size_t bytes, void *payload);
    void (*release)(void *pointer, void *payload);
    void *payload;
} rcn_allocator;

typedef struct rcn_context_options {
    int threads;              /* 0 (default): as many as OpenMP would use; 1: none but the caller */
    rcn_allocator allocator;  /* all zero (default): the C library's */
    rcn_progress_fn progress; /* NULL (default): silent and not cancellable */
    void *progress_payload;
} rcn_context_options;

#define RCN_CONTEXT_OPTIONS_INIT {0, {0, 0, 0}, 0, 0}

/* NULL if the options can be used, otherwise the sentence that says why not: threads must be 0 to
 * 4096, and an allocator needs both functions. NULL options are fine. Needed here more than
 * elsewhere, because a context that was not created cannot hold a sentence. */
RCN_API const char *rcn_context_check(const rcn_context_options *options);

/* Creates a context; NULL options are the defaults. The options are copied.
 *   RCN_EINVALID  options that cannot be used (see rcn_context_check()), or no `out`
 *   RCN_ENOMEM    no memory
 * On failure *out is NULL. */
RCN_API rcn_status rcn_context_create(rcn_context **out, const rcn_context_options *options);

/* NULL is fine. Whatever was created with the context must have been destroyed before: its memory
 * goes back through this context's allocator. */
RCN_API void rcn_context_destroy(rcn_context *ctx);

/* What went wrong last, as one sentence without a line break; "" when nothing did. Control
 * characters that a file name or label carried into it have become spaces; no sentence is longer
 * than 2047 bytes. Borrowed, valid until the next call with this context; never NULL, also for no
 * context. */
RCN_API const char *rcn_context_error(const rcn_context *ctx);

/* The number of threads in use (1 in a build without OpenMP). */
RCN_API int rcn_context_threads(const rcn_context *ctx);

/* Replaces the progress callback; NULL: silent from now on. Not while a call is running. */
RCN_API void rcn_context_set_progress(rcn_context *ctx, rcn_progress_fn progress, void *payload);

/* Bytes held now, and the most that was ever held, by objects and scratch memory of this context.
 * Buffers of the caller do not count. */
RCN_API size_t rcn_context_bytes(const rcn_context *ctx);
RCN_API size_t rcn_context_peak_bytes(const rcn_context *ctx);

#ifdef __cplusplus
}
#endif

#endif /* RCN_CONTEXT_H */
