// SPDX-License-Identifier: Apache-2.0
#include "qRcnCalibrationPanel.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "qRcnReliabilityDiagram.h"
#include "qRcnStyle.h"

qRcnCalibrationPanel::qRcnCalibrationPanel(QWidget* parent)
  : QWidget(parent),
    Model(new QComboBox),
    Record(new QLabel),
    Split(new QComboBox),
    Evaluate(new QPushButton(tr("Evaluate"))),
    About(new QLabel),
    Diagram(new qRcnReliabilityDiagram),
    Method(new QComboBox),
    Recalibrate(new QPushButton(tr("Recalibrate")))
{
  this->Model->setObjectName("model");
  this->Model->setToolTip(tr("The model in use: for predictions, evaluation and recalibration"));
  this->Record->setObjectName("record");
  this->Record->setWordWrap(true);
  this->Record->setTextFormat(Qt::PlainText);
  this->Record->setVisible(false);
  this->Split->setObjectName("split");
  this->Split->setToolTip(tr("The cases to evaluate on. On cases that it was trained on, a model looks better than it is."));
  this->Split->addItem(tr("test cases"), "test");
  this->Split->addItem(tr("validation cases"), "validation");
  this->Split->addItem(tr("training cases"), "training");
  this->Split->addItem(tr("all cases"), "");
  this->Evaluate->setObjectName("evaluate");
  this->Recalibrate->setObjectName("recalibrate");
  this->Method->setObjectName("method");
  for (const rcn::Choice& correction : rcn::Corrections())
  {
    this->Method->addItem(tr(correction.Label), correction.Value);
  }
  this->Method->setToolTip(tr("How the correction may change the probabilities"));
  this->About->setObjectName("about");
  this->About->setWordWrap(true);
  this->About->setTextFormat(Qt::PlainText);
  for (QComboBox* box : { this->Model, this->Split, this->Method })
  {
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(8);
    box->setAccessibleName(box->toolTip());
  }
  auto* form = new QFormLayout;
  form->setRowWrapPolicy(QFormLayout::WrapLongRows);
  form->addRow(tr("Model"), this->Model);
  form->addRow(this->Record);
  auto* judged = new QHBoxLayout;
  judged->addWidget(this->Split, 1);
  judged->addWidget(this->Evaluate);
  form->addRow(tr("Evaluate on"), judged);
  form->addRow(tr("Correct by"), this->Method);
  form->addRow(this->Recalibrate); // beside the method its name would be cut in a small window
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(this->About);
  layout->addWidget(this->Diagram, 1);
  connect(this->Model, QOverload<int>::of(&QComboBox::activated), this,
    [this](int index) { emit this->modelChosen(this->Model->itemText(index)); });
  connect(this->Evaluate, &QPushButton::clicked, this, &qRcnCalibrationPanel::evaluateRequested);
  connect(this->Recalibrate, &QPushButton::clicked, this, &qRcnCalibrationPanel::recalibrateRequested);
  this->Diagram->setRegion(RCN_REGION_BOX);
  this->update();
}

void qRcnCalibrationPanel::setModels(const QStringList& names, const QString& current)
{
  const QSignalBlocker blocker(this->Model);
  this->Model->clear();
  this->Model->addItems(names);
  this->Model->setCurrentText(current);
  this->update();
}

void qRcnCalibrationPanel::setBusy(bool busy)
{
  this->Busy = busy;
  this->update();
}

void qRcnCalibrationPanel::setRecord(const QString& summary, const QString& all)
{
  this->Record->setText(summary);
  this->Record->setToolTip(all);
  this->Record->setVisible(!summary.isEmpty());
}

rcn::SessionJudgement qRcnCalibrationPanel::judgement() const
{
  rcn::SessionJudgement judgement;
  judgement.Model = this->Model->currentText().toStdString();
  judgement.Split = this->Split->currentData().toString().toStdString();
  judgement.Region = rcn_region_name(this->Diagram->region());
  judgement.Bins = this->Diagram->bins();
  return judgement;
}

void qRcnCalibrationPanel::setJudgement(const rcn::SessionJudgement& judgement)
{
  this->Split->setCurrentIndex(qMax(0, this->Split->findData(QString::fromStdString(judgement.Split))));
  rcn_region region = this->Diagram->region();
  rcn::Parse(region, judgement.Region);
  this->Diagram->setRegion(region);
  this->Diagram->setBins(judgement.Bins);
}

rcn_recalib_method qRcnCalibrationPanel::method() const
{
  return static_cast<rcn_recalib_method>(this->Method->currentData().toInt());
}

void qRcnCalibrationPanel::showJudged(const rcn::Judged& judged, const QString& model)
{
  QStringList raters;
  for (const std::string& rater : judged.Raters)
  {
    raters << QString::fromStdString(rater);
  }
  this->Diagram->setReport(judged.Report, judged.HasBefore ? tr("%1, corrected").arg(model) : model, raters);
  if (judged.HasBefore)
  {
    this->Diagram->setSecond(judged.Before, tr("before"));
  }
  else
  {
    this->Diagram->clearSecond();
  }
  const QString cases = qRcnStyle::counted(static_cast<int64_t>(judged.Cases.size()), "case");
  this->About->setText(judged.HasBefore
      ? tr("%1 on the %2 that the correction was fitted to: MR-ECE %3 % before, %4 % after. Evaluate it on other cases.")
          .arg(model, cases)
          .arg(100 * judged.Before.Figures[RCN_MR_ECE], 0, 'f', 2)
          .arg(100 * judged.Report.Figures[RCN_MR_ECE], 0, 'f', 2)
      : tr("%1 on %2, readout %3.").arg(model, cases, QString::fromStdString(judged.Readout)));
}

void qRcnCalibrationPanel::clear()
{
  this->Diagram->clear();
  this->Diagram->clearSecond();
  this->About->clear();
}

void qRcnCalibrationPanel::update()
{
  const bool ready = !this->Busy && this->Model->count() > 0;
  const QString missing = this->Model->count() == 0 ? tr("\nTrain a model or open one first.")
    : this->Busy                                    ? tr("\nWait until the current work is done.")
                                                    : QString();
  this->Evaluate->setToolTip(tr("Predicts cases that have no prediction yet, then compares with all raters.") + missing);
  this->Recalibrate->setToolTip(
    tr("Fits a correction on the validation cases and stores it in a copy of the model.") + missing);
  this->Evaluate->setEnabled(ready);
  this->Recalibrate->setEnabled(ready);
  this->Model->setEnabled(ready);
  if (this->Model->count() == 0)
  {
    this->About->setText(tr("Train a model or open one to evaluate it."));
  }
}
