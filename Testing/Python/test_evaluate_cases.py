# SPDX-License-Identifier: Apache-2.0
"""evaluate, case by case: the CSV file, the JSON's cases, and two models in one diagram."""
import csv
import io
import json
import math
import re

import numpy as np
import pytest

from rcn_testing import DATA, blobs, needs_peers, refused, run, write_nrrd
from test_evaluate import evaluate, expected_figures, second_folder, study_of

COLUMNS = ["case", "patient", "split", "model", "region", "volume_unit", "mr_ece", "ece", "brier", "nll", "rps", "auc", "auc_pairs",
           "dice", "volume", "raters_volume", "volume_crps", "curvas_crps", "inside_80", "inside_95", "voxels", "votes"]


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_for_each_case(tmp_path):
    study = study_of(tmp_path)
    for i, entry in enumerate(study.content["test"]):
        entry["patient"] = f"p{i}"
    out = tmp_path / "cases.csv"
    answer = run("evaluate", *study.words, "--region", "whole", "--csv", out, "--json", tmp_path / "o.json")
    rows, answer = rows_of(out.read_text("utf-8")), json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert list(rows[0]) == COLUMNS and [r["case"] for r in rows] == list(study.cases)
    assert [r["patient"] for r in rows] == [f"p{i}" for i in range(5)]
    assert {(r["model"], r["region"]) for r in rows} == {(str(study.pred), "whole")}
    for row, one, (masks, p) in zip(rows, answer["cases"], study.cases.values()):
        want = expected_figures(p, list(masks.values()))
        for key in ("mr_ece", "brier", "auc", "auc_pairs", "dice", "nll"):
            assert float(row[key]) == pytest.approx(want[key], abs=1e-7), key
        assert row["volume_unit"] == "mL" and float(row["volume"]) == pytest.approx(p.astype(float).sum() / 1000, rel=1e-5)
        assert float(row["raters_volume"]) == pytest.approx(np.mean([m.sum() for m in masks.values()]) / 1000, rel=1e-9)
        assert (int(row["voxels"]), int(row["votes"])) == (p.size, 3 * p.size)
        assert list(one) == COLUMNS
        assert row["split"] == one["split"] == "test" and row["inside_80"] == ""  # nobody knows validation cases of these maps
        for key in COLUMNS[6:]:
            assert one[key] is None if row[key] == "" else float(row[key]) == pytest.approx(one[key], rel=1e-9)
    assert answer["case_count"] == 5
    for key, mean in answer["case_means"].items():
        assert mean["mean"] == pytest.approx(np.mean([one[key] for one in answer["cases"]])) and mean["cases"] == 5
        assert mean["low"] <= mean["mean"] <= mean["high"]
    assert answer["case_means"]["dice"]["mean"] == pytest.approx(answer["dice"], abs=1e-12)


def test_half_of_the_cases_name_a_patient(tmp_path):
    study = study_of(tmp_path, 6)
    for entry in study.content["test"][:3]:
        entry["patient"] = "p"
    done = run("evaluate", *study.words, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    sentence = "Patients: 3 of 6 cases name none, and each of these counts as a patient of its own."
    assert answer["patients"] == 4 and sentence in answer["remarks"] and sentence in done.out
    for entry in study.content["test"]:
        entry["patient"] = "q"
    assert "Patients:" not in str(evaluate(*study.words)["remarks"])


def test_cases_that_no_rater_answered(tmp_path):
    """They are left out with a remark; only where nobody answered any there is nothing to do."""
    study = study_of(tmp_path, 5)
    want = evaluate(*study.words)
    study.content["test"].insert(2, {"id": "nobody", "label": dict.fromkeys("ABC")})
    study.content["test"].append({"id": "none", "label": {}})
    sentence = "No rater has answered 2 cases (nobody, none), left out."
    done = run("evaluate", *study.words, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert sentence in done.err and answer["case_count"] == 5 and answer["mr_ece"] == want["mr_ece"] and answer["left_out"] == []
    for one in study.content["test"]:
        one.pop("image", None)  # there is none here
    fused = run("fuse", "--data", study.words[1], "--method", "soft", "-o", tmp_path / "fused")
    assert sentence in fused.err and not (tmp_path / "fused" / "nobody_soft.nrrd").exists()
    study.content["validation"] = [{"id": "v", "label": [None]}]
    refused("evaluate", *study.words, "--split", "validation", says="no rater has answered any case of the split validation")


def test_two_models(tmp_path):
    study = study_of(tmp_path)
    other = second_folder(study, np.sqrt)
    plot = tmp_path / "both.svg"
    answer = run("evaluate", *study.words, "--versus", other, "--csv", "-", "--plot", plot)
    rows = rows_of(answer.out)
    assert [(r["case"], r["model"]) for r in rows] == [(f"c{i}", str(m)) for m in (study.pred, other) for i in range(5)]
    alone = rows_of(run("evaluate", "--data", tmp_path / "list.json", "--pred", other, "--csv", "-").out)
    assert rows[5:] == alone
    drawn = plot.read_text("utf-8")
    assert drawn.count("<polyline") == 2 and "blue: pred" in drawn and f"orange: {other.name}" in drawn
    assert "Region box (20 voxels around the marks), one probability" in drawn
    assert "blue predicted" in drawn and "orange predicted" in drawn  # votes of both, side by side
    single = tmp_path / "one.svg"
    run("evaluate", *study.words, "--plot", single)
    assert single.read_text("utf-8").count("<polyline") == 1 and "orange" not in single.read_text("utf-8")


def test_several_regions(tmp_path):
    """Each as if it were alone: in the cases, in the JSON and in the table; the first is what everything else is about."""
    study = study_of(tmp_path)
    other = second_folder(study, np.sqrt)
    words = [*study.words, "--versus", other]
    regions = ["band", "whole", "disputed"]
    given = [w for region in regions for w in ("--region", region)]
    out = tmp_path / "cases.csv"
    answer = run("evaluate", *words, *given, "--csv", out, "--json", tmp_path / "o.json")
    rows, both = rows_of(out.read_text("utf-8")), json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert list(both["regions"]) == regions and [r["region"] for r in rows] == [name for name in regions for _ in range(10)]
    table = answer.out[answer.out.index("\n  Region "):]
    for i, region in enumerate(regions):
        alone = json.loads(run("evaluate", *words, "--region", region, "--csv", tmp_path / "one.csv", "--json", "-").out)
        assert rows_of((tmp_path / "one.csv").read_text("utf-8")) == rows[10 * i:10 * i + 10]
        for key in ("mr_ece", "brier", "auc", "dice", "bins", "ci", "difference"):
            assert both["regions"][region][key] == alone[key], (region, key)
            assert i > 0 or both[key] == alone[key]
        assert re.search(rf"^ +{region} .*{100 * alone['mr_ece']:.2f}", table, re.M)
    twice = run("evaluate", *words, "--region", "box", "--region", "box", check=False)
    assert twice.code == 2 and "--region box is given twice." in twice.err
    assert "regions" not in evaluate(*study.words)


def test_before_a_correction(tmp_path):
    study = study_of(tmp_path, 6)
    for entry in study.content["test"][:3]:
        study.content.setdefault("validation", []).append(entry)
    study.content["test"] = study.content["test"][3:]
    fitted = tmp_path / "r.json"
    run("recalibrate", "--method", "platt", *study.words, "-o", fitted, "--force")
    rows = rows_of(run("evaluate", *study.words, "--split", "test", "--recalibration", fitted, "--csv", "-").out)
    assert [r["model"] for r in rows] == [str(study.pred)] * 3 + [f"{study.pred} (before recalibration)"] * 3
    assert all(a["mr_ece"] != b["mr_ece"] for a, b in zip(rows[:3], rows[3:]))


def test_what_is_not_defined_is_empty(tmp_path):
    """Nothing is marked and nothing predicted: no AUC and no Dice; the means are over the other cases."""
    study = study_of(tmp_path, 4)
    nothing = np.zeros((4, 12, 12), np.uint8)
    study.add("none", dict.fromkeys("ABC", nothing), np.zeros((4, 12, 12), np.float32))
    answer = run("evaluate", *study.words, "--region", "whole", "--csv", "-")
    row = rows_of(answer.out)[-1]
    assert row["auc"] == row["dice"] == "" and float(row["mr_ece"]) == 0
    assert "nan" not in answer.out.lower() and "inf" not in answer.out.lower()
    said = evaluate(*study.words, "--region", "whole")
    assert said["cases"][-1]["auc"] is None and said["case_means"]["auc"]["cases"] == 4
    assert all(math.isfinite(m["mean"]) for m in said["case_means"].values())


def test_one_case(tmp_path):
    masks = blobs(2, (4, 12, 12), seed=3)
    words = [w for n, m in zip("AB", masks) for w in ("--rater", f"{n}={write_nrrd(tmp_path / f'{n}.nrrd', m)}")]
    p = write_nrrd(tmp_path / "p.nrrd", np.mean(masks, 0).astype(np.float32))
    row, = rows_of(run("evaluate", "--prob", p, *words, "--csv", "-").out)
    assert row["case"].endswith("p.nrrd") and row["patient"] == ""


@needs_peers
def test_pandas_reads_it(tmp_path):
    pandas = pytest.importorskip("pandas")
    study = study_of(tmp_path, 7)
    other = second_folder(study, np.sqrt)
    out = tmp_path / "cases.csv"
    done = run("evaluate", *study.words, "--versus", other, "--csv", out, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    table = pandas.read_csv(out)
    assert list(table.columns) == COLUMNS and len(table) == 14
    assert all(table[key].dtype.kind in "fi" for key in COLUMNS[6:])
    first = table[table["model"] == str(study.pred)]
    for key, mean in answer["case_means"].items():
        assert first[key].mean() == pytest.approx(mean["mean"], rel=1e-8)
    # What is printed: Dice is a mean over cases everywhere, the others in their own table.
    lines = done.out.split("Mean of the cases' own figures")[1].split("\n\n")[0].splitlines()[1:]
    shown = {cells[0]: cells[1] for cells in (re.split(r"\s{2,}", line.strip()) for line in lines)}
    assert float(shown["Brier"]) == pytest.approx(first["brier"].mean(), abs=6e-5)
    assert float(shown["AUC"]) == pytest.approx(first["auc"].mean(), abs=6e-5)
    assert first["dice"].mean() == pytest.approx(answer["dice"], rel=1e-8)
    assert (first["brier"] * first["votes"]).sum() / first["votes"].sum() == pytest.approx(answer["brier"], rel=1e-8)


@needs_peers
def test_pandas_reads_real_cases(tmp_path):
    """The columns of lidc4's test cases have the means of the printed table."""
    pandas = pytest.importorskip("pandas")
    data = DATA / "lidc4" / "dataset.json"
    if not data.exists():
        pytest.skip("no real masks here")
    run("fuse", "--method", "soft-gaussian", "--data", data, "--split", "test", "-o", tmp_path / "maps")
    for path in (tmp_path / "maps").iterdir():
        path.rename(path.with_name(path.name.replace("_soft-gaussian", "_prob")))
    out = tmp_path / "cases.csv"
    words = ["--data", data, "--split", "test", "--pred", tmp_path / "maps", "--csv", out]
    done = run("evaluate", *words, "--json", tmp_path / "o.json")
    table = pandas.read_csv(out)
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    assert len(table) == answer["case_count"] == len(json.loads(data.read_text("utf-8"))["test"])
    lines = done.out.split("Mean of the cases' own figures")[1].split("\n\n")[0].splitlines()[1:]
    shown = {cells[0]: cells[1] for cells in (re.split(r"\s{2,}", line.strip()) for line in lines)}
    for name, key, scale in (("MR-ECE (%)", "mr_ece", 100), ("Brier", "brier", 1), ("AUC", "auc", 1), ("Dice", "dice", 1)):
        assert table[key].mean() == pytest.approx(answer["case_means"][key]["mean"], rel=1e-8)
        assert float(shown[name]) == pytest.approx(scale * table[key].mean(), abs=6e-3 if scale > 1 else 6e-5)
