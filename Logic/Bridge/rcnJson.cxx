// SPDX-License-Identifier: Apache-2.0
#include "rcnJson.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "rcn/rcn.h"
#include "rcnFileBeside.h"

namespace rcn
{

json_t* JsonNumber(double value)
{
  return std::isfinite(value) ? json_real(value) : json_null();
}

json_t* JsonString(const std::string& text)
{
  if (json_t* string = json_string(text.c_str()))
  {
    return string;
  }
  // Not UTF-8 (an old file name, say): show what can be shown.
  std::string readable = text;
  for (char& c : readable)
  {
    c = static_cast<unsigned char>(c) < 128 ? c : '?';
  }
  return json_string(readable.c_str());
}

json_t* JsonStrings(const std::vector<std::string>& strings)
{
  json_t* array = json_array();
  for (const std::string& text : strings)
  {
    json_array_append_new(array, JsonString(text));
  }
  return array;
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

std::string JsonText(const json_t* value)
{
  const std::unique_ptr<char, void (*)(void*)> text(
    json_dumps(value, JSON_ENCODE_ANY | JSON_INDENT(1) | JSON_REAL_PRECISION(17)), std::free);
  if (!text)
  {
    throw Error(RCN_ENOMEM, "Out of memory for the JSON text.");
  }
  return std::string(text.get()) + "\n";
}

std::string DocumentText(const json_t* object)
{
  const JsonHandle document(json_object());
  json_object_set_new(document.get(), "version", json_string(RCN_VERSION));
  json_object_update_missing(document.get(), const_cast<json_t*>(object));
  return JsonText(document.get());
}

namespace
{

bool WriteAll(int file, const std::string& text)
{
  size_t done = 0;
  while (done < text.size())
  {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
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

/// Fills an existing file; `name` stands in the error sentence.
void WriteFile(const std::string& path, const std::string& name, const std::string& text)
{
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  // fsync() has nothing to do for a pipe.
  bool good = file >= 0 && WriteAll(file, text) && (fsync(file) == 0 || errno == EINVAL || errno == EROFS);
  int reason = errno;
  if (file >= 0 && close(file) != 0 && good)
  {
    good = false;
    reason = errno;
  }
  if (!good)
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
  FileBeside beside(path);
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
  return FileBeside::Check(path);
}

} // namespace rcn
