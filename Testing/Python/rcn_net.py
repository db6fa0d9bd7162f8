# SPDX-License-Identifier: Apache-2.0
"""The C network through ctypes, for tests and benchmarks."""

import ctypes as c
import os
import pathlib

import numpy as np

ARCHS = ["unet", "fpn-resnet18", "fpn-resnet34", "fpn-resnet50", "unet3d"]


class ContextOptions(c.Structure):
    _fields_ = [
        ("threads", c.c_int),
        ("allocator", c.c_void_p * 3),
        ("progress", c.c_void_p),
        ("payload", c.c_void_p),
    ]


class NetOptions(c.Structure):
    _fields_ = [
        ("arch", c.c_int),
        ("channels", c.c_int),
        ("outputs", c.c_int),
        ("width", c.c_int),
        ("depth", c.c_int),
        ("norm", c.c_int),
        ("spacing", c.c_double * 3),
        ("dropout", c.c_double),
    ]


class Parameter(c.Structure):
    _fields_ = [
        ("name", c.c_char * 64),
        ("kind", c.c_int),
        ("dimensions", c.c_int),
        ("shape", c.c_int64 * 5),
        ("count", c.c_int64),
        ("offset", c.c_int64),
    ]


class Batch(c.Structure):
    _fields_ = [("images", c.c_int64), ("size", c.c_int64 * 3)]


def library():
    """The shared library of the build, or None where it has no networks."""
    path = pathlib.Path(os.environ["RCN_BUILD"]) / "lib" / "librcn-testing.so"
    lib = c.CDLL(str(path))
    if not hasattr(lib, "rcn_net_create"):
        return None
    for name in ("rcn_context_error",):
        getattr(lib, name).restype = c.c_char_p
    lib.rcn_net_parameter.restype = c.POINTER(Parameter)
    for name in ("rcn_net_floats", "rcn_net_trained_floats"):
        getattr(lib, name).restype = c.c_int64
    for name in ("rcn_net_edit_values", "rcn_net_values", "rcn_net_gradients"):
        getattr(lib, name).restype = c.POINTER(c.c_float)
    lib.rcn_context_peak_bytes.restype = c.c_size_t
    return lib


def pointer(array):
    return array.ctypes.data_as(c.c_void_p)


class Net:
    def __init__(
        self, arch, channels, outputs, width=16, depth=4, norm="batch", spacing=(1, 1, 1), dropout=0.0, threads=2
    ):
        self.lib = library()
        self.ctx, self.net = c.c_void_p(), c.c_void_p()
        options = ContextOptions(threads=threads)
        assert self.lib.rcn_context_create(c.byref(self.ctx), c.byref(options)) == 0
        self.outputs = outputs
        options = NetOptions(
            ARCHS.index(arch),
            channels,
            outputs,
            width,
            depth,
            ["batch", "instance"].index(norm),
            (c.c_double * 3)(*spacing),
            dropout,
        )
        self.check(self.lib.rcn_net_create(c.byref(self.net), self.ctx, c.byref(options)))
        self.table = {}
        for i in range(self.lib.rcn_net_parameter_count(self.net)):
            p = self.lib.rcn_net_parameter(self.net, i).contents
            self.table[p.name.decode()] = (p.kind, tuple(p.shape[: p.dimensions]), p.offset, p.count)

    def close(self):
        self.lib.rcn_net_destroy(self.net)
        self.lib.rcn_context_destroy(self.ctx)

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.rcn_context_error(self.ctx).decode())

    def block(self, gradients=False):
        """All values (to change), or all gradients, as one array without a copy."""
        get = self.lib.rcn_net_gradients if gradients else self.lib.rcn_net_edit_values
        count = self.lib.rcn_net_trained_floats if gradients else self.lib.rcn_net_floats
        return np.ctypeslib.as_array(get(self.net), (count(self.net),))

    def load(self, state):
        values = self.block()
        assert set(state) == set(self.table)
        for name, (_, shape, offset, count) in self.table.items():
            assert tuple(state[name].shape) == shape, name
            values[offset : offset + count] = np.asarray(state[name]).reshape(-1)

    def state(self, gradients=False):
        values = self.block(gradients)
        return {
            name: values[offset : offset + count].reshape(shape)
            for name, (kind, shape, offset, count) in self.table.items()
            if not gradients or kind == 0
        }

    def run(self, images, training=False, seed=0):
        """Logits of images (B, C, Y, X) or (B, C, Z, Y, X)."""
        images = np.ascontiguousarray(images, np.float32)
        size = (list(images.shape[2:])[::-1] + [1])[:3]
        batch = Batch(images.shape[0], (c.c_int64 * 3)(*size))
        logits = np.empty((images.shape[0], self.outputs, *images.shape[2:]), np.float32)
        self.images = images
        if training:
            status = self.lib.rcn_net_forward(
                pointer(logits), self.net, pointer(images), c.byref(batch), c.c_uint64(seed)
            )
        else:
            status = self.lib.rcn_net_predict(pointer(logits), self.net, pointer(images), c.byref(batch))
        self.check(status)
        return logits

    def backward(self, dlogits):
        self.check(self.lib.rcn_net_backward(self.net, pointer(np.ascontiguousarray(dlogits, np.float32))))
