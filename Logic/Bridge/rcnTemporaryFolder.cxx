// SPDX-License-Identifier: Apache-2.0
#include "rcnTemporaryFolder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "rcnPlatform.h"

namespace rcn
{

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const std::string& parent)
{
  std::error_code failure;
  const fs::path place = parent.empty() ? fs::temp_directory_path(failure) : fs::path(parent);
  this->Path_ = failure ? "" : platform::MakePrivateFolder(place.string());
  if (this->Path_.empty())
  {
    throw Error(RCN_EIO,
      "No folder for temporary files can be made in " + (failure ? "the folder that TMPDIR names" : place.string()) + ": " +
        (failure ? failure.message() : std::strerror(errno)) + ".");
  }
}

TemporaryFolder::~TemporaryFolder()
{
  std::error_code ignored;
  fs::remove_all(this->Path_, ignored);
}

} // namespace rcn
