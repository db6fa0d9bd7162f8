// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_train.h"

#include <math.h>
#include <string.h>

#include "rcn/rcn_hash.h"
#include "rcn_fastmath.h"
#include "rcn_loss_private.h"
#include "rcn_rng.h"
#include "rcn_safetensors.h"
#include "rcn_votes_private.h"
#include "rcn_data_private.h"
#include "rcn_net_private.h"
#include "rcn_comm_private.h"
#include "rcn_train_private.h"

/* ---- strategies ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    rcn_strategy strategy;
} STRATEGIES[] = {
    {"ordinal", {RCN_LOSS_CUMULATIVE_LINK, 0, RCN_ORC, 5}},
    {"rps", {RCN_LOSS_RPS, 0, RCN_ORC, 0}},
    {"random", {RCN_LOSS_BCE, 1, RCN_RANDOM, 0}},
    {"median", {RCN_LOSS_BCE, 1, RCN_MEDIAN, 0}},
    {"soft", {RCN_LOSS_BCE, 1, RCN_SOFT, 0}},
    {"soft-gaussian", {RCN_LOSS_BCE, 1, RCN_SOFT_GAUSSIAN, 0}},
    {"staple", {RCN_LOSS_BCE, 1, RCN_STAPLE, 0}},
    {"simple", {RCN_LOSS_BCE, 1, RCN_SIMPLE, 0}},
    {"svls", {RCN_LOSS_BCE, 1, RCN_SVLS, 0}},
    {"ce", {RCN_LOSS_CE, 0, RCN_ORC, 0}},
    {"brier", {RCN_LOSS_BRIER, 0, RCN_ORC, 0}},
    {"emd", {RCN_LOSS_EMD, 0, RCN_ORC, 0}},
    {"corn", {RCN_LOSS_CORN, 0, RCN_ORC, 0}},
    {"coral", {RCN_LOSS_CORAL, 0, RCN_ORC, 0}},
    {"cumulative-link", {RCN_LOSS_CUMULATIVE_LINK, 0, RCN_ORC, 0}},
    {"binomial", {RCN_LOSS_BINOMIAL, 0, RCN_ORC, 0}},
    {"beta-binomial", {RCN_LOSS_BETA_BINOMIAL, 0, RCN_ORC, 0}},
    {"beta-binomial-voxel", {RCN_LOSS_BETA_BINOMIAL_VOXEL, 0, RCN_ORC, 5}},
};
enum { STRATEGY_COUNT = sizeof STRATEGIES / sizeof *STRATEGIES };

const char *rcn_strategy_name(int index) {
    return index >= 0 && index < STRATEGY_COUNT ? STRATEGIES[index].name : NULL;
}

rcn_status rcn_strategy_parse(rcn_strategy *out, const char *name) {
    for (int i = 0; out && name && i < STRATEGY_COUNT; ++i)
        if (!strcmp(name, STRATEGIES[i].name)) {
            *out = STRATEGIES[i].strategy;
            return RCN_OK;
        }
    return RCN_EINVALID;
}

static const struct {
    const char *name;
    rcn_strategy strategy;
} STRUCTURE_STRATEGIES[] = {
    {"dirichlet-multinomial", {RCN_LOSS_DIRICHLET_MULTINOMIAL, 0, RCN_ORC, 5}},
    {"soft", {RCN_LOSS_CATEGORICAL, 1, RCN_SOFT, 0}},
    {"median", {RCN_LOSS_CATEGORICAL, 1, RCN_MEDIAN, 0}},
    {"rps", {RCN_LOSS_RPS_HEADS, 0, RCN_ORC, 0}},
};
enum { STRUCTURE_STRATEGY_COUNT = sizeof STRUCTURE_STRATEGIES / sizeof *STRUCTURE_STRATEGIES };

const char *rcn_strategy_structures_name(int index) {
    return index >= 0 && index < STRUCTURE_STRATEGY_COUNT ? STRUCTURE_STRATEGIES[index].name : NULL;
}

rcn_status rcn_strategy_for(rcn_strategy *out, rcn_context *ctx, const char *name, int structures) {
    rcn_strategy known;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !name || structures < 1 || structures > RCN_MAX_STRUCTURES)
        return rcn__fail(ctx, RCN_EINVALID, "No strategy was named, or not for 1 to %d structures.",
                         RCN_MAX_STRUCTURES);
    if (structures > 1) {
        const char *sought = !strcmp(name, "ordinal") ? "dirichlet-multinomial" : name;
        for (int i = 0; i < STRUCTURE_STRATEGY_COUNT; ++i)
            if (!strcmp(sought, STRUCTURE_STRATEGIES[i].name)) {
                *out = STRUCTURE_STRATEGIES[i].strategy;
                return RCN_OK;
            }
        if (rcn_strategy_parse(&known, name) == RCN_OK)
            return rcn__fail(ctx, RCN_EINVALID,
                             "The strategy \"%s\" is for one structure; for several use "
                             "dirichlet-multinomial, soft, median or rps.",
                             name);
    } else if (rcn_strategy_parse(out, name) == RCN_OK) {
        return RCN_OK;
    }
    if (!strcmp(name, "dirichlet-multinomial"))
        return rcn__fail(ctx, RCN_EINVALID,
                         "The strategy \"dirichlet-multinomial\" is for several structures; for "
                         "one use beta-binomial.");
    return rcn__fail(ctx, RCN_EINVALID, "Unknown strategy \"%s\".", name);
}

static int is_of_labels(rcn_loss_kind kind) { return kind >= RCN_LOSS_DIRICHLET_MULTINOMIAL; }

/* ---- targets --------------------------------------------------------------------------------- */

struct rcn_target {
    rcn_context *ctx;
    rcn_loss_label *labels;
    int64_t count;
    float *map;
    /* Several structures; (count, structures + 1): */
    int structures;
    uint8_t *counts;
    float *shares;
};

/* How many raters gave each label; the void code comes last and has none. */
static rcn_status make_counts(rcn_target *target, rcn_context *ctx, const rcn_votes *votes,
                              const rcn_strategy *strategy) {
    rcn_status status;
    const int64_t patterns = votes->pattern_count;
    target->structures = rcn_votes_structures(votes);
    const int labels = target->structures + 1;
    RCN_ALLOC_ZERO(target->counts, ctx, (patterns + 1) * labels, "the counts of labels");
    if (rcn_votes_labels(votes))
        rcn_loss_label_counts(target->counts, rcn_votes_labels(votes), patterns, votes->raters,
                              target->structures);
    else
        for (int64_t p = 0; p < patterns; ++p) {
            target->counts[2 * p + 1] = target->labels[p].marked;
            target->counts[2 * p] =
                (uint8_t)(target->labels[p].answered - target->labels[p].marked);
        }
    if (strategy->loss != RCN_LOSS_CATEGORICAL) return status;
    RCN_ALLOC_ZERO(target->shares, ctx, (patterns + 1) * labels, "the shares of labels");
    rcn_loss_label_shares(target->shares, target->counts, patterns, target->structures,
                          strategy->method == RCN_MEDIAN);
done:
    return status;
}

static rcn_status make_labels(rcn_target *target, rcn_context *ctx, const rcn_votes *votes,
                              const rcn_strategy *strategy, const rcn_fusion_options *fusion) {
    rcn_status status;
    float *values = NULL;
    target->count = votes->pattern_count + 1;
    RCN_ALLOC_ZERO(target->labels, ctx, target->count, "the labels");
    rcn_loss_labels(target->labels, votes->patterns, votes->pattern_count);
    if (is_of_labels(strategy->loss)) {
        RCN_TRY(make_counts(target, ctx, votes, strategy));
    } else if (strategy->fused && strategy->method != RCN_RANDOM && !target->map) {
        RCN_ALLOC(values, ctx, votes->pattern_count, "the labels");
        RCN_TRY(rcn_fuse_patterns(values, NULL, ctx, votes, fusion));
        for (int64_t p = 0; p < votes->pattern_count; ++p) target->labels[p].value = values[p];
    }
done:
    rcn__free(ctx, values);
    return status;
}

typedef struct void_job {
    const rcn_votes *votes;
    float *map;
} void_job;

static void void_chunk(int64_t chunk, int thread, void *payload) {
    const void_job *job = payload;
    uint32_t codes[256];
    int64_t first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    for (; first < end; first += 256) {
        const int64_t count = end - first < 256 ? end - first : 256;
        rcn__votes_read(codes, job->votes, first, count);
        for (int64_t i = 0; i < count; ++i)
            if (!job->votes->patterns[codes[i]].answered) job->map[first + i] = -1.0f;
    }
}

static rcn_status make_map(rcn_target *target, rcn_context *ctx, const rcn_votes *votes,
                           const rcn_fusion_options *fusion) {
    rcn_status status;
    RCN_ALLOC(target->map, ctx, votes->voxels, "the target map");
    RCN_TRY(rcn_fuse(target->map, NULL, ctx, votes, fusion));
    if (votes->unanswered) {
        void_job job = {votes, target->map};
        RCN_TRY(rcn__for_chunks(ctx, "making targets", rcn__chunk_count(votes->voxels, RCN_CHUNK),
                                void_chunk, &job));
    }
done:
    return status;
}

rcn_status rcn_target_create(rcn_target **out, rcn_context *ctx, const rcn_votes *votes,
                             const rcn_strategy *strategy, const rcn_fusion_options *fusion) {
    rcn_status status;
    rcn_target *target = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !votes || !strategy || !fusion)
        return rcn__fail(ctx, RCN_EINVALID, "No votes or no strategy was given.");
    if (!is_of_labels(strategy->loss) && rcn_votes_structures(votes) > 1)
        return rcn__fail(ctx, RCN_EINVALID,
                         "The votes are on %d structures, the strategy is for one.",
                         rcn_votes_structures(votes));
    rcn_fusion_options options = *fusion;
    options.method = strategy->fused ? strategy->method : RCN_ORC;
    options.staple_output = RCN_STAPLE_MASK;
    RCN_ALLOC_ZERO(target, ctx, 1, "a target");
    target->ctx = ctx;
    if (options.method == RCN_SOFT_GAUSSIAN || options.method == RCN_SVLS)
        RCN_TRY(make_map(target, ctx, votes, &options));
    RCN_TRY(make_labels(target, ctx, votes, strategy, &options));
    *out = target;
    target = NULL;
done:
    rcn_target_destroy(target);
    return status;
}

void rcn_target_destroy(rcn_target *target) {
    if (!target) return;
    rcn_context *ctx = target->ctx;
    rcn__free(ctx, target->labels);
    rcn__free(ctx, target->map);
    rcn__free(ctx, target->counts);
    rcn__free(ctx, target->shares);
    rcn__free(ctx, target);
}

const uint8_t *rcn__target_counts(const rcn_target *target) { return target->counts; }

const float *rcn__target_shares(const rcn_target *target) { return target->shares; }

const rcn_loss_label *rcn__target_labels(const rcn_target *target) { return target->labels; }

const float *rcn_target_map(const rcn_target *target) { return target->map; }

void rcn_target_add_levels(double *voxels, const rcn_target *target, const rcn_votes *votes) {
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const rcn_loss_label *label = &target->labels[p];
        if (!label->answered) continue;
        const double level = (double)label->marked / label->answered * votes->raters;
        const int below = (int)level;
        const double above = level - below, count = (double)votes->patterns[p].voxels;
        voxels[below] += (1 - above) * count;
        voxels[below < votes->raters ? below + 1 : below] += above * count;
    }
}

void rcn_target_add_labels(double *voxels, const rcn_target *target, const rcn_votes *votes) {
    const int labels = target->structures + 1;
    for (int64_t p = 0; target->counts && p < votes->pattern_count; ++p)
        for (int l = 0; target->labels[p].answered && l < labels; ++l)
            voxels[l] += (double)target->counts[p * labels + l] / target->labels[p].answered *
                         (double)votes->patterns[p].voxels;
}

/* ---- options --------------------------------------------------------------------------------- */

const char *rcn_train_check(const rcn_train_options *options) {
    if (!options) return "No training options were given.";
    rcn_loss_options loss = options->loss;
    loss.kind = options->strategy.loss;
    const char *sentence = rcn_loss_check(&loss);
    if (!sentence) sentence = rcn_optim_check(&options->optim);
    if (!sentence) sentence = rcn_schedule_check(&options->schedule);
    if (!sentence) sentence = rcn__sample_check(&options->sample);
    if (sentence) return sentence;
    if (options->batch < 1 || options->batch > 65536)
        return "A batch must have 1 to 65536 samples.";
    if (options->cases < 1) return "No training cases.";
    if (options->old_cases < 0) return "The number of old cases must not be negative.";
    if (options->samples < 1 || options->samples > 1 << 20)
        return "An epoch must take 1 to 1048576 samples of each case.";
    if ((double)options->cases * (double)options->samples > 0x1p40 ||
        (double)options->old_cases > 0x1p40)
        return "There are too many cases.";
    if (!(options->average >= 0 && options->average < 1))
        return "The average of the weights must be over 0 to less than 1 of the steps.";
    return NULL;
}

static int64_t epoch_samples(const rcn_train_options *options) {
    const int64_t old = options->old_cases < options->cases ? options->old_cases : options->cases;
    return (options->cases + old) * options->samples;
}

static int64_t batch_of(const rcn_train_options *options) {
    const int64_t samples = epoch_samples(options);
    return options->batch < samples ? options->batch : samples;
}

int64_t rcn_train_epoch_steps(const rcn_train_options *options) {
    return epoch_samples(options) / batch_of(options);
}

/* Cases of an epoch in a row: the new ones, then as many places for old ones. Each case's samples
 * lie one after another, and the row is cut into as many parts as a batch has samples: every step
 * takes one sample of each part. So a process that makes some of a batch's samples needs the cases
 * of these parts only, while the order depends on the size of the batch, not on who makes it.
 * *first ... *end - 1: part b. `turn`, 0 ... batch - 1 and another one in each epoch, moves the
 * cuts by less than a sample, so that it is not always the same samples that have company in their
 * part and may be left out. */
static void part_of(int64_t *first, int64_t *end, const rcn_train_options *options, int64_t b,
                    int64_t turn) {
    const int64_t batch = batch_of(options), all = epoch_samples(options);
    *first = (b * all + turn) / batch;
    *end = ((b + 1) * all + turn) / batch;
}

/* The old cases that place number `place` for one is drawn from. */
static void old_range(int64_t *first, int64_t *end, const rcn_train_options *options,
                      int64_t place) {
    const int64_t places = epoch_samples(options) / options->samples - options->cases;
    *first = options->cases + place * options->old_cases / places;
    *end = options->cases + (place + 1) * options->old_cases / places;
}

void rcn_train_share(int64_t *first, int64_t *end, int64_t *old_first, int64_t *old_end,
                     const rcn_train_options *options, int rank, int size) {
    int64_t b, b_end, from, to, ignored;
    rcn_comm_share(&b, &b_end, batch_of(options), rank, size);
    *first = *end = 0;
    *old_first = *old_end = options->cases;
    if (b == b_end) return;
    part_of(&from, &ignored, options, b, 0);
    part_of(&ignored, &to, options, b_end - 1, batch_of(options) - 1);
    from /= options->samples; /* cases and places now */
    to = (to - 1) / options->samples + 1;
    *first = from < options->cases ? from : options->cases;
    *end = to < options->cases ? to : options->cases;
    if (to > options->cases) {
        old_range(old_first, &ignored, options, from > options->cases ? from - options->cases : 0);
        old_range(&ignored, old_end, options, to - options->cases - 1);
    }
}

/* ---- state ----------------------------------------------------------------------------------- */

/* Numbers that a step depends on, beside weights and moments; saved as they are. */
typedef struct counters {
    int64_t step;
    int64_t epoch;
    int64_t in_epoch; /* steps of the epoch that are done */
    int64_t setbacks;
    double loss_sum; /* over these steps */
    double slower;   /* factor on the rate, after setbacks */
} counters;

/* A loss's own parameters are few, shared by all voxels, and have as far to go as a voxel's logit:
 * at the network's rate, a training of some hundred steps would leave them where they began. */
#define LOSS_RATE 30.0

enum { COUNTERS = 6, BLOCKS = 8 };

/* All floats of the state, in blocks: the network's, its moments, the loss's, its moments; the
 * averages of the network's and of the loss's, if wanted. */
typedef struct blocks {
    float *at[BLOCKS];
} blocks;

static const char *const BLOCK_NAMES[BLOCKS] = {"network", "network.first", "network.second",
                                                "loss",    "loss.first",    "loss.second",
                                                "average", "loss.average"};

struct rcn_train {
    rcn_context *ctx;
    rcn_net *net;
    rcn_train_options options;
    rcn_train_case_fn get_case;
    rcn_train_soon_fn soon;
    void *payload;
    rcn_loss *loss;
    int loss_count;             /* parameters of the loss */
    int64_t batch, first, mine; /* of all processes' samples in a step, this one makes
                                   first ... first + mine - 1 */
    int64_t voxels;

    counters now, good;
    blocks current; /* at[0] is the network's own */
    blocks kept;    /* the last good state */
    float *loss_gradient;
    rcn_optim_range *ranges;
    int range_count;

    int64_t *order; /* number of each sample of the epoch: case_of() tells its case */
    int64_t order_epoch;
    int64_t *coming;      /* cases of the next step's samples */
    rcn_rng *rngs;        /* of the batch's samples */
    rcn__sample *samples; /* taken, but not drawn yet */
    float *images;        /* (mine, channels, Z, Y, X) */
    float *logits;        /* (mine, outputs, Z, Y, X); then their gradients */
    uint32_t *codes;
    float *maps; /* NULL unless the strategy has maps */
    rcn_loss_target *targets;
    rcn_loss_label *labels; /* of all samples of the batch, one table after another */
    uint8_t *counts;        /* the same of several structures; NULL otherwise */
    float *shares;
    int64_t label_room;

    /* With a frozen encoder: */
    float *features; /* (mine, feature_floats) */
    float **known;   /* of sample s, varied in way v: [s * VARIANTS + v], NULL until computed */
    int64_t feature_floats, known_count;
    size_t known_bytes;
};

/* A frozen encoder sees each sample varied in so many ways, in turns, and keeps what it made of
 * them as far as the memory goes. */
enum { VARIANTS = 8 };

static int64_t all_cases(const rcn_train *train) {
    return train->options.cases + train->options.old_cases;
}

static int64_t case_of(const rcn_train *train, int64_t sample) { return sample % all_cases(train); }

static int64_t block_floats(const rcn_train *train, int block) {
    if (block >= 6 && train->options.average == 0) return 0;
    if (block == 0 || block == 6) return rcn_net_floats(train->net);
    return block < 3 ? rcn_net_trained_floats(train->net) : train->loss_count;
}

/* Streams of random numbers that have nothing to do with each other. */
enum purpose { FOR_ORDER = 1, FOR_SAMPLES = 2, FOR_RATERS = 3, FOR_DROPOUT = 4 };

static uint64_t seed_for(const rcn_train *train, enum purpose purpose) {
    return rcn__rng_make(train->options.seed, (uint64_t)purpose).state;
}

static rcn_status freeze_encoder(rcn_train *train) {
    rcn_status status = RCN_OK;
    const int count = rcn_net_parameter_count(train->net);
    RCN_ALLOC(train->ranges, train->ctx, count, "what is frozen");
    for (int p = 0; p < count; ++p) {
        const rcn_parameter *parameter = rcn_net_parameter(train->net, p);
        if (parameter->kind != RCN_TRAINED || strncmp(parameter->name, "encoder.", 8)) continue;
        const rcn_optim_range range = {parameter->offset, parameter->offset + parameter->count, 0,
                                       0};
        train->ranges[train->range_count++] = range;
    }
    if (!train->range_count)
        RCN_TRY(rcn__fail(train->ctx, RCN_EINVALID, "The network has no encoder to freeze."));
    train->feature_floats = rcn__net_feature_floats(train->net, train->options.sample.size);
    train->known_count = all_cases(train) * train->options.samples * VARIANTS;
    RCN_ALLOC(train->features, train->ctx, train->mine * train->feature_floats,
              "a batch of features");
    RCN_ALLOC_ZERO(train->known, train->ctx, train->known_count, "the table of features");
done:
    return status;
}

static void forget_features(rcn_train *train) {
    for (int64_t i = 0; train->known && i < train->known_count; ++i) {
        rcn__free(train->ctx, train->known[i]);
        train->known[i] = NULL;
    }
    train->known_bytes = 0;
}

static void keep_state(rcn_train *train) {
    train->current.at[0] = (float *)rcn_net_values(train->net);
    for (int b = 0; b < BLOCKS; ++b)
        memcpy(train->kept.at[b], train->current.at[b],
               sizeof(float) * (size_t)block_floats(train, b));
    train->good = train->now;
}

static void restore_state(rcn_train *train) {
    train->current.at[0] = rcn_net_edit_values(train->net);
    for (int b = 0; b < BLOCKS; ++b)
        memcpy(train->current.at[b], train->kept.at[b],
               sizeof(float) * (size_t)block_floats(train, b));
    train->now = train->good;
}

rcn_status rcn_train_create(rcn_train **out, rcn_context *ctx, rcn_net *net,
                            const rcn_train_options *options, rcn_train_case_fn get_case,
                            void *payload) {
    rcn_status status;
    rcn_train *train = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !net || !get_case)
        return rcn__fail(ctx, RCN_EINVALID, "No network or no cases were given.");
    const char *sentence = rcn_train_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_ALLOC_ZERO(train, ctx, 1, "training");
    train->ctx = ctx;
    train->net = net;
    train->options = *options;
    train->options.loss.kind = options->strategy.loss;
    train->get_case = get_case;
    train->payload = payload;
    train->now.slower = 1;
    train->order_epoch = -1;
    RCN_TRY(rcn_loss_create(&train->loss, ctx, &train->options.loss));
    train->loss_count = rcn_loss_parameters(train->loss);
    const rcn_net_options *shape = rcn_net_get_options(net);
    if (shape->outputs != rcn_loss_channels(train->loss))
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID,
                          "The network gives %d numbers per voxel, but the strategy needs %d.",
                          shape->outputs, rcn_loss_channels(train->loss)));
    const int64_t *size = options->sample.size;
    int64_t end;
    train->batch = batch_of(options);
    rcn_comm_share(&train->first, &end, train->batch, rcn__comm_rank(options->comm),
                   rcn__comm_size(options->comm));
    train->mine = end - train->first;
    if (train->batch < rcn__comm_size(options->comm))
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID,
                          "A step has %lld samples, too few for %d processes; start fewer, or take "
                          "more samples of each case.",
                          (long long)train->batch, rcn__comm_size(options->comm)));
    train->voxels = size[0] * size[1] * size[2];
    const int64_t floats = train->mine * train->voxels;
    for (int b = 0; b < BLOCKS; ++b) {
        if (b > 0) RCN_ALLOC_ZERO(train->current.at[b], ctx, block_floats(train, b), "the moments");
        RCN_ALLOC_ZERO(train->kept.at[b], ctx, block_floats(train, b), "the last good state");
    }
    RCN_ALLOC_ZERO(train->loss_gradient, ctx, train->loss_count, "the gradients");
    RCN_ALLOC(train->order, ctx, epoch_samples(options), "the order of samples");
    RCN_ALLOC_ZERO(train->samples, ctx, train->mine, "a batch of samples");
    RCN_ALLOC(train->coming, ctx, train->mine, "the order of samples");
    RCN_ALLOC(train->rngs, ctx, train->mine, "a batch of samples");
    RCN_ALLOC(train->images, ctx, floats * shape->channels, "a batch of images");
    RCN_ALLOC(train->logits, ctx, floats * shape->outputs, "a batch of outputs");
    RCN_ALLOC(train->codes, ctx, floats, "a batch of votes");
    if (options->strategy.fused &&
        (options->strategy.method == RCN_SOFT_GAUSSIAN || options->strategy.method == RCN_SVLS))
        RCN_ALLOC(train->maps, ctx, floats, "a batch of targets");
    RCN_ALLOC_ZERO(train->targets, ctx, train->mine, "a batch of targets");
    if (options->freeze_encoder) RCN_TRY(freeze_encoder(train));
    rcn__net_share(net, options->comm, train->first, options->local_norms);
    rcn_loss_init_parameters(train->current.at[3], train->loss);
    keep_state(train);
    *out = train;
    train = NULL;
done:
    rcn_train_destroy(train);
    return status;
}

void rcn_train_destroy(rcn_train *train) {
    if (!train) return;
    rcn_context *ctx = train->ctx;
    rcn__net_share(train->net, NULL, 0, 0);
    rcn_loss_destroy(train->loss);
    for (int b = 0; b < BLOCKS; ++b) {
        if (b > 0) rcn__free(ctx, train->current.at[b]);
        rcn__free(ctx, train->kept.at[b]);
    }
    rcn__free(ctx, train->loss_gradient);
    rcn__free(ctx, train->ranges);
    rcn__free(ctx, train->order);
    rcn__free(ctx, train->samples);
    rcn__free(ctx, train->coming);
    rcn__free(ctx, train->rngs);
    rcn__free(ctx, train->images);
    rcn__free(ctx, train->logits);
    rcn__free(ctx, train->codes);
    rcn__free(ctx, train->maps);
    rcn__free(ctx, train->targets);
    rcn__free(ctx, train->labels);
    rcn__free(ctx, train->counts);
    rcn__free(ctx, train->shares);
    forget_features(train);
    rcn__free(ctx, train->features);
    rcn__free(ctx, train->known);
    rcn__free(ctx, train);
}

void rcn_train_set_soon(rcn_train *train, rcn_train_soon_fn soon) { train->soon = soon; }

const rcn_loss *rcn_train_loss(const rcn_train *train) { return train->loss; }

const float *rcn_train_loss_values(const rcn_train *train) {
    return train->loss_count ? train->current.at[3] : NULL;
}

const float *rcn_train_average(const rcn_train *train) {
    return train->options.average > 0 ? train->current.at[6] : NULL;
}

const float *rcn_train_average_loss_values(const rcn_train *train) {
    return train->options.average > 0 && train->loss_count ? train->current.at[7] : NULL;
}

rcn_status rcn_train_set_loss_values(rcn_train *train, const float *values, int count) {
    if (!train) return RCN_EINVALID;
    rcn__clear(train->ctx);
    if (count != train->loss_count || (count && !values))
        return rcn__fail(train->ctx, RCN_EINVALID, "The loss has %d parameters, not %d.",
                         train->loss_count, count);
    if (count) memcpy(train->current.at[3], values, sizeof *values * (size_t)count);
    keep_state(train);
    return RCN_OK;
}

void rcn_train_where(int64_t *step, int64_t *epoch, const rcn_train *train) {
    *step = train->now.step;
    *epoch = train->now.epoch;
}

rcn_status rcn_train_start(rcn_train *train, const double *shares) {
    /* No level is impossible. */
    const double least = 1e-4;
    double p[RCN_MAX_RATERS + 1], sum = 0;
    if (!train) return RCN_EINVALID;
    rcn__clear(train->ctx);
    const int of_labels = is_of_labels(train->options.strategy.loss);
    const int last = of_labels ? train->options.loss.structures : train->options.loss.raters;
    for (int k = 0; shares && k <= last; ++k) {
        p[k] = shares[k] > least ? shares[k] : least;
        sum += isfinite(shares[k]) ? p[k] : NAN;
    }
    if (!shares || !isfinite(sum))
        return rcn__fail(train->ctx, RCN_EINVALID, "Shares of the levels must be numbers.");
    for (int k = 0; k <= last; ++k) p[k] /= sum;
    const rcn_parameter *weight = rcn_net_find_parameter(train->net, "head.weight");
    const rcn_parameter *bias = rcn_net_find_parameter(train->net, "head.bias");
    if (!weight) weight = rcn_net_find_parameter(train->net, "segmentation_head.0.weight");
    if (!bias) bias = rcn_net_find_parameter(train->net, "segmentation_head.0.bias");
    if (!weight || !bias)
        return rcn__fail(train->ctx, RCN_EINTERNAL, "The network has no last layer.");
    float *values = rcn_net_edit_values(train->net);
    for (int64_t i = 0; i < weight->count; ++i) values[weight->offset + i] *= 0.1f;
    if (of_labels)
        rcn__loss_label_biases(values + bias->offset, train->loss, p);
    else
        rcn__loss_biases(values + bias->offset, train->current.at[3], train->loss, p);
    keep_state(train);
    return RCN_OK;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void shuffle(int64_t *items, int64_t count, rcn_rng *rng) {
    for (int64_t i = count - 1; i > 0; --i) {
        const int64_t j = (int64_t)rcn__rng_below(rng, (uint64_t)i + 1), held = items[i];
        items[i] = items[j];
        items[j] = held;
    }
}

/* The epoch's samples: of each part (see part_of()) one in every step. */
static rcn_status order_epoch(rcn_train *train) {
    rcn_status status = RCN_OK;
    const rcn_train_options *options = &train->options;
    const int64_t all = epoch_samples(options), steps = rcn_train_epoch_steps(options);
    int64_t *row = NULL;
    if (train->order_epoch == train->now.epoch) return RCN_OK;
    rcn_rng rng = rcn__rng_make(seed_for(train, FOR_ORDER), (uint64_t)train->now.epoch);
    RCN_ALLOC(row, train->ctx, all, "the order of samples");
    for (int64_t place = 0; place < all / options->samples; ++place) {
        int64_t number = place;
        if (place >= options->cases) { /* an old case, drawn anew */
            int64_t first, end;
            old_range(&first, &end, options, place - options->cases);
            number = first + (int64_t)rcn__rng_below(&rng, (uint64_t)(end - first));
        }
        for (int64_t k = 0; k < options->samples; ++k)
            row[place * options->samples + k] = k * all_cases(train) + number;
    }
    const int64_t turn = (int64_t)rcn__rng_below(&rng, (uint64_t)train->batch);
    for (int64_t b = 0; b < train->batch; ++b) {
        int64_t first, end;
        part_of(&first, &end, options, b, turn);
        shuffle(row + first, end - first, &rng);
        for (int64_t s = 0; s < steps; ++s) train->order[s * train->batch + b] = row[first + s];
    }
    train->order_epoch = train->now.epoch;
done:
    rcn__free(train->ctx, row);
    return status;
}

/* One rater's answers as labels. */
static void label_by_rater(rcn_loss_label *labels, const rcn_votes *votes, rcn_rng *rng) {
    int rater = 0;
    uint64_t skip = rcn__rng_below(rng, (uint64_t)rcn_popcount(votes->present));
    while (!(votes->present >> rater & 1) || skip-- > 0) ++rater;
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        labels[p].value = (float)(votes->patterns[p].marked >> rater & 1);
        labels[p].weight = (float)(votes->patterns[p].answered >> rater & 1);
    }
}

/* Room for `more` labels after those used, and for their counts and shares where the strategy is
 * for several structures. */
static rcn_status reserve_labels(rcn_train *train, int64_t used, int64_t more) {
    rcn_status status = RCN_OK;
    rcn_loss_label *labels = NULL;
    uint8_t *counts = NULL;
    float *shares = NULL;
    const int wide = train->options.loss.structures + 1;
    const int of_labels = is_of_labels(train->options.strategy.loss);
    if (used + more <= train->label_room) return RCN_OK;
    const int64_t room = 2 * (used + more);
    RCN_ALLOC(labels, train->ctx, room, "the labels of a batch");
    if (of_labels) RCN_ALLOC(counts, train->ctx, room * wide, "the labels of a batch");
    if (of_labels) RCN_ALLOC(shares, train->ctx, room * wide, "the labels of a batch");
    if (used) memcpy(labels, train->labels, sizeof *labels * (size_t)used);
    if (used && of_labels) {
        memcpy(counts, train->counts, sizeof *counts * (size_t)(used * wide));
        memcpy(shares, train->shares, sizeof *shares * (size_t)(used * wide));
    }
    rcn__free(train->ctx, train->labels);
    rcn__free(train->ctx, train->counts);
    rcn__free(train->ctx, train->shares);
    train->labels = labels;
    train->counts = counts;
    train->shares = shares;
    labels = NULL;
    counts = NULL;
    shares = NULL;
    train->label_room = room;
done:
    rcn__free(train->ctx, labels);
    rcn__free(train->ctx, counts);
    rcn__free(train->ctx, shares);
    return status;
}

/* A case's tables after those of the samples before it, which may not outlive the next case. */
static rcn_status take_labels(rcn_train *train, int64_t used, const rcn_target *from) {
    rcn_status status;
    const size_t wide = (size_t)train->options.loss.structures + 1, count = (size_t)from->count;
    RCN_TRY(reserve_labels(train, used, from->count));
    memcpy(train->labels + used, from->labels, sizeof *train->labels * count);
    if (from->counts) memcpy(train->counts + (size_t)used * wide, from->counts, count * wide);
    if (from->shares)
        memcpy(train->shares + (size_t)used * wide, from->shares,
               sizeof *train->shares * count * wide);
done:
    return status;
}

/* Whether a case is one that the network and the strategy can learn from. */
static rcn_status check_drawn(const rcn_train *train, const rcn_train_case *one, int64_t number) {
    const int of_labels = is_of_labels(train->options.strategy.loss);
    if (one->data.channel_count != rcn_net_get_options(train->net)->channels || !one->data.votes ||
        !one->target || rcn_votes_raters(one->data.votes) != train->options.loss.raters)
        return rcn__fail(train->ctx, RCN_EINVALID,
                         "Case %lld and the network differ in channels or raters.",
                         (long long)number + 1);
    if ((of_labels &&
         (!one->target->counts || one->target->structures != train->options.loss.structures)) ||
        (train->options.strategy.loss == RCN_LOSS_CATEGORICAL && !one->target->shares))
        return rcn__fail(train->ctx, RCN_EINVALID,
                         "Case %lld and the network differ in structures.", (long long)number + 1);
    return RCN_OK;
}

static rcn_status draw_batch(rcn_train *train) {
    rcn_status status;
    const int channels = rcn_net_get_options(train->net)->channels;
    int64_t used = 0, drawn = 0, voxels = 0;
    RCN_TRY(order_epoch(train));
    for (int64_t b = 0; b < train->mine; ++b) {
        const int64_t place = train->now.in_epoch * train->batch + train->first + b;
        const int64_t sample = train->order[place], number = case_of(train, sample);
        const uint64_t stream = ((uint64_t)train->now.epoch << 40) + (uint64_t)place;
        const uint64_t variant = ((uint64_t)(train->now.epoch % VARIANTS) << 40) + (uint64_t)sample;
        rcn_train_case one = {{NULL, 0, NULL, NULL, NULL, NULL}, NULL};
        float *map = train->maps ? train->maps + b * train->voxels : NULL;
        RCN_TRY(train->get_case(&one, number, train->payload));
        RCN_TRY(check_drawn(train, &one, number));
        train->rngs[b] =
            rcn__rng_make(seed_for(train, FOR_SAMPLES), train->features ? variant : stream);
        RCN_TRY(rcn__sample_take(&train->samples[b], train->images + b * channels * train->voxels,
                                 train->codes + b * train->voxels, map, train->ctx, &one.data,
                                 &train->options.sample, &train->rngs[b]));
        voxels += train->samples[b].voxels;
        if (voxels >= RCN_SAMPLE_VOXELS || b == train->mine - 1) {
            RCN_TRY(rcn__samples_draw(train->samples + drawn, b + 1 - drawn, train->ctx,
                                      &train->options.sample));
            for (; drawn <= b; ++drawn) rcn__sample_free(&train->samples[drawn], train->ctx);
            voxels = 0;
        }
        RCN_TRY(take_labels(train, used, one.target));
        if (train->options.strategy.fused && train->options.strategy.method == RCN_RANDOM) {
            rcn_rng rng = rcn__rng_make(seed_for(train, FOR_RATERS), stream);
            label_by_rater(train->labels + used, one.data.votes, &rng);
        }
        const rcn_loss_target target = {
            train->codes + b * train->voxels, 4, NULL, one.target->count, map, 1.0, NULL, NULL};
        train->targets[b] = target;
        used += one.target->count;
    }
    RCN_TRY(rcn__samples_vary(train->images, train->ctx, train->mine, channels,
                              &train->options.sample, train->rngs));
    /* Only now does the table stay where it is. */
    used = 0;
    for (int64_t b = 0; b < train->mine; ++b) {
        train->targets[b].labels = train->labels + used;
        if (train->counts) {
            const int wide = train->options.loss.structures + 1;
            train->targets[b].counts = train->counts + used * wide;
            train->targets[b].shares = train->shares + used * wide;
        }
        used += train->targets[b].label_count;
        if (train->maps) train->targets[b].codes = NULL;
    }
done:
    for (; drawn < train->mine; ++drawn) rcn__sample_free(&train->samples[drawn], train->ctx);
    return status;
}

/* The batch is drawn. The next epoch has no order yet when one ends. */
static void tell_soon(rcn_train *train) {
    const int64_t next = train->now.in_epoch + 1;
    if (!train->soon || next >= rcn_train_epoch_steps(&train->options)) return;
    for (int64_t b = 0; b < train->mine; ++b)
        train->coming[b] = case_of(train, train->order[next * train->batch + train->first + b]);
    train->soon(train->coming, train->mine, train->payload);
}

/* What the frozen encoder makes of the batch. */
static rcn_status encode_batch(rcn_train *train) {
    rcn_status status = RCN_OK;
    const int64_t *size = train->options.sample.size;
    const rcn_batch one = {1, {size[0], size[1], size[2]}};
    const size_t bytes = (size_t)train->feature_floats * sizeof(float);
    const int channels = rcn_net_get_options(train->net)->channels;
    for (int64_t b = 0; b < train->mine; ++b) {
        const int64_t sample = train->order[train->now.in_epoch * train->batch + train->first + b];
        float **known = &train->known[sample * VARIANTS + train->now.epoch % VARIANTS];
        float *features = train->features + b * train->feature_floats;
        if (*known) {
            memcpy(features, *known, bytes);
            continue;
        }
        RCN_TRY(rcn__net_encode(features, train->net, train->images + b * channels * train->voxels,
                                &one));
        if ((int64_t)(train->known_bytes + bytes) > train->options.feature_bytes) continue;
        RCN_ALLOC(*known, train->ctx, train->feature_floats, "the features of a sample");
        memcpy(*known, features, bytes);
        train->known_bytes += bytes;
    }
done:
    return status;
}

/* Norms of each process's own: the running statistics become the mean of all. */
static rcn_status average_statistics(rcn_train *train) {
    rcn_status status = RCN_OK;
    const int size = rcn__comm_size(train->options.comm);
    if (size == 1) return RCN_OK;
    const int64_t first = rcn_net_trained_floats(train->net);
    float *values = rcn_net_edit_values(train->net);
    const int64_t count = rcn_net_floats(train->net) - first;
    RCN_TRY(rcn_comm_sum(train->options.comm, train->ctx, values + first, count, RCN_COMM_FLOAT));
    for (int64_t i = 0; i < count; ++i) values[first + i] /= (float)size;
done:
    return status;
}

typedef struct average_job {
    float *average;
    const float *values;
    int64_t count;
    float share; /* of the values in their average */
} average_job;

static void average_chunk(int64_t chunk, int thread, void *payload) {
    (void)thread;
    const average_job *job = payload;
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->count, RCN_CHUNK);
    for (int64_t i = first; i < end; ++i)
        job->average[i] += job->share * (job->values[i] - job->average[i]);
}

/* Takes the step that was just done into the averages; the first ones are replaced by it. */
static void average_weights(rcn_train *train) {
    const double window = train->options.average * (double)train->now.step;
    const float *values[2] = {rcn_net_values(train->net), train->current.at[3]};
    for (int b = 0; b < 2; ++b) {
        average_job job = {train->current.at[6 + b], values[b], block_floats(train, 6 + b),
                           (float)(window > 1 ? 1 / window : 1)};
        rcn__for_all(train->ctx, rcn__chunk_count(job.count, RCN_CHUNK), average_chunk, &job);
    }
}

/* RCN_EDATA: the loss or a gradient is no number. All processes find the same. */
static rcn_status move_weights(rcn_train_report *report, rcn_train *train) {
    rcn_status status;
    rcn_loss_result loss;
    const int64_t *size = train->options.sample.size;
    const rcn_batch batch = {train->mine, {size[0], size[1], size[2]}};
    const uint64_t dropout =
        rcn__rng_make(seed_for(train, FOR_DROPOUT), (uint64_t)train->now.step).state;
    if (train->features) {
        RCN_TRY(encode_batch(train));
        RCN_TRY(
            rcn__net_forward_features(train->logits, train->net, train->features, &batch, dropout));
    } else {
        RCN_TRY(rcn_net_forward(train->logits, train->net, train->images, &batch, dropout));
    }
    RCN_TRY(rcn__loss_run_shared(
        &loss, train->logits, train->loss_count ? train->loss_gradient : NULL, train->loss,
        train->ctx, train->options.comm, train->logits, rcn_train_loss_values(train),
        train->targets, train->mine, train->voxels));
    report->loss = loss.loss;
    if (!isfinite(loss.loss))
        RCN_TRY(rcn__fail(train->ctx, RCN_EDATA, "The loss is not a number."));
    RCN_TRY(rcn_net_backward(train->net, train->logits));
    if (train->options.local_norms) RCN_TRY(average_statistics(train));
    rcn_optim_state state = {rcn_net_edit_values(train->net),
                             rcn_net_gradients(train->net),
                             train->current.at[1],
                             train->current.at[2],
                             rcn_net_trained_floats(train->net),
                             train->now.step};
    rcn_optim_state own = {train->current.at[3], train->loss_gradient, train->current.at[4],
                           train->current.at[5], train->loss_count,    train->now.step};
    RCN_TRY(rcn_optim_step(&report->norm, &state, train->ctx, report->rate, &train->options.optim,
                           train->ranges, train->range_count));
    if (train->loss_count)
        RCN_TRY(rcn_optim_step(NULL, &own, train->ctx, LOSS_RATE * report->rate,
                               &train->options.optim, NULL, 0));
    ++train->now.step;
    average_weights(train);
    ++train->now.in_epoch;
    train->now.loss_sum += loss.loss;
done:
    return status;
}

uint64_t rcn__train_hash(const rcn_train *train) {
    uint64_t hash = RCN_HASH_START;
    for (int b = 0; b < BLOCKS; ++b)
        hash = rcn_hash_floats(hash, b ? train->current.at[b] : rcn_net_values(train->net),
                               block_floats(train, b));
    return hash;
}

/* Processes that went apart would train different models from here on. */
static rcn_status compare_processes(rcn_train *train) {
    rcn_status status = RCN_OK;
    int differs = -1;
    if (rcn__comm_size(train->options.comm) == 1) return RCN_OK;
    const uint64_t hash = rcn__train_hash(train);
    RCN_TRY(rcn__comm_compare(&differs, train->options.comm, train->ctx, &hash, sizeof hash));
    if (differs >= 0)
        RCN_TRY(rcn__fail(train->ctx, RCN_EINTERNAL,
                          "After epoch %lld process %d has other weights than process 0; start all "
                          "processes from the same program on machines of the same kind.",
                          (long long)train->now.epoch, differs));
done:
    return status;
}

static int is_finite_state(const rcn_train *train) {
    for (int b = 0; b < BLOCKS; ++b) {
        const float *values = b ? train->current.at[b] : rcn_net_values(train->net);
        if (!rcn__all_finite(values, block_floats(train, b))) return 0;
    }
    return 1;
}

static rcn_status go_back(rcn_train_report *report, rcn_train *train) {
    const int64_t setbacks = train->now.setbacks + 1;
    const double slower = 0.5 * train->now.slower;
    restore_state(train);
    train->now.setbacks = train->good.setbacks = setbacks;
    train->now.slower = train->good.slower = slower;
    report->setback = 1;
    if (setbacks > RCN_TRAIN_SETBACKS)
        return rcn__fail(train->ctx, RCN_EDATA,
                         "Training diverged %d times, the last time at a learning rate of %.3g; "
                         "start again with a lower rate.",
                         (int)setbacks, report->rate);
    return RCN_OK;
}

rcn_status rcn_train_step(rcn_train_report *out, rcn_train *train, double at) {
    rcn_status status;
    rcn_train_report report;
    memset(&report, 0, sizeof report);
    if (!train) return RCN_EINVALID;
    rcn__clear(train->ctx);
    if (!out || !(at >= 0 && at <= 1))
        return rcn__fail(train->ctx, RCN_EINVALID,
                         "The output report is NULL, or the time is not 0 to 1.");
    const rcn_schedule *schedule = &train->options.schedule;
    int64_t moment = (int64_t)(at * (double)schedule->steps);
    if (moment < train->now.step) moment = train->now.step;
    report.rate = train->now.slower * rcn_schedule_rate(schedule, moment);
    const double start = rcn__seconds();
    const double waited = train->options.comm ? train->options.comm->seconds : 0;
    RCN_TRY(draw_batch(train));
    tell_soon(train);
    const double drawn = rcn__seconds();
    status = move_weights(&report, train);
    if (status == RCN_OK && train->now.in_epoch == rcn_train_epoch_steps(&train->options)) {
        report.epoch_done = 1;
        report.epoch_loss = train->now.loss_sum / (double)train->now.in_epoch;
        ++train->now.epoch;
        train->now.in_epoch = 0;
        train->now.loss_sum = 0;
        RCN_TRY(compare_processes(train));
        if (is_finite_state(train))
            keep_state(train);
        else
            status = RCN_EDATA;
    }
    if (status == RCN_EDATA) {
        report.epoch_done = 0;
        status = go_back(&report, train);
    }
    RCN_TRY(status);
    if (train->now.in_epoch) report.epoch_loss = train->now.loss_sum / (double)train->now.in_epoch;
    report.step = train->now.step;
    report.epoch = train->now.epoch;
    report.setbacks = (int)train->now.setbacks;
    report.draw_seconds = drawn - start;
    report.net_seconds = rcn__seconds() - drawn;
    report.comm_seconds = train->options.comm ? train->options.comm->seconds - waited : 0;
    *out = report;
done:
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Doubles travel as their bits, so that they come back the same. */
static void pack_counters(int64_t to[COUNTERS], const counters *from) {
    to[0] = from->step;
    to[1] = from->epoch;
    to[2] = from->in_epoch;
    to[3] = from->setbacks;
    memcpy(&to[4], &from->loss_sum, sizeof(double));
    memcpy(&to[5], &from->slower, sizeof(double));
}

static int unpack_counters(counters *to, const int64_t from[COUNTERS], int64_t epoch_steps) {
    to->step = from[0];
    to->epoch = from[1];
    to->in_epoch = from[2];
    to->setbacks = from[3];
    memcpy(&to->loss_sum, &from[4], sizeof(double));
    memcpy(&to->slower, &from[5], sizeof(double));
    return to->step >= 0 && to->step < INT64_C(1) << 53 && to->epoch >= 0 && to->epoch < 1 << 24 &&
           to->in_epoch >= 0 && to->in_epoch < epoch_steps && to->setbacks >= 0 &&
           to->setbacks <= RCN_TRAIN_SETBACKS && isfinite(to->loss_sum) && to->slower > 0 &&
           to->slower <= 1;
}

enum { TENSORS = BLOCKS + 1 };

/* The state as tensors; blocks without elements are left out. Returns how many there are. */
static int list_tensors(rcn__file_tensor tensors[TENSORS], const rcn_train *train,
                        float *const blocks_at[BLOCKS], int64_t numbers[COUNTERS]) {
    int count = 0;
    memset(tensors, 0, sizeof *tensors * TENSORS);
    for (int b = 0; b < BLOCKS; ++b) {
        if (!block_floats(train, b)) continue;
        tensors[count].name = BLOCK_NAMES[b];
        tensors[count].type = RCN_FLOAT32;
        tensors[count].rank = 1;
        tensors[count].shape[0] = block_floats(train, b);
        tensors[count++].data = blocks_at[b];
    }
    tensors[count].name = "counters";
    tensors[count].type = RCN_INT64;
    tensors[count].rank = 1;
    tensors[count].shape[0] = COUNTERS;
    tensors[count++].data = numbers;
    return count;
}

rcn_status rcn_train_save(const rcn_train *train, const char *path, const rcn_model_entry *entries,
                          int count) {
    rcn_status status;
    rcn__metadata *metadata = NULL;
    rcn__file_tensor tensors[TENSORS];
    int64_t numbers[COUNTERS];
    if (!train) return RCN_EINVALID;
    rcn__clear(train->ctx);
    if (!path || count < 0 || (count && !entries))
        return rcn__fail(train->ctx, RCN_EINVALID, "No file name or no entries were given.");
    blocks from = train->current;
    from.at[0] = (float *)rcn_net_values(train->net); /* only read */
    pack_counters(numbers, &train->now);
    const int tensor_count = list_tensors(tensors, train, from.at, numbers);
    RCN_ALLOC(metadata, train->ctx, count, "the metadata");
    for (int i = 0; i < count; ++i) {
        metadata[i].key = entries[i].key;
        metadata[i].value = entries[i].value;
    }
    RCN_TRY(rcn__safetensors_write(train->ctx, path, tensors, tensor_count, metadata, count));
done:
    rcn__free(train->ctx, metadata);
    return status;
}

rcn_status rcn_train_load(rcn_train *train, const char *path) {
    rcn_status status;
    rcn__safetensors *file = NULL;
    rcn__file_tensor tensors[TENSORS];
    int64_t numbers[COUNTERS] = {0};
    counters found;
    blocks read = {{NULL}};
    const rcn__load_options strict = RCN_LOAD_OPTIONS_INIT;
    if (!train) return RCN_EINVALID;
    rcn__clear(train->ctx);
    if (!path) return rcn__fail(train->ctx, RCN_EINVALID, "No file name was given.");
    for (int b = 0; b < BLOCKS; ++b)
        RCN_ALLOC(read.at[b], train->ctx, block_floats(train, b), "the state of a training");
    RCN_TRY(rcn__safetensors_open(&file, train->ctx, path));
    const int count = list_tensors(tensors, train, read.at, numbers);
    RCN_TRY(rcn__safetensors_load(NULL, file, train->ctx, tensors, count, &strict));
    if (!unpack_counters(&found, numbers, rcn_train_epoch_steps(&train->options)))
        RCN_TRY(
            rcn__fail(train->ctx, RCN_EFORMAT, "%s is damaged: its counters are not valid.", path));
    for (int b = 0; b < BLOCKS; ++b)
        memcpy(b ? train->current.at[b] : rcn_net_edit_values(train->net), read.at[b],
               sizeof(float) * (size_t)block_floats(train, b));
    train->now = found;
    forget_features(train);
    keep_state(train);
done:
    rcn__safetensors_close(file);
    for (int b = 0; b < BLOCKS; ++b) rcn__free(train->ctx, read.at[b]);
    return status;
}
