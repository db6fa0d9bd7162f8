# SPDX-License-Identifier: Apache-2.0
"""Without Slicer: its self test has every action, and the lines that headers give to users of the Python console call only what
the headers declare. RaterConsensusSelfTest.py itself runs inside Slicer.
"""
import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = {"node": ROOT / "Logic/vtkMRMLRaterConsensusNode.h", "logic": ROOT / "Logic/vtkSlicerRaterConsensusLogic.h"}
# Of their base classes, not ours.
INHERITED = {"node": {"GetID", "GetName", "GetNodeReference", "GetNthNodeReference"}, "logic": {"SetMRMLScene"}}


def declared(header):
    """What Python sees of a class: public methods, those of VTK's macros, and values of enumerations."""
    text = header.read_text(encoding="utf-8")
    public = re.sub(r"#ifndef __VTK_WRAP__.*?#endif", "", text[:text.index("\nprotected:")], flags=re.S)
    names = set(re.findall(r"\b([A-Z]\w+)\(", public))
    for macro, name in re.findall(r"vtk(Get|Set|Boolean)Macro\((\w+)", public):
        names |= {name + "On", name + "Off"} if macro == "Boolean" else {macro + name}
    for values in re.findall(r"enum \w+\s*{([^}]*)}", public):
        names |= set(re.findall(r"\w+", values))
    return names


def used(source):
    """Names behind `node.` and `logic.`, with or without `self.`; cases by other names are nodes, too."""
    found = {"node": set(), "logic": {"SetMRMLScene"}}
    for part in ast.walk(ast.parse(source)):
        if isinstance(part, ast.Attribute):
            owner = getattr(part.value, "attr", getattr(part.value, "id", None))
            if owner in ("node", "second", "logic"):
                found["logic" if owner == "logic" else "node"].add(part.attr)
    return found


def documented(header):
    return [line[6:] for line in header.read_text(encoding="utf-8").splitlines() if line.startswith("///   ")]


def test_every_action_is_in_the_self_test():
    names = used((ROOT / "Testing/Python/RaterConsensusSelfTest.py").read_text(encoding="utf-8"))
    actions = {name[:-len("Action")] for name in declared(HEADERS["logic"]) if name.endswith("Action")} - {""}
    assert actions == {"Agreement", "Fuse", "Predict", "Evaluate", "Recalibrate", "Train", "Report"}
    assert actions | {"Keep", "Discard", "AddExampleCase"} <= names["logic"]


def test_documented_lines_call_what_headers_declare():
    lines = documented(HEADERS["node"]) + documented(HEADERS["logic"])
    assert len(lines) > 8
    names = used("\n".join(lines))
    assert "AddSegment" in names["node"] and "Agreement" in names["logic"]
    for what, header in HEADERS.items():
        assert names[what] <= declared(header) | INHERITED[what]
