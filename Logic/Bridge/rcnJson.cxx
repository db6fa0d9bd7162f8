#include "rcnJson.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace rcn
{

json_t* JsonNumber(double value)
{
  return std::isfinite(value) ? json_real(value) : json_null();
}

json_t* JsonStrings(const std::vector<std::string>& strings)
{
  json_t* array = json_array();
  for (const std::string& text : strings)
  {
    json_array_append_new(array, json_string(text.c_str()));
  }
  return array;
}

std::string JsonText(const json_t* value)
{
  const std::unique_ptr<char, void (*)(void*)> text(
    json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(15)), std::free);
  if (!text)
  {
    throw Error(RCN_ENOMEM, "Out of memory for the JSON text.");
  }
  return std::string(text.get()) + "\n";
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

} // namespace

void WriteText(const std::string& path, const std::string& text)
{
  if (path == "-")
  {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    {
      throw Error(RCN_EIO, std::string("Standard output cannot be written: ") + std::strerror(errno) + ".");
    }
    return;
  }
  const std::filesystem::path target(path);
  const std::filesystem::path beside = target.parent_path() /
    (".rcn-" + std::to_string(static_cast<long>(getpid())) + "-" + target.filename().string());
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool good = file >= 0 && WriteAll(file, text) && fsync(file) == 0;
  int reason = errno;
  if (file >= 0 && close(file) != 0 && good)
  {
    good = false;
    reason = errno;
  }
  if (good && std::rename(beside.c_str(), path.c_str()) != 0)
  {
    good = false;
    reason = errno;
  }
  if (!good)
  {
    if (file >= 0)
    {
      std::remove(beside.c_str());
    }
    throw Error(RCN_EIO, path + " cannot be written: " + std::strerror(reason) + ".");
  }
}

} // namespace rcn
