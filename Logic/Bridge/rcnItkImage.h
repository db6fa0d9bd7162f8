// SPDX-License-Identifier: Apache-2.0
/// Images of ITK's as volumes and back, without a copy. Apart from rcnVolume.h, because these headers take seconds to compile.
#ifndef rcnItkImage_h
#define rcnItkImage_h

#include <memory>
#include <type_traits>

#include <itkImage.h>
#include <itkVectorImage.h>

#include "rcnVolume.h"

namespace rcn
{

/// A volume that shares ownership of a 2-D or 3-D image of ITK's, without a copy.
template <class TImage> Volume FromItk(TImage* image)
{
  constexpr unsigned int dimension = TImage::ImageDimension;
  static_assert(dimension == 2 || dimension == 3, "2-D or 3-D images");
  const auto region = image->GetBufferedRegion();
  rcn_image view{};
  view.geometry = rcn_geometry_make(1, 1, 1);
  view.geometry.dimension = dimension;
  typename TImage::PointType origin;
  image->TransformIndexToPhysicalPoint(region.GetIndex(), origin);
  for (unsigned int a = 0; a < dimension; ++a)
  {
    view.geometry.size[a] = static_cast<int64_t>(region.GetSize(a));
    view.geometry.spacing[a] = image->GetSpacing()[a];
    view.geometry.origin[a] = origin[a];
    for (unsigned int row = 0; row < dimension; ++row)
    {
      view.geometry.direction[3 * row + a] = image->GetDirection()[row][a];
    }
  }
  view.type = ElementType<typename TImage::InternalPixelType>::value;
  view.components = static_cast<int>(image->GetNumberOfComponentsPerPixel());
  view.data = image->GetBufferPointer();
  return Volume::Share(view, std::make_shared<typename TImage::Pointer>(image));
}

/// Gives an image of ITK's, or a filter's output, a geometry: set(size, origin, spacing, direction).
template <class TSet> void SetGeometry(const rcn_geometry& geometry, TSet&& set)
{
  using ImageType = itk::ImageBase<3>;
  ImageType::SizeType size;
  ImageType::PointType origin;
  ImageType::SpacingType spacing;
  ImageType::DirectionType direction;
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
  set(size, origin, spacing, direction);
}

/// An image of ITK's over the buffer of a volume, which must outlive it. T must be the volume's element type, or an unsigned
/// one of the same size where only the bits are copied.
template <class T> typename itk::Image<T, 3>::Pointer ToItk(const Volume& volume)
{
  const rcn_image& view = volume.View();
  if ((ElementType<T>::value != view.type && !(std::is_unsigned_v<T> && sizeof(T) == rcn_type_size(view.type))) ||
    view.components != 1)
  {
    throw Error(RCN_EINTERNAL, "An image was requested in a type that it does not have.");
  }
  auto image = itk::Image<T, 3>::New();
  SetGeometry(view.geometry, [&](const auto& size, const auto& origin, const auto& spacing, const auto& direction) {
    image->SetRegions(size);
    image->SetOrigin(origin);
    image->SetSpacing(spacing);
    image->SetDirection(direction);
  });
  image->GetPixelContainer()->SetImportPointer(
    static_cast<T*>(view.data), static_cast<itk::SizeValueType>(rcn_geometry_voxels(&view.geometry)), false);
  return image;
}

} // namespace rcn

#endif
