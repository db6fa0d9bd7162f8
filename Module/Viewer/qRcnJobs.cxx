// SPDX-License-Identifier: Apache-2.0
#include "qRcnJobs.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QToolButton>

#include "qRcnNotice.h"
#include "rcnViewerWayOut.h"

namespace
{

/// The same work; its errors, those of what it leaves to the GUI thread, too, end with what a person can do in this window.
qRcnJob::Work WithWayOut(qRcnJob::Work work)
{
  return [work = std::move(work)](qRcnJob::Monitor& monitor) -> qRcnJob::Done {
    qRcnJob::Done done = rcn::WithViewerWayOut([&] { return work(monitor); });
    if (!done)
    {
      return {};
    }
    return [done = std::move(done)] { rcn::WithViewerWayOut(done); };
  };
}

} // namespace

// Two jobs, because they may run at the same time: work, one piece after another, in the status bar, and a training, which
// takes long and has a monitor of its own. Everything that runs in the viewer goes through one of them.
qRcnJobs::qRcnJobs(qRcnNotice* notice, QWidget* parent)
  : QWidget(parent),
    Notice(notice),
    Work(new qRcnJob(this)),
    Training(new qRcnJob(this)),
    Text(new QLabel),
    Bar(new QProgressBar)
{
  this->Text->setObjectName("progressText");
  // The words contain names of cases, which nobody should be able to format.
  this->Text->setTextFormat(Qt::PlainText);
  this->Bar->setObjectName("progress");
  // A thousand steps: finer than a person sees at this width.
  this->Bar->setRange(0, 1000);
  this->Bar->setFixedWidth(220);
  this->Bar->setTextVisible(false);
  auto* cancel = new QToolButton;
  cancel->setObjectName("cancel");
  cancel->setText(tr("Cancel"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QWidget* widget : std::initializer_list<QWidget*>{ this->Text, this->Bar, cancel })
  {
    layout->addWidget(widget);
  }
  connect(cancel, &QToolButton::clicked, this, [this] {
    this->Replaced = false;
    this->Work->cancel();
    this->Text->setText(tr("Stopping…"));
  });
  this->watchWork();
  // Who listens hears once that both have stopped: a window that closes waits for that.
  for (qRcnJob* job : { this->Work, this->Training })
  {
    connect(job, &qRcnJob::started, this, &qRcnJobs::changed);
    connect(job, &qRcnJob::idle, this, [this] {
      emit this->changed();
      if (!this->isRunning())
      {
        emit this->idle();
      }
    });
  }
  this->hide();
}

// Here, and not with the children of QObject later: a job that still runs posts to slots that need this object whole.
qRcnJobs::~qRcnJobs()
{
  delete this->Training;
  delete this->Work;
}

// Work that was replaced (see beginInstead) ends without a word: the person has asked for something else by then.
void qRcnJobs::watchWork()
{
  connect(this->Work, &qRcnJob::started, this, [this](const QString& what) {
    this->Text->setText(what + "…");
    this->Bar->setValue(0);
    this->Replaced = false;
    this->show();
  });
  connect(this->Work, &qRcnJob::progressed, this, [this](double fraction, const QString& stage) {
    this->Bar->setValue(static_cast<int>(1000 * fraction));
    if (!this->Work->what().isEmpty())
    {
      this->Text->setText(QString("%1: %2").arg(this->Work->what(), stage));
    }
  });
  connect(this->Work, &qRcnJob::failed, this, [this](const QString& sentence) {
    if (!this->Replaced)
    {
      this->complain(sentence);
      emit this->gaveUp(sentence);
    }
  });
  connect(this->Work, &qRcnJob::canceled, this, [this] {
    if (!this->Replaced)
    {
      this->remark(tr("Canceled."));
      emit this->gaveUp({});
    }
  });
  connect(this->Work, &qRcnJob::idle, this, &QWidget::hide);
}

// Refused, not queued: what a person asked for a minute ago may not be what they want now.
bool qRcnJobs::begin(const QString& what, qRcnJob::Work work)
{
  if (this->Closed)
  {
    return false;
  }
  if (this->Work->isRunning())
  {
    this->remark(tr("%1 is still running. Wait for it, or press Cancel below.").arg(this->Work->what()));
    return false;
  }
  // A new piece of work: what was said about the last one is over.
  this->Notice->clear();
  return this->Work->start(what, WithWayOut(std::move(work)));
}

// For what a person clicks through quickly, such as cases of the list: only the last one counts.
void qRcnJobs::beginInstead(const QString& what, qRcnJob::Work work)
{
  if (!this->Closed)
  {
    this->Replaced = true;
    this->Work->startInstead(what, WithWayOut(std::move(work)));
  }
}

// A closing window is told how its work ended, hence not Replaced.
void qRcnJobs::cancelAll()
{
  this->Closed = true;
  this->Replaced = false;
  this->Work->cancel();
  this->Training->cancel();
}

void qRcnJobs::remark(const QString& sentence)
{
  if (!sentence.isEmpty())
  {
    this->Notice->showRemark(sentence);
  }
}

void qRcnJobs::complain(const QString& sentence)
{
  this->Notice->showError(sentence);
}

// The bridge asks with each step whether to go on; the monitor answers with what Cancel was last set to.
rcn::SessionProgress qRcnJobs::progressOf(qRcnJob::Monitor& monitor)
{
  return [&monitor](double fraction, const char* stage) { return monitor.report(fraction, QString::fromUtf8(stage)); };
}
