// SPDX-License-Identifier: Apache-2.0
/* How sure is a figure? Between which values would it lie on further cases like these?
 *
 * Neighboring voxels are no independent evidence, patients are: each case (or, where the caller
 * says which cases belong together, each patient) is left out once, and how much the figure moves
 * is its standard error (the jackknife; Tukey 1958, Efron & Stein 1981). Keep one rcn_calib per
 * case: leaving one out is a subtraction of sums, and no voxel is read again.
 *
 *   low, high  value -+ t * error with Student's t for (units - 1) degrees of freedom. A figure
 *              between 0 and 1 gets the same on the arcsine scale asin(sqrt(x)) too, and the outer
 *              ends of both: intervals near 0 or 1 are not symmetric. The error of a difference
 *              has half of the jackknife's bias in it
 *   runs       several trainings with other seeds: the figure is the mean over them, and each of
 *              them is left out once as well. Both variances are added; the degrees of freedom are
 *              Satterthwaite's (1946)
 *
 * It was chosen by its coverage in simulation (Testing/Benchmarks/bench_coverage.py) among
 * percentile, basic, BCa and studentized bootstrap intervals: MR-ECE adds up absolute values, is
 * biased upwards with few cases, and draws of cases are biased once more. An interval always holds
 * its own value. Nothing is drawn at random: the same cases give the same bits for any number of
 * threads.
 *
 *     const rcn_calib *cases[40];                     // one for each case, with the same options
 *     rcn_interval interval[RCN_FIGURES];
 *     rcn_interval_compute(interval, ctx, cases, NULL, 1, 40, NULL);
 *     if (interval[RCN_MR_ECE].units)                 // 0: there is none, and low and high are NaN
 *         printf("%g to %g\n", interval[RCN_MR_ECE].low, interval[RCN_MR_ECE].high);
 */
#ifndef RCN_INTERVAL_H
#define RCN_INTERVAL_H

#include "rcn_calib.h"

#ifdef __cplusplus
extern "C" {
#endif

/* There is no interval with fewer cases, or patients, than this. */
#define RCN_INTERVAL_UNITS 5

typedef struct rcn_interval_options {
    double level;        /* 0.95 (default) */
    const int *patients; /* [count]: cases with the same number are left out together; NULL
                            (default): each case by itself */
} rcn_interval_options;

#define RCN_INTERVAL_OPTIONS_INIT {0.95, NULL}

/* NULL if the options can be used, otherwise a sentence. NULL options are fine: the defaults. */
RCN_API const char *rcn_interval_check(const rcn_interval_options *options);

typedef struct rcn_interval {
    double value;     /* of all cases, the mean over runs; NaN: undefined */
    double error;     /* standard error, see above; NaN where there is no interval */
    double low, high; /* NaN where there is none */
    double p_value;   /* of a difference: two-sided, that it is zero; otherwise NaN. Below 1 - level
                         where the interval leaves zero out */
    int units;        /* cases or patients it rests on. 0: there is no interval, because there are
                         fewer than RCN_INTERVAL_UNITS, or the figure is undefined, also without one
                         of them */
} rcn_interval;

/* out[figure] for all figures. cases[run * count + i] are the sums of case i in run number `run`;
 * all must have the same raters and options. `second` (NULL: none) is another model on the same
 * cases and as many runs: out[figure] is the difference then, first minus second.
 * On failure or cancel `out` is unchanged. */
RCN_API rcn_status rcn_interval_compute(rcn_interval out[RCN_FIGURES], rcn_context *ctx,
                                        const rcn_calib *const *cases,
                                        const rcn_calib *const *second, int runs, int64_t count,
                                        const rcn_interval_options *options);

/* The band around a reliability diagram: the interval of each bin's frequency, for the options'
 * bins of equal width, over the units that put pairs into it; NaN where these are fewer than
 * RCN_INTERVAL_UNITS. at_least: 0 for the bins of all pairs, t for those of P(y >= t)
 * (rcn_calib_level_bins()). On failure or cancel the outputs are unchanged. */
RCN_API rcn_status rcn_interval_bins(double *low, double *high, rcn_context *ctx,
                                     const rcn_calib *const *cases, int64_t count, int at_least,
                                     const rcn_interval_options *options);

/* ---- a figure that every case has by itself -------------------------------------------------- */

/* What a mean over cases can be. It decides on which scales the interval is made: the hull of the
 * plain scale and of the one that is named. A difference has no end to bend its interval at, but
 * how much more a rater marks grows with the size of the structure: it is skewed, and of few cases
 * a large one decides. Its interval is the hull of the plain one and of the one that is moved for
 * the skewness (Johnson 1978), with the degrees of freedom of as many cases as their unequal
 * weights are worth (Kish 1965). */
typedef enum rcn_mean_kind {
    RCN_MEAN_SHARE = 0,     /* 0 ... 1, such as Dice: arcsine */
    RCN_MEAN_KAPPA = 1,     /* -1 ... 1, such as kappa or alpha: arcsine of (x + 1) / 2 */
    RCN_MEAN_AMOUNT = 2,    /* 0 or more, such as a distance: logarithm */
    RCN_MEAN_DIFFERENCE = 3 /* anything: skewness, with a p-value, the plain one */
} rcn_mean_kind;

/* The mean of values[i] over the cases where it is not NaN; with `over` (NULL: a mean) the ratio of
 * the sums of values and over, for cases where neither is NaN. Cases that have no value say nothing
 * and are no units. On failure `out` is unchanged. */
RCN_API rcn_status rcn_interval_mean(rcn_interval *out, rcn_context *ctx, const double *values,
                                     const double *over, int64_t count, rcn_mean_kind kind,
                                     const rcn_interval_options *options);

/* Turns p-values of several tests into those that hold for all of them together (Holm 1979), in
 * place: reject where the new one is below the level, and the chance of a false rejection anywhere
 * is at most the level. NaN is no test and stays. */
RCN_API void rcn_holm(double *p_values, int count);

#ifdef __cplusplus
}
#endif

#endif /* RCN_INTERVAL_H */
