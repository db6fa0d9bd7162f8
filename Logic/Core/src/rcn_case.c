// SPDX-License-Identifier: Apache-2.0
/* A case to be judged: a prediction beside the votes, checked once and then read in blocks of
 * voxels that count; the readouts of levels; and whether a "prediction" was fused from the very
 * votes it is judged by.
 *
 * All figures (calibration, AUC, bootstrap) read through rcn__case_read(), so that all of them
 * judge the same voxels and refuse the same ones.
 */
#include "rcn/rcn_fusion.h"
#include "rcn_calib_private.h"

#include <math.h>
#include <string.h>

const char *rcn_readout_name(rcn_readout readout) {
    static const char *const names[] = {"majority", "expected", "at-least", "more-than-half"};
    return (int)readout >= 0 && readout <= RCN_READOUT_MORE_THAN_HALF ? names[readout] : NULL;
}

const char *rcn__readout_weights(double *weights, int raters, rcn_readout readout, int at_least) {
    for (int k = 0; k <= raters; ++k) switch (readout) {
        case RCN_READOUT_MAJORITY: weights[k] = 2 * k >= raters; break;
        case RCN_READOUT_MORE_THAN_HALF: weights[k] = 2 * k > raters; break;
        case RCN_READOUT_EXPECTED: weights[k] = (double)k / raters; break;
        case RCN_READOUT_AT_LEAST:
            if (at_least < 1 || at_least > raters)
                return "The readout \"at least t\" needs t between 1 and the number of raters.";
            weights[k] = k >= at_least;
            break;
        default: return "Unknown readout.";
        }
    return NULL;
}

void rcn__binomial_factors(double *choose, int raters) {
    choose[0] = 1;
    /* Each is a whole number; rounding it keeps the error of one from growing in the next. */
    for (int k = 1; k <= raters; ++k) choose[k] = floor(choose[k - 1] * (raters + 1 - k) / k + 0.5);
}

void rcn_reference_majority(uint8_t *table, const rcn_votes *votes, int tie_background) {
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const int marked = rcn_popcount(votes->patterns[p].marked);
        const int answered = rcn_popcount(votes->patterns[p].answered);
        table[p] = answered ? 2 * marked >= answered + (tie_background != 0) : RCN_NO_REFERENCE;
    }
}

void rcn_reference_rater(uint8_t *table, const rcn_votes *votes, int rater) {
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        table[p] = votes->patterns[p].answered >> rater & 1
                       ? (uint8_t)(votes->patterns[p].marked >> rater & 1)
                       : RCN_NO_REFERENCE;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* structures: 0 for a prediction of levels or of one probability; otherwise of C + 1 means. */
static rcn_status check_case(rcn_context *ctx, const rcn_calib_case *in, int raters,
                             int structures) {
    if (!in || !in->votes) return rcn__fail(ctx, RCN_EINVALID, "The case has no votes.");
    const char *sentence = rcn_image_check(&in->prediction);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "The prediction: %s", sentence);
    const rcn_geometry *a = &in->prediction.geometry, *b = &in->votes->geometry;
    if (memcmp(a->size, b->size, sizeof a->size))
        return rcn__fail(
            ctx, RCN_EGEOMETRY,
            "The prediction has %lldx%lldx%lld voxels, the raters have %lldx%lldx%lld.",
            (long long)a->size[0], (long long)a->size[1], (long long)a->size[2],
            (long long)b->size[0], (long long)b->size[1], (long long)b->size[2]);
    if (!structures && in->votes->raters != raters)
        return rcn__fail(ctx, RCN_EINVALID, "The case has %d raters, not %d.", in->votes->raters,
                         raters);
    if (in->prediction.type != RCN_FLOAT32)
        return rcn__fail(ctx, RCN_EINVALID, "The prediction must be float32, not %s.",
                         rcn_type_name(in->prediction.type));
    if (structures && rcn_votes_structures(in->votes) != structures)
        return rcn__fail(ctx, RCN_EINVALID, "The case has %d structure%s, not %d.",
                         rcn_votes_structures(in->votes),
                         rcn_votes_structures(in->votes) == 1 ? "" : "s", structures);
    if (structures && in->prediction.components != structures + 1)
        return rcn__fail(ctx, RCN_EINVALID,
                         "The prediction has %d components; the shares of %d structures and of the "
                         "background are %d.",
                         in->prediction.components, structures, structures + 1);
    if (!structures && in->prediction.components != 1 && in->prediction.components != raters + 1)
        return rcn__fail(
            ctx, RCN_EINVALID,
            "The prediction has %d components; %d raters need %d (levels 0 to %d) or 1 "
            "(a probability).",
            in->prediction.components, raters, raters + 1, raters);
    if (in->reference)
        for (int64_t p = 0; p < in->votes->pattern_count; ++p)
            if (in->reference[p] > 1 && in->reference[p] != RCN_NO_REFERENCE)
                return rcn__fail(ctx, RCN_EINVALID,
                                 "The reference must be 0, 1 or none for each pattern, not %d.",
                                 in->reference[p]);
    return RCN_OK;
}

static rcn_status open_case(rcn__case *out, rcn_context *ctx, const rcn_calib_case *one_case,
                            int raters, int structures, rcn_readout readout, int at_least) {
    rcn_status status;
    uint8_t *majority = NULL;
    memset(out, 0, sizeof *out);
    RCN_TRY(check_case(ctx, one_case, raters, structures));
    const rcn_votes *votes = one_case->votes;
    out->votes = votes;
    out->data = one_case->prediction.data;
    out->components = one_case->prediction.components;
    out->region = one_case->region;
    out->everywhere = !one_case->region;
    if (!structures) {
        const char *sentence = rcn__readout_weights(out->weights, raters, readout, at_least);
        if (sentence) RCN_TRY(rcn__fail(ctx, RCN_EINVALID, "%s", sentence));
    }
    RCN_ALLOC(out->bad, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) out->bad[t] = INT64_MAX;
    RCN_ALLOC(out->patterns, ctx, votes->pattern_count, "the table of patterns");
    const uint8_t *reference = one_case->reference;
    if (!reference) {
        RCN_ALLOC(majority, ctx, votes->pattern_count, "the majority by pattern");
        rcn_reference_majority(majority, votes, readout == RCN_READOUT_MORE_THAN_HALF);
        reference = majority;
    }
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const int marked = rcn_popcount(votes->patterns[p].marked);
        const int answered = rcn_popcount(votes->patterns[p].answered);
        /* 10 m >= 1, 3, 5, 7, 9 in whole numbers: a mean vote of exactly .3 is not lost to
         * rounding. */
        int grade = 0;
        while (grade < 5 && 10 * marked >= (2 * grade + 1) * answered) ++grade;
        out->patterns[p].marked = (uint8_t)marked;
        out->patterns[p].answered = (uint8_t)answered;
        out->patterns[p].reference = reference[p] == RCN_NO_REFERENCE ? 2 : reference[p];
        out->patterns[p].grade = (uint8_t)grade;
        /* Then no voxel needs to be looked at to see whether it counts. */
        if (!answered && votes->patterns[p].voxels) out->everywhere = 0;
    }
done:
    rcn__free(ctx, majority);
    return status;
}

rcn_status rcn__case_open(rcn__case *out, rcn_context *ctx, const rcn_calib_case *one_case,
                          int raters, rcn_readout readout, int at_least) {
    return open_case(out, ctx, one_case, raters, 0, readout, at_least);
}

rcn_status rcn__case_open_labels(rcn__case *out, rcn_context *ctx, const rcn_calib_case *one_case,
                                 int structures) {
    return open_case(out, ctx, one_case, 0, structures, RCN_READOUT_EXPECTED, 0);
}

void rcn__case_close(rcn__case *c, rcn_context *ctx) {
    rcn__free(ctx, c->bad);
    rcn__free(ctx, c->patterns);
    c->bad = NULL;
    c->patterns = NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

RCN_DISPATCH static int any_outside(const float *p, int64_t count) {
    int outside = 0;
    for (int64_t i = 0; i < count; ++i) outside |= !(p[i] >= 0.0f && p[i] <= 1.0f);
    return outside;
}

float rcn__read_levels(const float *levels, int components, const double *weights) {
    double sum = 0, readout = 0;
    int outside = 0;
    for (int k = 0; k < components; ++k) {
        outside |= !(levels[k] >= 0.0f && levels[k] <= 1.0f);
        sum += (double)levels[k];
        readout += weights[k] * (double)levels[k];
    }
    /* Levels of a softmax in float add up to 1 only nearly, so the readout may be just above it. */
    if (outside || !(fabs(sum - 1.0) <= RCN_LEVEL_TOLERANCE)) return -1.0f;
    return readout < 1.0 ? (float)readout : 1.0f;
}

/* A bad voxel is noted and read as 0, and the pass goes on: threads need not stop each other, and
 * rcn__case_result() reports the lowest one, the same for any number of threads. */
int rcn__case_read(float *p, uint32_t *codes, float *planes, rcn__case *c, int64_t first,
                   int64_t count, int thread) {
    const rcn_votes *votes = c->votes;
    const uint8_t *region = c->region ? c->region + first : NULL;
    const float *data = c->data + first * c->components;
    int used = 0;
    rcn__votes_read(codes, votes, first, count);
    if (c->components > 1) {
        for (int64_t i = 0; i < count; ++i) {
            const uint32_t code = codes[i];
            const rcn__vote vote = c->patterns[code];
            if ((region && !region[i]) || !vote.answered) continue;
            const float *levels = data + i * c->components;
            p[used] = rcn__read_levels(levels, c->components, c->weights);
            const int bad = p[used] < 0;
            if (bad) {
                if (first + i < c->bad[thread]) c->bad[thread] = first + i;
                p[used] = 0;
            }
            for (int k = 0; planes && k < c->components; ++k)
                planes[k * RCN_CASE_BLOCK + used] = bad ? 0.0f : levels[k];
            codes[used++] = code;
        }
        return used;
    }
    if (c->everywhere) {
        memcpy(p, data, (size_t)count * sizeof *p);
        used = (int)count;
    } else {
        /* Without branches: write always, move on only where the voxel counts. */
        for (int64_t i = 0; i < count; ++i) {
            const uint32_t code = codes[i];
            p[used] = data[i];
            codes[used] = code;
            used += (!region || region[i]) && c->patterns[code].answered;
        }
    }
    /* Rare, so that finding which one it is may read the block once more: p[] has lost the
     * places. */
    if (any_outside(p, used)) {
        for (int64_t i = 0; i < count; ++i) {
            uint32_t code;
            rcn__votes_read(&code, votes, first + i, 1);
            if ((region && !region[i]) || !c->patterns[code].answered) continue;
            if (data[i] >= 0.0f && data[i] <= 1.0f) continue;
            if (first + i < c->bad[thread]) c->bad[thread] = first + i;
            break;
        }
        for (int i = 0; i < used; ++i)
            if (!(p[i] >= 0.0f && p[i] <= 1.0f)) p[i] = 0;
    }
    return used;
}

rcn_status rcn__fail_voxel(rcn_context *ctx, const rcn_geometry *geometry, const float *values,
                           int components, int64_t voxel) {
    const int64_t *size = geometry->size;
    const long long x = (long long)(voxel % size[0]), y = (long long)(voxel / size[0] % size[1]),
                    z = (long long)(voxel / (size[0] * size[1]));
    values += voxel * components;
    double sum = 0;
    for (int k = 0; k < components; ++k) {
        if (!(values[k] >= 0.0f && values[k] <= 1.0f)) {
            if (components == 1)
                return rcn__fail(ctx, RCN_EDATA,
                                 "The prediction is %g at voxel (%lld, %lld, %lld); a probability "
                                 "must be between 0 and 1.",
                                 (double)values[k], x, y, z);
            return rcn__fail(ctx, RCN_EDATA,
                             "Component %d of the prediction is %g at voxel (%lld, %lld, %lld); a "
                             "probability must be between 0 and 1.",
                             k, (double)values[k], x, y, z);
        }
        sum += (double)values[k];
    }
    return rcn__fail(ctx, RCN_EDATA,
                     "The %d probabilities add up to %g at voxel (%lld, %lld, %lld), not to 1.",
                     components, sum, x, y, z);
}

rcn_status rcn__check_voxels(rcn_context *ctx, const int64_t *bad, const rcn_geometry *geometry,
                             const float *values, int components) {
    int64_t lowest = INT64_MAX;
    for (int t = 0; t < ctx->threads; ++t)
        if (bad[t] < lowest) lowest = bad[t];
    if (lowest == INT64_MAX) return RCN_OK;
    return rcn__fail_voxel(ctx, geometry, values, components, lowest);
}

rcn_status rcn__case_result(rcn_context *ctx, const rcn__case *c) {
    return rcn__check_voxels(ctx, c->bad, &c->votes->geometry, c->data, c->components);
}

/* ---- a readout as a map ---------------------------------------------------------------------- */

typedef struct readout_job {
    float *out;
    const rcn_image *levels;
    int64_t voxels;
    int64_t *bad; /* per thread */
    double weights[RCN_MAX_RATERS + 1];
} readout_job;

static void readout_chunk(int64_t chunk, int thread, void *payload) {
    readout_job *job = payload;
    const int components = job->levels->components;
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    for (int64_t i = first; i < end; ++i) {
        job->out[i] = rcn__read_levels((const float *)job->levels->data + i * components,
                                       components, job->weights);
        if (job->out[i] < 0) {
            job->out[i] = 0;
            if (i < job->bad[thread]) job->bad[thread] = i;
        }
    }
}

rcn_status rcn_readout_apply(float *out, rcn_context *ctx, const rcn_image *levels,
                             rcn_readout readout, int at_least) {
    rcn_status status;
    readout_job job = {out, levels, 0, NULL, {0}};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(levels);
    if (!sentence && !out) sentence = "The output readout is NULL.";
    if (!sentence && levels->type != RCN_FLOAT32) sentence = "A level map must be float32.";
    if (!sentence && (levels->components < 2 || levels->components > RCN_MAX_RATERS + 1))
        sentence = "A level map must have 2 to 65 components, one more than there are raters.";
    if (!sentence)
        sentence = rcn__readout_weights(job.weights, levels->components - 1, readout, at_least);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    job.voxels = rcn_geometry_voxels(&levels->geometry);
    RCN_ALLOC(job.bad, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) job.bad[t] = INT64_MAX;
    RCN_TRY(rcn__for_chunks(ctx, "reading levels", rcn__chunk_count(job.voxels, RCN_CHUNK),
                            readout_chunk, &job));
    status = rcn__check_voxels(ctx, job.bad, &levels->geometry, levels->data, levels->components);
done:
    rcn__free(ctx, job.bad);
    return status;
}

/* ---- one probability as levels --------------------------------------------------------------- */

typedef struct ends_job {
    const float *levels;
    int components;
    int64_t voxels;
    int *between; /* per thread: whether a level between the ends was seen */
} ends_job;

static void ends_chunk(int64_t chunk, int thread, void *payload) {
    ends_job *job = payload;
    int64_t first, end;
    rcn__chunk_range(&first, &end, chunk, job->voxels, RCN_CHUNK);
    for (int64_t i = first; i < end && !job->between[thread]; ++i)
        for (int k = 1; k + 1 < job->components; ++k)
            if (job->levels[i * job->components + k] != 0.0f) job->between[thread] = 1;
}

rcn_status rcn_levels_are_ends(int *out, rcn_context *ctx, const rcn_image *levels) {
    rcn_status status;
    ends_job job = {NULL, 0, 0, NULL};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(levels);
    if (!sentence && !out) sentence = "The output answer is NULL.";
    if (!sentence && levels->type != RCN_FLOAT32) sentence = "A level map must be float32.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    job.levels = levels->data;
    job.components = levels->components;
    job.voxels = rcn_geometry_voxels(&levels->geometry);
    RCN_ALLOC_ZERO(job.between, ctx, ctx->threads, "bookkeeping");
    RCN_TRY(rcn__for_chunks(ctx, "reading levels", rcn__chunk_count(job.voxels, RCN_CHUNK),
                            ends_chunk, &job));
    int between = 0;
    for (int t = 0; t < ctx->threads; ++t) between |= job.between[t];
    *out = !between;
done:
    rcn__free(ctx, job.between);
    return status;
}

/* ---- fused maps ------------------------------------------------------------------------------ */

/* A smoothed map is exactly zero away from the marks, and nobody needs to smooth the votes to see
 * that a network's is not. */
static int may_be_smoothed(const rcn_calib_case *c) {
    const float *data = c->prediction.data;
    int64_t zeros = 0, voxels = 0;
    if (c->prediction.components != 1) return 0;
    for (int64_t i = 0; i < c->votes->voxels; ++i) {
        if (c->region && !c->region[i]) continue;
        zeros += data[i] == 0.0f;
        if (++voxels == 4096 && !zeros) return 0;
    }
    return zeros > 0 && zeros < voxels;
}

static rcn_status is_smoothed(int *out, rcn_context *ctx, const rcn_calib_case *c) {
    static const rcn_method methods[] = {RCN_SOFT_GAUSSIAN, RCN_SVLS};
    rcn_status status = RCN_OK;
    float *map = NULL;
    const float *data = c->prediction.data;
    *out = 0;
    if (!may_be_smoothed(c)) return RCN_OK;
    RCN_ALLOC(map, ctx, c->votes->voxels, "a fused map to compare with");
    for (int m = 0; m < 2 && !*out; ++m) {
        rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
        options.method = methods[m];
        RCN_TRY(rcn_fuse(map, NULL, ctx, c->votes, &options));
        *out = 1;
        for (int64_t i = 0; i < c->votes->voxels && *out; ++i)
            if (!c->region || c->region[i]) *out = fabsf(map[i] - data[i]) <= 1e-6f;
    }
done:
    rcn__free(ctx, map);
    return status;
}

/* A map fused from the votes has one value for each pattern; a network would have to hit the same
 * bits at every voxel where the raters said the same. Only disputed patterns that occur twice count
 * as evidence, and a map that is the same everywhere is none. Where two voxels of one pattern
 * differ, only the methods that smooth are left. */
rcn_status rcn_case_is_fused(int *out, rcn_context *ctx, const rcn_calib_case *one_case) {
    rcn_status status;
    int64_t *first_of = NULL; /* by pattern: the first voxel that has it; -1: none yet */
    uint32_t codes[RCN_CASE_BLOCK];
    int repeated = 0, same = 1;
    int64_t seen = -1;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !one_case || !one_case->votes)
        return rcn__fail(ctx, RCN_EINVALID, "No case was given.");
    const rcn_votes *votes = one_case->votes;
    RCN_TRY(check_case(ctx, one_case, votes->raters, 0));
    const int components = one_case->prediction.components;
    const float *data = one_case->prediction.data;
    const size_t bytes = sizeof *data * (size_t)components;
    RCN_ALLOC(first_of, ctx, votes->pattern_count, "the table of patterns");
    for (int64_t p = 0; p < votes->pattern_count; ++p) first_of[p] = -1;
    *out = 0;
    for (int64_t i = 0; i < votes->voxels; ++i) {
        const int64_t at = i % RCN_CASE_BLOCK;
        if (!at) {
            const int64_t left = votes->voxels - i;
            rcn__votes_read(codes, votes, i, left < RCN_CASE_BLOCK ? left : RCN_CASE_BLOCK);
        }
        if (one_case->region && !one_case->region[i]) continue;
        const rcn_pattern *pattern = &votes->patterns[codes[at]];
        int64_t *first = &first_of[codes[at]];
        if (seen < 0) seen = i;
        same = same && !memcmp(data + i * components, data + seen * components, bytes);
        if (*first < 0) {
            *first = i;
        } else if (memcmp(data + i * components, data + *first * components, bytes) != 0) {
            RCN_TRY(is_smoothed(out, ctx, one_case));
            goto done;
        } else {
            repeated |= rcn__pattern_is_disputed(pattern);
        }
    }
    *out = repeated && !same;
done:
    rcn__free(ctx, first_of);
    return status;
}
