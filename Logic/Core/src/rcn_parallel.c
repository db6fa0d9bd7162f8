// SPDX-License-Identifier: Apache-2.0
/* Threads (rcn_parallel.h): the one loop that all passes go through.
 *
 * OpenMP runs between reports only. Progress is told, and canceling asked for, by the calling
 * thread between groups of chunks, because callers touch their user interface there.
 */
#include "rcn_parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* A listener hears about this often: soon enough for a person, seldom enough to cost nothing. */
static const double REPORT_SECONDS = 0.02;

/* Less work than this is done before another thread has woken up; and threads that were woken keep
 * a core busy for a while after, at the expense of whatever else runs beside us. */
static const double ALONE_SECONDS = 0.0004;

static void do_chunks(int64_t first, int64_t end, rcn_context *ctx, int alone, rcn__chunk_fn body,
                      void *payload) {
    if (alone || ctx->threads == 1 || end - first < 2) {
        for (int64_t chunk = first; chunk < end; ++chunk) body(chunk, 0, payload);
        return;
    }
#ifdef _OPENMP
    int64_t chunk; /* Visual C++ does not take it inside the loop. */
#pragma omp parallel for schedule(dynamic, 1) num_threads(ctx->threads)
    for (chunk = first; chunk < end; ++chunk) body(chunk, omp_get_thread_num(), payload);
#endif
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
