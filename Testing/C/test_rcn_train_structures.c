// SPDX-License-Identifier: Apache-2.0
/* Training on several structures: what becomes of labels, and the course of learning them. */
#include "rcn/rcn_train.h"

#include "rcn_test_comm.h"
#include "rcn_train_private.h"

enum { N = 32, VOXELS = N * N, RATERS = 3, STRUCTURES = 2, LABELS = STRUCTURES + 1, CASES = 4 };

static const char *const checkpoint = "test_rcn_train_structures.state";

typedef struct one_case {
    float image[VOXELS];
    uint8_t answers[RATERS][VOXELS];
    rcn_channel channel;
    rcn_scale scale;
    rcn_votes *votes;
    rcn_foci *foci;
    rcn_target *target;
} one_case;

typedef struct setting {
    rcn_net *net;
    rcn_train *train;
    rcn_strategy strategy;
    one_case cases[CASES];
} setting;

static rcn_status give_case(rcn_train_case *out, int64_t index, void *payload) {
    one_case *one = &((setting *)payload)->cases[index];
    out->data.channels = &one->channel;
    out->data.channel_count = 1;
    out->data.scale = &one->scale;
    out->data.votes = one->votes;
    out->data.map = rcn_target_map(one->target);
    out->data.foci = one->foci;
    out->target = one->target;
    return RCN_OK;
}

/* A disk in a ring: the raters, each with a circle of their own, say 7 for the ring and 4 for the
 * disk. Rater 2 left the first row out. */
static void draw_case(one_case *one, int number) {
    uint32_t state = 17u + (uint32_t)number;
    for (int i = 0; i < VOXELS; ++i) {
        const double x = i % N - 15.5 - number, y = i / N - 15.5 + number % 2;
        const double distance = sqrt(x * x + y * y);
        state = 1664525u * state + 1013904223u;
        one->image[i] = (float)((distance < 6 ? 2 : distance < 11 ? 1 : 0) + state / 0x1p33);
        for (int r = 0; r < RATERS; ++r)
            one->answers[r][i] = distance < 5 + r ? 4 : distance < 10 + r ? 7 : 0;
        if (i < N) one->answers[2][i] = 99;
    }
}

static rcn_status make_votes(rcn_votes **out, rcn_context *ctx, uint8_t *const answers[],
                             int raters, const rcn_geometry *geometry) {
    static const int64_t values[STRUCTURES] = {7, 4}, none = 99;
    static const uint8_t structures[STRUCTURES] = {1, 2};
    rcn_status status = rcn_votes_create_labels(out, ctx, geometry, raters, STRUCTURES);
    for (int r = 0; status == RCN_OK && r < raters; ++r) {
        const rcn_label_map map = {
            {answers[r], RCN_UINT8, 1, *geometry}, 0, values, structures, STRUCTURES, &none};
        status = rcn_votes_add_labels(*out, ctx, r, &map, 1, NULL);
    }
    return status;
}

static rcn_status fill_case(one_case *one, rcn_context *ctx, const rcn_strategy *strategy,
                            int number) {
    const rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
    const rcn_normalize rule = RCN_NORMALIZE_INIT;
    const rcn_geometry geometry = rcn_geometry_make(N, N, 1);
    uint8_t *const answers[RATERS] = {one->answers[0], one->answers[1], one->answers[2]};
    draw_case(one, number);
    one->channel.image.data = one->image;
    one->channel.image.type = RCN_FLOAT32;
    one->channel.image.components = 1;
    one->channel.image.geometry = geometry;
    rcn_status status = make_votes(&one->votes, ctx, answers, RATERS, &geometry);
    if (status == RCN_OK) status = rcn_foci_create(&one->foci, ctx, one->votes);
    if (status == RCN_OK)
        status = rcn_target_create(&one->target, ctx, one->votes, strategy, &fusion);
    if (status == RCN_OK) status = rcn_normalize_fit(&one->scale, ctx, &rule, &one->channel, 1);
    return status;
}

/* Of the process that this thread plays. */
static _Thread_local rcn_comm *processes;

static rcn_status open_setting(setting *s, rcn_context *ctx, const char *strategy, int frozen) {
    rcn_net_options shape = {RCN_UNET, 1, 2, 8, 2, RCN_NORM_BATCH, {1, 1, 1}, 0.2};
    rcn_train_options options = RCN_TRAIN_OPTIONS_INIT;
    rcn_loss *loss = NULL;
    memset(s, 0, sizeof *s);
    rcn_status status = rcn_strategy_for(&s->strategy, ctx, strategy, STRUCTURES);
    for (int i = 0; status == RCN_OK && i < CASES; ++i)
        status = fill_case(&s->cases[i], ctx, &s->strategy, i);
    options.strategy = s->strategy;
    options.loss.kind = s->strategy.loss;
    options.loss.raters = RATERS;
    options.loss.structures = STRUCTURES;
    options.schedule.kind = RCN_SCHEDULE_ONE_CYCLE;
    options.schedule.rate = 0.01;
    options.schedule.steps = 60;
    options.sample.size[0] = options.sample.size[1] = N;
    options.batch = 2;
    options.cases = CASES;
    options.seed = 3;
    options.freeze_encoder = frozen;
    options.comm = processes;
    if (status == RCN_OK) status = rcn_loss_create(&loss, ctx, &options.loss);
    if (status == RCN_OK) {
        shape.outputs = rcn_loss_channels(loss);
        status = rcn_net_create(&s->net, ctx, &shape);
    }
    rcn_loss_destroy(loss);
    if (status == RCN_OK) status = rcn_net_initialize(s->net, 1);
    if (status == RCN_OK) status = rcn_train_create(&s->train, ctx, s->net, &options, give_case, s);
    return status;
}

static void close_setting(setting *s) {
    rcn_train_destroy(s->train);
    rcn_net_destroy(s->net);
    for (int i = 0; i < CASES; ++i) {
        rcn_target_destroy(s->cases[i].target);
        rcn_foci_destroy(s->cases[i].foci);
        rcn_votes_destroy(s->cases[i].votes);
    }
}

static void test_names(void) {
    rcn_context *ctx = make_context(1);
    rcn_strategy strategy, before = {RCN_LOSS_CE, 7, RCN_SVLS, 3};
    int count = 0;
    for (; rcn_strategy_structures_name(count); ++count) {
        CHECK_STATUS(rcn_strategy_for(&strategy, ctx, rcn_strategy_structures_name(count), 5),
                     RCN_OK);
        CHECK(strategy.loss >= RCN_LOSS_DIRICHLET_MULTINOMIAL);
        CHECK(strategy.fused == (strategy.loss == RCN_LOSS_CATEGORICAL));
    }
    CHECK(count == 4 && !rcn_strategy_structures_name(-1));
    CHECK_STATUS(rcn_strategy_for(&strategy, ctx, "ordinal", 2), RCN_OK);
    CHECK(strategy.loss == RCN_LOSS_DIRICHLET_MULTINOMIAL);
    for (int i = 0; rcn_strategy_name(i); ++i) { /* one structure: as without the number */
        rcn_strategy one;
        CHECK_STATUS(rcn_strategy_for(&strategy, ctx, rcn_strategy_name(i), 1), RCN_OK);
        CHECK_STATUS(rcn_strategy_parse(&one, rcn_strategy_name(i)), RCN_OK);
        CHECK(one.loss == strategy.loss && one.fused == strategy.fused &&
              one.method == strategy.method);
    }
    strategy = before;
    CHECK_STATUS(rcn_strategy_for(&strategy, ctx, "staple", 2), RCN_EINVALID);
    CHECK_ERROR(ctx, "\"staple\" is for one structure");
    CHECK_STATUS(rcn_strategy_for(&strategy, ctx, "dirichlet-multinomial", 1), RCN_EINVALID);
    CHECK_ERROR(ctx, "several structures");
    CHECK_STATUS(rcn_strategy_for(&strategy, ctx, "mean", 2), RCN_EINVALID);
    CHECK_ERROR(ctx, "Unknown strategy \"mean\"");
    CHECK_STATUS(rcn_strategy_for(&strategy, ctx, "soft", 33), RCN_EINVALID);
    CHECK_STATUS(rcn_strategy_for(&strategy, ctx, NULL, 2), RCN_EINVALID);
    CHECK(!memcmp(&strategy, &before, sizeof before));
    rcn_context_destroy(ctx);
}

/* Four raters and five voxels: counts, shares, plurality with its ties, and who did not answer. */
static void test_targets_by_hand(void) {
    uint8_t said[4][5] = {{0, 7, 7, 4, 99}, {0, 7, 4, 0, 99}, {0, 0, 4, 4, 99}, {0, 0, 7, 99, 99}};
    static const uint8_t counts[5][LABELS] = {
        {4, 0, 0}, {2, 2, 0}, {0, 2, 2}, {1, 0, 2}, {0, 0, 0}};
    static const int most[5] = {0, 1, 1, 2, -1};
    uint8_t *const answers[4] = {said[0], said[1], said[2], said[3]};
    const rcn_geometry geometry = rcn_geometry_make(5, 1, 1);
    const rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = NULL;
    CHECK_STATUS(make_votes(&votes, ctx, answers, 4, &geometry), RCN_OK);
    for (int k = 0; rcn_strategy_structures_name(k); ++k) {
        rcn_strategy strategy;
        rcn_target *target = NULL;
        CHECK_STATUS(rcn_strategy_for(&strategy, ctx, rcn_strategy_structures_name(k), STRUCTURES),
                     RCN_OK);
        CHECK_STATUS(rcn_target_create(&target, ctx, votes, &strategy, &fusion), RCN_OK);
        const float *shares = rcn__target_shares(target);
        CHECK(!shares == (strategy.loss != RCN_LOSS_CATEGORICAL));
        for (int i = 0; i < 5; ++i) {
            const int64_t code = rcn_votes_at(votes, i) - rcn_votes_patterns(votes);
            const rcn_loss_label *label = &rcn__target_labels(target)[code];
            CHECK(label->weight == (i < 4) && label->answered == (i < 3 ? 4 : i < 4 ? 3 : 0));
            for (int l = 0; l < LABELS; ++l) {
                CHECK(rcn__target_counts(target)[code * LABELS + l] == counts[i][l]);
                if (!shares) continue;
                const double share = i < 4 ? counts[i][l] / (double)label->answered : 0;
                CHECK_NEAR(shares[code * LABELS + l],
                           strategy.method == RCN_MEDIAN ? most[i] == l : share, 1e-7);
            }
        }
        CHECK(rcn__target_labels(target)[RCN_VOID_CODE(votes)].weight == 0);
        double voxels[LABELS] = {1, 0, 0};
        rcn_target_add_labels(voxels, target, votes);
        CHECK_NEAR(voxels[0], 1 + 1 + 0.5 + 0 + 1 / 3.0, 1e-12);
        CHECK_NEAR(voxels[1], 0.5 + 0.5, 1e-12);
        CHECK_NEAR(voxels[2], 0.5 + 2 / 3.0, 1e-12);
        rcn_target_destroy(target);
    }
    rcn_strategy one;
    rcn_target *none = NULL;
    CHECK_STATUS(rcn_strategy_parse(&one, "soft"), RCN_OK);
    CHECK_STATUS(rcn_target_create(&none, ctx, votes, &one, &fusion), RCN_EINVALID);
    CHECK_ERROR(ctx, "2 structures");
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Every strategy learns, and what it was started with is what it says first. */
static void test_every_strategy_learns(void) {
    static float image[VOXELS], logits[STRUCTURES * (RATERS + 1) * VOXELS], means[LABELS * VOXELS];
    static const int64_t origin[3] = {0, 0, 0};
    static const double shares[LABELS] = {0.7, 0.2, 0.1};
    rcn_context *ctx = make_context(2);
    for (int k = 0; rcn_strategy_structures_name(k); ++k) {
        const rcn_batch batch = {1, {N, N, 1}};
        setting s;
        rcn_train_report report;
        double first = 0, last = 0, right = 0;
        CHECK_STATUS(open_setting(&s, ctx, rcn_strategy_structures_name(k), 0), RCN_OK);
        CHECK_STATUS(rcn_train_start(s.train, shares), RCN_OK);
        for (int step = 0; step <= 40; ++step) {
            if (step % 40 == 0) {
                double sums[LABELS] = {0};
                rcn_normalize_box(image, &s.cases[0].scale, &s.cases[0].channel, origin,
                                  batch.size);
                CHECK_STATUS(rcn_net_predict(logits, s.net, image, &batch), RCN_OK);
                CHECK_STATUS(rcn_loss_means(means, rcn_train_loss(s.train), ctx, logits,
                                            rcn_train_loss_values(s.train), 1, VOXELS),
                             RCN_OK);
                for (int i = 0; i < VOXELS; ++i) {
                    const int truth = s.cases[0].answers[1][i];
                    int best = 0;
                    for (int l = 0; l < LABELS; ++l) {
                        sums[l] += means[l * VOXELS + i] / VOXELS;
                        if (means[l * VOXELS + i] > means[best * VOXELS + i]) best = l;
                    }
                    if (step) right += best == (truth == 4 ? 2 : truth == 7 ? 1 : 0);
                }
                for (int l = 0; l < LABELS && !step; ++l) CHECK_NEAR(sums[l], shares[l], 0.05);
            }
            CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
            CHECK(!report.setback);
            if (!first) first = report.loss;
            last = report.epoch_loss;
        }
        if (!(last < 0.8 * first && right > 0.8 * VOXELS))
            fprintf(stderr, "%s: %g to %g, %g right\n", rcn_strategy_structures_name(k), first,
                    last, right);
        CHECK(last < 0.8 * first);
        CHECK(right > 0.8 * VOXELS);
        close_setting(&s);
    }
    rcn_context_destroy(ctx);
}

/* From a file the same bits, also with a frozen encoder. */
static void test_resumed_is_uninterrupted(void) {
    for (int frozen = 0; frozen < 2; ++frozen)
        for (int k = 0; rcn_strategy_structures_name(k); ++k) {
            const char *strategy = rcn_strategy_structures_name(k);
            setting whole, second;
            rcn_train_report report;
            rcn_context *ctx = make_context(2);
            CHECK_STATUS(open_setting(&whole, ctx, strategy, frozen), RCN_OK);
            CHECK_STATUS(open_setting(&second, ctx, strategy, frozen), RCN_OK);
            for (int step = 0; step < 3; ++step)
                CHECK_STATUS(rcn_train_step(&report, whole.train, 0), RCN_OK);
            CHECK_STATUS(rcn_train_save(whole.train, checkpoint, NULL, 0), RCN_OK);
            if (frozen) CHECK_STATUS(rcn_net_initialize(second.net, 99), RCN_OK);
            CHECK_STATUS(rcn_train_load(second.train, checkpoint), RCN_OK);
            for (int step = 3; step < 6; ++step) {
                CHECK_STATUS(rcn_train_step(&report, whole.train, 0), RCN_OK);
                CHECK_STATUS(rcn_train_step(&report, second.train, 0), RCN_OK);
            }
            CHECK(rcn__train_hash(whole.train) == rcn__train_hash(second.train));
            close_setting(&whole);
            close_setting(&second);
            rcn_context_destroy(ctx);
        }
    remove(checkpoint);
}

typedef struct course {
    const char *strategy;
    double losses[TEST_RANKS][6];
    uint64_t hashes[TEST_RANKS];
} course;

static void take_course(rcn_comm *comm, void *payload) {
    course *c = payload;
    const int me = comm ? comm->rank : 0;
    setting *s = malloc(sizeof *s);
    rcn_context *ctx = make_context(1);
    processes = comm;
    CHECK_STATUS(open_setting(s, ctx, c->strategy, 0), RCN_OK);
    for (int step = 0; step < 6; ++step) {
        rcn_train_report report = {0};
        CHECK_STATUS(rcn_train_step(&report, s->train, 0), RCN_OK);
        c->losses[me][step] = report.loss;
    }
    c->hashes[me] = rcn__train_hash(s->train);
    close_setting(s);
    rcn_context_destroy(ctx);
    free(s);
    processes = NULL;
}

static void test_processes_make_one_course(void) {
    static test_group group;
    for (int k = 0; rcn_strategy_structures_name(k); ++k) {
        course one = {rcn_strategy_structures_name(k), {{0}}, {0}}, two = one;
        take_course(NULL, &one);
        run_ranks(&group, 2, take_course, &two);
        CHECK(two.hashes[0] == two.hashes[1]);
        for (int step = 0; step < 6; ++step) {
            CHECK(two.losses[0][step] == two.losses[1][step]);
            CHECK_NEAR(two.losses[0][step], one.losses[0][step], 2e-3 * one.losses[0][step]);
        }
    }
}

/* A case of other structures, and a target of another strategy. */
static void test_cases_that_do_not_fit(void) {
    const rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    rcn_train_report report;
    rcn_votes *whole = NULL;
    setting s;
    CHECK_STATUS(open_setting(&s, ctx, "soft", 0), RCN_OK);
    for (int i = 0; i < CASES; ++i) { /* counts, but no shares */
        rcn_strategy other;
        rcn_target_destroy(s.cases[i].target);
        s.cases[i].target = NULL;
        CHECK_STATUS(rcn_strategy_for(&other, ctx, "rps", STRUCTURES), RCN_OK);
        CHECK_STATUS(rcn_target_create(&s.cases[i].target, ctx, s.cases[i].votes, &other, &fusion),
                     RCN_OK);
    }
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_EINVALID);
    CHECK_ERROR(ctx, "differ in structures");
    close_setting(&s);

    CHECK_STATUS(open_setting(&s, ctx, "rps", 0), RCN_OK);
    rcn_votes *one = NULL; /* one of two structures alone */
    rcn_target_destroy(s.cases[0].target);
    s.cases[0].target = NULL;
    CHECK_STATUS(rcn_votes_select(&one, ctx, s.cases[0].votes, 1), RCN_OK);
    CHECK_STATUS(rcn_target_create(&s.cases[0].target, ctx, one, &s.strategy, &fusion), RCN_OK);
    whole = s.cases[0].votes;
    s.cases[0].votes = one;
    for (int step = 0; step < 2; ++step) {
        const rcn_status status = rcn_train_step(&report, s.train, 0);
        CHECK(status == RCN_EINVALID || (status == RCN_OK && step == 0));
        if (status != RCN_OK) break;
    }
    CHECK_ERROR(ctx, "Case 1 and the network differ in structures");
    close_setting(&s);
    rcn_votes_destroy(whole);
    rcn_context_destroy(ctx);
}

/* One structure, from plain votes: what beta-binomial learns, with one more channel. */
static void test_plain_votes_are_one_structure(void) {
    uint8_t masks[2][4] = {{0, 1, 1, 9}, {0, 0, 1, 1}};
    const int64_t none = 9;
    const rcn_strategy strategy = {RCN_LOSS_DIRICHLET_MULTINOMIAL, 0, RCN_ORC, 5};
    const rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = NULL;
    rcn_target *target = NULL;
    rcn_mask views[2];
    for (int r = 0; r < 2; ++r) {
        const rcn_mask view = {
            {masks[r], RCN_UINT8, 1, rcn_geometry_make(4, 1, 1)}, 0, NULL, 0, &none};
        views[r] = view;
    }
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, views, 2), RCN_OK);
    CHECK_STATUS(rcn_target_create(&target, ctx, votes, &strategy, &fusion), RCN_OK);
    static const uint8_t counts[4][2] = {{2, 0}, {1, 1}, {0, 2}, {0, 1}};
    for (int i = 0; i < 4; ++i) {
        const int64_t code = rcn_votes_at(votes, i) - rcn_votes_patterns(votes);
        for (int l = 0; l < 2; ++l) CHECK(rcn__target_counts(target)[2 * code + l] == counts[i][l]);
    }
    rcn_target_destroy(target);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static rcn_status step_and_save(rcn_context *ctx, void *payload) {
    setting *s = payload;
    rcn_train_report report;
    rcn_status status = open_setting(s, ctx, "soft", 0);
    if (status == RCN_OK) status = rcn_train_step(&report, s->train, 0);
    if (status == RCN_OK) status = rcn_train_save(s->train, checkpoint, NULL, 0);
    close_setting(s);
    return status;
}

static void test_failing_allocations(void) {
    setting s;
    check_failing_allocations(step_and_save, &s);
    remove(checkpoint);
}

int main(void) {
    RUN(test_names);
    RUN(test_targets_by_hand);
    RUN(test_every_strategy_learns);
    RUN(test_resumed_is_uninterrupted);
    RUN(test_processes_make_one_course);
    RUN(test_cases_that_do_not_fit);
    RUN(test_plain_votes_are_one_structure);
    RUN(test_failing_allocations);
    return TEST_RESULT;
}
