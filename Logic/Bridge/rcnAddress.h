// SPDX-License-Identifier: Apache-2.0
/// Addresses (URL) that were given where a file belongs.
#ifndef rcnAddress_h
#define rcnAddress_h

#include <cctype>
#include <filesystem>
#include <string>

#include "rcnError.h"

namespace rcn
{

/// Throws Error (RCN_EINVALID) for "http://...", "s3://..." and the like; `about` begins the sentence, such as "--image ".
inline void RefuseAddress(const std::string& path, const std::string& about = "")
{
  const std::string::size_type colon = path.find("://");
  bool isScheme = colon != std::string::npos && colon > 0 && std::isalpha(static_cast<unsigned char>(path[0]));
  for (std::string::size_type i = 0; isScheme && i < colon; ++i)
  {
    const unsigned char c = static_cast<unsigned char>(path[i]);
    isScheme = std::isalnum(c) || c == '+' || c == '-' || c == '.';
  }
  std::error_code ignored;
  if (isScheme && !std::filesystem::exists(path, ignored))
  {
    throw Error(RCN_EINVALID,
      about + path + " is an address, and only files can be read and written; " +
        (path.rfind("file:", 0) == 0 ? "give the path without file://." : "download it and give the path of the file."));
  }
}

} // namespace rcn

#endif
