// SPDX-License-Identifier: Apache-2.0
/// What a person can do about an error on the command line.
#ifndef rcnWayOut_h
#define rcnWayOut_h

#include <string>

#include "rcnError.h"

namespace rcn
{

/// "Use --scale, such as --scale 255."; empty for a key that the command line cannot help with.
std::string WayOut(const std::string& key);

/// The error's sentence, and the way out behind it.
std::string SentenceOf(const Error& error);

} // namespace rcn

#endif
