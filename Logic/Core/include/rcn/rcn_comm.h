// SPDX-License-Identifier: Apache-2.0
/* Several processes that work together, as the core sees them.
 *
 * The core knows no MPI. It is given a small table of functions, and whoever starts the processes
 * fills it (the bridge over MPI, the tests with threads). Where a pointer to it is NULL, there is
 * one process, nothing is called and nothing changes.
 *
 * All processes must make the same calls in the same order; a call that waits returns when all have
 * made it. Sums give every process the same bits. A process that fails in between would leave the
 * others waiting: whoever notices has to end all of them.
 */
#ifndef RCN_COMM_H
#define RCN_COMM_H

#include "rcn_context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rcn_comm_type {
    RCN_COMM_FLOAT = 0,
    RCN_COMM_DOUBLE = 1,
    RCN_COMM_INT64 = 2
} rcn_comm_type;

/* The functions return 0, or non-zero when the processes cannot reach each other any more. */
typedef struct rcn_comm {
    int rank; /* this process: 0 ... size - 1 */
    int size;

    /* values[0 ... count - 1] = their sums over all processes. */
    int (*sum)(void *values, int64_t count, rcn_comm_type type, void *payload);

    /* Begins such a sum and returns; the values must be left alone until finish(), which waits for
     * all sums begun. poll() lets them go on while there is other work. */
    int (*begin_sum)(void *values, int64_t count, rcn_comm_type type, void *payload);
    int (*poll)(void *payload);
    int (*finish)(void *payload);

    /* Process `root`'s bytes, to all. */
    int (*broadcast)(void *bytes, int64_t count, int root, void *payload);

    /* Waits for all. */
    int (*barrier)(void *payload);

    /* Sends out_bytes[r] bytes to each process r and receives in_bytes[r] from it; both lie one
     * after another. */
    int (*exchange)(void *in, const int64_t *in_bytes, const void *out, const int64_t *out_bytes,
                    void *payload);

    void *payload;
    double seconds; /* spent waiting in calls from the core so far */
} rcn_comm;

/* values[0 ... count - 1] = their sums over all processes, checked and timed; nothing happens for
 * NULL or one process. RCN_EIO: the processes cannot reach each other. */
RCN_API rcn_status rcn_comm_sum(rcn_comm *comm, rcn_context *ctx, void *values, int64_t count,
                                rcn_comm_type type);

/* The part [*first, *end) of `count` things in a row that falls to process `rank` of `size`: parts
 * differ by one at most. */
RCN_API void rcn_comm_share(int64_t *first, int64_t *end, int64_t count, int rank, int size);

#ifdef __cplusplus
}
#endif

#endif /* RCN_COMM_H */
