# SPDX-License-Identifier: Apache-2.0
"""What Slicer gets from us, without the application: the color table file, and maps shown in its colors.

The second half runs in real MRML (package slicer-core): ./run test --peers.
"""
import ctypes as ct
import json
import pathlib

import numpy as np
import pytest

import rcn_ctypes
from rcn_testing import needs_peers, run, write_nrrd

SCENE = pathlib.Path(__file__).resolve().parents[1] / "Data" / "Slicer" / "scene.mrml"
COLORS = pathlib.Path(__file__).resolve().parents[2] / "Resources" / "Colors" / "RaterConsensus.ctbl"


def rows():
    lines = [line for line in COLORS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
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
    assert json.loads((tmp_path / "soft.json").read_text(encoding="utf-8"))["method"] == "soft"

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

    # All of them, two, one, nobody: colors of 1, 2/3, 1/3, and clear.
    table = np.array([[int(c) for c in row[2:5]] for row in rows()])
    for place, share in ((16, 1), (16 + 4, 2 / 3), (16 + 7, 1 / 3)):
        pixel = picture[16, place]
        assert np.abs(pixel[:3].astype(int) - table[round(255 * share)]).max() <= 3, (share, pixel)
        assert pixel[3] == 255
    assert picture[1, 1, 3] == 0

    image = pytest.importorskip("PIL.Image")
    image.fromarray(picture).resize((256, 256), 0).save(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 200


def load_scene():
    """A scene that the module's Logic made (vtkSlicerRaterConsensusLogicTest1 FOLDER), where the module is not installed."""
    slicer = pytest.importorskip("slicer")
    scene = slicer.vtkMRMLScene()
    scene.RegisterNodeClass(slicer.vtkMRMLColorLegendDisplayNode())  # as the Colors module does
    scene.SetURL(str(SCENE))
    scene.Connect()
    return scene


@needs_peers
def test_scene_opens_without_the_module():
    scene = load_scene()
    from vtkmodules.vtkCommonCore import reference

    def nodes(kind):
        return {scene.GetNthNodeByClass(n, kind).GetName(): scene.GetNthNodeByClass(n, kind)
                for n in range(scene.GetNumberOfNodesByClass(kind))}

    consensus = nodes("vtkMRMLScalarVolumeNode")["CT - consensus (soft-gaussian)"]
    assert tuple(consensus.GetImageData().GetDimensions()) == (24, 22, 20)
    low, high = consensus.GetImageData().GetScalarRange()
    assert 0 <= low < 0.01 and 0.9 < high <= 1
    display = consensus.GetDisplayNode()
    assert (display.GetWindowLevelMin(), display.GetWindowLevelMax()) == (0, 1)
    # Our colors, as the file that everybody can have.
    colors = display.GetColorNode()
    assert colors.GetName() == "Rater Consensus" and colors.GetNumberOfColors() == 256
    rgba = [0.0] * 4
    for row in rows()[::51]:
        colors.GetColor(int(row[0]), rgba)
        assert [round(255 * c) for c in rgba] == [int(c) for c in row[2:]]
    legend = next(iter(nodes("vtkMRMLColorLegendDisplayNode").values()))
    assert legend.GetTitleText() == "consensus (soft-gaussian)"
    # A segment for each "at least k of 3 raters", with color and terminology.
    segmentation = nodes("vtkMRMLSegmentationNode")["CT - consensus"].GetSegmentation()
    assert [segmentation.GetNthSegment(n).GetName() for n in range(3)] == [f"At least {k} of 3" for k in (1, 2, 3)]
    for n in range(3):
        terminology = reference("")
        segmentation.GetNthSegment(n).GetTag("TerminologyEntry", terminology)
        assert "Tissue" in str(terminology)
    tables = nodes("vtkMRMLTableNode")
    raters = tables["CT - agreement of raters"].GetTable()
    assert [raters.GetValue(n, 0).ToString() for n in range(raters.GetNumberOfRows())] == ["Anna", "Ben", "Cleo"]
    assert 0.5 < float(raters.GetValueByName(0, "Dice with Ben").ToString()) < 1
    disputes = tables["CT - disputed regions, largest first"].GetTable()
    assert disputes.GetNumberOfRows() > 0 and disputes.GetValueByName(0, "Voxels").ToDouble() > 1


@needs_peers
def test_reliability_chart_is_drawn(tmp_path):
    """The chart's nodes through VTK's charts, off-screen: the curve runs where the table says."""
    scene = load_scene()
    charts = pytest.importorskip("vtkmodules.vtkChartsCore")
    for backend in "vtkRenderingOpenGL2", "vtkRenderingContextOpenGL2", "vtkRenderingFreeType":
        pytest.importorskip("vtkmodules." + backend)
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOImage import vtkPNGWriter
    from vtkmodules.vtkRenderingCore import vtkWindowToImageFilter
    from vtkmodules.vtkViewsContext2D import vtkContextView

    node = scene.GetFirstNodeByClass("vtkMRMLPlotChartNode")
    assert node.GetTitle().startswith("CT: ") and node.GetNumberOfPlotSeriesNodes() == 2
    view = vtkContextView()
    window = view.GetRenderWindow()
    window.SetOffScreenRendering(1)
    window.SetMultiSamples(0)
    window.SetSize(640, 480)
    chart = charts.vtkChartXY()
    view.GetScene().AddItem(chart)
    chart.SetTitle(node.GetTitle())
    chart.SetShowLegend(node.GetLegendVisibility())
    axes = []
    for place, title, limits in ((charts.vtkAxis.BOTTOM, node.GetXAxisTitle(), node.GetXAxisRange()),
                                 (charts.vtkAxis.LEFT, node.GetYAxisTitle(), node.GetYAxisRange())):
        axes.append(chart.GetAxis(place))
        axes[-1].SetTitle(title)
        axes[-1].SetBehavior(charts.vtkAxis.FIXED)
        axes[-1].SetRange(*limits)
    for n in range(node.GetNumberOfPlotSeriesNodes()):
        series = node.GetNthPlotSeriesNode(n)
        plot = chart.AddPlot(charts.vtkChart.LINE)
        plot.SetInputData(series.GetTableNode().GetTable(), series.GetXColumnName(), series.GetYColumnName())
        plot.SetColorF(*series.GetColor())
        plot.SetLabel(series.GetName())
        plot.SetWidth(series.GetLineWidth())
        plot.SetMarkerStyle(series.GetMarkerStyle())
        plot.SetMarkerSize(series.GetMarkerSize())
        plot.GetPen().SetLineType(series.GetLineStyle())
    view.Render()
    grab = vtkWindowToImageFilter()
    grab.SetInput(window)
    writer = vtkPNGWriter()
    writer.SetInputConnection(grab.GetOutputPort())
    writer.SetFileName(str(tmp_path / "chart.png"))
    writer.Write()
    picture = vtk_to_numpy(grab.GetOutput().GetPointData().GetScalars()).reshape(480, 640, -1)

    def pixel(x, y):
        place = []
        for axis, value, side in zip(axes, (x, y), (0, 1)):
            low, high = axis.GetMinimum(), axis.GetMaximum()
            start, end = axis.GetPoint1()[side], axis.GetPoint2()[side]
            place.append(round(start + (end - start) * (value - low) / (high - low)))
        return picture[place[1] - 1:place[1] + 2, place[0] - 1:place[0] + 2].reshape(9, -1)[:, :3].astype(int)

    observed = node.GetNthPlotSeriesNode(1)
    table = observed.GetTableNode().GetTable()
    blue = np.array(observed.GetColor()) * 255
    count = table.GetNumberOfRows()
    assert count > 5
    for row in range(1, count - 1):
        marker = pixel(table.GetValueByName(row, "Predicted").ToDouble(), table.GetValueByName(row, "Observed").ToDouble())
        assert np.abs(marker - blue).max(1).min() < 40, row  # also at the end: no legend lies over it
    assert pixel(0.9, 0.3).min() > 240  # nothing is drawn where there is nothing
