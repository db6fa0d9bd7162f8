// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_predict.h"

#include <math.h>
#include <string.h>

#include "rcn_fastmath.h"
#include "rcn_net_private.h"
#include "rcn_parallel.h"

/* Slices that go through a 2-D network at a time, where memory allows. */
enum { MOST_IMAGES = 8 };

/* Width of the Gaussian in tiles, as in nnU-Net (Isensee et al. 2021): its weight at the edge of a
 * tile is e^-8 of that in the middle. */
static const double GAUSSIAN = 0.125;

static const rcn_predict_options DEFAULTS = RCN_PREDICT_OPTIONS_INIT;

const char *rcn_predict_check(const rcn_predict_options *options) {
    if (!options) return NULL;
    for (int a = 0; a < 3; ++a)
        if (options->tile[a] < 0) return "A tile cannot have a negative size.";
    if (!(options->overlap >= 0 && options->overlap <= 0.9))
        return "Tiles can overlap by 0 to 0.9 of their size.";
    if (options->flips != 0 && options->flips != 1) return "Flips must be 1 (on) or 0 (off).";
    return NULL;
}

/* ---- covering an image ----------------------------------------------------------------------- */

/* One axis: `count` tiles of `tile` voxels, and their weights, which add up to one at every voxel.
 * The weight of a tile in 3-D is the product of its weights along the axes, and so is the sum of
 * all tiles' weights; this is why no voxel needs to remember what it has received so far. */
typedef struct axis {
    int64_t size, tile, count;
    float *weights; /* (count, tile) */
} axis;

static int64_t axis_start(const axis *a, int64_t number) {
    if (a->count == 1) return 0;
    return (number * (a->size - a->tile) + (a->count - 1) / 2) / (a->count - 1);
}

static void axis_cover(axis *out, int64_t size, int64_t tile, double overlap) {
    out->size = size;
    out->tile = tile;
    out->count = 1;
    if (tile >= size) {
        out->tile = size;
        return;
    }
    const double step = fmax(1, floor((double)tile * (1 - overlap)));
    out->count = 1 + (int64_t)ceil((double)(size - tile) / step);
}

static rcn_status axis_weigh(axis *out, rcn_context *ctx) {
    rcn_status status;
    double *sums = NULL;
    RCN_ALLOC(out->weights, ctx, out->count * out->tile, "the weights of tiles");
    RCN_ALLOC_ZERO(sums, ctx, out->size, "the weights of tiles");
    for (int pass = 0; pass < 2; ++pass)
        for (int64_t t = 0; t < out->count; ++t) {
            const int64_t start = axis_start(out, t);
            for (int64_t i = 0; i < out->tile; ++i) {
                const double from_middle =
                    ((double)i + 0.5 - (double)out->tile / 2) / (GAUSSIAN * (double)out->tile);
                const double weight = exp(-from_middle * from_middle / 2);
                if (pass == 0)
                    sums[start + i] += weight;
                else
                    out->weights[t * out->tile + i] = (float)(weight / sums[start + i]);
            }
        }
done:
    rcn__free(ctx, sums);
    return status;
}

static int64_t padded_voxels(const rcn_net *net, const int64_t size[3]) {
    int64_t padded[3];
    rcn__net_padded_size(padded, net, size);
    return padded[0] * padded[1] * padded[2];
}

/* What a voxel of a tile costs in the network and in the buffers around it: measured on a small
 * tile, because what the network keeps grows with the voxels and a large one might not fit. */
static rcn_status measure_voxel(double *bytes, rcn_net *net, const int64_t size[3]) {
    rcn_status status;
    const int64_t side = net->dimensions == 3 ? 32 : 128;
    rcn_batch batch = {1, {1, 1, 1}};
    size_t measured = 0;
    for (int d = 0; d < net->dimensions; ++d) batch.size[d] = size[d] < side ? size[d] : side;
    RCN_TRY(rcn__net_measure(&measured, net, &batch, 0));
    *bytes = (double)measured / (double)padded_voxels(net, batch.size) +
             (double)sizeof(float) * (2.0 * net->options.channels + 2.0 * net->options.outputs);
done:
    return status;
}

/* The whole image, or halved along its longest axis until it fits; never below what the network's
 * deepest level can see. */
static rcn_status choose_tile(int64_t tile[3], double *voxel_bytes, rcn_net *net,
                              const int64_t size[3], const rcn_predict_options *options) {
    rcn_status status;
    const int64_t least = net->dimensions == 3 ? 32 : 64;
    RCN_TRY(measure_voxel(voxel_bytes, net, size));
    for (int d = 0; d < 3; ++d) {
        tile[d] = options->tile[d] && options->tile[d] < size[d] ? options->tile[d] : size[d];
        if (d == 2 && net->dimensions == 2) tile[d] = 1;
    }
    while ((double)padded_voxels(net, tile) * *voxel_bytes > (double)options->memory) {
        int longest = -1;
        for (int d = 0; d < net->dimensions; ++d)
            if (!options->tile[d] && tile[d] > least && (longest < 0 || tile[d] > tile[longest]))
                longest = d;
        if (longest < 0) break;
        /* A multiple of what the network pads to, so that no part of a tile is padding. */
        const int64_t multiple = net->multiple[2 - longest], half = (tile[longest] + 1) / 2;
        tile[longest] = (half + multiple - 1) / multiple * multiple;
        if (tile[longest] < least) tile[longest] = least;
    }
done:
    return status;
}

static rcn_status cover(axis axes[3], int *images, rcn_net *net, const int64_t size[3],
                        const rcn_predict_options *options) {
    rcn_status status;
    int64_t tile[3];
    double voxel_bytes = 0;
    RCN_TRY(choose_tile(tile, &voxel_bytes, net, size, options));
    for (int d = 0; d < 3; ++d) axis_cover(&axes[d], size[d], tile[d], options->overlap);
    const int64_t count = axes[0].count * axes[1].count * axes[2].count;
    const double fit = (double)options->memory / ((double)padded_voxels(net, tile) * voxel_bytes);
    *images = net->dimensions == 3 || fit < 2 ? 1 : fit < MOST_IMAGES ? (int)fit : MOST_IMAGES;
    if (*images > count) *images = (int)count;
done:
    return status;
}

static rcn_status check_size(rcn_context *ctx, const int64_t size[3]) {
    for (int d = 0; d < 3; ++d)
        if (!size || size[d] < 1)
            return rcn__fail(ctx, RCN_EINVALID,
                             "The image must have at least one voxel along each axis.");
    return RCN_OK;
}

rcn_status rcn_predict_plan(int64_t tile[3], int64_t *tiles, rcn_net *net, const int64_t size[3],
                            const rcn_predict_options *options) {
    rcn_status status;
    axis axes[3] = {{0, 0, 0, NULL}, {0, 0, 0, NULL}, {0, 0, 0, NULL}};
    int images = 0;
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (!tile) return rcn__fail(net->ctx, RCN_EINVALID, "The output tile is NULL.");
    if (rcn_predict_check(options))
        return rcn__fail(net->ctx, RCN_EINVALID, "%s", rcn_predict_check(options));
    RCN_TRY(check_size(net->ctx, size));
    RCN_TRY(cover(axes, &images, net, size, options ? options : &DEFAULTS));
    for (int d = 0; d < 3; ++d) tile[d] = axes[d].tile;
    if (tiles) *tiles = axes[0].count * axes[1].count * axes[2].count;
done:
    return status;
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* The part of the whole that is being done now, for whoever waits. */
typedef struct part {
    rcn_progress_fn progress;
    void *payload;
    double first, share;
} part;

static int report_part(double fraction, const char *stage, void *payload) {
    const part *p = payload;
    (void)stage;
    return p->progress ? p->progress(p->first + p->share * fraction, "predicting", p->payload) : 0;
}

/* Bit d of `flips`: axis d the other way round. Its own inverse. */
static void flip(float *out, const float *in, int64_t planes, const int64_t size[3], int flips) {
    for (int64_t p = 0; p < planes; ++p)
        for (int64_t z = 0; z < size[2]; ++z)
            for (int64_t y = 0; y < size[1]; ++y) {
                const int64_t from_z = flips & 4 ? size[2] - 1 - z : z;
                const int64_t from_y = flips & 2 ? size[1] - 1 - y : y;
                const float *from = in + ((p * size[2] + from_z) * size[1] + from_y) * size[0];
                for (int64_t x = 0; x < size[0]; ++x)
                    *out++ = from[flips & 1 ? size[0] - 1 - x : x];
            }
}

typedef struct blend_pass {
    float *levels; /* of the whole image */
    int count;     /* K + 1 */
    const axis *axes;
    const int64_t *number; /* which tile, along each axis */
    const float *tile;     /* (K + 1, Z, Y, X) */
    int flips;
    float share; /* of one flip */
} blend_pass;

/* One row of a tile into the output. */
static void blend_row(int64_t row, int thread, void *payload) {
    const blend_pass *pass = payload;
    (void)thread;
    const axis *x_axis = &pass->axes[0], *y_axis = &pass->axes[1], *z_axis = &pass->axes[2];
    const int64_t nx = x_axis->tile, ny = y_axis->tile, nz = z_axis->tile;
    const int64_t y = row % ny, z = row / ny;
    const float *wx = x_axis->weights + pass->number[0] * nx;
    const float weight = pass->share * y_axis->weights[pass->number[1] * ny + y] *
                         z_axis->weights[pass->number[2] * nz + z];
    float *out =
        pass->levels +
        pass->count * (axis_start(x_axis, pass->number[0]) +
                       x_axis->size * (axis_start(y_axis, pass->number[1]) + y +
                                       y_axis->size * (axis_start(z_axis, pass->number[2]) + z)));
    const float *in =
        pass->tile +
        ((pass->flips & 4 ? nz - 1 - z : z) * ny + (pass->flips & 2 ? ny - 1 - y : y)) * nx;
    for (int k = 0; k < pass->count; ++k, in += nx * ny * nz)
        for (int64_t x = 0; x < nx; ++x) {
            const float p = in[pass->flips & 1 ? nx - 1 - x : x];
            out[x * pass->count + k] += weight * wx[x] * p;
        }
}

/* Weights add up to one but for rounding, which may lift a sure level above 1: then it is no
 * probability. None is larger than the sum of all, so dividing by that mends it. */
typedef struct finish_pass {
    float *levels;
    int64_t voxels;
    int count;
} finish_pass;

static void finish_chunk(int64_t chunk, int thread, void *payload) {
    const finish_pass *pass = payload;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    for (; at < end; ++at) {
        float *levels = pass->levels + at * pass->count, sum = 0;
        for (int k = 0; k < pass->count; ++k) sum += levels[k];
        for (int k = 0; k < pass->count; ++k) levels[k] /= sum;
    }
}

/* ---- an image -------------------------------------------------------------------------------- */

static rcn_status check_fit(rcn_net *net, const rcn_loss *loss, const float *parameters,
                            const rcn_scale *scale, const rcn_channel *channels) {
    rcn_context *ctx = net->ctx;
    if (!loss || !scale || !channels)
        return rcn__fail(ctx, RCN_EINVALID, "No image or no loss was given.");
    if (scale->channels != net->options.channels)
        return rcn__fail(ctx, RCN_EINVALID, "The image has %d channel%s, but the network takes %d.",
                         scale->channels, scale->channels == 1 ? "" : "s", net->options.channels);
    if (rcn_loss_channels(loss) != net->options.outputs)
        return rcn__fail(ctx, RCN_EINVALID,
                         "The loss is for %d outputs per voxel, but the network gives %d.",
                         rcn_loss_channels(loss), net->options.outputs);
    if (rcn_loss_parameters(loss) && !parameters)
        return rcn__fail(ctx, RCN_EINVALID, "The parameters of the loss are missing.");
    for (int c = 0; c < scale->channels; ++c) {
        const char *sentence = rcn_image_check(&channels[c].image);
        if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
        if (memcmp(channels[c].image.geometry.size, channels[0].image.geometry.size,
                   sizeof channels[0].image.geometry.size))
            return rcn__fail(ctx, RCN_EINVALID, "Channel %d and the first have different sizes.",
                             c + 1);
    }
    return RCN_OK;
}

static void tile_number(int64_t number[3], const axis axes[3], int64_t index) {
    number[0] = index % axes[0].count;
    number[1] = index / axes[0].count % axes[1].count;
    number[2] = index / axes[0].count / axes[1].count;
}

/* The tiles first ... first + count - 1, normalized. */
static void take_tiles(float *boxes, const axis axes[3], int64_t first, int64_t count,
                       const rcn_scale *scale, const rcn_channel *channels) {
    const int64_t tile[3] = {axes[0].tile, axes[1].tile, axes[2].tile};
    const int64_t floats = tile[0] * tile[1] * tile[2] * scale->channels;
    for (int64_t b = 0; b < count; ++b) {
        int64_t number[3], start[3];
        tile_number(number, axes, first + b);
        for (int d = 0; d < 3; ++d) start[d] = axis_start(&axes[d], number[d]);
        rcn_normalize_box(boxes + b * floats, scale, channels, start, tile);
    }
}

/* What is wanted of each voxel: LEVELS, MEANS, or the levels of a structure (1 ... C). */
enum { LEVELS = -1, MEANS = 0 };

static int wanted_count(const rcn_loss *loss, int wanted) {
    return wanted == MEANS ? rcn_loss_structures(loss) + 1 : rcn_loss_raters(loss) + 1;
}

/* out (images, levels or means, Z, Y, X) of normalized tiles. Numbers that are not finite would
 * spread through the blending. */
static rcn_status predict_tiles(float *out, float *logits, rcn_net *net, const rcn_loss *loss,
                                int wanted, const float *parameters, const float *images,
                                const rcn_batch *batch, part *progress) {
    rcn_status status;
    rcn_context *ctx = net->ctx;
    const int64_t voxels = batch->size[0] * batch->size[1] * batch->size[2];
    RCN_TRY(rcn_net_predict(logits, net, images, batch));
    if (!rcn__all_finite(logits, batch->images * voxels * net->options.outputs))
        RCN_TRY(rcn__fail(ctx, RCN_EDATA,
                          "The network's outputs are not finite; its weights cannot be used on "
                          "this image."));
    progress->first += progress->share; /* the rest is nothing beside it */
    progress->share = 0;
    const int64_t count = batch->images;
    RCN_TRY(wanted == LEVELS  ? rcn_loss_levels(out, loss, ctx, logits, parameters, count, voxels)
            : wanted == MEANS ? rcn_loss_means(out, loss, ctx, logits, parameters, count, voxels)
                              : rcn_loss_structure_levels(out, loss, ctx, wanted, logits,
                                                          parameters, count, voxels));
    if (!rcn__all_finite(out, count * voxels * wanted_count(loss, wanted)))
        RCN_TRY(rcn__fail(ctx, RCN_EDATA,
                          "The levels are not finite; the model's weights cannot be used on this "
                          "image."));
done:
    return status;
}

static rcn_status predict(float *levels, rcn_net *net, const rcn_loss *loss, int wanted,
                          const float *parameters, const rcn_scale *scale,
                          const rcn_channel *channels, const rcn_predict_options *options) {
    rcn_status status;
    axis axes[3] = {{0, 0, 0, NULL}, {0, 0, 0, NULL}, {0, 0, 0, NULL}};
    float *boxes = NULL, *flipped = NULL, *logits = NULL, *probabilities = NULL;
    int most = 0;
    if (!net) return RCN_EINVALID;
    rcn_context *ctx = net->ctx;
    part progress = {ctx->progress, ctx->progress_payload, 0, 0};
    rcn__clear(ctx);
    if (!options) options = &DEFAULTS;
    if (!levels) return rcn__fail(ctx, RCN_EINVALID, "The output levels is NULL.");
    if (rcn_predict_check(options))
        return rcn__fail(ctx, RCN_EINVALID, "%s", rcn_predict_check(options));
    RCN_TRY(check_fit(net, loss, parameters, scale, channels));
    const int64_t *size = channels[0].image.geometry.size;
    RCN_TRY(cover(axes, &most, net, size, options));
    for (int d = 0; d < 3; ++d) RCN_TRY(axis_weigh(&axes[d], ctx));

    const int64_t tile[3] = {axes[0].tile, axes[1].tile, axes[2].tile};
    const int64_t voxels = tile[0] * tile[1] * tile[2],
                  tiles = axes[0].count * axes[1].count * axes[2].count;
    const int count = wanted_count(loss, wanted);
    const int all_flips = options->flips ? 1 << net->dimensions : 1;
    const int64_t image_floats = voxels * net->options.channels;
    RCN_ALLOC(boxes, ctx, most * image_floats, "the tiles of an image");
    if (all_flips > 1) RCN_ALLOC(flipped, ctx, most * image_floats, "the tiles of an image");
    RCN_ALLOC(logits, ctx, most * voxels * net->options.outputs, "the logits of a tile");
    RCN_ALLOC(probabilities, ctx, most * voxels * count, "the levels of a tile");
    memset(levels, 0,
           sizeof *levels * (size_t)(rcn_geometry_voxels(&channels[0].image.geometry) * count));

    if (progress.progress) rcn_context_set_progress(ctx, report_part, &progress);
    for (int64_t first = 0; first < tiles; first += most) {
        const rcn_batch batch = {tiles - first < most ? tiles - first : most,
                                 {tile[0], tile[1], tile[2]}};
        take_tiles(boxes, axes, first, batch.images, scale, channels);
        for (int flips = 0; flips < all_flips; ++flips) {
            const float *images = boxes;
            progress.share = (double)batch.images / (double)tiles / all_flips;
            progress.first = (double)first / (double)tiles + flips * progress.share;
            if (flips) {
                flip(flipped, boxes, batch.images * net->options.channels, tile, flips);
                images = flipped;
            }
            RCN_TRY(predict_tiles(probabilities, logits, net, loss, wanted, parameters, images,
                                  &batch, &progress));
            for (int64_t b = 0; b < batch.images; ++b) {
                int64_t number[3];
                blend_pass pass = {levels,
                                   count,
                                   axes,
                                   number,
                                   probabilities + b * voxels * count,
                                   flips,
                                   1.0f / (float)all_flips};
                tile_number(number, axes, first + b);
                RCN_TRY(rcn__for_chunks(ctx, "predicting", tile[1] * tile[2], blend_row, &pass));
            }
        }
    }
    if (tiles > 1 || all_flips > 1) {
        finish_pass pass = {levels, rcn_geometry_voxels(&channels[0].image.geometry), count};
        RCN_TRY(rcn__for_chunks(ctx, "predicting", rcn__chunk_count(pass.voxels, RCN_CHUNK),
                                finish_chunk, &pass));
    }
done:
    rcn_context_set_progress(ctx, progress.progress, progress.payload);
    for (int d = 0; d < 3; ++d) rcn__free(ctx, axes[d].weights);
    rcn__free(ctx, boxes);
    rcn__free(ctx, flipped);
    rcn__free(ctx, logits);
    rcn__free(ctx, probabilities);
    return status;
}

rcn_status rcn_predict_levels(float *levels, rcn_net *net, const rcn_loss *loss,
                              const float *parameters, const rcn_scale *scale,
                              const rcn_channel *channels, const rcn_predict_options *options) {
    return predict(levels, net, loss, LEVELS, parameters, scale, channels, options);
}

rcn_status rcn_predict_means(float *means, rcn_net *net, const rcn_loss *loss,
                             const float *parameters, const rcn_scale *scale,
                             const rcn_channel *channels, const rcn_predict_options *options) {
    return predict(means, net, loss, MEANS, parameters, scale, channels, options);
}

rcn_status rcn_predict_structure(float *levels, rcn_net *net, const rcn_loss *loss, int structure,
                                 const float *parameters, const rcn_scale *scale,
                                 const rcn_channel *channels, const rcn_predict_options *options) {
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (loss && (structure < 1 || structure > rcn_loss_structures(loss)))
        return rcn__fail(net->ctx, RCN_EINVALID, "Structure %d does not exist; the model has %d.",
                         structure, rcn_loss_structures(loss));
    return predict(levels, net, loss, structure, parameters, scale, channels, options);
}

/* ---- what levels tell ------------------------------------------------------------------------ */

typedef struct map_pass {
    void *out;
    const float *in;
    int64_t voxels;
    int components;
    double threshold;
    const uint8_t *values;
} map_pass;

static void entropy_chunk(int64_t chunk, int thread, void *payload) {
    const map_pass *pass = payload;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    for (; at < end; ++at) {
        double sum = 0;
        for (int k = 0; k < pass->components; ++k) {
            const double p = pass->in[at * pass->components + k];
            if (p > 0) sum -= p * log2(p);
        }
        ((float *)pass->out)[at] = sum > 0 ? (float)sum : 0.0f;
    }
}

static void mask_chunk(int64_t chunk, int thread, void *payload) {
    const map_pass *pass = payload;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    for (; at < end; ++at) ((uint8_t *)pass->out)[at] = (double)pass->in[at] >= pass->threshold;
}

static void label_chunk(int64_t chunk, int thread, void *payload) {
    const map_pass *pass = payload;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    for (; at < end; ++at) {
        const float *means = pass->in + at * pass->components;
        int most = 0;
        for (int l = 1; l < pass->components; ++l)
            if (means[l] > means[most]) most = l;
        ((uint8_t *)pass->out)[at] = pass->values ? pass->values[most] : (uint8_t)most;
    }
}

static rcn_status run_map(rcn_context *ctx, const rcn_image *image, map_pass *pass, int least,
                          const char *stage, rcn__chunk_fn body) {
    rcn__clear(ctx);
    const char *sentence = rcn_image_check(image);
    if (!pass->out) sentence = "The output result is NULL.";
    if (!sentence && (image->type != RCN_FLOAT32 || image->components < least))
        sentence = "Probabilities must be float32.";
    if (sentence) return rcn__fail(ctx, RCN_EINVALID, "%s", sentence);
    pass->in = image->data;
    pass->components = image->components;
    pass->voxels = rcn_geometry_voxels(&image->geometry);
    return rcn__for_chunks(ctx, stage, rcn__chunk_count(pass->voxels, RCN_CHUNK), body, pass);
}

rcn_status rcn_predict_entropy(float *out, rcn_context *ctx, const rcn_image *levels) {
    map_pass pass = {out, NULL, 0, 0, 0, NULL};
    return ctx ? run_map(ctx, levels, &pass, 2, "measuring uncertainty", entropy_chunk)
               : RCN_EINVALID;
}

rcn_status rcn_predict_mask(uint8_t *out, rcn_context *ctx, const rcn_image *probability,
                            double threshold) {
    map_pass pass = {out, NULL, 0, 0, threshold, NULL};
    if (ctx && probability && probability->components != 1) {
        rcn__clear(ctx);
        return rcn__fail(ctx, RCN_EINVALID, "A mask needs one probability per voxel.");
    }
    return ctx ? run_map(ctx, probability, &pass, 1, "cutting the mask", mask_chunk) : RCN_EINVALID;
}

rcn_status rcn_predict_labels(uint8_t *out, rcn_context *ctx, const rcn_image *means,
                              const uint8_t *values) {
    map_pass pass = {out, NULL, 0, 0, 0, values};
    if (ctx && means && means->components > RCN_MAX_STRUCTURES + 1) {
        rcn__clear(ctx);
        return rcn__fail(ctx, RCN_EINVALID, "There are %d labels; at most %d are possible.",
                         means->components, RCN_MAX_STRUCTURES + 1);
    }
    return ctx ? run_map(ctx, means, &pass, 2, "finding the labels", label_chunk) : RCN_EINVALID;
}
