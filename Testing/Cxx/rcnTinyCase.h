// SPDX-License-Identifier: Apache-2.0
/// A case that can be judged by hand: four voxels in a row, and two raters.
///
///   voxel        0    1    2    3
///   rater A      1    1    0    0
///   rater B      1    0    0    0
///   Probability  0.9  0.6  0.2  0.1
#ifndef rcnTinyCase_h
#define rcnTinyCase_h

#include <algorithm>

#include "rcnJudge.h"
#include "rcnTest.h"

struct TinyCase
{
  rcn::Workspace Work;
  std::vector<rcn::RaterMask> Masks;

  explicit TinyCase(const std::vector<std::vector<uint8_t>>& masks = { { 1, 1, 0, 0 }, { 1, 0, 0, 0 } })
  {
    for (size_t r = 0; r < masks.size(); ++r)
    {
      rcn::RaterMask mask;
      mask.Name = std::string(1, static_cast<char>('A' + r));
      mask.Mask = rcn::Volume::Allocate(rcn_geometry_make(static_cast<int64_t>(masks[r].size()), 1, 1), RCN_UINT8);
      std::copy(masks[r].begin(), masks[r].end(), static_cast<uint8_t*>(mask.Mask.Data()));
      this->Masks.push_back(mask);
    }
    this->Work.LoadCase(rcn::CaseOf("tiny", {}, "", this->Masks));
  }
};

inline rcn::Volume TinyMap(const std::vector<float>& values, int components = 1)
{
  const int64_t voxels = static_cast<int64_t>(values.size()) / components;
  const rcn::Volume map = rcn::Volume::Allocate(rcn_geometry_make(voxels, 1, 1), RCN_FLOAT32, components);
  std::copy(values.begin(), values.end(), static_cast<float*>(map.Data()));
  return map;
}

inline rcn::Volume TinyProbability()
{
  return TinyMap({ 0.9f, 0.6f, 0.2f, 0.1f });
}

/// Levels 0, 1 and 2 of each voxel; their expected share of raters is TinyProbability().
inline rcn::Volume TinyLevels()
{
  return TinyMap({ 0.05f, 0.1f, 0.85f, 0.2f, 0.4f, 0.4f, 0.7f, 0.2f, 0.1f, 0.85f, 0.1f, 0.05f }, 3);
}

/// Ten bins on the whole image.
inline rcn::EvaluationOptions TinyOptions(rcn_region region = RCN_REGION_WHOLE)
{
  rcn::EvaluationOptions options;
  options.Calib.bins = 10;
  options.Region.region = region;
  options.Region.margin = 0;
  return options;
}

inline rcn::Case NamedCase(const std::string& id, const std::string& patient = "")
{
  rcn::Case one;
  one.Id = id;
  one.Patient = patient;
  return one;
}

#endif
