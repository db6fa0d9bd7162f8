// SPDX-License-Identifier: Apache-2.0
/* Slices: how volumes lie before the reader, pixels against their voxels, outlines, windows and
 * volumes. */
#include "rcn/rcn_slice.h"

#include "rcn_test.h"

enum { X = 5, Y = 4, Z = 3, N = X * Y * Z };

static int64_t voxel(int64_t x, int64_t y, int64_t z) { return x + X * (y + Y * z); }

static rcn_geometry turned(const double direction[9]) {
    rcn_geometry geometry = rcn_geometry_make(X, Y, Z);
    memcpy(geometry.direction, direction, sizeof geometry.direction);
    return geometry;
}

static void check_plane(const rcn_geometry *geometry, rcn_view view, int axis, int right,
                        int right_sign, int up, int up_sign, const char *letters) {
    rcn_plane plane;
    char found[16] = "";
    rcn_plane_make(&plane, geometry, view);
    CHECK(plane.axis == axis && plane.right == right && plane.up == up);
    CHECK(plane.right_sign == right_sign && plane.up_sign == up_sign);
    for (int i = 0; i < 4; ++i) strcat(found, plane.letters[i]);
    CHECK(strcmp(found, letters) == 0);
}

static void planes(void) {
    /* ITK's axes: x to the left, y to the back, z to the head */
    const rcn_geometry plain = rcn_geometry_make(X, Y, Z);
    check_plane(&plain, RCN_VIEW_AXIAL, 2, 0, 1, 1, -1, "RLPA");
    check_plane(&plain, RCN_VIEW_CORONAL, 1, 0, 1, 2, 1, "RLIS");
    check_plane(&plain, RCN_VIEW_SAGITTAL, 0, 1, 1, 2, 1, "APIS");
    /* x to the right, y to the front: as NIfTI files come */
    const double flipped[9] = {-1, 0, 0, 0, -1, 0, 0, 0, 1};
    const rcn_geometry ras = turned(flipped);
    check_plane(&ras, RCN_VIEW_AXIAL, 2, 0, -1, 1, 1, "RLPA");
    check_plane(&ras, RCN_VIEW_CORONAL, 1, 0, -1, 2, 1, "RLIS");
    check_plane(&ras, RCN_VIEW_SAGITTAL, 0, 1, -1, 2, 1, "APIS");
    /* sagittal slices: x to the back, y to the feet, z to the right */
    const double sagittal[9] = {0, 0, -1, 1, 0, 0, 0, -1, 0};
    const rcn_geometry slab = turned(sagittal);
    check_plane(&slab, RCN_VIEW_SAGITTAL, 2, 0, 1, 1, -1, "APIS");
    check_plane(&slab, RCN_VIEW_AXIAL, 1, 2, -1, 0, -1, "RLPA");
    check_plane(&slab, RCN_VIEW_CORONAL, 0, 2, -1, 1, -1, "RLIS");
    /* turned by 30 degrees about z: two letters, the nearer one first; 10 degrees: one */
    const double c = 0.8660254037844387, s = 0.5;
    const double oblique[9] = {c, -s, 0, s, c, 0, 0, 0, 1};
    const rcn_geometry thirty = turned(oblique);
    check_plane(&thirty, RCN_VIEW_AXIAL, 2, 0, 1, 1, -1, "RALPPRAL");
    check_plane(&thirty, RCN_VIEW_CORONAL, 1, 0, 1, 2, 1, "RALPIS");
    const double small[9] = {0.985, -0.174, 0, 0.174, 0.985, 0, 0, 0, 1};
    const rcn_geometry ten = turned(small);
    check_plane(&ten, RCN_VIEW_AXIAL, 2, 0, 1, 1, -1, "RLPA");
    /* exactly between two axes: still each axis once */
    const double h = 0.7071067811865476;
    const double half[9] = {h, -h, 0, h, h, 0, 0, 0, 1};
    const rcn_geometry between = turned(half);
    rcn_plane plane;
    rcn_plane_make(&plane, &between, RCN_VIEW_AXIAL);
    CHECK(plane.axis == 2 && plane.right + plane.up == 1);
    /* a picture: as it is, y down, no letters */
    rcn_geometry picture = rcn_geometry_make(X, Y, 1);
    picture.dimension = 2;
    check_plane(&picture, RCN_VIEW_AXIAL, 2, 0, 1, 1, -1, "");
    check_plane(&picture, RCN_VIEW_SAGITTAL, 2, 0, 1, 1, -1, "");
    /* by the axis that is cut: the view that cuts it, whichever that is */
    for (int axis = 0; axis < 3; ++axis) {
        rcn_plane_along(&plane, &slab, axis);
        CHECK(plane.axis == axis && strlen(plane.letters[0]) == 1);
    }
    CHECK(rcn_plane_along(&plane, &slab, 2) == RCN_VIEW_SAGITTAL);
    CHECK(plane.right == 0 && plane.up == 1 && plane.letters[0][0] == 'A');
    CHECK(rcn_plane_along(&plane, &picture, 2) == RCN_VIEW_AXIAL);
    CHECK(plane.right == 0 && plane.up_sign == -1);
}

/* The pixels of a slice, one by one. */
static int64_t pixel_voxel(int axis, int64_t index, int64_t i, int64_t j) {
    return axis == 0 ? voxel(index, i, j) : axis == 1 ? voxel(i, index, j) : voxel(i, j, index);
}

static void pixels(void) {
    static const int64_t sizes[3] = {X, Y, Z};
    rcn_context *ctx = make_context(2);
    int16_t data[2 * N];
    for (int i = 0; i < 2 * N; ++i) data[i] = (int16_t)(i * 7 - 100);
    int16_t second[N];
    for (int i = 0; i < N; ++i) second[i] = data[2 * i + 1];
    const rcn_image image = {data, RCN_INT16, 2, rcn_geometry_make(X, Y, Z)};
    const rcn_image alone = {second, RCN_INT16, 1, rcn_geometry_make(X, Y, Z)};
    for (int axis = 0; axis < 3; ++axis)
        for (int64_t index = 0; index < sizes[axis]; ++index) {
            const rcn_slice slice = {axis, index};
            float values[N];
            uint8_t rgba[4 * N];
            int64_t size[2];
            CHECK(rcn_slice_size(size, &image.geometry, axis) == N / sizes[axis]);
            CHECK(size[0] == sizes[axis == 0] && size[1] == sizes[axis == 2 ? 1 : 2]);
            CHECK_STATUS(rcn_slice_readout(values, ctx, &alone, 0, 0, slice), RCN_OK);
            CHECK_STATUS(rcn_slice_gray(rgba, ctx, &image, 1, slice, 0, 510), RCN_OK);
            for (int64_t j = 0; j < size[1]; ++j)
                for (int64_t i = 0; i < size[0]; ++i) {
                    const int expected = data[2 * pixel_voxel(axis, index, i, j) + 1];
                    const uint8_t *pixel = rgba + 4 * (i + size[0] * j);
                    const double gray = fmin(fmax(expected / 2.0, 0), 255);
                    CHECK_NEAR(values[i + size[0] * j], expected, 0);
                    CHECK_NEAR(pixel[0], gray, 0.51);
                    CHECK(pixel[1] == pixel[0] && pixel[2] == pixel[0] && pixel[3] == 255);
                }
        }
    rcn_context_destroy(ctx);
}

static void colors_and_numbers_that_are_none(void) {
    rcn_context *ctx = make_context(1);
    const uint8_t colors[6] = {10, 20, 30, 250, 128, 0};
    const rcn_image picture = {(void *)colors, RCN_UINT8, 3, rcn_geometry_make(2, 1, 1)};
    uint8_t rgba[8];
    CHECK_STATUS(rcn_slice_rgb(rgba, ctx, &picture, (rcn_slice){2, 0}, 0, 255), RCN_OK);
    const uint8_t expected[8] = {10, 20, 30, 255, 250, 128, 0, 255};
    CHECK(memcmp(rgba, expected, 8) == 0);
    const float odd[4] = {NAN, INFINITY, -INFINITY, 1};
    const rcn_image image = {(void *)odd, RCN_FLOAT32, 1, rcn_geometry_make(4, 1, 1)};
    float values[4];
    CHECK_STATUS(rcn_slice_readout(values, ctx, &image, 0, 0, (rcn_slice){2, 0}), RCN_OK);
    for (int i = 0; i < 4; ++i) CHECK(isfinite(values[i]));
    CHECK(values[0] == 0 && values[3] == 1);
    rcn_context_destroy(ctx);
}

static void bad_arguments(void) {
    rcn_context *ctx = make_context(1);
    float data[2 * N] = {0}, out[N] = {7};
    uint8_t rgba[4 * N] = {7};
    int64_t counts[RCN_SLICE_STEPS + 1] = {7};
    double low = 7, high = 7;
    rcn_image image = {data, RCN_FLOAT32, 2, rcn_geometry_make(X, Y, Z)};
    const rcn_slice first = {2, 0}, axis = {3, 0}, below = {0, -1}, above = {1, Y};
    CHECK_STATUS(rcn_slice_gray(rgba, ctx, &image, 0, first, 0, 1), RCN_OK);
    rgba[0] = 7;
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, 0, 0, axis), RCN_EINVALID);
    CHECK_ERROR(ctx, "must be 0, 1 or 2");
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, 0, 0, below), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, 0, 0, above), RCN_EINVALID);
    CHECK_ERROR(ctx, "Slice 4 does not exist among 4");
    CHECK_STATUS(rcn_slice_gray(rgba, ctx, &image, 2, first, 0, 1), RCN_EINVALID);
    CHECK_ERROR(ctx, "does not have this component");
    CHECK_STATUS(rcn_slice_gray(rgba, ctx, &image, -1, first, 0, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_gray(rgba, ctx, &image, 0, first, 1, 1), RCN_EINVALID);
    CHECK_ERROR(ctx, "Black must be");
    CHECK_STATUS(rcn_slice_gray(rgba, ctx, &image, 0, first, NAN, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_rgb(rgba, ctx, &image, first, 0, 1), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, 9, 0, first), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, RCN_READOUT_AT_LEAST, 2, first), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, RCN_SLICE_LEVEL, 2, first), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_counts(counts, ctx, &image, RCN_SLICE_LEVEL, -1), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_window(&low, &high, ctx, &image, 5), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_contrast(&low, &high, ctx, &image, 0, Z), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_contrast(&low, &high, ctx, &image, 2, 0), RCN_EINVALID);
    image.type = RCN_INT32;
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, RCN_READOUT_MAJORITY, 0, first), RCN_EINVALID);
    CHECK_ERROR(ctx, "float32");
    image.components = 1;
    CHECK_STATUS(rcn_slice_counts(counts, ctx, &image, 0, 0), RCN_EINVALID);
    image.data = NULL;
    CHECK_STATUS(rcn_slice_readout(out, ctx, &image, 0, 0, first), RCN_EINVALID);
    CHECK(out[0] == 7 && rgba[0] == 7 && counts[0] == 7 && low == 7 && high == 7);
    rcn_context_destroy(ctx);
}

static void fill_levels(float *levels, int components) {
    uint32_t s = 5;
    for (int v = 0; v < N; ++v) {
        float sum = 0;
        for (int k = 0; k < components; ++k) {
            s = 1664525u * s + 1013904223u;
            levels[v * components + k] = (float)(s >> 8);
            sum += levels[v * components + k];
        }
        for (int k = 0; k < components; ++k) levels[v * components + k] /= sum;
    }
}

/* A slice of the readout is the readout's slice; the counts are those of the whole map. */
static void readouts(void) {
    rcn_context *ctx = make_context(2);
    float levels[4 * N], map[N], slice_map[N];
    fill_levels(levels, 4);
    const rcn_image image = {levels, RCN_FLOAT32, 4, rcn_geometry_make(X, Y, Z)};
    for (int readout = 0; readout <= RCN_SLICE_LEVEL; ++readout) {
        int64_t counts[RCN_SLICE_STEPS + 1];
        if (readout < RCN_SLICE_LEVEL)
            CHECK_STATUS(rcn_readout_apply(map, ctx, &image, (rcn_readout)readout, 2), RCN_OK);
        else
            for (int v = 0; v < N; ++v) map[v] = levels[4 * v + 2];
        for (int axis = 0; axis < 3; ++axis) {
            const rcn_slice slice = {axis, 2};
            int64_t size[2];
            rcn_slice_size(size, &image.geometry, axis);
            CHECK_STATUS(rcn_slice_readout(slice_map, ctx, &image, readout, 2, slice), RCN_OK);
            for (int64_t j = 0; j < size[1]; ++j)
                for (int64_t i = 0; i < size[0]; ++i)
                    CHECK(slice_map[i + size[0] * j] == map[pixel_voxel(axis, 2, i, j)]);
        }
        CHECK_STATUS(rcn_slice_counts(counts, ctx, &image, readout, 2), RCN_OK);
        for (int i = 0; i <= RCN_SLICE_STEPS; ++i) {
            int64_t expected = 0;
            for (int v = 0; v < N; ++v) expected += map[v] >= (float)i / RCN_SLICE_STEPS;
            CHECK(counts[i] == expected);
        }
    }
    /* a probability is its own readout, whatever is asked for; the steps hit it exactly */
    for (int v = 0; v < N; ++v) map[v] = (float)(v * 10) / 1000;
    const rcn_image probability = {map, RCN_FLOAT32, 1, rcn_geometry_make(X, Y, Z)};
    int64_t counts[RCN_SLICE_STEPS + 1];
    CHECK_STATUS(rcn_slice_readout(slice_map, ctx, &probability, 2, 99, (rcn_slice){2, 1}), RCN_OK);
    CHECK(memcmp(slice_map, map + X * Y, X * Y * sizeof *map) == 0);
    CHECK_STATUS(rcn_slice_counts(counts, ctx, &probability, 0, 0), RCN_OK);
    for (int v = 0; v < N; ++v) CHECK(counts[10 * v] == N - v);
    /* levels that are none show nothing */
    levels[0] = NAN;
    CHECK_STATUS(rcn_slice_readout(slice_map, ctx, &image, 1, 0, (rcn_slice){2, 0}), RCN_OK);
    CHECK(slice_map[0] == 0 && slice_map[1] > 0);
    rcn_context_destroy(ctx);
}

/* One slice, voxel by voxel. */
static rcn_slice_expectation expect_plainly(const float *share, int64_t z) {
    rcn_slice_expectation out = {0, 0, {X, Y}, {0, 0}};
    int any = 0;
    for (int64_t y = 0; y < Y; ++y)
        for (int64_t x = 0; x < X; ++x) {
            const double p = share[voxel(x, y, z)];
            out.expected += p;
            out.unsure += p >= 0.05 && p <= 0.95;
            if (p < 0.05) continue;
            any = 1;
            if (x < out.first[0]) out.first[0] = x;
            if (y < out.first[1]) out.first[1] = y;
            if (x + 1 > out.end[0]) out.end[0] = x + 1;
            if (y + 1 > out.end[1]) out.end[1] = y + 1;
        }
    if (!any) out.first[0] = out.first[1] = 0;
    return out;
}

static void expectations(void) {
    float share[N] = {0}, levels[4 * N], read[N];
    rcn_slice_expectation out[Z], again[Z];
    const rcn_image probability = {share, RCN_FLOAT32, 1, rcn_geometry_make(X, Y, Z)};
    const rcn_image image = {levels, RCN_FLOAT32, 4, rcn_geometry_make(X, Y, Z)};
    rcn_context *ctx = make_context(1), *several = make_context(3);
    /* by hand: slice 1 has a sure, an unsure and a faint voxel, the others nothing */
    share[voxel(1, 1, 1)] = 1;
    share[voxel(3, 2, 1)] = 0.5f;
    share[voxel(4, 3, 1)] = 0.03125f;
    CHECK_STATUS(rcn_slice_expectations(out, ctx, &probability), RCN_OK);
    CHECK(out[1].expected == 1.53125 && out[1].unsure == 1);
    CHECK(out[1].first[0] == 1 && out[1].first[1] == 1 && out[1].end[0] == 4 && out[1].end[1] == 3);
    CHECK(out[0].expected == 0 && out[0].unsure == 0 && out[0].first[0] == 0 && out[0].end[0] == 0);
    /* what is no number counts for nothing, and no voxel for more than one */
    share[voxel(0, 0, 2)] = NAN;
    share[voxel(1, 0, 2)] = 3;
    CHECK_STATUS(rcn_slice_expectations(out, ctx, &probability), RCN_OK);
    CHECK(out[2].expected == 1 && out[2].unsure == 0 && out[2].first[0] == 1);
    /* levels: the expected share of raters; the same bits with three threads */
    fill_levels(levels, 4);
    levels[4 * voxel(2, 2, 0)] = NAN;
    CHECK_STATUS(rcn_slice_expectations(out, ctx, &image), RCN_OK);
    CHECK_STATUS(rcn_slice_expectations(again, several, &image), RCN_OK);
    for (int64_t z = 0; z < Z; ++z) {
        CHECK_STATUS(rcn_slice_readout(read + X * Y * z, ctx, &image, RCN_READOUT_EXPECTED, 0,
                                       (rcn_slice){2, z}),
                     RCN_OK);
        const rcn_slice_expectation plain = expect_plainly(read, z);
        CHECK(memcmp(&out[z], &plain, sizeof plain) == 0);
    }
    CHECK(memcmp(out, again, sizeof out) == 0);
    /* on failure nothing is written */
    const rcn_image whole = {share, RCN_INT32, 1, rcn_geometry_make(X, Y, Z)};
    const rcn_image none = {NULL, RCN_FLOAT32, 1, rcn_geometry_make(X, Y, Z)};
    CHECK_STATUS(rcn_slice_expectations(out, ctx, &whole), RCN_EINVALID);
    CHECK_ERROR(ctx, "float32");
    CHECK_STATUS(rcn_slice_expectations(out, ctx, &none), RCN_EINVALID);
    CHECK(memcmp(out, again, sizeof out) == 0);
    rcn_context_destroy(ctx);
    rcn_context_destroy(several);
}

static rcn_votes *golden_votes(rcn_context *ctx, uint8_t raters[4][GOLDEN_VOXELS]) {
    rcn_mask masks[4];
    rcn_votes *votes = NULL;
    memset(masks, 0, sizeof masks);
    make_golden(raters);
    for (int r = 0; r < 4; ++r)
        masks[r].image = (rcn_image){raters[r], RCN_UINT8, 1, rcn_geometry_make(8, 8, 8)};
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 4), RCN_OK);
    return votes;
}

typedef struct sketch {
    int ends[4][2 * 9 * 2 * 9]; /* pieces that end in a point, at half pixels */
} sketch;

static void draw(int rater, const float segment[4], void *payload) {
    sketch *into = payload;
    for (int end = 0; end < 2; ++end) {
        const int x = (int)(2 * segment[2 * end] + 1.5f),
                  y = (int)(2 * segment[2 * end + 1] + 1.5f);
        CHECK(x >= 0 && x < 18 && y >= 0 && y < 18);
        ++into->ends[rater][x + 18 * y];
    }
}

/* Votes of a slice against the masks; each point of an outline has an even number of pieces, so
 * that every outline is closed; and it separates what is marked from what is not. */
static void votes_and_outlines(void) {
    rcn_context *ctx = make_context(1);
    static uint8_t raters[4][GOLDEN_VOXELS];
    rcn_votes *votes = golden_votes(ctx, raters);
    const int64_t size[2] = {8, 8};
    for (int axis = 0; axis < 3; ++axis) {
        uint32_t codes[64];
        static sketch drawn;
        memset(&drawn, 0, sizeof drawn);
        CHECK_STATUS(rcn_slice_codes(codes, ctx, votes, (rcn_slice){axis, 3}), RCN_OK);
        rcn_slice_outlines(votes, codes, size, 0xB, draw, &drawn); /* all but rater 2 */
        for (int r = 0; r < 4; ++r)
            for (int j = 0; j < 8; ++j)
                for (int i = 0; i < 8; ++i) {
                    const int place[3][3] = {{3, i, j}, {i, 3, j}, {i, j, 3}};
                    const int *at = place[axis];
                    const int marked = raters[r][at[0] + 8 * (at[1] + 8 * at[2])];
                    const uint64_t pattern = rcn_votes_patterns(votes)[codes[i + 8 * j]].marked;
                    CHECK((int)(pattern >> r & 1) == marked);
                }
        for (int r = 0; r < 4; ++r)
            for (int p = 0; p < 18 * 18; ++p) {
                CHECK(drawn.ends[r][p] == 0 || (r != 2 && drawn.ends[r][p] == 2));
                if (drawn.ends[r][p] == 0) continue;
                /* an end lies between two pixels, of which one is marked */
                const int x = p % 18 - 1, y = p / 18 - 1; /* in half pixels */
                const int dx = x & 1, dy = y & 1;
                CHECK(dx != dy);
                const int i[2] = {(x - dx) / 2, (x + dx) / 2}, j[2] = {(y - dy) / 2, (y + dy) / 2};
                int marks = 0;
                for (int e = 0; e < 2; ++e)
                    if (i[e] >= 0 && j[e] >= 0 && i[e] < 8 && j[e] < 8)
                        marks +=
                            (int)(rcn_votes_patterns(votes)[codes[i[e] + 8 * j[e]]].marked >> r &
                                  1);
                CHECK(marks == 1);
            }
    }
    CHECK_STATUS(rcn_slice_codes(NULL, ctx, votes, (rcn_slice){0, 8}), RCN_EINVALID);
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void painting(void) {
    /* over nothing: the color itself; over something: mixed by opacity; clear: untouched */
    const uint32_t codes[4] = {0, 1, 2, 1};
    const uint8_t colors[12] = {9, 9, 9, 0, 200, 100, 0, 128, 0, 0, 255, 255};
    uint8_t rgba[16] = {0};
    rgba[12] = rgba[13] = rgba[14] = 100;
    rgba[15] = 255;
    rcn_slice_paint_codes(rgba, codes, 4, colors);
    const uint8_t expected[16] = {0, 0, 0, 0, 200, 100, 0, 128, 0, 0, 255, 255, 150, 100, 50, 255};
    for (int i = 0; i < 16; ++i) CHECK_NEAR(rgba[i], expected[i], 1);
    /* two half clear layers: three quarters */
    uint8_t half[4] = {0, 0, 0, 0};
    const uint32_t one = 1;
    rcn_slice_paint_codes(half, &one, 1, colors);
    rcn_slice_paint_codes(half, &one, 1, colors);
    CHECK_NEAR(half[3], 191, 1);
    CHECK_NEAR(half[0], 200, 1);
    /* values: the range is closed on both sides, and what is not a number stays clear */
    uint8_t table[1024], map[24] = {0};
    const float values[6] = {0.25f, 0.2f, 0.75f, 0.76f, NAN, 0.5f};
    for (int i = 0; i < 256; ++i)
        for (int c = 0; c < 4; ++c) table[4 * i + c] = c == 3 ? 255 : (uint8_t)i;
    rcn_slice_paint_values(map, values, 6, 0.25, 0.75, table);
    CHECK(map[3] == 255 && map[0] == 64 && map[7] == 0 && map[11] == 255 && map[8] == 191);
    CHECK(map[15] == 0 && map[19] == 0 && map[23] == 255 && map[20] == 128);
}

/* What pixel (column, row) of a screen should show of channel `shift` of an image. */
static double expected_pixel(const uint8_t *image, const rcn_slice_place *lies, int64_t column,
                             int64_t row, int channel) {
    const double at[2] = {lies->first[0] + lies->step[0] * (double)column,
                          lies->first[1] + lies->step[1] * (double)row};
    double inside[2], sum = 0;
    for (int a = 0; a < 2; ++a) {
        const int axis = lies->transposed ? 1 - a : a;
        const double last = (double)(lies->size[axis] - 1);
        if (at[a] < -0.5 || at[a] >= last + 0.5) return -1;
        inside[axis] = fmin(fmax(at[a], 0), last);
    }
    for (int64_t j = 0; j < lies->size[1]; ++j)
        for (int64_t i = 0; i < lies->size[0]; ++i) {
            const double wx = 1 - fabs((double)i - inside[0]), wy = 1 - fabs((double)j - inside[1]);
            if (wx > 0 && wy > 0) sum += wx * wy * image[4 * (i + lies->size[0] * j) + channel];
        }
    return sum;
}

static void drawing(void) {
    enum { COLUMNS = 23, ROWS = 17 };
    rcn_context *one = make_context(1), *many = make_context(4);
    uint8_t image[4 * X * Y], layer[4 * X * Y];
    uint32_t pixels[COLUMNS * ROWS], again[COLUMNS * ROWS];
    uint32_t s = 3;
    for (int i = 0; i < 4 * X * Y; ++i) {
        s = 1664525u * s + 1013904223u;
        image[i] = (uint8_t)(s >> 24);
        layer[i] = i % 4 == 3 ? (i / 4 % 3 == 0 ? 255 : 0) : (uint8_t)(s >> 16);
    }
    for (int variant = 0; variant < 8; ++variant) {
        const int transposed = variant & 1;
        const double sx = variant & 2 ? -0.3 : 0.27, sy = variant & 4 ? -0.41 : 0.33;
        const double size[2] = {transposed ? Y : X, transposed ? X : Y};
        rcn_slice_place lies = {{X, Y}, transposed, {0, 0}, {sx, sy}};
        lies.first[0] = sx > 0 ? -1.03 : size[0] + 0.21;
        lies.first[1] = sy > 0 ? -1.01 : size[1] + 0.07;
        const rcn_screen screen = {pixels, COLUMNS, ROWS}, twin = {again, COLUMNS, ROWS};
        CHECK_STATUS(rcn_slice_draw(&screen, one, image, NULL, &lies), RCN_OK);
        CHECK_STATUS(rcn_slice_draw(&twin, many, image, NULL, &lies), RCN_OK);
        CHECK(memcmp(pixels, again, sizeof pixels) == 0);
        int seen = 0;
        for (int64_t i = 0; i < COLUMNS * ROWS; ++i)
            for (int c = 0; c < 3; ++c) {
                const double expected = expected_pixel(image, &lies, i % COLUMNS, i / COLUMNS, c);
                CHECK_NEAR(pixels[i] >> (16 - 8 * c) & 255, fmax(expected, 0), 3.5);
                CHECK(pixels[i] >> 24 == 255);
                seen += expected >= 0;
            }
        CHECK(seen > 100 && seen < 3 * COLUMNS * ROWS); /* both inside and outside are tested */
        /* the layer: each voxel's own color where it is opaque, the image where it is clear */
        CHECK_STATUS(rcn_slice_draw(&screen, many, image, layer, &lies), RCN_OK);
        for (int64_t i = 0; i < COLUMNS * ROWS; ++i) {
            int64_t near[2];
            int inside = 1;
            for (int a = 0; a < 2; ++a) {
                const double at =
                    lies.first[a] + lies.step[a] * (double)(a ? i / COLUMNS : i % COLUMNS);
                near[a] = (int64_t)floor(at + 0.5);
                inside &= near[a] >= 0 && near[a] < (int64_t)size[a];
            }
            if (!inside) {
                CHECK(pixels[i] == 0xFF000000);
                continue;
            }
            const uint8_t *color =
                layer + 4 * (transposed ? near[1] + X * near[0] : near[0] + X * near[1]);
            if (color[3] == 255)
                CHECK(pixels[i] ==
                      (0xFF000000 | (uint32_t)color[0] << 16 | (uint32_t)color[1] << 8 | color[2]));
            else
                CHECK(pixels[i] == again[i]);
        }
        /* without an image the layer lies over black */
        CHECK_STATUS(rcn_slice_draw(&screen, one, NULL, NULL, &lies), RCN_OK);
        for (int64_t i = 0; i < COLUMNS * ROWS; ++i) CHECK(pixels[i] == 0xFF000000);
    }
    const rcn_slice_place nowhere = {{0, Y}, 0, {0, 0}, {1, 1}},
                          far = {{X, Y}, 0, {NAN, 1e300}, {1, 1}};
    const rcn_screen screen = {pixels, COLUMNS, ROWS}, none = {NULL, COLUMNS, ROWS};
    CHECK_STATUS(rcn_slice_draw(&screen, one, image, NULL, &nowhere), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_draw(&none, one, image, NULL, &far), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_draw(&screen, one, image, layer, &far), RCN_OK);
    for (int64_t i = 0; i < COLUMNS * ROWS; ++i) CHECK(pixels[i] == 0xFF000000);
    rcn_context_destroy(many);
    rcn_context_destroy(one);
}

static void lines(void) {
    enum { SIDE = 20 };
    const uint8_t white[3] = {255, 255, 255};
    static uint32_t pixels[SIDE * SIDE];
    const rcn_screen screen = {pixels, SIDE, SIDE};
    for (int i = 0; i < SIDE * SIDE; ++i) pixels[i] = 0xFF000000;
    /* three pixels wide: its middle and both sides are full, the next ones clear */
    const double from[2] = {5, 10}, to[2] = {12, 10};
    rcn_screen_line(&screen, from, to, 3, white);
    for (int x = 5; x <= 12; ++x) {
        for (int y = 9; y <= 11; ++y) CHECK(pixels[x + SIDE * y] == 0xFFFFFFFF);
        CHECK(pixels[x + SIDE * 8] == 0xFF000000 && pixels[x + SIDE * 12] == 0xFF000000);
    }
    CHECK(pixels[2 + SIDE * 10] == 0xFF000000 && pixels[15 + SIDE * 10] == 0xFF000000);
    /* between two rows: half of each */
    const double left[2] = {4, 3.5}, right[2] = {14, 3.5};
    rcn_screen_line(&screen, left, right, 1, white);
    CHECK_NEAR(pixels[8 + SIDE * 3] & 255, 127, 1);
    CHECK_NEAR(pixels[8 + SIDE * 4] & 255, 127, 1);
    /* the ink of a slanted line is its length times its width, ends apart */
    double ink = 0;
    for (int i = 0; i < SIDE * SIDE; ++i) pixels[i] = 0xFF000000;
    const double low[2] = {4, 4}, high[2] = {15, 10};
    rcn_screen_line(&screen, low, high, 2, white);
    for (int i = 0; i < SIDE * SIDE; ++i) ink += (pixels[i] & 255) / 255.0;
    CHECK_NEAR(ink, 2 * sqrt(11 * 11 + 6 * 6) + 3.14159265, 0.6);
    /* outside, or no numbers: nothing happens */
    const double out[2] = {-50, -60}, none[2] = {NAN, 3}, huge[2] = {1e300, 1e300};
    rcn_screen_line(&screen, out, out, 4, white);
    rcn_screen_line(&screen, none, high, 4, white);
    rcn_screen_line(&screen, huge, huge, 4, white);
    double after = 0;
    for (int i = 0; i < SIDE * SIDE; ++i) after += (pixels[i] & 255) / 255.0;
    CHECK_NEAR(after, ink, 0);
    /* a line that comes from outside is on the screen where it should be */
    const double before[2] = {-30, 1}, end[2] = {3, 1};
    rcn_screen_line(&screen, before, end, 1, white);
    CHECK(pixels[SIDE] == 0xFFFFFFFF && pixels[3 + SIDE] == 0xFFFFFFFF);
    CHECK(pixels[6 + SIDE] == 0xFF000000);
}

static void windows(void) {
    rcn_context *ctx = make_context(2);
    double low = 0, high = 0;
    enum { SIDE = 40 };
    static float data[SIDE * SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE * SIDE; ++i) data[i] = (float)(i % 1000);
    data[SIDE * SIDE * SIDE / 2] = 1e6f; /* one bright voxel must not make all others black */
    rcn_image image = {data, RCN_FLOAT32, 1, rcn_geometry_make(SIDE, SIDE, SIDE)};
    CHECK_STATUS(rcn_slice_window(&low, &high, ctx, &image, 0), RCN_OK);
    CHECK_NEAR(low, 5, 5);
    CHECK_NEAR(high, 994, 5);
    for (int i = 0; i < SIDE * SIDE * SIDE; ++i) data[i] = -3;
    CHECK_STATUS(rcn_slice_window(&low, &high, ctx, &image, 0), RCN_OK);
    CHECK_NEAR(low, -3.5, 1e-6);
    CHECK_NEAR(high, -2.5, 1e-6);
    rcn_context_destroy(ctx);
}

/* Of one slice: its smallest and largest value, or so many deviations from the mean. */
static void contrast(void) {
    enum { SIDE = 20, PIXELS = SIDE * SIDE };
    static int16_t data[2 * 2 * PIXELS]; /* two components, two slices */
    static float odd[PIXELS];
    double low = 0, high = 0, mean = 0, squares = 0;
    rcn_context *ctx = make_context(2);
    const rcn_image image = {data, RCN_INT16, 2, rcn_geometry_make(SIDE, SIDE, 2)};
    for (int i = 0; i < PIXELS; ++i) data[2 * (PIXELS + i) + 1] = (int16_t)(i % 12);
    CHECK_STATUS(rcn_slice_contrast(&low, &high, ctx, &image, 1, 1), RCN_OK);
    CHECK_NEAR(low, 0, 1e-5);
    CHECK_NEAR(high, 11, 1e-5);
    CHECK_STATUS(rcn_slice_contrast(&low, &high, ctx, &image, 1, 0), RCN_OK); /* constant */
    CHECK(low == 0 && high == 1);
    data[2 * PIXELS + 1] = 30000; /* one bright and one dark pixel do not spoil the others */
    data[2 * PIXELS + 3] = -30000;
    CHECK_STATUS(rcn_slice_contrast(&low, &high, ctx, &image, 1, 1), RCN_OK);
    for (int i = 0; i < PIXELS; ++i) mean += data[2 * (PIXELS + i) + 1] / (double)PIXELS;
    for (int i = 0; i < PIXELS; ++i) squares += pow(data[2 * (PIXELS + i) + 1] - mean, 2);
    CHECK_NEAR(low, mean - 2.5 * sqrt(squares / PIXELS), 0.01);
    CHECK_NEAR(high, mean + 4 * sqrt(squares / PIXELS), 0.01);
    for (int i = 0; i < PIXELS; ++i) odd[i] = i % 2 ? NAN : (float)(1000 + i % 10);
    const rcn_image holes = {odd, RCN_FLOAT32, 1, rcn_geometry_make(SIDE, SIDE, 1)};
    CHECK_STATUS(rcn_slice_contrast(&low, &high, ctx, &holes, 0, 0), RCN_OK);
    CHECK_NEAR(low, 1000, 1e-3);
    CHECK_NEAR(high, 1008, 1e-3);
    rcn_context_destroy(ctx);
}

static void expanding(void) {
    const rcn_geometry geometry = rcn_geometry_make(3, 2, 2);
    uint8_t marks[2][12] = {{0}};
    float out[6] = {7};
    rcn_context *ctx = make_context(1);
    marks[0][7] = marks[1][7] = marks[1][8] = 1;
    rcn_mask masks[2] = {{{marks[0], RCN_UINT8, 1, geometry}, 0, NULL, 0, NULL},
                         {{marks[1], RCN_UINT8, 1, geometry}, 0, NULL, 0, NULL}};
    rcn_votes *votes = NULL;
    CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, 2), RCN_OK);
    const float table[4] = {0, 10, 20, 30};
    CHECK_STATUS(rcn_slice_expand(out, ctx, votes, table, (rcn_slice){2, -1}), RCN_EINVALID);
    CHECK_STATUS(rcn_slice_expand(out, ctx, votes, table, (rcn_slice){3, 0}), RCN_EINVALID);
    CHECK(out[0] == 7);
    CHECK_STATUS(rcn_slice_expand(out, ctx, votes, table, (rcn_slice){2, 1}), RCN_OK);
    for (int i = 0; i < 6; ++i) CHECK(out[i] == (i == 1 ? 30 : i == 2 ? 20 : 0));
    CHECK_STATUS(rcn_slice_expand(out, ctx, votes, table, (rcn_slice){0, 2}), RCN_OK);
    for (int i = 0; i < 4; ++i) CHECK(out[i] == (i == 2 ? 20 : 0));
    rcn_votes_destroy(votes);
    rcn_context_destroy(ctx);
}

static void fitting(void) {
    uint8_t rgba[4 * 24], out[3 * 24];
    for (int i = 0; i < 24; ++i)
        for (int c = 0; c < 4; ++c) rgba[4 * i + c] = (uint8_t)(10 * (i % 6) + i / 6);
    rcn_slice_part part = {6, {2, 1}, {6, 3}, {0, 0}, 0};
    rcn_slice_fit(out, 4, 2, rgba, &part); /* cut only */
    CHECK(out[0] == 21 && out[3 * 3] == 51 && out[3 * 4] == 22 && out[3 * 7 + 2] == 52);
    rcn_slice_fit(out, 2, 1, rgba, &part); /* means of 2 x 2 */
    CHECK(out[0] == (21 + 31 + 22 + 32 + 2) / 4 && out[3] == (41 + 51 + 42 + 52 + 2) / 4);
    rcn_slice_fit(out, 8, 2, rgba, &part); /* every pixel twice */
    CHECK(out[0] == 21 && out[3] == 21 && out[6] == 31);
    part.flip[0] = part.flip[1] = 1;
    rcn_slice_fit(out, 4, 2, rgba, &part);
    CHECK(out[0] == 52 && out[3 * 3] == 22 && out[3 * 4] == 51 && out[3 * 7] == 21);
    part.transposed = 1; /* y across, x down, both still from their ends */
    rcn_slice_fit(out, 2, 4, rgba, &part);
    CHECK(out[0] == 52 && out[3] == 51 && out[3 * 2] == 42 && out[3 * 7] == 21);
}

static rcn_status use_memory(rcn_context *ctx, void *payload) {
    static float data[N];
    const rcn_image image = {data, RCN_FLOAT32, 1, rcn_geometry_make(X, Y, Z)};
    int64_t counts[RCN_SLICE_STEPS + 1];
    uint8_t rgba[4 * N];
    double low, high;
    rcn_status status = rcn_slice_window(&low, &high, ctx, &image, 0);
    (void)payload;
    if (status == RCN_OK)
        status = rcn_slice_gray(rgba, ctx, &image, 0, (rcn_slice){1, 1}, low, high);
    if (status == RCN_OK) status = rcn_slice_contrast(&low, &high, ctx, &image, 0, 1);
    if (status == RCN_OK) status = rcn_slice_counts(counts, ctx, &image, 0, 0);
    if (status == RCN_OK) {
        rcn_slice_expectation slices[Z];
        status = rcn_slice_expectations(slices, ctx, &image);
    }
    if (status == RCN_OK) {
        uint32_t pixels[100];
        const rcn_screen screen = {pixels, 10, 10};
        const rcn_slice_place lies = {{X, Z}, 1, {0, 0}, {1, 1}};
        status = rcn_slice_draw(&screen, ctx, rgba, rgba, &lies);
    }
    return status;
}

static rcn_status count_volumes(rcn_context *ctx, void *payload) {
    int64_t counts[RCN_SLICE_STEPS + 1];
    return rcn_slice_counts(counts, ctx, payload, 0, 0);
}

static rcn_status expect_slices(rcn_context *ctx, void *payload) {
    rcn_slice_expectation slices[64];
    return rcn_slice_expectations(slices, ctx, payload);
}

static void failing_and_canceling(void) {
    enum { SIDE = 64 };
    float *data = calloc(SIDE * SIDE * SIDE, sizeof *data);
    rcn_image image = {data, RCN_FLOAT32, 1, rcn_geometry_make(SIDE, SIDE, SIDE)};
    check_failing_allocations(use_memory, NULL);
    check_cancelling(count_volumes, &image, 1);
    check_cancelling(expect_slices, &image, 1);
    free(data);
}

int main(void) {
    RUN(planes);
    RUN(pixels);
    RUN(colors_and_numbers_that_are_none);
    RUN(bad_arguments);
    RUN(readouts);
    RUN(expectations);
    RUN(votes_and_outlines);
    RUN(painting);
    RUN(drawing);
    RUN(lines);
    RUN(windows);
    RUN(contrast);
    RUN(expanding);
    RUN(fitting);
    RUN(failing_and_canceling);
    return TEST_RESULT;
}
