// SPDX-License-Identifier: Apache-2.0
/// A folder for files that nobody else may read and that go with the object: images of patients, say.
#ifndef rcnTemporaryFolder_h
#define rcnTemporaryFolder_h

#include <string>

#include "rcnError.h"

namespace rcn
{

class TemporaryFolder
{
public:
  /// Makes the folder with a name of its own, for its owner alone, in `parent` or else where the system keeps temporary
  /// files. Throws Error (RCN_EIO).
  explicit TemporaryFolder(const std::string& parent = "");
  /// Removes it with all that is in it.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& Path() const { return this->Path_; }
  std::string operator/(const std::string& name) const { return this->Path_ + "/" + name; }

private:
  std::string Path_;
};

} // namespace rcn

#endif
