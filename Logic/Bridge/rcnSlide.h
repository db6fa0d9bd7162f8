// SPDX-License-Identifier: Apache-2.0
/// A picture for a slide: one slice of a case with its legend, 1920 x 1080, for every shell. Whoever shows it (SVG or PNG,
/// Figure::Save(path, 1)) needs no window.
#ifndef rcnSlide_h
#define rcnSlide_h

#include "rcnEvaluation.h"
#include "rcnSliceFigure.h"

namespace rcn
{

constexpr double SlideWidth = 1920, SlideHeight = 1080;

struct SlideOptions
{
  explicit SlideOptions(const SliceSubject& subject) : Subject(subject) {}

  SliceSubject Subject;
  const Volume* Prediction = nullptr; ///< levels or one probability, in the subject's geometry; null: raters only
  rcn_readout Readout = RCN_READOUT_EXPECTED;
  int AtLeast = 0;
  rcn_slice Slice = { 2, -1 };    ///< index -1, across the last axis: the first of SlicesToSee()
  std::string Title;              ///< empty: none
  std::vector<std::string> Words; ///< lines below the pictures, such as the volume; two at most
};

/// Two pictures of the slice, beside each other. Left: the raters' outlines, without raters what a model expects at least 1, 2,
/// ... K of them to mark. Right: the predicted probability, without a prediction how many raters marked it. Throws Error
/// (RCN_EINVALID) without raters and without a prediction, or where there is no such slice.
Figure SlideFigure(const SlideOptions& options);

} // namespace rcn

#endif
