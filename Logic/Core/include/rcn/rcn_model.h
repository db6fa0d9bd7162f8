// SPDX-License-Identifier: Apache-2.0
/* Model files: a network's weights with what is needed to use them, as safetensors.
 *
 * Tensors have PyTorch's names, so that weights travel both ways: a state dict saved by
 * segmentation_models_pytorch or torchvision is read here, and a file written here is loaded there
 * with strict=True. The metadata (strings; JSON inside) says what network it is:
 *
 *   arch           "unet", "fpn-resnet18", ... (rcn_arch_name())
 *   channels       of the image, e.g. "1"
 *   raters         JSON array of names
 *   normalization  JSON, e.g. {"kind": "fixed", "mean": [0], "std": [1]}
 *   norm, spacing  U-Nets: "batch" or "instance"; JSON array; the defaults where absent
 *   dropout        FPN: JSON number; the default where absent
 *   version        of this library that wrote it
 *
 * Number of outputs, width and depth are read off the tensors, so that a state dict with the first
 * four keys is a model. Nothing in a file is believed: every refusal has its own sentence, and on
 * failure the caller's network is as it was or not made at all.
 *
 * Needs a build with networks and jansson.
 */
#ifndef RCN_MODEL_H
#define RCN_MODEL_H

#include "rcn_net.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One string of metadata. */
typedef struct rcn_model_entry {
    const char *key;
    const char *value;
} rcn_model_entry;

/* Makes the network that the file describes and fills it.
 *   RCN_EIO      the file cannot be read
 *   RCN_EFORMAT  it is no safetensors file, or not the weights of the network it says it is
 *   RCN_EDATA    a weight is NaN or infinite
 * On failure *out is unchanged. */
RCN_API rcn_status rcn_model_load(rcn_net **out, rcn_context *ctx, const char *path);

/* Writes the network with the keys that describe it and the caller's own (raters, normalization,
 * ...), beside the target and then renamed: the target is the old file or the new one, never half
 * of it. RCN_EINVALID: a key that is written here anyway. */
RCN_API rcn_status rcn_model_save(rcn_context *ctx, const char *path, const rcn_net *net,
                                  const rcn_model_entry *entries, int count);

/* *out = a copy of the metadata string, or NULL when the file has no such key; released with
 * rcn_model_free(). */
RCN_API rcn_status rcn_model_read(char **out, rcn_context *ctx, const char *path, const char *key);
RCN_API void rcn_model_free(char *text, rcn_context *ctx);

/* Gives a model file one more string of metadata, or another value of it (NULL: none); tensors and
 * all other strings stay. Written beside and renamed.
 *   RCN_EINVALID  a key that describes the network: arch, channels, ...
 * On failure the file is as before. */
RCN_API rcn_status rcn_model_set(rcn_context *ctx, const char *path, const char *key,
                                 const char *value);

/* Told about each tensor of a file that the network has no place for. */
typedef void (*rcn_unused_fn)(const char *name, void *payload);

/* Starts an FPN from a ResNet of torchvision or timm (or from another model of ours): fills the
 * encoder. The first convolution is adapted to the network's channels as
 * segmentation_models_pytorch does: summed for one, repeated and scaled for others. What the file
 * has besides (a classifier) is told to `unused` (NULL: not wanted). *loaded (NULL: not wanted) =
 * how many tensors were taken.
 *   RCN_EINVALID  the network is no FPN
 *   RCN_EFORMAT   not the same kind of ResNet: a tensor is missing or has another shape
 * On failure the network is as before. */
RCN_API rcn_status rcn_model_init_encoder(int64_t *loaded, rcn_net *net, rcn_context *ctx,
                                          const char *path, rcn_unused_fn unused, void *payload);

#ifdef __cplusplus
}
#endif

#endif /* RCN_MODEL_H */
