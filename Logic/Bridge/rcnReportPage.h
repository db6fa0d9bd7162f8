// SPDX-License-Identifier: Apache-2.0
/// The report: one page (rcnPage.h) about how far raters agree, where they do not, and whether models' probabilities mean
/// what they say. Every shell writes it with WriteReport().
#ifndef rcnReportPage_h
#define rcnReportPage_h

#include <functional>
#include <string>
#include <vector>

#include "rcnEvaluation.h"
#include "rcnPage.h"

namespace rcn
{

/// A model to judge: its predictions, or the model itself, which then predicts.
struct ReportModel
{
  std::string Name;
  std::string Predictions;   ///< one case: the file; a list: the folder (PredictionFolder). Empty: `Model` predicts
  std::string Model;         ///< the model's file; beside predictions, for what it says about itself. May be empty
  std::string Recalibration; ///< a correction's file, judged with and without. Empty: a predicting model's own, if any
};

struct ReportOptions
{
  std::string Output;              ///< .html; may be empty where there are Slides
  std::vector<std::string> Slides; ///< one case: pictures of 1920 x 1080 (rcnSlide.h), .svg or .png, with the first model
  std::string Title;               ///< empty: made of the data's name
  std::string Data;                ///< a data list's file, and ...
  std::string Split;               ///< ... which of its cases; empty: all
  const DataList* List = nullptr;  ///< the list, already read; then Data is only its name
  Case One;                        ///< without a list: this case
  std::string Structure;           ///< of several: the only one that is reported; empty: all
  std::vector<ReportModel> Models;
  std::string Readout; ///< of level maps; empty: majority and expected, and the one they were made with
  size_t Pictures = 3; ///< so many cases are shown, the most disputed first
  size_t Slices = 2;   ///< so many slices of each
  WorkspaceOptions Workspace;
  EvaluationOptions Judge; ///< bins, margin, band, reference, scale, seed; region and readout are set here
  std::string Command;     ///< as typed, for the last section
  bool Anonymous = false;  ///< without paths and names of files, cases and raters: "Case 3", "Rater 2"

  /// How far it is; true: stop, and nothing is written.
  std::function<bool(double fraction, const std::string& stage)> Progress;
  std::function<void(const std::string&)> Remark;
  std::function<void(const std::string&)> Warn; ///< a case was left out; empty: Remark
};

struct ReportResult
{
  size_t Cases = 0;
  size_t LeftOut = 0; ///< cases that could not be used; each was told by Warn and is named in the report
};

/// How often each number of raters is expected, and occurs.
PageTable LevelShareTable(const EvaluationReport& report, const std::string& caption);

/// Pictures side by side for a page: the image, what raters say, and what each prediction says (levels: the expected share
/// of raters), on the slice through the largest disputed region of the workspace's case.
void AddComparison(Page& page, const Workspace& workspace, const std::string& id,
  const std::vector<std::pair<std::string, Volume>>& predictions);

/// Reads case after case (twice those that are shown), in the memory of one of them and some 20 KB for each case, model,
/// readout and region. Throws Error; the old file stays then.
ReportResult WriteReport(const ReportOptions& options);

} // namespace rcn

#endif
