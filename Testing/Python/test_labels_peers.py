# SPDX-License-Identifier: Apache-2.0
"""Fusion and agreement of several structures against SimpleITK, scikit-learn and the definitions in NumPy."""
import itertools

import numpy as np
import pytest

import rcn_ctypes
import rcn_labels_ctypes as labels_of
from rcn_testing import needs_peers

pytestmark = needs_peers
sitk = pytest.importorskip("SimpleITK")
metrics = pytest.importorskip("sklearn.metrics")


@pytest.fixture(scope="module")
def core():
    lib = rcn_ctypes.library()
    if lib is None:
        pytest.skip("librcn-testing was not built: ninja rcn_shared")
    ctx = rcn_ctypes.Context(lib, 2)
    yield lib, ctx
    ctx.close()


def noisy(raters, structures, shape, seed, errors=(.1, .35)):
    """Blocks of labels, and raters who err at random."""
    random = np.random.default_rng(seed)
    truth = sum(np.indices(shape)[a] // (3 + a) for a in range(len(shape))) % (structures + 1)
    rates = random.uniform(*errors, raters)
    return [np.where(random.random(shape) < rate, random.integers(0, structures + 1, shape), truth).astype(np.uint8)
            for rate in rates]


# ---- plurality -------------------------------------------------------------------------------------

@pytest.mark.parametrize("raters,structures", [(1, 2), (3, 2), (4, 3), (5, 8), (20, 32)])
def test_plurality(core, raters, structures):
    masks = noisy(raters, structures, (6, 15, 17), seed=raters)
    random = np.random.default_rng(5)
    for mask in masks:
        mask[random.random(mask.shape) < .1] = labels_of.NO_ANSWER
    counts = np.stack([np.sum([m == c for m in masks], axis=0) for c in (*range(1, structures + 1), 0)])
    expected = (np.argmax(counts, axis=0) + 1) % (structures + 1)  # structures first, background last
    expected[counts.sum(axis=0) == 0] = 0
    np.testing.assert_array_equal(labels_of.plurality(*core, masks, structures), expected)


# ---- STAPLE ----------------------------------------------------------------------------------------

def itk_staple(masks, threshold):
    """ITK's filter: labels, confusion matrices [raters, given, true]."""
    staple = sitk.MultiLabelSTAPLEImageFilter()
    staple.SetTerminationUpdateThreshold(threshold)
    out = sitk.GetArrayFromImage(staple.Execute([sitk.GetImageFromArray(m) for m in masks]))
    count = max(m.max() for m in masks) + 1
    matrices = [np.array(staple.GetConfusionMatrix(k)).reshape(count + 1, count)[:count] for k in range(len(masks))]
    return out, np.array(matrices)


def check_staple(core, masks, structures):
    theirs, matrices = itk_staple(masks, 1e-10)
    ours, confusion, result = labels_of.staple(*core, masks, structures, tolerance=1e-10)
    count = matrices.shape[1]
    assert result.converged
    np.testing.assert_allclose(confusion[:, :count, :count], matrices, rtol=0, atol=1e-7)
    assert not confusion[:, count:].any() and not confusion[:, :, count:].any()
    decided = theirs < count
    assert (~decided).sum() <= result.undecided_voxels
    np.testing.assert_array_equal(ours[decided], theirs[decided])
    assert not np.isnan(confusion).any() and ours.max() <= structures


@pytest.mark.parametrize("raters,structures", [(2, 2), (3, 1), (3, 2), (4, 3), (5, 8), (7, 4)])
def test_staple_noise(core, raters, structures):
    check_staple(core, noisy(raters, structures, (10, 18, 20), seed=raters), structures)


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("raters", [2, 3, 4, 5])
def test_staple_phantom(core, raters, seed):
    check_staple(core, list(labels_of.phantom_labels(*core, (8, 48, 56), raters, seed)), 3)


def test_staple_structures_nobody_marked(core):
    check_staple(core, noisy(3, 2, (10, 18, 20), seed=4), 6)


def test_staple_empty_rater(core):
    masks = noisy(4, 3, (10, 18, 20), seed=4)
    masks[1][...] = 0
    check_staple(core, masks, 3)


def staple_twin(masks, structures, iterations):
    """The definition, voxel by voxel in double precision, with answers missing (255): so many rounds of
    posterior ~ prior * product of P(given | true), then P(given | true) from the posterior."""
    labels = structures + 1
    masks = np.array([np.ravel(m) for m in masks])
    answered = masks != labels_of.NO_ANSWER
    given = np.array([[(m == c) for c in range(labels)] for m in masks], float)  # raters, labels, voxels
    prior = given.sum(axis=(0, 2)) / answered.sum()
    votes = given.sum(axis=0)
    best = votes == votes.max(axis=0)
    confusion = np.zeros((len(masks), labels + 1, labels))
    for r, row in enumerate(masks):
        for j in range(labels):
            for c in range(labels):
                confusion[r, j, c] += ((row == j) & best[c] & (best.sum(axis=0) == 1)).sum()
            # ITK's place for voxels without a winner
            confusion[r, j + 1, 0] += ((row == j) & (best.sum(axis=0) > 1)).sum()
    confusion = confusion[:, :labels]
    sums = confusion.sum(axis=2, keepdims=True)
    confusion = np.divide(confusion, sums, out=np.zeros_like(confusion), where=sums > 0)
    for _ in range(iterations + 1):
        posterior = np.repeat(prior[:, None], masks.shape[1], axis=1)
        for r in range(len(masks)):
            posterior[:, answered[r]] *= confusion[r, masks[r, answered[r]]].T
        sums = posterior.sum(axis=0)
        posterior = np.divide(posterior, sums, out=np.zeros_like(posterior), where=sums > 0)
        last = confusion
        confusion = np.einsum("rjv,cv->rjc", given, posterior)
        sums = confusion.sum(axis=1, keepdims=True)
        confusion = np.divide(confusion, sums, out=np.zeros_like(confusion), where=sums > 0)
    return posterior, last, prior


@pytest.mark.parametrize("iterations", [1, 2, 7, 60])
@pytest.mark.parametrize("raters,structures", [(3, 2), (5, 4)])
def test_staple_missing_answers(core, raters, structures, iterations):
    masks = noisy(raters, structures, (6, 14, 15), seed=9)
    random = np.random.default_rng(3)
    for mask in masks:
        mask[random.random(mask.shape) < .2] = labels_of.NO_ANSWER
        mask[0, 0] = labels_of.NO_ANSWER
    masks[0][:2] = labels_of.NO_ANSWER
    nobody = np.all([m == labels_of.NO_ANSWER for m in masks], axis=0)
    posterior, matrices, prior = staple_twin(masks, structures, iterations)
    ours, confusion, result = labels_of.staple(*core, masks[:1] + [None] + masks[1:], structures, 0.0, iterations)
    assert result.iterations == iterations
    np.testing.assert_allclose(np.delete(confusion, 1, axis=0), matrices, rtol=0, atol=1e-10)
    assert not confusion[1].any()
    np.testing.assert_allclose(result.prior[:structures + 1], prior, rtol=0, atol=1e-15)
    clear = np.sort(posterior, axis=0)[-1] - np.sort(posterior, axis=0)[-2] > 1e-9
    clear &= ~nobody.ravel()
    assert clear.mean() > .9
    np.testing.assert_array_equal(ours.ravel()[clear], posterior.argmax(axis=0)[clear])
    assert not ours[nobody].any()


# ---- agreement -------------------------------------------------------------------------------------

def nominal_alpha(masks, structures):
    """Krippendorff's alpha by its coincidence matrix."""
    rows = np.array([np.ravel(m) for m in masks]).T
    rows = rows[(rows != labels_of.NO_ANSWER).sum(axis=1) >= 2]
    answered = (rows != labels_of.NO_ANSWER).sum(axis=1)
    coincidence = np.zeros((structures + 1, structures + 1))
    for a, b in itertools.permutations(range(rows.shape[1]), 2):
        both = (rows[:, a] != labels_of.NO_ANSWER) & (rows[:, b] != labels_of.NO_ANSWER)
        np.add.at(coincidence, (rows[both, a], rows[both, b]), 1 / (answered[both] - 1))
    n = coincidence.sum()
    marginal = coincidence.sum(axis=1)
    observed = 1 - np.trace(coincidence) / n
    expected = 1 - (marginal * (marginal - 1)).sum() / (n * (n - 1))
    return 1 - observed / expected


def fleiss(masks, structures):
    rows = np.array([np.ravel(m) for m in masks]).T
    rows = rows[(rows != labels_of.NO_ANSWER).all(axis=1)]
    counts = np.array([(rows == c).sum(axis=1) for c in range(structures + 1)]).T
    k = rows.shape[1]
    observed = ((counts * (counts - 1)).sum(axis=1) / (k * (k - 1))).mean()
    expected = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    return (observed - expected) / (1 - expected)


@pytest.mark.parametrize("missing", [0, .15])
@pytest.mark.parametrize("raters,structures", [(2, 2), (3, 1), (5, 3), (6, 8)])
def test_agreement(core, raters, structures, missing):
    masks = noisy(raters, structures, (6, 14, 15), seed=raters)
    random = np.random.default_rng(3)
    for mask in masks:
        mask[random.random(mask.shape) < missing] = labels_of.NO_ANSWER
    ours, kappa = labels_of.agreement(*core, masks, structures)
    assert ours.whole.krippendorff_alpha == pytest.approx(nominal_alpha(masks, structures), abs=1e-12)
    assert ours.whole.fleiss_kappa == pytest.approx(fleiss(masks, structures), abs=1e-12)
    union = np.any([(m != 0) & (m != labels_of.NO_ANSWER) for m in masks], axis=0)
    inside = [m[union] for m in masks]
    assert ours.on_union.krippendorff_alpha == pytest.approx(nominal_alpha(inside, structures), abs=1e-12)
    assert ours.on_union.fleiss_kappa == pytest.approx(fleiss(inside, structures), abs=1e-12)
    for a, b in itertools.combinations(range(raters), 2):
        both = (masks[a] != labels_of.NO_ANSWER) & (masks[b] != labels_of.NO_ANSWER)
        assert kappa[a, b] == pytest.approx(metrics.cohen_kappa_score(masks[a][both], masks[b][both]), abs=1e-12)
    for structure in range(1, structures + 1):
        alone = [np.where(m == labels_of.NO_ANSWER, m, m == structure) for m in masks]
        dice, of_fleiss, alpha = labels_of.structure_agreement(*core, masks, structures, structure)
        assert of_fleiss == pytest.approx(fleiss(alone, 1), abs=1e-12)
        assert alpha == pytest.approx(nominal_alpha(alone, 1), abs=1e-12)
        pairs = [(x[(x != 255) & (y != 255)], y[(x != 255) & (y != 255)]) for x, y in itertools.combinations(alone, 2)]
        assert dice == pytest.approx(np.mean([metrics.f1_score(x, y) for x, y in pairs]), abs=1e-12)
