# SPDX-License-Identifier: Apache-2.0
"""rcn_loss.h and rcn_optim.h through ctypes, for tests and benchmarks that compare with PyTorch."""
import ctypes
import glob
import os

import numpy as np

KINDS = ["rps", "ce", "brier", "emd", "corn", "coral", "cumulative-link", "binomial",
         "beta-binomial", "bce", "binary-brier", "beta-binomial-voxel"]
STRUCTURE_KINDS = ["dirichlet-multinomial", "categorical", "rps-heads"]


def load():
    build = os.environ.get("RCN_BUILD", "build")
    found = glob.glob(os.path.join(build, "lib", "librcn-testing.*"))
    if not found:
        raise FileNotFoundError(f"no librcn-testing in {build}/lib: build the target rcn_shared")
    library = ctypes.CDLL(found[0])
    library.rcn_context_error.restype = ctypes.c_char_p
    return library


class ContextOptions(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int), ("allocator", ctypes.c_void_p * 3),
                ("progress", ctypes.c_void_p), ("payload", ctypes.c_void_p)]


class Context:
    def __init__(self, threads=2):
        self.library = load()
        self.handle = ctypes.c_void_p()
        options = ContextOptions(threads=threads)
        assert self.library.rcn_context_create(ctypes.byref(self.handle), ctypes.byref(options)) == 0
        self.owned = []  # (destroy, handle): objects go before their context, whatever Python does

    def check(self, status):
        if status:
            raise RuntimeError(self.library.rcn_context_error(self.handle).decode())

    def __del__(self):
        for destroy, handle in reversed(self.owned):
            destroy(handle)
        self.library.rcn_context_destroy(self.handle)


class LossOptions(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("raters", ctypes.c_int), ("bce_weight", ctypes.c_double),
                ("alpha", ctypes.c_double), ("tie_background", ctypes.c_int),
                ("expected_weight", ctypes.c_double), ("unimodal_weight", ctypes.c_double),
                ("rps_weight", ctypes.c_double), ("structures", ctypes.c_int)]


class Label(ctypes.Structure):
    _fields_ = [("value", ctypes.c_float), ("weight", ctypes.c_float), ("marked", ctypes.c_uint8),
                ("answered", ctypes.c_uint8)]


class Target(ctypes.Structure):
    _fields_ = [("codes", ctypes.c_void_p), ("code_bytes", ctypes.c_int), ("labels", ctypes.c_void_p),
                ("label_count", ctypes.c_int64), ("map", ctypes.c_void_p), ("weight", ctypes.c_double),
                ("counts", ctypes.c_void_p), ("shares", ctypes.c_void_p)]


class Result(ctypes.Structure):
    _fields_ = [("loss", ctypes.c_double), ("weight", ctypes.c_double)]


def pointer(array):
    return None if array is None else ctypes.c_void_p(array.ctypes.data)


class Loss:
    """Everybody answered: the code of a voxel is its level, or any label through `values`."""

    def __init__(self, context, kind, raters, bce_weight=1.0, alpha=0.8, structures=1, **more):
        self.context, self.raters, self.structures = context, raters, structures
        options = LossOptions(kind=(KINDS + STRUCTURE_KINDS).index(kind), raters=raters, bce_weight=bce_weight,
                              alpha=alpha, structures=structures, **more)
        self.handle = ctypes.c_void_p()
        context.check(context.library.rcn_loss_create(
            ctypes.byref(self.handle), context.handle, ctypes.byref(options)))
        context.owned.append((context.library.rcn_loss_destroy, self.handle))
        self.channels = context.library.rcn_loss_channels(self.handle)
        self.own = context.library.rcn_loss_parameters(self.handle)

    def init_parameters(self):
        parameters = np.zeros(max(self.own, 1), np.float32)
        self.context.library.rcn_loss_init_parameters(pointer(parameters), self.handle)
        return parameters[:self.own]

    def run(self, logits, level, gradient=None, parameters=None, own_gradient=None, labels=None, counts=None,
            shares=None):
        """logits (N, C, V) float32; level (N, V) uint8; labels: rows (value, weight, marked, answered).

        Several structures: level is the row of counts (uint8, rows of C + 1) or of shares (float32)."""
        samples, channels, voxels = logits.shape
        assert channels == self.channels and logits.flags.c_contiguous and level.flags.c_contiguous
        if labels is None and counts is not None:
            labels = [(0, 1, 0, int(row.sum())) for row in counts]
        if labels is None and shares is not None:
            labels = [(0, 1, 0, self.raters) for row in shares]
        if labels is None:
            labels = [(k / self.raters, 1, k, self.raters) for k in range(self.raters + 1)]
        table = (Label * len(labels))(*labels)
        targets = (Target * samples)()
        for s in range(samples):
            targets[s] = Target(level[s].ctypes.data, 1, ctypes.addressof(table), len(labels), None, 1.0,
                                counts.ctypes.data if counts is not None else None,
                                shares.ctypes.data if shares is not None else None)
        result = Result()
        self.context.check(self.context.library.rcn_loss_run(
            ctypes.byref(result), pointer(gradient), pointer(own_gradient), self.handle,
            self.context.handle, pointer(logits), pointer(parameters), targets,
            ctypes.c_int64(samples), ctypes.c_int64(voxels)))
        return result

    def means(self, logits, parameters=None):
        samples, _, voxels = logits.shape
        out = np.empty((samples, self.structures + 1, voxels), np.float32)
        self.context.check(self.context.library.rcn_loss_means(
            pointer(out), self.handle, self.context.handle, pointer(logits), pointer(parameters),
            ctypes.c_int64(samples), ctypes.c_int64(voxels)))
        return out

    def structure_levels(self, structure, logits, parameters=None):
        samples, _, voxels = logits.shape
        out = np.empty((samples, self.raters + 1, voxels), np.float32)
        self.context.check(self.context.library.rcn_loss_structure_levels(
            pointer(out), self.handle, self.context.handle, structure, pointer(logits), pointer(parameters),
            ctypes.c_int64(samples), ctypes.c_int64(voxels)))
        return out

    def levels(self, logits, parameters=None):
        samples, _, voxels = logits.shape
        out = np.empty((samples, self.raters + 1, voxels), np.float32)
        self.context.check(self.context.library.rcn_loss_levels(
            pointer(out), self.handle, self.context.handle, pointer(logits), pointer(parameters),
            ctypes.c_int64(samples), ctypes.c_int64(voxels)))
        return out


class OptimOptions(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("weight_decay", ctypes.c_double), ("clip_norm", ctypes.c_double)]


class OptimState(ctypes.Structure):
    _fields_ = [("parameters", ctypes.c_void_p), ("gradients", ctypes.c_void_p),
                ("first", ctypes.c_void_p), ("second", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("step", ctypes.c_int64)]


class Schedule(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("rate", ctypes.c_double), ("steps", ctypes.c_int64),
                ("warmup", ctypes.c_int64), ("start", ctypes.c_double), ("final", ctypes.c_double)]


class Optimizer:
    """A block of float32 parameters, its moments, and rcn_optim_step()."""

    def __init__(self, context, parameters, kind, weight_decay=0.0, clip_norm=0.0):
        self.context, self.parameters = context, parameters
        self.gradients, self.first, self.second = (np.zeros_like(parameters) for _ in range(3))
        self.options = OptimOptions(["adam", "adamw"].index(kind), weight_decay, clip_norm)
        self.state = OptimState(parameters.ctypes.data, self.gradients.ctypes.data,
                                self.first.ctypes.data, self.second.ctypes.data, parameters.size, 0)

    def step(self, rate):
        norm = ctypes.c_double()
        self.context.check(self.context.library.rcn_optim_step(
            ctypes.byref(norm), ctypes.byref(self.state), self.context.handle, ctypes.c_double(rate),
            ctypes.byref(self.options), None, 0))
        return norm.value
