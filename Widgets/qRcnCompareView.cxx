// SPDX-License-Identifier: Apache-2.0
#include "qRcnCompareView.h"

#include <algorithm>
#include <cmath>

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "qRcnSliceCanvas.h"
#include "qRcnSliceView.h"

// Everybody on one slice: panels of one canvas, so that all of them move, zoom and scroll together.
qRcnCompareView::qRcnCompareView(qRcnScene* scene, QWidget* parent)
  : QWidget(parent), Scene(scene), Slices(new qRcnSliceView(scene, RCN_VIEW_AXIAL, this)), Orientation(new QComboBox(this))
{
  for (const rcn_view view : { RCN_VIEW_AXIAL, RCN_VIEW_CORONAL, RCN_VIEW_SAGITTAL })
  {
    this->Orientation->addItem(qRcnSliceCanvas::viewName(view), static_cast<int>(view));
  }
  this->Orientation->setAccessibleName(tr("Orientation of the slice"));
  this->Orientation->setToolTip(this->Orientation->accessibleName());
  this->canvas()->setColorBar(true);
  auto* bar = new QHBoxLayout;
  bar->addWidget(this->Orientation);
  bar->addStretch(1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addLayout(bar);
  layout->addWidget(this->Slices, 1);
  connect(this->Orientation, QOverload<int>::of(&QComboBox::currentIndexChanged), this,
    [this](int index) { this->Slices->setView(static_cast<rcn_view>(this->Orientation->itemData(index).toInt())); });
  connect(this->Slices, &qRcnSliceView::cursorMoved, this, &qRcnCompareView::cursorMoved);
  connect(scene, &qRcnScene::changed, this, &qRcnCompareView::follow);
  this->follow(qRcnScene::Case);
}

qRcnSliceCanvas* qRcnCompareView::canvas() const
{
  return this->Slices->canvas();
}

rcn_view qRcnCompareView::view() const
{
  return this->Slices->view();
}

void qRcnCompareView::setView(rcn_view view)
{
  this->Orientation->setCurrentIndex(this->Orientation->findData(static_cast<int>(view)));
}

void qRcnCompareView::follow(qRcnScene::Changes what)
{
  if (what & (qRcnScene::Case | qRcnScene::Predictions | qRcnScene::Contours))
  {
    if (what & qRcnScene::Case)
    {
      // A volume of one slice has one way to look at it.
      const int only = this->Scene->onlyView();
      this->Orientation->setVisible(!this->Scene->isEmpty() && only < 0);
      if (only >= 0)
      {
        this->setView(static_cast<rcn_view>(only));
      }
    }
    this->arrange();
  }
}

// In the order of the case: raters, their consensus, models. Also when the window changes its shape.
void qRcnCompareView::arrange()
{
  using Content = rcnSliceRenderer::Content;
  const QColor white(235, 235, 235);
  std::vector<qRcnSliceCanvas::Panel> panels;
  for (int r = 0; r < this->Scene->raterCount(); ++r)
  {
    if (this->Scene->isRaterVisible(r))
    {
      panels.push_back({ Content::Rater, r, this->Scene->raterNames()[r], this->Scene->raterColor(r) });
    }
  }
  if (this->Scene->raterCount() > 0)
  {
    panels.push_back({ Content::Consensus, 0, tr("Consensus"), white });
  }
  for (int p = 0; p < this->Scene->predictionCount(); ++p)
  {
    panels.push_back({ Content::Prediction, p, this->Scene->prediction(p).Name, white });
  }
  if (panels.empty())
  {
    panels.push_back({ Content::Scene, 0, tr("Image"), white });
  }
  // As square as the panels can be.
  const int count = static_cast<int>(panels.size());
  int columns = 1;
  double best = 0;
  for (int c = 1; c <= count; ++c)
  {
    const int rows = (count + c - 1) / c;
    const double side = std::min(static_cast<double>(this->width()) / c, static_cast<double>(this->height()) / rows);
    if (side > best * 1.001)
    {
      best = side;
      columns = c;
    }
  }
  QStringList titles;
  for (const auto& panel : panels)
  {
    titles << panel.Title + panel.Color.name();
  }
  // The same panels: setting them anew would draw everything again. Colors belong to it, so they are part of the text.
  if (titles == this->Shown && columns == this->Columns)
  {
    return;
  }
  this->Shown = titles;
  this->Columns = columns;
  this->Titles.clear();
  for (const auto& panel : panels)
  {
    this->Titles << panel.Title;
  }
  this->canvas()->setPanels(panels, columns);
}

void qRcnCompareView::resizeEvent(QResizeEvent* event)
{
  QWidget::resizeEvent(event);
  this->arrange();
}

QImage qRcnCompareView::picture()
{
  return this->canvas()->picture();
}
