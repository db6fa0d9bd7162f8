// SPDX-License-Identifier: Apache-2.0
#include "qRcnJobs.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QToolButton>

#include "qRcnNotice.h"

qRcnJobs::qRcnJobs(qRcnNotice* notice, QWidget* parent)
  : QWidget(parent),
    Notice(notice),
    Work(new qRcnJob(this)),
    Training(new qRcnJob(this)),
    Text(new QLabel),
    Bar(new QProgressBar)
{
  this->Text->setObjectName("progressText");
  this->Text->setTextFormat(Qt::PlainText);
  this->Bar->setObjectName("progress");
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

qRcnJobs::~qRcnJobs()
{
  delete this->Training;
  delete this->Work;
}

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
  this->Notice->clear();
  return this->Work->start(what, std::move(work));
}

void qRcnJobs::beginInstead(const QString& what, qRcnJob::Work work)
{
  if (!this->Closed)
  {
    this->Replaced = true;
    this->Work->startInstead(what, std::move(work));
  }
}

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

rcn::SessionProgress qRcnJobs::progressOf(qRcnJob::Monitor& monitor)
{
  return [&monitor](double fraction, const char* stage) { return monitor.report(fraction, QString::fromUtf8(stage)); };
}
