// SPDX-License-Identifier: Apache-2.0
#include "rcnReportPatient.h"

#include <algorithm>
#include <cmath>

#include "rcn/rcn.h"
#include "rcnReportParts.h"
#include "rcnSlide.h"

namespace rcn
{

using namespace report;

namespace
{

#ifdef RCN_HAVE_NETWORKS

/// A small chart: how much is expected and unsure in each slice, and which slices are shown.
Figure ProfileFigure(const std::vector<rcn_slice_expectation>& slices, const std::vector<int64_t>& shown, const Extent& area)
{
  // In units of the figure; the margin on the left holds the largest number.
  const double left = 76, top = 26, width = 860, height = 74, step = width / static_cast<double>(slices.size());
  double most = 0;
  for (const rcn_slice_expectation& slice : slices)
  {
    most = std::max({ most, slice.expected, static_cast<double>(slice.unsure) });
  }
  // Nothing is expected anywhere: an empty chart, not a division by zero.
  most = most > 0 ? most : 1;
  Figure figure(960, 132, "Slice by slice", "Expected and unsure area of each slice, with the slices that are shown");
  figure.Text(left, 14, "Area by slice (" + area.Unit.substr(1) + ")", 12);
  figure.Rectangle(left + 210, 5, 12, 10, "#1f77b4");
  figure.Text(left + 228, 14, "expected", 12);
  figure.Rectangle(left + 310, 5, 12, 10, UnsureColor);
  figure.Text(left + 328, 14, "unsure", 12);
  figure.Text(left + 400, 14, "▲ shown", 12);
  figure.Rectangle(left, top, width, height, "#fafafa", "#999");
  figure.Text(left - 8, top + 10, area.TextOf(most * area.PerVoxel), 11, Anchor::End, "#444");
  figure.Text(left - 8, top + height, "0", 11, Anchor::End, "#444");
  for (size_t z = 0; z < slices.size(); ++z)
  {
    const double x = left + step * static_cast<double>(z);
    const double expected = height * slices[z].expected / most, unsure = height * static_cast<double>(slices[z].unsure) / most;
    figure.Hint("slice " + SliceNumber(static_cast<int64_t>(z)) + ": expected " +
      area.TextOf(slices[z].expected * area.PerVoxel) + area.Unit + ", unsure " + area.Text(slices[z].unsure) + area.Unit);
    figure.Rectangle(x, top + height - expected, step, expected, "#1f77b4");
    // Narrower, so that both can be seen in one slice.
    figure.Rectangle(x + step / 4, top + height - unsure, step / 2, unsure, UnsureColor);
  }
  figure.Hint("");
  for (const int64_t z : shown)
  {
    const double x = left + step * (static_cast<double>(z) + 0.5), y = top + height;
    figure.Polygon({ x, y + 2, x - 5, y + 11, x + 5, y + 11 }, "#222");
    figure.Text(x, y + 26, SliceNumber(z), 11, Anchor::Middle, "#444");
  }
  return figure;
}

/// The area of one slice: as Extent of a picture with its pixels.
Extent AreaOf(const rcn_geometry& geometry)
{
  rcn_geometry slice = geometry;
  slice.size[2] = 1;
  return Extent(slice);
}

/// One page from one image and one model: predicted first, everything else is drawn from that. Nothing of raters is needed or
/// used.
class PatientPage
{
public:
  explicit PatientPage(const PatientPageOptions& options)
    : Options_(options),
      Work_(options.Workspace),
      Model_(Work_.Context(), options.Model),
      Title_(TitleOf(options)),
      Page_(Title_)
  {
    this->Work_.SetProgress([this](double fraction, const char* stage) { return this->Show(0.1 + 0.7 * fraction, stage); });
  }

  void Run();

private:
  static std::string TitleOf(const PatientPageOptions& options)
  {
    return !options.Title.empty() ? options.Title
      : options.Anonymous         ? "Predicted volume"
                                  : "Predicted volume: " + options.One.Id;
  }
  bool Show(double fraction, const std::string& stage) const
  {
    return this->Options_.Progress && this->Options_.Progress(fraction, stage);
  }

  void Predict();
  void WriteStructures();
  void WriteVolumes();
  void WriteSlices();
  void WriteUnsure();
  void WriteRecord();
  void SaveSlides() const;

  const PatientPageOptions& Options_;
  Workspace Work_;
  const Model Model_;
  std::vector<Volume> Images_;
  Prediction Prediction_;
  std::string Structure_; // which of several the pictures are about; empty: there is one
  Volume StructureMap_;
  const Volume* Map_ = nullptr; // levels, where there are some
  std::vector<rcn_slice_expectation> Slices_;
  std::string Title_;
  Page Page_;
};

void PatientPage::Predict()
{
  // Messages and remarks end up on the page, so an anonymous one names no file.
  const std::string about = this->Options_.Anonymous ? "The image" : this->Options_.One.Images.front();
  PredictionOptions options;
  options.Readout = this->Options_.Readout;
  options.Structure = this->Options_.Structure;
  // Before the image is read, which may take long.
  CheckPrediction(this->Model_, options);
  const std::vector<Structure>& structures = this->Model_.Info().Structures;
  const int number = structures.size() < 2 ? 0 : options.Structure.empty() ? 1 : FindStructure(structures, options.Structure);
  if (number > 0)
  {
    this->Structure_ = structures[static_cast<size_t>(number) - 1].Name;
    options.Structure.clear(); // the volumes of all of them are told
  }
  this->Images_ = ImagesOf(this->Work_.Context(), this->Options_.One);
  this->Prediction_ = rcn::Predict(this->Model_, this->Work_.Context(), this->Images_, about, options);
  this->Map_ = this->Prediction_.Levels.Data() ? &this->Prediction_.Levels : &this->Prediction_.Probability;
  if (number > 0)
  {
    this->StructureMap_ = this->Prediction_.Structures->Of(this->Work_.Context(), number, this->Model_.RaterCount(), about);
    this->Map_ = &this->StructureMap_;
    this->Prediction_.Volumes = this->Prediction_.StructureVolumes[static_cast<size_t>(number) - 1];
  }
  // What is expected and unsure by slice chooses the slices, fills the chart and the sums below.
  this->Slices_ = SliceExpectations(this->Work_.Context(), *this->Map_);
}

/// A row for each of several structures. The rest of the page is about one of them.
void PatientPage::WriteStructures()
{
  if (this->Structure_.empty())
  {
    return;
  }
  const std::vector<PredictedVolumes>& all = this->Prediction_.StructureVolumes;
  PageTable table;
  table.Caption = "All structures: what raters would measure";
  table.Columns = { "Structure", "Expected", "Raters would say (80 %)", "Raters would say (95 %)" };
  for (size_t c = 0; c < all.size(); ++c)
  {
    table.Rows.push_back({ this->Prediction_.StructureList[c].Name, all[c].TextWithUnit(all[c].Expected) });
    for (const PredictedInterval& interval : all[c].Intervals)
    {
      table.Rows.back().push_back(
        interval.IsKnown() ? all[c].Text(interval.Low) + " to " + all[c].TextWithUnit(interval.High) : "–");
    }
  }
  this->Page_.Add(table);
}

void PatientPage::WriteVolumes()
{
  const PredictedVolumes& volumes = this->Prediction_.Volumes;
  if (!volumes.IsKnown())
  {
    return;
  }
  const std::string about = this->Structure_.empty() ? "" : "Everything below is about " + this->Structure_ + ": ";
  const std::string name = volumes.Name == "Area" ? "area" : "volume";
  std::vector<PageTile> tiles = { { "Expected " + name, volumes.TextWithUnit(volumes.Expected),
    "what a rater marks on average" } };
  for (const PredictedInterval& interval : volumes.Intervals)
  {
    if (interval.IsKnown())
    {
      tiles.push_back({ PercentText(interval.Level) + " prediction interval",
        volumes.Text(interval.Low) + " to " + volumes.TextWithUnit(interval.High),
        "from " + std::to_string(volumes.Cases) + " validation cases" });
    }
  }
  // Not as a table: two pages have no room for a line for each of many raters.
  std::string each;
  for (int t = 1; t <= static_cast<int>(volumes.AtLeast.size()); ++t)
  {
    each += (t == 1                   ? "any rater: "
                : t == volumes.Raters ? "; all " + std::to_string(t) + ": "
                                      : "; at least " + std::to_string(t) + ": ") +
      volumes.Text(volumes.AtLeast[static_cast<size_t>(t) - 1]);
  }
  if (about.empty()) // otherwise the table of all structures says it, and two pages have no room for both
  {
    this->Page_.Tiles(tiles);
  }
  this->Page_.Paragraph(about + volumes.Sentence() + (volumes.Remark.empty() ? "" : " " + volumes.Remark));
  this->Page_.Note(volumes.Name + " (" + volumes.Unit + ") by how many raters mark it: " + each + ".");
}

void PatientPage::WriteSlices()
{
  Page& page = this->Page_;
  const Volume& image = this->Images_.front();
  const bool flat = image.Geometry().size[2] == 1;
  // Two pages have room for few slices: those that a rule chooses, which the note below states.
  // A long table of structures takes the place of a slice.
  const size_t fewer = this->Prediction_.StructureList.size() > 5 ? 1 : 0;
  const std::vector<int64_t> shown =
    SlicesToSee(this->Slices_, std::max<size_t>(1, this->Options_.Slices - std::min(fewer, this->Options_.Slices)));
  const rcn_box box = ExpectedBox(this->Slices_, image.Geometry());
  page.Section("slices", flat ? "The picture" : "Selected slices");
  const int raters = this->Map_->View().components - 1;
  rcn_readout readout = RCN_READOUT_EXPECTED;
  int atLeast = 0;
  ParseReadout(readout, atLeast, this->Prediction_.Readout);
  for (const int64_t z : shown)
  {
    const SlicePanels slice(page, SliceFigure(SliceSubject(this->Work_.Context(), image), { 2, z }, &box), image.Geometry(), z,
      this->Options_.Anonymous ? "" : this->Options_.One.Id);
    Figure lines = slice.Begin("Contours", "Where it is as likely as not that at least 1, 2, ... raters mark the voxel");
    slice.View.DrawPredictedLines(lines, slice.All, *this->Map_);
    Figure unsure = slice.Begin("Unsure", "Where the expected share of raters is neither near 0 nor near 1");
    slice.View.DrawUnsure(unsure, slice.All, slice.View.ReadoutMap(*this->Map_, RCN_READOUT_EXPECTED));
    page.Add({ { slice.Begin("Image", "The image alone"), flat ? "Image" : "Slice " + SliceNumber(z) },
      slice.Probability(raters < 1 || readout != RCN_READOUT_EXPECTED ? "Probability" : "Expected share of raters",
        "The probability that the model predicts", slice.View.ReadoutMap(*this->Map_, readout, atLeast)),
      { lines, raters > 1 ? "At least 1 … " + std::to_string(raters) + " raters, 50 %" : "50 % contour" },
      { unsure, "Unsure" } });
  }
  page.Legend(
    raters < 1 || readout == RCN_READOUT_EXPECTED ? "Map" : "Map (" + this->Prediction_.Readout + ")", ProbabilityLegend());
  page.Legend("Contours", PredictedLegend(*this->Map_));
  if (!flat)
  {
    page.Note(SliceRuleInWords());
    page.Add(ProfileFigure(this->Slices_, shown, AreaOf(image.Geometry())), "");
  }
}

void PatientPage::WriteUnsure()
{
  Page& page = this->Page_;
  const Extent extent(this->Images_.front().Geometry());
  int64_t unsure = 0;
  size_t most = 0;
  double expected = 0;
  for (size_t z = 0; z < this->Slices_.size(); ++z)
  {
    unsure += this->Slices_[z].unsure;
    expected += this->Slices_[z].expected;
    most = this->Slices_[z].unsure > this->Slices_[most].unsure ? z : most;
  }
  page.Section("unsure", "Where the model is unsure");
  page.Paragraph(unsure == 0
      ? "Nowhere: the model expects either less than " + PercentText(RCN_UNSURE) + " or more than " +
        PercentText(1 - RCN_UNSURE) + " of the raters to mark each voxel."
      : "In " + extent.TextOf(static_cast<double>(unsure) * extent.PerVoxel) + extent.Unit + " the model expects " +
        PercentText(RCN_UNSURE) + " to " + PercentText(1 - RCN_UNSURE) + " of the raters to mark the voxel" +
        (expected > 0 ? ", " + Fixed(static_cast<double>(unsure) / expected, 1) + " times the expected " +
              (extent.Name == "Area" ? "area" : "volume")
                      : "") +
        (this->Slices_.size() > 1 ? "; most of it is in slice " + SliceNumber(static_cast<int64_t>(most)) : "") + ".");
  const PredictedVolumes& volumes = this->Prediction_.Volumes;
  const size_t places = std::min<size_t>(volumes.Components.size(), this->Structure_.empty() ? 4 : 2);
  if (places > 0)
  {
    const VolumeTable from = volumes.ComponentTable(places);
    PageTable table;
    table.Caption = "Connected places that any rater marks more likely than not" +
      (places < volumes.Components.size()
          ? ": the largest " + std::to_string(places) + " of " + std::to_string(volumes.Components.size())
          : std::string());
    table.Columns.assign(from.Headings.begin(), from.Headings.end());
    for (const std::vector<std::string>& row : from.Rows)
    {
      table.Rows.emplace_back(row.begin(), row.end());
    }
    page.Add(table);
  }
}

void PatientPage::WriteRecord()
{
  Page& page = this->Page_;
  const ModelRecord record = RecordOf(this->Work_.Context(), this->Model_);
  // On a page of its own when printed: the first is about the patient, the second about what is behind it.
  page.Section("model", "Model record", true);
  PageTable table;
  table.Caption = "Record stored in the model file";
  table.Columns = { "What", "Value" };
  for (const auto& row : RecordRows(record, this->Options_.Anonymous))
  {
    table.Rows.push_back({ row.first, row.second });
  }
  page.Add(table);
  std::vector<PagePanel> panels;
  for (const RecordedCalibration& one : record.Calibration)
  {
    panels.push_back({ ReliabilityDiagram(one.Report,
                         "On " + Counted(static_cast<int64_t>(one.Report.Cases), one.Split + " case") +
                           (one.IsOutdated ? " (before its correction was changed)" : "")),
      "" });
  }
  if (panels.empty())
  {
    page.Paragraph(
      "The model has no calibration record, so it is unknown whether 70 % means that 70 % of the raters mark the voxel.");
  }
  page.Add(panels, true);
}

// The same levels and sentence as on the page.
void PatientPage::SaveSlides() const
{
  for (const std::string& path : this->Options_.Slides)
  {
    SlideOptions slide(SliceSubject(this->Work_.Context(), this->Images_.front()));
    slide.Prediction = this->Map_;
    ParseReadout(slide.Readout, slide.AtLeast, this->Prediction_.Readout);
    slide.Title = this->Title_;
    slide.Words = { (this->Structure_.empty() ? "" : this->Structure_ + ": ") + this->Prediction_.Volumes.Sentence() };
    SlideFigure(slide).Save(path, 1);
  }
}

void PatientPage::Run()
{
  this->Predict();
  for (const std::string& remark : this->Prediction_.Remarks)
  {
    if (this->Options_.Remark)
    {
      this->Options_.Remark(remark);
    }
  }
  if (this->Show(0.9, "drawing"))
  {
    throw Error(RCN_ECANCELLED, "Canceled.");
  }
  if (!this->Options_.Output.empty())
  {
    this->Page_.SetSubtitle((this->Structure_.empty() ? "" : this->Structure_ + ", ") +
      DescribeGeometry(this->Images_.front().Geometry()) + ". All results are predicted; no outlines of raters are used. " +
      TimeText(TimeForFiles()) + ", RaterConsensus " RCN_VERSION ".");
    this->WriteStructures();
    this->WriteVolumes();
    this->WriteSlices();
    this->WriteUnsure();
    this->WriteRecord();
    for (const std::string& remark : this->Prediction_.Remarks)
    {
      this->Page_.Note(remark);
    }
    if (!this->Options_.Command.empty() && !this->Options_.Anonymous)
    {
      this->Page_.Code(this->Options_.Command);
    }
    WriteText(this->Options_.Output, this->Page_.Html());
  }
  this->SaveSlides();
}

#endif

/// Throws Error for options that cannot make a page, before any work.
void CheckOptions(const PatientPageOptions& options)
{
  if (options.One.Images.empty() || options.Model.empty())
  {
    throw Error(RCN_EINVALID, "A page without raters needs an image and a model.", "input");
  }
  CheckReportFiles(options.Output, options.Slides);
}

} // namespace

void WritePatientPage(const PatientPageOptions& options)
{
  CheckOptions(options);
#ifdef RCN_HAVE_NETWORKS
  PatientPage(options).Run();
#else
  throw Error(RCN_EUNSUPPORTED, options.Model + ": this program was built without networks and cannot read a model.");
#endif
}

} // namespace rcn
