// SPDX-License-Identifier: Apache-2.0
/* What a training keeps to itself, for tests to look at. */
#ifndef RCN_TRAIN_PRIVATE_H
#define RCN_TRAIN_PRIVATE_H

#include "rcn/rcn_train.h"

/* One label per vote code and a void one for RCN_VOID_CODE(). Borrowed. */
const rcn_loss_label *rcn__target_labels(const rcn_target *target);

/* Strategies for several structures: how many raters gave each label, and their shares for those
 * that learn these; (codes and the void one, C + 1) each, or NULL. Borrowed. */
const uint8_t *rcn__target_counts(const rcn_target *target);
const float *rcn__target_shares(const rcn_target *target);

/* A number made of all weights and moments: two trainings that went the same way have the same.
 * Several processes compare it after every epoch; a step fails with RCN_EINTERNAL when they have
 * gone apart. */
uint64_t rcn__train_hash(const rcn_train *train);

#endif /* RCN_TRAIN_PRIVATE_H */
