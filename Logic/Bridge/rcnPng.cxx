// SPDX-License-Identifier: Apache-2.0
#include "rcnPng.h"

#include "rcnError.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <itk_zlib.h>

namespace rcn
{

namespace
{

const unsigned char Signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };

/// Numbers in PNG are big-endian.
std::string Bytes(uint32_t value)
{
  return { static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
    static_cast<char>(value) };
}

/// Over kind and body, as the specification says (5.3).
uint32_t Checksum(const PngChunk& chunk)
{
  uLong sum = crc32(0, reinterpret_cast<const Bytef*>(chunk.Kind.data()), 4);
  sum = chunk.Body.empty() ? sum : crc32(sum, chunk.Body.data(), static_cast<uInt>(chunk.Body.size()));
  return static_cast<uint32_t>(sum);
}

/// Length, kind, body, checksum. Of a chunk that was read with a wrong checksum this makes a right one: callers that care look
/// at Sound.
std::string Packed(const PngChunk& chunk)
{
  return Bytes(static_cast<uint32_t>(chunk.Body.size())) + chunk.Kind + std::string(chunk.Body.begin(), chunk.Body.end()) +
    Bytes(Checksum(chunk));
}

/// What a filter of PNG (1 ... 4: Sub, Up, Average, Paeth; specification 9.2) expects from the neighbors of a byte.
int Expected(int filter, int left, int above, int corner)
{
  const int paeth = left + above - corner;
  const int toLeft = std::abs(paeth - left), toAbove = std::abs(paeth - above), toCorner = std::abs(paeth - corner);
  switch (filter)
  {
    case 1: return left;
    case 2: return above;
    case 3: return (left + above) / 2;
    case 4: return toLeft <= toAbove && toLeft <= toCorner ? left : toAbove <= toCorner ? above : corner;
    default: return 0;
  }
}

/// One row as it is compressed: the filter's number and the differences from what it expects. Of the five filters the one
/// with the smallest differences: they compress best (the specification's own advice, 12.8).
std::vector<uint8_t> FilteredRow(const uint8_t* row, const uint8_t* before, size_t bytes, size_t channels)
{
  std::vector<uint8_t> best;
  int64_t least = INT64_MAX;
  for (int filter = 0; filter < 5; ++filter)
  {
    std::vector<uint8_t> tried(1, static_cast<uint8_t>(filter));
    int64_t sum = 0;
    for (size_t i = 0; i < bytes; ++i)
    {
      const bool first = i < channels;
      const int left = first ? 0 : row[i - channels], corner = first || !before ? 0 : before[i - channels];
      tried.push_back(static_cast<uint8_t>(row[i] - Expected(filter, left, before ? before[i] : 0, corner)));
      sum += std::abs(static_cast<int8_t>(tried.back()));
    }
    if (sum < least)
    {
      least = sum;
      best.swap(tried);
    }
  }
  return best;
}

/// The largest number a voxel can hold; those of fewer than 8 bits are stretched to 8 when read.
double LargestOf(const PngChunk& header)
{
  return header.Body.size() > 8 && header.Body[8] == 16 ? 65535 : 255;
}

void Write(const std::string& path, const std::string& content)
{
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file)
  {
    throw Error(RCN_EIO, path + " cannot be written.");
  }
}

/// All chunks as they stand in the file, changed by `change`, which appends one to the text.
template <class TChange> std::string Rewritten(const std::string& path, TChange change)
{
  PngReader reader(path);
  PngChunk chunk;
  std::string text(reinterpret_cast<const char*>(Signature), sizeof Signature);
  while (reader.Next(chunk))
  {
    change(text, chunk);
  }
  return text;
}

/// "name", x0, x1, kind of equation, number of parameters, "unit", parameters: the stored number that means 1, or 0.
double ScaleFrom(const std::vector<unsigned char>& body, double largest)
{
  const std::string text(body.begin(), body.end());
  const std::string::size_type name = text.find('\0');
  if (name == std::string::npos || text.size() < name + 11)
  {
    return 0;
  }
  const unsigned char* fixed = body.data() + name + 1;
  const std::string::size_type unit = text.find('\0', name + 11);
  // Only a straight line through 0 (linear, two parameters, from 0 to something): other equations are not ours, and guessing
  // would scale probabilities wrongly.
  if (PngNumber(fixed) != 0 || PngNumber(fixed + 4) == 0 || fixed[8] != 0 || fixed[9] != 2 || unit == std::string::npos)
  {
    return 0;
  }
  const std::string::size_type between = text.find('\0', unit + 1);
  if (between == std::string::npos || std::strtod(text.c_str() + unit + 1, nullptr) != 0)
  {
    return 0;
  }
  const double slope = std::strtod(text.c_str() + between + 1, nullptr);
  return slope > 0 && std::isfinite(slope) ? largest / slope : 0;
}

} // namespace

uint32_t PngNumber(const unsigned char* at)
{
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 | at[3];
}

PngReader::PngReader(const std::string& path) : File_(path, std::ios::binary)
{
  unsigned char signature[sizeof Signature];
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (!failure && this->File_.read(reinterpret_cast<char*>(signature), sizeof signature) &&
    std::equal(signature, signature + sizeof signature, Signature))
  {
    this->Size_ = static_cast<double>(size);
  }
}

bool PngReader::Next(PngChunk& chunk)
{
  unsigned char head[8], tail[4];
  if (this->Size_ == 0 || !this->File_.read(reinterpret_cast<char*>(head), 8))
  {
    return false;
  }
  const uint32_t size = PngNumber(head);
  // Of a hostile or cut-off file: nothing is allocated that the file cannot hold.
  if (size > 0x7FFFFFFF || static_cast<double>(size) > this->Size_)
  {
    return false;
  }
  chunk.Kind.assign(reinterpret_cast<char*>(head + 4), 4);
  chunk.Body.resize(size);
  if (!this->File_.read(reinterpret_cast<char*>(chunk.Body.data()), size) ||
    !this->File_.read(reinterpret_cast<char*>(tail), 4))
  {
    return false;
  }
  chunk.Sound = Checksum(chunk) == PngNumber(tail);
  return true;
}

// Best compression: pictures end up in pages that are sent around, and a slice is small.
std::string EncodePng(const std::vector<uint8_t>& pixels, int64_t columns, int64_t rows, int channels)
{
  const size_t bytes = static_cast<size_t>(columns) * static_cast<size_t>(channels);
  std::vector<uint8_t> filtered;
  for (size_t y = 0; y < static_cast<size_t>(rows); ++y)
  {
    const uint8_t* row = pixels.data() + y * bytes;
    const std::vector<uint8_t> one = FilteredRow(row, y ? row - bytes : nullptr, bytes, static_cast<size_t>(channels));
    filtered.insert(filtered.end(), one.begin(), one.end());
  }
  uLongf size = compressBound(static_cast<uLong>(filtered.size()));
  std::vector<unsigned char> packed(size);
  if (compress2(packed.data(), &size, filtered.data(), static_cast<uLong>(filtered.size()), Z_BEST_COMPRESSION) != Z_OK)
  {
    throw Error(RCN_ENOMEM, "There is not enough memory for a picture.");
  }
  packed.resize(size);
  const uint8_t colorType = channels == 1 ? 0 : 2;
  const std::string header = Bytes(static_cast<uint32_t>(columns)) + Bytes(static_cast<uint32_t>(rows)) +
    std::string({ 8, static_cast<char>(colorType), 0, 0, 0 });
  return std::string(reinterpret_cast<const char*>(Signature), sizeof Signature) +
    Packed({ "IHDR", std::vector<unsigned char>(header.begin(), header.end()), true }) + Packed({ "IDAT", packed, true }) +
    Packed({ "IEND", {}, true });
}

// Chunks about the image stand before its data.
bool HasPngChunk(const std::string& path, const std::string& kind)
{
  PngReader reader(path);
  PngChunk chunk;
  while (reader.Next(chunk) && chunk.Kind != "IDAT")
  {
    if (chunk.Kind == kind)
    {
      return true;
    }
  }
  return false;
}

void CopyPngWithout(const std::string& path, const std::string& kind, const std::string& copy)
{
  Write(copy,
    Rewritten(path, [&kind](std::string& text, const PngChunk& chunk) { text += chunk.Kind == kind ? "" : Packed(chunk); }));
}

double PngScale(const std::string& path)
{
  PngReader reader(path);
  PngChunk chunk;
  double largest = 0;
  while (reader.Next(chunk) && chunk.Kind != "IDAT")
  {
    if (chunk.Kind == "IHDR")
    {
      largest = LargestOf(chunk);
    }
    else if (chunk.Kind == "pCAL" && chunk.Sound)
    {
      return ScaleFrom(chunk.Body, largest);
    }
  }
  return 0;
}

// pCAL, the standard's own way to say what stored numbers mean: from 0 to 1, linear. Behind the header, before the data, as it
// has to be.
void SetPngScale(const std::string& path)
{
  Write(path, Rewritten(path, [](std::string& text, const PngChunk& chunk) {
    text += Packed(chunk);
    if (chunk.Kind == "IHDR")
    {
      const std::string body = std::string("probability") + '\0' + Bytes(0) + Bytes(static_cast<uint32_t>(LargestOf(chunk))) +
        '\0' + '\2' + '\0' + "0" + '\0' + "1";
      text += Packed({ "pCAL", std::vector<unsigned char>(body.begin(), body.end()), true });
    }
  }));
}

} // namespace rcn
