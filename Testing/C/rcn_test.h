// SPDX-License-Identifier: Apache-2.0
/* A test program in C: a list of functions, CHECK macros that go on after a failure, and an
 * allocator that fails on demand. */
#ifndef RCN_TEST_H
#define RCN_TEST_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcn/rcn_context.h"
#include "rcn_system.h"

static int rcn_test_failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ++rcn_test_failures;                                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
        }                                                                                          \
    } while (0)

#define CHECK_NEAR(actual, expected, tolerance)                                                    \
    do {                                                                                           \
        const double actual_ = (actual), expected_ = (expected);                                   \
        if (!(fabs(actual_ - expected_) <= (tolerance))) {                                         \
            ++rcn_test_failures;                                                                   \
            fprintf(stderr, "%s:%d: %s is %.12g, not %.12g\n", __FILE__, __LINE__, #actual,        \
                    actual_, expected_);                                                           \
        }                                                                                          \
    } while (0)

#define CHECK_STATUS(call, expected)                                                               \
    do {                                                                                           \
        const rcn_status status_ = (call);                                                         \
        if (status_ != (expected)) {                                                               \
            ++rcn_test_failures;                                                                   \
            fprintf(stderr, "%s:%d: %s gives %s, not %s\n", __FILE__, __LINE__, #call,             \
                    rcn_status_name(status_), rcn_status_name(expected));                          \
        }                                                                                          \
    } while (0)

/* The sentence of the context contains `words`. */
#define CHECK_ERROR(ctx, words)                                                                    \
    do {                                                                                           \
        if (!strstr(rcn_context_error(ctx), words)) {                                              \
            ++rcn_test_failures;                                                                   \
            fprintf(stderr, "%s:%d: \"%s\" does not say \"%s\"\n", __FILE__, __LINE__,             \
                    rcn_context_error(ctx), words);                                                \
        }                                                                                          \
    } while (0)

#define RUN(test)                                                                                  \
    do {                                                                                           \
        const int before_ = rcn_test_failures;                                                     \
        test();                                                                                    \
        printf("%s %s\n", rcn_test_failures == before_ ? "ok  " : "FAIL", #test);                  \
    } while (0)

#define TEST_RESULT (rcn_test_failures ? EXIT_FAILURE : EXIT_SUCCESS)

/* ---- an allocator that counts, and fails at allocation number fail_at (1, 2, ...; 0: never) -- */
typedef struct test_memory {
    int64_t live;
    int64_t calls;
    int64_t fail_at;
} test_memory;

static inline void *test_allocate(size_t bytes, void *payload) {
    test_memory *memory = payload;
    if (++memory->calls == memory->fail_at) return NULL;
    void *pointer = rcn__allocate_aligned(bytes);
    if (pointer) ++memory->live;
    return pointer;
}

static inline void test_release(void *pointer, void *payload) {
    if (pointer) --((test_memory *)payload)->live;
    rcn__release_aligned(pointer);
}

/* Runs action(ctx, payload) with every one of its allocations failing once, until it succeeds. Each
 * failure must be RCN_ENOMEM with a sentence and must leave nothing behind. */
static inline void check_failing_allocations(rcn_status (*action)(rcn_context *, void *),
                                             void *payload) {
    for (int64_t fail_at = 2;; ++fail_at) { /* allocation 1 is the context itself */
        test_memory memory = {0, 0, fail_at};
        rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
        options.threads = 2;
        options.allocator.allocate = test_allocate;
        options.allocator.release = test_release;
        options.allocator.payload = &memory;
        rcn_context *ctx = NULL;
        CHECK_STATUS(rcn_context_create(&ctx, &options), RCN_OK);
        const rcn_status status = action(ctx, payload);
        if (status != RCN_OK) {
            CHECK_STATUS(status, RCN_ENOMEM);
            CHECK_ERROR(ctx, "Out of memory");
        }
        CHECK(memory.live == 1); /* the context */
        CHECK(rcn_context_bytes(ctx) == 0);
        rcn_context_destroy(ctx);
        CHECK(memory.live == 0);
        if (status == RCN_OK) {
            CHECK(fail_at > 2); /* it did allocate */
            break;
        }
        if (memory.live || fail_at > 10000) break;
    }
}

/* A progress callback that cancels at call number *countdown. */
static inline int cancel_after(double fraction, const char *stage, void *payload) {
    (void)fraction;
    (void)stage;
    return --*(int *)payload < 0;
}

static inline rcn_context *make_context(int threads) {
    rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
    rcn_context *ctx = NULL;
    options.threads = threads;
    CHECK_STATUS(rcn_context_create(&ctx, &options), RCN_OK);
    return ctx;
}

/* Runs action(ctx, payload) canceled at its first report of progress, at its second, ..., until it
 * gets through. Each time it must say so and leave nothing behind; there must be `at_least`
 * reports. */
static inline void check_cancelling(rcn_status (*action)(rcn_context *, void *), void *payload,
                                    int at_least) {
    for (int calls = 0; calls < 100000; ++calls) {
        rcn_context *ctx = make_context(1);
        int countdown = calls;
        rcn_context_set_progress(ctx, cancel_after, &countdown);
        const rcn_status status = action(ctx, payload);
        if (status != RCN_OK) CHECK_STATUS(status, RCN_ECANCELLED);
        CHECK(rcn_context_bytes(ctx) == 0);
        rcn_context_destroy(ctx);
        if (status == RCN_OK) {
            CHECK(calls >= at_least);
            break;
        }
    }
}

/* ---- the golden raters of the definitions: 8x8x8, a cube of 4x4x4, up to four noisy raters --- */
#define GOLDEN_VOXELS 512

static inline void make_golden(uint8_t raters[4][GOLDEN_VOXELS]) {
    static const double miss[4] = {.10, .20, .30, .15}, alarm[4] = {.05, .10, .15, .20};
    uint32_t s = 12345;
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < GOLDEN_VOXELS; ++i) {
            const int x = i % 8, y = i / 8 % 8, z = i / 64;
            const int truth = x >= 2 && x <= 5 && y >= 2 && y <= 5 && z >= 2 && z <= 5;
            s = 1664525u * s + 1013904223u;
            const double u = s / 4294967296.0;
            raters[k][i] = truth ? !(u < miss[k]) : u < alarm[k];
        }
}

#endif /* RCN_TEST_H */
