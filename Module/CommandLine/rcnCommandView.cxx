// SPDX-License-Identifier: Apache-2.0
/// rater-consensus view: starts the viewer, a separate program beside this one, so that the command line needs no Qt.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "rcnCommands.h"
#include "rcnPlatform.h"

namespace rcn
{

namespace
{

/// The words as they were given; ParseArguments() found them good.
std::vector<std::string> WordsOf(const Arguments& arguments)
{
  std::vector<std::string> words;
  for (const auto& [name, values] : arguments.Values())
  {
    for (const std::string& value : values)
    {
      if (name[0] == '-')
      {
        words.push_back(name);
      }
      words.push_back(value);
    }
  }
  return words;
}

int RunView(const Arguments& arguments)
{
  const std::filesystem::path own = platform::OwnProgram();
  const std::string viewer = (own.parent_path() / ("rater-consensus-viewer" + own.extension().string())).string();
  if (!platform::IsExecutable(viewer))
  {
    throw Error(RCN_EUNSUPPORTED, "The viewer was not built because Qt was not found; install qtbase5-dev and build again.");
  }
#ifdef __linux__
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY") && !std::getenv("QT_QPA_PLATFORM"))
  {
    throw Error(RCN_EUNSUPPORTED,
      "No display was found: neither DISPLAY nor WAYLAND_DISPLAY is set. Use xvfb-run to take pictures without a display.");
  }
#endif
  std::vector<std::string> words = WordsOf(arguments);
  words.insert(words.begin(), viewer);
  // Waiting threads would take cores from the window.
  platform::SetDefault("OMP_WAIT_POLICY", "passive");
  platform::StartInstead(viewer, words);
  throw Error(RCN_EIO, viewer + " cannot be started: " + std::strerror(errno) + ".");
}

} // namespace

Command ViewCommand()
{
  return { "view", "show cases, raters and models in a window",
    { "[FILE ...]", "--data LIST [--model MODEL]", "--image FILE --rater NAME=FILE ..." },
    "Opens the viewer: outlines and consensus of the raters on linked slices, agreement, disputed regions, predictions and "
    "their calibration, training and export. Drop files on the window to open them; press ? for the keys.",
    ViewOptions(), RunView };
}

} // namespace rcn
