// SPDX-License-Identifier: Apache-2.0
/// What is laid over the image, and how: readout, opacity, threshold with its volume and contour, a contour per level.
#ifndef qRcnOverlayControls_h
#define qRcnOverlayControls_h

#include <memory>

#include <QWidget>

class qRcnOverlayControlsPrivate;

class qRcnOverlayControls : public QWidget
{
  Q_OBJECT
public:
  /// The numbers of the first three are those of rcn_readout.
  enum Readout
  {
    Majority = 0,     ///< probability that a majority marks the voxel
    Expected = 1,     ///< expected share of raters who mark it
    AtLeast = 2,      ///< probability that at least level() raters mark it
    MoreThanHalf = 3, ///< as Majority, but a tie does not count
    Level = 4         ///< probability that exactly level() raters mark it
  };
  Q_ENUM(Readout)

  explicit qRcnOverlayControls(QWidget* parent = nullptr);
  ~qRcnOverlayControls() override;

  /// K: how far "at least" and "exactly" reach. `levels`: whether there are level maps to read out at all.
  void setRaterCount(int raters, bool levels = true);

  Readout readout() const;
  /// t of "at least", k of "exactly"; 0 with the others.
  int level() const;
  double opacity() const;
  double threshold() const;
  bool contourShown() const;
  bool levelContoursShown() const;

public slots:
  /// These send no signal: to restore a workspace. Values out of range are brought into it.
  void setReadout(qRcnOverlayControls::Readout readout, int level);
  void setOpacity(double opacity);
  void setThreshold(double threshold);
  void setContourShown(bool shown);
  void setLevelContoursShown(bool shown);
  /// Volume at or above the threshold; NaN: not known.
  void setVolume(double extent, const QString& unit = QStringLiteral(" mL"));

signals:
  void readoutChanged(qRcnOverlayControls::Readout readout, int level);
  void opacityChanged(double opacity);
  /// Sent while a person drags, too.
  void thresholdChanged(double threshold);
  void contourShownChanged(bool shown);
  void levelContoursShownChanged(bool shown);

private:
  std::unique_ptr<qRcnOverlayControlsPrivate> d;
};

#endif
