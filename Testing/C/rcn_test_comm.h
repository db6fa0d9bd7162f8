// SPDX-License-Identifier: Apache-2.0
/* Processes played by threads: a rcn_comm that needs no MPI. Sums that have begun hold a copy of
 * their values and leave NaN in their place until they are finished, so that whoever touches them
 * in between is found out. */
#ifndef RCN_TEST_COMM_H
#define RCN_TEST_COMM_H

#include <pthread.h>

#include "rcn/rcn_comm.h"
#include "rcn_test.h"

enum { TEST_RANKS = 8, TEST_PENDING = 256 };

typedef struct test_sum {
    void *values, *copy;
    int64_t count;
    rcn_comm_type type;
} test_sum;

typedef struct test_group test_group;

typedef struct test_rank {
    rcn_comm comm;
    test_group *group;
    test_sum pending[TEST_PENDING];
    int pending_count, most_pending;
    int64_t sums, floats; /* begun */
    void (*body)(rcn_comm *, void *);
    void *payload;
} test_rank;

struct test_group {
    int size;
    pthread_barrier_t barrier;
    test_rank ranks[TEST_RANKS];
    const void *given[TEST_RANKS];
    const int64_t *given_bytes[TEST_RANKS];
    int fail; /* every call reports that the others are lost */
};

static inline size_t test_size(rcn_comm_type type) { return type == RCN_COMM_FLOAT ? 4 : 8; }

static inline int test_comm_sum(void *values, int64_t count, rcn_comm_type type, void *payload) {
    test_rank *rank = payload;
    test_group *group = rank->group;
    if (group->fail) return 1;
    void *result = calloc((size_t)count, test_size(type));
    group->given[rank->comm.rank] = values;
    pthread_barrier_wait(&group->barrier);
    for (int r = 0; r < group->size; ++r)
        for (int64_t i = 0; i < count; ++i) {
            if (type == RCN_COMM_FLOAT) ((float *)result)[i] += ((const float *)group->given[r])[i];
            if (type == RCN_COMM_DOUBLE)
                ((double *)result)[i] += ((const double *)group->given[r])[i];
            if (type == RCN_COMM_INT64)
                ((int64_t *)result)[i] += ((const int64_t *)group->given[r])[i];
        }
    pthread_barrier_wait(&group->barrier);
    memcpy(values, result, (size_t)count * test_size(type));
    free(result);
    return 0;
}

static inline int test_comm_begin_sum(void *values, int64_t count, rcn_comm_type type,
                                      void *payload) {
    test_rank *rank = payload;
    const size_t bytes = (size_t)count * test_size(type);
    test_sum sum = {values, malloc(bytes), count, type};
    if (rank->group->fail || rank->pending_count == TEST_PENDING) return 1;
    memcpy(sum.copy, values, bytes);
    memset(values, 0xFF, bytes);
    rank->pending[rank->pending_count++] = sum;
    if (rank->pending_count > rank->most_pending) rank->most_pending = rank->pending_count;
    ++rank->sums;
    rank->floats += count;
    return 0;
}

static inline int test_comm_poll(void *payload) { return ((test_rank *)payload)->group->fail; }

static inline int test_comm_finish(void *payload) {
    test_rank *rank = payload;
    int failed = 0;
    for (int i = 0; i < rank->pending_count; ++i) {
        test_sum *sum = &rank->pending[i];
        unsigned char *bytes = sum->values;
        for (size_t k = 0; k < (size_t)sum->count * test_size(sum->type); ++k)
            if (bytes[k] != 0xFF) failed = 1;
        if (!failed) failed = test_comm_sum(sum->copy, sum->count, sum->type, payload);
        memcpy(sum->values, sum->copy, (size_t)sum->count * test_size(sum->type));
        free(sum->copy);
    }
    rank->pending_count = 0;
    return failed;
}

static inline int test_comm_broadcast(void *bytes, int64_t count, int root, void *payload) {
    test_rank *rank = payload;
    test_group *group = rank->group;
    if (group->fail) return 1;
    group->given[rank->comm.rank] = bytes;
    pthread_barrier_wait(&group->barrier);
    if (rank->comm.rank != root) memcpy(bytes, group->given[root], (size_t)count);
    pthread_barrier_wait(&group->barrier);
    return 0;
}

static inline int test_comm_barrier(void *payload) {
    test_group *group = ((test_rank *)payload)->group;
    if (group->fail) return 1;
    pthread_barrier_wait(&group->barrier);
    return 0;
}

static inline int test_comm_exchange(void *in, const int64_t *in_bytes, const void *out,
                                     const int64_t *out_bytes, void *payload) {
    test_rank *rank = payload;
    test_group *group = rank->group;
    const int me = rank->comm.rank;
    char *to = in;
    if (group->fail) return 1;
    group->given[me] = out;
    group->given_bytes[me] = out_bytes;
    pthread_barrier_wait(&group->barrier);
    int failed = 0;
    for (int r = 0; r < group->size; ++r) {
        const char *from = group->given[r];
        for (int k = 0; k < me; ++k) from += group->given_bytes[r][k];
        if (group->given_bytes[r][me] != in_bytes[r])
            failed = 1;
        else
            memcpy(to, from, (size_t)in_bytes[r]);
        to += in_bytes[r];
    }
    pthread_barrier_wait(&group->barrier);
    return failed;
}

static inline void *test_rank_main(void *payload) {
    test_rank *rank = payload;
    rank->body(&rank->comm, rank->payload);
    return NULL;
}

/* Runs body(comm, payload) as `size` processes at once. */
static inline void run_ranks(test_group *group, int size, void (*body)(rcn_comm *, void *),
                             void *payload) {
    pthread_t threads[TEST_RANKS];
    memset(group->ranks, 0, sizeof group->ranks);
    group->size = size;
    pthread_barrier_init(&group->barrier, NULL, (unsigned)size);
    for (int r = 0; r < size; ++r) {
        test_rank *rank = &group->ranks[r];
        const rcn_comm comm = {r,
                               size,
                               test_comm_sum,
                               test_comm_begin_sum,
                               test_comm_poll,
                               test_comm_finish,
                               test_comm_broadcast,
                               test_comm_barrier,
                               test_comm_exchange,
                               rank,
                               0};
        rank->comm = comm;
        rank->group = group;
        rank->body = body;
        rank->payload = payload;
        pthread_create(&threads[r], NULL, test_rank_main, rank);
    }
    for (int r = 0; r < size; ++r) pthread_join(threads[r], NULL);
    pthread_barrier_destroy(&group->barrier);
}

#endif /* RCN_TEST_COMM_H */
