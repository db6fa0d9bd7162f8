// SPDX-License-Identifier: Apache-2.0
/* Votes of several structures: labels in place of marks, and the votes of one structure alone.
 *
 * The codes are refined as those of masks are (rcn_votes.c), with C + 2 answers in place of three.
 * Beside each pattern stands a row of labels, one per rater; patterns[].marked says who marked any
 * structure, so that what asks only for that (the box around marks, disputed voxels) works
 * unchanged.
 */
#include "rcn_votes_private.h"

#include <string.h>

void rcn__count_labels(uint8_t *counts, const uint8_t *labels, int64_t patterns, int raters,
                       int structures) {
    memset(counts, 0, (size_t)(patterns * (structures + 1)));
    for (int64_t p = 0; p < patterns; ++p)
        for (int r = 0; r < raters; ++r) {
            const int label = labels[p * raters + r];
            /* RCN_NO_ANSWER is above all structures, and counts for nothing. */
            if (label <= structures) ++counts[p * (structures + 1) + label];
        }
}

uint8_t rcn__most_given(const uint8_t *counts, int structures) {
    /* Structures first, each only by a clear lead over those before it; the background only by a
     * clear lead over all of them. This is the rule for ties. */
    int most = 1;
    for (int c = 2; c <= structures; ++c)
        if (counts[c] > counts[most]) most = c;
    return (uint8_t)(counts[0] > counts[most] ? 0 : most);
}

rcn_status rcn_votes_create_labels(rcn_votes **out, rcn_context *ctx, const rcn_geometry *geometry,
                                   int raters, int structures) {
    rcn_status status;
    rcn_votes *votes = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output votes is NULL.");
    if (structures < 1 || structures > RCN_MAX_STRUCTURES)
        return rcn__fail(ctx, RCN_EINVALID, "There must be 1 to %d structures, not %d.",
                         RCN_MAX_STRUCTURES, structures);
    /* Not dense: a bit per rater says nothing about which structure it was. */
    RCN_TRY(rcn__votes_create_table(&votes, ctx, geometry, raters, 0));
    votes->structures = structures;
    RCN_ALLOC(votes->labels, ctx, raters, "the table of patterns");
    /* The one pattern that there is: nobody has answered yet. */
    memset(votes->labels, RCN_NO_ANSWER, (size_t)raters);
    RCN_TRY(rcn__alloc_zero(&votes->codes, ctx, votes->voxels, (size_t)votes->code_bytes,
                            "the packed votes"));
    *out = votes;
    votes = NULL;
done:
    rcn_votes_destroy(votes);
    return status;
}

rcn_status rcn_votes_add_labels(rcn_votes *votes, rcn_context *ctx, int rater,
                                const rcn_label_map *maps, int count, int64_t *unnamed) {
    rcn_status status;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    RCN_TRY(rcn__votes_may_add(ctx, votes, rater, 1));
    if (!maps || count < 1)
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d: no label map was given.", rater + 1);
    for (int m = 0; m < count; ++m)
        if (!maps[m].structures)
            return rcn__fail(ctx, RCN_EINVALID,
                             "Rater %d: the structures of a label map are missing.", rater + 1);
    const rcn__answers said = {maps, count, rater, votes->structures};
    RCN_TRY(rcn__answers_check(ctx, &said, &votes->geometry));
    RCN_TRY(rcn__votes_refine(votes, ctx, &said, unnamed));
done:
    return status;
}

rcn_status rcn_votes_select(rcn_votes **out, rcn_context *ctx, const rcn_votes *votes,
                            int structure) {
    rcn_status status;
    rcn_votes *selected = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !votes) return rcn__fail(ctx, RCN_EINVALID, "No votes were given.");
    if (structure < 1 || structure > votes->structures)
        return rcn__fail(ctx, RCN_EINVALID, "Structure %d does not exist among %d.", structure,
                         votes->structures);
    RCN_ALLOC(selected, ctx, 1, "the votes");
    /* Only the table is made anew. Codes and geometry stay those of `votes`, which must outlive the
     * selection; two codes may mean the same pattern afterwards, which nothing minds. */
    *selected = *votes;
    selected->ctx = ctx;
    selected->structures = 1;
    selected->borrowed = 1;
    selected->patterns = NULL;
    selected->labels = NULL;
    RCN_ALLOC(selected->patterns, ctx, votes->pattern_count, "the table of patterns");
    memcpy(selected->patterns, votes->patterns,
           (size_t)votes->pattern_count * sizeof *votes->patterns);
    for (int64_t p = 0; votes->labels && p < votes->pattern_count; ++p) {
        selected->patterns[p].marked = 0;
        for (int r = 0; r < votes->raters; ++r)
            if (votes->labels[p * votes->raters + r] == structure)
                selected->patterns[p].marked |= UINT64_C(1) << r;
    }
    *out = selected;
    selected = NULL;
done:
    rcn_votes_destroy(selected);
    return status;
}
