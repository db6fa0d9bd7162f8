// SPDX-License-Identifier: Apache-2.0
/* Normalization of images (rcn_normalize.h): measuring (mean and deviation, percentiles), and
 * bringing any element type to floats around 0.
 *
 * What is not finite takes no part in measuring and becomes 0. Sums are kept by chunk and merged in
 * order, so that a scale has the same bits for any number of threads.
 */
#include "rcn_normalize_private.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "rcn_parallel.h"
#include "rcn_comm_private.h"

/* Beyond this no network can make sense of a number, and its square still fits a float. */
static const double LARGEST = 1e6;

/* Voxels that are read at a time: a few kilobytes of stack. */
enum { BLOCK = 512 };

const char *rcn_normalize_name(rcn_normalize_kind kind) {
    static const char *const names[] = {"fixed", "zscore", "percentile", "window"};
    return (int)kind >= 0 && (int)kind <= RCN_NORMALIZE_WINDOW ? names[kind] : NULL;
}

const char *rcn_normalize_check(const rcn_normalize *normalize) {
    if (!normalize) return "No normalization was given.";
    switch (normalize->kind) {
    case RCN_NORMALIZE_FIXED:
        if (normalize->channels < 1 || normalize->channels > RCN_NORMALIZE_CHANNELS)
            return "A fixed normalization needs mean and std for 1 to 64 channels.";
        for (int c = 0; c < normalize->channels; ++c)
            if (!isfinite(normalize->mean[c]) || !isfinite(normalize->std[c]) ||
                !(normalize->std[c] > 0))
                return "A fixed normalization needs a finite mean and a std greater than 0.";
        return NULL;
    case RCN_NORMALIZE_ZSCORE: return NULL;
    case RCN_NORMALIZE_PERCENTILE:
        return normalize->lower >= 0 && normalize->lower < normalize->upper &&
                       normalize->upper <= 100
                   ? NULL
                   : "Percentiles must be 0 <= lower < upper <= 100.";
    case RCN_NORMALIZE_WINDOW:
        return isfinite(normalize->center) && normalize->width > 0 && isfinite(normalize->width)
                   ? NULL
                   : "A window needs a finite center and a width greater than 0.";
    }
    return "The normalization must be fixed, zscore, percentile or window.";
}

/* ---- reading any type ------------------------------------------------------------------------ */

#define READ(T)                                                                                    \
    do {                                                                                           \
        const T *from = (const T *)channel->image.data + first * step + channel->component;        \
        for (int64_t i = 0; i < count; ++i) out[i] = (double)from[i * step];                       \
    } while (0)

/* out[count] = the voxels from number `first` on. */
static void read_voxels(double *out, const rcn_channel *channel, int64_t first, int64_t count) {
    const int64_t step = channel->image.components;
    switch (channel->image.type) {
    case RCN_UINT8: READ(uint8_t); break;
    case RCN_INT8: READ(int8_t); break;
    case RCN_UINT16: READ(uint16_t); break;
    case RCN_INT16: READ(int16_t); break;
    case RCN_UINT32: READ(uint32_t); break;
    case RCN_INT32: READ(int32_t); break;
    case RCN_UINT64: READ(uint64_t); break;
    case RCN_INT64: READ(int64_t); break;
    case RCN_FLOAT32: READ(float); break;
    case RCN_FLOAT64: READ(double); break;
    }
}

static rcn_status check_channels(rcn_context *ctx, const rcn_channel *channels, int count) {
    if (!channels || count < 1 || count > RCN_NORMALIZE_CHANNELS)
        return rcn__fail(ctx, RCN_EINVALID, "An image must have 1 to %d channels, not %d.",
                         RCN_NORMALIZE_CHANNELS, count);
    for (int c = 0; c < count; ++c) {
        const char *sentence = rcn_image_check(&channels[c].image);
        if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
        if (channels[c].component < 0 || channels[c].component >= channels[c].image.components)
            return rcn__fail(ctx, RCN_EINVALID, "Channel %d does not exist in its image.", c + 1);
        if (memcmp(channels[c].image.geometry.size, channels[0].image.geometry.size,
                   sizeof channels[0].image.geometry.size))
            return rcn__fail(ctx, RCN_EINVALID, "Channel %d and the first have different sizes.",
                             c + 1);
    }
    return RCN_OK;
}

/* ---- moments --------------------------------------------------------------------------------- */

/* squares: the sum of squared differences from the mean. */
typedef struct moment {
    double count, mean, squares;
} moment;

/* Chan, Golub and LeVeque 1983, eq. 2.1: exact where sums of squares would cancel. */
static void merge_moment(moment *into, const moment *other) {
    const double count = into->count + other->count;
    if (other->count <= 0) return;
    const double delta = other->mean - into->mean;
    into->mean += delta * (other->count / count);
    into->squares += other->squares + delta * delta * (into->count * other->count / count);
    into->count = count;
}

typedef struct moment_pass {
    const rcn_channel *channel;
    int64_t voxels;
    moment *chunks;
} moment_pass;

static void add_chunk(int64_t chunk, int thread, void *payload) {
    const moment_pass *pass = payload;
    int64_t at, end;
    moment sum = {0, 0, 0};
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    for (; at < end; at += BLOCK) {
        double values[BLOCK];
        moment block = {0, 0, 0};
        int64_t kept = 0;
        const int64_t count = end - at < BLOCK ? end - at : BLOCK;
        read_voxels(values, pass->channel, at, count);
        /* NaN fails the comparison; a double beyond float is left out as infinity is. */
        for (int64_t i = 0; i < count; ++i)
            if (fabs(values[i]) <= FLT_MAX) values[kept++] = values[i];
        for (int64_t i = 0; i < kept; ++i) block.mean += values[i];
        if (kept) block.mean /= (double)kept;
        for (int64_t i = 0; i < kept; ++i)
            block.squares += (values[i] - block.mean) * (values[i] - block.mean);
        block.count = (double)kept;
        merge_moment(&sum, &block);
    }
    pass->chunks[chunk] = sum;
}

static rcn_status measure(moment *out, rcn_context *ctx, const rcn_channel *channel) {
    rcn_status status;
    moment_pass pass = {channel, rcn_geometry_voxels(&channel->image.geometry), NULL};
    const int64_t chunks = rcn__chunk_count(pass.voxels, RCN_CHUNK);
    moment sum = {0, 0, 0};
    RCN_ALLOC(pass.chunks, ctx, chunks, "the mean of an image");
    RCN_TRY(rcn__for_chunks(ctx, "measuring the image", chunks, add_chunk, &pass));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) merge_moment(&sum, &pass.chunks[chunk]);
    *out = sum;
done:
    rcn__free(ctx, pass.chunks);
    return status;
}

static void merge_channel(rcn_moments *sum, int channel, const moment *other) {
    moment all = {sum->count[channel], sum->mean[channel], sum->squares[channel]};
    merge_moment(&all, other);
    sum->count[channel] = all.count;
    sum->mean[channel] = all.mean;
    sum->squares[channel] = all.squares;
}

rcn_status rcn_moments_add(rcn_moments *moments, rcn_context *ctx, const rcn_channel *channels,
                           int count) {
    rcn_status status;
    rcn_moments sum;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!moments) return rcn__fail(ctx, RCN_EINVALID, "The moments to add to are NULL.");
    RCN_TRY(check_channels(ctx, channels, count));
    if (moments->channels && moments->channels != count)
        return rcn__fail(ctx, RCN_EINVALID, "The image has %d channels, those before it %d.", count,
                         moments->channels);
    sum = *moments;
    sum.channels = count;
    for (int c = 0; c < count; ++c) {
        moment one;
        RCN_TRY(measure(&one, ctx, &channels[c]));
        merge_channel(&sum, c, &one);
    }
    *moments = sum;
done:
    return status;
}

rcn_status rcn_moments_share(rcn_moments *moments, rcn_context *ctx, rcn_comm *comm) {
    rcn_status status = RCN_OK;
    rcn_moments sum;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!moments) return rcn__fail(ctx, RCN_EINVALID, "The moments to share are NULL.");
    memset(&sum, 0, sizeof sum);
    /* Merging is not associative in floating point: each process merges all of them in the order of
     * ranks, and all have the same bits. */
    for (int r = 0; r < rcn__comm_size(comm); ++r) {
        rcn_moments theirs = *moments;
        RCN_TRY(rcn__comm_broadcast(comm, ctx, &theirs, sizeof theirs, r));
        if (!theirs.channels) continue; /* had no image */
        sum.channels = theirs.channels;
        for (int c = 0; c < theirs.channels; ++c) {
            const moment one = {theirs.count[c], theirs.mean[c], theirs.squares[c]};
            merge_channel(&sum, c, &one);
        }
    }
    *moments = sum;
done:
    return status;
}

/* A deviation below what rounding leaves of a constant is none. */
static double deviation(double count, double mean, double squares) {
    const double value = count > 0 ? sqrt(squares / count) : 0;
    return value > 1e-12 * fabs(mean) && value > DBL_MIN ? value : 0;
}

rcn_status rcn_moments_normalize(rcn_normalize *out, rcn_context *ctx, const rcn_moments *moments) {
    rcn_normalize fixed = RCN_NORMALIZE_INIT;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !moments)
        return rcn__fail(ctx, RCN_EINVALID, "The moments or the output are NULL.");
    if (moments->channels < 1) return rcn__fail(ctx, RCN_EDATA, "No image was given.");
    fixed.kind = RCN_NORMALIZE_FIXED;
    fixed.channels = moments->channels;
    for (int c = 0; c < fixed.channels; ++c) {
        const double spread = deviation(moments->count[c], moments->mean[c], moments->squares[c]);
        fixed.mean[c] = moments->mean[c];
        fixed.std[c] = spread > 0 ? spread : 1; /* constant in all images: they become zeros */
    }
    *out = fixed;
    return RCN_OK;
}

/* ---- percentiles --------------------------------------------------------------------------------
 *
 * A float's bits, with the sign turned round, are a number of 32 bits in the same order. So the
 * voxel of any rank is found by counting the upper 16 bits of all voxels, and then the lower 16 of
 * those that share the upper ones. */

enum { DIGITS = 65536 };

static uint32_t key_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float value_of(uint32_t key) {
    const uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct count_pass {
    const rcn_channel *channel;
    int64_t voxels;
    int64_t upper;   /* -1: count the upper digits; otherwise the lower ones under this */
    int64_t *counts; /* (threads, DIGITS) */
} count_pass;

static void count_chunk(int64_t chunk, int thread, void *payload) {
    const count_pass *pass = payload;
    int64_t *counts = pass->counts + (int64_t)thread * DIGITS, at, end;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    for (; at < end; at += BLOCK) {
        double values[BLOCK];
        const int64_t count = end - at < BLOCK ? end - at : BLOCK;
        read_voxels(values, pass->channel, at, count);
        for (int64_t i = 0; i < count; ++i) {
            if (!(fabs(values[i]) <= FLT_MAX)) continue;
            const uint32_t key = key_of((float)values[i]);
            if (pass->upper < 0)
                ++counts[key >> 16];
            else if (key >> 16 == (uint32_t)pass->upper)
                ++counts[key & 0xffff];
        }
    }
}

/* counts[DIGITS] = of all threads. Whole numbers: their order plays no part. */
static rcn_status count_digits(count_pass *pass, rcn_context *ctx) {
    memset(pass->counts, 0, sizeof *pass->counts * DIGITS * (size_t)rcn_context_threads(ctx));
    const rcn_status status = rcn__for_chunks(
        ctx, "measuring the image", rcn__chunk_count(pass->voxels, RCN_CHUNK), count_chunk, pass);
    for (int thread = 1; thread < rcn_context_threads(ctx); ++thread)
        for (int d = 0; d < DIGITS; ++d) pass->counts[d] += pass->counts[thread * DIGITS + d];
    return status;
}

/* The digit under which the voxel of this rank is; *rank becomes the rank among those. */
static int64_t find_digit(int64_t *rank, const int64_t *counts) {
    int64_t digit = 0;
    while (digit < DIGITS - 1 && *rank >= counts[digit]) *rank -= counts[digit++];
    return digit;
}

/* values[2] = the two percentiles of a channel; both 0 where no voxel is a number. */
static rcn_status find_percentiles(double values[2], rcn_context *ctx, const rcn_channel *channel,
                                   double lower, double upper) {
    rcn_status status;
    const double percent[2] = {lower, upper};
    int64_t rank[2], digit[2], total = 0;
    count_pass pass = {channel, rcn_geometry_voxels(&channel->image.geometry), -1, NULL};
    RCN_ALLOC(pass.counts, ctx, (int64_t)DIGITS * rcn_context_threads(ctx),
              "the percentiles of an image");
    RCN_TRY(count_digits(&pass, ctx));
    for (int d = 0; d < DIGITS; ++d) total += pass.counts[d];
    values[0] = values[1] = 0;
    if (!total) goto done;
    for (int p = 0; p < 2; ++p) {
        rank[p] = (int64_t)floor(percent[p] / 100 * (double)(total - 1) + 0.5);
        digit[p] = find_digit(&rank[p], pass.counts);
    }
    for (int p = 0; p < 2; ++p) {
        /* Both percentiles may have the same upper digits; then one pass serves both. counts[] of
         * the first pass are no longer needed: the digits are found. */
        if (pass.upper != digit[p]) {
            pass.upper = digit[p];
            RCN_TRY(count_digits(&pass, ctx));
        }
        values[p] = value_of((uint32_t)(digit[p] << 16 | find_digit(&rank[p], pass.counts)));
    }
done:
    rcn__free(ctx, pass.counts);
    return status;
}

/* ---- the scale of an image ------------------------------------------------------------------- */

/* Where low becomes -1 and high 1. */
static void set_range(rcn_scale *scale, int channel, double low, double high) {
    scale->shift[channel] = low / 2 + high / 2;
    scale->factor[channel] = high > low ? 2 / (high - low) : 0;
}

rcn_status rcn_normalize_fit(rcn_scale *out, rcn_context *ctx, const rcn_normalize *normalize,
                             const rcn_channel *channels, int count) {
    rcn_status status;
    rcn_scale scale = {0, {0}, {0}, 0, 0};
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out) return rcn__fail(ctx, RCN_EINVALID, "The output scale is NULL.");
    const char *sentence = rcn_normalize_check(normalize);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_TRY(check_channels(ctx, channels, count));
    if (normalize->kind == RCN_NORMALIZE_FIXED && normalize->channels != count)
        return rcn__fail(ctx, RCN_EINVALID,
                         "The image has %d channel%s, but the normalization is for %d.", count,
                         count == 1 ? "" : "s", normalize->channels);
    const int cut =
        normalize->kind == RCN_NORMALIZE_PERCENTILE || normalize->kind == RCN_NORMALIZE_WINDOW;
    scale.channels = count;
    scale.high = cut ? 1 : LARGEST;
    scale.low = -scale.high;
    for (int c = 0; c < count; ++c) {
        double range[2] = {normalize->center - normalize->width / 2,
                           normalize->center + normalize->width / 2};
        moment one = {0, 0, 0};
        double spread;
        switch (normalize->kind) {
        case RCN_NORMALIZE_FIXED:
            scale.shift[c] = normalize->mean[c];
            scale.factor[c] = 1 / normalize->std[c];
            break;
        case RCN_NORMALIZE_ZSCORE:
            RCN_TRY(measure(&one, ctx, &channels[c]));
            spread = deviation(one.count, one.mean, one.squares);
            scale.shift[c] = one.mean;
            scale.factor[c] = spread > 0 ? 1 / spread : 0;
            break;
        case RCN_NORMALIZE_PERCENTILE:
            RCN_TRY(find_percentiles(range, ctx, &channels[c], normalize->lower, normalize->upper));
            set_range(&scale, c, range[0], range[1]);
            break;
        case RCN_NORMALIZE_WINDOW: set_range(&scale, c, range[0], range[1]); break;
        }
    }
    *out = scale;
done:
    return status;
}

/* 0 for what is not finite, also where that arises only here (overflow times 0). */
static float scaled(double value, double shift, double factor, double low, double high) {
    if (!isfinite(value)) return 0;
    value = (value - shift) * factor;
    if (isnan(value)) return 0;
    return (float)(value < low ? low : value > high ? high : value);
}

void rcn__normalize_rows(float *out, const rcn_scale *scale, const rcn_channel *channels, int c,
                         const int64_t first[3], const int64_t size[3], int64_t row, int64_t end) {
    const int64_t *whole = channels[c].image.geometry.size;
    for (; row < end; ++row) {
        const int64_t y = first[1] + row % size[1], z = first[2] + row / size[1];
        const int64_t from = first[0] + whole[0] * (y + whole[1] * z);
        for (int64_t x = 0; x < size[0]; x += BLOCK) {
            double values[BLOCK];
            const int64_t count = size[0] - x < BLOCK ? size[0] - x : BLOCK;
            read_voxels(values, &channels[c], from + x, count);
            for (int64_t i = 0; i < count; ++i)
                *out++ =
                    scaled(values[i], scale->shift[c], scale->factor[c], scale->low, scale->high);
        }
    }
}

void rcn_normalize_box(float *out, const rcn_scale *scale, const rcn_channel *channels,
                       const int64_t first[3], const int64_t size[3]) {
    const int64_t rows = size[1] * size[2];
    for (int c = 0; c < scale->channels; ++c)
        rcn__normalize_rows(out + c * rows * size[0], scale, channels, c, first, size, 0, rows);
}
