// SPDX-License-Identifier: Apache-2.0
/// The writing half of rcnImageIO.h.
#include "rcnImageIO.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <itkMetaDataObject.h>

#include "rcnFile.h"
#include "rcnFileName.h"
#include "rcnImageFormat.h"
#include "rcnPng.h"

namespace rcn
{

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
  const std::string extension = ExtensionOf(path);
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

void WriteWithItk(const std::string& path, const rcn_image& image, const std::string& note)
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
  }
  io->SetIORegion(WholeRegion(*io));
  io->SetComponentType(ComponentOf(image.type));
  io->SetNumberOfComponents(static_cast<unsigned int>(image.components));
  io->SetPixelType(image.components > 1 ? itk::IOPixelEnum::VECTOR : itk::IOPixelEnum::SCALAR);
  io->SetUseCompression(true);
  io->Write(image.data);
}

/// An image as PNG holds it: whole numbers in one slice.
struct PngImage
{
  rcn_image Image{};
  std::shared_ptr<void> Owner; ///< of converted voxels
  bool Scaled = false;         ///< 1 is stored as 255 or 65535
  std::string Remark;
};

PngImage ToPng(const std::string& path, const rcn_image& image, Content content)
{
  if (image.geometry.size[2] > 1)
  {
    throw Error(RCN_EIO, path + ": PNG holds one slice; use .nrrd or .nii.gz for a volume.");
  }
  if (image.components > 1)
  {
    throw Error(RCN_EIO, path + ": PNG cannot hold several values per voxel; use .nrrd or .tif.");
  }
  PngImage png;
  png.Image = image;
  png.Image.geometry.dimension = 2;
  if (image.type != RCN_FLOAT32)
  {
    return png;
  }
  const bool wide = content == Content::Probability;
  const float scale = wide ? 65535.0F : content == Content::Mask ? 255.0F : 1.0F;
  const int64_t elements = rcn_geometry_voxels(&image.geometry) * image.components;
  png.Image.type = wide ? RCN_UINT16 : RCN_UINT8;
  png.Owner = AllocateBuffer(elements, rcn_type_size(png.Image.type), path);
  png.Image.data = png.Owner.get();
  png.Scaled = scale > 1;
  rcn_image_from_float(&png.Image, static_cast<const float*>(image.data), scale);
  png.Remark = !png.Scaled ? ""
    : wide                 ? path + ": PNG holds whole numbers, so 0 ... 1 is stored as 0 ... 65535."
                           : path + ": PNG holds whole numbers, so the mask is stored as 0 and 255.";
  return png;
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
  return AtomicFile::Check(path);
}

std::string WriteImage(const std::string& path, const rcn_image& image, Content content, const std::function<bool()>& cancelled,
  const std::string& note)
{
  std::string sentence = CheckOutput(path, content);
  if (!sentence.empty())
  {
    throw Error(RCN_EIO, sentence);
  }
  const bool isPng = StorageFor(sentence, path) == Storage::WholeNumbers;
  const PngImage png = isPng ? ToPng(path, image, content) : PngImage();
  const rcn_image& stored = isPng ? png.Image : image;
  std::string remark = png.Remark;
  AtomicFile file(path);
  const int64_t elements = rcn_geometry_voxels(&stored.geometry) * stored.components;
  const int64_t bytes = elements * static_cast<int64_t>(rcn_type_size(stored.type)) + 65536;
  const Room room = RoomFor(file.Path(), bytes + bytes / 64);
  const std::string full = path + " cannot be written: the disk is full, or the file is not allowed to become so large.";
  // ITK's PNG writer does not survive a failing write; the others fail, or write what is compressed
  // well into the little room there is.
  if (isPng && room == Room::TooLittle)
  {
    throw Error(RCN_ESPACE, full);
  }
  try
  {
    WriteWithItk(file.Path(), stored, note);
    if (png.Scaled)
    {
      SetPngScale(file.Path());
    }
  }
  catch (const itk::ExceptionObject& exception)
  {
    if (room != Room::Enough)
    {
      throw Error(RCN_ESPACE, full);
    }
    throw Error(RCN_EIO, path + " cannot be written: " + ReasonOf(exception) + ".");
  }
  // Some writers of ITK do not notice a full disk: where room was not certain, read it back.
  if (room != Room::Enough && !ReadsBackAs(file.Path(), stored))
  {
    throw Error(RCN_ESPACE, full);
  }
  if (!KeepsGeometry(file.Path(), stored.geometry))
  {
    remark += (remark.empty() ? "" : " ") + path +
      " cannot keep the whole geometry (origin, spacing, direction); use .nrrd or .mha for that.";
  }
  if (cancelled && cancelled())
  {
    throw Error(RCN_ECANCELLED, "Canceled while writing " + path + ".");
  }
  file.Commit();
  return remark;
}

} // namespace rcn
