"""Parameters and images made from their names, as in Testing/C/rcn_test_fill.h."""

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
        values = values * 0.1 + (kind in ("weight", "running_var"))
    return values.astype(np.float32).reshape(shape)


def image(name, *shape):
    return numbers(name, int(np.prod(shape))).astype(np.float32).reshape(shape)
