// SPDX-License-Identifier: Apache-2.0
/// How a scene is shown, as a workspace stores it. Layout and panel belong to the window, not to the scene.
#ifndef qRcnViewState_h
#define qRcnViewState_h

#include "qRcnScene.h"
#include "rcnSession.h"

namespace qRcnViewState
{

/// Writes cursor, window, raters, colors, overlay and readout of the scene into `view`; an empty scene changes nothing.
void store(rcn::SessionView& view, const qRcnScene& scene);

/// The way back. The overlay is not part of it: it is chosen when its map is added to the scene.
void restore(qRcnScene& scene, const rcn::SessionView& view);

} // namespace qRcnViewState

#endif
