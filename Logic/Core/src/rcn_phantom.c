// SPDX-License-Identifier: Apache-2.0
/* Phantoms (rcn_phantom.h): images that are made, with raters who disagree as people do.
 *
 * Whatever is random comes from streams of its own: the case (1 and 2), each row's noise (1000 +
 * row), each rater's habits (100 + rater, of HABIT_SEED alone, so that cases share their raters)
 * and hand in this case (200 + rater). So rows may be made by any thread, and one more rater leaves
 * the others as they were.
 */
#include "rcn/rcn_phantom.h"

#include <math.h>
#include <string.h>

#include "rcn/rcn_votes.h"
#include "rcn_parallel.h"
#include "rcn_rng.h"

enum { WAVES = 5, MAX_LESIONS = 64 };

/* Width of a border in voxels: wide enough for raters to place it differently without one of them
 * being plainly wrong. */
#define SOFTNESS 2.5

/* Who the raters are: the same people in every phantom. */
#define HABIT_SEED UINT64_C(1)

/* A smooth random field: a few plane waves of about `length` voxels. Mean 0, deviation about 1. */
typedef struct field {
    double wave[WAVES][3], phase[WAVES];
} field;

static field make_field(rcn_rng *rng, double length, int planes) {
    field f;
    for (int w = 0; w < WAVES; ++w) {
        double norm = 0;
        for (int a = 0; a < 3; ++a) {
            f.wave[w][a] = a < 2 + planes ? rcn__rng_normal(rng) : 0;
            norm += f.wave[w][a] * f.wave[w][a];
        }
        const double scale = 6.283185307179586 / (length * (0.6 + 0.8 * rcn__rng_uniform(rng)));
        for (int a = 0; a < 3; ++a) f.wave[w][a] *= scale / sqrt(norm + 1e-12);
        f.phase[w] = 6.283185307179586 * rcn__rng_uniform(rng);
    }
    return f;
}

/* out[x] = the field along one row. Neighbors differ by a fixed angle, so each wave's cosine
 * follows from the two before it: cos(n + 1) = 2 cos(step) cos(n) - cos(n - 1). */
static void field_row(double *out, const field *f, int64_t width, double y, double z) {
    for (int64_t x = 0; x < width; ++x) out[x] = 0;
    for (int w = 0; w < WAVES; ++w) {
        const double start = f->wave[w][1] * y + f->wave[w][2] * z + f->phase[w];
        const double twice = 2 * cos(f->wave[w][0]);
        double now = cos(start), before = cos(start - f->wave[w][0]);
        for (int64_t x = 0; x < width; ++x) {
            out[x] += now * 0.6324555320336759; /* sqrt(2 / WAVES) */
            const double next = twice * now - before;
            before = now;
            now = next;
        }
    }
}

typedef struct lesion {
    double center[3], radius, stretch[3];
    double contrast; /* 0.35 (faint) ... 1 */
} lesion;

typedef struct rater_habit {
    double bias;   /* voxels outward */
    double uneven; /* voxels */
    double care;   /* how likely a faint lesion is noticed */
    field hand;
    uint64_t noticed; /* lesions of this case */
    /* Several structures: */
    field inner;       /* where the border between two of them is drawn */
    double inner_bias; /* voxels */
    int other;         /* gives the ambiguous part to the other structure */
} rater_habit;

/* Three structures that touch: an organ whose halves are 1 and 2, and 3 across its border where
 * they meet. A part on the border of the halves looks like neither. */
typedef struct organ {
    lesion whole, third, part;
    double across[3]; /* from the first half to the second; length 1 */
} organ;

typedef struct phantom_job {
    const rcn_phantom_options *options;
    int64_t voxels;
    float *image;
    uint8_t *masks;
    lesion lesions[MAX_LESIONS];
    int lesion_count;
    organ organ;
    field shape, texture;
    double *rows; /* per thread: shape, texture and each rater's fields along a row */
    rater_habit habits[RCN_MAX_RATERS];
} phantom_job;

const char *rcn_phantom_check(const rcn_phantom_options *options) {
    if (!options) return "No options were given.";
    const rcn_geometry geometry =
        rcn_geometry_make(options->size[0], options->size[1], options->size[2]);
    const char *sentence = rcn_geometry_check(&geometry);
    if (sentence) return sentence;
    if (options->raters < 1 || options->raters > RCN_MAX_RATERS)
        return "A phantom must have 1 to 64 raters.";
    if (options->lesions < 1 || options->lesions > MAX_LESIONS)
        return "A phantom must have 1 to 64 lesions.";
    if (!(options->noise >= 0) || !isfinite(options->noise))
        return "A phantom's noise must not be negative.";
    if (!(options->disagreement >= 0) || !isfinite(options->disagreement))
        return "A phantom's disagreement must not be negative.";
    return NULL;
}

/* Signed distance to a lesion's border in voxels, near enough: positive inside. */
static double depth_in(const lesion *l, const double at[3], double uneven) {
    double sum = 0;
    for (int a = 0; a < 3; ++a) {
        const double d = (at[a] - l->center[a]) / l->stretch[a];
        sum += d * d;
    }
    return l->radius * (1 + 0.12 * uneven) - sqrt(sum);
}

/* One row. A rater moves the true border by a bias and an uneven hand, and leaves out lesions that
 * were not noticed. */
static void phantom_row(int64_t row, int thread, void *payload) {
    const phantom_job *job = payload;
    const rcn_phantom_options *options = job->options;
    const int64_t width = options->size[0];
    rcn_rng noise = rcn__rng_make(options->seed, 1000 + (uint64_t)row);
    double depth[MAX_LESIONS];
    const double y = (double)(row % options->size[1]), z = (double)(row / options->size[1]);
    double *shape = job->rows + thread * (2 + options->raters) * width, *texture = shape + width;
    double *hands = texture + width;
    field_row(shape, &job->shape, width, y, z);
    field_row(texture, &job->texture, width, y, z);
    for (int r = 0; r < options->raters; ++r)
        field_row(hands + r * width, &job->habits[r].hand, width, y, z);
    for (int64_t x = 0; x < width; ++x) {
        const int64_t voxel = x + width * row;
        const double at[3] = {(double)x, y, z};
        double signal = 0;
        for (int l = 0; l < options->lesions; ++l) {
            depth[l] = depth_in(&job->lesions[l], at, shape[x]);
            const double here = job->lesions[l].contrast / (1 + exp(-2 * depth[l] / SOFTNESS));
            if (here > signal) signal = here;
        }
        job->image[voxel] =
            (float)(signal + 0.06 * texture[x] + options->noise * rcn__rng_normal(&noise));
        for (int r = 0; r < options->raters; ++r) {
            const rater_habit *habit = &job->habits[r];
            const double shift =
                options->disagreement * (habit->bias + habit->uneven * hands[r * width + x]);
            uint8_t marked = 0;
            for (int l = 0; l < options->lesions; ++l)
                if (habit->noticed >> l & 1 && depth[l] + shift > 0) marked = 1;
            job->masks[r * job->voxels + voxel] = marked;
        }
    }
}

/* How much of a voxel is inside, seen through a border of `softness` voxels. */
static double inside(double depth, double softness) { return 1 / (1 + exp(-2 * depth / softness)); }

static double mix(double a, double b, double share) { return a + (b - a) * share; }

/* One row with several structures. What a rater draws over what: the third over the whole, the
 * ambiguous part over the halves. */
static void label_row(int64_t row, int thread, void *payload) {
    const phantom_job *job = payload;
    const rcn_phantom_options *options = job->options;
    const organ *body = &job->organ;
    const int64_t width = options->size[0];
    rcn_rng noise = rcn__rng_make(options->seed, 1000 + (uint64_t)row);
    const double y = (double)(row % options->size[1]), z = (double)(row / options->size[1]);
    double *shape = job->rows + thread * (2 + 2 * options->raters) * width;
    double *texture = shape + width, *hands = texture + width;
    double *inner = hands + options->raters * width;
    field_row(shape, &job->shape, width, y, z);
    field_row(texture, &job->texture, width, y, z);
    for (int r = 0; r < options->raters; ++r) {
        field_row(hands + r * width, &job->habits[r].hand, width, y, z);
        field_row(inner + r * width, &job->habits[r].inner, width, y, z);
    }
    for (int64_t x = 0; x < width; ++x) {
        const int64_t voxel = x + width * row;
        const double at[3] = {(double)x, y, z};
        const double whole = depth_in(&body->whole, at, shape[x]);
        const double third = depth_in(&body->third, at, -shape[x]);
        const double part = depth_in(&body->part, at, 0);
        double second = 0.04 * body->whole.radius * shape[x]; /* how far into the second half */
        for (int a = 0; a < 3; ++a) second += body->across[a] * (at[a] - body->whole.center[a]);
        double signal = mix(0.4, 0.7, inside(second, SOFTNESS));
        signal = mix(signal, 0.55, inside(part, SOFTNESS));
        signal *= inside(whole, SOFTNESS);
        signal = mix(signal, 1, inside(third, SOFTNESS));
        job->image[voxel] =
            (float)(signal + 0.06 * texture[x] + options->noise * rcn__rng_normal(&noise));
        for (int r = 0; r < options->raters; ++r) {
            const rater_habit *habit = &job->habits[r];
            const double shift =
                options->disagreement * (habit->bias + habit->uneven * hands[r * width + x]);
            const double border =
                options->disagreement * (habit->inner_bias + habit->uneven * inner[r * width + x]);
            uint8_t label = 0;
            if (third + shift > 0)
                label = 3;
            else if (whole + shift > 0 && part > 0)
                label = habit->other ? 2 : 1;
            else if (whole + shift > 0)
                label = second + border > 0 ? 2 : 1;
            job->masks[r * job->voxels + voxel] = label;
        }
    }
}

/* The shorter side of a slice. */
static double shortest_side(const rcn_phantom_options *options) {
    return (double)(options->size[0] < options->size[1] ? options->size[0] : options->size[1]);
}

/* Slices are usually thicker than pixels: what is shown is as flat as the volume. */
static double flatness(const rcn_phantom_options *options) {
    return options->size[2] > 1 ? fmin(1, 2 * (double)options->size[2] / shortest_side(options))
                                : 1;
}

static rcn_status create_job(phantom_job **out, float *image, uint8_t *masks, rcn_context *ctx,
                             const rcn_phantom_options *options) {
    rcn_status status;
    phantom_job *job = NULL;
    rcn__clear(ctx);
    const char *sentence = rcn_phantom_check(options);
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    RCN_ALLOC_ZERO(job, ctx, 1, "the phantom");
    job->options = options;
    job->voxels = options->size[0] * options->size[1] * options->size[2];
    job->image = image;
    job->masks = masks;
    *out = job;
done:
    return status;
}

static void make_lesions(phantom_job *job, rcn_rng *rng) {
    const rcn_phantom_options *options = job->options;
    job->lesion_count = options->lesions;
    for (int l = 0; l < options->lesions; ++l) {
        lesion *one = &job->lesions[l];
        one->radius = shortest_side(options) * (0.07 + 0.11 * rcn__rng_uniform(rng));
        one->contrast = 0.35 + 0.65 * rcn__rng_uniform(rng);
        if (l == 0) one->contrast = 1; /* something that nobody overlooks */
        for (int a = 0; a < 3; ++a) {
            one->stretch[a] =
                (0.8 + 0.4 * rcn__rng_uniform(rng)) * (a == 2 ? flatness(options) : 1);
            const double margin =
                fmin(one->radius * one->stretch[a] + 3, 0.5 * (double)(options->size[a] - 1));
            one->center[a] =
                margin + ((double)(options->size[a] - 1) - 2 * margin) * rcn__rng_uniform(rng);
        }
    }
}

static void make_organ(phantom_job *job, rcn_rng *rng) {
    const rcn_phantom_options *options = job->options;
    organ *body = &job->organ;
    const double shortest = shortest_side(options);
    const double angle = 6.283185307179586 * rcn__rng_uniform(rng);
    const double along[3] = {-sin(angle), cos(angle), 0}; /* the border between the halves */
    body->across[0] = cos(angle);
    body->across[1] = sin(angle);
    body->whole.radius = shortest * (0.24 + 0.06 * rcn__rng_uniform(rng));
    body->third.radius = body->whole.radius * (0.35 + 0.15 * rcn__rng_uniform(rng));
    body->part.radius = body->whole.radius * (0.25 + 0.1 * rcn__rng_uniform(rng));
    for (int a = 0; a < 3; ++a) {
        const double flat = a == 2 ? flatness(options) : 1;
        const double middle = 0.5 * (double)(options->size[a] - 1);
        body->whole.stretch[a] = (0.9 + 0.2 * rcn__rng_uniform(rng)) * flat;
        body->third.stretch[a] = body->part.stretch[a] = flat;
        body->whole.center[a] =
            middle + 0.1 * (rcn__rng_uniform(rng) - 0.5) * (double)(options->size[a] - 1);
        body->third.center[a] = body->whole.center[a] + 0.9 * body->whole.radius * along[a];
        body->part.center[a] = body->whole.center[a] - 0.4 * body->whole.radius * along[a];
    }
}

static void make_habits(phantom_job *job) {
    const rcn_phantom_options *options = job->options;
    const double shortest = shortest_side(options);
    const int planes = options->size[2] > 1;
    for (int r = 0; r < options->raters; ++r) {
        rater_habit *habit = &job->habits[r];
        rcn_rng person = rcn__rng_make(HABIT_SEED, 100 + (uint64_t)r);
        habit->bias = 1.4 * rcn__rng_normal(&person);
        habit->uneven = 0.8 + 0.8 * rcn__rng_uniform(&person);
        habit->care = 0.5 + 1.5 * rcn__rng_uniform(&person);
        rcn_rng today = rcn__rng_make(options->seed ^ HABIT_SEED << 32, 200 + (uint64_t)r);
        habit->hand = make_field(&today, shortest / 4, planes);
        for (int l = 0; l < job->lesion_count; ++l) {
            /* Contrast 1 is always seen; the faintest by a careless rater about every second time.
             */
            const double overlook =
                options->disagreement * pow(1 - job->lesions[l].contrast, habit->care);
            if (rcn__rng_uniform(&today) >= overlook) habit->noticed |= UINT64_C(1) << l;
        }
        habit->inner = make_field(&today, shortest / 4, planes);
        habit->inner_bias = 1.4 * rcn__rng_normal(&person);
        habit->other = rcn__rng_uniform(&today) < 0.4 * options->disagreement;
    }
}

/* The fields and habits, then the rows; `fields` of them along a row. */
static rcn_status draw(phantom_job *job, rcn_context *ctx, rcn_rng *rng, int64_t fields,
                       rcn__chunk_fn row) {
    rcn_status status;
    const rcn_phantom_options *options = job->options;
    const double shortest = shortest_side(options);
    const int planes = options->size[2] > 1;
    job->shape = make_field(rng, shortest / 3, planes);
    job->texture = make_field(rng, shortest / 5, planes);
    make_habits(job);
    RCN_ALLOC(job->rows, ctx, fields * options->size[0] * ctx->threads, "the phantom");
    RCN_TRY(
        rcn__for_chunks(ctx, "making the phantom", options->size[1] * options->size[2], row, job));
done:
    rcn__free(ctx, job->rows);
    return status;
}

/* A phantom of lesions and masks, or of an organ and labels. Each has a stream of its own. */
static rcn_status make(float *image, uint8_t *masks, rcn_context *ctx,
                       const rcn_phantom_options *options, int structures) {
    rcn_status status;
    phantom_job *job = NULL;
    if (!ctx) return RCN_EINVALID;
    RCN_TRY(create_job(&job, image, masks, ctx, options));
    rcn_rng rng = rcn__rng_make(options->seed, structures ? 2 : 1);
    structures ? make_organ(job, &rng) : make_lesions(job, &rng);
    RCN_TRY(draw(job, ctx, &rng, 2 + (structures ? 2 : 1) * options->raters,
                 structures ? label_row : phantom_row));
done:
    rcn__free(ctx, job);
    return status;
}

rcn_status rcn_phantom_make(float *image, uint8_t *masks, rcn_context *ctx,
                            const rcn_phantom_options *options) {
    return make(image, masks, ctx, options, 0);
}

rcn_status rcn_phantom_make_labels(float *image, uint8_t *labels, rcn_context *ctx,
                                   const rcn_phantom_options *options) {
    return make(image, labels, ctx, options, 1);
}
