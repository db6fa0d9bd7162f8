// SPDX-License-Identifier: Apache-2.0
/// Reliability diagrams as figures.
#include "rcnEvaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "rcnReport.h"

namespace rcn
{

namespace
{

std::string Count(double count)
{
  char text[32];
  if (count >= 1e6)
  {
    std::snprintf(text, sizeof text, "%.3g million", count / 1e6);
  }
  else
  {
    std::snprintf(text, sizeof text, "%.0f", count);
  }
  return text;
}

/// Points of the curve (x: says, y: raters say) in figure coordinates.
struct Frame
{
  double Left, Top, Side;
  double X(double p) const { return this->Left + p * this->Side; }
  double Y(double p) const { return this->Top + (1 - p) * this->Side; }
};

/// Each bin at its mean prediction; empty bins have no point.
std::vector<double> Curve(const std::vector<rcn_calib_bin>& bins, const Frame& frame)
{
  std::vector<double> xy;
  for (const rcn_calib_bin& bin : bins)
  {
    if (bin.count > 0)
    {
      xy.push_back(frame.X(bin.confidence));
      xy.push_back(frame.Y(bin.frequency));
    }
  }
  return xy;
}

/// Of the model, and of the one beside it.
const char* const FirstColor = "#1f77b4";
const char* const SecondColor = "#d9710b";

/// The curve with a dot for each bin.
void DrawCurve(Figure& figure, const std::vector<rcn_calib_bin>& bins, const Frame& frame, double width, double radius,
  const char* color = FirstColor)
{
  const std::vector<double> xy = Curve(bins, frame);
  figure.Polyline(xy, color, width);
  for (size_t i = 0; i < xy.size(); i += 2)
  {
    figure.Circle(xy[i], xy[i + 1], radius, color);
  }
}

/// Forth along the upper edge and back along the lower one. Bins without an interval are left out; a single bin has no area.
void DrawBand(Figure& figure, const std::vector<rcn_calib_bin>& bins, const std::vector<double>& low,
  const std::vector<double>& high, const Frame& frame, const char* color = FirstColor)
{
  std::vector<double> forth, back;
  for (size_t b = 0; b < bins.size(); ++b)
  {
    if (bins[b].count > 0 && std::isfinite(low[b]))
    {
      forth.insert(forth.end(), { frame.X(bins[b].confidence), frame.Y(high[b]) });
      back.insert(back.begin(), { frame.X(bins[b].confidence), frame.Y(low[b]) });
    }
  }
  forth.insert(forth.end(), back.begin(), back.end());
  if (forth.size() >= 6)
  {
    figure.Polygon(forth, color, 0.2);
  }
}

/// Between the curve and the ideal line.
void DrawGaps(Figure& figure, const std::vector<rcn_calib_bin>& bins, const Frame& frame)
{
  for (const rcn_calib_bin& bin : bins)
  {
    if (bin.count > 0)
    {
      const double x = frame.X(bin.lower), width = frame.X(bin.upper) - x;
      const double high = std::max(bin.confidence, bin.frequency), low = std::min(bin.confidence, bin.frequency);
      figure.Rectangle(x, frame.Y(high), width, frame.Y(low) - frame.Y(high), "#d62728", "none", 0.18);
    }
  }
}

/// The values of a bin are shown wherever the pointer is above it: points are too small to be hit.
void DrawHints(Figure& figure, const std::vector<rcn_calib_bin>& bins, const std::vector<double>& low,
  const std::vector<double>& high, const Frame& frame, const std::string& verb, const std::string& unit)
{
  for (size_t b = 0; b < bins.size(); ++b)
  {
    const rcn_calib_bin& bin = bins[b];
    if (bin.count > 0)
    {
      figure.Hint("predicted " + PercentText(bin.confidence, 1) + verb + PercentText(bin.frequency, 1) +
        (std::isfinite(low[b]) ? " (95 %: " + PercentText(low[b], 1) + " to " + PercentText(high[b], 1) + ")" : "") + ", " +
        Counted(bin.count, unit.c_str()));
      figure.Rectangle(frame.X(bin.lower), frame.Top, frame.X(bin.upper) - frame.X(bin.lower), frame.Side, "#fff", "none", 0);
    }
  }
}

void DrawAxes(Figure& figure, const Frame& frame)
{
  figure.Rectangle(frame.Left, frame.Top, frame.Side, frame.Side, "#fafafa", "#999");
  for (int tick = 0; tick <= 5; ++tick)
  {
    const double p = tick / 5.0;
    figure.Line(frame.X(p), frame.Top, frame.X(p), frame.Top + frame.Side, "#e4e4e4");
    figure.Line(frame.Left, frame.Y(p), frame.Left + frame.Side, frame.Y(p), "#e4e4e4");
    figure.Text(frame.Left - 8, frame.Y(p) + 4, PercentText(p), 11, Anchor::End, "#444");
  }
  figure.Line(frame.X(0), frame.Y(0), frame.X(1), frame.Y(1), "#777", 1.5, "5,4");
  figure.VerticalText(frame.Left - 50, frame.Top + frame.Side / 2, "Raters who marked it", 13);
}

/// `second` (may be null): bins of another model, beside the first one's in each bin.
void DrawHistogram(
  Figure& figure, const EvaluationReport& report, const EvaluationReport* second, const Frame& frame, double top, double height)
{
  double most = 1;
  for (const EvaluationReport* one : { &report, second })
  {
    for (const rcn_calib_bin& bin : one ? one->Bins : std::vector<rcn_calib_bin>())
    {
      most = std::max(most, static_cast<double>(bin.count));
    }
  }
  figure.Rectangle(frame.Left, top, frame.Side, height, "#fafafa", "#999");
  const auto draw = [&](const EvaluationReport& one, double place, double part, const std::string& who, const char* color) {
    for (const rcn_calib_bin& bin : one.Bins)
    {
      if (bin.count > 0)
      {
        // Logarithmic, because background fills the first bin with a thousand times as many votes; with 1 added, so that a
        // single vote has a bar.
        const double share = std::log10(1 + static_cast<double>(bin.count)) / std::log10(1 + most);
        const double width = frame.X(bin.upper) - frame.X(bin.lower);
        figure.Hint(
          who + "predicted " + PercentText(bin.lower) + " to " + PercentText(bin.upper) + ": " + Counted(bin.count, "vote"));
        figure.Rectangle(frame.X(bin.lower) + 0.5 + place * width, top + height * (1 - share), std::max(part * width - 1, 0.5),
          height * share, color);
      }
    }
  };
  draw(report, 0, second ? 0.5 : 1, second ? "blue " : "", second ? FirstColor : "#8a9bb0");
  if (second)
  {
    draw(*second, 0.5, 0.5, "orange ", SecondColor);
  }
  for (int tick = 0; tick <= 5; ++tick)
  {
    figure.Text(frame.X(tick / 5.0), top + height + 16, PercentText(tick / 5.0), 11, Anchor::Middle, "#444");
  }
  figure.Text(frame.Left - 8, top + 10, Count(most), 10, Anchor::End, "#444");
  figure.VerticalText(frame.Left - 66, top + height / 2, "Votes (log)", 11);
  figure.Text(frame.X(0.5), top + height + 36, "Predicted probability", 13, Anchor::Middle);
}

std::string AverageInWords(const EvaluationReport& report)
{
  const rcn_interval& interval = report.Interval[RCN_MR_ECE];
  std::string text = "MR-ECE " + PercentText(report.Figures[RCN_MR_ECE], 2);
  if (interval.units > 0 && std::isfinite(interval.low))
  {
    text += " (95 %: " + PercentText(interval.low, 2) + " to " + PercentText(interval.high, 2) + ")";
  }
  return text;
}

/// One of several small diagrams; only the outer ones have numbers at their axes.
void DrawLevel(Figure& figure, const LevelDiagram& level, int raters, const Frame& frame, bool first, bool last)
{
  figure.Text(frame.Left, frame.Top - 20, AtLeastInWords(level.AtLeast, raters), 12, Anchor::Start, "#111", true);
  figure.Text(frame.Left, frame.Top - 6, PercentText(level.Ece, 2) + " off on average", 11, Anchor::Start, "#444");
  figure.Rectangle(frame.Left, frame.Top, frame.Side, frame.Side, "#fafafa", "#999");
  for (int tick = 0; tick <= 2; ++tick)
  {
    const double p = tick / 2.0;
    figure.Line(frame.X(p), frame.Top, frame.X(p), frame.Top + frame.Side, "#e4e4e4");
    figure.Line(frame.Left, frame.Y(p), frame.Left + frame.Side, frame.Y(p), "#e4e4e4");
    if (first)
    {
      figure.Text(frame.Left - 6, frame.Y(p) + 4, PercentText(p), 11, Anchor::End, "#444");
    }
    if (last)
    {
      figure.Text(frame.X(p), frame.Top + frame.Side + 16, PercentText(p), 11, Anchor::Middle, "#444");
    }
  }
  figure.Line(frame.X(0), frame.Y(0), frame.X(1), frame.Y(1), "#777", 1.5, "5,4");
  DrawGaps(figure, level.Bins, frame);
  DrawBand(figure, level.Bins, level.BandLow, level.BandHigh, frame);
  DrawCurve(figure, level.Bins, frame, 2, 2.5);
  DrawHints(figure, level.Bins, level.BandLow, level.BandHigh, frame, ", true of ", "voxel");
}

} // namespace

std::string AtLeastInWords(int atLeast, int raters)
{
  const std::string all = std::to_string(raters) + (raters == 1 ? " rater" : " raters");
  return atLeast == raters ? (raters == 1 ? "the rater" : "all " + all) : "at least " + std::to_string(atLeast) + " of " + all;
}

Figure LevelDiagrams(const EvaluationReport& report, const std::string& title)
{
  const int raters = static_cast<int>(report.Levels.size());
  // Up to four in a row, three where that fills the rows better.
  const int columns = raters <= 4 ? std::max(raters, 2) : raters == 5 || raters == 6 || raters == 9 ? 3 : 4;
  const int rows = (raters + columns - 1) / columns;
  const double side = 170, left = 76, top = 116, stepX = side + 42, stepY = side + 56;
  const double height = top + rows * stepY + 18;
  const std::string words = "P(at least t of " + std::to_string(raters) + " raters) is off by " +
    PercentText(report.Figures[RCN_LEVEL_ECE], 2) + " on average over t, by " +
    PercentText(report.Figures[RCN_LEVEL_ECE_MAX], 2) + " at most.";
  Figure figure(left + columns * stepX, height, "Reliability of levels: " + title, words);
  figure.Text(16, 26, title, 16, Anchor::Start, "#111", true);
  figure.Text(16, 46, words, 12);
  figure.Text(16, 63,
    report.LevelSource == RCN_LEVELS_BINOMIAL  ? "Levels: the binomial distribution of one probability."
      : report.LevelSource == RCN_LEVELS_MIXED ? "Levels: in part the binomial distribution of one probability."
                                               : "Levels: as predicted.",
    12);
  for (int t = 1; t <= raters; ++t)
  {
    const int column = (t - 1) % columns, row = (t - 1) / columns;
    const Frame frame = { left + column * stepX, top + row * stepY, side };
    DrawLevel(figure, report.Levels[static_cast<size_t>(t - 1)], raters, frame, column == 0, t + columns > raters);
  }
  figure.VerticalText(24, top + ((rows - 1) * stepY + side) / 2, "Share of voxels", 13);
  figure.Text(left + (columns * stepX - 42) / 2, height - 22, "Predicted probability", 13, Anchor::Middle);
  figure.Text(16, height - 6, "For research, not for clinical use.", 10, Anchor::Start, "#666");
  return figure;
}

Figure ReliabilityDiagram(const EvaluationReport& report, const std::string& title, const EvaluationReport* before,
  const SecondModel* second, const std::string& about)
{
  const double more = about.empty() ? 0 : 17; // a line of its own
  // Left, top, side: room for three lines of words above and for the numbers of the axis on the left.
  const Frame frame = { 86, 96 + more, 360 };
  const std::string words[3] = { (second ? "Blue: " : "") + AverageInWords(report) + ".",
    second ? "Orange: " + AverageInWords(*second->Report) + "." : DirectionInWords(report),
    second ? "" : WorstBinInWords(report) };
  Figure figure(480, 668 + more, "Reliability diagram: " + title,
    (about.empty() ? "" : about + ". ") + words[0] + " " + words[1] + " " + words[2]);
  figure.Text(16, 26, title, 16, Anchor::Start, "#111", true);
  if (!about.empty())
  {
    figure.Text(16, 46, about, 12, Anchor::Start, "#444");
  }
  for (int line = 0; line < 3; ++line)
  {
    figure.Text(16, 46 + more + 17 * line, words[line], 12);
  }
  DrawAxes(figure, frame);
  if (second) // gaps of two models would hide each other
  {
    DrawBand(figure, second->Report->Bins, second->Report->BandLow, second->Report->BandHigh, frame, SecondColor);
    DrawCurve(figure, second->Report->Bins, frame, 2.5, 3.5, SecondColor);
  }
  else
  {
    DrawGaps(figure, report.Bins, frame);
  }
  if (before)
  {
    figure.Polyline(Curve(before->Bins, frame), "#999", 1.5);
  }
  DrawBand(figure, report.Bins, report.BandLow, report.BandHigh, frame);
  DrawCurve(figure, report.Bins, frame, 2.5, 3.5);
  DrawHints(figure, report.Bins, report.BandLow, report.BandHigh, frame, ", marked by ", "vote");
  double y = frame.Top + 16;
  figure.Text(frame.Left + 12, y, "– – perfect calibration", 11, Anchor::Start, "#555");
  if (before)
  {
    figure.Text(frame.Left + 12, y += 16, "gray: before recalibration", 11, Anchor::Start, "#777");
  }
  if (second)
  {
    figure.Text(frame.Left + 12, y += 16, "blue: " + second->FirstName, 11, Anchor::Start, "#1f5f94");
    figure.Text(frame.Left + 12, y += 16, "orange: " + second->Name, 11, Anchor::Start, "#a3540a");
  }
  // A diagram without a band says why there is none, so that nobody takes it for certain.
  const bool band = std::any_of(report.BandLow.begin(), report.BandLow.end(), [](double low) { return std::isfinite(low); });
  figure.Text(frame.Left + 12, y += 16,
    band ? (second ? "bands: 95 % interval over " : "blue band: 95 % interval over ") + UnitsInWords(report)
      : !NoIntervalInWords(report).empty() ? NoIntervalInWords(report)
      : std::isfinite(report.MassEce)      ? "bins of equal mass: no band"
                                           : "fewer than " + std::to_string(RCN_INTERVAL_UNITS) + " in each bin: no band",
    11, Anchor::Start, "#1f5f94");
  DrawHistogram(figure, report, second ? second->Report : nullptr, frame, frame.Top + frame.Side + 14, 110);
  figure.Text(16, 658 + more, "For research, not for clinical use.", 10, Anchor::Start, "#666");
  return figure;
}

} // namespace rcn
