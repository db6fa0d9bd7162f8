// SPDX-License-Identifier: Apache-2.0
/* One block of channels (rcn_conv.h) as the compiler's vector: an AVX2 register or a pair of SSE or
 * NEON ones. Vectors are not passed to or returned from functions that are not inlined, so that
 * files may be compiled for either. */
#ifndef RCN_LANES_H
#define RCN_LANES_H

#include <stdint.h>

#include "rcn_compiler.h"

typedef float lanes __attribute__((vector_size(32), may_alias));
typedef int32_t lane_bits __attribute__((vector_size(32), may_alias));

#define LANES_AT(pointer) (*(const lanes *)(pointer))
#define STORE(pointer, value) (*(lanes *)(pointer) = (value))
#define KEEP_WHERE(value, mask) ((lanes)((lane_bits)(value) & (mask)))
/* Adding to zero, the shorter way, is an instruction: -0 + 0 is not -0. */
#define ALL(value) ((lanes){(value), (value), (value), (value), (value), (value), (value), (value)})

#endif /* RCN_LANES_H */
