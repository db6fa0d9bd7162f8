// SPDX-License-Identifier: Apache-2.0
/// Results as JSON: one place decides the keys, whoever asks for them.
#ifndef rcnReport_h
#define rcnReport_h

#include <cmath>
#include <ctime>

#include "rcnJson.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// The agreement of one case. Keys: raters (by name), pairs, mean_dice, whole, union, levels,
/// volumes_ml, volumes_voxels, disputed_regions (at most maxRegions), disputed_region_count. Not-defined
/// numbers are null; world positions are RAS in mm, as Slicer shows them. Of a picture without spacing
/// (geometry.unit "pixel") whatever is in mm or mL is null; distances are in hausdorff95_pixels and
/// mean_surface_pixels, places in centroid_index.
json_t* AgreementJson(const AgreementReport& report, const Workspace& workspace, size_t maxRegions,
  const std::vector<std::string>* names = nullptr);

/// Over all labels of several structures: whole, union, pairs (a, b, kappa).
Json LabelAgreementJson(const LabelAgreement& labels, const Workspace& workspace);

/// The same figures as rows for a spreadsheet: each rater (with the others), each pair, and all of them.
std::string AgreementCsv(const AgreementReport& report, const std::vector<std::string>& raters);

/// What fusion found: method, and for STAPLE prior, iterations, converged, sensitivity and
/// specificity by rater, region_voxels; for SIMPLE iterations, weight, kept; for random kept. Of several structures these
/// are under "structures", by name; STAPLE has labels (the background first), their values, prior, and confusion by rater:
/// a row for each label that the rater may give, a column for each that may be true.
json_t* FusionJson(const FusionReport& report, const rcn_fusion_options& options, const Workspace& workspace);

/// The cases that a command went on without, for the key "left_out": [{case, sentence}]; the caller owns it. Read again,
/// entries of another kind are passed over.
json_t* LeftOutJson(const std::vector<LeftOutCase>& cases);
std::vector<LeftOutCase> LeftOutFrom(const json_t* array);

/// A number with so many digits after the point; "–" where it is not defined.
std::string Fixed(double value, int digits);
/// "70 %"
std::string PercentText(double share, int digits = 0);

/// "1.20 to 3.40"; "–" where there is no interval.
std::string FromTo(double low, double high, int digits);

/// Mean, smallest and largest of the values that are defined; NaN while there is none.
class Spread
{
public:
  void Add(double value);
  double Mean() const;
  double Low() const { return this->Low_; }
  double High() const { return this->High_; }
  size_t Count() const { return this->Count_; }

private:
  double Sum_ = 0, Low_ = NAN, High_ = NAN;
  size_t Count_ = 0;
};

/// "1 case", "2 cases", "0 cases". Without many, one gets an s.
std::string Counted(int64_t count, const std::string& one, const std::string& many = "");

/// "2026-11-17 18:30 UTC"; empty when the clock or the file says nothing.
std::string TimeText(std::time_t time);
/// The time for what is written into files: now, or SOURCE_DATE_EPOCH where that is set, so that they can be made again to the
/// byte.
std::time_t TimeForFiles();
/// The day of that, "2026-11-17", UTC.
std::string DayText();

/// "40 s", "12 min", "3.5 h"
std::string DurationText(double seconds);

/// "256 x 256 x 160"; without the axis along which an image is one voxel thin.
std::string SizeText(const rcn_geometry& geometry);

/// "256 x 256 x 160 voxels of 1 x 1 x 1 mm"
std::string DescribeGeometry(const rcn_geometry& geometry);

/// "3 raters, 256 x 256 x 160 voxels of 1 x 1 x 1 mm"
std::string DescribeCase(const Workspace& workspace);

/// What a person reads volumes, areas and lengths in. Results are kept in mL, mm² and mm; files and tables have these.
struct Units
{
  struct Unit
  {
    std::string Name;
    double Factor = 1; ///< shown = kept x factor
  };
  Unit Volume{ "mL" }, Area{ "mm²" }, Length{ "mm" };
};

/// What is measured in what: volumes in mL, 2-D images by area in mm², or in other units, pictures without spacing in pixels.
struct Extent
{
  explicit Extent(const rcn_geometry& geometry, const Units& units = Units());
  std::string Name;       ///< "Volume", "Area"
  std::string Heading;    ///< "Volume (mL)", "Area (mm²)", "Area (pixels)"
  std::string Unit;       ///< " mL", " mm²", " pixels"
  std::string Length;     ///< "mm", "pixels"
  double PerVoxel, PerMm; ///< in these units
  bool InPixels;
  std::string Text(int64_t voxels) const;
  /// An extent that is measured already, such as a mean over cases.
  std::string TextOf(double extent) const;

  std::string PlaceHeading; ///< "Center R, A, S (mm)", "Center x, y (pixels)"
  /// The middle of a region, as the heading says.
  std::string PlaceOf(const rcn_dispute& region) const;
};

/// "Each rater against the majority of the others", and what does not count there.
std::string AgainstOthersText();
/// With two raters who answered, "at least half" is the same as "anybody": the sentence that says so; empty otherwise.
std::string MajorityRemark(int present);

/// A row of a CSV file; texts are quoted where needed, not-defined numbers are empty.
std::string CsvRow(const std::vector<std::string>& cells);
std::string CsvNumber(double value);
/// Files with the same header as one: those after the first without theirs.
std::string JoinCsv(const std::vector<std::string>& files);

/// Names of the raters whose bit is set.
std::vector<std::string> NamesOf(uint64_t raters, const std::vector<std::string>& names);

/// "A, B, C"
std::string JoinNames(const std::vector<std::string>& names);

/// ITK's world (LPS) as Slicer shows it (RAS).
void ToRas(double ras[3], const double lps[3]);

} // namespace rcn

#endif
