// SPDX-License-Identifier: Apache-2.0
#include "qRcnStructures.h"

#include <QLabel>
#include <QListWidget>
#include <QMouseEvent>
#include <QProxyStyle>
#include <QSignalBlocker>
#include <QStyleOption>
#include <QVBoxLayout>

#include "qRcnStyle.h"

namespace
{

/// Draws an eye where a list has a box to check; the rest of Qt keeps treating it as one.
class EyeStyle : public QProxyStyle
{
public:
  void drawPrimitive(
    PrimitiveElement element, const QStyleOption* option, QPainter* painter, const QWidget* widget) const override
  {
    if (element != PE_IndicatorItemViewItemCheck)
    {
      QProxyStyle::drawPrimitive(element, option, painter, widget);
      return;
    }
    const bool open = option->state & State_On;
    const QColor text = option->palette.color(option->state & State_Selected ? QPalette::HighlightedText : QPalette::Text);
    const QColor shut = option->state & State_Selected ? text : qRcnStyle::muted(option->palette);
    qRcnStyle::paintEye(*painter, option->rect, open ? text : shut, open);
  }
};

/// A click on an eye opens or shuts it, and chooses nothing.
class EyeList : public QListWidget
{
protected:
  void mousePressEvent(QMouseEvent* event) override
  {
    QListWidgetItem* item = this->itemAt(event->pos());
    if (!item || event->button() != Qt::LeftButton || !this->isOnEye(item, event->pos()))
    {
      QListWidget::mousePressEvent(event);
      return;
    }
    item->setCheckState(item->checkState() == Qt::Checked ? Qt::Unchecked : Qt::Checked);
  }
  void mouseReleaseEvent(QMouseEvent* event) override
  {
    QListWidgetItem* item = this->itemAt(event->pos());
    if (!item || !this->isOnEye(item, event->pos()))
    {
      QListWidget::mouseReleaseEvent(event);
    }
  }
  void mouseDoubleClickEvent(QMouseEvent* event) override { this->mousePressEvent(event); }

private:
  bool isOnEye(QListWidgetItem* item, const QPoint& at) const
  {
    if (!(item->flags() & Qt::ItemIsUserCheckable))
    {
      return false;
    }
    const QRect row = this->visualItemRect(item);
    const int width = this->style()->pixelMetric(QStyle::PM_IndicatorWidth, nullptr, this) +
      2 * (this->style()->pixelMetric(QStyle::PM_FocusFrameHMargin, nullptr, this) + 1);
    return this->layoutDirection() == Qt::RightToLeft ? at.x() > row.right() - width : at.x() < row.left() + width;
  }
};

} // namespace

qRcnStructures::qRcnStructures(QWidget* parent) : QWidget(parent), List(new EyeList)
{
  auto* eyes = new EyeStyle;
  eyes->setParent(this->List);
  this->List->setStyle(eyes);
  this->List->setObjectName("structures");
  this->List->setAccessibleName(tr("Structures"));
  this->List->setToolTip(tr("Choose the structure to show and analyze. The eye shows or hides the outlines of a structure."));
  this->List->setUniformItemSizes(true);
  auto* heading = new QLabel(tr("Structures"));
  QFont bold = heading->font();
  bold.setBold(true);
  heading->setFont(bold);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(heading);
  layout->addWidget(this->List);
  this->hide();
  connect(this->List, &QListWidget::currentRowChanged, this, [this](int row) {
    if (row >= 0)
    {
      emit this->structureChosen(row + 1);
    }
  });
  connect(this->List, &QListWidget::itemChanged, this, [this](QListWidgetItem* item) {
    emit this->visibilityChanged(this->List->row(item) + 1, item->checkState() == Qt::Checked);
  });
}

int qRcnStructures::chosen() const
{
  return this->List->currentRow() + 1;
}

void qRcnStructures::setStructures(const QVector<qRcnStructure>& structures, int chosen)
{
  const QSignalBlocker blocker(this->List);
  const int several = structures.size() > 1 ? static_cast<int>(structures.size()) : 0;
  while (this->List->count() > several)
  {
    delete this->List->takeItem(this->List->count() - 1);
  }
  for (int row = 0; row < several; ++row)
  {
    if (row == this->List->count())
    {
      this->List->addItem(new QListWidgetItem);
    }
    QListWidgetItem* item = this->List->item(row);
    QIcon dot = qRcnStyle::dotIcon(structures[row].Color);
    dot.addPixmap(dot.pixmap(32, 32), QIcon::Selected); // its own color there, too
    item->setIcon(dot);
    item->setText(structures[row].Name);
    const Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemIsSelectable;
    item->setFlags(structures[row].HasOutline ? flags | Qt::ItemIsUserCheckable : flags);
    item->setData(Qt::CheckStateRole,
      structures[row].HasOutline ? QVariant(structures[row].Visible ? Qt::Checked : Qt::Unchecked) : QVariant());
  }
  this->List->setCurrentRow(chosen - 1);
  const int height = several ? qMax(this->List->sizeHintForRow(0), this->fontMetrics().height()) : 0;
  this->List->setFixedHeight(qBound(1, several, 6) * height + 2 * this->List->frameWidth() + 2);
  this->setVisible(several > 0);
}
