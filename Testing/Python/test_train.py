# SPDX-License-Identifier: Apache-2.0
"""train: learns from a list, stops and goes on to the same bits, and says what is wrong with its input.

The data are made here: discs of different contrast on noise, outlined by three raters, one of whom overlooks
the faint ones.
"""
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import numpy as np
import pytest

from rcn_models import read_metadata, with_metadata
from rcn_testing import read_image, read_nrrd, read_png, refused, reordered, run, small_disk, start, wait_until, write_nrrd, write_png

pytestmark = pytest.mark.slow

if "train" not in run("--help").out:
    pytest.skip("built without networks", allow_module_level=True)

RATERS = ["A", "B", "C"]


def quick(**changed):
    """A small network for a short time; quick(epochs=5) for another number of them."""
    options = {"width": 8, "depth": 2, "epochs": 3, "threads": 2, "rate": 0.01, "batch": 4, **changed}
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def make_case(folder, name, seed, size=48, shift=0.0, gain=1.0, raters=RATERS, empty=False, channels=1):
    """An image (PNG, 8 bit) with its raters; shift and gain make another scanner of it."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    image, masks = random.normal(60, 12, (size, size)), [np.zeros((size, size), np.uint8) for _ in raters]
    for _ in range(2):
        cy, cx, radius, contrast = *random.uniform(10, size - 10, 2), random.uniform(4, 8), random.uniform(30, 110)
        distance = np.hypot(y - cy, x - cx)
        image += contrast / (1 + np.exp((distance - radius) / 0.8))
        for r, mask in enumerate(masks):
            if not empty and (contrast > 60 or r < 2):
                mask |= (distance < radius + [-0.7, 0.0, 0.9][r % 3]).astype(np.uint8)
    image = np.clip(image * gain + shift, 0, 255).astype(np.uint8)
    write_png(folder / f"{name}.png", image if channels == 1 else np.stack([image] * 3, -1))
    label = {}
    for rater, mask in zip(raters, masks):
        write_png(folder / f"{name}_{rater}.png", mask * 255)
        label[rater] = f"{name}_{rater}.png"
    return {"id": name, "image": f"{name}.png", "label": label}


def make_list(folder, training=8, validation=3, test=2, name="dataset.json", first=0, **options):
    folder.mkdir(exist_ok=True)
    data = {"raters": options.get("raters", RATERS)}
    for split, count in (("training", training), ("validation", validation), ("test", test)):
        data[split] = [make_case(folder, f"{split[:2]}{first + i}", 100 * len(split) + first + i, **options) for i in range(count)]
    (folder / name).write_text(json.dumps(data))
    return folder / name


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_list(tmp_path_factory.mktemp("train") / "data")


def edited(data, change, name):
    """A list like another one, in the same folder, changed."""
    content = json.loads(data.read_text("utf-8"))
    change(content)
    path = data.parent / name
    path.write_text(json.dumps(content))
    return path


def rows(model):
    with open(str(model).replace(".safetensors", ".log.csv"), newline="") as file:
        return list(csv.DictReader(file))


def test_ties(tmp_path):
    """--tie background is a rule of the model: its readout, its predictions and the reference that judges them follow it."""
    data = make_list(tmp_path / "data", training=3, validation=2, test=1, raters=["A", "B"])
    readouts = {}
    for tie in ("foreground", "background"):
        model, out = tmp_path / f"{tie}.safetensors", tmp_path / tie
        run("train", "--data", data, "-o", model, *quick(epochs=1), "--readout", "majority", "--tie", tie)
        run("predict", "--model", model, "--data", data, "--split", "test", "-o", out)
        said = json.loads((out / "predictions.json").read_text("utf-8"))
        readouts[tie] = (said["readout"], said["tie"])
        levels, p = (read_image(out / f"te0_{kind}.nrrd").array for kind in ("levels", "prob"))
        assert np.abs(p - (levels[..., 1:].sum(-1) if tie == "foreground" else levels[..., 2])).max() < 1e-6
        words = ["evaluate", "--data", data, "--split", "test", "--pred", out, "--json", "-", "--threshold", "0"]
        answer = run(*words).json
        assert (answer["readout"], answer["tie"]) == readouts[tie] and run(*words, "--readout", "majority").json["mr_ece"] == answer["mr_ece"]
        # Everything is marked at the threshold 0: Dice counts the reference, in the box that is the whole of this image.
        masks = [read_png(data.parent / f"te0_{r}.png") > 0 for r in "AB"]
        marked = (masks[0] | masks[1] if tie == "foreground" else masks[0] & masks[1]).sum()
        assert answer["dice"] == pytest.approx(2 * marked / (marked + masks[0].size))
        assert run(*words, "--readout", "expected").json["dice"] == answer["dice"]
    assert readouts == {"foreground": ("majority", "foreground"), "background": ("more-than-half", "background")}


def test_learns(data, tmp_path):
    model = tmp_path / "m.safetensors"
    done = run("train", "--data", data, "-o", model, *quick(epochs=12), "--json", tmp_path / "m.json",
               "--figure", tmp_path / "m.svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "m.checkpoint.safetensors", "m.json", "m.log.csv", "m.safetensors", "m.svg"]
    log = rows(model)
    assert [int(r["epoch"]) for r in log] == list(range(1, 13))
    best = min(log, key=lambda r: float(r["rps"]))
    assert float(log[-1]["loss"]) < 0.75 * float(log[0]["loss"])
    assert float(best["auc"]) > 0.95 and float(best["dice"]) > 0.6 and float(best["rps"]) < 0.5 * float(log[0]["rps"])
    result = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert result["best"] == int(best["epoch"]) and result["steps"] == 12 * 2
    assert len(result["cases"]["training"]) == 8 and len(result["cases"]["validation"]) == 3
    # The best model judged once more, from its file, by its stored readout, and with the temperature where that helps.
    mr_ece = float(best["mr_ece_" + result["readout"]])
    if result["temperature"]:
        assert result["validation"]["mr_ece"] < mr_ece and "A temperature of" in done.err
    else:
        assert result["validation"]["mr_ece"] == pytest.approx(mr_ece, abs=1e-6)
    assert result["validation"]["auc"] == pytest.approx(float(best["auc"]), abs=2e-3)
    assert "Epoch 12/12" in done.err and "MR-ECE" in done.out


def test_maps_do_not_show_the_grid_of_the_network(tmp_path):
    """A U-Net after twenty-four steps: of the fine structure of its maps, what repeats every eight voxels (the stride of its coarsest level) is
    small. From transposed convolutions with independent random taps, a checkerboard, it is 0.35 to 0.4."""
    data = make_list(tmp_path / "data", test=12)
    run("train", "--data", data, "-o", tmp_path / "m.safetensors", *quick(epochs=12, depth=3), "--quiet")
    run("predict", "--model", tmp_path / "m.safetensors", "--data", data, "--split", "test", "-o", tmp_path / "out", "--quiet")
    fine = []
    for path in sorted((tmp_path / "out").glob("*_prob.nrrd")):
        smooth = probability = read_nrrd(path).array.reshape(48, 48).astype(float)
        assert np.ptp(probability) > 0.5
        for _ in range(2):  # binomial, along both axes
            smooth = np.pad(smooth, 1, mode="edge")
            smooth = (smooth[:-2] + 2 * smooth[1:-1] + smooth[2:]) / 4
            smooth = (smooth[:, :-2] + 2 * smooth[:, 1:-1] + smooth[:, 2:]) / 4
        fine.append(probability - smooth)
    grid = np.reshape(fine, (12, 6, 8, 6, 8)).mean(axis=(0, 1, 3))
    assert grid.std() < 0.2 * np.std(fine)


@pytest.mark.parametrize("strategy", ["random", "soft-gaussian", "coral"])
def test_strategies(strategy, data, tmp_path):
    model = tmp_path / "m.safetensors"
    run("train", "--data", data, "-o", model, *quick(), "--strategy", strategy, "--quiet")
    log = rows(model)
    assert len(log) == 3 and float(log[-1]["loss"]) < float(log[0]["loss"])


def test_patches_and_one_case_without_validation(data, tmp_path):
    one = edited(data, lambda d: (d.update(training=d["training"][:1]), d.pop("validation")), "one.json")
    done = run("train", "--data", one, "-o", tmp_path / "m.safetensors", *quick(), "--patch", "32x32", "--augment", "strong", "--patience", "3")
    assert "No validation cases" in done.err
    # Nothing validates: nothing ends it earlier, no epoch is the best.
    assert "ends earlier" not in done.err and "*" not in done.err
    assert "Trained on 1 case; the last epoch was kept" in done.out and "best after" not in done.out and "Too short" not in done.out
    assert rows(tmp_path / "m.safetensors")[-1]["rps"] == ""


def test_words_for_one_case(data, tmp_path):
    """One case is not "1 cases", and an interval that there is none of is not "– to –"."""
    one = edited(data, lambda d: d.update(training=d["training"][:1], validation=d["validation"][:1]), "one_each.json")
    done = run("train", "--data", one, "-o", tmp_path / "m.safetensors", *quick())
    assert "Trained on 1 case;" in done.out
    assert "– to" not in done.out and "MR-ECE (%)" in done.out


def test_several_labels_are_said_once(tmp_path):
    """Organs that become one without anybody having said so: the worst of surprises after a night of training."""
    data = make_list(tmp_path / "data", training=2, validation=1, test=0)
    for case_ in [*json.loads(data.read_text("utf-8"))["training"], *json.loads(data.read_text("utf-8"))["validation"]]:
        mask = np.zeros((48, 48), np.uint8)
        mask[10:20, 10:20], mask[25:30, 25:30] = 1, 2
        write_png(data.parent / case_["label"]["B"], mask)
    done = run("train", "--data", data, "-o", tmp_path / "m.safetensors", *quick(epochs=1))
    assert done.err.count("Several label values count as marked: 1 and 2 of B (") == 1


def test_missing_raters_and_volumes(tmp_path):
    """A 3-D network, volumes of two spacings, one rater missing here and there."""
    random = np.random.default_rng(1)
    cases = []
    for i in range(5):
        z, y, x = np.mgrid[:8, :24, :24]
        inside = (x - 12) ** 2 + (y - 12) ** 2 + (3 * (z - 4)) ** 2 < 64
        write_nrrd(tmp_path / f"{i}.nrrd", (random.normal(0, 10, inside.shape) + 50 * inside).astype(np.int16), spacing=(1, 1, 2 + i % 2))
        label = {}
        for r in RATERS[i % 2:]:
            write_nrrd(tmp_path / f"{i}{r}.nrrd", inside.astype(np.uint8), spacing=(1, 1, 2 + i % 2))
            label[r] = f"{i}{r}.nrrd"
        cases.append({"id": str(i), "image": f"{i}.nrrd", "label": label})
    (tmp_path / "list.json").write_text(json.dumps({"raters": RATERS, "training": cases[:4], "validation": cases[4:]}))
    run("train", "--data", tmp_path / "list.json", "-o", tmp_path / "m.safetensors", "--arch", "unet3d", *quick(batch=2), "--quiet",
        "--patch", "16x16x8", "--cache-gb", "0.00001")
    assert np.isfinite(float(rows(tmp_path / "m.safetensors")[-1]["rps"]))


def make_volumes(folder, spacing, orders=(), training=4, validation=2, shape=(10, 14, 16)):
    """A list of volumes with balls of different contrast; orders[i]: how the i-th is stored (axes from, flipped)."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(4)
    z, y, x = np.mgrid[:shape[0], :shape[1], :shape[2]]
    data = {"raters": RATERS, "training": [], "validation": []}
    for i in range(training + validation):
        center, radius = random.uniform(5, 8, 3), random.uniform(3, 5)
        distance = np.sqrt((z - center[0]) ** 2 + (y - center[1]) ** 2 + (1.3 * (x - center[2])) ** 2)
        image = random.normal(0, 40, shape) + 100 / (1 + np.exp(distance - radius)) + 5 * x
        order = orders[i] if i < len(orders) else ((0, 1, 2), (0, 0, 0))

        def write(name, array):
            array, geometry = reordered(array, *order, spacing=spacing, origin=(3, -4, 5))
            write_nrrd(folder / name, array, **geometry)
            return name
        case = {"id": f"v{i}", "image": write(f"v{i}.nrrd", image.astype(np.int16)), "label": {
            rater: write(f"v{i}{rater}.nrrd", (distance < radius + shift).astype(np.uint8)) for rater, shift in zip(RATERS, (-1, 0, 1))}}
        data["training" if i < training else "validation"].append(case)
    (folder / "list.json").write_text(json.dumps(data))
    return folder / "list.json"


VOLUMES = ["--arch", "unet3d", "--quiet", *quick(batch=2, depth=1, patch="16x16x8", samples=2)]


@pytest.mark.parametrize("normalize", ["zscore", "percentile"])
def test_validation_says_what_predict_and_evaluate_say(normalize, tmp_path):
    """At another spacing than the images': everybody normalizes the image as it was read."""
    data, model = make_volumes(tmp_path, (0.7, 0.7, 0.7)), tmp_path / "m.safetensors"
    run("train", "--data", data, "-o", model, *VOLUMES, "--spacing", "1x1x1", "--normalize", normalize, "--no-recalibration",
        "--json", tmp_path / "m.json")
    trained = json.loads((tmp_path / "m.json").read_text("utf-8"))["validation"]
    run("predict", "--model", model, "--data", data, "--split", "validation", "-o", tmp_path / "out", "--quiet")
    judged = run("evaluate", "--data", data, "--split", "validation", "--pred", tmp_path / "out", "--region", "box",
                 "--readout", "expected", "--json", "-").json
    for figure in ("mr_ece", "dice", "auc", "brier", "rps", "nll"):
        assert trained[figure] == pytest.approx(judged[figure], abs=1e-6), figure


ORDERS = [((0, 1, 2), (0, 0, 0)), ((2, 1, 0), (0, 0, 0)), ((0, 1, 2), (0, 0, 0)), ((1, 2, 0), (1, 0, 1)),
          ((0, 2, 1), (0, 1, 1)), ((0, 1, 2), (1, 1, 1))]


@pytest.mark.parametrize("arch", ["unet", "unet3d"])
def test_networks_learn_anatomy_and_not_storage_order(arch, tmp_path):
    """The same volumes stored otherwise make the same network, and it says the same about them."""
    straight, mixed = (make_volumes(tmp_path / name, (0.7, 0.8, 1.1), orders) for name, orders in (("s", ()), ("m", ORDERS)))
    options = ["--arch", arch, *quick(batch=2, depth=1, patch="16x14" if arch == "unet" else "16x16x8", samples=2)]
    run("train", "--data", straight, "-o", tmp_path / "s.safetensors", *options)
    done = run("train", "--data", mixed, "-o", tmp_path / "m.safetensors", *options)
    assert "4 cases are stored along other axes than LPS; they are turned" in done.err
    assert weights(tmp_path / "s.safetensors") == weights(tmp_path / "m.safetensors")
    metadata = read_metadata(tmp_path / "m.safetensors")
    assert metadata["axes"] == "LPS"
    assert json.loads(metadata["spacing" if arch == "unet3d" else "pixel_size"])[:2] == [0.7, 0.8]
    for data in (straight, mixed):
        run("predict", "--model", tmp_path / "m.safetensors", "--data", data, "-o", data.parent / "out", "--quiet")
    for i, order in enumerate(ORDERS):
        for kind in ("levels", "prob"):
            one, other = (read_nrrd(tmp_path / name / "out" / f"v{i}_{kind}.nrrd") for name in "sm")
            image = read_nrrd(tmp_path / "m" / f"v{i}.nrrd")
            turned, _ = reordered(one.array, *order, spacing=one.spacing, origin=one.origin)
            assert np.abs(turned - other.array).max() < 1e-5 and np.ptp(one.array) > 0.05
            assert np.allclose(other.origin, image.origin) and np.allclose(other.direction, image.direction)


@pytest.mark.parametrize("spacing", [float(np.float32(0.3)), float(np.float32(0.742188)), 0.1 + 0.2])  # as files have them
def test_resume_at_any_spacing(spacing, tmp_path):
    data = make_volumes(tmp_path, (spacing, 1, 1), training=2, validation=1)
    run("train", "--data", data, "-o", tmp_path / "m.safetensors", *VOLUMES)
    before = weights(tmp_path / "m.safetensors")
    run("train", "--data", data, "-o", tmp_path / "m.safetensors", *VOLUMES, "--resume")
    assert weights(tmp_path / "m.safetensors") == before


@pytest.mark.parametrize("value", [-1, 1e300, 2**63 - 1, "x"])
def test_checkpoints_are_not_believed(value, data, tmp_path):
    """Any number of a checkpoint may be anything: training goes on or says what is wrong."""
    model, checkpoint = tmp_path / "m.safetensors", tmp_path / "m.checkpoint.safetensors"
    options = ["--data", data, "-o", model, "--quiet"]
    run("train", *options, *quick(epochs=1))
    state = json.loads(read_metadata(checkpoint)["training"])
    for part in (state, state["pending"], *state["epochs"]):
        for key, old in part.items():
            part[key] = value if isinstance(old, (int, float)) and not isinstance(old, bool) else old
    changed = {**state, "protocol": {**state["protocol"], "batch": value}}
    for content in (state, changed):
        checkpoint.write_bytes(with_metadata(checkpoint.read_bytes(), training=json.dumps(content)))
        done = run("train", *options, *quick(epochs=1), "--resume", check=False)
        assert done.code in (0, 2) and done.err.count("\n") <= 2, (done.code, done.err)


def weights(path):
    """All bytes of a safetensors file but its header, which has times in it."""
    content = path.read_bytes()
    return content[8 + int.from_bytes(content[:8], "little"):]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed_is_uninterrupted(how, data, tmp_path):
    options = [*quick(epochs=8), "--checkpoint-seconds", "0"]
    whole, parts = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"
    run("train", "--data", data, "-o", whole, *options)
    child = start("train", "--data", data, "-o", parts, *options)
    while b"Epoch 2" not in child.stderr.readline():
        assert child.poll() is None
    child.send_signal(how)
    error = child.communicate(timeout=60)[1].decode()
    assert child.returncode == 128 + how
    assert "--resume" in error.splitlines()[-1]
    assert len(rows(parts)) < 8
    run("train", "--data", data, "-o", parts, *options, "--resume")
    assert weights(parts) == weights(whole)
    assert weights(tmp_path / "parts.checkpoint.safetensors") == weights(tmp_path / "whole.checkpoint.safetensors")
    keep = ("epoch", "rate", "loss", "rps", "mr_ece_majority", "mr_ece_expected", "auc", "dice", "best")
    assert [[r[k] for k in keep] for r in rows(parts)] == [[r[k] for k in keep] for r in rows(whole)]
    # A finished training that is resumed changes nothing.
    before = weights(parts)
    run("train", "--data", data, "-o", parts, *options, "--resume")
    assert weights(parts) == before
    refused("train", "--data", data, "-o", parts, *options, "--resume", "--alpha", "2", says=["another value of alpha", "--overwrite instead of --resume", "parts.checkpoint"])


def test_killed(data, tmp_path):
    """SIGKILL at random moments: every checkpoint is whole, and the end is that of an undisturbed training.
    RCN_KILLS=50 for a long soak."""
    random = np.random.default_rng(int(os.environ.get("RCN_KILLS_SEED", "1")))
    kills = int(os.environ.get("RCN_KILLS", "4"))
    options = [*quick(epochs=8), "--checkpoint-seconds", "0"]
    whole, parts = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"
    begin = time.monotonic()
    run("train", "--data", data, "-o", whole, *options, timeout=600)
    patience = 0.6 * (time.monotonic() - begin)  # so that no training gets through at once
    killed = 0
    while True:
        child = start("train", "--data", data, "-o", parts, *options, "--resume")
        try:
            child.communicate(timeout=random.uniform(0.02, patience) if killed < kills else 600)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            killed += 1
            continue
        assert child.returncode == 0
        assert weights(parts) == weights(whole)
        assert [r["rps"] for r in rows(parts)] == [r["rps"] for r in rows(whole)]
        if killed >= kills:
            return
        for file in tmp_path.glob("parts*"):  # it got through: once more from the beginning
            file.unlink()


def test_disk_full(data, tmp_path):
    """No room for the next checkpoint: the last one stays, and training goes on from it where there is room."""
    options = [*quick(epochs=3), "--checkpoint-seconds", "0"]
    run("train", "--data", data, "-o", tmp_path / "m.safetensors", *options)
    files = ["m.safetensors", "m.checkpoint.safetensors", "m.log.csv"]
    model, checkpoint = ((tmp_path / f).stat().st_size for f in files[:2])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with small_disk(tmp_path / "full", model + int(1.7 * checkpoint)) as disk:
        done = run("train", "--data", data, "-o", disk / "m.safetensors", *options, check=False)
        assert done.code == 1 and "No space left" in done.err.splitlines()[-1], done.err
        assert sorted(p.name for p in disk.iterdir()) == sorted(files)
        for name in files:
            (elsewhere / name).write_bytes((disk / name).read_bytes())
    run("train", "--data", data, "-o", elsewhere / "m.safetensors", *options, "--resume")
    assert weights(elsewhere / "m.safetensors") == weights(tmp_path / "m.safetensors")


def test_bad_input(data, tmp_path):
    def train(says, list_=data, *more, **options):
        refused("train", "--data", list_, "-o", tmp_path / "m.safetensors", *quick(), *more, says=says, folder=tmp_path, **options)
    train("training", edited(data, lambda d: d.pop("training"), "a.json"))

    def overlap(d):
        d["test"].append(dict(d["training"][0], id="again"))
    train(["training", "test", "again"], edited(data, overlap, "b.json"))

    def patient(d):
        d["training"][0]["patient"] = d["test"][0]["patient"] = "P7"
    train(["P7", "training (case tr0)", "test (case te0)"], edited(data, patient, "c.json"))

    def validated(d):
        d["training"][2]["patient"] = d["validation"][1]["patient"] = "P8"
    both = edited(data, validated, "h.json")
    train(["P8", "training (case tr2)", "validation (case va1)"], both)
    refused("recalibrate", "--data", both, "--pred", data.parent, "--method", "platt", "-o", tmp_path / "c.json", says="P8", folder=tmp_path)
    refused("study", "--data", both, "-o", tmp_path / "study", "--strategies", "rps", *quick(), says="P8")
    train("image", edited(data, lambda d: d["training"][1].pop("image"), "d.json"))
    train("label", edited(data, lambda d: d["training"][1].pop("label"), "e.json"))
    (data.parent / "bad.png").write_bytes(b"no image")
    bad = edited(data, lambda d: d["training"][1].update(image="bad.png"), "f.json")
    train(["tr1", "bad.png"], bad)
    empty = make_list(data.parent / "empty", 2, 1, 0, empty=True)
    train("the training cases have no marked voxel", empty)
    make_case(data.parent, "rgb", 5, channels=3)
    train(["tr1", "channels"], edited(data, lambda d: d["training"][1].update(image="rgb.png"), "g.json"))
    train("folds", data, "--folds", "50")
    train("--fold", data, "--fold", "1")
    train("--patch", data, "--patch", "32y32")
    train("--normalize", data, "--normalize", "window:1")
    train("slice", data, "--arch", "unet3d")
    refused("train", "--data", data, "-o", tmp_path / "m.bin", says=".safetensors", folder=tmp_path)
    refused("train", "--data", data, "-o", tmp_path / "no" / "m.safetensors", says="no", folder=tmp_path)
    done = run("train", "--data", bad, "-o", tmp_path / "skip.safetensors", *quick(), "--skip-bad", "--json", tmp_path / "s.json")
    assert "tr1" in done.err
    assert json.loads((tmp_path / "s.json").read_text("utf-8"))["cases"]["skipped"] == ["tr1"]


def tensors(path):
    """The bytes of every tensor of a safetensors file, by name."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    return {name: content[start + first:start + end] for name, entry in header.items() if name != "__metadata__"
            for first, end in [entry["data_offsets"]]}


@pytest.fixture(scope="module")
def plain_by(data, tmp_path_factory):
    """Two epochs of a strategy, with every other option as it is by itself."""
    models = {}

    def model_of(strategy):
        if strategy not in models:
            models[strategy] = tmp_path_factory.mktemp("plain") / "m.safetensors"
            run("train", "--data", data, "-o", models[strategy], *quick(epochs=2), "--strategy", strategy, "--quiet")
        return models[strategy]
    return model_of


@pytest.fixture(scope="module")
def plain(plain_by):
    """Of the paper's loss, which has the most options."""
    return plain_by("rps")


@pytest.mark.parametrize("strategy, option", [
    *(("rps", option) for option in (
        "--bce-weight 0", "--expected-weight 1", "--unimodal-weight 10", "--warmup 0.9", "--weight-decay 0.5", "--clip 0.001",
        "--schedule cosine", "--schedule constant", "--seed 5", "--norm instance", "--samples 2", "--augment none")),
    ("ordinal", "--rps-weight 0"), ("ordinal", "--rps-weight 20"), ("ce", "--rps-weight 5"), ("ce", "--expected-weight 1"),
    ("ce", "--unimodal-weight 10"), ("beta-binomial", "--rps-weight 5")])
def test_options_change_what_is_learned(strategy, option, data, plain_by, tmp_path):
    """Another value leads to other weights; the default, given explicitly, to the same."""
    model, plain = tmp_path / "m.safetensors", plain_by(strategy)
    run("train", "--data", data, "-o", model, *quick(epochs=2), "--strategy", strategy, *option.split(), "--quiet")
    assert tensors(model) != tensors(plain)
    rates = [float(row["rate"]) for row in rows(model)]
    if option == "--schedule constant":
        assert rates == [0.01, 0.01]
    elif option == "--schedule cosine":
        assert 0.01 > rates[0] > 2 * rates[1]
    elif option == "--warmup 0.9":
        assert rates[0] < float(rows(plain)[0]["rate"])


def test_temperature_at_the_end(data, tmp_path):
    """A model that promises too much or too little gets the temperature that recalibrate would find, and keeps it."""
    words = ["train", "--data", data, *quick(epochs=8), "--strategy", "median"]
    run(*words, "-o", tmp_path / "raw.safetensors", "--json", tmp_path / "raw.json", "--no-recalibration")
    run(*words, "-o", tmp_path / "m.safetensors", "--json", tmp_path / "m.json")
    raw, result = (json.loads((tmp_path / name).read_text("utf-8")) for name in ("raw.json", "m.json"))
    assert raw["temperature"] is None and tensors(tmp_path / "raw.safetensors") == tensors(tmp_path / "m.safetensors")
    assert abs(result["temperature"] - 1) > 0.1 and result["validation"]["mr_ece"] < raw["validation"]["mr_ece"]
    run("predict", "--model", tmp_path / "raw.safetensors", "--data", data, "--split", "validation", "-o", tmp_path / "val")
    run("recalibrate", "--method", "temperature", "--data", data, "--split", "validation", "--pred", tmp_path / "val", "-o", tmp_path / "r.json")
    fitted = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert fitted["parameters"][0] == pytest.approx(result["temperature"], rel=1e-6)


def test_averaged_weights_compete(data, tmp_path):
    """The log says which weights an epoch's figures are of; the model has them."""
    model = tmp_path / "m.safetensors"
    run("train", "--data", data, "-o", model, *quick(epochs=6), "--average", "0.3", "--schedule", "constant", "--quiet")
    plain = tmp_path / "plain.safetensors"
    run("train", "--data", data, "-o", plain, *quick(epochs=6), "--average", "0", "--schedule", "constant", "--quiet")
    log, last = rows(model), rows(plain)
    assert {row["averaged"] for row in last} == {"0"} and "1" in {row["averaged"] for row in log}
    for one, other in zip(log, last):
        assert one["loss"] == other["loss"]  # the course is the same
        if one["averaged"] == "1":
            assert float(one["rps"]) < float(other["rps"])
        else:
            assert one["rps"] == other["rps"]


def test_defaults_are_what_help_says(data, plain, tmp_path):
    model = tmp_path / "m.safetensors"
    words = ("--bce-weight 1 --expected-weight 0 --unimodal-weight 0 --warmup 0.3 --weight-decay 0 --schedule one-cycle --seed 0 "
             "--alpha 0.8 --norm batch --tie foreground --foreground 0.5 --augment mild --normalize zscore --strategy rps")
    run("train", "--data", data, "-o", model, *quick(epochs=2), *words.split(), "--quiet")
    assert tensors(model) == tensors(plain)


@pytest.mark.parametrize("strategy, weight", [("ordinal", "5"), ("beta-binomial-voxel", "5"), ("ce", "0")])
def test_default_of_rps_weight(strategy, weight, data, plain_by, tmp_path):
    model = tmp_path / "m.safetensors"
    run("train", "--data", data, "-o", model, *quick(epochs=2), "--strategy", strategy, "--rps-weight", weight, "--quiet")
    assert tensors(model) == tensors(plain_by(strategy))


def test_foreground_patches(data, tmp_path):
    """Of small patches, more lie around marks: the share changes what is learned, and nothing else does."""
    models = {}
    for share in ("0", "0.5", "1", ""):
        models[share] = tmp_path / f"{share}.safetensors"
        run("train", "--data", data, "-o", models[share], *quick(epochs=2), "--strategy", "median", "--patch", "16x16",
            *(["--foreground", share] if share else []), "--quiet")
    assert tensors(models[""]) == tensors(models["0.5"])
    assert len({str(tensors(models[share])) for share in ("0", "0.5", "1")}) == 3


def test_sigma_is_the_width_of_soft_labels(data, tmp_path):
    words = ["train", "--data", data, *quick(epochs=1), "--strategy", "soft-gaussian", "--quiet"]
    models = {sigma: tmp_path / f"{sigma}.safetensors" for sigma in ("", "1", "3")}
    for sigma, model in models.items():
        run(*words, "-o", model, *(["--sigma", sigma] if sigma else []))
    assert tensors(models[""]) == tensors(models["1"]) != tensors(models["3"])


def test_freeze_and_dropout(data, tmp_path):
    """A frozen encoder keeps its weights while the decoder learns; feature maps are left out of the decoder while training."""
    models = {}
    for name, rate, dropout, options in (("slow", 0.001, 0, ["--freeze", "encoder"]), ("fast", 0.01, 0, ["--freeze", "encoder"]),
                                         ("free", 0.01, 0, []), ("dropped", 0.01, 0.5, [])):
        path = tmp_path / f"{name}.safetensors"
        run("train", "--data", data, "-o", path, *quick(epochs=1, batch=8, rate=rate, dropout=dropout), *options,
            "--arch", "fpn-resnet18", "--quiet")
        models[name] = tensors(path)
    encoder = {name for name in models["slow"] if name.startswith("encoder.")}
    assert encoder and all(models["slow"][name] == models["fast"][name] for name in encoder)
    assert any(models["slow"][name] != models["fast"][name] for name in models["slow"].keys() - encoder)
    assert any(models["free"][name] != models["fast"][name] for name in encoder)
    assert models["free"] != models["dropped"]


def test_models_of_other_raters(data, plain, tmp_path):
    def rename(content):
        content["raters"] = ["X", "Y", "Z"]
        for split in ("training", "validation", "test"):
            for one in content[split]:
                one["label"] = dict(zip("XYZ", one["label"].values()))

    others = edited(data, rename, "others.json")
    words = ["train", "--data", others, "-o", tmp_path / "m.safetensors", "--init", plain, *quick(epochs=1), "--quiet"]
    refused(*words, says=["others.json has a rater X"])
    run(*words, "--other-raters")
    assert len(rows(tmp_path / "m.safetensors")) == 2


def test_time_and_patience(data, tmp_path):
    words = ["train", "--data", data, "--quiet"]
    run(*words, "-o", tmp_path / "m.safetensors", *quick(epochs=100000), "--minutes", "0.02")
    assert 0 < len(rows(tmp_path / "m.safetensors")) < 100000
    run(*words, "-o", tmp_path / "p.safetensors", *quick(epochs=60, rate=30), "--patience", "2")
    best = [row["best"] for row in rows(tmp_path / "p.safetensors")]
    assert len(best) < 60 and best[-2:] == ["0", "0"] and best[-3] == "1"


def test_the_course_is_chosen_and_forecast(data, tmp_path):
    """Without a word about its length: 2500 steps in epochs of 50, how long that takes, and that it may end earlier."""
    child = start("train", "--data", data, "-o", tmp_path / "m.safetensors", "--width", "8", "--depth", "1", "--threads", "1")
    lines = []
    while not lines or "every case is seen" not in lines[-1]:
        lines.append(child.stderr.readline().decode())
        assert lines[-1], lines
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert re.fullmatch(r"2500 steps in about [\d.]+ (s|min|h), 50 epochs: every case is seen \d+ times; "
                        r"it ends earlier when validation stops improving\.\n", lines[-1])


def test_too_short_a_training_says_so(data, tmp_path):
    words = ["train", "--data", data, "-o", tmp_path / "m.safetensors", "--norm", "instance", "--json", tmp_path / "m.json", "--overwrite"]
    done = run(*words, *quick(epochs=8))
    assert "Validation was still improving; train longer, for example --epochs 16\n" in done.out
    assert json.loads((tmp_path / "m.json").read_text("utf-8"))["still_improving"]
    # So few steps change nothing worth mentioning, and say nothing about more of them unless a better epoch came long before.
    done = run(*words, *quick(epochs=8, rate=1e-9))
    found = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert "Validation was still improving" not in done.out and found["still_improving"] == found["too_short"] == (found["best"] == 8)
    done = run(*words, *quick(epochs=1))
    found = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert found["still_improving"] and found["too_short"]
    assert "Too short to tell whether a longer training is better: it took 2 steps, and without --epochs and --minutes it takes up to 2500\n" in done.out
    # Small sets take small steps: 8 images of 2304 voxels are two steps of four.
    run(*words, "--epochs", "1", "--width", "8", "--depth", "1")
    assert json.loads((tmp_path / "m.json").read_text("utf-8"))["steps"] == 2


def test_slices_of_volumes_are_said(data, tmp_path):
    """Nobody asked for a network of slices, and one of volumes exists; whoever asks for it knows."""
    volumes = make_volumes(tmp_path / "volumes", (1, 1, 2))
    words = ["-o", tmp_path / "m.safetensors", "--overwrite", "--epochs", "1", "--width", "8", "--depth", "1", "--no-recalibration"]
    said = "The cases are volumes, and the network learns from their slices. Use --arch unet3d to learn from whole volumes."
    assert run("train", "--data", volumes, *words).err.count(said) == 1
    assert said not in run("train", "--data", volumes, *words, "--arch", "unet").err
    assert said not in run("train", "--data", data, *words).err


def blurred_discs(folder, cases=10, raters=5, side=80):
    """Noisy discs, whose outlines raters draw one voxel further out each."""
    random = np.random.default_rng(3)
    y, x = np.mgrid[:side, :side]
    content = {"raters": [f"R{r}" for r in range(raters)], "training": []}
    for i in range(cases):
        radius, center = random.uniform(.15, .25) * side, random.uniform(.4, .6, 2) * side
        distance = np.hypot(y - center[0], x - center[1]) - radius
        write_nrrd(folder / f"{i}.nrrd", (1 / (1 + np.exp(distance / 1.5)) + .3 * random.standard_normal((side, side))).astype(np.float32))
        for r in range(raters):
            write_nrrd(folder / f"{i}_{r}.nrrd", (distance < r - 2 + .7 * random.standard_normal()).astype(np.uint8))
        content["training"].append({"id": str(i), "image": f"{i}.nrrd", "label": {f"R{r}": f"{i}_{r}.nrrd" for r in range(raters)}})
    path = folder / "list.json"
    path.write_text(json.dumps(content))
    return path


def test_a_temperature_is_kept_only_where_it_predicts_better(tmp_path):
    """After two epochs probabilities are nearly constant: a temperature moves them to another bin, and MR-ECE alone would like that."""
    data, kept = blurred_discs(tmp_path), 0
    for seed, epochs in (0, 2), (1, 2), (0, 4), (5, 4):
        found = []
        for more in (), ("--no-recalibration",):
            words = ["--epochs", str(epochs), "--seed", str(seed), "--threads", "1", "--overwrite", "--json", tmp_path / "m.json"]
            run("train", "--data", data, "-o", tmp_path / "m.safetensors", *words, *more)
            found.append(json.loads((tmp_path / "m.json").read_text("utf-8")))
        corrected, plain = found[0]["validation"], found[1]["validation"]
        if found[0]["temperature"] is None:
            assert corrected["level_nll"] == plain["level_nll"] and corrected["mr_ece"] == plain["mr_ece"]
            continue
        kept += 1
        assert corrected["level_nll"] < plain["level_nll"] and corrected["mr_ece"] <= plain["mr_ece"]
        # A temperature hardly changes the order of voxels; cases with different ones have none in common.
        assert corrected["auc"] == pytest.approx(plain["auc"], abs=0.005)
        assert any("left out of the fit" in remark for remark in corrected["remarks"])
    assert kept < 4


def test_missing_raters_do_not_leave_the_choice_to_a_few_cases(data, tmp_path):
    """RPS is known of complete voxels only: one complete case of three must not choose the model alone."""
    def leave_out(content):
        for i, case in enumerate(content["validation"][1:]):
            case["label"].pop(sorted(case["label"])[i % 3])

    some = edited(data, leave_out, "some.json")
    done = run("train", "--data", some, "-o", tmp_path / "m.safetensors", *quick(), "--json", tmp_path / "m.json")
    assert "compared by the Brier score" in done.err and "validation Brier 0" in done.err and "validation RPS" not in done.err
    assert {row["score"] for row in rows(tmp_path / "m.safetensors")} == {"brier"}
    judged = json.loads((tmp_path / "m.json").read_text("utf-8"))["validation"]
    assert judged["level_cases"] == 1 and 0 < judged["level_voxels"] < judged["voxels"]
    assert any(f"in 1 of {judged['case_count']} cases" in remark for remark in judged["remarks"])
    done = run("train", "--data", data, "-o", tmp_path / "n.safetensors", *quick(epochs=1))
    assert "validation RPS 0" in done.err and {row["score"] for row in rows(tmp_path / "n.safetensors")} == {"rps"}


def test_splits(data, tmp_path):
    """Patients stay together; folds cover everything once."""
    def patients(d):
        for i, case in enumerate(d["training"] + d["validation"]):
            case["patient"] = f"P{i // 2}"
        d["test"] = []
    grouped = edited(data, patients, "patients.json")
    patient = {c["id"]: c["patient"] for split in ("training", "validation") for c in json.loads(grouped.read_text("utf-8"))[split]}
    seen = []
    for fold in range(3):
        run("train", "--data", grouped, "-o", tmp_path / "m.safetensors", *quick(epochs=1), "--folds", "3", "--fold", str(fold),
            "--json", tmp_path / "m.json", "--quiet", "--overwrite")
        cases = json.loads((tmp_path / "m.json").read_text("utf-8"))["cases"]
        assert not {patient[c] for c in cases["training"]} & {patient[c] for c in cases["validation"]}
        assert len(cases["training"]) + len(cases["validation"]) == 11
        seen += cases["validation"]
    assert sorted(seen) == sorted(patient)


def test_retraining(data, tmp_path):
    """Another scanner: darker and flatter. Ten cases and 60 steps bring the calibration back on held-out cases."""
    old, new = tmp_path / "old.safetensors", tmp_path / "new.safetensors"
    run("train", "--data", data, "-o", old, *quick(epochs=12), "--quiet", "--normalize", "fixed")
    shifted = make_list(tmp_path / "shifted", 10, 6, 0, first=50, shift=90, gain=0.45)
    run("train", "--data", shifted, "-o", new, "--init", old, "--epochs", "30", "--batch", "5", "--rate", "0.01", "--quiet",
        "--rehearse", data, "--json", tmp_path / "r.json", "--figure", tmp_path / "r.svg")
    result = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert result["before"]["mr_ece"] > 0.02
    assert result["validation"]["mr_ece"] < 0.5 * result["before"]["mr_ece"]
    assert result["validation"]["auc"] > result["before"]["auc"]
    assert [e["epoch"] for e in result["epochs"]][:2] == [0, 1]
    assert (tmp_path / "r.svg").read_text("utf-8").count("<svg") == 1
    # What does not fit the model is refused.
    never = tmp_path / "never.safetensors"
    other = edited(shifted, lambda d: (d.update(raters=["A", "B", "D"]),
                                       [c["label"].update(D=c["label"].pop("C")) for s in ("training", "validation") for c in d[s]]), "other.json")
    refused("train", "--data", other, "-o", never, "--init", old, says="D")
    fewer = edited(shifted, lambda d: (d.update(raters=["A", "B"]),
                                       [c["label"].pop("C") for s in ("training", "validation") for c in d[s]]), "fewer.json")
    refused("train", "--data", fewer, "-o", never, "--init", old, says=["3 raters", "2"])
    refused("train", "--data", shifted, "-o", never, "--init", old, "--strategy", "rps", says="needs 4")
    refused("train", "--data", shifted, "-o", never, "--init", old, "--arch", "fpn-resnet18", says="--arch")
    content = old.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"]["version"] = "99.0.0"
    text = json.dumps(header).encode()
    (tmp_path / "newer.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content[end:])
    refused("train", "--data", shifted, "-o", never, "--init", tmp_path / "newer.safetensors", says="99.0.0")


def test_what_ordinal_was_before(data, tmp_path):
    """A model of the strategy that had this name: it goes on with its own likelihood, and is told so when asked for another."""
    old, new = tmp_path / "old.safetensors", tmp_path / "new.safetensors"
    run("train", "--data", data, "-o", new, *quick(), "--strategy", "beta-binomial-voxel", "--quiet")
    assert read_metadata(new)["loss"] == "beta-binomial-voxel"
    old.write_bytes(with_metadata(new.read_bytes(), strategy="ordinal"))
    run("train", "--data", data, "-o", new, "--init", old, *quick(), "--quiet", "--overwrite")
    assert [read_metadata(new)[key] for key in ("loss", "strategy")] == ["beta-binomial-voxel"] * 2
    refused("train", "--data", data, "-o", tmp_path / "never.safetensors", "--init", old, "--strategy", "ordinal", says="needs 1")


def test_the_starting_model_competes(data, tmp_path):
    """Retrained in place and ruined: the file stays to the byte, with its correction, and the table says so."""
    model = tmp_path / "m.safetensors"
    run("train", "--data", data, "-o", model, *quick(epochs=8), "--quiet")
    before = model.read_bytes()
    ruin = ["--epochs", "1", "--batch", "4", "--rate", "30"]
    done = run("train", "--data", data, "-o", model, "--init", model, *ruin, "--json", tmp_path / "r.json")
    assert model.read_bytes() == before
    assert "no epoch was better" in done.out and "after (unchanged" in done.out and f"Unchanged: {model}" in done.out
    result = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert result["kept_start"] and result["best"] == 0 and [e["best"] for e in result["epochs"]] == [True, False]
    # To another file: a copy. With a link to it as well.
    (tmp_path / "link.safetensors").symlink_to("copy.safetensors")
    run("train", "--data", data, "-o", tmp_path / "link.safetensors", "--init", model, *ruin, "--quiet")
    assert (tmp_path / "copy.safetensors").read_bytes() == before and (tmp_path / "link.safetensors").is_symlink()
    # Without a case to compare on, nothing is replaced.
    one = edited(data, lambda d: (d.update(training=d["training"][:1]), d.pop("validation")), "alone.json")
    refused("train", "--data", one, "-o", model, "--init", model, *ruin, says="no validation cases", folder=tmp_path)
    assert model.read_bytes() == before


def test_nothing_is_overwritten(data, tmp_path):
    model = tmp_path / "m.safetensors"
    words = ["train", "--data", data, "-o", model, "--quiet"]
    run(*words, *quick(epochs=1))
    before = model.read_bytes()
    refused(*words, *quick(epochs=2), says=["m.safetensors already exists", "--resume", "--overwrite", "another -o"], folder=tmp_path)
    (tmp_path / "m.checkpoint.safetensors").unlink()
    refused(*words, *quick(epochs=2), "--resume", says=["no ", "m.checkpoint.safetensors to resume from", "--overwrite"], folder=tmp_path)
    assert model.read_bytes() == before
    run(*words, *quick(epochs=2), "--overwrite")
    assert len(rows(model)) == 2


def test_two_trainings_of_one_file(data, tmp_path):
    """The second one is told to wait, also under another name of the file; the first one is undisturbed, and a killed one in
    nobody's way. Nobody follows a link that lies under the name of a file to be written."""
    model, link, victim = tmp_path / "m.safetensors", tmp_path / "link.safetensors", tmp_path / "victim"
    link.symlink_to(model)
    victim.write_text("precious")
    for name in ("m.safetensors.part", "m.checkpoint.safetensors.part"):
        (tmp_path / name).symlink_to(victim)
    options = [*quick(epochs=200), "--checkpoint-seconds", "0"]
    first = start("train", "--data", data, "-o", model, *options)
    while b"Epoch 1" not in first.stderr.readline():
        assert first.poll() is None
    for name in (model, link):
        done = run("train", "--data", data, "-o", name, *options, "--resume", check=False)
        assert done.code != 0 and f"{name} is being trained already (by process {first.pid} on " in done.err, done.err
    while b"Epoch 3" not in first.stderr.readline():
        assert first.poll() is None
    first.kill()
    first.communicate()
    second = start("train", "--data", data, "-o", model, *options, "--resume")
    while b"Epoch 5" not in second.stderr.readline():
        assert second.poll() is None
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=60)
    assert victim.read_text() == "precious" and not (tmp_path / "m.safetensors.lock").exists()


def test_cache_keeps_its_limit(data, tmp_path):
    words = ["train", "--data", data, *quick(epochs=2), "--strategy", "svls", "--quiet"]
    run(*words, "-o", tmp_path / "all.safetensors", "--json", tmp_path / "all.json")
    most = json.loads((tmp_path / "all.json").read_text("utf-8"))["cache_bytes"]
    assert most > 11 * (48 * 48 * 5 + 65536)  # image, map, and where the marks are
    run(*words, "-o", tmp_path / "few.safetensors", "--json", tmp_path / "few.json", "--cache-gb", str(0.4 * most / 1e9))
    assert 0.2 * most < json.loads((tmp_path / "few.json").read_text("utf-8"))["cache_bytes"] <= 0.4 * most
    assert weights(tmp_path / "few.safetensors") == weights(tmp_path / "all.safetensors")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_waits_quietly(data, tmp_path):
    """Threads that wait leave the core to others, unless the user says how they are to wait."""
    for given, found in ((None, "passive"), ("active", "active")):
        environment = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
        if given:
            environment["OMP_WAIT_POLICY"] = given
        process = start("train", "--data", data, "-o", tmp_path / "m.safetensors", *quick(epochs=1000), "--overwrite", env=environment,
                        stdout=subprocess.DEVNULL)
        try:
            own = pathlib.Path(f"/proc/{process.pid}/environ")
            wait_until(lambda: f"OMP_WAIT_POLICY={found}".encode() in own.read_bytes() or process.poll() is not None)
            assert f"OMP_WAIT_POLICY={found}".encode() in own.read_bytes()
        finally:
            process.kill()
            process.wait()
