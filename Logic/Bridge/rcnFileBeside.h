// SPDX-License-Identifier: Apache-2.0
/// A file that is written beside its target and then takes its place in one step, so that nobody ever
/// sees a half-written result and a failure leaves the old one as it was. The core's rcn_file.h in C++.
#ifndef rcnFileBeside_h
#define rcnFileBeside_h

#include <memory>
#include <string>

#include "rcnError.h"

namespace rcn
{

/// "NAME cannot be written: ...", from the errno of the failed call. RCN_ESPACE where room is lacking, otherwise RCN_EIO.
Error WriteError(const std::string& name, int reason);

class FileBeside
{
public:
  /// Makes an empty file ".rcn-...NAME" in the target's folder, with the target's extension; a link is followed. Throws
  /// Error (RCN_EIO, RCN_ESPACE) that says why when that is not possible.
  explicit FileBeside(const std::string& target);
  /// Removes the file unless Commit() succeeded.
  ~FileBeside();
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;

  const std::string& Path() const { return this->Path_; }

  /// Takes the target's place. Throws Error (RCN_EIO, RCN_ESPACE).
  void Commit();

  /// The sentence with which writing there would fail; empty when it looks possible. Lets long work
  /// fail early. Throws Error (RCN_ESPACE) when there is no room at all, whatever the name.
  static std::string Check(const std::string& target);

  /// Removes whatever is being written, for a signal handler that ends the program.
  static void RemoveAll() noexcept;

private:
  struct Internals;
  std::unique_ptr<Internals> Internals_;
  std::string Path_;
};

} // namespace rcn

#endif
