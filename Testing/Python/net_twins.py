# SPDX-License-Identifier: Apache-2.0
"""The networks in PyTorch, parameters filled from their names as in Testing/C/rcn_test_fill.h."""

import numpy as np
import torch
import torchvision_names  # noqa: F401
from torch import nn

from loss_twin import bce_rps
from net_fill import parameter_values


class UNet(nn.Module):
    """Twin of rcn_net_unet.c; strides and kernels per level as that chooses them."""

    def __init__(self, channels, outputs, width=16, depth=4, norm="batch", dimensions=2, spacing=(1, 1, 1)):
        super().__init__()
        conv = (nn.Conv2d, nn.Conv3d)[dimensions - 2]
        transposed = (nn.ConvTranspose2d, nn.ConvTranspose3d)[dimensions - 2]
        pool = (nn.MaxPool2d, nn.MaxPool3d)[dimensions - 2]
        norms = {
            "batch": (nn.BatchNorm2d, nn.BatchNorm3d),
            "instance": (
                lambda c: nn.InstanceNorm2d(c, affine=True),
                lambda c: nn.InstanceNorm3d(c, affine=True),
            ),
        }[norm][dimensions - 2]
        spacing = list(spacing[::-1])[-dimensions:] if dimensions == 3 else [1, 1]
        kernels, strides = [], []
        for _ in range(depth + 1):
            takes_part = [s < 2 * min(spacing) for s in spacing]
            kernels.append(tuple(3 if t else 1 for t in takes_part))
            strides.append(tuple(2 if t else 1 for t in takes_part))
            spacing = [s * (2 if t else 1) for s, t in zip(spacing, takes_part)]
        sizes = [min(width << level, 320) for level in range(depth + 1)]

        def level(inputs, out, kernel):
            padding = tuple(k // 2 for k in kernel)
            layers = []
            for i in (inputs, out):
                layers += [conv(i, out, kernel, padding=padding, bias=False), norms(out), nn.ReLU(inplace=True)]
            return nn.Sequential(*layers)

        self.pools = nn.ModuleList(pool(s, s) for s in strides[:-1])
        self.encoder = nn.ModuleList(
            level(channels if i == 0 else sizes[i - 1], sizes[i], kernels[i]) for i in range(depth + 1)
        )
        self.up = nn.ModuleList(
            transposed(sizes[i + 1], sizes[i], strides[i], strides[i]) for i in range(depth)
        )
        self.decoder = nn.ModuleList(level(2 * sizes[i], sizes[i], kernels[i]) for i in range(depth))
        self.head = conv(width, outputs, 1)

    def forward(self, x):
        skips = []
        for i, stage in enumerate(self.encoder):
            if i:
                x = self.pools[i - 1](x)
            x = stage(x)
            skips.append(x)
        for i in reversed(range(len(self.up))):
            x = self.decoder[i](torch.cat([self.up[i](x), skips[i]], 1))
        return self.head(x)


def make(arch, channels, outputs, dropout=0.0, **options):
    """The twin of an architecture by its name."""
    if arch.startswith("fpn-"):
        import segmentation_models_pytorch

        return segmentation_models_pytorch.FPN(
            arch[4:], encoder_weights=None, in_channels=channels, classes=outputs, decoder_dropout=dropout
        )
    return UNet(channels, outputs, dimensions=3 if arch == "unet3d" else 2, **options)


def fill(model):
    """Fills every parameter and running statistic from its name."""
    for name, tensor in model.state_dict().items():
        values = parameter_values(name, tuple(tensor.shape))
        tensor.copy_(torch.from_numpy(values).to(tensor.dtype))
    return model


def loss_of(logits, level):
    """BCE + RPS in double precision; level (B, voxels) in uint8."""
    return bce_rps(logits.flatten(2).double(), torch.from_numpy(level.astype(np.int64)))


def gradients(model, images, level):
    """(loss, logits, {name: gradient}) of a model in its own mode and precision."""
    model.zero_grad()
    out = model(torch.from_numpy(images).to(next(model.parameters()).dtype))
    loss = loss_of(out, level)
    loss.backward()
    return loss.item(), out.detach().numpy(), {n: p.grad.numpy().copy() for n, p in model.named_parameters()}
