// SPDX-License-Identifier: Apache-2.0
/* How well the levels are predicted: likelihood, RPS, and calibration of P(y >= t) for each t.
 *
 * Counted and summed per thread in whole numbers (probabilities in fixed point, rcn__to_fixed()),
 * so that threads may take any voxels and the result has the same bits. Scores, which are not whole
 * numbers, are summed by chunk. Voxels are first packed side by side and then go through the
 * arithmetic in lanes; only those near a mark, by the raters or by the prediction, are binned one
 * by one.
 */
#include "rcn_calib_private.h"
#include "rcn_fastmath.h"

#include <math.h>

enum { BLOCK = RCN_CASE_BLOCK };

/* Voxels that go through the arithmetic side by side. */
enum { LANES = 32 };

struct rcn__level_scratch {
    float *planes;  /* [raters + 1][BLOCK]: the levels as read, then those that count */
    float *tails;   /* [raters + 1][BLOCK]: P(y >= t); t = 0 is not used */
    uint64_t *sums; /* [raters + 1][LANES]: of the tails */
    float p[BLOCK];
    double y[BLOCK];
    double rps[BLOCK];
    double likelihood[BLOCK + 2 * RCN_LOG_LANES];
};

/* The slots, in order:
 *   bins    [raters][bins][2]: voxels << 38 | those with y >= t; sum of P(y >= t). The first bin is
 *                              what the others leave of all voxels, and its slots hold anything:
 *                              nearly all voxels are background, and end there unseen
 *   tails   [raters]: sum of P(y >= t) over all voxels
 *   unsure  [raters]: the same where the prediction is unsure
 *   levels  [raters + 1]: voxels of each level, but 0, which is what the others leave
 *   doubts  [raters + 1]: voxels of each level where the prediction is unsure
 *   all     all voxels */
typedef struct slots {
    int64_t tails, unsure, levels, doubts, all;
} slots;

static slots slots_of(const rcn__level_plan *plan) {
    slots at;
    at.tails = INT64_C(2) * plan->raters * plan->bins;
    at.unsure = at.tails + plan->raters;
    at.levels = at.unsure + plan->raters;
    at.doubts = at.levels + plan->raters + 1;
    at.all = at.doubts + plan->raters + 1;
    return at;
}

int64_t rcn__level_slots(const rcn__level_plan *plan) { return slots_of(plan).all + 1; }

/* ---- preparing ------------------------------------------------------------------------------- */

rcn_status rcn__level_plan_make(rcn__level_plan *out, rcn_context *ctx, const rcn_calib *calib,
                                const rcn_image *prediction) {
    rcn_status status = RCN_OK;
    const int raters = calib->raters, bins = calib->options.bins;
    out->raters = raters;
    out->bins = bins;
    out->binomial = 1;
    if (prediction->components > 1) RCN_TRY(rcn_levels_are_ends(&out->binomial, ctx, prediction));
    rcn__binomial_factors(out->choose, raters);
    RCN_ALLOC(out->edges, ctx, bins + 1, "bookkeeping");
    for (int b = 0; b < bins; ++b) out->edges[b] = rcn__bin_edge(b, bins);
    /* Above every probability: 1 belongs to the last bin, by the same comparison as in all
     * others. */
    out->edges[bins] = 2.0f;
done:
    return status;
}

void rcn__level_plan_free(rcn__level_plan *plan, rcn_context *ctx) { rcn__free(ctx, plan->edges); }

rcn_status rcn__level_scratch_make(rcn__level_scratch **out, rcn_context *ctx, int raters) {
    rcn_status status;
    rcn__level_scratch *scratch = NULL;
    RCN_ALLOC_ZERO(scratch, ctx, 1, "the levels of a block");
    RCN_ALLOC_ZERO(scratch->planes, ctx, (raters + 1) * BLOCK, "the levels of a block");
    RCN_ALLOC(scratch->tails, ctx, (raters + 1) * BLOCK, "the levels of a block");
    RCN_ALLOC(scratch->sums, ctx, (raters + 1) * LANES, "the levels of a block");
    *out = scratch;
    scratch = NULL;
done:
    rcn__level_scratch_free(scratch, ctx);
    return status;
}

void rcn__level_scratch_free(rcn__level_scratch *scratch, rcn_context *ctx) {
    if (!scratch) return;
    rcn__free(ctx, scratch->planes);
    rcn__free(ctx, scratch->tails);
    rcn__free(ctx, scratch->sums);
    rcn__free(ctx, scratch);
}

float *rcn__level_planes(rcn__level_scratch *scratch) { return scratch->planes; }

/* ---- a block of voxels ----------------------------------------------------------------------- */

/* What is kept of LANES voxels on the way from level K down to level 0. */
typedef struct lanes_state {
    double run[LANES];        /* P(y >= k) */
    double rps[LANES];        /* sum over t of (P(y >= t) - [y >= t])^2 */
    double likelihood[LANES]; /* p_y */
} lanes_state;

RCN_INLINE void step_down(lanes_state *restrict state, float *restrict tail, uint64_t *restrict sum,
                          const double *restrict level, const double *restrict y, int k) {
    for (int l = 0; l < LANES; ++l) {
        state->likelihood[l] = y[l] == (double)k ? level[l] : state->likelihood[l];
        state->run[l] += level[l];
        const double gap = state->run[l] - (y[l] >= (double)k ? 1.0 : 0.0);
        state->rps[l] += k ? gap * gap : 0.0;
        /* Rounded and cut as the readout "at least k". */
        tail[l] = (float)(state->run[l] < 1.0 ? state->run[l] : 1.0);
        sum[l] += rcn__to_fixed((double)tail[l]);
    }
}

/* From the levels, or from p (`choose`: K over k), to tails and scores; `count` is rounded up to
 * whole lanes, and what is beyond must be finite. */
RCN_DISPATCH static void score_block(rcn__level_scratch *restrict s, const double *choose,
                                     int raters, int count) {
    memset(s->sums, 0, sizeof *s->sums * (size_t)(raters + 1) * LANES);
    for (int i = 0; i < count; i += LANES) {
        lanes_state state;
        double level[LANES], yes[LANES], no[LANES];
        double power[RCN_MAX_RATERS + 1][LANES]; /* p^k */
        for (int l = 0; l < LANES; ++l) {
            state.run[l] = state.rps[l] = state.likelihood[l] = 0;
            yes[l] = (double)s->p[i + l];
            no[l] = power[0][l] = 1.0;
        }
        for (int k = 1; choose && k <= raters; ++k)
            for (int l = 0; l < LANES; ++l) power[k][l] = power[k - 1][l] * yes[l];
        for (int k = raters; k >= 0; --k) {
            for (int l = 0; choose && l < LANES; ++l) {
                level[l] = choose[k] * power[k][l] * no[l];
                no[l] *= 1.0 - yes[l];
            }
            for (int l = 0; !choose && l < LANES; ++l)
                level[l] = (double)s->planes[k * BLOCK + i + l];
            step_down(&state, s->tails + k * BLOCK + i, s->sums + k * LANES, level, s->y + i, k);
        }
        for (int l = 0; l < LANES; ++l) {
            /* A level that was held to be impossible has a finite price. */
            const double p = state.likelihood[l] < 1e-7 ? 1e-7 : state.likelihood[l];
            s->likelihood[i + l] = p > 1 - 1e-7 ? 1 - 1e-7 : p;
            s->rps[i + l] = state.rps[l] / (raters + 1);
        }
    }
}

/* Adds a voxel to the bins of all t. */
static inline void tally_bins(uint64_t *restrict hot, const rcn__level_plan *plan,
                              const float *restrict tails, int y) {
    const int raters = plan->raters, bins = plan->bins;
    const float *edges = plan->edges;
    for (int t = 1; t <= raters; ++t) {
        const float p = tails[t * BLOCK];
        int b = (int)(p * (float)bins); /* by rounding one off at most: the edges decide */
        b = b < bins ? b : bins - 1;
        b += (p >= edges[b + 1]) - (p < edges[b]);
        uint64_t *word = hot + 2 * ((t - 1) * bins + b);
        word[0] += UINT64_C(1) << RCN_FRACTION_BITS | (uint64_t)(y >= t);
        word[1] += rcn__to_fixed((double)p);
    }
}

/* Puts the voxels that all raters answered together, and fills the last lanes up. */
static int gather(rcn__level_scratch *s, const rcn__level_plan *plan, const float *p,
                  const int64_t *marked, const int64_t *unmarked, int count) {
    int32_t from[BLOCK];
    int used = 0;
    for (int i = 0; i < count; ++i) {
        s->y[used] = (double)marked[i];
        s->p[used] = p[i];
        from[used] = i;
        used += marked[i] + unmarked[i] == plan->raters;
    }
    if (!plan->binomial && used < count)
        for (int k = 0; k <= plan->raters; ++k)
            for (int i = 0; i < used; ++i)
                s->planes[k * BLOCK + i] = s->planes[k * BLOCK + from[i]];
    /* y = -1 is below all levels: nothing is hit. */
    for (int i = used; i % LANES; ++i) {
        s->y[i] = -1;
        s->p[i] = 0;
        for (int k = 0; k <= plan->raters; ++k) s->planes[k * BLOCK + i] = 0;
    }
    return used;
}

/* The expected readout: the mean of P(y >= t). */
static float expected_of(const float *tails, int raters) {
    double sum = 0;
    for (int t = 1; t <= raters; ++t) sum += (double)tails[t * BLOCK];
    return (float)(sum / raters);
}

void rcn__level_tally(uint64_t *hot, rcn__level_chunk *chunk, rcn__level_scratch *s,
                      const rcn__level_plan *plan, const float *p, const int64_t *marked,
                      const int64_t *unmarked, int count) {
    const slots at = slots_of(plan);
    const int raters = plan->raters, used = gather(s, plan, p, marked, unmarked, count);
    if (!used) return;
    score_block(s, plan->binomial ? plan->choose : NULL, raters, used);
    rcn__log_sum_add(&chunk->likelihood, s->likelihood, used);
    for (int i = 0; i < used; ++i) chunk->rps += s->rps[i];
    for (int t = 1; t <= raters; ++t)
        for (int l = 0; l < LANES; ++l) hot[at.tails + t - 1] += s->sums[t * LANES + l];
    hot[at.all] += (uint64_t)used;
    /* Unsure voxels are among those that are looked at: P(y >= 1) is not below the expected
     * readout. */
    const float little = fminf(plan->bins > 1 ? plan->edges[1] : 1.0f, 0.9f * (float)RCN_UNSURE);
    int16_t picked[BLOCK];
    int count_picked = 0;
    for (int i = 0; i < used; ++i) {
        picked[count_picked] = (int16_t)i;
        count_picked += (s->tails[BLOCK + i] >= little) | (s->y[i] > 0);
    }
    for (int n = 0; n < count_picked; ++n) {
        const int i = picked[n], y = (int)s->y[i];
        const float expected = plan->binomial ? s->p[i] : expected_of(s->tails + i, raters);
        ++hot[at.levels + y];
        tally_bins(hot, plan, s->tails + i, y);
        if (!(expected >= (float)RCN_UNSURE && expected <= (float)(1 - RCN_UNSURE))) continue;
        for (int t = 1; t <= raters; ++t)
            hot[at.unsure + t - 1] += rcn__to_fixed((double)s->tails[t * BLOCK + i]);
        ++hot[at.doubts + y];
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Two words in fixed point, `low` of RCN_FRACTION_BITS bits: with a borrow. */
static void subtract(rcn__wide *from, rcn__wide what) {
    const int borrow = from->low < what.low;
    from->low += ((uint64_t)borrow << RCN_FRACTION_BITS) - what.low;
    from->high -= what.high + (uint64_t)borrow;
}

static double count_in(const uint64_t *slot) {
    rcn__wide w = {0, 0};
    rcn__widen(&w, slot);
    return rcn__wide_count(w);
}

/* [raters + 1][2]: p_k is what P(y >= k) has and P(y >= k + 1) has not; level 0 is the rest. */
static void sum_shares(double *shares, const uint64_t *tails, const uint64_t *levels, double voxels,
                       int raters) {
    double above = 0;
    shares[1] = voxels;
    for (int k = raters; k >= 1; --k) {
        rcn__wide tail = {0, 0};
        rcn__widen(&tail, tails + 2 * (k - 1));
        shares[2 * k] = rcn__wide_fixed(tail) - above;
        shares[2 * k + 1] = count_in(levels + 2 * k);
        shares[1] -= shares[2 * k + 1];
        above = rcn__wide_fixed(tail);
    }
    shares[0] = voxels - above;
}

void rcn__level_sum(double *sums, const rcn_calib *calib, const rcn__level_plan *plan,
                    const uint64_t *total) {
    const slots at = slots_of(plan);
    const int raters = plan->raters, bins = plan->bins;
    double marked = 0; /* voxels with y >= t */
    const double voxels = count_in(total + 2 * at.all);
    sums[RCN_SUM_LEVEL_VOXELS] = voxels;
    /* Of one rater the two levels are the probability. */
    sums[RCN_SUM_BINOMIAL_VOXELS] = plan->binomial && raters > 1 ? voxels : 0;
    for (int t = raters; t >= 1; --t) {
        double *out = sums + rcn__sum_levels(calib, t);
        rcn__wide rest = {0, 0};
        rcn__widen(&rest, total + 2 * (at.tails + t - 1));
        marked += count_in(total + 2 * (at.levels + t));
        out[0] = voxels;
        out[2] = marked;
        for (int b = 1; b < bins; ++b) {
            const uint64_t *slot = total + 4 * ((t - 1) * bins + b);
            rcn__wide p = {0, 0};
            rcn__widen(&p, slot + 2);
            out[3 * b] = (double)slot[1];
            out[3 * b + 1] = rcn__wide_fixed(p);
            out[3 * b + 2] = (double)slot[0];
            out[0] -= out[3 * b];
            out[2] -= out[3 * b + 2];
            subtract(&rest, p);
        }
        out[1] = rcn__wide_fixed(rest);
    }
    double unsure = 0;
    for (int k = 0; k <= raters; ++k) unsure += count_in(total + 2 * (at.doubts + k));
    sum_shares(sums + rcn__sum_shares(calib, 0), total + 2 * at.tails, total + 2 * at.levels,
               voxels, raters);
    sum_shares(sums + rcn__sum_shares(calib, 1), total + 2 * at.unsure, total + 2 * at.doubts,
               unsure, raters);
}

/* ---- figures --------------------------------------------------------------------------------- */

void rcn__level_figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums) {
    const double voxels = sums[RCN_SUM_LEVEL_VOXELS];
    double sum = 0, largest = 0;
    if (!(voxels > 0)) return;
    for (int t = 1; t <= calib->raters; ++t) {
        const double ece = rcn__ece_of(sums + rcn__sum_levels(calib, t), calib->options.bins);
        sum += ece;
        largest = fmax(largest, ece);
    }
    out[RCN_RPS] = sums[RCN_SUM_RPS] / voxels;
    out[RCN_LEVEL_NLL] = sums[RCN_SUM_LEVEL_NLL] / voxels;
    out[RCN_LEVEL_ECE] = sum / calib->raters;
    out[RCN_LEVEL_ECE_MAX] = largest;
}

rcn_level_source rcn_calib_level_source(const rcn_calib *calib) {
    const double all = calib->sums[RCN_SUM_LEVEL_VOXELS];
    const double made = calib->sums[RCN_SUM_BINOMIAL_VOXELS];
    return !(all > 0)    ? RCN_LEVELS_NONE
           : !(made > 0) ? RCN_LEVELS_PREDICTED
           : made < all  ? RCN_LEVELS_MIXED
                         : RCN_LEVELS_BINOMIAL;
}

int64_t rcn_calib_level_voxels(const rcn_calib *calib) {
    return (int64_t)calib->sums[RCN_SUM_LEVEL_VOXELS];
}

const char *rcn_level_source_name(rcn_level_source source) {
    static const char *const names[] = {"none", "predicted", "binomial", "mixed"};
    return (int)source >= 0 && source <= RCN_LEVELS_MIXED ? names[source] : NULL;
}

void rcn_calib_level_bins(rcn_calib_bin *out, const rcn_calib *calib, int at_least) {
    const int bins = calib->options.bins;
    const double *sums = calib->sums + rcn__sum_levels(calib, at_least);
    for (int b = 0; b < bins; ++b)
        rcn__fill_bin(&out[b], (double)b / bins, (double)(b + 1) / bins, sums + 3 * b);
}

void rcn_calib_level_shares(rcn_level_share *out, const rcn_calib *calib, int unsure) {
    const double *shares = calib->sums + rcn__sum_shares(calib, unsure != 0);
    double voxels = 0;
    for (int k = 0; k <= calib->raters; ++k) voxels += shares[2 * k + 1];
    for (int k = 0; k <= calib->raters; ++k) {
        out[k].predicted = voxels > 0 ? shares[2 * k] / voxels : NAN;
        out[k].observed = voxels > 0 ? shares[2 * k + 1] / voxels : NAN;
        out[k].voxels = (int64_t)shares[2 * k + 1];
    }
}
