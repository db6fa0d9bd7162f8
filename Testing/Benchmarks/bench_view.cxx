// SPDX-License-Identifier: Apache-2.0
/// How fast slices follow the wheel: a phantom's volume with heat map and the outlines of all raters in three linked views,
/// scrolled as a person does, until the picture is on the screen. bench_view.py runs it and prints what it says.
///
///   bench_view X Y Z RATERS SLICES
///
/// One line of JSON: milliseconds per slice (wall clock, and processor time of all threads), seconds from the case in
/// memory to the first picture, megabytes; and of the 3-D view, where there is one: seconds until its surfaces are on the
/// screen, their triangles, milliseconds per picture while it is turned.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <QApplication>
#include <QMouseEvent>
#include <QWheelEvent>

#include "qRcnScene.h"
#include "qRcnSliceCanvas.h"
#include "qRcnSliceView.h"
#include "qRcnOrthogonalViews.h"
#include "rcn/rcn_phantom.h"
#ifdef RCN_HAVE_SURFACES
#include "qRcnSurfaceView.h"
#endif

namespace
{

double Seconds()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ProcessorSeconds()
{
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double PeakMegabytes()
{
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double CurrentMegabytes()
{
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"))
  {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2)
    {
      resident = 0;
    }
    std::fclose(file);
  }
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

double Quantile(std::vector<double> values, double share)
{
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/// The 3-D view: NaN where there is none.
struct Surfaces
{
  double First = NAN, Turn = NAN;
  long long Triangles = 0;
};

Surfaces TurnSurfaces(qRcnScene& scene)
{
  Surfaces measured;
#ifdef RCN_HAVE_SURFACES
  qRcnSurfaceView view(&scene);
  const auto draw = [&view] {
    while (view.isBusy() && view.problem().isEmpty())
    {
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    }
    QGuiApplication::sync();
  };
  if (!view.problem().isEmpty())
  {
    return measured;
  }
  view.resize(600, 450);
  const double opened = Seconds();
  view.show();
  draw();
  measured.First = Seconds() - opened;
  for (const rcn::Surface& surface : view.surfaces())
  {
    measured.Triangles += surface.Mesh->GetNumberOfCells();
  }
  std::vector<double> turns;
  QMouseEvent press(QEvent::MouseButtonPress, QPointF(300, 200), Qt::LeftButton, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&view, &press);
  for (int i = 1; i <= 40; ++i)
  {
    const double start = Seconds();
    QMouseEvent move(QEvent::MouseMove, QPointF(300 + 4 * i, 200), Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&view, &move);
    draw();
    turns.push_back(1000 * (Seconds() - start));
  }
  measured.Turn = Quantile(turns, 0.5);
#else
  (void)scene;
#endif
  return measured;
}

/// JSON has no NaN.
std::string Number(double value)
{
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return std::isfinite(value) ? text : "null";
}

} // namespace

int main(int argc, char** argv)
{
  QApplication application(argc, argv);
  const auto number = [&](int at, long otherwise) { return argc > at ? std::atol(argv[at]) : otherwise; };
  const int64_t size[3] = { number(1, 512), number(2, 512), number(3, 300) };
  const int raters = static_cast<int>(number(4, 5)), slices = static_cast<int>(number(5, 200));

  // The case, as a reader would leave it in memory.
  rcn_context* made = nullptr;
  if (rcn_context_create(&made, nullptr) != RCN_OK)
  {
    return 1;
  }
  const std::unique_ptr<rcn_context, rcn::ContextDeleter> context(made);
  const rcn_geometry geometry = rcn_geometry_make(size[0], size[1], size[2]);
  const auto voxels = static_cast<size_t>(rcn_geometry_voxels(&geometry));
  rcn::Volume image = rcn::Volume::Allocate(geometry, RCN_FLOAT32);
  rcn_votes* packed = nullptr;
  {
    rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
    std::copy(size, size + 3, options.size);
    options.raters = raters;
    options.lesions = 12;
    std::vector<uint8_t> masks(voxels * static_cast<size_t>(raters));
    rcn::Check(rcn_phantom_make(static_cast<float*>(image.Data()), masks.data(), context.get(), &options), context.get());
    std::vector<rcn_mask> views(static_cast<size_t>(raters));
    for (size_t r = 0; r < views.size(); ++r)
    {
      views[r].image = rcn_image{ masks.data() + r * voxels, RCN_UINT8, 1, geometry };
    }
    rcn::Check(rcn_votes_from_masks(&packed, context.get(), views.data(), raters), context.get());
  }
  const std::shared_ptr<const rcn_votes> votes(packed, rcn_votes_destroy);

  qRcnScene scene;
  qRcnOrthogonalViews views(&scene);
  views.resize(1400, 900);
  views.show();
  for (int i = 0; i < 50; ++i)
  {
    application.processEvents();
  }

  // A picture is there when nothing is left to be drawn and the screen has taken all of it.
  qRcnSliceCanvas* axial = views.view(RCN_VIEW_AXIAL)->canvas();
  const auto wait = [&]() {
    QCoreApplication::sendPostedEvents();
    application.processEvents();
    QGuiApplication::sync();
  };
  const double empty = CurrentMegabytes();
  const double opened = Seconds();
  scene.setCase({ image }, votes, geometry, {});
  wait();
  const double first = Seconds() - opened;

  std::vector<double> wall, processor;
  axial->setSlice((size[2] - slices) / 2);
  wait();
  for (int i = 0; i < slices; ++i)
  {
    const double start = Seconds(), used = ProcessorSeconds();
    const QPointF middle(axial->width() / 2.0, axial->height() / 2.0);
    QWheelEvent wheel(middle, axial->mapToGlobal(middle.toPoint()), QPoint(), QPoint(0, 120), Qt::NoButton, Qt::NoModifier,
      Qt::NoScrollPhase, false);
    QApplication::sendEvent(axial, &wheel);
    wait();
    wall.push_back(1000 * (Seconds() - start));
    processor.push_back(1000 * (ProcessorSeconds() - used));
  }
  const double added = CurrentMegabytes() - empty, peak = PeakMegabytes();
  const Surfaces surfaces = TurnSurfaces(scene);
  std::printf("{\"size\": [%lld, %lld, %lld], \"raters\": %d, \"slices\": %d, \"median_ms\": %.2f, \"p95_ms\": %.2f, "
              "\"processor_ms\": %.2f, \"first_picture_s\": %.3f, \"views_mb\": %.0f, \"peak_mb\": %.0f, "
              "\"surfaces_s\": %s, \"triangles\": %lld, \"turn_ms\": %s}\n",
    static_cast<long long>(size[0]), static_cast<long long>(size[1]), static_cast<long long>(size[2]), raters, slices,
    Quantile(wall, 0.5), Quantile(wall, 0.95), Quantile(processor, 0.5), first, added, peak, Number(surfaces.First).c_str(),
    surfaces.Triangles, Number(surfaces.Turn).c_str());
  return 0;
}
