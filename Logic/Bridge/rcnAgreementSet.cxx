// SPDX-License-Identifier: Apache-2.0
#include "rcnAgreementSet.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>

#include "rcnAgreementFigures.h"
#include "rcnReport.h"

namespace rcn
{

std::string SetFigure::MeanText() const
{
  return Fixed(this->Mean.value, this->Digits);
}

std::string SetFigure::IntervalText() const
{
  return FromTo(this->Mean.low, this->Mean.high, this->Digits);
}

std::string SetFigure::CountText(size_t cases) const
{
  return this->Cases < cases ? "n = " + std::to_string(this->Cases) : "";
}

const SetFigure* FigureOf(const SetFigures& figures, const std::string& key)
{
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const SetFigure& one) { return one.Key == key; });
  return found == figures.end() ? nullptr : &*found;
}

// ---- which figures ---------------------------------------------------------------------------------

struct AgreementSet::Definition
{
  std::string Key, Name, Meaning;
  int Digits;
  rcn_mean_kind Kind;
  std::string Over = ""; ///< the mean is a ratio of sums over this one's
};

namespace
{

/// Figures of a record as definitions; distances in millimeters and in pixels are two of them.
template <class TRecord, class TDefinition>
void Define(std::vector<TDefinition>& out, const std::vector<AgreementFigure<TRecord>>& figures, const std::string& prefix = "")
{
  for (const auto& figure : figures)
  {
    const rcn_mean_kind kind = figure.IsDistance()    ? RCN_MEAN_AMOUNT
      : figure.Key.find("kappa") != std::string::npos ? RCN_MEAN_KAPPA
                                                      : RCN_MEAN_SHARE;
    out.push_back({ prefix + figure.Key, figure.Heading("mm"), figure.Meaning, figure.Digits, kind });
    if (figure.IsDistance())
    {
      out.push_back({ prefix + figure.PixelKey, figure.Heading("pixels"), figure.Meaning, figure.Digits, kind });
    }
  }
}

/// What a case measures its extents in: keys of volume and bias, their headings, and the size of a voxel.
struct ExtentUnit
{
  const char *Key, *BiasKey, *Name, *BiasName;
};
const ExtentUnit ExtentUnits[] = { { "volume_ml", "volume_bias_ml", "Volume (mL)", "Volume bias (mL)" },
  { "area_mm2", "area_bias_mm2", "Area (mm²)", "Area bias (mm²)" },
  { "extent_voxels", "bias_voxels", "Extent (voxels)", "Bias (voxels)" } };

} // namespace

const std::vector<AgreementSet::Definition>& AgreementSet::OverallDefinitions()
{
  static const std::vector<Definition> all = [] {
    std::vector<Definition> some = { { "mean_dice", "Dice", "Mean over the pairs of raters. 1: the same voxels, 0: none.", 3,
                                       RCN_MEAN_SHARE },
      { "mean_kappa", "Cohen's κ", "Mean over the pairs of raters. 1: perfect, 0: as by chance.", 3, RCN_MEAN_KAPPA } };
    for (const auto& figure : OverallFigures())
    {
      for (const bool whole : { true, false })
      {
        if (figure.Digits == 3)
        {
          some.push_back({ figure.Key + (whole ? "" : "_union"), figure.Name + (whole ? "" : ", where anybody marked"),
            figure.Meaning, 3, RCN_MEAN_KAPPA });
        }
      }
    }
    std::vector<AgreementFigure<rcn_pair_agreement>> distances;
    std::copy_if(PairFigures().begin(), PairFigures().end(), std::back_inserter(distances),
      [](const AgreementFigure<rcn_pair_agreement>& figure) { return figure.IsDistance(); });
    Define(some, distances, "mean_");
    some.push_back(
      { "disputed_share", "Disputed share", "Of what anybody marked: the share that not everybody did.", 3, RCN_MEAN_SHARE });
    return some;
  }();
  return all;
}

const std::vector<AgreementSet::Definition>& AgreementSet::RaterDefinitions()
{
  static const std::vector<Definition> all = [] {
    std::vector<Definition> some;
    for (const ExtentUnit& unit : ExtentUnits)
    {
      some.push_back({ unit.Key, unit.Name, "How much the rater marked.", 2, RCN_MEAN_AMOUNT });
    }
    some.push_back({ "bias_percent", "Bias (%)",
      "How much more than the mean of the others the rater marked, over all cases together, in percent of it.", 1,
      RCN_MEAN_DIFFERENCE, "others" });
    for (const ExtentUnit& unit : ExtentUnits)
    {
      some.push_back(
        { unit.BiasKey, unit.BiasName, "How much more than the mean of the others the rater marked.", 2, RCN_MEAN_DIFFERENCE });
    }
    some.push_back({ "dice_with_others", "Dice with each other rater", "Mean Dice of the rater's pairs.", 3, RCN_MEAN_SHARE });
    some.push_back(
      { "dice_among_others", "Dice among the others", "Mean Dice of the pairs without this rater.", 3, RCN_MEAN_SHARE });
    some.push_back({ "dice_gap", "Difference",
      "Dice with each other rater minus Dice among the others: negative for a rater "
      "who agrees less.",
      3, RCN_MEAN_DIFFERENCE });
    const size_t known = some.size();
    Define(some, RaterFigures());
    for (size_t i = known; i < some.size(); ++i)
    {
      some[i].Name += some[i].Key.find("_to_others") != std::string::npos ? ", majority of the others" : "";
    }
    return some;
  }();
  return all;
}

const std::vector<AgreementSet::Definition>& AgreementSet::PairDefinitions()
{
  static const std::vector<Definition> all = [] {
    std::vector<Definition> some;
    Define(some, PairFigures());
    return some;
  }();
  return all;
}

// ---- cases -----------------------------------------------------------------------------------------

AgreementSet::AgreementSet(const std::vector<std::string>& raters, const std::string& structure)
  : Raters_(raters), Structure_(structure)
{
}

std::string AgreementSet::LongHeader() const
{
  return this->Structure_.empty() ? CsvRow({ "case", "split", "patient", "rater", "pair", "figure", "value" })
                                  : CsvRow({ "case", "split", "patient", "structure", "rater", "pair", "figure", "value" });
}

void AgreementSet::Set(int a, int b, const std::string& figure, double value, bool inCsv)
{
  if (std::isnan(value))
  {
    return; // most figures in millimeters or in pixels never are anything else
  }
  std::vector<double>& column = this->Columns_[{ a, b, figure }];
  column.resize(this->Cases_.size() - 1, NAN);
  column.push_back(value);
  if (inCsv && this->WriteRow_ && std::isfinite(value))
  {
    const Case& one = this->Cases_.back();
    const auto name = [&](int rater) { return this->Raters_[static_cast<size_t>(rater)]; };
    std::vector<std::string> row = { one.Id, one.Split, one.Patient, a >= 0 && b < 0 ? name(a) : "",
      b >= 0 ? name(a) + " - " + name(b) : "", figure, CsvNumber(value) };
    row.insert(row.begin() + 3, this->Structure_.empty() ? 0 : 1, this->Structure_);
    this->WriteRow_(CsvRow(row));
  }
}

namespace
{

/// NaN where it is absent or null.
double NumberOf(const JsonReader& object, const std::string& key)
{
  const json_t* value = object.Get(key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

/// What the case is measured in, and how much of it a voxel is.
const ExtentUnit& ExtentOf(const JsonReader& geometry, double& perVoxel)
{
  const std::vector<double> size = geometry.Numbers("size");
  const bool flat = size.size() < 3 || std::count(size.begin(), size.end(), 1.0) > 0;
  perVoxel = 1;
  if (!json_is_array(geometry.Get("spacing_mm")))
  {
    return ExtentUnits[2];
  }
  const std::vector<double> spacing = geometry.Numbers("spacing_mm");
  for (size_t i = 0; i < spacing.size(); ++i)
  {
    perVoxel *= flat && size[i] == 1 ? 1 : spacing[i];
  }
  perVoxel /= flat ? 1 : 1000;
  return ExtentUnits[flat ? 1 : 0];
}

} // namespace

void AgreementSet::Add(const Case& one, const json_t* agreement)
{
  const JsonReader reader(agreement, "The agreement of case " + one.Id);
  this->Cases_.push_back({ one.Id, one.Split, one.Patient, {}, {}, nullptr });
  this->IsEmpty_.push_back(NumberOf(reader.Object("volumes_voxels"), "union") == 0);
  if (this->IsEmpty_.back())
  {
    this->Empty_.push_back(one.Id);
  }
  this->AddPairs(reader);
  this->AddOverall(reader);
  this->AddRaters(reader);
}

void AgreementSet::AddOverall(const JsonReader& agreement)
{
  this->Set(-1, -1, "mean_dice", NumberOf(agreement, "mean_dice"));
  const JsonReader whole = agreement.Object("whole"), marked = agreement.Object("union");
  for (const auto& figure : OverallFigures())
  {
    this->Set(-1, -1, figure.Key, NumberOf(whole, figure.Key));
    this->Set(-1, -1, figure.Key + "_union", NumberOf(marked, figure.Key));
  }
  const JsonReader voxels = agreement.Object("volumes_voxels");
  const double all = NumberOf(voxels, "union");
  const bool several = json_object_size(agreement.Get("raters")) > 1; // one rater alone disputes nothing
  this->Set(-1, -1, "disputed_share", several && all > 0 ? NumberOf(voxels, "disputed") / all : NAN);
  for (const AgreementPart& part : AgreementParts())
  {
    this->Set(-1, -1, part.Key + "_voxels", NumberOf(voxels, part.Key));
  }
}

void AgreementSet::AddPairs(const JsonReader& agreement)
{
  std::map<std::string, Spread> means;
  const JsonReader raters = agreement.Object("raters");
  const int64_t undefinedBefore = this->UndefinedPairs_;
  for (const JsonReader& pair : agreement.Objects("pairs"))
  {
    const auto isEmpty = [&](const char* key) { return NumberOf(raters.Object(pair.Text(key)), "voxels") == 0; };
    const bool measured = pair.Has("hausdorff95_mm") || pair.Has("hausdorff95_pixels");
    this->HasPairs_ = true;
    this->HasDistances_ = this->HasDistances_ || measured;
    this->UndefinedPairs_ += measured && isEmpty("a") != isEmpty("b") ? 1 : 0;
    const auto place = [&](const char* key) {
      return static_cast<int>(std::find(this->Raters_.begin(), this->Raters_.end(), pair.Text(key)) - this->Raters_.begin());
    };
    for (const Definition& figure : PairDefinitions())
    {
      const double value = NumberOf(pair, figure.Key);
      this->Set(place("a"), place("b"), figure.Key, value);
      means["mean_" + figure.Key].Add(value);
    }
  }
  this->UndefinedCases_ += this->UndefinedPairs_ > undefinedBefore ? 1 : 0;
  for (const auto& mean : means)
  {
    if (mean.first != "mean_dice" && mean.second.Count())
    {
      this->Set(-1, -1, mean.first, mean.second.Mean());
    }
  }
}

void AgreementSet::AddRaters(const JsonReader& agreement)
{
  const JsonReader raters = agreement.Object("raters");
  const int count = static_cast<int>(this->Raters_.size());
  const size_t number = this->Cases_.size() - 1;
  double perVoxel;
  const JsonReader geometry = agreement.Object("geometry");
  const ExtentUnit& unit = ExtentOf(geometry, perVoxel);
  this->MixedUnits_ = this->MixedUnits_ || (!this->Unit_.empty() && this->Unit_ != unit.Key);
  this->Unit_ = unit.Key;
  for (int r = 0; r < count; ++r)
  {
    if (!raters.Has(this->Raters_[static_cast<size_t>(r)]))
    {
      continue;
    }
    Spread others, with, among;
    for (int a = 0; a < count; ++a)
    {
      const std::string& name = this->Raters_[static_cast<size_t>(a)];
      if (a != r && raters.Has(name))
      {
        others.Add(NumberOf(raters.Object(name), "voxels"));
      }
      for (int b = a + 1; b < count; ++b)
      {
        const auto pair = this->Columns_.find({ a, b, "dice" });
        if (pair != this->Columns_.end() && pair->second.size() > number)
        {
          (a == r || b == r ? with : among).Add(pair->second[number]);
        }
      }
    }
    const JsonReader rater = raters.Object(this->Raters_[static_cast<size_t>(r)]);
    const double own = NumberOf(rater, "voxels"), bias = own - others.Mean();
    this->Set(r, -1, unit.Key, own * perVoxel);
    this->Set(r, -1, unit.BiasKey, bias * perVoxel);
    this->Set(r, -1, "others", others.Mean() * perVoxel, false);
    this->Set(r, -1, "bias_percent", 100 * bias * perVoxel, false);
    this->Set(r, -1, "dice_with_others", with.Mean());
    this->Set(r, -1, "dice_among_others", among.Mean());
    this->Set(r, -1, "dice_gap", with.Mean() - among.Mean());
    for (const auto& figure : RaterFigures())
    {
      // STAPLE's truth of one rater is what this rater marked.
      const bool says = others.Count() || figure.Key.find("staple") == std::string::npos;
      this->Set(r, -1, figure.Key, says ? NumberOf(rater, figure.Key) : NAN);
    }
  }
}

// ---- over all cases --------------------------------------------------------------------------------

SetFigures AgreementSet::FiguresOf(rcn_context* context, const std::vector<Definition>& definitions, int a, int b,
  const std::vector<size_t>& cases, const std::vector<int>& patients) const
{
  rcn_interval_options options = RCN_INTERVAL_OPTIONS_INIT;
  options.patients = patients.data();
  const auto chosen = [&](const std::string& key) {
    const auto column = this->Columns_.find({ a, b, key });
    std::vector<double> values;
    for (const size_t number : cases)
    {
      values.push_back(column != this->Columns_.end() && number < column->second.size() ? column->second[number] : NAN);
    }
    return values;
  };
  SetFigures figures;
  for (const Definition& definition : definitions)
  {
    SetFigure figure{ definition.Key, definition.Name, definition.Meaning, definition.Digits, {}, NAN, NAN, 0 };
    const std::vector<double> values = chosen(definition.Key);
    const std::vector<double> over = definition.Over.empty() ? std::vector<double>() : chosen(definition.Over);
    Spread spread;
    for (size_t i = 0; i < values.size(); ++i)
    {
      spread.Add(over.empty() ? values[i] : over[i] > 0 ? values[i] / over[i] : NAN);
    }
    if (!spread.Count() || (!over.empty() && this->MixedUnits_)) // a sum of mL and pixels would mean nothing
    {
      continue;
    }
    Check(rcn_interval_mean(&figure.Mean, context, values.data(), over.empty() ? nullptr : over.data(),
            static_cast<int64_t>(values.size()), definition.Kind, &options),
      context);
    figure.Lowest = spread.Low();
    figure.Highest = spread.High();
    figure.Cases = spread.Count();
    figures.push_back(figure);
  }
  return figures;
}

namespace
{

/// How a rater differs who agrees less with the others: by marking less, more, or elsewhere, where the interval of the bias
/// says so. `tested`: raters.
std::string DifferenceSentence(const SetRater& rater, size_t tested)
{
  const SetFigure* bias = FigureOf(rater.Figures, "bias_percent");
  const bool isKnown = bias && std::isfinite(bias->Mean.low);
  const bool less = isKnown && bias->Mean.high < 0, more = isKnown && bias->Mean.low > 0;
  const std::string amount = bias ? Fixed(bias->Mean.value, 0) + " %" : "";
  const int digits = rater.StandsOut ? 2 : 3;
  char p[32];
  std::snprintf(p, sizeof p, rater.PValue < 0.001 ? "< 0.001" : "= %.3f", rater.PValue);
  const auto dice = [&](const char* key) { return Fixed(FigureOf(rater.Figures, key)->Mean.value, digits); };
  const std::string how = !rater.StandsOut ? " agrees slightly less with the others than they do among themselves"
    : less                                 ? " marks less than the others"
    : more                                 ? " marks more than the others"
    : isKnown                              ? " marks other places than the others"
                                           : " agrees less with the others than they do among themselves";
  const std::string by = !rater.StandsOut ? ""
    : less || more     ? "; marks " + Fixed(std::fabs(bias->Mean.value), 0) + " % " + (less ? "less" : "more")
    : bias && !isKnown ? "; bias " + amount + ", no interval"
                       : "";
  return rater.Name + how + " (Dice " + dice("dice_with_others") + ", others " + dice("dice_among_others") + by + "; p " + p +
    ", corrected for " + std::to_string(tested) + " raters)" +
    (rater.StandsOut ? "." : "; by less than 0.05 nobody stands out.");
}

/// Who agrees less with the others than they do among themselves: a one-sided test for each rater, corrected by Holm; and by
/// how much.
void FindWhoStandsOut(std::vector<SetRater>& raters)
{
  std::vector<double> p;
  for (const SetRater& rater : raters)
  {
    const SetFigure* gap = FigureOf(rater.Figures, "dice_gap");
    const double both = gap ? gap->Mean.p_value : NAN;
    p.push_back(gap && gap->Mean.value < 0 ? 0.5 * both : 1 - 0.5 * both);
  }
  rcn_holm(p.data(), static_cast<int>(p.size()));
  const auto tested = static_cast<size_t>(std::count_if(p.begin(), p.end(), [](double one) { return !std::isnan(one); }));
  for (size_t r = 0; r < raters.size(); ++r)
  {
    raters[r].PValue = p[r];
    const bool isNoChance = p[r] < 0.05;
    raters[r].StandsOut = isNoChance && FigureOf(raters[r].Figures, "dice_gap")->Mean.value <= -RelevantDiceGap;
    raters[r].Sentence = isNoChance ? DifferenceSentence(raters[r], tested) : "";
  }
}

} // namespace

AgreementSummary AgreementSet::Summarize(rcn_context* context, SetCases which) const
{
  AgreementSummary summary;
  std::vector<size_t> cases;
  std::vector<std::string> patients;
  for (size_t i = 0; i < this->Cases_.size(); ++i)
  {
    if (which == SetCases::All || !this->IsEmpty_[i])
    {
      cases.push_back(i);
      patients.push_back(this->Cases_[i].Patient);
    }
  }
  const std::vector<int> numbers = PatientNumbers(patients);
  summary.Cases = cases.size();
  summary.Patients = std::set<int>(numbers.begin(), numbers.end()).size();
  if (cases.empty())
  {
    return summary;
  }
  summary.Figures = this->FiguresOf(context, OverallDefinitions(), -1, -1, cases, numbers);
  const int count = static_cast<int>(this->Raters_.size());
  for (int a = 0; a < count; ++a)
  {
    const std::string& name = this->Raters_[static_cast<size_t>(a)];
    summary.Raters.push_back({ name, this->FiguresOf(context, RaterDefinitions(), a, -1, cases, numbers), NAN, false, "" });
    for (int b = a + 1; b < count; ++b)
    {
      const SetFigures figures = this->FiguresOf(context, PairDefinitions(), a, b, cases, numbers);
      if (!figures.empty())
      {
        summary.Pairs.push_back({ name, this->Raters_[static_cast<size_t>(b)], figures });
      }
    }
  }
  FindWhoStandsOut(summary.Raters);
  return summary;
}

std::vector<std::string> AgreementSummary::Sentences() const
{
  std::vector<std::string> sentences, slight;
  size_t tested = 0;
  for (const SetRater& rater : this->Raters)
  {
    tested += std::isnan(rater.PValue) ? 0 : 1;
    if (!rater.Sentence.empty())
    {
      (rater.StandsOut ? sentences : slight).push_back(rater.Sentence);
    }
  }
  if (this->Patients < RCN_INTERVAL_UNITS)
  {
    return { "Fewer than " + std::to_string(RCN_INTERVAL_UNITS) + (this->Patients < this->Cases ? " patients" : " cases") +
      ": no intervals, and no rater is tested." };
  }
  if (sentences.empty() && tested)
  {
    sentences.push_back("No rater stands out (each against the others, corrected for " + std::to_string(tested) + " raters).");
  }
  sentences.insert(sentences.end(), slight.begin(), slight.end());
  return sentences;
}

namespace
{

/// The cases that a rater or a pair has: a figure that is always defined rests on all of them.
size_t MostCases(const SetFigures& figures)
{
  size_t most = 0;
  for (const SetFigure& one : figures)
  {
    most = std::max(most, one.Cases);
  }
  return most;
}

/// Fills in the columns and cells of rows that have names; `figuresOf` is what each row shows.
void FillTable(SetTable& table, const std::vector<const SetFigures*>& figuresOf, const std::vector<const char*>& keys)
{
  for (const char* key : keys)
  {
    const SetFigure* heading = nullptr;
    for (const SetFigures* figures : figuresOf)
    {
      heading = heading ? heading : FigureOf(*figures, key);
    }
    if (!heading)
    {
      continue;
    }
    table.Columns.push_back(heading);
    for (size_t r = 0; r < table.Rows.size(); ++r)
    {
      table.Rows[r].Cells.push_back(FigureOf(*figuresOf[r], key));
    }
  }
}

} // namespace

SetTable RaterTable(const AgreementSummary& summary)
{
  SetTable table;
  std::vector<const SetFigures*> figures;
  for (const SetRater& rater : summary.Raters)
  {
    table.Rows.push_back({ rater.Name, rater.StandsOut, MostCases(rater.Figures), {} });
    figures.push_back(&rater.Figures);
  }
  FillTable(table, figures,
    { "bias_percent", "dice_with_others", "dice_among_others", "dice_to_others", "staple_sensitivity", "staple_specificity" });
  return table;
}

SetTable PairTable(const AgreementSummary& summary)
{
  SetTable table;
  std::vector<const SetFigures*> figures;
  for (const SetPair& pair : summary.Pairs)
  {
    table.Rows.push_back({ pair.A + " – " + pair.B, false, MostCases(pair.Figures), {} });
    figures.push_back(&pair.Figures);
  }
  FillTable(
    table, figures, { "dice", "kappa", "hausdorff95_mm", "hausdorff95_pixels", "mean_surface_mm", "mean_surface_pixels" });
  return table;
}

std::string AgreementSet::EmptyInWords() const
{
  return this->Empty_.empty() ? ""
                              : "Nobody marked anything in " + std::to_string(this->Empty_.size()) + " of " +
      Counted(static_cast<int64_t>(this->Cases_.size()), "case") + ": " + JoinNames(this->Empty_) + "." +
      (this->HasDistances_  ? " Dice is 1 there, and distances are 0."
          : this->HasPairs_ ? " Dice is 1 there."
                            : "");
}

std::string AgreementSet::UndefinedInWords() const
{
  return this->UndefinedPairs_
    ? "Distances are not defined for " + Counted(this->UndefinedPairs_, "pair of raters", "pairs of raters") + " in " +
      Counted(this->UndefinedCases_, "case") + ", where one of the two marked nothing."
    : "";
}

// ---- JSON ------------------------------------------------------------------------------------------

namespace
{

JsonObject FiguresJson(const SetFigures& figures)
{
  JsonObject object;
  for (const SetFigure& one : figures)
  {
    JsonObject numbers{ { "mean", one.Mean.value }, { "low", one.Mean.low }, { "high", one.Mean.high },
      { "lowest", one.Lowest }, { "highest", one.Highest }, { "cases", one.Cases } };
    object.Set(one.Key, numbers);
  }
  return object;
}

JsonObject SummaryJson(const AgreementSummary& summary)
{
  JsonObject raters;
  JsonArray pairs;
  for (const SetRater& rater : summary.Raters)
  {
    raters.Set(rater.Name, FiguresJson(rater.Figures).Set("stands_out", rater.StandsOut).Set("p_corrected", rater.PValue));
  }
  for (const SetPair& pair : summary.Pairs)
  {
    pairs.Add(JsonObject{ { "a", pair.A }, { "b", pair.B }, { "figures", FiguresJson(pair.Figures) } });
  }
  return JsonObject{ { "cases", summary.Cases }, { "patients", summary.Patients }, { "figures", FiguresJson(summary.Figures) },
    { "raters", raters }, { "pairs", pairs }, { "stand_out", summary.Sentences() } };
}

} // namespace

json_t* AgreementSet::Json(rcn_context* context) const
{
  JsonObject object = SummaryJson(this->Summarize(context));
  object.Set("empty_cases", this->Empty_);
  object.Set("pairs_without_distance", this->UndefinedPairs_);
  object.Set("without_empty",
    this->Empty_.empty() ? rcn::Json(nullptr) : rcn::Json(SummaryJson(this->Summarize(context, SetCases::Marked))));
  return object.Release();
}

} // namespace rcn
