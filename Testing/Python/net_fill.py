# SPDX-License-Identifier: Apache-2.0
"""Parameters and images made from their names, as in Testing/C/rcn_test_fill.h.

The values before a ReLU have a mean of about 2 and a deviation of about 1: one in fifty is
negative, so that ReLUs are tried, but few are so near to zero that rounding decides. With a mean of
zero, PyTorch's own gradients change by per cents when its image changes by as much as rounding
does, and so do its losses a few steps of training later: nothing can be compared with that. Only
before the ResNets' pooling the mean stays zero: what is pooled is positive anyway, and a bias whose
ReLU never acts has no gradient in ResNet-50, where a norm takes every constant away again.
"""

import numpy as np


def numbers(name, count):
    """`count` numbers in [-1, 1) that belong to a name."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def parameter_values(name, shape):
    """A parameter or running statistic by its name in the state dict."""
    kind = name.rsplit(".", 1)[1]
    values = numbers(name, int(np.prod(shape)))
    if kind == "num_batches_tracked":
        values[:] = 0
    elif len(shape) > 1:
        values *= np.sqrt(3.0 / np.prod(shape[1:]))
    else:
        about = 1 if kind in ("weight", "running_var") else 0
        if kind == "bias" and "head" not in name and name != "encoder.bn1.bias":
            about = 2
        values = values * 0.1 + about
    return values.astype(np.float32).reshape(shape)


def image(name, *shape):
    return numbers(name, int(np.prod(shape))).astype(np.float32).reshape(shape)


def scene(name, batch, channels, size, raters):
    """images (B, C, ...) and levels (B, voxels) in uint8: balls in noise, each rater's a bit larger."""
    grid = np.stack(np.meshgrid(*[np.arange(n, dtype=np.float64) for n in size], indexing="ij"))
    place = numbers(f"places of {name}", batch * (len(size) + 1)).reshape(batch, -1)
    levels = np.zeros((batch, *size), np.uint8)
    for b in range(batch):
        axes = (slice(None), *(None,) * len(size))
        center = (np.array(size) * (0.5 + 0.15 * place[b, 1:]))[axes]
        radius = np.sqrt(((grid - center) ** 2).sum(0)) / min(size)
        for r in range(raters):
            levels[b] += radius < 0.25 + 0.05 * place[b, 0] + 0.15 * r / raters
    images = levels[:, None] / raters + 0.3 * image(f"noise of {name}", batch, channels, *size)
    return images.astype(np.float32), levels.reshape(batch, -1)
