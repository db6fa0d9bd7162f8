// SPDX-License-Identifier: Apache-2.0
/* Times one network, for bench_net.py; prints JSON.
 *
 *   bench_net machine THREADS                   instruction sets, and GFLOP/s of fused multiply-adds with the one in use
 *   bench_net ARCH train|predict BATCH CHANNELS OUTPUTS X Y Z THREADS REPEATS
 *   bench_net start MODEL X Y Z THREADS         loads a model file and predicts one image
 *
 * A pass of training is forward, BCE + RPS with its gradient, backward and an Adam step. One pass
 * is made before any is timed: its logits (some of them, and the mean of their absolute values),
 * its loss and when it was done are printed to be compared, with the seconds of the fastest and the
 * median pass and the bytes used. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../C/rcn_test_fill.h"
#include "../../Logic/Core/src/rcn_engine.h"
#include "rcn/rcn_loss.h"
#include "rcn/rcn_model.h"
#include "rcn/rcn_net.h"
#include "rcn/rcn_optim.h"

static double seconds(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
  return seconds(CLOCK_MONOTONIC);
}

static int by_value(const void* a, const void* b)
{
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Twelve independent chains of a vector, enough to hide the latency of two units. */
#define MULTIPLY_ADDS(name, bytes, options)                           \
  options static double name(int64_t rounds)                          \
  {                                                                   \
    typedef float lanes __attribute__((vector_size(bytes)));          \
    lanes a[12], x = (lanes){ 0 } + 0.999f, y = (lanes){ 0 } + 1e-3f; \
    double sum = 0;                                                   \
    for (int k = 0; k < 12; ++k)                                      \
      a[k] = (lanes){ 0 } + (float)k;                                 \
    for (int64_t r = 0; r < rounds; ++r)                              \
      for (int k = 0; k < 12; ++k)                                    \
        a[k] = a[k] * x + y;                                          \
    for (int k = 0; k < 12; ++k)                                      \
      sum += (double)a[k][0];                                         \
    return sum;                                                       \
  }
#if defined(__x86_64__)
MULTIPLY_ADDS(adds_avx512, 64, __attribute__((target("avx512f,fma"), optimize("fp-contract=fast"))))
MULTIPLY_ADDS(adds_avx2, 32, __attribute__((target("avx2,fma"), optimize("fp-contract=fast"))))
#endif
MULTIPLY_ADDS(adds_baseline, 16, )

/* Those of the instruction set in use (the best, or RCN_ISA's), and its floats. */
static double (*in_use(int* floats))(int64_t)
{
#if defined(__x86_64__)
  const char* name = rcn__engine_choose()->name;
  if (!strcmp(name, "avx512"))
  {
    *floats = 16;
    return adds_avx512;
  }
  if (!strcmp(name, "avx2"))
  {
    *floats = 8;
    return adds_avx2;
  }
#endif
  *floats = 4;
  return adds_baseline;
}

/* GFLOP/s of fused multiply-adds on all threads: what the machine can do at most. */
static double measure_peak(int threads)
{
  double best = 0;
  int floats;
  double (*multiply_adds)(int64_t) = in_use(&floats);
  for (int r = 0; r < 5; ++r)
  {
    const double begin = now();
    double sink = 0;
    const int64_t rounds = 20000000;
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) reduction(+ : sink)
#endif
    sink += multiply_adds(rounds);
    const double rate = (double)rounds * threads * 12 * floats * 2 / (now() - begin) * 1e-9;
    if (rate > best && sink != 1)
      best = rate;
  }
  return best;
}

enum
{
  SAMPLES = 32
};

typedef struct work
{
  rcn_context* ctx;
  rcn_net* net;
  rcn_batch batch;
  int64_t voxels, count; /* of all images; logits of all images */
  float *images, *logits;

  /* training */
  rcn_loss* loss;
  rcn_loss_label labels[256];
  rcn_loss_target* targets;
  uint8_t* levels;
  rcn_optim_state state;
  float* moments;
} work;

static int fail(const work* w)
{
  fprintf(stderr, "bench_net: %s\n", w->ctx ? rcn_context_error(w->ctx) : "no context");
  return 1;
}

static void make_image(work* w)
{
  const rcn_net_options* options = rcn_net_get_options(w->net);
  w->voxels = w->batch.images * w->batch.size[0] * w->batch.size[1] * w->batch.size[2];
  w->count = w->voxels * options->outputs;
  w->images = malloc((size_t)(w->voxels * options->channels) * sizeof(float));
  w->logits = malloc((size_t)w->count * sizeof(float));
  fill_values(w->images, "images", w->voxels * options->channels, 1, 0);
}

static rcn_status make_training(work* w)
{
  rcn_loss_options options = RCN_LOSS_OPTIONS_INIT;
  const int outputs = rcn_net_get_options(w->net)->outputs;
  const uint64_t seed = rcn_hash_bytes(RCN_HASH_START, "levels", strlen("levels"));
  const int64_t trained = rcn_net_trained_floats(w->net);
  options.raters = outputs - 1;
  w->levels = malloc((size_t)w->voxels);
  for (int64_t i = 0; i < w->voxels; ++i)
    w->levels[i] = (uint8_t)((fill_number(seed, i) + 1) / 2 * outputs);
  for (int k = 0; k < outputs; ++k)
    w->labels[k] = (rcn_loss_label){ (float)k / (float)options.raters, 1, (uint8_t)k, (uint8_t)options.raters };
  w->targets = malloc((size_t)w->batch.images * sizeof *w->targets);
  for (int64_t n = 0; n < w->batch.images; ++n)
    w->targets[n] =
      (rcn_loss_target){ w->levels + n * (w->voxels / w->batch.images), 1, w->labels, outputs, NULL, 1.0, NULL, NULL };
  w->moments = calloc((size_t)trained * 2, sizeof(float));
  w->state.first = w->moments;
  w->state.second = w->moments + trained;
  w->state.count = trained;
  return rcn_loss_create(&w->loss, w->ctx, &options);
}

/* The gradient takes the logits' place; `logits` are copied to `kept` before, where that is not
 * NULL. */
static rcn_status train(work* w, double* loss, float* kept)
{
  static const rcn_optim_options adam = RCN_OPTIM_OPTIONS_INIT;
  rcn_loss_result result = { 0, 0 };
  rcn_status status = rcn_net_forward(w->logits, w->net, w->images, &w->batch, 1);
  if (kept)
    memcpy(kept, w->logits, (size_t)w->count * sizeof *kept);
  if (!status)
    status = rcn_loss_run(
      &result, w->logits, NULL, w->loss, w->ctx, w->logits, NULL, w->targets, w->batch.images, w->voxels / w->batch.images);
  if (!status)
    status = rcn_net_backward(w->net, w->logits);
  if (!status)
  {
    w->state.parameters = rcn_net_edit_values(w->net);
    w->state.gradients = rcn_net_gradients(w->net);
    status = rcn_optim_step(NULL, &w->state, w->ctx, 1e-4, &adam, NULL, 0);
  }
  *loss = result.loss;
  return status;
}

static void print_outputs(const float* logits, int64_t count, double loss)
{
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += fabs((double)logits[i]);
  printf("\"mean\": %.9g, \"loss\": %.9g, \"logits\": [", sum / (double)count, loss);
  for (int k = 0; k < SAMPLES; ++k)
    printf("%s%.9g", k ? ", " : "", (double)logits[k * (count / SAMPLES)]);
  printf("]");
}

static void print_memory(const work* w)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf(
    ", \"library_bytes\": %zu, \"peak_bytes\": %lld}\n", rcn_context_peak_bytes(w->ctx), (long long)usage.ru_maxrss * 1024);
}

static int run_start(char** argv)
{
  rcn_context_options context_options = RCN_CONTEXT_OPTIONS_INIT;
  work w = { .batch = { 1, { atoll(argv[3]), atoll(argv[4]), atoll(argv[5]) } } };
  context_options.threads = atoi(argv[6]);
  if (rcn_context_create(&w.ctx, &context_options) || rcn_model_load(&w.net, w.ctx, argv[2]))
    return fail(&w);
  make_image(&w);
  if (rcn_net_predict(w.logits, w.net, w.images, &w.batch))
    return fail(&w);
  printf("{\"done\": %.6f, ", seconds(CLOCK_REALTIME));
  print_outputs(w.logits, w.count, 0);
  print_memory(&w);
  free(w.images);
  free(w.logits);
  rcn_net_destroy(w.net);
  rcn_context_destroy(w.ctx);
  return 0;
}

static int run_work(char** argv)
{
  const int training = !strcmp(argv[2], "train"), repeats = atoi(argv[10]);
  rcn_context_options context_options = RCN_CONTEXT_OPTIONS_INIT;
  rcn_net_options options = RCN_NET_OPTIONS_INIT;
  work w = { .batch = { atoll(argv[3]), { atoll(argv[6]), atoll(argv[7]), atoll(argv[8]) } } };
  context_options.threads = atoi(argv[9]);
  while (rcn_arch_name(options.arch) && strcmp(rcn_arch_name(options.arch), argv[1]))
    options.arch = (rcn_arch)(options.arch + 1);
  options.channels = atoi(argv[4]);
  options.outputs = atoi(argv[5]);
  options.dropout = 0;
  if (rcn_context_create(&w.ctx, &context_options) || rcn_net_create(&w.net, w.ctx, &options))
    return fail(&w);
  fill_net(w.net);
  make_image(&w);
  if (training && make_training(&w))
    return fail(&w);
  double* times = malloc((size_t)repeats * sizeof *times);
  double loss = 0;
  for (int r = -1; r < repeats; ++r)
  {
    float* kept = training && r < 0 ? malloc((size_t)w.count * sizeof *kept) : NULL;
    const double begin = now();
    if (training ? train(&w, &loss, kept) : rcn_net_predict(w.logits, w.net, w.images, &w.batch))
      return fail(&w);
    if (r >= 0)
    {
      times[r] = now() - begin;
      continue;
    }
    printf("{");
    print_outputs(kept ? kept : w.logits, w.count, loss);
    free(kept);
  }
  qsort(times, (size_t)repeats, sizeof *times, by_value);
  printf(", \"best\": %.6f, \"median\": %.6f", times[0], times[repeats / 2]);
  print_memory(&w);
  free(times);
  free(w.images);
  free(w.logits);
  free(w.targets);
  free(w.levels);
  free(w.moments);
  rcn_loss_destroy(w.loss);
  rcn_net_destroy(w.net);
  rcn_context_destroy(w.ctx);
  return 0;
}

int main(int argc, char** argv)
{
  if (argc == 3 && !strcmp(argv[1], "machine"))
  {
    static const char* const names[] = { "avx512", "avx2", "neon", "sse2", "plain" };
    printf("{\"isas\": [");
    for (size_t k = 0, found = 0; k < sizeof names / sizeof *names; ++k)
      if (rcn__engine_find(names[k]))
        printf("%s\"%s\"", found++ ? ", " : "", names[k]);
    printf("], \"gflops\": %.1f}\n", measure_peak(atoi(argv[2])));
    return 0;
  }
  if (argc == 7 && !strcmp(argv[1], "start"))
    return run_start(argv);
  if (argc == 11 && atoi(argv[10]) > 0)
    return run_work(argv);
  fprintf(stderr,
    "bench_net machine THREADS\n"
    "bench_net ARCH train|predict BATCH CHANNELS OUTPUTS X Y Z THREADS REPEATS\n"
    "bench_net start MODEL X Y Z THREADS\n");
  return 2;
}
