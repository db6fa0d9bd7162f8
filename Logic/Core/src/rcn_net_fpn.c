// SPDX-License-Identifier: Apache-2.0
/* FPN on ResNet, layer by layer and name by name as segmentation_models_pytorch.FPN with its
 * defaults: pyramid of 256 channels, segmentation blocks of 128, merged by addition. */
#include "rcn_net_private.h"

#include <stdio.h>
#include <string.h>

static const rcn__axes one = {{1, 1, 1}}, three = {{1, 3, 3}}, seven = {{1, 7, 7}},
                       two = {{1, 2, 2}}, border = {{0, 1, 1}};

enum { PYRAMID = 256, SEGMENTATION = 128, GROUPS = 32, STAGES = 4 };

static int conv_norm(rcn_net *net, const char *block, const char *conv, const char *norm, int in,
                     int residual, int64_t channels, rcn__axes kernel, rcn__axes stride, int relu) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s", block, conv);
    const int at = rcn__graph_conv(net, name, in, RCN_NONE, channels, kernel, stride, 0);
    snprintf(name, sizeof name, "%s.%s", block, norm);
    return rcn__graph_norm(net, name, at, residual, RCN_CELL_BATCH, 0, relu);
}

/* One residual block (He et al. 2016): two 3x3 convolutions, or 1x1, 3x3, 1x1 (bottleneck). */
static int residual_block(rcn_net *net, const char *name, int in, int64_t width, int bottleneck,
                          rcn__axes stride) {
    const int64_t out = bottleneck ? 4 * width : width;
    int shortcut = in;
    if (stride.at[2] != 1 || net->tensors[in].channels != out)
        shortcut =
            conv_norm(net, name, "downsample.0", "downsample.1", in, RCN_NONE, out, one, stride, 0);
    if (!bottleneck) {
        const int at = conv_norm(net, name, "conv1", "bn1", in, RCN_NONE, width, three, stride, 1);
        return conv_norm(net, name, "conv2", "bn2", at, shortcut, width, three, one, 1);
    }
    int at = conv_norm(net, name, "conv1", "bn1", in, RCN_NONE, width, one, one, 1);
    at = conv_norm(net, name, "conv2", "bn2", at, RCN_NONE, width, three, stride, 1);
    return conv_norm(net, name, "conv3", "bn3", at, shortcut, out, one, one, 1);
}

void rcn__graph_fpn(rcn_net *net) {
    static const int small[STAGES] = {2, 2, 2, 2}, large[STAGES] = {3, 4, 6, 3};
    const int *blocks = net->options.arch == RCN_FPN_RESNET18 ? small : large;
    const int bottleneck = net->options.arch == RCN_FPN_RESNET50;
    int features[STAGES], pyramid[STAGES], segments[STAGES];
    char name[64], block_name[32];

    int at = conv_norm(net, "encoder", "conv1", "bn1", 0, RCN_NONE, 64, seven, two, 1);
    at = rcn__graph_pool(net, at, three, two, border);
    for (int stage = 0; stage < STAGES; ++stage) {
        for (int block = 0; block < blocks[stage]; ++block) {
            snprintf(block_name, sizeof block_name, "encoder.layer%d.%d", stage + 1, block);
            at = residual_block(net, block_name, at, (int64_t)64 << stage, bottleneck,
                                stage && !block ? two : one);
        }
        features[stage] = at;
    }

    pyramid[3] = rcn__graph_conv(net, "decoder.p5", features[3], RCN_NONE, PYRAMID, one, one, 1);
    for (int stage = 2; stage >= 0; --stage) {
        snprintf(name, sizeof name, "decoder.p%d.skip_conv", stage + 2);
        const int skip =
            rcn__graph_conv(net, name, features[stage], RCN_NONE, PYRAMID, one, one, 1);
        pyramid[stage] = rcn__graph_nearest_add(net, pyramid[stage + 1], skip);
    }
    /* The finest first: its gradient is then the last to be used, in place. */
    for (int stage = 0; stage < STAGES; ++stage) {
        const int convs = stage ? stage : 1;
        at = pyramid[stage];
        for (int k = 0; k < convs; ++k) {
            snprintf(name, sizeof name, "decoder.seg_blocks.%d.block.%d.block.0", 3 - stage, k);
            at = rcn__graph_conv(net, name, at, RCN_NONE, SEGMENTATION, three, one, 0);
            name[strlen(name) - 1] = '1';
            at = rcn__graph_norm(net, name, at, RCN_NONE, RCN_CELL_GROUP, GROUPS, 1);
            if (stage) at = rcn__graph_bilinear(net, at, 2);
        }
        segments[stage] = at;
    }
    at = rcn__graph_merge(net, segments, STAGES);
    at = rcn__graph_conv(net, "segmentation_head.0", at, RCN_NONE, net->options.outputs, one, one,
                         1);
    rcn__graph_output(net, at, 4);
}
