# SPDX-License-Identifier: Apache-2.0
"""The demo leaves a folder in which every file is what it says, and tells what a person should see."""
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from rcn_testing import METHODS, leftovers, read_nrrd, refused, run

pytestmark = pytest.mark.slow


NETWORKS = "--no-training" in run("demo", "--help").out


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Two epochs of learning: enough to see that everything is there, too few to judge the models."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    learning = ["--epochs", "2"] if NETWORKS else []
    return run("demo", "-o", folder, *learning).out, folder


def test_maps_and_tables(demo):
    said, folder = demo
    masks = np.array([read_nrrd(folder / f"phantom_{name}.nrrd").array for name in ("Ada", "Ben", "Cleo", "Dan", "Eva")])
    levels = read_nrrd(folder / "phantom_orc.nrrd").array
    assert np.array_equal(levels, masks.sum(0))
    for method in METHODS:
        values = read_nrrd(folder / f"phantom_{method}.nrrd").array
        assert np.isfinite(values).all() and values.shape == levels.shape
    assert np.allclose(read_nrrd(folder / "phantom_soft.nrrd").array, levels / 5)
    figures = json.loads((folder / "agreement.json").read_text("utf-8"))
    assert figures["version"] == run("--version").out.split()[1]
    assert 0.5 < figures["mean_dice"] < 0.95  # they disagree, as people do
    assert f"{figures['mean_dice']:.3f}" in said and (folder / "agreement.txt").read_text("utf-8") in said
    again = run("agree", "--data", folder / "dataset.json", "--json", "-").json["cases"][0]
    assert again["mean_dice"] == figures["mean_dice"]
    assert not leftovers(folder)


def test_fused_maps_and_their_promise(demo):
    """STAPLE is surer about an unseen rater than the plain share is."""
    text = (demo[1] / "calibration.txt").read_text("utf-8")
    errors = {name: float(value) for name, value in re.findall(r"(staple|soft-gaussian)\s+([\d.]+)", text)}
    assert errors["staple"] > errors["soft-gaussian"] > 0


def test_pictures(demo):
    for name in ("consensus", "reliability_staple", "reliability_soft-gaussian"):
        root = ElementTree.parse(demo[1] / f"{name}.svg").getroot()
        spoken = {child.tag.split("}")[1]: child.text for child in root if child.tag.endswith(("title", "desc"))}
        assert spoken["title"] and spoken["desc"]
        assert "not for clinical use" in "".join(root.itertext())
        picture = demo[1] / f"{name}.png"
        assert not picture.exists() or picture.read_bytes().startswith(b"\x89PNG\r\n")
    panels = ElementTree.parse(demo[1] / "consensus.svg").getroot().findall("{http://www.w3.org/2000/svg}image")
    assert len(panels) == 16


@pytest.mark.skipif(not NETWORKS, reason="built without networks")
def test_models(demo):
    said, folder = demo
    assert (folder / "models.txt").read_text("utf-8") in said
    assert re.search(r"ordinal\s+majority\s+\d", said) and re.search(r"ordinal\s+expected\s+\d", said) and re.search(r"median\s+its probability\s+\d", said)
    panels = ElementTree.parse(folder / "predictions.svg").getroot().findall("{http://www.w3.org/2000/svg}image")
    assert len(panels) == 12
    for name in ("ordinal_majority", "ordinal_expected", "median"):
        ElementTree.parse(folder / f"reliability_model_{name}.svg")
    data = json.loads((folder / "cases" / "dataset.json").read_text("utf-8"))
    assert [len(data[split]) for split in ("training", "validation", "test")] == [40, 10, 20]
    assert (folder / "study" / "report.html").exists()
    page = (folder / "report_models.html").read_text("utf-8")
    assert "report_models.html" in said and "20 cases" in page and page.count("Reliability diagram: ") == 9 and "Training cases" in page


def test_report(demo):
    said, folder = demo
    page = (folder / "report.html").read_text("utf-8")
    assert "report.html" in said and "Five raters" in page and "not for clinical use" in page
    figures = json.loads((folder / "agreement.json").read_text("utf-8"))
    assert f"{figures['mean_dice']:.2f}" in page


def test_the_same_again(demo, tmp_path):
    """No dice are rolled: the same maps, and a folder that is there already is used."""
    folder = tmp_path / "again"
    shutil.copytree(demo[1], folder)
    for file in folder.glob("*.nrrd"):
        file.unlink()
    run("demo", "-o", folder, "--threads", "1", *(["--no-training"] if NETWORKS else []))
    for file in sorted(demo[1].glob("*.nrrd")):
        assert np.array_equal(read_nrrd(file).array, read_nrrd(folder / file.name).array)


def test_no_place(tmp_path):
    (tmp_path / "file").write_text("")
    refused("demo", "-o", tmp_path / "file" / "folder", says="cannot be made")
