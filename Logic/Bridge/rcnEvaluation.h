// SPDX-License-Identifier: Apache-2.0
/// Judging predictions against raters: cases in, calibration figures with intervals out; and the
/// correction (recalibration) fitted from the same pass.
#ifndef rcnEvaluation_h
#define rcnEvaluation_h

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rcn/rcn_auc.h"
#include "rcn/rcn_bootstrap.h"
#include "rcn/rcn_calib.h"
#include "rcn/rcn_interval.h"
#include "rcn/rcn_recalib.h"
#include "rcn/rcn_region.h"
#include "rcnFigure.h"
#include "rcnJson.h"
#include "rcnNames.h"
#include "rcnProcesses.h"
#include "rcnVolumes.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// A recalibration with what it was fitted on, as stored in its JSON file.
struct Recalibration
{
  std::string Path; ///< the file it was read from; empty for one that was just fitted
  rcn_recalib Correction{};
  rcn_readout Readout = RCN_READOUT_MAJORITY; ///< of level maps: what it was fitted to
  int AtLeast = 0;
  bool OneProbability = false; ///< the model gives one probability, which every readout of its levels is
  bool HasRegion = false;      ///< false: the file does not say where it was fitted
  rcn_region_options Region = RCN_REGION_OPTIONS_INIT;
  std::string RegionMask;                      ///< a mask's file instead
  std::vector<std::string> Cases;              ///< ids of the cases
  std::vector<std::string> Fingerprints;       ///< of their predictions, so that renaming does not hide them; empty for
                                               ///< constant ones, which tell nothing
  std::shared_ptr<const VolumeScores> Volumes; ///< of these cases, each corrected by a fit to the others; null: not known
};

/// Reads and checks a recalibration file, or writes one; throws Error with the file's name.
Recalibration ReadRecalibration(const std::string& path);
void WriteRecalibration(const std::string& path, const Recalibration& recalibration);

/// The same as text, for a file that holds more; `path` names it in the Error (RCN_EFORMAT).
Recalibration ParseRecalibration(const std::string& text, const std::string& path);
std::string RecalibrationText(const Recalibration& recalibration);

/// A prediction with a correction applied: levels where the correction is for levels, otherwise one probability, for which
/// levels are read out first: by the readout that the correction was fitted to, or by any where the model gives one
/// probability. Throws Error when the correction is for something else; `file` names the prediction.
Volume ApplyRecalibration(rcn_context* context, const Recalibration& correction, const Volume& prediction, rcn_readout readout,
  int atLeast, const std::string& file);

/// A hash of the core (rcn_hash.h) as sixteen digits, for files: the same numbers under another name are found again.
std::string HashText(uint64_t hash);

/// Where predictions are judged and corrections fitted unless somebody says otherwise: around all marks. Background, which
/// fills most of an image, would decide everything else.
rcn_region_options UsualRegion();

struct EvaluationOptions
{
  rcn_calib_options Calib = RCN_CALIB_OPTIONS_INIT;
  rcn_region_options Region = UsualRegion();
  std::string RegionMask; ///< a mask file instead of Region, for one case
  rcn_binning Binning = RCN_BINS_WIDTH;
  std::string Reference = "majority";        ///< or "staple", or a rater's name
  bool TieBackground = false;                ///< the majority of the reference: a tie is background
  double Tolerance = RCN_GEOMETRY_TOLERANCE; ///< in voxels, between prediction and masks
  double Scale = 0;                          ///< for ReadPrediction()
  uint64_t Seed = 0;
  const Recalibration* Correction = nullptr;            ///< applied before judging
  std::map<std::string, Recalibration> CaseCorrections; ///< the same by case, instead; a case without one stays as it is
  bool AllowFittedCases = false;                        ///< judge a correction on the cases it was fitted to
  bool ExactAuc = true; ///< false: from a histogram (rcn_calib.h), in memory that does not grow with the cases
  /// Beyond so many voxels of all cases the histogram is taken as well: the exact area keeps four bytes of each.
  int64_t ExactAucVoxels = INT64_C(1) << 27;
  bool CaseAuc = false;                        ///< also the exact area of each case, for CaseRows()
  bool FitTemperature = false;                 ///< also collect what temperature on levels needs
  std::shared_ptr<const VolumeScores> Volumes; ///< for intervals of volumes, where Correction has none; null: not known
  std::string Structure;                       ///< which of several this is, for what is known of its volumes
  /// False: one sum of all cases, in memory that does not grow with them, for Figures() and Auc() alone: no intervals, no fit.
  bool PerCase = true;
};

/// The readout that judges: the one that was asked for, otherwise the one that the maps were made with, otherwise (both
/// empty) the expected share of raters. `tieBackground`: how the model that made them takes a tie; "majority" means that.
/// Throws Error (RCN_EINVALID) when it is no readout.
void ChooseReadout(EvaluationOptions& options, const std::string& asked, const std::string& made, bool tieBackground);

/// One that is still to be fitted: with the readout and the region of the options.
Recalibration RecalibrationFor(const EvaluationOptions& options);

/// What to say when a correction is judged elsewhere, or by another readout, than it was fitted; empty: nothing.
std::string FittedElsewhere(const Recalibration& correction, const EvaluationOptions& options);

/// "box (20 voxels around the marks)"
std::string RegionInWords(const rcn_region_options& region, const std::string& mask);

/// The prediction of a case: 1 component (probability) or K + 1 (levels), float32. Whole numbers are divided by `scale`, the
/// stored number that means 1. 0: by what the file says (Volume::Scale()); where it says nothing, only 0 and 1 are taken.
Volume ReadPrediction(const std::string& path, double scale = 0);

/// What identifies a prediction under another name (FNV-1a of its values); empty for a constant one: a model that sees nothing
/// in two cases has seen two cases.
std::string FingerprintOf(const Volume& prediction);

/// Throws Error (RCN_EDATA) unless it has one value per voxel, or a level for each number of raters; `file` names it.
void CheckLevelCount(const Volume& prediction, int raters, const std::string& file);

/// The reliability diagram of one level: P(at least t raters mark the voxel) against how often so many do.
struct LevelDiagram
{
  int AtLeast = 0; ///< t = 1 ... K
  double Ece = 0;
  std::vector<rcn_calib_bin> Bins;       ///< of voxels
  std::vector<double> BandLow, BandHigh; ///< NaN where there is none
};

/// All that is known after the last case.
struct EvaluationReport
{
  size_t Cases = 0;
  size_t Patients = 0; ///< as many as cases where the list names none
  size_t Nameless = 0; ///< cases that name none, where others do
  std::vector<std::string>
    EmptyCases; ///< the reference marks nothing there and nothing is predicted, or it is missing: they have no Dice
  std::vector<std::string> CircularCases; ///< their maps were made of the very raters who judge them
  bool FittedHere = false;                ///< the correction that made the map was fitted to the very case that is judged
  bool EachLeftOut = false; ///< but for AUC and Dice, each case was corrected by a fit to the others (rcnRecalibration.h)
  int64_t Voxels = 0, Pairs = 0;
  double Figures[RCN_FIGURES];
  rcn_auc_result Auc;
  bool AucFromHistogram = false; ///< although the exact one was asked for: there are too many voxels
  std::vector<rcn_calib_bin> Bins;
  std::vector<double> BandLow, BandHigh; ///< NaN where there is none
  std::vector<double> RaterEce, RaterBrier;
  std::vector<std::vector<rcn_calib_bin>> RaterBins; ///< each rater's own, of equal width
  rcn_brier Brier;
  rcn_kde Kde{ NAN, NAN }; ///< MR-ECE without bins
  rcn_level_source LevelSource = RCN_LEVELS_NONE;
  int64_t LevelVoxels = -1;                          ///< those that all raters answered, of which levels are known; -1: nobody
                                                     ///< has counted them, as in a report read back from tables
  int64_t LevelCases = 0;                            ///< with such voxels
  std::vector<LevelDiagram> Levels;                  ///< by t; none where no voxel was answered by all raters
  std::vector<rcn_level_share> Shares, UnsureShares; ///< by level: everywhere, and where the prediction is unsure
  double MassEce, MassMce, MassAce;                  ///< over all pairs, from Bins of equal mass; NaN with equal width
  rcn_interval Interval[RCN_FIGURES];                ///< 95 %, over patients
  rcn_spread Paper[RCN_FIGURES];                     ///< mean and deviation of 10 draws of 60 %
  VolumeReport Volumes;                              ///< of whole images, whatever the region
};

/// What is found about one of several structures.
struct StructureReport
{
  std::string Name;
  EvaluationReport Report; ///< of no cases where its region is empty in all of them
};

/// Their mean, structures counted equally, each figure over those that have it: the AUC is the macro AUC. Bins hold the votes
/// of all of them. There are no intervals and no volumes.
EvaluationReport MeanOverStructures(const std::vector<StructureReport>& structures);

/// A case as an Evaluation takes it. Judging (rcnJudge.h) fills it and shares between evaluations what several of them need.
struct JudgedCase
{
  std::string Id;      ///< empty: it has none, and its prediction's file stands for it
  std::string Patient; ///< cases of one patient are no independent evidence; empty: a patient of its own
  std::string Split;   ///< empty: not known
  size_t Number = 0;   ///< its place among all cases, where several processes judge them
  std::string File;    ///< names the prediction in sentences
  const rcn_votes* Votes = nullptr;
  Volume Prediction; ///< as it was made
  Volume Map;        ///< what is judged: corrected or read out where the options ask for it
  Volume Whole;      ///< the same also outside the region, for volumes; empty where it is no probability there
  std::string Fingerprint;
  bool Levels = false;                                ///< the prediction is a level map
  bool Ends = true;                                   ///< and only its ends have a probability (rcn_levels_are_ends())
  std::shared_ptr<const std::vector<uint8_t>> Region; ///< by voxel; null: everywhere

  std::string Name() const { return this->Id.empty() ? this->File : this->Id; }
};

/// One case by itself.
struct EvaluatedCase
{
  std::string Id, Patient, Split; ///< the latter may be empty
  int64_t Voxels = 0, Pairs = 0;
  std::vector<double> Figures; ///< RCN_FIGURES of them
  rcn_auc_result Auc{ NAN, NAN, 0, 0, 0, 0 };
  JudgedVolumes Volumes; ///< of the whole image
};

/// Collects cases one by one, for Judging and JudgeCases() (rcnJudge.h), which make and fill it; reads each voxel once.
class Evaluation
{
public:
  Evaluation(rcn_context* context, const std::vector<std::string>& raters, const EvaluationOptions& options);
  ~Evaluation();

  /// After the last case, in all processes: each knows then what one process with all cases would know, to the same bits;
  /// only probabilities of voxels stay where they are, and all processes have to ask for Report() together.
  void Share(Processes& processes);

  const EvaluationOptions& Options() const { return this->Options_; }

  /// The figures of all cases together (rcn_calib_figures()), without intervals; NaN without a case.
  std::vector<double> Figures() const;
  /// The share of voxels that all raters answered, of which levels are known.
  double LevelShare() const;
  /// The area under the curve; from a histogram unless EvaluationOptions::ExactAuc.
  rcn_auc_result Auc() const;

  /// Everything, with intervals. Throws Error (RCN_EDATA) without a case. Needs EvaluationOptions::PerCase.
  EvaluationReport Report() const;

  /// The figures of one case alone, in the order in which they were added.
  std::vector<double> CaseFigures(size_t number) const;

  /// How far the volumes of all cases are from their raters', for intervals on further cases.
  VolumeScores ScoresOfVolumes() const;

  /// All cases by themselves, in that order; their areas are known with EvaluationOptions::CaseAuc only.
  std::vector<EvaluatedCase> CaseRows() const;

  /// This model minus another, case by case: the same cases must have been added in the same order.
  std::vector<rcn_interval> Compare(const Evaluation& other) const;
  std::vector<VolumeDifference> CompareVolumes(const Evaluation& other) const;

  /// The mean of several trainings, judged on the same cases, with intervals over patients and trainings; `second` (may be
  /// empty, otherwise as many) is subtracted.
  static std::vector<rcn_interval> Together(
    const std::vector<const Evaluation*>& first, const std::vector<const Evaluation*>& second = {});

  /// Fits a correction to all cases added.
  Recalibration Fit(rcn_recalib_method method) const;

  /// By case: the correction that all other cases give, from their sums. A case without which nothing can be fitted has none.
  std::map<std::string, Recalibration> FitWithoutEach(rcn_recalib_method method) const;

  /// Whether the predictions were level maps.
  bool HasLevels() const { return this->Levels_; }
  /// Whether they were, and only their ends: a model that gives one probability.
  bool HasOneProbability() const { return this->Levels_ && this->Ends_; }
  const std::vector<std::string>& CaseIds() const { return this->Ids_; }
  rcn_context* Context() const { return this->Context_; }

private:
  friend class Judging;
  struct Handles;
  struct Prepared;
  /// Judges a case; nothing is added before Commit(), so that a case counts for all evaluations or for none.
  void Prepare(const JudgedCase& one);
  /// Adds the case that was prepared last; nothing if there is none.
  void Commit();
  /// Forgets it instead.
  void Discard();
  void RefuseFittedCase(const JudgedCase& one) const;
  rcn_auc_result AucOf(const double* figures, bool exact) const;
  bool HasExactAuc() const;
  const Recalibration* CorrectionOf(const std::string& id) const;
  Recalibration FitTo(rcn_recalib_method method, const rcn_calib* sums, const rcn_temperature* temperature) const;
  void ReportLevels(EvaluationReport& report, const rcn_calib* merged, const rcn_interval_options& intervals) const;
  const VolumeScores* KnownVolumes() const;

  rcn_context* Context_;
  std::vector<std::string> Raters_;
  EvaluationOptions Options_;
  std::unique_ptr<Handles> Handles_;
  std::unique_ptr<Prepared> Prepared_;
  std::vector<std::string> Ids_, Fingerprints_, Patients_, Splits_;
  std::vector<bool> Circular_;
  std::vector<JudgedVolumes> Volumes_;
  double Quantiles_[sizeof VolumeLevels / sizeof *VolumeLevels]; // of the intervals of volumes
  std::vector<rcn_auc_result> CaseAuc_;
  std::vector<size_t> Numbers_;
  rcn_comm* Comm_ = nullptr;
  bool Levels_ = false;
  bool Ends_ = true;
};

/// What is said about the numbers of raters: levels, level_voxels, level_cases, level_calibration (for each t), level_shares.
void SetLevels(JsonObject& object, const EvaluationReport& report);

/// Evaluation::ScoresOfVolumes() of each structure by its name (EvaluationOptions::Structure): `first`, `first + step`, ... Of
/// the only one where that has no name.
VolumeScores ScoresOfVolumes(const std::vector<std::unique_ptr<Evaluation>>& structures, size_t first = 0, size_t step = 1);

/// Keys as in the command line's contract: mr_ece, ece, ..., auc, auc_pairs, bins, ci, ...
json_t* EvaluationJson(
  const EvaluationReport& report, const EvaluationOptions& options, const std::vector<std::string>& raters);

/// The same for the mean of several structures, with those keys for each of them under "structures", by name.
json_t* EvaluationJson(
  const std::vector<StructureReport>& structures, const EvaluationOptions& options, const std::vector<std::string>& raters);

/// A figure as people read it.
struct FigureName
{
  rcn_figure Figure;
  const char* Name;
  const char* Meaning;
  bool Percent; ///< shown times 100
};

/// Those that are shown, in order; AUC, which has an exact value besides, is not among them.
const std::vector<FigureName>& FigureNames();

/// What intervals are over: "12 patients" where there are fewer of them than cases, otherwise "20 cases".
std::string UnitsInWords(const EvaluationReport& report);

/// Why there are no intervals: "one case: no interval", "fewer than 5 patients: no interval"; empty where there are.
std::string NoIntervalInWords(const EvaluationReport& report);

/// What a reader has to know beside the figures, one sentence each: cases without Dice, a map that is judged by the raters
/// it was made of, too few cases for intervals.
std::vector<std::string> RemarksInWords(const EvaluationReport& report);

/// "temperature 1.3 (the model was overconfident)"
std::string CorrectionInWords(const rcn_recalib& correction);

/// "Where the model predicts 70 %, 58 % of the raters mark the voxel.": the bin that costs most. Empty when none is off by a
/// percentage point.
std::string WorstBinInWords(const EvaluationReport& report);

/// Which way the model is off, in words: "Between 5 % and 95 %, its probabilities are too high."
std::string DirectionInWords(const EvaluationReport& report);

/// The reliability diagram: curve with band, the ideal line, the gap shaded, how many voxels, and words.
/// `before` (may be null) is drawn in gray behind it, and `second` in orange beside it, with both names. `about`: a line below
/// the title, such as region and readout; may be empty.
struct SecondModel
{
  const EvaluationReport* Report;
  std::string FirstName, Name;
};
Figure ReliabilityDiagram(const EvaluationReport& report, const std::string& title, const EvaluationReport* before = nullptr,
  const SecondModel* second = nullptr, const std::string& about = "");

/// "at least 2 of 5 raters", "all 5 raters"
std::string AtLeastInWords(int atLeast, int raters);

/// Small reliability diagrams side by side, one for each of EvaluationReport::Levels, which has some.
Figure LevelDiagrams(const EvaluationReport& report, const std::string& title);

} // namespace rcn

#endif
