// SPDX-License-Identifier: Apache-2.0
#include "rcnSurfaces.h"

#include <algorithm>
#include <cmath>

#include <vtkExtractVOI.h>
#include <vtkFlyingEdges3D.h>
#include <vtkImageConstantPad.h>
#include <vtkImageData.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkPolyDataNormals.h>
#include <vtkQuadricClustering.h>
#include <vtkReverseSense.h>
#include <vtkTransform.h>
#include <vtkWindowedSincPolyDataFilter.h>

#include "rcn/rcn_calib.h"
#include "rcn/rcn_votes.h"
#include "rcnError.h"
#include "rcnVtkImage.h"
#include "rcnWorkspace.h"

namespace rcn
{

namespace
{

void ThrowIfCanceled(const SurfaceOptions& options)
{
  if (options.Canceled && options.Canceled())
  {
    throw Error(RCN_ECANCELLED, "Canceled.");
  }
}

/// The part of a field with a rim of nothing around it, so that surfaces are closed at the image's border, too.
vtkSmartPointer<vtkImageData> Rimmed(const Volume& field, const rcn_box& box)
{
  int extent[6];
  for (int a = 0; a < 3; ++a)
  {
    extent[2 * a] = static_cast<int>(box.first[a]);
    extent[2 * a + 1] = static_cast<int>(box.end[a]) - 1;
  }
  vtkNew<vtkExtractVOI> part;
  part->SetInputData(VtkFromVolume(field));
  part->SetVOI(extent);
  for (int a = 0; a < 3; ++a)
  {
    --extent[2 * a];
    ++extent[2 * a + 1];
  }
  vtkNew<vtkImageConstantPad> rim;
  rim->SetInputConnection(part->GetOutputPort());
  rim->SetOutputWholeExtent(extent);
  rim->SetConstant(0);
  rim->Update();
  return rim->GetOutput();
}

/// Fewer triangles: vertices that share a cube of some voxels become one. Decimation edge by edge gives better triangles, and
/// takes thirty times as long.
vtkSmartPointer<vtkPolyData> Clustered(vtkPolyData* mesh, int64_t triangles)
{
  const double cube = std::sqrt(static_cast<double>(mesh->GetNumberOfCells()) / static_cast<double>(triangles));
  double box[6];
  mesh->GetBounds(box);
  const auto divisions = [&](int a) { return std::max(static_cast<int>(std::ceil((box[2 * a + 1] - box[2 * a]) / cube)), 1); };
  vtkNew<vtkQuadricClustering> clusters;
  clusters->SetInputData(mesh);
  clusters->AutoAdjustNumberOfDivisionsOff();
  clusters->SetNumberOfDivisions(divisions(0), divisions(1), divisions(2));
  clusters->UseInternalTrianglesOn();
  clusters->PreventDuplicateCellsOff(); // two that fall together keep the surface closed
  clusters->Update();
  return clusters->GetOutput();
}

/// Where the field passes a value, by voxel index; smoothed. Uniform weights make the smoothing the same for any spacing.
vtkSmartPointer<vtkPolyData> Contour(vtkImageData* field, double value, int64_t triangles)
{
  vtkNew<vtkFlyingEdges3D> contour;
  contour->SetInputData(field);
  contour->SetValue(0, value);
  contour->ComputeNormalsOff();
  contour->ComputeGradientsOff();
  contour->ComputeScalarsOff();
  contour->Update();
  vtkSmartPointer<vtkPolyData> mesh = contour->GetOutput();
  if (mesh->GetNumberOfCells() == 0)
  {
    return mesh; // the filters below would complain
  }
  if (mesh->GetNumberOfCells() > triangles)
  {
    mesh = Clustered(mesh, triangles);
  }
  vtkNew<vtkWindowedSincPolyDataFilter> smooth;
  smooth->SetInputData(mesh);
  smooth->SetNumberOfIterations(15);
  smooth->SetPassBand(0.1);
  smooth->NormalizeCoordinatesOn();
  smooth->FeatureEdgeSmoothingOff();
  smooth->BoundarySmoothingOff();
  smooth->NonManifoldSmoothingOn();
  smooth->Update();
  return smooth->GetOutput();
}

/// In RAS millimeters, with normals.
vtkSmartPointer<vtkPolyData> InPlace(vtkPolyData* mesh, const rcn_geometry& geometry)
{
  vtkNew<vtkTransform> place;
  vtkNew<vtkMatrix4x4> matrix;
  IjkToRas(matrix, geometry);
  place->SetMatrix(matrix);
  vtkNew<vtkPoints> points;
  place->TransformPoints(mesh->GetPoints(), points);
  vtkNew<vtkPolyData> moved;
  moved->SetPoints(points);
  moved->SetPolys(mesh->GetPolys());
  // An image may be stored mirrored: then triangles show their backs.
  vtkNew<vtkReverseSense> reverse;
  reverse->SetInputData(moved);
  reverse->ReverseCellsOn();
  vtkNew<vtkPolyDataNormals> normals;
  if (matrix->Determinant() < 0)
  {
    normals->SetInputConnection(reverse->GetOutputPort());
  }
  else
  {
    normals->SetInputData(moved);
  }
  normals->SplittingOff();
  // All triangles are turned the same way; looking for it again would stumble over edges that clusters share.
  normals->ConsistencyOff();
  normals->Update();
  return normals->GetOutput();
}

rcn_box Whole(const rcn_geometry& geometry)
{
  rcn_box box{};
  std::copy_n(geometry.size, 3, box.end);
  return box;
}

/// Adds the surface of a level unless there is none.
void Add(
  std::vector<Surface>& surfaces, int level, vtkImageData* field, double value, const rcn_geometry& geometry, int64_t triangles)
{
  const vtkSmartPointer<vtkPolyData> mesh = Contour(field, value, triangles);
  if (mesh->GetNumberOfCells() > 0)
  {
    surfaces.push_back({ level, InPlace(mesh, geometry) });
  }
}

} // namespace

std::vector<int> SurfaceLevels(int raters, int most)
{
  std::vector<int> levels;
  const int count = std::max(std::min(raters, most), 0);
  for (int i = 0; i < count; ++i)
  {
    levels.push_back(count > 1 ? 1 + static_cast<int>(std::lround(static_cast<double>(i) * (raters - 1) / (count - 1))) : 1);
  }
  return levels;
}

std::vector<Surface> LevelSurfaces(rcn_context* context, const rcn_votes* votes, const SurfaceOptions& options)
{
  const rcn_geometry& geometry = *rcn_votes_geometry(votes);
  const rcn_pattern* patterns = rcn_votes_patterns(votes);
  std::vector<uint8_t> marks(static_cast<size_t>(rcn_votes_pattern_count(votes)));
  for (size_t p = 0; p < marks.size(); ++p)
  {
    marks[p] = static_cast<uint8_t>(rcn_popcount(patterns[p].marked));
  }
  const Volume counts = Volume::Allocate(geometry, RCN_UINT8);
  Check(rcn_votes_expand_u8(static_cast<uint8_t*>(counts.Data()), context, votes, marks.data()), context);
  rcn_box box;
  Check(rcn_votes_union_box(&box, context, votes, 1), context);
  const vtkSmartPointer<vtkImageData> field = Rimmed(counts, box);
  const std::vector<int> levels = SurfaceLevels(rcn_popcount(rcn_votes_present(votes)), options.Most);
  std::vector<Surface> surfaces;
  for (const int level : levels)
  {
    ThrowIfCanceled(options);
    Add(surfaces, level, field, level - 0.5, geometry, options.Triangles / static_cast<int64_t>(levels.size()));
  }
  return surfaces;
}

std::vector<Surface> LevelSurfaces(
  rcn_context* context, const Volume& prediction, double threshold, const SurfaceOptions& options)
{
  const rcn_image& view = prediction.View();
  if (view.type != RCN_FLOAT32 || !(threshold > 0 && threshold <= 1))
  {
    throw Error(RCN_EINVALID, "The threshold must be above 0 and at most 1, and the map float32.");
  }
  // At the threshold itself belongs to the inside.
  const double value = std::nextafter(static_cast<float>(threshold), 0.0f);
  std::vector<Surface> surfaces;
  if (view.components == 1)
  {
    Add(surfaces, 0, Rimmed(prediction, Whole(view.geometry)), value, view.geometry, options.Triangles);
    return surfaces;
  }
  const std::vector<int> levels = SurfaceLevels(view.components - 1, options.Most);
  const Volume field = Volume::Allocate(view.geometry, RCN_FLOAT32);
  for (const int level : levels)
  {
    ThrowIfCanceled(options);
    Check(rcn_readout_apply(static_cast<float*>(field.Data()), context, &view, RCN_READOUT_AT_LEAST, level), context);
    Add(surfaces, level, Rimmed(field, Whole(view.geometry)), value, view.geometry,
      options.Triangles / static_cast<int64_t>(levels.size()));
  }
  return surfaces;
}

} // namespace rcn
