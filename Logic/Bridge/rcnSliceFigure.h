// SPDX-License-Identifier: Apache-2.0
/// One slice of a case drawn into a Figure, for pages and demo: cut to what raters marked, the right way up, and outlines,
/// levels of consensus and probabilities over it as lines and areas that stay sharp at any size.
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

/// Where a view is drawn in a figure; its height follows from the view.
struct Place
{
  double X, Y, Width;
};

/// How much is marked and disputed in each slice.
std::vector<rcn_slice_votes> SliceCounts(const Workspace& workspace);

/// Slices worth a look, `most` at most: those with most disputed voxels, the first of them first. The middle of the marks
/// when nothing is disputed.
std::vector<int64_t> SlicesToSee(const Workspace& workspace, size_t most);

class SliceFigure
{
public:
  /// The workspace must outlive it. `cut`: only what raters marked and what is around it; otherwise all of the slice.
  SliceFigure(const Workspace& workspace, int64_t slice, bool cut = true);

  double HeightOf(double width) const { return width * this->ExtentAlong(this->Down_) / this->ExtentAlong(this->Right_); }

  // ---- maps of the slice: one value per pixel of the whole slice

  std::vector<float> RaterMap(int rater) const;
  /// The share of those who answered that marked it.
  std::vector<float> ShareMap() const;
  /// A prediction's or fused map's probability, or a readout of its levels: as rcn_slice_readout().
  std::vector<float> ReadoutMap(const Volume& prediction, int readout, int number = 0) const;

  // ---- drawing, from the back to the front

  /// The image, in gray or in its colors; plain gray without one.
  std::vector<uint8_t> Picture(int64_t& columns, int64_t& rows) const;
  void DrawPicture(Figure& figure, const Place& place) const;
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

private:
  /// A value for each pattern of answers, looked up for each pixel.
  std::vector<float> VotesMap(const std::function<double(const rcn_pattern&)>& value) const;
  /// Pixels of the part along one of the slice's axes.
  int64_t PixelsAlong(int axis) const { return this->Part_.end[axis] - this->Part_.first[axis]; }
  double ExtentAlong(int axis) const { return static_cast<double>(this->PixelsAlong(axis)) * this->Geometry_.spacing[axis]; }
  /// The lines in the figure's units.
  std::vector<std::vector<double>> LinesOf(const std::vector<float>& map, double level, const Place& place) const;

  const Workspace& Workspace_;
  int64_t Slice_;
  rcn_geometry Geometry_;
  rcn_slice_part Part_{};
  int Right_ = 0, Down_ = 1; ///< the slice's axes along the figure's
};

/// Colors and words of the levels 1 ... K with their volumes (areas of a 2-D image), for a legend.
std::vector<std::pair<std::string, std::string>> LevelLegend(const rcn_agreement& figures, const rcn_geometry& geometry);
/// The same of probabilities.
std::vector<std::pair<std::string, std::string>> ProbabilityLegend();
/// The same of the raters' outlines.
std::vector<std::pair<std::string, std::string>> RaterLegend(const std::vector<std::string>& names);

} // namespace rcn

#endif
