// SPDX-License-Identifier: Apache-2.0
/// What lies over the image: the raters' outlines by name, the levels of consensus, the map of a model or a fusion; and
/// what is known about the voxel under the mouse. Shows and changes the scene, nothing else; which structures there are is
/// told by the owner.
#ifndef qRcnConsensusPanel_h
#define qRcnConsensusPanel_h

#include <QWidget>

#include "qRcnScene.h"

class QCheckBox;
class QComboBox;
class QListWidget;
class qRcnConsensusLegend;
class qRcnOverlayControls;
class qRcnStructures;
class qRcnVolumes;
class qRcnVoxelProbe;

class qRcnConsensusPanel : public QWidget
{
  Q_OBJECT
public:
  explicit qRcnConsensusPanel(qRcnScene* scene, QWidget* parent = nullptr);

  qRcnStructures* structures() const { return this->Structures; }
  QListWidget* raters() const { return this->Raters; }
  QComboBox* layers() const { return this->Layers; }
  qRcnConsensusLegend* legend() const { return this->Legend; }
  qRcnOverlayControls* controls() const { return this->Controls; }
  /// Belongs to the panel, and is put into place by its owner.
  qRcnVoxelProbe* probe() const { return this->Probe; }

public slots:
  /// The voxel under the mouse.
  void showVoxel(bool inside, qint64 x, qint64 y, qint64 z);

private:
  void follow(qRcnScene::Changes what);
  void fillRaters();
  void fillLayers();

  qRcnScene* Scene;
  qRcnStructures* Structures;
  QListWidget* Raters;
  QCheckBox* HeatMap;
  QCheckBox* Contours;
  QComboBox* Layers;
  qRcnConsensusLegend* Legend;
  qRcnOverlayControls* Controls;
  qRcnVolumes* Volumes;
  qRcnVoxelProbe* Probe;
};

#endif
