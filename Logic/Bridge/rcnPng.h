// SPDX-License-Identifier: Apache-2.0
/// PNG without ITK: pictures made in memory, for pages, and the chunks of a file that ITK neither reports nor writes.
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
  /// A file that cannot be opened has no chunk.
  explicit PngReader(const std::string& path);

  /// False at the end, for what is not a chunk, and for a file that is not a PNG.
  bool Next(PngChunk& chunk);

private:
  std::ifstream File_;
  double Size_ = 0;
};

/// A picture as the bytes of a PNG file: 8-bit pixels, row after row; `channels` is 1 (gray) or 3 (red, green, blue).
std::string EncodePng(const std::vector<uint8_t>& pixels, int64_t columns, int64_t rows, int channels);

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
