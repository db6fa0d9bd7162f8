/// The commands, one file each.
#ifndef rcnCommands_h
#define rcnCommands_h

#include "rcnCommandLine.h"

namespace rcn
{

Command AgreeCommand();
Command FuseCommand();
Command EvaluateCommand();
Command RecalibrateCommand();
Command DemoCommand();
#ifdef RCN_HAVE_NETWORKS
Command PredictCommand();
#endif

/// The tables of `agree`, as text.
std::string AgreementText(const AgreementReport& report, const Workspace& workspace, const std::string& title,
  size_t regions);

} // namespace rcn

#endif
