// SPDX-License-Identifier: Apache-2.0
#include "qRcnNotice.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QStyle>
#include <QToolButton>

qRcnNotice::qRcnNotice(QWidget* parent) : QFrame(parent), Label(new QLabel(this))
{
  this->setFrameShape(QFrame::StyledPanel);
  this->setAutoFillBackground(true);
  this->Label->setWordWrap(true);
  // Names of files come from outside: they must not be taken for markup.
  this->Label->setTextFormat(Qt::PlainText);
  this->Label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* close = new QToolButton(this);
  close->setObjectName("close");
  close->setAutoRaise(true);
  close->setIcon(this->style()->standardIcon(QStyle::SP_TitleBarCloseButton));
  close->setToolTip(tr("Close this message"));
  close->setAccessibleName(close->toolTip());
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(10, 4, 4, 4);
  layout->addWidget(this->Label, 1);
  layout->addWidget(close, 0, Qt::AlignTop);
  connect(close, &QToolButton::clicked, this, &qRcnNotice::clear);
  this->hide();
}

QString qRcnNotice::text() const
{
  return this->isHidden() ? QString() : this->Label->text();
}

void qRcnNotice::showError(const QString& sentence)
{
  this->show(sentence, true);
}

void qRcnNotice::showRemark(const QString& sentence)
{
  this->show(sentence, false);
}

void qRcnNotice::clear()
{
  this->Label->clear();
  this->hide();
}

void qRcnNotice::show(const QString& sentence, bool error)
{
  this->Error = error;
  QPalette palette;
  palette.setColor(QPalette::Window, error ? QColor(0xfb, 0xe3, 0xe0) : QColor(0xe6, 0xf0, 0xfa));
  palette.setColor(QPalette::WindowText, error ? QColor(0x7a, 0x12, 0x0c) : QColor(0x12, 0x3a, 0x5c));
  this->setPalette(palette);
  this->Label->setPalette(palette);
  this->Label->setText(sentence);
  this->setVisible(!sentence.isEmpty());
}
