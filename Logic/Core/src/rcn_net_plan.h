// SPDX-License-Identifier: Apache-2.0
/* What a plan consists of: for rcn_net_plan.c and rcn_net_rows.c alone. */
#ifndef RCN_NET_PLAN_H
#define RCN_NET_PLAN_H

#include "rcn_net_private.h"

/* The two passes of a step in training; prediction has the first alone. */
enum { FORWARD = 0, BACKWARD = 1, PASSES = 2 };

enum { MAX_BUFFERS = 10 * RCN_MAX_TENSORS, LINE = 64 };

typedef struct buffer {
    size_t bytes, offset;
    int first, last; /* steps */
    int is_fixed;    /* its offset is given: a parameter's gradient */
} buffer;

/* What a plan knows of a tensor: its extent and its buffers (or RCN_NONE). */
typedef struct place {
    rcn__extent extent;
    int value; /* of a tensor that is made on reading: that of the norm's input */
    int norm;  /* the norm whose readers apply it, or RCN_NONE */
    int gradient;
    int64_t window; /* rows that are kept of it in a sweep (rcn__row_place()); 0: no window */
    size_t offset;  /* of the window in a thread's memory */
} place;

/* What a plan knows of an operation. */
typedef struct stage {
    rcn__conv *conv;
    int scratch[PASSES]; /* buffers: what threads share of the kernels' scratch memory, */
    int weights[PASSES]; /* and packed weights (training) */
    int back;            /* the step of its backward pass */
    size_t packed;       /* prediction: where its weights are in `prepared`, */
    size_t folded;       /* and its bias */
    int folds;           /* prediction: the batch norm that it takes in, or RCN_NONE */
    int skipped;         /* forward: taken in by another operation */
    int64_t tally_rows;  /* training: of a convolution, for the norm that follows; 0: none */
    int writes;          /* the tensor that it makes */
    int residual;        /* prediction: the tensor that it adds, or RCN_NONE */
    rcn__norm norm;
    rcn__pool pool;
    int choice;               /* buffer: pooling's choices */
    int sums[RCN_MAX_INPUTS]; /* backward: add to that input's gradient */
    float *factors;           /* merge: dropout (B, C) */
    int sweep;                /* prediction: the sweep that it belongs to, or RCN_NONE */
} stage;

/* Operations that run row by row (rcn_net_rows.c): each reads what the one before makes. */
typedef struct sweep {
    int first, last; /* operations; those between them that are skipped do not count */
    int64_t rows;    /* of the last one's output that are made at a time */
    /* Each thread's own memory: windows, scratch memory, how far it is. */
    size_t scratch;  /* where that begins, */
    size_t progress; /* and that */
} sweep;

enum { MAX_SWEEPS = 16 };

struct rcn__plan {
    rcn_batch batch;
    int training, threads;
    int first; /* operation: the first of the decoder when the encoder's tensors are given */
    int64_t size[3], padded[3]; /* z, y, x */
    place places[RCN_MAX_TENSORS];
    stage stages[RCN_MAX_TENSORS];
    buffer buffers[MAX_BUFFERS];
    int buffer_count;
    sweep sweeps[MAX_SWEEPS];
    int sweep_count;
    rcn__layout input_layout;
    int copies_input; /* the image is not used where the caller has it */

    /* After the buffers: room for weights in another order and for sums. */
    size_t scale, reshaped, partial;
    /* Then each thread's own scratch memory, for all operations at the same place (rcn_conv.h). */
    size_t own, own_bytes;
    size_t bytes;

    void *statistics; /* the norms' numbers and the dropout's factors */
    double *shared;   /* what a norm exchanges with other processes */
    char *prepared;   /* prediction: packed weights and folded biases */
    uint64_t version; /* of the values that they were made from */
    int is_prepared;
};

/* A buffer of so many bytes that is used in this step. */
int rcn__plan_add_buffer(rcn__plan *plan, size_t bytes, int step);

/* It is used in this step, too. RCN_NONE is fine. */
void rcn__plan_use(rcn__plan *plan, int index, int step);

/* What an operation has for its scratch memory in a pass. */
rcn__scratch rcn__plan_scratch(const rcn__plan *plan, const rcn_net *net, int index, int pass);

/* Every thread's own memory has at least so many bytes. */
void rcn__plan_need_own(rcn__plan *plan, size_t bytes);

/* Where a buffer is; NULL for RCN_NONE. */
static inline void *rcn__plan_at(const rcn__plan *plan, const rcn_net *net, int index) {
    return index == RCN_NONE ? NULL : (char *)net->arena + plan->buffers[index].offset;
}

/* An input of a convolution or a pooling as it is read. */
rcn__source rcn__plan_source(const rcn__plan *plan, const rcn_net *net, int tensor,
                             const float *images);

/* Prediction: what follows the sum of a convolution. */
rcn__ending rcn__plan_ending(const rcn__plan *plan, const rcn_net *net, int index);

/* Non-zero for tensors that are not computed here: the image, or what the encoder gives. */
int rcn__plan_is_given(const rcn__plan *plan, const rcn_net *net, int tensor);

/* ---- row by row (rcn_net_rows.c) ---- */

/* Prediction: finds the sweeps, before values have their buffers. */
void rcn__plan_sweeps(rcn__plan *plan, const rcn_net *net);

/* Then gives windows to what is only made within a sweep, and lets all else that it uses live from
 * its begin to its end. */
void rcn__plan_windows(rcn__plan *plan, const rcn_net *net);

/* Runs the operations of a sweep. */
void rcn__sweep_run(const rcn__plan *plan, rcn_net *net, const sweep *s, float *logits,
                    const float *images);

#endif /* RCN_NET_PLAN_H */
