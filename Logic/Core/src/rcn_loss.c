// SPDX-License-Identifier: Apache-2.0
#include "rcn_loss_block.h"

#include <math.h>
#include <string.h>

#include "rcn_votes_private.h"

const char *rcn_loss_kind_name(rcn_loss_kind kind) {
    switch (kind) {
    case RCN_LOSS_RPS: return "rps";
    case RCN_LOSS_CE: return "ce";
    case RCN_LOSS_BRIER: return "brier";
    case RCN_LOSS_EMD: return "emd";
    case RCN_LOSS_CORN: return "corn";
    case RCN_LOSS_CORAL: return "coral";
    case RCN_LOSS_CUMULATIVE_LINK: return "cumulative-link";
    case RCN_LOSS_BINOMIAL: return "binomial";
    case RCN_LOSS_BETA_BINOMIAL: return "beta-binomial";
    case RCN_LOSS_BCE: return "bce";
    case RCN_LOSS_BINARY_BRIER: return "binary-brier";
    case RCN_LOSS_BETA_BINOMIAL_VOXEL: return "beta-binomial-voxel";
    case RCN_LOSS_DIRICHLET_MULTINOMIAL: return "dirichlet-multinomial";
    case RCN_LOSS_CATEGORICAL: return "categorical";
    case RCN_LOSS_RPS_HEADS: return "rps-heads";
    }
    return NULL;
}

static double logit(double p) { return log(p) - log1p(-p); }

static int is_softmax(rcn_loss_kind kind) { return kind <= RCN_LOSS_EMD; }

static int is_binary(rcn_loss_kind kind) {
    return kind == RCN_LOSS_BCE || kind == RCN_LOSS_BINARY_BRIER;
}

static int is_beta_binomial(rcn_loss_kind kind) {
    return kind == RCN_LOSS_BETA_BINOMIAL || kind == RCN_LOSS_BETA_BINOMIAL_VOXEL;
}

/* Whether fewer raters mean the same form with another K: no tables are needed for them. */
static int is_closed_form(rcn_loss_kind kind) {
    return is_beta_binomial(kind) || kind == RCN_LOSS_DIRICHLET_MULTINOMIAL;
}

static int may_have_rps(rcn_loss_kind kind) {
    return kind == RCN_LOSS_CE || kind == RCN_LOSS_CORN || kind == RCN_LOSS_CUMULATIVE_LINK ||
           is_closed_form(kind);
}

/* Whether the form does not change when raters are missing: the kernel reads a per voxel. */
static int is_closed(const rcn_loss_options *options) {
    return options->kind >= RCN_LOSS_BINOMIAL && options->kind != RCN_LOSS_RPS_HEADS &&
           options->rps_weight == 0;
}

static int is_weight(double weight) { return isfinite(weight) && weight >= 0; }

const char *rcn_loss_check(const rcn_loss_options *options) {
    if (!options) return "No options of the loss were given.";
    if (!rcn_loss_kind_name(options->kind)) return "Unknown loss.";
    if (options->raters < 1 || options->raters > RCN_MAX_RATERS)
        return "The loss must have 1 to 64 raters.";
    if (options->structures < 1 || options->structures > RCN_MAX_STRUCTURES)
        return "The loss must have 1 to 32 structures.";
    if (options->structures > 1 && !is_structured(options->kind))
        return "This loss is for one structure; several need dirichlet-multinomial, categorical or "
               "rps-heads.";
    if (!is_weight(options->bce_weight) || !is_weight(options->alpha) ||
        !is_weight(options->expected_weight) || !is_weight(options->unimodal_weight) ||
        !is_weight(options->rps_weight))
        return "The weights of a loss must be finite and not negative.";
    if (!is_softmax(options->kind) &&
        ((options->expected_weight > 0 && options->kind != RCN_LOSS_DIRICHLET_MULTINOMIAL) ||
         options->unimodal_weight > 0))
        return "Expected and unimodal terms need a loss with one channel per level.";
    if (!may_have_rps(options->kind) && options->rps_weight > 0)
        return "The term of the ranked probability score is for likelihoods of the levels.";
    return NULL;
}

/* ---- tables for missing raters --------------------------------------------------------------- */

/* The lowest count out of `answered` that is a majority. */
static int majority_level(const rcn_loss *loss, int answered) {
    return loss->options.tie_background ? answered / 2 + 1 : (answered + 1) / 2;
}

/* H(j | k): j marks among a raters drawn from K of whom k mark. */
static double hypergeometric(const double (*choose)[MAX_LEVELS], int raters, int a, int j, int k) {
    if (j > k || a - j > raters - k) return 0;
    return exp(choose[k][j] + choose[raters - k][a - j] - choose[raters][a]);
}

static float log_or_zero(double x) { return x > 0 ? (float)log(x) : LOG_ZERO; }

static void fill_tables(rcn_loss *loss, const double (*choose)[MAX_LEVELS]) {
    const int raters = loss->options.raters, levels = raters + 1;
    const int cumulative = loss->options.kind != RCN_LOSS_BRIER;
    for (int a = 1; a <= raters; ++a) {
        const int64_t at = loss->offset[a];
        for (int k = 0; k < levels; ++k) {
            double sum = 0, before = 0, most = 0;
            for (int j = 0; j <= a; ++j) {
                const double h = hypergeometric(choose, raters, a, j, k);
                sum += h;
                if (j < majority_level(loss, a)) before = sum;
                if (loss->log_mix) loss->log_mix[at + j * levels + k] = log_or_zero(h);
                if (loss->score) loss->score[at + j * levels + k] = (float)(cumulative ? sum : h);
            }
            /* The other tail, summed for itself: 1 - before would lose small ones. */
            for (int j = majority_level(loss, a); j <= a; ++j)
                most += hypergeometric(choose, raters, a, j, k);
            if (loss->majority) {
                float *rows = loss->majority + (int64_t)(a - 1) * 2 * levels;
                rows[k] = log_or_zero(before);
                rows[levels + k] = log_or_zero(most);
            }
        }
        if (!loss->survival) continue;
        /* P(j > i) = sum_k p_k P(j > i | k), by parts, is a mean of the P(y > l) with the weights
         * P(j > i | l + 1) - P(j > i | l). */
        for (int i = 0; i < a; ++i)
            for (int l = 0; l < raters; ++l) {
                double here = 0, next = 0;
                for (int j = i + 1; j <= a; ++j) {
                    here += hypergeometric(choose, raters, a, j, l);
                    next += hypergeometric(choose, raters, a, j, l + 1);
                }
                /* Below rounding it is zero. */
                loss->survival[at + i * raters + l] =
                    log_or_zero(next - here > 1e-12 ? next - here : 0);
            }
    }
}

rcn_status rcn_loss_create(rcn_loss **out, rcn_context *ctx, const rcn_loss_options *options) {
    rcn_status status;
    rcn_loss *loss = NULL;
    double(*choose)[MAX_LEVELS] = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output loss is NULL.");
    const char *sentence = rcn_loss_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);

    RCN_ALLOC_ZERO(loss, ctx, 1, "the loss");
    loss->ctx = ctx;
    loss->options = *options;
    const rcn_loss_kind kind = options->kind;
    const int raters = options->raters, levels = raters + 1;
    loss->channels = is_structured(kind)                    ? rcn__structures_channels(options)
                     : is_softmax(kind)                     ? levels
                     : kind == RCN_LOSS_CORN                ? raters
                     : kind == RCN_LOSS_BETA_BINOMIAL_VOXEL ? 2
                                                            : 1;
    if (kind == RCN_LOSS_CORAL || kind == RCN_LOSS_CUMULATIVE_LINK) loss->parameters = raters;
    if (kind == RCN_LOSS_BETA_BINOMIAL) loss->parameters = 1;
    if (is_structured(kind)) loss->parameters = rcn__structures_parameters(options);
    if (kind == RCN_LOSS_RPS_HEADS) {
        rcn_loss_options head = *options;
        head.kind = RCN_LOSS_RPS;
        head.structures = 1;
        RCN_TRY(rcn_loss_create(&loss->head, ctx, &head));
    }

    RCN_ALLOC_ZERO(choose, ctx, MAX_LEVELS, "binomial coefficients");
    for (int n = 1; n < MAX_LEVELS; ++n)
        for (int k = 1; k <= n; ++k) choose[n][k] = choose[n][k - 1] + log((double)(n - k + 1) / k);
    for (int n = 0; n < MAX_LEVELS; ++n)
        for (int k = 0; k < MAX_LEVELS; ++k) loss->log_choose[n][k] = (float)choose[n][k];

    int64_t size = 0;
    for (int a = 1; a <= raters; ++a) {
        loss->offset[a] = size;
        size += (int64_t)(a + 1) * levels;
    }
    if (kind == RCN_LOSS_CE || kind == RCN_LOSS_CORN || kind == RCN_LOSS_CUMULATIVE_LINK)
        RCN_ALLOC(loss->log_mix, ctx, size, "tables for missing raters");
    if (kind == RCN_LOSS_RPS || kind == RCN_LOSS_EMD || kind == RCN_LOSS_BRIER ||
        (options->rps_weight > 0 && !is_closed_form(kind)))
        RCN_ALLOC(loss->score, ctx, size, "tables for missing raters");
    if (kind == RCN_LOSS_RPS)
        RCN_ALLOC(loss->majority, ctx, (int64_t)2 * raters * levels, "tables for missing raters");
    if (kind == RCN_LOSS_CORAL) RCN_ALLOC(loss->survival, ctx, size, "tables for missing raters");
    fill_tables(loss, (const double(*)[MAX_LEVELS])choose);
    *out = loss;
    loss = NULL;
done:
    rcn__free(ctx, choose);
    rcn_loss_destroy(loss);
    return status;
}

void rcn_loss_destroy(rcn_loss *loss) {
    if (!loss) return;
    rcn_context *ctx = loss->ctx;
    rcn__free(ctx, loss->log_mix);
    rcn__free(ctx, loss->score);
    rcn__free(ctx, loss->majority);
    rcn__free(ctx, loss->survival);
    rcn_loss_destroy(loss->head);
    rcn__free(ctx, loss);
}

int rcn_loss_raters(const rcn_loss *loss) { return loss->options.raters; }

int rcn_loss_structures(const rcn_loss *loss) { return loss->options.structures; }

int rcn_loss_channels(const rcn_loss *loss) { return loss->channels; }

int rcn_loss_parameters(const rcn_loss *loss) { return loss->parameters; }

void rcn_loss_init_parameters(float *parameters, const rcn_loss *loss) {
    const int raters = loss->options.raters;
    double before = 0;
    for (int j = 0; j < loss->parameters; ++j) {
        /* Where s(t) = (j + 1) / (K + 1). */
        const double threshold = log((double)(j + 1) / (raters - j));
        switch (loss->options.kind) {
        case RCN_LOSS_CORAL: parameters[j] = (float)-threshold; break;
        case RCN_LOSS_CUMULATIVE_LINK:
            parameters[j] = (float)(j ? sqrt(threshold - before - LINK_GAP) : threshold);
            break;
        default: parameters[j] = (float)logit(START_CORRELATION);
        }
        before = threshold;
    }
}

void rcn__loss_biases(float *biases, float *parameters, const rcn_loss *loss,
                      const double *levels) {
    const int raters = loss->options.raters;
    double above[RCN_MAX_RATERS + 1] = {0}, mean = 0; /* above[j] = P(y > j) */
    for (int j = raters - 1; j >= 0; --j) above[j] = levels[j + 1] + above[j + 1];
    for (int j = 0; j < raters; ++j) mean += above[j] / raters;
    switch (loss->options.kind) {
    case RCN_LOSS_RPS:
    case RCN_LOSS_CE:
    case RCN_LOSS_BRIER:
    case RCN_LOSS_EMD:
        for (int k = 0; k <= raters; ++k) biases[k] = (float)log(levels[k]);
        break;
    case RCN_LOSS_CORN: /* outputs are conditional: P(y > j | y > j - 1) */
        for (int j = 0; j < raters; ++j)
            biases[j] = (float)logit(above[j] / (j ? above[j - 1] : 1));
        break;
    case RCN_LOSS_CORAL:
        for (int j = 0; j < raters; ++j) parameters[j] = (float)logit(above[j]);
        break;
    case RCN_LOSS_CUMULATIVE_LINK: /* t_j = t_(j-1) + v_j^2 + LINK_GAP; s(t_j) = P(y <= j) */
        parameters[0] = (float)-logit(above[0]);
        for (int j = 1; j < raters; ++j) {
            const double gap = logit(above[j - 1]) - logit(above[j]) - LINK_GAP;
            /* A step of 0 would have no slope to grow from. */
            parameters[j] = (float)sqrt(gap > 1e-6 ? gap : 1e-6);
        }
        break;
    case RCN_LOSS_BETA_BINOMIAL_VOXEL:
        biases[0] = (float)logit(mean);
        biases[1] = (float)logit(START_CORRELATION);
        break;
    case RCN_LOSS_BINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL:
    case RCN_LOSS_BCE:
    case RCN_LOSS_BINARY_BRIER: biases[0] = (float)logit(mean); break;
    case RCN_LOSS_DIRICHLET_MULTINOMIAL:
    case RCN_LOSS_CATEGORICAL:
    case RCN_LOSS_RPS_HEADS: break; /* rcn__loss_label_biases() */
    }
}

void rcn__loss_constants(constants *out, const rcn_loss *loss, const float *parameters) {
    memset(out, 0, sizeof *out);
    double threshold = 0;
    for (int j = 0; j < loss->parameters; ++j) {
        const double x = parameters[j];
        if (loss->options.kind == RCN_LOSS_CORAL) {
            out->bias[j] = parameters[j];
        } else if (loss->options.kind == RCN_LOSS_CUMULATIVE_LINK) {
            const double gap = x * x + LINK_GAP;
            threshold = j ? threshold + gap : x;
            out->bias[j] = (float)threshold;
            out->gap[j] = (float)-expm1(-gap);
            out->log_gap[j] = (float)log(-expm1(-gap));
            out->gap_slope[j] = (float)(exp(-gap) / -expm1(-gap));
            out->gap_chain[j] = (float)(2 * x);
        } else {
            const double used = fmax(fmin(x, BETA_BINOMIAL_BOUND), -BETA_BINOMIAL_BOUND);
            out->gamma = (float)exp(used);
            out->gamma_chain = used == x;
        }
    }
    if (loss->options.kind == RCN_LOSS_DIRICHLET_MULTINOMIAL) rcn__structures_constants(out, loss);
}

/* ---- kernels: one block of voxels, all of which `answered` raters saw ------------------------ */

/* For x_k = log p_k + const and a row of log weights per lane: r_k = the share of level k in
 * sum_k w_k p_k; returns the logarithm of that sum in log_sum. rows is (?, levels). */
RCN_INLINE void posterior(float (*r)[LANES], float *log_sum, float (*x)[LANES], const float *rows,
                          const int32_t *row, int levels) {
    float most[LANES], sum[LANES];
    for (int i = 0; i < LANES; ++i) most[i] = LOG_ZERO * 2;
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) r[k][i] = rows[row[i] * levels + k];
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) {
            r[k][i] += x[k][i];
            most[i] = rcn__at_least(most[i], r[k][i]);
        }
    for (int i = 0; i < LANES; ++i) sum[i] = 0;
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) {
            r[k][i] = rcn__exp(r[k][i] - most[i]);
            sum[i] += r[k][i];
        }
    for (int i = 0; i < LANES; ++i) log_sum[i] = most[i] + rcn__log(sum[i]);
    for (int i = 0; i < LANES; ++i) sum[i] = 1.0f / sum[i];
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) r[k][i] *= sum[i];
}

/* BCE of the majority, everybody answered. With M the levels from h on and N those below,
 * P(M) = s(d), d = logsumexp over M - logsumexp over N: no probability is ever subtracted from
 * one, and d loss / d z_k = (P(M) - t) * (+-)(softmax within k's own group). Fills p, too. */
RCN_INLINE void majority_bce(block *b, int levels, int h, float weight) {
    float most[2][LANES], sum[2][LANES], in_group[2][LANES];
    for (int g = 0; g < 2; ++g) {
        const int first = g ? h : 0, end = g ? levels : h;
        for (int i = 0; i < LANES; ++i) most[g][i] = b->z[first][i];
        for (int k = first + 1; k < end; ++k)
            for (int i = 0; i < LANES; ++i) most[g][i] = rcn__at_least(most[g][i], b->z[k][i]);
        for (int i = 0; i < LANES; ++i) sum[g][i] = 0;
        for (int k = first; k < end; ++k)
            for (int i = 0; i < LANES; ++i) {
                b->p[k][i] = rcn__exp(b->z[k][i] - most[g][i]);
                sum[g][i] += b->p[k][i];
            }
    }
    for (int i = 0; i < LANES; ++i) {
        const float d = (most[1][i] - most[0][i]) + (rcn__log(sum[1][i]) - rcn__log(sum[0][i]));
        const int truth = b->marked[i] >= (float)h;
        float yes, no;
        const float log1p_u = sigmoid(&yes, &no, d);
        b->loss[i] = -weight * log_sigmoid(truth ? d : -d, log1p_u);
        const float slope = weight * (truth ? -no : yes);
        sum[0][i] = 1.0f / sum[0][i];
        sum[1][i] = 1.0f / sum[1][i];
        in_group[0][i] = -slope * sum[0][i];
        in_group[1][i] = slope * sum[1][i];
        sum[0][i] *= no;
        sum[1][i] *= yes;
    }
    for (int k = 0; k < levels; ++k) {
        const int g = k >= h;
        for (int i = 0; i < LANES; ++i) {
            b->grad[k][i] = b->p[k][i] * in_group[g][i];
            b->p[k][i] *= sum[g][i];
        }
    }
}

/* loss += sum_k (p_k - [y = k])^2, s = its derivative. */
RCN_INLINE void score_brier(block *b, int levels) {
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) {
            const float e = b->p[k][i] - (b->marked[i] == (float)k ? 1.0f : 0.0f);
            b->loss[i] += e * e;
            b->s[k][i] = 2 * e;
        }
}

/* The same two for a < K: rows of `matrix` (a+1, levels) give what p implies for the a raters. */
RCN_INLINE void score_thinned(block *b, const float *matrix, int levels, int a, int cumulative,
                              float c) {
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) b->s[k][i] = 0;
    for (int j = 0; j < a + !cumulative; ++j) {
        const float *row = matrix + j * levels;
        float e[LANES];
        for (int i = 0; i < LANES; ++i) {
            const int hit = cumulative ? b->marked[i] <= (float)j : b->marked[i] == (float)j;
            e[i] = hit ? -1.0f : 0.0f;
        }
        for (int k = 0; k < levels; ++k)
            for (int i = 0; i < LANES; ++i) e[i] += row[k] * b->p[k][i];
        for (int i = 0; i < LANES; ++i) b->loss[i] += c * (e[i] * e[i]);
        for (int k = 0; k < levels; ++k)
            for (int i = 0; i < LANES; ++i) b->s[k][i] += 2 * c * row[k] * e[i];
    }
}

/* Cross-entropy of q = sum_k k/K p_k with v/a. 1 - q is a sum of its own, so that nothing cancels;
 * dividing by either is harmless where it is at least as large as the p_k that it is divided into,
 * and `least` keeps log and quotient finite where every p_k has vanished. */
RCN_INLINE void add_expected(block *b, int levels, float weight) {
    const float step = 1.0f / (float)(levels - 1), least = 1e-37f;
    float yes[LANES], no[LANES];
    for (int i = 0; i < LANES; ++i) yes[i] = no[i] = 0;
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) {
            yes[i] += (float)k * step * b->p[k][i];
            no[i] += (float)(levels - 1 - k) * step * b->p[k][i];
        }
    for (int i = 0; i < LANES; ++i) {
        const float share = b->marked[i] / b->answered[i];
        yes[i] = rcn__at_least(yes[i], least);
        no[i] = rcn__at_least(no[i], least);
        b->loss[i] -= weight * (share * rcn__log(yes[i]) + (1 - share) * rcn__log(no[i]));
        yes[i] = weight * share * step / yes[i];
        no[i] = weight * (1 - share) * step / no[i];
    }
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i)
            b->s[k][i] -= (float)k * yes[i] + (float)(levels - 1 - k) * no[i];
}

/* y lies between v and v + K - a: the order of p is asked for outside. */
RCN_INLINE void add_unimodal(block *b, int levels, int a, float weight) {
    const float spread = (float)(levels - 1 - a);
    for (int k = 0; k < levels - 1; ++k)
        for (int i = 0; i < LANES; ++i) {
            const float rise = b->p[k + 1][i] - b->p[k][i];
            const float left = (float)k < b->marked[i] && rise < 0 ? weight : 0.0f;
            const float right = (float)k >= b->marked[i] + spread && rise > 0 ? weight : 0.0f;
            b->loss[i] += (right - left) * rise;
            b->s[k][i] += left - right;
            b->s[k + 1][i] += right - left;
        }
}

/* Kinds with K + 1 channels. */
RCN_DISPATCH static void run_softmax(block *b, const rcn_loss *loss, int a) {
    const rcn_loss_options *options = &loss->options;
    const int raters = options->raters, levels = raters + 1;
    const float bce = (float)options->bce_weight;
    float log_sum[LANES], log_seen[LANES];
    if (options->kind == RCN_LOSS_RPS && a == raters) {
        majority_bce(b, levels, majority_level(loss, a), bce);
    } else {
        softmax(b, log_sum, levels);
        for (int i = 0; i < LANES; ++i) b->loss[i] = 0;
        for (int k = 0; k < levels; ++k)
            for (int i = 0; i < LANES; ++i) b->grad[k][i] = 0;
    }
    /* -log sum_k w_k p_k, w = what is seen given k; gradient p - (p given what is seen). */
    if (options->kind == RCN_LOSS_CE || (options->kind == RCN_LOSS_RPS && a < raters)) {
        const int by_level = options->kind == RCN_LOSS_CE, h = majority_level(loss, a);
        const float *rows = by_level ? loss->log_mix + loss->offset[a]
                                     : loss->majority + (int64_t)(a - 1) * 2 * levels;
        const float weight = by_level ? 1.0f : bce;
        int32_t row[LANES];
        for (int i = 0; i < LANES; ++i)
            row[i] = by_level ? (int32_t)b->marked[i] : b->marked[i] >= (float)h;
        posterior(b->s, log_seen, b->z, rows, row, levels);
        for (int i = 0; i < LANES; ++i) b->loss[i] += weight * (log_sum[i] - log_seen[i]);
        for (int k = 0; k < levels; ++k)
            for (int i = 0; i < LANES; ++i) b->grad[k][i] += weight * (b->p[k][i] - b->s[k][i]);
    }
    const int cumulative = options->kind != RCN_LOSS_BRIER;
    const float c = options->kind == RCN_LOSS_RPS  ? (float)(options->alpha / (a + 1))
                    : options->kind == RCN_LOSS_CE ? (float)(options->rps_weight / (a + 1))
                                                   : 1.0f;
    if (options->kind == RCN_LOSS_CE && options->rps_weight == 0) {
        if (options->expected_weight == 0 && options->unimodal_weight == 0) return;
        for (int k = 0; k < levels; ++k)
            for (int i = 0; i < LANES; ++i) b->s[k][i] = 0;
    } else if (a < raters) {
        score_thinned(b, loss->score + loss->offset[a], levels, a, cumulative, c);
    } else if (cumulative) {
        score_cumulative(b, levels, c);
    } else {
        score_brier(b, levels);
    }
    if (options->expected_weight > 0) add_expected(b, levels, (float)options->expected_weight);
    if (options->unimodal_weight > 0) add_unimodal(b, levels, a, (float)options->unimodal_weight);
    /* Through the softmax: d/dz_m = p_m (s_m - sum_k p_k s_k). */
    for (int i = 0; i < LANES; ++i) log_sum[i] = 0;
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) log_sum[i] += b->p[k][i] * b->s[k][i];
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) b->grad[k][i] += b->p[k][i] * (b->s[k][i] - log_sum[i]);
}

/* Adds the term of the ranked probability score to a loss that goes through log p_k, k = 0 ... K:
 * share[k] becomes minus the derivative of the whole loss by log p_k. Overwrites p by exp(p). */
RCN_INLINE void add_rps_of_levels(block *b, float (*share)[LANES], const rcn_loss *loss, int a) {
    const int raters = loss->options.raters, levels = raters + 1;
    const float c = (float)(loss->options.rps_weight / (a + 1));
    if (a < raters)
        score_thinned(b, loss->score + loss->offset[a], levels, a, 1, c);
    else
        score_cumulative(b, levels, c);
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < LANES; ++i) share[k][i] -= b->p[k][i] * b->s[k][i];
}

/* The same where p holds their logarithms. */
RCN_INLINE void add_rps(block *b, float (*share)[LANES], const rcn_loss *loss, int a) {
    for (int k = 0; k <= loss->options.raters; ++k)
        for (int i = 0; i < LANES; ++i) b->p[k][i] = rcn__exp(b->p[k][i]);
    add_rps_of_levels(b, share, loss, a);
}

/* CORN: log p_k = sum_(j<k) log s(z_j) + log s(-z_k). */
RCN_DISPATCH static void run_corn(block *b, const rcn_loss *loss, int a) {
    const int raters = loss->options.raters;
    float share[MAX_LEVELS][LANES], sum[LANES], yes, no;
    int32_t row[LANES];
    for (int i = 0; i < LANES; ++i) row[i] = (int32_t)b->marked[i];
    for (int i = 0; i < LANES; ++i) sum[i] = 0;
    for (int j = 0; j < raters; ++j)
        for (int i = 0; i < LANES; ++i) {
            const float x = b->z[j][i], log1p_u = sigmoid(&yes, &no, x);
            b->p[j][i] = rcn__at_least(sum[i] + log_sigmoid(-x, log1p_u), -LOGIT_BOUND);
            sum[i] = rcn__at_least(sum[i] + log_sigmoid(x, log1p_u), -LOGIT_BOUND);
        }
    for (int i = 0; i < LANES; ++i) b->p[raters][i] = sum[i];
    posterior(share, sum, b->p, loss->log_mix + loss->offset[a], row, raters + 1);
    for (int i = 0; i < LANES; ++i) b->loss[i] = -sum[i];
    if (loss->options.rps_weight > 0) add_rps(b, share, loss, a);
    for (int i = 0; i < LANES; ++i) sum[i] = 0; /* of the shares above j */
    for (int j = raters - 1; j >= 0; --j)
        for (int i = 0; i < LANES; ++i) {
            sum[i] += share[j + 1][i];
            sigmoid(&yes, &no, b->z[j][i]);
            b->grad[j][i] = share[j][i] * yes - sum[i] * no;
        }
}

/* Cumulative link: s(t) - s(u) = s(t) s(-u) (1 - exp(u - t)), whose last factor is the same for all
 * voxels; so log p_k needs no difference of probabilities.
 *
 * Everybody answered: the level is known, and the posterior is 1 there. Only its own logarithm is
 * wanted, and the levels are products of what the gradient needs anyway. */
RCN_INLINE void link_complete(block *b, float (*share)[LANES], float (*yes)[LANES],
                              float (*no)[LANES], const rcn_loss *loss, const constants *own) {
    const int raters = loss->options.raters;
    float above[LANES], below[LANES], log_gap[LANES], unused[2];
    for (int i = 0; i < LANES; ++i) above[i] = below[i] = LOGIT_BOUND; /* s = 1: no threshold */
    for (int i = 0; i < LANES; ++i) log_gap[i] = 0;
    for (int j = 0; j < raters; ++j) {
        const float threshold = own->bias[j], level = (float)j, gap = own->log_gap[j];
        for (int i = 0; i < LANES; ++i) {
            const float x = threshold - b->z[0][i];
            sigmoid(&yes[j][i], &no[j][i], x);
            above[i] = b->marked[i] == level ? x : above[i];
            below[i] = b->marked[i] == level + 1 ? -x : below[i];
        }
        for (int i = 0; j > 0 && i < LANES; ++i)
            log_gap[i] = b->marked[i] == level ? gap : log_gap[i];
    }
    for (int i = 0; i < LANES; ++i) {
        const float u = sigmoid(&unused[0], &unused[1], above[i]);
        const float v = sigmoid(&unused[0], &unused[1], below[i]);
        b->loss[i] = -(log_gap[i] + log_sigmoid(above[i], u) + log_sigmoid(below[i], v));
    }
    for (int k = 0; k <= raters; ++k) {
        const float gap = k > 0 && k < raters ? own->gap[k] : 1.0f, level = (float)k;
        for (int i = 0; i < LANES; ++i) {
            const float up = k < raters ? yes[k][i] : 1.0f, down = k > 0 ? no[k - 1][i] : 1.0f;
            b->p[k][i] = up * down * gap;
            share[k][i] = b->marked[i] == level ? 1.0f : 0.0f;
        }
    }
    if (loss->options.rps_weight > 0) add_rps_of_levels(b, share, loss, raters);
}

/* Some are missing. */
RCN_INLINE void link_thinned(block *b, float (*share)[LANES], float (*yes)[LANES],
                             float (*no)[LANES], const rcn_loss *loss, const constants *own,
                             int a) {
    const int raters = loss->options.raters;
    float sum[LANES];
    int32_t row[LANES];
    for (int i = 0; i < LANES; ++i) row[i] = (int32_t)b->marked[i];
    for (int k = 0; k <= raters; ++k) {
        const float log_gap = k > 0 && k < raters ? own->log_gap[k] : 0.0f;
        for (int i = 0; i < LANES; ++i) b->p[k][i] = log_gap;
    }
    for (int j = 0; j < raters; ++j) {
        const float threshold = own->bias[j];
        for (int i = 0; i < LANES; ++i) {
            const float x = threshold - b->z[0][i];
            const float log1p_u = sigmoid(&yes[j][i], &no[j][i], x);
            b->p[j][i] += log_sigmoid(x, log1p_u);
            b->p[j + 1][i] += log_sigmoid(-x, log1p_u);
        }
    }
    posterior(share, sum, b->p, loss->log_mix + loss->offset[a], row, raters + 1);
    for (int i = 0; i < LANES; ++i) b->loss[i] = -sum[i];
    if (loss->options.rps_weight > 0) add_rps(b, share, loss, a);
}

RCN_DISPATCH static void run_link(block *b, const rcn_loss *loss, const constants *own, int a) {
    const int raters = loss->options.raters;
    float share[MAX_LEVELS][LANES], yes[RCN_MAX_RATERS][LANES], no[RCN_MAX_RATERS][LANES];
    float sum[LANES]; /* d loss / d t_j, over j */
    if (a == raters)
        link_complete(b, share, yes, no, loss, own);
    else
        link_thinned(b, share, yes, no, loss, own, a);
    for (int i = 0; i < LANES; ++i) sum[i] = 0;
    for (int j = raters - 1; j >= 0; --j) {
        const float slope = own->gap_slope[j], chain = own->gap_chain[j];
        for (int i = 0; i < LANES; ++i) {
            sum[i] += share[j + 1][i] * yes[j][i] - share[j][i] * no[j][i];
            b->own[j][i] = j ? chain * (sum[i] - share[j][i] * slope) : sum[i];
        }
    }
    for (int i = 0; i < LANES; ++i) b->grad[0][i] = -sum[i];
}

/* CORAL. */
RCN_DISPATCH static void run_coral(block *b, const rcn_loss *loss, const constants *own, int a) {
    const int raters = loss->options.raters;
    for (int i = 0; i < LANES; ++i) b->loss[i] = 0;
    for (int i = 0; i < LANES; ++i) b->grad[0][i] = 0;
    for (int j = 0; j < raters; ++j)
        for (int i = 0; i < LANES; ++i) b->own[j][i] = 0;
    if (a == raters) {
        for (int j = 0; j < raters; ++j) {
            const float bias = own->bias[j];
            for (int i = 0; i < LANES; ++i) {
                const float x = b->z[0][i] + bias;
                const int truth = b->marked[i] > (float)j;
                float yes, no;
                const float log1p_u = sigmoid(&yes, &no, x);
                b->loss[i] -= log_sigmoid(truth ? x : -x, log1p_u);
                b->own[j][i] = truth ? -no : yes;
                b->grad[0][i] += b->own[j][i];
            }
        }
        return;
    }
    /* P(v > i) and P(v <= i) are means of the s(x_l) and s(-x_l) with the same weights. */
    static const int32_t only_row[LANES] = {0};
    for (int t = 0; t < a; ++t) {
        float log_seen[LANES];
        for (int l = 0; l < raters; ++l) {
            const float bias = own->bias[l];
            for (int i = 0; i < LANES; ++i) {
                float yes, no, x = b->z[0][i] + bias;
                x = b->marked[i] > (float)t ? x : -x;
                b->p[l][i] = log_sigmoid(x, sigmoid(&yes, &no, x));
            }
        }
        posterior(b->s, log_seen, b->p, loss->survival + loss->offset[a] + t * raters, only_row,
                  raters);
        for (int i = 0; i < LANES; ++i) b->loss[i] -= log_seen[i];
        for (int l = 0; l < raters; ++l) {
            const float bias = own->bias[l];
            for (int i = 0; i < LANES; ++i) {
                float yes, no;
                sigmoid(&yes, &no, b->z[0][i] + bias);
                const float slope = b->s[l][i] * (b->marked[i] > (float)t ? -no : yes);
                b->own[l][i] += slope;
                b->grad[0][i] += slope;
            }
        }
    }
}

/* Binomial, and both kinds with a binary target. */
RCN_DISPATCH static void run_single(block *b, const rcn_loss *loss) {
    float yes, no;
    if (loss->options.kind == RCN_LOSS_BINARY_BRIER) {
        for (int i = 0; i < LANES; ++i) {
            sigmoid(&yes, &no, b->z[0][i]);
            const float e = (1.0f - b->value[i]) * yes - b->value[i] * no;
            b->loss[i] = e * e;
            b->grad[0][i] = 2 * e * (yes * no);
        }
        return;
    }
    const int binomial = loss->options.kind == RCN_LOSS_BINOMIAL;
    for (int i = 0; i < LANES; ++i) {
        const float x = b->z[0][i];
        const float for_it = binomial ? b->marked[i] : b->value[i];
        const float against = binomial ? b->answered[i] - b->marked[i] : 1.0f - b->value[i];
        const float log1p_u = sigmoid(&yes, &no, x);
        b->loss[i] = -(for_it * log_sigmoid(x, log1p_u) + against * log_sigmoid(-x, log1p_u));
        b->grad[0][i] = against * yes - for_it * no;
    }
    if (binomial)
        for (int i = 0; i < LANES; ++i)
            b->loss[i] -= loss->log_choose[(int)b->answered[i]][(int)b->marked[i]];
}

/* Beta-binomial with mean m and g = correlation / (1 - correlation), v marks among a raters:
 * C(a, v) prod_(i<v) (m + i g) prod_(i<a-v) (1 - m + i g) / prod_(i<a) (1 + i g). The factors of
 * GATHERED i are multiplied before one logarithm is taken: fewer of them, and less rounding in
 * their sum. For one i their quotient is between 1e-9 and 1e9 for any g in bounds. `by_gamma` is
 * the derivative by log g. */
RCN_INLINE void beta_binomial(block *b, float *by_gamma, const rcn_loss *loss, const float *gamma) {
    enum { GATHERED = 4 };
    const int raters = loss->options.raters;
    float yes[LANES], no[LANES], quotient[LANES];
    for (int i = 0; i < LANES; ++i) {
        const float x = b->z[0][i], log1p_u = sigmoid(&yes[i], &no[i], x);
        const float first = b->marked[i] > 0 ? 1.0f : 0.0f;
        const float other = b->answered[i] > b->marked[i] ? 1.0f : 0.0f;
        b->loss[i] = -(first * log_sigmoid(x, log1p_u) + other * log_sigmoid(-x, log1p_u));
        b->grad[0][i] = other * yes[i] - first * no[i];
        by_gamma[i] = 0;
    }
    for (int j = 1; j < raters; ++j) {
        const float n = (float)j;
        for (int i = 0; i < LANES && j % GATHERED == 1; ++i) quotient[i] = 1;
        for (int i = 0; i < LANES; ++i) {
            const float first = n < b->marked[i] ? 1.0f : 0.0f;
            const float other = n < b->answered[i] - b->marked[i] ? 1.0f : 0.0f;
            const float all = n < b->answered[i] ? 1.0f : 0.0f;
            const float step = n * gamma[i], both = yes[i] * no[i];
            const float mark = 1.0f / (first > 0 ? yes[i] + step : 1.0f);
            const float blank = 1.0f / (other > 0 ? no[i] + step : 1.0f);
            const float whole = all > 0 ? 1.0f + step : 1.0f;
            quotient[i] *= whole * mark * blank;
            b->grad[0][i] += both * (other * blank - first * mark);
            by_gamma[i] += step * (all / whole - first * mark - other * blank);
        }
        if (j % GATHERED == 0 || j == raters - 1)
            for (int i = 0; i < LANES; ++i) b->loss[i] += rcn__log(quotient[i]);
    }
    for (int i = 0; i < LANES; ++i)
        b->loss[i] -= loss->log_choose[(int)b->answered[i]][(int)b->marked[i]];
}

/* Log gamma is the logit of the correlation: of all voxels, or of each in a channel of its own. */
RCN_INLINE void gamma_of(float *gamma, float *chain, const block *b, const rcn_loss *loss,
                         const constants *own) {
    const float bound = (float)BETA_BINOMIAL_BOUND;
    if (loss->options.kind != RCN_LOSS_BETA_BINOMIAL_VOXEL) {
        for (int i = 0; i < LANES; ++i) gamma[i] = own->gamma;
        for (int i = 0; i < LANES; ++i) chain[i] = own->gamma_chain;
        return;
    }
    for (int i = 0; i < LANES; ++i) {
        const float x = b->z[1][i], used = rcn__at_most(rcn__at_least(x, -bound), bound);
        gamma[i] = rcn__exp(used);
        chain[i] = used == x ? 1.0f : 0.0f;
    }
}

RCN_DISPATCH static void run_beta_binomial(block *b, const rcn_loss *loss, const constants *own,
                                           int a) {
    float gamma[LANES], chain[LANES], by_gamma[LANES], yes[LANES], no[LANES];
    gamma_of(gamma, chain, b, loss, own);
    beta_binomial(b, by_gamma, loss, gamma);
    if (loss->options.rps_weight > 0) {
        for (int i = 0; i < LANES; ++i) sigmoid(&yes[i], &no[i], b->z[0][i]);
        add_beta_binomial_rps(b, b->grad[0], by_gamma, yes, no, gamma, a,
                              (float)(loss->options.rps_weight / (a + 1)));
    }
    float *out = loss->options.kind == RCN_LOSS_BETA_BINOMIAL ? b->own[0] : b->grad[1];
    for (int i = 0; i < LANES; ++i) out[i] = by_gamma[i] * chain[i];
}

static void run_kernel(block *b, const rcn_loss *loss, const constants *own, int a) {
    switch (loss->options.kind) {
    case RCN_LOSS_RPS:
    case RCN_LOSS_CE:
    case RCN_LOSS_BRIER:
    case RCN_LOSS_EMD: run_softmax(b, loss, a); break;
    case RCN_LOSS_CORN: run_corn(b, loss, a); break;
    case RCN_LOSS_CORAL: run_coral(b, loss, own, a); break;
    case RCN_LOSS_CUMULATIVE_LINK: run_link(b, loss, own, a); break;
    case RCN_LOSS_BINOMIAL:
    case RCN_LOSS_BCE:
    case RCN_LOSS_BINARY_BRIER: run_single(b, loss); break;
    case RCN_LOSS_BETA_BINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL_VOXEL: run_beta_binomial(b, loss, own, a); break;
    case RCN_LOSS_DIRICHLET_MULTINOMIAL:
    case RCN_LOSS_CATEGORICAL: rcn__structures_run(b, loss, own, a); break;
    case RCN_LOSS_RPS_HEADS: break; /* each head is a kernel of its own */
    }
}

/* ---- a batch --------------------------------------------------------------------------------- */

typedef struct loss_job {
    const rcn_loss *loss;
    constants own;
    float *gradient;
    const float *logits;
    const rcn_loss_target *targets;
    int64_t voxels;
    int64_t chunks_per_sample;
    const int *answered; /* per sample: what all labels that count have, or 0 when they differ */
    double weight_sum;
    int own_wanted;
    int heads;    /* of which the mean is taken; 1 but for RCN_LOSS_RPS_HEADS */
    double *sums; /* per chunk: loss, then the gradient of each own parameter */
    int32_t *bad; /* per chunk: a code without a label, or -1 */
} loss_job;

/* Codes outside the table become void and are reported. */
/* The voxel's label; the first one, and *bad, where it has none. */
static const rcn_loss_label *label_at(const rcn_loss_target *target, int64_t at, int32_t *bad) {
    const uint32_t code = code_at(target, at);
    if (code < (uint64_t)target->label_count) return &target->labels[code];
    *bad = (int32_t)(code & INT32_MAX);
    return target->labels;
}

static float weight_of_map(float value) { return value < 0 ? 0.0f : 1.0f; }

static void read_labels(block *b, const rcn_loss_target *target, int64_t first, int count,
                        int32_t *bad) {
    if (target->map) {
        for (int i = 0; i < count; ++i) {
            const float value = target->map[first + i];
            b->value[i] = value;
            b->weight[i] = weight_of_map(value);
            b->marked[i] = 0;
            b->answered[i] = 1;
        }
        return;
    }
    for (int i = 0; i < count; ++i) {
        const rcn_loss_label *label = label_at(target, first + i, bad);
        b->value[i] = label->value;
        b->weight[i] = label->weight;
        b->marked[i] = label->marked;
        b->answered[i] = label->answered;
    }
}

/* Lanes beyond the last voxel, and void ones, hold something harmless. */
static void tame_labels(block *b, int count) {
    for (int i = count; i < LANES; ++i) b->weight[i] = b->value[i] = b->marked[i] = 0;
    for (int i = count; i < LANES; ++i) b->answered[i] = 1;
    for (int i = 0; i < LANES; ++i)
        if (b->weight[i] == 0) {
            b->value[i] = b->marked[i] = 0;
            b->answered[i] = 1;
        }
}

RCN_DISPATCH static void read_logits(block *b, const float *logits, int channels, int64_t voxels,
                                     int count) {
    read_outputs(b, logits, channels, voxels, count);
}

RCN_DISPATCH static void write_gradient(float *gradient, const block *b, int channels,
                                        int64_t voxels, int count, double scale) {
    float factor[LANES];
    const float scale_f = (float)scale;
    for (int i = 0; i < LANES; ++i) factor[i] = b->weight[i] * scale_f;
    for (int c = 0; c < channels; ++c) {
        float *plane = gradient + c * voxels;
        if (count == LANES)
            for (int i = 0; i < LANES; ++i)
                plane[i] = factor[i] == 0 ? 0.0f : b->grad[c][i] * factor[i];
        else
            for (int i = 0; i < count; ++i)
                plane[i] = factor[i] == 0 ? 0.0f : b->grad[c][i] * factor[i];
    }
}

/* Void lanes may hold a NaN that the network made there: they are left out, not multiplied. */
RCN_DISPATCH static void add_loss(double *lanes, const block *b) {
    for (int i = 0; i < LANES; ++i)
        lanes[i] += b->weight[i] == 0 ? 0.0 : (double)b->loss[i] * (double)b->weight[i];
}

static double add_own(const float *own, const float *weight) {
    double sum = 0;
    for (int i = 0; i < LANES; ++i)
        sum += weight[i] == 0 ? 0.0 : (double)own[i] * (double)weight[i];
    return sum;
}

/* Raters are missing at some voxels: the kernel runs once for each number of raters that answered
 * in the block, and each voxel keeps what belongs to it. */
static void run_mixed(block *b, const rcn_loss *loss, const constants *own) {
    block work;
    uint64_t seen = 0;
    for (int i = 0; i < LANES; ++i)
        if (b->weight[i] > 0) seen |= UINT64_C(1) << ((int)b->answered[i] - 1);
    if (!(seen & (seen - 1))) {
        /* The place of the one bit, found without a shift: by 64 it would not be defined. */
        run_kernel(b, loss, own, seen ? rcn_popcount(seen - 1) + 1 : 1);
        return;
    }
    for (int a = 1; a <= loss->options.raters; ++a) {
        if (!(seen >> (a - 1) & 1)) continue;
        memcpy(work.z, b->z, sizeof b->z[0] * (size_t)loss->channels);
        /* The tables for a have no row above it; those lanes are not kept. */
        for (int i = 0; i < LANES; ++i) work.marked[i] = rcn__at_most(b->marked[i], (float)a);
        memcpy(work.answered, b->answered, sizeof b->answered);
        if (is_structured(loss->options.kind)) {
            memcpy(work.n, b->n, sizeof b->n[0] * (size_t)loss->channels);
            memcpy(work.rest, b->rest, sizeof b->rest);
            memcpy(work.rest_slope, b->rest_slope, sizeof b->rest_slope);
        }
        run_kernel(&work, loss, own, a);
        for (int i = 0; i < LANES; ++i) {
            if (b->answered[i] != (float)a) continue;
            b->loss[i] = work.loss[i];
            for (int c = 0; c < loss->channels; ++c) b->grad[c][i] = work.grad[c][i];
            for (int j = 0; j < loss->parameters; ++j) b->own[j][i] = work.own[j][i];
        }
    }
}

/* One block of voxels; of several heads, one of them. Adds to the sums. */
static void run_block(block *b, double *lanes, double *sums, const loss_job *job, int64_t sample,
                      int head, int64_t at, int count, int32_t *bad) {
    const rcn_loss *loss = job->loss->head ? job->loss->head : job->loss;
    const rcn_loss_target *target = &job->targets[sample];
    const int64_t plane =
        (sample * job->loss->channels + (int64_t)head * loss->channels) * job->voxels;
    read_logits(b, job->logits + plane + at, loss->channels, job->voxels, count);
    read_labels(b, target, at, count, bad);
    tame_labels(b, count);
    if (is_structured(job->loss->options.kind))
        rcn__structures_read(b, job->loss, &job->own, target, head, at, count);
    if (is_closed(&loss->options))
        run_kernel(b, loss, &job->own, 0);
    else if (job->answered[sample])
        run_kernel(b, loss, &job->own, job->answered[sample]);
    else
        run_mixed(b, loss, &job->own);
    add_loss(lanes, b);
    if (job->own_wanted)
        for (int j = 0; j < loss->parameters; ++j) sums[1 + j] += add_own(b->own[j], b->weight);
    if (job->gradient)
        write_gradient(job->gradient + plane + at, b, loss->channels, job->voxels, count,
                       target->weight / job->weight_sum / job->heads);
}

static void run_chunk(int64_t chunk, int thread, void *payload) {
    (void)thread;
    const loss_job *job = payload;
    const int parameters = job->loss->parameters;
    const int64_t sample = chunk / job->chunks_per_sample;
    double *sums = job->sums + chunk * (1 + parameters);
    double lanes[LANES] = {0};
    int64_t first, end;
    block b;
    rcn__chunk_range(&first, &end, chunk % job->chunks_per_sample, job->voxels, RCN_CHUNK);
    for (int j = 0; j <= parameters; ++j) sums[j] = 0;
    job->bad[chunk] = -1;
    for (int64_t at = first; at < end; at += LANES) {
        const int count = (int)(end - at < LANES ? end - at : LANES);
        for (int head = 0; head < job->heads; ++head)
            run_block(&b, lanes, sums, job, sample, head, at, count, &job->bad[chunk]);
    }
    for (int i = 0; i < LANES; ++i) sums[0] += lanes[i];
    for (int j = 0; j <= parameters; ++j) sums[j] *= job->targets[sample].weight / job->heads;
}

static void weigh_chunk(int64_t chunk, int thread, void *payload) {
    (void)thread;
    const loss_job *job = payload;
    const rcn_loss_target *target = &job->targets[chunk / job->chunks_per_sample];
    double sum = 0;
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk % job->chunks_per_sample, job->voxels, RCN_CHUNK);
    job->bad[chunk] = -1;
    for (int64_t at = first; at < end; ++at)
        sum += target->map ? weight_of_map(target->map[at])
                           : label_at(target, at, &job->bad[chunk])->weight;
    job->sums[chunk] = sum * target->weight;
}

/* Checks one sample's target. *answered = what all its labels that count have, or 0; *weight = the
 * weight that they all have, or -1. */
static rcn_status check_target(int *answered, float *weight, rcn_context *ctx, const rcn_loss *loss,
                               const rcn_loss_target *target, int64_t sample) {
    const long long number = (long long)sample + 1;
    *answered = 0;
    *weight = -1;
    if (!is_weight(target->weight))
        return rcn__fail(ctx, RCN_EINVALID, "The weight of sample %lld is not valid.", number);
    if (target->map) {
        if (is_binary(loss->options.kind)) return RCN_OK;
        return rcn__fail(ctx, RCN_EINVALID, "The loss \"%s\" needs votes, not a target map.",
                         rcn_loss_kind_name(loss->options.kind));
    }
    if (!target->codes || !target->labels || target->label_count < 1 ||
        (target->code_bytes != 1 && target->code_bytes != 2 && target->code_bytes != 4))
        return rcn__fail(ctx, RCN_EINVALID, "Sample %lld has no target.", number);
    int uniform = 1;
    for (int64_t c = 0; c < target->label_count; ++c) {
        const rcn_loss_label *label = &target->labels[c];
        if (!(label->weight >= 0 && label->weight <= 1e30f))
            return rcn__fail(ctx, RCN_EINVALID, "Label %lld of sample %lld has the weight %g.",
                             (long long)c, number, (double)label->weight);
        if (c == 0) *weight = label->weight;
        if (label->weight != *weight) *weight = -1;
        if (label->weight == 0) continue;
        if (is_binary(loss->options.kind)) {
            if (!(label->value >= 0 && label->value <= 1))
                return rcn__fail(ctx, RCN_EINVALID,
                                 "Label %lld of sample %lld is %g; a target must be 0 to 1.",
                                 (long long)c, number, (double)label->value);
            continue;
        }
        if (label->answered < 1 || label->answered > loss->options.raters ||
            label->marked > label->answered)
            return rcn__fail(ctx, RCN_EINVALID,
                             "Label %lld of sample %lld has %d marks of %d answers; the loss is "
                             "for %d raters.",
                             (long long)c, number, label->marked, label->answered,
                             loss->options.raters);
        if (*answered == 0) *answered = label->answered;
        if (*answered != label->answered) uniform = 0;
    }
    if (!uniform) *answered = 0;
    return is_structured(loss->options.kind)
               ? rcn__structures_check_target(ctx, loss, target, sample)
               : RCN_OK;
}

rcn_status rcn__loss_check_batch(rcn_context *ctx, const rcn_loss *loss, const float *logits,
                                 const float *parameters, int64_t samples, int64_t voxels) {
    if (!loss || !logits) return rcn__fail(ctx, RCN_EINVALID, "The loss or the logits are NULL.");
    if (loss->parameters && !parameters)
        return rcn__fail(ctx, RCN_EINVALID, "The loss \"%s\" needs its parameters.",
                         rcn_loss_kind_name(loss->options.kind));
    const int planes =
        loss->channels > loss->options.raters ? loss->channels : loss->options.raters + 1;
    if (samples < 1 || voxels < 1 || samples > INT64_MAX / 8 / planes / voxels)
        return rcn__fail(ctx, RCN_EINVALID, "A batch of %lld samples of %lld voxels is not valid.",
                         (long long)samples, (long long)voxels);
    return RCN_OK;
}

static rcn_status check_codes(rcn_context *ctx, const loss_job *job, int64_t chunks) {
    for (int64_t c = 0; c < chunks; ++c)
        if (job->bad[c] >= 0)
            return rcn__fail(ctx, RCN_EDATA, "Sample %lld has the code %d, which has no label.",
                             (long long)(c / job->chunks_per_sample) + 1, (int)job->bad[c]);
    return RCN_OK;
}

void rcn_loss_labels(rcn_loss_label *labels, const rcn_pattern *patterns, int64_t count) {
    for (int64_t p = 0; p < count; ++p) {
        labels[p].value = (float)rcn__pattern_mean(&patterns[p]);
        labels[p].weight = patterns[p].answered ? 1.0f : 0.0f;
        labels[p].marked = (uint8_t)rcn_popcount(patterns[p].marked & patterns[p].answered);
        labels[p].answered = (uint8_t)rcn_popcount(patterns[p].answered);
    }
}

rcn_status rcn_loss_run(rcn_loss_result *result, float *gradient, float *parameter_gradient,
                        const rcn_loss *loss, rcn_context *ctx, const float *logits,
                        const float *parameters, const rcn_loss_target *targets, int64_t samples,
                        int64_t voxels) {
    return rcn__loss_run_shared(result, gradient, parameter_gradient, loss, ctx, NULL, logits,
                                parameters, targets, samples, voxels);
}

rcn_status rcn__loss_run_shared(rcn_loss_result *result, float *gradient, float *parameter_gradient,
                                const rcn_loss *loss, rcn_context *ctx, rcn_comm *comm,
                                const float *logits, const float *parameters,
                                const rcn_loss_target *targets, int64_t samples, int64_t voxels) {
    rcn_status status;
    int *answered = NULL;
    double *totals = NULL;
    loss_job job = {0};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    RCN_TRY(rcn__loss_check_batch(ctx, loss, logits, parameters, samples, voxels));
    if (!result || !targets)
        return rcn__fail(ctx, RCN_EINVALID, "The target or the output is NULL.");

    job.loss = loss;
    job.gradient = gradient;
    job.logits = logits;
    job.targets = targets;
    job.voxels = voxels;
    job.chunks_per_sample = rcn__chunk_count(voxels, RCN_CHUNK);
    job.own_wanted = parameter_gradient != NULL;
    job.heads = loss->head ? loss->options.structures : 1;
    rcn__loss_constants(&job.own, loss, parameters);
    const int64_t chunks = samples * job.chunks_per_sample;
    RCN_ALLOC(answered, ctx, samples, "the targets of a batch");
    RCN_ALLOC(job.sums, ctx, chunks * (1 + loss->parameters), "partial sums of the loss");
    RCN_ALLOC(job.bad, ctx, chunks, "partial results of the loss");
    job.answered = answered;

    /* The gradient needs the sum of weights beforehand. Mostly all weights are one. */
    int weigh = 0;
    for (int64_t s = 0; s < samples; ++s) {
        float weight;
        RCN_TRY(check_target(&answered[s], &weight, ctx, loss, &targets[s], s));
        if (weight < 0) weigh = 1;
        job.weight_sum += (double)weight * (double)voxels * targets[s].weight;
    }
    if (weigh) {
        RCN_TRY(rcn__for_chunks(ctx, "weighing voxels", chunks, weigh_chunk, &job));
        RCN_TRY(check_codes(ctx, &job, chunks));
        job.weight_sum = 0;
        for (int64_t c = 0; c < chunks; ++c) job.weight_sum += job.sums[c];
    }
    RCN_TRY(rcn_comm_sum(comm, ctx, &job.weight_sum, 1, RCN_COMM_DOUBLE));
    /* All void: everything is zero whatever it is divided by. */
    const double weight_sum = job.weight_sum;
    if (weight_sum == 0) job.weight_sum = 1;

    RCN_TRY(rcn__for_chunks(ctx, "computing the loss", chunks, run_chunk, &job));
    RCN_TRY(check_codes(ctx, &job, chunks));
    const int stride = 1 + loss->parameters;
    RCN_ALLOC_ZERO(totals, ctx, stride, "sums of the loss");
    for (int j = 0; j < (parameter_gradient ? stride : 1); ++j)
        for (int64_t c = 0; c < chunks; ++c) totals[j] += job.sums[c * stride + j];
    RCN_TRY(rcn_comm_sum(comm, ctx, totals, stride, RCN_COMM_DOUBLE));
    result->loss = totals[0] / job.weight_sum;
    result->weight = weight_sum;
    for (int j = 0; parameter_gradient && j < loss->parameters; ++j)
        parameter_gradient[j] = (float)(totals[1 + j] / job.weight_sum);
done:
    rcn__free(ctx, totals);
    rcn__free(ctx, job.sums);
    rcn__free(ctx, job.bad);
    rcn__free(ctx, answered);
    return status;
}

/* ---- level probabilities --------------------------------------------------------------------- */

/* p_k from z, for one block. */
RCN_DISPATCH static void find_levels(block *b, const rcn_loss *loss, const constants *own) {
    const int raters = loss->options.raters, levels = raters + 1;
    float above[LANES], yes[LANES], no[LANES];
    switch (loss->options.kind) {
    case RCN_LOSS_RPS:
    case RCN_LOSS_CE:
    case RCN_LOSS_BRIER:
    case RCN_LOSS_EMD: softmax(b, above, levels); break;
    case RCN_LOSS_CORN:
        for (int i = 0; i < LANES; ++i) above[i] = 1;
        for (int j = 0; j < raters; ++j)
            for (int i = 0; i < LANES; ++i) {
                sigmoid(&yes[i], &no[i], b->z[j][i]);
                b->p[j][i] = above[i] * no[i];
                above[i] *= yes[i];
            }
        for (int i = 0; i < LANES; ++i) b->p[raters][i] = above[i];
        break;
    case RCN_LOSS_CORAL:
        for (int i = 0; i < LANES; ++i) above[i] = 1;
        for (int j = 0; j < raters; ++j) {
            const float bias = own->bias[j];
            for (int i = 0; i < LANES; ++i) {
                sigmoid(&yes[i], &no[i], b->z[0][i] + bias);
                const float here = rcn__at_most(yes[i], above[i]);
                b->p[j][i] = above[i] - here;
                above[i] = here;
            }
        }
        for (int i = 0; i < LANES; ++i) b->p[raters][i] = above[i];
        break;
    case RCN_LOSS_CUMULATIVE_LINK:
        for (int i = 0; i < LANES; ++i) above[i] = 1; /* s(-previous) */
        for (int j = 0; j < raters; ++j) {
            const float threshold = own->bias[j], gap = j ? rcn__exp(own->log_gap[j]) : 1.0f;
            for (int i = 0; i < LANES; ++i) {
                sigmoid(&yes[i], &no[i], threshold - b->z[0][i]);
                b->p[j][i] = yes[i] * above[i] * gap;
                above[i] = no[i];
            }
        }
        for (int i = 0; i < LANES; ++i) b->p[raters][i] = above[i];
        break;
    case RCN_LOSS_BINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL_VOXEL: {
        float gamma[LANES], chain[LANES];
        gamma_of(gamma, chain, b, loss, own);
        for (int i = 0; i < LANES; ++i) sigmoid(&yes[i], &no[i], b->z[0][i]);
        beta_binomial_levels(b, yes, no, gamma, raters);
        break;
    }
    case RCN_LOSS_BCE:
    case RCN_LOSS_BINARY_BRIER:
        for (int k = 1; k < raters; ++k)
            for (int i = 0; i < LANES; ++i) b->p[k][i] = 0;
        for (int i = 0; i < LANES; ++i) sigmoid(&b->p[raters][i], &b->p[0][i], b->z[0][i]);
        break;
    case RCN_LOSS_DIRICHLET_MULTINOMIAL:
    case RCN_LOSS_CATEGORICAL:
    case RCN_LOSS_RPS_HEADS: break; /* rcn_loss_structure_levels() */
    }
}

void rcn__loss_find_levels(block *b, const rcn_loss *loss, const constants *own) {
    find_levels(b, loss, own);
}

rcn_status rcn_loss_levels(float *levels, const rcn_loss *loss, rcn_context *ctx,
                           const float *logits, const float *parameters, int64_t samples,
                           int64_t voxels) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const rcn_status status = rcn__loss_check_batch(ctx, loss, logits, parameters, samples, voxels);
    if (status != RCN_OK) return status;
    if (!levels) return rcn__fail(ctx, RCN_EINVALID, "The output levels is NULL.");
    if (loss->options.structures > 1)
        return rcn__fail(ctx, RCN_EINVALID,
                         "Each of the %d structures has its own levels; choose one structure.",
                         loss->options.structures);
    return rcn_loss_structure_levels(levels, loss, ctx, 1, logits, parameters, samples, voxels);
}
