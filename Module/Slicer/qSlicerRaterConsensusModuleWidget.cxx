#include "qSlicerRaterConsensusModuleWidget.h"

#include <vector>

#include <QFile>
#include <QHeaderView>
#include <QStringList>

#include <qSlicerApplication.h>
#include <qSlicerLayoutManager.h>
#include <vtkMRMLApplicationLogic.h>
#include <vtkMRMLLabelMapVolumeNode.h>
#include <vtkMRMLLayoutNode.h>
#include <vtkMRMLScene.h>
#include <vtkMRMLSegmentationNode.h>
#include <vtkMRMLSliceCompositeNode.h>
#include <vtkMRMLVolumeNode.h>
#include <vtkSegment.h>
#include <vtkSegmentation.h>

#include "qRcnAgreement.h"
#include "qRcnDisputes.h"
#include "qRcnJob.h"
#include "qRcnNotice.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnTrainingMonitor.h"
#include "rcnTraining.h"
#include "rcnWorkspace.h"
#include "ui_qSlicerRaterConsensusModuleWidget.h"
#include "vtkMRMLRaterConsensusNode.h"
#include "vtkSlicerRaterConsensusLogic.h"

using Logic = vtkSlicerRaterConsensusLogic;

class qSlicerRaterConsensusModuleWidgetPrivate : public Ui_qSlicerRaterConsensusModuleWidget
{
public:
  struct Action
  {
    int Id;
    QPushButton* Button;
    QLabel* Hint;
    QString What;
  };
  std::vector<Action> Actions;
  vtkMRMLRaterConsensusNode* Node = nullptr; // cleared when it leaves the scene
  bool Updating = false;
  int RunningAction = -1;
  qRcnJob* Job = nullptr;
  qRcnNotice* Notice = nullptr;
  qRcnAgreement* Agreement = nullptr;
  qRcnDisputes* Disputes = nullptr;
  qRcnReliabilityDiagram* Diagram = nullptr;
  qRcnTrainingMonitor* Training = nullptr;

  QStringList raters() const
  {
    QStringList names;
    for (int n = 0; this->Node && n < this->Node->GetNumberOfRaters(); ++n)
    {
      names << QString::fromStdString(this->Node->GetNthRaterName(n));
    }
    return names;
  }
};

qSlicerRaterConsensusModuleWidget::qSlicerRaterConsensusModuleWidget(QWidget* parent)
  : Superclass(parent), d_ptr(new qSlicerRaterConsensusModuleWidgetPrivate)
{
}

qSlicerRaterConsensusModuleWidget::~qSlicerRaterConsensusModuleWidget()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  delete d->Job; // cancels and waits, while what its work refers to is still there
}

void qSlicerRaterConsensusModuleWidget::setup()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  d->setupUi(this);
  this->Superclass::setup();

  d->Job = new qRcnJob(this);
  d->Notice = new qRcnNotice(this);
  d->NoticeBox->layout()->addWidget(d->Notice);
  d->Agreement = new qRcnAgreement(this);
  d->Disputes = new qRcnDisputes(this);
  d->AgreementBox->layout()->addWidget(d->Agreement);
  d->AgreementBox->layout()->addWidget(d->Disputes);
  d->Diagram = new qRcnReliabilityDiagram(this);
  d->CalibrationBox->layout()->addWidget(d->Diagram);
  d->Training = new qRcnTrainingMonitor(this);
  d->TrainingBox->layout()->addWidget(d->Training);
  d->RatersTable->setHorizontalHeaderLabels({ tr("Rater"), tr("Mask") });
  d->RatersTable->horizontalHeader()->setStretchLastSection(true);
  for (QWidget* const shown : { static_cast<QWidget*>(d->Agreement), static_cast<QWidget*>(d->Disputes),
         static_cast<QWidget*>(d->Diagram), static_cast<QWidget*>(d->Training), static_cast<QWidget*>(d->ProgressBar),
         static_cast<QWidget*>(d->CancelButton) })
  {
    shown->hide();
  }
  const std::pair<const char*, QString> methods[] = { { "orc", tr("How many raters (levels)") },
    { "soft", tr("Share of raters") }, { "soft-gaussian", tr("Share of raters, smoothed") }, { "median", tr("Majority") },
    { "staple", tr("STAPLE") }, { "simple", tr("SIMPLE") }, { "svls", tr("Smoothed at the edges (SVLS)") },
    { "random", tr("One rater, drawn at random") } };
  for (const auto& method : methods)
  {
    d->MethodComboBox->addItem(method.second, method.first);
  }
  const std::pair<const char*, QString> readouts[] = { { "", tr("what the model was made for") },
    { "majority", tr("a majority of raters marks it") }, { "expected", tr("a rater marks it (expected share)") },
    { "at-least:1", tr("at least one rater marks it") } };
  for (const auto& readout : readouts)
  {
    d->ReadoutComboBox->addItem(readout.second, readout.first);
  }
  for (const char* const method : { "temperature", "platt", "beta", "isotonic" })
  {
    d->RecalibrationComboBox->addItem(method, method);
  }

  d->Actions = { { Logic::AgreementAction, d->AgreementButton, d->AgreementHint, tr("Measuring agreement") },
    { Logic::FuseAction, d->FuseButton, d->FuseHint, tr("Making a consensus") },
    { Logic::PredictAction, d->PredictButton, d->PredictHint, tr("Applying the model") },
    { Logic::TrainAction, d->TrainButton, d->TrainHint, tr("Retraining") },
    { Logic::EvaluateAction, d->EvaluateButton, d->EvaluateHint, tr("Judging the probability") },
    { Logic::RecalibrateAction, d->RecalibrateButton, d->RecalibrateHint, tr("Fitting a correction") } };
  for (const auto& action : d->Actions)
  {
    connect(action.Button, &QPushButton::clicked, this, [this, id = action.Id, what = action.What] { this->start(id, what); });
  }

  connect(d->ParametersComboBox, SIGNAL(currentNodeChanged(vtkMRMLNode*)), this, SLOT(setParameters(vtkMRMLNode*)));
  connect(d->ImageComboBox, SIGNAL(currentNodeChanged(vtkMRMLNode*)), this, SLOT(updateNode()));
  connect(d->AddButton, SIGNAL(clicked()), this, SLOT(addRaters()));
  connect(d->RemoveButton, &QPushButton::clicked, this, [d] {
    if (d->Node)
    {
      d->Node->RemoveAllRaters();
    }
  });
  connect(d->RatersTable, SIGNAL(itemChanged(QTableWidgetItem*)), this, SLOT(updateNode()));
  for (QAbstractButton* const box : { static_cast<QAbstractButton*>(d->ResampleCheckBox),
         static_cast<QAbstractButton*>(d->SurfacesCheckBox), static_cast<QAbstractButton*>(d->TieCheckBox) })
  {
    connect(box, SIGNAL(toggled(bool)), this, SLOT(updateNode()));
  }
  for (QComboBox* const box : { d->MethodComboBox, d->ReadoutComboBox, d->RecalibrationComboBox })
  {
    connect(box, SIGNAL(currentIndexChanged(int)), this, SLOT(updateNode()));
  }
  for (ctkSliderWidget* const slider : { d->SigmaSlider, d->ThresholdSlider })
  {
    connect(slider, SIGNAL(valueChanged(double)), this, SLOT(updateNode()));
  }
  connect(d->MinutesSpinBox, SIGNAL(valueChanged(double)), this, SLOT(updateNode()));
  for (ctkPathLineEdit* const path : { d->ModelPath, d->DataListPath, d->TrainedPath, d->RecalibrationPath })
  {
    connect(path, SIGNAL(currentPathChanged(QString)), this, SLOT(updateNode()));
  }
  connect(d->SideBySideButton, SIGNAL(clicked()), this, SLOT(showSideBySide()));
  connect(d->CancelButton, &QPushButton::clicked, d->Job, &qRcnJob::cancel);
  connect(d->Training, &qRcnTrainingMonitor::cancelRequested, d->Job, &qRcnJob::cancel);
  connect(d->Training, &qRcnTrainingMonitor::keepRequested, this, [this, d] {
    if (d->Node)
    {
      d->Node->SetModelFile(d->Node->GetTrainedModelFile());
      d->Training->clear();
      d->Training->hide();
    }
  });
  connect(d->Training, &qRcnTrainingMonitor::discardRequested, this, [d] {
    if (d->Node)
    {
      QFile::remove(QString::fromStdString(d->Node->GetTrainedModelFile()));
    }
    d->Training->clear();
    d->Training->hide();
  });
  connect(d->Disputes, &qRcnDisputes::regionActivated, this, [this, d](int index) {
    Logic::SafeDownCast(this->logic())->ShowDispute(d->Node, index);
  });
  connect(d->Diagram, &qRcnReliabilityDiagram::regionChanged, this, [this, d](rcn_region region) {
    if (d->Node)
    {
      d->Node->SetRegion(rcn_region_name(region));
      this->start(Logic::EvaluateAction, tr("Judging the probability"));
    }
  });
  connect(d->Diagram, &qRcnReliabilityDiagram::binsChanged, this, [this, d](int bins) {
    if (d->Node)
    {
      d->Node->SetBins(bins);
      this->start(Logic::EvaluateAction, tr("Judging the probability"));
    }
  });

  connect(d->Job, &qRcnJob::progressed, this, [d](double fraction, const QString& stage) {
    d->ProgressBar->setValue(static_cast<int>(1000 * fraction));
    d->StatusLabel->setText(d->Job->what() + ": " + stage);
  });
  connect(d->Job, &qRcnJob::finished, this, [this, d] {
    const QString remarks = QString::fromStdString(Logic::SafeDownCast(this->logic())->GetRemarks());
    if (!remarks.isEmpty())
    {
      d->Notice->showRemark(remarks);
    }
    this->showResults();
  });
  connect(d->Job, &qRcnJob::failed, this, [d](const QString& sentence) {
    d->Notice->showError(sentence);
    if (d->RunningAction == Logic::TrainAction)
    {
      d->Training->fail(sentence);
    }
  });
  connect(d->Job, &qRcnJob::idle, this, [this, d] {
    d->RunningAction = -1;
    d->ProgressBar->hide();
    d->CancelButton->hide();
    d->StatusLabel->clear();
    this->updateFromNode();
  });
  this->updateFromNode();
}

void qSlicerRaterConsensusModuleWidget::setMRMLScene(vtkMRMLScene* scene)
{
  this->qvtkReconnect(this->mrmlScene(), scene, vtkMRMLScene::StartCloseEvent, this, SLOT(onSceneStartClose()));
  this->Superclass::setMRMLScene(scene);
}

/// The logic has asked the work to stop; its result has nowhere to go any more.
void qSlicerRaterConsensusModuleWidget::onSceneStartClose()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  d->Job->cancel();
  this->setParameters(nullptr);
}

void qSlicerRaterConsensusModuleWidget::enter()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  this->Superclass::enter();
  if (this->mrmlScene() && !d->ParametersComboBox->currentNode() &&
    !this->mrmlScene()->GetFirstNodeByClass("vtkMRMLRaterConsensusNode"))
  {
    d->ParametersComboBox->addNode();
  }
  this->updateFromNode();
}

void qSlicerRaterConsensusModuleWidget::setParameters(vtkMRMLNode* node)
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  auto* const parameters = vtkMRMLRaterConsensusNode::SafeDownCast(node);
  this->qvtkReconnect(d->Node, parameters, vtkCommand::ModifiedEvent, this, SLOT(updateFromNode()));
  d->Node = parameters;
  d->Notice->clear();
  this->updateFromNode();
  this->showResults();
}

void qSlicerRaterConsensusModuleWidget::updateFromNode()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  auto* const logic = Logic::SafeDownCast(this->logic());
  if (d->Updating || !logic)
  {
    return;
  }
  d->Updating = true;
  if (vtkMRMLRaterConsensusNode* const node = d->Node)
  {
    d->ImageComboBox->setCurrentNodeID(node->GetImageNodeID());
    d->RatersTable->setRowCount(node->GetNumberOfRaters());
    for (int n = 0; n < node->GetNumberOfRaters(); ++n)
    {
      vtkMRMLNode* const source = node->GetNthRaterNode(n);
      d->RatersTable->setItem(n, 0, new QTableWidgetItem(QString::fromStdString(node->GetNthRaterName(n))));
      auto* const mask = new QTableWidgetItem(source ? QString::fromUtf8(source->GetName()) : tr("(no longer there)"));
      mask->setFlags(mask->flags() & ~Qt::ItemIsEditable);
      d->RatersTable->setItem(n, 1, mask);
    }
    d->ResampleCheckBox->setChecked(node->GetResample());
    d->SurfacesCheckBox->setChecked(node->GetSurfaces());
    d->MethodComboBox->setCurrentIndex(d->MethodComboBox->findData(QString::fromStdString(node->GetMethod())));
    d->SigmaSlider->setValue(node->GetSigma());
    d->TieCheckBox->setChecked(node->GetTieBackground());
    d->ModelPath->setCurrentPath(QString::fromStdString(node->GetModelFile()));
    d->ReadoutComboBox->setCurrentIndex(d->ReadoutComboBox->findData(QString::fromStdString(node->GetReadout())));
    d->ThresholdSlider->setValue(node->GetThreshold());
    d->DataListPath->setCurrentPath(QString::fromStdString(node->GetDataListFile()));
    d->TrainedPath->setCurrentPath(QString::fromStdString(node->GetTrainedModelFile()));
    d->MinutesSpinBox->setValue(node->GetTrainingMinutes());
    d->RecalibrationComboBox->setCurrentIndex(
      d->RecalibrationComboBox->findData(QString::fromStdString(node->GetRecalibrationMethod())));
    d->RecalibrationPath->setCurrentPath(QString::fromStdString(node->GetRecalibrationFile()));
  }
  else
  {
    d->RatersTable->setRowCount(0);
  }
  d->TrainButton->setText(tr("Retrain for %1 minutes").arg(d->MinutesSpinBox->value()));
  // A button that cannot be used says why.
  for (const auto& action : d->Actions)
  {
    const QString sentence = QString::fromStdString(logic->Check(action.Id, d->Node));
    action.Button->setEnabled(sentence.isEmpty() && !d->Job->isRunning());
    action.Hint->setText(sentence);
    action.Hint->setVisible(!sentence.isEmpty());
  }
  d->SideBySideButton->setEnabled(
    d->Node && d->Node->GetNodeReference(vtkMRMLRaterConsensusNode::GetHeatmapRole()));
  d->Updating = false;
}

void qSlicerRaterConsensusModuleWidget::updateNode()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  vtkMRMLRaterConsensusNode* const node = d->Node;
  if (d->Updating || !node)
  {
    return;
  }
  {
    const MRMLNodeModifyBlocker blocker(node);
    node->SetImageNodeID(d->ImageComboBox->currentNodeID().toUtf8().constData());
    for (int n = 0; n < node->GetNumberOfRaters() && n < d->RatersTable->rowCount(); ++n)
    {
      if (const QTableWidgetItem* const item = d->RatersTable->item(n, 0))
      {
        node->SetNthRaterName(n, item->text().toStdString());
      }
    }
    node->SetResample(d->ResampleCheckBox->isChecked());
    node->SetSurfaces(d->SurfacesCheckBox->isChecked());
    node->SetMethod(d->MethodComboBox->currentData().toString().toStdString());
    node->SetSigma(d->SigmaSlider->value());
    node->SetTieBackground(d->TieCheckBox->isChecked());
    node->SetModelFile(d->ModelPath->currentPath().toStdString());
    node->SetReadout(d->ReadoutComboBox->currentData().toString().toStdString());
    node->SetThreshold(d->ThresholdSlider->value());
    node->SetDataListFile(d->DataListPath->currentPath().toStdString());
    node->SetTrainedModelFile(d->TrainedPath->currentPath().toStdString());
    node->SetTrainingMinutes(d->MinutesSpinBox->value());
    node->SetRecalibrationMethod(d->RecalibrationComboBox->currentData().toString().toStdString());
    node->SetRecalibrationFile(d->RecalibrationPath->currentPath().toStdString());
  }
  this->updateFromNode();
}

void qSlicerRaterConsensusModuleWidget::addRaters()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  vtkMRMLNode* const masks = d->MasksComboBox->currentNode();
  if (!d->Node || !masks)
  {
    d->Notice->showRemark(tr("Choose a segmentation or a label map first."));
    return;
  }
  const MRMLNodeModifyBlocker blocker(d->Node);
  if (auto* const segmentation = vtkMRMLSegmentationNode::SafeDownCast(masks))
  {
    std::vector<std::string> ids;
    segmentation->GetSegmentation()->GetSegmentIDs(ids);
    for (const std::string& id : ids)
    {
      const char* const name = segmentation->GetSegmentation()->GetSegment(id)->GetName();
      d->Node->AddSegment(name ? name : id, segmentation->GetID(), id);
    }
  }
  else
  {
    d->Node->AddLabelMap(masks->GetName() ? masks->GetName() : masks->GetID(), masks->GetID(), 0);
  }
}

/// Asked for, never by itself: image with consensus over it beside the image alone.
void qSlicerRaterConsensusModuleWidget::showSideBySide()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  qSlicerLayoutManager* const manager = qSlicerApplication::application()->layoutManager();
  if (!manager || !d->Node || !d->Node->GetImageNodeID())
  {
    return;
  }
  manager->setLayout(vtkMRMLLayoutNode::SlicerLayoutSideBySideView);
  vtkMRMLNode* const map = d->Node->GetNodeReference(vtkMRMLRaterConsensusNode::GetHeatmapRole());
  std::vector<vtkMRMLNode*> composites;
  this->mrmlScene()->GetNodesByClass("vtkMRMLSliceCompositeNode", composites);
  for (vtkMRMLNode* const one : composites)
  {
    auto* const composite = vtkMRMLSliceCompositeNode::SafeDownCast(one);
    composite->SetBackgroundVolumeID(d->Node->GetImageNodeID());
    const bool first = composite->GetLayoutName() && std::string(composite->GetLayoutName()) == "Red";
    composite->SetForegroundVolumeID(map && first ? map->GetID() : nullptr);
    composite->SetForegroundOpacity(0.6);
  }
}

void qSlicerRaterConsensusModuleWidget::start(int action, const QString& what)
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  d->Notice->clear();
  Logic::Work work;
  try
  {
    work = Logic::SafeDownCast(this->logic())->Prepare(action, d->Node);
  }
  catch (const std::exception& error)
  {
    d->Notice->showError(QString::fromUtf8(error.what()));
    return;
  }
  const bool training = action == Logic::TrainAction;
  qRcnTrainingMonitor* const shown = d->Training;
  const bool begun = d->Job->start(what, [work, training, shown](qRcnJob::Monitor& job) -> qRcnJob::Done {
    Logic::Monitor monitor;
    monitor.Progress = [&](double fraction, const char* stage) { return job.report(fraction, QString::fromUtf8(stage)); };
    if (training)
    {
      monitor.Training = [&](const rcn::TrainingProgress& now) { job.post([shown, now] { shown->setProgress(now); }); };
      monitor.Epoch = [&](const rcn::TrainingEpoch& epoch) { job.post([shown, epoch] { shown->addEpoch(epoch); }); };
    }
    return work(monitor);
  });
  if (!begun)
  {
    d->Notice->showRemark(tr("Something else is being computed; wait for it or cancel it."));
    return;
  }
  d->RunningAction = action;
  if (training)
  {
    d->Training->show();
    d->Training->start(what);
  }
  d->ProgressBar->setValue(0);
  d->ProgressBar->show();
  d->CancelButton->show();
  this->updateFromNode();
}

void qSlicerRaterConsensusModuleWidget::showResults()
{
  Q_D(qSlicerRaterConsensusModuleWidget);
  const Logic::Results& results = Logic::SafeDownCast(this->logic())->GetResults(d->Node);
  d->Agreement->setVisible(results.Agreement != nullptr);
  d->Disputes->setVisible(results.Agreement != nullptr);
  if (results.Agreement)
  {
    d->Agreement->setAgreement(*results.Agreement, d->raters());
    d->Disputes->setRegions(results.Agreement->Regions, d->raters());
  }
  d->Diagram->setVisible(results.Evaluation != nullptr);
  if (results.Evaluation)
  {
    d->Diagram->setReport(*results.Evaluation, tr("This case"), d->raters());
  }
  if (d->RunningAction == Logic::TrainAction && results.Training)
  {
    d->Training->finish(*results.Training);
  }
}
