// SPDX-License-Identifier: Apache-2.0
/* Drawing samples, for training and its tests. */
#ifndef RCN_DATA_PRIVATE_H
#define RCN_DATA_PRIVATE_H

#include "rcn/rcn_data.h"
#include "rcn_rng.h"

struct rcn_foci {
    rcn_context *ctx;
    int64_t count[2]; /* marked by all, disputed */
    int64_t voxels[2][RCN_FOCI];
};

/* NULL if usable, otherwise a sentence. */
const char *rcn__sample_check(const rcn_sample_options *options);

/* Draws a sample; its intensities are those of the case until rcn__samples_vary().
 *   image  (channels, Z, Y, X)
 *   codes  (Z, Y, X): vote codes of the case, or RCN_VOID_CODE()
 *   map    (Z, Y, X): the case's map; negative where void. NULL when the case has none
 *   rng    which sample: the start of its stream; afterwards where it goes on
 * Failed or canceled: the outputs are partly written. */
rcn_status rcn__sample_draw(float *image, uint32_t *codes, float *map, rcn_context *ctx,
                            const rcn_data_case *from, const rcn_sample_options *options,
                            rcn_rng *rng);

/* Varies the intensities of samples, all of a batch together, so that small ones keep all threads
 * busy, too. Each sample's are the same in any company.
 *   images  (samples, channels, Z, Y, X)
 *   rngs    of each sample, as rcn__sample_draw() left it
 * Failed or canceled: partly done. */
rcn_status rcn__samples_vary(float *images, rcn_context *ctx, int64_t samples, int channels,
                             const rcn_sample_options *options, rcn_rng *rngs);

#endif /* RCN_DATA_PRIVATE_H */
