// SPDX-License-Identifier: Apache-2.0
#include "rcnOverwrite.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "rcnImageIO.h"
#include "rcnPlatform.h"

namespace rcn
{

namespace
{

namespace fs = std::filesystem;

/// Device, inode and name. The name is empty for a file that is there; one that is not yet has its folder's numbers.
using Identity = std::tuple<platform::FileNumber, std::string>;

/// False: it is no ordinary file and cannot become one.
bool Identify(Identity& out, std::string path)
{
  if (path.empty() || path == "-")
  {
    return false;
  }
  const platform::FileStatus file = platform::StatusOf(path);
  if (file.Exists)
  {
    out = Identity(file.Number, "");
    return file.IsOrdinary;
  }
  std::error_code failure;
  for (int links = 0; links < 40 && fs::is_symlink(path, failure); ++links) // to a file that is not there
  {
    const fs::path target = fs::read_symlink(path, failure);
    path = (fs::path(path).parent_path() / target).string();
  }
  const fs::path parent = fs::path(path).parent_path();
  const platform::FileStatus folder = platform::StatusOf(parent.empty() ? "." : parent.string());
  out = Identity(folder.Number, fs::path(path).filename().string());
  return folder.Exists;
}

bool IsDicom(const fs::path& path)
{
  char head[132] = "";
  std::ifstream file(path, std::ios::binary);
  file.read(head, sizeof head);
  const std::string extension = ExtensionOf(path.string());
  return extension.empty() || extension == ".dcm" || extension == ".ima" || (file && std::memcmp(head + 128, "DICM", 4) == 0);
}

/// The data file that a header names, or the other half of a pair.
std::string DataFileOf(const fs::path& header)
{
  const std::string extension = ExtensionOf(header.string());
  if (extension == ".hdr" || extension == ".img")
  {
    return fs::path(header).replace_extension(extension == ".hdr" ? ".img" : ".hdr").string();
  }
  const std::string key = extension == ".mhd" ? "ElementDataFile" : extension == ".nhdr" ? "data file" : "";
  std::ifstream file;
  if (!key.empty())
  {
    file.open(header);
  }
  int lines = 0;
  for (std::string line; lines < 200 && std::getline(file, line); ++lines)
  {
    if (line.compare(0, key.size(), key) == 0)
    {
      const std::string::size_type begin = line.find_first_not_of(" \t=:", key.size());
      const std::string::size_type end = line.find_last_not_of(" \t\r");
      return begin == std::string::npos ? "" : (header.parent_path() / line.substr(begin, end + 1 - begin)).string();
    }
  }
  return "";
}

/// The files behind a path that is read.
std::vector<std::string> FilesBehind(const std::string& path)
{
  std::error_code failure;
  if (!fs::is_directory(path, failure))
  {
    const std::string data = DataFileOf(path);
    return data.empty() ? std::vector<std::string>{ path } : std::vector<std::string>{ path, data };
  }
  std::vector<std::string> files = ImagesIn(path);
  for (const fs::directory_entry& entry : fs::directory_iterator(path, failure))
  {
    if (entry.is_regular_file(failure) && IsDicom(entry.path()))
    {
      files.push_back(entry.path().string());
    }
  }
  return files;
}

} // namespace

std::vector<NamedFile> FilesOf(const Case& one, const std::string& name)
{
  std::vector<NamedFile> files;
  for (const std::string& image : one.Images)
  {
    files.push_back({ name, image });
  }
  for (const RaterFile& rater : one.Raters)
  {
    for (const std::string& file : FilesOf(rater))
    {
      files.push_back({ name, file });
    }
  }
  return files;
}

std::vector<NamedFile> FilesOf(const DataList& list, const std::string& name)
{
  std::vector<NamedFile> files = { { name, list.Path } };
  for (const Case& one : list.Cases)
  {
    const std::vector<NamedFile> more = FilesOf(one, "case " + one.Id + " of " + list.Path);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

std::string CheckOverwrite(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs)
{
  std::map<Identity, const NamedFile*> written;
  Identity identity;
  for (const NamedFile& output : outputs)
  {
    if (!Identify(identity, output.Path))
    {
      continue;
    }
    const auto [first, isNew] = written.emplace(identity, &output);
    if (!isNew)
    {
      return first->second->Name + " " + first->second->Path + " and " + output.Name + " " + output.Path +
        " are the same file; give each result its own file.";
    }
  }
  for (const NamedFile& input : written.empty() ? std::vector<NamedFile>() : inputs)
  {
    for (const std::string& path : FilesBehind(input.Path))
    {
      const auto found = Identify(identity, path) ? written.find(identity) : written.end();
      if (found != written.end() && (found->second->MayReplace.empty() || found->second->MayReplace != input.Name))
      {
        return found->second->Name + " " + found->second->Path + " would overwrite " +
          (path == found->second->Path ? "what " : path + ", which ") + input.Name + " reads; give another file name.";
      }
    }
  }
  return "";
}

} // namespace rcn
