#include "rcnFileBeside.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

/// Paths of the files being written, where a signal handler finds them.
constexpr int MostFiles = 16;
std::atomic<const char*> Written[MostFiles];

/// Long names are cut at the front: the extension decides the format.
constexpr size_t LongestName = 200;

std::string CannotBeWritten(const std::string& path, const std::string& reason)
{
  return path + " cannot be written: " + reason + ".";
}

} // namespace

FileBeside::FileBeside(const std::string& target) : Target_(target)
{
  const fs::path whole(target);
  std::string name = whole.filename().string();
  name = name.substr(name.size() > LongestName ? name.size() - LongestName : 0);
  // A file that a killed run left behind must not stand in the way, so try until a name is free.
  int file = -1;
  for (int attempt = 0; file < 0 && attempt < 1000; ++attempt)
  {
    this->Path_ = (whole.parent_path() / (".rcn-" + std::to_string(static_cast<long>(getpid())) + "-" +
      std::to_string(attempt) + "-" + name)).string();
    file = open(this->Path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST)
    {
      break;
    }
  }
  if (file < 0)
  {
    throw Error(RCN_EIO, CannotBeWritten(target, std::strerror(errno)));
  }
  close(file);
  for (int slot = 0; slot < MostFiles && this->Slot_ < 0; ++slot)
  {
    const char* expected = nullptr;
    if (Written[slot].compare_exchange_strong(expected, this->Path_.c_str()))
    {
      this->Slot_ = slot;
    }
  }
}

FileBeside::~FileBeside()
{
  if (!this->Path_.empty())
  {
    std::remove(this->Path_.c_str());
  }
  if (this->Slot_ >= 0)
  {
    Written[this->Slot_] = nullptr;
  }
}

void FileBeside::Commit()
{
  if (std::rename(this->Path_.c_str(), this->Target_.c_str()) != 0)
  {
    throw Error(RCN_EIO, CannotBeWritten(this->Target_, std::strerror(errno)));
  }
  if (this->Slot_ >= 0)
  {
    Written[this->Slot_] = nullptr;
    this->Slot_ = -1;
  }
  this->Path_.clear();
}

std::string FileBeside::Check(const std::string& target)
{
  std::error_code ignored;
  fs::path folder = fs::path(target).parent_path();
  if (folder.empty())
  {
    folder = ".";
  }
  if (fs::is_directory(target, ignored) || fs::path(target).filename().empty())
  {
    return target + " is a folder; give a file name.";
  }
  if (!fs::exists(folder, ignored))
  {
    return CannotBeWritten(target, "the folder " + folder.string() + " does not exist");
  }
  if (!fs::is_directory(folder, ignored))
  {
    return CannotBeWritten(target, folder.string() + " is no folder");
  }
  if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored))
  {
    return CannotBeWritten(target, "it is no ordinary file");
  }
  if (access(folder.c_str(), W_OK) != 0)
  {
    return CannotBeWritten(target, "no permission in " + folder.string() + " (" + std::strerror(errno) + ")");
  }
  try
  {
    // Only trying tells: permissions do not bind everybody, and not every folder takes files.
    FileBeside attempt(target);
  }
  catch (const Error& error)
  {
    return error.what();
  }
  return "";
}

void FileBeside::RemoveAll() noexcept
{
  for (std::atomic<const char*>& path : Written)
  {
    if (const char* name = path)
    {
      unlink(name);
    }
  }
}

} // namespace rcn
