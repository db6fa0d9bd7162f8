// SPDX-License-Identifier: Apache-2.0
/* Files that nobody ever sees half-written, and files that only one process may write.
 *
 *   rcn_file_create()    an empty file beside the target, under a name of its own
 *   rcn_file_path()      where to write it
 *   rcn_file_commit()    it takes the target's place in one step
 *   rcn_file_destroy()   it is removed, unless it was committed
 *
 *   rcn_file_lock_create()   claims a file for long work, such as a training
 *
 * A symbolic link is followed: the file that it names is replaced (or made), and the link stays a
 * link. The new file has the permissions of the one it replaces.
 *
 *     rcn_file *file = NULL;
 *     if (rcn_file_create(&file, ctx, "map.nrrd") == RCN_OK) {
 *         const int good = write_to(rcn_file_path(file));         // with any library
 *         if (good && rcn_file_commit(file, 0) != RCN_OK) ...     // now it is there, or nothing is
 *     }
 *     rcn_file_destroy(file);
 *
 * The file lies in the target's own folder, because only within one file system a rename is one
 * step. It has the target's extension, because libraries choose the format by it.
 */
#ifndef RCN_FILE_H
#define RCN_FILE_H

#include "rcn_context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file that is being written. Known to rcn_file_remove_all() until it is committed. */
typedef struct rcn_file rcn_file;

/* Makes ".rcn-<random>-NAME" in the target's folder, with the target's extension. It is created
 * exclusively: nothing that lies there already, and no link, is ever opened.
 *   target     what to replace; need not exist, its folder has to
 *   RCN_EIO    not possible; the sentence says why
 *   RCN_ESPACE no room */
RCN_API rcn_status rcn_file_create(rcn_file **out, rcn_context *ctx, const char *target);

/* The file's place until it is committed. Borrowed. */
RCN_API const char *rcn_file_path(const rcn_file *file);

/* Takes the target's place.
 *   durable    non-zero: returns when the folder's entry is on the disk, too; the caller has
 *              flushed the content
 *   RCN_EIO    what was there before is untouched */
RCN_API rcn_status rcn_file_commit(rcn_file *file, int durable);

/* NULL is fine. Removes the file unless it was committed. */
RCN_API void rcn_file_destroy(rcn_file *file);

/* Removes the files of the whole process that are not committed, and its locks' files: for a signal
 * handler that ends the process. The paths are the one thing that this library keeps globally,
 * because a signal handler is given nothing to find them by. */
RCN_API void rcn_file_remove_all(void);

/* A claim on a file. */
typedef struct rcn_file_lock rcn_file_lock;

/* Claims the target until the lock is destroyed or the process ends, however it ends: the kernel
 * holds the lock (flock), on TARGET.lock beside it, which goes with the lock. Where the file system
 * knows no locks this does nothing.
 *   RCN_EIO    somebody else has claimed it (the sentence names the process), or no file can be
 *              made there */
RCN_API rcn_status rcn_file_lock_create(rcn_file_lock **out, rcn_context *ctx, const char *target);

/* NULL is fine. Ends the claim. */
RCN_API void rcn_file_lock_destroy(rcn_file_lock *lock);

#ifdef __cplusplus
}
#endif

#endif /* RCN_FILE_H */
