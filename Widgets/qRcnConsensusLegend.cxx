#include "qRcnConsensusLegend.h"

class qRcnConsensusLegendPrivate
{
public:
  rcn_palette Palette = RCN_PALETTE_GREEN;
  int Isolated = -1;
};

qRcnConsensusLegend::qRcnConsensusLegend(QWidget* parent) : QWidget(parent), d(new qRcnConsensusLegendPrivate) {}
qRcnConsensusLegend::~qRcnConsensusLegend() = default;
void qRcnConsensusLegend::setLevels(const QVector<double>&) {}
rcn_palette qRcnConsensusLegend::levelPalette() const { return this->d->Palette; }
int qRcnConsensusLegend::isolatedLevel() const { return this->d->Isolated; }
void qRcnConsensusLegend::setLevelPalette(rcn_palette palette) { this->d->Palette = palette; }
void qRcnConsensusLegend::setIsolatedLevel(int level) { this->d->Isolated = level; }
