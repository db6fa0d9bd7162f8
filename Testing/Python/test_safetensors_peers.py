# SPDX-License-Identifier: Apache-2.0
"""Model files against Python's safetensors: what one writes, the other reads; what one refuses, so
does the other."""
import json
import os
import struct
import subprocess

import pytest

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares live with safetensors: ./run test --peers", allow_module_level=True)

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

PROGRAM = os.path.join(os.environ.get("RCN_BUILD", "build"), "bin", "test_rcn_safetensors")
METADATA = {"arch": "unet", "raters": '["A", "É"]'}


def expected(half, bfloat):
    return {
        "conv.weight": torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) * 0.5 - 3,
        "half": (torch.arange(5) * 0.25).to(half),
        "bfloat": (torch.arange(5) * -2).to(bfloat),
        "bn.num_batches_tracked": torch.tensor(7),
    }


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def test_python_reads_ours(tmp_path):
    path = tmp_path / "ours.safetensors"
    done = run("--write", path)
    assert done.returncode == 0, done.stderr
    found = load_file(path)
    wanted = expected(torch.float32, torch.float32)
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name
    with safe_open(path, "pt") as file:
        assert file.metadata() == METADATA


def test_we_read_pythons(tmp_path):
    path = tmp_path / "theirs.safetensors"
    save_file(expected(torch.float16, torch.bfloat16), path, metadata=METADATA)
    done = run("--check", path)
    assert done.returncode == 0, done.stderr


def raw(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize("content", [
    b"", b"\x00" * 8, b"\xff" * 100,
    raw({"a": tensor([2], 0, 8)}, b"\0" * 7),
    raw({"a": tensor([2], 0, 8)}, b"\0" * 9),
    raw({"a": tensor([3], 0, 8)}, b"\0" * 8),
    raw({"a": tensor([2], 0, 8), "b": tensor([2], 4, 12)}, b"\0" * 12),
    raw({"a": tensor([2], 0, 8), "b": tensor([2], 12, 20)}, b"\0" * 20),
    raw({"a": tensor([2], 0, 8, "Q9")}, b"\0" * 8),
    raw(b'{"a":'), raw(b'{"\xff":{}}'),
])
def test_both_refuse(tmp_path, content):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(SafetensorError):
        load_file(path)
    done = run("--check", path)
    assert done.returncode != 0 and "bad.safetensors" in done.stderr
