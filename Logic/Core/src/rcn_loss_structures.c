// SPDX-License-Identifier: Apache-2.0
/* Losses of several structures. Dirichlet-multinomial with means m_l, correlation r of the raters
 * and g = r / (1 - r), n_l of a raters giving label l (Mosimann 1962):
 *     p(n) = a! / prod_(i<a) (1 + i g) * prod_l prod_(i<n_l) (m_l + i g) / n_l!
 * which is the formula with gamma functions after each quotient of them is written out as a
 * product; so nothing is subtracted where r is near 0 or 1. The number of factors is that of the
 * raters, whatever the number of labels.
 */
#include "rcn_loss_block.h"

#include <math.h>
#include <string.h>

#include "rcn_votes_private.h"

/* A mean may miss 0 ... 1 by this much: rounding, or a file of fewer digits. */
#define MEAN_SLACK 1e-4f

/* Below the smallest share whose complement matters: keeps a quotient of two vanished shares 0. */
#define LEAST 1e-37f

/* ---- targets --------------------------------------------------------------------------------- */

int rcn__structures_channels(const rcn_loss_options *options) {
    return options->kind == RCN_LOSS_RPS_HEADS ? options->structures * (options->raters + 1)
                                               : options->structures + 1;
}

int rcn__structures_parameters(const rcn_loss_options *options) {
    return options->kind == RCN_LOSS_DIRICHLET_MULTINOMIAL;
}

void rcn_loss_label_counts(uint8_t *counts, const uint8_t *votes, int64_t patterns, int raters,
                           int structures) {
    rcn__count_labels(counts, votes, patterns, raters, structures);
}

void rcn_loss_label_shares(float *shares, const uint8_t *counts, int64_t patterns, int structures,
                           int plurality) {
    const int labels = structures + 1;
    for (int64_t p = 0; p < patterns; ++p) {
        const uint8_t *n = counts + p * labels;
        float *out = shares + p * labels;
        const int most = rcn__most_given(n, structures);
        int answered = 0;
        for (int l = 0; l < labels; ++l) answered += n[l];
        for (int l = 0; l < labels; ++l) {
            if (plurality)
                out[l] = answered && l == most ? 1.0f : 0.0f;
            else
                out[l] = answered ? (float)n[l] / (float)answered : 0.0f;
        }
    }
}

static rcn_status check_shares(rcn_context *ctx, const float *shares, int labels, int64_t code,
                               int64_t sample) {
    double sum = 0;
    int bad = 0;
    for (int l = 0; l < labels; ++l) {
        sum += shares[l];
        if (!(shares[l] >= 0)) bad = 1;
    }
    if (bad || !(fabs(sum - 1) <= 1e-3))
        return rcn__fail(ctx, RCN_EINVALID,
                         "The shares of code %lld of sample %lld do not sum to one.",
                         (long long)code, (long long)sample + 1);
    return RCN_OK;
}

rcn_status rcn__structures_check_target(rcn_context *ctx, const rcn_loss *loss,
                                        const rcn_loss_target *target, int64_t sample) {
    const int labels = loss->options.structures + 1;
    const int categorical = loss->options.kind == RCN_LOSS_CATEGORICAL;
    if (categorical ? !target->shares : !target->counts)
        return rcn__fail(ctx, RCN_EINVALID,
                         "Sample %lld has no %s of the labels, which the loss \"%s\" needs.",
                         (long long)sample + 1, categorical ? "shares" : "counts",
                         rcn_loss_kind_name(loss->options.kind));
    for (int64_t code = 0; code < target->label_count; ++code) {
        if (target->labels[code].weight == 0) continue;
        if (categorical) {
            const rcn_status status =
                check_shares(ctx, target->shares + code * labels, labels, code, sample);
            if (status != RCN_OK) return status;
            continue;
        }
        int answered = 0;
        for (int l = 0; l < labels; ++l) answered += target->counts[code * labels + l];
        if (answered != target->labels[code].answered)
            return rcn__fail(ctx, RCN_EINVALID,
                             "Code %lld of sample %lld has %d labels of %d raters who answered.",
                             (long long)code, (long long)sample + 1, answered,
                             target->labels[code].answered);
    }
    return RCN_OK;
}

void rcn__structures_constants(constants *own, const rcn_loss *loss) {
    const double gamma = own->gamma;
    double sum = 0, slope = 0;
    for (int n = 0; n <= loss->options.raters; ++n) {
        own->rising[n] = sum;
        own->rising_slope[n] = slope;
        sum += log1p(n * gamma) - log(n + 1.0);
        slope += n * gamma / (1 + n * gamma);
    }
}

void rcn__structures_read(block *b, const rcn_loss *loss, const constants *own,
                          const rcn_loss_target *target, int head, int64_t first, int count) {
    const int labels = loss->options.structures + 1;
    const rcn_loss_kind kind = loss->options.kind;
    for (int i = 0; i < LANES; ++i) {
        const int64_t code = i < count ? code_at(target, first + i) : 0;
        /* Void, or without a label, which has been reported: nothing to read. */
        const int counts = i < count && b->weight[i] > 0 && code < target->label_count;
        const int64_t row = counts ? code * labels : 0;
        if (kind == RCN_LOSS_RPS_HEADS) {
            b->marked[i] = counts ? target->counts[row + 1 + head] : 0;
            continue;
        }
        if (!counts || kind == RCN_LOSS_CATEGORICAL) {
            for (int l = 0; l < labels; ++l) b->n[l][i] = counts ? target->shares[row + l] : 0.0f;
            b->rest[i] = b->rest_slope[i] = 0;
            continue;
        }
        double rest = 0, slope = 0;
        for (int l = 0; l < labels; ++l) {
            const int n = target->counts[row + l];
            b->n[l][i] = (float)n;
            rest += own->rising[n];
            slope += own->rising_slope[n];
        }
        b->rest[i] = (float)(rest - own->rising[(int)b->answered[i]]);
        b->rest_slope[i] = (float)(slope - own->rising_slope[(int)b->answered[i]]);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* others[l] = the sum of x over all labels but l, without ever subtracting. */
RCN_INLINE void sum_others(float (*others)[LANES], float (*x)[LANES], int labels) {
    float sum[LANES];
    for (int i = 0; i < LANES; ++i) sum[i] = 0;
    for (int l = 0; l < labels; ++l)
        for (int i = 0; i < LANES; ++i) {
            others[l][i] = sum[i];
            sum[i] += x[l][i];
        }
    for (int i = 0; i < LANES; ++i) sum[i] = 0;
    for (int l = labels - 1; l >= 0; --l)
        for (int i = 0; i < LANES; ++i) {
            others[l][i] += sum[i];
            sum[i] += x[l][i];
        }
}

/* With e_l = -m_l d loss / d m_l, the gradient through the softmax is m_l sum(e) - e_l sum(m). What
 * label l has in both cancels, so it is left out of them. Fills b->grad; overwrites b->s. */
RCN_INLINE void through_softmax(block *b, float (*e)[LANES], float (*others)[LANES], int labels) {
    sum_others(b->s, e, labels);
    for (int l = 0; l < labels; ++l)
        for (int i = 0; i < LANES; ++i)
            b->grad[l][i] = b->p[l][i] * b->s[l][i] - e[l][i] * others[l][i];
}

/* Cross-entropy with the shares n. */
RCN_DISPATCH static void run_categorical(block *b, int labels) {
    float log_sum[LANES], others[MAX_LABELS][LANES];
    softmax(b, log_sum, labels);
    sum_others(others, b->p, labels);
    for (int i = 0; i < LANES; ++i) b->loss[i] = 0;
    for (int l = 0; l < labels; ++l)
        for (int i = 0; i < LANES; ++i) b->loss[i] += b->n[l][i] * (log_sum[i] - b->z[l][i]);
    through_softmax(b, b->n, others, labels);
}

/* The factors of one label, for i = 1 ... most - 1: those of GATHERED i are multiplied before one
 * logarithm is taken, as in the beta-binomial. e: see above; by_gamma: d loss / d log gamma. */
RCN_INLINE void label_factors(block *b, float *e, float *by_gamma, const float *n, const float *p,
                              const float *others, float gamma, int most) {
    enum { GATHERED = 4 };
    float quotient[LANES];
    for (int j = 1; j < most; ++j) {
        const float step = (float)j * gamma, whole = 1.0f + step, slope = step / whole;
        for (int i = 0; i < LANES && j % GATHERED == 1; ++i) quotient[i] = 1;
        for (int i = 0; i < LANES; ++i) {
            const float there = (float)j < n[i] ? 1.0f : 0.0f;
            const float share = there / (p[i] + step);
            quotient[i] *= there > 0 ? whole * share : 1.0f;
            e[i] += p[i] * share;
            by_gamma[i] -= slope * (others[i] * share);
        }
        if (j % GATHERED == 0 || j == most - 1)
            for (int i = 0; i < LANES; ++i) b->loss[i] += rcn__log(quotient[i]);
    }
}

/* The ranked probability scores of the structures: a change of the logit of one mean by 1 changes
 * the outputs' logits by (1 - m_l) for the label itself; what it takes from the others is shared
 * out by their means. */
RCN_INLINE void add_structures_rps(block *b, float *by_gamma, float (*p)[LANES],
                                   float (*others)[LANES], const rcn_loss *loss, float gamma_value,
                                   int a) {
    const int labels = loss->options.structures + 1;
    const float c = (float)(loss->options.rps_weight / (a + 1) / (labels - 1));
    float gamma[LANES], by_logit[LANES];
    for (int i = 0; i < LANES; ++i) gamma[i] = gamma_value;
    for (int l = 1; l < labels; ++l) {
        for (int i = 0; i < LANES; ++i) by_logit[i] = 0;
        memcpy(b->marked, b->n[l], sizeof b->marked);
        add_beta_binomial_rps(b, by_logit, by_gamma, p[l], others[l], gamma, a, c);
        for (int i = 0; i < LANES; ++i) b->grad[l][i] += by_logit[i];
        for (int i = 0; i < LANES; ++i) by_logit[i] /= rcn__at_least(others[l][i], LEAST);
        for (int m = 0; m < labels; ++m)
            if (m != l)
                for (int i = 0; i < LANES; ++i) b->grad[m][i] -= by_logit[i] * p[m][i];
    }
}

RCN_DISPATCH static void run_multinomial(block *b, const rcn_loss *loss, const constants *own,
                                         int a) {
    const int labels = loss->options.structures + 1;
    const float expected = (float)loss->options.expected_weight;
    float log_sum[LANES], by_gamma[LANES], e[MAX_LABELS][LANES];
    float others[MAX_LABELS][LANES], p[MAX_LABELS][LANES];
    softmax(b, log_sum, labels);
    sum_others(others, b->p, labels);
    for (int i = 0; i < LANES; ++i) b->loss[i] = -b->rest[i];
    for (int i = 0; i < LANES; ++i) by_gamma[i] = -b->rest_slope[i];
    for (int l = 0; l < labels; ++l) {
        float most = 0;
        for (int i = 0; i < LANES; ++i) most = rcn__at_least(most, b->n[l][i]);
        for (int i = 0; i < LANES; ++i) {
            e[l][i] = (b->n[l][i] > 0 ? 1.0f : 0.0f) + expected * (b->n[l][i] / b->answered[i]);
            b->loss[i] += e[l][i] * (log_sum[i] - b->z[l][i]);
        }
        label_factors(b, e[l], by_gamma, b->n[l], b->p[l], others[l], own->gamma, (int)most);
    }
    through_softmax(b, e, others, labels);
    if (loss->options.rps_weight > 0) {
        memcpy(p, b->p, sizeof *p * (size_t)labels);
        add_structures_rps(b, by_gamma, p, others, loss, own->gamma, a);
    }
    for (int i = 0; i < LANES; ++i) b->own[0][i] = by_gamma[i] * own->gamma_chain;
}

void rcn__structures_run(block *b, const rcn_loss *loss, const constants *own, int a) {
    if (loss->options.kind == RCN_LOSS_CATEGORICAL)
        run_categorical(b, loss->options.structures + 1);
    else
        run_multinomial(b, loss, own, a);
}

void rcn__loss_label_biases(float *biases, const rcn_loss *loss, const double *shares) {
    const int raters = loss->options.raters, structures = loss->options.structures;
    if (loss->options.kind != RCN_LOSS_RPS_HEADS) {
        for (int l = 0; l <= structures; ++l) biases[l] = (float)log(shares[l]);
        return;
    }
    /* Each head starts with the beta-binomial levels of its share; gamma 1 is a correlation of 1/2,
     * between raters who follow the image and raters who are one. */
    const double gamma = 1;
    for (int c = 1; c <= structures; ++c)
        for (int k = 0; k <= raters; ++k) {
            double sum = lgamma(raters + 1.0) - lgamma(k + 1.0) - lgamma(raters - k + 1.0);
            for (int i = 0; i < k; ++i) sum += log(shares[c] + i * gamma);
            for (int i = 0; i < raters - k; ++i) sum += log(1 - shares[c] + i * gamma);
            for (int i = 0; i < raters; ++i) sum -= log1p(i * gamma);
            biases[(c - 1) * (raters + 1) + k] = (float)sum;
        }
}

/* ---- means and levels ------------------------------------------------------------------------ */

double rcn_loss_correlation(const rcn_loss *loss, const float *parameters) {
    switch (loss->options.kind) {
    case RCN_LOSS_DIRICHLET_MULTINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL: {
        const double x = fmax(fmin(parameters[0], BETA_BINOMIAL_BOUND), -BETA_BINOMIAL_BOUND);
        return 1 / (1 + exp(-x));
    }
    case RCN_LOSS_BINOMIAL: return 0;
    case RCN_LOSS_CATEGORICAL:
    case RCN_LOSS_BCE:
    case RCN_LOSS_BINARY_BRIER: return 1;
    default: return -1;
    }
}

typedef struct read_job {
    const rcn_loss *loss;
    constants own;
    const rcn__loss_source *source;
    const float *logits;
    int64_t voxels;
    int64_t chunks_per_sample;
    int structure; /* whose levels are wanted; 0: the means of all */
    rcn__loss_sink sink;
    void *payload;
    int *bad; /* per thread */
} read_job;

/* p_0 = no, p_K = yes, nothing between. */
RCN_INLINE void sure_levels(block *b, const float *yes, const float *no, int raters) {
    for (int k = 1; k < raters; ++k)
        for (int i = 0; i < LANES; ++i) b->p[k][i] = 0;
    memcpy(b->p[raters], yes, sizeof b->p[raters]);
    memcpy(b->p[0], no, sizeof b->p[0]);
}

/* b->p = the levels of one structure, from its mean. */
RCN_DISPATCH static void levels_from_share(block *b, const float *yes, const float *no,
                                           float gamma_value, int sure, int raters) {
    float gamma[LANES];
    for (int i = 0; i < LANES; ++i) gamma[i] = gamma_value;
    if (sure)
        sure_levels(b, yes, no, raters);
    else
        beta_binomial_levels(b, yes, no, gamma, raters);
}

RCN_DISPATCH static void find_shares(block *b, float (*others)[LANES], const float *logits,
                                     int labels, int64_t voxels, int count) {
    float log_sum[LANES];
    read_outputs(b, logits, labels, voxels, count);
    softmax(b, log_sum, labels);
    sum_others(others, b->p, labels);
    /* Where it loses nothing, a difference is rounded less often than a sum of many labels. */
    for (int l = 0; l < labels; ++l)
        for (int i = 0; i < LANES; ++i)
            others[l][i] = b->p[l][i] < 0.5f ? 1.0f - b->p[l][i] : others[l][i];
}

RCN_DISPATCH static void read_head(block *b, const float *logits, int channels, int64_t voxels,
                                   int count) {
    read_outputs(b, logits, channels, voxels, count);
}

/* b->p = the levels of structure c + 1, of heads or of the only one. */
static void find_head_levels(block *b, const read_job *job, const float *logits, int c, int count) {
    const rcn_loss *loss = job->loss->head ? job->loss->head : job->loss;
    read_head(b, logits + (int64_t)c * loss->channels * job->voxels, loss->channels, job->voxels,
              count);
    rcn__loss_find_levels(b, loss, &job->own);
}

/* mean[c] of each structure by its levels, and what is left for the background. */
static void find_head_means(block *b, float (*mean)[LANES], const read_job *job,
                            const float *logits, int count) {
    const int raters = job->loss->options.raters, structures = job->loss->options.structures;
    float sum[LANES] = {0};
    for (int c = 1; c <= structures; ++c) {
        find_head_levels(b, job, logits, c - 1, count);
        memset(mean[c], 0, sizeof mean[c]);
        for (int k = 1; k <= raters; ++k)
            for (int i = 0; i < LANES; ++i) mean[c][i] += (float)k / (float)raters * b->p[k][i];
        for (int i = 0; i < LANES; ++i) sum[i] += mean[c][i];
    }
    for (int i = 0; i < LANES; ++i) {
        mean[0][i] = sum[i] < 1 ? 1.0f - sum[i] : 0.0f;
        if (sum[i] > 1)
            for (int c = 1; c <= structures; ++c) mean[c][i] /= sum[i];
    }
}

/* Non-zero when the first `count` of each row are finite. */
RCN_DISPATCH static int rows_are_finite(const float *rows, int64_t stride, int number, int count) {
    float sums[LANES] = {0}, sum = 0;
    for (int k = 0; k < number; ++k, rows += stride) {
        if (count == LANES)
            for (int i = 0; i < LANES; ++i) sums[i] += rows[i] * 0.0f;
        else
            for (int i = 0; i < count; ++i) sums[i] += rows[i] * 0.0f;
    }
    for (int i = 0; i < LANES; ++i) sum += sums[i];
    return sum == 0;
}

static void read_chunk(int64_t chunk, int thread, void *payload) {
    const read_job *job = payload;
    const rcn_loss *loss = job->loss;
    const int raters = loss->options.raters, labels = loss->options.structures + 1;
    const int planes = job->structure ? raters + 1 : labels, c = job->structure;
    const int by_levels = loss->head || !is_structured(loss->options.kind);
    const int64_t sample = chunk / job->chunks_per_sample, skipped = job->source->first;
    const float *logits = job->logits + sample * loss->channels * job->voxels;
    float others[MAX_LABELS][LANES], yes[LANES];
    int64_t first, end;
    block b;
    rcn__chunk_range(&first, &end, chunk % job->chunks_per_sample, job->source->end - skipped,
                     RCN_CHUNK);
    for (int64_t at = first + skipped; at < end + skipped; at += LANES) {
        const int64_t left = end + skipped - at;
        const int count = (int)(left < LANES ? left : LANES);
        float(*result)[LANES] = b.p;
        if (by_levels && c) {
            find_head_levels(&b, job, logits + at, c - 1, count);
        } else if (by_levels) {
            find_head_means(&b, others, job, logits + at, count);
            result = others;
        } else {
            find_shares(&b, others, logits + at, labels, job->voxels, count);
            memcpy(yes, b.p[c], sizeof yes);
            if (c)
                levels_from_share(&b, yes, others[c], job->own.gamma,
                                  loss->options.kind == RCN_LOSS_CATEGORICAL, raters);
        }
        if (job->bad) {
            if (!rows_are_finite(logits + at, job->voxels, loss->channels, count))
                job->bad[thread] |= RCN_BAD_LOGITS;
            if (!rows_are_finite(*result, LANES, planes, count))
                job->bad[thread] |= RCN_BAD_RESULTS;
        }
        job->sink(*result, sample, at, count, job->payload);
    }
}

rcn_status rcn__loss_read(int *bad, rcn_context *ctx, const rcn__loss_source *source,
                          rcn__loss_sink sink, void *payload) {
    rcn_status status;
    const rcn_loss *loss = source->loss;
    read_job job = {.source = source, .sink = sink, .payload = payload, .bad = NULL};
    rcn__clear(ctx);
    RCN_TRY(rcn__loss_check_batch(ctx, loss, source->logits, source->parameters, source->samples,
                                  source->voxels));
    job.structure = source->wanted == RCN_WANT_LEVELS ? 1 : source->wanted;
    if (source->wanted < RCN_WANT_LEVELS || job.structure > loss->options.structures)
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "Structure %d does not exist; the loss has %d.",
                          source->wanted, loss->options.structures));
    if (source->wanted == RCN_WANT_LEVELS && loss->options.structures > 1)
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID,
                          "Each of the %d structures has its own levels; choose one structure.",
                          loss->options.structures));
    job.loss = loss;
    job.logits = source->logits;
    job.voxels = source->voxels;
    job.chunks_per_sample = rcn__chunk_count(source->end - source->first, RCN_CHUNK);
    rcn__loss_constants(&job.own, loss, source->parameters);
    if (bad) RCN_ALLOC_ZERO(job.bad, ctx, ctx->threads, "bookkeeping");
    RCN_TRY(rcn__for_chunks(ctx, job.structure ? "computing the levels" : "computing the means",
                            source->samples * job.chunks_per_sample, read_chunk, &job));
    if (bad)
        for (int t = *bad = 0; t < ctx->threads; ++t) *bad |= job.bad[t];
done:
    rcn__free(ctx, job.bad);
    return status;
}

typedef struct planes {
    float *out; /* (samples, count, voxels) */
    int64_t voxels;
    int count;
} planes;

static void write_planes(const float *values, int64_t sample, int64_t first, int count,
                         void *payload) {
    const planes *to = payload;
    float *out = to->out + sample * to->count * to->voxels + first;
    for (int k = 0; k < to->count; ++k)
        memcpy(out + k * to->voxels, values + (int64_t)k * LANES, (size_t)count * sizeof *out);
}

static rcn_status run_means(float *out, const rcn_loss *loss, rcn_context *ctx, int wanted,
                            const float *logits, const float *parameters, int64_t samples,
                            int64_t voxels) {
    const rcn__loss_source source = {loss, parameters, logits, samples, voxels, 0, voxels, wanted};
    rcn__clear(ctx);
    const rcn_status status = rcn__loss_check_batch(ctx, loss, logits, parameters, samples, voxels);
    if (status != RCN_OK) return status;
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output result is NULL.");
    planes to = {out, voxels, (wanted ? loss->options.raters : loss->options.structures) + 1};
    return rcn__loss_read(NULL, ctx, &source, write_planes, &to);
}

rcn_status rcn_loss_means(float *means, const rcn_loss *loss, rcn_context *ctx, const float *logits,
                          const float *parameters, int64_t samples, int64_t voxels) {
    if (!ctx) return RCN_EINVALID;
    return run_means(means, loss, ctx, 0, logits, parameters, samples, voxels);
}

rcn_status rcn_loss_structure_levels(float *levels, const rcn_loss *loss, rcn_context *ctx,
                                     int structure, const float *logits, const float *parameters,
                                     int64_t samples, int64_t voxels) {
    if (!ctx) return RCN_EINVALID;
    if (loss && (structure < 1 || structure > loss->options.structures)) {
        rcn__clear(ctx);
        return rcn__fail(ctx, RCN_EINVALID, "Structure %d does not exist; the loss has %d.",
                         structure, loss->options.structures);
    }
    return run_means(levels, loss, ctx, structure, logits, parameters, samples, voxels);
}

typedef struct spread_job {
    float *levels;
    const float *mean;
    int64_t stride, voxels;
    int raters, sure;
    float gamma;
    int64_t *bad; /* per chunk: a voxel whose mean is none, or -1 */
} spread_job;

static void spread_chunk(int64_t chunk, int thread, void *payload) {
    (void)thread;
    const spread_job *job = payload;
    const int levels = job->raters + 1;
    float yes[LANES], no[LANES];
    int64_t first, end;
    block b;
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    job->bad[chunk] = -1;
    for (int64_t at = first; at < end; at += LANES) {
        const int count = (int)(end - at < LANES ? end - at : LANES);
        for (int i = 0; i < LANES; ++i) {
            float mean = i < count ? job->mean[(at + i) * job->stride] : 0.0f;
            if (!(mean >= -MEAN_SLACK && mean <= 1 + MEAN_SLACK)) {
                job->bad[chunk] = at + i;
                mean = 0;
            }
            yes[i] = rcn__at_most(rcn__at_least(mean, 0.0f), 1.0f);
            no[i] = 1.0f - yes[i];
        }
        levels_from_share(&b, yes, no, job->gamma, job->sure, job->raters);
        float *out = job->levels + at * levels;
        for (int i = 0; i < count; ++i)
            for (int k = 0; k < levels; ++k) out[i * levels + k] = b.p[k][i];
    }
}

rcn_status rcn_levels_of_mean(float *levels, rcn_context *ctx, const float *mean, int64_t stride,
                              int64_t voxels, int raters, double correlation) {
    rcn_status status;
    spread_job job = {levels, mean, stride, voxels, raters, 0, 0, NULL};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!levels || !mean || stride < 1 || voxels < 1 || raters < 1 || raters > RCN_MAX_RATERS)
        return rcn__fail(ctx, RCN_EINVALID, "No means were given, or not 1 to 64 raters.");
    if (!(correlation >= 0 && correlation <= 1))
        return rcn__fail(ctx, RCN_EINVALID, "The correlation of raters must be 0 to 1, not %g.",
                         correlation);
    const double gamma = correlation / (1 - correlation);
    job.sure = !(gamma < 1e30);
    job.gamma = job.sure ? 0.0f : (float)gamma;
    const int64_t chunks = rcn__chunk_count(voxels, RCN_CHUNK);
    RCN_ALLOC(job.bad, ctx, chunks, "a list of errors");
    RCN_TRY(rcn__for_chunks(ctx, "computing the levels", chunks, spread_chunk, &job));
    for (int64_t c = 0; c < chunks; ++c)
        if (job.bad[c] >= 0)
            RCN_TRY(rcn__fail(ctx, RCN_EDATA, "Voxel %lld has the mean %g; it must be 0 to 1.",
                              (long long)job.bad[c], (double)mean[job.bad[c] * stride]));
done:
    rcn__free(ctx, job.bad);
    return status;
}
