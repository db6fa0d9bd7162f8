/* How sure is a figure? Resampling cases, not voxels: neighbouring voxels are no independent
 * evidence, patients are.
 *
 * Keep one rcn_calib per case. A draw takes cases with replacement and adds up their sums, so that
 * it costs (cases x bins), and reads no voxel. Draws are numbered and each has its own stream of
 * random numbers: the same seed gives the same bits for any number of threads.
 *
 *   the paper's protocol  draws = 10, fraction = 0.6: quote mean and standard deviation
 *   a 95 % interval       draws = 1000, fraction = 1: quote low and high (percentiles)
 */
#ifndef RCN_BOOTSTRAP_H
#define RCN_BOOTSTRAP_H

#include "rcn_calib.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rcn_bootstrap_options {
    int draws;       /* 1000 (default); 1 ... 1000000 */
    double fraction; /* 1 (default): cases in a draw, as a share of all; rounded, at least one */
    double level;    /* 0.95 (default): of the interval */
    uint64_t seed;   /* 0 (default) */
} rcn_bootstrap_options;

#define RCN_BOOTSTRAP_OPTIONS_INIT                                                                 \
    { 1000, 1.0, 0.95, 0 }

/* NULL if the options can be used, otherwise a sentence. */
RCN_API const char *rcn_bootstrap_check(const rcn_bootstrap_options *options);

typedef struct rcn_interval {
    double value;     /* of all cases, each once; NaN: undefined */
    double mean;      /* of the draws; NaN where there is no interval */
    double std;       /* of the draws (n - 1); NaN where there is no interval */
    double low, high; /* percentiles of the draws, linear between them; NaN where there is none */
    double p_value;   /* rcn_bootstrap_paired(): two-sided, that the difference is zero; else NaN */
    int draws; /* draws in which the figure is defined. 0: there is no interval, because there
                  is only one case (say so), or the figure is undefined */
} rcn_interval;

/* out[figure] for all figures. The cases must have the same raters and options. The AUC figures use
 * the fine histogram, four cells put together.
 * On failure or cancel `out` is unchanged. */
RCN_API rcn_status rcn_bootstrap(rcn_interval out[RCN_FIGURES], rcn_context *ctx,
                                 const rcn_calib *const *cases, int64_t count,
                                 const rcn_bootstrap_options *options);

/* Two models on the same cases: out[figure] is the difference, first minus second, and each draw
 * takes the same cases from both. The p-value is twice the share of draws on the wrong side of
 * zero, with one draw added to each side, so that it is never zero: 1000 draws can show p = .002.
 */
RCN_API rcn_status rcn_bootstrap_paired(rcn_interval out[RCN_FIGURES], rcn_context *ctx,
                                        const rcn_calib *const *first,
                                        const rcn_calib *const *second, int64_t count,
                                        const rcn_bootstrap_options *options);

/* The band around a reliability diagram: low[b] and high[b] are the percentiles of bin b's
 * frequency over the draws that put pairs into it, for the options' bins of equal width; NaN where
 * fewer than two draws did, and everywhere when there is only one case. The draws are those of
 * rcn_bootstrap(). On failure or cancel the outputs are unchanged. */
RCN_API rcn_status rcn_bootstrap_bins(double *low, double *high, rcn_context *ctx,
                                      const rcn_calib *const *cases, int64_t count,
                                      const rcn_bootstrap_options *options);

#ifdef __cplusplus
}
#endif

#endif /* RCN_BOOTSTRAP_H */
