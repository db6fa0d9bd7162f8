// SPDX-License-Identifier: Apache-2.0
/// Processes over MPI (Open MPI, MPICH): the only file that includes mpi.h.
#include "rcnProcessesMpi.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include "rcnFile.h"
#include "rcnProcesses.h"

namespace rcn
{

namespace
{

/// Messages to the listener of the first process, and its answers.
enum Tag
{
  AskForWork = 1,
  Work = 2,
  Failure = 3
};

constexpr int Piece = 1 << 28; // elements per call: counts of MPI are int, and a block of parameters can have more

/// Waits with longer and longer pauses. MPI_Wait() of Open MPI keeps a core busy, which other processes of this machine need.
class Patience
{
public:
  void Wait()
  {
    const auto waited = std::chrono::steady_clock::now() - this->Start_;
    if (waited < std::chrono::milliseconds(5))
    {
      std::this_thread::yield();
    }
    else
    {
      std::this_thread::sleep_for(std::chrono::microseconds(waited < std::chrono::milliseconds(100) ? 50 : 500));
    }
  }

private:
  std::chrono::steady_clock::time_point Start_ = std::chrono::steady_clock::now();
};

int WaitFor(MPI_Request* request)
{
  Patience patience;
  for (;;)
  {
    int done = 0;
    if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    {
      return 1;
    }
    if (done)
    {
      return 0;
    }
    patience.Wait();
  }
}

class MpiProcesses : public Processes
{
public:
  MpiProcesses();
  ~MpiProcesses() override;

  std::vector<std::string> Gather(const std::string& text) override;
  void Distribute(size_t count, const std::function<void(size_t)>& body) override;
  [[noreturn]] void Fail(const std::string& sentence, int exitCode) override;

private:
  static MPI_Datatype TypeOf(rcn_comm_type type)
  {
    return type == RCN_COMM_FLOAT ? MPI_FLOAT : type == RCN_COMM_DOUBLE ? MPI_DOUBLE : MPI_INT64_T;
  }
  static char* At(void* values, int64_t index, rcn_comm_type type)
  {
    return static_cast<char*>(values) + index * (type == RCN_COMM_FLOAT ? 4 : 8);
  }

  static int Sum(void* values, int64_t count, rcn_comm_type type, void* payload);
  static int BeginSum(void* values, int64_t count, rcn_comm_type type, void* payload);
  static int Poll(void* payload);
  static int FinishSums(void* payload);
  static int Broadcast(void* bytes, int64_t count, int root, void* payload);
  static int Barrier(void* payload);
  static int Exchange(void* in, const int64_t* inBytes, const void* out, const int64_t* outBytes, void* payload);

  void ShareCores();
  void Listen();
  [[noreturn]] void End(int rank, const std::string& host, const std::string& sentence, int exitCode);

  MPI_Comm World_ = MPI_COMM_NULL;   // for calls that wait
  MPI_Comm Behind_ = MPI_COMM_NULL;  // for sums that go on behind other work
  MPI_Comm Control_ = MPI_COMM_NULL; // for work, and for failures
  std::vector<MPI_Request> Begun_;
  bool HasListener_ = false;
  std::thread Listener_; // of the first process
  std::atomic<bool> Stop_{ false };
  int Messages_ = dup(STDERR_FILENO);
  std::mutex EndMutex_;
  // Work that is distributed: taken by the listener for other processes, and by the first process for itself.
  std::mutex WorkMutex_;
  int64_t NextWork_ = 0, WorkCount_ = -1; // -1: none yet
  int64_t TakeWork()
  {
    const std::lock_guard<std::mutex> lock(this->WorkMutex_);
    return this->NextWork_ < this->WorkCount_ ? this->NextWork_++ : -1;
  }
  bool HasWork()
  {
    const std::lock_guard<std::mutex> lock(this->WorkMutex_);
    return this->WorkCount_ >= 0;
  }
};

MpiProcesses::MpiProcesses()
{
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
  {
    throw Error(RCN_EIO, "MPI cannot be started; see the messages of mpirun, or start the program without it.");
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &this->World_);
  MPI_Comm_dup(MPI_COMM_WORLD, &this->Behind_);
  MPI_Comm_dup(MPI_COMM_WORLD, &this->Control_);
  for (MPI_Comm comm : { this->World_, this->Behind_, this->Control_ })
  {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(this->World_, &this->Comm_.rank);
  MPI_Comm_size(this->World_, &this->Comm_.size);
  char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  this->Host_ = std::string(name, static_cast<size_t>(length));
  this->Comm_.sum = Sum;
  this->Comm_.begin_sum = BeginSum;
  this->Comm_.poll = Poll;
  this->Comm_.finish = FinishSums;
  this->Comm_.broadcast = Broadcast;
  this->Comm_.barrier = Barrier;
  this->Comm_.exchange = Exchange;
  this->Comm_.payload = this;
  this->ShareCores();
  this->HasListener_ = provided >= MPI_THREAD_MULTIPLE && this->AreSeveral();
  if (this->HasListener_ && this->IsFirst())
  {
    this->Listener_ = std::thread([this] { this->Listen(); });
  }
}

MpiProcesses::~MpiProcesses()
{
  Barrier(this);
  this->Stop_ = true;
  if (this->Listener_.joinable())
  {
    this->Listener_.join();
  }
  for (MPI_Comm* comm : { &this->World_, &this->Behind_, &this->Control_ })
  {
    MPI_Comm_free(comm);
  }
  MPI_Finalize();
}

/// The threads of this process: its share of the cores it may run on. mpirun may have given each process cores of its own, or
/// all processes the same ones, so each core counts 1 / (number of processes that may use it).
void MpiProcesses::ShareCores()
{
#ifdef __linux__
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(this->World_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
  {
    int mine[CPU_SETSIZE], users[CPU_SETSIZE];
    for (int c = 0; c < CPU_SETSIZE; ++c)
    {
      mine[c] = CPU_ISSET(c, &allowed) ? 1 : 0;
    }
    MPI_Allreduce(mine, users, CPU_SETSIZE, MPI_INT, MPI_SUM, machine);
    double share = 0;
    for (int c = 0; c < CPU_SETSIZE; ++c)
    {
      share += mine[c] ? 1.0 / users[c] : 0;
    }
    this->Threads_ = std::max(1, static_cast<int>(share + 1e-6));
  }
  MPI_Comm_free(&machine);
#endif
}

// ---- the core's functions ----------------------------------------------------------------------------

int MpiProcesses::Sum(void* values, int64_t count, rcn_comm_type type, void* payload)
{
  MpiProcesses* self = static_cast<MpiProcesses*>(payload);
  for (int64_t at = 0; at < count; at += Piece)
  {
    MPI_Request request;
    const int size = static_cast<int>(std::min<int64_t>(Piece, count - at));
    if (MPI_Iallreduce(MPI_IN_PLACE, At(values, at, type), size, TypeOf(type), MPI_SUM, self->World_, &request) !=
        MPI_SUCCESS ||
      WaitFor(&request))
    {
      return 1;
    }
  }
  return 0;
}

int MpiProcesses::BeginSum(void* values, int64_t count, rcn_comm_type type, void* payload)
{
  MpiProcesses* self = static_cast<MpiProcesses*>(payload);
  for (int64_t at = 0; at < count; at += Piece)
  {
    MPI_Request request;
    const int size = static_cast<int>(std::min<int64_t>(Piece, count - at));
    if (MPI_Iallreduce(MPI_IN_PLACE, At(values, at, type), size, TypeOf(type), MPI_SUM, self->Behind_, &request) != MPI_SUCCESS)
    {
      return 1;
    }
    self->Begun_.push_back(request);
  }
  return Poll(payload);
}

/// Most networks transfer data only while a function of MPI is running, so the core calls this between its own steps.
int MpiProcesses::Poll(void* payload)
{
  MpiProcesses* self = static_cast<MpiProcesses*>(payload);
  int done = 0;
  return !self->Begun_.empty() &&
    MPI_Testall(static_cast<int>(self->Begun_.size()), self->Begun_.data(), &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS;
}

int MpiProcesses::FinishSums(void* payload)
{
  MpiProcesses* self = static_cast<MpiProcesses*>(payload);
  int failed = 0;
  for (MPI_Request& request : self->Begun_)
  {
    failed |= request != MPI_REQUEST_NULL && WaitFor(&request);
  }
  self->Begun_.clear();
  return failed;
}

int MpiProcesses::Broadcast(void* bytes, int64_t count, int root, void* payload)
{
  MpiProcesses* self = static_cast<MpiProcesses*>(payload);
  for (int64_t at = 0; at < count; at += Piece)
  {
    MPI_Request request;
    const int size = static_cast<int>(std::min<int64_t>(Piece, count - at));
    if (MPI_Ibcast(static_cast<char*>(bytes) + at, size, MPI_BYTE, root, self->World_, &request) != MPI_SUCCESS ||
      WaitFor(&request))
    {
      return 1;
    }
  }
  return 0;
}

int MpiProcesses::Barrier(void* payload)
{
  MpiProcesses* self = static_cast<MpiProcesses*>(payload);
  MPI_Request request;
  return MPI_Ibarrier(self->World_, &request) != MPI_SUCCESS || WaitFor(&request);
}

int MpiProcesses::Exchange(void* in, const int64_t* inBytes, const void* out, const int64_t* outBytes, void* payload)
{
  MpiProcesses* self = static_cast<MpiProcesses*>(payload);
  std::vector<MPI_Request> requests;
  char* to = static_cast<char*>(in);
  const char* from = static_cast<const char*>(out);
  int failed = 0;
  for (int r = 0; r < self->Count(); to += inBytes[r], ++r)
  {
    for (int64_t at = 0; at < inBytes[r]; at += Piece)
    {
      requests.emplace_back();
      failed |= MPI_Irecv(to + at, static_cast<int>(std::min<int64_t>(Piece, inBytes[r] - at)), MPI_BYTE, r, 0, self->World_,
                  &requests.back()) != MPI_SUCCESS;
    }
  }
  for (int r = 0; r < self->Count(); from += outBytes[r], ++r)
  {
    for (int64_t at = 0; at < outBytes[r]; at += Piece)
    {
      requests.emplace_back();
      failed |= MPI_Isend(from + at, static_cast<int>(std::min<int64_t>(Piece, outBytes[r] - at)), MPI_BYTE, r, 0, self->World_,
                  &requests.back()) != MPI_SUCCESS;
    }
  }
  for (size_t i = 0; !failed && i < requests.size(); ++i)
  {
    failed |= WaitFor(&requests[i]);
  }
  return failed;
}

// ---- texts and work ----------------------------------------------------------------------------------

std::vector<std::string> MpiProcesses::Gather(const std::string& text)
{
  const size_t count = static_cast<size_t>(this->Count());
  std::vector<int64_t> sizes(count, 0);
  sizes[static_cast<size_t>(this->Rank())] = static_cast<int64_t>(text.size());
  int failed = Sum(sizes.data(), static_cast<int64_t>(count), RCN_COMM_INT64, this);
  std::vector<std::string> texts(count);
  for (size_t r = 0; !failed && r < count; ++r)
  {
    texts[r] = static_cast<int>(r) == this->Rank() ? text : std::string(static_cast<size_t>(sizes[r]), '\0');
    failed = Broadcast(&texts[r][0], sizes[r], static_cast<int>(r), this);
  }
  if (failed)
  {
    throw Error(RCN_EIO, "The connection between the processes was lost.");
  }
  return texts;
}

/// The second thread of the first process: distributes work while the first thread works, and reports failures of others.
void MpiProcesses::Listen()
{
  std::vector<int> waiting; // processes that asked before there was work
  while (!this->Stop_)
  {
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, this->Control_, &found, &status) != MPI_SUCCESS)
    {
      return;
    }
    if (found && status.MPI_TAG == Failure)
    {
      int length = 0;
      MPI_Get_count(&status, MPI_BYTE, &length);
      std::string text(static_cast<size_t>(length), '\0');
      MPI_Recv(&text[0], length, MPI_BYTE, status.MPI_SOURCE, Failure, this->Control_, MPI_STATUS_IGNORE);
      const size_t first = text.find('\n'), second = text.find('\n', first + 1); // exit code, host, sentence
      this->End(
        status.MPI_SOURCE, text.substr(first + 1, second - first - 1), text.substr(second + 1), std::atoi(text.c_str()));
    }
    if (found)
    {
      int64_t ignored;
      MPI_Recv(&ignored, 1, MPI_INT64_T, status.MPI_SOURCE, AskForWork, this->Control_, MPI_STATUS_IGNORE);
      waiting.push_back(status.MPI_SOURCE);
    }
    while (!waiting.empty() && this->HasWork())
    {
      const int64_t next = this->TakeWork();
      MPI_Send(&next, 1, MPI_INT64_T, waiting.back(), Work, this->Control_);
      waiting.pop_back();
    }
    if (!found)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void MpiProcesses::Distribute(size_t count, const std::function<void(size_t)>& body)
{
  if (!this->HasListener_) // an MPI without threads cannot answer while it works: a fixed share for each process
  {
    for (size_t i = static_cast<size_t>(this->Rank()); i < count; i += static_cast<size_t>(this->Count()))
    {
      body(i);
    }
    return;
  }
  if (this->IsFirst())
  {
    {
      const std::lock_guard<std::mutex> lock(this->WorkMutex_);
      this->NextWork_ = 0;
      this->WorkCount_ = static_cast<int64_t>(count);
    }
    for (int64_t next = this->TakeWork(); next >= 0; next = this->TakeWork())
    {
      body(static_cast<size_t>(next));
    }
  }
  for (int64_t next = 0; !this->IsFirst() && next >= 0;)
  {
    MPI_Request answer;
    MPI_Irecv(&next, 1, MPI_INT64_T, 0, Work, this->Control_, &answer);
    const int64_t ask = 0;
    if (MPI_Send(&ask, 1, MPI_INT64_T, 0, AskForWork, this->Control_) != MPI_SUCCESS || WaitFor(&answer))
    {
      throw Error(RCN_EIO, "The connection between the processes was lost.");
    }
    if (next >= 0)
    {
      body(static_cast<size_t>(next));
    }
  }
  this->WaitForAll(); // no process asks for work any more
  const std::lock_guard<std::mutex> lock(this->WorkMutex_);
  this->WorkCount_ = -1;
}

// ---- failing -----------------------------------------------------------------------------------------

void MpiProcesses::End(int rank, const std::string& host, const std::string& sentence, int exitCode)
{
  this->EndMutex_.lock(); // never unlocked: only the first message is printed
  AtomicFile::RemoveAll();
  const std::string line = "rater-consensus: process " + std::to_string(rank) + " of " + std::to_string(this->Count()) +
    " on " + host + ": " + sentence + "\n";
  // Not through stderr, which the other thread may have turned away from the terminal while it reads an image.
  if (write(this->Messages_, line.data(), line.size()) < 0)
  {
    std::fputs(line.c_str(), stderr);
  }
  // mpirun forwards the line with a delay, and MPI_Abort() makes it drop what it has not forwarded.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  MPI_Abort(MPI_COMM_WORLD, exitCode);
  std::_Exit(exitCode);
}

void MpiProcesses::Fail(const std::string& sentence, int exitCode)
{
  if (!this->AreSeveral())
  {
    Processes::Fail(sentence, exitCode);
  }
  AtomicFile::RemoveAll();
  if (!this->IsFirst())
  {
    // The first process prints the message and ends all, so that one message comes when several fail at once. This process
    // ends all by itself only when the first one does not answer.
    const std::string text = std::to_string(exitCode) + "\n" + this->Host_ + "\n" + sentence;
    if (this->HasListener_)
    {
      MPI_Request request;
      MPI_Isend(
        text.data(), static_cast<int>(std::min<size_t>(text.size(), 1 << 20)), MPI_BYTE, 0, Failure, this->Control_, &request);
      for (int i = 0; i < 2000; ++i) // twenty seconds: ending processes elsewhere takes its time
      {
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    else
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(300 + 10 * (this->Rank() % 64)));
    }
  }
  this->End(this->Rank(), this->Host_, sentence, exitCode);
}

} // namespace

std::unique_ptr<Processes> JoinProcesses()
{
  return std::unique_ptr<Processes>(new MpiProcesses);
}

} // namespace rcn
