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

#endif /* RCN_LOSS_PRIVATE_H */
