// SPDX-License-Identifier: Apache-2.0
/* Drawing samples, for training and its tests. */
#ifndef RCN_DATA_PRIVATE_H
#define RCN_DATA_PRIVATE_H

#include "rcn/rcn_data.h"

struct rcn_foci {
    rcn_context *ctx;
    int64_t count[2]; /* marked by all, disputed */
    int64_t voxels[2][RCN_FOCI];
};

/* NULL if usable, otherwise a sentence. */
const char *rcn__sample_check(const rcn_sample_options *options);

/* Draws a sample.
 *   image  (channels, Z, Y, X)
 *   codes  (Z, Y, X): vote codes of the case, or RCN_VOID_CODE()
 *   map    (Z, Y, X): the case's map; negative where void. NULL when the case has none
 *   seed, stream  which sample
 * Failed or canceled: the outputs are partly written. */
rcn_status rcn__sample_draw(float *image, uint32_t *codes, float *map, rcn_context *ctx,
                            const rcn_data_case *from, const rcn_sample_options *options,
                            uint64_t seed, uint64_t stream);

#endif /* RCN_DATA_PRIVATE_H */
