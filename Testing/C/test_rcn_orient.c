// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_orient.h"

#include "rcn_test.h"

enum { X = 7, Y = 5, Z = 3, N = X * Y * Z };

/* A geometry that is nowhere symmetric. */
static rcn_geometry place(void) {
    rcn_geometry geometry = rcn_geometry_make(X, Y, Z);
    const double direction[9] = {0.96, -0.28, 0, 0.28, 0.96, 0, 0, 0, 1};
    memcpy(geometry.direction, direction, sizeof direction);
    for (int a = 0; a < 3; ++a) {
        geometry.spacing[a] = 0.5 + a;
        geometry.origin[a] = 10 * a - 3;
    }
    return geometry;
}

/* Order number 0 ... 47: six ways to swap, eight to reverse. */
static rcn_order order_number(int number) {
    static const int ways[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    rcn_order order;
    for (int a = 0; a < 3; ++a) {
        order.from[a] = ways[number / 8][a];
        order.flip[a] = number >> a & 1;
    }
    return order;
}

static int64_t voxel_number(const int64_t size[3], const int64_t at[3]) {
    return at[0] + size[0] * (at[1] + size[1] * at[2]);
}

/* Every order, every width of a voxel: each voxel keeps its value and its place in the world. */
static void voxels_keep_value_and_place(void) {
    static const struct {
        rcn_type type;
        int components;
    } kinds[] = {{RCN_UINT8, 1},   {RCN_INT16, 1}, {RCN_FLOAT32, 1},
                 {RCN_FLOAT64, 1}, {RCN_UINT8, 3}, {RCN_FLOAT32, 4}};
    rcn_context *ctx = make_context(2);
    const rcn_geometry geometry = place();
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) {
        const size_t bytes = rcn_type_size(kinds[kind].type) * (size_t)kinds[kind].components;
        unsigned char *in = malloc(N * bytes), *out = malloc(N * bytes), *back = malloc(N * bytes);
        for (size_t i = 0; i < N * bytes; ++i) in[i] = (unsigned char)(i * 37 + i / 251);
        for (int number = 0; number < 48; ++number) {
            const rcn_order order = order_number(number), undo = rcn_order_inverse(&order);
            const rcn_geometry turned = rcn_geometry_reorder(&geometry, &order);
            const rcn_image image = {in, kinds[kind].type, kinds[kind].components, geometry};
            const rcn_image other = {out, kinds[kind].type, kinds[kind].components, turned};
            int64_t at[3], old[3];
            CHECK(rcn_order_is_identity(&order) == (number == 0));
            CHECK(rcn_geometry_check(&turned) == NULL);
            CHECK_STATUS(rcn_image_reorder(out, ctx, &image, &order), RCN_OK);
            for (at[2] = 0; at[2] < turned.size[2]; ++at[2])
                for (at[1] = 0; at[1] < turned.size[1]; ++at[1])
                    for (at[0] = 0; at[0] < turned.size[0]; ++at[0]) {
                        double here[3], there[3], world[3], old_world[3];
                        for (int a = 0; a < 3; ++a)
                            old[order.from[a]] = order.flip[a] ? turned.size[a] - 1 - at[a] : at[a];
                        for (int a = 0; a < 3; ++a) {
                            here[a] = (double)at[a];
                            there[a] = (double)old[a];
                        }
                        rcn_geometry_to_world(world, &turned, here);
                        rcn_geometry_to_world(old_world, &geometry, there);
                        for (int a = 0; a < 3; ++a) CHECK_NEAR(world[a], old_world[a], 1e-12);
                        CHECK(!memcmp(out + (size_t)voxel_number(turned.size, at) * bytes,
                                      in + (size_t)voxel_number(geometry.size, old) * bytes,
                                      bytes));
                    }
            CHECK_STATUS(rcn_image_reorder(back, ctx, &other, &undo), RCN_OK);
            CHECK(!memcmp(in, back, N * bytes));
            const rcn_geometry again = rcn_geometry_reorder(&turned, &undo);
            CHECK_STATUS(rcn_geometry_compare(ctx, &again, "a", &geometry, "b", 1e-9), RCN_OK);
        }
        free(in);
        free(out);
        free(back);
    }
    rcn_context_destroy(ctx);
}

static void axes_have_names(void) {
    char axes[4];
    rcn_geometry geometry = rcn_geometry_make(X, Y, Z);
    rcn_axes_of(axes, &geometry);
    CHECK(!strcmp(axes, "LPS"));
    const double coronal[9] = {-1, 0, 0, 0, 0, 1, 0, -1, 0}; /* to the right, down, back */
    memcpy(geometry.direction, coronal, sizeof coronal);
    rcn_axes_of(axes, &geometry);
    CHECK(!strcmp(axes, "RIP"));
    geometry = place(); /* 16 degrees */
    rcn_axes_of(axes, &geometry);
    CHECK(!strcmp(axes, "LPS"));
    geometry = rcn_geometry_make(1, Y, Z); /* a slice across x */
    rcn_axes_of(axes, &geometry);
    CHECK(!strcmp(axes, "PSL"));
    geometry = rcn_geometry_make(X, Y, 1);
    rcn_axes_of(axes, &geometry);
    CHECK(!strcmp(axes, "")); /* 2-D: a picture */
    geometry.dimension = 3;
    rcn_axes_of(axes, &geometry);
    CHECK(!strcmp(axes, "LPS"));
    geometry = rcn_geometry_make(X, Y, Z); /* a stack of pictures */
    geometry.unit = RCN_PIXELS;
    rcn_axes_of(axes, &geometry);
    const rcn_order stay = rcn_order_to("SAR", &geometry, 0);
    CHECK(!strcmp(axes, "") && rcn_order_is_identity(&stay));
    CHECK(rcn_axes_check("LPS") && rcn_axes_check("IAR") && rcn_axes_check("PSL"));
    CHECK(!rcn_axes_check("LPL") && !rcn_axes_check("LR") && !rcn_axes_check("LPSS"));
    CHECK(!rcn_axes_check("lps") && !rcn_axes_check("") && !rcn_axes_check(NULL));
}

/* However a volume is stored, it comes to the same axes: size, origin and direction. Oblique ones
 * too, also where two sides are equally close. */
static void all_come_to_the_same_axes(void) {
    const double slant = sqrt(0.5);
    const double directions[3][9] = {{1, 0, 0, 0, 1, 0, 0, 0, 1},
                                     {0.96, -0.28, 0, 0.28, 0.96, 0, 0, 0, 1},
                                     {slant, -slant, 0, slant, slant, 0, 0, 0, 1}};
    rcn_context *ctx = make_context(1);
    for (int d = 0; d < 3; ++d) {
        rcn_geometry geometry = place();
        memcpy(geometry.direction, directions[d], sizeof geometry.direction);
        const rcn_order first = rcn_order_to("SRA", &geometry, 0);
        const rcn_geometry wanted = rcn_geometry_reorder(&geometry, &first);
        char axes[4];
        rcn_axes_of(axes, &wanted);
        CHECK(!strcmp(axes, "SRA"));
        for (int number = 0; number < 48; ++number) {
            const rcn_order order = order_number(number);
            const rcn_geometry stored = rcn_geometry_reorder(&geometry, &order);
            const rcn_order to = rcn_order_to("SRA", &stored, 0);
            const rcn_geometry found = rcn_geometry_reorder(&stored, &to);
            CHECK_STATUS(rcn_geometry_compare(ctx, &found, "a", &wanted, "b", 1e-9), RCN_OK);
        }
    }
    rcn_context_destroy(ctx);
}

static void slices_stay_slices(void) {
    rcn_geometry geometry = rcn_geometry_make(1, Y, Z);
    rcn_order order = rcn_order_to("LPS", &geometry, 1);
    rcn_geometry turned = rcn_geometry_reorder(&geometry, &order);
    CHECK(turned.size[0] == Y && turned.size[1] == Z && turned.size[2] == 1);
    order = rcn_order_to("LPS", &geometry, 0);
    CHECK(rcn_order_is_identity(&order));
    order = rcn_order_to("PSL", &geometry, 1);
    turned = rcn_geometry_reorder(&geometry, &order);
    CHECK(turned.size[0] == Y && turned.size[1] == Z && turned.size[2] == 1);
    geometry = rcn_geometry_make(X, Y, 1); /* 2-D: nobody knows where it lies */
    order = rcn_order_to("SAR", &geometry, 1);
    CHECK(rcn_order_is_identity(&order));
    geometry = rcn_geometry_make(X, Y, Z);
    order = rcn_order_to("", &geometry, 1);
    CHECK(rcn_order_is_identity(&order));
    order = rcn_order_to(NULL, &geometry, 0);
    CHECK(rcn_order_is_identity(&order));
}

typedef struct scene {
    uint8_t marks[20][N], turned[20][N];
} scene;

/* Votes of masks that were turned are the turned votes, in all three widths of codes. */
static void votes_follow(void) {
    static const int raters[3] = {3, 12, 20};
    static const int64_t unanswered = 9;
    rcn_context *ctx = make_context(2);
    scene *s = malloc(sizeof *s);
    const rcn_geometry geometry = place();
    uint32_t state = 5;
    for (int r = 0; r < 20; ++r)
        for (int i = 0; i < N; ++i) {
            state = 1664525u * state + 1013904223u;
            s->marks[r][i] = (state >> 24) % 7 == 0 && r == 1 ? 9 : state >> 31;
        }
    for (int k = 0; k < 3; ++k)
        for (int number = 5; number < 48; number += 11) {
            const rcn_order order = order_number(number);
            const rcn_geometry turned = rcn_geometry_reorder(&geometry, &order);
            rcn_mask masks[20], others[20];
            rcn_votes *votes = NULL, *expected = NULL;
            for (int r = 0; r < raters[k]; ++r) {
                const rcn_mask mask = {
                    {s->marks[r], RCN_UINT8, 1, geometry}, 0, NULL, 0, k == 1 ? NULL : &unanswered};
                masks[r] = others[r] = mask;
                CHECK_STATUS(rcn_image_reorder(s->turned[r], ctx, &mask.image, &order), RCN_OK);
                others[r].image.data = s->turned[r];
                others[r].image.geometry = turned;
            }
            CHECK_STATUS(rcn_votes_from_masks(&votes, ctx, masks, raters[k]), RCN_OK);
            CHECK_STATUS(rcn_votes_from_masks(&expected, ctx, others, raters[k]), RCN_OK);
            CHECK_STATUS(rcn_votes_reorder(votes, ctx, &order), RCN_OK);
            CHECK(rcn_votes_code_bytes(votes) == rcn_votes_code_bytes(expected));
            CHECK(!memcmp(rcn_votes_codes(votes), rcn_votes_codes(expected),
                          N * (size_t)rcn_votes_code_bytes(votes)));
            CHECK(!memcmp(rcn_votes_geometry(votes)->size, turned.size, sizeof turned.size));
            CHECK(rcn_votes_marked(votes, 0) == rcn_votes_marked(expected, 0));
            rcn_votes_destroy(votes);
            rcn_votes_destroy(expected);
        }
    free(s);
    rcn_context_destroy(ctx);
}

static rcn_status reorder_votes(rcn_context *ctx, void *payload) {
    const rcn_geometry geometry = place();
    const rcn_order order = order_number(21);
    rcn_votes *votes = NULL;
    const rcn_mask mask = {{payload, RCN_UINT8, 1, geometry}, 0, NULL, 0, NULL};
    rcn_status status = rcn_votes_from_masks(&votes, ctx, &mask, 1);
    if (status == RCN_OK) status = rcn_votes_reorder(votes, ctx, &order);
    if (votes && status != RCN_OK)
        CHECK(!memcmp(rcn_votes_geometry(votes)->size, geometry.size, sizeof geometry.size));
    rcn_votes_destroy(votes);
    return status;
}

static void bad_arguments_and_no_memory(void) {
    rcn_context *ctx = make_context(1);
    uint8_t in[N] = {1}, out[N] = {7};
    const rcn_image image = {in, RCN_UINT8, 1, place()};
    const rcn_order twice = {{0, 0, 2}, {0, 0, 0}}, identity = RCN_ORDER_INIT;
    CHECK_STATUS(rcn_image_reorder(out, ctx, &image, &twice), RCN_EINVALID);
    CHECK_ERROR(ctx, "axes once");
    CHECK_STATUS(rcn_image_reorder(out, ctx, NULL, &identity), RCN_EINVALID);
    CHECK_STATUS(rcn_image_reorder(NULL, ctx, &image, &identity), RCN_EINVALID);
    CHECK_STATUS(rcn_votes_reorder(NULL, ctx, &identity), RCN_EINVALID);
    CHECK(out[0] == 7);
    rcn_context_destroy(ctx);
    check_failing_allocations(reorder_votes, in);
}

int main(void) {
    RUN(voxels_keep_value_and_place);
    RUN(axes_have_names);
    RUN(all_come_to_the_same_axes);
    RUN(slices_stay_slices);
    RUN(votes_follow);
    RUN(bad_arguments_and_no_memory);
    return TEST_RESULT;
}
