// SPDX-License-Identifier: Apache-2.0
/// The reliability diagram as a figure.
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

std::vector<double> Curve(const EvaluationReport& report, const Frame& frame)
{
  std::vector<double> xy;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      xy.push_back(frame.X(bin.confidence));
      xy.push_back(frame.Y(bin.frequency));
    }
  }
  return xy;
}

void DrawBand(Figure& figure, const EvaluationReport& report, const Frame& frame)
{
  std::vector<double> forth, back;
  for (size_t b = 0; b < report.Bins.size(); ++b)
  {
    if (report.Bins[b].count > 0 && std::isfinite(report.BandLow[b]))
    {
      forth.insert(forth.end(), { frame.X(report.Bins[b].confidence), frame.Y(report.BandHigh[b]) });
      back.insert(back.begin(), { frame.X(report.Bins[b].confidence), frame.Y(report.BandLow[b]) });
    }
  }
  forth.insert(forth.end(), back.begin(), back.end());
  if (forth.size() >= 6)
  {
    figure.Polygon(forth, "#1f77b4", 0.2);
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

void DrawHistogram(Figure& figure, const EvaluationReport& report, const Frame& frame, double top, double height)
{
  double most = 1;
  for (const rcn_calib_bin& bin : report.Bins)
  {
    most = std::max(most, static_cast<double>(bin.count));
  }
  figure.Rectangle(frame.Left, top, frame.Side, height, "#fafafa", "#999");
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      const double share = std::log10(1 + static_cast<double>(bin.count)) / std::log10(1 + most);
      figure.Hint("says " + PercentText(bin.lower) + " to " + PercentText(bin.upper) + ": " + Counted(bin.count, "vote"));
      figure.Rectangle(frame.X(bin.lower) + 0.5, top + height * (1 - share),
        std::max(frame.X(bin.upper) - frame.X(bin.lower) - 1, 0.5), height * share, "#8a9bb0");
    }
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
  return text + " off on average";
}

} // namespace

Figure ReliabilityDiagram(const EvaluationReport& report, const std::string& title, const EvaluationReport* before)
{
  const Frame frame = { 86, 96, 360 };
  const std::string words[3] = { AverageInWords(report) + ".", DirectionInWords(report), WorstBinInWords(report) };
  Figure figure(480, 668, "Reliability diagram: " + title, words[0] + " " + words[1] + " " + words[2]);
  figure.Text(16, 26, title, 16, Anchor::Start, "#111", true);
  for (int line = 0; line < 3; ++line)
  {
    figure.Text(16, 46 + 17 * line, words[line], 12);
  }
  DrawAxes(figure, frame);
  // The gap: between the curve and the ideal line.
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      const double x = frame.X(bin.lower), width = frame.X(bin.upper) - x;
      const double high = std::max(bin.confidence, bin.frequency), low = std::min(bin.confidence, bin.frequency);
      figure.Rectangle(x, frame.Y(high), width, frame.Y(low) - frame.Y(high), "#d62728", "none", 0.18);
    }
  }
  if (before)
  {
    figure.Polyline(Curve(*before, frame), "#999", 1.5);
  }
  DrawBand(figure, report, frame);
  figure.Polyline(Curve(report, frame), "#1f77b4", 2.5);
  for (const rcn_calib_bin& bin : report.Bins)
  {
    if (bin.count > 0)
    {
      figure.Circle(frame.X(bin.confidence), frame.Y(bin.frequency), 3.5, "#1f77b4");
    }
  }
  // The values of a bin are shown wherever the pointer is above it: points are too small to be hit.
  for (size_t b = 0; b < report.Bins.size(); ++b)
  {
    const rcn_calib_bin& bin = report.Bins[b];
    if (bin.count > 0)
    {
      figure.Hint("predicted " + PercentText(bin.confidence, 1) + ", marked by " + PercentText(bin.frequency, 1) +
        (std::isfinite(report.BandLow[b])
            ? " (95 %: " + PercentText(report.BandLow[b], 1) + " to " + PercentText(report.BandHigh[b], 1) + ")"
            : "") +
        ", " + Counted(bin.count, "vote"));
      figure.Rectangle(frame.X(bin.lower), frame.Top, frame.X(bin.upper) - frame.X(bin.lower), frame.Side, "#fff", "none", 0);
    }
  }
  double y = frame.Top + 16;
  figure.Text(frame.Left + 12, y, "– – perfect calibration", 11, Anchor::Start, "#555");
  if (before)
  {
    figure.Text(frame.Left + 12, y += 16, "gray: before recalibration", 11, Anchor::Start, "#777");
  }
  const bool band = std::any_of(report.BandLow.begin(), report.BandLow.end(), [](double low) { return std::isfinite(low); });
  figure.Text(frame.Left + 12, y += 16,
    band                                   ? "blue band: 95 % interval over " + UnitsInWords(report)
      : !NoIntervalInWords(report).empty() ? NoIntervalInWords(report)
      : std::isfinite(report.MassEce)      ? "bins of equal mass: no band"
                                           : "fewer than " + std::to_string(RCN_INTERVAL_UNITS) + " in each bin: no band",
    11, Anchor::Start, "#1f5f94");
  DrawHistogram(figure, report, frame, frame.Top + frame.Side + 14, 110);
  figure.Text(16, 658, "For research, not for clinical use.", 10, Anchor::Start, "#666");
  return figure;
}

} // namespace rcn
