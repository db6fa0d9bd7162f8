// SPDX-License-Identifier: Apache-2.0
#include "rcnAgreementFigures.h"

#include <cmath>

namespace rcn
{

const std::vector<AgreementFigure<rcn_rater_agreement>>& RaterFigures()
{
  using Rater = rcn_rater_agreement;
  static const std::vector<AgreementFigure<Rater>> figures = {
    { "dice_to_others", "Dice", "Dice",
      "Dice with the majority of the other raters. 1: the same voxels. Where the others are split evenly, voxels do not count.",
      3, &Rater::dice_to_others },
    { "sensitivity_to_others", "Sensitivity", "Sens.",
      "Sensitivity: the share of what the majority of the others marked that this rater marked too.", 3,
      &Rater::sensitivity_to_others },
    { "specificity_to_others", "Specificity", "Spec.",
      "Specificity: the share of what the majority of the others left out that this rater left out too.", 4,
      &Rater::specificity_to_others },
    { "staple_sensitivity", "STAPLE sensitivity", "", "Sensitivity to the hidden truth that STAPLE estimates.", 3,
      &Rater::staple_sensitivity },
    { "staple_specificity", "STAPLE specificity", "", "Specificity to the hidden truth that STAPLE estimates.", 4,
      &Rater::staple_specificity },
  };
  return figures;
}

const std::vector<AgreementFigure<rcn_pair_agreement>>& PairFigures()
{
  using Pair = rcn_pair_agreement;
  static const std::vector<AgreementFigure<Pair>> figures = {
    { "dice", "Dice", "", "Dice: how much of what two raters marked is common to both. 1: the same voxels, 0: none.", 3,
      &Pair::dice },
    { "jaccard", "Jaccard", "", "Jaccard: common voxels divided by those that either marked. 1: the same voxels, 0: none.", 3,
      &Pair::jaccard },
    { "kappa", "Cohen's κ", "", "Cohen's κ: agreement beyond what chance alone would give. 1: perfect, 0: as by chance.", 3,
      &Pair::kappa },
    { "hausdorff95_mm", "Hausdorff 95 %", "",
      "Hausdorff distance, 95 %: all but the worst 5 % of the outlines are closer than this.", 2, &Pair::hausdorff95_mm,
      "hausdorff95_pixels" },
    { "mean_surface_mm", "Mean surface distance", "", "How far the two outlines are apart on average.", 2,
      &Pair::mean_surface_mm, "mean_surface_pixels" },
  };
  return figures;
}

const std::vector<AgreementFigure<rcn_overall_agreement>>& OverallFigures()
{
  using Overall = rcn_overall_agreement;
  static const std::vector<AgreementFigure<Overall>> figures = {
    { "fleiss_kappa", "Fleiss' κ", "", "Agreement beyond chance. 1: perfect, 0: as by chance.", 3, &Overall::fleiss_kappa },
    { "krippendorff_alpha", "Krippendorff's α", "", "The same, corrected for few raters.", 3, &Overall::krippendorff_alpha },
    { "gwet_ac1", "Gwet's AC1", "", "The same with another model of chance, for structures that are small in the image.", 3,
      &Overall::gwet_ac1 },
    { "mean_entropy_bits", "Mean entropy (bits)", "", "How uncertain the votes are. 0: everybody agrees everywhere.", 4,
      &Overall::mean_entropy },
  };
  return figures;
}

const std::vector<AgreementPart>& AgreementParts()
{
  static const std::vector<AgreementPart> parts = { { "union", "anybody", &rcn_agreement::union_voxels },
    { "majority", "at least half", &rcn_agreement::majority_voxels },
    { "intersection", "everybody", &rcn_agreement::intersection_voxels },
    { "disputed", "disputed", &rcn_agreement::disputed_voxels } };
  return parts;
}

double DisputedShare(const rcn_agreement& figures)
{
  return figures.union_voxels ? static_cast<double>(figures.disputed_voxels) / static_cast<double>(figures.union_voxels) : NAN;
}

} // namespace rcn
