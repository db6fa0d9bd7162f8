// SPDX-License-Identifier: Apache-2.0
/// The reading half of rcnImageIO.h.
#include "rcnImageIO.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>

#include <itkMetaDataObject.h>

#include "rcnAddress.h"
#include "rcnDicomSeries.h"
#include "rcnFileCheck.h"
#include "rcnFileName.h"
#include "rcnImageFormat.h"
#include "rcnPlatform.h"
#include "rcnPng.h"
#include "rcnTemporaryFolder.h"

namespace rcn
{

namespace fs = std::filesystem;

namespace
{

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
/// neighbor. ITK makes alpha of a PNG's transparent color, and colors of its palette to have a place for it: a copy
/// has none.
class ReadableName
{
public:
  explicit ReadableName(const std::string& path) : Path_(path)
  {
    std::error_code failure;
    if (ExtensionOf(path) == ".nii.gz" && fs::exists(path.substr(0, path.size() - 3), failure))
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
      this->Fail("has more voxels than can be addressed.");
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
    this->Io_->SetIORegion(WholeRegion(*this->Io_));
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
    const std::string extension = ExtensionOf(this->Path_);
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
      this->Fail(std::string("is damaged: its header gives ") + text + " GB of voxels, more than the file can hold.");
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
  if (!platform::IsReadable(path))
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
    throw Error(RCN_EFORMAT, path + " cannot be read as an image: " + ReasonOf(exception) + ".");
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

std::vector<Volume> ReadImages(rcn_context* context, const std::vector<std::string>& paths, double tolerance)
{
  std::vector<Volume> images;
  for (const std::string& path : paths)
  {
    const Volume image = ReadImage(path);
    const rcn_image all = image.All();
    bool zero = rcn_image_is_constant(&all) != 0;
    for (int c = 0; zero && c < all.components; ++c)
    {
      zero = rcn_image_element(&all, c) == 0;
    }
    if (zero)
    {
      throw Error(RCN_EDATA, path + " is zero everywhere; check that it is the right image.");
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

} // namespace rcn
