// SPDX-License-Identifier: Apache-2.0
#include "rcnPlatform.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#ifdef _WIN32
#include <io.h>
#include <process.h>

#include <windows.h>
#else
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#endif

namespace rcn::platform
{

namespace fs = std::filesystem;

namespace
{

#ifdef _WIN32
constexpr int StandardError = 2;
#else
constexpr int StandardError = STDERR_FILENO;
#endif

/// Not inherited by programs that are started later, which would keep the file open.
int OpenForWriting(const std::string& path)
{
#ifdef _WIN32
  return _open(path.c_str(), _O_WRONLY | _O_BINARY | _O_NOINHERIT);
#else
  return open(path.c_str(), O_WRONLY | O_CLOEXEC);
#endif
}

int CloseFile(int file)
{
#ifdef _WIN32
  return _close(file);
#else
  return close(file);
#endif
}

/// May write less than it was given: a signal, or the limit of a system call.
int64_t WriteSome(int file, const char* data, size_t bytes)
{
#ifdef _WIN32
  return _write(file, data, static_cast<unsigned int>(bytes < (1U << 30) ? bytes : (1U << 30)));
#else
  return write(file, data, bytes);
#endif
}

/// Whether what was written is on the disk, where there is one: pipes have none.
bool Flush(int file)
{
#ifdef _WIN32
  return _commit(file) == 0 || errno == EINVAL || errno == EBADF;
#else
  return fsync(file) == 0 || errno == EINVAL || errno == EROFS;
#endif
}

bool WriteAll(int file, const std::string& text)
{
  for (size_t done = 0; done < text.size();)
  {
    const int64_t written = WriteSome(file, text.data() + done, text.size() - done);
    // A signal came before anything was written: once more.
    if (written < 0 && errno == EINTR)
    {
      continue;
    }
    if (written <= 0)
    {
      return false;
    }
    done += static_cast<size_t>(written);
  }
  return true;
}

} // namespace

// ---- files -----------------------------------------------------------------------------------------

Room RoomFor(const std::string& path, int64_t bytes)
{
#ifdef __linux__
  const int file = OpenForWriting(path);
  if (file >= 0)
  {
    // Asking the file system to set the room aside is the only answer that counts quotas and reserves, too; what was set aside
    // is given back at once.
    const int failure = fallocate(file, 0, 0, bytes) == 0 ? 0 : errno;
    const bool emptied = ftruncate(file, 0) == 0;
    CloseFile(file);
    if (!failure && emptied)
    {
      return Room::Enough;
    }
    if (failure == ENOSPC || failure == EFBIG || failure == EDQUOT)
    {
      return Room::TooLittle;
    }
  }
#endif
  std::error_code failure;
  // Elsewhere, or on a file system that cannot set room aside: too little is certain, enough is not.
  const fs::space_info space = fs::space(path, failure);
  return !failure && static_cast<double>(space.available) < static_cast<double>(bytes) ? Room::TooLittle : Room::Unsure;
}

int WriteWhole(const std::string& path, const std::string& text)
{
  errno = 0;
  const int file = OpenForWriting(path);
  const bool good = file >= 0 && WriteAll(file, text) && Flush(file);
  const int reason = good ? 0 : errno;
  // Some network file systems tell of a full disk only here.
  const bool closed = file < 0 || CloseFile(file) == 0;
  return !good ? (reason ? reason : EIO) : closed ? 0 : errno;
}

int SaveFile(std::FILE* file)
{
  errno = 0;
#ifdef _WIN32
  const bool good = std::fflush(file) == 0 && Flush(_fileno(file));
#else
  const bool good = std::fflush(file) == 0 && Flush(fileno(file));
#endif
  return good ? 0 : errno ? errno : EIO;
}

bool IsReadable(const std::string& path)
{
#ifdef _WIN32
  return _access(path.c_str(), 4) == 0;
#else
  return access(path.c_str(), R_OK) == 0;
#endif
}

bool IsExecutable(const std::string& path)
{
#ifdef _WIN32
  return _access(path.c_str(), 0) == 0;
#else
  return access(path.c_str(), X_OK) == 0;
#endif
}

FileStatus StatusOf(const std::string& path)
{
  FileStatus out;
#ifdef _WIN32
  struct _stat64 is;
  if (_stat64(path.c_str(), &is) != 0)
  {
    return out;
  }
  out.IsOrdinary = (is.st_mode & _S_IFMT) == _S_IFREG;
  // Opened without any access, only to ask for its number; the flag allows folders.
  const HANDLE file = CreateFileA(path.c_str(), 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  BY_HANDLE_FILE_INFORMATION about;
  if (file != INVALID_HANDLE_VALUE)
  {
    if (GetFileInformationByHandle(file, &about))
    {
      out.Number = { about.dwVolumeSerialNumber, static_cast<uint64_t>(about.nFileIndexHigh) << 32 | about.nFileIndexLow };
    }
    CloseHandle(file);
  }
#else
  struct stat is;
  if (stat(path.c_str(), &is) != 0)
  {
    return out;
  }
  out.IsOrdinary = S_ISREG(is.st_mode);
  out.Number = { static_cast<uint64_t>(is.st_dev), static_cast<uint64_t>(is.st_ino) };
#endif
  out.Exists = true;
  out.Bytes = static_cast<double>(is.st_size);
  out.Modified = is.st_mtime;
  return out;
}

std::string MakePrivateFolder(const std::string& parent)
{
#ifdef _WIN32
  // Temporary folders are private to a user there.
  for (unsigned int attempt = 0; attempt < 1000; ++attempt)
  {
    const std::string name =
      (fs::path(parent) / (".rcn-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(GetTickCount() + attempt)))
        .string();
    std::error_code failure;
    if (fs::create_directory(name, failure))
    {
      return name;
    }
    if (failure)
    {
      errno = failure.value();
      return "";
    }
  }
  errno = EEXIST;
  return "";
#else
  std::string name = (fs::path(parent) / ".rcn-XXXXXX").string();
  return mkdtemp(name.data()) ? name : ""; // mode 0700
#endif
}

// ---- standard error --------------------------------------------------------------------------------

// For libraries that print what we say better ourselves. What they print goes nowhere until ShowStandardError().
int HideStandardError()
{
#ifdef _WIN32
  const int nowhere = _open("NUL", _O_WRONLY), kept = nowhere >= 0 ? _dup(StandardError) : -1;
  if (kept >= 0)
  {
    _dup2(nowhere, StandardError);
  }
#else
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC),
            kept = nowhere >= 0 ? fcntl(StandardError, F_DUPFD_CLOEXEC, 3) : -1;
  if (kept >= 0)
  {
    dup2(nowhere, StandardError);
  }
#endif
  if (nowhere >= 0)
  {
    CloseFile(nowhere);
  }
  return kept;
}

void ShowStandardError(int kept)
{
  if (kept >= 0)
  {
#ifdef _WIN32
    _dup2(kept, StandardError);
#else
    dup2(kept, StandardError);
#endif
    CloseFile(kept);
  }
}

bool StandardErrorIsTerminal()
{
#ifdef _WIN32
  return _isatty(StandardError) != 0;
#else
  return isatty(StandardError) != 0;
#endif
}

// ---- the process -----------------------------------------------------------------------------------

// Kilobytes on Linux, bytes on macOS.
double PeakMegabytes()
{
#ifndef _WIN32
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0)
  {
#ifdef __APPLE__
    return static_cast<double>(usage.ru_maxrss) / 1e6;
#else
    return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
#endif
  }
#endif
  return 0;
}

void OnStop(void (*handler)(int))
{
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
#ifdef SIGHUP
  std::signal(SIGHUP, handler);
#endif
}

// Only where the user has not set it.
bool SetDefault(const char* variable, const char* value)
{
#ifdef _WIN32
  return std::getenv(variable) || _putenv_s(variable, value) == 0;
#else
  return setenv(variable, value, 0) == 0;
#endif
}

std::string OwnProgram()
{
#ifdef _WIN32
  char path[4096];
  const DWORD bytes = GetModuleFileNameA(nullptr, path, sizeof path);
  return bytes < sizeof path ? std::string(path, bytes) : "";
#else
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).string();
#endif
}

void StartInstead(const std::string& program, std::vector<std::string> words)
{
  std::vector<char*> raw;
  for (std::string& word : words)
  {
    raw.push_back(word.data());
  }
  raw.push_back(nullptr);
#ifdef _WIN32
  _execv(program.c_str(), raw.data());
#else
  execv(program.c_str(), raw.data());
#endif
}

} // namespace rcn::platform
