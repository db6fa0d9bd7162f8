# SPDX-License-Identifier: Apache-2.0
"""The page for an image that nobody outlined, the model's own record, and pictures for slides.

The model is trained here for seconds on pictures of discs (test_train.py); volumes are stacks of such pictures.
"""
import json
import re
import shutil
import struct

import numpy as np
import pytest

from rcn_browser import Browser, needs_chromium, needs_pdftotext
from rcn_models import read_metadata, with_metadata, write_model
from rcn_testing import needs_peers, refused, run, write_nrrd
from test_train import make_list, quick

pytestmark = pytest.mark.slow

NOTICE = "For research, not for clinical use."


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_list(tmp_path_factory.mktemp("patient") / "data", training=8, validation=6, test=5)


@pytest.fixture(scope="module")
def model(data):
    path = data.parent / "secret-name.safetensors"
    run("train", "--data", data, "-o", path, *quick(epochs=12), "--quiet")
    return path


@pytest.fixture(scope="module")
def scan(data):
    """Ten slices of 48 x 48; the disc is on slices 3 to 7, largest on 5."""
    random = np.random.default_rng(7)
    z, y, x = np.mgrid[:10, :48, :48]
    distance = np.sqrt(((z - 5) * 3) ** 2 + (y - 20) ** 2 + (x - 30) ** 2)
    image = random.normal(60, 12, distance.shape) + 100 / (1 + np.exp((distance - 8) / 0.8))
    write_nrrd(data.parent / "John_Doe.nrrd", image.astype(np.float32), spacing=(0.5, 0.5, 2))
    return data.parent / "John_Doe.nrrd"


@pytest.fixture(scope="module")
def page(data, model, scan):
    path = data.parent / "page.html"
    run("report", "--image", scan, "--model", model, "-o", path)
    return path


def record_of(path):
    return json.loads(read_metadata(path)["calibration"])


# ---- the record -------------------------------------------------------------------------------------------------------------


def test_train_records_what_it_learned_from_and_its_calibration(data, model, tmp_path):
    metadata = read_metadata(model)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", metadata["created"])
    learned = json.loads(metadata["training"])
    assert len(learned["training cases"]) == 8 and len(learned["validation cases"]) == 6
    assert list(record_of(model)) == ["validation"]
    entry = record_of(model)["validation"]
    assert entry["cases"] == 6 and entry["date"] == metadata["created"] and entry["readout"] == "expected" and len(entry["bins"]) == 15
    # The figures are those that train itself reports, which come from cases left out of the fit of the correction.
    again = tmp_path / "again.safetensors"
    run("train", "--data", data, "-o", again, *quick(epochs=12), "--quiet", "--json", tmp_path / "train.json")
    found = json.loads((tmp_path / "train.json").read_text("utf-8"))["validation"]
    assert entry["figures"]["mr_ece"]["value"] == found["mr_ece"] and [entry["figures"]["mr_ece"]["low"], entry["figures"]["mr_ece"]["high"]] == found["ci"]["mr_ece"]
    for mine, theirs in zip(entry["bins"], found["bins"]):
        assert mine == {key: value for key, value in theirs.items() if value is not None}
    assert "null" not in metadata["calibration"] and "NaN" not in metadata["calibration"]
    assert again.read_bytes() == model.read_bytes() or read_metadata(again)["created"] != metadata["created"]  # at midnight


@needs_peers
def test_others_read_a_model_with_a_record(model):
    from safetensors import safe_open
    with safe_open(model, "numpy") as file:
        assert "calibration" in file.metadata() and len(list(file.keys())) > 10


def test_evaluate_records_test_cases(data, model, tmp_path):
    mine = tmp_path / "m.safetensors"
    shutil.copy(model, mine)
    run("predict", "--data", data, "--model", mine, "-o", tmp_path / "pred", "--quiet")
    words = ["evaluate", "--data", data, "--pred", tmp_path / "pred"]
    done = run(*words, "--record", mine, "--json", tmp_path / "e.json")
    found = json.loads((tmp_path / "e.json").read_text("utf-8"))
    entry = record_of(mine)["test"]
    assert entry["cases"] == found["case_count"] == 5 and entry["learned"] == 0
    assert entry["figures"]["mr_ece"]["value"] == found["mr_ece"] and entry["auc"] == found["auc"]
    assert record_of(mine)["validation"] == record_of(model)["validation"]
    assert "Recorded in" in done.err and "5 cases" in done.err
    # Weights and predictions are what they were.
    weights = lambda path: path.read_bytes()[8 + struct.unpack("<Q", path.read_bytes()[:8])[0]:]
    assert weights(mine) == weights(model)
    run("report", "--image", data.parent / "te0.png", "--model", mine, "-o", tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text("utf-8")
    assert "On 5 test cases" in text and "On 6 validation cases" in text
    # Cases that it learned from are named as such.
    content = json.loads(data.read_text("utf-8"))
    content["test"], content["training"] = content["training"], content["test"]
    (data.parent / "swapped.json").write_text(json.dumps(content))
    done = run("evaluate", "--data", data.parent / "swapped.json", "--pred", tmp_path / "pred", "--record", mine, "--quiet")
    assert record_of(mine)["test"]["learned"] == 8 and "8 of the cases have the names of training cases" in done.err


def test_a_record_is_only_of_the_model_itself(data, model, tmp_path):
    mine = tmp_path / "m.safetensors"
    shutil.copy(model, mine)
    run("predict", "--data", data, "--model", mine, "-o", tmp_path / "pred", "--quiet")
    words = ["evaluate", "--data", data, "--pred", tmp_path / "pred"]
    before = mine.read_bytes()
    refused(*words, "--record", mine, "--split", "validation", says="test cases")
    refused("evaluate", "--prob", tmp_path / "pred" / "te0_prob.nrrd", "--rater", f"A={data.parent / 'te0_A.png'}", "--record", mine, says="--data LIST")
    other = tmp_path / "other.safetensors"
    run("train", "--data", data, "-o", other, *quick(epochs=1, seed=5), "--quiet")
    refused(*words, "--record", other, says=["predictions of another model", "m.safetensors"])
    run("predict", "--data", data, "--split", "test", "--model", mine, "-o", tmp_path / "plain", "--no-recalibration", "--quiet")
    if "recalibration" in read_metadata(mine):
        refused("evaluate", "--data", data, "--pred", tmp_path / "plain", "--record", mine, says="not made with the correction")
    (tmp_path / "pred" / "predictions.json").unlink()
    refused(*words, "--record", mine, says="does not name its model")
    assert mine.read_bytes() == before


def test_a_new_correction_makes_a_new_record(data, model, tmp_path):
    mine = tmp_path / "m.safetensors"
    shutil.copy(model, mine)
    run("predict", "--data", data, "--model", mine, "-o", tmp_path / "pred", "--quiet")
    run("evaluate", "--data", data, "--pred", tmp_path / "pred", "--record", mine, "--quiet")
    run("predict", "--data", data, "--split", "validation", "--model", mine, "-o", tmp_path / "plain", "--no-recalibration", "--quiet")
    run("recalibrate", "--method", "platt", "--data", data, "--pred", tmp_path / "plain", "--model", mine, "--replace", "--force",
        "--json", tmp_path / "r.json", "--quiet")
    found = json.loads((tmp_path / "r.json").read_text("utf-8"))["leave_one_out"]
    assert record_of(mine)["validation"]["figures"]["mr_ece"]["value"] == found["mr_ece"]
    run("report", "--image", data.parent / "te0.png", "--model", mine, "-o", tmp_path / "p.html", "--quiet")
    text = (tmp_path / "p.html").read_text("utf-8")
    assert "On 5 test cases (before its correction was changed)" in text and "its correction was changed since" in text
    assert "validation cases (before" not in text


def test_old_and_foreign_models_have_no_record(scan, tmp_path):
    write_model(tmp_path / "old.safetensors").close()
    run("report", "--image", scan, "--model", tmp_path / "old.safetensors", "-o", tmp_path / "p.html", "--quiet")
    text = (tmp_path / "p.html").read_text("utf-8")
    assert text.count("unknown") >= 4 and text.count("not recorded") == 2 and "another program" in text
    assert "The model has no calibration record" in text and "Reliability diagram" not in text


@pytest.mark.parametrize("record", ["[]", "{", '{"validation": 7}', '{"validation": {"hash": "HASH", "cases": -1}}',
                                    '{"validation": {"hash": "HASH", "cases": 3, "bins": [{"lower": 0, "upper": 1, "count": 5}]}}',
                                    '{"validation": {"hash": "another", "cases": 3}}'])
def test_a_damaged_record_does_not_hurt(model, scan, tmp_path, record):
    mine = tmp_path / "m.safetensors"
    mine.write_bytes(with_metadata(model.read_bytes(), calibration=record.replace("HASH", record_of(model)["validation"]["hash"])))
    run("predict", "--image", scan, "--model", mine, "-o", tmp_path / "out", "--quiet")
    run("report", "--image", scan, "--model", mine, "-o", tmp_path / "p.html", "--quiet")
    text = (tmp_path / "p.html").read_text("utf-8")
    assert text.count("not recorded") == 2 and ("another" in record or "7}" in record or "cannot be read" in text)


# ---- the page ---------------------------------------------------------------------------------------------------------------


def test_what_is_on_the_page(page, model):
    text = page.read_text("utf-8")
    assert "John_Doe" in text and "secret-name.safetensors" in text and "3: A, B, C" in text and "8 cases, validated on 6 cases" in text
    assert "the slice with the largest expected area" in text and "Where the model is unsure" in text
    assert "raters would say" in text and "6 validation cases" in text and re.search(r"Expected volume</dt><dd class=\"value\">[\d.]+ mL", text)
    assert "at least 2 raters" in text and "any rater" in text and "Connected places" in text
    # The slice with the largest disc is the first one shown.
    assert re.findall(r"<figcaption>Slice (\d+)</figcaption>", text)[0] in ("5", "6", "7")  # from 1
    assert len(re.findall(r"<figcaption>Slice (\d+)</figcaption>", text)) == 2
    assert "On 6 validation cases" in text and text.count(NOTICE) >= 2
    assert record_of(model)["validation"]["hash"] in text


def test_anonymous(model, scan, tmp_path, monkeypatch):
    run("report", "--image", scan, "--model", model, "-o", tmp_path / "p.html", "--slide", tmp_path / "s.svg", "--anonymous", "--quiet")
    text = (tmp_path / "p.html").read_text("utf-8") + (tmp_path / "s.svg").read_text("utf-8")
    text = re.sub(r"data:image/png;base64,[\w+/=]+", "", text)
    for name in ("John", "Doe", "secret", str(scan.parent), "A, B, C", "tr0", "va0", "rater-consensus report"):
        assert name not in text
    assert record_of(model)["validation"]["hash"] in text
    # Without -o: a file whose name says nothing, or one named after the image; none is replaced.
    monkeypatch.chdir(tmp_path)
    run("report", "--image", scan, "--model", model, "--anonymous", "--quiet")
    run("report", "--image", scan, "--model", model, "--quiet")
    assert (tmp_path / "report.html").exists() and (tmp_path / "John_Doe_report.html").exists()
    refused("report", "--image", scan, "--model", model, says="John_Doe_report.html already exists")


def without_pictures(*paths):
    return re.sub(r"data:image/png;base64,[\w+/=]+", "", "".join(path.read_text("utf-8") for path in paths))


def test_anonymous_with_raters(data, model, tmp_path):
    """Pages and slides with raters: those are what people show."""
    out = tmp_path / "p.html"
    run("report", "--data", data, "--split", "test", "--model", model, "-o", out, "--anonymous", "--quiet")
    text = without_pictures(out)
    for name in ("te0", "te1", "secret", str(data.parent), data.name, "rater-consensus report", "Files read", ">A<", ">A –", "A, B"):
        assert name not in text, name
    assert "Case 1" in text and "Case 5" in text and "Rater 1 – Rater 2" in text and "Rater 3" in text
    assert "the model" in text and "Mean Dice" in text
    # The same numbers as with names.
    named = tmp_path / "named.html"
    run("report", "--data", data, "--split", "test", "--model", model, "-o", named, "--quiet")
    numbers = [re.findall(r">-?\d+\.\d+<", without_pictures(path)) for path in (out, named)]
    assert numbers[0] == numbers[1] and len(numbers[0]) > 50
    image = ["--image", data.parent / "te0.png"]
    named, files = ([w for r in "ABC" for w in ("--rater", f"{r}{more}={data.parent / f'te0_{r}.png'}")] for more in ("lice", ""))
    one, slide = tmp_path / "one.html", tmp_path / "s.svg"
    run("report", *named, *image, "-o", one, "--slide", slide, "--anonymous", "--quiet")
    text = without_pictures(one, slide)
    for name in ("te0", "Alice", "Blice", "Clice", "secret", str(data.parent), "rater-consensus report"):
        assert name not in text, name
    assert ">Rater 2<" in slide.read_text("utf-8") and "Rater 2" in one.read_text("utf-8")
    # Names that were chosen for it stay.
    run("report", *files, *image, "--model", f"net={model}", "--title", "Mine", "--slide", slide, "--anonymous")
    assert "Predicted by net." in slide.read_text("utf-8") and ">Mine<" in slide.read_text("utf-8")


def test_a_case_that_cannot_be_used_stays_nameless(data, tmp_path):
    entries = json.loads(data.read_text("utf-8"))["test"]
    for one in entries:
        one["label"] = {r: str(data.parent / file) for r, file in one["label"].items()}
        one["image"] = str(data.parent / one["image"]) if isinstance(one["image"], str) else one["image"]
    entries[1]["label"]["A"] = str(tmp_path / "John_Doe.png")
    (tmp_path / "l.json").write_text(json.dumps({"test": entries}))
    done = run("report", "--data", tmp_path / "l.json", "-o", tmp_path / "p.html", "--anonymous", check=False)
    text = (tmp_path / "p.html").read_text("utf-8")
    assert done.code == 1 and "John_Doe" in done.err and "John_Doe" not in text and "Case 2 was left out." in text


def test_bad_input(model, scan, data, tmp_path):
    out = ["-o", tmp_path / "p.html"]
    refused("report", "--image", scan, *out, says=["--rater", "--model"])
    refused("report", "--image", scan, "--model", model, "--model", f"b={model}", *out, says="one model")
    refused("report", "--image", scan, "--model", model, "--bins", "5", *out, says="--bins needs raters")
    refused("report", "--image", scan, "--model", model, "--slide", tmp_path / "s.gif", says=".svg or .png")
    refused("report", "--data", data, "--slide", tmp_path / "s.png", *out, says="one case")
    refused("report", "--image", tmp_path / "none.nrrd", "--model", model, *out, says="none.nrrd")
    assert list(tmp_path.iterdir()) == []


def test_a_picture(data, model, tmp_path):
    """Two dimensions, no spacing: pixels, no slices."""
    run("report", "--image", data.parent / "te1.png", "--model", model, "-o", tmp_path / "p.html", "--quiet")
    text = (tmp_path / "p.html").read_text("utf-8")
    assert "The picture" in text and "Slice 1" not in text and "pixels" in text and "Area by slice" not in text


# ---- slides -----------------------------------------------------------------------------------------------------------------


def test_slides(data, model, scan, tmp_path):
    case = ["--image", data.parent / "te0.png", *[w for r in "ABC" for w in ("--rater", f"{r}={data.parent / f'te0_{r}.png'}")]]
    for name, words in (("patient", ["--image", scan, "--model", model]), ("raters", case), ("both", [*case, "--model", model])):
        svg, png = tmp_path / f"{name}.svg", tmp_path / f"{name}.png"
        run("report", *words, "--slide", svg, "--slide", png, "--quiet")
        text = svg.read_text("utf-8")
        assert 'width="1920"' in text and 'height="1080"' in text and NOTICE in text
        head = png.read_bytes()
        assert struct.unpack(">II", head[16:24]) == (1920, 1080) and len(head) > 30000
        assert text.count("<image") == 2 and text.count("<path") > 2  # the slice twice, and what is drawn over it
        assert (">at least 1 rater<" in text) == (name == "patient") and ("30 %" in text) == (name != "raters")
        assert (">1 of 3<" in text) == (name == "raters")
    assert not (tmp_path / "report.html").exists()


def test_what_a_slide_is_called(data, tmp_path):
    """After its image; masks alone have no name. Of many levels the legend shows the ends and the middle."""
    files = [w for r in "ABC" for w in ("--rater", f"{r}={data.parent / f'te0_{r}.png'}")]
    out = tmp_path / "s.svg"
    run("report", *files, "--image", data.parent / "te0.png", "--slide", out, "--quiet")
    assert ">te0<" in out.read_text("utf-8")
    run("report", *files, "--slide", out, "--quiet")
    assert ">case<" not in out.read_text("utf-8")
    many = [w for r in range(64) for w in ("--rater", f"r{r}={data.parent / f'te0_{chr(65 + r % 3)}.png'}")]
    run("report", *many, "--slide", out, "--quiet")
    assert re.findall(r">(\d+) of 64<", out.read_text("utf-8")) == ["1", "32", "64"]


# ---- printed ----------------------------------------------------------------------------------------------------------------


@needs_chromium
@needs_pdftotext
def test_two_pages_of_paper_each_with_the_notice(data, model, scan, page, tmp_path):
    mine = tmp_path / "m.safetensors"
    shutil.copy(model, mine)
    run("predict", "--data", data, "--split", "test", "--model", mine, "-o", tmp_path / "pred", "--quiet")
    run("evaluate", "--data", data, "--pred", tmp_path / "pred", "--record", mine, "--quiet")
    run("report", "--image", scan, "--model", mine, "-o", tmp_path / "both.html", "--quiet")
    run("report", "--image", data.parent / "te0.png", "--model", mine, "-o", tmp_path / "flat.html", "--quiet")
    # Many raters of long names, and an image that is a strip.
    write_model(tmp_path / "many.safetensors", raters=[f"a rater with a rather long name, number {r}" for r in range(12)]).close()
    write_nrrd(tmp_path / "strip.nrrd", np.random.default_rng(1).normal(0, 1, (6, 200, 16)).astype(np.float32))
    run("report", "--image", tmp_path / "strip.nrrd", "--model", tmp_path / "many.safetensors", "-o", tmp_path / "many.html", "--quiet")
    with Browser() as browser:
        for one in (page, tmp_path / "both.html", tmp_path / "flat.html", tmp_path / "many.html"):
            browser.look()
            browser.open(one)
            assert browser.logs()[0] == []
            sheets = browser.sheets()
            assert len(sheets) == 2
            for sheet in sheets:
                assert NOTICE in sheet
            assert "Model record" not in sheets[0] and "Model record" in sheets[1]
