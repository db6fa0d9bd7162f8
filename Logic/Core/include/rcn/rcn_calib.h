// SPDX-License-Identifier: Apache-2.0
/* Calibration: does 70 % mean that 70 % of the raters mark the voxel?
 *
 * One pass over a case reads the predicted probabilities and the raters' votes side by side and
 * fills a small vector of sums: bins, a fine histogram, a few totals. Every figure is derived from
 * these sums, so cases can be added one by one, merged, and resampled without reading a voxel
 * again (rcn_interval.h, rcn_bootstrap.h), and recalibration is fitted from them (rcn_recalib.h).
 *
 *     rcn_calib *calib;
 *     rcn_calib_create(&calib, ctx, raters, NULL);
 *     for each case: rcn_calib_add(calib, ctx, &one_case);
 *     double figures[RCN_FIGURES];
 *     rcn_calib_figures(figures, calib);     figures[RCN_MR_ECE] is 0.034: 3.4 % off on average
 *
 * The definitions, for voxels v of the region, raters r who answered there, probability p(v), vote
 * y_r(v) and mean vote m(v): a "pair" is a voxel and a rater who answered it. A rater who is
 * missing from a case, or left voxels unanswered, counts only where he is; a voxel nobody answered
 * is not looked at.
 *
 * The pass adds integers (probabilities in units of 2^-38) and chunk sums in fixed order: the same
 * bits for any number of threads.
 */
#ifndef RCN_CALIB_H
#define RCN_CALIB_H

#include "rcn_comm.h"
#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- readouts: one probability out of the K + 1 levels ---------------------------------------
 *
 * A network that predicts levels gives p_k = P(k of K raters mark the voxel), k = 0 ... K.
 *
 *   majority        sum of p_k, k >= K/2   a majority marks it; for even K a tie counts as
 *                                          foreground
 *   expected        sum of k/K p_k         the expected share of raters who mark it. The only
 *                                          readout with zero MR-ECE for a perfect ordinal model
 *   at least        sum of p_k, k >= t     t = 1: any rater; t = K: all of them
 *   more than half  sum of p_k, k > K/2    the majority where a tie counts as background; with an
 *                                          odd K the same as majority
 *
 * The rule for ties is part of the readout, so that it goes wherever the readout goes.
 */
typedef enum rcn_readout {
    RCN_READOUT_MAJORITY = 0,
    RCN_READOUT_EXPECTED = 1,
    RCN_READOUT_AT_LEAST = 2,
    RCN_READOUT_MORE_THAN_HALF = 3
} rcn_readout;

/* "majority", "expected", "at-least", "more-than-half"; NULL for a number that is no readout. */
RCN_API const char *rcn_readout_name(rcn_readout readout);

/* How far the K + 1 levels of a voxel may be from adding up to one. */
#define RCN_LEVEL_TOLERANCE 1e-3

/* out[voxel] = the readout of a level map: float32, K + 1 >= 2 components. `at_least` is t, and
 * ignored by the other readouts. Results are cut to [0, 1], which rounding may leave by a hair.
 *   RCN_EDATA  a level outside [0, 1] or not a number, or levels that do not add up to one; the
 *              sentence names voxel and value
 * On failure or cancel `out` is partly written. */
RCN_API rcn_status rcn_readout_apply(float *out, rcn_context *ctx, const rcn_image *levels,
                                     rcn_readout readout, int at_least);

/* *out = whether only level 0 and level K ever have a probability: the levels of a model that gives
 * one probability (rcn_loss_levels()). Such levels know nothing of the numbers between, and what
 * corrects them must not invent it. Of one rater, and of a map with one component, it is 1. */
RCN_API rcn_status rcn_levels_are_ends(int *out, rcn_context *ctx, const rcn_image *levels);

/* ---- a case ---------------------------------------------------------------------------------- */

/* The reference does not know this pattern: such voxels are left out of what needs one. */
#define RCN_NO_REFERENCE 255

/* What is judged against what, and where. Everything is borrowed during a call. */
typedef struct rcn_calib_case {
    const rcn_votes *votes;
    rcn_image prediction;     /* float32; 1 component: a probability; K + 1 components: levels */
    const uint8_t *region;    /* non-zero where voxels count (rcn_region.h); NULL: everywhere */
    const uint8_t *reference; /* by vote pattern: 0, 1 or RCN_NO_REFERENCE; NULL: the majority, a
                                 tie as the readout has it */
} rcn_calib_case;

/* *out = 1 where the prediction is made of the raters' answers alone: the same within each pattern
 * of answers, some of them disputed, and not the same everywhere; or what rcn_fuse() gives with one
 * of its smoothing methods and the default width. Judged by the raters it was made of, a map looks
 * better than it is. Only voxels of the region are looked at, up to the first that tells otherwise:
 * next to nothing for what a network predicts, which is hardly anywhere exactly zero. */
RCN_API rcn_status rcn_case_is_fused(int *out, rcn_context *ctx, const rcn_calib_case *one_case);

/* table[pattern] = what the majority of those who answered says; a tie is foreground, or background
 * if asked for. */
RCN_API void rcn_reference_majority(uint8_t *table, const rcn_votes *votes, int tie_background);

/* table[pattern] = what rater number `rater` says; RCN_NO_REFERENCE where he did not answer.
 * A STAPLE reference is the posterior by pattern, cut at one half, in the same kind of table. */
RCN_API void rcn_reference_rater(uint8_t *table, const rcn_votes *votes, int rater);

/* ---- sums ------------------------------------------------------------------------------------ */

typedef struct rcn_calib rcn_calib;

typedef struct rcn_calib_options {
    int bins;            /* 15 (default); 1 ... 1000 bins of equal width, [l, r), the last closed.
                            An edge belongs to the bin above it also when it was rounded to float32:
                            0.7f counts as 70 % */
    double threshold;    /* 0.5 (default): a voxel is predicted foreground from here on, for Dice */
    rcn_readout readout; /* majority (default); used where a case comes with levels */
    int at_least;        /* t of the readout "at least"; 0 (default) with the others */
} rcn_calib_options;

#define RCN_CALIB_OPTIONS_INIT {15, 0.5, RCN_READOUT_MAJORITY, 0}

/* NULL if the options can be used with so many raters, otherwise a sentence. */
RCN_API const char *rcn_calib_check(const rcn_calib_options *options, int raters);

/* Sums of no case yet. NULL options are the defaults. About 0.3 MB; rcn_calib_pack() makes it less.
 */
RCN_API rcn_status rcn_calib_create(rcn_calib **out, rcn_context *ctx, int raters,
                                    const rcn_calib_options *options);

/* NULL is fine. */
RCN_API void rcn_calib_destroy(rcn_calib *calib);

/* Adds one case; the case must have as many raters as the sums.
 *   RCN_EGEOMETRY  prediction and votes have different sizes
 *   RCN_EINVALID   K + 1 components do not fit the raters, or another element type
 *   RCN_EDATA      a probability outside [0, 1] or not a number, levels that do not add up to one
 *                  (within RCN_LEVEL_TOLERANCE): the sentence names voxel and value; or a region in
 *                  which nobody answered anything
 * Voxels outside the region are not looked at and may hold anything. On failure or cancel the sums
 * are as before. */
RCN_API rcn_status rcn_calib_add(rcn_calib *calib, rcn_context *ctx,
                                 const rcn_calib_case *one_case);

/* Adds the sums of another: the same raters and options. Adding cases to one rcn_calib, or to two
 * and merging, gives the same sums. */
RCN_API rcn_status rcn_calib_merge(rcn_calib *calib, rcn_context *ctx, const rcn_calib *other);

/* Makes the sums small, for callers that keep those of many cases: of the fine histogram only the
 * cells in which there are voxels stay, a few bytes each. Every function reads them as before, to
 * the same bits; adding to them makes them large again. On failure they stay as they are. */
RCN_API rcn_status rcn_calib_pack(rcn_calib *calib, rcn_context *ctx);

/* Adds up the sums of all processes, in all of them; the options must be the same. NULL: nothing.
 */
RCN_API rcn_status rcn_calib_share(rcn_calib *calib, rcn_context *ctx, rcn_comm *comm);

/* A copy with a life of its own. */
RCN_API rcn_status rcn_calib_copy(rcn_calib **out, rcn_context *ctx, const rcn_calib *calib);

/* Voxels of the region that somebody answered, and voxel-rater pairs. */
RCN_API int64_t rcn_calib_voxels(const rcn_calib *calib);
RCN_API int64_t rcn_calib_pairs(const rcn_calib *calib);

/* ---- figures -----------------------------------------------------------------------------------
 *
 * NaN means undefined (no AUC when all or nothing is foreground, nothing at
 * all without cases): a shell says "undefined" then, and writes null to JSON.
 */
typedef enum rcn_figure {
    RCN_MR_ECE = 0,      /* over all pairs: sum over bins of n_b / N |mean p - share of votes|. The
                       same as the ECE against the mean vote m */
    RCN_MR_ECE_DEBIASED, /* MR-ECE without what chance adds to it, see below; may be negative */
    RCN_RATER_ECE,       /* mean of the raters' own ECEs; never smaller than MR-ECE where all raters
                       answered the same voxels, and the difference measures rater bias */
    RCN_ECE, /* one reference: confidence max(p, 1 - p) of the prediction p >= 1/2 against
                       how often it is right */
    RCN_ECE_FOREGROUND, /* one reference: p against how often it is foreground */
    RCN_MCE,            /* over all pairs: the largest gap of a bin */
    RCN_ACE,            /* over all pairs: the mean gap of the non-empty bins */
    RCN_SIGNED,         /* over all pairs: mean p - share of votes; > 0: too high */
    RCN_OVER,           /* the part of MR-ECE from bins that promise too much ... */
    RCN_UNDER,          /* ... and too little: over + under = MR-ECE, over - under = signed */
    RCN_BRIER,          /* mean of (p - y)^2 over all pairs */
    RCN_NLL,            /* mean of -log(p or 1 - p) over all pairs, p cut to [1e-7, 1 - 1e-7] */
    RCN_RPS,            /* of levels, see below: mean of 1/(K + 1) sum_t (P(y >= t) - [y >= t])^2,
                           t = 1 ... K; the same as with P(y <= j), j = 0 ... K */
    RCN_LEVEL_NLL,      /* of levels: mean of -log p_y, p_y cut to [1e-7, 1 - 1e-7] */
    RCN_LEVEL_ECE,      /* of levels: the mean over t = 1 ... K, and ... */
    RCN_LEVEL_ECE_MAX,  /* ... the largest, of sum over bins of n_b / N |mean P(y >= t) - share of
                           voxels with y >= t|; bins as in MR-ECE, of voxels */
    RCN_AUC_HISTOGRAM,  /* AUC against the reference and ... */
    RCN_AUC_PAIRS_HISTOGRAM, /* ... over all pairs, from the fine histogram: an approximation, for
                                intervals; the exact ones are in rcn_auc.h */
    RCN_DICE,        /* 2 |P and R| / (|P| + |R|), P: p >= threshold, R: the reference; the mean
                        over cases. Cases where both are empty are left out, as are those without
                        a reference: there is no overlap to measure */
    RCN_DICE_POOLED, /* the same over the voxels of all cases together, so that large structures
                        count most; NaN when both are empty everywhere */
    RCN_SOFT_DICE,   /* mean Dice of p >= t and m >= t, t = .1, .3, .5, .7, .9; pooled */
    RCN_FIGURES      /* how many there are */
} rcn_figure;

/* ---- the debiased MR-ECE -----------------------------------------------------------------------
 *
 * A mean of absolute values is above zero by chance even where the predictions are right, and more
 * so with few cases. In bin b let case c have n_cb pairs with the gap d_cb = sum of p - y. The gap
 * of the bin is g_b = sum_c d_cb / n_b, n_b = sum_c n_cb. Its standard error over cases is e_b,
 *     e_b^2 = sum_c (d_cb - g_b n_cb)^2 / n_b^2 * k_b / max(k_b - 1, 1),
 * where k_b = n_b^2 / sum_c n_cb^2 is how many equal cases the bin is worth. Resampled cases
 * scatter around g_b as g_b does around the truth; the absolute value of a resampled gap is on
 * average larger than |g_b| by
 *     x_b = E|g_b + e_b Z| - |g_b|,   Z standard normal,
 * and the figure is
 *     MR-ECE - (1 + sqrt 2) sum_b n_b / N x_b.
 * The factor: without a true gap |g_b| has the mean e sqrt(2 / pi), and a resampled one, which
 * scatters twice, sqrt 2 times that, so that x_b is only sqrt 2 - 1 of what is to be taken off.
 * Where a gap is large, x_b vanishes. So the figure is zero on average for perfect predictions, and
 * MR-ECE where many cases agree. Cases of one patient count as cases. NaN below this many: */
#define RCN_DEBIASED_CASES 5

/* The key in JSON: "mr_ece", "rater_ece", "ece", ...; NULL for a number that is no figure. */
RCN_API const char *rcn_figure_name(rcn_figure figure);

/* All of them. */
RCN_API void rcn_calib_figures(double out[RCN_FIGURES], const rcn_calib *calib);

/* One rater alone. NaN where he answered nothing. */
RCN_API double rcn_calib_rater_ece(const rcn_calib *calib, int rater);
RCN_API double rcn_calib_rater_brier(const rcn_calib *calib, int rater);

/* Which pairs a reliability diagram is drawn from. */
typedef enum rcn_binning {
    RCN_BINS_WIDTH = 0, /* the options' bins, exact */
    RCN_BINS_MASS = 1 /* about equally many pairs in each: whole cells of the fine histogram, which
                         are at most 1/4096 wide and finer towards 0 and 1. Values that occur very
                         often (a background of zeros) leave bins empty */
} rcn_binning;

typedef struct rcn_calib_bin {
    double lower, upper; /* [lower, upper), the last closed */
    int64_t count;       /* pairs */
    double confidence;   /* their mean probability; NaN in an empty bin */
    double frequency;    /* their share of foreground votes; NaN in an empty bin */
} rcn_calib_bin;

/* out[0 ... bins - 1] of all raters together. */
RCN_API void rcn_calib_bins(rcn_calib_bin *out, const rcn_calib *calib, rcn_binning binning);

/* out[0 ... bins - 1] of one rater, bins of equal width. */
RCN_API void rcn_calib_rater_bins(rcn_calib_bin *out, const rcn_calib *calib, int rater);

/* What bins alone tell: sum n_b/N |gap|, the largest gap, the mean gap of non-empty bins; so that
 * ECE, MCE and ACE of equal-mass bins or of one rater need no further function. NaN without pairs.
 * A NULL output is skipped. */
RCN_API void rcn_calib_gaps(double *ece, double *mce, double *ace, const rcn_calib_bin *bins,
                            int count);

/* ---- levels ------------------------------------------------------------------------------------
 *
 * How many of the K raters mark a voxel is its level y, and a prediction is judged on
 * p_k = P(y = k) too, whatever the readout. Only voxels that all K raters answered count here:
 * elsewhere y is not known.
 *
 * A prediction of one probability p (1 component, or levels with nothing between their ends, see
 * rcn_levels_are_ends()) says nothing of the raters' agreement. It is judged through
 * p_k = C(K, k) p^k (1 - p)^(K - k): raters who decide independently of each other.
 */
typedef enum rcn_level_source {
    RCN_LEVELS_NONE = 0,      /* no voxel was answered by all raters */
    RCN_LEVELS_PREDICTED = 1, /* also with one rater, where both are the same */
    RCN_LEVELS_BINOMIAL = 2,  /* made of one probability */
    RCN_LEVELS_MIXED = 3      /* some cases have the one, some the other */
} rcn_level_source;

/* "none", "predicted", "binomial", "mixed"; NULL for a number that is no source. */
RCN_API const char *rcn_level_source_name(rcn_level_source source);

RCN_API rcn_level_source rcn_calib_level_source(const rcn_calib *calib);

/* Voxels that all raters answered, of which alone the levels are known. */
RCN_API int64_t rcn_calib_level_voxels(const rcn_calib *calib);

/* out[0 ... bins - 1] of voxels instead of pairs: P(y >= at_least) against [y >= at_least],
 * at_least = 1 ... K; rcn_calib_gaps() gives the calibration error. Bins of equal width. */
RCN_API void rcn_calib_level_bins(rcn_calib_bin *out, const rcn_calib *calib, int at_least);

/* A prediction is unsure from RCN_UNSURE to 1 - RCN_UNSURE of its expected readout (of one
 * probability: of that). The rule looks at the prediction alone: among voxels chosen by what the
 * raters say even a perfect prediction is off. */
#define RCN_UNSURE 0.05

typedef struct rcn_level_share {
    double predicted; /* mean of p_k; NaN without voxels */
    double observed;  /* share of voxels of this level; NaN without voxels */
    int64_t voxels;   /* of this level */
} rcn_level_share;

/* out[0 ... K]: how often each level is expected and occurs, everywhere or (unsure != 0) where the
 * prediction is unsure. */
RCN_API void rcn_calib_level_shares(rcn_level_share *out, const rcn_calib *calib, int unsure);

/* ---- MR-ECE without bins -----------------------------------------------------------------------
 *
 * Over the pairs i = 1 ... N, with a kernel K_h(x, p), a Gaussian of standard deviation h around p
 * that is reflected at 0 and 1:
 *     ece = integral over x from 0 to 1 of |sum_i (p_i - y_i) K_h(x, p_i)| / N.
 * As in a bin it is the mean probability near x, not x itself, that is compared with the share of
 * votes there, so that smoothing alone makes no error (Zhang, Kailkhura & Han 2020 compare x).
 * h is that of 2^-8, 2^-7.5, ... 2^-2 that predicts best what the votes of a case are when it is
 * left out: the one with the smallest Brier score of p_i less the smoothed mean of p - y of the
 * other cases at p_i. So a gap is smoothed as far as it repeats from case to case. (The likelihood
 * of the p_i themselves, which one might take, asks for the shape of their density: the peak of the
 * background, of which nothing is to be learned about calibration, makes the narrowest h the best,
 * and chance then adds more than in bins.) Beyond ten cases, ten groups of cases that follow each
 * other are left out in turn; of one case, voxels. Computed from the fine histograms on 1025 nodes.
 * NaN below two voxels. */
typedef struct rcn_kde {
    double ece;
    double bandwidth; /* h */
} rcn_kde;

/* cases[0 ... count - 1]: their sums. On failure *out is unchanged.
 *   RCN_EINVALID  no case, or sums that cannot be merged */
RCN_API rcn_status rcn_calib_kde(rcn_kde *out, rcn_context *ctx, const rcn_calib *const *cases,
                                 int64_t count);

/* The Brier score of all pairs taken apart (Murphy 1973) over the bins of equal width:
 *   reliability  sum n_b/N (mean p_b - share_b)^2      0 is best
 *   resolution   sum n_b/N (share_b - share)^2         large is good
 *   uncertainty  share (1 - share)                     the raters' own
 *   brier = reliability - resolution + uncertainty + remainder
 * The remainder is what bins cannot see (Stephenson et al. 2008): the variance of p within bins
 * minus twice its covariance with the votes there. It is 0 when p is constant within each bin. */
typedef struct rcn_brier {
    double brier, reliability, resolution, uncertainty, remainder;
} rcn_brier;

RCN_API rcn_brier rcn_calib_brier(const rcn_calib *calib);

#ifdef __cplusplus
}
#endif

#endif /* RCN_CALIB_H */
