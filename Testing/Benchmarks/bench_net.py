"""Networks, ours and PyTorch's, each in its own process with the same number of threads.

Prints for each work: seconds per pass, ratio, peak memory, GFLOP/s and the share of the measured
FMA peak. Outputs are compared first (both sides fill the parameters by name).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Python"))

#        name              arch            mode      batch ch out size          at least
WORKS = [
    ("fpn-train", "fpn-resnet34", "train", 4, 3, 8, (256, 256, 1), 1.4),
    ("unet-train", "unet", "train", 8, 1, 5, (256, 256, 1), 2.5),
    ("unet3d-train", "unet3d", "train", 1, 1, 5, (96, 96, 64), 1.5),
    ("fpn-predict", "fpn-resnet34", "predict", 1, 3, 8, (512, 512, 1), 2.0),
    ("unet-predict", "unet", "predict", 1, 1, 5, (1024, 1024, 1), 3.0),
]


def peer(arch, mode, batch, channels, outputs, size, threads, repeats, layout, compiled, start):
    """The same work in PyTorch; runs in a process of its own and prints JSON."""
    import resource

    import net_fill
    import net_twins
    import numpy as np
    import torch

    torch.set_num_threads(threads)
    model = net_twins.fill(net_twins.make(arch, channels, outputs))
    shape = (batch, channels, *(size[::-1] if arch == "unet3d" else size[1::-1]))
    images = torch.from_numpy(net_fill.image("images", *shape))
    flops = [0.0]

    def count(module, inputs, out):
        weight = module.weight
        if isinstance(module, (torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)):
            flops[0] += 2.0 * inputs[0].numel() * weight.numel() / weight.shape[0]
        else:
            flops[0] += 2.0 * out.numel() * weight.numel() / weight.shape[0]

    hooks = [m.register_forward_hook(count) for m in model.modules() if "Conv" in type(m).__name__
             and hasattr(m, "weight")]
    model.eval()
    with torch.no_grad():
        model(images[:1])
    for hook in hooks:
        hook.remove()
    if layout == "channels_last":
        format = torch.channels_last_3d if arch == "unet3d" else torch.channels_last
        model, images = model.to(memory_format=format), images.to(memory_format=format)
    run = torch.compile(model) if compiled else model
    times, total, first = [], 0.0, 0.0
    if mode == "train":
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), 1e-4)
        weights = torch.from_numpy(
            net_fill.image("weights", batch, outputs, *shape[2:]) / np.float32(batch * np.prod(size))
        )
    for r in range(repeats):
        begin = time.perf_counter()
        if mode == "train":
            optimizer.zero_grad()
            logits = run(images)
            logits.backward(weights)
            optimizer.step()
        else:
            with torch.no_grad():
                logits = run(images)
        times.append(time.perf_counter() - begin)
        if not r:
            total = float(logits.detach().double().abs().mean())
            first = time.time() - start
    times.sort()
    print(json.dumps({
        "best": times[0],
        "median": times[len(times) // 2],
        "first": first,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "sum": total,
        "flops": flops[0] * batch * (3 if mode == "train" else 1),
    }))


def run_json(command, **environment):
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])
    return json.loads(result.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="names of works, with commas")
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument("--json", help="write the numbers here")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(**json.loads(options.peer))
        return
    program = pathlib.Path(os.environ["RCN_BUILD"]) / "bin" / "bench_net"
    peak = run_json([str(program), "peak", str(options.threads)])["gflops"]
    print(f"{options.threads} threads, measured FMA peak {peak:.0f} GFLOP/s\n")
    print("| work | engine | best s | median s | ratio | wanted | peak MB | memory | GFLOP/s | of peak | first s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    numbers = {"peak_gflops": peak}
    for name, arch, mode, batch, channels, outputs, size, wanted in WORKS:
        if options.only and name not in options.only.split(","):
            continue
        ours = run_json([
            str(program), arch, mode, *map(str, (batch, channels, outputs, *size, options.threads, options.repeats))
        ])
        rows = {"ours": ours}
        variants = [("eager", "planar", False), ("channels_last", "channels_last", False)]
        if options.compile:
            variants.append(("compile", "planar", True))
        for label, layout, compiled in variants:
            work = dict(arch=arch, mode=mode, batch=batch, channels=channels, outputs=outputs, size=size,
                        threads=options.threads, repeats=options.repeats, layout=layout, compiled=compiled,
                        start=time.time())
            rows[label] = run_json([sys.executable, __file__, "--peer", json.dumps(work)])
            difference = abs(rows[label]["sum"] / ours["sum"] - 1)
            if difference > 1e-4:
                raise SystemExit(f"{name}: the outputs of {label} differ by {difference:.1e}")
        fastest = min((row for label, row in rows.items() if label in ("eager", "channels_last")),
                      key=lambda row: row["best"])
        for label, row in rows.items():
            rate = fastest["flops"] / row["best"] / 1e9
            mine = label == "ours"
            ratio = f"{fastest['best'] / row['best']:.2f}" if mine else ""
            memory = f"{row['peak_bytes'] / fastest['peak_bytes']:.2f}" if mine else ""
            print(f"| {name} | {label} | {row['best']:.3f} | {row['median']:.3f} |"
                  f" {ratio} | {wanted if mine else ''} | {row['peak_bytes'] / 1e6:.0f} | {memory} |"
                  f" {rate:.0f} | {rate / peak:.0%} | {row['first']:.2f} |", flush=True)
        numbers[name] = rows
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
