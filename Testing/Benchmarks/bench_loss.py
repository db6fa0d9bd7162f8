# SPDX-License-Identifier: Apache-2.0
"""Losses with their gradients, alone: this library and PyTorch in one run. BCE + RPS on levels, the cumulative
link with RPS (the default), and the Dirichlet-multinomial likelihood of several structures.

All are given the same outputs and votes and the same number of threads; what they compute is
compared before anything is timed. Run with: ./run bench loss
"""
import argparse
import json
import os
import statistics
import sys
import time

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Python"))
import rcn_loss_ctypes as rcn
from loss_twin import bce_rps, dirichlet_multinomial_nll


def time_of(work, repeats):
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compare(here_once, step, leaf, gradient, options):
    """Seconds of a pass here and in PyTorch, once both have given the same loss and gradient."""
    value, peer = here_once().loss, step().item()
    difference = np.abs(leaf.grad.numpy() - gradient).max() / np.abs(gradient).max()
    print(f"loss {value:.7f} here, {peer:.7f} PyTorch; largest difference of gradients {difference:.1e} in float")
    if abs(value - peer) > 1e-4 * peer or difference > 1e-2:
        sys.exit("bench_loss: the two do not compute the same")
    here, there = time_of(here_once, 3 * options.repeats), time_of(step, options.repeats)
    return here, there


def bench_structures(options, structures=4, raters=5):
    """Dirichlet-multinomial: most voxels are background or one structure for all raters, some are disputed."""
    generator = np.random.default_rng(2)
    context = rcn.Context(options.threads)
    loss = rcn.Loss(context, "dirichlet-multinomial", raters, structures=structures)
    counts = np.zeros((200, structures + 1), np.uint8)
    for row, votes in enumerate(generator.integers(0, structures + 1, (200, raters))):
        votes = votes if row > structures else [row] * raters
        np.add.at(counts[row], votes, 1)
    code = generator.integers(0, 200, (1, options.voxels)) * (generator.random((1, options.voxels)) < 0.1)
    code = code.astype(np.uint8)
    logits = generator.standard_normal((1, structures + 1, options.voxels), dtype=np.float32) * 2
    gradient, parameters, own = np.empty_like(logits), np.array([-1], np.float32), np.zeros(1, np.float32)
    leaf, c = torch.from_numpy(logits).requires_grad_(), torch.from_numpy(parameters.copy()).requires_grad_()
    target = torch.from_numpy(counts[code[0]].astype(np.float32))

    def here_once():
        return loss.run(logits, code, gradient, parameters, own, counts=counts)

    def step():
        leaf.grad = c.grad = None
        value = dirichlet_multinomial_nll(leaf, target, c)
        value.backward()
        return value

    here, there = compare(here_once, step, leaf, gradient, options)
    print(f"Dirichlet-multinomial: {structures} structures, {raters} raters, {options.voxels} voxels, "
          f"{options.threads} threads, float32")
    print(f"  PyTorch {torch.__version__} eager  {there * 1e3:8.1f} ms")
    print(f"  here                     {here * 1e3:8.1f} ms   {there / here:.1f} x"
          f"   {2 * logits.nbytes / here / 1e9:.1f} GB/s")
    return here, there


def link_rps(z, y, own, raters, weight):
    """The default in PyTorch: log p_k without differences of probabilities, and the RPS of the levels."""
    thresholds = torch.cumsum(torch.cat([own[:1], own[1:] ** 2 + 1e-3]), 0)
    x = thresholds[None, :, None] - z
    log_yes, log_no = torch.nn.functional.logsigmoid(x), torch.nn.functional.logsigmoid(-x)
    gap = torch.log(-torch.expm1(thresholds[:-1] - thresholds[1:]))
    log_p = torch.cat([log_yes, torch.zeros_like(z)], 1) + torch.cat([torch.zeros_like(z), log_no], 1)
    log_p = log_p + torch.nn.functional.pad(gap, (1, 1))[None, :, None]
    truth = (y[:, None] <= torch.arange(raters)[None, :, None]).to(z.dtype)
    rps = ((torch.sigmoid(x) - truth) ** 2).sum(1) / (raters + 1)
    return (weight * rps - log_p.gather(1, y[:, None])[:, 0]).mean()


def bench_default(options):
    """What `train` uses unless told otherwise."""
    generator = np.random.default_rng(3)
    context = rcn.Context(options.threads)
    loss = rcn.Loss(context, "cumulative-link", options.raters, rps_weight=5.0)
    parameters = loss.init_parameters()
    logits = generator.standard_normal((1, 1, options.voxels), dtype=np.float32) * 2
    level = generator.integers(0, options.raters + 1, (1, options.voxels)).astype(np.uint8)
    gradient, own = np.empty_like(logits), np.empty_like(parameters)
    leaf, c = torch.from_numpy(logits).requires_grad_(), torch.from_numpy(parameters.copy()).requires_grad_()
    target = torch.from_numpy(level.astype(np.int64))

    def here_once():
        return loss.run(logits, level, gradient, parameters, own)

    def step():
        leaf.grad = c.grad = None
        value = link_rps(leaf, target, c, options.raters, 5.0)
        value.backward()
        return value

    here, there = compare(here_once, step, leaf, gradient, options)
    print(f"cumulative link with RPS: {options.raters} raters, {options.voxels} voxels, {options.threads} threads, float32")
    print(f"  PyTorch {torch.__version__} eager  {there * 1e3:8.1f} ms")
    print(f"  here                     {here * 1e3:8.1f} ms   {there / here:.1f} x")
    return here, there


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--voxels", type=int, default=1 << 22)
    parser.add_argument("--raters", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--at-least", type=float, default=0, help="fail below this ratio")
    parser.add_argument("--json", action="store_true", help="seconds as JSON in the last line")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    levels = options.raters + 1
    generator = np.random.default_rng(1)
    logits = generator.standard_normal((1, levels, options.voxels), dtype=np.float32) * 2
    level = generator.integers(0, levels, (1, options.voxels)).astype(np.uint8)

    context = rcn.Context(options.threads)
    loss = rcn.Loss(context, "rps", options.raters)
    gradient = np.empty_like(logits)

    # The same loss first: PyTorch in double on a part of the voxels (in float its gradient loses
    # four digits where the majority is nearly sure), in float on all of them.
    part = min(options.voxels, 1 << 16)
    some = np.ascontiguousarray(logits[:, :, :part])
    some_gradient = np.empty_like(some)
    loss.run(some, np.ascontiguousarray(level[:, :part]), gradient=some_gradient)
    exact = torch.from_numpy(some.astype(np.float64)).requires_grad_()
    bce_rps(exact, torch.from_numpy(level[:, :part].astype(np.int64))).backward()
    exact = exact.grad.numpy()
    worst = np.abs(exact - some_gradient).max() / np.abs(exact).max()

    leaf = torch.from_numpy(logits).requires_grad_()
    target = torch.from_numpy(level.astype(np.int64))

    def step():
        leaf.grad = None
        value = bce_rps(leaf, target)
        value.backward()
        return value

    own, peer = loss.run(logits, level, gradient=gradient).loss, step().item()
    difference = np.abs(leaf.grad.numpy() - gradient).max() / np.abs(gradient).max()
    print(f"loss {own:.7f} here, {peer:.7f} PyTorch; largest difference of gradients "
          f"{worst:.1e} to PyTorch in double, {difference:.1e} in float")
    if abs(own - peer) > 1e-5 * peer or worst > 1e-6 or difference > 1e-2:
        sys.exit("bench_loss: the two do not compute the same")

    here = time_of(lambda: loss.run(logits, level, gradient=gradient), 3 * options.repeats)
    there = time_of(step, options.repeats)
    print(f"{options.raters} raters, {options.voxels} voxels, {options.threads} threads, float32")
    print(f"  PyTorch {torch.__version__} eager  {there * 1e3:8.1f} ms")
    print(f"  here                     {here * 1e3:8.1f} ms   {there / here:.1f} x"
          f"   {2 * logits.nbytes / here / 1e9:.1f} GB/s")
    ordinal, eager_ordinal = bench_default(options)
    ours, eager = bench_structures(options)
    if options.json:
        print(json.dumps({"ours": here, "eager": there, "ordinal": {"ours": ordinal, "eager": eager_ordinal},
                          "structures": {"ours": ours, "eager": eager}}))
    if there / here < options.at_least:
        sys.exit(f"bench_loss: less than {options.at_least} x")


if __name__ == "__main__":
    main()
