// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rcn_calib_private.h"

const char *rcn_interval_check(const rcn_interval_options *options) {
    if (options && !(options->level > 0 && options->level < 1))
        return "The level of an interval must be between 0 and 1.";
    return NULL;
}

/* ---- Student's t ----------------------------------------------------------------------------- */

/* The continued fraction of the incomplete beta function (Abramowitz & Stegun 26.5.8), by the
 * modified method of Lentz. */
static double beta_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double fraction = d;
    for (int m = 1; m <= 1000; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        fraction *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        fraction *= d * c;
        if (fabs(d * c - 1) < 1e-15) break;
    }
    return fraction;
}

/* P(|T| >= t) with `freedom` degrees of freedom: I_x(freedom / 2, 1 / 2), x = f / (f + t^2). */
static double student_tail(double t, double freedom) {
    const double a = 0.5 * freedom, b = 0.5, x = freedom / (freedom + t * t);
    if (!(t > 0)) return 1;
    if (!(x > 0)) return 0;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) +
                             b * log(t * t / (freedom + t * t)));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The t that leaves 1 - level outside -t ... t. */
static double student_quantile(double level, double freedom) {
    double low = 0, high = 1;
    while (student_tail(high, freedom) > 1 - level && high < 1e9) high *= 2;
    for (int i = 0; i < 100; ++i) {
        const double middle = 0.5 * (low + high);
        if (student_tail(middle, freedom) > 1 - level)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

/* ---- from values without one unit to an interval --------------------------------------------- */

/* What leaving out tells of one figure: its value, and the values without each unit and run. */
typedef struct left_out {
    double value;
    const double *units; /* [unit_count] those that say something about the figure */
    int64_t unit_count;
    const double *runs; /* [run_count]; looked at from two on */
    int run_count;
} left_out;

static double arcsine(double x) { return asin(sqrt(fmin(fmax(x, 0), 1))); }
static double identity(double x) { return x; }

/* (n - 1) / n times the squared deviations. NaN where a value is. */
static double variance(const double *values, int64_t count, double (*scale)(double)) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) mean += scale(values[i]) / (double)count;
    for (int64_t i = 0; i < count; ++i) {
        const double deviation = scale(values[i]) - mean;
        squares += deviation * deviation;
    }
    return squares * (double)(count - 1) / (double)count;
}

/* Half of the bias that leaving out units sees. A sum of absolute values is too large with few
 * cases, and more so for the better of two models: a difference of them is off by what is no
 * scatter. Half is a choice: without it the simulation finds 89 % in one population, and all of it
 * covers more than is promised elsewhere. */
static double bias_of(const left_out *what) {
    double mean = 0;
    for (int64_t i = 0; i < what->unit_count; ++i)
        mean += what->units[i] / (double)what->unit_count;
    return 0.5 * (double)(what->unit_count - 1) * (mean - what->value);
}

/* Standard error on a scale, and its degrees of freedom. */
static double error_of(double *freedom, const left_out *what, double (*scale)(double)) {
    const double cases = variance(what->units, what->unit_count, scale);
    const double runs = what->run_count > 1 ? variance(what->runs, what->run_count, scale) : 0.0;
    const double both = cases + runs;
    *freedom = (double)(what->unit_count - 1);
    if (runs > 0)
        *freedom =
            both * both / (cases * cases / *freedom + runs * runs / (double)(what->run_count - 1));
    return sqrt(both);
}

/* Everything but the value, which is there. `lowest` ... `highest`: what a figure can be; one that
 * lies between 0 and 1 is looked at on the arcsine scale too. */
static void find_ends(rcn_interval *out, const left_out *what, double level, double lowest,
                      double highest, int is_difference) {
    double freedom;
    if (what->unit_count < RCN_INTERVAL_UNITS || isnan(what->value)) return;
    const double bias = is_difference ? bias_of(what) : 0;
    const double error = hypot(error_of(&freedom, what, identity), bias);
    if (isnan(error)) return;
    const double reach = student_quantile(level, freedom) * error;
    out->units = (int)what->unit_count;
    out->error = error;
    out->low = what->value - reach;
    out->high = what->value + reach;
    if (is_difference)
        out->p_value =
            error > 0 ? student_tail(fabs(what->value) / error, freedom) : what->value == 0;
    if (lowest == 0 && highest == 1) {
        const double middle = arcsine(what->value), half_pi = asin(1.0);
        const double turn = error_of(&freedom, what, arcsine);
        const double step = student_quantile(level, freedom) * turn;
        const double below = sin(fmax(middle - step, 0)), above = sin(fmin(middle + step, half_pi));
        out->low = fmin(out->low, below * below);
        out->high = fmax(out->high, above * above);
    }
    /* Rounding must not push the value out of its interval. */
    out->low = fmin(fmax(out->low, lowest), what->value);
    out->high = fmax(fmin(out->high, highest), what->value);
}

/* ---- leaving out ----------------------------------------------------------------------------- */

typedef struct patient_case {
    int patient;
    int64_t number; /* of the case */
} patient_case;

static int compare_patients(const void *a, const void *b) {
    const patient_case *x = a, *y = b;
    if (x->patient != y->patient) return x->patient < y->patient ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Which cases go together: unit_of[case] is 0 ... *units - 1, in the order of first appearance. The
 * list is the caller's. */
static rcn_status find_units(int64_t **unit_of, int64_t *units, rcn_context *ctx,
                             const int *patients, int64_t count) {
    rcn_status status;
    patient_case *sorted = NULL; /* [count]: each patient's cases side by side */
    RCN_ALLOC(*unit_of, ctx, count, "bookkeeping");
    *units = 0;
    if (patients) {
        RCN_ALLOC(sorted, ctx, count, "bookkeeping");
        for (int64_t i = 0; i < count; ++i) sorted[i] = (patient_case){patients[i], i};
        qsort(sorted, (size_t)count, sizeof *sorted, compare_patients);
        for (int64_t i = 0; i < count;
             ++i) { /* first the patient's first case, itself or earlier */
            const int same = i > 0 && sorted[i].patient == sorted[i - 1].patient;
            (*unit_of)[sorted[i].number] =
                same ? (*unit_of)[sorted[i - 1].number] : sorted[i].number;
        }
    }
    for (int64_t i = 0; i < count; ++i)
        (*unit_of)[i] = patients && (*unit_of)[i] < i ? (*unit_of)[(*unit_of)[i]] : (*units)++;
    status = RCN_OK;
done:
    rcn__free(ctx, sorted);
    return status;
}

typedef struct leave_job {
    const rcn_calib *const *models[2]; /* [runs][count] each; the second may be NULL */
    int runs;
    int64_t count, units, length;
    int64_t *unit_of;  /* [count] */
    double *totals[2]; /* [runs][length] */
    double **scratch;  /* per thread: [length] */
    double *figures;   /* [units][RCN_FIGURES]: without the unit */
} leave_job;

/* out[figure] of a run, the second model's subtracted; without unit number `unit` (-1: of all). */
static void run_figures(double out[RCN_FIGURES], const leave_job *job, int run, int64_t unit,
                        double *scratch) {
    for (int m = 0; m < 2; ++m) {
        const rcn_calib *const *cases = job->models[m];
        double figures[RCN_FIGURES];
        if (!cases) continue;
        cases += run * job->count;
        memcpy(scratch, job->totals[m] + run * job->length, sizeof *scratch * (size_t)job->length);
        for (int64_t i = 0; unit >= 0 && i < job->count; ++i)
            if (job->unit_of[i] == unit) rcn__calib_add_sums(scratch, cases[i], -1);
        rcn__all_figures(figures, cases[0], scratch);
        for (int f = 0; f < RCN_FIGURES; ++f) out[f] = m ? out[f] - figures[f] : figures[f];
    }
}

static void leave_unit(int64_t unit, int thread, void *payload) {
    const leave_job *job = payload;
    double *out = job->figures + unit * RCN_FIGURES, one[RCN_FIGURES];
    memset(out, 0, sizeof *out * RCN_FIGURES);
    for (int run = 0; run < job->runs; ++run) {
        run_figures(one, job, run, unit, job->scratch[thread]);
        for (int f = 0; f < RCN_FIGURES; ++f) out[f] += one[f] / job->runs;
    }
}

/* How much of a case a figure rests on: voxels, or cases. */
static double weight_of(const rcn_calib *calib, int figure) {
    const double *reference = calib->sums + rcn__sum_reference(calib);
    double voxels = 0;
    switch (figure) {
    case RCN_DICE:
    case RCN_DICE_POOLED: return calib->sums[RCN_SUM_DICE_CASES];
    case RCN_RPS:
    case RCN_LEVEL_NLL:
    case RCN_LEVEL_ECE:
    case RCN_LEVEL_ECE_MAX: return calib->sums[RCN_SUM_LEVEL_VOXELS];
    case RCN_ECE:
    case RCN_ECE_FOREGROUND:
    case RCN_AUC_HISTOGRAM: /* a rater who is the reference may not have answered the case */
        for (int b = 0; b < calib->options.bins; ++b) voxels += reference[3 * b];
        return voxels;
    default: return calib->sums[RCN_SUM_VOXELS];
    }
}

/* Whether a unit says something about a figure: a case where nothing is marked has no Dice, and
 * leaving it out would make a mean of few look like one of many. */
static int says_something(const leave_job *job, int64_t unit, int figure) {
    for (int m = 0; m < 2; ++m)
        for (int64_t i = 0; job->models[m] && i < job->runs * job->count; ++i)
            if (job->unit_of[i % job->count] == unit && weight_of(job->models[m][i], figure) > 0)
                return 1;
    return 0;
}

static rcn_status check_input(rcn_context *ctx, const void *out, const rcn_calib *const *cases,
                              int runs, int64_t count, const rcn_interval_options *options) {
    const char *sentence = rcn_interval_check(options);
    if (!sentence && (!out || !cases || count < 1 || runs < 1)) sentence = "No cases were given.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    return rcn__check_cases(ctx, cases, runs * count, cases[0]);
}

/* What a figure can be. Differences, the signed error and the debiased one have no ends that
 * matter; the likelihoods have one. */
static void range_of(double *lowest, double *highest, int figure, int is_difference) {
    const int free = is_difference || figure == RCN_SIGNED || figure == RCN_MR_ECE_DEBIASED;
    *lowest = free ? -HUGE_VAL : 0;
    *highest = free || figure == RCN_NLL || figure == RCN_LEVEL_NLL ? HUGE_VAL : 1;
}

rcn_status rcn_interval_compute(rcn_interval out[RCN_FIGURES], rcn_context *ctx,
                                const rcn_calib *const *cases, const rcn_calib *const *second,
                                int runs, int64_t count, const rcn_interval_options *options) {
    static const rcn_interval_options defaults = RCN_INTERVAL_OPTIONS_INIT;
    rcn_status status;
    leave_job job;
    double *by_run = NULL, *without_run = NULL, *column = NULL; /* [runs][RCN_FIGURES]; [runs] */
    memset(&job, 0, sizeof job);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!options) options = &defaults;
    RCN_TRY(check_input(ctx, out, cases, runs, count, options));
    if (second) {
        RCN_TRY(rcn__check_cases(ctx, second, runs * count, second[0]));
        rcn_calib like = *second[0]; /* each model has a readout of its own */
        like.options.readout = cases[0]->options.readout;
        like.options.at_least = cases[0]->options.at_least;
        const char *sentence = rcn__calib_differ(&like, cases[0]);
        if (sentence) RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "The two models: %s", sentence));
    }
    job.models[0] = cases;
    job.models[1] = second;
    job.runs = runs;
    job.count = count;
    job.length = cases[0]->length;
    RCN_TRY(find_units(&job.unit_of, &job.units, ctx, options->patients, count));
    for (int m = 0; m < 2; ++m) {
        if (!job.models[m]) continue;
        RCN_ALLOC_ZERO(job.totals[m], ctx, runs * job.length, "the sums of all cases");
        for (int64_t i = 0; i < runs * count; ++i)
            rcn__calib_add_sums(job.totals[m] + i / count * job.length, job.models[m][i], 1);
    }
    RCN_ALLOC_ZERO(job.scratch, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t)
        RCN_ALLOC(job.scratch[t], ctx, job.length, "the sums without a case");
    RCN_ALLOC(job.figures, ctx, job.units * RCN_FIGURES, "the figures without a case");
    RCN_ALLOC(by_run, ctx, (int64_t)runs * RCN_FIGURES, "the figures of the runs");
    RCN_ALLOC(without_run, ctx, runs, "the figures of the runs");
    RCN_ALLOC(column, ctx, job.units, "the figures without a case");
    for (int run = 0; run < runs; ++run)
        run_figures(by_run + (int64_t)run * RCN_FIGURES, &job, run, -1, job.scratch[0]);
    RCN_TRY(rcn__for_chunks(ctx, "leaving out cases", job.units, leave_unit, &job));
    for (int f = 0; f < RCN_FIGURES; ++f) {
        rcn_interval one = {0, NAN, NAN, NAN, NAN, 0};
        left_out what = {0, column, 0, without_run, runs};
        double lowest, highest;
        for (int run = 0; run < runs; ++run)
            one.value += by_run[(int64_t)run * RCN_FIGURES + f] / runs;
        for (int run = 0; run < runs && runs > 1; ++run)
            without_run[run] =
                (runs * one.value - by_run[(int64_t)run * RCN_FIGURES + f]) / (runs - 1);
        for (int64_t unit = 0; unit < job.units; ++unit)
            if (says_something(&job, unit, f))
                column[what.unit_count++] = job.figures[unit * RCN_FIGURES + f];
        what.value = one.value;
        range_of(&lowest, &highest, f, second != NULL);
        find_ends(&one, &what, options->level, lowest, highest, second != NULL);
        out[f] = one;
    }
done:
    for (int t = 0; job.scratch && t < ctx->threads; ++t) rcn__free(ctx, job.scratch[t]);
    rcn__free(ctx, job.scratch);
    rcn__free(ctx, job.unit_of);
    rcn__free(ctx, job.totals[0]);
    rcn__free(ctx, job.totals[1]);
    rcn__free(ctx, job.figures);
    rcn__free(ctx, by_run);
    rcn__free(ctx, without_run);
    rcn__free(ctx, column);
    return status;
}

rcn_status rcn_interval_bins(double *low, double *high, rcn_context *ctx,
                             const rcn_calib *const *cases, int64_t count, int at_least,
                             const rcn_interval_options *options) {
    static const rcn_interval_options defaults = RCN_INTERVAL_OPTIONS_INIT;
    rcn_status status;
    rcn_calib_bin *bins = NULL; /* [count][bins] */
    int64_t *unit_of = NULL, units;
    double *sums = NULL, *column = NULL; /* [units][2]: pairs, marked; [units] */
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!options) options = &defaults;
    RCN_TRY(check_input(ctx, low && high ? low : NULL, cases, 1, count, options));
    if (at_least < 0 || at_least > cases[0]->raters)
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "Level %d does not exist with %d raters.", at_least,
                          cases[0]->raters));
    const int bin_count = cases[0]->options.bins;
    RCN_TRY(find_units(&unit_of, &units, ctx, options->patients, count));
    RCN_ALLOC(bins, ctx, count * bin_count, "the bins of the cases");
    RCN_ALLOC(sums, ctx, 2 * units, "the bins of the cases");
    RCN_ALLOC(column, ctx, units, "the bins of the cases");
    RCN_TRY(rcn__report(ctx, 0, "leaving out cases"));
    for (int64_t i = 0; i < count; ++i)
        if (at_least)
            rcn_calib_level_bins(bins + i * bin_count, cases[i], at_least);
        else
            rcn_calib_bins(bins + i * bin_count, cases[i], RCN_BINS_WIDTH);
    for (int b = 0; b < bin_count; ++b) {
        rcn_interval one = {NAN, NAN, NAN, NAN, NAN, 0};
        left_out what = {NAN, column, 0, NULL, 1};
        double pairs = 0, marked = 0;
        memset(sums, 0, sizeof *sums * (size_t)(2 * units));
        for (int64_t i = 0; i < count; ++i) {
            const rcn_calib_bin *bin = &bins[i * bin_count + b];
            if (!bin->count) continue;
            sums[2 * unit_of[i]] += (double)bin->count;
            sums[2 * unit_of[i] + 1] += (double)bin->count * bin->frequency;
        }
        for (int64_t unit = 0; unit < units; ++unit) {
            pairs += sums[2 * unit];
            marked += sums[2 * unit + 1];
        }
        for (int64_t unit = 0; unit < units; ++unit)
            if (sums[2 * unit] > 0)
                column[what.unit_count++] =
                    (marked - sums[2 * unit + 1]) / (pairs - sums[2 * unit]);
        if (pairs > 0) what.value = fmin(marked / pairs, 1);
        find_ends(&one, &what, options->level, 0, 1, 0);
        low[b] = one.low;
        high[b] = one.high;
    }
done:
    rcn__free(ctx, bins);
    rcn__free(ctx, unit_of);
    rcn__free(ctx, sums);
    rcn__free(ctx, column);
    return status;
}

/* ---- a figure that every case has by itself -------------------------------------------------- */

/* The ends of a positive figure on the scale of its logarithm, where they lie farther out: means of
 * few distances or volumes are skewed, and far too small where a rare large one is missing. */
static void extend_on_log(rcn_interval *out, const left_out *what, double level) {
    double freedom;
    if (!out->units || !(what->value > 0)) return;
    for (int64_t i = 0; i < what->unit_count; ++i)
        if (!(what->units[i] > 0)) return;
    const double factor = exp(student_quantile(level, (double)(what->unit_count - 1)) *
                              error_of(&freedom, what, log));
    out->low = fmin(out->low, what->value / factor);
    out->high = fmax(out->high, what->value * factor);
}

/* The ends of a difference, moved for its skewness and farther out where few cases decide, where
 * they lie farther out. `worth`: how many units of equal weight say as much as these. Chosen in
 * simulation: the plain ends cover 88 to 90 % where one rater marks less, or where cases differ
 * much; Hall's transformation (1992) instead of Johnson's covers no more and is far wider. */
static void extend_for_skewness(rcn_interval *out, const left_out *what, double worth,
                                double level) {
    const double n = (double)what->unit_count;
    double mean = 0, squares = 0, cubes = 0;
    if (!out->units || !(out->error > 0)) return;
    for (int64_t i = 0; i < what->unit_count; ++i) mean += what->units[i] / n;
    for (int64_t i = 0; i < what->unit_count; ++i) {
        const double deviation =
            mean - what->units[i]; /* a case pulls where its absence does not */
        squares += deviation * deviation / n;
        cubes += deviation * deviation * deviation / n;
    }
    const double skewness = squares > 0 ? cubes / (squares * sqrt(squares)) : 0;
    const double t = student_quantile(level, n - 1);
    const double reach = student_quantile(level, fmax(worth - 1, 1)) * out->error;
    const double shift = skewness * out->error * (1 + 2 * t * t) / (6 * sqrt(n));
    out->low = fmin(out->low, out->value - reach + fmin(shift, 0));
    out->high = fmax(out->high, out->value + reach + fmax(shift, 0));
}

static void mean_ends(rcn_interval *out, left_out *what, double *column, rcn_mean_kind kind,
                      double worth, double level) {
    const int is_kappa = kind == RCN_MEAN_KAPPA, is_difference = kind == RCN_MEAN_DIFFERENCE;
    const double lowest = is_difference ? -HUGE_VAL : 0;
    const double highest = is_difference || kind == RCN_MEAN_AMOUNT ? HUGE_VAL : 1;
    if (is_kappa) {
        what->value = 0.5 * (what->value + 1);
        for (int64_t i = 0; i < what->unit_count; ++i) column[i] = 0.5 * (column[i] + 1);
    }
    find_ends(out, what, level, lowest, highest, is_difference);
    if (kind == RCN_MEAN_AMOUNT) extend_on_log(out, what, level);
    if (is_difference) extend_for_skewness(out, what, worth, level);
    if (is_kappa && out->units) {
        out->error *= 2;
        out->low = fmin(2 * out->low - 1, out->value);
        out->high = fmax(2 * out->high - 1, out->value);
    }
}

rcn_status rcn_interval_mean(rcn_interval *out, rcn_context *ctx, const double *values,
                             const double *over, int64_t count, rcn_mean_kind kind,
                             const rcn_interval_options *options) {
    static const rcn_interval_options defaults = RCN_INTERVAL_OPTIONS_INIT;
    rcn_status status;
    int64_t *unit_of = NULL, units;
    double *sums = NULL, *column = NULL; /* [units][2]: value, over; [units] */
    double value = 0, whole = 0, squares = 0;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!options) options = &defaults;
    const char *sentence = rcn_interval_check(options);
    if (!sentence && (!out || !values || count < 1)) sentence = "No cases were given.";
    if (!sentence && (kind < RCN_MEAN_SHARE || kind > RCN_MEAN_DIFFERENCE))
        sentence = "Unknown kind of mean.";
    if (sentence) RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "%s", sentence));
    RCN_TRY(find_units(&unit_of, &units, ctx, options->patients, count));
    RCN_ALLOC_ZERO(sums, ctx, 2 * units, "the figures of the cases");
    RCN_ALLOC(column, ctx, units, "the figures of the cases");
    for (int64_t i = 0; i < count; ++i) {
        const double weight = over ? over[i] : 1;
        if (isnan(values[i]) || isnan(weight)) continue;
        sums[2 * unit_of[i]] += values[i];
        sums[2 * unit_of[i] + 1] += weight;
        value += values[i];
        whole += weight;
    }
    rcn_interval one = {whole > 0 ? value / whole : NAN, NAN, NAN, NAN, NAN, 0};
    left_out what = {one.value, column, 0, NULL, 1};
    for (int64_t unit = 0; unit < units; ++unit) {
        squares += sums[2 * unit + 1] * sums[2 * unit + 1];
        if (sums[2 * unit] != 0 || sums[2 * unit + 1] > 0)
            column[what.unit_count++] = (value - sums[2 * unit]) / (whole - sums[2 * unit + 1]);
    }
    mean_ends(&one, &what, column, kind, whole * whole / squares, options->level);
    *out = one;
    status = RCN_OK;
done:
    rcn__free(ctx, unit_of);
    rcn__free(ctx, sums);
    rcn__free(ctx, column);
    return status;
}

void rcn_holm(double *p_values, int count) {
    int tests = 0;
    double largest = 0;
    for (int i = 0; i < count; ++i) tests += !isnan(p_values[i]);
    /* Smallest first, each times the number of tests that are left; what is done has a minus sign
     * until all are. */
    for (int left = tests; left > 0; --left) {
        int next = -1;
        for (int i = 0; i < count; ++i)
            if (!isnan(p_values[i]) && !signbit(p_values[i]) &&
                (next < 0 || p_values[i] < p_values[next]))
                next = i;
        largest = fmax(largest, fmin(left * p_values[next], 1));
        p_values[next] = -largest;
    }
    for (int i = 0; i < count; ++i) p_values[i] = fabs(p_values[i]);
}
