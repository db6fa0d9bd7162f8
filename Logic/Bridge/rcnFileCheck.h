// SPDX-License-Identifier: Apache-2.0
/// Whether an image file holds what its header promises.
///
/// The readers below ITK trust their files: niftilib, MetaIO and GDCM give a truncated file without a word, niftilib reads NaN
/// as 0, teem does not look at the checksum, libpng ends the program over a bad header, and ITK's own TIFF reader gives
/// other numbers for types it does not know. This looks first.
#ifndef rcnFileCheck_h
#define rcnFileCheck_h

#include <string>

#include "rcn/rcn_image.h"

namespace rcn
{

/// What is wrong with the header of a PNG, NIfTI or TIFF file, e.g. "is a damaged PNG file."; empty when
/// nothing is, and for all other formats. Looks at a few bytes.
std::string CheckHeader(const std::string& path);

struct VoxelCheck
{
  std::string Wrong;           ///< "ends before ...": too few voxels, or a checksum that does not fit; empty: nothing is
  bool LosesNotFinite = false; ///< there are NaN or infinite voxels that the reader makes zeros of
};

/// Reads NIfTI, NRRD and MetaImage files to the end, and checks where a DICOM file should end; finds nothing in formats whose
/// readers do so by themselves.
/// `bytes`: size of the voxels in memory.
VoxelCheck CheckVoxels(const std::string& path, double bytes);

/// Puts the NaN and infinite voxels of a NIfTI file back into the image that was read from it.
void RestoreNotFinite(const rcn_image& image, const std::string& path);

} // namespace rcn

#endif
