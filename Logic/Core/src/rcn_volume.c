// SPDX-License-Identifier: Apache-2.0
/* Volumes from probabilities: what a rater's outline will probably measure, how good such a
 * prediction was, and which parts of a map make it up (rcn_volume.h).
 *
 * From the levels P(k of K raters mark a voxel) follow V_t, the volume that at least t raters mark,
 * by linearity of expectation; a rater's volume is predicted as one of V_1 ... V_K, each with
 * probability 1/K.
 */
#include "rcn/rcn_volume.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rcn_calib_private.h"
#include "rcn_components.h"

/* ---- the levels of a voxel ------------------------------------------------------------------- */

/* A prediction seen as levels 0 ... K, however it is stored: K + 1 components; K + 1 components of
 * which only the ends are used (a probability stored as levels); or one probability. The last two
 * have no levels between: raters are taken to mark independently, Binomial(K, p). */
typedef struct level_reader {
    const float *data;
    int components;
    int raters;
    int binomial;                       /* levels are Binomial(raters, p) */
    double weights[RCN_MAX_RATERS + 1]; /* of the expected readout */
    double choose[RCN_MAX_RATERS + 1];  /* raters over k */
} level_reader;

static rcn_status open_reader(level_reader *out, rcn_context *ctx, const rcn_image *prediction,
                              int raters) {
    const char *sentence = rcn_image_check(prediction);
    if (!sentence && (raters < 1 || raters > RCN_MAX_RATERS))
        sentence = "There must be 1 to 64 raters.";
    if (!sentence && prediction->type != RCN_FLOAT32) sentence = "A prediction must be float32.";
    if (!sentence && prediction->components != 1 && prediction->components != raters + 1)
        sentence = "A prediction must have one component, or one more than there are raters.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    out->data = prediction->data;
    out->components = prediction->components;
    out->raters = raters;
    out->binomial = 1;
    rcn__binomial_factors(out->choose, raters);
    rcn__readout_weights(out->weights, raters, RCN_READOUT_EXPECTED, 0);
    return prediction->components > 1 ? rcn_levels_are_ends(&out->binomial, ctx, prediction)
                                      : RCN_OK;
}

/* The expected share of raters; -1 where the voxel cannot be used. */
static float read_share(const level_reader *reader, int64_t voxel) {
    const float *values = reader->data + voxel * reader->components;
    if (reader->components > 1)
        return rcn__read_levels(values, reader->components, reader->weights);
    return *values >= 0.0f && *values <= 1.0f ? *values : -1.0f;
}

/* level[0 ... raters] of a voxel with this share. */
static void read_levels(double *level, const level_reader *reader, int64_t voxel, float share) {
    const int raters = reader->raters;
    if (!reader->binomial) {
        const float *values = reader->data + voxel * reader->components;
        for (int k = 0; k <= raters; ++k) level[k] = (double)values[k];
        return;
    }
    const double p = (double)share;
    /* p^k from below, (1 - p)^(K - k) from above: no pow(), and 0^0 is 1. */
    double power = 1;
    for (int k = 0; k <= raters; ++k) {
        level[k] = reader->choose[k] * power;
        power *= p;
    }
    power = 1;
    for (int k = raters; k >= 0; --k) {
        level[k] *= power;
        power *= 1 - p;
    }
}

/* ---- volumes --------------------------------------------------------------------------------- */

typedef struct volume_job {
    level_reader reader;
    int64_t voxels;
    double *sums; /* [chunks][raters + 1] of the levels */
    int64_t *bad; /* per thread: lowest voxel that cannot be used, or INT64_MAX */
    /* What is kept of each voxel; NULL: nothing. */
    float *share;
    uint8_t *likely;
} volume_job;

/* The most raters that mark a voxel with these levels more likely than not. */
static int likely_raters(const double *level, int raters) {
    double tail = 0;
    int t = raters;
    for (; t > 0; --t) {
        tail += level[t];
        if ((float)tail >= 0.5f) break; /* rounded as the readout is */
    }
    return t;
}

static void volume_chunk(int64_t chunk, int thread, void *payload) {
    volume_job *job = payload;
    const int levels = job->reader.raters + 1;
    double *sums = job->sums + chunk * levels, level[RCN_MAX_RATERS + 1];
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    for (int64_t i = first; i < end; ++i) {
        const float share = read_share(&job->reader, i);
        if (share < 0) {
            if (i < job->bad[thread]) job->bad[thread] = i;
            return;
        }
        read_levels(level, &job->reader, i, share);
        for (int k = 0; k < levels; ++k) sums[k] += level[k];
        if (!job->share) continue;
        job->share[i] = share;
        job->likely[i] = (uint8_t)likely_raters(level, job->reader.raters);
    }
}

/* From the sums of exactly t to those of at least t. */
static void fill_volume(rcn_volume *out, const double *levels, int raters, int binomial) {
    memset(out, 0, sizeof *out);
    out->raters = raters;
    out->binomial = binomial && raters > 1;
    for (int t = 1; t <= raters; ++t) out->at_least[t - 1] = levels[t];
    for (int t = raters - 1; t >= 1; --t) out->at_least[t - 1] += out->at_least[t];
    for (int t = 0; t < raters; ++t) out->expected += out->at_least[t] / raters;
}

/* levels[0 ... raters] += the sums of the levels that the reader sees; what else the job says is
 * done for each voxel. */
static rcn_status sum_levels(double *levels, rcn_context *ctx, volume_job *job,
                             const rcn_geometry *geometry) {
    rcn_status status;
    const int count = job->reader.raters + 1;
    job->voxels = rcn_geometry_voxels(geometry);
    const int64_t chunks = rcn__chunk_count(job->voxels, RCN_CHUNK);
    RCN_ALLOC_ZERO(job->sums, ctx, chunks * count, "volumes");
    RCN_ALLOC(job->bad, ctx, ctx->threads, "volumes");
    for (int t = 0; t < ctx->threads; ++t) job->bad[t] = INT64_MAX;
    RCN_TRY(rcn__for_chunks(ctx, "measuring volumes", chunks, volume_chunk, job));
    RCN_TRY(rcn__check_voxels(ctx, job->bad, geometry, job->reader.data, job->reader.components));
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int k = 0; k < count; ++k) levels[k] += job->sums[chunk * count + k];
done:
    rcn__free(ctx, job->sums);
    rcn__free(ctx, job->bad);
    return status;
}

rcn_status rcn_volume_predict(rcn_volume *out, rcn_context *ctx, const rcn_image *prediction,
                              int raters) {
    rcn_status status;
    volume_job job = {.sums = NULL, .bad = NULL};
    double levels[RCN_MAX_RATERS + 1] = {0};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output volumes is NULL.");
    RCN_TRY(open_reader(&job.reader, ctx, prediction, raters));
    RCN_TRY(sum_levels(levels, ctx, &job, &prediction->geometry));
    fill_volume(out, levels, raters, job.reader.binomial);
done:
    return status;
}

/* ---- levels that are not kept ---------------------------------------------------------------- */

rcn_status rcn_volume_add_slab(rcn_volume_sums *sums, float *share, uint8_t *likely,
                               rcn_context *ctx, const rcn_image *levels) {
    rcn_status status;
    volume_job job = {.share = share, .likely = likely};
    double added[RCN_MAX_RATERS + 1] = {0};
    int ends = 1;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(levels);
    if (!sentence && (!sums || !share || !likely)) sentence = "The output volumes is NULL.";
    if (!sentence && levels->components != sums->raters + 1)
        sentence = "Levels must have one component more than there are raters.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_TRY(open_reader(&job.reader, ctx, levels, sums->raters));
    ends = job.reader.binomial;
    /* Whether all levels of the image are ends is known after the last slab only; then the share
     * tells everything. */
    job.reader.binomial = 0;
    RCN_TRY(sum_levels(added, ctx, &job, &levels->geometry));
    for (int k = 0; k <= sums->raters; ++k) sums->levels[k] += added[k];
    sums->between |= !ends;
done:
    return status;
}

rcn_status rcn_volume_of_sums(rcn_volume *out, rcn_context *ctx, const rcn_volume_sums *sums,
                              const rcn_image *share) {
    if (!ctx) return RCN_EINVALID;
    if (!sums || !sums->between)
        return rcn_volume_predict(out, ctx, share, sums ? sums->raters : 0);
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output volumes is NULL.");
    fill_volume(out, sums->levels, sums->raters, 0);
    return RCN_OK;
}

/* A rater who left voxels out has no volume, only a lower bound of one. */
int rcn_volume_of_raters(double *out, const rcn_votes *votes) {
    const rcn_pattern *patterns = rcn_votes_patterns(votes);
    const int64_t count = rcn_votes_pattern_count(votes);
    const int raters = rcn_votes_raters(votes);
    uint64_t everywhere = rcn_votes_present(votes);
    int known = 0;
    for (int64_t i = 0; i < count; ++i)
        if (patterns[i].voxels > 0) everywhere &= patterns[i].answered;
    for (int r = 0; r < raters; ++r) {
        const int whole = everywhere >> r & 1;
        out[r] = whole ? (double)rcn_votes_marked(votes, r) : NAN;
        known += whole;
    }
    return known;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Of masses 1/K on v_1 ... v_K: mean |v - x| - 1/2 mean |v - v'| (Gneiting & Raftery 2007, eq. 21).
 * Over sorted values the second mean needs one pass: in the sum over pairs, v_t is added once for
 * each smaller value and taken away once for each larger one. V_1 is the largest. */
double rcn_volume_crps(const rcn_volume *volume, double x) {
    const int raters = volume->raters;
    double distance = 0, spread = 0;
    for (int t = 0; t < raters; ++t) {
        distance += fabs(volume->at_least[t] - x);
        spread += (raters - 1 - 2 * t) * volume->at_least[t]; /* they never rise */
    }
    return distance / raters - spread / raters / raters;
}

static double normal_cdf(double z) { return 0.5 * erfc(-z * 0.70710678118654752440); }

/* The integral of Phi^2 from minus infinity to z: z Phi^2 + 2 phi Phi - Phi(sqrt 2 z) / sqrt pi. */
static double squared_below(double z) {
    const double cdf = normal_cdf(z), density = 0.39894228040143267794 * exp(-0.5 * z * z);
    return z * cdf * cdf + 2 * density * cdf -
           0.56418958354775628695 * normal_cdf(1.41421356237309504880 * z);
}

/* As the CURVAS challenge scores: the raters' volumes are a normal distribution, and the prediction
 * is the one number that is scored by it. Their integral goes over three deviations to either side
 * of the mean, and so does this one. */
double rcn_volume_curvas_crps(double expected, const double *volumes, int count) {
    double sum = 0, squares = 0;
    int known = 0;
    for (int i = 0; i < count; ++i)
        if (!isnan(volumes[i])) {
            sum += volumes[i];
            ++known;
        }
    const double mean = sum / known;
    for (int i = 0; i < count; ++i)
        if (!isnan(volumes[i])) squares += (volumes[i] - mean) * (volumes[i] - mean);
    const double deviation = sqrt(squares / known);
    if (!(deviation > 0)) return NAN;
    /* Phi^2 below the expected volume, (1 - Phi)^2 above it, which is the same turned round. */
    const double z = fmin(fmax((expected - mean) / deviation, -3), 3);
    return deviation * (squared_below(z) + squared_below(-z) - 2 * squared_below(-3));
}

/* ---- intervals ------------------------------------------------------------------------------- */

/* How far a rater's volume may be expected to lie from the expected one, on its own side: the way
 * to the most generous, or to the strictest, rater that is predicted, and a share of the volume, so
 * that a prediction without any spread has a scale, too. */
static double scale_of(const rcn_volume *volume, int above) {
    const double e = volume->expected;
    return (above ? volume->at_least[0] - e : e - volume->at_least[volume->raters - 1]) +
           RCN_VOLUME_RELATIVE * (e + 1);
}

double rcn_volume_score(const rcn_volume *volume, double x) {
    return fabs(x - volume->expected) / scale_of(volume, x > volume->expected);
}

typedef struct weighted_score {
    double score, weight;
} weighted_score;

static int by_score(const void *a, const void *b) {
    const double x = ((const weighted_score *)a)->score, y = ((const weighted_score *)b)->score;
    return (x > y) - (x < y);
}

/* Split conformal prediction (Vovk et al. 2005): the interval that contains a new case with at
 * least the probability `level`, whatever the distribution, ends at this quantile of the scores of
 * known cases. Several raters of one case are not independent: together they weigh as much as one
 * case. */
rcn_status rcn_volume_quantile(double *out, rcn_context *ctx, const double *scores, const int *unit,
                               int64_t count, double level) {
    rcn_status status;
    int64_t *size = NULL, units = 0, known = 0;
    weighted_score *sorted = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || count < 0 || (count > 0 && (!scores || !unit)))
        return rcn__fail(ctx, RCN_EINVALID, "No scores were given.");
    if (!(level > 0 && level < 1))
        return rcn__fail(ctx, RCN_EINVALID, "The level of an interval must be between 0 and 1.");
    for (int64_t i = 0; i < count; ++i)
        if (unit[i] < 0 || unit[i] >= count)
            return rcn__fail(ctx, RCN_EINVALID, "Score %lld has no case.", (long long)i);
    RCN_ALLOC_ZERO(size, ctx, count, "scores of volumes");
    RCN_ALLOC(sorted, ctx, count, "scores of volumes");
    for (int64_t i = 0; i < count; ++i)
        if (!isnan(scores[i])) units += size[unit[i]]++ == 0;
    for (int64_t i = 0; i < count; ++i)
        if (!isnan(scores[i])) {
            sorted[known].score = scores[i];
            sorted[known++].weight = 1.0 / (double)size[unit[i]];
        }
    if (known > 0) qsort(sorted, (size_t)known, sizeof *sorted, by_score);
    /* Each unit weighs 1 of units + 1; rounding must not ask for one score more. */
    const double wanted = level * ((double)units + 1) * (1 - 1e-12);
    /* Too few cases for this level: infinite. */
    double weight = 0, quantile = INFINITY;
    for (int64_t i = 0; i < known && isinf(quantile); ++i) {
        weight += sorted[i].weight;
        if (weight >= wanted) quantile = sorted[i].score;
    }
    *out = quantile;
done:
    rcn__free(ctx, size);
    rcn__free(ctx, sorted);
    return status;
}

/* How many cases it takes until the quantile is finite: n / (n + 1) >= level. */
int rcn_volume_units(double level) { return (int)ceil(level / (1 - level) * (1 - 1e-12)); }

void rcn_volume_interval(double *low, double *high, const rcn_volume *volume, double quantile) {
    const int known = isfinite(quantile);
    *low = known ? fmax(0, volume->expected - quantile * scale_of(volume, 0)) : NAN;
    *high = known ? volume->expected + quantile * scale_of(volume, 1) : NAN;
}

/* ---- many cases ------------------------------------------------------------------------------ */

typedef struct running_mean {
    double sum;
    int64_t count;
} running_mean;

static void add_known(running_mean *mean, double value) {
    if (isnan(value)) return;
    mean->sum += value;
    ++mean->count;
}

static double mean_of(running_mean mean) {
    return mean.count ? mean.sum / (double)mean.count : NAN;
}

void rcn_volume_summarize(rcn_volume_figures *out, const rcn_volume_row *rows, int64_t count) {
    running_mean crps = {0, 0}, curvas = {0, 0}, inside[2] = {{0, 0}, {0, 0}}, bias = {0, 0};
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (isnan(rows[i].raters)) continue;
        add_known(&crps, rows[i].crps);
        add_known(&curvas, rows[i].curvas_crps);
        for (int level = 0; level < 2; ++level) add_known(&inside[level], rows[i].inside[level]);
        add_known(&bias, rows[i].expected - rows[i].raters);
    }
    out->cases = bias.count;
    out->crps = mean_of(crps);
    out->curvas_crps = mean_of(curvas);
    out->curvas_cases = curvas.count;
    for (int level = 0; level < 2; ++level) {
        out->coverage[level] = mean_of(inside[level]);
        out->covered_cases[level] = inside[level].count;
    }
    out->bias = mean_of(bias);
    for (int64_t i = 0; i < count; ++i) {
        const double off = rows[i].expected - rows[i].raters - out->bias;
        if (!isnan(rows[i].raters)) squares += off * off;
    }
    /* Limits of agreement (Bland and Altman 1986): bias -+ 1.96 standard deviations. */
    out->deviation = bias.count > 1 ? sqrt(squares / (double)(bias.count - 1)) : NAN;
    out->agree_low = out->bias - 1.96 * out->deviation;
    out->agree_high = out->bias + 1.96 * out->deviation;
}

/* ---- components ------------------------------------------------------------------------------ */

/* A voxel of a map, or of what was kept of levels. */
typedef struct component_reader {
    level_reader map;
    const uint8_t *likely; /* NULL: the map tells */
} component_reader;

static int likely_at(const component_reader *reader, int64_t voxel, float share) {
    double level[RCN_MAX_RATERS + 1];
    if (reader->likely) return reader->likely[voxel];
    read_levels(level, &reader->map, voxel, share);
    return likely_raters(level, reader->map.raters);
}

static void find_likely(uint8_t *inside, int64_t first, int64_t count, void *payload) {
    const component_reader *reader = payload;
    for (int64_t i = 0; i < count; ++i)
        inside[i] = likely_at(reader, first + i, read_share(&reader->map, first + i)) > 0;
}

/* Largest first. Equal ones in raster order, so that qsort(), which is not stable, has no
 * choice. */
static int by_expected(const void *a, const void *b) {
    const rcn_volume_component *x = a, *y = b;
    if (x->expected != y->expected) return x->expected < y->expected ? 1 : -1;
    for (int axis = 2; axis > 0; --axis)
        if (x->at[axis] != y->at[axis]) return x->at[axis] < y->at[axis] ? -1 : 1;
    return (x->at[0] > y->at[0]) - (x->at[0] < y->at[0]);
}

static void add_run(rcn_volume_component *component, const rcn__run *run,
                    const component_reader *reader, const int64_t size[3]) {
    for (int64_t x = run->first; x < run->end; ++x) {
        const int64_t voxel = run->row * size[0] + x;
        const float share = read_share(&reader->map, voxel);
        const int likely = likely_at(reader, voxel, share);
        component->expected += (double)share;
        if (likely > component->at_least) component->at_least = likely;
        if ((double)share > component->highest) {
            component->highest = (double)share;
            component->at[0] = x;
            component->at[1] = run->row % size[1];
            component->at[2] = run->row / size[1];
        }
    }
    component->voxels += run->end - run->first;
}

static rcn_status make_components(rcn_volume_component **out, int64_t *count, rcn_context *ctx,
                                  const rcn_image *map, int raters, const uint8_t *likely) {
    static const char *const what = "components of the map";
    rcn_status status;
    rcn_volume checked;
    component_reader reader = {.likely = likely};
    rcn_volume_component *components = NULL;
    rcn__components found = {NULL, 0, 0};
    if (!ctx) return RCN_EINVALID;
    if (!out || !count) return rcn__fail(ctx, RCN_EINVALID, "The output components is NULL.");
    RCN_TRY(rcn_volume_predict(&checked, ctx, map, raters)); /* every voxel can be used */
    RCN_TRY(open_reader(&reader.map, ctx, map, raters));
    const int64_t *size = map->geometry.size;
    RCN_TRY(rcn__components_find(&found, ctx, size, find_likely, &reader,
                                 "finding components of the map", what));
    RCN_ALLOC_ZERO(components, ctx, found.count, what);
    for (const rcn__run *run = found.runs; run < found.runs + found.run_count; ++run)
        add_run(&components[run->component], run, &reader, size);
    if (found.count > 0) qsort(components, (size_t)found.count, sizeof *components, by_expected);
    *count = found.count;
    *out = found.count ? components : NULL;
    if (found.count) components = NULL;
done:
    rcn__components_free(&found, ctx);
    rcn__free(ctx, components);
    return status;
}

rcn_status rcn_volume_components_create(rcn_volume_component **out, int64_t *count,
                                        rcn_context *ctx, const rcn_image *prediction, int raters) {
    return make_components(out, count, ctx, prediction, raters, NULL);
}

rcn_status rcn_volume_components_of_share(rcn_volume_component **out, int64_t *count,
                                          rcn_context *ctx, const rcn_volume_sums *sums,
                                          const rcn_image *share, const uint8_t *likely) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!sums || !likely) return rcn__fail(ctx, RCN_EINVALID, "No levels were added up.");
    if (share && share->components != 1)
        return rcn__fail(ctx, RCN_EINVALID, "A share of raters has one component.");
    return make_components(out, count, ctx, share, sums->raters, sums->between ? likely : NULL);
}

void rcn_volume_components_destroy(rcn_volume_component *components, rcn_context *ctx) {
    rcn__free(ctx, components);
}
