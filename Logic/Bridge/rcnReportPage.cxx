// SPDX-License-Identifier: Apache-2.0
#include "rcnReportPage.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
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

/// Does the work, and writes the page.
class Report
{
public:
  explicit Report(const ReportOptions& options)
    : Options_(options),
      Workspace_(options.Workspace),
      Page_(TitleOf(options)),
      Data_(this->Options_),
      Judge_(this->Options_, this->Workspace_, this->Data_.Files)
  {
  }

  ReportResult Run();

private:
  static std::string TitleOf(const ReportOptions& options)
  {
    return !options.Title.empty() ? options.Title
      : options.Data.empty()      ? "Agreement of the raters"
                                  : "Agreement of the raters of " + fs::path(options.Data).filename().string();
  }

  void ChooseCases();
  void Measure(const Case& one);
  void Show(double fraction, const std::string& stage);

  void WriteSummary();
  std::vector<PageTile> SummaryTiles() const;
  std::vector<std::string> RatersInWords() const;
  std::vector<std::string> ModelInWords(const JudgedSeries& series) const;
  /// Whether there are two raters to compare.
  bool HasAgreement() const { return this->Data_.Raters.size() > 1 && std::isfinite(this->Data_.Sums.MeanDice.Mean()); }
  void WritePictures();
  void SaveSlides();
  void WriteCases();
  void WriteHow();

  const ReportOptions Options_;
  Workspace Workspace_;
  Page Page_;
  DataList List_;
  std::vector<std::string> LeftOut_, Remarks_;
  ReportData Data_;
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
  bool predicts = false;
  for (const ReportModel& model : this->Options_.Models)
  {
    predicts = predicts || model.Predictions.empty();
  }
  if (!predicts)
  {
    needed.Images.clear(); // only the raters are needed
  }
  this->Workspace_.LoadCase(needed, this->List_.Raters);
  this->Data_.Raters = this->Workspace_.RaterNames();
  const AgreementReport report = this->Workspace_.Agree(this->Options_.Surfaces);
  this->Judge_.JudgeCase(one);
  const rcn_agreement& f = *report.Figures;
  const Extent extent(*rcn_votes_geometry(this->Workspace_.Votes()));
  this->Data_.Sums.Add(f, extent);
  if (!this->Data_.Set)
  {
    this->Data_.Set.reset(new AgreementSet(this->Data_.Raters));
  }
  this->Data_.Set->Add(one, JsonHandle(AgreementJson(report, this->Workspace_, 0)).get());
  CaseSummary summary;
  summary.One = one;
  summary.Raters = f.present_count;
  summary.MeanDice = f.mean_dice;
  summary.Kappa = f.whole.fleiss_kappa;
  summary.UnionKappa = f.on_union.fleiss_kappa;
  summary.DisputedShare = DisputedShare(f);
  summary.Union = static_cast<double>(f.union_voxels) * extent.PerVoxel;
  this->Data_.Cases.push_back(summary);
  if (this->Options_.Remark && !this->Workspace_.LabelRemark().empty())
  {
    this->Options_.Remark(this->Workspace_.LabelRemark());
  }
  for (const std::string& remark : this->Workspace_.Remarks())
  {
    this->Remarks_.push_back((this->Options_.Data.empty() ? "" : one.Id + ": ") + remark);
  }
  if (this->Options_.Data.empty())
  {
    this->Data_.Single = report;
    this->Data_.SingleText = DescribeCase(this->Workspace_);
  }
  this->Data_.Files.insert(one.Images.begin(), one.Images.end());
  for (const RaterFile& rater : one.Raters)
  {
    this->Data_.Files.insert(rater.Path);
  }
}

// ---- sections --------------------------------------------------------------------------------------

std::vector<PageTile> Report::SummaryTiles() const
{
  const AgreementSums& sums = this->Data_.Sums;
  std::vector<PageTile> tiles;
  if (this->HasAgreement())
  {
    tiles.push_back({ "Agreement (Fleiss' κ)", Fixed(sums.Kappa(), 2), rcn_kappa_words(sums.Kappa()) });
    tiles.push_back({ "Overlap of two raters (Dice)", Fixed(sums.MeanDice.Mean(), 2),
      this->Data_.Cases.size() > 1 ? "mean over pairs and cases" : "mean over pairs" });
  }
  if (sums.DisputedShare.Count())
  {
    tiles.push_back({ "Disputed", PercentText(sums.DisputedShare.Mean()), "of what anybody marked" });
  }
  if (const JudgedSeries* best = this->Judge_.Best())
  {
    // Both: the box around the marks can be nearly all background.
    tiles.push_back({ "Probabilities off by (MR-ECE)", SmallPercent(best->Reports[0].Figures[RCN_MR_ECE]),
      (best->HasReport[1] ? "around the marks; near the contour " + SmallPercent(best->Reports[1].Figures[RCN_MR_ECE]) + "; "
                          : "") +
        best->Name });
  }
  return tiles;
}

/// What the raters did, in sentences.
std::vector<std::string> Report::RatersInWords() const
{
  const AgreementSums& sums = this->Data_.Sums;
  const std::vector<std::string>& names = this->Data_.Raters;
  std::vector<std::string> lines = { this->Options_.Data.empty() ? "One case: " + this->Data_.SingleText + "."
                                                                 : Counted(static_cast<int64_t>(names.size()), "rater") +
        " outlined " + Counted(static_cast<int64_t>(this->Data_.Cases.size()), "case") + "." };
  if (this->HasAgreement())
  {
    lines.push_back("Two raters overlap with a Dice of " + Fixed(sums.MeanDice.Mean(), 2) +
      " on average. Corrected for chance, their agreement is " + rcn_kappa_words(sums.Kappa()) + " (Fleiss' κ " +
      Fixed(sums.Kappa(), 2) + ", Krippendorff's α " + Fixed(sums.Alpha(), 2) + ").");
    size_t most = 0, least = 0;
    for (size_t r = 0; r < sums.Raters.size(); ++r)
    {
      const double extent = sums.Raters[r].Extent.Mean();
      most = extent > sums.Raters[most].Extent.Mean() || !sums.Raters[most].Extent.Count() ? r : most;
      least = extent < sums.Raters[least].Extent.Mean() || !sums.Raters[least].Extent.Count() ? r : least;
    }
    if (most != least && !sums.MixedExtents)
    {
      lines.push_back(names[most] + " marks most (" + this->Data_.ExtentText(sums.Raters[most].Extent.Mean()) + "), " +
        names[least] + " least (" + this->Data_.ExtentText(sums.Raters[least].Extent.Mean()) + ").");
    }
  }
  for (const SetRater& rater : this->Data_.All.Raters)
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
  std::vector<std::string> lines = { series.Name + ": around the marks its probabilities are off by " +
    SmallPercent(report.Figures[RCN_MR_ECE]) + " on average" +
    (interval.units > 0 && std::isfinite(interval.low)
        ? " (95 %: " + SmallPercent(interval.low) + " to " + SmallPercent(interval.high) + ")"
        : "") +
    (series.HasReport[1] ? ", near the contour by " + SmallPercent(series.Reports[1].Figures[RCN_MR_ECE]) : "") + ". " +
    WorstBinInWords(report) };
  for (const std::string& remark : RemarksInWords(report))
  {
    lines.push_back(series.Name + ": " + remark);
  }
  return lines;
}

void Report::WriteSummary()
{
  Page& page = this->Page_;
  page.SetSubtitle(Counted(static_cast<int64_t>(this->Data_.Raters.size()), "rater") + ", " +
    Counted(static_cast<int64_t>(this->Data_.Cases.size()), "case") +
    (this->Options_.Split.empty() ? "" : " (" + this->Options_.Split + ")") +
    (this->Options_.Models.empty() ? "" : ", " + Counted(static_cast<int64_t>(this->Options_.Models.size()), "model")));
  page.Section("summary", "Summary");
  page.Tiles(this->SummaryTiles());
  std::vector<std::string> lines = this->RatersInWords();
  for (const JudgedSeries& series : this->Judge_.Series())
  {
    if (series.HasReport[0])
    {
      const std::vector<std::string> more = this->ModelInWords(series);
      lines.insert(lines.end(), more.begin(), more.end());
    }
  }
  lines.insert(lines.end(), this->LeftOut_.begin(), this->LeftOut_.end());
  page.List(lines);
}

void Report::WriteCases()
{
  if (this->Data_.Cases.size() < 2)
  {
    return;
  }
  this->Page_.Section("cases", "Case by case");
  PageTable table;
  table.Caption = "Click on a heading to sort";
  table.Columns = { "Case", "Split", "Raters", { "Mean Dice", "of two raters" }, { "Fleiss' κ", "whole image" },
    { "κ where marked", "where anybody marked" }, { "Disputed (%)", "of what anybody marked" },
    { this->Data_.Sums.Heading, "of what anybody marked" } };
  for (const JudgedSeries& series : this->Judge_.Series())
  {
    table.Columns.emplace_back("MR-ECE (%), " + series.Name, "around the marks");
  }
  for (const CaseSummary& one : this->Data_.Cases)
  {
    table.Rows.push_back({ one.One.Id, one.One.Split, PageCell(one.Raters, 0), PageCell(one.MeanDice, 3),
      PageCell(one.Kappa, 3), PageCell(one.UnionKappa, 3), PageCell(100 * one.DisputedShare, 1), PageCell(one.Union, 2) });
    for (const JudgedSeries& series : this->Judge_.Series())
    {
      const std::vector<std::string>& ids = series.Judges[0]->CaseIds();
      const auto found = std::find(ids.begin(), ids.end(), one.One.Id);
      table.Rows.back().emplace_back(
        found == ids.end() ? NAN : 100 * series.Judges[0]->CaseFigures(static_cast<size_t>(found - ids.begin()))[RCN_MR_ECE],
        2);
    }
  }
  this->Page_.Add(table);
}

void Report::WritePictures()
{
  std::vector<size_t> order(this->Data_.Cases.size());
  for (size_t i = 0; i < order.size(); ++i)
  {
    order[i] = i;
  }
  const auto share = [this](size_t i) {
    return std::isfinite(this->Data_.Cases[i].DisputedShare) ? this->Data_.Cases[i].DisputedShare : -1;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return share(a) > share(b); });
  order.resize(std::min(order.size(), this->Options_.Pictures));
  if (order.empty())
  {
    return;
  }
  this->Page_.Section("pictures", "Where they disagree");
  this->Page_.Note(
    std::string(this->Data_.Cases.size() > order.size()
        ? "The most disputed cases: " + std::to_string(order.size()) + " of " + std::to_string(this->Data_.Cases.size()) + ". "
        : "") +
    "Outlines and areas show their meaning when the pointer rests on them. Pictures are cut to what raters marked and what is "
    "around it.");
  for (size_t i = 0; i < order.size(); ++i)
  {
    const CaseSummary& one = this->Data_.Cases[order[i]];
    this->Show(0.8 + 0.2 * static_cast<double>(i) / static_cast<double>(order.size()), "drawing " + one.One.Id);
    this->Workspace_.LoadCase(one.One, this->List_.Raters);
    WriteCasePictures(this->Page_, this->Workspace_, one, this->Judge_, this->Options_);
  }
}

void Report::SaveSlides()
{
  if (this->Options_.Slides.empty())
  {
    return;
  }
  const CaseSummary& one = this->Data_.Cases.front();
  this->Workspace_.LoadCase(one.One, this->List_.Raters); // with its image
  SlideOptions slide((SliceSubject(this->Workspace_)));
  slide.Title = this->Options_.Title.empty() ? one.One.Id : this->Options_.Title;
  slide.Words = { "Mean Dice of two raters " + Fixed(one.MeanDice, 2) + "; " + PercentText(one.DisputedShare) +
    " of what anybody marked is disputed." };
  Volume prediction;
  if (!this->Options_.Models.empty())
  {
    prediction = this->Judge_.PredictionOf(0, one.One);
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
  if (!this->Options_.Command.empty())
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
    for (const auto& row : RecordRows(RecordOf(this->Workspace_.Context(), model)))
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
  if (!this->Options_.Data.empty() && !this->Options_.List)
  {
    this->Data_.Files.insert(this->Options_.Data);
  }
  PageTable files;
  files.Caption = "Files read";
  files.Columns = { "File", "Bytes", "Changed" };
  for (const std::string& file : this->Data_.Files)
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
    const DataList list = this->Options_.List ? *this->Options_.List : ReadDataList(this->Options_.Data);
    this->List_.Raters = list.Raters;
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
          (this->Options_.Split.empty() ? "." : " in the split " + this->Options_.Split + "."));
    }
  }
  else
  {
    this->List_.Cases.push_back(this->Options_.One);
  }
}

ReportResult Report::Run()
{
  this->ChooseCases();
  this->Workspace_.SetProgress(
    [this](double, const char*) { return this->Options_.Progress && this->Options_.Progress(this->Fraction_, this->Stage_); });
  this->Judge_.ReadModels();
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
      if (this->Options_.Data.empty() || error.Status() == RCN_ECANCELLED || error.Status() == RCN_ENOMEM ||
        error.Status() == RCN_EINVALID)
      {
        throw;
      }
      this->LeftOut_.push_back("Case " + one.Id + " was left out: " + error.what());
      const auto& tell = this->Options_.Warn ? this->Options_.Warn : this->Options_.Remark;
      if (tell)
      {
        tell(this->LeftOut_.back());
      }
    }
  }
  if (this->Data_.Cases.empty())
  {
    throw Error(RCN_EDATA, this->Options_.Data + ": no case can be used.");
  }
  this->Judge_.Finish([this](const std::string& stage) { this->Show(0.8, stage); });
  result.Cases = this->Data_.Cases.size();
  result.LeftOut = this->LeftOut_.size();
  this->SaveSlides();
  if (this->Options_.Output.empty())
  {
    return result;
  }
  this->Data_.All = this->Data_.Set->Summarize(this->Workspace_.Context());
  this->Data_.Marked = this->Data_.Set->Summarize(this->Workspace_.Context(), SetCases::Marked);
  this->WriteSummary();
  WriteAgreement(this->Page_, this->Data_);
  this->WritePictures();
  WriteModels(this->Page_, this->Data_, this->Judge_);
  this->WriteCases();
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
    throw Error(RCN_EINVALID, "A picture for a slide is of one case, not of a data list.", "input");
  }
  if (options.Data.empty() == options.One.Raters.empty())
  {
    throw Error(RCN_EINVALID, "A report is about either one case or a data list.", "input");
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
      throw Error(RCN_EINVALID, "The model " + model.Name + " is named twice; give each another name.");
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
