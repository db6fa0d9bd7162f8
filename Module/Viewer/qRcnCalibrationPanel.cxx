// SPDX-License-Identifier: Apache-2.0
#include "qRcnCalibrationPanel.h"

#include <cmath>

#include <QComboBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "qRcnReliabilityDiagram.h"
#include "qRcnStyle.h"

namespace
{

QString Digits(double value)
{
  return std::isfinite(value) ? QString::number(value, 'f', 3) : QStringLiteral("–");
}

} // namespace

// From top to bottom in the order of work: the model, the cases, what to correct, what came out. The panel computes nothing: it
// asks the window to evaluate or to recalibrate, and shows what it is given (rcn::Judged).
qRcnCalibrationPanel::qRcnCalibrationPanel(QWidget* parent)
  : QWidget(parent),
    Model(new QComboBox),
    Record(new QLabel),
    Split(new QComboBox),
    Evaluate(new QPushButton(tr("Evaluate"))),
    About(new QLabel),
    Store(new QPushButton(tr("Store in the model"))),
    Diagram(new qRcnReliabilityDiagram),
    Method(new QComboBox),
    Recalibrate(new QPushButton(tr("Recalibrate"))),
    Table(new qRcnTable(this, "structureFigures", tr("Figures of each structure")))
{
  this->Table->setHeadings({ tr("Structure"), tr("MR-ECE"), tr("Brier"), tr("Dice") },
    { tr("Click on one to see its diagram"), tr("Miscalibration, the mean over raters; less is better"),
      tr("Brier score; less is better"), tr("Overlap with the raters; more is better") });
  this->Table->setRowsOnly();
  this->Table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  // The columns share the width, so there is nothing to scroll to.
  this->Table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  this->Table->setVisible(false);
  this->Model->setObjectName("model");
  this->Model->setToolTip(tr("The model in use: for predictions, evaluation and recalibration"));
  this->Record->setObjectName("record");
  this->Record->setWordWrap(true);
  // What a model file says about itself is shown, never read as HTML: anybody can have written it.
  this->Record->setTextFormat(Qt::PlainText);
  this->Record->setVisible(false);
  this->Split->setObjectName("split");
  this->Split->setToolTip(tr("The cases to evaluate on. On its training cases, the figures of a model are too good."));
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
  this->Store->setObjectName("store");
  this->Store->setVisible(false);
  for (QComboBox* box : { this->Model, this->Split, this->Method })
  {
    // As wide as the panel, not as the longest model's name, which would push the views away.
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
  layout->addWidget(this->Store, 0, Qt::AlignLeft);
  layout->addWidget(this->Table);
  layout->addWidget(this->Diagram, 1);
  // activated, not currentIndexChanged: only a person's choice counts, not that the list was filled.
  connect(this->Model, QOverload<int>::of(&QComboBox::activated), this,
    [this](int index) { emit this->modelChosen(this->Model->itemText(index)); });
  connect(this->Table, &qRcnTable::rowChosen, this, [this](int row) {
    if (row >= 0 && row < this->Structures.size())
    {
      emit this->structureChosen(row + 1);
    }
  });
  connect(this->Evaluate, &QPushButton::clicked, this, &qRcnCalibrationPanel::evaluateRequested);
  connect(this->Recalibrate, &QPushButton::clicked, this, &qRcnCalibrationPanel::recalibrateRequested);
  connect(this->Store, &QPushButton::clicked, this, &qRcnCalibrationPanel::storeRequested);
  // The box, not the whole image: easy background would hide what happens near the structure.
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

void qRcnCalibrationPanel::setStorable(bool storable)
{
  this->Storable = storable;
  this->update();
}

void qRcnCalibrationPanel::setRecord(const QString& summary, const QString& all)
{
  this->Record->setText(summary);
  this->Record->setToolTip(all);
  this->Record->setVisible(!summary.isEmpty());
}

// Readout and correction stay empty: the model's own readout, and no correction beside the one it may contain.
rcn::EvaluationChoice qRcnCalibrationPanel::choice() const
{
  rcn::EvaluationChoice choice;
  choice.Model = this->Model->currentText().toStdString();
  choice.Split = this->Split->currentData().toString().toStdString();
  choice.Region = rcn_region_name(this->Diagram->region());
  choice.Bins = this->Diagram->bins();
  return choice;
}

// Of a workspace that was opened. A split that is not known becomes the first one, a region that is not known stays.
void qRcnCalibrationPanel::setChoice(const rcn::EvaluationChoice& choice)
{
  this->Split->setCurrentIndex(qMax(0, this->Split->findData(QString::fromStdString(choice.Split))));
  rcn_region region = this->Diagram->region();
  rcn::Parse(region, choice.Region);
  this->Diagram->setRegion(region);
  this->Diagram->setBins(choice.Bins);
}

rcn_recalib_method qRcnCalibrationPanel::method() const
{
  return static_cast<rcn_recalib_method>(this->Method->currentData().toInt());
}

void qRcnCalibrationPanel::setStructures(const QStringList& names, int shown)
{
  if (names != this->Structures || shown != this->Structure)
  {
    this->Structures = names;
    this->Structure = shown;
    if (!names.isEmpty())
    {
      // The one that several structures share, so that they do not contradict each other.
      this->Method->setCurrentIndex(this->Method->findData(RCN_RECALIB_TEMPERATURE));
    }
    this->Method->setEnabled(names.isEmpty());
    this->showReport();
  }
}

void qRcnCalibrationPanel::showJudged(const rcn::Judged& judged, const QString& model)
{
  this->Judged = judged;
  this->JudgedModel = model;
  this->showReport();
}

// A row for each structure and one for the mean; hidden where there is one structure, whose figures the diagram shows.
void qRcnCalibrationPanel::showTable()
{
  const std::vector<rcn::StructureReport>& each = this->Judged.Structures;
  this->Table->setVisible(!each.empty());
  this->Table->setRowCount(each.empty() ? 0 : static_cast<int>(each.size()) + 1);
  for (int row = 0; row < this->Table->rowCount(); ++row)
  {
    const bool mean = row == static_cast<int>(each.size());
    const rcn::EvaluationReport& report = mean ? this->Judged.Report : each[static_cast<size_t>(row)].Report;
    // No case shows the structure: there is no figure, which is not the same as 0.
    const bool known = mean || report.Cases > 0;
    this->Table->setItem(
      row, 0, new QTableWidgetItem(mean ? tr("Mean") : QString::fromStdString(each[static_cast<size_t>(row)].Name)));
    int column = 1;
    for (const rcn_figure figure : { RCN_MR_ECE, RCN_BRIER, RCN_DICE })
    {
      const double value = known ? report.Figures[figure] : NAN;
      this->Table->setItem(
        row, column++, new qRcnNumberItem(figure == RCN_MR_ECE ? qRcnStyle::percent(value, 2) : Digits(value), value));
    }
  }
  this->Table->setVisibleRows(qMin(this->Table->rowCount(), 8), 8);
  if (!each.empty())
  {
    // The row follows the structure that is shown; the table must not answer that it was chosen.
    const QSignalBlocker blocker(this->Table);
    this->Table->selectRow(this->Structure - 1);
  }
}

// Called for new results and for another structure of the same ones: all structures are judged at once, and choosing one
// computes nothing.
void qRcnCalibrationPanel::showReport()
{
  if (this->JudgedModel.isEmpty())
  {
    return;
  }
  const rcn::Judged& judged = this->Judged;
  QStringList raters;
  for (const std::string& rater : judged.Raters)
  {
    raters << QString::fromStdString(rater);
  }
  this->showTable();
  const QString structure = judged.Structures.empty() ? QString() : this->Structures.value(this->Structure - 1);
  const QString model = structure.isEmpty() ? this->JudgedModel : tr("%1, %2").arg(this->JudgedModel, structure);
  const rcn::EvaluationReport& report = judged.Of(this->Structure);
  const rcn::EvaluationReport& before = judged.BeforeOf(this->Structure);
  if (!structure.isEmpty() && report.Cases == 0)
  {
    this->Diagram->clear();
    this->Diagram->clearSecond();
    this->About->setText(tr("%1: this structure has nothing to evaluate in these cases.").arg(model));
    return;
  }
  this->Diagram->setReport(report, judged.HasBefore ? tr("%1, corrected").arg(model) : model, raters);
  if (judged.HasBefore)
  {
    this->Diagram->setSecond(before, tr("before"));
  }
  else
  {
    this->Diagram->clearSecond();
  }
  const QString cases = qRcnStyle::counted(static_cast<int64_t>(judged.Cases.size()), "case");
  this->About->setText(judged.HasBefore
      ? tr("%1 on the %2 that the correction was fitted to: MR-ECE %3 % before, %4 % after. Evaluate it on other cases.")
          .arg(model, cases)
          .arg(100 * before.Figures[RCN_MR_ECE], 0, 'f', 2)
          .arg(100 * report.Figures[RCN_MR_ECE], 0, 'f', 2)
      : tr("%1 on %2, readout %3.").arg(model, cases, QString::fromStdString(judged.Readout)));
}

void qRcnCalibrationPanel::clear()
{
  this->Judged = {};
  this->JudgedModel.clear();
  this->setStorable(false);
  this->showTable();
  this->Diagram->clear();
  this->Diagram->clearSecond();
  this->About->clear();
}

// One place decides what can be used. The tool tips say what the buttons do, and below it why they cannot be pressed.
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
  this->Store->setToolTip(
    tr("Stores these figures of test cases in the file of the model; its pages and everybody who opens it see them.") +
    missing);
  this->Store->setVisible(this->Storable);
  this->Store->setEnabled(ready);
  this->Model->setEnabled(ready);
  if (this->Model->count() == 0)
  {
    this->About->setText(tr("Train a model or open one to evaluate it."));
  }
}
