// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_status.h"

#include <errno.h>

const char *rcn_status_name(rcn_status status) {
    switch (status) {
    case RCN_OK: return "RCN_OK";
    case RCN_EINVALID: return "RCN_EINVALID";
    case RCN_ENOMEM: return "RCN_ENOMEM";
    case RCN_ECANCELLED: return "RCN_ECANCELLED";
    case RCN_EDATA: return "RCN_EDATA";
    case RCN_EGEOMETRY: return "RCN_EGEOMETRY";
    case RCN_EFORMAT: return "RCN_EFORMAT";
    case RCN_EIO: return "RCN_EIO";
    case RCN_EUNSUPPORTED: return "RCN_EUNSUPPORTED";
    case RCN_EINTERNAL: return "RCN_EINTERNAL";
    case RCN_ESPACE: return "RCN_ESPACE";
    }
    return "unknown status";
}

/* A full disk has a status of its own, because a person can mend it. EDQUOT is not in C11. */
rcn_status rcn_status_of_write(int reason) {
#ifdef EDQUOT
    if (reason == EDQUOT) return RCN_ESPACE;
#endif
    return reason == ENOSPC || reason == EFBIG ? RCN_ESPACE : RCN_EIO;
}
