// SPDX-License-Identifier: Apache-2.0
/* Training: a network, cases and a strategy; one step after another.
 *
 *   rcn_strategy_parse()  what is learned from the votes: levels (rps, ...) or one fused map
 *   rcn_target_create()   what that makes of one case's votes, once
 *   rcn_train_create()    the optimizer's and the data's state around a network
 *   rcn_train_step()      draws a batch, runs the network forwards and backwards, moves it
 *   rcn_train_save()      everything that the next step depends on, in one file
 *   rcn_train_load()      goes on from there, to the same bits as if it had never stopped
 *
 * What a step does depends on the options, the number of the step and the weights alone: samples
 * are drawn from streams of their own. So the state is small: weights, moments and a few numbers.
 *
 * Several processes (rcn_comm.h) train one model: each makes its share of every step's samples,
 * from its share of the cases, and all of them hold the same weights. A step must then not be
 * canceled in one process alone.
 *
 * Divergence: when the loss or a gradient is not a number, everything goes back to the last good
 * state (the last whole epoch, or where training was begun or loaded) and goes on with half the
 * rate; after RCN_TRAIN_SETBACKS times a step fails.
 *
 * Needs a build with networks and jansson.
 */
#ifndef RCN_TRAIN_H
#define RCN_TRAIN_H

#include "rcn_data.h"
#include "rcn_fusion.h"
#include "rcn_loss.h"
#include "rcn_model.h"
#include "rcn_net.h"
#include "rcn_optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- strategies ------------------------------------------------------------------------------ */

/* What is learned: the votes themselves by an ordinal loss, or one map fused from them by binary
 * cross-entropy. */
typedef struct rcn_strategy {
    rcn_loss_kind loss;
    int fused;         /* 1: the target is a fused map */
    rcn_method method; /* of the map. RCN_RANDOM draws a rater for every sample; RCN_STAPLE is the
                          mask */
    double rps_weight; /* of the RPS beside the likelihood (rcn_loss_options), unless told otherwise
                        */
} rcn_strategy;

/* The default (ordinal: levels by a cumulative link and RPS), the paper's eight (rps, random,
 * median, soft, soft-gaussian, staple, simple, svls), then alternatives on the levels (ce, brier,
 * emd, corn, coral, cumulative-link, binomial, beta-binomial, beta-binomial-voxel); NULL beyond the
 * last. "ordinal" was beta-binomial-voxel once: a model's loss, not its strategy's name, tells how
 * to read it. */
RCN_API const char *rcn_strategy_name(int index);

enum { RCN_STRATEGIES_COMPARED = 9 }; /* the first ones: the default and the paper's */

/* The strategy of that name; RCN_EINVALID and *out unchanged when there is none. */
RCN_API rcn_status rcn_strategy_parse(rcn_strategy *out, const char *name);

/* The strategy of that name for votes on `structures` structures; for one it is the one above.
 * Several can be learned by dirichlet-multinomial (which "ordinal" means then), soft (cross-entropy
 * with the raters' shares), median (with the label that most gave) and rps (an ordinal head for
 * each structure).
 *   RCN_EINVALID  there is none; the sentence says whether not at all or not for so many */
RCN_API rcn_status rcn_strategy_for(rcn_strategy *out, rcn_context *ctx, const char *name,
                                    int structures);

/* The names for several structures, in this order; NULL beyond the last. */
RCN_API const char *rcn_strategy_structures_name(int index);

/* ---- targets --------------------------------------------------------------------------------- */

/* What a strategy makes of one case's votes. */
typedef struct rcn_target rcn_target;

/* fusion: tie, sigma and the like for fused maps; its method is the strategy's. Takes four bytes
 * per voxel for methods that look at neighbors, and next to nothing for the others. A strategy for
 * several structures takes votes that hold labels, or plain ones as those of a single structure. On
 * failure or cancel *out is unchanged. */
RCN_API rcn_status rcn_target_create(rcn_target **out, rcn_context *ctx, const rcn_votes *votes,
                                     const rcn_strategy *strategy,
                                     const rcn_fusion_options *fusion);

/* NULL is fine. */
RCN_API void rcn_target_destroy(rcn_target *target);

/* The smoothed map, negative where nobody answered; NULL for the strategies that have none. */
RCN_API const float *rcn_target_map(const rcn_target *target);

/* Adds to voxels[0 ... K] how many voxels of the case have each level: voxels that not all K raters
 * answered count for the two levels next to K times their share, voxels that nobody answered not at
 * all. For rcn_train_start(), divided by their sum over all cases. `votes` are the target's. */
RCN_API void rcn_target_add_levels(double *voxels, const rcn_target *target,
                                   const rcn_votes *votes);

/* The same for several structures: adds to voxels[0 ... C] the share that each label has in the
 * answers of each voxel. */
RCN_API void rcn_target_add_labels(double *voxels, const rcn_target *target,
                                   const rcn_votes *votes);

/* ---- the course ------------------------------------------------------------------------------ */

typedef struct rcn_train_case {
    rcn_data_case data; /* map as rcn_target_map() */
    const rcn_target *target;
} rcn_train_case;

/* Gives case number `index`; what it points to must stay until the next call. Cases may thus be
 * read from disk when they are needed. */
typedef rcn_status (*rcn_train_case_fn)(rcn_train_case *out, int64_t index, void *payload);

typedef struct rcn_train_options {
    rcn_strategy strategy; /* no default */
    rcn_loss_options loss; /* `kind` is the strategy's; raters: no default; structures as the
                              strategy's */
    rcn_optim_options optim;
    rcn_schedule schedule; /* steps: of the whole training */
    rcn_sample_options sample;
    int64_t batch;      /* 16 (default): samples in a step; fewer when an epoch has fewer */
    int64_t cases;      /* no default: numbers 0 ... cases - 1 are learned from */
    int64_t old_cases;  /* 0 (default): the numbers that follow are rehearsed; each epoch as many of
                           them as new ones, drawn anew, or all if there are fewer */
    int64_t samples;    /* 1 (default): of each case in an epoch */
    int freeze_encoder; /* 0 (default); 1: the encoder stays, with the statistics of its norms.
                           Samples are then varied in eight ways, in turns, so that what it makes
                           of them is computed once and kept */
    uint64_t seed;      /* 0 (default) */
    rcn_comm *comm;     /* NULL (default): one process; otherwise each makes its share of a step's
                           samples, and the course is that of one process up to rounding */
    int local_norms;    /* 0 (default): batch norms over a step's whole batch; 1: over each
                           process's part, which saves messages */
    double average; /* 0 (default): none; otherwise the weights are also averaged, over about this
                       share of the steps so far: (step / steps)^(1/share - 1) is the weight of a
                       step */
    int64_t feature_bytes; /* 1 GiB (default): most that a frozen encoder's features may take */
} rcn_train_options;

#define RCN_TRAIN_OPTIONS_INIT                                                                     \
    {{RCN_LOSS_RPS, 0, RCN_ORC, 0},                                                                \
     RCN_LOSS_OPTIONS_INIT,                                                                        \
     RCN_OPTIM_OPTIONS_INIT,                                                                       \
     RCN_SCHEDULE_INIT,                                                                            \
     RCN_SAMPLE_OPTIONS_INIT,                                                                      \
     16,                                                                                           \
     0,                                                                                            \
     0,                                                                                            \
     1,                                                                                            \
     0,                                                                                            \
     0,                                                                                            \
     0,                                                                                            \
     0,                                                                                            \
     0.0,                                                                                          \
     INT64_C(1) << 30}

/* NULL if the options can be used, otherwise the sentence that says why not. */
RCN_API const char *rcn_train_check(const rcn_train_options *options);

/* Steps in an epoch: every case `samples` times, in an order drawn anew; the few samples that do
 * not fill a last batch are left out, others each time. A batch takes its samples evenly from the
 * whole list of cases. */
RCN_API int64_t rcn_train_epoch_steps(const rcn_train_options *options);

/* The cases that process `rank` of `size` asks for: *first ... *end - 1 and, of the old ones,
 * *old_first ... *old_end - 1. */
RCN_API void rcn_train_share(int64_t *first, int64_t *end, int64_t *old_first, int64_t *old_end,
                             const rcn_train_options *options, int rank, int size);

typedef struct rcn_train rcn_train;

/* The net and what get_case gives are borrowed until rcn_train_destroy(). RCN_EINVALID: options
 * that cannot be used, or a network whose outputs do not fit the loss. On failure *out is
 * unchanged. */
RCN_API rcn_status rcn_train_create(rcn_train **out, rcn_context *ctx, rcn_net *net,
                                    const rcn_train_options *options, rcn_train_case_fn get_case,
                                    void *payload);

/* NULL is fine. */
RCN_API void rcn_train_destroy(rcn_train *train);

/* Tells which cases the next step will ask get_case for, in this order; a case may come twice. */
typedef void (*rcn_train_soon_fn)(const int64_t *cases, int64_t count, void *payload);

/* Whoever reads cases from disk can read the next ones while a step computes: `soon` is called in
 * every step but the last of an epoch, with get_case's payload, when that step needs no case any
 * more. NULL (default): nobody is told. */
RCN_API void rcn_train_set_soon(rcn_train *train, rcn_train_soon_fn soon);

enum { RCN_TRAIN_SETBACKS = 3 };

typedef struct rcn_train_report {
    int64_t step;      /* steps done */
    int64_t epoch;     /* whole epochs done */
    int epoch_done;    /* this step was the last of its epoch */
    double loss;       /* of this step */
    double epoch_loss; /* mean over the steps of the epoch so far */
    double rate;       /* learning rate of this step */
    double norm;       /* of the gradient */
    int setback;       /* 1: the numbers got out of hand and training went back to the last good
                          state; step, epoch and losses are those of that state */
    int setbacks;      /* how often that has happened */
    double draw_seconds, net_seconds; /* drawing samples; everything else, with */
    double comm_seconds;              /* waiting for other processes */
} rcn_train_report;

/* One step.
 *   at  0, or the share of the time that is up (0 ... 1) for a training that has to end on time:
 *       the rate follows whichever is further, this or the number of steps
 *   RCN_EDATA       diverged too often
 *   RCN_EINTERNAL   several processes have different weights after an epoch: they would train
 *                   different models from here on
 *   RCN_ECANCELLED  within the step: the weights are as before but statistics of norms may have
 *                   moved, so that saving now would not give the same bits again
 * What get_case fails with is passed on. */
RCN_API rcn_status rcn_train_step(rcn_train_report *out, rcn_train *train, double at);

/* Steps and whole epochs done. */
RCN_API void rcn_train_where(int64_t *step, int64_t *epoch, const rcn_train *train);

/* The loss, with parameters of its own (NULL: it has none), to make levels of the outputs. */
RCN_API const rcn_loss *rcn_train_loss(const rcn_train *train);
RCN_API const float *rcn_train_loss_values(const rcn_train *train);

/* The average of the network's values, as rcn_net_values() lays them out, statistics of norms
 * included; and of the loss's own parameters. NULL: there is none. */
RCN_API const float *rcn_train_average(const rcn_train *train);
RCN_API const float *rcn_train_average_loss_values(const rcn_train *train);

/* Puts the loss's own parameters in, from an earlier model; `count` must be the loss's. */
RCN_API rcn_status rcn_train_set_loss_values(rcn_train *train, const float *values, int count);

/* Makes a fresh network start from what is known before looking: its last layer's weights a tenth,
 * its biases such that every voxel is given the levels' shares among all voxels, shares[0 ... K];
 * with a strategy for several structures those of the labels, shares[0 ... C].
 * Without this, most of a short training is spent on learning that most voxels are background. To
 * be called before the first step, and not for a network that has been trained. */
RCN_API rcn_status rcn_train_start(rcn_train *train, const double *shares);

/* Writes the whole state, with the caller's metadata, beside the target and then renamed: the
 * target is the old file or the new one at any moment. Read the metadata with rcn_model_read(). */
RCN_API rcn_status rcn_train_save(const rcn_train *train, const char *path,
                                  const rcn_model_entry *entries, int count);

/* Reads a state that was saved with the same options and network; both change all at once or not
 * at all. RCN_EFORMAT: it does not fit. */
RCN_API rcn_status rcn_train_load(rcn_train *train, const char *path);

#ifdef __cplusplus
}
#endif

#endif /* RCN_TRAIN_H */
