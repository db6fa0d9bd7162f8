// SPDX-License-Identifier: Apache-2.0
/// One slice of a case as a person wants to see it: cut to what raters marked, the right way up, and outlines, levels of
/// consensus and probabilities over it as lines and areas that stay sharp at any size.
#ifndef rcnSliceView_h
#define rcnSliceView_h

#include <string>
#include <utility>
#include <vector>

#include "rcn/rcn_picture.h"
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

class SliceView
{
public:
  /// The workspace must outlive it. `cut`: only what raters marked and what is around it; otherwise all of the slice.
  SliceView(const Workspace& workspace, int64_t slice, bool cut = true);

  int64_t Slice() const { return this->Slice_; }
  double HeightOf(double width) const { return width * this->Aspect_; }

  // ---- maps of the slice: one value per pixel of the whole slice

  std::vector<float> RaterMap(int rater) const;
  /// The share of those who answered that marked it.
  std::vector<float> ShareMap() const;
  std::vector<float> MapOf(const Volume& volume) const;
  /// What a prediction says there: its probability, or an rcn_readout of its levels (`number`: t of "at least").
  std::vector<float> ReadoutMap(const Volume& prediction, int readout, int number = 0) const;
  /// The probability of exactly so many raters.
  std::vector<float> LevelMap(const Volume& prediction, int level) const;

  // ---- drawing, from the back to the front

  /// The image, in grey or in its colors; plain grey without one.
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
  /// The lines in the figure's units.
  std::vector<std::vector<double>> LinesOf(const std::vector<float>& map, double level, const Place& place) const;

  const Workspace& Workspace_;
  int64_t Slice_;
  rcn_geometry Geometry_;
  rcn_picture_part Part_{};
  double Aspect_ = 1;
};

/// Colors and words of the levels 1 ... K with their volumes (areas of a 2-D image), for a legend.
std::vector<std::pair<std::string, std::string>> LevelLegend(const rcn_agreement& figures, const rcn_geometry& geometry);
/// The same of probabilities.
std::vector<std::pair<std::string, std::string>> ProbabilityLegend();
/// The same of the raters' outlines.
std::vector<std::pair<std::string, std::string>> RaterLegend(const std::vector<std::string>& names);

} // namespace rcn

#endif
