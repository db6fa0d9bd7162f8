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
    double dice;    /* 2 |A and B| / (|A| + |B|); 1 when both are empty */
    double jaccard; /* |A and B| / |A or B|; 1 when both are empty */
    double kappa;   /* Cohen's kappa */
    /* NaN until rcn_agreement_measure_surfaces(); in pixels where the image is. */
    double hausdorff95_mm, mean_surface_mm;
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
    rcn_pair_agreement *pair;       /* [raters * raters]; the diagonal is a rater with itself */
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

/* Measures everything that follows from the table of patterns; surface distances stay NaN until
 * rcn_agreement_measure_surfaces(). *out belongs to the caller. RCN_EINVALID: no rater answered. */
RCN_API rcn_status rcn_agreement_create(rcn_agreement **out, rcn_context *ctx,
                                        const rcn_votes *votes);

/* Raters who outline several structures, over all labels together: the same coefficients for
 * nominal labels, the entropy of the labels' shares in bits. */
typedef struct rcn_label_agreement {
    rcn_overall_agreement whole;    /* over the whole image */
    rcn_overall_agreement on_union; /* over the voxels that somebody gave to any structure */
} rcn_label_agreement;

/* From votes of rcn_votes_create_labels(). kappa[raters * raters]: Cohen's kappa of each pair over
 * the voxels that both answered, NaN where it is not defined; NULL: not wanted. Each structure
 * against the rest is rcn_agreement_create() on what rcn_votes_select() gives. RCN_EINVALID: no
 * rater answered. */
RCN_API rcn_status rcn_agreement_labels(rcn_label_agreement *out, double *kappa, rcn_context *ctx,
                                        const rcn_votes *votes);

/* Fills in hausdorff95_mm and mean_surface_mm of every pair; `votes` are those of the agreement.
 *
 * A mask's surface is its voxels that have a face neighbor outside the mask. Beyond the image's
 * border counts as outside; a 2-D image has no neighbors across its thin axis. Distances are exact
 * (Euclidean, between voxel centers, with the voxel spacing), from every surface voxel of one rater
 * to the nearest surface voxel of the other, in both directions:
 *
 *   hausdorff95_mm   the larger of the two directions' 95th percentiles (linear interpolation)
 *   mean_surface_mm  the mean over both directions' distances together
 *
 * Both are 0 when both masks are empty and NaN when one is. Needs four bytes for each voxel of the
 * box around all marks. RCN_EGEOMETRY when the image's axes are not at right angles; on failure or
 * cancel the agreement is unchanged. */
RCN_API rcn_status rcn_agreement_measure_surfaces(rcn_agreement *agreement, rcn_context *ctx,
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

/* ---- disputed regions ------------------------------------------------------------------------ */

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
