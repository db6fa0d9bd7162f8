// SPDX-License-Identifier: Apache-2.0
/// Does 70 % mean 70 %? The curve of a model against all raters and against each of them, its interval, how many voxels
/// stand behind it, and what that means in words; below, a small curve for each number of raters, and how often each number is
/// predicted and observed. The owner computes: region and bins are wishes told by signals.
#ifndef qRcnReliabilityDiagram_h
#define qRcnReliabilityDiagram_h

#include <memory>

#include <QStringList>
#include <QWidget>

#include "rcnEvaluation.h"

class qRcnReliabilityDiagramPrivate;

class qRcnReliabilityDiagram : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnReliabilityDiagram(QWidget* parent = nullptr);
  ~qRcnReliabilityDiagram() override;

  /// The model to show. `raters` in the order of report.RaterBins. The second one stays. A selected bin stays selected
  /// when the new report has the same bins; otherwise binSelected(-1, -1) is sent.
  void setReport(const rcn::EvaluationReport& report, const QString& name, const QStringList& raters);
  /// Another model, or the same one before recalibration or training: a thinner curve behind the first.
  void setSecond(const rcn::EvaluationReport& report, const QString& name);
  void clearSecond();
  /// No report: a hint stands in its place.
  void clear();
  bool hasReport() const;

  rcn_region region() const;
  int bins() const;
  /// Which of the raters' own curves are drawn; all off at first.
  QStringList shownRaters() const;
  /// [lower, upper) of the selected bin; false when none is.
  bool selectedBin(double& lower, double& upper) const;

  /// Whether region, bins and check boxes are shown: not where there is nothing to recompute.
  void setControlsVisible(bool visible);

public slots:
  /// What stands in the controls; these send no signal.
  void setRegion(rcn_region region);
  void setBins(int bins);
  void setShownRaters(const QStringList& raters);
  void clearSelection();

signals:
  void regionChanged(rcn_region region);
  void binsChanged(int bins);
  /// A person chose the voxels whose probability is in [lower, upper) (the last bin includes 1); -1, -1: no bin any more.
  void binSelected(double lower, double upper);

protected:
  void changeEvent(QEvent* event) override;

private:
  std::unique_ptr<qRcnReliabilityDiagramPrivate> d;
};

Q_DECLARE_METATYPE(rcn_region)

#endif
