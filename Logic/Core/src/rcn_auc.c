// SPDX-License-Identifier: Apache-2.0
/* Area under the ROC curve, exact, over as many voxels as fit into memory at four bytes each
 * (rcn_auc.h).
 *
 * AUC is the share of couples (positive, negative) in which the positive has the higher
 * probability, ties one half (Mann and Whitney 1947). Sorting would find it; but bits of floats
 * from 0 to 1 are in the order of their values, so a counting sort by the upper bits does most of
 * the work. Each case is dealt into buckets of equal upper bits; within a bucket an item needs only
 * the lower bits, which leaves room in 32 bits for what the raters said. When all cases are there,
 * buckets are counted one by one, independently of each other, and put together in ascending order.
 */
#include "rcn/rcn_auc.h"

#include <math.h>
#include <string.h>

#include "rcn_calib_private.h"
#include "rcn_comm_private.h"

/* An item is a voxel: the lower bits of its probability, and its class above them. A class says how
 * many raters answered, how many marked, and the reference: (A (A + 1) / 2 + M) * 3 + reference. */
enum {
    LOW_BITS = 13,
    LOW_COUNT = 1 << LOW_BITS,
    /* 0x3F800000 is 1.0f, the highest probability. */
    BUCKETS = (0x3F800000 >> LOW_BITS) + 1,
    CLASSES = ((RCN_MAX_RATERS + 1) * (RCN_MAX_RATERS + 2) / 2) * 3
};

/* Fewer items than this are sorted; clearing and scanning the table of counts would cost more. */
enum { SORT_ITEMS = 512 };

/* The table of ends weighs as much as 260,000 items. Small cases share one, up to this many items,
 * so that many of them take little more than their items. */
enum { SHARED_ITEMS = 1 << 20 };

/* The items of a case, or of several small ones, bucket by bucket. */
typedef struct deal {
    uint32_t *items;
    int64_t *ends; /* [BUCKETS]: bucket b is items[ends[b - 1]] ... items[ends[b] - 1] */
} deal;

struct rcn_auc {
    rcn_context *ctx;
    int raters;
    rcn_readout readout;
    int at_least;
    int64_t count, room;
    deal *deals;
};

rcn_status rcn_auc_create(rcn_auc **out, rcn_context *ctx, int raters, rcn_readout readout,
                          int at_least) {
    rcn_status status;
    rcn_auc *auc = NULL;
    rcn_calib_options options = RCN_CALIB_OPTIONS_INIT;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    options.readout = readout;
    options.at_least = at_least;
    const char *sentence = out ? rcn_calib_check(&options, raters) : "The output AUC is NULL.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_ALLOC_ZERO(auc, ctx, 1, "AUC");
    auc->ctx = ctx;
    auc->raters = raters;
    auc->readout = readout;
    auc->at_least = at_least;
    *out = auc;
done:
    return status;
}

void rcn_auc_destroy(rcn_auc *auc) {
    if (!auc) return;
    rcn_context *ctx = auc->ctx;
    for (int64_t i = 0; i < auc->count; ++i) {
        rcn__free(ctx, auc->deals[i].items);
        rcn__free(ctx, auc->deals[i].ends);
    }
    rcn__free(ctx, auc->deals);
    rcn__free(ctx, auc);
}

/* ---- dealing --------------------------------------------------------------------------------- */

typedef struct deal_job {
    rcn__case c;
    int64_t voxels, per_part;
    int64_t *counts; /* [parts][BUCKETS]: items; then where the part's next item goes */
    uint32_t *items; /* NULL: counting */
} deal_job;

static uint32_t class_of(rcn__vote vote) {
    return ((uint32_t)vote.answered * (vote.answered + 1u) / 2 + vote.marked) * 3 + vote.reference;
}

static void deal_part(int64_t part, int thread, void *payload) {
    deal_job *job = payload;
    int64_t *counts = job->counts + part * BUCKETS;
    float p[RCN_CASE_BLOCK];
    uint32_t codes[RCN_CASE_BLOCK], keys[RCN_CASE_BLOCK];
    int64_t first, end;
    rcn__chunk_range(&first, &end, part, job->voxels, job->per_part);
    for (; first < end; first += RCN_CASE_BLOCK) {
        const int64_t size = end - first > RCN_CASE_BLOCK ? RCN_CASE_BLOCK : end - first;
        const int count = rcn__case_read(p, codes, NULL, &job->c, first, size, thread);
        memcpy(keys, p, sizeof *keys * (size_t)count);
        /* -0 is 0. */
        for (int i = 0; i < count; ++i) keys[i] &= 0x7FFFFFFF;
        if (!job->items) {
            for (int i = 0; i < count; ++i) ++counts[keys[i] >> LOW_BITS];
            continue;
        }
        for (int i = 0; i < count; ++i)
            job->items[counts[keys[i] >> LOW_BITS]++] =
                (keys[i] & (LOW_COUNT - 1)) | class_of(job->c.patterns[codes[i]]) << LOW_BITS;
    }
}

/* The items of all deals, bucket by bucket. */
static void pack_items(uint32_t *out, const deal *deals, int64_t count) {
    for (int64_t b = 0; b < BUCKETS; ++b)
        for (int64_t d = 0; d < count; ++d) {
            const int64_t from = b ? deals[d].ends[b - 1] : 0;
            const int64_t items = deals[d].ends[b] - from;
            memcpy(out, deals[d].items + from, sizeof *out * (size_t)items);
            out += items;
        }
}

/* Adds the items of pair[1] to pair[0]; on failure both are as before. */
static rcn_status join_deals(deal pair[2], rcn_context *ctx) {
    rcn_status status;
    uint32_t *items = NULL;
    RCN_ALLOC(items, ctx, pair[0].ends[BUCKETS - 1] + pair[1].ends[BUCKETS - 1],
              "the probabilities of several cases");
    pack_items(items, pair, 2);
    for (int64_t b = 0; b < BUCKETS; ++b) pair[0].ends[b] += pair[1].ends[b];
    rcn__free(ctx, pair[0].items);
    pair[0].items = items;
done:
    return status;
}

rcn_status rcn_auc_add(rcn_auc *auc, rcn_context *ctx, const rcn_calib_case *one_case) {
    rcn_status status;
    deal_job job;
    deal *deals = NULL;
    deal fresh = {NULL, NULL};
    memset(&job, 0, sizeof job);
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!auc) return rcn__fail(ctx, RCN_EINVALID, "The AUC to add to is NULL.");
    RCN_TRY(rcn__case_open(&job.c, ctx, one_case, auc->raters, auc->readout, auc->at_least));
    if (auc->count == auc->room) {
        const int64_t room = 2 * auc->room + 8;
        RCN_ALLOC(deals, ctx, room, "the list of cases");
        if (auc->count) memcpy(deals, auc->deals, sizeof *deals * (size_t)auc->count);
        rcn__free(ctx, auc->deals);
        auc->deals = deals;
        auc->room = room;
    }
    job.voxels = job.c.votes->voxels;
    /* Two passes over the case: count by part and bucket, then write each item to its place. A part
     * has a table of all buckets, so there are only a few parts for each thread; which items are in
     * which part does not change a bucket's contents, only their order, which nothing depends
     * on. */
    int64_t parts = rcn__chunk_count(job.voxels, RCN_CHUNK);
    if (parts > 4 * (int64_t)ctx->threads) parts = 4 * (int64_t)ctx->threads;
    job.per_part = rcn__chunk_count(job.voxels, parts);
    parts = rcn__chunk_count(job.voxels, job.per_part);
    RCN_ALLOC_ZERO(job.counts, ctx, parts * BUCKETS, "counting");
    RCN_ALLOC(fresh.ends, ctx, BUCKETS, "counting");
    RCN_TRY(rcn__for_chunks(ctx, "ranking", parts, deal_part, &job));
    RCN_TRY(rcn__case_result(ctx, &job.c));
    int64_t at = 0;
    for (int64_t b = 0; b < BUCKETS; ++b) {
        for (int64_t part = 0; part < parts; ++part) {
            const int64_t count = job.counts[part * BUCKETS + b];
            job.counts[part * BUCKETS + b] = at;
            at += count;
        }
        fresh.ends[b] = at;
    }
    RCN_ALLOC(fresh.items, ctx, at, "the probabilities of the case");
    job.items = fresh.items;
    RCN_TRY(rcn__for_chunks(ctx, "ranking", parts, deal_part, &job));
    deal *last = auc->count ? &auc->deals[auc->count - 1] : NULL;
    if (last && last->ends[BUCKETS - 1] + at <= SHARED_ITEMS) {
        deal pair[2] = {*last, fresh};
        RCN_TRY(join_deals(pair, ctx));
        *last = pair[0];
    } else {
        auc->deals[auc->count++] = fresh;
        fresh.items = NULL;
        fresh.ends = NULL;
    }
done:
    rcn__free(ctx, fresh.items);
    rcn__free(ctx, fresh.ends);
    rcn__free(ctx, job.counts);
    rcn__case_close(&job.c, ctx);
    return status;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Positives and negatives of a bucket, and the couples won among them (ties one half). There are
 * two of each: against the reference, and by pairs of voxel and rater. */
typedef struct tally {
    int64_t positive, negative;
    double wins;
} tally;

/* Items of one value, or of one class: [0] voxels with a reference, [1] pairs. */
typedef struct counts {
    int64_t positive[2], negative[2];
} counts;

typedef struct count_job {
    const rcn_auc *auc;
    counts classes[CLASSES];
    counts **tables;    /* per thread: [LOW_COUNT], all zero between buckets */
    uint32_t **scratch; /* per thread: [SORT_ITEMS] */
    tally *results[2];  /* [BUCKETS] */
} count_job;

static void counts_add(counts *sum, const counts *c) {
    for (int k = 0; k < 2; ++k) {
        sum->positive[k] += c->positive[k];
        sum->negative[k] += c->negative[k];
    }
}

/* The values come in ascending order: a positive wins against all negatives below. */
static void tally_value(tally out[2], const counts *c) {
    for (int k = 0; k < 2; ++k) {
        out[k].wins +=
            (double)c->positive[k] * ((double)out[k].negative + 0.5 * (double)c->negative[k]);
        out[k].positive += c->positive[k];
        out[k].negative += c->negative[k];
    }
}

/* Shell sort by the lower bits, with Ciura's gaps. */
static void sort_items(uint32_t *items, int64_t count) {
    static const int gaps[] = {301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; ++g)
        for (int64_t i = gaps[g]; i < count; ++i) {
            const uint32_t item = items[i];
            int64_t j = i;
            for (;
                 j >= gaps[g] && (items[j - gaps[g]] & (LOW_COUNT - 1)) > (item & (LOW_COUNT - 1));
                 j -= gaps[g])
                items[j] = items[j - gaps[g]];
            items[j] = item;
        }
}

static void count_sorted(tally out[2], const count_job *job, const uint32_t *items, int64_t count) {
    for (int64_t i = 0; i < count;) {
        const uint32_t low = items[i] & (LOW_COUNT - 1);
        counts sum = {{0, 0}, {0, 0}};
        for (; i < count && (items[i] & (LOW_COUNT - 1)) == low; ++i)
            counts_add(&sum, &job->classes[items[i] >> LOW_BITS]);
        tally_value(out, &sum);
    }
}

static void count_bucket(int64_t bucket, int thread, void *payload) {
    const count_job *job = payload;
    const rcn_auc *auc = job->auc;
    tally out[2] = {{0, 0, 0}, {0, 0, 0}};
    int64_t total = 0;
    for (int64_t d = 0; d < auc->count; ++d)
        total += auc->deals[d].ends[bucket] - (bucket ? auc->deals[d].ends[bucket - 1] : 0);
    for (int64_t d = 0, at = 0; total && d < auc->count; ++d) {
        const int64_t first = bucket ? auc->deals[d].ends[bucket - 1] : 0;
        const int64_t end = auc->deals[d].ends[bucket];
        const uint32_t *items = auc->deals[d].items;
        if (total <= SORT_ITEMS) {
            memcpy(job->scratch[thread] + at, items + first, sizeof *items * (size_t)(end - first));
            at += end - first;
        } else {
            counts *table = job->tables[thread];
            for (int64_t i = first; i < end; ++i)
                counts_add(&table[items[i] & (LOW_COUNT - 1)], &job->classes[items[i] >> LOW_BITS]);
        }
    }
    if (total > SORT_ITEMS) {
        counts *table = job->tables[thread];
        for (int64_t low = 0; low < LOW_COUNT; ++low) tally_value(out, &table[low]);
        /* As the next bucket expects it. */
        memset(table, 0, sizeof *table * LOW_COUNT);
    } else if (total) {
        sort_items(job->scratch[thread], total);
        count_sorted(out, job, job->scratch[thread], total);
    }
    for (int k = 0; k < 2; ++k) job->results[k][bucket] = out[k];
}

/* Buckets come in groups, so that starting one costs nothing. */
enum { GROUP = 64 };
static void count_group(int64_t group, int thread, void *payload) {
    int64_t first, end;
    rcn__chunk_range(&first, &end, group, BUCKETS, GROUP);
    for (; first < end; ++first) count_bucket(first, thread, payload);
}

/* A running sum that keeps what rounding drops (Neumaier 1974). */
static void add_exactly(double *sum, double *dropped, double x) {
    const double next = *sum + x;
    *dropped += fabs(*sum) >= fabs(x) ? (*sum - next) + x : (x - next) + *sum;
    *sum = next;
}

/* Buckets in ascending order: what is won within each, and by its positives against all negatives
 * below. */
static double auc_of(int64_t *positives, int64_t *negatives, const tally *results) {
    double wins = 0, dropped = 0;
    *positives = *negatives = 0;
    for (int64_t b = 0; b < BUCKETS; ++b) {
        add_exactly(&wins, &dropped, results[b].wins);
        add_exactly(&wins, &dropped, (double)results[b].positive * (double)*negatives);
        *positives += results[b].positive;
        *negatives += results[b].negative;
    }
    if (!*positives || !*negatives) return NAN;
    return (wins + dropped) / ((double)*positives * (double)*negatives);
}

/* ---- several processes -------------------------------------------------------------------------
 *
 * Each takes a range of buckets, cut so that all have about equally many items, and is sent the
 * others' items in it: an item travels once, and no process holds more than its part. */

/* borders[r] ... borders[r + 1] - 1: the buckets of process r. */
static void cut_buckets(int64_t *borders, const int64_t *totals, int size) {
    int64_t all = 0, sum = 0;
    int r = 0;
    for (int64_t b = 0; b < BUCKETS; ++b) all += totals[b];
    for (int64_t b = 0; b < BUCKETS; ++b) {
        while (r < size && sum >= r * (all / size) + r * (all % size) / size) borders[r++] = b;
        sum += totals[b];
    }
    for (; r <= size; ++r) borders[r] = BUCKETS;
}

/* Adds how many items are in each bucket; returns how many there are in all. */
static int64_t count_items(int64_t *buckets, const rcn_auc *auc) {
    int64_t all = 0;
    for (int64_t d = 0; d < auc->count; ++d) {
        const int64_t *ends = auc->deals[d].ends;
        for (int64_t b = 0; b < BUCKETS; ++b) buckets[b] += ends[b] - (b ? ends[b - 1] : 0);
        all += ends[BUCKETS - 1];
    }
    return all;
}

/* What the processes sent: buckets first ... first + width - 1. */
typedef struct arrival {
    const uint32_t *items;
    int64_t count;
    int64_t *at;           /* by process: where its items begin; moves behind what was taken */
    const int64_t *counts; /* by process and bucket */
    int64_t first, width;
    int processes;
} arrival;

/* *part = the same as one case, like `auc`: the items of a bucket side by side. */
static rcn_status unpack_items(rcn_auc **part, rcn_context *ctx, const rcn_auc *auc,
                               const arrival *in) {
    rcn_status status;
    rcn_auc *own = NULL;
    RCN_TRY(rcn_auc_create(&own, ctx, auc->raters, auc->readout, auc->at_least));
    RCN_ALLOC_ZERO(own->deals, ctx, 1, "the list of cases");
    own->count = own->room = 1;
    RCN_ALLOC(own->deals[0].items, ctx, in->count, "the probabilities of all cases");
    RCN_ALLOC(own->deals[0].ends, ctx, BUCKETS, "counting");
    int64_t n = 0;
    for (int64_t b = 0; b < BUCKETS; ++b) {
        const int here = b >= in->first && b < in->first + in->width;
        for (int r = 0; here && r < in->processes; ++r) {
            const int64_t count = in->counts[r * in->width + b - in->first];
            memcpy(own->deals[0].items + n, in->items + in->at[r],
                   sizeof *in->items * (size_t)count);
            in->at[r] += count;
            n += count;
        }
        own->deals[0].ends[b] = n;
    }
    *part = own;
    own = NULL;
done:
    rcn_auc_destroy(own);
    return status;
}

/* *part = what falls to this process of all processes' items. */
static rcn_status exchange_items(rcn_auc **part, rcn_context *ctx, const rcn_auc *auc,
                                 rcn_comm *comm) {
    rcn_status status;
    const int size = rcn__comm_size(comm);
    int64_t *own_counts = NULL, *totals = NULL, *borders = NULL, *theirs = NULL;
    int64_t *in_bytes = NULL, *out_bytes = NULL, *at = NULL;
    uint32_t *out = NULL, *in = NULL;
    RCN_ALLOC_ZERO(own_counts, ctx, BUCKETS, "counting");
    RCN_ALLOC(totals, ctx, BUCKETS, "counting");
    RCN_ALLOC(borders, ctx, size + 1, "counting");
    RCN_ALLOC(in_bytes, ctx, size, "counting");
    RCN_ALLOC(out_bytes, ctx, size, "counting");
    RCN_ALLOC(at, ctx, size, "counting");
    const int64_t mine = count_items(own_counts, auc);
    memcpy(totals, own_counts, sizeof *totals * BUCKETS);
    RCN_TRY(rcn_comm_sum(comm, ctx, totals, BUCKETS, RCN_COMM_INT64));
    cut_buckets(borders, totals, size);
    const int64_t first = borders[comm->rank], width = borders[comm->rank + 1] - first;

    /* How many there are in each bucket, then the items, bucket by bucket. */
    RCN_ALLOC(theirs, ctx, size * width, "counting");
    for (int r = 0; r < size; ++r) {
        out_bytes[r] = (borders[r + 1] - borders[r]) * (int64_t)sizeof *own_counts;
        in_bytes[r] = width * (int64_t)sizeof *own_counts;
    }
    RCN_TRY(rcn__comm_exchange(comm, ctx, theirs, in_bytes, own_counts, out_bytes));
    int64_t received = 0;
    for (int r = 0; r < size; ++r) {
        int64_t sent = 0, comes = 0;
        for (int64_t b = borders[r]; b < borders[r + 1]; ++b) sent += own_counts[b];
        for (int64_t b = 0; b < width; ++b) comes += theirs[r * width + b];
        out_bytes[r] = sent * (int64_t)sizeof *out;
        in_bytes[r] = comes * (int64_t)sizeof *in;
        at[r] = received;
        received += comes;
    }
    RCN_ALLOC(out, ctx, mine, "the probabilities of all cases");
    RCN_ALLOC(in, ctx, received, "the probabilities of all cases");
    pack_items(out, auc->deals, auc->count);
    RCN_TRY(rcn__comm_exchange(comm, ctx, in, in_bytes, out, out_bytes));
    rcn__free(ctx, out); /* before as much again is allocated */
    out = NULL;
    const arrival arrived = {in, received, at, theirs, first, width, size};
    RCN_TRY(unpack_items(part, ctx, auc, &arrived));
done:
    rcn__free(ctx, out);
    rcn__free(ctx, in);
    rcn__free(ctx, at);
    rcn__free(ctx, out_bytes);
    rcn__free(ctx, in_bytes);
    rcn__free(ctx, theirs);
    rcn__free(ctx, borders);
    rcn__free(ctx, totals);
    rcn__free(ctx, own_counts);
    return status;
}

/* Each bucket's tally from the process that counted it; the others have zeros there, so that the
 * sums are exact. */
static rcn_status share_tallies(tally *results[2], rcn_context *ctx, rcn_comm *comm) {
    rcn_status status;
    int64_t *whole = NULL;
    double *wins = NULL;
    RCN_ALLOC(whole, ctx, 2 * BUCKETS, "counting");
    RCN_ALLOC(wins, ctx, BUCKETS, "counting");
    for (int k = 0; k < 2; ++k) {
        for (int64_t b = 0; b < BUCKETS; ++b) {
            whole[2 * b] = results[k][b].positive;
            whole[2 * b + 1] = results[k][b].negative;
            wins[b] = results[k][b].wins;
        }
        RCN_TRY(rcn_comm_sum(comm, ctx, whole, 2 * BUCKETS, RCN_COMM_INT64));
        RCN_TRY(rcn_comm_sum(comm, ctx, wins, BUCKETS, RCN_COMM_DOUBLE));
        for (int64_t b = 0; b < BUCKETS; ++b) {
            const tally sum = {whole[2 * b], whole[2 * b + 1], wins[b]};
            results[k][b] = sum;
        }
    }
done:
    rcn__free(ctx, whole);
    rcn__free(ctx, wins);
    return status;
}

rcn_status rcn_auc_compute(rcn_auc_result *out, rcn_context *ctx, const rcn_auc *auc) {
    return rcn_auc_compute_shared(out, ctx, auc, NULL);
}

rcn_status rcn_auc_compute_shared(rcn_auc_result *out, rcn_context *ctx, const rcn_auc *auc,
                                  rcn_comm *comm) {
    rcn_status status;
    count_job *job = NULL;
    rcn_auc *part = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!auc || !out) return rcn__fail(ctx, RCN_EINVALID, "The AUC or its output is NULL.");
    if (rcn__comm_size(comm) > 1) {
        RCN_TRY(exchange_items(&part, ctx, auc, comm));
        auc = part;
    }
    RCN_ALLOC_ZERO(job, ctx, 1, "bookkeeping");
    job->auc = auc;
    for (int answered = 0; answered <= RCN_MAX_RATERS; ++answered)
        for (int marked = 0; marked <= answered; ++marked)
            for (int reference = 0; reference < 3; ++reference) {
                const rcn__vote vote = {(uint8_t)marked, (uint8_t)answered, (uint8_t)reference, 0};
                const counts c = {{reference == 1, marked}, {reference == 0, answered - marked}};
                job->classes[class_of(vote)] = c;
            }
    RCN_ALLOC_ZERO(job->tables, ctx, ctx->threads, "bookkeeping");
    RCN_ALLOC_ZERO(job->scratch, ctx, ctx->threads, "bookkeeping");
    for (int t = 0; t < ctx->threads; ++t) {
        RCN_ALLOC_ZERO(job->tables[t], ctx, LOW_COUNT, "counting");
        RCN_ALLOC(job->scratch[t], ctx, SORT_ITEMS, "counting");
    }
    for (int k = 0; k < 2; ++k) RCN_ALLOC(job->results[k], ctx, BUCKETS, "counting");
    RCN_TRY(
        rcn__for_chunks(ctx, "counting ranks", rcn__chunk_count(BUCKETS, GROUP), count_group, job));
    if (part) RCN_TRY(share_tallies(job->results, ctx, comm));
    out->reference = auc_of(&out->reference_positives, &out->reference_negatives, job->results[0]);
    out->pairs = auc_of(&out->pair_positives, &out->pair_negatives, job->results[1]);
done:
    if (job) {
        for (int t = 0; t < ctx->threads; ++t) {
            if (job->tables) rcn__free(ctx, job->tables[t]);
            if (job->scratch) rcn__free(ctx, job->scratch[t]);
        }
        rcn__free(ctx, job->tables);
        rcn__free(ctx, job->scratch);
        rcn__free(ctx, job->results[0]);
        rcn__free(ctx, job->results[1]);
    }
    rcn__free(ctx, job);
    rcn_auc_destroy(part);
    return status;
}
