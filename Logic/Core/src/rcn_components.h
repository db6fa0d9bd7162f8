// SPDX-License-Identifier: Apache-2.0
/* Connected components of a set of voxels: those that touch by a face, edge or corner belong
 * together. The set is kept as runs along x, so that memory grows with its surface and not with the
 * image, and what a caller wants to know of a component is added up over its runs. */
#ifndef RCN_COMPONENTS_H
#define RCN_COMPONENTS_H

#include "rcn_parallel.h"

/* A run of voxels along x, the longest there is. */
typedef struct rcn__run {
    int64_t first, end; /* along x */
    int64_t row;        /* y + Y * z */
    int64_t component;  /* 0, 1, ... in the order of the components' first voxels */
} rcn__run;

typedef struct rcn__components {
    rcn__run *runs; /* in raster order */
    int64_t run_count;
    int64_t count; /* components */
} rcn__components;

/* inside[i] = whether voxel first + i, of `count` voxels within a row, belongs to the set. Asked
 * twice for each voxel, by any thread. */
typedef void (*rcn__inside_fn)(uint8_t *inside, int64_t first, int64_t count, void *payload);

/* At most so many voxels are asked for at once. */
enum { RCN_INSIDE_BLOCK = 256 };

/* The components of the set; the same for any number of threads. `stage` and `what` name the work
 * for progress and for memory. Free *out with rcn__components_free(), also after a failure. */
rcn_status rcn__components_find(rcn__components *out, rcn_context *ctx, const int64_t size[3],
                                rcn__inside_fn inside, void *payload, const char *stage,
                                const char *what);
void rcn__components_free(rcn__components *components, rcn_context *ctx);

#endif /* RCN_COMPONENTS_H */
