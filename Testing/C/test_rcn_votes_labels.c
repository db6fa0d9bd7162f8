// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_fusion.h"
#include "rcn/rcn_orient.h"
#include "rcn_votes_private.h"

#include "rcn_test.h"

static const int64_t one_to_40[40] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                      15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                      29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40};
static const uint8_t same_number[40] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                        15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                        29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40};

/* The values 1 ... structures mean structures 1 ... C. */
static rcn_label_map map_of(void *data, rcn_type type, int64_t x, int64_t y, int64_t z,
                            int structures) {
    const rcn_label_map map = {
        {data, type, 1, rcn_geometry_make(x, y, z)}, 0, one_to_40, same_number, structures, NULL};
    return map;
}

static uint32_t code_at(const rcn_votes *votes, int64_t i) {
    uint32_t code;
    rcn__votes_read(&code, votes, i, 1);
    return code;
}

static int label_at(const rcn_votes *votes, int64_t voxel, int rater) {
    return rcn_votes_labels(
        votes)[code_at(votes, voxel) * (uint32_t)rcn_votes_raters(votes) + (uint32_t)rater];
}

static void by_hand(void) {
    uint8_t a[6] = {0, 1, 2, 2, 9, 0}, b[6] = {0, 2, 2, 1, 2, 7};
    const int64_t unanswered = 9;
    int64_t unnamed = -1;
    rcn_context *ctx = make_context(2);
    rcn_label_map maps[2] = {map_of(a, RCN_UINT8, 6, 1, 1, 2), map_of(b, RCN_UINT8, 6, 1, 1, 2)};
    maps[0].unanswered = &unanswered;
    rcn_votes *votes = NULL, *second = NULL;
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &maps[0].image.geometry, 3, 2), RCN_OK);
    CHECK(rcn_votes_structures(votes) == 2 && rcn_votes_raters(votes) == 3);
    CHECK(rcn_votes_pattern_count(votes) == 1 && label_at(votes, 3, 2) == RCN_NO_ANSWER);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &maps[0], 1, &unnamed), RCN_OK);
    CHECK(unnamed == 0);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 1, &maps[1], 1, &unnamed), RCN_OK);
    CHECK(unnamed == 1); /* the 7 */
    CHECK(rcn_votes_present(votes) == 3 && votes->unanswered);

    /* (0,0) twice, (1,2), (2,1), (2,2), (no answer,2): in this order. */
    static const uint8_t rows[5][3] = {
        {0, 0, 255}, {1, 2, 255}, {2, 1, 255}, {2, 2, 255}, {255, 2, 255}};
    static const rcn_pattern patterns[5] = {{0, 3, 2}, {3, 3, 1}, {3, 3, 1}, {3, 3, 1}, {2, 2, 1}};
    static const uint8_t codes[6] = {0, 1, 3, 2, 4, 0};
    CHECK(rcn_votes_pattern_count(votes) == 5 && rcn_votes_code_bytes(votes) == 1);
    CHECK(!memcmp(rcn_votes_labels(votes), rows, sizeof rows));
    CHECK(!memcmp(rcn_votes_patterns(votes), patterns, sizeof patterns));
    CHECK(!memcmp(rcn_votes_codes(votes), codes, sizeof codes));

    CHECK_STATUS(rcn_votes_select(&second, ctx, votes, 2), RCN_OK);
    static const rcn_pattern alone[5] = {{0, 3, 2}, {2, 3, 1}, {1, 3, 1}, {3, 3, 1}, {2, 2, 1}};
    CHECK(!memcmp(rcn_votes_patterns(second), alone, sizeof alone));
    CHECK(rcn_votes_structures(second) == 1 && !rcn_votes_labels(second));
    CHECK(rcn_votes_codes(second) == rcn_votes_codes(votes));
    CHECK(rcn_votes_marked(second, 0) == 2 && rcn_votes_marked(second, 1) == 3);
    CHECK(rcn_votes_marked(votes, 0) == 3 && rcn_votes_marked(votes, 1) == 4);
    rcn_votes_destroy(second);
    CHECK(code_at(votes, 4) == 4); /* the source keeps its codes */
    rcn_votes_destroy(votes);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* Two values mean one structure; any non-zero value does; a mask per structure. */
static void ways_to_say_it(void) {
    int16_t all[6] = {0, -5, 300, 7, 7, 0};
    float first[6] = {0, 1, 1, 0, 0, 0}, second[6] = {0, 0, 0, 8, -8, 0};
    const int64_t values[3] = {-5, 300, 7};
    const uint8_t structures[3] = {1, 1, 2}, two = 2, one = 1;
    rcn_context *ctx = make_context(1);
    rcn_label_map whole = map_of(all, RCN_INT16, 3, 2, 1, 3);
    whole.values = values;
    whole.structures = structures;
    rcn_label_map parts[2] = {map_of(first, RCN_FLOAT32, 3, 2, 1, 0),
                              map_of(second, RCN_FLOAT32, 3, 2, 1, 0)};
    parts[0].values = parts[1].values = NULL;
    parts[0].structures = &one;
    parts[1].structures = &two;
    rcn_votes *votes = NULL;
    int64_t unnamed = 5;
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &whole.image.geometry, 2, 2), RCN_OK);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &whole, 1, &unnamed), RCN_OK);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 1, parts, 2, NULL), RCN_OK);
    CHECK(unnamed == 0 && rcn_votes_pattern_count(votes) == 3);
    static const int expected[6] = {0, 1, 1, 2, 2, 0};
    for (int i = 0; i < 6; ++i)
        for (int r = 0; r < 2; ++r) CHECK(label_at(votes, i, r) == expected[i]);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* One structure as labels, selected, is the plain votes to every one-structure method. */
static void one_structure_as_labels(void) {
    static uint8_t raters[4][GOLDEN_VOXELS];
    rcn_context *ctx = make_context(2);
    rcn_votes *plain = NULL, *labels = NULL, *selected = NULL;
    rcn_mask masks[4];
    make_golden(raters);
    const rcn_geometry geometry = rcn_geometry_make(8, 8, 8);
    CHECK_STATUS(rcn_votes_create_labels(&labels, ctx, &geometry, 4, 1), RCN_OK);
    for (int r = 0; r < 4; ++r) {
        const rcn_label_map map = map_of(raters[r], RCN_UINT8, 8, 8, 8, 1);
        const rcn_mask mask = {map.image, 0, NULL, 0, NULL};
        masks[r] = mask;
        CHECK_STATUS(rcn_votes_add_labels(labels, ctx, r, &map, 1, NULL), RCN_OK);
    }
    CHECK_STATUS(rcn_votes_from_masks(&plain, ctx, masks, 4), RCN_OK);
    CHECK_STATUS(rcn_votes_select(&selected, ctx, labels, 1), RCN_OK);
    for (int m = RCN_ORC; m <= RCN_SVLS; ++m) {
        static float a[GOLDEN_VOXELS], b[GOLDEN_VOXELS];
        rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
        options.method = (rcn_method)m;
        rcn_fusion_result said_a, said_b;
        CHECK_STATUS(rcn_fuse(a, &said_a, ctx, plain, &options), RCN_OK);
        CHECK_STATUS(rcn_fuse(b, &said_b, ctx, selected, &options), RCN_OK);
        /* STAPLE adds patterns up in their order, which differs: the last bits may. */
        for (int i = 0; i < GOLDEN_VOXELS; ++i)
            CHECK(m == RCN_STAPLE ? fabsf(a[i] - b[i]) <= 1e-6f : a[i] == b[i]);
        CHECK(said_a.kept == said_b.kept && said_a.iterations == said_b.iterations);
    }
    rcn_box a, b;
    CHECK_STATUS(rcn_votes_union_box(&a, ctx, plain, 1), RCN_OK);
    CHECK_STATUS(rcn_votes_union_box(&b, ctx, labels, 1), RCN_OK);
    CHECK(!memcmp(&a, &b, sizeof a));
    rcn_votes_destroy(selected);

    /* A structure of plain votes is what they are. */
    CHECK_STATUS(rcn_votes_select(&selected, ctx, plain, 1), RCN_OK);
    CHECK(
        !memcmp(rcn_votes_patterns(selected), rcn_votes_patterns(plain), 16 * sizeof(rcn_pattern)));
    CHECK(rcn_votes_structures(plain) == 1 && !rcn_votes_labels(plain));
    rcn_votes_destroy(selected);
    rcn_votes_destroy(labels);
    rcn_votes_destroy(plain);
    rcn_context_destroy(ctx);
}

static void put(void *storage, rcn_type type, int64_t at, int value) {
    switch (type) {
    case RCN_UINT8: ((uint8_t *)storage)[at] = (uint8_t)value; break;
    case RCN_INT8: ((int8_t *)storage)[at] = (int8_t)value; break;
    case RCN_UINT16: ((uint16_t *)storage)[at] = (uint16_t)value; break;
    case RCN_INT16: ((int16_t *)storage)[at] = (int16_t)value; break;
    case RCN_UINT32: ((uint32_t *)storage)[at] = (uint32_t)value; break;
    case RCN_INT32: ((int32_t *)storage)[at] = value; break;
    case RCN_UINT64: ((uint64_t *)storage)[at] = (uint64_t)value; break;
    case RCN_INT64: ((int64_t *)storage)[at] = value; break;
    case RCN_FLOAT32: ((float *)storage)[at] = (float)value; break;
    case RCN_FLOAT64: ((double *)storage)[at] = value; break;
    }
}

enum { X = 130, Y = 67, Z = 3, N = X * Y * Z };

/* Random regions of labels with noise; 50 is a value nobody names, 60 means no answer. */
static int random_label(uint32_t *s, int i, int rater, int structures) {
    *s = 1664525u * *s + 1013904223u;
    const int noise = (int)(*s >> 22);
    if (i % X < 20 && rater % 3 == 1) return 60;
    if (noise < 8) return noise % 2 ? 50 : 60;
    if (noise < 60) return noise % (structures + 1);
    return (i % X / 9 + i / X % Y / 11) % (structures + 1);
}

/* The pattern behind each voxel's code is what the maps say, whatever their type; rows ascend; one
 * thread and three give the same bits. */
static void against_the_naive_twin(void) {
    static const int sizes[5][2] = {{1, 1}, {3, 3}, {5, 8}, {17, 32}, {64, 32}};
    static uint64_t storage[N * 2];
    uint8_t *truth = malloc((size_t)RCN_MAX_RATERS * N);
    const int64_t sixty = 60;
    for (int t = 0; t < 5; ++t) {
        const int raters = sizes[t][0], structures = sizes[t][1];
        const rcn_geometry geometry = rcn_geometry_make(X, Y, Z);
        rcn_context *ctx[2] = {make_context(1), make_context(3)};
        rcn_votes *votes[2] = {NULL, NULL};
        uint32_t s = 77;
        int wrong = 0;
        for (int c = 0; c < 2; ++c)
            CHECK_STATUS(rcn_votes_create_labels(&votes[c], ctx[c], &geometry, raters, structures),
                         RCN_OK);
        for (int r = 0; r < raters; ++r) {
            if (r == 2) continue; /* did not answer */
            const rcn_type type = (rcn_type)(r % 10);
            const int components = 1 + r % 2;
            int64_t named_not = 0, unnamed[2] = {-1, -1};
            for (int i = 0; i < N; ++i) {
                const int value = random_label(&s, i, r, structures);
                put(storage, type, (int64_t)i * components + components - 1, value);
                truth[(size_t)r * N + i] = value == 60   ? RCN_NO_ANSWER
                                           : value == 50 ? 0
                                                         : (uint8_t)value;
                named_not += value == 50;
            }
            rcn_label_map map = map_of(storage, type, X, Y, Z, structures);
            map.image.components = components;
            map.component = components - 1;
            map.unanswered = &sixty;
            for (int c = 0; c < 2; ++c)
                CHECK_STATUS(rcn_votes_add_labels(votes[c], ctx[c], r, &map, 1, &unnamed[c]),
                             RCN_OK);
            CHECK(unnamed[0] == named_not && unnamed[1] == named_not);
        }
        if (raters > 2) memset(truth + 2 * (size_t)N, RCN_NO_ANSWER, N);
        const int64_t count = rcn_votes_pattern_count(votes[0]);
        const uint8_t *labels = rcn_votes_labels(votes[0]);
        const int bytes = rcn_votes_code_bytes(votes[0]);
        CHECK(bytes == (count <= 256 ? 1 : count <= 65536 ? 2 : 4));
        CHECK(rcn_votes_pattern_count(votes[1]) == count);
        CHECK(!memcmp(rcn_votes_codes(votes[0]), rcn_votes_codes(votes[1]), (size_t)(N * bytes)));
        CHECK(!memcmp(labels, rcn_votes_labels(votes[1]), (size_t)(count * raters)));
        CHECK(!memcmp(rcn_votes_patterns(votes[0]), rcn_votes_patterns(votes[1]),
                      (size_t)count * sizeof(rcn_pattern)));
        int64_t *seen = calloc((size_t)count, sizeof *seen);
        for (int i = 0; i < N; ++i) {
            const uint32_t code = code_at(votes[0], i);
            const rcn_pattern *pattern = &rcn_votes_patterns(votes[0])[code];
            ++seen[code];
            for (int r = 0; r < raters; ++r) {
                const uint8_t label = truth[(size_t)r * N + i];
                wrong += labels[code * (uint32_t)raters + (uint32_t)r] != label;
                wrong += (pattern->answered >> r & 1) != (label != RCN_NO_ANSWER);
                wrong += (pattern->marked >> r & 1) != (label && label != RCN_NO_ANSWER);
            }
        }
        for (int64_t p = 0; p < count; ++p) {
            wrong += seen[p] != rcn_votes_patterns(votes[0])[p].voxels || !seen[p];
            if (p) wrong += memcmp(&labels[(p - 1) * raters], &labels[p * raters], raters) >= 0;
        }
        CHECK(wrong == 0);
        if (raters == 64) CHECK(bytes == 2 && count > 2000);
        for (int c = 0; c < 2; ++c) {
            rcn_votes_destroy(votes[c]);
            CHECK(rcn_context_bytes(ctx[c]) == 0);
            rcn_context_destroy(ctx[c]);
        }
        free(seen);
    }
    free(truth);
}

/* More patterns than two bytes can number. */
static void four_byte_codes(void) {
    enum { SIDE = 300, COUNT = SIDE * SIDE };
    static uint8_t data[4][COUNT];
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = NULL;
    const rcn_geometry geometry = rcn_geometry_make(SIDE, SIDE, 1);
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, 4, 32), RCN_OK);
    for (int r = 0; r < 4; ++r) {
        int n = 1;
        for (int k = 0; k < r; ++k) n *= 17;
        for (int i = 0; i < COUNT; ++i) data[r][i] = (uint8_t)(i / n % (r == 3 ? 33 : 17));
        const rcn_label_map map = map_of(data[r], RCN_UINT8, SIDE, SIDE, 1, 32);
        CHECK_STATUS(rcn_votes_add_labels(votes, ctx, r, &map, 1, NULL), RCN_OK);
    }
    CHECK(rcn_votes_code_bytes(votes) == 4 && rcn_votes_pattern_count(votes) == COUNT);
    int wrong = 0;
    for (int i = 0; i < COUNT; ++i)
        for (int r = 0; r < 4; ++r) wrong += label_at(votes, i, r) != data[r][i];
    CHECK(wrong == 0);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* A voxel in two structures; the lowest one is named, and nothing has changed. */
static void overlapping_maps(void) {
    static uint8_t liver[3 * N], kidney[3 * N], spleen[3 * N];
    rcn_context *ctx = make_context(3);
    const rcn_geometry geometry = rcn_geometry_make(X, Y, 3 * Z);
    const uint8_t numbers[3] = {3, 1, 2};
    uint8_t *data[3] = {liver, kidney, spleen};
    rcn_label_map maps[3];
    for (int m = 0; m < 3; ++m) {
        maps[m] = map_of(data[m], RCN_UINT8, X, Y, 3 * Z, 0);
        maps[m].values = NULL;
        maps[m].structures = &numbers[m];
    }
    liver[5] = kidney[6] = spleen[7] = 1;
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, 2, 3), RCN_OK);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, maps, 3, NULL), RCN_OK);
    CHECK(label_at(votes, 5, 0) == 3 && label_at(votes, 6, 0) == 1 && label_at(votes, 7, 0) == 2);
    const int64_t patterns = rcn_votes_pattern_count(votes);
    const void *codes = rcn_votes_codes(votes);
    int64_t unnamed = 42;
    liver[3 + X * (2 + Y * 4)] = spleen[3 + X * (2 + Y * 4)] = 1;
    liver[3 * N - 1] = kidney[3 * N - 1] = 1;
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 1, maps, 3, &unnamed), RCN_EDATA);
    CHECK_ERROR(ctx, "Rater 2 marks voxel (3, 2, 4) as structure 3 and as structure 2");
    CHECK(unnamed == 42 && rcn_votes_present(votes) == 1);
    CHECK(rcn_votes_pattern_count(votes) == patterns && rcn_votes_codes(votes) == codes);
    /* The same structure twice is no contradiction. */
    maps[2].structures = &numbers[0];
    maps[1].structures = &numbers[0];
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 1, maps, 3, NULL), RCN_OK);
    CHECK(label_at(votes, 3 + X * (2 + Y * 4), 1) == 3);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* What several maps say together about a voxel that some leave out or do not name. */
static void maps_that_leave_voxels_out(void) {
    uint8_t a[8] = {9, 9, 9, 1, 0, 7, 7, 0}, b[8] = {9, 0, 2, 9, 9, 9, 2, 7};
    static const int expected[8] = {255, 255, 2, 1, 255, 255, 2, 0};
    const int64_t nine = 9;
    for (int swap = 0; swap < 2; ++swap) {
        rcn_context *ctx = make_context(1);
        rcn_label_map maps[2] = {map_of(swap ? b : a, RCN_UINT8, 8, 1, 1, 2),
                                 map_of(swap ? a : b, RCN_UINT8, 8, 1, 1, 2)};
        maps[0].unanswered = maps[1].unanswered = &nine;
        rcn_votes *votes = NULL;
        int64_t unnamed = 0;
        CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &maps[0].image.geometry, 1, 2), RCN_OK);
        CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, maps, 2, &unnamed), RCN_OK);
        for (int i = 0; i < 8; ++i) CHECK(label_at(votes, i, 0) == expected[i]);
        CHECK(unnamed == 1); /* the last one; where another map knows the voxel, it has a name */
        rcn_votes_destroy(votes);
        rcn_context_destroy(ctx);
    }
}

static void bad_arguments(void) {
    uint8_t data[6] = {0, 1, 2, 0, 1, 2};
    float fraction[6] = {0, 1, 2, 0.25f, NAN, 1};
    const rcn_geometry geometry = rcn_geometry_make(3, 2, 1);
    rcn_context *ctx = make_context(2);
    rcn_votes *votes = NULL, *view = NULL, *plain = NULL;
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, 2, 33), RCN_EINVALID);
    CHECK_ERROR(ctx, "1 to 32 structures, not 33");
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, 2, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, 65, 2), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_create_labels(NULL, ctx, &geometry, 2, 2), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_create_labels(&votes, NULL, &geometry, 2, 2), RCN_EINVALID);
    CHECK(!votes);
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &geometry, 2, 2), RCN_OK);
    rcn_label_map map = map_of(data, RCN_UINT8, 3, 2, 1, 3);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &map, 1, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "Rater 1: structure 3 does not exist among 2");
    const int64_t twice[2] = {4, 4};
    map.value_count = 2;
    map.values = twice;
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &map, 1, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "the label value 4 cannot mean structure 1 and structure 2");
    map = map_of(data, RCN_UINT8, 3, 2, 1, 2);
    map.structures = NULL;
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &map, 1, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "structures of a label map are missing");
    map = map_of(data, RCN_UINT8, 3, 2, 1, 2);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &map, 0, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, NULL, 1, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 2, &map, 1, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_add_labels(NULL, ctx, 0, &map, 1, NULL), RCN_EINVALID);
    rcn_label_map maps[2] = {map, map_of(fraction, RCN_FLOAT32, 3, 2, 1, 2)};
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, maps, 2, NULL), RCN_EDATA);
    CHECK_ERROR(ctx, "Rater 1 has the label 0.25 at voxel (0, 1, 0)");
    maps[1].image.geometry = rcn_geometry_make(2, 3, 1);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, maps, 2, NULL), RCN_EGEOMETRY);
    CHECK(rcn_votes_present(votes) == 0 && rcn_votes_pattern_count(votes) == 1);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &map, 1, NULL), RCN_OK);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &map, 1, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "already");

    /* Labels and masks do not mix, and a view is only looked at. */
    const rcn_mask mask = {map.image, 0, NULL, 0, NULL};
    CHECK_STATUS(rcn_votes_add(votes, ctx, 1, &mask), RCN_EINVALID);
    CHECK_ERROR(ctx, "hold labels");
    CHECK_STATUS(rcn_votes_create(&plain, ctx, &geometry, 2), RCN_OK);
    CHECK_STATUS(rcn_votes_add_labels(plain, ctx, 0, &map, 1, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "hold masks");
    CHECK_STATUS(rcn_votes_select(&view, ctx, votes, 3), RCN_EINVALID);
    CHECK_ERROR(ctx, "Structure 3 does not exist among 2");
    CHECK_STATUS(rcn_votes_select(&view, ctx, votes, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_select(&view, ctx, NULL, 1), RCN_EINVALID);
    CHECK(!view);
    CHECK_STATUS(rcn_votes_select(&view, ctx, votes, 1), RCN_OK);
    CHECK_STATUS(rcn_votes_add(view, ctx, 1, &mask), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_add_labels(view, ctx, 1, &map, 1, NULL), RCN_EINVALID);
    CHECK_ERROR(ctx, "one structure are read-only");
    rcn_votes_destroy(view);
    rcn_votes_destroy(plain);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* A view that is brought into another order gets codes of its own; its source stays. */
static void reordered_view(void) {
    uint8_t data[3] = {0, 1, 2};
    rcn_context *ctx = make_context(1);
    rcn_label_map map = map_of(data, RCN_UINT8, 3, 1, 1, 2);
    const rcn_order order = {{0, 1, 2}, {1, 0, 0}};
    rcn_votes *votes = NULL, *view = NULL;
    CHECK_STATUS(rcn_votes_create_labels(&votes, ctx, &map.image.geometry, 1, 2), RCN_OK);
    CHECK_STATUS(rcn_votes_add_labels(votes, ctx, 0, &map, 1, NULL), RCN_OK);
    CHECK_STATUS(rcn_votes_select(&view, ctx, votes, 2), RCN_OK);
    CHECK_STATUS(rcn_votes_reorder(view, ctx, &order), RCN_OK);
    CHECK(rcn_votes_at(view, 0)->marked == 1 && rcn_votes_at(view, 2)->marked == 0);
    for (int i = 0; i < 3; ++i) CHECK(label_at(votes, i, 0) == data[i]);
    rcn_votes_destroy(view);
    rcn_votes_destroy(votes);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static rcn_status make_and_select(rcn_context *ctx, void *payload) {
    static uint8_t golden[4][GOLDEN_VOXELS];
    rcn_votes *votes = NULL, *view = NULL;
    int64_t unnamed = 42;
    const rcn_geometry geometry = rcn_geometry_make(8, 8, 8);
    (void)payload;
    make_golden(golden);
    for (int i = 0; i < GOLDEN_VOXELS; ++i) golden[3][i] = (uint8_t)(2 * !golden[2][i]);
    rcn_status status = rcn_votes_create_labels(&votes, ctx, &geometry, 3, 2);
    CHECK((status == RCN_OK) == (votes != NULL));
    for (int r = 0; r < 3 && status == RCN_OK; ++r) {
        const rcn_label_map maps[2] = {map_of(golden[r], RCN_UINT8, 8, 8, 8, 2),
                                       map_of(golden[3], RCN_UINT8, 8, 8, 8, 2)};
        const int64_t before = rcn_votes_pattern_count(votes);
        unnamed = 42;
        status = rcn_votes_add_labels(votes, ctx, r, maps, r == 2 ? 2 : 1, &unnamed);
        if (status == RCN_OK) continue;
        CHECK(unnamed == 42 && rcn_votes_present(votes) == (UINT64_C(1) << r) - 1);
        CHECK(rcn_votes_pattern_count(votes) == before);
    }
    if (status == RCN_OK) status = rcn_votes_select(&view, ctx, votes, 2);
    if (status == RCN_OK) CHECK(unnamed == 0 && rcn_votes_marked(view, 2) > 0);
    rcn_votes_destroy(view);
    rcn_votes_destroy(votes);
    return status;
}

static void failing_allocations_and_cancel(void) {
    check_failing_allocations(make_and_select, NULL);
    check_cancelling(make_and_select, NULL, 6);
}

int main(void) {
    RUN(by_hand);
    RUN(ways_to_say_it);
    RUN(one_structure_as_labels);
    RUN(against_the_naive_twin);
    RUN(four_byte_codes);
    RUN(overlapping_maps);
    RUN(maps_that_leave_voxels_out);
    RUN(bad_arguments);
    RUN(reordered_view);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
