// SPDX-License-Identifier: Apache-2.0
/* One hash for everything that has to be recognized again: 64 bits, FNV-1a.
 *
 * It tells files, predictions and states of a training apart; it is no protection against somebody
 * who wants two of them to have the same. Hashes are written into files (which model made a
 * prediction, which list a study is of), so the constants must never change.
 *
 * To hash in pieces, begin with RCN_HASH_START and pass the result of one piece on to the next:
 *
 *     uint64_t hash = rcn_hash_bytes(RCN_HASH_START, name, strlen(name));
 *     hash = rcn_hash_floats(hash, weights, count);
 *
 * The order of the pieces counts, where one of them ends does not: "ab" and "c" give what "a" and
 * "bc" give. Where that matters, hash the lengths, too. The functions keep no state, cannot fail
 * and may be called from any thread; no memory is read where the count is 0.
 *
 * FNV-1a: hash = (hash xor octet) * (2^40 + 2^8 + 0xb3) modulo 2^64 (Fowler, Noll and Vo).
 */
#ifndef RCN_HASH_H
#define RCN_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "rcn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The offset basis of 64-bit FNV: what no bytes at all hash to. */
#define RCN_HASH_START UINT64_C(14695981039346656037)

/* Byte by byte, as everybody's FNV-1a. */
RCN_API uint64_t rcn_hash_bytes(uint64_t hash, const void *bytes, size_t count);

/* By 32-bit words, four times as fast: the bits of float numbers, so that 0 and -0 differ and a NaN
 * equals itself. Not the number that rcn_hash_bytes() gives for the same memory, but the same on
 * machines of either byte order. */
RCN_API uint64_t rcn_hash_floats(uint64_t hash, const float *numbers, int64_t count);

#ifdef __cplusplus
}
#endif

#endif /* RCN_HASH_H */
