// SPDX-License-Identifier: Apache-2.0
/// Phantoms of three structures as files, for tests of what reads files.
#ifndef rcnStructureData_h
#define rcnStructureData_h

#include "rcnTestData.h"

/// Cases c0, c1, ... of the raters A, B and C, with a label map of each rater: cNR.nrrd. Structures "left", "right" and
/// "Gefäß", by the values 1, 2 and 7. Returns the path of their data list.
inline std::string WriteStructureList(const Folder& folder, const PhantomSet& set = PhantomSet())
{
  constexpr int raters = 3;
  const rcn::Workspace workspace;
  const rcn_geometry geometry = rcn_geometry_make(set.Size[0], set.Size[1], set.Size[2]);
  const int64_t voxels = rcn_geometry_voxels(&geometry);
  rcn::JsonArray splits[3];
  for (int i = 0; i < set.Training + set.Validation + set.Test; ++i)
  {
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    std::copy(set.Size, set.Size + 3, options.size);
    options.raters = raters;
    options.seed = static_cast<uint64_t>(i) + 1;
    const rcn::Volume image = rcn::Volume::Allocate(geometry, RCN_FLOAT32),
                      labels = rcn::Volume::Allocate(geometry, RCN_UINT8, raters);
    auto* values = static_cast<uint8_t*>(labels.Data());
    rcn::Check(
      rcn_phantom_make_labels(static_cast<float*>(image.Data()), values, workspace.Context(), &options), workspace.Context());
    std::replace(values, values + raters * voxels, uint8_t{ 3 }, uint8_t{ 7 });
    const std::string id = "c" + std::to_string(i);
    rcn::WriteImage(folder / (id + ".nrrd"), image.View(), rcn::Content::Probability);
    rcn::JsonObject files;
    for (int r = 0; r < raters; ++r)
    {
      const std::string name(1, static_cast<char>('A' + r)), file = id + name + ".nrrd";
      rcn::WriteImage(folder / file, { values + r * voxels, RCN_UINT8, 1, geometry }, rcn::Content::Levels);
      files.Set(name.c_str(), file);
    }
    splits[i < set.Training                 ? 0
        : i < set.Training + set.Validation ? 1
                                            : 2]
      .Add(rcn::JsonObject{ { "id", id }, { "image", id + ".nrrd" }, { "label", files } });
  }
  const rcn::JsonObject root{ { "raters", std::vector<std::string>{ "A", "B", "C" } },
    { "structures", rcn::JsonObject{ { "left", 1 }, { "right", 2 }, { "Gefäß", 7 } } }, { "training", splits[0] },
    { "validation", splits[1] }, { "test", splits[2] } };
  const std::string path = folder / "structures.json";
  rcn::WriteText(path, rcn::JsonText(root.Get()));
  return path;
}

#endif
