// SPDX-License-Identifier: Apache-2.0
#include "rcn_votes_private.h"

#include "rcn_test.h"

static rcn_mask mask_of(void *data, rcn_type type, int64_t x, int64_t y, int64_t z) {
    rcn_mask mask = {{data, type, 1, rcn_geometry_make(x, y, z)}, 0, NULL, 0, NULL};
    return mask;
}

static int level(const rcn_pattern *pattern) {
    int count = 0;
    for (int r = 0; r < 64; ++r) count += (int)(pattern->marked >> r & 1);
    return count;
}

static void counts_bits(void) {
    uint64_t bits = UINT64_C(0x9E3779B97F4A7C15);
    CHECK(rcn_popcount(0) == 0 && rcn_popcount(UINT64_MAX) == 64);
    for (int i = 0; i < 64; ++i, bits = bits * UINT64_C(6364136223846793005) + 1) {
        const rcn_pattern pattern = {.marked = bits};
        CHECK(rcn_popcount(UINT64_C(1) << i) == 1 && rcn_popcount(bits) == level(&pattern));
    }
}

static void golden_histogram(void) {
    uint8_t raters[4][GOLDEN_VOXELS];
    rcn_mask masks[4];
    make_golden(raters);
    for (int r = 0; r < 4; ++r) masks[r] = mask_of(raters[r], RCN_UINT8, 8, 8, 8);
    static const int64_t expected[2][5] = {{326, 117, 39, 30, 0}, {267, 146, 39, 37, 23}};
    static const int64_t sums[4] = {78, 109, 98, 142};
    for (int k = 3; k <= 4; ++k) {
        rcn_context *ctx = make_context(2);
        rcn_votes *votes = NULL;
        CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, k), RCN_OK);
        int64_t histogram[5] = {0};
        const rcn_pattern *patterns = rcn_votes_patterns(votes);
        for (int64_t p = 0; p < rcn_votes_pattern_count(votes); ++p)
            histogram[level(&patterns[p])] += patterns[p].voxels;
        for (int l = 0; l < 5; ++l) CHECK(histogram[l] == expected[k - 3][l]);
        for (int r = 0; r < k; ++r) CHECK(rcn_votes_marked(votes, r) == sums[r]);
        rcn_votes_destroy(votes);
        rcn_context_destroy(ctx);
    }
}

/* Every element type, plain and as one component among three, gives the same votes. */
static void types_and_components(void) {
    enum { N = 5 * 4 * 3 };
    static const rcn_type types[] = {RCN_UINT8, RCN_INT8,   RCN_UINT16, RCN_INT16,   RCN_UINT32,
                                     RCN_INT32, RCN_UINT64, RCN_INT64,  RCN_FLOAT32, RCN_FLOAT64};
    const int64_t three[] = {3}, two_values[] = {3, 1};
    rcn_context *ctx = make_context(1);
    for (size_t t = 0; t < sizeof types / sizeof *types; ++t) {
        for (int components = 1; components <= 3; components += 2) {
            uint64_t storage[N * 3] = {0};
            for (int i = 0; i < N; ++i) {
                const int value = i % 4, at = i * components + components - 1;
                switch (types[t]) {
                case RCN_UINT8:
                case RCN_INT8: ((uint8_t *)storage)[at] = (uint8_t)value; break;
                case RCN_UINT16:
                case RCN_INT16: ((uint16_t *)storage)[at] = (uint16_t)value; break;
                case RCN_UINT32:
                case RCN_INT32: ((uint32_t *)storage)[at] = (uint32_t)value; break;
                case RCN_UINT64:
                case RCN_INT64: ((uint64_t *)storage)[at] = (uint64_t)value; break;
                case RCN_FLOAT32: ((float *)storage)[at] = (float)value; break;
                case RCN_FLOAT64: ((double *)storage)[at] = value; break;
                }
            }
            rcn_mask masks[3];
            for (int r = 0; r < 3; ++r) {
                masks[r] = mask_of(storage, types[t], 5, 4, 3);
                masks[r].image.components = components;
                masks[r].component = components - 1;
            }
            masks[1].values = three;
            masks[1].value_count = 1;
            masks[2].values = two_values;
            masks[2].value_count = 2;
            rcn_votes *votes = NULL;
            CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 3), RCN_OK);
            const uint8_t *codes = rcn_votes_codes(votes);
            CHECK(rcn_votes_code_bytes(votes) == 1);
            for (int i = 0; i < N; ++i) {
                const int value = i % 4;
                const int expected =
                    (value != 0) | (value == 3) << 1 | (value == 3 || value == 1) << 2;
                CHECK(codes[i] == expected);
            }
            rcn_votes_destroy(votes);
        }
    }
    rcn_context_destroy(ctx);
}

/* Values outside the element type mark nothing instead of wrapping around. */
static void value_that_does_not_fit(void) {
    uint8_t data[4] = {0, 1, 2, 255};
    const int64_t values[] = {256, -1, 257};
    rcn_context *ctx = make_context(1);
    rcn_mask mask = mask_of(data, RCN_UINT8, 4, 1, 1);
    mask.values = values;
    mask.value_count = 3;
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    CHECK(rcn_votes_marked(votes, 0) == 0);
    rcn_votes_destroy(votes);
    const int64_t huge[] = {INT64_MAX};
    mask.values = huge;
    mask.value_count = 1;
    votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_EINVALID);
    CHECK(votes == NULL);
    rcn_context_destroy(ctx);
}

static uint32_t code_at(const rcn_votes *votes, int64_t i) {
    const void *codes = rcn_votes_codes(votes);
    switch (rcn_votes_code_bytes(votes)) {
    case 1: return ((const uint8_t *)codes)[i];
    case 2: return ((const uint16_t *)codes)[i];
    default: return ((const uint32_t *)codes)[i];
    }
}

/* Many raters, with and without unanswered voxels: the pattern behind each voxel's code is what the
 * masks say, the counts add up, and codes do not depend on the number of threads. */
static void many_raters_and_unanswered(void) {
    enum { X = 130, Y = 67, Z = 5, N = X * Y * Z };
    static const int raters_to_try[] = {1, 8, 9, 16, 17, 40, 64};
    const int64_t unanswered = 9;
    uint8_t *data = malloc((size_t)RCN_MAX_RATERS * N);
    for (size_t t = 0; t < sizeof raters_to_try / sizeof *raters_to_try; ++t) {
        for (int with_void = 0; with_void < 2; ++with_void) {
            const int raters = raters_to_try[t];
            rcn_mask masks[RCN_MAX_RATERS];
            uint32_t s = 99;
            for (int r = 0; r < raters; ++r) {
                for (int i = 0; i < N; ++i) {
                    s = 1664525u * s + 1013904223u;
                    const int noise = s >> 24;
                    uint8_t value = i % X > 30 && i % X < 90 ? noise > 20 : noise > 240;
                    if (with_void && r % 3 == 1 && i / X % Y < 20) value = 9;
                    data[(size_t)r * N + i] = value;
                }
                masks[r] = mask_of(data + (size_t)r * N, RCN_UINT8, X, Y, Z);
                if (with_void) masks[r].unanswered = &unanswered;
            }
            rcn_context *one = make_context(1), *three = make_context(3);
            rcn_votes *a = NULL, *b = NULL;
            CHECK_STATUS(rcn_votes_from_masks(&a, one, masks, raters), RCN_OK);
            CHECK_STATUS(rcn_votes_create(&b, three, &masks[0].image.geometry, raters), RCN_OK);
            for (int r = 0; r < raters; ++r)
                CHECK_STATUS(rcn_votes_add(b, three, r, &masks[r]), RCN_OK);
            CHECK(rcn_votes_pattern_count(a) == rcn_votes_pattern_count(b));
            CHECK(rcn_votes_code_bytes(a) == rcn_votes_code_bytes(b));
            CHECK(!memcmp(rcn_votes_codes(a), rcn_votes_codes(b),
                          (size_t)N * rcn_votes_code_bytes(a)));
            CHECK(a->unanswered == (with_void && raters > 1));
            const rcn_pattern *patterns = rcn_votes_patterns(a);
            CHECK(!memcmp(patterns, rcn_votes_patterns(b),
                          (size_t)rcn_votes_pattern_count(a) * sizeof *patterns));
            int64_t total = 0;
            for (int64_t p = 0; p < rcn_votes_pattern_count(a); ++p) total += patterns[p].voxels;
            CHECK(total == N);
            int wrong = 0;
            for (int i = 0; i < N; ++i) {
                uint64_t marked = 0, answered = 0;
                for (int r = 0; r < raters; ++r) {
                    const uint8_t value = data[(size_t)r * N + i];
                    if (value == 9) continue;
                    answered |= UINT64_C(1) << r;
                    if (value) marked |= UINT64_C(1) << r;
                }
                const rcn_pattern *pattern = &patterns[code_at(a, i)];
                wrong += rcn_votes_at(a, i) != pattern;
                wrong += pattern->marked != marked || pattern->answered != answered;
            }
            CHECK(wrong == 0);
            rcn_votes_destroy(a);
            rcn_votes_destroy(b);
            rcn_context_destroy(one);
            rcn_context_destroy(three);
        }
    }
    free(data);
}

static void missing_rater(void) {
    uint8_t data[2][4] = {{0, 1, 1, 0}, {0, 0, 1, 1}};
    rcn_context *ctx = make_context(1);
    rcn_mask masks[3] = {mask_of(data[0], RCN_UINT8, 4, 1, 1),
                         {{0}, 0, NULL, 0, NULL},
                         mask_of(data[1], RCN_UINT8, 4, 1, 1)};
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 3), RCN_OK);
    CHECK(rcn_votes_present(votes) == 5);
    CHECK(!votes->unanswered);
    CHECK(rcn_votes_patterns(votes)[4].answered == 5);
    CHECK_STATUS(rcn_votes_add(votes, ctx, 0, &masks[0]), RCN_EINVALID);
    CHECK_ERROR(ctx, "already");
    CHECK_STATUS(rcn_votes_add(votes, ctx, 3, &masks[0]), RCN_EINVALID);
    rcn_votes_destroy(votes);
    masks[0].image.data = masks[2].image.data = NULL;
    votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 3), RCN_EINVALID);
    CHECK_ERROR(ctx, "No rater answered");
    rcn_context_destroy(ctx);
}

/* A bad label leaves the votes as they were and names voxel and value. */
static void bad_labels(void) {
    float good[12] = {0, 1, 0, 1}, fraction[12] = {0}, nan_[12] = {0};
    double infinite[12] = {0};
    fraction[7] = 0.5f;
    nan_[11] = NAN;
    infinite[2] = -INFINITY;
    rcn_context *ctx = make_context(2);
    rcn_mask mask = mask_of(good, RCN_FLOAT32, 2, 3, 2);
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_create(&votes, ctx, &mask.image.geometry, 2), RCN_OK);
    CHECK_STATUS(rcn_votes_add(votes, ctx, 0, &mask), RCN_OK);
    mask.image.data = fraction;
    CHECK_STATUS(rcn_votes_add(votes, ctx, 1, &mask), RCN_EDATA);
    CHECK_ERROR(ctx, "label 0.5 at voxel (1, 0, 1)");
    mask.image.data = nan_;
    CHECK_STATUS(rcn_votes_add(votes, ctx, 1, &mask), RCN_EDATA);
    CHECK_ERROR(ctx, "nan at voxel (1, 2, 1)");
    mask = mask_of(infinite, RCN_FLOAT64, 2, 3, 2);
    CHECK_STATUS(rcn_votes_add(votes, ctx, 1, &mask), RCN_EDATA);
    CHECK(rcn_votes_present(votes) == 1);
    CHECK(rcn_votes_marked(votes, 0) == 2 && rcn_votes_marked(votes, 1) == 0);
    mask = mask_of(good, RCN_FLOAT32, 3, 2, 2);
    CHECK_STATUS(rcn_votes_add(votes, ctx, 1, &mask), RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "3x2x2");
    rcn_votes_destroy(votes);
    CHECK_STATUS(rcn_votes_create(&votes, ctx, &mask.image.geometry, 0), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_create(&votes, ctx, &mask.image.geometry, 65), RCN_EINVALID);
    CHECK_ERROR(ctx, "1 to 64 raters, not 65");
    rcn_context_destroy(ctx);
}

static void union_box_and_expand(void) {
    uint8_t data[10 * 8 * 6] = {0};
    data[3 + 10 * (2 + 8 * 1)] = 1;
    data[6 + 10 * (5 + 8 * 4)] = 1;
    rcn_context *ctx = make_context(2);
    rcn_mask mask = mask_of(data, RCN_UINT8, 10, 8, 6);
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    rcn_box box;
    CHECK_STATUS(rcn_votes_union_box(&box, ctx, votes, 0), RCN_OK);
    CHECK(box.first[0] == 3 && box.first[1] == 2 && box.first[2] == 1);
    CHECK(box.end[0] == 7 && box.end[1] == 6 && box.end[2] == 5);
    CHECK_STATUS(rcn_votes_union_box(&box, ctx, votes, 2), RCN_OK);
    CHECK(box.first[0] == 1 && box.first[1] == 0 && box.first[2] == 0);
    CHECK(box.end[0] == 9 && box.end[1] == 8 && box.end[2] == 6);
    float map[10 * 8 * 6];
    uint8_t bytes[10 * 8 * 6];
    const float table[2] = {-1, 2};
    const uint8_t table_u8[2] = {7, 9};
    CHECK_STATUS(rcn_votes_expand(map, ctx, votes, table), RCN_OK);
    CHECK_STATUS(rcn_votes_expand_u8(bytes, ctx, votes, table_u8), RCN_OK);
    for (int i = 0; i < 480; ++i) CHECK(map[i] == table[data[i]] && bytes[i] == table_u8[data[i]]);
    rcn_votes_destroy(votes);
    memset(data, 0, sizeof data);
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &mask, 1), RCN_OK);
    CHECK_STATUS(rcn_votes_union_box(&box, ctx, votes, 0), RCN_OK);
    CHECK(box.first[0] == 0 && box.end[0] == 10 && box.end[2] == 6);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

typedef struct many_masks {
    rcn_mask masks[18];
    int raters;
} many_masks;

static rcn_status make_votes(rcn_context *ctx, void *payload) {
    rcn_votes *votes = NULL;
    const many_masks *many = payload;
    const rcn_status status = rcn_votes_from_masks(&votes, ctx, many->masks, many->raters);
    CHECK((status == RCN_OK) == (votes != NULL));
    rcn_votes_destroy(votes);
    return status;
}

static void failing_allocations_and_cancel(void) {
    static uint8_t raters[4][GOLDEN_VOXELS];
    many_masks many;
    make_golden(raters);
    for (int r = 0; r < 18; ++r) many.masks[r] = mask_of(raters[r % 4], RCN_UINT8, 8, 8, 8);
    for (many.raters = 3; many.raters <= 18; many.raters += 15) { /* dense, refined */
        check_failing_allocations(make_votes, &many);
        check_cancelling(make_votes, &many, 2);
    }
}

/* A label that the element type cannot hold marks nothing: -1 is not 2^64 - 1. */
static void labels_out_of_range(void) {
    uint64_t u64[4] = {0, 1, UINT64_MAX, 255};
    uint8_t u8[4] = {0, 1, 255, 255};
    const int64_t minus_one[] = {-1}, huge = INT64_C(1) << 60;
    rcn_context *ctx = make_context(1);
    rcn_votes *votes = NULL;
    rcn_mask masks[2] = {mask_of(u64, RCN_UINT64, 4, 1, 1), mask_of(u8, RCN_UINT8, 4, 1, 1)};
    for (int r = 0; r < 2; ++r) {
        masks[r].values = minus_one;
        masks[r].value_count = 1;
        masks[r].unanswered = minus_one;
    }
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 2), RCN_OK);
    CHECK(rcn_votes_marked(votes, 0) == 0 && rcn_votes_marked(votes, 1) == 0);
    CHECK(!votes->unanswered);
    rcn_votes_destroy(votes);
    votes = NULL;
    masks[1].unanswered = &huge;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 2), RCN_EINVALID);
    CHECK_ERROR(ctx, "Rater 2: 1152921504606846976 is not a valid label value");
    CHECK(!votes);
    rcn_context_destroy(ctx);
}

static void not_finite(void) {
    float f32[6] = {0, 1, -1, 3e38f, NAN, 0};
    double f64[6] = {0, 1, -1, INFINITY, NAN, 0};
    rcn_image image = {f32, RCN_FLOAT32, 2, rcn_geometry_make(3, 1, 1)};
    CHECK(rcn_image_find_nonfinite(&image) == 4);
    image.data = f64;
    image.type = RCN_FLOAT64;
    CHECK(rcn_image_find_nonfinite(&image) == 3);
    image.type = RCN_INT64;
    CHECK(rcn_image_find_nonfinite(&image) == -1);
}

/* Voxels of two elements: the same ones everywhere, or not. */
static void constant_images(void) {
    uint16_t data[6] = {3, 4, 3, 4, 3, 4};
    rcn_image image = {data, RCN_UINT16, 2, rcn_geometry_make(3, 1, 1)};
    CHECK(rcn_image_is_constant(&image));
    image.components = 1; /* 3, 4, 3 */
    CHECK(!rcn_image_is_constant(&image));
    image.geometry.size[0] = 1;
    CHECK(rcn_image_is_constant(&image));
    data[5] = 5;
    image.components = 2;
    image.geometry.size[0] = 3;
    CHECK(!rcn_image_is_constant(&image));
}

static void elements_of_any_type(void) {
    uint8_t u8[8] = {0, 1, 1, 0, 7, 255, 7, 3};
    float f32[8] = {0, 1, 1, 0, -2.5f, 3, 1, 7};
    rcn_image image = {u8, RCN_UINT8, 2, rcn_geometry_make(4, 1, 1)};
    CHECK(rcn_image_find_beyond_one(&image) == 4 && rcn_image_element(&image, 5) == 255);
    float out[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    rcn_image_to_float(out, 2, &image, 1, 255);
    CHECK(out[0] == (float)(1.0 / 255) && out[2] == 0 && out[4] == 1 && out[1] == 9);
    double real[4];
    rcn_image_to_double(real, &image, 0);
    CHECK(real[0] == 0 && real[1] == 1 && real[2] == 7 && real[3] == 7);
    image.data = f32;
    image.type = RCN_FLOAT32;
    rcn_image_to_double(real, &image, 0);
    CHECK(real[2] == -2.5 && real[3] == 1);
    float taken[4], put[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    rcn_image_copy_component(taken, 1, &image, 1); /* out, and back into its place */
    CHECK(taken[0] == 1 && taken[1] == 0 && taken[2] == 3 && taken[3] == 7);
    const rcn_image alone = {taken, RCN_FLOAT32, 1, image.geometry};
    rcn_image_copy_component(put + 1, 2, &alone, 0);
    for (int i = 0; i < 8; ++i) CHECK(put[i] == (i % 2 ? f32[i] : 9));
    CHECK(rcn_image_find_beyond_one(&image) == 4 && rcn_image_element(&image, 4) == -2.5);
    image.geometry = rcn_geometry_make(2, 1, 1);
    CHECK(rcn_image_find_beyond_one(&image) == -1);

    /* Labels: distinct and rising, without 0 and what stands for no answer; no more than asked. */
    double labels[3] = {-1, -1, -1};
    const int64_t unanswered = 255;
    rcn_image plain = {u8, RCN_UINT8, 1, rcn_geometry_make(8, 1, 1)};
    CHECK(rcn_image_labels(labels, 3, &plain, 0, NULL) == 3);
    CHECK(labels[0] == 1 && labels[1] == 7 && labels[2] == 255);
    CHECK(rcn_image_labels(labels, 3, &plain, 0, &unanswered) == 3 && labels[1] == 3);
    CHECK(rcn_image_labels(labels, 2, &plain, 0, NULL) == 2 && labels[1] == 7);
    plain.components = 2;
    plain.geometry = rcn_geometry_make(4, 1, 1);
    CHECK(rcn_image_labels(labels, 3, &plain, 0, NULL) == 2 && labels[0] == 1 && labels[1] == 7);

    rcn_image_keep_components(&plain, 1);
    CHECK(plain.components == 1 && u8[0] == 0 && u8[1] == 1 && u8[2] == 7 && u8[3] == 7);
}

static void whole_numbers_from_float(void) {
    const float in[4] = {0, 0.25f, 0.999f, 1};
    uint16_t room[5] = {7, 7, 7, 7, 7};
    rcn_image image = {room, RCN_UINT16, 2, rcn_geometry_make(2, 1, 1)};
    rcn_image_from_float(&image, in, 65535);
    CHECK(room[0] == 0 && room[1] == 16384 && room[2] == 65469 && room[3] == 65535 && room[4] == 7);
    uint8_t *bytes = (uint8_t *)room;
    image.type = RCN_UINT8;
    rcn_image_from_float(&image, in, 255);
    CHECK(bytes[0] == 0 && bytes[1] == 64 && bytes[2] == 255 && bytes[3] == 255 &&
          room[2] == 65469);
}

static void looks_like_a_mask(void) {
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    for (int type = RCN_UINT8; type <= RCN_FLOAT64; ++type) {
        uint64_t room[6] = {0};
        unsigned char *at = (unsigned char *)room;
        const size_t size = bytes[type];
        rcn_image image = {room, (rcn_type)type, 2, rcn_geometry_make(3, 1, 1)};
        CHECK(rcn_image_is_mask(&image)); /* nobody marked anything */
        at[1 * size] = at[5 * size] = 7;
        CHECK(rcn_image_is_mask(&image));
        at[3 * size] = 8; /* a third value */
        CHECK(!rcn_image_is_mask(&image));
    }
    float odd[2] = {0, NAN};
    rcn_image image = {odd, RCN_FLOAT32, 1, rcn_geometry_make(2, 1, 1)};
    CHECK(!rcn_image_is_mask(&image));
    odd[0] = odd[1] = -1.5f;
    CHECK(rcn_image_is_mask(&image));
    image.type = (rcn_type)99;
    CHECK(!rcn_image_is_mask(&image));
}

int main(void) {
    RUN(counts_bits);
    RUN(golden_histogram);
    RUN(types_and_components);
    RUN(value_that_does_not_fit);
    RUN(many_raters_and_unanswered);
    RUN(missing_rater);
    RUN(bad_labels);
    RUN(union_box_and_expand);
    RUN(failing_allocations_and_cancel);
    RUN(labels_out_of_range);
    RUN(not_finite);
    RUN(constant_images);
    RUN(elements_of_any_type);
    RUN(whole_numbers_from_float);
    RUN(looks_like_a_mask);
    return TEST_RESULT;
}
