// SPDX-License-Identifier: Apache-2.0
/* U-Net (Ronneberger et al. 2015) in two and three dimensions. Each level: twice 3x3 convolution,
 * norm, ReLU. The PyTorch twin is in Testing/Python/net_twins.py. */
#include "rcn_net_private.h"

#include <stdio.h>

enum { WIDEST = 320 };

static int double_conv(rcn_net *net, const char *part, int level, int in, int skip,
                       int64_t channels, rcn__axes kernel) {
    static const rcn__axes unit = {{1, 1, 1}};
    const rcn__norm_kind kind =
        net->options.norm == RCN_NORM_INSTANCE ? RCN_CELL_INSTANCE : RCN_CELL_BATCH;
    char name[32];
    int at = in;
    for (int k = 0; k < 2; ++k) {
        /* Positions in an nn.Sequential: conv, norm, ReLU, conv, norm, ReLU. */
        snprintf(name, sizeof name, "%s.%d.%d", part, level, 3 * k);
        at = rcn__graph_conv(net, name, at, k ? RCN_NONE : skip, channels, kernel, unit, 0);
        snprintf(name, sizeof name, "%s.%d.%d", part, level, 3 * k + 1);
        at = rcn__graph_norm(net, name, at, RCN_NONE, kind, 0, 1);
    }
    return at;
}

void rcn__graph_unet(rcn_net *net) {
    static const rcn__axes unit = {{1, 1, 1}}, none = {{0, 0, 0}};
    const int depth = net->options.depth;
    rcn__axes kernels[8], strides[8];
    int64_t channels[8];
    int skips[8];
    char name[32];
    /* Spacing along z, y, x as it grows by pooling. An axis takes part from the level on where it
     * is less than twice as coarse as the finest one (the rule of nnU-Net, Isensee et al. 2021). */
    double spacing[3] = {net->options.spacing[2], net->options.spacing[1], net->options.spacing[0]};
    for (int level = 0; level <= depth; ++level) {
        double finest = spacing[2];
        for (int d = 3 - net->dimensions; d < 3; ++d)
            if (spacing[d] < finest) finest = spacing[d];
        channels[level] = (int64_t)net->options.width << level;
        if (channels[level] > WIDEST)
            channels[level] = net->options.width > WIDEST ? net->options.width : WIDEST;
        kernels[level] = strides[level] = unit;
        for (int d = 3 - net->dimensions; d < 3; ++d)
            if (net->dimensions == 2 || spacing[d] < 2 * finest) {
                kernels[level].at[d] = 3;
                strides[level].at[d] = 2;
                spacing[d] *= 2;
            }
    }
    int at = 0;
    for (int level = 0; level <= depth; ++level) {
        if (level) at = rcn__graph_pool(net, at, strides[level - 1], strides[level - 1], none);
        at = double_conv(net, "encoder", level, at, RCN_NONE, channels[level], kernels[level]);
        skips[level] = at;
    }
    for (int level = depth - 1; level >= 0; --level) {
        snprintf(name, sizeof name, "up.%d", level);
        at = rcn__graph_transposed(net, name, at, channels[level], strides[level]);
        at = double_conv(net, "decoder", level, at, skips[level], channels[level], kernels[level]);
    }
    at = rcn__graph_conv(net, "head", at, RCN_NONE, net->options.outputs, unit, unit, 1);
    rcn__graph_output(net, at, 1);
}
