// SPDX-License-Identifier: Apache-2.0
#include "qRcnShortcuts.h"

#include <QGridLayout>
#include <QLabel>

qRcnShortcuts::qRcnShortcuts(QWidget* parent) : qRcnSheet("shortcuts", tr("Keyboard shortcuts"), parent) {}

void qRcnShortcuts::setLists(const std::vector<std::pair<QString, List>>& lists)
{
  for (const auto& list : lists)
  {
    auto* column = new QWidget;
    auto* grid = new QGridLayout(column);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(16);
    auto* heading = new QLabel(list.first);
    QFont bold = heading->font();
    bold.setBold(true);
    heading->setFont(bold);
    grid->addWidget(heading, 0, 0, 1, 2);
    int row = 1;
    for (const auto& entry : list.second)
    {
      auto* key = new QLabel(entry.first);
      key->setFont(bold);
      grid->addWidget(key, row, 0);
      grid->addWidget(new QLabel(entry.second), row, 1);
      ++row;
    }
    grid->setRowStretch(row, 1);
    grid->setColumnStretch(1, 1);
    this->layout()->addWidget(column);
  }
}
