// SPDX-License-Identifier: Apache-2.0
/* Agreement between raters: coefficients from the table of patterns, distances between surfaces,
 * and the regions that are disputed.
 *
 * Everything that counts voxels (kappa, alpha, AC1, Dice, volumes) is a sum over patterns and never
 * looks at a voxel. Only surfaces and regions need to know where voxels lie.
 */
#include "rcn/rcn_agreement.h"

#include <math.h>
#include <string.h>

#include "rcn_components.h"
#include "rcn_distance.h"
#include "rcn_votes_private.h"

/* ---- what the patterns tell ------------------------------------------------------------------ */

enum { MAX_LABELS = RCN_MAX_STRUCTURES + 1 };

/* Sums over a set of voxels from which the chance-corrected coefficients follow, of answers that
 * are one of several labels; a mask has two. The background's share is what the others leave. */
typedef struct overall_sums {
    int labels;                          /* with the background */
    double complete, complete_agreement; /* voxels that all present raters answered */
    double complete_share[MAX_LABELS];
    double pairable, pairable_agreement;               /* voxels with two answers or more */
    double disagreement, given[MAX_LABELS], all_given; /* Krippendorff's coincidences */
    double answered, share[MAX_LABELS], entropy;       /* voxels with one answer or more */
} overall_sums;

static overall_sums no_sums(int labels) {
    overall_sums sums;
    memset(&sums, 0, sizeof sums);
    sums.labels = labels;
    return sums;
}

/* Entropy in bits of shares[1] ... and what they leave. */
static double entropy_bits(const double *shares, int labels) {
    double sum = 0, rest = 1;
    for (int c = 1; c < labels; ++c) {
        if (shares[c] > 0) sum += shares[c] * log2(shares[c]);
        rest -= shares[c];
    }
    if (rest > 1e-12) sum += rest * log2(rest); /* less is rounding: the smallest share is 1/64 */
    return sum < 0 ? -sum : 0;
}

/* counts[label]: how many raters gave it. */
static void add_overall(overall_sums *sums, const rcn_pattern *pattern, const uint8_t *counts,
                        uint64_t present) {
    const double n = (double)pattern->voxels;
    const double answered = rcn_popcount(pattern->answered);
    double shares[MAX_LABELS], same = 0, different = 0;
    if (answered == 0) return;
    for (int c = 0; c < sums->labels; ++c) {
        const double given = counts[c];
        shares[c] = given / answered;
        same += given * (given - 1);
        different += given * (answered - given);
    }
    /* Three sets of voxels, each a part of the one before: with an answer (entropy, AC1's shares),
     * with two or more (alpha, AC1), answered by all (Fleiss' kappa, which needs the same number of
     * raters everywhere). */
    sums->answered += n;
    /* Not n times the share: a product of whole numbers is exact, and a mask keeps its digits. */
    for (int c = 1; c < sums->labels; ++c) sums->share[c] += n * counts[c] / answered;
    sums->entropy += n * entropy_bits(shares, sums->labels);
    if (answered < 2) return;
    const double agreement = same / (answered * (answered - 1));
    sums->pairable += n;
    sums->pairable_agreement += n * agreement;
    sums->disagreement += n * different / (answered - 1);
    for (int c = 0; c < sums->labels; ++c) sums->given[c] += n * counts[c];
    sums->all_given += n * answered;
    if (pattern->answered == present) {
        sums->complete += n;
        sums->complete_agreement += n * agreement;
        for (int c = 1; c < sums->labels; ++c) sums->complete_share[c] += n * counts[c] / answered;
    }
}

/* (observed - expected) / (1 - expected); not defined when chance alone explains everything. */
static double beyond_chance(double observed, double expected) {
    return expected < 1 ? (observed - expected) / (1 - expected) : NAN;
}

/* The sum of p^2, or of p (1 - p), over all labels; shares[1] ... are sums over `voxels`. */
static double sum_of_products(const double *shares, double voxels, int labels, int with_rest) {
    double sum = 0, structures = 0;
    for (int c = 1; c < labels; ++c) {
        const double p = shares[c] / voxels;
        sum += with_rest ? p * (1 - p) : p * p;
        structures += p;
    }
    const double background = 1 - structures;
    return sum + background * (with_rest ? structures : background);
}

/* Fleiss 1971, Krippendorff 2004 and Gwet 2008 for nominal labels. They differ in what they expect
 * by chance: Fleiss sum p^2; Krippendorff the same from pairs without replacement, n (n - 1); Gwet
 * sum p (1 - p) / (labels - 1), which does not break down when nearly all is background. */
static rcn_overall_agreement finish_overall(const overall_sums *sums) {
    rcn_overall_agreement overall = {NAN, NAN, NAN, NAN};
    const int labels = sums->labels;
    if (sums->complete > 0)
        overall.fleiss_kappa =
            beyond_chance(sums->complete_agreement / sums->complete,
                          sum_of_products(sums->complete_share, sums->complete, labels, 0));
    if (sums->pairable > 0) {
        const double n = sums->all_given;
        double expected = 0;
        for (int c = 0; c < labels; ++c) expected += sums->given[c] * (n - sums->given[c]);
        expected /= n * (n - 1);
        if (expected > 0) overall.krippendorff_alpha = 1 - sums->disagreement / n / expected;
        overall.gwet_ac1 =
            beyond_chance(sums->pairable_agreement / sums->pairable,
                          sum_of_products(sums->share, sums->answered, labels, 1) / (labels - 1));
    }
    if (sums->answered > 0) overall.mean_entropy = sums->entropy / sums->answered;
    return overall;
}

/* A 2 x 2 table of two answers: both, only the first, only the second, neither. */
typedef struct two_by_two {
    int64_t both, first, second, neither;
} two_by_two;

static void count_two(two_by_two *table, int a, int b, int64_t voxels) {
    if (a && b)
        table->both += voxels;
    else if (a)
        table->first += voxels;
    else if (b)
        table->second += voxels;
    else
        table->neither += voxels;
}

/* Both empty is full agreement. */
static double dice_of(const two_by_two *t) {
    const int64_t sum = 2 * t->both + t->first + t->second;
    return sum ? 2.0 * (double)t->both / (double)sum : 1.0;
}

static rcn_pair_agreement finish_pair(const two_by_two *t) {
    rcn_pair_agreement pair = {NAN, NAN, NAN, NAN, NAN};
    const double n = (double)(t->both + t->first + t->second + t->neither);
    if (n == 0) return pair;
    const int64_t any = t->both + t->first + t->second;
    pair.dice = dice_of(t);
    pair.jaccard = any ? (double)t->both / (double)any : 1.0;
    const double a = (double)(t->both + t->first) / n, b = (double)(t->both + t->second) / n;
    pair.kappa = beyond_chance((double)(t->both + t->neither) / n, a * b + (1 - a) * (1 - b));
    return pair;
}

/* Of each pair only the voxels that both answered. The diagonal is filled, too: a rater with
 * itself; the mean is over pairs of two. */
static void measure_pairs(rcn_agreement *agreement, const rcn_votes *votes) {
    const int raters = votes->raters;
    double sum = 0;
    int pairs = 0;
    for (int a = 0; a < raters; ++a)
        for (int b = a; b < raters; ++b) {
            const uint64_t both = UINT64_C(1) << a | UINT64_C(1) << b;
            two_by_two table = {0, 0, 0, 0};
            if ((votes->present & both) == both)
                for (int64_t p = 0; p < votes->pattern_count; ++p)
                    if ((votes->patterns[p].answered & both) == both)
                        count_two(&table, votes->patterns[p].marked >> a & 1,
                                  votes->patterns[p].marked >> b & 1, votes->patterns[p].voxels);
            const rcn_pair_agreement pair = finish_pair(&table);
            agreement->pair[a * raters + b] = agreement->pair[b * raters + a] = pair;
            if (a != b && !isnan(pair.dice)) {
                sum += pair.dice;
                ++pairs;
            }
        }
    agreement->mean_dice = pairs ? sum / pairs : NAN;
}

/* A rater against the majority of the others; leaving the rater out keeps it from agreeing with
 * itself. */
static void measure_rater(rcn_agreement *agreement, const rcn_votes *votes, int r,
                          const rcn_fusion_result *staple) {
    rcn_rater_agreement *rater = &agreement->rater[r];
    const uint64_t bit = UINT64_C(1) << r;
    two_by_two table = {0, 0, 0, 0}; /* this rater first, the others second */
    rater->dice_to_others = rater->sensitivity_to_others = rater->specificity_to_others = NAN;
    rater->staple_sensitivity = staple->sensitivity[r];
    rater->staple_specificity = staple->specificity[r];
    rater->present = (int)(votes->present >> r & 1);
    if (!rater->present) {
        rater->volume_ml = NAN;
        return;
    }
    rater->voxels = rcn_votes_marked(votes, r);
    rater->volume_ml = (double)rater->voxels * agreement->voxel_ml;
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const rcn_pattern *pattern = &votes->patterns[p];
        const int others = rcn_popcount(pattern->answered & ~bit);
        const int marked = rcn_popcount(pattern->marked & ~bit);
        if (!(pattern->answered & bit) || !others) continue;
        /* No majority to be compared with; as marked it would favor whoever marks most. */
        if (2 * marked == others)
            rater->others_split_voxels += pattern->voxels;
        else
            count_two(&table, (pattern->marked & bit) != 0, 2 * marked > others, pattern->voxels);
    }
    const int64_t foreground = table.both + table.second, background = table.first + table.neither;
    if (foreground + background == 0) return;
    rater->dice_to_others = dice_of(&table);
    if (foreground) rater->sensitivity_to_others = (double)table.both / (double)foreground;
    if (background) rater->specificity_to_others = (double)table.neither / (double)background;
}

rcn_status rcn_agreement_create(rcn_agreement **out, rcn_context *ctx, const rcn_votes *votes) {
    rcn_status status;
    rcn_agreement *agreement = NULL;
    double *posterior = NULL;
    int64_t *voxels = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    RCN_TRY(rcn__votes_check(ctx, out, votes, 0));
    const int64_t count = votes->pattern_count;
    RCN_ALLOC_ZERO(agreement, ctx, 1, "the agreement");
    RCN_ALLOC_ZERO(agreement->pair, ctx, (int64_t)votes->raters * votes->raters, "the agreement");
    RCN_ALLOC(posterior, ctx, count, "STAPLE's posterior");
    RCN_ALLOC(voxels, ctx, count, "the histogram of patterns");
    agreement->raters = votes->raters;
    agreement->present_count = rcn_popcount(votes->present);
    agreement->voxel_ml = rcn_geometry_voxel_ml(&votes->geometry);

    overall_sums whole = no_sums(2), on_union = no_sums(2);
    for (int64_t p = 0; p < count; ++p) {
        const rcn_pattern *pattern = &votes->patterns[p];
        voxels[p] = pattern->voxels;
        if (!pattern->voxels) continue;
        const int marked = rcn_popcount(pattern->marked),
                  answered = rcn_popcount(pattern->answered);
        const uint8_t counts[2] = {(uint8_t)(answered - marked), (uint8_t)marked};
        agreement->level_voxels[marked] += pattern->voxels;
        add_overall(&whole, pattern, counts, votes->present);
        if (!marked) continue;
        add_overall(&on_union, pattern, counts, votes->present);
        agreement->union_voxels += pattern->voxels;
        if (2 * marked >= answered) agreement->majority_voxels += pattern->voxels;
        if (marked == answered)
            agreement->intersection_voxels += pattern->voxels;
        else
            agreement->disputed_voxels += pattern->voxels;
    }
    agreement->whole = finish_overall(&whole);
    agreement->on_union = finish_overall(&on_union);
    RCN_TRY(rcn__report(ctx, 0.0, "comparing raters"));
    measure_pairs(agreement, votes);

    /* STAPLE as fusion does it by default, over the whole image; only p and q are wanted of it. */
    const rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    rcn_fusion_result staple;
    RCN_TRY(rcn_staple(posterior, &staple, ctx, votes->patterns, voxels, count, votes->raters,
                       &options));
    for (int r = 0; r < votes->raters; ++r) measure_rater(agreement, votes, r, &staple);
    *out = agreement;
    agreement = NULL;
done:
    rcn_agreement_destroy(agreement, ctx);
    rcn__free(ctx, posterior);
    rcn__free(ctx, voxels);
    return status;
}

/* Cohen's kappa of raters a and b over all labels, from the table of what they gave. */
static double label_kappa(const rcn_votes *votes, int a, int b) {
    double both[MAX_LABELS] = {0}, first[MAX_LABELS] = {0}, second[MAX_LABELS] = {0};
    double n = 0, observed = 0, expected = 0;
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const uint8_t *given = &votes->labels[p * votes->raters];
        const double voxels = (double)votes->patterns[p].voxels;
        if (given[a] == RCN_NO_ANSWER || given[b] == RCN_NO_ANSWER) continue;
        n += voxels;
        first[given[a]] += voxels;
        second[given[b]] += voxels;
        if (given[a] == given[b]) both[given[a]] += voxels;
    }
    if (n == 0) return NAN;
    for (int c = 0; c <= votes->structures; ++c) {
        observed += both[c] / n;
        expected += first[c] / n * (second[c] / n);
    }
    return beyond_chance(observed, expected);
}

rcn_status rcn_agreement_labels(rcn_label_agreement *out, double *kappa, rcn_context *ctx,
                                const rcn_votes *votes) {
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    const rcn_status status = rcn__votes_check(ctx, out, votes, 1);
    if (status != RCN_OK) return status;
    const int raters = votes->raters, structures = votes->structures;
    overall_sums whole = no_sums(structures + 1), on_union = no_sums(structures + 1);
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const rcn_pattern *pattern = &votes->patterns[p];
        uint8_t counts[MAX_LABELS];
        rcn__count_labels(counts, &votes->labels[p * raters], 1, raters, structures);
        add_overall(&whole, pattern, counts, votes->present);
        if (pattern->marked) add_overall(&on_union, pattern, counts, votes->present);
    }
    out->whole = finish_overall(&whole);
    out->on_union = finish_overall(&on_union);
    for (int a = 0; kappa && a < raters; ++a)
        for (int b = a; b < raters; ++b)
            kappa[a * raters + b] = kappa[b * raters + a] = label_kappa(votes, a, b);
    return RCN_OK;
}

void rcn_agreement_destroy(rcn_agreement *agreement, rcn_context *ctx) {
    if (!agreement) return;
    rcn__free(ctx, agreement->pair);
    rcn__free(ctx, agreement);
}

/* Landis and Koch 1977, table 2. */
static const struct {
    double up_to;
    const char *words;
} kappa_scale[] = {{-0.01, "poor"},    {0.20, "slight"},      {0.40, "fair"},
                   {0.60, "moderate"}, {0.80, "substantial"}, {1.00, "almost perfect"}};
enum { KAPPA_STEPS = sizeof kappa_scale / sizeof *kappa_scale };

const char *rcn_kappa_scale(double *up_to, int step) {
    if (step < 0 || step >= KAPPA_STEPS) return NULL;
    if (up_to) *up_to = kappa_scale[step].up_to;
    return kappa_scale[step].words;
}

const char *rcn_kappa_words(double kappa) {
    if (isnan(kappa)) return "not defined";
    /* Whole hundredths: 0.80 as it is read and its limit are the same number then. */
    const double hundredths = round(100 * kappa);
    for (int i = 0; i + 1 < KAPPA_STEPS; ++i)
        if (hundredths <= round(100 * kappa_scale[i].up_to)) return kappa_scale[i].words;
    return kappa_scale[KAPPA_STEPS - 1].words;
}

rcn_status rcn_agreement_entropy_map(float *out, rcn_context *ctx, const rcn_votes *votes) {
    rcn_status status;
    float *table = NULL;
    rcn__clear(ctx);
    RCN_ALLOC(table, ctx, votes->pattern_count, "the values by pattern");
    for (int64_t p = 0; p < votes->pattern_count; ++p) {
        const double shares[2] = {0, rcn__pattern_mean(&votes->patterns[p])};
        table[p] = (float)entropy_bits(shares, 2);
    }
    RCN_TRY(rcn_votes_expand(out, ctx, votes, table));
done:
    rcn__free(ctx, table);
    return status;
}

/* ---- surfaces -------------------------------------------------------------------------------- */

/* Distances from the surface of one rater to that of another. */
typedef struct directed {
    double percentile95;
    double sum;
} directed;

/* The surface voxels of every rater, in the box around all marks: background costs nothing. */
typedef struct surface_set {
    rcn_box box;
    int64_t extent[3]; /* of the box */
    int raters;
    int64_t *at[RCN_MAX_RATERS]; /* voxels of the box, ascending */
    int64_t count[RCN_MAX_RATERS];
} surface_set;

typedef struct surface_job {
    const rcn_votes *votes;
    surface_set *surfaces;
    int64_t *slice_count; /* [slices * raters]: how many; then where the slice's voxels start */
    uint64_t *rows;       /* per thread: who marked, for five rows of the box */
    int fill;
} surface_job;

/* out[i] = who marked voxel first + i. */
static void read_marks(uint64_t *out, const rcn_votes *votes, int64_t first, int64_t count) {
    uint32_t codes[256];
    for (int64_t i = 0; i < count; i += 256) {
        const int64_t n = count - i < 256 ? count - i : 256;
        rcn__votes_read(codes, votes, first + i, n);
        for (int64_t k = 0; k < n; ++k) out[i + k] = votes->patterns[codes[k]].marked;
    }
}

/* A voxel is on the surface of rater r when r marked it and not all of its face neighbors. In
 * patterns: marked AND NOT (AND of the neighbors), for all raters at once. */
static void surface_slice(int64_t slice, int thread, void *payload) {
    const surface_job *job = payload;
    surface_set *surfaces = job->surfaces;
    const int64_t *size = job->votes->geometry.size;
    const rcn_box *box = &surfaces->box;
    const int64_t width = box->end[0] - box->first[0], height = box->end[1] - box->first[1];
    const int64_t z = box->first[2] + slice;
    int64_t *counts = job->slice_count + slice * surfaces->raters;
    uint64_t *rows = job->rows + thread * 5 * width;
    static const int offset[5][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}}; /* y, z */
    const int thin = rcn_geometry_thin_axis(&job->votes->geometry);
    for (int64_t y = box->first[1]; y < box->end[1]; ++y) {
        for (int n = 0; n < 5; ++n) {
            const int64_t ny = y + offset[n][0], nz = z + offset[n][1];
            uint64_t *row = rows + n * width;
            /* A 2-D image has no neighbors across: as if all were inside there. */
            if ((thin == 1 && offset[n][0]) || (thin == 2 && offset[n][1]))
                memset(row, 0xFF, (size_t)width * sizeof *row);
            else if (ny < 0 || ny >= size[1] || nz < 0 || nz >= size[2])
                memset(row, 0, (size_t)width * sizeof *row);
            else
                read_marks(row, job->votes, box->first[0] + size[0] * (ny + size[1] * nz), width);
        }
        for (int64_t x = 0; x < width; ++x) {
            if (!rows[x]) continue;
            /* Outside the box nobody marked anything. */
            uint64_t inside = thin == 0 ? ~UINT64_C(0) : x > 0 ? rows[x - 1] : 0;
            inside &= thin == 0 ? ~UINT64_C(0) : x + 1 < width ? rows[x + 1] : 0;
            for (int n = 1; n < 5; ++n) inside &= rows[n * width + x];
            for (uint64_t bits = rows[x] & ~inside; bits; bits &= bits - 1) {
                /* The number of the lowest bit that is set. */
                const int r = rcn_popcount((bits & -bits) - 1);
                if (job->fill)
                    surfaces->at[r][counts[r]] = x + width * (y - box->first[1] + height * slice);
                ++counts[r];
            }
        }
    }
}

/* Two passes, so that each rater's list is allocated once and needs no lock: count the surface
 * voxels of every slice, then write them where the slice's part of the list starts. */
static rcn_status find_surfaces(surface_set *out, rcn_context *ctx, const rcn_votes *votes) {
    rcn_status status;
    surface_job job = {votes, out, NULL, NULL, 0};
    out->raters = votes->raters;
    RCN_TRY(rcn_votes_union_box(&out->box, ctx, votes, 0));
    for (int a = 0; a < 3; ++a) out->extent[a] = out->box.end[a] - out->box.first[a];
    const int64_t slices = out->extent[2];
    RCN_ALLOC_ZERO(job.slice_count, ctx, slices * votes->raters, "the surfaces");
    RCN_ALLOC(job.rows, ctx, 5 * out->extent[0] * ctx->threads, "the surfaces");
    RCN_TRY(rcn__for_chunks(ctx, "finding surfaces", slices, surface_slice, &job));
    for (int r = 0; r < votes->raters; ++r) {
        for (int64_t s = 0; s < slices; ++s) {
            const int64_t here = job.slice_count[s * votes->raters + r];
            job.slice_count[s * votes->raters + r] = out->count[r];
            out->count[r] += here;
        }
        RCN_ALLOC(out->at[r], ctx, out->count[r], "the surfaces");
    }
    job.fill = 1;
    RCN_TRY(rcn__for_chunks(ctx, "finding surfaces", slices, surface_slice, &job));
done:
    rcn__free(ctx, job.slice_count);
    rcn__free(ctx, job.rows);
    return status;
}

/* Puts the k-th smallest value at position k, smaller ones before it, larger ones after (Hoare). */
static void select_kth(float *values, int64_t count, int64_t k) {
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const float pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) ++i;
            while (values[j] > pivot) --j;
            if (i > j) break;
            const float swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

/* The 95th percentile with linear interpolation between neighbors, as NumPy's default. */
static double percentile95(float *values, int64_t count) {
    const double position = 0.95 * (double)(count - 1);
    const int64_t k = (int64_t)position;
    select_kth(values, count, k);
    double next = values[k];
    if (k + 1 < count) {
        next = values[k + 1];
        for (int64_t i = k + 2; i < count; ++i)
            if (values[i] < next) next = values[i];
    }
    return values[k] + (position - (double)k) * (next - values[k]);
}

/* distance: room for the box; values: room for the longest list. Both are scratch. */
static rcn_status measure_to_rater(directed *from_to, rcn_context *ctx, const surface_set *surfaces,
                                   int to, const double spacing[3], float *distance,
                                   float *values) {
    rcn_status status;
    const int64_t *extent = surfaces->extent, voxels = extent[0] * extent[1] * extent[2];
    for (int64_t i = 0; i < voxels; ++i) distance[i] = INFINITY;
    for (int64_t i = 0; i < surfaces->count[to]; ++i) distance[surfaces->at[to][i]] = 0;
    RCN_TRY(rcn__distance_squared(distance, ctx, extent, spacing));
    for (int r = 0; r < surfaces->raters; ++r) {
        const int64_t count = surfaces->count[r];
        if (r == to || !count) continue;
        RCN_TRY(rcn__report(ctx, (double)r / surfaces->raters, "measuring surface distances"));
        directed *here = &from_to[r * surfaces->raters + to];
        here->sum = 0;
        for (int64_t i = 0; i < count; ++i) {
            values[i] = sqrtf(distance[surfaces->at[r][i]]);
            here->sum += values[i];
        }
        here->percentile95 = percentile95(values, count);
    }
done:
    return status;
}

/* Hausdorff distance at the 95th percentile: the larger of both directions. Mean surface distance:
 * over the voxels of both surfaces together, so that the larger one weighs more. Of two empty
 * surfaces both are 0; of one empty one they stay NaN. */
static void finish_surfaces(rcn_agreement *agreement, const surface_set *surfaces, uint64_t present,
                            const directed *from_to) {
    const int raters = surfaces->raters;
    for (int a = 0; a < raters; ++a)
        for (int b = 0; b < raters; ++b) {
            const uint64_t both = UINT64_C(1) << a | UINT64_C(1) << b;
            const directed *there = &from_to[a * raters + b], *back = &from_to[b * raters + a];
            rcn_pair_agreement *pair = &agreement->pair[a * raters + b];
            const int64_t voxels = surfaces->count[a] + surfaces->count[b];
            if ((present & both) != both) continue;
            if (a == b || voxels == 0) {
                pair->hausdorff95_mm = pair->mean_surface_mm = 0;
            } else if (surfaces->count[a] && surfaces->count[b]) {
                pair->hausdorff95_mm = fmax(there->percentile95, back->percentile95);
                pair->mean_surface_mm = (there->sum + back->sum) / (double)voxels;
            }
        }
}

rcn_status rcn_agreement_measure_surfaces(rcn_agreement *agreement, rcn_context *ctx,
                                          const rcn_votes *votes) {
    rcn_status status;
    surface_set surfaces;
    directed *from_to = NULL;
    float *distance = NULL, *values = NULL;
    int64_t most = 0;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!agreement || !votes || agreement->raters != votes->raters)
        return rcn__fail(ctx, RCN_EINVALID, "The agreement is not that of these votes.");
    if (rcn_geometry_is_sheared(&votes->geometry))
        return rcn__fail(
            ctx, RCN_EGEOMETRY,
            "Distances between outlines cannot be measured: the image's axes are not at "
            "right angles (gantry tilt); resample image and masks to a grid with axes at "
            "right angles first.");
    memset(&surfaces, 0, sizeof surfaces);
    RCN_TRY(find_surfaces(&surfaces, ctx, votes));
    for (int r = 0; r < votes->raters; ++r)
        if (surfaces.count[r] > most) most = surfaces.count[r];
    RCN_ALLOC(from_to, ctx, (int64_t)votes->raters * votes->raters, "surface distances");
    RCN_ALLOC(values, ctx, most, "surface distances");
    RCN_ALLOC(distance, ctx, surfaces.extent[0] * surfaces.extent[1] * surfaces.extent[2],
              "surface distances");
    /* One distance map at a time: the map of rater r serves all pairs that end at r. */
    for (int r = 0; r < votes->raters; ++r)
        if (surfaces.count[r])
            RCN_TRY(measure_to_rater(from_to, ctx, &surfaces, r, votes->geometry.spacing, distance,
                                     values));
    finish_surfaces(agreement, &surfaces, votes->present, from_to);
done:
    for (int r = 0; r < votes->raters; ++r) rcn__free(ctx, surfaces.at[r]);
    rcn__free(ctx, from_to);
    rcn__free(ctx, values);
    rcn__free(ctx, distance);
    return status;
}

/* ---- disputed regions ------------------------------------------------------------------------ */

static void find_disputed(uint8_t *inside, int64_t first, int64_t count, void *payload) {
    const rcn_votes *votes = payload;
    uint32_t codes[RCN_INSIDE_BLOCK];
    rcn__votes_read(codes, votes, first, count);
    for (int64_t i = 0; i < count; ++i)
        inside[i] = (uint8_t)rcn__pattern_is_disputed(&votes->patterns[codes[i]]);
}

/* Largest first; equal ones in order of their first voxel, which centroid[] cannot tell but the
 * order of creation can: a stable merge sort. */
static void sort_regions(rcn_dispute *regions, rcn_dispute *scratch, int64_t count) {
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            const int64_t middle = low + width < count ? low + width : count;
            const int64_t high = low + 2 * width < count ? low + 2 * width : count;
            int64_t i = low, j = middle;
            for (int64_t k = low; k < high; ++k)
                scratch[k] = j >= high || (i < middle && regions[i].voxels >= regions[j].voxels)
                                 ? regions[i++]
                                 : regions[j++];
        }
        memcpy(regions, scratch, (size_t)count * sizeof *regions);
    }
}

static void add_run(rcn_dispute *region, const rcn__run *r, int64_t y, int64_t z,
                    const rcn_votes *votes) {
    const int64_t first[3] = {r->first, y, z}, end[3] = {r->end, y + 1, z + 1};
    const double n = (double)(r->end - r->first);
    rcn__box_grow(&region->box, first, end);
    for (int a = 0; a < 3; ++a)
        region->centroid[a] += n * 0.5 * (double)(first[a] + end[a] - 1); /* a sum for now */
    region->voxels += r->end - r->first;
    for (int64_t x = r->first; x < r->end; ++x) {
        const rcn_pattern *pattern = rcn_votes_at(votes, r->row * votes->geometry.size[0] + x);
        const int votes_here = rcn_popcount(pattern->marked);
        region->marked_by |= pattern->marked;
        if (votes_here > region->max_votes) region->max_votes = votes_here;
    }
}

static void finish_region(rcn_dispute *region, const rcn_geometry *geometry) {
    for (int a = 0; a < 3; ++a) region->centroid[a] /= (double)region->voxels;
    rcn_geometry_to_world(region->centroid_world, geometry, region->centroid);
    region->volume_ml = (double)region->voxels * rcn_geometry_voxel_ml(geometry);
}

/* Moves region->at to the run's voxel nearest to the centroid when that is nearer than *nearest. */
static void visit_run(rcn_dispute *region, double *nearest, const rcn__run *r, int64_t y, int64_t z,
                      const rcn_geometry *geometry) {
    int64_t x = (int64_t)floor(region->centroid[0] + 0.5);
    x = x < r->first ? r->first : x >= r->end ? r->end - 1 : x;
    const int64_t at[3] = {x, y, z};
    double step[3];
    for (int a = 0; a < 3; ++a) step[a] = (double)at[a] - region->centroid[a];
    const double distance = rcn__geometry_distance_squared(geometry, step);
    if (*nearest < 0 || distance < *nearest) {
        *nearest = distance;
        memcpy(region->at, at, sizeof at);
    }
}

rcn_status rcn_disputes_create(rcn_dispute **out, int64_t *count, rcn_context *ctx,
                               const rcn_votes *votes) {
    static const char *const what = "disputed regions";
    rcn_status status;
    rcn_dispute *regions = NULL, *scratch = NULL;
    double *nearest = NULL;
    rcn__components found = {NULL, 0, 0};
    rcn__clear(ctx);
    const int64_t rows = votes->geometry.size[1];
    RCN_TRY(rcn__components_find(&found, ctx, votes->geometry.size, find_disputed, (void *)votes,
                                 "finding disputed voxels", what));
    RCN_ALLOC_ZERO(regions, ctx, found.count, what);
    RCN_ALLOC(scratch, ctx, found.count, what);
    RCN_ALLOC(nearest, ctx, found.count, what);
    for (int64_t k = 0; k < found.count; ++k) {
        nearest[k] = -1; /* none yet; a distance may be infinite */
        regions[k].box = rcn__box_empty();
    }
    /* Runs are visited twice: the voxel nearest to the centroid is known once the centroid is. The
     * centroid itself may lie outside of a bent region, where there is nothing to show. */
    for (const rcn__run *r = found.runs; r < found.runs + found.run_count; ++r)
        add_run(&regions[r->component], r, r->row % rows, r->row / rows, votes);
    for (int64_t k = 0; k < found.count; ++k) finish_region(&regions[k], &votes->geometry);
    for (const rcn__run *r = found.runs; r < found.runs + found.run_count; ++r)
        visit_run(&regions[r->component], &nearest[r->component], r, r->row % rows, r->row / rows,
                  &votes->geometry);
    sort_regions(regions, scratch, found.count);
    *count = found.count;
    *out = found.count ? regions : NULL;
    if (found.count) regions = NULL;
done:
    rcn__components_free(&found, ctx);
    rcn__free(ctx, nearest);
    rcn__free(ctx, scratch);
    rcn__free(ctx, regions);
    return status;
}

void rcn_disputes_destroy(rcn_dispute *regions, rcn_context *ctx) { rcn__free(ctx, regions); }
