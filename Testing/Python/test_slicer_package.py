# SPDX-License-Identifier: Apache-2.0
"""The extension's build without Slicer: CMake against a folder that looks like a Slicer build. Shows what the package would
contain, and that the entry for Slicer's extensions index is complete."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("cmake"), reason="there is no CMake")]

CONFIG = """
set(Slicer_VERSION 5.12.3)
set(Slicer_REQUIRED_QT_VERSION @QT@)
set(Slicer_USE_FILE ${CMAKE_CURRENT_LIST_DIR}/Use.cmake)
set(Slicer_EXTENSION_GENERATE_CONFIG ${CMAKE_CURRENT_LIST_DIR}/Nothing.cmake)
set(Slicer_EXTENSION_CPACK ${CMAKE_CURRENT_LIST_DIR}/Nothing.cmake)
set(Slicer_INSTALL_QTLOADABLEMODULES_SHARE_DIR share/Slicer)
set(Slicer_INSTALL_QTLOADABLEMODULES_LIB_DIR lib/Slicer)
"""
USE = """
set(EXTENSION_NAME RaterConsensus)
macro(slicerMacroBuildLoadableModule)
endmacro()
function(SlicerMacroBuildModuleLogic)
  cmake_parse_arguments(LOGIC "" "NAME" "" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/nothing.c "")
  add_library(${LOGIC_NAME} STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/nothing.c)
endfunction()
macro(slicerMacroConfigureModuleCxxTestDriver)
endmacro()
macro(simple_test)
endmacro()
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    slicer, folder = tmp_path_factory.mktemp("slicer"), tmp_path_factory.mktemp("build")
    (slicer / "Use.cmake").write_text(USE, encoding="utf-8")
    (slicer / "Nothing.cmake").write_text("", encoding="utf-8")
    for qt in "5.15", "6.0":
        (slicer / "SlicerConfig.cmake").write_text(CONFIG.replace("@QT@", qt), encoding="utf-8")
        shutil.rmtree(folder)
        done = subprocess.run(
            ["cmake", "-S", ROOT, "-B", folder, f"-DSlicer_DIR={slicer}", "-DRaterConsensus_SUPERBUILD=OFF",
             "-DRCN_HOMEPAGE=https://example.org/rater-consensus"], capture_output=True, text=True)
        if done.returncode == 0:
            return folder, done.stdout
    if "needs bridge, networks and widgets" in done.stderr:
        pytest.skip("ITK, jansson or Qt is missing here")
    raise AssertionError(done.stderr)


def test_package_has_module_and_command_line_only(build):
    folder, printed = build
    assert "Slicer module: on (Slicer 5.12.3)" in printed
    rules = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("cmake_install.cmake"))
    blocks = re.findall(r"file\(INSTALL (.*?)\)\n", rules, re.S)
    names = {pathlib.PurePath(name).name for block in blocks for name in re.findall(r'"([^"]+)"', block)}
    assert {"rater-consensus", "RaterConsensus.ctbl", "RaterConsensus.png"} <= names
    assert not [name for name in names if name.endswith((".h", ".a", ".cmake", ".pc")) or "viewer" in name]
    assert "STATIC_LIBRARY" not in rules and "include/rcn" not in rules


def test_entry_of_the_extensions_index(build):
    entry = json.loads((build[0] / "RaterConsensus.json").read_text(encoding="utf-8"))
    # Slicer's schema for these entries.
    known = {"$schema", "category", "scm_url", "scm_revision", "scm_type", "build_dependencies", "build_subdirectory",
             "enabled", "tier"}
    assert {"$schema", "category", "scm_url"} <= set(entry) <= known
    assert entry["scm_url"] == "https://example.org/rater-consensus.git" and 1 <= entry["tier"] <= 5
    # As CMake has it.
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert f'set(EXTENSION_CATEGORY "{entry["category"]}")' in text
    assert f'set(EXTENSION_BUILD_SUBDIRECTORY {entry["build_subdirectory"]})' in text
