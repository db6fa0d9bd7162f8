// SPDX-License-Identifier: Apache-2.0
#include "rcnVtkImage.h"

#include <algorithm>
#include <cmath>

#include <vtkCallbackCommand.h>
#include <vtkDataArray.h>
#include <vtkImageAppendComponents.h>
#include <vtkImageData.h>
#include <vtkImageExtractComponents.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkPointData.h>

#include "rcnReport.h"

namespace rcn
{

rcn_geometry GeometryFromVtk(const int extent[6], vtkMatrix4x4* ijkToRas, const std::string& name)
{
  if (extent[0] > extent[1] || extent[2] > extent[3] || extent[4] > extent[5])
  {
    throw Error(RCN_EDATA, name + " has no voxels.");
  }
  rcn_geometry geometry = rcn_geometry_make(1, 1, 1);
  geometry.dimension = 3;
  double first[4] = { 0, 0, 0, 1 };
  for (int a = 0; a < 3; ++a)
  {
    geometry.size[a] = static_cast<int64_t>(extent[2 * a + 1]) - extent[2 * a] + 1;
    first[a] = extent[2 * a];
    double column[3] = { ijkToRas->GetElement(0, a), ijkToRas->GetElement(1, a), ijkToRas->GetElement(2, a) };
    ToRas(column, column);
    geometry.spacing[a] = std::sqrt(column[0] * column[0] + column[1] * column[1] + column[2] * column[2]);
    for (int row = 0; row < 3; ++row)
    {
      geometry.direction[3 * row + a] = column[row] / geometry.spacing[a];
    }
  }
  if (std::abs(ijkToRas->Determinant()) < 1e-9 * geometry.spacing[0] * geometry.spacing[1] * geometry.spacing[2])
  {
    throw Error(RCN_EDATA, name + " has zero voxel size; check its transform.");
  }
  ijkToRas->MultiplyPoint(first, first);
  ToRas(first, first);
  std::copy_n(first, 3, geometry.origin);
  if (const char* sentence = rcn_geometry_check(&geometry))
  {
    throw Error(RCN_EDATA, name + ": " + sentence);
  }
  return geometry;
}

void IjkToRas(vtkMatrix4x4* ijkToRas, const rcn_geometry& geometry)
{
  ijkToRas->Identity();
  for (int a = 0; a < 4; ++a)
  {
    double column[3];
    for (int row = 0; row < 3; ++row)
    {
      column[row] = a < 3 ? geometry.direction[3 * row + a] * geometry.spacing[a] : geometry.origin[row];
    }
    ToRas(column, column);
    for (int row = 0; row < 3; ++row)
    {
      ijkToRas->SetElement(row, a, column[row]);
    }
  }
}

namespace
{

/// -1 for types that hold no numbers.
int TypeFromVtk(int vtkType)
{
  switch (vtkType)
  {
    vtkTemplateMacro(return static_cast<int>(ElementType<VTK_TT>::value));
    default: return -1;
  }
}

int VtkFromType(rcn_type type)
{
  switch (type)
  {
    case RCN_UINT8: return VTK_UNSIGNED_CHAR;
    case RCN_INT8: return VTK_SIGNED_CHAR;
    case RCN_UINT16: return VTK_UNSIGNED_SHORT;
    case RCN_INT16: return VTK_SHORT;
    case RCN_UINT32: return VTK_UNSIGNED_INT;
    case RCN_INT32: return VTK_INT;
    case RCN_UINT64: return VTK_UNSIGNED_LONG_LONG;
    case RCN_INT64: return VTK_LONG_LONG;
    case RCN_FLOAT32: return VTK_FLOAT;
    default: return VTK_DOUBLE;
  }
}

} // namespace

Volume VolumeFromVtk(vtkImageData* image, vtkMatrix4x4* ijkToRas, const std::string& name)
{
  vtkDataArray* scalars = image ? image->GetPointData()->GetScalars() : nullptr;
  if (!scalars)
  {
    throw Error(RCN_EDATA, name + " has no voxels.");
  }
  rcn_image view{};
  view.geometry = GeometryFromVtk(image->GetExtent(), ijkToRas, name);
  const int type = TypeFromVtk(scalars->GetDataType());
  if (type < 0 || !scalars->HasStandardMemoryLayout() || scalars->GetNumberOfComponents() < 1 ||
    scalars->GetNumberOfTuples() != rcn_geometry_voxels(&view.geometry))
  {
    throw Error(RCN_EDATA, name + " has voxels of the type " + scalars->GetDataTypeAsString() + " that cannot be used.");
  }
  view.type = static_cast<rcn_type>(type);
  view.components = scalars->GetNumberOfComponents();
  view.data = scalars->GetVoidPointer(0);
  // The array, not the image: an image that gets other scalars lets go of these.
  return Volume::Share(view, std::make_shared<vtkSmartPointer<vtkDataArray>>(scalars));
}

vtkSmartPointer<vtkImageData> VtkFromVolume(const Volume& volume)
{
  const rcn_image& view = volume.View();
  const vtkSmartPointer<vtkDataArray> scalars = vtk::TakeSmartPointer(vtkDataArray::CreateDataArray(VtkFromType(view.type)));
  scalars->SetNumberOfComponents(view.components);
  scalars->SetVoidArray(view.data, rcn_geometry_voxels(&view.geometry) * view.components, 1);
  scalars->SetName("ImageScalars");
  // An array cannot own a foreign buffer; what listens to its end does, and goes with it.
  vtkNew<vtkCallbackCommand> keeper;
  keeper->SetClientData(new Volume(volume));
  keeper->SetClientDataDeleteCallback([](void* kept) { delete static_cast<Volume*>(kept); });
  scalars->AddObserver(vtkCommand::DeleteEvent, keeper);

  auto image = vtkSmartPointer<vtkImageData>::New();
  image->SetDimensions(
    static_cast<int>(view.geometry.size[0]), static_cast<int>(view.geometry.size[1]), static_cast<int>(view.geometry.size[2]));
  image->GetPointData()->SetScalars(scalars);
  return image;
}

std::vector<vtkSmartPointer<vtkImageData>> ComponentsOf(const Volume& volume)
{
  const vtkSmartPointer<vtkImageData> all = VtkFromVolume(volume);
  std::vector<vtkSmartPointer<vtkImageData>> images;
  for (int c = 0; c < volume.View().components; ++c)
  {
    vtkNew<vtkImageExtractComponents> extract;
    extract->SetInputData(all);
    extract->SetComponents(c);
    extract->Update();
    images.push_back(extract->GetOutput());
  }
  return images;
}

Volume Interleave(const std::vector<Volume>& components)
{
  vtkNew<vtkImageAppendComponents> append;
  for (const Volume& one : components)
  {
    if (one.View().type != components.front().View().type || one.View().components != 1 ||
      !std::equal(one.Geometry().size, one.Geometry().size + 3, components.front().Geometry().size))
    {
      throw Error(RCN_EDATA, "Volumes of different sizes or types cannot be combined.");
    }
    append->AddInputData(VtkFromVolume(one));
  }
  append->Update();
  vtkDataArray* const scalars = append->GetOutput()->GetPointData()->GetScalars();
  rcn_image view = components.front().View();
  view.components = scalars->GetNumberOfComponents();
  view.data = scalars->GetVoidPointer(0);
  return Volume::Share(view, std::make_shared<vtkSmartPointer<vtkDataArray>>(scalars));
}

} // namespace rcn
