// SPDX-License-Identifier: Apache-2.0
/* The paper's measure of uncertainty: mean and standard deviation over ten draws of 60 % of the
 * cases. For an interval with the promised coverage see rcn_interval.h.
 *
 * Keep one rcn_calib per case. A draw takes cases with replacement and adds up their sums, so that
 * it costs (cases x bins), and reads no voxel. Draws are numbered and each has its own stream of
 * random numbers: the same seed gives the same bits for any number of threads.
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

/* NULL if the options can be used, otherwise a sentence. */
RCN_API const char *rcn_bootstrap_check(const rcn_bootstrap_options *options);

typedef struct rcn_spread {
    double mean, std; /* of the draws (n - 1); NaN where there are none */
    int draws;        /* in which the figure is defined; 0: there is only one case, or the figure is
                         undefined */
} rcn_spread;

/* out[figure] for all figures. The cases must have the same raters and options. The AUC figures use
 * the fine histogram, four cells put together.
 * On failure or cancel `out` is unchanged. */
RCN_API rcn_status rcn_bootstrap(rcn_spread out[RCN_FIGURES], rcn_context *ctx,
                                 const rcn_calib *const *cases, int64_t count,
                                 const rcn_bootstrap_options *options);

#ifdef __cplusplus
}
#endif

#endif /* RCN_BOOTSTRAP_H */
