# SPDX-License-Identifier: Apache-2.0
"""agree --data: figures over the cases of a data set, with intervals."""
import csv
import io
import json
import math
import os
import re

import numpy as np
import pytest

from rcn_testing import needs_peers, run, start, write_nrrd

T9 = 2.262157  # Student's t, two-sided 95 %, 9 degrees of freedom


def make_list(folder, cases=10, patients=False, empty=(), less=1.0, raters="ABCD", seed=0):
    """Spheres; the last rater's radius is `less` times the others'. Cases of `empty` have no mark."""
    rng = np.random.default_rng(seed)
    z, y, x = np.mgrid[:12, :24, :24]
    entries = []
    for i in range(cases):
        radius = rng.uniform(4, 7)
        for r, name in enumerate(raters):
            own = radius * (less if r == len(raters) - 1 else 1) + 0.3 * rng.normal()
            at = 12 + 0.4 * rng.normal(size=2)
            mask = (x - at[0]) ** 2 + (y - at[1]) ** 2 + (2 * (z - 6)) ** 2 <= own ** 2
            write_nrrd(folder / f"c{i}_{name}.nrrd", np.zeros_like(mask, np.uint8) if i in empty else mask.astype(np.uint8),
                       spacing=(1, 1, 2))
        entries.append({"id": f"c{i}", "label": {n: f"c{i}_{n}.nrrd" for n in raters}} |
                       ({"patient": f"p{i // 2}"} if patients else {}))
    path = folder / "list.json"
    path.write_text(json.dumps({"raters": list(raters), "test": entries}))
    return path


def long_rows(text):
    return [row | {"value": float(row["value"])} for row in csv.DictReader(io.StringIO(text))]


def column(rows, figure, rater="", pair="", without=()):
    return np.array([r["value"] for r in rows if (r["figure"], r["rater"], r["pair"]) == (figure, rater, pair) and
                     r["case"] not in without])


def test_means_are_those_of_the_long_form(tmp_path):
    path = make_list(tmp_path)
    out = tmp_path / "long.csv"
    done = run("agree", "--data", path, "--csv-long", out, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))["data_set"]
    rows = long_rows(out.read_text("utf-8"))
    assert list(rows[0]) == ["case", "split", "patient", "rater", "pair", "figure", "value"]
    assert all(math.isfinite(r["value"]) for r in rows) and {r["case"] for r in rows} == {f"c{i}" for i in range(10)}
    assert {"mean_dice", "mean_kappa", "fleiss_kappa", "krippendorff_alpha", "mean_hausdorff95_mm"} <= set(answer["figures"])
    records = [("", "", answer["figures"])]
    records += [(name, "", one) for name, one in answer["raters"].items()]
    records += [("", f"{p['a']} - {p['b']}", p["figures"]) for p in answer["pairs"]]
    assert len(records) == 1 + 4 + 6
    for rater, pair, figures in records:
        for key, one in figures.items():
            if key in ("stands_out", "p_corrected", "bias_percent"):
                continue
            values = column(rows, key, rater, pair)
            assert one["cases"] == len(values) == 10
            assert one["mean"] == pytest.approx(values.mean(), rel=1e-8)
            assert (one["lowest"], one["highest"]) == pytest.approx((values.min(), values.max()), rel=1e-8)
            # Never narrower than the interval of textbooks, except where that leaves what the figure can be.
            reach = T9 * values.std(ddof=1) / np.sqrt(10)
            assert one["low"] <= max(values.mean() - reach, 0 if "bias" not in key and "gap" not in key else -1e9) + 1e-6
            assert one["high"] - one["low"] < 4 * reach + 1e-9
            if "bias" in key or key == "dice_gap":
                # Moved for the skewness to the side of the rarer values (Johnson 1978), where that is farther out.
                centered = values - values.mean()
                skewness = (centered ** 3).mean() / (centered ** 2).mean() ** 1.5
                shift = skewness * reach / T9 * (1 + 2 * T9 ** 2) / (6 * math.sqrt(10))
                assert (one["low"], one["high"]) == pytest.approx((values.mean() - reach + min(shift, 0),
                                                                   values.mean() + reach + max(shift, 0)), abs=1e-6)
    volumes = {n: column(rows, "volume_ml", n) for n in "ABCD"}
    others = np.mean([volumes[n] for n in "BCD"], 0)
    assert answer["raters"]["A"]["bias_percent"]["mean"] == pytest.approx(100 * (volumes["A"].sum() / others.sum() - 1), rel=1e-6)
    assert not any(one["stands_out"] for one in answer["raters"].values())
    assert "No rater stands out" in done.out and answer["without_empty"] is None


def test_a_rater_who_marks_less_stands_out(tmp_path):
    path = make_list(tmp_path, less=0.75)
    done = run("agree", "--data", path, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))["data_set"]
    assert [n for n, one in answer["raters"].items() if one["stands_out"]] == ["D"]
    one = answer["raters"]["D"]
    assert one["p_corrected"] < 0.001 and one["dice_gap"]["high"] < 0 and one["bias_percent"]["high"] < 0
    sentence, = answer["stand_out"]
    assert sentence.startswith(f"D marks less than the others (Dice {one['dice_with_others']['mean']:.2f}, others "
                               f"{one['dice_among_others']['mean']:.2f}; marks {-one['bias_percent']['mean']:.0f} % less; p < 0.001")
    assert "D *" in done.out and "* " + sentence in done.out


def write_case(folder, case, radii):
    """Discs with the same center; 0 is an empty mask."""
    y, x = np.mgrid[:40, :40]
    for name, radius in radii.items():
        mask = (x - 20) ** 2 + (y - 20) ** 2 < radius ** 2
        write_nrrd(folder / f"{case}{name}.nrrd", mask.astype(np.uint8)[None])
    return {"id": case, "label": {n: f"{case}{n}.nrrd" for n in radii}}


def agree_list(folder, entries, *more):
    (folder / "list.json").write_text(json.dumps({"test": entries}))
    done = run("agree", "--data", folder / "list.json", "--json", folder / "o.json", *more)
    return done.out, json.loads((folder / "o.json").read_text("utf-8"))["data_set"]


def test_without_an_interval_of_the_bias_nothing_is_said_about_places(tmp_path):
    """One of five cases is empty: the bias in percent rests on four, the Dice on five."""
    radii = [(12, 12.5, 7), (11, 11.3, 6.5), (10, 10.4, 6), (0, 0, 0), (13, 13.6, 8)]
    entries = [write_case(tmp_path, f"c{i}", dict(A=a, B=b, C=c)) for i, (a, b, c) in enumerate(radii)]
    out, answer = agree_list(tmp_path, entries)
    one = answer["raters"]["C"]
    assert one["bias_percent"]["cases"] == 4 and one["bias_percent"]["low"] is None and one["bias_percent"]["mean"] < -50
    assert one["stands_out"] and one["p_corrected"] < .05
    sentence = answer["stand_out"][0]
    assert sentence.startswith("C agrees less with the others than they do among themselves (Dice ")
    assert f"; bias {one['bias_percent']['mean']:.0f} %, no interval; p " in sentence and "places" not in sentence
    assert "corrected for 3 raters" in sentence and "* " + sentence in out
    assert f"{one['bias_percent']['mean']:.1f} (n = 4)" in out


def test_raters_who_are_not_tested_do_not_count(tmp_path):
    """A marked only four of the cases, so that only three raters are tested."""
    rng = np.random.default_rng(3)
    entries = []
    for i in range(12):
        radius = rng.uniform(9, 14)
        radii = {n: radius * (.6 if n == "D" else 1) + .4 * rng.normal() for n in "ABCD"}
        entries.append(write_case(tmp_path, f"c{i:02}", {n: r for n, r in radii.items() if n != "A" or i < 4}))
    answer = agree_list(tmp_path, entries)[1]
    assert answer["raters"]["A"]["p_corrected"] is None and answer["raters"]["D"]["stands_out"]
    assert answer["stand_out"][0].startswith("D marks less") and "corrected for 3 raters)" in answer["stand_out"][0]


def test_a_small_difference_does_not_stand_out(tmp_path):
    """However many cases there are: C differs always, and by little."""
    entries = [write_case(tmp_path, f"c{i:02}", dict(A=12 + .1 * (i % 7), B=12 + .1 * (i % 7), C=11.6 + .1 * (i % 7)))
               for i in range(14)]
    out, answer = agree_list(tmp_path, entries)
    one = answer["raters"]["C"]
    assert one["p_corrected"] < .001 and -.05 < one["dice_gap"]["mean"] < 0 and not one["stands_out"]
    assert answer["stand_out"][0].startswith("No rater stands out")
    assert answer["stand_out"][1].startswith("C agrees slightly less with the others") and "C *" not in out and "* C" not in out
    assert all(s in out for s in answer["stand_out"])


def test_distances_that_are_not_defined_are_counted(tmp_path):
    rng = np.random.default_rng(1)
    entries = []
    for i in range(12):
        radius = rng.uniform(8, 14)
        entries.append(write_case(tmp_path, f"c{i:02}", {n: 0 if i == 11 or (i < 3 and n == "C") else radius + rng.normal()
                                                         for n in "ABC"}))
    out, answer = agree_list(tmp_path, entries)
    sentence = "Distances are not defined for 6 pairs of raters in 3 cases, where one of the two marked nothing."
    assert sentence in out and answer["pairs_without_distance"] == 6
    assert "Nobody marked anything in 1 of 12 cases: c11. Dice is 1 there, and distances are 0." in out
    pairs = {p["a"] + p["b"]: p["figures"] for p in answer["pairs"]}
    assert pairs["AB"]["hausdorff95_mm"]["cases"] == 12 and pairs["AC"]["hausdorff95_mm"]["cases"] == 9
    assert pairs["AC"]["dice"]["cases"] == 12
    rows = {line.strip()[:5]: line for line in out.splitlines()}
    assert rows["A – C"].count("n = 9") == 2 and rows["A – B"].count("n = 9") == 0
    run("report", "--data", tmp_path / "list.json", "-o", tmp_path / "p.html", "--quiet")
    page = (tmp_path / "p.html").read_text("utf-8")
    assert sentence in page and "; n = 9" in page and "c11. Dice is 1 there, and distances are 0." in page
    agreed = [write_case(tmp_path, "d", dict(A=9, B=8))]
    assert "not defined" not in agree_list(tmp_path, agreed)[0]


def test_one_rater_has_no_agreement(tmp_path):
    out, answer = agree_list(tmp_path, [write_case(tmp_path, f"c{i}", dict(A=9 + i)) for i in range(5)])
    assert "STAPLE" not in out and "Disputed share" not in out
    assert not [k for k in answer["raters"]["A"] if k.startswith("staple")] and "disputed_share" not in answer["figures"]
    assert answer["raters"]["A"]["area_mm2"]["cases"] == 5


def test_cases_that_nobody_answered_are_left_out(tmp_path):
    path = make_list(tmp_path, cases=5)
    want = run("agree", "--data", path, "--json", "-").json["data_set"]
    content = json.loads(path.read_text())
    content["test"].append({"id": "nobody", "label": {}})
    path.write_text(json.dumps(content))
    done = run("agree", "--data", path, "--json", tmp_path / "o.json")
    assert "No rater has answered 1 case (nobody), left out." in done.err
    assert json.loads((tmp_path / "o.json").read_text("utf-8"))["data_set"] == want


def test_a_row_of_each_case_has_kappa_distance_and_patient(tmp_path):
    path = make_list(tmp_path, cases=6, patients=True)
    answer = run("agree", "--data", path, "--csv", tmp_path / "c.csv", "--json", "-").json
    rows = list(csv.DictReader(io.StringIO((tmp_path / "c.csv").read_text("utf-8"))))
    assert list(rows[0])[-4:] == ["mean_kappa", "mean_hausdorff95_mm", "mean_hausdorff95_pixels", "patient"]
    assert [r["patient"] for r in rows] == ["p0", "p0", "p1", "p1", "p2", "p2"]
    for key in ("mean_kappa", "mean_hausdorff95_mm"):
        assert np.mean([float(r[key]) for r in rows]) == pytest.approx(answer["data_set"]["figures"][key]["mean"], rel=1e-8)
    assert all(r["mean_hausdorff95_pixels"] == "" for r in rows)


def test_cases_without_any_mark_are_named(tmp_path):
    path = make_list(tmp_path, empty=(2, 5))
    done = run("agree", "--data", path, "--json", tmp_path / "o.json", "--csv-long", tmp_path / "long.csv")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))["data_set"]
    rows = long_rows((tmp_path / "long.csv").read_text("utf-8"))
    assert answer["empty_cases"] == ["c2", "c5"] and answer["cases"] == 10 and answer["without_empty"]["cases"] == 8
    assert "Nobody marked anything in 2 of 10 cases: c2, c5." in done.out
    for part, without in ((answer, ()), (answer["without_empty"], ("c2", "c5"))):
        assert part["figures"]["mean_dice"]["mean"] == pytest.approx(column(rows, "mean_dice", without=without).mean(), rel=1e-8)
        assert part["raters"]["B"]["dice_with_others"]["mean"] == pytest.approx(
            column(rows, "dice_with_others", "B", without=without).mean(), rel=1e-8)
    assert answer["figures"]["mean_dice"]["mean"] > answer["without_empty"]["figures"]["mean_dice"]["mean"]
    # Where nobody marks anything there is no kappa: the figure rests on the others alone.
    assert answer["figures"]["mean_kappa"]["cases"] == 8


def test_patients_are_the_units(tmp_path):
    path = make_list(tmp_path, patients=True)
    answer = run("agree", "--data", path, "--json", "-").json["data_set"]
    (tmp_path / "cases").mkdir()
    alone = run("agree", "--data", make_list(tmp_path / "cases"), "--json", "-").json["data_set"]
    assert answer["patients"] == 5 and alone["patients"] == 10
    for key, one in answer["figures"].items():
        assert one["mean"] == alone["figures"][key]["mean"]
        assert (one["low"], one["high"]) != (alone["figures"][key]["low"], alone["figures"][key]["high"])


def test_no_interval_below_five_cases(tmp_path):
    path = make_list(tmp_path, cases=4)
    done = run("agree", "--data", path, "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))["data_set"]
    assert all(one["low"] is None and one["high"] is None for one in answer["figures"].values())
    assert all(one["p_corrected"] is None and not one["stands_out"] for one in answer["raters"].values())
    assert answer["stand_out"] == ["Fewer than 5 cases: no intervals, and no rater is tested."] and answer["stand_out"][0] in done.out


def test_two_raters_cannot_stand_out(tmp_path):
    answer = run("agree", "--data", make_list(tmp_path, raters="AB", less=0.7), "--json", "-").json["data_set"]
    assert not any(one["stands_out"] for one in answer["raters"].values()) and answer["stand_out"] == []
    assert answer["raters"]["B"]["bias_percent"]["high"] < 0


def test_long_form_of_one_case_and_one_standard_output(tmp_path):
    make_list(tmp_path, cases=1)
    files = [x for n in "ABCD" for x in ("--rater", f"{n}={tmp_path / f'c0_{n}.nrrd'}")]
    rows = long_rows(run("agree", *files, "--csv-long", "-").out)
    assert {r["rater"] for r in rows} == {"", *"ABCD"} and "A - B" in {r["pair"] for r in rows}
    done = run("agree", *files, "--csv-long", "-", "--json", "-", check=False)
    assert done.code == 2 and "--csv-long" in done.err


def test_long_form_of_several_structures_has_one_after_the_other(tmp_path):
    rng = np.random.default_rng(2)
    for case in "cd":
        for name in "AB":
            write_nrrd(tmp_path / f"{case}{name}.nrrd", rng.integers(0, 3, (4, 9, 9)).astype(np.uint8))
    (tmp_path / "l.json").write_text(json.dumps({
        "structures": {"x": 1, "y": 2}, "test": [{"id": c, "label": {n: f"{c}{n}.nrrd" for n in "AB"}} for c in "cd"]}))
    rows = long_rows(run("agree", "--data", tmp_path / "l.json", "--csv-long", tmp_path / "f.csv", "--json", tmp_path / "o.json") and
                     (tmp_path / "f.csv").read_text("utf-8"))
    assert [r["structure"] for r in rows] == sorted(r["structure"] for r in rows) and {r["structure"] for r in rows} == {"x", "y"}
    assert [r["case"] for r in rows if r["structure"] == "y"] == sorted(r["case"] for r in rows if r["structure"] == "y")
    assert run("agree", "--data", tmp_path / "l.json", "--csv-long", "-").out == (tmp_path / "f.csv").read_text("utf-8")
    assert [c["case"] for c in json.loads((tmp_path / "o.json").read_text("utf-8"))["cases"]] == ["c", "d"]


def test_files_are_complete_or_absent(tmp_path):
    """The last case ends the program: what was written of the others goes, and the old files stay."""
    path = make_list(tmp_path, cases=3)
    for name in ("o.json", "l.csv"):
        (tmp_path / name).write_text("old")
    names = {p.name for p in tmp_path.iterdir()}

    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    done = run("agree", "--data", path, "--csv-long", tmp_path / "l.csv", "--json", tmp_path / "o.json", check=False,
               preexec_fn=limit)
    assert done.code == 1 and "cannot be written" in done.err and done.err.count("\n") == 1
    assert {p.name for p in tmp_path.iterdir()} == names
    assert (tmp_path / "o.json").read_text() == (tmp_path / "l.csv").read_text() == "old"


def test_memory_does_not_grow_with_cases(tmp_path):
    """Of each case a row of numbers is kept, also with --json and --csv-long: a tenth of what its JSON would take."""
    def peak(cases):
        entries = [{"id": f"case{i}", "label": {n: f"c0_{n}.nrrd" for n in "ABCD"}} for i in range(cases)]
        (tmp_path / "many.json").write_text(json.dumps({"raters": list("ABCD"), "test": entries}))
        process = start("agree", "--data", tmp_path / "many.json", "--quiet", "--csv-long", tmp_path / "l.csv",
                        "--json", tmp_path / "o.json", stdout=None, stderr=None, env=dict(os.environ, OMP_NUM_THREADS="1"))
        status, usage = os.wait4(process.pid, 0)[1:]
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_maxrss
    make_list(tmp_path, cases=1)
    per_case = (peak(800) - peak(100)) / 700
    assert per_case < 12, f"{per_case} KB"


@pytest.mark.parametrize("shape, heading, per_voxel", [((12, 24, 24), "Volume (mL)", .002), ((1, 24, 24), "Area (mm²)", 1)])
def test_what_was_marked_has_the_unit_of_the_images(shape, heading, per_voxel, tmp_path):
    rng = np.random.default_rng(5)
    masks = {f"{case}{n}": (rng.random(shape) < .3).astype(np.uint8) for case in "cd" for n in "AB"}
    for name, mask in masks.items():
        write_nrrd(tmp_path / f"{name}.nrrd", mask, spacing=(1, 1, 2))
    entries = [{"id": case, "label": {n: f"{case}{n}.nrrd" for n in "AB"}} for case in "cd"]
    (tmp_path / "list.json").write_text(json.dumps({"test": entries}))
    table = run("agree", "--data", tmp_path / "list.json").out.split(f"{heading} marked by")[1]
    shown = {cells[0]: cells[1] for cells in (re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[1:] if line.strip())}
    union = np.mean([(masks[case + "A"] | masks[case + "B"]).sum() for case in "cd"]) * per_voxel
    assert float(shown["anybody"]) == pytest.approx(union, abs=.06)
    assert {"at least half", "everybody", "disputed", "(number of disputed regions)"} <= set(shown)


@needs_peers
def test_pandas_reads_the_long_form(tmp_path):
    pandas = pytest.importorskip("pandas")
    out = tmp_path / "long.csv"
    answer = run("agree", "--data", make_list(tmp_path), "--csv-long", out, "--json", "-").json["data_set"]
    table = pandas.read_csv(out)
    assert table["value"].dtype == float
    means = table[table["rater"].isna() & table["pair"].isna()].groupby("figure")["value"].mean()
    assert means["mean_dice"] == pytest.approx(answer["figures"]["mean_dice"]["mean"], rel=1e-8)
    by_rater = table.groupby(["rater", "figure"])["value"].mean()
    assert by_rater["C", "dice_to_others"] == pytest.approx(answer["raters"]["C"]["dice_to_others"]["mean"], rel=1e-8)
