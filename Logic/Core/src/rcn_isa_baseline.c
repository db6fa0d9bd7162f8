// SPDX-License-Identifier: Apache-2.0
/* What every machine of this kind has. */
#if defined(__ARM_NEON)
#define RCN_ISA_NAME "neon"
#elif defined(__SSE2__)
#define RCN_ISA_NAME "sse2"
#else
#define RCN_ISA_NAME "baseline"
#endif
#define RCN_ISA_ENGINE rcn__engine_baseline
#include "rcn_isa.h"
