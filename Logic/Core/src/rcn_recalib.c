// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_recalib.h"
#include "rcn/rcn_loss.h"

#include <math.h>
#include <string.h>

#include "rcn_calib_private.h"

/* As in the NLL: probabilities this close to 0 or 1 are not told apart. */
#define CLIP 1e-7

/* Of a parameter, and of what it is divided by: beyond, no product with a logit stays a number. */
#define LARGEST 1e9

const char *rcn_recalib_name(rcn_recalib_method method) {
    static const char *const names[] = {"temperature", "platt", "beta", "isotonic"};
    return (int)method >= 0 && method <= RCN_RECALIB_ISOTONIC ? names[method] : NULL;
}

const char *rcn_recalib_check(const rcn_recalib *recalib) {
    if (!recalib) return "No recalibration was given.";
    const double *p = recalib->parameters;
    for (int i = 0; i < 3; ++i)
        if (!(fabs(p[i]) <= LARGEST))
            return "The parameters of a recalibration must be -1e9 to 1e9.";
    if (recalib->levels && (recalib->method != RCN_RECALIB_TEMPERATURE || recalib->levels < 2 ||
                            recalib->levels > RCN_MAX_RATERS + 1))
        return "Only a temperature can be for levels, and for 2 to 65 of them.";
    switch (recalib->method) {
    case RCN_RECALIB_TEMPERATURE:
        return p[0] >= 1 / LARGEST ? NULL : "A temperature must be greater than zero.";
    case RCN_RECALIB_PLATT: return p[0] > 0 ? NULL : "Platt's slope must be greater than zero.";
    case RCN_RECALIB_BETA:
        return p[0] >= 0 && p[1] >= 0 && p[0] + p[1] > 0
                   ? NULL
                   : "The slopes of a beta calibration must not be negative, and not both be zero.";
    case RCN_RECALIB_ISOTONIC: break;
    default: return "Unknown method of recalibration.";
    }
    if (recalib->knots < 1 || recalib->knots > RCN_RECALIB_KNOTS)
        return "An isotonic calibration must have 1 to 256 knots.";
    for (int i = 0; i < recalib->knots; ++i) {
        const double x = recalib->x[i], y = recalib->y[i];
        if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1))
            return "The knots of an isotonic calibration must be between 0 and 1.";
        if (i && (!(x > recalib->x[i - 1]) || y < recalib->y[i - 1]))
            return "The knots of an isotonic calibration must rise.";
    }
    return NULL;
}

/* ---- one probability: logistic methods ------------------------------------------------------- */

static double clip(double p) { return p < CLIP ? CLIP : p > 1.0 - CLIP ? 1.0 - CLIP : p; }

/* logit q = sum of parameter x feature; the last feature is the constant one. Returns how many. */
static int features(double out[3], rcn_recalib_method method, double p) {
    p = clip(p);
    if (method == RCN_RECALIB_BETA) {
        out[0] = log(p);
        out[1] = -log1p(-p);
        out[2] = 1.0;
        return 3;
    }
    out[0] = log(p) - log1p(-p);
    out[1] = 1.0;
    return method == RCN_RECALIB_PLATT ? 2 : 1;
}

/* -log of the chance of one marked, and of one unmarked pair, without overflow. */
static double softplus(double z) { return z > 0 ? z + log1p(exp(-z)) : log1p(exp(z)); }

typedef struct cell {
    double p, pairs, marked;
} cell;

static double nll_of(const double *w, rcn_recalib_method method, const cell *cells, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        double x[3], z = 0;
        const int size = features(x, method, cells[i].p);
        for (int a = 0; a < size; ++a) z += w[a] * x[a];
        sum += cells[i].marked * softplus(-z) + (cells[i].pairs - cells[i].marked) * softplus(z);
    }
    return sum;
}

/* Solves the symmetric a x = b of up to three unknowns by elimination; 0 if it has no pivot. */
static int solve(double x[3], double a[3][3], const double b[3], int size) {
    for (int i = 0; i < size; ++i) x[i] = b[i];
    for (int i = 0; i < size; ++i) {
        if (!(a[i][i] > 0)) return 0;
        for (int j = i + 1; j < size; ++j) {
            const double f = a[j][i] / a[i][i];
            for (int k = i; k < size; ++k) a[j][k] -= f * a[i][k];
            x[j] -= f * x[i];
        }
    }
    for (int i = size - 1; i >= 0; --i) {
        for (int k = i + 1; k < size; ++k) x[i] -= a[i][k] * x[k];
        x[i] /= a[i][i];
    }
    return 1;
}

/* Newton's method with halved steps on the convex NLL; parameters not in `free_` stay. 0 if it does
 * not come to rest: the cells can be told apart without a miss, and the slope has no limit. */
static int fit_logistic(double w[3], rcn_recalib_method method, const cell *cells, int64_t count,
                        const int free_[3], double pairs) {
    double nll = nll_of(w, method, cells, count);
    for (int step = 0; step < 100; ++step) {
        double gradient[3] = {0}, hessian[3][3] = {{0}}, reduced[3][3], right[3], delta[3];
        int size = 0, index[3], used = 0;
        for (int64_t i = 0; i < count; ++i) {
            double x[3], z = 0;
            size = features(x, method, cells[i].p);
            for (int a = 0; a < size; ++a) z += w[a] * x[a];
            const double q = 1.0 / (1.0 + exp(-z));
            const double error = cells[i].pairs * q - cells[i].marked;
            const double weight = cells[i].pairs * q * (1.0 - q);
            for (int a = 0; a < size; ++a) {
                gradient[a] += error * x[a];
                for (int b = 0; b < size; ++b) hessian[a][b] += weight * x[a] * x[b];
            }
        }
        for (int a = 0; a < size; ++a)
            if (free_[a]) index[used++] = a;
        for (int a = 0; a < used; ++a) {
            right[a] = gradient[index[a]];
            for (int b = 0; b < used; ++b) reduced[a][b] = hessian[index[a]][index[b]];
        }
        if (!solve(delta, reduced, right, used)) return 0;
        double largest = 0, scale = 1.0, next[3], next_nll = nll;
        for (int halving = 0; halving < 40; ++halving, scale *= 0.5) {
            memcpy(next, w, sizeof next);
            for (int a = 0; a < used; ++a) next[index[a]] -= scale * delta[a];
            next_nll = nll_of(next, method, cells, count);
            if (next_nll <= nll + 1e-15 * fabs(nll)) break;
        }
        if (!(next_nll <= nll + 1e-15 * fabs(nll))) return 1; /* rounding is all that is left */
        for (int a = 0; a < 3; ++a) largest = fmax(largest, fabs(next[a] - w[a]));
        memcpy(w, next, sizeof next);
        nll = next_nll;
        for (int a = 0; a < 3; ++a)
            if (fabs(w[a]) > 1e3) return 0;
        if (nll < 1e-9 * pairs) return 0;
        if (largest < 1e-10) return 1;
    }
    return 1;
}

/* ---- one probability: isotonic --------------------------------------------------------------- */

typedef struct step {
    double first, last; /* mean probabilities of its first and last cell */
    double pairs, marked;
} step;

static step join(step a, step b) {
    const step out = {a.first, b.last, a.pairs + b.pairs, a.marked + b.marked};
    return out;
}

/* Pool adjacent violators (Ayer et al. 1955); then, while there are more steps than knots can hold,
 * the two neighbors whose joining costs least are joined. */
static int fit_isotonic(rcn_recalib *out, step *steps, const cell *cells, int64_t count) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; ++i) {
        const step fresh = {cells[i].p, cells[i].p, cells[i].pairs, cells[i].marked};
        steps[n++] = fresh;
        while (n > 1 && steps[n - 2].marked * steps[n - 1].pairs >=
                            steps[n - 1].marked * steps[n - 2].pairs) {
            steps[n - 2] = join(steps[n - 2], steps[n - 1]);
            --n;
        }
    }
    while (n > RCN_RECALIB_KNOTS / 2) {
        int64_t best = 0;
        double least = INFINITY;
        for (int64_t i = 0; i + 1 < n; ++i) {
            const step a = steps[i], b = steps[i + 1];
            const double gap = a.marked / a.pairs - b.marked / b.pairs;
            const double cost = a.pairs * b.pairs / (a.pairs + b.pairs) * gap * gap;
            if (cost < least) {
                least = cost;
                best = i;
            }
        }
        steps[best] = join(steps[best], steps[best + 1]);
        memmove(steps + best + 1, steps + best + 2, sizeof *steps * (size_t)(n - best - 2));
        --n;
    }
    out->knots = 0;
    for (int64_t i = 0; i < n; ++i) {
        out->x[out->knots] = steps[i].first;
        out->y[out->knots++] = steps[i].marked / steps[i].pairs;
        if (!(steps[i].last > steps[i].first)) continue;
        out->x[out->knots] = steps[i].last;
        out->y[out->knots++] = steps[i].marked / steps[i].pairs;
    }
    return out->knots;
}

/* ---- one probability: fitting ---------------------------------------------------------------- */

static rcn_status fit_slopes(rcn_recalib *fit, rcn_context *ctx, const cell *cells, int64_t count,
                             double pairs) {
    int free_[3] = {1, 1, 1};
    double w[3] = {1.0, 0.0, 0.0};
    const int beta = fit->method == RCN_RECALIB_BETA;
    if (beta) w[1] = 1.0;
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (!fit_logistic(w, fit->method, cells, count, free_, pairs))
            return rcn__fail(ctx, RCN_EDATA,
                             "The fit does not converge: the classes are perfectly separated.");
        /* Kull et al. 2017: a negative slope of beta is fixed at zero, and the rest fitted again.
         */
        int again = 0;
        for (int a = 0; beta && a < 2; ++a)
            if (w[a] < 0) {
                w[a] = 0;
                free_[a] = 0;
                again = 1;
            }
        if (!again) break;
    }
    if (!(w[0] > 0) && !(beta && w[1] > 0))
        return rcn__fail(
            ctx, RCN_EDATA,
            "The probabilities are inversely related to the votes; no recalibration can help.");
    if (fit->method == RCN_RECALIB_TEMPERATURE) w[0] = 1.0 / w[0];
    memcpy(fit->parameters, w, sizeof w);
    return RCN_OK;
}

rcn_status rcn_recalib_fit(rcn_recalib *out, rcn_context *ctx, rcn_recalib_method method,
                           const rcn_calib *sums) {
    rcn_status status;
    rcn_recalib fit;
    cell *cells = NULL;
    step *steps = NULL;
    int64_t count = 0;
    double pairs = 0, marked = 0;
    memset(&fit, 0, sizeof fit);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !sums) return rcn__fail(ctx, RCN_EINVALID, "No sums or no output were given.");
    if (!rcn_recalib_name(method))
        return rcn__fail(ctx, RCN_EINVALID, "Unknown method of recalibration.");
    fit.method = method;
    RCN_ALLOC(cells, ctx, RCN_FINE, "the cells of the fit");
    rcn__fine fine;
    const double *next;
    rcn__fine_begin(&fine, sums);
    while ((next = rcn__fine_next(&fine)) != NULL) {
        if (!(next[0] > 0)) continue;
        const cell one = {next[2] / next[0], next[0], next[1]};
        cells[count++] = one;
        pairs += one.pairs;
        marked += one.marked;
    }
    if (!count) RCN_TRY(rcn__fail(ctx, RCN_EDATA, "There are no votes to fit."));
    if (marked == 0 || marked == pairs)
        RCN_TRY(rcn__fail(ctx, RCN_EDATA, "All votes are equal (%s), so there is nothing to fit.",
                          marked > 0 ? "everything is marked" : "nothing is marked"));
    if (method == RCN_RECALIB_ISOTONIC) {
        RCN_ALLOC(steps, ctx, count, "the steps of the fit");
        fit_isotonic(&fit, steps, cells, count);
    } else {
        RCN_TRY(fit_slopes(&fit, ctx, cells, count, pairs));
        if (rcn_recalib_check(&fit)) /* a slope of next to nothing */
            RCN_TRY(rcn__fail(ctx, RCN_EDATA,
                              "The probabilities are unrelated to the votes; no recalibration can "
                              "help."));
    }
    fit.pairs = (int64_t)pairs;
    *out = fit;
done:
    rcn__free(ctx, cells);
    rcn__free(ctx, steps);
    return status;
}

/* ---- temperature on levels ------------------------------------------------------------------- */

/* Powers 1/T = 2^-5, 1.5 2^-5, 2^-4, ... 2^3: square roots and squares give all of them. */
enum { NODES = 17 };

struct rcn_temperature {
    rcn_context *ctx;
    int raters;     /* 0 for labels */
    int structures; /* 0 for levels */
    double pairs;
    double slope[NODES], curvature[NODES]; /* derivatives of the log-likelihood by the power */
};

/* The numbers that add up over cases. */
enum { HEAT_SUMS = 2 * NODES + 1 };

static void heat_pack(double sums[HEAT_SUMS], const rcn_temperature *temperature) {
    memcpy(sums, temperature->slope, sizeof temperature->slope);
    memcpy(sums + NODES, temperature->curvature, sizeof temperature->curvature);
    sums[2 * NODES] = temperature->pairs;
}

static void heat_unpack(rcn_temperature *temperature, const double sums[HEAT_SUMS]) {
    memcpy(temperature->slope, sums, sizeof temperature->slope);
    memcpy(temperature->curvature, sums + NODES, sizeof temperature->curvature);
    temperature->pairs = sums[2 * NODES];
}

static double node_power(int node) { return ldexp(node % 2 ? 1.5 : 1.0, node / 2 - 5); }

static rcn_status create_temperature(rcn_temperature **out, rcn_context *ctx, int raters,
                                     int structures) {
    rcn_status status;
    rcn_temperature *temperature = NULL;
    RCN_ALLOC_ZERO(temperature, ctx, 1, "the temperature");
    temperature->ctx = ctx;
    temperature->raters = raters;
    temperature->structures = structures;
    *out = temperature;
done:
    return status;
}

rcn_status rcn_temperature_create(rcn_temperature **out, rcn_context *ctx, int raters) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || raters < 1 || raters > RCN_MAX_RATERS)
        return rcn__fail(ctx, RCN_EINVALID, "There must be 1 to %d raters, not %d.", RCN_MAX_RATERS,
                         raters);
    return create_temperature(out, ctx, raters, 0);
}

rcn_status rcn_temperature_create_labels(rcn_temperature **out, rcn_context *ctx, int structures) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || structures < 1 || structures > RCN_MAX_STRUCTURES)
        return rcn__fail(ctx, RCN_EINVALID, "There must be 1 to %d structures, not %d.",
                         RCN_MAX_STRUCTURES, structures);
    return create_temperature(out, ctx, 0, structures);
}

void rcn_temperature_destroy(rcn_temperature *temperature) {
    if (temperature) rcn__free(temperature->ctx, temperature);
}

rcn_status rcn_temperature_merge(rcn_temperature *temperature, rcn_context *ctx,
                                 const rcn_temperature *other) {
    double sums[HEAT_SUMS], more[HEAT_SUMS];
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!temperature || !other || temperature->raters != other->raters ||
        temperature->structures != other->structures)
        return rcn__fail(ctx, RCN_EINVALID,
                         "Temperatures of different raters or structures cannot be merged.");
    heat_pack(sums, temperature);
    heat_pack(more, other);
    for (int i = 0; i < HEAT_SUMS; ++i) sums[i] += more[i];
    heat_unpack(temperature, sums);
    return RCN_OK;
}

rcn_status rcn_temperature_share(rcn_temperature *temperature, rcn_context *ctx, rcn_comm *comm) {
    double sums[HEAT_SUMS];
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!temperature) return rcn__fail(ctx, RCN_EINVALID, "The temperature to share is NULL.");
    heat_pack(sums, temperature);
    const rcn_status status = rcn_comm_sum(comm, ctx, sums, HEAT_SUMS, RCN_COMM_DOUBLE);
    if (status == RCN_OK) heat_unpack(temperature, sums);
    return status;
}

typedef struct heat_job {
    rcn__case c;
    int64_t voxels;
    double *chances; /* [class][K + 1]: to see M marks of A answers at level k, up to a factor */
    uint8_t *counts; /* [code][C + 1]: how many raters gave each label; NULL: levels */
    double *chunks;  /* [chunks][HEAT_SUMS]: slopes, curvatures, pairs */
} heat_job;

static int64_t vote_class(rcn__vote vote) {
    return (int64_t)vote.answered * (vote.answered + 1) / 2 + vote.marked;
}

static double log_choose(int n, int k) {
    return k < 0 || k > n ? -INFINITY : lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
}

static void fill_chances(double *chances, int raters) {
    for (int answered = 0; answered <= raters; ++answered)
        for (int marked = 0; marked <= answered; ++marked) {
            const rcn__vote vote = {(uint8_t)marked, (uint8_t)answered, 0, 0};
            double *row = chances + vote_class(vote) * (raters + 1), largest = -INFINITY;
            for (int k = 0; k <= raters; ++k) {
                row[k] = log_choose(k, marked) + log_choose(raters - k, answered - marked);
                largest = fmax(largest, row[k]);
            }
            for (int k = 0; k <= raters; ++k) row[k] = exp(row[k] - largest);
        }
}

/* log-likelihood = log sum_k h_k w_k - log sum_k w_k, w_k = p_k^power: its slope is the difference
 * of two mean logarithms, its curvature that of their variances. */
static void heat_voxel(double *sums, const float *levels, const double *h, int count) {
    double logs[RCN_MAX_RATERS + 1], even[RCN_MAX_RATERS + 1], odd[RCN_MAX_RATERS + 1];
    for (int k = 0; k < count; ++k) {
        const double p = clip((double)levels[k]);
        logs[k] = log(p);
        even[k] = sqrt(sqrt(sqrt(sqrt(sqrt(p)))));
        odd[k] = even[k] * sqrt(even[k]);
    }
    for (int node = 0; node < NODES; ++node) {
        double *w = node % 2 ? odd : even;
        double all[3] = {0, 0, 0}, seen[3] = {0, 0, 0};
        for (int k = 0; k < count; ++k) {
            const double a = w[k], b = a * h[k], l = logs[k];
            all[0] += a;
            all[1] += a * l;
            all[2] += a * l * l;
            seen[0] += b;
            seen[1] += b * l;
            seen[2] += b * l * l;
            w[k] = a * a;
        }
        const double mean_all = all[1] / all[0], mean_seen = seen[1] / seen[0];
        sums[node] += mean_seen - mean_all;
        sums[NODES + node] +=
            (seen[2] / seen[0] - mean_seen * mean_seen) - (all[2] / all[0] - mean_all * mean_all);
    }
}

/* log-likelihood = sum_l n_l log w_l - a log sum_l w_l, w_l = p_l^power. */
static void heat_labels(double *sums, const float *shares, const uint8_t *n, int answered,
                        int count) {
    double logs[RCN_MAX_STRUCTURES + 1], even[RCN_MAX_STRUCTURES + 1], odd[RCN_MAX_STRUCTURES + 1];
    double given = 0;
    for (int l = 0; l < count; ++l) {
        const double p = clip((double)shares[l]);
        logs[l] = log(p);
        even[l] = sqrt(sqrt(sqrt(sqrt(sqrt(p)))));
        odd[l] = even[l] * sqrt(even[l]);
        given += n[l] * logs[l];
    }
    for (int node = 0; node < NODES; ++node) {
        double *w = node % 2 ? odd : even;
        double all[3] = {0, 0, 0};
        for (int l = 0; l < count; ++l) {
            all[0] += w[l];
            all[1] += w[l] * logs[l];
            all[2] += w[l] * logs[l] * logs[l];
            w[l] *= w[l];
        }
        const double mean = all[1] / all[0];
        sums[node] += given - answered * mean;
        sums[NODES + node] -= answered * (all[2] / all[0] - mean * mean);
    }
}

static void heat_chunk(int64_t chunk, int thread, void *payload) {
    heat_job *job = payload;
    const rcn__case *c = &job->c;
    double *sums = job->chunks + chunk * HEAT_SUMS;
    uint32_t codes[RCN_CHUNK];
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    rcn__votes_read(codes, c->votes, first, end - first);
    memset(sums, 0, sizeof *sums * HEAT_SUMS);
    for (int64_t i = first; i < end; ++i) {
        const rcn__vote vote = c->patterns[codes[i - first]];
        if ((c->region && !c->region[i]) || !vote.answered) continue;
        const float *levels = c->data + i * c->components;
        if (rcn__read_levels(levels, c->components, c->weights) < 0) {
            if (i < c->bad[thread]) c->bad[thread] = i;
            return;
        }
        if (job->counts)
            heat_labels(sums, levels, job->counts + (int64_t)codes[i - first] * c->components,
                        vote.answered, c->components);
        else
            heat_voxel(sums, levels, job->chances + vote_class(vote) * c->components,
                       c->components);
        sums[2 * NODES] += vote.answered;
    }
}

/* Adds what the job finds to the temperature. */
static rcn_status add_heat(rcn_temperature *temperature, rcn_context *ctx, heat_job *job) {
    rcn_status status;
    job->voxels = job->c.votes->voxels;
    const int64_t chunks = rcn__chunk_count(job->voxels, RCN_CHUNK);
    RCN_ALLOC(job->chunks, ctx, chunks * HEAT_SUMS, "sums by chunk");
    RCN_TRY(rcn__for_chunks(ctx, "fitting the temperature", chunks, heat_chunk, job));
    RCN_TRY(rcn__case_result(ctx, &job->c));
    for (int64_t i = 0; i < chunks; ++i) {
        const double *sums = job->chunks + i * HEAT_SUMS;
        for (int node = 0; node < NODES; ++node) {
            temperature->slope[node] += sums[node];
            temperature->curvature[node] += sums[NODES + node];
        }
        temperature->pairs += sums[2 * NODES];
    }
done:
    return status;
}

rcn_status rcn_temperature_add_labels(rcn_temperature *temperature, rcn_context *ctx,
                                      const rcn_calib_case *one_case) {
    rcn_status status;
    heat_job job;
    memset(&job, 0, sizeof job);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!temperature || !temperature->structures)
        return rcn__fail(ctx, RCN_EINVALID, "The temperature is NULL, or not for labels.");
    RCN_TRY(rcn__case_open_labels(&job.c, ctx, one_case, temperature->structures));
    const rcn_votes *votes = job.c.votes;
    if (!rcn_votes_labels(votes))
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "A temperature of labels needs votes on labels."));
    RCN_ALLOC(job.counts, ctx, votes->pattern_count * job.c.components, "the counts of labels");
    rcn_loss_label_counts(job.counts, rcn_votes_labels(votes), votes->pattern_count, votes->raters,
                          temperature->structures);
    RCN_TRY(add_heat(temperature, ctx, &job));
done:
    rcn__free(ctx, job.counts);
    rcn__free(ctx, job.chunks);
    rcn__case_close(&job.c, ctx);
    return status;
}

rcn_status rcn_temperature_add(rcn_temperature *temperature, rcn_context *ctx,
                               const rcn_calib_case *one_case) {
    rcn_status status;
    heat_job job;
    memset(&job, 0, sizeof job);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!temperature || !temperature->raters)
        return rcn__fail(ctx, RCN_EINVALID, "The temperature or its output is NULL.");
    const int raters = temperature->raters;
    RCN_TRY(rcn__case_open(&job.c, ctx, one_case, raters, RCN_READOUT_EXPECTED, 0));
    if (job.c.components == 1)
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID,
                          "A temperature on levels needs a prediction with %d levels, not one "
                          "probability.",
                          raters + 1));
    RCN_ALLOC(job.chances, ctx, (int64_t)(raters + 1) * (raters + 2) / 2 * (raters + 1),
              "the chances of votes");
    fill_chances(job.chances, raters);
    RCN_TRY(add_heat(temperature, ctx, &job));
done:
    rcn__free(ctx, job.chances);
    rcn__free(ctx, job.chunks);
    rcn__case_close(&job.c, ctx);
    return status;
}

/* The cubic through both ends, with their slopes by log power, at t in [0, 1]. */
static double hermite(const rcn_temperature *h, int node, double t) {
    const double width = log(node_power(node + 1) / node_power(node)), s = 1.0 - t;
    const double a = h->slope[node], b = h->slope[node + 1];
    const double da = h->curvature[node] * node_power(node) * width;
    const double db = h->curvature[node + 1] * node_power(node + 1) * width;
    return s * s * (1 + 2 * t) * a + t * s * s * da + t * t * (3 - 2 * t) * b - t * t * s * db;
}

rcn_status rcn_temperature_fit(rcn_recalib *out, rcn_context *ctx,
                               const rcn_temperature *temperature) {
    rcn_recalib fit;
    memset(&fit, 0, sizeof fit);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !temperature)
        return rcn__fail(ctx, RCN_EINVALID, "The temperature or its output is NULL.");
    if (!(temperature->pairs > 0)) return rcn__fail(ctx, RCN_EDATA, "There are no votes to fit.");
    int node = 0;
    while (node < NODES && temperature->slope[node] > 0) ++node;
    if (node == 0)
        return rcn__fail(ctx, RCN_EDATA,
                         "The best temperature is above the range of 1/8 to 32: the levels are "
                         "unrelated to the votes.");
    if (node == NODES)
        return rcn__fail(ctx, RCN_EDATA, "The best temperature is below the range of 1/8 to 32.");
    double low = 0, high = 1;
    for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        if (hermite(temperature, node - 1, middle) > 0)
            low = middle;
        else
            high = middle;
    }
    fit.method = RCN_RECALIB_TEMPERATURE;
    fit.levels = (temperature->structures ? temperature->structures : temperature->raters) + 1;
    fit.parameters[0] = 1.0 / (node_power(node - 1) *
                               pow(node_power(node) / node_power(node - 1), 0.5 * (low + high)));
    fit.pairs = (int64_t)temperature->pairs;
    *out = fit;
    return RCN_OK;
}

/* ---- applying -------------------------------------------------------------------------------- */

static double interpolate(const rcn_recalib *r, double p) {
    int low = 0, high = r->knots - 1;
    if (p <= r->x[0]) return r->y[0];
    if (p >= r->x[high]) return r->y[high];
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (r->x[middle] <= p)
            low = middle;
        else
            high = middle;
    }
    const double t = (p - r->x[low]) / (r->x[high] - r->x[low]);
    return r->y[low] + t * (r->y[high] - r->y[low]);
}

double rcn_recalib_value(const rcn_recalib *recalib, double p) {
    if (recalib->method == RCN_RECALIB_ISOTONIC) return interpolate(recalib, p);
    double x[3], z = 0;
    const int size = features(x, recalib->method, p);
    if (recalib->method == RCN_RECALIB_TEMPERATURE)
        z = x[0] / recalib->parameters[0];
    else
        for (int a = 0; a < size; ++a) z += recalib->parameters[a] * x[a];
    return 1.0 / (1.0 + exp(-z));
}

typedef struct apply_job {
    float *out;
    const rcn_recalib *recalib;
    const float *in;
    int64_t voxels;
    int components;
    int64_t *bad; /* per thread */
} apply_job;

static void apply_levels(float *out, const float *in, int count, double power) {
    double values[RCN_MAX_RATERS + 1], sum = 0, largest = -INFINITY;
    for (int k = 0; k < count; ++k) {
        /* What is impossible stays so: levels with nothing but their ends must keep to them. */
        values[k] = in[k] > 0 ? power * log(clip((double)in[k])) : -INFINITY;
        largest = fmax(largest, values[k]);
    }
    for (int k = 0; k < count; ++k) { /* the largest is 1, so that the sum is never 0 */
        values[k] = exp(values[k] - largest);
        sum += values[k];
    }
    for (int k = 0; k < count; ++k) out[k] = (float)(values[k] / sum);
}

static void apply_chunk(int64_t chunk, int thread, void *payload) {
    apply_job *job = payload;
    static const double none[RCN_MAX_RATERS + 1] = {0};
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    for (int64_t i = first; i < end; ++i) {
        const float *in = job->in + i * job->components;
        const int usable = job->components > 1 ? rcn__read_levels(in, job->components, none) >= 0
                                               : in[0] >= 0.0f && in[0] <= 1.0f;
        if (!usable) {
            if (i < job->bad[thread]) job->bad[thread] = i;
            return;
        }
        if (job->components > 1)
            apply_levels(job->out + i * job->components, in, job->components,
                         1.0 / job->recalib->parameters[0]);
        else
            job->out[i] = (float)rcn_recalib_value(job->recalib, (double)in[0]);
    }
}

static rcn_status apply(float *out, rcn_context *ctx, const rcn_recalib *recalib,
                        const rcn_image *image) {
    rcn_status status;
    apply_job job = {out, recalib, NULL, 0, 0, NULL};
    const char *sentence = rcn_recalib_check(recalib);
    if (!sentence) sentence = rcn_image_check(image);
    if (!sentence && !out) sentence = "The output result is NULL.";
    if (!sentence && image->type != RCN_FLOAT32) sentence = "Probabilities must be float32.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    job.in = image->data;
    job.components = image->components;
    job.voxels = rcn_geometry_voxels(&image->geometry);
    RCN_ALLOC(job.bad, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) job.bad[t] = INT64_MAX;
    RCN_TRY(rcn__for_chunks(ctx, "recalibrating", rcn__chunk_count(job.voxels, RCN_CHUNK),
                            apply_chunk, &job));
    int64_t bad = INT64_MAX;
    for (int t = 0; t < ctx->threads; ++t)
        if (job.bad[t] < bad) bad = job.bad[t];
    if (bad != INT64_MAX)
        status = rcn__fail_voxel(ctx, &image->geometry, job.in, job.components, bad);
done:
    rcn__free(ctx, job.bad);
    return status;
}

rcn_status rcn_recalib_apply(float *out, rcn_context *ctx, const rcn_recalib *recalib,
                             const rcn_image *probability) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (recalib && recalib->levels)
        return rcn__fail(ctx, RCN_EINVALID,
                         "This recalibration is for %d levels, not for one probability.",
                         recalib->levels);
    if (probability && probability->components != 1)
        return rcn__fail(ctx, RCN_EINVALID,
                         "This recalibration is for one probability, not for %d levels: read them "
                         "out first.",
                         probability->components);
    return apply(out, ctx, recalib, probability);
}

rcn_status rcn_recalib_apply_levels(float *out, rcn_context *ctx, const rcn_recalib *recalib,
                                    const rcn_image *levels) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (recalib && levels && recalib->levels != levels->components)
        return rcn__fail(ctx, RCN_EINVALID,
                         "This recalibration is for %d levels, the prediction has %d components.",
                         recalib->levels, levels->components);
    return apply(out, ctx, recalib, levels);
}
