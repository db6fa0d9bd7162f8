// SPDX-License-Identifier: Apache-2.0
#include "qRcnRecent.h"

#include <algorithm>

#include <QAction>
#include <QDir>
#include <QFileInfo>
#include <QSettings>

qRcnRecent::qRcnRecent(QSettings* settings, QWidget* parent) : QMenu(tr("Open recent"), parent), Settings(settings)
{
  this->setObjectName("recent");
  this->setToolTipsVisible(true);
  const int count = settings->beginReadArray("recent");
  for (int i = 0; i < std::min(count, Most); ++i)
  {
    settings->setArrayIndex(i);
    this->Entries << settings->value("paths").toStringList();
  }
  settings->endArray();
  this->Entries.removeAll(QStringList());
  // When it is shown: files may have come and gone.
  connect(this, &QMenu::aboutToShow, this, &qRcnRecent::fill);
  this->fill();
}

void qRcnRecent::add(const QStringList& paths)
{
  QStringList entry;
  for (const QString& path : paths)
  {
    entry << QFileInfo(path).absoluteFilePath();
  }
  if (entry.isEmpty())
  {
    return;
  }
  this->Entries.removeAll(entry);
  this->Entries.prepend(entry);
  while (this->Entries.size() > Most)
  {
    this->Entries.removeLast();
  }
  this->store();
  this->fill();
}

void qRcnRecent::forget()
{
  this->Entries.clear();
  this->store();
  this->fill();
}

void qRcnRecent::store()
{
  this->Settings->remove("recent");
  this->Settings->beginWriteArray("recent");
  for (int i = 0; i < this->Entries.size(); ++i)
  {
    this->Settings->setArrayIndex(i);
    this->Settings->setValue("paths", this->Entries[i]);
  }
  this->Settings->endArray();
}

void qRcnRecent::fill()
{
  this->clear();
  for (const QStringList& entry : this->Entries)
  {
    const QFileInfo first(entry.first());
    const int more = static_cast<int>(entry.size()) - 1;
    const QString name = more > 0 ? tr("%1 and %2 more").arg(first.fileName()).arg(more) : first.fileName();
    QString folder = first.absolutePath();
    folder = folder.startsWith(QDir::homePath() + "/") ? "~" + folder.mid(static_cast<int>(QDir::homePath().size())) : folder;
    // An & in a name would be taken for a key.
    QAction* action = this->addAction(QString("%1 (%2)").arg(name, folder).replace("&", "&&"));
    const bool there = std::all_of(entry.begin(), entry.end(), [](const QString& path) { return QFileInfo::exists(path); });
    action->setEnabled(there);
    action->setToolTip(there ? entry.join("\n") : tr("It no longer exists."));
    connect(action, &QAction::triggered, this, [this, entry] { emit this->chosen(entry); });
  }
  if (!this->Entries.isEmpty())
  {
    this->addSeparator();
    connect(this->addAction(tr("Clear this list")), &QAction::triggered, this, &qRcnRecent::forget);
  }
  this->menuAction()->setEnabled(!this->Entries.isEmpty());
}
