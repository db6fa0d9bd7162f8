// SPDX-License-Identifier: Apache-2.0
/// An image in memory, without a word about files (rcnImageIO.h) or ITK (rcnItkImage.h), which take long to compile.
#ifndef rcnVolume_h
#define rcnVolume_h

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

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
  /// Over somebody's buffer, without a copy: the owner lives as long as the volume and its copies. (ITK images: rcnItkImage.h.)
  static Volume Share(const rcn_image& view, std::shared_ptr<void> owner);

  /// An uninitialized image in a given geometry, which is checked; throws Error.
  static Volume Allocate(const rcn_geometry& geometry, rcn_type type, int components = 1);

  /// These are borrowed: valid as long as a copy of the volume is. The data is null where only a header was read.
  const rcn_image& View() const { return this->View_; }
  const rcn_geometry& Geometry() const { return this->View_.geometry; }
  void* Data() const { return this->View_.data; }

  /// The same image stored in another order; itself where nothing changes.
  Volume Reordered(rcn_context* context, const rcn_order& order) const;

  int ChannelCount() const { return this->View_.components * this->Repeats_; }
  /// 0 ... ChannelCount() - 1, which is not checked; borrowed as above.
  Channel GetChannel(int index) const;

  /// The volumes of a 4-D file as one image, one behind the other; otherwise View().
  rcn_image All() const;

  /// True for a color picture (RGB), whose components are not separate images.
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

/// Room for so many elements of a size; throws Error (RCN_ENOMEM) that names the purpose.
std::shared_ptr<void> AllocateBuffer(int64_t elements, size_t size, const std::string& purpose);

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

} // namespace rcn

#endif
