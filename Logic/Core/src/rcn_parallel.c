// SPDX-License-Identifier: Apache-2.0
/* Threads (rcn_parallel.h): the one loop that all passes go through.
 *
 * OpenMP runs between reports only. Progress is told, and canceling asked for, by the calling
 * thread between groups of chunks, because callers touch their user interface there.
 */
#include "rcn_parallel.h"

#ifdef _OPENMP
#include <omp.h>
#ifndef __STDC_NO_ATOMICS__
#include <stdatomic.h>
#endif
#endif

/* A listener hears about this often: soon enough for a person, seldom enough to cost nothing. */
static const double REPORT_SECONDS = 0.02;

/* Less work than this is done before another thread has woken up; and threads that were woken keep
 * a core busy for a while after, at the expense of whatever else runs beside us. */
static const double ALONE_SECONDS = 0.0004;

#ifdef _OPENMP
/* A number that one thread replaces only if no other has meanwhile. */
#ifdef __STDC_NO_ATOMICS__
typedef uint64_t shared_number;
static uint64_t look(const shared_number *at) {
    uint64_t seen;
#pragma omp critical(rcn_shared_number)
    seen = *at;
    return seen;
}
static int replace(shared_number *at, uint64_t *seen, uint64_t now) {
    int same;
#pragma omp critical(rcn_shared_number)
    {
        same = *at == *seen;
        *seen = *at;
        if (same) *at = now;
    }
    return same;
}
#else
typedef _Atomic(uint64_t) shared_number;
static uint64_t look(shared_number *at) { return atomic_load_explicit(at, memory_order_relaxed); }
static int replace(shared_number *at, uint64_t *seen, uint64_t now) {
    return atomic_compare_exchange_strong_explicit(at, seen, now, memory_order_relaxed,
                                                   memory_order_relaxed);
}
#endif

/* What is left of a thread's own run of chunks: the next in the lower half, the end in the upper
 * one. Each has a line of the cache to itself, and no lock that would travel between the cores for
 * each chunk. */
typedef struct share {
    shared_number left;
    uint64_t unused[7];
} share;

enum { MOST_SHARES = 256, MOST_CHUNKS = INT32_MAX };

/* The first or the last chunk of a share, or -1. */
static int64_t take_from(share *from, int last) {
    uint64_t seen = look(&from->left);
    for (;;) {
        const uint64_t next = seen & UINT32_MAX, end = seen >> 32;
        if (next >= end) return -1;
        if (replace(&from->left, &seen, last ? (end - 1) << 32 | next : end << 32 | (next + 1)))
            return (int64_t)(last ? end - 1 : next);
    }
}

/* The next chunk for a thread, or -1: its own from the first on, then what others have left, from
 * the last on. */
static int64_t take_chunk(share *shares, int threads, int thread) {
    int64_t chunk = -1;
    for (int k = 0; k < threads && chunk < 0; ++k)
        chunk = take_from(&shares[(thread + k) % threads], k > 0);
    return chunk;
}

/* Each thread begins with a run of chunks of its own: what one pass leaves in a core's cache, the
 * next pass mostly finds there, because chunks are numbered in the order of memory. Where cores
 * have no cache in common, fetching from another one's takes several times as long as computing.
 * Who has finished early takes over from the others, so that a slow core delays nobody. */
static void share_chunks(int64_t first, int64_t end, int threads, rcn__chunk_fn body,
                         void *payload) {
    share shares[MOST_SHARES];
    for (int t = 0; t < threads; ++t)
        shares[t].left = (uint64_t)((end - first) * (t + 1) / threads) << 32 |
                         (uint64_t)((end - first) * t / threads);
#pragma omp parallel num_threads(threads)
    {
        const int thread = omp_get_thread_num();
        int64_t chunk;
        while ((chunk = take_chunk(shares, threads, thread)) >= 0)
            body(first + chunk, thread, payload);
    }
}
#endif

static void do_chunks(int64_t first, int64_t end, rcn_context *ctx, int alone, rcn__chunk_fn body,
                      void *payload) {
#ifdef _OPENMP
    const int threads = ctx->threads < MOST_SHARES ? ctx->threads : MOST_SHARES;
    if (!alone && threads > 1 && end - first > 1) {
        for (; end - first > MOST_CHUNKS; first += MOST_CHUNKS)
            share_chunks(first, first + MOST_CHUNKS, threads, body, payload);
        share_chunks(first, end, threads, body, payload);
        return;
    }
#endif
    (void)ctx;
    (void)alone;
    for (int64_t chunk = first; chunk < end; ++chunk) body(chunk, 0, payload);
}

rcn_status rcn__for_chunks(rcn_context *ctx, const char *stage, int64_t chunks, rcn__chunk_fn body,
                           void *payload) {
    /* The first chunk tells how much work there is. Without a listener the rest is one group; with
     * one, groups grow until they take about REPORT_SECONDS. Which thread does a chunk, and when,
     * never changes a result. */
    int64_t first = 0, group = 1;
    int alone = 1;
    while (first < chunks) {
        const rcn_status status = rcn__report(ctx, (double)first / (double)chunks, stage);
        if (status != RCN_OK) return status;
        const double start = rcn__seconds();
        const int64_t end = chunks - first > group ? first + group : chunks;
        do_chunks(first, end, ctx, alone, body, payload);
        const double seconds = rcn__seconds() - start;
        if (first == 0) {
            alone = seconds * (double)chunks < ALONE_SECONDS;
            /* Four chunks for each thread to begin with, so that a slow one does not leave the rest
             * idle. */
            group = ctx->progress && !alone ? 4 * (int64_t)ctx->threads : chunks;
        } else if (seconds < REPORT_SECONDS / 2 && group < chunks) {
            group *= 2;
        }
        first = end;
    }
    return rcn__report(ctx, 1.0, stage);
}

/* No first chunk to measure by: whoever calls this does so over and over, and knows that it
 * pays. */
void rcn__for_all(rcn_context *ctx, int64_t chunks, rcn__chunk_fn body, void *payload) {
    do_chunks(0, chunks, ctx, 0, body, payload);
}

int64_t rcn__chunk_count(int64_t items, int64_t per_chunk) {
    return (items + per_chunk - 1) / per_chunk;
}

void rcn__chunk_range(int64_t *first, int64_t *end, int64_t chunk, int64_t items,
                      int64_t per_chunk) {
    *first = chunk * per_chunk;
    *end = items - *first > per_chunk ? *first + per_chunk : items;
}
