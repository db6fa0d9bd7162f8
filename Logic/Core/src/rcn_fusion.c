// SPDX-License-Identifier: Apache-2.0
/* Fusion of one structure's masks (rcn_fusion.h lists the methods).
 *
 * All but two methods depend on a voxel's pattern of answers alone. They are worked out once for
 * each pattern, weighted by the voxels that carry it, and one look-up per voxel makes the map; a
 * round of STAPLE or SIMPLE costs as much as there are patterns, however many the voxels. The
 * other two, SOFT_GAUSSIAN and SVLS, smooth the mean vote over neighboring voxels.
 */
#include "rcn/rcn_fusion.h"

#include <math.h>
#include <string.h>

#include "rcn_rng.h"
#include "rcn_smooth.h"
#include "rcn_votes_private.h"

/* ---- names and options ----------------------------------------------------------------------- */

static const char *const METHOD_NAMES[] = {"orc",           "random", "median", "soft",
                                           "soft-gaussian", "staple", "simple", "svls"};
enum { METHOD_COUNT = sizeof METHOD_NAMES / sizeof *METHOD_NAMES, MAX_SIGMA = 64 };

const char *rcn_method_name(rcn_method method) {
    return (unsigned)method < METHOD_COUNT ? METHOD_NAMES[method] : NULL;
}

const char *rcn_fusion_check(const rcn_fusion_options *options) {
    if (!options) return "No options were given.";
    if (!rcn_method_name(options->method)) return "Unknown fusion method.";
    if (options->tie != RCN_TIE_FOREGROUND && options->tie != RCN_TIE_BACKGROUND)
        return "The tie must be foreground or background.";
    /* Written as !(a > b), so that NaN is refused with the rest. */
    if (!(options->sigma > 0 && options->sigma <= MAX_SIGMA))
        return "The width sigma must be greater than 0 and at most 64 voxels.";
    if (!(options->staple_confidence > 0) || !isfinite(options->staple_confidence))
        return "STAPLE's confidence weight must be greater than 0.";
    if (!(options->staple_tolerance >= 0)) return "STAPLE's tolerance must not be negative.";
    if (options->staple_iterations < 1) return "STAPLE needs at least one iteration.";
    if (!(options->simple_alpha >= 0) || !isfinite(options->simple_alpha))
        return "SIMPLE's alpha must not be negative.";
    return NULL;
}

/* ---- STAPLE ---------------------------------------------------------------------------------- */

/* Patterns in a chunk of either step. Fixed, so that sums by chunk have the same bits for any
 * number of threads. */
enum { PATTERN_CHUNK = 4096 };

/* What the M step divides, by rater. W is the posterior of a pattern times its voxels. */
typedef struct staple_sums {
    double w[RCN_MAX_RATERS];        /* sum of W where rater r answered */
    double w_marked[RCN_MAX_RATERS]; /* ... and marked */
    double b[RCN_MAX_RATERS];        /* sum of 1 - W where rater r answered */
    double b_unmarked[RCN_MAX_RATERS];
} staple_sums;

typedef struct staple_job {
    const rcn_pattern *patterns;
    const int64_t *voxels;
    int64_t count;
    int raters;
    double *posterior;
    staple_sums *sums; /* per chunk, so that they add up in a fixed order */
    /* The patterns that occur in the region: few, also where 2^16 are possible. The others are
     * worked out once, at the end (NULL: all of them, in order). */
    const int64_t *occurring;
    double log_prior, log_rest;
    /* log of p, 1 - p, q, 1 - q by rater; -inf where that is 0 */
    double log_p[RCN_MAX_RATERS], log_miss[RCN_MAX_RATERS];
    double log_q[RCN_MAX_RATERS], log_alarm[RCN_MAX_RATERS];
} staple_job;

/* M step of one chunk: what p and q are made of. */
static void staple_sum_chunk(int64_t chunk, int thread, void *payload) {
    const staple_job *job = payload;
    staple_sums sums;
    int64_t first, end;
    (void)thread;
    memset(&sums, 0, sizeof sums);
    rcn__chunk_range(&first, &end, chunk, job->count, PATTERN_CHUNK);
    for (int64_t k = first; k < end; ++k) {
        const int64_t i = job->occurring[k];
        const double w = job->posterior[i] * (double)job->voxels[i];
        const double b = (1.0 - job->posterior[i]) * (double)job->voxels[i];
        for (int r = 0; r < job->raters; ++r) {
            if (!(job->patterns[i].answered >> r & 1)) continue;
            sums.w[r] += w;
            sums.b[r] += b;
            if (job->patterns[i].marked >> r & 1)
                sums.w_marked[r] += w;
            else
                sums.b_unmarked[r] += b;
        }
    }
    job->sums[chunk] = sums;
}

/* E step of one chunk: W by Bayes' rule, in logarithms so that 64 factors cannot underflow. */
static void staple_posterior_chunk(int64_t chunk, int thread, void *payload) {
    const staple_job *job = payload;
    int64_t first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, job->count, PATTERN_CHUNK);
    for (int64_t k = first; k < end; ++k) {
        const int64_t i = job->occurring ? job->occurring[k] : k;
        double a = job->log_prior, b = job->log_rest;
        for (int r = 0; r < job->raters; ++r) {
            if (!(job->patterns[i].answered >> r & 1)) continue;
            if (job->patterns[i].marked >> r & 1) {
                a += job->log_p[r];
                b += job->log_alarm[r];
            } else {
                a += job->log_miss[r];
                b += job->log_q[r];
            }
        }
        /* Both impossible (0/0, which is NaN elsewhere): the estimate has run into a corner between
         * raters who are believed to be perfect; the last value stands. */
        if (a == -INFINITY && b == -INFINITY) continue;
        job->posterior[i] = 1.0 / (1.0 + exp(b - a));
    }
}

/* The M step for one rater (Warfield et al. 2004): p = sum(W y) / sum(W) and
 * q = sum((1 - W)(1 - y)) / sum(1 - W), from the chunks' sums. Returns how far p or q moved;
 * infinity the first time. */
static double staple_update_rater(rcn_fusion_result *found, staple_job *job, int r,
                                  int64_t chunks) {
    double w = 0, w_marked = 0, b = 0, b_unmarked = 0, change = 0;
    for (int64_t c = 0; c < chunks; ++c) {
        w += job->sums[c].w[r];
        w_marked += job->sums[c].w_marked[r];
        b += job->sums[c].b[r];
        b_unmarked += job->sums[c].b_unmarked[r];
    }
    /* Without foreground (or background) there is nothing to be sensitive to. */
    const double p = w > 0 ? fmin(w_marked / w, 1.0) : NAN;
    const double q = b > 0 ? fmin(b_unmarked / b, 1.0) : NAN;
    if (found->iterations == 0) {
        change = INFINITY;
    } else {
        if (!isnan(p)) change = fmax(change, fabs(p - found->sensitivity[r]));
        if (!isnan(q)) change = fmax(change, fabs(q - found->specificity[r]));
    }
    found->sensitivity[r] = p;
    found->specificity[r] = q;
    /* An undefined factor belongs to a side whose prior is already impossible. */
    job->log_p[r] = isnan(p) ? 0 : log(p);
    job->log_miss[r] = isnan(p) ? 0 : log(1.0 - p);
    job->log_q[r] = isnan(q) ? 0 : log(q);
    job->log_alarm[r] = isnan(q) ? 0 : log(1.0 - q);
    return change;
}

rcn_status rcn_staple(double *posterior, rcn_fusion_result *result, rcn_context *ctx,
                      const rcn_pattern *patterns, const int64_t *voxels, int64_t count, int raters,
                      const rcn_fusion_options *options) {
    rcn_status status;
    staple_job job = {patterns, voxels, count, raters, NULL, NULL, NULL, 0, 0, {0}, {0}, {0}, {0}};
    rcn_fusion_result found;
    int64_t *occurring = NULL;
    rcn__clear(ctx);
    memset(&found, 0, sizeof found);
    const char *sentence = rcn_fusion_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_ALLOC(job.posterior, ctx, count, "STAPLE's posterior");
    RCN_ALLOC(occurring, ctx, count, "the patterns that occur");
    job.occurring = occurring;
    job.count = 0;
    for (int64_t i = 0; i < count; ++i)
        if (voxels[i]) occurring[job.count++] = i;
    const int64_t chunks = rcn__chunk_count(job.count, PATTERN_CHUNK);
    RCN_ALLOC(job.sums, ctx, chunks, "STAPLE's sums");

    double total = 0, mean = 0;
    for (int64_t i = 0; i < count; ++i) {
        job.posterior[i] = rcn__pattern_mean(&patterns[i]);
        /* A voxel that nobody answered says nothing about the prior. */
        if (!patterns[i].answered) continue;
        total += (double)voxels[i];
        mean += (double)voxels[i] * job.posterior[i];
        found.region_voxels += voxels[i];
    }
    mean = total > 0 ? mean / total : 0;
    /* ITK's confidence weight may be above 1; a probability is not. */
    found.prior = fmin(mean * options->staple_confidence, 1.0);
    job.log_prior = log(found.prior);
    job.log_rest = log(1.0 - found.prior);
    for (int r = 0; r < RCN_MAX_RATERS; ++r) found.sensitivity[r] = found.specificity[r] = NAN;

    for (int iteration = 0; iteration < options->staple_iterations && !found.converged;
         ++iteration) {
        double change = 0;
        RCN_TRY(
            rcn__for_chunks(ctx, "estimating raters' performance", chunks, staple_sum_chunk, &job));
        for (int r = 0; r < raters; ++r)
            change = fmax(change, staple_update_rater(&found, &job, r, chunks));
        RCN_TRY(rcn__for_chunks(ctx, "estimating the hidden truth", chunks, staple_posterior_chunk,
                                &job));
        found.iterations = iteration + 1;
        found.converged = change <= options->staple_tolerance;
    }
    /* Patterns outside of the region, too, get the posterior that the raters' p and q give them. */
    job.occurring = NULL;
    job.count = count;
    RCN_TRY(rcn__for_chunks(ctx, "estimating the hidden truth",
                            rcn__chunk_count(count, PATTERN_CHUNK), staple_posterior_chunk, &job));
    for (int r = 0; r < raters; ++r)
        /* Worse than guessing: for this rater foreground and background have changed places. NaN
         * compares as false. */
        if (found.sensitivity[r] + found.specificity[r] < 1) found.inverted |= UINT64_C(1) << r;
    /* Nobody answered: no opinion, and nothing to report as foreground. */
    for (int64_t i = 0; i < count; ++i)
        posterior[i] = patterns[i].answered ? job.posterior[i] : 0.0;
    if (result) *result = found;
done:
    rcn__free(ctx, occurring);
    rcn__free(ctx, job.posterior);
    rcn__free(ctx, job.sums);
    return status;
}

static rcn_status fuse_staple(float *table, rcn_fusion_result *result, rcn_context *ctx,
                              const rcn_votes *votes, const rcn_fusion_options *options) {
    rcn_status status;
    double *posterior = NULL;
    int64_t *voxels = NULL;
    const int64_t count = votes->pattern_count;
    RCN_ALLOC(posterior, ctx, count, "STAPLE's posterior");
    RCN_ALLOC_ZERO(voxels, ctx, count, "the histogram of patterns");
    RCN_TRY(rcn__votes_count_around(voxels, ctx, votes, options->staple_margin));
    RCN_TRY(
        rcn_staple(posterior, result, ctx, votes->patterns, voxels, count, votes->raters, options));
    for (int64_t i = 0; i < count; ++i)
        table[i] = options->staple_output == RCN_STAPLE_MASK ? (float)(posterior[i] >= 0.5)
                                                             : (float)posterior[i];
done:
    rcn__free(ctx, posterior);
    rcn__free(ctx, voxels);
    return status;
}

/* ---- SIMPLE ---------------------------------------------------------------------------------- */

/* 1, 0 or the tie rule for `marked` against the rest. Nothing against nothing (nobody answered, or
 * only raters of weight 0) is background under either rule. */
static uint8_t majority(double marked, double unmarked, rcn_tie tie) {
    if (marked > unmarked) return 1;
    return marked == unmarked && marked > 0 && tie == RCN_TIE_FOREGROUND;
}

/* Estimate by pattern: the weighted majority of the kept raters who answered. */
static void simple_estimate(uint8_t *estimate, const rcn_votes *votes, const double *weight,
                            uint64_t kept, rcn_tie tie) {
    for (int64_t i = 0; i < votes->pattern_count; ++i) {
        double marked = 0, unmarked = 0;
        for (int r = 0; r < votes->raters; ++r) {
            if (!((votes->patterns[i].answered & kept) >> r & 1)) continue;
            if (votes->patterns[i].marked >> r & 1)
                marked += weight[r];
            else
                unmarked += weight[r];
        }
        estimate[i] = majority(marked, unmarked, tie);
    }
}

/* Dice of each rater with the estimate, where the rater answered; both empty is full agreement. */
static void simple_performance(double *performance, const rcn_votes *votes,
                               const uint8_t *estimate) {
    for (int r = 0; r < votes->raters; ++r) {
        int64_t both = 0, sum = 0;
        for (int64_t i = 0; i < votes->pattern_count; ++i) {
            if (!(votes->patterns[i].answered >> r & 1)) continue;
            const int mark = (int)(votes->patterns[i].marked >> r & 1);
            both += mark && estimate[i] ? votes->patterns[i].voxels : 0;
            sum += (mark + estimate[i]) * votes->patterns[i].voxels;
        }
        performance[r] = sum ? 2.0 * (double)both / (double)sum : 1.0;
    }
}

/* Langerak et al. 2010: estimate by majority; measure each rater's Dice with it; drop those below
 * mean - alpha * deviation; estimate anew by a majority weighted by Dice; until nothing changes.
 * Half of the raters, and at least two, always stay. */
static rcn_status fuse_simple(float *table, rcn_fusion_result *result, rcn_context *ctx,
                              const rcn_votes *votes, const rcn_fusion_options *options) {
    rcn_status status;
    uint8_t *estimate = NULL, *last = NULL;
    double weight[RCN_MAX_RATERS], performance[RCN_MAX_RATERS] = {0};
    uint64_t kept = votes->present;
    const int present = rcn_popcount(kept);
    const int at_least = (present + 1) / 2 > 2 ? (present + 1) / 2 : 2;
    RCN_ALLOC(estimate, ctx, votes->pattern_count, "SIMPLE's estimate");
    RCN_ALLOC(last, ctx, votes->pattern_count, "SIMPLE's estimate");
    for (int r = 0; r < RCN_MAX_RATERS; ++r) weight[r] = 1;
    simple_estimate(estimate, votes, weight, kept, options->tie);

    /* Each round drops a rater or ends, or moves the estimate; the bound only guards against a
     * cycle of weights around a tie. */
    const int limit = 100;
    int iterations = 0, converged = 0;
    while (!converged && iterations < limit) {
        ++iterations;
        RCN_TRY(rcn__report(ctx, (double)iterations / limit, "selecting raters"));
        simple_performance(performance, votes, estimate);
        double mean = 0, variance = 0;
        const int now = rcn_popcount(kept);
        for (int r = 0; r < votes->raters; ++r)
            if (kept >> r & 1) mean += performance[r] / now;
        for (int r = 0; r < votes->raters; ++r)
            if (kept >> r & 1) variance += (performance[r] - mean) * (performance[r] - mean) / now;
        /* The margin keeps equal raters together when rounding makes them differ in the last bit.
         */
        const double cut = mean - options->simple_alpha * sqrt(variance) - 1e-12;
        uint64_t next = kept;
        /* Worst first, so that the smallest permitted number keeps the best. */
        while (rcn_popcount(next) > at_least) {
            int worst = -1;
            for (int r = 0; r < votes->raters; ++r)
                if (next >> r & 1 && (worst < 0 || performance[r] < performance[worst])) worst = r;
            if (performance[worst] >= cut) break;
            next &= ~(UINT64_C(1) << worst);
        }
        memcpy(last, estimate, (size_t)votes->pattern_count);
        simple_estimate(estimate, votes, performance, next, options->tie);
        converged = next == kept && !memcmp(last, estimate, (size_t)votes->pattern_count);
        kept = next;
    }
    for (int64_t i = 0; i < votes->pattern_count; ++i) table[i] = estimate[i];
    result->iterations = iterations;
    result->converged = converged;
    result->kept = kept;
    for (int r = 0; r < votes->raters; ++r)
        result->weight[r] = votes->present >> r & 1 ? performance[r] : NAN;
done:
    rcn__free(ctx, estimate);
    rcn__free(ctx, last);
    return status;
}

/* ---- the methods that look at one pattern at a time ------------------------------------------ */

/* The rater drawn for RANDOM, of those who are present: the left-th bit that is set. */
static int draw_rater(const rcn_votes *votes, uint64_t seed) {
    rcn_rng rng = rcn__rng_make(seed, 0);
    int left = (int)rcn__rng_below(&rng, (uint64_t)rcn_popcount(votes->present));
    int r = 0;
    for (;; ++r) {
        if (!(votes->present >> r & 1)) continue;
        if (left-- == 0) return r;
    }
}

static rcn_status fuse_patterns(float *table, rcn_fusion_result *result, rcn_context *ctx,
                                const rcn_votes *votes, const rcn_fusion_options *options) {
    const rcn_pattern *patterns = votes->patterns;
    const int64_t count = votes->pattern_count;
    int drawn;
    switch (options->method) {
    case RCN_ORC:
        for (int64_t i = 0; i < count; ++i) table[i] = (float)rcn_popcount(patterns[i].marked);
        return RCN_OK;
    case RCN_RANDOM:
        drawn = draw_rater(votes, options->seed);
        result->kept = UINT64_C(1) << drawn;
        for (int64_t i = 0; i < count; ++i) table[i] = (float)(patterns[i].marked >> drawn & 1);
        return RCN_OK;
    case RCN_MEDIAN:
        for (int64_t i = 0; i < count; ++i) {
            const int marked = rcn_popcount(patterns[i].marked);
            table[i] = majority(marked, rcn_popcount(patterns[i].answered) - marked, options->tie);
        }
        return RCN_OK;
    case RCN_STAPLE: return fuse_staple(table, result, ctx, votes, options);
    case RCN_SIMPLE: return fuse_simple(table, result, ctx, votes, options);
    /* SOFT, and what SOFT_GAUSSIAN and SVLS smooth. */
    default: rcn__votes_mean_table(table, votes); return RCN_OK;
    }
}

/* ---- neighborhoods -------------------------------------------------------------------------- */

typedef struct smooth_job {
    const rcn_votes *votes; /* svls */
    const float *table;     /* svls: what is smoothed, by pattern */
    const int64_t *size;    /* Gaussian */
    int reach[3];           /* svls: 1; 0 across the thin axis of a 2-D image */
    float *out;
    double *lines; /* scratch per thread */
    int64_t line_room;
    double kernel[4 * MAX_SIGMA + 1]; /* half of the Gaussian, center first */
    int radius;
    int axis;
    double svls[4]; /* weight of a neighbor that is off along 0, 1, 2 or 3 axes */
} smooth_job;

/* Lines along an axis are filtered this many at a time, side by side, so that the compiler can use
 * wide registers. Neighboring lines lie one voxel apart, or one row apart along x. Scratch is
 * (length + 2 radius, LINES): the same position of all lines is one vector. */
enum { LINES = 16 };

static int64_t clamp(int64_t i, int64_t end) { return i < 0 ? 0 : i >= end ? end - 1 : i; }

/* One position of all lines. The kernel is symmetric: either side is added before it is
 * multiplied. */
RCN_DISPATCH static void gaussian_point(double *restrict sum, const double *restrict center,
                                        const double *restrict kernel, int64_t radius) {
    for (int w = 0; w < LINES; ++w) sum[w] = kernel[0] * center[w];
    for (int64_t k = 1; k <= radius; ++k)
        for (int w = 0; w < LINES; ++w)
            sum[w] += kernel[k] * (center[w - k * LINES] + center[w + k * LINES]);
}

/* LINES lines along the axis, in place: a chunk reads and writes its own lines only, and reads all
 * of them before it writes. */
static void gaussian_chunk(int64_t chunk, int thread, void *payload) {
    const smooth_job *job = payload;
    const int64_t *size = job->size;
    double *lines = job->lines + thread * job->line_room;
    const int64_t length = size[job->axis];
    int64_t start, stride, lane, width;
    if (job->axis == 0) {
        const int64_t rows = size[1] * size[2], row = chunk * LINES;
        start = row * size[0];
        stride = 1;
        lane = size[0];
        width = rows - row < LINES ? rows - row : LINES;
    } else {
        const int64_t blocks = rcn__chunk_count(size[0], LINES);
        const int64_t x = chunk % blocks * LINES, plane = chunk / blocks;
        start = x + plane * (job->axis == 1 ? size[0] * size[1] : size[0]);
        stride = job->axis == 1 ? size[0] : size[0] * size[1];
        lane = 1;
        width = size[0] - x < LINES ? size[0] - x : LINES;
    }
    /* Copy with the border repeated `radius` times on either side, then convolve. */
    for (int64_t i = -job->radius; i < length + job->radius; ++i) {
        const float *in = job->out + start + clamp(i, length) * stride;
        for (int64_t w = 0; w < width; ++w) lines[(i + job->radius) * LINES + w] = in[w * lane];
    }
    for (int64_t i = 0; i < length; ++i) {
        double sum[LINES];
        gaussian_point(sum, lines + (i + job->radius) * LINES, job->kernel, job->radius);
        for (int64_t w = 0; w < width; ++w) job->out[start + i * stride + w * lane] = (float)sum[w];
    }
}

rcn_status rcn__smooth_gaussian(float *map, rcn_context *ctx, const int64_t size[3], double sigma) {
    rcn_status status = RCN_OK;
    smooth_job space = {.size = size, .out = map}, *job = &space;
    job->radius = (int)(4.0 * sigma + 0.5);
    double sum = 0;
    for (int k = 0; k <= job->radius; ++k) {
        const double off = k / sigma; /* a tiny sigma squared would be 0, and 0 / 0 no weight */
        job->kernel[k] = exp(-0.5 * off * off);
        sum += k ? 2 * job->kernel[k] : job->kernel[k];
    }
    for (int k = 0; k <= job->radius; ++k) job->kernel[k] /= sum;

    int64_t longest = 0;
    for (int a = 0; a < 3; ++a)
        if (size[a] > longest) longest = size[a];
    job->line_room = (longest + 2 * job->radius) * LINES;
    /* Zeroed, because the last chunk may have fewer lines than lanes: the lanes without a line are
     * computed, too, and thrown away. */
    RCN_ALLOC_ZERO(job->lines, ctx, job->line_room * ctx->threads, "smoothing");
    /* The Gaussian is separable: three passes of 2 radius + 1 taps instead of their cube. */
    for (job->axis = 0; job->axis < 3; ++job->axis) {
        if (size[job->axis] == 1) continue;
        const int64_t chunks = job->axis == 0 ? rcn__chunk_count(size[1] * size[2], LINES)
                                              : rcn__chunk_count(size[0], LINES) *
                                                    (job->axis == 1 ? size[2] : size[1]);
        RCN_TRY(rcn__for_chunks(ctx, "smoothing", chunks, gaussian_chunk, job));
    }
done:
    rcn__free(ctx, job->lines);
    return status;
}

/* One row of voxels. The sums over x are the same for the whole row: gather nine (2-D: three, or
 * one) rows by their distance off the axes, then run along x. */
static void svls_row(int64_t row, int thread, void *payload) {
    const smooth_job *job = payload;
    const rcn_votes *votes = job->votes;
    const int64_t *size = votes->geometry.size;
    const int64_t y = row % size[1], z = row / size[1];
    const int *reach = job->reach;
    /* by[d][x]: sum over the rows that are off d of the axes y and z */
    double *by[3];
    for (int d = 0; d < 3; ++d) {
        by[d] = job->lines + thread * job->line_room + d * size[0];
        memset(by[d], 0, (size_t)size[0] * sizeof **by);
    }
    for (int dz = -reach[2]; dz <= reach[2]; ++dz)
        for (int dy = -reach[1]; dy <= reach[1]; ++dy) {
            const int64_t at =
                size[0] * (clamp(y + dy, size[1]) + size[1] * clamp(z + dz, size[2]));
            double *sum = by[(dy != 0) + (dz != 0)];
            uint32_t codes[256];
            for (int64_t x = 0; x < size[0]; x += 256) {
                const int64_t n = size[0] - x < 256 ? size[0] - x : 256;
                rcn__votes_read(codes, votes, at + x, n);
                for (int64_t i = 0; i < n; ++i) sum[x + i] += job->table[codes[i]];
            }
        }
    for (int64_t x = 0; x < size[0]; ++x) {
        const int64_t left = x ? x - 1 : 0, right = x + 1 < size[0] ? x + 1 : x;
        double value = 0;
        for (int d = 0; d <= reach[1] + reach[2]; ++d) {
            value += job->svls[d] * by[d][x];
            if (reach[0]) value += job->svls[d + 1] * (by[d][left] + by[d][right]);
        }
        job->out[size[0] * row + x] = (float)value;
    }
}

/* Islam and Glocker 2021: a 3^d Gaussian whose center is given the weight of all its neighbors
 * together, which normalized is one half. A neighbor's weight depends only on how many axes it is
 * off. */
static rcn_status smooth_svls(smooth_job *job, rcn_context *ctx, double sigma) {
    rcn_status status = RCN_OK;
    const int64_t *size = job->votes->geometry.size;
    static const double neighbors[2][4] = {{0, 4, 4, 0}, {0, 6, 12, 8}}; /* face, edge, corner */
    const int thin = rcn_geometry_thin_axis(&job->votes->geometry);
    double sum = 0;
    for (int a = 0; a < 3; ++a) job->reach[a] = a != thin;
    for (int d = 1; d <= 3; ++d) {
        /* Relative to a face neighbor, so that a narrow Gaussian leaves a sum to divide by. */
        job->svls[d] = d == 1 ? 1.0 : exp(-0.5 * (d - 1) / (sigma * sigma));
        sum += neighbors[thin < 0][d] * job->svls[d];
    }
    job->svls[0] = 0.5;
    for (int d = 1; d <= 3; ++d) job->svls[d] *= 0.5 / sum;
    job->line_room = 3 * size[0];
    RCN_ALLOC(job->lines, ctx, job->line_room * ctx->threads, "smoothing");
    RCN_TRY(rcn__for_chunks(ctx, "smoothing", size[1] * size[2], svls_row, job));
done:
    rcn__free(ctx, job->lines);
    return status;
}

/* out = the table's values smoothed, as if every voxel counted. */
static rcn_status smooth(float *out, rcn_context *ctx, const rcn_votes *votes, const float *table,
                         const rcn_fusion_options *options) {
    rcn_status status;
    smooth_job job = {.votes = votes, .table = table, .out = out};
    if (options->method == RCN_SVLS) return smooth_svls(&job, ctx, options->sigma);
    RCN_TRY(rcn_votes_expand(out, ctx, votes, table));
    RCN_TRY(rcn__smooth_gaussian(out, ctx, votes->geometry.size, options->sigma));
done:
    return status;
}

typedef struct gap_job {
    const rcn_votes *votes;
    const float *answered; /* by pattern: 1 where somebody did */
    const float *weight;   /* the same smoothed, by voxel */
    float *out;
} gap_job;

static void divide_chunk(int64_t chunk, int thread, void *payload) {
    const gap_job *job = payload;
    int64_t first, end;
    uint32_t codes[256];
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    for (; first < end; first += 256) {
        const int64_t n = end - first < 256 ? end - first : 256;
        rcn__votes_read(codes, job->votes, first, n);
        for (int64_t i = 0; i < n; ++i)
            job->out[first + i] = job->answered[codes[i]] > 0
                                      ? fminf(job->out[first + i] / job->weight[first + i], 1.0f)
                                      : 0.0f;
    }
}

/* Normalized convolution (Knutsson and Westin 1993): a voxel that nobody answered is no background,
 * so it has no weight in its neighbors' means. m is 0 there already; the sum of weights is
 * missing.
 */
static rcn_status divide_by_answered(float *out, rcn_context *ctx, const rcn_votes *votes,
                                     const rcn_fusion_options *options) {
    rcn_status status;
    float *answered = NULL, *weight = NULL;
    RCN_ALLOC(answered, ctx, votes->pattern_count, "the values by pattern");
    RCN_ALLOC(weight, ctx, votes->voxels, "the weights of answers");
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        answered[p] = votes->patterns[p].answered ? 1.0f : 0.0f;
    RCN_TRY(smooth(weight, ctx, votes, answered, options));
    gap_job job = {votes, answered, weight, out};
    RCN_TRY(rcn__for_chunks(ctx, "smoothing", rcn__chunk_count(votes->voxels, RCN_CHUNK),
                            divide_chunk, &job));
done:
    rcn__free(ctx, weight);
    rcn__free(ctx, answered);
    return status;
}

/* ---- entries --------------------------------------------------------------------------------- */

static rcn_status check_arguments(rcn_context *ctx, const void *out, const rcn_votes *votes,
                                  const rcn_fusion_options *options) {
    rcn__clear(ctx);
    const char *sentence = rcn_fusion_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    return rcn__votes_check(ctx, out, votes, 0);
}

rcn_status rcn_fuse_patterns(float *table, rcn_fusion_result *result, rcn_context *ctx,
                             const rcn_votes *votes, const rcn_fusion_options *options) {
    rcn_fusion_result found;
    if (!ctx) return RCN_EINVALID;
    rcn_status status = check_arguments(ctx, table, votes, options);
    if (status != RCN_OK) return status;
    if (options->method == RCN_SOFT_GAUSSIAN || options->method == RCN_SVLS)
        return rcn__fail(ctx, RCN_EINVALID, "%s cannot be computed from the votes table alone.",
                         rcn_method_name(options->method));
    memset(&found, 0, sizeof found);
    status = fuse_patterns(table, &found, ctx, votes, options);
    if (status == RCN_OK && result) *result = found;
    return status;
}

rcn_status rcn_fuse(float *out, rcn_fusion_result *result, rcn_context *ctx, const rcn_votes *votes,
                    const rcn_fusion_options *options) {
    float *table = NULL;
    rcn_fusion_result found;
    if (!ctx) return RCN_EINVALID;
    rcn_status status = check_arguments(ctx, out, votes, options);
    if (status != RCN_OK) return status;
    memset(&found, 0, sizeof found);
    RCN_ALLOC(table, ctx, votes->pattern_count, "the values by pattern");
    RCN_TRY(fuse_patterns(table, &found, ctx, votes, options));
    if (options->method == RCN_SOFT_GAUSSIAN || options->method == RCN_SVLS) {
        RCN_TRY(smooth(out, ctx, votes, table, options));
        if (votes->unanswered) RCN_TRY(divide_by_answered(out, ctx, votes, options));
    } else {
        RCN_TRY(rcn_votes_expand(out, ctx, votes, table));
    }
    if (result) *result = found;
done:
    rcn__free(ctx, table);
    return status;
}

rcn_status rcn_fuse_masks(float *out, rcn_fusion_result *result, rcn_context *ctx,
                          const rcn_mask *masks, int raters, const rcn_fusion_options *options) {
    rcn_status status;
    rcn_votes *votes = NULL;
    float *table = NULL;
    rcn_fusion_result found;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const char *sentence = rcn_fusion_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    /* STAPLE with a margin needs codes to count in a box; the neighborhoods need them to look
     * around. */
    const int by_pattern = options->method != RCN_SOFT_GAUSSIAN && options->method != RCN_SVLS &&
                           (options->method != RCN_STAPLE || options->staple_margin < 0);
    if (by_pattern) RCN_TRY(rcn__votes_count_masks(&votes, ctx, masks, raters));
    if (!votes) {
        RCN_TRY(rcn_votes_from_masks(&votes, ctx, masks, raters));
        RCN_TRY(rcn_fuse(out, result, ctx, votes, options));
        goto done;
    }
    RCN_TRY(check_arguments(ctx, out, votes, options));
    memset(&found, 0, sizeof found);
    RCN_ALLOC(table, ctx, votes->pattern_count, "the values by pattern");
    RCN_TRY(fuse_patterns(table, &found, ctx, votes, options));
    RCN_TRY(rcn__votes_expand_masks(out, ctx, votes, masks, table));
    if (result) *result = found;
done:
    rcn__free(ctx, table);
    rcn_votes_destroy(votes);
    return status;
}
