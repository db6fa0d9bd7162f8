# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation, made from the demo's output: make_screenshots.py DEMO [OUT]

The viewer runs on a screen of its own (xvfb-run), pages are opened in Chromium. Pictures stay under 300 kB: ImageMagick gives
them 128 colors.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import rcn_ctypes
import rcn_labels_ctypes
from rcn_browser import Browser

REPOSITORY = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("RCN_BUILD", REPOSITORY / "build"))
PROGRAM = BUILD / "bin" / "rater-consensus"
LARGEST = 300_000


def shrink(out):
    subprocess.run(["convert", out, "-strip", "+dither", "-colors", "128", "-define", "png:compression-level=9", f"PNG8:{out}"], check=True)
    assert out.stat().st_size <= LARGEST, f"{out} is larger than {LARGEST} bytes"


def view(home, out, *words, size="1440x900"):
    environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home, XDG_RUNTIME_DIR=home,
                       QT_SCALE_FACTOR="1", QT_QPA_PLATFORM="xcb")
    subprocess.run(["xvfb-run", "-a", "-s", "-screen 0 1600x1000x24", PROGRAM, "view", *map(str, words), "--size", size,
                    "--screenshot", out], env=environment, check=True)
    shrink(out)


def viewer_pictures(demo, out):
    cases, models = demo / "cases" / "dataset.json", demo / "study" / "models"
    with tempfile.TemporaryDirectory() as home:
        view(home, out / "viewer.png", "--data", demo / "dataset.json")
        view(home, out / "viewer-3d.png", "--data", demo / "dataset.json", "--model", models / "ordinal.safetensors", "--do", "predict")
        view(home, out / "viewer-agreement.png", "--data", demo / "dataset.json", "--do", "compare-raters", "--do", "next-region")
        view(home, out / "viewer-compare.png", "--data", cases, "--case", "test3", "--model", models / "ordinal.safetensors",
             "--do", "fuse:staple", "--do", "predict", "--layout", "compare")
        view(home, out / "viewer-calibration.png", "--data", cases, "--case", "test3", "--model", models / "ordinal.safetensors",
             "--do", "evaluate")
        data = rcn_labels_ctypes.write_structures(rcn_ctypes.library(), pathlib.Path(home), (40, 128, 144), ("Ada", "Ben", "Cleo", "Dan", "Eva"))
        view(home, out / "viewer-structures.png", "--data", data, "--structure", "right lobe")


def patient_page(demo, folder):
    """For an image of the demo, by its model, with the record of its test cases."""
    model, data = folder / "model.safetensors", demo / "cases" / "dataset.json"
    shutil.copy(demo / "study" / "models" / "ordinal.safetensors", model)
    for words in (["predict", "--data", data, "--split", "test", "--model", model, "-o", folder / "maps"],
                  ["evaluate", "--data", data, "--pred", folder / "maps", "--record", model],
                  ["report", "--image", demo / "cases" / "test3.nrrd", "--model", model, "-o", folder / "patient.html"]):
        subprocess.run([PROGRAM, *map(str, words), "--quiet"], check=True)


def page_pictures(demo, out):
    with Browser() as browser:
        def picture(name, page, width, height, section=None, **look):
            """A part of a page: from its top, or from a section's heading."""
            browser.look(width=width, height=height, **look)
            browser.open(demo / page)
            top = browser.run("return document.getElementById(arguments[0]).getBoundingClientRect().top + scrollY", section) if section else 0
            browser.screenshot(out / name, top=top)
            shrink(out / name)

        picture("consensus.png", "consensus.svg", 872, 882)
        picture("report.png", "report.html", 1100, 1000)
        picture("report-pictures.png", "report.html", 1100, 560, section="pictures")
        picture("report-models.png", "report_models.html", 1100, 1440, section="models")
        picture("report-phone.png", "report.html", 400, 860, dark=True)
        with tempfile.TemporaryDirectory() as folder:
            patient_page(demo, pathlib.Path(folder))
            picture("report-patient.png", pathlib.Path(folder) / "patient.html", 1000, 1180)


if __name__ == "__main__":
    demo = pathlib.Path(sys.argv[1])
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else REPOSITORY / "Resources" / "Docs"
    viewer_pictures(demo, out)
    page_pictures(demo, out)
