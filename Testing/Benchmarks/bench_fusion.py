# SPDX-License-Identifier: Apache-2.0
"""./run bench fusion: STAPLE against ITK's own filters, agreement against NumPy, and how time grows.

Both sides get the same masks in memory and are checked to give the same answer before any time is
printed. Nothing here fails because a machine is slow; it fails when answers differ.
"""
import json
import os
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "Python"))
import rcn_agreement_ctypes  # noqa: E402
import rcn_ctypes  # noqa: E402
import rcn_labels_ctypes  # noqa: E402

BUILD = os.environ["RCN_BUILD"]
THREADS = os.cpu_count()


def staple(x, y, z, raters, threads=THREADS, *more):
    out = subprocess.run([os.path.join(BUILD, "bin", "bench_staple"), *map(str, (x, y, z, raters, threads)), *more],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def verdict(value, target, smaller=False):
    good = value <= target if smaller else value >= target
    return f"{'at most' if smaller else 'at least'} {target:g}: {'yes' if good else 'NO'}"


def bench_staple():
    print(f"STAPLE, 256 x 256 x 160 voxels, 5 raters, masks in memory -> posterior in memory ({THREADS} threads; ITK's "
          "filter has one)")
    r = staple(256, 256, 160, 5)
    assert r["largest_difference"] < 1e-6, r
    assert r["iterations"] == r["itk_iterations"], r
    voxels = 256 * 256 * 160
    ratio = r["itk_seconds"] / r["seconds"]
    print(f"  same answer: largest difference {r['largest_difference']:.1e} after {r['iterations']} iterations on both sides")
    print(f"  time    RaterConsensus {r['seconds']:.4f} s   ITK {r['itk_seconds']:.2f} s   ratio {ratio:.0f}   "
          f"({verdict(ratio, 100)})")
    ours = r["extra_bytes"] - 4 * voxels
    theirs = r["itk_extra_bytes"] - 4 * voxels
    print("  memory beyond the masks (growth of the resident set):")
    print(f"    posterior as votes + table      {r['packed_extra_bytes'] / 1e6:7.1f} MB   ITK {r['itk_extra_bytes'] / 1e6:.1f} MB   "
          f"share {r['packed_extra_bytes'] / r['itk_extra_bytes']:.2f}   "
          f"({verdict(r['packed_extra_bytes'] / r['itk_extra_bytes'], 0.2, True)})")
    print(f"    posterior as a float32 map      {r['extra_bytes'] / 1e6:7.1f} MB   ITK {r['itk_extra_bytes'] / 1e6:.1f} MB (its map is float64)   "
          f"share {r['extra_bytes'] / r['itk_extra_bytes']:.2f}")
    print(f"    the same without that map itself {ours / 1e6:6.1f} MB   ITK {theirs / 1e6:.1f} MB   share {ours / theirs:.2f}   "
          f"({verdict(ours / theirs, 0.2, True)})")


def bench_growth():
    print("\nSTAPLE: time grows with voxels, barely with raters (nanoseconds per voxel)")
    print("  voxels          5 raters")
    for side in (64, 128, 256, 400):
        r = staple(side, side, side, 5, THREADS, "ours-only")
        print(f"  {side}^3 = {side ** 3:9d}   {1e9 * r['seconds'] / side ** 3:6.2f}")
    print("  raters          256 x 256 x 64 voxels")
    for raters in (2, 4, 8, 12, 16):
        r = staple(256, 256, 64, raters, THREADS, "ours-only")
        print(f"  {raters:2d}               {1e9 * r['seconds'] / (256 * 256 * 64):6.2f}")


def numpy_agreement(masks):
    """The figures a person would compute with NumPy: pairwise Dice and kappa, Fleiss, levels."""
    k = len(masks)
    flat = [m.reshape(-1).astype(bool) for m in masks]
    n = flat[0].size
    sums = [int(f.sum()) for f in flat]
    dice, kappa = np.ones((k, k)), np.ones((k, k))
    for a in range(k):
        for b in range(a + 1, k):
            both = int(np.logical_and(flat[a], flat[b]).sum())
            dice[a, b] = dice[b, a] = 2 * both / (sums[a] + sums[b])
            observed = (n - sums[a] - sums[b] + 2 * both) / n
            expected = (sums[a] * sums[b] + (n - sums[a]) * (n - sums[b])) / n ** 2
            kappa[a, b] = kappa[b, a] = (observed - expected) / (1 - expected)
    votes = np.sum(masks, axis=0, dtype=np.uint8).reshape(-1)
    levels = np.bincount(votes, minlength=k + 1)
    c = np.arange(k + 1)
    agreement = ((c * (c - 1) + (k - c) * (k - c - 1)) * levels).sum() / (n * k * (k - 1))
    share = (c * levels).sum() / (n * k)
    chance = share ** 2 + (1 - share) ** 2
    return dice, kappa, (agreement - chance) / (1 - chance), levels


def bench_agreement():
    shape = (160, 256, 256)
    lib = rcn_ctypes.library()
    ctx = rcn_ctypes.Context(lib)
    masks = rcn_agreement_ctypes.phantom_masks(lib, ctx, shape, raters=5, seed=3)
    print("\nAgreement (pairwise Dice and kappa, Fleiss' kappa, levels), 256 x 256 x 160 voxels, 5 raters")
    best = {}
    for name, run in (("RaterConsensus", lambda: rcn_agreement_ctypes.agreement(lib, ctx, masks)), ("NumPy", lambda: numpy_agreement(masks))):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            answer = run()
            times.append(time.perf_counter() - start)
        best[name] = (min(times), answer)
    ours, theirs = best["RaterConsensus"], best["NumPy"]
    for a, b in zip(ours[1], theirs[1]):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    ratio = theirs[0] / ours[0]
    print("  same answer within 1e-12 (ours also gives STAPLE, Krippendorff, Gwet, leave-one-out and entropy)")
    print(f"  time    RaterConsensus {ours[0]:.4f} s   NumPy {theirs[0]:.3f} s   ratio {ratio:.0f}   ({verdict(ratio, 20)})")


def best_of(times, run):
    """(seconds of the fastest run, its answer)"""
    best = None
    for _ in range(times):
        start = time.perf_counter()
        answer = run()
        seconds = time.perf_counter() - start
        if best is None or seconds < best[0]:
            best = seconds, answer
    return best


def phantom_labels(lib, ctx, shape, raters, structures):
    """Label maps of as many structures: lesions of one phantom after another, later ones on top."""
    labels = np.zeros((raters, *shape), np.uint8)
    for structure in range(1, structures + 1):
        masks = rcn_agreement_ctypes.phantom_masks(lib, ctx, shape, raters, seed=structure, lesions=3)
        np.copyto(labels, np.uint8(structure), where=masks != 0)
    return labels


def bench_label_staple():
    import SimpleITK as sitk
    shape, raters, structures, threshold = (160, 256, 256), 5, 7, 1e-5  # ITK's own threshold
    lib = rcn_ctypes.library()
    ctx = rcn_ctypes.Context(lib)
    labels = phantom_labels(lib, ctx, shape, raters, structures)
    print(f"\nMulti-label STAPLE, 256 x 256 x 160 voxels, 5 raters, {structures + 1} labels, label maps in memory -> labels in "
          f"memory ({THREADS} threads; ITK's filter has one)")
    seconds, (ours, confusion, result) = best_of(5, lambda: rcn_labels_ctypes.staple(lib, ctx, labels, structures, threshold))
    images = [sitk.GetImageFromArray(m) for m in labels]
    itk = sitk.MultiLabelSTAPLEImageFilter()
    itk.SetTerminationUpdateThreshold(threshold)
    itk_seconds, answer = best_of(1, lambda: itk.Execute(images))
    theirs = sitk.GetArrayFromImage(answer)
    decided = theirs <= structures
    assert (ours[decided] == theirs[decided]).all() and (~decided).sum() <= result.undecided_voxels
    difference = max(np.abs(confusion[r].ravel() - np.array(itk.GetConfusionMatrix(r))[:(structures + 1) ** 2]).max()
                     for r in range(raters))
    assert difference < 1e-6, difference
    ratio = itk_seconds / seconds
    print(f"  same labels, confusion matrices within {difference:.1e} after {result.iterations} iterations; "
          f"{result.undecided_voxels} voxels undecided")
    print(f"  time    RaterConsensus {seconds:.4f} s   SimpleITK {itk_seconds:.2f} s   ratio {ratio:.0f}   ({verdict(ratio, 50)})")
    ctx.close()


def bench_votes():
    """What several structures cost, beside one."""
    shape, raters = (160, 256, 256), 5
    voxels = np.prod(shape)
    lib = rcn_ctypes.library()
    print("\nVotes, 256 x 256 x 160 voxels, 5 raters: time, memory that stays, at most (bytes per voxel)")
    for name, structures in (("one structure, masks", 0), ("one structure, labels", 1), ("3 structures", 3), ("7 structures", 7)):
        ctx = rcn_ctypes.Context(lib)
        labels = phantom_labels(lib, ctx, shape, raters, max(structures, 1))
        ctx.close()
        ctx = rcn_ctypes.Context(lib)
        before, kept = lib.rcn_context_bytes(ctx.handle), []

        def pack():
            held = rcn_labels_ctypes.votes(lib, ctx, labels, structures) if structures else rcn_ctypes.votes(lib, ctx, labels)
            kept.append(lib.rcn_context_bytes(ctx.handle) - before)
            lib.rcn_votes_destroy(held)

        seconds, _ = best_of(7, pack)
        most = lib.rcn_context_peak_bytes(ctx.handle) - before
        print(f"  {name:22s} {seconds:.4f} s   {kept[-1] / voxels:.3f}   {most / voxels:.3f}")
        ctx.close()


if __name__ == "__main__":
    bench_staple()
    bench_growth()
    bench_agreement()
    bench_label_staple()
    bench_votes()
