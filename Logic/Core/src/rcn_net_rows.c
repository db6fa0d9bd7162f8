// SPDX-License-Identifier: Apache-2.0
/* Prediction row by row: the maps of a large image do not stay in any cache, so layer after layer
 * would wait for memory. Where each of several operations reads what the one before makes, they run
 * together instead: a strip of rows through all of them, then the next strip. What is only needed
 * within such a sweep is never whole: as many rows of it are kept as the next operation still has
 * to see (a window, rcn__row_place()).
 *
 * An image is cut into parts, which threads take from top to bottom, each with windows of its own.
 * A thread that goes on below the part that it did last has all it needs; for the others some rows
 * are made that the part above makes, too. All numbers are the same to the bits as without sweeps.
 */
#include "rcn_net_plan.h"

#include "rcn_parallel.h"

/* Rows of a strip: few, so that strips of all maps stay in a cache; a multiple of what Winograd's
 * tiles and pooling take together. */
enum { STRIP_ROWS = 4 };

/* Parts for each thread, so that who is done early can take over from others, of so many strips at
 * least, because rows are made twice where that happens. */
enum { PARTS = 8, PART_STRIPS = 8 };

static int64_t height_of(const rcn__plan *plan, int tensor) {
    return plan->places[tensor].extent.size[1];
}

static int64_t floats_of(const rcn__plan *plan, int tensor) {
    return rcn__extent_floats(&plan->places[tensor].extent) / plan->batch.images;
}

/* Rows that the whole of an operation has: a spread convolution's are those of its input. */
static int64_t own_height(const rcn__plan *plan, const rcn_net *net, int index) {
    const rcn__op *op = &net->ops[index];
    if (op->kind == RCN_OP_OUTPUT) return plan->size[1];
    return op->transposed ? height_of(plan, op->in[0])
                          : height_of(plan, plan->stages[index].writes);
}

/* Rows of its output for one of its own. */
static int64_t spread_of(const rcn_net *net, int index) {
    return net->ops[index].transposed ? net->ops[index + 1].stride[1] : 1;
}

/* Its rows come in groups of so many; 0: it does not run row by row. */
static int64_t row_group(const rcn__plan *plan, const rcn_net *net, int index) {
    const rcn__op *op = &net->ops[index];
    const stage *s = &plan->stages[index];
    switch (op->kind) {
    case RCN_OP_CONV:
        if (s->folds != RCN_NONE && net->ops[s->folds].inputs > 1) return 0; /* a residual */
        return rcn__conv_row_group(s->conv);
    case RCN_OP_POOL: return 1;
    case RCN_OP_OUTPUT: return op->factor == 1;
    default: return 0;
    }
}

/* ---- planning -------------------------------------------------------------------------------- */

/* The next operation that runs at all. */
static int next_op(const rcn__plan *plan, const rcn_net *net, int index) {
    do ++index;
    while (index < net->op_count && plan->stages[index].skipped);
    return index;
}

/* Non-zero if only this operation reads the tensor. */
static int is_only_reader(const rcn_net *net, int index, int tensor) {
    for (int i = 0; i < net->op_count; ++i)
        for (int k = 0; k < net->ops[i].inputs; ++k)
            if (net->ops[i].in[k] == tensor && i != index) return 0;
    return !rcn__is_feature(net, tensor);
}

/* Pooling that reads each row once: what it reads may be kept whole for others, too, and no two
 * parts of the image write the same rows. */
static int tiles_rows(const rcn__op *op) {
    return op->kind == RCN_OP_POOL && op->kernel[1] == op->stride[1] && op->pad[1] == 0;
}

/* Operation `to` may follow `from` in a sweep. */
static int follows(const rcn__plan *plan, const rcn_net *net, int from, int to) {
    const rcn__op *op = &net->ops[to];
    const int between = plan->stages[from].writes;
    int reads = 0;
    if (to >= net->op_count || to == net->encoder_ops || !row_group(plan, net, to)) return 0;
    /* Another resolution is another sweep: the windows and weights of both would be too much. */
    if (op->transposed || net->ops[from].kind == RCN_OP_POOL) return 0;
    for (int k = 0; k < op->inputs; ++k) reads += op->in[k] == between;
    return reads == 1 && floats_of(plan, between) >= net->sweep_floats &&
           (is_only_reader(net, to, between) || tiles_rows(op));
}

void rcn__plan_sweeps(rcn__plan *plan, const rcn_net *net) {
    for (int t = 0; t < net->tensor_count; ++t)
        if (plan->places[t].extent.size[0] != 1) return; /* rows are of slices alone */
    for (int i = 0; i < net->op_count && plan->sweep_count < MAX_SWEEPS;
         i = next_op(plan, net, i)) {
        if (plan->stages[i].skipped || !row_group(plan, net, i)) continue;
        sweep s = {.first = i, .last = i, .rows = STRIP_ROWS};
        for (int next = next_op(plan, net, i); follows(plan, net, s.last, next);
             next = next_op(plan, net, next)) {
            const int between = plan->stages[s.last].writes;
            /* Until its size is known. */
            plan->places[between].window = is_only_reader(net, next, between);
            s.last = next;
        }
        if (s.last == s.first) continue;
        for (i = s.first; i <= s.last; ++i) plan->stages[i].sweep = plan->sweep_count;
        i = s.last;
        plan->sweeps[plan->sweep_count++] = s;
    }
}

/* What a thread knows of a sweep while it runs: rows of tensors that are needed for a strip, rows
 * of operations that are made for it, and those that were made before. */
typedef struct progress {
    int64_t part; /* the last one that it did, or -1 */
    rcn__rows needed[RCN_MAX_TENSORS];
    rcn__rows made[RCN_MAX_TENSORS];
    int64_t done[RCN_MAX_TENSORS];
} progress;

static const rcn__rows no_rows = {INT64_MAX, 0};

static int is_empty(const rcn__rows *rows) { return rows->first >= rows->end; }

static void need(progress *now, int tensor, const rcn__rows *more) {
    rcn__rows *rows = &now->needed[tensor];
    if (more->first < rows->first) rows->first = more->first;
    if (more->end > rows->end) rows->end = more->end;
}

/* Rows of the inputs that these rows of an operation read. */
static rcn__rows rows_read(const rcn__plan *plan, const rcn_net *net, int index,
                           const rcn__rows *rows) {
    const rcn__op *op = &net->ops[index];
    const int64_t height = height_of(plan, op->in[0]);
    rcn__rows read = *rows;
    if ((op->kind == RCN_OP_CONV && !op->transposed) || op->kind == RCN_OP_POOL) {
        read.first = rows->first * op->stride[1] - op->pad[1];
        read.end = (rows->end - 1) * op->stride[1] - op->pad[1] + op->kernel[1];
    }
    if (read.first < 0) read.first = 0;
    if (read.end > height) read.end = height;
    return read;
}

/* From the last operation of a sweep to the first: which rows of it a strip needs. */
static void plan_strip(progress *now, const rcn__plan *plan, const rcn_net *net, const sweep *s,
                       int64_t strip) {
    const int64_t whole = own_height(plan, net, s->last) * spread_of(net, s->last);
    const int64_t last = (strip + 1) * s->rows;
    const rcn__rows all = {strip * s->rows, last < whole ? last : whole};
    for (int i = s->first; i <= s->last; ++i) {
        const int out = plan->stages[i].writes;
        now->made[i] = no_rows;
        if (out != RCN_NONE) now->needed[out] = no_rows;
    }
    for (int i = s->last; i >= s->first; --i) {
        const int out = plan->stages[i].writes;
        if (plan->stages[i].skipped) continue;
        const int64_t group = row_group(plan, net, i), spread = spread_of(net, i);
        const int64_t height = own_height(plan, net, i), step = spread * group;
        rcn__rows *made = &now->made[i];
        if (out == RCN_NONE) {
            *made = all;
        } else {
            const int64_t own = height * spread;
            const rcn__rows share = {all.first * own / whole, all.end * own / whole};
            /* What others read has to be whole in the end. */
            if (!plan->places[out].window) need(now, out, &share);
            made->first = now->needed[out].first / step * group;
            made->end = (now->needed[out].end + step - 1) / step * group;
        }
        if (made->end > height) made->end = height;
        if (made->first < now->done[i] || made->first > made->end) made->first = now->done[i];
        rcn__rows read = rows_read(plan, net, i, made);
        /* What it has made already tells how far the operation before should be, and no more. */
        if (is_empty(made)) read.first = INT64_MAX;
        for (int k = 0; k < net->ops[i].inputs; ++k) need(now, net->ops[i].in[k], &read);
    }
}

static int64_t strip_count(const rcn__plan *plan, const rcn_net *net, const sweep *s) {
    const int64_t whole = own_height(plan, net, s->last) * spread_of(net, s->last);
    return (whole + s->rows - 1) / s->rows;
}

static void forget(progress *now) {
    now->part = -1;
    for (int i = 0; i < RCN_MAX_TENSORS; ++i) {
        now->needed[i] = now->made[i] = no_rows;
        now->done[i] = 0;
    }
}

/* As many rows as are ever needed at once: from the first one that is still read to the last one
 * that is made. */
static void measure_windows(rcn__plan *plan, const rcn_net *net, const sweep *s) {
    progress now;
    forget(&now);
    for (int64_t strip = 0; strip < strip_count(plan, net, s); ++strip) {
        plan_strip(&now, plan, net, s, strip);
        for (int i = s->first; i <= s->last; ++i) {
            const int out = plan->stages[i].writes;
            if (is_empty(&now.made[i])) continue;
            now.done[i] = now.made[i].end;
            if (out == RCN_NONE || !plan->places[out].window) continue;
            const int64_t spread = spread_of(net, i), made = now.made[i].first * spread;
            const int64_t first = now.needed[out].first < made ? now.needed[out].first : made;
            const int64_t rows = now.made[i].end * spread - first;
            if (rows > plan->places[out].window) plan->places[out].window = (rows + 3) / 4 * 4;
        }
    }
}

static size_t rounded(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

void rcn__plan_windows(rcn__plan *plan, const rcn_net *net) {
    for (int number = 0; number < plan->sweep_count; ++number) {
        sweep *s = &plan->sweeps[number];
        size_t scratch = 0;
        measure_windows(plan, net, s);
        for (int i = s->first; i <= s->last; ++i) {
            const rcn__op *op = &net->ops[i];
            stage *one = &plan->stages[i];
            if (one->skipped) continue;
            for (int k = 0; k < op->inputs; ++k)
                for (int step = s->first; step <= s->last; ++step)
                    rcn__plan_use(plan, plan->places[op->in[k]].value, step);
            if (one->writes != RCN_NONE) {
                place *out = &plan->places[one->writes];
                rcn__plan_use(plan, out->value, s->first);
                rcn__plan_use(plan, out->value, s->last);
                if (out->window) {
                    out->offset = s->scratch;
                    s->scratch += rounded((size_t)(floats_of(plan, one->writes) /
                                                   height_of(plan, one->writes) * out->window) *
                                          sizeof(float));
                }
            }
            if (op->kind != RCN_OP_CONV) continue;
            const size_t bytes = rcn__conv_row_scratch_bytes(one->conv);
            if (bytes > scratch) scratch = bytes;
            plan->buffers[one->scratch[FORWARD]].bytes = 0; /* it is in each thread's own */
        }
        s->progress = s->scratch + rounded(scratch);
        rcn__plan_need_own(plan, s->progress + sizeof(progress));
    }
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct sweep_job {
    const rcn__plan *plan;
    const rcn_net *net;
    const sweep *sweep;
    rcn__scratch scratch;
    float *logits;
    const float *images;
    int64_t parts; /* of an image */
} sweep_job;

static void *memory_of(const sweep_job *job, int thread, size_t offset) {
    return (char *)rcn__scratch_own(&job->scratch, thread) + offset;
}

static float *window_of(const sweep_job *job, int thread, int tensor) {
    return memory_of(job, thread, job->plan->places[tensor].offset);
}

static progress *progress_of(const sweep_job *job, int thread) {
    return memory_of(job, thread, job->sweep->progress);
}

/* Where one image's part of an input is. */
static rcn__source input_of(const sweep_job *job, int thread, int64_t image, int tensor) {
    const rcn__plan *plan = job->plan;
    const place *p = &plan->places[tensor];
    rcn__source from = {.data = NULL};
    if (p->window) {
        from.data = window_of(job, thread, tensor);
        from.window = p->window;
        return from;
    }
    const int planar = tensor == 0 && plan->input_layout == RCN_PLANAR;
    const int64_t floats =
        planar ? p->extent.channels * rcn__extent_voxels(&p->extent) : floats_of(plan, tensor);
    from = rcn__plan_source(plan, job->net, tensor, job->images);
    from.data += image * floats;
    if (from.scale) {
        from.scale += image * p->extent.channels;
        from.shift += image * p->extent.channels;
    }
    return from;
}

static void run_rows(const sweep_job *job, int thread, int64_t image, int index,
                     const rcn__rows *rows) {
    const rcn__plan *plan = job->plan;
    const rcn_net *net = job->net;
    const rcn__op *op = &net->ops[index];
    const stage *s = &plan->stages[index];
    rcn__source in[2];
    float *out = NULL;
    int64_t window = 0;
    for (int k = 0; k < op->inputs; ++k) in[k] = input_of(job, thread, image, op->in[k]);
    if (s->writes != RCN_NONE) {
        window = plan->places[s->writes].window;
        out = window ? window_of(job, thread, s->writes)
                     : (float *)rcn__plan_at(plan, net, plan->places[s->writes].value) +
                           image * floats_of(plan, s->writes);
    }
    switch (op->kind) {
    case RCN_OP_CONV: {
        rcn__ending ending = rcn__plan_ending(plan, net, index);
        ending.window = window;
        rcn__conv_forward_rows(out, s->conv, in, plan->prepared + s->packed, &ending, rows,
                               memory_of(job, thread, job->sweep->scratch));
        break;
    }
    case RCN_OP_POOL: rcn__pool_rows(out, window, &s->pool, in, rows); break;
    default: {
        const rcn__extent *extent = &plan->places[op->in[0]].extent;
        const int64_t floats = extent->channels * plan->size[0] * plan->size[1] * plan->size[2];
        rcn__output_rows(job->logits + image * floats, in[0].data, in[0].window, extent, plan->size,
                         rows);
    }
    }
}

/* A part of an image, from top to bottom. Where the thread has not just done the part above, each
 * operation begins with the first row that the part needs of it; strips above then come to that row
 * little by little, so that windows need not be larger for it. */
static void sweep_part(int64_t index, int thread, void *payload) {
    const sweep_job *job = payload;
    const sweep *s = job->sweep;
    const int64_t image = index / job->parts, part = index % job->parts;
    const int64_t strips = strip_count(job->plan, job->net, s);
    const int64_t first = strips * part / job->parts;
    progress *now = progress_of(job, thread);
    const int goes_on = part > 0 && now->part == index - 1;
    if (!goes_on) {
        forget(now);
        plan_strip(now, job->plan, job->net, s, first);
        for (int i = s->first; i <= s->last; ++i) now->done[i] = now->made[i].first;
    }
    now->part = index;
    for (int64_t strip = goes_on ? first : 0; strip < strips * (part + 1) / job->parts; ++strip) {
        plan_strip(now, job->plan, job->net, s, strip);
        for (int i = s->first; i <= s->last; ++i) {
            if (is_empty(&now->made[i])) continue;
            run_rows(job, thread, image, i, &now->made[i]);
            now->done[i] = now->made[i].end;
        }
    }
}

void rcn__sweep_run(const rcn__plan *plan, rcn_net *net, const sweep *s, float *logits,
                    const float *images) {
    const int64_t strips = strip_count(plan, net, s), batch = plan->batch.images;
    sweep_job job = {.plan = plan,
                     .net = net,
                     .sweep = s,
                     .scratch = rcn__plan_scratch(plan, net, s->first, FORWARD),
                     .logits = logits,
                     .images = images,
                     .parts = (PARTS * plan->threads + batch - 1) / batch};
    if (job.parts > strips / PART_STRIPS) job.parts = strips / PART_STRIPS;
    if (job.parts < 1) job.parts = 1;
    for (int t = 0; t < plan->threads; ++t) progress_of(&job, t)->part = -1;
    rcn__for_all(net->ctx, batch * job.parts, sweep_part, &job);
}
