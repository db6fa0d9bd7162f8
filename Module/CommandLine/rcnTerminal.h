// SPDX-License-Identifier: Apache-2.0
/// What a command prints: aligned tables, progress, remarks; and Ctrl-C.
#ifndef rcnTerminal_h
#define rcnTerminal_h

#include <chrono>
#include <string>
#include <vector>

#include "rcnArguments.h"
#include "rcnWorkspace.h"

namespace rcn
{

/// A table with aligned columns; numbers to the right.
class Table
{
public:
  explicit Table(std::vector<std::string> header) : Rows_{ std::move(header) } {}
  void Add(std::vector<std::string> row) { this->Rows_.push_back(std::move(row)); }
  std::string Text() const;

private:
  std::vector<std::vector<std::string>> Rows_;
};

/// A bar on standard error while it is a terminal, and Ctrl-C: the first asks to stop, the second ends
/// the program at once.
class Terminal
{
public:
  explicit Terminal(const Arguments& arguments);
  ~Terminal();
  /// Connects a workspace's progress to the bar and to Ctrl-C.
  void Watch(Workspace& workspace);
  /// Draws the bar, now and then; true after Ctrl-C.
  bool Show(double fraction, const char* stage);
  /// Which case of how many.
  void SetCase(const std::string& name, size_t index, size_t count);
  /// One line on standard error, unless --quiet.
  void Remark(const std::string& sentence) { this->Say(sentence, false); }
  /// The same for what a person must not miss: also with --quiet.
  void Warn(const std::string& sentence) { this->Say(sentence, true); }
  /// Whether Ctrl-C was pressed, or another signal asked to stop.
  static bool IsInterrupted() { return StopSignal() != 0; }
  /// Which signal; 0: none.
  static int StopSignal();
  /// Throws RCN_ECANCELLED after Ctrl-C.
  void ThrowIfInterrupted() const;

private:
  void ClearLine();
  void Say(const std::string& sentence, bool always);

  bool IsTerminal_, Quiet_, Silent_, Drawn_ = false;
  std::string Case_;
  std::chrono::steady_clock::time_point Last_;
};

} // namespace rcn

#endif
