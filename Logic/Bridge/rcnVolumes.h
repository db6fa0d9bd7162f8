// SPDX-License-Identifier: Apache-2.0
/// Volumes with their uncertainty: what raters would measure on a predicted map, "15.2 mL; raters would say 12.1 to 18.9 mL".
///
/// A shell that predicts finds them in Prediction::Volumes (rcnPrediction.h), ready to be shown:
///
///   const Prediction prediction = Predict(model, context, images, about, options);
///   prediction.Volumes.Sentence()         "15.2 mL; raters would say 12.1 to 18.9 mL (80 % interval, 24 validation cases)."
///   prediction.Volumes.Remark             why there is no interval of 80 % or 95 %; empty where both are there
///   prediction.Volumes.Table()            headings and rows: expected, intervals, "at least t raters"
///   prediction.Volumes.ComponentTable()   the same of the connected components, largest first
///   VolumesJson(prediction.Volumes)       for files
///
/// Volumes are in mL, of 2-D images areas in mm², of images without spacing numbers of pixels (Extent in rcnReport.h).
/// The computing is in the core (rcn_volume.h), where the definitions are.
///
/// Intervals come from cases that the model was not trained on: VolumeScores. Training and recalibrating make them from the
/// validation cases; they are stored with what they belong to: the model as it is (ModelInfo::Volumes), or a correction of it
/// (Recalibration::Volumes), so that an interval always fits the map beside it. Of several structures each has its own.
#ifndef rcnVolumes_h
#define rcnVolumes_h

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rcn/rcn_interval.h"
#include "rcn/rcn_volume.h"
#include "rcnJson.h"
#include "rcnReport.h"
#include "rcnVolume.h"

namespace rcn
{

/// The levels of intervals, in the order of rcn_volume_row::inside.
constexpr double VolumeLevels[] = RCN_VOLUME_LEVELS;

/// How far raters' volumes were from the predicted ones on cases that a model was not trained on.
struct VolumeScores
{
  std::vector<std::string> Cases;          ///< ids
  std::vector<int> Units;                  ///< by case: those of one patient have the same number
  std::vector<std::vector<double>> Scores; ///< by case: rcn_volume_score() of each rater whose volume is known
  /// Those of each of several, by name; there are none beside them then.
  std::map<std::string, std::shared_ptr<const VolumeScores>> Structures;

  /// Those of one of several structures, null where there are none of it; of one structure they are these, whatever its name.
  const VolumeScores* Of(const std::string& structure) const;
  /// Patients, where cases share them, otherwise cases: so many are behind an interval. Of several structures the most.
  int UnitCount() const;
  bool OfPatients() const;
  /// "24 validation cases", "12 validation patients"
  std::string CountInWords(int count) const;
  /// The quantile for rcn_volume_interval(); infinite where the cases are too few.
  double Quantile(rcn_context* context, double level) const;
  bool Has(const std::string& id) const;
};

/// {"cases": [ids], "patients": [numbers], "scores": [[...], ...]}, of several structures {"NAME": that, ...}; and back. Throws
/// Error (RCN_EFORMAT) that begins with `about`.
json_t* VolumeScoresJson(const VolumeScores& scores);
VolumeScores ParseVolumeScores(const json_t* object, const std::string& about);

/// VolumeScores::Of() of what may be null.
std::shared_ptr<const VolumeScores> ScoresOf(const std::shared_ptr<const VolumeScores>& all, const std::string& structure);

/// Headings and cells of text, for pages, windows and terminals alike.
struct VolumeTable
{
  std::vector<std::string> Headings;
  std::vector<std::vector<std::string>> Rows;
};

struct PredictedInterval
{
  double Level = 0;             ///< 0.8, 0.95
  double Low = NAN, High = NAN; ///< NaN: there is none
  bool IsKnown() const { return std::isfinite(this->High); }
};

/// A connected part of the map that any rater marks more likely than not.
struct PredictedComponent
{
  int64_t Voxels = 0;
  double Expected = 0; ///< its part of the expected volume
  double Highest = 0;  ///< the highest expected share of raters in it
  int AtLeast = 0;     ///< the most raters that mark one of its voxels more likely than not
  bool Majority = false;
  int64_t At[3] = { 0, 0, 0 }; ///< the voxel with the highest share
  double Ras[3] = { 0, 0, 0 }; ///< where that is, in mm; of an image without spacing the voxel
  std::string Reaches() const { return this->Majority ? "majority" : "any rater"; }
};

struct PredictedVolumes
{
  std::string Name;    ///< "Volume", "Area"
  std::string Unit;    ///< "mL", "mm²", "pixels", "voxels"; empty: there are no volumes here
  double PerVoxel = 1; ///< in that unit
  int Raters = 0;
  bool Binomial = false;                    ///< the map is one probability, read as if raters marked independently with it
  double Expected = NAN;                    ///< what a rater marks on average
  std::vector<double> AtLeast;              ///< [t - 1]: what the t-th most generous of the raters marks
  std::vector<PredictedInterval> Intervals; ///< one for each of VolumeLevels
  int Cases = 0;                            ///< validation cases (or patients) behind them
  bool OfPatients = false;                  ///< they are patients, some of whom have several cases
  std::vector<PredictedComponent> Components;
  std::string Remark; ///< which interval is missing, and why; empty where none is

  bool IsKnown() const { return !this->Unit.empty(); }
  /// For a person: the volume and the first interval that there is.
  std::string Sentence() const;
  /// The same in other units; those of pictures without spacing stay.
  PredictedVolumes In(const Units& units) const;
  /// A volume with as many digits as the expected one has, without the unit.
  std::string Text(double volume) const;
  /// "15.2 mL"
  std::string TextWithUnit(double volume) const;
  /// One row for the expected volume, each interval and each t.
  VolumeTable Table() const;
  /// At most `most` of the components.
  VolumeTable ComponentTable(size_t most) const;
};

/// ASCII, for keys and columns that programs read: "mm2".
std::string PlainUnit(const std::string& unit);

/// The volumes of a map with one probability or raters + 1 levels per voxel; `scores`: those that belong to the map, null:
/// none are known. Throws Error; `about` names the map.
PredictedVolumes PredictVolumes(
  rcn_context* context, const Volume& map, int raters, const VolumeScores* scores, const std::string& about);

/// What volumes need of levels that were not kept: rcn_volume_add_slab().
struct LevelSums
{
  rcn_volume_sums Sums{};
  Volume Share;  ///< float32
  Volume Likely; ///< uint8
};

/// The same of these.
PredictedVolumes PredictVolumes(
  rcn_context* context, const LevelSums& sums, const VolumeScores* scores, const std::string& about);

/// Keys unit, expected, at_least, levels, intervals, interval_cases, sentence, remark, components.
json_t* VolumesJson(const PredictedVolumes& volumes);

/// Rows for a spreadsheet: one for the map and one for each component, in columns that are the same for all cases of so many
/// raters.
/// `structure`: of several; null: there is no such column.
std::string VolumesCsvHeading(int raters, bool structures = false);
std::string VolumesCsv(const std::string& id, const PredictedVolumes& volumes, const std::string* structure = nullptr);

// ---- judging ---------------------------------------------------------------------------------------

/// The volumes of a case against its raters'.
struct JudgedVolumes
{
  std::string Unit; ///< as above; empty: the map has no volume, because it is not a probability everywhere
  rcn_volume_row Row{ NAN, NAN, NAN, NAN, { NAN, NAN } };
  std::vector<double> Scores; ///< of the raters whose volume is known
};

/// Judges a map everywhere, also where the region that is judged otherwise does not reach. `quantiles`: one for each of
/// VolumeLevels, infinite where there is none. A map that cannot be measured has no volumes.
JudgedVolumes JudgeVolumes(rcn_context* context, const Volume& map, const rcn_votes* votes, const double* quantiles);

/// One case as a record that another process reads.
json_t* JudgedVolumesJson(const JudgedVolumes& volumes);
JudgedVolumes JudgedVolumesFrom(const json_t* record);

/// A figure as people read it.
struct VolumeFigure
{
  std::string Name; ///< with its unit
  double Value;     ///< NaN: not defined
  std::string Text;
  std::string Interval; ///< 95 %, over patients; "–": there is none
  const char* Meaning;
};

/// The figures of volumes that are means over cases, and so have intervals and can be compared.
enum VolumeMean
{
  MeanCrps,
  MeanCurvas,
  MeanBias,
  MeanCoverage80,
  MeanCoverage95,
  VolumeMeans
};

/// All cases together.
struct VolumeReport
{
  std::string Unit; ///< empty: no case has volumes, or their units differ, and then only coverage is known
  rcn_volume_figures Figures{ 0, NAN, NAN, { NAN, NAN }, { 0, 0 }, NAN, NAN, NAN, NAN, 0 };
  rcn_interval Intervals[VolumeMeans] = {}; ///< 95 %, over patients; without units there is none
  int ScoreCases = 0;                       ///< validation cases (or patients) behind the intervals
  std::string Remark;                       ///< why there is no coverage, and what else a reader has to know; may be empty

  /// All of them, in the order in which they are shown.
  std::vector<VolumeFigure> Shown() const;
};

/// One model minus another on the same cases.
struct VolumeDifference
{
  std::string Key, Name; ///< for files, and with its unit for people
  rcn_interval Difference;
  std::string Text, Interval;
};

/// The mean over trainings that were judged on the same cases; of several there are no intervals.
VolumeReport MeanOverTrainings(const std::vector<VolumeReport>& trainings);

/// `known`: what was stored for intervals; null: nothing. `calibrated`: how many of the cases are among those behind it, and
/// so do not count for coverage. `patients`: a number by case, the same for those that are no independent evidence.
VolumeReport SummarizeVolumes(const std::vector<JudgedVolumes>& cases, const std::vector<int>& patients, rcn_context* context,
  const VolumeScores* known, size_t calibrated);

/// The differences that are defined, case by case: `first` minus `second`.
std::vector<VolumeDifference> CompareVolumes(const std::vector<JudgedVolumes>& first, const std::vector<JudgedVolumes>& second,
  const std::vector<int>& patients, rcn_context* context);

/// Keys unit, cases, curvas_cases, crps, curvas_crps, bias, ci, deviation, limits_of_agreement, coverage, interval_cases,
/// remark.
json_t* VolumeReportJson(const VolumeReport& report);

} // namespace rcn

#endif
