// SPDX-License-Identifier: Apache-2.0
/* Messages between processes: the caller's functions (rcn_comm.h; MPI or anything else), checked
 * and timed.
 *
 * With one process, or none given, every call does what it means for one and returns, so that
 * nobody who computes asks how many there are. The seconds are counted so that a training can say
 * how much of its time was waiting.
 */
#include "rcn_comm_private.h"

#include <string.h>

#include "rcn_parallel.h"

int rcn__comm_rank(const rcn_comm *comm) { return comm ? comm->rank : 0; }

int rcn__comm_size(const rcn_comm *comm) { return comm ? comm->size : 1; }

/* Ends a call that began at `start`. */
static rcn_status ended(rcn_comm *comm, rcn_context *ctx, double start, int failed) {
    comm->seconds += rcn__seconds() - start;
    if (failed) return rcn__fail(ctx, RCN_EIO, "The connection between the processes was lost.");
    return RCN_OK;
}

rcn_status rcn_comm_sum(rcn_comm *comm, rcn_context *ctx, void *values, int64_t count,
                        rcn_comm_type type) {
    if (rcn__comm_size(comm) == 1 || !count) return RCN_OK;
    const double start = rcn__seconds();
    return ended(comm, ctx, start, comm->sum(values, count, type, comm->payload));
}

rcn_status rcn__comm_begin_sum(rcn_comm *comm, rcn_context *ctx, void *values, int64_t count,
                               rcn_comm_type type) {
    if (rcn__comm_size(comm) == 1 || !count) return RCN_OK;
    const double start = rcn__seconds();
    return ended(comm, ctx, start, comm->begin_sum(values, count, type, comm->payload));
}

rcn_status rcn__comm_poll(rcn_comm *comm, rcn_context *ctx) {
    if (rcn__comm_size(comm) == 1) return RCN_OK;
    const double start = rcn__seconds();
    return ended(comm, ctx, start, comm->poll(comm->payload));
}

rcn_status rcn__comm_finish(rcn_comm *comm, rcn_context *ctx) {
    if (rcn__comm_size(comm) == 1) return RCN_OK;
    const double start = rcn__seconds();
    return ended(comm, ctx, start, comm->finish(comm->payload));
}

rcn_status rcn__comm_broadcast(rcn_comm *comm, rcn_context *ctx, void *bytes, int64_t count,
                               int root) {
    if (rcn__comm_size(comm) == 1 || !count) return RCN_OK;
    const double start = rcn__seconds();
    return ended(comm, ctx, start, comm->broadcast(bytes, count, root, comm->payload));
}

rcn_status rcn__comm_exchange(rcn_comm *comm, rcn_context *ctx, void *in, const int64_t *in_bytes,
                              const void *out, const int64_t *out_bytes) {
    if (rcn__comm_size(comm) == 1) {
        memcpy(in, out, (size_t)in_bytes[0]);
        return RCN_OK;
    }
    const double start = rcn__seconds();
    return ended(comm, ctx, start, comm->exchange(in, in_bytes, out, out_bytes, comm->payload));
}

void rcn_comm_share(int64_t *first, int64_t *end, int64_t count, int rank, int size) {
    /* The first `more` processes have one item more than the others. */
    const int64_t each = count / size, more = count % size;
    *first = rank * each + (rank < more ? rank : more);
    *end = *first + each + (rank < more);
}

rcn_status rcn__comm_compare(int *differs, rcn_comm *comm, rcn_context *ctx, const void *bytes,
                             int64_t count) {
    rcn_status status = RCN_OK;
    void *theirs = NULL;
    int64_t *flags = NULL;
    const int size = rcn__comm_size(comm);
    int found = -1;
    if (size > 1) {
        RCN_TRY(rcn__alloc(&theirs, ctx, count, 1, "comparing"));
        RCN_ALLOC_ZERO(flags, ctx, size, "comparing");
        /* Everybody compares with what process 0 sends, and the flags are summed, so that all learn
         * the same answer and take the same way from here. */
        memcpy(theirs, bytes, (size_t)count);
        RCN_TRY(rcn__comm_broadcast(comm, ctx, theirs, count, 0));
        flags[comm->rank] = memcmp(theirs, bytes, (size_t)count) != 0;
        RCN_TRY(rcn_comm_sum(comm, ctx, flags, size, RCN_COMM_INT64));
        for (int r = size - 1; r >= 0; --r)
            if (flags[r]) found = r;
    }
    *differs = found;
done:
    rcn__free(ctx, theirs);
    rcn__free(ctx, flags);
    return status;
}
