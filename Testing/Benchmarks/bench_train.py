# SPDX-License-Identifier: Apache-2.0
"""Training from files to weights, ours and PyTorch's with its DataLoader: an epoch of the same network, batch and cases.

Both read the images and all raters' masks from disk, vary them (flips and right-angle turns; a rotation and scale by
up to 15 degrees and 15 %, gamma, brightness and contrast, each for 3 samples of 10), and train with the same loss and
optimizer. Ours reads each file once and keeps it packed; PyTorch's loader reads where it is asked, as loaders do.
Real masks are needed (--data LIST); without them there is nothing to measure.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Python"))
DATA = pathlib.Path(os.environ.get("RCN_DATA", HERE.parents[2] / "shared" / "data")) / "lidc4" / "dataset.json"


def peer(path, arch, batch, threads, workers):
    """One epoch in PyTorch; runs in a process of its own and prints JSON."""
    import math

    import net_twins
    import numpy as np
    import torch
    from PIL import Image
    from torch.nn import functional

    torch.set_num_threads(threads)
    content = json.loads(pathlib.Path(path).read_text())
    names, cases = content["raters"], content["training"]
    k = len(names)

    class Cases(torch.utils.data.Dataset):
        def __len__(self):
            return len(cases)

        def __getitem__(self, index):
            case = cases[index]
            image = torch.from_numpy(np.array(Image.open(case["image"]), dtype=np.float32))
            level = sum(torch.from_numpy((np.array(Image.open(case["label"][n])) > 0).astype(np.float32)) for n in names)
            image = ((image - image.mean()) / image.std())[None]
            both = torch.stack([image[0], level])
            turn = int(torch.randint(4, ()))
            both = torch.rot90(both, turn, (1, 2))
            for axis in (1, 2):
                if torch.rand(()) < .5:
                    both = both.flip(axis)
            if torch.rand(()) < .3 or torch.rand(()) < .3:
                angle, scale = math.radians(float(torch.empty(()).uniform_(-15, 15))), float(torch.empty(()).uniform_(1 / 1.15, 1.15))
                matrix = torch.tensor([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0]]) * scale
                grid = functional.affine_grid(matrix[None], (1, 1, *image.shape[1:]), align_corners=False)
                both = torch.cat([functional.grid_sample(both[None, :1], grid, padding_mode="border", align_corners=False)[0],
                                  functional.grid_sample(both[None, 1:], grid, mode="nearest", align_corners=False)[0]])
            image, level = both[:1].contiguous(), both[1].long()
            if torch.rand(()) < .3:
                low, high = image.min(), image.max()
                image = low + (high - low) * ((image - low) / (high - low)) ** float(torch.empty(()).uniform_(1 / 1.2, 1.2))
            if torch.rand(()) < .3:
                image = image * float(torch.empty(()).uniform_(1 / 1.1, 1.1)) + float(torch.empty(()).uniform_(-.1, .1))
            return image, level

    loader = torch.utils.data.DataLoader(Cases(), batch, shuffle=True, drop_last=True, num_workers=workers)
    model = net_twins.make(arch, 1, k + 1).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    begin, steps = time.perf_counter(), 0
    for image, level in loader:
        p = torch.softmax(model(image), 1)
        majority = p[:, math.ceil(k / 2):].sum(1).clamp(1e-7, 1 - 1e-7)
        below = torch.cumsum(p, 1)
        truth = (level[:, None] <= torch.arange(k + 1)[None, :, None, None]).float()
        loss = functional.binary_cross_entropy(majority, (2 * level >= k).float()) + .8 * ((below - truth) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(json.dumps({"seconds": time.perf_counter() - begin, "steps": steps}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    parser.add_argument("--cases", type=int, default=160, help="training cases, so that an epoch is short")
    parser.add_argument("--arch", default="fpn-resnet18")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(**json.loads(options.peer))
        return
    if not options.data.exists():
        print(f"{options.data} is not there: give a data list of 8-bit PNG files with --data.")
        return
    content = json.loads(options.data.read_text())
    folder = options.data.resolve().parent
    cases = [{"id": c["id"], "image": str(folder / c["image"]), "label": {n: str(folder / f) for n, f in c["label"].items()}}
             for c in content["training"][:options.cases + 2]]
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "list.json"
        path.write_text(json.dumps({"raters": content["raters"], "training": cases[:-2], "validation": cases[-2:]}))
        program = pathlib.Path(os.environ["RCN_BUILD"]) / "bin" / "rater-consensus"
        subprocess.run([program, "train", "--data", path, "-o", f"{work}/m.safetensors", "--arch", options.arch, "--epochs", "1",
                        "--batch", str(options.batch), "--threads", str(options.threads), "--json", f"{work}/m.json", "--quiet"], check=True)
        result = json.loads(pathlib.Path(f"{work}/m.json").read_text())
        seconds, samples = result["seconds"], result["steps"] * options.batch
        ours = seconds["reading"] + seconds["drawing"] + seconds["stepping"]
        print(f"{options.arch}, batch {options.batch}, {samples} samples, {options.threads} threads\n")
        print("| engine | samples/s | reading + varying | ratio |\n|---|---|---|---|")
        data = 100 * (seconds["reading"] + seconds["drawing"]) / ours
        print(f"| ours | {samples / ours:.1f} | {data:.1f} % (varying alone {100 * seconds['drawing'] / ours:.1f} %) | 1 |")
        for workers in (0, 1, 2):
            words = dict(path=str(path), arch=options.arch, batch=options.batch, threads=options.threads, workers=workers)
            done = subprocess.run([sys.executable, __file__, "--peer", json.dumps(words)], capture_output=True, text=True, check=True)
            theirs = json.loads(done.stdout.splitlines()[-1])
            rate = theirs["steps"] * options.batch / theirs["seconds"]
            print(f"| PyTorch, {workers} loader processes | {rate:.1f} | | {samples / ours / rate:.2f} |", flush=True)


if __name__ == "__main__":
    main()
