// SPDX-License-Identifier: Apache-2.0
/* The systems (rcn_system.h). Each half defines the same functions; where one system cannot do
 * something, its comment says what happens instead. */
#ifdef __linux__
#define _DEFAULT_SOURCE /* madvise, flock */
#endif
#ifdef __APPLE__
#define _DARWIN_C_SOURCE /* flock */
#endif
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "rcn_system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#include <sys/stat.h>

#ifdef _WIN32
/* ---- Windows --------------------------------------------------------------------------------- */
#include <io.h>
#include <malloc.h>
#include <windows.h>

void *rcn__allocate_aligned(size_t bytes) { return _aligned_malloc(bytes, RCN__ALIGNMENT); }

void rcn__release_aligned(void *pointer) { _aligned_free(pointer); }

double rcn__seconds(void) {
    LARGE_INTEGER count, rate;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&rate);
    return (double)count.QuadPart / (double)rate.QuadPart;
}

uint64_t rcn__process_number(void) { return GetCurrentProcessId(); }

int rcn__is_slash(char c) { return c == '/' || c == '\\'; }

rcn__kind rcn__kind_of(const char *path) {
    struct _stat64 is;
    if (_stat64(path, &is)) return RCN__NOTHING;
    const int kind = is.st_mode & _S_IFMT;
    return kind == _S_IFDIR ? RCN__FOLDER : kind == _S_IFREG ? RCN__FILE : RCN__OTHER;
}

/* Links are rare there, and need rights to be made: what one names is not followed but replaced. */
int64_t rcn__read_link(char *out, size_t room, const char *path) {
    (void)out, (void)room, (void)path;
    return -1;
}

void rcn__remove_file(const char *path) { DeleteFileA(path); }

void rcn__close_file(int descriptor) {
    if (descriptor >= 0) _close(descriptor);
}

void rcn__copy_permissions(int descriptor, const char *from) { (void)descriptor, (void)from; }

FILE *rcn__open_created(int descriptor) { return _fdopen(descriptor, "wb"); }

/* The C library's number for what the system says. */
static int set_errno(void) {
    const DWORD error = GetLastError();
    errno = error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION ? EACCES
            : error == ERROR_FILE_EXISTS || error == ERROR_ALREADY_EXISTS    ? EEXIST
            : error == ERROR_DISK_FULL || error == ERROR_HANDLE_DISK_FULL    ? ENOSPC
            : error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ? ENOENT
                                                                             : EIO;
    return -1;
}

/* Unlike the C library's, it can be removed while it is open. */
int rcn__create_file(const char *path) {
    const HANDLE file =
        CreateFileA(path, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) return set_errno();
    return _open_osfhandle((intptr_t)file, _O_BINARY);
}

int rcn__replace_file(const char *path, const char *target) {
    const DWORD how = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
    return MoveFileExA(path, target, how) ? 0 : set_errno();
}

int rcn__flush_file(FILE *stream) { return fflush(stream) ? -1 : _commit(_fileno(stream)); }

void rcn__flush_folder(const char *path) { (void)path; } /* done by MOVEFILE_WRITE_THROUGH */

int rcn__seek(FILE *stream, int64_t offset, int from) { return _fseeki64(stream, offset, from); }

int64_t rcn__tell(FILE *stream) { return _ftelli64(stream); }

/* Nobody else may open the file for writing while its handle is open, and it goes with it. */
rcn__claim rcn__claim_lock(int *descriptor, char *owner, size_t bytes, const char *path) {
    char text[64];
    DWORD count = 0;
    *descriptor = -1;
    *owner = '\0';
    const HANDLE file =
        CreateFileA(path, GENERIC_WRITE | DELETE, FILE_SHARE_READ, NULL, OPEN_ALWAYS,
                    FILE_FLAG_DELETE_ON_CLOSE | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (file != INVALID_HANDLE_VALUE) {
        const int length = snprintf(text, sizeof text, "process %lu\n", GetCurrentProcessId());
        WriteFile(file, text, (DWORD)length, &count, NULL);
        *descriptor = _open_osfhandle((intptr_t)file, _O_BINARY);
        return RCN__CLAIMED;
    }
    if (GetLastError() != ERROR_SHARING_VIOLATION) return set_errno(), RCN__NOT_MADE;
    const HANDLE taken =
        CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    NULL, OPEN_EXISTING, 0, NULL);
    if (taken != INVALID_HANDLE_VALUE) {
        if (!ReadFile(taken, owner, (DWORD)bytes - 1, &count, NULL)) count = 0;
        owner[count] = '\0';
        owner[strcspn(owner, "\n")] = '\0';
        CloseHandle(taken);
    }
    return RCN__TAKEN;
}

#else
/* ---- POSIX ----------------------------------------------------------------------------------- */
#include <sys/file.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

void *rcn__allocate_aligned(size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    /* Large blocks on large pages: fewer faults when memory is first touched, and fewer misses when
     * many streams are read at once. A refusal costs nothing but that. */
    enum { PAGE = 2 << 20 };
    if (bytes >= 4 * (size_t)PAGE) {
        void *block = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
        if (block) madvise(block, bytes / PAGE * PAGE, MADV_HUGEPAGE);
        return block;
    }
#endif
    /* aligned_alloc() takes whole multiples of the alignment. */
    return aligned_alloc(RCN__ALIGNMENT,
                         (bytes + RCN__ALIGNMENT - 1) / RCN__ALIGNMENT * RCN__ALIGNMENT);
}

void rcn__release_aligned(void *pointer) { free(pointer); }

double rcn__seconds(void) {
    struct timespec now = {0, 0};
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t rcn__process_number(void) { return (uint64_t)getpid(); }

int rcn__is_slash(char c) { return c == '/'; }

rcn__kind rcn__kind_of(const char *path) {
    struct stat is;
    if (stat(path, &is)) return RCN__NOTHING;
    return S_ISDIR(is.st_mode) ? RCN__FOLDER : S_ISREG(is.st_mode) ? RCN__FILE : RCN__OTHER;
}

int64_t rcn__read_link(char *out, size_t room, const char *path) {
    return (int64_t)readlink(path, out, room);
}

void rcn__remove_file(const char *path) { unlink(path); }

/* Exclusively, and not through a link that somebody else put there. The mode is cut by the user's
 * umask. */
int rcn__create_file(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

void rcn__close_file(int descriptor) {
    if (descriptor >= 0) close(descriptor);
}

void rcn__copy_permissions(int descriptor, const char *from) {
    struct stat is;
    if (stat(from, &is) || fchmod(descriptor, is.st_mode & 0777)) errno = 0;
}

FILE *rcn__open_created(int descriptor) { return fdopen(descriptor, "wb"); }

int rcn__replace_file(const char *path, const char *target) { return rename(path, target); }

int rcn__flush_file(FILE *stream) { return fflush(stream) ? -1 : fsync(fileno(stream)); }

void rcn__flush_folder(const char *path) {
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    (void)fsync(descriptor);
    close(descriptor);
}

int rcn__seek(FILE *stream, int64_t offset, int from) {
    return fseeko(stream, (off_t)offset, from);
}

int64_t rcn__tell(FILE *stream) { return (int64_t)ftello(stream); }

/* Who holds the lock, by what it wrote into the file. */
static void read_owner(char *out, size_t bytes, int descriptor) {
    const ssize_t count = pread(descriptor, out, bytes - 1, 0);
    out[count > 0 ? count : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

static void write_owner(int descriptor) {
    char text[320], host[256] = "";
    gethostname(host, sizeof host - 1);
    const int bytes = snprintf(text, sizeof text, "process %ld on %s\n", (long)getpid(), host);
    /* Only for the sentence that the next one gets. */
    if (ftruncate(descriptor, 0) || pwrite(descriptor, text, (size_t)bytes, 0) != bytes) errno = 0;
}

/* Whether the path still leads to the open file: its last owner may have removed it. */
static int is_still_there(int descriptor, const char *path) {
    struct stat open_file, named;
    return !fstat(descriptor, &open_file) && !stat(path, &named) &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/* flock() ends with the process, however it ends, so that no lock is left behind by a crash. Its
 * owner removes the file while it holds the lock; who opened it before that has locked a file
 * without a name, and must begin again, or two would hold "the" lock. O_NONBLOCK: opening a pipe
 * that somebody put there must not wait. */
rcn__claim rcn__claim_lock(int *descriptor, char *owner, size_t bytes, const char *path) {
    enum { ATTEMPTS = 100 };
    struct stat is;
    *owner = '\0';
    for (int attempt = 0;; ++attempt) {
        const int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        *descriptor = -1;
        if (file < 0) return RCN__NOT_MADE;
        /* Never write into a file that somebody put there under this name. */
        const int ours = !fstat(file, &is) && S_ISREG(is.st_mode) && is.st_nlink <= 1;
        const int taken = ours && flock(file, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
        if (taken) read_owner(owner, bytes, file);
        if (ours && !taken && (is_still_there(file, path) || attempt == ATTEMPTS)) {
            write_owner(file);
            *descriptor = file;
            return RCN__CLAIMED;
        }
        close(file);
        if (!ours || taken) return taken ? RCN__TAKEN : RCN__NOT_OURS;
    }
}

#endif
