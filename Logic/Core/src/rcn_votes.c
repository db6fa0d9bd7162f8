// SPDX-License-Identifier: Apache-2.0
/* Packing votes, and the passes over them that everything else is made of.
 *
 * There are two ways in. Dense: the code of a voxel is its pattern of marks, so that a rater is
 * added by setting one bit, and all masks of a case go through in one pass over the voxels.
 * Refining: a rater splits every code by the answer given, and the pairs (code, answer) that occur
 * are numbered anew; this takes any number of raters, voxels left unanswered, and labels. Votes
 * begin dense where they can, and leave that for good with the first answer that does not fit
 * (rcn__votes_refine() clears `dense`).
 *
 * What threads add up here are whole numbers, so that a table per thread, added in any order, gives
 * the same result.
 */
#include "rcn_votes_private.h"

#include <string.h>

/* Up to this many raters the code is the pattern itself: 2^16 table entries stay in the cache. */
enum { DENSE_RATERS = 16 };

int rcn_popcount(uint64_t bits) {
#if defined(RCN_GNU)
    return __builtin_popcountll(bits);
#else
    /* Sums of 2, 4 and 8 bits, next to each other; the product adds up the bytes. */
    bits -= bits >> 1 & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + (bits >> 2 & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (int)(bits * UINT64_C(0x0101010101010101) >> 56);
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

/* The inverse of rcn__votes_read(); the caller has seen to it that the codes fit. */
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

/* More than 65536 codes: one table for all threads, for tables per thread would take so many times
 * its memory. */
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

/* One slice is one chunk, so that each entry of out[] has one writer. */
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
            told.disputed += rcn__pattern_is_disputed(pattern);
        }
    }
    job->out[slice] = told;
}

rcn_status rcn_votes_by_slice(rcn_slice_votes *out, rcn_context *ctx, const rcn_votes *votes) {
    slice_job job = {votes, out};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !votes) return rcn__fail(ctx, RCN_EINVALID, "No votes were given.");
    return rcn__for_chunks(ctx, "counting votes", votes->geometry.size[2], tell_slice, &job);
}

/* ---- creating -------------------------------------------------------------------------------- */

rcn_status rcn__votes_create_table(rcn_votes **out, rcn_context *ctx, const rcn_geometry *geometry,
                                   int raters, int dense) {
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
    votes->structures = 1;
    votes->dense = dense && raters <= DENSE_RATERS;
    votes->code_bytes = votes->dense && raters > 8 ? 2 : 1;
    votes->pattern_count = votes->dense ? INT64_C(1) << raters : 1;
    RCN_ALLOC_ZERO(votes->patterns, ctx, votes->pattern_count, "the table of patterns");
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        votes->patterns[p].marked = votes->dense ? (uint64_t)p : 0;
    /* Before anybody answers, all voxels carry code 0, in which nobody answered. */
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
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output votes is NULL.");
    RCN_TRY(rcn__votes_create_table(&votes, ctx, geometry, raters, 1));
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
    /* Votes of one structure share the codes of those they were selected from. */
    if (!votes->borrowed) rcn__free(ctx, votes->codes);
    rcn__free(ctx, votes->patterns);
    rcn__free(ctx, votes->labels);
    rcn__free(ctx, votes);
}

/* The lowest voxel that cannot be used, and whose it is. */
typedef struct bad_voxel {
    int64_t voxel; /* INT64_MAX: none */
    int mask;
} bad_voxel;

typedef struct add_job {
    rcn_votes *votes;
    const rcn_mask *masks; /* of raters first_rater ... */
    int first_rater;
    int mask_count;
    int fresh;          /* the codes hold nothing yet, not even zeros */
    bad_voxel *bad;     /* per thread */
    int64_t *counts;    /* a histogram per thread */
    const float *table; /* write table[code] to out instead of counting */
    float *out;
} add_job;

static void note_bad(bad_voxel *bad, int mask, int64_t voxel) {
    if (voxel < bad->voxel) {
        bad->voxel = voxel;
        bad->mask = mask;
    }
}

static rcn_status alloc_bad(bad_voxel **out, rcn_context *ctx) {
    rcn_status status;
    RCN_ALLOC_ZERO(*out, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) (*out)[t].voxel = INT64_MAX;
done:
    return status;
}

/* Of all threads the lowest voxel: the sentence a person gets does not depend on who was first. */
static const bad_voxel *lowest_bad(const rcn_context *ctx, const bad_voxel *bad) {
    const bad_voxel *lowest = bad;
    for (int t = 1; t < ctx->threads; ++t)
        if (bad[t].voxel < lowest->voxel) lowest = &bad[t];
    return lowest->voxel == INT64_MAX ? NULL : lowest;
}

/* answers[] holds 0 and 1 here: votes are dense only while nobody leaves a voxel out. */
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
            or_nonzero_u8(codes, (const uint8_t *)job->masks[m].image.data + first, end - first,
                          job->first_rater + m);
            continue;
        }
        const rcn_label_map map = rcn__mask_map(&job->masks[m]);
        const rcn__answers said = {&map, 1, job->first_rater + m, 1};
        const int64_t bad = rcn__answers_read(answers, NULL, &said, first, end - first);
        if (bad >= 0) {
            note_bad(&job->bad[thread], m, bad);
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

static rcn_status add_dense(rcn_votes *votes, rcn_context *ctx, const rcn_mask *masks,
                            int first_rater, int mask_count, uint64_t new_raters, int fresh) {
    rcn_status status;
    add_job job = {.votes = votes,
                   .masks = masks,
                   .first_rater = first_rater,
                   .mask_count = mask_count,
                   .fresh = fresh};
    RCN_TRY(alloc_bad(&job.bad, ctx));
    RCN_ALLOC_ZERO(job.counts, ctx, votes->pattern_count * ctx->threads,
                   "the histogram of patterns");
    status = rcn__for_chunks(ctx, "packing votes", rcn__chunk_count(votes->voxels, RCN_CHUNK),
                             dense_chunk, &job);
    const bad_voxel *bad = status == RCN_OK ? lowest_bad(ctx, job.bad) : NULL;
    if (bad) {
        const rcn_label_map map = rcn__mask_map(&masks[bad->mask]);
        const rcn__answers said = {&map, 1, first_rater + bad->mask, 1};
        status = rcn__answers_fail(ctx, &said, bad->voxel);
    }
    if (status != RCN_OK) {
        /* Fresh codes are the caller's to throw away; those that held votes before hold them
         * again. */
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
    rcn__free(ctx, job.bad);
    rcn__free(ctx, job.counts);
    return status;
}

typedef struct refine_job {
    const rcn_votes *votes;
    const rcn__answers *said;
    int64_t answers;          /* how many different ones there are: C + 2 */
    bad_voxel *bad;           /* per thread */
    int64_t *unnamed;         /* per thread */
    uint8_t *seen;            /* [answers * pattern_count]: (code, answer) pairs that occur */
    const uint32_t *renumber; /* [answers * pattern_count] */
    void *new_codes;
    int new_code_bytes;
} refine_job;

/* Neighbors mostly agree, so this many voxels are looked at together. */
enum { REFINE_BLOCK = 32 };

/* Whether a block of voxels has one code and one answer. */
RCN_DISPATCH static int is_uniform(const uint32_t *codes, const uint8_t *answers) {
    uint32_t codes_differ = 0;
    uint8_t answers_differ = 0;
    for (int i = 0; i < REFINE_BLOCK; ++i) codes_differ |= codes[i] ^ codes[0];
    for (int i = 0; i < REFINE_BLOCK; ++i) answers_differ |= (uint8_t)(answers[i] ^ answers[0]);
    return !codes_differ && !answers_differ;
}

/* How many of the `left` voxels are done next, and whether they are all alike. */
static int64_t next_block(int *uniform, const uint32_t *codes, const uint8_t *answers,
                          int64_t left) {
    *uniform = left >= REFINE_BLOCK && is_uniform(codes, answers);
    return left < REFINE_BLOCK ? left : REFINE_BLOCK;
}

/* Refining, first pass: which (code, answer) pairs occur. A pair has the number code * (C + 2) +
 * answer, where answer C + 1 is "none". */
static void see_chunk(int64_t chunk, int thread, void *payload) {
    const refine_job *job = payload;
    uint8_t answers[RCN_CHUNK];
    uint32_t codes[RCN_CHUNK];
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    const int64_t bad = rcn__answers_read(answers, job->unnamed ? &job->unnamed[thread] : NULL,
                                          job->said, first, end - first);
    if (bad >= 0) {
        note_bad(&job->bad[thread], 0, bad);
        return;
    }
    rcn__votes_read(codes, job->votes, first, end - first);
    /* Most voxels repeat the pair before them; that one is not written again, so that threads do
     * not keep taking the same cache line from each other. */
    int64_t last = -1;
    for (int64_t i = 0, block; i < end - first; i += block) {
        int uniform;
        block = next_block(&uniform, codes + i, answers + i, end - first - i);
        for (int64_t k = i; k < (uniform ? i + 1 : i + block); ++k) {
            const int64_t pair = job->answers * (int64_t)codes[k] + answers[k];
            if (pair == last) continue;
            last = pair;
            /* All threads write the same 1; atomic only so that it is well defined. The pragma is
             * of OpenMP 3.1, which Visual C++ has not; there a byte is written in one piece. */
#if defined(_OPENMP) && _OPENMP >= 201107
#pragma omp atomic write
#endif
            job->seen[pair] = 1;
        }
    }
}

/* Refining, second pass: the new code of each pair. */
static void renumber_chunk(int64_t chunk, int thread, void *payload) {
    const refine_job *job = payload;
    uint8_t answers[RCN_CHUNK];
    uint32_t codes[RCN_CHUNK];
    int64_t first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk, job->votes->voxels, RCN_CHUNK);
    (void)rcn__answers_read(answers, NULL, job->said, first, end - first);
    rcn__votes_read(codes, job->votes, first, end - first);
    for (int64_t i = 0, block; i < end - first; i += block) {
        int uniform;
        block = next_block(&uniform, codes + i, answers + i, end - first - i);
        const uint32_t code = job->renumber[job->answers * (int64_t)codes[i] + answers[i]];
        for (int64_t k = i; uniform && k < i + block; ++k) codes[k] = code;
        for (int64_t k = i; !uniform && k < i + block; ++k)
            codes[k] = job->renumber[job->answers * (int64_t)codes[k] + answers[k]];
    }
    write_codes(job->new_codes, job->new_code_bytes, first, codes, end - first);
}

/* The first pass, and what it found wrong. */
static rcn_status see_pairs(refine_job *job, rcn_context *ctx) {
    rcn_status status;
    const int64_t chunks = rcn__chunk_count(job->votes->voxels, RCN_CHUNK);
    RCN_TRY(alloc_bad(&job->bad, ctx));
    RCN_ALLOC_ZERO(job->seen, ctx, job->answers * job->votes->pattern_count,
                   "the patterns that occur");
    RCN_TRY(rcn__for_chunks(ctx, "finding patterns", chunks, see_chunk, job));
    const bad_voxel *bad = lowest_bad(ctx, job->bad);
    if (bad) status = rcn__answers_fail(ctx, job->said, bad->voxel);
done:
    return status;
}

/* The table of `refined`, which is a copy of `votes` but for its own memory: one pattern for each
 * pair that occurs, in the order of renumber[]. */
static rcn_status refine_table(rcn_votes *refined, rcn_context *ctx, const refine_job *job) {
    rcn_status status;
    const rcn_votes *votes = job->votes;
    const int rater = job->said->rater, raters = votes->raters;
    RCN_ALLOC_ZERO(refined->patterns, ctx, refined->pattern_count, "the table of patterns");
    if (votes->labels)
        RCN_ALLOC(refined->labels, ctx, refined->pattern_count * raters, "the table of patterns");
    for (int64_t pair = 0; pair < job->answers * votes->pattern_count; ++pair) {
        if (!job->seen[pair]) continue;
        const int64_t from = pair / job->answers, to = job->renumber[pair];
        const int answer = (int)(pair % job->answers), no_answer = (int)job->answers - 1;
        rcn_pattern *pattern = &refined->patterns[to];
        *pattern = votes->patterns[from];
        pattern->voxels = 0;
        if (answer != no_answer) pattern->answered |= UINT64_C(1) << rater;
        if (answer && answer != no_answer) pattern->marked |= UINT64_C(1) << rater;
        if (answer == no_answer) refined->unanswered = 1;
        if (!votes->labels) continue;
        memcpy(&refined->labels[to * raters], &votes->labels[from * raters], (size_t)raters);
        refined->labels[to * raters + rater] =
            answer == no_answer ? RCN_NO_ANSWER : (uint8_t)answer;
    }
done:
    return status;
}

/* A flag for every pair that could occur, instead of a hash table: it is small (C + 2 times the
 * patterns there are), and numbering the flags in ascending order gives the same codes for any
 * number of threads. The voxels are read twice, so that no answers need to be kept. The new votes
 * are built beside the old ones and change places with them at the end, so that a failure leaves
 * the old ones. */
rcn_status rcn__votes_refine(rcn_votes *votes, rcn_context *ctx, const rcn__answers *said,
                             int64_t *unnamed) {
    rcn_status status;
    uint32_t *renumber = NULL;
    int64_t *counts = NULL;
    const int64_t chunks = rcn__chunk_count(votes->voxels, RCN_CHUNK);
    const int64_t answers = votes->structures + 2, pairs = answers * votes->pattern_count;
    refine_job job = {.votes = votes, .said = said, .answers = answers};
    rcn_votes refined = *votes;
    refined.codes = NULL;
    refined.patterns = NULL;
    refined.labels = NULL;
    if (unnamed) RCN_ALLOC_ZERO(job.unnamed, ctx, ctx->threads, "bookkeeping");
    RCN_TRY(see_pairs(&job, ctx));

    RCN_ALLOC(renumber, ctx, pairs, "the new codes");
    int64_t next = 0;
    for (int64_t pair = 0; pair < pairs; ++pair) {
        renumber[pair] = (uint32_t)next;
        next += job.seen[pair];
    }
    job.renumber = renumber;
    /* Codes are numbers of pairs from here on, no longer patterns of bits. */
    refined.dense = 0;
    refined.pattern_count = next;
    refined.code_bytes = next <= 256 ? 1 : next <= 65536 ? 2 : 4;
    refined.present |= UINT64_C(1) << said->rater;
    RCN_TRY(refine_table(&refined, ctx, &job));
    RCN_TRY(rcn__alloc(&refined.codes, ctx, votes->voxels, (size_t)refined.code_bytes,
                       "the packed votes"));
    job.new_codes = refined.codes;
    job.new_code_bytes = refined.code_bytes;
    RCN_TRY(rcn__for_chunks(ctx, "packing votes", chunks, renumber_chunk, &job));
    RCN_ALLOC_ZERO(counts, ctx, next, "the histogram of patterns");
    RCN_TRY(rcn__votes_count(counts, ctx, &refined, NULL));
    for (int64_t p = 0; p < next; ++p) refined.patterns[p].voxels = counts[p];

    const rcn_votes replaced = *votes;
    *votes = refined;
    refined = replaced; /* what is freed below */
    if (unnamed) *unnamed = 0;
    for (int t = 0; unnamed && t < ctx->threads; ++t) *unnamed += job.unnamed[t];
done:
    rcn__free(ctx, job.bad);
    rcn__free(ctx, job.unnamed);
    rcn__free(ctx, job.seen);
    rcn__free(ctx, renumber);
    rcn__free(ctx, counts);
    rcn__free(ctx, refined.codes);
    rcn__free(ctx, refined.patterns);
    rcn__free(ctx, refined.labels);
    return status;
}

rcn_status rcn__votes_check(rcn_context *ctx, const void *out, const rcn_votes *votes, int labels) {
    if (!out || !votes) return rcn__fail(ctx, RCN_EINVALID, "No votes or no output were given.");
    if (labels && !votes->labels)
        return rcn__fail(ctx, RCN_EINVALID, "These votes have no labels.");
    if (!votes->present) return rcn__fail(ctx, RCN_EINVALID, "No rater answered this case.");
    return RCN_OK;
}

rcn_status rcn__votes_may_add(rcn_context *ctx, const rcn_votes *votes, int rater, int labels) {
    if (!votes) return rcn__fail(ctx, RCN_EINVALID, "The votes to add to are NULL.");
    if (votes->borrowed)
        return rcn__fail(ctx, RCN_EINVALID, "The votes of one structure are read-only.");
    if (!votes->labels != !labels)
        return rcn__fail(ctx, RCN_EINVALID,
                         labels ? "These votes hold masks; a label map cannot be added to them."
                                : "These votes hold labels; a mask cannot be added to them.");
    if (rater < 0 || rater >= votes->raters)
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d does not exist among %d.", rater + 1,
                         votes->raters);
    if (votes->present >> rater & 1)
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d has answered this case already.", rater + 1);
    return RCN_OK;
}

/* Like rcn__answers_check() for a plain mask. */
static rcn_status check_mask(rcn_context *ctx, const rcn_mask *mask, const rcn_geometry *geometry,
                             int rater) {
    if (!mask) return rcn__fail(ctx, RCN_EINVALID, "Rater %d: %s", rater + 1, "No mask was given.");
    const rcn_label_map map = rcn__mask_map(mask);
    const rcn__answers said = {&map, 1, rater, 1};
    return rcn__answers_check(ctx, &said, geometry);
}

rcn_status rcn_votes_add(rcn_votes *votes, rcn_context *ctx, int rater, const rcn_mask *mask) {
    rcn_status status;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    RCN_TRY(rcn__votes_may_add(ctx, votes, rater, 0));
    RCN_TRY(check_mask(ctx, mask, &votes->geometry, rater));
    if (votes->dense && !mask->unanswered)
        return add_dense(votes, ctx, mask, rater, 1, UINT64_C(1) << rater, 0);
    const rcn_label_map map = rcn__mask_map(mask);
    const rcn__answers said = {&map, 1, rater, 1};
    status = rcn__votes_refine(votes, ctx, &said, NULL);
done:
    return status;
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
        RCN_TRY(rcn__votes_create_table(&votes, ctx, geometry, raters, 1));
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
    /* Codes that number pairs exist only once all voxels have been seen: they must be kept. */
    if (raters > DENSE_RATERS || !complete) return RCN_OK;
    RCN_TRY(rcn__votes_create_table(&votes, ctx, geometry, raters, 1));
    RCN_TRY(add_dense(votes, ctx, masks, 0, raters, present, 0));
    *out = votes;
    votes = NULL;
done:
    rcn_votes_destroy(votes);
    return status;
}

rcn_status rcn__votes_expand_masks(float *out, rcn_context *ctx, const rcn_votes *votes,
                                   const rcn_mask *masks, const float *table) {
    /* Cannot fail on a value: rcn__votes_count_masks() has read the same masks. So no bad[] is
     * needed. The votes are only read, for they have no codes. */
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
int rcn_votes_structures(const rcn_votes *votes) { return votes->structures; }
uint64_t rcn_votes_present(const rcn_votes *votes) { return votes->present; }
const rcn_pattern *rcn_votes_patterns(const rcn_votes *votes) { return votes->patterns; }
int64_t rcn_votes_pattern_count(const rcn_votes *votes) { return votes->pattern_count; }
const uint8_t *rcn_votes_labels(const rcn_votes *votes) { return votes->labels; }
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

/* One slice. A row is searched from either end for its outermost marks; what lies between them need
 * not be looked at. */
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
            rcn__box_grow(box, low, high);
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
    for (int t = 0; t < ctx->threads; ++t) job.boxes[t] = rcn__box_empty();
    RCN_TRY(rcn__for_chunks(ctx, "finding the marked region", size[2], box_slice, &job));
    rcn_box box = rcn__box_empty();
    for (int t = 0; t < ctx->threads; ++t)
        rcn__box_grow(&box, job.boxes[t].first, job.boxes[t].end);
    /* No marks at all: the box is the whole image, so that whoever works inside of it has
     * voxels. */
    const int empty = box.first[0] > box.end[0];
    for (int a = 0; a < 3; ++a) {
        out->first[a] = empty || box.first[a] < margin ? 0 : box.first[a] - margin;
        out->end[a] = empty || size[a] - box.end[a] < margin ? size[a] : box.end[a] + margin;
    }
done:
    rcn__free(ctx, job.boxes);
    return status;
}

rcn_status rcn__votes_count_around(int64_t *counts, rcn_context *ctx, const rcn_votes *votes,
                                   int64_t margin) {
    rcn_status status = RCN_OK;
    rcn_box box;
    if (margin < 0) {
        for (int64_t p = 0; p < votes->pattern_count; ++p) counts[p] += votes->patterns[p].voxels;
        return RCN_OK;
    }
    RCN_TRY(rcn_votes_union_box(&box, ctx, votes, margin));
    RCN_TRY(rcn__votes_count(counts, ctx, votes, &box));
done:
    return status;
}

typedef struct expand_job {
    const rcn_votes *votes;
    const float *table_f32;
    const uint8_t *table_u8;
    float *out_f32;
    uint8_t *out_u8;
} expand_job;

/* A loop for each width of codes: the look-up reads them as they are stored, and the choice is not
 * made again for every voxel. */
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
