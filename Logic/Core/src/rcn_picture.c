#include "rcn/rcn_picture.h"

#include <math.h>

#include "rcn_votes_private.h"

const char *rcn_palette_name(rcn_palette palette) {
    static const char *const names[RCN_PALETTES] = {"green", "blue", "violet", "gray"};
    return (unsigned)palette < RCN_PALETTES ? names[palette] : NULL;
}

void rcn_color_palette(uint8_t rgb[3], rcn_palette palette, double share) {
    /* Stops at equal distances; brightness rises in about equal steps. */
    static const double stops[RCN_PALETTES][4][3] = {
        {{0, 84, 46}, {38, 143, 66}, {141, 196, 62}, {255, 237, 64}},
        {{16, 42, 110}, {84, 98, 132}, {158, 155, 120}, {255, 226, 70}},
        {{66, 16, 110}, {166, 48, 120}, {238, 118, 92}, {254, 226, 170}},
        {{48, 48, 48}, {112, 112, 112}, {180, 180, 180}, {250, 250, 250}},
    };
    const double(*chosen)[3] = stops[(unsigned)palette < RCN_PALETTES ? palette : 0];
    const double clamped = share > 0 ? (share < 1 ? share : 1) : 0;
    const double position = clamped * 3;
    const int i = position >= 3 ? 2 : (int)position;
    for (int c = 0; c < 3; ++c)
        rgb[c] = (uint8_t)(chosen[i][c] + (position - i) * (chosen[i + 1][c] - chosen[i][c]) + 0.5);
}

void rcn_color_share(uint8_t rgb[3], double share) {
    rcn_color_palette(rgb, RCN_PALETTE_GREEN, share);
}

void rcn_color_rater(uint8_t rgb[3], int rater) {
    static const uint8_t colors[8][3] = {{230, 159, 0},   {86, 180, 233}, {0, 158, 115},
                                         {240, 228, 66},  {0, 114, 178},  {213, 94, 0},
                                         {204, 121, 167}, {153, 153, 153}};
    for (int c = 0; c < 3; ++c) rgb[c] = colors[(rater % 8 + 8) % 8][c];
}

static double element(const rcn_image *image, int64_t voxel) {
    const int64_t i = voxel * image->components;
    switch (image->type) {
    case RCN_UINT8: return ((const uint8_t *)image->data)[i];
    case RCN_INT8: return ((const int8_t *)image->data)[i];
    case RCN_UINT16: return ((const uint16_t *)image->data)[i];
    case RCN_INT16: return ((const int16_t *)image->data)[i];
    case RCN_UINT32: return ((const uint32_t *)image->data)[i];
    case RCN_INT32: return ((const int32_t *)image->data)[i];
    case RCN_UINT64: return (double)((const uint64_t *)image->data)[i];
    case RCN_INT64: return (double)((const int64_t *)image->data)[i];
    case RCN_FLOAT32: return ((const float *)image->data)[i];
    case RCN_FLOAT64: return ((const double *)image->data)[i];
    }
    return 0;
}

static rcn_status check_slice(rcn_context *ctx, const rcn_geometry *geometry, int64_t z) {
    rcn__clear(ctx);
    if (z < 0 || z >= geometry->size[2])
        return rcn__fail(ctx, RCN_EINVALID, "There is no slice %lld among %lld.", (long long)z,
                         (long long)geometry->size[2]);
    return RCN_OK;
}

rcn_status rcn_picture_gray(uint8_t *rgb, rcn_context *ctx, const rcn_image *image, int64_t z) {
    const rcn_status status = check_slice(ctx, &image->geometry, z);
    if (status != RCN_OK) return status;
    const int64_t pixels = image->geometry.size[0] * image->geometry.size[1];
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0, count = 0;
    for (int64_t i = 0; i < pixels; ++i) {
        const double value = element(image, z * pixels + i);
        if (!isfinite(value)) continue;
        low = fmin(low, value);
        high = fmax(high, value);
        sum += value;
        squares += value * value;
        count += 1;
    }
    const double mean = sum / count, deviation = sqrt(fmax(squares / count - mean * mean, 0));
    low = fmax(low, mean - 2.5 * deviation);
    high = fmin(high, mean + 4.0 * deviation);
    const double scale = high > low ? 255 / (high - low) : 0;
    for (int64_t i = 0; i < pixels; ++i) {
        const double value = (element(image, z * pixels + i) - low) * scale;
        const uint8_t gray = value > 0 ? (uint8_t)(value < 255 ? value + 0.5 : 255) : 0;
        for (int c = 0; c < 3; ++c) rgb[3 * i + c] = gray;
    }
    return RCN_OK;
}

rcn_status rcn_picture_overlay(uint8_t *rgb, rcn_context *ctx, const float *map,
                               const rcn_geometry *geometry, int64_t z, double threshold,
                               double opacity) {
    const rcn_status status = check_slice(ctx, geometry, z);
    if (status != RCN_OK) return status;
    const int64_t pixels = geometry->size[0] * geometry->size[1];
    for (int64_t i = 0; i < pixels; ++i) {
        const double share = map[z * pixels + i];
        uint8_t color[3];
        if (!(share >= threshold)) continue;
        rcn_color_share(color, share);
        for (int c = 0; c < 3; ++c)
            rgb[3 * i + c] = (uint8_t)((1 - opacity) * rgb[3 * i + c] + opacity * color[c] + 0.5);
    }
    return RCN_OK;
}

static int is_marked(const rcn_votes *votes, int rater, int64_t x, int64_t y, int64_t z) {
    const int64_t *size = votes->geometry.size;
    uint32_t code;
    if (x < 0 || y < 0 || x >= size[0] || y >= size[1]) return 0;
    rcn__votes_read(&code, votes, x + size[0] * (y + size[1] * z), 1);
    return (int)(votes->patterns[code].marked >> rater & 1);
}

rcn_status rcn_picture_contour(uint8_t *rgb, rcn_context *ctx, const rcn_votes *votes, int rater,
                               int64_t z, const uint8_t color[3]) {
    const rcn_status status = check_slice(ctx, &votes->geometry, z);
    if (status != RCN_OK) return status;
    if (rater < 0 || rater >= votes->raters)
        return rcn__fail(ctx, RCN_EINVALID, "There is no rater %d among %d.", rater + 1,
                         votes->raters);
    for (int64_t y = 0; y < votes->geometry.size[1]; ++y)
        for (int64_t x = 0; x < votes->geometry.size[0]; ++x) {
            if (!is_marked(votes, rater, x, y, z)) continue;
            if (is_marked(votes, rater, x - 1, y, z) && is_marked(votes, rater, x + 1, y, z) &&
                is_marked(votes, rater, x, y - 1, z) && is_marked(votes, rater, x, y + 1, z))
                continue;
            for (int c = 0; c < 3; ++c) rgb[3 * (x + votes->geometry.size[0] * y) + c] = color[c];
        }
    return RCN_OK;
}
