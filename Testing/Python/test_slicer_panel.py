# SPDX-License-Identifier: Apache-2.0
"""The Slicer module's panel as far as it can be checked without Slicer: its form and its guide fit together. That its sources
and its form do, the compiler and qSlicerRaterConsensusModuleWidgetTest1.cxx show."""
import pathlib
import re
import sys
import types
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "Module" / "Slicer"
GUIDE = ROOT / "Resources" / "Docs" / "slicer.md"
FORM = ROOT / "Resources" / "UI" / "qSlicerRaterConsensusModuleWidget.ui"


def form():
    return xml.parse(FORM).getroot()


def widgets():
    return {element.get("name"): element.get("class") for element in form().iter("widget")}


def test_every_section_action_and_hint_is_there():
    names = widgets()
    titles = [element.find("property[@name='text']/string").text
              for element in form().iter("widget") if element.get("class") == "ctkCollapsibleButton"]
    assert titles == ["Raters", "Agreement", "Consensus", "Model", "Calibration"]
    for stem in "Agreement", "Fuse", "Predict", "Train", "Evaluate", "Recalibrate":
        assert names[stem + "Button"] == "QPushButton" and names[stem + "Hint"] == "QLabel" and stem + "Place" in names


def test_custom_widgets_are_declared_and_get_the_scene():
    declared = {element.findtext("class") for element in form().iter("customwidget")}
    custom = {name: kind for name, kind in widgets().items() if not kind.startswith("Q")}
    assert set(custom.values()) <= declared
    connected = {element.findtext("receiver") for element in form().iter("connection")}
    assert connected == {name for name, kind in custom.items() if kind.startswith("qMRML")}


def test_resources_are_there():
    for resource in xml.parse(ROOT / "Resources" / "qSlicerRaterConsensusModule.qrc").getroot().iter("file"):
        assert (ROOT / "Resources" / resource.text).is_file()


def test_sample_data_is_registered_once(monkeypatch):
    """As Slicer's own SampleData.py keeps sources: a dictionary of lists by category."""
    sources, added = {}, []
    logic = types.SimpleNamespace(GetModuleShareDirectory=lambda: "/nowhere", AddExampleCase=lambda: added.append(1))
    slicer = types.ModuleType("slicer")
    slicer.modules = types.SimpleNamespace(
        raterconsensus=types.SimpleNamespace(logic=lambda: logic), sampleDataSources=sources)
    script = compile((ROOT / "Resources" / "Scripts" / "RegisterSampleData.py").read_text(encoding="utf-8"), "RegisterSampleData.py", "exec")
    monkeypatch.setitem(sys.modules, "slicer", slicer)
    monkeypatch.setitem(sys.modules, "SampleData", None)
    names = {}
    exec(script, names)  # a Slicer without Sample Data
    assert not sources and "registerRaterConsensusSample" not in names

    data = types.ModuleType("SampleData")
    data.SampleDataLogic = types.SimpleNamespace(registerCustomSampleDataSource=lambda **source: sources.setdefault(
        source["category"], []).append(source))
    monkeypatch.setitem(sys.modules, "SampleData", data)
    exec(script, {})
    exec(script, {})
    (source,) = sources["Rater Consensus"]
    assert source["thumbnailFileName"] is None and not source["uris"]
    source["customDownloader"](source)
    assert added == [1]

def test_guide_speaks_the_panels_words():
    texts = " ".join(element.text or "" for element in form().iter("string"))
    for source in [*MODULE.glob("*.cxx"), *(ROOT / "Widgets").glob("*.cxx")]:
        texts += " ".join(re.findall(r'tr\("([^"]*)"', source.read_text(encoding="utf-8")))
    bold = [re.sub(r"\s+", " ", words).rstrip(".") for words in re.findall(r"\*\*(.+?)\*\*", GUIDE.read_text(encoding="utf-8"), re.S)]
    assert len(bold) > 10
    missing = [words for words in bold if words not in texts and words not in ("bold", "Rater Consensus")]
    assert not missing
    for picture in re.findall(r"!\[.*?\]\((.+?)\)", GUIDE.read_text(encoding="utf-8")):
        assert (GUIDE.parent / picture).is_file(), picture
