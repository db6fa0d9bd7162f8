// SPDX-License-Identifier: Apache-2.0
/* The one way work is split over threads: fixed chunks, whatever the number of threads.
 *
 * Because the chunks are fixed, a sum kept per chunk and added up in the order of chunks has the
 * same bits for any number of threads.
 */
#ifndef RCN_PARALLEL_H
#define RCN_PARALLEL_H

#include "rcn_compiler.h"
#include "rcn_context_private.h"
#include "rcn_system.h"

/* Voxels in a chunk of a voxel pass: small enough to stay in the first-level cache with its
 * scratch, large enough that starting a chunk costs nothing. */
enum { RCN_CHUNK = 8192 };

/* Does chunk number `chunk`; runs on thread number `thread`, 0 ... threads - 1. */
typedef void (*rcn__chunk_fn)(int64_t chunk, int thread, void *payload);

/* body(0) ... body(chunks - 1), in any order, on the context's threads. Between groups of chunks
 * the calling thread reports progress; RCN_ECANCELLED when that asks to stop. */
rcn_status rcn__for_chunks(rcn_context *ctx, const char *stage, int64_t chunks, rcn__chunk_fn body,
                           void *payload);

/* The same for short work that is neither reported nor canceled: whoever runs it asks in between.
 */
void rcn__for_all(rcn_context *ctx, int64_t chunks, rcn__chunk_fn body, void *payload);

/* How many chunks n items make, and the half-open range of items in one. */
int64_t rcn__chunk_count(int64_t items, int64_t per_chunk);
void rcn__chunk_range(int64_t *first, int64_t *end, int64_t chunk, int64_t items,
                      int64_t per_chunk);

#endif /* RCN_PARALLEL_H */
