// SPDX-License-Identifier: Apache-2.0
#include "rcnResample.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <itkExtrapolateImageFunction.h>
#include <itkLinearInterpolateImageFunction.h>
#include <itkNearestNeighborInterpolateImageFunction.h>
#include <itkResampleImageFilter.h>

#include "rcnItkImage.h"

namespace rcn
{

namespace
{

/// One channel as a plain image of its own.
Volume ExtractChannel(const Channel& channel)
{
  Volume out = Volume::Allocate(channel.Image.geometry, channel.Image.type);
  rcn_image_copy_component(out.Data(), 1, &channel.Image, channel.Component);
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

/// One channel on another grid, as channel `index` of `out`, whose elements are of type TOut: nearest neighbor and 0 outside,
/// or linear and the edge's value outside.
template <class T, class TOut> void ResampleChannel(const Volume& out, int index, const Volume& in, bool linear)
{
  using ImageType = itk::Image<T, 3>;
  auto filter = itk::ResampleImageFilter<ImageType, itk::Image<TOut, 3>>::New();
  auto image = ToItk<T>(in);
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
  SetGeometry(out.Geometry(), [&](const auto& size, const auto& origin, const auto& spacing, const auto& direction) {
    filter->SetSize(size);
    filter->SetOutputOrigin(origin);
    filter->SetOutputSpacing(spacing);
    filter->SetOutputDirection(direction);
  });
  filter->SetDefaultPixelValue(0);
  filter->Update();
  const rcn_image resampled = { filter->GetOutput()->GetBufferPointer(), out.View().type, 1, out.Geometry() };
  rcn_image_copy_component(static_cast<TOut*>(out.Data()) + index, out.View().components, &resampled, 0);
}

/// Copies bits, so that types of one size are one and fewer filters are compiled. ITK passes values through a double, which
/// holds the bits of up to four bytes; types of eight bytes go through it as the numbers they are.
void ResampleNearestChannel(const Volume& out, int index, const Volume& channel)
{
  const auto resample = [&](auto element) {
    using T = decltype(element);
    ResampleChannel<T, T>(out, index, channel, false);
  };
  switch (channel.View().type)
  {
    case RCN_UINT8:
    case RCN_INT8: return resample(uint8_t());
    case RCN_UINT16:
    case RCN_INT16: return resample(uint16_t());
    case RCN_UINT32:
    case RCN_INT32:
    case RCN_FLOAT32: return resample(uint32_t());
    case RCN_UINT64: return resample(uint64_t());
    case RCN_INT64: return resample(int64_t());
    case RCN_FLOAT64: return resample(double());
  }
}

/// A channel as floating-point numbers of a type that holds its values exactly, for ITK's interpolation, which uses doubles:
/// two types to compile instead of ten.
Volume ToReal(const Channel& channel)
{
  const rcn_type type = channel.Image.type;
  const bool single = type == RCN_FLOAT32 || rcn_type_size(type) <= 2;
  const Volume out = Volume::Allocate(channel.Image.geometry, single ? RCN_FLOAT32 : RCN_FLOAT64);
  if (single)
  {
    rcn_image_to_float(static_cast<float*>(out.Data()), 1, &channel.Image, channel.Component, 1);
  }
  else
  {
    rcn_image_to_double(static_cast<double*>(out.Data()), &channel.Image, channel.Component);
  }
  return out;
}

} // namespace

Volume ResampleNearest(const Volume& volume, const rcn_geometry& reference)
{
  Volume out = Volume::Allocate(reference, volume.View().type, volume.ChannelCount());
  for (int c = 0; c < volume.ChannelCount(); ++c)
  {
    ResampleNearestChannel(out, c, ExtractChannel(volume.GetChannel(c)));
  }
  return out;
}

Volume ResampleLinear(const Volume& volume, const rcn_geometry& reference)
{
  Volume out = Volume::Allocate(reference, RCN_FLOAT32, volume.ChannelCount());
  for (int c = 0; c < volume.ChannelCount(); ++c)
  {
    const Volume channel = ToReal(volume.GetChannel(c));
    const bool single = channel.View().type == RCN_FLOAT32;
    single ? ResampleChannel<float, float>(out, c, channel, true) : ResampleChannel<double, float>(out, c, channel, true);
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
          "; check the two spacings.");
    }
    const double extent = static_cast<double>(geometry.size[a]) * geometry.spacing[a];
    out.size[a] = std::max<int64_t>(1, std::llround(extent / spacing[a]));
    out.spacing[a] = spacing[a];
    corner[a] = (spacing[a] / geometry.spacing[a] - 1) / 2; // of the first voxel's center, in voxels
  }
  rcn_geometry_to_world(out.origin, &geometry, corner);
  if (const char* sentence = rcn_geometry_check(&out))
  {
    throw Error(RCN_EDATA, about + ": " + sentence);
  }
  return out;
}

} // namespace rcn
