// SPDX-License-Identifier: Apache-2.0
/// Files that are never half written: each is written beside its target and then takes its place in one step, so that a
/// failure leaves the old one as it was. The core's rcn_file.h in C++.
#ifndef rcnFile_h
#define rcnFile_h

#include <memory>
#include <string>

#include "rcnError.h"

namespace rcn
{

/// "NAME cannot be written: ...", from the errno of the failed call. RCN_ESPACE where room is lacking, otherwise RCN_EIO.
Error WriteError(const std::string& name, int reason);

class AtomicFile
{
public:
  /// Makes an empty file ".rcn-...NAME" in the target's folder, with the target's extension; a link is followed. Throws
  /// Error (RCN_EIO, RCN_ESPACE) that says why when that is not possible.
  explicit AtomicFile(const std::string& target);
  /// Removes the file unless Commit() succeeded.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

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

/// Writes a text file; "-" is standard output; pipes and devices are written to. Throws Error (RCN_EIO).
void WriteText(const std::string& path, const std::string& text);

/// The sentence WriteText() would fail with because of the path alone; empty when it looks writable.
std::string CheckText(const std::string& path);

/// Makes a folder for results, with those above it; throws Error (RCN_EIO) when it cannot.
void MakeFolder(const std::string& path);

/// All of a file; throws Error (RCN_EIO) with its name.
std::string ReadText(const std::string& path);

/// Copies a file over another one or to a new place. Throws Error (RCN_EIO, RCN_ESPACE).
void CopyFile(const std::string& from, const std::string& to);

} // namespace rcn

#endif
