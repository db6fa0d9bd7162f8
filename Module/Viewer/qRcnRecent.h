// SPDX-License-Identifier: Apache-2.0
/// The menu of what was opened last, newest first, remembered in the settings. Files that were opened together are one entry.
#ifndef qRcnRecent_h
#define qRcnRecent_h

#include <QList>
#include <QMenu>
#include <QStringList>

class QSettings;

class qRcnRecent : public QMenu
{
  Q_OBJECT
public:
  static constexpr int Most = 10;

  qRcnRecent(QSettings* settings, QWidget* parent);

  const QList<QStringList>& entries() const { return this->Entries; }

public slots:
  /// To the top; files of a temporary folder should not be given. Nothing: nothing happens.
  void add(const QStringList& paths);
  void forget();

signals:
  void chosen(const QStringList& paths);

private:
  void fill();
  void store();

  QSettings* Settings;
  QList<QStringList> Entries;
};

#endif
