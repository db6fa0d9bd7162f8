// SPDX-License-Identifier: Apache-2.0
#include "rcn_loss_private.h"

#include "rcn_fastmath.h"
#include "rcn_test.h"

/* A small stream of numbers in [-1, 1). */
static double noise(uint32_t *state) {
    *state = 1664525u * *state + 1013904223u;
    return *state / 2147483648.0 - 1.0;
}

static rcn_loss *make_loss(rcn_context *ctx, rcn_loss_kind kind, int raters) {
    rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
    rcn_loss *loss = NULL;
    options.kind = kind;
    options.raters = raters;
    CHECK_STATUS(rcn_loss_create(&loss, ctx, &options), RCN_OK);
    return loss;
}

/* ---- the naive twin: each formula as it is written, one voxel, in double --------------------- */

enum { MAX_K = 64 };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Pascal's triangle, filled at the first use. */
static double choose(int n, int k) {
    static double triangle[MAX_K + 1][MAX_K + 1];
    if (k < 0 || k > n) return 0;
    if (triangle[0][0] == 0)
        for (int i = 0; i <= MAX_K; ++i)
            for (int j = 0; j <= i; ++j)
                triangle[i][j] = j == 0 || j == i ? 1 : triangle[i - 1][j - 1] + triangle[i - 1][j];
    return triangle[n][k];
}

static double hypergeometric(int raters, int a, int j, int k) {
    return choose(k, j) * choose(raters - k, a - j) / choose(raters, a);
}

/* The probabilities of levels 0 ... K. */
static void naive_levels(double *p, rcn_loss_kind kind, int K, const double *z,
                         const double *parameters) {
    double sum = 0, above = 1, threshold = 0, before = 0;
    switch (kind) {
    case RCN_LOSS_RPS:
    case RCN_LOSS_CE:
    case RCN_LOSS_BRIER:
    case RCN_LOSS_EMD:
        for (int k = 0; k <= K; ++k) sum += p[k] = exp(z[k]);
        for (int k = 0; k <= K; ++k) p[k] /= sum;
        break;
    case RCN_LOSS_CORN:
        for (int k = 0; k < K; ++k) {
            p[k] = above * sigmoid(-z[k]);
            above *= sigmoid(z[k]);
        }
        p[K] = above;
        break;
    case RCN_LOSS_CORAL:
        for (int k = 0; k < K; ++k) {
            p[k] = above - sigmoid(z[0] + parameters[k]);
            above = sigmoid(z[0] + parameters[k]);
        }
        p[K] = above;
        break;
    case RCN_LOSS_CUMULATIVE_LINK:
        for (int k = 0; k < K; ++k) {
            threshold += k ? parameters[k] * parameters[k] + 0.001 : parameters[k];
            p[k] = sigmoid(threshold - z[0]) - before;
            before = sigmoid(threshold - z[0]);
        }
        p[K] = sigmoid(z[0] - threshold);
        break;
    case RCN_LOSS_BINOMIAL:
        for (int k = 0; k <= K; ++k)
            p[k] = choose(K, k) * pow(sigmoid(z[0]), k) * pow(sigmoid(-z[0]), K - k);
        break;
    case RCN_LOSS_BETA_BINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL_VOXEL: {
        const double rho = sigmoid(kind == RCN_LOSS_BETA_BINOMIAL ? parameters[0] : z[1]);
        const double m = (1 - rho) / rho;
        const double A = sigmoid(z[0]) * m, B = sigmoid(-z[0]) * m;
        for (int k = 0; k <= K; ++k)
            p[k] = exp(log(choose(K, k)) + lgamma(k + A) + lgamma(K - k + B) - lgamma(K + A + B) +
                       lgamma(A + B) - lgamma(A) - lgamma(B));
        break;
    }
    case RCN_LOSS_BCE:
    case RCN_LOSS_BINARY_BRIER:
        for (int k = 1; k < K; ++k) p[k] = 0;
        p[0] = sigmoid(-z[0]);
        p[K] = sigmoid(z[0]);
        break;
    default: break; /* several structures: a test of their own */
    }
}

/* v of a raters marked the voxel; binary kinds: target v / a. */
static double naive_loss(const rcn_loss_options *o, const double *z, const double *parameters,
                         int v, int a) {
    const int K = o->raters;
    double p[MAX_K + 1], q[MAX_K + 1] = {0}, loss = 0, F = 0;
    const double target = (double)v / a;
    naive_levels(p, o->kind, K, z, parameters);
    for (int j = 0; j <= a; ++j) {
        q[j] = 0;
        for (int k = 0; k <= K; ++k) q[j] += hypergeometric(K, a, j, k) * p[k];
    }
    const int majority = o->tie_background ? a / 2 + 1 : (a + 1) / 2;
    double most = 0, few = 0;
    for (int j = 0; j <= a; ++j) *(j >= majority ? &most : &few) += q[j];
    switch (o->kind) {
    case RCN_LOSS_RPS:
        loss = -o->bce_weight * log(v >= majority ? most : few);
        for (int j = 0; j < a; ++j) {
            F += q[j];
            loss += o->alpha / (a + 1) * (F - (v <= j)) * (F - (v <= j));
        }
        break;
    case RCN_LOSS_BRIER:
        for (int j = 0; j <= a; ++j) loss += (q[j] - (v == j)) * (q[j] - (v == j));
        break;
    case RCN_LOSS_EMD:
        for (int j = 0; j < a; ++j) {
            F += q[j];
            loss += (F - (v <= j)) * (F - (v <= j));
        }
        break;
    case RCN_LOSS_CORAL:
        for (int j = 0; j < a; ++j) {
            double above = 0, below = 0;
            for (int i = 0; i <= a; ++i) *(i > j ? &above : &below) += q[i];
            loss -= log(v > j ? above : below);
        }
        break;
    case RCN_LOSS_CE:
    case RCN_LOSS_CORN:
    case RCN_LOSS_CUMULATIVE_LINK:
    case RCN_LOSS_BINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL:
    case RCN_LOSS_BETA_BINOMIAL_VOXEL: loss = -log(q[v]); break;
    case RCN_LOSS_BCE:
        loss = -target * log(sigmoid(z[0])) - (1 - target) * log(sigmoid(-z[0]));
        break;
    case RCN_LOSS_BINARY_BRIER: loss = (sigmoid(z[0]) - target) * (sigmoid(z[0]) - target); break;
    default: break;
    }
    F = 0;
    for (int j = 0; j < a; ++j) {
        F += q[j];
        loss += o->rps_weight / (a + 1) * (F - (v <= j)) * (F - (v <= j));
    }
    double expected = 0;
    for (int k = 0; k <= K; ++k) expected += (double)k / K * p[k];
    if (o->expected_weight > 0)
        loss -= o->expected_weight * (target * log(expected) + (1 - target) * log(1 - expected));
    for (int k = 0; k < K; ++k) {
        if (k < v) loss += o->unimodal_weight * fmax(0, p[k] - p[k + 1]);
        if (k >= v + K - a) loss += o->unimodal_weight * fmax(0, p[k + 1] - p[k]);
    }
    return loss;
}

static double slope_of_naive(const rcn_loss_options *o, double *z, double *parameters, double *by,
                             int v, int a) {
    const double h = 1e-5, here = *by;
    *by = here + h;
    const double up = naive_loss(o, z, parameters, v, a);
    *by = here - h;
    const double down = naive_loss(o, z, parameters, v, a);
    *by = here;
    return (up - down) / (2 * h);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* How many floats lie between two numbers, in units of the last place of the right one. */
static double ulps(float actual, double expected) {
    return fabs(actual - expected) / ldexp(1.0, ilogb(expected) - 23);
}

static void own_exp_and_log(void) {
    double worst_exp = 0, worst_log = 0, worst_log1p = 0;
    for (int i = 0; i <= 400000; ++i) {
        const float x = -87.0f + 175.0f * (float)i / 400000.0f;
        worst_exp = fmax(worst_exp, ulps(rcn__exp(x), exp(x)));
        const float y = (float)exp(x);
        if (y > 1.2e-38f && y != 1.0f) worst_log = fmax(worst_log, ulps(rcn__log(y), log(y)));
        const float u = (float)exp(-(double)i / 10000.0);
        worst_log1p = fmax(worst_log1p, ulps(rcn__log1p(u), log1p(u)));
    }
    CHECK(worst_exp <= 2);
    CHECK(worst_log <= 2);
    CHECK(worst_log1p <= 3);
    CHECK(rcn__exp(0.0f) == 1 && rcn__log(1.0f) == 0);
    CHECK(rcn__exp(-1e30f) == 0 && rcn__exp(-INFINITY) == 0);
    CHECK(isnan(rcn__exp(NAN)) && isnan(rcn__log(NAN)) && isnan(rcn__log1p(NAN)));
}

/* One voxel per level 0 ... K, all raters there. */
static void levels_target(rcn_loss_target *target, uint8_t *codes, rcn_loss_label *labels, int K) {
    const rcn_loss_target init = RCN_LOSS_TARGET_INIT;
    *target = init;
    for (int v = 0; v <= K; ++v) {
        codes[v] = (uint8_t)v;
        labels[v] = (rcn_loss_label){(float)v / (float)K, 1, (uint8_t)v, (uint8_t)K};
    }
    target->codes = codes;
    target->labels = labels;
    target->label_count = K + 1;
}

/* p = (.1, .2, .3, .4): RPS of levels 0 ... 3 is .365, .165, .065, .115; P(majority) = .7. */
static void rps_by_hand(void) {
    static const double rps[4] = {.365, .165, .065, .115};
    rcn_context *ctx = make_context(1);
    uint8_t codes[4];
    rcn_loss_label labels[4];
    rcn_loss_target target;
    levels_target(&target, codes, labels, 3);
    float logits[4];
    for (int k = 0; k < 4; ++k) logits[k] = (float)log(.1 * (k + 1)) + 3;
    for (int parts = 0; parts < 3; ++parts) {
        rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
        rcn_loss *loss = NULL;
        options.raters = 3;
        if (parts == 0) options.bce_weight = 0, options.alpha = 1;
        if (parts == 1) options.alpha = 0;
        CHECK_STATUS(rcn_loss_create(&loss, ctx, &options), RCN_OK);
        CHECK(rcn_loss_channels(loss) == 4 && rcn_loss_parameters(loss) == 0);
        for (int v = 0; v < 4; ++v) {
            const double bce = -log(v >= 2 ? .7 : .3);
            const double expected = parts == 0 ? rps[v] : parts == 1 ? bce : bce + .8 * rps[v];
            rcn_loss_result result;
            target.codes = codes + v;
            CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, NULL, &target, 1, 1),
                         RCN_OK);
            CHECK_NEAR(result.loss, expected, 3e-7);
            CHECK(result.weight == 1);
        }
        rcn_loss_destroy(loss);
    }
    rcn_context_destroy(ctx);
}

/* One loss against its twin: all v of all a, random outputs; loss, both gradients, levels. */
static void compare_with_naive(const rcn_loss_options *options, double spread) {
    const int K = options->raters;
    rcn_context *ctx = make_context(1);
    rcn_loss *loss = NULL;
    CHECK_STATUS(rcn_loss_create(&loss, ctx, options), RCN_OK);
    const int channels = rcn_loss_channels(loss), own = rcn_loss_parameters(loss);
    float logits[MAX_K + 1], gradient[MAX_K + 1], levels[MAX_K + 1];
    float parameters[MAX_K], own_gradient[MAX_K];
    double z[MAX_K + 1], wide[MAX_K];
    uint32_t state = 7 + (uint32_t)K;
    rcn_loss_init_parameters(parameters, loss);
    for (int j = 0; j < own; ++j) wide[j] = parameters[j];
    double worst_loss = 0, worst_gradient = 0, worst_own = 0, worst_level = 0;
    for (int a = 1; a <= K; a += K > 8 && a < K - 1 ? (K - 1 - a < 13 ? K - 1 - a : 13) : 1)
        for (int v = 0; v <= a; v += v < a && a > 20 ? (a - v < 9 ? a - v : 9) : 1) {
            const uint8_t code = 0;
            const rcn_loss_label label = {(float)v / (float)a, 1, (uint8_t)v, (uint8_t)a};
            rcn_loss_target target = RCN_LOSS_TARGET_INIT;
            rcn_loss_result result;
            target.codes = &code;
            target.labels = &label;
            target.label_count = 1;
            for (int c = 0; c < channels; ++c) z[c] = logits[c] = (float)(spread * noise(&state));
            CHECK_STATUS(rcn_loss_run(&result, gradient, own_gradient, loss, ctx, logits,
                                      parameters, &target, 1, 1),
                         RCN_OK);
            const double expected = naive_loss(options, z, wide, v, a);
            worst_loss = fmax(worst_loss, fabs(result.loss - expected) / (1 + expected));
            for (int c = 0; c < channels; ++c) {
                const double slope = slope_of_naive(options, z, wide, &z[c], v, a);
                worst_gradient =
                    fmax(worst_gradient, fabs(gradient[c] - slope) / (1 + fabs(slope)));
            }
            for (int j = 0; j < own; ++j) {
                const double slope = slope_of_naive(options, z, wide, &wide[j], v, a);
                worst_own = fmax(worst_own, fabs(own_gradient[j] - slope) / (1 + fabs(slope)));
            }
            double p[MAX_K + 1];
            naive_levels(p, options->kind, K, z, wide);
            CHECK_STATUS(rcn_loss_levels(levels, loss, ctx, logits, parameters, 1, 1), RCN_OK);
            for (int k = 0; k <= K; ++k) worst_level = fmax(worst_level, fabs(levels[k] - p[k]));
        }
    if (worst_loss > 2e-6 || worst_gradient > 1e-5 || worst_own > 1e-5 || worst_level > 1e-6) {
        ++rcn_test_failures;
        fprintf(stderr, "%s, %d raters, outputs to %g: off by %g, gradient %g, own %g, levels %g\n",
                rcn_loss_kind_name(options->kind), K, spread, worst_loss, worst_gradient, worst_own,
                worst_level);
    }
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

static void all_kinds_match_their_twins(void) {
    static const int raters[] = {1, 2, 3, 4, 7, 8, 16};
    for (int kind = 0; kind < RCN_LOSS_LEVEL_KINDS; ++kind)
        for (size_t r = 0; r < sizeof raters / sizeof *raters; ++r)
            for (int more = 0; more < (kind <= RCN_LOSS_EMD ? 4 : 1); ++more) {
                rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
                options.kind = (rcn_loss_kind)kind;
                options.raters = raters[r];
                options.expected_weight = more & 1 ? 0.7 : 0;
                options.unimodal_weight = more & 2 ? 0.3 : 0;
                options.tie_background = more & 1;
                compare_with_naive(&options, 1.0);
                compare_with_naive(&options, 5.0);
            }
}

static void rps_beside_a_likelihood(void) {
    static const int raters[] = {1, 2, 3, 7, 16};
    static const rcn_loss_kind kinds[] = {RCN_LOSS_CE, RCN_LOSS_CORN, RCN_LOSS_CUMULATIVE_LINK,
                                          RCN_LOSS_BETA_BINOMIAL, RCN_LOSS_BETA_BINOMIAL_VOXEL};
    rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
    options.rps_weight = 2.5;
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; ++n)
        for (size_t r = 0; r < sizeof raters / sizeof *raters; ++r) {
            options.kind = kinds[n];
            options.raters = raters[r];
            compare_with_naive(&options, 2.0);
        }
    options.kind = RCN_LOSS_BINOMIAL;
    CHECK(rcn_loss_check(&options) != NULL);
}

/* 64 raters: tables and blocks at their largest. */
static void most_raters(void) {
    for (int kind = 0; kind < RCN_LOSS_LEVEL_KINDS; ++kind) {
        rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
        options.kind = (rcn_loss_kind)kind;
        options.raters = RCN_MAX_RATERS;
        compare_with_naive(&options, 1.0);
    }
}

/* What no float can hold elsewhere stays finite here, and the gradient still says where to go. */
static void extreme_outputs(void) {
    static const float sizes[] = {30, 100, 1e4f, 1e20f, 3.4e38f};
    rcn_context *ctx = make_context(1);
    for (int kind = 0; kind < RCN_LOSS_LEVEL_KINDS; ++kind)
        for (int K = 1; K <= 4; ++K)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
                for (int signs = 0; signs < 3 << K; ++signs)
                    for (int a = 1; a <= K; ++a)
                        for (int v = 0; v <= a; ++v) {
                            rcn_loss *loss = make_loss(ctx, (rcn_loss_kind)kind, K);
                            float logits[5], gradient[5], own[4], levels[5], parameters[4];
                            const uint8_t code = 0;
                            const rcn_loss_label label = {(float)v / (float)a, 1, (uint8_t)v,
                                                          (uint8_t)a};
                            rcn_loss_target target = RCN_LOSS_TARGET_INIT;
                            rcn_loss_result result;
                            target.codes = &code;
                            target.labels = &label;
                            target.label_count = 1;
                            rcn_loss_init_parameters(parameters, loss);
                            for (int c = 0; c <= K; ++c)
                                logits[c] = signs >> c & 1 ? sizes[s] : -sizes[s];
                            if (signs >= 2 << K) logits[signs % (K + 1)] = 0;
                            CHECK_STATUS(rcn_loss_run(&result, gradient, own, loss, ctx, logits,
                                                      parameters, &target, 1, 1),
                                         RCN_OK);
                            CHECK_STATUS(
                                rcn_loss_levels(levels, loss, ctx, logits, parameters, 1, 1),
                                RCN_OK);
                            int finite = isfinite(result.loss) && result.loss >= -1e-6;
                            double sum = 0;
                            for (int c = 0; c < rcn_loss_channels(loss); ++c)
                                finite &= isfinite(gradient[c]);
                            for (int j = 0; j < rcn_loss_parameters(loss); ++j)
                                finite &= isfinite(own[j]);
                            for (int k = 0; k <= K; ++k) {
                                finite &= levels[k] >= 0 && levels[k] <= 1;
                                sum += levels[k];
                            }
                            CHECK(finite);
                            CHECK_NEAR(sum, 1, 1e-6);
                            rcn_loss_destroy(loss);
                        }
    /* All votes, and the network is as sure as can be of the contrary: the cross-entropy is the
     * distance, its slope is one; a clamped probability would give no slope at all. */
    rcn_loss *loss = make_loss(ctx, RCN_LOSS_RPS, 3);
    uint8_t codes[4];
    rcn_loss_label labels[4];
    rcn_loss_target target;
    rcn_loss_result result;
    const float logits[4] = {1e4f, 0, 0, -7};
    float gradient[4];
    levels_target(&target, codes, labels, 3);
    target.codes = codes + 3;
    CHECK_STATUS(rcn_loss_run(&result, gradient, NULL, loss, ctx, logits, NULL, &target, 1, 1),
                 RCN_OK);
    CHECK_NEAR(result.loss, 1e4 - log(1 + exp(-7)) + .8 * 3 / 4, 1e-2);
    CHECK_NEAR(gradient[0], 1, 1e-6);
    CHECK_NEAR(gradient[1], 0, 1e-6);
    CHECK_NEAR(gradient[2], -1 / (1 + exp(-7)), 1e-6);
    CHECK_NEAR(gradient[3], -1 / (1 + exp(7)), 1e-6);
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

/* Whoever is missing: if the raters follow p, the expected loss is smallest where p is predicted.
 */
static void proper_with_missing_raters(void) {
    enum { K = 5 };
    static const double p[K + 1] = {.30, .05, .25, .10, .12, .18};
    static const rcn_loss_kind kinds[] = {RCN_LOSS_RPS, RCN_LOSS_CE, RCN_LOSS_BRIER, RCN_LOSS_EMD,
                                          RCN_LOSS_CORN};
    rcn_context *ctx = make_context(1);
    uint32_t state = 3;
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; ++n)
        for (int a = 1; a <= K; ++a) {
            rcn_loss *loss = make_loss(ctx, kinds[n], K);
            const int channels = rcn_loss_channels(loss);
            rcn_loss_label labels[K + 1];
            uint8_t codes[K + 1];
            rcn_loss_target target = RCN_LOSS_TARGET_INIT;
            for (int v = 0; v <= a; ++v) {
                codes[v] = (uint8_t)v;
                labels[v] = (rcn_loss_label){0, 0, (uint8_t)v, (uint8_t)a};
                for (int k = 0; k <= K; ++k)
                    labels[v].weight += (float)(hypergeometric(K, a, v, k) * p[k]);
            }
            target.codes = codes;
            target.labels = labels;
            target.label_count = a + 1;
            double truth[K + 1], left = 1;
            for (int c = 0; c < channels; ++c) {
                left -= p[c];
                truth[c] = kinds[n] == RCN_LOSS_CORN ? log(left / p[c]) : log(p[c]);
            }
            float logits[(K + 1) * (K + 1)], gradient[(K + 1) * (K + 1)];
            double at_truth = 0;
            for (int trial = 0; trial < 60; ++trial) {
                rcn_loss_result result;
                for (int c = 0; c < channels; ++c) {
                    const double move = trial ? (trial < 30 ? .3 : 3) * noise(&state) : 0;
                    for (int v = 0; v <= a; ++v) logits[c * (a + 1) + v] = (float)(truth[c] + move);
                }
                CHECK_STATUS(rcn_loss_run(&result, gradient, NULL, loss, ctx, logits, NULL, &target,
                                          1, a + 1),
                             RCN_OK);
                if (trial == 0) at_truth = result.loss;
                CHECK(result.loss >= at_truth - 1e-6);
                for (int c = 0; trial == 0 && c < channels; ++c) {
                    double sum = 0;
                    for (int v = 0; v <= a; ++v) sum += gradient[c * (a + 1) + v];
                    CHECK_NEAR(sum, 0, 3e-7);
                }
            }
            rcn_loss_destroy(loss);
        }
    rcn_context_destroy(ctx);
}

/* "Soft consensus is the binomial ordinal model": K times the gradient of BCE. */
static void binomial_is_soft_consensus(void) {
    enum { K = 7 };
    rcn_context *ctx = make_context(1);
    rcn_loss *binomial = make_loss(ctx, RCN_LOSS_BINOMIAL, K);
    rcn_loss *bce = make_loss(ctx, RCN_LOSS_BCE, K);
    uint8_t codes[K + 1];
    rcn_loss_label labels[K + 1];
    rcn_loss_target target;
    rcn_loss_result result;
    float logits[K + 1], a[K + 1], b[K + 1];
    levels_target(&target, codes, labels, K);
    for (int i = 0; i <= K; ++i) logits[i] = (float)(i - 3) * 1.7f;
    CHECK_STATUS(rcn_loss_run(&result, a, NULL, binomial, ctx, logits, NULL, &target, 1, K + 1),
                 RCN_OK);
    CHECK_STATUS(rcn_loss_run(&result, b, NULL, bce, ctx, logits, NULL, &target, 1, K + 1), RCN_OK);
    for (int i = 0; i <= K; ++i) CHECK_NEAR(a[i], K * b[i], 1e-6);
    rcn_loss_destroy(binomial);
    rcn_loss_destroy(bce);
    rcn_context_destroy(ctx);
}

/* Void voxels, label weights, sample weights, maps: the mean is over what counts. */
static void what_counts(void) {
    enum { K = 2, N = 70 };
    rcn_context *ctx = make_context(2);
    rcn_loss *loss = make_loss(ctx, RCN_LOSS_RPS, K);
    rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
    options.raters = K;
    const rcn_loss_label labels[] = {
        {0, 1, 0, 2}, {0, 0, 9, 77}, {0, 3, 2, 2}, {0, 1, 1, 1}, {0, 1, 0, 1}};
    uint16_t codes[2][N];
    float logits[2][3][N], gradient[2][3][N];
    uint32_t state = 11;
    for (int s = 0; s < 2; ++s)
        for (int i = 0; i < N; ++i) {
            codes[s][i] = (uint16_t)((i * 7 + s) % 5);
            for (int c = 0; c < 3; ++c) logits[s][c][i] = (float)(2 * noise(&state));
        }
    logits[0][1][3] = NAN; /* code 1, void */
    CHECK(codes[0][3] == 1);
    rcn_loss_target targets[2] = {RCN_LOSS_TARGET_INIT, RCN_LOSS_TARGET_INIT};
    for (int s = 0; s < 2; ++s) {
        targets[s].codes = codes[s];
        targets[s].code_bytes = 2;
        targets[s].labels = labels;
        targets[s].label_count = 5;
    }
    targets[1].weight = 0.25;
    double sum = 0, weights = 0;
    for (int s = 0; s < 2; ++s)
        for (int i = 0; i < N; ++i) {
            const rcn_loss_label *label = &labels[codes[s][i]];
            if (label->weight == 0) continue;
            const double z[3] = {logits[s][0][i], logits[s][1][i], logits[s][2][i]};
            const double w = label->weight * targets[s].weight;
            sum += w * naive_loss(&options, z, NULL, label->marked, label->answered);
            weights += w;
        }
    rcn_loss_result result;
    CHECK_STATUS(
        rcn_loss_run(&result, gradient[0][0], NULL, loss, ctx, logits[0][0], NULL, targets, 2, N),
        RCN_OK);
    CHECK_NEAR(result.weight, weights, 1e-9);
    CHECK_NEAR(result.loss, sum / weights, 1e-6);
    for (int s = 0; s < 2; ++s)
        for (int i = 0; i < N; ++i) {
            const rcn_loss_label *label = &labels[codes[s][i]];
            for (int c = 0; c < 3; ++c) {
                double z[3] = {logits[s][0][i], logits[s][1][i], logits[s][2][i]};
                if (label->weight == 0)
                    CHECK(gradient[s][c][i] == 0);
                else
                    CHECK_NEAR(gradient[s][c][i],
                               label->weight * targets[s].weight / weights *
                                   slope_of_naive(&options, z, NULL, &z[c], label->marked,
                                                  label->answered),
                               1e-7);
            }
        }
    /* A NaN that counts is seen, and so is infinity. */
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; ++i) {
        logits[0][1][4] = bad[i];
        CHECK_STATUS(
            rcn_loss_run(&result, NULL, NULL, loss, ctx, logits[0][0], NULL, targets, 2, N),
            RCN_OK);
        CHECK(isnan(result.loss));
    }
    /* Nothing counts. */
    targets[0].weight = targets[1].weight = 0;
    logits[0][1][3] = logits[0][1][4] = 0;
    CHECK_STATUS(
        rcn_loss_run(&result, gradient[0][0], NULL, loss, ctx, logits[0][0], NULL, targets, 2, N),
        RCN_OK);
    CHECK(result.loss == 0 && result.weight == 0 && gradient[1][2][0] == 0);
    rcn_loss_destroy(loss);

    /* A map, negative where void. */
    const float map[4] = {0.25f, -1, 1, 0}, raw[4] = {0.5f, 9, -3, -3};
    float slope[4];
    rcn_loss_target target = RCN_LOSS_TARGET_INIT;
    target.map = map;
    loss = make_loss(ctx, RCN_LOSS_BCE, K);
    CHECK_STATUS(rcn_loss_run(&result, slope, NULL, loss, ctx, raw, NULL, &target, 1, 4), RCN_OK);
    CHECK(result.weight == 3);
    CHECK_NEAR(
        result.loss,
        (-.25 * log(sigmoid(.5)) - .75 * log(sigmoid(-.5)) - log(sigmoid(-3)) - log(sigmoid(3))) /
            3,
        1e-6);
    CHECK(slope[1] == 0);
    CHECK_NEAR(slope[0], (sigmoid(.5) - .25) / 3, 1e-7);
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

/* From real votes, a rater missing: the labels are what the patterns say. */
static void labels_from_votes(void) {
    uint8_t a[4] = {0, 1, 1, 7}, b[4] = {0, 0, 1, 7};
    const int64_t unanswered = 7;
    rcn_context *ctx = make_context(1);
    rcn_mask masks[3] = {{{a, RCN_UINT8, 1, rcn_geometry_make(4, 1, 1)}, 0, NULL, 0, &unanswered},
                         {{0}, 0, NULL, 0, NULL},
                         {{b, RCN_UINT8, 1, rcn_geometry_make(4, 1, 1)}, 0, NULL, 0, &unanswered}};
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 3), RCN_OK);
    const int64_t count = rcn_votes_pattern_count(votes);
    rcn_loss_label *labels = malloc((size_t)count * sizeof *labels);
    rcn_loss_labels(labels, rcn_votes_patterns(votes), count);
    rcn_loss_target target = RCN_LOSS_TARGET_INIT;
    target.codes = rcn_votes_codes(votes);
    target.code_bytes = rcn_votes_code_bytes(votes);
    target.labels = labels;
    target.label_count = count;
    rcn_loss *loss = make_loss(ctx, RCN_LOSS_EMD, 3);
    rcn_loss_result result;
    float logits[16] = {0};
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, NULL, &target, 1, 4), RCN_OK);
    CHECK(result.weight == 3);
    /* Uniform levels are uniform for two of three raters, too: F = 1/3, 2/3. */
    CHECK_NEAR(result.loss, (5. / 9 + 2. / 9 + 5. / 9) / 3, 1e-6);
    rcn_loss_destroy(loss);
    rcn_votes_destroy(votes);
    free(labels);
    rcn_context_destroy(ctx);
}

/* Outputs with the biases for some levels predict these levels; a loss that knows a mean alone
 * predicts their mean. */
static void biases_for_levels(void) {
    enum { K = 3 };
    const double wanted[K + 1] = {0.7, 0.15, 0.05, 0.1}, mean = (0.15 + 2 * 0.05 + 3 * 0.1) / K;
    rcn_context *ctx = make_context(1);
    for (int kind = 0; kind < RCN_LOSS_LEVEL_KINDS; ++kind) {
        rcn_loss *loss = make_loss(ctx, (rcn_loss_kind)kind, K);
        float parameters[K] = {0}, biases[K + 1] = {0}, levels[K + 1];
        double found = 0;
        rcn_loss_init_parameters(parameters, loss);
        rcn__loss_biases(biases, parameters, loss, wanted);
        CHECK_STATUS(rcn_loss_levels(levels, loss, ctx, biases, parameters, 1, 1), RCN_OK);
        for (int k = 0; k <= K; ++k) {
            if (kind < RCN_LOSS_BINOMIAL) CHECK_NEAR(levels[k], wanted[k], 1e-5);
            found += k * (double)levels[k] / K;
        }
        CHECK_NEAR(found, mean, 1e-5);
        rcn_loss_destroy(loss);
    }
    rcn_context_destroy(ctx);
}

/* 64 of 64 raters in one block and 63 in another: each voxel counts as it does alone. */
static void most_raters_with_gaps(void) {
    enum { K = 64, N = 1024 };
    static uint8_t codes[N];
    static float logits[(K + 1) * N], gradient[(K + 1) * N];
    const rcn_loss_label labels[2] = {{20.0f / 64, 1, 20, 64}, {20.0f / 63, 1, 20, 63}};
    uint32_t state = 3;
    rcn_context *ctx = make_context(1);
    for (int i = 0; i < (K + 1) * N; ++i) logits[i] = (float)noise(&state);
    for (int kind = 0; kind < RCN_LOSS_LEVEL_KINDS; ++kind) {
        rcn_loss *loss = make_loss(ctx, (rcn_loss_kind)kind, K);
        float parameters[K];
        rcn_loss_init_parameters(parameters, loss);
        rcn_loss_target target = RCN_LOSS_TARGET_INIT;
        target.codes = codes;
        target.labels = labels;
        target.label_count = 2;
        rcn_loss_result mixed, alone;
        double sum = 0;
        for (int i = 0; i < N; ++i) codes[i] = i >= N / 2;
        CHECK_STATUS(
            rcn_loss_run(&mixed, gradient, NULL, loss, ctx, logits, parameters, &target, 1, N),
            RCN_OK);
        target.label_count = 1; /* one kind of label: no block is mixed */
        for (int half = 0; half < 2; ++half) {
            float *part = malloc((size_t)rcn_loss_channels(loss) * (N / 2) * sizeof *part);
            for (int c = 0; c < rcn_loss_channels(loss); ++c)
                memcpy(part + c * (N / 2), logits + c * N + half * (N / 2), N / 2 * sizeof *part);
            memset(codes, 0, sizeof codes);
            target.labels = &labels[half];
            CHECK_STATUS(
                rcn_loss_run(&alone, NULL, NULL, loss, ctx, part, parameters, &target, 1, N / 2),
                RCN_OK);
            sum += alone.loss / 2;
            free(part);
        }
        CHECK_NEAR(mixed.loss, sum, 1e-6 * fabs(sum));
        rcn_loss_destroy(loss);
    }
    rcn_context_destroy(ctx);
}

/* CORAL's own parameters may pass each other on the way: the levels are still probabilities. */
static void coral_out_of_order(void) {
    rcn_context *ctx = make_context(1);
    rcn_loss *loss = make_loss(ctx, RCN_LOSS_CORAL, 3);
    const float parameters[3] = {0, 2, -2}, logit = 0.5f;
    float levels[4];
    CHECK_STATUS(rcn_loss_levels(levels, loss, ctx, &logit, parameters, 1, 1), RCN_OK);
    CHECK_NEAR(levels[0], sigmoid(-.5), 1e-6);
    CHECK(levels[1] == 0);
    CHECK_NEAR(levels[2], sigmoid(.5) - sigmoid(-1.5), 1e-6);
    CHECK_NEAR(levels[3], sigmoid(-1.5), 1e-6);
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

/* A batch with missing raters, in every kind: 1 and 3 threads give the same bits, and so does
 * writing the gradient over the outputs. */
static void threads_and_in_place(void) {
    enum { K = 4, N = 20011, SAMPLES = 2 };
    const size_t size = (size_t)SAMPLES * (K + 1) * N;
    float *logits = malloc(size * sizeof *logits), *a = malloc(size * sizeof *a);
    float *b = malloc(size * sizeof *b);
    uint8_t *codes = malloc(SAMPLES * N);
    rcn_loss_label labels[(K + 1) * (K + 2)];
    int count = 0;
    for (int answered = 0; answered <= K; ++answered)
        for (int v = 0; v <= answered; ++v)
            labels[count++] = (rcn_loss_label){answered ? (float)v / (float)answered : 0,
                                               answered ? 1 : 0, (uint8_t)v, (uint8_t)answered};
    uint32_t state = 5;
    for (int i = 0; i < SAMPLES * N; ++i) codes[i] = (uint8_t)((noise(&state) + 1) / 2 * count);
    rcn_context *one = make_context(1), *three = make_context(3);
    for (int kind = 0; kind < RCN_LOSS_LEVEL_KINDS; ++kind) {
        rcn_loss *loss = make_loss(one, (rcn_loss_kind)kind, K);
        const size_t used = (size_t)SAMPLES * (size_t)rcn_loss_channels(loss) * N;
        float parameters[K], own[2][K] = {{0}};
        rcn_loss_target targets[SAMPLES];
        rcn_loss_result result[2];
        for (int s = 0; s < SAMPLES; ++s) {
            const rcn_loss_target init = RCN_LOSS_TARGET_INIT;
            targets[s] = init;
            targets[s].codes = codes + s * N;
            targets[s].labels = labels;
            targets[s].label_count = count;
        }
        for (size_t i = 0; i < size; ++i) b[i] = logits[i] = (float)(4 * noise(&state));
        rcn_loss_init_parameters(parameters, loss);
        CHECK_STATUS(
            rcn_loss_run(&result[0], a, own[0], loss, one, logits, parameters, targets, SAMPLES, N),
            RCN_OK);
        CHECK_STATUS(
            rcn_loss_run(&result[1], b, own[1], loss, three, b, parameters, targets, SAMPLES, N),
            RCN_OK);
        CHECK(!memcmp(&result[0], &result[1], sizeof result[0]));
        CHECK(!memcmp(a, b, used * sizeof *a));
        CHECK(!memcmp(own[0], own[1], sizeof own[0]));
        CHECK_STATUS(rcn_loss_levels(a, loss, one, logits, parameters, SAMPLES, N), RCN_OK);
        CHECK_STATUS(rcn_loss_levels(b, loss, three, logits, parameters, SAMPLES, N), RCN_OK);
        CHECK(!memcmp(a, b, size * sizeof *a));
        rcn_loss_destroy(loss);
    }
    rcn_context_destroy(one);
    rcn_context_destroy(three);
    free(logits);
    free(a);
    free(b);
    free(codes);
}

static void bad_arguments(void) {
    rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    rcn_loss *loss = NULL;
    CHECK(rcn_loss_check(NULL) != NULL);
    CHECK(rcn_loss_check(&options) != NULL); /* raters has no default */
    CHECK_STATUS(rcn_loss_create(&loss, ctx, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "must have 1 to 64 raters");
    options.raters = 65;
    CHECK(rcn_loss_check(&options) != NULL);
    options.raters = 3;
    CHECK(rcn_loss_check(&options) == NULL);
    options.alpha = -1;
    CHECK(rcn_loss_check(&options) != NULL);
    options.alpha = NAN;
    CHECK(rcn_loss_check(&options) != NULL);
    options.alpha = 0.8;
    options.kind = (rcn_loss_kind)RCN_LOSS_KINDS;
    CHECK(rcn_loss_check(&options) != NULL);
    CHECK(rcn_loss_kind_name((rcn_loss_kind)-1) == NULL);
    options.kind = RCN_LOSS_CORN;
    options.unimodal_weight = 1;
    CHECK_STATUS(rcn_loss_create(&loss, ctx, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "one channel per level");
    CHECK(loss == NULL);
    rcn_loss_destroy(NULL);

    loss = make_loss(ctx, RCN_LOSS_CORAL, 3);
    uint8_t codes[4];
    rcn_loss_label labels[4];
    rcn_loss_target target;
    rcn_loss_result result = {-5, -5};
    const float logits[16] = {0}, parameters[3] = {0};
    const float map[4] = {0};
    levels_target(&target, codes, labels, 3);
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, NULL, &target, 1, 4),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "\"coral\" needs its parameters");
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 0, 4),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target,
                              INT64_C(1) << 40, INT64_C(1) << 40),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "voxels is not valid");
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, NULL, parameters, &target, 1, 4),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, NULL, 1, 4),
                 RCN_EINVALID);
    target.map = map;
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 1, 4),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "not a target map");
    target.map = NULL;
    target.code_bytes = 3;
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 1, 4),
                 RCN_EINVALID);
    target.code_bytes = 1;
    codes[2] = 4;
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 1, 4),
                 RCN_EDATA);
    CHECK_ERROR(ctx, "code 4, which has no label");
    codes[2] = 2;
    labels[1].answered = 4;
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 1, 4),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "1 marks of 4 answers");
    labels[1].answered = 3;
    labels[1].weight = NAN;
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 1, 4),
                 RCN_EINVALID);
    labels[1].weight = 1;
    target.weight = -1;
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 1, 4),
                 RCN_EINVALID);
    CHECK(result.loss == -5 && result.weight == -5);
    CHECK_STATUS(rcn_loss_levels(NULL, loss, ctx, logits, parameters, 1, 4), RCN_EINVALID);
    rcn_loss_destroy(loss);
    loss = make_loss(ctx, RCN_LOSS_BCE, 3);
    target.weight = 1;
    labels[2].value = 1.5f;
    CHECK_STATUS(rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, NULL, &target, 1, 4),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "must be 0 to 1");
    rcn_loss_destroy(loss);
    rcn_context_destroy(ctx);
}

static rcn_status create_and_run(rcn_context *ctx, void *payload) {
    rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
    rcn_loss *loss = NULL;
    options.raters = 3;
    options.kind = *(const rcn_loss_kind *)payload;
    rcn_status status = rcn_loss_create(&loss, ctx, &options);
    CHECK((status == RCN_OK) == (loss != NULL));
    if (status == RCN_OK) {
        enum { N = 100000 };
        static float logits[4 * N];
        static uint8_t codes[N];
        rcn_loss_label labels[4];
        uint8_t first[4];
        rcn_loss_target target;
        rcn_loss_result result;
        float parameters[3];
        levels_target(&target, first, labels, 3);
        labels[1].weight = 0;
        target.codes = codes;
        rcn_loss_init_parameters(parameters, loss);
        status = rcn_loss_run(&result, NULL, NULL, loss, ctx, logits, parameters, &target, 1, N);
    }
    rcn_loss_destroy(loss);
    return status;
}

static void failing_allocations_and_cancel(void) {
    for (rcn_loss_kind kind = RCN_LOSS_RPS; kind <= RCN_LOSS_CORAL; ++kind)
        check_failing_allocations(create_and_run, &kind);
    rcn_loss_kind kind = RCN_LOSS_RPS;
    int calls = 0;
    for (rcn_status status = RCN_ECANCELLED; status != RCN_OK; ++calls) {
        rcn_context *ctx = make_context(1);
        int countdown = calls;
        rcn_context_set_progress(ctx, cancel_after, &countdown);
        status = create_and_run(ctx, &kind);
        if (status != RCN_OK) CHECK_STATUS(status, RCN_ECANCELLED);
        CHECK(rcn_context_bytes(ctx) == 0);
        rcn_context_destroy(ctx);
    }
    CHECK(calls > 4);
}

int main(void) {
    RUN(own_exp_and_log);
    RUN(rps_by_hand);
    RUN(all_kinds_match_their_twins);
    RUN(rps_beside_a_likelihood);
    RUN(most_raters);
    RUN(most_raters_with_gaps);
    RUN(extreme_outputs);
    RUN(proper_with_missing_raters);
    RUN(binomial_is_soft_consensus);
    RUN(what_counts);
    RUN(labels_from_votes);
    RUN(biases_for_levels);
    RUN(coral_out_of_order);
    RUN(threads_and_in_place);
    RUN(bad_arguments);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
