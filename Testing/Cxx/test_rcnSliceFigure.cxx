// SPDX-License-Identifier: Apache-2.0
#include "rcnSliceFigure.h"

#include <algorithm>

#include "rcnSlide.h"
#include "rcnTest.h"

namespace
{

/// Two raters on 60 (or more) x 40 x 5 voxels of 1 x 2 x 3 mm: A marks a small block, B a larger one around it on slice 3.
struct Scene
{
  Folder Files;
  rcn_geometry Geometry;
  rcn::Workspace Work;

  enum Way
  {
    Plain,
    Turned,    ///< x to the right, y to the front
    Transposed ///< x to the back, y to the left
  };

  explicit Scene(Way way = Plain, bool marks = true, int64_t columns = 60) : Geometry(rcn_geometry_make(columns, 40, 5))
  {
    this->Geometry.spacing[1] = 2;
    this->Geometry.spacing[2] = 3;
    if (way == Turned)
    {
      this->Geometry.direction[0] = this->Geometry.direction[4] = -1;
    }
    else if (way == Transposed)
    {
      this->Geometry.direction[0] = this->Geometry.direction[4] = 0;
      this->Geometry.direction[1] = this->Geometry.direction[3] = 1;
    }
    rcn::Case one;
    one.Id = "scene";
    for (int r = 0; r < 2; ++r)
    {
      const rcn::Volume mask = rcn::Volume::Allocate(this->Geometry, RCN_UINT8);
      for (int64_t i = 0; i < columns * 40 * 5; ++i)
      {
        const int64_t x = i % columns, y = i / columns % 40, z = i / columns / 40, more = r * (z == 3) * 4;
        static_cast<uint8_t*>(mask.Data())[i] = marks && x >= 20 - more && x < 24 + more && y >= 10 && y < 14 && z >= 2;
      }
      rcn::RaterFile rater;
      rater.Name = r ? "B" : "A";
      rater.Path = this->Files / (rater.Name + ".nrrd");
      rcn::WriteImage(rater.Path, mask.View(), rcn::Content::Mask);
      one.Raters.push_back(rater);
    }
    this->Work.LoadCase(one);
  }
};

void SlicesWorthALook()
{
  const Scene scene, nothing(Scene::Plain, false);
  CHECK(rcn::SlicesToSee(scene.Work, 3) == std::vector<int64_t>{ 3 });
  const std::vector<rcn_slice_votes> counts = rcn::SliceCounts(scene.Work);
  CHECK(counts.size() == 5 && counts[0].marked == 0 && counts[2].marked == 16 && counts[2].disputed == 0);
  CHECK(counts[3].marked == 48 && counts[3].disputed == 32);
  CHECK(rcn::SlicesToSee(nothing.Work, 3) == std::vector<int64_t>{ 2 }); // the middle
}

void Maps()
{
  const Scene scene;
  const rcn::SliceFigure view(scene.Work, 3);
  const std::vector<float> a = view.RaterMap(0), b = view.RaterMap(1), share = view.ShareMap();
  CHECK(a.size() == 60 * 40 && std::count(a.begin(), a.end(), 1.0F) == 16 && std::count(b.begin(), b.end(), 1.0F) == 48);
  for (size_t i = 0; i < a.size(); ++i)
  {
    CHECK(share[i] == (a[i] + b[i]) / 2);
  }
  const rcn::Volume levels = rcn::Volume::Allocate(scene.Geometry, RCN_FLOAT32, 3);
  for (int64_t i = 0; i < 60 * 40 * 5; ++i)
  {
    float* voxel = static_cast<float*>(levels.Data()) + 3 * i;
    voxel[0] = 0.5F;
    voxel[1] = i / 2400 == 3 ? 0.3F : 0.5F;
    voxel[2] = 0.5F - voxel[1];
  }
  CHECK_NEAR(view.ReadoutMap(levels, RCN_SLICE_LEVEL, 1)[7], 0.3, 1e-6);
  CHECK_NEAR(view.ReadoutMap(levels, RCN_READOUT_EXPECTED)[7], 0.35, 1e-6);
  CHECK_NEAR(view.ReadoutMap(levels, RCN_READOUT_AT_LEAST, 2)[7], 0.2, 1e-6);
  CHECK_THROWS(rcn::SliceFigure(scene.Work, 9).RaterMap(0), RCN_EINVALID, "Slice 9 does not exist");
}

/// The coordinates of the first path in a figure.
std::vector<double> PathOf(const rcn::Figure& figure)
{
  const std::string svg = figure.Inline();
  std::vector<double> numbers;
  size_t at = svg.find(" d=\"M");
  const size_t end = svg.find('"', at + 4);
  for (at += 5; at < end; ++at)
  {
    size_t length = 0;
    numbers.push_back(std::stod(svg.substr(at), &length));
    at += length;
  }
  return numbers;
}

/// Turned over or not, the same outline at the same place; x and y in millimeters have one scale.
void OutlinesAreWhereTheyBelong()
{
  const Scene plain, turned(Scene::Turned);
  double low[2][2], high[2][2];
  int64_t columns = 0, rows = 0;
  const Scene* scenes[2] = { &plain, &turned };
  for (int s = 0; s < 2; ++s)
  {
    const rcn::SliceFigure view(scenes[s]->Work, 3, false);
    rcn::Figure figure(120, view.HeightOf(120), "", "");
    view.DrawRater(figure, { 0, 0, 120 }, 0);
    const std::vector<double> xy = PathOf(figure);
    for (size_t a = 0; a < 2; ++a)
    {
      low[s][a] = 1e9;
      high[s][a] = -1e9;
      for (size_t i = a; i < xy.size(); i += 2)
      {
        low[s][a] = std::min(low[s][a], xy[i]);
        high[s][a] = std::max(high[s][a], xy[i]);
      }
    }
    CHECK_NEAR(view.HeightOf(120), 160, 1e-9); // 60 x 40 voxels of 1 x 2 mm
    view.Picture(columns, rows);
    CHECK(columns == 60 && rows == 40);
  }
  CHECK_NEAR(low[0][0], 2 * 20, 0.01);
  CHECK_NEAR(high[0][0], 2 * 24, 0.01);
  CHECK_NEAR(low[0][1], 4 * 10, 0.01);
  CHECK_NEAR(high[0][1], 4 * 14, 0.01);
  // Stored with both axes turned, voxel 20 lies as far from the other edge.
  CHECK_NEAR(low[1][0], 2 * (60 - 24), 0.01);
  CHECK_NEAR(low[1][1], 4 * (40 - 14), 0.01);
}

/// A file whose first axis runs to the back is shown as the viewer shows it: back down, left to the right.
void ColumnsBeforeRows()
{
  const Scene scene(Scene::Transposed);
  const rcn::SliceFigure view(scene.Work, 3, false);
  CHECK_NEAR(view.HeightOf(160), 120, 1e-9); // 40 x 60 voxels of 2 x 1 mm
  int64_t columns = 0, rows = 0;
  view.Picture(columns, rows);
  CHECK(columns == 40 && rows == 60);
  rcn::Figure figure(160, 120, "", "");
  view.DrawRater(figure, { 0, 0, 160 }, 0);
  const std::vector<double> xy = PathOf(figure);
  for (size_t i = 0; i < xy.size(); i += 2)
  {
    CHECK(xy[i] >= 4 * 10 - 0.01 && xy[i] <= 4 * 14 + 0.01 && xy[i + 1] >= 2 * 20 - 0.01 && xy[i + 1] <= 2 * 24 + 0.01);
  }
}

void CutToTheMarks()
{
  const Scene scene(Scene::Plain, true, 200);
  const rcn::SliceFigure view(scene.Work, 3);
  int64_t columns = 0, rows = 0;
  const std::vector<uint8_t> rgb = view.Picture(columns, rows);
  // All 80 mm of the height, and in the width no strip: four fifths of that.
  CHECK(columns == 64 && rows == 40 && rgb.size() == static_cast<size_t>(3 * columns * rows));
  CHECK(rgb.front() == 96 && rgb.back() == 96); // no image: plain gray
}

void Legends()
{
  const Scene scene;
  const rcn::AgreementReport agreement = scene.Work.Agree(false);
  const auto levels = rcn::LevelLegend(*agreement.Figures, scene.Geometry);
  CHECK(levels.size() == 2 && levels[0].second == "1 of 2: 0.192 mL" && levels[0].first != levels[1].first);
  CHECK(rcn::RaterLegend(scene.Work.RaterNames())[1].second == "B" && rcn::ProbabilityLegend().back().second == "100 %");
}

/// A prediction of the scene: a share of raters on 20 <= x < 24, 10 <= y < 14 of each slice, 0.02 elsewhere.
rcn::Volume Expect(const rcn_geometry& geometry, const std::vector<float>& shares)
{
  const rcn::Volume map = rcn::Volume::Allocate(geometry, RCN_FLOAT32);
  for (int64_t i = 0; i < 60 * 40 * 5; ++i)
  {
    const int64_t x = i % 60, y = i / 60 % 40;
    const bool inside = x >= 20 && x < 24 && y >= 10 && y < 14;
    static_cast<float*>(map.Data())[i] = inside ? shares[static_cast<size_t>(i / 2400)] : 0.02F;
  }
  return map;
}

/// Without raters: the largest expected area first, then the unsure, and none beside another.
void SlicesThatAModelExpects()
{
  const Scene scene;
  rcn_context* context = scene.Work.Context();
  const auto slices = rcn::SliceExpectations(context, Expect(scene.Geometry, { 0.5F, 0.6F, 0.7F, 0.99F, 0.98F }));
  CHECK(slices.size() == 5 && slices[0].unsure == 16 && slices[3].unsure == 0 && slices[3].first[0] == 20);
  CHECK((rcn::SlicesToSee(slices, 5) == std::vector<int64_t>{ 3, 0 })); // 1 and 2 are beside these
  CHECK((rcn::SlicesToSee(slices, 1) == std::vector<int64_t>{ 3 }));
  const rcn_box box = rcn::ExpectedBox(slices, scene.Geometry);
  CHECK(box.first[0] == 20 && box.end[1] == 14 && box.first[2] == 0 && box.end[2] == 5);
  const auto nothing = rcn::SliceExpectations(context, Expect(scene.Geometry, { 0, 0, 0, 0, 0 }));
  CHECK((rcn::SlicesToSee(nothing, 3) == std::vector<int64_t>{ 2 })); // the middle
  CHECK(rcn::ExpectedBox(nothing, scene.Geometry).end[0] == 60);
}

/// Across another axis, the size of the slice and its place on the page are those of the other two.
void AcrossAnotherAxis()
{
  const Scene scene;
  const rcn::SliceFigure view(rcn::SliceSubject(scene.Work), { 0, 21 }, nullptr); // sagittal: front to the left, head up
  CHECK_NEAR(view.HeightOf(160), 30, 1e-9);                                       // 40 x 5 voxels of 2 x 3 mm
  int64_t columns = 0, rows = 0;
  view.Picture(columns, rows);
  CHECK(columns == 40 && rows == 5 && view.RaterMap(0).size() == 200);
  rcn::Figure figure(160, 30, "", "");
  view.DrawRater(figure, { 0, 0, 160 }, 0);
  const std::vector<double> xy = PathOf(figure);
  CHECK(!xy.empty());
  for (size_t i = 0; i < xy.size(); i += 2) // y from 10 to 14, z from 2 to 5, which is on top
  {
    CHECK(xy[i] >= 4 * 10 - 0.01 && xy[i] <= 4 * 14 + 0.01 && xy[i + 1] >= -0.01 && xy[i + 1] <= 6 * 3 + 0.01);
  }
}

void Slides()
{
  const Scene scene;
  rcn::SlideOptions options((rcn::SliceSubject(scene.Work)));
  options.Title = "A <title>";
  options.Words = { "15.2 mL" };
  const std::string raters = rcn::SlideFigure(options).Svg();
  for (const char* words : { "width=\"1920\"", "height=\"1080\"", "A &lt;title&gt;", "slice 4", " outlines", "1 of 2",
         "15.2 mL", "For research, not for clinical use." })
  {
    CHECK(raters.find(words) != std::string::npos);
  }
  // Without raters: the prediction alone, on the slice that it expects most of.
  const rcn::Volume map = Expect(scene.Geometry, { 0, 0.9F, 0, 0, 0 });
  rcn::SliceSubject alone(scene.Work.Context(), map);
  rcn::SlideOptions model(alone);
  CHECK_THROWS(rcn::SlideFigure(model), RCN_EINVALID, "raters or a prediction");
  model.Prediction = &map;
  const std::string predicted = rcn::SlideFigure(model).Svg();
  CHECK(predicted.find("slice 2<") != std::string::npos && predicted.find("Expected outline (50 %)") != std::string::npos);
  CHECK(predicted.find("Predicted probability") != std::string::npos && predicted.find("<path") != std::string::npos);
  model.Slice = { 1, 40 };
  CHECK_THROWS(rcn::SlideFigure(model), RCN_EINVALID, "Slice 41 does not exist");
  model.Slice = { 1, 12 };
  CHECK(rcn::SlideFigure(model).Svg().find("slice 13") != std::string::npos);
}

} // namespace

int main()
{
  RUN(SlicesWorthALook);
  RUN(Maps);
  RUN(OutlinesAreWhereTheyBelong);
  RUN(ColumnsBeforeRows);
  RUN(CutToTheMarks);
  RUN(Legends);
  RUN(SlicesThatAModelExpects);
  RUN(AcrossAnotherAxis);
  RUN(Slides);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
