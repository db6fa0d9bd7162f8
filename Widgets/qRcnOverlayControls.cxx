// SPDX-License-Identifier: Apache-2.0
#include "qRcnOverlayControls.h"

#include <algorithm>
#include <cmath>

#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>
#include <QSpinBox>

#include "qRcnStyle.h"
#include "rcnNames.h"

class qRcnOverlayControlsPrivate
{
public:
  /// A slider and a spin box for the same share, 0 ... 100 %.
  struct Share
  {
    QSlider* Slider = nullptr;
    QSpinBox* Box = nullptr;
  };

  /// The slider for a quick look, the box for a number that can be repeated and for the keyboard. Each sets the other, which
  /// ends because neither tells of a value that it has already.
  Share addShare(QGridLayout* grid, int row, const QString& name, const QString& title, const QString& toolTip)
  {
    auto* label = new QLabel(title, this->Owner);
    Share share;
    share.Slider = new QSlider(Qt::Horizontal, this->Owner);
    share.Slider->setObjectName(name + "Slider");
    share.Slider->setRange(0, 100);
    share.Slider->setPageStep(10);
    share.Box = new QSpinBox(this->Owner);
    share.Box->setObjectName(name);
    share.Box->setRange(0, 100);
    share.Box->setSuffix(QStringLiteral("\u00a0%"));
    label->setBuddy(share.Box);
    QString plain = title;
    plain.remove('&');
    for (QWidget* widget :
      { static_cast<QWidget*>(share.Slider), static_cast<QWidget*>(share.Box), static_cast<QWidget*>(label) })
    {
      qRcnStyle::describe(widget, plain, toolTip);
    }
    QObject::connect(share.Slider, &QSlider::valueChanged, share.Box, &QSpinBox::setValue);
    QObject::connect(share.Box, QOverload<int>::of(&QSpinBox::valueChanged), share.Slider, &QSlider::setValue);
    grid->addWidget(label, row, 0);
    grid->addWidget(share.Slider, row, 1);
    grid->addWidget(share.Box, row, 2);
    return share;
  }

  /// From outside, without telling anybody: signals are for what a person does.
  static void set(const Share& share, double value)
  {
    const int percent = std::isfinite(value) ? static_cast<int>(std::lround(100 * std::min(std::max(value, 0.0), 1.0))) : 50;
    const QSignalBlocker first(share.Slider), second(share.Box);
    share.Slider->setValue(percent);
    share.Box->setValue(percent);
  }

  qRcnOverlayControls::Readout readout() const
  {
    return static_cast<qRcnOverlayControls::Readout>(this->What->currentData().toInt());
  }

  bool hasLevel() const
  {
    return this->readout() == qRcnOverlayControls::AtLeast || this->readout() == qRcnOverlayControls::Level;
  }

  /// "exactly" may be 0 raters; "at least 0" says nothing.
  void refresh()
  {
    const QSignalBlocker blocker(this->Number);
    this->Number->setRange(this->readout() == qRcnOverlayControls::AtLeast ? 1 : 0, std::max(this->Raters, 1));
    this->Number->setSuffix(qRcnOverlayControls::tr(" of %1").arg(this->Raters));
    this->Number->setVisible(this->hasLevel());
    const rcn::Choice* const choice = rcn::FindChoice(rcn::Readouts(), this->readout()); // null: exactly so many
    const QString meaning = choice ? qRcnOverlayControls::tr(choice->Meaning)
                                   : qRcnOverlayControls::tr("the probability that exactly this many raters mark the voxel");
    const QString text = this->HasLevels
      ? meaning.left(1).toUpper() + meaning.mid(1) + "."
      : qRcnOverlayControls::tr("This map holds one probability for each voxel: there are no levels to choose from.");
    this->Meaning->setText(text);
    this->What->setToolTip(text);
    this->What->setEnabled(this->HasLevels);
    this->Number->setEnabled(this->HasLevels);
    this->LevelContours->setEnabled(this->HasLevels);
  }

  void refreshVolume()
  {
    this->VolumeText->setText(std::isfinite(this->Volume)
        ? qRcnOverlayControls::tr("%1 at or above %2")
            .arg(qRcnStyle::extent(this->Volume, this->Unit), qRcnStyle::percent(this->Owner->threshold()))
        : QString());
    this->VolumeText->setVisible(std::isfinite(this->Volume));
  }

  /// First the range of the number, which depends on the readout, then one signal with both.
  void tellReadout()
  {
    this->refresh();
    emit this->Owner->readoutChanged(this->Owner->readout(), this->Owner->level());
  }

  qRcnOverlayControls* Owner = nullptr;
  int Raters = 1;
  bool HasLevels = true;
  double Volume = NAN;
  QString Unit = QStringLiteral(" mL");
  QComboBox* What = nullptr;
  QSpinBox* Number = nullptr;
  QLabel *Meaning = nullptr, *VolumeText = nullptr;
  Share Opacity, Threshold;
  QCheckBox *Contour = nullptr, *LevelContours = nullptr;
};

qRcnOverlayControls::qRcnOverlayControls(QWidget* parent) : QWidget(parent), d(new qRcnOverlayControlsPrivate)
{
  auto* p = this->d.get();
  p->Owner = this;
  // Words, control, number in three columns, so that all rows line up.
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(6, 6, 6, 6);
  grid->setVerticalSpacing(4);
  grid->setColumnStretch(1, 1);

  auto* show = new QLabel(tr("&Show"), this);
  p->What = new QComboBox(this);
  p->What->setObjectName("readout");
  for (const rcn::Choice& readout : rcn::Readouts())
  {
    p->What->addItem(tr(readout.Label), readout.Value);
  }
  p->What->addItem(tr("Exactly"), Level);
  p->What->setAccessibleName(tr("What the overlay shows"));
  p->What->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  p->What->setMinimumContentsLength(12);
  show->setBuddy(p->What);
  p->Number = new QSpinBox(this);
  p->Number->setObjectName("level");
  qRcnStyle::describe(p->Number, tr("Number of raters"));
  grid->addWidget(show, 0, 0);
  grid->addWidget(p->What, 0, 1);
  grid->addWidget(p->Number, 0, 2);
  p->Meaning = qRcnStyle::newNote(this, "meaning");
  grid->addWidget(p->Meaning, 1, 1, 1, 2);

  p->Opacity = p->addShare(grid, 2, "opacity", tr("&Opacity"), tr("How much of the image the overlay covers."));
  p->Threshold = p->addShare(
    grid, 3, "threshold", tr("&Threshold"), tr("Only voxels with at least this probability are shown and counted."));
  p->set(p->Opacity, 0.5);
  p->set(p->Threshold, 0.5);
  p->VolumeText = qRcnStyle::newNote(this, "volume");
  grid->addWidget(p->VolumeText, 4, 1, 1, 2);
  p->Contour = new QCheckBox(tr("&Contour at the threshold"), this);
  p->Contour->setObjectName("contour");
  p->Contour->setToolTip(tr("Draw a line around all voxels with at least the threshold's probability."));
  p->LevelContours = new QCheckBox(tr("Contour of &each level"), this);
  p->LevelContours->setObjectName("levelContours");
  p->LevelContours->setToolTip(tr("Draw a line for one rater, two raters, ... in the colors of the legend."));
  grid->addWidget(p->Contour, 5, 1, 1, 2);
  grid->addWidget(p->LevelContours, 6, 1, 1, 2);
  grid->setRowStretch(7, 1);

  connect(p->What, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [p] { p->tellReadout(); });
  connect(p->Number, QOverload<int>::of(&QSpinBox::valueChanged), this, [p] { p->tellReadout(); });
  connect(p->Opacity.Box, QOverload<int>::of(&QSpinBox::valueChanged), this, [this] { emit opacityChanged(this->opacity()); });
  connect(p->Threshold.Box, QOverload<int>::of(&QSpinBox::valueChanged), this, [this, p] {
    // The volume is of the old threshold until the owner tells the new one.
    p->Volume = NAN;
    emit thresholdChanged(this->threshold());
    if (!std::isfinite(p->Volume))
    {
      p->refreshVolume();
    }
  });
  connect(p->Contour, &QCheckBox::toggled, this, &qRcnOverlayControls::contourShownChanged);
  connect(p->LevelContours, &QCheckBox::toggled, this, &qRcnOverlayControls::levelContoursShownChanged);
  p->refresh();
  p->refreshVolume();
}

qRcnOverlayControls::~qRcnOverlayControls() = default;

// Another case: a number beyond its raters is cut by the spin box, and that is a change that the scene must hear of.
void qRcnOverlayControls::setRaterCount(int raters, bool levels)
{
  const int before = this->level();
  this->d->Raters = std::max(raters, 1);
  this->d->HasLevels = levels;
  this->d->refresh();
  if (this->level() != before)
  {
    emit readoutChanged(this->readout(), this->level());
  }
}

qRcnOverlayControls::Readout qRcnOverlayControls::readout() const
{
  return this->d->readout();
}

int qRcnOverlayControls::level() const
{
  return this->d->hasLevel() ? this->d->Number->value() : 0;
}

double qRcnOverlayControls::opacity() const
{
  return this->d->Opacity.Box->value() / 100.0;
}

double qRcnOverlayControls::threshold() const
{
  return this->d->Threshold.Box->value() / 100.0;
}

bool qRcnOverlayControls::contourShown() const
{
  return this->d->Contour->isChecked();
}

bool qRcnOverlayControls::levelContoursShown() const
{
  return this->d->LevelContours->isChecked();
}

// The range follows the readout, so the number comes last.
void qRcnOverlayControls::setReadout(Readout readout, int level)
{
  const QSignalBlocker first(this->d->What), second(this->d->Number);
  this->d->What->setCurrentIndex(std::max(this->d->What->findData(readout), 0));
  this->d->refresh();
  this->d->Number->setValue(level);
}

void qRcnOverlayControls::setOpacity(double opacity)
{
  this->d->set(this->d->Opacity, opacity);
}

void qRcnOverlayControls::setThreshold(double threshold)
{
  this->d->set(this->d->Threshold, threshold);
  this->d->refreshVolume();
}

void qRcnOverlayControls::setContourShown(bool shown)
{
  const QSignalBlocker blocker(this->d->Contour);
  this->d->Contour->setChecked(shown);
}

void qRcnOverlayControls::setLevelContoursShown(bool shown)
{
  const QSignalBlocker blocker(this->d->LevelContours);
  this->d->LevelContours->setChecked(shown);
}

void qRcnOverlayControls::setVolume(double extent, const QString& unit)
{
  this->d->Volume = extent;
  this->d->Unit = unit;
  this->d->refreshVolume();
}
