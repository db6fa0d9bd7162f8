# SPDX-License-Identifier: Apache-2.0
"""Model files for tests, written with NumPy alone, and what their networks say."""
import json
import struct

import numpy as np

import net_fill
import rcn_net

FIXED = {"kind": "fixed", "mean": [0.5], "std": [2.0]}


def write_safetensors(path, tensors, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, array in tensors.items():
        kind = {"float32": "F32", "int64": "I64"}[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in tensors.values()))
    return path


def read_metadata(path):
    raw = path.read_bytes()
    return json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]


def with_metadata(raw, **changes):
    """The bytes of a model file with other metadata."""
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:end])
    header["__metadata__"].update(changes)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + raw[end:]


def write_model(path, raters="ABC", arch="unet", channels=1, outputs=None, normalization=FIXED, depth=2, spacing=None, **metadata):
    """A small network with made-up weights; returns it to be asked (close() it). More metadata by keyword."""
    outputs = len(raters) + 1 if outputs is None else outputs
    options = {} if spacing is None else {"spacing": spacing}
    net = rcn_net.Net(arch, channels, outputs, width=8, depth=depth, threads=1, **options)
    values = {name: net_fill.parameter_values(name, shape) for name, (_, shape, _, _) in net.table.items()}
    net.load(values)
    tensors = {name: np.zeros((), np.int64) if net.table[name][0] == 2 else array for name, array in values.items()}
    more = {} if spacing is None else {"spacing": json.dumps(spacing)}
    write_safetensors(path, tensors, {"arch": arch, "channels": str(channels), "raters": json.dumps(list(raters)),
                                      "normalization": json.dumps(normalization), **more, **metadata})
    return net


def softmax(logits):
    e = np.exp(logits - logits.max(0))
    return e / e.sum(0)


def levels_of(net, image):
    """(..., K+1) of one image (C, [Z,] Y, X), already normalized."""
    return np.moveaxis(softmax(net.run(image[None])[0].astype(np.float64)), 0, -1)
