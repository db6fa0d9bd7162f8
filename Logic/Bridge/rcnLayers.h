// SPDX-License-Identifier: Apache-2.0
/// Which image and which map a slice view shows when a case is chosen, and how see-through surfaces inside each other are: the
/// decisions of an application that shows several cases, without its views.
#ifndef rcnLayers_h
#define rcnLayers_h

#include <set>
#include <string>

namespace rcn
{

/// What a view shows, by the application's own names; empty: nothing.
struct Layers
{
  std::string Image; ///< below
  std::string Map;   ///< over it

  bool operator==(const Layers& other) const { return this->Image == other.Image && this->Map == other.Map; }
};

/// A view after a case was chosen. One that shows nothing, or something of any case (`all`: its image and its maps), shows this
/// case's; one in which a person put another image stays as it is, and so does a map that is not of a case.
Layers LayersOfCase(
  const Layers& now, const Layers& chosen, const std::set<std::string>& allImages, const std::set<std::string>& allMaps);

/// The opacity of the surface "at least k of count raters": the inner ones are seen through the outer ones, the innermost is
/// solid.
double LevelOpacity(int k, int count);

} // namespace rcn

#endif
