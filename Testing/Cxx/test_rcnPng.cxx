// SPDX-License-Identifier: Apache-2.0
/// Pictures made in memory, read back by ITK; and what a file's chunks say. (Scales and transparency: test_rcnImageIO.cxx.)
#include "rcnPng.h"

#include <cstring>

#include "rcnImageIO.h"
#include "rcnTest.h"

namespace
{

/// Smooth, with an edge and some noise: every filter is the best for some row.
std::vector<uint8_t> SomePixels(int64_t columns, int64_t rows, int channels)
{
  std::vector<uint8_t> pixels;
  uint32_t state = 7;
  for (int64_t y = 0; y < rows; ++y)
  {
    for (int64_t i = 0; i < columns * channels; ++i)
    {
      state = 1664525U * state + 1013904223U;
      const int64_t noise = y % 5 == 4 ? state >> 24 : state >> 30;
      pixels.push_back(static_cast<uint8_t>(i / channels * 3 + (y > rows / 2 ? 7 * y : 100) + i % channels * 40 + noise));
    }
  }
  return pixels;
}

void ReadBack()
{
  const Folder folder;
  const int64_t sizes[][2] = { { 1, 1 }, { 1, 9 }, { 13, 1 }, { 37, 41 }, { 300, 200 } };
  for (const auto& size : sizes)
  {
    for (const int channels : { 1, 3 })
    {
      const std::vector<uint8_t> pixels = SomePixels(size[0], size[1], channels);
      const std::string png = rcn::EncodePng(pixels, size[0], size[1], channels), path = folder / "picture.png";
      std::ofstream(path, std::ios::binary) << png;
      const rcn::Volume image = rcn::ReadImage(path);
      CHECK(image.View().type == RCN_UINT8 && image.View().components == channels);
      CHECK(image.Geometry().size[0] == size[0] && image.Geometry().size[1] == size[1]);
      CHECK(std::memcmp(image.Data(), pixels.data(), pixels.size()) == 0);
      rcn::PngReader reader(path);
      rcn::PngChunk chunk;
      std::string kinds;
      while (reader.Next(chunk))
      {
        CHECK(chunk.Sound);
        kinds += chunk.Kind + ' ';
      }
      CHECK(kinds == "IHDR IDAT IEND ");
    }
  }
}

/// Filters are worth their lines: what is smooth becomes small.
void SmoothIsSmall()
{
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 256 * 256; ++i)
  {
    pixels.push_back(static_cast<uint8_t>((i % 256 + i / 256) / 2));
  }
  CHECK(rcn::EncodePng(pixels, 256, 256, 1).size() < 2000);
}

} // namespace

int main()
{
  RUN(ReadBack);
  RUN(SmoothIsSmall);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
