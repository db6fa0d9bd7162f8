// SPDX-License-Identifier: Apache-2.0
/// The page for an image that nobody outlined: what a model expects raters to mark, how much that is, where the model is
/// unsure, and its own record (rcnModelRecord.h), on two printed pages at most. Every shell writes it with WritePatientPage().
///
/// For an image with raters, and for many cases, there is the report (rcnReportPage.h).
#ifndef rcnReportPatient_h
#define rcnReportPatient_h

#include <functional>
#include <string>
#include <vector>

#include "rcnWorkspace.h"

namespace rcn
{

struct PatientPageOptions
{
  std::string Output;              ///< .html; empty: only the slides
  std::vector<std::string> Slides; ///< pictures of 1920 x 1080 (rcnSlide.h), .svg or .png
  std::string Title;               ///< empty: made of the case's name
  Case One;                        ///< its images, in files or in memory
  std::string Model;               ///< file
  std::string Structure;           ///< of several: the one that the pictures are about; empty: the first
  std::string Readout;             ///< of the map that is shown; empty: the model's own
  bool Anonymous = false;          ///< without paths and names of files, cases and raters
  size_t Slices = 2;               ///< so many are shown
  WorkspaceOptions Workspace;
  std::string Command; ///< as typed, for the last line; left out of an anonymous page

  /// How far it is; true: stop, and nothing is written.
  std::function<bool(double fraction, const std::string& stage)> Progress;
  std::function<void(const std::string&)> Remark;
};

/// Predicts and writes. Throws Error; old files stay then.
void WritePatientPage(const PatientPageOptions& options);

} // namespace rcn

#endif
