// SPDX-License-Identifier: Apache-2.0
#define RCN_ISA_NAME "avx2"
#define RCN_ISA_ENGINE rcn__engine_avx2
#include "rcn_isa.h"
