// SPDX-License-Identifier: Apache-2.0
#include "rcnDicomSeries.h"

#include "rcnFileCheck.h"
#include "rcnImageFormat.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <itkGDCMImageIO.h>
#include <itkGDCMSeriesFileNames.h>
#include <itkMetaDataObject.h>

namespace rcn
{

namespace
{

using Vector = std::array<double, 3>;

/// How far a pixel may lie beside where the volume has it, in pixels.
constexpr double Tolerance = 0.1;

/// How far a slice may, in steps from slice to slice. Positions that are rounded to a tenth of a millimeter are up to this far
/// off in thin slices; with one that is missing, or there twice, others are off by half a step or more.
constexpr double SliceTolerance = 0.2;

/// Closer than this, in mm, is the same position.
constexpr double SamePosition = 1e-3;

Vector operator-(const Vector& a, const Vector& b)
{
  return { a[0] - b[0], a[1] - b[1], a[2] - b[2] };
}

Vector operator*(double s, const Vector& a)
{
  return { s * a[0], s * a[1], s * a[2] };
}

double Dot(const Vector& a, const Vector& b)
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

double Length(const Vector& a)
{
  return std::sqrt(Dot(a, a));
}

Vector Cross(const Vector& a, const Vector& b)
{
  return { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] };
}

std::string Number(double value)
{
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", std::fabs(value) < 1e-9 ? 0.0 : value);
  return text;
}

/// One file: a slice, or several in a multi-frame file.
struct Slice
{
  itk::GDCMImageIO::Pointer Io;
  std::string Name; ///< without its folder
  Vector Position, Row, Column;
  double Along = 0; ///< the position along the normal, in mm
  bool HasPosition = false;
  rcn_type Type = RCN_UINT8;

  int64_t Size(unsigned int axis) const { return static_cast<int64_t>(this->Io->GetDimensions(axis)); }
};

class Series
{
public:
  explicit Series(const std::string& folder) : Folder_(folder)
  {
    // Not by series details, which would call slices of another size another series and say no more about it.
    auto names = itk::GDCMSeriesFileNames::New();
    names->SetUseSeriesDetails(false);
    names->SetDirectory(folder);
    const std::vector<std::string> series = names->GetSeriesUIDs();
    if (series.empty())
    {
      this->Fail("holds no DICOM series; give a file or a DICOM folder.");
    }
    if (series.size() > 1)
    {
      this->Fail("holds " + std::to_string(series.size()) + " DICOM series; give a folder with one.");
    }
    for (const std::string& file : names->GetFileNames(series.front()))
    {
      this->Slices_.push_back(this->Open(file));
    }
    if (this->Slices_.empty())
    {
      this->Fail("holds no DICOM series; give a file or a DICOM folder.");
    }
    this->First_ = this->Slices_.front();
    this->Normal_ = Cross(this->First_.Row, this->First_.Column);
  }

  rcn_geometry Geometry()
  {
    rcn_geometry geometry = rcn_geometry_make(this->First_.Size(0), this->First_.Size(1), this->First_.Size(2));
    geometry.dimension = 3;
    Vector third = this->First_.Io->GetSpacing(2) * this->Normal_;
    if (this->Slices_.size() > 1)
    {
      this->CheckAlike();
      this->Sort();
      third = this->CheckPlaces();
      geometry.size[2] = static_cast<int64_t>(this->Slices_.size());
    }
    const Vector axes[3] = { this->First_.Row, this->First_.Column, 1 / Length(third) * third };
    for (unsigned int a = 0; a < 3; ++a)
    {
      geometry.spacing[a] = a < 2 ? this->First_.Io->GetSpacing(a) : Length(third);
      geometry.origin[a] = this->Slices_.front().Position[a];
      for (unsigned int row = 0; row < 3; ++row)
      {
        geometry.direction[3 * row + a] = axes[a][row];
      }
    }
    if (!std::all_of(
          this->Slices_.begin(), this->Slices_.end(), [](const Slice& slice) { return DicomKnowsSpacing(*slice.Io); }))
    {
      geometry.unit = RCN_PIXELS;
      std::fill(geometry.spacing, geometry.spacing + 3, 1.0);
    }
    if (const char* sentence = rcn_geometry_check(&geometry))
    {
      this->Fail(std::string("cannot be used: ") + sentence);
    }
    return geometry;
  }

  /// What all voxels fit into. Each slice has its own scale in PET, and whole numbers where that is one.
  rcn_type Type() const
  {
    const bool same = std::all_of(
      this->Slices_.begin(), this->Slices_.end(), [this](const Slice& slice) { return slice.Type == this->First_.Type; });
    return same ? this->First_.Type : RCN_FLOAT32;
  }

  void Read(const Volume& out) const
  {
    rcn_geometry plane = out.Geometry();
    plane.size[2] = this->First_.Size(2);
    const int64_t voxels = rcn_geometry_voxels(&plane);
    char* data = static_cast<char*>(out.Data());
    for (const Slice& slice : this->Slices_)
    {
      slice.Io->SetIORegion(WholeRegion(*slice.Io));
      const VoxelCheck check =
        CheckVoxels(slice.Io->GetFileName(), static_cast<double>(voxels) * static_cast<double>(rcn_type_size(slice.Type)));
      if (!check.Wrong.empty())
      {
        throw Error(RCN_EFORMAT, std::string(slice.Io->GetFileName()) + " " + check.Wrong);
      }
      if (slice.Type == out.View().type)
      {
        slice.Io->Read(data);
      }
      else
      {
        const Volume own = Volume::Allocate(plane, slice.Type);
        slice.Io->Read(own.Data());
        rcn_image_to_float(reinterpret_cast<float*>(data), 1, &own.View(), 0, 1);
      }
      data += static_cast<size_t>(voxels) * rcn_type_size(out.View().type);
    }
  }

private:
  [[noreturn]] void Fail(const std::string& what) const { throw Error(RCN_EFORMAT, this->Folder_ + " " + what); }

  Slice Open(const std::string& file) const
  {
    Slice slice;
    slice.Io = itk::GDCMImageIO::New();
    slice.Io->SetFileName(file);
    slice.Io->ReadImageInformation();
    slice.Name = std::filesystem::path(file).filename().string();
    if (!TypeOf(slice.Type, slice.Io->GetComponentType()) || slice.Io->GetNumberOfComponents() != 1)
    {
      this->Fail("holds DICOM images that are not gray-scale (" + slice.Name + ").");
    }
    std::string text;
    const std::vector<double> row = slice.Io->GetDirection(0), column = slice.Io->GetDirection(1);
    for (unsigned int a = 0; a < 3; ++a)
    {
      slice.Position[a] = slice.Io->GetOrigin(a);
      slice.Row[a] = row[a];
      slice.Column[a] = column[a];
    }
    // In newer kinds of files the position stands elsewhere, from where GDCM has it.
    slice.HasPosition = itk::ExposeMetaData(slice.Io->GetMetaDataDictionary(), "0020|0032", text) || Length(slice.Position) > 0;
    return slice;
  }

  /// Refuses slices that no volume can have together.
  void CheckAlike() const
  {
    const Slice& first = this->First_;
    for (const Slice& slice : this->Slices_)
    {
      const std::string pair = first.Name + " and " + slice.Name;
      if (slice.Size(2) > 1)
      {
        this->Fail("holds several files with more than one slice each (such as " + slice.Name + "); give one of the files.");
      }
      if (slice.Size(0) != first.Size(0) || slice.Size(1) != first.Size(1))
      {
        this->Fail("has slices of different sizes: " + first.Name + " has " + std::to_string(first.Size(0)) + " x " +
          std::to_string(first.Size(1)) + " pixels, " + slice.Name + " " + std::to_string(slice.Size(0)) + " x " +
          std::to_string(slice.Size(1)) + ".");
      }
      for (unsigned int a = 0; a < 2; ++a)
      {
        const double spacing = first.Io->GetSpacing(a), other = slice.Io->GetSpacing(a);
        // What the difference adds up to at the far edge.
        if (!(std::fabs(spacing - other) * static_cast<double>(first.Size(a)) <= Tolerance * spacing))
        {
          this->Fail("has slices with pixels of different sizes: " + Number(spacing) + " mm in " + first.Name + ", " +
            Number(other) + " mm in " + slice.Name + ".");
        }
      }
      const double extent = static_cast<double>(std::max(first.Size(0), first.Size(1)));
      if (!(std::max(Length(slice.Row - first.Row), Length(slice.Column - first.Column)) * extent <= Tolerance))
      {
        this->Fail("has slices of different orientations (" + pair + "); give a folder with one stack of slices.");
      }
      if (!slice.HasPosition)
      {
        this->Fail("has slices without a position (" + slice.Name +
          " has no Image Position (Patient)), so that they cannot form a volume.");
      }
    }
  }

  void Sort()
  {
    for (Slice& slice : this->Slices_)
    {
      slice.Along = Dot(slice.Position, this->Normal_);
    }
    std::stable_sort(
      this->Slices_.begin(), this->Slices_.end(), [](const Slice& a, const Slice& b) { return a.Along < b.Along; });
  }

  /// "1.dcm (at 3 mm) and 2.dcm (at 5 mm)": a slice and the next one, along their normal.
  std::string PairAt(size_t index) const
  {
    const Slice &a = this->Slices_[index], &b = this->Slices_[index + 1];
    return a.Name + " (at " + Number(a.Along) + " mm) and " + b.Name + " (at " + Number(b.Along) + " mm)";
  }

  /// The way from one slice to the next, where it is always the same one; refuses slices that are not where it leads.
  Vector CheckPlaces() const
  {
    const std::vector<Slice>& slices = this->Slices_;
    const size_t steps = slices.size() - 1;
    std::vector<double> distance(steps);
    for (size_t i = 0; i < steps; ++i)
    {
      distance[i] = slices[i + 1].Along - slices[i].Along;
    }
    std::vector<double> sorted = distance;
    std::sort(sorted.begin(), sorted.end());
    const double usual = sorted[(steps - 1) / 2];
    for (size_t i = 0; i < steps; ++i)
    {
      if (!(distance[i] > std::max(SamePosition, SliceTolerance * usual)))
      {
        this->Fail("has two slices at one position: " + this->PairAt(i) +
          "; give a folder with one slice for each, such as one time or echo.");
      }
    }
    const Vector step = 1 / static_cast<double>(steps) * (slices.back().Position - slices.front().Position);
    const double allowed = std::max(SamePosition, SliceTolerance * Length(step));
    for (size_t i = 0; i <= steps; ++i)
    {
      const Vector expected = static_cast<double>(i) * step;
      const Vector off = slices[i].Position - slices.front().Position - expected;
      if (std::fabs(Dot(off, this->Normal_)) > allowed)
      {
        const size_t widest =
          static_cast<size_t>(std::max_element(distance.begin(), distance.end(),
                                [usual](double a, double b) { return std::fabs(a - usual) < std::fabs(b - usual); }) -
            distance.begin());
        this->Fail((distance[widest] > 1.5 * usual ? "misses slices: " : "has slices at uneven distances: ") +
          this->PairAt(widest) + " are " + Number(distance[widest]) + " mm apart where " + Number(usual) +
          " mm are expected; get the whole series, or resample it.");
      }
      if (Length(off) > allowed)
      {
        this->Fail("has slices that are shifted relative to each other: " + slices[i].Name + " lies " + Number(Length(off)) +
          " mm off the line from " + slices.front().Name + " to " + slices.back().Name + ".");
      }
    }
    // Rounded positions are no gantry tilt: what adds up to nothing over all slices is left out.
    const Vector straight = Dot(step, this->Normal_) * this->Normal_;
    const double drift = Length(step - straight) * static_cast<double>(steps);
    const double pixel = std::min(this->First_.Io->GetSpacing(0), this->First_.Io->GetSpacing(1));
    return drift <= std::max(SamePosition, Tolerance * pixel) ? straight : step;
  }

  std::string Folder_;
  std::vector<Slice> Slices_;
  Slice First_; // of the files; sorting may put another one in front
  Vector Normal_;
};

} // namespace

bool DicomKnowsSpacing(const itk::ImageIOBase& io)
{
  const itk::MetaDataDictionary& tags = io.GetMetaDataDictionary();
  const bool one = io.GetSpacing(0) == 1 && io.GetSpacing(1) == 1;
  const bool slice = io.GetNumberOfDimensions() == 2 || io.GetDimensions(2) == 1;
  // Pixel Spacing, Imager Pixel Spacing, Nominal Scanned Pixel Spacing; several frames have it in a sequence.
  return !one || !slice || tags.HasKey("0028|0030") || tags.HasKey("0018|1164") || tags.HasKey("0018|2010");
}

Volume ReadDicomSeries(const std::string& folder, bool voxels)
{
  Series series(folder);
  const rcn_geometry geometry = series.Geometry();
  if (!voxels)
  {
    return Volume::Share({ nullptr, series.Type(), 1, geometry }, nullptr);
  }
  const Volume volume = Volume::Allocate(geometry, series.Type());
  series.Read(volume);
  return volume;
}

} // namespace rcn
