// SPDX-License-Identifier: Apache-2.0
/* Without the vectors of any compiler. */
#define RCN_PLAIN_VECTORS
#define RCN_ISA_NAME "plain"
#define RCN_ISA_ENGINE rcn__engine_plain
#include "rcn_isa.h"
