// SPDX-License-Identifier: Apache-2.0
/// Help, man page and bash completion, made of the descriptions of commands and options.
#ifndef rcnHelp_h
#define rcnHelp_h

#include "rcnCommandLine.h"

namespace rcn
{

/// Used by help and man page.
extern const char* const ExitCodesInWords;

/// Text in lines of at most 96 columns. It begins in column `indent`, as do the lines after the first.
std::string Wrap(const std::string& text, size_t indent = 0);

std::string HelpText(const Command& command);
std::string ManPage(const std::vector<Command>& commands);
std::string BashCompletion(const std::vector<Command>& commands);

} // namespace rcn

#endif
