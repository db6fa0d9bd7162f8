# SPDX-License-Identifier: Apache-2.0
"""rater-consensus predict: maps against what NumPy makes of the same network's logits."""
import json
import signal
import zlib

import numpy as np
import pytest

import rcn_net
from net_fill import numbers
from rcn_models import levels_of, read_metadata, with_metadata, write_model
from rcn_testing import leftovers, read_image, refused, rotation, run, start, wait_until, write_image, write_png

if rcn_net.library() is None:
    pytest.skip("built without networks", allow_module_level=True)

GEOMETRY = {"spacing": [0.5, 0.7], "origin": [3, -4], "direction": rotation(20, 2)}


def picture(name, *shape):
    return (numbers(name, int(np.prod(shape))) * 3 + 1).astype(np.float32).reshape(shape)


def same_place(image, geometry):
    assert np.allclose(image.spacing, geometry["spacing"]) and np.allclose(image.origin, geometry["origin"])
    assert np.allclose(image.direction, geometry["direction"], atol=1e-6)


@pytest.fixture
def flat(tmp_path):
    """A 2-D model of three raters and an image: paths, and the levels that should come out."""
    net = write_model(tmp_path / "m.safetensors")
    image = picture("flat", 45, 52)
    write_image(tmp_path / "c01.nrrd", image, **GEOMETRY)
    expected = levels_of(net, (image[None] - 0.5) / 2)
    net.close()
    return tmp_path / "m.safetensors", tmp_path / "c01.nrrd", expected


def test_maps_of_one_image(flat, tmp_path):
    model, image, levels = flat
    done = run("predict", "--model", model, "--image", image, "-o", tmp_path / "out", "--uncertainty", "--json", "-")
    entry, = done.json["cases"]
    assert entry["case"] == "c01" and entry["readout"] == "majority" and done.json["raters"] == ["A", "B", "C"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "c01_levels.nrrd", "c01_mask.nrrd", "c01_prob.nrrd", "c01_uncertainty.nrrd", "predictions.json"]
    maps = {kind: read_image(entry[kind]) for kind in ("levels", "mask", "prob", "uncertainty")}
    for one in maps.values():
        same_place(one, GEOMETRY)
    assert np.abs(maps["levels"].array - levels).max() < 1e-5
    assert np.abs(maps["prob"].array - levels[..., 2:].sum(-1)).max() < 1e-5  # 2 or 3 of 3
    assert np.array_equal(maps["mask"].array, (maps["prob"].array >= 0.5).astype(np.uint8))
    assert 0 < maps["mask"].array.mean() < 1
    assert np.abs(maps["uncertainty"].array + (levels * np.log2(levels)).sum(-1)).max() < 1e-4


@pytest.mark.parametrize("readout,weights", [("expected", [0, 1 / 3, 2 / 3, 1]), ("at-least:1", [0, 1, 1, 1]),
                                             ("at-least:3", [0, 0, 0, 1])])
def test_readouts(flat, tmp_path, readout, weights):
    model, image, levels = flat
    run("predict", "--model", model, "--image", image, "-o", tmp_path, "--readout", readout, "--threshold", "0.3",
        "--format", ".nii.gz", "--no-levels")
    probability = read_image(tmp_path / "c01_prob.nii.gz").array
    assert np.abs(probability - levels @ weights).max() < 1e-5
    assert np.array_equal(read_image(tmp_path / "c01_mask.nii.gz").array, (probability >= 0.3).astype(np.uint8))
    assert not (tmp_path / "c01_levels.nii.gz").exists()


def close(a, b):
    """Equal but for the rounding of sums."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    return a == pytest.approx(b, rel=1e-12) if isinstance(a, float) else a == b


@pytest.mark.parametrize("readout", ["majority", "expected", "at-least:1"])
@pytest.mark.parametrize("kind,tiles", [
    ("flat", []), ("flat", ["--tile", "32"]), ("flat", ["--tile", "24", "--flips"]), ("slices", []), ("slices", ["--tile", "20,20,1"]),
    ("volume", []), ("volume", ["--tile", "24,24,9"]), ("volume", ["--tile", "40,40,16", "--overlap", "0"]), ("resampled", [])])
def test_without_levels_everything_else_is_the_same(tmp_path, kind, tiles, readout):
    spacing = {"resampled": [2.0, 1.0, 1.0]}.get(kind)
    write_model(tmp_path / "m.safetensors", arch="unet" if kind in ("flat", "slices") else "unet3d", spacing=spacing).close()
    image = picture(kind, 45, 52) if kind == "flat" else picture(kind, 32, 35, 33)
    write_image(tmp_path / "c.nrrd", image)
    found = []
    for extra in ([], ["--no-levels"], ["--no-levels", "--threads", "1"]):
        done = run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "c.nrrd", "-o", tmp_path / str(len(found)),
                   "--uncertainty", "--readout", readout, *tiles, *extra, "--json", "-")
        found.append(done.json["cases"][0])
    whole, *parts = found
    assert "levels" in whole and whole["volumes"]["levels"] == "predicted"
    for part in parts:
        assert "levels" not in part and close(whole["volumes"], part["volumes"]) and part["tiles"] == whole["tiles"]
        for name in ("prob", "mask", "uncertainty"):
            assert np.array_equal(read_image(whole[name]).array, read_image(part[name]).array)


def test_the_models_readout_is_the_default(tmp_path):
    write_model(tmp_path / "m.safetensors", readout="expected").close()
    write_image(tmp_path / "c.nrrd", picture("flat", 20, 24))
    done = run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "c.nrrd", "-o", tmp_path, "--json", "-")
    assert done.json["cases"][0]["readout"] == "expected"
    levels, probability = (read_image(tmp_path / f"c_{kind}.nrrd").array for kind in ("levels", "prob"))
    assert np.abs(probability - levels @ [0, 1 / 3, 2 / 3, 1]).max() < 1e-5


def test_one_output_is_a_probability(tmp_path):
    net = write_model(tmp_path / "m.safetensors", outputs=1)
    image = picture("flat", 20, 24)
    write_image(tmp_path / "c.nrrd", image)
    run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "c.nrrd", "-o", tmp_path, "--readout", "expected")
    p = 1 / (1 + np.exp(-net.run((image[None, None] - 0.5) / 2)[0, 0].astype(np.float64)))
    assert np.abs(read_image(tmp_path / "c_prob.nrrd").array - p).max() < 1e-5
    assert np.abs(read_image(tmp_path / "c_levels.nrrd").array[..., 0] - (1 - p)).max() < 1e-5
    net.close()


@pytest.mark.parametrize("normalization", [
    {"kind": "zscore"}, {"kind": "percentile", "lower": 2, "upper": 97}, {"kind": "window", "center": 1, "width": 3}])
def test_normalizations(tmp_path, normalization):
    net = write_model(tmp_path / "m.safetensors", normalization=normalization)
    image = picture("norm", 30, 31)
    write_image(tmp_path / "c.nrrd", image)
    run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "c.nrrd", "-o", tmp_path)
    x = image.astype(np.float64)
    if normalization["kind"] == "zscore":
        x = (x - x.mean()) / x.std()
    else:
        low, high = (np.percentile(x, (2, 97), method="nearest") if normalization["kind"] == "percentile" else (-0.5, 2.5))
        x = np.clip((x - low) / (high - low) * 2 - 1, -1, 1)
    assert np.abs(read_image(tmp_path / "c_levels.nrrd").array - levels_of(net, x[None].astype(np.float32))).max() < 1e-5
    net.close()


def test_channels_from_several_files_and_colors(tmp_path):
    net = write_model(tmp_path / "m.safetensors", channels=3, normalization={"kind": "fixed", "mean": [100, 90, 80], "std": [50, 60, 70]})
    color = ((numbers("rgb", 30 * 28 * 3) + 1) * 127).astype(np.uint8).reshape(30, 28, 3)
    x = np.moveaxis((color - np.array([100.0, 90, 80])) / [50, 60, 70], -1, 0).astype(np.float32)
    write_png(tmp_path / "rgb.png", color)
    write_png(tmp_path / "rgba.png", np.dstack([color, color[..., :1]]))  # alpha is no channel
    write_png(tmp_path / "clear.png", color, transparent=bytes(6))
    files = [write_png(tmp_path / f"{i}.png", color[..., i]) for i in range(3)]
    model = tmp_path / "m.safetensors"
    for name in ("rgb", "rgba", "clear"):
        run("predict", "--model", model, "--image", tmp_path / f"{name}.png", "-o", tmp_path)
    run("predict", "--model", model, *[w for f in files for w in ("--image", f)], "-o", tmp_path)
    for name in ("rgb", "rgba", "clear", "0"):
        assert np.abs(read_image(tmp_path / f"{name}_levels.nrrd").array - levels_of(net, x)).max() < 1e-5
    net.close()


def gaussian(tile):
    return np.exp(-(((np.arange(tile) + 0.5 - tile / 2) / (tile / 8)) ** 2) / 2)


def blended(net, image, tile, overlap):
    """Naive: every tile, every flip-free weight, a sum and a sum of weights. image (C, Y, X)."""
    def starts(size):
        step = max(1, int(tile * (1 - overlap)))
        count = 1 + -(-(size - tile) // step)
        return [int(i * (size - tile) / (count - 1) + 0.5) for i in range(count)]
    sums, weights = np.zeros((*image.shape[1:], net.outputs)), np.zeros(image.shape[1:])
    window = np.outer(gaussian(tile), gaussian(tile))
    for y in starts(image.shape[1]):
        for x in starts(image.shape[2]):
            part = slice(y, y + tile), slice(x, x + tile)
            sums[part] += window[..., None] * levels_of(net, image[(slice(None), *part)])
            weights[part] += window
    return sums / weights[..., None]


def test_tiles(flat, tmp_path):
    model, image, whole = flat
    net = write_model(tmp_path / "again.safetensors")
    x = ((picture("flat", 45, 52) - 0.5) / 2)[None]
    for overlap in ("0.25", "0.5"):
        done = run("predict", "--model", model, "--image", image, "-o", tmp_path, "--tile", "24", "--overlap", overlap, "--json", "-")
        assert done.json["cases"][0]["tiles"] > 4
        levels = read_image(tmp_path / "c01_levels.nrrd").array
        assert np.abs(levels - blended(net, x, 24, float(overlap))).max() < 1e-5
        assert np.abs(levels - whole).max() > 1e-3  # it was tiled
    net.close()


def test_memory_for_a_tile(flat, tmp_path):
    """Less memory makes more and smaller tiles, which are blended; enough of it makes one."""
    model, image = flat[0], tmp_path / "large.nrrd"
    write_image(image, picture("large", 400, 360), **GEOMETRY)
    tiles, levels = {}, {}
    for memory in ("1", "256", ""):
        done = run("predict", "--model", model, "--image", image, "-o", tmp_path, *(["--memory", memory] if memory else []), "--json", "-")
        tiles[memory] = done.json["cases"][0]["tiles"]
        levels[memory] = read_image(tmp_path / "large_levels.nrrd").array
    assert tiles["1"] > 4 and tiles["256"] == tiles[""] == 1, tiles
    assert np.abs(levels["1"] - levels["256"]).max() > 1e-4 and np.array_equal(levels["256"], levels[""])
    refused("predict", "--model", model, "--image", image, "--memory", "0", says="--memory", folder=tmp_path)


def test_flips(flat, tmp_path):
    model, image, _ = flat
    net = write_model(tmp_path / "again.safetensors")
    x = ((picture("flat", 45, 52) - 0.5) / 2)[None]
    expected = np.mean([levels_of(net, x[:, ::a, ::b])[::a, ::b] for a in (1, -1) for b in (1, -1)], 0)
    run("predict", "--model", model, "--image", image, "-o", tmp_path, "--flips")
    assert np.abs(read_image(tmp_path / "c01_levels.nrrd").array - expected).max() < 1e-5
    net.close()


def test_a_volume_slice_by_slice(tmp_path):
    net = write_model(tmp_path / "m.safetensors")
    volume = (picture("volume", 5, 33, 30) * 50).astype(np.int16)
    geometry = {"spacing": [0.5, 0.6, 3], "origin": [1, 2, 3], "direction": rotation(15)}
    write_image(tmp_path / "v.nii.gz", volume, **geometry)
    run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "v.nii.gz", "-o", tmp_path)
    levels = read_image(tmp_path / "v_levels.nrrd")
    same_place(levels, geometry)
    for z in range(5):
        x = ((volume[z] - 0.5) / 2).astype(np.float32)[None]
        assert np.abs(levels.array[z] - levels_of(net, x)).max() < 1e-4
    net.close()


def at_spacing(array, old, new):
    """Trilinear, edges repeated: array [z, y, x]; spacings x, y, z; the outer corner stays."""
    for axis, (a, b) in zip((2, 1, 0), zip(old, new)):
        size = array.shape[axis]
        count = max(1, int(size * a / b + 0.5))
        at = np.clip(((np.arange(count) + 0.5) * b / a) - 0.5, 0, size - 1)
        low = np.minimum(np.floor(at).astype(int), size - 1)
        high = np.minimum(low + 1, size - 1)
        shape = [1] * array.ndim
        shape[axis] = count
        f = (at - low).reshape(shape)
        array = np.take(array, low, axis) * (1 - f) + np.take(array, high, axis) * f
    return array


@pytest.mark.parametrize("spacing, shape, inner", [([1.0, 1.0, 1.5], (9, 20, 24), (12, 16, 30)),
                                                   ([1.0, 1.3, 1.5], (9, 12, 16), (12, 7, 20))])
def test_a_volume_of_another_spacing(spacing, shape, inner, tmp_path):
    """In the second grid the last rows lie outside of what the network saw."""
    net = write_model(tmp_path / "m.safetensors", arch="unet3d", spacing=spacing)
    volume = picture("coarse", *shape)
    geometry = {"spacing": [1.25, 0.8, 2.0], "origin": [1, 2, 3], "direction": rotation(15)}
    write_image(tmp_path / "v.nrrd", volume, **geometry)
    done = run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "v.nrrd", "-o", tmp_path)
    assert f"resampled from 1.25 x 0.8 x 2 mm to the model's 1 x {spacing[1]:g} x 1.5 mm" in done.err
    seen = at_spacing(volume.astype(np.float64), geometry["spacing"], spacing)
    assert seen.shape == inner
    inside = levels_of(net, ((seen - 0.5) / 2).astype(np.float32)[None])
    # Back: along each axis the old centers in new voxels.
    expected = inside
    for axis, (a, b) in zip((2, 1, 0), zip(spacing, geometry["spacing"])):
        size = expected.shape[axis]
        at = np.clip((np.arange(volume.shape[axis]) + 0.5) * b / a - 0.5, 0, size - 1)
        low = np.floor(at).astype(int)
        f = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        expected = np.take(expected, low, axis) * (1 - f) + np.take(expected, np.minimum(low + 1, size - 1), axis) * f
    levels = read_image(tmp_path / "v_levels.nrrd")
    same_place(levels, geometry)
    assert np.abs(levels.array - expected).max() < 1e-5
    # The model's own spacing, within a header's rounding: nothing is resampled.
    write_image(tmp_path / "w.nrrd", volume, spacing=[1.0001, *spacing[1:]])
    assert "resampled" not in run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "w.nrrd", "-o", tmp_path).err
    net.close()


# ---- recalibration ---------------------------------------------------------------------------------

def correction(method, levels, parameters, readout="majority"):
    return {"method": method, "levels": levels, "readout": readout, "at_least": 0, "parameters": parameters, "x": [], "y": [],
            "pairs": 10, "cases": ["v1"], "fingerprints": []}


def test_temperature(flat, tmp_path):
    model, image, levels = flat
    (tmp_path / "t.json").write_text(json.dumps(correction("temperature", 4, [2.5])))
    run("predict", "--model", model, "--image", image, "-o", tmp_path / "a", "--recalibration", tmp_path / "t.json")
    write_model(tmp_path / "t.safetensors", recalibration=json.dumps(correction("temperature", 4, [2.5]))).close()
    run("predict", "--model", tmp_path / "t.safetensors", "--image", image, "-o", tmp_path / "b")
    softer = levels ** (1 / 2.5)
    softer /= softer.sum(-1, keepdims=True)
    for folder in "ab":
        assert np.abs(read_image(tmp_path / folder / "c01_levels.nrrd").array - softer).max() < 1e-5
        assert np.abs(read_image(tmp_path / folder / "c01_prob.nrrd").array - softer[..., 2:].sum(-1)).max() < 1e-5
    run("predict", "--model", tmp_path / "t.safetensors", "--image", image, "-o", tmp_path / "c", "--no-recalibration")
    assert np.abs(read_image(tmp_path / "c" / "c01_levels.nrrd").array - levels).max() < 1e-5


@pytest.mark.parametrize("method", ["temperature", "platt"])
@pytest.mark.parametrize("loss", ["ordinal", "bce"])
@pytest.mark.parametrize("readout", ["majority", "expected"])
def test_without_levels_corrections_are_the_same(tmp_path, method, loss, readout):
    bce = loss == "bce"
    write_model(tmp_path / "m.safetensors", **({"outputs": 1, "loss": "bce"} if bce else {})).close()
    write_image(tmp_path / "c.nrrd", picture("flat", 45, 52))
    one = correction("platt", 0, [0.5, 0.3], readout) if method == "platt" else correction("temperature", 0 if bce else 4, [2.5], readout)
    (tmp_path / "r.json").write_text(json.dumps({**one, "one_probability": bce}))
    words = ["predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "c.nrrd", "--recalibration", tmp_path / "r.json",
             "--readout", readout, "--json", "-"]
    whole = run(*words, "-o", tmp_path / "whole").json["cases"][0]
    part = run(*words, "-o", tmp_path / "part", "--no-levels").json["cases"][0]
    plain = run(*words[:5], "-o", tmp_path / "plain", "--readout", readout, "--json", "-").json["cases"][0]
    assert ("levels" in whole) == (method == "temperature") and "levels" not in part
    assert close(whole["volumes"], part["volumes"])
    for name in ("prob", "mask"):
        assert np.array_equal(read_image(whole[name]).array, read_image(part[name]).array)
    assert not np.array_equal(read_image(plain["prob"]).array, read_image(part["prob"]).array)


def test_a_correction_of_one_readout(flat, tmp_path):
    model, image, levels = flat
    (tmp_path / "p.json").write_text(json.dumps(correction("platt", 0, [0.5, 0.3])))
    done = run("predict", "--model", model, "--image", image, "-o", tmp_path / "a", "--recalibration", tmp_path / "p.json")
    assert "the levels are not written" in done.err
    p = levels[..., 2:].sum(-1)
    expected = 1 / (1 + np.exp(-(0.5 * np.log(p / (1 - p)) + 0.3)))
    assert np.abs(read_image(tmp_path / "a" / "c01_prob.nrrd").array - expected).max() < 1e-5
    assert not (tmp_path / "a" / "c01_levels.nrrd").exists()
    refused("predict", "--model", model, "--image", image, "-o", tmp_path, "--recalibration", tmp_path / "p.json", "--readout",
            "expected", says=["fitted to the readout majority", "--readout"], folder=tmp_path)
    (tmp_path / "k.json").write_text(json.dumps(correction("temperature", 6, [2.5])))
    refused("predict", "--model", model, "--image", image, "-o", tmp_path, "--recalibration", tmp_path / "k.json",
            says=["6 levels", "gives 4"], folder=tmp_path)


def test_recalibrate_stores_in_the_model(flat, tmp_path):
    model, _, _ = flat
    data = make_list(tmp_path)
    run("predict", "--model", model, "--data", data, "-o", tmp_path / "before")
    words = ["recalibrate", "--method", "temperature", "--data", data, "--split", "training", "--pred", tmp_path / "before", "--model", model]
    assert "predict applies it" in run(*words).out
    stored = json.loads(read_metadata(model)["recalibration"])
    assert stored["levels"] == 4 and stored["cases"] == ["k0"]
    refused(*words, says=["already has a correction", "--replace"])
    run(*words, "--replace")
    assert json.loads(read_metadata(model)["recalibration"]) == stored  # the predictions were uncorrected
    run("predict", "--model", model, "--data", data, "-o", tmp_path / "after")
    levels, softer = (read_image(tmp_path / f / "k1_levels.nrrd").array.astype(np.float64) for f in ("before", "after"))
    expected = levels ** (1 / stored["parameters"][0])
    assert np.abs(softer - expected / expected.sum(-1, keepdims=True)).max() < 1e-5


# ---- many cases ------------------------------------------------------------------------------------

def test_a_folder_with_a_bad_file(flat, tmp_path):
    model, _, _ = flat
    folder = tmp_path / "images"
    folder.mkdir()
    write_image(folder / "a.nrrd", picture("a", 20, 20))
    (folder / "b.nrrd").write_bytes(b"NRRD0004\ntruncated")
    write_image(folder / "c.nrrd", np.stack([picture("c", 20, 20)] * 2, -1))  # 3-D of two slices along x
    write_png(folder / "d.png", np.zeros((20, 20, 3), np.uint8) + 7)
    write_image(folder / "e.nrrd", picture("e", 20, 20))
    (folder / "notes.txt").write_text("not an image")
    done = run("predict", "--model", model, "--image", folder, "-o", tmp_path / "out", "--no-levels", check=False)
    assert done.code == 1
    assert "Case b was left out" in done.err and "Case d was left out" in done.err and "3 channels" in done.err
    assert {p.name for p in (tmp_path / "out").iterdir()} == {f"{c}_{k}.nrrd" for c in "ace" for k in ("prob", "mask")} | {"predictions.json"}
    assert not leftovers(tmp_path)


def make_list(folder, raters="ABC"):
    cases = []
    for i in range(3):
        write_image(folder / f"i{i}.nrrd", picture(f"i{i}", 20, 24))
        labels = {r: str(write_image(folder / f"i{i}_{r}.nrrd", np.eye(20, 24, dtype=np.uint8))) for r in raters}
        cases.append({"id": f"k{i}", "image": f"i{i}.nrrd", "label": labels})
    path = folder / "list.json"
    path.write_text(json.dumps({"raters": list(raters), "training": cases[:1], "test": cases[1:]}))
    return path


def test_a_list_and_its_evaluation(flat, tmp_path):
    model, _, _ = flat
    data = make_list(tmp_path)
    run("predict", "--model", model, "--data", data, "--split", "test", "-o", tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "predictions.json", *(f"k{i}_{k}.nrrd" for i in (1, 2) for k in ("levels", "prob", "mask"))}
    figures = run("evaluate", "--data", data, "--split", "test", "--pred", tmp_path / "out", "--json", "-").json
    assert 0 < figures["mr_ece"] < 1


def test_raters_that_differ(flat, tmp_path):
    model, _, _ = flat
    for raters, says in (("ABD", "a rater D, on whom"), ("AB", "has 2 raters")):
        folder = tmp_path / raters
        folder.mkdir()
        refused("predict", "--model", model, "--data", make_list(folder, raters), "-o", tmp_path, says=[says, "--image"])


def test_stopped(flat, tmp_path):
    model, _, _ = flat
    write_image(tmp_path / "large.nrrd", np.tile(picture("large", 300, 300), (10, 10)))
    process = start("predict", "--model", model, "--image", tmp_path / "large.nrrd", "-o", tmp_path / "out", "--flips")
    wait_until(lambda: (tmp_path / "out").exists() or process.poll() is not None)  # then it is about to read the image
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130 and out == b"" and error.count(b"\n") == 1
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("format", [".nrrd", ".nii.gz"])
def test_maps_have_the_same_bytes_for_any_number_of_threads(flat, tmp_path, format):
    """With one thread cases are written one after another, with more while the next is predicted; files of several blocks are
    compressed by several threads. Every map is one stream of gzip."""
    model, _, _ = flat
    data = make_list(tmp_path)
    write_image(tmp_path / "i1.nrrd", np.tile(picture("large", 300, 300), (2, 2)))
    for threads in "13":
        done = run("predict", "--model", model, "--data", data, "-o", tmp_path / threads, "--format", format, "--threads", threads, "--json", "-")
        ids = [case["case"] for case in done.json["cases"]]
        assert ids == [case["case"] for case in manifest(tmp_path / threads)["cases"]] == sorted(ids) and len(ids) > 2
    maps = sorted(path.name for path in (tmp_path / "1").iterdir() if path.suffix != ".json")
    assert len(maps) == 3 * len(ids)
    for name in maps:
        raw = (tmp_path / "1" / name).read_bytes()
        assert raw == (tmp_path / "3" / name).read_bytes(), name
        stream = zlib.decompressobj(31)  # one member
        content = stream.decompress(raw if format == ".nii.gz" else raw[raw.index(b"\n\n") + 2:])
        assert stream.eof and not stream.unused_data and len(content) > 300 * 300 * (name.startswith("k1"))


# ---- the folder ------------------------------------------------------------------------------------

def manifest(folder):
    return json.loads((folder / "predictions.json").read_text("utf-8"))


def names(folder):
    return {p.name for p in folder.iterdir()}


def judged(data, folder, *options):
    return run("evaluate", "--data", data, "--pred", folder, "--json", "-", *options).json


def test_the_manifest(flat, tmp_path):
    model, _, _ = flat
    data, out = make_list(tmp_path), tmp_path / "out"
    run("predict", "--model", model, "--data", data, "-o", out, "--readout", "expected", "--split", "test")
    said = manifest(out)
    assert said["model"] == str(model) and len(said["hash"]) == 16 and said["version"] == run("--version").out.split()[-1]
    assert (said["readout"], said["tie"], said["levels"], said["correction"]) == ("expected", "foreground", True, None)
    assert said["cases"] == [{"case": f"k{i}", "files": {k: f"k{i}_{k}.nrrd" for k in ("levels", "mask", "prob")}} for i in (1, 2)]
    # Another run in the same way adds its cases.
    run("predict", "--model", model, "--data", data, "-o", out, "--readout", "expected", "--split", "training", "--no-levels")
    assert [c["case"] for c in manifest(out)["cases"]] == ["k0", "k1", "k2"] and "levels" not in manifest(out)["cases"][0]["files"]
    # A run in another way does not mix with them.
    done = run("predict", "--model", model, "--data", data, "-o", out, "--split", "training")
    assert [c["case"] for c in manifest(out)["cases"]] == ["k0"] and manifest(out)["readout"] == "majority"
    assert "no longer names 2 cases" in done.err
    done = run("evaluate", "--data", data, "--pred", out, check=False)
    assert done.code == 1 and "names no prediction for case k1" in done.err and (out / "k1_levels.nrrd").exists()


def test_stale_maps_are_not_judged(flat, tmp_path):
    """predict, recalibrate, predict: what the first run wrote is gone, or at least not looked at."""
    model, _, _ = flat
    data, out = make_list(tmp_path), tmp_path / "out"
    run("predict", "--model", model, "--data", data, "-o", out, "--uncertainty", "--format", ".mha")
    run("predict", "--model", model, "--data", data, "-o", out, "--uncertainty")
    maps = {f"k{i}_{k}.nrrd" for i in range(3) for k in ("levels", "prob", "mask", "uncertainty")}
    assert names(out) == maps | {"predictions.json"}  # no .mha is left
    before = judged(data, out)
    assert before["levels"] == "predicted"
    (out / "k0_notes.nrrd").write_bytes(b"of a person")
    (out / "k0_levels.mha").write_bytes(b"of a person, too: no manifest names it any more")
    run("recalibrate", "--method", "isotonic", "--data", data, "--split", "training", "--pred", out, "--model", model, "--force")
    assert judged(data, out)["mr_ece"] == before["mr_ece"]
    run("predict", "--model", model, "--data", data, "-o", out)
    assert names(out) == {f"k{i}_{k}.nrrd" for i in range(3) for k in ("prob", "mask")} | {
        "predictions.json", "k0_notes.nrrd", "k0_levels.mha"}
    after = judged(data, out)
    assert after["levels"] == "binomial" and after["mr_ece"] != before["mr_ece"]
    assert manifest(out)["correction"]["method"] == "isotonic" and manifest(out)["correction"]["region"] == "box"
    one = {r: f"{tmp_path}/i1_{r}.nrrd" for r in "ABC"}
    alone = run("evaluate", "--prob", out / "k1_prob.nrrd", *(w for r, f in one.items() for w in ("--rater", f"{r}={f}")), "--json", "-").json
    (tmp_path / "list1.json").write_text(json.dumps({"raters": list("ABC"), "test": [
        {"id": "k1", "image": "i1.nrrd", "label": {r: f"i1_{r}.nrrd" for r in "ABC"}}]}))
    assert judged(tmp_path / "list1.json", out)["mr_ece"] == alone["mr_ece"]
    # What is corrected is not corrected again, and another model's predictions say nothing about this one.
    for words in (("recalibrate", "--method", "platt", "-o", tmp_path / "r.json", "--split", "training"),
                  ("evaluate", "--recalibration", tmp_path / "r.json")):
        (tmp_path / "r.json").write_text(json.dumps(correction("platt", 0, [1, 0])))
        refused(*words, "--data", data, "--pred", out, says=["corrected already", "--no-recalibration"])
    write_model(tmp_path / "other.safetensors", normalization={"kind": "zscore"}).close()
    other = tmp_path / "other.safetensors"
    raw = bytearray(other.read_bytes())
    raw[-2] ^= 1  # another weight
    other.write_bytes(raw)
    run("predict", "--model", model, "--data", data, "-o", tmp_path / "plain", "--no-recalibration")
    refused("recalibrate", "--method", "platt", "--data", data, "--split", "training", "--pred", tmp_path / "plain", "--model", other,
            says=["another model", "m.safetensors"])


def test_two_models_are_compared_each_by_its_readout(flat, tmp_path):
    model, _, _ = flat
    data = make_list(tmp_path)
    folders = {readout: tmp_path / readout for readout in ("expected", "majority")}
    for readout, folder in folders.items():
        run("predict", "--model", model, "--data", data, "-o", folder, "--readout", readout)
    own = {readout: judged(data, folder)["mr_ece"] for readout, folder in folders.items()}
    words = ("evaluate", "--data", data, "--pred", folders["expected"], "--versus", folders["majority"], "--json", "-")
    done = run(*words)
    assert done.json["difference"]["mr_ece"]["value"] == pytest.approx(own["expected"] - own["majority"]) != 0
    assert "expected is expected" in done.err and "majority is majority" in done.err
    done = run(*words, "--readout", "majority")
    assert done.json["difference"]["mr_ece"]["value"] == 0 and "--readout" not in done.err


def test_a_correction_fits_the_models_readout_without_a_manifest(flat, tmp_path):
    """Or predict would refuse the model from then on."""
    model, _, _ = flat
    data, out = make_list(tmp_path), tmp_path / "out"
    run("predict", "--model", model, "--data", data, "-o", out)
    (out / "predictions.json").unlink()
    done = run("recalibrate", "--method", "isotonic", "--data", data, "--split", "training", "--pred", out, "--model", model, "--force")
    assert ", readout majority\n" in done.out
    run("predict", "--model", model, "--data", data, "-o", out)
    assert manifest(out)["correction"]["readout"] == "majority"


def test_judged_by_the_readout_that_was_predicted(flat, tmp_path):
    model, _, _ = flat
    data, out = make_list(tmp_path), tmp_path / "out"
    for readout in ("expected", "at-least:1"):
        run("predict", "--model", model, "--data", data, "-o", out, "--readout", readout)
        assert judged(data, out)["mr_ece"] == judged(data, out, "--readout", readout)["mr_ece"]
        assert judged(data, out)["mr_ece"] != judged(data, out, "--readout", "majority")["mr_ece"]
        assert f", readout {readout}\n" in run("evaluate", "--data", data, "--pred", out).out
        one = [w for r in "ABC" for w in ("--rater", f"{r}={tmp_path}/i1_{r}.nrrd")]
        assert f", readout {readout}\n" in run("evaluate", "--prob", out / "k1_levels.nrrd", *one).out
        assert ", readout majority\n" in run("evaluate", "--prob", out / "k1_levels.nrrd", *one, "--readout", "majority").out
        assert json.loads(run("recalibrate", "--method", "platt", "--data", data, "--split", "training", "--pred", out, "--force", "-o",
                              tmp_path / "r.json", "--json", "-").out)["before"]["readout"] == readout.split(":")[0]
    # A probability has been read out already.
    run("predict", "--model", model, "--data", data, "-o", out, "--no-levels", "--readout", "expected")
    refused("evaluate", "--data", data, "--pred", out, "--readout", "majority", says=["k0_prob.nrrd", "readout expected", "majority"])
    assert ", readout expected\n" in run("evaluate", "--data", data, "--pred", out).out


def test_only_what_a_manifest_names_is_removed(flat, tmp_path):
    model, _, _ = flat
    data, out = make_list(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "k0_uncertainty.nrrd").write_bytes(b"of a person")
    run("predict", "--model", model, "--data", data, "-o", out)
    assert (out / "k0_uncertainty.nrrd").read_bytes() == b"of a person"
    # Predicted in another way: what was written for the others is not judged any more, and goes when they are predicted again.
    one = json.loads(data.read_text("utf-8"))
    one = {"raters": one["raters"], "test": [case for split in ("training", "validation", "test") for case in one.get(split, []) if case["id"] == "k1"]}
    (tmp_path / "one.json").write_text(json.dumps(one))
    run("predict", "--model", model, "--data", tmp_path / "one.json", "-o", out, "--readout", "at-least:1")
    assert [entry["case"] for entry in manifest(out)["cases"]] == ["k1"] and (out / "k2_levels.nrrd").exists()
    assert [entry["case"] for entry in manifest(out)["superseded"]] == ["k0", "k2"]
    run("predict", "--model", model, "--data", data, "-o", out, "--readout", "at-least:1", "--no-levels")
    assert names(out) == {f"k{i}_{k}.nrrd" for i in range(3) for k in ("prob", "mask")} | {"predictions.json", "k0_uncertainty.nrrd"}
    assert manifest(out)["superseded"] == []


def test_an_interrupted_run_leaves_no_stale_names(flat, tmp_path):
    model, _, _ = flat
    data, out = make_list(tmp_path), tmp_path / "out"
    run("predict", "--model", model, "--data", data, "-o", out)
    # The second case takes long; then the program is killed.
    write_image(tmp_path / "i1.nrrd", np.tile(picture("large", 300, 300), (8, 8)))
    stamp = (out / "k0_prob.nrrd").stat().st_mtime_ns
    process = start("predict", "--model", model, "--data", data, "-o", out, "--flips", stdout=None, stderr=None)
    wait_until(lambda: (out / "k0_prob.nrrd").stat().st_mtime_ns != stamp or process.poll() is not None)
    process.kill()
    assert process.wait() != 0 and manifest(out)["cases"] == []
    done = run("evaluate", "--data", data, "--pred", out, check=False)
    assert done.code != 0 and "names no prediction for case k0" in done.err


@pytest.mark.parametrize("text", ["", "[]", "{", "my own predictions", json.dumps({"version": "1", "cases": []})])
def test_a_file_of_somebody_else_is_no_manifest(flat, tmp_path, text):
    model, image, _ = flat
    out = tmp_path / "out"
    out.mkdir()
    (out / "predictions.json").write_text(text)
    refused("predict", "--model", model, "--image", image, "-o", out, says=["predictions.json", "another folder"], folder=tmp_path)
    assert (out / "predictions.json").read_text("utf-8") == text


@pytest.mark.parametrize("file", ["../k0_prob.nrrd", "..", "/etc/passwd", "a/b.nrrd", "", 3])
def test_a_manifest_names_files_of_its_folder_only(flat, tmp_path, file):
    model, _, _ = flat
    data, out = make_list(tmp_path), tmp_path / "out"
    run("predict", "--model", model, "--data", data, "-o", out)
    said = manifest(out)
    said["cases"][0]["files"]["prob"] = file
    (out / "predictions.json").write_text(json.dumps(said))
    says = "names of files in this folder" if isinstance(file, str) else "must be a text"
    refused("predict", "--model", model, "--data", data, "-o", out, says=["predictions.json", says], folder=tmp_path)


# ---- one probability -------------------------------------------------------------------------------

def unsure_list(folder, shape=(40, 44)):
    """Cases whose raters disagree everywhere, so that a model that is too sure can be told."""
    folder.mkdir(exist_ok=True)
    cases = []
    for i in range(3):
        random = np.random.default_rng(i)
        image = picture(f"u{i}", *shape)
        write_image(folder / f"u{i}.nrrd", image)
        share = (image - image.min()) / (image.max() - image.min())
        labels = {r: str(write_image(folder / f"u{i}_{r}.nrrd", (random.random(shape) < share).astype(np.uint8))) for r in "ABC"}
        cases.append({"id": f"u{i}", "image": f"u{i}.nrrd", "label": labels})
    (folder / "list.json").write_text(json.dumps({"raters": list("ABC"), "validation": cases}))
    return folder / "list.json"


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_correcting_a_model_that_gives_one_probability(method, tmp_path):
    """Its levels are all or nothing: a temperature scales the one logit, and never makes the fitted cases less likely."""
    model, data = tmp_path / "m.safetensors", unsure_list(tmp_path / "data")
    write_model(model, outputs=1, loss="bce", strategy="soft").close()
    run("predict", "--model", model, "--data", data, "-o", tmp_path / "before")
    assert manifest(tmp_path / "before")["levels"] is False
    levels = read_image(tmp_path / "before" / "u0_levels.nrrd").array
    assert levels.shape[-1] == 4 and not levels[..., 1:3].any()
    done = run("recalibrate", "--method", method, "--data", data, "--pred", tmp_path / "before", "--model", model, "--json", tmp_path / "o.json", "--force")
    answer, stored = json.loads((tmp_path / "o.json").read_text("utf-8")), json.loads(read_metadata(model)["recalibration"])
    assert answer["after"]["nll"] <= answer["before"]["nll"] and ", one probability\n" in done.out
    assert stored["levels"] == 0 and stored["one_probability"] is True
    # Applied by predict, whatever the readout: all of them are that probability.
    for readout in ("majority", "expected", "at-least:3"):
        out = tmp_path / readout.replace(":", "")
        run("predict", "--model", model, "--data", data, "-o", out, "--readout", readout)
        assert judged(data, out)["nll"] == pytest.approx(answer["after"]["nll"], abs=1e-7)
        assert (out / "u0_levels.nrrd").exists() == (method == "temperature")
    if method == "temperature":
        after = read_image(out / "u0_levels.nrrd").array  # its levels stay all or nothing
        assert not after[..., 1:3].any() and np.array_equal(after[..., 3], read_image(out / "u0_prob.nrrd").array)
        p, q = levels[..., 3].astype(float).clip(1e-7, 1 - 1e-7), read_image(out / "u0_prob.nrrd").array.astype(float)
        scaled = np.log(p / (1 - p)) / stored["parameters"][0]
        assert np.abs(q - 1 / (1 + np.exp(-scaled))).max() < 1e-6
    # A correction that was fitted to levels would fill the ones between.
    (tmp_path / "t.json").write_text(json.dumps(correction("temperature", 4, [4.9])))
    refused("predict", "--model", model, "--data", data, "-o", tmp_path / "x", "--recalibration", tmp_path / "t.json",
            says=["t.json", "one probability"])


# ---- bad input -------------------------------------------------------------------------------------

def test_bad_models(flat, tmp_path):
    model, image, _ = flat
    out = tmp_path / "out"
    data = model.read_bytes()
    (tmp_path / "short.safetensors").write_bytes(data[:len(data) // 2])
    write_model(tmp_path / "new.safetensors", version="7.2.0").close()
    write_model(tmp_path / "loss.safetensors", loss="corn").close()
    for name, says in (("none", "none"), ("short.safetensors", "short.safetensors"),
                       ("new.safetensors", ["version 7.2.0", "update"]), ("loss.safetensors", "corn"), ("c01.nrrd", "c01.nrrd")):
        refused("predict", "--model", tmp_path / name, "--image", image, "-o", out, says=says, folder=tmp_path)


def test_files_of_torch_save_get_advice(flat, tmp_path):
    _, image, _ = flat
    for name, content in (("x.pth", b"PK\x03\x04" + bytes(60)), ("x.pt", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")):
        (tmp_path / name).write_bytes(content)
        says = [name, "torch.save()", "safetensors.torch.save_file(model.state_dict()"]
        refused("predict", "--model", tmp_path / name, "--image", image, "-o", tmp_path / "out", says=says, folder=tmp_path)


@pytest.mark.parametrize("like,spacing,says", [
    ([1.0] * 3, [2.0**-18] * 3, ["v.nrrd has voxels of 1 x 1 x 1 mm", "check the two spacings"]),
    ([1.0] * 3, [1e-300] * 3, ["m.safetensors", "0.000001 to 1000000 mm"]),
    ([1e-6, 1e5, 1e5], [16 / (2**52 + 1), 8 / 2**6, 8 / 2**6], ["m.safetensors", "0.000001 to 1000000 mm"])])
def test_spacings_of_too_many_voxels(tmp_path, like, spacing, says):
    """2^22 x 2^21 x 2^21 voxels are none where 64 bits are counted with; (2^52 + 1) x 2^6 x 2^6 are 4096."""
    model = tmp_path / "m.safetensors"
    write_model(model, arch="unet3d", spacing=like).close()
    model.write_bytes(with_metadata(model.read_bytes(), spacing=json.dumps(spacing)))
    write_image(tmp_path / "v.nrrd", picture("coarse", 8, 8, 16))
    refused("predict", "--model", model, "--image", tmp_path / "v.nrrd", "-o", tmp_path / "out", says=says)


def test_bad_images(flat, tmp_path):
    model, image, _ = flat
    out = tmp_path / "out"
    write_model(tmp_path / "m3.safetensors", arch="unet3d").close()
    write_image(tmp_path / "nan.nrrd", np.where(np.eye(20, 24) > 0, np.nan, 1).astype(np.float32))
    write_image(tmp_path / "zero.nrrd", np.zeros((20, 24), np.float32))
    write_image(tmp_path / "two.nrrd", picture("two", 20, 24))
    write_image(tmp_path / "moved.nrrd", picture("two", 20, 24), origin=[5, 0])
    write_model(tmp_path / "c2.safetensors", channels=2, normalization={"kind": "zscore"}).close()
    (tmp_path / "empty").mkdir()
    for words, says in (
            (("--model", model, "--image", tmp_path / "nan.nrrd"), ["nan.nrrd", "nan at voxel"]),
            (("--model", model, "--image", tmp_path / "zero.nrrd"), "zero everywhere"),
            (("--model", model, "--image", tmp_path / "none.nrrd"), "none.nrrd"),
            (("--model", model, "--image", tmp_path / "empty"), "empty"),
            (("--model", tmp_path / "m3.safetensors", "--image", image), ["one slice", "for volumes"]),
            (("--model", tmp_path / "c2.safetensors", "--image", image), ["1 channel, but", "takes 2"]),
            (("--model", tmp_path / "c2.safetensors", "--image", tmp_path / "two.nrrd", "--image", tmp_path / "moved.nrrd"), "origin")):
        refused("predict", *words, "-o", out, says=says)
    assert not out.exists() or not list(out.iterdir())
    assert not leftovers(tmp_path)


def test_wrong_usage(flat, tmp_path):
    model, image, _ = flat
    good = ["predict", "--model", model, "--image", image, "-o", tmp_path / "out"]
    refused("predict", "--image", image, says="--model")
    refused("predict", "--model", model, says="--image")
    refused(*good, "--data", "x.json", says="either")
    refused(*good, "--split", "test", says="--split")
    refused(*good, "--tile", "12,x", says="--tile")
    refused(*good, "--tile", "0", says="--tile")
    refused(*good, "--overlap", "1", says="overlap")
    refused(*good, "--readout", "best", says="--readout")
    refused(*good, "--readout", "at-least:4", says="number of raters")
    refused(*good, "--threshold", "2", says="threshold")
    refused(*good, "--recalibration", "r.json", "--no-recalibration", says="either")
    (tmp_path / "file").write_text("")
    refused("predict", "--model", model, "--image", image, "-o", tmp_path / "file", says="file")
    (tmp_path / "twice").mkdir()
    for end in ("png", "nrrd"):
        write_image(tmp_path / "twice" / f"a.{end}", np.full((9, 9), 3, np.uint8))
    refused("predict", "--model", model, "--image", tmp_path / "twice", says="same name")
