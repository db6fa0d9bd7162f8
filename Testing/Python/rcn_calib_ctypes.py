# SPDX-License-Identifier: Apache-2.0
"""rcn_calib, rcn_auc, rcn_interval and rcn_recalib from Python; see rcn_ctypes.py."""
import ctypes as ct

import numpy as np

import rcn_ctypes

FIGURES = 21


class Case(ct.Structure):
    _fields_ = [("votes", ct.c_void_p), ("prediction", rcn_ctypes.Image), ("region", ct.c_void_p),
                ("reference", ct.c_void_p)]


class Options(ct.Structure):
    _fields_ = [("bins", ct.c_int), ("threshold", ct.c_double), ("readout", ct.c_int), ("at_least", ct.c_int)]


class AucResult(ct.Structure):
    _fields_ = [("reference", ct.c_double), ("pairs", ct.c_double), ("counts", ct.c_int64 * 4)]


class IntervalOptions(ct.Structure):
    _fields_ = [("level", ct.c_double), ("patients", ct.c_void_p)]


class Interval(ct.Structure):
    _fields_ = [(name, ct.c_double) for name in ("value", "error", "low", "high", "p_value")] + [("units", ct.c_int)]


class Recalib(ct.Structure):
    _fields_ = [("method", ct.c_int), ("levels", ct.c_int), ("parameters", ct.c_double * 3), ("knots", ct.c_int),
                ("x", ct.c_double * 256), ("y", ct.c_double * 256), ("pairs", ct.c_int64)]


class Bin(ct.Structure):
    _fields_ = [("lower", ct.c_double), ("upper", ct.c_double), ("count", ct.c_int64), ("confidence", ct.c_double),
                ("frequency", ct.c_double)]


class LevelShare(ct.Structure):
    _fields_ = [("predicted", ct.c_double), ("observed", ct.c_double), ("voxels", ct.c_int64)]


class Kde(ct.Structure):
    _fields_ = [("ece", ct.c_double), ("bandwidth", ct.c_double)]


def figure_names(lib):
    lib.rcn_figure_name.restype = ct.c_char_p
    return [lib.rcn_figure_name(i).decode() for i in range(FIGURES)]


def make_case(lib, ctx, p, masks):
    """A case of a float32 map, or levels [voxels, raters + 1], and uint8 masks [raters, voxels]; keep the arrays alive."""
    image = rcn_ctypes.image(lib, p)
    image.components, image.geometry = p.shape[1] if p.ndim == 2 else 1, lib.rcn_geometry_make(len(p), 1, 1)
    return Case(rcn_ctypes.votes(lib, ctx, masks), image, None, None)


def make_sums(lib, ctx, case, raters, bins=15):
    sums = ct.c_void_p()
    ctx.check(lib.rcn_calib_create(ct.byref(sums), ctx.handle, raters, ct.byref(Options(bins, 0.5, 0, 0))))
    ctx.check(lib.rcn_calib_add(sums, ctx.handle, ct.byref(case)))
    return sums


def figures_of(lib, sums):
    out = (ct.c_double * FIGURES)()
    lib.rcn_calib_figures(out, sums)
    return dict(zip(figure_names(lib), out))


def level_bins(lib, sums, at_least, bins=15):
    """[bins, 3]: voxels, mean of P(y >= t), share of voxels with y >= t."""
    out = (Bin * bins)()
    lib.rcn_calib_level_bins(out, sums, at_least)
    return np.array([[b.count, b.confidence, b.frequency] for b in out])


def level_shares(lib, sums, raters, unsure):
    """[raters + 1, 2]: mean probability of the level, how often it occurs."""
    out = (LevelShare * (raters + 1))()
    lib.rcn_calib_level_shares(out, sums, unsure)
    return np.array([[s.predicted, s.observed] for s in out])


def kde(lib, ctx, *cases):
    out = Kde()
    ctx.check(lib.rcn_calib_kde(ct.byref(out), ctx.handle, (ct.c_void_p * len(cases))(*[c.value for c in cases]), ct.c_int64(len(cases))))
    return out


def figures(lib, ctx, p, masks, bins=15):
    case = make_case(lib, ctx, p, masks)
    sums = make_sums(lib, ctx, case, len(masks), bins)
    out = figures_of(lib, sums)
    lib.rcn_calib_destroy(sums)
    lib.rcn_votes_destroy(ct.c_void_p(case.votes))
    return out


def auc(lib, ctx, case, raters):
    handle, result = ct.c_void_p(), AucResult()
    ctx.check(lib.rcn_auc_create(ct.byref(handle), ctx.handle, raters, 0, 0))
    ctx.check(lib.rcn_auc_add(handle, ctx.handle, ct.byref(case)))
    ctx.check(lib.rcn_auc_compute(ct.byref(result), ctx.handle, handle))
    lib.rcn_auc_destroy(handle)
    return result


def fit(lib, ctx, p, masks, method):
    case = make_case(lib, ctx, p, masks)
    sums, out = make_sums(lib, ctx, case, len(masks)), Recalib()
    ctx.check(lib.rcn_recalib_fit(ct.byref(out), ctx.handle, method, sums))
    lib.rcn_calib_destroy(sums)
    lib.rcn_votes_destroy(ct.c_void_p(case.votes))
    return out


def value(lib, recalib, p):
    lib.rcn_recalib_value.restype = ct.c_double
    lib.rcn_recalib_value.argtypes = [ct.c_void_p, ct.c_double]
    return np.array([lib.rcn_recalib_value(ct.byref(recalib), float(x)) for x in p])
