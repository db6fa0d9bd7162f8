# SPDX-License-Identifier: Apache-2.0
"""The C core from Python, for tests and benchmarks: librcn-testing under $RCN_BUILD/lib."""
import ctypes as ct
import os
import pathlib

import numpy as np

RCN_FLOAT32, RCN_UINT8 = 8, 0


class Geometry(ct.Structure):
    _fields_ = [("dimension", ct.c_int), ("size", ct.c_int64 * 3), ("spacing", ct.c_double * 3),
                ("origin", ct.c_double * 3), ("direction", ct.c_double * 9), ("unit", ct.c_int)]


class Image(ct.Structure):
    _fields_ = [("data", ct.c_void_p), ("type", ct.c_int), ("components", ct.c_int), ("geometry", Geometry)]


class Mask(ct.Structure):
    _fields_ = [("image", Image), ("component", ct.c_int), ("values", ct.c_void_p),
                ("value_count", ct.c_int), ("unanswered", ct.c_void_p)]


def library():
    """The loaded library, or None where it was not built."""
    folder = pathlib.Path(os.environ.get("RCN_BUILD", "build")) / "lib"
    for path in sorted(folder.glob("*rcn-testing.*")):
        lib = ct.CDLL(str(path))
        lib.rcn_context_error.restype = ct.c_char_p
        lib.rcn_status_name.restype = ct.c_char_p
        lib.rcn_context_peak_bytes.restype = ct.c_size_t
        lib.rcn_context_bytes.restype = ct.c_size_t
        lib.rcn_geometry_make.restype = Geometry
        lib.rcn_geometry_make.argtypes = [ct.c_int64] * 3
        return lib
    return None


class Context:
    """A context; check(status) turns a failure into an exception with its sentence."""

    def __init__(self, lib, threads=0):
        class Options(ct.Structure):
            _fields_ = [("threads", ct.c_int), ("allocator", ct.c_void_p * 3), ("progress", ct.c_void_p),
                        ("payload", ct.c_void_p)]

        self.lib, self.handle = lib, ct.c_void_p()
        options = Options(threads=threads)
        assert lib.rcn_context_create(ct.byref(self.handle), ct.byref(options)) == 0

    def check(self, status):
        if status != 0:
            name = self.lib.rcn_status_name(status).decode()
            raise RuntimeError(f"{name}: {self.lib.rcn_context_error(self.handle).decode()}")

    def close(self):
        self.lib.rcn_context_destroy(self.handle)


def image(lib, array, components=1):
    """A view of a contiguous array, (z, y, x[, components]) or flat; keep the array alive."""
    shape = array.shape[:-1] if components > 1 else array.shape
    size = ([1, 1, 1] + list(shape))[-3:]
    assert array.flags.c_contiguous
    kind = {np.dtype(np.float32): RCN_FLOAT32, np.dtype(np.uint8): RCN_UINT8}[array.dtype]
    return Image(array.ctypes.data, kind, components, lib.rcn_geometry_make(size[2], size[1], size[0]))


def votes(lib, ctx, masks):
    """rcn_votes of masks [raters, ...] in uint8; destroy it with lib.rcn_votes_destroy."""
    views = (Mask * len(masks))(*[Mask(image(lib, m), 0, None, 0, None) for m in masks])
    out = ct.c_void_p()
    ctx.check(lib.rcn_votes_from_masks(ct.byref(out), ctx.handle, views, len(masks)))
    return out
