// SPDX-License-Identifier: Apache-2.0
/* Images and their geometry: checks, distances, comparing where two images lie, and passes over
 * elements of any type.
 *
 * Voxels belong to the caller; nothing here allocates.
 */
#include "rcn/rcn_image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rcn_context_private.h"

size_t rcn_type_size(rcn_type type) {
    switch (type) {
    case RCN_UINT8:
    case RCN_INT8: return 1;
    case RCN_UINT16:
    case RCN_INT16: return 2;
    case RCN_UINT32:
    case RCN_INT32:
    case RCN_FLOAT32: return 4;
    case RCN_UINT64:
    case RCN_INT64:
    case RCN_FLOAT64: return 8;
    }
    return 0;
}

const char *rcn_type_name(rcn_type type) {
    static const char *const names[] = {"uint8", "int8",   "uint16", "int16",   "uint32",
                                        "int32", "uint64", "int64",  "float32", "float64"};
    return rcn_type_size(type) ? names[type] : NULL;
}

rcn_geometry rcn_geometry_make(int64_t x, int64_t y, int64_t z) {
    rcn_geometry geometry = {
        z > 1 ? 3 : 2, {x, y, z}, {1, 1, 1}, {0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, RCN_MM};
    return geometry;
}

/* Of a 3 x 3 matrix, row major. */
static double determinant_of(const double *m) {
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
           m[2] * (m[3] * m[7] - m[4] * m[6]);
}

const char *rcn_geometry_check(const rcn_geometry *geometry) {
    if (!geometry) return "No geometry was given.";
    if (geometry->dimension != 2 && geometry->dimension != 3)
        return "An image must have 2 or 3 dimensions.";
    /* Sixteen bytes per voxel (any element type, and a double beside it) must stay addressable. */
    int64_t room = INT64_MAX / 16;
    for (int a = 0; a < 3; ++a) {
        if (geometry->size[a] < 1) return "An image must have at least one voxel along each axis.";
        if (geometry->size[a] > room) return "The image has more voxels than can be addressed.";
        room /= geometry->size[a];
        if (!(geometry->spacing[a] > 0) || !isfinite(geometry->spacing[a]))
            return "The voxel spacing must be greater than zero.";
        if (!isfinite(geometry->origin[a])) return "The image origin must be finite.";
    }
    if (geometry->dimension == 2 && geometry->size[2] != 1)
        return "A 2-D image must have one slice.";
    if (geometry->unit != RCN_MM && geometry->unit != RCN_PIXELS)
        return "An image must be measured in millimeters or in pixels.";
    const double determinant = determinant_of(geometry->direction);
    if (!(fabs(determinant) > 1e-6) || !isfinite(determinant))
        return "The image directions must be three independent axes.";
    return NULL;
}

int64_t rcn_geometry_voxels(const rcn_geometry *geometry) {
    return geometry->size[0] * geometry->size[1] * geometry->size[2];
}

/* The last axis of one voxel, -1: none. An image that has one is 2-D for all that looks at
 * neighbors, also when its file says that it is 3-D. */
int rcn_geometry_thin_axis(const rcn_geometry *geometry) {
    int axis = 2;
    while (axis >= 0 && geometry->size[axis] != 1) --axis;
    return axis;
}

double rcn_geometry_voxel_ml(const rcn_geometry *geometry) {
    const double *spacing = geometry->spacing;
    if (geometry->unit == RCN_PIXELS) return NAN;
    return fabs(determinant_of(geometry->direction)) * spacing[0] * spacing[1] * spacing[2] * 1e-3;
}

/* The cosine between two axes. */
static double cosine(const rcn_geometry *geometry, int a, int b) {
    double sum = 0;
    for (int row = 0; row < 3; ++row)
        sum += geometry->direction[3 * row + a] * geometry->direction[3 * row + b];
    return sum;
}

double rcn_geometry_pixel_mm2(const rcn_geometry *geometry) {
    const int thin = rcn_geometry_thin_axis(geometry);
    if (thin < 0 || geometry->unit == RCN_PIXELS) return NAN;
    const int a = (thin + 1) % 3, b = (thin + 2) % 3;
    /* The area of a parallelogram: spacing times spacing times the sine. */
    const double between = cosine(geometry, a, b);
    return geometry->spacing[a] * geometry->spacing[b] * sqrt(1 - between * between);
}

int rcn_geometry_is_sheared(const rcn_geometry *geometry) {
    /* Headers are rounded; at this limit a distance is off by less than a thousandth. */
    const double limit = 1e-3;
    const int thin = rcn_geometry_thin_axis(geometry);
    for (int a = 0; a < 3; ++a) {
        const int b = (a + 1) % 3;
        if (a != thin && b != thin && fabs(cosine(geometry, a, b)) > limit) return 1;
    }
    return 0;
}

void rcn_geometry_to_world(double world[3], const rcn_geometry *geometry, const double index[3]) {
    for (int row = 0; row < 3; ++row) {
        world[row] = geometry->origin[row];
        for (int a = 0; a < 3; ++a)
            world[row] += geometry->direction[3 * row + a] * geometry->spacing[a] * index[a];
    }
}

void rcn_geometry_to_index(double index[3], const rcn_geometry *geometry, const double world[3]) {
    const double *d = geometry->direction, determinant = determinant_of(d);
    /* Cramer's rule: the direction with one column replaced by the way from the origin. */
    for (int a = 0; a < 3; ++a) {
        double replaced[9];
        memcpy(replaced, d, sizeof replaced);
        for (int row = 0; row < 3; ++row)
            replaced[3 * row + a] = world[row] - geometry->origin[row];
        index[a] = determinant_of(replaced) / determinant / geometry->spacing[a];
    }
}

static void describe(char *text, size_t bytes, const rcn_geometry *g) {
    const double *d = g->direction;
    snprintf(text, bytes,
             "size %lldx%lldx%lld, spacing %.6gx%.6gx%.6g %s, origin (%.6g, %.6g, %.6g), "
             "direction (%.4g %.4g %.4g; %.4g %.4g %.4g; %.4g %.4g %.4g)",
             (long long)g->size[0], (long long)g->size[1], (long long)g->size[2], g->spacing[0],
             g->spacing[1], g->spacing[2], g->unit == RCN_PIXELS ? "pixels" : "mm", g->origin[0],
             g->origin[1], g->origin[2], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8]);
}

/* The largest distance between two twin voxels is found at one of the eight corners: the
 * displacement is an affine function of the index. */
static double largest_shift(const rcn_geometry *a, const rcn_geometry *b) {
    double largest = 0;
    for (int corner = 0; corner < 8; ++corner) {
        double index[3], wa[3], wb[3], sum = 0;
        for (int axis = 0; axis < 3; ++axis)
            index[axis] = (corner >> axis & 1) ? (double)(a->size[axis] - 1) : 0.0;
        rcn_geometry_to_world(wa, a, index);
        rcn_geometry_to_world(wb, b, index);
        for (int axis = 0; axis < 3; ++axis) sum += (wa[axis] - wb[axis]) * (wa[axis] - wb[axis]);
        if (sum > largest) largest = sum;
    }
    return sqrt(largest);
}

rcn_status rcn_geometry_compare(rcn_context *ctx, const rcn_geometry *a, const char *name,
                                const rcn_geometry *reference, const char *reference_name,
                                double tolerance) {
    rcn__clear(ctx);
    /* The tolerance is a share of the shortest edge of a voxel. */
    double edge = reference->spacing[0];
    for (int axis = 1; axis < 3; ++axis)
        if (reference->spacing[axis] < edge) edge = reference->spacing[axis];

    const char *what = NULL;
    if (memcmp(a->size, reference->size, sizeof a->size)) {
        what = "size";
    } else if (a->unit == RCN_PIXELS || reference->unit == RCN_PIXELS) {
        return RCN_OK;
    } else if (largest_shift(a, reference) > tolerance * edge) {
        /* Name the first of spacing, direction, origin that makes the difference by itself. */
        rcn_geometry probe = *reference;
        memcpy(probe.spacing, a->spacing, sizeof probe.spacing);
        what = "spacing";
        if (largest_shift(&probe, reference) <= tolerance * edge) {
            memcpy(probe.direction, a->direction, sizeof probe.direction);
            what = largest_shift(&probe, reference) <= tolerance * edge ? "origin" : "direction";
        }
    }
    if (!what) return RCN_OK;
    char mine[400], theirs[400];
    describe(mine, sizeof mine, a);
    describe(theirs, sizeof theirs, reference);
    return rcn__fail(ctx, RCN_EGEOMETRY, "%s has another %s than %s: %s; against %s.", name, what,
                     reference_name, mine, theirs);
}

const char *rcn_image_check(const rcn_image *image) {
    if (!image) return "No image was given.";
    const char *sentence = rcn_geometry_check(&image->geometry);
    if (sentence) return sentence;
    if (!image->data) return "The image has no voxels in memory.";
    if (!rcn_type_size(image->type)) return "The image has an unknown element type.";
    if (image->components < 1) return "An image must have at least one component.";
    if (rcn_geometry_voxels(&image->geometry) > INT64_MAX / 16 / image->components)
        return "The image has more elements than can be addressed.";
    return NULL;
}

int rcn_image_is_constant(const rcn_image *image) {
    const size_t voxel = (size_t)image->components * rcn_type_size(image->type);
    const size_t bytes = (size_t)rcn_geometry_voxels(&image->geometry) * voxel;
    /* What equals itself shifted by one voxel is the same everywhere; memcmp() ends early. */
    return memcmp((const char *)image->data + voxel, image->data, bytes - voxel) == 0;
}

#define FIND_NONFINITE(T)                                                                          \
    do {                                                                                           \
        const T *at = image->data;                                                                 \
        for (int64_t i = 0; i < elements; ++i)                                                     \
            if (!isfinite(at[i])) return i;                                                        \
    } while (0)

int64_t rcn_image_find_nonfinite(const rcn_image *image) {
    const int64_t elements = rcn_geometry_voxels(&image->geometry) * image->components;
    if (image->type == RCN_FLOAT32)
        FIND_NONFINITE(float);
    else if (image->type == RCN_FLOAT64)
        FIND_NONFINITE(double);
    return -1;
}

/* Calls DO(T) with the C type of an image's elements. */
#define FOR_TYPE(type, DO)                                                                         \
    switch (type) {                                                                                \
    case RCN_UINT8: DO(uint8_t); break;                                                            \
    case RCN_INT8: DO(int8_t); break;                                                              \
    case RCN_UINT16: DO(uint16_t); break;                                                          \
    case RCN_INT16: DO(int16_t); break;                                                            \
    case RCN_UINT32: DO(uint32_t); break;                                                          \
    case RCN_INT32: DO(int32_t); break;                                                            \
    case RCN_UINT64: DO(uint64_t); break;                                                          \
    case RCN_INT64: DO(int64_t); break;                                                            \
    case RCN_FLOAT32: DO(float); break;                                                            \
    case RCN_FLOAT64: DO(double); break;                                                           \
    }

#define ZERO_OR_ONE_VALUE(T)                                                                       \
    do {                                                                                           \
        const T *at = image->data;                                                                 \
        int64_t first = 0;                                                                         \
        while (first < elements && at[first] == 0) ++first;                                        \
        for (int64_t i = first; i < elements; ++i)                                                 \
            if (at[i] != 0 && at[i] != at[first]) return 0;                                        \
        return first == elements || at[first] == at[first]; /* not a number is no label */         \
    } while (0)

int rcn_image_is_mask(const rcn_image *image) {
    const int64_t elements = rcn_geometry_voxels(&image->geometry) * image->components;
    FOR_TYPE(image->type, ZERO_OR_ONE_VALUE)
    return 0;
}

double rcn_image_element(const rcn_image *image, int64_t element) {
#define ELEMENT(T) return (double)((const T *)image->data)[element]
    FOR_TYPE(image->type, ELEMENT)
    return NAN;
}

int64_t rcn_image_find_beyond_one(const rcn_image *image) {
    const int64_t elements = rcn_geometry_voxels(&image->geometry) * image->components;
#define BEYOND_ONE(T)                                                                              \
    for (int64_t i = 0; i < elements; ++i) {                                                       \
        const T value = ((const T *)image->data)[i];                                               \
        if (value != (T)0 && value != (T)1) return i;                                              \
    }
    FOR_TYPE(image->type, BEYOND_ONE)
    return -1;
}

void rcn_image_to_float(float *out, int64_t stride, const rcn_image *image, int component,
                        double divisor) {
    const int64_t voxels = rcn_geometry_voxels(&image->geometry), step = image->components;
#define TO_FLOAT(T)                                                                                \
    for (int64_t i = 0; i < voxels; ++i)                                                           \
        out[i * stride] = (float)((double)((const T *)image->data)[i * step + component] / divisor);
    FOR_TYPE(image->type, TO_FLOAT)
}

void rcn_image_from_float(rcn_image *image, const float *in, float factor) {
    const int64_t elements = rcn_geometry_voxels(&image->geometry) * image->components;
    uint8_t *bytes = image->data;
    uint16_t *words = image->data;
    if (image->type == RCN_UINT8)
        for (int64_t i = 0; i < elements; ++i) bytes[i] = (uint8_t)(in[i] * factor + 0.5f);
    if (image->type == RCN_UINT16)
        for (int64_t i = 0; i < elements; ++i) words[i] = (uint16_t)(in[i] * factor + 0.5f);
}

void rcn_image_to_double(double *out, const rcn_image *image, int component) {
    const int64_t voxels = rcn_geometry_voxels(&image->geometry), step = image->components;
#define TO_DOUBLE(T)                                                                               \
    for (int64_t i = 0; i < voxels; ++i)                                                           \
        out[i] = (double)((const T *)image->data)[i * step + component];
    FOR_TYPE(image->type, TO_DOUBLE)
}

void rcn_image_copy_component(void *out, int64_t stride, const rcn_image *image, int component) {
    const int64_t voxels = rcn_geometry_voxels(&image->geometry), step = image->components;
#define COPY_COMPONENT(T)                                                                          \
    for (int64_t i = 0; i < voxels; ++i)                                                           \
        ((T *)out)[i * stride] = ((const T *)image->data)[i * step + component];
    FOR_TYPE(image->type, COPY_COMPONENT)
}

void rcn_image_keep_components(rcn_image *image, int count) {
    const int64_t voxels = rcn_geometry_voxels(&image->geometry);
    const size_t kept = (size_t)count * rcn_type_size(image->type);
    const size_t step = (size_t)image->components * rcn_type_size(image->type);
    char *data = image->data;
    /* In place, forwards: what is read lies never before what is written. */
    for (int64_t i = 1; i < voxels; ++i)
        memmove(data + (size_t)i * kept, data + (size_t)i * step, kept);
    image->components = count;
}

/* Puts a label into a rising list of distinct ones; returns how many there are now. */
static int note_label(double *labels, int count, double label) {
    int at = count;
    while (at > 0 && labels[at - 1] >= label) --at;
    if (at < count && labels[at] == label) return count;
    memmove(labels + at + 1, labels + at, (size_t)(count - at) * sizeof *labels);
    labels[at] = label;
    return count + 1;
}

int rcn_image_labels(double *labels, int most, const rcn_image *image, int component,
                     const int64_t *unanswered) {
    const int64_t voxels = rcn_geometry_voxels(&image->geometry), step = image->components;
    int count = 0;
    /* Neighbors mostly agree: only a value that differs from the last one is looked at. */
#define LABELS(T)                                                                                  \
    do {                                                                                           \
        const T *at = (const T *)image->data + component;                                          \
        T last = 0;                                                                                \
        for (int64_t i = 0; i < voxels && count < most; ++i) {                                     \
            const T value = at[i * step];                                                          \
            if (value == (T)0 || value == last) continue;                                          \
            last = value;                                                                          \
            if (!unanswered || (double)value != (double)*unanswered)                               \
                count = note_label(labels, count, (double)value);                                  \
        }                                                                                          \
    } while (0)
    FOR_TYPE(image->type, LABELS)
    return count;
}
