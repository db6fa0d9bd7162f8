// SPDX-License-Identifier: Apache-2.0
#include "rcnImageIO.h"

#include "rcnAddress.h"
#include "rcnDicomSeries.h"
#include "rcnFileBeside.h"
#include "rcnFileCheck.h"
#include "rcnPng.h"
#include "rcnTemporaryFolder.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <itkExtrapolateImageFunction.h>
#include <itkGDCMImageIOFactory.h>
#include <itkImageIOFactory.h>
#include <itkJPEGImageIOFactory.h>
#include <itkLinearInterpolateImageFunction.h>
#include <itkMetaDataObject.h>
#include <itkMetaImageIOFactory.h>
#include <itkNearestNeighborInterpolateImageFunction.h>
#include <itkNiftiImageIOFactory.h>
#include <itkNrrdImageIOFactory.h>
#include <itkPNGImageIOFactory.h>
#include <itkResampleImageFilter.h>
#include <itkTIFFImageIOFactory.h>

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

std::atomic<bool> LibrariesQuiet{ false };

/// Standard error goes nowhere while one of these lives, when SetLibrariesQuiet() asked for it.
class Quiet
{
public:
  Quiet()
  {
    const int nowhere = LibrariesQuiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (nowhere >= 0)
    {
      this->Kept_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
      if (this->Kept_ >= 0)
      {
        dup2(nowhere, STDERR_FILENO);
      }
      close(nowhere);
    }
  }
  ~Quiet()
  {
    if (this->Kept_ >= 0)
    {
      dup2(this->Kept_, STDERR_FILENO);
      close(this->Kept_);
    }
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

private:
  int Kept_ = -1;
};

/// The first line of an ITK exception's own description, without source positions.
std::string Reason(const itk::ExceptionObject& exception)
{
  std::string text = exception.GetDescription();
  const std::string::size_type colon = text.rfind("): ");
  if (text.rfind("ITK ERROR", 0) == 0 && colon != std::string::npos)
  {
    text = text.substr(colon + 3);
  }
  for (char& c : text)
  {
    if (static_cast<unsigned char>(c) < ' ')
    {
      c = ' ';
    }
  }
  while (!text.empty() && text.back() == ' ')
  {
    text.pop_back();
  }
  return text.empty() ? "unknown reason" : text;
}

std::string LowerExtension(const std::string& path)
{
  std::string name = fs::path(path).filename().string();
  for (char& c : name)
  {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const std::string::size_type dot = name.rfind('.');
  if (dot == std::string::npos)
  {
    return "";
  }
  const std::string extension = name.substr(dot);
  if (extension == ".gz" && name.size() > 7 && name.compare(dot - 4, 4, ".nii") == 0)
  {
    return ".nii.gz";
  }
  return extension;
}

/// Calls body(T()) with the C++ type of an element type.
template <class TBody> void Dispatch(rcn_type type, TBody&& body)
{
  switch (type)
  {
    case RCN_UINT8: body(uint8_t()); return;
    case RCN_INT8: body(int8_t()); return;
    case RCN_UINT16: body(uint16_t()); return;
    case RCN_INT16: body(int16_t()); return;
    case RCN_UINT32: body(uint32_t()); return;
    case RCN_INT32: body(int32_t()); return;
    case RCN_UINT64: body(uint64_t()); return;
    case RCN_INT64: body(int64_t()); return;
    case RCN_FLOAT32: body(float()); return;
    case RCN_FLOAT64: body(double()); return;
  }
}

std::shared_ptr<void> AllocateBuffer(int64_t elements, size_t size, const std::string& purpose)
{
  void* buffer = std::malloc(static_cast<size_t>(elements) * size);
  if (!buffer)
  {
    char sentence[256];
    std::snprintf(sentence, sizeof sentence, "Out of memory: %.1f MB for %s.",
      static_cast<double>(elements) * static_cast<double>(size) / 1e6, purpose.c_str());
    throw Error(RCN_ENOMEM, sentence);
  }
  return std::shared_ptr<void>(buffer, std::free);
}

/// ITK's name for a description; NRRD and MetaImage keep it.
const char* const NoteKey = "ITK_FileNotes";

/// "Segment0_Name", "Segment0_LabelValue", ... as Slicer writes them.
std::vector<Segment> ReadSegments(const itk::MetaDataDictionary& dictionary)
{
  std::vector<Segment> segments;
  for (int i = 0;; ++i)
  {
    const std::string prefix = "Segment" + std::to_string(i) + "_";
    std::string text;
    Segment segment;
    if (!itk::ExposeMetaData(dictionary, prefix + "Name", segment.Name))
    {
      return segments;
    }
    if (itk::ExposeMetaData(dictionary, prefix + "LabelValue", text))
    {
      segment.LabelValue = std::strtoll(text.c_str(), nullptr, 10);
    }
    if (itk::ExposeMetaData(dictionary, prefix + "Layer", text))
    {
      segment.Layer = static_cast<int>(std::strtol(text.c_str(), nullptr, 10));
    }
    segments.push_back(segment);
  }
}

/// The name under which a reader finds the right voxels.
///
/// niftilib takes the voxels of a.nii for a.nii.gz where both exist, without a word: a link in a folder of its own has no such
/// neighbour. ITK makes alpha of a PNG's transparent color, and colors of its palette to have a place for it: a copy
/// has none.
class ReadableName
{
public:
  explicit ReadableName(const std::string& path) : Path_(path)
  {
    std::error_code failure;
    if (LowerExtension(path) == ".nii.gz" && fs::exists(path.substr(0, path.size() - 3), failure))
    {
      this->Folder_.reset(new TemporaryFolder);
      this->Path_ = *this->Folder_ / "image.nii.gz";
      fs::create_symlink(fs::absolute(path), this->Path_);
    }
    else if (HasPngChunk(path, "tRNS"))
    {
      this->Folder_.reset(new TemporaryFolder);
      this->Path_ = *this->Folder_ / "image.png";
      CopyPngWithout(path, "tRNS", this->Path_);
    }
  }
  const std::string& Path() const { return this->Path_; }

private:
  std::unique_ptr<TemporaryFolder> Folder_;
  std::string Path_;
};

} // namespace

bool TypeOf(rcn_type& type, itk::IOComponentEnum component)
{
  switch (component)
  {
    case itk::IOComponentEnum::UCHAR: type = RCN_UINT8; return true;
    case itk::IOComponentEnum::CHAR: type = RCN_INT8; return true;
    case itk::IOComponentEnum::USHORT: type = RCN_UINT16; return true;
    case itk::IOComponentEnum::SHORT: type = RCN_INT16; return true;
    case itk::IOComponentEnum::UINT: type = RCN_UINT32; return true;
    case itk::IOComponentEnum::INT: type = RCN_INT32; return true;
    case itk::IOComponentEnum::ULONG: type = sizeof(long) == 8 ? RCN_UINT64 : RCN_UINT32; return true;
    case itk::IOComponentEnum::LONG: type = sizeof(long) == 8 ? RCN_INT64 : RCN_INT32; return true;
    case itk::IOComponentEnum::ULONGLONG: type = RCN_UINT64; return true;
    case itk::IOComponentEnum::LONGLONG: type = RCN_INT64; return true;
    case itk::IOComponentEnum::FLOAT: type = RCN_FLOAT32; return true;
    case itk::IOComponentEnum::DOUBLE: type = RCN_FLOAT64; return true;
    default: return false;
  }
}

// ---- Volume ---------------------------------------------------------------------------------------

Volume Volume::Allocate(const rcn_geometry& geometry, rcn_type type, int components)
{
  const char* sentence = rcn_geometry_check(&geometry);
  if (!sentence && (components < 1 || rcn_geometry_voxels(&geometry) > INT64_MAX / 16 / components))
  {
    sentence = "An image of so many voxels does not fit into memory.";
  }
  if (sentence)
  {
    throw Error(RCN_EDATA, sentence);
  }
  Volume volume;
  volume.Owner_ = AllocateBuffer(rcn_geometry_voxels(&geometry) * components, rcn_type_size(type), "an image");
  volume.View_ = rcn_image{ volume.Owner_.get(), type, components, geometry };
  return volume;
}

Volume Volume::Reordered(rcn_context* context, const rcn_order& order) const
{
  if (rcn_order_is_identity(&order))
  {
    return *this;
  }
  Volume out = *this;
  const size_t bytes =
    static_cast<size_t>(rcn_geometry_voxels(&this->Geometry()) * this->View_.components) * rcn_type_size(this->View_.type);
  out.Owner_ = AllocateBuffer(this->Repeats_, bytes, "an image");
  out.View_.data = out.Owner_.get();
  out.View_.geometry = rcn_geometry_reorder(&this->Geometry(), &order);
  for (int repeat = 0; repeat < this->Repeats_; ++repeat)
  {
    rcn_image one = this->View_;
    one.data = static_cast<char*>(this->View_.data) + static_cast<size_t>(repeat) * bytes;
    Check(rcn_image_reorder(static_cast<char*>(out.View_.data) + static_cast<size_t>(repeat) * bytes, context, &one, &order),
      context);
  }
  return out;
}

Volume Volume::Share(const rcn_image& view, std::shared_ptr<void> owner)
{
  Volume volume;
  volume.Owner_ = std::move(owner);
  volume.View_ = view;
  return volume;
}

rcn_image Volume::All() const
{
  rcn_image all = this->View_;
  all.geometry.size[2] *= this->Repeats_;
  return all;
}

Channel Volume::GetChannel(int index) const
{
  Channel channel;
  channel.Image = this->View_;
  channel.Component = index % this->View_.components;
  const int64_t repeat = index / this->View_.components;
  channel.Image.data = static_cast<char*>(this->View_.data) +
    static_cast<size_t>(repeat * rcn_geometry_voxels(&this->View_.geometry) * this->View_.components) *
      rcn_type_size(this->View_.type);
  return channel;
}

/// The format of a file, null for none. Formats are registered here and not by ITK's macros, because only a running program
/// knows whether it has some already: an application such as Slicer does, and a second set would fight with them.
itk::ImageIOBase::Pointer FormatOf(const std::string& path, itk::IOFileModeEnum mode)
{
  static const bool registered = [] {
    if (itk::ObjectFactoryBase::CreateAllInstance("itkImageIOBase").empty())
    {
      itk::NrrdImageIOFactory::RegisterOneFactory();
      itk::NiftiImageIOFactory::RegisterOneFactory();
      itk::MetaImageIOFactory::RegisterOneFactory();
      itk::PNGImageIOFactory::RegisterOneFactory();
      itk::TIFFImageIOFactory::RegisterOneFactory();
      itk::JPEGImageIOFactory::RegisterOneFactory();
      itk::GDCMImageIOFactory::RegisterOneFactory();
    }
    return true;
  }();
  (void)registered;
  return itk::ImageIOFactory::CreateImageIO(path.c_str(), mode);
}

// ---- reading --------------------------------------------------------------------------------------

enum class Palette
{
  Colors,
  Labels ///< the numbers of its entries
};

/// Opens one file: the header at once, the voxels on request.
class ImageReader
{
public:
  ImageReader(const std::string& path, Palette palette) : Path_(path), Name_(path)
  {
    const std::string wrong = CheckHeader(path);
    if (!wrong.empty())
    {
      this->Fail(wrong);
    }
    this->Io_ = FormatOf(this->Name_.Path(), itk::IOFileModeEnum::ReadMode);
    if (!this->Io_)
    {
      this->Fail("is not an image in a format that can be read.");
    }
    this->Io_->SetFileName(this->Name_.Path());
    this->Io_->SetExpandRGBPalette(palette == Palette::Colors);
    this->Io_->ReadImageInformation();
    this->ReadGeometry();
    if (!TypeOf(this->Volume_.View_.type, this->Io_->GetComponentType()))
    {
      this->Fail("has voxels of a type that cannot be used.");
    }
    this->Volume_.View_.components = static_cast<int>(this->Io_->GetNumberOfComponents());
    this->ReadMeaning();
    this->Volume_.Segments_ = ReadSegments(this->Io_->GetMetaDataDictionary());
    itk::ExposeMetaData(this->Io_->GetMetaDataDictionary(), NoteKey, this->Volume_.Note_);
    const int64_t voxels = rcn_geometry_voxels(&this->Volume_.Geometry());
    if (this->Volume_.View_.components < 1 || this->Volume_.Repeats_ < 1 ||
      voxels > INT64_MAX / 16 / this->Volume_.View_.components / this->Volume_.Repeats_)
    {
      this->Fail("claims more voxels than can be addressed.");
    }
    this->CheckClaim();
  }

  Volume Header() const
  {
    Volume header = this->Volume_;
    header.View_.components -= this->Alpha_;
    return header;
  }

  Volume Read()
  {
    const unsigned int dimensions = this->Io_->GetNumberOfDimensions();
    itk::ImageIORegion region(dimensions);
    for (unsigned int a = 0; a < dimensions; ++a)
    {
      region.SetIndex(a, 0);
      region.SetSize(a, this->Io_->GetDimensions(a));
    }
    this->Io_->SetIORegion(region);
    Volume& volume = this->Volume_;
    volume.Owner_ = AllocateBuffer(
      rcn_geometry_voxels(&volume.Geometry()) * volume.ChannelCount(), rcn_type_size(volume.View_.type), this->Path_);
    volume.View_.data = volume.Owner_.get();
    // Beside the reading, so that it costs a second core rather than time.
    auto checking = std::async(std::launch::async, CheckVoxels, this->Path_, this->Bytes());
    this->Io_->Read(volume.View_.data);
    const VoxelCheck check = checking.get();
    if (!check.Wrong.empty())
    {
      this->Fail(check.Wrong);
    }
    if (check.LosesNotFinite)
    {
      RestoreNotFinite(volume.All(), this->Path_);
    }
    if (this->Alpha_)
    {
      rcn_image all = volume.All();
      rcn_image_keep_components(&all, all.components - this->Alpha_);
      volume.View_.components = all.components;
    }
    return volume;
  }

private:
  [[noreturn]] void Fail(const std::string& what) const { throw Error(RCN_EFORMAT, this->Path_ + " " + what); }

  double Bytes() const
  {
    return static_cast<double>(rcn_geometry_voxels(&this->Volume_.Geometry())) * this->Volume_.ChannelCount() *
      static_cast<double>(rcn_type_size(this->Volume_.View_.type));
  }

  /// Refuses a header that promises more than the file can hold, before room is made for it.
  void CheckClaim() const
  {
    const double bytes = this->Bytes();
    const std::string extension = LowerExtension(this->Path_);
    const bool oneFile =
      extension == ".nrrd" || extension == ".nii" || extension == ".nii.gz" || extension == ".mha" || extension == ".png";
    std::error_code failure;
    const double size = static_cast<double>(fs::file_size(this->Path_, failure));
    // Deflate makes 1032 bytes out of one at most; bzip2 (NRRD only) about 45 thousand.
    const double most = (extension == ".nrrd" ? 50000.0 : 1100.0) * size + 65536;
    if (oneFile && !failure && bytes > most && bytes > 1e9)
    {
      char text[64];
      std::snprintf(text, sizeof text, "%.3g", bytes / 1e9);
      this->Fail(std::string("claims ") + text + " GB of voxels, more than the file can hold; it is damaged.");
    }
  }

  /// What the components of a voxel are, and what its numbers mean. Alpha tells how to paint a picture, not what is on it.
  void ReadMeaning()
  {
    const itk::IOPixelEnum pixel = this->Io_->GetPixelType();
    const int components = this->Volume_.View_.components;
    const bool isPng = std::string(this->Io_->GetNameOfClass()) == "PNGImageIO";
    const bool isPicture = this->Volume_.View_.type == RCN_UINT8 || this->Volume_.View_.type == RCN_UINT16;
    this->Volume_.Color_ = pixel == itk::IOPixelEnum::RGB || pixel == itk::IOPixelEnum::RGBA;
    this->Alpha_ = isPicture && ((this->Volume_.Color_ && components == 4) || (isPng && components == 2)) ? 1 : 0;
    this->Volume_.Scale_ = isPng ? PngScale(this->Path_) : 0;
  }

  /// Whether the spacing is the file's own. What a PNG or JPEG says is the size on paper (72 dots per inch, by default), not
  /// in the world; a TIFF or a DICOM image may know it or not, and is then given a spacing of 1 by ITK.
  bool KnowsSpacing() const
  {
    const std::string format = this->Io_->GetNameOfClass();
    if (format == "PNGImageIO" || format == "JPEGImageIO" || format == "BMPImageIO")
    {
      return false;
    }
    const bool one = this->Io_->GetSpacing(0) == 1 && this->Io_->GetSpacing(1) == 1;
    if (format == "GDCMImageIO")
    {
      return DicomKnowsSpacing(*this->Io_);
    }
    return format != "TIFFImageIO" || !one;
  }

  void ReadGeometry()
  {
    rcn_geometry& geometry = this->Volume_.View_.geometry;
    unsigned int used = this->Io_->GetNumberOfDimensions();
    while (used > 3 && this->Io_->GetDimensions(used - 1) == 1)
    {
      --used;
    }
    if (used < 2 || used > 4)
    {
      this->Fail(
        "has " + std::to_string(used) + " dimensions; 2-D and 3-D images, and 4-D files of several 3-D images, can be used.");
    }
    geometry = rcn_geometry_make(1, 1, 1);
    geometry.dimension = used == 2 ? 2 : 3;
    this->Volume_.Repeats_ = used == 4 ? static_cast<int>(this->Io_->GetDimensions(3)) : 1;
    for (unsigned int a = 0; a < 3 && a < used; ++a)
    {
      geometry.size[a] = static_cast<int64_t>(this->Io_->GetDimensions(a));
      geometry.spacing[a] = this->Io_->GetSpacing(a);
      geometry.origin[a] = this->Io_->GetOrigin(a);
      const std::vector<double> direction = this->Io_->GetDirection(a);
      for (unsigned int row = 0; row < 3; ++row)
      {
        geometry.direction[3 * row + a] = row < direction.size() && row < used ? direction[row] : (row == a ? 1.0 : 0.0);
      }
    }
    geometry.unit = this->KnowsSpacing() ? RCN_MM : RCN_PIXELS;
    if (geometry.unit == RCN_PIXELS)
    {
      geometry.spacing[0] = geometry.spacing[1] = geometry.spacing[2] = 1;
    }
    if (const char* sentence = rcn_geometry_check(&geometry))
    {
      this->Fail(std::string("cannot be used: ") + sentence);
    }
  }

  std::string Path_;
  ReadableName Name_;
  itk::ImageIOBase::Pointer Io_;
  int Alpha_ = 0; // components that are read and left out
  Volume Volume_;
};

namespace
{

enum class What
{
  Header,
  Voxels
};

Volume ReadAny(const std::string& path, What what, Palette palette)
{
  std::error_code ignored;
  RefuseAddress(path);
  if (!fs::exists(path, ignored))
  {
    throw Error(RCN_EIO, path + " does not exist.");
  }
  if (access(path.c_str(), R_OK) != 0)
  {
    throw Error(RCN_EIO, path + " cannot be read: " + std::strerror(errno) + ".");
  }
  const Quiet quiet;
  try
  {
    if (fs::is_directory(path, ignored))
    {
      return ReadDicomSeries(path, what == What::Voxels);
    }
    ImageReader reader(path, palette);
    return what == What::Voxels ? reader.Read() : reader.Header();
  }
  catch (const itk::ExceptionObject& exception)
  {
    throw Error(RCN_EFORMAT, path + " cannot be read as an image: " + Reason(exception) + ".");
  }
}

/// NaN and infinity are no values: neither of an image nor labels.
Volume ReadFinite(const std::string& path, Palette palette)
{
  const Volume volume = ReadAny(path, What::Voxels, palette);
  const rcn_image all = volume.All();
  const int64_t bad = rcn_image_find_nonfinite(&all);
  if (bad >= 0)
  {
    const double value = rcn_image_element(&all, bad);
    const int64_t* size = volume.Geometry().size;
    const int64_t voxel = bad / all.components;
    throw Error(RCN_EDATA,
      path + " has the value " +
        (std::isnan(value) ? "nan"
            : value < 0    ? "-inf"
                           : "inf") +
        " at voxel (" + std::to_string(voxel % size[0]) + ", " + std::to_string(voxel / size[0] % size[1]) + ", " +
        std::to_string(voxel / (size[0] * size[1]) % size[2]) + "); replace NaN and infinite voxels first.");
  }
  return volume;
}

} // namespace

void SetLibrariesQuiet(bool quiet)
{
  LibrariesQuiet = quiet;
}

Volume ReadImage(const std::string& path)
{
  return ReadFinite(path, Palette::Colors);
}

Volume ReadMap(const std::string& path)
{
  return ReadAny(path, What::Voxels, Palette::Colors);
}

Volume ReadImageHeader(const std::string& path)
{
  return ReadAny(path, What::Header, Palette::Colors);
}

Volume ReadMask(const std::string& path)
{
  return ReadFinite(path, Palette::Labels);
}

Volume ReadMaskHeader(const std::string& path)
{
  return ReadAny(path, What::Header, Palette::Labels);
}

namespace
{

bool IsImageName(const std::string& name)
{
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), ::tolower);
  for (const char* end : { ".nrrd", ".nhdr", ".nii", ".nii.gz", ".mha", ".mhd", ".png", ".tif", ".tiff", ".jpg", ".jpeg" })
  {
    const std::string extension = end;
    if (lower.size() > extension.size() && lower.compare(lower.size() - extension.size(), extension.size(), extension) == 0)
    {
      return true;
    }
  }
  return false;
}

} // namespace

std::vector<std::string> ImagesIn(const std::string& folder)
{
  std::vector<std::string> images;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure))
  {
    const std::string name = entry.path().filename().string();
    if (name[0] != '.' && IsImageName(name))
    {
      images.push_back(entry.path().string());
    }
  }
  if (failure)
  {
    throw Error(RCN_EIO, folder + " cannot be read: " + failure.message() + ".");
  }
  std::sort(images.begin(), images.end());
  return images;
}

bool IsPictureName(const std::string& path)
{
  const std::string extension = LowerExtension(path);
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".bmp";
}

std::string StemOf(const std::string& path)
{
  const fs::path file(path);
  const std::string name = (file.has_filename() ? file : file.parent_path()).filename().string();
  return name.substr(0, name.find('.', 1));
}

// ---- writing --------------------------------------------------------------------------------------

namespace
{

enum class Storage
{
  AsIs,
  WholeNumbers, // PNG: 8 or 16 bits
  No
};

/// What a file format can hold, by its extension; a sentence when it will not do.
Storage StorageFor(std::string& sentence, const std::string& path)
{
  const std::string extension = LowerExtension(path);
  for (const char* known : { ".nrrd", ".nii", ".nii.gz", ".mha", ".tif", ".tiff" })
  {
    if (extension == known)
    {
      return Storage::AsIs;
    }
  }
  if (extension == ".png")
  {
    return Storage::WholeNumbers;
  }
  if (extension == ".mhd" || extension == ".nhdr" || extension == ".hdr" || extension == ".img")
  {
    sentence = path + ": a header with a separate data file cannot be replaced in one step; use .mha, .nrrd or .nii.gz.";
  }
  else if (extension == ".jpg" || extension == ".jpeg")
  {
    sentence = path + ": JPEG changes values; use .png or .nrrd.";
  }
  else
  {
    sentence = path + ": give the output a format that can be written: .nrrd, .nii.gz, .mha, .tif or .png.";
  }
  return Storage::No;
}

enum class Room
{
  Enough,
  Unsure,
  TooLittle
};

/// Whether so many bytes can be written: reserves them and gives them back, so that a writer that
/// ignores write errors cannot run out of disk. File systems that cannot reserve are asked what is free.
Room RoomFor(const std::string& path, int64_t bytes)
{
#ifdef __linux__
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file >= 0)
  {
    const int failure = fallocate(file, 0, 0, bytes) == 0 ? 0 : errno;
    const bool emptied = ftruncate(file, 0) == 0;
    close(file);
    if (!failure && emptied)
    {
      return Room::Enough;
    }
    if (failure == ENOSPC || failure == EFBIG || failure == EDQUOT)
    {
      return Room::TooLittle;
    }
  }
#endif
  struct statvfs system;
  return statvfs(path.c_str(), &system) == 0 &&
      static_cast<double>(system.f_bavail) * static_cast<double>(system.f_frsize) < static_cast<double>(bytes)
    ? Room::TooLittle
    : Room::Unsure;
}

/// Whether what a file says about its place in space is what was to be written.
bool KeepsGeometry(const std::string& path, const rcn_geometry& geometry)
{
  rcn_context* context = nullptr;
  rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  if (rcn_context_create(&context, &options) != RCN_OK)
  {
    return true;
  }
  rcn_geometry written = ReadImageHeader(path).Geometry(), wanted = geometry;
  written.unit = wanted.unit = RCN_MM; // pixels are compared by their number alone
  const rcn_status status = rcn_geometry_compare(context, &written, "", &wanted, "", RCN_GEOMETRY_TOLERANCE);
  rcn_context_destroy(context);
  return status == RCN_OK;
}

/// Whether a file holds exactly these elements.
bool ReadsBackAs(const std::string& path, const rcn_image& image)
{
  try
  {
    const Volume volume = ReadMap(path);
    const int64_t elements = rcn_geometry_voxels(&image.geometry) * image.components;
    return volume.View().type == image.type && rcn_geometry_voxels(&volume.Geometry()) * volume.ChannelCount() == elements &&
      std::memcmp(volume.Data(), image.data, static_cast<size_t>(elements) * rcn_type_size(image.type)) == 0;
  }
  catch (const Error&)
  {
    return false;
  }
}

itk::IOComponentEnum ComponentOf(rcn_type type)
{
  switch (type)
  {
    case RCN_UINT8: return itk::IOComponentEnum::UCHAR;
    case RCN_UINT16: return itk::IOComponentEnum::USHORT;
    default: return itk::IOComponentEnum::FLOAT;
  }
}

void WriteWithItk(const std::string& path, const rcn_image& image, Content content, const std::string& note)
{
  const Quiet quiet;
  itk::ImageIOBase::Pointer io = FormatOf(path, itk::IOFileModeEnum::WriteMode);
  if (!io)
  {
    throw Error(RCN_EUNSUPPORTED, path + ": this format cannot be written here.");
  }
  const rcn_geometry& geometry = image.geometry;
  const unsigned int dimensions = static_cast<unsigned int>(geometry.dimension);
  io->SetFileName(path);
  io->SetNumberOfDimensions(dimensions);
  if (!note.empty())
  {
    itk::EncapsulateMetaData<std::string>(io->GetMetaDataDictionary(), NoteKey, note);
  }
  itk::ImageIORegion region(dimensions);
  for (unsigned int a = 0; a < dimensions; ++a)
  {
    std::vector<double> direction(dimensions);
    for (unsigned int row = 0; row < dimensions; ++row)
    {
      direction[row] = geometry.direction[3 * row + a];
    }
    io->SetDimensions(a, static_cast<itk::SizeValueType>(geometry.size[a]));
    io->SetSpacing(a, geometry.spacing[a]);
    io->SetOrigin(a, geometry.origin[a]);
    io->SetDirection(a, direction);
    region.SetIndex(a, 0);
    region.SetSize(a, static_cast<itk::SizeValueType>(geometry.size[a]));
  }
  io->SetIORegion(region);
  io->SetComponentType(ComponentOf(image.type));
  io->SetNumberOfComponents(static_cast<unsigned int>(image.components));
  io->SetPixelType(content == Content::Picture && image.components == 3 ? itk::IOPixelEnum::RGB
      : image.components > 1                                            ? itk::IOPixelEnum::VECTOR
                                                                        : itk::IOPixelEnum::SCALAR);
  io->SetUseCompression(true);
  io->Write(image.data);
}

} // namespace

std::string CheckOutput(const std::string& path, Content content)
{
  std::string sentence;
  (void)content;
  if (StorageFor(sentence, path) == Storage::No)
  {
    return sentence;
  }
  return FileBeside::Check(path);
}

std::string WriteImage(const std::string& path, const rcn_image& image, Content content, const std::function<bool()>& cancelled,
  const std::string& note)
{
  std::string remark, sentence = CheckOutput(path, content);
  if (!sentence.empty())
  {
    throw Error(RCN_EIO, sentence);
  }
  const int64_t elements = rcn_geometry_voxels(&image.geometry) * image.components;
  rcn_image stored = image;
  std::shared_ptr<void> converted;
  bool scaled = false;
  const bool wholeNumbers = StorageFor(sentence, path) == Storage::WholeNumbers;
  if (wholeNumbers && image.geometry.size[2] > 1)
  {
    throw Error(RCN_EIO, path + ": PNG holds one slice; use .nrrd or .nii.gz for a volume.");
  }
  if (wholeNumbers && image.components > 1 && content != Content::Picture)
  {
    throw Error(RCN_EIO, path + ": PNG cannot hold several values per voxel; use .nrrd or .tif.");
  }
  if (wholeNumbers && image.type == RCN_FLOAT32)
  {
    const float scale = content == Content::Mask ? 255.0F : content == Content::Probability ? 65535.0F : 1.0F;
    scaled = scale > 1;
    stored.type = content == Content::Probability ? RCN_UINT16 : RCN_UINT8;
    converted = AllocateBuffer(elements, rcn_type_size(stored.type), path);
    stored.data = converted.get();
    rcn_image_from_float(&stored, static_cast<const float*>(image.data), scale);
    remark = content == Content::Probability ? path + ": PNG holds whole numbers, so 0 ... 1 is stored as 0 ... 65535."
      : content == Content::Mask             ? path + ": PNG holds whole numbers, so the mask is stored as 0 and 255."
                                             : "";
  }

  if (wholeNumbers)
  {
    stored.geometry.dimension = 2;
  }

  FileBeside beside(path);
  const int64_t bytes = elements * static_cast<int64_t>(rcn_type_size(stored.type)) + 65536;
  const Room room = RoomFor(beside.Path(), bytes + bytes / 64);
  const std::string full = path + " cannot be written: the disk is full, or the file is not allowed to become so large.";
  // ITK's PNG writer does not survive a failing write; the others fail, or write what is compressed
  // well into the little room there is.
  if (wholeNumbers && room == Room::TooLittle)
  {
    throw Error(RCN_ESPACE, full);
  }
  try
  {
    WriteWithItk(beside.Path(), stored, content, note);
    if (scaled)
    {
      SetPngScale(beside.Path());
    }
  }
  catch (const itk::ExceptionObject& exception)
  {
    if (room != Room::Enough)
    {
      throw Error(RCN_ESPACE, full);
    }
    throw Error(RCN_EIO, path + " cannot be written: " + Reason(exception) + ".");
  }
  // Some writers of ITK do not notice a full disk: where room was not certain, read it back.
  if (room != Room::Enough && !ReadsBackAs(beside.Path(), stored))
  {
    throw Error(RCN_ESPACE, full);
  }
  if (!KeepsGeometry(beside.Path(), stored.geometry))
  {
    remark += (remark.empty() ? "" : " ") + path +
      " cannot keep the whole geometry (origin, spacing, direction); use .nrrd or .mha for that.";
  }
  if (cancelled && cancelled())
  {
    throw Error(RCN_ECANCELLED, "Cancelled while writing " + path + ".");
  }
  beside.Commit();
  return remark;
}

// ---- resampling and distances -----------------------------------------------------------------------

namespace
{

/// One channel as a plain image of its own.
Volume ExtractChannel(const Channel& channel)
{
  Volume out = Volume::Allocate(channel.Image.geometry, channel.Image.type);
  const size_t size = rcn_type_size(channel.Image.type);
  const int64_t voxels = rcn_geometry_voxels(&channel.Image.geometry);
  const char* in = static_cast<const char*>(channel.Image.data) + static_cast<size_t>(channel.Component) * size;
  for (int64_t i = 0; i < voxels; ++i)
  {
    std::memcpy(static_cast<char*>(out.Data()) + static_cast<size_t>(i) * size,
      in + static_cast<size_t>(i * channel.Image.components) * size, size);
  }
  return out;
}

/// Outside: the value at the edge, linear along it. ITK's own takes the nearest voxel, along the edge as well.
template <class TImage> class EdgeExtrapolator : public itk::ExtrapolateImageFunction<TImage, double>
{
public:
  using Self = EdgeExtrapolator;
  using Superclass = itk::ExtrapolateImageFunction<TImage, double>;
  using Pointer = itk::SmartPointer<Self>;
  using typename Superclass::ContinuousIndexType;
  using typename Superclass::IndexType;
  using typename Superclass::InputImageType;
  using typename Superclass::OutputType;
  itkNewMacro(Self);

  void SetInputImage(const InputImageType* image) override
  {
    Superclass::SetInputImage(image);
    this->Linear_->SetInputImage(image);
  }

  OutputType EvaluateAtContinuousIndex(const ContinuousIndexType& index) const override
  {
    ContinuousIndexType inside = index;
    for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
    {
      inside[a] = std::min(
        std::max(index[a], static_cast<double>(this->GetStartIndex()[a])), static_cast<double>(this->GetEndIndex()[a]));
    }
    return this->Linear_->EvaluateAtContinuousIndex(inside);
  }

  OutputType EvaluateAtIndex(const IndexType& index) const override
  {
    return this->EvaluateAtContinuousIndex(ContinuousIndexType(index));
  }

private:
  typename itk::LinearInterpolateImageFunction<TImage, double>::Pointer Linear_ =
    itk::LinearInterpolateImageFunction<TImage, double>::New();
};

/// Nearest neighbour and 0 outside, or linear and the edge's value outside.
template <class T, class TOut>
void ResampleChannel(TOut* out, int64_t stride, const Volume& in, const rcn_geometry& reference, bool linear)
{
  using ImageType = itk::Image<T, 3>;
  auto filter = itk::ResampleImageFilter<ImageType, itk::Image<TOut, 3>>::New();
  auto image = in.ToItk<T>();
  typename ImageType::SizeType size;
  typename ImageType::PointType origin;
  typename ImageType::SpacingType spacing;
  typename ImageType::DirectionType direction;
  for (unsigned int a = 0; a < 3; ++a)
  {
    size[a] = static_cast<itk::SizeValueType>(reference.size[a]);
    origin[a] = reference.origin[a];
    spacing[a] = reference.spacing[a];
    for (unsigned int row = 0; row < 3; ++row)
    {
      direction[row][a] = reference.direction[3 * row + a];
    }
  }
  filter->SetInput(image);
  if (linear)
  {
    filter->SetInterpolator(itk::LinearInterpolateImageFunction<ImageType, double>::New());
    filter->SetExtrapolator(EdgeExtrapolator<ImageType>::New());
  }
  else
  {
    filter->SetInterpolator(itk::NearestNeighborInterpolateImageFunction<ImageType, double>::New());
  }
  filter->SetSize(size);
  filter->SetOutputOrigin(origin);
  filter->SetOutputSpacing(spacing);
  filter->SetOutputDirection(direction);
  filter->SetDefaultPixelValue(0);
  filter->Update();
  const TOut* resampled = filter->GetOutput()->GetBufferPointer();
  const int64_t voxels = rcn_geometry_voxels(&reference);
  for (int64_t i = 0; i < voxels; ++i)
  {
    out[i * stride] = resampled[i];
  }
}

} // namespace

Volume ResampleNearest(const Volume& volume, const rcn_geometry& reference)
{
  Volume out = Volume::Allocate(reference, volume.View().type, volume.ChannelCount());
  for (int c = 0; c < volume.ChannelCount(); ++c)
  {
    const Volume channel = ExtractChannel(volume.GetChannel(c));
    Dispatch(volume.View().type, [&](auto element) {
      using T = decltype(element);
      ResampleChannel<T>(static_cast<T*>(out.Data()) + c, volume.ChannelCount(), channel, reference, false);
    });
  }
  return out;
}

Volume ResampleLinear(const Volume& volume, const rcn_geometry& reference)
{
  Volume out = Volume::Allocate(reference, RCN_FLOAT32, volume.ChannelCount());
  for (int c = 0; c < volume.ChannelCount(); ++c)
  {
    const Volume channel = ExtractChannel(volume.GetChannel(c));
    Dispatch(volume.View().type, [&](auto element) {
      ResampleChannel<decltype(element)>(static_cast<float*>(out.Data()) + c, volume.ChannelCount(), channel, reference, true);
    });
  }
  return out;
}

std::string SpacingText(const double spacing[3])
{
  char text[96];
  std::snprintf(text, sizeof text, "%.4g x %.4g x %.4g mm", spacing[0], spacing[1], spacing[2]);
  return text;
}

rcn_geometry GeometryAtSpacing(const rcn_geometry& geometry, const double spacing[3], const std::string& about)
{
  rcn_geometry out = geometry;
  double corner[3], voxels = 1;
  for (int a = 0; a < 3; ++a)
  {
    voxels *= std::max(1.0, geometry.spacing[a] / spacing[a]);
    if (!(spacing[a] > 0 && voxels <= 1000)) // also keeps the numbers below small
    {
      throw Error(RCN_EDATA,
        about + " has voxels of " + SpacingText(geometry.spacing) + ", which cannot be resampled to " + SpacingText(spacing) +
          "; is one of the two spacings wrong?");
    }
    const double extent = static_cast<double>(geometry.size[a]) * geometry.spacing[a];
    out.size[a] = std::max<int64_t>(1, std::llround(extent / spacing[a]));
    out.spacing[a] = spacing[a];
    corner[a] = (spacing[a] / geometry.spacing[a] - 1) / 2; // of the first voxel's centre, in voxels
  }
  rcn_geometry_to_world(out.origin, &geometry, corner);
  if (const char* sentence = rcn_geometry_check(&out))
  {
    throw Error(RCN_EDATA, about + ": " + sentence);
  }
  return out;
}

std::vector<Volume> ReadImages(rcn_context* context, const std::vector<std::string>& paths, double tolerance)
{
  std::vector<Volume> images;
  for (const std::string& path : paths)
  {
    const Volume image = ReadImage(path);
    if (IsAllZero(image))
    {
      throw Error(RCN_EDATA, path + " is zero everywhere; is it the right image?");
    }
    if (!images.empty())
    {
      Check(rcn_geometry_compare(
              context, &image.Geometry(), path.c_str(), &images.front().Geometry(), paths.front().c_str(), tolerance),
        context);
    }
    images.push_back(image);
  }
  return images;
}

bool IsAllZero(const Volume& volume)
{
  const char* bytes = static_cast<const char*>(volume.Data());
  const size_t count =
    static_cast<size_t>(rcn_geometry_voxels(&volume.Geometry()) * volume.ChannelCount()) * rcn_type_size(volume.View().type);
  // A buffer of zeros equals itself shifted by one, and starts with zero.
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

} // namespace rcn
