// SPDX-License-Identifier: Apache-2.0
/* What training needs of a loss beyond its public side. */
#ifndef RCN_LOSS_PRIVATE_H
#define RCN_LOSS_PRIVATE_H

#include "rcn/rcn_loss.h"

/* The raw outputs for which the loss predicts these levels: biases[rcn_loss_channels()] of a last
 * layer. A loss with thresholds of its own gets those instead, in parameters, beside outputs that
 * stay as they are; what neither of the two decides is left alone.
 *   levels  P(y = k), k = 0 ... K; all above 0, summing to one */
void rcn__loss_biases(float *biases, float *parameters, const rcn_loss *loss, const double *levels);

/* The same for the kinds of several structures, from the shares of the labels 0 ... C. */
void rcn__loss_label_biases(float *biases, const rcn_loss *loss, const double *shares);

/* rcn_loss_run() for a batch that is shared out over processes, each with its own samples: the mean
 * and the gradients are those of the whole batch, and result and parameter_gradient the same
 * everywhere. comm NULL: one process. */
rcn_status rcn__loss_run_shared(rcn_loss_result *result, float *gradient, float *parameter_gradient,
                                const rcn_loss *loss, rcn_context *ctx, rcn_comm *comm,
                                const float *logits, const float *parameters,
                                const rcn_loss_target *targets, int64_t samples, int64_t voxels);

/* ---- reading outputs ------------------------------------------------------------------------- */

/* As many neighbors at most are read at a time. */
enum { RCN_LOSS_LANES = 64 };

/* What is wanted of each voxel: the levels of the only structure, the means of all labels, or the
 * levels of one structure, 1 ... C. */
enum { RCN_WANT_LEVELS = -1, RCN_WANT_MEANS = 0 };

/* Takes what `count` voxels of a sample give, from voxel `first` on: number k of voxel first + i is
 * values[k * RCN_LOSS_LANES + i]. Any order, several threads at a time, each voxel once. */
typedef void (*rcn__loss_sink)(const float *values, int64_t sample, int64_t first, int count,
                               void *payload);

/* What was not finite, see rcn__loss_read(). */
enum { RCN_BAD_LOGITS = 1, RCN_BAD_RESULTS = 2 };

/* Outputs of the network, and which of them are read. */
typedef struct rcn__loss_source {
    const rcn_loss *loss;
    const float *parameters;
    const float *logits;     /* (samples, channels, voxels) */
    int64_t samples, voxels; /* of the batch */
    int64_t first, end;      /* the voxels of each sample that are read */
    int wanted;
} rcn__loss_source;

/* Gives `sink` what is wanted of each voxel, in one pass over the logits and without another one
 * over the results. *bad (NULL: not wanted) = RCN_BAD_LOGITS | RCN_BAD_RESULTS where some of those
 * that were read are not finite; the sink gets these, too. */
rcn_status rcn__loss_read(int *bad, rcn_context *ctx, const rcn__loss_source *source,
                          rcn__loss_sink sink, void *payload);

#endif /* RCN_LOSS_PRIVATE_H */
