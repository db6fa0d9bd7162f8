// SPDX-License-Identifier: Apache-2.0
/// The levels of consensus, 0 ... K raters: color, words, volume. A click isolates a level.
#ifndef qRcnConsensusLegend_h
#define qRcnConsensusLegend_h

#include <memory>

#include <QVector>
#include <QWidget>

#include "rcn/rcn_color.h"

class qRcnConsensusLegendPrivate;

class qRcnConsensusLegend : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnConsensusLegend(QWidget* parent = nullptr);
  ~qRcnConsensusLegend() override;

  /// Volume or area (by rcn::Extent's unit and name) of the voxels that exactly 0, 1, ... K raters marked; empty: no case.
  /// Isolation is kept where the level exists.
  void setLevels(const QVector<double>& extents, const QString& unit = QStringLiteral(" mL"),
    const QString& name = QStringLiteral("Volume"));

  rcn_palette levelPalette() const;
  /// -1: all of them are shown.
  int isolatedLevel() const;

public slots:
  /// These send no signal.
  void setLevelPalette(rcn_palette palette);
  void setIsolatedLevel(int level);

signals:
  /// A person wants to see only this level; -1: all again.
  void levelIsolated(int level);
  void levelPaletteChanged(rcn_palette palette);

protected:
  void changeEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

private:
  std::unique_ptr<qRcnConsensusLegendPrivate> d;
};

Q_DECLARE_METATYPE(rcn_palette)

#endif
