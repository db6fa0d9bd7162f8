// SPDX-License-Identifier: Apache-2.0
/// The processes that mpirun (or a scheduler) started together to do one command's work. Without it there is one, and
/// nothing here costs anything. Only rcnProcessesMpi.cxx knows MPI.
///
/// Every process runs the same command and comes by the same calls in the same order. The first one prints and writes
/// what belongs to all.
#ifndef rcnProcesses_h
#define rcnProcesses_h

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rcn/rcn_comm.h"
#include "rcnJson.h"

namespace rcn
{

class Processes
{
public:
  virtual ~Processes() = default;

  /// Those of this program: one until Start().
  static Processes& All();

  /// Joins the others when mpirun started this program; to be called once, before any work. Throws Error when they
  /// cannot work together.
  static void Start();

  /// Waits for the others and takes leave of them, at the end of all work.
  static void Finish();

  /// As far as the environment tells, before Start(): whether this is the first or the only process.
  static bool IsFirstByEnvironment();

  int Rank() const { return this->Comm_.rank; }
  int Count() const { return this->Comm_.size; }
  bool IsFirst() const { return this->Comm_.rank == 0; }
  bool AreSeveral() const { return this->Comm_.size > 1; }

  /// For the core; null for one process.
  rcn_comm* Comm() { return this->AreSeveral() ? &this->Comm_ : nullptr; }

  /// Threads that a process should use when nobody says how many: its share of the machine's cores; 0: all.
  int Threads() const { return this->Threads_; }

  /// "process 1 of 4 on node07"; empty for one process.
  std::string Name() const;

  /// Every process's text, by number, in every process.
  virtual std::vector<std::string> Gather(const std::string& text);

  /// The first process's text, in every process.
  std::string FromFirst(const std::string& text);

  /// Whether the first process says so.
  bool FirstSays(bool yes);

  /// Runs body(i) for i = 0 ... count - 1, each in whichever process is free. Returns when nothing is left to begin.
  virtual void HandOut(size_t count, const std::function<void(size_t)>& body);

  /// Waits for all.
  void Meet();

  /// Ends all processes with one message, this one's unless another has failed first.
  [[noreturn]] virtual void Fail(const std::string& sentence, int exitCode);

protected:
  Processes();
  rcn_comm Comm_{};
  int Threads_ = 0;
  std::string Host_;
};

/// A table of records (JSON objects by number) that processes fill together: each knows its own, and after Merge() all
/// of them know all.
class SharedRecords
{
public:
  void Set(size_t number, json_t* record); ///< takes it over
  void Merge(Processes& processes);
  json_t* Get(size_t number) const; ///< borrowed; null where there is none
  size_t Count() const { return this->Records_.size(); }

private:
  std::vector<JsonHandle> Records_;
};

} // namespace rcn

#endif
