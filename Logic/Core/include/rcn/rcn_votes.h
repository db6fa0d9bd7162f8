// SPDX-License-Identifier: Apache-2.0
/* Votes: what K raters said about each voxel, packed. Everything else starts here.
 *
 * A voxel's K answers form a pattern: who marked it and who answered at all. Few distinct patterns
 * occur, so the votes are kept as one small code per voxel (8, 16 or 32 bits) and a table that
 * gives for each code the pattern and how many voxels carry it. Whatever depends on the pattern
 * alone (levels, STAPLE, SIMPLE, kappa, pairwise Dice, volumes) reads the table, not the voxels; a
 * target map is one table look-up per voxel.
 *
 * Up to 16 raters who answered everywhere, the code is the pattern itself (bit r = rater r). Beyond
 * that, codes number the patterns that occur, in ascending order of the raters' answers, so that
 * they do not depend on the number of threads.
 *
 * Where raters outline several structures, an answer is a label: 0 for background, 1 ... C for a
 * structure. Everything above holds for labels as it does for marks, and the pattern of marks says
 * who marked any structure. What works on one structure works on each of several through
 * rcn_votes_select().
 *
 * Three raters' masks of one case, and how many voxels all of them marked:
 *
 *     rcn_votes *votes = NULL;
 *     rcn_votes_create(&votes, ctx, &geometry, 3);
 *     for (int r = 0; r < 3; ++r) {
 *         rcn_mask mask = {{pixels, RCN_UINT8, 1, geometry}, 0, NULL, 0, NULL};
 *         read_mask(pixels, r);                              // one buffer serves all of them
 *         if (rcn_votes_add(votes, ctx, r, &mask) != RCN_OK) ...
 *     }
 *     const rcn_pattern *patterns = rcn_votes_patterns(votes);
 *     for (int64_t p = 0; p < rcn_votes_pattern_count(votes); ++p)
 *         if (rcn_popcount(patterns[p].marked) == 3) all += patterns[p].voxels;
 *
 * Votes remember the context that they were created with, whose memory they are in. Functions
 * without a context only read them, keep no state and may be called from any thread.
 */
#ifndef RCN_VOTES_H
#define RCN_VOTES_H

#include "rcn_image.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RCN_MAX_RATERS 64     /* as many as there are bits in a pattern */
#define RCN_MAX_STRUCTURES 32 /* labels 0 ... 32; RCN_NO_ANSWER is none of them */

enum { RCN_NO_ANSWER = 255 }; /* the label of a rater who did not answer */

/* Opaque: the codes, the table of patterns and the geometry of one case. */
typedef struct rcn_votes rcn_votes;

/* One rater's answer to a case. */
typedef struct rcn_mask {
    rcn_image image;
    int component;             /* which component of a multi-component image; 0 for a plain one */
    const int64_t *values;     /* label values that mean "marked"; NULL: any non-zero value */
    int value_count;           /* 0 with NULL values */
    const int64_t *unanswered; /* label value that means "did not answer here"; NULL: none does */
} rcn_mask;

/* One image of a rater's answer about several structures: which of its values are which of them. */
typedef struct rcn_label_map {
    rcn_image image;
    int component;
    const int64_t *values;     /* label values; NULL: any non-zero value means structures[0] */
    const uint8_t *structures; /* the structure (1 ... C) of each value; two may mean the same */
    int value_count;           /* 0 with NULL values */
    const int64_t *unanswered; /* label value that means "did not answer here"; NULL: none does */
} rcn_label_map;

/* One distinct pattern of answers. Bit r belongs to rater r; marked is a subset of answered. */
typedef struct rcn_pattern {
    uint64_t marked;
    uint64_t answered;
    int64_t voxels; /* how many voxels carry it; may be 0 */
} rcn_pattern;

/* How many bits are set: how many raters marked, answered or are present. */
RCN_API int rcn_popcount(uint64_t bits);

/* Votes of `raters` raters (1 ... RCN_MAX_RATERS) none of whom has answered yet. The geometry is
 * copied. Takes a byte per voxel, two for nine to sixteen raters, and more when it comes to need
 * it.
 *   RCN_EINVALID  a geometry or a number of raters that cannot be used
 * On failure *out is unchanged. */
RCN_API rcn_status rcn_votes_create(rcn_votes **out, rcn_context *ctx, const rcn_geometry *geometry,
                                    int raters);

/* NULL is fine. */
RCN_API void rcn_votes_destroy(rcn_votes *votes);

/* Adds the answers of rater number `rater`, who must not have been added before. The mask is only
 * read during the call: reading masks from disk one after another needs memory for one of them. A
 * rater who is never added did not answer this case.
 *   RCN_EDATA      NaN, infinite or fractional label; the sentence names voxel and value
 *   RCN_EGEOMETRY  another size (world positions are the caller's to compare)
 * On failure or cancel the votes are as before. */
RCN_API rcn_status rcn_votes_add(rcn_votes *votes, rcn_context *ctx, int rater,
                                 const rcn_mask *mask);

/* All raters at once, in a single pass over the masks instead of one for each, where all masks are
 * in memory anyway. masks[r].image.data == NULL: rater r did not answer this case. At least one
 * must have. Errors are those of rcn_votes_add(); on failure or cancel *out is unchanged. */
RCN_API rcn_status rcn_votes_from_masks(rcn_votes **out, rcn_context *ctx, const rcn_mask *masks,
                                        int raters);

/* Where the voxels are. Borrowed. */
RCN_API const rcn_geometry *rcn_votes_geometry(const rcn_votes *votes);

/* K, whether or not all of them answered. */
RCN_API int rcn_votes_raters(const rcn_votes *votes);

/* Bit r is set when rater r answered this case. */
RCN_API uint64_t rcn_votes_present(const rcn_votes *votes);

/* The table of patterns; a voxel's code is the index of its pattern. Borrowed, valid until the next
 * rcn_votes_add(). */
RCN_API const rcn_pattern *rcn_votes_patterns(const rcn_votes *votes);
RCN_API int64_t rcn_votes_pattern_count(const rcn_votes *votes);

/* The codes, one per voxel: elements of 1, 2 or 4 bytes. Borrowed, as above. */
RCN_API const void *rcn_votes_codes(const rcn_votes *votes);
RCN_API int rcn_votes_code_bytes(const rcn_votes *votes);

/* The pattern of one voxel, for whoever asks about a single one. Borrowed, as above. */
RCN_API const rcn_pattern *rcn_votes_at(const rcn_votes *votes, int64_t voxel);

/* ---- several structures ---------------------------------------------------------------------- */

/* Votes of raters who give each voxel one of C + 1 labels (C = `structures`, 1 ...
 * RCN_MAX_STRUCTURES); none of them has answered yet. */
RCN_API rcn_status rcn_votes_create_labels(rcn_votes **out, rcn_context *ctx,
                                           const rcn_geometry *geometry, int raters,
                                           int structures);

/* Adds the answers of one rater, in one image for all structures or in several, under the
 * conditions of rcn_votes_add(). A value that no map names is background; *unnamed (NULL: not
 * wanted) counts the voxels of such values other than 0. A voxel that one map leaves unanswered is
 * answered where another map marks it.
 *   RCN_EDATA  also: two maps mark a voxel with different structures; the sentence names voxel and
 *              structures
 * On failure or cancel the votes and *unnamed are as before. */
RCN_API rcn_status rcn_votes_add_labels(rcn_votes *votes, rcn_context *ctx, int rater,
                                        const rcn_label_map *maps, int count, int64_t *unnamed);

/* C; 1 for votes made by rcn_votes_create(). */
RCN_API int rcn_votes_structures(const rcn_votes *votes);

/* The labels behind the codes, (pattern_count, K): 0 ... C or RCN_NO_ANSWER. Borrowed, as above;
 * NULL for votes that hold marks. */
RCN_API const uint8_t *rcn_votes_labels(const rcn_votes *votes);

/* The votes of one structure (1 ... C) alone, a case like any other: marked is that structure, all
 * else is background. They share the codes of `votes`, which must outlive them and be neither added
 * to nor reordered, and cost a table. Different codes may have the same pattern here. */
RCN_API rcn_status rcn_votes_select(rcn_votes **out, rcn_context *ctx, const rcn_votes *votes,
                                    int structure);

/* How many voxels rater r marked, read off the table: any structure, where there are several. */
RCN_API int64_t rcn_votes_marked(const rcn_votes *votes, int rater);

/* A box of voxels, first[] included, end[] excluded. */
typedef struct rcn_box {
    int64_t first[3];
    int64_t end[3];
} rcn_box;

/* The smallest box around all voxels that anybody marked, grown by `margin` voxels and cut at the
 * image's border; the whole image when nobody marked anything, so that whoever works inside of it
 * has voxels. On failure or cancel *out is unchanged. */
RCN_API rcn_status rcn_votes_union_box(rcn_box *out, rcn_context *ctx, const rcn_votes *votes,
                                       int64_t margin);

/* out[voxel] = table[code of the voxel]: turns any number that depends on the pattern into a map.
 * out has one float per voxel, table one per pattern. This is how a new kind of map is made: a loop
 * over the patterns fills the table, and no voxel is counted again.
 *
 *     for (int64_t p = 0; p < count; ++p) table[p] = (float)rcn_popcount(patterns[p].marked);
 *     rcn_votes_expand(out, ctx, votes, table);             // how many raters marked each voxel
 *
 * Canceled: out is partly written. */
RCN_API rcn_status rcn_votes_expand(float *out, rcn_context *ctx, const rcn_votes *votes,
                                    const float *table);

/* The same into bytes. */
RCN_API rcn_status rcn_votes_expand_u8(uint8_t *out, rcn_context *ctx, const rcn_votes *votes,
                                       const uint8_t *table);

/* What is marked in a slice (the third axis): by anybody, and by some but not all who answered. */
typedef struct rcn_slice_votes {
    int64_t marked, disputed;
} rcn_slice_votes;

/* out[slice] for all slices. On failure or cancel `out` is partly written. */
RCN_API rcn_status rcn_votes_by_slice(rcn_slice_votes *out, rcn_context *ctx,
                                      const rcn_votes *votes);

#ifdef __cplusplus
}
#endif

#endif /* RCN_VOTES_H */
