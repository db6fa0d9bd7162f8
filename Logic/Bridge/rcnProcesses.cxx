// SPDX-License-Identifier: Apache-2.0
#include "rcnProcesses.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rcnFile.h"
#include "rcnProcessesMpi.h"

namespace rcn
{

namespace
{

std::unique_ptr<Processes>& Current()
{
  static std::unique_ptr<Processes> current;
  return current;
}

/// A whole number that the environment gives, or -1.
int FromEnvironment(const char* name)
{
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : -1;
}

/// How many processes were started together. The mpirun of Open MPI and MPICH sets the number; with PMIx alone it is known only
/// that there may be several (0). 1: a single process. The variables of SLURM are not used: a plain program in a batch script
/// has them too.
int StartedByEnvironment()
{
  for (const char* name : { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" })
  {
    if (FromEnvironment(name) > 0)
    {
      return FromEnvironment(name);
    }
  }
  return std::getenv("PMIX_RANK") || std::getenv("PMI_RANK") ? 0 : 1;
}

} // namespace

Processes::Processes()
{
  this->Comm_.size = 1;
}

Processes& Processes::All()
{
  if (!Current())
  {
    struct One : Processes
    {
    };
    Current().reset(new One);
  }
  return *Current();
}

bool Processes::IsFirstByEnvironment()
{
  for (const char* name : { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK" })
  {
    if (FromEnvironment(name) >= 0)
    {
      return FromEnvironment(name) == 0;
    }
  }
  return true;
}

void Processes::Start()
{
  const int started = StartedByEnvironment();
  if (started == 1)
  {
    return;
  }
#ifdef RCN_HAVE_MPI
  Current() = JoinProcesses();
  const int found = Current()->Count();
  if (started > 1 && found != started)
  {
    // Each process sees only itself: all of them would do all of the work and write the same files.
    Finish();
    if (!IsFirstByEnvironment())
    {
      std::exit(2);
    }
    throw Error(RCN_EINVALID,
      std::to_string(started) + " processes were started, but the MPI that this program was built with sees " +
        std::to_string(found) + "; start it with the mpirun of the same MPI.");
  }
#else
  if (started > 1)
  {
    if (!IsFirstByEnvironment())
    {
      std::exit(2);
    }
    throw Error(RCN_EUNSUPPORTED,
      std::to_string(started) +
        " processes were started, but this program was built without MPI (RCN_MPI); start it without mpirun.");
  }
#endif
}

void Processes::Finish()
{
  Current().reset();
}

std::string Processes::Name() const
{
  return this->AreSeveral()
    ? "process " + std::to_string(this->Rank()) + " of " + std::to_string(this->Count()) + " on " + this->Host_
    : "";
}

std::vector<std::string> Processes::Gather(const std::string& text)
{
  return { text };
}

std::string Processes::FromFirst(const std::string& text)
{
  return this->AreSeveral() ? this->Gather(this->IsFirst() ? text : "")[0] : text;
}

bool Processes::FirstSays(bool yes)
{
  return this->FromFirst(yes ? "yes" : "") == "yes";
}

void Processes::Distribute(size_t count, const std::function<void(size_t)>& body)
{
  for (size_t i = 0; i < count; ++i)
  {
    body(i);
  }
}

void Processes::WaitForAll()
{
  if (this->AreSeveral() && this->Comm_.barrier(this->Comm_.payload))
  {
    throw Error(RCN_EIO, "The connection between the processes was lost.");
  }
}

void Processes::Fail(const std::string& sentence, int exitCode)
{
  AtomicFile::RemoveAll();
  std::fprintf(stderr, "rater-consensus: %s\n", sentence.c_str());
  std::exit(exitCode);
}

void SharedRecords::Set(size_t number, json_t* record)
{
  if (this->Records_.size() <= number)
  {
    this->Records_.resize(number + 1);
  }
  this->Records_[number].reset(record);
}

json_t* SharedRecords::Get(size_t number) const
{
  return number < this->Records_.size() ? this->Records_[number].get() : nullptr;
}

void SharedRecords::Merge(Processes& processes)
{
  if (!processes.AreSeveral())
  {
    return;
  }
  const JsonHandle mine(json_object());
  for (size_t i = 0; i < this->Records_.size(); ++i)
  {
    if (this->Records_[i])
    {
      json_object_set(mine.get(), std::to_string(i).c_str(), this->Records_[i].get());
    }
  }
  for (const std::string& text : processes.Gather(JsonText(mine.get())))
  {
    const JsonHandle theirs(json_loadb(text.data(), text.size(), 0, nullptr));
    const char* key;
    json_t* record;
    json_object_foreach(theirs.get(), key, record)
    {
      this->Set(std::strtoull(key, nullptr, 10), json_incref(record));
    }
  }
}

} // namespace rcn
