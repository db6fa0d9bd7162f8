# SPDX-License-Identifier: Apache-2.0
"""Volumes with intervals: predict, and what train stores for them, against NumPy."""
import csv
import io
import json
import re

import numpy as np
import pytest

import rcn_net
import rcn_volumes_twin as twin
from net_fill import numbers
from rcn_models import read_metadata, write_model
from rcn_testing import disc_list, read_image, refused, run, write_image, write_png

if rcn_net.library() is None:
    pytest.skip("built without networks", allow_module_level=True)

pytestmark = pytest.mark.slow  # trains networks

SCORES = [[0.2 + 0.1 * i, 0.3 + 0.05 * i, 0.9 - 0.03 * i] for i in range(20)]


def stored(scores, patients=None):
    count = len(scores)
    return json.dumps({"cases": [f"v{i}" for i in range(count)], "patients": patients or list(range(count)), "scores": scores})


def picture(*shape):
    """Two bright places on a noisy ground: the made-up network sees more than one component in it."""
    y, x = np.mgrid[:shape[-2], :shape[-1]]
    image = numbers("volumes", int(np.prod(shape))).reshape(shape)
    for cy, cx in ((12, 12), (30, 36)):
        image = image + 6 * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / 20)
    return image.astype(np.float32)


def predicted(folder, model, image, *words):
    done = run("predict", "--model", model, "--image", image, "-o", folder, "--json", "-", *words)
    entry, = done.json["cases"]
    return entry["volumes"], read_image(folder / f"{image.stem}_levels.nrrd").array, done


def check_volumes(volumes, levels, unit, size, scores):
    expected = twin.at_least(levels)
    assert volumes["unit"] == unit and volumes["levels"] == "predicted"
    assert np.allclose(volumes["at_least"], size * expected, rtol=1e-5)
    assert np.isclose(volumes["expected"], size * expected.mean(), rtol=1e-5)
    assert volumes["interval_cases"] == len(scores)
    for one, level in zip(volumes["intervals"], (0.8, 0.95)):
        q = twin.quantile(scores, level)
        assert one["level"] == level
        if np.isinf(q):
            assert one["low"] is None and one["high"] is None
        else:
            assert np.allclose((one["low"], one["high"]), size * np.array(twin.interval(expected, q)), rtol=1e-4)
    found = twin.components(levels)
    assert [c["component"] for c in volumes["components"]] == list(range(1, len(found) + 1))
    for one, (voxels, share, highest, likely) in zip(volumes["components"], found):
        assert one["voxels"] == voxels and np.isclose(one["volume"], size * share, rtol=1e-4)
        assert np.isclose(one["highest"], highest, atol=1e-6) and one["at_least"] == likely
        assert one["reaches"] == ("majority" if 2 * likely >= levels.shape[-1] - 1 else "any rater")


@pytest.mark.parametrize("count", [20, 4, 3])
def test_area_of_a_slice(tmp_path, count):
    write_model(tmp_path / "m.safetensors", volumes=stored(SCORES[:count])).close()
    write_image(tmp_path / "c.nrrd", picture(45, 52), spacing=[0.5, 0.7])
    volumes, levels, done = predicted(tmp_path, tmp_path / "m.safetensors", tmp_path / "c.nrrd")
    check_volumes(volumes, levels, "mm2", 0.35, SCORES[:count])
    assert volumes["components"] and len(volumes["components"][0]["ras"]) == 3
    sentence, remark = volumes["sentence"], volumes["remark"]
    if count == 20:
        assert "mm²; raters would say" in sentence and "80 % interval, 20 validation cases" in sentence and remark == ""
    elif count == 4:
        assert "raters would say" in sentence and remark == "An interval of 95 % needs 19 validation cases; the model has 4."
    else:
        assert "no interval" in sentence and remark == "An interval of 80 % needs 4 validation cases; the model has 3."


def test_milliliters_of_a_volume_and_patients(tmp_path):
    patients = [i // 2 for i in range(20)]  # ten of them
    write_model(tmp_path / "m.safetensors", volumes=stored(SCORES, patients)).close()
    write_image(tmp_path / "c.nrrd", picture(5, 45, 52), spacing=[1, 2, 3])
    volumes, levels, _ = predicted(tmp_path, tmp_path / "m.safetensors", tmp_path / "c.nrrd")
    pairs = [SCORES[2 * i] + SCORES[2 * i + 1] for i in range(10)]
    check_volumes(volumes, levels, "mL", 0.006, pairs)
    assert "10 validation patients" in volumes["sentence"]


def test_pixels_without_spacing_and_without_validation(tmp_path):
    write_model(tmp_path / "m.safetensors").close()
    write_png(tmp_path / "c.png", (picture(45, 52) * 20 + 60).clip(0, 255).astype(np.uint8))
    volumes, levels, done = predicted(tmp_path, tmp_path / "m.safetensors", tmp_path / "c.png")
    check_volumes(volumes, levels, "pixels", 1, [])
    assert volumes["sentence"].endswith(" pixels; no interval.") and all(c["ras"] is None for c in volumes["components"])
    assert volumes["remark"] == "There is no interval: no volumes of validation cases are stored with the model."
    text = run("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "c.png", "-o", tmp_path).out
    assert "There is no interval" in text and "80 % prediction interval" in text


def test_one_probability_is_a_binomial(tmp_path):
    write_model(tmp_path / "m.safetensors", outputs=1).close()
    write_image(tmp_path / "c.nrrd", picture(45, 52))
    volumes, levels, _ = predicted(tmp_path, tmp_path / "m.safetensors", tmp_path / "c.nrrd")
    p = levels[..., 3].astype(np.float64)
    binomial = np.stack([(1 - p) ** 3, 3 * p * (1 - p) ** 2, 3 * p ** 2 * (1 - p), p ** 3], -1)
    assert volumes["levels"] == "binomial" and np.allclose(volumes["at_least"], twin.at_least(binomial), rtol=1e-5)
    assert [c["voxels"] for c in volumes["components"]] == [c[0] for c in twin.components(binomial)]


def test_csv_has_a_row_for_each_case_and_component(tmp_path):
    write_model(tmp_path / "m.safetensors", volumes=stored(SCORES)).close()
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        write_image(tmp_path / "in" / f"{name}.nrrd", picture(45, 52))
    words = ("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "in", "-o", tmp_path / "out")
    entries = run(*words, "--json", "-").json["cases"]
    rows = list(csv.DictReader(io.StringIO(run(*words, "--csv", "-").out)))
    assert [r["case"] for r in rows if r["component"] == "all"] == ["a", "b"]
    for entry in entries:
        own = [r for r in rows if r["case"] == entry["case"]]
        volumes = entry["volumes"]
        assert len(own) == 1 + len(volumes["components"])
        assert np.isclose(float(own[0]["volume"]), volumes["expected"]) and own[0]["voxels"] == ""
        assert np.isclose(float(own[0]["low_80"]), volumes["intervals"][0]["low"])
        assert np.allclose([float(own[0][f"at_least_{t}"]) for t in (1, 2, 3)], volumes["at_least"])
        for row, one in zip(own[1:], volumes["components"]):
            assert np.isclose(float(row["volume"]), one["volume"]) and row["reaches"] == one["reaches"] and row["low_80"] == ""
            assert [int(row[a]) for a in "xyz"] == one["index"]


def test_what_is_stored_must_make_sense(tmp_path):
    write_image(tmp_path / "c.nrrd", picture(45, 52))
    for bad in ('{"cases": ["a"], "patients": [0], "scores": [[-1]]}', '{"cases": ["a"], "patients": [0], "scores": [["x"]]}',
                '{"cases": ["a", "b"], "patients": [0, 1], "scores": [[1]]}', '{"cases": ["a"], "patients": [-1], "scores": [[1]]}'):
        write_model(tmp_path / "m.safetensors", volumes=bad).close()
        refused("predict", "--model", tmp_path / "m.safetensors", "--image", tmp_path / "c.nrrd", "-o", tmp_path / "out",
                says="m.safetensors cannot be used")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small model with four validation cases, and the predictions of its validation and test cases without its correction."""
    folder = tmp_path_factory.mktemp("trained")
    data = disc_list(folder, counts=(6, 4, 5))
    done = run("train", "--data", data, "-o", folder / "m.safetensors", "--epochs", "3", "--width", "8", "--json", "-")
    return folder, data, done.json


def volumes_of_raters(folder, data, id):
    one, = [c for split in ("training", "validation", "test") for c in json.loads(data.read_text())[split] if c["id"] == id]
    return [int(read_image(folder / f).array.sum()) for f in one["label"].values()]


def test_training_stores_scores_of_the_validation_cases(trained, tmp_path):
    folder, data, result = trained
    metadata = read_metadata(folder / "m.safetensors")
    scores = json.loads(metadata["volumes"])
    assert scores["cases"] == ["c6", "c7", "c8", "c9"] and result["volume_cases"] == 4
    run("predict", "--model", folder / "m.safetensors", "--data", data, "--split", "validation", "-o", tmp_path, "--no-recalibration")
    for id, own in zip(scores["cases"], scores["scores"]):
        v = twin.at_least(read_image(tmp_path / f"{id}_levels.nrrd").array)
        assert np.allclose(own, [twin.score(v, x) for x in volumes_of_raters(folder, data, id)], rtol=1e-3)
    if "recalibration" in metadata:
        assert json.loads(metadata["recalibration"])["volumes"]["cases"] == scores["cases"]


def test_without_validation_cases_nothing_is_stored(trained, tmp_path):
    folder, data, _ = trained
    listed = json.loads(data.read_text())
    listed["validation"] = []
    (folder / "none.json").write_text(json.dumps(listed))
    done = run("train", "--data", folder / "none.json", "-o", tmp_path / "m.safetensors", "--epochs", "1", "--width", "8",
               "--split", "0", "--json", "-")
    assert done.json["volume_cases"] == 0 and "volumes" not in read_metadata(tmp_path / "m.safetensors")


def write_twin_of(scores, path):
    """Validation cases that are not among those that are judged, so that coverage is known."""
    path.write_text(json.dumps({**json.loads(path.read_text()), "volumes": json.loads(stored(scores)), "correction": None}))


def test_evaluate_is_numpy(trained, tmp_path):
    folder, data, _ = trained
    words = ("evaluate", "--data", data, "--split", "test", "--pred", tmp_path, "--json", "-")
    run("predict", "--model", folder / "m.safetensors", "--data", data, "--split", "test", "-o", tmp_path, "--no-recalibration")
    write_twin_of(SCORES, tmp_path / "predictions.json")
    judged = run(*words).json["volumes"]
    crps, difference, inside = [], [], ([], [])
    for id in (f"c{i}" for i in range(10, 15)):
        v = twin.at_least(read_image(tmp_path / f"{id}_levels.nrrd").array)
        marked = np.array(volumes_of_raters(folder, data, id), float)
        crps.append(np.mean([twin.crps(v, x) for x in marked]))
        difference.append(v.mean() - marked.mean())
        for own, level in zip(inside, (0.8, 0.95)):
            low, high = twin.interval(v, twin.quantile(SCORES, level))
            own.append(np.mean((marked >= low) & (marked <= high)))
    bias, deviation = np.mean(difference), np.std(difference, ddof=1)
    assert judged["unit"] == "mm2" and judged["cases"] == 5 and judged["interval_cases"] == 20 and judged["remark"] == ""
    assert np.isclose(judged["crps"], np.mean(crps), rtol=1e-5) and np.isclose(judged["bias"], bias, rtol=1e-4, atol=1e-4)
    assert np.isclose(judged["deviation"], deviation, rtol=1e-4)
    assert np.allclose(judged["limits_of_agreement"], [bias - 1.96 * deviation, bias + 1.96 * deviation], rtol=1e-3, atol=1e-3)
    for one, own in zip(judged["coverage"], inside):
        assert np.isclose(one["inside"], np.mean(own)) and one["cases"] == 5
    # Case by case, and with intervals over patients: at least Student's t of the cases' means, wider where they are skewed.
    assert judged["curvas_cases"] == 5 and judged["ci"]["crps"][0] <= judged["crps"] <= judged["ci"]["crps"][1]
    half = 2.7764 * deviation / np.sqrt(5)
    low, high = judged["ci"]["bias"]
    assert bias - 1.5 * half < low < bias - half + 0.01 and bias + half - 0.01 < high < bias + 1.5 * half
    rows = run(*words).json["cases"]
    assert {(r["volume_unit"], r["split"]) for r in rows} == {("mm2", "test")}
    assert np.isclose(np.mean([r["curvas_crps"] for r in rows]), judged["curvas_crps"])
    assert np.allclose([[r["inside_80"], r["inside_95"]] for r in rows], np.transpose(inside))
    for one in judged["coverage"]:
        assert one["ci"] is None or one["ci"][0] <= one["inside"] <= one["ci"][1]
    assert re.search(r"volume CRPS \(mm²\) +[\d.]+ +[\d.]+ to [\d.]+ ", run(*words[:-2]).out)
    # Another region judges the same volumes; a case behind the intervals is not tested on itself.
    assert run(*words, "--region", "disputed").json["volumes"] == judged
    own = json.loads(stored(SCORES))
    own["cases"][3] = "c12"
    manifest = tmp_path / "predictions.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "volumes": own}))
    again = run(*words).json["volumes"]
    assert again["coverage"][0]["cases"] == 4 and "1 case is used for the intervals" in again["remark"]
    manifest.unlink()  # nobody knows the validation cases
    alone = run(*words).json["volumes"]
    assert alone["coverage"][0]["inside"] is None and "no interval" in alone["remark"] and alone["crps"] == judged["crps"]


def test_volumes_of_two_models_are_compared(trained, tmp_path):
    folder, data, _ = trained
    for name, more in (("a", ["--no-recalibration"]), ("b", ["--no-recalibration"])):
        run("predict", "--model", folder / "m.safetensors", "--data", data, "--split", "test", "-o", tmp_path / name, *more)
        write_twin_of(SCORES, tmp_path / name / "predictions.json")
    for i in range(10, 15):  # the second says nothing where the first is unsure
        levels = read_image(tmp_path / "b" / f"c{i}_levels.nrrd").array.copy()
        levels[levels[..., 0] > 0.2] = [1, 0, 0, 0]
        write_image(tmp_path / "b" / f"c{i}_levels.nrrd", levels, components=True)
    words = ("evaluate", "--data", data, "--split", "test", "--pred", tmp_path / "a", "--versus", tmp_path / "b")
    answer, text = run(*words, "--json", "-").json, run(*words).out
    first, second = ([r for r in answer["cases"] if r["model"] == str(tmp_path / n)] for n in "ab")
    for key, of in (("volume_crps", lambda r: r["volume_crps"]), ("curvas_crps", lambda r: r["curvas_crps"]),
                    ("volume_bias", lambda r: r["volume"] - r["raters_volume"]), ("volume_coverage_80", lambda r: r["inside_80"])):
        one = answer["difference"][key]
        assert np.isclose(one["value"], np.mean([of(a) - of(b) for a, b in zip(first, second)]), atol=1e-9)
        assert one["low"] is None or one["low"] <= one["value"] <= one["high"]
    assert 0 < answer["difference"]["volume_bias"]["p"] < 0.05  # it lacks something in every case
    assert "volume CRPS (mm²)" in text.split("First minus second")[1]
    same = run(*words[:-1], tmp_path / "a").out.split("First minus second")[1]
    assert re.search(r"volume bias \(mm²\) +0.000", same) and "-0.0000" not in same and "-0.000 " not in same


def test_recalibrating_stores_its_own_scores(trained, tmp_path):
    """Each case corrected by a fit to the others, in the correction; those without it, in the model."""
    folder, data, _ = trained
    model = tmp_path / "m.safetensors"
    model.write_bytes((folder / "m.safetensors").read_bytes())
    run("predict", "--model", model, "--data", data, "--split", "validation", "-o", tmp_path, "--no-recalibration")
    run("recalibrate", "--method", "temperature", "--data", data, "--pred", tmp_path, "--model", model, "-o", tmp_path / "t.json",
        "--replace", "--force")
    metadata = read_metadata(model)
    correction = json.loads(metadata["recalibration"])
    before, after = json.loads(metadata["volumes"]), correction["volumes"]
    assert json.loads((tmp_path / "t.json").read_text())["volumes"] == after
    assert before["cases"] == after["cases"] == ["c6", "c7", "c8", "c9"] and before["scores"] != after["scores"]
    for words, scores in (((), after["scores"]), (("--no-recalibration",), before["scores"])):
        entry = run("predict", "--model", model, "--data", data, "--split", "test", "-o", tmp_path, "--json", "-", *words).json["cases"][0]
        v = twin.at_least(read_image(tmp_path / "c10_levels.nrrd").array)
        one = entry["volumes"]["intervals"][0]
        assert np.allclose((one["low"], one["high"]), twin.interval(v, twin.quantile(scores, 0.8)), rtol=1e-4)


def test_a_map_that_is_no_probability_elsewhere_has_no_volume(tmp_path):
    mask = np.zeros((40, 40), np.uint8)
    mask[18:22, 18:22] = 1
    probability = mask.astype(np.float32) * 0.75
    probability[0, 0] = np.nan
    write_image(tmp_path / "m.nrrd", mask)
    write_image(tmp_path / "p.nrrd", probability)
    done = run("evaluate", "--prob", tmp_path / "p.nrrd", "--rater", f"A={tmp_path / 'm.nrrd'}", "--rater", f"B={tmp_path / 'm.nrrd'}",
               "--margin", "5", "--json", "-").json
    assert done["mr_ece"] > 0 and done["volumes"]["crps"] is None and "1 map is not a probability everywhere" in done["volumes"]["remark"]
