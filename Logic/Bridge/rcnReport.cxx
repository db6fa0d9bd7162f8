// SPDX-License-Identifier: Apache-2.0
#include "rcnReport.h"

#include <cmath>
#include <cstdio>

namespace rcn
{

json_t* LeftOutJson(const std::vector<LeftOutCase>& cases)
{
  json_t* array = json_array();
  for (const LeftOutCase& one : cases)
  {
    json_t* entry = json_object();
    json_object_set_new(entry, "case", JsonString(one.Id));
    json_object_set_new(entry, "sentence", JsonString(one.Sentence));
    json_array_append_new(array, entry);
  }
  return array;
}

std::vector<LeftOutCase> LeftOutFrom(const json_t* array)
{
  std::vector<LeftOutCase> cases;
  for (size_t i = 0; i < json_array_size(array); ++i)
  {
    const char* id = json_string_value(json_object_get(json_array_get(array, i), "case"));
    const char* sentence = json_string_value(json_object_get(json_array_get(array, i), "sentence"));
    if (id && sentence)
    {
      cases.push_back({ id, sentence });
    }
  }
  return cases;
}

std::string Fixed(double value, int digits)
{
  if (!std::isfinite(value))
  {
    return "–";
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string FromTo(double low, double high, int digits)
{
  return std::isfinite(low) && std::isfinite(high) ? Fixed(low, digits) + " to " + Fixed(high, digits) : Fixed(NAN, digits);
}

std::string Counted(int64_t count, const std::string& one, const std::string& many)
{
  return std::to_string(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

namespace
{

/// One text per axis, with " x " between them, without the thin axis.
template <class TText> std::string AlongAxes(const rcn_geometry& geometry, TText&& text)
{
  std::string all;
  for (int a = 0; a < 3; ++a)
  {
    if (a != rcn_geometry_thin_axis(&geometry))
    {
      all += (all.empty() ? "" : " x ") + text(a);
    }
  }
  return all;
}

} // namespace

std::string SizeText(const rcn_geometry& geometry)
{
  return AlongAxes(geometry, [&](int a) { return std::to_string(geometry.size[a]); });
}

std::string DescribeCase(const Workspace& workspace)
{
  const rcn_geometry& geometry = *rcn_votes_geometry(workspace.Votes());
  const auto raters = static_cast<int64_t>(NamesOf(rcn_votes_present(workspace.Votes()), workspace.RaterNames()).size());
  const std::string spacing = AlongAxes(geometry, [&](int a) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", geometry.spacing[a]);
    return std::string(text);
  });
  return Counted(raters, "rater") + ", " + SizeText(geometry) +
    (rcn_geometry_thin_axis(&geometry) < 0 ? " voxels" : " pixels") +
    (geometry.unit == RCN_PIXELS ? " (the file has no spacing)" : " of " + spacing + " mm");
}

Extent::Extent(const rcn_geometry& geometry)
{
  const bool flat = rcn_geometry_thin_axis(&geometry) >= 0;
  this->InPixels = geometry.unit == RCN_PIXELS;
  this->Name = flat ? "Area" : "Volume";
  this->Unit = this->InPixels ? (flat ? " pixels" : " voxels") : flat ? " mm²" : " mL";
  this->Heading = this->Name + " (" + this->Unit.substr(1) + ")";
  this->Length = this->InPixels ? "pixels" : "mm";
  this->PerVoxel = this->InPixels ? 1 : flat ? rcn_geometry_pixel_mm2(&geometry) : rcn_geometry_voxel_ml(&geometry);
  this->PlaceHeading = this->InPixels ? (flat ? "Centre x, y (pixels)" : "Centre x, y, z (voxels)") : "Centre R, A, S (mm)";
}

std::string Extent::Text(int64_t voxels) const
{
  return this->InPixels ? std::to_string(voxels) : this->TextOf(static_cast<double>(voxels) * this->PerVoxel);
}

std::string Extent::TextOf(double extent) const
{
  return Fixed(extent, extent >= 1000 ? 0 : extent >= 10 || this->InPixels ? 1 : 3);
}

std::string Extent::PlaceOf(const rcn_dispute& region) const
{
  double ras[3];
  ToRas(ras, region.centroid_world);
  const double* const at = this->InPixels ? region.centroid : ras;
  return Fixed(at[0], 1) + ", " + Fixed(at[1], 1) + (this->InPixels && this->Name == "Area" ? "" : ", " + Fixed(at[2], 1));
}

std::string AgainstOthersText()
{
  return "Each rater against the majority of the others (voxels where the others are split evenly do not count)";
}

std::string MajorityRemark(int present)
{
  return present == 2 ? "With two raters the majority, at least half of them, is whatever anybody marked." : "";
}

std::string CsvNumber(double value)
{
  if (!std::isfinite(value))
  {
    return "";
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string CsvRow(const std::vector<std::string>& cells)
{
  std::string row;
  for (size_t i = 0; i < cells.size(); ++i)
  {
    std::string cell = cells[i];
    if (cell.find_first_of(",\"\n") != std::string::npos)
    {
      std::string quoted = "\"";
      for (const char c : cell)
      {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
      }
      cell = quoted + "\"";
    }
    row += (i ? "," : "") + cell;
  }
  return row + "\n";
}

std::vector<std::string> NamesOf(uint64_t raters, const std::vector<std::string>& names)
{
  std::vector<std::string> chosen;
  for (size_t r = 0; r < names.size(); ++r)
  {
    if (raters >> r & 1)
    {
      chosen.push_back(names[r]);
    }
  }
  return chosen;
}

void ToRas(double ras[3], const double lps[3])
{
  ras[0] = 0.0 - lps[0]; // no negative zero
  ras[1] = 0.0 - lps[1];
  ras[2] = lps[2];
}

namespace
{

template <class T> json_t* JsonVector(const T* values, int count)
{
  json_t* array = json_array();
  for (int i = 0; i < count; ++i)
  {
    json_array_append_new(array,
      std::is_integral<T>::value ? json_integer(static_cast<json_int_t>(values[i]))
                                 : JsonNumber(static_cast<double>(values[i])));
  }
  return array;
}

json_t* GeometryJson(const rcn_geometry& geometry)
{
  double ras[3];
  ToRas(ras, geometry.origin);
  json_t* object = json_object();
  const bool pixels = geometry.unit == RCN_PIXELS;
  json_object_set_new(object, "unit", json_string(pixels ? "pixel" : "mm"));
  json_object_set_new(object, "size", JsonVector(geometry.size, geometry.dimension));
  json_object_set_new(object, "spacing_mm", pixels ? json_null() : JsonVector(geometry.spacing, geometry.dimension));
  json_object_set_new(object, "origin_ras_mm", pixels ? json_null() : JsonVector(ras, 3));
  return object;
}

json_t* OverallJson(const rcn_overall_agreement& overall)
{
  json_t* object = json_object();
  json_object_set_new(object, "fleiss_kappa", JsonNumber(overall.fleiss_kappa));
  json_object_set_new(object, "krippendorff_alpha", JsonNumber(overall.krippendorff_alpha));
  json_object_set_new(object, "gwet_ac1", JsonNumber(overall.gwet_ac1));
  json_object_set_new(object, "mean_entropy_bits", JsonNumber(overall.mean_entropy));
  return object;
}

json_t* RaterJson(const rcn_rater_agreement& rater)
{
  json_t* object = json_object();
  json_object_set_new(object, "voxels", json_integer(rater.voxels));
  json_object_set_new(object, "volume_ml", JsonNumber(rater.volume_ml));
  json_object_set_new(object, "dice_to_others", JsonNumber(rater.dice_to_others));
  json_object_set_new(object, "sensitivity_to_others", JsonNumber(rater.sensitivity_to_others));
  json_object_set_new(object, "specificity_to_others", JsonNumber(rater.specificity_to_others));
  json_object_set_new(object, "others_split_voxels", json_integer(rater.others_split_voxels));
  json_object_set_new(object, "staple_sensitivity", JsonNumber(rater.staple_sensitivity));
  json_object_set_new(object, "staple_specificity", JsonNumber(rater.staple_specificity));
  return object;
}

json_t* PairJson(const rcn_pair_agreement& pair, const std::string& a, const std::string& b, bool surfaces, bool pixels)
{
  json_t* object = json_object();
  json_object_set_new(object, "a", JsonString(a));
  json_object_set_new(object, "b", JsonString(b));
  json_object_set_new(object, "dice", JsonNumber(pair.dice));
  json_object_set_new(object, "jaccard", JsonNumber(pair.jaccard));
  json_object_set_new(object, "kappa", JsonNumber(pair.kappa));
  if (surfaces)
  {
    json_object_set_new(object, "hausdorff95_mm", pixels ? json_null() : JsonNumber(pair.hausdorff95_mm));
    json_object_set_new(object, "mean_surface_mm", pixels ? json_null() : JsonNumber(pair.mean_surface_mm));
    if (pixels)
    {
      json_object_set_new(object, "hausdorff95_pixels", JsonNumber(pair.hausdorff95_mm));
      json_object_set_new(object, "mean_surface_pixels", JsonNumber(pair.mean_surface_mm));
    }
  }
  return object;
}

json_t* RegionJson(const rcn_dispute& region, const std::vector<std::string>& names, bool pixels)
{
  double ras[3];
  ToRas(ras, region.centroid_world);
  json_t* object = json_object();
  json_object_set_new(object, "voxels", json_integer(region.voxels));
  json_object_set_new(object, "volume_ml", JsonNumber(region.volume_ml));
  json_object_set_new(object, "centroid_ras_mm", pixels ? json_null() : JsonVector(ras, 3));
  json_object_set_new(object, "centroid_index", JsonVector(region.centroid, 3));
  json_object_set_new(object, "voxel", JsonVector(region.at, 3));
  json_object_set_new(object, "marked_by", JsonStrings(NamesOf(region.marked_by, names)));
  json_object_set_new(object, "most_votes", json_integer(region.max_votes));
  return object;
}

/// {"A": value, ...} for the raters who answered.
json_t* ByRater(const double* values, const Workspace& workspace)
{
  json_t* object = json_object();
  const uint64_t present = rcn_votes_present(workspace.Votes());
  for (size_t r = 0; r < workspace.RaterNames().size(); ++r)
  {
    if (present >> r & 1)
    {
      json_object_set_new(object, workspace.RaterNames()[r].c_str(), JsonNumber(values[r]));
    }
  }
  return object;
}

} // namespace

json_t* AgreementJson(const AgreementReport& report, const Workspace& workspace, size_t maxRegions)
{
  const rcn_agreement& figures = *report.Figures;
  const std::vector<std::string>& names = workspace.RaterNames();
  json_t* object = json_object();
  json_object_set_new(object, "geometry", GeometryJson(report.Geometry));
  const bool pixels = report.Geometry.unit == RCN_PIXELS;
  json_t* raters = json_object();
  json_t* pairs = json_array();
  for (int a = 0; a < figures.raters; ++a)
  {
    if (!figures.rater[a].present)
    {
      continue;
    }
    json_object_set_new(raters, names[a].c_str(), RaterJson(figures.rater[a]));
    for (int b = a + 1; b < figures.raters; ++b)
    {
      if (figures.rater[b].present)
      {
        json_array_append_new(
          pairs, PairJson(figures.pair[a * figures.raters + b], names[a], names[b], report.HasSurfaces, pixels));
      }
    }
  }
  json_object_set_new(object, "raters", raters);
  json_object_set_new(object, "pairs", pairs);
  json_object_set_new(object, "mean_dice", JsonNumber(figures.mean_dice));
  json_object_set_new(object, "whole", OverallJson(figures.whole));
  json_object_set_new(object, "union", OverallJson(figures.on_union));
  json_t* levels = json_array();
  for (int level = 0; level <= figures.present_count; ++level)
  {
    json_t* one = json_object();
    json_object_set_new(one, "votes", json_integer(level));
    json_object_set_new(one, "voxels", json_integer(figures.level_voxels[level]));
    json_object_set_new(one, "volume_ml", JsonNumber(static_cast<double>(figures.level_voxels[level]) * figures.voxel_ml));
    json_array_append_new(levels, one);
  }
  json_object_set_new(object, "levels", levels);
  json_t* volumes = json_object();
  json_t* voxels = json_object();
  const std::pair<const char*, int64_t> parts[] = { { "union", figures.union_voxels }, { "majority", figures.majority_voxels },
    { "intersection", figures.intersection_voxels }, { "disputed", figures.disputed_voxels } };
  for (const auto& part : parts)
  {
    json_object_set_new(volumes, part.first, JsonNumber(static_cast<double>(part.second) * figures.voxel_ml));
    json_object_set_new(voxels, part.first, json_integer(part.second));
  }
  json_object_set_new(object, "volumes_ml", volumes);
  json_object_set_new(object, "volumes_voxels", voxels);
  json_t* regions = json_array();
  for (size_t i = 0; i < report.Regions.size() && i < maxRegions; ++i)
  {
    json_array_append_new(regions, RegionJson(report.Regions[i], names, pixels));
  }
  json_object_set_new(object, "disputed_regions", regions);
  json_object_set_new(object, "disputed_region_count", json_integer(static_cast<json_int_t>(report.Regions.size())));
  json_object_set_new(object, "remarks", JsonStrings(workspace.Remarks()));
  return object;
}

json_t* FusionJson(const FusionReport& report, const rcn_fusion_options& options, const Workspace& workspace)
{
  const rcn_fusion_result& figures = report.Figures;
  json_t* object = json_object();
  json_object_set_new(object, "method", json_string(rcn_method_name(options.method)));
  json_object_set_new(object, "raters", JsonStrings(NamesOf(rcn_votes_present(workspace.Votes()), workspace.RaterNames())));
  if (options.method == RCN_STAPLE)
  {
    json_object_set_new(object, "prior", JsonNumber(figures.prior));
    json_object_set_new(object, "region_voxels", json_integer(figures.region_voxels));
    json_object_set_new(object, "sensitivity", ByRater(figures.sensitivity, workspace));
    json_object_set_new(object, "specificity", ByRater(figures.specificity, workspace));
    json_object_set_new(object, "inverted", JsonStrings(NamesOf(figures.inverted, workspace.RaterNames())));
  }
  if (options.method == RCN_STAPLE || options.method == RCN_SIMPLE)
  {
    json_object_set_new(object, "iterations", json_integer(figures.iterations));
    json_object_set_new(object, "converged", json_boolean(figures.converged));
  }
  if (options.method == RCN_SIMPLE)
  {
    json_object_set_new(object, "weight", ByRater(figures.weight, workspace));
  }
  if (options.method == RCN_SIMPLE || options.method == RCN_RANDOM)
  {
    json_object_set_new(object, "kept", JsonStrings(NamesOf(figures.kept, workspace.RaterNames())));
  }
  json_object_set_new(object, "remarks", JsonStrings(workspace.Remarks()));
  return object;
}

} // namespace rcn
