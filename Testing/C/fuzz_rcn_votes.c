// SPDX-License-Identifier: Apache-2.0
/* libFuzzer: any bytes as masks, label maps and options -> votes -> fusion, agreement, surfaces,
 * regions. Every answer must be a status with a sentence or a result that keeps its promises; the
 * sanitizers watch the rest. */
#include "rcn/rcn.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) abort();                                                                 \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
    const uint8_t *at;
    size_t left;
} bytes;

static void take(void *out, bytes *in, size_t count) {
    const size_t have = count < in->left ? count : in->left;
    memset(out, 0, count);
    if (have) memcpy(out, in->at, have);
    in->at += have;
    in->left -= have;
}

static unsigned take_u8(bytes *in) {
    uint8_t value;
    take(&value, in, 1);
    return value;
}

static int64_t take_i64(bytes *in) {
    int64_t value;
    take(&value, in, sizeof value);
    return value;
}

static double take_number(bytes *in, double usual) {
    double value;
    if (take_u8(in) % 4) return usual;
    take(&value, in, sizeof value);
    return value;
}

static int countdown(double fraction, const char *stage, void *payload) {
    REQUIRE(fraction >= 0 && fraction <= 1 && stage);
    return --*(int *)payload < 0;
}

/* Failures must be named and explained. */
static int good(const rcn_context *ctx, rcn_status status) {
    REQUIRE(status == RCN_OK || (status < 0 && *rcn_context_error(ctx)));
    REQUIRE(status != RCN_EINTERNAL);
    return status == RCN_OK;
}

static void fuse(bytes *in, rcn_context *ctx, const rcn_votes *votes) {
    const int64_t voxels = rcn_geometry_voxels(rcn_votes_geometry(votes));
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    rcn_fusion_result result;
    options.method = (rcn_method)(take_u8(in) % 9);
    options.tie = (rcn_tie)(take_u8(in) % 3);
    options.sigma = take_number(in, 1);
    options.seed = (uint64_t)take_i64(in);
    options.staple_output = (rcn_staple_output)(take_u8(in) % 2);
    options.staple_confidence = take_number(in, 1);
    options.staple_iterations = (int)take_u8(in) - 1;
    options.staple_margin = take_u8(in) % 2 ? -1 : take_i64(in);
    options.simple_alpha = take_number(in, 1);
    float *map = malloc((size_t)voxels * sizeof *map);
    REQUIRE(map);
    if (good(ctx, rcn_fuse(map, &result, ctx, votes, &options))) {
        const float top = options.method == RCN_ORC ? (float)rcn_votes_raters(votes) : 1.0f;
        /* Never NaN or infinity in a volume. */
        for (int64_t i = 0; i < voxels; ++i) REQUIRE(map[i] >= 0 && map[i] <= top * 1.00001f);
    }
    free(map);
}

static void agree(rcn_context *ctx, const rcn_votes *votes) {
    rcn_agreement *agreement = NULL;
    rcn_dispute *regions = NULL;
    int64_t count = 0;
    const int64_t voxels = rcn_geometry_voxels(rcn_votes_geometry(votes));
    if (good(ctx, rcn_agreement_create(&agreement, ctx, votes))) {
        int64_t sum = 0;
        for (int level = 0; level <= agreement->raters; ++level)
            sum += agreement->level_voxels[level];
        REQUIRE(sum == voxels);
        REQUIRE(agreement->intersection_voxels + agreement->disputed_voxels ==
                agreement->union_voxels);
        for (int p = 0; p < agreement->raters * agreement->raters; ++p)
            REQUIRE(isnan(agreement->pair[p].dice) ||
                    (agreement->pair[p].dice >= 0 && agreement->pair[p].dice <= 1));
    }
    if (agreement && good(ctx, rcn_agreement_measure_surfaces(agreement, ctx, votes)))
        for (int p = 0; p < agreement->raters * agreement->raters; ++p)
            REQUIRE(!(agreement->pair[p].hausdorff95_mm < 0));
    if (good(ctx, rcn_disputes_create(&regions, &count, ctx, votes))) {
        int64_t sum = 0;
        for (int64_t k = 0; k < count; ++k) {
            sum += regions[k].voxels;
            REQUIRE(!k || regions[k].voxels <= regions[k - 1].voxels);
            for (int a = 0; a < 3; ++a)
                REQUIRE(regions[k].at[a] >= regions[k].box.first[a] &&
                        regions[k].at[a] < regions[k].box.end[a]);
        }
        REQUIRE(!agreement || sum == agreement->disputed_voxels);
    }
    rcn_disputes_destroy(regions, ctx);
    rcn_agreement_destroy(agreement, ctx);
}

/* Every label is one that there is, every matrix entry and posterior a probability. */
static void fuse_labels(bytes *in, rcn_context *ctx, const rcn_votes *votes) {
    const int64_t voxels = rcn_geometry_voxels(rcn_votes_geometry(votes));
    const int64_t patterns = rcn_votes_pattern_count(votes);
    const int raters = rcn_votes_raters(votes), labels = rcn_votes_structures(votes) + 1;
    const int64_t entries = (int64_t)raters * labels * labels;
    rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
    rcn_label_agreement agreement;
    options.staple_iterations = 1 + (int)take_u8(in);
    options.staple_margin = take_u8(in) % 2 ? -1 : take_i64(in);
    uint8_t *out = malloc((size_t)(voxels + patterns));
    double *confusion = malloc((size_t)(entries + patterns * labels) * sizeof *confusion);
    REQUIRE(out && confusion);
    if (good(ctx, rcn_plurality(out, ctx, votes)))
        for (int64_t i = 0; i < voxels; ++i) REQUIRE(out[i] < labels);
    if (good(ctx, rcn_label_staple_patterns(out + voxels, confusion + entries, confusion, NULL, ctx,
                                            votes, &options)))
        for (int64_t i = 0; i < entries + patterns * labels; ++i)
            REQUIRE(confusion[i] >= 0 && confusion[i] <= 1.00001);
    (void)good(ctx, rcn_agreement_labels(&agreement, NULL, ctx, votes));
    free(confusion);
    free(out);
}

/* The same images as label maps: one of a rater, or two with the rater before. */
static void labels(bytes *in, rcn_context *ctx, const rcn_geometry *geometry, const rcn_mask *masks,
                   int raters) {
    const int structures = (int)take_u8(in) % (RCN_MAX_STRUCTURES + 2);
    uint8_t numbers[RCN_MAX_RATERS + 1][2];
    rcn_label_map maps[RCN_MAX_RATERS + 1];
    rcn_votes *votes = NULL, *alone = NULL;
    if (raters > RCN_MAX_RATERS) raters = RCN_MAX_RATERS;
    if (!good(ctx, rcn_votes_create_labels(&votes, ctx, geometry, raters, structures))) return;
    for (int r = 0; r < raters; ++r) {
        const rcn_mask *mask = &masks[r];
        const rcn_label_map map = {mask->image, mask->component,   mask->values,
                                   numbers[r],  mask->value_count, mask->unanswered};
        const int both = r && take_u8(in) % 4 == 0;
        int64_t unnamed = -1;
        numbers[r][0] = (uint8_t)(1 + take_u8(in) % (structures + 1));
        numbers[r][1] = (uint8_t)(1 + take_u8(in) % (structures + 1));
        maps[r] = map;
        if (!mask->image.data) continue;
        if (good(ctx, rcn_votes_add_labels(votes, ctx, r, &maps[r - both], 1 + both, &unnamed)))
            REQUIRE(unnamed >= 0 && unnamed <= rcn_geometry_voxels(geometry));
        else
            REQUIRE(unnamed == -1 && !(rcn_votes_present(votes) >> r & 1));
    }
    fuse_labels(in, ctx, votes);
    if (good(ctx, rcn_votes_select(&alone, ctx, votes, 1 + (int)take_u8(in) % structures))) {
        fuse(in, ctx, alone);
        agree(ctx, alone);
    }
    rcn_votes_destroy(alone);
    rcn_votes_destroy(votes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes in = {data, size};
    rcn_context_options context_options = RCN_CONTEXT_OPTIONS_INIT;
    rcn_context *ctx = NULL;
    rcn_votes *votes = NULL;
    rcn_mask masks[RCN_MAX_RATERS + 1];
    int64_t values[RCN_MAX_RATERS + 1][2], unanswered[RCN_MAX_RATERS + 1];
    void *buffers[RCN_MAX_RATERS + 1] = {NULL};
    int left = (int)take_u8(&in) * 4; /* cancels after so many reports; 0: never */
    context_options.threads = 1;
    if (left) {
        context_options.progress = countdown;
        context_options.progress_payload = &left;
    }
    REQUIRE(rcn_context_create(&ctx, &context_options) == RCN_OK);

    const int raters = (int)take_u8(&in) % (RCN_MAX_RATERS + 2);
    rcn_geometry geometry =
        rcn_geometry_make(take_u8(&in) % 20, take_u8(&in) % 12, take_u8(&in) % 6);
    geometry.spacing[0] = take_number(&in, 1);
    memset(masks, 0, sizeof masks);
    for (int r = 0; r < raters && r <= RCN_MAX_RATERS; ++r) {
        const unsigned flags = take_u8(&in);
        rcn_mask *mask = &masks[r];
        mask->image.geometry = geometry;
        mask->image.type = (rcn_type)(take_u8(&in) % 11);
        mask->image.components = 1 + (int)(flags & 1);
        mask->component = (int)(flags >> 1 & 1);
        if (flags & 4) {
            values[r][0] = flags & 64 ? take_i64(&in) : (int64_t)take_u8(&in);
            values[r][1] = take_u8(&in);
            mask->values = values[r];
            mask->value_count = 1 + (int)(flags >> 3 & 1);
        }
        if (flags & 16) {
            unanswered[r] = flags & 128 ? take_i64(&in) : (int64_t)take_u8(&in);
            mask->unanswered = &unanswered[r];
        }
        if (flags & 32) continue; /* did not answer */
        const size_t count = (size_t)(geometry.size[0] * geometry.size[1] * geometry.size[2] *
                                      mask->image.components) *
                             rcn_type_size(mask->image.type);
        buffers[r] = malloc(count + 1);
        REQUIRE(buffers[r]);
        /* Few bytes go a long way: a short piece of the input is repeated over the mask. */
        const size_t piece = 1 + take_u8(&in) % 32;
        take(buffers[r], &in, piece < count ? piece : count);
        for (size_t i = piece; i < count; ++i)
            ((uint8_t *)buffers[r])[i] = ((uint8_t *)buffers[r])[i - piece];
        mask->image.data = buffers[r];
    }
    if (good(ctx, rcn_votes_from_masks(&votes, ctx, masks, raters))) {
        int64_t sum = 0;
        for (int64_t p = 0; p < rcn_votes_pattern_count(votes); ++p) {
            const rcn_pattern *pattern = &rcn_votes_patterns(votes)[p];
            sum += pattern->voxels;
            REQUIRE(!pattern->voxels || !(pattern->marked & ~pattern->answered));
        }
        REQUIRE(sum == rcn_geometry_voxels(&geometry));
        fuse(&in, ctx, votes);
        agree(ctx, votes);
    }
    rcn_votes_destroy(votes);
    labels(&in, ctx, &geometry, masks, raters);
    REQUIRE(rcn_context_bytes(ctx) == 0);
    rcn_context_destroy(ctx);
    for (int r = 0; r <= RCN_MAX_RATERS; ++r) free(buffers[r]);
    return 0;
}
