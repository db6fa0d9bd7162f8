// SPDX-License-Identifier: Apache-2.0
/* What C11 does not have and every system has in its own way: aligned memory, the clock, and files
 * that are created exclusively, take another one's place, are flushed and locked. The only file of
 * the library that asks which system it is on.
 */
#ifndef RCN_SYSTEM_H
#define RCN_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Memory at a multiple of so many bytes, which cache lines and AVX-512 registers have; NULL when
 * there is none. */
enum { RCN__ALIGNMENT = 64 };
void *rcn__allocate_aligned(size_t bytes);
void rcn__release_aligned(void *pointer);

/* The time in seconds, from some beginning. */
double rcn__seconds(void);

/* Differs between processes that run at the same time. */
uint64_t rcn__process_number(void);

/* Whether the system takes this character between folders. */
int rcn__is_slash(char c);

typedef enum rcn__kind { RCN__NOTHING, RCN__FILE, RCN__FOLDER, RCN__OTHER } rcn__kind;

/* What a path leads to; errno says why it is RCN__NOTHING. */
rcn__kind rcn__kind_of(const char *path);

/* Where a symbolic link leads, without a final '\0': its bytes, at most `room`; -1 when the path is
 * no link. */
int64_t rcn__read_link(char *out, size_t room, const char *path);

/* May be called by a signal handler. */
void rcn__remove_file(const char *path);

/* Makes an empty file for writing where nothing is, not even a link. Returns a descriptor, or -1
 * with errno. */
int rcn__create_file(const char *path);

/* -1 is fine. */
void rcn__close_file(int descriptor);

/* Gives a new file the permissions of another one, where that is possible. */
void rcn__copy_permissions(int descriptor, const char *from);

/* The new file as a stream, which owns the descriptor then; NULL with errno. */
FILE *rcn__open_created(int descriptor);

/* `path` takes the place of `target` in one step. 0, or -1 with errno. */
int rcn__replace_file(const char *path, const char *target);

/* What was written is on the disk. 0, or -1 with errno. */
int rcn__flush_file(FILE *stream);

/* The entries of a folder are on the disk, where that can be done. */
void rcn__flush_folder(const char *path);

/* fseek and ftell for files of any size. */
int rcn__seek(FILE *stream, int64_t offset, int from);
int64_t rcn__tell(FILE *stream);

typedef enum rcn__claim {
    RCN__CLAIMED,  /* or the file system knows no locks */
    RCN__TAKEN,    /* somebody else holds it */
    RCN__NOT_OURS, /* the path leads to a file that is no lock */
    RCN__NOT_MADE  /* no file can be made there; errno says why */
} rcn__claim;

/* Makes the file of a lock and holds it until the descriptor is closed or the process ends.
 *   descriptor   -1 unless it is claimed
 *   owner        who holds it when it is taken, as far as that can be said */
rcn__claim rcn__claim_lock(int *descriptor, char *owner, size_t bytes, const char *path);

#endif /* RCN_SYSTEM_H */
