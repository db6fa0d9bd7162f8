# SPDX-License-Identifier: Apache-2.0
"""Several structures from training to judging: one network, files with a component per structure, a row per structure.

The data are made here: two halves of a disc and a vessel that touches both, outlined by three raters of different habits. What is found
about a structure must be what the same program finds where that structure is the only one.
"""
import csv
import json
import math
import signal
import struct

import numpy as np
import pytest

import rcn_volumes_twin as twin
from rcn_browser import Browser, needs_chromium, needs_pdftotext
from rcn_models import read_metadata
from rcn_testing import read_image, refused, run, start, write_nrrd

pytestmark = pytest.mark.slow

if "train" not in run("--help").out:
    pytest.skip("built without networks", allow_module_level=True)

RATERS = ["A", "B", "C"]
STRUCTURES = {"left": 1, "right": 2, "Gefäß oben": [5, 6]}
STRATEGIES = ["dirichlet-multinomial", "soft", "median", "rps"]
QUICK = ["--width", "8", "--depth", "2", "--epochs", "3", "--threads", "2", "--rate", "0.01", "--batch", "4", "--quiet"]


def make_case(folder, name, seed, size=40):
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    cy, cx, radius = *random.uniform(15, 25, 2), random.uniform(8, 11)
    disc, vessel = np.hypot(y - cy, x - cx), np.hypot(y - cy - radius, x - cx)
    soft = 1 / (1 + np.exp(disc - radius))
    image = random.normal(0, 0.1, (size, size)) + soft * np.where(x < cx, 0.5, 1.0) + 0.8 / (1 + np.exp(vessel - 4))
    label = {}
    for rater, habit in zip(RATERS, (-1, 0, 1.2)):
        labels = np.where(disc < radius + habit, np.where(x < cx + habit, 1, 2), 0)
        labels[vessel < 4 + habit] = 5 if seed % 2 else 6
        label[rater] = f"{name}_{rater}.nrrd"
        write_nrrd(folder / label[rater], labels.astype(np.uint8)[None])
    write_nrrd(folder / f"{name}.nrrd", image.astype(np.float32)[None])
    return {"id": name, "image": f"{name}.nrrd", "label": label}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("structures")
    content = {"raters": RATERS, "structures": STRUCTURES}
    for split, count, seed in (("training", 6, 0), ("validation", 6, 100), ("test", 5, 200)):
        content[split] = [make_case(folder, f"{split[:2]}{i}", seed + i) for i in range(count)]
    (folder / "dataset.json").write_text(json.dumps(content), "utf-8")
    return folder / "dataset.json"


def edited(data, change, name):
    content = json.loads(data.read_text("utf-8"))
    change(content)
    path = data.parent / name
    path.write_text(json.dumps(content), "utf-8")
    return path


@pytest.fixture(scope="module")
def models(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in STRATEGIES:
        run("train", "--data", data, "-o", folder / f"{name}.safetensors", "--strategy", name, *QUICK, "--no-recalibration",
            "--json", folder / f"{name}.json")
    return folder


@pytest.fixture(scope="module")
def predictions(data, models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("predictions")
    for name in STRATEGIES:
        run("predict", "--model", models / f"{name}.safetensors", "--data", data, "--split", "test", "-o", folder / name,
            "--json", folder / f"{name}.json", "--csv", folder / f"{name}.csv", "--quiet")
    return folder


def judge(data, folder, *more):
    return run("evaluate", "--data", data, "--split", "test", "--pred", folder, "--json", "-", *more).json


def beta_binomial(mean, raters, correlation):
    s = (1 - correlation) / correlation
    a, b = max(mean * s, 1e-300), max((1 - mean) * s, 1e-300)
    beta = lambda p, q: math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q)
    return [math.exp(math.log(math.comb(raters, k)) + beta(k + a, raters - k + b) - beta(a, b)) for k in range(raters + 1)]


def test_model_and_its_record(models):
    outputs = {"dirichlet-multinomial": 4, "soft": 4, "median": 4, "rps": 12}
    for name in STRATEGIES:
        said = read_metadata(models / f"{name}.safetensors")
        assert json.loads(said["structures"]) == [{"name": "left", "values": [1]}, {"name": "right", "values": [2]},
                                                  {"name": "Gefäß oben", "values": [5, 6]}]
        assert said["strategy"] == name and len(json.loads(said.get("loss_parameters", "[]"))) == (name == "dirichlet-multinomial")
        raw = (models / f"{name}.safetensors").read_bytes()
        header = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
        assert header["head.bias"]["shape"] == [outputs[name]]
        result = json.loads((models / f"{name}.json").read_text("utf-8"))
        each = result["validation"]["structures"]
        assert list(each) == list(STRUCTURES)
        for figure in ("mr_ece", "brier", "rps", "auc"):
            assert result["validation"][figure] == pytest.approx(np.mean([one[figure] for one in each.values()]))
        best = next(e for e in result["epochs"] if e["epoch"] == result["best"])
        assert result["validation"]["mr_ece"] == pytest.approx(best["mr_ece_expected"], abs=1e-6)
        assert best["rps"] == min(e["rps"] for e in result["epochs"])


def test_record_on_a_page(data, models, tmp_path):
    run("report", "--image", data.parent / "te0.nrrd", "--model", models / "dirichlet-multinomial.safetensors", "--structure", "right", "-o",
        tmp_path / "page.html", "--quiet")
    page = (tmp_path / "page.html").read_text("utf-8")
    for words in ("left, right", "Gefäß oben", "mean over structures"):
        assert words in page


def test_page_of_all_structures(data, models, tmp_path):
    """A row of volumes for each; pictures of the one that was named, or of the first."""
    words = ["report", "--image", data.parent / "te0.nrrd", "--model", models / "soft.safetensors", "--quiet", "-o"]
    run(*words, tmp_path / "all.html", "--slide", tmp_path / "s.svg")
    run(*words, tmp_path / "right.html", "--structure", "right")
    said = run("predict", "--model", models / "soft.safetensors", "--image", data.parent / "te0.nrrd", "-o", tmp_path, "--json", "-").json["cases"][0]
    for name, shown in (("all", "left"), ("right", "right")):
        page = (tmp_path / f"{name}.html").read_text("utf-8")
        table = page[page.index("All structures"):page.index("Everything below is about " + shown)]
        assert [table.index(f">{structure}<") > 0 for structure in STRUCTURES]
        for structure in STRUCTURES:
            volumes = said["volumes"][structure]
            assert volumes["sentence"].split(" ")[0] in table and f"{volumes['sentence'].split('say ')[1].split(' ')[0]} to " in table
        assert f"{shown}, " in page and said["volumes"][shown]["sentence"] in page
    assert "left: " in (tmp_path / "s.svg").read_text("utf-8")
    refused(*words, tmp_path / "none.html", "--structure", "middle", says="middle")


@needs_chromium
@needs_pdftotext
def test_page_of_all_structures_is_two_sheets(data, models, tmp_path):
    y, x, z = np.meshgrid(np.arange(60), np.arange(60), np.arange(9), indexing="ij")
    disc = 1 / (1 + np.exp(np.sqrt((y - 30) ** 2 + (x - 30) ** 2 + (4 * (z - 4)) ** 2) - 14))
    write_nrrd(tmp_path / "scan.nrrd", np.moveaxis(disc, -1, 0).astype(np.float32), spacing=(1, 1, 3))
    run("report", "--image", tmp_path / "scan.nrrd", "--model", models / "rps.safetensors", "-o", tmp_path / "p.html", "--quiet")
    with Browser() as browser:
        browser.open(tmp_path / "p.html")
        assert len(browser.sheets()) == 2


def test_default_strategy(data, models, tmp_path):
    """Nothing said and "ordinal" both mean the likelihood of all labels, to the same bits."""
    raw = [(models / "dirichlet-multinomial.safetensors").read_bytes()]
    for more in ([], ["--strategy", "ordinal"]):
        run("train", "--data", data, "-o", tmp_path / "m.safetensors", *QUICK, *more, "--no-recalibration", "--overwrite")
        raw.append((tmp_path / "m.safetensors").read_bytes())
    assert raw[0] == raw[1] == raw[2]


def test_files_of_a_prediction(data, models, predictions):
    manifest = json.loads((predictions / "dirichlet-multinomial" / "predictions.json").read_text("utf-8"))
    assert [s["name"] for s in manifest["structures"]] == list(STRUCTURES) and 0 < manifest["correlation"] < 1
    for name in STRATEGIES:
        folder = predictions / name
        said = json.loads((predictions / f"{name}.json").read_text("utf-8"))
        rows = list(csv.DictReader((predictions / f"{name}.csv").open(encoding="utf-8")))
        for number in range(5):
            shares = read_image(folder / f"te{number}_prob.nrrd").array
            assert shares.shape[-1] == 3 and shares.min() >= 0
            if name != "rps":
                assert shares.sum(-1).max() <= 1 + 1e-5
            rest = np.clip(1 - shares.sum(-1, keepdims=True), 0, 1)
            most = np.concatenate([rest, shares], -1).argmax(-1)
            labels = read_image(folder / f"te{number}_labels.nrrd").array
            assert labels.dtype == np.uint8 and (labels == np.array([0, 1, 2, 5])[most]).mean() > 0.999  # ties by rounding
            for c, structure in enumerate(STRUCTURES):
                volume = said["cases"][number]["volumes"][structure]["expected"]
                assert volume == pytest.approx(shares[..., c].sum(), rel=1e-5)
                row = next(r for r in rows if (r["case"], r["structure"], r["component"]) == (f"te{number}", structure, "all"))
                assert float(row["volume"]) == pytest.approx(volume)
        header = (folder / "te0_labels.nrrd").read_bytes().split(b"\n\n")[0].decode()
        assert "Segment2_Name:=Gefäß oben" in header and "Segment2_LabelValue:=5" in header
        assert (folder / "te0_Gefäß_oben_levels.nrrd").exists() == (name == "rps")  # others are made of shares
        assert not list(folder.glob("*_mask*"))


def test_levels_on_request(data, models, predictions, tmp_path):
    """They are the beta-binomial of share and correlation, and judging them is judging the shares."""
    model = models / "dirichlet-multinomial.safetensors"
    run("predict", "--model", model, "--data", data, "--split", "test", "-o", tmp_path, "--levels", "--quiet")
    correlation = json.loads((tmp_path / "predictions.json").read_text("utf-8"))["correlation"]
    for c, structure in enumerate(("left", "right", "Gefäß_oben")):
        shares = read_image(tmp_path / "te1_prob.nrrd").array[..., c].ravel()[::37]
        levels = read_image(tmp_path / f"te1_{structure}_levels.nrrd").array.reshape(-1, 4)[::37]
        expected = np.array([beta_binomial(float(p), 3, correlation) for p in shares])
        assert np.abs(levels - expected).max() < 2e-6
    one, other = judge(data, tmp_path), judge(data, predictions / "dirichlet-multinomial")
    for key in ("cases", "seconds"):
        one.pop(key), other.pop(key)
    assert one == other


def test_intervals_of_each_structure(data, models, predictions, tmp_path):
    """How far raters were from the maps of the validation cases is stored by name, and used for that structure."""
    listed = {c["id"]: c for split in ("validation", "test") for c in json.loads(data.read_text("utf-8"))[split]}

    def marked(id, structure):
        values = STRUCTURES[structure] if isinstance(STRUCTURES[structure], list) else [STRUCTURES[structure]]
        return np.array([np.isin(read_image(data.parent / f).array, values).sum() for f in listed[id]["label"].values()], float)

    for name in STRATEGIES:
        stored = json.loads(read_metadata(models / f"{name}.safetensors")["volumes"])
        assert set(stored) == set(STRUCTURES) and json.loads((models / f"{name}.json").read_text("utf-8"))["volume_cases"] == 6
        learned = run("predict", "--model", models / f"{name}.safetensors", "--data", data, "--split", "validation", "-o", tmp_path / name,
                      "--json", "-", "--quiet").json["cases"]
        judged = judge(data, predictions / name)["structures"]
        said = json.loads((predictions / f"{name}.json").read_text("utf-8"))["cases"]
        for structure, scores in stored.items():
            assert scores["cases"] == [entry["case"] for entry in learned] == [f"va{i}" for i in range(6)]
            for own, entry in zip(scores["scores"], learned):
                v = np.array(entry["volumes"][structure]["at_least"])
                assert np.allclose(own, [twin.score(v, x) for x in marked(entry["case"], structure)], rtol=1e-3)
            inside = []
            for entry in said:
                volumes = entry["volumes"][structure]
                low, high = twin.interval(np.array(volumes["at_least"]), twin.quantile(scores["scores"], 0.8))
                one, other = volumes["intervals"]
                assert np.allclose((one["low"], one["high"]), (low, high), rtol=1e-4) and other["low"] is None
                assert volumes["remark"] == "An interval of 95 % needs 19 validation cases; the model has 6."
                x = marked(entry["case"], structure)
                inside.append(np.mean((x >= low) & (x <= high)))
            assert judged[structure]["volumes"]["coverage"][0] | {"ci": 0} == {"level": 0.8, "inside": pytest.approx(np.mean(inside)), "cases": 5, "ci": 0}
    # A prediction of one structure, and a list of it, know that structure's.
    one = run("predict", "--model", models / "soft.safetensors", "--image", data.parent / "te0.nrrd", "--structure", "right", "-o",
              tmp_path / "one", "--json", "-", "--quiet").json["cases"][0]["volumes"]
    said = json.loads((predictions / "soft.json").read_text("utf-8"))["cases"][0]["volumes"]["right"]
    assert one["intervals"] == said["intervals"] and one["intervals"][0]["high"] > 0
    run("predict", "--model", models / "soft.safetensors", "--data", data, "--split", "test", "--structure", "right", "-o", tmp_path / "one", "--quiet")
    judged = run("evaluate", "--data", data, "--split", "test", "--pred", tmp_path / "one", "--structure", "right", "--json", "-").json
    alone = judge(data, predictions / "soft")["structures"]["right"]["volumes"]
    assert judged["volumes"]["coverage"] == alone["coverage"]


def test_a_correction_has_intervals_of_its_own(data, models, tmp_path):
    model = tmp_path / "m.safetensors"
    model.write_bytes((models / "soft.safetensors").read_bytes())
    run("predict", "--model", model, "--data", data, "--split", "validation", "-o", tmp_path, "--quiet")
    run("recalibrate", "--method", "temperature", "--data", data, "--pred", tmp_path, "--model", model, "--force", "--quiet")
    before = json.loads(read_metadata(model)["volumes"])
    after = json.loads(read_metadata(model)["recalibration"])["volumes"]
    assert set(before) == set(after) == set(STRUCTURES) and before == json.loads(read_metadata(models / "soft.safetensors")["volumes"])
    assert all(before[s]["cases"] == after[s]["cases"] and before[s]["scores"] != after[s]["scores"] for s in STRUCTURES)
    entry = run("predict", "--model", model, "--image", data.parent / "te0.nrrd", "-o", tmp_path, "--json", "-", "--quiet").json["cases"][0]
    for structure in STRUCTURES:
        volumes = entry["volumes"][structure]
        want = twin.interval(np.array(volumes["at_least"]), twin.quantile(after[structure]["scores"], 0.8))
        assert np.allclose((volumes["intervals"][0]["low"], volumes["intervals"][0]["high"]), want, rtol=1e-4)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_structure_is_an_ordinary_case(name, data, predictions, tmp_path):
    """Every figure of a structure, as the same program gives it for a list of that structure alone and maps of it alone."""
    together = judge(data, predictions / name, "--csv", tmp_path / "cases.csv")
    rows = list(csv.DictReader((tmp_path / "cases.csv").open(encoding="utf-8")))
    assert [r["structure"] for r in rows] == [s for s in STRUCTURES for _ in range(5)]
    correlation = json.loads((predictions / name / "predictions.json").read_text("utf-8"))["correlation"]
    for c, (structure, value) in enumerate(STRUCTURES.items()):
        alone = edited(data, lambda list_: (list_.pop("structures"), list_.update(value=value)), f"alone{c}.json")
        folder = tmp_path / structure
        folder.mkdir()
        for number in range(5):
            if name == "rps":
                maps = read_image(predictions / name / f"te{number}_{structure.replace(' ', '_')}_levels.nrrd").array
            else:
                share = read_image(predictions / name / f"te{number}_prob.nrrd").array[..., c]
                maps = share[..., None] if correlation == 1 else np.array(
                    [beta_binomial(float(p), 3, correlation) for p in share.ravel()], np.float32).reshape(*share.shape, 4)
            write_nrrd(folder / f"te{number}_{'prob' if maps.shape[-1] == 1 else 'levels'}.nrrd",
                       maps[..., 0] if maps.shape[-1] == 1 else maps, components=maps.shape[-1] > 1)
        single, own = judge(alone, folder), together["structures"][structure]
        for figure in ("mr_ece", "rater_ece", "brier", "nll", "rps", "level_nll", "auc", "auc_pairs", "dice", "soft_dice"):
            assert own[figure] == pytest.approx(single[figure], abs=2e-6), (structure, figure)
        assert own["voxels"] == single["voxels"] and own["levels"] == single["levels"]
        assert own["ci"]["mr_ece"] == pytest.approx(single["ci"]["mr_ece"], abs=1e-5)
    for figure in ("mr_ece", "auc", "dice"):
        assert together[figure] == pytest.approx(np.mean([s[figure] for s in together["structures"].values()]))
    assert together["ci"] is None


def test_table_and_comparison(data, predictions):
    out = run("evaluate", "--data", data, "--split", "test", "--pred", predictions / "dirichlet-multinomial", "--versus",
              predictions / "rps").out
    for word in (*STRUCTURES, "mean", "First minus second", "3 structures"):
        assert word in out
    answer = judge(data, predictions / "dirichlet-multinomial", "--versus", predictions / "rps")
    other = judge(data, predictions / "rps")
    for structure in STRUCTURES:
        difference = answer["difference"]["structures"][structure]["mr_ece"]
        assert difference["value"] == pytest.approx(
            answer["structures"][structure]["mr_ece"] - other["structures"][structure]["mr_ece"])
        assert difference["low"] <= difference["value"] <= difference["high"]
    assert answer["difference"]["mr_ece"]["value"] == pytest.approx(answer["mr_ece"] - other["mr_ece"])


def test_readouts(data, models, tmp_path):
    """Majority and at least t come from the levels of each structure, and are judged as what they are."""
    model = models / "dirichlet-multinomial.safetensors"
    run("predict", "--model", model, "--data", data, "--split", "test", "-o", tmp_path / "two", "--readout", "at-least:2", "--levels",
        "--quiet")
    for c, structure in enumerate(("left", "right", "Gefäß_oben")):
        levels = read_image(tmp_path / "two" / f"te0_{structure}_levels.nrrd").array
        read = read_image(tmp_path / "two" / "te0_prob.nrrd").array[..., c]
        assert np.abs(levels[..., 2:].sum(-1) - read).max() < 1e-6
    assert judge(data, tmp_path / "two")["readout"] == "at-least"
    run("predict", "--model", model, "--data", data, "--split", "test", "-o", tmp_path / "only", "--readout", "at-least:2", "--quiet")
    judge(data, tmp_path / "only")
    refused("evaluate", "--data", data, "--split", "test", "--pred", tmp_path / "only", "--readout", "expected", says="at-least:2")


def test_temperature(data, models, tmp_path):
    model = tmp_path / "m.safetensors"
    model.write_bytes((models / "dirichlet-multinomial.safetensors").read_bytes())
    pred, test = tmp_path / "pred", tmp_path / "test"
    run("predict", "--model", model, "--data", data, "--split", "validation", "-o", pred, "--quiet")
    run("predict", "--model", model, "--data", data, "--split", "test", "-o", test, "--quiet")
    for method in ("platt", "beta", "isotonic"):
        refused("recalibrate", "--method", method, "--data", data, "--pred", pred, "-o", tmp_path / "c.json",
                says=["contradict each other", "temperature"], folder=tmp_path)
    done = run("recalibrate", "--method", "temperature", "--data", data, "--pred", pred, "-o", tmp_path / "c.json", "--model", model,
               "--force", "--json", "-").json
    correction = json.loads((tmp_path / "c.json").read_text("utf-8"))
    assert correction["levels"] == 4 and correction["cases"] == [f"va{i}" for i in range(6)]
    assert list(done["before"]["structures"]) == list(STRUCTURES) and done["leave_one_out"]["mr_ece"] > 0
    shares = read_image(test / "te0_prob.nrrd").array.astype(float)
    means = np.concatenate([np.clip(1 - shares.sum(-1, keepdims=True), 0, 1), shares], -1) ** (1 / correction["parameters"][0])
    run("predict", "--model", model, "--data", data, "--split", "test", "-o", tmp_path / "new", "--quiet")
    new = read_image(tmp_path / "new" / "te0_prob.nrrd").array
    assert np.abs(new - (means / means.sum(-1, keepdims=True))[..., 1:]).max() < 1e-4
    one, other = judge(data, test, "--recalibration", tmp_path / "c.json"), judge(data, tmp_path / "new")
    for structure in STRUCTURES:
        assert one["structures"][structure]["mr_ece"] == pytest.approx(other["structures"][structure]["mr_ece"], abs=1e-5)
    assert one["before_recalibration"]["mr_ece"] == pytest.approx(judge(data, test)["mr_ece"])
    heads = tmp_path / "heads"
    run("predict", "--model", models / "rps.safetensors", "--data", data, "--split", "validation", "-o", heads, "--quiet")
    refused("recalibrate", "--method", "temperature", "--data", data, "--pred", heads, "-o", tmp_path / "d.json",
            says="separate levels of each structure")


def test_temperature_after_training(data, tmp_path):
    """Fitted to the labels of the validation cases, and stored only where it helps with cases left out."""
    run("train", "--data", data, "-o", tmp_path / "m.safetensors", *QUICK, "--json", tmp_path / "m.json")
    said, result = read_metadata(tmp_path / "m.safetensors"), json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert ("recalibration" in said) == (result["temperature"] is not None)
    if result["temperature"]:
        stored = json.loads(said["recalibration"])
        assert stored["levels"] == 4 and stored["parameters"][0] == result["temperature"]


def tensors(path):
    raw = path.read_bytes()
    return raw[8 + struct.unpack("<Q", raw[:8])[0]:]


def test_one_structure_with_a_name(data, tmp_path):
    """A list that names one structure gives the bits of a list that names none."""
    named = edited(data, lambda list_: list_.update(structures={"right": 2}), "named.json")
    plain = edited(data, lambda list_: (list_.pop("structures"), list_.update(value=2)), "plain.json")
    for name, path in (("named", named), ("plain", plain)):
        run("train", "--data", path, "-o", tmp_path / f"{name}.safetensors", *QUICK)
        run("predict", "--model", tmp_path / f"{name}.safetensors", "--data", path, "--split", "test", "-o", tmp_path / name, "--quiet")
    assert tensors(tmp_path / "named.safetensors") == tensors(tmp_path / "plain.safetensors")
    for path in (tmp_path / "plain").glob("*.nrrd"):
        assert path.read_bytes() == (tmp_path / "named" / path.name).read_bytes()
    one, other = judge(named, tmp_path / "named"), judge(plain, tmp_path / "plain")
    assert [one[k] for k in ("mr_ece", "rps", "auc")] == [other[k] for k in ("mr_ece", "rps", "auc")] and "structures" not in one


def test_start_from_one_structure(data, models, tmp_path):
    """The network is taken over but for its last layer."""
    alone = edited(data, lambda list_: (list_.pop("structures"), list_.update(value=1)), "start.json")
    run("train", "--data", alone, "-o", tmp_path / "one.safetensors", *QUICK)
    done = run("train", "--data", data, "-o", tmp_path / "three.safetensors", "--init", tmp_path / "one.safetensors",
               *[w for w in QUICK if w != "--quiet"])
    assert "its last layer is new, because the outputs differ" in done.err
    refused("train", "--data", data, "-o", tmp_path / "one.safetensors", "--init", tmp_path / "one.safetensors", *QUICK,
            says="write to another file", folder=tmp_path)
    refused("train", "--data", data, "-o", tmp_path / "x.safetensors", "--init", models / "rps.safetensors", "--strategy", "soft",
            *QUICK, says="keep its strategy", folder=tmp_path)


def test_goes_on(data, tmp_path):
    """Stopped after an epoch and gone on with, training comes to the same bits."""
    words = ["train", "--data", data, "-o", tmp_path / "m.safetensors", *QUICK[:-1], "--checkpoint-seconds", "0"]
    run(*words)
    whole = (tmp_path / "m.safetensors").read_bytes()
    process = start(*words, "--overwrite", text=True)
    for line in process.stderr:
        if line.startswith("Epoch 1/"):
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=60)
    run(*words, "--resume")
    assert (tmp_path / "m.safetensors").read_bytes() == whole


def test_what_is_refused(data, models, predictions, tmp_path):
    refused("train", "--data", data, "-o", tmp_path / "x.safetensors", "--strategy", "staple", *QUICK,
            says="for several use dirichlet-multinomial, soft, median or rps", folder=tmp_path)
    other = edited(data, lambda list_: list_.update(structures={"left": 1, "right": 2, "liver": 5}), "other.json")
    refused("predict", "--model", models / "soft.safetensors", "--data", other, "-o", tmp_path, says=["liver", "Gefäß oben"],
            folder=tmp_path)
    refused("evaluate", "--data", other, "--split", "test", "--pred", predictions / "soft", says="no prediction of the structure liver")
    refused("evaluate", "--data", data, "--split", "test", "--pred", predictions / "soft", "--plot", tmp_path / "x.svg",
            says="--structure NAME", folder=tmp_path)


def test_one_structure_of_several(data, models, predictions, tmp_path):
    """--structure: predict, evaluate and train as if it were the only one."""
    together = judge(data, predictions / "dirichlet-multinomial")
    own = judge(data, predictions / "dirichlet-multinomial", "--structure", "Gefäß oben", "--plot", tmp_path / "d.svg")
    same = together["structures"]["Gefäß oben"]
    assert all(own[key] == same[key] for key in same if key != "cases") and (tmp_path / "d.svg").exists() and "structures" not in own
    run("predict", "--model", models / "dirichlet-multinomial.safetensors", "--data", data, "--split", "test", "-o", tmp_path / "one",
        "--structure", "right", "--quiet")
    assert sorted(p.name for p in (tmp_path / "one").glob("te0*")) == ["te0_levels.nrrd", "te0_mask.nrrd", "te0_prob.nrrd"]
    prob = read_image(tmp_path / "one" / "te0_prob.nrrd").array
    assert np.array_equal(prob, read_image(predictions / "dirichlet-multinomial" / "te0_prob.nrrd").array[..., 1])
    alone = judge(data, tmp_path / "one", "--structure", "right")
    assert alone["mr_ece"] == pytest.approx(together["structures"]["right"]["mr_ece"], abs=1e-7)
    refused("evaluate", "--data", data, "--split", "test", "--pred", tmp_path / "one", says=["one structure", "--structure NAME"])
    refused("evaluate", "--data", data, "--split", "test", "--pred", predictions / "soft", "--structure", "liver", says=["liver", "left"])
    files = [w for r in RATERS for w in ("--rater", f"{r}={data.parent / f'te0_{r}.nrrd'}")]
    labels = [w for name, value in (("left", "1"), ("right", "2"), ("Gefäß oben", "5,6")) for w in ("--label", f"{name}={value}")]
    one = run("evaluate", "--prob", predictions / "soft" / "te0_prob.nrrd", *files, *labels, "--structure", "right", "--json", "-").json
    case = next(c for c in judge(data, predictions / "soft")["cases"] if (c["case"], c["structure"]) == ("te0", "right"))
    assert one["mr_ece"] == pytest.approx(case["mr_ece"]) and one["brier"] == pytest.approx(case["brier"])


def test_study(data, tmp_path):
    """A complete and honest table: a section for each structure, their mean, and the figures that evaluate finds."""
    words = ["study", "--data", data, "-o", tmp_path / "s", "--strategies", "ordinal,rps,median", *QUICK, "--no-recalibration"]
    run(*words)
    table = json.loads((tmp_path / "s" / "table.json").read_text("utf-8"))
    rows = [("dirichlet-multinomial", "majority"), ("dirichlet-multinomial", "expected"), ("rps", "majority"), ("rps", "expected"),
            ("median", None)]
    assert list(table["structures"]) == list(STRUCTURES)
    for section in (table, *table["structures"].values()):
        assert [(r["strategy"], r["readout"]) for r in section["rows"]] == rows
        values = [r["figures"]["box"]["mr_ece"] for r in section["rows"]]
        best = min(range(len(rows)), key=lambda i: values[i]["value"])
        assert [v["best"] for v in values] == [i == best for i in range(len(rows))]  # whoever wins
        assert not any(r["figures"]["disputed"]["mr_ece"]["best"] for r in section["rows"])
    for i, row in enumerate(table["rows"]):
        for region, figure in (("box", "mr_ece"), ("box", "auc"), ("band", "mr_ece"), ("box", "rps")):
            each = [s["rows"][i]["figures"][region][figure]["value"] for s in table["structures"].values()]
            assert row["figures"][region][figure]["value"] == pytest.approx(np.mean(each))
            assert row["figures"][region][figure]["low"] is None
    for strategy, readout in (("rps", "majority"), ("dirichlet-multinomial", "expected")):
        found = judge(data, tmp_path / "s" / "predictions" / strategy, "--readout", readout)["structures"]
        for structure, section in table["structures"].items():
            row = section["rows"][rows.index((strategy, readout))]["figures"]["box"]
            assert row["mr_ece"]["value"] == pytest.approx(found[structure]["mr_ece"], abs=1e-9)
            assert row["auc"]["value"] == pytest.approx(found[structure]["auc"], abs=1e-9)
    text = (tmp_path / "s" / "table.md").read_text("utf-8")
    page = (tmp_path / "s" / "report.html").read_text("utf-8")
    for name in STRUCTURES:
        assert f"## {name}" in text and name in page
    assert "## Mean over structures" in text and "no intervals" in text
    before = {p: p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file()}
    run(*words)  # nothing is left to do
    assert {p: p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file()} == before
    refused("study", "--data", data, "-o", tmp_path / "t", "--strategies", "staple", says="for several use")


def test_demo(tmp_path):
    out = run("demo", "--structures", "-o", tmp_path, "--epochs", "1", "--quiet", timeout=300).out
    content = json.loads((tmp_path / "cases" / "dataset.json").read_text("utf-8"))
    assert content["structures"] == {"left half": 1, "right half": 2, "vessel": 3} and len(content["raters"]) == 5
    labels = read_image(tmp_path / "cases" / "training1_Ada.nrrd").array
    assert set(np.unique(labels)) == {0, 1, 2, 3}
    for word in ("left half", "vessel", "mean", "dirichlet-multinomial", "median"):
        assert word in out
    assert (tmp_path / "study" / "report.html").exists()


def test_order_of_structures(data, predictions):
    """They are found by name, whatever their order in the list."""
    turned = edited(data, lambda list_: list_.update(structures=dict(reversed(STRUCTURES.items()))), "turned.json")
    one, other = (judge(path, predictions / "dirichlet-multinomial") for path in (data, turned))
    assert list(other["structures"]) == list(reversed(STRUCTURES))
    assert all(one["structures"][s]["mr_ece"] == other["structures"][s]["mr_ece"] for s in STRUCTURES)
