// SPDX-License-Identifier: Apache-2.0
/* Inside of the calibration sums, and how a case is read, for the files that judge predictions. */
#ifndef RCN_CALIB_PRIVATE_H
#define RCN_CALIB_PRIVATE_H

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

/* ---- the sums: one vector of doubles -----------------------------------------------------------
 *
 * Counts stay exact in a double up to 2^53. Merging is adding vectors; a bootstrap draw is a
 * weighted sum of vectors. */
enum {
    RCN_SUM_VOXELS = 0,
    RCN_SUM_NLL,
    RCN_SUM_RPS,
    RCN_SUM_RPS_VOXELS,
    RCN_SUM_DICE,       /* over cases, each in units of 2^-42: exact, in whatever order they come */
    RCN_SUM_DICE_CASES, /* those with something marked in the reference or predicted */
    RCN_SUM_GRADES, /* [12][18]: voxels by grade of p and by grade of m and reference, see below */
    RCN_SUM_CONFIDENCE = RCN_SUM_GRADES + 12 * 18 /* [bins][3], then as below */
    /* confidence [bins][3]: voxels, sum of max(p, 1 - p), voxels predicted right
     * reference  [bins][3]: voxels, sum of p, voxels that are foreground in the reference
     * raters     [raters][2]: sum of p^2, sum of p where marked
     * bins       [raters][bins][3]: voxels answered, sum of p, voxels marked
     * fine       [RCN_FINE][5]: pairs, pairs marked, sum of p over pairs, voxels with a reference,
     *                           voxels that are foreground in it */
};

struct rcn_calib {
    rcn_context *ctx;
    rcn_calib_options options;
    int raters;
    int64_t length; /* of sums */
    double *sums;
};

int64_t rcn__sum_reference(const rcn_calib *calib);
int64_t rcn__sum_rater(const rcn_calib *calib, int rater);
int64_t rcn__sum_bins(const rcn_calib *calib, int rater);
int64_t rcn__sum_fine(const rcn_calib *calib);

/* The figures of `sums`, laid out as in `calib`; without the two from the fine histogram. */
void rcn__figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums);
/* All of them. */
void rcn__all_figures(double out[RCN_FIGURES], const rcn_calib *calib, const double *sums);

/* AUC of cells in ascending order: cell i has all[i * stride] members, marked[i * stride] of them
 * positive. NaN when one of the classes is absent. */
double rcn__auc_cells(const double *all, const double *marked, int64_t stride, int64_t cells);

/* NULL if two sums can be added, otherwise the sentence that says why not. */
const char *rcn__calib_differ(const rcn_calib *a, const rcn_calib *b);

/* RCN_EINVALID with the number of the first of `cases` that is absent or differs from `like`. */
rcn_status rcn__check_cases(rcn_context *ctx, const rcn_calib *const *cases, int64_t count,
                            const rcn_calib *like);

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
void rcn__case_close(rcn__case *c, rcn_context *ctx);

/* The voxels that count among first ... first + count - 1 (at most a block): probability and code.
 * Returns how many. *rps and *rps_voxels (NULL: not wanted) grow where there are levels. */
int rcn__case_read(float *p, uint32_t *codes, double *rps, int64_t *rps_voxels, rcn__case *c,
                   int64_t first, int64_t count, int thread);

/* After the pass: RCN_EDATA with its sentence if some voxel could not be used. */
rcn_status rcn__case_result(rcn_context *ctx, const rcn__case *c);

/* RCN_EDATA for the voxel whose probability, or levels, cannot be used. */
rcn_status rcn__fail_voxel(rcn_context *ctx, const rcn_geometry *geometry, const float *values,
                           int components, int64_t voxel);

/* The readout of one voxel's levels; -1 where they cannot be used. */
float rcn__read_levels(const float *levels, int components, const double *weights);

/* weights[0 ... raters] of a readout; a sentence if there is no such readout, otherwise NULL. */
const char *rcn__readout_weights(double *weights, int raters, rcn_readout readout, int at_least);

#endif /* RCN_CALIB_PRIVATE_H */
