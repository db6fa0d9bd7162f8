// SPDX-License-Identifier: Apache-2.0
#include "rcnSliceFigure.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <memory>

#include "rcnEvaluation.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

/// Raters in a set of bits.
int Count(uint64_t raters)
{
  return static_cast<int>(std::bitset<64>(raters).count());
}

/// Grows a part of [0, size) to at least `length`, on both sides where there is room.
void Grow(int64_t& first, int64_t& end, int64_t size, int64_t length)
{
  const int64_t missing = std::min(length, size) - (end - first);
  if (missing > 0)
  {
    first = std::max<int64_t>(0, std::min(first - missing / 2, size - (end - first) - missing));
    end = std::min(size, first + std::min(length, size));
  }
}

/// Drops the last point but one where it lies on the way between its neighbors: the outline in a picture of thousands of
/// pixels would have as many corners, and a page would be megabytes long.
void DropPointOnTheWay(std::vector<double>& xy)
{
  const size_t n = xy.size();
  if (n < 6)
  {
    return;
  }
  const double ax = xy[n - 4] - xy[n - 6], ay = xy[n - 3] - xy[n - 5];
  const double bx = xy[n - 2] - xy[n - 4], by = xy[n - 1] - xy[n - 3];
  if (std::fabs(ax * by - ay * bx) < 0.02 && ax * bx + ay * by >= 0)
  {
    xy.erase(xy.end() - 4, xy.end() - 2);
  }
}

/// The box around all marks.
rcn_box MarkedBox(const Workspace& workspace)
{
  rcn_box box;
  Check(rcn_votes_union_box(&box, workspace.Context(), workspace.Votes(), 0), workspace.Context());
  return box;
}

} // namespace

std::vector<rcn_slice_votes> SliceCounts(const Workspace& workspace)
{
  std::vector<rcn_slice_votes> counts(static_cast<size_t>(rcn_votes_geometry(workspace.Votes())->size[2]));
  Check(rcn_votes_by_slice(counts.data(), workspace.Context(), workspace.Votes()), workspace.Context());
  return counts;
}

// Where raters disagree most; where they never do, the middle of what they marked.
std::vector<int64_t> SlicesToSee(const Workspace& workspace, size_t most)
{
  const std::vector<rcn_slice_votes> counts = SliceCounts(workspace);
  std::vector<int64_t> slices;
  for (size_t z = 0; z < counts.size(); ++z)
  {
    if (counts[z].disputed)
    {
      slices.push_back(static_cast<int64_t>(z));
    }
  }
  std::stable_sort(slices.begin(), slices.end(), [&counts](int64_t a, int64_t b) {
    return counts[static_cast<size_t>(a)].disputed > counts[static_cast<size_t>(b)].disputed;
  });
  slices.resize(std::min(slices.size(), most));
  if (slices.empty())
  {
    const rcn_box box = MarkedBox(workspace);
    slices.push_back((box.first[2] + box.end[2] - 1) / 2);
  }
  return slices;
}

std::vector<rcn_slice_expectation> SliceExpectations(rcn_context* context, const Volume& prediction)
{
  std::vector<rcn_slice_expectation> slices(static_cast<size_t>(prediction.Geometry().size[2]));
  Check(rcn_slice_expectations(slices.data(), context, &prediction.View()), context);
  return slices;
}

std::vector<int64_t> SlicesToSee(const std::vector<rcn_slice_expectation>& slices, size_t most)
{
  const auto at = [&slices](int64_t z) -> const rcn_slice_expectation& { return slices[static_cast<size_t>(z)]; };
  std::vector<int64_t> order, chosen;
  int64_t largest = static_cast<int64_t>(slices.size()) / 2;
  for (int64_t z = 0; z < static_cast<int64_t>(slices.size()); ++z)
  {
    if (at(z).end[0] > 0)
    {
      order.push_back(z);
      largest = at(z).expected > at(largest).expected ? z : largest;
    }
  }
  // Slices beside each other look alike: an eighth of all that show something lies between them.
  const int64_t apart = std::max<int64_t>(2, static_cast<int64_t>(order.size()) / 8);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return at(a).unsure > at(b).unsure; });
  // In front: a page without the largest slice would surprise everybody.
  order.insert(order.begin(), largest);
  for (const int64_t z : order)
  {
    const bool near = std::any_of(chosen.begin(), chosen.end(), [&](int64_t other) { return std::abs(z - other) < apart; });
    if (chosen.size() < most && !near)
    {
      chosen.push_back(z);
    }
  }
  return chosen;
}

std::string SliceRuleInWords()
{
  return "Shown: the slice with the largest expected area, then those with most unsure voxels, none beside another.";
}

// Around all that is expected, in all slices: the pictures of a page have one frame, so that they can be compared.
rcn_box ExpectedBox(const std::vector<rcn_slice_expectation>& slices, const rcn_geometry& geometry)
{
  rcn_box box = { { geometry.size[0], geometry.size[1], geometry.size[2] }, { 0, 0, 0 } };
  for (size_t z = 0; z < slices.size(); ++z)
  {
    if (slices[z].end[0] > 0)
    {
      for (int a = 0; a < 2; ++a)
      {
        box.first[a] = std::min(box.first[a], slices[z].first[a]);
        box.end[a] = std::max(box.end[a], slices[z].end[a]);
      }
      box.first[2] = std::min(box.first[2], static_cast<int64_t>(z));
      box.end[2] = static_cast<int64_t>(z) + 1;
    }
  }
  return box.end[2] > 0 ? box : rcn_box{ { 0, 0, 0 }, { geometry.size[0], geometry.size[1], geometry.size[2] } };
}

SliceSubject::SliceSubject(const Workspace& workspace)
  : Context(workspace.Context()),
    Geometry(*rcn_votes_geometry(workspace.Votes())),
    Image(workspace.HasImage() ? &workspace.Image() : nullptr),
    Votes(workspace.Votes()),
    Raters(&workspace.RaterNames())
{
}

SliceFigure::SliceFigure(const Workspace& workspace, int64_t slice, bool cut, const std::vector<std::string>* raters)
  : SliceFigure(SliceSubject(workspace), { 2, slice }, nullptr)
{
  this->Subject_.Raters = raters ? raters : this->Subject_.Raters;
  if (cut)
  {
    this->Cut(MarkedBox(workspace));
  }
}

SliceFigure::SliceFigure(const SliceSubject& subject, rcn_slice slice, const rcn_box* cut)
  : Subject_(subject), Slice_(slice), Axes_{ slice.axis == 0 ? 1 : 0, slice.axis == 2 ? 1 : 2 }
{
  for (int a = 0; a < 2; ++a)
  {
    this->Size_[a] = this->Part_.end[a] = subject.Geometry.size[this->Axes_[a]];
    this->Spacing_[a] = subject.Geometry.spacing[this->Axes_[a]];
  }
  // As radiologists look at it, and as the viewer shows it: the patient's left on the right, anterior or superior on top.
  rcn_plane plane;
  rcn_plane_along(&plane, &subject.Geometry, slice.axis);
  this->Right_ = plane.right == this->Axes_[0] ? 0 : 1;
  this->Down_ = 1 - this->Right_;
  this->Part_.width = this->Size_[0];
  this->Part_.transposed = this->Right_ == 1;
  this->Part_.flip[this->Right_] = plane.right_sign < 0;
  this->Part_.flip[this->Down_] = plane.up_sign > 0; // rows run down
  if (cut)
  {
    this->Cut(*cut);
  }
}

void SliceFigure::Cut(const rcn_box& box)
{
  for (int a = 0; a < 2; ++a)
  {
    // A quarter around the marks, but enough to see where they are.
    const int64_t first = box.first[this->Axes_[a]], end = box.end[this->Axes_[a]], length = end - first;
    this->Part_.first[a] = first;
    this->Part_.end[a] = end;
    Grow(this->Part_.first[a], this->Part_.end[a], this->Size_[a], std::max<int64_t>(length + length / 2, 48));
  }
  // Pictures beside each other look best when none is a strip.
  const int narrow = this->ExtentAlong(0) < this->ExtentAlong(1) ? 0 : 1;
  Grow(this->Part_.first[narrow], this->Part_.end[narrow], this->Size_[narrow],
    static_cast<int64_t>(0.8 * this->ExtentAlong(1 - narrow) / this->Spacing_[narrow]));
}

// ---- maps ------------------------------------------------------------------------------------------

// Computed once for each pattern, looked up for each voxel.
std::vector<float> SliceFigure::VotesMap(const std::function<double(const rcn_pattern&)>& value) const
{
  const rcn_votes* votes = this->Subject_.Votes;
  std::vector<float> table;
  for (int64_t i = 0; i < rcn_votes_pattern_count(votes); ++i)
  {
    table.push_back(static_cast<float>(value(rcn_votes_patterns(votes)[i])));
  }
  std::vector<float> map(this->PixelCount());
  Check(rcn_slice_expand(map.data(), this->Subject_.Context, votes, table.data(), this->Slice_), this->Subject_.Context);
  return map;
}

std::vector<float> SliceFigure::RaterMap(int rater) const
{
  return this->VotesMap([rater](const rcn_pattern& pattern) { return pattern.marked >> rater & 1 ? 1.0 : 0.0; });
}

std::vector<float> SliceFigure::ShareMap() const
{
  return this->VotesMap([](const rcn_pattern& pattern) {
    const double answered = Count(pattern.answered);
    return answered > 0 ? Count(pattern.marked) / answered : 0.0;
  });
}

std::vector<float> SliceFigure::ReadoutMap(const Volume& prediction, int readout, int number) const
{
  std::vector<float> map(this->PixelCount());
  Check(rcn_slice_readout(map.data(), this->Subject_.Context, &prediction.View(), readout, number, this->Slice_),
    this->Subject_.Context);
  return map;
}

// ---- drawing ---------------------------------------------------------------------------------------

std::vector<uint8_t> SliceFigure::Picture(int64_t& columns, int64_t& rows, int64_t most) const
{
  const int64_t width = this->PixelsAlong(this->Right_), height = this->PixelsAlong(this->Down_);
  // Never enlarged here: the figure does that, with voxels as squares.
  const double shrink = std::max(1.0, static_cast<double>(std::max(width, height)) / static_cast<double>(most));
  columns = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(width) / shrink));
  rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(height) / shrink));
  std::vector<uint8_t> out(static_cast<size_t>(3 * columns * rows), 96);
  if (!this->Subject_.Image)
  {
    return out;
  }
  const Volume& image = *this->Subject_.Image;
  rcn_context* context = this->Subject_.Context;
  std::vector<uint8_t> all(4 * this->PixelCount());
  if (image.IsColor() && image.View().type == RCN_UINT8 && image.View().components >= 3)
  {
    Check(rcn_slice_rgb(all.data(), context, &image.View(), this->Slice_, 0, 255), context);
  }
  else
  {
    double black, white;
    // Slices along z get a window of their own; other cuts use the volume's.
    Check(this->Slice_.axis == 2 ? rcn_slice_contrast(&black, &white, context, &image.View(), 0, this->Slice_.index)
                                 : rcn_slice_window(&black, &white, context, &image.View(), 0),
      context);
    Check(rcn_slice_gray(all.data(), context, &image.View(), 0, this->Slice_, black, white), context);
  }
  rcn_slice_fit(out.data(), columns, rows, all.data(), &this->Part_);
  return out;
}

void SliceFigure::DrawPicture(Figure& figure, const Place& place, int64_t most) const
{
  int64_t columns, rows;
  const std::vector<uint8_t> rgb = this->Picture(columns, rows, most);
  figure.Picture(place.X, place.Y, place.Width, this->HeightOf(place.Width), rgb, columns, rows);
}

std::vector<std::vector<double>> SliceFigure::LinesOf(const std::vector<float>& map, double level, const Place& place) const
{
  // Cut first: lines close along the border of the picture, not of the slice.
  std::vector<float> cut;
  for (int64_t y = this->Part_.first[1]; y < this->Part_.end[1]; ++y)
  {
    const auto row = map.begin() + y * this->Size_[0];
    cut.insert(cut.end(), row + this->Part_.first[0], row + this->Part_.end[0]);
  }
  rcn_context* context = this->Subject_.Context;
  rcn_contours* found = nullptr;
  Check(rcn_contours_create(&found, context, cut.data(), this->PixelsAlong(0), this->PixelsAlong(1), level), context);
  const auto release = [context](rcn_contours* contours) { rcn_contours_destroy(contours, context); };
  const std::unique_ptr<rcn_contours, decltype(release)> contours(found, release);
  const double scaleX = place.Width / static_cast<double>(this->PixelsAlong(this->Right_));
  const double scaleY = this->HeightOf(place.Width) / static_cast<double>(this->PixelsAlong(this->Down_));
  const auto along = [this](const float* xy, int axis) {
    return this->Part_.flip[axis] ? static_cast<double>(this->PixelsAlong(axis)) - xy[axis] : xy[axis];
  };
  std::vector<std::vector<double>> lines;
  for (int64_t line = 0; line < found->lines; ++line)
  {
    std::vector<double> points;
    for (int64_t i = found->first[line]; i < found->first[line + 1]; ++i)
    {
      points.push_back(place.X + scaleX * along(found->xy + 2 * i, this->Right_));
      points.push_back(place.Y + scaleY * along(found->xy + 2 * i, this->Down_));
      DropPointOnTheWay(points);
    }
    lines.push_back(points);
  }
  return lines;
}

void SliceFigure::DrawLine(
  Figure& figure, const Place& place, const std::vector<float>& map, double level, const std::string& color, double width) const
{
  const std::vector<std::vector<double>> lines = this->LinesOf(map, level, place);
  if (!lines.empty())
  {
    // Width as for a picture 320 wide: a line keeps its look in small and large ones.
    figure.Area(lines, "none", color, width * place.Width / 320);
  }
}

void SliceFigure::DrawRater(Figure& figure, const Place& place, int rater) const
{
  figure.Hint((*this->Subject_.Raters)[static_cast<size_t>(rater)]);
  this->DrawLine(figure, place, this->RaterMap(rater), 0.5, RaterColor(rater));
  figure.Hint("");
}

void SliceFigure::DrawLevels(Figure& figure, const Place& place) const
{
  const std::vector<float> share = this->ShareMap();
  const int raters = Count(rcn_votes_present(this->Subject_.Votes));
  figure.BeginGroup(0.75);
  for (int level = 1; level <= raters; ++level)
  {
    const std::vector<std::vector<double>> lines = this->LinesOf(share, (level - 0.5) / raters, place);
    if (!lines.empty())
    {
      figure.Hint("marked by " + std::to_string(level) + " of " + std::to_string(raters));
      figure.Area(lines, ShareColor(static_cast<double>(level) / raters));
    }
  }
  figure.EndGroup();
}

void SliceFigure::DrawLevelLines(Figure& figure, const Place& place) const
{
  const std::vector<float> share = this->ShareMap();
  const int raters = Count(rcn_votes_present(this->Subject_.Votes));
  for (int level = 1; level <= raters; ++level)
  {
    figure.Hint("at least " + std::to_string(level) + " of " + std::to_string(raters) + " raters");
    this->DrawLine(figure, place, share, (level - 0.5) / raters, ShareColor(static_cast<double>(level) / raters), 3);
    figure.Hint("");
  }
}

void SliceFigure::DrawProbability(Figure& figure, const Place& place, const std::vector<float>& map) const
{
  figure.BeginGroup(0.75);
  for (int step = 1; step <= 10; ++step)
  {
    // Drawn over one another from low to high; half a step below, so that each area is about what its color says.
    const std::vector<std::vector<double>> lines = this->LinesOf(map, step / 10.0 - 0.05, place);
    if (!lines.empty())
    {
      figure.Hint("about " + std::to_string(10 * step) + " %");
      figure.Area(lines, ShareColor(step / 10.0));
    }
  }
  figure.EndGroup();
}

void SliceFigure::DrawPredictedLines(Figure& figure, const Place& place, const Volume& prediction) const
{
  const int raters = std::max(1, prediction.View().components - 1);
  for (int level = 1; level <= raters; ++level)
  {
    figure.Hint(raters == 1 ? "50 %" : AtLeastInWords(level, raters) + ": 50 %");
    this->DrawLine(figure, place, this->ReadoutMap(prediction, RCN_READOUT_AT_LEAST, level), 0.5,
      ShareColor(static_cast<double>(level) / raters), 3);
    figure.Hint("");
  }
}

void SliceFigure::DrawUnsure(Figure& figure, const Place& place, const std::vector<float>& share) const
{
  std::vector<std::vector<double>> lines = this->LinesOf(share, RCN_UNSURE, place);
  const std::vector<std::vector<double>> sure = this->LinesOf(share, 1 - RCN_UNSURE, place);
  lines.insert(lines.end(), sure.begin(), sure.end()); // holes
  if (!lines.empty())
  {
    figure.Hint("neither under " + PercentText(RCN_UNSURE) + " nor over " + PercentText(1 - RCN_UNSURE));
    figure.BeginGroup(0.7);
    figure.Area(lines, UnsureColor);
    figure.EndGroup();
    figure.Hint("");
  }
}

// ---- legends ---------------------------------------------------------------------------------------

std::vector<std::pair<std::string, std::string>> LevelLegend(const rcn_agreement& figures, const rcn_geometry& geometry)
{
  const Extent extent(geometry);
  std::vector<std::pair<std::string, std::string>> colors;
  for (int level = 1; level <= figures.present_count; ++level)
  {
    colors.emplace_back(ShareColor(static_cast<double>(level) / figures.present_count),
      std::to_string(level) + " of " + std::to_string(figures.present_count) + ": " + extent.Text(figures.level_voxels[level]) +
        extent.Unit);
  }
  return colors;
}

std::vector<std::pair<std::string, std::string>> ProbabilityLegend()
{
  std::vector<std::pair<std::string, std::string>> colors;
  for (const int percent : { 10, 30, 50, 70, 90, 100 })
  {
    colors.emplace_back(ShareColor(percent / 100.0), std::to_string(percent) + " %");
  }
  return colors;
}

std::vector<std::pair<std::string, std::string>> PredictedLegend(const Volume& prediction)
{
  const int raters = prediction.View().components - 1;
  std::vector<std::pair<std::string, std::string>> colors;
  for (int level = 1; level <= raters; ++level)
  {
    colors.emplace_back(ShareColor(static_cast<double>(level) / raters),
      level == raters && raters > 1 ? "all " + std::to_string(raters) : "at least " + Counted(level, "rater"));
  }
  return raters > 0 ? colors : std::vector<std::pair<std::string, std::string>>{ { ShareColor(1), "probability 50 %" } };
}

std::vector<std::pair<std::string, std::string>> RaterLegend(const std::vector<std::string>& names)
{
  std::vector<std::pair<std::string, std::string>> colors;
  for (size_t r = 0; r < names.size(); ++r)
  {
    colors.emplace_back(RaterColor(static_cast<int>(r)), names[r]);
  }
  return colors;
}

} // namespace rcn
