// SPDX-License-Identifier: Apache-2.0
#include "rcnViewerWayOut.h"

#include <map>

namespace rcn
{

std::string ViewerWayOut(const std::string& key)
{
  // Keys of Error, in alphabetical order. Those without advice cannot be met here, or the window has no control for them: it
  // chooses names for new models, checks what an export needs before it begins, and sets no reference and no limit of cases.
  static const std::map<std::string, const char*> ways = {
    { "corrected", "Evaluate the model with its correction, or choose one without a correction." },
    { "exists", "" },
    { "exists-resumable", "" },
    { "fitted-cases", "" },
    { "geometry", "Open each mask together with the image that it was drawn on." },
    { "input", "" },
    { "network", "" },
    { "output", "" },
    { "predictions", "" },
    { "raters", "Open a case with raters' masks." },
    { "readout", "Choose a model without a correction, or press Evaluate to use the model's own readout." },
    { "recalibration", "Choose a model without a correction." },
    { "reference", "" },
    { "resume", "" },
    { "scale", "The viewer cannot be told that number; it needs a map of float32." },
    { "split", "" },
    { "structure", "" },
  };
  const auto found = ways.find(key);
  return found == ways.end() ? "" : found->second;
}

std::string ViewerSentenceOf(const Error& error)
{
  const std::string way = ViewerWayOut(error.Key());
  return way.empty() ? error.what() : error.what() + (" " + way);
}

} // namespace rcn
