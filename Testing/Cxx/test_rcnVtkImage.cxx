// SPDX-License-Identifier: Apache-2.0
#include "rcnVtkImage.h"

#include <vtkBitArray.h>
#include <vtkImageData.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkPointData.h>

#include "rcnReport.h"
#include "rcnTest.h"
#include "rcnWorkspace.h"

namespace
{

/// A tilted grid with voxels of 2 x 3 x 4 mm.
vtkSmartPointer<vtkMatrix4x4> Tilted()
{
  const double c = std::cos(0.3), s = std::sin(0.3);
  const double elements[16] = { 2 * c, -3 * s, 0, 10, 2 * s, 3 * c, 0, -20, 0, 0, 4, 30, 0, 0, 0, 1 };
  auto matrix = vtkSmartPointer<vtkMatrix4x4>::New();
  matrix->DeepCopy(elements);
  return matrix;
}

void GeometryThereAndBack()
{
  const vtkSmartPointer<vtkMatrix4x4> matrix = Tilted();
  const int extent[6] = { 5, 9, -2, 4, 0, 2 }; // a part of the grid
  const rcn_geometry geometry = rcn::GeometryFromVtk(extent, matrix, "A");
  CHECK(geometry.size[0] == 5 && geometry.size[1] == 7 && geometry.size[2] == 3);
  CHECK_NEAR(geometry.spacing[0], 2, 1e-12);
  CHECK_NEAR(geometry.spacing[1], 3, 1e-12);
  CHECK_NEAR(geometry.spacing[2], 4, 1e-12);
  // Voxel (7, 1, 2) of the grid is (2, 3, 2) of the part: the same place, by LPS.
  const double index[3] = { 2, 3, 2 };
  double world[3];
  rcn_geometry_to_world(world, &geometry, index);
  rcn::ToRas(world, world);
  const double grid[4] = { 7, 1, 2, 1 };
  double ras[4];
  matrix->MultiplyPoint(grid, ras);
  for (int a = 0; a < 3; ++a)
  {
    CHECK_NEAR(world[a], ras[a], 1e-9);
  }
  // Back, for an extent from 0.
  vtkNew<vtkMatrix4x4> back;
  rcn::IjkToRas(back, geometry);
  const double local[4] = { 2, 3, 2, 1 };
  double again[4];
  back->MultiplyPoint(local, again);
  for (int a = 0; a < 3; ++a)
  {
    CHECK_NEAR(again[a], ras[a], 1e-9);
  }
  // An upright image in RAS runs against LPS.
  vtkNew<vtkMatrix4x4> upright;
  const int whole[6] = { 0, 1, 0, 1, 0, 1 };
  const rcn_geometry lps = rcn::GeometryFromVtk(whole, upright, "A");
  CHECK(lps.direction[0] == -1 && lps.direction[4] == -1 && lps.direction[8] == 1);
}

void SharesVoxelsOfEveryType()
{
  const int types[] = { VTK_CHAR, VTK_SIGNED_CHAR, VTK_UNSIGNED_CHAR, VTK_SHORT, VTK_UNSIGNED_SHORT, VTK_INT, VTK_UNSIGNED_INT,
    VTK_LONG, VTK_UNSIGNED_LONG, VTK_LONG_LONG, VTK_UNSIGNED_LONG_LONG, VTK_FLOAT, VTK_DOUBLE };
  for (const int type : types)
  {
    vtkNew<vtkImageData> image;
    image->SetExtent(1, 3, 2, 3, 0, 1);
    image->AllocateScalars(type, 2);
    image->GetPointData()->GetScalars()->Fill(0);
    image->SetScalarComponentFromDouble(2, 3, 1, 1, 42);
    const rcn::Volume volume = rcn::VolumeFromVtk(image, Tilted(), "A");
    CHECK(volume.Data() == image->GetScalarPointer() && volume.ChannelCount() == 2);
    CHECK(rcn_type_size(volume.View().type) == static_cast<size_t>(image->GetScalarSize()));
    CHECK(!rcn_image_check(&volume.View()));
    // And back: the same buffer, the same number in the same place.
    const vtkSmartPointer<vtkImageData> back = rcn::VtkFromVolume(volume);
    CHECK(back->GetScalarPointer() == volume.Data() && back->GetNumberOfScalarComponents() == 2);
    CHECK(back->GetScalarComponentAsDouble(1, 1, 1, 1) == 42 && back->GetScalarComponentAsDouble(1, 1, 1, 0) == 0);
    CHECK(back->GetScalarTypeMin() == image->GetScalarTypeMin() && back->GetScalarTypeMax() == image->GetScalarTypeMax());
  }
}

/// Under AddressSanitizer this also shows that nothing is used after its end, and that nothing leaks.
void VoxelsLiveAsLongAsSomebodyNeedsThem()
{
  rcn::Volume volume;
  {
    vtkNew<vtkImageData> image;
    image->SetDimensions(4, 4, 4);
    image->AllocateScalars(VTK_SHORT, 1);
    image->GetPointData()->GetScalars()->Fill(7);
    volume = rcn::VolumeFromVtk(image, Tilted(), "A");
    image->AllocateScalars(VTK_FLOAT, 3); // a user who replaces the voxels under our hands
    image->GetPointData()->GetScalars()->Fill(1);
  }
  CHECK(static_cast<const int16_t*>(volume.Data())[63] == 7);

  vtkSmartPointer<vtkImageData> image;
  {
    const rcn::Volume made = rcn::Volume::Allocate(rcn_geometry_make(4, 4, 4), RCN_FLOAT32);
    std::fill_n(static_cast<float*>(made.Data()), 64, 0.25f);
    image = rcn::VtkFromVolume(made);
  }
  CHECK(image->GetScalarComponentAsDouble(3, 3, 3, 0) == 0.25);
  vtkNew<vtkImageData> copy;
  copy->ShallowCopy(image);
  image = nullptr;
  CHECK(copy->GetScalarComponentAsDouble(3, 3, 3, 0) == 0.25);
  vtkNew<vtkImageData> deep;
  deep->DeepCopy(copy);
  copy->AllocateScalars(VTK_UNSIGNED_CHAR, 1);
  CHECK(deep->GetScalarComponentAsDouble(3, 3, 3, 0) == 0.25);
}

void SaysWhatCannotBeUsed()
{
  vtkNew<vtkImageData> image;
  CHECK_THROWS(rcn::VolumeFromVtk(nullptr, Tilted(), "Brain"), RCN_EDATA, "Brain has no voxels.");
  CHECK_THROWS(rcn::VolumeFromVtk(image, Tilted(), "Brain"), RCN_EDATA, "Brain has no voxels.");
  image->SetDimensions(2, 2, 2);
  CHECK_THROWS(rcn::VolumeFromVtk(image, Tilted(), "Brain"), RCN_EDATA, "Brain has no voxels.");
  vtkNew<vtkBitArray> bits;
  bits->SetNumberOfTuples(8);
  image->GetPointData()->SetScalars(bits);
  CHECK_THROWS(rcn::VolumeFromVtk(image, Tilted(), "Brain"), RCN_EDATA, "type bit");
  image->AllocateScalars(VTK_SHORT, 1);
  const vtkSmartPointer<vtkMatrix4x4> flat = Tilted();
  for (int row = 0; row < 3; ++row)
  {
    flat->SetElement(row, 1, flat->GetElement(row, 0));
  }
  CHECK_THROWS(rcn::VolumeFromVtk(image, flat, "Brain"), RCN_EDATA, "Brain has zero voxel size");
  flat->SetElement(0, 0, std::nan(""));
  CHECK_THROWS(rcn::VolumeFromVtk(image, flat, "Brain"), RCN_EDATA, "Brain");
  image->SetDimensions(3, 3, 3); // more voxels than scalars
  CHECK_THROWS(rcn::VolumeFromVtk(image, Tilted(), "Brain"), RCN_EDATA, "cannot be used");
}

/// A segment covers a part of the image's grid: as a rater it marks the same voxels as the whole mask.
void SegmentsThatCoverAPart()
{
  const int64_t size[3] = { 12, 11, 10 };
  const std::vector<uint8_t> ball = Ball(size, 6, 5, 4, 3);
  vtkNew<vtkImageData> whole, part;
  whole->SetDimensions(12, 11, 10);
  whole->AllocateScalars(VTK_UNSIGNED_CHAR, 1);
  std::copy(ball.begin(), ball.end(), static_cast<uint8_t*>(whole->GetScalarPointer()));
  part->SetExtent(2, 10, 1, 9, 0, 8);
  part->AllocateScalars(VTK_UNSIGNED_CHAR, 1);
  for (int z = 0; z <= 8; ++z)
  {
    for (int y = 1; y <= 9; ++y)
    {
      for (int x = 2; x <= 10; ++x)
      {
        part->SetScalarComponentFromDouble(x, y, z, 0, whole->GetScalarComponentAsDouble(x, y, z, 0));
      }
    }
  }
  const rcn::Volume image = rcn::VolumeFromVtk(whole, Tilted(), "image");
  const rcn::Volume segment = rcn::VolumeFromVtk(part, Tilted(), "segment");
  rcn::WorkspaceOptions options;
  options.Resample = true;
  rcn::Workspace workspace(options);
  workspace.LoadCase(rcn::CaseOf("c", { image }, "image", { { "A", image, {}, 0 }, { "B", segment, {}, 0 } }));
  const rcn::AgreementReport report = workspace.Agree(false);
  CHECK(report.Figures->rater[0].voxels > 50 && report.Figures->mean_dice == 1 && report.Regions.empty());
}

/// Components apart and together again are the same voxels in the same place.
void ComponentsThereAndBack()
{
  rcn_geometry geometry = rcn_geometry_make(4, 3, 2);
  geometry.spacing[1] = 2.5;
  geometry.origin[2] = -7;
  const rcn::Volume volume = rcn::Volume::Allocate(geometry, RCN_FLOAT32, 3);
  float* const data = static_cast<float*>(volume.Data());
  for (int i = 0; i < 4 * 3 * 2 * 3; ++i)
  {
    data[i] = static_cast<float>(i);
  }
  const std::vector<vtkSmartPointer<vtkImageData>> images = rcn::ComponentsOf(volume);
  CHECK(images.size() == 3 && images[2]->GetNumberOfScalarComponents() == 1);
  CHECK(images[2]->GetScalarComponentAsDouble(1, 0, 0, 0) == 5);
  vtkNew<vtkMatrix4x4> matrix;
  rcn::IjkToRas(matrix, geometry);
  std::vector<rcn::Volume> ones;
  for (const auto& image : images)
  {
    ones.push_back(rcn::VolumeFromVtk(image, matrix, "one"));
  }
  const rcn::Volume back = rcn::Interleave(ones);
  CHECK(back.View().components == 3 && back.Geometry().spacing[1] == 2.5 && back.Geometry().origin[2] == -7);
  CHECK(std::equal(data, data + 4 * 3 * 2 * 3, static_cast<const float*>(back.Data())));
  ones.push_back(rcn::Volume::Allocate(rcn_geometry_make(4, 3, 3), RCN_FLOAT32));
  CHECK_THROWS(rcn::Interleave(ones), RCN_EDATA, "different sizes");
}

} // namespace

int main()
{
  RUN(GeometryThereAndBack);
  RUN(SharesVoxelsOfEveryType);
  RUN(VoxelsLiveAsLongAsSomebodyNeedsThem);
  RUN(SaysWhatCannotBeUsed);
  RUN(SegmentsThatCoverAPart);
  RUN(ComponentsThereAndBack);
  return Failures != 0;
}
