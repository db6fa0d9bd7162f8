// SPDX-License-Identifier: Apache-2.0
/* RaterConsensus, the C library: what several raters' masks tell, and what can be learned from
 * them.
 *
 * A way through:
 *   1. rcn_context_create()      threads, memory, progress, error sentences
 *   2. rcn_votes_from_masks()    K raters' masks of one case, packed (rcn_votes.h)
 *      rcn_votes_add_labels()    or their label maps of several structures
 *   3. rcn_fuse()                one target map: levels, STAPLE, ... (rcn_fusion.h)
 *      rcn_agreement_create()    how far the raters agree, and where they do not (rcn_agreement.h)
 *   4. rcn_calib_add()           predicted probabilities against the raters (rcn_calib.h), on a
 *                                part of the image (rcn_region.h); exact AUC (rcn_auc.h)
 *      rcn_interval_compute()    how sure the figures are (rcn_interval.h)
 *      rcn_recalib_fit()         what makes 70 % mean 70 % (rcn_recalib.h)
 *   5. rcn_loss_run()            how far a network's outputs are from the votes (rcn_loss.h)
 *      rcn_optim_step()          one step of the optimizer over all parameters (rcn_optim.h)
 *      rcn_net_create()          a network to train on them and to predict with (rcn_net.h)
 *      rcn_train_step()          all of it together, one step after another (rcn_train.h)
 *      rcn_model_load()          one from a file, as PyTorch writes it too (rcn_model.h)
 *      rcn_image_reorder()       the axes that a network has learned (rcn_orient.h)
 *      rcn_normalize_fit()       from an image as read to what a network expects (rcn_normalize.h)
 *   6. rcn_predict_levels()      level probabilities of an image of any size (rcn_predict.h)
 *      rcn_predict_readout()     one probability of them, without keeping the others
 *      rcn_predict_means()       of several structures: the share of raters for each label, from
 *                                which rcn_levels_of_mean() has the levels of any (rcn_loss.h)
 *      rcn_shares_complete()     the shares of several structures and the background (rcn_shares.h)
 *      rcn_volume_predict()      what raters would measure, and between which values (rcn_volume.h)
 *
 * rcn_model.h and rcn_train.h need a build with jansson; in other builds their functions are
 * declared but not there.
 *
 * A whole program, from two raters' masks to a map of how many marked each voxel:
 *
 *     rcn_context *ctx = NULL;
 *     rcn_votes *votes = NULL;
 *     rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;      // RCN_ORC: the levels
 *     const rcn_geometry geometry = rcn_geometry_make(256, 256, 1);
 *     rcn_context_create(&ctx, NULL);                            // as many threads as there are
 *     rcn_votes_create(&votes, ctx, &geometry, 2);
 *     ...                                                        // rcn_votes_add() for each rater
 *     if (rcn_fuse(map, NULL, ctx, votes, &options) != RCN_OK)   // float map[256 * 256]
 *         fprintf(stderr, "%s\n", rcn_context_error(ctx));
 *     rcn_votes_destroy(votes);
 *     rcn_context_destroy(ctx);
 *
 * What holds for all functions:
 *   - One that can fail returns an rcn_status: 0 is success. The sentence for a person is
 *     rcn_context_error(), and lasts until the next call with that context.
 *   - Outputs come first, then the handle, inputs, sizes and options. On failure outputs are as
 *     before, unless the comment says otherwise.
 *   - Buffers belong to the caller. A *_create() gives a handle, which the caller ends with its
 *     *_destroy(); NULL is fine there. A pointer that is returned is borrowed from the handle.
 *   - Volumes lie as ITK and VTK keep them, x fastest. Lengths in the world are in millimeters,
 *     unless an image is in pixels (rcn_image.h).
 *   - Options come from their _INIT macro, which holds the defaults; most structs have a *_check()
 *     that says in one sentence why options cannot be used, without a context or any work.
 *   - A context is used by one thread at a time; it starts threads of its own. Two contexts are
 *     independent. Images and votes may be read from several.
 *   - Fusion, agreement and figures have the same bits for any number of threads.
 *   - Nothing here prints, exits or changes global state, but for the paths of files that are being
 *     written (rcn_file.h).
 *
 * For programs in C. The C++ classes above train through rcn_train.h and predict through
 * rcn_predict.h. The layer below is public, too, for those who write their own loop in C:
 * rcn_net_forward(), rcn_net_backward() and rcn_net_predict(), rcn_loss_run() with its
 * rcn_loss_labels() and rcn_loss_init_parameters(), rcn_optim_step() and its schedule,
 * rcn_recalib_value() for a single probability, and every *_check().
 */
#ifndef RCN_H
#define RCN_H

#include "rcn_agreement.h"
#include "rcn_color.h"
#include "rcn_comm.h"
#include "rcn_context.h"
#include "rcn_contours.h"
#include "rcn_fusion.h"
#include "rcn_auc.h"
#include "rcn_bootstrap.h"
#include "rcn_calib.h"
#include "rcn_data.h"
#include "rcn_file.h"
#include "rcn_hash.h"
#include "rcn_image.h"
#include "rcn_interval.h"
#include "rcn_loss.h"
#include "rcn_model.h"
#include "rcn_net.h"
#include "rcn_normalize.h"
#include "rcn_optim.h"
#include "rcn_orient.h"
#include "rcn_phantom.h"
#include "rcn_predict.h"
#include "rcn_recalib.h"
#include "rcn_region.h"
#include "rcn_shares.h"
#include "rcn_slice.h"
#include "rcn_status.h"
#include "rcn_train.h"
#include "rcn_volume.h"
#include "rcn_votes.h"

#define RCN_VERSION_MAJOR 0
#define RCN_VERSION_MINOR 1
#define RCN_VERSION_PATCH 0
#define RCN_VERSION "0.1.0"

#endif /* RCN_H */
