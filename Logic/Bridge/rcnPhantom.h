// SPDX-License-Identifier: Apache-2.0
/// Built-in cases (rcn/rcn_phantom.h) in memory: an image and five raters who disagree, for people without data of their own.
#ifndef rcnPhantom_h
#define rcnPhantom_h

#include <string>
#include <vector>

#include "rcn/rcn_phantom.h"
#include "rcnWorkspace.h"

namespace rcn
{

struct Phantom
{
  Volume Image; ///< float32
  std::vector<RaterMask> Raters;
  std::vector<Structure> Structures = {}; ///< of label maps; empty: masks
};

/// Ada, Ben, Cleo, Dan and Eva.
const std::vector<std::string>& PhantomRaters();

/// With as many raters of PhantomRaters() as the options say, at most all of them. Throws Error.
Phantom MakePhantom(rcn_context* context, const rcn_phantom_options& options, const rcn_geometry& geometry);

/// The same with three structures that touch: the raters' masks are label maps.
Phantom MakeStructurePhantom(rcn_context* context, const rcn_phantom_options& options, const rcn_geometry& geometry);

/// Two halves of an organ, and a vessel where they meet.
const std::vector<Structure>& PhantomStructures();

/// The volume that the demo and the module begin with; each number gives another patient of the same raters, 0 the first.
Phantom MakeExample(rcn_context* context, int number = 0);

} // namespace rcn

#endif
