// SPDX-License-Identifier: Apache-2.0
/* oneDNN's convolutions: the only door to it (rcn_dnn.c alone includes its header).
 *
 * Functions are those of rcn_conv.h, for this one way of convolving.
 */
#ifndef RCN_DNN_H
#define RCN_DNN_H

#include "rcn_conv.h"

/* The engine and its queue; one per network. */
rcn_status rcn__dnn_create(rcn__dnn **out, rcn_context *ctx);
void rcn__dnn_destroy(rcn__dnn *dnn, rcn_context *ctx); /* NULL is fine */

typedef struct rcn__dnn_conv rcn__dnn_conv;

rcn_status rcn__dnn_conv_create(rcn__dnn_conv **out, rcn__dnn *dnn, rcn_context *ctx,
                                const rcn__conv_shape *shape);
void rcn__dnn_conv_destroy(rcn__dnn_conv *conv, rcn_context *ctx); /* NULL is fine */

size_t rcn__dnn_conv_scratch_bytes(const rcn__dnn_conv *conv);

size_t rcn__dnn_conv_packed_bytes(const rcn__dnn_conv *conv);

rcn_status rcn__dnn_conv_pack(void *packed, rcn__dnn_conv *conv, rcn_context *ctx,
                              const float *weights, int64_t first_in, int64_t total_in,
                              int backward);

rcn_status rcn__dnn_conv_forward(float *out, rcn__dnn_conv *conv, rcn_context *ctx, const float *in,
                                 const void *packed, const float *bias, void *scratch);

rcn_status rcn__dnn_conv_backward_input(float *din, rcn__dnn_conv *conv, rcn_context *ctx,
                                        const float *dout, const void *packed, void *scratch);

rcn_status rcn__dnn_conv_backward_weights(float *dweights, float *dbias, rcn__dnn_conv *conv,
                                          rcn_context *ctx, const float *in, const float *dout,
                                          int64_t first_in, int64_t total_in, void *packed,
                                          void *scratch);

#endif /* RCN_DNN_H */
