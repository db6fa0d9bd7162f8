// SPDX-License-Identifier: Apache-2.0
/// Files that are never half written: each is written beside its target and then takes its place in one step, so that a
/// failure leaves the old one as it was. The core's rcn_file.h in C++.
#ifndef rcnFile_h
#define rcnFile_h

#include <cstdio>
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

/// A text that grows piece by piece and is never in memory as a whole, for results of any number of cases. It is kept in a file
/// beside its target, or where the system keeps temporary files, until it is complete.
class TextFile
{
public:
  /// `target` as of WriteText(): "-", pipes and devices get the text at the end. Throws Error (RCN_EIO, RCN_ESPACE).
  explicit TextFile(const std::string& target);
  /// What is not committed is removed.
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  /// Throws Error (RCN_EIO, RCN_ESPACE), as do the others.
  void Add(const std::string& text);
  /// All that another one has, which gets nothing more.
  void Add(TextFile& other);

  /// Takes the target's place, once.
  void Commit();

private:
  void Close();
  /// Calls `use` with what was added, in pieces.
  template <class TUse> void ForEachPiece(const TUse& use);

  std::string Target_;
  bool Replaces_; // the target is an ordinary file, or none yet
  AtomicFile Beside_;
  std::FILE* File_ = nullptr;
};

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
