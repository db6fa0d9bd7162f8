// SPDX-License-Identifier: Apache-2.0
/* Image views: a caller's buffer with its element type and its place in the world.
 *
 * x runs fastest, as in ITK and VTK buffers: voxel (x, y, z) is number x + X * (y + Y * z). Several
 * components of a voxel lie next to each other: component c of voxel v is element v * C + c. Views
 * never own memory, so that a buffer of any library can be looked at where it is:
 *
 *     rcn_image view = {pixels, RCN_INT16, 1, rcn_geometry_make(512, 512, 120)};
 *     view.geometry.spacing[2] = 2.5;
 *     const char *sentence = rcn_image_check(&view);        // NULL: it can be used
 *
 * Functions with a rcn_geometry or rcn_image and no context do not fail: what they are given must
 * have passed its check. They keep no state, and may be called from any thread.
 */
#ifndef RCN_IMAGE_H
#define RCN_IMAGE_H

#include <stdint.h>

#include "rcn_context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The element types that files of images have. The numbers never change. */
typedef enum rcn_type {
    RCN_UINT8 = 0,
    RCN_INT8 = 1,
    RCN_UINT16 = 2,
    RCN_INT16 = 3,
    RCN_UINT32 = 4,
    RCN_INT32 = 5,
    RCN_UINT64 = 6,
    RCN_INT64 = 7,
    RCN_FLOAT32 = 8,
    RCN_FLOAT64 = 9
} rcn_type;

/* Bytes of one element; 0 for a number that is no rcn_type. */
RCN_API size_t rcn_type_size(rcn_type type);

/* "uint8" ... "float64"; NULL for a number that is no rcn_type. */
RCN_API const char *rcn_type_name(rcn_type type);

/* What a step of 1 in the world is: a picture (PNG, JPEG) knows no spacing, and millimeters would
 * be made up. */
typedef enum rcn_unit { RCN_MM = 0, RCN_PIXELS = 1 } rcn_unit;

/* Where the voxels are. The world's axes are those of the file format's library (LPS for ITK). A
 * 2-D file has size[2] = 1; whether an algorithm works in two or three dimensions is decided by
 * rcn_geometry_thin_axis(), so that a volume of one slice is a 2-D image everywhere. */
typedef struct rcn_geometry {
    int dimension;       /* 2 or 3: as stored in the file */
    int64_t size[3];     /* voxels along x, y, z; each at least 1 */
    double spacing[3];   /* mm (or pixels: 1) between voxel centers; each > 0 */
    double origin[3];    /* world position of the center of voxel (0, 0, 0) */
    double direction[9]; /* row major; column a is the world direction of axis a, of length 1 */
    rcn_unit unit;       /* of spacing and origin */
} rcn_geometry;

/* Size X x Y x Z (Z = 1 is 2-D), 1 mm voxels, origin 0, axes along the world's. */
RCN_API rcn_geometry rcn_geometry_make(int64_t x, int64_t y, int64_t z);

/* NULL if usable, otherwise a sentence: sizes, spacing, finite numbers, three independent axes, and
 * a voxel count that leaves room for sixteen bytes each in 63 bits. Axes need not be at right
 * angles, and may be mirrored. */
RCN_API const char *rcn_geometry_check(const rcn_geometry *geometry);

/* Number of voxels, X * Y * Z; cannot overflow for a geometry that passed its check. */
RCN_API int64_t rcn_geometry_voxels(const rcn_geometry *geometry);

/* The axis along which the image is one voxel thin, which makes it 2-D: 0, 1 or 2, and the last one
 * where there are several; -1 for a volume. */
RCN_API int rcn_geometry_thin_axis(const rcn_geometry *geometry);

/* Volume of one voxel in milliliters (a 2-D image is as thick as its spacing says); NaN in pixels.
 */
RCN_API double rcn_geometry_voxel_ml(const rcn_geometry *geometry);

/* Area of one pixel of a 2-D image, without its thin axis, in mm2; NaN in pixels and for a volume.
 */
RCN_API double rcn_geometry_pixel_mm2(const rcn_geometry *geometry);

/* Non-zero when two axes (other than the thin one of a 2-D image) are not at right angles, as after
 * a tilt of a CT's gantry: a distance then does not follow from steps along the axes alone. */
RCN_API int rcn_geometry_is_sheared(const rcn_geometry *geometry);

/* world[3] = the position of the (possibly fractional) voxel index[3]:
 * origin + sum over axes a of index[a] * spacing[a] * direction of a. */
RCN_API void rcn_geometry_to_world(double world[3], const rcn_geometry *geometry,
                                   const double index[3]);

/* index[3] = the (possibly fractional) voxel at the position world[3]: the other way round, also
 * for axes that are not at right angles. It may lie outside of the image. */
RCN_API void rcn_geometry_to_index(double index[3], const rcn_geometry *geometry,
                                   const double world[3]);

/* How far two geometries may differ and still count as the same: no voxel center may lie further
 * from its twin than this fraction of a voxel's smallest edge. */
#define RCN_GEOMETRY_TOLERANCE 0.01

/* RCN_OK when a and b have the same size and every voxel of one lies within `tolerance` voxels of
 * its twin (of an image in pixels nothing but the size is known); otherwise RCN_EGEOMETRY with a
 * sentence that begins "NAME has another size|spacing| direction|origin than REFERENCE" and gives
 * both geometries. */
RCN_API rcn_status rcn_geometry_compare(rcn_context *ctx, const rcn_geometry *a, const char *name,
                                        const rcn_geometry *reference, const char *reference_name,
                                        double tolerance);

/* A view. Functions that only read take a pointer to const, and leave the voxels as they are. */
typedef struct rcn_image {
    void *data; /* voxels * components elements of `type`; owned by the caller */
    rcn_type type;
    int components; /* at least 1; interleaved */
    rcn_geometry geometry;
} rcn_image;

/* NULL if usable, otherwise a sentence: the geometry, a buffer, a known type and at least one
 * component. Cannot see whether the buffer is as large as it says. */
RCN_API const char *rcn_image_check(const rcn_image *image);

/* Position of the first element that is NaN or infinite, counted over all components; -1 when there
 * is none, as always for whole numbers. */
RCN_API int64_t rcn_image_find_nonfinite(const rcn_image *image);

/* Whether all voxels hold the same bytes; 1 for a single voxel. Such a prediction tells nothing,
 * and an image like it is probably the wrong file. */
RCN_API int rcn_image_is_constant(const rcn_image *image);

/* An element as a number, counted over all components: v * components + c. For messages that show a
 * value; a loop over voxels is better off with rcn_image_to_double(). */
RCN_API double rcn_image_element(const rcn_image *image, int64_t element);

/* Position of the first element that is neither 0 nor 1, counted over all components; -1 when there
 * is none. A map of whole numbers that has one is not a map of probabilities as it stands: somebody
 * must say which number means 1. */
RCN_API int64_t rcn_image_find_beyond_one(const rcn_image *image);

/* out[i * stride] = the component of voxel i, divided by `divisor` (in double precision, then
 * rounded). A stride beyond 1 puts it among the components of another image. */
RCN_API void rcn_image_to_float(float *out, int64_t stride, const rcn_image *image, int component,
                                double divisor);

/* The other way round, for formats that hold whole numbers: every element of `image` (uint8 or
 * uint16) becomes in[i] * factor, rounded, which must fit. */
RCN_API void rcn_image_from_float(rcn_image *image, const float *in, float factor);

/* out[i] = the component of voxel i as a double, which holds all but large 64-bit integers. */
RCN_API void rcn_image_to_double(double *out, const rcn_image *image, int component);

/* out[i * stride] = the component of voxel i, in the type of the image: takes a component out of an
 * image (stride 1), or puts a plain image among the components of another. */
RCN_API void rcn_image_copy_component(void *out, int64_t stride, const rcn_image *image,
                                      int component);

/* Keeps the first `count` components of every voxel, in place; the others are gone. */
RCN_API void rcn_image_keep_components(rcn_image *image, int count);

/* labels[most] = the distinct labels of one component that are neither 0 nor *unanswered (NULL:
 * none means that), rising; looks no further once there are `most`. Returns how many were found:
 * whoever wants to know whether there are more than n asks for n + 1. */
RCN_API int rcn_image_labels(double *labels, int most, const rcn_image *image, int component,
                             const int64_t *unanswered);

/* Whether every element is 0 or one other value, as in a mask: for guessing what a file is. An
 * image ends the search soon. */
RCN_API int rcn_image_is_mask(const rcn_image *image);

#ifdef __cplusplus
}
#endif

#endif /* RCN_IMAGE_H */
