// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_predict.h"

#include <math.h>
#include <string.h>

#include "rcn_calib_private.h"
#include "rcn_loss_private.h"
#include "rcn_net_private.h"
#include "rcn_parallel.h"

/* Slices that go through a 2-D network at a time, where memory allows. */
enum { MOST_IMAGES = 8 };

/* Voxels that are handed over at a time where that is free to choose: their levels stay in the
 * cache until they are read, and every thread has some of them. */
enum { SLAB_VOXELS = 1 << 18 };

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

typedef struct box_pass {
    float *out; /* (tiles, channels, Z, Y, X) */
    const axis *axes;
    int64_t first_tile;
    const rcn_scale *scale;
    const rcn_channel *channels;
    const float *from; /* boxes to be flipped */
    int flips;
} box_pass;

static void tile_number(int64_t number[3], const axis axes[3], int64_t index) {
    number[0] = index % axes[0].count;
    number[1] = index / axes[0].count % axes[1].count;
    number[2] = index / axes[0].count / axes[1].count;
}

/* Rows of a plane that are one chunk of work, and how many chunks a plane makes. */
static int64_t chunk_rows(const axis *axes) {
    return axes[0].tile < RCN_CHUNK ? RCN_CHUNK / axes[0].tile : 1;
}

static int64_t plane_chunks(const axis *axes) {
    return rcn__chunk_count(axes[1].tile, chunk_rows(axes));
}

/* Some rows of one channel of a tile, normalized. */
static void take_rows(int64_t chunk, int thread, void *payload) {
    const box_pass *pass = payload;
    const axis *axes = pass->axes;
    const int64_t plane = chunk / plane_chunks(axes), box = plane / axes[2].tile;
    const int c = (int)(box % pass->scale->channels);
    rcn_scale own = *pass->scale;
    int64_t number[3], start[3], first, end;
    (void)thread;
    rcn__chunk_range(&first, &end, chunk % plane_chunks(axes), axes[1].tile, chunk_rows(axes));
    own.channels = 1;
    own.shift[0] = pass->scale->shift[c];
    own.factor[0] = pass->scale->factor[c];
    tile_number(number, axes, pass->first_tile + box / pass->scale->channels);
    for (int d = 0; d < 3; ++d) start[d] = axis_start(&axes[d], number[d]);
    start[1] += first;
    start[2] += plane % axes[2].tile;
    const int64_t size[3] = {axes[0].tile, end - first, 1};
    rcn_normalize_box(pass->out + (plane * axes[1].tile + first) * size[0], &own,
                      &pass->channels[c], start, size);
}

/* Some rows of what has been taken; bit d of `flips`: axis d the other way round. */
static void flip_rows(int64_t chunk, int thread, void *payload) {
    const box_pass *pass = payload;
    const int64_t nx = pass->axes[0].tile, ny = pass->axes[1].tile, nz = pass->axes[2].tile;
    const int64_t plane = chunk / plane_chunks(pass->axes), z = plane % nz;
    const int64_t other = pass->flips & 4 ? plane - z + nz - 1 - z : plane;
    int64_t y, end;
    (void)thread;
    rcn__chunk_range(&y, &end, chunk % plane_chunks(pass->axes), ny, chunk_rows(pass->axes));
    for (; y < end; ++y) {
        float *out = pass->out + (plane * ny + y) * nx;
        const float *from = pass->from + (other * ny + (pass->flips & 2 ? ny - 1 - y : y)) * nx;
        for (int64_t x = 0; x < nx; ++x) out[x] = from[pass->flips & 1 ? nx - 1 - x : x];
    }
}

/* ---- what tiles give, in its place ----------------------------------------------------------- */

/* Where levels (or means) go: `levels` holds the positions begin ... begin + room - 1 along the
 * slowest axis of the image, all of them where the caller wants all, otherwise a slab. */
typedef struct place {
    float *levels;
    int count; /* per voxel */
    int slow;
    int64_t begin, room;
    int64_t end; /* up to where tiles have put something */
    int64_t row; /* voxels of one position */
    const axis *axes;
    int once;   /* no voxel is in two tiles: written rather than added up */
    int divide; /* by their sum, see finish_chunk() */
    int64_t first_tile;
    int flips;
    float share; /* of one flip */
} place;

/* Numbers of neighbors in a row of the image, next to each other by voxel. */
static void put_run(float *out, const place *to, const float *values, int64_t n) {
    for (int k = 0; k < to->count; ++k, values += RCN_LOSS_LANES)
        for (int64_t i = 0; i < n; ++i) out[i * to->count + k] = values[i];
    if (!to->divide) return;
    for (int64_t i = 0; i < n; ++i, out += to->count) {
        float sum = 0;
        for (int k = 0; k < to->count; ++k) sum += out[k];
        for (int k = 0; k < to->count; ++k) out[k] /= sum;
    }
}

/* The same, weighted and added to what is there; step -1: values go from the right to the left. */
static void add_run(float *out, const place *to, const float *values, int64_t n, float weight,
                    const float *wx, int step) {
    for (int k = 0; k < to->count; ++k, values += RCN_LOSS_LANES)
        for (int64_t i = 0; i < n; ++i)
            out[i * step * to->count + k] += weight * wx[i * step] * values[i];
}

static void put_block(const float *values, int64_t sample, int64_t first, int count,
                      void *payload) {
    const place *to = payload;
    const axis *axes = to->axes;
    const int64_t nx = axes[0].tile, ny = axes[1].tile, nz = axes[2].tile;
    int64_t number[3], start[3];
    tile_number(number, axes, to->first_tile + sample);
    for (int d = 0; d < 3; ++d) start[d] = axis_start(&axes[d], number[d]);
    start[to->slow] -= to->begin;
    for (int64_t done = 0; done < count;) {
        const int64_t voxel = first + done;
        const int64_t in_x = voxel % nx, in_y = voxel / nx % ny, in_z = voxel / nx / ny;
        const int64_t x = to->flips & 1 ? nx - 1 - in_x : in_x;
        const int64_t y = to->flips & 2 ? ny - 1 - in_y : in_y;
        const int64_t z = to->flips & 4 ? nz - 1 - in_z : in_z;
        const int64_t n = count - done < nx - in_x ? count - done : nx - in_x;
        const int64_t rows = to->slow == 2 ? axes[1].size : to->room;
        float *out =
            to->levels +
            to->count * (start[0] + x + axes[0].size * (start[1] + y + rows * (start[2] + z)));
        if (to->once)
            put_run(out, to, values + done, n);
        else
            add_run(out, to, values + done, n,
                    to->share * axes[1].weights[number[1] * ny + y] *
                        axes[2].weights[number[2] * nz + z],
                    axes[0].weights + number[0] * nx + x, to->flips & 1 ? -1 : 1);
        done += n;
    }
}

/* A pass over voxels of the place. */
typedef struct place_pass {
    const place *to;
    float *levels;
    int64_t voxels;
} place_pass;

static void clear_chunk(int64_t chunk, int thread, void *payload) {
    const place_pass *pass = payload;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    memset(pass->levels + at * pass->to->count, 0,
           (size_t)((end - at) * pass->to->count) * sizeof *pass->levels);
}

/* Weights add up to one but for rounding, which may lift a sure level above 1: then it is no
 * probability. None is larger than the sum of all, so dividing by that mends it. */
static void finish_chunk(int64_t chunk, int thread, void *payload) {
    const place_pass *pass = payload;
    const int count = pass->to->count;
    int64_t at, end;
    (void)thread;
    rcn__chunk_range(&at, &end, chunk, pass->voxels, RCN_CHUNK);
    for (; at < end; ++at) {
        float *levels = pass->levels + at * count, sum = 0;
        for (int k = 0; k < count; ++k) sum += levels[k];
        for (int k = 0; k < count; ++k) levels[k] /= sum;
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

/* Everything about one call. */
typedef struct job {
    rcn_net *net;
    const rcn_scale *scale;
    const rcn_channel *channels;
    axis axes[3];
    int all_flips;
    rcn__loss_source source;
    place to;
    rcn_levels_fn take; /* NULL: all levels are the caller's */
    void *payload;
    part progress;
} job;

/* Voxels of a tile. */
static int64_t tile_voxels(const job *j) {
    return j->axes[0].tile * j->axes[1].tile * j->axes[2].tile;
}

/* Where a tile begins along the slowest axis. */
static int64_t tile_begin(const job *j, int64_t index) {
    int64_t number[3];
    tile_number(number, j->axes, index);
    return axis_start(&j->axes[j->to.slow], number[j->to.slow]);
}

/* Up to where all is known when this tile is the next one: tiles follow each other along the
 * slowest axis. */
static int64_t known_before(const job *j, int64_t index, int64_t tiles) {
    return index < tiles ? tile_begin(j, index) : j->axes[j->to.slow].size;
}

/* Whether the numbers of each tile are one stretch of the image, and of no other tile. */
static int is_stretch(const job *j) {
    for (int d = 0; d < 3; ++d)
        if (d != j->to.slow && j->axes[d].count > 1) return 0;
    return j->to.once;
}

/* How many tiles are read into the place at a time, or else how many positions of one tile: neither
 * depends on the number of threads. */
static void stretches(int64_t *tiles, int64_t *positions, const job *j) {
    const int64_t most = SLAB_VOXELS / j->to.row > 1 ? SLAB_VOXELS / j->to.row : 1;
    const int64_t tile = j->axes[j->to.slow].tile;
    *tiles = most > tile ? most / tile : 1;
    *positions = most < tile ? most : tile;
}

/* Positions that the place must have room for. */
static int64_t needed_room(const job *j, int64_t tiles, int64_t most) {
    const axis *slow = &j->axes[j->to.slow];
    int64_t room = 0, begin = 0;
    if (!j->take) return slow->size;
    if (is_stretch(j)) {
        int64_t count, positions;
        stretches(&count, &positions, j);
        if (count > most) count = most;
        return count * positions;
    }
    for (int64_t first = 0; first < tiles; first += most) {
        const int64_t next = tiles - first < most ? tiles : first + most;
        const int64_t end = tile_begin(j, next - 1) + slow->tile;
        if (end - begin > room) room = end - begin;
        begin = known_before(j, next, tiles);
    }
    return room;
}

/* The place's voxels up to position `end` go to the caller; what tiles have put behind it moves to
 * the beginning. */
static rcn_status hand_over(job *j, int64_t end) {
    rcn_status status;
    rcn_context *ctx = j->net->ctx;
    place *to = &j->to;
    const int64_t positions = end - to->begin, floats = to->row * to->count;
    place_pass pass = {to, to->levels, positions * to->row};
    if (positions <= 0) return RCN_OK;
    if (to->divide && !to->once)
        RCN_TRY(rcn__for_chunks(ctx, "predicting", rcn__chunk_count(pass.voxels, RCN_CHUNK),
                                finish_chunk, &pass));
    if (!j->take) return RCN_OK;
    rcn_image slab = {to->levels, RCN_FLOAT32, to->count, j->channels[0].image.geometry};
    slab.geometry.size[to->slow] = positions;
    RCN_TRY(j->take(&slab, to->begin * to->row, j->payload));
    const int64_t kept = to->end - end;
    memmove(to->levels, to->levels + positions * floats,
            (size_t)(kept * floats) * sizeof *to->levels);
    to->begin = end;
    if (!to->once) {
        pass.levels = to->levels + kept * floats;
        RCN_TRY(rcn__for_chunks(ctx, "predicting", rcn__chunk_count(pass.voxels, RCN_CHUNK),
                                clear_chunk, &pass));
    }
done:
    return status;
}

/* Puts numbers first ... end - 1 of each of the tiles that the source has into their place. Such
 * that are not finite would spread through the blending. */
static rcn_status put_tiles(job *j, int64_t first_tile, const float *logits, int64_t tiles,
                            int64_t first, int64_t end) {
    rcn_status status;
    rcn_context *ctx = j->net->ctx;
    int bad = 0;
    rcn__loss_source source = j->source;
    source.logits = logits;
    source.samples = tiles;
    source.first = first;
    source.end = end;
    j->to.first_tile = first_tile;
    RCN_TRY(rcn__loss_read(&bad, ctx, &source, put_block, &j->to));
    if (bad & RCN_BAD_LOGITS)
        RCN_TRY(rcn__fail(ctx, RCN_EDATA,
                          "The network's outputs are not finite; its weights cannot be used on "
                          "this image."));
    if (bad & RCN_BAD_RESULTS)
        RCN_TRY(rcn__fail(ctx, RCN_EDATA,
                          "The levels are not finite; the model's weights cannot be used on this "
                          "image."));
done:
    return status;
}

/* What a batch of tiles gave, straight to the caller, while it is in the cache. */
static rcn_status hand_over_stretches(job *j, int64_t first, int64_t count) {
    rcn_status status = RCN_OK;
    const int64_t tile = j->axes[j->to.slow].tile,
                  floats = j->source.voxels * j->net->options.outputs;
    int64_t together, positions;
    stretches(&together, &positions, j);
    for (int64_t b = 0; b < count; b += together) {
        const int64_t tiles = count - b < together ? count - b : together;
        for (int64_t p = 0; p < tile; p += positions) {
            const int64_t n = tile - p < positions ? tile - p : positions;
            RCN_TRY(put_tiles(j, first + b, j->source.logits + b * floats, tiles, p * j->to.row,
                              (p + n) * j->to.row));
            j->to.end = tile_begin(j, first + b + tiles - 1) + p + n;
            RCN_TRY(hand_over(j, j->to.end));
        }
    }
done:
    return status;
}

/* One batch of tiles, in all flips that are wanted. */
static rcn_status predict_batch(job *j, float *boxes, float *flipped, float *logits, int64_t first,
                                int64_t count, int64_t tiles) {
    rcn_status status = RCN_OK;
    rcn_context *ctx = j->net->ctx;
    const rcn_batch batch = {count, {j->axes[0].tile, j->axes[1].tile, j->axes[2].tile}};
    const int64_t chunks =
        count * j->net->options.channels * j->axes[2].tile * plane_chunks(j->axes);
    box_pass take = {boxes, j->axes, first, j->scale, j->channels, NULL, 0};
    RCN_TRY(rcn__for_chunks(ctx, "predicting", chunks, take_rows, &take));
    for (int flips = 0; flips < j->all_flips; ++flips) {
        const float *images = boxes;
        if (flips) {
            box_pass turn = {flipped, j->axes, first, j->scale, j->channels, boxes, flips};
            RCN_TRY(rcn__for_chunks(ctx, "predicting", chunks, flip_rows, &turn));
            images = flipped;
        }
        j->progress.share = (double)count / (double)tiles / j->all_flips;
        j->progress.first = (double)first / (double)tiles + flips * j->progress.share;
        RCN_TRY(rcn_net_predict(logits, j->net, images, &batch));
        j->progress.first += j->progress.share; /* the rest is nothing beside it */
        j->progress.share = 0;
        j->to.flips = flips;
        j->source.logits = logits;
        if (j->take && is_stretch(j))
            RCN_TRY(hand_over_stretches(j, first, count));
        else
            for (int64_t b = 0; b < (j->to.once ? 1 : count); ++b) /* overlapping ones in turn */
                RCN_TRY(put_tiles(j, first + b,
                                  logits + b * j->source.voxels * j->net->options.outputs,
                                  j->to.once ? count : 1, 0, j->source.voxels));
    }
done:
    return status;
}

static void set_place(job *j, const int64_t size[3], int64_t tiles) {
    place *to = &j->to;
    to->slow = size[2] > 1 ? 2 : 1;
    to->row = size[0] * (to->slow == 2 ? size[1] : 1);
    to->axes = j->axes;
    to->divide = tiles > 1 || j->all_flips > 1;
    to->share = 1.0f / (float)j->all_flips;
    to->once = j->all_flips == 1;
    for (int d = 0; d < 3; ++d) to->once &= j->axes[d].count * j->axes[d].tile == size[d];
}

/* Into `levels`, or where `take` takes them. */
static rcn_status predict(float *levels, rcn_levels_fn take, void *payload, rcn_net *net,
                          const rcn_loss *loss, int wanted, const float *parameters,
                          const rcn_scale *scale, const rcn_channel *channels,
                          const rcn_predict_options *options) {
    rcn_status status;
    float *boxes = NULL, *flipped = NULL, *logits = NULL, *slab = NULL;
    int most = 0;
    if (!net) return RCN_EINVALID;
    rcn_context *ctx = net->ctx;
    job j = {.net = net, .scale = scale, .channels = channels, .take = take, .payload = payload};
    j.progress.progress = ctx->progress;
    j.progress.payload = ctx->progress_payload;
    rcn__clear(ctx);
    if (!options) options = &DEFAULTS;
    if (!levels && !take) return rcn__fail(ctx, RCN_EINVALID, "The output levels is NULL.");
    if (rcn_predict_check(options))
        return rcn__fail(ctx, RCN_EINVALID, "%s", rcn_predict_check(options));
    RCN_TRY(check_fit(net, loss, parameters, scale, channels));
    if (wanted == RCN_WANT_LEVELS && rcn_loss_structures(loss) > 1)
        RCN_TRY(rcn__fail(ctx, RCN_EINVALID,
                          "Each of the %d structures has its own levels; choose one structure.",
                          rcn_loss_structures(loss)));
    RCN_TRY(cover(j.axes, &most, net, channels[0].image.geometry.size, options));
    for (int d = 0; d < 3; ++d) RCN_TRY(axis_weigh(&j.axes[d], ctx));

    const int64_t voxels = tile_voxels(&j);
    const int64_t tiles = j.axes[0].count * j.axes[1].count * j.axes[2].count;
    const int count =
        (wanted == RCN_WANT_MEANS ? rcn_loss_structures(loss) : rcn_loss_raters(loss)) + 1;
    const int64_t image_floats = voxels * net->options.channels;
    j.all_flips = options->flips ? 1 << net->dimensions : 1;
    j.source.loss = loss;
    j.source.parameters = parameters;
    j.source.voxels = voxels;
    j.source.wanted = wanted;
    j.to.levels = levels;
    j.to.count = count;
    set_place(&j, channels[0].image.geometry.size, tiles);
    j.to.room = needed_room(&j, tiles, most);
    RCN_ALLOC(boxes, ctx, most * image_floats, "the tiles of an image");
    if (j.all_flips > 1) RCN_ALLOC(flipped, ctx, most * image_floats, "the tiles of an image");
    RCN_ALLOC(logits, ctx, most * voxels * net->options.outputs, "the logits of a tile");
    if (take) {
        RCN_ALLOC(slab, ctx, j.to.room * j.to.row * count, "the levels of a slab");
        j.to.levels = slab;
    }

    if (j.progress.progress) rcn_context_set_progress(ctx, report_part, &j.progress);
    if (!j.to.once) {
        place_pass all = {&j.to, j.to.levels, j.to.room * j.to.row};
        RCN_TRY(rcn__for_chunks(ctx, "predicting", rcn__chunk_count(all.voxels, RCN_CHUNK),
                                clear_chunk, &all));
    }
    for (int64_t first = 0; first < tiles; first += most) {
        const int64_t batch = tiles - first < most ? tiles - first : most;
        RCN_TRY(predict_batch(&j, boxes, flipped, logits, first, batch, tiles));
        j.to.end = tile_begin(&j, first + batch - 1) + j.axes[j.to.slow].tile;
        if (take) RCN_TRY(hand_over(&j, known_before(&j, first + batch, tiles)));
    }
    if (!take) RCN_TRY(hand_over(&j, j.to.room));
done:
    rcn_context_set_progress(ctx, j.progress.progress, j.progress.payload);
    for (int d = 0; d < 3; ++d) rcn__free(ctx, j.axes[d].weights);
    rcn__free(ctx, boxes);
    rcn__free(ctx, flipped);
    rcn__free(ctx, logits);
    rcn__free(ctx, slab);
    return status;
}

rcn_status rcn_predict_levels(float *levels, rcn_net *net, const rcn_loss *loss,
                              const float *parameters, const rcn_scale *scale,
                              const rcn_channel *channels, const rcn_predict_options *options) {
    return predict(levels, NULL, NULL, net, loss, RCN_WANT_LEVELS, parameters, scale, channels,
                   options);
}

rcn_status rcn_predict_means(float *means, rcn_net *net, const rcn_loss *loss,
                             const float *parameters, const rcn_scale *scale,
                             const rcn_channel *channels, const rcn_predict_options *options) {
    return predict(means, NULL, NULL, net, loss, RCN_WANT_MEANS, parameters, scale, channels,
                   options);
}

rcn_status rcn_predict_structure(float *levels, rcn_net *net, const rcn_loss *loss, int structure,
                                 const float *parameters, const rcn_scale *scale,
                                 const rcn_channel *channels, const rcn_predict_options *options) {
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (loss && (structure < 1 || structure > rcn_loss_structures(loss)))
        return rcn__fail(net->ctx, RCN_EINVALID, "Structure %d does not exist; the model has %d.",
                         structure, rcn_loss_structures(loss));
    return predict(levels, NULL, NULL, net, loss, structure, parameters, scale, channels, options);
}

/* ---- without keeping levels ------------------------------------------------------------------ */

rcn_status rcn_predict_slabs(rcn_levels_fn take, void *payload, rcn_net *net, const rcn_loss *loss,
                             const float *parameters, const rcn_scale *scale,
                             const rcn_channel *channels, const rcn_predict_options *options) {
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (!take) return rcn__fail(net->ctx, RCN_EINVALID, "Nobody takes the levels.");
    return predict(NULL, take, payload, net, loss, RCN_WANT_LEVELS, parameters, scale, channels,
                   options);
}

static rcn_status take_nothing(rcn_image *levels, int64_t first, void *payload) {
    (void)levels;
    (void)first;
    (void)payload;
    return RCN_OK;
}

rcn_status rcn_predict_slab_plan(int64_t *voxels, rcn_net *net, const int64_t size[3],
                                 const rcn_predict_options *options) {
    rcn_status status;
    job j = {.net = net, .take = take_nothing};
    int most = 0;
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (!voxels) return rcn__fail(net->ctx, RCN_EINVALID, "The output voxels is NULL.");
    if (rcn_predict_check(options))
        return rcn__fail(net->ctx, RCN_EINVALID, "%s", rcn_predict_check(options));
    if (!options) options = &DEFAULTS;
    RCN_TRY(check_size(net->ctx, size));
    RCN_TRY(cover(j.axes, &most, net, size, options));
    const int64_t tiles = j.axes[0].count * j.axes[1].count * j.axes[2].count;
    j.all_flips = options->flips ? 1 << net->dimensions : 1;
    set_place(&j, size, tiles);
    *voxels = j.to.row * needed_room(&j, tiles, most);
done:
    return status;
}

typedef struct read_out {
    float *out;
    rcn_context *ctx;
    rcn_readout readout;
    int at_least;
} read_out;

static rcn_status take_readout(rcn_image *levels, int64_t first, void *payload) {
    const read_out *to = payload;
    return rcn_readout_apply(to->out + first, to->ctx, levels, to->readout, to->at_least);
}

rcn_status rcn_predict_readout(float *out, rcn_net *net, const rcn_loss *loss, rcn_readout readout,
                               int at_least, const float *parameters, const rcn_scale *scale,
                               const rcn_channel *channels, const rcn_predict_options *options) {
    double weights[RCN_MAX_RATERS + 1];
    if (!net) return RCN_EINVALID;
    rcn__clear(net->ctx);
    if (!out) return rcn__fail(net->ctx, RCN_EINVALID, "The output readout is NULL.");
    const char *sentence =
        loss ? rcn__readout_weights(weights, rcn_loss_raters(loss), readout, at_least) : NULL;
    if (sentence) return rcn__fail(net->ctx, RCN_EINVALID, "%s", sentence);
    read_out to = {out, net->ctx, readout, at_least};
    return predict(NULL, take_readout, &to, net, loss, RCN_WANT_LEVELS, parameters, scale, channels,
                   options);
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
