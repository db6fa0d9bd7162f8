// SPDX-License-Identifier: Apache-2.0
#include "qRcnSheet.h"

#include <QHBoxLayout>
#include <QKeyEvent>

qRcnSheet::qRcnSheet(const QString& name, const QString& title, QWidget* parent) : QFrame(parent)
{
  this->setObjectName(name);
  this->setFrameShape(QFrame::StyledPanel);
  this->setAutoFillBackground(true);
  this->setFocusPolicy(Qt::StrongFocus);
  this->setAccessibleName(title);
  // What is on it is for those who derive from it: they add to this layout.
  this->setLayout(new QHBoxLayout);
  this->layout()->setContentsMargins(24, 20, 24, 20);
  this->layout()->setSpacing(32);
  this->hide();
}

void qRcnSheet::toggle()
{
  if (this->isVisible())
  {
    this->hide();
    return;
  }
  // Each time it is shown: the window may have another size, and the sheet other words.
  this->adjustSize();
  const QRect room = this->parentWidget()->rect();
  this->move(qMax(0, (room.width() - this->width()) / 2), qMax(0, (room.height() - this->height()) / 2));
  this->show();
  this->raise();
  this->setFocus();
}

void qRcnSheet::mousePressEvent(QMouseEvent*)
{
  this->hide();
}

void qRcnSheet::keyPressEvent(QKeyEvent* event)
{
  if (event->key() == Qt::Key_Escape || event->text() == "?")
  {
    this->hide();
    return;
  }
  QFrame::keyPressEvent(event);
}
