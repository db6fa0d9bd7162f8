// SPDX-License-Identifier: Apache-2.0
#include "rcnReport.h"

#include "rcnAgreementFigures.h"
#include "rcnPlatform.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace rcn
{

json_t* LeftOutJson(const std::vector<LeftOutCase>& cases)
{
  JsonArray array;
  for (const LeftOutCase& one : cases)
  {
    array.Add(JsonObject{ { "case", one.Id }, { "sentence", one.Sentence } });
  }
  return array.Release();
}

// Of what LeftOutJson() wrote, so nothing is refused: what does not fit is left out.
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

// A dash for what is not defined: never "nan" before a person.
std::string Fixed(double value, int digits)
{
  if (!std::isfinite(value))
  {
    return "–";
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  const bool nothing = !std::strpbrk(text, "123456789");
  return *text == '-' && nothing ? text + 1 : text; // not "-0.000"
}

std::string PercentText(double share, int digits)
{
  return Fixed(100 * share, digits) + " %";
}

std::string FromTo(double low, double high, int digits)
{
  return std::isfinite(low) && std::isfinite(high) ? Fixed(low, digits) + " to " + Fixed(high, digits) : Fixed(NAN, digits);
}

// What is not defined for a case does not count for the mean, instead of spoiling it.
void Spread::Add(double value)
{
  if (std::isfinite(value))
  {
    this->Sum_ += value;
    this->Low_ = std::fmin(this->Low_, value);
    this->High_ = std::fmax(this->High_, value);
    ++this->Count_;
  }
}

double Spread::Mean() const
{
  return this->Count_ ? this->Sum_ / static_cast<double>(this->Count_) : NAN;
}

std::string Counted(int64_t count, const std::string& one, const std::string& many)
{
  return std::to_string(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

std::string TimeText(std::time_t time)
{
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&time, &parts))
  {
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  }
  return text;
}

// SOURCE_DATE_EPOCH: whoever wants the same bytes again (packagers, tests) tells the time.
std::time_t TimeForFiles()
{
  const char* told = std::getenv("SOURCE_DATE_EPOCH");
  return told && *told ? static_cast<std::time_t>(std::atoll(told)) : std::time(nullptr);
}

std::string DayText()
{
  return TimeText(TimeForFiles()).substr(0, 10);
}

// Rounded to what a person plans with; up, where it is seconds, so that there are never 0 of them.
std::string DurationText(double seconds)
{
  return seconds < 90 ? Fixed(std::ceil(seconds), 0) + " s"
    : seconds < 5400  ? Fixed(seconds / 60, 0) + " min"
                      : Fixed(seconds / 3600, 1) + " h";
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

// Of a picture without spacing, size in pixels is all that is known; millimeters would be made up.
std::string DescribeGeometry(const rcn_geometry& geometry)
{
  const std::string spacing = AlongAxes(geometry, [&](int a) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", geometry.spacing[a]);
    return std::string(text);
  });
  return SizeText(geometry) + (rcn_geometry_thin_axis(&geometry) < 0 ? " voxels" : " pixels") +
    (geometry.unit == RCN_PIXELS ? " (the file has no spacing)" : " of " + spacing + " mm");
}

std::string DescribeCase(const Workspace& workspace)
{
  const auto raters = static_cast<int64_t>(NamesOf(rcn_votes_present(workspace.Votes()), workspace.RaterNames()).size());
  return Counted(raters, "rater") + ", " + DescribeGeometry(*rcn_votes_geometry(workspace.Votes()));
}

// Area or volume, and in which unit: decided here once for all texts, tables and pages.
Extent::Extent(const rcn_geometry& geometry, const Units& units)
{
  const bool flat = rcn_geometry_thin_axis(&geometry) >= 0;
  this->InPixels = geometry.unit == RCN_PIXELS;
  this->Name = flat ? "Area" : "Volume";
  const Units::Unit& unit = flat ? units.Area : units.Volume;
  this->Unit = this->InPixels ? (flat ? " pixels" : " voxels") : " " + unit.Name;
  this->Heading = this->Name + " (" + this->Unit.substr(1) + ")";
  this->Length = this->InPixels ? "pixels" : units.Length.Name;
  this->PerMm = this->InPixels ? 1 : units.Length.Factor;
  this->PerVoxel =
    this->InPixels ? 1 : unit.Factor * (flat ? rcn_geometry_pixel_mm2(&geometry) : rcn_geometry_voxel_ml(&geometry));
  this->PlaceHeading = this->InPixels ? (flat ? "Center x, y (pixels)" : "Center x, y, z (voxels)") : "Center R, A, S (mm)";
}

std::string Extent::Text(int64_t voxels) const
{
  return this->InPixels ? std::to_string(voxels) : this->TextOf(static_cast<double>(voxels) * this->PerVoxel);
}

// More digits for small structures.
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

// Half of two is one: worth saying, because nobody expects it of the word majority.
std::string MajorityRemark(int present)
{
  return present == 2 ? "With two raters, the majority (at least half of them) is every voxel that anybody marked." : "";
}

// An empty cell for what is not defined, which spreadsheets and statistics programs read as missing.
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

// RFC 4180, but with the line ends of Unix: quoted where it has to be, quotes doubled.
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

// The heading of the first one stands for all.
std::string JoinCsv(const std::vector<std::string>& files)
{
  std::string all;
  for (const std::string& file : files)
  {
    all += all.empty() ? file : file.substr(std::min(file.size(), file.find('\n') + 1));
  }
  return all;
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

std::string JoinNames(const std::vector<std::string>& names)
{
  std::string text;
  for (const std::string& name : names)
  {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// Files and the core have LPS as ITK; people and Slicer read RAS. Converted only on the way out.
void ToRas(double ras[3], const double lps[3])
{
  ras[0] = 0.0 - lps[0]; // no negative zero
  ras[1] = 0.0 - lps[1];
  ras[2] = lps[2];
}

namespace
{

/// What is measured in mm or mL: null for a picture without spacing.
Json InMillimeters(bool pixels, const Json& value)
{
  return pixels ? Json(nullptr) : value;
}

Json GeometryJson(const rcn_geometry& geometry)
{
  double ras[3];
  ToRas(ras, geometry.origin);
  const bool pixels = geometry.unit == RCN_PIXELS;
  const auto axes = static_cast<size_t>(geometry.dimension);
  return JsonObject{ { "unit", pixels ? "pixel" : "mm" }, { "size", Json(geometry.size, axes) },
    { "spacing_mm", InMillimeters(pixels, Json(geometry.spacing, axes)) },
    { "origin_ras_mm", InMillimeters(pixels, Json(ras, 3)) } };
}

template <class TRecord>
void SetFigures(JsonObject& object, const std::vector<AgreementFigure<TRecord>>& figures, const TRecord& record)
{
  for (const AgreementFigure<TRecord>& figure : figures)
  {
    object.Set(figure.Key, figure.Of(record));
  }
}

Json OverallJson(const rcn_overall_agreement& overall)
{
  JsonObject object;
  SetFigures(object, OverallFigures(), overall);
  return object;
}

Json RaterJson(const rcn_rater_agreement& rater)
{
  JsonObject object{ { "voxels", rater.voxels }, { "volume_ml", rater.volume_ml } };
  SetFigures(object, RaterFigures(), rater);
  return object.Set("others_split_voxels", rater.others_split_voxels);
}

/// Distances that were not measured have no key; those of a picture without spacing are null in mm and stand under a key in
/// pixels.
Json PairJson(const rcn_pair_agreement& pair, const std::string& a, const std::string& b, bool surfaces, bool pixels)
{
  JsonObject object{ { "a", a }, { "b", b } };
  for (const auto& figure : PairFigures())
  {
    if (surfaces || !figure.IsDistance())
    {
      object.Set(figure.Key, InMillimeters(pixels && figure.IsDistance(), figure.Of(pair)));
    }
    if (surfaces && pixels && figure.IsDistance())
    {
      object.Set(figure.PixelKey, figure.Of(pair));
    }
  }
  return object;
}

Json RegionJson(const rcn_dispute& region, const std::vector<std::string>& names, bool pixels)
{
  double ras[3];
  ToRas(ras, region.centroid_world);
  return JsonObject{ { "voxels", region.voxels }, { "volume_ml", region.volume_ml },
    { "centroid_ras_mm", InMillimeters(pixels, Json(ras, 3)) }, { "centroid_index", Json(region.centroid, 3) },
    { "voxel", Json(region.at, 3) }, { "marked_by", NamesOf(region.marked_by, names) }, { "most_votes", region.max_votes } };
}

/// {"A": value, ...} for the raters who answered.
Json ByRater(const double* values, const Workspace& workspace)
{
  JsonObject object;
  const uint64_t present = rcn_votes_present(workspace.Votes());
  for (size_t r = 0; r < workspace.RaterNames().size(); ++r)
  {
    if (present >> r & 1)
    {
      object.Set(workspace.RaterNames()[r], values[r]);
    }
  }
  return object;
}

} // namespace

json_t* AgreementJson(
  const AgreementReport& report, const Workspace& workspace, size_t maxRegions, const std::vector<std::string>* shown)
{
  const rcn_agreement& figures = *report.Figures;
  const std::vector<std::string>& names = shown ? *shown : workspace.RaterNames();
  const bool pixels = report.Geometry.unit == RCN_PIXELS;
  JsonObject raters, volumes, voxels;
  JsonArray pairs, levels, regions;
  for (int a = 0; a < figures.raters; ++a)
  {
    // Who did not answer this case is not in it at all, instead of being in it with zeros.
    if (!figures.rater[a].present)
    {
      continue;
    }
    raters.Set(names[a], RaterJson(figures.rater[a]));
    for (int b = a + 1; b < figures.raters; ++b)
    {
      if (figures.rater[b].present)
      {
        pairs.Add(PairJson(figures.pair[a * figures.raters + b], names[a], names[b], report.HasSurfaces, pixels));
      }
    }
  }
  for (int level = 0; level <= figures.present_count; ++level)
  {
    const int64_t count = figures.level_voxels[level];
    levels.Add(
      JsonObject{ { "votes", level }, { "voxels", count }, { "volume_ml", static_cast<double>(count) * figures.voxel_ml } });
  }
  for (const AgreementPart& part : AgreementParts())
  {
    const int64_t count = figures.*part.Voxels;
    volumes.Set(part.Key, static_cast<double>(count) * figures.voxel_ml);
    voxels.Set(part.Key, count);
  }
  for (size_t i = 0; i < report.Regions.size() && i < maxRegions; ++i)
  {
    regions.Add(RegionJson(report.Regions[i], names, pixels));
  }
  return JsonObject{
    { "geometry", GeometryJson(report.Geometry) }, { "raters", raters }, { "pairs", pairs }, { "mean_dice", figures.mean_dice },
    { "whole", OverallJson(figures.whole) }, { "union", OverallJson(figures.on_union) }, { "levels", levels },
    { "volumes_ml", volumes }, { "volumes_voxels", voxels }, { "disputed_regions", regions },
    { "disputed_region_count", report.Regions.size() }, { "remarks", workspace.Remarks() }
  }.Release();
}

std::string AgreementCsv(const AgreementReport& report, const std::vector<std::string>& raters)
{
  const rcn_agreement& figures = *report.Figures;
  const bool pixels = report.Geometry.unit == RCN_PIXELS;
  // One header for rows about a rater, a pair and all of them, so that files of many cases can be put below each other. Columns
  // are a contract; new ones come at the end.
  const std::vector<std::string> header = { "rater", "with", "volume_ml", "dice", "sensitivity", "specificity",
    "staple_sensitivity", "staple_specificity", "jaccard", "kappa", "hausdorff95_mm", "mean_surface_mm", "alpha", "ac1",
    "voxels", "hausdorff95_pixels", "mean_surface_pixels" };
  std::string text = CsvRow(header);
  // A row has the figures that there are for it; all other cells are empty.
  const auto add = [&](const std::string& rater, const std::string& with, const std::map<std::string, double>& numbers) {
    std::vector<std::string> row = { rater, with };
    for (size_t c = row.size(); c < header.size(); ++c)
    {
      const auto found = numbers.find(header[c]);
      row.push_back(found == numbers.end() ? "" : CsvNumber(found->second));
    }
    text += CsvRow(row);
  };
  for (int r = 0; r < figures.raters; ++r)
  {
    const rcn_rater_agreement& rater = figures.rater[r];
    std::map<std::string, double> numbers = { { "dice", rater.dice_to_others }, { "sensitivity", rater.sensitivity_to_others },
      { "specificity", rater.specificity_to_others }, { "staple_sensitivity", rater.staple_sensitivity },
      { "staple_specificity", rater.staple_specificity } };
    if (rater.present)
    {
      numbers["volume_ml"] = rater.volume_ml;
      numbers["voxels"] = static_cast<double>(rater.voxels);
    }
    add(raters[static_cast<size_t>(r)], "the others", numbers);
  }
  for (int a = 0; a < figures.raters; ++a)
  {
    for (int b = a + 1; b < figures.raters; ++b)
    {
      std::map<std::string, double> numbers;
      for (const auto& figure : PairFigures())
      {
        numbers[figure.IsDistance() && pixels ? figure.PixelKey : figure.Key] = figure.Of(figures.pair[a * figures.raters + b]);
      }
      add(raters[static_cast<size_t>(a)], raters[static_cast<size_t>(b)], numbers);
    }
  }
  const auto overall = [](const rcn_overall_agreement& one, double dice) {
    return std::map<std::string, double>{ { "dice", dice }, { "kappa", one.fleiss_kappa }, { "alpha", one.krippendorff_alpha },
      { "ac1", one.gwet_ac1 } };
  };
  add("all", "whole image", overall(figures.whole, figures.mean_dice));
  add("all", "where anybody marked", overall(figures.on_union, NAN));
  return text;
}

Json LabelAgreementJson(const LabelAgreement& labels, const Workspace& workspace)
{
  const std::vector<std::string>& names = workspace.RaterNames();
  const uint64_t present = rcn_votes_present(workspace.Votes());
  JsonArray pairs;
  for (size_t a = 0; a < names.size(); ++a)
  {
    for (size_t b = a + 1; b < names.size(); ++b)
    {
      if (present >> a & present >> b & 1)
      {
        pairs.Add(JsonObject{ { "a", names[a] }, { "b", names[b] }, { "kappa", labels.Kappa[a * names.size() + b] } });
      }
    }
  }
  return JsonObject{ { "whole", OverallJson(labels.Figures.whole) }, { "union", OverallJson(labels.Figures.on_union) },
    { "pairs", pairs } };
}

namespace
{

/// What a method found about one structure.
void SetFusionFigures(
  JsonObject& object, const rcn_fusion_result& figures, const rcn_fusion_options& options, const Workspace& workspace)
{
  const std::vector<std::string>& names = workspace.RaterNames();
  if (options.method == RCN_STAPLE)
  {
    object.Set("prior", figures.prior).Set("region_voxels", figures.region_voxels);
    object.Set("sensitivity", ByRater(figures.sensitivity, workspace));
    object.Set("specificity", ByRater(figures.specificity, workspace));
    object.Set("inverted", NamesOf(figures.inverted, names));
  }
  if (options.method == RCN_STAPLE || options.method == RCN_SIMPLE)
  {
    object.Set("iterations", figures.iterations).Set("converged", figures.converged != 0);
  }
  if (options.method == RCN_SIMPLE)
  {
    object.Set("weight", ByRater(figures.weight, workspace));
  }
  if (options.method == RCN_SIMPLE || options.method == RCN_RANDOM)
  {
    object.Set("kept", NamesOf(figures.kept, names));
  }
}

/// What STAPLE found about all labels.
void SetLabelFigures(JsonObject& object, const FusionReport& report, const Workspace& workspace)
{
  const std::vector<std::string>& names = workspace.RaterNames();
  const size_t labels = workspace.Structures().size() + 1;
  JsonObject confusion;
  for (size_t r = 0; r < names.size(); ++r)
  {
    JsonArray rows;
    for (size_t given = 0; given < labels; ++given)
    {
      rows.Add(Json(report.Confusion.data() + (r * labels + given) * labels, labels));
    }
    if (rcn_votes_present(workspace.Votes()) >> r & 1)
    {
      confusion.Set(names[r], rows);
    }
  }
  object.Set("prior", Json(report.Labels.prior, labels)).Set("confusion", confusion);
  object.Set("region_voxels", report.Labels.region_voxels).Set("undecided_voxels", report.Labels.undecided_voxels);
  object.Set("iterations", report.Labels.iterations).Set("converged", report.Labels.converged != 0);
}

} // namespace

json_t* FusionJson(const FusionReport& report, const rcn_fusion_options& options, const Workspace& workspace)
{
  JsonObject object{ { "method", rcn_method_name(options.method) },
    { "raters", NamesOf(rcn_votes_present(workspace.Votes()), workspace.RaterNames()) } };
  const std::vector<Structure>& structures = workspace.Structures();
  JsonObject each;
  for (size_t c = 0; c < report.Each.size(); ++c)
  {
    JsonObject one;
    SetFusionFigures(one, report.Each[c], options, workspace);
    each.Set(structures[c].Name, one);
  }
  if (!report.Each.empty())
  {
    object.Set("structures", each);
  }
  else if (workspace.HasStructures() && workspace.SelectedStructure() == 0)
  {
    // What the numbers in the map mean, background first.
    std::vector<std::string> labels = NamesOf(structures);
    labels.insert(labels.begin(), "background");
    std::vector<int> values = { 0 };
    const std::vector<uint8_t> stored = LabelValues(structures);
    values.insert(values.end(), stored.begin(), stored.end());
    object.Set("labels", labels).Set("values", values);
    if (!report.Confusion.empty())
    {
      SetLabelFigures(object, report, workspace);
    }
  }
  else
  {
    SetFusionFigures(object, report.Figures, options, workspace);
  }
  return object.Set("remarks", workspace.Remarks()).Release();
}

} // namespace rcn
