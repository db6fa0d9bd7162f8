// SPDX-License-Identifier: Apache-2.0
/// Surfaces around levels: balls of known size, one inside the other, in an image that lies askew.
#include "rcnSurfaces.h"

#include <algorithm>
#include <memory>

#include <vtkFeatureEdges.h>
#include <vtkImplicitPolyDataDistance.h>
#include <vtkMassProperties.h>
#include <vtkNew.h>
#include <vtkPointData.h>

#include "rcn/rcn_votes.h"
#include "rcnReport.h"
#include "rcnTest.h"
#include "rcnWorkspace.h"

namespace
{

const int RATERS = 4;
const double RADII[RATERS] = { 16, 13, 13, 8 }; // mm; two raters agree

/// Voxels of 1 x 1.5 x 2 mm, turned, and stored mirrored or not.
rcn_geometry Askew(bool mirrored)
{
  rcn_geometry geometry = rcn_geometry_make(44, 32, 24);
  const double spacing[3] = { 1, 1.5, 2 }, origin[3] = { 30, -40, 7 };
  const double c = std::cos(0.4), s = std::sin(0.4);
  const double direction[9] = { c, -s, 0, s, c, 0, 0, 0, mirrored ? -1.0 : 1.0 };
  std::copy(spacing, spacing + 3, geometry.spacing);
  std::copy(origin, origin + 3, geometry.origin);
  std::copy(direction, direction + 9, geometry.direction);
  return geometry;
}

double FromMiddle(const rcn_geometry& geometry, int64_t x, int64_t y, int64_t z, double off = 0)
{
  const double at[3] = { static_cast<double>(x), static_cast<double>(y), static_cast<double>(z) };
  double square = 0;
  for (int a = 0; a < 3; ++a)
  {
    square += std::pow((at[a] - (geometry.size[a] - 1) / 2.0) * geometry.spacing[a] - (a == 0 ? off : 0), 2);
  }
  return std::sqrt(square);
}

struct Balls
{
  explicit Balls(double off = 0, int missing = -1, bool mirrored = true) : Geometry(Askew(mirrored))
  {
    rcn_context* made = nullptr;
    rcn_context_create(&made, nullptr);
    this->Context.reset(made, rcn_context_destroy);
    rcn_votes* votes = nullptr;
    const int64_t voxels = rcn_geometry_voxels(&this->Geometry);
    std::vector<std::vector<uint8_t>> masks(RATERS, std::vector<uint8_t>(static_cast<size_t>(voxels)));
    std::vector<rcn_mask> views(RATERS);
    for (int r = 0; r < RATERS; ++r)
    {
      size_t i = 0;
      for (int64_t z = 0; z < this->Geometry.size[2]; ++z)
      {
        for (int64_t y = 0; y < this->Geometry.size[1]; ++y)
        {
          for (int64_t x = 0; x < this->Geometry.size[0]; ++x)
          {
            masks[static_cast<size_t>(r)][i++] = FromMiddle(this->Geometry, x, y, z, off) <= RADII[r];
          }
        }
      }
      views[static_cast<size_t>(r)] = {};
      views[static_cast<size_t>(r)].image = { r == missing ? nullptr : masks[static_cast<size_t>(r)].data(), RCN_UINT8, 1,
        this->Geometry };
    }
    rcn::Check(rcn_votes_from_masks(&votes, made, views.data(), RATERS), made);
    this->Votes.reset(votes, rcn_votes_destroy);
  }

  rcn_geometry Geometry;
  std::shared_ptr<rcn_context> Context;
  std::shared_ptr<rcn_votes> Votes;
};

double VolumeOf(vtkPolyData* mesh)
{
  vtkNew<vtkMassProperties> mass;
  mass->SetInputData(mesh);
  return mass->GetVolume();
}

int OpenEdges(vtkPolyData* mesh)
{
  vtkNew<vtkFeatureEdges> edges;
  edges->SetInputData(mesh);
  edges->BoundaryEdgesOn();
  edges->NonManifoldEdgesOff();
  edges->FeatureEdgesOff();
  edges->ManifoldEdgesOff();
  edges->Update();
  return static_cast<int>(edges->GetOutput()->GetNumberOfCells());
}

void BallsOfKnownSize(bool mirrored)
{
  const Balls balls(0, -1, mirrored);
  const std::vector<rcn::Surface> surfaces = rcn::LevelSurfaces(balls.Context.get(), balls.Votes.get());
  CHECK(surfaces.size() == RATERS);
  double center[3] = { 0, 0, 0 };
  const double middle[3] = { (balls.Geometry.size[0] - 1) / 2.0, (balls.Geometry.size[1] - 1) / 2.0,
    (balls.Geometry.size[2] - 1) / 2.0 };
  rcn_geometry_to_world(center, &balls.Geometry, middle);
  rcn::ToRas(center, center);
  for (size_t i = 0; i < surfaces.size(); ++i)
  {
    CHECK(surfaces[i].Level == static_cast<int>(i) + 1);
    CHECK(OpenEdges(surfaces[i].Mesh) == 0);
    CHECK(surfaces[i].Mesh->GetPointData()->GetNormals());
    // Half a voxel of the thickest slices for the masks, a quarter for raters who agree.
    const double* const box = surfaces[i].Mesh->GetBounds();
    for (int a = 0; a < 3; ++a)
    {
      CHECK_NEAR((box[2 * a] + box[2 * a + 1]) / 2, center[a], 0.6);
      CHECK_NEAR((box[2 * a + 1] - box[2 * a]) / 2, RADII[i], 1.5);
    }
    const double ball = 4.0 / 3 * 3.14159265 * std::pow(RADII[i], 3);
    CHECK_NEAR(VolumeOf(surfaces[i].Mesh) / ball, 1, 0.08);
    CHECK(i == 0 || VolumeOf(surfaces[i].Mesh) < VolumeOf(surfaces[i - 1].Mesh));
    // Outwards, however the image is stored.
    for (vtkIdType p = 0; p < surfaces[i].Mesh->GetNumberOfPoints(); p += 50)
    {
      double normal[3], point[3], outwards = 0;
      surfaces[i].Mesh->GetPointData()->GetNormals()->GetTuple(p, normal);
      surfaces[i].Mesh->GetPoint(p, point);
      for (int a = 0; a < 3; ++a)
      {
        outwards += normal[a] * (point[a] - center[a]);
      }
      CHECK(outwards > 0);
    }
  }
}

void BallsStoredUpright()
{
  BallsOfKnownSize(false);
}

void BallsStoredMirrored()
{
  BallsOfKnownSize(true);
}

/// The property that matters: no point of a surface lies outside the one around it, not even where raters agree.
void Nested()
{
  const Balls balls;
  const std::vector<rcn::Surface> surfaces = rcn::LevelSurfaces(balls.Context.get(), balls.Votes.get());
  for (size_t i = 1; i < surfaces.size(); ++i)
  {
    vtkNew<vtkImplicitPolyDataDistance> around;
    around->SetInput(surfaces[i - 1].Mesh);
    double furthest = -1e9;
    for (vtkIdType p = 0; p < surfaces[i].Mesh->GetNumberOfPoints(); p += 7)
    {
      furthest = std::max(furthest, around->EvaluateFunction(surfaces[i].Mesh->GetPoint(p)));
    }
    CHECK(furthest < 0);
  }
}

void AtTheBorderAndMissing()
{
  // Out of the image by half: closed all the same.
  const Balls out(22);
  for (const rcn::Surface& surface : rcn::LevelSurfaces(out.Context.get(), out.Votes.get()))
  {
    CHECK(OpenEdges(surface.Mesh) == 0);
  }
  // A rater who did not answer is no level.
  const Balls three(0, 2);
  const std::vector<rcn::Surface> surfaces = rcn::LevelSurfaces(three.Context.get(), three.Votes.get());
  CHECK(surfaces.size() == 3 && surfaces.back().Level == 3);
  // Nobody marked anything: nothing, not an error.
  const Balls far(500);
  CHECK(rcn::LevelSurfaces(far.Context.get(), far.Votes.get()).empty());
}

/// Level probabilities that fall with the distance: P(at least t) passes one half at RADII.
void OfPredictions()
{
  const Balls balls;
  const rcn::Volume levels = rcn::Volume::Allocate(balls.Geometry, RCN_FLOAT32, RATERS + 1);
  const rcn::Volume probability = rcn::Volume::Allocate(balls.Geometry, RCN_FLOAT32);
  auto* to = static_cast<float*>(levels.Data());
  auto* one = static_cast<float*>(probability.Data());
  for (int64_t z = 0; z < balls.Geometry.size[2]; ++z)
  {
    for (int64_t y = 0; y < balls.Geometry.size[1]; ++y)
    {
      for (int64_t x = 0; x < balls.Geometry.size[0]; ++x)
      {
        double at[RATERS + 2] = { 1 };
        for (int t = 1; t <= RATERS; ++t)
        {
          at[t] = 1 / (1 + std::exp(FromMiddle(balls.Geometry, x, y, z) - RADII[t - 1]));
        }
        at[RATERS + 1] = 0;
        for (int t = 0; t <= RATERS; ++t)
        {
          *to++ = static_cast<float>(at[t] - at[t + 1]);
        }
        *one++ = static_cast<float>(at[1]);
      }
    }
  }
  const std::vector<rcn::Surface> surfaces = rcn::LevelSurfaces(balls.Context.get(), levels, 0.5);
  CHECK(surfaces.size() == RATERS);
  for (size_t i = 0; i < surfaces.size(); ++i)
  {
    CHECK_NEAR(VolumeOf(surfaces[i].Mesh) / (4.0 / 3 * 3.14159265 * std::pow(RADII[i], 3)), 1, 0.04);
  }
  // At another threshold, where the logistic curve says.
  const std::vector<rcn::Surface> sure = rcn::LevelSurfaces(balls.Context.get(), probability, 0.9);
  CHECK(sure.size() == 1 && sure[0].Level == 0);
  CHECK_NEAR(std::cbrt(VolumeOf(sure[0].Mesh) * 3 / 4 / 3.14159265), RADII[0] - std::log(9.0), 0.3);
  CHECK_THROWS(rcn::LevelSurfaces(balls.Context.get(), probability, 0), RCN_EINVALID, "above 0");
  CHECK_THROWS(rcn::LevelSurfaces(balls.Context.get(), probability, 1.5), RCN_EINVALID, "above 0");
  CHECK_THROWS(
    rcn::LevelSurfaces(balls.Context.get(), rcn::Volume::Allocate(balls.Geometry, RCN_UINT8), 0.5), RCN_EINVALID, "float32");
}

void ManyRatersAndTriangles()
{
  CHECK(rcn::SurfaceLevels(3, 6) == std::vector<int>({ 1, 2, 3 }));
  CHECK(rcn::SurfaceLevels(12, 4) == std::vector<int>({ 1, 5, 8, 12 }));
  CHECK(rcn::SurfaceLevels(1, 6) == std::vector<int>({ 1 }));
  CHECK(rcn::SurfaceLevels(0, 6).empty());
  const Balls balls;
  rcn::SurfaceOptions few;
  few.Triangles = 4000;
  vtkIdType triangles = 0;
  for (const rcn::Surface& surface : rcn::LevelSurfaces(balls.Context.get(), balls.Votes.get(), few))
  {
    triangles += surface.Mesh->GetNumberOfCells();
    CHECK(OpenEdges(surface.Mesh) == 0);
    const double radius = RADII[surface.Level - 1];
    CHECK_NEAR(VolumeOf(surface.Mesh) / (4.0 / 3 * 3.14159265 * std::pow(radius, 3)), 1, 0.1);
  }
  CHECK(triangles > 2000 && triangles < 5000);
  rcn::SurfaceOptions never;
  never.Canceled = [] { return true; };
  CHECK_THROWS(rcn::LevelSurfaces(balls.Context.get(), balls.Votes.get(), never), RCN_ECANCELLED, "Canceled");
}

} // namespace

int main()
{
  RUN(BallsStoredUpright);
  RUN(BallsStoredMirrored);
  RUN(Nested);
  RUN(AtTheBorderAndMissing);
  RUN(OfPredictions);
  RUN(ManyRatersAndTriangles);
  return Failures != 0;
}
