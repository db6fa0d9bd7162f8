// SPDX-License-Identifier: Apache-2.0
#include "rcnPhantom.h"

namespace rcn
{

const std::vector<std::string>& PhantomRaters()
{
  static const std::vector<std::string> names = { "Ada", "Ben", "Cleo", "Dan", "Eva" };
  return names;
}

const std::vector<Structure>& PhantomStructures()
{
  static const std::vector<Structure> structures = { { "left half", { 1 } }, { "right half", { 2 } }, { "vessel", { 3 } } };
  return structures;
}

namespace
{

/// rcn_phantom_make(), or the one of several structures.
using MakeVoxels = rcn_status (*)(float* image, uint8_t* masks, rcn_context* context, const rcn_phantom_options* options);

Phantom Make(rcn_context* context, const rcn_phantom_options& options, const rcn_geometry& geometry, MakeVoxels make)
{
  if (options.raters > static_cast<int>(PhantomRaters().size()))
  {
    throw Error(RCN_EINVALID, "A phantom has at most " + std::to_string(PhantomRaters().size()) + " raters with names.");
  }
  const int64_t voxels = rcn_geometry_voxels(&geometry);
  Phantom out;
  out.Image = Volume::Allocate(geometry, RCN_FLOAT32);
  // Rater after rater in one buffer, which goes with the last of them.
  const auto masks = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(voxels * options.raters));
  Check(make(static_cast<float*>(out.Image.Data()), masks->data(), context, &options), context);
  for (int r = 0; r < options.raters; ++r)
  {
    const rcn_image view = { masks->data() + r * voxels, RCN_UINT8, 1, geometry };
    out.Raters.push_back({ PhantomRaters()[static_cast<size_t>(r)], Volume::Share(view, masks), {}, 0 });
  }
  return out;
}

} // namespace

Phantom MakePhantom(rcn_context* context, const rcn_phantom_options& options, const rcn_geometry& geometry)
{
  return Make(context, options, geometry, rcn_phantom_make);
}

Phantom MakeStructurePhantom(rcn_context* context, const rcn_phantom_options& options, const rcn_geometry& geometry)
{
  Phantom out = Make(context, options, geometry, rcn_phantom_make_labels);
  out.Structures = PhantomStructures();
  return out;
}

Phantom MakeExample(rcn_context* context, int number)
{
  rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
  options.size[0] = 150;
  options.size[1] = 120;
  options.size[2] = 24;
  options.raters = static_cast<int>(PhantomRaters().size());
  options.lesions = 5;
  options.seed = 7 + static_cast<uint64_t>(number);
  rcn_geometry geometry = rcn_geometry_make(options.size[0], options.size[1], options.size[2]);
  geometry.spacing[0] = geometry.spacing[1] = 0.8;
  geometry.spacing[2] = 2.5;
  return MakePhantom(context, options, geometry);
}

} // namespace rcn
