/// Whether an image file holds what its header promises.
///
/// The readers below ITK trust their files: niftilib and MetaIO give a truncated file without a word,
/// teem does not look at the checksum, and libpng ends the program over a bad header. This looks first.
#ifndef rcnFileCheck_h
#define rcnFileCheck_h

#include <string>

namespace rcn
{

/// What is wrong with the header of a PNG or NIfTI file, e.g. "is a damaged PNG file."; empty when
/// nothing is, and for all other formats. Looks at a few bytes.
std::string CheckHeader(const std::string& path);

/// What is wrong with the voxels: too few of them, or a checksum that does not fit. Reads NIfTI, NRRD
/// and MetaImage files to the end; empty for formats whose readers find that out by themselves.
/// `bytes`: size of the voxels in memory.
std::string CheckVoxels(const std::string& path, double bytes);

} // namespace rcn

#endif
