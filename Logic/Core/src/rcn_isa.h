// SPDX-License-Identifier: Apache-2.0
/* The convolutions of one instruction set: included by rcn_isa_*.c, which define RCN_ISA_NAME and
 * RCN_ISA_ENGINE and are compiled with that instruction set's options (CMakeLists.txt). */
#include "rcn_direct.c"
#include "rcn_winograd.c"

const rcn__engine RCN_ISA_ENGINE = {
    .name = RCN_ISA_NAME,
    .winograd_packed_bytes = winograd_packed_bytes,
    .winograd_scratch_bytes = winograd_scratch_bytes,
    .winograd_gradient_bytes = winograd_gradient_bytes,
    .winograd_pack = winograd_pack,
    .winograd_convolve = winograd_convolve,
    .winograd_tally_rows = winograd_tally_rows,
    .winograd_by_rows = winograd_by_rows,
    .winograd_rows = winograd_rows,
    .winograd_gradient = winograd_gradient,
    .direct_packed_bytes = direct_packed_bytes,
    .direct_scratch_bytes = direct_scratch_bytes,
    .direct_gradient_bytes = direct_gradient_bytes,
    .direct_pack = direct_pack,
    .direct_convolve = direct_convolve,
    .direct_rows = direct_rows,
    .direct_gradient = direct_gradient,
};
