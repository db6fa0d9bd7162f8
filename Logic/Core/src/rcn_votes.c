// SPDX-License-Identifier: Apache-2.0
#include "rcn_votes_private.h"

#include <math.h>
#include <string.h>

/* Up to this many raters the code is the pattern itself: 2^16 table entries stay in the cache. */
enum { DENSE_RATERS = 16 };

/* The largest label value: every element type that can hold it holds it exactly. */
#define MAX_LABEL (INT64_C(1) << 53)

/* A chunk's answers before they are packed. */
enum { NOT_MARKED = 0, MARKED = 1, UNANSWERED = 2 };

int rcn_popcount(uint64_t bits) {
#if defined(__GNUC__)
    return __builtin_popcountll(bits);
#else
    int count = 0;
    for (; bits; bits &= bits - 1) ++count;
    return count;
#endif
}

double rcn__pattern_mean(const rcn_pattern *pattern) {
    const int answered = rcn_popcount(pattern->answered);
    return answered ? (double)rcn_popcount(pattern->marked) / answered : 0.0;
}

void rcn__votes_mean_table(float *table, const rcn_votes *votes) {
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        table[p] = (float)rcn__pattern_mean(&votes->patterns[p]);
}

/* ---- answers: one chunk of a mask of any type -> bytes -------------------------------------- */

/* Position of the first value in the chunk that is no whole number, or -1. */
#define DEFINE_FIND_FRACTION(T, NAME, FLOOR)                                                       \
    static int64_t NAME(const T *in, int64_t count, int64_t stride) {                              \
        for (int64_t i = 0; i < count; ++i) {                                                      \
            const T value = in[i * stride];                                                        \
            /* NaN differs from itself, infinity minus its floor is NaN. */                        \
            if (!(value - FLOOR(value) == 0)) return i;                                            \
        }                                                                                          \
        return -1;                                                                                 \
    }
DEFINE_FIND_FRACTION(float, find_fraction_f32, floorf)
DEFINE_FIND_FRACTION(double, find_fraction_f64, floor)

/* Whether `value`, a label converted to T, is still that label; -1 as an unsigned number is not. */
#define HOLDS(T, value, label) ((int64_t)(value) == (label) && ((value) < (T)1) == ((label) < 1))

#define DEFINE_ANSWERS(T, NAME)                                                                    \
    RCN_DISPATCH static void NAME(uint8_t *restrict out, const T *restrict in, int64_t count,      \
                                  int64_t stride, const rcn_mask *mask) {                          \
        if (mask->values) {                                                                        \
            memset(out, NOT_MARKED, (size_t)count);                                                \
            for (int v = 0; v < mask->value_count; ++v) {                                          \
                const T value = (T)mask->values[v];                                                \
                if (!HOLDS(T, value, mask->values[v])) continue;                                   \
                for (int64_t i = 0; i < count; ++i) out[i] |= (uint8_t)(in[i * stride] == value);  \
            }                                                                                      \
        } else if (stride == 1) {                                                                  \
            for (int64_t i = 0; i < count; ++i) out[i] = (uint8_t)(in[i] != 0);                    \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; ++i) out[i] = (uint8_t)(in[i * stride] != 0);           \
        }                                                                                          \
        if (mask->unanswered) {                                                                    \
            const T value = (T) * mask->unanswered;                                                \
            if (HOLDS(T, value, *mask->unanswered))                                                \
                for (int64_t i = 0; i < count; ++i)                                                \
                    if (in[i * stride] == value) out[i] = UNANSWERED;                              \
        }                                                                                          \
    }
DEFINE_ANSWERS(uint8_t, answers_u8)
DEFINE_ANSWERS(int8_t, answers_i8)
DEFINE_ANSWERS(uint16_t, answers_u16)
DEFINE_ANSWERS(int16_t, answers_i16)
DEFINE_ANSWERS(uint32_t, answers_u32)
DEFINE_ANSWERS(int32_t, answers_i32)
DEFINE_ANSWERS(uint64_t, answers_u64)
DEFINE_ANSWERS(int64_t, answers_i64)
DEFINE_ANSWERS(float, answers_f32)
DEFINE_ANSWERS(double, answers_f64)

static const void *mask_at(const rcn_mask *mask, int64_t voxel) {
    return (const char *)mask->image.data +
           (size_t)(voxel * mask->image.components + mask->component) *
               rcn_type_size(mask->image.type);
}

/* Writes NOT_MARKED, MARKED or UNANSWERED for `count` voxels from `first` on. Returns the position
 * of a voxel whose label cannot be used, or -1. */
static int64_t read_answers(uint8_t *out, const rcn_mask *mask, int64_t first, int64_t count) {
    const void *in = mask_at(mask, first);
    const int64_t stride = mask->image.components;
    int64_t bad = -1;
    switch (mask->image.type) {
    case RCN_UINT8: answers_u8(out, in, count, stride, mask); break;
    case RCN_INT8: answers_i8(out, in, count, stride, mask); break;
    case RCN_UINT16: answers_u16(out, in, count, stride, mask); break;
    case RCN_INT16: answers_i16(out, in, count, stride, mask); break;
    case RCN_UINT32: answers_u32(out, in, count, stride, mask); break;
    case RCN_INT32: answers_i32(out, in, count, stride, mask); break;
    case RCN_UINT64: answers_u64(out, in, count, stride, mask); break;
    case RCN_INT64: answers_i64(out, in, count, stride, mask); break;
    case RCN_FLOAT32:
        bad = find_fraction_f32(in, count, stride);
        if (bad < 0) answers_f32(out, in, count, stride, mask);
        break;
    case RCN_FLOAT64:
        bad = find_fraction_f64(in, count, stride);
        if (bad < 0) answers_f64(out, in, count, stride, mask);
        break;
    }
    return bad < 0 ? -1 : first + bad;
}

static rcn_status check_mask(rcn_context *ctx, const rcn_mask *mask, const rcn_geometry *geometry,
                             int rater) {
    const char *sentence = mask ? rcn_image_check(&mask->image) : "There is no mask.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "Rater %d: %s", rater + 1, sentence);
    if (mask->component < 0 || mask->component >= mask->image.components)
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d: there is no component %d in an image of %d.",
                         rater + 1, mask->component, mask->image.components);
    if (!mask->values != (mask->value_count == 0) || mask->value_count < 0)
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d: label values and their number do not fit.",
                         rater + 1);
    for (int v = 0; v < mask->value_count; ++v)
        if (mask->values[v] > MAX_LABEL || mask->values[v] < -MAX_LABEL)
            return rcn__fail(ctx, RCN_EINVALID, "Rater %d: %lld is no possible label value.",
                             rater + 1, (long long)mask->values[v]);
    if (mask->unanswered && (*mask->unanswered > MAX_LABEL || *mask->unanswered < -MAX_LABEL))
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d: %lld is no possible label value.", rater + 1,
                         (long long)*mask->unanswered);
    if (memcmp(mask->image.geometry.size, geometry->size, sizeof geometry->size))
        return rcn__fail(ctx, RCN_EGEOMETRY,
                         "Rater %d has %lldx%lldx%lld voxels, the case has %lldx%lldx%lld.",
                         rater + 1, (long long)mask->image.geometry.size[0],
                         (long long)mask->image.geometry.size[1],
                         (long long)mask->image.geometry.size[2], (long long)geometry->size[0],
                         (long long)geometry->size[1], (long long)geometry->size[2]);
    return RCN_OK;
}

static rcn_status fail_label(rcn_context *ctx, const rcn_mask *mask, int rater, int64_t voxel) {
    const void *at = mask_at(mask, voxel);
    const double value =
        mask->image.type == RCN_FLOAT32 ? (double)*(const float *)at : *(const double *)at;
    const int64_t *size = mask->image.geometry.size;
    return rcn__fail(
        ctx, RCN_EDATA,
        "Rater %d has the label %g at voxel (%lld, %lld, %lld); a label must be a whole "
        "number.",
        rater + 1, value, (long long)(voxel % size[0]), (long long)(voxel / size[0] % size[1]),
        (long long)(voxel / (size[0] * size[1])));
}

/* ---- codes ----------------------------------------------------------------------------------- */

void rcn__votes_read(uint32_t *out, const rcn_votes *votes, int64_t first, int64_t count) {
    if (votes->code_bytes == 1) {
        const uint8_t *codes = (const uint8_t *)votes->codes + first;
        for (int64_t i = 0; i < count; ++i) out[i] = codes[i];
    } else if (votes->code_bytes == 2) {
        const uint16_t *codes = (const uint16_t *)votes->codes + first;
        for (int64_t i = 0; i < count; ++i) out[i] = codes[i];
    } else {
        memcpy(out, (const uint32_t *)votes->codes + first, (size_t)count * sizeof *out);
    }
}

static void write_codes(void *codes, int code_bytes, int64_t first, const uint32_t *in,
                        int64_t count) {
    if (code_bytes == 1) {
        for (int64_t i = 0; i < count; ++i) ((uint8_t *)codes)[first + i] = (uint8_t)in[i];
    } else if (code_bytes == 2) {
        for (int64_t i = 0; i < count; ++i) ((uint16_t *)codes)[first + i] = (uint16_t)in[i];
    } else {
        memcpy((uint32_t *)codes + first, in, (size_t)count * sizeof *in);
    }
}

/* Neighbors mostly agree, so as many equal codes as fill eight bytes are counted at once; `ones`
 * has a 1 in the place of each. */
#define DEFINE_COUNT(name, T, ones)                                                                \
    static void name(int64_t *counts, const T *codes, int64_t count) {                             \
        const int64_t many = 8 / (int64_t)sizeof *codes;                                           \
        int64_t i = 0;                                                                             \
        for (; i + many <= count; i += many) {                                                     \
            uint64_t all;                                                                          \
            memcpy(&all, codes + i, 8);                                                            \
            if (all == (uint64_t)codes[i] * (ones))                                                \
                counts[codes[i]] += many;                                                          \
            else                                                                                   \
                for (int64_t k = 0; k < many; ++k) ++counts[codes[i + k]];                         \
        }                                                                                          \
        for (; i < count; ++i) ++counts[codes[i]];                                                 \
    }
DEFINE_COUNT(count_u8, uint8_t, UINT64_C(0x0101010101010101))
DEFINE_COUNT(count_u16, uint16_t, UINT64_C(0x0001000100010001))

typedef struct count_job {
    const rcn_votes *votes;
    int64_t *counts; /* one table per thread, or one for all */
    int64_t table_size;
    int shared;
    rcn_box box;
} count_job;

/* Many codes have one table for all threads. */
static void count_u32(int64_t *counts, const uint32_t *codes, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
#ifdef _OPENMP
#pragma omp atomic
#endif
        ++counts[codes[i]];
    }
}

static void count_codes(int64_t *counts, const void *codes, int code_bytes, int64_t count) {
    if (code_bytes == 1)
        count_u8(counts, codes, count);
    else if (code_bytes == 2)
        count_u16(counts, codes, count);
    else
        count_u32(counts, codes, count);
}

static void count_run(const count_job *job, int64_t *counts, int64_t first, int64_t count) {
    const rcn_votes *votes = job->votes;
    count_codes(counts, (const char *)votes->codes + first * votes->code_bytes, votes->code_bytes,
                count);
}

static int64_t *count_table(const count_job *job, int thread) {
    return job->counts + (job->shared ? 0 : (int64_t)thread * job->table_size);
}

static void count_chunk(int64_t chunk, int thread, void *payload) {
    const count_job *job = payload;
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    count_run(job, count_table(job, thread), first, end - first);
}

static void count_slice(int64_t chunk, int thread, void *payload) {
    const count_job *job = payload;
    const int64_t *size = job->votes->geometry.size;
    const int64_t z = job->box.first[2] + chunk;
    for (int64_t y = job->box.first[1]; y < job->box.end[1]; ++y)
        count_run(job, count_table(job, thread), job->box.first[0] + size[0] * (y + size[1] * z),
                  job->box.end[0] - job->box.first[0]);
}

rcn_status rcn__votes_count(int64_t *counts, rcn_context *ctx, const rcn_votes *votes,
                            const rcn_box *box) {
    rcn_status status;
    count_job job = {votes, NULL, votes->pattern_count, votes->code_bytes == 4, {{0}, {0}}};
    const int tables = job.shared ? 1 : ctx->threads;
    RCN_ALLOC_ZERO(job.counts, ctx, tables * job.table_size, "the histogram of patterns");
    if (box) {
        job.box = *box;
        RCN_TRY(
            rcn__for_chunks(ctx, "counting votes", box->end[2] - box->first[2], count_slice, &job));
    } else {
        RCN_TRY(rcn__for_chunks(ctx, "counting votes", rcn__chunk_count(votes->voxels, RCN_CHUNK),
                                count_chunk, &job));
    }
    for (int t = 0; t < tables; ++t)
        for (int64_t p = 0; p < job.table_size; ++p)
            counts[p] += job.counts[t * job.table_size + p];
done:
    rcn__free(ctx, job.counts);
    return status;
}

typedef struct slice_job {
    const rcn_votes *votes;
    rcn_slice_votes *out;
} slice_job;

static void tell_slice(int64_t slice, int thread, void *payload) {
    const slice_job *job = payload;
    const rcn_votes *votes = job->votes;
    const int64_t voxels = votes->geometry.size[0] * votes->geometry.size[1];
    rcn_slice_votes told = {0, 0};
    uint32_t codes[256];
    (void)thread;
    for (int64_t first = 0; first < voxels; first += 256) {
        const int64_t count = voxels - first < 256 ? voxels - first : 256;
        rcn__votes_read(codes, votes, slice * voxels + first, count);
        for (int64_t i = 0; i < count; ++i) {
            const rcn_pattern *pattern = &votes->patterns[codes[i]];
            told.marked += pattern->marked != 0;
            told.disputed += pattern->marked && pattern->marked != pattern->answered;
        }
    }
    job->out[slice] = told;
}

rcn_status rcn_votes_by_slice(rcn_slice_votes *out, rcn_context *ctx, const rcn_votes *votes) {
    slice_job job = {votes, out};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !votes) return rcn__fail(ctx, RCN_EINVALID, "There are no votes to count.");
    return rcn__for_chunks(ctx, "counting votes", votes->geometry.size[2], tell_slice, &job);
}

/* ---- creating -------------------------------------------------------------------------------- */

/* Votes without room for codes: only their table. */
static rcn_status create_table(rcn_votes **out, rcn_context *ctx, const rcn_geometry *geometry,
                               int raters) {
    rcn_status status;
    rcn_votes *votes = NULL;
    const char *sentence = rcn_geometry_check(geometry);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    if (raters < 1 || raters > RCN_MAX_RATERS)
        return rcn__fail(ctx, RCN_EINVALID, "There must be 1 to %d raters, not %d.", RCN_MAX_RATERS,
                         raters);
    RCN_ALLOC_ZERO(votes, ctx, 1, "the votes");
    votes->ctx = ctx;
    votes->geometry = *geometry;
    votes->voxels = rcn_geometry_voxels(geometry);
    votes->raters = raters;
    votes->dense = raters <= DENSE_RATERS;
    votes->code_bytes = votes->dense && raters > 8 ? 2 : 1;
    votes->pattern_count = votes->dense ? INT64_C(1) << raters : 1;
    RCN_ALLOC_ZERO(votes->patterns, ctx, votes->pattern_count, "the table of patterns");
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        votes->patterns[p].marked = votes->dense ? (uint64_t)p : 0;
    votes->patterns[0].voxels = votes->voxels;
    *out = votes;
    votes = NULL;
done:
    rcn_votes_destroy(votes);
    return status;
}

rcn_status rcn_votes_create(rcn_votes **out, rcn_context *ctx, const rcn_geometry *geometry,
                            int raters) {
    rcn_status status;
    rcn_votes *votes = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "There is no place for the votes.");
    RCN_TRY(create_table(&votes, ctx, geometry, raters));
    RCN_TRY(rcn__alloc_zero(&votes->codes, ctx, votes->voxels, (size_t)votes->code_bytes,
                            "the packed votes"));
    *out = votes;
    votes = NULL;
done:
    rcn_votes_destroy(votes);
    return status;
}

void rcn_votes_destroy(rcn_votes *votes) {
    if (!votes) return;
    rcn_context *ctx = votes->ctx;
    rcn__free(ctx, votes->codes);
    rcn__free(ctx, votes->patterns);
    rcn__free(ctx, votes);
}

typedef struct add_job {
    rcn_votes *votes;
    const rcn_mask *masks; /* dense: masks of raters first_rater ... */
    int first_rater;
    int mask_count;
    int fresh;          /* dense: the codes hold nothing yet, not even zeros */
    int64_t *bad;       /* per thread: lowest voxel with an unusable label, or INT64_MAX */
    int *bad_mask;      /* per thread: whose */
    int64_t *counts;    /* dense: a histogram per thread */
    const float *table; /* dense: write table[code] to out instead of counting */
    float *out;
    uint8_t *seen;            /* [3 * pattern_count]: (code, answer) pairs that occur */
    const uint32_t *renumber; /* [3 * pattern_count] */
    void *new_codes;
    int new_code_bytes;
} add_job;

static void note_bad(const add_job *job, int thread, int mask, int64_t voxel) {
    if (voxel < job->bad[thread]) {
        job->bad[thread] = voxel;
        job->bad_mask[thread] = mask;
    }
}

RCN_DISPATCH static void or_bits_u8(uint8_t *restrict codes, const uint8_t *restrict answers,
                                    int64_t count, int bit) {
    for (int64_t i = 0; i < count; ++i) codes[i] = (uint8_t)(codes[i] | answers[i] << bit);
}

RCN_DISPATCH static void or_bits_u16(uint16_t *restrict codes, const uint8_t *restrict answers,
                                     int64_t count, int bit) {
    for (int64_t i = 0; i < count; ++i) codes[i] = (uint16_t)(codes[i] | answers[i] << bit);
}

/* The commonest mask, plain bytes where any value marks, without the detour through answers. */
RCN_DISPATCH static void or_nonzero_u8(uint8_t *restrict codes, const uint8_t *restrict mask,
                                       int64_t count, int bit) {
    const uint8_t set = (uint8_t)(1u << bit);
    for (int64_t i = 0; i < count; ++i) codes[i] |= mask[i] ? set : 0;
}

static int is_plain_u8(const rcn_mask *mask) {
    return mask->image.type == RCN_UINT8 && mask->image.components == 1 && !mask->values;
}

/* Dense codes, nobody leaves voxels out: each rater sets one bit. The codes go into the votes, or,
 * where the votes have no room for them, only through the cache. */
static void dense_chunk(int64_t chunk, int thread, void *payload) {
    const add_job *job = payload;
    const rcn_votes *votes = job->votes;
    uint8_t answers[RCN_CHUNK];
    uint16_t passing[RCN_CHUNK];
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, votes->voxels, RCN_CHUNK);
    void *codes = votes->codes ? (char *)votes->codes + first * votes->code_bytes : (void *)passing;
    if (!votes->codes || job->fresh) memset(codes, 0, (size_t)((end - first) * votes->code_bytes));
    for (int m = 0; m < job->mask_count; ++m) {
        if (!job->masks[m].image.data) continue;
        if (votes->code_bytes == 1 && is_plain_u8(&job->masks[m])) {
            or_nonzero_u8(codes, mask_at(&job->masks[m], first), end - first, job->first_rater + m);
            continue;
        }
        const int64_t bad = read_answers(answers, &job->masks[m], first, end - first);
        if (bad >= 0) {
            note_bad(job, thread, m, bad);
            return;
        }
        if (votes->code_bytes == 1)
            or_bits_u8(codes, answers, end - first, job->first_rater + m);
        else
            or_bits_u16(codes, answers, end - first, job->first_rater + m);
    }
    if (!job->out) {
        count_codes(job->counts + thread * votes->pattern_count, codes, votes->code_bytes,
                    end - first);
    } else if (votes->code_bytes == 1) {
        for (int64_t i = first; i < end; ++i)
            job->out[i] = job->table[((uint8_t *)codes)[i - first]];
    } else {
        for (int64_t i = first; i < end; ++i) job->out[i] = job->table[passing[i - first]];
    }
}

/* Takes the bits of one rater back after a failed dense pass. */
static void remove_bit(rcn_votes *votes, int rater) {
    if (votes->code_bytes == 1) {
        uint8_t *codes = votes->codes;
        for (int64_t i = 0; i < votes->voxels; ++i) codes[i] &= (uint8_t)~(1u << rater);
    } else {
        uint16_t *codes = votes->codes;
        for (int64_t i = 0; i < votes->voxels; ++i) codes[i] &= (uint16_t)~(1u << rater);
    }
}

/* Refining, first pass: which (code, answer) pairs occur. */
static void see_chunk(int64_t chunk, int thread, void *payload) {
    const add_job *job = payload;
    uint8_t answers[RCN_CHUNK];
    uint32_t codes[RCN_CHUNK];
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    const int64_t bad = read_answers(answers, job->masks, first, end - first);
    if (bad >= 0) {
        note_bad(job, thread, 0, bad);
        return;
    }
    rcn__votes_read(codes, job->votes, first, end - first);
    int64_t last = -1;
    for (int64_t i = 0; i < end - first; ++i) {
        const int64_t pair = 3 * (int64_t)codes[i] + answers[i];
        if (pair == last) continue;
        last = pair;
        /* All threads write the same 1; atomic only so that it is well defined. */
#ifdef _OPENMP
#pragma omp atomic write
#endif
        job->seen[pair] = 1;
    }
}

/* Refining, second pass: the new code of each pair. */
static void renumber_chunk(int64_t chunk, int thread, void *payload) {
    const add_job *job = payload;
    uint8_t answers[RCN_CHUNK];
    uint32_t codes[RCN_CHUNK];
    int64_t first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    (void)read_answers(answers, job->masks, first, end - first);
    rcn__votes_read(codes, job->votes, first, end - first);
    for (int64_t i = 0; i < end - first; ++i)
        codes[i] = job->renumber[3 * (int64_t)codes[i] + answers[i]];
    write_codes(job->new_codes, job->new_code_bytes, first, codes, end - first);
}

static rcn_status check_bad(rcn_context *ctx, const add_job *job) {
    int worst = 0;
    for (int t = 1; t < ctx->threads; ++t)
        if (job->bad[t] < job->bad[worst]) worst = t;
    if (job->bad[worst] == INT64_MAX) return RCN_OK;
    const int m = job->bad_mask[worst];
    return fail_label(ctx, &job->masks[m], job->first_rater + m, job->bad[worst]);
}

static rcn_status alloc_bad(add_job *job, rcn_context *ctx) {
    rcn_status status;
    RCN_ALLOC(job->bad, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) job->bad[t] = INT64_MAX;
    RCN_ALLOC_ZERO(job->bad_mask, ctx, ctx->threads, "bookkeeping");
done:
    return status;
}

static void free_job(rcn_context *ctx, add_job *job) {
    rcn__free(ctx, job->bad);
    rcn__free(ctx, job->bad_mask);
    rcn__free(ctx, job->counts);
    rcn__free(ctx, job->seen);
}

static rcn_status add_dense(rcn_votes *votes, rcn_context *ctx, const rcn_mask *masks,
                            int first_rater, int mask_count, uint64_t new_raters, int fresh) {
    rcn_status status;
    add_job job = {.votes = votes,
                   .masks = masks,
                   .first_rater = first_rater,
                   .mask_count = mask_count,
                   .fresh = fresh};
    RCN_TRY(alloc_bad(&job, ctx));
    RCN_ALLOC_ZERO(job.counts, ctx, votes->pattern_count * ctx->threads,
                   "the histogram of patterns");
    status = rcn__for_chunks(ctx, "packing votes", rcn__chunk_count(votes->voxels, RCN_CHUNK),
                             dense_chunk, &job);
    if (status == RCN_OK) status = check_bad(ctx, &job);
    if (status != RCN_OK) {
        for (int m = 0; votes->codes && !fresh && m < mask_count; ++m)
            if (masks[m].image.data) remove_bit(votes, first_rater + m);
        goto done;
    }
    votes->present |= new_raters;
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        votes->patterns[p].answered = votes->present;
        votes->patterns[p].voxels = 0;
        for (int t = 0; t < ctx->threads; ++t)
            votes->patterns[p].voxels += job.counts[t * votes->pattern_count + p];
    }
done:
    free_job(ctx, &job);
    return status;
}

/* Splits every code by the new rater's answer and numbers the pairs that occur: no hashing, and the
 * same codes for any number of threads. */
static rcn_status add_refined(rcn_votes *votes, rcn_context *ctx, const rcn_mask *mask, int rater) {
    rcn_status status;
    uint32_t *renumber = NULL;
    rcn_pattern *patterns = NULL;
    int64_t *counts = NULL;
    const int64_t chunks = rcn__chunk_count(votes->voxels, RCN_CHUNK);
    const int64_t pairs = 3 * votes->pattern_count;
    add_job job = {.votes = votes, .masks = mask, .first_rater = rater, .mask_count = 1};
    rcn_votes refined = *votes;
    refined.codes = NULL;
    RCN_TRY(alloc_bad(&job, ctx));
    RCN_ALLOC_ZERO(job.seen, ctx, pairs, "the patterns that occur");
    RCN_TRY(rcn__for_chunks(ctx, "finding patterns", chunks, see_chunk, &job));
    RCN_TRY(check_bad(ctx, &job));

    RCN_ALLOC(renumber, ctx, pairs, "the new codes");
    int64_t next = 0;
    for (int64_t pair = 0; pair < pairs; ++pair) {
        renumber[pair] = (uint32_t)next;
        next += job.seen[pair];
    }
    RCN_ALLOC_ZERO(patterns, ctx, next, "the table of patterns");
    for (int64_t pair = 0; pair < pairs; ++pair) {
        if (!job.seen[pair]) continue;
        const int answer = (int)(pair % 3);
        rcn_pattern *pattern = &patterns[renumber[pair]];
        *pattern = votes->patterns[pair / 3];
        pattern->voxels = 0;
        if (answer != UNANSWERED) pattern->answered |= UINT64_C(1) << rater;
        if (answer == MARKED) pattern->marked |= UINT64_C(1) << rater;
        if (answer == UNANSWERED) refined.unanswered = 1;
    }
    refined.dense = 0;
    refined.pattern_count = next;
    refined.patterns = patterns;
    refined.code_bytes = next <= 256 ? 1 : next <= 65536 ? 2 : 4;
    refined.present |= UINT64_C(1) << rater;
    RCN_TRY(rcn__alloc(&refined.codes, ctx, votes->voxels, (size_t)refined.code_bytes,
                       "the packed votes"));
    job.renumber = renumber;
    job.new_codes = refined.codes;
    job.new_code_bytes = refined.code_bytes;
    RCN_TRY(rcn__for_chunks(ctx, "packing votes", chunks, renumber_chunk, &job));
    RCN_ALLOC_ZERO(counts, ctx, next, "the histogram of patterns");
    RCN_TRY(rcn__votes_count(counts, ctx, &refined, NULL));
    for (int64_t p = 0; p < next; ++p) patterns[p].voxels = counts[p];

    rcn__free(ctx, votes->codes);
    rcn__free(ctx, votes->patterns);
    *votes = refined;
    refined.codes = NULL;
    patterns = NULL;
done:
    free_job(ctx, &job);
    rcn__free(ctx, renumber);
    rcn__free(ctx, patterns);
    rcn__free(ctx, refined.codes);
    rcn__free(ctx, counts);
    return status;
}

rcn_status rcn_votes_add(rcn_votes *votes, rcn_context *ctx, int rater, const rcn_mask *mask) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!votes) return rcn__fail(ctx, RCN_EINVALID, "There are no votes to add to.");
    if (rater < 0 || rater >= votes->raters)
        return rcn__fail(ctx, RCN_EINVALID, "There is no rater %d among %d.", rater + 1,
                         votes->raters);
    if (votes->present >> rater & 1)
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d has answered this case already.", rater + 1);
    const rcn_status status = check_mask(ctx, mask, &votes->geometry, rater);
    if (status != RCN_OK) return status;
    if (votes->dense && !mask->unanswered)
        return add_dense(votes, ctx, mask, rater, 1, UINT64_C(1) << rater, 0);
    return add_refined(votes, ctx, mask, rater);
}

/* What from_masks and its streamed twin check: at least one mask, all of one size. */
static rcn_status check_masks(const rcn_geometry **geometry, uint64_t *present, int *complete,
                              rcn_context *ctx, const rcn_mask *masks, int raters) {
    *geometry = NULL;
    *present = 0;
    *complete = 1;
    if (!masks || raters < 1 || raters > RCN_MAX_RATERS)
        return rcn__fail(ctx, RCN_EINVALID, "There must be 1 to %d raters, not %d.", RCN_MAX_RATERS,
                         masks ? raters : 0);
    for (int r = 0; r < raters; ++r) {
        if (!masks[r].image.data) continue;
        if (!*geometry) *geometry = &masks[r].image.geometry;
        const rcn_status status = check_mask(ctx, &masks[r], *geometry, r);
        if (status != RCN_OK) return status;
        *present |= UINT64_C(1) << r;
        if (masks[r].unanswered) *complete = 0;
    }
    if (!*geometry) return rcn__fail(ctx, RCN_EINVALID, "No rater answered this case.");
    return RCN_OK;
}

rcn_status rcn_votes_from_masks(rcn_votes **out, rcn_context *ctx, const rcn_mask *masks,
                                int raters) {
    rcn_status status;
    rcn_votes *votes = NULL;
    const rcn_geometry *geometry;
    uint64_t present;
    int complete;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    RCN_TRY(check_masks(&geometry, &present, &complete, ctx, masks, raters));
    if (raters <= DENSE_RATERS && complete) {
        RCN_TRY(create_table(&votes, ctx, geometry, raters));
        /* Not zeroed here: each thread does that for the chunk it is about to fill. */
        RCN_TRY(rcn__alloc(&votes->codes, ctx, votes->voxels, (size_t)votes->code_bytes,
                           "the packed votes"));
        RCN_TRY(add_dense(votes, ctx, masks, 0, raters, present, 1));
    } else {
        RCN_TRY(rcn_votes_create(&votes, ctx, geometry, raters));
        for (int r = 0; r < raters; ++r)
            if (masks[r].image.data) RCN_TRY(rcn_votes_add(votes, ctx, r, &masks[r]));
    }
    *out = votes;
    votes = NULL;
done:
    rcn_votes_destroy(votes);
    return status;
}

rcn_status rcn__votes_count_masks(rcn_votes **out, rcn_context *ctx, const rcn_mask *masks,
                                  int raters) {
    rcn_status status;
    rcn_votes *votes = NULL;
    const rcn_geometry *geometry;
    uint64_t present;
    int complete;
    *out = NULL;
    RCN_TRY(check_masks(&geometry, &present, &complete, ctx, masks, raters));
    if (raters > DENSE_RATERS || !complete) return RCN_OK;
    RCN_TRY(create_table(&votes, ctx, geometry, raters));
    RCN_TRY(add_dense(votes, ctx, masks, 0, raters, present, 0));
    *out = votes;
    votes = NULL;
done:
    rcn_votes_destroy(votes);
    return status;
}

rcn_status rcn__votes_expand_masks(float *out, rcn_context *ctx, const rcn_votes *votes,
                                   const rcn_mask *masks, const float *table) {
    add_job job = {.votes = (rcn_votes *)votes,
                   .masks = masks,
                   .mask_count = votes->raters,
                   .table = table,
                   .out = out};
    return rcn__for_chunks(ctx, "writing the map", rcn__chunk_count(votes->voxels, RCN_CHUNK),
                           dense_chunk, &job);
}

/* ---- reading --------------------------------------------------------------------------------- */

const rcn_geometry *rcn_votes_geometry(const rcn_votes *votes) { return &votes->geometry; }
int rcn_votes_raters(const rcn_votes *votes) { return votes->raters; }
uint64_t rcn_votes_present(const rcn_votes *votes) { return votes->present; }
const rcn_pattern *rcn_votes_patterns(const rcn_votes *votes) { return votes->patterns; }
int64_t rcn_votes_pattern_count(const rcn_votes *votes) { return votes->pattern_count; }
const void *rcn_votes_codes(const rcn_votes *votes) { return votes->codes; }
int rcn_votes_code_bytes(const rcn_votes *votes) { return votes->code_bytes; }

const rcn_pattern *rcn_votes_at(const rcn_votes *votes, int64_t voxel) {
    uint32_t code;
    rcn__votes_read(&code, votes, voxel, 1);
    return &votes->patterns[code];
}

int64_t rcn_votes_marked(const rcn_votes *votes, int rater) {
    int64_t voxels = 0;
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        if (votes->patterns[p].marked >> rater & 1) voxels += votes->patterns[p].voxels;
    return voxels;
}

typedef struct box_job {
    const rcn_votes *votes;
    rcn_box *boxes; /* per thread; empty: first > end */
} box_job;

/* One slice: rows are cut to what is already inside, so that most of them cost one look. */
static void box_slice(int64_t z, int thread, void *payload) {
    const box_job *job = payload;
    const rcn_votes *votes = job->votes;
    const int64_t *size = votes->geometry.size;
    rcn_box *box = &job->boxes[thread];
    uint32_t codes[RCN_CHUNK];
    for (int64_t y = 0; y < size[1]; ++y) {
        for (int64_t x = 0; x < size[0]; x += RCN_CHUNK) {
            const int64_t count = size[0] - x > RCN_CHUNK ? RCN_CHUNK : size[0] - x;
            rcn__votes_read(codes, votes, x + size[0] * (y + size[1] * z), count);
            int64_t first = 0, end = count;
            while (first < end && !votes->patterns[codes[first]].marked) ++first;
            if (first == end) continue;
            while (!votes->patterns[codes[end - 1]].marked) --end;
            const int64_t low[3] = {x + first, y, z}, high[3] = {x + end, y + 1, z + 1};
            for (int a = 0; a < 3; ++a) {
                if (low[a] < box->first[a]) box->first[a] = low[a];
                if (high[a] > box->end[a]) box->end[a] = high[a];
            }
        }
    }
}

rcn_status rcn_votes_union_box(rcn_box *out, rcn_context *ctx, const rcn_votes *votes,
                               int64_t margin) {
    rcn_status status;
    box_job job = {votes, NULL};
    rcn__clear(ctx);
    if (margin < 0) return rcn__fail(ctx, RCN_EINVALID, "The margin must not be negative.");
    const int64_t *size = votes->geometry.size;
    RCN_ALLOC(job.boxes, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t)
        for (int a = 0; a < 3; ++a) {
            job.boxes[t].first[a] = INT64_MAX;
            job.boxes[t].end[a] = INT64_MIN;
        }
    RCN_TRY(rcn__for_chunks(ctx, "finding the marked region", size[2], box_slice, &job));
    rcn_box box = job.boxes[0];
    for (int t = 1; t < ctx->threads; ++t)
        for (int a = 0; a < 3; ++a) {
            if (job.boxes[t].first[a] < box.first[a]) box.first[a] = job.boxes[t].first[a];
            if (job.boxes[t].end[a] > box.end[a]) box.end[a] = job.boxes[t].end[a];
        }
    const int empty = box.first[0] > box.end[0];
    for (int a = 0; a < 3; ++a) {
        out->first[a] = empty || box.first[a] < margin ? 0 : box.first[a] - margin;
        out->end[a] = empty || size[a] - box.end[a] < margin ? size[a] : box.end[a] + margin;
    }
done:
    rcn__free(ctx, job.boxes);
    return status;
}

typedef struct expand_job {
    const rcn_votes *votes;
    const float *table_f32;
    const uint8_t *table_u8;
    float *out_f32;
    uint8_t *out_u8;
} expand_job;

#define EXPAND(OUT, TABLE)                                                                         \
    do {                                                                                           \
        if (votes->code_bytes == 1) {                                                              \
            const uint8_t *codes = votes->codes;                                                   \
            for (int64_t i = first; i < end; ++i) (OUT)[i] = (TABLE)[codes[i]];                    \
        } else if (votes->code_bytes == 2) {                                                       \
            const uint16_t *codes = votes->codes;                                                  \
            for (int64_t i = first; i < end; ++i) (OUT)[i] = (TABLE)[codes[i]];                    \
        } else {                                                                                   \
            const uint32_t *codes = votes->codes;                                                  \
            for (int64_t i = first; i < end; ++i) (OUT)[i] = (TABLE)[codes[i]];                    \
        }                                                                                          \
    } while (0)

static void expand_chunk(int64_t chunk, int thread, void *payload) {
    const expand_job *job = payload;
    const rcn_votes *votes = job->votes;
    int64_t first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, votes->voxels, RCN_CHUNK);
    if (job->out_f32)
        EXPAND(job->out_f32, job->table_f32);
    else
        EXPAND(job->out_u8, job->table_u8);
}

static rcn_status expand(rcn_context *ctx, expand_job *job) {
    rcn__clear(ctx);
    return rcn__for_chunks(ctx, "writing the map", rcn__chunk_count(job->votes->voxels, RCN_CHUNK),
                           expand_chunk, job);
}

rcn_status rcn_votes_expand(float *out, rcn_context *ctx, const rcn_votes *votes,
                            const float *table) {
    expand_job job = {votes, table, NULL, out, NULL};
    return expand(ctx, &job);
}

rcn_status rcn_votes_expand_u8(uint8_t *out, rcn_context *ctx, const rcn_votes *votes,
                               const uint8_t *table) {
    expand_job job = {votes, NULL, table, NULL, out};
    return expand(ctx, &job);
}
