// SPDX-License-Identifier: Apache-2.0
/* Samples: where their voxels come from, what varies, and that nothing depends on threads. */
#include "rcn_data_private.h"
#include "rcn_parallel.h"

#include "rcn_test.h"

enum { X = 24, Y = 20, Z = 6, VOXELS = X * Y * Z, RATERS = 3 };

/* Draws sample `stream` of `seed` and varies it. */
static rcn_status draw_sample(float *image, uint32_t *codes, float *map, rcn_context *ctx,
                              const rcn_data_case *from, const rcn_sample_options *options,
                              uint64_t seed, uint64_t stream) {
    rcn_rng rng = rcn__rng_make(seed, stream);
    rcn__sample sample;
    rcn_status status = rcn__sample_take(&sample, image, codes, map, ctx, from, options, &rng);
    if (status != RCN_OK) return status;
    status = rcn__samples_draw(&sample, 1, ctx, options);
    rcn__sample_free(&sample, ctx);
    if (status == RCN_OK)
        status = rcn__samples_vary(image, ctx, 1, from->channel_count, options, &rng);
    return status;
}

/* An image that tells its own place, x + 100 y + 10000 z, and raters with a cube in the middle. */
typedef struct setting {
    rcn_context *ctx;
    rcn_votes *votes;
    rcn_foci *foci;
    int16_t image[VOXELS];
    float map[VOXELS];
    rcn_channel channels[2];
    rcn_scale scale;
    rcn_data_case from;
} setting;

static void make_setting(setting *s, rcn_context *ctx, int64_t depth) {
    static uint8_t masks[RATERS][VOXELS];
    rcn_mask views[RATERS];
    const rcn_geometry geometry = rcn_geometry_make(X, Y, depth);
    memset(masks, 0, sizeof masks);
    memset(views, 0, sizeof views);
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    for (int r = 0; r < RATERS; ++r) {
        for (int64_t z = 0; z < depth; ++z)
            for (int64_t y = 8; y < 12 + r; ++y)
                for (int64_t x = 9; x < 14; ++x) masks[r][x + X * (y + Y * z)] = 1;
        views[r].image.data = masks[r];
        views[r].image.type = RCN_UINT8;
        views[r].image.components = 1;
        views[r].image.geometry = geometry;
    }
    for (int64_t i = 0; i < X * Y * depth; ++i) {
        s->image[i] = (int16_t)(i % X + 100 * (i / X % Y) + 4000 * (i / (X * Y)));
        s->map[i] = (float)(i % X) / X;
    }
    CHECK_STATUS(rcn_votes_from_masks(&s->votes, ctx, views, RATERS), RCN_OK);
    CHECK_STATUS(rcn_foci_create(&s->foci, ctx, s->votes), RCN_OK);
    for (int c = 0; c < 2; ++c) {
        s->channels[c].image.data = s->image;
        s->channels[c].image.type = RCN_INT16;
        s->channels[c].image.components = 1;
        s->channels[c].image.geometry = geometry;
        s->scale.factor[c] = c ? 2 : 1;
    }
    s->scale.channels = 2;
    s->scale.low = -1e30;
    s->scale.high = 1e30;
    s->from.channels = s->channels;
    s->from.channel_count = 2;
    s->from.scale = &s->scale;
    s->from.votes = s->votes;
    s->from.map = s->map;
    s->from.foci = s->foci;
}

static void free_setting(setting *s) {
    rcn_foci_destroy(s->foci);
    rcn_votes_destroy(s->votes);
}

static rcn_sample_options plain(int64_t x, int64_t y, int64_t z) {
    const rcn_augment none = RCN_AUGMENT_NONE;
    rcn_sample_options options = RCN_SAMPLE_OPTIONS_INIT;
    options.size[0] = x;
    options.size[1] = y;
    options.size[2] = z;
    options.augment = none;
    return options;
}

static uint32_t code_of(const setting *s, int64_t voxel) {
    return ((const uint8_t *)rcn_votes_codes(s->votes))[voxel];
}

static void test_whole_image_is_copied(void) {
    static float image[2 * VOXELS], map[VOXELS];
    static uint32_t codes[VOXELS];
    setting s;
    make_setting(&s, make_context(2), Z);
    const rcn_sample_options options = plain(X, Y, Z);
    CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 1, 2), RCN_OK);
    for (int i = 0; i < VOXELS; ++i) {
        CHECK(image[i] == s.image[i] && image[VOXELS + i] == 2.0f * s.image[i]);
        CHECK(codes[i] == code_of(&s, i) && map[i] == s.map[i]);
    }
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

/* A smaller image lies in the middle of a larger sample; around it its border, and void votes. */
static void test_small_image_is_continued(void) {
    enum { W = X + 5, H = Y + 4 };
    static float image[2 * W * H], map[W * H];
    static uint32_t codes[W * H];
    setting s;
    make_setting(&s, make_context(1), 1);
    const rcn_sample_options options = plain(W, H, 1);
    CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 1, 2), RCN_OK);
    for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
            const int u = x - 3, v = y - 2; /* 5 more: 3 before, 2 behind */
            const int inside = u >= 0 && u < X && v >= 0 && v < Y;
            const int cu = u < 0 ? 0 : u >= X ? X - 1 : u, cv = v < 0 ? 0 : v >= Y ? Y - 1 : v;
            CHECK(image[x + W * y] == s.image[cu + X * cv]);
            CHECK(codes[x + W * y] == (inside ? code_of(&s, cu + X * cv) : RCN_VOID_CODE(s.votes)));
            CHECK(inside ? map[x + W * y] == s.map[cu + X * cv] : map[x + W * y] < 0);
        }
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

/* Flips and turns permute voxels: every sample is one of the eight, and all eight come. */
static void test_flips_and_turns(void) {
    enum { N = Y };
    static float image[2 * N * N], map[N * N];
    static uint32_t codes[N * N];
    int seen[2][4] = {{0}};
    setting s;
    make_setting(&s, make_context(1), 1);
    rcn_sample_options options = plain(N, N, 1);
    options.foreground = 0;
    options.augment.flips = options.augment.turns = 1;
    for (uint64_t stream = 0; stream < 64; ++stream) {
        CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 5, stream), RCN_OK);
        /* The first voxel and its neighbors tell orientation and place. */
        const int origin = (int)image[0], ox = origin % 100, oy = origin / 100;
        const int dx = (int)image[1] - origin, dy = (int)image[N] - origin;
        const int mirrored = (abs(dx) == 1) ? (dx > 0) != (dy > 0) : (dx > 0) == (dy > 0);
        const int turn = abs(dx) == 1 ? (dx > 0 ? 0 : 2) : (dx > 0 ? 1 : 3);
        CHECK(abs(dx) + abs(dy) == 101);
        ++seen[mirrored][turn];
        for (int y = 0; y < N; ++y)
            for (int x = 0; x < N; ++x) {
                const int value = origin + x * dx + y * dy, u = value % 100, v = value / 100;
                CHECK(image[x + N * y] == value);
                CHECK(codes[x + N * y] == code_of(&s, u + X * v));
                CHECK(map[x + N * y] == s.map[u + X * v]);
            }
        CHECK(ox >= 0 && ox < X && oy >= 0 && oy < Y);
    }
    for (int m = 0; m < 2; ++m)
        for (int t = 0; t < 4; ++t) CHECK(seen[m][t] > 0);
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

/* Rotated, scaled, sheared, shifted and bent: image, map and votes still come from one place. The
 * image is linear in x and y, so linear interpolation gives the place back exactly. */
static void test_votes_follow_the_image(void) {
    enum { N = 16 };
    static float image[2 * N * N], map[N * N];
    static uint32_t codes[N * N];
    int moved = 0, checked = 0;
    setting s;
    make_setting(&s, make_context(2), 1);
    rcn_sample_options options = plain(N, N, 1);
    const rcn_augment bent = {1, 1, 1, 30, 0.2, 0.1, 2, 0.7, 0, 0, 0, 0, 0};
    options.augment = bent;
    for (uint64_t stream = 0; stream < 50; ++stream) {
        CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 9, stream), RCN_OK);
        for (int i = 0; i < N * N; ++i) {
            const double x = (double)map[i] * X;
            if (map[i] < 0 || x < 0.6 || x > X - 1.6) continue; /* the border is continued */
            const double y = (image[i] - x) / 100;
            if (y < 0.6 || y > Y - 1.6) continue;
            moved += fabs(x - floor(x + 0.5)) > 0.01;
            const double fx = x - floor(x), fy = y - floor(y);
            if (fabs(fx - 0.5) < 0.02 || fabs(fy - 0.5) < 0.02) continue; /* either neighbor */
            const int u = (int)floor(x + 0.5), v = (int)floor(y + 0.5);
            ++checked;
            CHECK(codes[i] == code_of(&s, u + X * v));
        }
    }
    CHECK(moved > 1000 && checked > 2000);
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

/* Twice the spacing: every other voxel. */
static void test_resampling_to_the_training_spacing(void) {
    enum { W = X / 2, H = Y / 2, D = Z };
    static float image[2 * W * H * D], map[W * H * D];
    static uint32_t codes[W * H * D];
    setting s;
    make_setting(&s, make_context(1), Z);
    rcn_sample_options options = plain(W, H, D);
    options.spacing[0] = options.spacing[1] = 2;
    options.spacing[2] = 1;
    CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 1, 2), RCN_OK);
    for (int z = 0; z < D; ++z)
        for (int y = 0; y < H; ++y)
            for (int x = 0; x < W; ++x) /* centers of pairs of voxels */
                CHECK_NEAR(image[x + W * (y + H * z)],
                           (2 * x + 0.5) + 100 * (2 * y + 0.5) + 4000 * z, 0.01);
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

static void test_foci(void) {
    enum { N = 6 };
    static float image[2 * N * N], map[N * N];
    static uint32_t codes[N * N];
    int with = 0, without = 0;
    setting s;
    make_setting(&s, make_context(1), 1);
    CHECK(s.foci->count[0] == 5 * 4); /* all three raters: y = 8 ... 11 */
    CHECK(s.foci->count[1] == 5 * 2); /* y = 12, 13 */
    for (int64_t k = 0; k < s.foci->count[1]; ++k) {
        const int64_t y = s.foci->voxels[1][k] / X;
        CHECK(y == 12 || y == 13);
    }
    rcn_sample_options options = plain(N, N, 1);
    for (int round = 0; round < 2; ++round) {
        options.foreground = round;
        for (uint64_t stream = 0; stream < 100; ++stream) {
            int marked = 0;
            CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 3, stream),
                         RCN_OK);
            for (int i = 0; i < N * N; ++i) marked |= codes[i] != 0;
            *(round ? &with : &without) += marked;
        }
    }
    CHECK(with == 100);
    CHECK(without > 5 && without < 80);
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

/* Many more voxels than are kept: evenly taken, and no more than promised. */
static void test_foci_of_a_large_mask(void) {
    enum { W = 400, H = 200 };
    static uint8_t mask[W * H];
    rcn_mask view;
    rcn_votes *votes = NULL;
    rcn_foci *foci = NULL;
    rcn_context *ctx = make_context(1);
    memset(mask, 1, sizeof mask);
    memset(&view, 0, sizeof view);
    view.image.data = mask;
    view.image.type = RCN_UINT8;
    view.image.components = 1;
    view.image.geometry = rcn_geometry_make(W, H, 1);
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, &view, 1), RCN_OK);
    CHECK_STATUS(rcn_foci_create(&foci, ctx, votes), RCN_OK);
    CHECK(foci->count[1] == 0 && foci->count[0] == RCN_FOCI);
    double mean = 0;
    for (int64_t k = 0; k < RCN_FOCI; ++k) {
        mean += (double)foci->voxels[0][k] / RCN_FOCI;
        CHECK(k == 0 || foci->voxels[0][k] > foci->voxels[0][k - 1]);
    }
    CHECK_NEAR(mean, W * H / 2, 100);
    rcn_foci_destroy(foci);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

/* Each change of intensities alone, its size, and that it leaves votes and map alone. */
static void test_intensities(void) {
    static float image[2 * X * Y], changed[2 * X * Y];
    static uint32_t codes[X * Y];
    setting s;
    make_setting(&s, make_context(1), 1);
    s.from.map = NULL;
    rcn_sample_options options = plain(X, Y, 1);
    CHECK_STATUS(draw_sample(image, codes, NULL, s.ctx, &s.from, &options, 1, 2), RCN_OK);
    double low = image[0], high = image[0];
    for (int i = 0; i < X * Y; ++i) {
        low = image[i] < low ? image[i] : low;
        high = image[i] > high ? image[i] : high;
    }
    double *const amounts[] = {&options.augment.gamma, &options.augment.brightness,
                               &options.augment.contrast, &options.augment.noise,
                               &options.augment.blur};
    options.augment.share = 1;
    for (int k = 0; k < 5; ++k) {
        double difference = 0, shift = 0;
        *amounts[k] = 0.5;
        CHECK_STATUS(draw_sample(changed, codes, NULL, s.ctx, &s.from, &options, 1, 4), RCN_OK);
        for (int i = 0; i < X * Y; ++i) {
            difference += fabs(changed[i] - image[i]) / (X * Y);
            shift += (changed[i] - image[i]) / (X * Y);
            CHECK(codes[i] == code_of(&s, i));
            if (k == 0) CHECK(changed[i] >= low - 0.01 && changed[i] <= high + 0.01);
        }
        CHECK(difference > 0.01);
        if (k == 1) CHECK_NEAR(fabs(shift), difference, 0.01); /* the same everywhere */
        if (k == 2) CHECK_NEAR(shift, 0, 0.05);                /* around the mean */
        *amounts[k] = 0;
    }
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

/* Contrast and brightness of a sample of many chunks against its mean and deviation in one loop. */
static void test_changes_are_about_the_whole_sample(void) {
    enum { N = 160 };
    static float image[2 * N * N], changed[2 * N * N];
    static uint32_t codes[N * N];
    setting s;
    make_setting(&s, make_context(3), 1);
    s.from.map = NULL;
    rcn_sample_options options = plain(N, N, 1);
    CHECK_STATUS(draw_sample(image, codes, NULL, s.ctx, &s.from, &options, 1, 2), RCN_OK);
    options.augment.share = 1;
    for (int c = 0; c < 2; ++c) {
        const float *values = image + c * N * N;
        double mean = 0, squares = 0;
        for (int i = 0; i < N * N; ++i) mean += values[i] / (double)(N * N);
        for (int i = 0; i < N * N; ++i) squares += (values[i] - mean) * (values[i] - mean);
        const double deviation = sqrt(squares / (N * N));

        options.augment.contrast = 0.5;
        CHECK_STATUS(draw_sample(changed, codes, NULL, s.ctx, &s.from, &options, 1, 4), RCN_OK);
        const float *to = changed + c * N * N;
        const double by = (to[0] - mean) / (values[0] - mean);
        CHECK(by > 1 / 1.51 && by < 1.51 && by != 1);
        for (int i = 0; i < N * N; ++i) CHECK_NEAR(to[i], mean + by * (values[i] - mean), 0.01);
        options.augment.contrast = 0;

        /* Noise is as strong as drawn, has no mean, and is another one in each chunk. */
        options.augment.noise = 0.5;
        CHECK_STATUS(draw_sample(changed, codes, NULL, s.ctx, &s.from, &options, 1, 4), RCN_OK);
        double sum = 0, power = 0, alike = 0;
        for (int i = 0; i < N * N; ++i) {
            const double noise = to[i] - values[i];
            sum += noise / (N * N);
            power += noise * noise / (N * N);
            if (i >= RCN_CHUNK)
                alike += noise * (to[i - RCN_CHUNK] - values[i - RCN_CHUNK]) / (N * N);
        }
        CHECK(power > 0 && sqrt(power) < 0.51 * deviation);
        CHECK(fabs(sum) < 0.04 * sqrt(power) && fabs(alike) < 0.04 * power);
        options.augment.noise = 0;
    }
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

static const rcn_augment EVERYTHING = {1, 1, 1, 30, 0.2, 0.1, 2, 1.5, 0.3, 0.2, 0.2, 0.1, 1};

static void test_same_bits_for_any_threads(void) {
    /* More than one chunk of everything. */
    enum { N = 64, ROUNDS = 5 };
    static const int threads[ROUNDS] = {1, 4, 2, 7, 1};
    static float image[ROUNDS][2 * N * N * Z];
    static uint32_t codes[ROUNDS][N * N * Z];
    static float map[ROUNDS][N * N * Z];
    rcn_sample_options options = plain(N, N, Z);
    options.augment = EVERYTHING;
    for (int k = 0; k < ROUNDS; ++k) {
        setting s;
        make_setting(&s, make_context(threads[k]), Z);
        CHECK_STATUS(draw_sample(image[k], codes[k], map[k], s.ctx, &s.from, &options, 7,
                                 k == ROUNDS - 1 ? 12 : 11),
                     RCN_OK);
        free_setting(&s);
        rcn_context_destroy(s.ctx);
    }
    for (int k = 1; k < ROUNDS - 1; ++k) {
        CHECK(!memcmp(image[0], image[k], sizeof image[0]));
        CHECK(!memcmp(codes[0], codes[k], sizeof codes[0]));
        CHECK(!memcmp(map[0], map[k], sizeof map[0]));
    }
    /* Another sample is another one. */
    CHECK(memcmp(image[0], image[ROUNDS - 1], sizeof image[0]) != 0);
}

/* Samples of a batch are drawn and varied as if each were alone. */
static void test_same_bits_in_any_company(void) {
    enum { N = 100, SAMPLES = 6, FLOATS = 2 * N * N };
    static float together[SAMPLES][FLOATS], alone[FLOATS], maps[SAMPLES][N * N], map[N * N];
    static uint32_t all_codes[SAMPLES][N * N], codes[N * N];
    rcn__sample samples[SAMPLES];
    rcn_rng rngs[SAMPLES];
    int varied = 0;
    setting s;
    make_setting(&s, make_context(3), 1);
    rcn_sample_options options = plain(N, N, 1);
    options.augment = EVERYTHING;
    options.augment.share = 0.15; /* some planes are changed, some are not */
    for (int b = 0; b < SAMPLES; ++b) {
        rngs[b] = rcn__rng_make(7, (uint64_t)b);
        CHECK_STATUS(rcn__sample_take(&samples[b], together[b], all_codes[b], maps[b], s.ctx,
                                      &s.from, &options, &rngs[b]),
                     RCN_OK);
    }
    CHECK_STATUS(rcn__samples_draw(samples, SAMPLES, s.ctx, &options), RCN_OK);
    for (int b = 0; b < SAMPLES; ++b) rcn__sample_free(&samples[b], s.ctx);
    static float before[SAMPLES][FLOATS];
    memcpy(before, together, sizeof before);
    CHECK_STATUS(rcn__samples_vary(together[0], s.ctx, SAMPLES, 2, &options, rngs), RCN_OK);
    for (int b = 0; b < SAMPLES; ++b)
        for (int c = 0; c < 2; ++c)
            varied +=
                memcmp(together[b] + c * N * N, before[b] + c * N * N, sizeof(float) * N * N) != 0;
    CHECK(varied > 2 && varied < 2 * SAMPLES);
    for (int b = 0; b < SAMPLES; ++b) {
        CHECK_STATUS(draw_sample(alone, codes, map, s.ctx, &s.from, &options, 7, (uint64_t)b),
                     RCN_OK);
        CHECK(!memcmp(alone, together[b], sizeof alone));
        CHECK(!memcmp(codes, all_codes[b], sizeof codes) && !memcmp(map, maps[b], sizeof map));
    }
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

static void test_bad_arguments(void) {
    static float image[2 * VOXELS], map[VOXELS];
    static uint32_t codes[VOXELS];
    setting s;
    make_setting(&s, make_context(1), 1);
    rcn_sample_options options = plain(X, Y, 1);
    CHECK_STATUS(draw_sample(image, codes, NULL, s.ctx, &s.from, &options, 1, 2), RCN_EINVALID);
    CHECK_ERROR(s.ctx, "target map");
    CHECK_STATUS(draw_sample(NULL, codes, map, s.ctx, &s.from, &options, 1, 2), RCN_EINVALID);
    options.size[1] = 0;
    CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 1, 2), RCN_EINVALID);
    options = plain(X, Y, 1);
    options.foreground = NAN;
    CHECK(rcn__sample_check(&options) != NULL);
    options = plain(X, Y, 1);
    options.augment.gamma = -1;
    CHECK(rcn__sample_check(&options) != NULL);
    options = plain(X, Y, 1);
    CHECK(rcn__sample_check(&options) == NULL);
    s.scale.channels = 1;
    CHECK_STATUS(draw_sample(image, codes, map, s.ctx, &s.from, &options, 1, 2), RCN_EINVALID);
    CHECK_ERROR(s.ctx, "channels");
    CHECK_STATUS(rcn_foci_create(&s.foci, s.ctx, NULL), RCN_EINVALID);
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

static rcn_status draw_one(rcn_context *ctx, void *payload) {
    static float image[2 * VOXELS], map[VOXELS];
    static uint32_t codes[VOXELS];
    setting *s = payload;
    rcn_foci *foci = NULL;
    rcn_sample_options options = plain(X, Y, Z);
    options.augment = EVERYTHING;
    rcn_status status = rcn_foci_create(&foci, ctx, s->votes);
    if (status == RCN_OK) status = draw_sample(image, codes, map, ctx, &s->from, &options, 1, 4);
    rcn_foci_destroy(foci);
    return status;
}

static void test_failing_and_canceling(void) {
    setting s;
    make_setting(&s, make_context(1), Z);
    check_failing_allocations(draw_one, &s);
    check_cancelling(draw_one, &s, 3);
    free_setting(&s);
    rcn_context_destroy(s.ctx);
}

int main(void) {
    RUN(test_whole_image_is_copied);
    RUN(test_small_image_is_continued);
    RUN(test_flips_and_turns);
    RUN(test_votes_follow_the_image);
    RUN(test_resampling_to_the_training_spacing);
    RUN(test_foci);
    RUN(test_foci_of_a_large_mask);
    RUN(test_intensities);
    RUN(test_changes_are_about_the_whole_sample);
    RUN(test_same_bits_for_any_threads);
    RUN(test_same_bits_in_any_company);
    RUN(test_bad_arguments);
    RUN(test_failing_and_canceling);
    return TEST_RESULT;
}
