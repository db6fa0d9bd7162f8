// SPDX-License-Identifier: Apache-2.0
#include "qRcnSliceView.h"

#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QSlider>

#include "qRcnSliceCanvas.h"

qRcnSliceView::qRcnSliceView(qRcnScene* scene, rcn_view view, QWidget* parent)
  : QWidget(parent), Canvas(new qRcnSliceCanvas(scene, this)), Slider(new QSlider(Qt::Vertical, this))
{
  this->Slider->setFocusPolicy(Qt::TabFocus);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(1);
  layout->addWidget(this->Canvas, 1);
  layout->addWidget(this->Slider);
  connect(this->Canvas, &qRcnSliceCanvas::sliceChanged, this, &qRcnSliceView::followSlice);
  connect(this->Canvas, &qRcnSliceCanvas::cursorMoved, this, &qRcnSliceView::cursorMoved);
  connect(this->Canvas, &qRcnSliceCanvas::doubleClicked, this, &qRcnSliceView::doubleClicked);
  connect(this->Slider, &QSlider::valueChanged, this->Canvas, [this](int value) { this->Canvas->setSlice(value); });
  this->setView(view);
  this->followSlice(this->Canvas->slice(), this->Canvas->sliceCount());
}

rcn_view qRcnSliceView::view() const
{
  return this->Canvas->view();
}

void qRcnSliceView::setView(rcn_view view)
{
  this->Canvas->setView(view);
  this->Slider->setToolTip(tr("Slice (%1)").arg(qRcnSliceCanvas::viewName(view).toLower()));
  this->Slider->setAccessibleName(this->Slider->toolTip());
  this->Canvas->setAccessibleName(tr("%1 slices").arg(qRcnSliceCanvas::viewName(view)));
}

void qRcnSliceView::followSlice(qint64 slice, qint64 count)
{
  const QSignalBlocker quiet(this->Slider);
  this->Slider->setVisible(count > 1);
  this->Slider->setRange(0, static_cast<int>(count > 0 ? count - 1 : 0));
  this->Slider->setPageStep(10);
  // Up is where the wheel goes when it is turned away from the reader.
  this->Slider->setInvertedAppearance(!this->Canvas->isAscending());
  this->Slider->setInvertedControls(!this->Canvas->isAscending());
  this->Slider->setValue(static_cast<int>(slice));
}
