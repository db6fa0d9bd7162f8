// SPDX-License-Identifier: Apache-2.0
/// Three linked slice views; one for a 2-D image. A double click makes one large, and small again. A fourth view, such as one
/// of surfaces, can stand beside them.
#ifndef qRcnOrthogonalViews_h
#define qRcnOrthogonalViews_h

#include <array>

#include <QWidget>

#include "qRcnScene.h"

class qRcnSliceView;

class qRcnOrthogonalViews : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnOrthogonalViews(qRcnScene* scene, QWidget* parent = nullptr);

  /// Axial, coronal, sagittal: by rcn_view.
  qRcnSliceView* view(rcn_view which) const { return this->Views[static_cast<size_t>(which)]; }
  /// A view of the whole volume in the place of a fourth; taken over. It is shown for volumes of several slices in which
  /// somebody marked, or a model predicted, something.
  void setFourthView(QWidget* view);
  static constexpr int FourthView = 3;
  /// The view that fills the place, by rcn_view or FourthView; -1: all are there.
  int maximized() const { return this->Maximized; }
  /// All that is visible, as one picture.
  QImage picture();

public slots:
  void setMaximized(int view);
  void setFourthViewWanted(bool wanted);
  void resetViews();

signals:
  void cursorMoved(bool inside, qint64 x, qint64 y, qint64 z);

protected:
  void resizeEvent(QResizeEvent* event) override;

private:
  void arrange();
  bool isFourthViewShown() const;
  bool isNarrow() const;

  qRcnScene* Scene;
  std::array<qRcnSliceView*, 3> Views;
  QWidget* Fourth = nullptr;
  bool FourthWanted = true;
  int Maximized = -1;
  bool Stacked = false;
};

#endif
