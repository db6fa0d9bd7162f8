// SPDX-License-Identifier: Apache-2.0
#include "qRcnTrainingPanel.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "qRcnStyle.h"
#include "qRcnTrainingMonitor.h"

// A form of four choices over the monitor of the training that runs. The panel trains nothing itself: it asks the window
// (trainRequested), which fills options from here (apply) and hands them to qRcnTasks.
qRcnTrainingPanel::qRcnTrainingPanel(QWidget* parent)
  : QWidget(parent),
    From(new QComboBox),
    Strategy(new QComboBox),
    Network(new QComboBox),
    Minutes(new QDoubleSpinBox),
    Cases(new QLabel),
    Train(new QPushButton(tr("Train"))),
    Monitor(new qRcnTrainingMonitor)
{
  this->From->setObjectName("from");
  this->From->setToolTip(tr("Continue from a model with the cases that are open, or train a new one"));
  this->Strategy->setObjectName("strategy");
  this->Strategy->setToolTip(tr("What the model learns from the raters"));
  this->Network->setObjectName("network");
  this->Network->setToolTip(tr("U-Net is small and fast; FPN learns more and takes longer; U-Net, 3-D is for volumes"));
  this->Minutes->setObjectName("minutes");
  // Three seconds are enough for a test of the window; a day is more than a desktop is left alone for.
  this->Minutes->setRange(0.05, 24 * 60);
  this->Minutes->setDecimals(1);
  this->Minutes->setValue(5);
  this->Minutes->setSuffix(tr(" min"));
  this->Minutes->setToolTip(tr("Training ends when this time is up"));
  this->Train->setObjectName("train");
  this->Cases->setObjectName("cases");
  this->Cases->setWordWrap(true);
  this->fillStrategies();
  for (const rcn::Choice& network : rcn::Networks())
  {
    this->Network->addItem(tr(network.Label), network.Value);
  }
  auto* form = new QFormLayout;
  form->setRowWrapPolicy(QFormLayout::WrapLongRows);
  form->addRow(tr("Start from"), this->From);
  form->addRow(tr("Strategy"), this->Strategy);
  form->addRow(tr("Network"), this->Network);
  form->addRow(tr("Time"), this->Minutes);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(this->Cases);
  layout->addWidget(this->Train);
  layout->addWidget(this->Monitor, 1);
  // Before the signals are connected, so that nobody hears of what is only being set up.
  this->setModels({});
  connect(this->From, QOverload<int>::of(&QComboBox::currentIndexChanged), this, &qRcnTrainingPanel::update);
  connect(this->Train, &QPushButton::clicked, this, &qRcnTrainingPanel::trainRequested);
  this->update();
}

// Models come and go while a person chooses: the choice stays where its name still exists, and nobody is told of a change that
// no person made.
void qRcnTrainingPanel::setModels(const QStringList& names)
{
  const QString before = this->startFrom();
  const QSignalBlocker blocker(this->From);
  this->From->clear();
  this->From->addItem(tr("a new model"), QString());
  for (const QString& name : names)
  {
    this->From->addItem(name, name);
  }
  this->From->setCurrentIndex(qMax(0, this->From->findData(before)));
  this->update();
}

// Without cases for validation the training sets some aside itself; the words say so, because fewer cases then train than are
// open.
void qRcnTrainingPanel::setCases(int training, int validation)
{
  this->TrainingCases = training;
  this->Cases->setText(training == 0 ? tr("Open cases with raters' masks to train on.")
      : validation > 0 ? tr("%1 for training, %2 for validation.").arg(qRcnStyle::counted(training, "case")).arg(validation)
                       : tr("%1; some of them will be set aside for validation.").arg(qRcnStyle::counted(training, "case")));
  this->update();
}

void qRcnTrainingPanel::setBusy(bool busy)
{
  this->Busy = busy;
  this->update();
}

void qRcnTrainingPanel::setSeveralStructures(bool several)
{
  // Only when it changes: filling the list anew forgets which way was chosen.
  if (several != this->Several)
  {
    this->Several = several;
    this->fillStrategies();
  }
}

void qRcnTrainingPanel::fillStrategies()
{
  this->Strategy->clear();
  for (const rcn::Choice& strategy : this->Several ? rcn::StructureStrategies() : rcn::Strategies())
  {
    this->Strategy->addItem(tr(strategy.Label), strategy.Name);
    this->Strategy->setItemData(this->Strategy->count() - 1, tr(strategy.Meaning), Qt::ToolTipRole);
  }
}

QString qRcnTrainingPanel::startFrom() const
{
  return this->From->currentData().toString();
}

void qRcnTrainingPanel::setStartFrom(const QString& model)
{
  this->From->setCurrentIndex(qMax(0, this->From->findData(model)));
}

// A model that is continued keeps its own network: only a new one takes the choice from here.
void qRcnTrainingPanel::apply(rcn::TrainingOptions& options) const
{
  options.Minutes = this->Minutes->value();
  options.Strategy = this->Strategy->currentData().toString().toStdString();
  if (this->startFrom().isEmpty())
  {
    options.HasNet = true;
    options.Net.arch = static_cast<rcn_arch>(this->Network->currentData().toInt());
  }
}

// One place decides what can be used, from what is known: whoever changes a fact calls it. A button that cannot be pressed says
// why in its tool tip. The list of networks is empty in a build without them.
void qRcnTrainingPanel::update()
{
  const bool anew = this->startFrom().isEmpty();
  this->Network->setEnabled(anew && !this->Busy);
  this->From->setEnabled(!this->Busy);
  this->Strategy->setEnabled(!this->Busy);
  this->Minutes->setEnabled(!this->Busy);
  this->Train->setText(anew ? tr("Train") : tr("Retrain"));
  this->Train->setEnabled(!this->Busy && this->TrainingCases > 0 && this->Network->count() > 0);
  this->Train->setToolTip(this->Network->count() == 0 ? tr("This program was built without networks.")
      : this->Busy                                    ? tr("Wait until training is done, or cancel it.")
      : this->TrainingCases == 0                      ? tr("Open cases with raters' masks to train on.")
                                                      : QString());
}
