# SPDX-License-Identifier: Apache-2.0
"""rcn_phantom and rcn_agreement from Python; see rcn_ctypes.py."""
import ctypes as ct

import numpy as np

import rcn_ctypes

MAX_RATERS = 64


class PhantomOptions(ct.Structure):
    _fields_ = [("size", ct.c_int64 * 3), ("raters", ct.c_int), ("lesions", ct.c_int), ("seed", ct.c_uint64),
                ("noise", ct.c_double), ("disagreement", ct.c_double)]


class Rater(ct.Structure):
    _fields_ = [("present", ct.c_int), ("voxels", ct.c_int64)] + [
        (name, ct.c_double) for name in ("volume_ml", "dice_to_others", "sensitivity", "specificity")] + [
        ("others_split_voxels", ct.c_int64), ("staple_sensitivity", ct.c_double), ("staple_specificity", ct.c_double)]


class Pair(ct.Structure):
    _fields_ = [(name, ct.c_double) for name in ("dice", "jaccard", "kappa", "hausdorff95_mm", "mean_surface_mm")]


class Overall(ct.Structure):
    _fields_ = [(name, ct.c_double) for name in ("fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "mean_entropy")]


class Agreement(ct.Structure):
    _fields_ = [("raters", ct.c_int), ("present_count", ct.c_int), ("rater", Rater * MAX_RATERS),
                ("pair", ct.POINTER(Pair)), ("whole", Overall), ("on_union", Overall), ("mean_dice", ct.c_double),
                ("level_voxels", ct.c_int64 * (MAX_RATERS + 1)), ("voxel_ml", ct.c_double),
                ("union_voxels", ct.c_int64), ("majority_voxels", ct.c_int64),
                ("intersection_voxels", ct.c_int64), ("disputed_voxels", ct.c_int64)]


def phantom_masks(lib, ctx, shape, raters, seed=1, lesions=8, disagreement=1.0):
    """uint8 [raters, z, y, x]"""
    z, y, x = shape
    image = np.empty(shape, np.float32)
    masks = np.empty((raters, *shape), np.uint8)
    options = PhantomOptions((ct.c_int64 * 3)(x, y, z), raters, lesions, seed, 0.12, disagreement)
    ctx.check(lib.rcn_phantom_make(ct.c_void_p(image.ctypes.data), ct.c_void_p(masks.ctypes.data), ctx.handle,
                                   ct.byref(options)))
    return masks


def agreement(lib, ctx, masks):
    """(pairwise Dice, pairwise kappa, Fleiss' kappa, level histogram), from masks in memory."""
    votes = rcn_ctypes.votes(lib, ctx, masks)
    out = ct.POINTER(Agreement)()
    ctx.check(lib.rcn_agreement_create(ct.byref(out), ctx.handle, votes))
    a, k = out.contents, len(masks)
    pairs = [[a.pair[i * k + j] for j in range(k)] for i in range(k)]
    dice = np.array([[p.dice for p in row] for row in pairs])
    kappa = np.array([[p.kappa for p in row] for row in pairs])
    fleiss, levels = a.whole.fleiss_kappa, np.array(a.level_voxels[:k + 1])
    lib.rcn_agreement_destroy(out, ctx.handle)
    lib.rcn_votes_destroy(votes)
    return dice, kappa, fleiss, levels


GAPS = tuple(f"gap{r}" for r in range(4))


def rater_figures(lib, ctx, masks):
    """Figures of one case by name, with surfaces, as agree --data averages them; "over" belongs to the bias in percent,
    gap0 ... are each rater's Dice with the others minus theirs among themselves."""
    votes = rcn_ctypes.votes(lib, ctx, masks)
    out = ct.POINTER(Agreement)()
    ctx.check(lib.rcn_agreement_create(ct.byref(out), ctx.handle, votes))
    ctx.check(lib.rcn_agreement_measure_surfaces(out, ctx.handle, votes))
    a, k = out.contents, len(masks)
    pairs = {(i, j): a.pair[i * k + j] for i in range(k) for j in range(i + 1, k)}

    def mean(name, chosen):
        values = [getattr(p, name) for key, p in pairs.items() if chosen(key)]
        values = [v for v in values if not np.isnan(v)]
        return np.mean(values) if values else np.nan

    others = np.mean([a.rater[r].voxels for r in range(1, k)])
    row = {"dice": a.mean_dice, "kappa": mean("kappa", lambda key: True), "fleiss": a.whole.fleiss_kappa,
           "alpha": a.whole.krippendorff_alpha, "hd95": mean("hausdorff95_mm", lambda key: True),
           "staple": a.rater[0].staple_sensitivity, "bias": a.rater[0].voxels - others,
           "bias %": 100 * (a.rater[0].voxels - others), "over": others}
    for r, name in enumerate(GAPS[:k]):
        row[name] = mean("dice", lambda key: r in key) - mean("dice", lambda key: r not in key)
    row["gap"] = row[GAPS[0]]
    lib.rcn_agreement_destroy(out, ctx.handle)
    lib.rcn_votes_destroy(votes)
    return row


def holm(lib, p_values):
    values = (ct.c_double * len(p_values))(*p_values)
    lib.rcn_holm(values, len(p_values))
    return list(values)
