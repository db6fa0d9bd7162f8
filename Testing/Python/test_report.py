# SPDX-License-Identifier: Apache-2.0
"""rater-consensus report: the page says what agree and evaluate say, and bad input gets one sentence."""
import html
import json
import re

import numpy as np
import pytest

from rcn_models import write_model
from rcn_report_cases import levels_of, report_cases
from rcn_testing import blobs, disc_list, leftovers, raters, read_image, read_nrrd, refused, run, write_nrrd, write_png


def tables(page):
    """{caption: (columns, rows of texts)}"""
    found = {}
    for caption, table in re.findall(r'<p class="caption"[^>]*>(.*?)</p>\s*<div class="scroll".*?<table[^>]*>(.*?)</table>', page, re.S):
        head, body = table.split("<tbody>")
        clean = lambda text: html.unescape(re.sub(r"<small>.*?</small>|<[^>]+>", "", text)).replace("≈ ", "")  # noqa: E731
        found[html.unescape(caption)] = ([clean(c) for c in re.findall(r"<th.*?</th>", head)],
                                         [[clean(c) for c in re.findall(r"<td.*?</td>", row)] for row in re.findall(r"<tr>.*?</tr>", body, re.S)])
    return found


def table_of(page, begin):
    columns, rows = next(table for caption, table in tables(page).items() if caption.startswith(begin))
    return [dict(zip(columns, row)) for row in rows]


def is_self_contained(page):
    return not re.search(r"https?:|\bsrc=|url\(|@import", page)


@pytest.fixture(scope="module")
def volume(tmp_path_factory):
    """One case in 3-D with names as nobody should choose them."""
    folder = tmp_path_factory.mktemp("volume")
    masks = blobs(3, (12, 40, 50), noise=0.01)
    names = ["Ada & \"co\"", "<b>Ben</b>", "Cleo's"]
    spacing = {"spacing": (0.8, 0.8, 2.5)}
    files = {name: write_nrrd(folder / f"r{i}.nrrd", mask, **spacing) for i, (name, mask) in enumerate(zip(names, masks))}
    image = (np.mean(masks, 0) * 100 + np.random.default_rng(0).normal(0, 10, masks[0].shape)).astype(np.float32)
    write_nrrd(folder / "image.nrrd", image, **spacing)
    write_nrrd(folder / "levels.nrrd", levels_of(masks, 0.7), components=True, **spacing)
    done = run("report", *raters(files), "--image", folder / "image.nrrd", "--pred", f"<i>net</i>={folder / 'levels.nrrd'}",
               "-o", folder / "one.html")
    return folder, files, (folder / "one.html").read_text("utf-8"), done


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("list")
    data = report_cases(folder, counts=(0, 3, 5))
    done = run("report", "--data", data, "--split", "test", "--pred", f"net={folder / 'levels'}", "--pred", f"plain={folder / 'prob'}",
               "--pictures", "2", "-o", folder / "many.html")
    return folder, data, (folder / "many.html").read_text("utf-8"), done


def test_one_case_says_what_agree_says(volume):
    folder, files, page, done = volume
    assert "one.html" in done.out and not leftovers(folder) and is_self_contained(page)
    figures = run("agree", *raters(files), "--json", "-").json
    for row in table_of(page, "Each rater"):
        one = figures["raters"][row["Rater"]]
        assert abs(float(row["Dice"]) - one["dice_to_others"]) < 6e-4
        assert abs(float(row["Volume (mL)"]) - one["volume_ml"]) < 6e-3
    pairs = table_of(page, "Pairs")
    assert len(pairs) == 3
    for row, pair in zip(pairs, figures["pairs"]):
        assert abs(float(row["Dice"]) - pair["dice"]) < 6e-4 and abs(float(row["Hausdorff 95 % (mm)"]) - pair["hausdorff95_mm"]) < 6e-3
    overall = {row["Figure"]: row for row in table_of(page, "All raters")}
    assert abs(float(overall["Fleiss' κ"]["Whole image"]) - figures["whole"]["fleiss_kappa"]) < 6e-4
    assert abs(float(overall["Krippendorff's α"]["Where anybody marked"]) - figures["union"]["krippendorff_alpha"]) < 6e-4
    levels = table_of(page, "Levels")
    assert [row["Marked by"] for row in levels] == ["1 of 3", "2 of 3", "3 of 3"]
    assert abs(sum(float(row["Share of what anybody marked (%)"]) for row in levels) - 100) < 0.2
    assert len(table_of(page, "Largest disputed")) == min(10, figures["disputed_region_count"])


def test_names_are_only_names(volume):
    _, _, page, _ = volume
    assert "<b>Ben" not in page and "<i>net" not in page and "&lt;b&gt;Ben&lt;/b&gt;" in page and "&lt;i&gt;net" in page
    assert page.count("<script") == 1


def test_one_case_is_judged_as_evaluate_judges(volume):
    folder, files, page, _ = volume
    rows = table_of(page, "Each model")
    for region, words in (("box", "Around the marks"), ("band", "Near the contour"), ("disputed", "Disputed voxels")):
        for readout in ("majority", "expected"):
            row, = [r for r in rows if r["Region"] == words and r["Model"] == f"<i>net</i> ({readout})"]
            done = run("evaluate", *raters(files), "--prob", folder / "levels.nrrd", "--region", region, "--readout", readout, "--json", "-").json
            assert abs(float(row["MR-ECE (%)"]) - 100 * done["mr_ece"]) < 6e-3
            assert abs(float(row["Brier"]) - done["brier"]) < 6e-5 and abs(float(row["Dice"]) - done["dice"]) < 6e-5
            assert abs(float(row["AUC"]) - done["auc"]) < 2e-3


def test_volumes_of_one_case(volume):
    folder, files, page, _ = volume
    levels, sizes = read_image(folder / "levels.nrrd").array, {name: read_image(file).array.sum() for name, file in files.items()}
    rows = {row["Who"]: row for row in table_of(page, "Volume: what each model expects")}
    ml = 0.8 * 0.8 * 2.5 / 1000
    assert abs(float(rows["<i>net</i>"]["Volume (mL)"]) - ml * (levels @ [0, 1 / 3, 2 / 3, 1]).sum()) < 6e-3
    assert all(abs(float(rows[name]["Volume (mL)"]) - ml * size) < 6e-2 for name, size in sizes.items())
    assert rows["<i>net</i>"]["80 % prediction interval"] == "–" and "There is no interval" in page
    row, = table_of(page, "Volumes against the raters")
    done = run("evaluate", *raters(files), "--prob", folder / "levels.nrrd", "--json", "-").json["volumes"]
    assert row["Model"] == "<i>net</i>" and abs(float(row["volume CRPS (mL)"]) - done["crps"]) < 6e-4
    assert abs(float(row["CURVAS CRPS (mL)"]) - done["curvas_crps"]) < 6e-4 and row["upper limit of agreement (mL)"] == "–"


def test_pictures_of_one_case(volume):
    _, _, page, _ = volume
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    for caption in ("Image", "All outlines", "How many raters marked it", "Cleo&#39;s", "Exactly 2 of 3", "&lt;i&gt;net&lt;/i&gt; (expected)"):
        assert caption in captions
    # The image of a slice is there once, however many panels show it.
    assert page.count("data:image/png") == len(re.findall(r'<image id="picture\d+"', page)) == 2
    assert page.count('xlink:href="#picture1"') > 8
    assert page.count("Reliability diagram") == 6 and " %, marked by " in page
    # The levels are the same whatever is read out of them.
    assert page.count("Reliability of levels") == 1 and "at least 2 of 3 raters" in page
    shares = table_of(page, "How many raters")
    assert [row["Raters"] for row in shares] == ["0", "1", "2", "3"]
    assert sum(float(row["Predicted (%)"]) for row in shares) == pytest.approx(100, abs=.03)
    assert all(label.strip() for label in re.findall(r'role="img" aria-label="(.*?)"', page))


def test_a_list_case_by_case(many):
    folder, data, page, done = many
    assert "5 cases" in done.out and is_self_contained(page)
    figures = run("agree", "--data", data, "--split", "test", "--json", "-").json["cases"]
    rows = table_of(page, "Click")
    assert [row["Case"] for row in rows] == [one["case"] for one in figures]
    judged = run("evaluate", "--data", data, "--split", "test", "--pred", folder / "prob", "--region", "box", "--json", "-").json
    for row, one in zip(rows, figures):
        assert abs(float(row["Mean Dice"]) - one["mean_dice"]) < 6e-4
        assert float(row["MR-ECE (%), plain"]) > 0
    plain, = [r for r in table_of(page, "Each model") if r["Model"] == "plain" and r["Region"] == "Around the marks"]
    assert abs(float(plain["MR-ECE (%)"]) - 100 * judged["mr_ece"]) < 6e-3
    low, high = (f"{100 * v:.2f}" for v in judged["ci"]["mr_ece"])
    assert f"{low} to {high}" in page
    # Two pictures were asked for: those of the most disputed cases.
    shown = re.findall(r"<h3>(c\d+)</h3>", page)
    disputed = sorted(rows, key=lambda row: -float(row["Disputed (%)"]))
    assert shown == [row["Case"] for row in disputed[:2]]


def test_few_cases_tell_no_models_apart(tmp_path):
    """Without an interval of the difference nothing is known about it."""
    data = report_cases(tmp_path, counts=(0, 3, 3))
    run("report", "--data", data, "--split", "test", "--pred", f"net={tmp_path / 'levels'}", "--pred", f"plain={tmp_path / 'prob'}",
        "--readout", "expected", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    table = page[page.index("Each model"):]
    table = table[:table.index("</table>")]
    # Five figures in two regions; where raters disagree, nothing is ranked. One ≈ is in the caption.
    assert table.count("number best") == 10 and table.count("≈ ") == 10 + 1


def test_lengths_in_pixels_and_in_millimeters_have_no_mean(tmp_path):
    y, x = np.mgrid[:32, :32]
    cases = []
    for i in range(2):
        label = {}
        for name, radius in (("A", 6), ("B", 9)):
            mask = (np.hypot(y - 16, x - 16) < radius).astype(np.uint8)
            label[name] = f"{i}{name}" + (".nrrd" if i else ".png")
            write_nrrd(tmp_path / label[name], mask, spacing=(5, 5)) if i else write_png(tmp_path / label[name], 255 * mask)
        cases.append({"id": f"c{i}", "label": label})
    (tmp_path / "list.json").write_text(json.dumps({"raters": ["A", "B"], "test": cases}))
    run("report", "--data", tmp_path / "list.json", "-o", tmp_path / "r.html")
    pair, = table_of((tmp_path / "r.html").read_text("utf-8"), "Pairs of raters")
    for name in ("Hausdorff 95 %", "Mean surface distance"):  # the same outlines, of pixels of 5 mm: each unit has its own column
        assert float(pair[name + " (mm)"]) == pytest.approx(5 * float(pair[name + " (pixels)"]), abs=.03)
    assert float(pair["Dice"]) > 0
    rater = table_of((tmp_path / "r.html").read_text("utf-8"), "Each rater: mean and 95 % interval over 2 cases")[0]
    assert "Bias (%)" not in rater and "Dice with each other rater" in rater


def test_the_headline_stands_beside_the_contour(many):
    """A box can be nearly all background."""
    folder, data, page, _ = many
    band = run("evaluate", "--data", data, "--split", "test", "--pred", folder / "prob", "--region", "band", "--json", "-").json["mr_ece"]
    assert re.search(rf"plain: around the marks .* near the contour by {100 * band:.1f} %", page)
    assert "around the marks; near the contour" in page


def test_ties_are_taken_as_evaluate_takes_them(tmp_path):
    """Two raters, a model for which a tie is background: its predictions, the model alone, and maps that nobody knows."""
    data = disc_list(tmp_path, counts=(0, 0, 2), raters="AB")
    write_model(tmp_path / "m.safetensors", raters="AB", tie="background", readout="more-than-half").close()
    run("predict", "--model", tmp_path / "m.safetensors", "--data", data, "-o", tmp_path / "known")
    (tmp_path / "maps").mkdir()
    for file in (tmp_path / "known").glob("*_levels.nrrd"):
        (tmp_path / "maps" / file.name).write_bytes(file.read_bytes())
    judged = run("evaluate", "--data", data, "--pred", tmp_path / "known", "--json", "-").json
    assert judged["tie"] == "background" and judged["readout"] == "more-than-half"
    for words in (("--pred", f"net={tmp_path / 'known'}"), ("--pred", f"net={tmp_path / 'known'}", "--readout", "majority"),
                  ("--model", f"net={tmp_path / 'm.safetensors'}"), ("--pred", f"net={tmp_path / 'maps'}", "--readout", "more-than-half")):
        run("report", "--data", data, *words, "-o", tmp_path / "o.html")
        row = next(r for r in table_of((tmp_path / "o.html").read_text("utf-8"), "Each model") if list(r.values())[0] == "net (more-than-half)")
        assert float(row["Dice"]) == pytest.approx(judged["dice"], abs=1e-4), words
        assert float(row["MR-ECE (%)"]) == pytest.approx(100 * judged["mr_ece"], abs=.01), words


def test_a_bad_first_case_of_the_second_model(tmp_path):
    """Its levels do not sum to 1: the case is left out, and the others are judged."""
    data = report_cases(tmp_path, counts=(0, 0, 3))
    other = tmp_path / "other"
    other.mkdir()
    for path in sorted((tmp_path / "levels").iterdir()):
        levels = read_nrrd(path).array
        write_nrrd(other / path.name, levels * (.5 if path.name.startswith("c0") else 1), components=True)
    done = run("report", "--data", data, "--pred", f"net={tmp_path / 'levels'}", "--pred", f"other={other}", "-o", tmp_path / "r.html", check=False)
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Case c0 was left out" in done.err and "Case c0 was left out" in page
    rows = [row for row in table_of(page, "Each model") if row["Region"] == "Around the marks"]
    assert [row["Model"] for row in rows] == ["net (majority)", "net (expected)", "other (majority)", "other (expected)"]
    assert all(float(row["MR-ECE (%)"]) > 0 for row in rows)


def test_most_disputed_slices_of_one_lesion(tmp_path):
    """One lesion, one disputed region: as many slices as asked for, the most disputed first."""
    a = np.zeros((6, 30, 30), np.uint8)
    a[1:5, 10:16, 10:16] = 1
    b = a.copy()
    for z, more in ((1, 1), (2, 2), (3, 5), (4, 3)):
        b[z, 10:16, 16:16 + more] = 1
    files = {"A": write_nrrd(tmp_path / "a.nrrd", a), "B": write_nrrd(tmp_path / "b.nrrd", b)}
    run("report", *raters(files), "--slices", "3", "-o", tmp_path / "r.html")
    notes = re.findall(r"Slice (\d+): (\d+) of (\d+) marked voxels disputed", (tmp_path / "r.html").read_text("utf-8"))
    assert notes == [("4", "30", "66"), ("5", "18", "54"), ("3", "12", "48")]  # from 1


def test_how_it_was_made(many):
    folder, data, page, _ = many
    assert re.search(r"<code>rater-consensus report --data .*list\.json --split test", page) and "jackknife over patients or cases" in page
    files = {row["File"]: row for row in table_of(page, "Files")}
    levels = folder / "levels" / "c3_levels.nrrd"
    assert float(files[str(levels)]["Bytes"]) == levels.stat().st_size and str(data) in files
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", files[str(levels)]["Changed"])


def test_recalibration_before_and_after(many, tmp_path):
    folder, data, _, _ = many
    words = ["report", "--data", data, "--pred", f"net={folder / 'levels'}", "--pictures", "0"]
    run("recalibrate", "--method", "temperature", "--data", data, "--pred", folder / "levels", "-o", tmp_path / "t.json")
    run(*words, "--split", "test", "--recalibration", f"net={tmp_path / 't.json'}", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    after = run("evaluate", "--data", data, "--split", "test", "--pred", folder / "levels", "--recalibration", tmp_path / "t.json",
                "--region", "box", "--readout", "majority", "--json", "-").json
    rows = {row["Model"]: row for row in table_of(page, "Each model") if row["Region"] == "Around the marks"}
    assert abs(float(rows["net (majority), recalibrated"]["MR-ECE (%)"]) - 100 * after["mr_ece"]) < 6e-3
    assert abs(float(rows["net (majority), uncorrected"]["MR-ECE (%)"]) - 100 * after["before_recalibration"]["mr_ece"]) < 6e-3
    assert "gray: before recalibration" in page and "figures are too good" not in page and "<image" not in page
    run(*words, "--recalibration", tmp_path / "t.json", "-o", tmp_path / "r.html")  # validation cases too; the only model is meant
    assert "fitted on 3 of these cases" in (tmp_path / "r.html").read_text("utf-8")


def test_masks_alone(tmp_path, case):
    run("report", *raters(case), "-o", tmp_path / "r.html", "--title", "A <title>")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "<title>A &lt;title&gt;</title>" in page and "does 70 %" not in page and "<figcaption>Image" not in page
    assert "<figcaption>All outlines" in page


def test_raters_who_agree_or_mark_nothing(tmp_path):
    mask = blobs(1, (30, 30), noise=0)[0]
    files = {name: write_nrrd(tmp_path / f"{name}.nrrd", mask) for name in "AB"}
    run("report", *raters(files), "-o", tmp_path / "same.html")
    page = (tmp_path / "same.html").read_text("utf-8")
    assert "Nothing is disputed" in page and "almost perfect" in page
    files = {name: write_nrrd(tmp_path / f"{name}.nrrd", mask * 0) for name in "AB"}
    done = run("report", *raters(files), "-o", tmp_path / "none.html")
    page = (tmp_path / "none.html").read_text("utf-8")
    assert "nan" not in re.sub(r"base64,[^\"]*|<script>.*", "", page, flags=re.S).lower() and "marked nothing" in page
    run("report", "--rater", f"A={files['A']}", "-o", tmp_path / "one.html")
    assert "1 rater" in (tmp_path / "one.html").read_text("utf-8")


def test_pictures_are_the_right_way_up(tmp_path):
    """Anterior is on top and the patient's left on the right, however the file stores its rows."""
    mask = np.zeros((3, 60, 60), np.uint8)
    mask[:, 8:14, 8:14] = 1  # right, anterior
    other = mask.copy()
    other[:, 14:18, 8:14] = 1
    plain = {"A": write_nrrd(tmp_path / "a.nrrd", mask), "B": write_nrrd(tmp_path / "b.nrrd", other)}
    turned = {"A": write_nrrd(tmp_path / "ta.nrrd", mask[:, ::-1, ::-1], direction=np.diag([-1, -1, 1]), origin=(59, 59, 0)),
              "B": write_nrrd(tmp_path / "tb.nrrd", other[:, ::-1, ::-1], direction=np.diag([-1, -1, 1]), origin=(59, 59, 0))}
    boxes = []
    for name, files in (("plain", plain), ("turned", turned)):
        run("report", *raters(files), "-o", tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text("utf-8")
        path = re.search(r'aria-label="Outlines.*?<path d="M([^"]*)Z"', page, re.S).group(1)
        points = np.array([float(v) for v in re.findall(r"[\d.]+", path)]).reshape(-1, 2)
        boxes.append((points.min(0), points.max(0)))
    assert np.allclose(boxes[0], boxes[1], atol=0.05)


def test_a_case_that_cannot_be_used(many, tmp_path):
    folder, data, _, _ = many
    broken = json.loads(data.read_text("utf-8"))
    broken["test"] = [dict(case) for case in broken["test"]]
    broken["test"][1]["label"] = dict(broken["test"][1]["label"], B="missing.nrrd")
    path = folder / "broken.json"
    path.write_text(json.dumps(broken))
    done = run("report", "--data", path, "--split", "test", "-o", tmp_path / "r.html", check=False)
    assert done.code == 1 and "was left out" in done.err and "missing.nrrd" in done.err
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "4 cases" in page and "was left out" in page


@pytest.mark.parametrize("words, says", [
    ([], "either"),
    (["--data", "{data}", "--rater", "A={folder}/i3_A.nrrd"], "either"),
    (["--rater", "A={folder}/i3_A.nrrd", "--split", "test"], "--split"),
    (["--data", "{data}", "--image", "x.nrrd"], "--image"),
    (["--data", "{data}", "--pred", "net={folder}/nowhere"], "not a folder"),
    (["--data", "{data}", "--pred", "=x"], "NAME=FILE"),
    (["--data", "{data}", "--pred", "net={folder}/levels", "--pred", "net={folder}/prob"], "named twice"),
    (["--data", "{data}", "--readout", "best"], "--readout"),
    (["--data", "{data}", "--recalibration", "other=x.json"], "a model that is not given"),
    (["--data", "{data}", "--split", "training"], "no case in the split training"),
    (["--rater", "A={folder}/i3_A.nrrd", "--pred", "net={folder}/levels"], "is a folder"),
    (["--rater", "A={folder}/i3_A.nrrd", "--pred", "net={folder}/list.json"], "list.json"),
    (["--rater", "A={folder}/i3_A.nrrd", "--pred", "net={folder}/levels/c3_levels.nrrd"], "values per voxel"),
    (["--rater", "A={folder}/none.nrrd"], "none.nrrd"),
    (["--data", "{data}", "--pictures", "many"], "--pictures"),
    (["--data", "{data}", "--model", "net={folder}/list.json"], "list.json"),
])
def test_bad_input(many, tmp_path, words, says):
    folder, data, _, _ = many
    filled = [word.format(folder=folder, data=data) for word in words]
    refused("report", *filled, "-o", tmp_path / "r.html", says=says, folder=tmp_path)


def test_no_place_to_write(many, tmp_path):
    _, data, _, _ = many
    refused("report", "--data", data, says="-o")
    refused("report", "--data", data, "-o", tmp_path / "no" / "r.html", says="r.html", folder=tmp_path)


def test_to_standard_output(case):
    done = run("report", *raters(case), "-o", "-")
    assert done.out.startswith("<!DOCTYPE html>") and done.out.endswith("</html>\n")


# ---- several structures

def touching_discs(folder, cases=5, raters="ABC"):
    """A list of pictures with three structures that touch, and shares of them as predictions in shares/."""
    rng = np.random.default_rng(4)
    y, x = np.mgrid[:48, :48]
    (folder / "shares").mkdir()
    listed = []
    for i in range(cases):
        shares, label = np.zeros((48, 48, 3), np.float32), {}
        for name in raters:
            wide = rng.normal(0, 1, 3)
            drawn = np.zeros((48, 48), np.uint8)
            for value, (cx, cy, size) in {1: (15, 20, 9), 2: (32, 20, 8), 7: (23, 36, 7)}.items():
                drawn[(drawn == 0) & ((x - cx) ** 2 + (y - cy) ** 2 < (size + wide[value % 3]) ** 2)] = value
            shares += np.stack([drawn == value for value in (1, 2, 7)], -1) / len(raters)
            label[name] = write_nrrd(folder / f"c{i}_{name}.nrrd", drawn).name
        image = shares @ np.float32([1, 2, 3]) + rng.normal(0, .1, shares.shape[:2])
        write_nrrd(folder / f"c{i}.nrrd", image.astype(np.float32))
        write_nrrd(folder / "shares" / f"c{i}_prob.nrrd", (0.01 + 0.9 * np.roll(shares, 1, 1)).astype(np.float32), components=True)
        listed.append({"id": f"c{i}", "image": f"c{i}.nrrd", "label": label})
    path = folder / "list.json"
    path.write_text(json.dumps({"structures": {"left kidney": 1, "Lösion": 2, "<b>": 7}, "raters": list(raters), "test": listed}))
    return path


@pytest.fixture(scope="module")
def structures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("structures")
    data = touching_discs(folder)
    run("report", "--data", data, "--pred", f"net={folder / 'shares'}", "--pictures", "1", "-o", folder / "all.html")
    return folder, data, (folder / "all.html").read_text("utf-8")


def test_several_structures_have_sections_of_their_own(structures):
    folder, data, page = structures
    assert is_self_contained(page) and not leftovers(folder)
    ids = re.findall(r'<section id="([a-z]+[0-9]*)"', page)
    assert len(ids) == len(set(ids))
    for number in "123":
        assert {part + number for part in ("summary", "agreement", "pictures", "models", "cases")} <= set(ids)
    assert "&lt;b&gt;: Summary" in page and "<b>: Summary" not in page and "3 structures" in page


def test_a_structure_is_reported_as_if_it_were_alone(structures):
    folder, data, page = structures
    rows = {row["Structure"]: row for row in table_of(page, "Each structure")}
    assert list(rows) == ["left kidney", "Lösion", "<b>"]
    listed = json.loads(data.read_text())
    for number, (name, value) in enumerate(listed.pop("structures").items()):
        alone = folder / f"alone{number}"
        alone.mkdir(exist_ok=True)
        for case in listed["test"]:
            shares = read_nrrd(folder / "shares" / f"{case['id']}_prob.nrrd").array
            write_nrrd(alone / f"{case['id']}_prob.nrrd", np.ascontiguousarray(shares[..., number]))
        one = folder / f"alone{number}.json"
        one.write_text(json.dumps({**listed, "value": value}))
        run("report", "--data", one, "--pred", f"net={alone}", "--pictures", "0", "-o", folder / "one.html")
        single = (folder / "one.html").read_text("utf-8")
        whole = re.search(rf'<section id="cases{number + 1}".*?</section>', page, re.S).group(0)
        assert table_of(whole, "Click") == table_of(single, "Click")
        models = re.search(rf'<section id="models{number + 1}".*?</section>', page, re.S).group(0)
        assert table_of(models, "Each model") == table_of(single, "Each model")
        assert rows[name]["MR-ECE (%)"] == table_of(single, "Each model")[0]["MR-ECE (%)"]
        overall = {row["Figure"]: row for row in table_of(single, "All raters together, corrected")}
        assert rows[name]["Fleiss' κ"] == overall["Fleiss' κ"]["Whole image"]


def test_one_of_several_structures(structures):
    folder, data, page = structures
    run("report", "--data", data, "--pred", f"net={folder / 'shares'}", "--pictures", "0", "--structure", "Lösion", "-o", folder / "two.html")
    single = (folder / "two.html").read_text("utf-8")
    whole = re.search(r'<section id="models2".*?</section>', page, re.S).group(0)
    assert table_of(single, "Each model") == table_of(whole, "Each model")
    assert "structure Lösion" in single and "left kidney" not in single
    refused("report", "--data", data, "--structure", "liver", "-o", folder / "no.html", says="liver", folder=folder)
    files = [word for name in "ABC" for word in ("--rater", f"{name}={folder / f'c0_{name}.nrrd'}")]
    labels = ["--label", "left kidney=1", "--label", "other=2,7"]
    refused("report", *files, *labels, "--slide", folder / "no.png", says="--structure", folder=folder)
    run("report", *files, *labels, "--structure", "other", "--image", folder / "c0.nrrd", "--slide", folder / "slide.svg")
    assert (folder / "slide.svg").exists()
