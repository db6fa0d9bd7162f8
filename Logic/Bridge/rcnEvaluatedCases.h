// SPDX-License-Identifier: Apache-2.0
/// Case by case: the figures of each case by itself, as rows of a table, and their means over the cases.
#ifndef rcnEvaluatedCases_h
#define rcnEvaluatedCases_h

#include <string>
#include <vector>

#include "rcnEvaluation.h"

namespace rcn
{

/// The mean of a column over the cases that have a number in it.
struct CaseMean
{
  std::string Key, Name;
  bool Percent; ///< shown times 100
  rcn_interval Mean{};
  size_t Cases = 0;
};

/// Rows for each case, model and region, and for each of several structures: case, patient, split, model, region, numbers. One
/// place decides the columns of the CSV file and the keys of the JSON.
class EvaluatedCases
{
public:
  /// `structures`: whether there is a column for them.
  explicit EvaluatedCases(bool structures = false);

  /// Adds the cases of one evaluation (EvaluationOptions::CaseAuc), judged under that name in that region.
  void Add(
    const Evaluation& evaluation, const std::string& model, const std::string& region, const std::string& structure = "");

  const std::string& Csv() const { return this->Csv_; }
  /// A list of objects; the caller owns it.
  json_t* Json() const { return json_incref(this->Rows_.Get()); }

  /// Of one evaluation: the columns that are averaged over cases of any size (not volumes and counts).
  static std::vector<CaseMean> Means(const Evaluation& evaluation);

private:
  bool Structures_;
  std::string Csv_;
  JsonArray Rows_;
};

} // namespace rcn

#endif
