// SPDX-License-Identifier: Apache-2.0
/* Status codes: how every fallible function of the library answers.
 *
 * Zero is success, failures are negative, and the values never change meaning: they cross the
 * borders of shared libraries and may be stored. The code is for programs; the sentence for a
 * person is rcn_context_error(), which says what is wrong with which file, voxel or option.
 *
 * What a program can do about them differs. RCN_EINVALID is the caller's mistake and comes back for
 * every case; RCN_EDATA, RCN_EGEOMETRY, RCN_EFORMAT and RCN_EIO are about this case or file, and
 * the next one may be fine; after RCN_ECANCELLED, RCN_ENOMEM and RCN_ESPACE going on is not wanted
 * or makes no sense. All objects can still be used or destroyed after any of them, unless a comment
 * says otherwise.
 */
#ifndef RCN_STATUS_H
#define RCN_STATUS_H

/* Marks what the shared library lets others see: it is built with RCN_BUILDING, whoever uses it
 * defines RCN_SHARED alone. The static library, which most programs link, needs neither. */
#if defined(RCN_SHARED) && defined(_WIN32)
#ifdef RCN_BUILDING
#define RCN_API __declspec(dllexport)
#else
#define RCN_API __declspec(dllimport)
#endif
#elif defined(RCN_SHARED) && defined(__GNUC__)
#define RCN_API __attribute__((visibility("default")))
#else
#define RCN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rcn_status {
    RCN_OK = 0,
    RCN_EINVALID = -1,     /* an argument or option makes no sense */
    RCN_ENOMEM = -2,       /* memory could not be had; the sentence says how much was asked for */
    RCN_ECANCELLED = -3,   /* the progress callback asked to stop */
    RCN_EDATA = -4,        /* voxels or cases that cannot be used: NaN, fractional labels, ... */
    RCN_EGEOMETRY = -5,    /* two images do not cover the same voxels */
    RCN_EFORMAT = -6,      /* a file does not follow its format */
    RCN_EIO = -7,          /* reading or writing failed */
    RCN_EUNSUPPORTED = -8, /* right, but not available in this build or version */
    RCN_EINTERNAL = -9,    /* a defect of ours; please report it */
    RCN_ESPACE = -10 /* no room to write: the disk or the quota is full, or the file is too large */
} rcn_status;

/* The code's name, e.g. "RCN_EDATA"; "unknown status" for any other number. Never NULL. */
RCN_API const char *rcn_status_name(rcn_status status);

/* The status of a failed write, from its errno: RCN_ESPACE where there is no room (ENOSPC, EDQUOT,
 * EFBIG), else RCN_EIO. So that all who write files, in C and C++, tell a full disk from a broken
 * one. */
RCN_API rcn_status rcn_status_of_write(int reason);

#ifdef __cplusplus
}
#endif

#endif /* RCN_STATUS_H */
