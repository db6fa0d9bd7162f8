// SPDX-License-Identifier: Apache-2.0
#include "rcnImageIO.h"
#include "rcnItkImage.h"
#include "rcnResample.h"

#include <itk_zlib.h>

#include "rcnFile.h"
#include "rcnImageFormat.h"
#include "rcnTest.h"

namespace
{

rcn_geometry Slanted(int64_t x, int64_t y, int64_t z)
{
  rcn_geometry geometry = rcn_geometry_make(x, y, z);
  const double c = std::cos(0.4), s = std::sin(0.4);
  const double direction[9] = { c, -s, 0, s, c, 0, 0, 0, 1 };
  std::copy(direction, direction + 9, geometry.direction);
  const double spacing[3] = { 0.5, 0.75, 3 }, origin[3] = { -10.5, 33.25, 7 };
  std::copy(spacing, spacing + (z > 1 ? 3 : 2), geometry.spacing);
  std::copy(origin, origin + (z > 1 ? 3 : 2), geometry.origin);
  return geometry;
}

bool SameGeometry(const rcn_geometry& a, const rcn_geometry& b, double tolerance = 1e-5)
{
  bool same = a.dimension == b.dimension;
  for (int i = 0; i < 3; ++i)
  {
    same = same && a.size[i] == b.size[i] && std::fabs(a.spacing[i] - b.spacing[i]) < tolerance &&
      std::fabs(a.origin[i] - b.origin[i]) < tolerance;
  }
  for (int i = 0; i < 9; ++i)
  {
    same = same && std::fabs(a.direction[i] - b.direction[i]) < tolerance;
  }
  return same;
}

template <class TImage> typename TImage::Pointer MakeItk()
{
  auto image = TImage::New();
  typename TImage::RegionType region;
  for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
  {
    region.SetIndex(a, 2 + static_cast<itk::IndexValueType>(a)); // an image need not start at 0
    region.SetSize(a, 4 + a);
  }
  image->SetRegions(region);
  typename TImage::SpacingType spacing;
  spacing.Fill(0.5);
  image->SetSpacing(spacing);
  image->Allocate();
  return image;
}

void FromItkBorrowsTheBuffer()
{
  using ImageType = itk::Image<short, 3>;
  rcn::Volume volume;
  {
    auto image = MakeItk<ImageType>();
    image->FillBuffer(7);
    volume = rcn::FromItk(image.GetPointer());
    CHECK(volume.Data() == image->GetBufferPointer());
  }
  // The volume keeps the image alive.
  CHECK(static_cast<short*>(volume.Data())[4 * 5 * 6 - 1] == 7);
  CHECK(volume.View().type == RCN_INT16 && volume.View().components == 1 && volume.ChannelCount() == 1);
  CHECK(volume.Geometry().dimension == 3 && volume.Geometry().size[2] == 6);
  CHECK_NEAR(volume.Geometry().origin[1], 1.5, 1e-12); // the world position of the first voxel held
}

void FromItkFlatAndVectors()
{
  auto flat = MakeItk<itk::Image<float, 2>>();
  const rcn::Volume plane = rcn::FromItk(flat.GetPointer());
  CHECK(plane.Geometry().dimension == 2 && plane.Geometry().size[2] == 1 && plane.View().type == RCN_FLOAT32);
  auto vectors = itk::VectorImage<unsigned char, 3>::New();
  itk::ImageRegion<3> region;
  region.SetSize(0, 2);
  region.SetSize(1, 2);
  region.SetSize(2, 2);
  vectors->SetRegions(region);
  vectors->SetNumberOfComponentsPerPixel(3);
  vectors->Allocate();
  const rcn::Volume three = rcn::FromItk(vectors.GetPointer());
  CHECK(three.View().components == 3 && three.ChannelCount() == 3 && three.GetChannel(2).Component == 2);
  CHECK(three.Data() == vectors->GetBufferPointer());
}

void ToItkSharesTheBuffer()
{
  const rcn::Volume volume = rcn::Volume::Allocate(Slanted(3, 4, 5), RCN_UINT8);
  const auto image = rcn::ToItk<uint8_t>(volume);
  CHECK(image->GetBufferPointer() == volume.Data());
  CHECK(SameGeometry(rcn::FromItk(image.GetPointer()).Geometry(), volume.Geometry(), 1e-12));
  CHECK_THROWS(rcn::ToItk<float>(volume), RCN_EINTERNAL, "a type that it does not have");
}

void RoundTrips()
{
  const Folder folder;
  for (const char* name : { "a.nrrd", "a.nii", "a.nii.gz", "a.mha" })
  {
    for (const int64_t slices : { 1, 5 })
    {
      for (const rcn_type type : { RCN_FLOAT32, RCN_UINT8 })
      {
        const rcn::Volume out = rcn::Volume::Allocate(Slanted(6, 7, slices), type);
        const int64_t voxels = rcn_geometry_voxels(&out.Geometry());
        for (int64_t i = 0; i < voxels; ++i)
        {
          type == RCN_UINT8 ? static_cast<uint8_t*>(out.Data())[i] = static_cast<uint8_t>(i % 7)
                            : static_cast<float*>(out.Data())[i] = static_cast<float>(i) / 7;
        }
        CHECK(rcn::WriteImage(folder / name, out.View(), rcn::Content::Probability).empty());
        const rcn::Volume in = rcn::ReadImage(folder / name);
        CHECK(in.View().type == type && SameGeometry(in.Geometry(), out.Geometry()));
        CHECK(std::memcmp(in.Data(), out.Data(), static_cast<size_t>(voxels) * rcn_type_size(type)) == 0);
        const rcn::Volume header = rcn::ReadImageHeader(folder / name);
        CHECK(header.Data() == nullptr && SameGeometry(header.Geometry(), in.Geometry()));
      }
    }
  }
  CHECK(folder.Count() == 4);
  // Each format once: an application that has its own keeps them, a program gets ours.
  CHECK(itk::ObjectFactoryBase::CreateAllInstance("itkImageIOBase").size() == 7);
}

void SeveralComponents()
{
  const Folder folder;
  const rcn::Volume out = rcn::Volume::Allocate(Slanted(3, 4, 5), RCN_FLOAT32, 4);
  for (int i = 0; i < 240; ++i)
  {
    static_cast<float*>(out.Data())[i] = static_cast<float>(i);
  }
  for (const char* name : { "a.nrrd", "a.mha" })
  {
    rcn::WriteImage(folder / name, out.View(), rcn::Content::Probability);
    const rcn::Volume in = rcn::ReadImage(folder / name);
    CHECK(in.ChannelCount() == 4 && !in.IsColor());
    CHECK(std::memcmp(in.Data(), out.Data(), 240 * sizeof(float)) == 0);
    // Four bytes are four masks where a format does not say that they are a color.
    rcn_image masks = out.View();
    masks.type = RCN_UINT8;
    rcn::WriteImage(folder / name, masks, rcn::Content::Levels);
    CHECK(rcn::ReadImage(folder / name).ChannelCount() == 4 && rcn::ReadMaskHeader(folder / name).ChannelCount() == 4);
  }
}

/// A map keeps its NaN and infinite voxels, each where it was; an image has none.
/// After decompression, every byte is what ITK's own writer makes of the image.
void CompressedAsItkDoes()
{
  const Folder folder;
  const auto unpacked = [](const std::string& path) {
    std::string bytes = TextOf(path), out(8 << 20, '\0');
    const size_t plain = path.find(".nrrd") == std::string::npos ? 0 : bytes.find("\n\n") + 2;
    z_stream stream = z_stream();
    CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
    stream.next_in = reinterpret_cast<unsigned char*>(&bytes[plain]);
    stream.avail_in = static_cast<uInt>(bytes.size() - plain);
    stream.next_out = reinterpret_cast<unsigned char*>(&out[0]);
    stream.avail_out = static_cast<uInt>(out.size());
    CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    inflateEnd(&stream);
    return bytes.substr(0, plain) + out;
  };
  for (const char* name : { "a.nrrd", "a.nii.gz" })
  {
    for (const int64_t slices : { 1, 2, 97 }) // the last is more than one block
    {
      for (const rcn_type type : { RCN_FLOAT32, RCN_UINT8 })
      {
        for (const int components : { 1, 3, 4, 6 })
        {
          const rcn::Volume out = rcn::Volume::Allocate(Slanted(60, 50, slices), type, components);
          const size_t bytes = static_cast<size_t>(60 * 50 * slices * components) * rcn_type_size(type);
          for (size_t i = 0; i < bytes; ++i)
          {
            static_cast<uint8_t*>(out.Data())[i] = static_cast<uint8_t>(i * i >> (type == RCN_UINT8 ? 7 : 3) & 0x3f);
          }
          const std::string note = type == RCN_UINT8 ? "" : "a note, of\n\ntwo paragraphs";
          rcn::WriteImage(folder / name, out.View(), rcn::Content::Levels, { {}, note, 3 });
          rcn::WriteWithItk(folder / ("itk-" + std::string(name)), out.View(), note);
          CHECK(unpacked(folder / name) == unpacked(folder / ("itk-" + std::string(name))));
          const std::string file = TextOf(folder / name);
          rcn::WriteImage(folder / name, out.View(), rcn::Content::Levels, { {}, note, 1 });
          CHECK(TextOf(folder / name) == file);
        }
      }
    }
  }
}

void NotFiniteVoxels()
{
  const Folder folder;
  for (const char* name : { "a.nrrd", "a.nii", "a.nii.gz", "a.mha", "a.tif" })
  {
    for (const int components : { 1, 4 })
    {
      const rcn::Volume out = rcn::Volume::Allocate(rcn_geometry_make(6, 7, 5), RCN_FLOAT32, components);
      float* values = static_cast<float*>(out.Data());
      for (int i = 0; i < 210 * components; ++i)
      {
        values[i] = static_cast<float>(i) / 1000;
      }
      values[components * (1 + 6 * (2 + 7 * 3)) + components - 1] = NAN;
      values[components * 209] = -INFINITY;
      rcn::WriteImage(folder / name, out.View(), rcn::Content::Probability);
      const rcn::Volume in = rcn::ReadMap(folder / name);
      CHECK(in.ChannelCount() == components);
      for (int i = 0; i < 210 * components; ++i)
      {
        const float value = static_cast<float*>(in.Data())[i];
        CHECK(value == values[i] || (std::isnan(value) && std::isnan(values[i])));
      }
      CHECK_THROWS(rcn::ReadImage(folder / name), RCN_EDATA, "value nan at voxel (1, 2, 3)");
      CHECK_THROWS(rcn::ReadMask(folder / name), RCN_EDATA, "value nan at voxel (1, 2, 3)");
    }
  }
}

/// As many levels as one to four raters have, in a format that takes three values for a color and four for one with alpha.
void LevelsInTiff()
{
  const Folder folder;
  for (const int64_t slices : { 1, 3 })
  {
    for (int components = 2; components <= 5; ++components)
    {
      const rcn::Volume out = rcn::Volume::Allocate(rcn_geometry_make(4, 5, slices), RCN_FLOAT32, components);
      const int64_t elements = 20 * slices * components;
      for (int64_t i = 0; i < elements; ++i)
      {
        static_cast<float*>(out.Data())[i] = static_cast<float>(i) / 1000;
      }
      rcn::WriteImage(folder / "a.tif", out.View(), rcn::Content::Probability);
      const rcn::Volume in = rcn::ReadImage(folder / "a.tif");
      CHECK(in.ChannelCount() == components &&
        std::memcmp(in.Data(), out.Data(), static_cast<size_t>(elements) * sizeof(float)) == 0);
    }
  }
}

void WritingFailsWithoutATrace()
{
  const Folder folder;
  const rcn::Volume volume = rcn::Volume::Allocate(rcn_geometry_make(4, 4, 4), RCN_FLOAT32);
  std::fill_n(static_cast<float*>(volume.Data()), 64, 0.5F);
  CHECK_THROWS(rcn::WriteImage(folder / "a.jpg", volume.View(), rcn::Content::Mask), RCN_EIO, "JPEG");
  CHECK_THROWS(rcn::WriteImage(folder / "a.png", volume.View(), rcn::Content::Mask), RCN_EIO, "one slice");
  CHECK_THROWS(rcn::WriteImage(folder / "no/a.nrrd", volume.View(), rcn::Content::Mask), RCN_EIO, "does not exist");
  CHECK(folder.Count() == 0);
  std::ofstream(folder / "a.nrrd") << "old";
  CHECK_THROWS(
    rcn::WriteImage(folder / "a.nrrd", volume.View(), rcn::Content::Mask, { [] { return true; } }), RCN_ECANCELLED, "Canceled");
  CHECK(TextOf(folder / "a.nrrd") == "old" && folder.Count() == 1);
}

void FilesBeside()
{
  const Folder folder;
  {
    rcn::AtomicFile dropped(folder / "a.txt");
    CHECK(std::filesystem::exists(dropped.Path()) && dropped.Path().find(".txt") != std::string::npos);
    rcn::AtomicFile second(folder / "a.txt");
    CHECK(second.Path() != dropped.Path());
  }
  CHECK(folder.Count() == 0);
  {
    rcn::AtomicFile kept(folder / "a.txt");
    kept.Commit();
  }
  CHECK(folder.Count() == 1 && rcn::AtomicFile::Check(folder / "a.txt").empty());
  {
    rcn::AtomicFile removed(folder / "b.txt");
    rcn::AtomicFile::RemoveAll();
    CHECK(folder.Count() == 1);
    CHECK_THROWS(removed.Commit(), RCN_EIO, "b.txt cannot be written");
  }
  CHECK(!rcn::AtomicFile::Check(folder / "a.txt/c").empty());
}

/// What a link names is written, whether it is there yet or not; the link stays one.
void WritesThroughLinks()
{
  namespace fs = std::filesystem;
  const Folder folder;
  fs::create_directory(folder / "data");
  fs::create_symlink("data/real.nrrd", folder / "link.nrrd");
  const rcn::Volume volume = rcn::Volume::Allocate(rcn_geometry_make(4, 4, 4), RCN_UINT8);
  std::fill_n(static_cast<uint8_t*>(volume.Data()), 64, uint8_t{ 1 });
  for (int i = 0; i < 2; ++i)
  {
    rcn::WriteImage(folder / "link.nrrd", volume.View(), rcn::Content::Mask);
    CHECK(fs::is_symlink(folder / "link.nrrd") && fs::is_regular_file(folder / "data/real.nrrd"));
  }
  CHECK(rcn::ReadImage(folder / "link.nrrd").Geometry().size[0] == 4 && folder.Count() == 2);
}

void ResampleToANearGrid()
{
  // Twice as fine, the same place: every coarse voxel is the fine one at its center.
  rcn_geometry fine = rcn_geometry_make(8, 8, 8), coarse = rcn_geometry_make(4, 4, 4);
  for (int a = 0; a < 3; ++a)
  {
    coarse.spacing[a] = 2;
  }
  const rcn::Volume in = rcn::Volume::Allocate(fine, RCN_INT32, 2);
  for (int i = 0; i < 1024; ++i)
  {
    static_cast<int32_t*>(in.Data())[i] = i;
  }
  const rcn::Volume out = rcn::ResampleNearest(in, coarse);
  CHECK(out.View().components == 2 && out.View().type == RCN_INT32 && SameGeometry(out.Geometry(), coarse));
  for (int z = 0; z < 4; ++z)
  {
    for (int y = 0; y < 4; ++y)
    {
      for (int x = 0; x < 4; ++x)
      {
        const int at = 2 * (x + 4 * (y + 4 * z)), from = 2 * (2 * x + 8 * (2 * y + 8 * 2 * z));
        CHECK(static_cast<int32_t*>(out.Data())[at] == from && static_cast<int32_t*>(out.Data())[at + 1] == from + 1);
      }
    }
  }
  // Outside is 0.
  coarse.origin[0] = 1000;
  const rcn::Volume outside = rcn::ResampleNearest(in, coarse);
  CHECK(rcn_image_is_constant(&outside.View()) && rcn_image_element(&outside.View(), 0) == 0 &&
    rcn_image_element(&outside.View(), 1) == 0);
}

void BadFiles()
{
  const Folder folder;
  CHECK_THROWS(rcn::ReadImage(folder / "none.nrrd"), RCN_EIO, "does not exist");
  std::ofstream(folder / "bad.nrrd") << "no image";
  CHECK_THROWS(rcn::ReadImage(folder / "bad.nrrd"), RCN_EFORMAT, "bad.nrrd");
  const rcn::Volume volume = rcn::Volume::Allocate(rcn_geometry_make(20, 20, 20), RCN_UINT8);
  for (int i = 0; i < 8000; ++i)
  {
    static_cast<uint8_t*>(volume.Data())[i] = static_cast<uint8_t>(i * i % 251);
  }
  for (const char* name : { "a.nrrd", "a.nii", "a.nii.gz", "a.mha" })
  {
    rcn::WriteImage(folder / name, volume.View(), rcn::Content::Levels);
    std::filesystem::resize_file(folder / name, std::filesystem::file_size(folder / name) * 2 / 3);
    CHECK_THROWS(rcn::ReadImage(folder / name), RCN_EFORMAT, name);
  }
}

} // namespace

int main()
{
  rcn::SetLibrariesQuiet(true);
  RUN(FromItkBorrowsTheBuffer);
  RUN(FromItkFlatAndVectors);
  RUN(ToItkSharesTheBuffer);
  RUN(RoundTrips);
  RUN(SeveralComponents);
  RUN(CompressedAsItkDoes);
  RUN(NotFiniteVoxels);
  RUN(LevelsInTiff);
  RUN(WritingFailsWithoutATrace);
  RUN(FilesBeside);
  RUN(WritesThroughLinks);
  RUN(ResampleToANearGrid);
  RUN(BadFiles);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
