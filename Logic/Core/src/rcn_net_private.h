// SPDX-License-Identifier: Apache-2.0
/* A network inside: a graph that knows no image size, and plans that run it for one size.
 *
 * The graph (rcn_net_graph.c; the architectures in rcn_net_unet.c and rcn_net_fpn.c) is a list of
 * operations in the order of running, each making one tensor. A plan (rcn_net_plan.c) holds the
 * kernels and the place of every tensor in memory.
 */
#ifndef RCN_NET_PRIVATE_H
#define RCN_NET_PRIVATE_H

#include "rcn/rcn_net.h"
#include "rcn_context_private.h"
#include "rcn_layers.h"

enum {
    RCN_MAX_TENSORS = 320,
    RCN_MAX_PARAMETERS = 640,
    RCN_MAX_INPUTS = 4,
    RCN_MAX_PLANS = 6,
    RCN_BUCKET = 1 << 18, /* gradients that travel together: a megabyte */
    RCN_SWEEP = 1 << 20,  /* floats of a map of one image that is worth a sweep: no core's own cache
                             holds it */
    RCN_NONE = -1
};

typedef enum rcn__op_kind {
    RCN_OP_CONV = 0,     /* of one tensor, or of two as if they were one behind the other */
    RCN_OP_NORM = 1,     /* inputs: x, and a residual or none; ends with ReLU if .relu */
    RCN_OP_POOL = 2,     /* largest value */
    RCN_OP_SHUFFLE = 3,  /* second half of a transposed convolution; .stride */
    RCN_OP_NEAREST = 4,  /* input 1 + input 0 enlarged by 2; in place of input 1 */
    RCN_OP_BILINEAR = 5, /* enlarged by .factor */
    RCN_OP_MERGE = 6,    /* the sum of its inputs, with dropout; in place of input 0 */
    RCN_OP_OUTPUT = 7    /* the logits, enlarged by .factor, as the caller wants them */
} rcn__op_kind;

typedef struct rcn__op {
    rcn__op_kind kind;
    int in[RCN_MAX_INPUTS], inputs;            /* tensors */
    int out;                                   /* tensor; RCN_NONE for the logits */
    int weight, bias, mean, variance, counter; /* parameters or RCN_NONE */
    int64_t kernel[3], stride[3], pad[3];      /* z, y, x */
    int transposed; /* convolution: first half of a transposed one, weights are (in, out, taps) */
    rcn__norm_kind norm;
    int64_t groups;
    int relu;
    int64_t factor;
} rcn__op;

typedef struct rcn__graph_tensor {
    int64_t channels;
    int64_t stride[3]; /* voxels of the image that one of it stands for: z, y, x */
    int producer;      /* operation; RCN_NONE for the image */
} rcn__graph_tensor;

typedef struct rcn__plan rcn__plan;

struct rcn_net {
    rcn_context *ctx;
    rcn_net_options options;
    int dimensions;

    rcn__graph_tensor tensors[RCN_MAX_TENSORS]; /* 0 is the image */
    int tensor_count;
    rcn__op ops[RCN_MAX_TENSORS];
    int op_count;
    int encoder_ops;      /* the first so many: those up to the last parameter named "encoder." */
    int64_t multiple[3];  /* what a size must be a multiple of: z, y, x */
    int64_t sweep_floats; /* RCN_SWEEP; something else in tests */

    rcn_parameter *parameters;
    int parameter_count;
    int64_t floats, trained_floats;
    float *values;
    float *gradients; /* in the arena, from a backward pass to the next pass; otherwise NULL */
    uint64_t version; /* of the values: plans for prediction keep packed copies */

    rcn__plan *plans[RCN_MAX_PLANS]; /* latest first */
    void *arena;                     /* activations and scratch memory, shared by all plans */
    size_t arena_bytes;

    /* Training over several processes. */
    rcn_comm *comm; /* NULL: this one only */
    int64_t first_image;
    int local_norms;

    /* What a backward pass goes back through. */
    rcn__plan *pending;
    const float *images;
};

/* Floats of a parameter in the block: it begins on a cache line of its own. */
int64_t rcn__parameter_room(const rcn_parameter *parameter);

/* ---- building the graph ---------------------------------------------------------------------- */

typedef struct rcn__axes {
    int64_t at[3]; /* z, y, x */
} rcn__axes;

int rcn__graph_conv(rcn_net *net, const char *name, int in, int other, int64_t out,
                    rcn__axes kernel, rcn__axes stride, int bias);
int rcn__graph_transposed(rcn_net *net, const char *name, int in, int64_t out, rcn__axes stride);
int rcn__graph_norm(rcn_net *net, const char *name, int in, int residual, rcn__norm_kind kind,
                    int64_t groups, int relu);
int rcn__graph_pool(rcn_net *net, int in, rcn__axes kernel, rcn__axes stride, rcn__axes pad);
int rcn__graph_nearest_add(rcn_net *net, int small, int large);
int rcn__graph_bilinear(rcn_net *net, int in, int64_t factor);
int rcn__graph_merge(rcn_net *net, const int *in, int count);
void rcn__graph_output(rcn_net *net, int in, int64_t factor);

/* The architectures. */
void rcn__graph_unet(rcn_net *net);
void rcn__graph_fpn(rcn_net *net);

/* ---- plans ----------------------------------------------------------------------------------- */

/* Non-zero for tensors that the encoder makes and the decoder reads. */
int rcn__is_feature(const rcn_net *net, int tensor);

/* The plan for a shape, made if there is none; its memory is there too. from_features: of the
 * decoder alone, in training; its images are the encoder's features. */
rcn_status rcn__plan_get(rcn__plan **out, rcn_net *net, const rcn_batch *batch, int training,
                         int from_features);
void rcn__plan_destroy(rcn__plan *plan, rcn_net *net); /* NULL is fine */
size_t rcn__plan_bytes(const rcn__plan *plan);
int rcn__plan_sweep_count(const rcn__plan *plan); /* runs of operations that go row by row */

rcn_status rcn__plan_forward(rcn__plan *plan, rcn_net *net, float *logits, const float *images,
                             uint64_t seed);
rcn_status rcn__plan_encode(rcn__plan *plan, rcn_net *net, float *features, const float *images);
rcn_status rcn__plan_backward(rcn__plan *plan, rcn_net *net, const float *images,
                              const float *dlogits);

/* ---- running, for training and prediction ---------------------------------------------------- */

/* padded[3] = the size (x, y, z) that images of this size are extended to inside. */
void rcn__net_padded_size(int64_t padded[3], const rcn_net *net, const int64_t size[3]);

/* From now on a batch in training is one process's part of a larger one, which begins with its
 * image number first_image. Batch norms take their statistics over the whole batch (local_norms
 * non-zero: over this part; then running statistics drift apart), dropout is drawn for the whole
 * batch, and rcn_net_backward() leaves the sums of all processes' gradients: they travel in pieces
 * while the layers before them still compute theirs. comm is borrowed; NULL: one process (default).
 */
void rcn__net_share(rcn_net *net, rcn_comm *comm, int64_t first_image, int local_norms);

/* ---- a frozen encoder ----
 * The parameters named "encoder." belong to the encoder. Where they stay as they are, what it makes
 * of an image is computed once: */

/* Floats that the encoder makes of one image of this size (x, y, z). */
int64_t rcn__net_feature_floats(const rcn_net *net, const int64_t size[3]);

/* features (B, rcn__net_feature_floats()) of images, with running statistics, as in prediction. */
rcn_status rcn__net_encode(float *features, rcn_net *net, const float *images,
                           const rcn_batch *batch);

/* rcn_net_forward() of the rest of the network, from features in place of images (aligned to 64
 * bytes or not); after rcn_net_backward() the encoder's gradients are zero. */
rcn_status rcn__net_forward_features(float *logits, rcn_net *net, const float *features,
                                     const rcn_batch *batch, uint64_t seed);

/* Bytes of memory for activations that a batch needs, without running anything but the making of
 * its kernels. training: for rcn_net_forward() and _backward(), otherwise for rcn_net_predict(). */
rcn_status rcn__net_measure(size_t *bytes, rcn_net *net, const rcn_batch *batch, int training);

#endif /* RCN_NET_PRIVATE_H */
