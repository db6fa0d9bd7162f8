# SPDX-License-Identifier: Apache-2.0
"""rater-consensus study: all strategies under one protocol, resumed, refused, and judged as evaluate judges."""
import json
import re
import shutil
import signal

import numpy as np
import pytest

import rcn_net
from rcn_models import read_metadata, with_metadata
from rcn_testing import disc_list, leftovers, refused, run, start, wait_until

pytestmark = pytest.mark.slow

if rcn_net.library() is None:
    pytest.skip("built without networks", allow_module_level=True)

# Small enough for a second per training; the rate is high because there are few steps.
PROTOCOL = ["--epochs", "3", "--width", "8", "--depth", "2", "--batch", "4", "--rate", "0.01", "--augment", "flips"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    data = disc_list(folder)
    done = run("study", "--data", data, "-o", folder / "out", "--strategies", "rps,median", *PROTOCOL)
    return folder, data, done


def cell(table, strategy, readout, region, figure):
    row, = [r for r in table["rows"] if r["strategy"] == strategy and r["readout"] == readout]
    return row["figures"][region][figure]


def test_files_and_table(study):
    folder, _, done = study
    out = folder / "out"
    assert {p.name for p in out.iterdir()} == {"models", "predictions", "study.json", "table.md", "table.json", "report.html"}
    assert {p.name for p in (out / "models").iterdir()} == {f"{s}.{e}" for s in ("rps", "median") for e in ("safetensors", "log.csv", "json")}
    assert {p.name for p in (out / "predictions" / "rps").iterdir()} == {"predictions.json", *(f"c{i}_levels.nrrd" for i in range(11, 16))}
    table = json.loads((out / "table.json").read_text("utf-8"))
    assert [(r["strategy"], r["readout"]) for r in table["rows"]] == [("rps", "majority"), ("rps", "expected"), ("median", None)]
    assert table["test_cases"] == 5 and table["raters"] == ["A", "B", "C"]
    columns = [(g, f) for g in ("box", "band", "disputed", "whole") for f in ("mr_ece",)] + [("box", f) for f in ("auc", "dice", "dice_pooled", "brier", "rps", "level_nll", "level_ece", "level_ece_max", "mr_ece_debiased")]
    for region, figure in columns:
        cells = [row["figures"][region][figure] for row in table["rows"]]
        values = [c["value"] for c in cells]
        best = max(values) if figure in ("auc", "dice", "dice_pooled") else min(values)
        # Voxels chosen by the raters' own answers describe a model and rank none.
        assert [c["best"] for c in cells] == [region != "disputed" and i == values.index(best) for i in range(3)]
        if figure in ("rps", "level_nll", "level_ece", "level_ece_max"):  # of the levels, whatever is read out of them
            assert values[0] == values[1]
        for one in cells:
            if figure == "mr_ece_debiased":  # has no interval
                assert one["low"] is None
                continue
            assert one["low"] <= one["value"] + 1e-3 and one["value"] - 1e-3 <= one["high"]
            assert not (one["best"] and one["tie"])
    for row in table["rows"]:  # and what a diagram shows
        assert [t["at_least"] for t in row["level_calibration"]["t"]] == [1, 2, 3] and len(row["level_shares"]["unsure"]) == 4
        assert row["mr_kde_ece"] > 0 and row["level_cases"] == 5
        assert row["level_calibration"]["max"] == pytest.approx(row["figures"]["box"]["level_ece_max"]["value"], rel=1e-9)
    markdown = (out / "table.md").read_text("utf-8")
    assert markdown.count("**") == 2 * (len(columns) - 1) and "rps (expected)" in markdown and "not for clinical use" in markdown
    assert "rps (majority)" in done.out and "report.html" in done.out
    html = (out / "report.html").read_text("utf-8")
    assert html.count("Reliability of levels: ") == 2 and html.count(": how many raters mark a voxel") == 2  # once a strategy
    assert html.count("Reliability diagram: ") == 3 and "For research, not for clinical use." in html
    assert not re.search(r"https?:|\bsrc=|url\(", html) and html.count("<script") == 1  # self-contained
    # Three cases side by side: the image, the raters, two strategies; the image is there once.
    assert html.count("<image") == 3 and html.count("<use") == 12 and len(re.findall(r"<h3>c\d+</h3>", html)) == 3
    assert "volume CRPS (mm²)" in markdown and "CURVAS CRPS (mm²)" in done.out and "<h2>Volumes</h2>" in html
    assert not leftovers(folder)


def test_volumes_are_those_of_evaluate(study):
    folder, data, _ = study
    for row in json.loads((folder / "out" / "table.json").read_text("utf-8"))["rows"]:
        done = run("evaluate", "--data", data, "--split", "test", "--pred", folder / "out" / "predictions" / row["strategy"], "--json", "-").json
        assert row["volumes"] == done["volumes"] and done["volumes"]["crps"] > 0 and done["volumes"]["curvas_crps"] > 0
        assert done["volumes"]["coverage"][0]["inside"] is None  # three validation cases


def test_models_know_how_they_did_on_test_cases(study, tmp_path):
    """As evaluate records it, by each model's own readout."""
    folder, data, _ = study
    for strategy in ("rps", "median"):
        model = folder / "out" / "models" / f"{strategy}.safetensors"
        known = json.loads(read_metadata(model)["calibration"])
        assert set(known) == {"validation", "test"} and known["test"]["cases"] == 5 and known["test"]["region"] == "box"
        again = tmp_path / model.name
        again.write_bytes(with_metadata(model.read_bytes(), calibration=json.dumps({"validation": known["validation"]})))
        run("evaluate", "--data", data, "--split", "test", "--pred", folder / "out" / "predictions" / strategy, "--record", again)
        assert json.loads(read_metadata(again)["calibration"]) == known
    html = (folder / "page.html")
    image = next(c["image"] for c in json.loads(data.read_text())["test"])
    run("report", "--image", data.parent / image, "--model", folder / "out" / "models" / "rps.safetensors", "-o", html)
    assert "On 5 test cases" in html.read_text("utf-8") and "not recorded" not in html.read_text("utf-8")


def test_figures_are_those_of_evaluate(study):
    folder, data, _ = study
    table = json.loads((folder / "out" / "table.json").read_text("utf-8"))
    for strategy, readout in (("rps", "majority"), ("rps", "expected"), ("median", None)):
        for region in ("box", "disputed"):
            done = run("evaluate", "--data", data, "--split", "test", "--pred", folder / "out" / "predictions" / strategy,
                       "--readout", readout or "majority", "--region", region, "--json", "-").json
            one = cell(table, strategy, readout, region, "mr_ece")
            assert abs(one["value"] - done["mr_ece"]) < 1e-6 and done["levels"] == ("predicted" if readout else "binomial")
            assert np.allclose([one["low"], one["high"]], done["ci"]["mr_ece"], atol=1e-6)
            assert np.isclose(one["mean_60"], done["bootstrap_60"]["mr_ece"]["mean"], atol=1e-6)
        one = cell(table, strategy, readout, "box", "auc")
        assert abs(one["value"] - run("evaluate", "--data", data, "--split", "test", "--pred", folder / "out" / "predictions" / strategy,
                                      "--readout", readout or "majority", "--region", "box", "--json", "-").json["auc"]) < 1e-6


def test_ties_are_paired_differences(study):
    folder, data, _ = study
    table = json.loads((folder / "out" / "table.json").read_text("utf-8"))
    predictions = folder / "out" / "predictions"
    difference = run("evaluate", "--data", data, "--split", "test", "--pred", predictions / "rps", "--versus", predictions / "median",
                     "--region", "box", "--json", "-").json["difference"]
    rows = {(r["strategy"], r["readout"]): r["figures"]["box"] for r in table["rows"]}
    for figure in ("mr_ece", "dice", "brier"):
        first, second = rows["rps", "majority"][figure], rows["median", None][figure]
        if first["best"] or second["best"]:
            other = second if first["best"] else first
            assert other["tie"] == (difference[figure]["low"] <= 0 <= difference[figure]["high"])


def test_run_again_adds_and_changes_nothing(study):
    folder, data, _ = study
    out = folder / "out"
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*.safetensors")}
    table = (out / "table.json").read_text("utf-8")
    run("study", "--data", data, "-o", out, "--strategies", "rps,median", *PROTOCOL)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*.safetensors")} == before
    assert (out / "table.json").read_text("utf-8") == table
    # A model and two predictions are lost: only these are made again.
    model = (out / "models" / "median.safetensors").read_bytes()
    for path in ("models/median.json", "predictions/rps/c12_levels.nrrd", "predictions/median/c12_levels.nrrd"):
        (out / path).unlink()
    run("study", "--data", data, "-o", out, "--strategies", "rps,median", *PROTOCOL, "--threads", "2")
    assert (out / "models" / "median.safetensors").read_bytes() == model  # the same training, to the bit
    assert (out / "table.json").read_text("utf-8") == table
    # More strategies under the same protocol.
    run("study", "--data", data, "-o", out, "--strategies", "rps,soft", *PROTOCOL)
    rows = json.loads((out / "table.json").read_text("utf-8"))["rows"]
    assert [r["strategy"] for r in rows] == ["rps", "rps", "soft"]


def test_a_foreign_model_is_not_replaced(study, tmp_path):
    """A model that another training left in the folder of a study stays, and the sentence names it."""
    folder, data, _ = study
    (tmp_path / "models").mkdir()
    foreign = tmp_path / "models" / "median.safetensors"
    foreign.write_bytes((folder / "out" / "models" / "rps.safetensors").read_bytes())
    before = foreign.read_bytes()
    done = run("study", "--data", data, "-o", tmp_path, "--strategies", "median,rps", *PROTOCOL, check=False)
    assert done.code == 2 and f"{foreign} already exists and is not a model of this study" in done.err
    assert foreign.read_bytes() == before


def test_another_protocol_is_refused(study):
    folder, data, _ = study
    words = ["study", "--data", data, "-o", folder / "out", "--strategies", "rps,median"]
    changed = PROTOCOL.copy()
    changed[1] = "4"
    refused(*words, *changed, says=["--epochs was 3, now 4", "another folder"])
    refused(*words, *PROTOCOL, "--alpha", "2", says="--alpha was not given")
    refused(*words, *PROTOCOL[2:], says="--epochs was 3, now it is not given")
    other = disc_list(folder, counts=(7, 3, 5), name="other.json")
    refused("study", "--data", other, "-o", folder / "out", *PROTOCOL, says="data list")


@pytest.mark.parametrize("name, text, says", [
    ("study.json", "{", ["study.json", "not valid JSON", "another folder"]),
    ("study.json", '{"list": 1}', ['"list" must be a text', "another folder"]),
    ("models/rps.json", '{"epochs": [], "best": "x"}', ['"best" must be a whole number', "Remove it to train this model again"])])
def test_damaged_files_of_the_folder(study, tmp_path, name, text, says):
    folder, data, _ = study
    shutil.copytree(folder / "out", tmp_path / "out")
    (tmp_path / "out" / name).write_text(text)
    refused("study", "--data", data, "-o", tmp_path / "out", "--strategies", "rps", *PROTOCOL, says=says)


def test_stopped_and_gone_on(tmp_path):
    data = disc_list(tmp_path)
    words = ["study", "--data", data, "-o", tmp_path / "a", "--strategies", "median,soft", "--epochs", "8", *PROTOCOL[2:]]
    process = start(*words)
    wait_until((tmp_path / "a" / "models" / "median.log.csv").exists)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and b"continues from here" in error
    assert not (tmp_path / "a" / "table.md").exists() and not leftovers(tmp_path)
    run(*words)
    words[words.index(tmp_path / "a")] = tmp_path / "b"
    run(*words)
    for name in ("median", "soft"):
        a, b = ((tmp_path / f / "models" / f"{name}.safetensors").read_bytes() for f in "ab")
        assert a == b
    assert [json.loads((tmp_path / f / "table.json").read_text("utf-8"))["rows"] for f in "ab"][0] == \
        json.loads((tmp_path / "b" / "table.json").read_text("utf-8"))["rows"]


def test_seeds_and_alternatives(tmp_path):
    data = disc_list(tmp_path, counts=(4, 2, 6))
    words = ["study", "--data", data, "-o", tmp_path / "out", "--strategies", "rps,binomial,soft", "--seeds", "2", "--epochs", "1",
             "--width", "8", "--depth", "1", "--batch", "4"]
    run(*words)
    table = json.loads((tmp_path / "out" / "table.json").read_text("utf-8"))
    assert [(r["strategy"], r["readout"]) for r in table["rows"]] == [
        ("rps", "majority"), ("rps", "expected"), ("binomial", "majority"), ("binomial", "expected"), ("soft", None)]
    assert {p.name for p in (tmp_path / "out" / "predictions").iterdir()} == {f"{s}{e}" for s in ("rps", "binomial", "soft") for e in ("", "-seed1")}
    for strategy in ("rps", "soft"):
        values = [run("evaluate", "--data", data, "--split", "test", "--region", "box", "--readout", "majority", "--json", "-", "--pred",
                      tmp_path / "out" / "predictions" / (strategy + end)).json["mr_ece"] for end in ("", "-seed1")]
        one = cell(table, strategy, "majority" if strategy == "rps" else None, "box", "mr_ece")
        assert abs(one["value"] - np.mean(values)) < 1e-6 and values[0] != values[1]
        assert abs(one["seed_low"] - min(values)) < 1e-6 and abs(one["seed_high"] - max(values)) < 1e-6
        # The spread between trainings is in the interval: with two of them it is wide.
        apart = abs(values[0] - values[1])
        assert one["low"] <= one["value"] - apart / 2 or one["low"] < 1e-9
        assert one["high"] >= one["value"] + apart / 2
    markdown = (tmp_path / "out" / "table.md").read_text("utf-8")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "means over 2 trainings" in markdown and "over patients (or cases) and trainings" in markdown
    assert page.count("Reliability diagram: rps (majority), seed 0") == 1 and "training with seed 0 predicts (one of 2" in page
    for option in ("--seeds 2", "--strategies rps,binomial,soft", "--epochs 1", "--batch 4"):
        assert option in markdown and option in page, option


def test_trainings_that_differ_are_not_told_apart(tmp_path):
    """The best of one seed need not be the best of the next: told apart only where the difference of the means is larger than
    what trainings differ by."""
    data = disc_list(tmp_path, counts=(4, 2, 8))
    run("study", "--data", data, "-o", tmp_path / "out", "--strategies", "median,soft", "--seeds", "2", "--epochs", "1",
        "--width", "8", "--depth", "1", "--batch", "4")
    table = json.loads((tmp_path / "out" / "table.json").read_text("utf-8"))
    predictions = tmp_path / "out" / "predictions"
    pairs = [run("evaluate", "--data", data, "--split", "test", "--region", "box", "--json", "-", "--pred", predictions / f"median{end}",
                 "--versus", predictions / f"soft{end}").json["difference"] for end in ("", "-seed1")]
    for figure in ("mr_ece", "brier", "dice"):
        differences = [pair[figure]["value"] for pair in pairs]
        told = abs(np.mean(differences)) > 12.7 * abs(differences[0] - differences[1]) / 2  # t with one degree of freedom
        tie = any(r["figures"]["box"][figure]["tie"] for r in table["rows"])
        if not told and abs(differences[0] - differences[1]) > 3 * max(pair[figure]["high"] - pair[figure]["low"] for pair in pairs):
            assert tie, figure  # what trainings differ by is nearly all
        if np.sign(differences[0]) != np.sign(differences[1]):
            assert tie, figure


def test_one_strategy_has_none_to_be_told_apart_from(tmp_path):
    run("study", "--data", disc_list(tmp_path, counts=(2, 1, 1)), "-o", tmp_path / "out", "--strategies", "median", *PROTOCOL)
    html = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert html.count("there are no others to compare with.") == 3 and "all others are significantly different" not in html


def test_a_damaged_test_case(tmp_path):
    data = disc_list(tmp_path, counts=(4, 2, 3))
    (tmp_path / "i7_B.nrrd").write_bytes(b"NRRD0004\n")
    words = ["study", "--data", data, "-o", tmp_path / "out", "--strategies", "median", "--epochs", "1", "--width", "8", "--depth", "1"]
    refused(*words, says="i7_B.nrrd", folder=tmp_path)  # before anything is trained
    done = run(*words, "--skip-bad")
    assert "Case c7 was left out" in done.err and "1 of 3 cases could not be used" in done.err
    assert json.loads((tmp_path / "out" / "table.json").read_text("utf-8"))["test_cases"] == 2


def test_bad_input(tmp_path):
    data = disc_list(tmp_path, counts=(3, 1, 2))
    good = json.loads(data.read_text("utf-8"))

    def changed(**changes):
        path = tmp_path / "changed.json"
        path.write_text(json.dumps({**good, **changes}))
        return "study", "--data", path, "-o", tmp_path / "out", "--strategies", "median", *PROTOCOL
    refused(*changed(test=[]), says=["no test cases", "\"test\""], folder=tmp_path)
    refused(*changed(training=[]), says="no training cases", folder=tmp_path)
    twin = {**good["training"][0], "id": "twin"}
    refused(*changed(test=good["test"] + [twin]), says=["is in training", "in test"])
    alone = [{**c, "label": {"A": c["label"]["A"]}} for c in good["training"]]
    refused(*changed(raters=["A"], training=alone, validation=[], test=[{**good["test"][0], "label": {"A": good["test"][0]["label"]["A"]}}]),
            says="one rater")
    blind = [{k: v for k, v in c.items() if k != "image"} for c in good["test"]]
    refused(*changed(test=blind), says="needs an image")
    words = ["study", "--data", data, "-o", tmp_path / "new"]
    refused("study", "--data", data, says=["folder for its results", "Use -o"])
    refused("study", "-o", tmp_path / "new", says="--data")
    refused(*words, "--strategies", "rps,best", says="'best'", folder=tmp_path)
    refused(*words, "--strategies", "rps,rps", says="twice", folder=tmp_path)
    refused(*words, "--strategies", "rps", "--alternatives", says="either", folder=tmp_path)
    refused(*words, "--seeds", "0", says="--seeds", folder=tmp_path)
    refused("study", "--data", tmp_path / "none.json", "-o", tmp_path / "new", says="none.json", folder=tmp_path)
    assert not leftovers(tmp_path)
