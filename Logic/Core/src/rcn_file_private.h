// SPDX-License-Identifier: Apache-2.0
/* What the library's own writers need of a file beside its target. */
#ifndef RCN_FILE_PRIVATE_H
#define RCN_FILE_PRIVATE_H

#include <stdio.h>

#include "rcn/rcn_file.h"

/* The file, empty, for writing; the caller closes it before the commit. Once for each file; NULL
 * with errno. */
FILE *rcn__file_open(rcn_file *file);

#endif /* RCN_FILE_PRIVATE_H */
