// SPDX-License-Identifier: Apache-2.0
/* Recalibration: a small correction, fitted on held-out cases, that makes 70 % mean 70 %.
 *
 * All methods are fitted against all raters (every voxel-rater pair counts); a fit to the majority
 * vote would end over-confident. Fit on cases the model was not trained on, and judge on others
 * again. With q the corrected probability:
 *
 *   temperature  levels: q_k ~ p_k^(1/T), T > 0. All readouts come from the same corrected levels
 *                and stay coherent. A plain probability: logit q = logit p / T
 *   Platt        logit q = a logit p + b                           (Platt 1999)
 *   beta         logit q = a log p - b log(1 - p) + c, a, b >= 0   (Kull et al. 2017)
 *   isotonic     the best rising step function (pool adjacent violators), linear between steps
 *
 * Temperature on levels minimizes the negative log-likelihood of the votes: the level where all K
 * raters answered, and where M of only A < K answered the chance to see that from level k
 * (hypergeometric, raters exchangeable). The likelihood is a proper score of the whole
 * distribution and, with all raters present, convex in 1/T, which the likelihood of a readout is
 * not; and it has no favorite among the readouts. Several structures have one temperature on the
 * shares of their C + 1 labels, q_l ~ p_l^(1/T), which maximizes sum n_l log q_l over the labels
 * that all raters gave; so the shares still add up to one. Platt, beta and isotonic correct one
 * readout: they are fitted to the sums of that readout and must be applied to it, not to levels.
 *
 * Which one: temperature has one number to fit, which a few cases are enough for; Platt and beta
 * can also move all probabilities up or down; isotonic follows any rising curve, and so follows
 * chance where there are few cases. On plain maps all but isotonic, which makes steps, keep the
 * order of the probabilities, and thereby AUC.
 *
 *     rcn_calib_add(sums, ctx, &one_case);                        // for each held-out case
 *     rcn_recalib_fit(&recalib, ctx, RCN_RECALIB_PLATT, sums);
 *     rcn_recalib_apply(map, ctx, &recalib, &probability);        // to each new prediction
 */
#ifndef RCN_RECALIB_H
#define RCN_RECALIB_H

#include "rcn_calib.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As above. The numbers never change. */
typedef enum rcn_recalib_method {
    RCN_RECALIB_TEMPERATURE = 0,
    RCN_RECALIB_PLATT = 1,
    RCN_RECALIB_BETA = 2,
    RCN_RECALIB_ISOTONIC = 3
} rcn_recalib_method;

/* "temperature", "platt", "beta", "isotonic"; NULL for a number that is no method. */
RCN_API const char *rcn_recalib_name(rcn_recalib_method method);

#define RCN_RECALIB_KNOTS 256

/* Plain data: whoever stores it writes these fields. */
typedef struct rcn_recalib {
    rcn_recalib_method method;
    int levels;           /* K + 1: temperature fitted to levels, applies to levels; C + 1: to the
                             shares of labels; 0: applies to one probability */
    double parameters[3]; /* temperature: T; Platt: a, b; beta: a, b, c; the rest 0 */
    int knots;            /* isotonic: 1 ... RCN_RECALIB_KNOTS; otherwise 0 */
    double x[RCN_RECALIB_KNOTS]; /* rising probabilities in [0, 1] ... */
    double y[RCN_RECALIB_KNOTS]; /* ... and what they become, never falling; constant outside */
    int64_t pairs;               /* fitted to so many voxel-rater pairs */
} rcn_recalib;

/* NULL if usable, otherwise a sentence: for what was read from a file. */
RCN_API const char *rcn_recalib_check(const rcn_recalib *recalib);

/* ---- fitting --------------------------------------------------------------------------------- */

/* Any method for one probability, from the fine histogram of the sums (its cells are 1/4096 wide,
 * or 1/64 of p or 1 - p where that is finer). The sums' region is the fit's region.
 *   RCN_EDATA  there is nothing to fit: no pairs, votes all alike, or (Platt, beta, temperature)
 *              probabilities that run against the votes or tell them apart without a miss
 * On failure *out is unchanged. */
RCN_API rcn_status rcn_recalib_fit(rcn_recalib *out, rcn_context *ctx, rcn_recalib_method method,
                                   const rcn_calib *sums);

/* Temperature on levels, in one pass over each case: the first two derivatives of the likelihood
 * at seventeen temperatures from 1/8 to 32, between which the best one is found (within 0.1 %). */
typedef struct rcn_temperature rcn_temperature;

RCN_API rcn_status rcn_temperature_create(rcn_temperature **out, rcn_context *ctx, int raters);

/* The same for the shares of C + 1 labels; of any number of raters. */
RCN_API rcn_status rcn_temperature_create_labels(rcn_temperature **out, rcn_context *ctx,
                                                 int structures);

/* NULL is fine. */
RCN_API void rcn_temperature_destroy(rcn_temperature *temperature);

/* Adds a case with K + 1 levels; errors as for rcn_calib_add(). On failure or cancel nothing has
 * been added. The reference plays no part. */
RCN_API rcn_status rcn_temperature_add(rcn_temperature *temperature, rcn_context *ctx,
                                       const rcn_calib_case *one_case);

/* Adds a case with votes that hold labels and a prediction of C + 1 shares, background first. */
RCN_API rcn_status rcn_temperature_add_labels(rcn_temperature *temperature, rcn_context *ctx,
                                              const rcn_calib_case *one_case);

/* Adds the cases of another, of as many raters or structures: one for each case can be put together
 * in any way, so that leaving one out reads no voxel again. */
RCN_API rcn_status rcn_temperature_merge(rcn_temperature *temperature, rcn_context *ctx,
                                         const rcn_temperature *other);

/* Adds up the cases of all processes, in all of them. NULL: nothing. */
RCN_API rcn_status rcn_temperature_share(rcn_temperature *temperature, rcn_context *ctx,
                                         rcn_comm *comm);

/* The temperature of all cases. RCN_EDATA: no case, or the best one is not between 1/8 and 32. On
 * failure *out is unchanged. */
RCN_API rcn_status rcn_temperature_fit(rcn_recalib *out, rcn_context *ctx,
                                       const rcn_temperature *temperature);

/* ---- applying -------------------------------------------------------------------------------- */

/* What one probability becomes; for recalibrations with levels = 0. p must lie in [0, 1]. Does not
 * fail and keeps no state: for curves in a figure and for programs that hold single numbers. */
RCN_API double rcn_recalib_value(const rcn_recalib *recalib, double p);

/* out[voxel] of a map of probabilities; `out` may be the map itself.
 *   RCN_EINVALID  the recalibration is for levels, or cannot be used
 *   RCN_EDATA     a probability outside [0, 1] or not a number; the sentence names voxel and value
 * On failure or cancel `out` is partly written. */
RCN_API rcn_status rcn_recalib_apply(float *out, rcn_context *ctx, const rcn_recalib *recalib,
                                     const rcn_image *probability);

/* The same for K + 1 levels or the shares of C + 1 labels, with temperature only. They add up to
 * one afterwards, and those that were 0 still are. */
RCN_API rcn_status rcn_recalib_apply_levels(float *out, rcn_context *ctx,
                                            const rcn_recalib *recalib, const rcn_image *levels);

#ifdef __cplusplus
}
#endif

#endif /* RCN_RECALIB_H */
