// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_optim.h"

#include "rcn_test.h"

enum { N = 40013 };

static double noise(uint32_t *state) {
    *state = 1664525u * *state + 1013904223u;
    return *state / 2147483648.0 - 1.0;
}

typedef struct blocks {
    float w[N], g[N], m[N], v[N];
} blocks;

static rcn_optim_state fill(blocks *b, uint32_t seed) {
    const rcn_optim_state state = {b->w, b->g, b->m, b->v, N, 0};
    memset(b, 0, sizeof *b);
    for (int i = 0; i < N; ++i) {
        b->w[i] = (float)noise(&seed);
        b->g[i] = (float)noise(&seed);
    }
    return state;
}

/* The first step of Adam is rate * sign(g), whatever the size of g. */
static void first_steps_by_hand(void) {
    rcn_context *ctx = make_context(1);
    rcn_optim_options options = RCN_OPTIM_OPTIONS_INIT;
    float w[3] = {1, 1, 1}, g[3] = {5, -0.01f, 3}, m[3] = {0}, v[3] = {0};
    rcn_optim_state state = {w, g, m, v, 3, 0};
    double norm = 0;
    CHECK_STATUS(rcn_optim_step(&norm, &state, ctx, 0.1, &options, NULL, 0), RCN_OK);
    CHECK(state.step == 1);
    CHECK_NEAR(norm, sqrt(34.0001), 1e-6);
    CHECK_NEAR(w[0], 0.9, 1e-6);
    CHECK_NEAR(w[1], 1.1, 1e-6);
    /* AdamW shrinks first. */
    options.kind = RCN_OPTIM_ADAMW;
    options.weight_decay = 0.5;
    w[0] = 1, m[0] = v[0] = 0;
    state.step = 0;
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, NULL, 0), RCN_OK);
    CHECK_NEAR(w[0], 0.85, 1e-6);
    /* Clipped to norm 1: g = (2, -.01, 3) / |g|, of which m is a tenth after the first step. */
    options = (rcn_optim_options)RCN_OPTIM_OPTIONS_INIT;
    options.clip_norm = 1;
    g[0] = 2, m[0] = v[0] = 0;
    state.step = 0;
    CHECK_STATUS(rcn_optim_step(&norm, &state, ctx, 0.1, &options, NULL, 0), RCN_OK);
    CHECK_NEAR(norm, sqrt(13.0001), 1e-6);
    CHECK_NEAR(m[0], 0.1 * 2 / sqrt(13.0001), 1e-6);
    rcn_context_destroy(ctx);
}

/* Ten steps against the formulas in double, with clipping, decay and ranges. */
static void matches_naive(void) {
    static blocks b;
    static double w[N], m[N], v[N];
    static const rcn_optim_range ranges[] = {
        {3, 17, 0.1, 0}, {8190, 20000, 0, 1}, {20000, N, 1, 0}};
    rcn_context *ctx = make_context(2);
    for (int kind = RCN_OPTIM_ADAM; kind <= RCN_OPTIM_ADAMW; ++kind) {
        rcn_optim_options options = RCN_OPTIM_OPTIONS_INIT;
        rcn_optim_state state = fill(&b, 1);
        uint32_t seed = 77;
        options.kind = (rcn_optim_kind)kind;
        options.weight_decay = 0.1;
        options.clip_norm = 20;
        for (int i = 0; i < N; ++i) w[i] = b.w[i], m[i] = v[i] = 0;
        for (int t = 1; t <= 10; ++t) {
            double norm = 0, expected = 0;
            for (int i = 0; i < N; ++i) {
                b.g[i] = (float)(noise(&seed) / t);
                if (i < 8190 || i >= 20000) expected += (double)b.g[i] * b.g[i];
            }
            expected = sqrt(expected);
            const double clip = fmin(1, 20 / (expected + 1e-6)), rate = 0.01;
            for (int i = 0; i < N; ++i) {
                if (i >= 8190 && i < 20000) continue;
                const double r = i >= 3 && i < 17 ? 0.1 * rate : rate;
                const double decay = (i >= 3 && i < 17) || i >= 20000 ? 0 : 0.1;
                double g = b.g[i] * clip;
                if (kind == RCN_OPTIM_ADAMW)
                    w[i] -= r * decay * w[i];
                else
                    g += decay * w[i];
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.999 * v[i] + 0.001 * g * g;
                w[i] -= r * (m[i] / (1 - pow(0.9, t))) / (sqrt(v[i] / (1 - pow(0.999, t))) + 1e-8);
            }
            CHECK_STATUS(rcn_optim_step(&norm, &state, ctx, rate, &options, ranges, 3), RCN_OK);
            CHECK_NEAR(norm, expected, 1e-9 * expected);
        }
        double worst = 0;
        for (int i = 0; i < N; ++i) worst = fmax(worst, fabs(w[i] - b.w[i]));
        CHECK_NEAR(worst, 0, 2e-6);
    }
    rcn_context_destroy(ctx);
}

static void threads_give_the_same_bits(void) {
    static blocks a, b;
    static const rcn_optim_range ranges[] = {{100, 20000, 0.3, 1}, {30000, 30001, 0, 0}};
    rcn_context *one = make_context(1), *three = make_context(3);
    rcn_optim_options options = RCN_OPTIM_OPTIONS_INIT;
    options.clip_norm = 1;
    rcn_optim_state first = fill(&a, 5), second = fill(&b, 5);
    for (int t = 0; t < 3; ++t) {
        double norm[2];
        CHECK_STATUS(rcn_optim_step(&norm[0], &first, one, 0.1, &options, ranges, 2), RCN_OK);
        CHECK_STATUS(rcn_optim_step(&norm[1], &second, three, 0.1, &options, ranges, 2), RCN_OK);
        CHECK(norm[0] == norm[1]);
    }
    CHECK(!memcmp(&a, &b, sizeof a));
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

/* A gradient that is no number changes nothing; in a frozen range it does not matter. */
static void bad_gradients(void) {
    static blocks a, b;
    static const rcn_optim_range frozen = {12000, 12400, 0, 0};
    const float values[] = {NAN, INFINITY, -INFINITY};
    rcn_context *ctx = make_context(2);
    rcn_optim_options options = RCN_OPTIM_OPTIONS_INIT;
    for (int i = 0; i < 3; ++i) {
        rcn_optim_state state = fill(&a, 9);
        double norm = -1;
        a.g[12345] = values[i];
        memcpy(&b, &a, sizeof a);
        CHECK_STATUS(rcn_optim_step(&norm, &state, ctx, 0.1, &options, NULL, 0), RCN_EDATA);
        CHECK_ERROR(ctx, "element 12345 is");
        CHECK(!memcmp(&a, &b, sizeof a) && state.step == 0 && norm == -1);
        CHECK_STATUS(rcn_optim_step(&norm, &state, ctx, 0.1, &options, &frozen, 1), RCN_OK);
        CHECK(a.w[12345] == b.w[12345] && a.w[11999] != b.w[11999] && isfinite(norm));
    }
    /* The largest floats are no reason to fail. */
    rcn_optim_state state = fill(&a, 9);
    a.g[0] = a.g[1] = 3e38f;
    options.clip_norm = 1;
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, NULL, 0), RCN_OK);
    CHECK(isfinite(a.w[0]));
    rcn_context_destroy(ctx);
}

static void bad_arguments(void) {
    static blocks b;
    rcn_context *ctx = make_context(1);
    rcn_optim_options options = RCN_OPTIM_OPTIONS_INIT;
    rcn_optim_state state = fill(&b, 2);
    CHECK(rcn_optim_check(&options) == NULL);
    CHECK(rcn_optim_check(NULL) != NULL);
    options.clip_norm = NAN;
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, NULL, 0), RCN_EINVALID);
    CHECK_ERROR(ctx, "clipping norm");
    options.clip_norm = 0;
    options.kind = (rcn_optim_kind)2;
    CHECK(rcn_optim_check(&options) != NULL);
    options.kind = RCN_OPTIM_ADAM;
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, NAN, &options, NULL, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_optim_step(NULL, NULL, ctx, 0.1, &options, NULL, 0), RCN_EINVALID);
    state.second = NULL;
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, NULL, 0), RCN_EINVALID);
    CHECK_ERROR(ctx, "missing");
    state.second = b.v;
    const rcn_optim_range overlapping[] = {{0, 10, 1, 1}, {9, 20, 1, 1}};
    const rcn_optim_range outside = {0, N + 1, 1, 1}, negative = {0, 10, -1, 1};
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, overlapping, 2), RCN_EINVALID);
    CHECK_ERROR(ctx, "Range 2");
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, &outside, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, &negative, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, NULL, 1), RCN_EINVALID);
    state.step = -1;
    CHECK_STATUS(rcn_optim_step(NULL, &state, ctx, 0.1, &options, NULL, 0), RCN_EINVALID);
    rcn_context_destroy(ctx);
}

static rcn_status one_step(rcn_context *ctx, void *payload) {
    const rcn_optim_options options = RCN_OPTIM_OPTIONS_INIT;
    return rcn_optim_step(NULL, payload, ctx, 0.1, &options, NULL, 0);
}

/* A step happens or it does not. */
static void failing_allocations_and_cancel(void) {
    static blocks a, b;
    rcn_optim_state state = fill(&a, 4);
    check_failing_allocations(one_step, &state);
    state = fill(&a, 4);
    memcpy(&b, &a, sizeof a);
    rcn_context *ctx = make_context(1);
    int calls = 0;
    for (; state.step == 0 && calls < 100; ++calls) {
        int countdown = calls;
        CHECK(!memcmp(&a, &b, sizeof a));
        rcn_context_set_progress(ctx, cancel_after, &countdown);
        const rcn_status status = one_step(ctx, &state);
        CHECK((status == RCN_OK) == (state.step == 1));
        if (status != RCN_OK) CHECK_STATUS(status, RCN_ECANCELLED);
    }
    CHECK(calls > 2 && state.step == 1);
    rcn_context_destroy(ctx);
}

static void schedules(void) {
    rcn_schedule schedule = RCN_SCHEDULE_INIT;
    CHECK(rcn_schedule_check(&schedule) == NULL);
    CHECK(rcn_schedule_rate(&schedule, 0) == 1e-3 && rcn_schedule_rate(&schedule, 999) == 1e-3);
    schedule.warmup = 4;
    CHECK_NEAR(rcn_schedule_rate(&schedule, 0), 0.25e-3, 1e-12);
    CHECK_NEAR(rcn_schedule_rate(&schedule, 3), 1e-3, 1e-12);
    schedule.kind = RCN_SCHEDULE_COSINE;
    CHECK(rcn_schedule_check(&schedule) != NULL);
    schedule.steps = 104;
    schedule.final = 0.1;
    CHECK(rcn_schedule_check(&schedule) == NULL);
    CHECK_NEAR(rcn_schedule_rate(&schedule, 4), 1e-3, 1e-12);
    CHECK_NEAR(rcn_schedule_rate(&schedule, 54), 0.55e-3, 1e-12);
    CHECK(rcn_schedule_rate(&schedule, 103) < 0.101e-3);
    CHECK(rcn_schedule_rate(&schedule, 1000) == rcn_schedule_rate(&schedule, 103));
    for (int64_t t = 4; t < 103; ++t)
        CHECK(rcn_schedule_rate(&schedule, t) > rcn_schedule_rate(&schedule, t + 1));
    schedule.kind = RCN_SCHEDULE_ONE_CYCLE;
    schedule.steps = 101;
    schedule.warmup = 31;
    CHECK_NEAR(rcn_schedule_rate(&schedule, 0), 0.04e-3, 1e-12);
    CHECK_NEAR(rcn_schedule_rate(&schedule, 15), 0.52e-3, 1e-12);
    CHECK_NEAR(rcn_schedule_rate(&schedule, 30), 1e-3, 1e-12);
    CHECK_NEAR(rcn_schedule_rate(&schedule, 65), 0.55e-3, 1e-12);
    CHECK_NEAR(rcn_schedule_rate(&schedule, 100), 0.1e-3, 1e-12);
    schedule.warmup = 101;
    CHECK(rcn_schedule_check(&schedule) != NULL);
    schedule.warmup = 0;
    for (schedule.steps = 1; schedule.steps < 9; ++schedule.steps)
        for (int64_t t = -1; t < 10; ++t) {
            const double rate = rcn_schedule_rate(&schedule, t);
            CHECK(rate > 0.0399e-3 && rate < 1.0001e-3);
        }
    schedule.final = 2;
    CHECK(rcn_schedule_check(&schedule) != NULL);
    schedule.final = 0;
    schedule.kind = (rcn_schedule_kind)7;
    CHECK(rcn_schedule_check(&schedule) != NULL);
}

int main(void) {
    RUN(first_steps_by_hand);
    RUN(matches_naive);
    RUN(threads_give_the_same_bits);
    RUN(bad_gradients);
    RUN(bad_arguments);
    RUN(failing_allocations_and_cancel);
    RUN(schedules);
    return TEST_RESULT;
}
