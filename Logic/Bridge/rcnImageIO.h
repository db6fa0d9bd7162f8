// SPDX-License-Identifier: Apache-2.0
/// Images in and out, with ITK: files, DICOM folders, and itk::Image objects without a copy.
#ifndef rcnImageIO_h
#define rcnImageIO_h

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <itkCommonEnums.h>
#include <itkImage.h>
#include <itkVectorImage.h>

#include "rcn/rcn_image.h"
#include "rcn/rcn_orient.h"
#include "rcnError.h"

namespace rcn
{

/// One 2-D or 3-D scalar image inside a Volume.
struct Channel
{
  rcn_image Image;
  int Component = 0;
};

/// A segment of a Slicer segmentation file (.seg.nrrd).
struct Segment
{
  std::string Name;
  long long LabelValue = 1;
  int Layer = 0;
};

/// An image in memory: the core's view of a buffer, and what keeps the buffer alive.
///
/// Channels are the components of a voxel (interleaved) or the volumes of a 4-D file (one after the
/// other); a plain image has one.
class Volume
{
public:
  /// Borrows nothing, copies nothing: shares ownership of the ITK image.
  template <class TImage> static Volume FromItk(TImage* image);

  /// The same for a buffer of any other owner, who lives as long as the volume and its copies.
  static Volume Share(const rcn_image& view, std::shared_ptr<void> owner);

  /// An uninitialised image in a given geometry, which is checked; throws Error.
  static Volume Allocate(const rcn_geometry& geometry, rcn_type type, int components = 1);

  /// An itk::Image over the same buffer; the volume must outlive it. T must be the element type.
  template <class T> typename itk::Image<T, 3>::Pointer ToItk() const;

  const rcn_image& View() const { return this->View_; }
  const rcn_geometry& Geometry() const { return this->View_.geometry; }
  void* Data() const { return this->View_.data; }

  /// The same image stored in another order; itself where nothing changes.
  Volume Reordered(rcn_context* context, const rcn_order& order) const;

  int ChannelCount() const { return this->View_.components * this->Repeats_; }
  Channel GetChannel(int index) const;

  /// The volumes of a 4-D file as one image, one behind the other; otherwise View().
  rcn_image All() const;

  /// True for a colour picture (RGB), whose components are no separate images.
  bool IsColor() const { return this->Color_; }

  /// The stored number that means 1, where the file says so (WriteImage() to PNG); otherwise 0.
  double Scale() const { return this->Scale_; }
  const std::vector<Segment>& Segments() const { return this->Segments_; }

  /// What its file says about it (NRRD, MetaImage): WriteImage()'s note; empty where there is none.
  const std::string& Note() const { return this->Note_; }
  void SetNote(const std::string& note) { this->Note_ = note; }

private:
  friend class ImageReader;

  std::shared_ptr<void> Owner_;
  rcn_image View_{};
  int Repeats_ = 1; // volumes of a 4-D file
  bool Color_ = false;
  double Scale_ = 0;
  std::vector<Segment> Segments_;
  std::string Note_;
};

/// Reads a file (NRRD, NIfTI, MetaImage, PNG, TIFF, JPEG, DICOM, ...) or a folder with one DICOM
/// series. Throws Error naming the file: RCN_EIO when it cannot be opened, RCN_EFORMAT when it is no
/// image that can be used, RCN_EDATA when a voxel is NaN or infinite. Alpha is left out: it is no channel.
Volume ReadImage(const std::string& path);

/// The same for a map that is looked at in places only: elsewhere it may be NaN, so that it may be anywhere.
Volume ReadMap(const std::string& path);

/// The same without the voxels: geometry, type, channels and segments. Data() is null.
Volume ReadImageHeader(const std::string& path);

/// The same for a mask: where a picture has a palette, the numbers of its entries are the labels, not their colours.
Volume ReadMask(const std::string& path);
Volume ReadMaskHeader(const std::string& path);

/// The files of a folder that are named like images, sorted; none in a folder that may be a DICOM series. Throws Error
/// (RCN_EIO) when the folder cannot be read.
std::vector<std::string> ImagesIn(const std::string& folder);

/// Whether a file is a picture (PNG, JPEG, BMP) by its name. What such a file says is the size on paper, not in the world: it
/// has no spacing, and rcn_geometry.unit is RCN_PIXELS.
bool IsPictureName(const std::string& path);

/// "c01" of "folder/c01.nii.gz", "series" of "folder/series/": a case's id from its file.
std::string StemOf(const std::string& path);

/// What WriteImage() has to store.
enum class Content
{
  Mask,        ///< 0 and 1
  Levels,      ///< small whole numbers
  Probability, ///< 0 ... 1
  Picture      ///< 8-bit RGB for people
};

/// Writes float32 or uint8 voxels (any number of components) in the geometry's dimension, compressed
/// where the format can, beside the target and then renamed: the target is never half written.
///
/// Formats that hold whole numbers only (PNG) get masks as 0/255 and probabilities as 0 ... 65535, and which number means 1
/// (Volume::Scale()); the returned sentence says so, and what of the geometry a format cannot keep (empty otherwise). Writing
/// itself cannot be stopped, but when `cancelled` says true afterwards the target stays as it was and
/// RCN_ECANCELLED is thrown. A `note` goes into the file where the format has a place for it (NRRD, MetaImage).
std::string WriteImage(const std::string& path, const rcn_image& image, Content content,
  const std::function<bool()>& cancelled = {}, const std::string& note = "");

/// The sentence WriteImage() would fail with because of the path alone (unknown or unsuitable format,
/// missing folder, no permission); empty when it looks writable. Lets long work fail early.
std::string CheckOutput(const std::string& path, Content content);

/// Resamples every channel to another geometry with the nearest neighbour; 0 outside.
Volume ResampleNearest(const Volume& volume, const rcn_geometry& reference);

/// The same linearly, to float32; beyond the edge the edge goes on.
Volume ResampleLinear(const Volume& volume, const rcn_geometry& reference);

/// "0.7 x 0.7 x 3 mm"
std::string SpacingText(const double spacing[3]);

/// The same part of the world in voxels of another size: the first voxel's outer corner stays, the last one's within
/// half a voxel. Throws Error (RCN_EDATA) where that would make more than a thousand voxels of one: no network was trained
/// on voxels so much smaller, so one of the two spacings is
/// wrong. `about` names the image.
rcn_geometry GeometryAtSpacing(const rcn_geometry& geometry, const double spacing[3], const std::string& about = "The image");

/// The files of one image, a channel or more each. Throws Error that names the file: RCN_EDATA for one that is zero
/// everywhere, RCN_EGEOMETRY for one of another geometry than the first.
std::vector<Volume> ReadImages(rcn_context* context, const std::vector<std::string>& paths, double tolerance);

/// Whether every voxel of every channel is zero.
bool IsAllZero(const Volume& volume);

/// The libraries under ITK print to standard error by themselves. A program whose standard error belongs
/// to a person switches that off for the time of reading and writing; inside another application
/// (Slicer) it stays as it is, the default.
void SetLibrariesQuiet(bool quiet);

/// The core's name for a type of ITK's; false when it has none.
bool TypeOf(rcn_type& type, itk::IOComponentEnum component);

// ---- details of the templates -----------------------------------------------------------------

/// The core's name for a C++ number type.
template <class T> struct ElementType
{
  static constexpr int Size = static_cast<int>(sizeof(T));
  static constexpr rcn_type value = std::is_floating_point_v<T> ? (Size == 4 ? RCN_FLOAT32 : RCN_FLOAT64)
    : std::is_signed_v<T>                                       ? (Size == 1      ? RCN_INT8
                                                                      : Size == 2 ? RCN_INT16
                                                                      : Size == 4 ? RCN_INT32
                                                                                  : RCN_INT64)
                                                                : (Size == 1      ? RCN_UINT8
                                                                      : Size == 2 ? RCN_UINT16
                                                                      : Size == 4 ? RCN_UINT32
                                                                                  : RCN_UINT64);
};

template <class TImage> Volume Volume::FromItk(TImage* image)
{
  constexpr unsigned int dimension = TImage::ImageDimension;
  static_assert(dimension == 2 || dimension == 3, "2-D or 3-D images");
  const auto region = image->GetBufferedRegion();
  Volume volume;
  volume.View_.geometry = rcn_geometry_make(1, 1, 1);
  volume.View_.geometry.dimension = dimension;
  typename TImage::PointType origin;
  image->TransformIndexToPhysicalPoint(region.GetIndex(), origin);
  for (unsigned int a = 0; a < dimension; ++a)
  {
    volume.View_.geometry.size[a] = static_cast<int64_t>(region.GetSize(a));
    volume.View_.geometry.spacing[a] = image->GetSpacing()[a];
    volume.View_.geometry.origin[a] = origin[a];
    for (unsigned int row = 0; row < dimension; ++row)
    {
      volume.View_.geometry.direction[3 * row + a] = image->GetDirection()[row][a];
    }
  }
  volume.View_.type = ElementType<typename TImage::InternalPixelType>::value;
  volume.View_.components = static_cast<int>(image->GetNumberOfComponentsPerPixel());
  volume.View_.data = image->GetBufferPointer();
  volume.Owner_ = std::make_shared<typename TImage::Pointer>(image);
  return volume;
}

template <class T> typename itk::Image<T, 3>::Pointer Volume::ToItk() const
{
  const rcn_geometry& geometry = this->View_.geometry;
  auto image = itk::Image<T, 3>::New();
  typename itk::Image<T, 3>::SizeType size;
  typename itk::Image<T, 3>::PointType origin;
  typename itk::Image<T, 3>::SpacingType spacing;
  typename itk::Image<T, 3>::DirectionType direction;
  for (unsigned int a = 0; a < 3; ++a)
  {
    size[a] = static_cast<itk::SizeValueType>(geometry.size[a]);
    origin[a] = geometry.origin[a];
    spacing[a] = geometry.spacing[a];
    for (unsigned int row = 0; row < 3; ++row)
    {
      direction[row][a] = geometry.direction[3 * row + a];
    }
  }
  if (ElementType<T>::value != this->View_.type || this->View_.components != 1)
  {
    throw Error(RCN_EINTERNAL, "An image was asked for as another type than it has.");
  }
  image->SetRegions(size);
  image->SetOrigin(origin);
  image->SetSpacing(spacing);
  image->SetDirection(direction);
  image->GetPixelContainer()->SetImportPointer(static_cast<T*>(this->View_.data), size[0] * size[1] * size[2], false);
  return image;
}

} // namespace rcn

#endif
