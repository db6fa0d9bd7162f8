// SPDX-License-Identifier: Apache-2.0
/// Surfaces around the voxels that at least so many raters mark, or are expected to: one inside the other.
///
/// INPUTS   votes, or a prediction: level probabilities (K + 1 components) or one probability, float32
/// OUTPUTS  a closed mesh of triangles per level, in RAS millimeters, with normals that point outwards
///
/// Votes: the counts of marks are taken as a field, and the surface of level t lies where it passes t - 1/2 (flying edges,
/// Schroeder et al. 2015). Level sets of one field never cross, and where raters agree to the voxel their surfaces lie side by
/// side, less than half a voxel from the masks' border, instead of in one place. A voxel that stands alone keeps its surface.
/// Predictions: where P(at least t raters) passes the threshold. A light smoothing without shrinking (Taubin 1995, windowed
/// sinc) takes the steps of the voxels away; vertices of large meshes are clustered (Lindstrom 2000), so that they
/// can be turned without a graphics card.
#ifndef rcnSurfaces_h
#define rcnSurfaces_h

#include <cstdint>
#include <functional>
#include <vector>

#include <vtkPolyData.h>
#include <vtkSmartPointer.h>

#include "rcnVolume.h"

struct rcn_context;
struct rcn_votes;

namespace rcn
{

struct Surface
{
  int Level = 0; ///< t of "at least t raters"; 0: of one probability
  vtkSmartPointer<vtkPolyData> Mesh;
};

struct SurfaceOptions
{
  int Most = 6;                   ///< surfaces; of more levels some are left out, not the first and the last
  int64_t Triangles = 120000;     ///< of all surfaces together, about
  std::function<bool()> Canceled; ///< asked now and then; true: Error (RCN_ECANCELLED)
};

/// The levels that get a surface: all 1 ... raters, or `most` of them, evenly.
std::vector<int> SurfaceLevels(int raters, int most);

/// Outermost first. Levels that no voxel has are left out. Throws Error.
std::vector<Surface> LevelSurfaces(
  rcn_context* context, const rcn_votes* votes, const SurfaceOptions& options = SurfaceOptions());
std::vector<Surface> LevelSurfaces(
  rcn_context* context, const Volume& prediction, double threshold, const SurfaceOptions& options = SurfaceOptions());

} // namespace rcn

#endif
