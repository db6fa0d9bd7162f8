// SPDX-License-Identifier: Apache-2.0
/* The calls of an rcn_comm, checked and timed, for the library's own files. Nothing happens for
 * NULL or one process. RCN_EIO: the processes cannot reach each other. */
#ifndef RCN_COMM_PRIVATE_H
#define RCN_COMM_PRIVATE_H

#include "rcn/rcn_comm.h"
#include "rcn_context_private.h"

/* 0 and 1 for NULL. */
int rcn__comm_rank(const rcn_comm *comm);
int rcn__comm_size(const rcn_comm *comm);

rcn_status rcn__comm_begin_sum(rcn_comm *comm, rcn_context *ctx, void *values, int64_t count,
                               rcn_comm_type type);
rcn_status rcn__comm_poll(rcn_comm *comm, rcn_context *ctx);
rcn_status rcn__comm_finish(rcn_comm *comm, rcn_context *ctx);
rcn_status rcn__comm_broadcast(rcn_comm *comm, rcn_context *ctx, void *bytes, int64_t count,
                               int root);
rcn_status rcn__comm_exchange(rcn_comm *comm, rcn_context *ctx, void *in, const int64_t *in_bytes,
                              const void *out, const int64_t *out_bytes);

/* *differs = the first process whose bytes are not those of process 0, or -1. */
rcn_status rcn__comm_compare(int *differs, rcn_comm *comm, rcn_context *ctx, const void *bytes,
                             int64_t count);

#endif /* RCN_COMM_PRIVATE_H */
