/* Times one network: bench_net ARCH train|predict BATCH CHANNELS OUTPUTS X Y Z THREADS REPEATS
 * Prints JSON: seconds of the fastest and the median pass, of the first one since the program's
 * start, bytes held by the library, and the sum of the logits' absolute values. In training a pass
 * is forward, backward and an Adam step; the gradient of the logits is a fixed one, the loss is
 * measured by itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../C/rcn_test_fill.h"
#include "rcn/rcn_net.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Adam (Kingma and Ba 2015) over one block. */
static void adam(float *restrict values, const float *restrict gradients, float *restrict first,
                 float *restrict second, int64_t count, int step, int threads) {
    const float rate = (float)(1e-4 / (1 - pow(0.9, step)));
    const float correction = (float)(1 / (1 - pow(0.999, step)));
    (void)threads;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(threads)
#endif
    for (int64_t i = 0; i < count; ++i) {
        const float g = gradients[i];
        first[i] = 0.9f * first[i] + 0.1f * g;
        second[i] = 0.999f * second[i] + 0.001f * g * g;
        values[i] -= rate * first[i] / (sqrtf(second[i] * correction) + 1e-8f);
    }
}

typedef float lanes __attribute__((vector_size(32)));

/* Twelve independent chains of eight lanes, enough to hide the latency of two units. */
#if defined(__x86_64__)
__attribute__((target("avx2,fma"), optimize("fp-contract=fast")))
#endif
static double
multiply_adds(int64_t rounds) {
    lanes a[12], x = (lanes){0} + 0.999f, y = (lanes){0} + 1e-3f;
    double sum = 0;
    for (int k = 0; k < 12; ++k) a[k] = (lanes){0} + (float)k;
    for (int64_t r = 0; r < rounds; ++r)
        for (int k = 0; k < 12; ++k) a[k] = a[k] * x + y;
    for (int k = 0; k < 12; ++k) sum += (double)a[k][0];
    return sum;
}

/* GFLOP/s of fused multiply-adds on all threads: what the machine can do at most. */
static double measure_peak(int threads) {
    double best = 0;
    for (int r = 0; r < 5; ++r) {
        const double begin = now();
        double sink = 0;
        const int64_t rounds = 20000000;
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) reduction(+ : sink)
#endif
        sink += multiply_adds(rounds);
        const double rate = (double)rounds * threads * 12 * 8 * 2 / (now() - begin) * 1e-9;
        if (rate > best && sink != 1) best = rate;
    }
    return best;
}

int main(int argc, char **argv) {
    const double start = now();
    if (argc == 3 && !strcmp(argv[1], "peak")) {
        printf("{\"gflops\": %.1f}\n", measure_peak(atoi(argv[2])));
        return 0;
    }
    if (argc != 11) {
        fprintf(stderr,
                "bench_net ARCH train|predict BATCH CHANNELS OUTPUTS X Y Z THREADS REPEATS\n");
        return 2;
    }
    const int training = !strcmp(argv[2], "train"), repeats = atoi(argv[10]);
    rcn_context_options context_options = RCN_CONTEXT_OPTIONS_INIT;
    rcn_net_options options = RCN_NET_OPTIONS_INIT;
    rcn_batch batch = {atoll(argv[3]), {atoll(argv[6]), atoll(argv[7]), atoll(argv[8])}};
    rcn_context *ctx = NULL;
    rcn_net *net = NULL;
    context_options.threads = atoi(argv[9]);
    while (rcn_arch_name(options.arch) && strcmp(rcn_arch_name(options.arch), argv[1]))
        options.arch = (rcn_arch)(options.arch + 1);
    options.channels = atoi(argv[4]);
    options.outputs = atoi(argv[5]);
    options.dropout = 0;
    if (rcn_context_create(&ctx, &context_options) || rcn_net_create(&net, ctx, &options)) {
        fprintf(stderr, "%s\n", rcn_context_error(ctx));
        return 1;
    }
    fill_net(net);
    const int64_t voxels = batch.images * batch.size[0] * batch.size[1] * batch.size[2];
    const int64_t pixels = voxels * options.channels, count = voxels * options.outputs;
    const int64_t trained = rcn_net_trained_floats(net);
    float *images = malloc((size_t)pixels * sizeof(float));
    float *logits = malloc((size_t)count * sizeof(float));
    float *dlogits = training ? malloc((size_t)count * sizeof(float)) : NULL;
    float *moments = training ? calloc((size_t)trained * 2, sizeof(float)) : NULL;
    double *times = malloc((size_t)repeats * sizeof *times);
    fill_values(images, "images", pixels, 1, 0);
    if (training) fill_values(dlogits, "weights", count, 1.0 / (double)voxels, 0);
    double first = 0, sum = 0;
    for (int r = 0; r < repeats; ++r) {
        const double begin = now();
        rcn_status status = training ? rcn_net_forward(logits, net, images, &batch, 1)
                                     : rcn_net_predict(logits, net, images, &batch);
        if (!status && training) status = rcn_net_backward(net, dlogits);
        if (status) {
            fprintf(stderr, "%s\n", rcn_context_error(ctx));
            return 1;
        }
        if (!r) {
            for (int64_t i = 0; i < count; ++i) sum += fabs((double)logits[i]);
            first = now() - start;
        }
        if (training)
            adam(rcn_net_edit_values(net), rcn_net_gradients(net), moments, moments + trained,
                 trained, r + 1, context_options.threads);
        times[r] = now() - begin;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(times, (size_t)repeats, sizeof *times, by_value);
    printf("{\"best\": %.6f, \"median\": %.6f, \"first\": %.6f, \"library_bytes\": %zu, "
           "\"peak_bytes\": %lld, \"sum\": %.9g}\n",
           times[0], times[repeats / 2], first, rcn_context_peak_bytes(ctx),
           (long long)usage.ru_maxrss * 1024, sum / (double)count);
    free(images);
    free(logits);
    free(dlogits);
    free(moments);
    free(times);
    rcn_net_destroy(net);
    rcn_context_destroy(ctx);
    return 0;
}
