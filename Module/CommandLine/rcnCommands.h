/// The commands, one file each.
#ifndef rcnCommands_h
#define rcnCommands_h

#include "rcnCommandLine.h"

namespace rcn
{

Command AgreeCommand();
Command FuseCommand();

} // namespace rcn

#endif
