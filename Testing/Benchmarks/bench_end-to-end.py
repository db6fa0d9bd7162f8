# SPDX-License-Identifier: Apache-2.0
"""From files to predictions, ours and PyTorch's with SimpleITK: a folder of pictures, and a volume slice by slice.

Both read the same files, normalize each image to mean 0 and standard deviation 1, run the same network with the same
weights on whole slices, and write levels (all probabilities), the expected share of raters and a mask, compressed, with the
geometry of the image. Each is a process of its own with the same number of threads; time is from its start to its end, and
the time without the import of PyTorch is beside it. The maps must agree before any figure is shown.
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
RATERS = 4
MAPS = ("levels", "prob", "mask")


def peer(model, images, out, format, arch, threads, layout):
    """What ours does, in PyTorch and SimpleITK; runs in a process of its own and prints JSON."""
    import net_twins
    import numpy as np
    import SimpleITK as sitk
    import torch
    from safetensors.torch import load_file

    begin = time.perf_counter()
    torch.set_num_threads(threads)
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
    twin = net_twins.make(arch, 1, RATERS + 1).eval()
    twin.load_state_dict(load_file(model))
    memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    twin = twin.to(memory_format=memory)
    share = (torch.arange(RATERS + 1) / RATERS)[:, None, None]
    for path in images:
        image = sitk.ReadImage(path)
        array = sitk.GetArrayFromImage(image).astype(np.float32)
        array -= array.mean(dtype=np.float64)
        array /= array.std(dtype=np.float64)
        slices = array.reshape(-1, *array.shape[-2:])
        levels = np.empty((*slices.shape, RATERS + 1), np.float32)
        probability = np.empty(slices.shape, np.float32)
        with torch.no_grad():
            for number, one in enumerate(slices):
                part = torch.from_numpy(one)[None, None].contiguous(memory_format=memory)
                maps = torch.softmax(twin(part), 1)[0]
                levels[number] = maps.permute(1, 2, 0).numpy()
                probability[number] = (maps * share).sum(0).numpy()
        maps = {"levels": levels.reshape(*array.shape, -1), "prob": probability.reshape(array.shape),
                "mask": (probability >= .5).astype(np.uint8).reshape(array.shape)}
        for name, values in maps.items():
            written = sitk.GetImageFromArray(values, isVector=name == "levels")
            written.CopyInformation(image)
            sitk.WriteImage(written, f"{out}/{stem_of(path)}_{name}{format}", useCompression=True)
    print(json.dumps({"seconds": time.perf_counter() - begin}))


def stem_of(path):
    return pathlib.Path(path).name.split(".")[0]


# A process begins with the largest memory of the one that started it: this one, which has PyTorch. So a small one is between.
STARTER = """
import json, os, subprocess, sys, time
begin = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps([time.perf_counter() - begin, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]))
"""


def measured(command, **environment):
    """Seconds from start to end, peak bytes, and the last line that was printed."""
    command = [str(word) for word in command]
    result = subprocess.run([sys.executable, "-S", "-c", STARTER, *command], stdout=subprocess.PIPE, text=True, check=True,
                            env={**os.environ, **environment})
    *lines, last = result.stdout.strip().splitlines()
    seconds, peak, status = json.loads(last)
    if status:
        raise SystemExit(f"{command[0]} failed.")
    return seconds, peak, lines[-1:]


def some_image(shape, seed):
    """Smooth, with noise."""
    import numpy as np

    random = np.random.default_rng(seed)
    axes = np.meshgrid(*(np.linspace(0, 1, n, dtype=np.float32) for n in shape), indexing="ij", sparse=True)
    image = random.normal(0, 12, shape).astype(np.float32)
    for _ in range(4):
        wave = sum(float(f) * axis for f, axis in zip(random.uniform(-25, 25, len(shape)), axes, strict=True))
        image += 40 * np.cos(wave + float(random.uniform(0, 6)))
    return image


def write_inputs(folder, options):
    """The works: name, files, output format and side of a slice."""
    import numpy as np
    import SimpleITK as sitk

    (folder / "images").mkdir()
    pictures = []
    for number in range(options.images):
        array = np.clip(some_image((options.size, options.size), number) + 120, 0, 255).astype(np.uint8)
        pictures.append(str(folder / "images" / f"i{number:03d}.png"))
        sitk.WriteImage(sitk.GetImageFromArray(array), pictures[-1])
    works = [(f"{options.images} images {options.size}²", pictures, ".nrrd", options.size)] if pictures else []
    if options.volume:
        x, y, z = options.volume
        volume = sitk.GetImageFromArray(np.round(some_image((z, y, x), 1)).astype(np.int16))
        volume.SetSpacing((0.8, 0.8, 2.5))
        volume.SetOrigin((-120, -90, 35))
        (folder / "volume").mkdir()
        path = folder / "volume" / "v.nii.gz"
        sitk.WriteImage(volume, str(path), useCompression=True)
        works.append((f"volume {x} × {y} × {z}", [str(path)], ".nii.gz", max(x, y)))
    return works


def write_model(path, arch):
    import net_twins
    from safetensors.torch import save_file

    save_file(net_twins.fill(net_twins.make(arch, 1, RATERS + 1)).state_dict(), path, metadata={
        "arch": arch, "channels": "1", "raters": json.dumps([f"R{k + 1}" for k in range(RATERS)]),
        "normalization": '{"kind": "zscore"}'})


def compare(name, ours, theirs, images, format):
    """Ends the program unless the maps are the same: the mask but for voxels near its threshold."""
    import numpy as np
    import SimpleITK as sitk

    for path in images:
        maps = {}
        for kind in MAPS:
            pair = [sitk.ReadImage(f"{folder}/{stem_of(path)}_{kind}{format}") for folder in (ours, theirs)]
            if not np.allclose(pair[0].GetOrigin(), pair[1].GetOrigin()) or not np.allclose(pair[0].GetSpacing(), pair[1].GetSpacing()):
                raise SystemExit(f"{name}: {stem_of(path)}_{kind} lies elsewhere")
            maps[kind] = [sitk.GetArrayViewFromImage(image).reshape(-1) for image in pair]
            if kind != "mask" and not np.abs(maps[kind][0] - maps[kind][1]).max() < 1e-3:
                raise SystemExit(f"{name}: {stem_of(path)}_{kind} differs by {np.abs(maps[kind][0] - maps[kind][1]).max():.1e}")
        other = maps["mask"][0] != maps["mask"][1]
        if other.any() and not np.abs(maps["prob"][0][other] - .5).max() < 1e-3:
            raise SystemExit(f"{name}: {stem_of(path)}_mask differs")


def bytes_in(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


def bench(folder, work, model, options):
    name, images, format, side = work
    program = pathlib.Path(os.environ["RCN_BUILD"]) / "bin" / "rater-consensus"
    rows = {}
    for turn in range(options.repeats):
        out = folder / "ours"
        out.mkdir(exist_ok=True)
        row = measured([program, "predict", "--model", model, "--image", pathlib.Path(images[0]).parent if len(images) > 1 else images[0],
                        "-o", out, "--format", format, "--readout", "expected", "--tile", side, "--threads", options.threads, "--quiet"])
        rows.setdefault("ours", []).append((row[0], row[0], row[1], bytes_in(out)))
        for layout in ("eager", "channels_last"):
            theirs = folder / layout
            theirs.mkdir(exist_ok=True)
            words = dict(model=str(model), images=images, out=str(theirs), format=format, arch=options.arch, threads=options.threads,
                         layout=layout)
            # The list of files may be longer than a command line takes.
            (folder / "peer.json").write_text(json.dumps(words))
            row = measured([sys.executable, __file__, "--peer", folder / "peer.json"])
            rows.setdefault(layout, []).append((row[0], json.loads(row[2][0])["seconds"], row[1], bytes_in(theirs)))
            if turn == 0:
                compare(name, out, theirs, images, format)
    best = {label: min(row) for label, row in rows.items()}
    fastest = min((label for label in best if label != "ours"), key=lambda label: best[label])
    for label, (seconds, inner, peak, size) in best.items():
        ratios = ["", "", ""]
        if label == "ours":
            other = best[fastest]
            ratios = [f"{other[0] / seconds:.2f}", f"{other[1] / seconds:.2f}", f"{peak / other[2]:.2f}"]
        print(f"| {name} | {label} | {seconds:.2f} | {ratios[0]} | {inner:.2f} | {ratios[1]} | {peak / 1e6:.0f} | {ratios[2]} |"
              f" {size / 1e6:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100, help="how many pictures; 0: none")
    parser.add_argument("--size", type=int, default=256, help="of a picture, a multiple of 32")
    parser.add_argument("--volume", default="256,256,60", help="X,Y,Z; X and Y are multiples of 32; empty: none")
    parser.add_argument("--full", action="store_true", help="100 pictures of 512 x 512 and a volume of 512 x 512 x 300")
    parser.add_argument("--arch", default="fpn-resnet18")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=1, help="the fastest of so many is shown")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(**json.loads(pathlib.Path(options.peer).read_text()))
        return
    if options.full:
        options.images, options.size, options.volume = 100, 512, "512,512,300"
    options.volume = [int(n) for n in options.volume.split(",") if n]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = folder / "m.safetensors"
        write_model(model, options.arch)
        print(f"{options.arch}, {options.threads} threads; from files to compressed maps on disk\n")
        print("| work | engine | s | ratio | s without imports | ratio | peak MB | ratio | MB written |\n|---|---|---|---|---|---|---|---|---|")
        for work in write_inputs(folder, options):
            bench(folder, work, model, options)


if __name__ == "__main__":
    main()
