// SPDX-License-Identifier: Apache-2.0
/// Phantoms as files, for tests of what reads files.
#ifndef rcnTestData_h
#define rcnTestData_h

#include <algorithm>

#include "rcn/rcn_phantom.h"
#include "rcnJson.h"
#include "rcnTest.h"
#include "rcnWorkspace.h"

struct PhantomSet
{
  int64_t Size[3] = { 32, 32, 1 };
  int Training = 5, Validation = 2, Test = 0;
  int Lesions = 2;
};

/// Cases c0, c1, ... of the raters A, B and C: image and masks as files of the folder, cNR.nrrd the mask of rater R.
inline rcn::DataList WritePhantoms(const Folder& folder, const PhantomSet& set = PhantomSet())
{
  constexpr int raters = 3;
  const rcn::Workspace workspace;
  rcn::DataList list;
  list.Path = "list";
  list.Raters = { "A", "B", "C" };
  for (int i = 0; i < set.Training + set.Validation + set.Test; ++i)
  {
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    std::copy(set.Size, set.Size + 3, options.size);
    options.raters = raters;
    options.lesions = set.Lesions;
    options.seed = static_cast<uint64_t>(i) + 1;
    const rcn_geometry geometry = rcn_geometry_make(set.Size[0], set.Size[1], set.Size[2]);
    const int64_t voxels = rcn_geometry_voxels(&geometry);
    const rcn::Volume image = rcn::Volume::Allocate(geometry, RCN_FLOAT32),
                      masks = rcn::Volume::Allocate(geometry, RCN_UINT8, raters);
    rcn::Check(
      rcn_phantom_make(static_cast<float*>(image.Data()), static_cast<uint8_t*>(masks.Data()), workspace.Context(), &options),
      workspace.Context());
    rcn::Case one;
    one.Id = "c" + std::to_string(i);
    one.Split = i < set.Training ? "training" : i < set.Training + set.Validation ? "validation" : "test";
    one.Images = { folder / (one.Id + ".nrrd") };
    rcn::WriteImage(one.Images.front(), image.View(), rcn::Content::Probability);
    for (int r = 0; r < raters; ++r)
    {
      rcn::RaterFile rater;
      rater.Name = list.Raters[static_cast<size_t>(r)];
      rater.Path = folder / (one.Id + rater.Name + ".nrrd");
      rcn::WriteImage(
        rater.Path, { static_cast<uint8_t*>(masks.Data()) + r * voxels, RCN_UINT8, 1, geometry }, rcn::Content::Mask);
      one.Raters.push_back(rater);
    }
    list.Cases.push_back(one);
  }
  return list;
}

/// The same with their data list as a file; returns its path.
inline std::string WritePhantomList(const Folder& folder, const PhantomSet& set = PhantomSet())
{
  const rcn::JsonHandle root(json_object());
  for (const char* split : { "training", "validation", "test" })
  {
    json_object_set_new(root.get(), split, json_array());
  }
  const rcn::DataList list = WritePhantoms(folder, set);
  json_object_set_new(root.get(), "raters", rcn::JsonStrings(list.Raters));
  for (const rcn::Case& one : list.Cases)
  {
    json_t* labels = json_object();
    for (const rcn::RaterFile& rater : one.Raters)
    {
      json_object_set_new(labels, rater.Name.c_str(), rcn::JsonString(rater.Path));
    }
    json_array_append_new(json_object_get(root.get(), one.Split.c_str()),
      json_pack("{s:s, s:s, s:o}", "id", one.Id.c_str(), "image", one.Images.front().c_str(), "label", labels));
  }
  const std::string path = folder / "list.json";
  rcn::WriteText(path, rcn::JsonText(root.get()));
  return path;
}

#endif
