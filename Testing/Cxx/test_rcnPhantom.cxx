// SPDX-License-Identifier: Apache-2.0
// The built-in cases: what the core makes, by name, and the demo's own volume.
#include "rcnPhantom.h"

#include <algorithm>

#include "rcnTest.h"

namespace
{

int64_t Voxels(const rcn::Volume& volume)
{
  return rcn_geometry_voxels(&volume.Geometry());
}

void IsTheCores()
{
  const rcn::Workspace work;
  rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
  options.size[0] = 20;
  options.size[1] = 16;
  options.size[2] = 3;
  options.raters = 3;
  const rcn::Phantom phantom = rcn::MakePhantom(work.Context(), options, rcn_geometry_make(20, 16, 3));
  CHECK(phantom.Raters.size() == 3 && phantom.Raters[2].Name == "Cleo");
  const int64_t voxels = Voxels(phantom.Image);
  std::vector<float> image(static_cast<size_t>(voxels));
  std::vector<uint8_t> masks(static_cast<size_t>(3 * voxels));
  rcn::Check(rcn_phantom_make(image.data(), masks.data(), work.Context(), &options), work.Context());
  CHECK(std::equal(image.begin(), image.end(), static_cast<const float*>(phantom.Image.Data())));
  for (int r = 0; r < 3; ++r)
  {
    CHECK(std::equal(masks.begin() + r * voxels, masks.begin() + (r + 1) * voxels,
      static_cast<const uint8_t*>(phantom.Raters[static_cast<size_t>(r)].Mask.Data())));
  }
  options.raters = 6;
  CHECK_THROWS(rcn::MakePhantom(work.Context(), options, rcn_geometry_make(20, 16, 3)), RCN_EINVALID, "at most 5 raters");
}

/// Label maps of three structures, all of which somebody marks.
void HasThreeStructures()
{
  rcn::Workspace work;
  rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
  options.size[0] = options.size[1] = 48;
  const rcn::Phantom phantom = rcn::MakeStructurePhantom(work.Context(), options, rcn_geometry_make(48, 48, 1));
  CHECK(phantom.Structures.size() == RCN_PHANTOM_STRUCTURES && phantom.Raters.size() == 5);
  work.LoadCase(rcn::CaseOf("example", { phantom.Image }, "example", phantom.Raters, phantom.Structures));
  CHECK(work.Structures().size() == 3 && rcn_votes_structures(work.Votes()) == 3);
  for (int structure = 1; structure <= 3; ++structure)
  {
    work.SelectStructure(structure);
    const double dice = work.Agree(false).Figures->mean_dice;
    CHECK(dice > 0.3 && dice < 0.98);
  }
}

/// Five who agree in part, and another patient for another number; masks outlive the phantom.
void ExamplesDiffer()
{
  rcn::Workspace work;
  rcn::Phantom first = rcn::MakeExample(work.Context()), second = rcn::MakeExample(work.Context(), 1);
  CHECK(first.Image.Geometry().size[2] > 1 && first.Raters.size() == rcn::PhantomRaters().size());
  const float* const a = static_cast<const float*>(first.Image.Data());
  CHECK(!std::equal(a, a + Voxels(first.Image), static_cast<const float*>(second.Image.Data())));
  const std::vector<rcn::RaterMask> kept = first.Raters;
  const rcn::Volume image = first.Image;
  first = rcn::Phantom();
  work.LoadCase(rcn::CaseOf("example", { image }, "example", kept));
  const double dice = work.Agree(false).Figures->mean_dice;
  CHECK(dice > 0.5 && dice < 0.95);
}

} // namespace

int main()
{
  RUN(IsTheCores);
  RUN(HasThreeStructures);
  RUN(ExamplesDiffer);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
