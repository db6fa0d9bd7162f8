// SPDX-License-Identifier: Apache-2.0
#include "rcnSlide.h"

#include <algorithm>

#include "rcn/rcn.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

using Legend = std::vector<std::pair<std::string, std::string>>;

constexpr double Margin = 60, Gap = 40, PictureTop = 164, LegendTop = 902, LegendSize = 24;
constexpr int MostLevels = 9; // in the legend
constexpr double PanelWidth = (SlideWidth - 2 * Margin - Gap) / 2, PanelHeight = LegendTop - PictureTop - 34;

/// About how wide a text is; the font is only known where it is shown.
double WidthOf(const std::string& text, double size)
{
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }); // of UTF-8
  return 0.62 * size * static_cast<double>(letters);
}

/// As much of a text as has room in one line.
std::string Shortened(std::string text, double size, double width)
{
  bool cut = false;
  while (!text.empty() && WidthOf(text, size) > width)
  {
    while ((text.back() & 0xC0) == 0x80)
    {
      text.pop_back();
    }
    text.pop_back();
    cut = true;
  }
  return text + (cut ? "…" : "");
}

/// Colors and their words, in two lines at most.
void DrawLegend(Figure& figure, double left, const Legend& legend)
{
  double x = left, y = LegendTop;
  size_t shown = 0;
  for (; shown < legend.size(); ++shown)
  {
    const std::string words = Shortened(legend[shown].second, LegendSize, PanelWidth - 50);
    const double width = 46 + WidthOf(words, LegendSize) + 22;
    if (x > left && x + width - 22 > left + PanelWidth)
    {
      if (y > LegendTop)
      {
        break;
      }
      x = left;
      y += 38;
    }
    figure.Rectangle(x, y - 19, 34, 22, legend[shown].first, "#999");
    figure.Text(x + 46, y, words, LegendSize);
    x += width;
  }
  if (shown < legend.size())
  {
    figure.Text(std::min(x, left + PanelWidth - 20), y, "…", LegendSize);
  }
}

/// One of the two pictures, as large as it can be.
Place PlaceOf(const SliceFigure& view, double left)
{
  const double width = std::min(PanelWidth, PanelHeight / view.HeightOf(1));
  return { left + (PanelWidth - width) / 2, PictureTop + (PanelHeight - view.HeightOf(width)) / 2, width };
}

/// Which slice to show: the one asked for, or the first that is worth a look.
rcn_slice SliceOf(const SlideOptions& options, const std::vector<rcn_slice_expectation>& expected)
{
  if (options.Slice.index >= 0)
  {
    return options.Slice;
  }
  std::vector<rcn_slice_votes> votes;
  if (options.Subject.Votes)
  {
    votes.resize(static_cast<size_t>(options.Subject.Geometry.size[2]));
    Check(rcn_votes_by_slice(votes.data(), options.Subject.Context, options.Subject.Votes), options.Subject.Context);
    const auto most = std::max_element(votes.begin(), votes.end(), [](const rcn_slice_votes& a, const rcn_slice_votes& b) {
      return a.disputed != b.disputed ? a.disputed < b.disputed : a.marked < b.marked;
    });
    if (most->marked > 0)
    {
      return { 2, most - votes.begin() };
    }
  }
  return { 2, expected.empty() ? options.Subject.Geometry.size[2] / 2 : SlicesToSee(expected, 1).front() };
}

/// What is in the pictures: what raters marked and a model expects.
rcn_box BoxOf(const SlideOptions& options, const std::vector<rcn_slice_expectation>& expected)
{
  rcn_box box = ExpectedBox(expected, options.Subject.Geometry);
  if (options.Subject.Votes)
  {
    rcn_box marked;
    Check(rcn_votes_union_box(&marked, options.Subject.Context, options.Subject.Votes, 0), options.Subject.Context);
    const bool nothing = std::none_of(expected.begin(), expected.end(), [](const auto& slice) { return slice.end[0] > 0; });
    for (int a = 0; a < 3; ++a)
    {
      box.first[a] = nothing ? marked.first[a] : std::min(box.first[a], marked.first[a]);
      box.end[a] = nothing ? marked.end[a] : std::max(box.end[a], marked.end[a]);
    }
  }
  return box;
}

/// Left: who marks what, as lines.
void DrawLines(Figure& figure, const SlideOptions& options, const SliceFigure& view)
{
  const Place place = PlaceOf(view, Margin);
  view.DrawPicture(figure, place, 1024);
  if (!options.Subject.Votes)
  {
    view.DrawPredictedLines(figure, place, *options.Prediction);
    figure.Text(Margin, PictureTop - 18,
      options.Prediction->View().components > 1 ? "Expected outlines (as likely as not)" : "Expected outline (50 %)", 26);
    DrawLegend(figure, Margin, PredictedLegend(*options.Prediction));
    return;
  }
  Legend present;
  const Legend all = RaterLegend(*options.Subject.Raters);
  for (size_t r = 0; r < all.size(); ++r)
  {
    if (rcn_votes_present(options.Subject.Votes) >> r & 1)
    {
      view.DrawRater(figure, place, static_cast<int>(r));
      present.push_back(all[r]);
    }
  }
  figure.Text(Margin, PictureTop - 18, "Raters' outlines", 26);
  DrawLegend(figure, Margin, present);
}

/// Right: a share of raters, predicted or counted.
void DrawShares(Figure& figure, const SlideOptions& options, const SliceFigure& view)
{
  const double left = Margin + PanelWidth + Gap;
  const Place place = PlaceOf(view, left);
  view.DrawPicture(figure, place, 1024);
  if (options.Prediction)
  {
    view.DrawProbability(figure, place, view.ReadoutMap(*options.Prediction, options.Readout, options.AtLeast));
    const bool levels = options.Prediction->View().components > 1;
    figure.Text(left, PictureTop - 18,
      !levels                                     ? "Predicted probability"
        : options.Readout == RCN_READOUT_EXPECTED ? "Expected share of raters who mark it"
        : options.Readout == RCN_READOUT_AT_LEAST
        ? "Probability: " + AtLeastInWords(options.AtLeast, options.Prediction->View().components - 1)
        : "Probability that a majority marks it",
      26);
    DrawLegend(figure, left, ProbabilityLegend());
    return;
  }
  view.DrawLevels(figure, place);
  figure.Text(left, PictureTop - 18, "How many raters marked it", 26);
  const auto raters = static_cast<int>(NamesOf(rcn_votes_present(options.Subject.Votes), *options.Subject.Raters).size());
  Legend levels;
  const std::vector<int> ends = { 1, (raters + 1) / 2, raters }; // neighbors of more look the same, and have no room
  for (int level = 1; level <= raters; ++level)
  {
    if (raters <= MostLevels || std::count(ends.begin(), ends.end(), level))
    {
      levels.emplace_back(
        ShareColor(static_cast<double>(level) / raters), std::to_string(level) + " of " + std::to_string(raters));
    }
  }
  DrawLegend(figure, left, levels);
}

} // namespace

Figure SlideFigure(const SlideOptions& options)
{
  const SliceSubject& subject = options.Subject;
  if (!subject.Votes && !options.Prediction)
  {
    throw Error(RCN_EINVALID, "A picture needs raters or a prediction.", "input");
  }
  const std::vector<rcn_slice_expectation> expected =
    options.Prediction ? SliceExpectations(subject.Context, *options.Prediction) : std::vector<rcn_slice_expectation>();
  const rcn_slice slice = SliceOf(options, expected);
  if (slice.axis < 0 || slice.axis > 2 || slice.index >= subject.Geometry.size[slice.axis])
  {
    throw Error(RCN_EINVALID, "Slice " + SliceNumber(slice.index) + " does not exist.");
  }
  const rcn_box box = BoxOf(options, expected);
  const SliceFigure view(subject, slice, &box);
  Figure figure(SlideWidth, SlideHeight, options.Title.empty() ? "Slice with legend" : options.Title,
    subject.Votes ? "Raters' outlines and shares of raters" : "What a model expects raters to mark");
  const std::string where = subject.Geometry.size[slice.axis] > 1 ? "slice " + SliceNumber(slice.index) : "";
  figure.Text(Margin, 84, Shortened(options.Title, 44, SlideWidth - 2 * Margin - 240), 44, Anchor::Start, "#111", true);
  figure.Text(SlideWidth - Margin, 84, where, 26, Anchor::End, "#444");
  DrawLines(figure, options, view);
  DrawShares(figure, options, view);
  for (size_t line = 0; line < std::min<size_t>(options.Words.size(), 2); ++line)
  {
    figure.Text(Margin, 992 + 34 * static_cast<double>(line), Shortened(options.Words[line], 26, SlideWidth - 2 * Margin), 26);
  }
  figure.Text(Margin, SlideHeight - 16, "For research, not for clinical use.", 18, Anchor::Start, "#666");
  figure.Text(SlideWidth - Margin, SlideHeight - 16, "RaterConsensus " RCN_VERSION, 18, Anchor::End, "#666");
  return figure;
}

} // namespace rcn
