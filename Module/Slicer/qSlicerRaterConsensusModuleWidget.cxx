// SPDX-License-Identifier: Apache-2.0
#include "qSlicerRaterConsensusModuleWidget.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <QDateTime>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QStringList>
#include <QTimer>
#include <QVBoxLayout>

#include <vtkMRMLApplicationLogic.h>
#include <vtkMRMLLabelMapVolumeNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSelectionNode.h>
#include <vtkNew.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>
#include <vtkWeakPointer.h>

#include "qRcnAgreement.h"
#include "qRcnDisputes.h"
#include "qRcnJob.h"
#include "qRcnNotice.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnStructures.h"
#include "qRcnStyle.h"
#include "qRcnTrainingMonitor.h"
#include "qRcnVolumes.h"
#include "rcnMrmlViews.h"
#include "rcnReport.h"
#include "rcnTraining.h"
#include "rcnWorkspace.h"
#include "ui_qSlicerRaterConsensusModuleWidget.h"
#include "vtkMRMLRaterConsensusNode.h"
#include "vtkSlicerRaterConsensusLogic.h"

using Logic = vtkSlicerRaterConsensusLogic;
using Node = vtkMRMLRaterConsensusNode;

namespace
{

/// Shows which item stands for a value; a value that is not among them gets an item of its own, so
/// that it is not lost.
void Choose(QComboBox* box, const std::string& value)
{
  const QString text = QString::fromStdString(value);
  if (box->findData(text) < 0)
  {
    box->addItem(text, text);
  }
  box->setCurrentIndex(box->findData(text));
}

/// A field is written only when it shows something else: its cursor stays where a person types.
void ShowPath(ctkPathLineEdit* field, const std::string& path)
{
  const QString text = QString::fromStdString(path);
  if (field->findChild<QLineEdit*>()->text() != text)
  {
    field->setCurrentPath(text);
  }
}

template <class TBox> void ShowNumber(TBox* box, double value)
{
  if (box->value() != value)
  {
    box->setValue(value);
  }
}

std::string Chosen(const QComboBox* box)
{
  return box->currentData().toString().toStdString();
}

} // namespace

class qSlicerRaterConsensusModuleWidgetPrivate : public Ui_qSlicerRaterConsensusModuleWidget
{
  Q_DECLARE_PUBLIC(qSlicerRaterConsensusModuleWidget)
  qSlicerRaterConsensusModuleWidget* const q_ptr;

public:
  explicit qSlicerRaterConsensusModuleWidgetPrivate(qSlicerRaterConsensusModuleWidget& owner) : q_ptr(&owner) {}

  struct Action
  {
    int Id;
    QPushButton* Button;
    QLabel* Hint;
    QWidget* Place; ///< where its progress and its sentences are shown
    QString What;
  };
  std::vector<Action> Actions;
  vtkWeakPointer<Node> Parameters;
  vtkNew<Node> Defaults;     ///< what is shown before there is a case
  bool CaseIsChosen = false; ///< otherwise the box took the first one that came into the scene
  bool Updating = false;
  int RunningAction = -1;
  std::string RunningNode; ///< the case may be changed while something runs
  QString ReportPath;      ///< of the page that is written
  QString RecordKey;       ///< the model file whose record is shown, and when it was changed
  QString ModelStructures; ///< that the model tells apart, one per line
  std::shared_ptr<const rcn::AgreementReport> ShownAgreement;
  rcn::mrml::Views Views;
  qRcnJob* Job = nullptr;
  QWidget* Status = nullptr; ///< progress, Cancel and sentences: below the button that was pressed
  QLabel* StatusLabel = nullptr;
  QProgressBar* ProgressBar = nullptr;
  QPushButton* CancelButton = nullptr;
  qRcnNotice* Notice = nullptr;
  qRcnAgreement* Agreement = nullptr;
  qRcnDisputes* Disputes = nullptr;
  qRcnStructures* Structures = nullptr;
  qRcnVolumes* Volumes = nullptr;
  qRcnReliabilityDiagram* Diagram = nullptr;
  qRcnTrainingMonitor* Training = nullptr;

  Logic* logic() const { return Logic::SafeDownCast(this->q_ptr->logic()); }

  const Action& action(int id) const
  {
    for (const Action& one : this->Actions)
    {
      if (one.Id == id)
      {
        return one;
      }
    }
    return this->Actions.front();
  }

  /// What a person changed goes into the node, which tells updateFromNode(); the first change makes a
  /// case. Not what changes because a scene is loaded.
  void edit(const std::function<void(Node*)>& change)
  {
    if (this->Updating || !this->q_ptr->mrmlScene() || this->q_ptr->mrmlScene()->IsBatchProcessing())
    {
      return;
    }
    if (!this->Parameters)
    {
      this->Updating = true; // what was just changed is not written over
      this->ParametersComboBox->addNode();
      this->CaseIsChosen = true;
      this->Updating = false;
    }
    if (this->Parameters)
    {
      const MRMLNodeModifyBlocker blocker(this->Parameters);
      change(this->Parameters);
    }
  }

  Node* runningNode() const
  {
    vtkMRMLScene* const scene = this->q_ptr->mrmlScene();
    return scene ? Node::SafeDownCast(scene->GetNodeByID(this->RunningNode)) : nullptr;
  }

  QStringList raters(Node* node) const
  {
    QStringList names;
    for (int n = 0; node && n < node->GetNumberOfRaters(); ++n)
    {
      names << QString::fromStdString(node->GetNthRaterName(n));
    }
    return names;
  }

  void fillChoices();
  void makeStatus();
  void showStatusAt(const Action& action);
  void connectInputs();
  void connectSettings();
  void connectResults();
  void connectJob();
  void showCase(Node* node);
  void showRaters();
  void showReadouts(int raters);
  void showSettings(Node* node);
  void addSegments();
  void removeRaters(bool all);
  void exportAgreement();
  void report();
  void showRecord(Node* node);
  void showStructures(Node* node);
  void start(int action);
  void finishTraining(bool keep);
  void showRemarks();
  void showAnswer();
  void showActions(Node* node);
  void showResults(bool anew = false);
};

// ---- the panel's parts
// ----------------------------------------------------------------------------------------------

// From the bridge's tables, so that a new method or network appears here by itself.
void qSlicerRaterConsensusModuleWidgetPrivate::fillChoices()
{
  using Widget = qSlicerRaterConsensusModuleWidget;
  for (const rcn::Choice& method : rcn::Methods())
  {
    this->MethodComboBox->addItem(Widget::tr(method.Label), method.Name);
  }
  for (const rcn::Choice& correction : rcn::Corrections())
  {
    this->RecalibrationComboBox->addItem(Widget::tr(correction.Label), correction.Name);
  }
  this->StrategyComboBox->addItem(Widget::tr("(that of the model, or the default)"), "");
  for (const rcn::Choice& strategy : rcn::Strategies())
  {
    this->StrategyComboBox->addItem(Widget::tr(strategy.Label), strategy.Name);
  }
  this->NetworkComboBox->addItem(Widget::tr("(that of the model, or the default)"), "");
  for (const rcn::Choice& network : rcn::Networks())
  {
    this->NetworkComboBox->addItem(Widget::tr(network.Label), network.Name);
  }
  this->RatersTable->setHorizontalHeaderLabels({ Widget::tr("Rater"), Widget::tr("Mask") });
  this->RatersTable->horizontalHeader()->setStretchLastSection(true);
}

// One status line for all actions, which moves below the button that was pressed: what happens is seen where a person looks.
void qSlicerRaterConsensusModuleWidgetPrivate::makeStatus()
{
  this->Status = new QWidget;
  this->StatusLabel = new QLabel;
  this->StatusLabel->setWordWrap(true);
  this->ProgressBar = new QProgressBar;
  this->ProgressBar->setMaximum(1000);
  this->CancelButton = new QPushButton(qSlicerRaterConsensusModuleWidget::tr("Cancel"));
  this->CancelButton->setObjectName("CancelButton");
  this->Notice = new qRcnNotice;
  auto* const running = new QHBoxLayout;
  running->addWidget(this->ProgressBar, 1);
  running->addWidget(this->CancelButton);
  auto* const layout = new QVBoxLayout(this->Status);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(this->StatusLabel);
  layout->addLayout(running);
  layout->addWidget(this->Notice);
  for (QWidget* const one : std::initializer_list<QWidget*>{ this->StatusLabel, this->ProgressBar, this->CancelButton })
  {
    one->hide();
  }
  this->Actions.front().Place->layout()->addWidget(this->Status);
}

void qSlicerRaterConsensusModuleWidgetPrivate::showStatusAt(const Action& action)
{
  action.Place->layout()->addWidget(this->Status);
  this->Status->show(); // another parent hides it
  this->Notice->clear();
}

// The parameter node is the truth: controls write into it (edit), and are filled from it (updateFromNode). So undo, scripts and
// loaded scenes show in the panel, too.
void qSlicerRaterConsensusModuleWidgetPrivate::connectInputs()
{
  qSlicerRaterConsensusModuleWidget* const q = this->q_ptr;
  QObject::connect(this->ParametersComboBox, SIGNAL(currentNodeChanged(vtkMRMLNode*)), q, SLOT(setParameters(vtkMRMLNode*)));
  QObject::connect(
    this->ParametersComboBox, &qMRMLNodeComboBox::nodeActivated, q, [this](vtkMRMLNode*) { this->CaseIsChosen = true; });
  // Only what a person chose: the box moves on to another image by itself when one leaves the
  // scene.
  QObject::connect(this->ImageComboBox, &qMRMLNodeComboBox::nodeActivated, q, [this](vtkMRMLNode* image) {
    this->edit([=](Node* node) { node->SetImageNodeID(image ? image->GetID() : nullptr); });
    this->showCase(this->Parameters);
  });
  for (QObject* const source : std::initializer_list<QObject*>{ this->SegmentSelector, this->LabelMapComboBox })
  {
    QObject::connect(source, SIGNAL(currentNodeChanged(vtkMRMLNode*)), q, SLOT(updateFromNode()));
  }
  QObject::connect(this->AddSegmentsButton, &QPushButton::clicked, q, [this] { this->addSegments(); });
  QObject::connect(this->AddSegmentationButton, &QPushButton::clicked, q, [this] {
    this->edit([this](Node* node) {
      if (vtkMRMLNode* const segmentation = this->SegmentSelector->currentNode())
      {
        node->AddSegmentation(segmentation->GetName() ? segmentation->GetName() : segmentation->GetID(), segmentation->GetID());
      }
    });
  });
  QObject::connect(this->AddLabelMapButton, &QPushButton::clicked, q, [this] {
    this->edit([this](Node* node) {
      if (vtkMRMLNode* const labels = this->LabelMapComboBox->currentNode())
      {
        node->AddLabelMap(
          labels->GetName() ? labels->GetName() : labels->GetID(), labels->GetID(), this->LabelValueSpinBox->value());
      }
    });
  });
  QObject::connect(this->RemoveButton, &QPushButton::clicked, q, [this] { this->removeRaters(false); });
  QObject::connect(this->RemoveAllButton, &QPushButton::clicked, q, [this] { this->removeRaters(true); });
  QObject::connect(this->ExampleButton, &QPushButton::clicked, q, [this] {
    if (Node* const example = this->logic()->AddExampleCase())
    {
      this->ParametersComboBox->setCurrentNode(example);
      this->CaseIsChosen = true;
    }
  });
  QObject::connect(this->Structures, &qRcnStructures::structureChosen, q, [this](int row) {
    const std::string name = this->Structures->list()->item(row - 1)->text().toStdString();
    this->edit([=](Node* node) { node->SetStructure(name); });
  });
  QObject::connect(this->Structures, &qRcnStructures::visibilityChanged, q, [this](int row, bool visible) {
    rcn::mrml::Views::ShowStructure(this->Parameters, this->Structures->list()->item(row - 1)->text().toStdString(), visible);
  });
  QObject::connect(this->RatersTable, &QTableWidget::itemChanged, q, [this](QTableWidgetItem* item) {
    if (item->column() == 0)
    {
      this->edit([=](Node* node) { node->SetNthRaterName(item->row(), item->text().trimmed().toStdString()); });
    }
  });
}

void qSlicerRaterConsensusModuleWidgetPrivate::connectSettings()
{
  qSlicerRaterConsensusModuleWidget* const q = this->q_ptr;
  const auto indexChanged = QOverload<int>::of(&QComboBox::currentIndexChanged);
  // One line for each setting: the control, and the setter of the node.
  const auto flag = [this, q](QAbstractButton* box, void (Node::*set)(bool)) {
    QObject::connect(box, &QAbstractButton::toggled, q, [=](bool on) { this->edit([=](Node* node) { (node->*set)(on); }); });
  };
  flag(this->ResampleCheckBox, &Node::SetResample);
  flag(this->SurfacesCheckBox, &Node::SetSurfaces);
  flag(this->TieCheckBox, &Node::SetTieBackground);
  flag(this->CorrectedCheckBox, &Node::SetCorrected);
  const auto choice = [this, q, indexChanged](QComboBox* box, void (Node::*set)(std::string)) {
    QObject::connect(box, indexChanged, q, [=] { this->edit([=](Node* node) { (node->*set)(Chosen(box)); }); });
  };
  choice(this->MethodComboBox, &Node::SetMethod);
  choice(this->ReadoutComboBox, &Node::SetReadout);
  choice(this->RecalibrationComboBox, &Node::SetRecalibrationMethod);
  choice(this->StrategyComboBox, &Node::SetStrategy);
  choice(this->NetworkComboBox, &Node::SetNetwork);
  const auto slider = [this, q](ctkSliderWidget* widget, void (Node::*set)(double)) {
    QObject::connect(
      widget, &ctkSliderWidget::valueChanged, q, [=](double value) { this->edit([=](Node* node) { (node->*set)(value); }); });
  };
  slider(this->SigmaSlider, &Node::SetSigma);
  slider(this->ThresholdSlider, &Node::SetThreshold);
  QObject::connect(this->TransparentSlider, &ctkSliderWidget::valueChanged, q, [this](double percent) {
    this->edit([=](Node* node) {
      // Only how results are shown: nothing is computed anew.
      node->SetTransparentBelow(percent / 100);
      this->logic()->ShowResults(node);
    });
  });
  QObject::connect(this->LevelsIn3DCheckBox, &QAbstractButton::toggled, q, [this](bool on) {
    this->edit([=](Node* node) {
      node->SetLevelsIn3D(on);
      this->logic()->ShowResults(node);
    });
  });
  QObject::connect(this->MinutesSpinBox, QOverload<double>::of(&QDoubleSpinBox::valueChanged), q,
    [this](double value) { this->edit([=](Node* node) { node->SetTrainingMinutes(value); }); });
  // The widget's own signal tells only about files that are there; an emptied line has to be known, too.
  const auto pathChanged = [q](ctkPathLineEdit* widget, const std::function<void(const QString&)>& changed) {
    QObject::connect(widget->findChild<QLineEdit*>(), &QLineEdit::textChanged, q, changed);
  };
  const auto file = [this, pathChanged](ctkPathLineEdit* widget, void (Node::*set)(std::string)) {
    pathChanged(widget, [=](const QString& path) { this->edit([=](Node* node) { (node->*set)(path.toStdString()); }); });
  };
  file(this->DataListPath, &Node::SetDataListFile);
  file(this->TrainedPath, &Node::SetTrainedModelFile);
  file(this->RecalibrationPath, &Node::SetRecalibrationFile);
  pathChanged(this->ModelPath, [this](const QString& path) {
    this->edit([=](Node* node) {
      node->SetModelFile(path.toStdString());
      // A name for what comes next, so that training from a model needs no second file dialog.
      if (node->GetTrainedModelFile().empty() && QFileInfo(path).isFile())
      {
        node->SetTrainedModelFile(this->logic()->NameNextModel(node->GetModelFile()));
      }
    });
  });
  QObject::connect(this->CasesComboBox, &qMRMLCheckableNodeComboBox::checkedNodesChanged, q, [this] {
    if (!this->Parameters) // cases come and go by themselves, too
    {
      return;
    }
    this->edit([this](Node* node) {
      node->RemoveAllTrainingCases();
      for (vtkMRMLNode* const one : this->CasesComboBox->checkedNodes())
      {
        node->AddTrainingCase(one->GetID());
      }
    });
  });
}

void qSlicerRaterConsensusModuleWidgetPrivate::connectResults()
{
  qSlicerRaterConsensusModuleWidget* const q = this->q_ptr;
  for (const Action& action : this->Actions)
  {
    QObject::connect(action.Button, &QPushButton::clicked, q,
      // A report needs a file first.
      [this, id = action.Id] { id == Logic::ReportAction ? this->report() : this->start(id); });
  }
  QObject::connect(this->SideBySideButton, &QPushButton::clicked, q, [this](bool on) {
    this->Views.ShowSideBySide(this->q_ptr->mrmlScene(), on ? this->Parameters.GetPointer() : nullptr);
    if (!on) // another case may have been chosen meanwhile
    {
      this->showCase(this->Parameters);
    }
    this->q_ptr->updateFromNode();
  });
  QObject::connect(this->ChartButton, &QPushButton::clicked, q, [this](bool on) {
    this->Views.ShowChart(this->q_ptr->mrmlScene(), on ? this->Parameters.GetPointer() : nullptr);
    this->q_ptr->updateFromNode();
  });
  QObject::connect(this->Agreement, &qRcnAgreement::surfacesRequested, q, [this] {
    // Asked for once, distances are measured from now on.
    this->edit([](Node* node) { node->SetSurfaces(true); });
    this->start(Logic::AgreementAction);
  });
  QObject::connect(this->Agreement, &qRcnAgreement::exportRequested, q, [this] { this->exportAgreement(); });
  QObject::connect(this->Agreement, &qRcnAgreement::pairActivated, q,
    [this](int first, int second) { this->Views.ShowRaters(this->Parameters, first, second); });
  QObject::connect(this->Disputes, &qRcnDisputes::regionActivated, q,
    [this](int index) { this->logic()->ShowDispute(this->Parameters, index); });
  QObject::connect(this->Diagram, &qRcnReliabilityDiagram::regionChanged, q, [this](rcn_region region) {
    this->edit([=](Node* node) { node->SetRegion(rcn_region_name(region)); });
    this->start(Logic::EvaluateAction);
  });
  QObject::connect(this->Diagram, &qRcnReliabilityDiagram::binsChanged, q, [this](int bins) {
    this->edit([=](Node* node) { node->SetBins(bins); });
    this->start(Logic::EvaluateAction);
  });
  QObject::connect(this->Diagram, &qRcnReliabilityDiagram::binSelected, q,
    [this](double lower, double upper) { this->Views.ShowBin(this->Parameters, lower, upper); });
  QObject::connect(this->Training, &qRcnTrainingMonitor::keepRequested, q, [this] { this->finishTraining(true); });
  QObject::connect(this->Training, &qRcnTrainingMonitor::discardRequested, q, [this] { this->finishTraining(false); });
}

void qSlicerRaterConsensusModuleWidgetPrivate::connectJob()
{
  qSlicerRaterConsensusModuleWidget* const q = this->q_ptr;
  QObject::connect(this->CancelButton, &QPushButton::clicked, this->Job, &qRcnJob::cancel);
  // What training has got so far is kept, unlike the result of other work.
  QObject::connect(this->Training, &qRcnTrainingMonitor::cancelRequested, this->Job, &qRcnJob::stop);
  QObject::connect(this->Job, &qRcnJob::progressed, q, [this](double fraction, const QString& stage) {
    this->ProgressBar->setValue(static_cast<int>(1000 * fraction));
    this->StatusLabel->setText(this->Job->what() + ": " + stage);
  });
  QObject::connect(this->Job, &qRcnJob::finished, q, [this] {
    this->showRemarks();
    Node* const node = this->runningNode();
    if (this->RunningAction == Logic::TrainAction)
    {
      const auto training = this->logic()->GetResults(node).Training;
      training ? this->Training->finish(*training) : this->Training->clear();
      this->showAnswer();
    }
    else if (this->RunningAction == Logic::FuseAction || this->RunningAction == Logic::PredictAction)
    {
      this->Views.ShowMap(q_ptr->mrmlScene(), node,
        this->RunningAction == Logic::FuseAction ? Node::GetHeatmapRole() : Node::GetProbabilityRole());
    }
    this->showResults();
  });
  QObject::connect(this->Job, &qRcnJob::failed, q, [this](const QString& sentence) {
    this->Notice->showError(sentence);
    if (this->RunningAction == Logic::TrainAction)
    {
      this->Training->fail(sentence);
    }
  });
  QObject::connect(this->Job, &qRcnJob::canceled, q, [this] {
    this->Notice->showRemark(qSlicerRaterConsensusModuleWidget::tr("Canceled. Nothing was changed."));
    if (this->RunningAction == Logic::TrainAction)
    {
      this->Training->clear();
      this->Training->hide();
    }
  });
  QObject::connect(this->Job, &qRcnJob::idle, q, [this] {
    this->RunningAction = -1;
    this->ProgressBar->hide();
    this->CancelButton->hide();
    this->StatusLabel->hide();
    this->q_ptr->updateFromNode();
  });
}

/// What is worth knowing about the work that is done, but not what stands below it anyway.
void qSlicerRaterConsensusModuleWidgetPrivate::showRemarks()
{
  QStringList remarks = QString::fromStdString(this->logic()->GetRemarks()).split('\n');
  const Logic::Results& results = this->logic()->GetResults(this->runningNode());
  if (results.Evaluation && (this->RunningAction == Logic::EvaluateAction || this->RunningAction == Logic::RecalibrateAction))
  {
    std::vector<std::string> below = rcn::RemarksInWords(*results.Evaluation);
    below.push_back(rcn::WorstBinInWords(*results.Evaluation));
    for (const std::string& sentence : below)
    {
      remarks.removeAll(QString::fromStdString(sentence));
    }
  }
  if (results.Training && this->RunningAction == Logic::TrainAction && !remarks.isEmpty())
  {
    remarks.removeLast(); // the verdict
    const QString temperature = QString::fromStdString(results.Training->TemperatureInWords);
    remarks.erase(std::remove_if(remarks.begin(), remarks.end(),
                    [&](const QString& one) { return !temperature.isEmpty() && one.startsWith(temperature); }),
      remarks.end());
  }
  if (this->RunningAction == Logic::ReportAction)
  {
    remarks.prepend(qSlicerRaterConsensusModuleWidget::tr("Saved as %1.").arg(this->ReportPath));
  }
  remarks.removeAll(QString());
  remarks.removeDuplicates();
  if (!remarks.isEmpty())
  {
    this->Notice->showRemark(remarks.join('\n'));
  }
}

/// Scrolls to Keep and Discard, once they have their place.
void qSlicerRaterConsensusModuleWidgetPrivate::showAnswer()
{
  QTimer::singleShot(0, this->Training, [this] {
    auto* const keep = this->Training->findChild<QPushButton*>("keep");
    for (QWidget* parent = this->q_ptr->parentWidget(); keep && keep->isVisible() && parent; parent = parent->parentWidget())
    {
      if (auto* const area = qobject_cast<QScrollArea*>(parent))
      {
        area->ensureWidgetVisible(keep);
      }
    }
  });
}

void qSlicerRaterConsensusModuleWidgetPrivate::showCase(Node* node)
{
  vtkMRMLApplicationLogic* const application = this->logic()->GetMRMLApplicationLogic();
  if (this->Views.ShowCase(this->q_ptr->mrmlScene(), node) && application)
  {
    application->FitSliceToAll();
  }
}

void qSlicerRaterConsensusModuleWidgetPrivate::addSegments()
{
  auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(this->SegmentSelector->currentNode());
  if (!segmentation || !segmentation->GetSegmentation())
  {
    return;
  }
  QStringList ids = this->SegmentSelector->selectedSegmentIDs();
  // Nothing is selected: all of them.
  if (ids.isEmpty())
  {
    ids = this->SegmentSelector->segmentIDs();
  }
  this->edit([&](Node* node) {
    for (const QString& id : ids)
    {
      const std::string key = id.toStdString();
      const vtkSegment* const segment = segmentation->GetSegmentation()->GetSegment(key);
      const char* const name = segment ? const_cast<vtkSegment*>(segment)->GetName() : nullptr;
      node->AddSegment(name ? name : key, segmentation->GetID(), key);
    }
  });
}

void qSlicerRaterConsensusModuleWidgetPrivate::removeRaters(bool all)
{
  this->edit([&](Node* node) {
    if (all)
    {
      node->RemoveAllRaters();
      return;
    }
    // Backwards, because numbers behind a removed one change.
    for (int n = node->GetNumberOfRaters() - 1; n >= 0; --n)
    {
      if (this->RatersTable->selectionModel()->isRowSelected(n, QModelIndex()))
      {
        node->RemoveNthRater(n);
      }
    }
  });
}

void qSlicerRaterConsensusModuleWidgetPrivate::showRaters()
{
  Node* const node = this->Parameters;
  const int raters = node ? node->GetNumberOfRaters() : 0;
  this->RatersTable->setRowCount(raters);
  for (int n = 0; n < raters; ++n)
  {
    vtkMRMLNode* const source = node->GetNthRaterNode(n);
    QString mask = source ? QString::fromUtf8(source->GetName()) : qSlicerRaterConsensusModuleWidget::tr("(removed)");
    auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(source);
    if (segmentation && node->GetNthRaterSegmentID(n).empty())
    {
      mask += ": " + qSlicerRaterConsensusModuleWidget::tr("all segments");
    }
    else if (segmentation)
    {
      vtkSegment* const segment =
        segmentation->GetSegmentation() ? segmentation->GetSegmentation()->GetSegment(node->GetNthRaterSegmentID(n)) : nullptr;
      mask += ": " + (segment ? QString::fromUtf8(segment->GetName()) : qSlicerRaterConsensusModuleWidget::tr("(removed)"));
    }
    else if (source && node->GetNthRaterValue(n))
    {
      mask += QString(": %1").arg(node->GetNthRaterValue(n));
    }
    const QString texts[2] = { QString::fromStdString(node->GetNthRaterName(n)), mask };
    for (int column = 0; column < 2; ++column)
    {
      // Items stay: one of them may be what a person edits right now.
      if (!this->RatersTable->item(n, column))
      {
        auto* const item = new QTableWidgetItem;
        if (column == 1)
        {
          item->setFlags(item->flags() & ~Qt::ItemIsEditable);
        }
        this->RatersTable->setItem(n, column, item);
      }
      this->RatersTable->item(n, column)->setText(texts[column]);
    }
  }
}

void qSlicerRaterConsensusModuleWidgetPrivate::exportAgreement()
{
  const QString path = qRcnStyle::askForFile(this->q_ptr, qSlicerRaterConsensusModuleWidget::tr("Save agreement as"),
    "agreement.csv", qSlicerRaterConsensusModuleWidget::tr("Tables (*.csv)"));
  if (path.isEmpty())
  {
    return;
  }
  try
  {
    rcn::WriteText(path.toStdString(), this->Agreement->csv().toStdString());
  }
  catch (const std::exception& error)
  {
    this->showStatusAt(this->action(Logic::AgreementAction));
    this->Notice->showError(QString::fromUtf8(error.what()));
  }
}

void qSlicerRaterConsensusModuleWidgetPrivate::report()
{
  const QString path = qRcnStyle::askForFile(this->q_ptr, qSlicerRaterConsensusModuleWidget::tr("Save report as"),
    "report.html", qSlicerRaterConsensusModuleWidget::tr("Web page (*.html *.htm)"));
  if (!path.isEmpty())
  {
    this->ReportPath = path;
    this->start(Logic::ReportAction);
  }
}

/// What the model says about itself; its file is read only when it is another one, or was changed.
void qSlicerRaterConsensusModuleWidgetPrivate::showRecord(Node* node)
{
  const QFileInfo file(QString::fromStdString(node ? node->GetModelFile() : ""));
  const QString key = file.isFile() ? file.filePath() + file.lastModified().toString(Qt::ISODateWithMs) : QString();
  if (key != this->RecordKey)
  {
    this->RecordKey = key;
    this->RecordText->setPlainText(
      key.isEmpty() ? QString() : QString::fromStdString(this->logic()->DescribeModel(node->GetModelFile())));
    this->ModelStructures =
      key.isEmpty() ? QString() : QString::fromStdString(this->logic()->GetStructures(node->GetModelFile()));
  }
  this->RecordGroup->setVisible(!key.isEmpty());
}

/// Those that the raters tell apart, with the colors of their segments; otherwise those of the model.
void qSlicerRaterConsensusModuleWidgetPrivate::showStructures(Node* node)
{
  QVector<qRcnStructure> rows;
  for (const rcn::mrml::Views::StructureLook& one : rcn::mrml::Views::Structures(node))
  {
    const QColor color = QColor::fromRgbF(one.Rgb[0], one.Rgb[1], one.Rgb[2]);
    rows.push_back({ QString::fromStdString(one.Name), color, one.Visible });
  }
  if (rows.size() < 2)
  {
    rows.clear();
    for (const QString& name : this->ModelStructures.split('\n'))
    {
      rows.push_back({ name, qRcnStyle::structureColor(static_cast<int>(rows.size()) + 1), false, false });
    }
  }
  const QString chosen = QString::fromStdString(node ? node->GetStructure() : "");
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const qRcnStructure& one) { return one.Name == chosen; });
  this->Structures->setStructures(rows, found == rows.end() ? 1 : static_cast<int>(found - rows.begin()) + 1);
}

void qSlicerRaterConsensusModuleWidgetPrivate::start(int id)
{
  const Action& action = this->action(id);
  const bool anew = id == Logic::TrainAction && this->Parameters && this->Parameters->GetModelFile().empty();
  const QString what = anew ? qSlicerRaterConsensusModuleWidget::tr("Training") : action.What;
  this->showStatusAt(action);
  if (this->Job->isRunning())
  {
    this->Notice->showRemark(
      qSlicerRaterConsensusModuleWidget::tr("Something else is being computed; wait for it or cancel it."));
    return;
  }
  // Reads the scene, here on the GUI thread; what is wrong with the inputs is said before any thread starts.
  Logic::Work work;
  try
  {
    work =
      this->logic()->Prepare(id, this->Parameters, this->ReportPath.toStdString(), this->ReportAnonymousCheckBox->isChecked());
  }
  catch (const std::exception& error)
  {
    this->Notice->showError(QString::fromUtf8(error.what()));
    this->q_ptr->updateFromNode();
    return;
  }
  this->RunningAction = id;
  // By id: a person may choose another case, or remove this one, while it runs.
  this->RunningNode = this->Parameters->GetID();
  const bool training = id == Logic::TrainAction;
  qRcnTrainingMonitor* const shown = this->Training;
  if (training)
  {
    shown->show();
    shown->start(what);
  }
  this->Job->start(what, [work, training, shown](qRcnJob::Monitor& job) -> qRcnJob::Done {
    Logic::Monitor monitor;
    monitor.Progress = [&](double fraction, const char* stage) { return job.report(fraction, QString::fromUtf8(stage)); };
    if (training)
    {
      // Posted: widgets may be touched on the GUI thread only.
      monitor.Training = [&](const rcn::TrainingProgress& now) { job.post([shown, now] { shown->setProgress(now); }); };
      monitor.Epoch = [&](const rcn::TrainingEpoch& epoch) { job.post([shown, epoch] { shown->addEpoch(epoch); }); };
    }
    return work(monitor);
  });
  this->ProgressBar->setValue(0);
  this->StatusLabel->setText(what);
  // Training has a bar and a button of its own.
  for (QWidget* const one : std::initializer_list<QWidget*>{ this->StatusLabel, this->ProgressBar, this->CancelButton })
  {
    one->setVisible(!training);
  }
  this->q_ptr->updateFromNode();
}

void qSlicerRaterConsensusModuleWidgetPrivate::finishTraining(bool keep)
{
  Node* const node = this->runningNode();
  if (node)
  {
    const std::string sentence = keep ? this->logic()->Keep(node) : this->logic()->Discard(node);
    if (!sentence.empty())
    {
      this->Notice->showError(QString::fromStdString(sentence));
      return;
    }
    if (keep)
    {
      this->Notice->showRemark(qSlicerRaterConsensusModuleWidget::tr("The new model was kept and is now in use: %1")
          .arg(QString::fromStdString(node->GetModelFile())));
    }
    else
    {
      this->Notice->showRemark(qSlicerRaterConsensusModuleWidget::tr("The new model was discarded; nothing was changed."));
    }
  }
  this->Training->clear();
  this->Training->hide();
}

void qSlicerRaterConsensusModuleWidgetPrivate::showResults(bool anew)
{
  const Logic::Results& results = this->logic()->GetResults(this->Parameters);
  const QStringList names = this->raters(this->Parameters);
  const rcn::Units units = rcn::mrml::UnitsOf(this->q_ptr->mrmlScene());
  this->Agreement->setVisible(results.Agreement != nullptr);
  this->Disputes->setVisible(results.Agreement != nullptr);
  // Only what is new: a person may be visiting one of the regions.
  if (results.Agreement && (results.Agreement != this->ShownAgreement || anew))
  {
    this->Agreement->setAgreement(*results.Agreement, names, units);
    this->Disputes->setRegions(results.Agreement->Regions, names, results.Agreement->Geometry, units);
  }
  this->ShownAgreement = results.Agreement;
  this->Volumes->setVolumes(results.Volumes ? results.Volumes->In(units) : rcn::PredictedVolumes());
  this->Diagram->setVisible(results.Evaluation != nullptr);
  if (results.Evaluation)
  {
    this->Diagram->setReport(*results.Evaluation,
      results.EvaluationBefore ? qSlicerRaterConsensusModuleWidget::tr("corrected")
                               : qSlicerRaterConsensusModuleWidget::tr("This case"),
      names);
    results.EvaluationBefore
      ? this->Diagram->setSecond(*results.EvaluationBefore, qSlicerRaterConsensusModuleWidget::tr("before"))
      : this->Diagram->clearSecond();
  }
}

// ---- the panel
// ------------------------------------------------------------------------------------------------------

qSlicerRaterConsensusModuleWidget::qSlicerRaterConsensusModuleWidget(QWidget* parent)
  : Superclass(parent), d_ptr(new qSlicerRaterConsensusModuleWidgetPrivate(*this))
{
}

qSlicerRaterConsensusModuleWidget::~qSlicerRaterConsensusModuleWidget()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  if (d->Job)
  {
    d->Job->disconnect(this); // nobody is left to be told
    delete d->Job;            // cancels and waits, while what its work refers to is still there
  }
}

void qSlicerRaterConsensusModuleWidget::setup()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  d->setupUi(this);
  this->Superclass::setup();
  d->Actions = { { Logic::AgreementAction, d->AgreementButton, d->AgreementHint, d->AgreementPlace, tr("Measuring agreement") },
    { Logic::FuseAction, d->FuseButton, d->FuseHint, d->FusePlace, tr("Making a consensus") },
    { Logic::PredictAction, d->PredictButton, d->PredictHint, d->PredictPlace, tr("Applying the model") },
    { Logic::ReportAction, d->ReportButton, d->ReportHint, d->ReportPlace, tr("Writing the report") },
    { Logic::TrainAction, d->TrainButton, d->TrainHint, d->TrainPlace, tr("Retraining") },
    { Logic::EvaluateAction, d->EvaluateButton, d->EvaluateHint, d->EvaluatePlace, tr("Evaluating the probability") },
    { Logic::RecalibrateAction, d->RecalibrateButton, d->RecalibrateHint, d->RecalibratePlace, tr("Fitting a correction") } };
  d->Job = new qRcnJob(this);
  d->makeStatus();
  d->Agreement = new qRcnAgreement;
  d->Disputes = new qRcnDisputes;
  d->AgreementBox->layout()->addWidget(d->Agreement);
  d->AgreementBox->layout()->addWidget(d->Disputes);
  d->Structures = new qRcnStructures;
  d->StructuresBox->layout()->addWidget(d->Structures);
  d->Volumes = new qRcnVolumes;
  d->VolumesBox->layout()->addWidget(d->Volumes);
  d->Diagram = new qRcnReliabilityDiagram;
  d->CalibrationBox->layout()->addWidget(d->Diagram);
  d->Training = new qRcnTrainingMonitor;
  d->TrainingBox->layout()->addWidget(d->Training);
  d->Training->hide();
  d->fillChoices();
  d->connectInputs();
  d->connectSettings();
  d->connectResults();
  d->connectJob();
  d->showResults();
  this->updateFromNode();
}

void qSlicerRaterConsensusModuleWidget::setMRMLScene(vtkMRMLScene* scene)
{
  this->qvtkReconnect(this->mrmlScene(), scene, vtkMRMLScene::StartCloseEvent, this, SLOT(onSceneStartClose()));
  // What is shown may have lost an image or a rater.
  this->qvtkReconnect(this->mrmlScene(), scene, vtkMRMLScene::NodeRemovedEvent, this, SLOT(updateFromNode()));
  this->qvtkReconnect(this->mrmlScene(), scene, vtkMRMLScene::EndBatchProcessEvent, this, SLOT(onSceneChanged()));
  vtkMRMLNode* const before = this->mrmlScene() ? this->mrmlScene()->GetNodeByID("vtkMRMLSelectionNodeSingleton") : nullptr;
  vtkMRMLNode* const selection = scene ? scene->GetNodeByID("vtkMRMLSelectionNodeSingleton") : nullptr;
  this->qvtkReconnect(before, selection, vtkMRMLSelectionNode::UnitModifiedEvent, this, SLOT(onUnitsChanged()));
  Q_D(qSlicerRaterConsensusModuleWidget);
  d->CaseIsChosen = false;
  this->Superclass::setMRMLScene(scene);
}

/// Of the application.
void qSlicerRaterConsensusModuleWidget::onUnitsChanged()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  if (!d->Actions.empty())
  {
    d->showResults(true);
  }
}

/// The logic has asked the work to stop; its result has nowhere to go any more.
void qSlicerRaterConsensusModuleWidget::onSceneStartClose()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  d->Job->cancel();
  d->Views.Forget();
  d->CaseIsChosen = false;
  d->Training->clear(); // its model goes with the scene
  d->Training->hide();
  this->setParameters(nullptr);
}

/// After closing, loading or restoring.
void qSlicerRaterConsensusModuleWidget::onSceneChanged()
{
  if (this->isEntered())
  {
    this->enter();
  }
}

void qSlicerRaterConsensusModuleWidget::enter()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  this->Superclass::enter();
  if (this->mrmlScene() && !this->mrmlScene()->IsBatchProcessing() && !(d->Parameters && d->CaseIsChosen))
  {
    // The case that a person worked on last. A first one is made when something is chosen.
    const int cases = this->mrmlScene()->GetNumberOfNodesByClass("vtkMRMLRaterConsensusNode");
    if (cases > 0)
    {
      vtkMRMLNode* const last = this->mrmlScene()->GetNthNodeByClass(cases - 1, "vtkMRMLRaterConsensusNode");
      d->CaseIsChosen = true;
      d->ParametersComboBox->setCurrentNode(last);
      this->setParameters(last); // also where the box chose it by itself, while the scene was loaded
    }
  }
  this->updateFromNode();
}

void qSlicerRaterConsensusModuleWidget::exit()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  d->logic()->LeaveDispute(d->Parameters);
  this->Superclass::exit();
}

bool qSlicerRaterConsensusModuleWidget::setEditedNode(vtkMRMLNode* node, QString role, QString context)
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  Q_UNUSED(role);
  Q_UNUSED(context);
  if (!Node::SafeDownCast(node))
  {
    return false;
  }
  d->CaseIsChosen = true;
  d->ParametersComboBox->setCurrentNode(node);
  return true;
}

void qSlicerRaterConsensusModuleWidget::setParameters(vtkMRMLNode* node)
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  Node* const parameters = Node::SafeDownCast(node);
  if (parameters != d->Parameters.GetPointer() && d->Parameters && d->logic())
  {
    d->logic()->LeaveDispute(d->Parameters);
  }
  this->qvtkReconnect(d->Parameters, parameters, vtkCommand::ModifiedEvent, this, SLOT(updateFromNode()));
  this->qvtkReconnect(d->Parameters, parameters, vtkMRMLNode::ReferencedNodeModifiedEvent, this, SLOT(updateFromNode()));
  d->Parameters = parameters;
  d->Notice->clear();
  this->updateFromNode();
  if (!this->mrmlScene() || !this->mrmlScene()->IsBatchProcessing())
  {
    d->showCase(parameters);
  }
  d->showResults();
}

/// Made anew only for another number of raters: a list that a person has open stays.
void qSlicerRaterConsensusModuleWidgetPrivate::showReadouts(int raters)
{
  const int own = 3; // the model's, majority, expected
  if (this->ReadoutComboBox->count() == own + raters)
  {
    return;
  }
  this->ReadoutComboBox->clear();
  this->ReadoutComboBox->addItem(qSlicerRaterConsensusModuleWidget::tr("(that of the model)"), "");
  const auto addReadout = [this](rcn_readout readout, int atLeast) {
    this->ReadoutComboBox->addItem(
      QString::fromStdString(rcn::ReadoutLabel(readout, atLeast)), QString::fromStdString(rcn::ReadoutText(readout, atLeast)));
  };
  addReadout(RCN_READOUT_MAJORITY, 0);
  addReadout(RCN_READOUT_EXPECTED, 0);
  for (int k = 1; k <= raters; ++k)
  {
    addReadout(RCN_READOUT_AT_LEAST, k);
  }
}

/// What the node says, in the widgets.
void qSlicerRaterConsensusModuleWidgetPrivate::showSettings(Node* node)
{
  this->ImageComboBox->setCurrentNodeID(node->GetImageNodeID());
  this->ResampleCheckBox->setChecked(node->GetResample());
  this->SurfacesCheckBox->setChecked(node->GetSurfaces());
  Choose(this->MethodComboBox, node->GetMethod());
  ShowNumber(this->SigmaSlider, node->GetSigma());
  this->TieCheckBox->setChecked(node->GetTieBackground());
  ShowPath(this->ModelPath, node->GetModelFile());
  this->showReadouts(node->GetNumberOfRaters());
  Choose(this->ReadoutComboBox, node->GetReadout());
  ShowNumber(this->ThresholdSlider, node->GetThreshold());
  this->CorrectedCheckBox->setChecked(node->GetCorrected());
  for (vtkMRMLNode* const one : this->CasesComboBox->nodes())
  {
    bool chosen = false;
    for (int n = 0; n < node->GetNumberOfTrainingCases(); ++n)
    {
      chosen = chosen || node->GetNthTrainingCase(n) == one;
    }
    this->CasesComboBox->setCheckState(one, chosen ? Qt::Checked : Qt::Unchecked);
  }
  ShowPath(this->DataListPath, node->GetDataListFile());
  ShowPath(this->TrainedPath, node->GetTrainedModelFile());
  ShowNumber(this->MinutesSpinBox, node->GetTrainingMinutes());
  Choose(this->StrategyComboBox, node->GetStrategy());
  Choose(this->NetworkComboBox, node->GetNetwork());
  ShowNumber(this->TransparentSlider, std::round(100 * node->GetTransparentBelow()));
  this->LevelsIn3DCheckBox->setChecked(node->GetLevelsIn3D());
  Choose(this->RecalibrationComboBox, node->GetRecalibrationMethod());
  ShowPath(this->RecalibrationPath, node->GetRecalibrationFile());
  rcn_region region = this->Diagram->region();
  rcn::Parse(region, node->GetRegion());
  this->Diagram->setRegion(region);
  this->Diagram->setBins(node->GetBins());
}

/// A button that cannot be used says why.
void qSlicerRaterConsensusModuleWidgetPrivate::showActions(Node* node)
{
  for (const Action& action : this->Actions)
  {
    QString sentence;
    if (!this->Job->isRunning())
    {
      sentence = QString::fromStdString(this->logic()->Check(action.Id, node));
    }
    else if (action.Id != this->RunningAction) // whose progress is shown
    {
      sentence = qSlicerRaterConsensusModuleWidget::tr("%1 is still running; wait for it, or stop it.").arg(this->Job->what());
    }
    action.Button->setEnabled(sentence.isEmpty() && !this->Job->isRunning());
    action.Hint->setText(sentence);
    action.Hint->setVisible(!sentence.isEmpty());
  }
}

void qSlicerRaterConsensusModuleWidget::updateFromNode()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  if (d->Updating || !d->logic() || d->Actions.empty() || (this->mrmlScene() && this->mrmlScene()->IsBatchProcessing()))
  {
    return;
  }
  d->Updating = true;
  Node* const node = d->Parameters;
  d->showRaters();
  d->showSettings(node ? node : d->Defaults.GetPointer());
  d->showRecord(node);
  d->showStructures(node);
  const std::string method = Chosen(d->MethodComboBox);
  const bool smooths = method == "soft-gaussian" || method == "svls";
  d->SigmaLabel->setVisible(smooths);
  d->SigmaSlider->setVisible(smooths);
  d->TieCheckBox->setVisible(method == "median");
  d->CasesComboBox->setEnabled(node && node->GetDataListFile().empty());
  const bool anew = !node || node->GetModelFile().empty();
  d->AdvancedGroup->setEnabled(anew);
  d->TrainButton->setText((anew ? tr("Train for %1 minutes") : tr("Retrain for %1 minutes")).arg(d->MinutesSpinBox->value()));
  for (QPushButton* const button : { d->RemoveButton, d->RemoveAllButton })
  {
    button->setEnabled(node && node->GetNumberOfRaters() > 0);
  }
  d->AddSegmentsButton->setEnabled(d->SegmentSelector->currentNode());
  d->AddSegmentationButton->setEnabled(d->SegmentSelector->currentNode());
  d->AddLabelMapButton->setEnabled(d->LabelMapComboBox->currentNode());
  d->showActions(node);
  const bool map =
    node && (node->GetNodeReference(Node::GetHeatmapRole()) || node->GetNodeReference(Node::GetProbabilityRole()));
  d->SideBySideButton->setChecked(d->Views.IsSideBySide());
  d->SideBySideButton->setEnabled(map || d->Views.IsSideBySide());
  d->ChartButton->setChecked(d->Views.IsChartShown());
  d->ChartButton->setEnabled((node && node->GetNodeReference(Node::GetChartRole())) || d->Views.IsChartShown());
  d->Updating = false;
}
