// SPDX-License-Identifier: Apache-2.0
/// Cases for tests of what shows slices: phantoms, and volumes that lie in the world in their own way.
#ifndef rcnSceneTest_h
#define rcnSceneTest_h

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include <QStringList>

#include "qRcnScene.h"
#include "rcn/rcn_phantom.h"
#include "rcnWorkspace.h"

struct TestCase
{
  rcn_geometry Geometry{};
  std::vector<rcn::Volume> Images;
  std::shared_ptr<rcn_votes> Votes;
  QStringList Raters;

  void show(qRcnScene& scene) const { scene.setCase(this->Images, this->Votes, this->Geometry, this->Raters); }
};

/// The context of all votes made here.
inline rcn_context* TestContext()
{
  static const auto context = []() {
    rcn_context* made = nullptr;
    rcn_context_create(&made, nullptr);
    return std::unique_ptr<rcn_context, rcn::ContextDeleter>(made);
  }();
  return context.get();
}

inline std::shared_ptr<rcn_votes> MakeVotes(const rcn_geometry& geometry, const std::vector<std::vector<uint8_t>>& masks)
{
  std::vector<rcn_mask> views(masks.size());
  for (size_t r = 0; r < masks.size(); ++r)
  {
    views[r].image = rcn_image{ masks[r].empty() ? nullptr : const_cast<uint8_t*>(masks[r].data()), RCN_UINT8, 1, geometry };
  }
  rcn_votes* votes = nullptr;
  rcn::Check(rcn_votes_from_masks(&votes, TestContext(), views.data(), static_cast<int>(views.size())), TestContext());
  return std::shared_ptr<rcn_votes>(votes, rcn_votes_destroy);
}

inline TestCase MakePhantom(int64_t x, int64_t y, int64_t z, int raters = 5, const std::array<double, 3>& origin = { 0, 0, 0 })
{
  TestCase made;
  made.Geometry = rcn_geometry_make(x, y, z);
  std::copy(origin.begin(), origin.end(), made.Geometry.origin);
  rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
  options.size[0] = x;
  options.size[1] = y;
  options.size[2] = z;
  options.raters = raters;
  const auto voxels = static_cast<size_t>(x * y * z);
  std::vector<uint8_t> masks(voxels * static_cast<size_t>(raters));
  rcn::Volume image = rcn::Volume::Allocate(made.Geometry, RCN_FLOAT32);
  rcn::Check(rcn_phantom_make(static_cast<float*>(image.Data()), masks.data(), TestContext(), &options), TestContext());
  std::vector<std::vector<uint8_t>> single;
  for (int r = 0; r < raters; ++r)
  {
    const auto first = masks.begin() + static_cast<std::ptrdiff_t>(voxels) * r;
    single.emplace_back(first, first + static_cast<std::ptrdiff_t>(voxels));
    made.Raters << QString("Rater %1").arg(QChar('A' + r % 26));
  }
  made.Images.push_back(image);
  made.Votes = MakeVotes(made.Geometry, single);
  return made;
}

/// Levels that follow the raters' votes, a little blurred towards their neighbors: what a model might say.
inline rcn::Volume MakeLevels(const TestCase& one, double sure = 0.8)
{
  const int raters = rcn_votes_raters(one.Votes.get());
  const auto voxels = static_cast<size_t>(rcn_geometry_voxels(&one.Geometry));
  std::vector<float> table(static_cast<size_t>(rcn_votes_pattern_count(one.Votes.get())));
  const rcn_pattern* patterns = rcn_votes_patterns(one.Votes.get());
  for (size_t p = 0; p < table.size(); ++p)
  {
    for (uint64_t bits = patterns[p].marked; bits; bits &= bits - 1)
    {
      table[p] += 1;
    }
  }
  std::vector<float> level(voxels);
  rcn::Check(rcn_votes_expand(level.data(), TestContext(), one.Votes.get(), table.data()), TestContext());
  rcn::Volume levels = rcn::Volume::Allocate(one.Geometry, RCN_FLOAT32, raters + 1);
  auto* out = static_cast<float*>(levels.Data());
  for (size_t v = 0; v < voxels; ++v)
  {
    for (int k = 0; k <= raters; ++k)
    {
      *out++ = static_cast<float>(k == static_cast<int>(level[v]) ? sure : (1 - sure) / raters);
    }
  }
  return levels;
}

/// A volume in which every voxel knows where it is: value = f(x, y, z).
inline rcn::Volume MakeVolume(const rcn_geometry& geometry, const std::function<double(int64_t, int64_t, int64_t)>& f)
{
  rcn::Volume volume = rcn::Volume::Allocate(geometry, RCN_FLOAT32);
  auto* out = static_cast<float*>(volume.Data());
  for (int64_t z = 0; z < geometry.size[2]; ++z)
  {
    for (int64_t y = 0; y < geometry.size[1]; ++y)
    {
      for (int64_t x = 0; x < geometry.size[0]; ++x)
      {
        *out++ = static_cast<float>(f(x, y, z));
      }
    }
  }
  return volume;
}

#endif
