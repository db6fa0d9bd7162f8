# SPDX-License-Identifier: Apache-2.0
"""Optimizers and learning rates against torch.optim, live."""
import ctypes
import os

import numpy as np
import pytest

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares live with PyTorch: ./run test --peers", allow_module_level=True)

import torch

import rcn_loss_ctypes as rcn

COUNT = 30011


@pytest.mark.parametrize("clip", [0.0, 3.0])
@pytest.mark.parametrize("decay", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_ten_steps(kind, decay, clip):
    generator = np.random.default_rng(4)
    start = generator.standard_normal(COUNT).astype(np.float32)
    ours = rcn.Optimizer(rcn.Context(2), start.copy(), kind, weight_decay=decay, clip_norm=clip)
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    peer = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]([theirs], 0.01, weight_decay=decay)
    for _ in range(10):
        gradient = generator.standard_normal(COUNT).astype(np.float32)
        theirs.grad = torch.from_numpy(gradient.copy())
        norm = theirs.grad.norm().item()
        if clip:
            torch.nn.utils.clip_grad_norm_([theirs], clip)
        peer.step()
        ours.gradients[:] = gradient
        assert ours.step(0.01) == pytest.approx(norm, rel=1e-5)
    assert np.abs(ours.parameters - theirs.detach().numpy()).max() <= 1e-6


def rates(schedule, steps):
    library = rcn.load()
    library.rcn_schedule_rate.restype = ctypes.c_double
    return [library.rcn_schedule_rate(ctypes.byref(schedule), ctypes.c_int64(t)) for t in range(steps)]


def peer_rates(make, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.02)
    schedule, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


def test_one_cycle():
    peer = peer_rates(lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.02, total_steps=201), 201)
    ours = rates(rcn.Schedule(2, 0.02, 201, 0, 0.04, 4e-6), 201)
    np.testing.assert_allclose(ours, peer, rtol=1e-9, atol=1e-12)


def test_cosine():
    peer = peer_rates(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 50, eta_min=0.002), 50)
    ours = rates(rcn.Schedule(1, 0.02, 50, 0, 0.04, 0.1), 50)
    np.testing.assert_allclose(ours, peer, rtol=1e-9, atol=1e-12)
