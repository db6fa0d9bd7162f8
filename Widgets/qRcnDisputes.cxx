#include "qRcnDisputes.h"

class qRcnDisputesPrivate
{
public:
  std::vector<rcn_dispute> Regions;
  int Current = -1;
};

qRcnDisputes::qRcnDisputes(QWidget* parent) : QWidget(parent), d(new qRcnDisputesPrivate) {}
qRcnDisputes::~qRcnDisputes() = default;
void qRcnDisputes::setRegions(std::vector<rcn_dispute> regions, const QStringList&)
{
  this->d->Regions = std::move(regions);
  this->d->Current = -1;
}
void qRcnDisputes::clear() { this->setRegions({}, {}); }
int qRcnDisputes::current() const { return this->d->Current; }
int qRcnDisputes::count() const { return static_cast<int>(this->d->Regions.size()); }
void qRcnDisputes::next()
{
  if (this->d->Current + 1 < this->count())
  {
    emit regionActivated(++this->d->Current);
  }
}
void qRcnDisputes::previous()
{
  if (this->d->Current > 0)
  {
    emit regionActivated(--this->d->Current);
  }
}
void qRcnDisputes::setCurrent(int index) { this->d->Current = index; }
