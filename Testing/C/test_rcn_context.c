#include "rcn/rcn_context.h"

#include <errno.h>

#include "rcn/rcn_image.h"
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

int main(void) {
    RUN(options_are_checked);
    RUN(no_memory_for_a_context);
    RUN(geometry_is_checked);
    RUN(geometries_are_compared);
    RUN(world_position);
    return TEST_RESULT;
}
