// SPDX-License-Identifier: Apache-2.0
#include "rcnFileCheck.h"

#include "rcnFileName.h"
#include "rcnPng.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include <itk_zlib.h>

#include "rcn/rcn_image.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

const char* const TooShort = "ends before its voxels do; it is truncated or damaged.";
const char* const Damaged = "is damaged: its compressed voxels cannot be unpacked.";

double SizeOf(const std::string& path)
{
  std::error_code failure;
  const uintmax_t size = fs::file_size(path, failure);
  return failure ? -1.0 : static_cast<double>(size);
}

/// Is shown the bytes of a file in their order.
using Visitor = std::function<void(const unsigned char* bytes, size_t count)>;

/// Unpacks a gzip or zlib stream to its end, where the checksum is, without keeping anything.
std::string CheckStream(const std::string& path, std::streamoff offset, double bytes, const Visitor& visit = {})
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
    if (visit)
    {
      visit(out.data(), out.size() - stream.avail_out);
    }
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
  bool Known = false; ///< a NIfTI-1 header, or its ancestor's (Analyze)
  bool Finite = true; ///< the numbers about its place in space
  bool Leans = false; ///< its axes are not at right angles
  bool Swapped = false;
  int Type = 0; ///< NIfTI's own number for the type of a voxel
  int64_t Size[3] = { 1, 1, 1 };
  std::string Voxels; ///< the file that holds them
  double Begin = 0;   ///< where they begin in it, unpacked
  double End = 0;     ///< and where they end
};

bool IsNifti(const std::string& path)
{
  for (const char* end : { ".nii", ".nii.gz", ".hdr", ".img", ".img.gz" })
  {
    if (HasExtension(path, end))
    {
      return true;
    }
  }
  return false;
}

/// The header's file and the voxels' file of a pair (a.hdr and a.img or a.img.gz); of one file itself, twice.
std::pair<std::string, std::string> NiftiFiles(const std::string& path)
{
  if (HasExtension(path, ".nii") || HasExtension(path, ".nii.gz"))
  {
    return { path, path };
  }
  const size_t end = HasExtension(path, ".gz") ? 7 : 4;
  const std::string stem = path.substr(0, path.size() - end);
  return { stem + ".hdr", SizeOf(stem + ".img") < 0 ? stem + ".img.gz" : stem + ".img" };
}

NiftiHeader ReadNiftiHeader(const std::string& path)
{
  unsigned char data[348];
  NiftiHeader header;
  const auto files = NiftiFiles(path);
  const bool pair = files.first != files.second;
  const gzFile file = gzopen(files.first.c_str(), "rb"); // reads plain files too
  if (!file)
  {
    return header;
  }
  const int got = gzread(file, data, sizeof data);
  gzclose(file);
  const bool swapped = got == sizeof data && Get<int32_t>(data, true) == 348;
  if (got != sizeof data || (!swapped && Get<int32_t>(data, false) != 348) || (!pair && data[344] != 'n'))
  {
    return header;
  }
  header.Known = true;
  header.Swapped = swapped;
  header.Voxels = files.second;
  header.Type = Get<int16_t>(data + 70, swapped);
  double elements = 1;
  const int dimensions = Get<int16_t>(data + 40, swapped);
  for (int a = 1; a <= dimensions && a <= 7; ++a)
  {
    const int size = std::max<int>(1, Get<int16_t>(data + 40 + 2 * a, swapped));
    elements *= size;
    if (a <= 3)
    {
      header.Size[a - 1] = size;
    }
  }
  const double offset = Get<float>(data + 108, swapped);
  header.Begin = offset > 0 ? std::floor(offset) : 0;
  header.End = elements * Get<int16_t>(data + 72, swapped) / 8 + header.Begin;
  header.Finite = std::isfinite(header.End);
  const bool analyze = data[344] != 'n';            // has something else in these places
  for (int at = 256; at < 328 && !analyze; at += 4) // quaternion, offsets and the rows of the matrix
  {
    header.Finite = header.Finite && std::isfinite(Get<float>(data + at, swapped));
  }
  for (int at = 76; at < 108; at += 4) // spacing
  {
    header.Finite = header.Finite && std::isfinite(Get<float>(data + at, swapped));
  }
  // A quaternion cannot lean. Where it claims the same space as a matrix that does, ITK takes the quaternion.
  const int quaternion = Get<int16_t>(data + 252, swapped), matrix = Get<int16_t>(data + 254, swapped);
  rcn_geometry geometry = rcn_geometry_make(2, 2, 2);
  for (int a = 0; a < 3; ++a)
  {
    double column[3];
    for (int row = 0; row < 3; ++row)
    {
      column[row] = Get<float>(data + 280 + 16 * row + 4 * a, swapped);
    }
    const double length = std::hypot(column[0], column[1], column[2]);
    for (int row = 0; row < 3 && length > 0; ++row)
    {
      geometry.direction[3 * row + a] = column[row] / length;
    }
  }
  header.Leans = !analyze && matrix > 0 && (quaternion == matrix || quaternion <= 0) && rcn_geometry_is_sheared(&geometry);
  return header;
}

/// Looks for NaN and infinity among the stored voxels.
class NotFiniteFinder
{
public:
  /// Is told each of them with its place among the numbers; returns whether to go on.
  using Found = std::function<bool(int64_t element, double value)>;

  NotFiniteFinder(const NiftiHeader& header, Found found) : Header_(header), Found_(std::move(found))
  {
    const bool wide = header.Type == 64 || header.Type == 1792; // NIFTI_TYPE_FLOAT64, COMPLEX128
    const bool narrow = header.Type == 16 || header.Type == 32; // NIFTI_TYPE_FLOAT32, COMPLEX64
    this->Width_ = wide ? 8 : narrow ? 4 : 0;
  }

  /// Whole numbers are always finite.
  bool IsNeeded() const { return this->Width_ > 0; }

  void Look(const unsigned char* bytes, size_t count)
  {
    const double first = this->Seen_, last = first + static_cast<double>(count);
    this->Seen_ = last;
    const double from = std::max(first, this->Header_.Begin), to = std::min(last, this->Header_.End);
    if (from >= to || this->Done_)
    {
      return;
    }
    this->Kept_.insert(this->Kept_.end(), bytes + static_cast<size_t>(from - first), bytes + static_cast<size_t>(to - first));
    const size_t whole = this->Kept_.size() / this->Width_;
    if (this->Header_.Swapped)
    {
      for (size_t i = 0; i < whole; ++i)
      {
        std::reverse(this->Kept_.begin() + static_cast<std::ptrdiff_t>(i * this->Width_),
          this->Kept_.begin() + static_cast<std::ptrdiff_t>((i + 1) * this->Width_));
      }
    }
    for (size_t at = 0; at < whole && !this->Done_; ++at)
    {
      const rcn_image image = { this->Kept_.data() + at * this->Width_, this->Width_ == 4 ? RCN_FLOAT32 : RCN_FLOAT64, 1,
        rcn_geometry_make(static_cast<int64_t>(whole - at), 1, 1) };
      const int64_t bad = rcn_image_find_nonfinite(&image);
      if (bad < 0)
      {
        break;
      }
      at += static_cast<size_t>(bad);
      this->Done_ = !this->Found_(this->Elements_ + static_cast<int64_t>(at), rcn_image_element(&image, bad));
    }
    this->Elements_ += static_cast<int64_t>(whole);
    this->Kept_.erase(this->Kept_.begin(), this->Kept_.begin() + static_cast<std::ptrdiff_t>(whole * this->Width_));
  }

private:
  const NiftiHeader& Header_;
  Found Found_;
  size_t Width_ = 0; // bytes of a number
  double Seen_ = 0;
  int64_t Elements_ = 0;
  std::vector<unsigned char> Kept_; // the beginning of a number that was cut, at most
  bool Done_ = false;
};

/// Goes through the file that holds the voxels: whether there are enough of them, and which are not finite.
std::string WalkNifti(const NiftiHeader& header, const NotFiniteFinder::Found& found)
{
  NotFiniteFinder finder(header, found);
  const auto look = [&finder](const unsigned char* bytes, size_t count) { finder.Look(bytes, count); };
  if (HasExtension(header.Voxels, ".gz"))
  {
    return CheckStream(header.Voxels, 0, header.End, finder.IsNeeded() ? Visitor(look) : Visitor());
  }
  if (SizeOf(header.Voxels) < header.End)
  {
    return TooShort;
  }
  std::ifstream file(header.Voxels, std::ios::binary);
  std::vector<char> bytes(finder.IsNeeded() ? 1 << 18 : 0);
  while (!bytes.empty() && file)
  {
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    look(reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<size_t>(file.gcount()));
  }
  return "";
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

bool GoodPngHeader(const unsigned char* header)
{
  const uint32_t width = PngNumber(header), height = PngNumber(header + 4);
  const int depth = header[8], color = header[9];
  const bool depthFits =
    depth == 8 || (depth == 16 && color != 3) || ((depth == 1 || depth == 2 || depth == 4) && (color == 0 || color == 3));
  constexpr uint32_t most = 1000000; // libpng's own limit
  return width >= 1 && width <= most && height >= 1 && height <= most && depthFits &&
    (color == 0 || color == 2 || color == 3 || color == 4 || color == 6) && header[10] == 0 && header[11] == 0 &&
    header[12] <= 1;
}

/// Walks over the chunks: right order, whole, and with the right checksums.
bool GoodPng(const std::string& path)
{
  PngReader reader(path);
  PngChunk chunk;
  bool palette = false, needsPalette = false, data = false;
  for (int number = 0; reader.Next(chunk); ++number)
  {
    const bool critical = (chunk.Kind[0] & 0x20) == 0;
    if ((critical && !chunk.Sound) || (chunk.Kind == "IHDR") != (number == 0))
    {
      return false;
    }
    if (chunk.Kind == "IHDR")
    {
      if (chunk.Body.size() != 13 || !GoodPngHeader(chunk.Body.data()))
      {
        return false;
      }
      needsPalette = chunk.Body[9] == 3;
    }
    else if (chunk.Kind == "PLTE")
    {
      palette = !chunk.Body.empty() && chunk.Body.size() % 3 == 0 && chunk.Body.size() <= 768;
    }
    else if (chunk.Kind == "IDAT")
    {
      data = true;
      if (needsPalette && !palette)
      {
        return false;
      }
    }
    else if (chunk.Kind == "IEND")
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

// ---- TIFF ------------------------------------------------------------------------------------------

/// What a page of a TIFF file says about its voxels; by the numbers of the tags.
struct TiffPage
{
  uint64_t Width = 0, Height = 0, Bits = 1, Samples = 1, Format = 1, Kind = 0, TileWidth = 0;
  uint64_t Meaning = 2; ///< of the samples: 0 and 1 gray, 2 red, green and blue, 3 a palette's entry
  uint64_t Next = 0;    ///< where the next page is described; 0: nowhere
};

/// Reads what describes a page, in the classic format and in that for large files.
class TiffReader
{
public:
  explicit TiffReader(const std::string& path) : File_(path, std::ios::binary)
  {
    unsigned char head[16] = {};
    this->File_.read(reinterpret_cast<char*>(head), sizeof head);
    const uint16_t here = 1;
    const bool bigEndian = head[0] == 'M', bigHost = *reinterpret_cast<const unsigned char*>(&here) == 0;
    this->Swapped_ = bigEndian != bigHost;
    const uint16_t version = Get<uint16_t>(head + 2, this->Swapped_);
    this->Known_ = head[0] == head[1] && (head[0] == 'I' || head[0] == 'M') && (version == 42 || version == 43);
    this->Large_ = version == 43;
    this->First_ = this->Large_ ? Get<uint64_t>(head + 8, this->Swapped_) : Get<uint32_t>(head + 4, this->Swapped_);
    this->File_.clear();
  }

  bool IsTiff() const { return this->Known_; }
  uint64_t First() const { return this->First_; }

  /// False when there is no such place in the file.
  bool Read(TiffPage& page, uint64_t at)
  {
    unsigned char bytes[20] = {};
    const size_t entry = this->Large_ ? 20 : 12, field = this->Large_ ? 8 : 4;
    this->File_.seekg(static_cast<std::streamoff>(at));
    if (!this->File_.read(reinterpret_cast<char*>(bytes), this->Large_ ? 8 : 2))
    {
      return false;
    }
    const uint64_t entries = this->Large_ ? Get<uint64_t>(bytes, this->Swapped_) : Get<uint16_t>(bytes, this->Swapped_);
    for (uint64_t e = 0; e < entries; ++e)
    {
      if (!this->File_.read(reinterpret_cast<char*>(bytes), static_cast<std::streamsize>(entry)))
      {
        return false;
      }
      const uint16_t tag = Get<uint16_t>(bytes, this->Swapped_), type = Get<uint16_t>(bytes + 2, this->Swapped_);
      const uint64_t count = this->Large_ ? Get<uint64_t>(bytes + 4, this->Swapped_) : Get<uint32_t>(bytes + 4, this->Swapped_);
      uint64_t* const wanted = tag == 254 ? &page.Kind
        : tag == 256                      ? &page.Width
        : tag == 257                      ? &page.Height
        : tag == 258                      ? &page.Bits
        : tag == 262                      ? &page.Meaning
        : tag == 277                      ? &page.Samples
        : tag == 322                      ? &page.TileWidth
        : tag == 339                      ? &page.Format
                                          : nullptr;
      if (!wanted || count == 0 || (type != 3 && type != 4))
      {
        continue;
      }
      const unsigned char* value = bytes + entry - field;
      unsigned char elsewhere[4] = {};
      const size_t width = type == 3 ? 2 : 4;
      if (count > field / width) // one for each sample: the first stands for all
      {
        const std::streamoff here = this->File_.tellg();
        this->File_.seekg(static_cast<std::streamoff>(
          this->Large_ ? Get<uint64_t>(value, this->Swapped_) : Get<uint32_t>(value, this->Swapped_)));
        this->File_.read(reinterpret_cast<char*>(elsewhere), static_cast<std::streamsize>(width));
        this->File_.clear();
        this->File_.seekg(here);
        value = elsewhere;
      }
      *wanted = type == 3 ? Get<uint16_t>(value, this->Swapped_) : Get<uint32_t>(value, this->Swapped_);
    }
    if (!this->File_.read(reinterpret_cast<char*>(bytes), static_cast<std::streamsize>(field)))
    {
      return false;
    }
    page.Next = this->Large_ ? Get<uint64_t>(bytes, this->Swapped_) : Get<uint32_t>(bytes, this->Swapped_);
    return true;
  }

private:
  std::ifstream File_;
  bool Swapped_ = false, Known_ = false, Large_ = false;
  uint64_t First_ = 0;
};

/// ITK reads what it does not know as if it were 8- or 16-bit gray, so that other voxels come out than went in; and it takes
/// every page to be like the first.
std::string CheckTiff(TiffReader& reader)
{
  TiffPage first;
  constexpr int most = 1 << 20; // pages; a damaged file can go round in circles
  uint64_t at = reader.First();
  for (int number = 0; at && number < most; ++number)
  {
    TiffPage page;
    if (!reader.Read(page, at))
    {
      return number ? TooShort : ""; // libtiff says what is wrong with the first
    }
    at = page.Next;
    if (page.Kind & 5)
    {
      continue; // a preview or a mask for another page, which nobody reads
    }
    const bool floating = page.Format == 3;
    if (page.Bits > 16 ? page.Bits != 32 || !floating : page.Bits > 8 && (page.Bits != 16 || floating))
    {
      return "stores numbers of " + std::to_string(page.Bits) + " bits" + (floating ? " (floating point)" : "") +
        ", which cannot be read from TIFF; save it with 8 or 16 bits, as 32-bit floating point, or as NRRD.";
    }
    if (page.Samples > 1 && (page.Meaning < 2 || page.Meaning == 3))
    {
      return "has " + std::to_string(page.Samples) +
        " values per voxel, such as gray and alpha, of which only the first has a "
        "meaning in TIFF; save it without the others, or as PNG or NRRD.";
    }
    if (page.TileWidth && page.Meaning != 2)
    {
      return "stores its voxels in tiles, which cannot be read from TIFF unless they are colors; save it without tiles, or as "
             "PNG or NRRD.";
    }
    first = first.Width ? first : page;
    if (page.Width != first.Width || page.Height != first.Height || page.Bits != first.Bits || page.Samples != first.Samples ||
      page.Format != first.Format)
    {
      return "has pages of different sizes or types; save each in its own file.";
    }
  }
  return "";
}

// ---- DICOM -----------------------------------------------------------------------------------------

/// Whether the file ends before its pixels do. GDCM does not report that: it makes the rest 0. Compressed pixels have no
/// length that could be compared. `bytes` is how many there are as they are read, to tell them from a preview's.
std::string CheckDicom(const std::string& path, double bytes)
{
  std::ifstream file(path, std::ios::binary);
  char mark[132] = {};
  if (!file.read(mark, sizeof mark) || std::memcmp(mark + 128, "DICM", 4) != 0)
  {
    return "";
  }
  const std::string tag("\xE0\x7F\x10\x00", 4); // Pixel Data
  const double size = SizeOf(path);
  constexpr size_t longest = 12; // tag, kind and length of an element
  std::string text;
  std::vector<char> block(1 << 16);
  double before = sizeof mark; // in the file before the text
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0)
  {
    text.append(block.data(), static_cast<size_t>(file.gcount()));
    for (size_t at = text.find(tag); at != std::string::npos && at + longest <= text.size(); at = text.find(tag, at + 1))
    {
      const auto* element = reinterpret_cast<const unsigned char*>(text.data()) + at;
      const bool named = element[4] == 'O' && (element[5] == 'W' || element[5] == 'B');
      const uint16_t here = 1;
      const bool swapped = *reinterpret_cast<const unsigned char*>(&here) == 0;
      const double length = Get<uint32_t>(element + (named ? 8 : 4), swapped);
      if (length >= bytes / 8 && length <= 2 * bytes)
      {
        // Some writers leave out the byte that makes the length even.
        return before + static_cast<double>(at) + (named ? 12 : 8) + length > size + 1 ? TooShort : "";
      }
    }
    const size_t done = text.size() - std::min(text.size(), longest - 1);
    text.erase(0, done);
    before += static_cast<double>(done);
  }
  return "";
}

} // namespace

std::string CheckHeader(const std::string& path)
{
  if (HasExtension(path, ".png") || HasPngChunk(path, "IHDR"))
  {
    return GoodPng(path) ? "" : "is not a PNG file, or is damaged.";
  }
  if (IsNifti(path))
  {
    const NiftiHeader header = ReadNiftiHeader(path);
    return !header.Finite ? "has numbers in its header that are not finite (spacing or position)."
      : header.Leans
      ? "has axes that are not at right angles (gantry tilt), which cannot be read from NIfTI; resample it first, or "
        "store it as NRRD."
      : "";
  }
  TiffReader tiff(path);
  return tiff.IsTiff() ? CheckTiff(tiff) : "";
}

VoxelCheck CheckVoxels(const std::string& path, double bytes)
{
  VoxelCheck check;
  if (IsNifti(path))
  {
    const NiftiHeader header = ReadNiftiHeader(path);
    if (header.Known) // ITK reads no other
    {
      check.Wrong = WalkNifti(header, [&check](int64_t, double) {
        check.LosesNotFinite = true;
        return false;
      });
    }
  }
  else if (HasExtension(path, ".nrrd"))
  {
    check.Wrong = CheckNrrd(path, bytes);
  }
  else if (HasExtension(path, ".mha") || HasExtension(path, ".mhd"))
  {
    check.Wrong = CheckMeta(path, bytes);
  }
  else
  {
    check.Wrong = CheckDicom(path, bytes);
  }
  return check;
}

void RestoreNotFinite(const rcn_image& image, const std::string& path)
{
  const NiftiHeader header = ReadNiftiHeader(path);
  const int64_t voxels = rcn_geometry_voxels(&image.geometry), elements = voxels * image.components;
  const bool complex = header.Type == 32 || header.Type == 1792;
  WalkNifti(header, [&](int64_t element, double value) {
    // NIfTI has one component of all voxels after the other; the two parts of a complex number stand together.
    const int64_t at = complex ? element : element % voxels * image.components + element / voxels;
    if (at < elements && image.type == RCN_FLOAT32)
    {
      static_cast<float*>(image.data)[at] = static_cast<float>(value);
    }
    else if (at < elements && image.type == RCN_FLOAT64)
    {
      static_cast<double*>(image.data)[at] = value;
    }
    return true;
  });
}

} // namespace rcn
