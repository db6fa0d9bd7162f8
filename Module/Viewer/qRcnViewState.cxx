// SPDX-License-Identifier: Apache-2.0
#include "qRcnViewState.h"

#include <algorithm>

#include "rcnNames.h"

namespace
{

/// "level:2": exactly two raters, which only a picture can show; the other readouts are those of a model.
const std::string LevelPrefix = "level:";

} // namespace

void qRcnViewState::store(rcn::SessionView& view, const qRcnScene& scene)
{
  if (scene.isEmpty())
  {
    return;
  }
  view.HasCursor = true;
  const std::array<double, 3> ras = scene.cursorRas();
  std::copy(ras.begin(), ras.end(), view.Cursor);
  view.HasWindow = !scene.images().empty();
  view.Window = scene.white() - scene.black();
  view.Level = (scene.white() + scene.black()) / 2;
  view.HiddenRaters.clear();
  for (int r = 0; r < scene.raterNames().size(); ++r)
  {
    if (!scene.isRaterVisible(r))
    {
      view.HiddenRaters.push_back(scene.raterNames()[r].toStdString());
    }
  }
  view.HeatMap = scene.isHeatMapVisible();
  view.Contours = scene.areContoursVisible();
  view.IsolatedLevel = scene.isolatedLevel();
  const char* palette = rcn_palette_name(scene.levelPalette());
  view.Palette = palette ? palette : "";
  const int shown = scene.shownPrediction();
  view.Overlay = shown < 0 ? "" : scene.prediction(shown).Name.toStdString();
  view.Readout = scene.readout() == RCN_SLICE_LEVEL
    ? LevelPrefix + std::to_string(scene.readoutNumber())
    : rcn::ReadoutText(static_cast<rcn_readout>(scene.readout()), scene.readoutNumber());
  view.Opacity = scene.predictionOpacity();
  view.Threshold = scene.threshold();
  view.ThresholdContour = scene.isThresholdContourVisible();
  view.LevelContours = scene.areLevelContoursVisible();
}

void qRcnViewState::restore(qRcnScene& scene, const rcn::SessionView& view)
{
  for (int r = 0; r < scene.raterNames().size(); ++r)
  {
    const std::string name = scene.raterNames()[r].toStdString();
    scene.setRaterVisible(r, std::find(view.HiddenRaters.begin(), view.HiddenRaters.end(), name) == view.HiddenRaters.end());
  }
  scene.setHeatMapVisible(view.HeatMap);
  scene.setContoursVisible(view.Contours);
  scene.setIsolatedLevel(view.IsolatedLevel);
  for (int palette = 0; rcn_palette_name(static_cast<rcn_palette>(palette)); ++palette)
  {
    if (view.Palette == rcn_palette_name(static_cast<rcn_palette>(palette)))
    {
      scene.setLevelPalette(static_cast<rcn_palette>(palette));
    }
  }
  rcn_readout readout = RCN_READOUT_MAJORITY;
  int number = 0;
  if (rcn::ParseReadout(readout, number, view.Readout))
  {
    scene.setReadout(readout, number);
  }
  else if (view.Readout.rfind(LevelPrefix, 0) == 0)
  {
    scene.setReadout(RCN_SLICE_LEVEL, QString::fromStdString(view.Readout.substr(LevelPrefix.size())).toInt());
  }
  scene.setPredictionOpacity(view.Opacity);
  scene.setThreshold(view.Threshold);
  scene.setThresholdContourVisible(view.ThresholdContour);
  scene.setLevelContoursVisible(view.LevelContours);
  if (view.HasWindow)
  {
    scene.setWindow(view.Level - view.Window / 2, view.Level + view.Window / 2);
  }
  if (view.HasCursor)
  {
    scene.setCursorRas({ view.Cursor[0], view.Cursor[1], view.Cursor[2] });
  }
}
