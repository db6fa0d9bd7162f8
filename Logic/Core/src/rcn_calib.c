// SPDX-License-Identifier: Apache-2.0
#include "rcn_calib_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BINS = 1000 };

/* 2^19 voxels of 64 raters at p = 1 make 2^63. Integers commute, so the order of voxels and the
 * number of threads leave no trace in the sums; p is exact from 2^-14 on, and off by 2e-12 at most
 * below. */
enum { FLUSH_VOXELS = 1 << 19 };

/* More cells than this for segment x pattern, and the pass counts segment x rater instead. */
enum { MAX_CELLS = 1 << 17 };

/* ---- layout ---------------------------------------------------------------------------------- */

int64_t rcn__sum_reference(const rcn_calib *calib) {
    return RCN_SUM_CONFIDENCE + INT64_C(3) * calib->options.bins;
}

int64_t rcn__sum_rater(const rcn_calib *calib, int rater) {
    return RCN_SUM_CONFIDENCE + INT64_C(6) * calib->options.bins + INT64_C(2) * rater;
}

int64_t rcn__sum_bins(const rcn_calib *calib, int rater) {
    return rcn__sum_rater(calib, calib->raters) + INT64_C(3) * calib->options.bins * rater;
}

int64_t rcn__sum_levels(const rcn_calib *calib, int at_least) {
    return rcn__sum_bins(calib, calib->raters) + INT64_C(3) * calib->options.bins * (at_least - 1);
}

int64_t rcn__sum_shares(const rcn_calib *calib, int unsure) {
    return rcn__sum_levels(calib, calib->raters + 1) + INT64_C(2) * (calib->raters + 1) * unsure;
}

int64_t rcn__sum_scatter(const rcn_calib *calib) { return rcn__sum_shares(calib, 2); }

int64_t rcn__sum_fine(const rcn_calib *calib) {
    return rcn__sum_scatter(calib) + INT64_C(3) * calib->options.bins;
}

double rcn__fine_edge(int cell) {
    if (cell >= RCN_FINE) return 1.0;
    if (cell <= 0) return 0.0;
    if (cell == RCN_FINE_HALF) return 0.5;
    if (cell > RCN_FINE_HALF) return 1.0 - rcn__fine_edge(RCN_FINE - cell);
    if (cell >= RCN_FINE_TAIL) return (cell - RCN_FINE_TAIL + 64) / 4096.0;
    return ldexp(1.0 + (cell - 1) % 64 / 64.0, (cell - 1) / 64 - 24);
}

/* ---- creating -------------------------------------------------------------------------------- */

const char *rcn_calib_check(const rcn_calib_options *options, int raters) {
    double weights[RCN_MAX_RATERS + 1];
    if (raters < 1 || raters > RCN_MAX_RATERS) return "There must be 1 to 64 raters.";
    if (!options) return NULL;
    if (options->bins < 1 || options->bins > MAX_BINS) return "There must be 1 to 1000 bins.";
    if (!(options->threshold >= 0 && options->threshold <= 1))
        return "The threshold must be between 0 and 1.";
    return rcn__readout_weights(weights, raters, options->readout, options->at_least);
}

rcn_status rcn_calib_create(rcn_calib **out, rcn_context *ctx, int raters,
                            const rcn_calib_options *options) {
    static const rcn_calib_options defaults = RCN_CALIB_OPTIONS_INIT;
    rcn_status status;
    rcn_calib *calib = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output sums is NULL.");
    const char *sentence = rcn_calib_check(options, raters);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_ALLOC_ZERO(calib, ctx, 1, "the calibration sums");
    calib->ctx = ctx;
    calib->options = options ? *options : defaults;
    calib->raters = raters;
    calib->length = rcn__sum_fine(calib) + INT64_C(5) * RCN_FINE;
    RCN_ALLOC_ZERO(calib->sums, ctx, calib->length, "the calibration sums");
    *out = calib;
    calib = NULL;
done:
    rcn_calib_destroy(calib);
    return status;
}

void rcn_calib_destroy(rcn_calib *calib) {
    if (!calib) return;
    rcn_context *ctx = calib->ctx;
    rcn__free(ctx, calib->packed);
    rcn__free(ctx, calib->sums);
    rcn__free(ctx, calib);
}

const char *rcn__calib_differ(const rcn_calib *a, const rcn_calib *b) {
    if (a->raters != b->raters) return "The sums have different numbers of raters.";
    if (a->options.bins != b->options.bins) return "The sums have different numbers of bins.";
    if (a->options.threshold != b->options.threshold) return "The sums have different thresholds.";
    if (a->options.readout != b->options.readout || a->options.at_least != b->options.at_least)
        return "The sums have different readouts.";
    return NULL;
}

rcn_status rcn__check_cases(rcn_context *ctx, const rcn_calib *const *cases, int64_t count,
                            const rcn_calib *like) {
    for (int64_t i = 0; i < count; ++i) {
        const char *sentence = cases[i] ? rcn__calib_differ(cases[i], like) : "No sums were given.";
        if (sentence)
            return rcn__fail(ctx, RCN_EINVALID, "Case %lld: %s", (long long)i + 1, sentence);
    }
    return RCN_OK;
}

void rcn__calib_add_sums(double *out, const rcn_calib *calib, double weight) {
    const int64_t fine = rcn__sum_fine(calib);
    for (int64_t i = 0; i < fine; ++i) out[i] += weight * calib->sums[i];
    rcn__fine_add(out + fine, calib, weight);
}

rcn_status rcn_calib_merge(rcn_calib *calib, rcn_context *ctx, const rcn_calib *other) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!calib || !other) return rcn__fail(ctx, RCN_EINVALID, "The sums to merge are NULL.");
    const char *sentence = rcn__calib_differ(calib, other);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    const rcn_status status = rcn__calib_unpack(calib, ctx);
    if (status == RCN_OK) rcn__calib_add_sums(calib->sums, other, 1);
    return status;
}

rcn_status rcn_calib_share(rcn_calib *calib, rcn_context *ctx, rcn_comm *comm) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!calib) return rcn__fail(ctx, RCN_EINVALID, "The sums to share are NULL.");
    const rcn_status status = rcn__calib_unpack(calib, ctx);
    if (status != RCN_OK) return status;
    return rcn_comm_sum(comm, ctx, calib->sums, calib->length, RCN_COMM_DOUBLE);
}

rcn_status rcn_calib_copy(rcn_calib **out, rcn_context *ctx, const rcn_calib *calib) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!calib) return rcn__fail(ctx, RCN_EINVALID, "The sums to copy are NULL.");
    const rcn_status status = rcn_calib_create(out, ctx, calib->raters, &calib->options);
    if (status == RCN_OK) rcn__calib_add_sums((*out)->sums, calib, 1);
    return status;
}

int64_t rcn_calib_voxels(const rcn_calib *calib) { return (int64_t)calib->sums[RCN_SUM_VOXELS]; }

/* ---- segments ----------------------------------------------------------------------------------
 *
 * Bins, mirrored bins (of the confidence 1 - p) and the thresholds of Dice all cut [0, 1]; between
 * two cuts a probability is the same to all of them. So the pass only asks for the segment.
 */

enum { MAX_SEGMENTS = 2 * MAX_BINS + 8, EDGE_INSIDE = 1 << 15 };
typedef struct segments {
    int count, bins;
    float edges[MAX_SEGMENTS + 1]; /* segment s: edges[s] <= p < edges[s + 1]; the last one is 2 */
    uint16_t first[RCN_FINE];  /* where a cell of the fine histogram begins; EDGE_INSIDE: an edge
                                     follows in it */
    int16_t bin[MAX_SEGMENTS]; /* of p */
    int16_t confidence[MAX_SEGMENTS]; /* bin of max(p, 1 - p) */
    int8_t grade[MAX_SEGMENTS];       /* twice the thresholds that p reaches, + 1: and tau too */
} segments;

float rcn__bin_edge(int bin, int bins) { return (float)((double)bin / bins); }

/* Edges decide, after rounding to float32 like the probabilities: 0.7f is 70 %. */
static int bin_of(float p, int bins) {
    int b = (int)(p * (float)bins);
    b = b < bins ? b : bins - 1;
    while (b > 0 && p < rcn__bin_edge(b, bins)) --b;
    while (b + 1 < bins && p >= rcn__bin_edge(b + 1, bins)) ++b;
    return b;
}

/* The smallest p whose confidence 1 - p is below the edge. Positive floats are ordered like their
 * bits. */
static float mirrored_edge(float edge) {
    uint32_t low = 0, high = 0x3F800000;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        float p;
        memcpy(&p, &middle, sizeof p);
        if (1.0f - p < edge)
            high = middle;
        else
            low = middle + 1;
    }
    float p;
    memcpy(&p, &low, sizeof p);
    return p;
}

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void segments_make(segments *out, int bins, float threshold) {
    static const float cuts[5] = {0.1f, 0.3f, 0.5f, 0.7f, 0.9f};
    float edges[MAX_SEGMENTS];
    int count = 0;
    edges[count++] = 0.0f;
    edges[count++] = threshold;
    for (int i = 0; i < 5; ++i) edges[count++] = cuts[i];
    for (int b = 1; b < bins; ++b) {
        edges[count++] = rcn__bin_edge(b, bins);
        edges[count++] = mirrored_edge(rcn__bin_edge(b, bins));
    }
    qsort(edges, (size_t)count, sizeof *edges, compare_floats);
    out->bins = bins;
    out->count = 0;
    for (int i = 0; i < count; ++i) {
        const float p = edges[i];
        if (i && p == edges[i - 1]) continue;
        const int s = out->count++;
        out->edges[s] = p;
        out->bin[s] = (int16_t)bin_of(p, bins);
        out->confidence[s] = (int16_t)bin_of(p < 0.5f ? 1.0f - p : p, bins);
        out->grade[s] = (int8_t)(p >= threshold);
        for (int t = 0; t < 5; ++t) out->grade[s] += (int8_t)(2 * (p >= cuts[t]));
    }
    out->edges[out->count] = 2.0f;
    int s = 0;
    for (int cell = 0; cell < RCN_FINE; ++cell) {
        while ((double)out->edges[s + 1] <= rcn__fine_edge(cell)) ++s;
        const int inside = (double)out->edges[s + 1] <= rcn__fine_edge(cell + 1);
        out->first[cell] = (uint16_t)(s | (inside ? EDGE_INSIDE : 0));
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* What is counted together: voxels of one pattern; or, where there are too many patterns, pairs of
 * one rater and answer, and voxels of one class (reference and grade of m). */
typedef struct column {
    uint64_t marked, answered;
    int class; /* 3 * grade + reference; -1: none */
} column;

/* A pattern's share of the fine histogram. */
typedef struct vote_words {
    uint64_t pairs;     /* answered, marked */
    uint64_t reference; /* has one, is foreground in it */
    uint64_t answered;
} vote_words;

typedef struct pass_job {
    rcn__case c;
    int64_t voxels;
    segments *segments;
    column *columns;
    int64_t column_count;
    int by_rater;
    vote_words *words; /* by pattern */
    rcn__level_plan levels;
    /* Slots of a thread's tally: [segments][columns][3], [RCN_FINE][3], the levels'. */
    int64_t at_fine, at_levels, length;
    rcn__level_scratch **scratch; /* per thread */
    uint64_t **hot;               /* per thread: [length] */
    uint64_t **totals;       /* per thread: [length][2], lower bits and upper bits of the slots */
    int64_t *since_flush;    /* per thread: voxels */
    double *nll;             /* per chunk */
    double *rps, *level_nll; /* per chunk */
    int64_t *used;           /* per thread: voxels that count */
} pass_job;

/* A block of voxels that count, and where each of them goes. */
typedef struct block {
    float p[RCN_CASE_BLOCK];
    uint32_t codes[RCN_CASE_BLOCK];
    int32_t fine[RCN_CASE_BLOCK];
    uint64_t fixed[RCN_CASE_BLOCK];  /* p */
    uint64_t square[RCN_CASE_BLOCK]; /* p^2 */
    int64_t marked[RCN_CASE_BLOCK];
    int64_t unmarked[RCN_CASE_BLOCK];
    double likelihood[RCN_CASE_BLOCK];
} block;

RCN_DISPATCH static void place(block *restrict b, int count) {
    for (int i = 0; i < count; ++i) {
        const float p = b->p[i], rest = 1.0f - p, q = p < 0.5f ? p : rest;
        int32_t bits;
        memcpy(&bits, &q, sizeof bits);
        const int32_t octaves = (bits >> 17) - (103 << 6) + 1; /* 64 to an octave from 2^-24 on */
        const int32_t tail = octaves > 0 ? octaves : 0;
        const int32_t middle = (int32_t)(q * 4096.0f) - 64 + RCN_FINE_TAIL;
        const int32_t cell = q < 0x1p-6f ? tail : middle;
        b->fine[i] = p < 0.5f ? cell : RCN_FINE - 1 - cell;
    }
    for (int i = 0; i < count; ++i) {
        const double p = (double)b->p[i];
        b->fixed[i] = rcn__to_fixed(p);
        b->square[i] = rcn__to_fixed(p * p);
    }
}

/* p^marked (1 - p)^unmarked by squaring, BITS bits of each. */
#define DEFINE_LIKELIHOODS(NAME, BITS)                                                             \
    RCN_DISPATCH static void NAME(block *restrict b, int count) {                                  \
        for (int i = 0; i < count; ++i) {                                                          \
            double yes = (double)b->p[i], product = 1.0;                                           \
            yes = yes < 1e-7 ? 1e-7 : yes;                                                         \
            yes = yes > 1.0 - 1e-7 ? 1.0 - 1e-7 : yes;                                             \
            double no = 1.0 - yes;                                                                 \
            const int64_t marked = b->marked[i], unmarked = b->unmarked[i];                        \
            for (int bit = 0; bit < BITS; ++bit) {                                                 \
                product *= marked & (INT64_C(1) << bit) ? yes : 1.0;                               \
                product *= unmarked & (INT64_C(1) << bit) ? no : 1.0;                              \
                yes *= yes;                                                                        \
                no *= no;                                                                          \
            }                                                                                      \
            b->likelihood[i] = product;                                                            \
        }                                                                                          \
    }
DEFINE_LIKELIHOODS(likelihoods_7, 3)
DEFINE_LIKELIHOODS(likelihoods_15, 4)

void rcn__log_sum_begin(rcn__log_sum *sum) {
    for (int l = 0; l < RCN_LOG_LANES; ++l) {
        sum->product[l] = 1.0;
        sum->exponent[l] = 0;
    }
}

enum { LANES = RCN_LOG_LANES };

RCN_DISPATCH static void log_sum_add(rcn__log_sum *restrict sum, const double *restrict x,
                                     int count) {
    for (int i = 0; i + 2 * LANES <= count; i += 2 * LANES)
        for (int l = 0; l < LANES; ++l) {
            const double product = sum->product[l] * (x[i + l] * x[i + LANES + l]);
            uint64_t bits;
            memcpy(&bits, &product, sizeof bits);
            sum->exponent[l] += (int64_t)(bits >> 52) - 1023;
            bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
            memcpy(&sum->product[l], &bits, sizeof bits);
        }
}

void rcn__log_sum_add(rcn__log_sum *sum, double *x, int count) {
    while (count % (2 * LANES)) x[count++] = 1.0;
    log_sum_add(sum, x, count);
}

double rcn__log_sum_value(const rcn__log_sum *sum) {
    double value = 0;
    for (int l = 0; l < LANES; ++l)
        value += log(sum->product[l]) + (double)sum->exponent[l] * 0.69314718055994530942;
    return value;
}

static void add_nll(double *nll, rcn__log_sum *sum, block *b, int count, int raters) {
    if (raters <= 15) {
        /* 15 raters at 1e-7, twice, make 1e-210, which a double still holds. */
        if (raters <= 7)
            likelihoods_7(b, count);
        else
            likelihoods_15(b, count);
        rcn__log_sum_add(sum, b->likelihood, count);
        return;
    }
    for (int i = 0; i < count; ++i) {
        double p = (double)b->p[i];
        p = p < 1e-7 ? 1e-7 : p > 1.0 - 1e-7 ? 1.0 - 1e-7 : p;
        *nll -= (double)b->marked[i] * log(p) + (double)b->unmarked[i] * log(1.0 - p);
    }
}

static inline int segment_of(const segments *restrict table, float p, int cell) {
    int s = table->first[cell];
    if (!(s & EDGE_INSIDE)) return s; /* nearly always */
    s &= ~EDGE_INSIDE;
    while (p >= table->edges[s + 1]) ++s;
    return s;
}

/* Voxels, sum of p, sum of p^2. */
static inline void tally_cell(uint64_t *restrict cell, const block *restrict b, int i) {
    cell[0] += 1;
    cell[1] += b->fixed[i];
    cell[2] += b->square[i];
}

static inline void tally_fine(uint64_t *restrict fine, const vote_words *restrict words,
                              uint64_t p) {
    fine[0] += words->pairs;
    fine[1] += words->reference;
    fine[2] += p * words->answered;
}

static void tally_patterns(uint64_t *restrict hot, const pass_job *job, const block *restrict b,
                           int count) {
    const segments *table = job->segments;
    const vote_words *words = job->words;
    const int64_t columns = job->column_count;
    uint64_t *fine = hot + job->at_fine;
    for (int i = 0; i < count; ++i) {
        const uint32_t code = b->codes[i];
        tally_cell(hot + 3 * (segment_of(table, b->p[i], b->fine[i]) * columns + code), b, i);
        tally_fine(fine + 3 * b->fine[i], &words[code], b->fixed[i]);
    }
}

static void tally_raters(uint64_t *restrict hot, const pass_job *job, const block *restrict b,
                         int count) {
    const int raters = job->c.votes->raters;
    uint64_t *fine = hot + job->at_fine;
    for (int i = 0; i < count; ++i) {
        const uint32_t code = b->codes[i];
        const rcn_pattern *pattern = &job->c.votes->patterns[code];
        const rcn__vote *vote = &job->c.patterns[code];
        uint64_t *cells =
            hot + 3 * segment_of(job->segments, b->p[i], b->fine[i]) * job->column_count;
        for (int r = 0; r < raters; ++r) {
            if (!(pattern->answered >> r & 1)) continue;
            tally_cell(cells + 3 * (2 * r + (int)(pattern->marked >> r & 1)), b, i);
        }
        tally_cell(cells + 3 * (2 * raters + 3 * vote->grade + vote->reference), b, i);
        tally_fine(fine + 3 * b->fine[i], &job->words[code], b->fixed[i]);
    }
}

static void flush(uint64_t *restrict total, uint64_t *restrict hot, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
        total[2 * i] += hot[i] & RCN_FRACTION_MASK;
        total[2 * i + 1] += hot[i] >> RCN_FRACTION_BITS;
        hot[i] = 0;
    }
}

static void pass_chunk(int64_t chunk, int thread, void *payload) {
    pass_job *job = payload;
    rcn__level_scratch *scratch = job->scratch[thread];
    rcn__level_chunk levels = {.rps = 0};
    rcn__log_sum sum;
    block b;
    double nll = 0;
    int64_t first, end;
    rcn__log_sum_begin(&sum);
    rcn__log_sum_begin(&levels.likelihood);
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    for (; first < end; first += RCN_CASE_BLOCK) {
        const int64_t size = end - first > RCN_CASE_BLOCK ? RCN_CASE_BLOCK : end - first;
        float *planes = job->levels.binomial ? NULL : rcn__level_planes(scratch);
        const int count = rcn__case_read(b.p, b.codes, planes, &job->c, first, size, thread);
        place(&b, count);
        for (int i = 0; i < count; ++i) {
            const rcn__vote vote = job->c.patterns[b.codes[i]];
            b.marked[i] = vote.marked;
            b.unmarked[i] = vote.answered - vote.marked;
        }
        add_nll(&nll, &sum, &b, count, job->c.votes->raters);
        if (job->by_rater)
            tally_raters(job->hot[thread], job, &b, count);
        else
            tally_patterns(job->hot[thread], job, &b, count);
        rcn__level_tally(job->hot[thread] + job->at_levels, &levels, scratch, &job->levels, b.p,
                         b.marked, b.unmarked, count);
        job->used[thread] += count;
        job->since_flush[thread] += count;
        if (job->since_flush[thread] > FLUSH_VOXELS - RCN_CASE_BLOCK) {
            flush(job->totals[thread], job->hot[thread], job->length);
            job->since_flush[thread] = 0;
        }
    }
    job->nll[chunk] = nll - rcn__log_sum_value(&sum);
    job->rps[chunk] = levels.rps;
    job->level_nll[chunk] = -rcn__log_sum_value(&levels.likelihood);
}

/* ---- from integers to sums ------------------------------------------------------------------- */

static const uint64_t *cell_of(const uint64_t *total, const pass_job *job, int segment,
                               int64_t at) {
    return total + 6 * (segment * job->column_count + at);
}

static void sum_raters(double *sums, const rcn_calib *calib, const pass_job *job,
                       const uint64_t *total) {
    const segments *table = job->segments;
    for (int r = 0; r < calib->raters; ++r) {
        rcn__wide squares = {0, 0}, cross = {0, 0};
        for (int s = 0; s < table->count;) {
            const int b = table->bin[s];
            rcn__wide count = {0, 0}, p = {0, 0}, marked = {0, 0};
            for (; s < table->count && table->bin[s] == b; ++s)
                for (int64_t i = 0; i < job->column_count; ++i) {
                    if (!(job->columns[i].answered >> r & 1)) continue;
                    const uint64_t *cell = cell_of(total, job, s, i);
                    rcn__widen(&count, cell);
                    rcn__widen(&p, cell + 2);
                    rcn__widen(&squares, cell + 4);
                    if (!(job->columns[i].marked >> r & 1)) continue;
                    rcn__widen(&marked, cell);
                    rcn__widen(&cross, cell + 2);
                }
            double *bin = sums + rcn__sum_bins(calib, r) + 3 * b;
            bin[0] = rcn__wide_count(count);
            bin[1] = rcn__wide_fixed(p);
            bin[2] = rcn__wide_count(marked);
        }
        sums[rcn__sum_rater(calib, r)] = rcn__wide_fixed(squares);
        sums[rcn__sum_rater(calib, r) + 1] = rcn__wide_fixed(cross);
    }
}

/* Grades, the bins of the one reference, and of the confidence in the prediction p >= 1/2. */
static void sum_classes(double *sums, const rcn_calib *calib, const pass_job *job,
                        const uint64_t *total) {
    const segments *table = job->segments;
    double *confidence = sums + RCN_SUM_CONFIDENCE, *reference = sums + rcn__sum_reference(calib);
    for (int s = 0; s < table->count; ++s) {
        rcn__wide counts[18] = {{0, 0}}, ps[18] = {{0, 0}};
        for (int64_t i = 0; i < job->column_count; ++i) {
            if (job->columns[i].class < 0) continue;
            rcn__widen(&counts[job->columns[i].class], cell_of(total, job, s, i));
            rcn__widen(&ps[job->columns[i].class], cell_of(total, job, s, i) + 2);
        }
        for (int class = 0; class < 18; ++class) {
            const double n = rcn__wide_count(counts[class]), p = rcn__wide_fixed(ps[class]);
            const int foreground = class % 3, positive = table->edges[s] >= 0.5f;
            sums[RCN_SUM_GRADES + 18 * table->grade[s] + class] += n;
            if (foreground == 2) continue;
            double *bin = reference + 3 * table->bin[s],
                   *own = confidence + 3 * table->confidence[s];
            bin[0] += n;
            bin[1] += p;
            bin[2] += foreground ? n : 0;
            own[0] += n;
            own[1] += positive ? p : n - p;
            own[2] += positive == foreground ? n : 0;
        }
    }
}

static void sum_fine(double *sums, const rcn_calib *calib, const pass_job *job,
                     const uint64_t *total) {
    double *fine = sums + rcn__sum_fine(calib);
    for (int64_t i = 0; i < RCN_FINE; ++i) {
        const uint64_t *slot = total + 2 * (job->at_fine + 3 * i);
        rcn__wide p = {0, 0};
        rcn__widen(&p, slot + 4);
        fine[5 * i] = (double)slot[1];
        fine[5 * i + 1] = (double)slot[0];
        fine[5 * i + 2] = rcn__wide_fixed(p);
        fine[5 * i + 3] = (double)slot[3];
        fine[5 * i + 4] = (double)slot[2];
    }
}

/* Decides what is counted together, and where. */
static rcn_status plan(pass_job *job, rcn_context *ctx, const rcn_calib *calib) {
    rcn_status status;
    const rcn_votes *votes = job->c.votes;
    RCN_ALLOC(job->segments, ctx, 1, "bookkeeping");
    segments_make(job->segments, calib->options.bins, (float)calib->options.threshold);
    job->voxels = votes->voxels;
    job->by_rater = votes->pattern_count > MAX_CELLS / job->segments->count;
    job->column_count = job->by_rater ? 2 * calib->raters + 18 : votes->pattern_count;
    RCN_ALLOC_ZERO(job->columns, ctx, job->column_count, "bookkeeping");
    for (int64_t i = 0; i < job->column_count; ++i) {
        column *out = &job->columns[i];
        if (!job->by_rater) {
            out->marked = votes->patterns[i].marked;
            out->answered = votes->patterns[i].answered;
            out->class = 3 * job->c.patterns[i].grade + job->c.patterns[i].reference;
        } else if (i < 2 * calib->raters) {
            out->answered = UINT64_C(1) << (i / 2);
            out->marked = i % 2 ? out->answered : 0;
            out->class = -1;
        } else {
            out->class = (int)(i - 2 * calib->raters);
        }
    }
    RCN_ALLOC(job->words, ctx, votes->pattern_count, "the table of patterns");
    for (int64_t i = 0; i < votes->pattern_count; ++i) {
        const rcn__vote vote = job->c.patterns[i];
        job->words[i].pairs = (uint64_t)vote.answered << RCN_FRACTION_BITS | vote.marked;
        job->words[i].reference =
            (uint64_t)(vote.reference < 2) << RCN_FRACTION_BITS | (vote.reference == 1);
        job->words[i].answered = vote.answered;
    }
    job->at_fine = 3 * job->segments->count * job->column_count;
    job->at_levels = job->at_fine + 3 * RCN_FINE;
    job->length = job->at_levels + rcn__level_slots(&job->levels);
done:
    return status;
}

static double dice_at_threshold(const double *grades);
static void sum_scatter(double *sums, const rcn_calib *calib);

rcn_status rcn_calib_add(rcn_calib *calib, rcn_context *ctx, const rcn_calib_case *one_case) {
    rcn_status status;
    pass_job job;
    double *sums = NULL;
    memset(&job, 0, sizeof job);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!calib) return rcn__fail(ctx, RCN_EINVALID, "The sums to add to are NULL.");
    RCN_TRY(rcn__case_open(&job.c, ctx, one_case, calib->raters, calib->options.readout,
                           calib->options.at_least));
    RCN_TRY(rcn__level_plan_make(&job.levels, ctx, calib, &one_case->prediction));
    RCN_TRY(plan(&job, ctx, calib));

    const int64_t chunks = rcn__chunk_count(job.voxels, RCN_CHUNK);
    RCN_ALLOC_ZERO(job.hot, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job.totals, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job.since_flush, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job.scratch, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job.used, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC(job.nll, ctx, chunks, "sums by chunk");
    RCN_ALLOC(job.rps, ctx, chunks, "sums by chunk");
    RCN_ALLOC(job.level_nll, ctx, chunks, "sums by chunk");
    for (int t = 0; t < ctx->threads; ++t) {
        RCN_ALLOC_ZERO(job.hot[t], ctx, job.length, "counting");
        RCN_ALLOC_ZERO(job.totals[t], ctx, 2 * job.length, "counting");
        RCN_TRY(rcn__level_scratch_make(&job.scratch[t], ctx, calib->raters));
    }
    RCN_ALLOC_ZERO(sums, ctx, calib->length, "the calibration sums");
    RCN_TRY(rcn__for_chunks(ctx, "comparing with the raters", chunks, pass_chunk, &job));
    RCN_TRY(rcn__case_result(ctx, &job.c));

    uint64_t *total = job.totals[0];
    int64_t used = 0;
    for (int t = 0; t < ctx->threads; ++t) {
        flush(job.totals[t], job.hot[t], job.length);
        for (int64_t i = 0; t && i < 2 * job.length; ++i) total[i] += job.totals[t][i];
        used += job.used[t];
    }
    if (!used) RCN_TRY(rcn__fail(ctx, RCN_EDATA, "No rater answered any voxel of the region."));
    sums[RCN_SUM_VOXELS] = (double)used;
    sums[RCN_SUM_CASES] = 1;
    for (int64_t i = 0; i < chunks; ++i) {
        sums[RCN_SUM_NLL] += job.nll[i];
        sums[RCN_SUM_RPS] += job.rps[i];
        sums[RCN_SUM_LEVEL_NLL] += job.level_nll[i];
    }
    rcn__level_sum(sums, calib, &job.levels, total + 2 * job.at_levels);
    sum_raters(sums, calib, &job, total);
    sum_scatter(sums, calib);
    sum_classes(sums, calib, &job, total);
    sum_fine(sums, calib, &job, total);
    const double dice = dice_at_threshold(sums + RCN_SUM_GRADES);
    if (!isnan(dice)) {
        sums[RCN_SUM_DICE] = ldexp(floor(ldexp(dice, 42) + 0.5), -42);
        sums[RCN_SUM_DICE_CASES] = 1;
    }
    RCN_TRY(rcn__calib_unpack(calib, ctx));
    for (int64_t i = 0; i < calib->length; ++i) calib->sums[i] += sums[i];
done:
    for (int t = 0; t < ctx->threads; ++t) {
        if (job.hot) rcn__free(ctx, job.hot[t]);
        if (job.totals) rcn__free(ctx, job.totals[t]);
        if (job.scratch) rcn__level_scratch_free(job.scratch[t], ctx);
    }
    rcn__free(ctx, job.segments);
    rcn__free(ctx, job.columns);
    rcn__free(ctx, job.words);
    rcn__free(ctx, job.hot);
    rcn__free(ctx, job.totals);
    rcn__free(ctx, job.since_flush);
    rcn__free(ctx, job.scratch);
    rcn__level_plan_free(&job.levels, ctx);
    rcn__free(ctx, job.used);
    rcn__free(ctx, job.nll);
    rcn__free(ctx, job.rps);
    rcn__free(ctx, job.level_nll);
    rcn__free(ctx, sums);
    rcn__case_close(&job.c, ctx);
    return status;
}

/* ---- figures --------------------------------------------------------------------------------- */

const char *rcn_figure_name(rcn_figure figure) {
    static const char *const names[RCN_FIGURES] = {
        "mr_ece",        "mr_ece_debiased", "rater_ece",
        "ece",           "ece_foreground",  "mce",
        "ace",           "signed",          "over",
        "under",         "brier",           "nll",
        "rps",           "level_nll",       "level_ece",
        "level_ece_max", "auc_histogram",   "auc_pairs_histogram",
        "dice",          "dice_pooled",     "soft_dice"};
    return (int)figure >= 0 && figure < RCN_FIGURES ? names[figure] : NULL;
}

double rcn__ece_of(const double *bins, int count) {
    double n = 0, gap = 0;
    for (int b = 0; b < count; ++b) {
        n += bins[3 * b];
        gap += fabs(bins[3 * b + 1] - bins[3 * b + 2]);
    }
    return n > 0 ? gap / n : NAN;
}

static double dice_of(double both, double a, double b) {
    return a + b > 0 ? 2.0 * both / (a + b) : 1.0;
}

/* NaN where nothing is predicted and the reference has nothing. */
static double dice_at_threshold(const double *grades) {
    double both = 0, predicted = 0, reference = 0;
    for (int p = 0; p < 12; ++p)
        for (int m = 0; m < 18; ++m) {
            const double n = grades[18 * p + m];
            if (m % 3 == 2) continue;
            predicted += p % 2 ? n : 0;
            reference += m % 3 == 1 ? n : 0;
            both += p % 2 && m % 3 == 1 ? n : 0;
        }
    return predicted + reference > 0 ? dice_of(both, predicted, reference) : NAN;
}

static double soft_dice(const double *grades) {
    double sum = 0;
    for (int t = 1; t <= 5; ++t) {
        double both = 0, predicted = 0, marked = 0;
        for (int p = 0; p < 12; ++p)
            for (int m = 0; m < 18; ++m) {
                const double n = grades[18 * p + m];
                predicted += p / 2 >= t ? n : 0;
                marked += m / 3 >= t ? n : 0;
                both += p / 2 >= t && m / 3 >= t ? n : 0;
            }
        sum += dice_of(both, predicted, marked);
    }
    return sum / 5;
}

typedef struct auc_sum {
    double positive, negative, wins;
} auc_sum;

/* The next cell, in ascending order. */
static void auc_add(auc_sum *sum, double all, double marked) {
    const double n = all - marked;
    sum->wins += marked * (sum->negative + 0.5 * n);
    sum->positive += marked;
    sum->negative += n;
}

static double auc_value(const auc_sum *sum) {
    return sum->positive > 0 && sum->negative > 0 ? sum->wins / (sum->positive * sum->negative)
                                                  : NAN;
}

double rcn__auc_cells(const double *all, const double *marked, int64_t stride, int64_t cells) {
    auc_sum sum = {0, 0, 0};
    for (int64_t i = 0; i < cells; ++i) auc_add(&sum, all[i * stride], marked[i * stride]);
    return auc_value(&sum);
}

/* All raters' bins added up. */
static void pool(double out[3], const rcn_calib *calib, const double *sums, int bin) {
    out[0] = out[1] = out[2] = 0;
    for (int r = 0; r < calib->raters; ++r)
        for (int i = 0; i < 3; ++i) out[i] += sums[rcn__sum_bins(calib, r) + 3 * bin + i];
}

/* How far the cases of a bin are apart, for the debiased MR-ECE. */
static void sum_scatter(double *sums, const rcn_calib *calib) {
    double *scatter = sums + rcn__sum_scatter(calib);
    for (int b = 0; b < calib->options.bins; ++b) {
        double bin[3];
        pool(bin, calib, sums, b);
        const double gap = bin[1] - bin[2];
        scatter[3 * b] = bin[0] * bin[0];
        scatter[3 * b + 1] = bin[0] * gap;
        scatter[3 * b + 2] = gap * gap;
    }
}

/* E|g + e Z| - |g|: by how much a gap that scatters with the standard error e seems larger. */
static double excess_of(double gap, double error) {
    if (!(error > 0)) return 0;
    const double z = fabs(gap) / error;
    return error *
           (0.79788456080286535588 * exp(-0.5 * z * z) - z * erfc(z * 0.70710678118654752440));
}

/* The standard error of a bin's gap over cases, see RCN_MR_ECE_DEBIASED. */
static double gap_error(const double bin[3], const double scatter[3]) {
    const double gap = (bin[1] - bin[2]) / bin[0];
    const double squares = scatter[2] - 2 * gap * scatter[1] + gap * gap * scatter[0];
    const double cases = bin[0] * bin[0] / scatter[0];
    return sqrt(fmax(squares, 0) * cases / fmax(cases - 1, 1)) / bin[0];
}

static double brier_of(const rcn_calib *calib, const double *sums, int first, int end) {
    double n = 0, sum = 0;
    for (int r = first; r < end; ++r) {
        const double *rater = sums + rcn__sum_rater(calib, r);
        const double *bins = sums + rcn__sum_bins(calib, r);
        double marked = 0;
        for (int b = 0; b < calib->options.bins; ++b) {
            n += bins[3 * b];
            marked += bins[3 * b + 2];
        }
        sum += rater[0] - 2.0 * rater[1] + marked; /* (p - y)^2 with y^2 = y */
    }
    return n > 0 ? sum / n : NAN;
}

void rcn__figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums) {
    const int bins = calib->options.bins;
    double n = 0, over = 0, under = 0, largest = 0, gaps = 0, raters_sum = 0, excess = 0;
    int filled = 0, raters = 0;
    for (int i = 0; i < RCN_FIGURES; ++i) out[i] = NAN;
    if (!(sums[RCN_SUM_VOXELS] > 0)) return;
    for (int b = 0; b < bins; ++b) {
        double bin[3];
        pool(bin, calib, sums, b);
        if (!(bin[0] > 0)) continue;
        const double gap = bin[1] - bin[2];
        n += bin[0];
        over += gap > 0 ? gap : 0;
        under += gap < 0 ? -gap : 0;
        ++filled;
        gaps += fabs(gap) / bin[0];
        largest = fmax(largest, fabs(gap) / bin[0]);
        const double error = gap_error(bin, sums + rcn__sum_scatter(calib) + 3 * b);
        excess += bin[0] * excess_of(gap / bin[0], error);
    }
    for (int r = 0; r < calib->raters; ++r) {
        const double ece = rcn__ece_of(sums + rcn__sum_bins(calib, r), bins);
        if (isnan(ece)) continue;
        raters_sum += ece;
        ++raters;
    }
    out[RCN_MR_ECE] = (over + under) / n;
    if (sums[RCN_SUM_CASES] >= RCN_DEBIASED_CASES)
        out[RCN_MR_ECE_DEBIASED] = out[RCN_MR_ECE] - 2.41421356237309504880 * excess / n;
    out[RCN_RATER_ECE] = raters_sum / raters;
    out[RCN_ECE] = rcn__ece_of(sums + RCN_SUM_CONFIDENCE, bins);
    out[RCN_ECE_FOREGROUND] = rcn__ece_of(sums + rcn__sum_reference(calib), bins);
    out[RCN_MCE] = largest;
    out[RCN_ACE] = gaps / filled;
    out[RCN_SIGNED] = (over - under) / n;
    out[RCN_OVER] = over / n;
    out[RCN_UNDER] = under / n;
    out[RCN_BRIER] = brier_of(calib, sums, 0, calib->raters);
    out[RCN_NLL] = sums[RCN_SUM_NLL] / n;
    rcn__level_figures(out, calib, sums);
    out[RCN_DICE_POOLED] = dice_at_threshold(sums + RCN_SUM_GRADES);
    /* Of one case both are the same, and the pooled one is not rounded. */
    const double cases = sums[RCN_SUM_DICE_CASES];
    out[RCN_DICE] = cases > 1 ? sums[RCN_SUM_DICE] / cases : out[RCN_DICE_POOLED];
    out[RCN_SOFT_DICE] = soft_dice(sums + RCN_SUM_GRADES);
}

void rcn__all_figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums) {
    rcn__figures(out, calib, sums);
    const double *fine = sums + rcn__sum_fine(calib);
    out[RCN_AUC_HISTOGRAM] = rcn__auc_cells(fine + 3, fine + 4, 5, RCN_FINE);
    out[RCN_AUC_PAIRS_HISTOGRAM] = rcn__auc_cells(fine, fine + 1, 5, RCN_FINE);
}

void rcn_calib_figures(double out[RCN_FIGURES], const rcn_calib *calib) {
    rcn__figures(out, calib, calib->sums);
    auc_sum reference = {0, 0, 0}, pairs = {0, 0, 0};
    rcn__fine fine;
    const double *cell;
    rcn__fine_begin(&fine, calib);
    while ((cell = rcn__fine_next(&fine)) != NULL) {
        auc_add(&reference, cell[3], cell[4]);
        auc_add(&pairs, cell[0], cell[1]);
    }
    out[RCN_AUC_HISTOGRAM] = auc_value(&reference);
    out[RCN_AUC_PAIRS_HISTOGRAM] = auc_value(&pairs);
}

int64_t rcn_calib_pairs(const rcn_calib *calib) {
    double n = 0;
    for (int b = 0; b < calib->options.bins; ++b) {
        double bin[3];
        pool(bin, calib, calib->sums, b);
        n += bin[0];
    }
    return (int64_t)n;
}

double rcn_calib_rater_ece(const rcn_calib *calib, int rater) {
    return rcn__ece_of(calib->sums + rcn__sum_bins(calib, rater), calib->options.bins);
}

double rcn_calib_rater_brier(const rcn_calib *calib, int rater) {
    return brier_of(calib, calib->sums, rater, rater + 1);
}

void rcn__fill_bin(rcn_calib_bin *out, double lower, double upper, const double sums[3]) {
    out->lower = lower;
    out->upper = upper;
    out->count = (int64_t)sums[0];
    out->confidence = sums[0] > 0 ? sums[1] / sums[0] : NAN;
    out->frequency = sums[0] > 0 ? sums[2] / sums[0] : NAN;
}

/* A cell goes to the bin in which the middle of its pairs lies. */
static void mass_bins(rcn_calib_bin *out, const rcn_calib *calib) {
    const int bins = calib->options.bins;
    double total = 0, below = 0;
    int cell = 0;
    rcn__fine fine;
    const double *next;
    rcn__fine_begin(&fine, calib);
    while ((next = rcn__fine_next(&fine)) != NULL) total += next[0];
    rcn__fine_begin(&fine, calib);
    next = rcn__fine_next(&fine);
    for (int b = 0; b < bins; ++b) {
        double sums[3] = {0, 0, 0};
        const int first = cell;
        for (; cell < RCN_FINE; ++cell) {
            const int is_next = next && cell == fine.cell;
            const double half = is_next ? 0.5 * next[0] : 0;
            if (b < bins - 1 && !((below + half) * bins < total * (b + 1))) break;
            if (!is_next) continue;
            sums[0] += next[0];
            sums[1] += next[2];
            sums[2] += next[1];
            below += next[0];
            next = rcn__fine_next(&fine);
        }
        rcn__fill_bin(&out[b], rcn__fine_edge(first), rcn__fine_edge(cell), sums);
    }
}

void rcn_calib_bins(rcn_calib_bin *out, const rcn_calib *calib, rcn_binning binning) {
    const int bins = calib->options.bins;
    if (binning == RCN_BINS_MASS) {
        mass_bins(out, calib);
        return;
    }
    for (int b = 0; b < bins; ++b) {
        double sums[3];
        pool(sums, calib, calib->sums, b);
        rcn__fill_bin(&out[b], (double)b / bins, (double)(b + 1) / bins, sums);
    }
}

void rcn_calib_rater_bins(rcn_calib_bin *out, const rcn_calib *calib, int rater) {
    const int bins = calib->options.bins;
    for (int b = 0; b < bins; ++b)
        rcn__fill_bin(&out[b], (double)b / bins, (double)(b + 1) / bins,
                      calib->sums + rcn__sum_bins(calib, rater) + 3 * b);
}

void rcn_calib_gaps(double *ece, double *mce, double *ace, const rcn_calib_bin *bins, int count) {
    double n = 0, sum = 0, largest = 0, gaps = 0;
    int filled = 0;
    for (int b = 0; b < count; ++b) {
        if (!bins[b].count) continue;
        const double gap = fabs(bins[b].confidence - bins[b].frequency);
        n += (double)bins[b].count;
        sum += (double)bins[b].count * gap;
        largest = fmax(largest, gap);
        gaps += gap;
        ++filled;
    }
    if (ece) *ece = filled ? sum / n : NAN;
    if (mce) *mce = filled ? largest : NAN;
    if (ace) *ace = filled ? gaps / filled : NAN;
}

rcn_brier rcn_calib_brier(const rcn_calib *calib) {
    rcn_brier out = {NAN, NAN, NAN, NAN, NAN};
    double n = 0, marked = 0, reliability = 0, resolution = 0;
    double bin[3];
    for (int b = 0; b < calib->options.bins; ++b) {
        pool(bin, calib, calib->sums, b);
        n += bin[0];
        marked += bin[2];
    }
    if (!(n > 0)) return out;
    const double share = marked / n;
    for (int b = 0; b < calib->options.bins; ++b) {
        pool(bin, calib, calib->sums, b);
        if (!(bin[0] > 0)) continue;
        const double gap = (bin[1] - bin[2]) / bin[0], off = bin[2] / bin[0] - share;
        reliability += bin[0] * gap * gap;
        resolution += bin[0] * off * off;
    }
    out.brier = brier_of(calib, calib->sums, 0, calib->raters);
    out.reliability = reliability / n;
    out.resolution = resolution / n;
    out.uncertainty = share * (1.0 - share);
    out.remainder = out.brier - (out.reliability - out.resolution + out.uncertainty);
    return out;
}
