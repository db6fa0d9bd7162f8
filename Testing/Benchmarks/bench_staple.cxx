// SPDX-License-Identifier: Apache-2.0
/// STAPLE, from label buffers in memory to the posterior in memory: RaterConsensus and ITK's own
/// itk::STAPLEImageFilter on the same masks in one run. Each engine runs in a child process of its own,
/// so that its peak memory can be read off; results travel back through shared memory and are compared.
///
///   bench_staple X Y Z RATERS THREADS [ours-only]     prints one JSON object
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <itkImage.h>
#include <itkSTAPLEImageFilter.h>

#include "rcn/rcn.h"

namespace
{

struct Result
{
  double Seconds;
  double ExtraBytes; ///< growth of the resident set's peak while fusing, result included
  double Sensitivity[RCN_MAX_RATERS];
  int Iterations;
};

struct Task
{
  int64_t Size[3];
  int Raters, Threads;
  int64_t Voxels() const { return this->Size[0] * this->Size[1] * this->Size[2]; }
};

void* Shared(size_t bytes)
{
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
  {
    std::perror("mmap");
    std::exit(1);
  }
  return memory;
}

double PeakBytes()
{
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

double Now()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Require(rcn_status status, rcn_context* context)
{
  if (status != RCN_OK)
  {
    std::fprintf(stderr, "%s\n", context ? rcn_context_error(context) : rcn_status_name(status));
    std::_Exit(1);
  }
}

rcn_context* MakeContext(int threads)
{
  rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
  rcn_context* context = nullptr;
  options.threads = threads;
  Require(rcn_context_create(&context, &options), nullptr);
  return context;
}

/// Touches every page of the masks, so that they do not count as growth.
void Touch(const uint8_t* masks, int64_t bytes)
{
  volatile uint8_t sink = 0;
  for (int64_t i = 0; i < bytes; i += 4096)
  {
    sink = static_cast<uint8_t>(sink + masks[i]);
  }
}

std::vector<rcn_mask> MaskViews(const Task& task, uint8_t* masks)
{
  std::vector<rcn_mask> views(static_cast<size_t>(task.Raters));
  for (int r = 0; r < task.Raters; ++r)
  {
    views[r] =
      rcn_mask{ { masks + r * task.Voxels(), RCN_UINT8, 1, rcn_geometry_make(task.Size[0], task.Size[1], task.Size[2]) }, 0,
        nullptr, 0, nullptr };
  }
  return views;
}

/// The posterior as a float map.
void RunOurs(Result* result, float* posterior, const Task& task, uint8_t* masks)
{
  rcn_context* context = MakeContext(task.Threads);
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  options.method = RCN_STAPLE;
  rcn_fusion_result figures;
  std::vector<double> times;
  const std::vector<rcn_mask> views = MaskViews(task, masks);
  const double before = PeakBytes();
  for (int repeat = 0; repeat < 5; ++repeat)
  {
    const double start = Now();
    float* map = static_cast<float*>(std::malloc(static_cast<size_t>(task.Voxels()) * sizeof(float)));
    Require(rcn_fuse_masks(map, &figures, context, views.data(), task.Raters, &options), context);
    times.push_back(Now() - start);
    if (repeat == 0)
    {
      result->ExtraBytes = PeakBytes() - before;
    }
    if (posterior)
    {
      std::memcpy(posterior, map, static_cast<size_t>(task.Voxels()) * sizeof(float));
    }
    std::free(map);
  }
  // The first run pays for fresh memory, as any first call does: it counts.
  double sum = 0;
  for (const double time : times)
  {
    sum += time;
  }
  result->Seconds = sum / static_cast<double>(times.size());
  result->Iterations = figures.iterations;
  std::memcpy(result->Sensitivity, figures.sensitivity, sizeof figures.sensitivity);
}

/// The posterior as votes and a table: what the rest of the product works with.
void RunOursPacked(Result* result, float*, const Task& task, uint8_t* masks)
{
  rcn_context* context = MakeContext(task.Threads);
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  options.method = RCN_STAPLE;
  rcn_fusion_result figures;
  const double before = PeakBytes(), start = Now();
  const std::vector<rcn_mask> views = MaskViews(task, masks);
  rcn_votes* votes = nullptr;
  Require(rcn_votes_from_masks(&votes, context, views.data(), task.Raters), context);
  std::vector<float> table(static_cast<size_t>(rcn_votes_pattern_count(votes)));
  Require(rcn_fuse_patterns(table.data(), &figures, context, votes, &options), context);
  result->Seconds = Now() - start;
  result->ExtraBytes = PeakBytes() - before;
}

void RunItk(Result* result, float* posterior, const Task& task, uint8_t* masks)
{
  using MaskType = itk::Image<uint8_t, 3>;
  using MapType = itk::Image<double, 3>;
  const double before = PeakBytes(), start = Now();
  auto filter = itk::STAPLEImageFilter<MaskType, MapType>::New();
  filter->SetForegroundValue(1);
  for (int r = 0; r < task.Raters; ++r)
  {
    auto image = MaskType::New();
    MaskType::SizeType size;
    for (unsigned int a = 0; a < 3; ++a)
    {
      size[a] = static_cast<itk::SizeValueType>(task.Size[a]);
    }
    image->SetRegions(size);
    image->GetPixelContainer()->SetImportPointer(
      masks + r * task.Voxels(), static_cast<itk::SizeValueType>(task.Voxels()), false);
    filter->SetInput(static_cast<unsigned int>(r), image);
  }
  filter->Update();
  result->Seconds = Now() - start;
  result->ExtraBytes = PeakBytes() - before;
  result->Iterations = static_cast<int>(filter->GetElapsedIterations()) + 1;
  for (int r = 0; r < task.Raters; ++r)
  {
    result->Sensitivity[r] = filter->GetSensitivity(static_cast<unsigned int>(r));
  }
  const double* map = filter->GetOutput()->GetBufferPointer();
  for (int64_t i = 0; i < task.Voxels(); ++i)
  {
    posterior[i] = static_cast<float>(map[i]);
  }
}

template <class TRun> void InChild(TRun run, Result* result, float* posterior, const Task& task, uint8_t* masks)
{
  const pid_t child = fork();
  if (child == 0)
  {
    Touch(masks, task.Raters * task.Voxels());
    run(result, posterior, task, masks);
    std::_Exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  if (status != 0)
  {
    std::fprintf(stderr, "an engine failed\n");
    std::exit(1);
  }
}

} // namespace

int main(int argc, char** argv)
{
  if (argc < 6)
  {
    std::fprintf(stderr, "bench_staple X Y Z RATERS THREADS [ours-only]\n");
    return 2;
  }
  const Task task = { { std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]) }, std::atoi(argv[4]),
    std::atoi(argv[5]) };
  const bool oursOnly = argc > 6;
  const size_t mapBytes = static_cast<size_t>(task.Voxels()) * sizeof(float);
  uint8_t* masks = static_cast<uint8_t*>(Shared(static_cast<size_t>(task.Raters * task.Voxels())));
  float* ours = static_cast<float*>(Shared(mapBytes));
  float* theirs = static_cast<float*>(Shared(mapBytes));
  Result* results = static_cast<Result*>(Shared(3 * sizeof(Result)));

  // Made in a child too: no thread may be alive when the others are forked.
  InChild(
    [](Result*, float* image, const Task& t, uint8_t* out) {
      rcn_context* context = MakeContext(t.Threads);
      rcn_phantom_options options = RCN_PHANTOM_OPTIONS_INIT;
      std::memcpy(options.size, t.Size, sizeof options.size);
      options.raters = t.Raters;
      options.lesions = 8;
      Require(rcn_phantom_make(image, out, context, &options), context);
    },
    results, ours, task, masks);
  InChild(RunOurs, &results[0], ours, task, masks);
  InChild(RunOursPacked, &results[1], nullptr, task, masks);
  double largest = 0;
  if (!oursOnly)
  {
    InChild(RunItk, &results[2], theirs, task, masks);
    for (int64_t i = 0; i < task.Voxels(); ++i)
    {
      largest = std::fmax(largest, std::fabs(static_cast<double>(ours[i]) - theirs[i]));
    }
  }
  std::printf("{\"seconds\": %.6f, \"extra_bytes\": %.0f, \"packed_seconds\": %.6f, \"packed_extra_bytes\": %.0f, "
              "\"iterations\": %d, \"itk_seconds\": %.6f, \"itk_extra_bytes\": %.0f, \"itk_iterations\": %d, "
              "\"largest_difference\": %.3g}\n",
    results[0].Seconds, results[0].ExtraBytes, results[1].Seconds, results[1].ExtraBytes, results[0].Iterations,
    results[2].Seconds, results[2].ExtraBytes, results[2].Iterations, largest);
  return 0;
}
