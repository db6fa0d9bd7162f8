# SPDX-License-Identifier: Apache-2.0
"""Every command of the tutorial runs, in order, in an empty folder; only times and numbers of epochs are made smaller."""
import os
import pathlib
import re
import subprocess

import pytest

from rcn_testing import PROGRAM, run

pytestmark = pytest.mark.slow

TUTORIAL = pathlib.Path(__file__).parents[2] / "Resources" / "Docs" / "tutorial.md"
TEXT = TUTORIAL.read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.S | re.M)

if "--no-training" not in run("demo", "--help").out:
    pytest.skip("built without networks", allow_module_level=True)


def shortened(block):
    """`./run demo` builds first, which has been done; less learning, after which a correction may not help, and nothing else."""
    block = block.replace("./run demo", "rater-consensus demo").replace('export PATH="$PWD/build/bin:$PATH"', "")
    block = block.replace("rater-consensus recalibrate ", "rater-consensus recalibrate --force ")
    block = re.sub(r"--minutes \d+", "--minutes 0.05", block)
    return re.sub(r"--epochs \d+", "--epochs 1", block)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The folder after all steps, and what each step said."""
    folder = tmp_path_factory.mktemp("tutorial")
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    said = []
    for block in BLOCKS:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", shortened(block)], cwd=folder, env=environment, capture_output=True,
                              timeout=300, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, block + done.stderr.decode(errors="replace")
        said.append(done.stdout.decode())
    return folder, said


def test_there_are_steps():
    steps = re.findall(r"^## (\d+)\. ", TEXT, re.M)
    assert steps == [str(i + 1) for i in range(len(steps))] and len(steps) >= 8 and len(BLOCKS) >= 10
    for command in ("demo", "agree", "report", "fuse", "train", "predict", "evaluate", "recalibrate"):
        assert any(f"rater-consensus {command} " in block or f"./run {command} " in block for block in BLOCKS), command


def test_each_step_leaves_what_it_promises(followed):
    folder, said = followed
    for name in re.findall(r"(?:-o|--json|--csv|>) ([\w.]+)", "".join(BLOCKS)):
        assert (folder / name).exists(), name
    for name in ("demo/report.html", "demo/phantom.nrrd", "model.log.csv", "maps/validation1_prob.nrrd", "maps/validation1_levels.nrrd"):
        assert (folder / name).exists(), name
    assert "Disputed" in said[2] or "disputed" in said[2]
    assert "temperature" in next(text for text, block in zip(said, BLOCKS) if "recalibrate" in block)


def test_the_last_page_compares_both_models(followed):
    page = (followed[0] / "both.html").read_text("utf-8")
    assert "first (expected)" in page and "retrained (expected)" in page and "20 cases (test), 2 models" in page
    assert "recalibrated" in (followed[0] / "first.html").read_text("utf-8")


def test_pictures_are_there_and_small():
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", TEXT)
    assert len(pictures) >= 2
    for words, name in pictures:
        picture = TUTORIAL.parent / name
        assert words and picture.exists() and picture.stat().st_size < 300_000, name
