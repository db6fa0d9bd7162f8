// SPDX-License-Identifier: Apache-2.0
/* Volumes: what raters would measure, from a predicted map, and how far that can be trusted.
 *
 *     rcn_volume volume;
 *     rcn_volume_predict(&volume, ctx, &levels, raters);
 *     volume.expected                      what a rater marks on average, in voxels
 *     volume.at_least[0]                   what the most generous of the raters marks
 *     volume.at_least[raters - 1]          what the strictest marks
 *     rcn_volume_interval(&low, &high, &volume, quantile)    between which a rater's volume lies
 *
 * Everything is in voxels; the size of a voxel (rcn_geometry_voxel_ml(), rcn_geometry_pixel_mm2())
 * is the caller's to multiply with. Volumes are of the whole image, whatever region is judged.
 *
 * V_t = sum over voxels of P(at least t of K raters mark it) is the expected volume of the t-th
 * most generous of K raters whose outlines are nested. With a mass of 1/K on each V_t they are a
 * predicted distribution of one rater's volume; its mean is the expected volume. A map of one
 * probability says nothing of the raters' agreement; it is read through Binomial(K, p), as in
 * rcn_calib.h.
 */
#ifndef RCN_VOLUME_H
#define RCN_VOLUME_H

#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rcn_volume {
    int raters;                      /* K */
    int binomial;                    /* made of one probability */
    double expected;                 /* sum of the expected share of raters */
    double at_least[RCN_MAX_RATERS]; /* [t - 1] = V_t, never rising */
} rcn_volume;

/* The volumes of a map: float32 with 1 component (a probability) or raters + 1 (levels).
 *   RCN_EINVALID  another number of components or another type
 *   RCN_EDATA     a probability outside [0, 1] or not a number, levels that do not add up to one:
 *                 the sentence names voxel and value
 * On failure or cancel *out is unchanged. The same bits for any number of threads. */
RCN_API rcn_status rcn_volume_predict(rcn_volume *out, rcn_context *ctx,
                                      const rcn_image *prediction, int raters);

/* ---- levels that are not kept ------------------------------------------------------------------
 *
 * What volumes and components need of levels that come a slab at a time (rcn_predict_slabs()):
 * sums, and five bytes per voxel instead of 4 (K + 1).
 *
 *     rcn_volume_sums sums = {.raters = raters};
 *     rcn_volume_add_slab(&sums, share + first, likely + first, ctx, &levels);      for each slab
 *     rcn_volume_of_sums(&volume, ctx, &sums, &share_image);
 *     rcn_volume_components_of_share(&components, &count, ctx, &sums, &share_image, likely);
 *
 * The figures are those of the whole map but for rounding of sums, the components the same. */
typedef struct rcn_volume_sums {
    int raters;                        /* K, set beforehand */
    int between;                       /* a level between 0 and K was seen */
    double levels[RCN_MAX_RATERS + 1]; /* sums over voxels */
} rcn_volume_sums;

/* Adds a slab of levels. share[voxel] = the expected share of raters, as the readout "expected";
 * likely[voxel] = the most raters that mark the voxel more likely than not. Errors as above; then
 * `sums` is unchanged, share and likely partly written. */
RCN_API rcn_status rcn_volume_add_slab(rcn_volume_sums *sums, float *share, uint8_t *likely,
                                       rcn_context *ctx, const rcn_image *levels);

/* The volumes, when all slabs have been added; `share` of all voxels, in any order. */
RCN_API rcn_status rcn_volume_of_sums(rcn_volume *out, rcn_context *ctx,
                                      const rcn_volume_sums *sums, const rcn_image *share);

/* out[rater] = voxels that the rater marked; NaN where he did not answer the whole image, whose
 * volume is not known then. Returns how many are known. */
RCN_API int rcn_volume_of_raters(double *out, const rcn_votes *votes);

/* ---- how good a prediction was ----------------------------------------------------------------
 */

/* The continuous ranked probability score of the predicted distribution against one rater's volume
 * x: the integral of (F(y) - [x <= y])^2 over y. 0 is best; of a distribution on one value it is
 * the distance from x. In voxels, and so in any unit when the volumes are. */
RCN_API double rcn_volume_crps(const rcn_volume *volume, double x);

/* The CRPS of the CURVAS challenge (Riera-Marin et al. 2024), which asks the other way round: F is
 * the normal distribution with the mean and the standard deviation (of the population) of the
 * raters' volumes, x is the expected volume, and the integral goes over mean -+ 3 deviations. In
 * closed form here. The challenge's own program replaces F by a line through 100 of its values
 * between the quantiles 0.01 and 0.99, which changes the score by up to 0.006 deviations.
 * NaN values are skipped; NaN without two different volumes, where the distribution has no width.
 */
RCN_API double rcn_volume_curvas_crps(double expected, const double *volumes, int count);

/* ---- intervals ---------------------------------------------------------------------------------
 *
 * Conformal intervals: how far raters' volumes were from the prediction on cases that the model was
 * not trained on tells how far they will be on the next one, whatever the model's own idea of it.
 *
 *   score     of a rater's volume x: how many times the scale of its side it lies off,
 *                 (E - x) / (E - V_K + c (E + 1))   below the expected volume E
 *                 (x - E) / (V_1 - E + c (E + 1))   above it,     c = RCN_VOLUME_RELATIVE
 *   quantile  q of the scores, see rcn_volume_quantile()
 *   interval  all x with a score of at most q
 *
 * A plain score, how far x is outside [V_K, V_1] relative to E, covers as well: both do by
 * construction. But where a map is wider than raters differ its quantile is negative and takes the
 * same share of E off every case, so that an interval can be empty or lie beside E; and on phantoms
 * it was up to 7 % wider, and never narrower (Testing/Benchmarks/bench_volumes.py). This one never
 * crosses, always holds E, and follows what the map says of this case. The share of E keeps the
 * scale above zero for maps without any doubt, and one voxel does for empty ones. */
#define RCN_VOLUME_RELATIVE 0.2

/* NaN where x is. */
RCN_API double rcn_volume_score(const rcn_volume *volume, double x);

/* *out = the quantile of scores for intervals that hold a rater's volume with at least the
 * probability `level`. unit[i] (0, 1, ...; at most `count` of them) is the case, or the patient,
 * of score i: raters of one case are no independent evidence, so each unit weighs the same, and one
 * more of them, which may lie anywhere, stands for the next case (Lee, Barber & Willett 2023). So
 * the promise holds for any number of units, and the intervals are wide with few: they hold up to
 * 1 / units more than they promise.
 * NaN scores are skipped. *out is INFINITY with fewer units than rcn_volume_units() tells. */
RCN_API rcn_status rcn_volume_quantile(double *out, rcn_context *ctx, const double *scores,
                                       const int *unit, int64_t count, double level);

/* How many cases, or patients, an interval of this level takes: 4 for 0.8, 19 for 0.95. */
RCN_API int rcn_volume_units(double level);

/* All volumes with a score of at most `quantile`; low is never negative. NaN both where the
 * quantile is not finite. */
RCN_API void rcn_volume_interval(double *low, double *high, const rcn_volume *volume,
                                 double quantile);

/* ---- many cases --------------------------------------------------------------------------------
 */

/* What is kept of a case: in any one unit, all cases alike. */
typedef struct rcn_volume_row {
    double expected;    /* E */
    double raters;      /* mean of the raters' volumes */
    double crps;        /* mean over the raters */
    double curvas_crps; /* NaN: undefined */
    double inside[2];   /* share of the raters whose volume is in the interval of 80 %, and 95 %;
                           NaN: there was none */
} rcn_volume_row;

/* The levels that inside[] belongs to. */
#define RCN_VOLUME_LEVELS {0.80, 0.95}

/* Means over cases; NaN where no case has the number. */
typedef struct rcn_volume_figures {
    int64_t cases; /* with volumes of raters */
    double crps, curvas_crps;
    double coverage[2]; /* of the intervals, over cases and raters */
    int64_t covered_cases[2];
    /* Bland & Altman (1986), of the differences E - mean of the raters, over cases: */
    double bias;                  /* their mean */
    double deviation;             /* their standard deviation (n - 1); NaN with one case */
    double agree_low, agree_high; /* limits of agreement: bias -+ 1.96 deviations */
    int64_t curvas_cases;         /* that have a curvas_crps */
} rcn_volume_figures;

/* Rows whose `raters` is NaN are skipped. */
RCN_API void rcn_volume_summarize(rcn_volume_figures *out, const rcn_volume_row *rows,
                                  int64_t count);

/* ---- components --------------------------------------------------------------------------------
 */

/* A connected set of voxels that any rater marks more likely than not, P(y >= 1) >= 1/2. Voxels
 * that touch by a face, edge or corner belong together. Faint voxels outside of all components
 * belong to the expected volume of the map, but to none of these. */
typedef struct rcn_volume_component {
    int64_t voxels;
    double expected; /* its part of the expected volume, in voxels */
    double highest;  /* the highest expected share of raters in it */
    int at_least;  /* the most raters t that mark one of its voxels more likely than not: 1 is "any
                        rater" only, and t >= K / 2 a majority */
    int64_t at[3]; /* the voxel with the highest share: a place to visit */
} rcn_volume_component;

/* The components, largest expected volume first (ties: by place). *out is released with
 * rcn_volume_components_destroy(); NULL and *count 0 when there are none. Errors as for
 * rcn_volume_predict(). */
RCN_API rcn_status rcn_volume_components_create(rcn_volume_component **out, int64_t *count,
                                                rcn_context *ctx, const rcn_image *prediction,
                                                int raters);

/* The same of levels that were not kept, see rcn_volume_add_slab(). Voxels may have been reordered
 * since, `share` and `likely` alike. */
RCN_API rcn_status rcn_volume_components_of_share(rcn_volume_component **out, int64_t *count,
                                                  rcn_context *ctx, const rcn_volume_sums *sums,
                                                  const rcn_image *share, const uint8_t *likely);
RCN_API void rcn_volume_components_destroy(rcn_volume_component *components, rcn_context *ctx);

#ifdef __cplusplus
}
#endif

#endif /* RCN_VOLUME_H */
