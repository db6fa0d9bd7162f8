// SPDX-License-Identifier: Apache-2.0
#include "rcnSliceFigure.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <memory>

#include "rcnReport.h"

namespace rcn
{

namespace
{

/// A picture of more pixels than this along a side shows no more on a page.
constexpr int64_t MostPixels = 512;

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

} // namespace

std::vector<rcn_slice_votes> SliceCounts(const Workspace& workspace)
{
  std::vector<rcn_slice_votes> counts(static_cast<size_t>(rcn_votes_geometry(workspace.Votes())->size[2]));
  Check(rcn_votes_by_slice(counts.data(), workspace.Context(), workspace.Votes()), workspace.Context());
  return counts;
}

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
    rcn_box box;
    Check(rcn_votes_union_box(&box, workspace.Context(), workspace.Votes(), 0), workspace.Context());
    slices.push_back((box.first[2] + box.end[2] - 1) / 2);
  }
  return slices;
}

SliceFigure::SliceFigure(const Workspace& workspace, int64_t slice, bool cut)
  : Workspace_(workspace), Slice_(slice), Geometry_(*rcn_votes_geometry(workspace.Votes()))
{
  const int64_t* size = this->Geometry_.size;
  for (int a = 0; a < 2; ++a)
  {
    this->Part_.end[a] = size[a];
  }
  if (cut)
  {
    rcn_box box;
    Check(rcn_votes_union_box(&box, workspace.Context(), workspace.Votes(), 0), workspace.Context());
    for (int a = 0; a < 2; ++a)
    {
      // A quarter around the marks, but enough to see where they are.
      const int64_t length = box.end[a] - box.first[a], wanted = std::max<int64_t>(length + length / 2, 48);
      this->Part_.first[a] = box.first[a];
      this->Part_.end[a] = box.end[a];
      Grow(this->Part_.first[a], this->Part_.end[a], size[a], wanted);
    }
    // Pictures beside each other look best when none is a strip.
    const int narrow = this->ExtentAlong(0) < this->ExtentAlong(1) ? 0 : 1;
    Grow(this->Part_.first[narrow], this->Part_.end[narrow], size[narrow],
      static_cast<int64_t>(0.8 * this->ExtentAlong(1 - narrow) / this->Geometry_.spacing[narrow]));
  }
  // As radiologists look at it, and as the viewer shows it: the patient's left on the right, anterior or superior on top.
  rcn_plane plane;
  rcn_plane_along(&plane, &this->Geometry_, 2);
  this->Part_.width = size[0];
  this->Part_.transposed = plane.right == 1;
  this->Part_.flip[plane.right] = plane.right_sign < 0;
  this->Part_.flip[plane.up] = plane.up_sign > 0; // rows run down
  this->Right_ = plane.right;
  this->Down_ = plane.up;
}

// ---- maps ------------------------------------------------------------------------------------------

std::vector<float> SliceFigure::VotesMap(const std::function<double(const rcn_pattern&)>& value) const
{
  const rcn_votes* votes = this->Workspace_.Votes();
  std::vector<float> table;
  for (int64_t i = 0; i < rcn_votes_pattern_count(votes); ++i)
  {
    table.push_back(static_cast<float>(value(rcn_votes_patterns(votes)[i])));
  }
  std::vector<float> map(static_cast<size_t>(this->Geometry_.size[0] * this->Geometry_.size[1]));
  Check(rcn_slice_expand(map.data(), this->Workspace_.Context(), votes, table.data(), { 2, this->Slice_ }),
    this->Workspace_.Context());
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
  std::vector<float> map(static_cast<size_t>(this->Geometry_.size[0] * this->Geometry_.size[1]));
  Check(rcn_slice_readout(map.data(), this->Workspace_.Context(), &prediction.View(), readout, number, { 2, this->Slice_ }),
    this->Workspace_.Context());
  return map;
}

// ---- drawing ---------------------------------------------------------------------------------------

std::vector<uint8_t> SliceFigure::Picture(int64_t& columns, int64_t& rows) const
{
  const int64_t width = this->PixelsAlong(this->Right_), height = this->PixelsAlong(this->Down_);
  const double shrink = std::max(1.0, static_cast<double>(std::max(width, height)) / static_cast<double>(MostPixels));
  columns = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(width) / shrink));
  rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(height) / shrink));
  std::vector<uint8_t> out(static_cast<size_t>(3 * columns * rows), 96);
  if (!this->Workspace_.HasImage())
  {
    return out;
  }
  const Volume& image = this->Workspace_.Image();
  const rcn_slice slice = { 2, this->Slice_ };
  rcn_context* context = this->Workspace_.Context();
  std::vector<uint8_t> all(static_cast<size_t>(4 * this->Geometry_.size[0] * this->Geometry_.size[1]));
  if (image.IsColor() && image.View().type == RCN_UINT8 && image.View().components >= 3)
  {
    Check(rcn_slice_rgb(all.data(), context, &image.View(), slice, 0, 255), context);
  }
  else
  {
    double black, white;
    Check(rcn_slice_contrast(&black, &white, context, &image.View(), 0, this->Slice_), context);
    Check(rcn_slice_gray(all.data(), context, &image.View(), 0, slice, black, white), context);
  }
  rcn_slice_fit(out.data(), columns, rows, all.data(), &this->Part_);
  return out;
}

void SliceFigure::DrawPicture(Figure& figure, const Place& place) const
{
  int64_t columns, rows;
  const std::vector<uint8_t> rgb = this->Picture(columns, rows);
  figure.Picture(place.X, place.Y, place.Width, this->HeightOf(place.Width), rgb, columns, rows);
}

std::vector<std::vector<double>> SliceFigure::LinesOf(const std::vector<float>& map, double level, const Place& place) const
{
  // Cut first: lines close along the border of the picture, not of the slice.
  std::vector<float> cut;
  for (int64_t y = this->Part_.first[1]; y < this->Part_.end[1]; ++y)
  {
    const auto row = map.begin() + y * this->Geometry_.size[0];
    cut.insert(cut.end(), row + this->Part_.first[0], row + this->Part_.end[0]);
  }
  rcn_context* context = this->Workspace_.Context();
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
    figure.Area(lines, "none", color, width * place.Width / 320);
  }
}

void SliceFigure::DrawRater(Figure& figure, const Place& place, int rater) const
{
  figure.Hint(this->Workspace_.RaterNames()[static_cast<size_t>(rater)]);
  this->DrawLine(figure, place, this->RaterMap(rater), 0.5, RaterColor(rater));
  figure.Hint("");
}

void SliceFigure::DrawLevels(Figure& figure, const Place& place) const
{
  const std::vector<float> share = this->ShareMap();
  const int raters = Count(rcn_votes_present(this->Workspace_.Votes()));
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
  const int raters = Count(rcn_votes_present(this->Workspace_.Votes()));
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
    const std::vector<std::vector<double>> lines = this->LinesOf(map, step / 10.0 - 0.05, place);
    if (!lines.empty())
    {
      figure.Hint("about " + std::to_string(10 * step) + " %");
      figure.Area(lines, ShareColor(step / 10.0));
    }
  }
  figure.EndGroup();
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
