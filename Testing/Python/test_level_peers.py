# SPDX-License-Identifier: Apache-2.0
"""Levels, the kernel estimate and the debiased MR-ECE against NumPy and SciPy: ./run test --peers."""
import ctypes as ct
import os

import numpy as np
import pytest

import rcn_calib_ctypes as calib
import rcn_ctypes

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares with SciPy: ./run test --peers", allow_module_level=True)

BANDWIDTHS = 2.0 ** np.arange(-8, -1.75, 0.5)


def sums_of(lib, ctx, cases, raters, bins=15):
    """The sums of all cases (p, masks) together."""
    total = ct.c_void_p()
    ctx.check(lib.rcn_calib_create(ct.byref(total), ctx.handle, raters, ct.byref(calib.Options(bins, 0.5, 1, 0))))
    for p, masks in cases:
        case = calib.make_case(lib, ctx, p, masks)
        ctx.check(lib.rcn_calib_add(total, ctx.handle, ct.byref(case)))
        lib.rcn_votes_destroy(ct.c_void_p(case.votes))
    return total


def marks_of(rng, levels, raters):
    """Masks with so many marks, of raters drawn at random."""
    order = rng.random((raters, levels.size)).argsort(0)
    return (order < levels).astype(np.uint8)


def level_ece(tail, reached, bins=15):
    number = np.minimum((tail * bins).astype(int), bins - 1)
    gaps = [abs((tail - reached)[number == b].sum()) for b in range(bins)]
    return sum(gaps) / tail.size


@pytest.mark.parametrize("raters", [3, 5, 8])
@pytest.mark.parametrize("one_probability", [False, True])
def test_levels(lib, ctx, raters, one_probability):
    from scipy.stats import binom

    rng = np.random.default_rng(raters)
    count = 60_000
    if one_probability:
        given = rng.beta(0.3, 1, count).astype(np.float32)
        p = binom.pmf(np.arange(raters + 1), raters, given.astype(float)[:, None])
    else:
        given = rng.dirichlet(np.full(raters + 1, 0.4), count).astype(np.float32)
        p = given.astype(float)
    y = rng.integers(0, raters + 1, count)
    sums = sums_of(lib, ctx, [(given, marks_of(rng, y, raters))], raters)
    ours = calib.figures_of(lib, sums)
    below = np.arange(raters + 1) >= y[:, None]
    assert ours["rps"] == pytest.approx(((p.cumsum(1) - below) ** 2).mean(), abs=1e-7)
    assert ours["level_nll"] == pytest.approx(-np.log(np.clip(p[np.arange(count), y], 1e-7, 1 - 1e-7)).mean(), abs=1e-7)
    errors = []
    for t in range(1, raters + 1):
        tail = p[:, t:].sum(1).astype(np.float32).astype(float)
        errors.append(level_ece(tail, y >= t))
        counted = calib.level_bins(lib, sums, t)
        assert counted[:, 0].sum() == count
        assert np.nansum(counted[:, 0] * counted[:, 1]) == pytest.approx(tail.sum(), rel=1e-7)
        assert np.nansum(counted[:, 0] * counted[:, 2]) == pytest.approx((y >= t).sum())
    assert ours["level_ece"] == pytest.approx(np.mean(errors), abs=1e-6)
    assert ours["level_ece_max"] == pytest.approx(np.max(errors), abs=1e-6)
    expected = p @ np.arange(raters + 1) / raters
    for unsure, where in (0, expected >= 0), (1, (expected >= 0.05) & (expected <= 0.95)):
        shares = calib.level_shares(lib, sums, raters, unsure)
        assert shares[:, 0] == pytest.approx(p[where].mean(0), abs=1e-6)
        assert shares[:, 1] == pytest.approx(np.bincount(y[where], minlength=raters + 1) / where.sum(), abs=1e-12)
    lib.rcn_calib_destroy(sums)


def test_perfect_levels_are_calibrated_and_the_binomial_of_their_mean_is_not(lib, ctx):
    rng = np.random.default_rng(0)
    raters, count = 5, 400_000
    p = rng.dirichlet(np.full(raters + 1, 0.3), count)
    y = (rng.random(count)[:, None] > p.cumsum(1)).sum(1).clip(0, raters)
    masks = marks_of(rng, y, raters)
    levels = sums_of(lib, ctx, [(p.astype(np.float32), masks)], raters)
    mean = sums_of(lib, ctx, [((p @ np.arange(raters + 1) / raters).astype(np.float32), masks)], raters)
    right, wrong = calib.figures_of(lib, levels), calib.figures_of(lib, mean)
    assert right["level_ece_max"] < 0.005 and right["mr_ece"] == pytest.approx(wrong["mr_ece"], abs=1e-5) and right["mr_ece"] < 0.005
    assert wrong["level_ece"] > 0.03 and wrong["level_nll"] > right["level_nll"] + 0.1 and wrong["rps"] > right["rps"]
    for unsure in 0, 1:  # the prediction alone chooses the voxels: still right
        shares = calib.level_shares(lib, levels, raters, unsure)
        assert shares[:, 0] == pytest.approx(shares[:, 1], abs=0.005)
        shares = calib.level_shares(lib, mean, raters, unsure)
        assert abs(shares[:, 0] - shares[:, 1]).max() > 0.05
    lib.rcn_calib_destroy(levels)
    lib.rcn_calib_destroy(mean)


def kernel(x, p, h):
    """[x, p]: Gaussians around p, reflected at 0 and 1."""
    from scipy.stats import norm

    images = [p + 2 * n for n in (-1, 0, 1)] + [2 * n - p for n in (-1, 0, 1, 2)]
    return sum(norm.pdf(x[:, None], image[None], h) for image in images)


def left_out_score(groups, h, votes):
    """Of p less the smoothed p - y of all other groups (of one: of all other voxels), in float64 without nodes."""
    score = 0
    for number, (x, gap, square) in enumerate(groups):
        k = kernel(x, x, h)
        if len(groups) == 1:
            # The votes of a voxel as if they were alike, as the definition has it.
            others = (k.sum(1) - np.diag(k)) * votes
            off, mass, some = k @ gap * votes, k.sum(1) * votes, others > 0
            change = (off**2 - 2 * off * mass * gap + mass**2 * square)[some] / others[some] ** 2 - square[some]
            score += votes * change.sum()
        else:
            rest = [g for i, g in enumerate(groups) if i != number]
            mass = sum(kernel(x, other, h).sum(1) for other, _, _ in rest)
            off = sum(kernel(x, other, h) @ theirs for other, theirs, _ in rest) / mass
            score += votes * (off**2 - 2 * gap * off).sum()
    return score


@pytest.mark.parametrize("cases", [1, 4])
@pytest.mark.parametrize("shape", ["uniform", "background", "hump"])
def test_kde(lib, ctx, shape, cases):
    rng = np.random.default_rng(3)
    raters, count, groups, sums = 3, 500, [], []
    for _ in range(cases):
        p = {"uniform": rng.random(count), "background": rng.beta(0.1, 1, count), "hump": rng.beta(8, 12, count)}[shape].astype(np.float32)
        masks = (rng.random((raters, count)) < p**1.4).astype(np.uint8)
        sums.append(sums_of(lib, ctx, [(p, masks)], raters))
        x = p.astype(float)
        groups.append((x, x - masks.mean(0), ((x - masks) ** 2).mean(0)))
    ours = calib.kde(lib, ctx, *sums)
    scores = np.array([left_out_score(groups, h, raters) for h in BANDWIDTHS])
    # Nodes move probabilities by up to 1/2048, so that neighbors which are nearly as good may change places.
    assert scores[list(BANDWIDTHS).index(ours.bandwidth)] <= scores.min() + 0.02 * (scores.max() - scores.min())
    grid = np.linspace(0, 1, 2001)
    x, gap = np.concatenate([g[0] for g in groups]), np.concatenate([g[1] for g in groups])
    exact = np.trapezoid(abs(kernel(grid, x, ours.bandwidth) @ gap) / len(x), grid)
    assert ours.ece == pytest.approx(exact, rel=0.01)
    for one in sums:
        lib.rcn_calib_destroy(one)


def test_kde_of_a_perfect_model(lib, ctx):
    """Most voxels are background: what chance adds must be less than in the bins that it is to check."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:96, :96]
    kde, bins = [], []
    for _ in range(3):
        cases = []
        for _ in range(10):
            distance = np.hypot(y - rng.uniform(35, 60), x - rng.uniform(35, 60)) - rng.uniform(8, 18)
            q = (1 / (1 + np.exp(distance / rng.uniform(1, 4)))).ravel().astype(np.float32)
            cases.append((q, (rng.random((4, q.size)) < q).astype(np.uint8)))
        each = [sums_of(lib, ctx, [one], 4) for one in cases]
        together = sums_of(lib, ctx, cases, 4)
        bins.append(calib.figures_of(lib, together)["mr_ece"])
        kde.append(calib.kde(lib, ctx, *each).ece)
        # What is really off stays.
        wrong = [sums_of(lib, ctx, [(q**1.5, masks)], 4) for q, masks in cases]
        off = sums_of(lib, ctx, [(q**1.5, masks) for q, masks in cases], 4)
        assert calib.kde(lib, ctx, *wrong).ece == pytest.approx(calib.figures_of(lib, off)["mr_ece"], rel=0.1)
        for one in [*each, *wrong, together, off]:
            lib.rcn_calib_destroy(one)
    assert np.mean(kde) < 0.8 * np.mean(bins)


def cases_of(rng, cases, scatter, bias):
    """Cases of unlike sizes; what raters think differs from what is predicted by `bias`, and from case to case."""
    made = []
    for _ in range(cases):
        size = rng.integers(300, 1500)
        p = rng.random(size)
        q = np.clip(p - bias + scatter * rng.standard_normal() * np.sqrt(p * (1 - p)), 0, 1)
        made.append((p.astype(np.float32), (rng.random((3, size)) < q).astype(np.uint8)))
    return made


def debiased_by_hand(cases, bins=15):
    table = np.zeros((len(cases), bins, 2))
    for row, (p, masks) in zip(table, cases):
        number = np.minimum((p * np.float32(bins)).astype(int), bins - 1)
        np.add.at(row[:, 0], number, len(masks))
        np.add.at(row[:, 1], number, len(masks) * p.astype(float) - masks.sum(0))
    from scipy.stats import foldnorm

    n, d = table[:, :, 0], table[:, :, 1]
    gap = d.sum(0) / n.sum(0)
    worth = n.sum(0) ** 2 / (n**2).sum(0)
    error = np.sqrt(((d - gap * n) ** 2).sum(0) * worth / np.maximum(worth - 1, 1)) / n.sum(0)
    excess = foldnorm.mean(abs(gap) / error, scale=error) - abs(gap)
    weight = n.sum(0) / n.sum()
    return (weight * abs(gap)).sum() - (1 + np.sqrt(2)) * (weight * excess).sum()


def test_debiased(lib, ctx):
    rng = np.random.default_rng(1)
    for count in 5, 12:
        cases = cases_of(rng, count, 0.1, 0.02)
        sums = sums_of(lib, ctx, cases, 3)
        assert calib.figures_of(lib, sums)["mr_ece_debiased"] == pytest.approx(debiased_by_hand(cases), abs=1e-6)
        lib.rcn_calib_destroy(sums)
    sums = sums_of(lib, ctx, cases_of(rng, 4, 0.1, 0), 3)
    assert np.isnan(calib.figures_of(lib, sums)["mr_ece_debiased"])
    lib.rcn_calib_destroy(sums)


@pytest.mark.parametrize("cases, scatter", [(8, 0.0), (8, 0.15), (20, 0.15)])
def test_debiased_is_zero_on_average_for_perfect_predictions_and_keeps_what_is_off(lib, ctx, cases, scatter):
    def mean(bias, repeats):
        found = []
        for _ in range(repeats):
            sums = sums_of(lib, ctx, cases_of(rng, cases, scatter, bias), 3)
            figures = calib.figures_of(lib, sums)
            found.append((figures["mr_ece"], figures["mr_ece_debiased"]))
            lib.rcn_calib_destroy(sums)
        return np.mean(found, 0)

    rng = np.random.default_rng(cases)
    plain, debiased = mean(0, 120)
    assert plain > 0.004 and abs(debiased) < 0.12 * plain
    # Bias enough to be seen: 10 points in nearly all bins.
    plain, debiased = mean(0.1, 40)
    assert debiased == pytest.approx(plain, abs=0.006)
