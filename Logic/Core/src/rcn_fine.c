// SPDX-License-Identifier: Apache-2.0
/* The fine histogram of the calibration sums, in little memory: a case that waits for its interval
 * keeps only the cells in which it has voxels, as whole numbers of few bytes. Nothing is rounded.
 *
 * A cell is: (empty cells before it << 3 | flags), voxels with a reference, pairs unless FULL,
 * marked pairs and foreground unless UNMARKED, and the sum of p. Numbers are little-endian groups
 * of seven bits, the eighth says that more follow. The sum of p is a multiple of 2^-38 and close to
 * that of as many pairs in the middle of the cell, so the difference is small. */
#include <math.h>
#include <string.h>

#include "rcn_calib_private.h"

enum {
    FULL = 1,     /* all raters answered and there is a reference: pairs = raters * voxels */
    UNMARKED = 2, /* nobody marks anything, nor does the reference */
    PLAIN = 4     /* the sum of p is a double as it is: there are too many pairs for the rest */
};

/* A number has ten bytes at most; there are five of them and the flags. */
enum { MOST_BYTES = 6 * 10 };

static uint8_t *put_number(uint8_t *at, uint64_t x) {
    for (; x >= 128; x >>= 7) *at++ = (uint8_t)(x | 128);
    *at++ = (uint8_t)x;
    return at;
}

static uint64_t get_number(const uint8_t **at) {
    uint64_t x = 0;
    int shift = 0;
    for (; **at >= 128; ++*at, shift += 7) x |= (uint64_t)(**at & 127) << shift;
    return x | (uint64_t)*(*at)++ << shift;
}

/* The middle of a cell in units of 2^-38; of the outermost ones the ends, where most voxels are. */
static int64_t middle_of(int cell) {
    const int64_t one = INT64_C(1) << RCN_FRACTION_BITS;
    if (cell > RCN_FINE_HALF) return one - middle_of(RCN_FINE - 1 - cell);
    if (cell == RCN_FINE_HALF) return one / 2;
    if (cell >= RCN_FINE_TAIL) return (2 * (cell - RCN_FINE_TAIL + INT64_C(64)) + 1) << 25;
    if (cell == 0) return 0;
    return (2 * (INT64_C(64) + (cell - 1) % 64) + 1) << ((cell - 1) / 64 + 7);
}

static uint8_t *put_cell(uint8_t *at, int cell, int gap, int raters, const double sums[5]) {
    const double fixed = ldexp(sums[2], RCN_FRACTION_BITS);
    /* Middle times pairs stays below 2^62. */
    const int is_plain = !(sums[0] < 0x1p24 && fixed < 0x1p62 && fixed == floor(fixed));
    const int is_full = sums[0] == raters * sums[3], is_unmarked = sums[1] == 0 && sums[4] == 0;
    at = put_number(at, (uint64_t)gap << 3 | (is_full ? FULL : 0u) | (is_unmarked ? UNMARKED : 0u) |
                            (is_plain ? PLAIN : 0u));
    at = put_number(at, (uint64_t)sums[3]);
    if (!is_full) at = put_number(at, (uint64_t)sums[0]);
    if (!is_unmarked) {
        at = put_number(at, (uint64_t)sums[1]);
        at = put_number(at, (uint64_t)sums[4]);
    }
    if (is_plain) {
        memcpy(at, &sums[2], sizeof sums[2]);
        return at + sizeof sums[2];
    }
    /* The sign of the difference goes to the lowest bit. */
    const int64_t off = (int64_t)fixed - middle_of(cell) * (int64_t)sums[0];
    return put_number(at, off < 0 ? ((uint64_t)-off << 1) - 1 : (uint64_t)off << 1);
}

void rcn__fine_begin(rcn__fine *out, const rcn_calib *calib) {
    memset(out, 0, sizeof *out);
    out->cell = -1;
    out->raters = calib->raters;
    out->at = calib->packed;
    out->end = calib->packed ? calib->packed + calib->packed_bytes : NULL;
    out->dense = calib->packed ? NULL : calib->sums + rcn__sum_fine(calib);
}

static const double *next_packed(rcn__fine *fine) {
    double *sums = fine->sums;
    const uint8_t *at = fine->at;
    if (at == fine->end) return NULL;
    const uint64_t head = get_number(&at);
    fine->cell += 1 + (int)(head >> 3);
    sums[3] = (double)get_number(&at);
    sums[0] = head & FULL ? fine->raters * sums[3] : (double)get_number(&at);
    sums[1] = head & UNMARKED ? 0 : (double)get_number(&at);
    sums[4] = head & UNMARKED ? 0 : (double)get_number(&at);
    if (head & PLAIN) {
        memcpy(&sums[2], at, sizeof sums[2]);
        at += sizeof sums[2];
    } else {
        const uint64_t off = get_number(&at);
        const int64_t base = middle_of(fine->cell) * (int64_t)sums[0];
        const int64_t fixed =
            off & 1 ? base - (int64_t)((off + 1) >> 1) : base + (int64_t)(off >> 1);
        sums[2] = (double)fixed / (double)(UINT64_C(1) << RCN_FRACTION_BITS);
    }
    fine->at = at;
    return sums;
}

static int is_empty(const double sums[5]) { return sums[0] == 0 && sums[3] == 0; }

const double *rcn__fine_next(rcn__fine *fine) {
    if (!fine->dense) return next_packed(fine);
    while (++fine->cell < RCN_FINE) {
        const double *sums = fine->dense + INT64_C(5) * fine->cell;
        if (!is_empty(sums)) return sums;
    }
    return NULL;
}

void rcn__fine_add(double *out, const rcn_calib *calib, double weight) {
    rcn__fine fine;
    const double *sums;
    rcn__fine_begin(&fine, calib);
    while ((sums = rcn__fine_next(&fine)) != NULL)
        for (int i = 0; i < 5; ++i) out[5 * fine.cell + i] += weight * sums[i];
}

/* Memory for the sums, from the context that will free it; the sentence goes to `ctx`. */
static rcn_status own_memory(void **out, rcn_calib *calib, rcn_context *ctx, int64_t count,
                             size_t size) {
    const rcn_status status = rcn__alloc(out, calib->ctx, count, size, "the calibration sums");
    if (status != RCN_OK && ctx != calib->ctx)
        rcn__fail(ctx, status, "%s", rcn_context_error(calib->ctx));
    return status;
}

rcn_status rcn_calib_pack(rcn_calib *calib, rcn_context *ctx) {
    rcn_status status;
    double *head = NULL;
    uint8_t *bytes = NULL, *packed = NULL, *at;
    int gap = 0;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!calib) return rcn__fail(ctx, RCN_EINVALID, "The sums to pack are NULL.");
    if (calib->packed) return RCN_OK;
    const int64_t length = rcn__sum_fine(calib);
    RCN_ALLOC(bytes, ctx, INT64_C(1) * MOST_BYTES * RCN_FINE, "the fine histogram");
    at = bytes;
    for (int cell = 0; cell < RCN_FINE; ++cell) {
        const double *sums = calib->sums + length + INT64_C(5) * cell;
        if (!is_empty(sums)) at = put_cell(at, cell, gap, calib->raters, sums);
        gap = is_empty(sums) ? gap + 1 : 0;
    }
    RCN_TRY(own_memory((void **)&packed, calib, ctx, at - bytes, sizeof *packed));
    RCN_TRY(own_memory((void **)&head, calib, ctx, length, sizeof *head));
    memcpy(packed, bytes, (size_t)(at - bytes));
    memcpy(head, calib->sums, sizeof *head * (size_t)length);
    rcn__free(calib->ctx, calib->sums);
    calib->packed = packed;
    calib->packed_bytes = at - bytes;
    calib->sums = head;
    packed = NULL;
    head = NULL;
done:
    rcn__free(ctx, bytes);
    rcn__free(calib->ctx, packed);
    rcn__free(calib->ctx, head);
    return status;
}

rcn_status rcn__calib_unpack(rcn_calib *calib, rcn_context *ctx) {
    rcn_status status;
    double *sums = NULL;
    if (!calib->packed) return RCN_OK;
    RCN_TRY(own_memory((void **)&sums, calib, ctx, calib->length, sizeof *sums));
    memset(sums, 0, sizeof *sums * (size_t)calib->length);
    memcpy(sums, calib->sums, sizeof *sums * (size_t)rcn__sum_fine(calib));
    rcn__fine_add(sums + rcn__sum_fine(calib), calib, 1);
    rcn__free(calib->ctx, calib->packed);
    rcn__free(calib->ctx, calib->sums);
    calib->packed = NULL;
    calib->packed_bytes = 0;
    calib->sums = sums;
done:
    return status;
}

int64_t rcn__calib_bytes(const rcn_calib *calib) {
    const int64_t length = calib->packed ? rcn__sum_fine(calib) : calib->length;
    return (int64_t)sizeof *calib + length * (int64_t)sizeof *calib->sums + calib->packed_bytes;
}
