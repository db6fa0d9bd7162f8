// SPDX-License-Identifier: Apache-2.0
/// The figures of raters' agreement: one list with their names, meanings, keys and digits. Whoever shows them (terminal,
/// page, JSON, CSV, table of a scene, widget) goes through it, so that all show the same figures under the same names.
#ifndef rcnAgreementFigures_h
#define rcnAgreementFigures_h

#include <string>
#include <vector>

#include "rcn/rcn_agreement.h"

namespace rcn
{

/// One figure of a record (rcn_rater_agreement, rcn_pair_agreement, rcn_overall_agreement). NaN: not defined.
template <class TRecord> struct AgreementFigure
{
  std::string Key;     ///< in JSON and CSV files; a distance also has one for pixels
  std::string Name;    ///< as a heading
  std::string Short;   ///< the same where there is little room
  std::string Meaning; ///< for a reader who does not know it
  int Digits;          ///< after the point, in tables
  double TRecord::* Value;
  std::string PixelKey = ""; ///< of a distance, where the picture has no spacing; empty for all others

  bool IsDistance() const { return !this->PixelKey.empty(); }
  double Of(const TRecord& record) const { return record.*this->Value; }
  /// The heading of a column; `length` is the unit of distances (Extent::Length).
  std::string Heading(const std::string& length) const
  {
    return this->IsDistance() ? this->Name + " (" + length + ")" : this->Name;
  }
};

/// A rater against the majority of the others, and by STAPLE's estimate.
const std::vector<AgreementFigure<rcn_rater_agreement>>& RaterFigures();
/// Two raters; distances are measured on request only.
const std::vector<AgreementFigure<rcn_pair_agreement>>& PairFigures();
/// All raters together. Those of 3 digits are agreement corrected for chance, with words (rcn_kappa_words).
const std::vector<AgreementFigure<rcn_overall_agreement>>& OverallFigures();

/// A part of the image by who marked it.
struct AgreementPart
{
  std::string Key, Name;
  int64_t rcn_agreement::* Voxels;
};
/// Anybody, at least half, everybody, disputed.
const std::vector<AgreementPart>& AgreementParts();

/// The share of what anybody marked that is disputed; NaN where nobody marked anything.
double DisputedShare(const rcn_agreement& figures);

} // namespace rcn

#endif
