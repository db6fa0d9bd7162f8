// SPDX-License-Identifier: Apache-2.0
/// The chunks of a PNG file: what ITK does not tell about one, and what it does not write.
#ifndef rcnPng_h
#define rcnPng_h

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace rcn
{

struct PngChunk
{
  std::string Kind; ///< four letters; a capital first one: no reader may ignore it
  std::vector<unsigned char> Body;
  bool Sound = false; ///< whether the checksum fits
};

/// Four bytes as PNG stores a number.
uint32_t PngNumber(const unsigned char* at);

/// Reads one chunk after the other.
class PngReader
{
public:
  explicit PngReader(const std::string& path);

  /// False at the end, for what is no chunk, and for a file that is no PNG.
  bool Next(PngChunk& chunk);

private:
  std::ifstream File_;
  double Size_ = 0;
};

/// Whether there is a chunk of this kind before the voxels.
bool HasPngChunk(const std::string& path, const std::string& kind);

/// A copy without the chunks of one kind. Throws Error (RCN_EIO) that names the copy.
void CopyPngWithout(const std::string& path, const std::string& kind, const std::string& copy);

/// The stored number that means 1, where the file says so (pCAL, "calibration of pixel values": a straight line through
/// 0); otherwise 0.
double PngScale(const std::string& path);

/// Makes a file say that its largest possible number means 1. Throws Error (RCN_EIO).
void SetPngScale(const std::string& path);

} // namespace rcn

#endif
