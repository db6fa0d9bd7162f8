// SPDX-License-Identifier: Apache-2.0
/// The paper's comparison on anyone's data: every strategy trained under one protocol and judged on the same untouched
/// test cases.
///
/// A study lives in a folder and can be stopped at any moment; run again, it goes on where it was:
///   study.json              the protocol; another one is refused there
///   models/NAME.safetensors with its log and checkpoint; NAME.json: it is finished
///   predictions/NAME/       levels of the test cases; of several structures their shares
///   table.md, table.json, report.html
/// NAME is the strategy, from the second seed on with "-seed1", ...
#ifndef rcnStudy_h
#define rcnStudy_h

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rcnPrediction.h"
#include "rcnTraining.h"

namespace rcn
{

struct StudyOptions
{
  std::string Data;      ///< the data list's file: training, validation and test cases
  std::string Structure; ///< one of several, studied as if it were the only one; empty: all
  std::string Folder;
  std::vector<std::string> Strategies;        ///< empty: the paper's eight; of several structures the four that there are
  int Seeds = 1;                              ///< each strategy is trained so often
  TrainingOptions Training;                   ///< what all have in common; strategy, files, seed and listeners are set here
  EvaluationOptions Judge;                    ///< bins, margin, band, reference, seed of the bootstrap
  PredictionOptions Prediction;               ///< tiles and flips
  std::map<std::string, std::string> Choices; ///< what a person chose, by name; kept in study.json, and refused when changed

  std::string Command; ///< what was typed, for "How this was made"; empty: left out

  /// How far the whole study is; true: stop, to go on later.
  std::function<bool(double fraction, const std::string& stage)> Progress;
  std::function<void(const std::string&)> Remark;
  std::function<void(const std::string&)> Warn; ///< a case was left out; empty: Remark
};

/// A column of the table. Judging, Markdown, JSON, the page and the terminal go by this one list.
struct StudyColumn
{
  const char* Name;
  rcn_region Region;
  rcn_figure Figure;
  bool Percent;        ///< shown times 100
  const char* InShort; ///< what the best of it is the best in, for the summary of the page; null: not there

  std::string Key() const; ///< in table.json, inside the region's
  double ValueOf(const EvaluationReport& report) const;
  std::string Text(double value) const; ///< as it is shown; "–" where it is not defined
};
const std::vector<StudyColumn>& StudyColumns();

/// One value of the table.
struct StudyCell
{
  double Value = 0;                   ///< mean over seeds
  double Low = NAN, High = NAN;       ///< 95 % interval over patients and seeds; NaN where there is none
  double PaperMean = 0, PaperStd = 0; ///< ten draws of 60 % of the cases, mean over seeds
  double SeedLow = 0, SeedHigh = 0;   ///< smallest and largest of the seeds
  bool Best = false;                  ///< of its column; never where raters disagree
  bool Tie = false;                   ///< not significantly different from the best (rcnRanking.h)
};

/// A strategy with one of its readouts.
struct StudyRow
{
  std::string Strategy;
  std::string Readout;          ///< empty: the strategy gives one probability, which is every readout
  std::vector<StudyCell> Cells; ///< as StudyColumns()
  EvaluationReport Box;         ///< of the first seed, for the reliability diagram
  VolumeReport Volumes;         ///< of whole images, mean over seeds; the same for all readouts

  std::string Name() const { return this->Strategy + (this->Readout.empty() ? "" : " (" + this->Readout + ")"); }
};

/// The figures of volumes, by strategy.
std::vector<std::pair<std::string, std::vector<VolumeFigure>>> StudyVolumes(const std::vector<StudyRow>& rows);

/// The rows of one of several structures.
struct StudyStructure
{
  std::string Name;
  std::vector<StudyRow> Rows;
};

struct StudyResult
{
  std::vector<StudyRow> Rows;             ///< of several structures the means over them, without intervals and volumes
  std::vector<StudyStructure> Structures; ///< each of several; empty: there is one
  std::string Markdown, Html, Json;       ///< files written
};

/// Trains, predicts, judges and writes the tables; throws Error. RCN_ECANCELLED: stopped, and says how to go on.
StudyResult RunStudy(const StudyOptions& options);

/// The files that a study writes, but for the logs of its trainings.
std::vector<std::string> StudyFiles(const StudyOptions& options, const DataList& list);

} // namespace rcn

#endif
