// SPDX-License-Identifier: Apache-2.0
/* Writing files so that nobody ever sees half of one (rcn_file.h).
 *
 * A file is written beside its target under a name of its own, in the same folder, because only
 * there a rename is one step; it takes the target's place when it is complete. What is not
 * committed is removed: by destroying it, or, when a signal ends the program, by a handler that
 * calls rcn_file_remove_all(). Links are followed first, so that the link stays and what it names
 * is replaced.
 */
#include "rcn_file_private.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rcn_context_private.h"
#include "rcn_system.h"

enum {
    MOST_LINKS = 40, /* followed one after another, as the kernel does */
    LINK_BYTES = 4096,
    LONGEST_NAME = 200, /* longer ones are cut at the front: the extension decides the format */
    ATTEMPTS = 100
};

struct rcn_file {
    rcn_context *ctx;
    char *target; /* links followed */
    char *path;
    int descriptor; /* -1: handed out */
    int slot;       /* -1: the table was full */
    int committed;
};

struct rcn_file_lock {
    rcn_context *ctx;
    char *path;
    int descriptor; /* -1: the file system knows no locks */
    int slot;
};

/* ---- what a signal handler removes ----------------------------------------------------------- */

/* A place for one path that is taken, left and read in one step each. */
#if defined(_MSC_VER) && defined(__STDC_NO_ATOMICS__)
#include <intrin.h>

typedef void *volatile place;
static int take(place *at, const char *path) {
    return !_InterlockedCompareExchangePointer(at, (void *)path, NULL);
}
static void leave(place *at) { _InterlockedExchangePointer(at, NULL); }
static const char *look(place *at) { return *at; }
#else
#include <stdatomic.h>

typedef _Atomic(const char *) place;
static int take(place *at, const char *path) {
    const char *expected = NULL;
    return atomic_compare_exchange_strong(at, &expected, path);
}
static void leave(place *at) { atomic_store(at, NULL); }
static const char *look(place *at) { return atomic_load(at); }
#endif

/* A mutable global, because a signal handler is given no context. It may neither lock nor allocate,
 * so paths stand in a fixed table of atomic pointers. A file without a place in it is written as
 * well; it is only not removed by a signal. */
enum { MOST_FILES = 64 };
static place remembered[MOST_FILES];

static int remember(const char *path) {
    for (int slot = 0; slot < MOST_FILES; ++slot)
        if (take(&remembered[slot], path)) return slot;
    return -1;
}

static void forget(int slot) {
    /* Always before the path is freed: the handler may come at any moment. */
    if (slot >= 0) leave(&remembered[slot]);
}

void rcn_file_remove_all(void) {
    for (int slot = 0; slot < MOST_FILES; ++slot) {
        const char *path = look(&remembered[slot]);
        if (path) rcn__remove_file(path);
    }
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Bytes of the folder in front of the name, with its slash. */
static size_t folder_bytes(const char *path) {
    size_t bytes = strlen(path);
    while (bytes && !rcn__is_slash(path[bytes - 1])) --bytes;
    return bytes;
}

/* *out = begin[0 ... bytes-1] and then `end`. */
static rcn_status join(char **out, rcn_context *ctx, const char *begin, size_t bytes,
                       const char *end) {
    rcn_status status;
    char *text = NULL;
    RCN_ALLOC(text, ctx, (int64_t)(bytes + strlen(end) + 1), "a file name");
    memcpy(text, begin, bytes);
    strcpy(text + bytes, end);
    *out = text;
done:
    return status;
}

/* *out = the file that `path` names at the end of all links, whether it is there or not. */
static rcn_status follow_links(char **out, rcn_context *ctx, const char *path) {
    rcn_status status;
    char *now = NULL, *next = NULL;
    RCN_TRY(join(&now, ctx, path, strlen(path), ""));
    char text[LINK_BYTES];
    for (int links = 0;; ++links) {
        const int64_t bytes = rcn__read_link(text, sizeof text, now);
        if (bytes < 0) break; /* no link, or nothing there */
        if (bytes >= (int64_t)sizeof text || links == MOST_LINKS)
            RCN_TRY(rcn__fail(ctx, RCN_EIO, "%s cannot be written: %s.", path,
                              strerror(links == MOST_LINKS ? ELOOP : ENAMETOOLONG)));
        text[bytes] = '\0';
        RCN_TRY(join(&next, ctx, now, rcn__is_slash(*text) ? 0 : folder_bytes(now), text));
        rcn__free(ctx, now);
        now = next;
        next = NULL;
    }
    *out = now;
    now = NULL;
done:
    rcn__free(ctx, now);
    return status;
}

/* The sentence for a folder or a target that cannot be written to; `given` is the user's name for
 * the target. */
static rcn_status fail_to_write(rcn_context *ctx, const char *given, const char *target,
                                int reason) {
    const int bytes = (int)folder_bytes(target);
    char folder[LINK_BYTES];
    snprintf(folder, sizeof folder, "%.*s", bytes > 1 ? bytes - 1 : bytes, target);
    if (!*folder) strcpy(folder, ".");
    const rcn__kind kind = rcn__kind_of(folder);
    if (kind == RCN__NOTHING && errno == ENOENT)
        return rcn__fail(ctx, RCN_EIO, "%s cannot be written: the folder %s does not exist.", given,
                         folder);
    if (kind != RCN__NOTHING && kind != RCN__FOLDER)
        return rcn__fail(ctx, RCN_EIO, "%s cannot be written: %s is not a folder.", given, folder);
    if (reason == EACCES || reason == EPERM)
        return rcn__fail(ctx, RCN_EIO, "%s cannot be written: no permission in %s (%s).", given,
                         folder, strerror(reason));
    return rcn__fail(ctx, rcn_status_of_write(reason), "%s cannot be written: %s.", given,
                     strerror(reason));
}

/* ---- files beside their target --------------------------------------------------------------- */

/* Differs between processes, moments and calls. Nothing depends on its being secret: files are
 * created exclusively. */
static uint64_t random_number(const void *address, int attempt) {
    uint64_t mixed = (uint64_t)(rcn__seconds() * 1e9);
    mixed ^= rcn__process_number() << 40 ^ (uint64_t)(uintptr_t)address ^ (uint64_t)attempt << 56;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9); /* splitmix64 */
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

rcn_status rcn_file_create(rcn_file **out, rcn_context *ctx, const char *target) {
    rcn_status status;
    rcn_file *file = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !target || !*target) return rcn__fail(ctx, RCN_EINVALID, "No file name was given.");
    RCN_ALLOC_ZERO(file, ctx, 1, "a file");
    file->ctx = ctx;
    file->descriptor = file->slot = -1;
    RCN_TRY(follow_links(&file->target, ctx, target));
    const rcn__kind before = rcn__kind_of(file->target);
    const size_t folder = folder_bytes(file->target);
    if (!file->target[folder] || before == RCN__FOLDER)
        RCN_TRY(rcn__fail(ctx, RCN_EIO, "%s is a folder; give a file name.", target));
    if (before == RCN__OTHER)
        RCN_TRY(rcn__fail(ctx, RCN_EIO, "%s cannot be written: it is not a regular file.", target));
    const char *name = file->target + folder;
    if (strlen(name) > LONGEST_NAME) name += strlen(name) - LONGEST_NAME;
    /* The name begins with a dot, so that folders do not show it, and ends with the target's,
     * because writers choose the format by the extension. */
    for (int attempt = 0; file->descriptor < 0; ++attempt) {
        char beside[LONGEST_NAME + 32];
        snprintf(beside, sizeof beside, ".rcn-%016llx-%s",
                 (unsigned long long)random_number(file, attempt), name);
        rcn__free(ctx, file->path);
        file->path = NULL;
        RCN_TRY(join(&file->path, ctx, file->target, folder, beside));
        file->descriptor = rcn__create_file(file->path);
        if (file->descriptor < 0 && (errno != EEXIST || attempt == ATTEMPTS)) {
            const int reason = errno;
            rcn__free(ctx, file->path); /* not ours: destroying must not remove it */
            file->path = NULL;
            RCN_TRY(fail_to_write(ctx, target, file->target, reason));
        }
    }
    file->slot = remember(file->path);
    /* What was private stays private. Where that is refused, the file is as any new one. */
    if (before == RCN__FILE) rcn__copy_permissions(file->descriptor, file->target);
    *out = file;
    file = NULL;
done:
    rcn_file_destroy(file);
    return status;
}

const char *rcn_file_path(const rcn_file *file) { return file->path; }

FILE *rcn__file_open(rcn_file *file) {
    FILE *stream = rcn__open_created(file->descriptor);
    if (stream) file->descriptor = -1;
    return stream;
}

/* The folder's entry on the disk, where that can be done. */
static void flush_folder_of(const char *path) {
    char folder[LINK_BYTES];
    const size_t bytes = folder_bytes(path);
    if (bytes >= sizeof folder) return;
    memcpy(folder, path, bytes);
    strcpy(folder + bytes, bytes ? "" : ".");
    rcn__flush_folder(folder);
}

rcn_status rcn_file_commit(rcn_file *file, int durable) {
    rcn__clear(file->ctx);
    rcn__close_file(file->descriptor);
    file->descriptor = -1;
    if (rcn__replace_file(file->path, file->target))
        return rcn__fail(file->ctx, rcn_status_of_write(errno), "%s cannot be written: %s.",
                         file->target, strerror(errno));
    /* From here on the path is another file's, or nobody's: neither destroying nor a signal may
     * remove it. */
    file->committed = 1;
    forget(file->slot);
    file->slot = -1;
    if (durable) flush_folder_of(file->target);
    return RCN_OK;
}

void rcn_file_destroy(rcn_file *file) {
    if (!file) return;
    rcn_context *ctx = file->ctx;
    rcn__close_file(file->descriptor);
    if (file->path && !file->committed) remove(file->path);
    forget(file->slot);
    rcn__free(ctx, file->path);
    rcn__free(ctx, file->target);
    rcn__free(ctx, file);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static rcn_status claim(rcn_file_lock *lock, const char *given) {
    char owner[320];
    switch (rcn__claim_lock(&lock->descriptor, owner, sizeof owner, lock->path)) {
    case RCN__CLAIMED: return RCN_OK;
    case RCN__NOT_OURS:
        return rcn__fail(lock->ctx, RCN_EIO, "%s is not a lock file of this program; remove it.",
                         lock->path);
    case RCN__TAKEN:
        return rcn__fail(lock->ctx, RCN_EIO,
                         "%s is being trained already%s%s%s; wait for it to end, or write to "
                         "another file.",
                         given, *owner ? " (by " : "", owner, *owner ? ")" : "");
    default: return fail_to_write(lock->ctx, lock->path, lock->path, errno);
    }
}

rcn_status rcn_file_lock_create(rcn_file_lock **out, rcn_context *ctx, const char *target) {
    rcn_status status;
    rcn_file_lock *lock = NULL;
    char *resolved = NULL;
    if (!ctx) return RCN_EINVALID;
    rcn__clear(ctx);
    if (!out || !target || !*target) return rcn__fail(ctx, RCN_EINVALID, "No file name was given.");
    RCN_ALLOC_ZERO(lock, ctx, 1, "a lock");
    lock->ctx = ctx;
    lock->descriptor = lock->slot = -1;
    RCN_TRY(follow_links(&resolved, ctx, target));
    RCN_TRY(join(&lock->path, ctx, resolved, strlen(resolved), ".lock"));
    RCN_TRY(claim(lock, target));
    lock->slot = remember(lock->path);
    *out = lock;
    lock = NULL;
done:
    rcn__free(ctx, resolved);
    rcn_file_lock_destroy(lock);
    return status;
}

void rcn_file_lock_destroy(rcn_file_lock *lock) {
    if (!lock) return;
    rcn_context *ctx = lock->ctx;
    if (lock->descriptor >= 0) remove(lock->path); /* while it is held, so that it is ours */
    forget(lock->slot);
    rcn__close_file(lock->descriptor);
    rcn__free(ctx, lock->path);
    rcn__free(ctx, lock);
}
