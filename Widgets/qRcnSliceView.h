// SPDX-License-Identifier: Apache-2.0
/// A canvas of slices with its slider: axial, coronal or sagittal. Follows the scene.
#ifndef qRcnSliceView_h
#define qRcnSliceView_h

#include <QWidget>

#include "qRcnScene.h"

class QSlider;
class qRcnSliceCanvas;

class qRcnSliceView : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnSliceView(qRcnScene* scene, rcn_view view = RCN_VIEW_AXIAL, QWidget* parent = nullptr);

  qRcnSliceCanvas* canvas() const { return this->Canvas; }
  QSlider* slider() const { return this->Slider; }
  rcn_view view() const;
  void setView(rcn_view view);

signals:
  /// The voxel under the mouse; inside is false where there is none.
  void cursorMoved(bool inside, qint64 x, qint64 y, qint64 z);
  void doubleClicked();

private:
  void followSlice(qint64 slice, qint64 count);

  qRcnSliceCanvas* Canvas;
  QSlider* Slider;
};

#endif
