// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_agreement.h"

#include "rcn_distance.h"
#include "rcn_test.h"

static rcn_votes *votes_of(rcn_context *ctx, uint8_t *data, int raters, rcn_geometry geometry,
                           const int64_t *unanswered) {
    rcn_mask masks[RCN_MAX_RATERS];
    rcn_votes *votes = NULL;
    for (int r = 0; r < raters; ++r) {
        const rcn_mask mask = {{data + r * rcn_geometry_voxels(&geometry), RCN_UINT8, 1, geometry},
                               0,
                               NULL,
                               0,
                               unanswered};
        masks[r] = mask;
    }
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, raters), RCN_OK);
    return votes;
}

/* Ten voxels, two raters, by hand: both 3, only A 2, only B 1, neither 4. */
static void by_hand(void) {
    uint8_t data[2][10] = {{1, 1, 1, 1, 1, 0, 0, 0, 0, 0}, {1, 1, 1, 0, 0, 1, 0, 0, 0, 0}};
    rcn_context *ctx = make_context(1);
    rcn_geometry geometry = rcn_geometry_make(10, 1, 1);
    geometry.spacing[0] = 10; /* 10 x 1 x 1 mm: 0.01 mL */
    rcn_votes *votes = votes_of(ctx, data[0], 2, geometry, NULL);
    rcn_agreement *a = NULL;
    CHECK_STATUS(rcn_agreement_create(&a, ctx, votes), RCN_OK);
    const rcn_pair_agreement *pair = &a->pair[1];
    CHECK_NEAR(pair->dice, 6.0 / 9, 1e-15);
    CHECK_NEAR(pair->jaccard, 0.5, 1e-15);
    CHECK_NEAR(pair->kappa, (0.7 - (0.5 * 0.4 + 0.5 * 0.6)) / 0.5, 1e-15);
    CHECK(isnan(pair->hausdorff95_mm));
    CHECK_NEAR(a->pair[0].dice, 1, 0);
    CHECK_NEAR(a->pair[2].dice, a->pair[1].dice, 0);
    CHECK_NEAR(a->mean_dice, 6.0 / 9, 1e-15);
    /* Fleiss: mean agreement .7, share .45 -> expected .505 */
    CHECK_NEAR(a->whole.fleiss_kappa, (0.7 - 0.505) / 0.495, 1e-14);
    /* Krippendorff: 20 values, 9 ones; disagreements 3 units of 2 -> Do = 6/20 */
    CHECK_NEAR(a->whole.krippendorff_alpha, 1 - (6.0 / 20) / (2.0 * 9 * 11 / (20 * 19)), 1e-14);
    CHECK_NEAR(a->whole.gwet_ac1, (0.7 - 2 * .45 * .55) / (1 - 2 * .45 * .55), 1e-14);
    CHECK_NEAR(a->whole.mean_entropy, 0.3, 1e-15);
    CHECK_NEAR(a->on_union.mean_entropy, 0.5, 1e-15);
    CHECK(a->union_voxels == 6 && a->intersection_voxels == 3 && a->disputed_voxels == 3);
    CHECK(a->majority_voxels == 6 && a->level_voxels[1] == 3 && a->level_voxels[0] == 4);
    CHECK_NEAR(a->rater[0].volume_ml, 0.05, 1e-15);
    CHECK_NEAR(a->rater[0].dice_to_others, 6.0 / 9, 1e-15);
    CHECK_NEAR(a->rater[0].sensitivity_to_others, 3.0 / 4, 1e-15);
    CHECK_NEAR(a->rater[0].specificity_to_others, 4.0 / 6, 1e-15);
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Krippendorff's own example (nominal, binary part): missing values are allowed. */
static void missing_answers(void) {
    const int64_t none = 9;
    /* three raters, six units; 9 = no answer */
    uint8_t data[3][6] = {{1, 0, 9, 1, 9, 0}, {1, 1, 0, 9, 9, 0}, {9, 0, 0, 1, 1, 0}};
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = votes_of(ctx, data[0], 3, rcn_geometry_make(6, 1, 1), &none);
    rcn_agreement *a = NULL;
    CHECK_STATUS(rcn_agreement_create(&a, ctx, votes), RCN_OK);
    /* pairable units 1,2,3,4,6: values 1 1 | 0 1 0 | 0 0 | 1 1 | 0 0 0: ones 5, zeros 7, n 12;
     * disagreement 2*1*2/2 = 2 */
    CHECK_NEAR(a->whole.krippendorff_alpha, 1 - (2.0 / 12) / (2.0 * 5 * 7 / (12 * 11)), 1e-14);
    /* Gwet: agreement (1 + 1/3 + 1 + 1 + 1)/5; share (1 + 1/3 + 0 + 1 + 1 + 0)/6 */
    const double pa = (4 + 1.0 / 3) / 5, pi = (3 + 1.0 / 3) / 6;
    CHECK_NEAR(a->whole.gwet_ac1, (pa - 2 * pi * (1 - pi)) / (1 - 2 * pi * (1 - pi)), 1e-14);
    /* raters 0 and 1 met at units 1, 2, 6 */
    CHECK_NEAR(a->pair[1].dice, 2.0 / 3, 1e-15);
    /* all three answered units 2 and 6 only */
    CHECK_NEAR(a->whole.fleiss_kappa,
               ((1.0 / 3 + 1) / 2 - (1.0 / 36 + 25.0 / 36)) / (1 - 26.0 / 36), 1e-14);
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void corners(void) {
    uint8_t data[3][8] = {{0}};
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = votes_of(ctx, data[0], 3, rcn_geometry_make(2, 2, 2), NULL);
    rcn_agreement *a = NULL;
    CHECK_STATUS(rcn_agreement_create(&a, ctx, votes), RCN_OK);
    CHECK(a->pair[1].dice == 1 && a->pair[1].jaccard == 1 && isnan(a->pair[1].kappa));
    CHECK(isnan(a->whole.fleiss_kappa) && isnan(a->whole.krippendorff_alpha));
    CHECK(a->whole.gwet_ac1 == 1 && isnan(a->on_union.mean_entropy));
    CHECK(isnan(a->rater[0].sensitivity_to_others) && a->rater[0].specificity_to_others == 1);
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(votes);

    data[0][1] = data[0][2] = 1; /* one rater alone */
    votes = votes_of(ctx, data[0], 1, rcn_geometry_make(2, 2, 2), NULL);
    CHECK_STATUS(rcn_agreement_create(&a, ctx, votes), RCN_OK);
    CHECK(isnan(a->mean_dice) && isnan(a->rater[0].dice_to_others) && isnan(a->whole.fleiss_kappa));
    CHECK(a->disputed_voxels == 0 && a->union_voxels == 2);
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(votes);
    CHECK(!strcmp(rcn_kappa_words(0.7), "substantial"));
    CHECK(!strcmp(rcn_kappa_words(-0.1), "poor"));
    CHECK(!strcmp(rcn_kappa_words(NAN), "not defined"));
    /* One verdict for what is read as one value: all that is printed as 0.80 is substantial. */
    CHECK(!strcmp(rcn_kappa_words(0.796), "substantial"));
    CHECK(!strcmp(rcn_kappa_words(0.8), "substantial"));
    CHECK(!strcmp(rcn_kappa_words(0.804), "substantial"));
    CHECK(!strcmp(rcn_kappa_words(0.806), "almost perfect"));
    CHECK(!strcmp(rcn_kappa_words(-0.004), "slight"));
    CHECK(!strcmp(rcn_kappa_words(-0.006), "poor"));
    for (int hundredths = -100; hundredths <= 100; ++hundredths) {
        const double value = hundredths / 100.0;
        CHECK(rcn_kappa_words(value) == rcn_kappa_words(value - 0.004));
        CHECK(rcn_kappa_words(value) == rcn_kappa_words(value + 0.004));
    }
    double up_to = NAN;
    for (int step = 0; step < 6; ++step)
        CHECK(rcn_kappa_scale(&up_to, step) == rcn_kappa_words(up_to));
    CHECK(up_to == 1.0 && !rcn_kappa_scale(&up_to, 6) && !rcn_kappa_scale(NULL, -1));
    rcn_context_destroy(ctx);
}

/* The surface voxels of a mask, one by one: out[i] = 1 there. Returns how many. */
static int64_t naive_surface(uint8_t *out, const uint8_t *mask, const rcn_geometry *geometry) {
    const int64_t *size = geometry->size, voxels = rcn_geometry_voxels(geometry);
    int64_t count = 0;
    for (int64_t i = 0; i < voxels; ++i) {
        int64_t stride = 1;
        out[i] = 0;
        for (int a = 0; a < 3; stride *= size[a++]) {
            const int64_t at = i / stride % size[a];
            if (!mask[i] || size[a] == 1) continue;
            if (at == 0 || at + 1 == size[a] || !mask[i - stride] || !mask[i + stride]) out[i] = 1;
        }
        count += out[i];
    }
    return count;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The 95th percentile of the distances from one surface to another, every voxel against every
 * voxel; adds the distances to *sum. */
static double naive_distances(double *sum, const uint8_t *from, const uint8_t *to,
                              const rcn_geometry *geometry) {
    const int64_t *size = geometry->size, voxels = rcn_geometry_voxels(geometry);
    double *all = malloc((size_t)voxels * sizeof *all);
    int64_t count = 0;
    for (int64_t i = 0; i < voxels; ++i) {
        if (!from[i]) continue;
        all[count] = INFINITY;
        for (int64_t j = 0; j < voxels; ++j) {
            if (!to[j]) continue;
            const double step[3] = {(double)(i % size[0] - j % size[0]),
                                    (double)(i / size[0] % size[1] - j / size[0] % size[1]),
                                    (double)(i / size[0] / size[1] - j / size[0] / size[1])};
            all[count] = fmin(all[count], sqrt(rcn__geometry_distance_squared(geometry, step)));
        }
        *sum += all[count++];
    }
    qsort(all, (size_t)count, sizeof *all, ascending);
    const double position = 0.95 * (double)(count - 1);
    const int64_t k = (int64_t)position;
    const double percentile = all[k] + (position - (double)k) * (all[k + (k + 1 < count)] - all[k]);
    free(all);
    return percentile;
}

/* Two boxes that overlap and an empty mask, in 3-D and in images that are one voxel thin along any
 * axis: those are 2-D, so that the middle of a 5 x 5 square is no surface. Against brute force, and
 * the same bits for one and for several threads. */
static void surfaces(void) {
    static const int64_t sizes[4][3] = {{14, 9, 6}, {1, 14, 9}, {14, 1, 9}, {14, 9, 1}};
    /* 3-D: 5x5x5 minus 3x3x3 and 10x3x5 minus 8x1x3; they touch the border, which is outside */
    static const int64_t counts[4][2] = {{125 - 27, 150 - 24}, {16, 22}, {16, 22}, {16, 22}};
    for (int shape = 0; shape < 4; ++shape) {
        uint8_t data[3][14 * 9 * 6] = {{0}}, surface[2][14 * 9 * 6];
        const int64_t *size = sizes[shape], voxels = size[0] * size[1] * size[2];
        const int64_t width = shape == 1 ? size[1] : size[0];
        rcn_geometry geometry = rcn_geometry_make(size[0], size[1], size[2]);
        geometry.spacing[0] = 0.5;
        geometry.spacing[1] = 2;
        geometry.spacing[2] = 3;
        for (int64_t i = 0; i < voxels; ++i) {
            const int64_t x = i % width, y = i / width % 9, z = i / (width * 9);
            data[0][i] = x >= 1 && x < 6 && y >= 2 && y < 7 && z < 5;
            data[1][i] = x >= 3 && x < 13 && y >= 3 && y < 6 && (shape || z >= 1);
        }
        uint8_t packed[3 * 14 * 9 * 6];
        for (int r = 0; r < 3; ++r) memcpy(packed + r * voxels, data[r], (size_t)voxels);
        int64_t total = 0;
        for (int r = 0; r < 2; ++r) {
            CHECK(naive_surface(surface[r], data[r], &geometry) == counts[shape][r]);
            total += counts[shape][r];
        }
        double sum = 0;
        const double there = naive_distances(&sum, surface[0], surface[1], &geometry);
        const double back = naive_distances(&sum, surface[1], surface[0], &geometry);
        rcn_agreement *found[2] = {NULL, NULL};
        rcn_context *ctx[2] = {make_context(1), make_context(3)};
        for (int t = 0; t < 2; ++t) {
            rcn_votes *votes = votes_of(ctx[t], packed, 3, geometry, NULL);
            CHECK_STATUS(rcn_agreement_create(&found[t], ctx[t], votes), RCN_OK);
            CHECK_STATUS(rcn_agreement_measure_surfaces(found[t], ctx[t], votes), RCN_OK);
            rcn_votes_destroy(votes);
        }
        const rcn_pair_agreement *pair = found[0]->pair;
        CHECK_NEAR(pair[1].hausdorff95_mm, fmax(there, back), 1e-6);
        CHECK_NEAR(pair[1].mean_surface_mm, sum / (double)total, 1e-6);
        CHECK(pair[3].hausdorff95_mm == pair[1].hausdorff95_mm);
        CHECK(isnan(pair[2].hausdorff95_mm)); /* against an empty mask */
        CHECK(pair[0].hausdorff95_mm == 0 && pair[8].mean_surface_mm == 0);
        CHECK(!memcmp(pair, found[1]->pair, 9 * sizeof *pair));
        for (int t = 0; t < 2; ++t) {
            rcn_agreement_destroy(found[t], ctx[t]);
            rcn_context_destroy(ctx[t]);
        }
    }
}

/* A gantry tilt: volumes follow, distances are refused, the place to visit is the nearest one. */
static void sheared(void) {
    uint8_t data[2][27] = {{0}, {0}};
    rcn_context *ctx = make_context(1);
    rcn_geometry geometry = rcn_geometry_make(3, 3, 3);
    const double angle = 25 * 3.14159265358979323846 / 180;
    geometry.direction[5] = sin(angle); /* the third axis leans towards the second */
    geometry.direction[8] = cos(angle);
    data[0][13] = data[1][13] = data[0][14] = 1;
    rcn_votes *votes = votes_of(ctx, data[0], 2, geometry, NULL);
    rcn_agreement *a = NULL;
    CHECK_STATUS(rcn_agreement_create(&a, ctx, votes), RCN_OK);
    CHECK_NEAR(a->rater[0].volume_ml, 2e-3 * cos(angle), 1e-15);
    CHECK_STATUS(rcn_agreement_measure_surfaces(a, ctx, votes), RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "not at right angles");
    CHECK(isnan(a->pair[1].hausdorff95_mm) && isnan(a->pair[0].mean_surface_mm));
    CHECK_STATUS(rcn_agreement_measure_surfaces(NULL, ctx, votes), RCN_EINVALID);
    CHECK_STATUS(rcn_agreement_measure_surfaces(a, ctx, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_agreement_measure_surfaces(a, NULL, votes), RCN_EINVALID);
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Three raters: where the other two differ there is no majority, and whoever marks most gains
 * nothing from it. Twelve voxels: A marks 0 to 9, B 0 to 3, C 2 to 5. */
static void others_split_evenly(void) {
    uint8_t data[3][12] = {{0}, {0}, {0}};
    for (int i = 0; i < 12; ++i) {
        data[0][i] = i < 10;
        data[1][i] = i < 4;
        data[2][i] = i >= 2 && i < 6;
    }
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = votes_of(ctx, data[0], 3, rcn_geometry_make(12, 1, 1), NULL);
    rcn_agreement *a = NULL;
    CHECK_STATUS(rcn_agreement_create(&a, ctx, votes), RCN_OK);
    /* A: B and C agree on 2, 3 (marked) and 6 to 11 (not); A marks 2, 3 and 6 to 9 of them. */
    CHECK(a->rater[0].others_split_voxels == 4);
    CHECK_NEAR(a->rater[0].dice_to_others, 2.0 * 2 / (6 + 2), 1e-15);
    CHECK_NEAR(a->rater[0].sensitivity_to_others, 1, 1e-15);
    CHECK_NEAR(a->rater[0].specificity_to_others, 2.0 / 6, 1e-15);
    /* B: A and C agree on 2 to 5 (marked) and 10, 11 (not). */
    CHECK(a->rater[1].others_split_voxels == 6);
    CHECK_NEAR(a->rater[1].dice_to_others, 2.0 * 2 / (2 + 4), 1e-15);
    CHECK_NEAR(a->rater[1].sensitivity_to_others, 0.5, 1e-15);
    CHECK_NEAR(a->rater[1].specificity_to_others, 1, 1e-15);
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(votes);

    /* The others never agree: nothing to be compared with. */
    memset(data[1], 0, sizeof data[1]);
    memset(data[2], 1, sizeof data[2]);
    votes = votes_of(ctx, data[0], 3, rcn_geometry_make(12, 1, 1), NULL);
    CHECK_STATUS(rcn_agreement_create(&a, ctx, votes), RCN_OK);
    CHECK(a->rater[0].others_split_voxels == 12 && isnan(a->rater[0].dice_to_others));
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Flood fill, the slow twin. */
static int64_t flood(uint8_t *open, const int64_t *size, int64_t start, int64_t *stack) {
    int64_t top = 0, voxels = 0;
    stack[top++] = start;
    open[start] = 0;
    while (top) {
        const int64_t i = stack[--top];
        const int64_t x = i % size[0], y = i / size[0] % size[1], z = i / (size[0] * size[1]);
        ++voxels;
        for (int d = 0; d < 27; ++d) {
            const int64_t nx = x + d % 3 - 1, ny = y + d / 3 % 3 - 1, nz = z + d / 9 - 1;
            if (nx < 0 || ny < 0 || nz < 0 || nx >= size[0] || ny >= size[1] || nz >= size[2])
                continue;
            const int64_t j = nx + size[0] * (ny + size[1] * nz);
            if (!open[j]) continue;
            open[j] = 0;
            stack[top++] = j;
        }
    }
    return voxels;
}

static int descending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void disputed_regions(void) {
    const int64_t sizes[3][3] = {{23, 17, 9}, {300, 11, 1}, {1, 1, 40}};
    rcn_context *ctx = make_context(2);
    for (int t = 0; t < 3; ++t) {
        const int64_t *size = sizes[t], n = size[0] * size[1] * size[2];
        uint8_t *data = malloc((size_t)(2 * n)), *open = malloc((size_t)n);
        int64_t *stack = malloc((size_t)n * sizeof *stack),
                *expected = malloc((size_t)n * sizeof *expected);
        uint32_t s = 11;
        for (int64_t i = 0; i < 2 * n; ++i) {
            s = 1664525u * s + 1013904223u;
            data[i] = s >> 24 > 235;
        }
        int64_t disputed = 0, found = 0;
        for (int64_t i = 0; i < n; ++i) disputed += open[i] = data[i] != data[n + i];
        for (int64_t i = 0; i < n; ++i)
            if (open[i]) expected[found++] = flood(open, size, i, stack);
        qsort(expected, (size_t)found, sizeof *expected, descending);

        rcn_geometry geometry = rcn_geometry_make(size[0], size[1], size[2]);
        geometry.origin[0] = 100;
        geometry.spacing[0] = 2;
        rcn_votes *votes = votes_of(ctx, data, 2, geometry, NULL);
        rcn_dispute *regions = NULL;
        int64_t count = -1, sum = 0;
        CHECK_STATUS(rcn_disputes_create(&regions, &count, ctx, votes), RCN_OK);
        CHECK(count == found && found > 3);
        for (int64_t k = 0; k < count; ++k) {
            const rcn_dispute *region = &regions[k];
            CHECK(region->voxels == expected[k]);
            CHECK_NEAR(region->volume_ml, (double)region->voxels * 0.002, 1e-12);
            CHECK_NEAR(region->centroid_world[0], 100 + 2 * region->centroid[0], 1e-9);
            const int64_t at = region->at[0] + size[0] * (region->at[1] + size[1] * region->at[2]);
            CHECK(data[at] != data[n + at]);
            CHECK(region->max_votes == 1 && region->marked_by);
            for (int a = 0; a < 3; ++a) {
                CHECK(region->centroid[a] >= (double)region->box.first[a]);
                CHECK(region->centroid[a] <= (double)(region->box.end[a] - 1));
                CHECK(region->at[a] >= region->box.first[a] && region->at[a] < region->box.end[a]);
            }
            sum += region->voxels;
        }
        CHECK(sum == disputed);
        rcn_disputes_destroy(regions, ctx);
        rcn_votes_destroy(votes);
        memcpy(data, data + n, (size_t)n); /* nothing disputed any more */
        votes = votes_of(ctx, data, 2, geometry, NULL);
        CHECK_STATUS(rcn_disputes_create(&regions, &count, ctx, votes), RCN_OK);
        CHECK(regions == NULL && count == 0);
        rcn_votes_destroy(votes);
        free(data);
        free(open);
        free(stack);
        free(expected);
    }
    rcn_context_destroy(ctx);
}

/* A region with a hand-made shape: where it is and who marks it. */
static void region_by_hand(void) {
    uint8_t data[3][5 * 5] = {{0}};
    for (int i = 0; i < 25; ++i) data[0][i] = data[1][i] = data[2][i] = i == 12;
    for (int r = 0; r < 2; ++r) data[r][13] = 1; /* (3, 2): two of three */
    data[0][14] = 1;                             /* (4, 2): one of three */
    data[2][18] = 1;                             /* (3, 3): another one */
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = votes_of(ctx, data[0], 3, rcn_geometry_make(5, 5, 1), NULL);
    rcn_dispute *regions = NULL;
    int64_t count = 0;
    CHECK_STATUS(rcn_disputes_create(&regions, &count, ctx, votes), RCN_OK);
    CHECK(count == 1 && regions[0].voxels == 3);
    CHECK(regions[0].marked_by == 7 && regions[0].max_votes == 2);
    CHECK_NEAR(regions[0].centroid[0], 10.0 / 3, 1e-15);
    CHECK(regions[0].at[0] == 3 && regions[0].at[1] == 2);
    float entropy[25];
    CHECK_STATUS(rcn_agreement_entropy_map(entropy, ctx, votes), RCN_OK);
    CHECK(entropy[12] == 0 && entropy[0] == 0);
    CHECK_NEAR(entropy[13], 0.918296, 1e-6);
    rcn_disputes_destroy(regions, ctx);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static rcn_status everything(rcn_context *ctx, void *payload) {
    static uint8_t golden[4][GOLDEN_VOXELS];
    rcn_mask masks[4];
    rcn_votes *votes = NULL;
    rcn_agreement *agreement = NULL;
    rcn_dispute *regions = NULL;
    int64_t count;
    (void)payload;
    make_golden(golden);
    for (int r = 0; r < 4; ++r) {
        const rcn_mask mask = {
            {golden[r], RCN_UINT8, 1, rcn_geometry_make(8, 8, 8)}, 0, NULL, 0, NULL};
        masks[r] = mask;
    }
    rcn_status status = rcn_votes_from_masks(&votes, ctx, masks, 4);
    if (status == RCN_OK) status = rcn_agreement_create(&agreement, ctx, votes);
    if (status == RCN_OK) status = rcn_agreement_measure_surfaces(agreement, ctx, votes);
    if (agreement) CHECK(!isnan(agreement->pair[1].hausdorff95_mm) == (status == RCN_OK));
    if (status == RCN_OK) status = rcn_disputes_create(&regions, &count, ctx, votes);
    rcn_disputes_destroy(regions, ctx);
    rcn_agreement_destroy(agreement, ctx);
    rcn_votes_destroy(votes);
    return status;
}

static void failing_allocations_and_cancel(void) {
    check_failing_allocations(everything, NULL);
    check_cancelling(everything, NULL, 11);
}

/* Votes of label maps data[raters][n] of 0 ... structures; 9 means no answer. */
static rcn_votes *label_votes(rcn_context *ctx, uint8_t *data, int raters, int structures,
                              int64_t n) {
    static const int64_t values[6] = {1, 2, 3, 4, 5, 6}, nine = 9;
    static const uint8_t numbers[6] = {1, 2, 3, 4, 5, 6};
    const rcn_geometry geometry = rcn_geometry_make(n, 1, 1);
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, raters, structures), RCN_OK);
    for (int r = 0; r < raters; ++r) {
        const rcn_label_map map = {
            {data + r * n, RCN_UINT8, 1, geometry}, 0, values, numbers, structures, &nine};
        CHECK_STATUS(rcn_votes_add_labels(votes, ctx, r, &map, 1, NULL), RCN_OK);
    }
    return votes;
}

/* Krippendorff's example of nominal data with missing answers (2011, part C), and that of Fleiss
 * (1971, as often printed): ten subjects, 14 raters, five categories. */
static void labels_of_the_literature(void) {
    uint8_t krippendorff[4][12] = {{1, 2, 3, 3, 2, 1, 4, 1, 2, 9, 9, 9},
                                   {1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 9, 3},
                                   {9, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 9},
                                   {1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 9}};
    static const int fleiss[10][5] = {
        {0, 0, 0, 0, 14}, {0, 2, 6, 4, 2}, {0, 0, 3, 5, 6}, {0, 3, 9, 2, 0}, {2, 2, 8, 1, 1},
        {7, 7, 0, 0, 0},  {3, 2, 6, 3, 0}, {2, 5, 3, 2, 2}, {6, 5, 2, 1, 0}, {0, 2, 2, 3, 7}};
    uint8_t given[14][10];
    rcn_label_agreement out;
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = label_votes(ctx, krippendorff[0], 4, 5, 12);
    CHECK_STATUS(rcn_agreement_labels(&out, NULL, ctx, votes), RCN_OK);
    CHECK_NEAR(out.whole.krippendorff_alpha, 0.743421, 1e-6);
    CHECK_NEAR(out.on_union.krippendorff_alpha, 0.743421, 1e-6); /* nobody says 0 */
    rcn_votes_destroy(votes);

    for (int subject = 0; subject < 10; ++subject)
        for (int c = 0, r = 0; c < 5; ++c)
            for (int i = 0; i < fleiss[subject][c]; ++i) given[r++][subject] = (uint8_t)c;
    votes = label_votes(ctx, given[0], 14, 4, 10);
    CHECK_STATUS(rcn_agreement_labels(&out, NULL, ctx, votes), RCN_OK);
    CHECK_NEAR(out.whole.fleiss_kappa, 0.2099307, 1e-7);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Eight voxels, two raters, labels 0 1 2: they agree on five. */
static void labels_by_hand(void) {
    uint8_t data[2][8] = {{0, 0, 0, 1, 1, 2, 2, 2}, {0, 0, 1, 1, 2, 2, 2, 0}};
    double kappa[4];
    rcn_label_agreement out;
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = label_votes(ctx, data[0], 2, 2, 8);
    CHECK_STATUS(rcn_agreement_labels(&out, kappa, ctx, votes), RCN_OK);
    CHECK_NEAR(kappa[1], (5.0 / 8 - (9.0 + 4 + 9) / 64) / (1 - (9.0 + 4 + 9) / 64), 1e-15);
    CHECK(kappa[1] == kappa[2]);
    CHECK_NEAR(kappa[0], 1, 1e-15);
    /* Of 16 answers 6, 4 and 6. */
    CHECK_NEAR(out.whole.fleiss_kappa, (5.0 / 8 - 88.0 / 256) / (1 - 88.0 / 256), 1e-15);
    CHECK_NEAR(out.whole.krippendorff_alpha, 1 - 6.0 / 16 / (168.0 / 240), 1e-15);
    const double chance = (6.0 * 10 + 4 * 12 + 6 * 10) / 256 / 2;
    CHECK_NEAR(out.whole.gwet_ac1, (5.0 / 8 - chance) / (1 - chance), 1e-15);
    CHECK_NEAR(out.whole.mean_entropy, 3.0 / 8, 1e-15);
    CHECK_NEAR(out.on_union.mean_entropy, 3.0 / 6, 1e-15);
    CHECK_STATUS(rcn_agreement_labels(NULL, NULL, ctx, votes), RCN_EINVALID);

    /* Each structure alone is a case like any other. */
    rcn_votes *alone = NULL, *plain = NULL;
    rcn_agreement *a = NULL, *b = NULL;
    CHECK_STATUS(rcn_votes_select(&alone, ctx, votes, 2), RCN_OK);
    for (int r = 0; r < 2; ++r)
        for (int i = 0; i < 8; ++i) data[r][i] = data[r][i] == 2;
    plain = votes_of(ctx, data[0], 2, rcn_geometry_make(8, 1, 1), NULL);
    CHECK_STATUS(rcn_agreement_create(&a, ctx, alone), RCN_OK);
    CHECK_STATUS(rcn_agreement_create(&b, ctx, plain), RCN_OK);
    CHECK_NEAR(a->mean_dice, 2.0 / 3, 1e-15);
    CHECK(a->mean_dice == b->mean_dice && a->pair[1].kappa == b->pair[1].kappa);
    CHECK_NEAR(a->whole.fleiss_kappa, b->whole.fleiss_kappa, 1e-15);
    CHECK(a->union_voxels == 4 && a->disputed_voxels == 2);
    CHECK_STATUS(rcn_agreement_labels(&out, NULL, ctx, alone), RCN_EINVALID);
    CHECK_ERROR(ctx, "no labels");
    rcn_agreement_destroy(a, ctx);
    rcn_agreement_destroy(b, ctx);
    rcn_votes_destroy(plain);
    rcn_votes_destroy(alone);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* One structure as labels has the figures of a mask; all the same label: not defined. */
static void labels_of_one_structure(void) {
    const int64_t nine = 9;
    static uint8_t data[5][300];
    uint32_t s = 3;
    for (int r = 0; r < 5; ++r)
        for (int i = 0; i < 300; ++i) {
            s = 1664525u * s + 1013904223u;
            data[r][i] = s >> 24 < 20 ? 9 : s >> 24 < 120;
        }
    rcn_context *ctx = make_context(1);
    rcn_votes *labels = label_votes(ctx, data[0], 5, 1, 300);
    rcn_votes *plain = votes_of(ctx, data[0], 5, rcn_geometry_make(300, 1, 1), &nine);
    rcn_label_agreement out;
    rcn_agreement *a = NULL;
    double kappa[25];
    CHECK_STATUS(rcn_agreement_labels(&out, kappa, ctx, labels), RCN_OK);
    CHECK_STATUS(rcn_agreement_create(&a, ctx, plain), RCN_OK);
    CHECK(!memcmp(&out.whole, &a->whole, sizeof out.whole));
    CHECK(!memcmp(&out.on_union, &a->on_union, sizeof out.on_union));
    for (int i = 0; i < 25; ++i) CHECK_NEAR(kappa[i], a->pair[i].kappa, 1e-14);
    rcn_agreement_destroy(a, ctx);
    rcn_votes_destroy(plain);
    rcn_votes_destroy(labels);

    memset(data, 2, sizeof data);
    labels = label_votes(ctx, data[0], 5, 3, 300);
    CHECK_STATUS(rcn_agreement_labels(&out, kappa, ctx, labels), RCN_OK);
    CHECK(isnan(out.whole.fleiss_kappa) && isnan(out.whole.krippendorff_alpha) && isnan(kappa[1]));
    CHECK(out.whole.mean_entropy == 0 && out.whole.gwet_ac1 == 1);
    rcn_votes_destroy(labels);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(by_hand);
    RUN(missing_answers);
    RUN(corners);
    RUN(surfaces);
    RUN(sheared);
    RUN(others_split_evenly);
    RUN(disputed_regions);
    RUN(region_by_hand);
    RUN(labels_of_the_literature);
    RUN(labels_by_hand);
    RUN(labels_of_one_structure);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
