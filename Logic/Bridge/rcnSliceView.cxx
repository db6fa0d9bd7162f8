// SPDX-License-Identifier: Apache-2.0
#include "rcnSliceView.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "rcnReport.h"

namespace rcn
{

namespace
{

/// A picture of more pixels than this along a side shows no more on a page.
constexpr int64_t MostPixels = 512;

std::string ColorOfShare(double share)
{
  uint8_t color[3];
  rcn_color_share(color, share);
  return HexColor(color);
}

std::string ColorOfRater(int rater)
{
  uint8_t color[3];
  rcn_color_rater(color, rater);
  return HexColor(color);
}

/// The world axis (0: left, 1: posterior, 2: superior) along which an image axis mostly runs, and which way.
int MainAxis(const rcn_geometry& geometry, int axis, bool& forward)
{
  int main = 0;
  for (int row = 1; row < 3; ++row)
  {
    if (std::fabs(geometry.direction[3 * row + axis]) > std::fabs(geometry.direction[3 * main + axis]))
    {
      main = row;
    }
  }
  forward = geometry.direction[3 * main + axis] > 0;
  return main;
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

int Popcount(uint64_t bits)
{
  int count = 0;
  for (; bits; bits &= bits - 1)
  {
    ++count;
  }
  return count;
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

SliceView::SliceView(const Workspace& workspace, int64_t slice, bool cut)
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
    double extent[2];
    for (int a = 0; a < 2; ++a)
    {
      // A quarter around the marks, but enough to see where they are.
      const int64_t length = box.end[a] - box.first[a], wanted = std::max<int64_t>(length + length / 2, 48);
      this->Part_.first[a] = box.first[a];
      this->Part_.end[a] = box.end[a];
      Grow(this->Part_.first[a], this->Part_.end[a], size[a], wanted);
      extent[a] = static_cast<double>(this->Part_.end[a] - this->Part_.first[a]) * this->Geometry_.spacing[a];
    }
    // Pictures beside each other look best when none is a strip.
    const int narrow = extent[0] < extent[1] ? 0 : 1;
    Grow(this->Part_.first[narrow], this->Part_.end[narrow], size[narrow],
      static_cast<int64_t>(0.8 * extent[1 - narrow] / this->Geometry_.spacing[narrow]));
  }
  if (this->Geometry_.dimension == 3)
  {
    // As radiologists look at it: the patient's left on the right, anterior or superior on top.
    bool forward;
    const int across = MainAxis(this->Geometry_, 0, forward);
    this->Part_.flip[0] = !forward;
    const int down = MainAxis(this->Geometry_, 1, forward);
    this->Part_.flip[1] = across == down ? 0 : down == 2 ? forward : !forward;
  }
  this->Aspect_ = static_cast<double>(this->Part_.end[1] - this->Part_.first[1]) * this->Geometry_.spacing[1] /
    (static_cast<double>(this->Part_.end[0] - this->Part_.first[0]) * this->Geometry_.spacing[0]);
}

// ---- maps ------------------------------------------------------------------------------------------

std::vector<float> SliceView::RaterMap(int rater) const
{
  const rcn_votes* votes = this->Workspace_.Votes();
  std::vector<float> table;
  for (int64_t i = 0; i < rcn_votes_pattern_count(votes); ++i)
  {
    table.push_back(static_cast<float>(rcn_votes_patterns(votes)[i].marked >> rater & 1));
  }
  std::vector<float> map(static_cast<size_t>(this->Geometry_.size[0] * this->Geometry_.size[1]));
  Check(
    rcn_picture_votes(map.data(), this->Workspace_.Context(), votes, table.data(), this->Slice_), this->Workspace_.Context());
  return map;
}

std::vector<float> SliceView::ShareMap() const
{
  const rcn_votes* votes = this->Workspace_.Votes();
  std::vector<float> table;
  for (int64_t i = 0; i < rcn_votes_pattern_count(votes); ++i)
  {
    const rcn_pattern& pattern = rcn_votes_patterns(votes)[i];
    const int answered = Popcount(pattern.answered);
    table.push_back(answered ? static_cast<float>(Popcount(pattern.marked)) / static_cast<float>(answered) : 0.0F);
  }
  std::vector<float> map(static_cast<size_t>(this->Geometry_.size[0] * this->Geometry_.size[1]));
  Check(
    rcn_picture_votes(map.data(), this->Workspace_.Context(), votes, table.data(), this->Slice_), this->Workspace_.Context());
  return map;
}

std::vector<float> SliceView::MapOf(const Volume& volume) const
{
  return this->ReadoutMap(volume, RCN_READOUT_EXPECTED);
}

std::vector<float> SliceView::LevelMap(const Volume& prediction, int level) const
{
  return this->ReadoutMap(prediction, RCN_SLICE_LEVEL, level);
}

std::vector<float> SliceView::ReadoutMap(const Volume& prediction, int readout, int number) const
{
  std::vector<float> map(static_cast<size_t>(this->Geometry_.size[0] * this->Geometry_.size[1]));
  Check(rcn_slice_readout(map.data(), this->Workspace_.Context(), &prediction.View(), readout, number, { 2, this->Slice_ }),
    this->Workspace_.Context());
  return map;
}

// ---- drawing ---------------------------------------------------------------------------------------

std::vector<uint8_t> SliceView::Picture(int64_t& columns, int64_t& rows) const
{
  const int64_t width = this->Part_.end[0] - this->Part_.first[0], height = this->Part_.end[1] - this->Part_.first[1];
  const double shrink = std::max(1.0, static_cast<double>(std::max(width, height)) / static_cast<double>(MostPixels));
  columns = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(width) / shrink));
  rows = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(height) / shrink));
  std::vector<uint8_t> out(static_cast<size_t>(3 * columns * rows), 96);
  if (!this->Workspace_.HasImage())
  {
    return out;
  }
  const Volume& image = this->Workspace_.Image();
  std::vector<uint8_t> all(static_cast<size_t>(3 * this->Geometry_.size[0] * this->Geometry_.size[1]));
  const bool color = image.IsColor() && image.View().type == RCN_UINT8 && image.View().components >= 3;
  Check((color ? rcn_picture_color : rcn_picture_gray)(all.data(), this->Workspace_.Context(), &image.View(), this->Slice_),
    this->Workspace_.Context());
  rcn_picture_fit(out.data(), columns, rows, all.data(), this->Geometry_.size[0], &this->Part_);
  return out;
}

void SliceView::DrawPicture(Figure& figure, const Place& place) const
{
  int64_t columns, rows;
  const std::vector<uint8_t> rgb = this->Picture(columns, rows);
  figure.Picture(place.X, place.Y, place.Width, this->HeightOf(place.Width), rgb, columns, rows);
}

std::vector<std::vector<double>> SliceView::LinesOf(const std::vector<float>& map, double level, const Place& place) const
{
  const int64_t width = this->Part_.end[0] - this->Part_.first[0], height = this->Part_.end[1] - this->Part_.first[1];
  std::vector<float> cut;
  cut.reserve(static_cast<size_t>(width * height));
  for (int64_t y = this->Part_.first[1]; y < this->Part_.end[1]; ++y)
  {
    const auto row = map.begin() + y * this->Geometry_.size[0];
    cut.insert(cut.end(), row + this->Part_.first[0], row + this->Part_.end[0]);
  }
  rcn_context* context = this->Workspace_.Context();
  rcn_contours* found = nullptr;
  Check(rcn_contours_create(&found, context, cut.data(), width, height, level), context);
  const auto release = [context](rcn_contours* contours) { rcn_contours_destroy(contours, context); };
  const std::unique_ptr<rcn_contours, decltype(release)> contours(found, release);
  const double scaleX = place.Width / static_cast<double>(width);
  const double scaleY = this->HeightOf(place.Width) / static_cast<double>(height);
  std::vector<std::vector<double>> lines;
  for (int64_t line = 0; line < found->lines; ++line)
  {
    std::vector<double> points;
    for (int64_t i = found->first[line]; i < found->first[line + 1]; ++i)
    {
      const double x = found->xy[2 * i], y = found->xy[2 * i + 1];
      points.push_back(place.X + scaleX * (this->Part_.flip[0] ? static_cast<double>(width) - x : x));
      points.push_back(place.Y + scaleY * (this->Part_.flip[1] ? static_cast<double>(height) - y : y));
      // Drop the point before when it lies on the way: a picture of thousands of pixels would have as many corners.
      const size_t n = points.size();
      if (n >= 6)
      {
        const double ax = points[n - 4] - points[n - 6], ay = points[n - 3] - points[n - 5];
        const double bx = points[n - 2] - points[n - 4], by = points[n - 1] - points[n - 3];
        if (std::fabs(ax * by - ay * bx) < 0.02 && ax * bx + ay * by >= 0)
        {
          points.erase(points.end() - 4, points.end() - 2);
        }
      }
    }
    lines.push_back(points);
  }
  return lines;
}

void SliceView::DrawLine(
  Figure& figure, const Place& place, const std::vector<float>& map, double level, const std::string& color, double width) const
{
  const std::vector<std::vector<double>> lines = this->LinesOf(map, level, place);
  if (!lines.empty())
  {
    figure.Area(lines, "none", color, width * place.Width / 320);
  }
}

void SliceView::DrawRater(Figure& figure, const Place& place, int rater) const
{
  figure.Hint(this->Workspace_.RaterNames()[static_cast<size_t>(rater)]);
  this->DrawLine(figure, place, this->RaterMap(rater), 0.5, ColorOfRater(rater));
  figure.Hint("");
}

void SliceView::DrawLevels(Figure& figure, const Place& place) const
{
  const std::vector<float> share = this->ShareMap();
  const int raters = Popcount(rcn_votes_present(this->Workspace_.Votes()));
  figure.BeginGroup(0.75);
  for (int level = 1; level <= raters; ++level)
  {
    const std::vector<std::vector<double>> lines = this->LinesOf(share, (level - 0.5) / raters, place);
    if (!lines.empty())
    {
      figure.Hint("marked by " + std::to_string(level) + " of " + std::to_string(raters));
      figure.Area(lines, ColorOfShare(static_cast<double>(level) / raters));
    }
  }
  figure.EndGroup();
}

void SliceView::DrawLevelLines(Figure& figure, const Place& place) const
{
  const std::vector<float> share = this->ShareMap();
  const int raters = Popcount(rcn_votes_present(this->Workspace_.Votes()));
  for (int level = 1; level <= raters; ++level)
  {
    figure.Hint("at least " + std::to_string(level) + " of " + std::to_string(raters) + " raters");
    this->DrawLine(figure, place, share, (level - 0.5) / raters, ColorOfShare(static_cast<double>(level) / raters), 3);
    figure.Hint("");
  }
}

void SliceView::DrawProbability(Figure& figure, const Place& place, const std::vector<float>& map) const
{
  figure.BeginGroup(0.75);
  for (int step = 1; step <= 10; ++step)
  {
    const std::vector<std::vector<double>> lines = this->LinesOf(map, step / 10.0 - 0.05, place);
    if (!lines.empty())
    {
      figure.Hint("about " + std::to_string(10 * step) + " %");
      figure.Area(lines, ColorOfShare(step / 10.0));
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
    colors.emplace_back(ColorOfShare(static_cast<double>(level) / figures.present_count),
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
    colors.emplace_back(ColorOfShare(percent / 100.0), std::to_string(percent) + " %");
  }
  return colors;
}

std::vector<std::pair<std::string, std::string>> RaterLegend(const std::vector<std::string>& names)
{
  std::vector<std::pair<std::string, std::string>> colors;
  for (size_t r = 0; r < names.size(); ++r)
  {
    colors.emplace_back(ColorOfRater(static_cast<int>(r)), names[r]);
  }
  return colors;
}

} // namespace rcn
