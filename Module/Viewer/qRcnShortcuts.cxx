// SPDX-License-Identifier: Apache-2.0
#include "qRcnShortcuts.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>

qRcnShortcuts::qRcnShortcuts(QWidget* parent) : QFrame(parent)
{
  this->setObjectName("shortcuts");
  this->setFrameShape(QFrame::StyledPanel);
  this->setAutoFillBackground(true);
  this->setFocusPolicy(Qt::StrongFocus);
  this->setAccessibleName(tr("Keyboard shortcuts"));
  this->setLayout(new QHBoxLayout);
  this->layout()->setContentsMargins(24, 20, 24, 20);
  this->layout()->setSpacing(32);
  this->hide();
}

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

void qRcnShortcuts::toggle()
{
  if (this->isVisible())
  {
    this->hide();
    return;
  }
  this->adjustSize();
  const QRect room = this->parentWidget()->rect();
  this->move(qMax(0, (room.width() - this->width()) / 2), qMax(0, (room.height() - this->height()) / 2));
  this->show();
  this->raise();
  this->setFocus();
}

void qRcnShortcuts::mousePressEvent(QMouseEvent*)
{
  this->hide();
}

void qRcnShortcuts::keyPressEvent(QKeyEvent* event)
{
  if (event->key() == Qt::Key_Escape || event->text() == "?")
  {
    this->hide();
    return;
  }
  QFrame::keyPressEvent(event);
}
