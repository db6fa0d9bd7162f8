# SPDX-License-Identifier: Apache-2.0
"""How often do the intervals of volumes hold a rater's volume?

./run bench volumes [--repeats N]

A pool of phantoms with 24 raters who outline the same hidden lesions. Four raters measure; the others are what a model has
learned: its levels are how often k of four others mark a voxel (five groups of four). Other models are made of these:
one probability (the share of the 20 others, read as a binomial), a model that sees too much (P(any of a group) as its
probability), one that is always sure (the majority of the others), and one that is never (30 to 70 % wherever anybody of
the others marks, so that its map is wider than raters differ). Each sample draws validation phantoms, which give
the scores, and 200 others, on which the intervals are tried. Everything that is measured comes from the core.

"plain" is the score that was tried first: how far a volume is outside [V_K, V_1], relative to the expected volume. It covers
as well; its intervals are as wide or wider, and where a map is wider than raters differ they could be empty.

The aim: intervals of 80 % hold 75 to 85 % of the raters' volumes with 40 validation cases or more.
"""
import argparse
import ctypes as ct
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Python"))
import rcn_agreement_ctypes as agreement  # noqa: E402
import rcn_ctypes  # noqa: E402
import rcn_volumes_ctypes as volumes  # noqa: E402

SIDE, RATERS, GROUPS, TEST = 48, 4, 5, 200
COUNTS = (4, 10, 20, 40, 100)
RATER_KINDS = {"differ": 1.0, "agree": 0.3}  # rcn_phantom_options
MODELS = ("levels", "one probability", "sees too much", "always sure", "never sure")


def phantom(lib, ctx, seed, disagreement):
    """Volumes of the four raters in voxels, and rcn_volume of each model."""
    masks = agreement.phantom_masks(lib, ctx, (1, SIDE, SIDE), RATERS * (GROUPS + 1), seed, 2, disagreement)
    others = masks[RATERS:].reshape(GROUPS, RATERS, -1).sum(1)  # votes by group
    levels = np.stack([(others == k).mean(0) for k in range(RATERS + 1)], -1).astype(np.float32)
    share = others.mean(0) / RATERS
    maps = {"levels": levels, "one probability": share, "sees too much": (others > 0).mean(0), "always sure": share >= 0.5,
            "never sure": np.where(share > 0, 0.3 + 0.4 * share, 0)}
    return masks[:RATERS].reshape(RATERS, -1).sum(1), [volumes.predict(lib, ctx, np.ascontiguousarray(maps[m], np.float32), RATERS)
                                                       for m in MODELS]


def plain_interval(volume, q):
    """By the plain score, with the same quantile."""
    return volume.at_least[RATERS - 1] - q * (volume.expected + 1), volume.at_least[0] + q * (volume.expected + 1)


def plain_score(volume, x):
    return max(volume.at_least[RATERS - 1] - x, x - volume.at_least[0]) / (volume.expected + 1)


def sample(lib, ctx, rng, own, scores, plain, count):
    """Coverage and relative width of 80 and 95 % intervals, and of plain ones of 80 % with the share that is empty."""
    order = rng.permutation(len(own))
    fit, test = order[:count], order[count:count + TEST]
    expected, row = np.array([own[i].expected for i in test]) + 1, []
    for level in (0.8, 0.95):
        q = volumes.quantile(lib, ctx, scores[fit], level)
        ends = np.array([volumes.interval(lib, own[i], q) for i in test])
        row += [np.mean(scores[test] <= q), np.mean((ends[:, 1] - ends[:, 0]) / expected)]
    q = volumes.quantile(lib, ctx, plain[fit], 0.8)
    low, high = np.array([plain_interval(own[i], q) for i in test]).T
    return row + [np.mean(plain[test] <= q), np.mean(np.maximum(0, high - np.maximum(0, low)) / expected), np.mean(high < low)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=100, help="samples of each kind (100)")
    parser.add_argument("--pool", type=int, default=800, help="phantoms to draw from (800)")
    parser.add_argument("--seed", type=int, default=19, help="of the phantoms and samples (19)")
    arguments = parser.parse_args()
    lib = rcn_ctypes.library()
    if lib is None:
        sys.exit("bench: the core's shared library was not built (target rcn_shared)")
    ctx = rcn_ctypes.Context(lib, 1)
    rng = np.random.default_rng(arguments.seed)
    print(f"{arguments.repeats} samples of each kind, {TEST} phantoms with {RATERS} raters in each; coverage in %, width relative")
    print(f"{'raters':<10}{'model':<18}{'validation':>10}{'80 %':>8}{'width':>8}{'95 %':>8}{'width':>8}{'plain 80 %':>12}{'width':>8}{'empty':>8}")
    met = True
    for raters, disagreement in RATER_KINDS.items():
        pool = [phantom(lib, ctx, 100000 * arguments.seed + i, disagreement) for i in range(arguments.pool)]
        for m, name in enumerate(MODELS):
            own = [v[m] for _, v in pool]
            scores = np.array([[volumes.score(lib, v[m], x) for x in row] for row, v in pool])
            plain = np.array([[plain_score(v[m], x) for x in row] for row, v in pool])
            for count in COUNTS:
                mean = np.mean([sample(lib, ctx, rng, own, scores, plain, count) for _ in range(arguments.repeats)], 0)
                late = f"{'–':>8}{'–':>8}" if np.isnan(mean[3]) else f"{100 * mean[2]:>8.1f}{mean[3]:>8.2f}"
                print(f"{raters:<10}{name:<18}{count:>10}{100 * mean[0]:>8.1f}{mean[1]:>8.2f}{late}"
                      f"{100 * mean[4]:>12.1f}{mean[5]:>8.2f}{100 * mean[6]:>8.1f}", flush=True)
                met &= count < 40 or 0.75 <= mean[0] <= 0.85
    print(f"80 % intervals hold 75 to 85 % from 40 validation cases on: {'met' if met else 'MISSED'}")
    ctx.close()


if __name__ == "__main__":
    main()
