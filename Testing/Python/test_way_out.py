# SPDX-License-Identifier: Apache-2.0
"""Errors carry a key, and each shell has a table of what a person can do about it there (rcnError.h): every key that is thrown
has a row in every shell, if only one that says that there is nothing to add, and no row is about a key that nobody throws."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# The table, and where else errors with keys of that shell are made.
SHELLS = {
    "command line": ("Module/CommandLine/rcnWayOut.cxx", "Module/CommandLine"),
    "viewer": ("Module/Viewer/rcnViewerWayOut.cxx", "Module/Viewer"),
    "Slicer": ("Logic/vtkSlicerRaterConsensusLogic.cxx", "Module/Slicer"),
}
# Adds the key of its second argument to an error.
HELPERS = "refuse"


def calls(text):
    """The arguments of each Error(...), each as a list of strings."""
    for start in re.finditer(rf"\b(?:Error|{HELPERS})\(", text):
        arguments, depth, quoted, i = [""], 1, False, start.end()
        while depth and i < len(text):
            c = text[i]
            quoted ^= c == '"' and text[i - 1] != "\\"
            depth += 0 if quoted else (c in "({[") - (c in ")}]")
            if c == "," and depth == 1 and not quoted:
                arguments.append("")
            elif depth:
                arguments[-1] += c
            i += 1
        yield start.group().rstrip("("), arguments


def thrown(folder):
    keys = set()
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".cxx", ".h"):
            text = re.sub(r"//.*", "", path.read_text("utf-8"))
            for name, arguments in calls(text):
                key = arguments[2:] if name == "Error" else arguments[1:2]
                keys.update(re.findall(r'"([a-z-]+)"', "".join(key)))
            keys.update(re.findall(r'const char\* key = "([a-z-]+)"', text))
            keys.update(re.findall(r'\bWayOut\("([a-z-]+)"\)', text))  # of a remark
    return keys


def rows(table):
    text = (ROOT / table).read_text("utf-8")
    return re.findall(r'^    \{ "([a-z-]+)", ', text.split("WayOut(const std::string& key)\n")[1].split("\n}\n")[0], re.M)


def test_keys_are_found():
    assert {"scale", "raters", "exists-resumable", "exists", "geometry", "recalibration", "readout"} <= thrown("Logic")
    assert len(thrown("Logic")) > 12


@pytest.mark.parametrize("shell", SHELLS)
def test_every_key_has_a_row(shell):
    table, folder = SHELLS[shell]
    found = rows(table)
    assert found == sorted(set(found))
    assert set(found) == thrown("Logic") | thrown(folder)
