#include "rcn_parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

rcn_status rcn__for_chunks(rcn_context *ctx, const char *stage, int64_t chunks, rcn__chunk_fn body,
                           void *payload) {
    /* Without a listener there is nothing to interrupt for. */
    int64_t group = chunks;
    if (ctx->progress) {
        group = chunks / 128;
        if (group < 4 * (int64_t)ctx->threads) group = 4 * (int64_t)ctx->threads;
    }
    for (int64_t first = 0; first < chunks; first += group) {
        const rcn_status status = rcn__report(ctx, (double)first / (double)chunks, stage);
        if (status != RCN_OK) return status;
        const int64_t end = chunks - first > group ? first + group : chunks;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1)                                                      \
    num_threads(ctx->threads) if (end - first > 1 && ctx->threads > 1)
        for (int64_t chunk = first; chunk < end; ++chunk)
            body(chunk, omp_get_thread_num(), payload);
#else
        for (int64_t chunk = first; chunk < end; ++chunk) body(chunk, 0, payload);
#endif
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
