// SPDX-License-Identifier: Apache-2.0
// What is predicted about several structures: the map of one of them, and a correction of all.
#include "rcnStructureMaps.h"

#include <cmath>
#include <limits>

#include "rcnEvaluation.h"
#include "rcnTest.h"

namespace
{

constexpr int Voxels = 4, Structures = 2, Raters = 3;

rcn::Volume Filled(const std::vector<float>& values, int components)
{
  const rcn::Volume volume =
    rcn::Volume::Allocate(rcn_geometry_make(static_cast<int64_t>(values.size()) / components, 1, 1), RCN_FLOAT32, components);
  std::copy(values.begin(), values.end(), static_cast<float*>(volume.Data()));
  return volume;
}

rcn::StructureMaps Example(double correlation)
{
  rcn::StructureMaps maps;
  maps.Shares = Filled({ .1f, .6f, 0, 0, 1, 0, .25f, .5f }, Structures);
  maps.Correlation = correlation;
  return maps;
}

float At(const rcn::Volume& map, int voxel, int component)
{
  return static_cast<const float*>(map.Data())[voxel * map.View().components + component];
}

/// Levels of a share and a correlation: they add up to one, and their expected readout is the share.
void LevelsOfOne()
{
  const rcn::Workspace work;
  for (const double correlation : { 0.0, 0.3, 0.999 })
  {
    const rcn::StructureMaps maps = Example(correlation);
    CHECK(maps.Count() == Structures && maps.HasLevels());
    for (int structure = 1; structure <= Structures; ++structure)
    {
      const rcn::Volume levels = maps.Of(work.Context(), structure, Raters, "x");
      CHECK(levels.View().components == Raters + 1);
      for (int i = 0; i < Voxels; ++i)
      {
        double sum = 0, mean = 0;
        for (int k = 0; k <= Raters; ++k)
        {
          sum += At(levels, i, k);
          mean += static_cast<double>(k) / Raters * At(levels, i, k);
        }
        CHECK(std::fabs(sum - 1) < 1e-5 && std::fabs(mean - At(maps.Shares, i, structure - 1)) < 1e-5);
      }
    }
  }
}

/// Where raters' correlation is not known, or all of them would agree, a share is one probability.
void OneProbability()
{
  const rcn::Workspace work;
  for (const double correlation : { std::numeric_limits<double>::quiet_NaN(), 1.0 })
  {
    const rcn::StructureMaps maps = Example(correlation);
    const rcn::Volume second = maps.Of(work.Context(), 2, Raters, "x");
    CHECK(!maps.HasLevels() && second.View().components == 1 && At(second, 0, 0) == .6f && At(second, 3, 0) == .5f);
  }
  rcn::StructureMaps heads;
  heads.Levels = { Filled({ .5f, 0, 0, .5f }, 4), Filled({ 1, 0, 0, 0 }, 4) };
  CHECK(heads.Count() == 2 && heads.HasLevels() && heads.Of(work.Context(), 2, Raters, "x").Data() == heads.Levels[1].Data());
}

rcn::Recalibration Temperature(double value, int labels)
{
  rcn::Recalibration correction;
  correction.Correction.method = RCN_RECALIB_TEMPERATURE;
  correction.Correction.levels = labels;
  correction.Correction.parameters[0] = value;
  return correction;
}

/// p ~ p^(1/T) over all labels: structures and background still add up to one.
void CorrectsAllLabels()
{
  const rcn::Workspace work;
  const rcn::StructureMaps maps = Example(0.2);
  const rcn::StructureMaps soft = rcn::ApplyRecalibration(work.Context(), Temperature(2, 3), maps, nullptr, "x");
  const double roots[] = { std::sqrt(.3), std::sqrt(.1), std::sqrt(.6) }, sum = roots[0] + roots[1] + roots[2];
  CHECK(std::fabs(At(soft.Shares, 0, 0) - roots[1] / sum) < 1e-5 && std::fabs(At(soft.Shares, 0, 1) - roots[2] / sum) < 1e-5);
  CHECK(At(soft.Shares, 2, 0) > 0.999f && soft.Correlation == 0.2 && At(maps.Shares, 0, 1) == .6f);
  CHECK_THROWS(
    rcn::ApplyRecalibration(work.Context(), Temperature(2, 4), maps, nullptr, "pred.nrrd"), RCN_EINVALID, "pred.nrrd");
  rcn::StructureMaps heads;
  heads.Levels = { Filled({ 1, 0, 0, 0 }, 4), Filled({ 1, 0, 0, 0 }, 4) };
  CHECK_THROWS(rcn::ApplyRecalibration(work.Context(), Temperature(2, 3), heads, nullptr, "x"), RCN_EINVALID,
    "separate levels of each structure");
}

/// Outside of the voxels that matter, a map may hold anything.
void CorrectsInside()
{
  const rcn::Workspace work;
  const rcn::StructureMaps maps = Example(0.2);
  static_cast<float*>(maps.Shares.Data())[2] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS(rcn::ApplyRecalibration(work.Context(), Temperature(2, 3), maps, nullptr, "x"), RCN_EDATA, "x");
  const std::vector<uint8_t> inside = { 1, 0, 1, 1 };
  const rcn::StructureMaps soft = rcn::ApplyRecalibration(work.Context(), Temperature(2, 3), maps, &inside, "x");
  CHECK(At(soft.Shares, 1, 0) == 0 && At(soft.Shares, 1, 1) == 0 && At(soft.Shares, 0, 0) > .1f);
}

} // namespace

int main()
{
  RUN(LevelsOfOne);
  RUN(OneProbability);
  RUN(CorrectsAllLabels);
  RUN(CorrectsInside);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
