// SPDX-License-Identifier: Apache-2.0
/// Results as tables, and back: an application that keeps its results as tables (in a scene, in files) shows them again from
/// these, without computing anything twice.
#ifndef rcnTables_h
#define rcnTables_h

#include <string>
#include <vector>

#include "rcnEvaluation.h"
#include "rcnVolumes.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// Cells are text, "not defined" for a number that is not; `IsNumber` says what they are.
struct TableColumn
{
  std::string Name;
  std::vector<std::string> Cells;
  bool IsNumber = false;
};

struct Table
{
  std::vector<TableColumn> Columns;

  size_t RowCount() const { return this->Columns.empty() ? 0 : this->Columns.front().Cells.size(); }
  /// The row whose first cell says so; -1: none.
  int RowOf(const std::string& first) const;
  /// Empty where there is no such cell.
  std::string Text(int row, const std::string& column) const;
  /// NaN where there is no number.
  double Number(int row, const std::string& column) const;

  void AddText(const std::string& name, const std::vector<std::string>& cells);
  void AddNumbers(const std::string& name, const std::vector<double>& cells);
};

/// A row for each rater: what they marked, how they agree with the others, and with each of them.
Table RaterTable(const AgreementReport& report, const std::vector<std::string>& raters);
/// All raters together, a row for each figure.
Table SummaryTable(const AgreementReport& report);
/// The disputed regions, largest first, with a place to visit (RAS) and the box around it (voxels).
Table DisputeTable(const AgreementReport& report, const std::vector<std::string>& raters);
/// The same from these tables; no figures where the tables are not such ones. `geometry`: of the case.
AgreementReport AgreementFromTables(
  const Table& ofRaters, const Table& summary, const Table& disputes, const rcn_geometry& geometry);

/// What raters would measure: the whole map with its intervals, "at least t raters", and each connected component.
Table VolumesTable(const PredictedVolumes& volumes);
/// Not known where the table is not such a one.
PredictedVolumes VolumesFromTable(const Table& table);

/// All figures; those of `before` (may be null) in a column beside them.
Table FiguresTable(const EvaluationReport& report, const EvaluationReport* before);
/// All diagrams bin by bin: of all raters, of each of them, and of each number of raters.
Table CurvesTable(const EvaluationReport& report, const EvaluationReport* before, const std::vector<std::string>& raters);
/// One diagram for a chart: its bins that are not empty.
Table ReliabilityTable(const EvaluationReport& report);
/// False where the tables do not hold such a report (before: that of the column "Before"). Intervals are not kept.
bool EvaluationFromTables(EvaluationReport& report, const Table& figures, const Table& curves, bool before);

} // namespace rcn

#endif
