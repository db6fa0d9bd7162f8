# SPDX-License-Identifier: Apache-2.0
"""The networks that are compared with stored results: arguments, and the shape (B, size)."""

CASES = {
    "unet": (dict(arch="unet", channels=1, outputs=5), (2, 64, 48)),
    "unet-instance": (dict(arch="unet", channels=3, outputs=4, norm="instance", depth=3, width=8), (2, 48, 40)),
    "unet3d": (dict(arch="unet3d", channels=1, outputs=5, depth=2), (1, 16, 16, 24)),
    "unet3d-thick": (
        dict(arch="unet3d", channels=2, outputs=3, spacing=(0.7, 0.8, 3.0), norm="instance", depth=2),
        (1, 6, 16, 16),
    ),
    "fpn-resnet18": (dict(arch="fpn-resnet18", channels=1, outputs=4), (2, 96, 96)),
    "fpn-resnet34": (dict(arch="fpn-resnet34", channels=3, outputs=8), (2, 96, 96)),
    "fpn-resnet50": (dict(arch="fpn-resnet50", channels=3, outputs=8), (2, 96, 96)),
}


def samples(name, count, most):
    """Positions of up to `most` values among `count`, the same on both sides."""
    import net_fill

    if count <= most:
        return list(range(count))
    return sorted({int(u) for u in (net_fill.numbers("samples of " + name, most) + 1) / 2 * count})
