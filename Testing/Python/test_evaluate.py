# SPDX-License-Identifier: Apache-2.0
"""evaluate and recalibrate, from files to tables, JSON, diagrams and corrections."""
import json
import math
import re
import shutil
import struct
import xml.etree.ElementTree as xml

import numpy as np
import pytest

from rcn_testing import (blobs, golden, leftovers, needs_peers, raters, read_nrrd, read_png, refused, run, write_image, write_nifti,
                         write_nrrd, write_png)

METHODS = ["temperature", "platt", "beta", "isotonic"]
KEYS = ["mr_ece", "mr_ece_debiased", "mr_kde_ece", "levels", "level_nll", "level_calibration", "level_shares", "ece", "mce", "ace", "brier", "nll", "rps", "auc", "auc_pairs", "dice", "bins", "ci"]


def evaluate(*words):
    return run("evaluate", *words, "--json", "-").json


def judge(prediction, files, *options):
    return evaluate("--prob", prediction, *raters(files), *options)


# ---- what the numbers should be, the slow way --------------------------------------------------------

def midrank_auc(p, positive):
    """The share of (positive, negative) couples in the right order, ties one half."""
    values, where = np.unique(p, return_inverse=True)
    pos = np.bincount(where, weights=positive, minlength=len(values))
    neg = np.bincount(where, minlength=len(values)) - pos
    below = np.concatenate([[0], np.cumsum(neg)[:-1]])
    return float((pos * (below + .5 * neg)).sum() / (pos.sum() * neg.sum()))


def bin_sums(p, y, count):
    """How many, mean probability and share of votes of bins [l, r), the last one closed."""
    edges = (np.arange(1, count) / count).astype(np.float32)
    where = np.searchsorted(edges, p.astype(np.float32), side="right")
    n = np.bincount(where, minlength=count)
    with np.errstate(invalid="ignore"):
        return n, np.bincount(where, p, count) / n, np.bincount(where, y, count) / n


def ece_of(p, y, count):
    n, confidence, share = bin_sums(p, y, count)
    return float(np.nansum(n * np.abs(confidence - share)) / n.sum())


def expected_figures(p, masks, where=None, bins=15, reference=None, threshold=.5):
    """masks: one per rater, None where he is missing."""
    where = np.ones(p.shape, bool) if where is None else where
    present = [m for m in masks if m is not None]
    p = p[where].astype(np.float32).astype(float)
    votes = [m[where].astype(float) for m in present]
    pairs_p, pairs_y = np.tile(p, len(votes)), np.concatenate(votes)
    mean = np.mean(votes, 0)
    reference = mean >= .5 if reference is None else reference[where].astype(bool)
    n, confidence, share = bin_sums(pairs_p, pairs_y, bins)
    gaps = np.abs(confidence - share)[n > 0]
    sure = np.maximum(p, 1 - p)
    clipped = np.clip(pairs_p, 1e-7, 1 - 1e-7)
    marked = p >= np.float32(threshold)  # 0.7 in single precision is 70 %
    soft = []
    for t in (.1, .3, .5, .7, .9):
        a, b = p >= np.float32(t), mean >= t
        soft.append(2 * (a & b).sum() / (a.sum() + b.sum()) if (a | b).any() else 1)
    return dict(
        mr_ece=ece_of(pairs_p, pairs_y, bins), rater_ece=np.mean([ece_of(p, v, bins) for v in votes]),
        ece=ece_of(sure, ((p >= .5) == reference).astype(float), bins),
        ece_foreground=ece_of(p, reference.astype(float), bins), mce=gaps.max(), ace=gaps.mean(),
        signed=np.mean(pairs_p - pairs_y), brier=np.mean((pairs_p - pairs_y) ** 2),
        nll=-np.mean(np.where(pairs_y > 0, np.log(clipped), np.log1p(-clipped))),
        auc=midrank_auc(p, reference), auc_pairs=midrank_auc(pairs_p, pairs_y),
        dice=2 * (marked & reference).sum() / (marked.sum() + reference.sum()),
        dice_pooled=2 * (marked & reference).sum() / (marked.sum() + reference.sum()), soft_dice=np.mean(soft))


def assert_figures(answer, expected, tolerance=1e-6):
    for key, value in expected.items():
        assert answer[key] == pytest.approx(value, abs=tolerance), key


def readout_of(levels, how):
    k = levels.shape[-1] - 1
    level = np.arange(k + 1)
    weights = {"majority": level >= k / 2, "expected": level / k}.get(how)
    if weights is None:
        weights = level >= int(how.split(":")[1])
    return np.clip((levels.astype(float) * weights).sum(-1), 0, 1)


def binomial(q, k):
    """Levels of a model that knows the chance q of a mark."""
    q = np.asarray(q, float)
    return np.stack([math.comb(k, j) * q ** j * (1 - q) ** (k - j) for j in range(k + 1)], -1).astype(np.float32)


def random_case(folder, shape=(6, 14, 15), count=3, seed=1, spacing=(1, 1, 1)):
    """Blobs of raters and a prediction that knows something: files, masks, probabilities."""
    masks = blobs(count, shape, seed=seed)
    noise = np.random.default_rng(seed + 100).random(shape)
    p = (.7 * np.mean(masks, 0) + .3 * noise).astype(np.float32)
    files = {name: write_nrrd(folder / f"{name}.nrrd", m, spacing=spacing) for name, m in zip("ABCDEFG", masks)}
    return files, masks, p


# ---- golden vectors --------------------------------------------------------------------------------

GOLDEN_P = ((37 * np.arange(512)) % 101 / 100).astype(np.float32).reshape(8, 8, 8)
GOLDEN_ECE = {10: (.34704427, .34880208), 15: (.34815104, .35036458), 50: (.35375000, .35967448)}


@pytest.fixture
def golden_p(tmp_path):
    return write_nrrd(tmp_path / "p.nrrd", GOLDEN_P)


@pytest.mark.parametrize("bins", GOLDEN_ECE)
def test_golden(bins, case, golden_p):
    answer = judge(golden_p, case, "--bins", str(bins))
    assert set(KEYS) <= set(answer)
    assert (answer["mr_ece"], answer["rater_ece"]) == pytest.approx(GOLDEN_ECE[bins], abs=1e-7)
    assert answer["rater_ece"] == pytest.approx(np.mean([r["ece"] for r in answer["raters"].values()]), abs=1e-12)
    assert [answer["raters"][n]["brier"] for n in "ABC"] == pytest.approx([.34089062, .33538281, .32487500], abs=1e-7)
    assert (answer["case_count"], answer["voxels"], answer["pairs"], answer["region"]) == (1, 512, 1536, "box")  # 20 voxels around the marks: all of it
    assert answer["ci"] is None and answer["mr_ece_debiased"] is None
    assert_figures(answer, expected_figures(GOLDEN_P, golden(3), bins=bins))


@pytest.mark.parametrize("name, auc", list(zip("ABC", [.47416696, .49685842, .52993444])))
def test_golden_auc_of_a_rater(name, auc, case, golden_p):
    answer = judge(golden_p, case, "--reference", name)
    assert answer["auc"] == pytest.approx(auc, abs=1e-7) and answer["reference"] == name


def test_bins_are_the_diagram(case, golden_p):
    answer = judge(golden_p, case, "--bins", "10")
    y = np.concatenate([m.ravel() for m in golden(3)])
    n, confidence, share = bin_sums(np.tile(GOLDEN_P.ravel().astype(float), 3), y, 10)
    bins = answer["bins"]
    assert all({"lower", "upper", "count", "confidence", "frequency"} <= set(b) for b in bins)
    assert [b["count"] for b in bins] == n.tolist()
    assert [b["lower"] for b in bins] == pytest.approx(np.arange(10) / 10)
    assert [b["upper"] for b in bins] == pytest.approx(np.arange(1, 11) / 10)
    assert [b["confidence"] for b in bins] == pytest.approx(confidence, abs=1e-7)
    assert [b["frequency"] for b in bins] == pytest.approx(share, abs=1e-12)
    parts = answer["brier_decomposition"]
    assert answer["brier"] == pytest.approx(parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["remainder"])


def test_empty_bins_are_null(case, tmp_path):
    p = write_nrrd(tmp_path / "p.nrrd", np.where(golden(1)[0] > 0, .95, .05).astype(np.float32))
    bins = judge(p, case, "--bins", "10")["bins"]
    assert bins[4]["count"] == 0 and bins[4]["confidence"] is None and bins[4]["frequency"] is None


def test_ends_are_counted(case, tmp_path):
    p = write_nrrd(tmp_path / "p.nrrd", golden(1)[0].astype(np.float32))
    bins = judge(p, case)["bins"]
    assert bins[0]["count"] + bins[-1]["count"] == 1536 and bins[-1]["count"] == 3 * 78


def test_equal_mass_bins(case, golden_p):
    answer = judge(golden_p, case, "--binning", "mass", "--bins", "8")
    bins = answer["bins"]
    assert sum(b["count"] for b in bins) == 1536
    assert all(abs(b["count"] - 192) <= 24 for b in bins)  # values come in groups of 15 or 18
    assert bins[0]["lower"] == 0 and bins[-1]["upper"] == 1
    assert all(a["upper"] == b["lower"] for a, b in zip(bins, bins[1:]))
    gaps = [b["count"] / 1536 * abs(b["confidence"] - b["frequency"]) for b in bins]
    mass = answer["equal_mass"]
    assert mass["mr_ece"] == pytest.approx(sum(gaps), abs=1e-9)
    assert mass["mce"] == pytest.approx(max(abs(b["confidence"] - b["frequency"]) for b in bins), abs=1e-9)
    # The headline figures stay those of bins of equal width, whatever the diagram shows.
    assert answer["mr_ece"] == judge(golden_p, case, "--bins", "8")["mr_ece"]
    assert "equal_mass" not in judge(golden_p, case)
    table = run("evaluate", "--prob", golden_p, *raters(case), "--binning", "mass", "--bins", "8").out
    assert "equal-mass" in table and f"{100 * mass['mr_ece']:.2f}" in table


@needs_peers
def test_auc_as_scikit_learn(tmp_path):
    metrics = pytest.importorskip("sklearn.metrics")
    files, masks, p = random_case(tmp_path)
    answer = judge(write_nrrd(tmp_path / "q.nrrd", p), files)
    assert answer["auc"] == pytest.approx(metrics.roc_auc_score((np.sum(masks, 0) >= 2).ravel(), p.ravel()), abs=1e-12)
    assert answer["auc_pairs"] == pytest.approx(
        metrics.roc_auc_score(np.concatenate([m.ravel() for m in masks]), np.tile(p.ravel(), 3)), abs=1e-12)


# ---- kinds of predictions ----------------------------------------------------------------------------

@pytest.mark.parametrize("name, dtype", [
    ("p.nrrd", "float32"), ("p.nrrd", "float64"), ("p.nii.gz", "float32"), ("p.mha", "float64")])
def test_plain_probabilities(name, dtype, tmp_path):
    files, masks, p = random_case(tmp_path)
    stored = p.astype(dtype)
    answer = judge(write_image(tmp_path / name, stored), files)
    assert_figures(answer, expected_figures(stored.astype(float), masks))


@pytest.mark.parametrize("name, dtype, scale", [
    ("p.nrrd", "uint8", 255), ("p.nrrd", "uint16", 65535), ("p.nii", "uint8", 255), ("p.mha", "int16", 1000), ("p.nrrd", "uint8", 100)])
def test_whole_numbers(name, dtype, scale, tmp_path):
    """Which of them means 1 is said, never guessed: a map means the same whatever values occur in it."""
    files, masks, p = random_case(tmp_path)
    stored = (p.astype(float) * scale).round().astype(dtype)
    path = write_image(tmp_path / name, stored)
    both(["--prob", path, *raters(files)], [name, dtype, "--scale"], tmp_path)
    assert_figures(judge(path, files, "--scale", str(scale)), expected_figures(stored.astype(float) / scale, masks))
    # None above 1: still the number that was said, and 0 and 1 where none was.
    stored = (p > .5).astype(dtype)
    path = write_image(tmp_path / name, stored)
    assert_figures(judge(path, files, "--scale", str(scale)), expected_figures(stored.astype(float) / scale, masks))
    assert_figures(judge(path, files), expected_figures(stored.astype(float), masks))
    # One of 2 does not change what the others mean.
    stored[0, 0, 0] = 2
    both(["--prob", write_image(tmp_path / name, stored), *raters(files)], [name, "such as 2", "--scale"], tmp_path)


def test_scale_is_checked(case, golden_p, tmp_path):
    both(["--prob", golden_p, *raters(case), "--scale", "-1"], ["--scale", "negative"], tmp_path)
    both(["--prob", golden_p, *raters(case), "--scale", "x"], ["--scale", "number"], tmp_path)
    stored = write_nrrd(tmp_path / "stored.nrrd", (GOLDEN_P * 255).round().astype(np.uint8))
    both(["--prob", stored, *raters(case), "--scale", "100"], ["stored.nrrd", "probability"], tmp_path)
    # It is for whole numbers: what is stored as a probability is one.
    assert judge(golden_p, case, "--scale", "255")["mr_ece"] == judge(golden_p, case)["mr_ece"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_png_probabilities(dtype, tmp_path):
    scale = np.iinfo(dtype).max
    masks = blobs(3, (40, 50), seed=5)
    p = (.6 * np.mean(masks, 0) + .4 * np.random.default_rng(0).random((40, 50))) * scale
    files = {n: write_png(tmp_path / f"{n}.png", m * 255) for n, m in zip("ABC", masks)}
    stored = p.round().astype(dtype)
    path = write_png(tmp_path / "p.png", stored)
    both(["--prob", path, *raters(files)], ["p.png", "--scale"], tmp_path)
    assert_figures(judge(path, files, "--scale", str(scale)), expected_figures(stored / float(scale), masks))


def test_own_png_says_its_scale(tmp_path):
    """What fuse writes is judged as it was meant, also where hardly any probability is above 0."""
    masks = blobs(3, (40, 50), seed=5)
    files = {n: write_png(tmp_path / f"{n}.png", m * 255) for n, m in zip("ABC", masks)}
    for method in ("soft", "median"):
        run("fuse", "--method", method, *raters(files), "-o", tmp_path / "f.png")
        run("fuse", "--method", method, *raters(files), "-o", tmp_path / "f.nrrd")
        assert judge(tmp_path / "f.png", files)["mr_ece"] == pytest.approx(judge(tmp_path / "f.nrrd", files)["mr_ece"], abs=1e-5)
        assert judge(tmp_path / "f.png", files, "--scale", "131070")["mr_ece"] > .01  # what a person says counts
    faint = {n: write_png(tmp_path / f"{n}.png", m) for n, m in zip("AB", np.zeros((2, 40, 50), np.uint8))}
    write_png(tmp_path / "A.png", np.eye(40, 50, dtype=np.uint8))
    run("fuse", "--method", "soft-gaussian", "--sigma", "9", *raters(faint), "-o", tmp_path / "f.png")
    assert 1 < read_png(tmp_path / "f.png").max() < 65535
    run("fuse", "--method", "soft-gaussian", "--sigma", "9", *raters(faint), "-o", tmp_path / "f.nrrd")
    assert judge(tmp_path / "f.png", faint)["mr_ece"] == pytest.approx(judge(tmp_path / "f.nrrd", faint)["mr_ece"], abs=1e-5)


def test_mask_is_a_sure_prediction(case, tmp_path):
    """Zeros and ones in 8 bits are no and yes, not 0 and 1/255."""
    p = write_nrrd(tmp_path / "p.nrrd", golden(1)[0])
    assert_figures(judge(p, case), expected_figures(golden(1)[0].astype(float), golden(3)))


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("how", ["majority", "expected", "at-least:1", "at-least:2"])
def test_readouts_of_level_maps(how, count, tmp_path):
    files, masks, p = random_case(tmp_path, count=count)
    levels = binomial(p, count)
    answer = judge(write_nrrd(tmp_path / "l.nrrd", levels, components=True), files, "--readout", how)
    expected = expected_figures(readout_of(levels, how), masks)
    assert_figures(answer, expected, 1e-5)
    level = np.sum(masks, 0)
    below = np.arange(count + 1) >= level[..., None]
    rps = ((np.cumsum(levels.astype(float), -1) - below) ** 2).mean()
    assert answer["rps"] == pytest.approx(rps, abs=1e-6)
    assert answer["readout"] == how.split(":")[0] and answer.get("at_least") == (int(how[-1]) if ":" in how else None)
    # The same as 4-D NIfTI and in double precision.
    volumes = np.moveaxis(levels, -1, 0)
    for path in (write_nifti(tmp_path / "l.nii.gz", volumes), write_nifti(tmp_path / "d.nii", volumes.astype(float))):
        other = judge(path, files, "--readout", how)
        assert_figures(other, {key: answer[key] for key in (*expected, "rps")}, 1e-7)


def expected_levels(levels, masks, bins=15):
    """RPS, level NLL, and the calibration error of P(at least t raters) for each t."""
    count = levels.shape[-1] - 1
    p, y = levels.reshape(-1, count + 1).astype(float), np.sum(masks, 0).ravel()
    tails = np.stack([p[:, t:].sum(1) for t in range(1, count + 1)])
    return dict(rps=((p.cumsum(1) - (np.arange(count + 1) >= y[:, None])) ** 2).mean(),
                level_nll=-np.log(np.clip(p[np.arange(y.size), y], 1e-7, 1 - 1e-7)).mean(),
                t=[ece_of(tail, (y >= t).astype(float), bins) for t, tail in enumerate(tails, 1)])


def assert_levels(answer, levels, masks):
    expected = expected_levels(levels, masks)
    found = answer["level_calibration"]
    assert (answer["rps"], answer["level_nll"]) == pytest.approx((expected["rps"], expected["level_nll"]), abs=1e-6)
    assert [one["ece"] for one in found["t"]] == pytest.approx(expected["t"], abs=1e-6)
    assert [one["at_least"] for one in found["t"]] == list(range(1, levels.shape[-1]))
    assert (found["mean"], found["max"]) == pytest.approx((np.mean(expected["t"]), np.max(expected["t"])), abs=1e-6)
    assert all(sum(b["count"] for b in one["bins"]) == answer["voxels"] for one in found["t"])
    share = (np.arange(levels.shape[-1]) * levels.astype(float)).sum(-1) / (levels.shape[-1] - 1)
    for name, where in ("all", share >= 0), ("unsure", (share >= .05) & (share <= .95)):
        shares, level = answer["level_shares"][name], np.sum(masks, 0)[where]
        assert [one["predicted"] for one in shares] == pytest.approx(levels[where].mean(0, dtype=float), abs=1e-6)
        assert [one["observed"] for one in shares] == pytest.approx([(level == k).mean() for k in range(levels.shape[-1])], abs=1e-9)


@pytest.mark.parametrize("count", [2, 5])
def test_levels(count, tmp_path):
    files, masks, p = random_case(tmp_path, count=count)
    levels = binomial(p, count) * np.linspace(1, 2, count + 1, dtype=np.float32)  # and no binomial distribution
    levels /= levels.sum(-1, keepdims=True)
    path = write_nrrd(tmp_path / "l.nrrd", levels, components=True)
    answer = judge(path, files)
    assert_levels(answer, levels, masks)
    assert answer["levels"] == "predicted" and not any("Levels" in remark for remark in answer["remarks"])
    said = run("evaluate", "--prob", path, *raters(files)).out
    assert re.search(r"level calibration \(%\) +\d", said) and re.search(r"MR-KDE-ECE \(%\) +\d", said) and "Where unsure" in said


def test_one_probability_is_judged_on_levels_as_binomial(tmp_path):
    files, masks, p = random_case(tmp_path, count=4)
    answer = judge(write_nrrd(tmp_path / "p.nrrd", p), files)
    assert_levels(answer, binomial(p, 4).astype(float), masks)
    assert answer["levels"] == "binomial" and any("binomial" in remark for remark in answer["remarks"])
    ends = np.zeros((*p.shape, 5), np.float32)
    ends[..., 0], ends[..., 4] = 1 - p, p
    same = judge(write_nrrd(tmp_path / "l.nrrd", ends, components=True), files)
    assert same["levels"] == "binomial"
    for key in ("rps", "level_nll", "level_ece", "level_ece_max"):
        assert same[key] == pytest.approx(answer[key], abs=1e-12)


def test_levels_where_a_rater_is_missing(tmp_path):
    study = study_of(tmp_path, 6)
    whole = evaluate(*study.words)
    assert whole["level_voxels"] == whole["voxels"] and whole["level_cases"] == 6
    for one in study.content["test"][2:]:
        del one["label"]["A"]
    answer = evaluate(*study.words)
    assert answer["level_cases"] == 2 and 0 < answer["level_voxels"] < answer["voxels"] and answer["rps"] > 0
    assert any("that all raters answered, in 2 of 6 cases." in remark for remark in answer["remarks"])
    for one in study.content["test"][:2]:
        del one["label"]["A"]
    answer = evaluate(*study.words)
    assert answer["levels"] == "none" and answer["rps"] is None and answer["level_calibration"] == {"mean": None, "max": None, "t": []}
    assert answer["level_voxels"] == answer["level_cases"] == 0
    assert any("no voxel was answered by all raters" in remark for remark in answer["remarks"])
    refused("evaluate", *study.words, "--plot-levels", tmp_path / "l.svg", says="no levels to plot")


@pytest.mark.parametrize("count, majority", [(3, .0625), (4, .1147), (5, .0938), (7, .1133)])
def test_perfect_ordinal_model(count, majority, tmp_path):
    """MR-ECE judges a probability against single raters: only the expected share can be perfect."""
    shape = (512, 512)
    random = np.random.default_rng(count)
    q = ((np.arange(512 * 512) + .5) / 512 / 512).reshape(shape)
    files = {f"R{r}": write_nrrd(tmp_path / f"{r}.nrrd", (random.random(shape) < q).astype(np.uint8), compress=False)
             for r in range(count)}
    levels = write_nrrd(tmp_path / "l.nrrd", binomial(q, count), components=True, compress=False)
    assert judge(levels, files, "--readout", "majority")["mr_ece"] == pytest.approx(majority, abs=2e-3)
    answer = judge(levels, files)
    assert answer["mr_ece"] < 2e-3 and answer["readout"] == "expected"  # also the default where nothing is known of the maps


# ---- regions, references, thresholds ---------------------------------------------------------------

def contour_band(mean, spacing, mm):
    inside = mean >= .5
    contour = np.zeros(mean.shape, bool)
    for axis in range(3):
        a, b = np.moveaxis(inside, axis, 0), np.moveaxis(contour, axis, 0)
        other = a[1:] != a[:-1]
        b[1:] |= other
        b[:-1] |= other
    grid = np.stack(np.meshgrid(*[np.arange(n) for n in mean.shape], indexing="ij"), -1) * np.array(spacing[::-1])
    at = grid[contour]
    distance = np.sqrt(((grid[..., None, :] - at) ** 2).sum(-1)).min(-1)
    return distance <= mm


@pytest.mark.parametrize("region", ["whole", "box", "band", "disputed", "mask"])
def test_regions(region, tmp_path):
    spacing = (.7, .9, 2.5)
    shape = (7, 16, 18)
    masks = [np.pad(m, 4)[2:-2] for m in blobs(3, (3, 8, 10), seed=4, noise=.02)]
    assert masks[0].shape == shape
    files = {n: write_nrrd(tmp_path / f"{n}.nrrd", m, spacing=spacing) for n, m in zip("ABC", masks)}
    p = (.6 * np.mean(masks, 0) + .4 * np.random.default_rng(0).random(shape)).astype(np.float32)
    level = np.sum(masks, 0)
    where, options = {
        "whole": lambda: (np.ones(shape, bool), []),
        "box": lambda: (None, ["--region", "box", "--margin", "1"]),
        "band": lambda: (contour_band(level / 3, spacing, 2.0), ["--region", "band", "--band", "2.0"]),
        "disputed": lambda: ((level > 0) & (level < 3), ["--region", "disputed"]),
        "mask": lambda: (np.indices(shape)[2] > 6, ["--region-mask", tmp_path / "m.nrrd"]),
    }[region]()
    if region == "box":
        at = np.argwhere(level > 0)
        where = np.zeros(shape, bool)
        where[tuple(slice(max(a - 1, 0), b + 2) for a, b in zip(at.min(0), at.max(0)))] = True
    if region == "mask":
        write_nrrd(tmp_path / "m.nrrd", where.astype(np.uint8) * 3, spacing=spacing)
    # What lies outside is not looked at.
    stored = np.where(where, p, np.float32(7))
    assert region == "whole" or not where.all()
    answer = judge(write_nrrd(tmp_path / "p.nrrd", stored, spacing=spacing), files, *options)
    assert answer["voxels"] == where.sum() and answer["pairs"] == 3 * where.sum()
    assert_figures(answer, expected_figures(p, masks, where))


def test_box_reaches_twenty_voxels(tmp_path):
    mask = np.zeros((60, 70), np.uint8)
    mask[30, 35] = 1
    path = write_nrrd(tmp_path / "m.nrrd", mask)
    answer = judge(write_nrrd(tmp_path / "p.nrrd", mask.astype(np.float32)), {"A": path}, "--region", "box")
    assert answer["voxels"] == 41 * 41


@pytest.mark.parametrize("threshold", [.2, .5, .7])
def test_threshold(threshold, case, golden_p):
    answer = judge(golden_p, case, "--threshold", str(threshold))
    assert_figures(answer, expected_figures(GOLDEN_P, golden(3), threshold=threshold))


def test_reference_staple(tmp_path):
    files, masks, p = random_case(tmp_path, count=4, seed=8)
    run("fuse", "--method", "staple", "--mask", *raters(files), "-o", tmp_path / "s.nrrd")
    staple = read_nrrd(tmp_path / "s.nrrd").array
    assert not np.array_equal(staple, np.sum(masks, 0) >= 2)  # otherwise this would show nothing
    answer = judge(write_nrrd(tmp_path / "p.nrrd", p), files, "--reference", "staple")
    assert_figures(answer, expected_figures(p, masks, reference=staple))


# ---- lists of cases ----------------------------------------------------------------------------------

class Study:
    """A data list, its masks and a folder of predictions."""

    def __init__(self, folder, names="ABC"):
        self.folder, self.names, self.cases = folder, list(names), {}
        self.content = {"raters": self.names}
        self.pred = folder / "pred"
        self.pred.mkdir()

    def add(self, id_, masks, p, split="test", suffix="_prob.nrrd", pred=None):
        """masks: {rater: array}; p: probabilities, or levels with K + 1 values in the last axis."""
        label = {}
        for name, mask in masks.items():
            write_nrrd(self.folder / f"{id_}_{name}.nrrd", mask)
            label[name] = f"{id_}_{name}.nrrd"
        self.content.setdefault(split, []).append({"id": id_, "image": f"{id_}.nrrd", "label": label})
        self.predict(id_, p, suffix, pred)
        self.cases[id_] = (masks, p)
        return self

    def predict(self, id_, p, suffix="_prob.nrrd", pred=None):
        path = (pred or self.pred) / f"{id_}{suffix}"
        if suffix.startswith("_levels"):
            write_nrrd(path, p, components=True) if path.suffix == ".nrrd" else write_nifti(path, np.moveaxis(p, -1, 0))
        else:
            write_image(path, p)

    @property
    def words(self):
        path = self.folder / "list.json"
        path.write_text(json.dumps(self.content))
        return ["--data", path, "--pred", self.pred]


def study_of(folder, count=5, shape=(4, 12, 12)):
    study = Study(folder)
    for i in range(count):
        masks = blobs(3, shape, seed=i, noise=.03 + .03 * i)
        noise = np.random.default_rng(i).random(shape)
        study.add(f"c{i}", dict(zip("ABC", masks)), (.6 * np.mean(masks, 0) + .4 * noise).astype(np.float32))
    return study


def pooled(study, ids):
    masks = [np.concatenate([study.cases[i][0][name] for i in ids]) for name in study.names]
    figures = expected_figures(np.concatenate([study.cases[i][1] for i in ids]), masks)
    each = [expected_figures(study.cases[i][1], [study.cases[i][0][name] for name in study.names]) for i in ids]
    return {**figures, "dice": np.mean([one["dice"] for one in each])}


def test_list_pools_cases(tmp_path):
    study = study_of(tmp_path)
    answer = evaluate(*study.words)
    assert answer["case_count"] == 5
    assert_figures(answer, pooled(study, study.cases))
    assert abs(answer["dice"] - answer["dice_pooled"]) > 1e-3
    for key in ("mr_ece", "brier", "nll", "dice", "dice_pooled", "auc", "auc_pairs", "auc_histogram"):
        low, high = answer["ci"][key]
        assert low < answer[key] < high, key
        assert answer["bootstrap_60"][key]["std"] > 0
    shown = [b for b in answer["bins"] if b["count"]]
    # Bins that fewer than five cases fill have no band.
    banded = [b for b in shown if b["low"] is not None]
    assert len(banded) > len(shown) / 2 and all(0 <= b["low"] <= b["frequency"] <= b["high"] <= 1 for b in banded)


def test_draws_are_seeded(tmp_path):
    words = study_of(tmp_path).words
    first, again, other = (evaluate(*words, *seed) for seed in ([], ["--seed", "0"], ["--seed", "1"]))
    for answer in (first, again, other):
        del answer["seconds"]
    assert first == again == {k: v for k, v in evaluate(*words, "--threads", "1").items() if k != "seconds"}
    assert first["mr_ece"] == other["mr_ece"] and first["bootstrap_60"]["mr_ece"] != other["bootstrap_60"]["mr_ece"]
    assert first["ci"] == other["ci"]  # nothing is drawn for them


def test_intervals_are_over_patients(tmp_path):
    """The same case five times is no evidence of five patients."""
    study = study_of(tmp_path, 10)
    alone = evaluate(*study.words)
    assert alone["patients"] == alone["case_count"] == 10
    for i in range(10):
        masks, p = study.cases[f"c{i}"]
        study.add(f"again{i}", masks, p)
        study.content["test"][i]["patient"] = study.content["test"][-1]["patient"] = f"P{i}"
    both = evaluate(*study.words)
    assert both["patients"] == 10 and both["case_count"] == 20
    for key in ("mr_ece", "dice", "auc"):
        assert both["ci"][key] == pytest.approx(alone["ci"][key], abs=1e-6), key
    assert "20 cases" in run("evaluate", *study.words).out and "10 patients" in run("evaluate", *study.words).out
    run("evaluate", *study.words, "--plot", tmp_path / "patients.svg")
    assert "blue band: 95 % interval over 10 patients" in (tmp_path / "patients.svg").read_text("utf-8")
    for case in study.content["test"]:
        del case["patient"]
    low, high = evaluate(*study.words)["ci"]["mr_ece"]
    assert high - low < .8 * (both["ci"]["mr_ece"][1] - both["ci"]["mr_ece"][0])


def test_no_interval_below_five(tmp_path):
    study = study_of(tmp_path, 5)
    for i, case in enumerate(study.content["test"]):
        case["patient"] = f"P{min(i, 3)}"
    answer = evaluate(*study.words)
    assert answer["ci"] is None and answer["ci_note"] == "fewer than 5 patients: no interval" and answer["patients"] == 4
    assert "fewer than 5 patients: no interval" in run("evaluate", *study.words, "--plot", tmp_path / "r.svg").out
    assert "fewer than 5 patients: no interval" in (tmp_path / "r.svg").read_text("utf-8")
    del study.content["test"][4]["patient"]
    assert evaluate(*study.words)["ci"]["mr_ece"]


def test_an_interval_holds_its_value(tmp_path):
    """Few cases that are off in all directions: draws of them are off even more, and so were their percentiles."""
    random = np.random.default_rng(3)
    for trial in range(6):
        (tmp_path / str(trial)).mkdir()
        study = Study(tmp_path / str(trial))
        for i in range(6):
            p = random.random((1, 20, 20)).astype(np.float32)
            q = 1 / (1 + np.exp(-np.log(p / (1 - p)) + random.normal(0, .7)))
            study.add(f"c{i}", {n: (random.random(p.shape) < q).astype(np.uint8) for n in "ABC"}, p)
        answer = evaluate(*study.words)
        for key, (low, high) in answer["ci"].items():
            assert low <= answer[key] <= high, (trial, key)


def test_cases_without_marks_have_no_dice(tmp_path):
    study = study_of(tmp_path, 5)
    expected = evaluate(*study.words)["dice"]
    nothing = dict.fromkeys("ABC", np.zeros((4, 12, 12), np.uint8))
    study.add("blank", nothing, np.full((4, 12, 12), .1, np.float32))
    study.add("wrong", nothing, np.full((4, 12, 12), .9, np.float32))
    done = run("evaluate", *study.words, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert answer["dice_empty_cases"] == ["blank"] and answer["dice"] == pytest.approx(expected * 5 / 6)
    assert "nobody" not in " ".join(answer["remarks"])  # one of three may have marked something: that is no majority
    assert "Dice, mean over cases" in done.out and "Dice, pooled over voxels" in done.out
    assert "1 of 7 cases (blank) the reference marks nothing and nothing is predicted, or the reference is missing; left out of the mean." in done.out
    # Marks of a minority are marks: the box holds them, and nobody says that there are none.
    study.add("minority", {**nothing, "A": np.pad(np.ones((2, 4, 4), np.uint8), ((1, 1), (4, 4), (4, 4)))}, np.full((4, 12, 12), .1, np.float32))
    done = run("evaluate", *study.words)
    assert "2 of 8 cases (blank, minority) the reference marks nothing" in done.out and "nobody marks" not in done.out


@pytest.mark.parametrize("method, end", [("soft", ".nrrd"), ("median", ".nrrd"), ("staple", ".tif"), ("soft-gaussian", ".nrrd"),
                                         ("soft-gaussian", ".nii.gz"), ("svls", ".mha")])
def test_a_map_judged_by_its_own_raters(method, end, tmp_path):
    masks = blobs(3, (6, 40, 40), seed=1, noise=0)
    files = {name: write_nrrd(tmp_path / f"{name}.nrrd", m) for name, m in zip("ABC", masks)}
    p = (.7 * np.mean(masks, 0) + .3 * np.random.default_rng(1).random(masks[0].shape)).astype(np.float32)
    fused = tmp_path / f"fused{end}"
    run("fuse", "--method", method, *raters(files), "-o", fused)
    done = run("evaluate", "--prob", fused, *raters(files), "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert answer["circular"] and "Circular: the map of this case was made from the masks of the raters it is compared with" in done.out
    assert any("raters who were left out" in remark for remark in answer["remarks"])
    # By a rater who was left out it is not, nor is a model's prediction.
    some, left = dict(list(files.items())[:2]), dict(list(files.items())[2:])
    run("fuse", "--method", method, *raters(some), "-o", fused)
    assert not judge(fused, left)["circular"]
    assert not judge(write_nrrd(tmp_path / "p.nrrd", p), files)["circular"]


def test_a_list_of_fused_maps_is_circular(tmp_path):
    study = study_of(tmp_path, 3)
    study.predict("c1", np.mean(list(study.cases["c1"][0].values()), 0).astype(np.float32))
    answer = evaluate(*study.words)
    assert answer["circular"] and "1 of 3 cases (c1)" in answer["remarks"][0]


def test_one_case_has_no_interval(case, golden_p):
    answer = judge(golden_p, case)
    assert answer["ci"] is None and answer["bootstrap_60"] is None and "no interval" in answer["ci_note"]
    table = run("evaluate", "--prob", golden_p, *raters(case)).out
    assert "One case: no interval." in table and "nan" not in table.lower()


def test_split(tmp_path):
    study = study_of(tmp_path, 4)
    study.content["validation"] = [study.content["test"].pop(), study.content["test"].pop()]
    assert_figures(evaluate(*study.words, "--split", "test"), pooled(study, ["c0", "c1"]))
    assert_figures(evaluate(*study.words, "--split", "validation"), pooled(study, ["c2", "c3"]))
    assert_figures(evaluate(*study.words), pooled(study, study.cases))


def test_missing_raters_count_where_they_are(tmp_path):
    study = Study(tmp_path)
    shape = (4, 12, 12)
    for i, names in enumerate(["ABC", "AC", "B"]):
        masks = dict(zip("ABC", blobs(3, shape, seed=i)))
        study.add(f"c{i}", {n: masks[n] for n in names}, np.random.default_rng(i).random(shape).astype(np.float32))
    answer = evaluate(*study.words)
    pairs = [(p.ravel(), m.ravel()) for masks, p in study.cases.values() for m in masks.values()]
    p, y = (np.concatenate(v).astype(float) for v in zip(*pairs))
    assert answer["pairs"] == len(p) and answer["voxels"] == 3 * np.prod(shape)
    assert answer["mr_ece"] == pytest.approx(ece_of(p, y, 15), abs=1e-6)
    assert answer["brier"] == pytest.approx(np.mean((p - y) ** 2), abs=1e-6)
    for name in "ABC":
        own = [(p.ravel(), masks[name].ravel()) for masks, p in study.cases.values() if name in masks]
        p, y = (np.concatenate(v).astype(float) for v in zip(*own))
        assert answer["raters"][name]["ece"] == pytest.approx(ece_of(p, y, 15), abs=1e-6)
        assert answer["raters"][name]["brier"] == pytest.approx(np.mean((p - y) ** 2), abs=1e-6)


def test_rater_who_is_nowhere(tmp_path):
    study = study_of(tmp_path, 2)
    study.content["raters"].append("D")
    answer = evaluate(*study.words)
    assert answer["raters"]["D"] == {"ece": None, "brier": None}
    study.names = list("ABC")
    assert_figures(answer, pooled(study, study.cases))
    refused("evaluate", *study.words, "--reference", "E", says=["--reference", "'E'"])


def test_list_without_names(tmp_path):
    study = study_of(tmp_path, 2)
    del study.content["raters"]
    for one in study.content["test"]:
        one["label"] = list(one["label"].values())
    answer = evaluate(*study.words)
    assert len(answer["raters"]) == 3
    assert_figures(answer, pooled(study, study.cases))


def test_levels_are_preferred(tmp_path):
    study = study_of(tmp_path, 2)
    for id_, (masks, p) in list(study.cases.items()):
        levels = binomial(p, 3)
        study.predict(id_, levels, "_levels.nii.gz" if id_ == "c0" else "_levels.nrrd")
        study.cases[id_] = (masks, readout_of(levels, "expected").astype(np.float32))
    answer = evaluate(*study.words, "--readout", "expected")
    assert answer["rps"] is not None
    assert_figures(answer, pooled(study, study.cases), 1e-5)


@pytest.mark.parametrize("suffix", ["_prob.nii.gz", "_prob.nii", "_prob.mha", ".nrrd"])
def test_names_of_predictions(suffix, tmp_path):
    study = study_of(tmp_path, 2)
    for id_, (_, p) in study.cases.items():
        (study.pred / f"{id_}_prob.nrrd").unlink()
        study.predict(id_, p, suffix)
    assert_figures(evaluate(*study.words), pooled(study, study.cases))


def test_case_without_region(tmp_path):
    study = study_of(tmp_path, 2)
    same = blobs(1, (4, 12, 12), seed=9)[0]
    study.add("agreed", dict.fromkeys("ABC", same), same.astype(np.float32))
    done = run("evaluate", *study.words, "--region", "disputed", "--json", "-")
    assert done.json["case_count"] == 2
    assert done.err.count("\n") == 1 and "agreed" in done.err and "region is empty" in done.err
    once = run("evaluate", *study.words, "--region", "disputed", "--versus", study.pred)
    assert once.err == done.err
    # Chosen by the raters' answers: no test of a difference, no worst bin, but why.
    assert "the figures describe and do not rank" in once.out and "First minus second" not in once.out
    assert "of the raters mark it." not in once.out and any("describe and do not rank" in remark for remark in done.json["remarks"])
    both = run("evaluate", *study.words, "--region", "box", "--region", "disputed", "--versus", study.pred, "--json", "-").json
    assert both["difference"]["mr_ece"]["value"] == 0 and both["regions"]["disputed"]["difference"] is None
    assert both["regions"]["box"]["difference"] and not any("do not rank" in remark for remark in both["remarks"])
    study.content["test"] = study.content["test"][-1:]
    done = run("evaluate", *study.words, "--region", "disputed", check=False)
    assert done.code == 2 and done.out == "" and "region is empty in every case" in done.err


def test_missing_prediction(tmp_path):
    study = study_of(tmp_path, 4)
    (study.pred / "c1_prob.nrrd").unlink()
    done = run("evaluate", *study.words, "--json", "-", check=False)
    assert done.code == 1 and "c1" in done.err and "c1_prob.nrrd" in done.err and "1 of 4 cases" in done.err
    assert_figures(done.json, pooled(study, ["c0", "c2", "c3"]))
    for path in study.pred.iterdir():
        path.unlink()
    done = run("evaluate", *study.words, "--json", tmp_path / "o.json", check=False)
    assert done.code != 0 and done.out == "" and "No case could be evaluated." in done.err
    assert not (tmp_path / "o.json").exists()


@pytest.mark.parametrize("bad, says", [
    (lambda p: np.where(np.indices(p.shape).sum(0) == 0, np.float32(1.5), p), "1.5 at voxel (0, 0, 0)"),
    (lambda p: p[:, :-1], "size"),
    (lambda p: np.stack([p, 1 - p], -1), "2")])
def test_bad_prediction_leaves_the_others(bad, says, tmp_path):
    study = study_of(tmp_path, 4)
    p = bad(study.cases["c1"][1])
    write_nrrd(study.pred / "c1_prob.nrrd", p, components=p.ndim == 4)
    done = run("evaluate", *study.words, "--json", "-", check=False)
    assert done.code == 1, done.err
    assert "c1_prob.nrrd" in done.err and says in done.err
    assert_figures(done.json, pooled(study, ["c0", "c2", "c3"]))


def second_folder(study, sharper):
    other = study.folder / "other"
    other.mkdir()
    for id_, (_, p) in study.cases.items():
        study.predict(id_, sharper(p), pred=other)
    return other


def test_versus(tmp_path):
    study = study_of(tmp_path, 8)
    other = second_folder(study, lambda p: (p > .5).astype(np.float32))
    answer = evaluate(*study.words, "--versus", other)
    alone = evaluate("--data", tmp_path / "list.json", "--pred", other)
    for key in ("mr_ece", "brier", "nll", "dice"):
        one = answer["difference"][key]
        assert one["value"] == pytest.approx(answer[key] - alone[key], abs=1e-9)
        assert one["low"] <= one["value"] <= one["high"] and 0 < one["p"] <= 1
    assert answer["difference"]["nll"]["p"] < .01
    table = run("evaluate", *study.words, "--versus", other).out
    assert "First minus second" in table and "AUC (by histogram)" in table
    small = [line for line in table.splitlines() if line.strip().startswith("NLL ")][-1]
    assert small.endswith("< 0.001") if answer["difference"]["nll"]["p"] < .001 else "< " not in small
    assert " 0.000" not in table.split("First minus second")[1].replace("0.0000", "")
    same = evaluate(*study.words, "--versus", study.pred)["difference"]["mr_ece"]
    assert (same["value"], same["low"], same["high"], same["p"]) == (0, 0, 0, 1)


@pytest.mark.parametrize("folder", ["pred", "other"])
def test_versus_uses_the_cases_both_have(folder, tmp_path):
    """A prediction that cannot be used leaves its case out of both models."""
    study = study_of(tmp_path, 4)
    other = second_folder(study, np.sqrt)
    write_nrrd(tmp_path / folder / "c1_prob.nrrd", np.full((4, 12, 12), 1.5, np.float32))
    done = run("evaluate", *study.words, "--versus", other, "--json", "-", check=False)
    assert done.code == 1 and f"{folder}/c1_prob.nrrd" in done.err, done.err
    assert_figures(done.json, pooled(study, ["c0", "c2", "c3"]))
    assert done.json["case_count"] == 3 and done.json["difference"]["mr_ece"]["value"] != 0


def test_versus_of_one_case(tmp_path):
    study = study_of(tmp_path, 1)
    other = second_folder(study, np.sqrt)
    answer = run("evaluate", *study.words, "--versus", other, "--json", tmp_path / "o.json")
    assert "nan" not in answer.out.lower(), answer.out
    one = json.loads((tmp_path / "o.json").read_text("utf-8"))["difference"]["mr_ece"]
    assert one["value"] is not None and one["low"] is one["high"] is one["p"] is None


# ---- recalibration -----------------------------------------------------------------------------------

SHAPE = (8, 24, 24)


def simulated(folder, sharpness, kind):
    """Raters who mark with chance sigmoid(z), and a model that thinks it is sigmoid(sharpness z)."""
    study = Study(folder)
    for i in range(8):
        random = np.random.default_rng(40 + i)
        z = random.normal(-.3, 1.3, SHAPE)
        q = 1 / (1 + np.exp(-z))
        masks = {n: (random.random(SHAPE) < q).astype(np.uint8) for n in "ABC"}
        p = (1 / (1 + np.exp(-sharpness * z))).astype(np.float32)
        if kind == "levels":  # all levels too sure
            p = binomial(q, 3).astype(float) ** sharpness
            p = (p / p.sum(-1, keepdims=True)).astype(np.float32)
        if kind == "shares":  # the share of raters too sure
            p = binomial(p, 3)
        study.add(f"c{i}", masks, p, "validation" if i < 4 else "test", "_prob.nrrd" if kind == "prob" else "_levels.nrrd")
    study.words  # writes the list
    return study


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Over-confident and calibrated models, with plain probabilities and with levels."""
    return {(name, kind): simulated(tmp_path_factory.mktemp(f"{name}-{kind}"), sharpness, kind)
            for name, sharpness in (("sharp", 3.0), ("fine", 1.0)) for kind in ("prob", "levels", "shares")}


def fit(study, method, out, *options):
    return run("recalibrate", "--method", method, *study.words, "-o", out, *options)


REPAIRS = [*((method, "prob") for method in METHODS), ("temperature", "levels"), ("isotonic", "levels"),
           ("platt", "shares"), ("beta", "shares"), ("isotonic", "shares")]


@pytest.mark.parametrize("method, kind", REPAIRS)
def test_overconfident_model_is_repaired(method, kind, studies, tmp_path):
    study, out = studies["sharp", kind], tmp_path / "r.json"
    readout = ["--readout", "expected"] if kind != "prob" else []
    said = fit(study, method, out, *readout).out
    assert method in said and "MR-ECE" in said and " after" in said
    stored = json.loads(out.read_text("utf-8"))
    assert stored["method"] == method and stored["cases"] == ["c0", "c1", "c2", "c3"]
    assert stored["pairs"] == 4 * 3 * np.prod(SHAPE)
    if method == "temperature":
        assert stored["parameters"] == pytest.approx([3.0], rel=.05) and stored["levels"] == (4 if kind == "levels" else 0)
    after = evaluate(*study.words, "--split", "test", "--recalibration", out, *readout)
    before = after["before_recalibration"]
    assert before["mr_ece"] > .05
    assert after["mr_ece"] < .2 * before["mr_ece"], (before["mr_ece"], after["mr_ece"])
    assert after["nll"] < before["nll"]


@pytest.mark.parametrize("method, kind", REPAIRS)
def test_calibrated_model_is_left_alone(method, kind, studies, tmp_path):
    study, out = studies["fine", kind], tmp_path / "r.json"
    readout = ["--readout", "expected"] if kind != "prob" else []
    fit(study, method, out, *readout, "--force")  # it helps hardly or not at all
    stored = json.loads(out.read_text("utf-8"))
    identity = {"temperature": [1], "platt": [1, 0], "beta": [1, 1, 0], "isotonic": []}[method]
    assert stored["parameters"] == pytest.approx(identity, abs=.1)
    if method == "isotonic":
        x, y = np.array(stored["x"]), np.array(stored["y"])
        assert np.abs(x - y)[(x > .05) & (x < .95)].max() < .05
    after = evaluate(*study.words, "--split", "test", "--recalibration", out, *readout)
    # A tenth of what the over-confident models are off: .055 (levels) to .15.
    assert abs(after["mr_ece"] - after["before_recalibration"]["mr_ece"]) < .0055


def test_before_and_after(studies, tmp_path):
    study, out = studies["sharp", "prob"], tmp_path / "r.json"
    fit(study, "platt", out)
    done = run("evaluate", *study.words, "--split", "test", "--recalibration", out, "--json", tmp_path / "o.json")
    before = evaluate(*study.words, "--split", "test")
    for key in ("seconds", "version", "left_out", "cases", "case_means"):  # of the whole document
        del before[key]
    part = json.loads((tmp_path / "o.json").read_text("utf-8"))["before_recalibration"]
    assert part.pop("cases") == 4 and part == before
    assert f"Before recalibration: MR-ECE {100 * before['mr_ece']:.2f} %" in done.out


def test_recalibrate_takes_validation_cases(tmp_path):
    study = study_of(tmp_path, 2)
    refused("recalibrate", "--method", "platt", *study.words, "-o", tmp_path / "r.json",
            says=["list.json", "split validation", "Use --split"], folder=None)


def folded(folder, flip):
    """Two cases, one too sure and the other too unsure (flip), or four that are all too sure."""
    study = Study(folder)
    for i in range(2 if flip else 4):
        random = np.random.default_rng(70 + i)
        z = random.normal(0, 1.5, SHAPE)
        masks = {n: (random.random(SHAPE) < 1 / (1 + np.exp(-z))).astype(np.uint8) for n in "ABC"}
        slope = 1 / 3 if flip and i else 3
        study.add(f"c{i}", masks, (1 / (1 + np.exp(-slope * z))).astype(np.float32), "validation")
    return study


def left_out(study, method, folder):
    """MR-ECE with each case corrected by a fit to the others: every fit and every correction through the program."""
    parts = Study(folder)
    for i, (id_, (masks, p)) in enumerate(study.cases.items()):
        others = Study(folder / f"without{i}") if (folder / f"without{i}").mkdir() is None else None
        for other in study.cases:
            if other != id_:
                others.add(other, *study.cases[other], "validation")
        out = folder / f"{i}.json"
        run("recalibrate", "--method", method, *others.words, "-o", out, "--force")
        slope, shift = (json.loads(out.read_text("utf-8"))["parameters"] + [0])[:2]
        z = np.log(p.astype(float).clip(1e-7, 1 - 1e-7) / (1 - p.astype(float).clip(1e-7, 1 - 1e-7)))
        slope = 1 / slope if method == "temperature" else slope
        parts.add(id_, masks, (1 / (1 + np.exp(-slope * z - shift))).astype(np.float32), "validation")
    return evaluate(*parts.words)["mr_ece"]


@pytest.mark.parametrize("method", ["platt", "temperature"])
@pytest.mark.parametrize("flip", [True, False], ids=["each differently", "all alike"])
def test_a_correction_must_help_cases_that_it_was_not_fitted_to(flip, method, tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "folds").mkdir()
    study, out = folded(tmp_path / "study", flip), tmp_path / "r.json"
    words = ["recalibrate", "--method", method, *study.words, "-o", out, "--json", tmp_path / "o.json"]
    done = run(*words, check=False)
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    before, fair = answer["before"]["mr_ece"], answer["leave_one_out"]["mr_ece"]
    assert fair == pytest.approx(left_out(study, method, tmp_path / "folds"), abs=1e-6)
    assert f"{100 * before:.2f} % before" in done.out and f"{100 * fair:.2f} % with each case corrected by a fit to the others" in done.out
    assert answer["helps"] == answer["stored"] == out.exists() == (fair < before) == (not flip)
    assert (done.code == 0) == out.exists() and ("does not help" in done.out) == flip and ("--force" in done.out) == flip
    if flip:
        quiet = run(*words, "--quiet", check=False)
        assert quiet.code == 1 and quiet.out == "" and "does not help" in quiet.err and not out.exists()
        run(*words, "--force")
        assert out.exists() and json.loads((tmp_path / "o.json").read_text("utf-8"))["stored"] is True


def test_one_case_cannot_be_left_out(tmp_path):
    files, _, p = random_case(tmp_path)
    prob = write_nrrd(tmp_path / "p.nrrd", p)
    done = run("recalibrate", "--method", "isotonic", "--prob", prob, *raters(files), "-o", tmp_path / "r.json", "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert answer["leave_one_out"] is None and answer["stored"] is True
    assert "With one case, the correction cannot be tested on other cases." in done.out


def test_corrections_say_where_they_were_fitted(tmp_path):
    """In the box, by the expected share, unless told; judging elsewhere gets a remark."""
    study = Study(tmp_path)
    for i in range(4):
        random = np.random.default_rng(i)
        masks = {n: np.zeros((60, 60), np.uint8) for n in "ABC"}
        for n in masks:
            masks[n][28:32, 28:32] = random.random((4, 4)) < .6
        study.add(f"c{i}", masks, binomial(np.where(sum(masks.values()) > 0, .9, random.random((60, 60)) * .2), 3),
                  "validation" if i < 2 else "test", "_levels.nrrd")
    out = tmp_path / "r.json"
    run("recalibrate", "--method", "temperature", *study.words, "-o", out, "--force")
    stored = json.loads(out.read_text("utf-8"))
    assert (stored["region"], stored["margin"], stored["readout"], stored["one_probability"]) == ("box", 20, "expected", False)
    assert stored["pairs"] < 2 * 3 * 60 * 60
    words = ["evaluate", *study.words, "--split", "test", "--recalibration", out]
    assert run(*words).err == ""
    for more, says in ((["--region", "whole"], "fitted on the region box (20 voxels around the marks); this evaluates the region whole."),
                       (["--margin", "3"], "this evaluates the region box (3 voxels around the marks)."),
                       (["--readout", "majority"], "fitted with the readout expected; this evaluates the readout majority.")):
        assert says in run(*words, *more).err
    del stored["region"], stored["margin"], stored["band"], stored["one_probability"]  # as earlier versions wrote it
    out.write_text(json.dumps(stored))
    assert run(*words, "--region", "whole").err == ""


def test_recalibrate_json(studies, tmp_path):
    answer = fit(studies["sharp", "prob"], "platt", tmp_path / "r.json", "--json", "-").json
    assert answer["method"] == "platt" and answer["before"]["cases"] == 4
    assert answer["after"]["mr_ece"] < .2 * answer["before"]["mr_ece"]


def test_recalibrate_one_case(tmp_path):
    """Works, on one case too; the file remembers it under the prediction's name."""
    files, masks, p = random_case(tmp_path)
    prob = write_nrrd(tmp_path / "p.nrrd", p)
    run("recalibrate", "--method", "isotonic", "--prob", prob, *raters(files), "-o", tmp_path / "r.json")
    refused("evaluate", "--prob", prob, *raters(files), "--recalibration", tmp_path / "r.json",
            says=["p.nrrd", "--allow-fitted-cases"])


def test_temperature_keeps_readouts_coherent(studies, tmp_path):
    """One correction for all readouts: as if the levels themselves had been corrected."""
    study, out = studies["sharp", "levels"], tmp_path / "r.json"
    fit(study, "temperature", out)
    t = json.loads(out.read_text("utf-8"))["parameters"][0]
    corrected = []
    for id_ in ("c4", "c5", "c6", "c7"):
        levels = study.cases[id_][1].astype(float).clip(1e-7) ** (1 / t)
        corrected.append(levels / levels.sum(-1, keepdims=True))
    masks = [np.concatenate([study.cases[i][0][n] for i in ("c4", "c5", "c6", "c7")]) for n in "ABC"]
    for how in ("majority", "expected", "at-least:1", "at-least:2", "at-least:3"):
        answer = evaluate(*study.words, "--split", "test", "--recalibration", out, "--readout", how)
        expected = expected_figures(readout_of(np.concatenate(corrected), how), masks)
        assert_figures(answer, {k: expected[k] for k in ("brier", "nll", "auc", "auc_pairs", "signed")}, 1e-5)
        assert answer["mr_ece"] == pytest.approx(expected["mr_ece"], abs=1e-4)


def test_fitted_cases_are_refused(studies, tmp_path):
    study, out = studies["sharp", "prob"], tmp_path / "r.json"
    fit(study, "platt", out)
    words = [*study.words, "--recalibration", out]
    for split in (["--split", "validation"], []):
        refused("evaluate", *words, *split, "--json", tmp_path / "o.json", "--plot", tmp_path / "o.svg",
                says=["case c0", "--allow-fitted-cases"], folder=tmp_path)
    assert evaluate(*words, "--split", "validation", "--allow-fitted-cases")["case_count"] == 4
    assert evaluate(*words, "--split", "test")["case_count"] == 4


def test_renamed_cases_are_recognized(studies, tmp_path):
    study, out = studies["sharp", "prob"], tmp_path / "r.json"
    fit(study, "platt", out)
    masks, p = study.cases["c2"]
    files = {n: write_nrrd(tmp_path / f"{n}.nrrd", m) for n, m in masks.items()}
    for prob in (write_nrrd(tmp_path / "new.nrrd", p), write_nifti(tmp_path / "new.nii.gz", p)):
        words = ["--prob", prob, *raters(files), "--recalibration", out]
        refused("evaluate", *words, says=["new.n", "--allow-fitted-cases"])
        evaluate(*words, "--allow-fitted-cases")
    changed = p.copy()
    changed[0, 0, 0] = .5
    evaluate("--prob", write_nrrd(tmp_path / "c.nrrd", changed), *raters(files), "--recalibration", out)


def test_empty_predictions_are_not_the_same_case(tmp_path):
    """Two cases in which a model sees nothing hold the same voxels, and are two cases all the same."""
    study = study_of(tmp_path, 3)
    nothing = np.zeros((4, 12, 12), np.float32)
    for split in ("validation", "test"):
        masks = blobs(3, (4, 12, 12), seed=len(split))
        study.add(f"nothing-{split}", dict(zip("ABC", masks)), nothing, split)
    study.content["validation"] += study.content["test"][:2]
    study.content["test"] = study.content["test"][2:]
    fit(study, "isotonic", tmp_path / "r.json")
    assert evaluate(*study.words, "--split", "test", "--recalibration", tmp_path / "r.json")["case_count"] == 2


def test_same_file_name_elsewhere_is_another_case(tmp_path):
    for name, seed in (("here", 1), ("there", 2)):
        (tmp_path / name).mkdir()
        files, _, p = random_case(tmp_path / name, seed=seed)
        write_nrrd(tmp_path / name / "p.nrrd", p)
    words = ["--prob", "p.nrrd", *raters({n: f"{n}.nrrd" for n in "ABC"})]
    run("recalibrate", "--method", "isotonic", *words, "-o", "../r.json", cwd=tmp_path / "here")
    run("evaluate", *words, "--recalibration", "../r.json", cwd=tmp_path / "there")
    refused("evaluate", *words, "--recalibration", "../r.json", says="--allow-fitted-cases", cwd=tmp_path / "here")


def test_test_cases_are_refused(studies, tmp_path):
    words = ["recalibrate", "--method", "platt", *studies["sharp", "prob"].words, "-o", tmp_path / "r.json"]
    refused(*words, "--split", "test", says=["--allow-test-cases", "--split validation"], folder=tmp_path)
    run(*words, "--split", "test", "--allow-test-cases")
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))["cases"] == ["c4", "c5", "c6", "c7"]


@pytest.mark.parametrize("fitted, judged", [("majority", "expected"), ("at-least:2", "at-least:3"), ("expected", "majority")])
def test_readout_must_be_the_fitted_one(fitted, judged, studies, tmp_path):
    study, out = studies["sharp", "levels"], tmp_path / "r.json"
    fit(study, "isotonic", out, "--readout", fitted)
    words = [*study.words, "--split", "test", "--recalibration", out]
    refused("evaluate", *words, "--readout", judged, says=["readout " + fitted, "--readout"])
    evaluate(*words, "--readout", fitted)


def test_correction_of_levels_and_of_probabilities(studies, tmp_path):
    fit(studies["sharp", "levels"], "temperature", tmp_path / "levels.json")
    refused("evaluate", *studies["sharp", "prob"].words, "--split", "test", "--recalibration", tmp_path / "levels.json",
            says=["levels.json", "c4_prob.nrrd", "4 levels"])


def test_temperature_of_a_mixed_folder(studies, tmp_path):
    """Levels here and plain probabilities there have no temperature in common."""
    study = studies["sharp", "levels"]
    mixed = tmp_path / "mixed"
    for id_ in ("c0", "c3"):
        shutil.copytree(study.pred, mixed, dirs_exist_ok=True)
        (mixed / f"{id_}_levels.nrrd").unlink()
        write_nrrd(mixed / f"{id_}_prob.nrrd", readout_of(study.cases[id_][1], "majority").astype(np.float32))
        refused("recalibrate", "--method", "temperature", "--data", study.folder / "list.json", "--pred", mixed,
                "-o", tmp_path / "r.json", says=["temperature", "levels"], folder=tmp_path)
        (mixed / f"{id_}_prob.nrrd").unlink()


def test_remarks_come_once(studies, tmp_path):
    study = studies["sharp", "prob"]
    pred = tmp_path / "pred"
    shutil.copytree(study.pred, pred)
    (pred / "c1_prob.nrrd").unlink()
    done = run("recalibrate", "--method", "platt", "--data", study.folder / "list.json", "--pred", pred,
               "-o", tmp_path / "r.json", check=False)
    assert done.code == 1 and done.err.count("Case c1 was left out") == 1 and done.err.count("1 of 4 cases") == 1
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))["cases"] == ["c0", "c2", "c3"]


def test_nothing_to_fit(tmp_path):
    mask = np.zeros((4, 5, 6), np.uint8)
    files = {n: write_nrrd(tmp_path / f"{n}.nrrd", mask) for n in "AB"}
    prob = write_nrrd(tmp_path / "p.nrrd", np.random.default_rng(0).random(mask.shape).astype(np.float32))
    for method in METHODS:
        refused("recalibrate", "--method", method, "--prob", prob, *raters(files), "-o", tmp_path / "r.json",
                says="", folder=tmp_path)


GOOD = {"method": "platt", "levels": 0, "readout": "majority", "at_least": 0, "parameters": [.5, .1], "x": [], "y": [],
        "pairs": 10, "cases": [], "fingerprints": []}


def test_recalibration_by_hand(case, golden_p, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(GOOD))
    p = GOLDEN_P.astype(float).clip(1e-7, 1 - 1e-7)
    corrected = 1 / (1 + np.exp(-(.5 * np.log(p / (1 - p)) + .1)))
    answer = judge(golden_p, case, "--recalibration", tmp_path / "r.json")
    assert_figures(answer, expected_figures(corrected, golden(3)))
    # Voxels that do not count may hold anything, here too.
    where = np.arange(512).reshape(8, 8, 8) % 3 == 0
    mask = write_nrrd(tmp_path / "m.nrrd", where.astype(np.uint8))
    prob = write_nrrd(tmp_path / "q.nrrd", np.where(where, GOLDEN_P, np.float32(np.nan)))
    answer = judge(prob, case, "--recalibration", tmp_path / "r.json", "--region-mask", mask)
    assert_figures(answer, expected_figures(corrected, golden(3), where))


@pytest.mark.parametrize("change", [
    {"method": "magic"}, {"method": None}, {"method": 3}, {"parameters": []}, {"parameters": [.5]},
    {"parameters": [.5, .1, 0]}, {"parameters": [.5] * 4}, {"parameters": ["a", "b"]}, {"parameters": [0, 0]},
    {"parameters": [-1, 0]}, {"parameters": {"a": 1}}, {"parameters": None}, {"levels": 4}, {"levels": "4"},
    {"levels": .5}, {"levels": -1}, {"levels": 2**40}, {"readout": "median"}, {"readout": 7}, {"readout": "at-least"},
    {"readout": "at-least", "at_least": -1}, {"at_least": 2**40}, {"at_least": "2"}, {"cases": "c1"}, {"cases": [1]},
    {"fingerprints": {"a": 1}}, {"region": "moon"}, {"region": 3}, {"region": "box", "margin": -1}, {"region": "band", "band": "x"},
    {"region_mask": 3}, {"one_probability": 1}, {"method": "temperature", "parameters": [0]},
    {"method": "temperature", "parameters": [1], "levels": 1}, {"method": "temperature", "parameters": [1], "levels": 66},
    {"method": "temperature", "parameters": [1, 2]}, {"method": "beta", "parameters": [0, 0, 1]},
    {"method": "beta", "parameters": [-1, 1, 0]}, {"method": "isotonic", "parameters": []},
    {"method": "isotonic", "parameters": [], "x": [.1, .2], "y": [.1]},
    {"method": "isotonic", "parameters": [], "x": [.2, .1], "y": [.1, .2]},
    {"method": "isotonic", "parameters": [], "x": [.1, .2], "y": [.2, .1]},
    {"method": "isotonic", "parameters": [], "x": [-1, 2], "y": [0, 1]},
    {"method": "isotonic", "parameters": [], "x": list(np.arange(300) / 300), "y": list(np.arange(300) / 300)}],
    ids=lambda change: json.dumps(change)[:60])
def test_hostile_recalibration(change, case, golden_p, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**GOOD, **change}))
    refused("evaluate", "--prob", golden_p, *raters(case), "--recalibration", path, says=["r.json"], folder=tmp_path)


@pytest.mark.parametrize("text", [
    b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b'{"method": "platt"}', json.dumps(GOOD).encode()[:-30],
    json.dumps(GOOD).replace("0.5", "NaN").encode(), json.dumps(GOOD).replace("0.5", "1e999").encode(),
    b"[" * 100000, json.dumps(GOOD).encode() + b"x", b'{"method": "platt", ' + json.dumps(GOOD).encode()[1:]])
def test_damaged_recalibration(text, case, golden_p, tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes(text)
    refused("evaluate", "--prob", golden_p, *raters(case), "--recalibration", path, says=["r.json"], folder=tmp_path)


def test_missing_recalibration(case, golden_p, tmp_path):
    words = ["evaluate", "--prob", golden_p, *raters(case), "--recalibration"]
    refused(*words, tmp_path / "none.json", says=["none.json", "does not exist"], folder=tmp_path)
    refused(*words, tmp_path, says=[str(tmp_path), "cannot be read"], folder=tmp_path)


# ---- diagrams ----------------------------------------------------------------------------------------

def svg_of(path):
    root = xml.parse(path).getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == name + "svg"
    return root, name


def test_plot_svg(tmp_path):
    study = study_of(tmp_path)
    out = tmp_path / "r.svg"
    answer = evaluate(*study.words, "--plot", out)
    root, name = svg_of(out)
    assert "Reliability" in root.find(name + "title").text
    words = root.find(name + "desc").text
    assert f"MR-ECE {100 * answer['mr_ece']:.2f} %" in words
    low, high = answer["ci"]["mr_ece"]
    assert f"(95 %: {100 * low:.2f} % to {100 * high:.2f} %)" in words
    assert re.search(r"Where the model predicts \d+ %, \d+ % of the raters mark the voxel", words)
    curve = max(root.iter(name + "polyline"), key=lambda line: len(line.get("points")))
    points = re.split(r"[ ,]+", curve.get("points").strip())
    assert len(points) == 2 * sum(b["count"] > 0 for b in answer["bins"])
    assert root.find(f".//{name}polygon") is not None  # the band
    texts = [t.text for t in root.iter(name + "text")]
    assert any("95 % interval over 5 cases" in t for t in texts)
    assert "nan" not in out.read_text("utf-8").lower()
    assert leftovers(tmp_path) == []


def test_plot_of_levels(tmp_path):
    study = study_of(tmp_path)
    answer = evaluate(*study.words, "--plot-levels", tmp_path / "l.svg")
    text = (tmp_path / "l.svg").read_text("utf-8")
    root = xml.fromstring(text)
    assert "Reliability of levels" in text and "at least 1 of 3 raters" in text and "all 3 raters" in text and "binomial" in text
    for one in answer["level_calibration"]["t"]:
        assert f"{100 * one['ece']:.2f} % off on average" in text
    circles = [e for e in root.iter() if e.tag.endswith("circle")]
    assert len(circles) == sum(b["count"] > 0 for one in answer["level_calibration"]["t"] for b in one["bins"])


def test_plot_of_equal_mass(tmp_path):
    run("evaluate", *study_of(tmp_path).words, "--binning", "mass", "--plot", tmp_path / "r.svg")
    root, name = svg_of(tmp_path / "r.svg")
    texts = [t.text for t in root.iter(name + "text")]
    assert "bins of equal mass: no band" in texts and not any("blue band" in t for t in texts)


def test_plot_of_one_case(case, golden_p, tmp_path):
    run("evaluate", "--prob", golden_p, *raters(case), "--plot", tmp_path / "r.svg")
    root, name = svg_of(tmp_path / "r.svg")
    assert any(t.text == "one case: no interval" for t in root.iter(name + "text"))


def test_plot_before_and_after(studies, tmp_path):
    study = studies["sharp", "prob"]
    fit(study, "platt", tmp_path / "r.json", "--plot", tmp_path / "fit.svg")
    run("evaluate", *study.words, "--split", "test", "--recalibration", tmp_path / "r.json", "--plot", tmp_path / "r.svg")
    for path in (tmp_path / "fit.svg", tmp_path / "r.svg"):
        root, name = svg_of(path)
        assert len(list(root.iter(name + "polyline"))) == 2
        assert any(t.text == "gray: before recalibration" for t in root.iter(name + "text"))


def test_words_say_which_way(studies):
    study = studies["sharp", "prob"]
    out = run("evaluate", *study.words, "--split", "test").out
    assert re.search(r"Where the model predicts \d+ %, \d+ % of the raters mark the voxel\.", out)


def test_plot_png(case, golden_p, tmp_path):
    out = tmp_path / "r.png"
    done = run("evaluate", "--prob", golden_p, *raters(case), "--plot", out, check=False)
    if done.code == 2 and "this build" in done.err:
        pytest.skip("built without librsvg")
    data = out.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack_from(">II", data, 16) == (960, 1370)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("name", ["r.pdf", "r", "r.svg.gz", "r.jpg"])
def test_plot_endings(name, tmp_path):
    """Before any work: not even the files are looked for."""
    words = ["--prob", tmp_path / "nowhere.nrrd", "--rater", f"A={tmp_path}/nowhere.nrrd", "--plot", tmp_path / name]
    refused("evaluate", *words, says=[name, ".svg"], folder=tmp_path)
    refused("recalibrate", *words, "--method", "platt", "-o", tmp_path / "r.json", says=[name, ".svg"], folder=tmp_path)


@pytest.mark.parametrize("option, name", [("--json", "o.json"), ("--plot", "o.svg"), ("-o", "o.json")])
def test_outputs_are_checked_first(option, name, tmp_path):
    words = ["--prob", tmp_path / "nowhere.nrrd", "--rater", f"A={tmp_path}/nowhere.nrrd", option, tmp_path / "no" / name]
    if option != "-o":
        refused("evaluate", *words, says=[option, str(tmp_path / "no")], folder=tmp_path)
        words += ["-o", tmp_path / "r.json"]
    refused("recalibrate", *words, "--method", "platt", says=[option, str(tmp_path / "no")], folder=tmp_path)


# ---- bad input ---------------------------------------------------------------------------------------

def both(words, says, folder):
    """evaluate and recalibrate refuse alike, with every output asked for."""
    outputs = ["--json", folder / "o.json", "--plot", folder / "o.svg"]
    refused("evaluate", *words, *outputs, says=says, folder=folder)
    refused("recalibrate", "--method", "temperature", *words, *outputs, "-o", folder / "r.json", says=says, folder=folder)
    assert leftovers(folder) == []


@pytest.mark.parametrize("value, shown, dtype", [(1.25, "1.25", "float32"), (1.25, "1.25", "float64"), (-.5, "-0.5", "float32"),
                                                 (np.nan, "nan", "float32"), (np.inf, "inf", "float64")])
def test_no_probability(value, shown, dtype, case, tmp_path):
    p = GOLDEN_P.astype(dtype)
    p[5, 3, 1] = value
    p[7, 7, 7] = 99  # the first one is named
    prob = write_nrrd(tmp_path / "bad.nrrd", p)
    both(["--prob", prob, *raters(case)], ["bad.nrrd", shown, "(1, 3, 5)"], tmp_path)


@pytest.mark.parametrize("value, shown", [(1.5, "1.5"), (-.25, "-0.25"), (np.nan, "nan")])
def test_no_level_probability(value, shown, case, tmp_path):
    levels = binomial(GOLDEN_P, 3)
    levels[5, 3, 1, 2] = value
    prob = write_nrrd(tmp_path / "bad.nrrd", levels, components=True)
    both(["--prob", prob, *raters(case)], ["bad.nrrd", shown, "(1, 3, 5)"], tmp_path)


@pytest.mark.parametrize("factor", [.9, 1.01])
def test_levels_that_do_not_add_up(factor, case, tmp_path):
    levels = binomial(GOLDEN_P * .5 + .25, 3)
    levels[5, 3, 1] *= factor
    prob = write_nrrd(tmp_path / "bad.nrrd", levels, components=True)
    both(["--prob", prob, *raters(case)], ["bad.nrrd", f"{factor:g}", "(1, 3, 5)", "4 probabilities"], tmp_path)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_levels_that_do_not_fit_the_raters(count, case, tmp_path):
    prob = write_nrrd(tmp_path / "bad.nrrd", binomial(GOLDEN_P, count), components=True)
    both(["--prob", prob, *raters(case)], ["bad.nrrd", str(count + 1), "3 raters"], tmp_path)


def test_whole_number_levels(case, tmp_path):
    prob = write_nrrd(tmp_path / "bad.nrrd", (255 * binomial(GOLDEN_P, 3)).astype(np.uint8), components=True)
    both(["--prob", prob, *raters(case)], ["bad.nrrd", "float32"], tmp_path)


def test_signed_numbers(case, tmp_path):
    prob = write_nrrd(tmp_path / "bad.nrrd", (100 * GOLDEN_P).astype(np.int16))
    both(["--prob", prob, *raters(case)], ["bad.nrrd", "int16", "float32"], tmp_path)


@pytest.mark.parametrize("geometry", [dict(spacing=(1, 1, 2)), dict(origin=(0, 0, 1)), dict(direction=np.diag([-1., 1, 1]))])
def test_other_geometry(geometry, case, tmp_path):
    prob = write_nrrd(tmp_path / "bad.nrrd", GOLDEN_P, **geometry)
    both(["--prob", prob, *raters(case)], ["bad.nrrd"], tmp_path)
    mask = write_nrrd(tmp_path / "mask.nrrd", golden(1)[0], **geometry)
    good = write_nrrd(tmp_path / "p.nrrd", GOLDEN_P)
    both(["--prob", good, *raters(case), "--region-mask", mask], ["mask.nrrd"], tmp_path)


def test_other_size(case, tmp_path):
    both(["--prob", write_nrrd(tmp_path / "bad.nrrd", GOLDEN_P[1:]), *raters(case)], ["bad.nrrd", "8x8x7"], tmp_path)


def test_tolerance_is_for_predictions_too(case, tmp_path):
    prob = write_nrrd(tmp_path / "p.nrrd", GOLDEN_P, origin=(.1, 0, 0))
    refused("evaluate", "--prob", prob, *raters(case), says="p.nrrd")
    assert judge(prob, case, "--tolerance", "0.2")["voxels"] == 512


def test_no_foreground(tmp_path):
    mask = np.zeros((4, 5, 6), np.uint8)
    files = {n: write_nrrd(tmp_path / f"{n}.nrrd", mask) for n in "ABC"}
    prob = write_nrrd(tmp_path / "p.nrrd", np.random.default_rng(0).random(mask.shape).astype(np.float32))
    done = run("evaluate", "--prob", prob, *raters(files), "--json", tmp_path / "o.json", "--plot", tmp_path / "o.svg")
    text = (tmp_path / "o.json").read_text("utf-8")
    answer = json.loads(text)
    assert answer["auc"] is None and answer["auc_pairs"] is None and answer["auc_histogram"] is None
    assert answer["mr_ece"] == pytest.approx(answer["signed"])
    assert done.out.count("undefined") == 2
    for shown in (text, done.out, (tmp_path / "o.svg").read_text("utf-8")):
        assert "nan" not in shown.lower()


def test_no_foreground_in_a_list(tmp_path):
    study = Study(tmp_path)
    for i in range(5):
        study.add(f"c{i}", dict.fromkeys("ABC", np.zeros((3, 4, 5), np.uint8)), np.full((3, 4, 5), .1 * i, np.float32))
    done = run("evaluate", *study.words, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert answer["auc"] is None and "auc" not in answer["ci"] and "mr_ece" in answer["ci"]
    assert answer["dice"] is None and "dice" not in answer["ci"] and len(answer["dice_empty_cases"]) == 5
    assert "nan" not in done.out.lower()


@pytest.mark.parametrize("words, says", [
    (["--rater", "A=a.nrrd"], "--prob FILE"),
    (["--data", "list.json"], "--pred DIR"),
    (["--prob", "p.nrrd"], "--rater NAME=FILE"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--data", "list.json"], "either"),
    (["--prob", "p.nrrd", "--data", "list.json", "--pred", "d"], "--prob"),
    (["--prob", "p.nrrd", "--pred", "d", "--rater", "A=a.nrrd"], "--pred"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--split", "test"], "--split"),
    (["--data", "list.json", "--pred", "d", "--region-mask", "m.nrrd"], "--region-mask"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--region-mask", "m.nrrd", "--region", "box"], "--region-mask"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--readout", "mean"], "'mean'"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--readout", "at-least:"], "at-least"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--readout", "at-least:-1"], "at-least"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--region", "everywhere"], "--region"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--binning", "log"], "--binning"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--bins", "0"], "--bins"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--bins", "1001"], "--bins"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--margin", "-1"], "--margin"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--band", "wide"], "--band"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--threshold", "nan"], "--threshold"),
    (["--prob", "p.nrrd", "--rater", "A=a.nrrd", "--seed", "-1"], "--seed")])
def test_usage(words, says, tmp_path):
    refused("evaluate", *words, says=says, folder=tmp_path)
    if len(words) < 8 and words[-2] not in ("--bins", "--margin", "--band", "--threshold", "--seed"):
        refused("recalibrate", "--method", "platt", "-o", tmp_path / "r.json", *words, says=says, folder=tmp_path)


@pytest.mark.parametrize("words, says", [
    (["--versus", "d"], "--versus"), (["--threshold", "1.5"], "threshold"), (["--threshold", "-1"], "threshold"),
    (["--readout", "at-least:0"], "at least"), (["--readout", "at-least:4"], "at least"), (["--band", "-1", "--region", "band"], "band"),
    (["--reference", "Z"], "'Z'")])
def test_options_that_do_not_fit(words, says, case, golden_p, tmp_path):
    refused("evaluate", "--prob", golden_p, *raters(case), *words, says=says, folder=tmp_path)


def test_recalibrate_needs_method_and_output(case, golden_p, tmp_path):
    words = ["recalibrate", "--prob", golden_p, *raters(case)]
    refused(*words, "-o", tmp_path / "r.json", says="--method", folder=tmp_path)
    refused(*words, "--method", "platt", says="-o", folder=tmp_path)
    refused(*words, "--method", "magic", "-o", tmp_path / "r.json", says=["--method", "magic"], folder=tmp_path)


def test_missing_files(case, golden_p, tmp_path):
    both(["--prob", tmp_path / "none.nrrd", *raters(case)], ["none.nrrd", "does not exist"], tmp_path)
    both(["--prob", golden_p, *raters(case), "--region-mask", tmp_path / "none.nrrd"], ["none.nrrd", "does not exist"], tmp_path)
    both(["--data", tmp_path / "none.json", "--pred", tmp_path], ["none.json", "does not exist"], tmp_path)


def test_missing_folder(tmp_path):
    study = study_of(tmp_path, 2)
    words = ["--data", study.words[1], "--pred"]
    refused("evaluate", *words, tmp_path / "none", says=["none", "folder"], folder=tmp_path)
    refused("evaluate", *study.words, "--versus", tmp_path / "none", says=["none", "folder"], folder=tmp_path)


def test_empty_region_mask(case, golden_p, tmp_path):
    mask = write_nrrd(tmp_path / "m.nrrd", np.zeros((8, 8, 8), np.uint8))
    done = run("evaluate", "--prob", golden_p, *raters(case), "--region-mask", mask, "--json", tmp_path / "o.json", check=False)
    assert done.code == 2 and done.out == "" and "region is empty" in done.err and not (tmp_path / "o.json").exists()


def test_region_in_which_nobody_answered(tmp_path):
    """Voxels that nobody looked at do not count, wherever the region is."""
    mask = golden(1)[0].copy()
    mask[:4] = 9
    files = {"A": write_nrrd(tmp_path / "A.nrrd", mask)}
    prob = write_nrrd(tmp_path / "p.nrrd", GOLDEN_P)
    answer = judge(prob, files, "--unanswered", "9")
    assert answer["voxels"] == 256
    where = np.zeros((8, 8, 8), np.uint8)
    where[:4] = 1
    refused("evaluate", "--prob", prob, *raters(files), "--unanswered", "9", "--region-mask",
            write_nrrd(tmp_path / "m.nrrd", where), says="No rater answered", folder=tmp_path)


def test_quiet(case, golden_p):
    done = run("evaluate", "--prob", golden_p, *raters(case), "--quiet")
    assert done.out == "" and done.err == ""
