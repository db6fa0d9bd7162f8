// SPDX-License-Identifier: Apache-2.0
/* Fusion: one map out of K raters' masks.
 *
 * The methods, all computed from votes (m = share of the raters who marked a voxel, among those who
 * answered there; 0 where nobody answered):
 *
 *   ORC            the level: how many raters marked the voxel, 0 ... K
 *   RANDOM         one rater's mask, drawn uniformly with `seed`
 *   MEDIAN         1 where more than half marked, 0 where fewer did; a tie follows `tie`
 *   SOFT           m
 *
 *   SOFT_GAUSSIAN  m smoothed by a normalized Gaussian of `sigma` voxels, cut at 4 sigma, the
 *                  border voxel repeated outwards
 *
 *   STAPLE         Warfield, Zou and Wells 2004: the posterior probability that the hidden true
 *                  segmentation marks the voxel, or its mask at >= 0.5
 *
 *   SIMPLE         Langerak et al. 2010: majority of the raters who agree well with the majority
 *
 *   SVLS           Islam and Glocker 2021: half m, half the Gaussian-weighted mean (`sigma`) of the
 *                  3^d - 1 neighbors, the border voxel repeated outwards
 *
 * Where nobody answered, all of them give 0, and SOFT_GAUSSIAN and SVLS leave such voxels out of
 * their neighbors' weighted means (normalized convolution): a gap is not background. Whether
 * neighborhoods are 2-D or 3-D is decided by rcn_geometry_thin_axis(). Results have the same bits
 * for any number of threads.
 */
#ifndef RCN_FUSION_H
#define RCN_FUSION_H

#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rcn_method {
    RCN_ORC = 0,
    RCN_RANDOM = 1,
    RCN_MEDIAN = 2,
    RCN_SOFT = 3,
    RCN_SOFT_GAUSSIAN = 4,
    RCN_STAPLE = 5,
    RCN_SIMPLE = 6,
    RCN_SVLS = 7
} rcn_method;

/* "orc", "random", "median", "soft", "soft-gaussian", "staple", "simple", "svls"; NULL otherwise.
 */
RCN_API const char *rcn_method_name(rcn_method method);

/* What an exact half of the raters decides. */
typedef enum rcn_tie { RCN_TIE_FOREGROUND = 0, RCN_TIE_BACKGROUND = 1 } rcn_tie;

/* Whether STAPLE gives the posterior or the mask posterior >= 0.5. */
typedef enum rcn_staple_output { RCN_STAPLE_POSTERIOR = 0, RCN_STAPLE_MASK = 1 } rcn_staple_output;

typedef struct rcn_fusion_options {
    rcn_method method;
    rcn_tie tie;   /* default: foreground, as in "at least half" */
    double sigma;  /* voxels, > 0 and <= 64; default 1 */
    uint64_t seed; /* RANDOM; default 0 */

    rcn_staple_output staple_output; /* default: the posterior */
    double staple_confidence;        /* factor on the prior, > 0; default 1 */
    double staple_tolerance;         /* stop when no sensitivity or specificity moves more; 1e-7 */
    int staple_iterations;           /* give up after so many; default 10000 */
    int64_t staple_margin; /* < 0 (default): the whole image, as ITK does; otherwise only the box
                              around all marks grown by so many voxels. The background outside takes
                              part in the estimate, so the choice changes the result. */

    double simple_alpha; /* drop raters below mean - alpha * standard deviation; default 1 */
} rcn_fusion_options;

#define RCN_FUSION_OPTIONS_INIT                                                                    \
    {RCN_ORC, RCN_TIE_FOREGROUND, 1.0, 0, RCN_STAPLE_POSTERIOR, 1.0, 1e-7, 10000, -1, 1.0}

/* NULL if usable, otherwise the sentence that says why not. */
RCN_API const char *rcn_fusion_check(const rcn_fusion_options *options);

/* What the method found out besides the map. Fields that a method does not touch are 0; a number
 * that is not defined (the sensitivity when nothing is foreground) is NaN. */
typedef struct rcn_fusion_result {
    double prior;          /* STAPLE: probability of foreground before looking at a voxel's votes */
    int iterations;        /* STAPLE, SIMPLE */
    int converged;         /* STAPLE, SIMPLE: ended by itself */
    int64_t region_voxels; /* STAPLE: how many voxels took part */
    double sensitivity[RCN_MAX_RATERS]; /* STAPLE, by rater */
    double specificity[RCN_MAX_RATERS]; /* STAPLE, by rater */
    uint64_t inverted; /* STAPLE: those with sensitivity + specificity < 1, who mark the opposite */
    double weight[RCN_MAX_RATERS]; /* SIMPLE: Dice with the estimate, by rater */
    uint64_t kept;                 /* SIMPLE: the raters kept; RANDOM: the rater drawn */
} rcn_fusion_result;

/* Writes one float per voxel to out. result may be NULL. On failure out and result are unchanged,
 * except that a canceled call may have written part of out. */
RCN_API rcn_status rcn_fuse(float *out, rcn_fusion_result *result, rcn_context *ctx,
                            const rcn_votes *votes, const rcn_fusion_options *options);

/* The simple way, from masks in memory to the map. Where the method looks at patterns alone (not
 * SOFT_GAUSSIAN, SVLS, or STAPLE with a margin) and up to 16 raters answered everywhere, it needs
 * no memory beyond the map: the masks are read twice instead of being packed. masks as in
 * rcn_votes_from_masks(). */
RCN_API rcn_status rcn_fuse_masks(float *out, rcn_fusion_result *result, rcn_context *ctx,
                                  const rcn_mask *masks, int raters,
                                  const rcn_fusion_options *options);

/* rcn_fuse() without the map, for the methods whose result depends on a voxel's pattern alone (ORC,
 * RANDOM, MEDIAN, SOFT, STAPLE, SIMPLE): table[p] = the value of every voxel that carries pattern
 * p. The votes together with this table are the map, at the size of the codes; rcn_votes_expand()
 * writes it out. RCN_EINVALID for SOFT_GAUSSIAN and SVLS. */
RCN_API rcn_status rcn_fuse_patterns(float *table, rcn_fusion_result *result, rcn_context *ctx,
                                     const rcn_votes *votes, const rcn_fusion_options *options);

/* STAPLE on counted patterns: the algorithm itself, without voxels.
 *
 * INPUTS   patterns[count] of `raters` raters; patterns[].voxels is ignored, voxels[count] are the
 *          counts to use (those of a region, say); options.staple_*
 * OUTPUTS  posterior[count], result
 *
 * Starts from W = m and the prior g = mean of W over the voxels times staple_confidence, then
 * repeats p_r = sum(W y_r) / sum(W), q_r = sum((1 - W)(1 - y_r)) / sum(1 - W), and W from p and q
 * by Bayes' rule, as ITK's STAPLEImageFilter does, to the same fixed point. Raters who did not
 * answer a voxel drop out of its sums and products. All empty gives zeros, all full gives ones. */
RCN_API rcn_status rcn_staple(double *posterior, rcn_fusion_result *result, rcn_context *ctx,
                              const rcn_pattern *patterns, const int64_t *voxels, int64_t count,
                              int raters, const rcn_fusion_options *options);

/* ---- several structures ---------------------------------------------------------------------- */

/* One structure against the rest: all of the above on the votes that rcn_votes_select() gives. All
 * of them together: the following, on votes of rcn_votes_create_labels(). */

/* out[voxel] = the label that most raters gave, among those who answered; 0 where nobody did. A tie
 * goes to a structure before the background, and to the structure of the lower number. */
RCN_API rcn_status rcn_plurality(uint8_t *out, rcn_context *ctx, const rcn_votes *votes);

/* The same by pattern; rcn_votes_expand_u8() makes it a map. */
RCN_API rcn_status rcn_plurality_patterns(uint8_t *table, rcn_context *ctx, const rcn_votes *votes);

/* What STAPLE for labels found out besides the labels. */
typedef struct rcn_label_staple {
    double prior[RCN_MAX_STRUCTURES + 1]; /* share of each label among all answers; fixed */
    int iterations;
    int converged;            /* ended by itself */
    int64_t region_voxels;    /* how many voxels took part */
    int64_t undecided_voxels; /* where the largest posterior is not unique */
} rcn_label_staple;

/* STAPLE for labels (Rohlfing, Russakoff and Maurer 2004): the label that is most probably the true
 * one, and what each rater gives when a label is true.
 *
 * INPUTS   votes; options.staple_tolerance, staple_iterations and staple_margin. What is said about
 *          binary STAPLE and the region holds here too.
 * OUTPUTS  table[pattern]; posterior (patterns, C + 1), sums to one, NULL: not wanted; confusion
 *          (raters, C + 1, C + 1): P(rater gives the first label | the second is true), zeros
 *          for a rater who did not answer and a label that is true nowhere, NULL: not wanted;
 *          result, NULL: not wanted
 *
 * Starts from the plurality and repeats, as ITK's MultiLabelSTAPLEImageFilter does, to the same
 * fixed point: the posterior from priors and matrices by Bayes' rule, then the matrices from the
 * posterior, until no entry moves more than staple_tolerance. A rater who did not answer a voxel
 * drops out of its product and sums. Where the largest posterior is not unique (ITK: "undecided"),
 * plurality's rule about ties decides; where the matrices leave no label possible, posterior and
 * label are those of the votes. On failure the outputs are unchanged. */
RCN_API rcn_status rcn_label_staple_patterns(uint8_t *table, double *posterior, double *confusion,
                                             rcn_label_staple *result, rcn_context *ctx,
                                             const rcn_votes *votes,
                                             const rcn_fusion_options *options);

/* The same as a map: out[voxel]. Canceled: out is partly written. */
RCN_API rcn_status rcn_label_staple_make(uint8_t *out, double *confusion, rcn_label_staple *result,
                                         rcn_context *ctx, const rcn_votes *votes,
                                         const rcn_fusion_options *options);

#ifdef __cplusplus
}
#endif

#endif /* RCN_FUSION_H */
