// SPDX-License-Identifier: Apache-2.0
/// The processes that mpirun (or a scheduler) started together for one command. Without mpirun there is one process, and
/// nothing here costs anything. Only rcnProcessesMpi.cxx includes MPI.
///
/// Every process runs the same command and makes the same calls in the same order. The first one prints, and writes what
/// belongs to all.
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

  /// Waits for the other processes and leaves MPI, at the end of all work.
  static void Finish();

  /// Before Start(), by the environment: whether this is the first or the only process.
  static bool IsFirstByEnvironment();

  int Rank() const { return this->Comm_.rank; }
  int Count() const { return this->Comm_.size; }
  bool IsFirst() const { return this->Comm_.rank == 0; }
  bool AreSeveral() const { return this->Comm_.size > 1; }

  /// For the core; null for one process.
  rcn_comm* Comm() { return this->AreSeveral() ? &this->Comm_ : nullptr; }

  /// Default number of threads of this process: its share of the machine's cores; 0: all.
  int Threads() const { return this->Threads_; }

  /// "process 1 of 4 on node07"; empty for one process.
  std::string Name() const;

  /// Every process's text, by number, in every process.
  virtual std::vector<std::string> Gather(const std::string& text);

  /// The first process's text, in every process.
  std::string FromFirst(const std::string& text);

  /// The answer of the first process, for what only one process can decide, such as a clock.
  bool FirstSays(bool yes);

  /// Runs body(i) for i = 0 ... count - 1, each in whichever process is free. Returns when all have begun.
  virtual void Distribute(size_t count, const std::function<void(size_t)>& body);

  /// A barrier: returns when every process has called it.
  void WaitForAll();

  /// Ends all processes with one message, this one's unless another has failed first.
  [[noreturn]] virtual void Fail(const std::string& sentence, int exitCode);

protected:
  Processes();
  rcn_comm Comm_{};
  int Threads_ = 0;
  std::string Host_;
};

/// A table of records (JSON objects by number) that processes fill together: each has its own, and after Merge() all
/// processes have all records.
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
