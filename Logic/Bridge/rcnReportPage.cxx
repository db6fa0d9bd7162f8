// SPDX-License-Identifier: Apache-2.0
#include "rcnReportPage.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include <sys/stat.h>

#include "rcn/rcn.h"
#include "rcnPredictionFolder.h"
#include "rcnReport.h"
#include "rcnSliceView.h"
#ifdef RCN_HAVE_NETWORKS
#include "rcnPrediction.h"
#endif

namespace rcn
{

namespace fs = std::filesystem;

namespace
{

/// More raters than this make tables and matrices that nobody reads number by number.
constexpr size_t MostRatersInPairs = 12;
constexpr rcn_region Regions[] = { RCN_REGION_BOX, RCN_REGION_BAND, RCN_REGION_DISPUTED };
const char* const RegionWords[] = { "around all marks", "near the contour", "where raters disagree" };
constexpr double PanelWidth = 320;

std::string Percent(double share, int digits)
{
  return Fixed(100 * share, digits) + " %";
}

/// Three digits that say something, in percent.
std::string SmallPercent(double share)
{
  return Percent(share, std::fabs(share) < 0.01 ? 2 : 1);
}

/// UTC; empty when the clock or the file says nothing.
std::string TimeText(std::time_t time)
{
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&time, &parts))
  {
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  }
  return text;
}

/// Mean, smallest and largest of what is defined.
class Spread
{
public:
  void Add(double value)
  {
    if (std::isfinite(value))
    {
      this->Sum_ += value;
      this->Low_ = this->Count_ ? std::min(this->Low_, value) : value;
      this->High_ = this->Count_ ? std::max(this->High_, value) : value;
      ++this->Count_;
    }
  }
  double Mean() const { return this->Count_ ? this->Sum_ / static_cast<double>(this->Count_) : NAN; }
  size_t Count() const { return this->Count_; }

  /// The mean, and over several cases the range below it.
  PageCell Cell(int digits, double scale = 1) const
  {
    PageCell cell(scale * this->Mean(), digits);
    if (this->Count_ > 1)
    {
      cell.Small = FromTo(scale * this->Low_, scale * this->High_, digits);
    }
    return cell;
  }

private:
  double Sum_ = 0, Low_ = NAN, High_ = NAN;
  size_t Count_ = 0;
};

/// What is remembered of a case after its voxels are gone.
struct CaseSummary
{
  Case One;
  int Raters = 0;
  double MeanDice, Kappa, UnionKappa, DisputedShare, Union;
};

/// The raters' agreement over all cases.
struct Agreement
{
  struct Rater
  {
    size_t Cases = 0;
    Spread Extent, Dice, Sensitivity, Specificity, StapleSensitivity, StapleSpecificity;
  };
  struct Pair
  {
    Spread Dice, Jaccard, Kappa, Hausdorff, Surface;
  };
  std::vector<Rater> Raters;
  std::vector<Pair> Pairs; ///< raters * raters
  Spread MeanDice, Kappa, Alpha, Ac1, Entropy, UnionKappa, UnionAlpha, UnionAc1, UnionEntropy;
  Spread Union, Majority, Intersection, Disputed, DisputedShare;
  std::map<int, std::vector<Spread>> Levels; ///< by how many raters answered: extent of levels 1 ... K
  std::string Heading, Unit, Length;         ///< "Volume (mL)", " mL", "mm"
  bool MixedExtents = false, MixedLengths = false;

  void Add(const rcn_agreement& figures, const Extent& extent);
};

void Agreement::Add(const rcn_agreement& f, const Extent& extent)
{
  const size_t count = static_cast<size_t>(f.raters);
  this->Raters.resize(count);
  this->Pairs.resize(count * count);
  this->MixedExtents = this->MixedExtents || (!this->Heading.empty() && this->Heading != extent.Heading);
  this->MixedLengths = this->MixedLengths || (!this->Length.empty() && this->Length != extent.Length);
  this->Heading = extent.Heading;
  this->Unit = extent.Unit;
  this->Length = extent.Length;
  for (size_t r = 0; r < count; ++r)
  {
    const rcn_rater_agreement& rater = f.rater[r];
    if (!rater.present)
    {
      continue;
    }
    Rater& sums = this->Raters[r];
    ++sums.Cases;
    sums.Extent.Add(static_cast<double>(rater.voxels) * extent.PerVoxel);
    sums.Dice.Add(rater.dice_to_others);
    sums.Sensitivity.Add(rater.sensitivity_to_others);
    sums.Specificity.Add(rater.specificity_to_others);
    sums.StapleSensitivity.Add(rater.staple_sensitivity);
    sums.StapleSpecificity.Add(rater.staple_specificity);
    for (size_t other = 0; other < count; ++other)
    {
      const rcn_pair_agreement& pair = f.pair[r * count + other];
      if (other != r && f.rater[other].present)
      {
        Pair& both = this->Pairs[r * count + other];
        both.Dice.Add(pair.dice);
        both.Jaccard.Add(pair.jaccard);
        both.Kappa.Add(pair.kappa);
        both.Hausdorff.Add(pair.hausdorff95_mm);
        both.Surface.Add(pair.mean_surface_mm);
      }
    }
  }
  this->MeanDice.Add(f.mean_dice);
  this->Kappa.Add(f.whole.fleiss_kappa);
  this->Alpha.Add(f.whole.krippendorff_alpha);
  this->Ac1.Add(f.whole.gwet_ac1);
  this->Entropy.Add(f.whole.mean_entropy);
  this->UnionKappa.Add(f.on_union.fleiss_kappa);
  this->UnionAlpha.Add(f.on_union.krippendorff_alpha);
  this->UnionAc1.Add(f.on_union.gwet_ac1);
  this->UnionEntropy.Add(f.on_union.mean_entropy);
  this->Union.Add(static_cast<double>(f.union_voxels) * extent.PerVoxel);
  this->Majority.Add(static_cast<double>(f.majority_voxels) * extent.PerVoxel);
  this->Intersection.Add(static_cast<double>(f.intersection_voxels) * extent.PerVoxel);
  this->Disputed.Add(static_cast<double>(f.disputed_voxels) * extent.PerVoxel);
  if (f.union_voxels)
  {
    this->DisputedShare.Add(static_cast<double>(f.disputed_voxels) / static_cast<double>(f.union_voxels));
  }
  std::vector<Spread>& levels = this->Levels[f.present_count];
  levels.resize(static_cast<size_t>(f.present_count));
  for (size_t level = 0; level < levels.size(); ++level)
  {
    levels[level].Add(static_cast<double>(f.level_voxels[level + 1]) * extent.PerVoxel);
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
    this->Union = this->Majority = this->Intersection = this->Disputed = Spread();
  }
  if (this->MixedLengths) // nor would one of millimetres and pixels
  {
    this->Length = "mm or pixels";
    for (Pair& pair : this->Pairs)
    {
      pair.Hausdorff = pair.Surface = Spread();
    }
  }
}

/// The pairs of raters as a matrix of colored cells.
Figure PairMatrix(const Agreement& agreement, const std::vector<std::string>& names)
{
  const size_t count = names.size();
  const bool numbers = count <= MostRatersInPairs;
  const double cell = numbers ? (count <= 6 ? 58 : 44) : 16, left = 110, top = 96;
  double lowest = 1;
  for (const Agreement::Pair& pair : agreement.Pairs)
  {
    lowest = std::fmin(lowest, pair.Dice.Mean());
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
      const double value = agreement.Pairs[a * count + b].Dice.Mean();
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

/// Panels of one slice: the image below them is in the page once.
class SlicePanels
{
public:
  SlicePanels(Page& page, const Workspace& workspace, int64_t slice, const std::string& id)
    : View(workspace, slice),
      Where_(" of case " + id + (rcn_votes_geometry(workspace.Votes())->size[2] > 1 ? ", slice " + std::to_string(slice) : ""))
  {
    int64_t columns, rows;
    const std::vector<uint8_t> rgb = this->View.Picture(columns, rows);
    this->Base_ = page.SharedPicture(rgb, columns, rows, PanelWidth, this->View.HeightOf(PanelWidth));
  }

  Figure Begin(const std::string& title, const std::string& words) const
  {
    Figure figure(PanelWidth, this->View.HeightOf(PanelWidth), title + this->Where_, words);
    figure.SharedPicture(this->Base_);
    return figure;
  }
  PagePanel Levels() const
  {
    Figure levels = this->Begin("Consensus levels", "How many raters marked each voxel, from dark (one) to bright (all)");
    this->View.DrawLevels(levels, this->All);
    return { levels, "How many raters marked it" };
  }
  PagePanel Probability(const std::string& name, const std::string& words, const std::vector<float>& map) const
  {
    Figure figure = this->Begin(name, words);
    this->View.DrawProbability(figure, this->All, map);
    return { figure, name };
  }

  const SliceView View;
  const Place All = { 0, 0, PanelWidth };

private:
  std::string Where_, Base_;
};

/// One line of the table of models: a model, a readout, and how it is corrected.
struct Series
{
  size_t Model;
  std::string Name;
  rcn_readout Readout = RCN_READOUT_MAJORITY;
  int AtLeast = 0;
  const Recalibration* Correction = nullptr;
  int Before = -1;                                 ///< the same without the correction: its number
  std::vector<std::unique_ptr<Evaluation>> Judges; ///< by region
  std::vector<EvaluationReport> Reports;           ///< by region, where there is one
  bool HasReport[3] = { false, false, false };
};

/// Does the work, and writes the page.
class Report
{
public:
  explicit Report(const ReportOptions& options) : Options_(options), Workspace_(options.Workspace), Page_(TitleOf(options)) {}

  ReportResult Run();

private:
  static std::string TitleOf(const ReportOptions& options)
  {
    return !options.Title.empty() ? options.Title
      : options.Data.empty()      ? "How far the raters agree"
                                  : "How far the raters of " + fs::path(options.Data).filename().string() + " agree";
  }

  void ReadModels();
  Volume PredictionOf(size_t model, const Case& one);
  bool IsOneProbability(const Volume& prediction, const std::string& name) const;
  EvaluationOptions ReadoutFor(size_t model, const std::string& asked) const;
  void MakeSeries(size_t model, const Volume& prediction);
  Volume ProbabilityOf(const Series& series, const Volume& prediction) const;
  void Measure(const Case& one);
  void JudgeCase(const Case& one);
  void Show(double fraction, const std::string& stage);

  void WriteSummary();
  void WriteAgreement();
  void WriteOverall();
  void WriteRaters();
  void WriteRegions();
  void WriteModels();
  void WriteCases();
  void WritePictures();
  void WriteCasePictures(const CaseSummary& summary);
  void WriteLevelPanels(const SlicePanels& slice, size_t model, const Volume& prediction);
  void WriteHow();

  std::string ExtentText(double extent) const
  {
    return Fixed(extent, extent >= 1000 ? 0 : extent >= 10 ? 1 : 3) + this->Sums_.Unit;
  }
  /// The series that a reader should look at first: the best corrected one around the marks.
  const Series* BestSeries() const;

  ReportOptions Options_;
  Workspace Workspace_;
  Page Page_;
  DataList List_;
  std::vector<std::string> Raters_;
  std::vector<CaseSummary> Cases_;
  std::vector<std::string> LeftOut_, Remarks_;
  Agreement Sums_;
  AgreementReport Single_; // of the only case
  std::string SingleText_;
  std::vector<Series> Series_;
  std::vector<bool> PredictsLevels_;                             // by model: the first case that all of them predict tells
  std::vector<std::unique_ptr<Recalibration>> Corrections_;      // by model
  std::vector<std::shared_ptr<const PredictionFolder>> Folders_; // by model; null where there is none
  std::vector<std::shared_ptr<const PredictionRun>> Runs_;       // by model; null: not known how predictions were made
  std::set<std::string> Files_;
  double Fraction_ = 0;
  std::string Stage_;
#ifdef RCN_HAVE_NETWORKS
  std::vector<std::unique_ptr<Model>> Models_; // by model; null where there is none
#endif
};

// ---- reading and measuring -------------------------------------------------------------------------

void Report::Show(double fraction, const std::string& stage)
{
  this->Fraction_ = fraction;
  this->Stage_ = stage;
  if (this->Options_.Progress && this->Options_.Progress(fraction, stage))
  {
    throw Error(RCN_ECANCELLED, "Cancelled.");
  }
}

void Report::ReadModels()
{
  for (const ReportModel& one : this->Options_.Models)
  {
    this->Corrections_.emplace_back();
    this->Folders_.emplace_back();
    this->Runs_.emplace_back();
    if (!one.Predictions.empty() && !this->Options_.Data.empty())
    {
      this->Folders_.back() = std::make_shared<PredictionFolder>(one.Predictions);
      this->Runs_.back() =
        this->Folders_.back()->HasManifest() ? std::make_shared<PredictionRun>(this->Folders_.back()->Run()) : nullptr;
    }
    else if (!one.Predictions.empty())
    {
      this->Runs_.back() = PredictionFolder::RunOf(one.Predictions);
    }
    if (!one.Recalibration.empty())
    {
      if (this->Runs_.back() && this->Runs_.back()->Correction)
      {
        throw Error(RCN_EINVALID,
          one.Predictions +
            " holds predictions that are corrected already; predict with --no-recalibration, or leave "
            "out --recalibration.");
      }
      this->Corrections_.back().reset(new Recalibration(ReadRecalibration(one.Recalibration)));
      this->Files_.insert(one.Recalibration);
    }
#ifdef RCN_HAVE_NETWORKS
    this->Models_.emplace_back();
    if (!one.Model.empty())
    {
      this->Models_.back().reset(new Model(this->Workspace_.Context(), one.Model));
      this->Files_.insert(one.Model);
      const ModelInfo& info = this->Models_.back()->Info();
      if (one.Predictions.empty())
      {
        PredictionOptions options;
        options.Recalibrate = false;
        this->Runs_.back() = std::make_shared<PredictionRun>(RunOf(*this->Models_.back(), options));
      }
      if (one.Predictions.empty() && info.Correction && !this->Corrections_.back())
      {
        this->Corrections_.back().reset(new Recalibration(*info.Correction));
      }
    }
#endif
  }
}

/// As the model says it, without a correction.
Volume Report::PredictionOf(size_t model, const Case& one)
{
  const ReportModel& what = this->Options_.Models[model];
  if (!what.Predictions.empty())
  {
    const std::string file = this->Folders_[model] ? this->Folders_[model]->Find(one.Id) : what.Predictions;
    this->Files_.insert(file);
    const Volume prediction = ReadPrediction(file, this->Options_.Judge.Scale);
    CheckLevelCount(prediction, static_cast<int>(this->Raters_.size()), file);
    return prediction;
  }
#ifdef RCN_HAVE_NETWORKS
  PredictionOptions options;
  options.Recalibrate = false;
  if (!this->Workspace_.HasImage())
  {
    throw Error(RCN_EDATA, "the model " + what.Name + " needs an image to predict.");
  }
  const Model& net = *this->Models_[model];
  net.CheckRaters(this->Raters_, "the data");
  return Predict(net, this->Workspace_.Context(), this->Workspace_.Images(), one.Images.front(), options).Levels;
#else
  throw Error(RCN_EUNSUPPORTED, "This program was built without networks; give predictions with --pred NAME=FILE.");
#endif
}

/// Levels that are all or nothing: a model that gives one probability, stored as levels.
bool Report::IsOneProbability(const Volume& prediction, const std::string& name) const
{
  int ends = 0;
  rcn_context* context = this->Workspace_.Context();
  Check(rcn_levels_are_ends(&ends, context, &prediction.View()), context, name);
  return ends != 0;
}

/// The readout and the rule for ties, as evaluate chooses them.
EvaluationOptions Report::ReadoutFor(size_t model, const std::string& asked) const
{
  EvaluationOptions options;
  const PredictionRun* run = this->Runs_[model].get();
  ChooseReadout(options, asked, run ? run->Readout : "", run && run->TieBackground);
  return options;
}

void Report::MakeSeries(size_t model, const Volume& prediction)
{
  const ReportModel& what = this->Options_.Models[model];
  const Recalibration* correction = this->Corrections_[model].get();
  std::vector<std::pair<rcn_readout, int>> readouts = { { RCN_READOUT_MAJORITY, 0 } };
  const PredictionRun* run = this->Runs_[model].get();
  if (run && run->TieBackground)
  {
    readouts[0].first = RCN_READOUT_MORE_THAN_HALF;
  }
  const bool levels = this->PredictsLevels_[model];
  if (levels && this->Options_.Readout.empty())
  {
    readouts.emplace_back(RCN_READOUT_EXPECTED, 0);
    std::pair<rcn_readout, int> own = readouts[0];
    if (run && ParseReadout(own.first, own.second, run->Readout) &&
      std::find(readouts.begin(), readouts.end(), own) == readouts.end())
    {
      readouts.insert(readouts.begin(), own);
    }
  }
  else if (levels)
  {
    const EvaluationOptions asked = this->ReadoutFor(model, this->Options_.Readout);
    readouts[0] = { asked.Calib.readout, asked.Calib.at_least };
  }
  for (const auto& readout : readouts)
  {
    Series plain;
    plain.Model = model;
    plain.Readout = readout.first;
    plain.AtLeast = readout.second;
    plain.Name = what.Name + (levels ? " (" + ReadoutText(readout.first, readout.second) + ")" : "");
    // A correction of one probability is for the readout that it was fitted to.
    const bool fits = correction &&
      (prediction.View().components == 1 || correction->Correction.levels > 0 || correction->OneProbability ||
        (correction->Readout == readout.first && correction->AtLeast == readout.second));
    if (fits)
    {
      Series corrected;
      corrected.Model = model;
      corrected.Readout = plain.Readout;
      corrected.AtLeast = plain.AtLeast;
      corrected.Name = plain.Name + ", recalibrated";
      corrected.Correction = correction;
      corrected.Before = static_cast<int>(this->Series_.size());
      plain.Name += ", as it is";
      this->Series_.push_back(std::move(plain));
      this->Series_.push_back(std::move(corrected));
    }
    else
    {
      this->Series_.push_back(std::move(plain));
    }
  }
}

/// One probability per voxel: figures of two readouts can be compared, those of level maps cannot.
Volume Report::ProbabilityOf(const Series& series, const Volume& prediction) const
{
  rcn_context* context = this->Workspace_.Context();
  const std::string& name = this->Options_.Models[series.Model].Name;
  const Volume corrected = series.Correction
    ? ApplyRecalibration(context, *series.Correction, prediction, series.Readout, series.AtLeast, name)
    : prediction;
  if (corrected.View().components == 1)
  {
    return corrected;
  }
  const Volume probability = Volume::Allocate(corrected.Geometry(), RCN_FLOAT32);
  Check(rcn_readout_apply(static_cast<float*>(probability.Data()), context, &corrected.View(), series.Readout, series.AtLeast),
    context, name);
  return probability;
}

void Report::JudgeCase(const Case& one)
{
  std::vector<Volume> predictions;
  for (size_t model = 0; model < this->Options_.Models.size(); ++model)
  {
    predictions.push_back(this->PredictionOf(model, one));
  }
  if (this->Series_.empty())
  {
    // All models first: what a bad map of the last one throws must not leave the others half made.
    std::vector<bool> levels;
    for (size_t model = 0; model < predictions.size(); ++model)
    {
      const ReportModel& what = this->Options_.Models[model];
      levels.push_back(!this->IsOneProbability(predictions[model], what.Predictions.empty() ? what.Name : what.Predictions));
    }
    this->PredictsLevels_ = levels;
    for (size_t model = 0; model < predictions.size(); ++model)
    {
      this->MakeSeries(model, predictions[model]);
    }
    for (Series& series : this->Series_)
    {
      for (const rcn_region region : Regions)
      {
        EvaluationOptions options = this->Options_.Judge;
        options.Region.region = region;
        options.ExactAuc = false;
        options.TieBackground =
          this
            ->ReadoutFor(series.Model,
              this->PredictsLevels_[series.Model] ? ReadoutText(series.Readout, series.AtLeast) : this->Options_.Readout)
            .TieBackground;
        series.Judges.emplace_back(new Evaluation(this->Workspace_.Context(), this->Raters_, options));
      }
    }
  }
  for (Series& series : this->Series_)
  {
    const Volume probability = this->ProbabilityOf(series, predictions[series.Model]);
    for (const auto& judge : series.Judges)
    {
      judge->PrepareCase(
        this->Workspace_.Votes(), one.Id, probability, this->Options_.Models[series.Model].Name + ", case " + one.Id);
    }
  }
  // Only now: a case counts for all models or for none.
  for (Series& series : this->Series_)
  {
    for (const auto& judge : series.Judges)
    {
      judge->CommitCase(0, one.Patient);
    }
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
  this->Raters_ = this->Workspace_.RaterNames();
  const AgreementReport report = this->Workspace_.Agree(this->Options_.Surfaces);
  this->JudgeCase(one);
  const rcn_agreement& f = *report.Figures;
  const Extent extent(*rcn_votes_geometry(this->Workspace_.Votes()));
  this->Sums_.Add(f, extent);
  CaseSummary summary;
  summary.One = one;
  summary.Raters = f.present_count;
  summary.MeanDice = f.mean_dice;
  summary.Kappa = f.whole.fleiss_kappa;
  summary.UnionKappa = f.on_union.fleiss_kappa;
  summary.DisputedShare = f.union_voxels ? static_cast<double>(f.disputed_voxels) / static_cast<double>(f.union_voxels) : NAN;
  summary.Union = static_cast<double>(f.union_voxels) * extent.PerVoxel;
  this->Cases_.push_back(summary);
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
    this->Single_ = report;
    this->SingleText_ = DescribeCase(this->Workspace_);
  }
  this->Files_.insert(one.Images.begin(), one.Images.end());
  for (const RaterFile& rater : one.Raters)
  {
    this->Files_.insert(rater.Path);
  }
}

// ---- writing ---------------------------------------------------------------------------------------

const Series* Report::BestSeries() const
{
  const Series* best = nullptr;
  for (const Series& series : this->Series_)
  {
    if (series.HasReport[0] && (!best || series.Reports[0].Figures[RCN_MR_ECE] < best->Reports[0].Figures[RCN_MR_ECE]))
    {
      best = &series;
    }
  }
  return best;
}

void Report::WriteSummary()
{
  Page& page = this->Page_;
  const Agreement& sums = this->Sums_;
  const size_t cases = this->Cases_.size();
  const bool several = this->Raters_.size() > 1 && std::isfinite(sums.MeanDice.Mean());
  page.SetSubtitle(Counted(static_cast<int64_t>(this->Raters_.size()), "rater") + ", " +
    Counted(static_cast<int64_t>(cases), "case") + (this->Options_.Split.empty() ? "" : " (" + this->Options_.Split + ")") +
    (this->Options_.Models.empty() ? "" : ", " + Counted(static_cast<int64_t>(this->Options_.Models.size()), "model")));
  page.Section("summary", "In short");
  std::vector<PageTile> tiles;
  if (several)
  {
    tiles.push_back({ "Agreement (Fleiss' κ)", Fixed(sums.Kappa.Mean(), 2), rcn_kappa_words(sums.Kappa.Mean()) });
    tiles.push_back({ "Overlap of two raters (Dice)", Fixed(sums.MeanDice.Mean(), 2),
      cases > 1 ? "mean over pairs and cases" : "mean over pairs" });
  }
  if (sums.DisputedShare.Count())
  {
    tiles.push_back({ "Disputed", Percent(sums.DisputedShare.Mean(), 0), "of what anybody marked" });
  }
  const Series* best = this->BestSeries();
  if (best)
  {
    // Both: the box around the marks can be nearly all background.
    tiles.push_back({ "Probabilities off by (MR-ECE)", SmallPercent(best->Reports[0].Figures[RCN_MR_ECE]),
      (best->HasReport[1] ? "around the marks; near the contour " + SmallPercent(best->Reports[1].Figures[RCN_MR_ECE]) + "; "
                          : "") +
        best->Name });
  }
  page.Tiles(tiles);

  std::vector<std::string> lines;
  lines.push_back(this->Options_.Data.empty() ? "One case: " + this->SingleText_ + "."
                                              : Counted(static_cast<int64_t>(this->Raters_.size()), "rater") + " outlined " +
        Counted(static_cast<int64_t>(cases), "case") + ".");
  if (several)
  {
    lines.push_back("Two raters overlap with a Dice of " + Fixed(sums.MeanDice.Mean(), 2) +
      " on average. Corrected for chance, their agreement is " + rcn_kappa_words(sums.Kappa.Mean()) + " (Fleiss' κ " +
      Fixed(sums.Kappa.Mean(), 2) + ", Krippendorff's α " + Fixed(sums.Alpha.Mean(), 2) + ").");
    size_t most = 0, least = 0;
    for (size_t r = 0; r < sums.Raters.size(); ++r)
    {
      const double extent = sums.Raters[r].Extent.Mean();
      most = extent > sums.Raters[most].Extent.Mean() || !sums.Raters[most].Extent.Count() ? r : most;
      least = extent < sums.Raters[least].Extent.Mean() || !sums.Raters[least].Extent.Count() ? r : least;
    }
    if (most != least && !sums.MixedExtents)
    {
      lines.push_back(this->Raters_[most] + " marks most (" + this->ExtentText(sums.Raters[most].Extent.Mean()) + "), " +
        this->Raters_[least] + " least (" + this->ExtentText(sums.Raters[least].Extent.Mean()) + ").");
    }
  }
  if (sums.DisputedShare.Count())
  {
    lines.push_back(sums.DisputedShare.Mean() > 0
        ? Percent(sums.DisputedShare.Mean(), 0) + " of what anybody marked is disputed: some raters marked it, others did not."
        : "Nothing is disputed: all raters marked the same voxels.");
  }
  for (const Series& series : this->Series_)
  {
    if (!series.HasReport[0])
    {
      continue;
    }
    const EvaluationReport& report = series.Reports[0];
    const rcn_interval& interval = report.Interval[RCN_MR_ECE];
    const std::string worst = WorstBinInWords(report);
    lines.push_back(series.Name + ": around the marks its probabilities are off by " +
      SmallPercent(report.Figures[RCN_MR_ECE]) + " on average" +
      (interval.units > 0 && std::isfinite(interval.low)
          ? " (95 %: " + SmallPercent(interval.low) + " to " + SmallPercent(interval.high) + ")"
          : "") +
      (series.HasReport[1] ? ", near the contour by " + SmallPercent(series.Reports[1].Figures[RCN_MR_ECE]) : "") + ". " +
      worst);
    for (const std::string& remark : RemarksInWords(report))
    {
      lines.push_back(series.Name + ": " + remark);
    }
  }
  for (const std::string& sentence : this->LeftOut_)
  {
    lines.push_back(sentence);
  }
  page.List(lines);
}

void Report::WriteOverall()
{
  const Agreement& sums = this->Sums_;
  PageTable overall;
  overall.Caption = "All raters together, corrected for chance";
  overall.Columns = { "Figure", "Whole image", "In words",
    { "Where anybody marked", "only voxels that at least one rater marked" } };
  const auto add = [&](const std::string& name, const Spread& whole, const Spread& marked, bool words) {
    overall.Rows.push_back(
      { name, whole.Cell(words ? 3 : 4), words ? rcn_kappa_words(whole.Mean()) : "", marked.Cell(words ? 3 : 4) });
  };
  add("Fleiss' κ", sums.Kappa, sums.UnionKappa, true);
  add("Krippendorff's α", sums.Alpha, sums.UnionAlpha, true);
  add("Gwet's AC1", sums.Ac1, sums.UnionAc1, true);
  add("Mean entropy (bits)", sums.Entropy, sums.UnionEntropy, false);
  this->Page_.Add(overall);
  this->Page_.Note(
    "Words after Landis and Koch 1977. Where anybody marked, the easy background is left out; agreement by chance is high "
    "there, and κ can be near or below 0 although raters overlap well.");
}

void Report::WriteRaters()
{
  const Agreement& sums = this->Sums_;
  const size_t count = this->Raters_.size();
  PageTable raters;
  raters.Caption = AgainstOthersText() + std::string(this->Cases_.size() > 1 ? ": mean, and range over cases" : "");
  raters.Columns = { "Rater", { sums.Heading, "what the rater marked" }, { "Dice", "overlap with the majority of the others" },
    { "Sensitivity", "share of the others' marks that this rater marks too" },
    { "Specificity", "share of what the others left out that this rater leaves out too" },
    { "STAPLE sensitivity", "the same against the hidden truth that STAPLE estimates" }, "STAPLE specificity" };
  if (this->Cases_.size() > 1)
  {
    raters.Columns.emplace_back("Cases");
  }
  for (size_t r = 0; r < count; ++r)
  {
    const Agreement::Rater& rater = sums.Raters[r];
    raters.Rows.push_back({ this->Raters_[r], rater.Extent.Cell(2), rater.Dice.Cell(3), rater.Sensitivity.Cell(3),
      rater.Specificity.Cell(4), rater.StapleSensitivity.Cell(3), rater.StapleSpecificity.Cell(4) });
    if (this->Cases_.size() > 1)
    {
      raters.Rows.back().emplace_back(static_cast<double>(rater.Cases), 0);
    }
  }
  this->Page_.Add(raters);
  if (count < 2)
  {
    return;
  }
  this->Page_.Add(PairMatrix(sums, this->Raters_), "1 is the same outline, 0 no overlap.");
  if (count > MostRatersInPairs)
  {
    return;
  }
  PageTable pairs;
  pairs.Caption = "Pairs of raters" + std::string(this->Cases_.size() > 1 ? ": mean, and range over cases" : "");
  pairs.Columns = { "Pair", "Dice", "Jaccard", "Cohen's κ" };
  if (this->Options_.Surfaces)
  {
    pairs.Columns.emplace_back("Hausdorff 95 % (" + sums.Length + ")");
    pairs.Columns.emplace_back("Mean surface distance (" + sums.Length + ")");
  }
  for (size_t a = 0; a < count; ++a)
  {
    for (size_t b = a + 1; b < count; ++b)
    {
      const Agreement::Pair& pair = sums.Pairs[a * count + b];
      if (!pair.Dice.Count())
      {
        continue;
      }
      pairs.Rows.push_back(
        { this->Raters_[a] + " – " + this->Raters_[b], pair.Dice.Cell(3), pair.Jaccard.Cell(3), pair.Kappa.Cell(3) });
      if (this->Options_.Surfaces)
      {
        pairs.Rows.back().push_back(pair.Hausdorff.Cell(2));
        pairs.Rows.back().push_back(pair.Surface.Cell(2));
      }
    }
  }
  this->Page_.Add(pairs);
}

void Report::WriteRegions()
{
  const Agreement& sums = this->Sums_;
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
        one.Cell(2), PageCell(all > 0 ? 100 * one.Mean() / all : NAN, 1) });
    }
    this->Page_.Add(table);
  }
  this->Page_.Paragraph("Anybody: " + this->ExtentText(sums.Union.Mean()) +
    "; at least half: " + this->ExtentText(sums.Majority.Mean()) +
    "; everybody: " + this->ExtentText(sums.Intersection.Mean()) + "; disputed: " + this->ExtentText(sums.Disputed.Mean()) +
    (this->Cases_.size() > 1 ? " (means over cases)." : ".") + (sums.Levels.count(2) ? " " + MajorityRemark(2) : ""));
  if (this->Single_.Regions.empty())
  {
    return;
  }
  const size_t shown = std::min<size_t>(10, this->Single_.Regions.size());
  const Extent extent(this->Single_.Geometry);
  PageTable regions;
  regions.Caption =
    "Largest disputed regions (" + std::to_string(shown) + " of " + std::to_string(this->Single_.Regions.size()) + ")";
  regions.Columns = { "#", extent.Heading, extent.PlaceHeading, { "Slice", "the first is 0" }, "Marked by", "Most votes" };
  for (size_t i = 0; i < shown; ++i)
  {
    const rcn_dispute& region = this->Single_.Regions[i];
    std::string names;
    for (const std::string& name : NamesOf(region.marked_by, this->Raters_))
    {
      names += (names.empty() ? "" : ", ") + name;
    }
    regions.Rows.push_back({ PageCell(static_cast<double>(i + 1), 0),
      PageCell(static_cast<double>(region.voxels) * extent.PerVoxel, extent.Text(region.voxels)), extent.PlaceOf(region),
      PageCell(static_cast<double>(region.at[2]), 0), names, PageCell(region.max_votes, 0) });
  }
  this->Page_.Add(regions);
}

void Report::WriteAgreement()
{
  this->Page_.Section("agreement", "How far raters agree");
  if (this->Raters_.size() > 1)
  {
    this->WriteOverall();
  }
  this->WriteRaters();
  this->WriteRegions();
}

void Report::WriteModels()
{
  if (this->Series_.empty())
  {
    return;
  }
  Page& page = this->Page_;
  page.Section("models", "Does 70 % mean 70 %?");
  page.Paragraph(
    "A model's probability is compared with the share of raters who really mark the voxel. On the line of a diagram both are "
    "the same. Rest the pointer on a diagram, or touch it, to read its values.");
  for (const Series& series : this->Series_)
  {
    if (series.Correction)
    {
      size_t fitted = 0;
      for (const CaseSummary& one : this->Cases_)
      {
        fitted += std::count(series.Correction->Cases.begin(), series.Correction->Cases.end(), one.One.Id) > 0;
      }
      page.Paragraph(series.Name + ": " + rcn_recalib_name(series.Correction->Correction.method) + ", " +
        CorrectionInWords(series.Correction->Correction) +
        (fitted ? ". It was fitted on " + std::to_string(fitted) + " of these cases; judged there, it looks better than it is."
                : "."));
    }
  }
  static const struct
  {
    rcn_figure Figure;
    const char* Name;
    const char* Meaning;
    int Sign; ///< 1: higher is better, -1: lower, 0: neither
  } columns[] = {
    { RCN_MR_ECE, "MR-ECE (%)", "how far probabilities are from the share of raters, on average; lower is better", -1 },
    { RCN_SIGNED, "Signed (%)", "above 0: promises too much; below: too little", 0 },
    { RCN_BRIER, "Brier", "mean squared error against all raters; lower is better", -1 },
    { RCN_AUC_HISTOGRAM, "AUC",
      "does a higher probability mean foreground? against the majority of the raters; higher is better", 1 },
    { RCN_DICE, "Dice", "overlap with the majority of the raters, mean over cases; higher is better", 1 },
    { RCN_DICE_POOLED, "Dice, pooled", "the same over all voxels together: large structures count most; higher is better", 1 },
  };
  PageTable table;
  table.Caption = "Each model " + std::string(this->Cases_.size() > 1 ? "with 95 % intervals" : "on this case") +
    "; the best of its region is marked, ≈ those that cannot be told apart from it";
  table.Columns = { "Model", "Region" };
  for (const auto& column : columns)
  {
    table.Columns.emplace_back(column.Name, column.Meaning);
  }
  for (size_t g = 0; g < 3; ++g)
  {
    const size_t firstRow = table.Rows.size();
    std::vector<const Series*> shown;
    for (const Series& series : this->Series_)
    {
      if (series.HasReport[g])
      {
        table.Rows.push_back({ series.Name, RegionWords[g] });
        for (const auto& column : columns)
        {
          const bool percent = column.Figure == RCN_MR_ECE || column.Figure == RCN_SIGNED;
          const rcn_interval& interval = series.Reports[g].Interval[column.Figure];
          const double scale = percent ? 100 : 1;
          const int digits = percent ? 2 : 4;
          PageCell cell(scale * series.Reports[g].Figures[column.Figure], digits);
          if (interval.units > 0 && std::isfinite(interval.low))
          {
            cell.Small = FromTo(scale * interval.low, scale * interval.high, digits);
          }
          table.Rows.back().push_back(cell);
        }
        shown.push_back(&series);
      }
    }
    for (size_t c = 0; shown.size() > 1 && c < sizeof columns / sizeof *columns; ++c)
    {
      const auto value = [&](size_t i) { return columns[c].Sign * table.Rows[firstRow + i][c + 2].Value; };
      size_t best = shown.size();
      for (size_t i = 0; i < shown.size(); ++i)
      {
        best = std::isfinite(value(i)) && (best == shown.size() || value(i) > value(best)) ? i : best;
      }
      if (!columns[c].Sign || best == shown.size())
      {
        continue;
      }
      table.Rows[firstRow + best][c + 2].Mark = CellMark::Best;
      for (size_t i = 0; i < shown.size(); ++i)
      {
        if (i != best && std::isfinite(value(i)))
        {
          // Not told apart where there is no interval.
          const rcn_interval difference = shown[i]->Judges[g]->Compare(*shown[best]->Judges[g])[columns[c].Figure];
          if (!(difference.low > 0 || difference.high < 0))
          {
            table.Rows[firstRow + i][c + 2].Mark = CellMark::Tie;
          }
        }
      }
    }
  }
  page.Add(table);
  page.Note(
    "MR-ECE: how far the probability is from the share of raters who mark the voxel, on average over voxels and raters (" +
    Counted(this->Options_.Judge.Calib.bins, "bin") + "). Around all marks: the box around them and " +
    Counted(this->Options_.Judge.Region.margin, "voxel") + "; near the contour: within " +
    Fixed(this->Options_.Judge.Region.band_mm, 1) + " " + this->Sums_.Length +
    " of it. Intervals: over patients where the list names them, otherwise over cases; none below " +
    std::to_string(RCN_INTERVAL_UNITS) +
    ". AUC is taken from a histogram. Majority: the probability that a majority of raters marks "
    "the voxel; expected: the expected share of raters, the readout whose MR-ECE a perfect model brings to 0.");
  for (const Series& series : this->Series_)
  {
    bool replaced = false; // shown in grey in the diagram of the corrected one
    for (const Series& other : this->Series_)
    {
      replaced = replaced || (other.Before >= 0 && &this->Series_[static_cast<size_t>(other.Before)] == &series);
    }
    std::vector<PagePanel> panels;
    for (size_t g = 0; g < 3 && !replaced; ++g)
    {
      if (series.HasReport[g])
      {
        const Series* before = series.Before >= 0 ? &this->Series_[static_cast<size_t>(series.Before)] : nullptr;
        panels.push_back({ ReliabilityDiagram(
                             series.Reports[g], RegionWords[g], before && before->HasReport[g] ? &before->Reports[g] : nullptr),
          "" });
      }
    }
    if (!panels.empty())
    {
      page.Heading(series.Name);
      page.Add(panels, true);
    }
  }
}

void Report::WriteCases()
{
  if (this->Cases_.size() < 2)
  {
    return;
  }
  this->Page_.Section("cases", "Case by case");
  PageTable table;
  table.Caption = "Click on a heading to sort";
  table.Columns = { "Case", "Split", "Raters", { "Mean Dice", "of two raters" }, { "Fleiss' κ", "whole image" },
    { "κ where marked", "where anybody marked" }, { "Disputed (%)", "of what anybody marked" },
    { this->Sums_.Heading, "of what anybody marked" } };
  for (const Series& series : this->Series_)
  {
    table.Columns.emplace_back("MR-ECE (%), " + series.Name, "around all marks");
  }
  for (const CaseSummary& one : this->Cases_)
  {
    table.Rows.push_back({ one.One.Id, one.One.Split, PageCell(one.Raters, 0), PageCell(one.MeanDice, 3),
      PageCell(one.Kappa, 3), PageCell(one.UnionKappa, 3), PageCell(100 * one.DisputedShare, 1), PageCell(one.Union, 2) });
    for (const Series& series : this->Series_)
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

// ---- pictures --------------------------------------------------------------------------------------

/// What a model says level by level, on one slice.
void Report::WriteLevelPanels(const SlicePanels& slice, size_t model, const Volume& prediction)
{
  const std::string& name = this->Options_.Models[model].Name;
  const int raters = prediction.View().components - 1;
  const std::string of = " of " + std::to_string(raters);
  Figure lines =
    slice.Begin("Contours of " + name, "Where it is as likely as not that at least 1, 2, ... raters mark the voxel");
  for (int level = 1; level <= raters; ++level)
  {
    uint8_t color[3];
    rcn_color_share(color, static_cast<double>(level) / raters);
    lines.Hint("at least " + std::to_string(level) + of + " raters: 50 %");
    slice.View.DrawLine(
      lines, slice.All, slice.View.ReadoutMap(prediction, RCN_READOUT_AT_LEAST, level), 0.5, HexColor(color), 3);
    lines.Hint("");
  }
  std::vector<PagePanel> panels = { { lines, name + ": at least 1 … " + std::to_string(raters) + " raters, 50 % contours" } };
  for (int level = 1; level <= raters; ++level)
  {
    panels.push_back(slice.Probability("Exactly " + std::to_string(level) + of,
      "The probability by " + name + " that exactly " + std::to_string(level) + of + " raters mark the voxel",
      slice.View.LevelMap(prediction, level)));
  }
  this->Page_.Add(panels);
}

void Report::WriteCasePictures(const CaseSummary& summary)
{
  Page& page = this->Page_;
  const Workspace& workspace = this->Workspace_;
  this->Workspace_.LoadCase(summary.One, this->List_.Raters);
  const AgreementReport agreement = workspace.Agree(false);
  const rcn_agreement& figures = *agreement.Figures;
  std::vector<Volume> predictions;
  for (size_t model = 0; model < this->Options_.Models.size(); ++model)
  {
    predictions.push_back(this->PredictionOf(model, summary.One));
  }
  const std::vector<int64_t> slices = SlicesToSee(workspace, this->Options_.Slices);
  const std::vector<rcn_slice_votes> counts = SliceCounts(workspace);
  const bool flat = rcn_votes_geometry(workspace.Votes())->size[2] == 1;
  if (!this->Options_.Data.empty())
  {
    page.Heading(summary.One.Id);
    page.Paragraph("Mean Dice " + Fixed(summary.MeanDice, 2) + ", Fleiss' κ " + Fixed(summary.Kappa, 2) + " (" +
      rcn_kappa_words(summary.Kappa) + "); " + Percent(summary.DisputedShare, 0) + " of what anybody marked is disputed.");
  }
  page.Legend("Marked by", LevelLegend(figures, *rcn_votes_geometry(workspace.Votes())));
  for (size_t s = 0; s < slices.size(); ++s)
  {
    const SlicePanels slice(page, workspace, slices[s], summary.One.Id);
    std::vector<PagePanel> panels, each;
    if (!flat)
    {
      const rcn_slice_votes& here = counts[static_cast<size_t>(slices[s])];
      page.Note("Slice " + std::to_string(slices[s]) +
        (here.disputed ? ": " + std::to_string(here.disputed) + " of " + Counted(here.marked, "marked voxel") + " disputed"
                       : ""));
    }
    if (workspace.HasImage())
    {
      panels.push_back({ slice.Begin("Image", "The image alone"), "Image" });
    }
    Figure all = slice.Begin("Outlines", "The outlines of all raters over the image");
    for (int r = 0; r < figures.raters; ++r)
    {
      if (!figures.rater[r].present)
      {
        continue;
      }
      const std::string& name = workspace.RaterNames()[static_cast<size_t>(r)];
      slice.View.DrawRater(all, slice.All, r);
      if (s == 0 && figures.present_count <= static_cast<int>(MostRatersInPairs))
      {
        Figure one = slice.Begin(name, "The outline of rater " + name);
        slice.View.DrawRater(one, slice.All, r);
        each.push_back({ one, name });
      }
    }
    panels.push_back({ all, "All outlines" });
    panels.push_back(slice.Levels());
    Figure contours = slice.Begin("Consensus contours", "Contours of what at least 1, 2, ... raters marked");
    slice.View.DrawLevelLines(contours, slice.All);
    panels.push_back({ contours, "At least 1 … " + std::to_string(figures.present_count) + " raters" });
    panels.insert(panels.end(), each.begin(), each.end());
    for (size_t model = 0; model < predictions.size(); ++model)
    {
      const rcn_calib_options shown = this->ReadoutFor(model, this->Options_.Readout).Calib;
      const std::string& name = this->Options_.Models[model].Name;
      panels.push_back(
        slice.Probability(name + (this->PredictsLevels_[model] ? " (" + ReadoutText(shown.readout, shown.at_least) + ")" : ""),
          "The probability that model " + name + " predicts",
          slice.View.ReadoutMap(predictions[model], shown.readout, shown.at_least)));
    }
    page.Add(panels);
    if (s > 0)
    {
      continue;
    }
    page.Legend("Outlines", RaterLegend(workspace.RaterNames()));
    if (!predictions.empty())
    {
      page.Legend("Probability", ProbabilityLegend());
    }
    for (size_t model = 0; model < predictions.size(); ++model)
    {
      if (this->PredictsLevels_[model])
      {
        this->WriteLevelPanels(slice, model, predictions[model]);
      }
    }
  }
}

void Report::WritePictures()
{
  std::vector<size_t> order(this->Cases_.size());
  for (size_t i = 0; i < order.size(); ++i)
  {
    order[i] = i;
  }
  const auto share = [this](
                       size_t i) { return std::isfinite(this->Cases_[i].DisputedShare) ? this->Cases_[i].DisputedShare : -1; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return share(a) > share(b); });
  order.resize(std::min(order.size(), this->Options_.Pictures));
  if (order.empty())
  {
    return;
  }
  this->Page_.Section("pictures", "Where they disagree");
  this->Page_.Note(std::string(this->Cases_.size() > order.size() ? "The most disputed cases: " + std::to_string(order.size()) +
                         " of " + std::to_string(this->Cases_.size()) + ". "
                                                                  : "") +
    "Outlines and areas show their meaning when the pointer rests on them. Pictures are cut to what raters marked and what is "
    "around it.");
  for (size_t i = 0; i < order.size(); ++i)
  {
    const CaseSummary& one = this->Cases_[order[i]];
    this->Show(0.8 + 0.2 * static_cast<double>(i) / static_cast<double>(order.size()), "drawing " + one.One.Id);
    this->WriteCasePictures(one);
  }
}

// ---- how it was made -------------------------------------------------------------------------------

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
  for (size_t m = 0; m < this->Models_.size(); ++m)
  {
    if (!this->Models_[m])
    {
      continue;
    }
    const Model& model = *this->Models_[m];
    const ModelInfo& info = model.Info();
    PageTable table;
    table.Caption = "Model " + this->Options_.Models[m].Name;
    table.Columns = { "What", "Value" };
    std::string raters, spacing;
    for (const std::string& name : info.Raters)
    {
      raters += (raters.empty() ? "" : ", ") + name;
    }
    table.Rows = { { "File", model.Path() }, { "Network", rcn_arch_name(model.Options().arch) },
      { "Learned by", info.Strategy.empty() ? "not known" : info.Strategy }, { "From raters", raters },
      { "Channels", std::to_string(model.Options().channels) }, { "Normalization", NormalizationText(info.Normalization) },
      { "Readout", ReadoutText(info.Readout, info.AtLeast) },
      { "Recalibration",
        info.Correction ? std::string(rcn_recalib_name(info.Correction->Correction.method)) + ", " +
            CorrectionInWords(info.Correction->Correction) + ", fitted on " +
            Counted(static_cast<int64_t>(info.Correction->Cases.size()), "case")
                        : "none" } };
    char* version = nullptr;
    rcn_context* context = this->Workspace_.Context();
    Check(rcn_model_read(&version, context, model.Path().c_str(), "version"), context);
    table.Rows.push_back({ "Written by", version ? std::string("RaterConsensus ") + version : "another program" });
    rcn_model_free(version, context);
    page.Add(table);
  }
#endif
  for (const std::string& remark : this->Remarks_)
  {
    page.Note(remark);
  }
  if (!this->Options_.Data.empty() && !this->Options_.List)
  {
    this->Files_.insert(this->Options_.Data);
  }
  PageTable files;
  files.Caption = "Files read";
  files.Columns = { "File", "Bytes", "Changed" };
  for (const std::string& file : this->Files_)
  {
    struct stat status{};
    const bool known = stat(file.c_str(), &status) == 0;
    files.Rows.push_back({ file, PageCell(known && S_ISREG(status.st_mode) ? static_cast<double>(status.st_size) : NAN, 0),
      known ? TimeText(status.st_mtime) : "–" });
  }
  page.Add(files);
}

ReportResult Report::Run()
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
  this->Workspace_.SetProgress(
    [this](double, const char*) { return this->Options_.Progress && this->Options_.Progress(this->Fraction_, this->Stage_); });
  this->ReadModels();
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
  if (this->Cases_.empty())
  {
    throw Error(RCN_EDATA, this->Options_.Data + ": no case can be used.");
  }
  for (Series& series : this->Series_)
  {
    for (size_t g = 0; g < 3; ++g)
    {
      this->Show(0.8, "judging " + series.Name);
      series.HasReport[g] = !series.Judges[g]->CaseIds().empty();
      series.Reports.push_back(series.HasReport[g] ? series.Judges[g]->Report() : EvaluationReport());
    }
  }
  this->WriteSummary();
  this->WriteAgreement();
  this->WritePictures();
  this->WriteModels();
  this->WriteCases();
  this->WriteHow();
  this->Show(1, "writing");
  WriteText(this->Options_.Output, this->Page_.Html());
  result.Cases = this->Cases_.size();
  result.LeftOut = this->LeftOut_.size();
  return result;
}

} // namespace

void AddComparison(
  Page& page, const Workspace& workspace, const std::string& id, const std::vector<std::pair<std::string, Volume>>& predictions)
{
  const SlicePanels slice(page, workspace, SlicesToSee(workspace, 1).front(), id);
  std::vector<PagePanel> panels;
  if (workspace.HasImage())
  {
    panels.push_back({ slice.Begin("Image", "The image alone"), "Image" });
  }
  panels.push_back(slice.Levels());
  for (const auto& prediction : predictions)
  {
    panels.push_back(slice.Probability(prediction.first, "The expected share of raters that " + prediction.first + " predicts",
      slice.View.ReadoutMap(prediction.second, RCN_READOUT_EXPECTED)));
  }
  page.Heading(id);
  page.Add(panels);
}

std::string CheckReport(const ReportOptions& options)
{
  if (options.Output.empty())
  {
    return "Say where to write the report with -o FILE.html.";
  }
  const std::string sentence = CheckText(options.Output);
  if (!sentence.empty())
  {
    return sentence;
  }
  if (options.Data.empty() == options.One.Raters.empty())
  {
    return "Give either masks with --rater NAME=FILE or a list with --data LIST.";
  }
  rcn_readout readout;
  int atLeast;
  if (!options.Readout.empty() && !ParseReadout(readout, atLeast, options.Readout))
  {
    return std::string("--readout is ") + ReadoutChoices + ", not '" + options.Readout + "'.";
  }
  std::set<std::string> names;
  for (const ReportModel& model : options.Models)
  {
    std::error_code ignored;
    if (model.Name.empty() || (model.Predictions.empty() && model.Model.empty()))
    {
      return "A model needs a name and its predictions: --pred NAME=" + std::string(options.Data.empty() ? "FILE." : "DIR.");
    }
    if (!names.insert(model.Name).second)
    {
      return "The model " + model.Name + " is named twice; give each another name.";
    }
    if (!options.Data.empty() && !model.Predictions.empty() && !fs::is_directory(model.Predictions, ignored))
    {
      return model.Predictions + " is no folder of predictions.";
    }
    if (options.Data.empty() && fs::is_directory(model.Predictions, ignored))
    {
      return model.Predictions + " is a folder; for one case, give the prediction's file.";
    }
#ifndef RCN_HAVE_NETWORKS
    if (!model.Model.empty())
    {
      return model.Model + ": this program was built without networks and cannot read a model.";
    }
#endif
  }
  return "";
}

ReportResult WriteReport(const ReportOptions& options)
{
  const std::string sentence = CheckReport(options);
  if (!sentence.empty())
  {
    throw Error(RCN_EINVALID, sentence);
  }
  return Report(options).Run();
}

} // namespace rcn
