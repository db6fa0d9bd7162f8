// SPDX-License-Identifier: Apache-2.0
#include "rcn_loss_private.h"

#include "rcn_test.h"

/* Losses of several structures: each rater gives one of the labels 0 ... C. */

enum { MAX_C = 32, MAX_K = 64 };

/* A small stream of numbers in [-1, 1). */
static double noise(uint32_t *state) {
    *state = 1664525u * *state + 1013904223u;
    return *state / 2147483648.0 - 1.0;
}

static rcn_loss_options options_of(rcn_loss_kind kind, int raters, int structures) {
    rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
    options.kind = kind;
    options.raters = raters;
    options.structures = structures;
    return options;
}

static rcn_loss *make_loss(rcn_context *ctx, rcn_loss_kind kind, int raters, int structures) {
    const rcn_loss_options options = options_of(kind, raters, structures);
    rcn_loss *loss = NULL;
    CHECK_STATUS(rcn_loss_create(&loss, ctx, &options), RCN_OK);
    return loss;
}

/* ---- the naive twin: each formula as it is written, one voxel, in double --------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void softmax(double *p, const double *z, int count) {
    double most = z[0], sum = 0;
    for (int l = 1; l < count; ++l) most = fmax(most, z[l]);
    for (int l = 0; l < count; ++l) sum += p[l] = exp(z[l] - most);
    for (int l = 0; l < count; ++l) p[l] /= sum;
}

/* log of x (x + g) ... (x + (n - 1) g) */
static double log_rising(double x, double g, int n) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += log(x + i * g);
    return sum;
}

static double log_factorial(int n) { return log_rising(1, 1, n); }

static double beta_binomial(double mean, double correlation, int k, int raters) {
    const double g = correlation / (1 - correlation);
    return exp(log_factorial(raters) - log_factorial(k) - log_factorial(raters - k) +
               log_rising(mean, g, k) + log_rising(1 - mean, g, raters - k) -
               log_rising(1, g, raters));
}

/* log p(n) of the means p. */
static double multinomial(const double *p, double correlation, const uint8_t *n, int labels) {
    const double g = correlation / (1 - correlation);
    double sum = 0;
    int answered = 0;
    for (int l = 0; l < labels; ++l) {
        sum += log_rising(p[l], g, n[l]) - log_factorial(n[l]);
        answered += n[l];
    }
    return sum + log_factorial(answered) - log_rising(1, g, answered);
}

/* 1 / (a + 1) sum_j (F_j - [y <= j])^2 */
static double ranked_score(const double *levels, int y, int a) {
    double sum = 0, F = 0;
    for (int j = 0; j < a; ++j) {
        F += levels[j];
        sum += (F - (y <= j)) * (F - (y <= j));
    }
    return sum / (a + 1);
}

static double naive_loss(const rcn_loss_options *o, const double *z, double parameter,
                         const uint8_t *n, const float *shares) {
    const int labels = o->structures + 1;
    double p[(MAX_C + 1) * (MAX_K + 1)], loss = 0;
    int a = 0;
    for (int l = 0; l < labels; ++l) a += n[l];
    if (o->kind == RCN_LOSS_CATEGORICAL) {
        softmax(p, z, labels);
        for (int l = 0; l < labels; ++l)
            if (shares[l] > 0) loss -= shares[l] * log(p[l]);
        return loss;
    }
    if (o->kind == RCN_LOSS_DIRICHLET_MULTINOMIAL) {
        softmax(p, z, labels);
        loss = -multinomial(p, sigmoid(parameter), n, labels);
        for (int l = 1; l < labels && o->rps_weight > 0; ++l) {
            double levels[MAX_K + 1];
            for (int k = 0; k <= a; ++k) levels[k] = beta_binomial(p[l], sigmoid(parameter), k, a);
            loss += o->rps_weight / o->structures * ranked_score(levels, n[l], a);
        }
        return loss;
    }
    /* Heads; everybody answered. */
    for (int c = 0; c < o->structures; ++c) {
        double majority = 0;
        softmax(p, z + c * (o->raters + 1), o->raters + 1);
        for (int k = (a + 1) / 2; k <= a; ++k) majority += p[k];
        loss -= log(n[1 + c] >= (a + 1) / 2 ? majority : 1 - majority) / o->structures;
        loss += o->alpha * ranked_score(p, n[1 + c], a) / o->structures;
    }
    return loss;
}

/* ---- a batch of one sample with random labels ------------------------------------------------ */

enum { VOXELS = 150, CODES = 40 };

typedef struct batch {
    rcn_loss_options options;
    int channels;
    uint8_t codes[VOXELS];
    rcn_loss_label labels[CODES];
    uint8_t counts[CODES * (MAX_C + 1)];
    float shares[CODES * (MAX_C + 1)];
    float logits[VOXELS * MAX_C * 9], gradient[VOXELS * MAX_C * 9];
    float parameter[1], own[1];
    rcn_loss_target target;
    rcn_loss_result result;
} batch;

/* missing: up to so many raters do not answer. */
static void fill_batch(batch *b, const rcn_loss_options *options, int channels, double spread,
                       int missing) {
    const rcn_loss_target init = RCN_LOSS_TARGET_INIT;
    const int labels = options->structures + 1;
    uint32_t state = 7;
    uint8_t votes[CODES * MAX_K];
    memset(b, 0, sizeof *b);
    b->options = *options;
    b->channels = channels;
    for (int code = 0; code < CODES; ++code) {
        const int favorite = (int)((noise(&state) + 1) / 2 * labels);
        const int absent = code % (missing + 1);
        for (int r = 0; r < options->raters; ++r) {
            const int other = (int)((noise(&state) + 1) / 2 * labels);
            votes[code * options->raters + r] = (uint8_t)(r < absent          ? 255
                                                          : noise(&state) > 0 ? favorite
                                                                              : other);
        }
        b->labels[code].weight = 1;
        b->labels[code].answered = (uint8_t)(options->raters - absent);
    }
    rcn_loss_label_counts(b->counts, votes, CODES, options->raters, options->structures);
    rcn_loss_label_shares(b->shares, b->counts, CODES, options->structures, 0);
    for (int i = 0; i < VOXELS; ++i) b->codes[i] = (uint8_t)((noise(&state) + 1) / 2 * CODES);
    for (int i = 0; i < VOXELS * channels; ++i) b->logits[i] = (float)(spread * noise(&state));
    b->parameter[0] = (float)(spread * noise(&state));
    b->target = init;
    b->target.codes = b->codes;
    b->target.labels = b->labels;
    b->target.label_count = CODES;
    b->target.counts = b->counts;
    b->target.shares = b->shares;
}

/* One voxel of the batch by the naive twin. */
static double naive_voxel(const batch *b, const double *z, double parameter, int voxel) {
    const int64_t row = b->codes[voxel] * (b->options.structures + 1);
    return naive_loss(&b->options, z, parameter, b->counts + row, b->shares + row);
}

static void compare_with_naive(const rcn_loss_options *options, double spread, int missing,
                               double parameter) {
    static batch b;
    rcn_context *ctx = make_context(2);
    rcn_loss *loss = NULL;
    CHECK_STATUS(rcn_loss_create(&loss, ctx, options), RCN_OK);
    fill_batch(&b, options, rcn_loss_channels(loss), spread, missing);
    if (parameter != 0) b.parameter[0] = (float)parameter;
    CHECK_STATUS(rcn_loss_run(&b.result, b.gradient, rcn_loss_parameters(loss) ? b.own : NULL, loss,
                              ctx, b.logits, b.parameter, &b.target, 1, VOXELS),
                 RCN_OK);
    double sum = 0, own = 0, worst = 0, largest = 0;
    for (int i = 0; i < VOXELS; ++i) {
        double z[MAX_C * (MAX_K + 1)];
        const double h = 1e-5, c = b.parameter[0];
        for (int l = 0; l < b.channels; ++l) z[l] = b.logits[l * VOXELS + i];
        sum += naive_voxel(&b, z, c, i);
        own += (naive_voxel(&b, z, c + h, i) - naive_voxel(&b, z, c - h, i)) / (2 * h);
        for (int l = 0; l < b.channels; ++l) {
            const double here = z[l];
            z[l] = here + h;
            const double up = naive_voxel(&b, z, c, i);
            z[l] = here - h;
            const double slope = (up - naive_voxel(&b, z, c, i)) / (2 * h);
            z[l] = here;
            worst = fmax(worst, fabs(b.gradient[l * VOXELS + i] * VOXELS - slope));
            largest = fmax(largest, fabs(slope));
        }
    }
    CHECK_NEAR(b.result.loss, sum / VOXELS, 1e-6 * fmax(1, sum / VOXELS));
    CHECK_NEAR(worst, 0, 1e-5 * fmax(1, largest));
    if (rcn_loss_parameters(loss))
        CHECK_NEAR(b.own[0], own / VOXELS, 1e-5 * fmax(1, fabs(own / VOXELS)));
    CHECK(b.result.weight == VOXELS);
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

static void kinds_match_their_twins(void) {
    for (int structures = 1; structures <= 8; structures += structures < 4 ? 1 : 4)
        for (int raters = 1; raters <= 7; raters += 2) {
            rcn_loss_options o = options_of(RCN_LOSS_DIRICHLET_MULTINOMIAL, raters, structures);
            for (int missing = 0; missing < raters; missing += 2) {
                compare_with_naive(&o, 3, missing, 0);
                o.kind = RCN_LOSS_CATEGORICAL;
                compare_with_naive(&o, 3, missing, 0);
                o.kind = RCN_LOSS_DIRICHLET_MULTINOMIAL;
                o.rps_weight = 5;
                compare_with_naive(&o, 3, missing, 0);
                o.rps_weight = 0;
            }
            o.kind = RCN_LOSS_RPS_HEADS;
            compare_with_naive(&o, 3, 0, 0);
        }
}

/* K = 2, C = 2, equal means 1/3, correlation 1/2, so g = 1. Both raters one label: 1/3 (1/3 + 1)
 * / (1 + 1) = 2/9; two labels: 2 * 1/3 * 1/3 / 2 = 1/9. */
static void by_hand(void) {
    rcn_context *ctx = make_context(1);
    rcn_loss *loss = make_loss(ctx, RCN_LOSS_DIRICHLET_MULTINOMIAL, 2, 2);
    const uint8_t counts[2][3] = {{0, 2, 0}, {1, 0, 1}};
    const rcn_loss_label label = {0, 1, 0, 2};
    const uint8_t code = 0;
    const float logits[3] = {0, 0, 0}, parameter = 0;
    float means[3], levels[3];
    for (int t = 0; t < 2; ++t) {
        const rcn_loss_target target = {&code, 1, &label, 1, NULL, 1.0, counts[t], NULL};
        rcn_loss_result result;
        CHECK_STATUS(
            rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, &parameter, &target, 1, 1),
            RCN_OK);
        CHECK_NEAR(exp(-result.loss), t ? 1 / 9.0 : 2 / 9.0, 1e-7);
    }
    CHECK(rcn_loss_channels(loss) == 3 && rcn_loss_parameters(loss) == 1);
    CHECK(rcn_loss_raters(loss) == 2 && rcn_loss_structures(loss) == 2);
    CHECK_STATUS(rcn_loss_means(means, loss, ctx, logits, &parameter, 1, 1), RCN_OK);
    for (int l = 0; l < 3; ++l) CHECK_NEAR(means[l], 1 / 3.0, 1e-7);
    CHECK_STATUS(rcn_loss_structure_levels(levels, loss, ctx, 2, logits, &parameter, 1, 1), RCN_OK);
    CHECK_NEAR(levels[0], 5 / 9.0, 1e-7); /* 2/9 + 2/9 + 1/9 */
    CHECK_NEAR(levels[1], 2 / 9.0, 1e-7);
    CHECK_NEAR(levels[2], 2 / 9.0, 1e-7);
    CHECK_NEAR(rcn_loss_correlation(loss, &parameter), 0.5, 1e-12);
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(by_hand);
    RUN(kinds_match_their_twins);
    return TEST_RESULT;
}
