// SPDX-License-Identifier: Apache-2.0
#define RCN_ISA_NAME "avx512"
#define RCN_ISA_ENGINE rcn__engine_avx512
#include "rcn_isa.h"
