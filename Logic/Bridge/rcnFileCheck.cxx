#include "rcnFileCheck.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <itk_zlib.h>

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

const char* const TooShort = "ends before its voxels do; it is truncated or damaged.";
const char* const Damaged = "is damaged: its compressed voxels cannot be unpacked.";

bool EndsWith(const std::string& text, const std::string& end)
{
  if (text.size() < end.size())
  {
    return false;
  }
  for (size_t i = 0; i < end.size(); ++i)
  {
    if (std::tolower(static_cast<unsigned char>(text[text.size() - end.size() + i])) != end[i])
    {
      return false;
    }
  }
  return true;
}

double SizeOf(const std::string& path)
{
  std::error_code failure;
  const uintmax_t size = fs::file_size(path, failure);
  return failure ? -1.0 : static_cast<double>(size);
}

/// Unpacks a gzip or zlib stream to its end, where the checksum is, without keeping anything.
std::string CheckStream(const std::string& path, std::streamoff offset, double bytes)
{
  std::ifstream file(path, std::ios::binary);
  file.seekg(offset);
  z_stream stream;
  std::memset(&stream, 0, sizeof stream);
  if (!file || inflateInit2(&stream, 15 + 32) != Z_OK)
  {
    return TooShort;
  }
  std::vector<unsigned char> in(1 << 16), out(1 << 18);
  double unpacked = 0;
  int state = Z_OK;
  bool ended = false;
  for (;;)
  {
    if (stream.avail_in == 0)
    {
      file.read(reinterpret_cast<char*>(in.data()), static_cast<std::streamsize>(in.size()));
      stream.next_in = in.data();
      stream.avail_in = static_cast<unsigned int>(file.gcount());
      if (stream.avail_in == 0)
      {
        break;
      }
    }
    if (ended) // another gzip member, or padding after the last one
    {
      if (*stream.next_in != 0x1F)
      {
        break;
      }
      inflateReset(&stream);
      ended = false;
    }
    stream.next_out = out.data();
    stream.avail_out = static_cast<unsigned int>(out.size());
    state = inflate(&stream, Z_NO_FLUSH);
    unpacked += static_cast<double>(out.size() - stream.avail_out);
    ended = state == Z_STREAM_END;
    if (!ended && state != Z_OK && state != Z_BUF_ERROR)
    {
      break;
    }
  }
  inflateEnd(&stream);
  if (state == Z_DATA_ERROR)
  {
    return Damaged;
  }
  return !ended || unpacked < bytes ? TooShort : "";
}

// ---- NIfTI -----------------------------------------------------------------------------------------

template <class T> T Get(const unsigned char* at, bool swapped)
{
  unsigned char bytes[sizeof(T)];
  for (size_t i = 0; i < sizeof(T); ++i)
  {
    bytes[i] = at[swapped ? sizeof(T) - 1 - i : i];
  }
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

struct NiftiHeader
{
  bool Known = false;  ///< a NIfTI-1 header
  bool Finite = true;  ///< the numbers about its place in space
  double End = 0;      ///< bytes up to the end of the voxels, in the unpacked file
};

NiftiHeader ReadNiftiHeader(const std::string& path)
{
  unsigned char data[348];
  NiftiHeader header;
  const gzFile file = gzopen(path.c_str(), "rb"); // reads plain files too
  if (!file)
  {
    return header;
  }
  const int got = gzread(file, data, sizeof data);
  gzclose(file);
  const bool swapped = got == sizeof data && Get<int32_t>(data, true) == 348;
  if (got != sizeof data || (!swapped && Get<int32_t>(data, false) != 348) || data[344] != 'n')
  {
    return header;
  }
  header.Known = true;
  double elements = 1;
  const int dimensions = Get<int16_t>(data + 40, swapped);
  for (int a = 1; a <= dimensions && a <= 7; ++a)
  {
    elements *= std::max<int>(1, Get<int16_t>(data + 40 + 2 * a, swapped));
  }
  const double offset = Get<float>(data + 108, swapped);
  header.End = elements * Get<int16_t>(data + 72, swapped) / 8 + (offset > 0 ? offset : 0);
  header.Finite = std::isfinite(header.End);
  for (int at = 256; at < 328; at += 4) // quaternion, offsets and the rows of the matrix
  {
    header.Finite = header.Finite && std::isfinite(Get<float>(data + at, swapped));
  }
  for (int at = 76; at < 108; at += 4) // spacing
  {
    header.Finite = header.Finite && std::isfinite(Get<float>(data + at, swapped));
  }
  return header;
}

// ---- NRRD and MetaImage: lines of text, then voxels ------------------------------------------------

std::string Trimmed(const std::string& text)
{
  const std::string::size_type first = text.find_first_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string CheckNrrd(const std::string& path, double bytes)
{
  std::ifstream file(path, std::ios::binary);
  std::string line;
  bool packed = false;
  while (std::getline(file, line))
  {
    line = Trimmed(line);
    if (line.empty())
    {
      const std::streamoff offset = file.tellg();
      return packed ? CheckStream(path, offset, bytes) : "";
    }
    if (line.rfind("data file:", 0) == 0 || line.rfind("datafile:", 0) == 0 || line.rfind("byte skip:", 0) == 0 ||
      line.rfind("line skip:", 0) == 0)
    {
      return ""; // elsewhere; teem knows
    }
    if (line.rfind("encoding:", 0) == 0)
    {
      const std::string encoding = Trimmed(line.substr(9));
      packed = encoding == "gzip" || encoding == "gz";
    }
  }
  return "";
}

std::string CheckMeta(const std::string& path, double bytes)
{
  std::ifstream file(path, std::ios::binary);
  std::string line;
  bool packed = false;
  double skip = 0;
  while (std::getline(file, line))
  {
    const std::string::size_type equals = line.find('=');
    const std::string key = Trimmed(line.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : Trimmed(line.substr(equals + 1));
    if (key == "CompressedData")
    {
      packed = !value.empty() && (value[0] == 'T' || value[0] == 't' || value[0] == '1');
    }
    else if (key == "HeaderSize")
    {
      skip = std::max(0.0, std::atof(value.c_str()));
    }
    else if (key == "BinaryData" && !value.empty() && (value[0] == 'F' || value[0] == 'f'))
    {
      return "";
    }
    else if (key == "ElementDataFile")
    {
      const bool local = value == "LOCAL" || value == "Local" || value == "local";
      if (!local && (value.rfind("LIST", 0) == 0 || value.find('%') != std::string::npos))
      {
        return ""; // a file per slice
      }
      const std::string data = local ? path : (fs::path(path).parent_path() / value).string();
      const std::streamoff offset = local ? static_cast<std::streamoff>(file.tellg()) : static_cast<std::streamoff>(skip);
      if (SizeOf(data) < 0)
      {
        return "needs the file " + data + ", which does not exist.";
      }
      if (packed)
      {
        return CheckStream(data, offset, bytes);
      }
      return SizeOf(data) - static_cast<double>(offset) < bytes ? TooShort : "";
    }
  }
  return TooShort;
}

// ---- PNG -------------------------------------------------------------------------------------------

uint32_t BigEndian(const unsigned char* at)
{
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 |
    static_cast<uint32_t>(at[2]) << 8 | at[3];
}

bool GoodPngHeader(const unsigned char* header)
{
  const uint32_t width = BigEndian(header), height = BigEndian(header + 4);
  const int depth = header[8], color = header[9];
  const bool depthFits = depth == 8 || (depth == 16 && color != 3) ||
    ((depth == 1 || depth == 2 || depth == 4) && (color == 0 || color == 3));
  constexpr uint32_t most = 1000000; // libpng's own limit
  return width >= 1 && width <= most && height >= 1 && height <= most && depthFits &&
    (color == 0 || color == 2 || color == 3 || color == 4 || color == 6) && header[10] == 0 && header[11] == 0 &&
    header[12] <= 1;
}

/// Walks over the chunks: right order, whole, and with the right checksums.
bool GoodPng(const std::string& path)
{
  std::ifstream file(path, std::ios::binary);
  unsigned char signature[8], head[8], tail[4];
  static const unsigned char expected[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
  if (!file.read(reinterpret_cast<char*>(signature), 8) || std::memcmp(signature, expected, 8) != 0)
  {
    return false;
  }
  std::vector<unsigned char> body;
  bool palette = false, needsPalette = false, data = false;
  for (int number = 0; file.read(reinterpret_cast<char*>(head), 8); ++number)
  {
    const uint32_t size = BigEndian(head);
    const std::string kind(reinterpret_cast<char*>(head + 4), 4);
    if (size > 0x7FFFFFFF || static_cast<double>(size) > SizeOf(path))
    {
      return false;
    }
    body.resize(size);
    if (!file.read(reinterpret_cast<char*>(body.data()), size) || !file.read(reinterpret_cast<char*>(tail), 4))
    {
      return false;
    }
    uLong sum = crc32(0, head + 4, 4);
    sum = size ? crc32(sum, body.data(), size) : sum;
    const bool critical = (head[4] & 0x20) == 0;
    if (critical && static_cast<uint32_t>(sum) != BigEndian(tail))
    {
      return false;
    }
    if ((kind == "IHDR") != (number == 0))
    {
      return false;
    }
    if (kind == "IHDR")
    {
      if (size != 13 || !GoodPngHeader(body.data()))
      {
        return false;
      }
      needsPalette = body[9] == 3;
    }
    else if (kind == "PLTE")
    {
      palette = size > 0 && size % 3 == 0 && size <= 768;
    }
    else if (kind == "IDAT")
    {
      data = true;
      if (needsPalette && !palette)
      {
        return false;
      }
    }
    else if (kind == "IEND")
    {
      return data;
    }
    else if (critical)
    {
      return false;
    }
  }
  return false;
}

} // namespace

std::string CheckHeader(const std::string& path)
{
  if (EndsWith(path, ".png"))
  {
    return GoodPng(path) ? "" : "is no PNG file, or a damaged one.";
  }
  if (EndsWith(path, ".nii") || EndsWith(path, ".nii.gz"))
  {
    return ReadNiftiHeader(path).Finite ? "" : "has numbers in its header that are not finite (spacing or position).";
  }
  return "";
}

std::string CheckVoxels(const std::string& path, double bytes)
{
  if (EndsWith(path, ".nii") || EndsWith(path, ".nii.gz"))
  {
    const NiftiHeader header = ReadNiftiHeader(path);
    if (!header.Known)
    {
      return ""; // NIfTI-2, or Analyze
    }
    if (EndsWith(path, ".gz"))
    {
      return CheckStream(path, 0, header.End);
    }
    return SizeOf(path) < header.End ? TooShort : "";
  }
  if (EndsWith(path, ".nrrd"))
  {
    return CheckNrrd(path, bytes);
  }
  if (EndsWith(path, ".mha") || EndsWith(path, ".mhd"))
  {
    return CheckMeta(path, bytes);
  }
  return "";
}

} // namespace rcn
