# SPDX-License-Identifier: Apache-2.0
"""Networks, ours and PyTorch's, each in its own process with the same number of threads.

Prints the machine, then for each work: seconds per pass, ratio, peak memory, GFLOP/s and the share
of the measured FMA peak. A pass of training is forward, BCE + RPS, backward and Adam. Both sides
fill parameters, images and levels by name; a first pass is not timed, and its logits and loss must
agree before any figure of the work is shown. The engines run in turn, --rounds times, and the best
pass of each counts. The ratio is against the fastest of PyTorch's: eager in two layouts, and with
--compile torch.compile. Then the time from a program's start to its first prediction with weights
from a file. All of it once with the best instruction set that the machine has and once with each
other one that both sides can be held to, or with those that --isa names; then the loss alone
(bench_loss.py).
"""

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Python"))

#        name              arch            mode      batch ch out size          wanted: AVX-512, AVX2
WORKS = [
    ("fpn-train", "fpn-resnet34", "train", 4, 3, 8, (256, 256, 1), (2.2, 2.3)),
    ("unet-train", "unet", "train", 8, 1, 5, (256, 256, 1), (3.0, 3.4)),
    ("unet3d-train", "unet3d", "train", 1, 1, 5, (96, 96, 64), (2.6, 3.5)),
    ("fpn-predict", "fpn-resnet34", "predict", 1, 3, 8, (512, 512, 1), (2.8, 2.5)),
    ("unet-predict", "unet", "predict", 1, 1, 5, (1024, 1024, 1), (3.5, 4.5)),
    ("resnet50-predict", "fpn-resnet50", "predict", 1, 3, 8, (512, 512, 1), (1.4, 1.4)),
]


#  name          arch            ch out size           at least
STARTS = [
    ("fpn-start", "fpn-resnet34", 3, 8, (256, 256, 1), 25),
    ("unet-start", "unet", 1, 5, (256, 256, 1), 25),
]

# What holds both sides to an instruction set that is not the best one.
LIMITS = {
    "avx2": {"RCN_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}
SAMPLES = 32


def shape_of(arch, size):
    return size[::-1] if arch == "unet3d" else size[1::-1]


def outputs_of(logits, loss=0.0):
    """What is compared: as bench_net.c prints it."""
    flat = logits.detach().contiguous().reshape(-1)
    values = flat[: SAMPLES * (flat.numel() // SAMPLES) : flat.numel() // SAMPLES]
    return {"mean": float(flat.double().abs().mean()), "loss": loss, "logits": values.tolist()}


def peak_bytes():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def count_flops(model, image):
    """Floating-point operations of the convolutions for one image."""
    import torch

    flops = [0.0]

    def count(module, inputs, out):
        weight = module.weight
        transposed = isinstance(module, (torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d))
        flops[0] += 2.0 * (inputs[0] if transposed else out).numel() * weight.numel() / weight.shape[0]

    hooks = [m.register_forward_hook(count) for m in model.modules()
             if "Conv" in type(m).__name__ and hasattr(m, "weight")]
    with torch.no_grad():
        model.eval()(image)
    for hook in hooks:
        hook.remove()
    return flops[0]


def peer(arch, mode, batch, channels, outputs, size, threads, repeats, layout, compiled):
    """The same work in PyTorch; runs in a process of its own and prints JSON."""
    import net_fill
    import net_twins
    import numpy as np
    import torch
    from loss_twin import bce_rps

    torch.set_num_threads(threads)
    model = net_twins.fill(net_twins.make(arch, channels, outputs))
    shape = (batch, channels, *shape_of(arch, size))
    images = torch.from_numpy(net_fill.image("images", *shape))
    flops = count_flops(model, images[:1]) * batch * (3 if mode == "train" else 1)
    if layout == "channels_last":
        format = torch.channels_last_3d if arch == "unet3d" else torch.channels_last
        model, images = model.to(memory_format=format), images.to(memory_format=format)
    model.train(mode == "train")
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    if mode == "train":
        level = (net_fill.numbers("levels", batch * int(np.prod(size))) + 1) / 2 * outputs
        level = torch.from_numpy(level.astype(np.int64).reshape(batch, *shape[2:]))

    def forward(images):
        logits = model(images)
        return (logits, bce_rps(logits, level)) if mode == "train" else (logits, None)

    run = torch.compile(forward) if compiled else forward
    times = []
    for r in range(-1, repeats):
        begin = time.perf_counter()
        if mode == "train":
            optimizer.zero_grad()
            logits, loss = run(images)
            loss.backward()
            optimizer.step()
        else:
            with torch.no_grad():
                logits, loss = run(images)
        if r >= 0:
            times.append(time.perf_counter() - begin)
        else:
            first = outputs_of(logits, loss.item() if mode == "train" else 0.0)
    times.sort()
    print(json.dumps({**first, "best": times[0], "median": times[len(times) // 2], "peak_bytes": peak_bytes(),
                      "flops": flops}))


def peer_save(arch, channels, outputs, path):
    """A model file for both sides to start from."""
    import net_twins
    from safetensors.torch import save_file

    raters = json.dumps([f"R{k}" for k in range(1, outputs)])
    save_file(net_twins.fill(net_twins.make(arch, channels, outputs)).state_dict(), path, metadata={
        "arch": arch, "channels": str(channels), "raters": raters,
        "normalization": json.dumps({"kind": "fixed", "mean": [0] * channels, "std": [1] * channels})})
    print("{}")


def peer_start(arch, channels, outputs, size, threads, path):
    """Loads the file and predicts one image, with nothing imported that this does not need."""
    import net_fill
    import net_twins
    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(threads)
    model = net_twins.make(arch, channels, outputs).eval()
    model.load_state_dict(load_file(path))
    with torch.no_grad():
        logits = model(torch.from_numpy(net_fill.image("images", 1, channels, *shape_of(arch, size))))
    done = time.time()
    print(json.dumps({**outputs_of(logits), "done": done, "peak_bytes": peak_bytes()}))


def run_json(command, **environment):
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])
    return json.loads(result.stdout.strip().splitlines()[-1])


def run_peer(work, **arguments):
    return run_json([sys.executable, __file__, "--peer", work, json.dumps(arguments)])


def processor():
    """The name that the system gives it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown processor"


def compare(name, label, row, ours):
    """Ends the program unless both computed the same."""
    largest = max(map(abs, ours["logits"]))
    difference = max(abs(a - b) for a, b in zip(row["logits"], ours["logits"], strict=True)) / largest
    difference = max(difference, abs(row["mean"] / ours["mean"] - 1))
    if ours["loss"]:
        difference = max(difference, abs(row["loss"] / ours["loss"] - 1))
    if not difference < 1e-4:
        raise SystemExit(f"{name}: outputs or loss of {label} differ by {difference:.1e}")


def bench_work(program, options, isa, peak, work):
    name, arch, mode, batch, channels, outputs, size, wanted = work
    wanted = wanted[isa == "avx2"]
    shape = {"arch": arch, "mode": mode, "batch": batch, "channels": channels, "outputs": outputs, "size": size,
             "threads": options.threads, "repeats": options.repeats}
    engines = {"ours": lambda: run_json([
        program, arch, mode, *map(str, (batch, channels, outputs, *size, options.threads, options.repeats))])}
    variants = [("eager", "planar", False), ("channels_last", "channels_last", False)]
    if options.compile:
        variants.append(("compile", "planar", True))
    for label, layout, compiled in variants:
        engines[label] = functools.partial(run_peer, "peer", **shape, layout=layout, compiled=compiled)
    # In turn, several times: a machine that is slow for a minute must not hit one engine alone.
    rounds = [{label: run() for label, run in engines.items()} for _ in range(options.rounds)]
    rows = {label: {**min((r[label] for r in rounds), key=lambda row: row["best"]),
                    "median": statistics.median(r[label]["median"] for r in rounds)} for label in engines}
    for label in list(engines)[1:]:
        compare(name, label, rows[label], rows["ours"])
    fastest = min((row for label, row in rows.items() if label != "ours"), key=lambda row: row["best"])
    for label, row in rows.items():
        rate = fastest["flops"] / row["best"] / 1e9
        mine = label == "ours"
        ratio = f"{fastest['best'] / row['best']:.2f}" if mine else ""
        memory = f"{row['peak_bytes'] / fastest['peak_bytes']:.2f}" if mine else ""
        print(f"| {name} | {isa} | {label} | {row['best']:.3f} | {row['median']:.3f} |"
              f" {ratio} | {wanted if mine else ''} | {row['peak_bytes'] / 1e6:.0f} | {memory} |"
              f" {rate:.0f} | {rate / peak:.0%} |", flush=True)
    return rows


def bench_start(program, options, isa, start):
    """Seconds from the start of a process to its first prediction, the fastest of some; files and
    programs have been read once before."""
    name, arch, channels, outputs, size, wanted = start
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model.safetensors")
        run_peer("peer_save", arch=arch, channels=channels, outputs=outputs, path=path)
        engines = {
            "ours": lambda: run_json([program, "start", path, *map(str, (*size, options.threads))]),
            "eager": lambda: run_peer("peer_start", arch=arch, channels=channels, outputs=outputs, size=size,
                                      threads=options.threads, path=path),
        }
        for label, run in engines.items():
            times = []
            for _ in range(max(2, min(options.repeats, 3))):
                begin = time.time()
                row = run()
                times.append(row["done"] - begin)
            rows[label] = {**row, "best": min(times), "median": sorted(times)[len(times) // 2]}
    compare(name, "eager", rows["eager"], rows["ours"])
    for label, row in rows.items():
        mine = label == "ours"
        ratio = f"{rows['eager']['best'] / row['best']:.1f}" if mine else ""
        memory = f"{row['peak_bytes'] / rows['eager']['peak_bytes']:.2f}" if mine else ""
        print(f"| {name} | {isa} | {label} | {row['best']:.3f} | {row['median']:.3f} | {ratio} | {wanted if mine else ''} |"
              f" {row['peak_bytes'] / 1e6:.0f} | {memory} | | |", flush=True)
    return rows


def bench_loss(options):
    rows = run_json([sys.executable, str(HERE / "bench_loss.py"), "--threads", str(options.threads),
                     "--repeats", str(options.repeats), "--json"])
    print(f"| loss | | ours | | {rows['ours']:.3f} | {rows['eager'] / rows['ours']:.1f} | 15 | | | | |\n"
          f"| loss | | eager | | {rows['eager']:.3f} | | | | | | |", flush=True)
    return rows


def main():
    names = [work[0] for work in WORKS + STARTS] + ["loss"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="how often the engines are run in turn")
    parser.add_argument("--only", help=f"some of these, with commas: {','.join(names)}")
    parser.add_argument("--compile", action="store_true", help="torch.compile too (it takes minutes)")
    parser.add_argument("--isa", help="some of the instruction sets, with commas: avx512,avx2")
    parser.add_argument("--json", help="write the numbers here")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        {"peer": peer, "peer_save": peer_save, "peer_start": peer_start}[options.peer[0]](
            **json.loads(options.peer[1]))
        return
    wanted = options.only.split(",") if options.only else names
    if set(wanted) - set(names):
        parser.error(f"--only takes some of {','.join(names)}")
    program = str(pathlib.Path(os.environ["RCN_BUILD"]) / "bin" / "bench_net")
    machine = run_json([program, "machine", str(options.threads)])
    best, *others = machine["isas"]
    known = [best, *(isa for isa in others if isa in LIMITS)]
    isas = options.isa.split(",") if options.isa else known
    if set(isas) - set(known):
        parser.error(f"--isa takes some of {','.join(known)}")
    print(f"{processor()}; instruction sets {', '.join(machine['isas'])}; {options.threads} threads. Ratio, memory: "
          "against the fastest of PyTorch's.\n")
    print("| work | isa | engine | best s | median s | ratio | wanted | peak MB | memory | GFLOP/s | of peak |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    numbers = {}
    inherited = dict(os.environ)
    for isa in isas:
        os.environ.update({} if isa == best else LIMITS[isa])
        # torch.compile would run what it has compiled for another instruction set, and crash.
        cache = tempfile.TemporaryDirectory()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache.name
        peak = run_json([program, "machine", str(options.threads)])["gflops"]
        print(f"| peak of fused multiply-adds | {isa} | | | | | | | | {peak:.0f} | |", flush=True)
        rows = numbers[isa] = {"peak_gflops": peak}
        for work in WORKS:
            if work[0] in wanted:
                rows[work[0]] = bench_work(program, options, isa, peak, work)
        for start in STARTS:
            if start[0] in wanted:
                rows[start[0]] = bench_start(program, options, isa, start)
        cache.cleanup()
        os.environ.clear()
        os.environ.update(inherited)
    if "loss" in wanted:
        numbers["loss"] = bench_loss(options)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
