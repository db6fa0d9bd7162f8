// SPDX-License-Identifier: Apache-2.0
/// One slice of a case drawn into a Figure, for pages, slides and demo: cut to what raters marked or a model expects, the right
/// way up, and outlines, levels of consensus and probabilities over it as lines and areas that stay sharp at any size.
///
/// The core (rcn_slice.h) reads the slice, chooses its grays and traces the lines, here as in the viewer; this class places
/// them. (In the viewer the same is done by rcnSliceRenderer, at any zoom.)
#ifndef rcnSliceFigure_h
#define rcnSliceFigure_h

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rcn/rcn_slice.h"
#include "rcnFigure.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// Of what is unsure, over any image and map.
constexpr const char* UnsureColor = "#ffb000";

/// Where a view is drawn in a figure; its height follows from the view.
struct Place
{
  double X, Y, Width;
};

/// Of what slices are drawn; all that it points to must outlive it.
struct SliceSubject
{
  SliceSubject(rcn_context* context, const Volume& image) : Context(context), Geometry(image.Geometry()), Image(&image) {}
  /// The workspace's case.
  explicit SliceSubject(const Workspace& workspace);

  rcn_context* Context;
  rcn_geometry Geometry;
  const Volume* Image = nullptr;                    ///< null: none
  const rcn_votes* Votes = nullptr;                 ///< null: nobody outlined it
  const std::vector<std::string>* Raters = nullptr; ///< their names, where there are votes
};

/// The number of a slice for people, as the viewer shows it: from 1.
inline std::string SliceNumber(int64_t index)
{
  return std::to_string(index + 1);
}

/// How much is marked and disputed in each slice.
std::vector<rcn_slice_votes> SliceCounts(const Workspace& workspace);

/// Slices worth a look, `most` at most: those with most disputed voxels, the first of them first. The middle of the marks
/// when nothing is disputed.
std::vector<int64_t> SlicesToSee(const Workspace& workspace, size_t most);

/// How much a prediction expects, and where it is unsure, in each slice.
std::vector<rcn_slice_expectation> SliceExpectations(rcn_context* context, const Volume& prediction);

/// Slices worth a look where nobody marked anything, `most` at most: the one with the largest expected extent first, then those
/// with most unsure voxels, none of them beside another. The middle one when nothing is expected.
std::vector<int64_t> SlicesToSee(const std::vector<rcn_slice_expectation>& slices, size_t most);
/// That rule in a sentence.
std::string SliceRuleInWords();

/// The box around all that a prediction expects (a share of RCN_UNSURE and more); all of the image when that is nothing.
rcn_box ExpectedBox(const std::vector<rcn_slice_expectation>& slices, const rcn_geometry& geometry);

class SliceFigure
{
public:
  /// `cut`: only this box and what is around it; null: all of the slice. The subject is copied, what it points to is not.
  SliceFigure(const SliceSubject& subject, rcn_slice slice, const rcn_box* cut);
  /// The same of a workspace's case, across its last axis. `cut`: only what raters marked and what is around it. `raters`:
  /// names to show instead of theirs, which outlive the figure; null: their own.
  SliceFigure(const Workspace& workspace, int64_t slice, bool cut = true, const std::vector<std::string>* raters = nullptr);

  double HeightOf(double width) const { return width * this->ExtentAlong(this->Down_) / this->ExtentAlong(this->Right_); }

  // ---- maps of the slice: one value per pixel of the whole slice

  std::vector<float> RaterMap(int rater) const;
  /// The share of those who answered that marked it.
  std::vector<float> ShareMap() const;
  /// A prediction's or fused map's probability, or a readout of its levels: as rcn_slice_readout().
  std::vector<float> ReadoutMap(const Volume& prediction, int readout, int number = 0) const;

  // ---- drawing, from the back to the front

  /// The image, in gray or in its colors, with at most so many pixels along a side; plain gray without one.
  std::vector<uint8_t> Picture(int64_t& columns, int64_t& rows, int64_t most = 512) const;
  void DrawPicture(Figure& figure, const Place& place, int64_t most = 512) const;
  /// The lines where a map reaches a level; their width is for a view of 320.
  void DrawLine(Figure& figure, const Place& place, const std::vector<float>& map, double level, const std::string& color,
    double width = 2.6) const;
  void DrawRater(Figure& figure, const Place& place, int rater) const;
  /// How many raters marked it, in the colors of the levels.
  void DrawLevels(Figure& figure, const Place& place) const;
  /// A probability in steps of ten percent; less than 5 % is left as it is.
  void DrawProbability(Figure& figure, const Place& place, const std::vector<float>& map) const;
  /// Where at least 1, 2, ... K raters mark it: lines in the colors of the levels.
  void DrawLevelLines(Figure& figure, const Place& place) const;
  /// The same of a prediction: where it is as likely as not that at least 1, 2, ... K raters mark it. One probability has one
  /// line.
  void DrawPredictedLines(Figure& figure, const Place& place, const Volume& prediction) const;
  /// Where an expected share is neither nearly 0 nor nearly 1: RCN_UNSURE to 1 - RCN_UNSURE.
  void DrawUnsure(Figure& figure, const Place& place, const std::vector<float>& share) const;

private:
  /// A value for each pattern of answers, looked up for each pixel.
  std::vector<float> VotesMap(const std::function<double(const rcn_pattern&)>& value) const;
  /// Pixels of the part along one of the slice's axes.
  int64_t PixelsAlong(int axis) const { return this->Part_.end[axis] - this->Part_.first[axis]; }
  double ExtentAlong(int axis) const { return static_cast<double>(this->PixelsAlong(axis)) * this->Spacing_[axis]; }
  void Cut(const rcn_box& box);
  /// Of all pixels of the slice.
  size_t PixelCount() const { return static_cast<size_t>(this->Size_[0] * this->Size_[1]); }
  /// The lines in the figure's units.
  std::vector<std::vector<double>> LinesOf(const std::vector<float>& map, double level, const Place& place) const;

  SliceSubject Subject_;
  rcn_slice Slice_;
  int Axes_[2];       ///< of the volume: those of the slice
  int64_t Size_[2];   ///< of the whole slice
  double Spacing_[2]; ///< of its pixels
  rcn_slice_part Part_{};
  int Right_ = 0, Down_ = 1; ///< the slice's axes along the figure's
};

/// Colors and words of the levels 1 ... K with their volumes (areas of a 2-D image), for a legend.
std::vector<std::pair<std::string, std::string>> LevelLegend(const rcn_agreement& figures, const rcn_geometry& geometry);
/// The same of probabilities.
std::vector<std::pair<std::string, std::string>> ProbabilityLegend();
/// The same of the raters' outlines.
std::vector<std::pair<std::string, std::string>> RaterLegend(const std::vector<std::string>& names);
/// The same of DrawPredictedLines().
std::vector<std::pair<std::string, std::string>> PredictedLegend(const Volume& prediction);

} // namespace rcn

#endif
