// SPDX-License-Identifier: Apache-2.0
/// What is known about one voxel: where it is, who marked it, what the map that lies over it says.
#ifndef qRcnVoxelProbe_h
#define qRcnVoxelProbe_h

#include <cmath>
#include <cstdint>
#include <memory>

#include <QStringList>
#include <QVector>
#include <QWidget>

#include "rcn/rcn_color.h"

/// One voxel. What is not known stays as it is here.
struct qRcnVoxel
{
  double Ras[3] = { NAN, NAN, NAN }; ///< mm
  int64_t Index[3] = { -1, -1, -1 };
  QVector<double> Image;             ///< one value per channel
  uint64_t Marked = 0, Answered = 0; ///< bit r: rater r
  QString Map;                       ///< the name of what lies over the image: a model's, or of a fusion
  QVector<double> Levels;            ///< its p_0 ... p_K
  double Probability = NAN;          ///< of a map that has only one
};

class qRcnVoxelProbePrivate;

class qRcnVoxelProbe : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnVoxelProbe(QWidget* parent = nullptr);
  ~qRcnVoxelProbe() override;

  void setRaters(const QStringList& raters);
  /// Colors of the bars: those of the legend.
  void setLevelPalette(rcn_palette palette);
  /// Called at every movement of the pointer: cheap.
  void setVoxel(const qRcnVoxel& voxel);
  /// The pointer is over nothing.
  void clear();

  /// "3 of 5 raters marked this voxel; rps expects 58 %."
  QString sentence() const;

protected:
  void resizeEvent(QResizeEvent* event) override;

private:
  std::unique_ptr<qRcnVoxelProbePrivate> d;
};

#endif
