// SPDX-License-Identifier: Apache-2.0
/* One hash for everything that has to be recognized again: 64 bits, FNV-1a.
 *
 * It tells files, predictions and states of a training apart; it is no protection against somebody
 * who wants two of them to have the same. To hash in pieces, pass the result of one piece on to
 * the next; begin with RCN_HASH_START.
 */
#ifndef RCN_HASH_H
#define RCN_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "rcn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RCN_HASH_START UINT64_C(14695981039346656037)

/* Byte by byte, as everybody's FNV-1a. */
RCN_API uint64_t rcn_hash_bytes(uint64_t hash, const void *bytes, size_t count);

/* By 32-bit words, four times as fast: the bits of float numbers, so that 0 and -0 differ and a NaN
 * equals itself. Not the number that rcn_hash_bytes() gives for the same memory. */
RCN_API uint64_t rcn_hash_floats(uint64_t hash, const float *numbers, int64_t count);

#ifdef __cplusplus
}
#endif

#endif /* RCN_HASH_H */
