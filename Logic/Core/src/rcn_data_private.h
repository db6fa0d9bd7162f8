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

/* What a sample needs of its case, which may go once it is taken, and where the sample goes. Zeros:
 * nothing is taken. */
typedef struct rcn__sample {
    float *image, *target;
    uint32_t *codes;
    void *mapped;                         /* where its voxels come from */
    float *box;                           /* part of the image, normalized, and of the map */
    uint8_t *box_codes;                   /* and of the votes, packed as they are */
    int64_t first[3], extent[3], size[3]; /* of the part; of the whole case */
    int64_t voxels;                       /* of the part */
    int channels, code_bytes;
    uint32_t void_code;
} rcn__sample;

/* Voxels of parts after which samples had better be drawn: some megabytes, and more than enough
 * work for all threads. */
enum { RCN_SAMPLE_VOXELS = 1 << 20 };

/* Takes what a sample needs.
 *   image  (channels, Z, Y, X)
 *   codes  (Z, Y, X): vote codes of the case, or RCN_VOID_CODE()
 *   map    (Z, Y, X): the case's map; negative where void. NULL when the case has none
 *   rng    which sample: the start of its stream; afterwards where it goes on
 * On failure or cancel *out is unchanged. */
rcn_status rcn__sample_take(rcn__sample *out, float *image, uint32_t *codes, float *map,
                            rcn_context *ctx, const rcn_data_case *from,
                            const rcn_sample_options *options, rcn_rng *rng);

/* Draws samples, several together, so that small ones keep all threads busy, too. Their intensities
 * are those of their cases until rcn__samples_vary(). Canceled: partly written. */
rcn_status rcn__samples_draw(const rcn__sample *samples, int64_t count, rcn_context *ctx,
                             const rcn_sample_options *options);

void rcn__sample_free(rcn__sample *sample, rcn_context *ctx);

/* Varies the intensities of samples, all of a batch together. Each sample's are the same in any
 * company.
 *   images  (samples, channels, Z, Y, X)
 *   rngs    of each sample, as rcn__sample_take() left it
 * Failed or canceled: partly done. */
rcn_status rcn__samples_vary(float *images, rcn_context *ctx, int64_t samples, int channels,
                             const rcn_sample_options *options, rcn_rng *rngs);

#endif /* RCN_DATA_PRIVATE_H */
