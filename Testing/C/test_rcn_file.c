// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700

#include "rcn/rcn_file.h"

#include <dirent.h>
#ifdef _WIN32
#include <direct.h>
#define mkdir(path, mode) _mkdir(path)
#define rmdir(path) _rmdir(path)
#else
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "rcn_file_private.h"
#include "rcn_test.h"

/* A folder of its own, in which every test begins and ends with nothing. */
static char folder[] = "test_rcn_file-XXXXXX";

static int entries(void) {
    DIR *stream = opendir(".");
    int count = 0;
    while (readdir(stream)) ++count;
    closedir(stream);
    return count - 2;
}

static void put(const char *path, const char *text) {
    FILE *stream = fopen(path, "wb");
    CHECK(stream && fputs(text, stream) >= 0 && !fclose(stream));
}

static int holds(const char *path, const char *text) {
    char found[256] = "";
    FILE *stream = fopen(path, "rb");
    if (!stream) return 0;
    found[fread(found, 1, sizeof found - 1, stream)] = '\0';
    fclose(stream);
    return !strcmp(found, text);
}

static rcn_status replace(rcn_context *ctx, const char *target, const char *text) {
    rcn_file *file = NULL;
    rcn_status status = rcn_file_create(&file, ctx, target);
    if (status == RCN_OK) {
        put(rcn_file_path(file), text);
        status = rcn_file_commit(file, 1);
    }
    rcn_file_destroy(file);
    return status;
}

static void takes_its_place(void) {
    rcn_context *ctx = make_context(1);
    rcn_file *file = NULL, *second = NULL;
    put("a.txt", "old");
    CHECK_STATUS(rcn_file_create(&file, ctx, "a.txt"), RCN_OK);
    CHECK_STATUS(rcn_file_create(&second, ctx, "a.txt"), RCN_OK);
    CHECK(strcmp(rcn_file_path(file), rcn_file_path(second)) && entries() == 3);
    CHECK(!strcmp(rcn_file_path(file) + strlen(rcn_file_path(file)) - 4, ".txt"));
    FILE *stream = rcn__file_open(file);
    CHECK(stream && fputs("new", stream) >= 0 && !fclose(stream) && holds("a.txt", "old"));
    CHECK_STATUS(rcn_file_commit(file, 0), RCN_OK);
    rcn_file_destroy(file);
    rcn_file_destroy(second); /* not committed: it goes */
    rcn_file_destroy(NULL);
    CHECK(holds("a.txt", "new") && entries() == 1);
#ifndef _WIN32
    /* A private file stays private. */
    struct stat is;
    CHECK(!chmod("a.txt", 0600) && replace(ctx, "a.txt", "newer") == RCN_OK);
    CHECK(!stat("a.txt", &is) && (is.st_mode & 0777) == 0600);
#endif
    remove("a.txt");
    rcn_context_destroy(ctx);
}

#ifndef _WIN32
static void follows_links(void) {
    rcn_context *ctx = make_context(1);
    struct stat is;
    CHECK(!mkdir("data", 0777) && !mkdir("links", 0777));
    CHECK(!symlink("../links/two", "links/one") && !symlink("../data/real", "links/two"));
    /* The file is made where the last link says, and then replaced there. */
    CHECK_STATUS(replace(ctx, "links/one", "first"), RCN_OK);
    CHECK_STATUS(replace(ctx, "links/one", "second"), RCN_OK);
    CHECK(holds("data/real", "second") && !lstat("links/one", &is) && S_ISLNK(is.st_mode));
    CHECK(!lstat("links/two", &is) && S_ISLNK(is.st_mode));
    /* Into a folder that is not there; round in circles. */
    CHECK(!symlink("gone/real", "links/lost") && !symlink("round", "links/round"));
    CHECK_STATUS(replace(ctx, "links/lost", "x"), RCN_EIO);
    CHECK_ERROR(ctx, "links/lost cannot be written: the folder links/gone does not exist");
    CHECK_STATUS(replace(ctx, "links/round", "x"), RCN_EIO);
    for (const char *const *name = (const char *const[]){"links/one", "links/two", "links/lost",
                                                         "links/round", "data/real", NULL};
         *name; ++name)
        CHECK(!remove(*name));
    CHECK(!rmdir("links") && !rmdir("data") && entries() == 0);
    rcn_context_destroy(ctx);
}

static void no_ordinary_file(void) {
    rcn_context *ctx = make_context(1);
    rcn_file *file = NULL;
    CHECK(!mkfifo("pipe", 0666));
    CHECK_STATUS(rcn_file_create(&file, ctx, "pipe"), RCN_EIO);
    CHECK_ERROR(ctx, "not a regular file");
    CHECK(!file && !remove("pipe") && entries() == 0);
    rcn_context_destroy(ctx);
}
#endif

static void says_why_not(void) {
    rcn_context *ctx = make_context(1);
    rcn_file *file = NULL;
    put("a.txt", "old");
    CHECK(!mkdir("b", 0777));
    CHECK_STATUS(rcn_file_create(&file, ctx, "b"), RCN_EIO);
    CHECK_ERROR(ctx, "b is a folder");
    CHECK_STATUS(rcn_file_create(&file, ctx, "c/"), RCN_EIO);
    CHECK_STATUS(rcn_file_create(&file, ctx, "c/d"), RCN_EIO);
    CHECK_ERROR(ctx, "the folder c does not exist");
    CHECK_STATUS(rcn_file_create(&file, ctx, "a.txt/d"), RCN_EIO);
    CHECK_ERROR(ctx, "a.txt is not a folder");
    CHECK_STATUS(rcn_file_create(&file, ctx, ""), RCN_EINVALID);
    CHECK_STATUS(rcn_file_create(NULL, ctx, "a.txt"), RCN_EINVALID);
    CHECK_STATUS(rcn_file_create(&file, NULL, "a.txt"), RCN_EINVALID);
    CHECK(!file && entries() == 2);
    /* The target became a folder meanwhile: the file goes, and nothing else. */
    CHECK_STATUS(rcn_file_create(&file, ctx, "late"), RCN_OK);
    CHECK(!mkdir("late", 0777));
    CHECK_STATUS(rcn_file_commit(file, 1), RCN_EIO);
    CHECK_ERROR(ctx, "late cannot be written");
    rcn_file_destroy(file);
    CHECK(!remove("a.txt") && !rmdir("b") && !rmdir("late") && entries() == 0);
    rcn_context_destroy(ctx);
}

static void a_signal_removes_all(void) {
    rcn_context *ctx = make_context(1);
    rcn_file *file = NULL;
    rcn_file_lock *lock = NULL;
    CHECK_STATUS(rcn_file_create(&file, ctx, "a"), RCN_OK);
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_OK);
    CHECK(entries() == 2);
    rcn_file_remove_all();
#ifndef _WIN32
    CHECK(entries() == 0); /* on Windows they go when the process does */
#endif
    rcn_file_destroy(file);
    rcn_file_lock_destroy(lock);
    rcn_file_remove_all();
    CHECK(entries() == 0);
    rcn_context_destroy(ctx);
}

static void one_at_a_time(void) {
    rcn_context *ctx = make_context(1);
    rcn_file_lock *lock = NULL, *second = NULL;
    char words[64];
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_OK);
    CHECK_STATUS(rcn_file_lock_create(&second, ctx, "a"), RCN_EIO);
    snprintf(words, sizeof words, "a is being trained already (by process %lld",
             (long long)rcn__process_number());
    CHECK_ERROR(ctx, words);
    CHECK(!second);
    rcn_file_lock_destroy(lock);
    rcn_file_lock_destroy(NULL);
    CHECK(entries() == 0);
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_OK);
    rcn_file_lock_destroy(lock);
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "no/a"), RCN_EIO);
    CHECK(entries() == 0);
    rcn_context_destroy(ctx);
}

#ifndef _WIN32
static void one_at_a_time_through_links(void) {
    rcn_context *ctx = make_context(1);
    rcn_file_lock *lock = NULL, *second = NULL;
    char words[64];
    CHECK(!symlink("a", "link"));
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_OK);
    CHECK_STATUS(rcn_file_lock_create(&second, ctx, "link"), RCN_EIO); /* the same file */
    snprintf(words, sizeof words, "link is being trained already (by process %ld on ",
             (long)getpid());
    CHECK_ERROR(ctx, words);
    CHECK(!second);
    rcn_file_lock_destroy(lock);
    CHECK(entries() == 1); /* the link */
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "link"), RCN_OK);
    rcn_file_lock_destroy(lock);
    /* A link or a second name of another file under the lock's name is not written to. */
    put("victim", "precious");
    CHECK(!symlink("victim", "a.lock"));
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_EIO);
    CHECK(!remove("a.lock") && !link("victim", "a.lock"));
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_EIO);
    CHECK(holds("victim", "precious"));
    CHECK(!remove("a.lock") && !remove("victim") && !remove("link") && entries() == 0);
    rcn_context_destroy(ctx);
}

/* Killed: the lock is free at once, although its file is still there. */
static void killed_owners_hold_nothing(void) {
    rcn_context *ctx = make_context(1);
    rcn_file_lock *lock = NULL;
    int ready[2];
    char byte = 0;
    CHECK(!pipe(ready));
    const pid_t child = fork();
    if (child == 0) {
        const int held = rcn_file_lock_create(&lock, ctx, "a") == RCN_OK;
        if (!held || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    CHECK(child > 0 && read(ready[0], &byte, 1) == 1);
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_EIO);
    CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
    CHECK(entries() == 1);
    CHECK_STATUS(rcn_file_lock_create(&lock, ctx, "a"), RCN_OK);
    rcn_file_lock_destroy(lock);
    CHECK(entries() == 0);
    close(ready[0]);
    close(ready[1]);
    rcn_context_destroy(ctx);
}

#endif

static rcn_status lock_and_replace(rcn_context *ctx, void *payload) {
    const char *path = payload;
    rcn_file_lock *lock = NULL;
    rcn_status status = rcn_file_lock_create(&lock, ctx, path);
    if (status == RCN_OK) status = replace(ctx, path, "text");
    rcn_file_lock_destroy(lock);
    return status;
}

static void failing_allocations(void) {
    check_failing_allocations(lock_and_replace, "a");
    CHECK(!remove("a") && entries() == 0);
#ifndef _WIN32
    CHECK(!symlink("a", "link"));
    check_failing_allocations(lock_and_replace, "link");
    CHECK(!remove("link") && !remove("a") && entries() == 0);
#endif
}

int main(void) {
#ifdef _WIN32
    snprintf(folder, sizeof folder, "test_rcn_file-%06u",
             (unsigned)rcn__process_number() % 1000000);
    if (mkdir(folder, 0777) || chdir(folder)) return EXIT_FAILURE;
#else
    if (!mkdtemp(folder) || chdir(folder)) return EXIT_FAILURE;
    RUN(follows_links);
    RUN(no_ordinary_file);
    RUN(one_at_a_time_through_links);
    RUN(killed_owners_hold_nothing);
#endif
    RUN(takes_its_place);
    RUN(says_why_not);
    RUN(a_signal_removes_all);
    RUN(one_at_a_time);
    RUN(failing_allocations);
    if (chdir("..") || rmdir(folder)) return EXIT_FAILURE;
    return TEST_RESULT;
}
