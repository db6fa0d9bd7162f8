// SPDX-License-Identifier: Apache-2.0
/* Status codes: how every fallible function of the library answers.
 *
 * Zero is success, failures are negative, and the values never change meaning. The code is for
 * programs; the sentence for a person is rcn_context_error().
 */
#ifndef RCN_STATUS_H
#define RCN_STATUS_H

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

/* The status of a failed write, from its errno: RCN_ESPACE if the disk is full, else RCN_EIO. */
RCN_API rcn_status rcn_status_of_write(int reason);

#ifdef __cplusplus
}
#endif

#endif /* RCN_STATUS_H */
