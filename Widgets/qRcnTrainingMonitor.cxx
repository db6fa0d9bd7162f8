// SPDX-License-Identifier: Apache-2.0
#include "qRcnTrainingMonitor.h"

#include <algorithm>
#include <cmath>

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTabWidget>
#include <QVBoxLayout>

#include "qRcnChart.h"
#include "qRcnReliabilityDiagram.h"
#include "qRcnStyle.h"

namespace
{

/// So many points of the running loss are kept; then every second one goes.
const int MostSteps = 1000;

QString Memory(double megabytes)
{
  return megabytes >= 1000 ? qRcnTrainingMonitor::tr("%1 GB").arg(megabytes / 1000, 0, 'f', 1)
                           : qRcnTrainingMonitor::tr("%1 MB").arg(megabytes, 0, 'f', 0);
}

/// Stages come from the core, in small letters; before the first epoch they stand at the beginning of a line.
QString StageInWords(const rcn::TrainingProgress& progress)
{
  const QString stage = QString::fromUtf8(progress.Stage);
  return progress.Epoch > 0 && progress.Epochs > 0
    ? qRcnTrainingMonitor::tr("Epoch %1 of %2, %3").arg(progress.Epoch).arg(progress.Epochs).arg(stage)
    : stage.left(1).toUpper() + stage.mid(1);
}

} // namespace

class qRcnTrainingMonitorPrivate
{
public:
  /// What can be seen and pressed follows from the state alone.
  void setState(qRcnTrainingMonitor::State state)
  {
    this->State = state;
    const bool busy = state == qRcnTrainingMonitor::Running || state == qRcnTrainingMonitor::Canceling;
    this->Bar->setVisible(busy);
    this->Cancel->setVisible(busy);
    this->showCourse(busy ? this->Course->text() : QString());
    this->Cancel->setEnabled(state == qRcnTrainingMonitor::Running);
    this->Verdict->setVisible(state == qRcnTrainingMonitor::Finished);
    this->Keep->setVisible(state == qRcnTrainingMonitor::Finished);
    this->Discard->setVisible(state == qRcnTrainingMonitor::Finished);
    this->Tabs->setTabEnabled(1, state == qRcnTrainingMonitor::Finished);
    this->Tabs->setVisible(state != qRcnTrainingMonitor::Idle);
    this->Tabs->setCurrentIndex(state == qRcnTrainingMonitor::Finished ? 1 : 0);
  }

  void showCourse(const QString& sentence)
  {
    this->Course->setText(sentence);
    this->Course->setVisible(!sentence.isEmpty());
  }

  void refreshStatus()
  {
    QStringList parts;
    if (this->State == qRcnTrainingMonitor::Canceling)
    {
      parts << qRcnTrainingMonitor::tr("Stopping after this step; the best model is kept");
    }
    else if (!this->Stage.isEmpty())
    {
      parts << this->Stage;
      if (std::isfinite(this->SecondsLeft))
      {
        parts << (this->SecondsLeft >= 60 ? qRcnTrainingMonitor::tr("about %1 left") : qRcnTrainingMonitor::tr("%1 left"))
                   .arg(qRcnStyle::duration(this->SecondsLeft));
      }
    }
    if (this->Megabytes > 0)
    {
      parts << qRcnTrainingMonitor::tr("%1 of memory").arg(Memory(this->Megabytes));
    }
    this->Status->setText(parts.join(QStringLiteral("  ·  ")));
  }

  /// All curves anew: there are at most a thousand points, and it happens some twenty times a second.
  void refreshCurves()
  {
    const QPalette& palette = this->Owner->palette();
    qRcnChart::Axis x, y;
    x.Title = qRcnTrainingMonitor::tr("Epoch");
    x.Whole = true;
    x.High = std::max(this->EpochCount, 1);
    qRcnCurves::Curve steps{ qRcnTrainingMonitor::tr("within an epoch"),
      qRcnStyle::mixed(palette.color(QPalette::Base), qRcnStyle::accent(palette), 0.45), this->Steps, false };
    qRcnCurves::Curve loss{ qRcnTrainingMonitor::tr("loss"), qRcnStyle::accent(palette), {}, false };
    const QColor warm = qRcnStyle::isDark(palette) ? QColor(0xf0, 0xb0, 0x5a) : QColor(0xb8, 0x66, 0x00);
    qRcnCurves::Curve majority{ qRcnTrainingMonitor::tr("majority"), qRcnStyle::accent(palette), {}, false };
    qRcnCurves::Curve expected{ qRcnTrainingMonitor::tr("expected share"), warm, {}, true };
    double best = NAN;
    for (const rcn::TrainingEpoch& epoch : this->Epochs)
    {
      // Epoch 0 is the validation before training: it has no loss.
      if (epoch.Epoch > 0)
      {
        loss.Points << QPointF(epoch.Epoch, epoch.Loss);
      }
      majority.Points << QPointF(epoch.Epoch, epoch.MajorityMrEce);
      expected.Points << QPointF(epoch.Epoch, epoch.ExpectedMrEce);
      // The last one that was better than all before it.
      best = epoch.Best ? epoch.Epoch : best;
    }
    y.Title = qRcnTrainingMonitor::tr("Loss");
    this->LossChart->setCurves({ steps, loss }, x, y);
    y.Title = qRcnTrainingMonitor::tr("MR-ECE");
    y.Percent = true;
    this->EceChart->setCurves({ majority, expected }, x, y);
    this->EceChart->setMark(best, qRcnTrainingMonitor::tr("best"));
  }

  /// One sentence for the decision that a person has to make, then the figures it stands on. A result that is no better is said
  /// plainly.
  void showResult(const rcn::TrainingResult& result)
  {
    const bool judged = result.After.Cases > 0;
    const rcn::EvaluationReport* before = result.HasBefore ? &result.Before : nullptr;
    const auto figure = [&](const rcn::EvaluationReport* report, rcn_figure which) {
      return judged && report ? report->Figures[which] : NAN;
    };
    const double was = figure(before, RCN_MR_ECE), is = figure(&result.After, RCN_MR_ECE);
    const QString cases = qRcnStyle::counted(static_cast<int64_t>(result.After.Cases), "validation case");
    QString text = result.Interrupted ? qRcnTrainingMonitor::tr("Stopped early. ") : QString();
    if (!judged && result.Interrupted) // its validation is all that is known
    {
      const auto best = std::find_if(result.Epochs.begin(), result.Epochs.end(),
        [&result](const rcn::TrainingEpoch& epoch) { return epoch.Epoch == result.Best; });
      text += best == result.Epochs.end()
        ? qRcnTrainingMonitor::tr("The new model is the best one so far, that of epoch %1.").arg(result.Best)
        : qRcnTrainingMonitor::tr("The new model is the best one so far, that of epoch %1 (MR-ECE in validation %2).")
            .arg(result.Best)
            .arg(qRcnStyle::percent(result.Readout == "majority" ? best->MajorityMrEce : best->ExpectedMrEce, 2));
    }
    else if (!judged)
    {
      text += qRcnTrainingMonitor::tr("There were no validation cases to evaluate the model on.");
    }
    else if (before && result.KeptStart)
    {
      text += qRcnTrainingMonitor::tr("Training did not improve the model: the one it started from is still the best on %1.")
                .arg(cases);
    }
    else if (before)
    {
      text += (is < was ? qRcnTrainingMonitor::tr("MR-ECE fell from %1 to %2 on %3.")
                        : qRcnTrainingMonitor::tr("MR-ECE went from %1 to %2 on %3."))
                .arg(qRcnStyle::percent(was, 2), qRcnStyle::percent(is, 2), cases);
    }
    else
    {
      text += qRcnTrainingMonitor::tr("MR-ECE is %1 on %2; the best model is that of epoch %3.")
                .arg(qRcnStyle::percent(is, 2), cases)
                .arg(result.Best);
    }
    QStringList sentences{ text, QString::fromStdString(result.TemperatureInWords) };
    if (result.TooShort)
    {
      sentences << qRcnTrainingMonitor::tr("Training was too short to tell whether a longer one is better.");
    }
    else if (result.StillImproving)
    {
      sentences << qRcnTrainingMonitor::tr("Validation was still improving: a longer training may be better.");
    }
    sentences.removeAll(QString());
    this->Verdict->setText(sentences.join(' '));
    this->Figures->setFigures(0, qRcnTrainingMonitor::tr("MR-ECE"),
      qRcnTrainingMonitor::tr("How far probabilities are from the share of raters who mark the voxel. Less is better."),
      { was, is }, true);
    this->Figures->setFigures(1, qRcnTrainingMonitor::tr("Dice"),
      qRcnTrainingMonitor::tr("Overlap with the raters' majority, mean over cases. More is better."),
      { figure(before, RCN_DICE), figure(&result.After, RCN_DICE) }, false);
    this->Figures->setFigures(2, qRcnTrainingMonitor::tr("AUC"),
      qRcnTrainingMonitor::tr("How well marked and unmarked voxels are told apart. 1 is perfect."),
      { before && judged ? before->Auc.reference : NAN, judged ? result.After.Auc.reference : NAN }, false);
    this->Figures->setFigures(3, qRcnTrainingMonitor::tr("Brier"),
      qRcnTrainingMonitor::tr("Mean squared error of the probabilities against all raters. Less is better."),
      { figure(before, RCN_BRIER), figure(&result.After, RCN_BRIER) }, false);
    this->Figures->setColumnHidden(0, !before);
    this->Figures->setVisible(judged);
    this->Diagram->setVisible(judged);
    this->Diagram->clear();
    if (judged)
    {
      QStringList raters;
      for (const std::string& rater : result.Raters)
      {
        raters << QString::fromStdString(rater);
      }
      this->Diagram->setReport(result.After, qRcnTrainingMonitor::tr("after"), raters);
      if (before)
      {
        this->Diagram->setSecond(*before, qRcnTrainingMonitor::tr("before"));
      }
    }
  }

  /// Curves while it trains.
  QWidget* newCourse()
  {
    auto* course = new QWidget(this->Tabs);
    this->LossChart = new qRcnCurves(course);
    this->LossChart->setObjectName("loss");
    qRcnStyle::describe(this->LossChart, qRcnTrainingMonitor::tr("Loss"),
      qRcnTrainingMonitor::tr("The loss that training minimizes, on the training cases. It should fall and then flatten."));
    this->EceChart = new qRcnCurves(course);
    this->EceChart->setObjectName("ece");
    qRcnStyle::describe(this->EceChart, qRcnTrainingMonitor::tr("MR-ECE"),
      qRcnTrainingMonitor::tr(
        "MR-ECE on the validation cases after each epoch: how far probabilities are from the share of raters who mark the "
        "voxel."));
    auto* charts = new QVBoxLayout(course);
    charts->setContentsMargins(0, 6, 0, 0);
    charts->addWidget(this->LossChart);
    charts->addWidget(this->EceChart);
    return course;
  }

  /// Before and after, once it is done.
  QWidget* newOutcome()
  {
    auto* outcome = new QWidget(this->Tabs);
    this->Figures = new qRcnTable(outcome, "figures", qRcnTrainingMonitor::tr("Before and after training"));
    this->Figures->setHeadings({ qRcnTrainingMonitor::tr("Before"), qRcnTrainingMonitor::tr("After") });
    this->Figures->setRowCount(4);
    this->Figures->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    this->Figures->setVisibleRows(4, 4);
    this->Diagram = new qRcnReliabilityDiagram(outcome);
    this->Diagram->setObjectName("diagram");
    this->Diagram->setControlsVisible(false);
    auto* results = new QVBoxLayout(outcome);
    results->setContentsMargins(0, 6, 0, 0);
    results->addWidget(this->Figures);
    results->addWidget(this->Diagram, 1);
    return outcome;
  }

  qRcnTrainingMonitor* Owner = nullptr;
  qRcnTrainingMonitor::State State = qRcnTrainingMonitor::Idle;
  QString Stage;
  double SecondsLeft = NAN, Megabytes = 0;
  int EpochCount = 0;
  QVector<QPointF> Steps;
  std::vector<rcn::TrainingEpoch> Epochs;
  QLabel *Title = nullptr, *Status = nullptr, *Course = nullptr, *Verdict = nullptr;
  QProgressBar* Bar = nullptr;
  QPushButton *Cancel = nullptr, *Keep = nullptr, *Discard = nullptr;
  QTabWidget* Tabs = nullptr;
  qRcnCurves *LossChart = nullptr, *EceChart = nullptr;
  qRcnTable* Figures = nullptr;
  qRcnReliabilityDiagram* Diagram = nullptr;
};

qRcnTrainingMonitor::qRcnTrainingMonitor(QWidget* parent) : QWidget(parent), d(new qRcnTrainingMonitorPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  p->Title = qRcnStyle::newNote(this, "title");
  QFont bold = p->Title->font();
  bold.setBold(true);
  p->Title->setFont(bold);
  p->Bar = new QProgressBar(this);
  p->Bar->setObjectName("progress");
  p->Bar->setRange(0, 1000);
  p->Bar->setFormat(QStringLiteral("%p\u00a0%"));
  p->Bar->setAccessibleName(tr("Progress of the training"));
  p->Cancel = new QPushButton(tr("Cancel"), this);
  p->Cancel->setObjectName("cancel");
  p->Cancel->setToolTip(tr("Finish the current step and stop. The best model so far can be kept or discarded."));
  auto* row = new QHBoxLayout;
  row->addWidget(p->Bar, 1);
  row->addWidget(p->Cancel);
  p->Status = qRcnStyle::newNote(this, "status");
  p->Course = qRcnStyle::newNote(this, "course");
  p->Course->setToolTip(tr("The planned training; after ten steps, what fits into the time"));

  p->Tabs = new QTabWidget(this);
  p->Tabs->setObjectName("tabs");
  p->Tabs->setDocumentMode(true);
  p->Tabs->addTab(p->newCourse(), tr("Progress"));
  p->Tabs->addTab(p->newOutcome(), tr("Result"));

  p->Verdict = qRcnStyle::newNote(this, "verdict");
  p->Keep = new QPushButton(tr("Keep the new model"), this);
  p->Keep->setObjectName("keep");
  p->Keep->setToolTip(tr("Use the new model from now on."));
  p->Discard = new QPushButton(tr("Discard"), this);
  p->Discard->setObjectName("discard");
  p->Discard->setToolTip(tr("Keep using the model from before the training."));
  auto* answer = new QHBoxLayout;
  answer->addWidget(p->Keep, 1);
  answer->addWidget(p->Discard);

  auto* layout = qRcnStyle::newColumn(this, { p->Title });
  layout->addLayout(row);
  layout->addWidget(p->Status);
  layout->addWidget(p->Course);
  // Question and answer stand together above the tabs, whichever is open: below the diagram, which takes all the room there
  // is, the buttons were out of sight in a panel that scrolls.
  layout->addWidget(p->Verdict);
  layout->addLayout(answer);
  layout->addWidget(p->Tabs, 1);
  layout->addStretch(0);

  connect(p->Cancel, &QPushButton::clicked, this, [this, p] {
    p->setState(Canceling);
    p->refreshStatus();
    emit cancelRequested();
  });
  connect(p->Keep, &QPushButton::clicked, this, &qRcnTrainingMonitor::keepRequested);
  connect(p->Discard, &QPushButton::clicked, this, &qRcnTrainingMonitor::discardRequested);
  this->clear();
}

qRcnTrainingMonitor::~qRcnTrainingMonitor() = default;

qRcnTrainingMonitor::State qRcnTrainingMonitor::state() const
{
  return this->d->State;
}

// Nothing of the training before remains.
void qRcnTrainingMonitor::start(const QString& what)
{
  this->clear();
  this->d->Title->setText(what);
  this->d->setState(Running);
}

void qRcnTrainingMonitor::setProgress(const rcn::TrainingProgress& progress)
{
  auto* p = this->d.get();
  if (p->State != Running && p->State != Canceling)
  {
    return; // a late message of a training that has ended
  }
  p->Bar->setValue(static_cast<int>(1000 * std::min(std::max(progress.Fraction, 0.0), 1.0)));
  p->Stage = StageInWords(progress);
  p->SecondsLeft = progress.SecondsLeft;
  p->EpochCount = std::max(p->EpochCount, progress.Epochs);
  p->showCourse(QString::fromStdString(rcn::CourseInWords(progress.Course)));
  // The share of the time that is up, in epochs: where a loss within an epoch stands on the axis.
  const double x = progress.Fraction * progress.Epochs;
  if (progress.Epoch > 0 && std::isfinite(progress.Loss) && progress.Loss > 0 &&
    (p->Steps.isEmpty() || x > p->Steps.last().x()))
  {
    p->Steps << QPointF(x, progress.Loss);
    if (p->Steps.size() > MostSteps)
    {
      QVector<QPointF> fewer;
      for (int i = 0; i < p->Steps.size(); i += 2)
      {
        fewer << p->Steps[i];
      }
      p->Steps = fewer;
    }
  }
  p->refreshStatus();
  p->refreshCurves();
}

void qRcnTrainingMonitor::addEpoch(const rcn::TrainingEpoch& epoch)
{
  this->d->Epochs.push_back(epoch);
  this->d->Megabytes = std::max(this->d->Megabytes, epoch.Megabytes);
  this->d->refreshStatus();
  this->d->refreshCurves();
}

// The result's own list of epochs is complete, also where messages on the way were too late to be shown.
void qRcnTrainingMonitor::finish(const rcn::TrainingResult& result)
{
  auto* p = this->d.get();
  p->Epochs = result.Epochs;
  for (const rcn::TrainingEpoch& epoch : result.Epochs)
  {
    p->Megabytes = std::max(p->Megabytes, epoch.Megabytes);
  }
  p->Stage = result.Epochs.empty() ? QString() : tr("Done in %1").arg(qRcnStyle::duration(result.Epochs.back().Seconds));
  p->SecondsLeft = NAN;
  p->showResult(result);
  p->setState(Finished);
  p->refreshStatus();
  p->refreshCurves();
}

// The curves stay: they may show why.
void qRcnTrainingMonitor::fail(const QString& sentence)
{
  this->d->setState(Failed);
  this->d->Status->setText(sentence);
}

void qRcnTrainingMonitor::clear()
{
  auto* p = this->d.get();
  p->Stage.clear();
  p->Steps.clear();
  p->Epochs.clear();
  p->SecondsLeft = NAN;
  p->Megabytes = 0;
  p->EpochCount = 0;
  p->Bar->setValue(0);
  p->Title->setText(tr("The progress of a training is shown here."));
  p->setState(Idle);
  p->refreshStatus();
  p->refreshCurves();
}

void qRcnTrainingMonitor::changeEvent(QEvent* event)
{
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && this->d->Diagram)
  {
    this->d->refreshCurves(); // in the palette's colors
  }
}
