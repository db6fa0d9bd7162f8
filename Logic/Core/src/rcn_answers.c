// SPDX-License-Identifier: Apache-2.0
/* What a rater said, as bytes (rcn_answers.h).
 *
 * Everything behind this file sees answers 0 ... C + 1 and no element type. An image of any type is
 * compared value by value with the few label values that mean something, one pass over a chunk for
 * each, because such passes vectorize; looking up each voxel's value would not. Several maps of one
 * rater (one per structure, say) are read one after the other and merged.
 */
#include "rcn_answers.h"
#include "rcn_parallel.h"

#include <math.h>
#include <string.h>

/* The largest label value: all whole numbers up to here are exact in a double, and every element
 * type that can hold one holds it exactly. */
#define MAX_LABEL (INT64_C(1) << 53)

/* A value other than 0 that the map does not name, until the other maps have been asked. Above
 * every structure and above C + 1, and not RCN_NO_ANSWER. */
enum { UNNAMED = 254 };

rcn_label_map rcn__mask_map(const rcn_mask *mask) {
    const rcn_label_map map = {mask->image, mask->component,   mask->values,
                               NULL,        mask->value_count, mask->unanswered};
    return map;
}

/* ---- one chunk of a map of any type -> bytes ------------------------------------------------- */

/* What the values of a map turn into. */
typedef struct sense {
    const rcn_label_map *map;
    uint8_t other;     /* a value other than 0 that the map does not name */
    uint8_t no_answer; /* the value of voxels left out */
} sense;

/* Position of the first value in the chunk that is no whole number, or -1. */
#define DEFINE_FIND_FRACTION(T, NAME, FLOOR)                                                       \
    static int64_t NAME(const T *in, int64_t count, int64_t stride) {                              \
        for (int64_t i = 0; i < count; ++i) {                                                      \
            const T value = in[i * stride];                                                        \
            /* NaN differs from itself, infinity minus its floor is NaN. */                        \
            if (!(value - FLOOR(value) == 0)) return i;                                            \
        }                                                                                          \
        return -1;                                                                                 \
    }
DEFINE_FIND_FRACTION(float, find_fraction_f32, floorf)
DEFINE_FIND_FRACTION(double, find_fraction_f64, floor)

/* Whether `value`, a label converted to T, is still that label; -1 as an unsigned number is not. */
#define HOLDS(T, value, label) ((int64_t)(value) == (label) && ((value) < (T)1) == ((label) < 1))

/* One chunk of a map whose elements are T: first what a value means that is not named, then the
 * named values over it, then the value for "no answer", which has the last word. The stride is that
 * of a multi-component image; stride 1 has a loop of its own, so that the commonest case
 * vectorizes. */
#define DEFINE_ANSWERS(T, NAME)                                                                    \
    RCN_DISPATCH static void NAME(uint8_t *restrict out, const T *restrict in, int64_t count,      \
                                  int64_t stride, const sense *is) {                               \
        const rcn_label_map *map = is->map;                                                        \
        const uint8_t other = is->other;                                                           \
        if (!other) {                                                                              \
            memset(out, 0, (size_t)count);                                                         \
        } else if (stride == 1) {                                                                  \
            for (int64_t i = 0; i < count; ++i) out[i] = in[i] != 0 ? other : 0;                   \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; ++i) out[i] = in[i * stride] != 0 ? other : 0;          \
        }                                                                                          \
        for (int v = 0; v < map->value_count; ++v) {                                               \
            const T value = (T)map->values[v];                                                     \
            const uint8_t label = map->structures ? map->structures[v] : 1;                        \
            if (!HOLDS(T, value, map->values[v])) continue;                                        \
            for (int64_t i = 0; i < count; ++i) out[i] = in[i * stride] == value ? label : out[i]; \
        }                                                                                          \
        if (map->unanswered) {                                                                     \
            const T value = (T) * map->unanswered;                                                 \
            const uint8_t label = is->no_answer;                                                   \
            if (HOLDS(T, value, *map->unanswered))                                                 \
                for (int64_t i = 0; i < count; ++i)                                                \
                    out[i] = in[i * stride] == value ? label : out[i];                             \
        }                                                                                          \
    }
DEFINE_ANSWERS(uint8_t, answers_u8)
DEFINE_ANSWERS(int8_t, answers_i8)
DEFINE_ANSWERS(uint16_t, answers_u16)
DEFINE_ANSWERS(int16_t, answers_i16)
DEFINE_ANSWERS(uint32_t, answers_u32)
DEFINE_ANSWERS(int32_t, answers_i32)
DEFINE_ANSWERS(uint64_t, answers_u64)
DEFINE_ANSWERS(int64_t, answers_i64)
DEFINE_ANSWERS(float, answers_f32)
DEFINE_ANSWERS(double, answers_f64)

static const void *map_at(const rcn_label_map *map, int64_t voxel) {
    return (const char *)map->image.data +
           (size_t)(voxel * map->image.components + map->component) *
               rcn_type_size(map->image.type);
}

/* Writes what one map says about `count` voxels from `first` on. Returns a voxel whose label is no
 * whole number, or -1. */
static int64_t read_map(uint8_t *out, const sense *is, int64_t first, int64_t count) {
    const void *in = map_at(is->map, first);
    const int64_t stride = is->map->image.components;
    int64_t bad = -1;
    switch (is->map->image.type) {
    case RCN_UINT8: answers_u8(out, in, count, stride, is); break;
    case RCN_INT8: answers_i8(out, in, count, stride, is); break;
    case RCN_UINT16: answers_u16(out, in, count, stride, is); break;
    case RCN_INT16: answers_i16(out, in, count, stride, is); break;
    case RCN_UINT32: answers_u32(out, in, count, stride, is); break;
    case RCN_INT32: answers_i32(out, in, count, stride, is); break;
    case RCN_UINT64: answers_u64(out, in, count, stride, is); break;
    case RCN_INT64: answers_i64(out, in, count, stride, is); break;
    case RCN_FLOAT32:
        /* A map of probabilities, given by mistake, is not taken for labels. */
        bad = find_fraction_f32(in, count, stride);
        if (bad < 0) answers_f32(out, in, count, stride, is);
        break;
    case RCN_FLOAT64:
        bad = find_fraction_f64(in, count, stride);
        if (bad < 0) answers_f64(out, in, count, stride, is);
        break;
    }
    return bad < 0 ? -1 : first + bad;
}

/* ---- the maps of one rater ------------------------------------------------------------------- */

/* What the values of map m turn into. `unnamed` is for values of a map that names some: 0, as if
 * they were background, or UNNAMED where they are to be counted. */
static sense sense_of(const rcn__answers *answers, int m, uint8_t unnamed) {
    const rcn_label_map *map = &answers->maps[m];
    const uint8_t any = map->structures ? map->structures[0] : 1;
    const sense made = {map, map->values ? unnamed : any, (uint8_t)(answers->structures + 1)};
    return made;
}

/* Adds what another map says to out. A structure, wherever it is marked, is the answer; else, one
 * map that leaves the voxel out makes it unknown. Returns the position of a voxel with two
 * structures, or -1. */
static int64_t merge(uint8_t *out, const uint8_t *more, int64_t count, int structures) {
    for (int64_t i = 0; i < count; ++i) {
        const uint8_t a = out[i], b = more[i];
        if (a == b || !b) continue;
        const int a_marked = a >= 1 && a <= structures, b_marked = b <= structures;
        if (a_marked && b_marked) return i;
        /* Of UNNAMED and no answer, the smaller is no answer. */
        if (!a || b_marked || (!a_marked && b < a)) out[i] = b;
    }
    return -1;
}

RCN_DISPATCH static int64_t forget_unnamed(uint8_t *out, int64_t count) {
    int64_t unnamed = 0;
    for (int64_t i = 0; i < count; ++i) {
        unnamed += out[i] == UNNAMED;
        out[i] = out[i] == UNNAMED ? 0 : out[i];
    }
    return unnamed;
}

int64_t rcn__answers_read(uint8_t *out, int64_t *unnamed, const rcn__answers *answers,
                          int64_t first, int64_t count) {
    uint8_t more[RCN_CHUNK];
    int64_t fraction = -1, twice = -1;
    for (int m = 0; m < answers->map_count; ++m) {
        const sense is = sense_of(answers, m, unnamed ? UNNAMED : 0);
        const int64_t bad = read_map(m ? more : out, &is, first, count);
        if (bad >= 0 && (fraction < 0 || bad < fraction)) fraction = bad;
        /* A map with a fraction has not been written to more[]; and the first voxel of two
         * structures is enough. */
        if (m && fraction < 0 && twice < 0) twice = merge(out, more, count, answers->structures);
    }
    if (fraction >= 0) return fraction;
    if (twice >= 0) return first + twice;
    if (unnamed) *unnamed += forget_unnamed(out, count);
    return -1;
}

/* ---- sentences ------------------------------------------------------------------------------- */

static rcn_status fail_value(rcn_context *ctx, int rater, int64_t value) {
    return rcn__fail(ctx, RCN_EINVALID, "Rater %d: %lld is not a valid label value.", rater + 1,
                     (long long)value);
}

static rcn_status check_values(rcn_context *ctx, const rcn_label_map *map, int rater,
                               int structures) {
    if (!map->values != (map->value_count == 0) || map->value_count < 0)
        return rcn__fail(ctx, RCN_EINVALID, "Rater %d: the label values do not match their count.",
                         rater + 1);
    for (int v = 0; v < map->value_count; ++v)
        if (map->values[v] > MAX_LABEL || map->values[v] < -MAX_LABEL)
            return fail_value(ctx, rater, map->values[v]);
    if (map->unanswered && (*map->unanswered > MAX_LABEL || *map->unanswered < -MAX_LABEL))
        return fail_value(ctx, rater, *map->unanswered);
    const int meanings = !map->structures ? 0 : map->values ? map->value_count : 1;
    for (int v = 0; v < meanings; ++v) {
        if (map->structures[v] < 1 || map->structures[v] > structures)
            return rcn__fail(ctx, RCN_EINVALID, "Rater %d: structure %d does not exist among %d.",
                             rater + 1, map->structures[v], structures);
        for (int w = 0; w < v; ++w)
            if (map->values[w] == map->values[v] && map->structures[w] != map->structures[v])
                return rcn__fail(
                    ctx, RCN_EINVALID,
                    "Rater %d: the label value %lld cannot mean structure %d and structure %d.",
                    rater + 1, (long long)map->values[v], map->structures[w], map->structures[v]);
    }
    return RCN_OK;
}

rcn_status rcn__answers_check(rcn_context *ctx, const rcn__answers *answers,
                              const rcn_geometry *geometry) {
    const int rater = answers->rater + 1;
    for (int m = 0; m < answers->map_count; ++m) {
        const rcn_label_map *map = &answers->maps[m];
        const char *sentence = rcn_image_check(&map->image);
        if (sentence) return rcn__fail(ctx, RCN_EINVALID, "Rater %d: %s", rater, sentence);
        if (map->component < 0 || map->component >= map->image.components)
            return rcn__fail(ctx, RCN_EINVALID,
                             "Rater %d: component %d does not exist in an image of %d.", rater,
                             map->component, map->image.components);
        const rcn_status status = check_values(ctx, map, answers->rater, answers->structures);
        if (status != RCN_OK) return status;
        const int64_t *size = map->image.geometry.size;
        if (memcmp(size, geometry->size, sizeof geometry->size))
            return rcn__fail(ctx, RCN_EGEOMETRY,
                             "Rater %d has %lldx%lldx%lld voxels, the case has %lldx%lldx%lld.",
                             rater, (long long)size[0], (long long)size[1], (long long)size[2],
                             (long long)geometry->size[0], (long long)geometry->size[1],
                             (long long)geometry->size[2]);
    }
    return RCN_OK;
}

/* Reads the one voxel again, map by map, to say what is wrong with it; the fast pass only knows
 * where. */
rcn_status rcn__answers_fail(rcn_context *ctx, const rcn__answers *answers, int64_t voxel) {
    const int64_t *size = answers->maps[0].image.geometry.size;
    const long long at[3] = {voxel % size[0], voxel / size[0] % size[1],
                             voxel / (size[0] * size[1])};
    uint8_t marked[2] = {0, 0}; /* the first structure, and the first other one */
    for (int m = 0; m < answers->map_count; ++m) {
        const sense is = sense_of(answers, m, 0);
        uint8_t label;
        if (read_map(&label, &is, voxel, 1) >= 0)
            return rcn__fail(ctx, RCN_EDATA,
                             "Rater %d has the label %g at voxel (%lld, %lld, %lld); a label must "
                             "be a whole number.",
                             answers->rater + 1,
                             rcn_image_element(&is.map->image, voxel * is.map->image.components +
                                                                   is.map->component),
                             at[0], at[1], at[2]);
        if (!label || label > answers->structures) continue;
        if (!marked[0])
            marked[0] = label;
        else if (!marked[1] && label != marked[0])
            marked[1] = label;
    }
    return rcn__fail(ctx, RCN_EDATA,
                     "Rater %d marks voxel (%lld, %lld, %lld) as structure %d and as structure %d; "
                     "a voxel belongs to one of them.",
                     answers->rater + 1, at[0], at[1], at[2], marked[0], marked[1]);
}
