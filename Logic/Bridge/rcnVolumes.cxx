// SPDX-License-Identifier: Apache-2.0
#include "rcnVolumes.h"

#include <algorithm>
#include <memory>
#include <set>

#include "rcn/rcn.h"

namespace rcn
{

namespace
{

constexpr size_t LevelCount = sizeof VolumeLevels / sizeof *VolumeLevels;

/// What is behind an interval.
std::string CountedBehind(int count, bool patients)
{
  return Counted(count, patients ? "validation patient" : "validation case");
}

} // namespace

std::string PlainUnit(const std::string& unit)
{
  return unit == "mm²" ? "mm2" : unit;
}

// ---- what is stored --------------------------------------------------------------------------------

const VolumeScores* VolumeScores::Of(const std::string& structure) const
{
  const auto found = this->Structures.find(structure);
  return this->Structures.empty() ? this : found == this->Structures.end() ? nullptr : found->second.get();
}

int VolumeScores::UnitCount() const
{
  int most = 0;
  for (const auto& one : this->Structures)
  {
    most = std::max(most, one.second->UnitCount());
  }
  std::set<int> units;
  for (size_t i = 0; i < this->Cases.size(); ++i)
  {
    if (!this->Scores[i].empty())
    {
      units.insert(this->Units[i]);
    }
  }
  return std::max(most, static_cast<int>(units.size()));
}

bool VolumeScores::OfPatients() const
{
  return std::set<int>(this->Units.begin(), this->Units.end()).size() < this->Cases.size();
}

std::string VolumeScores::CountInWords(int count) const
{
  return CountedBehind(count, this->OfPatients());
}

double VolumeScores::Quantile(rcn_context* context, double level) const
{
  std::vector<double> scores;
  std::vector<int> units;
  for (size_t i = 0; i < this->Cases.size(); ++i)
  {
    scores.insert(scores.end(), this->Scores[i].begin(), this->Scores[i].end());
    units.insert(units.end(), this->Scores[i].size(), this->Units[i]);
  }
  // Numbers without gaps, and so never more of them than scores.
  const std::set<int> known(units.begin(), units.end());
  for (int& unit : units)
  {
    unit = static_cast<int>(std::distance(known.begin(), known.find(unit)));
  }
  double quantile = NAN;
  Check(
    rcn_volume_quantile(&quantile, context, scores.data(), units.data(), static_cast<int64_t>(scores.size()), level), context);
  return quantile;
}

bool VolumeScores::Has(const std::string& id) const
{
  return std::find(this->Cases.begin(), this->Cases.end(), id) != this->Cases.end();
}

json_t* VolumeScoresJson(const VolumeScores& scores)
{
  if (!scores.Structures.empty())
  {
    JsonObject each;
    for (const auto& one : scores.Structures)
    {
      each.Set(one.first, VolumeScoresJson(*one.second));
    }
    return each.Release();
  }
  return JsonObject{ { "cases", scores.Cases }, { "patients", scores.Units }, { "scores", scores.Scores } }.Release();
}

VolumeScores ParseVolumeScores(const json_t* object, const std::string& about)
{
  const JsonReader reader(object, about);
  VolumeScores scores;
  const json_t* lists = reader.Get("cases");
  if (json_object_size(object) > 0 && !json_is_array(lists)) // of several structures; one may be called "cases"
  {
    const char* structure;
    json_t* one;
    json_object_foreach(const_cast<json_t*>(object), structure, one)
    {
      if (!json_is_object(one) || !json_is_array(json_object_get(one, "cases")))
      {
        reader.Fail("its volumes must be \"cases\", \"patients\" and \"scores\", or these of each structure.");
      }
      scores.Structures[structure] = std::make_shared<VolumeScores>(ParseVolumeScores(one, about));
    }
    return scores;
  }
  scores.Cases = reader.Texts("cases");
  for (const int64_t unit : reader.WholeNumbers("patients", 0, 1 << 30))
  {
    scores.Units.push_back(static_cast<int>(unit));
  }
  for (const json_t* one : reader.Array("scores"))
  {
    std::vector<double> numbers;
    bool good = json_is_array(one) && json_array_size(one) <= RCN_MAX_RATERS;
    for (size_t i = 0; good && i < json_array_size(one); ++i)
    {
      numbers.push_back(json_number_value(json_array_get(one, i)));
      good = json_is_number(json_array_get(one, i)) && numbers.back() >= 0;
    }
    if (!good)
    {
      reader.Fail("its \"scores\" of volumes must be lists of numbers from 0 on.");
    }
    scores.Scores.push_back(numbers);
  }
  if (scores.Cases.size() != scores.Scores.size() || scores.Cases.size() != scores.Units.size())
  {
    reader.Fail("its \"cases\", \"patients\" and \"scores\" of volumes must have the same length.");
  }
  return scores;
}

std::shared_ptr<const VolumeScores> ScoresOf(const std::shared_ptr<const VolumeScores>& all, const std::string& structure)
{
  return { all, all ? all->Of(structure) : nullptr };
}

// ---- predicted -------------------------------------------------------------------------------------

std::string PredictedVolumes::Sentence() const
{
  const auto known = std::find_if(
    this->Intervals.begin(), this->Intervals.end(), [](const PredictedInterval& interval) { return interval.IsKnown(); });
  const std::string expected = this->TextWithUnit(this->Expected);
  if (known == this->Intervals.end())
  {
    return expected + "; no interval.";
  }
  return expected + "; raters would say " + this->Text(known->Low) + " to " + this->TextWithUnit(known->High) + " (" +
    PercentText(known->Level) + " interval, " + CountedBehind(this->Cases, this->OfPatients) + ").";
}

PredictedVolumes PredictedVolumes::In(const Units& units) const
{
  const Units kept;
  const Units::Unit* const unit = this->Unit == kept.Volume.Name ? &units.Volume
    : this->Unit == kept.Area.Name                               ? &units.Area
                                                                 : nullptr;
  PredictedVolumes out = *this;
  if (!unit)
  {
    return out;
  }
  out.Unit = unit->Name;
  out.PerVoxel *= unit->Factor;
  out.Expected *= unit->Factor;
  for (double& volume : out.AtLeast)
  {
    volume *= unit->Factor;
  }
  for (PredictedInterval& interval : out.Intervals)
  {
    interval.Low *= unit->Factor;
    interval.High *= unit->Factor;
  }
  for (PredictedComponent& component : out.Components)
  {
    component.Expected *= unit->Factor;
  }
  return out;
}

std::string PredictedVolumes::Text(double volume) const
{
  const bool whole = this->Unit == "pixels" || this->Unit == "voxels";
  return Fixed(volume, this->Expected >= 1000 || whole ? 0 : this->Expected >= 10 ? 1 : this->Expected >= 1 ? 2 : 3);
}

std::string PredictedVolumes::TextWithUnit(double volume) const
{
  return this->Text(volume) + " " + this->Unit;
}

VolumeTable PredictedVolumes::Table() const
{
  VolumeTable table{ { "", this->Name + " (" + this->Unit + ")" }, {} };
  table.Rows.push_back({ "expected, mean of the raters", this->Text(this->Expected) });
  for (const PredictedInterval& interval : this->Intervals)
  {
    table.Rows.push_back({ PercentText(interval.Level) + " prediction interval",
      interval.IsKnown() ? this->Text(interval.Low) + " to " + this->Text(interval.High) : "–" });
  }
  for (int t = 1; t <= this->Raters; ++t)
  {
    table.Rows.push_back({ t == 1 ? "marked by any rater"
        : t == this->Raters       ? "marked by all " + std::to_string(t) + " raters"
                                  : "marked by at least " + std::to_string(t) + " of " + std::to_string(this->Raters),
      this->Text(this->AtLeast[static_cast<size_t>(t) - 1]) });
  }
  return table;
}

VolumeTable PredictedVolumes::ComponentTable(size_t most) const
{
  VolumeTable table{ { "Component", this->Name + " (" + this->Unit + ")", "Highest share of raters", "Reaches" }, {} };
  for (size_t i = 0; i < std::min(most, this->Components.size()); ++i)
  {
    const PredictedComponent& one = this->Components[i];
    table.Rows.push_back({ std::to_string(i + 1), this->Text(one.Expected), PercentText(one.Highest), one.Reaches() });
  }
  return table;
}

namespace
{

/// Which intervals are missing, and why.
std::string MissingInWords(const PredictedVolumes& volumes)
{
  if (volumes.Cases == 0)
  {
    return "There is no interval: no volumes of validation cases are stored with the model.";
  }
  for (const PredictedInterval& interval : volumes.Intervals)
  {
    if (!interval.IsKnown())
    {
      return "An interval of " + PercentText(interval.Level) + " needs " +
        CountedBehind(rcn_volume_units(interval.Level), volumes.OfPatients) + "; the model has " +
        std::to_string(volumes.Cases) + ".";
    }
  }
  return "";
}

std::vector<PredictedComponent> ComponentsOf(
  const rcn_volume_component* found, int64_t count, const rcn_geometry& geometry, int raters, double perVoxel)
{
  std::vector<PredictedComponent> components(static_cast<size_t>(count));
  for (size_t i = 0; i < components.size(); ++i)
  {
    PredictedComponent& one = components[i];
    one.Voxels = found[i].voxels;
    one.Expected = perVoxel * found[i].expected;
    one.Highest = found[i].highest;
    one.AtLeast = found[i].at_least;
    one.Majority = 2 * found[i].at_least >= raters;
    std::copy(found[i].at, found[i].at + 3, one.At);
    const double index[3] = { double(one.At[0]), double(one.At[1]), double(one.At[2]) };
    double world[3];
    rcn_geometry_to_world(world, &geometry, index);
    geometry.unit == RCN_PIXELS ? (void)std::copy(index, index + 3, one.Ras) : ToRas(one.Ras, world);
  }
  return components;
}

using OwnedComponents = std::shared_ptr<rcn_volume_component>;

OwnedComponents Own(rcn_volume_component* components, rcn_context* context)
{
  return OwnedComponents(components, [context](rcn_volume_component* one) { rcn_volume_components_destroy(one, context); });
}

/// In the units of the image, with intervals.
PredictedVolumes VolumesFrom(rcn_context* context, const rcn_volume& volume, const rcn_volume_component* components,
  int64_t componentCount, const rcn_geometry& geometry, const VolumeScores* scores)
{
  const int raters = volume.raters;
  const Extent extent(geometry);
  PredictedVolumes out;
  out.Name = extent.Name;
  out.Unit = extent.Unit.substr(1);
  out.PerVoxel = extent.PerVoxel;
  out.Raters = raters;
  out.Binomial = volume.binomial != 0;
  out.Expected = extent.PerVoxel * volume.expected;
  for (int t = 0; t < raters; ++t)
  {
    out.AtLeast.push_back(extent.PerVoxel * volume.at_least[t]);
  }
  out.Cases = scores ? scores->UnitCount() : 0;
  out.OfPatients = scores && scores->OfPatients();
  for (const double level : VolumeLevels)
  {
    PredictedInterval interval{ level, NAN, NAN };
    if (scores)
    {
      rcn_volume_interval(&interval.Low, &interval.High, &volume, scores->Quantile(context, level));
      interval.Low *= extent.PerVoxel;
      interval.High *= extent.PerVoxel;
    }
    out.Intervals.push_back(interval);
  }
  out.Components = ComponentsOf(components, componentCount, geometry, raters, extent.PerVoxel);
  out.Remark = MissingInWords(out);
  return out;
}

} // namespace

PredictedVolumes PredictVolumes(
  rcn_context* context, const Volume& map, int raters, const VolumeScores* scores, const std::string& about)
{
  rcn_volume volume;
  rcn_volume_component* components = nullptr;
  int64_t count = 0;
  Check(rcn_volume_predict(&volume, context, &map.View(), raters), context, about);
  Check(rcn_volume_components_create(&components, &count, context, &map.View(), raters), context, about);
  const OwnedComponents owner = Own(components, context);
  return VolumesFrom(context, volume, components, count, map.Geometry(), scores);
}

PredictedVolumes PredictVolumes(
  rcn_context* context, const LevelSums& sums, const VolumeScores* scores, const std::string& about)
{
  const rcn_image& share = sums.Share.View();
  rcn_volume volume;
  rcn_volume_component* components = nullptr;
  int64_t count = 0;
  Check(rcn_volume_of_sums(&volume, context, &sums.Sums, &share), context, about);
  Check(rcn_volume_components_of_share(
          &components, &count, context, &sums.Sums, &share, static_cast<const uint8_t*>(sums.Likely.Data())),
    context, about);
  const OwnedComponents owner = Own(components, context);
  return VolumesFrom(context, volume, components, count, sums.Share.Geometry(), scores);
}

json_t* VolumesJson(const PredictedVolumes& volumes)
{
  JsonArray intervals, components;
  for (const PredictedInterval& interval : volumes.Intervals)
  {
    intervals.Add(JsonObject{ { "level", interval.Level }, { "low", interval.Low }, { "high", interval.High } });
  }
  for (size_t i = 0; i < volumes.Components.size(); ++i)
  {
    const PredictedComponent& one = volumes.Components[i];
    const bool world = volumes.Unit == "mL" || volumes.Unit == "mm²";
    components.Add(JsonObject{ { "component", i + 1 }, { "volume", one.Expected }, { "voxels", one.Voxels },
      { "highest", one.Highest }, { "at_least", one.AtLeast }, { "reaches", one.Reaches() }, { "index", Json(one.At, 3) },
      { "ras", world ? Json(one.Ras, 3) : Json(nullptr) } });
  }
  return JsonObject{
    { "unit", PlainUnit(volumes.Unit) }, { "expected", volumes.Expected }, { "at_least", volumes.AtLeast },
    { "levels", volumes.Binomial ? "binomial" : "predicted" }, { "intervals", intervals }, { "interval_cases", volumes.Cases },
    { "sentence", volumes.Sentence() }, { "remark", volumes.Remark }, { "components", components }
  }.Release();
}

std::string VolumesCsvHeading(int raters, bool structures)
{
  std::vector<std::string> cells = { "case", "component", "unit", "volume", "low_80", "high_80", "low_95", "high_95" };
  if (structures)
  {
    cells.insert(cells.begin() + 1, "structure");
  }
  for (int t = 1; t <= raters; ++t)
  {
    cells.push_back("at_least_" + std::to_string(t));
  }
  cells.insert(cells.end(), { "voxels", "highest", "reaches", "x", "y", "z" });
  return CsvRow(cells);
}

std::string VolumesCsv(const std::string& id, const PredictedVolumes& volumes, const std::string* structure)
{
  const auto row = [structure](std::vector<std::string> cells) {
    if (structure)
    {
      cells.insert(cells.begin() + 1, *structure);
    }
    return CsvRow(cells);
  };
  const std::string unit = PlainUnit(volumes.Unit);
  std::vector<std::string> cells = { id, "all", unit, CsvNumber(volumes.Expected) };
  for (const PredictedInterval& interval : volumes.Intervals)
  {
    cells.insert(cells.end(), { CsvNumber(interval.Low), CsvNumber(interval.High) });
  }
  std::transform(volumes.AtLeast.begin(), volumes.AtLeast.end(), std::back_inserter(cells), CsvNumber);
  cells.insert(cells.end(), 6, "");
  std::string rows = row(cells);
  for (size_t i = 0; i < volumes.Components.size(); ++i)
  {
    const PredictedComponent& one = volumes.Components[i];
    cells = { id, std::to_string(i + 1), unit, CsvNumber(one.Expected) };
    cells.insert(cells.end(), 2 * LevelCount + static_cast<size_t>(volumes.Raters), "");
    cells.insert(cells.end(),
      { std::to_string(one.Voxels), CsvNumber(one.Highest), one.Reaches(), std::to_string(one.At[0]), std::to_string(one.At[1]),
        std::to_string(one.At[2]) });
    rows += row(cells);
  }
  return rows;
}

// ---- judged ----------------------------------------------------------------------------------------

JudgedVolumes JudgeVolumes(rcn_context* context, const Volume& map, const rcn_votes* votes, const double* quantiles)
{
  const int raters = rcn_votes_raters(votes);
  rcn_volume volume;
  JudgedVolumes out;
  const rcn_status status = rcn_volume_predict(&volume, context, &map.View(), raters);
  if (status == RCN_EDATA) // elsewhere than it is judged a map may hold anything
  {
    return out;
  }
  Check(status, context);
  const Extent extent(*rcn_votes_geometry(votes));
  out.Unit = extent.Unit.substr(1);
  out.Row.expected = extent.PerVoxel * volume.expected;
  std::vector<double> marked(static_cast<size_t>(raters));
  const double known = rcn_volume_of_raters(marked.data(), votes);
  if (known == 0)
  {
    return out;
  }
  out.Row.raters = out.Row.crps = 0;
  double inside[LevelCount] = {};
  for (const double x : marked)
  {
    if (std::isnan(x))
    {
      continue;
    }
    out.Row.raters += extent.PerVoxel * x / known;
    out.Row.crps += extent.PerVoxel * rcn_volume_crps(&volume, x) / known;
    out.Scores.push_back(rcn_volume_score(&volume, x));
    for (size_t level = 0; level < LevelCount; ++level)
    {
      inside[level] += (out.Scores.back() <= quantiles[level]) / known;
    }
  }
  for (size_t level = 0; level < LevelCount; ++level)
  {
    out.Row.inside[level] = std::isfinite(quantiles[level]) ? inside[level] : NAN;
  }
  out.Row.curvas_crps = extent.PerVoxel * rcn_volume_curvas_crps(volume.expected, marked.data(), raters);
  return out;
}

json_t* JudgedVolumesJson(const JudgedVolumes& volumes)
{
  const rcn_volume_row& row = volumes.Row;
  return JsonObject{
    { "unit", volumes.Unit }, { "expected", row.expected }, { "raters", row.raters }, { "crps", row.crps },
    { "curvas_crps", row.curvas_crps }, { "inside", Json(row.inside, LevelCount) }, { "scores", volumes.Scores }
  }.Release();
}

JudgedVolumes JudgedVolumesFrom(const json_t* record)
{
  const auto number = [](const json_t* value) { return json_is_number(value) ? json_number_value(value) : NAN; };
  JudgedVolumes out;
  out.Unit = json_string_value(json_object_get(record, "unit"));
  rcn_volume_row& row = out.Row;
  row.expected = number(json_object_get(record, "expected"));
  row.raters = number(json_object_get(record, "raters"));
  row.crps = number(json_object_get(record, "crps"));
  row.curvas_crps = number(json_object_get(record, "curvas_crps"));
  for (size_t level = 0; level < LevelCount; ++level)
  {
    row.inside[level] = number(json_array_get(json_object_get(record, "inside"), level));
  }
  const json_t* scores = json_object_get(record, "scores");
  for (size_t i = 0; i < json_array_size(scores); ++i)
  {
    out.Scores.push_back(number(json_array_get(scores, i)));
  }
  return out;
}

namespace
{

const struct
{
  const char *Key, *Name;
  rcn_mean_kind Kind;
} MeanNames[VolumeMeans] = { { "volume_crps", "volume CRPS", RCN_MEAN_AMOUNT },
  { "curvas_crps", "CURVAS CRPS", RCN_MEAN_AMOUNT }, { "volume_bias", "volume bias", RCN_MEAN_DIFFERENCE },
  { "volume_coverage_80", "coverage of 80 % intervals (%)", RCN_MEAN_SHARE },
  { "volume_coverage_95", "coverage of 95 % intervals (%)", RCN_MEAN_SHARE } };

/// In percent, not in the unit of the volumes.
bool IsCoverage(int mean)
{
  return mean == MeanCoverage80 || mean == MeanCoverage95;
}

/// What a case adds to a mean; NaN: nothing.
double PartOf(const rcn_volume_row& row, int mean)
{
  return std::isnan(row.raters) ? NAN
    : mean == MeanCrps          ? row.crps
    : mean == MeanCurvas        ? row.curvas_crps
    : mean == MeanBias          ? row.expected - row.raters
                                : row.inside[mean - MeanCoverage80];
}

rcn_interval IntervalOf(
  const std::vector<double>& values, const std::vector<int>& patients, rcn_mean_kind kind, rcn_context* context)
{
  rcn_interval_options options = RCN_INTERVAL_OPTIONS_INIT;
  options.patients = patients.data();
  rcn_interval interval{ NAN, NAN, NAN, NAN, NAN, 0 };
  if (!values.empty())
  {
    Check(rcn_interval_mean(&interval, context, values.data(), nullptr, static_cast<int64_t>(values.size()), kind, &options),
      context);
  }
  return interval;
}

/// The units of these cases; those that cannot be measured have none.
std::set<std::string> UnitsOf(const std::vector<JudgedVolumes>& cases)
{
  std::set<std::string> units;
  for (const JudgedVolumes& one : cases)
  {
    units.insert(one.Unit);
  }
  units.erase("");
  return units;
}

/// How many digits a volume is shown with.
int DigitsOf(double value, const std::string& unit)
{
  return unit == "pixels" || unit == "voxels" || std::fabs(value) >= 100 ? 1 : 3;
}

} // namespace

VolumeReport SummarizeVolumes(const std::vector<JudgedVolumes>& cases, const std::vector<int>& patients, rcn_context* context,
  const VolumeScores* known, size_t calibrated)
{
  VolumeReport report;
  std::vector<rcn_volume_row> rows;
  const std::set<std::string> units = UnitsOf(cases);
  size_t unmeasured = 0;
  for (const JudgedVolumes& one : cases)
  {
    rows.push_back(one.Row);
    unmeasured += one.Unit.empty();
  }
  rcn_volume_summarize(&report.Figures, rows.data(), static_cast<int64_t>(rows.size()));
  for (int mean = 0; mean < VolumeMeans; ++mean)
  {
    std::vector<double> values;
    std::transform(
      rows.begin(), rows.end(), std::back_inserter(values), [mean](const rcn_volume_row& row) { return PartOf(row, mean); });
    if (units.size() > 1 && !IsCoverage(mean))
    {
      values.clear();
    }
    report.Intervals[mean] = IntervalOf(values, patients, MeanNames[mean].Kind, context);
    if (IsCoverage(mean) && !(report.Intervals[mean].high > report.Intervals[mean].low))
    {
      // Cases that are all alike, as where every volume is inside, do not tell how far others may differ.
      report.Intervals[mean] = { report.Intervals[mean].value, NAN, NAN, NAN, NAN, 0 };
    }
  }
  report.Unit = units.size() == 1 ? *units.begin() : "";
  report.ScoreCases = known ? known->UnitCount() : 0;
  std::vector<std::string> remarks;
  if (units.size() > 1) // a mean of mL, mm² and pixels would mean nothing
  {
    rcn_volume_figures& f = report.Figures;
    f.crps = f.curvas_crps = f.bias = f.deviation = f.agree_low = f.agree_high = NAN;
    remarks.push_back("the units of the cases differ");
  }
  if (unmeasured > 0)
  {
    remarks.push_back(Counted(static_cast<int64_t>(unmeasured), "map is", "maps are") + " not a probability everywhere");
  }
  if (report.ScoreCases == 0)
  {
    remarks.push_back("no interval, because no volumes of validation cases are stored with the predictions");
  }
  else if (calibrated > 0)
  {
    remarks.push_back(Counted(static_cast<int64_t>(calibrated), "case is", "cases are") +
      " used for the intervals and not counted for coverage");
  }
  for (const double level : VolumeLevels)
  {
    if (report.ScoreCases > 0 && std::isinf(known->Quantile(context, level)))
    {
      remarks.push_back("an interval of " + PercentText(level) + " needs " + known->CountInWords(rcn_volume_units(level)) +
        ", and there are " + std::to_string(report.ScoreCases));
    }
  }
  for (const std::string& remark : remarks)
  {
    report.Remark += (report.Remark.empty() ? "Volumes: " : "; ") + remark;
  }
  report.Remark += report.Remark.empty() ? "" : ".";
  return report;
}

std::vector<VolumeFigure> VolumeReport::Shown() const
{
  const rcn_volume_figures& f = this->Figures;
  const std::string unit = this->Unit.empty() ? "" : " (" + this->Unit + ")";
  const auto figure = [&](const char* name, double value, const char* meaning) {
    return VolumeFigure{ name + unit, value, Fixed(value, DigitsOf(value, this->Unit)), Fixed(NAN, 0), meaning };
  };
  const auto mean = [&](int which, double value, const char* meaning) {
    const bool share = IsCoverage(which);
    const rcn_interval& interval = this->Intervals[which];
    const int digits = share ? 1 : DigitsOf(value, this->Unit);
    const double scale = share ? 100 : 1;
    return VolumeFigure{ MeanNames[which].Name + (share ? "" : unit), value, Fixed(scale * value, digits),
      interval.units > 0 ? FromTo(scale * interval.low, scale * interval.high, digits) : Fixed(NAN, 0), meaning };
  };
  const char* const inside = "raters' volumes inside the predicted interval";
  return { mean(MeanCrps, f.crps, "predicted distribution of a rater's volume against the raters' volumes"),
    mean(MeanCurvas, f.curvas_crps, "expected volume against a normal distribution of the raters' volumes"),
    mean(MeanBias, f.bias, "expected volume minus the mean of the raters, over cases"),
    figure("lower limit of agreement", f.agree_low, "bias - 1.96 standard deviations (Bland and Altman)"),
    figure("upper limit of agreement", f.agree_high, "bias + 1.96 standard deviations"),
    mean(MeanCoverage80, f.coverage[0], inside), mean(MeanCoverage95, f.coverage[1], inside) };
}

std::vector<VolumeDifference> CompareVolumes(const std::vector<JudgedVolumes>& first, const std::vector<JudgedVolumes>& second,
  const std::vector<int>& patients, rcn_context* context)
{
  std::set<std::string> units = UnitsOf(first);
  units.merge(UnitsOf(second));
  const std::string unit = units.size() == 1 ? *units.begin() : "";
  std::vector<VolumeDifference> differences;
  for (int mean = 0; mean < VolumeMeans; ++mean)
  {
    const bool share = IsCoverage(mean);
    std::vector<double> values;
    std::transform(first.begin(), first.end(), second.begin(), std::back_inserter(values),
      [mean](const JudgedVolumes& a, const JudgedVolumes& b) { return PartOf(a.Row, mean) - PartOf(b.Row, mean); });
    const rcn_interval one = IntervalOf(values, patients, RCN_MEAN_DIFFERENCE, context);
    const double scale = share ? 100 : 1;
    const int digits = share ? 1 : DigitsOf(one.value, unit);
    if (std::isfinite(one.value) && (share || !unit.empty())) // a mean of mL and pixels would mean nothing
    {
      differences.push_back({ MeanNames[mean].Key, MeanNames[mean].Name + (share ? "" : " (" + unit + ")"), one,
        Fixed(scale * one.value, digits), FromTo(scale * one.low, scale * one.high, digits) });
    }
  }
  return differences;
}

VolumeReport MeanOverTrainings(const std::vector<VolumeReport>& trainings)
{
  VolumeReport mean = trainings.front();
  for (rcn_interval& interval : mean.Intervals)
  {
    interval = trainings.size() > 1 ? rcn_interval{ NAN, NAN, NAN, NAN, NAN, 0 } : interval;
  }
  const double share = 1 / static_cast<double>(trainings.size());
  for (double rcn_volume_figures::* figure :
    { &rcn_volume_figures::crps, &rcn_volume_figures::curvas_crps, &rcn_volume_figures::bias, &rcn_volume_figures::deviation,
      &rcn_volume_figures::agree_low, &rcn_volume_figures::agree_high })
  {
    mean.Figures.*figure = 0;
    for (const VolumeReport& one : trainings)
    {
      mean.Figures.*figure += share * one.Figures.*figure;
    }
  }
  for (size_t level = 0; level < LevelCount; ++level)
  {
    mean.Figures.coverage[level] = 0;
    for (const VolumeReport& one : trainings)
    {
      mean.Figures.coverage[level] += share * one.Figures.coverage[level];
    }
  }
  return mean;
}

namespace
{

Json CiJson(const rcn_interval& interval)
{
  return interval.units > 0 ? Json(JsonArray{ interval.low, interval.high }) : Json(nullptr);
}

} // namespace

json_t* VolumeReportJson(const VolumeReport& report)
{
  const rcn_volume_figures& f = report.Figures;
  JsonArray coverage;
  for (size_t level = 0; level < LevelCount; ++level)
  {
    coverage.Add(JsonObject{ { "level", VolumeLevels[level] }, { "inside", f.coverage[level] },
      { "cases", f.covered_cases[level] }, { "ci", CiJson(report.Intervals[MeanCoverage80 + level]) } });
  }
  return JsonObject{
    { "unit", report.Unit.empty() ? Json(nullptr) : Json(PlainUnit(report.Unit)) }, { "cases", f.cases },
    { "curvas_cases", f.curvas_cases }, { "crps", f.crps }, { "curvas_crps", f.curvas_crps }, { "bias", f.bias },
    { "ci",
      JsonObject{ { "crps", CiJson(report.Intervals[MeanCrps]) }, { "curvas_crps", CiJson(report.Intervals[MeanCurvas]) },
        { "bias", CiJson(report.Intervals[MeanBias]) } } },
    { "deviation", f.deviation }, { "limits_of_agreement", JsonArray{ f.agree_low, f.agree_high } }, { "coverage", coverage },
    { "interval_cases", report.ScoreCases }, { "remark", report.Remark }
  }.Release();
}

} // namespace rcn
