// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_context.h"

#include <errno.h>

#include "rcn/rcn_image.h"
#include "rcn_distance.h"
#include "rcn_test.h"

static void options_are_checked(void) {
    rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
    rcn_context *ctx = (rcn_context *)&options;
    CHECK(rcn_context_check(NULL) == NULL);
    CHECK(rcn_context_check(&options) == NULL);
    options.threads = -1;
    CHECK(rcn_context_check(&options) != NULL);
    CHECK_STATUS(rcn_context_create(&ctx, &options), RCN_EINVALID);
    CHECK(ctx == NULL);
    options.threads = 1;
    options.allocator.allocate = test_allocate;
    CHECK(rcn_context_check(&options) != NULL);
    CHECK_STATUS(rcn_context_create(NULL, NULL), RCN_EINVALID);
    rcn_context_destroy(NULL);
    CHECK(!strcmp(rcn_status_name(RCN_EDATA), "RCN_EDATA"));
    CHECK(!strcmp(rcn_status_name(RCN_ESPACE), "RCN_ESPACE"));
    CHECK(!strcmp(rcn_status_name((rcn_status)-99), "unknown status"));
    CHECK_STATUS(rcn_status_of_write(ENOSPC), RCN_ESPACE);
    CHECK_STATUS(rcn_status_of_write(EFBIG), RCN_ESPACE);
    CHECK_STATUS(rcn_status_of_write(EACCES), RCN_EIO);
}

static void no_memory_for_a_context(void) {
    test_memory memory = {0, 0, 1};
    rcn_context_options options = RCN_CONTEXT_OPTIONS_INIT;
    rcn_context *ctx = NULL;
    options.allocator = (rcn_allocator){test_allocate, test_release, &memory};
    CHECK_STATUS(rcn_context_create(&ctx, &options), RCN_ENOMEM);
    CHECK(ctx == NULL && memory.live == 0);
}

static void geometry_is_checked(void) {
    rcn_geometry g = rcn_geometry_make(4, 3, 2);
    CHECK(rcn_geometry_check(&g) == NULL);
    CHECK(rcn_geometry_voxels(&g) == 24);
    CHECK_NEAR(rcn_geometry_voxel_ml(&g), 0.001, 1e-15);
    g.size[1] = 0;
    CHECK(rcn_geometry_check(&g) != NULL);
    g = rcn_geometry_make(INT64_C(1) << 31, INT64_C(1) << 31, 2);
    CHECK(rcn_geometry_check(&g) != NULL);
    g = rcn_geometry_make(4, 3, 2);
    g.spacing[2] = NAN;
    CHECK(rcn_geometry_check(&g) != NULL);
    g = rcn_geometry_make(4, 3, 2);
    g.direction[0] = 0;
    CHECK(rcn_geometry_check(&g) != NULL);
    g = rcn_geometry_make(4, 3, 1);
    CHECK(g.dimension == 2);
    g.size[2] = 2;
    CHECK(rcn_geometry_check(&g) != NULL);
}

static void geometries_are_compared(void) {
    rcn_context *ctx = make_context(1);
    const rcn_geometry a = rcn_geometry_make(100, 50, 20);
    rcn_geometry b = a;
    b.origin[0] += 0.005;
    CHECK_STATUS(rcn_geometry_compare(ctx, &b, "b", &a, "a", RCN_GEOMETRY_TOLERANCE), RCN_OK);
    b.origin[0] += 0.2;
    CHECK_STATUS(rcn_geometry_compare(ctx, &b, "b", &a, "a", RCN_GEOMETRY_TOLERANCE),
                 RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "b has another origin than a: size 100x50x20");
    b = a;
    b.spacing[0] = 1.001; /* small, but a tenth of a voxel at the far end */
    CHECK_STATUS(rcn_geometry_compare(ctx, &b, "b", &a, "a", RCN_GEOMETRY_TOLERANCE),
                 RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "another spacing");
    b = a;
    b.direction[0] = b.direction[4] = -1;
    CHECK_STATUS(rcn_geometry_compare(ctx, &b, "b", &a, "a", RCN_GEOMETRY_TOLERANCE),
                 RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "another direction");
    b = a;
    b.size[2] = 21;
    CHECK_STATUS(rcn_geometry_compare(ctx, &b, "b", &a, "a", RCN_GEOMETRY_TOLERANCE),
                 RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "another size");
    rcn_context_destroy(ctx);
}

static void world_position(void) {
    rcn_geometry g = rcn_geometry_make(10, 10, 10);
    const double index[3] = {1, 2, 3};
    double world[3];
    g.spacing[0] = 2;
    g.origin[1] = 5;
    g.direction[0] = g.direction[4] = 0;
    g.direction[1] = 1; /* y runs along world x */
    g.direction[3] = -1;
    rcn_geometry_to_world(world, &g, index);
    CHECK_NEAR(world[0], 2, 0);
    CHECK_NEAR(world[1], 3, 0);
    CHECK_NEAR(world[2], 3, 0);
}

static void thin_axes(void) {
    static const int64_t sizes[][3] = {{4, 3, 2}, {4, 3, 1}, {4, 1, 2}, {1, 3, 2}, {4, 1, 1}};
    static const int expected[] = {-1, 2, 1, 0, 2};
    for (int i = 0; i < 5; ++i) {
        rcn_geometry g = rcn_geometry_make(sizes[i][0], sizes[i][1], sizes[i][2]);
        g.spacing[0] = 2;
        g.spacing[1] = 3;
        g.spacing[2] = 5;
        const int thin = rcn_geometry_thin_axis(&g);
        CHECK(thin == expected[i]);
        if (thin < 0)
            CHECK(isnan(rcn_geometry_pixel_mm2(&g)));
        else
            CHECK_NEAR(rcn_geometry_pixel_mm2(&g), 30 / g.spacing[thin], 1e-12);
        CHECK_NEAR(rcn_geometry_voxel_ml(&g), 0.03, 1e-15);
        g.unit = RCN_PIXELS;
        CHECK(isnan(rcn_geometry_pixel_mm2(&g)) && isnan(rcn_geometry_voxel_ml(&g)));
    }
}

/* A gantry tilt of 25 degrees: 20 mL of boxes hold 18.13 mL. */
static void sheared_axes(void) {
    const double tilt = 25 * 3.14159265358979323846 / 180;
    rcn_geometry g = rcn_geometry_make(10, 10, 20);
    g.spacing[0] = 0.5;
    g.spacing[1] = 2;
    g.spacing[2] = 10;
    CHECK(!rcn_geometry_is_sheared(&g));
    CHECK_NEAR(2000 * rcn_geometry_voxel_ml(&g), 20, 1e-12);
    g.direction[5] = sin(tilt);
    g.direction[8] = cos(tilt);
    CHECK(rcn_geometry_is_sheared(&g));
    CHECK_NEAR(2000 * rcn_geometry_voxel_ml(&g), 18.126155740733, 1e-9);
    /* Along the second and the third axis by 1: the angle between them is 65 degrees. */
    const double step[3] = {0, 1, 1};
    CHECK_NEAR(rcn__geometry_distance_squared(&g, step), 4 + 100 + 2 * 2 * 10 * sin(tilt), 1e-9);
    const double index[3] = {1.5, -2, 7};
    double world[3], back[3];
    g.origin[1] = 11;
    rcn_geometry_to_world(world, &g, index);
    rcn_geometry_to_index(back, &g, world);
    for (int a = 0; a < 3; ++a) CHECK_NEAR(back[a], index[a], 1e-12);
    g.size[2] = 1; /* within the one slice nothing leans */
    CHECK(!rcn_geometry_is_sheared(&g));
    CHECK_NEAR(rcn_geometry_pixel_mm2(&g), 1, 1e-12);
    g.size[2] = 20;
    g.size[0] = 1;
    CHECK(rcn_geometry_is_sheared(&g));
    CHECK_NEAR(rcn_geometry_pixel_mm2(&g), 20 * cos(tilt), 1e-12);
}

/* Of an image in pixels nothing is known but its size. */
static void pixels_are_compared_by_size(void) {
    rcn_context *ctx = make_context(1);
    rcn_geometry image = rcn_geometry_make(30, 20, 1), picture = image;
    image.spacing[0] = image.spacing[1] = 0.4;
    image.origin[0] = -7;
    CHECK_STATUS(rcn_geometry_compare(ctx, &picture, "p", &image, "i", 0.01), RCN_EGEOMETRY);
    picture.unit = RCN_PIXELS;
    CHECK(rcn_geometry_check(&picture) == NULL);
    CHECK_STATUS(rcn_geometry_compare(ctx, &picture, "p", &image, "i", 0.01), RCN_OK);
    CHECK_STATUS(rcn_geometry_compare(ctx, &image, "i", &picture, "p", 0.01), RCN_OK);
    picture.size[0] = 31;
    CHECK_STATUS(rcn_geometry_compare(ctx, &picture, "p", &image, "i", 0.01), RCN_EGEOMETRY);
    CHECK_ERROR(ctx, "1x1x1 pixels");
    picture.unit = (rcn_unit)2;
    CHECK(rcn_geometry_check(&picture) != NULL);
    rcn_context_destroy(ctx);
}

int main(void) {
    RUN(options_are_checked);
    RUN(no_memory_for_a_context);
    RUN(geometry_is_checked);
    RUN(geometries_are_compared);
    RUN(world_position);
    RUN(thin_axes);
    RUN(sheared_axes);
    RUN(pixels_are_compared_by_size);
    return TEST_RESULT;
}
