/// Whether an image file holds what its header promises.
///
/// The readers below ITK trust their files: niftilib and MetaIO give a truncated file without a word, niftilib reads NaN
/// as 0, teem does not look at the checksum, libpng ends the program over a bad header, and ITK's own TIFF reader gives
/// other numbers for types it does not know. This looks first.
#ifndef rcnFileCheck_h
#define rcnFileCheck_h

#include <cstdint>
#include <string>

namespace rcn
{

/// What is wrong with the header of a PNG, NIfTI or TIFF file, e.g. "is a damaged PNG file."; empty when
/// nothing is, and for all other formats. Looks at a few bytes.
std::string CheckHeader(const std::string& path);

/// What is wrong with the voxels: too few of them, a checksum that does not fit, or one that is not finite in a NIfTI
/// file, where only the file itself still tells. Reads NIfTI, NRRD and MetaImage files to the end; empty for formats whose readers find that out by themselves.
/// `bytes`: size of the voxels in memory.
std::string CheckVoxels(const std::string& path, double bytes);

/// "has the value nan at voxel (1, 2, 3); ...": `voxel` counts through images of that size, one after the other.
std::string NotFinite(double value, int64_t voxel, const int64_t size[3]);

} // namespace rcn

#endif
