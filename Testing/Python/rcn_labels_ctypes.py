# SPDX-License-Identifier: Apache-2.0
"""Votes on several structures, their fusion and agreement, from Python; see rcn_ctypes.py."""
import ctypes as ct
import json

import numpy as np

import rcn_agreement_ctypes
import rcn_ctypes
from rcn_testing import write_nrrd

MAX_STRUCTURES, NO_ANSWER = 32, 255


class LabelMap(ct.Structure):
    _fields_ = [("image", rcn_ctypes.Image), ("component", ct.c_int), ("values", ct.c_void_p), ("structures", ct.c_void_p),
                ("value_count", ct.c_int), ("unanswered", ct.c_void_p)]


class FusionOptions(ct.Structure):
    _fields_ = [("method", ct.c_int), ("tie", ct.c_int), ("sigma", ct.c_double), ("seed", ct.c_uint64),
                ("staple_output", ct.c_int), ("staple_confidence", ct.c_double), ("staple_tolerance", ct.c_double),
                ("staple_iterations", ct.c_int), ("staple_margin", ct.c_int64), ("simple_alpha", ct.c_double)]


class LabelStaple(ct.Structure):
    _fields_ = [("prior", ct.c_double * (MAX_STRUCTURES + 1)), ("iterations", ct.c_int), ("converged", ct.c_int),
                ("region_voxels", ct.c_int64), ("undecided_voxels", ct.c_int64)]


class LabelAgreement(ct.Structure):
    _fields_ = [("whole", rcn_agreement_ctypes.Overall), ("on_union", rcn_agreement_ctypes.Overall)]


def pointer(array):
    return ct.c_void_p(array.ctypes.data)


def phantom(lib, ctx, shape, raters, seed=1, disagreement=1.0):
    """An image, float32 [z, y, x], and labels, uint8 [raters, z, y, x]: three structures that touch."""
    z, y, x = shape
    image = np.empty(shape, np.float32)
    labels = np.empty((raters, *shape), np.uint8)
    options = rcn_agreement_ctypes.PhantomOptions((ct.c_int64 * 3)(x, y, z), raters, 1, seed, 0.12, disagreement)
    ctx.check(lib.rcn_phantom_make_labels(pointer(image), pointer(labels), ctx.handle, ct.byref(options)))
    return image, labels


def phantom_labels(lib, ctx, shape, raters, seed=1, disagreement=1.0):
    return phantom(lib, ctx, shape, raters, seed, disagreement)[1]


def write_structures(lib, folder, shape, raters="ABCDE", cases=1, spacing=(1, 1, 1)):
    """The data list of cases with three structures: an image and a label map of each rater."""
    entries = []
    ctx = rcn_ctypes.Context(lib)
    for number in range(cases):
        image, labels = phantom(lib, ctx, shape, len(raters), seed=number + 1)
        entry = {"id": f"c{number}", "image": f"c{number}.nrrd", "label": {}}
        write_nrrd(folder / entry["image"], image, spacing=spacing)
        for name, array in zip(raters, labels):
            entry["label"][name] = f"c{number}_{name}.nrrd"
            write_nrrd(folder / entry["label"][name], array, spacing=spacing)
        entries.append(entry)
    ctx.close()
    path = folder / "structures.json"
    path.write_text(json.dumps({"raters": list(raters), "structures": {"left lobe": 1, "right lobe": 2, "vessel": 3},
                                "training": entries}), encoding="utf-8")
    return path


def votes(lib, ctx, labels, structures):
    """rcn_votes of label maps [raters, ...] in uint8, 255 where a rater did not answer and None for one who never did;
    destroy it with lib.rcn_votes_destroy."""
    values = np.arange(1, structures + 1, dtype=np.int64)
    numbers = np.arange(1, structures + 1, dtype=np.uint8)
    no_answer = ct.c_int64(NO_ANSWER)
    out = ct.c_void_p()
    first = rcn_ctypes.image(lib, next(m for m in labels if m is not None))
    ctx.check(lib.rcn_votes_create_labels(ct.byref(out), ctx.handle, ct.byref(first.geometry), len(labels), structures))
    for rater, array in enumerate(labels):
        if array is None:
            continue
        view = LabelMap(rcn_ctypes.image(lib, array), 0, values.ctypes.data, numbers.ctypes.data, structures,
                        ct.addressof(no_answer))
        ctx.check(lib.rcn_votes_add_labels(out, ctx.handle, rater, ct.byref(view), 1, None))
    return out


def plurality(lib, ctx, labels, structures):
    held = votes(lib, ctx, labels, structures)
    out = np.empty_like(next(m for m in labels if m is not None))
    ctx.check(lib.rcn_plurality(pointer(out), ctx.handle, held))
    lib.rcn_votes_destroy(held)
    return out


def staple(lib, ctx, labels, structures, tolerance=1e-7, iterations=100000):
    """(labels, confusion [raters, given, true], result)"""
    held = votes(lib, ctx, labels, structures)
    out = np.empty_like(next(m for m in labels if m is not None))
    confusion = np.empty((len(labels), structures + 1, structures + 1))
    result = LabelStaple()
    options = FusionOptions(5, 0, 1.0, 0, 0, 1.0, tolerance, iterations, -1, 1.0)
    ctx.check(lib.rcn_label_staple_make(pointer(out), pointer(confusion), ct.byref(result), ctx.handle, held,
                                        ct.byref(options)))
    lib.rcn_votes_destroy(held)
    return out, confusion, result


def agreement(lib, ctx, labels, structures):
    """(LabelAgreement, Cohen's kappa of each pair)"""
    held = votes(lib, ctx, labels, structures)
    out = LabelAgreement()
    kappa = np.empty((len(labels), len(labels)))
    ctx.check(lib.rcn_agreement_labels(ct.byref(out), pointer(kappa), ctx.handle, held))
    lib.rcn_votes_destroy(held)
    return out, kappa


def structure_agreement(lib, ctx, labels, structures, structure):
    """(mean Dice, Fleiss' kappa, Krippendorff's alpha) of one structure against the rest."""
    held, alone = votes(lib, ctx, labels, structures), ct.c_void_p()
    ctx.check(lib.rcn_votes_select(ct.byref(alone), ctx.handle, held, structure))
    out = ct.POINTER(rcn_agreement_ctypes.Agreement)()
    ctx.check(lib.rcn_agreement_create(ct.byref(out), ctx.handle, alone))
    found = out.contents.mean_dice, out.contents.whole.fleiss_kappa, out.contents.whole.krippendorff_alpha
    lib.rcn_agreement_destroy(out, ctx.handle)
    lib.rcn_votes_destroy(alone)
    lib.rcn_votes_destroy(held)
    return found
