// SPDX-License-Identifier: Apache-2.0
// What a view shows after a case was chosen.
#include "rcnLayers.h"

#include "rcnTest.h"

namespace
{

const std::set<std::string> Images{ "ct1", "ct2" }, Maps{ "consensus1", "probability1", "consensus2" };

rcn::Layers After(const rcn::Layers& now, const rcn::Layers& chosen)
{
  return rcn::LayersOfCase(now, chosen, Images, Maps);
}

void AViewShowsTheChosenCase()
{
  const rcn::Layers first{ "ct1", "consensus1" }, second{ "ct2", "" };
  CHECK(After({ "", "" }, first) == first);
  CHECK(After(first, second) == second);
  CHECK(After(second, first) == first); // back again, with its map
  CHECK(After({ "ct1", "probability1" }, first) == first);
  CHECK(After({ "", "consensus2" }, first) == first);      // a map without an image is still another case's
  CHECK(After({ "other", "consensus2" }, first) == first); // and a stale one over somebody's image
}

void WhatAPersonPutThereStays()
{
  const rcn::Layers first{ "ct1", "consensus1" };
  CHECK((After({ "pet", "" }, first) == rcn::Layers{ "pet", "" }));
  CHECK((After({ "pet", "dose" }, first) == rcn::Layers{ "pet", "dose" }));
  CHECK((After({ "ct2", "dose" }, first) == rcn::Layers{ "ct1", "dose" }));
  CHECK((After({ "ct2", "" }, { "", "" }) == rcn::Layers{ "ct2", "" })); // a case without an image
}

void InnerSurfacesAreSeen()
{
  for (const int count : { 1, 2, 5, 64 })
  {
    double through = 1, last = 0;
    for (int k = 1; k <= count; ++k)
    {
      const double opacity = rcn::LevelOpacity(k, count);
      CHECK(opacity > last && opacity <= 1);
      last = opacity;
      through *= k < count && k <= 4 ? 1 - opacity : 1;
    }
    CHECK(last == 1 && through > 0.25);
  }
}

} // namespace

int main()
{
  RUN(AViewShowsTheChosenCase);
  RUN(WhatAPersonPutThereStays);
  RUN(InnerSurfacesAreSeen);
  return Failures != 0;
}
