// SPDX-License-Identifier: Apache-2.0
#include "rcn_engine.h"

#include <stdlib.h>
#include <string.h>

/* The fastest first. */
static const rcn__engine *const engines[] = {
#if defined(RCN_HAVE_AVX512)
    &rcn__engine_avx512,
#endif
#if defined(RCN_HAVE_AVX2)
    &rcn__engine_avx2,
#endif
    &rcn__engine_baseline,
    &rcn__engine_plain,
};

enum { ENGINES = sizeof engines / sizeof engines[0] };

static int can_run(const rcn__engine *engine) {
#if defined(RCN_HAVE_AVX512)
    if (engine == &rcn__engine_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma");
#endif
#if defined(RCN_HAVE_AVX2)
    if (engine == &rcn__engine_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
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
