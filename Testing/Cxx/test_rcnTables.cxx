// SPDX-License-Identifier: Apache-2.0
// Results as tables, and back: what a panel shows of both is the same.
#include "rcnTables.h"

#include "rcnAgreementFigures.h"
#include "rcnJudge.h"
#include "rcnPhantom.h"
#include "rcnTest.h"

namespace
{

bool Same(double a, double b)
{
  return (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-9 * std::max(1.0, std::fabs(b));
}

/// What a file of tabs does to a table: cells are text.
rcn::Table Stored(rcn::Table table)
{
  for (rcn::TableColumn& column : table.Columns)
  {
    column.IsNumber = false;
  }
  return table;
}

/// Names that begin each other, as those in the list of who marked a region may.
std::vector<std::string> LoadExample(rcn::Workspace& workspace)
{
  rcn::Phantom example = rcn::MakeExample(workspace.Context());
  example.Raters[0].Name = "Ann";
  example.Raters[1].Name = "Anna";
  workspace.LoadCase(rcn::CaseOf("c", { example.Image }, "image", example.Raters));
  return workspace.RaterNames();
}

void AgreementComesBack(bool surfaces)
{
  rcn::Workspace workspace;
  const std::vector<std::string> raters = LoadExample(workspace);
  const rcn::AgreementReport was = workspace.Agree(surfaces);
  const rcn::AgreementReport is = rcn::AgreementFromTables(
    Stored(rcn::RaterTable(was, raters)), Stored(rcn::SummaryTable(was)), Stored(rcn::DisputeTable(was, raters)), was.Geometry);
  CHECK(is.Figures && is.HasSurfaces == surfaces);
  if (!is.Figures)
  {
    return;
  }
  CHECK(is.Figures->raters == 5 && is.Figures->present_count == 5);
  for (int r = 0; r < 5; ++r)
  {
    CHECK(is.Figures->rater[r].present && is.Figures->rater[r].voxels == was.Figures->rater[r].voxels);
    for (const auto& figure : rcn::RaterFigures())
    {
      CHECK(Same(figure.Of(is.Figures->rater[r]), figure.Of(was.Figures->rater[r])));
    }
    for (int other = 0; other < 5; ++other)
    {
      for (const auto& figure : rcn::PairFigures())
      {
        CHECK(Same(figure.Of(is.Figures->pair[5 * r + other]), figure.Of(was.Figures->pair[5 * r + other])));
      }
    }
  }
  CHECK(Same(is.Figures->whole.fleiss_kappa, was.Figures->whole.fleiss_kappa));
  CHECK(Same(is.Figures->whole.krippendorff_alpha, was.Figures->whole.krippendorff_alpha));
  CHECK(Same(is.Figures->on_union.gwet_ac1, was.Figures->on_union.gwet_ac1));
  CHECK(is.Figures->union_voxels == was.Figures->union_voxels && is.Figures->disputed_voxels == was.Figures->disputed_voxels);
  CHECK(is.Regions.size() == was.Regions.size() && was.Regions.size() > 2);
  for (size_t i = 0; i < is.Regions.size() && i < was.Regions.size(); ++i)
  {
    CHECK(is.Regions[i].voxels == was.Regions[i].voxels && is.Regions[i].marked_by == was.Regions[i].marked_by);
    for (int a = 0; a < 3; ++a)
    {
      CHECK(is.Regions[i].at[a] == was.Regions[i].at[a] && is.Regions[i].box.first[a] == was.Regions[i].box.first[a] &&
        is.Regions[i].box.end[a] == was.Regions[i].box.end[a]);
    }
  }
  // Tables of somebody else are no agreement.
  CHECK(!rcn::AgreementFromTables({}, {}, {}, was.Geometry).Figures);
  CHECK(!rcn::AgreementFromTables(rcn::SummaryTable(was), rcn::SummaryTable(was), {}, was.Geometry).Figures);
}

void VolumesComeBack()
{
  rcn::Workspace workspace;
  LoadExample(workspace);
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  options.method = RCN_SOFT;
  rcn::VolumeScores scores;
  for (int i = 0; i < 12; ++i)
  {
    scores.Cases.push_back("v" + std::to_string(i));
    scores.Units.push_back(i);
    scores.Scores.push_back({ 0.1 * i, -0.1, 0.05 * i, 0.2, -0.3 });
  }
  const rcn::PredictedVolumes was =
    rcn::PredictVolumes(workspace.Context(), workspace.Fuse(options).Map, 5, &scores, "the map");
  const rcn::PredictedVolumes is = rcn::VolumesFromTable(Stored(rcn::VolumesTable(was)));
  CHECK(is.IsKnown() && is.Name == was.Name && is.Unit == was.Unit && is.Raters == 5);
  CHECK(is.Sentence() == was.Sentence() && is.Remark == was.Remark && is.Cases == was.Cases);
  const auto sameTable = [](const rcn::VolumeTable& a, const rcn::VolumeTable& b) {
    return a.Headings == b.Headings && a.Rows == b.Rows;
  };
  CHECK(sameTable(is.Table(), was.Table()) && sameTable(is.ComponentTable(50), was.ComponentTable(50)));
  CHECK(!was.Components.empty() && was.Intervals[0].IsKnown());
  CHECK(!rcn::VolumesFromTable({}).IsKnown());

  // In other units: the same volumes by other numbers, everywhere.
  rcn::Units units;
  units.Volume = { "mm³", 1000 };
  const rcn::PredictedVolumes other = is.In(units);
  CHECK(was.Unit == "mL" && other.Unit == "mm³" && Same(other.Expected, 1000 * is.Expected));
  CHECK(other.Sentence().find(" mm³") != std::string::npos && other.Sentence().find("mL") == std::string::npos);
  CHECK(Same(other.AtLeast[2], 1000 * is.AtLeast[2]) && Same(other.Intervals[0].High, 1000 * is.Intervals[0].High));
  CHECK(Same(other.Components[0].Expected, 1000 * is.Components[0].Expected) && other.Table().Headings[1] == "Volume (mm³)");
  rcn_geometry picture = rcn_geometry_make(4, 4, 1);
  picture.unit = RCN_PIXELS;
  CHECK(rcn::Extent(picture, units).Unit == " pixels" && rcn::Extent(picture, units).PerVoxel == 1);
  CHECK(rcn::Extent(rcn_geometry_make(4, 4, 4), units).Heading == "Volume (mm³)");
  CHECK(Same(rcn::Extent(rcn_geometry_make(4, 4, 4), units).PerVoxel, 1));
}

void DiagramsComeBack()
{
  rcn::Workspace workspace;
  const std::vector<std::string> raters = LoadExample(workspace);
  rcn_fusion_options fusion = RCN_FUSION_OPTIONS_INIT;
  const auto judge = [&](rcn_method method) {
    fusion.method = method;
    rcn::Judging judging(workspace.Context(), raters, { { 0, rcn::EvaluationOptions() } });
    rcn::Case one;
    one.Id = "c";
    CHECK(judging.Add(one, 0, workspace.Votes(), { { workspace.Fuse(fusion).Map, "map" } }));
    return judging.Evaluations().front()->Report();
  };
  const rcn::EvaluationReport now = judge(RCN_SOFT_GAUSSIAN), before = judge(RCN_SVLS);
  const rcn::Table figures = Stored(rcn::FiguresTable(now, &before)), curves = Stored(rcn::CurvesTable(now, &before, raters));
  for (const bool old : { false, true })
  {
    const rcn::EvaluationReport& was = old ? before : now;
    rcn::EvaluationReport is;
    CHECK(rcn::EvaluationFromTables(is, figures, curves, old));
    // What tables do not have is not taken for none.
    CHECK(
      is.LevelVoxels < 0 && was.LevelVoxels == was.Voxels && rcn::RemarksInWords(is).size() <= rcn::RemarksInWords(was).size());
    CHECK(is.Bins.size() == was.Bins.size() && is.RaterBins.size() == 5 && is.Levels.size() == was.Levels.size());
    CHECK(is.Cases == 1 && is.CircularCases.empty() == was.CircularCases.empty());
    for (int f = 0; f < RCN_FIGURES; ++f)
    {
      CHECK(Same(is.Figures[f], was.Figures[f]));
    }
    for (size_t i = 0; i < is.Bins.size(); ++i)
    {
      CHECK(is.Bins[i].count == was.Bins[i].count && Same(is.Bins[i].confidence, was.Bins[i].confidence) &&
        Same(is.Bins[i].frequency, was.Bins[i].frequency) && is.Bins[i].lower == was.Bins[i].lower);
    }
    for (size_t r = 0; r < is.RaterEce.size(); ++r)
    {
      CHECK(Same(is.RaterEce[r], was.RaterEce[r]));
    }
    for (size_t t = 0; t < is.Levels.size(); ++t)
    {
      CHECK(is.Levels[t].AtLeast == was.Levels[t].AtLeast && Same(is.Levels[t].Ece, was.Levels[t].Ece));
    }
    CHECK(rcn::DirectionInWords(is) == rcn::DirectionInWords(was) && rcn::RemarksInWords(is) == rcn::RemarksInWords(was));
  }
  rcn::EvaluationReport none;
  CHECK(!rcn::EvaluationFromTables(none, rcn::FiguresTable(now, nullptr), rcn::CurvesTable(now, nullptr, raters), true));
  CHECK(!rcn::EvaluationFromTables(none, {}, {}, false));
}

} // namespace

int main()
{
  AgreementComesBack(false);
  AgreementComesBack(true);
  RUN(VolumesComeBack);
  RUN(DiagramsComeBack);
  return Failures != 0;
}
