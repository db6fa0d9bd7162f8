// SPDX-License-Identifier: Apache-2.0
#include "rcnReportPage.h"

#include <cstdio>

#include "rcnTest.h"

namespace
{

/// Two raters and a prediction of a small volume.
struct Scene
{
  Folder Files;
  rcn::ReportOptions Options;

  Scene()
  {
    const rcn_geometry geometry = rcn_geometry_make(24, 20, 4);
    const rcn::Volume probability = rcn::Volume::Allocate(geometry, RCN_FLOAT32);
    float* values = static_cast<float*>(probability.Data());
    std::fill(values, values + 24 * 20 * 4, 0.1F);
    for (int r = 0; r < 2; ++r)
    {
      std::vector<uint8_t> ball = Ball(geometry.size, 11 + r, 10, 2, 5);
      rcn::RaterFile rater;
      rater.Name = r ? "B" : "A";
      rater.Path = this->Files / (rater.Name + ".nrrd");
      rcn::WriteImage(rater.Path, { ball.data(), RCN_UINT8, 1, geometry }, rcn::Content::Mask);
      this->Options.One.Raters.push_back(rater);
      for (size_t i = 0; i < ball.size(); ++i)
      {
        values[i] += 0.4F * static_cast<float>(ball[i]);
      }
    }
    this->Options.One.Id = "case";
    rcn::WriteImage(this->Files / "p.nrrd", probability.View(), rcn::Content::Probability);
    rcn::ReportModel model;
    model.Name = "net";
    model.Predictions = this->Files / "p.nrrd";
    this->Options.Models.push_back(model);
    this->Options.Output = this->Files / "r.html";
    this->Options.Workspace.Threads = 1;
  }
  void WriteOld() const { std::ofstream(this->Options.Output) << "old"; }
};

/// Stopped at its first report of progress, at a later one, ..., the old page stays; it gets through in the end.
void Stopped()
{
  Scene scene;
  size_t stopped = 0;
  for (int calls = 0;; calls = 2 * calls + 1)
  {
    scene.WriteOld();
    int countdown = calls;
    double last = 0;
    bool forward = true;
    scene.Options.Progress = [&](double fraction, const std::string& stage) {
      forward = forward && fraction >= last && fraction <= 1 && !stage.empty();
      last = fraction;
      return --countdown < 0;
    };
    try
    {
      CHECK(rcn::WriteReport(scene.Options).Cases == 1);
      CHECK(forward && last == 1);
      break;
    }
    catch (const rcn::Error& error)
    {
      CHECK(error.Status() == RCN_ECANCELLED);
      CHECK(TextOf(scene.Options.Output) == "old");
      CHECK(scene.Files.Count() == 4); // nothing is left beside it
      ++stopped;
    }
    if (calls > 1 << 20)
    {
      CHECK(!"it never gets through");
      break;
    }
  }
  CHECK(stopped >= 3);
  CHECK(TextOf(scene.Options.Output).rfind("<!DOCTYPE html>", 0) == 0);
}

/// The only case is drawn as it was measured: its files may be gone by then.
void ReadsOneCaseOnce()
{
  Scene scene;
  scene.Options.Slides = { scene.Files / "s.svg" };
  scene.Options.Progress = [&](double fraction, const std::string&) {
    for (const char* file : { "A.nrrd", "B.nrrd", "p.nrrd" })
    {
      fraction >= 0.8 ? std::remove((scene.Files / file).c_str()) : 0;
    }
    return false;
  };
  CHECK(rcn::WriteReport(scene.Options).Cases == 1);
  CHECK(scene.Files.Count() == 2 && TextOf(scene.Files / "s.svg").find("Predicted by net.") != std::string::npos);
}

void WrongOptions()
{
  const Scene good;
  const auto says = [&good](const std::function<void(rcn::ReportOptions&)>& change, const std::string& words) {
    rcn::ReportOptions options = good.Options;
    change(options);
    CHECK_THROWS(rcn::WriteReport(options), RCN_EINVALID, words);
  };
  says([](rcn::ReportOptions& o) { o.Output.clear(); }, "output file");
  says([&](rcn::ReportOptions& o) { o.Output = good.Files / "no/r.html"; }, "no/r.html");
  says([](rcn::ReportOptions& o) { o.One.Raters.clear(); }, "either");
  says([](rcn::ReportOptions& o) { o.Data = "list.json"; }, "either");
  says([](rcn::ReportOptions& o) { o.Readout = "best"; }, "The readout must be majority");
  says([](rcn::ReportOptions& o) { o.Models.push_back(o.Models[0]); }, "named twice");
  says([](rcn::ReportOptions& o) { o.Models[0].Predictions.clear(); }, "its predictions");
  CHECK(good.Files.Count() == 3);
}

} // namespace

int main()
{
  RUN(Stopped);
  RUN(ReadsOneCaseOnce);
  RUN(WrongOptions);
  return Failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
