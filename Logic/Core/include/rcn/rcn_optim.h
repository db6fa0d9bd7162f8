// SPDX-License-Identifier: Apache-2.0
/* Optimizers: one step of Adam or AdamW over a network's parameters, and the learning rate.
 *
 * All parameters lie in one block of floats; gradients and moments lie in blocks of the same layout
 * that the caller keeps (and writes into a checkpoint: blocks and step number are the whole state,
 * so training goes on from them to the same bits).
 *
 *     rcn_optim_options options = RCN_OPTIM_OPTIONS_INIT;
 *     rcn_optim_state state = {parameters, gradients, first, second, count, 0};
 *     for (...) {
 *         double rate = rcn_schedule_rate(&schedule, state.step);
 *         rcn_optim_step(&norm, &state, ctx, rate, &options, NULL, 0);
 *     }
 *
 * A step reads the gradients once for their norm, and once with everything else for the update. The
 * results have the same bits for any number of threads and agree with torch.optim's to rounding.
 */
#ifndef RCN_OPTIM_H
#define RCN_OPTIM_H

#include "rcn_context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* g: gradient (clipped), w: parameter, t: step number from 1. */
typedef enum rcn_optim_kind {
    /* g += decay w; m += (1-b1)(g-m); v = b2 v + (1-b2) g^2;
     * w -= rate * m/(1-b1^t) / (sqrt(v/(1-b2^t)) + epsilon) (Kingma and Ba 2015), with their b1 =
     * 0.9, b2 = 0.999 and epsilon = 1e-8. */
    RCN_OPTIM_ADAM = 0,
    /* The same, but w *= 1 - rate * decay instead of changing g (Loshchilov and Hutter 2019). */
    RCN_OPTIM_ADAMW = 1
} rcn_optim_kind;

typedef struct rcn_optim_options {
    rcn_optim_kind kind; /* RCN_OPTIM_ADAM (default) */
    double weight_decay; /* 0 (default) */
    /* The norm of all gradients together that a step may use; larger ones are scaled down to it. 0
     * (default): never. */
    double clip_norm;
} rcn_optim_options;

#define RCN_OPTIM_OPTIONS_INIT {RCN_OPTIM_ADAM, 0.0, 0.0}

/* NULL if the options can be used, otherwise the sentence that says why not. */
RCN_API const char *rcn_optim_check(const rcn_optim_options *options);

/* Elements first ... end - 1 are treated in their own way. */
typedef struct rcn_optim_range {
    int64_t first;
    int64_t end;
    double rate;  /* times the learning rate; 0: frozen, nothing of theirs is read or changed */
    double decay; /* times the weight decay; 0: none (biases and norms, by custom) */
} rcn_optim_range;

typedef struct rcn_optim_state {
    float *parameters;
    const float *gradients;
    float *first;  /* moments m; zero at the start */
    float *second; /* moments v; zero at the start */
    int64_t count; /* elements in each block */
    int64_t step;  /* steps done; 0 at the start */
} rcn_optim_state;

/* One step; state->step is one more afterwards.
 *   norm         of all gradients but frozen ones, before clipping; may be NULL
 *   rate         the learning rate
 *   ranges       ascending and apart; NULL with range_count 0: all alike
 *   RCN_EDATA    a gradient is NaN or infinite: nothing has changed; the sentence names the element
 *   RCN_ECANCELLED  before the update began: nothing has changed. A step that began is finished. */
RCN_API rcn_status rcn_optim_step(double *norm, rcn_optim_state *state, rcn_context *ctx,
                                  double rate, const rcn_optim_options *options,
                                  const rcn_optim_range *ranges, int range_count);

typedef enum rcn_schedule_kind {
    /* rate, after the warm-up. */
    RCN_SCHEDULE_CONSTANT = 0,
    /* Half a cosine from rate down to final * rate, after the warm-up. */
    RCN_SCHEDULE_COSINE = 1,
    /* Half a cosine up from start * rate within the warm-up, another down to final * rate (Smith
     * 2018; as torch's OneCycleLR). */
    RCN_SCHEDULE_ONE_CYCLE = 2
} rcn_schedule_kind;

typedef struct rcn_schedule {
    rcn_schedule_kind kind; /* RCN_SCHEDULE_CONSTANT (default) */
    double rate;            /* 1e-3 (default): the highest */
    int64_t steps;          /* how many in all; no default except for RCN_SCHEDULE_CONSTANT */
    /* Steps of warm-up, below `steps`: the rate grows in equal parts from rate / warmup. 0
     * (default): none; one-cycle: 30 % of the steps. */
    int64_t warmup;
    double start; /* 0.04 (default); one-cycle only */
    double final; /* 0 (default) */
} rcn_schedule;

#define RCN_SCHEDULE_INIT {RCN_SCHEDULE_CONSTANT, 1e-3, 0, 0, 0.04, 0.0}

/* NULL if usable, otherwise a sentence. */
RCN_API const char *rcn_schedule_check(const rcn_schedule *schedule);

/* The learning rate of step 0, 1, ...; beyond the last step, the last one's. */
RCN_API double rcn_schedule_rate(const rcn_schedule *schedule, int64_t step);

#ifdef __cplusplus
}
#endif

#endif /* RCN_OPTIM_H */
