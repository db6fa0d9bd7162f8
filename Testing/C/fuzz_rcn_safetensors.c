// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a model file: refused with a sentence, or read; never more. Run it as
 *   fuzz_rcn_safetensors CORPUS -max_len=65536
 */
#include "rcn_safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_file(const uint8_t *data, size_t size) {
    enum { LARGEST = 1 << 20 };
    rcn_context *ctx = NULL;
    rcn__safetensors *file = NULL;
    if (rcn_context_create(&ctx, NULL) != RCN_OK) abort();
    if (rcn__safetensors_open_memory(&file, ctx, "fuzz", data, size) == RCN_OK) {
        /* Read each tensor for itself, as the file says it is, and the first two inputs of it. */
        for (int64_t i = 0; i < rcn__safetensors_count(file); ++i) {
            const rcn__load_options options = {0, 1, 1, rcn__safetensors_tensor(file, i).name};
            for (int adapt = 0; adapt < 2; ++adapt) {
                rcn__file_tensor tensor = rcn__safetensors_tensor(file, i);
                int64_t bytes = (int64_t)rcn_type_size(tensor.type);
                if (adapt && tensor.rank > 1) tensor.shape[1] = 2;
                for (int d = 0; d < tensor.rank && bytes <= LARGEST; ++d) {
                    if (tensor.shape[d] > LARGEST) tensor.shape[d] = LARGEST;
                    bytes *= tensor.shape[d];
                }
                if (bytes == 0 || bytes > LARGEST) continue;
                tensor.data = malloc((size_t)bytes);
                (void)rcn__safetensors_load(NULL, file, ctx, &tensor, 1, &options);
                free(tensor.data);
            }
        }
        (void)rcn__safetensors_metadata(file, "arch");
    } else if (rcn_context_error(ctx)[0] == '\0') {
        abort();
    }
    rcn__safetensors_close(file);
    if (rcn_context_bytes(ctx) != 0) abort();
    rcn_context_destroy(ctx);
}

/* The bytes as they are; and with a length that puts the end of the header behind its last brace,
 * which chance seldom does. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_file(data, size);
    if (size < 10) return 0;
    size_t end = size;
    while (end > 8 && data[end - 1] != '}') --end;
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    for (int i = 0; i < 8; ++i) copy[i] = (uint8_t)((uint64_t)(end - 8) >> 8 * i);
    try_file(copy, size);
    free(copy);
    return 0;
}
