#include "rcn/rcn_status.h"

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
    }
    return "unknown status";
}
