// SPDX-License-Identifier: Apache-2.0
/// One slice, side by side: each rater's mask, their consensus, and every prediction, in the same colors. Slice, zoom and
/// place are those of all panels.
#ifndef qRcnCompareView_h
#define qRcnCompareView_h

#include <QWidget>

#include "qRcnScene.h"

class QComboBox;
class qRcnSliceCanvas;
class qRcnSliceView;

class qRcnCompareView : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnCompareView(qRcnScene* scene, QWidget* parent = nullptr);

  qRcnSliceCanvas* canvas() const;
  rcn_view view() const;
  void setView(rcn_view view);
  /// The titles of the panels, in order.
  QStringList titles() const { return this->Titles; }
  /// All panels as one picture.
  QImage picture();

signals:
  /// The voxel under the mouse; inside is false where there is none.
  void cursorMoved(bool inside, qint64 x, qint64 y, qint64 z);

protected:
  void resizeEvent(QResizeEvent* event) override;

private:
  void follow(qRcnScene::Changes what);
  void arrange();

  qRcnScene* Scene;
  qRcnSliceView* Slices;
  QComboBox* Orientation;
  QStringList Titles;
  QStringList Shown; // titles with colors: what the panels were made for
  int Columns = 0;
};

#endif
