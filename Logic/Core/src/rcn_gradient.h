// SPDX-License-Identifier: Apache-2.0
/* How the gradient of a convolution's weights is shared out to threads, as static functions for
 * rcn_winograd.c and rcn_direct.c.
 *
 * It is a number of tasks (some input and output channels), each a sum over the same pieces of the
 * image (blocks of tiles, bands of voxels). There are as many shares of the work as threads, each
 * with memory of its own for what it makes of a piece and for its sums: what another core has read
 * is written to slowly where cores have no cache in common. Two ways:
 *
 * Few sums: pieces go to slots, each with sums of its own over all tasks, which are added up in
 * order at the end. A share has some slots.
 *
 * Many: a share has some tasks, over all pieces.
 *
 * Results do not depend on the number of threads, because neither pieces nor slots do.
 */
#ifndef RCN_GRADIENT_H
#define RCN_GRADIENT_H

#include "rcn_gemm.h"

enum { GRADIENT_SLOTS = 8 };

/* Tasks from the first to before the end, over pieces likewise. */
typedef struct gradient_range {
    int64_t first_task, end_task, first_piece, end_piece;
} gradient_range;

typedef struct gradient_work gradient_work;
struct gradient_work {
    int64_t pieces, tasks, shares;
    int64_t slots;       /* 0: many sums */
    int64_t copy_floats; /* of a share: for what it makes of pieces */
    int64_t sum_floats;  /* of a task */
    int64_t kept;        /* tasks whose sums a share keeps; 1 where each is done with at once */
    const rcn__scratch *scratch;

    /* Makes the sums of some tasks over some pieces, those of a task at gradient_sums(). With many
     * sums it finishes each task when its last piece is added. */
    void (*add)(const gradient_work *work, const gradient_range *range, float *copies, float *sums);
    /* From the sums of a task to the gradient. */
    void (*finish)(const gradient_work *work, const float *sums, int64_t task);
};

/* at_once: all pieces of a task can be added one after the other. */
static void plan_gradient_work(gradient_work *work, int64_t pieces, int64_t tasks, int few,
                               int at_once, int threads) {
    work->pieces = pieces;
    work->tasks = tasks;
    work->slots = few ? smaller(GRADIENT_SLOTS, pieces) : 0;
    work->shares = smaller(threads, few ? work->slots : tasks);
    if (few)
        work->kept = parts(work->slots, work->shares) * tasks;
    else
        work->kept = at_once ? 1 : parts(tasks, work->shares);
}

static gradient_range gradient_range_of(const gradient_work *work, int64_t share) {
    gradient_range range = {0, work->tasks, 0, work->pieces};
    if (!work->slots) {
        range.first_task = work->tasks * share / work->shares;
        range.end_task = work->tasks * (share + 1) / work->shares;
    }
    return range;
}

/* What each share needs: its copies and sums, and room to add up those of a task. */
static size_t gradient_own_bytes(const gradient_work *work) {
    return (size_t)(work->copy_floats + (work->kept + (work->slots ? 1 : 0)) * work->sum_floats) *
           sizeof(float);
}

static float *gradient_sums(const gradient_work *work, const gradient_range *range, float *sums,
                            int64_t task) {
    return sums + (work->kept == 1 ? 0 : task - range->first_task) * work->sum_floats;
}

static int64_t first_slot(const gradient_work *work, int64_t share) {
    return work->slots * share / work->shares;
}

/* Where the sums of a slot are, all tasks one behind the other. */
static float *slot_sums(const gradient_work *work, int64_t share, int64_t slot) {
    return (float *)rcn__scratch_own(work->scratch, (int)share) + work->copy_floats +
           (slot - first_slot(work, share)) * work->tasks * work->sum_floats;
}

static void gradient_share(int64_t share, int thread, void *payload) {
    const gradient_work *work = payload;
    float *copies = rcn__scratch_own(work->scratch, (int)share);
    gradient_range range = gradient_range_of(work, share);
    (void)thread;
    if (!work->slots) work->add(work, &range, copies, copies + work->copy_floats);
    for (int64_t s = first_slot(work, share); s < first_slot(work, share + 1); ++s) {
        range.first_piece = work->pieces * s / work->slots;
        range.end_piece = work->pieces * (s + 1) / work->slots;
        work->add(work, &range, copies, slot_sums(work, share, s));
    }
}

/* The slots of one task. */
static void gradient_join(int64_t task, int thread, void *payload) {
    const gradient_work *work = payload;
    float *sums = (float *)rcn__scratch_own(work->scratch, thread) + work->copy_floats +
                  work->kept * work->sum_floats;
    for (int64_t share = 0; share < work->shares; ++share)
        for (int64_t s = first_slot(work, share); s < first_slot(work, share + 1); ++s) {
            const float *more = slot_sums(work, share, s) + task * work->sum_floats;
            for (int64_t i = 0; i < work->sum_floats; ++i)
                sums[i] = s ? sums[i] + more[i] : more[i];
        }
    work->finish(work, sums, task);
}

static void run_gradient(gradient_work *work, rcn_context *ctx) {
    rcn__for_all(ctx, work->shares, gradient_share, work);
    if (work->slots) rcn__for_all(ctx, work->tasks, gradient_join, work);
}

#endif /* RCN_GRADIENT_H */
