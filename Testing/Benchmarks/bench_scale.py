# SPDX-License-Identifier: Apache-2.0
"""Training by several processes: what a step waits for, measured with two processes here, and what 2 to 256 processes on a
cluster can be expected to reach.

Measured: a step of one process with one thread; the same work per process with two processes of one thread each, and how
much of a step they wait in MPI; the size of the gradients. Simulated, from these numbers and a network's latency and
bandwidth: steps of N processes with the same work each (weak scaling). The assumptions are printed with the table and
stand in Resources/Docs/cluster.md.
"""
import argparse
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Python"))

import numpy as np  # noqa: E402

from rcn_testing import PROGRAM, write_png  # noqa: E402

# Latency of a message (s) and bandwidth of a process's link (bytes/s), as MPI sees them.
NETWORKS = {"10 Gb/s Ethernet": (30e-6, 1.1e9), "25 Gb/s Ethernet": (15e-6, 2.8e9), "100 Gb/s InfiniBand": (2e-6, 11e9)}
ENVIRONMENT = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def make_data(folder, cases, size):
    random_numbers = np.random.default_rng(0)
    y, x = np.mgrid[:size, :size]
    listed = []
    for i in range(cases):
        cy, cx = random_numbers.uniform(.3 * size, .7 * size, 2)
        distance = np.hypot(y - cy, x - cx)
        image = random_numbers.normal(80, 12, (size, size)) + 80 * (distance < size / 6)
        write_png(folder / f"c{i}.png", np.clip(image, 0, 255).astype(np.uint8))
        label = {}
        for r in "ABC":
            label[r] = f"c{i}{r}.png"
            write_png(folder / label[r], (distance < size / 6 + random_numbers.normal(0, 3)).astype(np.uint8))
        listed.append({"id": f"c{i}", "image": f"c{i}.png", "label": label})
    (folder / "list.json").write_text(json.dumps({"raters": list("ABC"), "training": listed}))
    return folder / "list.json"


def train(processes, data, folder, arch, batch, epochs):
    """Seconds of a step, and of waiting in it."""
    words = [PROGRAM, "train", "--data", data, "-o", folder / f"m{processes}.safetensors", "--arch", arch, "--batch", batch,
             "--epochs", epochs, "--threads", 1, "--split", 0, "--augment", "flips", "--json", folder / f"m{processes}.json", "--quiet",
             "--checkpoint-seconds", 1e9]
    if processes > 1:
        words = ["mpirun", "-n", processes, *(["--oversubscribe"] if "--oversubscribe" in subprocess.run(
            ["mpirun", "--help", "mapping"], capture_output=True, text=True).stdout else []), *words]
    subprocess.run([str(w) for w in words], check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    result = json.loads((folder / f"m{processes}.json").read_text())
    seconds, steps = result["seconds"], result["steps"]
    return (seconds["drawing"] + seconds["stepping"]) / steps, seconds["waiting"] / steps


def parameters(model):
    """Bytes of gradients and the number of batch norms, from the model's file."""
    raw = model.read_bytes()
    header = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
    names = [n for n in header if n != "__metadata__"]
    trained = [n for n in names if "running_" not in n and "num_batches" not in n and not n.startswith("loss")]
    return (sum(4 * math.prod(header[n]["shape"]) for n in trained), sum("running_mean" in n for n in names))


def simulate(count, step, gradient, norms, latency, bandwidth, spread, overlap=2 / 3, steps=200, bucket=1 << 20):
    """Seconds of a step of `count` processes. Each works `step` seconds, give or take `spread`, and the slowest decides, once per
    reduction that all wait for: here once per step. Small sums (two per norm, three more) take 2 log2(N) messages each and hide
    behind nothing. Gradients travel in buckets around a ring, 2 (N - 1) / N of their size over each link and 2 (N - 1) messages of
    latency per bucket, or 2 log2(N) where that is less; they hide behind the backward pass (`overlap` of a step), except the last
    bucket."""
    if count == 1:
        return step
    rng = random.Random(1)
    hops = 2 * math.ceil(math.log2(count))
    small = (2 * norms + 3) * hops * latency
    buckets = max(1, math.ceil(gradient / bucket))
    travel = 2 * (count - 1) / count * gradient / bandwidth + buckets * hops * latency
    shown = max(travel / buckets, travel - overlap * step)
    slowest = sum(max(rng.gauss(step, spread * step) for _ in range(count)) for _ in range(steps)) / steps
    return slowest + small + shown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--batch", type=int, default=4, help="samples of a process in a step")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--spread", type=float, default=0.03, help="standard deviation of a process's step, as a share of it")
    parser.add_argument("--arch", nargs="*", default=["unet", "fpn-resnet18"])
    options = parser.parse_args()
    if not shutil.which("mpirun"):
        sys.exit("There is no mpirun: install openmpi-bin.")
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        data = make_data(folder, 8 * options.batch, options.size)
        for arch in options.arch:
            one, _ = train(1, data, folder, arch, options.batch, options.epochs)
            two, waiting = train(2, data, folder, arch, options.batch, 2 * options.epochs)
            gradient, norms = parameters(folder / "m1.safetensors")
            print(f"{arch}, {options.batch} samples of {options.size} x {options.size} per process, one thread each: a step takes "
                  f"{1e3 * one:.0f} ms alone and {1e3 * two:.0f} ms with two processes, which wait {100 * waiting / two:.1f} % of it; "
                  f"gradients {gradient / 1e6:.1f} MB, {norms} batch norms")
            print("| processes | " + " | ".join(NETWORKS) + " |\n|---|" + "---|" * len(NETWORKS))
            for count in (2, 4, 8, 16, 32, 64, 128, 256):
                cells = [one / simulate(count, one, gradient, norms, *network, options.spread) for network in NETWORKS.values()]
                print(f"| {count} | " + " | ".join(f"{100 * c:.0f} %" for c in cells) + " |")
            print(flush=True)


if __name__ == "__main__":
    main()
