#include "qRcnReliabilityDiagram.h"

class qRcnReliabilityDiagramPrivate
{
public:
  rcn_region Region = RCN_REGION_WHOLE;
  int Bins = 15;
  bool HasReport = false;
};

qRcnReliabilityDiagram::qRcnReliabilityDiagram(QWidget* parent)
  : QWidget(parent), d(new qRcnReliabilityDiagramPrivate)
{
}
qRcnReliabilityDiagram::~qRcnReliabilityDiagram() = default;
void qRcnReliabilityDiagram::setReport(const rcn::EvaluationReport&, const QString&, const QStringList&)
{
  this->d->HasReport = true;
}
void qRcnReliabilityDiagram::setSecond(const rcn::EvaluationReport&, const QString&) {}
void qRcnReliabilityDiagram::clearSecond() {}
void qRcnReliabilityDiagram::clear() { this->d->HasReport = false; }
bool qRcnReliabilityDiagram::hasReport() const { return this->d->HasReport; }
rcn_region qRcnReliabilityDiagram::region() const { return this->d->Region; }
int qRcnReliabilityDiagram::bins() const { return this->d->Bins; }
QStringList qRcnReliabilityDiagram::shownRaters() const { return {}; }
bool qRcnReliabilityDiagram::selectedBin(double&, double&) const { return false; }
void qRcnReliabilityDiagram::setControlsVisible(bool) {}
void qRcnReliabilityDiagram::setRegion(rcn_region region) { this->d->Region = region; }
void qRcnReliabilityDiagram::setBins(int bins) { this->d->Bins = bins; }
void qRcnReliabilityDiagram::setShownRaters(const QStringList&) {}
void qRcnReliabilityDiagram::clearSelection() {}
