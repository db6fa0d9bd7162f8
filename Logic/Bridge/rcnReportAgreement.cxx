// SPDX-License-Identifier: Apache-2.0
/// The section about the raters' agreement, and the sums over cases that it shows.
#include "rcnReportParts.h"

#include <algorithm>
#include <cmath>

namespace rcn
{
namespace report
{

namespace
{

template <class TRecord>
void AddFigures(std::vector<Spread>& sums, const std::vector<AgreementFigure<TRecord>>& figures, const TRecord& record)
{
  sums.resize(figures.size());
  for (size_t i = 0; i < figures.size(); ++i)
  {
    sums[i].Add(figures[i].Of(record));
  }
}

} // namespace

void AgreementSums::Add(const rcn_agreement& f, const Extent& extent)
{
  const size_t count = static_cast<size_t>(f.raters);
  const auto size = [&](int64_t voxels) { return static_cast<double>(voxels) * extent.PerVoxel; };
  this->Raters.resize(count);
  this->Pairs.resize(count * count, Pair(PairFigures().size()));
  this->MixedExtents = this->MixedExtents || (!this->Heading.empty() && this->Heading != extent.Heading);
  this->MixedLengths = this->MixedLengths || (!this->Length.empty() && this->Length != extent.Length);
  this->Heading = extent.Heading;
  this->Unit = extent.Unit;
  this->Length = extent.Length;
  for (size_t r = 0; r < count; ++r)
  {
    Rater& sums = this->Raters[r];
    sums.Figures.resize(RaterFigures().size());
    if (!f.rater[r].present)
    {
      continue;
    }
    ++sums.Cases;
    sums.Extent.Add(size(f.rater[r].voxels));
    AddFigures(sums.Figures, RaterFigures(), f.rater[r]);
    for (size_t other = 0; other < count; ++other)
    {
      if (other != r && f.rater[other].present)
      {
        AddFigures(this->Pairs[r * count + other], PairFigures(), f.pair[r * count + other]);
      }
    }
  }
  this->MeanDice.Add(f.mean_dice);
  AddFigures(this->Whole, OverallFigures(), f.whole);
  AddFigures(this->OnUnion, OverallFigures(), f.on_union);
  this->DisputedShare.Add(rcn::DisputedShare(f));
  this->Parts.resize(AgreementParts().size());
  for (size_t i = 0; i < this->Parts.size(); ++i)
  {
    this->Parts[i].Add(size(f.*AgreementParts()[i].Voxels));
  }
  std::vector<Spread>& levels = this->Levels[f.present_count];
  levels.resize(static_cast<size_t>(f.present_count));
  for (size_t level = 0; level < levels.size(); ++level)
  {
    levels[level].Add(size(f.level_voxels[level + 1]));
  }
  if (this->MixedExtents) // a mean of mL, mm² and pixels would mean nothing
  {
    this->Heading = "Extent (the cases' units differ)";
    this->Unit.clear();
    for (Rater& rater : this->Raters)
    {
      rater.Extent = Spread();
    }
    for (auto& one : this->Levels)
    {
      one.second.assign(one.second.size(), Spread());
    }
    this->Parts.assign(this->Parts.size(), Spread());
  }
  if (this->MixedLengths) // nor would one of millimeters and pixels
  {
    this->Length = "mm or pixels";
    for (Pair& pair : this->Pairs)
    {
      for (size_t i = 0; i < pair.size(); ++i)
      {
        pair[i] = PairFigures()[i].IsDistance() ? Spread() : pair[i];
      }
    }
  }
}

namespace
{

/// The pairs of raters as a matrix of colored cells.
Figure PairMatrix(const AgreementSums& agreement, const std::vector<std::string>& names)
{
  const size_t count = names.size();
  const bool numbers = count <= MostRatersInPairs;
  const double cell = numbers ? (count <= 6 ? 58 : 44) : 16, left = 110, top = 96;
  double lowest = 1;
  for (const AgreementSums::Pair& pair : agreement.Pairs)
  {
    lowest = std::fmin(lowest, pair.front().Mean());
  }
  const double from = std::min(0.9, std::floor(10 * lowest) / 10);
  const double side = cell * static_cast<double>(count);
  Figure figure(left + side + 16, top + side + 58, "Overlap of each pair of raters (Dice)",
    "A matrix of " + std::to_string(count) + " by " + std::to_string(count) + " cells; the table below has the numbers");
  figure.Text(12, 24, "Overlap of two raters (Dice)", 15, Anchor::Start, "#111", true);
  const auto shorten = [](const std::string& name) {
    size_t end = std::min<size_t>(name.size(), 13);
    while (end < name.size() && end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80)
    {
      --end; // not inside a letter
    }
    return end < name.size() ? name.substr(0, end) + "…" : name;
  };
  for (size_t a = 0; a < count; ++a)
  {
    const double at = cell * (static_cast<double>(a) + 0.5);
    const double size = numbers ? 12 : 9;
    figure.Text(left - 8, top + at + 4, shorten(names[a]), size, Anchor::End);
    figure.SlantedText(left + at, top - 8, shorten(names[a]), size);
    for (size_t b = 0; b < count; ++b)
    {
      const double value = agreement.Dice(a, b);
      const double x = left + cell * static_cast<double>(b), y = top + cell * static_cast<double>(a);
      uint8_t color[3];
      rcn_color_share(color, (value - from) / (1 - from));
      const bool defined = a != b && std::isfinite(value);
      if (defined)
      {
        figure.Hint(names[a] + " and " + names[b] + ": " + Fixed(value, 3));
      }
      figure.Rectangle(x + 1, y + 1, cell - 2, cell - 2, defined ? HexColor(color) : "#fafafa", "none");
      if (defined && numbers)
      {
        const bool bright = 299 * color[0] + 587 * color[1] + 114 * color[2] > 128000;
        figure.Text(x + cell / 2, y + cell / 2 + 4.5, Fixed(value, 2), 12.5, Anchor::Middle, bright ? "#000000" : "#ffffff");
      }
    }
  }
  // The scale.
  for (int step = 0; step < 20; ++step)
  {
    uint8_t color[3];
    rcn_color_share(color, (step + 0.5) / 20);
    figure.Rectangle(left + 6.0 * step, top + side + 22, 6.2, 10, HexColor(color));
  }
  figure.Text(left, top + side + 48, Fixed(from, 1), 11, Anchor::Start, "#444");
  figure.Text(left + 120, top + side + 48, "1", 11, Anchor::End, "#444");
  return figure;
}

void WriteOverall(Page& page, const ReportData& data)
{
  const AgreementSums& sums = data.Sums;
  PageTable overall;
  overall.Caption = "All raters together, corrected for chance";
  overall.Columns = { "Figure", "Whole image", "In words",
    { "Where anybody marked", "only voxels that at least one rater marked" } };
  for (size_t i = 0; i < OverallFigures().size(); ++i)
  {
    const auto& figure = OverallFigures()[i];
    overall.Rows.push_back({ figure.Name, CellOf(sums.Whole[i], figure.Digits),
      figure.Digits == 3 ? rcn_kappa_words(sums.Whole[i].Mean()) : "", CellOf(sums.OnUnion[i], figure.Digits) });
  }
  page.Add(overall);
  page.Note(
    "Words after Landis and Koch 1977. Where anybody marked, the easy background is left out; agreement by chance is high "
    "there, and κ can be near or below 0 although raters overlap well.");
}

void WriteRaters(Page& page, const ReportData& data)
{
  const AgreementSums& sums = data.Sums;
  const size_t count = data.Raters.size();
  PageTable raters;
  raters.Caption = AgainstOthersText() + std::string(data.Cases.size() > 1 ? ": mean, and range over cases" : "");
  raters.Columns = { "Rater", { sums.Heading, "How much the rater marked." } };
  for (const auto& figure : RaterFigures())
  {
    raters.Columns.emplace_back(figure.Name, figure.Meaning);
  }
  if (data.Cases.size() > 1)
  {
    raters.Columns.emplace_back("Cases");
  }
  for (size_t r = 0; r < count; ++r)
  {
    const AgreementSums::Rater& rater = sums.Raters[r];
    raters.Rows.push_back({ data.Raters[r], CellOf(rater.Extent, 2) });
    for (size_t i = 0; i < RaterFigures().size(); ++i)
    {
      raters.Rows.back().push_back(CellOf(rater.Figures[i], RaterFigures()[i].Digits));
    }
    if (data.Cases.size() > 1)
    {
      raters.Rows.back().emplace_back(static_cast<double>(rater.Cases), 0);
    }
  }
  page.Add(raters);
  if (count < 2)
  {
    return;
  }
  page.Add(PairMatrix(sums, data.Raters), "1 is the same outline, 0 no overlap.");
  if (count > MostRatersInPairs || data.Cases.size() > 1) // of several cases there is a table with intervals
  {
    return;
  }
  // Distances have no column where none could be measured: tilted axes, or nothing marked.
  const bool surfaces = std::any_of(sums.Pairs.begin(), sums.Pairs.end(),
    [](const AgreementSums::Pair& pair) { return !pair.empty() && pair.back().Count() > 0; });
  PageTable pairs;
  pairs.Caption = "Pairs of raters";
  pairs.Columns = { "Pair" };
  for (const auto& figure : PairFigures())
  {
    if (surfaces || !figure.IsDistance())
    {
      pairs.Columns.emplace_back(figure.Heading(sums.Length), figure.Meaning);
    }
  }
  for (size_t a = 0; a < count; ++a)
  {
    for (size_t b = a + 1; b < count; ++b)
    {
      const AgreementSums::Pair& pair = sums.Pairs[a * count + b];
      if (!pair.front().Count())
      {
        continue;
      }
      pairs.Rows.push_back({ data.Raters[a] + " – " + data.Raters[b] });
      for (size_t i = 0; i < PairFigures().size(); ++i)
      {
        if (surfaces || !PairFigures()[i].IsDistance())
        {
          pairs.Rows.back().push_back(CellOf(pair[i], PairFigures()[i].Digits));
        }
      }
    }
  }
  page.Add(pairs);
}

/// Over the cases of a list, with intervals: all raters together, each rater, each pair, and who stands out.
void WriteSetTable(Page& page, const SetTable& content, const std::string& what, const std::string& caption)
{
  PageTable table;
  table.Caption = caption;
  table.Columns = { what };
  for (const SetFigure* column : content.Columns)
  {
    table.Columns.emplace_back(column->Name, column->Meaning);
  }
  for (const SetTable::Row& one : content.Rows)
  {
    table.Rows.push_back({ one.Name + (one.Marked ? " *" : "") });
    for (const SetFigure* cell : one.Cells)
    {
      table.Rows.back().push_back(CellOf(cell, one.Cases));
    }
  }
  page.Add(table);
}

void WriteSet(Page& page, const ReportData& data)
{
  const AgreementSummary& all = data.All;
  const bool empty = data.Marked.Cases < all.Cases;
  const std::string over = ": mean and 95 % interval over " +
    (all.Patients < all.Cases ? Counted(static_cast<int64_t>(all.Patients), "patient")
                              : Counted(static_cast<int64_t>(all.Cases), "case"));
  PageTable table;
  table.Caption = "All raters together" + over;
  table.Columns = { "Figure", "Mean", "Lowest", "Highest" };
  if (empty)
  {
    table.Columns.emplace_back("Without empty cases", "Without the cases where nobody marked anything.");
  }
  for (const SetFigure& one : all.Figures)
  {
    table.Rows.push_back(
      { one.Name, CellOf(&one, all.Cases), PageCell(one.Lowest, one.Digits), PageCell(one.Highest, one.Digits) });
    if (empty)
    {
      table.Rows.back().push_back(CellOf(FigureOf(data.Marked.Figures, one.Key), data.Marked.Cases));
    }
  }
  page.Add(table);
  if (empty)
  {
    page.Paragraph(data.Set->EmptyInWords());
  }
  if (!data.Set->UndefinedInWords().empty())
  {
    page.Paragraph(data.Set->UndefinedInWords());
  }
  WriteSetTable(page, RaterTable(all), "Rater", "Each rater" + over);
  for (const std::string& sentence : all.Sentences())
  {
    page.Paragraph(sentence);
  }
  if (data.Raters.size() <= MostRatersInPairs)
  {
    WriteSetTable(page, PairTable(all), "Pair", "Pairs of raters" + over);
  }
  page.Note("A rater who stands out (*) agrees less with the others than they do among themselves: Dice, by " +
    Fixed(RelevantDiceGap, 2) + " or more; one-sided t test, corrected for the number of raters (Holm).");
}

void WriteRegions(Page& page, const ReportData& data)
{
  const AgreementSums& sums = data.Sums;
  for (const auto& levels : sums.Levels)
  {
    PageTable table;
    const size_t raters = levels.second.size();
    table.Caption = "Levels of consensus: how much was marked by how many raters" +
      (sums.Levels.size() > 1 ? " (cases with " + Counted(static_cast<int64_t>(raters), "rater") + ")" : std::string());
    table.Columns = { "Marked by", sums.Heading, "Share of what anybody marked (%)" };
    double all = 0;
    for (const Spread& level : levels.second)
    {
      all += level.Mean();
    }
    for (size_t level = 1; level <= raters; ++level)
    {
      const Spread& one = levels.second[level - 1];
      table.Rows.push_back({ PageCell(static_cast<double>(level), std::to_string(level) + " of " + std::to_string(raters)),
        CellOf(one, 2), PageCell(all > 0 ? 100 * one.Mean() / all : NAN, 1) });
    }
    page.Add(table);
  }
  std::string parts;
  for (size_t i = 0; i < AgreementParts().size(); ++i)
  {
    parts += (parts.empty() ? "" : "; ") + AgreementParts()[i].Name + ": " + data.ExtentText(sums.Parts[i].Mean());
  }
  parts[0] = 'A'; // "Anybody: ..."
  page.Paragraph(
    parts + (data.Cases.size() > 1 ? " (means over cases)." : ".") + (sums.Levels.count(2) ? " " + MajorityRemark(2) : ""));
  if (data.Single.Regions.empty())
  {
    return;
  }
  const size_t shown = std::min<size_t>(10, data.Single.Regions.size());
  const Extent extent(data.Single.Geometry);
  PageTable regions;
  regions.Caption =
    "Largest disputed regions (" + std::to_string(shown) + " of " + std::to_string(data.Single.Regions.size()) + ")";
  regions.Columns = { "#", extent.Heading, extent.PlaceHeading, { "Slice", "the first is 0" }, "Marked by", "Most votes" };
  for (size_t i = 0; i < shown; ++i)
  {
    const rcn_dispute& region = data.Single.Regions[i];
    regions.Rows.push_back({ PageCell(static_cast<double>(i + 1), 0),
      PageCell(static_cast<double>(region.voxels) * extent.PerVoxel, extent.Text(region.voxels)), extent.PlaceOf(region),
      PageCell(static_cast<double>(region.at[2]), 0), JoinNames(NamesOf(region.marked_by, data.Raters)),
      PageCell(region.max_votes, 0) });
  }
  page.Add(regions);
}

} // namespace

void WriteAgreement(Page& page, const ReportData& data)
{
  page.Section(data.SectionId("agreement"), data.SectionHeading("Agreement of the raters"));
  if (data.Raters.size() > 1)
  {
    WriteOverall(page, data);
  }
  if (data.Cases.size() > 1 && data.Raters.size() > 1)
  {
    WriteSet(page, data);
  }
  WriteRaters(page, data);
  WriteRegions(page, data);
}

} // namespace report
} // namespace rcn
