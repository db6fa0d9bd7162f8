// SPDX-License-Identifier: Apache-2.0
/// One loop over the cases of a list, for everything that works case by case: comparing, fusing, predicting, judging. It
/// knows the split that was asked for, several processes, and what happens to a case that cannot be used.
#ifndef rcnCases_h
#define rcnCases_h

#include <functional>
#include <string>
#include <vector>

#include "rcnDataList.h"
#include "rcnJson.h"

namespace rcn
{

/// How to loop, and who is told. Every function may be empty.
struct CaseLoop
{
  std::string Split; ///< only cases of this split; empty: all
  /// Before each case: which one of how many. May throw Error (RCN_ECANCELLED) to stop.
  std::function<void(const std::string& id, size_t index, size_t count)> Begin;
  std::function<void(const std::string& sentence)> Remark;   ///< a remark about a case; the same sentence only once
  std::function<void(const std::string& sentence)> Warn;     ///< a case was left out
  std::function<std::string(const Error& error)> SentenceOf; ///< in the words of the shell; empty: the error's own
  bool LeaveOut = true;                                      ///< false: a case that cannot be used ends the loop with its Error
  /// Whether this process does the case with that place in the list, where the processes have shared the cases already.
  /// Empty: whichever process is free takes the next case, the largest first.
  std::function<bool(size_t number)> IsMine;
  bool Overlap = true; ///< whether the end of a case may go on, on a thread of its own, while the next case is worked on

  bool Takes(const Case& one) const { return this->Split.empty() || one.Split == this->Split; }
};

/// The work on one case: its place in the list, and remarks to be shown in the order of the list. The result is JSON, so that
/// it can travel between processes; null: nothing to report.
using CaseWork = std::function<JsonHandle(const Case& one, size_t number, std::vector<std::string>& remarks)>;

/// The end of the work on a case, such as writing its files. While it runs on a thread of its own, work on the next case
/// begins, but not that case's end: at most two cases are in memory.
using CaseEnd = std::function<JsonHandle(std::vector<std::string>& remarks)>;
using CaseWorkInTwoSteps = std::function<CaseEnd(const Case& one, size_t number, std::vector<std::string>& remarks)>;

/// Runs work() for every case of the list (of the split), and, in the first process, collect() with what it returned, in the
/// order of the list. A case whose work throws Error is left out and named to Warn, except for cancel, no memory, a full disk
/// and wrong options (RCN_EINVALID), which end the loop. Returns the cases that were left out, in the order of the list; every
/// process returns the same.
std::vector<LeftOutCase> ForEachCase(const DataList& list, const CaseLoop& loop, const CaseWork& work,
  const std::function<void(const Case&, const json_t*)>& collect = {});

/// The same for work with an end. Results, remarks and errors come in the order of the list, on the calling thread; a case is
/// told and collected after its end. No end is running when this returns or throws.
std::vector<LeftOutCase> ForEachCaseInTwoSteps(const DataList& list, const CaseLoop& loop, const CaseWorkInTwoSteps& work,
  const std::function<void(const Case&, const json_t*)>& collect = {});

} // namespace rcn

#endif
