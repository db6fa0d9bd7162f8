// SPDX-License-Identifier: Apache-2.0
#include "rcnEvaluatedCases.h"

#include <functional>

#include "rcnReport.h"

namespace rcn
{

namespace
{

struct Column
{
  std::string Key, Name;
  bool Percent;
  bool IsMean; ///< its mean over cases is shown
  rcn_mean_kind Kind;
  std::function<double(const EvaluatedCase&)> Of;
};

const std::vector<Column>& Columns()
{
  const auto inside = [](size_t level) { return [level](const EvaluatedCase& one) { return one.Volumes.Row.inside[level]; }; };
  const auto figure = [](rcn_figure which) {
    return [which](const EvaluatedCase& one) { return one.Figures[static_cast<size_t>(which)]; };
  };
  static const std::vector<Column> all = {
    { "mr_ece", "MR-ECE (%)", true, true, RCN_MEAN_SHARE, figure(RCN_MR_ECE) },
    { "ece", "ECE (%)", true, true, RCN_MEAN_SHARE, figure(RCN_ECE) },
    { "brier", "Brier", false, true, RCN_MEAN_SHARE, figure(RCN_BRIER) },
    { "nll", "NLL", false, true, RCN_MEAN_AMOUNT, figure(RCN_NLL) },
    { "rps", "RPS", false, true, RCN_MEAN_SHARE, figure(RCN_RPS) },
    { "auc", "AUC", false, true, RCN_MEAN_SHARE, [](const EvaluatedCase& one) { return one.Auc.reference; } },
    { "auc_pairs", "AUC, all votes", false, true, RCN_MEAN_SHARE, [](const EvaluatedCase& one) { return one.Auc.pairs; } },
    { "dice", "Dice", false, true, RCN_MEAN_SHARE, figure(RCN_DICE) },
    { "volume", "", false, false, RCN_MEAN_AMOUNT, [](const EvaluatedCase& one) { return one.Volumes.Row.expected; } },
    { "raters_volume", "", false, false, RCN_MEAN_AMOUNT, [](const EvaluatedCase& one) { return one.Volumes.Row.raters; } },
    { "volume_crps", "", false, false, RCN_MEAN_AMOUNT, [](const EvaluatedCase& one) { return one.Volumes.Row.crps; } },
    { "curvas_crps", "", false, false, RCN_MEAN_AMOUNT, [](const EvaluatedCase& one) { return one.Volumes.Row.curvas_crps; } },
    { "inside_80", "", false, false, RCN_MEAN_SHARE, inside(0) },
    { "inside_95", "", false, false, RCN_MEAN_SHARE, inside(1) },
    { "voxels", "", false, false, RCN_MEAN_AMOUNT, [](const EvaluatedCase& one) { return static_cast<double>(one.Voxels); } },
    { "votes", "", false, false, RCN_MEAN_AMOUNT, [](const EvaluatedCase& one) { return static_cast<double>(one.Pairs); } },
  };
  return all;
}

} // namespace

EvaluatedCases::EvaluatedCases(bool structures) : Structures_(structures)
{
  std::vector<std::string> header = { "case", "patient", "split", "model", "region", "volume_unit" };
  if (structures)
  {
    header.insert(header.begin() + 3, "structure");
  }
  for (const Column& column : Columns())
  {
    header.push_back(column.Key);
  }
  this->Csv_ = CsvRow(header);
}

void EvaluatedCases::Add(
  const Evaluation& evaluation, const std::string& model, const std::string& region, const std::string& structure)
{
  for (const EvaluatedCase& one : evaluation.CaseRows())
  {
    const std::string unit = PlainUnit(one.Volumes.Unit);
    const auto known = [](const std::string& text) { return text.empty() ? rcn::Json(nullptr) : rcn::Json(text); };
    std::vector<std::string> row = { one.Id, one.Patient, one.Split, model, region, unit };
    JsonObject object{ { "case", one.Id }, { "patient", known(one.Patient) }, { "split", known(one.Split) }, { "model", model },
      { "region", region }, { "volume_unit", unit } };
    if (this->Structures_)
    {
      row.insert(row.begin() + 3, structure);
      object.Set("structure", structure);
    }
    for (const Column& column : Columns())
    {
      row.push_back(CsvNumber(column.Of(one)));
      object.Set(column.Key, column.Of(one));
    }
    this->Csv_ += CsvRow(row);
    this->Rows_.Add(object);
  }
}

std::vector<CaseMean> EvaluatedCases::Means(const Evaluation& evaluation)
{
  const std::vector<EvaluatedCase> rows = evaluation.CaseRows();
  std::vector<std::string> names;
  for (const EvaluatedCase& one : rows)
  {
    names.push_back(one.Patient);
  }
  const std::vector<int> patients = PatientNumbers(names);
  rcn_interval_options options = RCN_INTERVAL_OPTIONS_INIT;
  options.patients = patients.data();
  std::vector<CaseMean> means;
  for (const Column& column : Columns())
  {
    std::vector<double> values;
    Spread spread;
    for (const EvaluatedCase& one : rows)
    {
      values.push_back(column.Of(one));
      spread.Add(values.back());
    }
    if (column.IsMean && spread.Count())
    {
      means.push_back({ column.Key, column.Name, column.Percent, {}, spread.Count() });
      Check(rcn_interval_mean(&means.back().Mean, evaluation.Context(), values.data(), nullptr,
              static_cast<int64_t>(values.size()), column.Kind, &options),
        evaluation.Context());
    }
  }
  return means;
}

} // namespace rcn
