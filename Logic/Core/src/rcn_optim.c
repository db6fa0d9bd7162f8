// SPDX-License-Identifier: Apache-2.0
/* Adam and AdamW, and schedules of the learning rate (rcn_optim.h), as PyTorch computes them.
 *
 * A step has two passes: the norm of all gradients (which clipping needs, and which shows a
 * gradient that is not finite), then the update. Sums are by chunk and lane in a fixed order.
 */
#include "rcn/rcn_optim.h"

#include <math.h>

#include "rcn_parallel.h"

/* Sums of squares are kept in this many lanes, so that they vectorize in a fixed order. */
enum { LANES = 16 };

/* Kingma and Ba's own, which every library has as its default. */
static const double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8;

static int is_amount(double x) { return isfinite(x) && x >= 0; }

const char *rcn_optim_check(const rcn_optim_options *options) {
    if (!options) return "No options of the optimizer were given.";
    if (options->kind != RCN_OPTIM_ADAM && options->kind != RCN_OPTIM_ADAMW)
        return "Unknown optimizer.";
    if (!is_amount(options->weight_decay) || !is_amount(options->clip_norm))
        return "Weight decay and the clipping norm must be finite and not negative.";
    return NULL;
}

/* What the update of one range of elements needs, as the loops use it. */
typedef struct factors {
    float clip;
    float decay;           /* added to the gradient, times w */
    float keep;            /* w is multiplied by it first */
    float root_correction; /* sqrt(1 - b2^t) */
    float rate;            /* of the step, bias correction included */
} factors;

typedef struct optim_job {
    const rcn_optim_state *state;
    const rcn_optim_options *options;
    const rcn_optim_range *ranges;
    int range_count;
    double rate;
    double clip;
    double *sums; /* per chunk */
} optim_job;

RCN_DISPATCH static double sum_squares(const float *x, int64_t count) {
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; ++k) lanes[k] += (double)x[i + k] * (double)x[i + k];
    for (int k = 0; i + k < count; ++k) lanes[k] += (double)x[i + k] * (double)x[i + k];
    for (int k = 0; k < LANES; ++k) sum += lanes[k];
    return sum;
}

/* Kingma and Ba 2015, algorithm 1, with torch's order of operations: the root is corrected before
 * epsilon is added. Decay is part of the gradient (Adam) or shrinks w by itself (AdamW: Loshchilov
 * and Hutter 2019); of `decay` and `keep` one is always neutral. */
RCN_DISPATCH static void update_adam(float *restrict w, float *restrict m, float *restrict v,
                                     const float *restrict gradient, int64_t count,
                                     const factors *by) {
    const factors f = *by;
    const float new_m = (float)(1 - BETA1), old_v = (float)BETA2, new_v = (float)(1 - BETA2);
    for (int64_t i = 0; i < count; ++i) {
        const float g = gradient[i] * f.clip + f.decay * w[i];
        m[i] += new_m * (g - m[i]);
        v[i] = v[i] * old_v + new_v * (g * g);
        w[i] = w[i] * f.keep - f.rate * m[i] / (sqrtf(v[i]) / f.root_correction + (float)EPSILON);
    }
}

/* The next piece of the chunk at *first whose elements are all treated alike: up to *end, by
 * *range (rate and decay 1 outside of all ranges). */
static void next_piece(rcn_optim_range *range, int64_t *end, const optim_job *job, int64_t first,
                       int64_t chunk_end) {
    const rcn_optim_range plain = {0, 0, 1, 1};
    *range = plain;
    *end = chunk_end;
    /* The first range that ends behind `first`, by halving. */
    int low = 0, high = job->range_count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (job->ranges[middle].end <= first)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == job->range_count) return;
    const rcn_optim_range *next = &job->ranges[low];
    int64_t border = next->first;
    if (next->first <= first) {
        *range = *next;
        border = next->end;
    }
    if (border < *end) *end = border;
}

static void norm_chunk(int64_t chunk, int thread, void *payload) {
    (void)thread;
    const optim_job *job = payload;
    int64_t first, end, piece_end;
    double sum = 0;
    rcn__chunk_range(&first, &end, chunk, job->state->count, RCN_CHUNK);
    for (; first < end; first = piece_end) {
        rcn_optim_range range;
        next_piece(&range, &piece_end, job, first, end);
        if (range.rate > 0) sum += sum_squares(job->state->gradients + first, piece_end - first);
    }
    job->sums[chunk] = sum;
}

static void update_chunk(int64_t chunk, int thread, void *payload) {
    (void)thread;
    const optim_job *job = payload;
    const rcn_optim_options *options = job->options;
    const rcn_optim_state *state = job->state;
    const double t = (double)state->step + 1;
    int64_t first, end, piece_end;
    rcn__chunk_range(&first, &end, chunk, state->count, RCN_CHUNK);
    for (; first < end; first = piece_end) {
        rcn_optim_range range;
        next_piece(&range, &piece_end, job, first, end);
        if (range.rate == 0) continue;
        const double rate = job->rate * range.rate, decay = options->weight_decay * range.decay;
        const int64_t count = piece_end - first;
        factors f = {0};
        f.clip = (float)job->clip;
        f.decay = options->kind == RCN_OPTIM_ADAMW ? 0.0f : (float)decay;
        f.keep = options->kind == RCN_OPTIM_ADAMW ? (float)(1 - rate * decay) : 1.0f;
        f.root_correction = (float)sqrt(1 - pow(BETA2, t));
        f.rate = (float)(rate / (1 - pow(BETA1, t)));
        update_adam(state->parameters + first, state->first + first, state->second + first,
                    state->gradients + first, count, &f);
    }
}

static rcn_status check_step(rcn_context *ctx, const rcn_optim_state *state, double rate,
                             const rcn_optim_options *options, const rcn_optim_range *ranges,
                             int range_count) {
    const char *sentence = rcn_optim_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    if (!state || !state->parameters || !state->gradients || !state->first || !state->second)
        return rcn__fail(ctx, RCN_EINVALID,
                         "A block of parameters, gradients or moments is missing.");
    if (state->count < 1 || state->step < 0)
        return rcn__fail(ctx, RCN_EINVALID, "%lld parameters after %lld steps are not valid.",
                         (long long)state->count, (long long)state->step);
    if (!is_amount(rate))
        return rcn__fail(ctx, RCN_EINVALID, "%g is not a valid learning rate.", rate);
    if (range_count < 0 || (range_count > 0 && !ranges))
        return rcn__fail(ctx, RCN_EINVALID, "The ranges do not match their count.");
    for (int r = 0; r < range_count; ++r)
        if (ranges[r].first < (r ? ranges[r - 1].end : 0) || ranges[r].end < ranges[r].first ||
            ranges[r].end > state->count || !is_amount(ranges[r].rate) ||
            !is_amount(ranges[r].decay))
            return rcn__fail(ctx, RCN_EINVALID,
                             "Range %d of the parameters overlaps another or lies outside, or its "
                             "factor is not valid.",
                             r + 1);
    return RCN_OK;
}

/* Which element it was, for the sentence; only looked for when the sum says that there is one. */
static rcn_status fail_gradient(rcn_context *ctx, const optim_job *job) {
    int64_t piece_end;
    for (int64_t first = 0; first < job->state->count; first = piece_end) {
        rcn_optim_range range;
        next_piece(&range, &piece_end, job, first, job->state->count);
        for (int64_t i = first; range.rate > 0 && i < piece_end; ++i)
            if (!isfinite(job->state->gradients[i]))
                return rcn__fail(ctx, RCN_EDATA, "The gradient of parameter element %lld is %g.",
                                 (long long)i, (double)job->state->gradients[i]);
    }
    return rcn__fail(ctx, RCN_EINTERNAL, "The norm of the gradients is not finite.");
}

rcn_status rcn_optim_step(double *norm, rcn_optim_state *state, rcn_context *ctx, double rate,
                          const rcn_optim_options *options, const rcn_optim_range *ranges,
                          int range_count) {
    rcn_status status;
    optim_job job = {state, options, ranges, range_count, rate, 1, NULL};
    rcn_progress_fn progress = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    RCN_TRY(check_step(ctx, state, rate, options, ranges, range_count));
    const int64_t chunks = rcn__chunk_count(state->count, RCN_CHUNK);
    RCN_ALLOC(job.sums, ctx, chunks, "partial sums of the gradients");
    RCN_TRY(rcn__for_chunks(ctx, "measuring gradients", chunks, norm_chunk, &job));
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum += job.sums[c];
    if (!isfinite(sum)) RCN_TRY(fail_gradient(ctx, &job));
    const double length = sqrt(sum);
    /* With torch's small number, so that both clip alike. */
    if (options->clip_norm > 0 && options->clip_norm < length + 1e-6)
        job.clip = options->clip_norm / (length + 1e-6);

    /* Half an update would be neither the old state nor the new: nobody is asked from here on. */
    progress = ctx->progress;
    ctx->progress = NULL;
    status = rcn__for_chunks(ctx, "updating parameters", chunks, update_chunk, &job);
    ctx->progress = progress;
    RCN_TRY(status);
    ++state->step;
    if (norm) *norm = length;
done:
    rcn__free(ctx, job.sums);
    return status;
}

/* ---- learning rate --------------------------------------------------------------------------- */

const char *rcn_schedule_check(const rcn_schedule *schedule) {
    if (!schedule) return "No schedule was given.";
    if (schedule->kind < RCN_SCHEDULE_CONSTANT || schedule->kind > RCN_SCHEDULE_ONE_CYCLE)
        return "Unknown schedule.";
    if (!is_amount(schedule->rate)) return "The learning rate must be finite and not negative.";
    if (schedule->kind != RCN_SCHEDULE_CONSTANT && schedule->steps < 1)
        return "This schedule needs the number of steps.";
    if (schedule->warmup < 0 || schedule->steps < 0 ||
        (schedule->kind != RCN_SCHEDULE_CONSTANT && schedule->warmup >= schedule->steps))
        return "The warm-up must be shorter than the training.";
    if (!(schedule->start >= 0 && schedule->start <= 1) ||
        !(schedule->final >= 0 && schedule->final <= 1))
        return "The first and the last rate must be 0 to 1 of the highest.";
    return NULL;
}

/* From a to b along half a cosine. */
static double half_cosine(double a, double b, double share) {
    return b + (a - b) * 0.5 * (1 + cos(3.14159265358979323846 * share));
}

double rcn_schedule_rate(const rcn_schedule *schedule, int64_t step) {
    const double rate = schedule->rate;
    const int64_t last = schedule->steps - 1;
    int64_t warmup = schedule->warmup;
    if (step < 0) step = 0;
    if (schedule->kind == RCN_SCHEDULE_ONE_CYCLE) {
        if (step > last) step = last;
        /* As torch's OneCycleLR: 30 % of the steps rise where no warm-up is given. */
        const double top = (warmup ? (double)warmup : 0.3 * (double)schedule->steps) - 1;
        if ((double)step <= top && top > 0)
            return half_cosine(schedule->start * rate, rate, (double)step / top);
        return half_cosine(rate, schedule->final * rate,
                           (double)last > top ? ((double)step - top) / ((double)last - top) : 1);
    }
    if (step < warmup) return rate * (double)(step + 1) / (double)warmup;
    if (schedule->kind == RCN_SCHEDULE_CONSTANT) return rate;
    if (step > last) step = last;
    return half_cosine(rate, schedule->final * rate,
                       (double)(step - warmup) / (double)(schedule->steps - warmup));
}
