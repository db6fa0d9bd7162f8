// SPDX-License-Identifier: Apache-2.0
/// A folder with the files of one DICOM series as a volume.
///
/// ITK takes the distance of the first and the last slice and divides it by their number, whatever lies between them. This
/// looks at the place of every slice first.
#ifndef rcnDicomSeries_h
#define rcnDicomSeries_h

#include <string>

#include <itkImageIOBase.h>

#include "rcnVolume.h"

namespace rcn
{

/// Throws Error (RCN_EFORMAT) that names the folder and the files when they are no volume: several series, missing slices,
/// two at one position, different sizes, spacings or orientations. With a gantry tilt the third axis is oblique, as it was.
/// Without `voxels` Data() is null.
Volume ReadDicomSeries(const std::string& folder, bool voxels);

/// Whether a DICOM file whose header was read says how large its pixels are; ITK gives it a spacing of 1 where it does not.
bool DicomKnowsSpacing(const itk::ImageIOBase& io);

} // namespace rcn

#endif
