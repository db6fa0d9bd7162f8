// SPDX-License-Identifier: Apache-2.0
#include "qRcnConsensusPanel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "qRcnConsensusLegend.h"
#include "qRcnOverlayControls.h"
#include "qRcnStructures.h"
#include "qRcnStyle.h"
#include "qRcnVolumes.h"
#include "qRcnVoxelProbe.h"

namespace
{

QLabel* Heading(const QString& text)
{
  auto* label = new QLabel(text);
  QFont font = label->font();
  font.setBold(true);
  label->setFont(font);
  return label;
}

} // namespace

// The scene is the truth. Every control writes into it, and all of them are filled from it in follow(), whoever changed it:
// this panel, a key, or a workspace that was opened.
qRcnConsensusPanel::qRcnConsensusPanel(qRcnScene* scene, QWidget* parent)
  : QWidget(parent),
    Scene(scene),
    Structures(new qRcnStructures),
    Raters(new QListWidget),
    HeatMap(new QCheckBox(tr("Consensus colors"))),
    Contours(new QCheckBox(tr("Outlines"))),
    Layers(new QComboBox),
    Legend(new qRcnConsensusLegend),
    Controls(new qRcnOverlayControls),
    Volumes(new qRcnVolumes),
    Probe(new qRcnVoxelProbe(this))
{
  this->Raters->setObjectName("raters");
  this->Raters->setAccessibleName(tr("Raters' outlines"));
  this->Raters->setToolTip(tr("Whose outline is drawn. Keys 1 to 9 do the same."));
  this->Raters->setUniformItemSizes(true);
  this->HeatMap->setObjectName("heatMap");
  this->HeatMap->setToolTip(tr("Color each voxel by how many raters marked it (key H)"));
  this->Contours->setObjectName("contours");
  this->Contours->setToolTip(tr("Draw the raters' outlines (key C)"));
  this->Layers->setObjectName("layers");
  this->Layers->setToolTip(tr("The map of a model or of a fusion that is shown over the image"));
  this->Layers->setAccessibleName(this->Layers->toolTip());

  this->Probe->hide(); // until it has a place
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(this->Structures);
  this->Structures->list()->setToolTip(this->Structures->list()->toolTip() + tr(" Keys: S and Shift+S."));
  auto* shown = new QHBoxLayout;
  shown->addWidget(Heading(tr("Raters")));
  shown->addStretch();
  shown->addWidget(this->Contours);
  shown->addWidget(this->HeatMap);
  layout->addLayout(shown);
  layout->addWidget(this->Raters);
  layout->addWidget(Heading(tr("Consensus")));
  layout->addWidget(this->Legend);
  auto* over = new QHBoxLayout;
  over->addWidget(Heading(tr("Overlay")));
  over->addWidget(this->Layers, 1);
  layout->addLayout(over);
  layout->addWidget(this->Controls);
  layout->addWidget(this->Volumes);
  layout->addStretch(1);

  connect(this->Raters, &QListWidget::itemChanged, this, [this](QListWidgetItem* item) {
    this->Scene->setRaterVisible(this->Raters->row(item), item->checkState() == Qt::Checked);
  });
  connect(this->HeatMap, &QCheckBox::toggled, scene, &qRcnScene::setHeatMapVisible);
  connect(this->Contours, &QCheckBox::toggled, scene, &qRcnScene::setContoursVisible);
  connect(this->Layers, QOverload<int>::of(&QComboBox::currentIndexChanged), this,
    // "none" comes first.
    [this](int index) { this->Scene->setShownPrediction(index - 1); });
  connect(this->Legend, &qRcnConsensusLegend::levelIsolated, scene, &qRcnScene::setIsolatedLevel);
  connect(this->Legend, &qRcnConsensusLegend::levelPaletteChanged, scene, &qRcnScene::setLevelPalette);
  connect(this->Controls, &qRcnOverlayControls::readoutChanged, this,
    [this](qRcnOverlayControls::Readout readout, int level) { this->Scene->setReadout(readout, level); });
  connect(this->Controls, &qRcnOverlayControls::opacityChanged, scene, &qRcnScene::setPredictionOpacity);
  connect(this->Controls, &qRcnOverlayControls::thresholdChanged, scene, &qRcnScene::setThreshold);
  connect(this->Controls, &qRcnOverlayControls::contourShownChanged, scene, &qRcnScene::setThresholdContourVisible);
  connect(this->Controls, &qRcnOverlayControls::levelContoursShownChanged, scene, &qRcnScene::setLevelContoursVisible);
  connect(scene, &qRcnScene::volumeChanged, this->Controls, &qRcnOverlayControls::setVolume);
  connect(scene, &qRcnScene::volumesChanged, this, [this]() { this->Volumes->setVolumes(this->Scene->volumes()); });
  connect(this->Volumes, &qRcnVolumes::componentActivated, this, [this](int index) {
    const int64_t* at = this->Scene->volumes().Components[static_cast<size_t>(index)].At;
    this->Scene->visit({ at[0], at[1], at[2] });
  });
  connect(scene, &qRcnScene::changed, this, &qRcnConsensusPanel::follow);
  this->follow(qRcnScene::Case | qRcnScene::Overlay | qRcnScene::Contours | qRcnScene::Predictions);
}

void qRcnConsensusPanel::follow(qRcnScene::Changes what)
{
  if (what & qRcnScene::Case)
  {
    this->fillRaters();
    this->Probe->setRaters(this->Scene->raterNames());
  }
  if (what & (qRcnScene::Case | qRcnScene::Votes))
  {
    this->Legend->setLevels(this->Scene->levelVolumes(), this->Scene->extentUnit(), this->Scene->extentName());
    this->Probe->clear();
  }
  if (what & (qRcnScene::Case | qRcnScene::Predictions))
  {
    this->fillLayers();
  }
  if (what & (qRcnScene::Case | qRcnScene::Contours | qRcnScene::Overlay | qRcnScene::Predictions))
  {
    // Filling them in is not a person's choice.
    const QSignalBlocker raters(this->Raters), heat(this->HeatMap), contours(this->Contours), layers(this->Layers);
    for (int r = 0; r < this->Raters->count(); ++r)
    {
      this->Raters->item(r)->setCheckState(this->Scene->isRaterVisible(r) ? Qt::Checked : Qt::Unchecked);
    }
    this->HeatMap->setChecked(this->Scene->isHeatMapVisible());
    this->Contours->setChecked(this->Scene->areContoursVisible());
    const int shown = this->Scene->shownPrediction();
    this->Layers->setCurrentIndex(shown + 1);
    const bool levels = shown >= 0 && this->Scene->prediction(shown).hasLevels();
    // Of a model, as many as it learned from, which may be others than those of the case.
    const int raters1 = levels ? this->Scene->prediction(shown).Levels.ChannelCount() - 1 : this->Scene->raterCount();
    this->Controls->setRaterCount(raters1, levels || shown < 0); // of no map, there is nothing to say
    this->Controls->setReadout(static_cast<qRcnOverlayControls::Readout>(this->Scene->readout()), this->Scene->readoutNumber());
    this->Controls->setOpacity(this->Scene->predictionOpacity());
    this->Controls->setThreshold(this->Scene->threshold());
    this->Controls->setContourShown(this->Scene->isThresholdContourVisible());
    this->Controls->setLevelContoursShown(this->Scene->areLevelContoursVisible());
    this->Controls->setVolume(this->Scene->volumeAboveThreshold(), this->Scene->extentUnit());
    this->Controls->setEnabled(shown >= 0);
    this->Legend->setIsolatedLevel(this->Scene->isolatedLevel());
    this->Legend->setLevelPalette(this->Scene->levelPalette());
  }
}

void qRcnConsensusPanel::fillRaters()
{
  const QSignalBlocker blocker(this->Raters);
  this->Raters->clear();
  const QStringList names = this->Scene->raterNames();
  for (int r = 0; r < names.size(); ++r)
  {
    const bool present = this->Scene->isRaterPresent(r);
    auto* item = new QListWidgetItem(
      qRcnStyle::dotIcon(this->Scene->raterColor(r)), present ? names[r] : tr("%1 (no mask)").arg(names[r]));
    // Who did not answer stays in the list, so that numbers and colors are the same in all cases.
    item->setFlags(present ? Qt::ItemIsUserCheckable | Qt::ItemIsEnabled | Qt::ItemIsSelectable : Qt::NoItemFlags);
    item->setCheckState(this->Scene->isRaterVisible(r) ? Qt::Checked : Qt::Unchecked);
    this->Raters->addItem(item);
  }
  // As high as its raters, up to six; more of them scroll.
  const int rows = qBound(1, int(names.size()), 6);
  const int height = names.isEmpty() ? 0 : this->Raters->sizeHintForRow(0);
  this->Raters->setFixedHeight(rows * qMax(height, this->fontMetrics().height()) + 2 * this->Raters->frameWidth() + 2);
}

void qRcnConsensusPanel::fillLayers()
{
  const QSignalBlocker blocker(this->Layers);
  this->Layers->clear();
  this->Layers->addItem(tr("none"));
  for (int p = 0; p < this->Scene->predictionCount(); ++p)
  {
    this->Layers->addItem(this->Scene->prediction(p).Name);
  }
}

void qRcnConsensusPanel::showVoxel(bool inside, qint64 x, qint64 y, qint64 z)
{
  if (!inside || this->Scene->isEmpty())
  {
    this->Probe->clear();
    return;
  }
  qRcnVoxel voxel;
  const qRcnScene::Voxel at = { x, y, z };
  // A picture without spacing has no position in the body.
  if (this->Scene->geometry().unit == RCN_MM)
  {
    const std::array<double, 3> ras = this->Scene->rasOf(at);
    std::copy(ras.begin(), ras.end(), voxel.Ras);
  }
  std::copy(at.begin(), at.end(), voxel.Index);
  const rcn_geometry& geometry = this->Scene->geometry();
  // x runs fastest; components of a voxel lie next to each other.
  const int64_t number = x + geometry.size[0] * (y + geometry.size[1] * z);
  for (const rcn::Volume& image : this->Scene->images())
  {
    for (int c = 0; c < image.ChannelCount(); ++c)
    {
      const rcn::Channel channel = image.GetChannel(c);
      voxel.Image.push_back(rcn_image_element(&channel.Image, number * channel.Image.components + channel.Component));
    }
  }
  if (const rcn_votes* votes = this->Scene->votes())
  {
    const rcn_pattern& pattern = *rcn_votes_at(votes, number);
    voxel.Marked = pattern.marked;
    voxel.Answered = pattern.answered;
  }
  const int shown = this->Scene->shownPrediction();
  if (shown >= 0)
  {
    const qRcnScene::Prediction& prediction = this->Scene->prediction(shown);
    const rcn_image& map = prediction.volume().View();
    voxel.Map = prediction.Name;
    for (int k = 0; prediction.hasLevels() && k < map.components; ++k)
    {
      voxel.Levels.push_back(rcn_image_element(&map, number * map.components + k));
    }
    voxel.Probability = prediction.hasLevels() ? NAN : rcn_image_element(&map, number);
  }
  this->Probe->setVoxel(voxel);
}
