#include "rcn_parallel.h"

#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* A listener hears about this often: soon enough for a person, seldom enough to cost nothing. */
static const double REPORT_SECONDS = 0.02;

static double seconds_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

rcn_status rcn__for_chunks(rcn_context *ctx, const char *stage, int64_t chunks, rcn__chunk_fn body,
                           void *payload) {
    /* Without a listener there is nothing to interrupt for. With one, chunks are done in groups
     * that grow until a group takes about REPORT_SECONDS. */
    int64_t group = ctx->progress ? 4 * (int64_t)ctx->threads : chunks;
    for (int64_t first = 0; first < chunks;) {
        const rcn_status status = rcn__report(ctx, (double)first / (double)chunks, stage);
        if (status != RCN_OK) return status;
        const double start = ctx->progress ? seconds_now() : 0;
        const int64_t end = chunks - first > group ? first + group : chunks;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(ctx->threads) if (end - first > 1 && ctx->threads > 1)
        for (int64_t chunk = first; chunk < end; ++chunk)
            body(chunk, omp_get_thread_num(), payload);
#else
        for (int64_t chunk = first; chunk < end; ++chunk) body(chunk, 0, payload);
#endif
        first = end;
        if (ctx->progress && seconds_now() - start < REPORT_SECONDS / 2 && group < chunks)
            group *= 2;
    }
    return rcn__report(ctx, 1.0, stage);
}

int64_t rcn__chunk_count(int64_t items, int64_t per_chunk) {
    return (items + per_chunk - 1) / per_chunk;
}

void rcn__chunk_range(int64_t *first, int64_t *end, int64_t chunk, int64_t items,
                      int64_t per_chunk) {
    *first = chunk * per_chunk;
    *end = items - *first > per_chunk ? *first + per_chunk : items;
}
