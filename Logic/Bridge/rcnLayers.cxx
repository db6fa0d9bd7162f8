// SPDX-License-Identifier: Apache-2.0
#include "rcnLayers.h"

namespace rcn
{

Layers LayersOfCase(
  const Layers& now, const Layers& chosen, const std::set<std::string>& allImages, const std::set<std::string>& allMaps)
{
  const bool ours = now.Image.empty() || allImages.count(now.Image) > 0 || allMaps.count(now.Map) > 0;
  if (!ours || chosen.Image.empty())
  {
    return now;
  }
  Layers next = chosen;
  if (!now.Map.empty() && !allMaps.count(now.Map))
  {
    next.Map = now.Map;
  }
  return next;
}

double LevelOpacity(int k, int count)
{
  // Through all outer surfaces together about half of the light of an inner one comes.
  return k >= count ? 1 : 0.15 + 0.3 * static_cast<double>(k - 1) / static_cast<double>(count);
}

} // namespace rcn
