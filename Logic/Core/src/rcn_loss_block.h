// SPDX-License-Identifier: Apache-2.0
/* Inside of the losses: what rcn_loss.c (one structure, and the passes over a batch) and
 * rcn_loss_structures.c (several) share.
 */
#ifndef RCN_LOSS_BLOCK_H
#define RCN_LOSS_BLOCK_H

#include "rcn_fastmath.h"
#include "rcn_loss_private.h"
#include "rcn_parallel.h"

/* Voxels are taken through a kernel LANES at a time, channel by channel: every inner loop runs over
 * LANES neighbors and becomes vector code, and a block of 8 channels stays in the first cache. */
enum {
    LANES = RCN_LOSS_LANES,
    MAX_LEVELS = RCN_MAX_RATERS + 1,
    MAX_LABELS = RCN_MAX_STRUCTURES + 1
};

/* Raw outputs are used within these bounds, so that their differences stay finite; the logarithm of
 * a probability of zero must lie well below any of them. */
#define LOGIT_BOUND 1e30f
#define LOG_ZERO (-1e37f)

/* Added to each step between the thresholds of the cumulative link. */
#define LINK_GAP 1e-3

/* Beta-binomial: the logit of the correlation is used within these bounds, and starts here. */
#define BETA_BINOMIAL_BOUND 16.0
#define START_CORRELATION 0.1

struct rcn_loss {
    rcn_context *ctx;
    rcn_loss_options options;
    int channels;
    int parameters;
    float log_choose[MAX_LEVELS][MAX_LEVELS]; /* log C(n, k) */
    /* Per number a = 1 ... K of raters who answered, at offset[a] of each table: (a+1, K+1) each.
     */
    int64_t offset[MAX_LEVELS];
    float *log_mix;  /* log H(v | k): row v is what observing v says about the levels */
    float *score;    /* H(j | k), or its sum over j, as the score needs it */
    float *majority; /* (K, 2, K+1): log of P(no majority | k), P(majority | k) */
    float *survival; /* CORAL: (a, K), P(j > i) = sum over l of this times P(y > l); logarithm */
    rcn_loss *head;  /* of RCN_LOSS_RPS_HEADS: the loss of one structure */
};

/* What a run derives once from the loss's own parameters. */
typedef struct constants {
    float bias[RCN_MAX_RATERS];      /* CORAL; thresholds of the cumulative link */
    float log_gap[RCN_MAX_RATERS];   /* log(1 - exp(-(t_j - t_(j-1)))) */
    float gap[RCN_MAX_RATERS];       /* 1 - exp(-(t_j - t_(j-1))) */
    float gap_slope[RCN_MAX_RATERS]; /* d log_gap / d gap */
    float gap_chain[RCN_MAX_RATERS]; /* d gap / d parameter */
    float gamma;                     /* beta-binomial: correlation / (1 - correlation) */
    float gamma_chain;               /* d log gamma / d parameter: 1, or 0 at the bound */
    /* Dirichlet-multinomial: sum over i < n of log(1 + i gamma), minus log n!; and its derivative
     * by log gamma. In double: what is left of their sums over labels is small beside them. */
    double rising[MAX_LEVELS];
    double rising_slope[MAX_LEVELS];
} constants;

typedef struct block {
    float z[MAX_LEVELS][LANES];    /* raw outputs */
    float grad[MAX_LEVELS][LANES]; /* d loss / d raw outputs */
    float own[MAX_LEVELS][LANES];  /* d loss / d own parameters */
    float p[MAX_LEVELS][LANES];    /* probabilities of the levels */
    float s[MAX_LEVELS][LANES];    /* scratch, mostly d loss / d p */
    float loss[LANES];
    float value[LANES];
    float weight[LANES];
    float marked[LANES];
    float answered[LANES];
    /* Several structures: how many raters gave each label, or its share; and what the logarithm of
     * the likelihood and its derivative by log gamma have beside the factors of the labels. */
    float n[MAX_LABELS][LANES];
    float rest[LANES];
    float rest_slope[LANES];
} block;

/* yes = s(x), no = s(-x), each with its own full precision; returns log(1 + exp(-|x|)). */
RCN_INLINE float sigmoid(float *yes, float *no, float x) {
    const float u = rcn__exp(x < 0 ? x : -x);
    const float big = 1.0f / (1.0f + u), small = u * big;
    *yes = x < 0 ? small : big;
    *no = x < 0 ? big : small;
    return rcn__log1p(u);
}

/* log s(x), given the logarithm that sigmoid() returned. */
RCN_INLINE float log_sigmoid(float x, float log1p_u) { return (x < 0 ? x : 0.0f) - log1p_u; }

/* p = softmax(z), z -= its maximum, log_sum = log(sum exp(z)) after that. */
RCN_INLINE void softmax(block *b, float *log_sum, int levels) {
    float most[LANES], sum[LANES];
    for (int i = 0; i < LANES; ++i) most[i] = b->z[0][i];
    for (int k = 1; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) most[i] = rcn__at_least(most[i], b->z[k][i]);
    for (int i = 0; i < LANES; ++i) sum[i] = 0;
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) {
            b->z[k][i] -= most[i];
            b->p[k][i] = rcn__exp(b->z[k][i]);
            sum[i] += b->p[k][i];
        }
    for (int i = 0; i < LANES; ++i) log_sum[i] = rcn__log(sum[i]);
    for (int i = 0; i < LANES; ++i) sum[i] = 1.0f / sum[i];
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) b->p[k][i] *= sum[i];
}

/* loss += c * sum_j (F_j - [y <= j])^2, s = its derivative by p. */
RCN_INLINE void score_cumulative(block *b, int levels, float c) {
    float sum[LANES];
    for (int i = 0; i < LANES; ++i) sum[i] = 0;
    /* The last term is 1 - 1. */
    for (int j = 0; j < levels - 1; ++j)
        for (int i = 0; i < LANES; ++i) {
            sum[i] += b->p[j][i];
            const float e = sum[i] - (b->marked[i] <= (float)j ? 1.0f : 0.0f);
            b->loss[i] += c * (e * e);
            b->s[j][i] = 2 * c * e;
        }
    for (int i = 0; i < LANES; ++i) b->s[levels - 1][i] = 0;
    for (int k = levels - 2; k >= 0; --k)
        for (int i = 0; i < LANES; ++i) b->s[k][i] += b->s[k + 1][i];
}

/* p_k, k = 0 ... raters, of the beta-binomial; gamma 0 gives the binomial. p_k = C(K, k) times both
 * rising products over the third. yes and no: the mean and its complement. */
RCN_INLINE void beta_binomial_levels(block *b, const float *yes, const float *no,
                                     const float *gamma, int raters) {
    float product[LANES];
    for (int i = 0; i < LANES; ++i) product[i] = 1;
    for (int k = 0; k <= raters; ++k) /* s: prod_(i<k) (1 - m + i g) / (1 + i g) */
        for (int i = 0; i < LANES; ++i) {
            const float step = (float)k * gamma[i];
            b->s[k][i] = product[i];
            product[i] *= (no[i] + step) / (1.0f + step);
        }
    for (int i = 0; i < LANES; ++i) product[i] = 1;
    for (int k = 0; k <= raters; ++k) { /* product: C(K, k) and the other factors */
        for (int i = 0; i < LANES; ++i)
            b->p[k][i] = rcn__at_most(product[i] * b->s[raters - k][i], 1.0f);
        if (k == raters) break;
        const float next = (float)(raters - k) / (float)(k + 1), left = (float)(raters - 1 - k);
        for (int i = 0; i < LANES; ++i)
            product[i] *= (yes[i] + (float)k * gamma[i]) * next / (1.0f + left * gamma[i]);
    }
}

/* The term of the ranked probability score, all voxels answered by a raters: c times the sum over
 * the levels. The derivatives of log p_k are sums over i < k and i < a - k. Adds to b->loss, to
 * by_logit (of the mean) and to by_gamma (of log gamma); overwrites p and s. */
RCN_INLINE void add_beta_binomial_rps(block *b, float *by_logit, float *by_gamma, const float *yes,
                                      const float *no, const float *gamma, int a, float c) {
    float mark[2][MAX_LEVELS][LANES], blank[2][MAX_LEVELS][LANES];
    float whole[LANES];
    beta_binomial_levels(b, yes, no, gamma, a);
    score_cumulative(b, a + 1, c);
    for (int i = 0; i < LANES; ++i)
        mark[0][0][i] = mark[1][0][i] = blank[0][0][i] = blank[1][0][i] = whole[i] = 0;
    for (int k = 0; k < a; ++k)
        for (int i = 0; i < LANES; ++i) {
            const float step = (float)k * gamma[i], both = yes[i] * no[i];
            const float m = k ? 1.0f / (yes[i] + step) : 0.0f, n = k ? 1.0f / (no[i] + step) : 0.0f;
            mark[0][k + 1][i] = mark[0][k][i] + (k ? both * m : no[i]);
            blank[0][k + 1][i] = blank[0][k][i] + (k ? both * n : yes[i]);
            mark[1][k + 1][i] = mark[1][k][i] + step * m;
            blank[1][k + 1][i] = blank[1][k][i] + step * n;
            whole[i] += step / (1.0f + step);
        }
    for (int k = 0; k <= a; ++k)
        for (int i = 0; i < LANES; ++i) {
            const float slope = b->s[k][i] * b->p[k][i];
            by_logit[i] += slope * (mark[0][k][i] - blank[0][a - k][i]);
            by_gamma[i] += slope * (mark[1][k][i] + blank[1][a - k][i] - whole[i]);
        }
}

/* Bounded, but infinity becomes NaN: the loss must show it. */
RCN_INLINE float bounded(float x) {
    return rcn__at_most(rcn__at_least(x, -LOGIT_BOUND), LOGIT_BOUND) + x * 0.0f;
}

/* A kernel's outputs; lanes beyond the last voxel are 0. */
RCN_INLINE void read_outputs(block *b, const float *logits, int channels, int64_t voxels,
                             int count) {
    for (int c = 0; c < channels; ++c) {
        const float *plane = logits + c * voxels;
        if (count == LANES) {
            for (int i = 0; i < LANES; ++i) b->z[c][i] = bounded(plane[i]);
        } else {
            for (int i = 0; i < LANES; ++i) b->z[c][i] = 0;
            for (int i = 0; i < count; ++i) b->z[c][i] = bounded(plane[i]);
        }
    }
}

/* The vote code of a voxel of the target. */
RCN_INLINE uint32_t code_at(const rcn_loss_target *target, int64_t at) {
    return target->code_bytes == 1   ? ((const uint8_t *)target->codes)[at]
           : target->code_bytes == 2 ? ((const uint16_t *)target->codes)[at]
                                     : ((const uint32_t *)target->codes)[at];
}

/* The kinds of several structures. */
RCN_INLINE int is_structured(rcn_loss_kind kind) { return kind >= RCN_LOSS_DIRICHLET_MULTINOMIAL; }

/* ---- rcn_loss_structures.c ------------------------------------------------------------------- */

/* Channels of the network; parameters of the loss. */
int rcn__structures_channels(const rcn_loss_options *options);
int rcn__structures_parameters(const rcn_loss_options *options);

/* What derive_constants() adds, once gamma is known. */
void rcn__structures_constants(constants *own, const rcn_loss *loss);

/* Whether the sample's tables fit: counts or shares of each label that counts. */
rcn_status rcn__structures_check_target(rcn_context *ctx, const rcn_loss *loss,
                                        const rcn_loss_target *target, int64_t sample);

/* Fills b->n and what goes with it; for heads, b->marked of structure `head` + 1. The labels have
 * been read before. */
void rcn__structures_read(block *b, const rcn_loss *loss, const constants *own,
                          const rcn_loss_target *target, int head, int64_t first, int count);

/* Loss and gradient of a block; not for heads, which are blocks of their own. */
void rcn__structures_run(block *b, const rcn_loss *loss, const constants *own, int a);

/* ---- rcn_loss.c ------------------------------------------------------------------------------ */

void rcn__loss_constants(constants *out, const rcn_loss *loss, const float *parameters);

/* Outputs and sizes of a batch, as all functions of a loss need them. */
rcn_status rcn__loss_check_batch(rcn_context *ctx, const rcn_loss *loss, const float *logits,
                                 const float *parameters, int64_t samples, int64_t voxels);

/* b->p = the levels of one structure, from b->z. */
void rcn__loss_find_levels(block *b, const rcn_loss *loss, const constants *own);

#endif /* RCN_LOSS_BLOCK_H */
