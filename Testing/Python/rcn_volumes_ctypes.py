# SPDX-License-Identifier: Apache-2.0
"""rcn_volume from Python; see rcn_ctypes.py."""
import ctypes as ct

import numpy as np

import rcn_ctypes


class Volume(ct.Structure):
    _fields_ = [("raters", ct.c_int), ("binomial", ct.c_int), ("expected", ct.c_double), ("at_least", ct.c_double * 64)]


def of(volumes):
    """V_1 ... V_K as given."""
    return Volume(len(volumes), 0, float(np.mean(volumes)), (ct.c_double * 64)(*volumes))


def predict(lib, ctx, p, raters):
    """Of a float32 map [voxels] or levels [voxels, raters + 1]."""
    image = rcn_ctypes.image(lib, p)
    image.components, image.geometry = p.shape[1] if p.ndim == 2 else 1, lib.rcn_geometry_make(len(p), 1, 1)
    out = Volume()
    ctx.check(lib.rcn_volume_predict(ct.byref(out), ctx.handle, ct.byref(image), raters))
    return out


def score(lib, volume, x):
    lib.rcn_volume_score.restype = ct.c_double
    return lib.rcn_volume_score(ct.byref(volume), ct.c_double(x))


def crps(lib, volume, x):
    lib.rcn_volume_crps.restype = ct.c_double
    return lib.rcn_volume_crps(ct.byref(volume), ct.c_double(x))


def curvas_crps(lib, expected, volumes):
    lib.rcn_volume_curvas_crps.restype = ct.c_double
    return lib.rcn_volume_curvas_crps(ct.c_double(expected), (ct.c_double * len(volumes))(*volumes), len(volumes))


def quantile(lib, ctx, scores, level):
    """Of scores [cases, raters]."""
    flat = np.ascontiguousarray(scores, np.float64).ravel()
    units = np.repeat(np.arange(len(scores), dtype=np.int32), scores.shape[1])
    out = ct.c_double()
    ctx.check(lib.rcn_volume_quantile(ct.byref(out), ctx.handle, ct.c_void_p(flat.ctypes.data), ct.c_void_p(units.ctypes.data),
                                      ct.c_int64(flat.size), ct.c_double(level)))
    return out.value


def interval(lib, volume, q):
    low, high = ct.c_double(), ct.c_double()
    lib.rcn_volume_interval(ct.byref(low), ct.byref(high), ct.byref(volume), ct.c_double(q))
    return low.value, high.value
