// SPDX-License-Identifier: Apache-2.0
/* Three raters' masks in memory -> STAPLE. Build: cc example.c $(pkg-config --cflags --libs rcn) */
#include <stdio.h>

#include <rcn/rcn.h>

int main(void)
{
  static unsigned char raters[3][16] = { { 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0 },
    { 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0 }, { 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0 } };
  rcn_mask masks[3] = { { { 0 } } };
  rcn_fusion_options options = RCN_FUSION_OPTIONS_INIT;
  rcn_context* context = NULL;
  float posterior[16];

  for (int r = 0; r < 3; ++r)
    masks[r].image = (rcn_image){ raters[r], RCN_UINT8, 1, rcn_geometry_make(8, 2, 1) };
  options.method = RCN_STAPLE;

  rcn_status status = rcn_context_create(&context, NULL);
  if (status == RCN_OK)
    status = rcn_fuse_masks(posterior, NULL, context, masks, 3, &options);
  if (status != RCN_OK)
    fprintf(stderr, "%s\n", rcn_context_error(context));
  else
    for (int i = 0; i < 16; ++i)
      printf("%.3f%s", posterior[i], i % 8 == 7 ? "\n" : " ");
  rcn_context_destroy(context);
  return status == RCN_OK ? 0 : 1;
}
