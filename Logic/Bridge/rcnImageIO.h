// SPDX-License-Identifier: Apache-2.0
/// Image files in and out, with ITK; also DICOM folders. The images themselves are in rcnVolume.h.
#ifndef rcnImageIO_h
#define rcnImageIO_h

#include <functional>
#include <string>
#include <vector>

#include "rcnFileName.h"
#include "rcnVolume.h"

namespace rcn
{

/// Reads a file (NRRD, NIfTI, MetaImage, PNG, TIFF, JPEG, DICOM, ...) or a folder with one DICOM
/// series. Throws Error naming the file: RCN_EIO when it cannot be opened, RCN_EFORMAT when it is not
/// an image that can be used, RCN_EDATA when a voxel is NaN or infinite. Alpha is left out: it is not a channel.
Volume ReadImage(const std::string& path);

/// The same for a map that is looked at in places only: elsewhere it may be NaN, so that it may be anywhere.
Volume ReadMap(const std::string& path);

/// The same without the voxels: geometry, type, channels and segments. Data() is null.
Volume ReadImageHeader(const std::string& path);

/// The same for a mask: where a picture has a palette, the numbers of its entries are the labels, not their colors.
Volume ReadMask(const std::string& path);
Volume ReadMaskHeader(const std::string& path);

/// What WriteImage() has to store.
enum class Content
{
  Mask,       ///< 0 and 1
  Levels,     ///< small whole numbers
  Probability ///< 0 ... 1
};

/// How WriteImage() goes about it.
struct WriteOptions
{
  /// Asked while writing (NRRD, NIfTI) and afterwards: when it says true, the target stays as it was and RCN_ECANCELLED is
  /// thrown.
  std::function<bool()> Canceled = {};
  std::string Note = {};              ///< goes into the file where the format has a place for it (NRRD, MetaImage)
  int Threads = 0;                    ///< that compress (NRRD, NIfTI); 0: as many as the core would use
  std::vector<Segment> Segments = {}; ///< of a label map: their names go into an NRRD file, as Slicer keeps those of segments
};

/// Writes float32 or uint8 voxels (any number of components) in the geometry's dimension, compressed
/// where the format can, beside the target and then renamed: the target is never half written. The bytes are the same for any
/// number of threads.
///
/// Formats that hold whole numbers only (PNG) get masks as 0/255 and probabilities as 0 ... 65535, and which number means 1
/// (Volume::Scale()); the returned sentence says so, and what of the geometry a format cannot keep (empty otherwise).
/// Throws Error that names the path: RCN_ESPACE when the disk is full, otherwise RCN_EIO or RCN_EUNSUPPORTED.
std::string WriteImage(const std::string& path, const rcn_image& image, Content content, const WriteOptions& options = {});

/// The sentence WriteImage() would fail with because of the path alone (unknown or unsuitable format,
/// missing folder, no permission); empty when it looks writable. Lets long work fail early.
std::string CheckOutput(const std::string& path, Content content);

/// The files of one image, a channel or more each. Throws Error that names the file: RCN_EDATA for one that is zero
/// everywhere, RCN_EGEOMETRY for one of another geometry than the first.
std::vector<Volume> ReadImages(rcn_context* context, const std::vector<std::string>& paths, double tolerance);

/// The libraries under ITK print to standard error by themselves. A program whose standard error belongs
/// to a person switches that off for the time of reading and writing; inside another application
/// (Slicer) it stays as it is, the default.
void SetLibrariesQuiet(bool quiet);

} // namespace rcn

#endif
