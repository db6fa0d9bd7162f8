# SPDX-License-Identifier: Apache-2.0
"""Losses against PyTorch: the same formulas in plain autograd, in double, live.

CORAL and CORN follow coral-pytorch, the cumulative link follows spacecutter; both are written out
here so that the comparison needs PyTorch alone.
"""
import os

import numpy as np
import pytest

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares live with PyTorch: ./run test --peers", allow_module_level=True)

import torch
import torch.nn.functional as F
from scipy.special import gammaln, logsumexp
from scipy.stats import betabinom

import rcn_loss_ctypes as rcn
from loss_twin import bce_rps

BCE = F.binary_cross_entropy_with_logits


def brier(z, y, own, K):
    truth = F.one_hot(y, K + 1).movedim(-1, 1)
    return ((torch.softmax(z, 1) - truth) ** 2).sum(1).mean()


def emd(z, y, own, K):
    truth = F.one_hot(y, K + 1).movedim(-1, 1)
    return ((torch.softmax(z, 1).cumsum(1) - truth.cumsum(1)) ** 2).sum(1).mean()


def corn(z, y, own, K):
    # coral_pytorch.losses.corn_loss, but divided by the number of voxels.
    total = 0
    for j in range(K):
        mask = y > j - 1
        if mask.any():
            total = total + BCE(z[:, j][mask], (y[mask] > j).to(z.dtype), reduction="sum")
    return total / y.numel()


def coral(z, y, own, K):
    logits = z + own.view(1, K, 1)
    truth = torch.stack([y > j for j in range(K)], 1).to(z.dtype)
    return -(F.logsigmoid(logits) * truth + (F.logsigmoid(logits) - logits) * (1 - truth)).sum(1).mean()


def cumulative_link(z, y, own, K):
    cut = torch.cat([own[:1], own[1:] ** 2 + 0.001]).cumsum(0)
    below = torch.sigmoid(cut.view(1, K, 1) - z)
    zero = torch.zeros_like(below[:, :1])
    p = torch.cat([below, zero + 1], 1) - torch.cat([zero, below], 1)
    return -torch.log(p.gather(1, y.unsqueeze(1))).mean()


def binomial(z, y, own, K):
    return -torch.distributions.Binomial(K, logits=z[:, 0]).log_prob(y.to(z.dtype)).mean()


def beta_binomial_log(z, correlation_logit, y, K):
    """log p_y."""
    mean, m = torch.sigmoid(z[:, 0]), torch.exp(-correlation_logit)
    a, b, y = mean * m, (1 - mean) * m, y.to(z.dtype)

    def log_beta(u, v):
        return torch.lgamma(u) + torch.lgamma(v) - torch.lgamma(u + v)

    n = torch.tensor(float(K), dtype=z.dtype)
    choose = torch.lgamma(n + 1) - torch.lgamma(y + 1) - torch.lgamma(n - y + 1)
    return choose + log_beta(y + a, K - y + b) - log_beta(a, b)


def beta_binomial(z, y, own, K):
    return -beta_binomial_log(z, own[0], y, K).mean()


def beta_binomial_voxel(z, y, own, K):
    return -beta_binomial_log(z, z[:, 1], y, K).mean()


PEERS = {
    "rps": lambda z, y, own, K: bce_rps(z, y),
    "ce": lambda z, y, own, K: F.cross_entropy(z, y),
    "brier": brier,
    "emd": emd,
    "corn": corn,
    "coral": coral,
    "cumulative-link": cumulative_link,
    "binomial": binomial,
    "beta-binomial": beta_binomial,
    "beta-binomial-voxel": beta_binomial_voxel,
    "bce": lambda z, y, own, K: BCE(z[:, 0], y.to(z.dtype) / K),
    "binary-brier": lambda z, y, own, K: ((torch.sigmoid(z[:, 0]) - y / K) ** 2).mean(),
}


def compare(loss, peer_of, spread, rel, own_atol):
    """The loss and its gradients on random outputs against peer_of(z, y, own) in double; returns outputs and parameters."""
    raters = loss.raters
    generator = np.random.default_rng(raters)
    logits = generator.standard_normal((2, loss.channels, 3001), dtype=np.float32) * spread
    level = generator.integers(0, raters + 1, (2, 3001)).astype(np.uint8)
    parameters = loss.init_parameters()
    gradient, own_gradient = np.empty_like(logits), np.empty_like(parameters)
    result = loss.run(logits, level, gradient, parameters, own_gradient)

    z = torch.from_numpy(logits.astype(np.float64)).requires_grad_()
    own = torch.from_numpy(parameters.astype(np.float64)).requires_grad_()
    peer = peer_of(z, torch.from_numpy(level.astype(np.int64)), own)
    peer.backward()
    assert result.loss == pytest.approx(peer.item(), rel=rel)
    scale = z.grad.abs().max().item()
    np.testing.assert_allclose(gradient, z.grad.numpy(), rtol=1e-5, atol=4e-6 * scale)
    if loss.own:
        np.testing.assert_allclose(own_gradient, own.grad.numpy(), rtol=1e-5, atol=own_atol)
    return logits, parameters


@pytest.mark.parametrize("raters", [1, 3, 4, 7])
@pytest.mark.parametrize("kind", rcn.KINDS)
def test_loss_and_gradients(kind, raters):
    context = rcn.Context(2)
    loss = rcn.Loss(context, kind, raters)
    logits, parameters = compare(loss, lambda z, y, own: PEERS[kind](z, y, own, raters), 3, rel=1e-6, own_atol=1e-7)
    assert np.abs(loss.levels(logits, parameters).sum(1) - 1).max() < 1e-6


def levels_of(kind, z, own, K):
    """p_k in torch: (samples, K + 1, voxels)."""
    if kind == "ce":
        return torch.softmax(z, 1)
    if kind == "corn":
        above = torch.cumprod(torch.sigmoid(z), 1)
        above = torch.cat([torch.ones_like(above[:, :1]), above, torch.zeros_like(above[:, :1])], 1)
        return above[:, :-1] - above[:, 1:]
    if kind == "cumulative-link":
        steps = torch.cat([own[:1], own[1:] ** 2 + 1e-3])
        below = torch.sigmoid(torch.cumsum(steps, 0)[None, :, None] - z)
        below = torch.cat([torch.zeros_like(z), below, torch.ones_like(z)], 1)
        return below[:, 1:] - below[:, :-1]
    correlation = own[0] if kind == "beta-binomial" else z[:, 1]
    return torch.stack([beta_binomial_log(z, correlation, torch.tensor(k), K).exp() for k in range(K + 1)], 1)


@pytest.mark.parametrize("raters", [1, 4, 7])
@pytest.mark.parametrize("kind", ["ce", "corn", "cumulative-link", "beta-binomial", "beta-binomial-voxel"])
def test_rps_beside_the_likelihood(kind, raters):
    context = rcn.Context(2)

    def peer(z, y, own):
        below = torch.cumsum(levels_of(kind, z, own, raters), 1)
        truth = (y[:, None] <= torch.arange(raters + 1)[None, :, None]).to(z.dtype)
        return PEERS[kind](z, y, own, raters) + 2.5 * ((below - truth) ** 2).mean(1).mean()

    compare(rcn.Loss(context, kind, raters, rps_weight=2.5), peer, 2, rel=2e-6, own_atol=1e-6)


@pytest.mark.parametrize("correlation", [1e-6, 0.003, 0.3, 0.97, 1 - 1e-6])
@pytest.mark.parametrize("answered", [64, 63, 20, 1])
def test_beta_binomial_of_many_raters(correlation, answered):
    """Against SciPy in double, raters missing, the correlation near both ends."""
    generator = np.random.default_rng(answered)
    context = rcn.Context(2)
    loss = rcn.Loss(context, "beta-binomial", 64)
    logits = (generator.standard_normal((1, 1, 4001)) * 2).astype(np.float32)
    mean = 1 / (1 + np.exp(-logits[0, 0].astype(np.float64)))
    marked = generator.binomial(answered, mean).astype(np.uint8)
    own = np.array([np.log(correlation / (1 - correlation))], np.float32)
    spread = np.exp(-float(own[0]))
    peer = betabinom(answered, mean * spread, (1 - mean) * spread)
    labels = [(0.0, 1.0, v, answered) for v in range(answered + 1)]
    result = loss.run(logits, marked[None], None, own, None, labels=labels)
    assert result.loss == pytest.approx(-peer.logpmf(marked).mean(), rel=1e-6, abs=1e-6)
    if answered == 64:
        levels = loss.levels(logits, own)[0]
        np.testing.assert_allclose(levels, peer.pmf(np.arange(65)[:, None]), atol=5e-6)  # float: 64 factors


# ---- the default: cumulative link with RPS, for any number of raters, some of them missing --------------------------------------


def log_levels(z, own, raters):
    """log p_k: (raters + 1, voxels), in double, without differences of probabilities."""
    thresholds = np.concatenate([own[:1], own[1:] ** 2 + 1e-3]).cumsum()
    out = np.zeros((raters + 1, z.size))
    for k in range(raters + 1):
        if k < raters:
            out[k] -= np.logaddexp(0, z - thresholds[k])
        if k > 0:
            out[k] -= np.logaddexp(0, thresholds[k - 1] - z)
        if 0 < k < raters:
            out[k] += np.log(-np.expm1(thresholds[k - 1] - thresholds[k]))
    return out


def log_thinning(raters, answered):
    """[j, k]: log of the chance that j of those who answered mark what k of all raters mark (hypergeometric)."""
    def choose(n, k):
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)

    j, k = np.arange(answered + 1)[:, None], np.arange(raters + 1)[None]
    possible = (j <= k) & (answered - j <= raters - k)
    with np.errstate(all="ignore"):
        chance = choose(k, j) + choose(raters - k, answered - j) - choose(raters, answered)
    return np.where(possible, chance, -np.inf)


def link_loss(z, own, raters, answered, marked, weight):
    seen = logsumexp(log_thinning(raters, answered)[:, :, None] + log_levels(z, own, raters)[None], axis=1)
    truth = marked[None] <= np.arange(answered + 1)[:, None]
    rps = ((np.exp(seen).cumsum(0) - truth) ** 2).sum(0) / (answered + 1)
    return (weight * rps - seen[marked, np.arange(z.size)]).mean()


@pytest.mark.parametrize("thresholds", ["at the start", "collapsed", "far apart"])
@pytest.mark.parametrize("raters,answered", [(1, 1), (4, 4), (4, 3), (4, 1), (16, 16), (16, 15), (16, 5), (16, 1), (64, 64), (64, 63), (64, 21), (64, 1)])
def test_the_default_loss_in_double(raters, answered, thresholds):
    generator = np.random.default_rng(raters + answered)
    loss = rcn.Loss(rcn.Context(1), "cumulative-link", raters, rps_weight=5.0)
    own = loss.init_parameters()
    own[1:] = {"at the start": own[1:], "collapsed": 0.02 * own[1:], "far apart": 2}[thresholds]
    logits = (generator.standard_normal((1, 1, 2001)) * 4).astype(np.float32)
    marked = generator.integers(0, answered + 1, 2001).astype(np.uint8)
    gradient, own_gradient = np.empty_like(logits), np.empty_like(own)
    labels = [(0.0, 1.0, v, answered) for v in range(answered + 1)]
    result = loss.run(logits, marked[None], gradient, own, own_gradient, labels=labels)

    z, exact = logits[0, 0].astype(float), own.astype(float)

    def at(outputs, parameters):
        return link_loss(outputs, parameters, raters, answered, marked, 5.0)

    def slope(of, i, step=1e-5):
        change = np.zeros_like(of)
        change[i] = step
        plus, minus = (at(z + s * change, exact) if of is z else at(z, exact + s * change) for s in (1, -1))
        return (plus - minus) / (2 * step)

    assert result.loss == pytest.approx(at(z, exact), rel=1e-6)
    for i in (0, 5, 100, 2000):
        # Per voxel: what a gradient of the mean has is small. Thresholds are sums of up to 64 floats.
        assert z.size * gradient[0, 0, i] == pytest.approx(z.size * slope(z, i), rel=2e-4, abs=2e-4)
    for j in {0, raters // 2, raters - 1}:
        assert own_gradient[j] == pytest.approx(slope(exact, j), rel=1e-4, abs=1e-6)
    levels = loss.levels(logits, own)[0]
    np.testing.assert_allclose(levels, np.exp(log_levels(z, exact, raters)), atol=1e-6)
    assert np.abs(levels.sum(0) - 1).max() < 2e-6
