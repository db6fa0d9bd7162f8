// SPDX-License-Identifier: Apache-2.0
/* Normalizing in parts, for callers that share the parts among threads. */
#ifndef RCN_NORMALIZE_PRIVATE_H
#define RCN_NORMALIZE_PRIVATE_H

#include "rcn/rcn_normalize.h"

/* out = rows `row` ... end - 1 of channel c of a box, as rcn_normalize_box() has them; they are
 * counted along y first, then z. */
void rcn__normalize_rows(float *out, const rcn_scale *scale, const rcn_channel *channels, int c,
                         const int64_t first[3], const int64_t size[3], int64_t row, int64_t end);

#endif /* RCN_NORMALIZE_PRIVATE_H */
