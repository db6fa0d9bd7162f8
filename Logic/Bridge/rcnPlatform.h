// SPDX-License-Identifier: Apache-2.0
/// What C++17 does not have and every system has in its own way. With rcn_system.h of the core, and rcnProcessesMpi.cxx, which
/// is for clusters, the only place that asks which system it is on.
#ifndef rcnPlatform_h
#define rcnPlatform_h

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace rcn::platform
{

/// Whether so many bytes can be written to a file that is there.
enum class Room
{
  Enough,
  Unsure,
  TooLittle
};
/// Reserves them and gives them back where the file system can; otherwise asks what is free.
Room RoomFor(const std::string& path, int64_t bytes);

/// Fills an empty file that is there, or writes to a pipe or a device. Returns 0 when it is on the disk, else an errno.
int WriteWhole(const std::string& path, const std::string& text);

/// What was written to an open file goes to the disk. Returns 0, else an errno.
int SaveFile(std::FILE* file);

/// Sends standard error nowhere; returns what ShowStandardError() needs, -1 when nothing was done.
int HideStandardError();
void ShowStandardError(int kept);
bool StandardErrorIsTerminal();

/// For whoever runs this program.
bool IsReadable(const std::string& path);
bool IsExecutable(const std::string& path);

/// Two numbers that tell files and folders apart, whatever they are called.
using FileNumber = std::pair<uint64_t, uint64_t>;
struct FileStatus
{
  bool Exists = false, IsOrdinary = false;
  FileNumber Number;
  double Bytes = 0;
  std::time_t Modified = 0;
};
FileStatus StatusOf(const std::string& path);

/// A new folder in `parent` that only its owner can read; empty, with errno, when it cannot be made.
std::string MakePrivateFolder(const std::string& parent);

/// The most memory that this process had so far; 0 where the system does not say.
double PeakMegabytes();

/// Calls handler(signal) when somebody asks the program to stop: Ctrl-C, the end of the session.
void OnStop(void (*handler)(int));

/// A variable for this program and those it starts; one that is set stays as it is. False: it cannot be set.
bool SetDefault(const char* variable, const char* value);

/// This program's file; empty where the system does not say.
std::string OwnProgram();

/// Another program in place of this one; returns only when that fails, with errno.
void StartInstead(const std::string& program, std::vector<std::string> words);

} // namespace rcn::platform

#endif
