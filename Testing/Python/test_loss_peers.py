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


def beta_binomial(z, y, own, K):
    mean, m = torch.sigmoid(z[:, 0]), torch.exp(-own[0])
    a, b, y = mean * m, (1 - mean) * m, y.to(z.dtype)

    def log_beta(u, v):
        return torch.lgamma(u) + torch.lgamma(v) - torch.lgamma(u + v)

    n = torch.tensor(float(K), dtype=z.dtype)
    choose = torch.lgamma(n + 1) - torch.lgamma(y + 1) - torch.lgamma(n - y + 1)
    return -(choose + log_beta(y + a, K - y + b) - log_beta(a, b)).mean()


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
    "bce": lambda z, y, own, K: BCE(z[:, 0], y.to(z.dtype) / K),
    "binary-brier": lambda z, y, own, K: ((torch.sigmoid(z[:, 0]) - y / K) ** 2).mean(),
}


@pytest.mark.parametrize("raters", [1, 3, 4, 7])
@pytest.mark.parametrize("kind", rcn.KINDS)
def test_loss_and_gradients(kind, raters):
    generator = np.random.default_rng(raters)
    context = rcn.Context(2)
    loss = rcn.Loss(context, kind, raters)
    logits = generator.standard_normal((2, loss.channels, 3001), dtype=np.float32) * 3
    level = generator.integers(0, raters + 1, (2, 3001)).astype(np.uint8)
    parameters = loss.init_parameters()
    gradient, own_gradient = np.empty_like(logits), np.empty_like(parameters)
    result = loss.run(logits, level, gradient, parameters, own_gradient)

    z = torch.from_numpy(logits.astype(np.float64)).requires_grad_()
    own = torch.from_numpy(parameters.astype(np.float64)).requires_grad_()
    peer = PEERS[kind](z, torch.from_numpy(level.astype(np.int64)), own, raters)
    peer.backward()
    assert result.loss == pytest.approx(peer.item(), rel=1e-6)
    scale = z.grad.abs().max().item()
    np.testing.assert_allclose(gradient, z.grad.numpy(), rtol=1e-5, atol=4e-6 * scale)
    if loss.own:
        np.testing.assert_allclose(own_gradient, own.grad.numpy(), rtol=1e-5, atol=1e-7)
    assert np.abs(loss.levels(logits, parameters).sum(1) - 1).max() < 1e-6
