// SPDX-License-Identifier: Apache-2.0
/// The parts of the report, private to rcnReport*.cxx: what is measured, who judges the models, and who writes which section
/// of the page. rcnReportPage.cxx puts them together.
#ifndef rcnReportParts_h
#define rcnReportParts_h

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rcn/rcn.h"
#include "rcnAgreementFigures.h"
#include "rcnAgreementSet.h"
#include "rcnJudge.h"
#include "rcnReport.h"
#include "rcnReportPage.h"
#include "rcnSliceFigure.h"
#ifdef RCN_HAVE_NETWORKS
#include "rcnModelRecord.h"
#include "rcnPrediction.h"
#endif

namespace rcn
{
namespace report
{

/// More raters than this make tables and matrices that nobody reads number by number.
constexpr size_t MostRatersInPairs = 12;

/// Every model is judged in these; the first is where a reader looks first.
constexpr rcn_region JudgedRegions[] = { RCN_REGION_BOX, RCN_REGION_BAND, RCN_REGION_DISPUTED };
constexpr size_t RegionCount = 3;

/// Throws Error (RCN_EINVALID) unless the page (.html) and its slides can be written; either may be empty, not both.
void CheckReportFiles(const std::string& page, const std::vector<std::string>& slides);

/// With three significant digits or so.
inline std::string SmallPercent(double share)
{
  return PercentText(share, std::fabs(share) < 0.01 ? 2 : 1);
}

// ---- what is measured ------------------------------------------------------------------------------

/// The mean, and over several cases the range below it.
inline PageCell CellOf(const Spread& spread, int digits)
{
  PageCell cell(spread.Mean(), digits);
  if (spread.Count() > 1)
  {
    cell.Small = FromTo(spread.Low(), spread.High(), digits);
  }
  return cell;
}

/// The mean, and below it its 95 % interval, where there is one, and its number of cases, where these are not all `cases`.
inline PageCell CellOf(const SetFigure* figure, size_t cases)
{
  PageCell cell(figure ? figure->Mean.value : NAN, figure ? figure->Digits : 0);
  if (figure)
  {
    const std::string interval = std::isfinite(figure->Mean.low) ? figure->IntervalText() : "",
                      count = figure->CountText(cases);
    cell.Small = interval + (interval.empty() || count.empty() ? "" : "; ") + count;
  }
  return cell;
}

/// What is remembered of a case after its voxels are gone.
struct CaseSummary
{
  Case One;
  std::string Name; ///< as it is shown
  int Raters = 0;
  double MeanDice, Kappa, UnionKappa, DisputedShare, Union;
};

/// The raters' agreement over all cases.
struct AgreementSums
{
  struct Rater
  {
    size_t Cases = 0;
    Spread Extent;
    std::vector<Spread> Figures; ///< as RaterFigures()
  };
  using Pair = std::vector<Spread>; ///< as PairFigures()

  std::vector<Rater> Raters;
  std::vector<Pair> Pairs; ///< raters * raters
  Spread MeanDice, DisputedShare;
  std::vector<Spread> Whole, OnUnion;        ///< as OverallFigures()
  std::vector<Spread> Parts;                 ///< as AgreementParts(): extents
  std::map<int, std::vector<Spread>> Levels; ///< by how many raters answered: extent of levels 1 ... K
  std::string Heading, Unit, Length;         ///< "Volume (mL)", " mL", "mm"
  bool MixedExtents = false, MixedLengths = false;

  void Add(const rcn_agreement& figures, const Extent& extent);
  double Dice(size_t a, size_t b) const { return this->Pairs[a * this->Raters.size() + b].front().Mean(); }
  double Kappa() const { return this->Whole[0].Mean(); }
  double Alpha() const { return this->Whole[1].Mean(); }
};

/// What the sections about one structure are written from.
struct ReportData
{
  explicit ReportData(const ReportOptions& options) : Options(options) {}

  std::string ExtentText(double extent) const
  {
    return Fixed(extent, extent >= 1000 ? 0 : extent >= 10 ? 1 : 3) + this->Sums.Unit;
  }

  /// Of a section about this structure; there is one of each for every structure.
  std::string SectionId(const std::string& section) const
  {
    return this->Number ? section + std::to_string(this->Number) : section;
  }
  std::string SectionHeading(const std::string& heading) const
  {
    return this->Structure.empty() ? heading : this->Structure + ": " + heading;
  }

  const ReportOptions& Options;
  int Number = 0;                  ///< of the structure, from 1; 0: there is one
  std::string Structure;           ///< its name, of several
  std::vector<std::string> Raters; ///< their names as they are shown
  std::vector<CaseSummary> Cases;
  AgreementSums Sums;
  std::unique_ptr<AgreementSet> Set; ///< of a list
  AgreementSummary All, Marked;      ///< of the set: all cases, and those where anybody marked anything
  AgreementReport Single;            ///< of the only case
  std::string SingleText;
};

// ---- models: reading and judging (rcnReportJudge.cxx) ----------------------------------------------

/// One line of the table of models: a model, a readout, and how it is corrected.
struct JudgedSeries
{
  size_t Model;
  std::string Name;
  rcn_readout Readout = RCN_READOUT_MAJORITY;
  int AtLeast = 0;
  const Recalibration* Correction = nullptr;
  int Before = -1;                       ///< the same without the correction: its number
  std::vector<const Evaluation*> Judges; ///< by region; they belong to the ModelJudge
  std::vector<EvaluationReport> Reports; ///< by region, where there is one
  bool HasReport[3] = { false, false, false };
};

/// The models of a report: gets their predictions and judges them case by case, all structures at once.
class ModelJudge
{
public:
  ModelJudge(const ReportOptions& options, Workspace& workspace, std::set<std::string>& files)
    : Options_(options), Workspace_(workspace), Files_(files)
  {
  }

  /// `structures`: of the cases; none or one: models are judged on what is marked. `parts`: the numbers of those that are
  /// reported, or 0 for the only one.
  void ReadModels(const std::vector<Structure>& structures, const std::vector<int>& parts);
  /// The prediction for the workspace's case, without a correction.
  CasePrediction PredictionOf(size_t model, const Case& one);
  /// What it says about the structure that is selected in the workspace: levels or one probability.
  Volume MapOf(const CasePrediction& prediction) const;
  /// The readout and the rule for ties, as evaluate chooses them.
  EvaluationOptions ReadoutFor(size_t model, const std::string& asked) const;
  /// For intervals of the volumes of MapOf(); null: not known.
  std::shared_ptr<const VolumeScores> ScoresOfVolumes(size_t model) const;
  bool PredictsLevels(size_t model) const { return this->PredictsLevels_[model]; }
  /// The workspace's case, for all models or, where this throws, for none.
  void JudgeCase(const Case& one);
  /// After the last case: makes the reports; `show` is called before each.
  void Finish(const std::function<void(const std::string& stage)>& show);

  /// Of a structure, by ReportData::Number.
  const std::vector<JudgedSeries>& Series(int structure) const { return this->Series_.at(structure); }
  /// The series that a reader should look at first: the one with the smallest error around the marks. May be null.
  const JudgedSeries* Best(int structure) const;
#ifdef RCN_HAVE_NETWORKS
  /// By model; null where only predictions are known.
  const std::vector<std::unique_ptr<Model>>& Models() const { return this->Models_; }
#endif

private:
  bool IsOneProbability(const CasePrediction& prediction, const std::string& name) const;
  std::vector<JudgedSeries> MakeSeries(size_t model, bool oneComponent, size_t first) const;
  EvaluationOptions TaskOptions(const JudgedSeries& series) const;
  void StartJudges(const std::vector<CasePrediction>& predictions);
  std::string NameOf(int structure) const; ///< empty: the only one

  const ReportOptions& Options_;
  Workspace& Workspace_;
  std::set<std::string>& Files_;
  std::vector<Structure> Structures_;                       // of the cases; empty: there is one
  std::map<int, std::vector<JudgedSeries>> Series_;         // by number of the structure
  std::unique_ptr<Judging> Judging_;                        // all series on all regions; null before the first case
  std::vector<CasePrediction> Only_;                        // of the only case, by model; empty where there are several
  std::vector<bool> PredictsLevels_;                        // by model, known from the first case that all of them predict
  std::vector<std::unique_ptr<Recalibration>> Corrections_; // by model
  std::vector<PredictionSource> Sources_;                   // by model; without Read where the model predicts
  std::vector<std::shared_ptr<const PredictionRun>> Runs_;  // by model; null: not known how predictions were made
#ifdef RCN_HAVE_NETWORKS
  std::vector<std::unique_ptr<Model>> Models_; // by model; null where there is none
#endif
};

// ---- pictures (rcnReportPictures.cxx) --------------------------------------------------------------

/// Panels of one slice: the image below them is in the page once.
class SlicePanels
{
public:
  /// `id` names the case for those who cannot see the pictures; it may be empty.
  SlicePanels(Page& page, const SliceFigure& view, const rcn_geometry& geometry, int64_t slice, const std::string& id);
  /// `raters`: their names as they are shown; null: their own.
  SlicePanels(Page& page, const Workspace& workspace, int64_t slice, const std::string& id,
    const std::vector<std::string>* raters = nullptr);

  Figure Begin(const std::string& title, const std::string& words) const;
  PagePanel Levels() const;
  PagePanel Probability(const std::string& name, const std::string& words, const std::vector<float>& map) const;

  const SliceFigure View;
  const Place All = { 0, 0, 320 };

private:
  std::string Where_, Base_;
};

// ---- sections --------------------------------------------------------------------------------------

/// rcnReportAgreement.cxx
void WriteAgreement(Page& page, const ReportData& data);
/// rcnReportModels.cxx
void WriteModels(Page& page, const ReportData& data, const ModelJudge& judge);
/// rcnReportPictures.cxx; the workspace holds the case. `raters`: their names as they are shown.
void WriteCasePictures(Page& page, const Workspace& workspace, const CaseSummary& summary,
  const std::vector<std::string>& raters, ModelJudge& judge, const ReportOptions& options);

} // namespace report
} // namespace rcn

#endif
