# SPDX-License-Identifier: Apache-2.0
"""The tutorial in a scene of Slicer: agreement, consensus, training, prediction, calibration, correction, saving.

Inside Slicer it is a test of the module, run by CTest where Slicer has Python, or from the Python console:

    slicer.testing.runUnitTest(["folder of this file"], "RaterConsensusSelfTest")

It needs the wrapped logic and MRML, not the application: with the package slicer-core and our logic library wrapped for
Python beside it, `python RaterConsensusSelfTest.py` runs the same steps in a scene of its own. What the module says is
compared with NumPy. With RCN_SCREENSHOTS=FOLDER and a main window, pictures of it are left in that folder.
"""
import json
import os
import re
import shutil
import sys
import tempfile
import types
import unittest

import numpy as np
import slicer
import vtk

try:
    # By its full name: a test class among this file's own names would be run, too.
    import slicer.ScriptedLoadableModule as scripted
except ImportError:
    scripted = None

RATERS = ["Ada", "Ben", "Cleo", "Dan", "Eva"]
# Enough for an epoch of two small volumes; what is asserted does not depend on how far training gets.
MINUTES = 0.05


def pretendApplication():
    """slicer.mrmlScene and slicer.modules for Python outside the application, as far as they are used here."""
    slicer.mrmlScene = slicer.vtkMRMLScene()
    slicer.mrmlScene.RegisterNodeClass(slicer.vtkMRMLColorLegendDisplayNode())  # as the Colors module does
    logics = {
        "segmentations": slicer.vtkSlicerSegmentationsModuleLogic,
        "raterconsensus": slicer.vtkSlicerRaterConsensusLogic,
    }
    slicer.modules = types.SimpleNamespace()
    for name, make in logics.items():
        logic = make()
        logic.SetMRMLScene(slicer.mrmlScene)
        setattr(slicer.modules, name, types.SimpleNamespace(logic=lambda logic=logic: logic))


def mainWindow():
    return slicer.util.mainWindow() if hasattr(slicer, "app") else None


if scripted:

    class RaterConsensusSelfTest(scripted.ScriptedLoadableModule):
        def __init__(self, parent):
            scripted.ScriptedLoadableModule.__init__(self, parent)
            parent.title = "Rater Consensus Self Test"
            parent.categories = ["Testing.TestCases"]
            parent.dependencies = ["RaterConsensus"]
            parent.contributors = ["The RaterConsensus developers"]
            parent.helpText = "Follows the tutorial of Rater Consensus and compares what it says with NumPy."
            parent.acknowledgementText = ""

    class RaterConsensusSelfTestWidget(scripted.ScriptedLoadableModuleWidget):
        pass


class RaterConsensusSelfTestTest(scripted.ScriptedLoadableModuleTest if scripted else unittest.TestCase):
    def setUp(self):
        if not hasattr(slicer, "mrmlScene"):
            pretendApplication()
        slicer.mrmlScene.Clear()
        self.folder = tempfile.mkdtemp(prefix="raterconsensus-")
        self.logic = slicer.modules.raterconsensus.logic()

    def tearDown(self):
        slicer.mrmlScene.Clear()
        shutil.rmtree(self.folder)

    def runTest(self):
        self.setUp()
        try:
            self.test_tutorial()
        finally:
            self.tearDown()

    def test_tutorial(self):
        self.exampleCase()
        self.agreement()
        self.consensus()
        self.consensusKeepsItsPromise()
        self.training()
        self.linesInTheHeaders()
        self.prediction()
        self.calibration()
        self.correction()
        self.sceneIsSavedAndLoaded()

    # ---- what the steps have in common -------------------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.folder, name)

    def step(self, words):
        print(words, flush=True)
        if scripted:
            self.delayDisplay(words, 50)

    def picture(self, name):
        """A picture of the main window, where there is one and somebody wants it."""
        folder = os.environ.get("RCN_SCREENSHOTS")
        if not folder or not mainWindow():
            return
        import ctk

        slicer.app.processEvents()
        path = os.path.join(folder, f"slicer-{name}.png")
        ctk.ctkWidgetsUtils.grabWidget(mainWindow()).save(path)
        self.assertGreater(os.path.getsize(path), 10000)

    def done(self, sentence):
        """Actions return what went wrong."""
        self.assertEqual(sentence, "")

    def result(self, role, n=0):
        found = self.node.GetNthNodeReference(role, n)
        self.assertIsNotNone(found, f"there is no result {role} {n}")
        return found

    def cell(self, role, row, column, n=0):
        table = self.result(role, n).GetTable()
        for i in range(table.GetNumberOfRows()):
            if table.GetValue(i, 0).ToString() == row:
                return table.GetValueByName(i, column).ToString()
        self.fail(f"no row {row} in {role} {n}")

    def figure(self, name):
        return float(self.cell(self.node.GetFiguresRole(), name, "Value"))

    def map(self, role, n=0):
        return np.array(slicer.util.arrayFromVolume(self.result(role, n)), dtype=float)

    def segment(self, segmentation, segment):
        return slicer.util.arrayFromSegmentBinaryLabelmap(segmentation, segment, self.image) != 0

    def voxelAt(self, ras):
        """Index of a place into arrays of the image's grid."""
        matrix = vtk.vtkMatrix4x4()
        self.image.GetRASToIJKMatrix(matrix)
        ijk = matrix.MultiplyPoint([*ras, 1])[:3]
        return tuple(int(round(i)) for i in reversed(ijk))

    def mrEce(self, probability, bins=15):
        """Σ over bins of voxels / all · |mean probability − share of raters who marked|."""
        share = self.votes.mean(0)
        index = np.minimum((probability * bins).astype(int), bins - 1)
        return sum(
            abs(probability[index == b].sum() - share[index == b].sum()) for b in np.unique(index)
        ) / share.size

    # ---- the steps ---------------------------------------------------------------------------------------------

    def exampleCase(self):
        self.step("A built-in case: an image, and five raters who outlined the same thing")
        self.node = self.logic.AddExampleCase()
        self.image = slicer.mrmlScene.GetNodeByID(self.node.GetImageNodeID())
        names = [self.node.GetNthRaterName(n) for n in range(self.node.GetNumberOfRaters())]
        self.assertEqual(names, RATERS)
        self.votes = np.stack(
            [
                self.segment(self.node.GetNthRaterNode(n), self.node.GetNthRaterSegmentID(n))
                for n in range(self.node.GetNumberOfRaters())
            ]
        )
        self.assertEqual(self.votes.shape[1:], slicer.util.arrayFromVolume(self.image).shape)
        self.assertTrue(all(votes.any() for votes in self.votes))
        if mainWindow():
            slicer.util.setSliceViewerLayers(background=self.image, fit=True)
            slicer.util.selectModule("RaterConsensus")
        self.picture("raters")

    def agreement(self):
        self.step("How far do the raters agree, and where not?")
        self.done(self.logic.Check(self.logic.AgreementAction, self.node))
        self.done(self.logic.Agreement(self.node))
        tables = self.node.GetAgreementRole()
        dice = [
            2 * (a & b).sum() / (a.sum() + b.sum()) for i, a in enumerate(self.votes) for b in self.votes[i + 1:]
        ]
        self.assertAlmostEqual(float(self.cell(tables, "Mean Dice of all pairs", "Value", 1)), np.mean(dice), 8)
        self.assertAlmostEqual(float(self.cell(tables, "Ada", "Dice with Ben")), dice[0], 8)
        voxel = np.prod(self.image.GetSpacing()) / 1000
        levels = self.votes.sum(0)
        self.assertAlmostEqual(float(self.cell(tables, "Eva", "Volume (mL)")), self.votes[4].sum() * voxel, 6)
        disputed = ((levels > 0) & (levels < len(RATERS))).sum() * voxel
        self.assertAlmostEqual(float(self.cell(tables, "Disputed (mL)", "Value", 1)), disputed, 6)
        # A place to visit is one where some marked and some did not.
        count = self.logic.GetNumberOfDisputes(self.node)
        self.assertGreater(count, 0)
        regions = self.result(self.node.GetDisputesRole()).GetTable()
        for n in range(count):
            place = self.voxelAt([regions.GetValueByName(n, axis).ToDouble() for axis in "RAS"])
            self.assertTrue(0 < levels[place] < len(RATERS), place)
        self.assertTrue(self.logic.ShowDispute(self.node, 0))
        self.assertFalse(self.logic.ShowDispute(self.node, count))
        self.picture("agreement")
        # It is marked until it is left.
        self.result(self.node.GetVisitedRole())
        self.logic.LeaveDispute(self.node)
        self.assertIsNone(self.node.GetNodeReference(self.node.GetVisitedRole()))

    def consensus(self):
        self.step("One map out of all masks")
        self.assertEqual(self.node.GetMethod(), "orc")
        self.done(self.logic.Fuse(self.node))
        role = self.node.GetHeatmapRole()
        np.testing.assert_array_equal(self.map(role), self.votes.sum(0))
        heatmap = self.result(role)
        display = heatmap.GetDisplayNode()
        self.assertEqual(display.GetColorNodeID(), self.logic.GetColorNode().GetID())
        self.assertEqual((display.GetWindowLevelMin(), display.GetWindowLevelMax()), (0, len(RATERS)))
        masks = self.result(self.node.GetMaskRole())
        for k in range(1, len(RATERS) + 1):
            level = self.segment(masks, f"RaterConsensus_level_{k}")
            np.testing.assert_array_equal(level, self.votes.sum(0) >= k)
        if mainWindow():
            slicer.util.setSliceViewerLayers(foreground=heatmap, foregroundOpacity=0.6)
        self.picture("consensus")
        # Surfaces inside each other, and a map that is clear where fewer than two raters agree.
        self.node.LevelsIn3DOn()
        self.node.SetTransparentBelow(0.35)
        self.logic.ShowResults(self.node)
        shown = masks.GetDisplayNode()
        opacities = [shown.GetSegmentOpacity3D(f"RaterConsensus_level_{k}") for k in range(1, len(RATERS) + 1)]
        self.assertTrue(shown.GetVisibility3D() and opacities == sorted(opacities) and opacities[-1] == 1, opacities)
        points = []
        for k in range(1, len(RATERS) + 1):
            surface = vtk.vtkPolyData()
            self.assertTrue(masks.GetClosedSurfaceRepresentation(f"RaterConsensus_level_{k}", surface))
            points.append(surface.GetLength())
        self.assertEqual(points, sorted(points, reverse=True))
        self.assertAlmostEqual(display.GetLowerThreshold(), 0.35 * len(RATERS))
        self.picture("levels-3d")
        self.node.LevelsIn3DOff()
        self.node.SetTransparentBelow(0.05)
        self.logic.ShowResults(self.node)
        # Another method, the same node.
        count = slicer.mrmlScene.GetNumberOfNodes()
        self.node.SetMethod("staple")
        self.done(self.logic.Fuse(self.node))
        staple = self.map(role)
        self.assertTrue(((staple >= 0) & (staple <= 1)).all())
        self.assertGreater(staple[self.votes.all(0)].min(), 0.5)
        self.assertLess(staple[~self.votes.any(0)].max(), 0.5)
        self.node.SetMethod("soft")
        self.done(self.logic.Fuse(self.node))
        np.testing.assert_allclose(self.map(role), self.votes.mean(0), atol=1e-6)
        self.assertEqual(slicer.mrmlScene.GetNumberOfNodes(), count)
        self.assertEqual(self.result(role).GetID(), heatmap.GetID())

    def consensusKeepsItsPromise(self):
        self.step("The share of raters is what raters do")
        self.node.SetRegion("whole")
        self.done(self.logic.Evaluate(self.node))
        self.assertAlmostEqual(self.figure("mr_ece"), 0, 6)
        chart = self.result(self.node.GetChartRole())
        self.assertEqual(chart.GetNumberOfPlotSeriesNodes(), 2)  # the ideal, and what was observed

    def training(self):
        self.step("Train on two cases, for a few seconds")
        train = self.logic.TrainAction
        self.node.SetTrainingMinutes(MINUTES)
        self.assertIn("Choose the file", self.logic.Check(train, self.node))
        self.node.SetTrainedModelFile(self.path("model.safetensors"))
        self.assertIn("at least two cases", self.logic.Check(train, self.node))
        second = self.logic.AddExampleCase()
        self.assertNotEqual(second.GetImageNodeID(), self.node.GetImageNodeID())
        self.done(self.logic.Train(self.node))
        self.assertEqual(self.logic.Check(train, self.node), "Keep or discard the trained model first.")
        self.done(self.logic.Keep(self.node))
        self.assertEqual(self.node.GetModelFile(), self.path("model.safetensors"))
        self.assertTrue(os.path.exists(self.node.GetModelFile()))
        with open(self.path("model.log.csv"), encoding="utf-8") as log:
            self.assertGreater(len(log.readlines()), 1)

        self.step("Retrain from there, look at before and after, and discard")
        files = sorted(os.listdir(self.folder))
        self.node.SetTrainedModelFile(self.path("retrained.safetensors"))
        self.done(self.logic.Train(self.node))
        self.assertEqual(self.result(self.node.GetChartRole()).GetNumberOfPlotSeriesNodes(), 3)
        self.assertTrue(os.path.exists(self.path("retrained.safetensors")))
        self.done(self.logic.Discard(self.node))
        self.assertEqual(sorted(os.listdir(self.folder)), files)
        self.assertEqual(self.node.GetModelFile(), self.path("model.safetensors"))

    def linesInTheHeaders(self):
        self.step("What the headers tell users of the Python console to type")
        code = {}
        for name in "vtkMRMLRaterConsensusNode", "vtkSlicerRaterConsensusLogic":
            path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Logic", name + ".h")
            with open(path, encoding="utf-8") as header:
                code[name] = [line[6:].rstrip() for line in header if line.startswith("///   ")]
            self.assertGreater(len(code[name]), 3)
        # The names they speak of: an image, a segmentation, and a label map with the value 3.
        masks = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSegmentationNode")
        mask = slicer.vtkOrientedImageData()
        self.assertTrue(self.node.GetNthRaterNode(0).GetBinaryLabelmapRepresentation("Ada", mask))
        segment = slicer.vtkSegment()
        segment.SetName("Anna")
        segment.AddRepresentation(slicer.vtkSegmentationConverter.GetSegmentationBinaryLabelmapRepresentationName(), mask)
        masks.GetSegmentation().AddSegment(segment, "Segment_1")
        labels = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLLabelMapVolumeNode")
        labels.CopyOrientation(self.image)
        slicer.util.updateVolumeFromArray(labels, 3 * self.votes[1].astype(np.int16))
        names = {"slicer": slicer, "volume": self.image, "segmentation": masks, "labelmap": labels}
        before = os.getcwd()
        os.chdir(self.folder)  # where model.safetensors lies
        try:
            for line in code["vtkSlicerRaterConsensusLogic"]:
                # A node is made as its own header says.
                for each in code["vtkMRMLRaterConsensusNode"] if "see there" in line else [line]:
                    exec(each, names)
                    self.assertEqual(names.get("error", ""), "", each)
        finally:
            os.chdir(before)
        heatmap = np.array(slicer.util.arrayFromVolume(names["heatmap"]))
        self.assertGreater(heatmap[self.votes[:2].all(0)].min(), 0.5)
        self.assertLess(heatmap[~self.votes[:2].any(0)].max(), 0.5)
        for node in names["node"], masks, labels:
            slicer.mrmlScene.RemoveNode(node)

    def prediction(self):
        self.step("What the model says about the image")
        self.node.SetReadout("expected")
        self.done(self.logic.Predict(self.node))
        self.done(self.logic.Report(self.node, self.path("patient.html"), True))
        with open(self.path("patient.html"), encoding="utf-8") as page:
            self.assertIn("Model record", re.findall("<h2>(.*?)</h2>", page.read()))
        self.assertIn("Hash of the weights", self.logic.DescribeModel(self.node.GetModelFile()))
        levels = np.stack([self.map(self.node.GetLevelRole(), k) for k in range(len(RATERS) + 1)])
        np.testing.assert_allclose(levels.sum(0), 1, atol=1e-5)
        probability = self.map(self.node.GetProbabilityRole())
        share = np.arange(len(RATERS) + 1) / len(RATERS)
        np.testing.assert_allclose(probability, np.tensordot(share, levels, 1), atol=1e-5)
        self.assertGreater(np.ptp(probability), 0)
        volumes = self.result(self.node.GetVolumesRole()).GetTable()
        measured = [volumes.GetValue(row, 1).ToDouble() for row in range(1 + len(RATERS))]
        self.assertEqual(volumes.GetValue(0, 0).ToString(), "expected")
        self.assertAlmostEqual(measured[0], np.mean(measured[1:]), delta=1e-6 * measured[0])
        # A threshold at which there is something to see, however short the training was.
        self.node.SetThreshold(float(np.quantile(probability, 0.9)))
        self.done(self.logic.Predict(self.node))
        mask = self.segment(self.result(self.node.GetMaskRole()), "RaterConsensus_prediction")
        self.assertTrue(mask.any())
        unsure = np.abs(probability - self.node.GetThreshold()) < 1e-6
        np.testing.assert_array_equal(mask[~unsure], (probability >= self.node.GetThreshold())[~unsure])
        if mainWindow():
            slicer.util.setSliceViewerLayers(
                foreground=self.result(self.node.GetProbabilityRole()), foregroundOpacity=0.6
            )
        self.picture("prediction")

    def calibration(self):
        self.step("Does 70 % mean 70 %?")
        self.done(self.logic.Evaluate(self.node))
        probability = self.map(self.node.GetProbabilityRole())
        self.assertAlmostEqual(self.figure("mr_ece"), self.mrEce(probability), 5)
        brier = np.mean([(probability - votes) ** 2 for votes in self.votes])
        self.assertAlmostEqual(self.figure("brier"), brier, 5)
        observed = self.result(self.node.GetReliabilityRole(), 1).GetTable()
        pairs = sum(
            observed.GetValueByName(n, "Voxel-rater pairs").ToDouble() for n in range(observed.GetNumberOfRows())
        )
        self.assertEqual(pairs, self.votes.size)
        self.picture("calibration")

    def correction(self):
        self.step("A correction, fitted to all raters")
        # The one method that also fits a model that has learned next to nothing in so short a time.
        self.node.SetRecalibrationMethod("isotonic")
        self.assertIn("Choose the file", self.logic.Check(self.logic.RecalibrateAction, self.node))
        self.node.SetRecalibrationFile(self.path("correction.json"))
        self.done(self.logic.Recalibrate(self.node))
        with open(self.path("correction.json"), encoding="utf-8") as stored:
            fit = json.load(stored)
        self.assertEqual(fit["method"], "isotonic")
        self.assertEqual(fit["pairs"], self.votes.size)
        probability, share = self.map(self.node.GetProbabilityRole()), self.votes.mean(0)
        corrected = np.interp(probability, fit["x"], fit["y"])
        # It promises on the whole what raters do, and is not further from them than before.
        self.assertAlmostEqual(corrected.mean(), share.mean(), 3)
        self.assertLess(np.mean((corrected - share) ** 2), np.mean((probability - share) ** 2) + 1e-6)
        self.assertEqual(self.result(self.node.GetChartRole()).GetNumberOfPlotSeriesNodes(), 3)  # before and after
        self.picture("correction")

        self.step("The corrected prediction")
        self.node.CorrectedOn()
        self.done(self.logic.Predict(self.node))
        np.testing.assert_allclose(self.map(self.node.GetProbabilityRole()), corrected, atol=1e-4)
        self.done(self.logic.Evaluate(self.node))
        self.assertAlmostEqual(self.figure("mr_ece"), self.mrEce(self.map(self.node.GetProbabilityRole())), 5)
        self.assertIn("fitted to this case", self.logic.GetRemarks())

    def sceneIsSavedAndLoaded(self):
        self.step("Everything is in the scene that is saved")
        figure = self.cell(self.node.GetFiguresRole(), "mr_ece", "Value")
        heatmap = self.map(self.node.GetHeatmapRole())
        place = self.path("scene")
        os.mkdir(place)
        application = slicer.app.applicationLogic() if hasattr(slicer, "app") else slicer.vtkMRMLApplicationLogic()
        application.SetMRMLScene(slicer.mrmlScene)
        self.assertTrue(application.SaveSceneToSlicerDataBundleDirectory(place))
        name = self.node.GetName()
        choices = "Method Region Readout Threshold ModelFile RecalibrationMethod RecalibrationFile TrainingMinutes".split()
        kept = {choice: getattr(self.node, "Get" + choice)() for choice in choices}
        slicer.mrmlScene.Clear()
        scenes = [os.path.join(top, file) for top, _, files in os.walk(place) for file in files if file.endswith(".mrml")]
        self.assertEqual(len(scenes), 1)
        slicer.mrmlScene.SetURL(scenes[0])
        self.assertTrue(slicer.mrmlScene.Connect())
        self.node = slicer.mrmlScene.GetFirstNodeByName(name)
        self.image = slicer.mrmlScene.GetNodeByID(self.node.GetImageNodeID())
        self.assertEqual([self.node.GetNthRaterName(n) for n in range(len(RATERS))], RATERS)
        for choice, value in kept.items():
            again = getattr(self.node, "Get" + choice)()
            if isinstance(value, float):
                self.assertAlmostEqual(again, value, 5, choice)
            else:
                self.assertEqual(again, value, choice)
        self.assertEqual(self.cell(self.node.GetFiguresRole(), "mr_ece", "Value"), figure)
        np.testing.assert_array_equal(self.map(self.node.GetHeatmapRole()), heatmap)
        # And work goes on where it was left.
        self.done(self.logic.Evaluate(self.node))
        self.assertAlmostEqual(self.figure("mr_ece"), float(figure), 6)


if __name__ == "__main__":
    if not hasattr(slicer, "vtkSlicerRaterConsensusLogic"):
        sys.exit("The logic of Rater Consensus is not there: wrap it for Python, or run this inside Slicer.")
    unittest.main()
