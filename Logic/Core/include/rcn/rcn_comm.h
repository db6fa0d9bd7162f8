// SPDX-License-Identifier: Apache-2.0
/* Several processes that work together, as the core sees them.
 *
 * The core knows no MPI. It is given a small table of functions, and whoever starts the processes
 * fills it (the bridge over MPI, the tests with threads). Where a pointer to it is NULL, there is
 * one process, nothing is called and nothing changes.
 *
 * All processes must make the same calls in the same order; a call that waits returns when all have
 * made it. Sums give every process the same bits, so that all of them take the same way afterwards
 * (which step diverged, which epoch was best) without asking each other. A process that fails in
 * between would leave the others waiting: whoever notices has to end all of them.
 *
 * Functions that take an rcn_comm come in two kinds. Those that end with "_share" or "_shared" put
 * together what each process has found about its own cases; a training splits every batch instead,
 * and sums gradients. A program for several processes is that for one with the pointer passed on:
 *
 *     rcn_comm_share(&first, &end, cases, comm->rank, comm->size);
 *     for (int64_t i = first; i < end; ++i) rcn_calib_add(calib, ctx, &one_case[i]);
 *     rcn_calib_share(calib, ctx, comm);                  // now everybody has the sums of all
 */
#ifndef RCN_COMM_H
#define RCN_COMM_H

#include "rcn_context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is summed. */
typedef enum rcn_comm_type {
    RCN_COMM_FLOAT = 0,
    RCN_COMM_DOUBLE = 1,
    RCN_COMM_INT64 = 2
} rcn_comm_type;

/* The table. The functions return 0, or non-zero when the processes cannot reach each other any
 * more, which becomes RCN_EIO; none of them is called where size is 1. All are called on the
 * calling thread of the context that is in use. Owned by whoever filled it, and needed as long as
 * anything that was given it is used. */
typedef struct rcn_comm {
    int rank; /* this process: 0 ... size - 1 */
    int size;

    /* values[0 ... count - 1] = their sums over all processes. */
    int (*sum)(void *values, int64_t count, rcn_comm_type type, void *payload);

    /* Begins such a sum and returns; the values must be left alone until finish(), which waits for
     * all sums begun. poll() lets them go on while there is other work. So gradients of the last
     * layers travel while those of the first are still being computed. */
    int (*begin_sum)(void *values, int64_t count, rcn_comm_type type, void *payload);
    int (*poll)(void *payload);
    int (*finish)(void *payload);

    /* Process `root`'s bytes, to all. */
    int (*broadcast)(void *bytes, int64_t count, int root, void *payload);

    /* Waits for all. */
    int (*barrier)(void *payload);

    /* Sends out_bytes[r] bytes to each process r and receives in_bytes[r] from it; both lie one
     * after another, without gaps, and both tables have `size` entries. */
    int (*exchange)(void *in, const int64_t *in_bytes, const void *out, const int64_t *out_bytes,
                    void *payload);

    void *payload;
    double seconds; /* spent waiting in calls from the core so far */
} rcn_comm;

/* values[0 ... count - 1] = their sums over all processes, checked and timed; nothing happens for
 * NULL or one process. RCN_EIO: the processes cannot reach each other. */
RCN_API rcn_status rcn_comm_sum(rcn_comm *comm, rcn_context *ctx, void *values, int64_t count,
                                rcn_comm_type type);

/* The part [*first, *end) of `count` things in a row that falls to process `rank` of `size`. Parts
 * follow one another and differ by one at most, the longer ones first; a part is empty where there
 * are more processes than things. Asks nobody. */
RCN_API void rcn_comm_share(int64_t *first, int64_t *end, int64_t count, int rank, int size);

#ifdef __cplusplus
}
#endif

#endif /* RCN_COMM_H */
