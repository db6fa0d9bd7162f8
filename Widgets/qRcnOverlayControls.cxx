#include "qRcnOverlayControls.h"

class qRcnOverlayControlsPrivate
{
public:
  qRcnOverlayControls::Readout Readout = qRcnOverlayControls::Majority;
  int Level = 0;
  double Opacity = 0.5, Threshold = 0.5;
  bool Contour = false, LevelContours = false;
};

qRcnOverlayControls::qRcnOverlayControls(QWidget* parent) : QWidget(parent), d(new qRcnOverlayControlsPrivate) {}
qRcnOverlayControls::~qRcnOverlayControls() = default;
void qRcnOverlayControls::setRaterCount(int, bool) {}
qRcnOverlayControls::Readout qRcnOverlayControls::readout() const { return this->d->Readout; }
int qRcnOverlayControls::level() const { return this->d->Level; }
double qRcnOverlayControls::opacity() const { return this->d->Opacity; }
double qRcnOverlayControls::threshold() const { return this->d->Threshold; }
bool qRcnOverlayControls::contourShown() const { return this->d->Contour; }
bool qRcnOverlayControls::levelContoursShown() const { return this->d->LevelContours; }
void qRcnOverlayControls::setReadout(Readout readout, int level)
{
  this->d->Readout = readout;
  this->d->Level = level;
}
void qRcnOverlayControls::setOpacity(double opacity) { this->d->Opacity = opacity; }
void qRcnOverlayControls::setThreshold(double threshold) { this->d->Threshold = threshold; }
void qRcnOverlayControls::setContourShown(bool shown) { this->d->Contour = shown; }
void qRcnOverlayControls::setLevelContoursShown(bool shown) { this->d->LevelContours = shown; }
void qRcnOverlayControls::setVolume(double) {}
