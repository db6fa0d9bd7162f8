// SPDX-License-Identifier: Apache-2.0
/// What a person can do about an error in the viewer. Sentences made in Logic/ know no buttons; what they lack is added here,
/// by the error's key, where an error leaves the bridge for the screen: qRcnJobs for all work, and the few places that catch
/// errors themselves.
#ifndef rcnViewerWayOut_h
#define rcnViewerWayOut_h

#include <string>

#include "rcnError.h"

namespace rcn
{

/// "Open each mask with the image that it was drawn on."; empty for a key that the viewer cannot help with.
std::string ViewerWayOut(const std::string& key);

/// The error's sentence, and the way out behind it.
std::string ViewerSentenceOf(const Error& error);

/// Does it; whoever catches an error sees the way out, too. The key is used up: advice must not be added twice.
template <class T> auto WithViewerWayOut(const T& step) -> decltype(step())
{
  try
  {
    return step();
  }
  catch (const Error& error)
  {
    throw Error(error.Status(), ViewerSentenceOf(error));
  }
}

} // namespace rcn

#endif
