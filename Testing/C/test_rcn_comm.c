// SPDX-License-Identifier: Apache-2.0
/* Processes as the core sees them: one alone, several, and several that lost each other. */
#include "rcn_test_comm.h"
#include "rcn_comm_private.h"

static test_group group;

static void test_shares(void) {
    for (int64_t count = 0; count < 40; ++count)
        for (int size = 1; size < 9; ++size) {
            int64_t at = 0, first, end;
            for (int rank = 0; rank < size; ++rank) {
                rcn_comm_share(&first, &end, count, rank, size);
                CHECK(first == at && end - first >= count / size &&
                      end - first <= count / size + 1);
                at = end;
            }
            CHECK(at == count);
        }
}

/* NULL is one process: nothing is changed, nothing is waited for. */
static void test_alone(void) {
    rcn_context *ctx = make_context(1);
    double values[2] = {1, 2};
    const int64_t bytes = sizeof values;
    double copy[2];
    int differs = 7;
    CHECK(rcn__comm_rank(NULL) == 0 && rcn__comm_size(NULL) == 1);
    CHECK_STATUS(rcn_comm_sum(NULL, ctx, values, 2, RCN_COMM_DOUBLE), RCN_OK);
    CHECK_STATUS(rcn__comm_begin_sum(NULL, ctx, values, 2, RCN_COMM_DOUBLE), RCN_OK);
    CHECK_STATUS(rcn__comm_poll(NULL, ctx), RCN_OK);
    CHECK_STATUS(rcn__comm_finish(NULL, ctx), RCN_OK);
    CHECK_STATUS(rcn__comm_broadcast(NULL, ctx, values, bytes, 0), RCN_OK);
    CHECK_STATUS(rcn__comm_exchange(NULL, ctx, copy, &bytes, values, &bytes), RCN_OK);
    CHECK_STATUS(rcn__comm_compare(&differs, NULL, ctx, values, bytes), RCN_OK);
    CHECK(values[0] == 1 && values[1] == 2 && copy[0] == 1 && copy[1] == 2 && differs == -1);
    rcn_context_destroy(ctx);
}

static void several(rcn_comm *comm, void *payload) {
    rcn_context *ctx = make_context(1);
    const int me = comm->rank, size = comm->size;
    (void)payload;
    float floats[3] = {(float)me, 1, -1};
    double later[2] = {me + 0.5, 2};
    int64_t whole[1] = {(int64_t)1 << (40 + me)};
    CHECK_STATUS(rcn__comm_begin_sum(comm, ctx, later, 2, RCN_COMM_DOUBLE), RCN_OK);
    CHECK_STATUS(rcn__comm_poll(comm, ctx), RCN_OK);
    CHECK_STATUS(rcn_comm_sum(comm, ctx, floats, 3, RCN_COMM_FLOAT), RCN_OK);
    CHECK_STATUS(rcn_comm_sum(comm, ctx, whole, 1, RCN_COMM_INT64), RCN_OK);
    CHECK_STATUS(rcn__comm_finish(comm, ctx), RCN_OK);
    CHECK(floats[0] == (float)(size * (size - 1) / 2) && floats[1] == (float)size &&
          floats[2] == (float)-size);
    CHECK(later[0] == size * (size - 1) / 2 + 0.5 * size && later[1] == 2 * size);
    CHECK(whole[0] == (((int64_t)1 << size) - 1) << 40);
    int number = me;
    CHECK_STATUS(rcn__comm_broadcast(comm, ctx, &number, sizeof number, size - 1), RCN_OK);
    CHECK(number == size - 1);
    int differs = 5;
    CHECK_STATUS(rcn__comm_compare(&differs, comm, ctx, &number, sizeof number), RCN_OK);
    CHECK(differs == -1);
    number = me >= 2 ? 1 : 0;
    CHECK_STATUS(rcn__comm_compare(&differs, comm, ctx, &number, sizeof number), RCN_OK);
    CHECK(differs == (size > 2 ? 2 : -1));
    /* r + 1 bytes to each r, which say who sent them. */
    unsigned char out[64], in[64];
    int64_t out_bytes[TEST_RANKS], in_bytes[TEST_RANKS];
    for (int r = 0; r < size; ++r) {
        out_bytes[r] = r + 1;
        in_bytes[r] = me + 1;
    }
    memset(out, me, sizeof out);
    memset(in, 99, sizeof in);
    CHECK_STATUS(rcn__comm_exchange(comm, ctx, in, in_bytes, out, out_bytes), RCN_OK);
    for (int r = 0; r < size; ++r)
        for (int k = 0; k <= me; ++k) CHECK(in[r * (me + 1) + k] == r);
    CHECK(comm->barrier(comm->payload) == 0);
    CHECK(comm->seconds > 0);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void test_several(void) {
    run_ranks(&group, 2, several, NULL);
    run_ranks(&group, 5, several, NULL);
}

static void lost(rcn_comm *comm, void *payload) {
    rcn_context *ctx = make_context(1);
    double value = 3;
    const int64_t bytes[2] = {0, 0};
    int differs = 4;
    (void)payload;
    CHECK_STATUS(rcn_comm_sum(comm, ctx, &value, 1, RCN_COMM_DOUBLE), RCN_EIO);
    CHECK_ERROR(ctx, "connection between the processes was lost");
    CHECK_STATUS(rcn__comm_poll(comm, ctx), RCN_EIO);
    CHECK(comm->barrier(comm->payload) != 0);
    CHECK_STATUS(rcn__comm_broadcast(comm, ctx, &value, 8, 0), RCN_EIO);
    CHECK_STATUS(rcn__comm_exchange(comm, ctx, &value, bytes, &value, bytes), RCN_EIO);
    CHECK_STATUS(rcn__comm_compare(&differs, comm, ctx, &value, 8), RCN_EIO);
    CHECK(differs == 4 && rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void test_lost(void) {
    group.fail = 1;
    run_ranks(&group, 2, lost, NULL);
    group.fail = 0;
}

int main(void) {
    RUN(test_shares);
    RUN(test_alone);
    RUN(test_several);
    RUN(test_lost);
    return TEST_RESULT;
}
