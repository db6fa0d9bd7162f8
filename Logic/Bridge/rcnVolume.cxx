// SPDX-License-Identifier: Apache-2.0
#include "rcnVolume.h"

#include <cstdio>
#include <cstdlib>

namespace rcn
{

// malloc, not new: an image that does not fit becomes a sentence with its size, and the pages of one that is written by several
// threads are first touched by them.
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

// The core checks sizes; here only the product with the components is new. Headers of files lead here, so a size may be
// nonsense.
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
  // The same voxels, shared.
  if (rcn_order_is_identity(&order))
  {
    return *this;
  }
  // Note, segments and all else that a file said stays with the voxels.
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

// For passes that do not care where voxels are, over all repeats (time points, channels one after another) at once: as if they
// were slices.
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

} // namespace rcn
