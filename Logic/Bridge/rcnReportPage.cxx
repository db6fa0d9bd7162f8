// SPDX-License-Identifier: Apache-2.0
#include "rcnReportPage.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <set>

#include "rcn/rcn.h"
#include "rcnPlatform.h"
#include "rcnReportParts.h"
#include "rcnSlide.h"

namespace rcn
{

namespace fs = std::filesystem;
using namespace report;

namespace
{

/// Models that were named after their files get a number on an anonymous page.
ReportOptions WithoutNames(const ReportOptions& options)
{
  ReportOptions out = options;
  for (size_t m = 0; m < out.Models.size() && options.Anonymous; ++m)
  {
    ReportModel& model = out.Models[m];
    const std::string& name = model.Name;
    const bool isOfFile = fs::path(model.Predictions).stem() == name || fs::path(model.Predictions).filename() == name;
#ifdef RCN_HAVE_NETWORKS
    const bool isOfModel = fs::path(model.Model).stem() == name;
#else
    const bool isOfModel = false;
#endif
    if (isOfFile || isOfModel)
    {
      model.Name = out.Models.size() > 1 ? "Model " + std::to_string(m + 1) : "the model";
    }
  }
  return out;
}

/// Does the work, and writes the page.
class Report
{
public:
  explicit Report(const ReportOptions& options)
    : Options_(WithoutNames(options)),
      Workspace_(options.Workspace),
      Page_(TitleOf(options)),
      Judge_(this->Options_, this->Workspace_, this->Files_)
  {
  }

  ReportResult Run();

private:
  static std::string TitleOf(const ReportOptions& options)
  {
    return !options.Title.empty()                 ? options.Title
      : options.Data.empty() || options.Anonymous ? "Agreement of the raters"
                                                  : "Agreement of the raters of " + fs::path(options.Data).filename().string();
  }

  void ChooseCases();
  std::vector<int> ReportedStructures() const;
  void Measure(const Case& one);
  void Keep(ReportData& data, const Case& one, const AgreementReport& report);
  /// As they are shown; those of raters need the workspace's case.
  std::string NameOf(const Case& one) const;
  std::vector<std::string> NamesOfRaters() const;
  void Show(double fraction, const std::string& stage);

  /// Of the whole page; what follows is by structure.
  void WriteSummary();
  void WriteStructure(const ReportData& data);
  std::vector<PageTile> SummaryTiles(const ReportData& data) const;
  std::vector<PageTile> StructureTiles() const;
  PageTable StructureTable() const;
  std::vector<std::string> RatersInWords(const ReportData& data) const;
  std::vector<std::string> ModelInWords(const JudgedSeries& series) const;
  /// Raters and models.
  std::vector<std::string> InWords(const ReportData& data) const;
  /// Whether there are two raters to compare.
  static bool HasAgreement(const ReportData& data)
  {
    return data.Raters.size() > 1 && std::isfinite(data.Sums.MeanDice.Mean());
  }
  void WritePictures(const ReportData& data);
  void SaveSlides();
  void WriteCases(const ReportData& data);
  void WriteHow();
  /// The structure that everything is asked about from now on; the only one needs no choice.
  void Select(const ReportData& data)
  {
    if (data.Number)
    {
      this->Workspace_.SelectStructure(data.Number);
    }
  }
  size_t CaseCount() const { return this->Parts_.front()->Cases.size(); }

  const ReportOptions Options_;
  Workspace Workspace_;
  Page Page_;
  DataList List_;
  std::vector<std::string> LeftOut_, Remarks_;
  std::set<std::string> Files_;                    // that were read
  std::vector<std::unique_ptr<ReportData>> Parts_; // one for each structure, at least one
  ModelJudge Judge_;
  double Fraction_ = 0;
  std::string Stage_;
};

void Report::Show(double fraction, const std::string& stage)
{
  this->Fraction_ = fraction;
  this->Stage_ = stage;
  if (this->Options_.Progress && this->Options_.Progress(fraction, stage))
  {
    throw Error(RCN_ECANCELLED, "Canceled.");
  }
}

void Report::Measure(const Case& one)
{
  Case needed = one;
  // A model without predictions of its own has to see the image.
  bool predicts = false;
  for (const ReportModel& model : this->Options_.Models)
  {
    predicts = predicts || model.Predictions.empty();
  }
  if (!predicts && !this->Options_.Data.empty())
  {
    needed.Images.clear(); // only the raters are needed; the only case is drawn as it is in memory
  }
  this->Workspace_.LoadCase(needed, this->List_.Raters);
  std::vector<AgreementReport> reports;
  for (const auto& data : this->Parts_)
  {
    this->Select(*data);
    // Distances need axes at right angles; without them the rest is reported all the same.
    reports.push_back(this->Workspace_.Agree(this->Workspace_.HasRightAngles()));
  }
  this->Judge_.JudgeCase(one); // what throws has thrown: the case counts for all structures
  for (size_t i = 0; i < this->Parts_.size(); ++i)
  {
    this->Select(*this->Parts_[i]);
    this->Keep(*this->Parts_[i], one, reports[i]);
  }
  if (this->Options_.Remark && !this->Workspace_.LabelRemark().empty())
  {
    this->Options_.Remark(this->Workspace_.LabelRemark());
  }
  for (const std::string& remark : this->Workspace_.Remarks())
  {
    if (this->Options_.Anonymous)
    {
      break; // they are about files
    }
    this->Remarks_.push_back((this->Options_.Data.empty() ? "" : one.Id + ": ") + remark);
  }
  this->Files_.insert(one.Images.begin(), one.Images.end());
  for (const RaterFile& rater : one.Raters)
  {
    const std::vector<std::string> files = FilesOf(rater);
    this->Files_.insert(files.begin(), files.end());
  }
}

std::string Report::NameOf(const Case& one) const
{
  const auto isThis = [&one](const Case& other) { return other.Id == one.Id; };
  const auto place = std::find_if(this->List_.Cases.begin(), this->List_.Cases.end(), isThis) - this->List_.Cases.begin();
  return this->Options_.Anonymous ? "Case " + std::to_string(place + 1) : one.Id;
}

std::vector<std::string> Report::NamesOfRaters() const
{
  std::vector<std::string> names = this->Workspace_.RaterNames();
  for (size_t r = 0; r < names.size() && this->Options_.Anonymous; ++r)
  {
    names[r] = "Rater " + std::to_string(r + 1);
  }
  return names;
}

/// What is remembered of the case that the workspace holds.
void Report::Keep(ReportData& data, const Case& one, const AgreementReport& report)
{
  const rcn_agreement& f = *report.Figures;
  const Extent extent(*rcn_votes_geometry(this->Workspace_.Votes()));
  data.Raters = this->NamesOfRaters();
  // Sums and a line per case are kept, not the case: a report over a whole data set needs the memory of one of them.
  data.Sums.Add(f, extent);
  if (!data.Set)
  {
    data.Set.reset(new AgreementSet(data.Raters));
  }
  CaseSummary summary;
  summary.One = one;
  summary.Name = this->NameOf(one);
  Case shown{ summary.Name, one.Split, one.Patient, {}, {}, nullptr };
  data.Set->Add(shown, JsonHandle(AgreementJson(report, this->Workspace_, 0, &data.Raters)).get());
  summary.Raters = f.present_count;
  summary.MeanDice = f.mean_dice;
  summary.Kappa = f.whole.fleiss_kappa;
  summary.UnionKappa = f.on_union.fleiss_kappa;
  summary.DisputedShare = DisputedShare(f);
  summary.Union = static_cast<double>(f.union_voxels) * extent.PerVoxel;
  data.Cases.push_back(summary);
  if (this->Options_.Data.empty())
  {
    data.Single = report;
    data.SingleText = DescribeCase(this->Workspace_);
  }
}

// ---- sections --------------------------------------------------------------------------------------

std::vector<PageTile> Report::SummaryTiles(const ReportData& data) const
{
  const AgreementSums& sums = data.Sums;
  std::vector<PageTile> tiles;
  if (HasAgreement(data))
  {
    tiles.push_back({ "Agreement (Fleiss' κ)", Fixed(sums.Kappa(), 2), rcn_kappa_words(sums.Kappa()) });
    tiles.push_back({ "Overlap of two raters (Dice)", Fixed(sums.MeanDice.Mean(), 2),
      data.Cases.size() > 1 ? "mean over pairs and cases" : "mean over pairs" });
  }
  if (sums.DisputedShare.Count())
  {
    tiles.push_back({ "Disputed", PercentText(sums.DisputedShare.Mean()), "of what anybody marked" });
  }
  if (const JudgedSeries* best = this->Judge_.Best(data.Number))
  {
    // Both: the box around the marks can be nearly all background.
    tiles.push_back({ "Calibration error (MR-ECE)", SmallPercent(best->Reports[0].Figures[RCN_MR_ECE]),
      (best->HasReport[1] ? "around the marks; near the contour " + SmallPercent(best->Reports[1].Figures[RCN_MR_ECE]) + "; "
                          : "") +
        best->Name });
  }
  return tiles;
}

/// Means over structures, which count equally.
std::vector<PageTile> Report::StructureTiles() const
{
  // A structure that a model was not judged on does not count for its mean.
  Spread dice, disputed, error;
  for (const auto& data : this->Parts_)
  {
    dice.Add(data->Sums.MeanDice.Mean());
    disputed.Add(data->Sums.DisputedShare.Mean());
    const JudgedSeries* best = this->Judge_.Best(data->Number);
    error.Add(best ? best->Reports[0].Figures[RCN_MR_ECE] : NAN);
  }
  std::vector<PageTile> tiles = { { "Structures", std::to_string(this->Parts_.size()),
    JoinNames(NamesOf(this->List_.Structures)) } };
  if (dice.Count() && this->Parts_.front()->Raters.size() > 1)
  {
    tiles.push_back({ "Overlap of two raters (Dice)", Fixed(dice.Mean(), 2), "mean over structures" });
  }
  if (disputed.Count())
  {
    tiles.push_back({ "Disputed", PercentText(disputed.Mean()), "of what anybody marked; mean over structures" });
  }
  if (error.Count())
  {
    tiles.push_back({ "Calibration error (MR-ECE)", SmallPercent(error.Mean()), "around the marks; mean over structures" });
  }
  return tiles;
}

PageTable Report::StructureTable() const
{
  PageTable table;
  table.Caption = "Each structure";
  table.Columns = { "Structure", { "Mean Dice", "of two raters" }, { "Fleiss' κ", "whole image" },
    { "Disputed (%)", "of what anybody marked" },
    { this->Parts_.front()->Sums.Heading, "of what anybody marked, mean over cases" } };
  const bool models = !this->Options_.Models.empty();
  if (models)
  {
    table.Columns.emplace_back("MR-ECE (%)", "around the marks, of the model and readout with the smallest");
    table.Columns.emplace_back("Model");
  }
  for (const auto& data : this->Parts_)
  {
    const AgreementSums& sums = data->Sums;
    const bool several = HasAgreement(*data);
    Spread extent;
    std::for_each(data->Cases.begin(), data->Cases.end(), [&extent](const CaseSummary& one) { extent.Add(one.Union); });
    table.Rows.push_back(
      { data->Structure, PageCell(several ? sums.MeanDice.Mean() : NAN, 3), PageCell(several ? sums.Kappa() : NAN, 3),
        PageCell(100 * sums.DisputedShare.Mean(), 1), PageCell(sums.MixedExtents ? NAN : extent.Mean(), 2) });
    const JudgedSeries* best = this->Judge_.Best(data->Number);
    if (models)
    {
      table.Rows.back().emplace_back(best ? 100 * best->Reports[0].Figures[RCN_MR_ECE] : NAN, 2);
      table.Rows.back().emplace_back(best ? best->Name : "–");
    }
  }
  return table;
}

/// What the raters did, in sentences.
std::vector<std::string> Report::RatersInWords(const ReportData& data) const
{
  const AgreementSums& sums = data.Sums;
  const std::vector<std::string>& names = data.Raters;
  std::vector<std::string> lines = { this->Options_.Data.empty() ? "One case: " + data.SingleText + "."
                                                                 : Counted(static_cast<int64_t>(names.size()), "rater") +
        " outlined " + Counted(static_cast<int64_t>(data.Cases.size()), "case") + "." };
  if (HasAgreement(data))
  {
    lines.push_back("Two raters overlap with a Dice of " + Fixed(sums.MeanDice.Mean(), 2) +
      " on average. Corrected for chance, their agreement is " + rcn_kappa_words(sums.Kappa()) + " (Fleiss' κ " +
      Fixed(sums.Kappa(), 2) + ", Krippendorff's α " + Fixed(sums.Alpha(), 2) + ").");
    // Who marks most and who least is said only where extents can be compared: area and volume, or pixels and milliliters, do
    // not mix.
    size_t most = 0, least = 0;
    for (size_t r = 0; r < sums.Raters.size(); ++r)
    {
      const double extent = sums.Raters[r].Extent.Mean();
      most = extent > sums.Raters[most].Extent.Mean() || !sums.Raters[most].Extent.Count() ? r : most;
      least = extent < sums.Raters[least].Extent.Mean() || !sums.Raters[least].Extent.Count() ? r : least;
    }
    if (most != least && !sums.MixedExtents)
    {
      lines.push_back(names[most] + " marks most (" + data.ExtentText(sums.Raters[most].Extent.Mean()) + "), " + names[least] +
        " least (" + data.ExtentText(sums.Raters[least].Extent.Mean()) + ").");
    }
  }
  for (const SetRater& rater : data.All.Raters)
  {
    if (rater.StandsOut)
    {
      lines.push_back(rater.Sentence);
    }
  }
  if (sums.DisputedShare.Count())
  {
    lines.push_back(sums.DisputedShare.Mean() > 0
        ? PercentText(sums.DisputedShare.Mean()) + " of what anybody marked is disputed: some raters marked it, others did not."
        : "Nothing is disputed: all raters marked the same voxels.");
  }
  return lines;
}

/// How far a model is off, in sentences.
std::vector<std::string> Report::ModelInWords(const JudgedSeries& series) const
{
  const EvaluationReport& report = series.Reports[0];
  const rcn_interval& interval = report.Interval[RCN_MR_ECE];
  std::vector<std::string> lines = { series.Name + ": around the marks its probabilities differ from the share of raters by " +
    SmallPercent(report.Figures[RCN_MR_ECE]) + " on average" +
    (interval.units > 0 && std::isfinite(interval.low)
        ? " (95 %: " + SmallPercent(interval.low) + " to " + SmallPercent(interval.high) + ")"
        : "") +
    (series.HasReport[1] ? ", near the contour by " + SmallPercent(series.Reports[1].Figures[RCN_MR_ECE]) : "") + ". " +
    WorstBinInWords(report) };
  EvaluationReport shown = report;
  for (std::vector<std::string>* ids : { &shown.EmptyCases, &shown.CircularCases })
  {
    for (std::string& id : *ids)
    {
      const auto isThis = [&id](const Case& one) { return one.Id == id; };
      const auto found = std::find_if(this->List_.Cases.begin(), this->List_.Cases.end(), isThis);
      id = found == this->List_.Cases.end() ? id : this->NameOf(*found);
    }
  }
  for (const std::string& remark : RemarksInWords(shown))
  {
    lines.push_back(series.Name + ": " + remark);
  }
  return lines;
}

std::vector<std::string> Report::InWords(const ReportData& data) const
{
  std::vector<std::string> lines = this->RatersInWords(data);
  for (const JudgedSeries& series : this->Judge_.Series(data.Number))
  {
    if (series.HasReport[0])
    {
      const std::vector<std::string> more = this->ModelInWords(series);
      lines.insert(lines.end(), more.begin(), more.end());
    }
  }
  return lines;
}

void Report::WriteSummary()
{
  Page& page = this->Page_;
  const bool several = this->Parts_.size() > 1;
  page.SetSubtitle(Counted(static_cast<int64_t>(this->Parts_.front()->Raters.size()), "rater") + ", " +
    Counted(static_cast<int64_t>(this->CaseCount()), "case") +
    (this->Options_.Split.empty() ? "" : " (" + this->Options_.Split + ")") +
    (several                                      ? ", " + Counted(static_cast<int64_t>(this->Parts_.size()), "structure")
        : this->Parts_.front()->Structure.empty() ? ""
                                                  : ", structure " + this->Parts_.front()->Structure) +
    (this->Options_.Models.empty() ? "" : ", " + Counted(static_cast<int64_t>(this->Options_.Models.size()), "model")));
  page.Section("summary", "Summary");
  std::vector<std::string> lines;
  if (several)
  {
    page.Tiles(this->StructureTiles());
    page.Add(this->StructureTable());
  }
  else
  {
    page.Tiles(this->SummaryTiles(*this->Parts_.front()));
    lines = this->InWords(*this->Parts_.front());
  }
  lines.insert(lines.end(), this->LeftOut_.begin(), this->LeftOut_.end());
  if (!lines.empty())
  {
    page.List(lines);
  }
}

void Report::WriteStructure(const ReportData& data)
{
  if (this->Parts_.size() > 1)
  {
    this->Page_.Section(data.SectionId("summary"), data.SectionHeading("Summary"), true);
    this->Page_.Tiles(this->SummaryTiles(data));
    this->Page_.List(this->InWords(data));
  }
  WriteAgreement(this->Page_, data);
  this->WritePictures(data);
  WriteModels(this->Page_, data, this->Judge_);
  this->WriteCases(data);
}

void Report::WriteCases(const ReportData& data)
{
  if (data.Cases.size() < 2)
  {
    return;
  }
  this->Page_.Section(data.SectionId("cases"), data.SectionHeading("Case by case"));
  PageTable table;
  table.Caption = "Click on a heading to sort";
  table.Columns = { "Case", "Split", "Raters", { "Mean Dice", "of two raters" }, { "Fleiss' κ", "whole image" },
    { "κ where marked", "where anybody marked" }, { "Disputed (%)", "of what anybody marked" },
    { data.Sums.Heading, "of what anybody marked" } };
  for (const JudgedSeries& series : this->Judge_.Series(data.Number))
  {
    table.Columns.emplace_back("MR-ECE (%), " + series.Name, "around the marks");
  }
  for (const CaseSummary& one : data.Cases)
  {
    table.Rows.push_back({ one.Name, one.One.Split, PageCell(one.Raters, 0), PageCell(one.MeanDice, 3), PageCell(one.Kappa, 3),
      PageCell(one.UnionKappa, 3), PageCell(100 * one.DisputedShare, 1), PageCell(one.Union, 2) });
    for (const JudgedSeries& series : this->Judge_.Series(data.Number))
    {
      // A case can be missing there: it may have nothing in the region.
      const std::vector<std::string>& ids = series.Judges[0]->CaseIds();
      const auto found = std::find(ids.begin(), ids.end(), one.One.Id);
      table.Rows.back().emplace_back(
        found == ids.end() ? NAN : 100 * series.Judges[0]->CaseFigures(static_cast<size_t>(found - ids.begin()))[RCN_MR_ECE],
        2);
    }
  }
  this->Page_.Add(table);
}

void Report::WritePictures(const ReportData& data)
{
  std::vector<size_t> order(data.Cases.size());
  for (size_t i = 0; i < order.size(); ++i)
  {
    order[i] = i;
  }
  const auto share = [&data](
                       size_t i) { return std::isfinite(data.Cases[i].DisputedShare) ? data.Cases[i].DisputedShare : -1; };
  // Most disputed first; cases without a share (nothing marked) last, in the order of the list.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return share(a) > share(b); });
  order.resize(std::min(order.size(), this->Options_.Pictures));
  if (order.empty())
  {
    return;
  }
  this->Page_.Section(data.SectionId("pictures"), data.SectionHeading("Where they disagree"));
  this->Page_.Note(std::string(data.Cases.size() > order.size() ? "The most disputed cases: " + std::to_string(order.size()) +
                         " of " + std::to_string(data.Cases.size()) + ". "
                                                                : "") +
    "Point at an outline or area to see what it is. Pictures are cropped to the marks and their surroundings.");
  for (size_t i = 0; i < order.size(); ++i)
  {
    const CaseSummary& one = data.Cases[order[i]];
    const double part = this->Parts_.size() > 1 ? data.Number - 1 : 0;
    const double drawn = part + static_cast<double>(i) / static_cast<double>(order.size());
    this->Show(0.8 + 0.2 * drawn / static_cast<double>(this->Parts_.size()), "drawing " + one.One.Id);
    if (!this->Options_.Data.empty())
    {
      // Only those that are drawn are read a second time, instead of keeping all images in memory.
      this->Workspace_.LoadCase(one.One, this->List_.Raters);
    }
    this->Select(data);
    WriteCasePictures(this->Page_, this->Workspace_, one, data.Raters, this->Judge_, this->Options_);
  }
}

void Report::SaveSlides()
{
  if (this->Options_.Slides.empty())
  {
    return;
  }
  const ReportData& data = *this->Parts_.front(); // one of several structures is chosen before
  const CaseSummary& one = data.Cases.front();
  this->Select(data);
  SlideOptions slide((SliceSubject(this->Workspace_)));
  slide.Subject.Raters = &data.Raters;
  slide.Title = !this->Options_.Title.empty()                       ? this->Options_.Title
    : this->Options_.Anonymous || this->Options_.One.Images.empty() ? ""
                                                                    : StemOf(this->Options_.One.Images.front());
  slide.Words = { "Mean Dice of two raters " + Fixed(one.MeanDice, 2) + "; " + PercentText(one.DisputedShare) +
    " of what anybody marked is disputed." };
  Volume prediction;
  if (!this->Options_.Models.empty())
  {
    prediction = this->Judge_.MapOf(this->Judge_.PredictionOf(0, one.One));
    const rcn_calib_options shown = this->Judge_.ReadoutFor(0, this->Options_.Readout).Calib;
    slide.Prediction = &prediction;
    slide.Readout = shown.readout;
    slide.AtLeast = shown.at_least;
    slide.Words.push_back("Predicted by " + this->Options_.Models.front().Name + ".");
  }
  const Figure figure = SlideFigure(slide);
  for (const std::string& path : this->Options_.Slides)
  {
    figure.Save(path, 1);
  }
}

void Report::WriteHow()
{
  Page& page = this->Page_;
  page.Section("how", "How this was made");
  page.Paragraph("RaterConsensus " RCN_VERSION ", " + TimeText(std::time(nullptr)) +
    ". Intervals: jackknife over patients or cases, "
    "Student's t. The same files and options give the same figures.");
  if (!this->Options_.Command.empty() && !this->Options_.Anonymous)
  {
    page.Code(this->Options_.Command);
  }
#ifdef RCN_HAVE_NETWORKS
  for (size_t m = 0; m < this->Judge_.Models().size(); ++m)
  {
    if (!this->Judge_.Models()[m])
    {
      continue;
    }
    const Model& model = *this->Judge_.Models()[m];
    PageTable table;
    table.Caption = "Model " + this->Options_.Models[m].Name;
    table.Columns = { "What", "Value" };
    for (const auto& row : RecordRows(RecordOf(this->Workspace_.Context(), model), this->Options_.Anonymous))
    {
      table.Rows.push_back({ row.first, row.second });
    }
    page.Add(table);
  }
#endif
  for (const std::string& remark : this->Remarks_)
  {
    page.Note(remark);
  }
  if (this->Options_.Anonymous)
  {
    return;
  }
  if (platform::StatusOf(this->Options_.Data).IsOrdinary) // it may also be the name of what is open in a window
  {
    this->Files_.insert(this->Options_.Data);
  }
  // Sizes and dates of the files, so that somebody else can tell whether he has the same ones.
  PageTable files;
  files.Caption = "Files read";
  files.Columns = { "File", "Bytes", "Changed" };
  for (const std::string& file : this->Files_)
  {
    const platform::FileStatus status = platform::StatusOf(file);
    files.Rows.push_back(
      { file, PageCell(status.IsOrdinary ? status.Bytes : NAN, 0), status.Exists ? TimeText(status.Modified) : "–" });
  }
  page.Add(files);
}

// ---- all of it -------------------------------------------------------------------------------------

void Report::ChooseCases()
{
  if (!this->Options_.Data.empty())
  {
    DataList list = this->Options_.List ? *this->Options_.List : ReadDataList(this->Options_.Data);
    const std::string unrated = LeaveOutUnrated(list, this->Options_.Split);
    if (this->Options_.Remark && !unrated.empty())
    {
      this->Options_.Remark(unrated);
    }
    this->List_.Raters = list.Raters;
    this->List_.Structures = list.Structures;
    for (const Case& one : list.Cases)
    {
      if (this->Options_.Split.empty() || one.Split == this->Options_.Split)
      {
        this->List_.Cases.push_back(one);
      }
    }
    if (this->List_.Cases.empty())
    {
      throw Error(RCN_EINVALID,
        this->Options_.Data + " has no case" +
          (this->Options_.Split.empty() ? "." : " in the split " + this->Options_.Split + "."),
        this->Options_.Split.empty() ? "" : "split");
    }
  }
  else
  {
    this->List_.Cases.push_back(this->Options_.One);
    this->List_.Structures = this->Options_.One.Structures;
  }
  for (const int number : this->ReportedStructures())
  {
    this->Parts_.emplace_back(new ReportData(this->Options_));
    this->Parts_.back()->Number = number;
    this->Parts_.back()->Structure = number ? this->List_.Structures[static_cast<size_t>(number) - 1].Name : "";
  }
}

/// By number; 0 is the only one.
std::vector<int> Report::ReportedStructures() const
{
  if (!this->List_.HasStructures())
  {
    return { 0 };
  }
  if (!this->Options_.Structure.empty())
  {
    return { FindStructure(this->List_.Structures, this->Options_.Structure) };
  }
  std::vector<int> all(this->List_.Structures.size());
  std::iota(all.begin(), all.end(), 1);
  return all;
}

ReportResult Report::Run()
{
  this->ChooseCases();
  this->Workspace_.SetProgress(
    [this](double, const char*) { return this->Options_.Progress && this->Options_.Progress(this->Fraction_, this->Stage_); });
  this->Judge_.ReadModels(this->List_.Structures, this->ReportedStructures());
  ReportResult result;
  const size_t count = this->List_.Cases.size();
  for (size_t i = 0; i < count; ++i)
  {
    const Case& one = this->List_.Cases[i];
    this->Show(0.8 * static_cast<double>(i) / static_cast<double>(count), "case " + one.Id);
    try
    {
      this->Measure(one);
    }
    catch (const Error& error)
    {
      // The only case, or what the next case would meet as well.
      if (this->Options_.Data.empty() || error.Status() == RCN_ECANCELLED || error.Status() == RCN_ENOMEM ||
        error.Status() == RCN_EINVALID)
      {
        throw;
      }
      const std::string sentence = "Case " + one.Id + " was left out: " + error.what();
      this->LeftOut_.push_back(this->Options_.Anonymous ? this->NameOf(one) + " was left out." : sentence);
      const auto& tell = this->Options_.Warn ? this->Options_.Warn : this->Options_.Remark;
      if (tell)
      {
        tell(sentence);
      }
    }
  }
  if (this->CaseCount() == 0)
  {
    throw Error(RCN_EDATA, this->Options_.Data + ": no case can be used.");
  }
  // Figures of all cases together, with their intervals: only now is everybody in.
  this->Judge_.Finish([this](const std::string& stage) { this->Show(0.8, stage); });
  result.Cases = this->CaseCount();
  result.LeftOut = this->LeftOut_.size();
  this->SaveSlides();
  if (this->Options_.Output.empty())
  {
    return result;
  }
  for (const auto& data : this->Parts_)
  {
    data->All = data->Set->Summarize(this->Workspace_.Context());
    data->Marked = data->Set->Summarize(this->Workspace_.Context(), SetCases::Marked);
  }
  this->WriteSummary();
  for (const auto& data : this->Parts_)
  {
    this->WriteStructure(*data);
  }
  this->WriteHow();
  this->Show(1, "writing");
  WriteText(this->Options_.Output, this->Page_.Html());
  return result;
}

} // namespace

void report::CheckReportFiles(const std::string& page, const std::vector<std::string>& slides)
{
  if (page.empty() && slides.empty())
  {
    throw Error(RCN_EINVALID, "The report needs an output file (.html).", "output");
  }
  std::string sentence = page.empty() ? "" : CheckText(page);
  for (const std::string& slide : slides)
  {
    sentence = sentence.empty() ? Figure::CheckPath(slide) : sentence;
    sentence = sentence.empty() ? CheckText(slide) : sentence;
  }
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
}

namespace
{

/// Throws Error for options that cannot make a report, before any work.
void CheckOptions(const ReportOptions& options)
{
  CheckReportFiles(options.Output, options.Slides);
  if (!options.Slides.empty() && !options.Data.empty())
  {
    throw Error(RCN_EINVALID, "Slides need a single case, not a data list.", "input");
  }
  if (!options.Slides.empty() && options.One.HasStructures() && options.Structure.empty())
  {
    throw Error(RCN_EINVALID, "Slides need a single structure.", "structure");
  }
  // Both or none.
  if (options.Data.empty() == options.One.Raters.empty())
  {
    throw Error(RCN_EINVALID, "A report needs either one case or a data list.", "input");
  }
  rcn_readout readout;
  int atLeast;
  if (!options.Readout.empty() && !ParseReadout(readout, atLeast, options.Readout))
  {
    throw Error(
      RCN_EINVALID, std::string("The readout must be ") + ReadoutChoices + ", not '" + options.Readout + "'.", "readout");
  }
  std::set<std::string> names;
  for (const ReportModel& model : options.Models)
  {
    std::error_code ignored;
    if (model.Name.empty() || (model.Predictions.empty() && model.Model.empty()))
    {
      throw Error(RCN_EINVALID, "A model needs a name and its predictions.", "predictions");
    }
    if (!names.insert(model.Name).second)
    {
      throw Error(RCN_EINVALID, "The model " + model.Name + " is named twice; give each a different name.");
    }
    const bool isFolder = fs::is_directory(model.Predictions, ignored);
    if (!options.Data.empty() && !model.Predictions.empty() && !isFolder)
    {
      throw Error(RCN_EINVALID, model.Predictions + " is not a folder of predictions.");
    }
    if (options.Data.empty() && isFolder)
    {
      throw Error(RCN_EINVALID, model.Predictions + " is a folder; for one case, give the file of the prediction.");
    }
#ifndef RCN_HAVE_NETWORKS
    if (!model.Model.empty())
    {
      throw Error(RCN_EINVALID, model.Model + ": this program was built without networks and cannot read a model.");
    }
#endif
  }
}

} // namespace

ReportResult WriteReport(const ReportOptions& options)
{
  CheckOptions(options);
  return Report(options).Run();
}

} // namespace rcn
