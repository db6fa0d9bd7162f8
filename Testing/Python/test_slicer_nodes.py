"""What Slicer gets from us, without the application: the colour table file, and maps shown in its colours.

The second half runs in real MRML (package slicer-core): ./run test --peers.
"""
import ctypes as ct
import json
import pathlib

import numpy as np
import pytest

import rcn_ctypes
from rcn_testing import needs_peers, run, write_nrrd

COLORS = pathlib.Path(__file__).resolve().parents[2] / "Resources" / "Colors" / "RaterConsensus.ctbl"


def rows():
    lines = [line for line in COLORS.read_text().splitlines() if line and not line.startswith("#")]
    return [line.split() for line in lines]


def test_color_table_is_the_cores_palette():
    lib = rcn_ctypes.library()
    if lib is None:
        pytest.skip("the core's shared library was not built (target rcn_shared)")
    lib.rcn_color_share.argtypes = [ct.c_void_p, ct.c_double]
    rgb = (ct.c_uint8 * 3)()
    table = rows()
    assert len(table) == 256
    for index, (number, name, *rgba) in enumerate(table):
        lib.rcn_color_share(rgb, index / 255)
        assert int(number) == index and name == f"{round(index / 2.55)}_%"
        assert [int(c) for c in rgba] == [*rgb, 255]


@needs_peers
def test_map_in_slicers_colors(tmp_path):
    slicer = pytest.importorskip("slicer")
    vtk_numpy = pytest.importorskip("vtkmodules.util.numpy_support")
    # Three raters with growing squares; consensus by the command line.
    arguments = []
    for name, reach in ("A", 3), ("B", 6), ("C", 9):
        mask = np.zeros((3, 32, 32), np.uint8)
        mask[:, 16 - reach:16 + reach, 16 - reach:16 + reach] = 1
        write_nrrd(tmp_path / f"{name}.nrrd", mask, spacing=(2, 2, 5), origin=(7, -11, 13))
        arguments += ["--rater", f"{name}={tmp_path / f'{name}.nrrd'}"]
    run("fuse", "--method", "soft", *arguments, "-o", tmp_path / "soft.nrrd", "--json", tmp_path / "soft.json")
    assert json.loads((tmp_path / "soft.json").read_text())["method"] == "soft"

    scene = slicer.vtkMRMLScene()
    colors = slicer.vtkMRMLColorTableNode()
    scene.AddNode(colors)
    stored = slicer.vtkMRMLColorTableStorageNode()
    scene.AddNode(stored)
    stored.SetFileName(str(COLORS))
    assert stored.ReadData(colors) and colors.GetNumberOfColors() == 256
    assert colors.GetColorName(255).replace("_", " ") == "100 %"

    volume = slicer.vtkMRMLScalarVolumeNode()
    scene.AddNode(volume)
    reader = slicer.vtkMRMLVolumeArchetypeStorageNode()
    scene.AddNode(reader)
    reader.SetFileName(str(tmp_path / "soft.nrrd"))
    assert reader.ReadData(volume)
    # LPS in the file, RAS in the scene.
    assert tuple(volume.GetOrigin()) == (-7, 11, 13) and tuple(volume.GetSpacing()) == (2, 2, 5)
    volume.CreateDefaultDisplayNodes()
    display = volume.GetDisplayNode()
    display.SetAndObserveColorNodeID(colors.GetID())
    display.SetAutoWindowLevel(0)
    display.SetWindowLevelMinMax(0, 1)
    display.SetThreshold(0.001, 1)
    display.SetApplyThreshold(1)
    end = display.GetImageDataConnection()
    end.GetProducer().Update()
    shown = end.GetProducer().GetOutputDataObject(end.GetIndex())
    picture = vtk_numpy.vtk_to_numpy(shown.GetPointData().GetScalars()).reshape(3, 32, 32, -1)[1]

    # All of them, two, one, nobody: colours of 1, 2/3, 1/3, and clear.
    table = np.array([[int(c) for c in row[2:5]] for row in rows()])
    for place, share in ((16, 1), (16 + 4, 2 / 3), (16 + 7, 1 / 3)):
        pixel = picture[16, place]
        assert np.abs(pixel[:3].astype(int) - table[round(255 * share)]).max() <= 3, (share, pixel)
        assert pixel[3] == 255
    assert picture[1, 1, 3] == 0

    image = pytest.importorskip("PIL.Image")
    image.fromarray(picture).resize((256, 256), 0).save(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 200
