// SPDX-License-Identifier: Apache-2.0
/* Training: it learns, goes on from a file to the same bits, and survives numbers out of hand. */
#include "rcn/rcn_train.h"

#include "rcn/rcn_phantom.h"
#include "rcn_test_comm.h"
#include "rcn_comm_private.h"
#include "rcn_train_private.h"

enum { N = 32, VOXELS = N * N, RATERS = 3, CASES = 6 };

typedef struct one_case {
    float image[VOXELS];
    uint8_t masks[RATERS * VOXELS];
    rcn_channel channel;
    rcn_scale scale;
    rcn_votes *votes;
    rcn_foci *foci;
    rcn_target *target;
} one_case;

typedef struct setting {
    rcn_context *ctx;
    rcn_net *net;
    rcn_train *train;
    rcn_strategy strategy;
    one_case cases[CASES];
    int64_t asked[CASES];
    int64_t calls;
    int64_t poison_from, poison_to; /* calls before which a weight gets out of hand */
    int64_t told[16], told_count;   /* what will be asked for */
    int64_t told_next;              /* what of it will be asked for first */
    int told_wrong;
} setting;

static void hear_soon(const int64_t *cases, int64_t count, void *payload) {
    setting *s = payload;
    s->told_wrong += s->told_next != s->told_count; /* not all were asked for */
    s->told_count = s->told_next = 0;
    for (int64_t i = 0; i < count; ++i) s->told[s->told_count++] = cases[i];
}

static rcn_status give_case(rcn_train_case *out, int64_t index, void *payload) {
    setting *s = payload;
    one_case *one = &s->cases[index];
    if (s->told_next < s->told_count) s->told_wrong += s->told[s->told_next++] != index;
    ++s->asked[index];
    ++s->calls;
    out->data.channels = &one->channel;
    out->data.channel_count = 1;
    out->data.scale = &one->scale;
    if (s->calls >= s->poison_from && s->calls < s->poison_to) rcn_net_edit_values(s->net)[0] = NAN;
    out->data.votes = one->votes;
    out->data.map = rcn_target_map(one->target);
    out->data.foci = one->foci;
    out->target = one->target;
    return RCN_OK;
}

static rcn_status fill_case(one_case *one, rcn_context *ctx, const rcn_strategy *strategy,
                            uint64_t seed) {
    rcn_status status;
    rcn_phantom_options phantom = RCN_PHANTOM_OPTIONS_INIT;
    rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    rcn_mask views[RATERS];
    phantom.size[0] = phantom.size[1] = N;
    phantom.raters = RATERS;
    phantom.lesions = 2;
    phantom.seed = seed;
    memset(views, 0, sizeof views);
    status = rcn_phantom_make(one->image, one->masks, ctx, &phantom);
    if (status != RCN_OK) return status;
    for (int r = 0; r < RATERS; ++r) {
        views[r].image.data = one->masks + r * VOXELS;
        views[r].image.components = 1;
        views[r].image.geometry = rcn_geometry_make(N, N, 1);
    }
    one->channel.image.data = one->image;
    one->channel.image.type = RCN_FLOAT32;
    one->channel.image.components = 1;
    one->channel.image.geometry = rcn_geometry_make(N, N, 1);
    status = rcn_votes_from_masks(&one->votes, ctx, views, RATERS);
    if (status == RCN_OK) status = rcn_foci_create(&one->foci, ctx, one->votes);
    if (status == RCN_OK)
        status = rcn_target_create(&one->target, ctx, one->votes, strategy, &fusion);
    if (status == RCN_OK) status = rcn_normalize_fit(&one->scale, ctx, &rule, &one->channel, 1);
    return status;
}

/* Of the process that this thread plays. */
static _Thread_local rcn_comm *processes;
static _Thread_local rcn_net_options net_shape = {RCN_UNET,       1,         2,  8, 2,
                                                  RCN_NORM_BATCH, {1, 1, 1}, 0.2};

static rcn_train_options options_for(const setting *s) {
    rcn_train_options options = RCN_TRAIN_OPTIONS_INIT;
    options.strategy = s->strategy;
    options.loss.raters = RATERS;
    options.schedule.kind = RCN_SCHEDULE_ONE_CYCLE;
    options.schedule.rate = 0.01;
    options.schedule.steps = 60;
    options.sample.size[0] = options.sample.size[1] = N;
    options.batch = 4;
    options.cases = 4;
    options.old_cases = 2;
    options.seed = 3;
    options.comm = processes;
    return options;
}

/* Everything; `change` (may be NULL) has the last word on the options. */
static rcn_status open_setting(setting *s, rcn_context *ctx, const char *strategy,
                               void (*change)(rcn_train_options *)) {
    rcn_net_options shape = net_shape;
    rcn_status status = RCN_OK;
    rcn_loss *loss = NULL;
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    CHECK_STATUS(rcn_strategy_parse(&s->strategy, strategy), RCN_OK);
    for (int i = 0; status == RCN_OK && i < CASES; ++i)
        status = fill_case(&s->cases[i], ctx, &s->strategy, 10 + (uint64_t)i);
    rcn_train_options options = options_for(s);
    if (change) change(&options);
    options.loss.kind = s->strategy.loss;
    if (status == RCN_OK) status = rcn_loss_create(&loss, ctx, &options.loss);
    if (status == RCN_OK) {
        shape.outputs = rcn_loss_channels(loss);
        status = rcn_net_create(&s->net, ctx, &shape);
    }
    rcn_loss_destroy(loss);
    if (status == RCN_OK) status = rcn_net_initialize(s->net, 1);
    if (status == RCN_OK) status = rcn_train_create(&s->train, ctx, s->net, &options, give_case, s);
    if (status == RCN_OK) rcn_train_set_soon(s->train, hear_soon);
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
    static const char *const compared[RCN_STRATEGIES_COMPARED] = {
        "ordinal", "rps", "random", "median", "soft", "soft-gaussian", "staple", "simple", "svls"};
    rcn_strategy strategy, before = {RCN_LOSS_CE, 7, RCN_SVLS, 3};
    int count = 0;
    for (; rcn_strategy_name(count); ++count) {
        CHECK_STATUS(rcn_strategy_parse(&strategy, rcn_strategy_name(count)), RCN_OK);
        CHECK(count >= RCN_STRATEGIES_COMPARED ||
              !strcmp(rcn_strategy_name(count), compared[count]));
        CHECK(strategy.fused == (count > 1 && count < RCN_STRATEGIES_COMPARED));
        if (strategy.fused)
            CHECK(!strcmp(rcn_method_name(strategy.method), rcn_strategy_name(count)));
        else if (count > 0)
            CHECK(!strcmp(rcn_loss_kind_name(strategy.loss), rcn_strategy_name(count)));
    }
    CHECK_STATUS(rcn_strategy_parse(&strategy, "ordinal"), RCN_OK);
    CHECK(strategy.loss == RCN_LOSS_CUMULATIVE_LINK && strategy.rps_weight == 5);
    CHECK_STATUS(rcn_strategy_parse(&strategy, "cumulative-link"), RCN_OK);
    CHECK(strategy.loss == RCN_LOSS_CUMULATIVE_LINK && strategy.rps_weight == 0);
    CHECK(count == 18);
    strategy = before;
    CHECK_STATUS(rcn_strategy_parse(&strategy, "mean"), RCN_EINVALID);
    CHECK(!memcmp(&strategy, &before, sizeof before));
    CHECK(rcn_strategy_name(-1) == NULL);
}

/* Labels and maps are those of rcn_fuse(), and the code outside the image counts for nothing. */
static void test_targets(void) {
    static float fused[VOXELS];
    rcn_context *ctx = make_context(2);
    for (int k = 0; rcn_strategy_name(k); ++k) {
        setting s;
        CHECK_STATUS(open_setting(&s, ctx, rcn_strategy_name(k), NULL), RCN_OK);
        const one_case *one = &s.cases[0];
        const rcn_loss_label *labels = rcn__target_labels(one->target);
        const float *map = rcn_target_map(one->target);
        const uint8_t *codes = rcn_votes_codes(one->votes);
        CHECK(labels[RCN_VOID_CODE(one->votes)].weight == 0);
        CHECK(!map == (s.strategy.method != RCN_SOFT_GAUSSIAN && s.strategy.method != RCN_SVLS));
        if (s.strategy.fused && s.strategy.method != RCN_RANDOM) {
            rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
            fusion.method = s.strategy.method;
            fusion.staple_output = RCN_STAPLE_MASK;
            CHECK_STATUS(rcn_fuse(fused, NULL, ctx, one->votes, &fusion), RCN_OK);
            for (int i = 0; i < VOXELS; ++i)
                CHECK((map ? map[i] : labels[codes[i]].value) == fused[i]);
        } else {
            for (int i = 0; i < VOXELS; ++i) {
                const int marked =
                    one->masks[i] + one->masks[VOXELS + i] + one->masks[2 * VOXELS + i];
                CHECK(labels[codes[i]].marked == marked && labels[codes[i]].answered == RATERS);
            }
        }
        close_setting(&s);
    }
    rcn_context_destroy(ctx);
}

/* Two raters, eight voxels, one of which only one rater answered and one nobody. */
static void test_levels_of_a_target(void) {
    uint8_t masks[2][8] = {{1, 1, 1, 0, 0, 0, 1, 9}, {1, 1, 0, 0, 0, 0, 9, 9}};
    const int64_t none = 9;
    rcn_mask views[2];
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = NULL;
    rcn_target *target = NULL;
    rcn_strategy strategy;
    const rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
    for (int r = 0; r < 2; ++r) {
        const rcn_mask view = {
            {masks[r], RCN_UINT8, 1, rcn_geometry_make(8, 1, 1)}, 0, NULL, 0, &none};
        views[r] = view;
    }
    CHECK_STATUS(rcn_strategy_parse(&strategy, "rps"), RCN_OK);
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, views, 2), RCN_OK);
    CHECK_STATUS(rcn_target_create(&target, ctx, votes, &strategy, &fusion), RCN_OK);
    double voxels[3] = {10, 0, 0};
    rcn_target_add_levels(voxels, target, votes);
    CHECK(voxels[0] == 13 && voxels[1] == 1 && voxels[2] == 3);
    rcn_target_destroy(target);
    rcn_votes_destroy(votes);

    /* Three raters, one of whom left the voxel out: one of two marked is 1.5 of three. */
    uint8_t marks[3] = {1, 0, 9};
    rcn_mask three[3];
    for (int r = 0; r < 3; ++r) {
        const rcn_mask view = {
            {&marks[r], RCN_UINT8, 1, rcn_geometry_make(1, 1, 1)}, 0, NULL, 0, &none};
        three[r] = view;
    }
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, three, 3), RCN_OK);
    CHECK_STATUS(rcn_target_create(&target, ctx, votes, &strategy, &fusion), RCN_OK);
    double shares[4] = {0, 0, 0, 0};
    rcn_target_add_levels(shares, target, votes);
    CHECK(shares[0] == 0 && shares[1] == 0.5 && shares[2] == 0.5 && shares[3] == 0);
    rcn_target_destroy(target);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Beside voxels that nobody answered, a smoothed target of all ones stays one. */
static void test_targets_beside_a_gap(void) {
    static uint8_t mask[VOXELS];
    const int64_t none = 9;
    rcn_context *ctx = make_context(1);
    for (int i = 0; i < VOXELS; ++i) mask[i] = i % N == 7 ? 9 : 1;
    const rcn_mask view = {{mask, RCN_UINT8, 1, rcn_geometry_make(N, N, 1)}, 0, NULL, 0, &none};
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &view, 1), RCN_OK);
    for (int k = 0; k < 2; ++k) {
        const rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
        rcn_strategy strategy;
        rcn_target *target = NULL;
        CHECK_STATUS(rcn_strategy_parse(&strategy, k ? "svls" : "soft-gaussian"), RCN_OK);
        CHECK_STATUS(rcn_target_create(&target, ctx, votes, &strategy, &fusion), RCN_OK);
        const float *map = rcn_target_map(target);
        for (int i = 0; i < VOXELS; ++i) CHECK_NEAR(map[i], i % N == 7 ? -1 : 1, 1e-6);
        rcn_target_destroy(target);
    }
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Every strategy learns: an epoch's loss falls well below the first one's. */
static void test_every_strategy_learns(void) {
    rcn_context *ctx = make_context(2);
    for (int k = 0; rcn_strategy_name(k); ++k) {
        setting s;
        rcn_train_report report;
        double first = 0, last = 0;
        CHECK_STATUS(open_setting(&s, ctx, rcn_strategy_name(k), NULL), RCN_OK);
        for (int step = 0; step < 30; ++step) {
            CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
            CHECK(report.step == step + 1 && !report.setback);
            if (!first) first = report.loss;
            last = report.epoch_loss;
        }
        if (!(last < 0.8 * first))
            fprintf(stderr, "%s: %g to %g\n", rcn_strategy_name(k), first, last);
        CHECK(last < 0.8 * first);
        close_setting(&s);
    }
    rcn_context_destroy(ctx);
}

/* The mean levels of a network that has not been trained are the shares it was started with. */
static void test_start(void) {
    static const double shares[RATERS + 1] = {0.9, 0.04, 0.02, 0.04};
    static float logits[(RATERS + 1) * VOXELS], levels[(RATERS + 1) * VOXELS];
    rcn_context *ctx = make_context(1);
    for (int k = 0; rcn_strategy_name(k); ++k) {
        setting s;
        double expected = 0, mean[RATERS + 1] = {0};
        const rcn_batch batch = {1, {N, N, 1}};
        CHECK_STATUS(open_setting(&s, ctx, rcn_strategy_name(k), NULL), RCN_OK);
        CHECK_STATUS(rcn_train_start(s.train, shares), RCN_OK);
        CHECK_STATUS(rcn_net_predict(logits, s.net, s.cases[0].image, &batch), RCN_OK);
        CHECK_STATUS(rcn_loss_levels(levels, rcn_train_loss(s.train), ctx, logits,
                                     rcn_train_loss_values(s.train), 1, VOXELS),
                     RCN_OK);
        for (int level = 0; level <= RATERS; ++level) {
            for (int i = 0; i < VOXELS; ++i) mean[level] += levels[level * VOXELS + i] / VOXELS;
            expected += mean[level] * level / RATERS;
        }
        CHECK_NEAR(expected, 0.04 / 3 + 0.04 / 3 + 0.04, 0.02);
        if (s.strategy.loss != RCN_LOSS_BCE && s.strategy.loss != RCN_LOSS_BINOMIAL &&
            s.strategy.loss != RCN_LOSS_BETA_BINOMIAL &&
            s.strategy.loss != RCN_LOSS_BETA_BINOMIAL_VOXEL)
            for (int level = 0; level <= RATERS; ++level)
                CHECK_NEAR(mean[level], shares[level], 0.02);
        const double bad[RATERS + 1] = {0.5, NAN, 0, 0.5};
        CHECK_STATUS(rcn_train_start(s.train, bad), RCN_EINVALID);
        CHECK_STATUS(rcn_train_start(s.train, NULL), RCN_EINVALID);
        close_setting(&s);
    }
    rcn_context_destroy(ctx);
}

static void several_steps_an_epoch(rcn_train_options *options) {
    options->samples = 3; /* 18 samples: 4 steps */
    options->sample.augment.elastic = 1;
    options->sample.augment.noise = 0.1;
    options->average = 0.25;
}

/* 4 new cases and 2 old ones in an epoch, a batch of 4: one step, and two samples left over. */
static void test_epochs(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&s, ctx, "rps", NULL), RCN_OK);
    const rcn_train_options options = options_for(&s);
    CHECK(rcn_train_epoch_steps(&options) == 1);
    for (int epoch = 0; epoch < 30; ++epoch) {
        CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
        CHECK(report.epoch_done && report.epoch == epoch + 1);
        CHECK(report.epoch_loss == report.loss);
    }
    int64_t sum = 0;
    for (int i = 0; i < CASES; ++i) {
        CHECK(s.asked[i] > 10 && s.asked[i] < 30); /* about 20: left out now and then */
        sum += s.asked[i];
    }
    CHECK(sum == 30 * 4);
    rcn_train_options few = options;
    few.cases = 1;
    few.old_cases = 0;
    CHECK(rcn_train_epoch_steps(&few) == 1);
    few.samples = 9;
    CHECK(rcn_train_epoch_steps(&few) == 2);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

/* Every step but the last of an epoch tells what the next one asks for, all of it and in order. */
static void test_tells_what_comes(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&s, ctx, "rps", several_steps_an_epoch), RCN_OK);
    for (int step = 0; step < 12; ++step) {
        CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
        CHECK(s.told_next == (report.epoch_done ? 4 : 0) && s.told_count == 4);
    }
    CHECK(s.told_wrong == 0 && s.calls == 12 * 4);
    /* Who does not listen learns the same. */
    rcn_train_set_soon(s.train, NULL);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    CHECK(s.told_next == 4);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

/* The schedule ends on time when told to. */
static void test_time_moves_the_rate(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&s, ctx, "rps", NULL), RCN_OK);
    const rcn_train_options options = options_for(&s);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    CHECK_NEAR(report.rate, rcn_schedule_rate(&options.schedule, 0), 0);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0.5), RCN_OK);
    CHECK_NEAR(report.rate, rcn_schedule_rate(&options.schedule, 30), 0);
    CHECK_STATUS(rcn_train_step(&report, s.train, 1), RCN_OK);
    CHECK_NEAR(report.rate, 0, 1e-9);
    CHECK_STATUS(rcn_train_step(&report, s.train, 1.5), RCN_EINVALID);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

static const char *const checkpoint = "test_rcn_train.checkpoint.safetensors";

/* Stopped in the middle of an epoch and gone on in a new network: the same bits. beta-binomial has
 * a parameter of its own, random draws raters. */
static void test_resumed_is_uninterrupted(void) {
    static const char *const strategies[] = {"rps", "beta-binomial", "random"};
    for (int k = 0; k < 3; ++k) {
        setting whole, first, second;
        rcn_train_report a, b;
        rcn_context *ctx = make_context(2);
        CHECK_STATUS(open_setting(&whole, ctx, strategies[k], several_steps_an_epoch), RCN_OK);
        for (int step = 0; step < 11; ++step)
            CHECK_STATUS(rcn_train_step(&a, whole.train, 0), RCN_OK);
        CHECK_STATUS(open_setting(&first, ctx, strategies[k], several_steps_an_epoch), RCN_OK);
        for (int step = 0; step < 6; ++step)
            CHECK_STATUS(rcn_train_step(&b, first.train, 0), RCN_OK);
        const rcn_model_entry entry = {"note", "half way"};
        CHECK_STATUS(rcn_train_save(first.train, checkpoint, &entry, 1), RCN_OK);
        close_setting(&first);
        CHECK_STATUS(open_setting(&second, ctx, strategies[k], several_steps_an_epoch), RCN_OK);
        CHECK_STATUS(rcn_net_initialize(second.net, 99), RCN_OK);
        CHECK_STATUS(rcn_train_load(second.train, checkpoint), RCN_OK);
        for (int step = 6; step < 11; ++step)
            CHECK_STATUS(rcn_train_step(&b, second.train, 0), RCN_OK);
        CHECK(a.loss == b.loss && a.epoch_loss == b.epoch_loss && a.epoch == b.epoch &&
              a.rate == b.rate && a.norm == b.norm);
        CHECK(!memcmp(rcn_net_values(whole.net), rcn_net_values(second.net),
                      sizeof(float) * (size_t)rcn_net_floats(whole.net)));
        CHECK(rcn__train_hash(whole.train) == rcn__train_hash(second.train));
        char *note = NULL;
        CHECK_STATUS(rcn_model_read(&note, ctx, checkpoint, "note"), RCN_OK);
        CHECK(note && !strcmp(note, "half way"));
        rcn_model_free(note, ctx);
        if (k == 1) {
            CHECK(rcn_train_loss_values(whole.train)[0] == rcn_train_loss_values(second.train)[0]);
            float start;
            rcn_loss_init_parameters(&start, rcn_train_loss(whole.train));
            CHECK(rcn_train_loss_values(whole.train)[0] != start); /* it is trained */
        }
        close_setting(&whole);
        close_setting(&second);
        rcn_context_destroy(ctx);
    }
    remove(checkpoint);
}

/* After every step the average goes 1 / (share * steps) of the way to the weights, or all of it. */
static void test_average(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(2);
    CHECK_STATUS(open_setting(&s, ctx, "rps", NULL), RCN_OK);
    CHECK(!rcn_train_average(s.train) && !rcn_train_average_loss_values(s.train));
    close_setting(&s);
    CHECK_STATUS(open_setting(&s, ctx, "beta-binomial", several_steps_an_epoch), RCN_OK);
    const int64_t floats = rcn_net_floats(s.net), at[] = {0, floats / 2, floats - 1};
    double expected[4] = {0};
    for (int step = 1; step <= 20; ++step) {
        CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
        const double way = 0.25 * step > 1 ? 1 / (0.25 * step) : 1;
        for (int i = 0; i < 3; ++i)
            expected[i] += way * ((double)rcn_net_values(s.net)[at[i]] - expected[i]);
        expected[3] += way * ((double)rcn_train_loss_values(s.train)[0] - expected[3]);
    }
    for (int i = 0; i < 3; ++i) CHECK_NEAR(rcn_train_average(s.train)[at[i]], expected[i], 1e-6);
    CHECK_NEAR(rcn_train_average_loss_values(s.train)[0], expected[3], 1e-6);
    rcn_train_options bad = options_for(&s);
    bad.average = 1;
    CHECK(rcn_train_check(&bad) != NULL);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

/* What does not fit is refused and changes nothing. */
static void test_bad_checkpoints(void) {
    setting s, other;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&other, ctx, "median", NULL), RCN_OK);
    CHECK_STATUS(rcn_train_step(&report, other.train, 0), RCN_OK);
    CHECK_STATUS(rcn_train_save(other.train, checkpoint, NULL, 0), RCN_OK);
    close_setting(&other);
    CHECK_STATUS(open_setting(&s, ctx, "rps", NULL), RCN_OK);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    const size_t bytes = sizeof(float) * (size_t)rcn_net_floats(s.net);
    float *before = malloc(bytes);
    memcpy(before, rcn_net_values(s.net), bytes);
    CHECK_STATUS(rcn_train_load(s.train, checkpoint), RCN_EFORMAT);
    CHECK_STATUS(rcn_train_load(s.train, "no/such/file.safetensors"), RCN_EIO);
    FILE *file = fopen(checkpoint, "wb");
    fputs("not a checkpoint", file);
    fclose(file);
    CHECK_STATUS(rcn_train_load(s.train, checkpoint), RCN_EFORMAT);
    CHECK(!memcmp(before, rcn_net_values(s.net), bytes));
    int64_t step, epoch;
    rcn_train_where(&step, &epoch, s.train);
    CHECK(step == 1 && epoch == 1);
    CHECK_STATUS(rcn_train_save(s.train, "no/such/folder/x.safetensors", NULL, 0), RCN_EIO);
    free(before);
    close_setting(&s);
    rcn_context_destroy(ctx);
    remove(checkpoint);
}

/* One bad batch: back to the last whole epoch, half the rate, and on. */
static void test_divergence_goes_back(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&s, ctx, "rps", several_steps_an_epoch), RCN_OK);
    for (int step = 0; step < 6; ++step) CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    const double loss = report.epoch_loss; /* of step 5 and 6: the second epoch began with 5 */
    CHECK(report.epoch == 1);
    s.poison_from = s.calls + 1;
    s.poison_to = s.calls + 5;
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    CHECK(report.setback && report.setbacks == 1 && report.step == 4 && report.epoch == 1);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    const rcn_train_options options = options_for(&s);
    CHECK(!report.setback && report.step == 5);
    CHECK_NEAR(report.rate, 0.5 * rcn_schedule_rate(&options.schedule, 4), 1e-15);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    CHECK(report.epoch_loss != loss && isfinite(report.epoch_loss));
    close_setting(&s);
    rcn_context_destroy(ctx);
}

static void test_divergence_gives_up(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&s, ctx, "rps", NULL), RCN_OK);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    const size_t bytes = sizeof(float) * (size_t)rcn_net_floats(s.net);
    float *good = malloc(bytes);
    memcpy(good, rcn_net_values(s.net), bytes);
    s.poison_from = 0;
    s.poison_to = INT64_MAX;
    for (int k = 0; k < RCN_TRAIN_SETBACKS; ++k) {
        CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
        CHECK(report.setback && report.setbacks == k + 1);
    }
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_EDATA);
    CHECK_ERROR(ctx, "lower rate");
    CHECK(!memcmp(good, rcn_net_values(s.net), bytes)); /* still the last good state */
    free(good);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

static void freeze(rcn_train_options *options) { options->freeze_encoder = 1; }

static void test_frozen_encoder(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&s, ctx, "rps", freeze), RCN_OK);
    const size_t bytes = sizeof(float) * (size_t)rcn_net_floats(s.net);
    float *before = malloc(bytes);
    memcpy(before, rcn_net_values(s.net), bytes);
    for (int step = 0; step < 3; ++step) CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    for (int p = 0; p < rcn_net_parameter_count(s.net); ++p) {
        const rcn_parameter *parameter = rcn_net_parameter(s.net, p);
        const int same =
            !memcmp(before + parameter->offset, rcn_net_values(s.net) + parameter->offset,
                    sizeof(float) * (size_t)parameter->count);
        CHECK(same == !strncmp(parameter->name, "encoder.", 8)); /* statistics, too */
    }
    free(before);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

/* What is kept is what would be computed: after all ways of varying a sample have been seen, and
 * from a file, where nothing is known, the same steps follow. */
static void test_frozen_encoder_remembers(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(2);
    CHECK_STATUS(open_setting(&s, ctx, "rps", freeze), RCN_OK);
    int64_t step, epoch = 0;
    while (epoch < 9) {
        CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
        rcn_train_where(&step, &epoch, s.train);
    }
    CHECK_STATUS(rcn_train_save(s.train, checkpoint, NULL, 0), RCN_OK);
    const size_t bytes = sizeof(float) * (size_t)rcn_net_floats(s.net);
    float *kept = malloc(bytes);
    for (int k = 0; k < 3; ++k) CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    memcpy(kept, rcn_net_values(s.net), bytes);
    CHECK_STATUS(rcn_train_load(s.train, checkpoint), RCN_OK);
    for (int k = 0; k < 3; ++k) CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_OK);
    CHECK(!memcmp(kept, rcn_net_values(s.net), bytes));
    free(kept);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

/* ---- several processes ---- */

enum { STEPS = 4 };

typedef struct course {
    const char *strategy;
    void (*change)(rcn_train_options *);
    rcn_net_options shape;
    double losses[TEST_RANKS][STEPS], norms[TEST_RANKS][STEPS];
    uint64_t hashes[TEST_RANKS];
    int64_t asked[TEST_RANKS][CASES];
    int setbacks[TEST_RANKS];
    int poisoned; /* step in which process 1's weights get out of hand, or 0 */
    int spoiled;  /* step before which process 1 goes its own way, or 0 */
    rcn_status last[TEST_RANKS];
    char error[TEST_RANKS][256];
    const char *save, *load;
} course;

static void take_course(rcn_comm *comm, void *payload) {
    course *c = payload;
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    const int me = rcn__comm_rank(comm);
    const rcn_net_options usual = net_shape;
    processes = comm;
    net_shape = c->shape;
    rcn_status status = open_setting(&s, ctx, c->strategy, c->change);
    CHECK_STATUS(status, RCN_OK);
    if (c->load) CHECK_STATUS(rcn_train_load(s.train, c->load), RCN_OK);
    for (int step = 0; status == RCN_OK && step < STEPS; ++step) {
        if (c->poisoned && c->poisoned == step && me == 1) rcn_net_edit_values(s.net)[0] = NAN;
        if (c->spoiled && c->spoiled == step && me == 1) rcn_net_edit_values(s.net)[0] += 1e-3f;
        if (c->save && step == STEPS / 2 && me == 0)
            CHECK_STATUS(rcn_train_save(s.train, c->save, NULL, 0), RCN_OK);
        status = rcn_train_step(&report, s.train, 0);
        c->losses[me][step] = report.loss;
        c->norms[me][step] = report.norm;
        c->setbacks[me] = report.setbacks;
    }
    /* Those of this process, as long as nobody goes back. */
    CHECK(c->poisoned || c->load || (s.told_wrong == 0 && s.told_count > 0));
    c->last[me] = status;
    snprintf(c->error[me], sizeof c->error[me], "%s", rcn_context_error(ctx));
    c->hashes[me] = rcn__train_hash(s.train);
    memcpy(c->asked[me], s.asked, sizeof s.asked);
    close_setting(&s);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
    processes = NULL;
    net_shape = usual;
}

static test_group group;

static void compare_course(const course *one, const course *many, int size, double tolerance) {
    for (int r = 0; r < size; ++r) {
        CHECK(many->hashes[r] == many->hashes[0]);
        for (int step = 0; step < STEPS; ++step) {
            CHECK(many->losses[r][step] == many->losses[0][step]);
            CHECK(many->norms[r][step] == many->norms[0][step]);
            CHECK_NEAR(many->losses[r][step], one->losses[0][step],
                       tolerance * one->losses[0][step]);
        }
    }
}

static void old_and_new(rcn_train_options *options) {
    options->samples = 2; /* 12 samples: 3 steps of 4 */
    options->sample.augment.rotate = 40;
    options->sample.augment.share = 1; /* corners are void: samples do not weigh the same */
    options->optim.clip_norm = 0.5;
    options->schedule.rate = 1e-3; /* rounding must not grow into another course */
}
static void frozen(rcn_train_options *options) {
    old_and_new(options);
    options->freeze_encoder = 1;
}
static void local(rcn_train_options *options) {
    old_and_new(options);
    options->local_norms = 1;
}

/* 1 x 4, 2 x 2, 4 x 1 samples and parts of different size (3 processes) make one course. */
static void test_processes_make_one_course(void) {
    static const rcn_net_options unet = {RCN_UNET, 1, 2, 8, 2, RCN_NORM_BATCH, {1, 1, 1}, 0.2};
    static const struct {
        const char *strategy;
        void (*change)(rcn_train_options *);
        rcn_arch arch;
        rcn_norm norm;
    } cases[] = {
        {"rps", old_and_new, RCN_UNET, RCN_NORM_BATCH},
        {"beta-binomial", old_and_new, RCN_UNET, RCN_NORM_BATCH}, /* parameters of its own */
        {"random", old_and_new, RCN_UNET, RCN_NORM_INSTANCE},
        {"svls", frozen, RCN_UNET, RCN_NORM_BATCH},
        {"rps", old_and_new, RCN_FPN_RESNET18, RCN_NORM_BATCH}, /* dropout, many buckets */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        static course one, many;
        memset(&one, 0, sizeof one);
        one.strategy = cases[k].strategy;
        one.change = cases[k].change;
        one.shape = unet;
        one.shape.arch = cases[k].arch;
        one.shape.norm = cases[k].norm;
        many = one;
        take_course(NULL, &one);
        for (int size = 2; size <= (k == 0 ? 4 : 2); ++size) {
            run_ranks(&group, size, take_course, &many);
            compare_course(&one, &many, size, 2e-3);
            /* Resnet-18 has 13 million weights: they travel in pieces, several at a time. */
            if (cases[k].arch == RCN_FPN_RESNET18)
                CHECK(group.ranks[0].most_pending > 5 && group.ranks[0].sums > 5 * STEPS);
            CHECK(group.ranks[0].comm.seconds > 0);
        }
    }
}

/* Without the statistics of the whole batch the course is another one, but all still share it. */
static void test_local_norms(void) {
    static course one, many;
    memset(&one, 0, sizeof one);
    one.strategy = "rps";
    one.change = local;
    one.shape = net_shape;
    many = one;
    take_course(NULL, &one);
    run_ranks(&group, 2, take_course, &many);
    compare_course(&one, &many, 2, 0.5);
    CHECK(fabs(many.losses[0][0] - one.losses[0][0]) > 1e-4 * one.losses[0][0]);
}

/* A process asks for the cases of its share only; together they ask for all. */
static void test_processes_share_cases(void) {
    static course many;
    memset(&many, 0, sizeof many);
    many.strategy = "rps";
    many.change = old_and_new;
    many.shape = net_shape;
    run_ranks(&group, 2, take_course, &many);
    setting s;
    memset(&s, 0, sizeof s);
    rcn_train_options options = options_for(&s);
    old_and_new(&options);
    for (int i = 0; i < CASES; ++i) CHECK(many.asked[0][i] + many.asked[1][i] > 0);
    for (int r = 0; r < 2; ++r) {
        int64_t first, end, old_first, old_end;
        rcn_train_share(&first, &end, &old_first, &old_end, &options, r, 2);
        CHECK(end - first + old_end - old_first <= 4); /* half of 6, and one that is cut */
        for (int i = 0; i < CASES; ++i)
            CHECK(many.asked[r][i] == 0 || (i >= first && i < end) ||
                  (i >= old_first && i < old_end));
    }
    options.old_cases = 50;
    options.cases = 10;
    options.batch = 7;
    for (int size = 1; size <= 7; ++size) {
        char seen[60] = {0};
        for (int r = 0; r < size; ++r) {
            int64_t first, end, old_first, old_end;
            rcn_train_share(&first, &end, &old_first, &old_end, &options, r, size);
            for (int64_t i = first; i < end; ++i) seen[i] = 1;
            for (int64_t i = old_first; i < old_end; ++i) seen[i] = 1;
        }
        for (int i = 0; i < 60; ++i) CHECK(seen[i]);
    }
}

/* NaN in one process is a setback for all of them. */
static void test_processes_go_back_together(void) {
    static course many;
    memset(&many, 0, sizeof many);
    many.strategy = "rps";
    many.change = old_and_new;
    many.shape = net_shape;
    many.poisoned = 2;
    run_ranks(&group, 2, take_course, &many);
    CHECK(many.setbacks[0] == 1 && many.setbacks[1] == 1);
    CHECK(many.hashes[0] == many.hashes[1]);
    CHECK(many.last[0] == RCN_OK && many.last[1] == RCN_OK);
}

/* One that went its own way is found at the end of the epoch. */
static void test_processes_gone_apart(void) {
    static course many;
    memset(&many, 0, sizeof many);
    many.strategy = "rps";
    many.change = old_and_new;
    many.shape = net_shape;
    many.spoiled = 2;
    run_ranks(&group, 2, take_course, &many);
    for (int r = 0; r < 2; ++r) {
        CHECK_STATUS(many.last[r], RCN_EINTERNAL);
        CHECK(strstr(many.error[r], "process 1 has other weights") != NULL);
    }
}

/* Saved by two processes, gone on by three, and by one. */
static void test_other_number_of_processes_goes_on(void) {
    static course two, other;
    memset(&two, 0, sizeof two);
    two.strategy = "rps";
    two.change = old_and_new;
    two.shape = net_shape;
    two.save = checkpoint;
    run_ranks(&group, 2, take_course, &two);
    for (int size = 1; size <= 3; size += 2) {
        other = two;
        other.save = NULL;
        other.load = checkpoint;
        run_ranks(&group, size, take_course, &other);
        for (int step = 0; step < STEPS / 2; ++step)
            CHECK_NEAR(other.losses[0][step], two.losses[0][STEPS / 2 + step],
                       2e-3 * two.losses[0][STEPS / 2 + step]);
    }
    remove(checkpoint);
}

static void too_many(rcn_comm *comm, void *payload) {
    setting s;
    rcn_context *ctx = make_context(1);
    (void)payload;
    processes = comm;
    CHECK_STATUS(open_setting(&s, ctx, "rps", NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "too few for 5 processes");
    close_setting(&s);
    rcn_context_destroy(ctx);
    processes = NULL;
}

static void test_more_processes_than_samples(void) { run_ranks(&group, 5, too_many, NULL); }

static void no_cases(rcn_train_options *options) { options->cases = 0; }
static void two_raters(rcn_train_options *options) { options->loss.raters = 2; }

static void test_bad_arguments(void) {
    setting s;
    rcn_train_report report;
    rcn_context *ctx = make_context(1);
    CHECK_STATUS(open_setting(&s, ctx, "rps", no_cases), RCN_EINVALID);
    CHECK_ERROR(ctx, "No training cases");
    close_setting(&s);
    /* The cases have three raters. */
    CHECK_STATUS(open_setting(&s, ctx, "rps", two_raters), RCN_OK);
    CHECK_STATUS(rcn_train_step(&report, s.train, 0), RCN_EINVALID);
    CHECK_ERROR(ctx, "raters");
    rcn_train *none = NULL;
    rcn_train_options options = options_for(&s); /* K + 1 = 4 outputs wanted, the network has 3 */
    CHECK_STATUS(rcn_train_create(&none, ctx, s.net, &options, give_case, &s), RCN_EINVALID);
    CHECK_ERROR(ctx, "needs 4");
    CHECK(none == NULL);
    CHECK_STATUS(rcn_train_create(&none, ctx, NULL, &options, give_case, &s), RCN_EINVALID);
    CHECK_STATUS(rcn_train_set_loss_values(s.train, NULL, 2), RCN_EINVALID);
    close_setting(&s);
    rcn_context_destroy(ctx);
}

static rcn_status step_and_save(rcn_context *ctx, void *payload) {
    setting *s = payload;
    rcn_train_report report;
    rcn_status status = open_setting(s, ctx, "svls", NULL);
    if (status == RCN_OK) status = rcn_train_step(&report, s->train, 0);
    if (status == RCN_OK) status = rcn_train_save(s->train, checkpoint, NULL, 0);
    if (status == RCN_OK) status = rcn_train_load(s->train, checkpoint);
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
    RUN(test_targets);
    RUN(test_levels_of_a_target);
    RUN(test_targets_beside_a_gap);
    RUN(test_every_strategy_learns);
    RUN(test_start);
    RUN(test_epochs);
    RUN(test_tells_what_comes);
    RUN(test_time_moves_the_rate);
    RUN(test_resumed_is_uninterrupted);
    RUN(test_average);
    RUN(test_bad_checkpoints);
    RUN(test_divergence_goes_back);
    RUN(test_divergence_gives_up);
    RUN(test_frozen_encoder);
    RUN(test_frozen_encoder_remembers);
    RUN(test_processes_make_one_course);
    RUN(test_local_norms);
    RUN(test_processes_share_cases);
    RUN(test_processes_go_back_together);
    RUN(test_processes_gone_apart);
    RUN(test_other_number_of_processes_goes_on);
    RUN(test_more_processes_than_samples);
    RUN(test_bad_arguments);
    RUN(test_failing_allocations);
    return TEST_RESULT;
}
