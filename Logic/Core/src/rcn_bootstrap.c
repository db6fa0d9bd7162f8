// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_bootstrap.h"

#include <math.h>
#include <string.h>

#include "rcn_calib_private.h"
#include "rcn_rng.h"

/* Fine cells put together for the AUC of a draw, [COARSE][4]: pairs, marked; voxels with a
 * reference, foreground. */
enum { FOLD = 4, COARSE = (RCN_FINE + FOLD - 1) / FOLD };

const char *rcn_bootstrap_check(const rcn_bootstrap_options *options) {
    if (!options) return NULL;
    if (options->draws < 1 || options->draws > 1000000) return "There must be 1 to 1000000 draws.";
    if (!(options->fraction > 0 && options->fraction <= 1))
        return "The share of cases in a draw must be above 0 and at most 1.";
    return NULL;
}

typedef struct draw_job {
    const rcn_calib *like;
    int64_t count, taken;
    uint64_t seed;
    int64_t length;   /* of the sums without the fine histogram */
    double *rows;     /* [count][length + 4 * COARSE] */
    double **scratch; /* per thread: [length + 4 * COARSE] */
    int **weights;    /* per thread: [count] */
    double *results;  /* [draws][RCN_FIGURES] */
} draw_job;

static int64_t row_length(const draw_job *job) { return job->length + INT64_C(4) * COARSE; }

static void fill_row(double *row, const rcn_calib *calib, int64_t length) {
    const double *fine = calib->sums + rcn__sum_fine(calib);
    double *coarse = row + length;
    memcpy(row, calib->sums, sizeof *row * (size_t)length);
    memset(coarse, 0, sizeof *coarse * 4 * COARSE);
    for (int i = 0; i < RCN_FINE; ++i) {
        double *cell = coarse + 4 * (i / FOLD);
        cell[0] += fine[5 * i];
        cell[1] += fine[5 * i + 1];
        cell[2] += fine[5 * i + 3];
        cell[3] += fine[5 * i + 4];
    }
}

RCN_DISPATCH static void add_row(double *restrict sum, const double *restrict row, double weight,
                                 int64_t length) {
    for (int64_t i = 0; i < length; ++i) sum[i] += weight * row[i];
}

/* The figures of the cases, each as often as its weight says. */
static void draw_figures(double out[RCN_FIGURES], double *sum, const draw_job *job,
                         const int *weights) {
    const int64_t length = row_length(job);
    memset(sum, 0, sizeof *sum * (size_t)length);
    for (int64_t i = 0; i < job->count; ++i)
        if (weights[i]) add_row(sum, job->rows + i * length, weights[i], length);
    const double *coarse = sum + job->length;
    rcn__figures(out, job->like, sum);
    out[RCN_AUC_HISTOGRAM] = rcn__auc_cells(coarse + 2, coarse + 3, 4, COARSE);
    out[RCN_AUC_PAIRS_HISTOGRAM] = rcn__auc_cells(coarse, coarse + 1, 4, COARSE);
}

/* How often draw number `number` takes each case. */
static void draw_cases(int *weights, uint64_t seed, int64_t number, int64_t count, int64_t taken) {
    rcn_rng rng = rcn__rng_make(seed, (uint64_t)number);
    memset(weights, 0, sizeof *weights * (size_t)count);
    for (int64_t i = 0; i < taken; ++i) ++weights[rcn__rng_below(&rng, (uint64_t)count)];
}

static int64_t cases_in_draw(const rcn_bootstrap_options *options, int64_t count) {
    const int64_t taken = (int64_t)(options->fraction * (double)count + 0.5);
    return taken < 1 ? 1 : taken;
}

static void draw(int64_t number, int thread, void *payload) {
    const draw_job *job = payload;
    int *weights = job->weights[thread];
    draw_cases(weights, job->seed, number, job->count, job->taken);
    draw_figures(job->results + number * RCN_FIGURES, job->scratch[thread], job, weights);
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
    if (!sentence && (!out || !cases || count < 1)) sentence = "There are no cases to draw from.";
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
    job.like = cases[0];
    job.count = count;
    job.taken = cases_in_draw(options, count);
    job.seed = options->seed;
    job.length = rcn__sum_fine(cases[0]);
    RCN_ALLOC(job.rows, ctx, count * row_length(&job), "the sums of the cases");
    for (int64_t i = 0; i < count; ++i)
        fill_row(job.rows + i * row_length(&job), cases[i], job.length);
    RCN_ALLOC_ZERO(job.scratch, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job.weights, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) {
        RCN_ALLOC(job.scratch[t], ctx, row_length(&job), "the sums of a draw");
        RCN_ALLOC(job.weights[t], ctx, count, "the cases of a draw");
    }
    RCN_ALLOC(job.results, ctx, (int64_t)draws * RCN_FIGURES, "the draws");
    RCN_TRY(rcn__for_chunks(ctx, "drawing cases", draws, draw, &job));
    for (int f = 0; f < RCN_FIGURES; ++f) out[f] = spread_of(job.results, draws, f);
done:
    for (int t = 0; t < ctx->threads; ++t) {
        if (job.scratch) rcn__free(ctx, job.scratch[t]);
        if (job.weights) rcn__free(ctx, job.weights[t]);
    }
    rcn__free(ctx, job.scratch);
    rcn__free(ctx, job.weights);
    rcn__free(ctx, job.rows);
    rcn__free(ctx, job.results);
    return status;
}
