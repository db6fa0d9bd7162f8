// SPDX-License-Identifier: Apache-2.0
/// VTK images as volumes and back, without copying voxels.
///
/// Slicer keeps an image as vtkImageData (extent and voxels) with a matrix from voxel indices to RAS millimeters beside it;
/// a segment's image may cover only a part of the grid, so that its extent begins anywhere. The bridge and ITK have the
/// first voxel as number 0 and LPS millimeters.
#ifndef rcnVtkImage_h
#define rcnVtkImage_h

#include <string>
#include <vector>

#include <vtkSmartPointer.h>

#include "rcnImageIO.h"

class vtkImageData;
class vtkMatrix4x4;

namespace rcn
{

/// The place of the voxels of an extent. Throws Error (RCN_EDATA) that begins with `name` when there are no voxels or the
/// matrix squeezes them flat.
rcn_geometry GeometryFromVtk(const int extent[6], vtkMatrix4x4* ijkToRas, const std::string& name);

/// The matrix of a geometry, for an extent that begins at 0.
void IjkToRas(vtkMatrix4x4* ijkToRas, const rcn_geometry& geometry);

/// Shares the scalars: they stay valid as long as the volume, also when the image gets others or goes. The image's own
/// spacing and origin are not looked at. Throws Error (RCN_EDATA) that begins with `name` for an image without voxels or of a
/// type that holds no numbers.
Volume VolumeFromVtk(vtkImageData* image, vtkMatrix4x4* ijkToRas, const std::string& name);

/// Shares the volume's buffer; spacing 1 and origin 0, as MRML wants it. The place is in IjkToRas().
vtkSmartPointer<vtkImageData> VtkFromVolume(const Volume& volume);

/// One scalar image per component, as scenes want them; and the other way round, in the geometry of the first. All must be
/// of one size and type: Error (RCN_EDATA) otherwise.
std::vector<vtkSmartPointer<vtkImageData>> ComponentsOf(const Volume& volume);
Volume Interleave(const std::vector<Volume>& components);

} // namespace rcn

#endif
