# SPDX-License-Identifier: Apache-2.0
"""Prediction against PyTorch (the same network, naive tiles) and SimpleITK (resampling there and back)."""
import gzip
import os
import subprocess

import numpy as np
import pytest

if os.environ.get("RCN_PEERS") != "1":
    pytest.skip("compares live with PyTorch and SimpleITK: ./run test --peers", allow_module_level=True)

# Two OpenMP runtimes meet in this process: waiting threads of one must not hold up the other.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import json

import torch

import net_twins
import rcn_net
from net_fill import numbers
from rcn_models import write_safetensors
from rcn_testing import read_image, rotation, run, write_image

if rcn_net.library() is None:
    pytest.skip("built without networks", allow_module_level=True)


def save(path, twin, arch, raters, **metadata):
    state = {name: tensor.numpy() for name, tensor in twin.state_dict().items()}
    write_safetensors(path, state, {"arch": arch, "channels": "1", "raters": json.dumps(raters),
                                    "normalization": '{"kind": "zscore"}', **metadata})


def levels_of(twin, image):
    """(..., K+1) of an image (Y, X) or (Z, Y, X), sizes that the network takes as they are."""
    with torch.no_grad():
        logits = twin(torch.from_numpy(np.ascontiguousarray(image, np.float32))[None, None])[0]
    return np.moveaxis(torch.softmax(logits.double(), 0).numpy(), 0, -1)


def zscore(image):
    image = image.astype(np.float64)
    return (image - image.mean()) / image.std()


def blended(twin, image, tile, starts):
    sums = weights = 0
    axis = np.exp(-(((np.arange(tile) + 0.5) / tile - 0.5) * 8) ** 2 / 2)
    window = axis[:, None] * axis
    for y in starts[0]:
        for x in starts[1]:
            pad = (y, image.shape[0] - tile - y), (x, image.shape[1] - tile - x)
            sums = sums + np.pad(window[..., None] * levels_of(twin, image[y:y + tile, x:x + tile]), (*pad, (0, 0)))
            weights = weights + np.pad(window, pad)
    return sums / weights[..., None]


def test_fpn_in_tiles(tmp_path):
    twin = net_twins.fill(net_twins.make("fpn-resnet18", 1, 5)).eval()
    save(tmp_path / "m.safetensors", twin, "fpn-resnet18", list("ABCD"))
    image = numbers("image", 160 * 224).reshape(160, 224).astype(np.float32) * 40 + 100
    write_image(tmp_path / "i.nrrd", image)
    run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "i.nrrd", "-o", tmp_path / "whole")
    x = zscore(image)
    assert np.abs(read_image(tmp_path / "whole" / "i_levels.nrrd").array - levels_of(twin, x)).max() < 1e-3
    done = run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "i.nrrd", "-o", tmp_path / "tiles", "--tile", "96",
               "--overlap", "0.5", "--json", "-")
    assert done.json["cases"][0]["tiles"] == 12
    expected = blended(twin, x, 96, ([0, 32, 64], [0, 43, 85, 128]))
    assert np.abs(read_image(tmp_path / "tiles" / "i_levels.nrrd").array - expected).max() < 1e-3


def test_a_volume_resampled_by_simpleitk(tmp_path):
    sitk = pytest.importorskip("SimpleITK")
    spacing = (1.0, 1.0, 2.0)
    twin = net_twins.fill(net_twins.make("unet3d", 1, 3, width=8, depth=2, spacing=spacing)).eval()
    save(tmp_path / "m.safetensors", twin, "unet3d", ["A", "B"], spacing=json.dumps(spacing))
    volume = numbers("volume", 12 * 20 * 24).reshape(12, 20, 24).astype(np.float32)
    geometry = {"spacing": [1.5, 0.8, 2.5], "origin": [4.0, -3.0, 7.0], "direction": rotation(25)}
    write_image(tmp_path / "v.nrrd", volume, **geometry)
    run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "v.nrrd", "-o", tmp_path)

    image = sitk.GetImageFromArray(volume)
    image.SetSpacing(geometry["spacing"])
    image.SetOrigin(geometry["origin"])
    image.SetDirection(geometry["direction"].ravel().tolist())
    size = [int(round(n * a / b)) for n, a, b in zip(image.GetSize(), geometry["spacing"], spacing)]
    assert size == [36, 16, 15]
    corner = image.TransformContinuousIndexToPhysicalPoint([(b / a - 1) / 2 for a, b in zip(geometry["spacing"], spacing)])

    def resampled(what, size, origin, spacing):
        filter = sitk.ResampleImageFilter()
        filter.SetSize(size)
        filter.SetOutputOrigin(origin)
        filter.SetOutputSpacing(spacing)
        filter.SetOutputDirection(image.GetDirection())
        filter.SetInterpolator(sitk.sitkLinear)
        filter.UseNearestNeighborExtrapolatorOn()
        return filter.Execute(what)
    # The scale is that of the image as it was read, as in training; resampling comes after.
    scaled = sitk.GetImageFromArray(zscore(volume))
    scaled.CopyInformation(image)
    seen = sitk.GetArrayFromImage(resampled(scaled, size, corner, spacing))
    padded = np.pad(seen, [(0, -n % 4) for n in seen.shape], "edge")  # what the network does inside
    expected = levels_of(twin, padded)[:seen.shape[0], :seen.shape[1], :seen.shape[2]]
    levels = read_image(tmp_path / "v_levels.nrrd")
    for k in range(3):
        part = sitk.GetImageFromArray(np.ascontiguousarray(expected[..., k]))
        part.SetSpacing(spacing)
        part.SetOrigin(corner)
        part.SetDirection(image.GetDirection())
        back = sitk.GetArrayFromImage(resampled(part, image.GetSize(), image.GetOrigin(), image.GetSpacing()))
        assert np.abs(levels.array[..., k] - back).max() < 1e-3


@pytest.mark.parametrize("format", [".nrrd", ".nii.gz"])
def test_maps_compressed_in_blocks_are_read_by_others(format, tmp_path):
    """Levels of more than one block: SimpleITK, Python's gzip and the program gzip read what our own reader reads."""
    sitk = pytest.importorskip("SimpleITK")
    twin = net_twins.fill(net_twins.make("unet", 1, 4, width=8, depth=2)).eval()
    save(tmp_path / "m.safetensors", twin, "unet", list("ABC"))
    volume = numbers("volume", 9 * 160 * 192).reshape(9, 160, 192).astype(np.float32)
    geometry = {"spacing": [1.5, 0.8, 2.5], "origin": [4.0, -3.0, 7.0], "direction": rotation(25)}
    write_image(tmp_path / "v.nrrd", volume, **geometry)
    run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "v.nrrd", "-o", tmp_path, "--format", format)
    for kind in ("levels", "prob", "mask"):
        path = tmp_path / f"v_{kind}{format}"
        theirs = sitk.ReadImage(str(path))
        array = sitk.GetArrayFromImage(theirs)
        assert np.allclose(theirs.GetOrigin(), geometry["origin"]) and np.allclose(theirs.GetSpacing(), geometry["spacing"])
        assert array.shape == ((9, 160, 192, 4) if kind == "levels" else (9, 160, 192))
        packed = path.read_bytes()
        packed = packed if format == ".nii.gz" else packed[packed.index(b"\n\n") + 2:]
        done = subprocess.run(["gzip", "-t"], input=packed, capture_output=True)
        assert done.returncode == 0 and not done.stderr
        content = gzip.decompress(packed)[352 if format == ".nii.gz" else 0:]
        planar = np.moveaxis(array, -1, 0) if format == ".nii.gz" and kind == "levels" else array
        assert content == np.ascontiguousarray(planar).tobytes()
        if kind == "levels":
            assert np.abs(array.sum(-1) - 1).max() < 1e-5 and len(content) > 3 << 20
