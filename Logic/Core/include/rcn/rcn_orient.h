// SPDX-License-Identifier: Apache-2.0
/* Orientation: the same voxels stored along other axes.
 *
 * Files store a volume in any order: from left to right or back, slices across the body or along
 * it. The direction matrix says which. A network has learned one order, so images are brought to it
 * and results back: by swapping and reversing axes only, which changes no value.
 *
 * An order is named by three letters, one per axis: the side of the body that the axis runs to,
 * L/R (left, right), P/A (posterior, anterior), S/I (superior, inferior). "LPS" is an image whose
 * direction matrix is the identity. Oblique axes go by the side that is closest.
 *
 *     const rcn_order order = rcn_order_to("LPS", &image.geometry, 0);
 *     if (!rcn_order_is_identity(&order)) rcn_image_reorder(turned, ctx, &image, &order);
 *     ...                                                    // predict on what was turned
 *     const rcn_order back = rcn_order_inverse(&order);      // and bring the map back
 *
 * Functions without a context do not fail, keep no state and may be called from any thread.
 */
#ifndef RCN_ORIENT_H
#define RCN_ORIENT_H

#include "rcn_image.h"
#include "rcn_votes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How to store an image anew: axis a is the old axis from[a], backwards where flip[a] is 1. */
typedef struct rcn_order {
    int from[3]; /* 0, 1, 2, each once */
    int flip[3];
} rcn_order;

#define RCN_ORDER_INIT {{0, 1, 2}, {0, 0, 0}}

/* Whether the text names an order: three letters, one for each pair of sides. */
RCN_API int rcn_axes_check(const char *axes);

/* axes[4] = the letters of an image as it is stored; empty for a 2-D image and for one in
 * pixels, which have no place in the body. For an image that is one slice, its thin axis counts as
 * the last one. */
RCN_API void rcn_axes_of(char axes[4], const rcn_geometry *geometry);

/* The order that brings an image to these axes. Images without a place in the body, and NULL or
 * empty axes: as it is stored.
 *   slices  non-zero: for work slice by slice. An image that is one slice is then that slice,
 *           wherever it lies: its thin axis becomes the last one, the others follow `axes` */
RCN_API rcn_order rcn_order_to(const char *axes, const rcn_geometry *geometry, int slices);

/* The order that undoes another one. */
RCN_API rcn_order rcn_order_inverse(const rcn_order *order);

/* Whether everything stays where it is. */
RCN_API int rcn_order_is_identity(const rcn_order *order);

/* The geometry of the image stored anew: every voxel keeps its place in the world. An axis that is
 * reversed has the opposite direction, and the origin is where its last voxel was. */
RCN_API rcn_geometry rcn_geometry_reorder(const rcn_geometry *geometry, const rcn_order *order);

/* out = the image's voxels in the new order, of the same type and number of components; must not be
 * the image's own buffer. Canceled: partly written. */
RCN_API rcn_status rcn_image_reorder(void *out, rcn_context *ctx, const rcn_image *image,
                                     const rcn_order *order);

/* Votes in the new order; their table stays. On failure or cancel they are as before. */
RCN_API rcn_status rcn_votes_reorder(rcn_votes *votes, rcn_context *ctx, const rcn_order *order);

#ifdef __cplusplus
}
#endif

#endif /* RCN_ORIENT_H */
