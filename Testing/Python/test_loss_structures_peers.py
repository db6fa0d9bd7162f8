# SPDX-License-Identifier: Apache-2.0
"""Losses of several structures against SciPy and PyTorch in double, and their temperature against SciPy's optimizer."""
import ctypes
import os

import numpy as np
import pytest

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares live with PyTorch and SciPy: ./run test --peers", allow_module_level=True)

import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import betabinom, dirichlet_multinomial

import rcn_calib_ctypes
import rcn_ctypes
import rcn_loss_ctypes as rcn
from loss_twin import bce_rps, dirichlet_multinomial_nll

VOXELS = 1501


def draw(raters, structures, answered, spread=1.5, seed=0):
    """Logits of one sample, and as many rows of counts as voxels: what the raters said."""
    generator = np.random.default_rng(seed + raters + 100 * structures)
    logits = (generator.standard_normal((1, structures + 1, VOXELS)) * spread).astype(np.float32)
    z = logits[0].astype(np.float64)
    means = np.exp(z - z.max(0))
    means /= means.sum(0)
    number = generator.choice(answered, VOXELS)
    counts = np.stack([generator.multinomial(n, p / p.sum()) for n, p in zip(number, means.T)]).astype(np.uint8)
    return logits, means, counts


def run(loss, logits, counts, parameters=None, gradient=None, own=None, shares=None):
    """Each voxel has a row of its own; rows are numbered by 8 bits, so that there are several parts."""
    total, parts = 0.0, range(0, logits.shape[2], 200)
    for first in parts:
        part = np.ascontiguousarray(logits[:, :, first:first + 200])
        level = np.arange(part.shape[2], dtype=np.uint8)[None]
        some = np.empty_like(part) if gradient is not None else None
        slope = np.zeros(max(loss.own, 1), np.float32) if own is not None else None
        result = loss.run(part, level, some, parameters, slope, counts=counts[first:first + 200],
                          shares=None if shares is None else shares[first:first + 200])
        share = part.shape[2] / logits.shape[2]
        total += result.loss * share
        if gradient is not None:
            gradient[:, :, first:first + 200] = some * share
        if own is not None:
            own += slope[:loss.own] * share
    return total


def log_pmf(counts, means, own):
    """The formula with sums of logarithms, in double: what SciPy cannot do where its gamma functions cancel."""
    gamma, out = np.exp(float(own)), 0.0
    answered = counts.sum(1)
    for i in range(int(answered.max())):
        out = out - np.where(i < answered, np.log1p(i * gamma), 0)
        for label, mean in enumerate(means):
            out = out + np.where(i < counts[:, label], np.log(mean + i * gamma), 0)
    return out + gammaln(answered + 1.0) - gammaln(counts + 1.0).sum(1)


@pytest.mark.parametrize("correlation", [1e-3, 0.05, 0.3, 0.97])
@pytest.mark.parametrize("raters, structures", [(5, 1), (5, 4), (64, 2), (64, 32), (1, 3)])
def test_likelihood_is_scipys(correlation, raters, structures):
    answered = sorted({raters, max(1, raters - 2), 1})
    logits, means, counts = draw(raters, structures, answered)
    own = np.array([np.log(correlation / (1 - correlation))], np.float32)
    loss = rcn.Loss(rcn.Context(2), "dirichlet-multinomial", raters, structures=structures)
    alpha = means.T * np.exp(-float(own[0]))
    peer = dirichlet_multinomial.logpmf(counts.astype(np.int64), alpha, counts.sum(1).astype(np.int64))
    assert run(loss, logits, counts, own) == pytest.approx(-peer.mean(), rel=1e-6, abs=1e-6)
    assert np.abs(log_pmf(counts, means, own[0]) - peer).max() < 1e-6  # so that the next test may use it
    for structure in {1, structures}:
        levels = loss.structure_levels(structure, logits, own)[0]
        expected = betabinom.pmf(np.arange(raters + 1)[:, None], raters, alpha[:, structure],
                                 alpha.sum(1) - alpha[:, structure])
        np.testing.assert_allclose(levels, expected, atol=max(1e-6, 1.5e-7 * raters))  # float: as many factors as raters
    np.testing.assert_allclose(loss.means(logits, own)[0], means, atol=1e-6)


@pytest.mark.parametrize("own", [-16, -12, 12, 16])
@pytest.mark.parametrize("raters, structures, spread", [(5, 4, 1.5), (64, 32, 1.5), (5, 3, 30)])
def test_likelihood_at_the_ends_of_the_correlation(own, raters, structures, spread):
    """Also with means down to exp(-80)."""
    logits, means, counts = draw(raters, structures, [raters, 1], spread)
    generator = np.random.default_rng(1)
    counts = np.stack([generator.multinomial(n, np.full(structures + 1, 1 / (structures + 1)))
                       for n in counts.sum(1)]).astype(np.uint8)
    loss = rcn.Loss(rcn.Context(2), "dirichlet-multinomial", raters, structures=structures)
    parameters = np.array([own], np.float32)
    assert run(loss, logits, counts, parameters) == pytest.approx(-log_pmf(counts, means, own).mean(), rel=1e-6)


def check_gradients(loss, peer, logits, counts, parameters, rel=1e-6, shares=None):
    gradient, own = np.empty_like(logits), np.zeros(loss.own, np.float32)
    value = run(loss, logits, counts, parameters, gradient, own if loss.own else None, shares)
    z = torch.from_numpy(logits.astype(np.float64)).requires_grad_()
    c = torch.from_numpy(parameters.astype(np.float64)).requires_grad_()
    expected = peer(z, torch.from_numpy(counts.astype(np.float64)), c)
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=rel)
    scale = z.grad.abs().max().item()
    np.testing.assert_allclose(gradient, z.grad.numpy(), rtol=1e-5, atol=4e-6 * scale)
    if loss.own:
        np.testing.assert_allclose(own, c.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weight", [0, 5])
@pytest.mark.parametrize("raters, structures", [(1, 2), (5, 1), (5, 4), (9, 7)])
def test_dirichlet_multinomial_gradients(raters, structures, weight):
    logits, _, counts = draw(raters, structures, [raters, (raters + 1) // 2])
    loss = rcn.Loss(rcn.Context(2), "dirichlet-multinomial", raters, structures=structures, rps_weight=weight)

    def peer(z, n, c):
        value = dirichlet_multinomial_nll(z, n, c)
        answered, spread = n.sum(1), torch.exp(-c[0])
        for structure in range(1, structures + 1):
            a = torch.softmax(z[0], 0)[structure] * spread
            b = (1 - torch.softmax(z[0], 0)[structure]) * spread
            below, score = 0, 0
            for k in range(raters):
                there = k < answered
                left = torch.where(there, answered - k, torch.ones_like(answered))
                log_p = (torch.lgamma(answered + 1) - torch.lgamma(torch.tensor(k + 1.0).double()) - torch.lgamma(left + 1)
                         + torch.lgamma(k + a) + torch.lgamma(left + b) - torch.lgamma(answered + spread)
                         - torch.lgamma(a) - torch.lgamma(b) + torch.lgamma(spread))
                below = below + torch.where(there, torch.exp(log_p), torch.zeros_like(log_p))
                score = score + torch.where(there, (below - (n[:, structure] <= k).double()) ** 2, torch.zeros_like(log_p))
            value = value + weight / structures * (score / (answered + 1)).mean()
        return value

    check_gradients(loss, peer, logits, counts, np.array([-0.7], np.float32), rel=2e-6)


@pytest.mark.parametrize("raters, structures", [(3, 1), (5, 4), (7, 32)])
def test_categorical_is_cross_entropy(raters, structures):
    logits, _, counts = draw(raters, structures, [raters])
    loss = rcn.Loss(rcn.Context(2), "categorical", raters, structures=structures)
    shares = counts.astype(np.float32) / raters
    check_gradients(loss, lambda z, n, c: F.cross_entropy(z, (n / raters).T[None]), logits, counts,
                    np.zeros(1, np.float32), shares=shares)


@pytest.mark.parametrize("raters, structures", [(3, 2), (4, 3)])
def test_heads_are_one_against_the_rest(raters, structures):
    _, _, counts = draw(raters, structures, [raters])
    generator = np.random.default_rng(raters)
    logits = generator.standard_normal((1, structures * (raters + 1), VOXELS)).astype(np.float32) * 2
    loss = rcn.Loss(rcn.Context(2), "rps-heads", raters, structures=structures)

    def peer(z, n, c):
        heads = z.reshape(structures, raters + 1, VOXELS)
        return sum(bce_rps(heads[i:i + 1], n[:, i + 1].long()[None]) for i in range(structures)) / structures

    check_gradients(loss, peer, logits, counts, np.zeros(1, np.float32))


@pytest.mark.parametrize("correlation", [0, 0.01, 0.4, 0.999, 1])
def test_levels_of_means(correlation):
    context, raters = rcn.Context(2), 7
    mean = np.linspace(0, 1, 1001).astype(np.float32)
    levels = np.empty((mean.size, raters + 1), np.float32)
    context.check(context.library.rcn_levels_of_mean(
        rcn.pointer(levels), context.handle, rcn.pointer(mean), ctypes.c_int64(1), ctypes.c_int64(mean.size), raters,
        ctypes.c_double(correlation)))
    inside, k = mean[1:-1, None].astype(np.float64), np.arange(raters + 1)
    if correlation == 1:
        expected = np.where(k == 0, 1 - inside, np.where(k == raters, inside, 0))
    elif correlation == 0:
        from scipy.stats import binom

        expected = binom.pmf(k, raters, inside)
    else:
        spread = (1 - correlation) / correlation
        expected = betabinom.pmf(k, raters, inside * spread, (1 - inside) * spread)
    np.testing.assert_allclose(levels[1:-1], expected, atol=1e-6)
    assert levels[0, 0] == 1 and levels[-1, raters] == 1


class LabelMap(ctypes.Structure):
    _fields_ = [("image", rcn_ctypes.Image), ("component", ctypes.c_int), ("values", ctypes.c_void_p),
                ("structures", ctypes.c_void_p), ("value_count", ctypes.c_int), ("unanswered", ctypes.c_void_p)]


@pytest.mark.parametrize("sharpness", [0.5, 1, 2.2])
def test_temperature_of_labels(sharpness):
    """The best temperature of all labels, against SciPy's search on the likelihood as it is written."""
    raters, structures, size = 4, 3, 40
    generator = np.random.default_rng(3)
    truth = np.exp(generator.standard_normal((size ** 3, structures + 1)) * 1.5)
    truth /= truth.sum(1, keepdims=True)
    said = (generator.random((raters, size ** 3, 1)) > truth.cumsum(1)[None]).sum(2).clip(0, structures).astype(np.uint8)
    shares = truth ** sharpness
    shares = np.ascontiguousarray(shares / shares.sum(1, keepdims=True), dtype=np.float32)

    context = rcn.Context(2)
    library, check = context.library, context.check
    library.rcn_geometry_make.restype = rcn_ctypes.Geometry
    geometry = library.rcn_geometry_make(*[ctypes.c_int64(size)] * 3)
    values, ids = np.arange(1, structures + 1, dtype=np.int64), np.arange(1, structures + 1, dtype=np.uint8)
    votes, heat = ctypes.c_void_p(), ctypes.c_void_p()
    check(library.rcn_votes_create_labels(ctypes.byref(votes), context.handle, ctypes.byref(geometry), raters, structures))
    for rater in range(raters):
        label_map = LabelMap(rcn_ctypes.Image(said[rater].ctypes.data, 0, 1, geometry), 0, values.ctypes.data,
                             ids.ctypes.data, structures, None)
        check(library.rcn_votes_add_labels(votes, context.handle, rater, ctypes.byref(label_map), 1, None))
    case = rcn_calib_ctypes.Case(votes, rcn_ctypes.Image(shares.ctypes.data, 8, structures + 1, geometry), None, None)
    fit = rcn_calib_ctypes.Recalib()
    check(library.rcn_temperature_create_labels(ctypes.byref(heat), context.handle, structures))
    check(library.rcn_temperature_add_labels(heat, context.handle, ctypes.byref(case)))
    check(library.rcn_temperature_fit(ctypes.byref(fit), context.handle, heat))

    logs = np.log(shares.astype(np.float64).clip(1e-7))
    counts = np.stack([(said == label).sum(0) for label in range(structures + 1)], 1)

    def nll(log_t):
        scaled = logs / np.exp(log_t)
        return (raters * np.logaddexp.reduce(scaled, 1) - (counts * scaled).sum(1)).sum()

    best = np.exp(minimize_scalar(nll, bounds=(-2, 3), method="bounded", options={"xatol": 1e-9}).x)
    assert fit.levels == structures + 1 and fit.pairs == raters * size ** 3
    assert fit.parameters[0] == pytest.approx(best, rel=1e-3)
    library.rcn_temperature_destroy(heat)
    library.rcn_votes_destroy(votes)
