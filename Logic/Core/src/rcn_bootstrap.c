#include "rcn/rcn_bootstrap.h"

#include <math.h>
#include <stdlib.h>
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
    if (!(options->level > 0 && options->level < 1))
        return "The level of an interval must be between 0 and 1.";
    return NULL;
}

typedef struct draw_job {
    const rcn_calib *const *models[2]; /* [count] each; the second may be NULL */
    int64_t count, taken;
    uint64_t seed;
    int64_t length;   /* of the sums without the fine histogram */
    double *rows[2];  /* [count][length + 4 * COARSE] */
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
static void draw_figures(double out[RCN_FIGURES], double *sum, const draw_job *job, int model,
                         const int *weights) {
    const int64_t length = row_length(job);
    memset(sum, 0, sizeof *sum * (size_t)length);
    for (int64_t i = 0; i < job->count; ++i)
        if (weights[i]) add_row(sum, job->rows[model] + i * length, weights[i], length);
    const double *coarse = sum + job->length;
    rcn__figures(out, job->models[model][0], sum);
    out[RCN_AUC_HISTOGRAM] = rcn__auc_cells(coarse + 2, coarse + 3, 4, COARSE);
    out[RCN_AUC_PAIRS_HISTOGRAM] = rcn__auc_cells(coarse, coarse + 1, 4, COARSE);
}

static void figures_of(double out[RCN_FIGURES], double *sum, const draw_job *job,
                       const int *weights) {
    double second[RCN_FIGURES];
    draw_figures(out, sum, job, 0, weights);
    if (!job->models[1]) return;
    draw_figures(second, sum, job, 1, weights);
    for (int f = 0; f < RCN_FIGURES; ++f) out[f] -= second[f];
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
    figures_of(job->results + number * RCN_FIGURES, job->scratch[thread], job, weights);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const double *sorted, int count, double share) {
    const double at = share * (count - 1);
    const int below = (int)at;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

static void summarise(rcn_interval *out, double *draws, int count, double level, int paired) {
    double sum = 0, squares = 0;
    int below = 1, above = 1;
    out->draws = count;
    if (!count) return;
    for (int i = 0; i < count; ++i) {
        sum += draws[i];
        below += draws[i] <= 0;
        above += draws[i] >= 0;
    }
    out->mean = sum / count;
    for (int i = 0; i < count; ++i) squares += (draws[i] - out->mean) * (draws[i] - out->mean);
    out->std = count > 1 ? sqrt(squares / (count - 1)) : 0.0;
    qsort(draws, (size_t)count, sizeof *draws, compare_doubles);
    out->low = percentile(draws, count, 0.5 * (1.0 - level));
    out->high = percentile(draws, count, 0.5 * (1.0 + level));
    if (paired) out->p_value = fmin(1.0, 2.0 * (below < above ? below : above) / (count + 1));
}

static rcn_status check_cases(rcn_context *ctx, const rcn_calib *const *cases, int64_t count,
                              const rcn_calib *like) {
    for (int64_t i = 0; i < count; ++i) {
        if (!cases[i])
            return rcn__fail(ctx, RCN_EINVALID, "Case %lld has no sums.", (long long)i + 1);
        const char *sentence = rcn__calib_differ(cases[i], like);
        if (sentence)
            return rcn__fail(ctx, RCN_EINVALID, "Case %lld: %s", (long long)i + 1, sentence);
    }
    return RCN_OK;
}

static rcn_status check_draws(rcn_context *ctx, const void *out, const rcn_calib *const *cases,
                              int64_t count, const rcn_bootstrap_options *options) {
    const char *sentence = rcn_bootstrap_check(options);
    if (!sentence && (!out || !cases || count < 1)) sentence = "There are no cases to draw from.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    return check_cases(ctx, cases, count, cases[0]);
}

static rcn_status resample(rcn_interval *out, rcn_context *ctx, const rcn_calib *const *first,
                           const rcn_calib *const *second, int64_t count,
                           const rcn_bootstrap_options *options) {
    static const rcn_bootstrap_options defaults = RCN_BOOTSTRAP_OPTIONS_INIT;
    rcn_status status;
    draw_job job;
    double *column = NULL, value[RCN_FIGURES];
    memset(&job, 0, sizeof job);
    if (!options) options = &defaults;
    RCN_TRY(check_draws(ctx, out, first, count, options));
    if (second) RCN_TRY(check_cases(ctx, second, count, first[0]));
    const int draws = count > 1 ? options->draws : 0;
    job.models[0] = first;
    job.models[1] = second;
    job.count = count;
    job.taken = cases_in_draw(options, count);
    job.seed = options->seed;
    job.length = rcn__sum_fine(first[0]);
    for (int m = 0; m < 2; ++m) {
        if (!job.models[m]) continue;
        RCN_ALLOC(job.rows[m], ctx, count * row_length(&job), "the sums of the cases");
        for (int64_t i = 0; i < count; ++i)
            fill_row(job.rows[m] + i * row_length(&job), job.models[m][i], job.length);
    }
    RCN_ALLOC_ZERO(job.scratch, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job.weights, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) {
        RCN_ALLOC(job.scratch[t], ctx, row_length(&job), "the sums of a draw");
        RCN_ALLOC(job.weights[t], ctx, count, "the cases of a draw");
    }
    RCN_ALLOC(job.results, ctx, (int64_t)draws * RCN_FIGURES, "the draws");
    RCN_ALLOC(column, ctx, draws, "the draws");
    for (int64_t i = 0; i < count; ++i) job.weights[0][i] = 1;
    figures_of(value, job.scratch[0], &job, job.weights[0]);
    RCN_TRY(rcn__for_chunks(ctx, "drawing cases", draws, draw, &job));
    for (int f = 0; f < RCN_FIGURES; ++f) {
        const rcn_interval none = {value[f], NAN, NAN, NAN, NAN, NAN, 0};
        int defined = 0;
        for (int d = 0; d < draws; ++d)
            if (!isnan(job.results[(int64_t)d * RCN_FIGURES + f]))
                column[defined++] = job.results[(int64_t)d * RCN_FIGURES + f];
        out[f] = none;
        summarise(&out[f], column, defined, options->level, second != NULL);
    }
done:
    for (int t = 0; t < ctx->threads; ++t) {
        if (job.scratch) rcn__free(ctx, job.scratch[t]);
        if (job.weights) rcn__free(ctx, job.weights[t]);
    }
    rcn__free(ctx, job.scratch);
    rcn__free(ctx, job.weights);
    rcn__free(ctx, job.rows[0]);
    rcn__free(ctx, job.rows[1]);
    rcn__free(ctx, job.results);
    rcn__free(ctx, column);
    return status;
}

rcn_status rcn_bootstrap(rcn_interval out[RCN_FIGURES], rcn_context *ctx,
                         const rcn_calib *const *cases, int64_t count,
                         const rcn_bootstrap_options *options) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    return resample(out, ctx, cases, NULL, count, options);
}

rcn_status rcn_bootstrap_paired(rcn_interval out[RCN_FIGURES], rcn_context *ctx,
                                const rcn_calib *const *first, const rcn_calib *const *second,
                                int64_t count, const rcn_bootstrap_options *options) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!second) return rcn__fail(ctx, RCN_EINVALID, "There is no second model to compare with.");
    return resample(out, ctx, first, second, count, options);
}

rcn_status rcn_bootstrap_bins(double *low, double *high, rcn_context *ctx,
                              const rcn_calib *const *cases, int64_t count,
                              const rcn_bootstrap_options *options) {
    static const rcn_bootstrap_options defaults = RCN_BOOTSTRAP_OPTIONS_INIT;
    rcn_status status;
    rcn_calib_bin *bins = NULL;
    int *weights = NULL, *defined = NULL;
    double *drawn = NULL; /* [bins][draws] */
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!options) options = &defaults;
    RCN_TRY(check_draws(ctx, low && high ? low : NULL, cases, count, options));
    const int bin_count = cases[0]->options.bins, draws = count > 1 ? options->draws : 0;
    const int64_t taken = cases_in_draw(options, count);
    RCN_ALLOC(bins, ctx, count * bin_count, "the bins of the cases");
    RCN_ALLOC(weights, ctx, count, "the cases of a draw");
    RCN_ALLOC_ZERO(defined, ctx, bin_count, "the draws");
    RCN_ALLOC(drawn, ctx, (int64_t)bin_count * draws, "the draws");
    for (int64_t i = 0; i < count; ++i)
        rcn_calib_bins(bins + i * bin_count, cases[i], RCN_BINS_WIDTH);
    for (int d = 0; d < draws; ++d) {
        RCN_TRY(rcn__report(ctx, (double)d / draws, "drawing cases"));
        draw_cases(weights, options->seed, d, count, taken);
        for (int b = 0; b < bin_count; ++b) {
            double pairs = 0, marked = 0;
            for (int64_t i = 0; i < count; ++i) {
                const rcn_calib_bin *bin = &bins[i * bin_count + b];
                if (!weights[i] || !bin->count) continue;
                pairs += weights[i] * (double)bin->count;
                marked += weights[i] * (double)bin->count * bin->frequency;
            }
            if (pairs > 0) drawn[(int64_t)b * draws + defined[b]++] = marked / pairs;
        }
    }
    for (int b = 0; b < bin_count; ++b) {
        double *column = drawn + (int64_t)b * draws;
        low[b] = high[b] = NAN;
        if (defined[b] < 2) continue;
        qsort(column, (size_t)defined[b], sizeof *column, compare_doubles);
        low[b] = percentile(column, defined[b], 0.5 * (1.0 - options->level));
        high[b] = percentile(column, defined[b], 0.5 * (1.0 + options->level));
    }
done:
    rcn__free(ctx, bins);
    rcn__free(ctx, weights);
    rcn__free(ctx, defined);
    rcn__free(ctx, drawn);
    return status;
}
