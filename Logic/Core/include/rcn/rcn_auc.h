// SPDX-License-Identifier: Apache-2.0
/* The area under the ROC curve, exactly: ties count one half (mid-rank).
 *
 * AUC is the share of (positive, negative) couples in which the positive one has the higher
 * probability. It cannot be put together from the AUCs of cases, so pooling cases exactly means
 * keeping their probabilities: four bytes for each voxel of the region that somebody answered, and
 * about one megabyte for each million of them, from rcn_auc_add() to rcn_auc_destroy(). Where that
 * is too much, RCN_AUC_HISTOGRAM of rcn_calib.h is an approximation with a known bound, in a third
 * of a megabyte.
 *
 * How: float32 probabilities have at most 2^30 bit patterns, ordered like the values. Voxels are
 * dealt into buckets by the upper bits and counted there by the lower ones; nothing is sorted but
 * buckets with few voxels. The counts are integers: the same bits for any number of threads and
 * any order of cases.
 */
#ifndef RCN_AUC_H
#define RCN_AUC_H

#include "rcn_calib.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opaque: the probabilities of all cases added so far.
 *
 *     rcn_auc *auc = NULL;
 *     rcn_auc_result result;
 *     rcn_auc_create(&auc, ctx, raters, RCN_READOUT_MAJORITY, 0);
 *     for (int i = 0; i < cases; ++i) rcn_auc_add(auc, ctx, &one_case[i]);
 *     rcn_auc_compute(&result, ctx, auc);                  // as often as wanted, adding in between
 *     rcn_auc_destroy(auc);
 */
typedef struct rcn_auc rcn_auc;

/* Collects nothing yet. The readout is used where a case comes with levels. */
RCN_API rcn_status rcn_auc_create(rcn_auc **out, rcn_context *ctx, int raters, rcn_readout readout,
                                  int at_least);

/* NULL is fine. */
RCN_API void rcn_auc_destroy(rcn_auc *auc);

/* Adds a case; errors as for rcn_calib_add(). On failure or cancel nothing has been added. */
RCN_API rcn_status rcn_auc_add(rcn_auc *auc, rcn_context *ctx, const rcn_calib_case *one_case);

typedef struct rcn_auc_result {
    double reference; /* voxels, against the cases' reference (the majority unless told); NaN: all
                         or none of them are foreground, so that AUC is undefined */
    double pairs;     /* voxel-rater pairs, against the votes; NaN likewise */
    int64_t reference_positives, reference_negatives;
    int64_t pair_positives, pair_negatives;
} rcn_auc_result;

/* The AUC of all cases together. On failure or cancel *out is unchanged. */
RCN_API rcn_status rcn_auc_compute(rcn_auc_result *out, rcn_context *ctx, const rcn_auc *auc);

/* The same of the cases of all processes together, in all of them: the bits that one process with
 * all cases would find. Each counts a part of the probabilities, so that none holds all of them.
 * comm NULL: rcn_auc_compute(). */
RCN_API rcn_status rcn_auc_compute_shared(rcn_auc_result *out, rcn_context *ctx, const rcn_auc *auc,
                                          rcn_comm *comm);

#ifdef __cplusplus
}
#endif

#endif /* RCN_AUC_H */
