# SPDX-License-Identifier: Apache-2.0
"""Several structures in one case: lists, label maps and separate files, agree and fuse, and input that cannot be right."""
import csv
import io
import json

import numpy as np
import pytest

from rcn_testing import raters, read_image, refused, run, write_nrrd

SHAPE = (6, 10, 12)  # z, y, x
NAMES = ["left kidney", "Leberläsion", "Milz/Rand"]
VALUES = [[1], [2, 3], [7]]
LABELS = [word for name, values in zip(NAMES, VALUES) for word in ("--label", f"{name}={','.join(map(str, values))}")]
STRUCTURES = {name: values[0] if len(values) == 1 else values for name, values in zip(NAMES, VALUES)}


def label_maps(count, seed=3):
    """Three slabs along x whose borders each rater sees somewhere else, voxel by voxel."""
    random = np.random.default_rng(seed)
    maps = []
    for _ in range(count):
        x = np.arange(SHAPE[2]) + random.normal(0, .7, SHAPE)
        y = np.broadcast_to(np.arange(SHAPE[1])[:, None], SHAPE)
        labels = np.select([x < 2, x < 5, x < 7, x < 8, x < 11], [0, 1, 2, 3, 7], 0)
        maps.append(np.where((y < 2) | (y > 7), 0, labels).astype(np.uint8))
    return maps


def is_structure(labels, values):
    return np.isin(labels, values)


def dice(a, b):
    return 2 * (a & b).sum() / (a.sum() + b.sum())


def mean_dice(masks):
    return np.mean([dice(masks[a], masks[b]) for a in range(len(masks)) for b in range(a)])


def fleiss(maps):
    """Nominal, over all voxels; the label maps hold 0 ... C."""
    counts = np.stack([sum(m == c for m in maps) for c in range(int(np.max(maps)) + 1)]).reshape(int(np.max(maps)) + 1, -1)
    k = len(maps)
    chance = ((counts.sum(1) / counts.sum()) ** 2).sum()
    agree = ((counts * (counts - 1)).sum(0) / (k * (k - 1))).mean()
    return (agree - chance) / (1 - chance)


def same(a, b):
    """But for the last digits: the patterns of one structure among several are counted in another order."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return b == pytest.approx(a, rel=1e-6, abs=1e-9) if isinstance(a, float) else a == b


def numbered(labels):
    """1, 2, 3 for the structures."""
    return sum((c + 1) * is_structure(labels, values) for c, values in enumerate(VALUES))


@pytest.fixture
def case(tmp_path):
    maps = label_maps(3)
    return maps, {name: write_nrrd(tmp_path / f"{name}.nrrd", m) for name, m in zip(["Ada", "Ben", "Cem"], maps)}


def write_list(path, top, cases, **more):
    path.write_text(json.dumps({**top, "training": cases, **more}), "utf-8")
    return path


@pytest.fixture
def data_set(tmp_path):
    """Six cases, the last one with separate files of Ben, and with no Milz/Rand."""
    cases, maps = [], []
    for i in range(6):
        mine = label_maps(3, seed=i)
        if i == 5:
            mine = [np.where(m == 7, 0, m).astype(np.uint8) for m in mine]
        label = {}
        for name, m in zip(["Ada", "Ben", "Cem"], mine):
            label[name] = write_nrrd(tmp_path / f"c{i}_{name}.nrrd", m).name
        if i == 5:
            label["Ben"] = {name: write_nrrd(tmp_path / f"c5_Ben_{c}.nrrd", is_structure(mine[1], v).astype(np.uint8)).name
                            for c, (name, v) in enumerate(zip(NAMES, VALUES))}
        cases.append({"id": f"c{i}", "label": label})
        maps.append(mine)
    return write_list(tmp_path / "list.json", {"structures": STRUCTURES}, cases), maps


# ---- agree -----------------------------------------------------------------------------------------

def test_agree_on_each_structure(case):
    maps, files = case
    answer = run("agree", *raters(files), *LABELS, "--json", "-").json
    assert list(answer["structures"]) == NAMES
    for name, values in zip(NAMES, VALUES):
        masks = [is_structure(m, values) for m in maps]
        one = answer["structures"][name]
        assert one["mean_dice"] == pytest.approx(mean_dice(masks), abs=1e-12)
        assert one["whole"]["fleiss_kappa"] == pytest.approx(fleiss(np.array(masks).astype(int)), abs=1e-12)
        assert [r["voxels"] for r in one["raters"].values()] == [m.sum() for m in masks]
        assert one["remarks"] == []
        alone = run("agree", *raters(files), *LABELS, "--structure", name, "--json", "-").json
        del alone["seconds"], alone["version"]
        assert same(alone, one)
    means = [answer["structures"][name]["mean_dice"] for name in NAMES]
    assert answer["mean"]["mean_dice"] == pytest.approx(np.mean(means), abs=1e-12)
    assert answer["labels"]["whole"]["fleiss_kappa"] == pytest.approx(fleiss([numbered(m) for m in maps]), abs=1e-12)
    assert len(answer["labels"]["pairs"]) == 3


def test_agree_tables(case, tmp_path):
    _, files = case
    text = run("agree", *raters(files), *LABELS, "--csv", tmp_path / "a.csv", "--csv-long", tmp_path / "l.csv").out
    lines = text.splitlines()
    assert lines[0].startswith("Agreement on 3 structures: 3 raters, ")
    assert [line[:14].strip() for line in lines[3:8]] == [*NAMES, "mean", "all labels"]
    assert sum(line.startswith("Largest disputed regions") for line in lines) == 3
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text("utf-8"))))
    assert [row["structure"] for row in rows] == NAMES and {row["case"] for row in rows} == {"case"}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "l.csv").read_text("utf-8"))))
    assert {row["structure"] for row in rows} == set(NAMES)
    one = run("agree", *raters(files), *LABELS, "--structure", NAMES[1], "--csv", "-", "--quiet").out
    assert "structure" not in one.splitlines()[0]


def test_agree_on_a_list(data_set, tmp_path):
    path, maps = data_set
    done = run("agree", "--data", path, "--json", tmp_path / "a.json", "--csv-long", tmp_path / "l.csv")
    answer = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert list(answer["structures"]) == NAMES and len(answer["cases"]) == 6 and answer["left_out"] == []
    for name, values in zip(NAMES, VALUES):
        expected = [mean_dice([is_structure(m, values) for m in mine]) for mine in maps[:5 if name == NAMES[2] else 6]]
        figures = answer["structures"][name]["data_set"]
        part = figures["without_empty"] if name == NAMES[2] else figures
        assert part["figures"]["mean_dice"]["mean"] == pytest.approx(np.mean(expected), abs=1e-9)
    assert answer["structures"][NAMES[2]]["data_set"]["empty_cases"] == ["c5"]
    assert "Nobody marked the structure Milz/Rand." in answer["cases"][5]["structures"][NAMES[0]]["remarks"]
    kappas = [fleiss([numbered(m) for m in mine]) for mine in maps]
    assert answer["labels"]["figures"]["fleiss_kappa"]["mean"] == pytest.approx(np.mean(kappas), abs=1e-9)
    assert "Structure Leberläsion" in done.out and done.out.count("all labels") == 7
    alone = run("agree", "--data", path, "--structure", NAMES[1], "--json", "-").json
    for one, other in zip(alone["cases"], answer["cases"]):
        mine = dict(one), dict(other["structures"][NAMES[1]])
        assert mine[0].pop("case") == other["case"] and mine[0].pop("split") == "training"
        mine[1]["remarks"] = mine[0]["remarks"]  # those of the case name other structures
        assert same(*mine)
    assert same(alone["data_set"]["figures"], answer["structures"][NAMES[1]]["data_set"]["figures"])


def test_maps_have_a_component_for_each_structure(case, tmp_path):
    maps, files = case
    run("agree", *raters(files), *LABELS, "--levels", tmp_path / "l.nrrd", "--entropy", tmp_path / "e.nrrd")
    levels, entropy = read_image(tmp_path / "l.nrrd").array, read_image(tmp_path / "e.nrrd").array
    for c, values in enumerate(VALUES):
        votes = sum(is_structure(m, values).astype(int) for m in maps)
        assert np.array_equal(levels[..., c], votes)
        share = np.clip(votes / 3, 1e-12, 1 - 1e-12)
        assert np.allclose(entropy[..., c], -share * np.log2(share) - (1 - share) * np.log2(1 - share), atol=1e-6)


# ---- fuse ------------------------------------------------------------------------------------------

def plurality(maps):
    """The label most raters gave, 1 ... C; a tie goes to a structure, the lower number first."""
    counts = np.stack([sum((numbered(m) == c).astype(int) for m in maps) for c in (1, 2, 3, 0)])
    return np.array([1, 2, 3, 0])[counts.argmax(0)]


def test_plurality(case, tmp_path):
    maps, files = case
    answer = run("fuse", "--method", "median", *raters(files), *LABELS, "-o", tmp_path / "o.nrrd", "--json", "-").json
    image = read_image(tmp_path / "o.nrrd").array
    assert image.dtype == np.uint8 and np.array_equal(image, np.array([0, 1, 2, 7])[plurality(maps)])
    assert answer["labels"] == ["background", *NAMES] and answer["values"] == [0, 1, 2, 7]
    header = (tmp_path / "o.nrrd").read_bytes().split(b"\n\n")[0].decode()
    assert "Segment1_Name:=Leberläsion" in header and "Segment2_LabelValue:=7" in header
    refused("fuse", "--method", "median", *raters(files), *LABELS, "-o", tmp_path / "p.nrrd", "--tie", "background",
            says="a tie goes to a structure", folder=tmp_path)


def test_staple_of_all_labels(case, tmp_path):
    maps, files = case
    done = run("fuse", "--method", "staple", *raters(files), *LABELS, "-o", tmp_path / "o.nrrd", "--json", tmp_path / "o.json")
    answer = json.loads((tmp_path / "o.json").read_text("utf-8"))
    image = read_image(tmp_path / "o.nrrd").array
    assert image.dtype == np.uint8 and set(np.unique(image)) == {0, 1, 2, 7}
    assert (image == np.array([0, 1, 2, 7])[plurality(maps)]).mean() > .95
    assert answer["converged"] and np.isclose(sum(answer["prior"]), 1)
    for matrix in answer["confusion"].values():
        assert np.allclose(np.sum(matrix, 0), 1) and (np.diag(matrix) > .6).all()
    assert "STAPLE of all labels" in done.out and "Ada" in done.out


@pytest.mark.parametrize("method", ["orc", "soft", "simple", "random", "svls"])
def test_a_component_for_each_structure(case, method, tmp_path):
    _, files = case
    answer = run("fuse", "--method", method, *raters(files), *LABELS, "-o", tmp_path / "all.nrrd", "--json", "-").json
    image = read_image(tmp_path / "all.nrrd").array
    assert list(answer["structures"]) == NAMES and image.shape == (*SHAPE, 3)
    for c, name in enumerate(NAMES):
        one = run("fuse", "--method", method, *raters(files), *LABELS, "--structure", name, "-o", tmp_path / "one.nrrd",
                  "--json", "-").json
        assert np.array_equal(read_image(tmp_path / "one.nrrd").array, image[..., c])
        assert same(answer["structures"][name], {key: one[key] for key in answer["structures"][name]})


def test_fuse_a_list(data_set, tmp_path):
    path, maps = data_set
    run("fuse", "--method", "median", "--data", path, "-o", tmp_path / "out")
    for i, mine in enumerate(maps):
        assert np.array_equal(read_image(tmp_path / "out" / f"c{i}_median.nrrd").array, np.array([0, 1, 2, 7])[plurality(mine)])


# ---- lists -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("top", [
    {"labels": {"0": "background", "1": "a", "2": "b"}},
    {"labels": {"background": 0, "a": 1, "b": 2}},
    {"structures": {"a": 1, "b": 2}},
], ids=["MONAI", "nnU-Net", "structures"])
def test_three_ways_to_name_structures(top, case, tmp_path):
    maps, files = case
    path = write_list(tmp_path / "list.json", top, [{"id": "c", "label": {name: str(f) for name, f in files.items()}}])
    done = run("agree", "--data", path, "--json", tmp_path / "a.json")
    one = json.loads((tmp_path / "a.json").read_text("utf-8"))["cases"][0]["structures"]
    assert one["b"]["raters"]["Ada"]["voxels"] == (maps[0] == 2).sum()
    assert "Label values that no structure has count as background: 3 and 7 (" in done.err


def test_one_structure_is_as_always(case, tmp_path):
    """A key with one structure is "value"; a dictionary with one label, or beside a "value", is not read."""
    _, files = case
    cases = [{"id": "c", "label": {name: str(f) for name, f in files.items()}}]

    def answer(top):
        done = run("agree", "--data", write_list(tmp_path / "list.json", top, cases), "--json", "-").json
        del done["seconds"]
        return done

    assert answer({"structures": {"kidney": [2, 3]}}) == answer({"value": [2, 3]})
    assert answer({"labels": {"0": "background", "1": "tumor"}}) == answer({})
    assert answer({"labels": {"1": "a", "2": "b"}, "value": 2}) == answer({"value": 2})
    assert "structures" not in answer({})


def test_ignored_voxels_are_no_answers(tmp_path):
    a = np.array([[1, 1, 2, 2, 9, 9]] * 3, np.uint8)
    b = np.array([[1, 1, 2, 0, 1, 9]] * 3, np.uint8)
    files = {"A": write_nrrd(tmp_path / "a.nrrd", a).name, "B": write_nrrd(tmp_path / "b.nrrd", b).name}
    path = write_list(tmp_path / "list.json", {"labels": {"background": 0, "a": 1, "b": 2, "ignore": 9}},
                      [{"id": "c", "label": files}])
    one = run("agree", "--data", path, "--json", "-").json["cases"][0]["structures"]
    assert one["a"]["mean_dice"] == 1 and one["b"]["mean_dice"] == pytest.approx(2 * 3 / (6 + 3))


def test_segments_by_name(case, tmp_path):
    """A Slicer segmentation is one rater's; its segments are the structures of their names, whatever their values."""
    maps, files = case
    fields = {}
    for i, (name, value) in enumerate([("Leberläsion", 1), ("left kidney", 2), ("something else", 3)]):
        fields |= {f"Segment{i}_Name": name, f"Segment{i}_LabelValue": value, f"Segment{i}_Layer": 0, f"Segment{i}_ID": f"S{i}"}
    swapped = np.select([is_structure(maps[1], [2, 3]), maps[1] == 1, maps[1] == 7], [1, 2, 3], 0).astype(np.uint8)
    path = write_nrrd(tmp_path / "Ben.seg.nrrd", swapped, fields=fields)
    answer = run("agree", "--rater", f"Ada={files['Ada']}", "--rater", path, *LABELS, "--json", "-").json["structures"]
    assert [answer[name]["raters"]["Ben"]["voxels"] for name in NAMES] == [
        (maps[1] == 1).sum(), is_structure(maps[1], [2, 3]).sum(), 0]
    alone = run("agree", "--rater", path, *LABELS, "--structure", "Milz/Rand", "--json", "-").json
    assert alone["raters"]["Ben"]["voxels"] == 0
    refused("agree", "--rater", path, "--label", "a=1", "--label", "b=2", says="no segment has the name of a structure")


# ---- bad input -------------------------------------------------------------------------------------

def test_unnamed_labels_and_unmarked_structures(case):
    maps, files = case
    done = run("agree", *raters(files), "--label", "a=1", "--label", "b=2", "--label", "c=9")
    count = is_structure(maps[0], [3, 7]).sum()
    assert f"Label values that no structure has count as background: 3 and 7 ({count} voxels) of Ada" in done.err
    assert "and in 2 other masks" in done.err and "Nobody marked the structure c." in done.err


def test_raters_with_other_label_values(case, tmp_path):
    maps, files = case
    other = write_nrrd(tmp_path / "other.nrrd", np.where(maps[1] > 0, maps[1] + 100, 0).astype(np.uint8))
    words = ["--rater", f"Ada={files['Ada']}", "--rater", f"Ben={other}"]
    refused("agree", *words, *LABELS, says=["No label value of a structure", "other.nrrd", "101, 102, 103 and 107", "Ben"])
    # In a list, each rater may say which values were used.
    ben = {name: {"file": "other.nrrd", "value": [v + 100 for v in values]} for name, values in zip(NAMES, VALUES)}
    path = write_list(tmp_path / "list.json", {"structures": STRUCTURES},
                      [{"id": "c", "label": {"Ada": files["Ada"].name, "Ben": ben}}])
    answer = run("agree", "--data", path, "--json", "-").json["cases"][0]["structures"]
    assert answer[NAMES[1]]["raters"]["Ben"]["voxels"] == is_structure(maps[1], [2, 3]).sum()


def test_overlap_is_refused_with_the_voxel(tmp_path):
    a, b = np.zeros(SHAPE, np.uint8), np.zeros(SHAPE, np.uint8)
    a[1, 2, 3:6] = b[1, 2, 5:8] = 1
    files = {"left kidney": write_nrrd(tmp_path / "a.nrrd", a).name, "Leberläsion": write_nrrd(tmp_path / "b.nrrd", b).name}
    path = write_list(tmp_path / "list.json", {"structures": {"left kidney": 1, "Leberläsion": 2}},
                      [{"id": "c", "label": {"Ada": files}}])
    done = run("agree", "--data", path, check=False)
    assert done.code == 1 and "voxel (5, 2, 1) as left kidney and as Leberläsion" in done.err


@pytest.mark.parametrize("top, says", [
    ({"structures": {f"s{i}": i for i in range(1, 34)}}, "33 structures"),
    ({"structures": {"a": 1, "b": 1}}, "the label value 1 is given twice, for a and b"),
    ({"structures": {"a": 0, "b": 1}}, "0, which is the background"),
    ({"structures": {"": 1, "b": 2}}, "no name"),
    ({"structures": {"a b": 1, "a/b": 2}}, "the same name"),
    ({"structures": [1, 2]}, "must be an object"),
    ({"structures": {"a": 1, "b": 2}, "value": 1}, "leave out one of them"),
    ({"labels": {"background": 0, "whole": [1, 2], "core": 2}}, "overlapping regions"),
])
def test_refused_lists(top, says, tmp_path):
    path = write_list(tmp_path / "list.json", top, [{"id": "c", "label": {"A": "a.nrrd"}}])
    refused("agree", "--data", path, says=[says, "list.json"], folder=tmp_path)


@pytest.mark.parametrize("words, says", [
    (["--label", "kidney"], "--label 'kidney' must be a name and label values"),
    (["--label", "a=1", "--label", "b=1"], "--label: the label value 1 is given twice"),
    (["--label", "a=1", "--label", "a=2"], "a is named twice"),
    ([w for i in range(1, 34) for w in ("--label", f"s{i}={i}")], "33 structures"),
    (["--label", "a=1", "--label", "b=2", "--structure", "c"], "Unknown structure 'c'; there are a and b."),
    (["--structure", "c"], "no structures were named"),
])
def test_refused_words(words, says, case, tmp_path):
    refused("agree", *raters(case[1]), *words, says=says, folder=tmp_path)


def test_refused_cases(case, tmp_path):
    maps, files = case
    small = write_nrrd(tmp_path / "small.nrrd", maps[0][:, :, :5])
    refused("agree", "--rater", f"A={files['Ada']}", "--rater", f"B={small}", *LABELS, says=["small.nrrd", "another size"])
    refused("agree", "--rater", f"A={files['Ada']}:1", *LABELS, says="uses their label values")
    path = write_list(tmp_path / "list.json", {"structures": {"a": 1, "b": 2}}, [{"id": "c", "label": {"A": "Ada.nrrd"}}])
    refused("agree", "--data", path, "--label", "a=1", says="--label goes with --rater")
    refused("agree", "--data", path, "--structure", "c", says="there are a and b.")
    away = write_nrrd(tmp_path / "away.nrrd", maps[1], origin=(.4, 0, 0))
    done = run("agree", "--rater", f"A={files['Ada']}", "--rater", f"B={away}", *LABELS, "--resample", "--json", "-").json
    assert done["structures"][NAMES[0]]["raters"]["B"]["voxels"] == (maps[1] == 1).sum()
