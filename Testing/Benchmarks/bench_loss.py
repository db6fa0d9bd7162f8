# SPDX-License-Identifier: Apache-2.0
"""The BCE + RPS loss with its gradient, alone: this library and PyTorch in one run.

Both are given the same outputs and votes and the same number of threads; what they compute is
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
from loss_twin import bce_rps


def time_of(work, repeats):
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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
    if options.json:
        print(json.dumps({"ours": here, "eager": there}))
    if there / here < options.at_least:
        sys.exit(f"bench_loss: less than {options.at_least} x")


if __name__ == "__main__":
    main()
