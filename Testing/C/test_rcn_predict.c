// SPDX-License-Identifier: Apache-2.0
/* Prediction of whole images: tiles, slices and flips against naive twins, and bounded memory. */
#include "rcn/rcn_predict.h"

#include "rcn/rcn_calib.h"

#include "rcn_test.h"
#include "rcn_test_fill.h"

/* A small network for three raters, and an image for it. */
typedef struct scene {
    rcn_net *net;
    rcn_loss *loss;
    rcn_image image;
    rcn_channel channels[2];
    rcn_scale scale;
} scene;

static rcn_status scene_make(scene *s, rcn_context *ctx, rcn_arch arch, int64_t x, int64_t y,
                             int64_t z) {
    rcn_net_options net = RCN_NET_OPTIONS_INIT;
    rcn_loss_options loss = RCN_LOSS_OPTIONS_INIT;
    rcn_normalize rule = RCN_NORMALIZE_INIT;
    const rcn_image image = {malloc(sizeof(float) * (size_t)(2 * x * y * z)), RCN_FLOAT32, 2,
                             rcn_geometry_make(x, y, z)};
    net.arch = arch;
    net.channels = 2;
    net.outputs = 4;
    net.width = 8;
    net.depth = 2;
    loss.raters = 3;
    memset(s, 0, sizeof *s);
    s->image = image;
    fill_values(image.data, "image", 2 * x * y * z, 1, 0.2);
    for (int c = 0; c < 2; ++c) {
        s->channels[c].image = image;
        s->channels[c].component = c;
    }
    rcn_status status = rcn_normalize_fit(&s->scale, ctx, &rule, s->channels, 2);
    if (status == RCN_OK) status = rcn_loss_create(&s->loss, ctx, &loss);
    if (status == RCN_OK) status = rcn_net_create(&s->net, ctx, &net);
    if (status == RCN_OK) fill_net(s->net);
    return status;
}

static void scene_free(scene *s) {
    rcn_net_destroy(s->net);
    rcn_loss_destroy(s->loss);
    free(s->image.data);
}

/* out (voxels, 4): a box straight through the network; flips as bits x, y, z. */
static void straight(float *out, const scene *s, rcn_context *ctx, const int64_t first[3],
                     const int64_t size[3], int flips) {
    const int64_t n = size[0] * size[1] * size[2];
    const rcn_batch batch = {1, {size[0], size[1], size[2]}};
    float *box = malloc(sizeof(float) * (size_t)(2 * n));
    float *turned = malloc(sizeof(float) * (size_t)(2 * n));
    float *logits = malloc(sizeof(float) * (size_t)(4 * n));
    float *levels = malloc(sizeof(float) * (size_t)(4 * n));
    int64_t *from = malloc(sizeof *from * (size_t)n);
    for (int64_t i = 0; i < n; ++i) {
        int64_t at[3] = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
        for (int d = 0; d < 3; ++d)
            if (flips >> d & 1) at[d] = size[d] - 1 - at[d];
        from[i] = at[0] + size[0] * (at[1] + size[1] * at[2]);
    }
    rcn_normalize_box(box, &s->scale, s->channels, first, size);
    for (int c = 0; c < 2; ++c)
        for (int64_t i = 0; i < n; ++i) turned[c * n + i] = box[c * n + from[i]];
    CHECK_STATUS(rcn_net_predict(logits, s->net, turned, &batch), RCN_OK);
    CHECK_STATUS(rcn_loss_levels(levels, s->loss, ctx, logits, NULL, 1, n), RCN_OK);
    for (int k = 0; k < 4; ++k)
        for (int64_t i = 0; i < n; ++i) out[4 * i + k] = levels[k * n + from[i]];
    free(box);
    free(turned);
    free(logits);
    free(levels);
    free(from);
}

static double largest_difference(const float *a, const float *b, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i)
        if (!(fabs(a[i] - b[i]) <= largest)) largest = fabs(a[i] - b[i]);
    return largest;
}

static float *new_levels(const scene *s) {
    return malloc(sizeof(float) * (size_t)(4 * rcn_geometry_voxels(&s->image.geometry)));
}

static void what_fits_is_one_tile(void) {
    static const rcn_arch archs[] = {RCN_UNET, RCN_UNET3D};
    rcn_context *ctx = make_context(2);
    for (int i = 0; i < 2; ++i) {
        scene s;
        const int64_t origin[3] = {0, 0, 0};
        CHECK_STATUS(scene_make(&s, ctx, archs[i], 37, 26, i ? 13 : 1), RCN_OK);
        float *levels = new_levels(&s), *expected = new_levels(&s);
        int64_t tile[3], tiles = 0;
        CHECK_STATUS(rcn_predict_plan(tile, &tiles, s.net, s.image.geometry.size, NULL), RCN_OK);
        CHECK(tiles == 1 && tile[0] == 37 && tile[1] == 26 && tile[2] == (i ? 13 : 1));
        CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                     RCN_OK);
        straight(expected, &s, ctx, origin, s.image.geometry.size, 0);
        CHECK(largest_difference(levels, expected, 4 * 37 * 26 * (i ? 13 : 1)) < 1e-6);
        free(levels);
        free(expected);
        scene_free(&s);
    }
    rcn_context_destroy(ctx);
}

/* Tiles with weights and a sum of weights per voxel, as one would write it down. */
static void naive(float *out, const scene *s, rcn_context *ctx, const int64_t tile[3],
                  const int64_t *starts[3], const int counts[3], int flips) {
    const int64_t *size = s->image.geometry.size, voxels = size[0] * size[1] * size[2];
    double *sums = calloc((size_t)(5 * voxels), sizeof *sums);
    float *levels = malloc(sizeof(float) * (size_t)(4 * tile[0] * tile[1] * tile[2]));
    for (int tz = 0; tz < counts[2]; ++tz)
        for (int ty = 0; ty < counts[1]; ++ty)
            for (int tx = 0; tx < counts[0]; ++tx)
                for (int f = 0; f < flips; ++f) {
                    const int64_t first[3] = {starts[0][tx], starts[1][ty], starts[2][tz]};
                    straight(levels, s, ctx, first, tile, f);
                    for (int64_t i = 0; i < tile[0] * tile[1] * tile[2]; ++i) {
                        const int64_t at[3] = {i % tile[0], i / tile[0] % tile[1],
                                               i / tile[0] / tile[1]};
                        double exponent = 0;
                        for (int d = 0; d < 3; ++d) {
                            const double middle = ((double)tile[d] - 1) / 2;
                            const double sigma = (double)tile[d] / 8;
                            exponent -= pow(((double)at[d] - middle) / sigma, 2) / 2;
                        }
                        const int64_t to =
                            first[0] + at[0] +
                            size[0] * (first[1] + at[1] + size[1] * (first[2] + at[2]));
                        for (int k = 0; k < 4; ++k)
                            sums[5 * to + k] += exp(exponent) * levels[4 * i + k];
                        sums[5 * to + 4] += exp(exponent);
                    }
                }
    for (int64_t i = 0; i < voxels; ++i)
        for (int k = 0; k < 4; ++k) out[4 * i + k] = (float)(sums[5 * i + k] / sums[5 * i + 4]);
    free(sums);
    free(levels);
}

static void tiles_are_blended(void) {
    static const int64_t x_starts[] = {0, 9, 18, 27}, y_starts[] = {0, 11}, z_starts[] = {0, 6},
                         whole[] = {0};
    rcn_context *ctx = make_context(2);
    for (int dimensions = 2; dimensions <= 3; ++dimensions)
        for (int flips = 0; flips < 2; ++flips) {
            scene s;
            rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
            /* x: 39 - 12 = 27 in steps of at most 9; y: 27 - 16; z: 14 - 8. */
            const int64_t tile[3] = {12, 16, dimensions == 3 ? 8 : 1};
            const int64_t *starts[3] = {x_starts, y_starts, dimensions == 3 ? z_starts : whole};
            const int counts[3] = {4, 2, dimensions == 3 ? 2 : 1};
            CHECK_STATUS(scene_make(&s, ctx, dimensions == 3 ? RCN_UNET3D : RCN_UNET, 39, 27,
                                    dimensions == 3 ? 14 : 1),
                         RCN_OK);
            float *levels = new_levels(&s), *expected = new_levels(&s);
            const int64_t voxels = rcn_geometry_voxels(&s.image.geometry);
            memcpy(options.tile, tile, sizeof tile);
            options.flips = flips;
            CHECK_STATUS(
                rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, &options),
                RCN_OK);
            naive(expected, &s, ctx, tile, starts, counts, flips ? 1 << dimensions : 1);
            CHECK(largest_difference(levels, expected, 4 * voxels) < 2e-6);
            for (int64_t i = 0; i < voxels; ++i)
                CHECK_NEAR(levels[4 * i] + levels[4 * i + 1] + levels[4 * i + 2] +
                               levels[4 * i + 3],
                           1, 1e-5);
            free(levels);
            free(expected);
            scene_free(&s);
        }
    rcn_context_destroy(ctx);
}

/* A network that is as sure as floats can be stays so through tiles and flips, and no surer. */
static void sure_levels_are_probabilities(void) {
    rcn_context *ctx = make_context(2);
    scene s;
    rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, 90, 70, 1), RCN_OK);
    float *levels = new_levels(&s), *readout = new_levels(&s);
    const rcn_parameter *weight = rcn_net_find_parameter(s.net, "head.weight"),
                        *bias = rcn_net_find_parameter(s.net, "head.bias");
    float *values = rcn_net_edit_values(s.net);
    for (int64_t i = 0; i < weight->count; ++i) values[weight->offset + i] = 0;
    for (int k = 0; k < 4; ++k) values[bias->offset + k] = k == 3 ? 200.0f : 0.0f;
    options.tile[0] = 17;
    options.tile[1] = 23;
    options.overlap = 0.6;
    options.flips = 1;
    CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, &options),
                 RCN_OK);
    int above = 0;
    for (int i = 0; i < 4 * 90 * 70; ++i) above += levels[i] > 1 || levels[i] < 0;
    CHECK(above == 0);
    const rcn_image image = {levels, RCN_FLOAT32, 4, s.image.geometry};
    CHECK_STATUS(rcn_readout_apply(readout, ctx, &image, RCN_READOUT_MAJORITY, 0), RCN_OK);
    CHECK(readout[0] == 1);
    free(levels);
    free(readout);
    scene_free(&s);
    rcn_context_destroy(ctx);
}

/* A 2-D network on a volume is the network on each slice, however many go at a time. */
static void volumes_go_slice_by_slice(void) {
    enum { X = 21, Y = 18, Z = 11 };
    rcn_context *ctx = make_context(2);
    scene s;
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, X, Y, Z), RCN_OK);
    float *levels = new_levels(&s), *expected = new_levels(&s);
    for (int64_t z = 0; z < Z; ++z) {
        const int64_t first[3] = {0, 0, z}, size[3] = {X, Y, 1};
        straight(expected + 4 * X * Y * z, &s, ctx, first, size, 0);
    }
    CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_OK);
    CHECK(largest_difference(levels, expected, 4 * X * Y * Z) < 4e-6);
    free(levels);
    free(expected);
    scene_free(&s);
    rcn_context_destroy(ctx);
}

/* Memory is that of a tile: eight times the image takes no more. */
static void memory_is_bounded(void) {
    static const rcn_arch archs[] = {RCN_UNET, RCN_UNET3D};
    for (int i = 0; i < 2; ++i) {
        size_t peak[2];
        for (int large = 0; large < 2; ++large) {
            const int64_t side = (i ? 48 : 160) * (large + 1);
            rcn_context *ctx = make_context(1);
            rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
            int64_t tile[3], tiles = 0;
            scene s;
            options.memory = (size_t)(i ? 12 : 2) << 20;
            options.overlap = 0;
            CHECK_STATUS(scene_make(&s, ctx, archs[i], side, side, i ? side : 1), RCN_OK);
            const size_t before = rcn_context_bytes(ctx);
            float *levels = new_levels(&s);
            CHECK_STATUS(rcn_predict_plan(tile, &tiles, s.net, s.image.geometry.size, &options),
                         RCN_OK);
            CHECK(tiles > 1);
            CHECK_STATUS(
                rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, &options),
                RCN_OK);
            peak[large] = rcn_context_peak_bytes(ctx) - before;
            /* The tile, and the kernels with their packed weights and scratch memory. */
            CHECK(peak[large] < options.memory + ((size_t)6 << 20));
            free(levels);
            scene_free(&s);
            rcn_context_destroy(ctx);
        }
        CHECK(peak[1] < peak[0] + ((size_t)1 << 20));
    }
}

static void sureness_and_masks(void) {
    enum { N = 5 };
    float levels[4 * N] = {1, 0, 0, 0, .25f, .25f, .25f, .25f, .5f, .5f, 0, 0, .7f, .1f, .1f, .1f};
    float out[N], probability[N] = {0, .4999f, .5f, .51f, 1};
    uint8_t mask[N];
    rcn_context *ctx = make_context(1);
    levels[19] = 1;
    const rcn_image image = {levels, RCN_FLOAT32, 4, rcn_geometry_make(N, 1, 1)};
    const rcn_image one = {probability, RCN_FLOAT32, 1, rcn_geometry_make(N, 1, 1)};
    CHECK_STATUS(rcn_predict_entropy(out, ctx, &image), RCN_OK);
    const double expected[N] = {0, 2, 1, -.7 * log2(.7) - .3 * log2(.1), 0};
    for (int i = 0; i < N; ++i) CHECK_NEAR(out[i], expected[i], 1e-6);
    CHECK_STATUS(rcn_predict_mask(mask, ctx, &one, 0.5), RCN_OK);
    for (int i = 0; i < N; ++i) CHECK(mask[i] == (i >= 2));
    CHECK_STATUS(rcn_predict_mask(mask, ctx, &image, 0.5), RCN_EINVALID);
    CHECK_STATUS(rcn_predict_entropy(out, ctx, &one), RCN_EINVALID);
    CHECK_STATUS(rcn_predict_entropy(NULL, ctx, &image), RCN_EINVALID);
    rcn_context_destroy(ctx);
}

/* The means of three structures are a softmax of four outputs, and so are three raters' levels: the
 * same bits through tiles and flips. Levels of one tile are those of the means. */
static void several_structures(void) {
    enum { VOXELS = 37 * 26, K = 5 };
    rcn_context *ctx = make_context(2);
    rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
    rcn_predict_options tiles = RCN_PREDICT_OPTIONS_INIT;
    rcn_loss *loss = NULL;
    scene s;
    static float means[4 * VOXELS], levels[4 * VOXELS], part[(K + 1) * VOXELS];
    static float expected[(K + 1) * VOXELS];
    const float correlation = 0.7f;
    options.kind = RCN_LOSS_DIRICHLET_MULTINOMIAL;
    options.raters = K;
    options.structures = 3;
    tiles.tile[0] = tiles.tile[1] = 16;
    tiles.flips = 1;
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, 37, 26, 1), RCN_OK);
    CHECK_STATUS(rcn_loss_create(&loss, ctx, &options), RCN_OK);
    for (int i = 0; i < 2; ++i) {
        const rcn_predict_options *how = i ? &tiles : NULL;
        CHECK_STATUS(rcn_predict_means(means, s.net, loss, &correlation, &s.scale, s.channels, how),
                     RCN_OK);
        CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, how),
                     RCN_OK);
        CHECK(!memcmp(means, levels, sizeof means));
        for (int c = 1; c <= 3; ++c) {
            CHECK_STATUS(rcn_predict_structure(part, s.net, loss, c, &correlation, &s.scale,
                                               s.channels, how),
                         RCN_OK);
            CHECK_STATUS(rcn_levels_of_mean(expected, ctx, means + c, 4, VOXELS, K,
                                            rcn_loss_correlation(loss, &correlation)),
                         RCN_OK);
            if (!i) CHECK(largest_difference(part, expected, (K + 1) * VOXELS) < 1e-6);
            for (int v = 0; v < VOXELS; ++v) { /* averaging keeps the mean */
                double mean = 0;
                for (int k = 0; k <= K; ++k) mean += (double)k / K * part[(K + 1) * v + k];
                CHECK_NEAR(mean, means[4 * v + c], 2e-6);
            }
        }
    }
    CHECK_STATUS(
        rcn_predict_structure(part, s.net, loss, 4, &correlation, &s.scale, s.channels, NULL),
        RCN_EINVALID);
    CHECK_ERROR(ctx, "Structure 4 does not exist");
    CHECK_STATUS(rcn_predict_levels(part, s.net, loss, &correlation, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_predict_readout(part, s.net, loss, RCN_READOUT_EXPECTED, 0, &correlation,
                                     &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "Each of the 3 structures has its own levels");
    rcn_loss_destroy(loss);
    scene_free(&s);
    rcn_context_destroy(ctx);
}

/* ---- without keeping levels ------------------------------------------------------------------ */

/* Writes slabs one behind the other; they must come in order. */
typedef struct slabs {
    float *levels;
    int64_t next, count;
    int64_t most; /* voxels of the largest */
    rcn_status status;
} slabs;

static rcn_status take_slab(rcn_image *image, int64_t first, void *payload) {
    slabs *to = payload;
    const int64_t voxels = rcn_geometry_voxels(&image->geometry);
    float *levels = image->data;
    CHECK(first == to->next && image->components == 4 && image->type == RCN_FLOAT32);
    for (int64_t i = 0; i < 4 * voxels; ++i) {
        to->levels[4 * first + i] = levels[i];
        levels[i] = 7; /* they are ours */
    }
    to->next += voxels;
    to->count += 1;
    if (voxels > to->most) to->most = voxels;
    return to->status;
}

/* Ways of covering an image: one tile; tiles that overlap along each axis; that lie side by side;
 * along one axis only; flips of all these. */
static const struct {
    int64_t tile[3];
    double overlap;
    int flips;
} WAYS[] = {{{0, 0, 0}, 0.25, 0}, {{12, 16, 8}, 0.25, 0}, {{12, 16, 8}, 0.25, 1},
            {{16, 13, 7}, 0, 0},  {{0, 0, 6}, 0.5, 0},    {{0, 16, 0}, 0.6, 0},
            {{0, 0, 0}, 0.25, 1}, {{16, 0, 0}, 0, 1}};

enum { WAY_COUNT = sizeof WAYS / sizeof *WAYS };

static rcn_predict_options way(int i) {
    rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
    memcpy(options.tile, WAYS[i].tile, sizeof options.tile);
    options.overlap = WAYS[i].overlap;
    options.flips = WAYS[i].flips;
    return options;
}

/* In 2-D, a volume by slices and in 3-D, any way: the same bits, in one float per voxel, with one
 * thread or several. */
static void slabs_and_readouts_are_those_of_the_levels(void) {
    enum { X = 48, Y = 39, Z = 14 };
    static const struct {
        rcn_readout readout;
        int at_least;
    } readouts[] = {{RCN_READOUT_MAJORITY, 0},
                    {RCN_READOUT_EXPECTED, 0},
                    {RCN_READOUT_AT_LEAST, 1},
                    {RCN_READOUT_AT_LEAST, 3},
                    {RCN_READOUT_MORE_THAN_HALF, 0}};
    for (int kind = 0; kind < 3; ++kind) {
        const int64_t z = kind ? Z : 1, voxels = X * Y * z;
        scene one, several;
        rcn_context *ctx = make_context(1), *threads = make_context(3);
        CHECK_STATUS(scene_make(&one, ctx, kind == 2 ? RCN_UNET3D : RCN_UNET, X, Y, z), RCN_OK);
        CHECK_STATUS(scene_make(&several, threads, kind == 2 ? RCN_UNET3D : RCN_UNET, X, Y, z),
                     RCN_OK);
        float *levels = new_levels(&one), *parts = new_levels(&one);
        float *expected = new_levels(&one), *out = new_levels(&one);
        const rcn_image image = {levels, RCN_FLOAT32, 4, one.image.geometry};
        for (int i = 0; i < WAY_COUNT; ++i) {
            const rcn_predict_options options = way(i);
            slabs to = {parts, 0, 0, 0, RCN_OK};
            CHECK_STATUS(rcn_predict_levels(levels, several.net, several.loss, NULL, &several.scale,
                                            several.channels, &options),
                         RCN_OK);
            CHECK_STATUS(rcn_predict_slabs(take_slab, &to, one.net, one.loss, NULL, &one.scale,
                                           one.channels, &options),
                         RCN_OK);
            CHECK(to.next == voxels);
            int64_t most = 0;
            CHECK_STATUS(rcn_predict_slab_plan(&most, one.net, one.image.geometry.size, &options),
                         RCN_OK);
            CHECK(to.most <= most && most <= voxels);
            CHECK(!memcmp(levels, parts, sizeof *levels * (size_t)(4 * voxels)));
            /* 6 of 14 slices; the last ones of 2-D networks come 8 at a time. */
            if (kind && options.tile[2]) CHECK(to.count > 1 && to.most < voxels);
            for (int r = 0; r < 5; ++r) {
                if (i > 1 && r != i % 5) continue; /* all of them twice, one with each other way */
                CHECK_STATUS(rcn_readout_apply(expected, ctx, &image, readouts[r].readout,
                                               readouts[r].at_least),
                             RCN_OK);
                CHECK_STATUS(rcn_predict_readout(out, several.net, several.loss,
                                                 readouts[r].readout, readouts[r].at_least, NULL,
                                                 &several.scale, several.channels, &options),
                             RCN_OK);
                CHECK(!memcmp(out, expected, sizeof *out * (size_t)voxels));
            }
        }
        free(levels);
        free(parts);
        free(expected);
        free(out);
        scene_free(&one);
        scene_free(&several);
        rcn_context_destroy(ctx);
        rcn_context_destroy(threads);
    }
}

/* Outputs log 1, log 2, log 3, log 4 everywhere: levels 0.1, 0.2, 0.3, 0.4. */
static void known_readouts(void) {
    enum { X = 31, Y = 20 };
    float out[X * Y];
    rcn_context *ctx = make_context(2);
    scene s;
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, X, Y, 1), RCN_OK);
    const rcn_parameter *weight = rcn_net_find_parameter(s.net, "head.weight"),
                        *bias = rcn_net_find_parameter(s.net, "head.bias");
    float *values = rcn_net_edit_values(s.net);
    for (int64_t i = 0; i < weight->count; ++i) values[weight->offset + i] = 0;
    for (int k = 0; k < 4; ++k) values[bias->offset + k] = logf((float)(k + 1));
    for (int i = 0; i < WAY_COUNT; ++i) {
        const rcn_predict_options options = way(i);
        CHECK_STATUS(rcn_predict_readout(out, s.net, s.loss, RCN_READOUT_EXPECTED, 0, NULL,
                                         &s.scale, s.channels, &options),
                     RCN_OK);
        for (int v = 0; v < X * Y; ++v) CHECK_NEAR(out[v], (0.2 + 2 * 0.3 + 3 * 0.4) / 3, 1e-6);
        CHECK_STATUS(rcn_predict_readout(out, s.net, s.loss, RCN_READOUT_AT_LEAST, 3, NULL,
                                         &s.scale, s.channels, &options),
                     RCN_OK);
        for (int v = 0; v < X * Y; ++v) CHECK_NEAR(out[v], 0.4, 1e-6);
    }
    scene_free(&s);
    rcn_context_destroy(ctx);
}

/* Beside the readout, memory is that of a tile and of a slab, however many levels there are. */
static void readouts_take_no_levels(void) {
    static const rcn_arch archs[] = {RCN_UNET, RCN_UNET3D};
    for (int i = 0; i < 2; ++i) {
        rcn_context *ctx = make_context(1);
        rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
        const int64_t side = i ? 96 : 320, z = i ? 192 : 24;
        scene s;
        int64_t tile[3], tiles;
        options.memory = (size_t)(i ? 12 : 2) << 20;
        options.overlap = 0;
        CHECK_STATUS(scene_make(&s, ctx, archs[i], side, side, z), RCN_OK);
        float *out = new_levels(&s);
        CHECK_STATUS(rcn_predict_plan(tile, &tiles, s.net, s.image.geometry.size, &options),
                     RCN_OK);
        const size_t before = rcn_context_bytes(ctx);
        CHECK_STATUS(rcn_predict_readout(out, s.net, s.loss, RCN_READOUT_MAJORITY, 0, NULL,
                                         &s.scale, s.channels, &options),
                     RCN_OK);
        const size_t levels = sizeof(float) * (size_t)(4 * side * side * z);
        int64_t voxels = 0;
        CHECK_STATUS(rcn_predict_slab_plan(&voxels, s.net, s.image.geometry.size, &options),
                     RCN_OK);
        CHECK(voxels <= side * side * tile[2] * (i ? 1 : 8));
        const size_t slab = sizeof(float) * (size_t)(4 * voxels);
        CHECK(tiles > 1 && slab < levels / 2);
        CHECK(rcn_context_peak_bytes(ctx) - before < options.memory + slab + ((size_t)6 << 20));
        free(out);
        scene_free(&s);
        rcn_context_destroy(ctx);
    }
}

static void what_readouts_refuse(void) {
    enum { X = 24, Y = 20 };
    rcn_context *ctx = make_context(2);
    scene s;
    float out[X * Y], levels[4 * X * Y];
    char sentence[256];
    slabs to = {levels, 0, 0, 0, RCN_OK};
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, X, Y, 1), RCN_OK);
    for (int i = 0; i < X * Y; ++i) out[i] = -7;
    const rcn_readout bad = (rcn_readout)9, expected = RCN_READOUT_EXPECTED;
    CHECK_STATUS(
        rcn_predict_readout(out, NULL, s.loss, expected, 0, NULL, &s.scale, s.channels, NULL),
        RCN_EINVALID);
    CHECK_STATUS(
        rcn_predict_readout(NULL, s.net, s.loss, expected, 0, NULL, &s.scale, s.channels, NULL),
        RCN_EINVALID);
    CHECK_ERROR(ctx, "readout is NULL");
    CHECK_STATUS(
        rcn_predict_readout(out, s.net, NULL, expected, 0, NULL, &s.scale, s.channels, NULL),
        RCN_EINVALID);
    CHECK_STATUS(rcn_predict_readout(out, s.net, s.loss, bad, 0, NULL, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "Unknown readout");
    for (int t = 0; t <= 4; t += 4)
        CHECK_STATUS(rcn_predict_readout(out, s.net, s.loss, RCN_READOUT_AT_LEAST, t, NULL,
                                         &s.scale, s.channels, NULL),
                     RCN_EINVALID);
    CHECK_ERROR(ctx, "t between 1 and the number of raters");
    CHECK_STATUS(rcn_predict_readout(out, s.net, s.loss, expected, 0, NULL, &s.scale, NULL, NULL),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_predict_slabs(NULL, &to, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_predict_slabs(take_slab, &to, NULL, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK(to.count == 0);
    int64_t voxels = -7;
    const int64_t none[3] = {4, 0, 1};
    rcn_predict_options tiles = RCN_PREDICT_OPTIONS_INIT;
    CHECK_STATUS(rcn_predict_slab_plan(NULL, s.net, s.image.geometry.size, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_predict_slab_plan(&voxels, NULL, s.image.geometry.size, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_predict_slab_plan(&voxels, s.net, none, NULL), RCN_EINVALID);
    tiles.overlap = 1;
    CHECK_STATUS(rcn_predict_slab_plan(&voxels, s.net, s.image.geometry.size, &tiles),
                 RCN_EINVALID);
    CHECK(voxels == -7);
    for (int i = 0; i < X * Y; ++i) CHECK(out[i] == -7);

    /* Whoever takes the levels may end it. */
    to.status = RCN_EIO;
    CHECK_STATUS(rcn_predict_slabs(take_slab, &to, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_EIO);
    CHECK(to.count == 1);

    /* The same sentence as of levels. */
    float *values = rcn_net_edit_values(s.net);
    const rcn_parameter *head = rcn_net_find_parameter(s.net, "head.weight");
    for (int64_t i = 0; i < head->count; ++i) values[head->offset + i] = 3e38f;
    CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_EDATA);
    snprintf(sentence, sizeof sentence, "%s", rcn_context_error(ctx));
    CHECK(strstr(sentence, "The network's outputs are not finite") == sentence);
    for (int i = 0; i < WAY_COUNT; ++i) {
        const rcn_predict_options options = way(i);
        CHECK_STATUS(rcn_predict_readout(out, s.net, s.loss, expected, 0, NULL, &s.scale,
                                         s.channels, &options),
                     RCN_EDATA);
        CHECK(!strcmp(rcn_context_error(ctx), sentence));
    }
    scene_free(&s);
    rcn_context_destroy(ctx);
}

/* Finite outputs, but a threshold of the loss that is not a number. */
static void levels_that_are_not_finite(void) {
    enum { X = 24, Y = 20 };
    const float thresholds[3] = {0, NAN, 0};
    rcn_context *ctx = make_context(2);
    scene s;
    float out[X * Y], levels[4 * X * Y];
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    rcn_loss_options coral = RCN_LOSS_OPTIONS_INIT;
    rcn_net *net = NULL;
    rcn_loss *loss = NULL;
    options.channels = 2;
    options.outputs = 1;
    options.width = 8;
    options.depth = 2;
    coral.kind = RCN_LOSS_CORAL;
    coral.raters = 3;
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, X, Y, 1), RCN_OK);
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_OK);
    CHECK_STATUS(rcn_loss_create(&loss, ctx, &coral), RCN_OK);
    fill_net(net);
    CHECK_STATUS(rcn_predict_readout(out, net, loss, RCN_READOUT_EXPECTED, 0, thresholds, &s.scale,
                                     s.channels, NULL),
                 RCN_EDATA);
    CHECK_ERROR(ctx, "The levels are not finite");
    CHECK_STATUS(rcn_predict_levels(levels, net, loss, thresholds, &s.scale, s.channels, NULL),
                 RCN_EDATA);
    CHECK_ERROR(ctx, "The levels are not finite");
    rcn_net_destroy(net);
    rcn_loss_destroy(loss);
    scene_free(&s);
    rcn_context_destroy(ctx);
}

static rcn_status read_out_all(rcn_context *ctx, void *payload) {
    scene s;
    rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
    rcn_status status = scene_make(&s, ctx, RCN_UNET, 40, 30, 1);
    float *out = new_levels(&s);
    options.tile[1] = 16;
    options.flips = *(const int *)payload;
    if (status == RCN_OK)
        status = rcn_predict_readout(out, s.net, s.loss, RCN_READOUT_MAJORITY, 0, NULL, &s.scale,
                                     s.channels, &options);
    free(out);
    scene_free(&s);
    return status;
}

static void readouts_that_fail_or_are_canceled(void) {
    int flips = 1;
    check_failing_allocations(read_out_all, &flips);
    flips = 0;
    check_cancelling(read_out_all, &flips, 10);
}

static void most_probable_labels(void) {
    rcn_context *ctx = make_context(2);
    float means[] = {0.2f, 0.5f, 0.3f, 0.4f, 0.2f, 0.4f, 0.2f, 0.4f, 0.4f};
    rcn_image image = {means, RCN_FLOAT32, 3, rcn_geometry_make(3, 1, 1)};
    uint8_t labels[3] = {9, 9, 9};
    CHECK_STATUS(rcn_predict_labels(labels, ctx, &image, NULL), RCN_OK);
    CHECK(labels[0] == 1 && labels[1] == 0 && labels[2] == 1);
    const uint8_t values[] = {0, 200, 7};
    CHECK_STATUS(rcn_predict_labels(labels, ctx, &image, values), RCN_OK);
    CHECK(labels[0] == 200 && labels[1] == 0 && labels[2] == 200);
    image.components = 1;
    CHECK_STATUS(rcn_predict_labels(labels, ctx, &image, NULL), RCN_EINVALID);
    image.components = RCN_MAX_STRUCTURES + 2;
    CHECK_STATUS(rcn_predict_labels(labels, ctx, &image, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_predict_labels(NULL, ctx, &image, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_predict_labels(labels, NULL, &image, NULL), RCN_EINVALID);
    CHECK(labels[0] == 200);
    rcn_context_destroy(ctx);
}

static void what_does_not_fit_is_refused(void) {
    rcn_context *ctx = make_context(1);
    scene s;
    float levels[4 * 64 * 64], parameters[1] = {0};
    rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, 24, 20, 1), RCN_OK);
    CHECK(!rcn_predict_check(NULL) && !rcn_predict_check(&options));
    options.overlap = 0.95;
    CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, &options),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "overlap");
    options.overlap = 0;
    options.tile[1] = -1;
    CHECK(rcn_predict_check(&options) != NULL);
    options.tile[1] = 0;
    options.flips = 2;
    CHECK(rcn_predict_check(&options) != NULL);
    CHECK_STATUS(rcn_predict_levels(NULL, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK_STATUS(rcn_predict_levels(levels, s.net, NULL, NULL, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    s.scale.channels = 1;
    CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "1 channel, but the network takes 2");
    s.scale.channels = 2;
    rcn_loss_options other = RCN_LOSS_OPTIONS_INIT;
    rcn_loss *loss = NULL;
    other.raters = 5;
    other.kind = RCN_LOSS_BETA_BINOMIAL;
    CHECK_STATUS(rcn_loss_create(&loss, ctx, &other), RCN_OK);
    CHECK(rcn_loss_raters(loss) == 5);
    CHECK_STATUS(rcn_predict_levels(levels, s.net, loss, parameters, &s.scale, s.channels, NULL),
                 RCN_EINVALID);
    CHECK_ERROR(ctx, "1 outputs per voxel, but the network gives 4");
    rcn_loss_destroy(loss);
    /* Weights that overflow are not passed on as NaN. */
    float *values = rcn_net_edit_values(s.net);
    const rcn_parameter *head = rcn_net_find_parameter(s.net, "head.weight");
    for (int64_t i = 0; i < head->count; ++i) values[head->offset + i] = 3e38f;
    CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, NULL),
                 RCN_EDATA);
    CHECK_ERROR(ctx, "not finite");
    scene_free(&s);
    rcn_context_destroy(ctx);
}

static rcn_status predict_all(rcn_context *ctx, void *payload) {
    scene s;
    rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
    rcn_status status = scene_make(&s, ctx, RCN_UNET, 40, 20, 1);
    float *levels = new_levels(&s);
    options.tile[0] = 24;
    options.flips = *(const int *)payload;
    if (status == RCN_OK)
        status = rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, &options);
    free(levels);
    scene_free(&s);
    return status;
}

static void failing_allocations_and_cancel(void) {
    int flips = 1;
    check_failing_allocations(predict_all, &flips);
    flips = 0;
    check_cancelling(predict_all, &flips, 10);
}

/* Progress only ever rises, to the end. */
static int rises(double fraction, const char *stage, void *payload) {
    double *last = payload;
    (void)stage;
    CHECK(fraction >= *last - 1e-12 && fraction <= 1 + 1e-12);
    *last = fraction;
    return 0;
}

static void progress_rises(void) {
    rcn_context *ctx = make_context(1);
    scene s;
    double last = 0;
    rcn_predict_options options = RCN_PREDICT_OPTIONS_INIT;
    CHECK_STATUS(scene_make(&s, ctx, RCN_UNET, 40, 20, 3), RCN_OK);
    float *levels = new_levels(&s);
    options.tile[0] = 24;
    options.flips = 1;
    int64_t tile[3]; /* kernels that are made in between would count once more from 0 */
    CHECK_STATUS(rcn_predict_plan(tile, NULL, s.net, s.image.geometry.size, &options), RCN_OK);
    rcn_context_set_progress(ctx, rises, &last);
    CHECK_STATUS(rcn_predict_levels(levels, s.net, s.loss, NULL, &s.scale, s.channels, &options),
                 RCN_OK);
    CHECK_NEAR(last, 1, 1e-9);
    free(levels);
    scene_free(&s);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(what_fits_is_one_tile);
    RUN(tiles_are_blended);
    RUN(sure_levels_are_probabilities);
    RUN(volumes_go_slice_by_slice);
    RUN(memory_is_bounded);
    RUN(sureness_and_masks);
    RUN(several_structures);
    RUN(slabs_and_readouts_are_those_of_the_levels);
    RUN(known_readouts);
    RUN(readouts_take_no_levels);
    RUN(what_readouts_refuse);
    RUN(levels_that_are_not_finite);
    RUN(readouts_that_fail_or_are_canceled);
    RUN(most_probable_labels);
    RUN(what_does_not_fit_is_refused);
    RUN(failing_allocations_and_cancel);
    RUN(progress_rises);
    return TEST_RESULT;
}
