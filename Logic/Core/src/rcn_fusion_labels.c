// SPDX-License-Identifier: Apache-2.0
/* Fusion of several structures: plurality, and STAPLE for labels. Both on counted patterns. */
#include "rcn/rcn_fusion.h"

#include <math.h>
#include <string.h>

#include "rcn_votes_private.h"

enum { MAX_LABELS = RCN_MAX_STRUCTURES + 1 };

static rcn_status check_votes(rcn_context *ctx, const void *out, const rcn_votes *votes) {
    rcn__clear(ctx);
    return rcn__votes_check(ctx, out, votes, 1);
}

/* What each rater gave in a pattern: labels[raters], or RCN_NO_ANSWER. */
static const uint8_t *row_of(const rcn_votes *votes, int64_t pattern) {
    return &votes->labels[pattern * votes->raters];
}

/* ---- plurality ------------------------------------------------------------------------------- */

rcn_status rcn_plurality_patterns(uint8_t *table, rcn_context *ctx, const rcn_votes *votes) {
    if (!ctx) return RCN_EINVALID;
    const rcn_status status = check_votes(ctx, table, votes);
    if (status != RCN_OK) return status;
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        uint8_t counts[MAX_LABELS];
        rcn__count_labels(counts, row_of(votes, p), 1, votes->raters, votes->structures);
        table[p] = votes->patterns[p].answered ? rcn__most_given(counts, votes->structures) : 0;
    }
    return RCN_OK;
}

rcn_status rcn_plurality(uint8_t *out, rcn_context *ctx, const rcn_votes *votes) {
    rcn_status status;
    uint8_t *table = NULL;
    if (!ctx) return RCN_EINVALID;
    RCN_TRY(check_votes(ctx, out, votes));
    RCN_ALLOC(table, ctx, votes->pattern_count, "the labels by pattern");
    RCN_TRY(rcn_plurality_patterns(table, ctx, votes));
    RCN_TRY(rcn_votes_expand_u8(out, ctx, votes, table));
done:
    rcn__free(ctx, table);
    return status;
}

/* ---- STAPLE ---------------------------------------------------------------------------------- */

/* STAPLE for labels (Rohlfing, Russakoff and Maurer 2004; ITK's MultiLabelSTAPLEImageFilter). In
 * place of sensitivity and specificity a rater has a matrix of P(label given | true label). As in
 * rcn_fusion.c, patterns stand for their voxels. Plain products in place of logarithms: the
 * matrices hold many zeros, and a product needs no case for them. */

/* Chunks of patterns: at most so many, because each has matrices of its own to add to, and not too
 * small. Their number depends on the patterns alone, so the sums have the same bits for any number
 * of threads. */
enum { MOST_CHUNKS = 16, LEAST_PATTERNS = 256 };

typedef struct label_job {
    const rcn_votes *votes;
    const int64_t *voxels;    /* of the region, by pattern */
    const int64_t *occurring; /* patterns that somebody answered, with voxels in the region */
    int64_t count;            /* of them */
    int64_t per_chunk;
    int labels;               /* C + 1 */
    double prior[MAX_LABELS]; /* by label */
    double *confusion;        /* (raters, labels given, labels true) */
    double *sums;             /* the same for each chunk */
} label_job;

static int64_t matrices(const label_job *job) {
    return (int64_t)job->votes->raters * job->labels * job->labels;
}

/* The E step for one pattern: w[c] in proportion to prior[c] times the product over raters of
 * P(what they gave | c). Returns the sum, 0 when no label is possible. */
static double weigh(double *w, const label_job *job, int64_t pattern) {
    const uint8_t *given = row_of(job->votes, pattern);
    const int labels = job->labels;
    memcpy(w, job->prior, (size_t)labels * sizeof *w);
    for (int r = 0; r < job->votes->raters; ++r) {
        if (given[r] == RCN_NO_ANSWER) continue;
        const double *row = &job->confusion[((int64_t)r * labels + given[r]) * labels];
        double largest = 0;
        for (int c = 0; c < labels; ++c) {
            w[c] *= row[c];
            largest = w[c] > largest ? w[c] : largest;
        }
        /* Many small factors must not underflow; a power of two changes no digit. */
        if (largest < 0x1p-500)
            for (int c = 0; c < labels; ++c) w[c] *= 0x1p500;
    }
    double sum = 0;
    for (int c = 0; c < labels; ++c) sum += w[c];
    return sum;
}

/* E and M step of one chunk: what the next matrices are made of. */
static void staple_chunk(int64_t chunk, int thread, void *payload) {
    const label_job *job = payload;
    const int labels = job->labels;
    double *sums = job->sums + chunk * matrices(job), w[MAX_LABELS];
    int64_t first, end;
    (void)thread;
    memset(sums, 0, (size_t)matrices(job) * sizeof *sums);
    rcn__chunk_range(&first, &end, chunk, job->count, job->per_chunk);
    for (int64_t k = first; k < end; ++k) {
        const int64_t p = job->occurring[k];
        const uint8_t *given = row_of(job->votes, p);
        const double sum = weigh(w, job, p);
        if (!(sum > 0)) continue;
        for (int c = 0; c < labels; ++c) w[c] *= (double)job->voxels[p] / sum;
        for (int r = 0; r < job->votes->raters; ++r) {
            if (given[r] == RCN_NO_ANSWER) continue;
            double *row = &sums[((int64_t)r * labels + given[r]) * labels];
            for (int c = 0; c < labels; ++c) row[c] += w[c];
        }
    }
}

/* The first matrices, from voting, as ITK makes them: P(winner | given). A voxel without a winner
 * has no column. ITK writes it past the end of its row, to where the next label is taken for
 * background; this is kept, because entries that start at 0 stay 0, so they decide which fixed
 * point is reached. */
static void confusion_from_voting(label_job *job) {
    const int labels = job->labels, raters = job->votes->raters;
    memset(job->confusion, 0, (size_t)matrices(job) * sizeof *job->confusion);
    for (int64_t k = 0; k < job->count; ++k) {
        const int64_t p = job->occurring[k];
        const uint8_t *given = row_of(job->votes, p);
        uint8_t counts[MAX_LABELS];
        int winner = 0, winners = 1;
        rcn__count_labels(counts, given, 1, raters, labels - 1);
        for (int c = 1; c < labels; ++c) {
            if (counts[c] == counts[winner]) ++winners;
            if (counts[c] <= counts[winner]) continue;
            winner = c;
            winners = 1;
        }
        for (int r = 0; r < raters; ++r) {
            if (given[r] == RCN_NO_ANSWER) continue;
            const int row = given[r] + (winners > 1), column = winners > 1 ? 0 : winner;
            if (row < labels)
                job->confusion[((int64_t)r * labels + row) * labels + column] +=
                    (double)job->voxels[p];
        }
    }
    for (int64_t row = 0; row < (int64_t)raters * labels; ++row) {
        double sum = 0;
        for (int c = 0; c < labels; ++c) sum += job->confusion[row * labels + c];
        for (int c = 0; sum > 0 && c < labels; ++c) job->confusion[row * labels + c] /= sum;
    }
}

/* The M step from the chunks' sums: P(given | true) of each rater. Returns the largest change. */
static double update_confusion(label_job *job, int64_t chunks) {
    const int labels = job->labels;
    const int64_t all = matrices(job);
    double change = 0;
    for (int64_t chunk = 1; chunk < chunks; ++chunk)
        for (int64_t i = 0; i < all; ++i) job->sums[i] += job->sums[chunk * all + i];
    for (int r = 0; r < job->votes->raters; ++r)
        for (int c = 0; c < labels; ++c) {
            const int64_t first = (int64_t)r * labels * labels + c;
            double sum = 0;
            for (int j = 0; j < labels; ++j) sum += job->sums[first + j * labels];
            for (int j = 0; j < labels; ++j) {
                /* A label that is true nowhere: a column of zeros, as in ITK. */
                const double next = sum > 0 ? job->sums[first + j * labels] / sum : 0;
                double *entry = &job->confusion[first + j * labels];
                change = fmax(change, fabs(next - *entry));
                *entry = next;
            }
        }
    return change;
}

/* How often each label was given, among all answers in the region. */
static void prior_from_answers(label_job *job) {
    double sum = 0;
    for (int64_t k = 0; k < job->count; ++k) {
        const int64_t p = job->occurring[k];
        uint8_t counts[MAX_LABELS];
        rcn__count_labels(counts, row_of(job->votes, p), 1, job->votes->raters, job->labels - 1);
        for (int c = 0; c < job->labels; ++c) {
            job->prior[c] += (double)counts[c] * (double)job->voxels[p];
            sum += (double)counts[c] * (double)job->voxels[p];
        }
    }
    /* Nobody answered inside the region: nothing but background is known of. */
    if (sum == 0) job->prior[0] = sum = 1;
    for (int c = 0; c < job->labels; ++c) job->prior[c] /= sum;
}

/* The posterior of one pattern, and its label. Returns whether the largest one is not unique. */
static int decide(uint8_t *label, double *posterior, const label_job *job, int64_t pattern) {
    const int labels = job->labels;
    double sum = weigh(posterior, job, pattern);
    int undecided = !(sum > 0), best = 1;
    if (!job->votes->patterns[pattern].answered) {
        /* No opinion is background, as in all of fusion. */
        for (int c = 0; c < labels; ++c) posterior[c] = c == 0;
        *label = 0;
        return 0;
    }
    if (undecided) {
        /* Raters who are believed never to be wrong contradict each other: their votes stand. */
        uint8_t counts[MAX_LABELS];
        rcn__count_labels(counts, row_of(job->votes, pattern), 1, job->votes->raters, labels - 1);
        sum = 0;
        for (int c = 0; c < labels; ++c) sum += posterior[c] = counts[c];
    }
    for (int c = 2; c < labels; ++c)
        if (posterior[c] > posterior[best]) best = c;
    if (posterior[0] > posterior[best]) best = 0;
    for (int c = 0; c < labels; ++c) undecided |= c != best && posterior[c] == posterior[best];
    for (int c = 0; c < labels; ++c) posterior[c] /= sum;
    *label = (uint8_t)best;
    return undecided;
}

/* Which patterns take part, and with how many voxels. */
static rcn_status count_region(int64_t *voxels, int64_t *occurring, label_job *job,
                               rcn_context *ctx, int64_t margin) {
    rcn_status status = RCN_OK;
    const rcn_votes *votes = job->votes;
    RCN_TRY(rcn__votes_count_around(voxels, ctx, votes, margin));
    for (int64_t p = 0; p < votes->pattern_count; ++p)
        if (voxels[p] && votes->patterns[p].answered) occurring[job->count++] = p;
    job->voxels = voxels;
    job->occurring = occurring;
    job->per_chunk = rcn__chunk_count(job->count, MOST_CHUNKS);
    if (job->per_chunk < LEAST_PATTERNS) job->per_chunk = LEAST_PATTERNS;
done:
    return status;
}

/* Each round is one pass, the E step for a pattern and at once what it adds to the M step:
 * posteriors are never kept. The prior is not estimated again, as in ITK. */
static rcn_status iterate(rcn_label_staple *found, label_job *job, rcn_context *ctx,
                          const rcn_fusion_options *options) {
    rcn_status status = RCN_OK;
    const int64_t chunks = rcn__chunk_count(job->count, job->per_chunk);
    prior_from_answers(job);
    confusion_from_voting(job);
    while (chunks && found->iterations < options->staple_iterations && !found->converged) {
        RCN_TRY(rcn__for_chunks(ctx, "estimating raters' performance", chunks, staple_chunk, job));
        found->converged = update_confusion(job, chunks) <= options->staple_tolerance;
        ++found->iterations;
    }
    if (!chunks) found->converged = 1;
done:
    return status;
}

rcn_status rcn_label_staple_patterns(uint8_t *table, double *posterior, double *confusion,
                                     rcn_label_staple *result, rcn_context *ctx,
                                     const rcn_votes *votes, const rcn_fusion_options *options) {
    rcn_status status;
    int64_t *voxels = NULL, *occurring = NULL;
    label_job job = {.votes = votes};
    rcn_label_staple found;
    if (!ctx) return RCN_EINVALID;
    RCN_TRY(check_votes(ctx, table, votes));
    const char *sentence = rcn_fusion_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    memset(&found, 0, sizeof found);
    job.labels = votes->structures + 1;
    RCN_ALLOC_ZERO(voxels, ctx, votes->pattern_count, "the histogram of patterns");
    RCN_ALLOC(occurring, ctx, votes->pattern_count, "the patterns that occur");
    RCN_TRY(count_region(voxels, occurring, &job, ctx, options->staple_margin));
    RCN_ALLOC(job.confusion, ctx, matrices(&job), "STAPLE's confusion matrices");
    RCN_ALLOC(job.sums, ctx, matrices(&job) * rcn__chunk_count(job.count, job.per_chunk),
              "STAPLE's sums");
    RCN_TRY(iterate(&found, &job, ctx, options));

    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        /* The posterior of the last matrices, for all patterns, in the region or not. */
        double alone[MAX_LABELS];
        double *row = posterior ? posterior + p * job.labels : alone;
        if (decide(&table[p], row, &job, p)) found.undecided_voxels += votes->patterns[p].voxels;
        if (votes->patterns[p].answered) found.region_voxels += voxels[p];
    }
    memcpy(found.prior, job.prior, sizeof job.prior);
    if (confusion) memcpy(confusion, job.confusion, (size_t)matrices(&job) * sizeof *confusion);
    if (result) *result = found;
done:
    rcn__free(ctx, voxels);
    rcn__free(ctx, occurring);
    rcn__free(ctx, job.confusion);
    rcn__free(ctx, job.sums);
    return status;
}

rcn_status rcn_label_staple_make(uint8_t *out, double *confusion, rcn_label_staple *result,
                                 rcn_context *ctx, const rcn_votes *votes,
                                 const rcn_fusion_options *options) {
    rcn_status status;
    uint8_t *table = NULL;
    if (!ctx) return RCN_EINVALID;
    RCN_TRY(check_votes(ctx, out, votes));
    RCN_ALLOC(table, ctx, votes->pattern_count, "the labels by pattern");
    RCN_TRY(rcn_label_staple_patterns(table, NULL, confusion, result, ctx, votes, options));
    RCN_TRY(rcn_votes_expand_u8(out, ctx, votes, table));
done:
    rcn__free(ctx, table);
    return status;
}
