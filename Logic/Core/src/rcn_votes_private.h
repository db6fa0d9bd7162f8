// SPDX-License-Identifier: Apache-2.0
/* Inside of the votes, for the library's own voxel passes. */
#ifndef RCN_VOTES_PRIVATE_H
#define RCN_VOTES_PRIVATE_H

#include "rcn/rcn_votes.h"
#include "rcn_answers.h"
#include "rcn_parallel.h"

struct rcn_votes {
    rcn_context *ctx;
    rcn_geometry geometry;
    int64_t voxels;
    int raters;
    int structures; /* C; 1 for plain votes and for those of one structure */
    uint64_t present;
    int unanswered; /* some present rater left voxels out */
    int dense;      /* code == pattern of marks, patterns[2^raters] */
    int code_bytes;
    void *codes;
    int borrowed; /* the codes belong to other votes */
    int64_t pattern_count;
    rcn_pattern *patterns;
    uint8_t *labels; /* (pattern_count, raters); NULL: plain votes */
};

/* Splits every code by a rater's answer and numbers the pairs that occur. *unnamed (NULL: not
 * wanted) = voxels whose value no map names. On failure votes and *unnamed are as before. */
rcn_status rcn__votes_refine(rcn_votes *votes, rcn_context *ctx, const rcn__answers *said,
                             int64_t *unnamed);

/* Whether the labels or the mask of a rater can be added. */
rcn_status rcn__votes_may_add(rcn_context *ctx, const rcn_votes *votes, int rater, int labels);

/* Votes without room for codes: only their table. */
rcn_status rcn__votes_create_table(rcn_votes **out, rcn_context *ctx, const rcn_geometry *geometry,
                                   int raters, int dense);

/* A box that holds nothing: first > end. */
static inline rcn_box rcn__box_empty(void) {
    const rcn_box box = {{INT64_MAX, INT64_MAX, INT64_MAX}, {INT64_MIN, INT64_MIN, INT64_MIN}};
    return box;
}

/* Makes the box hold first ... end - 1, too; nothing where that is empty. */
static inline void rcn__box_grow(rcn_box *box, const int64_t first[3], const int64_t end[3]) {
    for (int a = 0; a < 3; ++a) {
        if (first[a] < box->first[a]) box->first[a] = first[a];
        if (end[a] > box->end[a]) box->end[a] = end[a];
    }
}

/* out[i] = the code of voxel first + i. */
void rcn__votes_read(uint32_t *out, const rcn_votes *votes, int64_t first, int64_t count);

/* counts[code] += voxels that carry it, inside the box (NULL: everywhere). */
rcn_status rcn__votes_count(int64_t *counts, rcn_context *ctx, const rcn_votes *votes,
                            const rcn_box *box);

/* The same for the box around all marks grown by `margin` voxels; margin < 0: everywhere. */
rcn_status rcn__votes_count_around(int64_t *counts, rcn_context *ctx, const rcn_votes *votes,
                                   int64_t margin);

/* What whoever works on finished votes needs: the votes, a place for the result, and a rater who
 * answered; with `labels` also that they are votes of several structures. */
rcn_status rcn__votes_check(rcn_context *ctx, const void *out, const rcn_votes *votes, int labels);

/* Votes that keep only the table of patterns and not a code per voxel, for masks that stay in
 * memory and are read again by rcn__votes_expand_masks(). *out is NULL (and RCN_OK) where codes are
 * needed: more than 16 raters, or voxels left unanswered. */
rcn_status rcn__votes_count_masks(rcn_votes **out, rcn_context *ctx, const rcn_mask *masks,
                                  int raters);

/* out[voxel] = table[code], with the codes made again from the masks that were counted. */
rcn_status rcn__votes_expand_masks(float *out, rcn_context *ctx, const rcn_votes *votes,
                                   const rcn_mask *masks, const float *table);

/* counts (patterns, structures + 1): how often each label was given; labels as rcn_votes_labels().
 */
void rcn__count_labels(uint8_t *counts, const uint8_t *labels, int64_t patterns, int raters,
                       int structures);

/* The label that was given most, of one row of counts. A tie goes to a structure before the
 * background, and to the structure of the lower number. */
uint8_t rcn__most_given(const uint8_t *counts, int structures);

/* The share of raters who marked, among those who answered; 0 where nobody did. */
double rcn__pattern_mean(const rcn_pattern *pattern);

/* Whether some of those who answered marked, but not all of them. */
static inline int rcn__pattern_is_disputed(const rcn_pattern *pattern) {
    return pattern->marked && pattern->marked != pattern->answered;
}

/* table[code] = the mean vote m as float. */
void rcn__votes_mean_table(float *table, const rcn_votes *votes);

#endif /* RCN_VOTES_PRIVATE_H */
