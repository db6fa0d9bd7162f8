// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_bootstrap.h"

#include <math.h>
#include <string.h>

#include "rcn_calib_private.h"
#include "rcn_rng.h"

/* Fine cells put together for the AUC of a draw, [COARSE][4]: pairs, marked; voxels with a
 * reference, foreground. */
enum { FOLD = 4, COARSE = (RCN_FINE + FOLD - 1) / FOLD };

/* Cases in a draw, as a share of all of them: the paper's. The deviation of the draws is therefore
 * 1 / sqrt(0.6) times that of a figure of all cases. */
#define SHARE 0.6

const char *rcn_bootstrap_check(const rcn_bootstrap_options *options) {
    if (!options) return NULL;
    if (options->draws < 1 || options->draws > 1000000) return "There must be 1 to 1000000 draws.";
    return NULL;
}

/* Draws made side by side: a case is unpacked once for all of them. */
enum { SIDE_BY_SIDE = 32 };

typedef struct draw_job {
    const rcn_calib *const *cases;
    int64_t count, taken;
    int draws;
    uint64_t seed;
    int64_t length;   /* of the sums without the fine histogram */
    double **scratch; /* per thread: [1 + SIDE_BY_SIDE][length + 4 * COARSE], the first of a case */
    int **weights;    /* per thread: [SIDE_BY_SIDE][count] */
    double *results;  /* [draws][RCN_FIGURES] */
} draw_job;

static int64_t row_length(const draw_job *job) { return job->length + INT64_C(4) * COARSE; }

static void fill_row(double *row, const rcn_calib *calib, int64_t length) {
    double *coarse = row + length;
    rcn__fine fine;
    const double *own;
    memcpy(row, calib->sums, sizeof *row * (size_t)length);
    memset(coarse, 0, sizeof *coarse * 4 * COARSE);
    rcn__fine_begin(&fine, calib);
    while ((own = rcn__fine_next(&fine)) != NULL) {
        double *cell = coarse + 4 * (fine.cell / FOLD);
        cell[0] += own[0];
        cell[1] += own[1];
        cell[2] += own[3];
        cell[3] += own[4];
    }
}

RCN_DISPATCH static void add_row(double *restrict sum, const double *restrict row, double weight,
                                 int64_t length) {
    for (int64_t i = 0; i < length; ++i) sum[i] += weight * row[i];
}

static void sum_figures(double out[RCN_FIGURES], const double *sum, const draw_job *job) {
    const double *coarse = sum + job->length;
    rcn__figures(out, job->cases[0], sum);
    out[RCN_AUC_HISTOGRAM] = rcn__auc_cells(coarse + 2, coarse + 3, 4, COARSE);
    out[RCN_AUC_PAIRS_HISTOGRAM] = rcn__auc_cells(coarse, coarse + 1, 4, COARSE);
}

/* How often draw number `number` takes each case. */
static void draw_cases(int *weights, uint64_t seed, int64_t number, int64_t count, int64_t taken) {
    rcn_rng rng = rcn__rng_make(seed, (uint64_t)number);
    memset(weights, 0, sizeof *weights * (size_t)count);
    for (int64_t i = 0; i < taken; ++i) ++weights[rcn__rng_below(&rng, (uint64_t)count)];
}

static int64_t cases_in_draw(int64_t count) {
    const int64_t taken = (int64_t)(SHARE * (double)count + 0.5);
    return taken < 1 ? 1 : taken;
}

static void draw(int64_t chunk, int thread, void *payload) {
    const draw_job *job = payload;
    const int64_t length = row_length(job), first = chunk * SIDE_BY_SIDE;
    const int64_t draws = job->draws - first < SIDE_BY_SIDE ? job->draws - first : SIDE_BY_SIDE;
    double *row = job->scratch[thread], *sums = row + length;
    int *weights = job->weights[thread];
    for (int64_t d = 0; d < draws; ++d)
        draw_cases(weights + d * job->count, job->seed, first + d, job->count, job->taken);
    memset(sums, 0, sizeof *sums * (size_t)(draws * length));
    for (int64_t i = 0; i < job->count; ++i) {
        fill_row(row, job->cases[i], job->length);
        for (int64_t d = 0; d < draws; ++d) {
            const int weight = weights[d * job->count + i];
            if (weight) add_row(sums + d * length, row, weight, length);
        }
    }
    for (int64_t d = 0; d < draws; ++d)
        sum_figures(job->results + (first + d) * RCN_FIGURES, sums + d * length, job);
}

/* Of figure number `figure`, over the draws in which it is defined. */
static rcn_spread spread_of(const double *results, int draws, int figure) {
    rcn_spread out = {NAN, NAN, 0};
    double sum = 0, squares = 0;
    for (int d = 0; d < draws; ++d) {
        const double value = results[(int64_t)d * RCN_FIGURES + figure];
        if (isnan(value)) continue;
        sum += value;
        ++out.draws;
    }
    if (!out.draws) return out;
    out.mean = sum / out.draws;
    for (int d = 0; d < draws; ++d) {
        const double value = results[(int64_t)d * RCN_FIGURES + figure];
        if (!isnan(value)) squares += (value - out.mean) * (value - out.mean);
    }
    out.std = out.draws > 1 ? sqrt(squares / (out.draws - 1)) : 0.0;
    return out;
}

static rcn_status check_draws(rcn_context *ctx, const void *out, const rcn_calib *const *cases,
                              int64_t count, const rcn_bootstrap_options *options) {
    const char *sentence = rcn_bootstrap_check(options);
    if (!sentence && (!out || !cases || count < 1)) sentence = "No cases or no output were given.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    return rcn__check_cases(ctx, cases, count, cases[0]);
}

rcn_status rcn_bootstrap(rcn_spread out[RCN_FIGURES], rcn_context *ctx,
                         const rcn_calib *const *cases, int64_t count,
                         const rcn_bootstrap_options *options) {
    static const rcn_bootstrap_options defaults = RCN_BOOTSTRAP_OPTIONS_INIT;
    rcn_status status;
    draw_job job;
    memset(&job, 0, sizeof job);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!options) options = &defaults;
    RCN_TRY(check_draws(ctx, out, cases, count, options));
    const int draws = count > 1 ? options->draws : 0;
    const int beside = draws < SIDE_BY_SIDE ? draws : SIDE_BY_SIDE;
    job.cases = cases;
    job.draws = draws;
    job.count = count;
    job.taken = cases_in_draw(count);
    job.seed = options->seed;
    job.length = rcn__sum_fine(cases[0]);
    RCN_ALLOC_ZERO(job.scratch, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job.weights, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) {
        RCN_ALLOC(job.scratch[t], ctx, (1 + beside) * row_length(&job), "the sums of a draw");
        RCN_ALLOC(job.weights[t], ctx, beside * count, "the cases of a draw");
    }
    RCN_ALLOC(job.results, ctx, (int64_t)draws * RCN_FIGURES, "the draws");
    RCN_TRY(rcn__for_chunks(ctx, "drawing cases", (draws + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE, draw,
                            &job));
    for (int f = 0; f < RCN_FIGURES; ++f) out[f] = spread_of(job.results, draws, f);
done:
    for (int t = 0; t < ctx->threads; ++t) {
        if (job.scratch) rcn__free(ctx, job.scratch[t]);
        if (job.weights) rcn__free(ctx, job.weights[t]);
    }
    rcn__free(ctx, job.scratch);
    rcn__free(ctx, job.weights);
    rcn__free(ctx, job.results);
    return status;
}
