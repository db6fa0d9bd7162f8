// SPDX-License-Identifier: Apache-2.0
/* Connected components of runs (rcn_components.h): labeling with union-find, on runs along x in
 * place of voxels.
 *
 * Rows are scanned twice, in parallel: once to count their runs, so that each row knows where its
 * runs go, and once to write them. Joining is done by one thread.
 */
#include "rcn_components.h"

typedef struct run_job {
    int64_t width;
    rcn__inside_fn inside;
    void *payload;
    int64_t *row_start; /* [rows + 1]: first how many runs a row has, then where they start */
    rcn__run *runs;     /* .component is the parent while runs are joined (union-find) */
} run_job;

/* One row of voxels: counts its runs, or writes them. */
static void scan_row(int64_t row, int thread, void *payload) {
    const run_job *job = payload;
    int64_t found = 0;
    rcn__run *current = NULL;
    int before = 0;
    uint8_t inside[RCN_INSIDE_BLOCK];
    (void)thread;
    for (int64_t x = 0; x < job->width; x += RCN_INSIDE_BLOCK) {
        const int64_t n = job->width - x < RCN_INSIDE_BLOCK ? job->width - x : RCN_INSIDE_BLOCK;
        job->inside(inside, row * job->width + x, n, job->payload);
        for (int64_t i = 0; i < n; ++i) {
            if (inside[i] && !before) {
                if (job->runs) {
                    current = &job->runs[job->row_start[row] + found];
                    current->first = x + i;
                    current->row = row;
                    current->component = job->row_start[row] + found;
                }
                ++found;
            }
            before = inside[i];
            /* A run goes on across blocks: `before` and `current` outlive them. */
            if (before && job->runs) current->end = x + i + 1;
        }
    }
    if (!job->runs) job->row_start[row] = found;
}

static int64_t find_root(rcn__run *runs, int64_t i) {
    while (runs[i].component != i) {
        runs[i].component = runs[runs[i].component].component; /* halve the path on the way */
        i = runs[i].component;
    }
    return i;
}

/* Joins the runs of two rows that touch by a face, edge or corner, walking along both at once. The
 * root is always the first run in raster order, so that the result does not depend on the order of
 * joining. */
static void join_rows(const run_job *job, int64_t row, int64_t other) {
    rcn__run *runs = job->runs;
    int64_t a = job->row_start[row], b = job->row_start[other];
    const int64_t a_end = job->row_start[row + 1], b_end = job->row_start[other + 1];
    while (a < a_end && b < b_end) {
        /* <= and not <, because `end` is one behind the last voxel: corners touch, too. */
        if (runs[a].first <= runs[b].end && runs[b].first <= runs[a].end) {
            const int64_t i = find_root(runs, a), j = find_root(runs, b);
            if (i < j)
                runs[j].component = i;
            else
                runs[i].component = j;
        }
        if (runs[a].end < runs[b].end)
            ++a;
        else
            ++b;
    }
}

rcn_status rcn__components_find(rcn__components *out, rcn_context *ctx, const int64_t size[3],
                                rcn__inside_fn inside, void *payload, const char *stage,
                                const char *what) {
    rcn_status status;
    run_job job = {size[0], inside, payload, NULL, NULL};
    const int64_t rows = size[1] * size[2];
    out->runs = NULL;
    out->run_count = out->count = 0;
    RCN_ALLOC_ZERO(job.row_start, ctx, rows + 1, what);
    RCN_TRY(rcn__for_chunks(ctx, stage, rows, scan_row, &job));
    int64_t total = 0;
    for (int64_t row = 0; row <= rows; ++row) {
        const int64_t here = job.row_start[row];
        job.row_start[row] = total;
        total += here;
    }
    RCN_ALLOC(out->runs, ctx, total, what);
    job.runs = out->runs;
    RCN_TRY(rcn__for_chunks(ctx, stage, rows, scan_row, &job));
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t y = row % size[1], z = row / size[1];
        /* Of the eight rows around this one, the four that come before it; the others do the
         * same. */
        if (y > 0) join_rows(&job, row, row - 1);
        for (int64_t dy = -1; z > 0 && dy <= 1; ++dy)
            if (y + dy >= 0 && y + dy < size[1]) join_rows(&job, row, row - size[1] + dy);
    }
    RCN_TRY(rcn__report(ctx, 0.5, stage));
    /* Every run points at its root before roots become numbers; a root comes before the rest. */
    for (int64_t i = 0; i < total; ++i) out->runs[i].component = find_root(out->runs, i);
    for (int64_t i = 0; i < total; ++i) {
        rcn__run *run = &out->runs[i];
        run->component = run->component == i ? out->count++ : out->runs[run->component].component;
    }
    out->run_count = total;
done:
    rcn__free(ctx, job.row_start);
    return status;
}

void rcn__components_free(rcn__components *components, rcn_context *ctx) {
    rcn__free(ctx, components->runs);
    components->runs = NULL;
}
