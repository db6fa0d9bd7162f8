// SPDX-License-Identifier: Apache-2.0
/* Inside of the calibration sums, and how a case is read, for the files that judge predictions. */
#ifndef RCN_CALIB_PRIVATE_H
#define RCN_CALIB_PRIVATE_H

#include <string.h>

#include "rcn/rcn_calib.h"
#include "rcn_votes_private.h"

/* ---- the fine histogram ------------------------------------------------------------------------
 *
 * Cells of [0, 1] in ascending order, the same in every rcn_calib: 1/4096 wide in the middle, and
 * towards 0 and 1, where trained networks put most voxels, 64 to an octave of p or 1 - p down to
 * 2^-24. Symmetric but for p = 1/2, which is a cell of its own. */
enum {
    RCN_FINE_TAIL = 1 + 18 * 64,               /* cells of [0, 2^-6) */
    RCN_FINE_HALF = RCN_FINE_TAIL + 2048 - 64, /* cells of [0, 1/2) */
    RCN_FINE = 2 * RCN_FINE_HALF + 1
};

/* Where cell number `cell` begins; 1 for RCN_FINE. */
double rcn__fine_edge(int cell);

/* Reads the cells that are not empty in ascending order, from sums that are packed
 * (rcn_calib_pack()) or not. */
typedef struct rcn__fine {
    int cell; /* its number */
    int raters;
    const double *dense;
    const uint8_t *at, *end;
    double sums[5];
} rcn__fine;

void rcn__fine_begin(rcn__fine *out, const rcn_calib *calib);
/* The five sums of the next cell, valid until the next call; NULL after the last. */
const double *rcn__fine_next(rcn__fine *fine);
/* Adds `weight` times all cells to out[RCN_FINE][5]. */
void rcn__fine_add(double *out, const rcn_calib *calib, double weight);

/* Makes sums[length] whole again; nothing if they are. */
rcn_status rcn__calib_unpack(rcn_calib *calib, rcn_context *ctx);

/* ---- the sums: one vector of doubles -----------------------------------------------------------
 *
 * Counts stay exact in a double up to 2^53. Merging is adding vectors; a bootstrap draw is a
 * weighted sum of vectors. */
enum {
    RCN_SUM_VOXELS = 0,
    RCN_SUM_NLL,
    RCN_SUM_RPS,
    RCN_SUM_LEVEL_NLL,
    RCN_SUM_LEVEL_VOXELS,    /* those that all raters answered */
    RCN_SUM_BINOMIAL_VOXELS, /* those of them whose levels were made of one probability */
    RCN_SUM_CASES,
    RCN_SUM_DICE,       /* over cases, each in units of 2^-42: exact, in whatever order they come */
    RCN_SUM_DICE_CASES, /* those with something marked in the reference or predicted */
    RCN_SUM_GRADES, /* [12][18]: voxels by grade of p and by grade of m and reference, see below */
    RCN_SUM_CONFIDENCE = RCN_SUM_GRADES + 12 * 18 /* [bins][3], then as below */
    /* confidence [bins][3]: voxels, sum of max(p, 1 - p), voxels predicted right
     * reference  [bins][3]: voxels, sum of p, voxels that are foreground in the reference
     * raters     [raters][2]: sum of p^2, sum of p where marked
     * bins       [raters][bins][3]: voxels answered, sum of p, voxels marked
     * levels     [raters][bins][3]: voxels that all answered, sum of P(y >= t), voxels with y >= t;
     *                               t = 1 ... raters
     * shares     [2][raters + 1][2]: sum of p_k, voxels of level k; of those that all answered, and
     *                               of those among them where the prediction is unsure
     * scatter    [bins][3]: over cases, of the pairs n in a bin and their gap d = sum p - marked:
     *                       sums of n^2, n d, d^2
     * fine       [RCN_FINE][5]: pairs, pairs marked, sum of p over pairs, voxels with a reference,
     *                           voxels that are foreground in it */
};

struct rcn_calib {
    rcn_context *ctx;
    rcn_calib_options options;
    int raters;
    int64_t length; /* of sums; those that are packed end before the fine histogram */
    double *sums;
    uint8_t *packed; /* the fine histogram (rcn_fine.c); NULL: at the end of sums */
    int64_t packed_bytes;
};

int64_t rcn__sum_reference(const rcn_calib *calib);
int64_t rcn__sum_rater(const rcn_calib *calib, int rater);
int64_t rcn__sum_bins(const rcn_calib *calib, int rater);
int64_t rcn__sum_levels(const rcn_calib *calib, int at_least);
int64_t rcn__sum_shares(const rcn_calib *calib, int unsure);
int64_t rcn__sum_scatter(const rcn_calib *calib);
int64_t rcn__sum_fine(const rcn_calib *calib);

/* Memory that the sums take. */
int64_t rcn__calib_bytes(const rcn_calib *calib);

/* Bins [lower, upper) by their rounded edges, the last closed. */
float rcn__bin_edge(int bin, int bins);

/* Sum of |sum p - sum y| over bins [count][3], over all their voxels; NaN without any. */
double rcn__ece_of(const double *bins, int count);

/* One bin of its three sums. */
void rcn__fill_bin(rcn_calib_bin *out, double lower, double upper, const double sums[3]);

/* The figures of `sums`, laid out as in `calib`; without the two from the fine histogram. */
void rcn__figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums);
/* All of them. */
void rcn__all_figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums);

/* Adds `weight` times the sums to out[length]. */
void rcn__calib_add_sums(double *out, const rcn_calib *calib, double weight);

/* AUC of cells in ascending order: cell i has all[i * stride] members, marked[i * stride] of them
 * positive. NaN when one of the classes is absent. */
double rcn__auc_cells(const double *all, const double *marked, int64_t stride, int64_t cells);

/* NULL if two sums can be added, otherwise the sentence that says why not. */
const char *rcn__calib_differ(const rcn_calib *a, const rcn_calib *b);

/* RCN_EINVALID with the number of the first of `cases` that is absent or differs from `like`. */
rcn_status rcn__check_cases(rcn_context *ctx, const rcn_calib *const *cases, int64_t count,
                            const rcn_calib *like);

/* ---- sums of integers ---------------------------------------------------------------------------
 *
 * A pass adds 64-bit integers: probabilities in units of 2^-38, or two counts side by side, the
 * lower one 38 bits wide. A thread empties them into two words each before they can overflow. */
enum { RCN_FRACTION_BITS = 38 };
#define RCN_FRACTION_MASK ((UINT64_C(1) << RCN_FRACTION_BITS) - 1)

/* x in [0, 1] in units of 2^-38, rounded to nearest: adding 2^52 pushes the fraction out of the
 * mantissa, which then is the integer. Unlike a cast this exists as a vector instruction. */
static inline uint64_t rcn__to_fixed(double x) {
    const double shifted = x * (double)(UINT64_C(1) << RCN_FRACTION_BITS) + 0x1p52;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return bits - UINT64_C(0x4330000000000000);
}

/* Lower bits and upper bits of a slot, added up. */
typedef struct rcn__wide {
    uint64_t low, high;
} rcn__wide;

static inline void rcn__widen(rcn__wide *sum, const uint64_t *slot) {
    sum->low += slot[0];
    sum->high += slot[1] + (sum->low >> RCN_FRACTION_BITS);
    sum->low &= RCN_FRACTION_MASK;
}

static inline double rcn__wide_fixed(rcn__wide w) {
    return (double)w.high + (double)w.low / (double)(UINT64_C(1) << RCN_FRACTION_BITS);
}

static inline double rcn__wide_count(rcn__wide w) {
    return (double)w.high * (double)(UINT64_C(1) << RCN_FRACTION_BITS) + (double)w.low;
}

/* The sum of logarithms is the logarithm of the product: eight running products, each with its
 * binary exponent taken out after every two factors, need no logarithm but at the end. */
enum { RCN_LOG_LANES = 8 };
typedef struct rcn__log_sum {
    double product[RCN_LOG_LANES];
    int64_t exponent[RCN_LOG_LANES];
} rcn__log_sum;

void rcn__log_sum_begin(rcn__log_sum *sum);
/* x[0 ... count - 1], each at least 1e-105, with room for 2 * RCN_LOG_LANES - 1 more. */
void rcn__log_sum_add(rcn__log_sum *sum, double *x, int count);
double rcn__log_sum_value(const rcn__log_sum *sum);

/* ---- reading a case -------------------------------------------------------------------------- */

/* Voxels read at once: with all scratch they stay in the first-level cache. */
enum { RCN_CASE_BLOCK = 256 };

/* What a voxel pass wants to know about a pattern. */
typedef struct rcn__vote {
    uint8_t marked, answered;
    uint8_t reference; /* 0, 1, or 2: none */
    uint8_t grade;     /* thresholds .1 .3 .5 .7 .9 that m reaches, 0 ... 5 */
} rcn__vote;

typedef struct rcn__case {
    const rcn_votes *votes;
    const float *data;
    int components;
    const uint8_t *region;
    double weights[RCN_MAX_RATERS + 1]; /* of the levels in the readout */
    rcn__vote *patterns;
    int everywhere; /* each voxel counts */
    int64_t *bad;   /* per thread: lowest voxel that cannot be used, or INT64_MAX */
} rcn__case;

/* Checks all but the voxels. Close also after a failure. */
rcn_status rcn__case_open(rcn__case *out, rcn_context *ctx, const rcn_calib_case *one_case,
                          int raters, rcn_readout readout, int at_least);

/* The same for a prediction of the shares of C + 1 labels against votes that hold labels; readouts
 * have no meaning there. */
rcn_status rcn__case_open_labels(rcn__case *out, rcn_context *ctx, const rcn_calib_case *one_case,
                                 int structures);
void rcn__case_close(rcn__case *c, rcn_context *ctx);

/* The voxels that count among first ... first + count - 1 (at most a block): probability and code,
 * and (NULL: not wanted) their levels if there are any: planes of RCN_CASE_BLOCK, one per level.
 * Returns how many. */
int rcn__case_read(float *p, uint32_t *codes, float *planes, rcn__case *c, int64_t first,
                   int64_t count, int thread);

/* After the pass: RCN_EDATA with its sentence if some voxel could not be used. */
rcn_status rcn__case_result(rcn_context *ctx, const rcn__case *c);

/* RCN_EDATA for the voxel whose probability, or levels, cannot be used. */
rcn_status rcn__fail_voxel(rcn_context *ctx, const rcn_geometry *geometry, const float *values,
                           int components, int64_t voxel);

/* After a pass with bad[threads] as in rcn__case: RCN_OK, or what is said above of the lowest. */
rcn_status rcn__check_voxels(rcn_context *ctx, const int64_t *bad, const rcn_geometry *geometry,
                             const float *values, int components);

/* choose[k] = raters over k, k = 0 ... raters. */
void rcn__binomial_factors(double *choose, int raters);

/* The readout of one voxel's levels; -1 where they cannot be used. */
float rcn__read_levels(const float *levels, int components, const double *weights);

/* weights[0 ... raters] of a readout; a sentence if there is no such readout, otherwise NULL. */
const char *rcn__readout_weights(double *weights, int raters, rcn_readout readout, int at_least);

/* ---- the levels of a case (rcn_level_calib.c) ---------------------------------------------------
 */

typedef struct rcn__level_plan {
    int raters, bins;
    int binomial;                      /* levels are Binomial(raters, p) */
    float *edges;                      /* [bins + 1]; the last one is 2 */
    double choose[RCN_MAX_RATERS + 1]; /* raters over k */
} rcn__level_plan;

/* What a thread needs of its own, for a block of voxels. */
typedef struct rcn__level_scratch rcn__level_scratch;

/* Sums of a chunk of voxels. */
typedef struct rcn__level_chunk {
    rcn__log_sum likelihood;
    double rps;
} rcn__level_chunk;

rcn_status rcn__level_plan_make(rcn__level_plan *out, rcn_context *ctx, const rcn_calib *calib,
                                const rcn_image *prediction);
void rcn__level_plan_free(rcn__level_plan *plan, rcn_context *ctx);

rcn_status rcn__level_scratch_make(rcn__level_scratch **out, rcn_context *ctx, int raters);
void rcn__level_scratch_free(rcn__level_scratch *scratch, rcn_context *ctx);
/* Where rcn__case_read() puts the levels. */
float *rcn__level_planes(rcn__level_scratch *scratch);

/* Slots of a thread's tally. */
int64_t rcn__level_slots(const rcn__level_plan *plan);

/* Adds a block as rcn__case_read() gave it, with how many raters mark a voxel and do not. */
void rcn__level_tally(uint64_t *hot, rcn__level_chunk *chunk, rcn__level_scratch *scratch,
                      const rcn__level_plan *plan, const float *p, const int64_t *marked,
                      const int64_t *unmarked, int count);

/* From the slots [slots][2] of all threads to the sums, but for those of chunks. */
void rcn__level_sum(double *sums, const rcn_calib *calib, const rcn__level_plan *plan,
                    const uint64_t *total);

/* RPS, and what else the levels give. */
void rcn__level_figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums);

#endif /* RCN_CALIB_PRIVATE_H */
