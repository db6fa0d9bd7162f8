// SPDX-License-Identifier: Apache-2.0
#include "rcnFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rcn/rcn_file.h"
#include "rcnPlatform.h"

namespace rcn
{

Error WriteError(const std::string& name, int reason)
{
  return Error(rcn_status_of_write(reason), name + " cannot be written: " + std::strerror(reason) + ".");
}

/// The core's file, with a context of its own for the sentence.
struct AtomicFile::Internals
{
  explicit Internals(const std::string& target)
  {
    rcn::Check(rcn_context_create(&this->Context, nullptr), nullptr);
    if (const rcn_status status = rcn_file_create(&this->File, this->Context, target.c_str()))
    {
      const Error error(status, rcn_context_error(this->Context));
      rcn_context_destroy(this->Context);
      throw error;
    }
  }
  ~Internals()
  {
    rcn_file_destroy(this->File);
    rcn_context_destroy(this->Context);
  }
  rcn_context* Context = nullptr;
  rcn_file* File = nullptr;
};

AtomicFile::AtomicFile(const std::string& target)
  : Internals_(new Internals(target)), Path_(rcn_file_path(this->Internals_->File))
{
}

AtomicFile::~AtomicFile() = default;

void AtomicFile::Commit()
{
  rcn::Check(rcn_file_commit(this->Internals_->File, 0), this->Internals_->Context);
}

std::string AtomicFile::Check(const std::string& target)
{
  try
  {
    // Only trying tells: permissions do not bind everybody, and not every folder takes files.
    AtomicFile attempt(target);
  }
  catch (const Error& error)
  {
    if (error.Status() == RCN_ESPACE)
    {
      throw; // nothing is wrong with the name
    }
    return error.what();
  }
  return "";
}

void AtomicFile::RemoveAll() noexcept
{
  rcn_file_remove_all();
}

void MakeFolder(const std::string& path)
{
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure)
  {
    throw Error(rcn_status_of_write(failure.value()), path + " cannot be made: " + failure.message() + ".");
  }
}

std::string ReadText(const std::string& path)
{
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored))
  {
    throw Error(RCN_EIO, path + (std::filesystem::exists(path, ignored) ? " cannot be read." : " does not exist."));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

namespace
{

/// Fills an existing file; `name` stands in the error sentence.
void WriteFile(const std::string& path, const std::string& name, const std::string& text)
{
  if (const int reason = platform::WriteWhole(path, text))
  {
    throw WriteError(name, reason);
  }
}

} // namespace

void WriteText(const std::string& path, const std::string& text)
{
  if (path == "-")
  {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    {
      throw WriteError("Standard output", errno);
    }
    return;
  }
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
  {
    // A pipe or a device: there is nothing to replace.
    WriteFile(path, path, text);
    return;
  }
  AtomicFile beside(path);
  WriteFile(beside.Path(), path, text);
  beside.Commit();
}

std::string CheckText(const std::string& path)
{
  std::error_code ignored;
  if (path == "-" || std::filesystem::is_fifo(path, ignored) || std::filesystem::is_character_file(path, ignored))
  {
    return "";
  }
  return AtomicFile::Check(path);
}

void CopyFile(const std::string& from, const std::string& to)
{
  AtomicFile file(to);
  std::error_code failure;
  std::filesystem::copy_file(from, file.Path(), std::filesystem::copy_options::overwrite_existing, failure);
  if (failure)
  {
    throw Error(rcn_status_of_write(failure.value()), from + " cannot be copied to " + to + ": " + failure.message() + ".");
  }
  file.Commit();
}

} // namespace rcn
