// SPDX-License-Identifier: Apache-2.0
#include "qRcnOrthogonalViews.h"

#include <algorithm>

#include <QGridLayout>

#include "qRcnSliceCanvas.h"
#include "qRcnSliceView.h"

qRcnOrthogonalViews::qRcnOrthogonalViews(qRcnScene* scene, QWidget* parent) : QWidget(parent), Scene(scene)
{
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setSpacing(2);
  for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_CORONAL, RCN_VIEW_SAGITTAL })
  {
    auto* one = new qRcnSliceView(scene, view, this);
    this->Views[static_cast<size_t>(view)] = one;
    connect(one, &qRcnSliceView::cursorMoved, this, &qRcnOrthogonalViews::cursorMoved);
    connect(one, &qRcnSliceView::doubleClicked, this,
      [this, view]() { this->setMaximized(this->Maximized < 0 ? static_cast<int>(view) : -1); });
  }
  connect(scene, &qRcnScene::changed, this, [this](qRcnScene::Changes what) {
    if (what & qRcnScene::Case)
    {
      this->arrange();
    }
  });
  this->arrange();
}

void qRcnOrthogonalViews::setMaximized(int view)
{
  this->Maximized = view >= 0 && view < 3 ? view : -1;
  this->arrange();
}

void qRcnOrthogonalViews::resetViews()
{
  for (qRcnSliceView* view : this->Views)
  {
    view->canvas()->resetView();
  }
}

void qRcnOrthogonalViews::arrange()
{
  const int only = this->Scene->onlyView() >= 0 ? this->Scene->onlyView() : this->Maximized;
  for (size_t i = 0; i < 3; ++i)
  {
    this->Views[i]->setVisible(only < 0 || static_cast<size_t>(only) == i);
    this->Views[i]->canvas()->setColorBar(only < 0 ? i == RCN_VIEW_AXIAL : static_cast<size_t>(only) == i);
  }
  auto* grid = static_cast<QGridLayout*>(this->layout());
  for (qRcnSliceView* view : this->Views)
  {
    grid->removeWidget(view);
  }
  this->Stacked = this->isNarrow();
  if (this->Stacked)
  {
    // One above the other: side by side they would be too narrow for their texts.
    int row = 0;
    for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_SAGITTAL, RCN_VIEW_CORONAL })
    {
      grid->addWidget(this->Views[view], row, 0);
      grid->setRowStretch(row++, only < 0 || only == view ? 1 : 0);
    }
    grid->setColumnStretch(0, 1);
    grid->setColumnStretch(1, 0);
    return;
  }
  // The axial view, which is read most, gets the most room.
  grid->addWidget(this->Views[RCN_VIEW_AXIAL], 0, 0, 2, 1);
  grid->addWidget(this->Views[RCN_VIEW_SAGITTAL], 0, 1);
  grid->addWidget(this->Views[RCN_VIEW_CORONAL], 1, 1);
  grid->setRowStretch(2, 0);
  const bool left = only < 0 || only == RCN_VIEW_AXIAL, right = only != RCN_VIEW_AXIAL;
  grid->setColumnStretch(0, left ? 3 : 0);
  grid->setColumnStretch(1, right ? 2 : 0);
  grid->setRowStretch(0, only == RCN_VIEW_CORONAL ? 0 : 1);
  grid->setRowStretch(1, only == RCN_VIEW_SAGITTAL ? 0 : 1);
}

bool qRcnOrthogonalViews::isNarrow() const
{
  return this->width() < 500 && this->height() > this->width();
}

void qRcnOrthogonalViews::resizeEvent(QResizeEvent* event)
{
  QWidget::resizeEvent(event);
  if (this->isNarrow() != this->Stacked)
  {
    this->arrange();
  }
}

QImage qRcnOrthogonalViews::picture()
{
  return this->grab().toImage();
}
