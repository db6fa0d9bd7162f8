// SPDX-License-Identifier: Apache-2.0
/* The paper's measure of uncertainty: mean and standard deviation over ten draws of 60 % of the
 * cases. For an interval with the promised coverage see rcn_interval.h.
 *
 * Keep one rcn_calib per case. A draw takes cases with replacement and adds up their sums, so that
 * it costs (cases x bins), and reads no voxel. Draws are numbered and each has its own stream of
 * random numbers: the same seed gives the same bits for any number of threads.
 *
 * A draw takes 0.6 times as many cases as there are (rounded, at least one), some of them twice. A
 * mean of independent cases therefore spreads 1 / sqrt(0.6), or 1.29, times as much over the draws
 * as over data sets of the full size: the deviation describes the draws, and is not a standard
 * error.
 *
 *     const rcn_calib *cases[12];                         // one for each case
 *     rcn_spread spread[RCN_FIGURES];
 *     rcn_bootstrap(spread, ctx, cases, 12, NULL);
 *     printf("%.2f +- %.2f\n", 100 * spread[RCN_MR_ECE].mean, 100 * spread[RCN_MR_ECE].std);
 */
#ifndef RCN_BOOTSTRAP_H
#define RCN_BOOTSTRAP_H

#include "rcn_calib.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rcn_bootstrap_options {
    int draws;     /* 10 (default); 1 ... 1000000 */
    uint64_t seed; /* 0 (default) */
} rcn_bootstrap_options;

#define RCN_BOOTSTRAP_OPTIONS_INIT {10, 0}

/* NULL if the options can be used, otherwise a sentence. NULL options are fine: the defaults. */
RCN_API const char *rcn_bootstrap_check(const rcn_bootstrap_options *options);

typedef struct rcn_spread {
    double mean, std; /* of the draws (n - 1); NaN where there are none */
    int draws;        /* in which the figure is defined; 0: there is only one case, or the figure is
                         undefined */
} rcn_spread;

/* out[figure] for all figures. The cases must have the same raters and options. The AUC figures use
 * the fine histogram, four cells put together. NULL options are the defaults.
 *   RCN_EINVALID  no case, options that cannot be used, or a case unlike the first; the sentence
 *                 names it
 * On failure or cancel `out` is unchanged. */
RCN_API rcn_status rcn_bootstrap(rcn_spread out[RCN_FIGURES], rcn_context *ctx,
                                 const rcn_calib *const *cases, int64_t count,
                                 const rcn_bootstrap_options *options);

#ifdef __cplusplus
}
#endif

#endif /* RCN_BOOTSTRAP_H */
