# SPDX-License-Identifier: Apache-2.0
"""Volumes as the definitions have them, in NumPy, for tests and benchmarks."""
import itertools

import numpy as np


def at_least(levels):
    """V_1 ... V_K of levels (..., K + 1), in voxels."""
    sums = levels.reshape(-1, levels.shape[-1]).astype(np.float64).sum(0)
    return sums[::-1].cumsum()[::-1][1:]


def score(volumes, x):
    """Of a rater's volume x in voxels against V_1 ... V_K."""
    e = volumes.mean()
    scale = (volumes[0] - e if x > e else e - volumes[-1]) + 0.2 * (e + 1)
    return abs(x - e) / scale


def quantile(scores, level):
    """Of lists of scores, one for each case, each of which weighs the same, with one more case at infinity."""
    pairs = sorted((s, 1 / len(case)) for case in scores for s in case)
    for (s, _), weight in zip(pairs, itertools.accumulate(w for _, w in pairs)):
        if weight >= level * (len(scores) + 1) - 1e-9:
            return s
    return np.inf


def interval(volumes, q):
    e = volumes.mean()
    return (max(0.0, e - q * (e - volumes[-1] + 0.2 * (e + 1))), e + q * (volumes[0] - e + 0.2 * (e + 1)))


def crps(volumes, x):
    """Mean |V - x| less half of the mean |V - V'|."""
    return np.abs(volumes - x).mean() - np.abs(volumes[:, None] - volumes[None, :]).mean() / 2


def components(levels):
    """(voxels, expected, highest, most likely raters) of what any rater marks more likely than not, largest first."""
    k = levels.shape[-1] - 1
    tails = levels[..., ::-1].cumsum(-1)[..., ::-1]
    share = levels @ (np.arange(k + 1) / k)
    inside, found = tails[..., 1] >= 0.5, []
    likely = (tails[..., 1:] >= 0.5).sum(-1)
    todo = {tuple(i) for i in np.argwhere(inside)}
    steps = [s for s in itertools.product((-1, 0, 1), repeat=inside.ndim) if any(s)]
    while todo:
        stack, own = [todo.pop()], []
        while stack:
            own.append(stack.pop())
            for step in steps:
                near = tuple(a + b for a, b in zip(own[-1], step))
                if near in todo:
                    todo.remove(near)
                    stack.append(near)
        at = tuple(np.array(own).T)
        found.append((len(own), share[at].sum(), share[at].max(), likely[at].max()))
    return sorted(found, key=lambda one: -one[1])
