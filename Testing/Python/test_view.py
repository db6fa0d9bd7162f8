# SPDX-License-Identifier: Apache-2.0
"""rater-consensus view: a window that opens, does as it is told, and leaves a picture."""
import json
import os
import shutil
import struct
import subprocess

import numpy as np
import pytest

import rcn_ctypes
import rcn_labels_ctypes
from rcn_testing import PROGRAM, blobs, raters, refused, run, write_nrrd

VIEWER = PROGRAM.parent / "rater-consensus-viewer"
needs_screen = pytest.mark.skipif(not VIEWER.exists() or not shutil.which("xvfb-run"),
                                  reason="the viewer was not built, or xvfb-run is not there")


def view(folder, *words, screen=""):
    environment = dict(os.environ, HOME=str(folder), XDG_DATA_HOME=str(folder / "data"), XDG_CONFIG_HOME=str(folder / "config"),
                       XDG_RUNTIME_DIR=str(folder), QT_SCALE_FACTOR="1", QT_QPA_PLATFORM="xcb")
    # The program's own exit code: xvfb-run has another one when it cannot clean up after itself.
    code = folder / "exit-code"
    done = subprocess.run(["xvfb-run", "-a", "-s", f"-screen 0 1600x1000x24 {screen}", "sh", "-c", '"$@"; echo $? > "$0"', code, PROGRAM, "view",
                           *map(os.fspath, words)], env=environment, capture_output=True, text=True, timeout=300, cwd=folder)
    done.returncode = int(code.read_text())
    return done


def png_size(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


@pytest.fixture
def case(tmp_path):
    masks = blobs(3, (6, 32, 40))
    image = write_nrrd(tmp_path / "scan.nrrd", np.mean(masks, 0, dtype=np.float32))
    files = {name: write_nrrd(tmp_path / f"{name}.nrrd", mask) for name, mask in zip("ABC", masks)}
    return image, files


@needs_screen
def test_picture_of_a_case(tmp_path, case):
    image, files = case
    picture = tmp_path / "window.png"
    done = view(tmp_path, "--image", image, *raters(files), "--size", "1000x700", "--do", "compare-raters", "--do", "fuse:staple",
                "--layout", "compare", "--screenshot", picture)
    assert done.returncode == 0, done.stderr
    assert png_size(picture) == (1000, 700)


@needs_screen
@pytest.mark.parametrize("screen", ["+extension GLX", "-extension GLX"])
def test_with_and_without_opengl(tmp_path, case, screen):
    """Mesa draws the 3-D view in software; where a display has no GLX the view is left out, without a word on the terminal."""
    image, files = case
    picture = tmp_path / "window.png"
    done = view(tmp_path, "--image", image, *raters(files), "--size", "1200x800", "--screenshot", picture, screen=screen)
    assert done.returncode == 0 and "vtk" not in done.stderr.lower(), done.stderr
    assert png_size(picture) == (1200, 800)


@needs_screen
def test_workspace_from_a_script_and_back(tmp_path, case):
    image, files = case
    saved = tmp_path / "study.rcn.json"
    done = view(tmp_path, "--image", image, *raters(files), "--do", "fuse:median", "--do", f"save:{saved}",
                "--screenshot", tmp_path / "one.png")
    assert done.returncode == 0, done.stderr
    workspace = json.loads(saved.read_text(encoding="utf-8"))
    assert workspace["raters"] == ["A", "B", "C"] and workspace["fusions"] == ["median"]
    assert workspace["cases"][0]["images"] == ["scan.nrrd"]  # relative: both can move
    done = view(tmp_path, saved, "--screenshot", tmp_path / "two.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "two.png").exists()


@needs_screen
def test_panel_to_show_first(tmp_path, case):
    image, files = case
    pictures = {}
    for panel in ("", "consensus", "agreement", "training"):
        done = view(tmp_path, "--image", image, *raters(files), *(["--panel", panel] if panel else []), "--size", "1200x800",
                    "--screenshot", tmp_path / "panel.png")
        assert done.returncode == 0, done.stderr
        pictures[panel] = (tmp_path / "panel.png").read_bytes()
    assert pictures[""] == pictures["consensus"] and len(set(pictures.values())) == 3


@needs_screen
def test_several_structures(tmp_path):
    """The structure that is shown is in the picture and in the workspace; the others are outlined in their color."""
    lib = rcn_ctypes.library()
    if lib is None:
        pytest.skip("the core's shared library was not built (target rcn_shared)")
    data = rcn_labels_ctypes.write_structures(lib, tmp_path, (12, 64, 72), cases=2)
    saved, first = tmp_path / "study.rcn.json", tmp_path / "first.png"
    done = view(tmp_path, "--data", data, "--structure", "right lobe", "--do", "fuse:staple", "--do", f"save:{saved}",
                "--size", "1400x900", "--screenshot", first)
    assert done.returncode == 0, done.stderr
    assert png_size(first) == (1400, 900)
    workspace = json.loads(saved.read_text(encoding="utf-8"))
    assert [one["name"] for one in workspace["structures"]] == ["left lobe", "right lobe", "vessel"]
    assert workspace["view"]["structure"] == "right lobe"
    workspace["view"].update(structure="vessel", hidden_structures=["left lobe"])
    saved.write_text(json.dumps(workspace), encoding="utf-8")
    second = tmp_path / "second.png"
    done = view(tmp_path, saved, "--size", "1400x900", "--screenshot", second)
    assert done.returncode == 0, done.stderr
    assert first.read_bytes() != second.read_bytes()
    done = view(tmp_path, "--data", data, "--structure", "spleen", "--screenshot", tmp_path / "no.png")
    assert done.returncode == 2 and "left lobe, right lobe and vessel" in done.stderr and done.stderr.count("rater-consensus:") == 1


@needs_screen
def test_what_is_wrong_is_one_line(tmp_path, case):
    image, files = case
    (tmp_path / "notes.txt").write_text("no image")
    other = write_nrrd(tmp_path / "other.nrrd", blobs(1, (6, 32, 20))[0])
    for words, says in [(("notes.txt",), "notes.txt"), (("nowhere.nrrd",), "nowhere.nrrd"),
                        (("--image", image, "--rater", f"A={other}"), "other.nrrd"),
                        (("--image", image, "--do", "dance"), "dance"), (("--data", tmp_path / "nowhere.json"), "nowhere.json"),
                        (("--size", "big"), "--size"), (("--image", image, "--do", "predict"), "model")]:
        done = view(tmp_path, *words, "--screenshot", tmp_path / "no.png")
        lines = [line for line in done.stderr.splitlines() if line.startswith("rater-consensus: ")]
        assert done.returncode == 2 and len(lines) == 1 and says in lines[0], (words, done.stderr)
        assert not (tmp_path / "no.png").exists()


def test_wrong_options(tmp_path):
    refused("view", "--nope", says="--nope", folder=tmp_path)
    refused("view", "--layout", "round", says=["--layout", "compare"], folder=tmp_path)
    refused("view", "--panel", "front", says=["--panel", "agreement"], folder=tmp_path)
    assert "--screenshot" in run("view", "--help").out


def test_without_the_viewer(tmp_path):
    program = tmp_path / "rater-consensus"
    shutil.copy(PROGRAM, program)
    done = subprocess.run([program, "view"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "not built" in done.stderr


@pytest.mark.skipif(not VIEWER.exists(), reason="the viewer was not built")
def test_without_a_screen():
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    done = run("view", check=False, env=environment)
    assert done.code == 2 and done.err.count("\n") == 1 and "No display was found" in done.err
