# SPDX-License-Identifier: Apache-2.0
"""Calibration of 2^25 voxels x 5 raters, side by side with NumPy, torchmetrics and scikit-learn.

./run bench calib [--small]

Every measurement runs in a process of its own, on the same arrays; answers are compared before times are. Memory is
what a process held at most beyond what it was given. Neighboring voxels are unrelated here, which is the hardest case
for counting in tables.
"""
import argparse
import ctypes as ct
import os
import pathlib
import pickle
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Python"))
import rcn_calib_ctypes as calib  # noqa: E402
import rcn_ctypes  # noqa: E402

BINS = 15


def memory(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def measure(function, repeats):
    """(answer, best seconds, processor seconds, peak extra bytes) of function() in a child process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run = function()  # imports and handles are not timed
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")
            before, seconds, processor = memory("VmRSS"), [], []
            for _ in range(repeats):
                start, cpu = time.perf_counter(), time.process_time()
                answer = run()
                seconds.append(time.perf_counter() - start)
                processor.append(time.process_time() - cpu)
            result = (answer, min(seconds), min(processor), max(0, memory("VmHWM") - before))
        except Exception as error:  # shown by the parent
            result = error
        with os.fdopen(write, "wb") as f:
            pickle.dump(result, f)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        data = f.read()
    os.waitpid(child, 0)
    if not data:
        raise MemoryError(f"{function.__name__} was killed")
    result = pickle.loads(data)
    if isinstance(result, Exception):
        raise result
    return result


def core_figures(p, masks, pack):
    def setup():
        lib = rcn_ctypes.library()
        ctx = rcn_ctypes.Context(lib, 0)
        packed = None if pack else calib.make_case(lib, ctx, p, masks)

        def run():
            case = calib.make_case(lib, ctx, p, masks) if pack else packed
            sums = calib.make_sums(lib, ctx, case, len(masks), BINS)
            out = calib.figures_of(lib, sums)
            lib.rcn_calib_destroy(sums)
            if pack:
                lib.rcn_votes_destroy(ct.c_void_p(case.votes))
            return out["mr_ece"], out["brier"], out["nll"]

        return run

    return setup


def core_auc(p, masks):
    def setup():
        lib = rcn_ctypes.library()
        ctx = rcn_ctypes.Context(lib, 0)
        case = calib.make_case(lib, ctx, p, masks)
        return lambda: calib.auc(lib, ctx, case, len(masks)).reference

    return setup


def numpy_figures(p, masks):
    def run():
        index = np.minimum((p * BINS).astype(np.intp), BINS - 1)
        count = np.bincount(index, minlength=BINS) * len(masks)
        total = np.bincount(index, p, minlength=BINS) * len(masks)
        votes = masks.sum(0, dtype=np.uint8)
        marked = np.bincount(index, votes, minlength=BINS)
        ece = np.abs(total - marked).sum() / count.sum()
        p64 = p.astype(np.float64)
        brier = np.mean([np.mean((p64 - m) ** 2) for m in masks])
        q = np.clip(p64, 1e-7, 1 - 1e-7)
        mean = votes / len(masks)
        return ece, brier, -np.mean(mean * np.log(q) + (1 - mean) * np.log1p(-q))

    return lambda: run


def torch_figures(p, masks):
    def setup():
        import torch
        import torchvision_names  # noqa: F401
        from torchmetrics.functional.classification import binary_calibration_error

        def run():
            # In float64: float32 counters stop at 2^24, and the answer is wrong.
            pairs = torch.from_numpy(p).double().repeat(len(masks))
            votes = torch.from_numpy(masks).reshape(-1)
            ece = binary_calibration_error(pairs, votes, n_bins=BINS, norm="l1", validate_args=False)
            brier = torch.mean((pairs - votes) ** 2)
            nll = torch.nn.functional.binary_cross_entropy(pairs.clamp(1e-7, 1 - 1e-7), votes.double())
            return float(ece), float(brier), float(nll)

        return run

    return setup


def sklearn_auc(p, masks):
    def setup():
        from sklearn.metrics import roc_auc_score

        majority = masks.sum(0, dtype=np.uint8) >= len(masks) / 2
        return lambda: roc_auc_score(majority, p)

    return setup


def core_intervals(cases):
    def setup():
        lib = rcn_ctypes.library()
        ctx = rcn_ctypes.Context(lib, 0)
        rng = np.random.default_rng(1)
        handles = (ct.c_void_p * cases)()
        for i in range(cases):
            p = rng.random((64, 64), dtype=np.float32)
            masks = (rng.random((5, 64, 64)) < p).astype(np.uint8)
            case = calib.make_case(lib, ctx, p, masks)
            handles[i] = calib.make_sums(lib, ctx, case, 5, BINS)
            lib.rcn_votes_destroy(ct.c_void_p(case.votes))
        out = (calib.Interval * calib.FIGURES)()

        def run():
            ctx.check(lib.rcn_interval_compute(out, ctx.handle, handles, None, 1, ct.c_int64(cases), None))
            return out[0].units

        return run

    return setup


def line(name, seconds, cpu, extra, against=None, target=None):
    text = f"  {name:<34}{seconds:9.3f} s {cpu:9.3f} s {extra / 2**20:7.0f} MB"
    if against:
        text += f"   {against / seconds:7.1f} x"
        if target:
            text += f"  (target {target} x: {'met' if against / seconds >= target else 'MISSED'})"
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="2^21 voxels instead of 2^25")
    count = 2**21 if parser.parse_args().small else 2**25
    if rcn_ctypes.library() is None:
        sys.exit("bench: the core's shared library was not built (target rcn_shared)")
    rng = np.random.default_rng(0)
    p = rng.random(count, dtype=np.float32).reshape(-1, 2**10)
    masks = np.stack([(rng.random(p.shape, dtype=np.float32) < p).astype(np.uint8) for _ in range(5)])
    flat, flat_masks = p.reshape(-1), masks.reshape(5, -1)
    print(f"{count} voxels x 5 raters, {os.cpu_count()} cores; time, processor time, peak extra memory")
    print(f"  (load {os.getloadavg()[0]:.1f}: where others use the machine, only processor times can be compared)")

    print("MR-ECE + Brier + NLL")
    ours, seconds, cpu, extra = measure(core_figures(p, masks, False), 3)
    _, packed_seconds, packed_cpu, packed_extra = measure(core_figures(p, masks, True), 3)
    for name, function, repeats in (("NumPy", numpy_figures, 2), ("torchmetrics and PyTorch", torch_figures, 1)):
        theirs, their_seconds, their_cpu, their_extra = measure(function(flat, flat_masks), repeats)
        assert np.allclose(ours, theirs, rtol=0, atol=1e-9), (name, ours, theirs)
        line(name, their_seconds, their_cpu, their_extra)
        line("  ours, all figures", seconds, cpu, extra, their_seconds, 20)
        line("  ours, packing the masks too", packed_seconds, packed_cpu, packed_extra, their_seconds)

    print("AUC against the majority, exact")
    ours, seconds, cpu, extra = measure(core_auc(p, masks), 3)
    theirs, their_seconds, their_cpu, their_extra = measure(sklearn_auc(flat, flat_masks), 1)
    assert abs(ours - theirs) < 1e-12, (ours, theirs)
    line("scikit-learn roc_auc_score", their_seconds, their_cpu, their_extra)
    line("  ours, and over all pairs too", seconds, cpu, extra, their_seconds, 10)
    share = extra / their_extra
    print(f"  memory: {share:.2f} of scikit-learn's (target 0.25: {'met' if share <= 0.25 else 'MISSED'})")

    units, seconds, cpu, extra = measure(core_intervals(200), 3)
    line(f"intervals of all figures over {units} cases", seconds, cpu, extra)
    print(f"  (target 1 s: {'met' if seconds < 1 else 'MISSED'})")


if __name__ == "__main__":
    main()
