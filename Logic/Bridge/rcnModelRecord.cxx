// SPDX-License-Identifier: Apache-2.0
#include "rcnModelRecord.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "rcn/rcn.h"
#include "rcnReport.h"

namespace rcn
{

namespace
{

/// What identifies a correction; empty: there is none.
std::string CorrectionHash(const std::shared_ptr<const Recalibration>& correction)
{
  if (!correction)
  {
    return "";
  }
  const std::string text = RecalibrationText(*correction);
  return HashText(rcn_hash_bytes(RCN_HASH_START, text.data(), text.size()));
}

/// Numbers that are not defined are left out: a record has no null.
void SetFinite(JsonObject& object, const std::string& key, double value)
{
  if (std::isfinite(value))
  {
    object.Set(key, value);
  }
}

JsonObject FiguresJson(const EvaluationReport& report)
{
  JsonObject figures;
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    if (std::isfinite(report.Figures[f]))
    {
      JsonObject figure{ { "value", report.Figures[f] } };
      if (report.Interval[f].units > 0)
      {
        SetFinite(figure, "low", report.Interval[f].low);
        SetFinite(figure, "high", report.Interval[f].high);
      }
      figures.Set(rcn_figure_name(static_cast<rcn_figure>(f)), figure);
    }
  }
  return figures;
}

/// The whole diagram, so that it can be drawn without the cases.
JsonArray RecordedBins(const EvaluationReport& report)
{
  JsonArray bins;
  for (size_t b = 0; b < report.Bins.size(); ++b)
  {
    const rcn_calib_bin& bin = report.Bins[b];
    JsonObject one{ { "lower", bin.lower }, { "upper", bin.upper }, { "count", bin.count } };
    SetFinite(one, "confidence", bin.confidence);
    SetFinite(one, "frequency", bin.frequency);
    SetFinite(one, "low", report.BandLow[b]);
    SetFinite(one, "high", report.BandHigh[b]);
    bins.Add(one);
  }
  return bins;
}

/// The stored calibration by split: an empty object where there is none; what is of other weights is left out.
JsonHandle ReadCalibration(rcn_context* context, const Model& model)
{
  const std::string about = model.Path() + ": its \"calibration\" cannot be read";
  const std::string text = ModelMetadata(context, model.Path(), "calibration");
  JsonHandle root = ParseJson(text.empty() ? "{}" : text, about);
  if (!json_is_object(root.get()))
  {
    throw Error(RCN_EFORMAT, about + ": it must be an object.");
  }
  const std::string ours = model.Hash();
  const char* split;
  json_t* entry;
  void* next;
  json_object_foreach_safe(root.get(), next, split, entry)
  {
    const char* hash = json_string_value(json_object_get(entry, "hash"));
    // What was measured with other weights says nothing about these.
    if (!hash || ours != hash)
    {
      json_object_del(root.get(), split);
    }
  }
  return root;
}

/// Back into the same struct that an evaluation fills: whoever shows one can show both. What the record does not hold is NaN.
void ReadFigures(EvaluationReport& report, const JsonReader& figures)
{
  std::fill(report.Figures, report.Figures + RCN_FIGURES, NAN);
  for (int f = 0; f < RCN_FIGURES; ++f)
  {
    report.Interval[f] = { NAN, NAN, NAN, NAN, NAN, 0 };
    const char* name = rcn_figure_name(static_cast<rcn_figure>(f));
    if (figures.Has(name))
    {
      const JsonReader one = figures.Object(name);
      report.Figures[f] = report.Interval[f].value = one.Number("value", -1e12, 1e12);
      report.Interval[f].low = one.Number("low", -1e12, 1e12, NAN);
      report.Interval[f].high = one.Number("high", -1e12, 1e12, NAN);
      report.Interval[f].units = one.Has("low") ? static_cast<int>(report.Patients) : 0;
    }
  }
}

constexpr int64_t Most = int64_t(1) << 52; // of what is counted: a file that says more says nonsense

RecordedCalibration ReadEntry(const JsonReader& reader, const std::string& split, const std::string& correction)
{
  RecordedCalibration out;
  out.Split = split;
  out.Day = reader.Text("date", "");
  out.Readout = reader.Text("readout", "");
  out.Learned = static_cast<size_t>(reader.WholeNumber("learned", 0, Most, 0));
  // The weights are the same, but the correction was changed since: shown, with a remark.
  out.IsOutdated = reader.Text("correction", "") != correction;
  if (!Parse(out.Region.region, reader.Text("region", rcn_region_name(out.Region.region))))
  {
    reader.Fail("\"region\" is unknown.");
  }
  out.Region.margin = reader.WholeNumber("margin", 0, Most, out.Region.margin);
  out.Region.band_mm = reader.Number("band_mm", 0, 1e6, out.Region.band_mm);
  EvaluationReport& report = out.Report;
  report.Cases = static_cast<size_t>(reader.WholeNumber("cases", 1, Most));
  report.Patients = static_cast<size_t>(reader.WholeNumber("patients", 1, Most, static_cast<int64_t>(report.Cases)));
  report.Voxels = reader.WholeNumber("voxels", 0, Most, 0);
  report.Pairs = reader.WholeNumber("pairs", 0, Most, 0);
  report.MassEce = report.MassMce = report.MassAce = NAN;
  report.Auc.reference = reader.Number("auc", 0, 1, NAN);
  report.Auc.pairs = NAN;
  ReadFigures(report, reader.Object("figures"));
  for (const JsonReader& bin : reader.Objects("bins"))
  {
    report.Bins.push_back({ bin.Number("lower", 0, 1), bin.Number("upper", 0, 1), bin.WholeNumber("count", 0, Most),
      bin.Number("confidence", 0, 1, NAN), bin.Number("frequency", 0, 1, NAN) });
    // Otherwise a point without a place would be drawn.
    if (report.Bins.back().count > 0 && !(bin.Has("confidence") && bin.Has("frequency")))
    {
      bin.Fail("a bin with votes must have \"confidence\" and \"frequency\".");
    }
    report.BandLow.push_back(bin.Number("low", 0, 1, NAN));
    report.BandHigh.push_back(bin.Number("high", 0, 1, NAN));
  }
  return out;
}

/// "0.7 x 0.7 x 2.5 mm"
std::string SpacingText(const double* spacing, int count)
{
  std::string text;
  for (int a = 0; a < count; ++a)
  {
    text += (a ? " x " : "") + CsvNumber(std::round(spacing[a] * 1e4) / 1e4);
  }
  return text + " mm";
}

/// A model of an older version, or of another program, does not say.
void ReadTraining(ModelRecord& record, rcn_context* context, const Model& model)
{
  const std::string text = ModelMetadata(context, model.Path(), "training");
  if (text.empty())
  {
    return;
  }
  const std::string about = model.Path() + ": its \"training\" cannot be read";
  const JsonHandle root = ParseJson(text, about);
  const JsonReader reader(root.get(), about);
  record.TrainingCases = reader.Texts("training cases");
  record.ValidationCases = reader.Texts("validation cases");
  record.OlderCases = static_cast<int64_t>(reader.Number("old cases", 0, 1e12, 0));
  record.HasCases = reader.Has("training cases");
}

} // namespace

std::string RecordedCalibration::InWords() const
{
  const rcn_interval& interval = this->Report.Interval[RCN_MR_ECE];
  std::string text = "MR-ECE " + PercentText(this->Report.Figures[RCN_MR_ECE], 2);
  if (interval.units > 0 && std::isfinite(interval.low))
  {
    text += " (95 %: " + FromTo(100 * interval.low, 100 * interval.high, 2) + " %)";
  }
  text += ", " + Counted(static_cast<int64_t>(this->Report.Cases), "case");
  text += this->Report.Patients < this->Report.Cases ? " of " + UnitsInWords(this->Report) : "";
  text += ", " + RegionInWords(this->Region, "") + (this->Day.empty() ? "" : ", " + this->Day);
  if (this->Learned > 0)
  {
    text += "; " + std::to_string(this->Learned) + " of the cases have the names of training cases";
  }
  return text + (this->IsOutdated ? "; its correction was changed since, so its present calibration is unknown" : "");
}

const RecordedCalibration* ModelRecord::Find(const std::string& split) const
{
  const auto found = std::find_if(this->Calibration.begin(), this->Calibration.end(),
    [&split](const RecordedCalibration& one) { return one.Split == split; });
  return found == this->Calibration.end() ? nullptr : &*found;
}

ModelRecord RecordOf(rcn_context* context, const Model& model)
{
  const ModelInfo& info = model.Info();
  ModelRecord record;
  record.File = model.Path();
  record.Hash = model.Hash();
  record.Version = ModelMetadata(context, model.Path(), "version");
  record.Created = ModelMetadata(context, model.Path(), "created").substr(0, 10);
  record.Network = std::string(rcn_arch_name(model.Options().arch)) + ", " + Counted(model.Options().channels, "channel");
  record.Strategy = info.Strategy;
  record.Raters = info.Raters;
  record.Structures = NamesOf(info.Structures);
  record.Spacing = model.Is3D() && info.HasSpacing ? SpacingText(model.Options().spacing, 3)
    : info.PixelSize[0] > 0                        ? SpacingText(info.PixelSize, 2)
                                                   : "";
  record.Normalization = NormalizationText(info.Normalization);
  record.Readout = ReadoutText(info.Readout, info.AtLeast);
  record.Correction = info.Correction ? std::string(rcn_recalib_name(info.Correction->Correction.method)) + ", " +
      CorrectionInWords(info.Correction->Correction) + ", fitted on " +
      Counted(static_cast<int64_t>(info.Correction->Cases.size()), "case")
                                      : "none";
  try
  {
    ReadTraining(record, context, model);
    const JsonHandle calibration = ReadCalibration(context, model);
    const JsonReader reader(calibration.get(), model.Path() + ": its \"calibration\" cannot be read");
    for (const char* split : { "validation", "test" })
    {
      if (reader.Has(split))
      {
        record.Calibration.push_back(ReadEntry(reader.Object(split), split, CorrectionHash(info.Correction)));
      }
    }
  }
  catch (const Error& error)
  {
    if (error.Status() != RCN_EFORMAT)
    {
      throw;
    }
    // A record that cannot be read does not stop anybody from using the model: it is told.
    record.Problem = error.what();
  }
  return record;
}

std::string RecordInWords(const ModelRecord& record)
{
  const std::string raters = Counted(static_cast<int64_t>(record.Raters.size()), "rater");
  std::string text = record.HasCases ? "It was trained on " +
      Counted(static_cast<int64_t>(record.TrainingCases.size()) + record.OlderCases, "case") + " of " + raters
                                     : "It was trained on " + raters + "; the number of cases is unknown";
  text += (record.Created.empty() ? "" : " (" + record.Created + ")") + ".";
  for (const RecordedCalibration& one : record.Calibration)
  {
    text += " On " + one.Split + " cases: " + one.InWords() + ".";
  }
  return text + (record.Calibration.empty() ? " It has no calibration record." : "");
}

// Anonymous: no file, and raters by number only; ids of cases are never shown.
std::vector<std::pair<std::string, std::string>> RecordRows(const ModelRecord& record, bool anonymous)
{
  const auto known = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
  std::vector<std::pair<std::string, std::string>> rows;
  if (!anonymous)
  {
    rows.emplace_back("File", record.File);
  }
  const auto cases = [](const std::vector<std::string>& ids) { return static_cast<int64_t>(ids.size()); };
  rows.insert(rows.end(),
    { { "Hash of the weights", record.Hash }, { "Trained", known(record.Created) },
      { "Training cases",
        !record.HasCases ? "unknown"
                         : Counted(cases(record.TrainingCases), "case") +
            (record.OlderCases > 0 ? " and " + std::to_string(record.OlderCases) + " older ones" : "") + ", validated on " +
            Counted(cases(record.ValidationCases), "case") },
      { "Raters", std::to_string(record.Raters.size()) + (anonymous ? "" : ": " + JoinNames(record.Raters)) },
      { "Strategy", known(record.Strategy) }, { "Network", record.Network }, { "Spacing", known(record.Spacing) },
      { "Normalization", record.Normalization }, { "Readout", record.Readout }, { "Correction", record.Correction },
      { "Written by", record.Version.empty() ? "another program" : "RaterConsensus " + record.Version } });
  if (!record.Structures.empty())
  {
    rows.emplace_back("Structures", JoinNames(record.Structures));
  }
  const bool several = record.Structures.size() > 1;
  for (const char* split : { "validation", "test" })
  {
    const RecordedCalibration* found = record.Find(split);
    rows.emplace_back(std::string("Calibration on ") + split + " cases" + (several ? ", mean over structures" : ""),
      found ? found->InWords() : "not recorded");
  }
  if (!record.Problem.empty())
  {
    rows.emplace_back("Not readable", anonymous ? "a part of the record" : record.Problem);
  }
  return rows;
}

void RecordCalibration(rcn_context* context, const std::string& path, const std::string& split, const EvaluationReport& report,
  const EvaluationOptions& options, const std::vector<std::string>& ids)
{
  const Model model(context, path);
  const ModelRecord record = RecordOf(context, model);
  const std::set<std::string> learned(record.TrainingCases.begin(), record.TrainingCases.end());
  // Recognized by the names of cases only: a hint for whoever reads the figures, not a proof.
  const auto seen = std::count_if(ids.begin(), ids.end(), [&learned](const std::string& id) { return learned.count(id) > 0; });
  JsonObject entry{ { "date", DayText() }, { "hash", model.Hash() }, { "correction", CorrectionHash(model.Info().Correction) },
    { "cases", report.Cases }, { "patients", report.Patients }, { "learned", seen }, { "voxels", report.Voxels },
    { "pairs", report.Pairs }, { "region", rcn_region_name(options.Region.region) }, { "margin", options.Region.margin },
    { "band_mm", options.Region.band_mm }, { "readout", ReadoutText(options.Calib.readout, options.Calib.at_least) },
    { "figures", FiguresJson(report) }, { "bins", RecordedBins(report) } };
  SetFinite(entry, "auc", report.Auc.reference);
  JsonHandle all(json_object());
  try
  {
    all = ReadCalibration(context, model);
  }
  catch (const Error& error)
  {
    if (error.Status() != RCN_EFORMAT) // what cannot be read is replaced
    {
      throw;
    }
  }
  json_object_set_new(all.get(), split.c_str(), entry.Release());
  const std::string text = CompactJsonText(all.get());
  if (text != ModelMetadata(context, path, "calibration")) // what is known already changes no file
  {
    Check(rcn_model_set(context, path.c_str(), "calibration", text.c_str()), context);
  }
}

// The figures of leave-one-out are the only ones that are fair to a correction on the cases that it was fitted to.
void StoreCorrection(rcn_context* context, const std::string& path, const RecalibrationResult& result, const std::string& split)
{
  SetCorrection(context, path, result.Correction);
  if (result.Tested && split == "validation")
  {
    RecordCalibration(context, path, split, result.EachLeftOut, result.Options);
  }
}

// By hash, of weights and of correction: names of files prove nothing.
void CheckMadeBy(const Model& model, const PredictionRun* run, const std::string& source)
{
  if (!run)
  {
    throw Error(RCN_EINVALID, source + " does not name its model; predict with " + model.Path() + " again.");
  }
  if (run->Hash != model.Hash())
  {
    throw Error(RCN_EINVALID, source + " holds predictions of another model (" + run->Model + ") than " + model.Path() + ".");
  }
  if (CorrectionHash(run->Correction) != CorrectionHash(model.Info().Correction))
  {
    throw Error(
      RCN_EINVALID, source + " was not made with the correction that " + model.Path() + " has now; predict again with it.");
  }
}

} // namespace rcn
