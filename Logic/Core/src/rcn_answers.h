// SPDX-License-Identifier: Apache-2.0
/* Answers: what one rater said about a run of voxels, from images of any element type to bytes. The
 * votes read plain masks and label maps through here. */
#ifndef RCN_ANSWERS_H
#define RCN_ANSWERS_H

#include "rcn/rcn_votes.h"

/* All that one rater said about a case. A plain mask is one map without structures[]: its values
 * mean structure 1, as any non-zero value does when it names none. */
typedef struct rcn__answers {
    const rcn_label_map *maps;
    int map_count;
    int rater;      /* for the sentences */
    int structures; /* C */
} rcn__answers;

/* A plain mask as a map; borrows what the mask points to. */
rcn_label_map rcn__mask_map(const rcn_mask *mask);

/* Everything that can be wrong before a voxel is read. */
rcn_status rcn__answers_check(rcn_context *ctx, const rcn__answers *answers,
                              const rcn_geometry *geometry);

/* out[i] = what the rater said about voxel first + i: 0 ... C, or C + 1 for no answer; count is at
 * most RCN_CHUNK. Adds the voxels whose value no map names to *unnamed (NULL: not wanted). Returns
 * a voxel that cannot be used (a fractional label, two structures), or -1. */
int64_t rcn__answers_read(uint8_t *out, int64_t *unnamed, const rcn__answers *answers,
                          int64_t first, int64_t count);

/* The sentence about such a voxel. */
rcn_status rcn__answers_fail(rcn_context *ctx, const rcn__answers *answers, int64_t voxel);

#endif /* RCN_ANSWERS_H */
