// SPDX-License-Identifier: Apache-2.0
/// The writing half of rcnImageIO.h.
#include "rcnImageIO.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <itkMetaDataObject.h>
#include <itk_zlib.h>

#include "rcnFile.h"
#include "rcnFileName.h"
#include "rcnGzip.h"
#include "rcnImageFormat.h"
#include "rcnPlatform.h"
#include "rcnPng.h"

namespace rcn
{

using platform::Room;

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

void WriteWithItk(
  const std::string& path, const rcn_image& image, const std::string& note, const std::vector<Segment>& segments)
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
  for (size_t i = 0; i < segments.size(); ++i)
  {
    const std::string prefix = "Segment" + std::to_string(i) + "_";
    const auto set = [&](const char* key, const std::string& text) {
      itk::EncapsulateMetaData<std::string>(io->GetMetaDataDictionary(), prefix + key, text);
    };
    set("ID", "Segment_" + std::to_string(i + 1));
    set("Name", segments[i].Name);
    set("LabelValue", std::to_string(segments[i].LabelValue));
    set("Layer", std::to_string(segments[i].Layer));
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

namespace
{

// ---- compressed on several threads -------------------------------------------------------------------

/// How a file is compressed: by ITK on one thread, or here. ITK still makes the header.
enum class Packing
{
  Itk,
  Nrrd, // the header is plain, the voxels are compressed
  Nifti // both are compressed; the components of a vector are one image after another
};

Packing PackingOf(const std::string& path, const rcn_image& image)
{
  constexpr int64_t mostVoxels = 32767; // along an axis: NIfTI-1 has 16 bits for it, and ITK says what is to be said of more
  const std::string extension = ExtensionOf(path);
  const int64_t* size = image.geometry.size;
  return extension == ".nrrd"                                                   ? Packing::Nrrd
    : extension == ".nii.gz" && *std::max_element(size, size + 3) <= mostVoxels ? Packing::Nifti
                                                                                : Packing::Itk;
}

/// What is in a file that may be compressed with gzip.
std::string Unpacked(const std::string& path)
{
  std::string bytes;
  char part[4096];
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  for (int count = 1; file && count > 0;)
  {
    count = gzread(file.get(), part, sizeof part);
    bytes.append(part, static_cast<size_t>(std::max(count, 0)));
  }
  return bytes;
}

/// The header that ITK writes for the image, without writing the image: that of its first voxel, with the sizes put right.
/// Empty when ITK failed to write it and did not notice.
std::string HeaderOf(const std::string& path, const rcn_image& image, const WriteOptions& options, Packing packing)
{
  rcn_image first = image;
  std::fill(first.geometry.size, first.geometry.size + 3, 1);
  WriteWithItk(path, first, options.Note, options.Segments);
  const int dimension = image.geometry.dimension;
  if (packing == Packing::Nifti)
  {
    constexpr size_t sizes = 42; // int16_t dim[1], dim[2], ...
    std::string header = Unpacked(path);
    const size_t voxel = static_cast<size_t>(image.components) * rcn_type_size(image.type);
    if (header.size() < 352 + voxel)
    {
      return "";
    }
    header.resize(header.size() - voxel);
    for (int a = 0; a < dimension; ++a)
    {
      const auto size = static_cast<int16_t>(image.geometry.size[a]);
      std::memcpy(&header[sizes + sizeof size * static_cast<size_t>(a)], &size, sizeof size);
    }
    return header;
  }
  std::string header = ReadText(path);
  const size_t end = header.find("\n\n"), sizes = header.find("\nsizes:");
  if (end == std::string::npos || sizes > end)
  {
    return "";
  }
  std::string text = "\nsizes:" + (image.components > 1 ? " " + std::to_string(image.components) : "");
  for (int a = 0; a < dimension; ++a)
  {
    text += " " + std::to_string(image.geometry.size[a]);
  }
  return header.substr(0, sizes) + text + header.substr(header.find('\n', sizes + 1), end + 2 - header.find('\n', sizes + 1));
}

/// Elements [first, first + count) of an image whose components lie one after another.
void CopyPlanes(unsigned char* out, const rcn_image& image, int64_t first, int64_t count)
{
  const int64_t voxels = rcn_geometry_voxels(&image.geometry);
  const size_t bytes = rcn_type_size(image.type);
  while (count > 0)
  {
    const int64_t voxel = first % voxels, here = std::min(count, voxels - voxel);
    rcn_image part = image;
    part.geometry = rcn_geometry_make(here, 1, 1);
    part.data = static_cast<unsigned char*>(image.data) + static_cast<size_t>(voxel * image.components) * bytes;
    rcn_image_copy_component(out, 1, &part, static_cast<int>(first / voxels));
    out += static_cast<size_t>(here) * bytes;
    first += here;
    count -= here;
  }
}

void WritePacked(
  const std::string& path, const std::string& name, const rcn_image& image, const WriteOptions& options, Packing packing)
{
  const std::string header = HeaderOf(path, image, options, packing);
  if (header.empty())
  {
    throw Error(RCN_ESPACE, name + " cannot be written.");
  }
  errno = 0;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file)
  {
    throw WriteError(name, errno);
  }
  const auto elementBytes = static_cast<int64_t>(rcn_type_size(image.type));
  const int64_t voxelBytes = rcn_geometry_voxels(&image.geometry) * image.components * elementBytes;
  const unsigned char* voxels = static_cast<const unsigned char*>(image.data);
  // Of the stream that is compressed; sizes of headers and blocks are multiples of an element.
  const int64_t head = packing == Packing::Nifti ? static_cast<int64_t>(header.size()) : 0;
  const GzipSource source = [&](int64_t first, int64_t bytes, unsigned char* scratch) -> const unsigned char* {
    const int64_t begin = std::max<int64_t>(first - head, 0), front = std::min(std::max<int64_t>(head - first, 0), bytes);
    if (front == 0 && (packing == Packing::Nrrd || image.components == 1))
    {
      return voxels + begin;
    }
    std::copy_n(header.data() + head - std::max<int64_t>(head - first, 0), front, scratch);
    CopyPlanes(scratch + front, image, begin / elementBytes, (bytes - front) / elementBytes);
    return scratch;
  };
  if (packing == Packing::Nrrd && std::fwrite(header.data(), 1, header.size(), file.get()) != header.size())
  {
    throw WriteError(name, errno);
  }
  WriteGzip(file.get(), name, head + voxelBytes, source, { options.Threads, options.Canceled });
  if (std::fclose(file.release()) != 0)
  {
    throw WriteError(name, errno);
  }
}

/// Fills the file beside the target; `name` is the target's.
void WriteBeside(const std::string& path, const std::string& name, const rcn_image& image, const WriteOptions& options)
{
  const Packing packing = PackingOf(path, image);
  const int64_t elements = rcn_geometry_voxels(&image.geometry) * image.components;
  const int64_t bytes = elements * static_cast<int64_t>(rcn_type_size(image.type)) + 65536;
  const Room room = platform::RoomFor(path, packing == Packing::Itk ? bytes + bytes / 64 : 65536);
  const Error full(RCN_ESPACE, name + " cannot be written: the disk is full, or the file is not allowed to become so large.");
  // ITK's PNG writer does not survive a failing write; the others fail, or write what is compressed
  // well into the little room there is.
  if (room == Room::TooLittle && ExtensionOf(name) == ".png")
  {
    throw full;
  }
  try
  {
    packing == Packing::Itk ? WriteWithItk(path, image, options.Note, options.Segments)
                            : WritePacked(path, name, image, options, packing);
  }
  catch (const Error& error)
  {
    if (error.Status() == RCN_ESPACE)
    {
      throw full;
    }
    throw;
  }
  catch (const itk::ExceptionObject& exception)
  {
    if (room != Room::Enough)
    {
      throw full;
    }
    throw Error(RCN_EIO, name + " cannot be written: " + ReasonOf(exception) + ".");
  }
  // Some writers of ITK do not notice a full disk: where room was not certain, read it back.
  if (packing == Packing::Itk && room != Room::Enough && !ReadsBackAs(path, image))
  {
    throw full;
  }
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

std::string WriteImage(const std::string& path, const rcn_image& image, Content content, const WriteOptions& options)
{
  std::string sentence = CheckOutput(path, content);
  if (!sentence.empty())
  {
    throw Error(RCN_EIO, sentence);
  }
  const bool isPng = StorageFor(sentence, path) == Storage::WholeNumbers;
  const PngImage png = isPng ? ToPng(path, image, content) : PngImage();
  const rcn_image& stored = isPng ? png.Image : image;
  AtomicFile file(path);
  WriteBeside(file.Path(), path, stored, options);
  if (png.Scaled)
  {
    SetPngScale(file.Path());
  }
  std::string remark = png.Remark;
  if (!KeepsGeometry(file.Path(), stored.geometry))
  {
    remark += (remark.empty() ? "" : " ") + path +
      " cannot keep the whole geometry (origin, spacing, direction); use .nrrd or .mha for that.";
  }
  if (options.Canceled && options.Canceled())
  {
    throw Error(RCN_ECANCELLED, "Canceled while writing " + path + ".");
  }
  file.Commit();
  return remark;
}

} // namespace rcn
