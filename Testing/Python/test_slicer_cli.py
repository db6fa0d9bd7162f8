# SPDX-License-Identifier: Apache-2.0
"""The programs that Slicer starts by itself: what they tell about themselves, and what they do with the words it gives them.

Slicer is not needed: `words` builds a command line as its code does, and `follows_the_rules` checks what its parser checks.
"""
import functools
import json
import os
import re
import signal
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from net_fill import numbers
from rcn_models import write_model
from rcn_testing import BUILD, METHODS, Result, blobs, disc_list, leftovers, raters, read_nrrd, run, write_nrrd

FOLDER = BUILD / "bin" / "cli-modules"
COMMANDS = {"RaterConsensusFuse": "fuse", "RaterConsensusEvaluate": "evaluate", "RaterConsensusPredict": "predict"}
PROGRAMS = [name for name in COMMANDS if (FOLDER / name).exists()]
NETWORKS = "RaterConsensusPredict" in PROGRAMS
needs_networks = pytest.mark.skipif(not NETWORKS, reason="built without networks")

# What ModuleDescriptionParser knows.
KINDS = {"integer", "float", "double", "boolean", "string", "integer-vector", "float-vector", "double-vector", "string-vector",
         "string-enumeration", "file", "directory", "image", "geometry", "transform", "table", "measurement", "point", "region"}
ATTRIBUTES = {"image": {"multiple", "fileExtensions", "type", "hidden", "reference"}, "file": {"multiple", "fileExtensions"},
              "table": {"multiple", "hidden", "reference", "type", "fileExtensions"}}
PARTS = {"name", "longflag", "flag", "label", "description", "default", "channel", "element", "constraints", "index"}
IMAGE_TYPES = {"any", "scalar", "label", "tensor", "diffusion-weighted", "vector"}


def start(program, *given, check=True, **options):
    done = subprocess.run([str(FOLDER / program), *map(os.fspath, given)], capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL, **options)
    result = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
    if check:
        assert result.code == 0 and result.err == "", (result.code, result.err)
    return result


@functools.lru_cache
def parameters(program):
    root = ElementTree.fromstring(start(program, "--xml").out)
    return [one for group in root.findall("parameters") for one in group if one.tag not in ("label", "description")]


def words(program, **values):
    """The command line as vtkSlicerCLIModuleLogic::ApplyTask() puts it together."""
    line, known = [], {}
    for one in parameters(program):
        name, flag = one.findtext("name"), one.findtext("longflag")
        if not flag:
            continue
        value = known[name] = values.get(name, one.findtext("default") or "")
        if one.tag == "boolean":
            line += ["--" + flag] if value in (True, "true") else []
        elif one.tag in ("file", "directory", "string", "image", "table"):
            line += ["--" + flag, value] if value != "" else []
        else:  # always, even without a value
            line += ["--" + flag, value]
    assert set(values) <= set(known), set(values) - set(known)
    return [str(word) for word in line]


def slicer(program, folder, check=True, **values):
    """Starts it as Slicer does; gives what it said and its results."""
    answers = folder / "1234_AbC.params"
    done = start(program, "--returnparameterfile", answers, *words(program, **values), check=check)
    results = {}
    if answers.exists():  # as ModuleDescription::ReadParameterFile() reads it
        results = {key.strip(): value.strip() for key, value in (line.split("=", 1) for line in answers.read_text(encoding="utf-8").splitlines())}
        answers.unlink()
    assert leftovers(folder) == []
    return done, results


def fails(program, folder, *says, code=2, **values):
    """One sentence on standard error, and nothing written."""
    before = sorted(folder.rglob("*"))
    done, results = slicer(program, folder, check=False, **values)
    assert done.code == code, (done.code, done.err)
    assert done.err.startswith(program + ": ") and done.err.count("\n") == 1 and done.err[-2] in ".?", done.err
    assert all(word in done.err for word in says), done.err
    assert sorted(folder.rglob("*")) == before and results == {}


@pytest.fixture
def masks(tmp_path):
    """Three raters with the names that Slicer's temporary files have."""
    return [write_nrrd(tmp_path / f"BGDCH_vtkMRMLLabelMapVolumeNode{letter}.nrrd", mask, spacing=[.5, .5, 2])
            for letter, mask in zip("BCD", blobs(3, (12, 20, 24)))]


def places(files):
    return {f"rater{i + 1}": path for i, path in enumerate(files)}


# ---- the description -------------------------------------------------------------------------------

@pytest.mark.parametrize("program", PROGRAMS)
def test_follows_the_rules(program):
    text = start(program, "--xml").out
    assert text.startswith("<?xml")  # Slicer cuts off what comes before, and warns
    root = ElementTree.fromstring(text)
    assert root.tag == "executable"
    heads = [child.tag for child in root if child.tag != "parameters"]
    assert heads == ["category", "title", "description", "version", "documentation-url", "license", "contributor"]
    assert root.findtext("category") == "Segmentation" and "For research, not for clinical use." in root.findtext("description")
    assert root.findtext("version") == run("--version").out.split()[1]
    names = set()
    for group in root.findall("parameters"):
        assert set(group.attrib) <= {"advanced"} and group.findtext("label") and group.findtext("description")
    for one in parameters(program):
        name, flag, default = one.findtext("name"), one.findtext("longflag"), one.findtext("default")
        assert one.tag in KINDS and {part.tag for part in one} <= PARTS
        assert set(one.attrib) <= ATTRIBUTES.get(one.tag, set())
        assert re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) and name not in names
        names.add(name)
        assert one.findtext("label") and len(one.findtext("description")) > 3
        # Words of the command line say nothing in a panel.
        assert "--" not in one.findtext("description") and "=" not in one.findtext("description")
        if one.tag == "image":
            assert one.get("type") in IMAGE_TYPES
        if one.tag in ("image", "file", "table", "directory"):
            assert one.findtext("channel") in ("input", "output") and flag == name
        elif one.find("channel") is not None:  # a result: Slicer must not give it back as a word
            assert one.findtext("channel") == "output" and flag is None
        else:
            assert flag == name
            # Slicer gives these always, so they need something to give.
            assert default or one.tag == "string"
        if one.tag == "string-enumeration":
            assert default in [element.text for element in one.findall("element")]
        if one.find("constraints") is not None:
            low, high, step = (float(one.find("constraints").findtext(part)) for part in ("minimum", "maximum", "step"))
            assert low <= float(default) <= high and step > 0
    for one in parameters(program):
        assert one.get("reference") in names | {None}


@pytest.mark.parametrize("program", PROGRAMS)
def test_keeps_up_with_the_command(program):
    """Every choice of the command is offered; the file that Slicer reads is what the program says."""
    help_text = run(COMMANDS[program], "--help").out
    flags = {one.findtext("longflag") for one in parameters(program)} - {None}
    # Options that the panel offers under another name, or in several places.
    elsewhere = {"-o": "output_folder", "--rater": "rater1", "--pred": "pred"}
    for option in re.findall(r"^  (-{1,2}[a-z-]+)", help_text, re.M):
        assert elsewhere.get(option, option[2:].replace("-", "_")) in flags or option == "--quiet", option
    if program == "RaterConsensusFuse":
        method, = (one for one in parameters(program) if one.findtext("name") == "method")
        assert [element.text for element in method.findall("element")] == METHODS
    assert (FOLDER / f"{program}.xml").read_text(encoding="utf-8") == start(program, "--xml").out
    assert {word[2:] for word in re.findall("^  (--[a-z0-9_]+)", start(program, "--help").out, re.M)} == flags | {
        "returnparameterfile", "processinformationaddress"}


def test_nothing_else_is_in_the_folder():
    """Slicer starts every file of it that has no dot in its name."""
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(name + end for name in PROGRAMS for end in ("", ".xml"))


# ---- one case of the scene -------------------------------------------------------------------------

@pytest.mark.parametrize("method", METHODS)
def test_fuse(method, masks, tmp_path):
    out = tmp_path / "BGDCH_vtkMRMLScalarVolumeNodeE.nrrd"
    done, results = slicer("RaterConsensusFuse", tmp_path, **places(masks), rater_names="Ada, Ben,Cleo", method=method, output=out)
    own = run("fuse", "--method", method, *raters(dict(zip(("Ada", "Ben", "Cleo"), masks))), "-o", tmp_path / "own.nrrd", "--json", "-").json
    assert out.read_bytes() == (tmp_path / "own.nrrd").read_bytes()
    assert results["raters"] == "Ada,Ben,Cleo" and results["cases"] == ""
    for key in ("prior", "iterations"):
        assert results[key] == ("" if key not in own else str(own[key])) or float(results[key]) == own[key]
    for key in ("sensitivity", "specificity", "weight"):
        assert [float(v) for v in results[key].split(",") if v] == list(own.get(key, {}).values())
    assert results["kept"] == ",".join(own.get("kept", []))
    assert method == "staple" or results["prior"] == ""


def test_options_reach_the_command(masks, tmp_path):
    values = dict(method="staple", mask=True, margin=2, type="uint8", confidence=2, image=masks[0])
    slicer("RaterConsensusFuse", tmp_path, **places(masks), **values, output=tmp_path / "a.nrrd")
    run("fuse", "--method", "staple", *raters({f"Rater {i + 1}": m for i, m in enumerate(masks)}), "--mask", "--margin", "2", "--type", "uint8",
        "--confidence", "2", "-o", tmp_path / "b.nrrd")
    assert (tmp_path / "a.nrrd").read_bytes() == (tmp_path / "b.nrrd").read_bytes()
    assert read_nrrd(tmp_path / "a.nrrd").array.dtype == np.uint8


def segmentation(path, arrays):
    """As Slicer writes one: a label value for each segment, in one layer."""
    fields = {}
    for i, name in enumerate(arrays):
        fields.update({f"Segment{i}_ID": f"Segment_{i + 1}", f"Segment{i}_Name": name, f"Segment{i}_LabelValue": str(i + 1), f"Segment{i}_Layer": "0"})
    total = sum((i + 1) * array for i, array in enumerate(arrays.values()))
    return write_nrrd(path, total.astype(np.uint8), fields=fields)


def test_segmentations(tmp_path):
    """Several segments are several raters; a segmentation with one segment is one rater, whatever its segment is called."""
    left, right, third = (np.zeros((4, 6, 8), np.uint8) for _ in range(3))
    left[1:3, :3], right[1:3, 3:], third[2] = 1, 1, 1
    both = segmentation(tmp_path / "both.nrrd", {"Ada": left, "Ben": right})
    one, other = (segmentation(tmp_path / f"{name}.nrrd", {"tumor": third}) for name in ("one", "other"))
    done, results = slicer("RaterConsensusFuse", tmp_path, rater1=both, rater2=one, rater7=other, method="orc", rater_names=",Cleo",
                           output=tmp_path / "levels.nrrd")
    assert results["raters"] == "Ada,Ben,Cleo,Rater 7"
    assert np.array_equal(read_nrrd(tmp_path / "levels.nrrd").array, left + right + 2 * third)


def test_evaluate(masks, tmp_path):
    prob = write_nrrd(tmp_path / "p.nrrd", np.mean(blobs(5, (12, 20, 24), seed=3), 0).astype(np.float32), spacing=[.5, .5, 2])
    table, plot, saved = (tmp_path / name for name in ("bins.tsv", "plot.svg", "saved.json"))
    done, results = slicer("RaterConsensusEvaluate", tmp_path, prob=prob, **places(masks), region="box", bins=10, reference="Rater 2",
                           reliability=table, plot=plot, json=saved)
    own = run("evaluate", "--prob", prob, *raters({f"Rater {i + 1}": m for i, m in enumerate(masks)}), "--region", "box", "--bins", "10",
              "--reference", "Rater 2", "--json", "-").json
    for key in ("mr_ece", "ece", "mce", "ace", "brier", "nll", "auc", "auc_pairs", "dice", "voxels", "cases"):
        assert float(results[key]) == own[key], key
    assert 0 < float(results["mr_ece"]) < 1 and 0 < float(results["dice"]) < 1
    # One case has no interval, one probability has no levels, and nothing was compared.
    assert all(results[key] == "" for key in ("rps", "mr_ece_low", "mr_ece_high", "mr_ece_difference"))
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["lower", "upper", "confidence", "frequency", "count"] and len(rows) == 11
    for row, bin_ in zip(rows[1:], own["bins"]):
        assert [float(v) if v else None for v in row] == [bin_[key] for key in rows[0]]
    assert plot.read_text(encoding="utf-8").lstrip().startswith("<") and json.loads(saved.read_text(encoding="utf-8"))["mr_ece"] == own["mr_ece"]


def test_a_mask_instead_of_a_region(masks, tmp_path):
    """The panel always names a region; a mask takes its place."""
    prob = write_nrrd(tmp_path / "p.nrrd", blobs(1, (12, 20, 24), seed=9)[0].astype(np.float32), spacing=[.5, .5, 2])
    _, results = slicer("RaterConsensusEvaluate", tmp_path, prob=prob, **places(masks), region_mask=masks[0])
    own = run("evaluate", "--prob", prob, *raters({f"R{i}": m for i, m in enumerate(masks)}), "--region-mask", masks[0], "--json", "-").json
    assert float(results["mr_ece"]) == own["mr_ece"] and int(results["voxels"]) == own["voxels"] == int(read_nrrd(masks[0]).array.sum())


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "m.safetensors").close()
    picture = (numbers("flat", 45 * 52) * 3 + 1).astype(np.float32).reshape(45, 52)
    return tmp_path / "m.safetensors", write_nrrd(tmp_path / "BGDCH_vtkMRMLScalarVolumeNodeB.nrrd", picture, spacing=[.5, .7])


@needs_networks
@pytest.mark.parametrize("wanted", [["prob", "mask", "levels", "uncertainty"], ["levels"], ["mask"]])
def test_predict(model, wanted, tmp_path):
    file, image = model
    parameter = {"prob": "probability"}
    outputs = {kind: tmp_path / f"BGDCH_{kind}.nrrd" for kind in wanted}
    before = set(tmp_path.iterdir())
    done, results = slicer("RaterConsensusPredict", tmp_path, model=file, image=image, readout="expected", threshold=0.3,
                           **{parameter.get(kind, kind): path for kind, path in outputs.items()})
    assert set(tmp_path.iterdir()) - before == set(outputs.values())
    own = run("predict", "--model", file, "--image", image, "--readout", "expected", "--threshold", "0.3", "--uncertainty", "-o",
              tmp_path / "own", "--json", "-").json
    for kind, path in outputs.items():
        assert path.read_bytes() == open(own["cases"][0][kind], "rb").read(), kind
    assert results == {"model_raters": "A,B,C", "used_readout": "expected", "tiles": str(own["cases"][0]["tiles"]), "cases": "1"}


# ---- many cases ------------------------------------------------------------------------------------

@needs_networks
def test_a_data_list_from_end_to_end(model, tmp_path):
    """All three programs on a list give what the command gives; folders that Slicer remembers do no harm to a single case."""
    file, _ = model
    work = tmp_path / "work"
    work.mkdir()
    data = disc_list(work, counts=(2, 1, 5))
    _, results = slicer("RaterConsensusPredict", tmp_path, model=file, data=data, split="test", output_folder=tmp_path / "maps", list_uncertainty=True)
    assert results["cases"] == "5"
    run("predict", "--model", file, "--data", data, "--split", "test", "-o", tmp_path / "own", "--uncertainty")
    assert same_files(tmp_path / "maps", tmp_path / "own") == 21  # with the manifest
    _, results = slicer("RaterConsensusFuse", tmp_path, data=data, split="test", output_folder=tmp_path / "fused", method="random", format=".nii.gz", seed=5)
    assert results["cases"] == "5" and results["raters"] == ""
    run("fuse", "--data", data, "--split", "test", "-o", tmp_path / "own_fused", "--method", "random", "--format", ".nii.gz", "--seed", "5")
    assert same_files(tmp_path / "fused", tmp_path / "own_fused") == 5
    _, results = slicer("RaterConsensusEvaluate", tmp_path, data=data, split="test", pred=tmp_path / "maps", versus=tmp_path / "own", readout="expected")
    own = run("evaluate", "--data", data, "--split", "test", "--pred", tmp_path / "maps", "--versus", tmp_path / "own", "--readout", "expected",
              "--json", "-").json
    assert float(results["mr_ece"]) == own["mr_ece"] and float(results["rps"]) == own["rps"] and results["cases"] == "5"
    assert [float(results["mr_ece_low"]), float(results["mr_ece_high"])] == own["ci"]["mr_ece"]
    assert float(results["mr_ece_difference"]) == 0
    one, results = slicer("RaterConsensusEvaluate", tmp_path, prob=tmp_path / "maps" / "c3_prob.nrrd", rater1=work / "i3_A.nrrd",
                          pred=tmp_path / "maps", versus=tmp_path / "own")
    assert results["cases"] == "1"


def same_files(a, b):
    names = sorted(path.name for path in a.iterdir())
    assert names == sorted(path.name for path in b.iterdir())
    assert all((a / name).read_bytes() == (b / name).read_bytes() for name in names)
    return len(names)


def test_a_case_that_cannot_be_used(tmp_path):
    """The others are written; Slicer shows an error, with a sentence."""
    data = disc_list(tmp_path, counts=(0, 0, 3))
    (tmp_path / "i1_B.nrrd").write_bytes(b"NRRD0004\nnonsense\n\n")
    done, results = slicer("RaterConsensusFuse", tmp_path, check=False, data=data, output_folder=tmp_path / "out", method="orc")
    assert done.code == 1 and done.err == "RaterConsensusFuse: 1 of 3 cases could not be used.\n"
    assert "Case c1 was left out: " in done.out and results["cases"] == "2"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["c0_orc.nrrd", "c2_orc.nrrd"]


# ---- what Slicer reads while it runs ---------------------------------------------------------------

def test_progress(masks, tmp_path):
    done, _ = slicer("RaterConsensusFuse", tmp_path, **places(masks), output=tmp_path / "o.nrrd")
    assert re.match(r"<filter-start>\n<filter-name>RaterConsensusFuse</filter-name>\n<filter-comment>[^<]+</filter-comment>\n</filter-start>\n", done.out)
    assert re.search(r"<filter-end>\n<filter-name>RaterConsensusFuse</filter-name>\n<filter-time>[\d.e-]+</filter-time>\n</filter-end>\n$", done.out)
    values = [float(v) for v in re.findall("<filter-progress>([^<]*)</filter-progress>", done.out)]
    assert len(values) >= 2 and all(0 <= v <= 1 for v in values) and values[-1] == 1
    left = done.out
    for tag in ("progress", "stage-progress", "name", "comment", "time", "start", "end"):  # what Slicer takes out, in its order
        left = re.sub(f"<filter-{tag}>[^<]*</filter-{tag}>[ \t\n\r]*", "", left)
    assert "<" not in left and "STAPLE" in left and "Rater 1" in left


def test_progress_of_a_list_goes_forward(tmp_path):
    """Names of cases come from people."""
    data = json.loads(disc_list(tmp_path, counts=(0, 2, 3)).read_text(encoding="utf-8"))
    for split in ("validation", "test"):
        for one in data[split]:
            one["id"] = "a&b " + one["id"]
    (tmp_path / "list.json").write_text(json.dumps(data))
    done, _ = slicer("RaterConsensusFuse", tmp_path, data=tmp_path / "list.json", split="test", output_folder=tmp_path / "out", method="orc")
    values = [float(v) for v in re.findall("<filter-progress>([^<]*)</filter-progress>", done.out)]
    assert values == sorted(values) and values[0] < 0.5 and values[-1] == 1
    assert "case 1/3 a&amp;b c2" in done.out


def test_cancelled(tmp_path):
    """Ended from outside: no map, no results, nothing left behind."""
    masks = [write_nrrd(tmp_path / f"{i}.nrrd", mask, compress=False) for i, mask in enumerate(blobs(2, (160, 160, 160)))]
    before = sorted(tmp_path.iterdir())
    process = subprocess.Popen([str(FOLDER / "RaterConsensusFuse"), "--returnparameterfile", str(tmp_path / "r.params"),
                                *words("RaterConsensusFuse", **places(masks), method="svls", sigma=3, output=tmp_path / "o.nrrd")],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"<filter-progress>" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and err.startswith(b"RaterConsensusFuse: Cancelled") and err.count(b"\n") == 1, (process.returncode, err)
    assert sorted(tmp_path.iterdir()) == before


# ---- bad input -------------------------------------------------------------------------------------

def test_what_was_not_chosen(masks, tmp_path):
    out = tmp_path / "o.nrrd"
    fails("RaterConsensusFuse", tmp_path, "Choose at least one rater, or a data list.")
    fails("RaterConsensusFuse", tmp_path, "Choose at least one rater.", image=masks[0], output=out)
    fails("RaterConsensusFuse", tmp_path, "Choose a volume for the consensus.", **places(masks))
    fails("RaterConsensusFuse", tmp_path, "either volumes of the scene or a data list", **places(masks), data="x.json", output=out)
    fails("RaterConsensusFuse", tmp_path, "Choose a folder", data="x.json")
    fails("RaterConsensusEvaluate", tmp_path, "Choose a predicted probability and at least one rater.", **places(masks))
    fails("RaterConsensusEvaluate", tmp_path, "Choose at least one rater.", prob=masks[0])
    fails("RaterConsensusEvaluate", tmp_path, "Choose the folder with the predictions.", data="x.json")
    fails("RaterConsensusFuse", tmp_path, "There are 4 names for 3 raters.", **places(masks), rater_names="a,b,c,d", output=out)
    fails("RaterConsensusFuse", tmp_path, "cannot have the character =", **places(masks), rater_names="a=b", output=out)


def test_inputs_are_not_overwritten(masks, tmp_path):
    before = masks[1].read_bytes()
    fails("RaterConsensusFuse", tmp_path, "would overwrite", **places(masks), method="orc", output=masks[1])
    fails("RaterConsensusEvaluate", tmp_path, "would overwrite", prob=masks[0], **places(masks), reliability=masks[1])
    assert masks[1].read_bytes() == before


@needs_networks
def test_the_image_is_not_overwritten(model, tmp_path):
    file, image = model
    before = image.read_bytes()
    fails("RaterConsensusPredict", tmp_path, "would overwrite", model=file, image=image, probability=image)
    fails("RaterConsensusPredict", tmp_path, "one file", model=file, image=image, probability=tmp_path / "p.nrrd", mask=tmp_path / "p.nrrd")
    assert image.read_bytes() == before


@needs_networks
def test_what_was_not_chosen_to_predict(model, tmp_path):
    file, image = model
    fails("RaterConsensusPredict", tmp_path, "Choose an image, or a data list.", model=file)
    fails("RaterConsensusPredict", tmp_path, "Choose at least one volume", model=file, image=image)
    fails("RaterConsensusPredict", tmp_path, "model", image=image, probability=tmp_path / "p.nrrd")
    fails("RaterConsensusPredict", tmp_path, "different formats", model=file, image=image, probability=tmp_path / "p.nrrd", mask=tmp_path / "m.mha")
    fails("RaterConsensusPredict", tmp_path, "channel", model=file, image=image, image2=image, probability=tmp_path / "p.nrrd")
    fails("RaterConsensusPredict", tmp_path, "nowhere", model=file, image=image, probability=tmp_path / "nowhere" / "p.nrrd")
    (tmp_path / "broken.safetensors").write_bytes(b"\0" * 20)
    fails("RaterConsensusPredict", tmp_path, "broken.safetensors", model=tmp_path / "broken.safetensors", image=image, mask=tmp_path / "m.nrrd")


def test_files_that_cannot_be_used(masks, tmp_path):
    out = tmp_path / "o.nrrd"
    out.write_bytes(b"what was there before")
    other = write_nrrd(tmp_path / "other.nrrd", blobs(1, (12, 20, 25))[0], spacing=[.5, .5, 2])
    # In the panel's words, not those of the command line and of temporary files.
    fails("RaterConsensusFuse", tmp_path, "Rater 3 has another size than Rater 1: ", "Use 'Resample masks' to resample it.",
          **places(masks[:2] + [other]), output=out)
    fails("RaterConsensusFuse", tmp_path, "'STAPLE confidence'", **places(masks), confidence="much", output=out)
    fails("RaterConsensusFuse", tmp_path, "missing.nrrd", rater1=tmp_path / "missing.nrrd", output=out)
    fails("RaterConsensusFuse", tmp_path, "Ada", **places(masks), rater_names="Ada,Ada", output=out)
    fails("RaterConsensusFuse", tmp_path, "'Voxel type' uint8", **places(masks), method="soft", type="uint8", output=out)
    fails("RaterConsensusEvaluate", tmp_path, "at-least", prob=masks[0], **places(masks), readout="at-least:")
    assert out.read_bytes() == b"what was there before"
    done = start("RaterConsensusFuse", "--colour", "red", check=False)
    assert done.code == 2 and done.err == "RaterConsensusFuse: There is no option --colour; see RaterConsensusFuse --help.\n"
    done = start("RaterConsensusFuse", "--returnparameterfile", tmp_path / "nowhere" / "r", *words("RaterConsensusFuse", **places(masks), output=out), check=False)
    assert done.code == 2 and "nowhere" in done.err and out.read_bytes() == b"what was there before"
