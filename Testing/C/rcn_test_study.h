// SPDX-License-Identifier: Apache-2.0
/* Cases of a model that is judged, for the tests of how sure figures are. */
#ifndef RCN_TEST_STUDY_H
#define RCN_TEST_STUDY_H

#include "rcn/rcn_calib.h"
#include "rcn_test.h"

enum { CASES = 30, N = 400 };

/* Cases of one rater whose model promises `bias` too much, more or less. */
typedef struct study {
    rcn_calib *cases[CASES];
} study;

static void study_make(study *s, rcn_context *ctx, double bias, uint32_t seed) {
    uint32_t state = seed;
    for (int c = 0; c < CASES; ++c) {
        uint8_t marks[N];
        float p[N];
        state = 1664525u * state + 1013904223u;
        const double mine = bias * (0.5 + (state >> 8) / 16777216.0);
        for (int i = 0; i < N; ++i) {
            p[i] = (float)((i % 40 + 0.5) / 40);
            state = 1664525u * state + 1013904223u;
            marks[i] = (state >> 8) / 16777216.0 < (double)p[i] - mine;
        }
        rcn_mask mask = {{marks, RCN_UINT8, 1, rcn_geometry_make(N, 1, 1)}, 0, NULL, 0, NULL};
        rcn_votes *votes = NULL;
        CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
        const rcn_calib_case one_case = {
            votes, {p, RCN_FLOAT32, 1, rcn_geometry_make(N, 1, 1)}, NULL, NULL};
        CHECK_STATUS(rcn_calib_create(&s->cases[c], ctx, 1, NULL), RCN_OK);
        CHECK_STATUS(rcn_calib_add(s->cases[c], ctx, &one_case), RCN_OK);
        rcn_votes_destroy(votes);
    }
}

static void study_free(study *s) {
    for (int c = 0; c < CASES; ++c) rcn_calib_destroy(s->cases[c]);
}

static const rcn_calib *const *cases_of(const study *s) {
    return (const rcn_calib *const *)s->cases;
}

#endif /* RCN_TEST_STUDY_H */
