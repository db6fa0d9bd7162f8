// SPDX-License-Identifier: Apache-2.0
// The panel in use: a person's clicks, from the first case to a retrained model, and everything
// that may go wrong meanwhile.
//
// With RCN_SCREENSHOTS=FOLDER it leaves pictures of what it went through.
#include <QAbstractButton>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QScrollArea>
#include <QTableWidget>
#include <QTest>

#include <ctkCollapsibleButton.h>
#include <ctkCollapsibleGroupBox.h>
#include <ctkPathLineEdit.h>
#include <ctkSliderWidget.h>
#include <qMRMLCheckableNodeComboBox.h>
#include <qMRMLLayoutManager.h>
#include <qMRMLNodeComboBox.h>
#include <qMRMLSegmentSelectorWidget.h>
#include <qMRMLWidget.h>
#include <qSlicerAbstractModuleRepresentation.h>
#include <qSlicerApplication.h>
#include <vtkMRMLApplicationLogic.h>
#include <vtkImageData.h>
#include <vtkMRMLColorLogic.h>
#include <vtkMRMLDisplayNode.h>
#include <vtkMRMLLabelMapVolumeNode.h>
#include <vtkMRMLLayoutNode.h>
#include <vtkMRMLScalarVolumeDisplayNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationDisplayNode.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSliceCompositeNode.h>
#include <vtkMRMLSliceLogic.h>
#include <vtkMRMLSliceNode.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>

#include "qRcnAgreement.h"
#include "qRcnDisputes.h"
#include "qRcnNotice.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnTrainingMonitor.h"
#include "qSlicerRaterConsensusModule.h"
#include "qSlicerRaterConsensusModuleWidget.h"
#include "rcnSlicerTest.h"
#include "vtkMRMLRaterConsensusNode.h"
#include "vtkSlicerRaterConsensusLogic.h"

namespace
{

using Node = vtkMRMLRaterConsensusNode;

/// The application as far as the panel sees it: a scene, views, and the module beside them.
class Window : public QWidget
{
public:
  explicit Window(vtkMRMLScene* scene) : Scene(scene)
  {
    auto* const scroll = new QScrollArea;
    auto* const views = new QWidget;
    auto* const layout = new QHBoxLayout(this);
    layout->addWidget(scroll);
    layout->addWidget(views, 1);
    this->resize(1500, 1000);
    this->Layouts = new qMRMLLayoutManager(views, this);
    this->Layouts->setMRMLScene(scene);
    // One view is enough to test with, and quick to draw.
    this->Layouts->setLayout(std::getenv("RCN_SCREENSHOTS") ? vtkMRMLLayoutNode::SlicerLayoutFourUpView
                                                            : vtkMRMLLayoutNode::SlicerLayoutOneUpRedSliceView);
    this->Module->initialize(qSlicerApplication::application()->applicationLogic());
    this->Module->setMRMLScene(scene);
    this->Panel = dynamic_cast<qSlicerRaterConsensusModuleWidget*>(this->Module->widgetRepresentation());
    CHECK(this->Panel != nullptr);
    scroll->setWidget(this->Panel);
    scroll->setWidgetResizable(true);
    scroll->setMinimumWidth(520);
    this->show();
    CHECK(QTest::qWaitForWindowExposed(this));
    this->Panel->enter();
  }
  ~Window() override
  {
    this->Module.reset(); // and the panel, whatever it is doing
    delete this->Layouts; // before its views
    this->Scene->Clear();
  }

  vtkSlicerRaterConsensusLogic* Actions() { return vtkSlicerRaterConsensusLogic::SafeDownCast(this->Module->logic()); }

  /// By the name of the class: the module has its own copy of our widgets, whose meta objects are
  /// not those of this program.
  template <class T> T* Find(const char* name = "")
  {
    for (QWidget* const child : this->Panel->findChildren<QWidget*>(name))
    {
      if (child->inherits(T::staticMetaObject.className()))
      {
        return static_cast<T*>(child);
      }
    }
    std::fprintf(stderr, "the panel has no %s %s\n", T::staticMetaObject.className(), name);
    std::exit(EXIT_FAILURE); // what follows would crash
  }
  Node* Parameters() { return Node::SafeDownCast(this->Find<qMRMLNodeComboBox>("ParametersComboBox")->currentNode()); }
  QString Hint(const char* stem) { return this->Find<QLabel>((std::string(stem) + "Hint").c_str())->text(); }
  QAbstractButton* Button(const char* name) { return this->Find<QAbstractButton>(name); }
  qRcnNotice* Notice() { return this->Find<qRcnNotice>(); }

  /// Opens the sections that the widget is in.
  void Open(QWidget* widget)
  {
    for (QWidget* parent = widget->parentWidget(); parent && parent != this->Panel; parent = parent->parentWidget())
    {
      if (auto* const section = qobject_cast<ctkCollapsibleButton*>(parent))
      {
        section->setCollapsed(false);
      }
      if (auto* const group = qobject_cast<ctkCollapsibleGroupBox*>(parent))
      {
        group->setCollapsed(false);
      }
    }
    CHECK(QTest::qWaitFor([widget] { return widget->isVisible(); }, 60000));
  }
  /// Opens the section and presses the button.
  void Click(const char* name)
  {
    QAbstractButton* const button = this->Button(name);
    this->Open(button);
    // Work that was told to stop may need a moment.
    if (!QTest::qWaitFor([button] { return button->isEnabled() && button->isVisible(); }, 60000))
    {
      ++Failures;
      std::fprintf(stderr, "%s cannot be pressed\n", name);
      return;
    }
    // A check box may be wider than its words, and does not answer there.
    const QPoint middle = button->rect().center();
    QTest::mouseClick(button, Qt::LeftButton, {}, qobject_cast<QCheckBox*>(button) ? QPoint(8, middle.y()) : middle);
  }
  bool IsRunning()
  {
    const auto* const monitor = this->Find<qRcnTrainingMonitor>();
    return this->Button("CancelButton")->isVisible() || monitor->state() == qRcnTrainingMonitor::Running ||
      monitor->state() == qRcnTrainingMonitor::Canceling;
  }
  /// Presses, and waits until the work is done.
  void Do(const char* name)
  {
    this->Click(name);
    CHECK(QTest::qWaitFor([this] { return !this->IsRunning(); }, 300000));
    QCoreApplication::processEvents(); // what the end of the work has posted
  }
  /// The sentence that the panel shows has these words; "": there is none.
  void Says(const QString& words, int line)
  {
    const QString text = this->Notice()->text();
    if (words.isEmpty() ? !text.isEmpty() : !text.contains(words))
    {
      ++Failures;
      std::fprintf(stderr, "line %d: \"%s\" instead of \"%s\"\n", line, qPrintable(text), qPrintable(words));
    }
  }
  void Picture(const char* name)
  {
    if (const char* const folder = std::getenv("RCN_SCREENSHOTS"))
    {
      QTest::qWait(300);
      this->grab().save(QString("%1/%2.png").arg(folder, name));
      this->Panel->grab().save(QString("%1/%2-panel.png").arg(folder, name));
    }
  }

  vtkMRMLScene* Scene;
  std::unique_ptr<qSlicerRaterConsensusModule> Module{ new qSlicerRaterConsensusModule };
  qMRMLLayoutManager* Layouts = nullptr;
  qSlicerRaterConsensusModuleWidget* Panel = nullptr;
};
#define SAYS(window, words) (window).Says(words, __LINE__)

vtkMRMLScene* TheScene()
{
  return qSlicerApplication::application()->mrmlScene();
}

void AnEmptyPanelSaysWhatIsMissing()
{
  Window w(TheScene());
  // Nothing is made before a person does something.
  CHECK(!w.Parameters() && w.Scene->GetNumberOfNodesByClass("vtkMRMLRaterConsensusNode") == 0);
  for (const char* const stem : { "Agreement", "Fuse", "Predict", "Report", "Evaluate", "Recalibrate", "Train" })
  {
    CHECK(!w.Button((std::string(stem) + "Button").c_str())->isEnabled());
    CHECK(!w.Hint(stem).isEmpty());
  }
  CHECK(w.Hint("Agreement").contains("Choose the image"));
  CHECK(!w.Button("SideBySideButton")->isEnabled() && !w.Button("ChartButton")->isEnabled());
  CHECK(w.Find<QLabel>("ResearchLabel")->text().contains("not for clinical use"));
  w.Picture("empty");
  w.Panel->exit();
  w.Panel->enter();
  CHECK(w.Scene->GetNumberOfNodesByClass("vtkMRMLRaterConsensusNode") == 0);
}

/// What a person types stays as it is typed, wherever the cursor is; the first key makes a case.
void TypingIsNotDisturbed()
{
  Window w(TheScene());
  for (const char* const name : { "ModelPath", "DataListPath", "TrainedPath", "RecalibrationPath" })
  {
    auto* const line = w.Find<ctkPathLineEdit>(name)->findChild<QLineEdit*>();
    w.Open(line);
    QTest::keyClicks(line, "/data/model.safetensors");
    CHECK(w.Parameters() != nullptr && line->text() == "/data/model.safetensors");
    line->setCursorPosition(6);
    QTest::keyClicks(line, "new-");
    CHECK(line->text() == "/data/new-model.safetensors" && line->cursorPosition() == 10);
    QTest::keyClick(line, Qt::Key_Backspace);
    CHECK(line->text() == "/data/newmodel.safetensors" && line->cursorPosition() == 9);
  }
  CHECK(w.Scene->GetNumberOfNodesByClass("vtkMRMLRaterConsensusNode") == 1);
  CHECK(w.Parameters()->GetModelFile() == "/data/newmodel.safetensors");
  CHECK(w.Parameters()->GetTrainedModelFile() == "/data/newmodel.safetensors");
  auto* const minutes = w.Find<QDoubleSpinBox>("MinutesSpinBox");
  minutes->selectAll();
  QTest::keyClicks(minutes, "12.5");
  CHECK(w.Parameters()->GetTrainingMinutes() == 12.5);
}

void FromRatersToConsensus()
{
  Window w(TheScene());
  w.Click("ExampleButton");
  Node* const node = w.Parameters();
  CHECK(node && node->GetNumberOfRaters() > 2 && node->GetImageNodeID());
  auto* const table = w.Find<QTableWidget>("RatersTable");
  CHECK(table->rowCount() == node->GetNumberOfRaters());
  table->item(0, 0)->setText("Anna");
  CHECK(node->GetNthRaterName(0) == "Anna");
  CHECK(w.Hint("Agreement").isEmpty());
  w.Do("AgreementButton");
  SAYS(w, "");
  CHECK(w.Find<qRcnAgreement>()->isVisible() && w.Find<qRcnDisputes>()->count() > 0);
  CHECK(node->GetNodeReference(Node::GetAgreementRole()) != nullptr);
  w.Picture("agreement");

  // The next disputed place moves the slices there.
  auto* const red = vtkMRMLSliceNode::SafeDownCast(w.Scene->GetNodeByID("vtkMRMLSliceNodeRed"));
  CHECK(red != nullptr);
  const double before = red->GetSliceToRAS()->GetElement(2, 3);
  w.Find<qRcnDisputes>()->next();
  w.Find<qRcnDisputes>()->next();
  CHECK(w.Find<qRcnDisputes>()->current() == 1 && red->GetSliceToRAS()->GetElement(2, 3) != before);
  CHECK(node->GetNodeReference(Node::GetVisitedRole()) != nullptr);
  w.Picture("dispute");
  w.Panel->exit();
  CHECK(!node->GetNodeReference(Node::GetVisitedRole()));
  w.Panel->enter();

  auto* const layout = vtkMRMLLayoutNode::SafeDownCast(w.Scene->GetFirstNodeByClass("vtkMRMLLayoutNode"));
  const int users = layout->GetViewArrangement();
  w.Do("FuseButton");
  SAYS(w, "");
  vtkMRMLNode* const map = node->GetNodeReference(Node::GetHeatmapRole());
  CHECK(map != nullptr && layout->GetViewArrangement() == users);
  auto* const composite = vtkMRMLSliceCompositeNode::SafeDownCast(w.Scene->GetNodeByID("vtkMRMLSliceCompositeNodeRed"));
  CHECK(composite && composite->GetForegroundVolumeID() && std::string(composite->GetForegroundVolumeID()) == map->GetID());
  w.Picture("consensus");
  w.Click("SideBySideButton");
  CHECK(layout->GetViewArrangement() == vtkMRMLLayoutNode::SlicerLayoutSideBySideView);
  CHECK(!composite->GetForegroundVolumeID()); // the image alone
  w.Picture("side-by-side");
  w.Click("SideBySideButton");
  CHECK(layout->GetViewArrangement() == users && composite->GetForegroundVolumeID() != nullptr);

  // Another case, and back: the map is there again.
  const std::string first = node->GetID(), image = node->GetImageNodeID();
  w.Click("ExampleButton");
  CHECK(!composite->GetForegroundVolumeID() && image != composite->GetBackgroundVolumeID());
  w.Find<qMRMLNodeComboBox>("ParametersComboBox")->setCurrentNodeID(first.c_str());
  CHECK(composite->GetForegroundVolumeID() && std::string(composite->GetForegroundVolumeID()) == map->GetID());
  CHECK(image == composite->GetBackgroundVolumeID() && w.Find<qRcnAgreement>()->isVisible());

  // Surfaces in 3-D, and what is clear.
  w.Click("LevelsIn3DCheckBox");
  auto* const masks = vtkMRMLSegmentationNode::SafeDownCast(node->GetNodeReference(Node::GetMaskRole()));
  CHECK(node->GetLevelsIn3D() && masks->GetDisplayNode()->GetVisibility3D());
  w.Find<ctkSliderWidget>("TransparentSlider")->setValue(30);
  CHECK(std::fabs(node->GetTransparentBelow() - 0.3) < 1e-9);
  w.Picture("levels-3d");

  // Only what a method needs is asked for.
  auto* const method = w.Find<QComboBox>("MethodComboBox");
  CHECK(!w.Find<QWidget>("SigmaSlider")->isVisible());
  method->setCurrentIndex(method->findData("soft-gaussian"));
  CHECK(w.Find<QWidget>("SigmaSlider")->isVisible() && node->GetMethod() == "soft-gaussian");
  w.Do("FuseButton");
  w.Do("EvaluateButton");
  CHECK(w.Find<qRcnReliabilityDiagram>()->isVisible() && w.Find<qRcnReliabilityDiagram>()->hasReport());
  w.Click("ChartButton");
  CHECK(layout->GetViewArrangement() == vtkMRMLLayoutNode::SlicerLayoutConventionalPlotView);
  w.Picture("chart");
  w.Click("ChartButton");
  CHECK(layout->GetViewArrangement() == users);
}

void RatersAreChosenFromSegmentsAndLabelMaps()
{
  Window w(TheScene());
  w.Click("ExampleButton");
  Node* const node = w.Parameters();
  const int raters = node->GetNumberOfRaters();
  auto* const table = w.Find<QTableWidget>("RatersTable");
  table->selectRow(1);
  w.Click("RemoveButton");
  CHECK(node->GetNumberOfRaters() == raters - 1 && table->rowCount() == raters - 1);
  w.Click("RemoveAllButton");
  CHECK(node->GetNumberOfRaters() == 0 && w.Hint("Agreement").contains("at least one rater"));

  auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(w.Scene->GetFirstNodeByClass("vtkMRMLSegmentationNode"));
  auto* const selector = w.Find<qMRMLSegmentSelectorWidget>("SegmentSelector");
  selector->setCurrentNode(segmentation);
  selector->setSelectedSegmentIDs({ QString::fromStdString(segmentation->GetSegmentation()->GetNthSegmentID(1)) });
  w.Click("AddSegmentsButton");
  CHECK(node->GetNumberOfRaters() == 1 && node->GetNthRaterSegmentID(0) == segmentation->GetSegmentation()->GetNthSegmentID(1));
  selector->setSelectedSegmentIDs({});
  w.Click("RemoveAllButton");
  w.Click("AddSegmentsButton"); // nothing chosen: all
  CHECK(node->GetNumberOfRaters() == raters);

  // A label map of another grid is refused in words, and resampled when that is wished.
  auto* const image = vtkMRMLScalarVolumeNode::SafeDownCast(w.Scene->GetNodeByID(node->GetImageNodeID()));
  auto* const labels = vtkMRMLLabelMapVolumeNode::SafeDownCast(w.Scene->AddNewNodeByClass("vtkMRMLLabelMapVolumeNode", "Zoe"));
  vtkNew<vtkImageData> voxels;
  voxels->SetDimensions(image->GetImageData()->GetDimensions());
  voxels->AllocateScalars(VTK_UNSIGNED_CHAR, 1);
  std::fill_n(static_cast<unsigned char*>(voxels->GetScalarPointer()), voxels->GetNumberOfPoints(), 1);
  labels->SetAndObserveImageData(voxels);
  vtkNew<vtkMatrix4x4> grid;
  image->GetIJKToRASMatrix(grid);
  grid->SetElement(0, 3, grid->GetElement(0, 3) + 30);
  labels->SetIJKToRASMatrix(grid);
  w.Find<qMRMLNodeComboBox>("LabelMapComboBox")->setCurrentNode(labels);
  w.Click("AddLabelMapButton");
  CHECK(node->GetNthRaterName(raters) == "Zoe");
  w.Do("AgreementButton");
  SAYS(w, "Zoe");
  CHECK(w.Notice()->isError() && !w.Find<qRcnAgreement>()->isVisible());
  w.Picture("other-geometry");
  w.Click("ResampleCheckBox");
  w.Do("AgreementButton");
  SAYS(w, "");
  CHECK(w.Find<qRcnAgreement>()->isVisible());

  // A rater who painted nothing is a remark; a segment that is gone a sentence; an image that is
  // gone disables.
  segmentation->GetSegmentation()->AddEmptySegment("empty", "Nobody");
  node->AddSegment("Nobody", segmentation->GetID(), "empty");
  w.Do("AgreementButton");
  SAYS(w, "Nobody marked nothing");
  CHECK(!w.Notice()->isError());
  segmentation->GetSegmentation()->RemoveSegment("empty");
  w.Do("FuseButton");
  SAYS(w, "The segment of rater Nobody is no longer in");
  w.Scene->RemoveNode(image);
  CHECK(!w.Button("AgreementButton")->isEnabled() && w.Hint("Agreement").contains("Choose the image"));
}

/// A segmentation as a rater: its segments are structures, one of them is chosen, and eyes show and hide outlines.
void StructuresAreChosenFromAList()
{
  Window w(TheScene());
  w.Click("ExampleButton");
  Node* const node = w.Parameters();
  auto* const list = w.Find<QListWidget>("structures");
  CHECK(!list->isVisible());
  w.Click("RemoveAllButton");
  auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(w.Scene->GetFirstNodeByClass("vtkMRMLSegmentationNode"));
  w.Find<qMRMLSegmentSelectorWidget>("SegmentSelector")->setCurrentNode(segmentation);
  w.Click("AddSegmentationButton");
  CHECK(
    list->isVisible() && list->count() == segmentation->GetSegmentation()->GetNumberOfSegments() && list->currentRow() == 0);
  const auto row = [list](int number) { return list->visualItemRect(list->item(number)); };
  QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, row(1).center());
  CHECK(node->GetStructure() == segmentation->GetSegmentation()->GetNthSegment(1)->GetName() && list->currentRow() == 1);
  QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, QPoint(row(2).left() + 8, row(2).center().y()));
  auto* const display = vtkMRMLSegmentationDisplayNode::SafeDownCast(segmentation->GetDisplayNode());
  CHECK(!display->GetSegmentVisibility(segmentation->GetSegmentation()->GetNthSegmentID(2)));
  CHECK(display->GetSegmentVisibility(segmentation->GetSegmentation()->GetNthSegmentID(1)) && list->currentRow() == 1);
  w.Picture("structures");
  w.Click("RemoveAllButton");
  CHECK(!list->isVisible());
}

void ModelsAreRetrainedKeptAndJudged()
{
  Window w(TheScene());
  const Folder folder;
  for (int i = 0; i < 3; ++i)
  {
    w.Click("ExampleButton");
  }
  Node* const node = w.Parameters();
  // The case that was loaded last is the one that is seen.
  auto* const composite = vtkMRMLSliceCompositeNode::SafeDownCast(w.Scene->GetNodeByID("vtkMRMLSliceCompositeNodeRed"));
  CHECK(std::string(composite->GetBackgroundVolumeID()) == node->GetImageNodeID());
  std::vector<vtkMRMLNode*> masks;
  w.Scene->GetNodesByClass("vtkMRMLSegmentationNode", masks);
  CHECK(masks.size() == 3);
  for (vtkMRMLNode* const one : masks)
  {
    CHECK((vtkMRMLSegmentationNode::SafeDownCast(one)->GetDisplayVisibility() != 0) == (one == node->GetNthRaterNode(0)));
  }
  CHECK(w.Hint("Predict").contains("Choose a model file"));
  CHECK(w.Find<QPlainTextEdit>("RecordText")->toPlainText().isEmpty());
  node->SetTrainedModelFile(folder / "first.safetensors");
  node->SetTrainingMinutes(0.1);
  CHECK(w.Button("TrainButton")->text().contains("0.1 minutes"));
  w.Do("TrainButton");
  auto* const monitor = w.Find<qRcnTrainingMonitor>();
  CHECK(monitor->isVisible() && monitor->state() == qRcnTrainingMonitor::Finished);
  w.Picture("trained");
  w.Click("keep");
  CHECK(node->GetModelFile() == folder / "first.safetensors" && std::filesystem::exists(folder / "first.safetensors"));
  CHECK(node->GetTrainedModelFile() == folder / "first-2.safetensors" && !monitor->isVisible());
  CHECK(w.Find<QPlainTextEdit>("RecordText")->toPlainText().contains("Hash of the weights") &&
    w.Button("ReportButton")->isEnabled());

  // On two of the cases; what is discarded leaves nothing behind.
  auto* const cases = w.Find<qMRMLCheckableNodeComboBox>("CasesComboBox");
  CHECK(cases->nodes().size() == 3);
  cases->check(cases->nodes()[0]);
  CHECK(node->GetNumberOfTrainingCases() == 1 && !w.Button("TrainButton")->isEnabled());
  cases->check(cases->nodes()[1]);
  CHECK(node->GetNumberOfTrainingCases() == 2 && w.Hint("Train").isEmpty());
  w.Do("TrainButton");
  CHECK(monitor->state() == qRcnTrainingMonitor::Finished);
  w.Click("discard");
  CHECK(node->GetModelFile() == folder / "first.safetensors");
  CHECK(std::filesystem::exists(folder / "first.safetensors") && !std::filesystem::exists(folder / "first-2.safetensors"));

  w.Do("PredictButton");
  CHECK(!w.Notice()->isError() && node->GetNodeReference(Node::GetProbabilityRole()));
  w.Picture("predicted");
  w.Do("EvaluateButton");
  CHECK(w.Find<qRcnReliabilityDiagram>()->hasReport());
  w.Picture("calibration");
  // A bin of the diagram lights up alone.
  auto* const display =
    vtkMRMLScalarVolumeNode::SafeDownCast(node->GetNodeReference(Node::GetProbabilityRole()))->GetScalarVolumeDisplayNode();
  QMetaObject::invokeMethod(w.Find<qRcnReliabilityDiagram>(), "binSelected", Q_ARG(double, 0.4), Q_ARG(double, 0.5));
  CHECK(display->GetLowerThreshold() == 0.4 && display->GetUpperThreshold() < 0.5 && display->GetUpperThreshold() > 0.49);
  QMetaObject::invokeMethod(w.Find<qRcnReliabilityDiagram>(), "binSelected", Q_ARG(double, -1.0), Q_ARG(double, -1.0));
  CHECK(display->GetLowerThreshold() < 0.1 && display->GetUpperThreshold() == 1);
  node->SetRecalibrationFile(folder / "correction.json");
  node->SetRecalibrationMethod("isotonic"); // helps on the case it is fitted to however little the model has learned
  w.Do("RecalibrateButton");
  CHECK(!w.Notice()->isError() && std::filesystem::exists(folder / "correction.json"));
  w.Click("CorrectedCheckBox");
  CHECK(node->GetCorrected());
  CHECK(!w.Button("ReportButton")->isEnabled() && w.Hint("Report").contains("store the correction in the model"));
  w.Do("PredictButton");
  CHECK(!w.Notice()->isError());

  // A model for another number of raters than there are, and a file that is none.
  std::ofstream(folder / "broken.safetensors") << "no model";
  w.Find<ctkPathLineEdit>("ModelPath")->setCurrentPath(QString::fromStdString(folder / "broken.safetensors"));
  CHECK(node->GetModelFile() == folder / "broken.safetensors");
  w.Do("PredictButton");
  SAYS(w, "broken.safetensors");
  CHECK(w.Notice()->isError());
}

/// Saved and loaded: the panel shows what the nodes hold, at once, and the last case is chosen.
void AScenesResultsComeBack()
{
  const Folder folder;
  QString sentence;
  int regions = 0;
  {
    Window w(TheScene());
    w.Click("ExampleButton");
    w.Click("ExampleButton");
    w.Do("AgreementButton");
    w.Do("FuseButton");
    auto* const method = w.Find<QComboBox>("MethodComboBox");
    method->setCurrentIndex(method->findData("soft-gaussian"));
    w.Do("FuseButton");
    w.Do("EvaluateButton");
    sentence = w.Find<qRcnAgreement>()->findChild<QLabel*>("sentence")->text();
    regions = w.Find<qRcnDisputes>()->count();
    CHECK(std::filesystem::create_directory(folder / "scene"));
    qSlicerApplication::application()->applicationLogic()->SaveSceneToSlicerDataBundleDirectory((folder / "scene").c_str());
  }
  Window w(TheScene());
  w.Panel->exit(); // a scene may be loaded while another module is in use
  std::string file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "scene"))
  {
    file = entry.path().extension() == ".mrml" ? entry.path().string() : file;
  }
  w.Scene->SetURL(file.c_str());
  CHECK(w.Scene->Connect());
  w.Panel->enter();
  CHECK(QTest::qWaitFor([&] { return w.Find<qRcnReliabilityDiagram>()->hasReport(); }, 10000));
  CHECK(w.Parameters() && std::string(w.Parameters()->GetName()) == "Example case 2");
  CHECK(w.Scene->GetNumberOfNodesByClass("vtkMRMLRaterConsensusNode") == 2);
  CHECK(!w.Find<qRcnAgreement>()->isHidden() && w.Find<qRcnDisputes>()->count() == regions);
  CHECK(w.Find<qRcnAgreement>()->findChild<QLabel*>("sentence")->text() == sentence);
  w.Picture("loaded");
}

void WorkIsStoppedWithoutHarm()
{
  const Folder folder;
  {
    Window w(TheScene());
    w.Click("ExampleButton");
    w.Click("ExampleButton");
    Node* const node = w.Parameters();
    node->SetTrainedModelFile(folder / "never.safetensors");
    node->SetTrainingMinutes(5);
    auto* const monitor = w.Find<qRcnTrainingMonitor>();

    // Another case is chosen, the module is left, a segment is deleted: training goes on.
    w.Click("TrainButton");
    CHECK(w.IsRunning() && !w.Button("AgreementButton")->isEnabled());
    // Buttons say why they are off, and the run does not stumble over its own file.
    CHECK(w.Hint("Agreement").contains("Training is still running") && w.Hint("Train").isEmpty());
    w.Panel->exit();
    vtkMRMLSegmentationNode::SafeDownCast(node->GetNthRaterNode(0))->GetSegmentation()->RemoveAllSegments();
    const auto* const bar = monitor->findChild<QProgressBar*>("progress");
    const int before = bar->value();
    CHECK(QTest::qWaitFor([&] { return bar->value() > before; }, 60000) && w.IsRunning());
    w.Panel->enter();
    w.Picture("training");

    // The scene is closed meanwhile: nothing is left of it, and the panel is ready for the next
    // one.
    w.Scene->Clear();
    CHECK(QTest::qWaitFor([&] { return !w.IsRunning(); }, 60000));
    CHECK(monitor->state() != qRcnTrainingMonitor::Running && !w.Parameters());
    CHECK(!std::filesystem::exists(folder / "never.safetensors"));
    w.Click("ExampleButton");
    w.Do("AgreementButton");
    CHECK(w.Find<qRcnAgreement>()->isVisible());

    // The case is removed while it is trained on.
    w.Click("ExampleButton");
    w.Parameters()->SetTrainedModelFile(folder / "gone.safetensors");
    w.Parameters()->SetTrainingMinutes(5);
    w.Click("TrainButton");
    w.Scene->RemoveNode(w.Parameters());
    w.Click("cancel");
    CHECK(QTest::qWaitFor([&] { return !w.IsRunning(); }, 60000));

    // And the whole panel goes while training runs.
    w.Click("ExampleButton");
    w.Parameters()->SetTrainedModelFile(folder / "panel.safetensors");
    w.Parameters()->SetTrainingMinutes(5);
    w.Click("TrainButton");
    CHECK(w.IsRunning());
  }
  CHECK(!std::filesystem::exists(folder / "panel.safetensors"));
}

} // namespace

int qSlicerRaterConsensusModuleWidgetTest1(int argc, char* argv[])
{
  qMRMLWidget::preInitializeApplication();
  qSlicerApplication application(argc, argv);
  qMRMLWidget::postInitializeApplication();
  RegisterWhatModulesRegister();
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  vtkNew<vtkMRMLColorLogic> colors; // images are gray by the Colors module
  colors->SetMRMLScene(application.mrmlScene());
  RUN(AnEmptyPanelSaysWhatIsMissing);
  RUN(TypingIsNotDisturbed);
  RUN(FromRatersToConsensus);
  RUN(RatersAreChosenFromSegmentsAndLabelMaps);
  RUN(StructuresAreChosenFromAList);
  RUN(ModelsAreRetrainedKeptAndJudged);
  RUN(AScenesResultsComeBack);
  RUN(WorkIsStoppedWithoutHarm);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
