// SPDX-License-Identifier: Apache-2.0
/// What the colors over an image mean: a bar with labels in a panel of slices. How many raters marked a voxel, in steps, or
/// how likely it is, from 0 to 100 %. Not a widget: qRcnSliceCanvas draws it into its panels, so that pictures have it, too.
#ifndef rcnColorBar_h
#define rcnColorBar_h

#include <vector>

#include <QColor>
#include <QString>
#include <QStringList>

#include "qRcnScene.h"
#include "rcnSliceRenderer.h"

class rcnColorBar
{
public:
  /// The bar of what lies over the image in such a pane; isEmpty() where nothing has a scale. Of two scales (the heat map
  /// below a prediction) it is that of the upper one.
  rcnColorBar(const qRcnScene& scene, rcnSliceRenderer::Content content, int number);

  bool isEmpty() const { return this->Steps.empty(); }
  /// What is measured: "raters", or the name of the map and how it is read.
  const QStringList& title() const { return this->Title; }
  /// From the bottom to the top.
  QStringList labels() const;

  /// At the right edge, which something else may need so many points of. Small panels get fewer labels.
  void draw(QPainter& painter, const QRectF& panel, double fromEdge) const;

private:
  void addLevels(const qRcnScene& scene);
  void addProbabilities(const qRcnScene& scene, int prediction);

  struct Label
  {
    double At; ///< 0: bottom, 1: top
    QString Text;
  };
  QStringList Title;
  std::vector<QColor> Steps; ///< from the bottom to the top, equally high; invalid: no color is laid over the image
  std::vector<Label> Labels;
  double Mark = -1; ///< where the threshold is; -1: nowhere
};

#endif
