// SPDX-License-Identifier: Apache-2.0
#include "qRcnOrthogonalViews.h"

#include <algorithm>
#include <vector>

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
    if (what & (qRcnScene::Case | qRcnScene::Predictions))
    {
      this->arrange();
    }
  });
  this->arrange();
}

void qRcnOrthogonalViews::setMaximized(int view)
{
  this->Maximized = view >= 0 && view <= FourthView ? view : -1;
  this->arrange();
}

void qRcnOrthogonalViews::setFourthView(QWidget* view)
{
  this->Fourth = view;
  view->setParent(this);
  this->arrange();
}

void qRcnOrthogonalViews::setFourthViewWanted(bool wanted)
{
  this->FourthWanted = wanted;
  this->arrange();
}

bool qRcnOrthogonalViews::isFourthViewShown() const
{
  return this->Fourth && this->FourthWanted && !this->Scene->isEmpty() && this->Scene->onlyView() < 0 &&
    (this->Scene->raterCount() > 0 || this->Scene->predictionCount() > 0);
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
  const bool fourth = this->isFourthViewShown();
  const int maximized = this->Maximized == FourthView && !fourth ? -1 : this->Maximized;
  const int only = this->Scene->onlyView() >= 0 ? this->Scene->onlyView() : maximized;
  const auto shown = [only](int view) { return only < 0 || only == view; };
  auto* grid = static_cast<QGridLayout*>(this->layout());
  std::array<QWidget*, 4> all = { this->Views[0], this->Views[1], this->Views[2], this->Fourth };
  for (int i = 0; i < 4; ++i)
  {
    if (QWidget* view = all[static_cast<size_t>(i)])
    {
      grid->removeWidget(view);
      view->setVisible(shown(i) && (i != FourthView || fourth));
    }
  }
  for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_CORONAL, RCN_VIEW_SAGITTAL })
  {
    this->view(view)->canvas()->setColorBar(only < 0 ? view == RCN_VIEW_AXIAL : only == view);
  }
  for (int i = 0; i < 4; ++i)
  {
    grid->setRowStretch(i, 0);
    grid->setColumnStretch(i, 0);
  }
  this->Stacked = this->isNarrow();
  struct Cell
  {
    int View, Row, Column, Rows;
  };
  // The axial view, which is read most, gets the most room; of four it is the first. In a narrow place one stands above the
  // other: side by side they would be too narrow for their texts.
  const std::vector<Cell> cells = this->Stacked ? std::vector<Cell>{ { RCN_VIEW_AXIAL, 0, 0, 1 },
    { RCN_VIEW_SAGITTAL, 1, 0, 1 }, { RCN_VIEW_CORONAL, 2, 0, 1 }, { FourthView, 3, 0, 1 } }
    : fourth ? std::vector<Cell>{ { RCN_VIEW_AXIAL, 0, 0, 1 }, { FourthView, 0, 1, 1 }, { RCN_VIEW_CORONAL, 1, 0, 1 },
        { RCN_VIEW_SAGITTAL, 1, 1, 1 } }
             : std::vector<Cell>{ { RCN_VIEW_AXIAL, 0, 0, 2 }, { RCN_VIEW_SAGITTAL, 0, 1, 1 }, { RCN_VIEW_CORONAL, 1, 1, 1 } };
  for (const Cell& cell : cells)
  {
    QWidget* view = all[static_cast<size_t>(cell.View)];
    if (!view || !shown(cell.View) || (cell.View == FourthView && !fourth))
    {
      continue;
    }
    grid->addWidget(view, cell.Row, cell.Column, cell.Rows, 1);
    for (int row = cell.Row; row < cell.Row + cell.Rows; ++row)
    {
      grid->setRowStretch(row, 1);
    }
    grid->setColumnStretch(cell.Column, cell.Rows == 2 ? 3 : 2);
  }
}

bool qRcnOrthogonalViews::isNarrow() const
{
  // Of three views the smaller ones get two fifths of the width, of four a half; each needs 200 pixels for its texts.
  return this->width() < (this->isFourthViewShown() ? 500 : 560) && this->height() > this->width();
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
