// SPDX-License-Identifier: Apache-2.0
/* Inside of the votes, for the library's own voxel passes. */
#ifndef RCN_VOTES_PRIVATE_H
#define RCN_VOTES_PRIVATE_H

#include "rcn/rcn_votes.h"
#include "rcn_parallel.h"

struct rcn_votes {
    rcn_context *ctx;
    rcn_geometry geometry;
    int64_t voxels;
    int raters;
    uint64_t present;
    int unanswered; /* some present rater left voxels out */
    int dense;      /* code == pattern of marks, patterns[2^raters] */
    int code_bytes;
    void *codes;
    int64_t pattern_count;
    rcn_pattern *patterns;
};

/* out[i] = the code of voxel first + i. */
void rcn__votes_read(uint32_t *out, const rcn_votes *votes, int64_t first, int64_t count);

/* counts[code] += voxels that carry it, inside the box (NULL: everywhere). */
rcn_status rcn__votes_count(int64_t *counts, rcn_context *ctx, const rcn_votes *votes,
                            const rcn_box *box);

/* Votes that keep only the table of patterns and not a code per voxel, for masks that stay in
 * memory and are read again by rcn__votes_expand_masks(). *out is NULL (and RCN_OK) where codes are
 * needed: more than 16 raters, or voxels left unanswered. */
rcn_status rcn__votes_count_masks(rcn_votes **out, rcn_context *ctx, const rcn_mask *masks,
                                  int raters);

/* out[voxel] = table[code], with the codes made again from the masks that were counted. */
rcn_status rcn__votes_expand_masks(float *out, rcn_context *ctx, const rcn_votes *votes,
                                   const rcn_mask *masks, const float *table);

/* The share of raters who marked, among those who answered; 0 where nobody did. */
double rcn__pattern_mean(const rcn_pattern *pattern);

/* table[code] = the mean vote m as float. */
void rcn__votes_mean_table(float *table, const rcn_votes *votes);

#endif /* RCN_VOTES_PRIVATE_H */
