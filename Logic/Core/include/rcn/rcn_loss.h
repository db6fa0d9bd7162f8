// SPDX-License-Identifier: Apache-2.0
/* Losses: how far a network's raw outputs are from what the raters said, and the gradient.
 *
 * All strategies share one interface. A loss says how many output channels it needs of the network
 * and how many parameters of its own (shared by all voxels) it wants trained beside the network's;
 * it turns raw outputs into a number and its gradient in one pass; and it turns raw outputs into
 * probabilities of the K + 1 consensus levels, so that readouts, overlays and metrics never ask
 * which strategy a model was trained with.
 *
 *     rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
 *     options.raters = 4;
 *     rcn_loss_create(&loss, ctx, &options);                   // once
 *     rcn_loss_labels(labels, rcn_votes_patterns(votes), n);   // once per case
 *     rcn_loss_run(&result, gradient, NULL, loss, ctx, logits, NULL, targets, samples, voxels);
 *
 * Layout: raw outputs, their gradients and level probabilities are planar, one plane of `voxels`
 * floats per channel and all channels of a sample together: (samples, channels, voxels), which is
 * NCHW or NCDHW with the spatial axes taken as one.
 *
 * Targets: a voxel's target is looked up by its vote code (rcn_votes.h) in a small table of labels,
 * one table per case; so level, soft and hard targets, STAPLE posteriors and single raters cost
 * the same. Maps that do not depend on the code alone (smoothed targets) are given per voxel.
 *
 * Several structures: a code stands for how many raters gave each of C + 1 labels (`counts`), or
 * for a share of each (`shares`). Softmax makes means of the outputs, the expected shares of raters
 * for each label; with a correlation of the raters they give the levels of every structure.
 *
 * The number: the mean over all voxels of the batch that count. With w = label weight x sample
 * weight, loss = sum(w * voxel loss) / sum(w). A voxel of weight 0 (nobody answered) is void: it
 * adds nothing, and its gradient is 0. A batch of void voxels has loss 0.
 *
 * Any finite raw outputs give finite results: the logarithms are taken of sums of exponentials, not
 * of probabilities, so nothing is clamped and the gradient is that of the loss everywhere. NaN or
 * infinity in a raw output that counts gives a NaN loss. Sums are kept in double per fixed chunk:
 * identical bits for any number of threads.
 *
 * Missing raters. Where only a of the K raters answered and v of them marked the voxel, the level
 * y of all K is not known. It is not guessed: the prediction is brought to the a raters who
 * answered instead. If k of K raters would mark a voxel, then j of a raters drawn from them do with
 * the hypergeometric probability
 *     H(j | k) = C(k, j) C(K - k, a - j) / C(K, a),
 * so the predicted levels p_k imply q_j = sum_k H(j | k) p_k for j = 0 ... a, and q is scored
 * against v by the same rule, with a in place of K. A proper score of what was observed: its
 * expectation is smallest where q is the truth, whatever p_k was true, provided that who answered
 * does not depend on the vote. (Filling the gap, say by v/a * K, would reward a wrong spread.) For
 * a = K it is the plain loss.
 */
#ifndef RCN_LOSS_H
#define RCN_LOSS_H

#include "rcn_comm.h"
#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* K raters, level y = 0 ... K, p_k = P(y = k), F_j = P(y <= j), s(x) = 1 / (1 + exp(-x)). */
typedef enum rcn_loss_kind {
    /* ---- K + 1 channels, p = softmax ---- */

    /* bce_weight * BCE(P(y >= K/2), majority label) + alpha * RPS: the paper's loss (eq. 3 to 5).
     * RPS = 1/(K+1) * sum_j (F_j - [y <= j])^2. */
    RCN_LOSS_RPS = 0,
    /* -log p_y. */
    RCN_LOSS_CE = 1,
    /* sum_k (p_k - [y = k])^2. */
    RCN_LOSS_BRIER = 2,
    /* sum_j (F_j - [y <= j])^2, the squared earth mover's distance: RPS without its 1/(K+1). */
    RCN_LOSS_EMD = 3,

    /* ---- fewer channels: the order of the levels is built in ---- */

    /* K channels, P(y > j | y > j-1) = s(z_j); -log p_y, which is the sum of the conditional tasks'
     * binary cross-entropies (Shi, Cao and Raschka 2021; they divide by the number of tasks and
     * voxels, here by the number of voxels). */
    RCN_LOSS_CORN = 4,
    /* 1 channel z and K parameters b: P(y > j) = s(z + b_j); the sum over j of BCE([y > j]) (Cao,
     * Mirjalili and Raschka 2020). */
    RCN_LOSS_CORAL = 5,
    /* 1 channel z and K parameters: P(y <= j) = s(t_j - z), t_0 = parameter 0, t_j = t_(j-1) +
     * (parameter j)^2 + 0.001; -log p_y (McCullagh 1980). */
    RCN_LOSS_CUMULATIVE_LINK = 6,
    /* 1 channel, p = Binomial(K, s(z)); -log p_y. The gradient is K times that of BCE against the
     * mean vote. */
    RCN_LOSS_BINOMIAL = 7,
    /* 1 channel and 1 parameter c: p = beta-binomial with mean s(z) and correlation of the raters
     * s(c); -log p_y. c is used within -16 ... 16. */
    RCN_LOSS_BETA_BINOMIAL = 8,

    /* ---- 1 channel, foreground probability s(z) against a target of 0 ... 1 ---- */

    /* Binary cross-entropy against label value or map, hard or soft. */
    RCN_LOSS_BCE = 9,
    /* (s(z) - target)^2. */
    RCN_LOSS_BINARY_BRIER = 10,

    /* ---- 2 channels ---- */

    /* Beta-binomial whose correlation each voxel has for itself: the second channel is its logit,
     * used within -16 ... 16. */
    RCN_LOSS_BETA_BINOMIAL_VOXEL = 11,

    /* ---- several structures: each rater gives one of the labels 0 (background) ... C ---- */

    /* C + 1 channels and 1 parameter c: of the a raters who answered, n_l gave label l. n is
     * Dirichlet-multinomial with the means softmax(z) and the correlation of the raters s(c);
     * -log p(n). Each structure alone has the beta-binomial with its mean and s(c), with C = 1 this
     * is RCN_LOSS_BETA_BINOMIAL of z_1 - z_0, and missing raters need nothing more: a takes the
     * place of K. c is used within -16 ... 16. */
    RCN_LOSS_DIRICHLET_MULTINOMIAL = 12,
    /* C + 1 channels, cross-entropy of softmax(z) with a share of each label. */
    RCN_LOSS_CATEGORICAL = 13,
    /* C x (K + 1) channels: the mean over the structures of RCN_LOSS_RPS, each against the rest. */
    RCN_LOSS_RPS_HEADS = 14
} rcn_loss_kind;

enum {
    RCN_LOSS_LEVEL_KINDS = 12, /* the first ones: of one structure */
    RCN_LOSS_KINDS = 15
};

/* "rps", "ce", "brier", "emd", "corn", "coral", "cumulative-link", "binomial", "beta-binomial",
 * "bce", "binary-brier", "beta-binomial-voxel", "dirichlet-multinomial", "categorical",
 * "rps-heads"; NULL for a number that is no rcn_loss_kind. */
RCN_API const char *rcn_loss_kind_name(rcn_loss_kind kind);

typedef struct rcn_loss_options {
    rcn_loss_kind kind; /* RCN_LOSS_RPS (default) */
    int raters;         /* K, 1 ... RCN_MAX_RATERS; no default */
    /* RCN_LOSS_RPS and RCN_LOSS_RPS_HEADS only. The 1/(K+1) stays in RPS: alpha = 0.8 * (K+1)
     * weighs the plain sum. */
    double bce_weight; /* 1 (default) */
    double alpha;      /* 0.8 (default) */
    /* Which side the tie of an even number of raters is on, in the majority of these: 0 (default)
     * foreground, as y >= K/2 says; 1 background. */
    int tie_background;
    /* Terms added to a loss with K + 1 channels; 0 (default): none. */
    /* Cross-entropy of the expected readout with the mean vote: proper for the mean, and strict
     * where RPS is lenient, at shares near 0 and 1; unchanged by missing raters. Also beside
     * dirichlet-multinomial: cross-entropy of the means with the shares of the labels. One
     * correlation for all voxels cannot be right everywhere, and this keeps it from bending the
     * means. */
    double expected_weight;
    /* sum over k < y of max(0, p_k - p_(k+1)) + sum over k > y of max(0, p_k - p_(k-1)): asks for
     * one peak, at y. With missing raters only left and right of the levels that y may have. */
    double unimodal_weight;
    /* RPS of the levels, beside the likelihood of ce, corn, cumulative-link, beta-binomial and
     * beta-binomial-voxel, and of dirichlet-multinomial: there the mean over the structures; 0
     * (default): none. */
    double rps_weight;
    int structures; /* C, 1 (default) ... RCN_MAX_STRUCTURES; more than 1 for the last kinds only */
} rcn_loss_options;

#define RCN_LOSS_OPTIONS_INIT {RCN_LOSS_RPS, 0, 1.0, 0.8, 0, 0.0, 0.0, 0.0, 1}

/* NULL if the options can be used, otherwise the sentence that says why not. */
RCN_API const char *rcn_loss_check(const rcn_loss_options *options);

typedef struct rcn_loss rcn_loss;

/* Prepares a loss; its tables take at most 2 MB (64 raters). On failure *out is unchanged. */
RCN_API rcn_status rcn_loss_create(rcn_loss **out, rcn_context *ctx,
                                   const rcn_loss_options *options);

/* NULL is fine. */
RCN_API void rcn_loss_destroy(rcn_loss *loss);

/* K, and C. */
RCN_API int rcn_loss_raters(const rcn_loss *loss);
RCN_API int rcn_loss_structures(const rcn_loss *loss);

/* How many channels the network must have, and how many parameters the loss brings along. */
RCN_API int rcn_loss_channels(const rcn_loss *loss);
RCN_API int rcn_loss_parameters(const rcn_loss *loss);

/* Writes where the loss's own parameters start: thresholds that make all levels equally likely at
 * z = 0, or a correlation of 0.1. */
RCN_API void rcn_loss_init_parameters(float *parameters, const rcn_loss *loss);

/* What a vote code means for the loss. */
typedef struct rcn_loss_label {
    float value;      /* target of RCN_LOSS_BCE and RCN_LOSS_BINARY_BRIER, 0 ... 1 */
    float weight;     /* 1; 0: void, does not count; any other number >= 0 */
    uint8_t marked;   /* how many raters marked it; the other kinds' target */
    uint8_t answered; /* how many raters answered, 1 ... K where weight > 0 */
} rcn_loss_label;

/* One label per pattern: value = the mean vote, weight = 1, or 0 where nobody answered. For another
 * binary target (majority, STAPLE posterior, one rater) write its value over these. */
RCN_API void rcn_loss_labels(rcn_loss_label *labels, const rcn_pattern *patterns, int64_t count);

/* How often each label was given, counts (patterns, C + 1): the target of
 * RCN_LOSS_DIRICHLET_MULTINOMIAL and RCN_LOSS_RPS_HEADS.
 *   votes  (patterns, raters): rcn_votes_labels() */
RCN_API void rcn_loss_label_counts(uint8_t *counts, const uint8_t *votes, int64_t patterns,
                                   int raters, int structures);

/* The same as shares of those who answered, for RCN_LOSS_CATEGORICAL; all 0 where nobody did.
 *   plurality  1: all of it to the label that most gave. A tie goes to a structure before the
 *              background, and to the structure of the lower number */
RCN_API void rcn_loss_label_shares(float *shares, const uint8_t *counts, int64_t patterns,
                                   int structures, int plurality);

/* One sample's targets. */
typedef struct rcn_loss_target {
    const void *codes;            /* one per voxel, elements of code_bytes; NULL with a map */
    int code_bytes;               /* 1, 2 or 4 */
    const rcn_loss_label *labels; /* one per code */
    int64_t label_count;
    const float *map; /* NULL (default), or one target per voxel, negative: void; for the kinds with
                         a binary target only */
    double weight;    /* 1 (default): of this sample; >= 0 */
    /* Several structures, beside `labels`, whose `value` and `marked` then do not count: */
    const uint8_t *counts; /* (label_count, C + 1): who gave which label, summing to `answered` */
    const float *shares;   /* (label_count, C + 1), summing to one: for RCN_LOSS_CATEGORICAL */
} rcn_loss_target;

#define RCN_LOSS_TARGET_INIT {0, 1, 0, 0, 0, 1.0, 0, 0}

typedef struct rcn_loss_result {
    double loss;   /* the weighted mean over the voxels that count */
    double weight; /* the sum of weights it was divided by */
} rcn_loss_result;

/* Loss and gradient of a batch.
 *   gradient            (samples, channels, voxels): d loss / d logits; NULL: not wanted; may be
 *                       `logits` itself, which is then overwritten
 *   parameter_gradient  d loss / d parameters; NULL: not wanted
 *   logits              (samples, channels, voxels): the network's raw outputs
 *   parameters          the loss's own; NULL when it has none
 *   targets             one per sample
 *   RCN_EDATA           a code without a label
 * Failed or canceled: result is unchanged, the gradients are partly written. */
RCN_API rcn_status rcn_loss_run(rcn_loss_result *result, float *gradient, float *parameter_gradient,
                                const rcn_loss *loss, rcn_context *ctx, const float *logits,
                                const float *parameters, const rcn_loss_target *targets,
                                int64_t samples, int64_t voxels);

/* levels (samples, K+1, voxels) = the probabilities of the consensus levels; they are never
 * negative and sum to one up to rounding. The kinds with a binary target give level K the
 * probability s(z) and level 0 the rest, so that every readout is s(z), the number that they were
 * trained for. RCN_LOSS_CORAL while its parameters are out of order: P(y > j) is the smallest of
 * those up to j. Canceled: partly written. Of several structures each has its own levels: ask
 * rcn_loss_structure_levels(). */
RCN_API rcn_status rcn_loss_levels(float *levels, const rcn_loss *loss, rcn_context *ctx,
                                   const float *logits, const float *parameters, int64_t samples,
                                   int64_t voxels);

/* means (samples, C + 1, voxels) = the expected share of raters who give each label, background
 * first; they sum to one up to rounding. Of RCN_LOSS_RPS_HEADS, whose heads may contradict each
 * other: the expected readout of each, divided by their sum where that is above one, and the rest
 * for the background. The kinds of one structure: 1 - m and m, m the expected readout. */
RCN_API rcn_status rcn_loss_means(float *means, const rcn_loss *loss, rcn_context *ctx,
                                  const float *logits, const float *parameters, int64_t samples,
                                  int64_t voxels);

/* levels (samples, K + 1, voxels) of one structure, 1 ... C, against all other labels. */
RCN_API rcn_status rcn_loss_structure_levels(float *levels, const rcn_loss *loss, rcn_context *ctx,
                                             int structure, const float *logits,
                                             const float *parameters, int64_t samples,
                                             int64_t voxels);

/* The correlation of the raters that makes levels of means, see rcn_levels_of_mean(): that of
 * RCN_LOSS_DIRICHLET_MULTINOMIAL and RCN_LOSS_BETA_BINOMIAL, 0 for RCN_LOSS_BINOMIAL, 1 for the
 * kinds with one probability per structure; -1: means do not tell the levels. */
RCN_API double rcn_loss_correlation(const rcn_loss *loss, const float *parameters);

/* levels (voxels, K + 1), those of a voxel next to each other: beta-binomial with mean[i * stride]
 * and the correlation, 0 (binomial) ... 1 (all raters alike).
 *   RCN_EDATA  a mean that is not 0 ... 1, but for rounding; `levels` is then partly written */
RCN_API rcn_status rcn_levels_of_mean(float *levels, rcn_context *ctx, const float *mean,
                                      int64_t stride, int64_t voxels, int raters,
                                      double correlation);

#ifdef __cplusplus
}
#endif

#endif /* RCN_LOSS_H */
