// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_fusion.h"

#include "rcn_test.h"

static rcn_votes *votes_of(rcn_context *ctx, void *const *data, int raters, int64_t x, int64_t y,
                           int64_t z) {
    rcn_mask masks[RCN_MAX_RATERS];
    rcn_votes *votes = NULL;
    for (int r = 0; r < raters; ++r) {
        const rcn_mask mask = {
            {data[r], RCN_UINT8, 1, rcn_geometry_make(x, y, z)}, 0, NULL, 0, NULL};
        masks[r] = mask;
    }
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, raters), RCN_OK);
    return votes;
}

static rcn_votes *golden_votes(rcn_context *ctx, int raters) {
    static uint8_t golden[4][GOLDEN_VOXELS];
    void *data[4] = {golden[0], golden[1], golden[2], golden[3]};
    make_golden(golden);
    return votes_of(ctx, data, raters, 8, 8, 8);
}

static rcn_fusion_options options_for(rcn_method method) {
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    options.method = method;
    return options;
}

static double sum_of(const float *map, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += map[i];
    return sum;
}

static int64_t at_least_half(const float *map, int64_t count) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; ++i) n += map[i] >= 0.5f;
    return n;
}

static void staple_golden(void) {
    static const double p3[] = {.67681031, .83452788, .5334457},
                        q3[] = {.95469599, .91398093, .87840147};
    static const double w3[] = {.00736153, .246577, .284389, .946056,
                                .0577179,  .729958, .766485, .993144};
    static const double p4[] = {.69187874, .78803647, .54880051, .79697658};
    static const double q4[] = {.95942342, .90625349, .88262962, .83030059};
    rcn_context *ctx = make_context(2);
    float map[GOLDEN_VOXELS], table[8];
    rcn_fusion_result result;
    const rcn_fusion_options options = options_for(RCN_STAPLE);

    rcn_votes *votes = golden_votes(ctx, 3);
    CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
    CHECK_NEAR(result.prior, .1855468750, 1e-10);
    for (int r = 0; r < 3; ++r) {
        CHECK_NEAR(result.sensitivity[r], p3[r], 1e-7);
        CHECK_NEAR(result.specificity[r], q3[r], 1e-7);
    }
    CHECK_NEAR(sum_of(map, GOLDEN_VOXELS), 86.78352704, 2e-5);
    CHECK(at_least_half(map, GOLDEN_VOXELS) == 69);
    CHECK(result.converged && result.inverted == 0 && result.region_voxels == GOLDEN_VOXELS);
    CHECK_STATUS(rcn_fuse_patterns(table, NULL, ctx, votes, &options), RCN_OK);
    for (int i = 0; i < 8; ++i) CHECK_NEAR(table[i], w3[i], 6e-7);
    rcn_votes_destroy(votes);

    votes = golden_votes(ctx, 4);
    CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
    CHECK_NEAR(result.prior, .2084960938, 1e-10);
    for (int r = 0; r < 4; ++r) {
        CHECK_NEAR(result.sensitivity[r], p4[r], 1e-7);
        CHECK_NEAR(result.specificity[r], q4[r], 1e-7);
    }
    CHECK_NEAR(sum_of(map, GOLDEN_VOXELS), 87.86211150, 2e-5);
    CHECK(at_least_half(map, GOLDEN_VOXELS) == 80);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* The same raters in a larger image: more background changes the estimate, unless the region is the
 * box around the marks. */
static void staple_region(void) {
    static uint8_t golden[4][GOLDEN_VOXELS], padded[3][24 * 24 * 24];
    make_golden(golden);
    memset(padded, 0, sizeof padded);
    for (int r = 0; r < 3; ++r)
        for (int i = 0; i < GOLDEN_VOXELS; ++i)
            padded[r][i % 8 + 8 + 24 * (i / 8 % 8 + 8 + 24 * (i / 64 + 8))] = golden[r][i];
    void *data[3] = {padded[0], padded[1], padded[2]};
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = votes_of(ctx, data, 3, 24, 24, 24), *cropped = golden_votes(ctx, 3);
    float table[8], expected[8];
    rcn_fusion_result result;
    rcn_fusion_options options = options_for(RCN_STAPLE);
    CHECK_STATUS(rcn_fuse_patterns(table, &result, ctx, votes, &options), RCN_OK);
    CHECK_NEAR(result.sensitivity[0], .67436, 5e-6);
    CHECK_NEAR(result.sensitivity[1], .83905, 5e-6);
    CHECK_NEAR(result.sensitivity[2], .56575, 5e-6);
    CHECK_NEAR(table[5], .9897, 5e-5);
    options.staple_margin = 0;
    CHECK_STATUS(rcn_fuse_patterns(table, &result, ctx, votes, &options), RCN_OK);
    CHECK_STATUS(rcn_fuse_patterns(expected, NULL, ctx, cropped, &options), RCN_OK);
    CHECK(result.region_voxels == GOLDEN_VOXELS);
    CHECK(!memcmp(table, expected, sizeof table));
    options.staple_margin = 3;
    CHECK_STATUS(rcn_fuse_patterns(table, &result, ctx, votes, &options), RCN_OK);
    CHECK(result.region_voxels == 14 * 14 * 14);
    rcn_votes_destroy(votes);
    rcn_votes_destroy(cropped);
    rcn_context_destroy(ctx);
}

static void staple_corners(void) {
    uint8_t empty[64] = {0}, full[64], some[64], inverse[64];
    memset(full, 1, sizeof full);
    for (int i = 0; i < 64; ++i) some[i] = i % 3 == 0, inverse[i] = !some[i];
    rcn_context *ctx = make_context(1);
    float map[64];
    rcn_fusion_result result;
    rcn_fusion_options options = options_for(RCN_STAPLE);
    {
        void *data[3] = {empty, empty, empty};
        rcn_votes *votes = votes_of(ctx, data, 3, 4, 4, 4);
        CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
        for (int i = 0; i < 64; ++i) CHECK(map[i] == 0);
        CHECK(isnan(result.sensitivity[0]) && result.specificity[0] == 1 && result.prior == 0);
        rcn_votes_destroy(votes);
    }
    {
        void *data[3] = {full, full, full};
        rcn_votes *votes = votes_of(ctx, data, 3, 4, 4, 4);
        CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
        for (int i = 0; i < 64; ++i) CHECK(map[i] == 1);
        CHECK(result.sensitivity[0] == 1 && isnan(result.specificity[0]));
        rcn_votes_destroy(votes);
    }
    {
        void *data[3] = {some, some, some};
        rcn_votes *votes = votes_of(ctx, data, 3, 4, 4, 4);
        CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
        for (int i = 0; i < 64; ++i) CHECK(map[i] == some[i]);
        rcn_votes_destroy(votes);
    }
    { /* two against one who marks the opposite */
        void *data[3] = {some, some, inverse};
        rcn_votes *votes = votes_of(ctx, data, 3, 4, 4, 4);
        CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
        CHECK(result.inverted == 4);
        for (int i = 0; i < 64; ++i) CHECK(isfinite(map[i]) && (map[i] >= 0.5f) == some[i]);
        options.staple_output = RCN_STAPLE_MASK;
        CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
        for (int i = 0; i < 64; ++i) CHECK(map[i] == some[i]);
        rcn_votes_destroy(votes);
    }
    rcn_context_destroy(ctx);
}

/* The direct form of the definition, voxel by voxel, with raters who leave voxels out. */
static void staple_naive_twin(void) {
    enum { N = 300, K = 5 };
    const int64_t unanswered = 2;
    uint8_t data[K][N];
    rcn_mask masks[K];
    uint32_t s = 7;
    for (int r = 0; r < K; ++r) {
        for (int i = 0; i < N; ++i) {
            s = 1664525u * s + 1013904223u;
            const int u = s >> 24;
            data[r][i] = i % 20 < 8 ? u > 40 + 20 * r : u > 230;
            if (r % 2 && i > 200) data[r][i] = 2;
        }
        const rcn_mask mask = {
            {data[r], RCN_UINT8, 1, rcn_geometry_make(N, 1, 1)}, 0, NULL, 0, &unanswered};
        masks[r] = mask;
    }
    double w[N], p[K], q[K], g = 0;
    for (int i = 0; i < N; ++i) {
        int answered = 0, marked = 0;
        for (int r = 0; r < K; ++r) answered += data[r][i] != 2, marked += data[r][i] == 1;
        w[i] = (double)marked / answered;
        g += w[i] / N;
    }
    for (int iteration = 0; iteration < 2000; ++iteration) {
        for (int r = 0; r < K; ++r) {
            double a = 0, b = 0, c = 0, d = 0;
            for (int i = 0; i < N; ++i) {
                if (data[r][i] == 2) continue;
                a += w[i] * data[r][i];
                b += w[i];
                c += (1 - w[i]) * !data[r][i];
                d += 1 - w[i];
            }
            p[r] = a / b;
            q[r] = c / d;
        }
        for (int i = 0; i < N; ++i) {
            double a = g, b = 1 - g;
            for (int r = 0; r < K; ++r) {
                if (data[r][i] == 2) continue;
                a *= data[r][i] ? p[r] : 1 - p[r];
                b *= data[r][i] ? 1 - q[r] : q[r];
            }
            w[i] = a / (a + b);
        }
    }
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = NULL;
    float map[N];
    rcn_fusion_result result;
    rcn_fusion_options options = options_for(RCN_STAPLE);
    options.staple_tolerance = 1e-12;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, K), RCN_OK);
    CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
    for (int r = 0; r < K; ++r) {
        CHECK_NEAR(result.sensitivity[r], p[r], 1e-9);
        CHECK_NEAR(result.specificity[r], q[r], 1e-9);
    }
    for (int i = 0; i < N; ++i) CHECK_NEAR(map[i], w[i], 1e-7);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void levels_median_soft(void) {
    rcn_context *ctx = make_context(2);
    float map[GOLDEN_VOXELS], soft[GOLDEN_VOXELS];
    for (int k = 3; k <= 4; ++k) {
        rcn_votes *votes = golden_votes(ctx, k);
        rcn_fusion_options options = options_for(RCN_ORC);
        CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_OK);
        options.method = RCN_SOFT;
        CHECK_STATUS(rcn_fuse(soft, NULL, ctx, votes, &options), RCN_OK);
        for (int i = 0; i < GOLDEN_VOXELS; ++i) CHECK(soft[i] == (float)((double)map[i] / k));
        options.method = RCN_MEDIAN;
        CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_OK);
        CHECK(sum_of(map, GOLDEN_VOXELS) == (k == 3 ? 69 : 99));
        options.tie = RCN_TIE_BACKGROUND;
        CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_OK);
        CHECK(sum_of(map, GOLDEN_VOXELS) == (k == 3 ? 69 : 60));
        rcn_votes_destroy(votes);
    }
    rcn_context_destroy(ctx);
}

/* Each rater is drawn about equally often; a seed always draws the same one. */
static void random_rater(void) {
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = golden_votes(ctx, 4);
    float table[16];
    int drawn[4] = {0};
    rcn_fusion_options options = options_for(RCN_RANDOM);
    for (int seed = 0; seed < 4000; ++seed) {
        rcn_fusion_result result, again;
        options.seed = (uint64_t)seed;
        CHECK_STATUS(rcn_fuse_patterns(table, &result, ctx, votes, &options), RCN_OK);
        CHECK_STATUS(rcn_fuse_patterns(table, &again, ctx, votes, &options), RCN_OK);
        CHECK(result.kept == again.kept);
        int r = 0;
        while (!(result.kept >> r & 1)) ++r;
        ++drawn[r];
        for (int p = 0; p < 16; ++p) CHECK(table[p] == (p >> r & 1));
    }
    for (int r = 0; r < 4; ++r) CHECK(drawn[r] > 880 && drawn[r] < 1120);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Four raters agree up to noise, one marks something else: SIMPLE drops that one, the majority of
 * the rest is the result. */
static void simple_drops_the_outlier(void) {
    enum { N = 1000 };
    uint8_t data[5][N] = {{0}};
    void *pointers[5];
    for (int r = 0; r < 5; ++r) {
        pointers[r] = data[r];
        for (int i = 0; i < N; ++i)
            data[r][i] = r == 4 ? i >= 600 && i < 800 : i >= 100 + r && i < 400 + 2 * r;
    }
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = votes_of(ctx, pointers, 5, N, 1, 1);
    float map[N];
    rcn_fusion_result result;
    rcn_fusion_options options = options_for(RCN_SIMPLE);
    CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
    CHECK(!(result.kept >> 4 & 1));
    CHECK(rcn_popcount(result.kept) >= 3);
    CHECK(result.converged);
    CHECK_NEAR(result.weight[4], 0, 0);
    for (int i = 0; i < N; ++i) {
        if (i >= 104 && i < 400) CHECK(map[i] == 1);
        if (i < 100 || i >= 410) CHECK(map[i] == 0);
    }
    rcn_votes_destroy(votes);

    /* identical raters: nobody is dropped */
    void *same[4] = {data[0], data[0], data[0], data[0]};
    votes = votes_of(ctx, same, 4, N, 1, 1);
    CHECK_STATUS(rcn_fuse(map, &result, ctx, votes, &options), RCN_OK);
    CHECK(result.kept == 15 && result.iterations == 1);
    for (int i = 0; i < N; ++i) CHECK(map[i] == data[0][i]);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static float m_at(const float *m, const int64_t *size, int64_t x, int64_t y, int64_t z) {
    x = x < 0 ? 0 : x >= size[0] ? size[0] - 1 : x;
    y = y < 0 ? 0 : y >= size[1] ? size[1] - 1 : y;
    z = z < 0 ? 0 : z >= size[2] ? size[2] - 1 : z;
    return m[x + size[0] * (y + size[1] * z)];
}

/* SVLS and the Gaussian against their definitions, as one full sum over the neighborhood. */
static void neighborhoods(void) {
    static const int64_t sizes[][3] = {{8, 8, 8}, {37, 19, 1}, {1, 5, 4}, {513, 3, 1}, {6, 1, 9}};
    rcn_context *ctx = make_context(3);
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; ++t) {
        const int64_t *size = sizes[t], n = size[0] * size[1] * size[2];
        /* One voxel thin along any axis is 2-D. */
        const int rx = size[0] > 1, ry = size[1] > 1, rz = size[2] > 1, planes = rx + ry + rz == 3;
        uint8_t *data = malloc((size_t)(3 * n));
        float *m = malloc((size_t)n * sizeof *m), *map = malloc((size_t)n * sizeof *map);
        void *pointers[3] = {data, data + n, data + 2 * n};
        uint32_t s = 5;
        for (int64_t i = 0; i < 3 * n; ++i) {
            s = 1664525u * s + 1013904223u;
            data[i] = s >> 30 == 0;
        }
        rcn_votes *votes = votes_of(ctx, pointers, 3, size[0], size[1], size[2]);
        rcn_fusion_options options = options_for(RCN_SOFT);
        CHECK_STATUS(rcn_fuse(m, NULL, ctx, votes, &options), RCN_OK);
        options.method = RCN_SVLS;
        CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_OK);
        static const double w3[] = {.5, .03082347, .01869538, .01133932},
                            w2[] = {.5, .07780742, .04719258};
        for (int64_t z = 0; z < size[2]; ++z)
            for (int64_t y = 0; y < size[1]; ++y)
                for (int64_t x = 0; x < size[0]; ++x) {
                    double sum = 0;
                    for (int dz = -rz; dz <= rz; ++dz)
                        for (int dy = -ry; dy <= ry; ++dy)
                            for (int dx = -rx; dx <= rx; ++dx)
                                sum += (planes ? w3 : w2)[(dx != 0) + (dy != 0) + (dz != 0)] *
                                       m_at(m, size, x + dx, y + dy, z + dz);
                    CHECK_NEAR(map[x + size[0] * (y + size[1] * z)], sum, 2e-7);
                }
        for (double sigma = 0.5; sigma < 2.5; sigma *= 2) {
            options.method = RCN_SOFT_GAUSSIAN;
            options.sigma = sigma;
            CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_OK);
            const int radius = (int)(4 * sigma + 0.5);
            double kernel[40], total = 0;
            for (int k = -radius; k <= radius; ++k) total += exp(-0.5 * k * k / (sigma * sigma));
            for (int k = 0; k <= radius; ++k)
                kernel[k] = exp(-0.5 * k * k / (sigma * sigma)) / total;
            /* a sample of voxels: the full sum is slow */
            for (int64_t i = 0; i < n; i += 1 + n / 40) {
                const int64_t x = i % size[0], y = i / size[0] % size[1],
                              z = i / (size[0] * size[1]);
                double sum = 0;
                for (int dz = -radius * rz; dz <= radius * rz; ++dz)
                    for (int dy = -radius * ry; dy <= radius * ry; ++dy)
                        for (int dx = -radius * rx; dx <= radius * rx; ++dx)
                            sum += (rx ? kernel[abs(dx)] : 1) * (ry ? kernel[abs(dy)] : 1) *
                                   (rz ? kernel[abs(dz)] : 1) *
                                   m_at(m, size, x + dx, y + dy, z + dz);
                CHECK_NEAR(map[i], sum, 1e-6);
            }
        }
        rcn_votes_destroy(votes);
        free(data);
        free(m);
        free(map);
    }
    rcn_context_destroy(ctx);
}

/* Voxels that nobody answered are no background to their neighbors: beside a gap all ones stay
 * ones, and elsewhere the weighted mean is that of the answers alone. */
static void gaps_are_no_background(void) {
    enum { X = 12, Y = 7, Z = 5, N = X * Y * Z };
    static const double w3[] = {.5, .03082347, .01869538, .01133932};
    const int64_t none = 9, size[3] = {X, Y, Z};
    uint8_t data[2][N];
    float map[N], m[N], answered[N];
    rcn_context *ctx = make_context(2);
    for (int all_marked = 0; all_marked < 2; ++all_marked) {
        rcn_mask masks[2];
        rcn_votes *votes = NULL;
        uint32_t s = 17;
        for (int i = 0; i < N; ++i) {
            const int gap = i % X >= 5 && i % X < 8;
            for (int r = 0; r < 2; ++r) {
                s = 1664525u * s + 1013904223u;
                /* the first rater also leaves out a voxel that the second answers */
                data[r][i] = gap || (r == 0 && i % X == 2) ? 9 : all_marked || s >> 31;
            }
            answered[i] = !gap;
            m[i] = gap ? 0 : i % X == 2 ? data[1][i] : 0.5f * (float)(data[0][i] + data[1][i]);
        }
        for (int r = 0; r < 2; ++r) {
            const rcn_mask mask = {
                {data[r], RCN_UINT8, 1, rcn_geometry_make(X, Y, Z)}, 0, NULL, 0, &none};
            masks[r] = mask;
        }
        CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 2), RCN_OK);
        for (int method = 0; method < 2; ++method) {
            const rcn_fusion_options options = options_for(method ? RCN_SVLS : RCN_SOFT_GAUSSIAN);
            CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_OK);
            for (int i = 0; i < N; ++i) {
                const int64_t x = i % X, y = i / X % Y, z = i / (X * Y), reach = method ? 1 : 4;
                double sum = 0, weight = 0;
                for (int64_t dz = -reach; dz <= reach; ++dz)
                    for (int64_t dy = -reach; dy <= reach; ++dy)
                        for (int64_t dx = -reach; dx <= reach; ++dx) {
                            const double off = (double)(dx * dx + dy * dy + dz * dz);
                            const double w =
                                method ? w3[(dx != 0) + (dy != 0) + (dz != 0)] : exp(-0.5 * off);
                            weight += w * m_at(answered, size, x + dx, y + dy, z + dz);
                            sum += w * m_at(m, size, x + dx, y + dy, z + dz);
                        }
                CHECK_NEAR(map[i], answered[i] > 0 ? sum / weight : 0, 1e-6);
                if (all_marked && answered[i] > 0) CHECK(map[i] > 0.999999f && map[i] <= 1);
            }
        }
        rcn_votes_destroy(votes);
    }
    rcn_context_destroy(ctx);
}

/* All methods: the same bits for 1, 2 and 5 threads, dense and refined codes, raters permuted. */
static void threads_and_permutation(void) {
    enum { X = 61, Y = 47, Z = 9, N = X * Y * Z, K = 18 };
    uint8_t *data = malloc(K * N);
    float *map[3];
    for (int t = 0; t < 3; ++t) map[t] = malloc(N * sizeof(float));
    uint32_t s = 3;
    for (int r = 0; r < K; ++r)
        for (int i = 0; i < N; ++i) {
            s = 1664525u * s + 1013904223u;
            data[r * N + i] = (i % X > 20 + r && i % X < 45) ? s >> 24 > 30 : s >> 24 > 245;
        }
    static const int threads[3] = {1, 2, 5}, raters[2] = {6, K};
    for (int k = 0; k < 2; ++k)
        for (int method = 0; method < 8; ++method) {
            const rcn_fusion_options options = options_for((rcn_method)method);
            rcn_fusion_result result[3];
            for (int t = 0; t < 3; ++t) {
                void *pointers[K];
                for (int r = 0; r < raters[k]; ++r) pointers[r] = data + r * N;
                rcn_context *ctx = make_context(threads[t]);
                rcn_votes *votes = votes_of(ctx, pointers, raters[k], X, Y, Z);
                CHECK_STATUS(rcn_fuse(map[t], &result[t], ctx, votes, &options), RCN_OK);
                rcn_votes_destroy(votes);
                rcn_context_destroy(ctx);
            }
            for (int t = 1; t < 3; ++t) {
                CHECK(!memcmp(map[0], map[t], N * sizeof(float)));
                CHECK(!memcmp(&result[0].sensitivity, &result[t].sensitivity,
                              sizeof result[0].sensitivity));
            }
            for (int i = 0; i < N; ++i) CHECK(isfinite(map[0][i]));
            if (method == RCN_RANDOM) continue;
            void *reversed[K];
            for (int r = 0; r < raters[k]; ++r) reversed[r] = data + (raters[k] - 1 - r) * N;
            rcn_context *ctx = make_context(2);
            rcn_votes *votes = votes_of(ctx, reversed, raters[k], X, Y, Z);
            CHECK_STATUS(rcn_fuse(map[1], NULL, ctx, votes, &options), RCN_OK);
            double largest = 0;
            for (int i = 0; i < N; ++i) largest = fmax(largest, fabs(map[0][i] - map[1][i]));
            CHECK(largest < 1e-6);
            rcn_votes_destroy(votes);
            rcn_context_destroy(ctx);
        }
    free(data);
    for (int t = 0; t < 3; ++t) free(map[t]);
}

/* From masks at once: the same map and figures, and for pattern methods no memory to speak of. */
static void from_masks(void) {
    enum { X = 200, Y = 60, Z = 10, N = X * Y * Z };
    static const int raters_to_try[3] = {3, 12, 17};
    uint8_t *data = malloc(17 * N);
    float *direct = malloc(N * sizeof *direct), *packed = malloc(N * sizeof *packed);
    for (int i = 0; i < 17 * N; ++i) data[i] = (uint8_t)(i * 2654435761u >> 24) % 7 == 0;
    for (int k = 0; k < 3; ++k)
        for (int method = 0; method < 8; ++method) {
            rcn_context *ctx = make_context(2);
            rcn_mask masks[17];
            void *pointers[17];
            rcn_fusion_result a, b;
            memset(&a, 0, sizeof a);
            memset(&b, 0, sizeof b);
            for (int r = 0; r < raters_to_try[k]; ++r) {
                pointers[r] = data + r * N;
                const rcn_mask mask = {
                    {pointers[r], RCN_UINT8, 1, rcn_geometry_make(X, Y, Z)}, 0, NULL, 0, NULL};
                masks[r] = mask;
            }
            const rcn_fusion_options options = options_for((rcn_method)method);
            CHECK_STATUS(rcn_fuse_masks(direct, &a, ctx, masks, raters_to_try[k], &options),
                         RCN_OK);
            if (raters_to_try[k] == 3 && method != RCN_SOFT_GAUSSIAN && method != RCN_SVLS)
                CHECK(rcn_context_peak_bytes(ctx) < 20000);
            rcn_votes *votes = votes_of(ctx, pointers, raters_to_try[k], X, Y, Z);
            CHECK_STATUS(rcn_fuse(packed, &b, ctx, votes, &options), RCN_OK);
            CHECK(!memcmp(direct, packed, N * sizeof *direct));
            CHECK(!memcmp(&a, &b, sizeof a));
            rcn_votes_destroy(votes);
            masks[1].image.data = NULL; /* a missing rater */
            CHECK_STATUS(rcn_fuse_masks(direct, &a, ctx, masks, raters_to_try[k], &options),
                         RCN_OK);
            masks[1] = masks[0];
            masks[1].image.geometry.size[0] = X / 2;
            CHECK_STATUS(rcn_fuse_masks(direct, &a, ctx, masks, raters_to_try[k], &options),
                         RCN_EGEOMETRY);
            rcn_context_destroy(ctx);
        }
    free(data);
    free(direct);
    free(packed);
}

static void bad_options(void) {
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = golden_votes(ctx, 3), *nobody = NULL;
    float map[GOLDEN_VOXELS];
    for (int i = 0; i < GOLDEN_VOXELS; ++i) map[i] = 77;
    rcn_fusion_options options = options_for((rcn_method)99);
    CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_EINVALID);
    options = options_for(RCN_SOFT_GAUSSIAN);
    options.sigma = 0;
    CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "sigma");
    options.sigma = NAN;
    CHECK_STATUS(rcn_fuse(map, NULL, ctx, votes, &options), RCN_EINVALID);
    options = options_for(RCN_SVLS);
    CHECK_STATUS(rcn_fuse_patterns(map, NULL, ctx, votes, &options), RCN_EINVALID);
    const rcn_geometry geometry = rcn_geometry_make(8, 8, 8);
    CHECK_STATUS(rcn_votes_create(&nobody, ctx, &geometry, 3), RCN_OK);
    CHECK_STATUS(rcn_fuse(map, NULL, ctx, nobody, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "No rater answered");
    for (int i = 0; i < GOLDEN_VOXELS; ++i) CHECK(map[i] == 77);
    CHECK(!strcmp(rcn_method_name(RCN_SOFT_GAUSSIAN), "soft-gaussian"));
    CHECK(!rcn_method_name((rcn_method)8) && !rcn_method_name((rcn_method)-1));
    rcn_votes_destroy(votes);
    rcn_votes_destroy(nobody);
    rcn_context_destroy(ctx);
}

static rcn_status fuse_all(rcn_context *ctx, void *payload) {
    static uint8_t golden[4][GOLDEN_VOXELS];
    rcn_mask masks[4];
    rcn_votes *votes = NULL;
    float map[GOLDEN_VOXELS];
    make_golden(golden);
    for (int r = 0; r < 4; ++r) {
        const rcn_mask mask = {
            {golden[r], RCN_UINT8, 1, rcn_geometry_make(8, 8, 8)}, 0, NULL, 0, NULL};
        masks[r] = mask;
    }
    rcn_status status = rcn_votes_from_masks(&votes, ctx, masks, 4);
    for (int m = 0; status == RCN_OK && m < 8; ++m) {
        rcn_fusion_options options = options_for((rcn_method)m);
        options.staple_margin = 0;
        status = rcn_fuse(map, NULL, ctx, votes, &options);
        options.staple_margin = -1;
        if (status == RCN_OK) status = rcn_fuse_masks(map, NULL, ctx, masks, 4, &options);
    }
    rcn_votes_destroy(votes);
    (void)payload;
    return status;
}

static void failing_allocations_and_cancel(void) {
    check_failing_allocations(fuse_all, NULL);
    check_cancelling(fuse_all, NULL, 21);
}

int main(void) {
    RUN(staple_golden);
    RUN(staple_region);
    RUN(staple_corners);
    RUN(staple_naive_twin);
    RUN(levels_median_soft);
    RUN(random_rater);
    RUN(simple_drops_the_outlier);
    RUN(neighborhoods);
    RUN(gaps_are_no_background);
    RUN(threads_and_permutation);
    RUN(from_masks);
    RUN(bad_options);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
