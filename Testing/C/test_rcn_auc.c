// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_auc.h"

#include "rcn_test_comm.h"
#include "rcn_comm_private.h"

static rcn_mask mask_of(void *data, int64_t x, int64_t y, int64_t z) {
    rcn_mask mask = {{data, RCN_UINT8, 1, rcn_geometry_make(x, y, z)}, 0, NULL, 0, NULL};
    return mask;
}

typedef struct scene {
    int64_t count;
    int raters;
    float *p;
    uint8_t *marks; /* [raters][count]; 9: did not answer */
    rcn_votes *votes;
    rcn_calib_case one_case;
} scene;

/* kind 1: many values, few ties; 2: few values; 3: tiny and -0. */
static void scene_make(scene *s, rcn_context *ctx, int64_t count, int raters, int kind) {
    static const int64_t unanswered = 9;
    rcn_mask masks[8];
    uint32_t state = 7;
    s->count = count;
    s->raters = raters;
    s->p = malloc(sizeof *s->p * (size_t)count);
    s->marks = malloc((size_t)raters * (size_t)count);
    for (int64_t i = 0; i < count; ++i) {
        state = 1664525u * state + 1013904223u;
        const double u = (state >> 8) / 16777216.0;
        s->p[i] = kind == 1   ? (float)u
                  : kind == 2 ? (float)(floor(u * 7) / 7)
                              : (i % 3 ? (float)ldexp(u, -(int)(state >> 4 & 127)) : -0.0f);
        for (int r = 0; r < raters; ++r) {
            state = 1664525u * state + 1013904223u;
            s->marks[r * count + i] = (state >> 8) / 16777216.0 < 0.8 * (double)s->p[i] + 0.1;
            if (r == 1 && i % 5 == 0) s->marks[r * count + i] = 9;
        }
    }
    for (int r = 0; r < raters; ++r) {
        masks[r] = mask_of(s->marks + r * count, count, 1, 1);
        masks[r].unanswered = &unanswered;
    }
    CHECK_STATUS(rcn_votes_from_masks(&s->votes, ctx, masks, raters), RCN_OK);
    const rcn_calib_case one_case = {
        s->votes, {s->p, RCN_FLOAT32, 1, rcn_geometry_make(count, 1, 1)}, NULL, NULL};
    s->one_case = one_case;
}

static void scene_free(scene *s) {
    rcn_votes_destroy(s->votes);
    free(s->p);
    free(s->marks);
}

/* Every couple, one by one. */
static void naive(double *reference, double *pairs, const scene *s) {
    double wins[2] = {0, 0}, positive[2] = {0, 0}, negative[2] = {0, 0};
    int *yes = calloc((size_t)s->count, sizeof *yes), *no = calloc((size_t)s->count, sizeof *no);
    for (int64_t i = 0; i < s->count; ++i) {
        for (int r = 0; r < s->raters; ++r) {
            const int y = s->marks[r * s->count + i];
            if (y != 9) y ? ++yes[i] : ++no[i];
        }
        positive[1] += yes[i];
        negative[1] += no[i];
        positive[0] += yes[i] >= no[i];
        negative[0] += yes[i] < no[i];
    }
    for (int64_t i = 0; i < s->count; ++i)
        for (int64_t j = 0; j < s->count; ++j) {
            const double win = s->p[i] > s->p[j] ? 1 : s->p[i] == s->p[j] ? 0.5 : 0;
            wins[1] += win * yes[i] * no[j];
            wins[0] += win * (yes[i] >= no[i]) * (yes[j] < no[j]);
        }
    *reference = wins[0] / (positive[0] * negative[0]);
    *pairs = wins[1] / (positive[1] * negative[1]);
    free(yes);
    free(no);
}

static rcn_auc_result auc_of(rcn_context *ctx, const rcn_calib_case *one_case, int raters) {
    rcn_auc *auc = NULL;
    rcn_auc_result result = {-1, -1, 0, 0, 0, 0};
    CHECK_STATUS(rcn_auc_create(&auc, ctx, raters, RCN_READOUT_MAJORITY, 0), RCN_OK);
    CHECK_STATUS(rcn_auc_add(auc, ctx, one_case), RCN_OK);
    CHECK_STATUS(rcn_auc_compute(&result, ctx, auc), RCN_OK);
    rcn_auc_destroy(auc);
    return result;
}

/* Per-rater AUC of the golden raters: each as the reference. */
static void golden_vectors(void) {
    static const double expected[3] = {.47416696, .49685842, .52993444};
    uint8_t raters[4][GOLDEN_VOXELS], reference[8];
    float p[GOLDEN_VOXELS];
    rcn_mask masks[3];
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = NULL;
    make_golden(raters);
    for (int r = 0; r < 3; ++r) masks[r] = mask_of(raters[r], 8, 8, 8);
    for (int i = 0; i < GOLDEN_VOXELS; ++i) p[i] = (float)(37 * i % 101 / 100.0);
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 3), RCN_OK);
    for (int r = 0; r < 3; ++r) {
        rcn_reference_rater(reference, votes, r);
        const rcn_calib_case one_case = {
            votes, {p, RCN_FLOAT32, 1, rcn_geometry_make(8, 8, 8)}, NULL, reference};
        const rcn_auc_result result = auc_of(ctx, &one_case, 3);
        CHECK_NEAR(result.reference, expected[r], 1e-8);
        CHECK(result.reference_positives == rcn_votes_marked(votes, r));
        CHECK(result.pair_positives + result.pair_negatives == 3 * 512);
    }
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void same_as_naive(void) {
    rcn_context *ctx = make_context(2);
    for (int kind = 1; kind <= 3; ++kind)
        for (int raters = 2; raters <= 5; ++raters) {
            scene s;
            double reference, pairs;
            scene_make(&s, ctx, 1500, raters, kind);
            naive(&reference, &pairs, &s);
            const rcn_auc_result result = auc_of(ctx, &s.one_case, raters);
            CHECK_NEAR(result.reference, reference, 1e-14);
            CHECK_NEAR(result.pairs, pairs, 1e-14);
            scene_free(&s);
        }
    rcn_context_destroy(ctx);
}

/* Two halves as two cases are the whole; the histogram's approximation keeps its promise; one and
 * three threads agree. Large enough that buckets are counted, not sorted. */
static void cases_threads_and_histogram(void) {
    enum { N = 600000 };
    rcn_context *one = make_context(1), *three = make_context(3);
    scene s;
    scene_make(&s, one, N, 3, 1);
    const rcn_auc_result a = auc_of(one, &s.one_case, 3), b = auc_of(three, &s.one_case, 3);
    CHECK(!memcmp(&a, &b, sizeof a));
    uint8_t *region = calloc(N, 1);
    rcn_auc *auc = NULL;
    rcn_calib *calib = NULL;
    rcn_calib_case half = s.one_case;
    half.region = region;
    CHECK_STATUS(rcn_auc_create(&auc, three, 3, RCN_READOUT_MAJORITY, 0), RCN_OK);
    CHECK_STATUS(rcn_calib_create(&calib, three, 3, NULL), RCN_OK);
    for (int part = 0; part < 2; ++part) {
        for (int i = 0; i < N; ++i) region[i] = i % 3 == 0 ? part : !part;
        CHECK_STATUS(rcn_auc_add(auc, three, &half), RCN_OK);
        CHECK_STATUS(rcn_calib_add(calib, three, &half), RCN_OK);
    }
    rcn_auc_result both;
    CHECK_STATUS(rcn_auc_compute(&both, three, auc), RCN_OK);
    CHECK(!memcmp(&a, &both, sizeof a));
    double f[RCN_FIGURES];
    rcn_calib_figures(f, calib);
    CHECK(fabs(f[RCN_AUC_HISTOGRAM] - a.reference) < 2e-4);
    CHECK(fabs(f[RCN_AUC_PAIRS_HISTOGRAM] - a.pairs) < 2e-4);
    CHECK(f[RCN_AUC_HISTOGRAM] != a.reference);
    rcn_auc_destroy(auc);
    rcn_calib_destroy(calib);
    free(region);
    scene_free(&s);
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

static void undefined_and_bad_input(void) {
    uint8_t none[4] = {0, 0, 0, 0};
    float p[4] = {0, .25f, .5f, 1};
    rcn_context *ctx = make_context(1);
    rcn_mask mask = mask_of(none, 4, 1, 1);
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    const rcn_calib_case one_case = {
        votes, {p, RCN_FLOAT32, 1, rcn_geometry_make(4, 1, 1)}, NULL, NULL};
    rcn_auc_result result = auc_of(ctx, &one_case, 1);
    CHECK(isnan(result.reference) && isnan(result.pairs));
    CHECK(result.reference_positives == 0 && result.pair_negatives == 4);
    rcn_auc *auc = NULL;
    CHECK_STATUS(rcn_auc_create(&auc, ctx, 0, RCN_READOUT_MAJORITY, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_auc_create(&auc, ctx, 3, RCN_READOUT_AT_LEAST, 4), RCN_EINVALID);
    CHECK(auc == NULL);
    CHECK_STATUS(rcn_auc_create(&auc, ctx, 1, RCN_READOUT_MAJORITY, 0), RCN_OK);
    p[2] = 1.5f;
    CHECK_STATUS(rcn_auc_add(auc, ctx, &one_case), RCN_EDATA);
    CHECK_ERROR(ctx, "1.5 at voxel (2, 0, 0)");
    CHECK_STATUS(rcn_auc_compute(&result, ctx, auc), RCN_OK);
    CHECK(result.pair_negatives == 0);
    result.pairs = 7;
    CHECK_STATUS(rcn_auc_compute(&result, ctx, NULL), RCN_EINVALID);
    CHECK(result.pairs == 7);
    rcn_auc_destroy(auc);
    rcn_auc_destroy(NULL);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static rcn_status rank(rcn_context *ctx, void *payload) {
    const scene *s = payload;
    rcn_auc *auc = NULL;
    rcn_auc_result result = {-1, -1, 0, 0, 0, 0};
    rcn_status status = rcn_auc_create(&auc, ctx, s->raters, RCN_READOUT_MAJORITY, 0);
    for (int i = 0; i < 2 && status == RCN_OK; ++i) /* the second joins the first */
        status = rcn_auc_add(auc, ctx, &s->one_case);
    if (status == RCN_OK) status = rcn_auc_compute(&result, ctx, auc);
    CHECK((status == RCN_OK) == (result.pairs >= 0));
    rcn_auc_destroy(auc);
    return status;
}

static void failing_allocations_and_cancel(void) {
    rcn_context *owner = make_context(1);
    scene s;
    scene_make(&s, owner, 1000, 3, 1);
    check_failing_allocations(rank, &s);
    check_cancelling(rank, &s, 5);
    scene_free(&s);
    rcn_context_destroy(owner);
}

/* Small cases cost their voxels and not a table each; who shares one does not change the result. */
static void many_cases_take_little_memory(void) {
    enum { SMALL = 60, VOXELS = 2000, LARGE = 1 << 20 };
    rcn_context *ctx = make_context(1);
    rcn_auc *ascending = NULL, *descending = NULL;
    rcn_auc_result one, other;
    scene s, large;
    scene_make(&s, ctx, VOXELS, 3, 1);
    scene_make(&large, ctx, LARGE, 3, 2);
    CHECK_STATUS(rcn_auc_create(&ascending, ctx, 3, RCN_READOUT_MAJORITY, 0), RCN_OK);
    CHECK_STATUS(rcn_auc_create(&descending, ctx, 3, RCN_READOUT_MAJORITY, 0), RCN_OK);
    const size_t before = rcn_context_bytes(ctx);
    for (int i = 0; i < SMALL; ++i) CHECK_STATUS(rcn_auc_add(ascending, ctx, &s.one_case), RCN_OK);
    CHECK(rcn_context_bytes(ctx) - before < (size_t)(4 * SMALL * VOXELS + 1100000));
    CHECK_STATUS(rcn_auc_add(ascending, ctx, &large.one_case), RCN_OK);
    CHECK_STATUS(rcn_auc_add(descending, ctx, &large.one_case), RCN_OK);
    for (int i = 0; i < SMALL; ++i) CHECK_STATUS(rcn_auc_add(descending, ctx, &s.one_case), RCN_OK);
    CHECK_STATUS(rcn_auc_compute(&one, ctx, ascending), RCN_OK);
    CHECK_STATUS(rcn_auc_compute(&other, ctx, descending), RCN_OK);
    CHECK(!memcmp(&one, &other, sizeof one) && one.pairs > 0);
    rcn_auc_destroy(ascending);
    rcn_auc_destroy(descending);
    scene_free(&s);
    scene_free(&large);
    rcn_context_destroy(ctx);
}

/* ---- several processes ---- */

typedef struct shared_auc {
    int kind;
    rcn_auc_result found[TEST_RANKS];
    double sums[TEST_RANKS][RCN_FIGURES];
} shared_auc;

/* Seven cases of different size; case i goes to process i % (size - 1): the last has none. */
static void judge_share(rcn_comm *comm, void *payload) {
    shared_auc *shared = payload;
    rcn_context *ctx = make_context(1);
    rcn_auc *auc = NULL;
    rcn_calib *calib = NULL;
    const int me = rcn__comm_rank(comm), size = rcn__comm_size(comm);
    CHECK_STATUS(rcn_auc_create(&auc, ctx, 3, RCN_READOUT_MAJORITY, 0), RCN_OK);
    CHECK_STATUS(rcn_calib_create(&calib, ctx, 3, NULL), RCN_OK);
    for (int i = 0; i < 7; ++i) {
        scene s;
        if (size > 1 && i % (size - 1) != me) continue;
        scene_make(&s, ctx, 300 + 400 * i, 3, shared->kind);
        CHECK_STATUS(rcn_auc_add(auc, ctx, &s.one_case), RCN_OK);
        CHECK_STATUS(rcn_calib_add(calib, ctx, &s.one_case), RCN_OK);
        scene_free(&s);
    }
    CHECK_STATUS(rcn_auc_compute_shared(&shared->found[me], ctx, auc, comm), RCN_OK);
    CHECK_STATUS(rcn_calib_share(calib, ctx, comm), RCN_OK);
    rcn_calib_figures(shared->sums[me], calib);
    rcn_calib_destroy(calib);
    rcn_auc_destroy(auc);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* The bits of one process with all cases, in every process. */
static void several_processes(void) {
    static test_group group;
    for (int kind = 1; kind <= 3; ++kind) {
        shared_auc one = {.kind = kind}, many = one;
        judge_share(NULL, &one);
        for (int size = 2; size <= 5; ++size) {
            run_ranks(&group, size, judge_share, &many);
            for (int r = 0; r < size; ++r) {
                CHECK(!memcmp(&many.found[r], &one.found[0], sizeof one.found[0]));
                CHECK_NEAR(many.sums[r][RCN_MR_ECE], one.sums[0][RCN_MR_ECE], 1e-12);
                CHECK_NEAR(many.sums[r][RCN_BRIER], one.sums[0][RCN_BRIER], 1e-12);
            }
        }
    }
}

int main(void) {
    RUN(several_processes);
    RUN(golden_vectors);
    RUN(same_as_naive);
    RUN(cases_threads_and_histogram);
    RUN(undefined_and_bad_input);
    RUN(failing_allocations_and_cancel);
    RUN(many_cases_take_little_memory);
    return TEST_RESULT;
}
