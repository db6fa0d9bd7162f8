/// Results as JSON: one place decides the keys, whoever asks for them.
#ifndef rcnReport_h
#define rcnReport_h

#include "rcnJson.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// The agreement of one case. Keys: raters (by name), pairs, mean_dice, whole, union, levels,
/// volumes_ml, disputed_regions (at most maxRegions), disputed_region_count. Not-defined numbers are
/// null; world positions are RAS in mm, as Slicer shows them.
json_t* AgreementJson(const AgreementReport& report, const Workspace& workspace, size_t maxRegions);

/// What fusion found out: method, and for STAPLE prior, iterations, converged, sensitivity and
/// specificity by rater, region_voxels; for SIMPLE iterations, weight, kept; for random kept.
json_t* FusionJson(const FusionReport& report, const rcn_fusion_options& options, const Workspace& workspace);

/// The cases that a command went on without, for the key "left_out": [{case, sentence}].
json_t* LeftOutJson(const std::vector<LeftOutCase>& cases);
std::vector<LeftOutCase> LeftOutFrom(const json_t* array);

/// A number with so many digits after the point; "–" where it is not defined.
std::string Fixed(double value, int digits);

/// "1.20 to 3.40"; "–" where there is no interval.
std::string FromTo(double low, double high, int digits);

/// "1 case", "2 cases", "0 cases". Without many, one gets an s.
std::string Counted(int64_t count, const std::string& one, const std::string& many = "");

/// "3 raters, 256 x 256 x 160 voxels of 1 x 1 x 1 mm"
std::string DescribeCase(const Workspace& workspace);

/// 2-D images are measured by area, volumes by volume.
struct Extent
{
  explicit Extent(const rcn_geometry& geometry);
  std::string Heading; ///< "Area (mm²)" or "Volume (mL)"
  std::string Unit;    ///< " mm²" or " mL"
  double PerVoxel;
  std::string Text(int64_t voxels) const;
};

/// A row of a CSV file; texts are quoted where needed, not-defined numbers are empty.
std::string CsvRow(const std::vector<std::string>& cells);
std::string CsvNumber(double value);

/// Names of the raters whose bit is set.
std::vector<std::string> NamesOf(uint64_t raters, const std::vector<std::string>& names);

/// ITK's world (LPS) as Slicer shows it (RAS).
void ToRas(double ras[3], const double lps[3]);

} // namespace rcn

#endif
