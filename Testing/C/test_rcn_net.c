// SPDX-License-Identifier: Apache-2.0
#include "rcn_test.h"

#include "rcn/rcn_net.h"
#include "rcn_test_fill.h"
#include "rcn_net_private.h"

static rcn_net *make_net(rcn_context *ctx, rcn_net_options options) {
    rcn_net *net = NULL;
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_OK);
    fill_net(net);
    return net;
}

/* Sum of weights * logits of a forward pass: a loss whose gradient to the logits is the weights. */
static double loss_of(rcn_net *net, const float *images, const rcn_batch *batch,
                      const float *weights, float *logits, int64_t count) {
    double loss = 0;
    CHECK_STATUS(rcn_net_forward(logits, net, images, batch, 7), RCN_OK);
    for (int64_t i = 0; i < count; ++i) loss += (double)weights[i] * (double)logits[i];
    return loss;
}

/* The slope of the loss along the gradient of one parameter, or of all (NULL), by steps to both
 * sides: as large as the gradient says. Steps must be larger than rounding and smaller than the
 * loss's bends, so several are tried and the best counts. */
static void check_slope(rcn_net *net, const rcn_parameter *parameter, const float *gradients,
                        const float *images, const rcn_batch *batch, const float *weights,
                        float *logits, int64_t count) {
    static const double relative[] = {1e-3, 1e-4, 1e-2, 1e-5};
    const int64_t first = parameter ? parameter->offset : 0;
    const int64_t floats = parameter ? parameter->count : rcn_net_trained_floats(net);
    const float *gradient = gradients + first;
    float *values = rcn_net_edit_values(net) + first;
    float *kept = malloc((size_t)floats * sizeof *kept);
    double norm = 0, size = 0, best = INFINITY;
    memcpy(kept, values, (size_t)floats * sizeof *kept);
    for (int64_t i = 0; i < floats; ++i) {
        norm += (double)gradient[i] * (double)gradient[i];
        size += fabs((double)kept[i]);
    }
    norm = sqrt(norm);
    CHECK(norm > 0);
    for (int k = 0; k < 4 && fabs(best - norm) > 0.01 * norm; ++k) {
        const double step = relative[k] * size / sqrt((double)floats);
        double losses[2];
        for (int side = 0; side < 2; ++side) {
            const double along = (side ? step : -step) / norm;
            rcn_net_edit_values(net);
            for (int64_t i = 0; i < floats; ++i)
                values[i] = (float)((double)kept[i] + along * (double)gradient[i]);
            losses[side] = loss_of(net, images, batch, weights, logits, count);
        }
        const double slope = (losses[1] - losses[0]) / (2 * step);
        if (fabs(slope - norm) < fabs(best - norm)) best = slope;
    }
    rcn_net_edit_values(net);
    memcpy(values, kept, (size_t)floats * sizeof *kept);
    free(kept);
    if (!(fabs(best - norm) <= 0.02 * norm)) {
        ++rcn_test_failures;
        fprintf(stderr, "%s: slope %g, gradient %g\n", parameter ? parameter->name : "all", best,
                norm);
    }
}

/* All parameters together, and every `every`-th of them alone. */
static void check_gradients(rcn_net_options options, rcn_batch batch, int every) {
    rcn_context *ctx = make_context(1);
    rcn_net *net = make_net(ctx, options);
    const int64_t voxels = batch.size[0] * batch.size[1] * batch.size[2];
    const int64_t pixels = batch.images * voxels * options.channels;
    const int64_t count = batch.images * voxels * options.outputs;
    float *images = malloc((size_t)pixels * sizeof *images);
    float *weights = malloc((size_t)count * sizeof *weights);
    float *logits = malloc((size_t)count * sizeof *logits);
    fill_values(images, "images", pixels, 1, 0);
    fill_values(weights, "weights", count, 1, 0);
    loss_of(net, images, &batch, weights, logits, count);
    CHECK_STATUS(rcn_net_backward(net, weights), RCN_OK);
    const size_t bytes = (size_t)rcn_net_trained_floats(net) * sizeof(float);
    float *gradients = malloc(bytes); /* the network's own are gone once it runs again */
    memcpy(gradients, rcn_net_gradients(net), bytes);
    check_slope(net, NULL, gradients, images, &batch, weights, logits, count);
    for (int p = 0, trained = 0; p < rcn_net_parameter_count(net); ++p) {
        const rcn_parameter *parameter = rcn_net_parameter(net, p);
        if (parameter->kind == RCN_TRAINED && trained++ % every == 0)
            check_slope(net, parameter, gradients, images, &batch, weights, logits, count);
    }
    free(images);
    free(weights);
    free(logits);
    free(gradients);
    rcn_net_destroy(net);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static rcn_net_options small_unet(void) {
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    options.width = 8;
    options.depth = 2;
    options.outputs = 5;
    return options;
}

static void slopes_unet(void) {
    rcn_net_options options = small_unet();
    const rcn_batch batch = {2, {16, 24, 1}}, odd = {3, {13, 18, 1}};
    check_gradients(options, batch, 1);
    options.norm = RCN_NORM_INSTANCE;
    options.channels = 2;
    check_gradients(options, odd, 1);
}

static void slopes_unet3d(void) {
    rcn_net_options options = small_unet();
    const rcn_batch batch = {1, {12, 16, 8}};
    options.arch = RCN_UNET3D;
    check_gradients(options, batch, 1);
    options.spacing[2] = 3;
    options.norm = RCN_NORM_INSTANCE;
    check_gradients(options, batch, 1);
}

/* With both kinds of residual blocks. The step is odd, so that over the network's regular pattern
 * weights and biases of convolutions, batch and group norms all have their turn. */
static void slopes_fpn(void) {
    rcn_net_options options = small_unet();
    const rcn_batch batch = {2, {64, 64, 1}};
    options.dropout = 0.2;
    options.arch = RCN_FPN_RESNET18;
    check_gradients(options, batch, 7);
    options.arch = RCN_FPN_RESNET50;
    check_gradients(options, batch, 23);
}

enum { X = 20, Y = 13, VOXELS = X * Y, OUTPUTS = 5 };

static rcn_net_options tiny_unet(void) {
    rcn_net_options options = small_unet();
    options.depth = 1;
    return options;
}

/* With all weights zero only the head's bias is left, forward and backward. */
static void known_answer(void) {
    rcn_context *ctx = make_context(2);
    rcn_net_options options = tiny_unet();
    const rcn_batch batch = {1, {X, Y, 1}};
    float images[VOXELS], logits[OUTPUTS * VOXELS];
    rcn_net *net = NULL;
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_OK);
    const rcn_parameter *bias = rcn_net_find_parameter(net, "head.bias");
    CHECK(bias && bias->count == OUTPUTS && bias->dimensions == 1 && bias->offset % 16 == 0);
    for (int k = 0; k < OUTPUTS; ++k) rcn_net_edit_values(net)[bias->offset + k] = (float)k - 2;
    for (int i = 0; i < VOXELS; ++i) images[i] = 1;
    CHECK_STATUS(rcn_net_predict(logits, net, images, &batch), RCN_OK);
    for (int i = 0; i < OUTPUTS * VOXELS; ++i) CHECK(logits[i] == (float)(i / VOXELS) - 2);
    CHECK_STATUS(rcn_net_forward(logits, net, images, &batch, 0), RCN_OK);
    for (int i = 0; i < OUTPUTS * VOXELS; ++i) CHECK(logits[i] == (float)(i / VOXELS) - 2);
    /* dlogits = 1: the bias gets the number of voxels. */
    for (int i = 0; i < OUTPUTS * VOXELS; ++i) logits[i] = 1;
    CHECK_STATUS(rcn_net_backward(net, logits), RCN_OK);
    for (int k = 0; k < OUTPUTS; ++k)
        CHECK_NEAR(rcn_net_gradients(net)[bias->offset + k], VOXELS, 1e-3);
    CHECK(*(rcn_net_values(net) +
            rcn_net_find_parameter(net, "encoder.0.1.num_batches_tracked")->offset) == 1);
    CHECK(rcn_net_find_parameter(net, "head") == NULL);
    CHECK(rcn_net_parameter(net, -1) == NULL);
    CHECK(rcn_net_parameter(net, rcn_net_parameter_count(net)) == NULL);
    int64_t padded[3];
    rcn__net_padded_size(padded, net, batch.size);
    CHECK(padded[0] == X && padded[1] == Y + 1 && padded[2] == 1);
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
}

/* Same seed and threads, same bits; the state of other plans does not matter. Prediction after
 * training uses the new values. */
static void repeatable(void) {
    const rcn_batch batch = {2, {X, Y, 1}}, other = {1, {X, Y, 1}};
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    float images[3 * 2 * VOXELS], first[OUTPUTS * 2 * VOXELS], second[OUTPUTS * 2 * VOXELS];
    options.arch = RCN_FPN_RESNET18;
    options.channels = 3;
    options.outputs = OUTPUTS;
    options.dropout = 0.5;
    fill_values(images, "images", 3 * 2 * VOXELS, 1, 0);
    rcn_context *ctx = make_context(2);
    rcn_net *net = NULL, *twin = NULL;
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_OK);
    CHECK_STATUS(rcn_net_create(&twin, ctx, &options), RCN_OK);
    CHECK_STATUS(rcn_net_initialize(net, 3), RCN_OK);
    CHECK_STATUS(rcn_net_initialize(twin, 3), RCN_OK);
    const int64_t trained = rcn_net_trained_floats(net);
    CHECK(!memcmp(rcn_net_values(net), rcn_net_values(twin),
                  (size_t)rcn_net_floats(net) * sizeof(float)));
    CHECK_STATUS(rcn_net_predict(second, twin, images, &other), RCN_OK);
    for (int step = 0; step < 2; ++step) {
        CHECK_STATUS(rcn_net_forward(first, net, images, &batch, 11), RCN_OK);
        CHECK_STATUS(rcn_net_forward(second, twin, images, &batch, 11), RCN_OK);
        CHECK(!memcmp(first, second, sizeof first));
        CHECK_STATUS(rcn_net_backward(net, first), RCN_OK);
        CHECK_STATUS(rcn_net_backward(twin, second), RCN_OK);
        CHECK(!memcmp(rcn_net_gradients(net), rcn_net_gradients(twin),
                      (size_t)trained * sizeof(float)));
    }
    /* Another seed drops other maps. */
    CHECK_STATUS(rcn_net_forward(second, net, images, &batch, 12), RCN_OK);
    CHECK(memcmp(first, second, sizeof first));
    /* A prediction sees each change of the values. */
    CHECK_STATUS(rcn_net_predict(first, net, images, &batch), RCN_OK);
    const rcn_parameter *weight = rcn_net_find_parameter(net, "segmentation_head.0.weight");
    for (int64_t i = 0; i < weight->count; ++i) rcn_net_edit_values(net)[weight->offset + i] *= 2;
    CHECK_STATUS(rcn_net_predict(second, net, images, &batch), RCN_OK);
    for (int i = 0; i < OUTPUTS * 2 * VOXELS; ++i)
        CHECK_NEAR(second[i], 2 * first[i], 1e-4 * fabs((double)first[i]) + 1e-5);
    rcn_net_destroy(net);
    rcn_net_destroy(twin);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* A fresh U-Net makes coarse maps finer by repeating their voxels: all taps of a pair of channels
 * are alike, pairs differ, and the weights have the variance 2 / inputs. */
static void transposed_convolutions_repeat(void) {
    static const rcn_arch archs[] = {RCN_UNET, RCN_UNET3D};
    rcn_context *ctx = make_context(1);
    for (int k = 0; k < 2; ++k) {
        rcn_net_options options = RCN_NET_OPTIONS_INIT;
        options.arch = archs[k];
        rcn_net *net = NULL;
        CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_OK);
        CHECK_STATUS(rcn_net_initialize(net, 5), RCN_OK);
        const rcn_parameter *up = rcn_net_find_parameter(net, "up.0.weight");
        const int64_t taps = k ? 8 : 4, pairs = up->shape[0] * up->shape[1];
        CHECK(up->count == pairs * taps);
        const float *at = rcn_net_values(net) + up->offset;
        double squares = 0;
        for (int64_t i = 0; i < pairs; ++i) {
            for (int64_t t = 1; t < taps; ++t) CHECK(at[i * taps + t] == at[i * taps]);
            CHECK(i == 0 || at[i * taps] != at[(i - 1) * taps]);
            squares += (double)at[i * taps] * at[i * taps];
        }
        CHECK_NEAR(squares / (double)pairs * (double)up->shape[0] / 2, 1, 0.2);
        rcn_net_destroy(net);
    }
    rcn_context_destroy(ctx);
}

/* Dropout leaves out whole maps before the head. What that is shows in two gradients, which are
 * sums of products with these maps (the head's weights) or of their gradients (the bias of the norm
 * that makes the finest of them). */
static void dropout_of_maps(void) {
    enum { SIDE = 64, MAPS = 128, SEEDS = 4 };
    const double share = 0.3;
    const rcn_batch batch = {1, {SIDE, SIDE, 1}};
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    float *images = malloc(SIDE * SIDE * sizeof *images);
    float *logits = malloc(OUTPUTS * SIDE * SIDE * sizeof *logits);
    float *weights = malloc(OUTPUTS * SIDE * SIDE * sizeof *weights);
    float head[SEEDS + 2][OUTPUTS * MAPS], bias[SEEDS + 2][MAPS];
    int dropped[SEEDS + 2] = {0}, all = 0, same = 0;
    options.arch = RCN_FPN_RESNET18;
    options.outputs = OUTPUTS;
    fill_values(images, "images", SIDE * SIDE, 1, 0);
    fill_values(weights, "weights", OUTPUTS * SIDE * SIDE, 1, 0);
    rcn_context *ctx = make_context(2);
    /* 0: nothing dropped; then one seed after the other, and the last one once more. */
    for (int k = 0; k < SEEDS + 2; ++k) {
        options.dropout = k ? share : 0;
        rcn_net *net = make_net(ctx, options);
        const uint64_t seed = (uint64_t)(k > SEEDS ? SEEDS : k);
        CHECK_STATUS(rcn_net_forward(logits, net, images, &batch, seed), RCN_OK);
        CHECK_STATUS(rcn_net_backward(net, weights), RCN_OK);
        const float *gradients = rcn_net_gradients(net);
        const rcn_parameter *of_head = rcn_net_find_parameter(net, "segmentation_head.0.weight");
        const rcn_parameter *of_norm =
            rcn_net_find_parameter(net, "decoder.seg_blocks.3.block.0.block.1.bias");
        CHECK(of_head && of_head->count == OUTPUTS * MAPS && of_norm && of_norm->count == MAPS);
        memcpy(head[k], gradients + of_head->offset, sizeof head[k]);
        memcpy(bias[k], gradients + of_norm->offset, sizeof bias[k]);
        rcn_net_destroy(net);
        for (int m = 0; m < MAPS; ++m) {
            /* A map is left out for all outputs, and then nothing goes back through it; or it is
             * scaled up, and so is what goes back. */
            const int left_out = head[k][m] == 0;
            dropped[k] += left_out;
            for (int o = 0; o < OUTPUTS; ++o) {
                const double plain = (double)head[0][o * MAPS + m];
                CHECK_NEAR(head[k][o * MAPS + m],
                           left_out ? 0
                           : k      ? plain / (1 - share)
                                    : plain,
                           left_out ? 0 : 1e-4 * fabs(plain) + 1e-3);
            }
            CHECK_NEAR(bias[k][m],
                       left_out ? 0
                       : k      ? (double)bias[0][m] / (1 - share)
                                : (double)bias[0][m],
                       left_out ? 0 : 1e-4 * fabs((double)bias[0][m]) + 1e-3);
        }
    }
    CHECK(dropped[0] == 0);
    for (int k = 1; k <= SEEDS; ++k) all += dropped[k];
    /* Five standard deviations of a binomial. */
    CHECK_NEAR(all, share * SEEDS * MAPS, 5 * sqrt(SEEDS * MAPS * share * (1 - share)));
    for (int m = 0; m < MAPS; ++m) same += (head[1][m] == 0) == (head[2][m] == 0);
    CHECK(same < MAPS);
    CHECK(!memcmp(head[SEEDS], head[SEEDS + 1], sizeof head[0]));
    CHECK(!memcmp(bias[SEEDS], bias[SEEDS + 1], sizeof bias[0]));
    free(images);
    free(logits);
    free(weights);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

/* One and several threads agree but for rounding in the convolutions. */
static void threads_agree(void) {
    const rcn_batch batch = {2, {X, Y, 1}};
    float images[2 * VOXELS], logits[2][OUTPUTS * 2 * VOXELS];
    fill_values(images, "images", 2 * VOXELS, 1, 0);
    for (int k = 0; k < 2; ++k) {
        rcn_context *ctx = make_context(k ? 3 : 1);
        rcn_net *net = make_net(ctx, small_unet());
        CHECK_STATUS(rcn_net_forward(logits[k], net, images, &batch, 0), RCN_OK);
        rcn_net_destroy(net);
        rcn_context_destroy(ctx);
    }
    for (int i = 0; i < OUTPUTS * 2 * VOXELS; ++i) CHECK_NEAR(logits[0][i], logits[1][i], 1e-4);
}

/* How many sweeps a prediction of this shape has, which must give the same bits as layer after
 * layer does. */
static int check_rows(rcn_net_options options, rcn_batch batch, int threads) {
    const int64_t voxels = batch.images * batch.size[0] * batch.size[1];
    const int64_t count = options.outputs * voxels;
    float *images = malloc((size_t)(options.channels * voxels) * sizeof *images);
    float *logits[2];
    int sweeps = 0;
    fill_values(images, "images", options.channels * voxels, 1, 0);
    for (int k = 0; k < 2; ++k) {
        rcn_context *ctx = make_context(k ? threads : 1);
        rcn_net *net = make_net(ctx, options);
        net->sweep_floats = k ? 1 : INT64_MAX;
        logits[k] = malloc((size_t)count * sizeof **logits);
        CHECK_STATUS(rcn_net_predict(logits[k], net, images, &batch), RCN_OK);
        sweeps = rcn__plan_sweep_count(net->plans[0]);
        CHECK(k || !sweeps);
        rcn_net_destroy(net);
        rcn_context_destroy(ctx);
    }
    CHECK(!memcmp(logits[0], logits[1], (size_t)count * sizeof **logits));
    for (int k = 0; k < 2; ++k) free(logits[k]);
    free(images);
    return sweeps;
}

static void rows_change_nothing(void) {
    static const int64_t sizes[][2] = {{64, 64}, {20, 13}, {33, 100}, {4, 4}, {16, 61}};
    rcn_net_options options = small_unet();
    for (int s = 0; s < 5; ++s)
        for (int images = 1; images <= 3; images += 2)
            for (int threads = 1; threads <= 4; threads += 3) {
                const rcn_batch batch = {images, {sizes[s][0], sizes[s][1], 1}};
                options.channels = images; /* planes, or blocks */
                options.depth = 3;
                CHECK(check_rows(options, batch, threads) >= 2);
                options.depth = 1;
                CHECK(check_rows(options, batch, threads) >= 1);
            }
    /* Many channels are blocked already; the image is a block. */
    const rcn_batch batch = {2, {40, 52, 1}};
    options.channels = 5;
    CHECK(check_rows(options, batch, 2) >= 1);
    /* Norms that are taken over an image need all of it. */
    options.norm = RCN_NORM_INSTANCE;
    check_rows(options, batch, 2);
    /* A strided convolution and pooling whose windows overlap. */
    options = small_unet();
    options.arch = RCN_FPN_RESNET18;
    options.channels = 3;
    CHECK(check_rows(options, batch, 3) >= 1);
    options.arch = RCN_FPN_RESNET50;
    CHECK(check_rows(options, batch, 3) >= 1);
}

/* Rows that are not kept make a large image need less memory. */
static void rows_save_memory(void) {
    const rcn_batch batch = {1, {512, 512, 1}};
    size_t bytes[2];
    for (int k = 0; k < 2; ++k) {
        rcn_context *ctx = make_context(1);
        rcn_net_options options = small_unet();
        options.width = 16;
        rcn_net *net = make_net(ctx, options);
        if (k) net->sweep_floats = INT64_MAX;
        CHECK_STATUS(rcn__net_measure(&bytes[k], net, &batch, 0), RCN_OK);
        rcn_net_destroy(net);
        rcn_context_destroy(ctx);
    }
    CHECK((double)bytes[0] < 0.9 * (double)bytes[1]);
}

/* From features: the same logits and the same gradients of the decoder. Instance norms have no
 * running statistics, so that training and prediction encode alike. */
static void features_stand_for_images(void) {
    const rcn_batch batch = {2, {21, 16, 1}};
    const int64_t voxels = 2 * 21 * 16, outputs = voxels * OUTPUTS;
    rcn_context *ctx = make_context(2);
    rcn_net_options options = small_unet();
    options.norm = RCN_NORM_INSTANCE;
    rcn_net *net = make_net(ctx, options);
    const int64_t floats = rcn__net_feature_floats(net, batch.size);
    /* 8, 16 and 32 channels at 24 x 16, 12 x 8 and 6 x 4 */
    CHECK(floats == 8 * 24 * 16 + 16 * 12 * 8 + 32 * 6 * 4);
    float *images = malloc((size_t)voxels * sizeof *images);
    float *logits = malloc((size_t)(3 * outputs) * sizeof *logits);
    float *features = malloc((size_t)(2 * floats) * sizeof *features);
    const size_t trained = (size_t)rcn_net_trained_floats(net);
    float *gradients = malloc(trained * sizeof *gradients);
    fill_values(images, "images", voxels, 1, 0);
    fill_values(logits + 2 * outputs, "weights", outputs, 1, 0);
    CHECK_STATUS(rcn_net_forward(logits, net, images, &batch, 7), RCN_OK);
    CHECK_STATUS(rcn_net_backward(net, logits + 2 * outputs), RCN_OK);
    memcpy(gradients, rcn_net_gradients(net), trained * sizeof *gradients);
    CHECK_STATUS(rcn__net_encode(features, net, images, &batch), RCN_OK);
    CHECK_STATUS(rcn__net_forward_features(logits + outputs, net, features, &batch, 7), RCN_OK);
    CHECK_STATUS(rcn_net_backward(net, logits + 2 * outputs), RCN_OK);
    for (int64_t i = 0; i < outputs; ++i) CHECK_NEAR(logits[i], logits[outputs + i], 1e-4);
    for (int p = 0; p < rcn_net_parameter_count(net); ++p) {
        const rcn_parameter *parameter = rcn_net_parameter(net, p);
        if (parameter->kind != RCN_TRAINED) continue;
        const int encoder = !strncmp(parameter->name, "encoder.", 8);
        double difference = 0, size = 0;
        for (int64_t i = parameter->offset; i < parameter->offset + parameter->count; ++i) {
            const double now = (double)rcn_net_gradients(net)[i];
            difference += encoder ? fabs(now) : fabs(now - (double)gradients[i]);
            size += fabs((double)gradients[i]);
        }
        CHECK(difference <= (encoder ? 0 : 1e-4 * size));
    }
    CHECK_STATUS(rcn__net_encode(NULL, net, images, &batch), RCN_EINVALID);
    CHECK_STATUS(rcn_net_backward(net, logits), RCN_EINVALID);
    free(images);
    free(logits);
    free(features);
    free(gradients);
    rcn_net_destroy(net);
    CHECK(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
}

static void bad_arguments(void) {
    rcn_context *ctx = make_context(1);
    rcn_net *net = NULL;
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    float images[VOXELS] = {0}, logits[OUTPUTS * VOXELS] = {42};
    rcn_batch batch = {1, {X, Y, 1}};
    options.width = 12;
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_EINVALID);
    CHECK_ERROR(ctx, "multiple of 8");
    CHECK(net == NULL);
    options.width = 16;
    options.arch = (rcn_arch)17;
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_EINVALID);
    CHECK(rcn_arch_name((rcn_arch)-1) == NULL && rcn_arch_name((rcn_arch)5) == NULL);
    options.arch = RCN_UNET3D;
    options.spacing[1] = NAN;
    CHECK_STATUS(rcn_net_create(&net, ctx, &options), RCN_EINVALID);
    CHECK_STATUS(rcn_net_create(NULL, ctx, NULL), RCN_EINVALID);
    CHECK_STATUS(rcn_net_create(&net, NULL, NULL), RCN_EINVALID);
    rcn_net_destroy(NULL);
    net = make_net(ctx, tiny_unet());
    CHECK_STATUS(rcn_net_backward(net, logits), RCN_EINVALID);
    CHECK(rcn_net_gradients(net) == NULL);
    batch.size[2] = 2;
    CHECK_STATUS(rcn_net_predict(logits, net, images, &batch), RCN_EINVALID);
    CHECK_ERROR(ctx, "for slices");
    batch.size[2] = 1;
    batch.images = 0;
    CHECK_STATUS(rcn_net_predict(logits, net, images, &batch), RCN_EINVALID);
    batch.images = 1;
    batch.size[0] = 0;
    CHECK_STATUS(rcn_net_predict(logits, net, images, &batch), RCN_EINVALID);
    batch.size[0] = X;
    CHECK_STATUS(rcn_net_predict(NULL, net, images, &batch), RCN_EINVALID);
    CHECK(logits[0] == 42);
    /* A prediction in between uses up the memory that backward would need. */
    CHECK_STATUS(rcn_net_forward(logits, net, images, &batch, 0), RCN_OK);
    CHECK_STATUS(rcn_net_predict(logits, net, images, &batch), RCN_OK);
    CHECK_STATUS(rcn_net_backward(net, logits), RCN_EINVALID);
    CHECK_ERROR(ctx, "forward pass");
    /* Gradients are there until the network runs again. */
    CHECK_STATUS(rcn_net_forward(logits, net, images, &batch, 0), RCN_OK);
    CHECK_STATUS(rcn_net_backward(net, logits), RCN_OK);
    CHECK(rcn_net_gradients(net) != NULL);
    CHECK_STATUS(rcn_net_predict(logits, net, images, &batch), RCN_OK);
    CHECK(rcn_net_gradients(net) == NULL);
    /* More shapes than are kept. */
    for (int k = 1; k < 12; ++k) {
        const rcn_batch some = {1, {4 + k, 5, 1}};
        CHECK_STATUS(rcn_net_predict(logits, net, images, &some), RCN_OK);
    }
    size_t bytes = 0;
    CHECK_STATUS(rcn__net_measure(&bytes, net, &batch, 1), RCN_OK);
    CHECK(bytes > VOXELS * 8 * sizeof(float));
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
}

static rcn_status train_once(rcn_context *ctx, void *payload) {
    const rcn_batch batch = {1, {X, Y, 1}};
    const rcn_net_options options = tiny_unet();
    float logits[OUTPUTS * VOXELS];
    rcn_net *net = NULL;
    rcn_status status = rcn_net_create(&net, ctx, &options);
    CHECK((status == RCN_OK) == (net != NULL));
    if (!status) status = rcn_net_initialize(net, 1);
    if (!status) status = rcn_net_forward(logits, net, payload, &batch, 0);
    if (!status) status = rcn_net_backward(net, logits);
    if (!status) status = rcn_net_predict(logits, net, payload, &batch);
    rcn_net_destroy(net);
    return status;
}

static void failing_allocations_and_cancel(void) {
    float images[VOXELS];
    fill_values(images, "images", VOXELS, 1, 0);
    check_failing_allocations(train_once, images);
    for (int calls = 0; calls < 200; ++calls) {
        rcn_context *ctx = make_context(1);
        int countdown = calls;
        rcn_context_set_progress(ctx, cancel_after, &countdown);
        const rcn_status status = train_once(ctx, images);
        if (status != RCN_OK) CHECK_STATUS(status, RCN_ECANCELLED);
        CHECK(rcn_context_bytes(ctx) == 0);
        rcn_context_destroy(ctx);
        if (status == RCN_OK) {
            CHECK(calls > 20); /* it asks between layers */
            break;
        }
    }
}

int main(void) {
    RUN(known_answer);
    RUN(slopes_unet);
    RUN(slopes_unet3d);
    RUN(slopes_fpn);
    RUN(repeatable);
    RUN(transposed_convolutions_repeat);
    RUN(dropout_of_maps);
    RUN(threads_agree);
    RUN(rows_change_nothing);
    RUN(rows_save_memory);
    RUN(features_stand_for_images);
    RUN(bad_arguments);
    RUN(failing_allocations_and_cancel);
    return TEST_RESULT;
}
