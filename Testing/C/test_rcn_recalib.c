// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_recalib.h"

#include "rcn_test.h"
#include "rcn_test_comm.h"
#include "rcn_comm_private.h"

enum { RATERS = 5, X = 200, Y = 300, N = X * Y };

static uint64_t random_bits(uint64_t *s) {
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 11;
}

static double random_unit(uint64_t *s) { return (double)random_bits(s) / 9007199254740992.0; }

static rcn_image map_of(const float *data, int components) {
    rcn_image image = {(void *)data, RCN_FLOAT32, components, rcn_geometry_make(X, Y, 1)};
    return image;
}

/* Voxels of which a share q of raters is known to be likely to mark them; predictions are the
 * binomial levels of q to the power `sharpness`, and q with its logit multiplied by it. */
typedef struct scene {
    uint8_t *marks;
    float *levels, *p, *out;
    rcn_votes *votes;
    rcn_calib_case with_levels, with_p;
} scene;

static void scene_make(scene *s, rcn_context *ctx, double sharpness, int with_void, uint64_t seed) {
    static const int64_t unanswered = 9;
    static const double choose[RATERS + 1] = {1, 5, 10, 10, 5, 1};
    rcn_mask masks[RATERS];
    s->marks = malloc((size_t)RATERS * N);
    s->levels = malloc(sizeof *s->levels * (RATERS + 1) * N);
    s->p = malloc(sizeof *s->p * N);
    s->out = malloc(sizeof *s->out * (RATERS + 1) * N);
    for (int i = 0; i < N; ++i) {
        const double q = 0.002 + 0.996 * random_unit(&seed);
        double sum = 0, p[RATERS + 1];
        for (int k = 0; k <= RATERS; ++k) {
            p[k] = pow(choose[k] * pow(q, k) * pow(1 - q, RATERS - k), sharpness);
            sum += p[k];
        }
        for (int k = 0; k <= RATERS; ++k) s->levels[i * (RATERS + 1) + k] = (float)(p[k] / sum);
        s->p[i] = (float)(1 / (1 + exp(-sharpness * log(q / (1 - q)))));
        for (int r = 0; r < RATERS; ++r) {
            s->marks[r * N + i] = random_unit(&seed) < q;
            if (with_void && (r + i) % 4 == 0) s->marks[r * N + i] = 9;
        }
    }
    for (int r = 0; r < RATERS; ++r) {
        rcn_mask mask = {
            {s->marks + r * N, RCN_UINT8, 1, rcn_geometry_make(X, Y, 1)}, 0, NULL, 0, NULL};
        masks[r] = mask;
        if (with_void) masks[r].unanswered = &unanswered;
    }
    CHECK_STATUS(rcn_votes_from_masks(&s->votes, ctx, masks, RATERS), RCN_OK);
    const rcn_calib_case with_levels = {s->votes, map_of(s->levels, RATERS + 1), NULL, NULL};
    const rcn_calib_case with_p = {s->votes, map_of(s->p, 1), NULL, NULL};
    s->with_levels = with_levels;
    s->with_p = with_p;
}

static void scene_free(scene *s) {
    rcn_votes_destroy(s->votes);
    free(s->marks);
    free(s->levels);
    free(s->p);
    free(s->out);
}

static rcn_calib *sums_of(rcn_context *ctx, const rcn_calib_case *one_case) {
    rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
    rcn_calib *calib = NULL;
    options.readout = RCN_READOUT_EXPECTED;
    CHECK_STATUS(rcn_calib_create(&calib, ctx, RATERS, &options), RCN_OK);
    CHECK_STATUS(rcn_calib_add(calib, ctx, one_case), RCN_OK);
    return calib;
}

static double mr_ece(rcn_context *ctx, const rcn_calib_case *one_case) {
    double f[RCN_FIGURES];
    rcn_calib *calib = sums_of(ctx, one_case);
    rcn_calib_figures(f, calib);
    rcn_calib_destroy(calib);
    return f[RCN_MR_ECE];
}

static rcn_recalib fit_p(rcn_context *ctx, rcn_recalib_method method, const scene *s) {
    rcn_recalib fit;
    rcn_calib *calib = sums_of(ctx, &s->with_p);
    CHECK_STATUS(rcn_recalib_fit(&fit, ctx, method, calib), RCN_OK);
    CHECK(rcn_recalib_check(&fit) == NULL && fit.levels == 0);
    CHECK(fit.pairs == rcn_calib_pairs(calib));
    rcn_calib_destroy(calib);
    return fit;
}

static rcn_recalib fit_levels(rcn_context *ctx, const scene *s) {
    rcn_recalib fit = {RCN_RECALIB_PLATT, 0, {0, 0, 0}, 0, {0}, {0}, 0};
    rcn_temperature *temperature = NULL;
    CHECK_STATUS(rcn_temperature_create(&temperature, ctx, RATERS), RCN_OK);
    CHECK_STATUS(rcn_temperature_add(temperature, ctx, &s->with_levels), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&fit, ctx, temperature), RCN_OK);
    CHECK(rcn_recalib_check(&fit) == NULL && fit.levels == RATERS + 1);
    rcn_temperature_destroy(temperature);
    return fit;
}

/* An over-confident model, and an under-confident one: fitted on one case, judged on another,
 * MR-ECE falls by at least 80 %. */
static void repairs(void) {
    static const double sharpness[2] = {2.5, 0.4};
    rcn_context *ctx = make_context(2);
    for (int t = 0; t < 2; ++t) {
        scene fitted, judged;
        scene_make(&fitted, ctx, sharpness[t], 0, 1);
        scene_make(&judged, ctx, sharpness[t], 0, 2);
        const double before = mr_ece(ctx, &judged.with_p);
        CHECK(before > 0.05);
        for (int method = 0; method < 4; ++method) {
            const rcn_recalib fit = fit_p(ctx, (rcn_recalib_method)method, &fitted);
            const rcn_image in = map_of(judged.p, 1);
            CHECK_STATUS(rcn_recalib_apply(judged.out, ctx, &fit, &in), RCN_OK);
            rcn_calib_case after = judged.with_p;
            after.prediction.data = judged.out;
            CHECK(mr_ece(ctx, &after) < 0.2 * before);
        }
        const double before_levels = mr_ece(ctx, &judged.with_levels);
        const rcn_recalib fit = fit_levels(ctx, &fitted);
        const rcn_image in = map_of(judged.levels, RATERS + 1);
        CHECK_NEAR(fit.parameters[0], sharpness[t], 0.02 * sharpness[t]);
        CHECK_STATUS(rcn_recalib_apply_levels(judged.out, ctx, &fit, &in), RCN_OK);
        rcn_calib_case after = judged.with_levels;
        after.prediction.data = judged.out;
        CHECK(mr_ece(ctx, &after) < 0.2 * before_levels);
        scene_free(&fitted);
        scene_free(&judged);
    }
    rcn_context_destroy(ctx);
}

static void leaves_a_calibrated_model_alone(void) {
    rcn_context *ctx = make_context(2);
    for (int with_void = 0; with_void < 2; ++with_void) {
        scene s;
        scene_make(&s, ctx, 1.0, with_void, 3);
        CHECK_NEAR(fit_p(ctx, RCN_RECALIB_TEMPERATURE, &s).parameters[0], 1, 0.01);
        CHECK_NEAR(fit_levels(ctx, &s).parameters[0], 1, 0.01);
        const rcn_recalib platt = fit_p(ctx, RCN_RECALIB_PLATT, &s);
        CHECK_NEAR(platt.parameters[0], 1, 0.01);
        CHECK_NEAR(platt.parameters[1], 0, 0.02);
        const rcn_recalib beta = fit_p(ctx, RCN_RECALIB_BETA, &s);
        CHECK_NEAR(beta.parameters[0], 1, 0.02);
        CHECK_NEAR(beta.parameters[1], 1, 0.02);
        CHECK_NEAR(beta.parameters[2], 0, 0.05);
        const rcn_recalib isotonic = fit_p(ctx, RCN_RECALIB_ISOTONIC, &s);
        for (int i = 1; i < 20; ++i) {
            CHECK_NEAR(rcn_recalib_value(&platt, i / 20.0), i / 20.0, 0.01);
            CHECK_NEAR(rcn_recalib_value(&beta, i / 20.0), i / 20.0, 0.01);
            CHECK_NEAR(rcn_recalib_value(&isotonic, i / 20.0), i / 20.0, 0.03);
        }
        scene_free(&s);
    }
    rcn_context_destroy(ctx);
}

/* The slope of the likelihood at its own optimum is zero: the fit against a fine search. */
static void temperature_is_the_best_one(void) {
    rcn_context *ctx = make_context(2);
    scene s;
    scene_make(&s, ctx, 1.7, 0, 4);
    const rcn_recalib fit = fit_levels(ctx, &s);
    double best = 0, least = INFINITY;
    for (double t = 1.6; t < 1.8; t += 0.004) {
        double nll = 0;
        for (int i = 0; i < N; i += 1) {
            const float *p = s.levels + i * (RATERS + 1);
            int level = 0;
            double sum = 0;
            for (int r = 0; r < RATERS; ++r) level += s.marks[r * N + i];
            for (int k = 0; k <= RATERS; ++k) sum += pow(fmax((double)p[k], 1e-7), 1 / t);
            nll += log(sum) - log(fmax((double)p[level], 1e-7)) / t;
        }
        if (nll < least) {
            least = nll;
            best = t;
        }
    }
    CHECK_NEAR(fit.parameters[0], best, 0.005);
    scene_free(&s);
    rcn_context_destroy(ctx);
}

static rcn_temperature *heat_of(rcn_context *ctx, const rcn_calib_case *one_case) {
    rcn_temperature *temperature = NULL;
    CHECK_STATUS(rcn_temperature_create(&temperature, ctx, RATERS), RCN_OK);
    CHECK_STATUS(rcn_temperature_add(temperature, ctx, one_case), RCN_OK);
    return temperature;
}

typedef struct heat_ranks {
    rcn_context *ctx[2];
    rcn_temperature *temperature[2];
} heat_ranks;

static void share_heat(rcn_comm *comm, void *payload) {
    heat_ranks *all = payload;
    const int rank = rcn__comm_rank(comm);
    CHECK_STATUS(rcn_temperature_share(all->temperature[rank], all->ctx[rank], comm), RCN_OK);
}

/* Two cases in one, merged, or shared by two processes: the same temperature. */
static void temperatures_of_cases(void) {
    heat_ranks all = {{make_context(1), make_context(1)}, {NULL, NULL}};
    static test_group group;
    rcn_context *ctx = all.ctx[0];
    scene a, b;
    rcn_recalib together, merged, shared;
    scene_make(&a, ctx, 2.0, 0, 5);
    scene_make(&b, ctx, 1.2, 0, 6);
    rcn_temperature *one = heat_of(ctx, &a.with_levels), *two = heat_of(ctx, &b.with_levels);
    rcn_temperature *both = heat_of(ctx, &a.with_levels), *none = NULL;
    CHECK_STATUS(rcn_temperature_add(both, ctx, &b.with_levels), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&together, ctx, both), RCN_OK);
    CHECK_STATUS(rcn_temperature_merge(one, ctx, two), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&merged, ctx, one), RCN_OK);
    CHECK(merged.pairs == together.pairs && merged.pairs == (int64_t)2 * RATERS * N);
    CHECK_NEAR(merged.parameters[0], together.parameters[0], 1e-9);
    all.temperature[0] = heat_of(ctx, &a.with_levels);
    all.temperature[1] = two;
    run_ranks(&group, 2, share_heat, &all);
    for (int rank = 0; rank < 2; ++rank) {
        CHECK_STATUS(rcn_temperature_fit(&shared, all.ctx[rank], all.temperature[rank]), RCN_OK);
        CHECK(shared.parameters[0] == merged.parameters[0] && shared.pairs == merged.pairs);
    }
    CHECK_STATUS(rcn_temperature_share(one, ctx, NULL), RCN_OK);
    CHECK_STATUS(rcn_temperature_create(&none, ctx, RATERS - 1), RCN_OK);
    CHECK_STATUS(rcn_temperature_merge(one, ctx, none), RCN_EINVALID);
    CHECK_STATUS(rcn_temperature_merge(one, ctx, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_temperature_share(NULL, ctx, NULL), RCN_EINVALID);
    rcn_temperature_destroy(one);
    rcn_temperature_destroy(two);
    rcn_temperature_destroy(both);
    rcn_temperature_destroy(none);
    rcn_temperature_destroy(all.temperature[0]);
    scene_free(&a);
    scene_free(&b);
    for (int rank = 0; rank < 2; ++rank) rcn_context_destroy(all.ctx[rank]);
}

/* One rater's votes by hand: probabilities .25, .5, .75 with 1/4, 3/4, 1/4 marked. The last two
 * violate the order and are pooled. */
static void isotonic_by_hand(void) {
    uint8_t marks[12] = {1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0};
    float p[12];
    for (int i = 0; i < 12; ++i) p[i] = 0.25f * (float)(1 + i / 4);
    rcn_context *ctx = make_context(1);
    rcn_mask mask = {{marks, RCN_UINT8, 1, rcn_geometry_make(12, 1, 1)}, 0, NULL, 0, NULL};
    rcn_votes *votes = NULL;
    rcn_calib *calib = NULL;
    rcn_recalib fit;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    const rcn_calib_case one_case = {
        votes, {p, RCN_FLOAT32, 1, rcn_geometry_make(12, 1, 1)}, NULL, NULL};
    CHECK_STATUS(rcn_calib_create(&calib, ctx, 1, NULL), RCN_OK);
    CHECK_STATUS(rcn_calib_add(calib, ctx, &one_case), RCN_OK);
    CHECK_STATUS(rcn_recalib_fit(&fit, ctx, RCN_RECALIB_ISOTONIC, calib), RCN_OK);
    CHECK(fit.knots == 3);
    CHECK(fit.x[0] == 0.25 && fit.y[0] == 0.25 && fit.x[1] == 0.5 && fit.y[1] == 0.5);
    CHECK(fit.x[2] == 0.75 && fit.y[2] == 0.5);
    CHECK_NEAR(rcn_recalib_value(&fit, 0), 0.25, 0);
    CHECK_NEAR(rcn_recalib_value(&fit, 0.375), 0.375, 1e-15);
    CHECK_NEAR(rcn_recalib_value(&fit, 0.6), 0.5, 0);
    CHECK_NEAR(rcn_recalib_value(&fit, 1), 0.5, 0);
    rcn_calib_destroy(calib);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void threads(void) {
    rcn_context *one = make_context(1), *three = make_context(3);
    scene s;
    scene_make(&s, one, 2.0, 1, 5);
    const rcn_recalib a = fit_levels(one, &s), b = fit_levels(three, &s);
    CHECK(a.parameters[0] == b.parameters[0] && a.pairs == b.pairs);
    scene_free(&s);
    rcn_context_destroy(one);
    rcn_context_destroy(three);
}

static void refit(rcn_context *ctx, const uint8_t *marks, const float *p, rcn_recalib_method method,
                  rcn_status expected, const char *words) {
    rcn_mask mask = {{(void *)marks, RCN_UINT8, 1, rcn_geometry_make(4, 1, 1)}, 0, NULL, 0, NULL};
    rcn_votes *votes = NULL;
    rcn_calib *calib = NULL;
    rcn_recalib fit;
    fit.pairs = -7;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    const rcn_calib_case one_case = {
        votes, {(void *)p, RCN_FLOAT32, 1, rcn_geometry_make(4, 1, 1)}, NULL, NULL};
    CHECK_STATUS(rcn_calib_create(&calib, ctx, 1, NULL), RCN_OK);
    CHECK_STATUS(rcn_calib_add(calib, ctx, &one_case), RCN_OK);
    CHECK_STATUS(rcn_recalib_fit(&fit, ctx, method, calib), expected);
    CHECK_ERROR(ctx, words);
    if (expected != RCN_OK) CHECK(fit.pairs == -7);
    rcn_calib_destroy(calib);
    rcn_votes_destroy(votes);
}

/* Any correction that passes the check gives probabilities, however steep or flat it is. */
static void extremes_stay_probabilities(void) {
    static const double extremes[] = {1e-9, 1e-3, 1, 1e3, 1e9};
    const float in[2 * 4] = {0, 0.25f, 0.5f, 0.25f, 1, 0, 0, 0};
    rcn_context *ctx = make_context(1);
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; ++i) {
        rcn_recalib fit;
        rcn_image levels = {(void *)in, RCN_FLOAT32, 4, rcn_geometry_make(2, 1, 1)};
        float out[8];
        memset(&fit, 0, sizeof fit);
        fit.method = RCN_RECALIB_TEMPERATURE;
        fit.levels = 4;
        fit.parameters[0] = extremes[i];
        CHECK(rcn_recalib_check(&fit) == NULL);
        CHECK_STATUS(rcn_recalib_apply_levels(out, ctx, &fit, &levels), RCN_OK);
        for (int v = 0; v < 2; ++v)
            CHECK_NEAR(out[4 * v] + out[4 * v + 1] + out[4 * v + 2] + out[4 * v + 3], 1, 1e-6);
        fit.levels = 0;
        for (int method = 0; method < 3; ++method) {
            fit.method = (rcn_recalib_method)method;
            fit.parameters[1] = method ? extremes[i] : 0;
            for (int v = 0; v < 8; ++v) {
                const double q = rcn_recalib_value(&fit, (double)in[v]);
                CHECK(q >= 0 && q <= 1);
            }
        }
    }
    rcn_context_destroy(ctx);
}

static void ill_posed_and_bad_input(void) {
    const uint8_t none[4] = {0, 0, 0, 0}, all[4] = {1, 1, 1, 1}, half[4] = {0, 0, 1, 1};
    const float rising[4] = {.1f, .2f, .7f, .8f}, falling[4] = {.8f, .3f, .7f, .1f};
    rcn_context *ctx = make_context(1);
    for (int method = 0; method < 4; ++method) {
        refit(ctx, none, rising, (rcn_recalib_method)method, RCN_EDATA, "nothing is marked");
        refit(ctx, all, rising, (rcn_recalib_method)method, RCN_EDATA, "everything is marked");
        if (method == RCN_RECALIB_ISOTONIC) continue;
        refit(ctx, half, rising, (rcn_recalib_method)method, RCN_EDATA, "perfectly separated");
        refit(ctx, half, falling, (rcn_recalib_method)method, RCN_EDATA,
              "inversely related to the votes");
    }
    refit(ctx, half, rising, RCN_RECALIB_ISOTONIC, RCN_OK, "");
    refit(ctx, half, rising, (rcn_recalib_method)9, RCN_EINVALID, "Unknown method");
    rcn_calib *empty = NULL;
    rcn_recalib fit;
    memset(&fit, 0, sizeof fit);
    CHECK_STATUS(rcn_calib_create(&empty, ctx, 1, NULL), RCN_OK);
    CHECK_STATUS(rcn_recalib_fit(&fit, ctx, RCN_RECALIB_PLATT, empty), RCN_EDATA);
    CHECK_ERROR(ctx, "no votes");
    rcn_calib_destroy(empty);

    rcn_temperature *temperature = NULL;
    CHECK_STATUS(rcn_temperature_create(&temperature, ctx, 0), RCN_EINVALID);
    CHECK(temperature == NULL);
    CHECK_STATUS(rcn_temperature_create(&temperature, ctx, RATERS), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&fit, ctx, temperature), RCN_EDATA);
    scene s;
    scene_make(&s, ctx, 1.0, 0, 6);
    CHECK_STATUS(rcn_temperature_add(temperature, ctx, &s.with_p), RCN_EINVALID);
    CHECK_ERROR(ctx, "6 levels");
    s.levels[6 * 201] = 0.9f;
    s.levels[6 * 201 + 5] = 0.8f;
    CHECK_STATUS(rcn_temperature_add(temperature, ctx, &s.with_levels), RCN_EDATA);
    CHECK_ERROR(ctx, "at voxel (1, 1, 0)");
    CHECK_STATUS(rcn_temperature_fit(&fit, ctx, temperature), RCN_EDATA);
    rcn_temperature_destroy(temperature);
    rcn_temperature_destroy(NULL);

    fit.method = RCN_RECALIB_TEMPERATURE;
    CHECK(rcn_recalib_check(&fit) != NULL);
    fit.parameters[0] = 1;
    CHECK(rcn_recalib_check(&fit) == NULL && rcn_recalib_check(NULL) != NULL);
    const rcn_image p = map_of(s.p, 1), levels = map_of(s.levels, RATERS + 1);
    CHECK_STATUS(rcn_recalib_apply(s.out, ctx, &fit, &levels), RCN_EINVALID);
    CHECK_ERROR(ctx, "read them out first");
    CHECK_STATUS(rcn_recalib_apply_levels(s.out, ctx, &fit, &levels), RCN_EINVALID);
    s.p[203] = NAN;
    CHECK_STATUS(rcn_recalib_apply(s.out, ctx, &fit, &p), RCN_EDATA);
    CHECK_ERROR(ctx, "nan at voxel (3, 1, 0)");
    fit.levels = RATERS + 1;
    CHECK_STATUS(rcn_recalib_apply(s.out, ctx, &fit, &p), RCN_EINVALID);
    CHECK_STATUS(rcn_recalib_apply_levels(s.out, ctx, &fit, &levels), RCN_EDATA);
    fit.method = RCN_RECALIB_PLATT;
    CHECK(rcn_recalib_check(&fit) != NULL); /* levels are for temperature */
    fit.levels = 0;
    fit.parameters[0] = INFINITY;
    CHECK(rcn_recalib_check(&fit) != NULL);
    fit.parameters[0] = 1e300;
    CHECK(rcn_recalib_check(&fit) != NULL);
    fit.method = RCN_RECALIB_ISOTONIC;
    fit.parameters[0] = 0;
    CHECK(rcn_recalib_check(&fit) != NULL);
    fit.knots = 2;
    fit.x[1] = 0.5;
    CHECK(rcn_recalib_check(&fit) == NULL);
    fit.y[0] = 0.5;
    CHECK(rcn_recalib_check(&fit) != NULL);
    CHECK(rcn_recalib_name(RCN_RECALIB_BETA) && !rcn_recalib_name((rcn_recalib_method)-1));
    scene_free(&s);
    rcn_context_destroy(ctx);
}

/* ---- several structures ---------------------------------------------------------------------- */

enum { VOTERS = 4, STRUCTURES = 2, LABELS = STRUCTURES + 1, M = 20000 };

/* Raters draw labels from shares q; the prediction is q^sharpness, so its temperature is that.
 * Rater 0 leaves every fifth voxel out. */
typedef struct label_scene {
    uint8_t answers[VOTERS][M];
    float shares[LABELS * M];
    rcn_votes *votes;
    rcn_calib_case one_case;
} label_scene;

static label_scene *label_scene_make(rcn_context *ctx, double sharpness, uint32_t state) {
    static const int64_t values[STRUCTURES] = {1, 2}, none = 9;
    static const uint8_t structures[STRUCTURES] = {1, 2};
    const rcn_geometry geometry = rcn_geometry_make(M, 1, 1);
    label_scene *s = calloc(1, sizeof *s);
    for (int i = 0; i < M; ++i) {
        double q[LABELS], sum = 0, sharp = 0;
        for (int l = 0; l < LABELS; ++l) {
            state = 1664525u * state + 1013904223u;
            sum += q[l] = exp(4 * (state / 4294967296.0));
        }
        for (int l = 0; l < LABELS; ++l) sharp += pow(q[l], sharpness);
        for (int l = 0; l < LABELS; ++l)
            s->shares[i * LABELS + l] = (float)(pow(q[l], sharpness) / sharp);
        for (int r = 0; r < VOTERS; ++r) {
            state = 1664525u * state + 1013904223u;
            const double u = state / 4294967296.0 * sum;
            s->answers[r][i] = u < q[0] ? 0 : u < q[0] + q[1] ? 1 : 2;
        }
        if (i % 5 == 0) s->answers[0][i] = 9;
    }
    CHECK_STATUS(rcn_votes_create_labels(&s->votes, ctx, &geometry, VOTERS, STRUCTURES), RCN_OK);
    for (int r = 0; r < VOTERS; ++r) {
        const rcn_label_map map = {
            {s->answers[r], RCN_UINT8, 1, geometry}, 0, values, structures, STRUCTURES, &none};
        CHECK_STATUS(rcn_votes_add_labels(s->votes, ctx, r, &map, 1, NULL), RCN_OK);
    }
    const rcn_calib_case one_case = {
        s->votes, {s->shares, RCN_FLOAT32, LABELS, geometry}, NULL, NULL};
    s->one_case = one_case;
    return s;
}

static void label_scene_free(label_scene *s) {
    rcn_votes_destroy(s->votes);
    free(s);
}

static rcn_temperature *label_heat(rcn_context *ctx, const rcn_calib_case *one_case) {
    rcn_temperature *temperature = NULL;
    CHECK_STATUS(rcn_temperature_create_labels(&temperature, ctx, STRUCTURES), RCN_OK);
    CHECK_STATUS(rcn_temperature_add_labels(temperature, ctx, one_case), RCN_OK);
    return temperature;
}

/* -sum n_l log q_l(T), as it is written. */
static double label_nll(const label_scene *s, double t) {
    double nll = 0;
    for (int i = 0; i < M; ++i) {
        double sum = 0;
        for (int l = 0; l < LABELS; ++l) sum += pow((double)s->shares[i * LABELS + l], 1 / t);
        for (int r = 0; r < VOTERS; ++r)
            if (s->answers[r][i] != 9)
                nll += log(sum) - log((double)s->shares[i * LABELS + s->answers[r][i]]) / t;
    }
    return nll;
}

static void temperature_of_labels(void) {
    static float out[LABELS * M];
    rcn_context *ctx = make_context(2), *alone = make_context(1);
    label_scene *s = label_scene_make(ctx, 1.7, 1);
    rcn_temperature *temperature = label_heat(ctx, &s->one_case);
    rcn_temperature *again = label_heat(alone, &s->one_case);
    rcn_recalib fit, same;
    CHECK_STATUS(rcn_temperature_fit(&fit, ctx, temperature), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&same, alone, again), RCN_OK);
    CHECK(fit.parameters[0] == same.parameters[0]); /* whatever the number of threads */
    CHECK(fit.levels == LABELS && fit.pairs == VOTERS * M - M / 5);
    CHECK_NEAR(fit.parameters[0], 1.7, 0.05);
    double best = 0, least = INFINITY;
    for (double t = fit.parameters[0] - 0.01; t < fit.parameters[0] + 0.01; t += 0.001) {
        const double nll = label_nll(s, t);
        if (nll < least) {
            least = nll;
            best = t;
        }
    }
    CHECK_NEAR(fit.parameters[0], best, 0.002);
    CHECK_STATUS(rcn_recalib_apply_levels(out, ctx, &fit, &s->one_case.prediction), RCN_OK);
    for (int i = 0; i < M; i += 97) {
        const float *p = s->shares + i * LABELS;
        double sum = 0;
        for (int l = 0; l < LABELS; ++l) sum += pow((double)p[l], 1 / fit.parameters[0]);
        for (int l = 0; l < LABELS; ++l)
            CHECK_NEAR(out[i * LABELS + l], pow((double)p[l], 1 / fit.parameters[0]) / sum, 1e-6);
    }
    rcn_temperature_destroy(temperature);
    rcn_temperature_destroy(again);
    label_scene_free(s);
    rcn_context_destroy(alone);
    rcn_context_destroy(ctx);
}

/* A region, two cases merged and shared, and what cannot be added. */
static void temperatures_of_labeled_cases(void) {
    heat_ranks all = {{make_context(1), make_context(1)}, {NULL, NULL}};
    static test_group group;
    static uint8_t region[M];
    rcn_context *ctx = all.ctx[0];
    label_scene *a = label_scene_make(ctx, 2.5, 1), *b = label_scene_make(ctx, 1.2, 2);
    rcn_temperature *both = label_heat(ctx, &a->one_case), *one = label_heat(ctx, &a->one_case);
    rcn_temperature *two = label_heat(ctx, &b->one_case), *levels = NULL;
    rcn_recalib together, merged, shared;
    CHECK_STATUS(rcn_temperature_add_labels(both, ctx, &b->one_case), RCN_OK);
    CHECK_STATUS(rcn_temperature_merge(one, ctx, two), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&together, ctx, both), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&merged, ctx, one), RCN_OK);
    CHECK_NEAR(merged.parameters[0], together.parameters[0], 1e-9);
    all.temperature[0] = label_heat(ctx, &a->one_case);
    all.temperature[1] = two;
    run_ranks(&group, 2, share_heat, &all);
    for (int rank = 0; rank < 2; ++rank) {
        CHECK_STATUS(rcn_temperature_fit(&shared, all.ctx[rank], all.temperature[rank]), RCN_OK);
        CHECK(shared.parameters[0] == merged.parameters[0] && shared.pairs == merged.pairs);
    }

    /* The first half alone: the rest may hold anything. */
    for (int i = 0; i < M; ++i) region[i] = i < M / 2;
    a->shares[LABELS * M - 1] = NAN;
    CHECK_STATUS(rcn_temperature_add_labels(one, ctx, &a->one_case), RCN_EDATA);
    a->one_case.region = region;
    CHECK_STATUS(rcn_temperature_add_labels(one, ctx, &a->one_case), RCN_OK);
    CHECK_STATUS(rcn_temperature_fit(&shared, ctx, one), RCN_OK);
    CHECK(shared.pairs == merged.pairs + (VOTERS * M - M / 5) / 2);

    CHECK_STATUS(rcn_temperature_create(&levels, ctx, LABELS - 1), RCN_OK);
    CHECK_STATUS(rcn_temperature_merge(one, ctx, levels), RCN_EINVALID);
    CHECK_STATUS(rcn_temperature_add_labels(levels, ctx, &b->one_case), RCN_EINVALID);
    CHECK_STATUS(rcn_temperature_add(one, ctx, &b->one_case), RCN_EINVALID);
    b->one_case.prediction.components = 2;
    CHECK_STATUS(rcn_temperature_add_labels(one, ctx, &b->one_case), RCN_EINVALID);
    CHECK_ERROR(ctx, "2 components");
    CHECK_STATUS(rcn_temperature_add_labels(NULL, ctx, &b->one_case), RCN_EINVALID);
    rcn_temperature_destroy(levels);
    levels = NULL;
    CHECK_STATUS(rcn_temperature_create_labels(&levels, ctx, 33), RCN_EINVALID);
    CHECK_STATUS(rcn_temperature_create_labels(&levels, ctx, 3), RCN_OK);
    CHECK_STATUS(rcn_temperature_add_labels(levels, ctx, &b->one_case), RCN_EINVALID);
    CHECK_ERROR(ctx, "2 structures, not 3");
    CHECK_STATUS(rcn_temperature_fit(&shared, ctx, levels), RCN_EDATA);
    rcn_temperature_destroy(levels);
    rcn_temperature_destroy(all.temperature[0]);
    rcn_temperature_destroy(one);
    rcn_temperature_destroy(two);
    rcn_temperature_destroy(both);
    label_scene_free(a);
    label_scene_free(b);
    for (int rank = 0; rank < 2; ++rank) rcn_context_destroy(all.ctx[rank]);
}

static rcn_status fit_labels(rcn_context *ctx, void *payload) {
    const label_scene *s = payload;
    rcn_temperature *temperature = NULL;
    rcn_recalib fit;
    rcn_status status = rcn_temperature_create_labels(&temperature, ctx, STRUCTURES);
    if (status == RCN_OK) status = rcn_temperature_add_labels(temperature, ctx, &s->one_case);
    if (status == RCN_OK) status = rcn_temperature_fit(&fit, ctx, temperature);
    rcn_temperature_destroy(temperature);
    return status;
}

static void failing_allocations_of_labels(void) {
    rcn_context *owner = make_context(1);
    label_scene *s = label_scene_make(owner, 1.5, 7);
    check_failing_allocations(fit_labels, s);
    check_cancelling(fit_labels, s, 1);
    label_scene_free(s);
    rcn_context_destroy(owner);
}

static rcn_status fit_and_apply(rcn_context *ctx, void *payload) {
    const scene *s = payload;
    rcn_temperature *temperature = NULL;
    rcn_calib *calib = NULL;
    rcn_recalib fit;
    const rcn_image p = map_of(s->p, 1);
    rcn_status status = rcn_temperature_create(&temperature, ctx, RATERS);
    if (status == RCN_OK) status = rcn_temperature_add(temperature, ctx, &s->with_levels);
    if (status == RCN_OK) status = rcn_temperature_fit(&fit, ctx, temperature);
    if (status == RCN_OK) status = rcn_calib_create(&calib, ctx, RATERS, NULL);
    if (status == RCN_OK) status = rcn_calib_add(calib, ctx, &s->with_p);
    if (status == RCN_OK) status = rcn_recalib_fit(&fit, ctx, RCN_RECALIB_ISOTONIC, calib);
    if (status == RCN_OK) status = rcn_recalib_apply(s->out, ctx, &fit, &p);
    rcn_calib_destroy(calib);
    rcn_temperature_destroy(temperature);
    return status;
}

static void failing_allocations_and_cancel(void) {
    rcn_context *owner = make_context(1);
    scene s;
    scene_make(&s, owner, 1.0, 0, 7);
    check_failing_allocations(fit_and_apply, &s);
    check_cancelling(fit_and_apply, &s, 4);
    scene_free(&s);
    rcn_context_destroy(owner);
}

int main(void) {
    RUN(repairs);
    RUN(leaves_a_calibrated_model_alone);
    RUN(temperature_is_the_best_one);
    RUN(temperatures_of_cases);
    RUN(temperature_of_labels);
    RUN(temperatures_of_labeled_cases);
    RUN(failing_allocations_of_labels);
    RUN(isotonic_by_hand);
    RUN(threads);
    RUN(extremes_stay_probabilities);
    RUN(ill_posed_and_bad_input);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
