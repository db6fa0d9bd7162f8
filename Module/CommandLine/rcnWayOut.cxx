// SPDX-License-Identifier: Apache-2.0
#include "rcnWayOut.h"

#include <map>

namespace rcn
{

std::string WayOut(const std::string& key)
{
  // Keys of Error, in alphabetical order.
  static const std::map<std::string, const char*> ways = {
    { "corrected", "Predict with --no-recalibration first, or leave out --recalibration." },
    { "data", "Use --data LIST." },
    { "exists", "Use --overwrite to replace it, or another -o." },
    { "exists-resumable", "Use --resume to continue its training, --overwrite to replace it, or another -o." },
    { "fitted-cases", "Use other cases, or --allow-fitted-cases." },
    { "geometry", "Use --resample to resample it." },
    { "input", "Use --rater NAME=FILE for one case, or --data LIST." },
    { "network", "Leave out --arch." },
    { "output", "Use -o." },
    { "predictions", "Use --pred NAME=FILE." },
    { "raters", "Use --rater NAME=FILE." },
    { "readout", "Use --readout." },
    { "recalibration", "Use --no-recalibration to leave it out." },
    { "reference", "Use --reference." },
    { "resume", "Use --overwrite instead of --resume to start again." },
    { "scale", "Use --scale, such as --scale 255." },
    { "slices", "Use --arch unet3d to learn from whole volumes." },
    { "split", "Use --split to choose another." },
    { "structure", "Use --structure NAME." },
  };
  const auto found = ways.find(key);
  return found == ways.end() ? "" : found->second;
}

std::string SentenceOf(const Error& error)
{
  const std::string way = WayOut(error.Key());
  return way.empty() ? error.what() : error.what() + (" " + way);
}

} // namespace rcn
