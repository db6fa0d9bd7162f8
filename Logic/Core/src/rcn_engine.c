// SPDX-License-Identifier: Apache-2.0
#include "rcn_engine.h"

#include <stdlib.h>
#include <string.h>

#include "rcn_compiler.h"
#if defined(RCN_HAVE_AVX2) && defined(_MSC_VER)
#include <intrin.h>
#elif defined(RCN_HAVE_AVX2) && !defined(RCN_GNU)
#include <cpuid.h> /* GCC, treated as any other compiler */
#endif

/* The fastest first. */
static const rcn__engine *const engines[] = {
#if defined(RCN_HAVE_AVX512)
    &rcn__engine_avx512,
#endif
#if defined(RCN_HAVE_AVX2)
    &rcn__engine_avx2,
#endif
#if defined(RCN_HAVE_BASELINE)
    &rcn__engine_baseline,
#endif
    &rcn__engine_plain,
};

enum { ENGINES = sizeof engines / sizeof engines[0] };

#if defined(RCN_HAVE_AVX2) && defined(RCN_GNU)
static int has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma");
}
static int has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#elif defined(RCN_HAVE_AVX2)
/* What the processor says about itself: eax, ebx, ecx, edx. */
static void ask_processor(uint32_t out[4], int about) {
#if defined(_MSC_VER)
    int answer[4];
    __cpuidex(answer, about, 0);
    for (int i = 0; i < 4; ++i) out[i] = (uint32_t)answer[i];
#else
    __cpuid_count(about, 0, out[0], out[1], out[2], out[3]);
#endif
}

/* Which registers the system saves when it switches between threads. */
static uint32_t saved_registers(void) {
#if defined(_MSC_VER)
    return (uint32_t)_xgetbv(0);
#else
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

/* All of the wanted features of leaf 7 (ebx), with fused multiply-add and registers that are saved:
 * Intel, Software Developer's Manual, volume 1, chapters 14.3 and 15.2. */
static int has_features(uint32_t wanted, uint32_t registers) {
    const uint32_t fma = 1u << 12, os_saves = 1u << 27;
    uint32_t first[4], basic[4], extended[4];
    ask_processor(first, 0);
    if (first[0] < 7) return 0;
    ask_processor(basic, 1);
    ask_processor(extended, 7);
    return (basic[2] & fma) && (basic[2] & os_saves) && (extended[1] & wanted) == wanted &&
           (saved_registers() & registers) == registers;
}

/* Visual C++ asks for more than the sources do: with /arch:AVX2 also BMI1 and BMI2, with
 * /arch:AVX512 also CD and BW. */
static int has_avx2(void) {
    const uint32_t bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
    return has_features(bmi1 | avx2 | bmi2, 0x06);
}
static int has_avx512(void) {
    const uint32_t f = 1u << 16, dq = 1u << 17, cd = 1u << 28, bw = 1u << 30, vl = 1u << 31;
    return has_avx2() && has_features(f | dq | cd | bw | vl, 0xE6);
}
#endif

static int can_run(const rcn__engine *engine) {
#if defined(RCN_HAVE_AVX512)
    if (engine == &rcn__engine_avx512) return has_avx512();
#endif
#if defined(RCN_HAVE_AVX2)
    if (engine == &rcn__engine_avx2) return has_avx2();
#endif
    (void)engine;
    return 1;
}

const rcn__engine *rcn__engine_find(const char *name) {
    for (int i = 0; i < ENGINES; ++i)
        if (!strcmp(engines[i]->name, name)) return can_run(engines[i]) ? engines[i] : NULL;
    return NULL;
}

const rcn__engine *rcn__engine_choose(void) {
    const char *wanted = getenv("RCN_ISA");
    const rcn__engine *found = wanted ? rcn__engine_find(wanted) : NULL;
    for (int i = 0; !found; ++i)
        if (can_run(engines[i])) found = engines[i];
    return found;
}
