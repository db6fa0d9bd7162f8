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

/* g = correlation / (1 - correlation), the exponential of its logit */
static double beta_binomial(double mean, double g, int k, int raters) {
    return exp(log_factorial(raters) - log_factorial(k) - log_factorial(raters - k) +
               log_rising(mean, g, k) + log_rising(1 - mean, g, raters - k) -
               log_rising(1, g, raters));
}

/* log p(n) of the means p. */
static double multinomial(const double *p, double g, const uint8_t *n, int labels) {
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
        loss = -multinomial(p, exp(parameter), n, labels);
        for (int l = 1; l < labels && o->rps_weight > 0; ++l) {
            double levels[MAX_K + 1];
            for (int k = 0; k <= a; ++k) levels[k] = beta_binomial(p[l], exp(parameter), k, a);
            loss += o->rps_weight / o->structures * ranked_score(levels, n[l], a);
        }
        for (int l = 0; l < labels && o->expected_weight > 0; ++l)
            if (n[l]) loss -= o->expected_weight * n[l] / a * log(p[l]);
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
                o.expected_weight = 2.5;
                compare_with_naive(&o, 3, missing, 0);
                o.rps_weight = o.expected_weight = 0;
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

/* 32 structures, 64 raters, correlations at both ends, and shares down to exp(-80). */
static void extreme_sizes(void) {
    static const double parameters[] = {-16, -9, 3, 16};
    rcn_loss_options o = options_of(RCN_LOSS_DIRICHLET_MULTINOMIAL, MAX_K, MAX_C);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; ++i) {
        o.raters = MAX_K;
        o.structures = MAX_C;
        compare_with_naive(&o, 2, 10, parameters[i]);
        o.structures = 1;
        compare_with_naive(&o, 2, 0, parameters[i]);
        o.raters = 5;
        o.structures = 4;
        compare_with_naive(&o, 40, 2, parameters[i]);
    }
}

/* A likelihood of one voxel. */
static double likelihood(const rcn_loss *loss, rcn_context *ctx, const float *logits,
                         const float *parameter, const uint8_t *counts) {
    const uint8_t code = 0;
    rcn_loss_label label = {0, 1, 0, 0};
    rcn_loss_result result = {0, 0};
    for (int l = 0; l <= rcn_loss_structures(loss); ++l) label.answered += counts[l];
    const rcn_loss_target target = {&code, 1, &label, 1, NULL, 1.0, counts, NULL};
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameter, &target, 1, 1),
                 RCN_OK);
    return exp(-result.loss);
}

/* Over all outcomes: they sum to one, and those with n_c = k to the levels of structure c, which
 * are beta-binomial. The same with two raters missing. */
static void marginals_are_beta_binomial(void) {
    enum { K = 4, C = 3 };
    static const float logits[C + 1] = {1.0f, -0.5f, 0.3f, -2.0f};
    rcn_context *ctx = make_context(1);
    rcn_loss *loss = make_loss(ctx, RCN_LOSS_DIRICHLET_MULTINOMIAL, K, C);
    double z[C + 1], p[C + 1];
    for (int l = 0; l <= C; ++l) z[l] = logits[l];
    softmax(p, z, C + 1);
    for (float parameter = -16; parameter <= 16; parameter += 4)
        for (int a = 2; a <= K; a += 2) {
            double sums[C + 1][K + 1] = {{0}};
            uint8_t n[C + 1];
            for (n[0] = 0; n[0] <= a; ++n[0])
                for (n[1] = 0; n[0] + n[1] <= a; ++n[1])
                    for (n[2] = 0; n[0] + n[1] + n[2] <= a; ++n[2]) {
                        n[3] = (uint8_t)(a - n[0] - n[1] - n[2]);
                        const double here = likelihood(loss, ctx, logits, &parameter, n);
                        for (int l = 0; l <= C; ++l) sums[l][n[l]] += here;
                    }
            for (int c = 1; c <= C; ++c) {
                float levels[K + 1], spread[K + 1];
                const float mean = (float)p[c];
                const double correlation = rcn_loss_correlation(loss, &parameter);
                CHECK_STATUS(
                    rcn_loss_structure_levels(levels, loss, ctx, c, logits, &parameter, 1, 1),
                    RCN_OK);
                CHECK_STATUS(rcn_levels_of_mean(spread, ctx, &mean, 1, 1, K, correlation), RCN_OK);
                for (int k = 0; k <= a; ++k) {
                    CHECK_NEAR(sums[c][k], beta_binomial(p[c], exp(parameter), k, a), 1e-6);
                    if (a == K) CHECK_NEAR(levels[k], sums[c][k], 1e-6);
                    if (a == K) CHECK_NEAR(spread[k], levels[k], 1e-6);
                }
            }
        }
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

/* With one structure it is the beta-binomial of z_1 - z_0, missing raters and RPS included. */
static void one_structure_is_beta_binomial(void) {
    static batch b;
    for (int with_rps = 0; with_rps < 2; ++with_rps)
        for (float parameter = -16; parameter <= 16; parameter += 8) {
            static float z[VOXELS], gradient[VOXELS];
            float own = 0;
            rcn_loss_result result;
            rcn_context *ctx = make_context(2);
            rcn_loss_options o = options_of(RCN_LOSS_DIRICHLET_MULTINOMIAL, 7, 1);
            rcn_loss *two = NULL, *one = NULL;
            o.rps_weight = 5 * with_rps;
            CHECK_STATUS(rcn_loss_create(&two, ctx, &o), RCN_OK);
            o.kind = RCN_LOSS_BETA_BINOMIAL;
            CHECK_STATUS(rcn_loss_create(&one, ctx, &o), RCN_OK);
            fill_batch(&b, &o, 2, 4, 3);
            b.parameter[0] = parameter;
            CHECK_STATUS(rcn_loss_run(&b.result, b.gradient, b.own, two, ctx, b.logits, b.parameter,
                                      &b.target, 1, VOXELS),
                         RCN_OK);
            for (int code = 0; code < CODES; ++code) b.labels[code].marked = b.counts[2 * code + 1];
            for (int i = 0; i < VOXELS; ++i) z[i] = b.logits[VOXELS + i] - b.logits[i];
            CHECK_STATUS(rcn_loss_run(&result, gradient, &own, one, ctx, z, b.parameter, &b.target,
                                      1, VOXELS),
                         RCN_OK);
            CHECK_NEAR(b.result.loss, result.loss, 2e-6 * fmax(1, result.loss));
            CHECK_NEAR(b.own[0], own, 2e-6 * fmax(1, fabs(own)));
            for (int i = 0; i < VOXELS; ++i) {
                CHECK_NEAR(b.gradient[VOXELS + i] * VOXELS, gradient[i] * VOXELS, 1e-5);
                CHECK_NEAR(b.gradient[i], -b.gradient[VOXELS + i], 1e-7);
            }
            static float levels[2][8 * VOXELS];
            CHECK_STATUS(rcn_loss_levels(levels[0], two, ctx, b.logits, b.parameter, 1, VOXELS),
                         RCN_OK);
            CHECK_STATUS(rcn_loss_levels(levels[1], one, ctx, z, b.parameter, 1, VOXELS), RCN_OK);
            for (int i = 0; i < 8 * VOXELS; ++i) CHECK_NEAR(levels[0][i], levels[1][i], 2e-6);
            rcn_loss_destroy(one);
            rcn_loss_destroy(two);
            rcn_context_destroy(ctx);
        }
}

/* Heads are RCN_LOSS_RPS on each structure; raters are missing. */
static void heads_are_ordinal_losses(void) {
    enum { K = 5, C = 3, PLANES = (K + 1) * VOXELS };
    static batch b;
    static float gradient[PLANES], levels[2][PLANES], means[(C + 1) * VOXELS];
    rcn_context *ctx = make_context(2);
    rcn_loss *heads = make_loss(ctx, RCN_LOSS_RPS_HEADS, K, C);
    rcn_loss *one = make_loss(ctx, RCN_LOSS_RPS, K, 1);
    const rcn_loss_options o = options_of(RCN_LOSS_RPS_HEADS, K, C);
    double sum = 0;
    CHECK(rcn_loss_channels(heads) == C * (K + 1) && rcn_loss_parameters(heads) == 0);
    CHECK(rcn_loss_correlation(heads, NULL) == -1);
    fill_batch(&b, &o, C * (K + 1), 3, 3);
    CHECK_STATUS(
        rcn_loss_run(&b.result, b.gradient, NULL, heads, ctx, b.logits, NULL, &b.target, 1, VOXELS),
        RCN_OK);
    CHECK_STATUS(rcn_loss_means(means, heads, ctx, b.logits, NULL, 1, VOXELS), RCN_OK);
    for (int c = 0; c < C; ++c) {
        rcn_loss_result result;
        for (int code = 0; code < CODES; ++code)
            b.labels[code].marked = b.counts[code * (C + 1) + 1 + c];
        const float *logits = b.logits + c * PLANES;
        CHECK_STATUS(
            rcn_loss_run(&result, gradient, NULL, one, ctx, logits, NULL, &b.target, 1, VOXELS),
            RCN_OK);
        sum += result.loss / C;
        for (int i = 0; i < PLANES; ++i)
            CHECK_NEAR(b.gradient[c * PLANES + i], gradient[i] / C, 1e-9);
        CHECK_STATUS(
            rcn_loss_structure_levels(levels[0], heads, ctx, c + 1, b.logits, NULL, 1, VOXELS),
            RCN_OK);
        CHECK_STATUS(rcn_loss_levels(levels[1], one, ctx, logits, NULL, 1, VOXELS), RCN_OK);
        CHECK(!memcmp(levels[0], levels[1], sizeof levels[0]));
    }
    CHECK_NEAR(b.result.loss, sum, 1e-12);
    for (int i = 0; i < VOXELS; ++i) { /* they add up to one, however much the heads claim */
        double all = 0;
        for (int l = 0; l <= C; ++l) {
            CHECK(means[l * VOXELS + i] >= 0);
            all += means[l * VOXELS + i];
        }
        CHECK_NEAR(all, 1, 1e-6);
    }
    rcn_loss_destroy(heads);
    rcn_loss_destroy(one);
    rcn_context_destroy(ctx);
}

/* Any finite outputs give finite numbers; what is sure and right costs nothing. */
static void extreme_outputs(void) {
    static const float large[] = {80, 200, 1e6f, 3e38f};
    static const rcn_loss_kind kinds[] = {RCN_LOSS_DIRICHLET_MULTINOMIAL, RCN_LOSS_CATEGORICAL};
    rcn_context *ctx = make_context(1);
    for (int with_rps = 0; with_rps < 2; ++with_rps)
        for (int k = 0; k < 2 - with_rps; ++k)
            for (float parameter = -1e30f; parameter < 2e30f; parameter += 1e30f)
                for (size_t i = 0; i < sizeof large / sizeof *large; ++i)
                    for (int right = 0; right < 2; ++right) {
                        rcn_loss_options o = options_of(kinds[k], 5, 2);
                        rcn_loss *loss = NULL;
                        const uint8_t code = 0, counts[3] = {0, 0, 5};
                        const float shares[3] = {0, 0, 1};
                        const rcn_loss_label label = {0, 1, 0, 5};
                        const rcn_loss_target target = {&code, 1,   &label, 1,
                                                        NULL,  1.0, counts, shares};
                        const float z[3] = {0, -large[i], right ? large[i] : -large[i]};
                        float gradient[3], own = 0, means[3], levels[6];
                        rcn_loss_result result;
                        o.rps_weight = with_rps * 5;
                        CHECK_STATUS(rcn_loss_create(&loss, ctx, &o), RCN_OK);
                        CHECK_STATUS(rcn_loss_run(&result, gradient, &own, loss, ctx, z, &parameter,
                                                  &target, 1, 1),
                                     RCN_OK);
                        CHECK(isfinite(result.loss) && isfinite(own));
                        for (int l = 0; l < 3; ++l) CHECK(isfinite(gradient[l]));
                        if (right)
                            CHECK(result.loss < 1e-6);
                        else /* log p of the first rater alone */
                            CHECK(result.loss >= fminf(large[i], 1e30f) * 0.999);
                        if (!right) CHECK(gradient[2] <= -0.999f);
                        CHECK_STATUS(rcn_loss_means(means, loss, ctx, z, &parameter, 1, 1), RCN_OK);
                        CHECK_STATUS(
                            rcn_loss_structure_levels(levels, loss, ctx, 2, z, &parameter, 1, 1),
                            RCN_OK);
                        CHECK_NEAR(means[2], right, 1e-6);
                        CHECK_NEAR(levels[right ? 5 : 0], 1, 1e-6);
                        rcn_loss_destroy(loss);
                    }
    rcn_context_destroy(ctx);
}

/* Void codes, weights of codes and samples, NaN where nothing counts, and where it does. */
static void what_counts(void) {
    static const rcn_loss_kind kinds[] = {RCN_LOSS_DIRICHLET_MULTINOMIAL, RCN_LOSS_CATEGORICAL,
                                          RCN_LOSS_RPS_HEADS};
    rcn_context *ctx = make_context(1);
    for (int k = 0; k < 3; ++k) {
        rcn_loss *loss = make_loss(ctx, kinds[k], 3, 2);
        const int channels = rcn_loss_channels(loss);
        const uint8_t codes[2][2] = {{0, 1}, {2, 0}};
        const uint8_t counts[3][3] = {{1, 1, 1}, {0, 0, 0}, {0, 3, 0}};
        const float shares[3][3] = {{0.3f, 0.3f, 0.4f}, {0, 0, 0}, {0, 1, 0}};
        rcn_loss_label labels[3] = {{0, 2, 0, 3}, {0, 0, 0, 0}, {0, 1, 0, 3}};
        rcn_loss_target targets[2];
        float logits[2 * 2 * 8], gradient[2 * 2 * 8], parameter = 0.5f;
        double each[2][2];
        rcn_loss_result result;
        uint32_t state = 3;
        for (int i = 0; i < 32; ++i) logits[i] = (float)noise(&state);
        for (int s = 0; s < 2; ++s) {
            const rcn_loss_target target = {codes[s], 1,   labels,    3,
                                            NULL,     1.0, counts[0], shares[0]};
            targets[s] = target;
        }
        /* Each voxel alone. */
        for (int s = 0; s < 2; ++s)
            for (int i = 0; i < 2; ++i) {
                float z[8];
                rcn_loss_target alone = targets[s];
                alone.codes = &codes[s][i];
                for (int c = 0; c < channels; ++c) z[c] = logits[(s * channels + c) * 2 + i];
                CHECK_STATUS(
                    rcn_loss_run(&result, NULL, NULL, loss, ctx, z, &parameter, &alone, 1, 1),
                    RCN_OK);
                each[s][i] = result.loss;
                CHECK(result.weight == labels[codes[s][i]].weight);
            }
        CHECK(each[0][1] == 0);
        targets[1].weight = 3;
        for (int c = 0; c < channels; ++c) logits[c * 2 + 1] = NAN; /* void */
        CHECK_STATUS(
            rcn_loss_run(&result, gradient, NULL, loss, ctx, logits, &parameter, targets, 2, 2),
            RCN_OK);
        CHECK(result.weight == 2 + 3 * 1 + 3 * 2);
        CHECK_NEAR(result.loss, (2 * each[0][0] + 3 * each[1][0] + 6 * each[1][1]) / 11, 1e-6);
        for (int c = 0; c < channels; ++c) CHECK(gradient[c * 2 + 1] == 0);
        logits[2 * channels] = NAN; /* counts */
        CHECK_STATUS(
            rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, &parameter, targets, 2, 2),
            RCN_OK);
        CHECK(isnan(result.loss));
        labels[0].weight = labels[2].weight = 0; /* all void */
        CHECK_STATUS(
            rcn_loss_run(&result, gradient, NULL, loss, ctx, logits, &parameter, targets, 2, 2),
            RCN_OK);
        CHECK(result.loss == 0 && result.weight == 0);
        for (int i = 0; i < 4 * channels; ++i) CHECK(gradient[i] == 0);
        rcn_loss_destroy(loss);
    }
    rcn_context_destroy(ctx);
}

/* The same bits for any number of threads, and in place. */
static void threads_and_in_place(void) {
    enum { MANY = 30000, C = 3, K = 4, MOST = C * (K + 1) };
    static const rcn_loss_kind kinds[] = {RCN_LOSS_DIRICHLET_MULTINOMIAL, RCN_LOSS_CATEGORICAL,
                                          RCN_LOSS_RPS_HEADS};
    static batch b;
    float *logits = malloc(sizeof(float) * MANY * MOST),
          *in_place = malloc(sizeof(float) * MANY * MOST);
    float *gradient = malloc(sizeof(float) * MANY * MOST);
    float *means[2] = {malloc(sizeof(float) * MANY * (C + 1)),
                       malloc(sizeof(float) * MANY * (C + 1))};
    uint8_t *codes = malloc(MANY);
    for (int k = 0; k < 3; ++k) {
        rcn_loss_options o = options_of(kinds[k], K, C);
        rcn_loss_result first = {0, 0}, other;
        float own[2] = {0, 0};
        uint32_t state = 5;
        if (k == 0) o.rps_weight = 5;
        for (int t = 1; t <= 3; t += 2) {
            rcn_context *ctx = make_context(t);
            rcn_loss *loss = NULL;
            CHECK_STATUS(rcn_loss_create(&loss, ctx, &o), RCN_OK);
            const size_t floats = (size_t)MANY * (size_t)rcn_loss_channels(loss);
            if (t == 1) {
                fill_batch(&b, &o, 1, 1, 2);
                for (size_t i = 0; i < floats; ++i) logits[i] = (float)(3 * noise(&state));
                for (int i = 0; i < MANY; ++i)
                    codes[i] = (uint8_t)((noise(&state) + 1) / 2 * CODES);
                b.target.codes = codes;
            }
            memcpy(in_place, logits, sizeof(float) * floats);
            CHECK_STATUS(rcn_loss_run(&other, t == 1 ? gradient : in_place, k ? NULL : &own[t > 1],
                                      loss, ctx, t == 1 ? logits : in_place, b.parameter, &b.target,
                                      1, MANY),
                         RCN_OK);
            CHECK_STATUS(rcn_loss_means(means[t > 1], loss, ctx, logits, b.parameter, 1, MANY),
                         RCN_OK);
            if (t == 1) first = other;
            CHECK(other.loss == first.loss);
            if (t > 1) {
                CHECK(!memcmp(gradient, in_place, sizeof(float) * floats));
                CHECK(own[0] == own[1]);
                CHECK(!memcmp(means[0], means[1], sizeof(float) * MANY * (C + 1)));
            }
            rcn_loss_destroy(loss);
            rcn_context_destroy(ctx);
        }
    }
    free(logits);
    free(in_place);
    free(gradient);
    free(means[0]);
    free(means[1]);
    free(codes);
}

/* The ends of the correlation, strides, and what is no mean. */
static void levels_of_means(void) {
    enum { K = 6 };
    static const double correlations[] = {0, 1e-12, 0.3, 0.999, 1};
    static const float means[2][3] = {{0.25f, 0, 9}, {1, 0.75f, 9}};
    rcn_context *ctx = make_context(1);
    float levels[2 * (K + 1)];
    for (int i = 0; i < 5; ++i)
        for (int column = 0; column < 2; ++column) {
            CHECK_STATUS(
                rcn_levels_of_mean(levels, ctx, &means[0][column], 3, 2, K, correlations[i]),
                RCN_OK);
            for (int v = 0; v < 2; ++v)
                for (int k = 0; k <= K; ++k) {
                    const double m = means[v][column], r = correlations[i];
                    const double expected = m == 0   ? k == 0
                                            : m == 1 ? k == K
                                            : r == 1 ? (k == 0) * (1 - m) + (k == K) * m
                                                     : beta_binomial(m, r / (1 - r), k, K);
                    CHECK_NEAR(levels[v * (K + 1) + k], expected, 1e-6);
                }
        }
    const float bad[] = {1.1f, -0.1f, NAN, INFINITY}, almost[2] = {-1e-6f, 1.000001f};
    for (int i = 0; i < 4; ++i)
        CHECK_STATUS(rcn_levels_of_mean(levels, ctx, &bad[i], 1, 1, K, 0.5), RCN_EDATA);
    CHECK_ERROR(ctx, "Voxel 0 has the mean");
    CHECK_STATUS(rcn_levels_of_mean(levels, ctx, almost, 1, 2, K, 0.5), RCN_OK);
    CHECK(levels[0] == 1 && levels[2 * K + 1] == 1);
    CHECK_STATUS(rcn_levels_of_mean(levels, ctx, almost, 1, 2, K, 1.1), RCN_EINVALID);
    CHECK_STATUS(rcn_levels_of_mean(levels, ctx, almost, 1, 2, K, NAN), RCN_EINVALID);
    CHECK_STATUS(rcn_levels_of_mean(levels, ctx, almost, 1, 2, 65, 0.5), RCN_EINVALID);
    CHECK_STATUS(rcn_levels_of_mean(levels, ctx, almost, 0, 2, K, 0.5), RCN_EINVALID);
    CHECK_STATUS(rcn_levels_of_mean(NULL, ctx, almost, 1, 2, K, 0.5), RCN_EINVALID);
    CHECK_STATUS(rcn_levels_of_mean(levels, NULL, almost, 1, 2, K, 0.5), RCN_EINVALID);
    rcn_context_destroy(ctx);
}

/* The kinds of one structure have means, too; categorical ones are sure of their levels. */
static void means_of_other_kinds(void) {
    rcn_context *ctx = make_context(1);
    rcn_loss *loss = make_loss(ctx, RCN_LOSS_CE, 2, 1);
    const float z[3] = {0, (float)log(2.0), 0};
    float out[4];
    CHECK_STATUS(rcn_loss_means(out, loss, ctx, z, NULL, 1, 1), RCN_OK);
    CHECK_NEAR(out[0], 0.5, 1e-6);
    CHECK_NEAR(out[1], 0.5, 1e-6);
    CHECK_STATUS(rcn_loss_structure_levels(out, loss, ctx, 1, z, NULL, 1, 1), RCN_OK);
    CHECK_NEAR(out[1], 0.5, 1e-6);
    CHECK(rcn_loss_correlation(loss, NULL) == -1);
    rcn_loss_destroy(loss);
    loss = make_loss(ctx, RCN_LOSS_CATEGORICAL, 3, 2);
    CHECK_STATUS(rcn_loss_structure_levels(out, loss, ctx, 1, z, NULL, 1, 1), RCN_OK);
    CHECK_NEAR(out[0], 0.5, 1e-6);
    CHECK(out[1] == 0 && out[2] == 0);
    CHECK_NEAR(out[3], 0.5, 1e-6);
    CHECK(rcn_loss_correlation(loss, NULL) == 1 && rcn_loss_parameters(loss) == 0);
    rcn_loss_destroy(loss);
    loss = make_loss(ctx, RCN_LOSS_BINOMIAL, 3, 1);
    CHECK(rcn_loss_correlation(loss, NULL) == 0);
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

/* Plurality: a structure before the background, then the lower number. */
static void shares_of_labels(void) {
    static const uint8_t votes[4][4] = {
        {0, 0, 2, 2}, {1, 2, 0, 255}, {255, 255, 255, 255}, {0, 0, 0, 1}};
    static const uint8_t expected[4][3] = {{2, 0, 2}, {1, 1, 1}, {0, 0, 0}, {3, 1, 0}};
    static const int most[4] = {2, 1, -1, 0};
    uint8_t counts[4][3];
    float shares[4][3];
    rcn_loss_label_counts(counts[0], votes[0], 4, 4, 2);
    CHECK(!memcmp(counts, expected, sizeof counts));
    rcn_loss_label_shares(shares[0], counts[0], 4, 2, 1);
    for (int p = 0; p < 4; ++p)
        for (int l = 0; l < 3; ++l) CHECK(shares[p][l] == (most[p] == l));
    rcn_loss_label_shares(shares[0], counts[0], 4, 2, 0);
    CHECK(shares[0][0] == 0.5f && shares[0][2] == 0.5f && shares[3][1] == 0.25f);
    CHECK(shares[2][0] == 0 && shares[2][1] == 0);
}

/* What a last layer is started with gives the shares that were asked for. */
static void biases_for_shares(void) {
    static const rcn_loss_kind kinds[] = {RCN_LOSS_DIRICHLET_MULTINOMIAL, RCN_LOSS_CATEGORICAL,
                                          RCN_LOSS_RPS_HEADS};
    static const double shares[4] = {0.9, 0.06, 0.03, 0.01};
    rcn_context *ctx = make_context(1);
    for (int k = 0; k < 3; ++k) {
        rcn_loss *loss = make_loss(ctx, kinds[k], 5, 3);
        float biases[18], means[4], parameter = 0;
        rcn__loss_label_biases(biases, loss, shares);
        CHECK_STATUS(rcn_loss_means(means, loss, ctx, biases, &parameter, 1, 1), RCN_OK);
        for (int l = 0; l < 4; ++l) CHECK_NEAR(means[l], shares[l], 1e-6);
        rcn_loss_destroy(loss);
    }
    rcn_context_destroy(ctx);
}

static void bad_arguments(void) {
    static batch b;
    rcn_context *ctx = make_context(1);
    rcn_loss_options o = options_of(RCN_LOSS_DIRICHLET_MULTINOMIAL, 5, 33);
    CHECK(rcn_loss_check(&o) != NULL);
    o.structures = 0;
    CHECK(rcn_loss_check(&o) != NULL);
    o = options_of(RCN_LOSS_CE, 5, 2);
    CHECK(strstr(rcn_loss_check(&o), "one structure"));
    o = options_of(RCN_LOSS_CATEGORICAL, 5, 2);
    o.rps_weight = 1;
    CHECK(rcn_loss_check(&o) != NULL);
    o.rps_weight = 0;
    o.expected_weight = 1;
    CHECK(rcn_loss_check(&o) != NULL);
    o = options_of(RCN_LOSS_DIRICHLET_MULTINOMIAL, 5, 2);
    o.unimodal_weight = 1;
    CHECK(rcn_loss_check(&o) != NULL);
    o = options_of(RCN_LOSS_DIRICHLET_MULTINOMIAL, 5, 2);

    rcn_loss *loss = make_loss(ctx, o.kind, 5, 2),
             *soft = make_loss(ctx, RCN_LOSS_CATEGORICAL, 5, 2);
    fill_batch(&b, &o, 3, 1, 0);
    const rcn_loss_result before = {7, 7};
    b.result = before;
#define RUN_BATCH(which)                                                                           \
    rcn_loss_run(&b.result, b.gradient, NULL, which, ctx, b.logits, b.parameter, &b.target, 1,     \
                 VOXELS)
    b.target.counts = NULL;
    CHECK_STATUS(RUN_BATCH(loss), RCN_EINVALID);
    CHECK_ERROR(ctx, "no counts of the labels");
    b.target.counts = b.counts;
    b.target.shares = NULL;
    CHECK_STATUS(RUN_BATCH(soft), RCN_EINVALID);
    CHECK_ERROR(ctx, "no shares of the labels");
    b.target.shares = b.shares;
    b.labels[3].answered = 4;
    CHECK_STATUS(RUN_BATCH(loss), RCN_EINVALID);
    CHECK_ERROR(ctx, "Code 3 of sample 1 has 5 labels of 4 raters");
    b.labels[3].answered = 5;
    b.shares[4] += 0.5f;
    CHECK_STATUS(RUN_BATCH(soft), RCN_EINVALID);
    CHECK_ERROR(ctx, "code 1 of sample 1 do not sum to one");
    b.shares[4] = NAN;
    CHECK_STATUS(RUN_BATCH(soft), RCN_EINVALID);
    /* The table of counts ends there: it must not be read beyond. */
    uint8_t *counts = malloc(CODES * 3);
    memcpy(counts, b.counts, CODES * 3);
    b.target.counts = counts;
    b.codes[9] = CODES + 200 - 1;
    CHECK_STATUS(RUN_BATCH(loss), RCN_EDATA);
    CHECK_ERROR(ctx, "which has no label");
    b.target.counts = b.counts;
    free(counts);
    b.codes[9] = 0;
    CHECK_STATUS(rcn_loss_run(&b.result, NULL, NULL, loss, ctx, b.logits, NULL, &b.target, 1, 1),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "needs its parameters");
    CHECK(!memcmp(&b.result, &before, sizeof before));
    CHECK_STATUS(rcn_loss_levels(b.gradient, loss, ctx, b.logits, b.parameter, 1, 1), RCN_EINVALID);
    CHECK_ERROR(ctx, "2 structures");
    CHECK_STATUS(rcn_loss_means(NULL, loss, ctx, b.logits, b.parameter, 1, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_loss_means(b.gradient, NULL, ctx, b.logits, NULL, 1, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_loss_means(b.gradient, loss, NULL, b.logits, NULL, 1, 1), RCN_EINVALID);
    for (int structure = -1; structure <= 3; structure += structure ? 3 : 1)
        if (structure < 1 || structure > 2)
            CHECK_STATUS(rcn_loss_structure_levels(b.gradient, loss, ctx, structure, b.logits,
                                                   b.parameter, 1, 1),
                         RCN_EINVALID);
    rcn_loss_destroy(loss);
    rcn_loss_destroy(soft);
    rcn_context_destroy(ctx);
}

static rcn_status create_and_run(rcn_context *ctx, void *payload) {
    batch *b = payload;
    static float out[VOXELS * 8];
    rcn_loss *loss = NULL;
    rcn_status status = rcn_loss_create(&loss, ctx, &b->options);
    if (status == RCN_OK)
        status = rcn_loss_run(&b->result, b->gradient, b->own, loss, ctx, b->logits, b->parameter,
                              &b->target, 1, VOXELS);
    if (status == RCN_OK)
        status = rcn_loss_means(out, loss, ctx, b->logits, b->parameter, 1, VOXELS);
    if (status == RCN_OK)
        status = rcn_loss_structure_levels(out, loss, ctx, 1, b->logits, b->parameter, 1, VOXELS);
    if (status == RCN_OK) status = rcn_levels_of_mean(out, ctx, b->shares, 1, CODES, 3, 0.5);
    rcn_loss_destroy(loss);
    return status;
}

static void failing_allocations_and_cancel(void) {
    static const rcn_loss_kind kinds[] = {RCN_LOSS_DIRICHLET_MULTINOMIAL, RCN_LOSS_RPS_HEADS};
    static batch b;
    for (int k = 0; k < 2; ++k) {
        const rcn_loss_options o = options_of(kinds[k], 3, 2);
        fill_batch(&b, &o, k ? 8 : 3, 1, 1);
        b.labels[0].weight = 2; /* weighed in a pass of its own */
        check_failing_allocations(create_and_run, &b);
        check_cancelling(create_and_run, &b, 4);
    }
}

int main(void) {
    RUN(by_hand);
    RUN(kinds_match_their_twins);
    RUN(extreme_sizes);
    RUN(marginals_are_beta_binomial);
    RUN(one_structure_is_beta_binomial);
    RUN(heads_are_ordinal_losses);
    RUN(extreme_outputs);
    RUN(what_counts);
    RUN(threads_and_in_place);
    RUN(levels_of_means);
    RUN(means_of_other_kinds);
    RUN(shares_of_labels);
    RUN(biases_for_shares);
    RUN(bad_arguments);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
