// SPDX-License-Identifier: Apache-2.0
/* Agreement: how far K raters agree on one case, and where they do not.
 *
 * Everything but the surfaces and the disputed regions follows from the table of patterns, without
 * another look at the voxels. A number that is not defined (kappa of one rater, Dice of two empty
 * masks is 1, but their kappa is not defined) is NaN in these structs; writers show it as "not
 * defined", never as NaN.
 */
#ifndef RCN_AGREEMENT_H
#define RCN_AGREEMENT_H

#include "rcn_fusion.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One rater. "The others" are the remaining raters' majority at each voxel, where this rater and at
 * least one other answered; a voxel on which the others are split evenly has no majority and does
 * not count. */
typedef struct rcn_rater_agreement {
    int present;      /* 0: did not answer this case; all else is NaN or 0 then */
    int64_t voxels;   /* marked */
    double volume_ml; /* NaN for an image in pixels */
    double dice_to_others;
    double sensitivity_to_others; /* share of the others' foreground that this rater marks */
    double specificity_to_others;
    int64_t others_split_voxels; /* left out of these three: the others are split evenly */
    double staple_sensitivity;   /* as estimated by STAPLE on the whole image */
    double staple_specificity;
} rcn_rater_agreement;

/* Two raters, over the voxels that both answered. */
typedef struct rcn_pair_agreement {
    double dice;           /* 2 |A and B| / (|A| + |B|); 1 when both are empty */
    double jaccard;        /* |A and B| / |A or B|; 1 when both are empty */
    double kappa;          /* Cohen's kappa */
    double hausdorff95_mm; /* see rcn_surfaces; NaN until measured; pixels for an image in pixels */
    double mean_surface_mm; /* likewise */
} rcn_pair_agreement;

/* Chance-corrected agreement of all raters over a set of voxels. */
typedef struct rcn_overall_agreement {
    double fleiss_kappa;       /* Fleiss 1971; over voxels that all present raters answered */
    double krippendorff_alpha; /* nominal; missing answers allowed */
    double gwet_ac1;           /* Gwet 2008; missing answers allowed; steady under low prevalence */
    double mean_entropy;       /* of the mean vote, in bits, 0 ... 1 */
} rcn_overall_agreement;

typedef struct rcn_agreement {
    int raters;        /* K slots */
    int present_count; /* how many answered this case */
    rcn_rater_agreement rater[RCN_MAX_RATERS];
    rcn_pair_agreement
        *pair; /* [raters * raters], symmetric; the diagonal is a rater with itself */
    rcn_overall_agreement whole;    /* over the whole image */
    rcn_overall_agreement on_union; /* over the voxels that somebody marked: no easy background */
    double mean_dice;               /* over all pairs of present raters */
    int64_t level_voxels[RCN_MAX_RATERS + 1]; /* voxels marked by exactly 0 ... K raters */
    double voxel_ml;
    int64_t union_voxels;    /* marked by anybody */
    int64_t majority_voxels; /* marked by at least half of those who answered: of two, by anybody */
    int64_t intersection_voxels; /* marked by all who answered */
    int64_t disputed_voxels;     /* marked by some, not by all who answered */
} rcn_agreement;

/* Measures everything that the patterns tell. The surface distances are NaN afterwards. */
RCN_API rcn_status rcn_agreement_create(rcn_agreement **out, rcn_context *ctx,
                                        const rcn_votes *votes);

/* NULL is fine. */
RCN_API void rcn_agreement_destroy(rcn_agreement *agreement, rcn_context *ctx);

/* How good a kappa or alpha is, in words (Landis and Koch 1977): "poor" ... "almost perfect";
 * "not defined" for NaN. The scale has two digits, and the value is rounded to them first: what is
 * printed as 0.80 is "substantial", whether it is 0.796 or 0.804. */
RCN_API const char *rcn_kappa_words(double kappa);

/* The scale itself: the words of step 0, 1, ... and the largest value they stand for; NULL after
 * the last one. up_to may be NULL. */
RCN_API const char *rcn_kappa_scale(double *up_to, int step);

/* out[voxel] = entropy of the mean vote in bits: 0 where all agree, 1 where half of them mark. */
RCN_API rcn_status rcn_agreement_entropy_map(float *out, rcn_context *ctx, const rcn_votes *votes);

/* ---- surfaces
 * ------------------------------------------------------------------------------------
 *
 * A mask's surface is its voxels that have a face neighbour outside the mask (beyond the image's
 * border counts as outside; in a 2-D image there are no neighbours across the thin axis). Axes that
 * are not at right angles are refused. The distance of two raters is taken from every surface voxel
 * of one to the nearest surface voxel of the other, in both directions: hausdorff95_mm   the larger
 * of the two directions' 95th percentiles (linear interpolation) mean_surface_mm  the mean over
 * both directions' distances together Both are NaN when one mask is empty (0 when both are).
 *
 * The core finds the surfaces and does the statistics; the distance maps come from outside (ITK),
 * one per rater, so: rcn_surfaces_create(&s, ...); for each present rater r: distance map in mm of
 * rcn_surfaces_mask(s, r) -> rcn_surfaces_measure() rcn_surfaces_finish(agreement, s);
 */
typedef struct rcn_surfaces rcn_surfaces;

/* Works on the box around all marks, so that empty background costs nothing. */
RCN_API rcn_status rcn_surfaces_create(rcn_surfaces **out, rcn_context *ctx,
                                       const rcn_votes *votes);
RCN_API void rcn_surfaces_destroy(rcn_surfaces *surfaces);

/* The box, for the geometry of the mask and the distance map. */
RCN_API const rcn_box *rcn_surfaces_box(const rcn_surfaces *surfaces);

/* Number of surface voxels of a rater. */
RCN_API int64_t rcn_surfaces_count(const rcn_surfaces *surfaces, int rater);

/* out[voxel of the box] = 1 on the surface of `rater`, 0 elsewhere. */
RCN_API void rcn_surfaces_mask(uint8_t *out, const rcn_surfaces *surfaces, int rater);

/* Takes the distance in mm from every voxel of the box to the surface of `rater` and reads it at
 * the surfaces of all other raters. */
RCN_API rcn_status rcn_surfaces_measure(rcn_surfaces *surfaces, rcn_context *ctx, int rater,
                                        const float *distance_mm);

/* Fills in hausdorff95_mm and mean_surface_mm of all pairs that were measured both ways. */
RCN_API rcn_status rcn_surfaces_finish(rcn_agreement *agreement, rcn_surfaces *surfaces,
                                       rcn_context *ctx);

/* ---- disputed regions
 * ---------------------------------------------------------------------------- */

/* A connected set of disputed voxels (marked by some, not by all who answered); voxels that touch
 * by a face, edge or corner belong together. */
typedef struct rcn_dispute {
    int64_t voxels;
    double volume_ml;
    double centroid[3];       /* as a voxel index, possibly fractional */
    double centroid_world[3]; /* in mm, in the geometry's world */
    int64_t at[3];            /* the region's voxel nearest to the centroid: a place to visit */
    uint64_t marked_by;       /* raters who mark any of it */
    int max_votes;            /* the most raters who mark one of its voxels */
    rcn_box box;
} rcn_dispute;

/* The disputed regions, largest first (ties: in order of their first voxel). *out is released with
 * rcn_disputes_destroy(); NULL and *count 0 when there are none. */
RCN_API rcn_status rcn_disputes_create(rcn_dispute **out, int64_t *count, rcn_context *ctx,
                                       const rcn_votes *votes);
RCN_API void rcn_disputes_destroy(rcn_dispute *regions, rcn_context *ctx);

#ifdef __cplusplus
}
#endif

#endif /* RCN_AGREEMENT_H */
