#include "qRcnVoxelProbe.h"

class qRcnVoxelProbePrivate
{
public:
  QStringList Raters;
};

qRcnVoxelProbe::qRcnVoxelProbe(QWidget* parent) : QWidget(parent), d(new qRcnVoxelProbePrivate) {}
qRcnVoxelProbe::~qRcnVoxelProbe() = default;
void qRcnVoxelProbe::setRaters(const QStringList& raters) { this->d->Raters = raters; }
void qRcnVoxelProbe::setVoxel(const qRcnVoxel&) {}
void qRcnVoxelProbe::clear() {}
QString qRcnVoxelProbe::sentence() const { return {}; }
